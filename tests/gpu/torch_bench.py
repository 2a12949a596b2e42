"""The times of bench.c for PyTorch: lines of JSON, {"name": microseconds}."""
import json
import time

import torch

ROUNDS, SETS, TINY_CALLS = 21, 4, 2000
F32, BF16 = torch.float32, torch.bfloat16
CASES = [
    ("add, 2^26 f32", 8192, 8192, F32, torch.add),
    ("add, 2^26 bf16", 8192, 8192, BF16, torch.add),
    ("gelu, 2^26 bf16", 8192, 8192, BF16, lambda a, b: torch.nn.functional.gelu(a)),
    ("sum, 2^26 f32", 8192, 8192, F32, lambda a, b: torch.sum(a)),
    ("softmax, 8192 x 8192 bf16", 8192, 8192, BF16, lambda a, b: torch.softmax(a, -1)),
    ("softmax, 65536 x 512 f32", 65536, 512, F32, lambda a, b: torch.softmax(a, -1)),
    (
        "layer_norm, 16384 x 4096 bf16",
        16384,
        4096,
        BF16,
        lambda a, b: torch.nn.functional.layer_norm(a, a.shape[1:]),
    ),
    ("cumsum, 8192 x 8192 f32", 8192, 8192, F32, lambda a, b: torch.cumsum(a, -1)),
    ("matmul, 4096^3 bf16", 4096, 4096, BF16, torch.matmul),
    ("matmul, 2048^3 f32", 2048, 2048, F32, torch.matmul),
]


def median(values):
    return sorted(values)[len(values) // 2]


def report(name, microseconds):
    print(json.dumps({name: round(median(microseconds), 3)}), flush=True)


def measure(name, run):
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    for _ in range(ROUNDS + 1):
        start.record()
        for k in range(SETS):
            run(k)
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop) * 1000 / SETS)
    report(name, times[1:])


def main():
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    for name, rows, columns, dtype, function in CASES:
        shape = {"device": "cuda", "dtype": dtype}
        operands = [
            tuple(torch.randn(rows, columns, **shape) for _ in range(2)) for _ in range(SETS)
        ]
        measure(name, lambda k: function(*operands[k]))
    params = [torch.randn(4096, 4096, device="cuda", requires_grad=True) for _ in range(8)]
    for p in params:
        p.grad = torch.randn_like(p)
    adam = torch.optim.Adam(params, fused=True)
    measure("Adam, 8 x 4096 x 4096 f32", lambda k: adam.step())
    x, y = torch.randn(4, 4, device="cuda"), torch.randn(4, 4, device="cuda")
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        for _ in range(TINY_CALLS):
            torch.add(x, y)
        times.append((time.perf_counter() - begin) * 1e6 / TINY_CALLS)
        torch.cuda.synchronize()
    report("host time of a tiny add", times)


if __name__ == "__main__":
    main()
