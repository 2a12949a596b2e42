"""Rows of the vocabulary beside PyTorch: both in one process, on one thread, in turn.

    PYTHONPATH=bindings/python TT_LIBRARY=build/libtt.so taskset -c 0 \\
        python bench/vocabulary.py [-n 15] [--match fft]

Prints a table: the median ratio of PyTorch's time by tt's (above 1 tt is faster) and the median
time of one call of each, in ms. Times are those of the processor, which other programs disturb
less. """
import argparse
import gc
import statistics
import time

ROWS = {}


def row(name):
    def add(make):
        ROWS[name] = make
        return make

    return add


def data(t, *shape, dtype="float32", seed=0):
    """Equal numbers for both."""
    import numpy

    rng = numpy.random.default_rng(seed)
    return t.from_numpy(rng.standard_normal(shape).astype(dtype))


def step(t, module, *inputs, pick=lambda y: y):
    """Forward and backward."""

    def run():
        module.zero_grad()
        pick(module(*inputs)).sum().backward()

    return run


@row("lstm_fb 64 × 32 × 256")
def _(t):
    return step(t, t.nn.LSTM(256, 256), data(t, 64, 32, 256), pick=lambda y: y[0])


@row("gru_fb 64 × 32 × 256")
def _(t):
    return step(t, t.nn.GRU(256, 256), data(t, 64, 32, 256), pick=lambda y: y[0])


def encoder(t):
    layer = t.nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True)
    return t.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


@row("transformer encoder, forward, 8 × 128 × 256, 2 layers")
def _(t):
    module, x = encoder(t).eval(), data(t, 8, 128, 256)

    def run():
        with t.no_grad():
            module(x)

    return run


@row("transformer encoder, step")
def _(t):
    return step(t, encoder(t), data(t, 8, 128, 256))


for k in (10, 12, 14, 16, 18, 20):

    @row(f"fft 2^{k}, complex64")
    def _(t, n=2**k):
        x = t.complex(data(t, n), data(t, n, seed=1))
        return lambda: t.fft.fft(x)


@row("fft 64 × 4096, complex64")
def _(t):
    x = t.complex(data(t, 64, 4096), data(t, 64, 4096, seed=1))
    return lambda: t.fft.fft(x)


@row("rfft 64 × 4096")
def _(t):
    x = data(t, 64, 4096)
    return lambda: t.fft.rfft(x)


def positive(x):
    return x @ x.mT + x.shape[-1] * 1.0 * x.new_ones(x.shape[-1]).diag()


for shape in ((512, 512), (1000, 16, 16)):
    text = " × ".join(map(str, shape))

    @row(f"cholesky {text}")
    def _(t, shape=shape):
        x = positive(data(t, *shape))
        return lambda: t.linalg.cholesky(x)

    @row(f"lu {text}")
    def _(t, shape=shape):
        x = data(t, *shape)
        return lambda: t.linalg.lu_factor(x)

    @row(f"qr {text}")
    def _(t, shape=shape):
        x = data(t, *shape)
        return lambda: t.linalg.qr(x)

    @row(f"svd {text}")
    def _(t, shape=shape):
        x = data(t, *shape)
        return lambda: t.linalg.svd(x)

    @row(f"eigh {text}")
    def _(t, shape=shape):
        x = positive(data(t, *shape))
        return lambda: t.linalg.eigh(x)

    @row(f"inv {text}")
    def _(t, shape=shape):
        x = positive(data(t, *shape))
        return lambda: t.linalg.inv(x)

    @row(f"solve {text}")
    def _(t, shape=shape):
        x, b = positive(data(t, *shape)), data(t, *shape, seed=1)
        return lambda: t.linalg.solve(x, b)


@row("cdist 4096 × 64")
def _(t):
    x = data(t, 4096, 64)
    return lambda: t.cdist(x, x)


@row("median 10^6")
def _(t):
    x = data(t, 10**6)
    return lambda: t.median(x)


@row("median 1000 × 1000, dim 1")
def _(t):
    x = data(t, 1000, 1000)
    return lambda: t.median(x, 1)


@row("quantile 10^6")
def _(t):
    x = data(t, 10**6)
    return lambda: t.quantile(x, 0.3)


