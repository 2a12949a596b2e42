"""Attention, convolutions, linear layers and elementwise operators of halves beside PyTorch: both
in one process, on one thread, in turn.

    PYTHONPATH=bindings/python TT_LIBRARY=build/libtt.so taskset -c 0 \\
        python bench/halves.py [-n 15] [MATCH…]

Prints a table: PyTorch's time by tt's, of the fastest batches of each (above 1 tt is faster), the
times of a call in ms, and the speed of tt's products in GFLOP/s. Rows whose name has a MATCH.
"""
import argparse
import gc
import time
import warnings

ROWS = []  # name, flops or 0, make(t)


def random(t, *shape, dtype, grad=False):
    import numpy

    x = numpy.random.default_rng(len(shape)).standard_normal(shape).astype("float32")
    x = t.from_numpy(x).to(getattr(t, dtype))
    return x.requires_grad_(True) if grad else x


def attention(dtype, heads, length, width, causal, backward):
    name = f"sdpa {dtype} {heads} x {length} x {width}{' causal' * causal}{' step' * backward}"
    flops = 4 * heads * length * length * width * (3.5 if backward else 1) / (1 + causal)

    def make(t):
        shape = (1, heads, length, width)
        q, k, v = (random(t, *shape, dtype=dtype, grad=backward) for _ in range(3))
        g = random(t, *shape, dtype=dtype)
        sdpa = t.nn.functional.scaled_dot_product_attention

        def run():
            y = sdpa(q, k, v, is_causal=causal)
            if backward:
                q.grad = k.grad = v.grad = None
                y.backward(g)

        return run

    ROWS.append((name, flops, make))


