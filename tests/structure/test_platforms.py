"""What depends on the platform is in src/base; what depends on the vector unit is in
kernels/cpu/simd and in the kernels listed here."""
import re
import subprocess

from common import ROOT, per_file, sources

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
# Shorter only: a kernel that moves its intrinsics to kernels/cpu/simd leaves the list.
INTRINSICS = {
    f"kernels/{name}"
    for name in """
    cpu/attention/attention.h cpu/conv/batch_interleaved.cpp cpu/conv/conv.cpp
    cpu/conv/weight.cpp cpu/elementwise/elementwise.h cpu/index/index.cpp
    cpu/math/gated_product.h cpu/math/math.h cpu/math/normal_distribution.h cpu/matmul/bf16.cpp
    cpu/matmul/pack.h cpu/matmul/small.cpp cpu/matmul/vec.h cpu/quant/int8_tile.h
    cpu/quant/int8_vnni.cpp cpu/recurrent/recurrent.h cpu/scan/product_lanes.h
    functors/activation.h
    """.split()
}
# Sockets and processes of the communication between machines, which src/base does not wrap yet.
SYSTEM_CALLERS = "src/dist/engines/"
HOME = ("src/base/", "kernels/cpu/simd/", "kernels/cuda/")
SYSTEM_HEADER = re.compile(
    r"^\s*#\s*include\s*<(sys/|linux/|mach/|windows\.h|unistd\.h|pthread\.h|dlfcn\.h|fcntl\.h"
    r"|sched\.h|signal\.h)",
    re.M,
)


def elsewhere():
    for path in sources("src", "kernels"):
        if not str(path.relative_to(ROOT)).startswith(HOME):
            yield path


@per_file(elsewhere())
def test_system_is_named_in_base_only(path):
    if str(path.relative_to(ROOT)).startswith(SYSTEM_CALLERS):
        return
    text = path.read_text()
    assert not SYSTEM.search(text)
    assert not SYSTEM_HEADER.search(text)


@per_file(elsewhere())
def test_vector_unit_is_named_in_listed_files_only(path):
    found = PROCESSOR.search(path.read_text())
    name = str(path.relative_to(ROOT))
    assert bool(found) <= (name in INTRINSICS), f"{name} asks for {found and found.group(1)}"


def test_the_list_has_no_stale_file():
    for name in sorted(INTRINSICS):
        assert PROCESSOR.search((ROOT / name).read_text()), f"{name} can leave the list"


def test_sources_compile_for_other_processors():
    subprocess.run(["./dev", "cross", "sample"], check=True, cwd=ROOT)
