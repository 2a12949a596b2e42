"""Copies the case files whose calls all exist, and writes ops.txt, the list of those that count.

    python cut.py CONFORMANCE/cases/ops
"""
import shutil
import sys
from pathlib import Path

from ttcase import Missing, Subject, load

HERE = Path(__file__).resolve().parent


def exists(subject, path):
    try:
        for case in load(path)[0]:
            subject.resolve(case["call"])
    except Missing:
        return False
    return True


def main(source):
    subject, target = Subject(), HERE / "cases/ops"
    target.mkdir(parents=True, exist_ok=True)
    found = [p for p in sorted(source.glob("*.safetensors")) if exists(subject, p)]
    for path in found:
        shutil.copyfile(path, target / path.name)
    (HERE / "ops.txt").write_text("".join(p.name[:-len(".safetensors")] + "\n" for p in found))
    print(f"{len(found)} case files")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
