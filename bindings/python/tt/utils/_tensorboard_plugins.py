"""Messages of TensorBoard's plugins: hyperparameters, precision-recall curves, embeddings and
graphs. See tensorboard.py for their encoding."""
from __future__ import annotations

import io
import os
import struct
import wave
from typing import Any, Mapping, Sequence

from .. import _ops as ops
from .._create import as_tensor
from .._class_name import class_name
from .._tensor import Tensor
from .._dtype_names import int16
from .._types import float64
from .tensorboard import bytes_field, double_field, float_field, integer_field, png

TEXT, NUMBER = 1, 3  # DATA_TYPE_STRING and DATA_TYPE_FLOAT64 of hparams/api.proto
SUCCESS = 1  # STATUS_SUCCESS there
FLOAT, STRING = 1, 7  # DT_FLOAT and DT_STRING of types.proto
PRODUCER = 22  # the version that PyTorch's graphs name
SMALLEST_COUNT = 1e-7


def of_plugin(name: str, content: bytes) -> bytes:
    """Returns the metadata of a value that a plugin shows."""
    data = bytes_field(1, name.encode()) + bytes_field(2, content)
    return bytes_field(9, bytes_field(1, data))


# ---- hyperparameters ----


def setting(value: Any) -> tuple[int, bytes]:
    """Returns the type and the message of a hyperparameter: a text or a number. A bool is a number,
    as PyTorch writes it."""
    if isinstance(value, str):
        return TEXT, bytes_field(3, value.encode())
    if isinstance(value, (int, float, Tensor)):
        return NUMBER, double_field(2, float(value))
    raise ValueError(
        f"add_hparams: hparam_dict has a {class_name(value)}: must be numbers, bools, texts and "
        "tensors of one element"
    )


def hparams(
    settings: Mapping[str, Any], metrics: Mapping[str, Any], choices: Mapping[str, Any]
) -> dict[str, bytes]:
    """Returns the three summaries of a run, by their tags."""
    infos, start = b"", b""
    for name, value in settings.items():
        if value is None:
            continue
        kind, message = setting(value)
        info = bytes_field(1, name.encode()) + integer_field(4, kind)
        if name in choices:
            values = b"".join(bytes_field(1, setting(choice)[1]) for choice in choices[name])
            info += bytes_field(5, values)
        infos += bytes_field(4, info)
        start += bytes_field(1, bytes_field(1, name.encode()) + bytes_field(2, message))
    for name in metrics:
        infos += bytes_field(5, bytes_field(1, bytes_field(2, name.encode())))
    contents = {
        "experiment": bytes_field(2, infos),
        "session_start_info": bytes_field(3, start),
        "session_end_info": bytes_field(4, integer_field(1, SUCCESS)),
    }
    return {f"_hparams_/{tag}": of_plugin("hparams", content) for tag, content in contents.items()}


# ---- precision-recall curves ----


def curve(labels: Any, predictions: Any, thresholds: int, weights: Any) -> Tensor:
    """Returns true and false positives, true and false negatives, precision and recall (rows) at
    thresholds from 0 to 1."""
    positive = as_tensor(labels).detach().cpu().reshape(-1).to(float64)
    scores = as_tensor(predictions).detach().cpu().reshape(-1).to(float64)
    weight: Any = 1.0
    if weights is not None:
        weight = as_tensor(weights).detach().cpu().reshape(-1).to(float64)
    places = (scores * (thresholds - 1)).floor().long()
    counts = ops.zeros(2, thresholds, dtype=float64)
    for row, share in enumerate((positive * weight, (1.0 - positive) * weight)):
        counts[row].index_add_(0, places, share)
    tp, fp = counts.flip(1).cumsum(1).flip(1).unbind(0)
    tn, fn = fp[0] - fp, tp[0] - tp
    precision = tp / (tp + fp).clamp(min=SMALLEST_COUNT)
    recall = tp / (tp + fn).clamp(min=SMALLEST_COUNT)
    return ops.stack([tp, fp, tn, fn, precision, recall])


def pr_curve(rows: Tensor, thresholds: int) -> bytes:
    """Returns the value of a curve whose six rows are given."""
    sizes = b"".join(bytes_field(2, integer_field(1, size)) for size in rows.shape)
    values = b"".join(float_field(5, x) for x in rows.reshape(-1).tolist())
    tensor = integer_field(1, FLOAT) + bytes_field(2, sizes) + values
    return of_plugin("pr_curves", integer_field(2, thresholds)) + bytes_field(8, tensor)


# ---- embeddings ----


