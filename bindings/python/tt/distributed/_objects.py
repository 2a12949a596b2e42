"""Collectives and transfers of Python objects, which are pickled."""
from __future__ import annotations

from typing import Any

from .. import _ops as ops
from .._create import tensor as tensor_of
from .._tensor import Tensor
from .._types import BY_NAME
from ._collectives import check_length, parts_of
from ._group import bytes_of, tensor_of_bytes
from ._groups import checked, root_of
from ._transfers import recv, send


def packed(obj: Any) -> Tensor:
    """Returns the bytes of the pickled object."""
    import pickle

    return tensor_of_bytes(pickle.dumps(obj))


def unpacked(t: Tensor, n: int) -> Any:
    """Unpickles an object from the first n bytes."""
    import pickle

    return pickle.loads(bytes_of(t[:n]))


def shared_length(t: Tensor, group: Any) -> tuple[list[int], Tensor]:
    """Returns the lengths of t on all ranks, and t padded to the largest."""
    g = checked(group, "all_gather_object")
    lengths = parts_of(g, tensor_of([0]))
    g.start("tt_group_all_gather", (tensor_of([len(t)]), lengths), wait=True)
    sizes = lengths.flatten().tolist()
    padded = ops.zeros(max(sizes), dtype=t.dtype)
    padded[: len(t)] = t
    return sizes, padded


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Writes the objects of all ranks to object_list. They are pickled: trust all ranks."""
    g = checked(group, "all_gather_object")
    check_length(object_list, g, "all_gather_object", "object_list")
    sizes, padded = shared_length(packed(obj), group)
    whole = parts_of(g, padded)
    g.start("tt_group_all_gather", (padded, whole), wait=True)
    for i, n in enumerate(sizes):
        object_list[i] = unpacked(whole[i], n)


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """Writes the objects of all ranks to object_gather_list on rank dst. They are pickled."""
    g = checked(group, "gather_object")
    objects = [None] * g.size()
    all_gather_object(objects, obj, group)
    if g.rank() == root_of(g, dst, group_dst, "gather_object", "dst"):
        check_length(object_gather_list, g, "gather_object", "object_gather_list")
        object_gather_list[:] = objects  # type: ignore[index]


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Replaces the objects on all ranks by those of rank src. They are pickled."""
    g = checked(group, "broadcast_object_list")
    root = root_of(g, src, group_src, "broadcast_object_list", "src")
    mine = packed(list(object_list))
    length = tensor_of([len(mine)])
    g.start("tt_group_broadcast", (length,), root, wait=True)
    if g.rank() != root:
        mine = ops.empty(int(length), dtype=mine.dtype)
    g.start("tt_group_broadcast", (mine,), root, wait=True)
    object_list[:] = unpacked(mine, len(mine))


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """Writes item r of the input list of rank src to the output list of rank r. It is pickled."""
    g = checked(group, "scatter_object_list")
    whole = list(scatter_object_input_list or [None] * g.size())
    check_length(whole, g, "scatter_object_list", "scatter_object_input_list")
    broadcast_object_list(whole, src, group, group_src=group_src)
    scatter_object_output_list[0] = whole[g.rank()]


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: Any = None,
    device: Any = None,
    group_dst: int | None = None,
) -> None:
    """Sends objects to rank dst. They are pickled."""
    data = packed(list(object_list))
    send(tensor_of([len(data)], device="cpu"), dst, group, group_dst=group_dst)
    send(data, dst, group, group_dst=group_dst)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> int:
    """Replaces objects by those that rank src sends; None: the first rank that sends. They are
    unpickled: trust it. Returns the rank that has sent."""
    length = tensor_of([0], device="cpu")
    sender = recv(length, src, group, group_src=group_src)
    data = ops.empty(int(length), dtype=BY_NAME["uint8"], device="cpu")
    recv(data, sender, group)
    object_list[:] = unpacked(data, len(data))
    return sender
