"""Rows of the op-table test and of the hostile-argument test."""


def generate(ops):
    return {}
