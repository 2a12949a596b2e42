"""SummaryWriter: writes event files for TensorBoard, without dependencies.

A file is a sequence of records: the length, its checksum, an Event message, its checksum. Messages
are encoded as Protocol Buffers, with the field numbers of TensorFlow's event.proto and
summary.proto.
"""
from __future__ import annotations

import os
import socket
import struct
import threading
import time
import zlib
from itertools import count
from typing import Any, Mapping, Sequence

from .. import _ops as ops
from .._create import as_tensor, tensor
from .._hints import Self
from .._tensor import Tensor
from .._types import float64

__all__ = ["SummaryWriter"]
VERSION = b"brain.Event:2"
STRING, SESSION_START = 7, 1  # DT_STRING of types.proto; START of SessionLog
GREY, RGB, RGBA = 1, 3, 4  # color spaces of summary.proto, which are numbers of channels
PNG_COLORS = {GREY: 0, RGB: 2, RGBA: 6}
numbers = count()  # of the files of this process


# ---- checksums: CRC-32C ----


def crc_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ 0x82F63B78 * (value & 1)
        table.append(value)
    return table


CRC_TABLE = crc_table()


def masked_crc(data: bytes) -> int:
    """Returns the masked CRC-32C of data: rotated and offset, as the format requires."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


# ---- messages ----


def varint(n: int) -> bytes:
    """Encodes an integer as a varint: groups of 7 bits, lowest first."""
    n &= 2**64 - 1
    groups = bytearray()
    while n > 127:
        groups.append(n & 127 | 128)
        n >>= 7
    return bytes([*groups, n])


def integer_field(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def double_field(number: int, value: float) -> bytes:
    return varint(number << 3 | 1) + struct.pack("<d", value)


def float_field(number: int, value: float) -> bytes:
    """Encodes a float32 field. A value beyond the range of float32 becomes inf."""
    return varint(number << 3 | 5) + bytes(tensor(value)._bytes())


def bytes_field(number: int, value: bytes) -> bytes:
    """Encodes a field that is a string or a message."""
    return varint(number << 3 | 2) + varint(len(value)) + value


def doubles_field(number: int, values: Sequence[float]) -> bytes:
    return bytes_field(number, struct.pack(f"<{len(values)}d", *values))


# ---- values ----


def histogram_edges() -> list[float]:
    """Returns TensorFlow's edges: powers of 1.1 from 1e-12 to 1e20, their negatives and 0."""
    positive, edge = [], 1e-12
    while edge < 1e20:
        positive.append(edge)
        edge *= 1.1
    return [-x for x in reversed(positive)] + [0.0] + positive


def edges_of(values: Tensor, bins: Any) -> Tensor:
    """Returns the edges of bins. bins: "tensorflow", a number, edges, or a rule of NumPy."""
    if bins == "tensorflow":
        return tensor(histogram_edges(), dtype=float64)
    if isinstance(bins, str):
        import numpy

        return as_tensor(numpy.histogram_bin_edges(values.numpy(), bins)).to(float64)
    if isinstance(bins, int):
        low, high = values.min().item(), values.max().item()
        if low == high:
            low, high = low - 0.5, high + 0.5
        return ops.linspace(low, high, bins + 1, dtype=float64)
    return as_tensor(bins, dtype=float64)


def histogram(values: Any, bins: Any) -> bytes:
    """Returns a HistogramProto. Bins include their lower edge but not their upper edge, except for
    the last bin, which includes both. Empty bins at both ends are omitted."""
    flat = as_tensor(values).detach().cpu().reshape(-1).to(float64)
    if not flat.numel():
        raise ValueError("add_histogram: values is empty")
    edges = edges_of(flat, bins)
    ordered = ops.sort(flat)[0]
    below = ops.searchsorted(ordered, edges).tolist()
    below[-1] = int((flat <= edges[-1]).sum().item())
    counts = [high - low for low, high in zip(below, below[1:])]
    filled = [i for i, n in enumerate(counts) if n]
    if not filled:
        raise ValueError("add_histogram: no value is within the bins")
    first, last = filled[0], filled[-1]
    return b"".join(
        [
            double_field(1, ordered[0].item()),
            double_field(2, ordered[-1].item()),
            double_field(3, flat.numel()),
            double_field(4, flat.sum().item()),
            double_field(5, (flat * flat).sum().item()),
            doubles_field(6, edges.tolist()[first : last + 2]),
            doubles_field(7, [0, *counts[first : last + 1]]),
        ]
    )


