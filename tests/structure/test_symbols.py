"""What libtt.so shows and needs: exact exports, allowed undefined symbols, nothing before main, little thread-local storage."""
import re

import pytest
from common import BUILD, ROOT, SHARED, cached, exports, run

sanitized = pytest.mark.skipif(bool(cached("TT_SANITIZE")), reason="sanitizers bring their own symbols")


def dynamic(*flags):
    return [line.split() for line in run("nm", "-D", *flags, SHARED).splitlines()]


def test_exports_are_exactly_the_header():
    shown = {fields[-1].split("@")[0] for fields in dynamic("--defined-only") if fields[-2] != "A"}
    want = {(cached("TT_PREFIX") + "_" if cached("TT_PREFIX") else "") + name for name in exports()}
    assert shown - want == set(), "exported but not in the headers"
    assert want - shown == set(), "in the headers but not exported"


def test_every_operator_function_is_in_the_lock():
    locked = set(re.findall(r"^fn (\w+)\(", (ROOT / "src/ops/abi.lock").read_text(), re.M))
    header = set(re.findall(r"\b(tt_\w+)\((?!\*)", (ROOT / "include/tt_ops.h").read_text()))
    assert locked == header & set(exports())
    assert locked


def test_every_lock_row_has_a_symbol():
    assert set(re.findall(r"^fn (\w+)\(", (ROOT / "src/ops/abi.lock").read_text(), re.M)) <= set(exports())


@sanitized
def test_undefined_symbols_are_on_the_list():
    allowed = {line.split("#")[0].strip() for line in (ROOT / "tests/structure/undefined.txt").read_text().splitlines()} - {""}
    needed = {fields[-1].split("@")[0] for fields in dynamic("--undefined-only")}
    assert needed - allowed == set(), "new needs: think, then add them to undefined.txt"


@sanitized
def test_needed_libraries():
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-dW", SHARED)))
    assert needed <= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}


def test_soname_and_nodelete():
    text = run("readelf", "-dW", SHARED)
    assert re.search(r"SONAME.*\[lib\w*tt\.so\.\d+\]", text)
    assert "NODELETE" in text and "STATIC_TLS" in text


def test_no_static_constructors():
    """An object with a constructor has an .init_array section; libtt.a holds tt's objects and nothing of libstdc++."""
    for section in run("readelf", "-SW", BUILD / "libtt.a").splitlines():
        assert not re.search(r"\.(init_array|ctors|preinit_array|fini_array)\b", section), section


@sanitized
def test_one_constructor_of_libstdcxx_at_most():
    """frame_dummy of the C runtime and eh_alloc of libstdc++ are all that runs before main."""
    size = re.search(r"\.init_array\s+INIT_ARRAY\s+\w+ \w+ (\w+)", run("readelf", "-SW", SHARED))
    assert int(size.group(1), 16) // 8 <= 2


@sanitized
def test_thread_local_storage():
    segments = re.findall(r"^\s*TLS\s+\w+ \w+ \w+ \w+ (\w+)", run("readelf", "-lW", SHARED), re.M)
    assert len(segments) <= 1 and sum(int(s, 16) for s in segments) <= 64
    assert "__tls_get_addr" not in run("nm", "-D", SHARED)


