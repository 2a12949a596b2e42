"""Everything generated of the Julia binding: bindings/julia/src/gen."""
from . import julia, julia_c, julia_callbacks, julia_classes, julia_handles


def generate(ops, groups, api):
    return julia_c.generate(api) | julia.generate(ops) | julia_classes.generate(groups) | julia_callbacks.generate(api) | julia_handles.generate(api)
