"""PyTorch's files: what tt writes it reads back (PyTorch's own are cases of test_training.py), and
hostile ones are refused with the reason."""
import argparse
import importlib.util
import io
import pickle
import struct
import tarfile
import zipfile
from collections import Counter, OrderedDict, defaultdict, namedtuple

import pytest

import tt
from tt import nn

STORAGE = b"((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ"  # 4 floats, after a MARK
TENSOR = b"ctorch._utils\n_rebuild_tensor_v2\n" + STORAGE


def written(path, body, entries=(("version", b"3\n"), ("data/0", bytes(16))), **options):
    with zipfile.ZipFile(path, "w", **options) as z:
        z.writestr("a/data.pkl", b"\x80\x02" + body + b".")
        for name, data in entries:
            z.writestr("a/" + name, data)
    return path


def test_round_trip(tmp_path):
    x = tt.arange(12.0).reshape(3, 4)
    kept = {
        "model": nn.Linear(2, 2).state_dict(),
        "x": x,
        "part": x[1:, ::2],
        "t": x.t(),
        "again": x,
        "weight": nn.Parameter(tt.ones(2), requires_grad=False),
        "leaf": tt.ones(2, requires_grad=True),
        "half": tt.ones(2, dtype=tt.bfloat16),
        "c": tt.tensor([1 + 2j]),
        "none": tt.zeros(0, 3),
        "rest": [
            tt.float16,
            tt.Size([1, 2]),
            tt.device("cpu"),
            (1, -2.5, None, True),
            2**70,
            {7: "naïve"},
            OrderedDict(a=1),
            {3: 1},
        ],
    }
    tt.save(kept, tmp_path / "all.pt")
    back = tt.load(tmp_path / "all.pt")
    assert (
        list(back) == list(kept)
        and back["rest"] == kept["rest"]
        and back["again"] is back["x"]
        and back["none"].shape == (0, 3)
    )
    assert all(
        back[k].tolist() == t.tolist() and back[k].dtype is t.dtype
        for k, t in kept.items()
        if isinstance(t, tt.Tensor)
    )
    assert (
        isinstance(back["weight"], nn.Parameter)
        and not back["weight"].requires_grad
        and back["leaf"].requires_grad
        and back["leaf"].is_leaf
    )
    back["x"][1, 0] = 50
    assert back["part"][0, 0] == 50 == back["t"][0, 1] and back["part"].stride() == (4, 2)
    nn.Linear(2, 2).load_state_dict(back["model"])
    with open(tmp_path / "all.pt", "rb") as f:
        assert list(tt.load(f, map_location="cpu")) == list(kept)


def test_a_failed_save_leaves_the_old_file(tmp_path):
    tt.save([1], tmp_path / "x.pth")
    for bad in (lambda: 0, (i for i in range(2)), open(tmp_path / "x.pth")):
        with pytest.raises(TypeError):
            tt.save([bad], tmp_path / "x.pth")
    assert tt.load(tmp_path / "x.pth") == [1] and [p.name for p in tmp_path.iterdir()] == ["x.pth"]


def test_a_file_by_hand(tmp_path):
    x = tt.load(
        written(
            tmp_path / "x.pt",
            TENSOR + b"K\x01(K\x01K\x03t(K\x03K\x01t\x89ccollections\nOrderedDict\n)RtR",
        )
    )
    assert x.tolist() == [[0, 0, 0]] and x.storage_offset() == 1
    assert tt.load(
        written(tmp_path / "c.pt", b"ccollections\nCounter\n(}K\x03K\x02stR")
    ) == Counter({3: 2})


