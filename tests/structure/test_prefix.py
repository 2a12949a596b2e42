"""TT_PREFIX: two static copies in one process share no symbol. `dev checked` runs this: its build
has the prefix, and the copy without one is the Release build."""
import re

import pytest
from common import BUILD, ROOT, cached, run

PREFIX = cached("TT_PREFIX")
pytestmark = pytest.mark.skipif(not PREFIX, reason="a build with TT_PREFIX")


def defined(archive):
    """Strong symbols of an archive."""
    return set(re.findall(r"^\w+ [A-TX-Z] (\S+)", run("nm", archive), re.M))


def test_two_copies(tmp_path):
    renamed, own = BUILD / f"lib{PREFIX}_tt.a", ROOT / "build/libtt.a"
    shared = defined(renamed) & defined(own)
    assert not shared
    assert f"{PREFIX}_tt_add" in defined(renamed)
    program = tmp_path / "program"
    run(
        "cc",
        f"-I{ROOT / 'include'}",
        ROOT / "tests/structure/prefix_main.c",
        renamed,
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
        f"-I{BUILD / 'include'}",
        '-DTT_PREFIX_HEADER="tt_prefix.h"',
        ROOT / "tests/structure/add.c",
        renamed,
        "-Wl,-Bstatic",
        "-lstdc++",
        "-Wl,-Bdynamic",
        "-lm",
        "-o",
        program,
    )
    run(program)
