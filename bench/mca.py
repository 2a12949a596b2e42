"""Inner loops of products and convolutions on 64-bit ARM, for which no hardware is at hand:
compiles their sources with a cross compiler and prints, as Markdown, instructions per FMA, accesses
to the stack, and the cycles that llvm-mca predicts beside the core's FMA limit.

    bench/mca.py [--mca llvm-mca-19] > docs/benchmarks/aarch64-mca.md

structure.aarch64 reads those of NEON on 32-bit ARM, too."""
import argparse
import pathlib
import re
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMPILER = "aarch64-linux-gnu-g++"
OBJDUMP = "aarch64-linux-gnu-objdump"
COMPILER_32 = "arm-linux-gnueabihf-g++"
OBJDUMP_32 = "arm-linux-gnueabihf-objdump"
FLAGS = (
    "-std=c++20 -O2 -ftree-vectorize -fvect-cost-model=dynamic -ffp-contract=off -fPIC"
    " -fno-rtti -fno-exceptions -fno-math-errno -fno-trapping-math -ffunction-sections"
    " -DTT_ISA=baseline -DTT_HAVE_BASELINE=1 -DTT_HAVE_AVX2=0 -DTT_HAVE_AVX512=0 -Wno-psabi"
).split()
# Files that CMakeLists.txt compiles for more than the baseline.
MARCH = {
    "matmul/bf16.cpp": "armv8.2-a+bf16",
    "quant/int8_mmla.cpp": "armv8.2-a+i8mm",
    "quant/int8_vnni.cpp": "armv8.2-a+dotprod",
}
MATRICES = ("bfmmla", "usmmla")
# What it is, the source, the function.
LOOPS = [
    ("packed product, f32", "matmul/f32.cpp", "micro<float, float, 12, 2, false>"),
    ("the same, packing b", "matmul/f32.cpp", "micro<float, float, 12, 2, true>"),
    ("packed product, f64", "matmul/f64.cpp", "micro<double, double, 12, 2, false>"),
    ("small product, f32", "matmul/small.cpp", "small_micro<float, 8, 2, false>"),
    ("convolution, f32", "conv/conv.cpp", "gather_tile<float, 9, 2>"),
    ("gradient of its weight, f32", "conv/weight.cpp", "weight_tile<float, 9, 2>"),
    (
        "packed product, bf16 by BFMMLA",
        "matmul/bf16.cpp",
        "micro<float, unsigned long, 12, 2, false>",
    ),
    ("product of bytes by USMMLA", "quant/int8_mmla.cpp", "int8_tiles_mmla"),
]
# The same of vectors of SVE with 256 bits, of which Neoverse V1 begins two FMAs per cycle.
SVE = "-march=armv8.2-a+sve -msve-vector-bits=256 -DTT_ISA=sve256 -DTT_HAVE_SVE256=1".split()
SVE_LOOPS = [
    ("packed product, f32", "matmul/f32.cpp", "micro<float, float, 12, 2, false>"),
    ("the same, packing b", "matmul/f32.cpp", "micro<float, float, 12, 2, true>"),
    ("packed product, f64", "matmul/f64.cpp", "micro<double, double, 12, 2, false>"),
    ("small product, f32", "matmul/small.cpp", "small_micro<float, 8, 2, true>"),
    ("convolution, f32", "conv/conv.cpp", "gather_tile<float, 9, 2>"),
    ("gradient of its weight, f32", "conv/weight.cpp", "weight_tile<float, 9, 2>"),
]
SVE_CORES = {"neoverse-v1": 2}
# The same by NEON of 32-bit ARM; kernels/cpu/simd/tile_sums.h.
NEON = "-mfpu=neon -DTT_ISA=neon -DTT_HAVE_NEON=1".split()
NEON_LOOPS = [
    ("packed product, f32", "matmul/f32.cpp", "micro<float, float, 4, 2, false>"),
    ("small product, f32", "matmul/small.cpp", "small_micro<float, 4, 2, false>"),
    ("convolution, f32", "conv/conv.cpp", "gather_tile<float, 4, 2>"),
    ("gradient of its weight, f32", "conv/weight.cpp", "weight_tile<float, 4, 2>"),
]
# FMAs of 128 bits that a core begins per cycle, and as many products of matrices if it has them.
CORES = {"neoverse-n1": 2, "neoverse-n2": 2, "neoverse-v1": 4}


def compile_kernel(source, directory, sve=False):
    """Compiles a file, by its path in kernels/cpu or its absolute path, and returns its object."""
    name = str(source).replace("/", "_")
    out = pathlib.Path(directory) / (name + (".sve" if sve else "") + ".o")
    if not out.exists():
        includes = [f"-I{ROOT / d}" for d in (".", "src", "include")]
        flags = [*FLAGS, f"-march={MARCH.get(source, 'armv8-a')}"]
        if sve:
            flags = [f for f in FLAGS if not f.startswith("-DTT_ISA=")] + SVE
        path = ROOT / "kernels/cpu" / source
        subprocess.run([COMPILER, *flags, *includes, "-c", path, "-o", out], check=True)
    return out