@pytest.mark.parametrize(
    "body, reason",
    [
        (b"cos\nsystem\nX\x04\x00\x00\x00true\x85R", "names os system"),
        (b"cbuiltins\neval\nX\x01\x00\x00\x001\x85R", "names builtins eval"),
        (b"(ios\nsystem\n", "the opcode 105, "),
        (b"]q\x00h\x00a", "contains itself"),
        (b")" + b"\x85" * 300, "too deep"),
        (b"K\x01K\x02", "has STOP"),
        (b"h\x07", "memo has no object 7"),
        (b"]0", "the opcode 48, "),
        (b"X\xff\xff\xff\x7fabc", "ends too early"),
        (TENSOR + b"J\xff\xff\xff\xff(K\x01t(K\x01t\x89NtR", "sizes, strides or offset"),
        (TENSOR + b"K\x00(K\x05t(K\x01t\x89NtR", "larger than its storage"),
        (TENSOR + b"K\x00(K\x02K\x02t(K\x01t\x89NtR", "sizes, strides or offset"),
        (TENSOR.replace(b"K\x04", b"K\x05"), "must have 5 elements"),
        (TENSOR.replace(b"X\x01\x00\x00\x000", b"X\x01\x00\x00\x009"), "no item named"),
        (TENSOR[: len(TENSOR) - 1] + b"Q0", "the opcode 48, "),
        (TENSOR + STORAGE[1:].replace(b"Float", b"Int"), "two dtypes"),
    ],
)
def test_hostile_pickles_are_refused(tmp_path, body, reason):
    with pytest.raises(ValueError, match=reason) as e:
        tt.load(written(tmp_path / "x.pt", body))
    assert str(e.value.code) == "FORMAT"


def test_hostile_archives_are_refused(tmp_path):
    with pytest.raises(ValueError, match="compressed"):
        tt.load(
            written(
                tmp_path / "bomb.pt",
                b"N",
                [("version", b"3"), ("data/0", bytes(1 << 20))],
                compression=zipfile.ZIP_DEFLATED,
            )
        )
    with pytest.raises(ValueError, match="unknown version"):
        tt.load(written(tmp_path / "version.pt", b"N", [("version", b"99")]))
    with pytest.raises(ValueError, match="not a torch.save file"):
        tt.load(written(tmp_path / "no_version.pt", b"N", []))
    good = written(tmp_path / "good.pt", pickle.dumps([1, "two"], 2)[2:-1]).read_bytes()
    assert tt.load(tmp_path / "good.pt") == [1, "two"]
    for cut in range(4, len(good)):
        (tmp_path / "cut.pt").write_bytes(good[:cut])
        with pytest.raises(ValueError):
            tt.load(tmp_path / "cut.pt")


# ---- any objects ----


class Trainer:
    def __init__(self):
        self.steps, self.tags = 3, {"a"}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.BatchNorm1d(3))

    def forward(self, x):
        return self.body(x)


def test_any_objects_are_written_and_read(tmp_path):
    x = tt.arange(6.0).reshape(2, 3)
    kept = {
        "tensors": [x, x.t(), nn.Parameter(tt.ones(2)), tt.ones(2, dtype=tt.bfloat16)],
        "dtypes": [tt.float16, tt.device("cpu"), tt.Size([1, 2])],
        "set": {1, 2},
        "bytes": b"\x00\xff",
        "args": argparse.Namespace(lr=0.1),
        "trainer": Trainer(),
    }
    tt.save(kept, tmp_path / "all.pt", pickle_protocol=4)
    with pytest.raises(ValueError, match="Namespace.*weights_only=False"):
        tt.load(tmp_path / "all.pt")
    back = tt.load(tmp_path / "all.pt", weights_only=False)
    assert back["set"] == {1, 2} and back["bytes"] == b"\x00\xff" and back["args"].lr == 0.1
    assert back["dtypes"] == kept["dtypes"] and back["trainer"].tags == {"a"}
    y, transposed, parameter, half = back["tensors"]
    assert type(parameter) is nn.Parameter and parameter.requires_grad and half.dtype is tt.bfloat16
    y[0, 1] = 50
    assert transposed[1, 0] == 50 and transposed.stride() == (1, 3)
    stream = io.BytesIO()
    tt.save(kept["args"], stream)
    stream.seek(0)
    assert tt.load(stream, weights_only=False) == kept["args"]


def test_sets_and_bytes_need_no_trust(tmp_path):
    kept = {"set": {1, 2}, "bytes": b"ab", "array": bytearray(b"cd"), "c": 1 + 2j, "t": tt.ones(2)}
    for protocol in (2, 4):
        tt.save(kept, tmp_path / "x.pt", pickle_protocol=protocol)
        back = tt.load(tmp_path / "x.pt")
        assert back.pop("t").tolist() == [1, 1]
        assert back == {k: v for k, v in kept.items() if k != "t"}


