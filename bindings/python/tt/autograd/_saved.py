"""Hooks on the tensors that operators save for backward."""
from __future__ import annotations

from contextlib import contextmanager
from ctypes import CFUNCTYPE, POINTER, Structure, byref, c_int32, c_size_t, c_void_p, cast, sizeof
from threading import local as thread_local
from typing import Any, Callable, Iterator

from .._hints import Self
from .._hooks import give, guarded
from .._lib import call, drop, for_good, keep, kept
from .._tensor import Tensor, borrow


class Disabled(thread_local):
    """The reason why this thread cannot use hooks now; None: it can."""

    message: str | None = None


disabled = Disabled()


class Definition(Structure):
    """tt_saved_tensors_def"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("user", c_void_p),
        ("pack", c_void_p),
        ("unpack", c_void_p),
        ("drop_packed", c_void_p),
        ("drop", c_void_p),
    ]


@CFUNCTYPE(c_int32, c_void_p, c_void_p, c_void_p, POINTER(c_void_p))
def pack(user: int, ctx: int, t: int, packed: Any) -> int:
    def body() -> None:
        tensor = borrow(t)
        version = tensor._version
        packed[0] = keep(kept[user].pack_hook(tensor))
        if tensor._version != version:
            raise RuntimeError("pack_hook wrote to its tensor: it must not change what is saved")

    return guarded(body)


@CFUNCTYPE(c_int32, c_void_p, c_void_p, c_void_p, POINTER(c_void_p))
def unpack(user: int, ctx: int, packed: int, out: Any) -> int:
    def body() -> None:
        tensor = kept[user].unpack_hook(kept[packed])
        if not isinstance(tensor, Tensor):
            raise TypeError(f"unpack_hook must return a Tensor, not {type(tensor).__name__}")
        give(tensor, out, 1, "unpack_hook")

    return guarded(body)


for_good(pack)
for_good(unpack)


class saved_tensors_hooks:
    """Within the block, operators save pack_hook(t) instead of a tensor t for backward. Backward
    reads unpack_hook(pack_hook(t)), which must have t's shape and dtype.

    pack_hook must not change t. In nested blocks the innermost hooks are used.
    """

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self) -> Self:
        if disabled.message is not None:
            raise RuntimeError(disabled.message)
        table = Definition(
            struct_size=sizeof(Definition),
            user=keep(self),
            pack=cast(pack, c_void_p),
            unpack=cast(unpack, c_void_p),
            drop_packed=cast(drop, c_void_p),
            drop=cast(drop, c_void_p),
        )
        call("tt_saved_tensors_push", byref(table))
        return self

    def __exit__(self, *_: object) -> None:
        call("tt_saved_tensors_pop")


class save_on_cpu(saved_tensors_hooks):
    """Within the block, operators save tensors for backward on the CPU. pin_memory and device_type
    are ignored."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(
            lambda t: (t.device, t.to("cpu", copy=True)), lambda packed: packed[1].to(packed[0])
        )


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Within the block, saved_tensors_hooks raises RuntimeError with this message."""
    before = disabled.message
    disabled.message = error_message
    try:
        yield
    finally:
        disabled.message = before
