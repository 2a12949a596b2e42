"""The generated part of the Python binding: bindings/python/tt/_ops.py."""


def generate(ops):
    return {}
