"""Steps of training, and a chain of five elementwise operators on 10^6 numbers: tt eager and
compiled beside PyTorch, torch.compile and JAX's jit.

    TT_LIBRARY=build/libtt.so taskset -c 1 python bench/steps.py [MODEL…]

Needs torch and jax. All have the same weights and inputs, SGD with a learning rate of 0 (numbers do
not become denormal), and one thread; the losses of the first step must agree. Each compiles what it
is made for: tt and JAX the whole step, torch.compile the model with its loss. Times are medians of
rounds in which all take turns in one process, in microseconds of the processor.
"""
from __future__ import annotations

import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../bindings/python"))
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"

import tiles  # before torch

import jax
import jax.numpy as jnp
import numpy as np
import torch

import tt

ROUNDS = 9
ROUND_NS = 200_000_000
WIDTH, HEADS, TOKENS, BLOCKS = 256, 8, 128, 4
CHAIN = "chain"


def dense(n, *sizes):
    layers = []
    for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
        layers += [n.ReLU()] * (i > 0) + [n.Linear(a, b)]
    return layers


def stage(n, a, b, kernel, padding):
    return [n.Conv2d(a, b, kernel, padding=padding), n.ReLU(), n.MaxPool2d(2)]


def gpt(n, lib):
    """The GPT of bench/models.c."""
    F = n.functional

    class Block(n.Module):
        def __init__(self):
            super().__init__()
            self.ln1, self.ln2 = n.LayerNorm(WIDTH), n.LayerNorm(WIDTH)
            self.qkv, self.proj = n.Linear(WIDTH, 3 * WIDTH), n.Linear(WIDTH, WIDTH)
            self.f1, self.f2 = n.Linear(WIDTH, 4 * WIDTH), n.Linear(4 * WIDTH, WIDTH)

        def forward(self, x):
            b, t, w = x.shape
            q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, HEADS, w // HEADS).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(y.transpose(1, 2).reshape(b, t, w))
            return x + self.f2(F.gelu(self.f1(self.ln2(x))))

    class Gpt(n.Module):
        def __init__(self):
            super().__init__()
            self.embed = n.Embedding(256, WIDTH)
            self.pos = n.Parameter(lib.randn(TOKENS, WIDTH) * 0.02)
            self.blocks = n.ModuleList([Block() for _ in range(BLOCKS)])
            self.ln, self.head = n.LayerNorm(WIDTH), n.Linear(WIDTH, 256)

        def forward(self, x):
            x = self.embed(x) + self.pos
            for b in self.blocks:
                x = b(x)
            return self.head(self.ln(x)).reshape(-1, 256)

    return Gpt()


MODELS = {
    "tiny": (lambda n, lib: n.Sequential(*dense(n, 8, 16, 16, 4)), (4, 8), 4),
    "mlp": (lambda n, lib: n.Sequential(*dense(n, 784, 512, 512, 10)), (128, 784), 10),
    "lenet": (
        lambda n, lib: n.Sequential(
            *stage(n, 3, 6, 5, 0), *stage(n, 6, 16, 5, 0), n.Flatten(), *dense(n, 400, 120, 84, 10)
        ),
        (64, 3, 32, 32),
        10,
    ),
    "cnn": (
        lambda n, lib: n.Sequential(
            *stage(n, 3, 32, 3, 1), *stage(n, 32, 64, 3, 1), n.Flatten(), *dense(n, 4096, 128, 10)
        ),
        (64, 3, 32, 32),
        10,
    ),
    "gpt": (gpt, None, 256),
}

# ---- JAX: parameters by PyTorch's names ----


def linear(p, name, x):
    return x @ p[name + ".weight"].T + p[name + ".bias"]


def norm(p, name, x):
    mean = x.mean(-1, keepdims=True)
    centered = x - mean
    var = (centered * centered).mean(-1, keepdims=True)
    return centered * jax.lax.rsqrt(var + 1e-5) * p[name + ".weight"] + p[name + ".bias"]


