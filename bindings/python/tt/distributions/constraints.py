"""What parameters and values of distributions must satisfy."""
from __future__ import annotations

from .._tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

__all__ = [
    "Constraint",
    "boolean",
    "half_open_interval",
    "integer_interval",
    "interval",
    "nonnegative",
    "positive",
    "real",
    "real_vector",
    "simplex",
    "unit_interval",
]
SUM_TOLERANCE = 1e-6


class Constraint:
    """A region of values. event_dim: the dims at the end that are checked together."""

    def __init__(self, text: str, test: Callable[[Tensor], Tensor], event_dim: int = 0) -> None:
        self.text, self.test, self.event_dim = text, test, event_dim

    def check(self, value: Tensor) -> Tensor:
        """Returns a bool for each value."""
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
    """Values from lower_bound to below upper_bound."""
    return Constraint(
        f"HalfOpenInterval(lower_bound={lower_bound}, upper_bound={upper_bound})",
        lambda x: (x >= lower_bound) & (x < upper_bound),
    )


def integer_interval(lower_bound: int, upper_bound: int) -> Constraint:
    """Whole numbers from lower_bound to upper_bound."""
    return Constraint(
        f"IntegerInterval(lower_bound={lower_bound}, upper_bound={upper_bound})",
        lambda x: (x % 1 == 0) & (x >= lower_bound) & (x <= upper_bound),
    )


def in_simplex(x: Tensor) -> Tensor:
    return (x >= 0).all(-1) & ((x.sum(-1) - 1).abs() < SUM_TOLERANCE)


real = Constraint("Real()", lambda x: x == x)
real_vector = Constraint("IndependentConstraint(Real(), 1)", lambda x: (x == x).all(-1), 1)
positive = Constraint("GreaterThan(lower_bound=0.0)", lambda x: x > 0)
nonnegative = Constraint("GreaterThanEq(lower_bound=0.0)", lambda x: x >= 0)
unit_interval = interval(0.0, 1.0)
boolean = Constraint("Boolean()", lambda x: (x == 0) | (x == 1))
simplex = Constraint("Simplex()", in_simplex, 1)
