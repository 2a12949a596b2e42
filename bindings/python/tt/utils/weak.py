"""References and dictionaries that do not keep tensors alive and compare them by identity, with the
names of torch.utils.weak."""
from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, Callable, Iterator
from weakref import ref

from .._tensor import Tensor

__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]


class WeakIdRef(ref):
    """A weak reference whose hash and equality are the identity of its object, which a tensor's
    == is not."""

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Callable[[Any], Any] | None = None) -> None:
        super().__init__(key, callback)  # type: ignore[call-arg]
        self._id = id(key)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        mine, others = self(), other() if isinstance(other, ref) else None
        return self is other if mine is None or others is None else mine is others


class WeakIdKeyDictionary(MutableMapping):
    """A dictionary whose entries go with their keys, which are compared by identity."""

    def __init__(self, dict: Any = None, ref_type: type = WeakIdRef) -> None:
        self.data: Any = {}
        self.ref_type = ref_type
        data = self.data
        self._remove = lambda reference: data.pop(reference, None)
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._remove)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # of an object without weak references
            return False

    def __iter__(self) -> Iterator[Any]:
        for reference in list(self.data):
            key = reference()
            if key is not None:
                yield key

    def __len__(self) -> int:
        return sum(reference() is not None for reference in list(self.data))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)}>"

    def copy(self) -> WeakIdKeyDictionary:
        """Returns a dictionary with the same keys and values."""
        return type(self)(self, self.ref_type)

    __copy__ = copy

    def __or__(self, other: Any) -> WeakIdKeyDictionary:
        both = self.copy()
        both.update(other)
        return both

    def __ior__(self, other: Any) -> WeakIdKeyDictionary:
        self.update(other)
        return self

    def keyrefs(self) -> list[Any]:
        """Returns the weak references of the keys."""
        return list(self.data)


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference of a tensor; two are equal if they are of the same tensor."""

    __slots__ = ("ref",)

    def __init__(self, tensor: Tensor) -> None:
        self.ref = WeakIdRef(tensor)

    def __call__(self) -> Tensor | None:
        return self.ref()

    def __hash__(self) -> int:
        return hash(self.ref)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorWeakRef) and self.ref == other.ref
