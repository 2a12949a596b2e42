"""All generated files of bindings/rust."""
from . import rust_callbacks, rust_classes, rust_handles, rust_ops, rust_rows, rust_sys


def generate(ops, groups, api, files):
    """files: what has been generated so far, headers among them."""
    headers = "".join(text for path, text in files.items() if path.startswith("include/"))
    callbacks = rust_callbacks.callbacks(api)
    return (rust_sys.generate(api) | rust_ops.generate(ops, groups, api) | rust_classes.generate(groups) | rust_rows.generate(api)
            | rust_callbacks.generate(api) | rust_handles.generate(api, headers, callbacks))