def test_whole_modules(tmp_path):
    model = Net()
    tt.save(model, tmp_path / "model.pt")
    with pytest.raises(ValueError, match="names .*Net.*weights_only=False"):
        tt.load(tmp_path / "model.pt")
    back = tt.load(tmp_path / "model.pt", weights_only=False).eval()
    x = tt.rand(4, 2)
    assert tt.equal(back(x), model.eval()(x))


def test_numpy(tmp_path):
    numpy = pytest.importorskip("numpy")
    tt.save({"a": numpy.arange(3), "n": numpy.float64(2.5)}, tmp_path / "x.pt")
    back = tt.load(tmp_path / "x.pt", weights_only=False)
    assert back["a"].tolist() == [0, 1, 2] and back["n"] == 2.5


def test_views_that_conjugate_and_tensors_with_attributes(tmp_path):
    """As PyTorch writes tensor.conj(), with metadata, and a tensor with an attribute."""
    storage = STORAGE.replace(b"Float", b"ComplexFloat").replace(b"K\x04tQ", b"K\x02tQ")
    rebuild, place = b"ctorch._utils\n_rebuild_tensor_v2\n", b"K\x00(K\x02t(K\x01t\x89"
    ordered = b"ccollections\nOrderedDict\n)R"
    metadata = b"}X\x04\x00\x00\x00conj\x88s"
    memory = [("version", b"3\n"), ("data/0", struct.pack("<4f", 1, 2, 3, -4))]
    path = written(
        tmp_path / "x.pt", rebuild + storage + place + ordered + metadata + b"tR", memory
    )
    for weights_only in (True, False):
        assert tt.load(path, weights_only=weights_only).tolist() == [1 - 2j, 3 + 4j]
    body = (
        b"ctorch._tensor\n_rebuild_from_type_v2\n("
        + rebuild
        + b"ctorch\nTensor\n"
        + (storage + place + ordered + b"t")
        + b"}X\x03\x00\x00\x00tagK\x07stR"
    )
    path = written(tmp_path / "y.pt", body, memory)
    for weights_only in (True, False):
        x = tt.load(path, weights_only=weights_only)
        assert type(x) is tt.Tensor and x.tag == 7 and x.tolist() == [1 + 2j, 3 - 4j]


def test_names_of_python_2(tmp_path):
    path = written(tmp_path / "x.pt", b"c__builtin__\nxrange\nK\x01K\x05K\x02\x87R")
    assert tt.load(path, weights_only=False) == range(1, 5, 2)
    with pytest.raises(pickle.UnpicklingError, match="xrange.*weights_only=False"):
        tt.load(path)


def test_safe_globals(tmp_path):
    path = tmp_path / "x.pt"
    tt.save(Trainer(), path)
    with pytest.raises(ValueError, match="Trainer"):
        tt.load(path)
    with tt.serialization.safe_globals([Trainer]):
        assert tt.load(path).steps == 3
        assert tt.serialization.get_safe_globals() == [Trainer]
    tt.serialization.add_safe_globals([(Trainer, f"{Trainer.__module__}.Trainer")])
    assert isinstance(tt.load(path), Trainer)
    tt.serialization.clear_safe_globals()
    with pytest.raises(ValueError, match="Trainer"):
        tt.load(path)


def test_map_location(tmp_path):
    x = tt.arange(3.0)
    for obj in ({"x": x}, {"x": x, "set": {1}}):
        for format in ("torch", "safetensors"):
            if format == "safetensors" and "set" in obj:
                continue
            tt.save(obj, tmp_path / "x", format=format)
            seen = []
            for where in ("cpu", {"cpu": "cpu"}, {}, lambda storage, location: storage.cpu()):
                assert tt.load(tmp_path / "x", map_location=where)["x"].tolist() == [0, 1, 2]
            tt.load(tmp_path / "x", map_location=lambda s, place: seen.append((len(s), place)))
            assert seen == [(3, "cpu")]
            assert tt.load(tmp_path / "x", map_location={"cpu": "meta"})["x"].is_meta


