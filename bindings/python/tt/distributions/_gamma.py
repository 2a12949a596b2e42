"""Sampling of the gamma, Poisson, binomial and von Mises distributions, by rejection."""
from __future__ import annotations

from functools import wraps
from math import pi
from typing import Any, Callable

from .. import _ops as ops
from .._tensor import Tensor
from .._types import float64
from ..autograd import Function
from ..compiler import is_compiling, is_exporting
from ..library import custom_op, samplers

STEP = 1e-4  # of the difference that is dP(a, x)/da, relative to a


def sampler(schema: str) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """Makes a function of tensors, whose loop reads elements, an operator of the application while
    a function that calls it is recorded or exported: each run calls it."""

    def decorated(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        if schema not in samplers:
            samplers[schema] = custom_op(schema, function)
        operator = samplers[schema]

        @wraps(function)
        def draw(*tensors: Tensor) -> Tensor:
            recorded = is_compiling() or is_exporting()
            return operator(*tensors) if recorded else function(*tensors)

        return draw

    return decorated


def accepted(like: Tensor, draw: Callable[[Tensor], tuple[Tensor, Tensor]]) -> Tensor:
    """Returns a sample for each element, by rejection. draw(places) returns candidates for these
    indices of the flattened tensor and a bool for each: whether it is accepted. Rejected ones are
    drawn again."""
    samples = ops.empty(like.numel(), dtype=like.dtype, device=like.device)
    places = ops.arange(like.numel(), device=like.device)
    while places.numel():
        candidates, good = draw(places)
        samples[places[good]] = candidates[good]
        places = places[~good]
    return samples.reshape(like.shape)


@sampler("distributions_gamma(concentration: Tensor) -> Tensor")
def drawn_gamma(concentration: Tensor) -> Tensor:
    """Draws from Gamma(concentration, 1) by Marsaglia and Tsang's method."""
    alpha = concentration.detach().reshape(-1)
    small = alpha < 1
    d = ops.where(small, alpha + 1, alpha) - 1 / 3
    c = 1 / (9 * d).sqrt()

    def draw(places: Tensor) -> tuple[Tensor, Tensor]:
        x = ops.randn(places.shape, dtype=alpha.dtype, device=alpha.device)
        v = (1 + c[places] * x) ** 3
        u = ops.rand(places.shape, dtype=alpha.dtype, device=alpha.device)
        bound = 0.5 * x * x + d[places] * (1 - v + v.clamp(min=1e-38).log())
        return d[places] * v, (v > 0) & (u.log() < bound)

    samples = accepted(alpha, draw)
    u = 1 - ops.rand(alpha.shape, dtype=alpha.dtype, device=alpha.device)  # in (0, 1]
    samples = ops.where(small, samples * u ** (1 / alpha), samples)
    return samples.reshape(concentration.shape)


class StandardGamma(Function):
    """Draws from Gamma(a, 1). The gradient is the implicit -(dP/da)/(dP/dx), where P(a, x) is the
    cumulative distribution function."""

    @staticmethod
    def forward(ctx: Any, concentration: Tensor) -> Tensor:
        x = drawn_gamma(concentration)
        ctx.save_for_backward(concentration, x)
        return x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        concentration, x = ctx.saved_tensors
        a, y = concentration.detach().to(float64), x.detach().to(float64).clamp(min=1e-300)
        h = STEP * a
        lower = (ops.igamma(a + h, y) - ops.igamma(a - h, y)) / (2 * h)
        upper = (ops.igammac(a - h, y) - ops.igammac(a + h, y)) / (2 * h)
        slope = ops.where(y < a, lower, upper)  # the smaller of both keeps more digits
        density = ((a - 1) * y.log() - y - ops.lgamma(a)).exp()
        # where x is tiny, P(a, x) is x**a / gamma(a + 1)
        limit = y * (y.log() - ops.digamma(a + 1)) / a
        derivative = ops.where(y < 1e-6, -limit, -slope / density)
        return grad * derivative.nan_to_num(0.0, 0.0, 0.0).to(grad.dtype)


def standard_gamma(concentration: Tensor) -> Tensor:
    """Returns samples of Gamma(concentration, 1), differentiable in concentration."""
    return StandardGamma.apply(concentration)


@sampler("distributions_poisson(rate: Tensor) -> Tensor")
def poisson(rate: Tensor) -> Tensor:
    """Returns samples of the Poisson distribution in the dtype of rate."""
    flat = rate.detach().reshape(-1)
    wide = flat.to(float64)
    many = wide >= 10
    samples = ops.where(many, ops.zeros_like(wide), counted_up(wide.clamp(max=10.0)))
    places = ops.nonzero(many).reshape(-1)
    if places.numel():
        samples[places] = poisson_of_many(wide[places])
    return samples.to(rate.dtype).reshape(rate.shape)


def counted_up(rate: Tensor) -> Tensor:
    """Draws from Poisson(rate), rate at most 10, by summing probabilities until they exceed u."""
    u = ops.rand(rate.shape, dtype=float64, device=rate.device)
    term = (-rate).exp()
    total, k = term, ops.zeros_like(rate)
    for i in range(1, 100):
        beyond = u > total
        if not bool(beyond.any()):
            break
        k += beyond.to(k.dtype)
        term = term * rate / i
        total = total + term
    return k


def poisson_of_many(rate: Tensor) -> Tensor:
    """Draws from Poisson(rate), rate at least 10, by Hörmann's PTRS method."""
    b = 0.931 + 2.53 * rate.sqrt()
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    vr = 0.9277 - 3.6224 / (b - 2)

    def draw(at: Tensor) -> tuple[Tensor, Tensor]:
        u = ops.rand(at.shape, dtype=float64, device=rate.device) - 0.5
        v = 1 - ops.rand(at.shape, dtype=float64, device=rate.device)
        us = 0.5 - u.abs()
        k = ((2 * a[at] / us + b[at]) * u + rate[at] + 0.43).floor()
        fast = (us >= 0.07) & (v <= vr[at])
        left = (v * inverse_alpha[at] / (a[at] / (us * us) + b[at])).log()
        right = k * rate[at].log() - rate[at] - ops.lgamma((k + 1).clamp(min=1.0))
        slow = (us >= 0.013) | (v <= us)
        return k, (k >= 0) & (fast | slow & (left <= right))

    return accepted(rate, draw)


@sampler("distributions_binomial(count: Tensor, probs: Tensor) -> Tensor")
def binomial(count: Tensor, probs: Tensor) -> Tensor:
    """Returns samples of the binomial distribution in the dtype of probs."""
    n = count.detach().reshape(-1).to(float64)
    p = probs.detach().reshape(-1).to(float64)
    flipped = p > 0.5
    q = ops.where(flipped, 1 - p, p)
    many = n * q >= 10
    few = ops.where(many, ops.zeros_like(q), q)
    samples = waited(n, few)
    places = ops.nonzero(many).reshape(-1)
    if places.numel():
        samples[places] = binomial_of_many(n[places], q[places])
    samples = ops.where(flipped, n - samples, samples)
    return samples.to(probs.dtype).reshape(probs.shape)


def waited(n: Tensor, p: Tensor) -> Tensor:
    """Draws from Binomial(n, p), n p below 10, by summing geometric waiting times."""
    k, trials = ops.zeros_like(n), ops.zeros_like(n)
    scale = (-p.clamp(1e-300, 1 - 1e-16)).log1p()
    open_ = p > 0
    while bool(open_.any()):
        u = 1 - ops.rand(n.shape, dtype=float64, device=n.device)
        trials = trials + (u.log() / scale).floor() + 1
        open_ = open_ & (trials <= n)
        k += open_.to(k.dtype)
    return k


def binomial_of_many(n: Tensor, p: Tensor) -> Tensor:
    """Draws from Binomial(n, p), n p at least 10 and p at most 0.5, by Hörmann's BTRS method."""
    spread = (n * p * (1 - p)).sqrt()
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    vr = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * spread
    odds = (p / (1 - p)).log()
    m = ((n + 1) * p).floor()

    def draw(at: Tensor) -> tuple[Tensor, Tensor]:
        u = ops.rand(at.shape, dtype=float64, device=n.device) - 0.5
        v = 1 - ops.rand(at.shape, dtype=float64, device=n.device)
        us = 0.5 - u.abs()
        k = ((2 * a[at] / us + b[at]) * u + c[at]).floor()
        fast = (us >= 0.07) & (v <= vr[at])
        left = (v * alpha[at] / (a[at] / (us * us) + b[at])).log()
        inside = (k >= 0) & (k <= n[at])
        j = k.clamp(min=0.0).minimum(n[at])
        right = (
            ops.lgamma(m[at] + 1)
            + ops.lgamma(n[at] - m[at] + 1)
            - ops.lgamma(j + 1)
            - ops.lgamma(n[at] - j + 1)
            + (j - m[at]) * odds[at]
        )
        return k, inside & (fast | (left <= right))

    return accepted(n, draw)


@sampler("distributions_von_mises(r: Tensor, concentration: Tensor) -> Tensor")
def von_mises(r: Tensor, concentration: Tensor) -> Tensor:
    """Draws angles from a wrapped Cauchy distribution until they are accepted (Best and Fisher
    1979). r follows from the concentration."""
    angles, done = ops.zeros_like(r), ops.zeros_like(r) != 0
    while not bool(done.all()):
        u = ops.rand((3, *r.shape), dtype=r.dtype, device=r.device)
        z = (pi * u[0]).cos()
        f = (1 + r * z) / (r + z)
        c = concentration * (r - f)
        accept = (c * (2 - c) - u[1] > 0) | ((c / u[1]).log() + 1 - c >= 0)
        drawn = (u[2] - 0.5).sign() * f.clamp(-1, 1).acos()
        angles = ops.where(accept & ~done, drawn, angles)
        done = done | accept
    return angles
