"""Copies the case files whose calls all exist, and writes ops.txt, the list of those that count,
and missing.txt, the calls that tt lacks.

    python cut.py CONFORMANCE/cases/ops
"""
import shutil
import sys
from pathlib import Path

from ttcase import Missing, Subject, load

HERE = Path(__file__).resolve().parent


def there(subject, call):
    owner, _, name = call.rpartition(".")
    if owner == "Tensor" and not any(name in c.__dict__ for c in subject.Tensor.__mro__):
        return False  # type's own, as __ror__
    try:
        subject.resolve(call)
    except Missing:
        return False
    return True


def main(source):
    subject, target = Subject(), HERE / "cases/ops"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    calls = {p: {case["call"] for case in load(p)[0]} for p in sorted(source.glob("*.safetensors"))}
    lacking = sorted({c for names in calls.values() for c in names if not there(subject, c)})
    found = [p for p, names in calls.items() if not names & set(lacking)]
    (HERE / "missing.txt").write_text("".join(f"{c}\n" for c in lacking))
    for path in found:
        shutil.copyfile(path, target / path.name)
    (HERE / "ops.txt").write_text("".join(p.name[: -len(".safetensors")] + "\n" for p in found))
    print(f"{len(found)} case files; {len(lacking)} calls are missing")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
