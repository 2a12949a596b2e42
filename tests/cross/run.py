#!/usr/bin/env python3
"""Builds tt for other targets and runs C tests and train_digits there: run.py TARGET|all [all]

TARGET is a file of cmake/toolchains, all is every one with an operating system. A part of the tests
runs, or, with a second `all`, every C test. A run that was stopped goes on where it was: what has
passed runs again only if the program or the library was built anew, or with --again.

The build (build-TARGET) is the Release build that `./dev release` packages. At the end of each
target is a table of its programs; logs and results are in build-TARGET/cross.
"""
import argparse
import concurrent.futures
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import logits
import macho

ROOT = Path(__file__).resolve().parents[2]
NO_SYSTEM = ("gnu-linux", "cortex-m7")  # a common part, and a target of ./dev bare
# Meets what targets differ in: sizes, atomics, threads, files, conversions, callbacks.
SAMPLE = """core image index live_objects random dlpack autograd in_place module nn safetensors
  torch_file threads loader poll reentrancy parallel_rows atomic_failure""".split()
OPERATORS = "add matmul conv2d softmax sum cumprod sort exp gelu svd fft layer_norm".split()
# On 64-bit ARM, tests of internals on processors with less and more than the baseline.
SVE = "max,sve256=on"
PROCESSORS = {"aarch64": ("cortex-a72", "neoverse-n1", SVE)}
INTERNALS = ("int8_amx", "matmul")
OF_SVE = ("elementwise", "index_kernel")
GOOGLETEST = Path("/usr/src/googletest")  # without which tests/CMakeLists.txt builds none of them
EMULATED = ("aarch64", "armhf", "riscv64")
BITS_32 = ("armhf", "i686")
FUSED = ("aarch64",)  # products are fused there: training has bits of its own
X86_64 = ("mingw-w64", "musl")  # run the kernels of this machine's vector unit, too
NOT_RUN = ("macos",)  # nothing here runs its programs: the library is built and read
LIMIT = 1800  # seconds of processor time that a program may take, which others do not prolong
WAITING = 6  # times as many by the clock
IMPORTS = re.compile(r"(kernel32|ucrtbase|bcrypt|api-ms-win-(core-synch|crt)-.*)\.dll", re.I)
UNITS = 16  # of the last place, for the logits of x86-64's checkpoint


def skipped(target, name):
    """Why a test does not run on a target; None where it does."""
    if name == "op_export":
        return "compiles C by this machine's compiler"
    if name == "stack":
        return "its limits are those of gcc's frames on x86-64"
    if target in EMULATED and name in ("op_table.fake", "op_table.ext"):
        return "the same operators on the CPU run; the time of an emulator"
    return None


def targets():
    files = (ROOT / "cmake/toolchains").glob("*.cmake")
    return sorted(path.stem for path in files if path.stem not in NO_SYSTEM)


def output(*command):
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    return done.stdout


