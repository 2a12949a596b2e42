"""Distribution, the base class, and functions that distributions share."""
from __future__ import annotations

from math import prod
from typing import Any, Callable, Iterable

from .. import _ops as ops
from .._create import tensor
from .._hints import Self
from .._limits import finfo
from .._tensor import Tensor
from .._structs import CONSTANTS
from .._types import Size
from ..autograd import no_grad
from ..compiler import is_compiling, is_exporting
from ..library import find
from .constraints import Constraint, is_dependent

Shape = Iterable[int]

__all__ = ["Distribution"]
INVALID_ARG = CONSTANTS["TT_INVALID_ARG"]


class Distribution:
    """Base class of probability distributions.

    batch_shape: shape of the batch, each element of which has its own parameters. event_shape:
    shape of one value. Samples have the shape sample_shape + batch_shape + event_shape.
    validate_args: checks parameters, and the values passed to log_prob and similar methods, and
    raises ValueError for invalid ones; the default is that of set_default_validate_args.
    """

    has_rsample = False
    has_enumerate_support = False
    arg_constraints: dict[str, Constraint] = {}
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Sets whether distributions check their arguments by default."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: value is {value!r}: must be a bool")
        Distribution._validate_args = value

    def __init__(
        self, batch_shape: Shape = (), event_shape: Shape = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if not self._validate_args:
            return
        for name, constraint in self.arg_constraints.items():
            computed = name not in self.__dict__  # from another parameter
            if computed or is_dependent(constraint):
                continue
            value = self.__dict__[name]
            check_all(
                constraint.check(value),
                f"{type(self).__name__}: {name} must satisfy {type(constraint).__name__}",
                lambda: f"{type(self).__name__}: {name} is {value}: must satisfy {constraint}",
            )

    @property
    def batch_shape(self) -> Size:
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        return self._event_shape

    @property
    def support(self) -> Constraint:
        """Returns the constraint that the values of the distribution satisfy."""
        raise NotImplementedError(f"{type(self).__name__} has no support")

    @property
    def mean(self) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no mean")

    @property
    def mode(self) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no mode")

    @property
    def variance(self) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no variance")

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Draws samples without gradients."""
        with no_grad():
            return self.rsample(sample_shape)

    def sample_n(self, n: int) -> Tensor:
        """Returns sample((n,)). Deprecated."""
        return self.sample((n,))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Draws samples that are differentiable in the parameters."""
        raise NotImplementedError(f"{type(self).__name__} has no rsample")

    def log_prob(self, value: Tensor) -> Tensor:
        """Returns the logarithm of the probability density or mass at value."""
        raise NotImplementedError(f"{type(self).__name__} has no log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """Returns the cumulative distribution function at value."""
        raise NotImplementedError(f"{type(self).__name__} has no cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """Returns the inverse of the cumulative distribution function at value."""
        raise NotImplementedError(f"{type(self).__name__} has no icdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Returns all values of the support along a new first dim."""
        raise NotImplementedError(f"{type(self).__name__} has no enumerate_support")

    def entropy(self) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no entropy")

    def perplexity(self) -> Tensor:
        """Returns the exponential of the entropy."""
        return self.entropy().exp()

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """Returns _instance, or an object without attributes. Of a subclass that has a constructor
        of its own, the expand of cls must not make one."""
        if _instance is None and type(self).__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"{type(self).__name__}.expand: a subclass with its own constructor defines it"
            )
        return object.__new__(type(self)) if _instance is None else _instance

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Self:
        """Returns a copy whose parameters are expanded to batch_shape. _instance: the object that
        becomes the copy."""
        expanded = object.__new__(type(self)) if _instance is None else _instance
        expanded.__dict__.update(self.__dict__)
        expanded._batch_shape = Size(batch_shape)
        for name, constraint in self.arg_constraints.items():
            if name in self.__dict__:
                shape = (*expanded._batch_shape, *self._vector_shape(constraint))
                expanded.__dict__[name] = self.__dict__[name].expand(shape)
        return expanded

    def _expanded(self, expanded: Distribution, _instance: Any) -> Any:
        """Returns _instance, or an object of the class of self, with the attributes of expanded."""
        made = object.__new__(type(self)) if _instance is None else _instance
        made.__dict__.update(expanded.__dict__)
        return made

    def _vector_shape(self, constraint: Constraint) -> tuple[int, ...]:
        """Returns the shape of a parameter of one distribution of the batch."""
        return tuple(self._event_shape)

    def _extended_shape(self, sample_shape: Shape = ()) -> tuple[int, ...]:
        return (*sample_shape, *self._batch_shape, *self._event_shape)

    def _validate_sample(self, value: Any, support: Constraint | None = None) -> None:
        """Raises ValueError unless value is in the support and its shape fits. support: by default
        that of the distribution."""
        if not self._validate_args:
            return
        support = self.support if support is None else support
        name = type(self).__name__
        if not isinstance(value, Tensor):
            raise ValueError(f"{name}: value must be a Tensor, not {type(value).__name__}")
        own, given = self._extended_shape(), tuple(value.shape)
        n = len(self._event_shape)
        if given[len(given) - n :] != own[len(own) - n :]:
            raise ValueError(f"{name}: value has shape {list(given)}: must end in {list(own[-n:])}")
        for a, b in zip(reversed(given), reversed(own)):
            if a != 1 and b != 1 and a != b:
                raise ValueError(
                    f"{name}: value has shape {list(given)}: must broadcast with {list(own)}"
                )
        check_all(
            support.check(value),
            f"{name}: value must be within the support",
            lambda: f"{name}: value is {value}: must be within the support {support}",
        )

    def __repr__(self) -> str:
        known = [n for n in self.arg_constraints if n in self.__dict__]
        parts = []
        for name in known:
            value = self.__dict__[name]
            text = value if value.numel() == 1 else Size(value.shape)
            parts.append(f"{name}: {text}")
        return f"{type(self).__name__}({', '.join(parts)})"


def check_all(
    valid: Tensor, rule: str, text: Callable[[], str], error: type[ValueError] = ValueError
) -> None:
    """Raises the error with text() unless all elements of valid are true. While a function is
    recorded or exported the check becomes a part of it: each run raises ValueError with rule."""
    if is_compiling() or is_exporting():
        find("check_holds")(valid.all(), INVALID_ARG, "", rule, "")
    elif not bool(valid.all()):
        raise error(text())


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Returns numbers and tensors as tensors of one shape.

    Numbers get the dtype and device of the first tensor, or float32 if there is none.
    """
    like = next((v for v in values if isinstance(v, Tensor)), None)
    tensors = []
    for value in values:
        if isinstance(value, Tensor):
            tensors.append(value)
        elif not isinstance(value, (int, float)):
            raise ValueError(f"parameters must be numbers or Tensors, not {type(value).__name__}")
        elif like is None:
            tensors.append(tensor(float(value)))
        else:
            tensors.append(tensor(value, dtype=like.dtype, device=like.device))
    if len({tuple(t.shape) for t in tensors}) == 1:
        return tuple(tensors)  # leaves stay leaves: each result has a graph of its own
    return tuple(ops.broadcast_tensors(*tensors))


def count_of(sample_shape: Shape) -> int:
    return prod(sample_shape)


def one_of(owner: str, probs: Any, logits: Any) -> bool:
    """Returns whether probs is given. Raises ValueError unless exactly one is."""
    if (probs is None) == (logits is None):
        raise ValueError(f"{owner}: takes either probs or logits")
    return probs is not None


def clamped(probs: Tensor) -> Tensor:
    """Clamps probabilities away from 0 and 1, so that their logarithms are finite."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(eps, 1 - eps)


def last_dims_summed(value: Tensor, n: int) -> Tensor:
    """Returns the sum over the last n dims."""
    return value.sum(tuple(range(-n, 0))) if n else value
