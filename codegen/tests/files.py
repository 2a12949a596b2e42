"""Rows of the tests: operators and their samples, hostile calls, layouts."""
from codegen.model import headers
from codegen.tests import rows, samples


def generate(ops, groups, api, root):
    files = rows.generate(ops, groups) | headers.generate(api)
    return files | samples.generate(root, ops)
