"""x[i] with i in a tensor, while a function is recorded or exported."""
from __future__ import annotations

import threading
from ctypes import create_string_buffer
from typing import Any, Iterable, Sequence

from . import _interception as interception

__all__ = ["Copy", "Positions", "is_number", "note_read", "state"]
PLAIN = (int, slice, type(None), type(Ellipsis))
DENSE, LOOSE, EXACT = range(3)  # layouts of copies
MOVED = "it changes the shape or the memory of x or x[i] in place, with i in a tensor"
SHARED = "it writes x[i], with i in a tensor, where elements of x share an address"
MERGING = {"contiguous", "flatten", "ravel", "reshape", "reshape_as"}


class State(threading.local):
    """noted: of the function that this thread captures, if it does."""

    noted: Positions | None = None


state = State()


def note_read() -> None:
    """Ends the recording of this thread, or fails its export: Python reads the memory of a tensor,
    or gives it to others, which C does not see; or it has something to do in each call."""
    if state.noted is not None:
        from ._convert import uint64_tensor
        from ._lib import call

        call("tt_item", uint64_tensor(0), create_string_buffer(32))  # unseen by modes


def is_number(item: Any) -> bool:
    """Returns whether item is a position in a tensor."""
    from ._tensor import Tensor

    if not isinstance(item, Tensor) or item.ndim:
        return False
    return item.dtype.kind == "i" and item.dtype.name != "uint8"


def place_of(x: Any) -> Any:
    """Returns where the elements of x are: a method in place, or x.data = y, may change it."""
    return tuple(x.shape), tuple(x.stride()), x.storage_offset(), x._storage_data()


class Copy:
    """A copy of source[key] that stands for the view.

    exact: it has the strides of the view. ambiguous: it has others, and what is a view of it now
    may be a copy of the view. records: it was made while gradients were recorded.
    """

    __slots__ = (
        "ambiguous", "copy", "copy_version", "exact", "key", "places", "records", "source",
        "source_version",
    )  # fmt: skip

    def __init__(self, source: Any, key: tuple[Any, ...], copy: Any, exact: bool) -> None:
        from .autograd import is_grad_enabled

        self.source, self.copy, self.exact = source, copy, exact
        self.key = tuple(k.clone() if is_number(k) else k for k in key)  # i may be written
        self.records = is_grad_enabled()
        self.ambiguous = False
        self.places = place_of(source), place_of(copy)
        self.source_version, self.copy_version = source._version, copy._version

    def has_moved(self) -> bool:
        return self.places != (place_of(self.source), place_of(self.copy))

    def is_written(self) -> bool:
        return bool(self.copy._version != self.copy_version)

    def is_stale(self) -> bool:
        return bool(self.source._version != self.source_version)

    def write_back(self) -> None:
        """Writes the copy to the source."""
        from .autograd import is_grad_enabled, no_grad

        source = self.source
        if source.is_leaf and source.requires_grad and is_grad_enabled():
            with no_grad():  # the copy was written without history, or the write had failed
                source.detach()[self.key] = self.copy
        else:
            source[self.key] = self.copy
        self.source_version, self.copy_version = source._version, self.copy._version

    def refresh(self) -> None:
        """Copies the source anew."""
        from .autograd import is_grad_enabled, set_grad_enabled

        with set_grad_enabled(self.records and is_grad_enabled()):
            self.copy.copy_(self.source[self.key])
        self.source_version, self.copy_version = self.source._version, self.copy._version


def loose_strides(x: Any) -> list[int]:
    """Returns strides in which no two elements share an address, and in which the same dimensions
    as of x can be merged, so that reshape() copies or not as it does of x. They span at most a few
    times the elements."""
    strides = [1] * x.ndim
    end, merged = 1, 1  # of the dimensions so far: in the result, in x
    for step, n, d in sorted((x.stride(d), x.shape[d], d) for d in range(x.ndim)):
        if n < 2:
            continue
        strides[d] = end if step == merged else end + 1
        end, merged = strides[d] * n, step * n
    return strides


def is_apart(x: Any) -> bool:
    """Returns whether no two elements of x share an address, as its strides show."""
    extent = 1
    for step, n in sorted((step, n) for step, n in zip(x.stride(), x.shape) if n > 1):
        if step < extent:
            return False
        extent += step * (n - 1)
    return True


