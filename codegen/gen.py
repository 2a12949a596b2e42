#!/usr/bin/env python3
"""Generates everything that follows from the declarations and from the public headers.

Declarations: operators (src/ops/decl/*.toml), classes (src/nn/decl, src/optim/decl).

    gen.py            writes the generated files
    gen.py --check    exits with 1 if one of them is stale, or if src/ops/abi.lock would change
                      other than by appending
"""
import gc
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[0] = str(ROOT)

from codegen.c import classes  # noqa: E402
from codegen.c import files as c  # noqa: E402
from codegen.cxx import files as cxx  # noqa: E402
from codegen.docs import files as docs  # noqa: E402
from codegen.julia import files as julia  # noqa: E402
from codegen.model import columns, headers, overrides, schema  # noqa: E402
from codegen.python import files as python  # noqa: E402
from codegen.rust import files as rust  # noqa: E402
from codegen.tests import files as tests  # noqa: E402

# Folders that contain only generated files and these.
BY_HAND = {"README.md", "__init__.py"}
GENERATED_FOLDERS = (
    "src/plan/gen",
    "src/ops/gen",
    "src/autograd/gen",
    "src/nn/gen",
    "src/optim/gen",
    "src/capi/gen",
    "kernels/functors/gen",
    "docs/reference",
    "tests/gen",
    "bindings/python/tt/_ops",
    "bindings/rust/tt/src/gen",
    "bindings/julia/src/gen",
)


def generate():
    """Path -> text of every generated file."""
    ops = schema.load(ROOT / "src/ops/decl", ROOT)
    overrides.load(ROOT, ops)
    groups = classes.load_classes(ROOT)
    files = cxx.generate(ops, groups, ROOT)
    files |= c.generate(ops, groups, ROOT)
    api = headers.load(ROOT, files)
    files |= tests.generate(ops, groups, api, ROOT)
    files |= python.generate(ops, groups, api, files, ROOT)
    files |= rust.generate(ops, groups, api, ROOT)
    files |= julia.generate(ops, groups, api, ROOT)
    files |= cxx.generate_build_lists(files, api)
    files |= docs.generate(ops, groups, api, files, ROOT)
    return {path: columns.wrap(path, text) for path, text in files.items()}


def is_current(path, text):
    return (ROOT / path).exists() and (ROOT / path).read_text() == text


def leftovers(files):
    """Files in generated folders that are not generated any more."""
    for folder in GENERATED_FOLDERS:
        for file in sorted((ROOT / folder).glob("*.*")):
            path = str(file.relative_to(ROOT))
            if path not in files and file.name not in BY_HAND:
                yield path


def main():
    gc.disable()  # which would look through syntax trees for a fifth of the time
    files = generate()
    stale = [path for path, text in files.items() if not is_current(path, text)]
    gone = list(leftovers(files))
    if "--check" in sys.argv[1:]:
        for path in stale + gone:
            print(f"stale: {path} (run ./dev gen)")
        return 1 if stale or gone else 0
    for path in stale:
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(files[path])
    for path in gone:
        (ROOT / path).unlink()
    print(f"{len(files)} files, {len(stale)} written, {len(gone)} removed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
