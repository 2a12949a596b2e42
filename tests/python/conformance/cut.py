"""Copies the case files whose calls all exist, and writes ops.txt, the list of those that count.

    python cut.py CONFORMANCE/cases/ops
"""
import shutil
import sys
from pathlib import Path

from ttcase import Missing, Subject, load

HERE = Path(__file__).resolve().parent


def exists(subject, path):
    for case in load(path)[0]:
        owner, _, name = case["call"].rpartition(".")
        if owner == "Tensor" and not any(name in c.__dict__ for c in subject.Tensor.__mro__):
            return False  # type's own, as __ror__
        try:
            subject.resolve(case["call"])
        except Missing:
            return False
    return True


def main(source):
    subject, target = Subject(), HERE / "cases/ops"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    found = [p for p in sorted(source.glob("*.safetensors")) if exists(subject, p)]
    for path in found:
        shutil.copyfile(path, target / path.name)
    (HERE / "ops.txt").write_text("".join(p.name[:-len(".safetensors")] + "\n" for p in found))
    print(f"{len(found)} case files")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
