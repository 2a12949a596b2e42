"""TT_PREFIX: two static copies in one process share no symbol."""
import os
import re

import pytest
from common import BUILD, ROOT, cached, run

pytestmark = pytest.mark.skipif(bool(cached("TT_SANITIZE")), reason="once is enough")


def renamed(prefix, folder):
    run(
        "cmake",
        "-S",
        ROOT,
        "-B",
        folder,
        f"-DTT_PREFIX={prefix}",
        "-DTT_TESTS=OFF",
        "-DTT_ISAS=baseline",
        "-DCMAKE_BUILD_TYPE=Debug",
        "-DCMAKE_CXX_FLAGS_DEBUG=-O0",
        *(["-GNinja"] if cached("CMAKE_GENERATOR") == "Ninja" else []),
    )
    run("cmake", "--build", folder, "--target", "tt_static", "-j", os.cpu_count() or 1)
    return folder / f"lib{prefix}_tt.a"


def defined(archive):
    """Strong symbols of an archive."""
    return set(re.findall(r"^\w+ [A-TX-Z] (\S+)", run("nm", archive), re.M))


def test_two_copies(tmp_path):
    alpha, own = renamed("alpha", tmp_path / "alpha"), BUILD / "libtt.a"
    shared = defined(alpha) & defined(own)
    assert not shared
    assert "alpha_tt_add" in defined(alpha)
    program = tmp_path / "program"
    run(
        "cc",
        f"-I{ROOT / 'include'}",
        ROOT / "tests/structure/prefix_main.c",
        alpha,
        own,
        "-Wl,-Bstatic",
        "-lstdc++",
        "-Wl,-Bdynamic",
        "-lm",
        "-o",
        program,
    )
    run(program)
    # a host includes tt.h with the generated defines first and calls tt_add
    run(
        "cc",
        f"-I{ROOT / 'include'}",
        f"-I{tmp_path / 'alpha/include'}",
        '-DTT_PREFIX_HEADER="tt_prefix.h"',
        ROOT / "tests/structure/add.c",
        alpha,
        "-Wl,-Bstatic",
        "-lstdc++",
        "-Wl,-Bdynamic",
        "-lm",
        "-o",
        program,
    )
    run(program)