def png(pixels: bytes, height: int, width: int, channels: int) -> bytes:
    """Encodes rows of bytes as a PNG file."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    stride = width * channels
    rows = b"".join(b"\0" + pixels[i * stride : (i + 1) * stride] for i in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, PNG_COLORS[channels], 0, 0, 0)
    parts = [chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def image(img: Any, dataformats: str) -> bytes:
    """Returns an Image message of a tensor of floats in [0, 1] or of uint8."""
    given = as_tensor(img).detach().cpu()
    letters = dataformats.upper()
    if sorted(letters) not in (["H", "W"], ["C", "H", "W"]) or given.ndim != len(letters):
        raise ValueError(
            f"add_image: dataformats is {dataformats!r}: must name the {given.ndim} dims of "
            f"{list(given.shape)} by H, W and C"
        )
    if "C" not in letters:
        given, letters = given.unsqueeze(-1), letters + "C"
    given = given.permute([letters.index(letter) for letter in "HWC"])
    height, width, channels = given.shape
    if channels not in PNG_COLORS:
        raise ValueError(f"add_image: img has {channels} channels: must be 1, 3 or 4")
    if given.is_floating_point():
        given = (given * 255).clamp(0, 255)
    pixels = given.byte().contiguous()._bytes()
    sizes = integer_field(1, height) + integer_field(2, width) + integer_field(3, channels)
    return sizes + bytes_field(4, png(pixels, height, width, channels))


def images(img: Any, dataformats: str) -> bytes:
    """Returns an Image message of N images side by side, 8 in a row. The last row is filled with
    zeros."""
    given = as_tensor(img).detach().cpu()
    letters = dataformats.upper()
    if sorted(letters) not in (["H", "N", "W"], ["C", "H", "N", "W"]) or given.ndim != len(letters):
        raise ValueError(
            f"add_images: dataformats is {dataformats!r}: must name the {given.ndim} dims of "
            f"{list(given.shape)} by N, H, W and C"
        )
    if "C" not in letters:
        given, letters = given.unsqueeze(-1), letters + "C"
    given = given.permute([letters.index(letter) for letter in "NHWC"])
    n, height, width, channels = given.shape
    if not n:
        raise ValueError("add_images: img_tensor has no image")
    columns = min(n, 8)
    rows = (n + columns - 1) // columns
    rest = ops.zeros((rows * columns - n, height, width, channels), dtype=given.dtype)
    grid = ops.cat([given, rest]).reshape((rows, columns, height, width, channels))
    whole = grid.permute((0, 2, 1, 3, 4)).reshape((rows * height, columns * width, channels))
    return image(whole, "HWC")


# ---- files ----


class EventFile:
    """An event file. The folder is created if it does not exist."""

    def __init__(self, folder: str, max_queue: int, flush_secs: float, suffix: str) -> None:
        os.makedirs(folder, exist_ok=True)
        host = f"{socket.gethostname()}.{os.getpid()}.{next(numbers)}"
        name = f"events.out.tfevents.{int(time.time()):010d}.{host}{suffix}"
        self.file = open(os.path.join(folder, name), "wb")
        self.max_queue, self.flush_secs = max_queue, flush_secs
        self.waiting, self.flushed = 0, time.monotonic()
        self.lock = threading.Lock()
        self.add(bytes_field(3, VERSION))
        self.flush()

    def add(self, what: bytes, step: Any = None, walltime: float | None = None) -> None:
        """Writes an Event with one field besides time and step."""
        event = double_field(1, time.time() if walltime is None else walltime)
        if step is not None:
            event += integer_field(2, int(step))
        event += what
        length = struct.pack("<Q", len(event))
        sums = [struct.pack("<I", masked_crc(part)) for part in (length, event)]
        with self.lock:
            self.file.write(length + sums[0] + event + sums[1])
            self.waiting += 1
        late = time.monotonic() - self.flushed > self.flush_secs
        if late or self.waiting > self.max_queue:
            self.flush()

    def flush(self) -> None:
        """Flushes the file to the operating system."""
        with self.lock:
            self.file.flush()
            self.waiting, self.flushed = 0, time.monotonic()

    def close(self) -> None:
        self.file.close()


class SummaryWriter:
    """Writes scalars, histograms, texts and images to event files, for TensorBoard.

    log_dir: a folder; by default a new one in runs/, named by time, host and comment.
    purge_step: TensorBoard discards the events of earlier runs from this step on.
    max_queue, flush_secs: number of events and of seconds after which the next event flushes the
        file.
    filename_suffix: suffix of the file names.
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            name = time.strftime("%b%d_%H-%M-%S_") + socket.gethostname() + comment
            log_dir = os.path.join("runs", name)
        self.log_dir, self.purge_step = os.fspath(log_dir), purge_step
        self.options = max_queue, flush_secs, filename_suffix
        self.files: dict[str, EventFile] = {}  # by folder
        self._file(self.log_dir)

    def _file(self, folder: str) -> EventFile:
        """Returns the open file of a folder, or opens a new one."""
        if folder not in self.files:
            self.files[folder] = EventFile(folder, *self.options)
            if self.purge_step is not None:
                self.files[folder].add(
                    bytes_field(7, integer_field(1, SESSION_START)), self.purge_step
                )
        return self.files[folder]

    def _add(self, tag: str, value: bytes, step: Any, time: Any, folder: str | None = None) -> None:
        """Writes a Summary with one value."""
        summary = bytes_field(1, bytes_field(1, tag.encode()) + value)
        self._file(folder or self.log_dir).add(bytes_field(5, summary), step, time)

    def get_logdir(self) -> str:
        """Returns the folder."""
        return self.log_dir

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """Writes a number or a one-element tensor. new_style and double_precision are ignored."""
        self._add(tag, float_field(2, float(scalar_value)), global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Writes several numbers to show in one plot. Each has a folder below log_dir."""
        for tag, value in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, f"{main_tag}_{tag}".replace("/", "_"))
            self._add(main_tag, float_field(2, float(value)), global_step, walltime, folder)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Writes a histogram of values.

        bins: "tensorflow", a number of equal bins, their edges, or a rule of NumPy such as "auto".
        max_bins is ignored.
        """
        self._add(tag, bytes_field(5, histogram(values, bins)), global_step, walltime)

    def add_text(
        self,
        tag: str,
        text_string: str,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Writes a text, which TensorBoard renders as Markdown."""
        plugin = bytes_field(1, bytes_field(1, b"text"))
        shape = bytes_field(2, integer_field(1, 1))
        text = bytes_field(8, text_string.encode())
        value = integer_field(1, STRING) + bytes_field(2, shape) + text
        summary = bytes_field(9, plugin) + bytes_field(8, value)
        self._add(tag + "/text_summary", summary, global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Writes an image of 1, 3 or 4 channels: floats in [0, 1] or uint8.

        dataformats: the order of its dims: CHW, HWC or HW.
        """
        self._add(tag, bytes_field(4, image(img_tensor, dataformats)), global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Writes several images as one, in rows of 8: see add_image.

        dataformats: the order of its dims: NCHW, NHWC or NHW.
        """
        self._add(tag, bytes_field(4, images(img_tensor, dataformats)), global_step, walltime)

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: int | None = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """Writes a figure of matplotlib, or a list of figures of one size, as an image. close:
        closes them."""
        import numpy
        from matplotlib import pyplot  # type: ignore[import]
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # type: ignore[import]

        pixels = []
        for one in figure if isinstance(figure, list) else [figure]:
            canvas = FigureCanvasAgg(one)
            canvas.draw()
            pixels.append(tensor(numpy.asarray(canvas.buffer_rgba())))
            if close:
                pyplot.close(one)
        self.add_images(tag, ops.stack(pixels), global_step, walltime, "NHWC")

    def flush(self) -> None:
        """Flushes all files to the operating system."""
        for file in self.files.values():
            file.flush()

    def close(self) -> None:
        """Closes the files. Later events open new ones."""
        for file in self.files.values():
            file.close()
        self.files = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
