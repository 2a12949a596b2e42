"""Times linear of few rows with float32, bfloat16 and packed weights, beside the speed at which
the threads read memory and, where it is installed, PyTorch. Prints a table in Markdown.

taskset -c 1 env TT_LIBRARY=build/libtt.so PYTHONPATH=bindings/python python3 bench/blocks.py

With an argument, that many threads; times are those of the clock then.
"""
import functools
import sys
import time

import tiles  # before torch

import tt
from tt.ao.quantization import blockwise_linear, quantize_blockwise

try:
    import torch
except ImportError:
    torch = None

ROUNDS = 15
now = time.thread_time
SHAPES = ((4096, 4096, 1), (11008, 4096, 1), (4096, 4096, 4), (4096, 4096, 8))


def median(times):
    return sorted(times)[len(times) // 2]


def seconds(functions):
    """The median times of functions, called in turn; of one thread, its processor time, since the
    machine may be shared."""
    times = [[] for _ in functions]
    for _ in range(ROUNDS):
        for f, found in zip(functions, times):
            start = now()
            f()
            found.append(now() - start)
    return [median(t[2:]) for t in times]


def bytes_in(x):
    return x.numel() * x.element_size()


def rows_of_one():
    """Yields, for one row of activations and packed weights, the rows of these, their format, their
    bytes, at how many bytes a second they are read, and how fast a sum reads memory."""
    whole = tt.ones(64 << 20)
    for n, k, rows in SHAPES:
        if rows > 1:
            continue
        x, w = tt.randn(1, k), tt.randn(n, k)
        for name in ("q8_0", "q4_0"):
            packed = quantize_blockwise(w, name)
            with tt.no_grad():
                run = functools.partial(blockwise_linear, x, packed, None, name)
                ours, reading = seconds([run, whole.sum])
            yield n, name, bytes_in(packed), bytes_in(packed) / ours, bytes_in(whole) / reading


def main(threads):
    global now
    now = time.thread_time if threads == 1 else time.perf_counter
    tt.set_num_threads(threads)
    if torch:
        torch.set_num_threads(threads)
    whole = tt.ones(64 << 20)
    print(
        "| out × in, rows | "
        + "weights | MB | ms | GB/s | of the reading speed | of float32's time |"
    )
    print("|---|---|---|---|---|---|---|")
    for n, k, rows in SHAPES:
        w, x = tt.randn(n, k), tt.randn(rows, k)
        half, half_x = w.to(tt.bfloat16), x.to(tt.bfloat16)
        kinds = [
            ("float32", w, lambda: tt.nn.functional.linear(x, w)),
            ("bfloat16", half, lambda: tt.nn.functional.linear(half_x, half)),
        ]
        for name in ("q8_0", "q4_0"):
            packed = quantize_blockwise(w, name)
            kinds.append(
                (name, packed, lambda p=packed, name=name: blockwise_linear(x, p, None, name))
            )
        if torch:
            a, b = torch.from_numpy(w.numpy()), torch.from_numpy(x.numpy())
            c, d = a.bfloat16(), b.bfloat16()
            kinds.append(("float32, PyTorch", w, lambda: torch.nn.functional.linear(b, a)))
            kinds.append(("bfloat16, PyTorch", half, lambda: torch.nn.functional.linear(d, c)))
        with tt.no_grad():
            times = seconds([lambda: whole.sum()] + [f for _, _, f in kinds])
        reading = whole.numel() * 4 / times[0]
        for (name, weight, _), t in zip(kinds, times[1:]):
            size = bytes_in(weight)
            print(
                f"| {n} × {k}, {rows} | {name} | {size / 1e6:.1f} "
                f"| {t * 1e3:.2f} | {size / t / 1e9:.1f}"
                f" | {size / t / reading:.2f} | {t / times[1]:.2f} |"
            )
        print(
            f"| reading {whole.numel() * 4 / 1e6:.0f} MB (a sum) | | | {times[0] * 1e3:.1f} | "
            f"{reading / 1e9:.1f} | | |"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
