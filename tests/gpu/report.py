"""report.py OUT: the report of run.sh in Markdown, from its logs."""
import json
import sys
from pathlib import Path


def numbers(path):
    """The lines of JSON of a step, as one dict; empty if it did not run."""
    found = {}
    if path.exists():
        for line in path.read_text().splitlines():
            found.update(json.loads(line))
    return found


def main(out):
    probe, tt, torch = (numbers(out / f"{name}.json") for name in ("probe", "bench", "torch"))
    print("# tt on a GPU\n")
    if not probe:
        print("No device was measured: times, if there are any, are those of the emulation.\n")
    for name, value in probe.items():
        print(f"- {name}: {value}")
    print("\n## Steps\n\n| step | result |\n|---|---|")
    for line in (out / "steps.txt").read_text().splitlines():
        print("| {} | {} |".format(*line.split("\t", 1)))
    if not tt:
        return
    print("\n## Times, microseconds\n\n| | tt | PyTorch | PyTorch / tt |\n|---|---|---|---|")
    for name, own in tt.items():
        other = torch.get(name)
        ratio = f"{other / own:.2f}" if other and own else ""
        print(f"| {name} | {own} | {'' if other is None else other} | {ratio} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
