"""All generated files of bindings/rust."""
from codegen.rust import callbacks as rust_callbacks
from codegen.rust import classes as rust_classes
from codegen.rust import handles as rust_handles
from codegen.rust import operators as rust_operators
from codegen.rust import ops as rust_ops
from codegen.rust import rows as rust_rows
from codegen.rust import sys_crate as rust_sys


def generate(ops, groups, api, files):
    """files: what has been generated so far, headers among them."""
    headers = "".join(text for path, text in files.items() if path.startswith("include/"))
    callbacks = rust_callbacks.callbacks(api)
    return (
        rust_sys.generate(api)
        | rust_ops.generate(ops, groups, api)
        | rust_operators.generate(ops)
        | rust_classes.generate(groups)
        | rust_rows.generate(api)
        | rust_callbacks.generate(api)
        | rust_handles.generate(api, headers, callbacks)
    )