class Positions:
    """The tensors that a captured function reads at positions in tensors.

    as_tensor: such a position stays a tensor, which each run reads. x[i] is a copy then, where it
    else is a view. After each function that is called, what was written to a copy is written to x,
    and what was written to x is copied anew, so the function's results are those of views.
    layout: strides of copies. EXACT: those of views. LOOSE: such that the same dimensions can be
    merged. DENSE: none between elements, so that a copy must not be written after a function that
    merges dimensions.
    """

    def __init__(self, as_tensor: bool, layout: int = DENSE) -> None:
        self.as_tensor, self.layout = as_tensor, layout
        self.key: Sequence[Any] = ()  # of the running index, if its positions stay tensors
        self.source: Any = None
        self.gives_view = False  # the running index reads its positions
        self.tensors: dict[int, tuple[Any, int, Any]] = {}
        self.views: list[tuple[Any, Any]] = []  # that were given out, and where they were
        self.copies: list[Copy] = []
        self.is_syncing = False
        self.prints = layout != DENSE  # of a compiled function: each call of it prints
        self.failure = ""  # why results are not those of views

    def __enter__(self) -> Positions:
        self.outer, state.noted = state.noted, self
        return self

    def __exit__(self, *unused: Any) -> None:
        state.noted = self.outer
        if self.copies:
            from .nn.module import enclosing

            interception.state.modes.remove(self)
            interception.end()
            enclosing.remove(self.around)

    def takes(self, x: Any, keys: Sequence[Any]) -> bool:
        """Returns whether the positions among keys stay tensors, and notes x if there are any."""
        self.key = ()  # an index before may have failed
        others = [k for k in keys if not is_number(k)]
        if len(others) == len(keys) or not all(type(k) in PLAIN for k in others):
            return False
        if not self.as_tensor:
            self.note(x)
            self.gives_view = True
        elif not self.is_syncing:
            self.key, self.source = keys, x
        return self.as_tensor

    def take(self, result: Any) -> Any:
        """Returns what stands for x[key], given its elements, and x and key of the last `takes`."""
        if self.gives_view:
            self.gives_view = False
            self.views.append((result, place_of(result)))
            return result
        key, source = tuple(self.key), self.source
        self.key, self.source = (), None
        if not key or result._storage_data() == source._storage_data():
            return result  # a view: the recording has ended
        view = source.detach()[tuple(0 if is_number(k) else k for k in key)]
        exact = tuple(view.stride()) == tuple(result.stride()) or result.numel() < 2
        if not exact and self.layout != DENSE:
            exact = self.layout == EXACT and is_apart(view)
            strides = view.stride() if exact else loose_strides(view)
            result = result.new_empty_strided(view.shape, strides).copy_(result)
        if not self.copies:
            self.begin()
        self.copies.append(Copy(source, key, result, exact))
        return result

    def begin(self) -> None:
        """Sees each function that is called from here on, below the modes of the application."""
        from .nn.module import enclosing

        interception.begin()
        interception.state.modes.insert(0, self)
        enclosing.append(self.around)

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        self.sync()
        if func.__name__ in MERGING:
            self.merge(x._storage_data() for x in args if hasattr(x, "_storage_data"))
        result = func(*args, **(kwargs or {}))
        self.sync()
        return result

    def around(self, module: Any) -> Any:
        """Returns the context of the call of a module, whose layers may run in C."""
        if not module._modules:
            self.merge(copy.copy._storage_data() for copy in self.copies)
        return Around(self)

    def merge(self, memories: Iterable[int]) -> None:
        """Takes note that dimensions of copies in these memories are merged."""
        if self.layout == DENSE:
            found = set(memories)
            for copy in self.copies:
                copy.ambiguous |= not copy.exact and copy.copy._storage_data() in found

    def sync(self) -> None:
        """Makes copies and sources agree."""
        if self.is_syncing or state.noted is not self:
            return
        self.is_syncing = True
        try:
            for copy in self.copies:
                if copy.has_moved():
                    self.failure = MOVED
                elif copy.is_written() and not is_apart(copy.source):
                    self.failure = SHARED
            if self.failure:
                return
            for copy in reversed(self.copies):  # those of copies before these
                if copy.is_written():
                    if copy.is_stale():
                        self.failure = "one function writes x and x[i], with i in a tensor"
                    elif copy.ambiguous:
                        self.failure = "it writes x[i], with i in a tensor, after a reshape"
                    copy.write_back()
            for copy in self.copies:
                if copy.is_stale():
                    copy.refresh()
        finally:
            self.is_syncing = False

    def note(self, x: Any) -> None:
        """Notes a tensor whose view at a position in a tensor is given out."""
        self.tensors.setdefault(id(x), (x, x._version, place_of(x)))

    def are_written(self) -> bool:
        """Returns whether one of the tensors has been written since it was noted."""
        return any(x._version != version for x, version, _ in self.tensors.values())

    def why_not(self) -> str:
        """Returns why copies must not stand for the views; "" if they may."""
        places = [(x, place) for x, _, place in self.tensors.values()]
        if any(place_of(x) != place for x, place in places + self.views):
            return MOVED
        if self.are_written() and not all(is_apart(x) for x, _, _ in self.tensors.values()):
            return SHARED
        return ""

    def are_in(self, results: Sequence[Any]) -> bool:
        """Returns whether one of the results is in the memory of one of the tensors."""
        memories = {x._storage_data() for x, _, _ in self.tensors.values()}
        return any(x._storage_data() in memories for x in results)


class Around:
    """Syncs copies before and after a block."""

    def __init__(self, positions: Positions) -> None:
        self.positions = positions

    def __enter__(self) -> None:
        self.positions.sync()

    def __exit__(self, *unused: Any) -> None:
        self.positions.sync()
