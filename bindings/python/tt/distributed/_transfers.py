"""Transfers between two ranks."""
from __future__ import annotations

from typing import Any

from .._tensor import Tensor
from ._group import Work
from ._groups import checked, root_of


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Starts sending tensor to rank dst, or to rank group_dst of the group."""
    g = checked(group, "isend")
    root = root_of(g, dst, group_dst, "isend", "dst")
    return g.start("tt_group_send", (tensor,), root, tag, wait=False)


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Starts receiving tensor from rank src, or from rank group_src of the group; None: from the
    first rank that sends with this tag, which source_rank() of the work returns."""
    g = checked(group, "irecv")
    anyone = src is None and group_src is None
    place = -1 if anyone else root_of(g, src, group_src, "irecv", "src")
    return g.start("tt_group_recv", (tensor,), place, tag, wait=False)


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """Sends tensor to rank dst, or to rank group_dst of the group."""
    g = checked(group, "send")
    root = root_of(g, dst, group_dst, "send", "dst")
    g.start("tt_group_send", (tensor,), root, tag, wait=True)


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """Receives tensor from rank src, or from rank group_src of the group; None: from the first rank
    that sends with this tag. Returns the rank that has sent."""
    work: Any = irecv(tensor, src, group, tag, group_src)
    work.wait()
    return work.source_rank()


class P2POp:
    """A transfer of batch_isend_irecv: op is isend or irecv."""

    def __init__(
        self,
        op: Any,
        tensor: Tensor,
        peer: int | None = None,
        group: Any = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError("P2POp: op must be tt.distributed.isend or irecv")
        self.op, self.tensor, self.peer, self.group, self.tag = op, tensor, peer, group, tag
        self.group_peer = group_peer


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Any]:
    """Starts several transfers and returns their works."""
    return [p.op(p.tensor, p.peer, p.group, p.tag, p.group_peer) for p in p2p_op_list]
