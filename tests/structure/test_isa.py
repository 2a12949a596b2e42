"""Kernels of one instruction set leak nothing into code that runs on lesser machines: their objects hold no weak symbol, at -O0 too,
and define nothing outside their namespace."""
import json
import re
import shlex

import pytest
from common import BUILD, ROOT, cached, per_file, run, sources

ISAS = [isa for isa in cached("TT_ISAS").split(";") if isa != "baseline"]
WEAK = re.compile(r"^\S*\s+[WwVvu]\s+(\S+)", re.M)
pytestmark = pytest.mark.skipif(bool(cached("TT_SANITIZE")), reason="baseline only")


def commands():
    return {(c["file"], isa): c for c in json.loads((BUILD / "compile_commands.json").read_text())
            for isa in ISAS if f"-DTT_ISA={isa}" in c["command"]}


COMMANDS = commands()


def check(obj, isa):
    text = run("nm", obj)
    assert not WEAK.findall(text)
    defined = re.findall(r"^\w+ [A-TV-Z] (\S+)", text, re.M)
    namespace = (cached("TT_PREFIX") + "_" if cached("TT_PREFIX") else "") + "tt"
    outside = [s for s in defined if not re.match(rf"_Z\w*?N?K?{len(namespace)}{namespace}{len(isa)}{isa}", s)]
    assert not outside


@pytest.mark.parametrize("isa", ISAS)
@per_file(sources("kernels/cpu", suffixes=(".cpp",)))
def test_optimized(path, isa):
    command = COMMANDS[str(path), isa]
    output = command.get("output") or shlex.split(command["command"])[shlex.split(command["command"]).index("-o") + 1]
    check(BUILD / output, isa)


@per_file(sources("kernels/cpu", suffixes=(".cpp",)))
def test_unoptimized(path, tmp_path):
    isa = ISAS[-1]
    words = shlex.split(COMMANDS[str(path), isa]["command"])
    obj = tmp_path / "o.o"
    words[words.index("-o") + 1] = str(obj)
    run(*words, "-O0", "-w", cwd=BUILD)
    check(obj, isa)


def test_the_check_can_fail(tmp_path):
    source = tmp_path / "leak.cpp"
    source.write_text("template <class T> T twice(T x) { return x + x; }\nint f(int x) { return twice(x); }\n")
    run("c++", "-c", "-O0", source, "-o", tmp_path / "leak.o")
    with pytest.raises(AssertionError):
        check(tmp_path / "leak.o", ISAS[-1])
