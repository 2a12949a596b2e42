"""Rows of the vocabulary beside PyTorch: both in one process, on one thread, in turn.

    PYTHONPATH=bindings/python TT_LIBRARY=build/libtt.so taskset -c 0 \\
        python bench/vocabulary.py [-n 15] [--match fft] [--page HOST]

Prints a table, or with --page all of a page of docs/benchmarks: the median ratio of PyTorch's time
by tt's (above 1 tt is faster) and the median time of one call of each, in ms. Times are those of
the processor, which other programs disturb less; of rows with workers they are times of the clock.
"""
import argparse
import contextlib
import gc
import os
import statistics
import time
import warnings

ROWS = {}
BY_CLOCK = set()  # names of rows whose work is not this thread's alone


def row(name, by_clock=False):
    def add(make):
        ROWS[name] = make
        if by_clock:
            BY_CLOCK.add(name)
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

    @row(f"svdvals {text}")
    def _(t, shape=shape):
        x = data(t, *shape)
        return lambda: t.linalg.svdvals(x)

    @row(f"eigvalsh {text}")
    def _(t, shape=shape):
        x = positive(data(t, *shape))
        return lambda: t.linalg.eigvalsh(x)

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

    @row(f"eigvals {text}")
    def _(t, shape=shape):
        x = data(t, *shape)
        return lambda: t.linalg.eigvals(x)

    @row(f"eig {text}")
    def _(t, shape=shape):
        x = data(t, *shape)
        return lambda: t.linalg.eig(x)

    for dtype in ("float32", "float64"):
        kind = "complex64" if dtype == "float32" else "complex128"
        for name in ("lu_factor", "qr", "svd", "svdvals", "eigvalsh", "eigh", "eigvals", "eig"):

            @row(f"{name} {text}, {kind}")
            def _(t, shape=shape, dtype=dtype, name=name):
                x = t.complex(*(data(t, *shape, dtype=dtype, seed=seed) for seed in (0, 1)))
                if name in ("eigvalsh", "eigh"):
                    x = x + x.mH
                f = getattr(t.linalg, name)
                return lambda: f(x)


@row("cdist 4096 × 64")
def _(t):
    x = data(t, 4096, 64)
    return lambda: t.cdist(x, x)


def slopes_of(t, f, *inputs):
    """The gradients alone."""
    for x in inputs:
        x.requires_grad_()
    y = f(*inputs)
    g = t.ones_like(y.detach())
    return lambda: t.autograd.grad(y, inputs, g, retain_graph=True)


for order in (0.0, 1.0, 1.5, 2.0, float("inf")):
    for name in ("pdist", "cdist"):
        for width in (8, 64):
            for work in ("", ", gradient"):

                @row(f"{name} of order {order:g}, 300 × {width}{work}")
                def _(t, name=name, order=order, width=width, work=work):
                    x, y = data(t, 300, width), data(t, 300, width, seed=1)
                    f = lambda x: t.nn.functional.pdist(x, order)  # noqa: E731
                    if name == "cdist":
                        exact = "donot_use_mm_for_euclid_dist"
                        f = lambda x: t.cdist(x, y, order, exact)  # noqa: E731
                    return slopes_of(t, f, x) if work else lambda: f(x)


for order in (0.5, 3.0, 4.0):
    for work in ("", ", gradient"):

        @row(f"vector_norm of order {order:g}, 1000 × 1000, dim 1{work}")
        def _(t, order=order, work=work):
            x = data(t, 1000, 1000)
            f = lambda x: t.linalg.vector_norm(x, order, 1)  # noqa: E731
            return slopes_of(t, f, x) if work else lambda: f(x)


def counted(t, name, n):
    """One call of an operator that counts, or that shuffles."""
    x = data(t, n)
    if name == "randperm":
        return lambda: t.randperm(n)
    if name == "histogram":
        return lambda: t.histogram(x, 100)
    if name == "bincount":
        whole = (x.abs() * 100).to(t.int64)
        return lambda: t.bincount(whole)
    runs = (x.abs() * 2).floor()
    if name == "unique_consecutive":
        return lambda: t.unique_consecutive(runs)
    return lambda: t.unique_consecutive(runs, return_inverse=True, return_counts=True)


for n in (1000, 10**5, 10**6):

    @row(f"randperm {n}")
    def _(t, n=n):
        return counted(t, "randperm", n)


for name in ("histogram", "bincount", "unique_consecutive", "unique_consecutive, inverse, counts"):

    @row(f"{name} 10^6")
    def _(t, name=name):
        return counted(t, name, 10**6)


