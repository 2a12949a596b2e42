"""What is printed in test_printing.py. `python printing_cases.py`, with PyTorch, records how it
prints them: printing.json."""
import json
from pathlib import Path

RECORDED = Path(__file__).with_name("printing.json")
DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
SHAPES = [
    (),
    (0,),
    (1,),
    (3,),
    (2, 3),
    (2, 0),
    (1, 1, 1),
    (2, 1, 2, 2),
    (23,),
    (5, 30),
    (1001,),
    (3, 400),
    (40, 30),
    (2, 1000),
    (11, 11, 10),
]
BIG = {(1001,), (3, 400), (40, 30), (2, 1000), (11, 11, 10), (5, 30)}
LISTS = [
    [1.0, 2.0, 3.0],
    [0.1, 100.5],
    [1e-5, 1.0],
    [1e10, 1.0],
    [1e-10, 1e10],
    ["nan", 1.0],
    ["inf", "-inf", 2.5],
    ["nan", "nan"],
    [1e8, 2e8],
    [12345678.0, 1.0],
    [0.00001, 0.00002],
    [1000.5, 2.25],
    [99999.0, 1.0],
    [100000.0, 0.5],
    [-0.0, 0.0],
    [1e38],
    [1e-38],
    [3.14159],
    [1e5],
    [1e-4],
    [123456.789],
    [1.0000001],
    [999.99999],
    [1e3, 1e-3],
    ["inf"],
    [-1.5, "nan", 1e9],
    [5e-324],
    [16777217.0],
    [0.5, 1e4, 0.25],
    [99999.5],
    [1e15, 1e-5],
    [-1e-8, 3.0],
]
COMPLEX = [
    [(1, 2), (3, -4)],
    [("nan", 0), (0, 1)],
    [(1e10, 1), (1, -1e-10)],
    [("inf", 0), (0, "-inf")],
    [(0.1, 100)],
    [(1, 0), (2, 0)],
    [(1000.5, -2e5), (0, 1)],
]
INTEGERS = [[-128, 127], [2**62, -1], [100000], [1, -10, 100], [0]]


def wave(m, shape, dtype, scale=1.3):
    """Values of both signs and several sizes."""
    n = 1
    for size in shape:
        n *= size
    values = m.tensor([(i * 37 % 101 - 50) * scale for i in range(n)], dtype=m.float64).reshape(
        shape
    )
    if dtype == "bool":
        return values > 0
    return (values.abs() if dtype == "uint8" else values).to(getattr(m, dtype))


def numbers(m, values, dtype):
    if dtype.startswith("complex") and isinstance(values[0], tuple):
        return m.tensor(
            [complex(float(re), float(im)) for re, im in values], dtype=getattr(m, dtype)
        )
    return m.tensor([float(x) for x in values], dtype=m.float64).to(getattr(m, dtype))


def cases(m):
    """(name, tensor) of all cases, made by tt or by torch."""
    for dtype in DTYPES:
        for shape in SHAPES:
            if (
                shape not in BIG
                or dtype in ("float32", "int64", "complex128", "bool")
                or dtype == "float16"
                and shape == (5, 30)
            ):
                yield f"{dtype} {shape}", wave(m, shape, dtype)
    for dtype in ("float16", "bfloat16", "float32", "float64", "complex64"):
        for values in LISTS:
            yield f"{dtype} {values}", numbers(m, values, dtype)
            yield f"{dtype} {values[0]}", numbers(m, values, dtype)[0]
    for dtype in ("complex64", "complex128"):
        for values in COMPLEX:
            yield f"{dtype} {values}", numbers(m, values, dtype)
    for values in INTEGERS:
        yield f"integers {values}", m.tensor(values)
    for shape in ((), (3,), (0,), (23,)):
        for dtype in ("float32", "float64"):
            yield f"requires_grad {dtype} {shape}", wave(m, shape, dtype).requires_grad_()
    x = wave(m, (2, 3), "float32").requires_grad_()
    for name, y in (
        ("mul", x * 2),
        ("exp", x.exp()),
        ("sum", x.sum()),
        ("view", x.view(6)),
        ("double", x.double() + 1),
        ("relu", m.relu(x[0])),
    ):
        if name != "double":
            yield f"grad_fn {name}", y
        else:
            yield "grad_fn add of float64", y
    yield "meta", m.empty(2, 3, device="meta")
    yield "meta int32", m.empty(0, dtype=m.int32, device="meta")
    yield "parameter", m.nn.Parameter(wave(m, (2, 2), "float32"))
    yield "strided", wave(m, (4, 6), "float32").t()[::2, 1:]


if __name__ == "__main__":
    import torch

    found = {name: repr(t) for name, t in cases(torch)}
    RECORDED.write_text(json.dumps({"torch": torch.__version__, "cases": found}, indent=0) + "\n")
    print(len(found), "cases")
