"""Constraints on the parameters and the values of distributions, with the names of
torch.distributions.constraints."""
from __future__ import annotations

from typing import Any, Callable, Sequence

from .. import _ops as ops
from .. import linalg
from .._limits import finfo
from .._tensor import Tensor

__all__ = [
    "Constraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]
SUM_TOLERANCE = 1e-6


class Constraint:
    """A region of values.

    is_discrete: whether the values are isolated. event_dim: the number of trailing dims that are
    checked together.
    """

    is_discrete = False
    event_dim = 0

    def check(self, value: Tensor) -> Tensor:
        """Returns for each value whether it satisfies the constraint."""
        raise NotImplementedError(f"{type(self).__name__} has no check")

    def __repr__(self) -> str:
        bounds = ", ".join(f"{name}={value}" for name, value in vars(self).items())
        return f"{type(self).__name__}({bounds})"


# ---- regions that other parameters determine ----


class Dependent(Constraint):
    """A region that depends on other parameters: it cannot be checked by itself."""

    def __init__(self, *, is_discrete: bool = False, event_dim: int = 0) -> None:
        self.is_discrete, self.event_dim = is_discrete, event_dim

    def check(self, value: Tensor) -> Tensor:
        raise ValueError("constraints.dependent depends on other parameters: it cannot be checked")


class dependent_property(property, Dependent):
    """A property that computes a constraint from an object, and is Dependent on its class."""

    def __init__(
        self,
        fn: Callable[[Any], Any] | None = None,
        *,
        is_discrete: bool = False,
        event_dim: int = 0,
    ) -> None:
        property.__init__(self, fn)
        Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn: Callable[[Any], Any]) -> dependent_property:
        """Decorates a function, after dependent_property(event_dim=…)."""
        return dependent_property(fn, is_discrete=self.is_discrete, event_dim=self.event_dim)


def is_dependent(constraint: Constraint) -> bool:
    """Returns whether the constraint depends on other parameters."""
    return isinstance(constraint, Dependent)


# ---- numbers ----


class Real(Constraint):
    def check(self, value: Tensor) -> Tensor:
        return value == value


class Interval(Constraint):
    """Values from lower_bound to upper_bound."""

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class HalfOpenInterval(Interval):
    """Values from lower_bound, included, to upper_bound, excluded."""

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value < self.upper_bound)


class IntegerInterval(Interval):
    """Integers from lower_bound to upper_bound."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & super().check(value)


class GreaterThanEq(Constraint):
    """Values greater than or equal to lower_bound."""

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound

    def check(self, value: Tensor) -> Tensor:
        return value >= self.lower_bound


class GreaterThan(GreaterThanEq):
    """Values greater than lower_bound."""

    def check(self, value: Tensor) -> Tensor:
        return value > self.lower_bound


class IntegerGreaterThan(GreaterThanEq):
    """Integers greater than or equal to lower_bound."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & super().check(value)


class LessThan(Constraint):
    """Values less than upper_bound."""

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class Boolean(Constraint):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


# ---- vectors ----


class Independent(Constraint):
    """Values that satisfy base_constraint in all elements of the last reinterpreted_batch_ndims
    dims."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        satisfied = self.base_constraint.check(value)
        if satisfied.ndim < self.reinterpreted_batch_ndims:
            dims = self.base_constraint.event_dim + self.reinterpreted_batch_ndims
            raise ValueError(f"{self}: the value has {value.ndim} dims: must have at least {dims}")
        for _ in range(self.reinterpreted_batch_ndims):
            satisfied = satisfied.all(-1)
        return satisfied

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """Values that satisfy base_constraint, which the components of a mixture have, in each of
    them."""

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        batch = value.shape[: value.ndim - self.event_dim]
        satisfied = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return satisfied.reshape((*batch, -1)).all(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint})"


class Simplex(Constraint):
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < SUM_TOLERANCE)


class OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class Multinomial(Constraint):
    """Vectors of nonnegative numbers whose sum is at most upper_bound."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