for n in (1000, 10**5):

    @row(f"take {n} of a transposed 1000 × 1000")
    def _(t, n=n):
        x, index = data(t, 1000, 1000).t(), (data(t, n).abs() * 2e5).to(t.int64)
        return lambda: t.take(x, index)

    @row(f"cross {n} × 3")
    def _(t, n=n):
        x, y = data(t, n, 3), data(t, n, 3, seed=1)
        return lambda: t.linalg.cross(x, y)


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


@row("mode 1000 × 1000, dim 1")
def _(t):
    x = (data(t, 1000, 1000) * 10).to(t.int64)
    return lambda: t.mode(x, 1)


@row("nanquantile 1000 × 1000, 3 ranks")
def _(t):
    x, q = data(t, 1000, 1000), t.tensor([0.25, 0.5, 0.75])
    return lambda: t.nanquantile(x, q, 1)


for reduce in ("sum", "prod", "amax", "amin", "mean"):

    @row(f"scatter_reduce {reduce} 10^6")
    def _(t, reduce=reduce):
        x, target = data(t, 10**6), data(t, 1000)
        index = (data(t, 10**6, seed=2).abs() * 100).to(t.int64).clamp(0, 999)
        return lambda: t.scatter_reduce(target, 0, index, x, reduce)


@row("scatter_reduce amax 10^6, step")
def _(t):
    x, target = data(t, 10**6).requires_grad_(), data(t, 1000)
    index = (data(t, 10**6, seed=2).abs() * 100).to(t.int64).clamp(0, 999)

    def run():
        x.grad = None
        t.scatter_reduce(target, 0, index, x, "amax").sum().backward()

    return run


for reduce in ("prod", "amin"):

    @row(f"index_reduce {reduce} 4096 × 64")
    def _(t, reduce=reduce):
        x, target = data(t, 4096, 64), data(t, 512, 64)
        index = (data(t, 4096, seed=2).abs() * 100).to(t.int64).clamp(0, 511)
        return lambda: t.index_reduce(target, 0, index, x, reduce)


def bags(t):
    """A table in the library's own memory, whose rows begin at lines of the cache: NumPy's begin
    anywhere."""
    index = (data(t, 4096, 20).abs() * 30000).to(t.int64).clamp(0, 10**5 - 1)
    return data(t, 10**5, 64).clone(), index


for mode in ("mean", "sum", "max"):

    @row(f"embedding_bag {mode} 10^5 × 64, 4096 bags of 20")
    def _(t, mode=mode):
        weight, index = bags(t)
        return lambda: t.nn.functional.embedding_bag(index, weight, mode=mode)


# Short rows, and operators that a sweep over 150 of them found slow.
for width in (10, 17, 24, 31, 49):

    @row(f"product with a column, 20000 × {width}")
    def _(t, width=width):
        x, column = data(t, 20000, width), data(t, 20000, 1)
        return lambda: x * column

    for name in ("sum", "amax", "argmax", "cumsum", "cumprod", "log_softmax"):

        @row(f"{name} 20000 × {width}, dim 1")
        def _(t, name=name, width=width):
            x = data(t, 20000, width)
            return lambda: getattr(t, name)(x, 1)

    @row(f"layer_norm 20000 × {width}")
    def _(t, width=width):
        x = data(t, 20000, width)
        return lambda: t.nn.functional.layer_norm(x, (width,))


def narrow(t, dtype, seed=0):
    return (data(t, 10**6, seed=seed).abs() * 30 + 1).to(getattr(t, dtype))


for dtype in ("uint8", "int16", "bfloat16", "float16"):
    for name in ("add", "mul", "lt", "maximum", "floor_divide"):

        @row(f"{name} of {dtype} 10^6")
        def _(t, name=name, dtype=dtype):
            x, y = narrow(t, dtype), narrow(t, dtype, seed=1)
            return lambda: getattr(t, name)(x, y)

    @row(f"product of {dtype} with a number 10^6")
    def _(t, dtype=dtype):
        x = narrow(t, dtype)
        return lambda: x * 3


@row("glu 1024 × 1024, step")
def _(t):
    x = data(t, 1024, 1024).requires_grad_()

    def run():
        x.grad = None
        t.nn.functional.glu(x).sum().backward()

    return run


@row("topk 100 of 10^6")
def _(t):
    x = data(t, 10**6)
    return lambda: t.topk(x, 100)


