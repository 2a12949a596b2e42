"""No function of the library takes so much stack that a call could need more than the 64 kB that
tt.h promises: the callers of a kernel take up to 20 kB. c.stack measures whole calls."""
import re

import pytest
from common import SHARED, cached, run

LIMIT = 44 << 10
NAME = re.compile(r"^[0-9a-f]+ <(.*)>:$")
# what a prologue takes at once, or page by page up to an address
TAKEN = re.compile(r"sub +\$0x([0-9a-f]{1,7}),%rsp|lea +-0x([0-9a-f]+)\(%rsp\),%r11")
pytestmark = pytest.mark.skipif(
    bool(cached("TT_SANITIZE")) or cached("CMAKE_BUILD_TYPE") != "Release",
    reason="frames of optimized builds",
)


def frames(binary):
    """The bytes of stack that each function takes."""
    name, taken = "", {}
    for line in run("objdump", "-d", "--no-show-raw-insn", binary).splitlines():
        if start := NAME.match(line):
            name = start[1]
        elif take := TAKEN.search(line):
            taken[name] = taken.get(name, 0) + int(take[1] or take[2], 16)
    return taken


def test_frames():
    large = {name: n for name, n in frames(SHARED).items() if n > LIMIT}
    assert not large


def test_the_check_can_fail(tmp_path):
    source = tmp_path / "large.c"
    source.write_text("void g(char*); void f(void) { char x[50000]; g(x); }\n")
    run("cc", "-c", "-O2", source, "-o", tmp_path / "large.o")
    assert frames(tmp_path / "large.o")["f"] > LIMIT