def test_formats_are_told_by_name_or_argument(tmp_path):
    for name, start in (("a", b"PK"), ("b.bin", b"PK"), ("c.pt", b"PK"), ("d.safetensors", None)):
        tt.save({"x": tt.ones(1)}, tmp_path / name)
        data = (tmp_path / name).read_bytes()
        assert data.startswith(start) if start else data[8:9] == b"{"
        assert tt.load(tmp_path / name)["x"].item() == 1
    with pytest.raises(ValueError, match="format is 'onnx'"):
        tt.save([], tmp_path / "x", format="onnx")


def legacy_file(path, storages=((b"0", 2),), body=None):
    """A file as PyTorch before 1.6 wrote it: {"x": a view of float32 [0, 1], "n": 3}."""
    tensor = (
        b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\n"
        b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x02NtQK\x01K\x01\x85K\x01\x85\x89"
        b"ccollections\nOrderedDict\n)RtR"
    )
    body = body or b"}(X\x01\x00\x00\x00x" + tensor + b"X\x01\x00\x00\x00nK\x03u."
    magic = pickle.dumps(0x1950A86A20F9469CFC6C, 2)
    parts = [magic, pickle.dumps(1001, 2), pickle.dumps({"little_endian": True}, 2)]
    parts += [b"\x80\x02" + body, pickle.dumps([key.decode() for key, _ in storages], 2)]
    parts += [struct.pack("<q2f", n, 0.0, 1.0) for _, n in storages]
    path.write_bytes(b"".join(parts))
    return path


def test_legacy_files(tmp_path):
    path = legacy_file(tmp_path / "old.pth")
    for weights_only in (True, False):
        back = tt.load(path, weights_only=weights_only)
        assert back["x"].tolist() == [1.0] and back["n"] == 3
    data = path.read_bytes()
    for cut in range(17, len(data)):
        (tmp_path / "cut").write_bytes(data[:cut])
        with pytest.raises((ValueError, EOFError)):
            tt.load(tmp_path / "cut")
    with pytest.raises(ValueError, match="os system"):
        tt.load(legacy_file(path, body=b"cos\nsystem\nX\x04\x00\x00\x00true\x85R."))


def test_conjugates_in_legacy_files(tmp_path):
    """A file has the elements of storages behind the tensors that are computed from them."""
    body = (
        b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storage"
        b"ctorch\nComplexFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x01NtQ"
        b"K\x00K\x01\x85K\x01\x85\x89ccollections\nOrderedDict\n)R"
        b"}(X\x04\x00\x00\x00conj\x88X\x03\x00\x00\x00neg\x88utR."
    )
    path = legacy_file(tmp_path / "old.pth", storages=((b"0", 1),), body=body)
    assert tt.load(path).tolist() == [1j]  # -conj(0 + 1j)


def test_named_tuples_of_tt_keep_their_classes(tmp_path):
    packed = nn.utils.rnn.pack_sequence([tt.ones(2), tt.ones(1)])
    tt.save([packed, tt.eye(2).max(0)], tmp_path / "x")
    back = tt.load(tmp_path / "x", weights_only=False)
    assert type(back[0]) is type(packed) and back[0].batch_sizes.tolist() == [2, 1]
    assert back[1].values.tolist() == [1, 1]


def test_names_in_a_file(tmp_path):
    tt.save({"point": Point(tt.ones(2), 3)}, tmp_path / "x")
    found = tt.serialization.get_unsafe_globals_in_checkpoint(tmp_path / "x")
    assert found == [f"{Point.__module__}.Point"]
    tt.save({"point": Point(tt.ones(2), 3)}, tmp_path / "z", pickle_protocol=4)
    with pytest.raises(tt.TtError, match="protocol 4"):
        tt.serialization.get_unsafe_globals_in_checkpoint(tmp_path / "z")
    tt.save({"x": tt.ones(2)}, tmp_path / "y")
    assert tt.serialization.get_unsafe_globals_in_checkpoint(tmp_path / "y") == []


def test_pickle_modules(tmp_path):
    tt.save(nn.Linear(1, 2), tmp_path / "x")
    assert isinstance(tt.load(tmp_path / "x", pickle_module=pickle), nn.Linear)
    with pytest.raises(RuntimeError, match="takes no pickle_module"):
        tt.load(tmp_path / "x", pickle_module=pickle, weights_only=True)