class Target:
    def __init__(self, name, args):
        self.name = name
        self.args = args
        self.build = ROOT / f"build-{name}"
        self.logs = self.build / "cross"
        self.results_path = self.logs / "results.json"
        self.rows = {}  # name: (result, seconds, note)
        self.running = set()
        self.commit = output("git", "describe", "--always", "--dirty").strip()

    def configure(self):
        """As cmake/release.py does, so that both share one build, with all instruction sets."""
        options = ["--toolchain", ROOT / f"cmake/toolchains/{self.name}.cmake"]
        if not (self.build / "CMakeCache.txt").exists() and shutil.which("ninja"):
            options += ["-G", "Ninja"]
        options += ["-DCMAKE_BUILD_TYPE=Release", "-UTT_ISAS", "-DTT_TESTS=ON"]
        subprocess.run(
            ["cmake", "-S", ROOT, "-B", self.build, *options], check=True, stdout=subprocess.DEVNULL
        )
        self.logs.mkdir(exist_ok=True)
        cache = (self.build / "CMakeCache.txt").read_text()
        emulator = re.search(r"^TT_EMULATOR:STRING=(.*)$", cache, re.M).group(1)
        self.emulator = [part for part in emulator.split(";") if part]
        if self.emulator == ["wine"]:  # makes its folder, which programs at once would do at once
            subprocess.run(
                ["wine", "wineboot"], check=True, env={**os.environ, "WINEDEBUG": "-all"}
            )

    def make(self):
        programs = ["c_tests"]
        if not self.args.whole:
            programs = [f"{name}_test" for name in [*SAMPLE, "op_table"]] + ["tt_fake"]
        if self.name in NOT_RUN:
            programs = []
        if self.processors():
            programs += [f"{name}_test" for name in INTERNALS + OF_SVE]
        command = ["cmake", "--build", self.build, "-j", str(self.args.jobs), "--target"]
        command += ["tt", "tt_static", "train_digits", "abi_dump", *programs]
        if (self.build / "build.ninja").exists():
            command += ["--", "-k", "0"]  # what can be built still runs
        start = time.monotonic()
        result = "passed" if subprocess.run(command).returncode == 0 else "failed"
        self.rows["build"] = (result, time.monotonic() - start, self.compiler())

    def compiler(self):
        files = sorted(self.build.glob("CMakeFiles/*/CMakeCXXCompiler.cmake"))
        text = files[-1].read_text()
        kind = re.search(r'CMAKE_CXX_COMPILER_ID "(.*)"', text).group(1)
        version = re.search(r'CMAKE_CXX_COMPILER_VERSION "(.*)"', text).group(1)
        return f"{kind} {version}"

    def tests(self):
        """(name, command, environment) of what shall run; fills in what shall not."""
        found = json.loads(output("ctest", "--test-dir", self.build, "--show-only=json-v1"))
        for test in found["tests"]:
            name = test["name"].removeprefix("c.")
            command = test.get("command", [])
            base = name.split(".")[0]
            if not test["name"].startswith("c.") or not command:
                continue
            environment = {}
            for item in test["properties"]:
                if item["name"] == "ENVIRONMENT":
                    environment = dict(pair.split("=", 1) for pair in item["value"])
            if environment.get("TT_TEST_ISA") == "sve256":
                environment["QEMU_CPU"] = SVE
            if self.args.whole:
                reason = skipped(self.name, name)
                if reason:
                    self.rows[name] = ("skipped", 0, reason)
                else:
                    yield name, command, environment
            elif name in SAMPLE:
                yield name, command, environment
            variants = ("op_table.baseline", "op_table.sve256", "op_table.neon")
            if name in variants and not self.args.whole:
                kernels = name.removeprefix("op_table").removesuffix(".baseline")
                for operator in OPERATORS:
                    yield f"op_table{kernels}:{operator}", [*command, operator], environment

        for processor in self.processors():
            for name in INTERNALS + (OF_SVE if processor == SVE else ()):
                command = [*self.emulator, str(self.build / f"tests/cpp/{name}_test")]
                environment = {"QEMU_CPU": processor, "TT_TEST_SHARE": "4"}
                yield f"cpp.{name}:{processor}", command, environment

    def processors(self):
        return PROCESSORS.get(self.name, ()) if GOOGLETEST.exists() else ()

    def stamp(self, command):
        """When the program and the libraries were built."""
        files = [Path(part) for part in command if part.startswith(str(self.build))]
        files += self.build.glob("libtt.*")
        return max((path.stat().st_mtime_ns for path in files if path.exists()), default=0)

    def run(self, name, command, environment, limit=None):
        """Runs a program in the emulator; returns its result and its log."""
        log = self.logs / f"{name.replace(':', '_')}.log"
        limit = limit or self.args.limit
        start = time.monotonic()
        with open(log, "w") as file:
            process = subprocess.Popen(
                command,
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd=ROOT,
                start_new_session=True,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5)),
                env={
                    **os.environ,
                    "WINEPATH": str(self.build),
                    "WINEDEBUG": "-all",
                    "TT_TEST_SHARE": str(self.args.share or self.default_share()),
                    **environment,
                },
            )
            self.running.add(process)
            try:
                code = process.wait(WAITING * limit)
                result = "passed" if code == 0 else "failed"
                note = "" if code == 0 else f"status {code}, {log.relative_to(ROOT)}"
                if code in (-signal.SIGXCPU, -signal.SIGKILL):
                    note = f"more than {limit} s of processor time"
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                result = "failed"
                note = f"more than {WAITING * limit} s"
            self.running.discard(process)
        text = log.read_text(errors="replace")
        left_out = re.findall(r"^(.*left out)$", text, re.M)
        if left_out and result == "passed":
            note = "; ".join(left_out)
        return result, time.monotonic() - start, note

    def default_share(self):
        return 16 if self.name in EMULATED else 4

    def run_tests(self):
        earlier = {}
        if self.results_path.exists() and not self.args.again:
            earlier = json.loads(self.results_path.read_text())
        share = self.args.share or self.default_share()
        done = dict(earlier)
        waiting = []
        for name, command, environment in self.tests():
            stamp = [self.stamp(command), share]
            old = earlier.get(name)
            if old and old["stamp"] == stamp and old["result"] == "passed":
                self.rows[name] = ("passed", old["seconds"], old["note"])
            else:
                waiting.append((name, command, environment, stamp))
        print(f"{self.name}: {len(waiting)} programs to run, {len(self.rows)} done", flush=True)
        pool = concurrent.futures.ThreadPoolExecutor(self.args.jobs)
        try:
            running = {pool.submit(self.run, *test[:3]): test for test in waiting}
            for future in concurrent.futures.as_completed(running):
                name, _, _, stamp = running[future]
                result, seconds, note = future.result()
                self.rows[name] = (result, seconds, note)
                print(f"{self.name}: {name} {result} {seconds:.0f} s {note}", flush=True)
                done[name] = {"result": result, "seconds": seconds, "note": note, "stamp": stamp}
                self.results_path.write_text(json.dumps(done, indent=1))
        finally:  # of a run that was stopped nothing goes on
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list(self.running):
                os.killpg(process.pid, signal.SIGKILL)

    def run_digits(self):
        """Logits of this machine's checkpoint, and after training: near, and equal.

        Training by the baseline's kernels, and on this processor by those of its vector unit.
        """
        digits = [*self.emulator, str(self.build / "examples/train_digits")]
        if not Path(digits[-1]).exists():
            digits[-1] += ".exe"
        training = ["--epochs", "4", "--svg", str(self.logs / "loss.svg")]
        parts = [
            ("evaluate", ["--isa", "1", "--evaluate", str(ROOT / "build/cross.pt")], UNITS),
            ("train", ["--isa", "1", *training], 0),
        ]
        if self.name in X86_64:
            parts.append(("vectors", training, 0))
        for name, options, units in parts:
            got = self.logs / f"{name}.bin"
            want = ROOT / f"build/{self.reference_of(name)}.bin"
            got.unlink(missing_ok=True)
            command = [*digits, *options, "--logits", str(got)]
            result, seconds, note = self.run(f"digits_{name}", command, {}, 4 * self.args.limit)
            if result == "passed":
                distance = logits.distance(want, got)
                note = "logits equal x86-64's" if distance == 0 else f"{distance:.1f} units apart"
                if name == "train" and self.name in FUSED:
                    log = (self.logs / "digits_train.log").read_text().splitlines()
                    note = f"products are fused, so not x86-64's bits; {log[-1]}"
                elif distance > units:
                    result = "failed"
            self.rows[f"train_digits: {name}"] = (result, seconds, note)

    def reference_of(self, part):
        """Windows has no tiles of AMX: nobody asks its system for them."""
        if part != "vectors":
            return "cross"
        return "cross_no_tiles" if self.name == "mingw-w64" else "cross_vectors"

    def check_imports(self):
        dump = output("x86_64-w64-mingw32-objdump", "-p", self.build / "libtt.dll")
        found = re.findall(r"DLL Name: (\S+)", dump)
        wrong = [name for name in found if not IMPORTS.fullmatch(name)]
        self.rows["imports of libtt.dll"] = ("failed" if wrong else "passed", 0, " ".join(found))

    def check_macos(self):
        """It is for 64-bit ARM, has every function, is signed, and needs the system alone."""
        library = macho.Library(self.build / "libtt.dylib")
        names = (ROOT / "src/capi/gen/exports.txt").read_text().split()
        missing = [name for name in names if f"_{name}" not in library.exports]
        oldest = ".".join(map(str, library.oldest_system))
        note = f"{len(names)} functions, {len(missing)} missing; macOS {oldest}; needs "
        note += " ".join(library.needs)
        right = library.processor == macho.ARM64 and library.is_signed and not missing
        right = right and library.needs == ["/usr/lib/libSystem.B.dylib"]
        right = right and library.name == "@rpath/libtt.0.dylib"
        self.rows["libtt.dylib"] = ("passed" if right else "failed", 0, note)

    def check_layouts(self):
        """The bindings' structs and constants, which this machine's tests compare with C's."""
        program = self.build / "tests/abi_dump"
        if not program.exists():
            program = program.with_suffix(".exe")
        result, seconds, note = self.run("abi", [*self.emulator, str(program)], {})
        if result == "passed":
            got = (self.logs / "abi.log").read_text().splitlines()
            want = output(ROOT / "build/tests/abi_dump").splitlines()
            note = f"{len(want)} sizes, offsets and constants are x86-64 Linux's"
            if got != want:
                other = sum(a != b for a, b in zip(got, want))
                result, note = "failed", f"{other} of {len(want)} are not x86-64 Linux's"
        self.rows["structs and constants"] = (result, seconds, note)

    def check_wheel(self):
        """The package for Windows; there is no Python that could load it here."""
        sys.path.insert(0, str(ROOT / "bindings/python"))
        import build_wheel

        os.environ["TT_LIBRARY"] = str(self.build / "libtt.dll")
        wheel = build_wheel.build_wheel(self.logs, {"platform": "win_amd64"})
        with zipfile.ZipFile(self.logs / wheel) as z:
            z.extract("tt/libtt.dll", self.logs)
        program = self.logs / "wheel.exe"
        compiler = "x86_64-w64-mingw32-gcc-posix"
        output(compiler, "-Wall", "-Werror", "-Iinclude", "-o", program, "tests/cross/wheel.c")
        names = ROOT / "src/capi/gen/exports.txt"
        command = [*self.emulator, program, self.logs / "tt/libtt.dll", names]
        result, seconds, note = self.run("wheel", [str(part) for part in command], {})
        text = " ".join((self.logs / "wheel.log").read_text(errors="replace").split())
        self.rows[wheel] = (result, seconds, note or f"{text}, a gradient is right")

    def count(self, result):
        programs = [row for name, row in self.rows.items() if name != "build"]
        return sum(row[0] == result for row in programs)

    def print_table(self):
        print(f"\n| {self.name}, {self.commit} | result | seconds | |\n|---|---|---|---|")
        for name, (result, seconds, note) in self.rows.items():
            print(f"| {name} | {result} | {seconds:.0f} | {note} |")
        print(flush=True)

    def all(self):
        try:
            self.configure()
            self.make()
            if self.name in NOT_RUN:
                self.check_macos()
                return
            self.run_tests()
            self.run_digits()
            if self.name not in BITS_32:
                self.check_layouts()
            if self.name == "mingw-w64":
                self.check_imports()
                self.check_wheel()
        except (OSError, subprocess.CalledProcessError, ValueError) as error:
            self.rows["run"] = ("failed", 0, str(error))
        finally:
            self.print_table()


