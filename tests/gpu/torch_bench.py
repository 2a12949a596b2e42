"""The times of bench.c and steps.c for PyTorch, as lines of JSON: {"name": microseconds}, null for
what fails. usage: torch_bench.py [--device DEVICE] [--share N] [rows|steps|compiled]
rows: operators, as bench.c. steps: training steps as they are, and captured as one CUDA graph.
compiled: the same under torch.compile, which takes long. --share: sizes are divided by it, for a
trial on a CPU. TT_GPU_FIRST: as in bench.c."""
import argparse
import contextlib
import json
import os
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel


SETS, TINY_CALLS = 4, 500
ROUNDS, SLOW_ROUNDS = 21, 9
SLOW_ROUND, SLOW_CALL = 20e3, 300e3  # microseconds
F32, BF16, F16, C64 = torch.float32, torch.bfloat16, torch.float16, torch.complex64

options = argparse.ArgumentParser()
options.add_argument("what", nargs="?", default="rows", choices=["rows", "steps", "compiled"])
options.add_argument("--device", default="cuda")
options.add_argument("--share", type=int, default=1)
options = options.parse_args()
DEVICE, SHARE = options.device, options.share
sys.path.append(str(Path(__file__).resolve().parent / "../../bench"))
if SHARE > 1:
    SETS = ROUNDS = SLOW_ROUNDS = 1


# --- operands


