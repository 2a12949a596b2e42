"""conformance.py HERE OUT SECONDS: the op table and the C programs on the device that
TT_TEST_DEVICE names, several at once.

Operators run in groups, each group in a process of its own. Those that failed or never ran, since
one before them lost the device or took too long, run once more alone. OUT gets a log of each that
fails, OUT/operators.txt the result of every one.
"""
import concurrent.futures
import os
import re
import subprocess
import sys
import time
from pathlib import Path

GROUP = 12
GROUP_SECONDS, ALONE_SECONDS = 60, 30


def run(command, seconds):
    """The status of a command and what it wrote; the status of one that takes too long is 124."""
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds, check=False
        )
        return done.returncode, done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired as stopped:
        return 124, (stopped.stdout or b"").decode(errors="replace")


def last_words(text):
    """The line that says most about a failure."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"device:|: |error", line)]
    plain = [line for line in telling if not re.match(r"\[|error: Failure", line)]
    return (plain or lines or ["no output"])[0][:300]


class Conformance:
    def __init__(self, here, out, seconds):
        self.bin = here / "bin"
        self.out = out / "failed"
        self.out.mkdir(parents=True, exist_ok=True)
        self.end = time.monotonic() + seconds
        self.pool = concurrent.futures.ThreadPoolExecutor(max(2, (os.cpu_count() or 2) - 1))

    def left(self, most):
        return max(1.0, min(most, self.end - time.monotonic()))

    def passed(self, group):
        """The operators of a group that passed."""
        _, text = run([self.bin / "op_table_test", *group], self.left(GROUP_SECONDS))
        return set(re.findall(r"^\[ +OK \] (\w+)", text, re.M))

    def alone(self, program, *arguments):
        """How a program fails; None if it passes."""
        if time.monotonic() > self.end:
            return "no time was left"
        status, text = run([self.bin / program, *arguments], self.left(ALONE_SECONDS))
        if status == 0:
            return None
        (self.out / f"{'_'.join((program, *arguments))}.log").write_text(text[-20000:])
        return f"({status}) {last_words(text)}"

    def operators(self):
        """{operator: how it fails, None if it passes}"""
        _, text = run([self.bin / "op_table_test", "--names"], 10)
        names = text.split()
        # neighbours belong together and take equally long: they go to different groups
        n_groups = -(-len(names) // GROUP)
        groups = [names[k::n_groups] for k in range(n_groups)]
        good = set().union(*self.pool.map(self.passed, groups))
        again = [name for name in names if name not in good]
        failures = self.pool.map(lambda name: self.alone("op_table_test", name), again)
        return {name: None for name in names if name in good} | dict(zip(again, failures))

    def programs(self):
        """{program: how it fails, None if it passes}"""
        names = sorted(path.name for path in self.bin.glob("*_test"))
        names.remove("op_table_test")
        return dict(zip(names, self.pool.map(self.alone, names)))


def main(here, out, seconds):
    tests = Conformance(here, out, seconds)
    programs = tests.programs()
    operators = tests.operators()
    with open(out / "operators.txt", "w", encoding="utf-8") as file:
        for name, failure in (programs | operators).items():
            file.write(f"{name}\t{failure or 'passed'}\n")
    failed, counts = 0, []
    for kind, results in (("programs", programs), ("operators", operators)):
        bad = {name: failure for name, failure in results.items() if failure}
        failed += len(bad)
        for name, failure in bad.items():
            print(f"{name}: {failure}")
        counts.append(f"{len(results) - len(bad)} of {len(results)} {kind}")
    print(" and ".join(counts), "passed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])))