def sample(t, mode, wanted=()):
    """grid_sample of small images; wanted: gradients of which arguments, instead of values."""
    image, grid = data(t, 4, 8, 64, 64), (data(t, 4, 64, 64, 2) * 0.5).clamp(-1, 1)
    run = lambda: t.nn.functional.grid_sample(image, grid, mode, align_corners=False)  # noqa: E731
    if not wanted:
        return run
    inputs = [(image, grid)[i].requires_grad_() for i in wanted]
    y, g = run(), data(t, 4, 8, 64, 64, seed=1)
    return lambda: t.autograd.grad(y, inputs, g, retain_graph=True)


for mode in ("bilinear", "nearest", "bicubic"):

    @row(f"grid_sample {mode} 4 × 8 × 64²")
    def _(t, mode=mode):
        return sample(t, mode)

    for text, wanted in (("image", (0,)), ("positions", (1,)), ("both", (0, 1))):

        @row(f"grid_sample {mode} 4 × 8 × 64², gradient of {text}")
        def _(t, mode=mode, wanted=wanted):
            return sample(t, mode, wanted)


for name in ("remainder", "fmod", "floor_divide"):

    @row(f"{name} 10^6")
    def _(t, name=name):
        x, y = data(t, 10**6), data(t, 10**6, seed=1)
        return lambda: getattr(t, name)(x, y)


def special(t, name):
    """One call of a row of special functions."""
    x, y = data(t, 10**6), data(t, 10**6, seed=1)
    size = x.abs() + 0.1
    if name == "gelu of float64":
        wide = x.double()
        return lambda: t.nn.functional.gelu(wide)
    if name == "digamma, step":
        size.requires_grad_()
        return lambda: t.digamma(size).sum().backward()
    if name == "pow of a number":
        return lambda: size**2.5
    if name == "max of float64":
        wide = x.double()
        return lambda: wide.max()
    if name == "dot of every second element":
        return lambda: t.dot(x[::2], y[::2])
    if name in ("erfinv", "ndtri"):
        inside = t.rand(10**6)
        return lambda: getattr(t.special, name)(inside)
    if name == "ndtr":
        return lambda: t.special.ndtr(x)
    return lambda: t.lgamma(x)


for name in (
    "pow of a number",
    "lgamma",
    "digamma, step",
    "ndtr",
    "erfinv",
    "ndtri",
    "gelu of float64",
    "max of float64",
    "dot of every second element",
):

    @row(f"{name} 10^6")
    def _(t, name=name):
        return special(t, name)


