"""The recorded operators, as torch.autograd.graph."""
from ctypes import c_int64

from .._handles import NodeHandle
from .._lib import result


class Node(NodeHandle):
    """A recorded operator."""

    __slots__ = ()

    def name(self):
        """PyTorch's name of it: "AddBackward0"."""
        op = super().name()
        return (
            op + "Backward"
            if op[:1].isupper()
            else "".join(part[:1].upper() + part[1:] for part in op.split("_")) + "Backward0"
        )

    @property
    def next_functions(self):
        """The nodes of its inputs, in pairs as PyTorch has them (the second item is always 0); None for a leaf or for no gradient."""
        return tuple(
            (result(Node, "tt_node_next", self, c_int64(i)), 0) for i in range(self.num_inputs())
        )

    def __eq__(self, other):
        return isinstance(other, Node) and self._address == other._address

    def __hash__(self):
        return hash(self._address)

    def __repr__(self):
        return f"<{self.name()} object at {self._address:#x}>"