def convolution(dtype, label, n, ci, co, size, kernel, stride, groups, last, backward):
    pad = kernel // 2
    out = (size + 2 * pad - kernel) // stride + 1
    flops = 2 * n * out * out * co * ci // groups * kernel * kernel * (3 if backward else 1)
    layout = "nhwc" if last else "nchw"

    def make(t):
        x = random(t, n, ci, size, size, dtype=dtype)
        w = random(t, co, ci // groups, kernel, kernel, dtype=dtype)
        if last:
            x = x.contiguous(memory_format=t.channels_last)
            w = w.contiguous(memory_format=t.channels_last)
        x.requires_grad_(backward)
        w.requires_grad_(backward)
        conv = t.nn.functional.conv2d
        g = conv(x, w, None, stride, pad, 1, groups).detach()

        def run():
            y = conv(x, w, None, stride, pad, 1, groups)
            if backward:
                x.grad = w.grad = None
                y.backward(g)

        return run

    ROWS.append((f"conv {dtype} {label} {layout}{' step' * backward}", flops, make))


def linear(dtype, m, k, n, backward):
    def make(t):
        x = random(t, m, k, dtype=dtype, grad=backward)
        w = random(t, n, k, dtype=dtype, grad=backward)
        b = random(t, n, dtype=dtype, grad=backward)
        g = random(t, m, n, dtype=dtype)

        def run():
            y = t.nn.functional.linear(x, w, b)
            if backward:
                x.grad = w.grad = b.grad = None
                y.backward(g)

        return run

    flops = 2 * m * k * n * (3 if backward else 1)
    ROWS.append((f"linear {dtype} {m} x {k} x {n}{' step' * backward}", flops, make))


def elementwise(dtype, n):
    shape = (n // 256, 256)
    calls = {
        "add": lambda t, x, y: lambda: x + y,
        "mul": lambda t, x, y: lambda: x * y,
        "relu": lambda t, x, y: lambda: t.relu(x),
        "gelu": lambda t, x, y: lambda: t.nn.functional.gelu(x),
        "silu": lambda t, x, y: lambda: t.nn.functional.silu(x),
        "sigmoid": lambda t, x, y: lambda: t.sigmoid(x),
        "tanh": lambda t, x, y: lambda: t.tanh(x),
        "exp": lambda t, x, y: lambda: t.exp(x),
        "softmax": lambda t, x, y: lambda: t.softmax(x, -1),
        "layer_norm": lambda t, x, y: lambda: t.nn.functional.layer_norm(x, (256,)),
        "sum": lambda t, x, y: lambda: x.sum(),
        "sum of columns": lambda t, x, y: lambda: x.sum(0),
        "to float32": lambda t, x, y: lambda: x.float(),
        "from float32": lambda t, x, y: (lambda f: lambda: f.to(x.dtype))(x.float()),
        "dropout": lambda t, x, y: lambda: t.nn.functional.dropout(x, 0.1, True),
    }
    for label, call in calls.items():

        def make(t, call=call):
            return call(t, random(t, *shape, dtype=dtype), random(t, *shape, dtype=dtype))

        ROWS.append((f"{label} {dtype} {n}", 0, make))


def list_rows():
    for dtype in ("bfloat16", "float16", "float32"):
        for backward in (False, True):
            for causal in (False, True):
                for length in (64, 128, 256, 1024, 2048, 4096):
                    attention(dtype, 8, length, 64, causal, backward)
                attention(dtype, 64, 128, 32, causal, backward)
                attention(dtype, 8, 1024, 128, causal, backward)
    shapes = (
        ("c2", 8, 64, 64, 56, 3, 1, 1),
        ("c3", 8, 128, 128, 28, 3, 1, 1),
        ("c4", 8, 256, 256, 14, 3, 1, 1),
        ("c5", 8, 512, 512, 7, 3, 1, 1),
        ("c3 stride 2", 8, 128, 128, 56, 3, 2, 1),
        ("1x1 64 to 256", 8, 64, 256, 56, 1, 1, 1),
        ("1x1 256 to 64", 8, 256, 64, 56, 1, 1, 1),
        ("1x1 1024 to 256", 8, 1024, 256, 14, 1, 1, 1),
        ("stem", 8, 3, 64, 224, 7, 2, 1),
        ("cifar", 32, 32, 64, 32, 3, 1, 1),
        ("depthwise", 8, 128, 128, 28, 3, 1, 128),
        ("groups of 8", 8, 128, 128, 28, 3, 1, 16),
    )
    for dtype in ("bfloat16", "float16", "float32"):
        for backward in (False, True):
            for last in (False, True):
                for shape in shapes:
                    convolution(dtype, *shape, last, backward)
        for backward in (False, True):
            linear(dtype, 1024, 256, 1024, backward)
            linear(dtype, 1024, 768, 3072, backward)
        for n in (1 << 16, 1 << 20, 1 << 24):
            elementwise(dtype, n)


def timed(run, calls):
    begin = time.process_time()
    for _ in range(calls):
        run()
    return (time.process_time() - begin) / calls * 1e3


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("-n", type=int, default=15)
    parse.add_argument("match", nargs="*")
    options = parse.parse_args()
    warnings.simplefilter("ignore")
    import tiles  # before torch
    import torch

    import tt

    for t in (tt, torch):
        t.set_num_threads(1)
    print("| work | ratio | tt ms | PyTorch ms | GFLOP/s |\n|---|---|---|---|---|")
    list_rows()
    for name, flops, make in ROWS:
        if options.match and not any(m in name for m in options.match):
            continue
        ours, theirs = make(tt), make(torch)
        ours(), theirs()
        once = max(timed(ours, 1), timed(theirs, 1), 1e-3)
        calls = max(1, min(200, int(10 / once)))
        pairs = [(timed(ours, calls), timed(theirs, calls)) for _ in range(options.n)]
        ms, peer = (min(x) for x in zip(*pairs))
        speed = f"{flops / ms / 1e6:.0f}" if flops else ""
        print(f"| {name} | {peer / ms:.2f} | {ms:.3g} | {peer:.3g} | {speed} |", flush=True)
        gc.collect()


if __name__ == "__main__":
    main()
