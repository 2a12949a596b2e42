"""Sobol sequences, with the API of torch.quasirandom."""
from __future__ import annotations

import os
from functools import lru_cache
from importlib.util import find_spec

from . import _ops as ops
from ._create import tensor
from ._dtype_names import float32, float64, int64
from ._hints import Self
from ._settings import get_default_dtype
from ._tensor import Tensor
from ._types import dtype as DType
from .files import npz_load
from .random import Generator

__all__ = ["SobolEngine"]


class SobolEngine:
    """Draws points of a Sobol sequence, which fill the unit cube evenly.

    The direction numbers are those of Joe and Kuo, which are read from SciPy's files. Points
    without scrambling are PyTorch's.

    dimension: number of coordinates of a point, from 1 to MAXDIM
    scramble: applies a random linear map and a random shift to the digits of all points, after
        Owen
    seed: of the scrambling; None: it comes from the default generator
    Raises ImportError if SciPy is not installed.
    """

    MAXBIT = 30  # binary digits of a coordinate
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                f"SobolEngine: dimension is {dimension}: must be from 1 to {self.MAXDIM}"
            )
        self.seed, self.scramble, self.dimension = seed, scramble, dimension
        polynomials, initial = table()
        self.sobolstate = directions(polynomials[:dimension], initial[:dimension], self.MAXBIT)
        self.shift = ops.zeros(dimension, dtype=int64)
        if scramble:
            self._scramble()
        self.quasi = self.shift.clone()
        self._first_point = (self.quasi / 2**self.MAXBIT).reshape(1, -1)
        self.num_generated = 0

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: DType | None = None) -> Tensor:
        """Returns the next n points as [n, dimension].

        out: receives the points, and takes their shape
        dtype: float32 or float64; None: the default dtype
        """
        dtype = dtype or get_default_dtype()
        if dtype not in (float32, float64):
            raise NotImplementedError(
                f"SobolEngine.draw: dtype is {dtype}: must be float32 or float64"
            )
        if n < 0:
            raise ValueError(f"SobolEngine.draw: n is {n}: must not be negative")
        digits = self._points(self.num_generated, n)
        points = digits.to(dtype) * 2.0**-self.MAXBIT
        if n:
            self.quasi.copy_(digits[-1])
            if not self.num_generated:
                points[0] = self._first_point[0]  # which has the precision of the default dtype
        self.num_generated += n
        return points if out is None else out.resize_(points.shape).copy_(points)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: DType | None = None) -> Tensor:
        """Returns the next 2**m points. The number of all points drawn must be a power of 2 then,
        for which Sobol sequences are balanced."""
        total = self.num_generated + 2**m
        if total & (total - 1):
            raise ValueError(
                f"SobolEngine.draw_base2: {self.num_generated} points have been drawn, with 2**{m} "
                f"more there are {total}: must be a power of 2, use draw()"
            )
        return self.draw(n=2**m, out=out, dtype=dtype)

    def reset(self) -> Self:
        """Goes back to the first point. Returns self."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> Self:
        """Skips n points. Returns self."""
        if n > 0:
            self.quasi.copy_(self._points(self.num_generated + n - 1, 1)[0])
            self.num_generated += n
        return self

    def _points(self, first: int, n: int) -> Tensor:
        """Returns the digits of n points from the one of a number on, as integers.

        Point p combines the direction numbers of the bits of p's Gray code.
        """
        if first + n > 2**self.MAXBIT:
            raise ValueError(
                f"SobolEngine: the points end at number {first + n}: must be at most "
                f"2**{self.MAXBIT}"
            )
        numbers = ops.arange(first, first + n)
        gray = (numbers ^ (numbers >> 1)).unsqueeze(1)
        digits = self.shift.repeat(n, 1)
        for bit in range((first + n - 1).bit_length() if n else 0):
            digits ^= ((gray >> bit) & 1) * self.sobolstate[:, bit]
        return digits

    def _scramble(self) -> None:
        """Draws the shift and the matrices of the scrambling."""
        generator = None if self.seed is None else Generator().manual_seed(self.seed)
        size = (self.dimension, self.MAXBIT)
        shift = ops.randint(2, size, generator=generator, dtype=int64)
        matrices = ops.randint(2, (*size, self.MAXBIT), generator=generator, dtype=int64)
        self.shift = (shift << ops.arange(self.MAXBIT)).sum(1)
        self.sobolstate = scrambled(self.sobolstate, matrices)

    def __repr__(self) -> str:
        shown = [f"dimension={self.dimension}"]
        shown += ["scramble=True"] if self.scramble else []
        shown += [f"seed={self.seed}"] if self.seed is not None else []
        return f"{type(self).__name__}({', '.join(shown)})"


@lru_cache(maxsize=1)
def table() -> tuple[Tensor, Tensor]:
    """Returns the primitive polynomials and the initial direction numbers of all coordinates."""
    scipy = find_spec("scipy")
    if scipy is None or scipy.origin is None:
        raise ImportError(
            "SobolEngine reads its direction numbers from SciPy's files: install SciPy "
            "(pip install scipy)"
        )
    folder = os.path.dirname(scipy.origin)
    arrays = npz_load(os.path.join(folder, "stats", "_sobol_direction_numbers.npz"))
    return arrays["poly"], arrays["vinit"]


def directions(polynomials: Tensor, initial: Tensor, bits: int) -> Tensor:
    """Returns the direction numbers [dimension, bits] by the recurrence of Bratley and Fox.

    polynomials: a primitive polynomial for each coordinate, its coefficients as bits
    initial: the first numbers of each coordinate, as many as the degree of its polynomial
    """
    numbers = ops.zeros(len(polynomials), bits, dtype=int64)
    numbers[0] = 1  # the first coordinate has no polynomial
    degrees = [max(int(p).bit_length() - 1, 0) for p in polynomials.tolist()]
    for degree in sorted(set(degrees[1:])):
        rows = tensor([i for i, d in enumerate(degrees) if d == degree and i])
        polynomial = polynomials[rows]
        v = list(initial[rows, :degree].unbind(1))
        for j in range(degree, bits):
            new = v[j - degree].clone()
            for k in range(1, degree + 1):
                new ^= ((polynomial >> (degree - k)) & 1) * (v[j - k] << k)
            v.append(new)
        numbers[rows] = ops.stack(v, 1)
    return numbers << ops.arange(bits).flip(0)


def scrambled(numbers: Tensor, matrices: Tensor) -> Tensor:
    """Multiplies the digits of direction numbers, the first one in front, by the lower triangles of
    a matrix for each coordinate, with a diagonal of ones, modulo 2."""
    bits = numbers.shape[1]
    places = ops.arange(bits).flip(0)
    digits = (numbers.unsqueeze(-1) >> places) & 1
    lower = matrices.tril(-1) + ops.eye(bits, dtype=int64)
    product = (digits.double() @ lower.double().mT).to(int64) & 1
    return (product << places).sum(-1)


def __dir__() -> list[str]:
    return __all__
