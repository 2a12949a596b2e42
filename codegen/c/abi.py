"""src/ops/abi.lock: names, argument positions, option bits and enum values. Only appending is
allowed."""
from codegen.c import classes
from codegen.c.ops import exported
from codegen.model.schema import ENUMS, DeclError

LOCK = "src/ops/abi.lock"


def rows(ops, groups):
    for name, params, _ in exported(ops):
        yield f"fn {name}({', '.join(params)})"
    for op in ops.values():
        if not op.internal and not op.scalar_of:
            for k, a in enumerate(op.options):
                yield f"bit {op.name} {k} {a.name}: {a.type}"
    for name, params, cls in classes.exported(groups):
        yield f"fn {name}({', '.join(params)})"
        for k, a in enumerate(cls.options):
            yield f"bit {cls.name} {k} {a.name}: {a.type}"
    for name, values in ENUMS.items():
        for v, n in values.items():
            yield f"enum {name} {v} = {n}"


def merged(old, now):
    """Appends new rows to the lock. Raises if a row was removed or changed."""
    gone = [line for line in old if line not in set(now)]
    if gone:
        raise DeclError(
            f"the ABI may only grow; these rows of {LOCK} are gone or changed:\n  "
            + "\n  ".join(gone)
        )
    return old + [line for line in now if line not in set(old)]


def generate(ops, groups, root):
    old = (root / LOCK).read_text().splitlines()
    return {LOCK: "\n".join(merged(old, list(rows(ops, groups)))) + "\n"}