def test_restoring_locations(tmp_path):
    tt.save({"x": tt.ones(2)}, tmp_path / "x")
    restore = tt.serialization.default_restore_location
    back = tt.load(tmp_path / "x", map_location=lambda storage, place: restore(storage, "cpu"))
    assert back["x"].tolist() == [1, 1]


def test_other_files_are_refused_with_a_reason(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(EOFError):
        tt.load(tmp_path / "empty")
    (tmp_path / "words").write_bytes(b"hello world")
    with pytest.raises(pickle.UnpicklingError):
        tt.load(tmp_path / "words")
    with pytest.raises(IsADirectoryError):
        tt.load(tmp_path)
    (tmp_path / "cut").write_bytes(b"PK\3\4 and no more")
    with pytest.raises(tt.errors.FormatError):
        tt.load(tmp_path / "cut", weights_only=False)
    (tmp_path / "x.pkl").write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(ValueError, match="plain pickle.*pickle.load"):
        tt.load(tmp_path / "x.pkl")
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        archive.add(tmp_path / "x.pkl", "pickle")
    with pytest.raises(ValueError, match="tar file"):
        tt.load(tmp_path / "x.tar")


@pytest.mark.parametrize("order, right", [(b"little", True), (b"big", True), (b"middle", False)])
def test_byte_orders(tmp_path, order, right):
    body = TENSOR + b"K\x00(K\x04t(K\x01t\x89NtR"
    entries = [("version", b"3\n"), ("byteorder", order), ("data/0", bytes(16))]
    path = written(tmp_path / "x.pt", body, entries)
    if right:
        assert tt.load(path).tolist() == [0] * 4
    else:
        with pytest.raises(ValueError, match="byteorder must be little or big"):
            tt.load(path)


def test_sparse_tensors(tmp_path):
    path = tmp_path / "sparse.pt"
    unsorted = tt.sparse_coo_tensor([[1, 1, 0]], [1.0, 2.0, 3.0], (4,))
    coo = tt.eye(3).to_sparse()
    saved = {"coo": coo, "csr": tt.eye(3).to_sparse_csr(), "unsorted": unsorted, "one": tt.ones(1)}
    tt.save(saved, path)
    for trusted in (False, True):
        found = tt.load(path, weights_only=not trusted)
        for key, t in saved.items():
            assert found[key].layout is t.layout and found[key].dtype is t.dtype
            assert tt.equal(*(x.to_dense() if x.is_sparse else x for x in (found[key], t)))
        assert found["coo"].is_coalesced() and not found["unsorted"].is_coalesced()
    if importlib.util.find_spec("torch") is not None:
        import torch

        theirs = torch.load(path)
        torch.save(theirs, path)
        assert tt.equal(tt.load(path)["csr"].to_dense(), tt.eye(3))


@pytest.mark.parametrize(
    "values, size, reason",
    [(3, (2,), "reach"), (2, (9,), "indices are"), (3, (9, 9), "size is"), (None, (9,), "memory")],
)
def test_hostile_sparse_tensors_are_refused(tmp_path, values, size, reason):
    path = tmp_path / "sparse.pt"
    t = tt.sparse_coo_tensor([[0, 1, 2]], [1.0, 2.0, 3.0], (3,))
    t.shape = tt.Size(size)
    t._values_ = tt.ones(1).expand(10**9) if values is None else tt.ones(values)
    tt.save({"t": t}, path)
    with pytest.raises(tt.errors.TtError, match=reason):
        tt.load(path)


Point = namedtuple("Point", "x y")


def test_containers_keep_their_classes(tmp_path):
    path = tmp_path / "classes.pt"
    lists = defaultdict(list, a=[1])
    tt.save({"point": Point(tt.ones(2), 3), "lists": lists, "counts": Counter("aab")}, path)
    found = tt.load(path, weights_only=False)
    assert found["point"].x.tolist() == [1, 1] and found["point"].y == 3
    assert found["lists"]["b"] == [] and found["counts"]["c"] == 0
    with pytest.raises(pickle.UnpicklingError, match="Point|defaultdict"):
        tt.load(path)
    tt.save(Counter("aab"), path)
    assert tt.load(path) == Counter("aab") and type(tt.load(path)) is Counter
