"""Runs the programs of TT_PROFILE=minimal under qemu, compares what they need with the limits, and
prints sizes as Markdown: check.py BUILD. `./dev bare` builds and calls it."""
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
QEMU = "qemu-system-arm -M mps2-an500 -nographic -semihosting -kernel".split()
LIMITS = {"infer": 160, "train": 320}  # kB of flash beside libc and libm, at most
ALLOWED = set((HERE / "undefined.txt").read_text().split())
# Where bytes of flash come from: (name, pattern of the input section, pattern of the archive).
PARTS = [
    ("kernels", r"8baseline", "libtt.a"),
    ("autograd", r"tt\d*\w*(_apply|_autograd|backward|Node|engine)", "libtt.a"),
    ("unwind tables", r"^\.ARM\.ex", ""),
    ("other of tt", "", "libtt.a"),
    ("C++ runtime and unwinder", "", r"libstdc\+\+|libsupc\+\+|libgcc"),
    ("libc and libm", "", r"libc_nano|libc\.a|libm\.a|libg"),
    ("program", "", ""),
]


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def undefined(library):
    """Names that the library leaves to libc, libm, libstdc++ and the board."""
    needed, defined = set(), set()
    for line in run("arm-none-eabi-nm", library).split("\n"):
        if found := re.match(r"\w* +(\w) (\S+)$", line):
            (needed if found[1] in "Uw" else defined).add(found[2])
    return needed - defined


def flash(link_map):
    """Bytes of flash by part, from the linker's map."""
    text = pathlib.Path(link_map).read_text()
    text = text[text.index("Linker script and memory map") :]
    sizes = {name: 0 for name, _, _ in PARTS}
    pattern = r"^ (\.[\w.$]+)\s+0x([0-9a-f]+)\s+0x([0-9a-f]+) (\S+)$"
    for section, address, size, file in re.findall(pattern, text, re.M):
        stored = section.startswith(".data")
        if int(address, 16) >= 0x20000000 and not stored or section.startswith(".debug"):
            continue
        for name, in_section, in_file in PARTS:
            if re.search(in_section, section) and re.search(in_file, file):
                sizes[name] += int(size, 16)
                break
    return sizes


def report(build, name):
    program = f"{build}/examples/bare/bare_{name}"
    done = subprocess.run(
        [*QEMU, program],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    print(done.stdout, end="", file=sys.stderr)
    assert done.returncode == 0, f"{name}: exit status {done.returncode}: {done.stdout}"
    numbers = {word: int(n) for word, n in re.findall(r"(heap|stack) (\d+)", done.stdout)}
    text, data, bss = map(int, run("arm-none-eabi-size", program).split("\n")[1].split()[:3])
    return text + data, data + bss, numbers, flash(f"{build}/examples/bare/bare_{name}.map")


def main(build):
    extra = undefined(f"{build}/libtt.a") - ALLOWED
    assert not extra, f"libtt.a needs symbols that undefined.txt does not list: {sorted(extra)}"
    rows = {name: report(build, name) for name in LIMITS}
    for name, limit in LIMITS.items():
        used = rows[name][0] - rows[name][3]["libc and libm"]
        assert used <= limit * 1000, f"{name}: {used} bytes of flash, more than {limit} kB"
    print("| bytes | " + " | ".join(rows) + " |\n|---|" + "---|" * len(rows))
    lines = {
        "flash": [row[0] for row in rows.values()],
        "flash beside libc and libm": [row[0] - row[3]["libc and libm"] for row in rows.values()],
        "the limit": [LIMITS[name] * 1000 for name in rows],
        "static RAM": [row[1] for row in rows.values()],
        "heap": [row[2]["heap"] for row in rows.values()],
        "stack": [row[2]["stack"] for row in rows.values()],
    }
    for part, _, _ in PARTS:
        lines[f"flash: {part}"] = [row[3][part] for row in rows.values()]
    for name, values in lines.items():
        print(f"| {name} | " + " | ".join(f"{value:,}" for value in values) + " |")


if __name__ == "__main__":
    main(sys.argv[1])