def write_embedding(
    folder: str, place: str, mat: Any, metadata: Any, images: Any, header: Any, name: str
) -> str:
    """Writes the files of an embedding to folder/place. Returns its entry of the projector's
    configuration."""
    points = as_tensor(mat).detach().cpu()
    if points.ndim != 2:
        raise ValueError(f"add_embedding: mat is {list(points.shape)}: must be (points, features)")
    for what, given in (("metadata", metadata), ("label_img", images)):
        if given is not None and len(given) != len(points):
            raise ValueError(f"add_embedding: {what} has {len(given)} rows, mat {len(points)}")
    os.makedirs(os.path.join(folder, place), exist_ok=True)
    entry = [f'tensor_name: "{name}"', f'tensor_path: "{place}/tensors.tsv"']
    write_rows(os.path.join(folder, place, "tensors.tsv"), points.tolist())
    if metadata is not None:
        rows = [[x] for x in metadata] if not header else [header, *metadata]
        write_rows(os.path.join(folder, place, "metadata.tsv"), rows)
        entry.insert(1, f'metadata_path: "{place}/metadata.tsv"')
    if images is not None:
        height, width = images.shape[-2:]
        with open(os.path.join(folder, place, "sprite.png"), "wb") as file:
            file.write(sprite(as_tensor(images).detach().cpu()))
        sizes = f"single_image_dim: {width} single_image_dim: {height}"
        entry.insert(-1, f'sprite {{ image_path: "{place}/sprite.png" {sizes} }}')
    return "embeddings {\n" + "".join(f"  {line}\n" for line in entry) + "}\n"


def write_rows(path: str, rows: Sequence[Sequence[Any]]) -> None:
    with open(path, "w", encoding="utf-8") as file:
        for row in rows:
            file.write("\t".join(str(x) for x in row) + "\n")


def sprite(images: Tensor) -> bytes:
    """Returns images of 3 channels as one square PNG, row by row."""
    n, channels, height, width = images.shape
    side = next(k for k in range(1, n + 1) if k * k >= n)
    grid = ops.zeros(side * side, channels, height, width)
    grid[:n] = images
    whole = grid.reshape(side, side, channels, height, width).permute(0, 3, 1, 4, 2)
    pixels = (whole * 255).clamp(0, 255).byte().contiguous()._bytes()
    return png(pixels, side * height, side * width, channels)


# ---- graphs ----


def graph(model: Any, inputs: Any) -> bytes:
    """Returns a GraphDef of the operators that model(*inputs) calls."""
    from ..fx import capture

    given = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
    nodes: dict[str, bytes] = {}
    for node in capture(model, *given).graph.nodes:
        sources = [source.name for source in node.all_input_nodes]
        for name in sources:  # parameters are inputs without a node
            nodes.setdefault(name, graph_node(name, "Const", ()))
        op = "Placeholder" if node.op == "placeholder" else str(node.target)
        nodes[node.name] = graph_node(node.name, op, sources)
    versions = bytes_field(4, integer_field(1, PRODUCER))
    return b"".join(bytes_field(1, node) for node in nodes.values()) + versions


def graph_node(name: str, op: str, sources: Sequence[str]) -> bytes:
    inputs = b"".join(bytes_field(3, source.encode()) for source in sources)
    return bytes_field(1, name.encode()) + bytes_field(2, op.encode()) + inputs


# ---- layouts of scalars ----


def custom_scalars(layout: Mapping[str, Mapping[str, Sequence[Any]]]) -> bytes:
    """Returns the value that arranges scalars: {category: {chart: (kind, tags)}}."""
    categories = b""
    for category, charts in layout.items():
        message = bytes_field(1, category.encode())
        for title, (kind, tags) in charts.items():
            message += bytes_field(2, bytes_field(1, title.encode()) + chart(kind, tags))
        categories += bytes_field(2, message)
    tensor = integer_field(1, STRING) + bytes_field(2, b"") + bytes_field(8, categories)
    return of_plugin("custom_scalars", b"") + bytes_field(8, tensor)


def chart(kind: str, tags: Sequence[str]) -> bytes:
    """Returns the content of a chart: lines, or a margin with a value, a lower and an upper
    bound."""
    if kind == "Multiline":
        return bytes_field(2, b"".join(bytes_field(1, tag.encode()) for tag in tags))
    if kind != "Margin":
        raise ValueError(f"add_custom_scalars: kind is {kind!r}: must be 'Multiline' or 'Margin'")
    if len(tags) != 3:
        raise ValueError(f"add_custom_scalars: a margin has {len(tags)} tags: must be 3")
    series = b"".join(bytes_field(i, tag.encode()) for i, tag in enumerate(tags, 1))
    return bytes_field(3, bytes_field(1, series))


# ---- sounds ----


def audio(samples: Any, sample_rate: int) -> bytes:
    """Returns the value of one channel of numbers from -1 to 1, as WAV of 16 bits."""
    sound = as_tensor(samples).detach().cpu().to(float64).squeeze()
    if sound.ndim != 1:
        raise ValueError(f"add_audio: snd_tensor is {list(sound.shape)}: must be one channel")
    pulses = (sound.clamp(-1, 1) * 32767).trunc().to(int16)
    content = io.BytesIO()
    with wave.open(content, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(sample_rate)
        file.writeframes(struct.pack(f"<{len(pulses)}h", *pulses.tolist()))
    message = float_field(1, float(sample_rate)) + integer_field(2, 1)
    message += integer_field(3, len(pulses)) + bytes_field(4, content.getvalue())
    return bytes_field(6, message + bytes_field(5, b"audio/wav"))