# Elementwise functions: name, dtype, the function of the library, 10^6 numbers of (low, high).
FUNCTIONS = (
    ("special.i0", "float32", lambda t, x: t.special.i0(x), -6, 10),
    ("special.i1e", "float32", lambda t, x: t.special.i1e(x), -6, 10),
    ("special.bessel_j0", "float32", lambda t, x: t.special.bessel_j0(x), 0, 10),
    ("special.bessel_y1", "float64", lambda t, x: t.special.bessel_y1(x), 0, 10),
    ("special.modified_bessel_k0", "float32", lambda t, x: t.special.modified_bessel_k0(x), 0, 10),
    ("special.airy_ai", "float32", lambda t, x: t.special.airy_ai(x), -6, 10),
    ("special.erfcx", "float32", lambda t, x: t.special.erfcx(x), -6, 10),
    ("special.log_ndtr", "float32", lambda t, x: t.special.log_ndtr(x), -6, 10),
    ("special.ndtr", "float64", lambda t, x: t.special.ndtr(x), -6, 10),
    ("special.ndtri", "float64", lambda t, x: t.special.ndtri(x), 0, 1),
    ("erfinv", "float64", lambda t, x: t.erfinv(x), -1, 1),
    ("erf", "float32", lambda t, x: t.erf(x), -6, 6),
    ("erfc", "float64", lambda t, x: t.special.erfc(x), -6, 6),
    ("sinc", "float32", lambda t, x: t.sinc(x), -6, 6),
    ("tanhshrink", "float32", lambda t, x: t.nn.functional.tanhshrink(x), -6, 6),
    ("tanhshrink", "bfloat16", lambda t, x: t.nn.functional.tanhshrink(x), -6, 6),
    (
        "legendre_polynomial_p(x, 5)",
        "float32",
        lambda t, x: t.special.legendre_polynomial_p(x, 5),
        -1,
        1,
    ),
    ("logsigmoid", "float64", lambda t, x: t.nn.functional.logsigmoid(x), -6, 6),
    ("elu", "float64", lambda t, x: t.nn.functional.elu(x), -6, 6),
    ("remainder by 0.7", "float64", lambda t, x: x % 0.7, -6, 6),
    ("floor_divide by 0.7", "float64", lambda t, x: x // 0.7, -6, 6),
    ("clamp(x, 20, 60)", "int8", lambda t, x: t.clamp(x, 20, 60), 1, 100),
    ("clamp(x, 20, 60)", "int16", lambda t, x: t.clamp(x, 20, 60), 1, 100),
    ("relu", "uint8", lambda t, x: t.relu(x), 1, 100),
    ("sign", "int16", lambda t, x: t.sign(x), -100, 100),
    ("sqrt", "bfloat16", lambda t, x: t.sqrt(x), 0.1, 10),
    ("rsqrt", "float16", lambda t, x: t.rsqrt(x), 0.1, 10),
    ("round", "float16", lambda t, x: t.round(x), -6, 6),
    ("floor", "bfloat16", lambda t, x: t.floor(x), -6, 6),
    ("clamp(x, -1, 1)", "float16", lambda t, x: t.clamp(x, -1, 1), -6, 6),
)
for name, dtype, call, low, high in FUNCTIONS:

    @row(f"{name} of {dtype}, 10^6")
    def _(t, dtype=dtype, call=call, low=low, high=high):
        x = (t.rand(10**6, dtype=t.float64) * (high - low) + low).to(getattr(t, dtype))
        return lambda: call(t, x)


for name in ("cummax", "cummin"):

    @row(f"{name} 100000 × 10, dim 1")
    def _(t, name=name):
        x = data(t, 100000, 10)
        return lambda: getattr(t, name)(x, 1)


for name in ("vector_norm", "nansum", "var, step", "logaddexp", "pow"):

    @row(f"{name} 2048 × 768")
    def _(t, name=name):
        x, y = data(t, 2048, 768), data(t, 2048, 768, seed=1)
        if name == "vector_norm":
            return lambda: t.linalg.vector_norm(x, dim=1)
        if name == "nansum":
            return lambda: t.nansum(x, 1)
        if name == "logaddexp":
            return lambda: t.logaddexp(x, y)
        if name == "pow":
            size = x.abs()
            return lambda: size**y
        x.requires_grad_()

        def run():
            x.grad = None
            x.var(1).sum().backward()

        return run


@row("embedding_bag sum with weights, offsets")
def _(t):
    weight, index = bags(t)
    factors = data(t, index.numel())
    starts = t.arange(0, index.numel(), 20)
    f = t.nn.functional.embedding_bag
    return lambda: f(index.ravel(), weight, starts, mode="sum", per_sample_weights=factors)


@row("embedding_bag mean, step")
def _(t):
    weight, index = bags(t)
    weight.requires_grad_()

    def run():
        weight.grad = None
        t.nn.functional.embedding_bag(index, weight).sum().backward()

    return run


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


for layout in ("", ", channels last"):

    @row(f"max_pool2d 8 × 64 × 112², 3 × 3 by 2{layout}, step")
    def _(t, layout=layout):
        x = data(t, 8, 64, 112, 112)
        if layout:
            x = x.contiguous(memory_format=t.channels_last)
        x = x.detach().requires_grad_()
        pool = t.nn.functional.max_pool2d
        g = t.ones_like(pool(x, 3, 2, 1).detach())
        return lambda: t.autograd.grad(pool(x, 3, 2, 1), x, g)


for stride in (1, 2):
    for work in ("forward", "step"):

        @row(f"conv2d 8 × 128 × 56², 3 × 3 by {stride}, 32 groups, {work}")
        def _(t, stride=stride, work=work):
            module, x = t.nn.Conv2d(128, 128, 3, stride, 1, groups=32), data(t, 8, 128, 56, 56)
            if work == "step":
                return step(t, module, x.requires_grad_())
            module.requires_grad_(False)
            return lambda: module(x)


for channels, size, window, stride in (
    (144, 56, 3, 1),
    (384, 14, 3, 1),
    (240, 28, 5, 2),
    (96, 56, 7, 1),
):
    for layout in ("", ", channels last"):
        for work in ("forward", "step"):
            text = f"{channels} × {size}², {window} × {window} by {stride}{layout}, {work}"

            @row(f"depthwise conv2d 8 × {text}")
            def _(t, c=channels, n=size, k=window, stride=stride, layout=layout, work=work):
                module, x = t.nn.Conv2d(c, c, k, stride, k // 2, groups=c), data(t, 8, c, n, n)
                if layout:
                    x = x.contiguous(memory_format=t.channels_last)
                if work == "step":
                    return step(t, module, x.requires_grad_())
                module.requires_grad_(False)
                return lambda: module(x)


def mlp(t):
    nn = t.nn
    return nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 10))


