"""The generated pages of docs/."""
from codegen.docs import bindings, operators, reference


def generate(ops, groups, api, files, root):
    found = bindings.definitions(root, files)
    table = bindings.names_of(root, api, found)
    made = operators.generate(ops, root) | bindings.generate(root, api, files, found, table)
    return made | reference.generate(ops, groups, table, root)
