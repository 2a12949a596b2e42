"""Constraints on the parameters and the values of distributions."""
from __future__ import annotations

from .._tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

__all__ = [
    "Constraint",
    "boolean",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
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
    "real",
    "real_vector",
    "simplex",
    "unit_interval",
]
SUM_TOLERANCE = 1e-6


class Constraint:
    """A region of values. event_dim: the number of trailing dims that are checked together."""

    def __init__(self, text: str, test: Callable[[Tensor], Tensor], event_dim: int = 0) -> None:
        self.text, self.test, self.event_dim = text, test, event_dim

    def check(self, value: Tensor) -> Tensor:
        """Returns for each value whether it satisfies the constraint."""
        return self.test(value)

    def __repr__(self) -> str:
        return self.text


def interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Values from lower_bound to upper_bound."""
    return Constraint(
        f"Interval(lower_bound={lower_bound}, upper_bound={upper_bound})",
        lambda x: (x >= lower_bound) & (x <= upper_bound),
    )


def half_open_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Values from lower_bound, included, to upper_bound, excluded."""
    return Constraint(
        f"HalfOpenInterval(lower_bound={lower_bound}, upper_bound={upper_bound})",
        lambda x: (x >= lower_bound) & (x < upper_bound),
    )


def integer_interval(lower_bound: Any, upper_bound: Any) -> Constraint:
    """Integers from lower_bound to upper_bound."""
    return Constraint(
        f"IntegerInterval(lower_bound={lower_bound}, upper_bound={upper_bound})",
        lambda x: (x % 1 == 0) & (x >= lower_bound) & (x <= upper_bound),
    )


def in_simplex(x: Tensor) -> Tensor:
    return (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < SUM_TOLERANCE)


def greater_than_eq(lower_bound: Any) -> Constraint:
    """Values greater than or equal to lower_bound."""
    return Constraint(f"GreaterThanEq(lower_bound={lower_bound})", lambda x: x >= lower_bound)


def greater_than(lower_bound: Any) -> Constraint:
    """Values greater than lower_bound."""
    return Constraint(f"GreaterThan(lower_bound={lower_bound})", lambda x: x > lower_bound)


def less_than(upper_bound: Any) -> Constraint:
    """Values less than upper_bound."""
    return Constraint(f"LessThan(upper_bound={upper_bound})", lambda x: x < upper_bound)


def independent(base: Constraint, n: int) -> Constraint:
    """Values that satisfy base in all elements of the last n dims."""
    if not n:
        return base

    def test(x: Tensor) -> Tensor:
        satisfied = base.check(x)
        for _ in range(min(n, satisfied.ndim)):
            satisfied = satisfied.all(-1)
        return satisfied

    return Constraint(f"IndependentConstraint({base}, {n})", test, base.event_dim + n)


def multinomial(upper_bound: int) -> Constraint:
    """Vectors of nonnegative numbers whose sum is upper_bound."""
    return Constraint(
        f"Multinomial(upper_bound={upper_bound})",
        lambda x: (x >= 0).all(-1) & (x.sum(-1) == upper_bound),
        1,
    )


def in_lower_triangle(x: Tensor) -> Tensor:
    return (x.tril() == x).flatten(-2).all(-1)


def has_positive_diagonal(x: Tensor) -> Tensor:
    return (x.diagonal(0, -2, -1) > 0).all(-1)


def is_positive_definite(x: Tensor) -> Tensor:
    from .. import linalg

    symmetric = ((x - x.mT).abs() <= 1e-6 + 1e-5 * x.abs()).flatten(-2).all(-1)
    return symmetric & (linalg.cholesky_ex(x)[1] == 0)


real = Constraint("Real()", lambda x: x == x)
real_vector = Constraint("IndependentConstraint(Real(), 1)", lambda x: (x == x).all(-1), 1)
positive = Constraint("GreaterThan(lower_bound=0.0)", lambda x: x > 0)
nonnegative = Constraint("GreaterThanEq(lower_bound=0.0)", lambda x: x >= 0)
unit_interval = interval(0.0, 1.0)
boolean = Constraint("Boolean()", lambda x: (x == 0) | (x == 1))
simplex = Constraint("Simplex()", in_simplex, 1)
nonnegative_integer = Constraint(
    "IntegerGreaterThan(lower_bound=0)", lambda x: (x % 1 == 0) & (x >= 0)
)
positive_integer = Constraint(
    "IntegerGreaterThan(lower_bound=1)", lambda x: (x % 1 == 0) & (x >= 1)
)
one_hot = Constraint("OneHot()", lambda x: ((x == 0) | (x == 1)).all(-1) & (x.sum(-1) == 1), 1)
lower_triangular = Constraint("LowerTriangular()", in_lower_triangle, 2)
lower_cholesky = Constraint(
    "LowerCholesky()", lambda x: in_lower_triangle(x) & has_positive_diagonal(x), 2
)
positive_definite = Constraint("PositiveDefinite()", is_positive_definite, 2)