def reference(jobs):
    """What train_digits computes on this machine: logits after 4 epochs without vector units, the
    checkpoint that gives them, and logits with vector units, with AMX's tiles and without."""
    build = ROOT / "build"
    command = ["cmake", "-S", ROOT, "-B", build]
    if not (build / "CMakeCache.txt").exists() and shutil.which("ninja"):
        command += ["-G", "Ninja"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    command = ["cmake", "--build", build, "-j", str(jobs), "--target", "train_digits", "abi_dump"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    train = [build / "examples/train_digits", "--epochs", "4", "--svg", build / "cross.svg"]
    baseline = ["--isa", "1", "--checkpoint", build / "cross.pt", "--logits", build / "cross.bin"]
    for options in (baseline, ["--logits", build / "cross_vectors.bin"]):
        subprocess.run([*train, *options], check=True, stdout=subprocess.PIPE)
    library = build / "cross_no_tiles.so"
    source = ROOT / "tests/cross/no_tiles.c"
    subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True)
    command = [*train, "--logits", build / "cross_no_tiles.bin"]
    environment = {**os.environ, "LD_PRELOAD": str(library)}
    subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target", choices=[*targets(), "all"])
    parser.add_argument("whole", nargs="?", choices=["all"], help="every C test")
    parser.add_argument(
        "--share",
        type=int,
        help="the longest tests run one of SHARE of their cases; 1 is all. By default 16 in an "
        "emulator of a processor, else 4",
    )
    parser.add_argument(
        "--limit", type=int, default=LIMIT, help="seconds of processor time a program may take"
    )
    parser.add_argument("--again", action="store_true", help="also what has passed")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    args.jobs = int(os.environ.get("TT_JOBS") or os.cpu_count())
    reference(args.jobs)
    done = [Target(name, args) for name in (targets() if args.target == "all" else [args.target])]
    for target in done:
        target.all()
    print("| target | compiler | passed | failed | skipped |\n|---|---|---|---|---|")
    for target in done:
        compiler = target.rows.get("build", ("", 0, ""))[2]
        counts = [target.count(result) for result in ("passed", "failed", "skipped")]
        print(f"| {target.name} | {compiler} | {counts[0]} | {counts[1]} | {counts[2]} |")
    sys.exit(any(row[0] == "failed" for target in done for row in target.rows.values()))


if __name__ == "__main__":
    main()
