"""Functions that make a batch from samples."""
from __future__ import annotations

from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from copy import copy
from functools import partial
from typing import Any, Callable

from ... import _ops as ops
from ..._create import as_tensor, is_array, tensor
from ..._tensor import Tensor
from ..._types import float64

NO_NUMBERS = "SUaO"  # kinds of NumPy's dtypes
# type -> f(batch, collate_fn_map=map): how default_collate combines samples of types that an
# application adds
default_collate_fn_map: dict[Any, Callable[..., Any]] = {}


def default_convert(data: Any) -> Any:
    """Converts NumPy arrays in data to tensors, including those in mappings and sequences."""
    if isinstance(data, (Tensor, str, bytes)):
        return data
    if is_array(data):
        return data if data.dtype.kind in NO_NUMBERS else as_tensor(data)
    if isinstance(data, Mapping):
        return mapping_like(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple):
        converted = [default_convert(value) for value in data]
        return type(data)(*converted) if hasattr(data, "_fields") else converted
    if isinstance(data, Sequence):
        return sequence_like(data, [default_convert(value) for value in data])
    return data


def default_collate(batch: Any) -> Any:
    """Combines samples of the same structure into a batch.

    Tensors and arrays are stacked. Ints and bools become a tensor, floats a float64 tensor; strings
    and bytes stay a list. The items of mappings, named tuples and sequences are collated
    individually; a tuple becomes a list.
    Raises RuntimeError for sequences of different lengths, TypeError for samples of other types.
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def collate(batch: Any, *, collate_fn_map: dict[Any, Callable[..., Any]] | None = None) -> Any:
    """Combines samples as default_collate, but those of a type in collate_fn_map by its function.

    The function is called with the batch and collate_fn_map by keyword.
    """
    first = batch[0]
    if collate_fn_map:
        for kind, combine in collate_fn_map.items():
            if isinstance(first, kind):
                return combine(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Tensor):
        return ops.stack(list(batch))
    if is_array(first):
        if first.dtype.kind in NO_NUMBERS:
            raise TypeError(f"default_collate: an array of dtype {first.dtype} cannot be a tensor")
        if first.ndim:
            return ops.stack([as_tensor(x) for x in batch])
        return tensor(list(batch))
    if isinstance(first, float):
        return tensor(list(batch), dtype=float64)
    if isinstance(first, int):
        return tensor(list(batch))
    if isinstance(first, (str, bytes)):
        return batch
    inner = partial(collate, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        items = {key: inner([sample[key] for sample in batch]) for key in first}
        return mapping_like(first, items)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*map(inner, zip(*batch)))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("default_collate: each sample of the batch must have equal length")
        columns = [inner(column) for column in zip(*batch)]
        return columns if isinstance(first, tuple) else sequence_like(first, columns)
    raise TypeError(
        "default_collate: samples must be tensors, NumPy arrays, numbers, strings, dicts or lists, "
        f"not {type(first).__name__}"
    )


def mapping_like(example: Any, items: dict[Any, Any]) -> Any:
    """Returns items as a mapping of example's type, or as a dict if that is impossible."""
    try:
        if isinstance(example, MutableMapping):
            mapping = copy(example)
            mapping.update(items)
            return mapping
        return type(example)(items)
    except TypeError:
        return items


def sequence_like(example: Any, items: list[Any]) -> Any:
    """Returns items as a sequence of example's type, or as a list if that is impossible."""
    try:
        if isinstance(example, MutableSequence):
            sequence = copy(example)
            for i, item in enumerate(items):
                sequence[i] = item
            return sequence
        return type(example)(items)
    except TypeError:
        return items