def scaled(n):
    if SHARE == 1 or n <= 4:
        return n
    if n > 1 << 20:
        n //= SHARE
    return 2 if n <= 16 else max(16, n // SHARE // 16 * 16)


def normal(dtype, *shape):
    return torch.randn(*map(scaled, shape), device=DEVICE, dtype=dtype)


def below(end, *shape):
    return torch.randint(0, scaled(end), tuple(map(scaled, shape)), device=DEVICE)


def normals(count, dtype, *shape):
    return lambda: [normal(dtype, *shape) for _ in range(count)]


def with_bias(dtype, *shape):
    return lambda: [normal(dtype, *shape), normal(dtype, shape[1])]


def classes(dtype, n, count):
    return lambda: [normal(dtype, n, count), below(count, n)]


def norm(dtype, *shape):
    return lambda: [normal(dtype, *shape), normal(dtype, shape[1]), normal(dtype, shape[1])]


def batch(*shape):
    return lambda: norm(F32, *shape)() + [normal(F32, shape[1]), normal(F32, shape[1])]


def table(rows, columns, n):
    return lambda: [normal(F32, rows, columns), below(rows, n)]


def gathered(rows, columns):
    make = normals(1, F32, rows, columns)
    return lambda: make() + [below(columns, rows, columns)] + make()


def product(dtype, n):
    return lambda: [normal(dtype, n, n), normal(dtype, n, n)]


def linear(dtype, m, n, k):
    return lambda: [normal(dtype, m, k), normal(dtype, n, k), normal(dtype, n)]


def images(dtype, c_in, c_out, size, kernel):
    return lambda: [
        normal(dtype, 128, c_in, size, size),
        normal(dtype, c_out, c_in, kernel, kernel),
    ]


def recurrent(dtype, n, steps, size):
    def make():
        shape = 4 * scaled(size), scaled(size)
        weights = [torch.randn(*shape, device=DEVICE, dtype=dtype) for _ in range(2)]
        return [normal(dtype, steps, n, size), *weights, normal(dtype, 1, n, size)]

    return make


def definite(count, n):
    def make():
        x = normal(F32, count, n, n)
        eye = torch.eye(scaled(n), device=DEVICE)
        return [x @ x.mT / scaled(n) + eye, normal(F32, count, n, 1)]

    return make


# --- rows: name -> (function that makes operands, operator, number of operands with a gradient)


def layer_norm(x, weight=None, bias=None):
    return F.layer_norm(x, x.shape[1:], weight, bias)


def rms_norm(x, weight, bias):
    return F.rms_norm(x, x.shape[1:], weight)


def group_norm(x, weight, bias):
    return F.group_norm(x, 16, weight, bias)


def batch_norm(x, weight, bias, mean, var):
    return F.batch_norm(x, mean, var, weight, bias, training=True)


def lstm(x, w_ih, w_hh, state):
    state, weights = (state, state), (w_ih, w_hh)
    return torch.lstm(x, state, weights, False, 1, 0.0, torch.is_grad_enabled(), False, False)[0]


SQUARE = 8192, 8192
ROWS = {
    "add, 2^26 f32": (normals(2, F32, *SQUARE), torch.add),
    "add, 2^26 bf16": (normals(2, BF16, *SQUARE), torch.add),
    "mul_, 2^26 f32": (normals(2, F32, *SQUARE), torch.Tensor.mul_),
    "add of a bias, 8192 x 8192 f32": (with_bias(F32, *SQUARE), torch.add),
    "gelu, 2^26 f32": (normals(1, F32, *SQUARE), F.gelu),
    "gelu, 2^26 bf16": (normals(1, BF16, *SQUARE), F.gelu),
    "copy, 2^26 f32": (normals(1, F32, *SQUARE), torch.clone),
    "cast f32 to bf16, 2^26": (normals(1, F32, *SQUARE), lambda x: x.to(BF16)),
    "transpose, 8192 x 8192 f32": (normals(1, F32, *SQUARE), lambda x: x.t().contiguous()),
    "dropout, 2^26 f32": (normals(1, F32, *SQUARE), F.dropout),
    "sum, 2^26 f32": (normals(1, F32, *SQUARE), torch.sum),
    "sum over dim 0, 8192 x 8192 f32": (normals(1, F32, *SQUARE), lambda x: x.sum(0)),
    "sum over dim 1, 8192 x 8192 f32": (normals(1, F32, *SQUARE), lambda x: x.sum(1)),
    "max over dim 1, 8192 x 8192 f32": (normals(1, F32, *SQUARE), lambda x: x.max(1)),
    "argmax over dim 1, 8192 x 8192 f32": (normals(1, F32, *SQUARE), lambda x: x.argmax(1)),
    "var over dim 1, 8192 x 8192 f32": (normals(1, F32, *SQUARE), lambda x: x.var(1)),
    "norm over dim 1, 8192 x 8192 f32": (
        normals(1, F32, *SQUARE),
        lambda x: torch.linalg.vector_norm(x, dim=1),
    ),
    "logsumexp over dim 1, 8192 x 8192 f32": (normals(1, F32, *SQUARE), lambda x: x.logsumexp(1)),
    "nansum over dim 1, 8192 x 8192 f32": (normals(1, F32, *SQUARE), lambda x: x.nansum(1)),
    "softmax, 8192 x 8192 bf16": (normals(1, BF16, *SQUARE), lambda x: x.softmax(-1)),
    "softmax, 65536 x 512 f32": (normals(1, F32, 65536, 512), lambda x: x.softmax(-1)),
    "log_softmax, 8192 x 8192 bf16": (normals(1, BF16, *SQUARE), lambda x: x.log_softmax(-1)),
    "cross_entropy, 8192 x 32768 bf16": (classes(BF16, 8192, 32768), F.cross_entropy),
    "cross_entropy, 8192 x 32768 bf16, with backward": (
        classes(BF16, 8192, 32768),
        F.cross_entropy,
        1,
    ),
    "layer_norm, 16384 x 4096 bf16": (normals(1, BF16, 16384, 4096), layer_norm),
    "layer_norm, 16384 x 4096 bf16, with backward": (norm(BF16, 16384, 4096), layer_norm, 3),
    "rms_norm, 16384 x 4096 bf16": (norm(BF16, 16384, 4096), rms_norm),
    "rms_norm, 16384 x 4096 bf16, with backward": (norm(BF16, 16384, 4096), rms_norm, 2),
    "group_norm of 16 groups, 64 x 256 x 56 x 56 f32": (norm(F32, 64, 256, 56, 56), group_norm),
    "group_norm of 16 groups, 64 x 256 x 56 x 56 f32, with backward": (
        norm(F32, 64, 256, 56, 56),
        group_norm,
        3,
    ),
    "batch_norm in training, 64 x 256 x 56 x 56 f32": (batch(64, 256, 56, 56), batch_norm),
    "batch_norm in training, 64 x 256 x 56 x 56 f32, with backward": (
        batch(64, 256, 56, 56),
        batch_norm,
        3,
    ),
    "batch_norm in training, 200704 x 256 f32": (batch(200704, 256), batch_norm),
    "batch_norm in training, 200704 x 256 f32, with backward": (batch(200704, 256), batch_norm, 3),
    "matmul, 4096^3 bf16": (product(BF16, 4096), torch.matmul),
    "matmul, 8192^3 bf16": (product(BF16, 8192), torch.matmul),
    "matmul, 4096^3 f16": (product(F16, 4096), torch.matmul),
    "matmul, 8192^3 f16": (product(F16, 8192), torch.matmul),
    "linear with bias, 8192 x 4096 x 4096 bf16": (linear(BF16, 8192, 4096, 4096), F.linear),
    "bmm, 64 x 512^3 bf16": (normals(2, BF16, 64, 512, 512), torch.bmm),
    "matmul, 4096^3 f32": (product(F32, 4096), torch.matmul),
    "matmul, 2048^3 f32": (product(F32, 2048), torch.matmul),
}


def attention(causal, backend):
    def run(q, k, v):
        with sdpa_kernel(backend) if backend else contextlib.nullcontext():
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

    return run


for d in (64, 128):
    for causal in ("", ", causal"):
        for backward in ("", ", with backward"):
            for label, backend in ("", None), (" (cuDNN)", SDPBackend.CUDNN_ATTENTION):
                ROWS[f"attention, d {d} bf16{causal}{backward}{label}"] = (
                    normals(3, BF16, 8, 16, 2048, d),
                    attention(bool(causal), backend),
                    3 if backward else 0,
                )
ROWS |= {
    "embedding, 65536 of 32768 x 1024 f32": (
        table(32768, 1024, 65536),
        lambda x, i: F.embedding(i, x),
    ),
    "index_select, 65536 of 32768 x 1024 f32": (
        table(32768, 1024, 65536),
        lambda x, i: x.index_select(0, i),
    ),
    "gather, 8192 x 8192 f32": (gathered(*SQUARE), lambda x, i, source: x.gather(1, i)),
    "scatter_add, 4096 x 4096 f32": (
        gathered(4096, 4096),
        lambda x, i, source: x.scatter_add(1, i, source),
    ),
    "cumsum, 8192 x 8192 f32": (normals(1, F32, *SQUARE), lambda x: x.cumsum(-1)),
    "sort, 2^24 f32": (normals(1, F32, 1 << 24), torch.sort),
    "sort, 8192 x 2048 f32": (normals(1, F32, 8192, 2048), torch.sort),
    "topk 64, 8192 x 8192 f32": (normals(1, F32, *SQUARE), lambda x: x.topk(scaled(64))),
}
for dtype in ("bf16", "f32"):
    for c_in, c_out, size, kernel in (64, 64, 56, 3), (256, 256, 14, 3), (256, 64, 56, 1):
        shape = f"{c_in} to {c_out}, {size} x {size}, {kernel} x {kernel}"
        for backward in ("", ", with backward"):
            ROWS[f"conv2d, {shape}, {dtype}{backward}"] = (
                images(BF16 if dtype == "bf16" else F32, c_in, c_out, size, kernel),
                lambda x, w, kernel=kernel: F.conv2d(x, w, padding=kernel // 2),
                2 if backward else 0,
            )
for dtype in ("f32", "bf16"):
    for backward in ("", ", with backward"):
        ROWS[f"lstm, 64 sequences of 64 steps, 512 to 512, {dtype}{backward}"] = (
            recurrent(BF16 if dtype == "bf16" else F32, 64, 64, 512),
            lstm,
            3 if backward else 0,
        )
for backward in ("", ", with backward"):
    ROWS[f"cdist of order 1, 4096 x 4096 rows of 64, f32{backward}"] = (
        normals(2, F32, 4096, 64),
        lambda x, y: torch.cdist(x, y, p=1.0),
        2 if backward else 0,
    )
ROWS |= {
    "fft, 16 x 2^20 c64": (normals(1, C64, 16, 1 << 20), torch.fft.fft),
    "rfft, 16 x 2^20 f32": (normals(1, F32, 16, 1 << 20), torch.fft.rfft),
    "cholesky, 4096 x 32 x 32 f32": (definite(4096, 32), lambda x, right: torch.linalg.cholesky(x)),
    "cholesky, 64 x 256 x 256 f32": (definite(64, 256), lambda x, right: torch.linalg.cholesky(x)),
    "solve, 4096 x 32 x 32 f32": (definite(4096, 32), torch.linalg.solve),
    "solve, 64 x 256 x 256 f32": (definite(64, 256), torch.linalg.solve),
}


# --- measuring


def median(values):
    return sorted(values)[len(values) // 2]


def report(name, microseconds):
    value = microseconds if microseconds is None else round(microseconds, 3)
    print(json.dumps({name: value}), flush=True)


def attempt(name, measure, *arguments):
    """A failing row is null; the next one follows."""
    try:
        report(name, measure(*arguments))
    except Exception as e:  # noqa: BLE001
        print(f"torch_bench: {name}: {e}", file=sys.stderr)
        report(name, None)
    if DEVICE == "cuda":
        torch.cuda.empty_cache()


def synchronize():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def now():
    return time.perf_counter() * 1e6


def event_time(run):
    """Microseconds of the device for run(0) … run(SETS - 1), per call."""
    if DEVICE != "cuda":
        begin = now()
        for k in range(SETS):
            run(k)
        return (now() - begin) / SETS
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for k in range(SETS):
        run(k)
    stop.record()
    stop.synchronize()
    return start.elapsed_time(stop) * 1000 / SETS


def once(run, k):
    begin = now()
    run(k)
    synchronize()
    return now() - begin


def measure(run):
    """The rule of bench.c: a call of each set warms up and says how many rounds follow."""
    warm = [once(run, k) for k in range(SETS)]
    call = median(warm[1:] or warm)
    if call > SLOW_CALL:
        return call
    rounds = SLOW_ROUNDS if call * SETS > SLOW_ROUND else ROUNDS
    return median([event_time(run) for _ in range(rounds)])


def measure_row(make, function, n_grads=0):
    operands = [make() for _ in range(SETS)]
    if not n_grads:
        with torch.no_grad():
            return measure(lambda k: function(*operands[k]))
    for tensors in operands:
        for x in tensors[:n_grads]:
            x.requires_grad_()
    with torch.no_grad():
        gradients = [torch.randn_like(function(*tensors)) for tensors in operands]
    return measure(
        lambda k: torch.autograd.grad(function(*operands[k]), operands[k][:n_grads], gradients[k])
    )


def measure_adam():
    params = [normal(F32, 4096, 4096).requires_grad_() for _ in range(8)]
    for p in params:
        p.grad = torch.randn_like(p)
    adam = torch.optim.Adam(params, fused=True)
    return measure(lambda k: adam.step())


def host_time(run):
    calls = 20 if SHARE > 1 else TINY_CALLS
    times = []
    for _ in range(ROUNDS):
        synchronize()
        begin = now()
        for _ in range(calls):
            run()
        times.append((now() - begin) / calls)
    return median(times)


def allow_tf32(allowed):
    """Rows are measured in float32, which PyTorch's convolutions are not by default, and again."""
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed


def first_names():
    """The names of the rows that are measured first."""
    path = os.environ.get("TT_GPU_FIRST")
    return set(Path(path).read_text().splitlines()) if path else set()


def measure_named(names):
    for name in names:
        attempt(name, measure_row, *ROWS[name])
        if name.startswith(("conv2d", "matmul")) and "f32" in name:
            allow_tf32(True)
            attempt(f"{name} (TF32)", measure_row, *ROWS[name])
            allow_tf32(False)


def rows():
    first = first_names()
    measure_named(name for name in ROWS if name in first)
    x, y, leaf = (torch.randn(4, 4, device=DEVICE) for _ in range(3))
    leaf.requires_grad_()
    attempt("host time of a tiny add", host_time, lambda: torch.add(x, y))
    attempt("host time of a tiny add_", host_time, lambda: x.add_(y))
    attempt("host time of a tiny recorded mul", host_time, lambda: torch.mul(leaf, leaf))
    attempt("host time of a tiny matmul", host_time, lambda: torch.matmul(x, y))
    attempt("Adam, 8 x 4096 x 4096 f32", measure_adam)
    measure_named(name for name in ROWS if name not in first)


# --- training steps: of networks as they are and with 16 times the batch


def trainer(net_name, batch, compile_mode=None, **adam_options):
    """A step of Adam."""
    from torch_models import NETS  # beside this file, or in bench/

    net, x, y = NETS[net_name](batch)
    net, x, y = net.to(DEVICE), x.to(DEVICE), y.to(DEVICE)
    adam = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True, **adam_options)

    def loss():
        return F.cross_entropy(net(x).flatten(0, -2), y.flatten())

    if compile_mode:
        loss = torch.compile(loss, mode=compile_mode)

    def step():
        adam.zero_grad(set_to_none=True)
        loss().backward()
        adam.step()

    return step


def measure_step(step):
    """Microseconds of a step by the clock of the host, with a wait after about 20 ms of steps."""
    for _ in range(4):
        step()
    synchronize()
    call = once(lambda k: [step() for _ in range(4)], 0) / 4
    steps, times = max(1, int(20e3 / call)), []
    for _ in range(1 if SHARE > 1 else SLOW_ROUNDS):
        times.append(once(lambda k: [step() for _ in range(steps)], 0) / steps)
    return median(times)


def measure_eager(net_name, batch):
    return measure_step(trainer(net_name, batch))


def measure_compiled(net_name, batch, mode):
    return measure_step(trainer(net_name, batch, mode))


def measure_captured(net_name, batch):
    """The whole step as one CUDA graph."""
    step = trainer(net_name, batch, capturable=True)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return measure_step(graph.replay)


STEPS = [("gpt", 8), ("cnn", 64), ("lenet", 64), ("mlp", 128)]


def step_names():
    for factor in (1, 16):
        for net_name, batch in STEPS:
            yield f"{net_name} step, batch {batch * factor}", net_name, batch * factor


def small(batch):
    return max(1, batch // SHARE)


def steps():
    for name, net_name, batch in step_names():
        attempt(f"{name}, eager", measure_eager, net_name, small(batch))
        attempt(f"{name}, captured", measure_captured, net_name, small(batch))


def compiled():
    for name, net_name, batch in step_names():
        mode = "reduce-overhead" if DEVICE == "cuda" else "default"
        attempt(f"{name}, compiled", measure_compiled, net_name, small(batch), mode)
        torch._dynamo.reset()


if __name__ == "__main__":
    torch.manual_seed(0)
    allow_tf32(False)
    {"rows": rows, "steps": steps, "compiled": compiled}[options.what]()
