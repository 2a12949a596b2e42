"""Rows of the tests: operators and their samples, hostile calls, layouts."""
from codegen.model import headers
from codegen.tests import class_rows, rows, samples


def generate(ops, groups, api, root):
    files = rows.generate(ops, groups) | headers.generate(api)
    files |= class_rows.generate(ops, groups)
    return files | samples.generate(root, ops)
