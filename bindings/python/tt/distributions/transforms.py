"""Invertible transforms with the logarithm of |dy/dx|, with the names of
torch.distributions.transforms."""
from __future__ import annotations

from copy import copy
from math import log, prod
from typing import Any, Sequence

from .. import _ops as ops
from .. import linalg
from .._limits import finfo
from .._settings import broadcast_shapes
from .._tensor import Tensor
from . import constraints
from .distribution import last_dims_summed
from .distribution import Distribution

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]


def _clipped_sigmoid(x: Tensor) -> Tensor:
    """Returns the sigmoid within (0, 1). pytorch-forecasting imports it."""
    limits = finfo(x.dtype)
    return x.sigmoid().clamp(limits.tiny, 1 - limits.eps)


class Transform:
    """Base class of transforms y = t(x). t.inv is the inverse.

    event_dim_in, event_dim_out: the number of event dims of x and y.
    """

    bijective = False
    domain: constraints.Constraint = constraints.real
    codomain: constraints.Constraint = constraints.real
    event_dim_in = 0
    event_dim_out = 0
    _cache_size = 0
    _cached_x_y: tuple[Any, Any]

    def __init__(self, cache_size: int = 0) -> None:
        """cache_size: 1 keeps the last x and y, so that the inverse of that y is that x."""
        if cache_size not in (0, 1):
            raise ValueError(f"cache_size must be 0 or 1, not {cache_size}")
        if cache_size:
            self._cache_size, self._cached_x_y = 1, (None, None)
        super().__init__()  # of a class that is a Module, too

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Takes the numbers of event dims from domain and codomain, unless the class has them."""
        super().__init_subclass__(**kwargs)
        for end, name in (("domain", "event_dim_in"), ("codomain", "event_dim_out")):
            dims = getattr(vars(cls).get(end), "event_dim", None)
            if isinstance(dims, int) and name not in vars(cls):
                setattr(cls, name, dims)

    def __call__(self, x: Tensor) -> Tensor:
        if not self._cache_size:
            return self._call(x)
        old_x, old_y = self._cached_x_y
        if x is old_x:
            return old_y
        y = self._call(x)
        self._cached_x_y = (x, y)
        return y

    def _inv_call(self, y: Tensor) -> Tensor:
        """Returns the x of y."""
        if not self._cache_size:
            return self._inverse(y)
        old_x, old_y = self._cached_x_y
        if y is old_y:
            return old_x
        x = self._inverse(y)
        self._cached_x_y = (x, y)
        return x

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Returns the same transform with another cache_size."""
        if self._cache_size == cache_size:
            return self
        other = copy(self)
        Transform.__init__(other, cache_size)
        other._cache_size = cache_size
        return other

    @property
    def event_dim(self) -> int:
        """The number of event dims, if x and y have the same."""
        if self.event_dim_in != self.event_dim_out:
            raise ValueError(f"{self!r}: x and y have other numbers of event dims")
        return self.event_dim_in

    @property
    def inv(self) -> Transform:
        """Returns the inverse transform."""
        return InverseTransform(self)

    @property
    def sign(self) -> Any:
        """Returns 1 if the function is increasing, -1 if it is decreasing."""
        raise NotImplementedError(f"{type(self).__name__} has no sign")

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no _call")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Returns log |det dy/dx| for y = t(x)."""
        raise NotImplementedError(f"{type(self).__name__} has no log_abs_det_jacobian")

    def forward_shape(self, shape: Any) -> Any:
        """Returns the shape of y for the shape of x."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """Returns the shape of x for the shape of y."""
        return shape

    def __eq__(self, other: object) -> bool:
        """Returns whether other is a transform of the same class with equal parameters."""
        return type(self) is type(other) and same(parameters(self), parameters(other))

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def parameters(transform: object) -> dict[str, Any]:
    """Returns the attributes of a transform except its cache."""
    return {key: x for key, x in vars(transform).items() if not key.startswith("_cache")}


def same(a: Any, b: Any) -> bool:
    """Returns whether parameters are equal: numbers, tensors, transforms, dicts and lists."""
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return isinstance(a, Tensor) and isinstance(b, Tensor) and a.equal(b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return bool(a == b)


class InverseTransform(Transform):
    """The inverse of a transform."""

    def __init__(self, transform: Transform) -> None:
        self._of = transform
        self.bijective = transform.bijective
        self.domain, self.codomain = transform.codomain, transform.domain
        self.event_dim_in, self.event_dim_out = transform.event_dim_out, transform.event_dim_in

    @property
    def inv(self) -> Transform:
        return self._of

    @property
    def sign(self) -> Any:
        return self._of.sign

    def _call(self, x: Tensor) -> Tensor:
        return self._of._inv_call(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._of(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._of.log_abs_det_jacobian(y, x)

    def __repr__(self) -> str:
        return f"_InverseTransform({self._of!r})"

    def forward_shape(self, shape: Any) -> Any:
        return self._of.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._of.forward_shape(shape)


_InverseTransform = InverseTransform  # PyTorch's name of it


class AffineTransform(Transform):
    """y = loc + scale * x."""

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale = loc, scale
        self.event_dim_in = self.event_dim_out = event_dim

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, Tensor):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if isinstance(self.scale, Tensor):
            log_scale = self.scale.abs().log().expand_as(x)
        else:
            log_scale = ops.full_like(x, log(abs(self.scale)))
        return last_dims_summed(log_scale, self.event_dim_in)

    def forward_shape(self, shape: Any) -> Any:
        return with_shapes_of(shape, self.loc, self.scale)

    inverse_shape = forward_shape


def with_shapes_of(shape: Any, *parameters: Any) -> Any:
    """Returns the shape to which a shape and those of parameters broadcast."""
    shapes = (p.shape for p in parameters if isinstance(p, Tensor))
    return broadcast_shapes(shape, *shapes)


class ExpTransform(Transform):
    """y = exp(x)."""

    bijective = True
    codomain = constraints.positive
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """y = x ** exponent, for positive x."""

    bijective = True
    domain = codomain = constraints.positive

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = exponent

    @property
    def sign(self) -> Any:
        return self.exponent.sign() if isinstance(self.exponent, Tensor) else 1

    def _call(self, x: Tensor) -> Tensor:
        return x**self.exponent

    def _inverse(self, y: Tensor) -> Tensor:
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        return with_shapes_of(shape, self.exponent)

    inverse_shape = forward_shape


class SigmoidTransform(Transform):
    """y = 1 / (1 + exp(-x))."""

    bijective = True
    codomain = constraints.unit_interval
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return _clipped_sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        limits = finfo(y.dtype)
        y = y.clamp(limits.tiny, 1 - limits.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        from ..nn.functional import softplus

        return -softplus(-x) - softplus(x)


class SoftplusTransform(Transform):
    """y = log(1 + exp(x))."""

    bijective = True
    codomain = constraints.positive
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        from ..nn.functional import softplus

        return softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        from ..nn.functional import softplus

        return -softplus(-x)


class TanhTransform(Transform):
    """y = tanh(x)."""

    bijective = True
    codomain = constraints.interval(-1.0, 1.0)
    sign = 1

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        from ..nn.functional import softplus

        return 2 * (log(2) - x - softplus(-2 * x))


class AbsTransform(Transform):
    """y = |x|. The inverse returns y."""

    codomain = constraints.nonnegative

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class SoftmaxTransform(Transform):
    """y = softmax(x) along the last dim. The inverse returns log(y)."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    event_dim_in = event_dim_out = 1

    def _call(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()


class StickBreakingTransform(Transform):
    """Maps n - 1 real numbers along the last dim to n probabilities by stick-breaking."""

    bijective = True
    domain = constraints.real_vector
    codomain = constraints.simplex
    event_dim_in = event_dim_out = 1

    def offset(self, x: Tensor) -> Tensor:
        """Returns the logarithms of the numbers of remaining parts."""
        n = x.shape[-1]
        return ops.arange(n, 0, -1, dtype=x.dtype, device=x.device).log()

    def _call(self, x: Tensor) -> Tensor:
        part = (x - self.offset(x)).sigmoid()
        left = (1 - part).cumprod(-1)
        one = ops.ones_like(left[..., :1])
        return ops.cat([part, one], -1) * ops.cat([one, left], -1)

    def _inverse(self, y: Tensor) -> Tensor:
        parts = y[..., :-1]
        left = (1 - parts.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return parts.log() - left.log() + self.offset(parts)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        from ..nn.functional import logsigmoid

        x = x - self.offset(x)
        return (-x + logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        return (*shape[:-1], shape[-1] + 1)

    def inverse_shape(self, shape: Any) -> Any:
        return (*shape[:-1], shape[-1] - 1)


class IndependentTransform(Transform):
    """A transform whose last reinterpreted_batch_ndims batch dims are event dims."""

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.base_transform, self.n = base_transform, reinterpreted_batch_ndims
        self.bijective = base_transform.bijective
        self.event_dim_in = base_transform.event_dim_in + self.n
        self.event_dim_out = base_transform.event_dim_out + self.n
        self.domain = constraints.independent(base_transform.domain, self.n)
        self.codomain = constraints.independent(base_transform.codomain, self.n)

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def __repr__(self) -> str:
        return f"IndependentTransform({self.base_transform!r}, {self.n})"

    def _call(self, x: Tensor) -> Tensor:
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.base_transform._inv_call(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return last_dims_summed(self.base_transform.log_abs_det_jacobian(x, y), self.n)

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)


class ComposeTransform(Transform):
    """The composition of transforms, which are applied in order."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = list(parts)
        self.bijective = all(part.bijective for part in self.parts)
        if not self.parts:
            return
        dims = 0
        for part in reversed(self.parts):
            dims = max(dims + part.event_dim_in - part.event_dim_out, part.event_dim_in)
        self.event_dim_in = dims
        dims = 0
        for part in self.parts:
            dims = max(dims + part.event_dim_out - part.event_dim_in, part.event_dim_out)
        self.event_dim_out = dims
        self.domain = widened(self.parts[0].domain, self.event_dim_in)
        self.codomain = widened(self.parts[-1].codomain, self.event_dim_out)

    def __repr__(self) -> str:
        parts = ",\n    ".join(repr(part) for part in self.parts)
        return f"ComposeTransform(\n    {parts}\n)"

    @property
    def sign(self) -> Any:
        sign: Any = 1
        for part in self.parts:
            sign = sign * part.sign
        return sign

    def _call(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part._inv_call(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        total: Any = 0
        dims = self.event_dim_in  # of x
        for i, part in enumerate(self.parts):
            following = y if i == len(self.parts) - 1 else part(x)
            term = part.log_abs_det_jacobian(x, following)
            total = total + last_dims_summed(term, dims - part.event_dim_in)
            dims += part.event_dim_out - part.event_dim_in
            x = following
        return total if self.parts else ops.zeros_like(x)

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape


identity_transform = ComposeTransform([])


def widened(region: constraints.Constraint, event_dim: int) -> constraints.Constraint:
    """Returns the constraint with as many event dims."""
    if event_dim <= region.event_dim:
        return region
    return constraints.independent(region, event_dim - region.event_dim)


class ReshapeTransform(Transform):
    """Reshapes the event dims from in_shape to out_shape."""

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = tuple(in_shape), tuple(out_shape)
        if prod(self.in_shape) != prod(self.out_shape):
            raise ValueError(
                f"ReshapeTransform: in_shape is {in_shape}, out_shape is {out_shape}: must have "
                "the same number of elements"
            )
        self.event_dim_in, self.event_dim_out = len(self.in_shape), len(self.out_shape)

    @property
    def domain(self) -> constraints.Constraint:  # type: ignore[override]
        return constraints.independent(constraints.real, self.event_dim_in)

    @property
    def codomain(self) -> constraints.Constraint:  # type: ignore[override]
        return constraints.independent(constraints.real, self.event_dim_out)

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.ndim - self.event_dim_in])

    def forward_shape(self, shape: Any) -> Any:
        return reshaped(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return reshaped(shape, self.out_shape, self.in_shape)


def reshaped(shape: Any, old: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the shape with the last dims, which must be old, replaced by new."""
    n = len(shape) - len(old)
    if n < 0 or tuple(shape[n:]) != old:
        raise ValueError(f"ReshapeTransform: the shape is {list(shape)}: must end in {list(old)}")
    return (*shape[:n], *new)


class Joined(Transform):
    """Base class of transforms of slices along dim, one for each part of transforms."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.transforms, self.dim = list(tseq), dim
        self.bijective = all(t.bijective for t in self.transforms)
        self.event_dim_in = max((t.event_dim_in for t in self.transforms), default=0)
        self.event_dim_out = max((t.event_dim_out for t in self.transforms), default=0)

    def _parts(self, x: Tensor) -> Sequence[Tensor]:
        """Returns the slices of x. Raises ValueError unless there is one for each transform."""
        raise NotImplementedError(type(self).__name__)

    def _joined(self, parts: list[Tensor]) -> Tensor:
        raise NotImplementedError(type(self).__name__)

    def _call(self, x: Tensor) -> Tensor:
        return self._joined([t(part) for t, part in zip(self.transforms, self._parts(x))])

    def _inverse(self, y: Tensor) -> Tensor:
        parts = zip(self.transforms, self._parts(y))
        return self._joined([t._inv_call(part) for t, part in parts])

    def _slopes(self, x: Tensor, y: Tensor) -> list[Tensor]:
        parts = zip(self.transforms, self._parts(x), self._parts(y))
        return [t.log_abs_det_jacobian(a, b) for t, a, b in parts]


class CatTransform(Joined):
    """Transforms the parts that cat would join along dim: lengths are their sizes, by default 1."""

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise ValueError(
                f"CatTransform: {len(self.transforms)} transforms have {len(self.lengths)} lengths"
            )

    @property
    def length(self) -> int:
        """The size of dim."""
        return sum(self.lengths)

    @property
    def domain(self) -> constraints.Constraint:  # type: ignore[override]
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @property
    def codomain(self) -> constraints.Constraint:  # type: ignore[override]
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)

    def _parts(self, x: Tensor) -> Sequence[Tensor]:
        if x.shape[self.dim] != sum(self.lengths):
            raise ValueError(
                f"CatTransform: the shape is {list(x.shape)}: size {self.dim} must be "
                f"{sum(self.lengths)}"
            )
        return x.split(self.lengths, self.dim)

    def _joined(self, parts: list[Tensor]) -> Tensor:
        return ops.cat(parts, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        slopes = [
            last_dims_summed(slope, self.event_dim_in - t.event_dim_in)
            for t, slope in zip(self.transforms, self._slopes(x, y))
        ]
        dim = self.dim - x.ndim if self.dim >= 0 else self.dim
        dim += self.event_dim_in
        if dim < 0:
            return ops.cat(slopes, dim)
        return ops.stack(slopes).sum(0)  # dim is an event dim


class StackTransform(Joined):
    """Transforms the parts that stack would join along dim."""

    @property
    def domain(self) -> constraints.Constraint:  # type: ignore[override]
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @property
    def codomain(self) -> constraints.Constraint:  # type: ignore[override]
        return constraints.stack([t.codomain for t in self.transforms], self.dim)

    def _parts(self, x: Tensor) -> Sequence[Tensor]:
        if x.shape[self.dim] != len(self.transforms):
            raise ValueError(
                f"StackTransform: the shape is {list(x.shape)}: size {self.dim} must be "
                f"{len(self.transforms)}"
            )
        return x.unbind(self.dim)

    def _joined(self, parts: list[Tensor]) -> Tensor:
        return ops.stack(parts, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return ops.stack(self._slopes(x, y), self.dim)


class CumulativeDistributionTransform(Transform):
    """y = cdf(x) of a distribution on the real numbers."""

    bijective = True
    codomain = constraints.unit_interval
    sign = 1

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> constraints.Constraint:  # type: ignore[override]
        return self.distribution.support

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)


# ---- matrices ----


def lower_part(matrix: Tensor, diagonal: int) -> Tensor:
    """Returns the elements on and below a diagonal as vectors, row by row."""
    n = matrix.shape[-1]
    rows, columns = ops.tril_indices(n, n, diagonal, device=matrix.device)
    return matrix[..., rows, columns]


def with_lower_part(vector: Tensor, diagonal: int) -> Tensor:
    """Returns the square matrices whose lower_part is vector, and which are 0 elsewhere."""
    length = vector.shape[-1]
    n = round((0.25 + 2 * length) ** 0.5 - 0.5) - diagonal
    rows, columns = ops.tril_indices(n, n, diagonal, device=vector.device)
    matrix = vector.new_zeros((*vector.shape[:-1], n * n))
    matrix = matrix.index_copy(-1, rows * n + columns, vector)
    return matrix.unflatten(-1, (n, n))


def moved_right(rows: Tensor) -> Tensor:
    """Returns rows moved by one column: 1 is first, and the last column is left out."""
    return ops.cat([ops.ones_like(rows[..., :1]), rows[..., :-1]], -1)


class LowerCholeskyTransform(Transform):
    """Maps square matrices to lower triangular ones: the diagonal is exp(x)."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky
    event_dim_in = event_dim_out = 2

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(0, -2, -1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(0, -2, -1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """Maps square matrices to positive definite ones, L @ L.mT, for lower triangular L."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite
    event_dim_in = event_dim_out = 2

    def _call(self, x: Tensor) -> Tensor:
        lower = LowerCholeskyTransform()(x)
        return lower @ lower.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform()._inverse(linalg.cholesky(y))


class CorrCholeskyTransform(Transform):
    """Maps n (n - 1) / 2 real numbers to the Cholesky factor of a correlation matrix of n rows.

    Each row of the factor is a stick of length 1: tanh(x) is the share, with a sign, of what the
    elements to its left have left over.
    """

    bijective = True
    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    event_dim_in, event_dim_out = 1, 2

    def _call(self, x: Tensor) -> Tensor:
        limit = 1 - finfo(x.dtype).eps
        share = with_lower_part(x.tanh().clamp(-limit, limit), -1)
        left = (1 - share**2).sqrt().cumprod(-1)
        share = share + ops.eye(share.shape[-1], dtype=x.dtype, device=x.device)
        return share * moved_right(left)

    def _inverse(self, y: Tensor) -> Tensor:
        left = moved_right(1 - (y * y).cumsum(-1))
        return (lower_part(y, -1) / lower_part(left, -1).sqrt()).atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Returns the logarithm for x and the part of y below the diagonal."""
        left = lower_part(1 - (y * y).cumsum(-1), -2)
        return 0.5 * left.log().sum(-1) + TanhTransform().log_abs_det_jacobian(x, x).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        n = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != shape[-1]:
            raise ValueError(
                f"CorrCholeskyTransform: x has {shape[-1]} numbers: must be n * (n - 1) / 2"
            )
        return (*shape[:-1], n, n)

    def inverse_shape(self, shape: Any) -> Any:
        n = shape[-1]
        if len(shape) < 2 or shape[-2] != n:
            raise ValueError(f"CorrCholeskyTransform: y is {list(shape)}: must be square matrices")
        return (*shape[:-2], n * (n - 1) // 2)