def jax_gpt(p, x):
    x = p["embed.weight"][x] + p["pos"]
    causal = jnp.tril(jnp.ones((TOKENS, TOKENS), bool))
    for i in range(BLOCKS):
        b = f"blocks.{i}."
        h = linear(p, b + "qkv", norm(p, b + "ln1", x))
        q, k, v = h.reshape(*x.shape[:2], 3, HEADS, -1).transpose(2, 0, 3, 1, 4)
        scores = q @ k.swapaxes(2, 3) * (WIDTH // HEADS) ** -0.5
        y = jax.nn.softmax(jnp.where(causal, scores, -jnp.inf), axis=-1) @ v
        x = x + linear(p, b + "proj", y.swapaxes(1, 2).reshape(x.shape))
        h = jax.nn.gelu(linear(p, b + "f1", norm(p, b + "ln2", x)), approximate=False)
        x = x + linear(p, b + "f2", h)
    return linear(p, "head", norm(p, "ln", x)).reshape(-1, 256)


def jax_sequential(layers, p, x):
    for i, layer in enumerate(layers):
        if isinstance(layer, torch.nn.Linear):
            x = linear(p, str(i), x)
        elif isinstance(layer, torch.nn.Conv2d):
            pad = [(n, n) for n in layer.padding]
            x = jax.lax.conv_general_dilated(x, p[f"{i}.weight"], (1, 1), pad)
            x = x + p[f"{i}.bias"][:, None, None]
        elif isinstance(layer, torch.nn.ReLU):
            x = jax.nn.relu(x)
        elif isinstance(layer, torch.nn.MaxPool2d):
            x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
        else:
            x = x.reshape(x.shape[0], -1)
    return x


def jax_step(model, weights, x, y):
    """A call of the compiled step, which gives the loss."""

    def loss_of(p):
        scores = jax_gpt(p, x) if "pos" in p else jax_sequential(list(model), p, x)
        logs = jax.nn.log_softmax(scores)
        return -logs[jnp.arange(len(y)), y].mean()

    @jax.jit
    def step(p):
        loss, grads = jax.value_and_grad(loss_of)(p)
        return loss, jax.tree_util.tree_map(lambda w, g: w - 0.0 * g, p, grads)

    state = {k: jnp.asarray(v) for k, v in weights.items()}

    def run():
        nonlocal state
        loss, state = step(state)
        jax.block_until_ready(state)
        return loss

    return run


# ---- tt and PyTorch ----


def step_of(lib, model, x, y, compiled=None):
    opt = lib.optim.SGD(model.parameters(), lr=0.0)
    criterion = lib.nn.CrossEntropyLoss()
    forward = compiled or (lambda: criterion(model(x), y))

    def step():
        opt.zero_grad()
        loss = forward()
        loss.backward()
        opt.step()
        return loss

    return step


def tt_compiled(model, x, y):
    opt = tt.optim.SGD(model.parameters(), lr=0.0)

    @tt.compile
    def step(x, y):
        opt.zero_grad()
        loss = tt.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        return loss.detach()

    return lambda: step(x, y)


def torch_compiled(model, x, y):
    criterion = torch.nn.CrossEntropyLoss()
    return torch.compile(lambda: criterion(model(x), y))


# ---- times ----


def per_call(f, calls):
    start = time.process_time_ns()
    for _ in range(calls):
        f()
    return (time.process_time_ns() - start) / calls


def compare(runs):
    """The median microseconds of each."""
    calls = [max(1, int(ROUND_NS / max(per_call(f, 3), 1))) for f in runs]
    rounds = [[per_call(f, n) for f, n in zip(runs, calls)] for _ in range(ROUNDS)]
    return [statistics.median(column) / 1e3 for column in zip(*rounds)]


def measured(name):
    """The microseconds of a step, by columns of the table."""
    make, shape, classes = MODELS[name]
    rng = np.random.default_rng(0)
    if shape:
        x = rng.standard_normal(shape, np.float32)
        y = rng.integers(0, classes, shape[0])
    else:
        x = rng.integers(0, 256, (8, TOKENS))
        y = rng.integers(0, 256, 8 * TOKENS)
    twins = [make(torch.nn, torch) for _ in range(2)]
    weights = {k: v.detach().numpy().copy() for k, v in twins[0].state_dict().items()}
    twins[1].load_state_dict(twins[0].state_dict())
    models = [make(tt.nn, tt) for _ in range(2)]
    for model in models:
        model.load_state_dict({k: tt.from_numpy(v.copy()) for k, v in weights.items()})
    ours = [tt.from_numpy(a) for a in (x, y)]
    theirs = [torch.from_numpy(a) for a in (x, y)]
    runs = [
        step_of(tt, models[0], *ours),
        tt_compiled(models[1], *ours),
        step_of(torch, twins[0], *theirs),
        step_of(torch, twins[1], *theirs, compiled=torch_compiled(twins[1], *theirs)),
        jax_step(twins[0], weights, jnp.asarray(x), jnp.asarray(y)),
    ]
    losses = [float(f()) for f in runs]
    assert np.allclose(losses, losses[0], rtol=1e-3), losses
    return compare(runs)


def chain(lib, x, y):
    """Five elementwise operators, those of bench/graphs.c."""
    return (lib.relu(x * y + x) - y) * 0.5


def measured_chain():
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(1_000_000, np.float32) for _ in range(2))
    # in each library's own memory: tt.compile copies what is not aligned to 64 bytes, as NumPy's
    ours = [tt.from_numpy(a).clone() for a in (x, y)]
    theirs = [torch.from_numpy(a).clone() for a in (x, y)]
    xla = [jnp.asarray(a) for a in (x, y)]
    compiled = tt.compile(lambda x, y: chain(tt, x, y))
    twin = torch.compile(lambda x, y: chain(torch, x, y))
    jitted = jax.jit(lambda x, y: (jax.nn.relu(x * y + x) - y) * 0.5)
    runs = [
        lambda: chain(tt, *ours),
        lambda: compiled(*ours),
        lambda: chain(torch, *theirs),
        lambda: twin(*theirs),
        lambda: jax.block_until_ready(jitted(*xla)),
    ]
    results = [np.asarray(f()) for f in runs]
    assert all(np.allclose(r, results[0], atol=1e-6) for r in results)
    return compare(runs)


def main():
    tt.set_num_threads(1)
    torch.set_num_threads(1)
    times = ["tt eager, µs", "tt.compile", "PyTorch eager", "torch.compile", "JAX jit"]
    ratios = ["PyTorch ÷ tt.compile", "torch.compile ÷ tt.compile", "JAX ÷ tt.compile"]
    print(f"| step | {' | '.join(times + ratios)} |")
    print("|---" * 9 + "|")
    for name in sys.argv[1:] or [*MODELS, CHAIN]:
        us = measured_chain() if name == CHAIN else measured(name)
        cells = " | ".join(f"{t:,.1f}" for t in us)
        quotients = " | ".join(f"{t / us[1]:.2f}" for t in us[2:])
        print(f"| {name} | {cells} | {quotients} |", flush=True)


if __name__ == "__main__":
    main()
