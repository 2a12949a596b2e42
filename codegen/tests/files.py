"""Generated tables of the tests: operators and their samples, hostile calls, layouts."""
from codegen.tests import abi_dump, class_rows, rows, samples


def generate(ops, groups, api, root):
    files = rows.generate(ops, groups) | abi_dump.generate(api)
    files |= class_rows.generate(ops, groups)
    return files | samples.generate(root, ops)
