"""The recorded operators, as torch.autograd.graph."""
from __future__ import annotations

from ctypes import c_int64

from .._handles import NodeHandle
from .._lib import result


class Node(NodeHandle):
    """A recorded operator."""

    __slots__ = ()

    def name(self) -> str:
        """Returns the name in PyTorch's style: "AddBackward0"."""
        op = super().name()
        if op[:1].isupper():  # a Function
            return op + "Backward"
        return "".join(part[:1].upper() + part[1:] for part in op.split("_")) + "Backward0"

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """(node, 0) for each input; None for an input that is a leaf or requires no gradient."""
        nodes = [result(Node, "tt_node_next", self, c_int64(i)) for i in range(self.num_inputs())]
        return tuple((node, 0) for node in nodes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self._address == other._address

    def __hash__(self) -> int:
        return hash(self._address)

    def __repr__(self) -> str:
        return f"<{self.name()} object at {self._address:#x}>"
