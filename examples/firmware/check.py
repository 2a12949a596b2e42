"""Trains the digits network, exports it to C in 8-bit integers, runs it on a Cortex-M under qemu,
and prints what it needs as Markdown: check.py BUILD. `./dev firmware` builds and calls it."""
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
BARE = HERE.parent / "bare"
CC = ["arm-none-eabi-gcc", "-std=c99", "-mthumb", "-Wall", "-Wextra", "-Werror"]
CPUS = {
    "Cortex-M4": ("mps2-an386", "-mcpu=cortex-m4 -mfloat-abi=hard -mfpu=fpv4-sp-d16"),
    "Cortex-M7": ("mps2-an500", "-mcpu=cortex-m7 -mfloat-abi=hard -mfpu=fpv5-sp-d16"),
}
LEVELS = ["-Os", "-O2"]
# Bytes: of code of the small network, of code and weights of digits, of its static memory.
LIMITS = {"mlp": 3000, "digits": 12000, "ram": 16000}
TICK = 40  # instructions: -icount shift=0 makes each 1 ns long, and the clock has 25 MHz


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def sizes(path):
    """Bytes of code, constants and zeroed memory of an object file."""
    found = {"text": 0, "rodata": 0, "bss": 0}
    for line in run("arm-none-eabi-size", "-A", path).split("\n"):
        if parts := re.match(r"\.(text|rodata|bss)\S*\s+(\d+)", line):
            found[parts[1]] += int(parts[2])
    return found


def compile_models(options, folder):
    """Returns the object file of each exported model."""
    made = {}
    for name in ("digits", "digits_f32", "mlp", "mlp_f32"):
        made[name] = folder / f"{name}.o"
        run(*options, "-c", folder / f"{name}.c", "-o", made[name])
    return made


def run_program(machine, program):
    """Returns the ticks, the bytes of the arena and those of the stack that the program reports."""
    command = f"qemu-system-arm -M {machine} -nographic -semihosting -icount shift=0 -kernel"
    done = subprocess.run(
        [*command.split(), program],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    print(done.stdout, end="", file=sys.stderr)
    assert done.returncode == 0, done.stdout
    found = re.search(r"ticks (\d+) arena (\d+) stack (\d+)", done.stdout)
    return map(int, found.groups())


def check_limits(models, stack):
    assert models["mlp"]["text"] <= LIMITS["mlp"], models
    digits = models["digits"]
    assert digits["text"] + digits["rodata"] <= LIMITS["digits"], models
    assert digits["bss"] + stack <= LIMITS["ram"], (digits, stack)


def print_table(rows):
    print(
        "| processor | | digits int8: code | weights | arena | stack | program | instructions |"
        " digits f32: code | weights | mlp int8: code | weights | mlp f32: code | weights |"
    )
    print("|---" * 14 + "|")
    for cpu, level, models, arena, stack, flash, instructions in rows:
        digits = models["digits"]
        cells = [cpu, level, digits["text"], digits["rodata"], arena, stack, flash, instructions]
        for name in ("digits_f32", "mlp", "mlp_f32"):
            cells += [models[name]["text"], models[name]["rodata"]]
        print("| " + " | ".join(f"{c:,}" if isinstance(c, int) else c for c in cells) + " |")


def main(build):
    build = pathlib.Path(build)
    folder = build / "firmware"
    folder.mkdir(exist_ok=True)
    checkpoint, curve = folder / "digits.safetensors", folder / "loss.svg"
    run(build / "examples/train_digits", "--checkpoint", checkpoint, "--svg", curve)
    accuracy = run(build / "examples/firmware_model", checkpoint, folder)
    print(accuracy, end="", file=sys.stderr)
    n, in_float, in_int8 = map(int, re.findall(r"\d+(?=:|,|$)", accuracy, re.M))
    assert 100 * (in_float - in_int8) / n <= 0.3, accuracy
    rows = []
    for cpu, (machine, flags) in CPUS.items():
        for level in LEVELS:
            options = [*CC, *flags.split(), level, "-ffunction-sections", "-I", folder]
            made = compile_models(options, folder)
            program = folder / "firmware.elf"
            script = BARE / "mps2-an500.ld"
            files = [HERE / "main.c", BARE / "board.c", made["digits"]]
            link = ["-nostartfiles", "-Wl,--gc-sections", "--specs=nosys.specs", "-T", script]
            run(*options, *files, *link, "-o", program, "-lm")
            ticks, arena, stack = run_program(machine, program)
            flash = int(run("arm-none-eabi-size", program).split("\n")[1].split()[0])
            models = {name: sizes(path) for name, path in made.items()}
            rows.append((cpu, level, models, arena, stack, flash, ticks * TICK))
            if level == "-Os":
                check_limits(models, stack)
    print_table(rows)


if __name__ == "__main__":
    main(sys.argv[1])
