"""Gives the models of op_onnx_test to onnx's checker and onnxruntime, and compares the results.

TT_ONNX_DIR=folder build/tests/op_table/op_onnx_test; python check_onnx.py folder
"""
import json
import pathlib
import struct
import sys

import numpy
import onnx
import onnxruntime

DTYPES = {"F32": "f4", "F64": "f8", "F16": "f2", "I64": "i8", "I32": "i4", "I16": "i2", "I8": "i1"}
DTYPES |= {"U8": "u1", "BOOL": "?"}


def tensors(path):
    data = path.read_bytes()
    (n,) = struct.unpack("<Q", data[:8])
    found = {}
    for name, t in json.loads(data[8 : 8 + n]).items():
        begin, end = t["data_offsets"]
        if t["dtype"] not in DTYPES:
            return None
        raw = data[8 + n + begin : 8 + n + end]
        found[name] = numpy.frombuffer(raw, DTYPES[t["dtype"]]).reshape(t["shape"])
    return found


def differs(got, want):
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype} {got.shape}, not {want.dtype} {want.shape}"
    if got.dtype.kind != "f":
        return None if (got == want).all() else "differs"
    with numpy.errstate(all="ignore"):
        close = numpy.isclose(got, want, rtol=2e-4, atol=2e-5, equal_nan=True)
    return None if close.all() else f"differs: {got[~close][:3]}, not {want[~close][:3]}"


def check(path):
    onnx.checker.check_model(str(path), full_check=True)
    data = tensors(path.with_name(path.name[:4] + ".safetensors"))
    if data is None:
        return None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
    outs = session.run(None, {i.name: data[i.name] for i in session.get_inputs()})
    bad = [differs(got, data[f"out{k}"]) for k, got in enumerate(outs)]
    return next((b for b in bad if b), None)


def main(folder):
    right, wrong = {}, []
    for path in sorted(pathlib.Path(folder).glob("*.onnx")):
        op = path.stem[5:]
        try:
            why = check(path)
        except Exception as e:  # of two packages
            why = str(e).splitlines()[0]
        if why:
            wrong.append((op, path.name, why))
        else:
            right[op] = right.get(op, 0) + 1
    for op, name, why in wrong:
        print(f"{name}: {why[:150]}")
    failing = {op for op, _, _ in wrong}
    print(
        f"{len(right)} operators with {sum(right.values())} equal cases; {len(wrong)} others",
        end=" ",
    )
    print(f"of {len(failing)} operators")


main(sys.argv[1])
