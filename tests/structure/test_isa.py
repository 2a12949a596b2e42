"""Kernels of one instruction set leak nothing into code that runs on lesser machines: their objects
define nothing outside their namespace, no weak copy of a common function either. `dev
checked` runs this over objects of clang at -O0."""
import json
import re
import shlex

import pytest
from common import BUILD, ROOT, cached, per_file, run, sources

ISAS = [isa for isa in cached("TT_ISAS").split(";") if isa != "baseline"]
DEFINED = re.compile(r"^\w+ [A-TV-Zu-w] (\S+)", re.M)
pytestmark = pytest.mark.skipif(bool(cached("TT_SANITIZE")), reason="baseline only")


def commands():
    return {
        (c["file"], isa): c
        for c in json.loads((BUILD / "compile_commands.json").read_text())
        for isa in ISAS
        if f"-DTT_ISA={isa}" in c["command"]
    }


COMMANDS = commands()
# kernels/cpu/CMakeLists.txt says why
ONE_ISA = {"panels.cpp": "avx512", "secular.cpp": "avx512", "int8_mmla.cpp": "baseline"}
LISTED = (ROOT / "kernels/cpu/CMakeLists.txt").read_text()
UP_TO_AVX2 = re.search(r"^set\(up_to_avx2 (.*?)\)", LISTED, re.M | re.S).group(1).split()


def check(obj, isa):
    text = run("nm", obj)
    namespace = (cached("TT_PREFIX") + "_" if cached("TT_PREFIX") else "") + "tt"
    inside = re.compile(rf"_Z\w*?N?K?{len(namespace)}{namespace}{len(isa)}{isa}")
    outside = [name for name in DEFINED.findall(text) if not inside.match(name)]
    assert not outside


@pytest.mark.parametrize("isa", ISAS)
@per_file(sources("kernels/cpu", suffixes=(".cpp",)))
def test_objects(path, isa):
    if ONE_ISA.get(path.name, isa) != isa:
        pytest.skip(f"compiled for {ONE_ISA[path.name]} alone")
    if isa == "avx512" and str(path.relative_to(ROOT / "kernels/cpu")) in UP_TO_AVX2:
        pytest.skip("AVX2's is taken")
    command = COMMANDS[str(path), isa]
    output = (
        command.get("output")
        or shlex.split(command["command"])[shlex.split(command["command"]).index("-o") + 1]
    )
    check(BUILD / output, isa)


def test_the_check_can_fail(tmp_path):
    source = tmp_path / "leak.cpp"
    source.write_text(
        "template <class T> T twice(T x) { return x + x; }\nint f(int x) { return twice(x); }\n"
    )
    run("c++", "-c", "-O0", source, "-o", tmp_path / "leak.o")
    with pytest.raises(AssertionError):
        check(tmp_path / "leak.o", ISAS[-1])