@row("kthvalue 10^6")
def _(t):
    x = data(t, 10**6)
    return lambda: t.kthvalue(x, 1000)


for reduce in ("sum", "prod", "amax", "mean"):

    @row(f"scatter_reduce {reduce} 10^6")
    def _(t, reduce=reduce):
        x, target = data(t, 10**6), data(t, 1000)
        index = (data(t, 10**6, seed=2).abs() * 100).to(t.int64).clamp(0, 999)
        return lambda: t.scatter_reduce(target, 0, index, x, reduce)


@row("embedding_bag 10^5 × 64, 4096 bags of 20")
def _(t):
    weight = data(t, 10**5, 64)
    index = (data(t, 4096, 20).abs() * 30000).to(t.int64).clamp(0, 10**5 - 1)
    return lambda: t.nn.functional.embedding_bag(index, weight)


@row("ctc_loss 100 × 16 × 30, step")
def _(t):
    x = data(t, 100, 16, 30).log_softmax(2).detach().requires_grad_()
    target = (data(t, 16, 20).abs() * 10).to(t.int64).clamp(1, 29)
    full, part = t.full((16,), 100, dtype=t.int64), t.full((16,), 20, dtype=t.int64)

    def run():
        x.grad = None
        t.nn.functional.ctc_loss(x, target, full, part).backward()

    return run


@row("unfold (im2col) 8 × 32 × 64 × 64, 3 × 3")
def _(t):
    x = data(t, 8, 32, 64, 64)
    return lambda: t.nn.functional.unfold(x, 3, padding=1)


@row("max_pool3d 4 × 16 × 32^3, 2")
def _(t):
    x = data(t, 4, 16, 32, 32, 32)
    return lambda: t.nn.functional.max_pool3d(x, 2)


def mlp(t):
    nn = t.nn
    return nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 10))


@row("per-sample gradients, 128 × MLP")
def _(t):
    module, x = mlp(t), data(t, 128, 64)
    params = {name: p.detach() for name, p in module.named_parameters()}

    def loss(params, x):
        y = t.func.functional_call(module, params, (x.unsqueeze(0),))
        return (y * y).sum()

    each = t.func.vmap(t.func.grad(loss), (None, 0))
    return lambda: each(params, x)


@row("jvp, MLP of 128 rows")
def _(t):
    module, x = mlp(t), data(t, 128, 64)
    return lambda: t.func.jvp(module, (x,), (x,))


def batches(t, workers):
    x, y = data(t, 10**5, 32), t.arange(10**5)
    kit = t.utils.data
    loader = kit.DataLoader(
        kit.TensorDataset(x, y), batch_size=256, shuffle=True, num_workers=workers
    )

    def run():
        for _ in loader:
            pass

    return run


@row("DataLoader 10^5 samples, 0 workers")
def _(t):
    return batches(t, 0)


def timed(run, calls):
    begin = time.process_time()
    for _ in range(calls):
        run()
    return (time.process_time() - begin) / calls * 1e3


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("-n", type=int, default=15)
    parse.add_argument("--match", default="")
    options = parse.parse_args()
    import torch

    import tt

    for t in (tt, torch):
        t.set_num_threads(1)
        t.manual_seed(0)
    print("| work | ratio | tt ms | PyTorch ms |\n|---|---|---|---|")
    for name, make in ROWS.items():
        if options.match not in name:
            continue
        try:
            ours, theirs = make(tt), make(torch)
            once = max(timed(ours, 2), timed(theirs, 2), 1e-3)
            calls = max(1, min(200, int(20 / once)))
            pairs = [(timed(ours, calls), timed(theirs, calls)) for _ in range(options.n)]
        except Exception as error:
            print(f"| {name} | {type(error).__name__}: {str(error)[:80]} | | |", flush=True)
            continue
        ratio = statistics.median(b / a for a, b in pairs)
        middle = [statistics.median(x) for x in zip(*pairs)]
        print(f"| {name} | {ratio:.2f} | {middle[0]:.3g} | {middle[1]:.3g} |", flush=True)
        gc.collect()


if __name__ == "__main__":
    main()
