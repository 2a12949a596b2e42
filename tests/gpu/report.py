"""report.py OUT: the report of run.sh in Markdown, from its logs.

A row of bench.json and steps.json is {"us", "group", "bytes", "flops"}, one of torch*.json is
microseconds, null where it failed. The share of the ceiling is that of the copy bandwidth which the
probe has measured, or of the best matrix product in this run, tt's or PyTorch's."""
import json
import sys
from pathlib import Path

GATES = {  # group -> least PyTorch / tt, least share of the ceiling
    "tiny add": (1 / 0.6, 0),
    "pointwise": (1.0, 0.92),
    "copy": (1.0, 0),
    "random": (1.0, 0),
    "reduction": (1.0, 0.90),
    "rows": (1.0, 0.85),
    "Adam": (1.0, 0.85),
    "matmul": (0.97, 0),
    "matmul f32": (0.97, 0),
    "matmul tf32": (0.97, 0),
    "attention": (0.95, 0),
    "step": (1.0, 0),
    "captured step": (1.0, 0),
}


# Further rows of PyTorch for one of tt: label, whether they decide about the gate.
OTHERS = {" (cuDNN)": True}
# A row of tt where sums may have any order, as those of PyTorch.
ANY_ORDER = " (any order)"


def numbers(path):
    """The lines of JSON of a step, as one dict; empty if it did not run."""
    found = {}
    if path.exists():
        for line in path.read_text().splitlines():
            try:
                found.update(json.loads(line))
            except ValueError:  # the step was stopped inside a line
                pass
    return found


def best_rates(tt, torch):
    """FLOP per microsecond of the best product of halves, of float32 and in TF32."""
    best = {}
    for name, row in tt.items():
        if row and row["group"].startswith("matmul"):
            for us in row["us"], torch.get(name):
                if us:
                    best[row["group"]] = max(best.get(row["group"], 0), row["flops"] / us)
    return best


def ceiling(row, bandwidth, best):
    """Microseconds that the row takes at the ceiling, or None."""
    if row.get("bytes") and bandwidth:
        return row["bytes"] / (bandwidth * 1e3)
    kind = row["group"].split(" ")[1:]  # of "conv f32": f32
    rate = best.get(" ".join(["matmul", *kind]))
    return row["flops"] / rate if row.get("flops") and rate else None


def peers(name, group, torch):
    """The lines of a row: label, PyTorch's microseconds, whether they decide about the gate."""
    peer = name.removesuffix(ANY_ORDER)
    yield name, torch.get(peer), group != "captured step"
    for other, decides in OTHERS.items():
        if f"{peer}{other}" in torch:
            yield f"{name}{other}", torch[f"{peer}{other}"], decides
    if group == "captured step":
        compiled = name.replace(", captured", ", compiled")
        yield f"{name}, beside torch.compile", torch.get(compiled), True


def verdict(group, ratio, share):
    """What the last column says: nothing for a row without a gate."""
    if group not in GATES:
        return ""
    least_ratio, least_share = GATES[group]
    if ratio is None or (least_share and share is None):
        return "not measured"
    misses = []
    if ratio < least_ratio:
        misses.append(f"{ratio:.2f} < {least_ratio:.2f} x PyTorch")
    if least_share and share < least_share:
        misses.append(f"{share:.2f} < {least_share:.2f} of the ceiling")
    return "**no**: " + ", ".join(misses) if misses else "yes"


def cell(number, digits):
    return "" if number is None else f"{number:.{digits}f}"


def lines(tt, torch, bandwidth):
    """The rows of the table, in the order of the measurements."""
    best = best_rates(tt, torch)
    for name, row in tt.items():
        if row is None:
            yield name, "failed", cell(torch.get(name), 2), "", "", "**no**: failed"
            continue
        floor = ceiling(row, bandwidth, best)
        share = floor / row["us"] if floor else None
        for label, other, decides in peers(name, row["group"], torch):
            ratio = other / row["us"] if other else None
            gate = verdict(row["group"], ratio, share) if decides else ""
            yield (label, cell(row["us"], 2), cell(other, 2), cell(ratio, 2), cell(share, 2), gate)
    for name, other in torch.items():
        if not any(name.removesuffix(label) in tt for label in OTHERS):
            yield name, "not measured", cell(other, 2), "", "", "not measured"


def table(tt, torch, probe):
    rows = list(lines(tt, torch, probe.get("copy, GB/s")))
    verdicts = [row[-1] for row in rows if row[-1]]
    print("\n## Times, microseconds\n")
    print(f"Gates met: {verdicts.count('yes')} of {len(verdicts)}.\n")
    for group, rate in best_rates(tt, torch).items():
        print(f"Best product, {group}: {rate / 1e6:.1f} TFLOP/s.\n")
    print(
        "| | tt | PyTorch | PyTorch / tt | share of ceiling | gate met |\n|---|---|---|---|---|---|"
    )
    for row in rows:
        print("| {} |".format(" | ".join(row)))


# Steps whose words decide something, also where they pass.
TOLD = ("wgmma", "sdpa", "kernel_times")


def words(out, steps):
    """The ends of the logs of steps that failed or decide something."""
    for name, result in steps:
        log = out / f"{name}.log"
        if log.exists() and (name in TOLD or "FAILED" in result):
            yield f"\n## {name}\n\n```"
            yield from log.read_text(errors="replace").splitlines()[-80:]
            yield "```"


def main(out):
    probe = numbers(out / "probe.json")
    tt = numbers(out / "bench.json") | numbers(out / "steps.json")
    torch = {}
    for step in ("torch", "torch_steps", "torch_compiled"):
        torch |= numbers(out / f"{step}.json")
    print("# tt on a GPU\n")
    if not probe:
        print("No device was measured: times, if there are any, are those of the emulation.\n")
    for name, value in probe.items():
        print(f"- {name}: {value}")
    print("\n## Steps\n\n| step | result |\n|---|---|")
    steps = [line.split("\t", 1) for line in (out / "steps.txt").read_text().splitlines()]
    for name, result in steps:
        print(f"| {name} | {result} |")
    if tt:
        table(tt, torch, probe)
    print("\n".join(words(out, steps)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
