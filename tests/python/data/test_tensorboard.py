"""tt.utils.tensorboard: event files, read back by a reader in this test: a checksum bit by
bit, and fields by their wire types."""
import json
import os
import struct
import subprocess
import sys
import zlib

import pytest

import tt
from tt.utils.tensorboard import SummaryWriter, masked_crc


def crc32c(data):
    """CRC-32C by polynomial division, a bit at a time."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def mask(crc):
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) % 2**32


def number(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        shift, at = shift + 7, at + 1
        if byte < 128:
            return value, at


def fields(data):
    """Field number -> list of values: ints, bytes; 4 and 8 raw bytes as float and double."""
    found, at = {}, 0
    while at < len(data):
        key, at = number(data, at)
        if key & 7 == 0:
            value, at = number(data, at)
        elif key & 7 == 1:
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        elif key & 7 == 5:
            value, at = struct.unpack_from("<f", data, at)[0], at + 4
        else:
            assert key & 7 == 2
            n, at = number(data, at)
            value, at = data[at : at + n], at + n
        found.setdefault(key >> 3, []).append(value)
    return found


def events(folder):
    """The events of the one file of a folder: (step or None, fields), without the first one."""
    (path,) = folder.glob("events.out.tfevents.*")
    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        (n,) = struct.unpack_from("<Q", data, at)
        length, event = data[at : at + 8], data[at + 12 : at + 12 + n]
        sums = struct.unpack_from("<I", data, at + 8) + struct.unpack_from("<I", data, at + 12 + n)
        assert sums == (mask(crc32c(length)), mask(crc32c(event)))
        found.append(fields(event))
        at += n + 16
    assert at == len(data) and found[0][3] == [b"brain.Event:2"]
    return found[1:]


def value(event):
    """The fields of an event's one value; those of its tag are decoded."""
    (summary,) = event[5]
    (one,) = fields(summary)[1]
    return fields(one)


def test_the_checksum_follows_the_standard():
    assert crc32c(b"123456789") == 0xE3069283
    assert masked_crc(b"123456789") == mask(0xE3069283)


