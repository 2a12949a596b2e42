"""PyTorch's files: what tt writes it reads back (PyTorch's own are cases of test_training.py), and
hostile ones are refused with the reason."""
import pickle
import zipfile
from collections import Counter, OrderedDict

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


def test_what_is_written_is_read(tmp_path):
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


def test_what_cannot_be_written_leaves_the_old_file(tmp_path):
    tt.save([1], tmp_path / "x.pth")
    for bad in (nn.Linear(1, 1), print, {1, 2}, object()):
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
