"""Everything generated of the Julia binding: bindings/julia/src/gen."""
from codegen.julia import ops as julia
from codegen.julia import c as julia_c
from codegen.julia import callbacks as julia_callbacks
from codegen.julia import classes as julia_classes
from codegen.julia import handles as julia_handles


def generate(ops, groups, api, root):
    return (
        julia_c.generate(api)
        | julia.generate(ops)
        | julia_classes.generate(groups)
        | julia_callbacks.generate(api)
        | julia_handles.generate(api, root)
    )
