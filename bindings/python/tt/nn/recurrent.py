"""Recurrent layers and cells with PyTorch's states and packed sequences."""
from __future__ import annotations

from typing import Any, Union

from .._handles import StateDictHandle
from .._lib import result
from .._tensor import Tensor
from ..errors import DtypeError
from . import _layers
from .layer import ModuleHandle, ParameterLayer
from .utils.rnn import PackedSequence

States = Union[Tensor, tuple[Tensor, Tensor], None]
Sequences = Union[Tensor, PackedSequence]


class RNNBase(ParameterLayer):
    """The base of RNN, LSTM and GRU. Their number of parameters depends on their arguments."""

    mode: str
    bias: bool
    proj_size: int = 0

    def _adopt(self, handle: ModuleHandle) -> None:
        names = result(StateDictHandle, "tt_module_named_parameters", handle)
        self.__dict__["_slots"] = tuple(names.keys())
        self.__dict__["_buffer_flags"] = (False,) * len(names)
        super()._adopt(handle)

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """The parameters: a list for each layer and direction."""
        each = (4 if self.bias else 2) + bool(self.proj_size)
        own = [getattr(self, name) for name in self._slots]
        return [own[i : i + each] for i in range(0, len(own), each)]

    @property
    def _flat_weights_names(self) -> list[str]:
        """The names of the parameters, by PyTorch's name."""
        return list(self._slots)

    @property
    def _flat_weights(self) -> list[Tensor]:
        """The parameters in one list, by PyTorch's name."""
        return [getattr(self, name) for name in self._slots]

    def flatten_parameters(self) -> None:
        """Does nothing: parameters need no common memory."""

    def _run(self, input: Sequences, states: tuple[Tensor | None, ...]) -> Any:
        """Returns the output, packed if input is, and the last states."""
        if not isinstance(input, PackedSequence):
            try:
                output, *last = self._forward(input, *states)
            except DtypeError as e:
                raise ValueError(str(e)) from e
            return output, last
        data, batch_sizes, sorted_indices, unsorted_indices = input
        if sorted_indices is not None:
            states = tuple(s if s is None else s.index_select(1, sorted_indices) for s in states)
        output, *last = self._forward(data, *states, batch_sizes)
        if unsorted_indices is not None:
            last = [s.index_select(1, unsorted_indices) for s in last]
        return PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices), last


class RNN(RNNBase, _layers.RNN):
    __doc__ = _layers.RNN.__doc__
    __module__ = "tt.nn"
    _class = "RNN"

    @property
    def mode(self) -> str:  # type: ignore[override]
        return "RNN_" + self.nonlinearity.upper()

    def forward(  # type: ignore[override]
        self, input: Sequences, hx: Tensor | None = None
    ) -> tuple[Sequences, Tensor]:
        """Returns (output, h_n). input: a tensor or a PackedSequence; output has the same type."""
        output, last = self._run(input, (hx,))
        return output, last[0]


class GRU(RNNBase, _layers.GRU):
    __doc__ = _layers.GRU.__doc__
    __module__ = "tt.nn"
    _class = "GRU"
    mode = "GRU"

    def forward(  # type: ignore[override]
        self, input: Sequences, hx: Tensor | None = None
    ) -> tuple[Sequences, Tensor]:
        """Returns (output, h_n). input: a tensor or a PackedSequence; output has the same type."""
        output, last = self._run(input, (hx,))
        return output, last[0]


class LSTM(RNNBase, _layers.LSTM):
    __doc__ = _layers.LSTM.__doc__
    __module__ = "tt.nn"
    _class = "LSTM"
    mode = "LSTM"

    def forward(  # type: ignore[override]
        self, input: Sequences, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Sequences, tuple[Tensor, Tensor]]:
        """Returns (output, (h_n, c_n)). input: a tensor or a PackedSequence; output has the same
        type. hx: (h_0, c_0)."""
        output, last = self._run(input, pair_of(hx))
        return output, (last[0], last[1])


class Cell(ParameterLayer):
    """The base of the cells. As in PyTorch, bias may be any object: its truth value counts."""

    def _initialize(self, *, bias: Any, **arguments: Any) -> None:  # type: ignore[override]
        super()._initialize(bias=bool(bias), **arguments)


class RNNCell(Cell, _layers.RNNCell):
    __doc__ = _layers.RNNCell.__doc__
    __module__ = "tt.nn"
    _class = "RNNCell"


class GRUCell(Cell, _layers.GRUCell):
    __doc__ = _layers.GRUCell.__doc__
    __module__ = "tt.nn"
    _class = "GRUCell"


class LSTMCell(Cell, _layers.LSTMCell):
    __doc__ = _layers.LSTMCell.__doc__
    __module__ = "tt.nn"
    _class = "LSTMCell"

    def forward(  # type: ignore[override]
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Returns (h, c). hx: (h_0, c_0)."""
        h, c = self._forward(input, *pair_of(hx))
        return h, c


def pair_of(hx: States) -> tuple[Tensor | None, Tensor | None]:
    if hx is None:
        return None, None
    if not isinstance(hx, (tuple, list)) or len(hx) != 2:
        raise TypeError(f"hx is {type(hx).__name__}: must be a tuple (h_0, c_0)")
    return hx[0], hx[1]