def resized(t, mode, size, antialias=False, bytes=False, last=False, shape=(8, 3, 512, 512)):
    x = data(t, *shape)
    if bytes:
        x = (x.abs() * 80).clamp(0, 255).to(t.uint8)
    if last:
        x = x.contiguous(memory_format=t.channels_last)
    f = t.nn.functional.interpolate
    return x, lambda: f(x, size=(size, size), mode=mode, antialias=antialias)


for mode, antialias, size in (
    ("bilinear", False, 768),
    ("bicubic", False, 768),
    ("bicubic", False, 224),
    ("bilinear", True, 224),
    ("bicubic", True, 224),
    ("bicubic", True, 768),
):
    smooth = " antialias" if antialias else ""
    for kind in ("", ", channels last", ", uint8"):

        @row(f"interpolate {mode}{smooth} 8 × 3 × 512² to {size}²{kind}")
        def _(t, mode=mode, size=size, antialias=antialias, kind=kind):
            return resized(t, mode, size, antialias, "uint8" in kind, "last" in kind)[1]


for antialias in (False, True):

    @row(f"interpolate bicubic{' antialias' if antialias else ''} 2 × 3 × 512² to 224², step")
    def _(t, antialias=antialias):
        x, run = resized(t, "bicubic", 224, antialias, shape=(2, 3, 512, 512))
        x.requires_grad_()

        def step():
            x.grad = None
            run().sum().backward()

        return step


def gradients_of_samples(t, module, x):
    params = {name: p.detach() for name, p in module.named_parameters()}

    def loss(params, x):
        y = t.func.functional_call(module, params, (x.unsqueeze(0),))
        return (y * y).sum()

    each = t.func.vmap(t.func.grad(loss), (None, 0))
    return lambda: each(params, x)


@row("per-sample gradients, 128 × MLP")
def _(t):
    return gradients_of_samples(t, mlp(t), data(t, 128, 64))


@row("jvp, MLP of 128 rows")
def _(t):
    module, x = mlp(t), data(t, 128, 64)
    return lambda: t.func.jvp(module, (x,), (x,))


def cnn(t):
    """Two convolutions with batch norm and max pooling, without gradients, and 16 images."""
    nn = t.nn
    layers = []
    for inputs, outputs in ((3, 16), (16, 32)):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]
        layers.append(nn.MaxPool2d(2))
    module = nn.Sequential(*layers, nn.Flatten(), nn.Linear(32 * 8 * 8, 10)).requires_grad_(False)
    return module, data(t, 16, 3, 32, 32)


@row("CNN of 16 images, forward")
def _(t):
    module, x = cnn(t)
    return lambda: module(x)


@row("jvp, CNN of 16 images")
def _(t):
    module, x = cnn(t)
    module.eval()  # PyTorch refuses to write running statistics here
    return lambda: t.func.jvp(module, (x,), (x,))


@row("per-sample gradients, 16 × CNN")
def _(t):
    nn = t.nn
    layers = [nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    module = nn.Sequential(*layers, nn.Linear(8 * 16 * 16, 10))
    return gradients_of_samples(t, module, data(t, 16, 3, 32, 32))


@row("ensemble of 8 MLPs, 32 rows")
def _(t):
    modules, x = [mlp(t) for _ in range(8)], data(t, 32, 64)
    params, _ = t.func.stack_module_state(modules)
    params = {name: p.detach() for name, p in params.items()}
    each = t.func.vmap(lambda p, x: t.func.functional_call(modules[0], p, (x,)), (0, None))
    return lambda: each(params, x)


@row("jacrev, MLP of 1 row")
def _(t):
    module, x = mlp(t).requires_grad_(False), data(t, 64)
    jacobian = t.func.jacrev(module)
    return lambda: jacobian(x)


@row("jacfwd, MLP of 1 row")
def _(t):
    module, x = mlp(t).requires_grad_(False), data(t, 64)
    jacobian = t.func.jacfwd(module)
    return lambda: jacobian(x)


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


@row("DataLoader 10^5 samples, 2 workers", by_clock=True)
def _(t):
    return batches(t, 2)


def gpt(t, context):
    """A training step of two blocks of width 256 over 4 × 128 tokens."""
    nn = t.nn
    layer = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True, norm_first=True)
    blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    embed, head = nn.Embedding(256, 256), nn.Linear(256, 256)
    parts = nn.ModuleList([embed, blocks, head])
    optimizer = t.optim.AdamW(parts.parameters(), lr=1e-4)
    tokens = (data(t, 4, 129).abs() * 60).to(t.int64).clamp(0, 255)
    x, y = tokens[:, :-1].contiguous(), tokens[:, 1:].reshape(-1)
    mask = nn.Transformer.generate_square_subsequent_mask(128)

    def run():
        optimizer.zero_grad()
        with context():
            logits = head(blocks(embed(x), mask=mask, is_causal=True))
            loss = nn.functional.cross_entropy(logits.reshape(-1, 256), y)
        loss.backward()
        optimizer.step()

    return run


