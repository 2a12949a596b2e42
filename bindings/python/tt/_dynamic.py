"""A dimension of any size in captured calls: torch.export.Dim, and arguments of other sizes."""
from __future__ import annotations

import inspect

from ._tensor import Tensor
from ._tree import without_tensors
from .errors import UnimplementedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence


class Dim:
    """A dimension whose size is not fixed. Calls check that it lies in [min, max]."""

    AUTO: Dim
    DYNAMIC: Dim
    STATIC: Dim

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        self.__name__, self.min, self.max = name, min, max
        if min is not None and max is not None and max <= min:
            raise ValueError(f"Dim: max is {max}, min is {min}: max must be greater than min")

    def __repr__(self) -> str:
        return f"Dim({self.__name__!r})"

    def accepts(self, size: int) -> bool:
        """Returns whether the size lies in [min, max]."""
        return (self.min is None or size >= self.min) and (self.max is None or size <= self.max)


Dim.AUTO, Dim.DYNAMIC, Dim.STATIC = Dim("AUTO"), Dim("DYNAMIC"), Dim("STATIC")


class Dynamic:
    """Which dimension of which tensors is dynamic. dims: for each tensor, a dimension or None."""

    def __init__(self, dim: Dim, dims: list[int | None]) -> None:
        self.dim, self.dims = dim, dims

    def size(self, tensors: Sequence[Tensor], where: str) -> int:
        """Returns the size that the tensors have in it."""
        sizes = {x.shape[d] for x, d in zip(tensors, self.dims) if d is not None}
        if len(sizes) != 1:
            raise ValueError(f"{where}: {self.dim} has the sizes {sorted(sizes)}: must be one size")
        (size,) = sizes
        if not self.dim.accepts(size):
            raise ValueError(
                f"{where}: {self.dim} is {size}: must lie in [{self.dim.min}, {self.dim.max}]"
            )
        return size

    def resized(self, tensors: Sequence[Tensor], size: int) -> list[Tensor]:
        """Returns the tensors with another size of the dimension; rows are repeated."""
        out = []
        for x, d in zip(tensors, self.dims):
            if d is not None and x.shape[d] != size:
                if x.shape[d] == 0:
                    raise ValueError(f"{self.dim} is 0 in the example: must be positive")
                index = [i % x.shape[d] for i in range(size)]
                x = x.detach().index_select(d, x.new_tensor(index).long())
            out.append(x)
        return out


def dimensions(spec: Any, x: Any, where: str) -> dict[int, Dim]:
    """Returns the dynamic dimensions of an argument."""
    if spec is None:
        return {}
    if not isinstance(x, Tensor):
        raise UnimplementedError(f"{where}: dimensions of an argument that is no tensor")
    pairs = spec.items() if isinstance(spec, dict) else enumerate(spec)
    found = {}
    for d, dim in pairs:
        if dim is None or isinstance(dim, int) or dim is Dim.STATIC:
            continue
        if not isinstance(dim, Dim):
            raise TypeError(f"{where}: a dimension is {dim!r}: must be a Dim or None")
        if not -x.ndim <= d < x.ndim:
            raise IndexError(f"{where}: dimension {d} of a tensor of {x.ndim} dimensions")
        found[d % x.ndim] = dim
    return found


def names_of(model: Any, args: Any, kwargs: dict[str, Any]) -> list[str]:
    """Returns a name for each tensor of the arguments, or fewer if their names are not known."""
    try:
        signature = inspect.signature(getattr(model, "forward", model))
        bound = signature.bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return []
    names: list[str] = []
    for name, value in bound.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            names += [key for key, x in value.items() if isinstance(x, Tensor)]
        elif isinstance(value, Tensor):
            names.append(name)
        else:
            tensors: list[Tensor] = []
            without_tensors(value, tensors)
            names += [f"{name}_{i}" for i in range(len(tensors))]
    return names


def from_shapes(
    shapes: Any, function: Callable[..., Any], args: Sequence[Any], kwargs: Any, where: str
) -> Dynamic | None:
    """Reads the argument dynamic_shapes: a dict by names of arguments, or a list in their order."""
    values = [*args, *kwargs.values()]
    if isinstance(shapes, dict):
        called = getattr(function, "forward", function)
        names = list(inspect.signature(called).parameters)[: len(args)] + list(kwargs)
        unknown = shapes.keys() - set(names)
        if unknown:
            raise ValueError(f"{where}: dynamic_shapes has no arguments {sorted(unknown)}")
        specs = [shapes.get(name) for name in names]
    else:
        specs = list(shapes)
    if len(specs) != len(values):
        raise ValueError(f"{where}: dynamic_shapes is for {len(specs)} of {len(values)} arguments")
    return single([dimensions(s, x, where) for s, x in zip(specs, values)], values, where)


def single(found: list[dict[int, Dim]], values: Sequence[Any], where: str) -> Dynamic | None:
    """Returns the one dynamic dimension; None if there is none."""
    names = {dim.__name__: dim for dims in found for dim in dims.values()}
    if not names:
        return None
    if len(names) > 1 or any(len(dims) > 1 for dims in found):
        raise UnimplementedError(f"{where}: several dynamic dimensions: one has a dynamic size")
    if any(not isinstance(x, (Tensor, int, float, bool, str, type(None))) for x in values):
        raise UnimplementedError(f"{where}: dynamic shapes beside arguments with tensors in them")
    (dim,) = names.values()
    dims = [next(iter(d), None) for d, x in zip(found, values) if isinstance(x, Tensor)]
    return Dynamic(dim, dims)