# ---- matrices ----


class LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return (value.tril() == value).flatten(-2).all(-1)


class LowerCholesky(LowerTriangular):
    """Lower triangular matrices with a positive diagonal."""

    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (value.diagonal(0, -2, -1) > 0).all(-1)


class CorrCholesky(LowerCholesky):
    """Cholesky factors of correlation matrices: rows have length 1."""

    def check(self, value: Tensor) -> Tensor:
        tolerance = finfo(value.dtype).eps * value.shape[-1] * 10
        unit = ((value**2).sum(-1).sqrt() - 1).abs() < tolerance
        return super().check(value) & unit.all(-1)


class Square(Constraint):
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        is_square = value.shape[-1] == value.shape[-2]
        return ops.full(value.shape[:-2], is_square, device=value.device)


class Symmetric(Square):
    def check(self, value: Tensor) -> Tensor:
        square = super().check(value)
        if value.shape[-1] != value.shape[-2]:
            return square
        return ((value - value.mT).abs() <= 1e-6 + 1e-5 * value.abs()).flatten(-2).all(-1)


class PositiveSemidefinite(Symmetric):
    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        if value.shape[-1] != value.shape[-2]:
            return symmetric
        finite = ops.where(symmetric[..., None, None], value, 0)
        return symmetric & (linalg.eigvalsh(finite) >= 0).all(-1)


class PositiveDefinite(Symmetric):
    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        if value.shape[-1] != value.shape[-2]:
            return symmetric
        return symmetric & (linalg.cholesky_ex(value)[1] == 0)


# ---- several regions side by side ----


class Joined(Constraint):
    """Slices along dim that satisfy one constraint each."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        self.cseq, self.dim = list(cseq), dim
        self.is_discrete = any(c.is_discrete for c in self.cseq)
        self.event_dim = max((c.event_dim for c in self.cseq), default=0)


class Cat(Joined):
    """Values made by cat: lengths are the sizes of the parts along dim, by default 1."""

    def __init__(
        self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)

    def check(self, value: Tensor) -> Tensor:
        parts = value.split(self.lengths, self.dim)
        return ops.cat([c.check(part) for c, part in zip(self.cseq, parts)], self.dim)


class Stack(Joined):
    """Values made by stack along dim."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        super().__init__(cseq, dim)
        if self.dim + self.event_dim < 0:
            self.event_dim += 1

    def check(self, value: Tensor) -> Tensor:
        parts = value.unbind(self.dim)
        return ops.stack([c.check(part) for c, part in zip(self.cseq, parts)], self.dim)


cat = Cat
stack = Stack
dependent = Dependent()
independent = Independent
interval = Interval
half_open_interval = HalfOpenInterval
integer_interval = IntegerInterval
greater_than = GreaterThan
greater_than_eq = GreaterThanEq
less_than = LessThan
multinomial = Multinomial
real = Real()
real_vector = Independent(real, 1)
positive = GreaterThan(0.0)
nonnegative = GreaterThanEq(0.0)
unit_interval = Interval(0.0, 1.0)
boolean = Boolean()
simplex = Simplex()
nonnegative_integer = IntegerGreaterThan(0)
positive_integer = IntegerGreaterThan(1)
one_hot = OneHot()
lower_triangular = LowerTriangular()
lower_cholesky = LowerCholesky()
corr_cholesky = CorrCholesky()
square = Square()
symmetric = Symmetric()
positive_semidefinite = PositiveSemidefinite()
positive_definite = PositiveDefinite()

PYTORCHS = {"_DependentProperty": "dependent_property", "_IndependentConstraint": "Independent"}


def __getattr__(name: str) -> Any:
    """Finds the classes by PyTorch's private names, such as _Real, which packages test for."""
    found = globals().get(PYTORCHS.get(name, name[1:])) if name.startswith("_") else None
    if not isinstance(found, type):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found
