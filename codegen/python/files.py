"""All generated files of bindings/python."""
from codegen.python import (
    abi,
    callbacks,
    classes,
    families,
    handles,
    hints,
    operators,
    types,
    values,
)


def generate(ops, groups, api, files, root):
    """files: what has been generated so far."""
    made = (
        families.generate(ops) | operators.generate(ops) | abi.generate(api) | types.generate(api)
    )
    made |= callbacks.generate(api) | values.generate(api) | handles.generate(root, api)
    made |= classes.generate(groups, root)
    return made | hints.generate(ops)