def test_scalars(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", 0.5, 3, walltime=12.5)
        writer.add_scalar("loss", tt.tensor([2.0]), 300)
        writer.add_scalar("acc", 1, -1)
        writer.add_scalar("no step", 1e300)
    first, second, third, fourth = events(tmp_path)
    assert first[1] == [12.5] and first[2] == [3]
    assert value(first) == {1: [b"loss"], 2: [0.5]}
    assert second[2] == [300] and value(second)[2] == [2.0]
    assert third[2] == [2**64 - 1] and value(third)[2] == [1.0]
    assert 2 not in fourth and value(fourth)[2] == [float("inf")]


def test_scalars_of_one_plot_have_folders(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalars("run/loss", {"a": 1, "b": 2.0}, 5)
    for tag, number in (("a", 1.0), ("b", 2.0)):
        (event,) = events(tmp_path / f"run_loss_{tag}")
        assert event[2] == [5] and value(event) == {1: [b"run/loss"], 2: [number]}
    assert events(tmp_path) == []


def histogram(event):
    found = fields(value(event)[5][0])
    packed = [struct.unpack(f"<{len(found[i][0]) // 8}d", found[i][0]) for i in (6, 7)]
    return [found[i][0] for i in range(1, 6)], *packed


def test_histograms(tmp_path):
    values = tt.randn(1000)
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("w", values, 1)
        writer.add_histogram("bins", tt.tensor([0, 1, 1, 4]), 2, bins=4)
        writer.add_histogram("edges", [0.5, 2.0, 9.0], bins=[0.0, 1.0, 2.0, 3.0])
        writer.add_histogram("same", tt.zeros(3), bins=2)
        with pytest.raises(ValueError, match="empty"):
            writer.add_histogram("none", tt.ones(0))
    own, bins, edges, same = map(histogram, events(tmp_path))
    v = values.double()
    assert own[0][:3] == [v.min().item(), v.max().item(), 1000.0]
    assert own[0][3:] == pytest.approx([v.sum().item(), (v * v).sum().item()])
    assert sum(own[2]) == 1000 and own[2][0] == 0 and len(own[1]) == len(own[2])
    for low, high, n in zip(own[1], own[1][1:], own[2][1:]):
        assert n == ((v >= low) & (v < high)).sum().item()
    assert bins[1:] == ((0, 1, 2, 3, 4), (0, 1, 2, 0, 1))
    assert edges[1:] == ((0, 1, 2, 3), (0, 1, 0, 1))
    assert same[1:] == ((0, 0.5), (0, 3))


def test_histograms_equal_numpys(tmp_path):
    numpy = pytest.importorskip("numpy")
    values = tt.randn(500).double()
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("w", values, bins="auto")
    counts, edges = numpy.histogram(values.numpy(), "auto")
    (event,) = events(tmp_path)
    assert histogram(event)[1:] == (tuple(edges), (0, *counts))


def test_texts(tmp_path):
    with SummaryWriter(tmp_path, filename_suffix=".end") as writer:
        writer.add_text("note", "süß", 1)
    assert next(tmp_path.iterdir()).name.endswith(".end")
    found = value(events(tmp_path)[0])
    assert found[1] == [b"note/text_summary"]
    assert fields(fields(found[9][0])[1][0])[1] == [b"text"]
    content = fields(found[8][0])
    assert content[1] == [7] and content[8] == ["süß".encode()]


@pytest.mark.parametrize("shape, formats", [((3, 2, 4), "CHW"), ((2, 4, 3), "HWC"), ((2, 4), "HW")])
def test_images(tmp_path, shape, formats):
    img = tt.rand(shape)
    with SummaryWriter(tmp_path) as writer:
        writer.add_image("x", img, dataformats=formats)
        with pytest.raises(ValueError, match="dataformats"):
            writer.add_image("x", img, dataformats="NCHW")
    found = fields(value(events(tmp_path)[0])[4][0])
    channels = 3 if len(shape) == 3 else 1
    assert (found[1], found[2], found[3]) == ([2], [4], [channels])
    png = found[4][0]
    at = png.index(b"IDAT")
    (n,) = struct.unpack(">I", png[at - 4 : at])
    rows = zlib.decompress(png[at + 4 : at + 4 + n])
    pixels = img.permute(1, 2, 0) if formats == "CHW" else img
    expected = (pixels * 255).byte().reshape(2, 4 * channels).tolist()
    assert [list(rows[1 : 4 * channels + 1]), list(rows[4 * channels + 2 :])] == expected


def image(event):
    """Height, width and rows of bytes of an image."""
    found = fields(value(event)[4][0])
    png = found[4][0]
    at = png.index(b"IDAT")
    (n,) = struct.unpack(">I", png[at - 4 : at])
    data, stride = zlib.decompress(png[at + 4 : at + 4 + n]), found[2][0] * found[3][0] + 1
    return (
        found[1][0],
        found[2][0],
        [list(data[i + 1 : i + stride]) for i in range(0, len(data), stride)],
    )


def test_several_images_in_rows_of_eight(tmp_path):
    batch = tt.arange(10 * 2 * 3, dtype=tt.uint8).reshape(10, 1, 2, 3)
    with SummaryWriter(tmp_path) as writer:
        writer.add_images("x", batch)
        writer.add_images("x", batch[:3, 0], dataformats="NHW")
        for wrong in ({"dataformats": "HWC"}, {"dataformats": "NCH"}):
            with pytest.raises(ValueError, match="dataformats"):
                writer.add_images("x", batch, **wrong)
        with pytest.raises(ValueError, match="no image"):
            writer.add_images("x", batch[:0])
    grid, row = map(image, events(tmp_path))
    assert grid[:2] == (4, 24) and row[:2] == (2, 9)
    assert grid[2][1][3:6] == batch[1, 0, 1].tolist() and grid[2][2][:3] == batch[8, 0, 0].tolist()
    assert grid[2][3][6:] == [0] * 18 and row[2][0] == batch[:3, 0, 0].flatten().tolist()


def test_figures(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    figure = matplotlib.pyplot.figure(figsize=(2, 1), dpi=50)
    with SummaryWriter(tmp_path) as writer:
        writer.add_figure("x", figure)
    (event,) = events(tmp_path)
    assert image(event)[:2] == (50, 100) and not matplotlib.pyplot.get_fignums()


def test_events_reach_the_file_by_number_and_by_flush(tmp_path):
    writer = SummaryWriter(tmp_path, max_queue=2)
    for i in range(2):
        writer.add_scalar("x", i)
    assert len(events(tmp_path)) == 0
    writer.add_scalar("x", 2)
    assert len(events(tmp_path)) == 3
    writer.add_scalar("x", 3)
    writer.flush()
    assert len(events(tmp_path)) == 4
    writer.close()
    writer.close()


def test_the_default_folder_and_purging(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    writer = SummaryWriter(comment="_mine", purge_step=9)
    assert writer.get_logdir().startswith("runs") and writer.get_logdir().endswith("_mine")
    writer.close()
    (event,) = events(tmp_path / writer.get_logdir())
    assert event[2] == [9] and fields(event[7][0]) == {1: [1]}


# What TensorBoard's own reader finds in a folder: values by tag, as JSON.
READER = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
log = EventAccumulator(sys.argv[1]).Reload()
tags = log.Tags()
found = {tag: [[e.step, e.value] for e in log.Scalars(tag)] for tag in tags["scalars"]}
for tag in tags["histograms"]:
    (event,) = log.Histograms(tag)
    value = event.histogram_value
    found[tag] = [event.step, value.num, value.bucket_limit, value.bucket]
for tag in tags["images"]:
    (event,) = log.Images(tag)
    found[tag] = [event.step, event.height, event.width]
for tag in tags["tensors"]:
    (event,) = log.Tensors(tag)
    found[tag] = [event.step, event.tensor_proto.string_val[0].decode()]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def tensorboard(tmp_path_factory):
    """A folder with TensorBoard's reader, from pip, if that has it."""
    folder = tmp_path_factory.mktemp("reader")
    packages = ["tensorboard", "protobuf", "absl-py", "packaging"]
    pip = [sys.executable, "-m", "pip", "install", "-q", "--retries", "0", "--timeout", "10"]
    made = subprocess.run(
        [*pip, "--no-deps", "--target", folder, *packages], capture_output=True, text=True
    )
    if made.returncode:
        pytest.skip(f"pip has no tensorboard: {made.stderr[-200:]}")
    return folder


def test_tensorboard_reads_what_is_written(tmp_path, tensorboard):
    pytest.importorskip("numpy")  # its reader needs it
    with SummaryWriter(tmp_path) as writer:
        for step in range(3):
            writer.add_scalar("loss", 0.5**step, step)
        writer.add_histogram("weights", tt.tensor([0, 1, 1, 4]), 2, bins=4)
        writer.add_image("picture", tt.rand(3, 5, 7), 4)
        writer.add_text("note", "four words of text", 6)
    environment = dict(os.environ, PYTHONPATH=str(tensorboard))
    run = [sys.executable, "-W", "ignore", "-c", READER, tmp_path]
    read = subprocess.run(run, env=environment, capture_output=True, text=True, check=True)
    assert json.loads(read.stdout) == {
        "loss": [[0, 1.0], [1, 0.5], [2, 0.25]],
        "weights": [2, 4.0, [0, 1, 2, 3, 4], [0, 1, 2, 0, 1]],
        "picture": [4, 5, 7],
        "note/text_summary": [6, "four words of text"],
    }


# ---- plugins ----


def plugin(event):
    """The tag, the name of the plugin and its content, of an event's value."""
    found = value(event)
    data = fields(fields(found[9][0])[1][0])
    return found[1][0].decode(), data[1][0].decode(), data.get(2, [b""])[0]


def test_hyperparameters(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        given = {"lr": 0.5, "name": "x", "on": True, "t": tt.tensor([2.0]), "none": None}
        writer.add_hparams(given, {"acc": 1.0}, {"lr": [0.5, 1.0]}, "run", 4)
        for wrong in (([], {}), ({}, [])):
            with pytest.raises(TypeError, match="add_hparams"):
                writer.add_hparams(*wrong)
        with pytest.raises(ValueError, match="hparam_dict has a list"):
            writer.add_hparams({"a": [1]}, {})
    assert events(tmp_path) == []
    experiment, start, end, metric = events(tmp_path / "run")
    assert [e[2] for e in (experiment, start, end, metric)] == [[4]] * 4
    tag, name, content = plugin(experiment)
    assert (tag, name) == ("_hparams_/experiment", "hparams")
    message = fields(fields(content)[2][0])
    infos = [fields(info) for info in message[4]]
    assert [(i[1], i[4]) for i in infos] == [
        ([b"lr"], [3]),
        ([b"name"], [1]),
        ([b"on"], [3]),
        ([b"t"], [3]),
    ]
    assert [fields(choice)[2] for choice in fields(infos[0][5][0])[1]] == [[0.5], [1.0]]
    assert fields(fields(message[5][0])[1][0])[2] == [b"acc"]
    settings = [fields(entry) for entry in fields(fields(plugin(start)[2])[3][0])[1]]
    assert [(s[1][0], *fields(s[2][0]).values()) for s in settings] == [
        (b"lr", [0.5]),
        (b"name", [b"x"]),
        (b"on", [1.0]),
        (b"t", [2.0]),
    ]
    assert fields(fields(plugin(end)[2])[4][0]) == {1: [1]}
    assert value(metric) == {1: [b"acc"], 2: [1.0]}


def test_precision_recall_curves(tmp_path):
    labels, scores = tt.tensor([0, 1, 1, 0, 1]), tt.tensor([0.1, 0.4, 0.8, 0.6, 1.0])
    with SummaryWriter(tmp_path) as writer:
        writer.add_pr_curve("pr", labels, scores, 1, num_thresholds=3)
        writer.add_pr_curve("weights", labels, scores, 1, 3, weights=[2.0, 1.0, 1.0, 1.0, 1.0])
        writer.add_pr_curve_raw("raw", *([i, i + 1] for i in range(6)), 2, num_thresholds=500)
    first, weighted, raw = events(tmp_path)
    assert plugin(first)[:2] == ("pr", "pr_curves") and fields(plugin(first)[2]) == {2: [3]}
    tensor = fields(value(first)[8][0])
    sizes = [fields(size)[1][0] for size in fields(tensor[2][0])[2]]
    assert tensor[1] == [1] and sizes == [6, 3]
    rows = tt.tensor(tensor[5]).reshape(6, 3)
    assert rows[:4].tolist() == [[3, 2, 1], [2, 1, 0], [0, 1, 2], [0, 1, 2]]
    assert tt.allclose(rows[4:], tt.tensor([[3 / 5, 2 / 3, 1], [1, 2 / 3, 1 / 3]]))
    assert fields(value(weighted)[8][0])[5][3] == 3  # false positives
    assert fields(plugin(raw)[2]) == {2: [127]}
    assert fields(value(raw)[8][0])[5] == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6]


def test_counted_histograms(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram_raw("h", 0, 1, 3, 2.0, 1.0, [1, 2], [1, 2], 3)
        with pytest.raises(ValueError, match="1 bucket_limits and 2 bucket_counts"):
            writer.add_histogram_raw("h", 0, 1, 3, 2.0, 1.0, [1], [1, 2])
    (event,) = events(tmp_path)
    assert histogram(event) == ([0, 1, 3, 2, 1], (1, 2), (1, 2))


def test_embeddings(tmp_path):
    points, images = tt.arange(6.0).reshape(3, 2), tt.ones(3, 3, 2, 4)
    with SummaryWriter(tmp_path) as writer:
        writer.add_embedding(points, ["a", "b", "c"], images, 2, "e/f")
        writer.add_embedding(points, [["a", 1]] * 3, metadata_header=["x", "y"])
        writer.add_embedding(points, ["ä"] * 3, tag="50%\\")
        for wrong in ((points[0],), (points, ["a"]), (points, None, images[:2])):
            with pytest.raises(ValueError, match="add_embedding"):
                writer.add_embedding(*wrong)
    folder = tmp_path / "00002/e%2ff"
    assert (folder / "tensors.tsv").read_text() == "0.0\t1.0\n2.0\t3.0\n4.0\t5.0\n"
    assert (folder / "metadata.tsv").read_text() == "a\nb\nc\n"
    picture = (folder / "sprite.png").read_bytes()
    assert struct.unpack(">II", picture[16:24]) == (8, 4)  # 2 x 2 images
    other = tmp_path / "00000/default/metadata.tsv"
    assert other.read_text() == "x\ty\n" + "a\t1\n" * 3
    config = (tmp_path / "projector_config.pbtxt").read_text()
    assert (tmp_path / "00000/50%25%5c/metadata.tsv").read_bytes() == "ä\n".encode() * 3
    assert config.count("embeddings {") == 3 and 'tensor_name: "e/f:00002"' in config
    assert "single_image_dim: 4 single_image_dim: 2" in config


def test_graphs(tmp_path):
    model = tt.nn.Sequential(tt.nn.Linear(2, 3), tt.nn.ReLU())
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(model, tt.ones(1, 2))
    (event,) = events(tmp_path)
    nodes = [fields(node) for node in fields(event[4][0])[1]]
    names = [node[1][0] for node in nodes]
    assert [node[2][0] for node in nodes[:3]] == [b"Placeholder", b"Const", b"Const"]
    assert nodes[-1][2] == [b"relu"] and nodes[-1][3] == [names[-2]]
    assert all(source in names for node in nodes for source in node.get(3, ()))


def test_layouts_of_scalars(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_custom_scalars(
            {"T": {"x": ["Multiline", ["a", "b"]], "y": ["Margin", ["v", "l", "u"]]}}
        )
        with pytest.raises(ValueError, match="3"):
            writer.add_custom_scalars_marginchart(["v"])
    (event,) = events(tmp_path)
    one = value(event)
    assert one[1] == [b"custom_scalars__config__"]
    (tensor,) = map(fields, one[8])
    # as TensorBoard's own classes write it
    layout = b'\x12"\n\x01T\x12\x0b\n\x01x\x12\x06\n\x01a\n\x01b'
    layout += b"\x12\x10\n\x01y\x1a\x0b\n\t\n\x01v\x12\x01l\x1a\x01u"
    assert tensor == {1: [7], 2: [b""], 8: [layout]}


def test_sounds(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_audio("s", tt.tensor([[0.0, 0.5, -2.0]]), 3, sample_rate=8000)
        with pytest.raises(ValueError, match="one channel"):
            writer.add_audio("s", tt.zeros(2, 3))
    (event,) = events(tmp_path)
    (sound,) = map(fields, value(event)[6])
    assert (sound[1], sound[2], sound[3], sound[5]) == ([8000.0], [1], [3], [b"audio/wav"])
    assert sound[4][0].startswith(b"RIFF") and sound[4][0][-6:] == struct.pack(
        "<3h", 0, 16383, -32767
    )
