"""Pages of docs/ that follow from the declarations."""
from codegen.docs import bindings, operators


def generate(ops, api, files, root):
    return operators.generate(ops, root) | bindings.generate(root, api, files)
