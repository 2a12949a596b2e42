#!/usr/bin/env python3
"""Generates everything that follows from the declarations of operators (src/ops/decl/*.toml) and classes (src/*/decl/*.toml).

    gen.py            writes the generated files
    gen.py --check    exit 1 if one of them is stale, or if src/ops/abi.lock would change other than by appending
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from genlib import abi, autograd, bindings, buildlist, capi, cheader, classes, cpp, julia_files, manifest, modules, operators_md, python_abi, python_callbacks, python_files, python_handles, python_operators, python_stubs, python_types, python_values, rows, rust_files  # noqa: E402
from genlib.schema import load  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]


def main():
    check = "--check" in sys.argv[1:]
    ops = load(Path(__file__).resolve().parent / "decl", ROOT)
    files = {}
    for module in (cpp, autograd, capi, manifest, python_files, python_operators):
        files |= module.generate(ops)
    groups = classes.load_classes(ROOT)
    files |= classes.generate(groups)
    files |= modules.generate(ops, groups)
    files |= rows.generate(ops, groups)
    files |= abi.generate(ops, groups, ROOT)
    api = cheader.load(ROOT, files)
    files |= cheader.generate(api)
    files |= python_abi.generate(api)
    files |= python_types.generate(api)
    files |= python_callbacks.generate(api)
    files |= python_values.generate(api)
    files |= python_handles.generate(ROOT, api, "".join(text for path, text in files.items() if path.startswith("include/")))
    files |= rust_files.generate(ops, groups, api, files)
    files |= buildlist.generate(files, api)
    files |= julia_files.generate(ops, groups, api)
    files |= operators_md.generate(ops, ROOT)
    files |= python_stubs.generate(ops, groups, files, ROOT)
    files |= bindings.generate(ROOT, api, files)
    stale = [path for path, text in files.items() if not (ROOT / path).exists() or (ROOT / path).read_text() != text]
    if check:
        known = set(files)
        for folder in ("src/gen", "bindings/python/tt/_ops", "bindings/rust/tt/src/gen", "bindings/julia/src/gen"):
            stale += [str(f.relative_to(ROOT)) for f in (ROOT / folder).glob("*.*") if str(f.relative_to(ROOT)) not in known and f.name != "README.md"]
        for path in stale:
            print(f"stale: {path} (run ./dev gen)")
        return 1 if stale else 0
    for path in stale:
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(files[path])
    print(f"{len(ops)} operators, {len(files)} files, {len(stale)} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
