"""Padded and packed sequences of different lengths, with the API of torch.nn.utils.rnn."""
from __future__ import annotations

from typing import Any, Iterable, NamedTuple, Sequence, Union

from ... import _ops as ops
from ..._create import tensor
from ..._dtype_names import int64
from ..._tensor import Tensor

Lengths = Union[Tensor, Sequence[int]]

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class PackedFields(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Union[Tensor, None]
    unsorted_indices: Union[Tensor, None]


class PackedSequence(PackedFields):
    """Sequences of different lengths without padding. pack_padded_sequence and pack_sequence create
    them; recurrent layers accept them.

    data: (rows, *), the first elements of all sequences, then the second ones, and so on
    batch_sizes: number of sequences with an element at each step; int64, on the CPU
    sorted_indices: the order of the sequences in data; None: the original order
    unsorted_indices: the inverse of sorted_indices
    """

    __module__ = "tt.nn.utils.rnn"

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if batch_sizes is None:
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes.device.type != "cpu":
            raise ValueError(f"batch_sizes is on {batch_sizes.device}: must be on the CPU")
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Moves or converts data as Tensor.to does, and moves the indices with it."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        moved = [i if i is None else i.to(data.device) for i in self[2:]]
        return type(self)(data, self.batch_sizes, *moved)

    def cpu(self) -> PackedSequence:
        return self.to("cpu")

    def cuda(self) -> PackedSequence:
        return self.to("cuda")

    def double(self) -> PackedSequence:
        return self._with_data(self.data.double())

    def float(self) -> PackedSequence:
        return self._with_data(self.data.float())

    def half(self) -> PackedSequence:
        return self._with_data(self.data.half())

    def long(self) -> PackedSequence:
        return self._with_data(self.data.long())

    def int(self) -> PackedSequence:
        return self._with_data(self.data.int())

    def short(self) -> PackedSequence:
        return self._with_data(self.data.short())

    def char(self) -> PackedSequence:
        return self._with_data(self.data.char())

    def byte(self) -> PackedSequence:
        return self._with_data(self.data.byte())

    def pin_memory(self) -> PackedSequence:
        """Returns a sequence whose tensors are in pinned memory."""
        return type(self)(*(t if t is None else t.pin_memory() for t in self))

    def is_pinned(self) -> bool:
        """Returns whether the data is in pinned memory."""
        return self.data.is_pinned()

    def _with_data(self, data: Tensor) -> PackedSequence:
        return type(self)(data, *self[1:])

    @property
    def is_cuda(self) -> bool:
        return self.data.is_cuda


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    if permutation is None:
        return None
    places = ops.arange(0, permutation.numel(), device=permutation.device)
    return ops.zeros_like(permutation).scatter(0, permutation, places)


def steps_of(lengths: Tensor, n: int, like: Tensor) -> Tensor:
    """Returns a bool tensor (n, N) on like's device: whether each sequence has an element at a
    step."""
    steps = ops.arange(0, n).unsqueeze(1)
    return (steps < lengths.unsqueeze(0)).to(like.device)


def pack_padded_sequence(
    input: Tensor, lengths: Lengths, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Packs padded sequences.

    input: (T, N, *), or (N, T, *) if batch_first
    lengths: of the N sequences, each at least 1
    enforce_sorted: requires that lengths do not increase; otherwise sorts the sequences by length
    """
    sizes = lengths if isinstance(lengths, Tensor) else tensor(lengths, device="cpu")
    if sizes.device.type != "cpu":
        raise RuntimeError(f"lengths is on {sizes.device}: must be on the CPU")
    if sizes.ndim != 1:
        raise RuntimeError(f"lengths is {tuple(sizes.shape)}: must be in 1 dimension")
    sizes = sizes.to(int64)
    batch = 0 if batch_first else 1
    if input.ndim < 2 or input.shape[batch] != sizes.numel() or not sizes.numel():
        raise RuntimeError(
            f"input is {tuple(input.shape)}, lengths has length {sizes.numel()}: must have one "
            f"length for each sequence (dimension {batch} of input)"
        )
    order = None
    if not enforce_sorted:
        sizes, order = ops.sort(sizes, descending=True)
        order = order.to(input.device)
        input = input.index_select(batch, order)
    listed = sizes.tolist()
    if listed != sorted(listed, reverse=True):
        raise RuntimeError(f"lengths is {listed}: must not increase if enforce_sorted is True")
    if listed[-1] < 1 or listed[0] > input.shape[1 - batch]:
        raise RuntimeError(f"lengths is {listed}: must be in [1, {input.shape[1 - batch]}]")
    if batch_first:
        input = input.transpose(0, 1)
    present = steps_of(sizes, listed[0], input)
    data = input[: listed[0]][present]
    return PackedSequence(data, present.sum(1).to("cpu"), order, None)


def lengths_of(batch_sizes: Tensor) -> Tensor:
    sequences = ops.arange(0, int(batch_sizes[0])).unsqueeze(1)
    return (batch_sizes.unsqueeze(0) > sequences).sum(1)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The inverse of pack_padded_sequence. Returns the padded sequences (T, N, *), or (N, T, *) if
    batch_first, and their lengths.

    total_length: T; by default the length of the longest sequence
    """
    steps = sequence.batch_sizes.numel()
    if total_length is not None:
        if total_length < steps:
            raise ValueError(
                f"total_length is {total_length}: must be at least the longest length {steps}"
            )
        steps = total_length
    data = sequence.data
    lengths = lengths_of(sequence.batch_sizes)
    present = steps_of(lengths, steps, data)
    shape = (*present.shape, *data.shape[1:])
    padded = ops.full(shape, padding_value, dtype=data.dtype, device=data.device)
    padded = padded.index_put((present,), data)
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices.to("cpu")]
    return (padded.transpose(0, 1) if batch_first else padded), lengths


def pad_sequence(
    sequences: Tensor | Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Pads sequences (L, *) to the longest one and stacks them: (T, N, *), or (N, T, *) if
    batch_first. padding_side: "right" pads at the end of the sequences, "left" at the beginning.
    """
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"padding_side is {padding_side!r}: must be 'left' or 'right'")
    try:
        given = list(sequences)
    except TypeError:
        raise RuntimeError(
            f"sequences is {type(sequences).__name__}: must be an iterable of tensors"
        ) from None
    if not given:
        raise RuntimeError("sequences is empty: must hold at least one tensor")
    longest = max(s.shape[0] for s in given)
    padded = []
    for s in given:
        missing = longest - s.shape[0]
        ends = [missing, 0] if padding_side == "left" else [0, missing]
        padded.append(ops.pad(s, [0, 0] * (s.ndim - 1) + ends, value=padding_value))
    return ops.stack(padded, 0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Tensor]:
    """The inverse of pad_sequence. Returns the sequences without trailing padding."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[:n].clone() for row, n in zip(rows, lengths.tolist())]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs sequences (L, *). enforce_sorted: requires that their lengths do not increase;
    otherwise sorts them by length."""
    lengths = [s.shape[0] for s in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The inverse of pack_sequence."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
