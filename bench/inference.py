"""Inference with batch 1: tt's plan beside onnxruntime and torch.compile, in turn in one process.

    TT_LIBRARY=build/libtt.so taskset -c 1 python bench/inference.py [MODEL…]

Needs torch, onnx and onnxruntime. onnxruntime runs the model that tt exports, with inputs and
outputs bound, so that no call copies or allocates; all use one thread. Times are medians of rounds,
in microseconds of the processor.
"""
from __future__ import annotations

import functools
import os
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../bindings/python"))

import tiles  # before torch

import numpy as np
import onnxruntime
import torch

import tt
from tt._graph import Plan, captured, load
from tt._lib import byref, call
from tt._structs import struct

ROUNDS = 15
ROUND_NS = 20_000_000
ALL_PASSES = 127
TORCH_MODE = "max-autotune-no-cudagraphs"


def cnn(n, digits):
    """The networks of examples/c/train_digits.c and bench/models.c."""
    if digits:
        return n.Sequential(
            n.Conv2d(1, 16, 3, padding=1), n.BatchNorm2d(16), n.ReLU(), n.MaxPool2d(2),
            n.Conv2d(16, 32, 3, padding=1), n.BatchNorm2d(32), n.ReLU(), n.MaxPool2d(2),
            n.Flatten(), n.Linear(32 * 2 * 2, 10),
        )  # fmt: skip
    return n.Sequential(
        n.Conv2d(3, 6, 5), n.ReLU(), n.MaxPool2d(2),
        n.Conv2d(6, 16, 5), n.ReLU(), n.MaxPool2d(2),
        n.Flatten(), n.Linear(400, 120), n.ReLU(), n.Linear(120, 84), n.ReLU(), n.Linear(84, 10),
    )  # fmt: skip


def gpt_class(n, lib):
    """A GPT of 4 blocks of width 256 with 8 heads, over 128 tokens."""
    F = n.functional

    class Block(n.Module):
        def __init__(self):
            super().__init__()
            self.ln1, self.ln2 = n.LayerNorm(256), n.LayerNorm(256)
            self.qkv, self.proj = n.Linear(256, 768), n.Linear(256, 256)
            self.f1, self.f2 = n.Linear(256, 1024), n.Linear(1024, 256)

        def forward(self, x):
            b, t, w = x.shape
            q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, 8, 32).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(y.transpose(1, 2).reshape(b, t, w))
            return x + self.f2(F.gelu(self.f1(self.ln2(x))))

    class Gpt(n.Module):
        def __init__(self):
            super().__init__()
            self.embed = n.Embedding(256, 256)
            self.pos = n.Parameter(lib.randn(128, 256) * 0.02)
            self.blocks = n.ModuleList([Block() for _ in range(4)])
            self.ln, self.head = n.LayerNorm(256), n.Linear(256, 256)

        def forward(self, x):
            x = self.embed(x) + self.pos
            for b in self.blocks:
                x = b(x)
            return self.head(self.ln(x))

    return Gpt


MODELS = {
    "digits": (lambda n, lib: cnn(n, True), (1, 1, 8, 8)),
    "lenet": (lambda n, lib: cnn(n, False), (1, 3, 32, 32)),
    "gpt": (lambda n, lib: gpt_class(n, lib)(), None),
}


def optimized(graph):
    """The graph after all passes, those that freeze the weights included."""
    opts = struct("tt_graph_optimize_opts")()
    opts.set, opts.passes = 1, ALL_PASSES
    out = type(graph)()
    call("tt_graph_optimize", graph, byref(opts), byref(out))
    return out


def one_thread():
    o = onnxruntime.SessionOptions()
    o.intra_op_num_threads = o.inter_op_num_threads = 1
    return o


def session_of(path, x, out):
    """A call of onnxruntime's session for the model in a file."""
    session = onnxruntime.InferenceSession(path, one_thread(), ["CPUExecutionProvider"])
    binding = session.io_binding()
    name = session.get_inputs()[0].name
    binding.bind_input(name, "cpu", 0, x.dtype, x.shape, x.ctypes.data)
    name = session.get_outputs()[0].name
    binding.bind_output(name, "cpu", 0, out.dtype, out.shape, out.ctypes.data)

    def run():
        session.run_with_iobinding(binding)
        return x, out  # of which the binding has addresses only

    return run


