"""A dimension of any size in captured calls: torch.export.Dim, and arguments of other sizes."""
from __future__ import annotations

import inspect
from typing import Any, Callable, Sequence

from ._tensor import Tensor
from ._tree import without_tensors
from .errors import UnimplementedError
from ._graph import GraphHandle


class Dim:
    """A dimension whose size is not fixed. Calls check that it is in [min, max]."""

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
        """Returns whether the size is in [min, max]."""
        return (self.min is None or size >= self.min) and (self.max is None or size <= self.max)


Dim.AUTO, Dim.DYNAMIC, Dim.STATIC = Dim("AUTO"), Dim("DYNAMIC"), Dim("STATIC")


class Dynamic:
    """Which dimensions of which tensors are dynamic. dims: in the order in which tensors have them
    first. places: for each tensor, {dimension: which of dims}."""

    MOST = 3

    def __init__(self, dims: list[Dim], places: list[dict[int, int]]) -> None:
        self.dims, self.places = dims, places

    def sizes(self, tensors: Sequence[Tensor], where: str) -> tuple[int, ...]:
        """Returns the sizes that the tensors have in them."""
        found: list[set[int]] = [set() for _ in self.dims]
        for x, place in zip(tensors, self.places):
            for d, i in place.items():
                found[i].add(x.shape[d])
        for dim, sizes in zip(self.dims, found):
            if len(sizes) != 1:
                raise ValueError(f"{where}: {dim} has the sizes {sorted(sizes)}: must be one size")
            (size,) = sizes
            if not dim.accepts(size):
                raise ValueError(f"{where}: {dim} is {size}: must be in [{dim.min}, {dim.max}]")
        return tuple(size for sizes in found for size in sizes)

    def resized(self, tensors: Sequence[Tensor], sizes: Sequence[int]) -> list[Tensor]:
        """Returns the tensors with other sizes of the dimensions; rows are repeated."""
        out = []
        for x, place in zip(tensors, self.places):
            for d, i in place.items():
                if x.shape[d] == sizes[i]:
                    continue
                if x.shape[d] == 0:
                    raise ValueError(f"{self.dims[i]} is 0 in the example: must be positive")
                index = [row % x.shape[d] for row in range(sizes[i])]
                x = x.detach().index_select(d, x.new_tensor(index).long())
            out.append(x)
        return out

    def examples(self, sizes: Sequence[int], where: str) -> list[list[int]]:
        """Returns three sizes for each dimension, near those of the example. None is 1, which
        broadcasts."""
        found = []
        for dim, size in zip(self.dims, sizes):
            size = max(size, 2, dim.min or 0)
            near = [size + more for more in (0, -1, -3, 1, 3, -2, 2)]
            near = [n for n in near if n > 1 and dim.accepts(n)]
            if len(near) < 3:
                raise ValueError(f"{where}: {dim} must have three sizes above 1 that it accepts")
            found.append(near[:3])
        return found


def corners(examples: list[list[int]]) -> list[list[int]]:
    """Returns all choices of the first or the second of three sizes of each dimension; bit i of a
    choice's position is that of dimension i."""
    n = len(examples)
    return [[examples[i][choice >> i & 1] for i in range(n)] for choice in range(1 << n)]


def resized(graphs: Sequence[GraphHandle], sizes: Sequence[int]) -> GraphHandle:
    """Returns the graph for other sizes. graphs: those of corners()."""
    for size in sizes:
        pairs = zip(graphs[::2], graphs[1::2])
        graphs = [one.resized(other, size) for one, other in pairs]
    return graphs[0]


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
        found[d % x.ndim] = named(dim, d % x.ndim, x.shape[d])
    return found


def named(dim: Dim, d: int, size: int) -> Dim:
    """Returns the Dim; for AUTO and DYNAMIC one that dimensions of equal sizes share."""
    return Dim(f"dim{d}_{size}") if dim is Dim.AUTO or dim is Dim.DYNAMIC else dim


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
    return joined([dimensions(s, x, where) for s, x in zip(specs, values)], values, where)


def joined(found: list[dict[int, Dim]], values: Sequence[Any], where: str) -> Dynamic | None:
    """Returns the dynamic dimensions; None if there is none."""
    dims = {dim.__name__: dim for each in found for _, dim in sorted(each.items())}
    if not dims:
        return None
    if len(dims) > Dynamic.MOST:
        raise UnimplementedError(
            f"{where}: {len(dims)} dynamic dimensions: at most {Dynamic.MOST} have dynamic sizes"
        )
    if any(not isinstance(x, (Tensor, int, float, bool, str, type(None))) for x in values):
        raise UnimplementedError(f"{where}: dynamic shapes beside arguments with tensors in them")
    order = {name: i for i, name in enumerate(dims)}
    places = [
        {d: order[dim.__name__] for d, dim in each.items()}
        for each, x in zip(found, values)
        if isinstance(x, Tensor)
    ]
    return Dynamic(list(dims.values()), places)
