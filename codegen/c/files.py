"""The C ABI: headers, exported functions, abi.lock."""
from codegen.c import abi, classes, ops as operators


def generate(ops, groups, root):
    return operators.generate(ops) | classes.generate(groups) | abi.generate(ops, groups, root)
