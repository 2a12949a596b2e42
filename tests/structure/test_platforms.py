"""What depends on the platform is in src/base; what depends on the vector unit is in
kernels/cpu/simd; extensions of GNU are in src/base/compiler."""
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from common import BUILD, ROOT, left_out_in_turn, per_file, run, sources

SYSTEM = re.compile(
    r"^\s*#\s*(?:el)?if.*\b(__linux__|__APPLE__|_WIN32|_WIN64|__MINGW\w+|__GLIBC__|__ANDROID__"
    r"|__FreeBSD__|__unix__|_MSC_VER)\b",
    re.M,
)
PROCESSOR = re.compile(
    r"^\s*#\s*(?:el)?if.*\b(__x86_64__|__i386__|__aarch64__|__arm__|__ARM_\w+|__riscv\w*"
    r"|__SSE\w*|__AVX\w*|__FMA__|__F16C__|__BMI2?__)\b",
    re.M,
)
INTRINSIC = re.compile(r"\b_mm(?:256|512)?_\w+|\b__m(?:128|256|512)[id]?\b|\bv\w+q_[fsu]\d+\b")
# More than the bits of an address on 32-bit targets.
WIDE_SHIFT = re.compile(r"\b(?:size_t|uintptr_t|ptrdiff_t)\(\w+\) *<< *(?:3[2-9]|[4-9]\d)")
# Extensions of GNU; those without a name of their own are found by clang (cross/pedantic.py).
GNU = re.compile(
    r"\b__builtin_\w+|\b__attribute__|\b__u?int128\w*|\b(?:__)?asm(?:__)?\b|\b(?:__)?typeof(?:__)?\b"
    r"|\b__extension__|\b__restrict(?:__)?\b|\b__(?:atomic|sync)_\w+|\b__ATOMIC_\w+|\b__thread\b"
    r"|\b__(?:PRETTY_FUNCTION|complex|real|imag|label|alignof|signed|volatile|inline|const)__\b"
    r"|\b__(?:clang_version|VERSION|BYTE_ORDER|ORDER_\w+|SIZEOF_\w+|CHAR_BIT"
    r"|\w+_(?:MAX|MIN|EPSILON|WIDTH|DIG|TYPE))__\b"
    r"|\[\[\s*(?:gnu|clang)::|\b__is_same\(|\b__has_feature|^\s*#\s*pragma\s+(?:GCC|clang)\b"
    r"|\b_Pragma\b|\bvector_size\b|##\s*__VA_ARGS__|\bcase\b[^:\n]*\.\.\.|\?:",
    re.M,
)
COMMENT_OR_STRING = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.S)
# Beside that folder: the vector extension, single instructions and what gcc finds in its own
# intrinsics; the runtime of GNU's C++, of which src/base/cxx_* replace parts; CUDA's compiler.
GNU_HOME = re.compile(
    r"src/base/compiler/|src/base/cxx_\w+\.cpp|kernels/cuda/"
    r"|kernels/cpu/simd/(?:vector|amx|broadcast|intrinsics|mmla|sve|tile_sums|vec)\.h"
)
# Sockets of libraries of their own, with which no code of libtt is linked; built on ELF alone.
SYSTEM_CALLERS = "src/dist/engines/"
HOME = ("src/base/", "kernels/cpu/simd/", "kernels/cuda/")
SYSTEM_HEADER = re.compile(
    r"^\s*#\s*include\s*<(sys/|linux/|mach/|windows\.h|unistd\.h|pthread\.h|dlfcn\.h|fcntl\.h"
    r"|sched\.h|signal\.h)",
    re.M,
)
# Names of vendors and of their processors: kernels are chosen by what a processor can do.
VENDOR = re.compile(
    r"GenuineIntel|AuthenticAMD|HygonGenuine|CentaurHauls|\bcpuid_words\(0,|family_id|model_id"
)


def elsewhere():
    for path in sources("src", "kernels"):
        if not str(path.relative_to(ROOT)).startswith(HOME):
            yield path


@per_file(elsewhere())
def test_system_is_named_in_base_only(path):
    text = path.read_text()
    assert not SYSTEM.search(text)
    if str(path.relative_to(ROOT)).startswith(SYSTEM_CALLERS):
        return
    assert not SYSTEM_HEADER.search(text)


@per_file(elsewhere())
def test_vector_unit_is_named_in_the_vector_layer_only(path):
    found = PROCESSOR.search(path.read_text())
    assert not found, f"{path} asks for {found and found.group(1)}"
    used = INTRINSIC.search(path.read_text())
    assert not used, f"{path} uses {used and used.group(0)}"


@per_file(p for p in sources("src", "kernels") if not GNU_HOME.match(str(p.relative_to(ROOT))))
def test_extensions_of_gnu_are_in_one_header(path):
    found = GNU.search(COMMENT_OR_STRING.sub("", path.read_text()))
    assert not found, f"{path} has {found and found.group(0)}"


def test_extensions_of_gnu_would_be_found():
    for text in (
        "x = __builtin_clz(y)",
        "int a[2] __attribute__((used))",
        "[[gnu::cold]]",
        "x ?: y",
        "double(__FLT_MAX__)",
        '"gcc " __VERSION__',
    ):
        assert GNU.search(text), text


def test_a_compiler_with_microsofts_rules_accepts_sources():
    some = "src/base/pool.cpp,src/capi/tensor.cpp,kernels/cpu/linalg/eigh.cpp"
    run("python3", ROOT / "tests/cross/pedantic.py", BUILD, "--only", some, "msvc clang++")


