"""Rows of the tests: operators, hostile calls, layouts."""
from codegen.model import headers
from codegen.tests import rows


def generate(ops, groups, api):
    return rows.generate(ops, groups) | headers.generate(api)