def per_call(f, calls):
    start = time.thread_time_ns()
    for _ in range(calls):
        f()
    return (time.thread_time_ns() - start) / calls


def compare(runs):
    """The median microseconds of each."""
    calls = [max(1, int(ROUND_NS / max(per_call(f, 3), 1))) for f in runs]
    rounds = [[per_call(f, n) for f, n in zip(runs, calls)] for _ in range(ROUNDS)]
    return [statistics.median(column) / 1e3 for column in zip(*rounds)]


def torch_twin(name, model):
    """PyTorch's model with the same weights, compiled."""
    twin = MODELS[name][0](torch.nn, torch).eval()
    weights = {
        k: torch.from_numpy(v.detach().numpy().copy()) for k, v in model.state_dict().items()
    }
    twin.load_state_dict(weights)
    return torch.compile(twin, mode=TORCH_MODE), twin


def prepare(name):
    """The model, an input, the result and calls of tt's plan and of onnxruntime, which agree."""
    make, shape = MODELS[name]
    model = make(tt.nn, tt).eval()
    x = tt.randn(*shape) if shape else tt.randint(0, 256, (1, 128))
    with tt.no_grad():
        want = model(x).numpy().copy()
        graph, _ = captured(model, (x,))
        plan = Plan(optimized(graph))
    (slot,), (out,) = plan._inputs, plan._outputs
    slot.copy_(x)
    run = functools.partial(call, "tt_plan_run", plan._handle)
    run()
    assert np.allclose(out.numpy(), want, atol=1e-4)
    path = os.path.join(tempfile.mkdtemp(), "model.onnx")
    graph.export_onnx(path)
    given, got = x.numpy(), np.zeros_like(want)
    session = session_of(path, given, got)
    session()
    assert np.allclose(got, want, atol=1e-4)
    return model, given, want, [run, session]


def loading(name):
    """Milliseconds in which the graph of a model is read from a .ttg file, and in which onnxruntime
    makes a session of the ONNX file: the least of several."""
    make, shape = MODELS[name]
    x = tt.randn(*shape) if shape else tt.randint(0, 256, (1, 128))
    graph, _ = captured(make(tt.nn, tt).eval(), (x,))
    with tempfile.TemporaryDirectory() as folder:
        ttg, model = os.path.join(folder, "model.ttg"), os.path.join(folder, "model.onnx")
        graph.save(ttg)
        graph.export_onnx(model)
        readers = [lambda: load(ttg), lambda: onnxruntime.InferenceSession(model, one_thread())]
        return [min(per_call(f, 1) for _ in range(20)) / 1e6 for f in readers]


def measured(name):
    """The microseconds of a call, by columns of the table."""
    model, given, want, runs = prepare(name)
    compiled, eager = torch_twin(name, model)
    theirs = torch.from_numpy(given.copy())
    with torch.inference_mode():
        assert np.allclose(compiled(theirs).numpy(), want, atol=1e-4)
        return compare([*runs, lambda: compiled(theirs), lambda: eager(theirs)])


def main():
    tt.set_num_threads(1)
    torch.set_num_threads(1)
    tt.manual_seed(0)
    times = ["tt's plan, µs", "onnxruntime", "torch.compile", "PyTorch eager"]
    ratios = ["onnxruntime ÷ tt", "torch.compile ÷ tt", "eager ÷ tt"]
    print(f"| batch 1 | {' | '.join(times + ratios)} |")
    print("|---" * 8 + "|")
    for name in sys.argv[1:] or MODELS:
        us = measured(name)
        cells = " | ".join(f"{t:,.1f}" for t in us)
        quotients = " | ".join(f"{t / us[0]:.2f}" for t in us[1:])
        print(f"| {name} | {cells} | {quotients} |", flush=True)


if __name__ == "__main__":
    main()