# clang's programs with the command lines of Microsoft's compiler, librarian and linker.
MSVC_TOOLS = {
    "C_COMPILER": "clang-cl",
    "CXX_COMPILER": "clang-cl",
    "AR": "llvm-lib",
    "LINKER": "lld-link",
    "MT": "llvm-mt",
    "RC_COMPILER": "llvm-rc",
}


@pytest.mark.skipif(left_out_in_turn(0, 4), reason="takes 1 s: every fourth commit")
def test_msvc_has_rules_for_both_libraries(tmp_path):
    """Nothing is compiled: there are no headers of Microsoft's."""
    bin_folder = Path(shutil.which("clang++")).resolve().parent
    missing = [name for name in MSVC_TOOLS.values() if not (bin_folder / name).exists()]
    if missing or not shutil.which("ninja"):
        pytest.skip(f"there is no {', '.join(missing) or 'ninja'}")
    options = [f"-DCMAKE_{key}={bin_folder / name}" for key, name in MSVC_TOOLS.items()]
    options += ["-DCMAKE_SYSTEM_NAME=Windows", "-DCMAKE_SYSTEM_PROCESSOR=AMD64"]
    options += ["-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY", "-G", "Ninja"]
    launchers = [f"CMAKE_{language}_COMPILER_LAUNCHER" for language in ("C", "CXX")]
    env = {name: value for name, value in os.environ.items() if name not in launchers}
    run("cmake", "-S", ROOT, "-B", tmp_path, *options, env=env)
    steps = run("ninja", "-C", tmp_path, "-n", "all")
    assert "shared library tt.dll" in steps and "static library tt_static.lib" in steps


ENTRIES = re.compile(r"TT_ENTRY_BEGIN(.*?)TT_ENTRY_END", re.S)


def test_entry_points_take_no_vectors():
    """Without the vector extension vectors are classes of an unnamed namespace: a function with
    one among its parameters is the file's own."""
    assert not [
        path
        for path in sources("kernels/cpu", suffixes=(".h",))
        if any(re.search(r"\bVec(?:tor)?<", part) for part in ENTRIES.findall(path.read_text()))
    ]


def test_addresses_may_have_32_bits():
    assert not [p for p in sources("src", "kernels") if WIDE_SHIFT.search(p.read_text())]


def test_sources_compile_for_every_target():
    done = subprocess.run(["./dev", "cross", "sample"], capture_output=True, text=True, cwd=ROOT)
    print(done.stdout)
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r" \d+ sources$", done.stdout, re.M)) == 8


def compiled(build):
    """The sources of a build."""
    entries = json.loads((build / "compile_commands.json").read_text())
    return {(Path(entry["directory"]) / entry["file"]).resolve() for entry in entries}


def test_each_kernel_belongs_to_a_build(tmp_path):
    """A kernel of x86-64 is in this build, one of ARM in that of aarch64, which is not compiled."""
    options = ["-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=aarch64", "-DTT_TESTS=OFF"]
    options += ["-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY"]
    for language, compiler in (("C", "clang"), ("CXX", "clang++")):
        options += [f"-DCMAKE_{language}_COMPILER={compiler}"]
        options += [f"-DCMAKE_{language}_COMPILER_TARGET=aarch64-linux-gnu"]
    run("cmake", "-S", ROOT, "-B", tmp_path, *options)
    here, arm = compiled(BUILD), compiled(tmp_path)
    kernels = set(sources("kernels/cpu", suffixes=(".cpp",)))
    assert not [str(path) for path in kernels - here - arm]
    assert ROOT / "kernels/cpu/quant/int8_mmla.cpp" in arm


@pytest.mark.parametrize("target, turn", [("aarch64", (0, 2)), ("armhf", (1, 4))])
def test_kernels_run_on_arm(target, turn, tmp_path):
    if left_out_in_turn(*turn):
        pytest.skip("takes 33 s: every second commit, 32-bit ARM every fourth")
    sys.path.insert(0, str(ROOT / "tests/cross"))
    import kernels

    if kernels.missing(target) or not (BUILD / "build.ninja").exists():
        pytest.skip(f"there is no {kernels.missing(target) or 'build by ninja'}")
    print(run(sys.executable, ROOT / "tests/cross/kernels.py", BUILD, tmp_path, target))


def test_kernels_are_chosen_by_features():
    assert not [p for p in sources("src", "kernels/cpu") if VENDOR.search(p.read_text())]


def test_big_endian_targets_are_refused_when_they_are_configured(tmp_path):
    script = tmp_path / "configure.cmake"
    script.write_text(
        f"cmake_minimum_required(VERSION 3.20)\ninclude({ROOT / 'cmake/options.cmake'})\n"
    )
    for order, refused in (("BIG_ENDIAN", True), ("LITTLE_ENDIAN", False)):
        done = subprocess.run(
            ["cmake", f"-DCMAKE_CXX_BYTE_ORDER={order}", "-DTT_OS=linux", "-P", script],
            capture_output=True,
            text=True,
        )
        assert ("the target is big-endian: files of tensors" in done.stderr) == refused
        assert bool(done.returncode) == refused, done.stderr


def test_big_endian_targets_are_refused():
    header = ROOT / "src/base/platform.h"
    for target, refused in (("s390x-linux-gnu", True), ("riscv64-linux-gnu", False)):
        done = subprocess.run(
            ["clang++", f"--target={target}", "-ffreestanding", "-std=c++20", "-fsyntax-only"]
            + [f"-I{ROOT / 'src'}", "-xc++", header],
            capture_output=True,
            text=True,
        )
        assert ("tt needs a little-endian target" in done.stderr) == refused
        assert bool(done.returncode) == refused, done.stderr
