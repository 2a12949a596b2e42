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
        self.embeddings = ""  # the entries of the projector's configuration
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

    def add_hparams(
        self,
        hparam_dict: Mapping[str, Any],
        metric_dict: Mapping[str, Any],
        hparam_domain_discrete: Mapping[str, Any] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """Writes the hyperparameters of a run and its metrics, to a folder below log_dir.

        hparam_dict: numbers, bools, texts, tensors of one element; None is left out. metric_dict:
        numbers, whose tags should be no tags of add_scalar. hparam_domain_discrete: the values that
        a hyperparameter may have. run_name: the folder; by default the time.
        """
        from ._tensorboard_plugins import hparams

        if not isinstance(hparam_dict, dict) or not isinstance(metric_dict, dict):
            raise TypeError("add_hparams: hparam_dict and metric_dict must be dicts")
        folder = os.path.join(self.log_dir, run_name or str(time.time()))
        values = hparams(hparam_dict, metric_dict, hparam_domain_discrete or {})
        for tag, value in values.items():
            self._add(tag, value, global_step, None, folder)
        for tag, number in metric_dict.items():
            self._add(tag, float_field(2, float(number)), global_step, None, folder)
        self.files.pop(folder).close()

    def add_custom_scalars(self, layout: Mapping[str, Mapping[str, Sequence[Any]]]) -> None:
        """Arranges scalars in charts: {category: {chart: ["Multiline", tags]}}, or ["Margin",
        (value, lower, upper)] for three tags. Called once."""
        from ._tensorboard_plugins import custom_scalars

        self._add("custom_scalars__config__", custom_scalars(layout), None, None)

    def add_custom_scalars_multilinechart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Calls add_custom_scalars with one chart of lines."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Calls add_custom_scalars with one chart of a value between two bounds."""
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: int | None = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """Writes a sound of one channel. snd_tensor: numbers from -1 to 1; others are clipped."""
        from ._tensorboard_plugins import audio

        self._add(tag, audio(snd_tensor, sample_rate), global_step, walltime)

    def add_histogram_raw(
        self,
        tag: str,
        min: float,
        max: float,
        num: int,
        sum: float,
        sum_squares: float,
        bucket_limits: Sequence[float],
        bucket_counts: Sequence[float],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Writes a histogram that is counted already. bucket_limits: upper edges."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError(
                f"add_histogram_raw: there are {len(bucket_limits)} bucket_limits and "
                f"{len(bucket_counts)} bucket_counts"
            )
        numbers = enumerate((min, max, num, sum, sum_squares), 1)
        message = b"".join(double_field(i, float(x)) for i, x in numbers)
        message += doubles_field(6, [float(x) for x in bucket_limits])
        message += doubles_field(7, [float(x) for x in bucket_counts])
        self._add(tag, bytes_field(5, message), global_step, walltime)

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Writes a precision-recall curve.

        labels: 0 and 1. predictions: probabilities of 1. num_thresholds: at most 127.
        """
        from ._tensorboard_plugins import curve, pr_curve

        n = min(num_thresholds, 127)
        value = pr_curve(curve(labels, predictions, n, weights), n)
        self._add(tag, value, global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Any,
        false_positive_counts: Any,
        true_negative_counts: Any,
        false_negative_counts: Any,
        precision: Any,
        recall: Any,
        global_step: int | None = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Writes a precision-recall curve that is counted already. weights is ignored."""
        from ._tensorboard_plugins import pr_curve

        counts = (
            true_positive_counts,
            false_positive_counts,
            true_negative_counts,
            false_negative_counts,
            precision,
            recall,
        )
        rows = ops.stack([as_tensor(row).to(float64) for row in counts])
        self._add(tag, pr_curve(rows, min(num_thresholds, 127)), global_step, walltime)

    def add_embedding(
        self,
        mat: Any,
        metadata: Any = None,
        label_img: Any = None,
        global_step: int | None = None,
        tag: str = "default",
        metadata_header: Any = None,
    ) -> None:
        """Writes points for the projector.

        mat: (points, features). metadata: a label of each point, or several with metadata_header.
        label_img: (points, 3, height, width).
        """
        from ._tensorboard_plugins import write_embedding

        step = str(global_step or 0).zfill(5)
        name = tag.replace("%", "%25").replace("/", "%2f").replace("\\", "%5c")
        place = f"{step}/{name}"
        self.embeddings += write_embedding(
            self.log_dir, place, mat, metadata, label_img, metadata_header, f"{tag}:{step}"
        )
        path = os.path.join(self.log_dir, "projector_config.pbtxt")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.embeddings)

    def add_graph(
        self,
        model: Any,
        input_to_model: Any = None,
        verbose: bool = False,
        use_strict_trace: bool = True,
    ) -> None:
        """Writes the operators that model(*input_to_model) calls. verbose and use_strict_trace are
        ignored."""
        from ._tensorboard_plugins import graph

        message = graph(model, input_to_model)
        self._file(self.log_dir).add(bytes_field(4, message))

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