@row("GPT step, float32")
def _(t):
    return gpt(t, contextlib.nullcontext)


@row("GPT step under autocast, bfloat16")
def _(t):
    return gpt(t, lambda: t.autocast("cpu", dtype=t.bfloat16))


def timed(run, calls, clock=time.process_time):
    begin = clock()
    for _ in range(calls):
        run()
    return (clock() - begin) / calls * 1e3


# By what a row loses, where it does: the beginning of its name and the reason.
LAPACK = "LAPACK: OpenBLAS 0.3.21 runs SSE3 kernels on processors that it does not know"
LIMITS = {
    "cholesky": LAPACK,
    "eig ": "OpenBLAS's Hessenberg form and its QR steps",
    "eigvals ": "OpenBLAS's Hessenberg form and its QR steps",
    "svdvals": "Jacobi in double precision, PyTorch's in single",
    "embedding_bag": "memory: rows at random places",
    "ctc_loss": "logarithms in double precision",
    "mode": "the row is sorted",
    "randperm": "sorts 64-bit keys, so that devices agree",
    "grid_sample": "gathers of single elements",
    "glu": "four passes, and a join of both halves",
}
PAGE = """# The vocabulary beside PyTorch on {host}
`bench/vocabulary.py -n {n}`, {date}, one thread (`taskset`), float32 unless said, PyTorch {torch},
both in one process and in turn; load {load} when it began. The ratio is the median of PyTorch's
time by tt's, above 1 tt is faster; times are medians of one call. A limit is given where tt is
slower.

    PYTHONPATH=bindings/python TT_LIBRARY=build/libtt.so taskset -c 0 \\
        python bench/vocabulary.py -n {n} --page "{host}" > docs/benchmarks/xeon-vocabulary.md
"""


def limit(name, ratio):
    """Why tt is slower in this row."""
    if ratio >= 1:
        return ""
    known = [text for start, text in LIMITS.items() if name.startswith(start)]
    return known[0] if known else "not examined"


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("-n", type=int, default=15)
    parse.add_argument("--match", default="")
    parse.add_argument("--page", metavar="HOST")
    options = parse.parse_args()
    warnings.simplefilter("ignore")
    import tiles  # before torch
    import torch

    import tt

    for t in (tt, torch):
        t.set_num_threads(1)
        t.manual_seed(0)
    if options.page:
        known = {"host": options.page, "n": options.n, "torch": torch.__version__.split("+")[0]}
        load = round(os.getloadavg()[0])
        print(PAGE.format(**known, load=load, date=time.strftime("%Y-%m-%d")))
    print("| work | ratio | tt ms | PyTorch ms | limit |\n|---|---|---|---|---|")
    for name, make in ROWS.items():
        if options.match not in name:
            continue
        try:
            ours, theirs = make(tt), make(torch)
            clock = time.perf_counter if name in BY_CLOCK else time.process_time
            for first in (ours, theirs):  # pages and caches that later calls find
                first()
            once = max(timed(ours, 2, clock), timed(theirs, 2, clock), 1e-3)
            calls = max(1, min(200, int(20 / once)))
            pairs = [
                (timed(ours, calls, clock), timed(theirs, calls, clock)) for _ in range(options.n)
            ]
        except Exception as error:
            print(f"| {name} | {type(error).__name__}: {str(error)[:80]} | | | |", flush=True)
            continue
        ratio = statistics.median(b / a for a, b in pairs)
        middle = [statistics.median(x) for x in zip(*pairs)]
        times = f"{middle[0]:.3g} | {middle[1]:.3g}"
        print(f"| {name} | {ratio:.2f} | {times} | {limit(name, ratio)} |", flush=True)
        gc.collect()


if __name__ == "__main__":
    main()