def compile_neon(source, directory):
    """The same for NEON of 32-bit ARM."""
    out = pathlib.Path(directory) / (source.replace("/", "_") + ".neon.o")
    includes = [f"-I{ROOT / d}" for d in (".", "src", "include")]
    flags = [f for f in FLAGS if not f.startswith("-DTT_ISA=")] + NEON
    path = ROOT / "kernels/cpu" / source
    subprocess.run([COMPILER_32, *flags, *includes, "-c", path, "-o", out], check=True)
    return out


def disassembly(obj, objdump):
    command = [objdump, "-d", "-C", "--no-show-raw-insn", obj]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def inner_loop(obj, function, objdump=OBJDUMP):
    """Returns the instructions of the function's loop with the largest share of FMAs."""
    parts = disassembly(obj, objdump).split("\n\n")
    name = re.compile(rf"<(?:void )?[\w:]+(?:\(anonymous namespace\)::)?{re.escape(function)}\(")
    body = next(part for part in parts if name.search(part.split("\n")[0]))
    code = []
    for line in body.split("\n"):
        if found := re.match(r"\s*([0-9a-f]+):\s+(.*)", line):
            code.append((int(found[1], 16), re.sub(r"\s*(//|<|@).*", "", found[2]).strip()))
    place = {address: i for i, (address, _) in enumerate(code)}
    best, best_share = [], 0.0
    for end, (address, text) in enumerate(code):
        jump = re.match(r"b(?:\w\w)?(?:\.\w+)?\s+([0-9a-f]+)$", text)
        begin = place.get(int(jump[1], 16), end) if jump else end
        if begin >= end:
            continue
        loop = [text for _, text in code[begin : end + 1]]
        share = fmas(loop) / len(loop)
        if share > best_share:
            best, best_share = loop, share
    return best


def fmas(loop):
    products = ("fmla", "sdot", "vmla.f32\tq", *MATRICES)
    return sum(text.startswith(products) for text in loop)


def stack_accesses(loop):
    return sum("[sp" in text for text in loop)


def cycles(loop, core, mca):
    """Cycles of one iteration, or None where the core lacks an instruction; branches are left out,
    since llvm-mca predicts none."""
    if core == "neoverse-n1" and any(text.startswith(MATRICES) for text in loop):
        return None
    lines = [text for text in loop if not re.match(r"b(\.\w+)?\s", text)]
    command = [mca, "-mtriple=aarch64", f"-mcpu={core}", "-iterations=1000"]
    done = subprocess.run(
        command, input="\n".join(lines), check=True, capture_output=True, text=True
    )
    return int(re.search(r"Total Cycles:\s+(\d+)", done.stdout)[1]) / 1000


def table(loops, cores, directory, mca, sve=False):
    print("| loop | FMAs | instructions per FMA | accesses to the stack |", end="")
    print("".join(f" {core}: cycles | share |" for core in cores))
    print("|---|---|---|---|" + "---|---|" * len(cores))
    for name, source, function in loops:
        loop = inner_loop(compile_kernel(source, directory, sve), function)
        n = fmas(loop)
        print(f"| {name} | {n} | {len(loop) / n:.2f} | {stack_accesses(loop)} |", end="")
        for core, limit in cores.items():
            took = cycles(loop, core, mca)
            print(f" {took:.2f} | {n / limit / took:.2f} |" if took else " - | - |", end="")
        print()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mca", default="llvm-mca-19")
    mca = parser.parse_args().mca
    print("# 64-bit ARM: inner loops by llvm-mca\n")
    print("No hardware was measured. `bench/mca.py` compiles the kernels with gcc 12's cross")
    print("compiler, takes the innermost loops out of the disassembly, and asks llvm-mca for their")
    print("cycles with all data in the first-level cache. The share is that of the core's FMA")
    print("limit: 2 FMAs of 128 bits per cycle on Neoverse N1 and N2, 4 on V1; as many BFMMLA of")
    print("16 products and USMMLA of 32 on N2 and V1, and none on N1. Cortex-A76 has N1's")
    print("pipelines; llvm's own model of it is that of Cortex-A57 and says nothing.")
    print("`structure.aarch64` fails if a loop accesses the stack or takes more than 2")
    print("instructions per FMA; 3 with SVE, whose FMAs have no factor in a lane of a register, so")
    print("that each row's is loaded into all lanes.\n")
    with tempfile.TemporaryDirectory() as directory:
        table(LOOPS, CORES, directory, mca)
        print("\n## SVE with vectors of 256 bits\n")
        print(
            "Neoverse V1 begins two FMAs per cycle, which do as much as four of NEON: the limit is"
        )
        print("the same, with half of the instructions.\n")
        table(SVE_LOOPS, SVE_CORES, directory, mca, sve=True)


if __name__ == "__main__":
    main()
