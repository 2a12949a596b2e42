"""All generated files of bindings/rust."""
from codegen.model import functions as model_functions
from codegen.rust import callbacks as rust_callbacks
from codegen.rust import classes as rust_classes
from codegen.rust import handles as rust_handles
from codegen.rust import operators as rust_operators
from codegen.rust import ops as rust_ops
from codegen.rust import rows as rust_rows
from codegen.rust import sys_crate as rust_sys


def generate(ops, groups, api, root):
    functions = model_functions.load(root, "rust", api)
    callbacks = rust_callbacks.callbacks(api)
    return (
        rust_sys.generate(api)
        | rust_ops.generate(ops, groups, api)
        | rust_operators.generate(ops)
        | rust_classes.generate(groups)
        | rust_rows.generate(api)
        | rust_callbacks.generate(api)
        | rust_handles.generate(api, callbacks, functions)
    )
