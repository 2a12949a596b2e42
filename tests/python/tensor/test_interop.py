"""Other libraries and Python's own protocols: NumPy, DLPack, pickle, copy, subclasses, text."""
import copy
import ctypes
import gc
import io
import math
import pickle
import weakref

import numpy as np
import pytest

import tt
from tt import nn

try:
    import torch
except ImportError:
    torch = None

DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


# ---- NumPy ----


@pytest.mark.parametrize("name", DTYPES)
def test_numpy_and_back(name):
    x = tt.tensor([[0, 1, 2], [3, 4, 5]]).to(getattr(tt, name))
    a = x.numpy()
    assert (
        a.dtype.name == name
        and a.shape == (2, 3)
        and tt.from_numpy(a).data_ptr() == x.data_ptr()
        and tt.from_numpy(a).dtype is x.dtype
    )
    assert tt.from_numpy(a.T).stride() == (1, 3) and x.t().numpy().strides == tuple(
        s * x.itemsize for s in (1, 3)
    )
    assert np.array_equal(np.asarray(x[:, 1:]), a[:, 1:])


def test_copies_of_arrays_keep_the_order_of_elements():
    a = np.arange(24.0).reshape(2, 3, 4)
    for array, strides in ((a.T, (1, 4, 12)), (a[:, ::2], (8, 4, 1)), (a[::-1], (12, 4, 1))):
        x = tt.tensor(array)
        assert x.stride() == strides and np.array_equal(x.numpy(), array)
    assert tt.tensor(np.broadcast_to(a[0], (2, 3, 4))).stride() == (12, 4, 1)


def test_numpy_functions_on_tensors():
    x = tt.tensor([1.0, 4.0])
    for got, want in (
        (np.sqrt(x), [1, 2]),
        (np.ones(2) + x, [2, 5]),
        (x + np.ones(2), [2, 5]),
        (np.maximum(x, 2), [2, 4]),
        (np.float32(2) * x, [2, 8]),
    ):
        assert isinstance(got, tt.Tensor) and got.tolist() == want
    assert (
        (x + np.ones(2)).dtype is tt.float64
        and np.stack([x, x]).shape == (2, 2)
        and np.float64(3) == tt.tensor(3.0)
    )
    assert tt.tensor([np.float32(1.5), np.int64(2)]).tolist() == [1.5, 2] and x[
        np.array([1, 0])
    ].tolist() == [4, 1]
    with pytest.raises(RuntimeError):
        np.sqrt(tt.ones(2, requires_grad=True))
    leaf = tt.ones(2, requires_grad=True)
    with tt.no_grad():
        array = leaf.numpy()
        assert np.sqrt(leaf).tolist() == [1, 1]
    array[0] = 3
    assert leaf.tolist() == [3, 1]


def test_memory_outlives_its_tensor():
    a = np.ones(1000)
    ref = weakref.ref(a)
    x = tt.from_numpy(a)[10:]
    b = x.numpy()
    del a, x
    gc.collect()
    assert ref() is not None and b.sum() == 990
    del b
    gc.collect()
    assert ref() is None


@pytest.mark.parametrize("n", [3, 30000])
def test_memory_outlives_new_data(n):
    x, y = tt.ones(n), tt.ones(n)
    norm = nn.BatchNorm1d(n)
    arrays = [x.numpy(), np.from_dlpack(y), norm.running_var.numpy()]
    x.data = y.data = tt.zeros(2)
    norm.to(tt.float64)
    taken = [tt.full((n,), 7.0) for _ in range(20)]  # these would reuse freed memory
    assert [a.copy().min() for a in arrays] == [1, 1, 1] and len(taken) == 20
    assert x.tolist() == [0, 0] and norm.running_var.dtype is tt.float64


# ---- DLPack ----


class Old:
    """An exporter from before versions."""

    def __init__(self, x):
        self.x = x

    def __dlpack__(self):
        return self.x.__dlpack__()

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


@pytest.mark.parametrize("name", DTYPES)
def test_dlpack_with_numpy(name):
    x = tt.tensor([[0, 1, 2], [3, 4, 5]]).to(getattr(tt, name))
    assert tt.from_dlpack(Old(x)).data_ptr() == x.data_ptr()
    if name == "bool" and np.__version__ < "2":
        return  # it refuses them
    a = np.from_dlpack(x)
    assert a.dtype.name == name and a.ctypes.data == x.data_ptr() and a.tolist() == x.tolist()
    assert np.from_dlpack(x.t()).tolist() == a.T.tolist()
    b = a.copy()
    y = tt.from_dlpack(b)
    assert (
        y.data_ptr() == b.ctypes.data
        and y.dtype is x.dtype
        and y.tolist() == x.tolist()
        and tt.from_dlpack(b.T).stride() == (1, 3)
    )


def test_dlpack_keeps_memory_alive():
    a = np.arange(6.0)
    ref = weakref.ref(a)
    x = tt.from_dlpack(a)
    assert x.data_ptr() == a.ctypes.data
    del a
    gc.collect()
    assert ref() is not None and x.sum().item() == 15
    del x
    gc.collect()
    assert ref() is None
    b = np.from_dlpack(tt.ones(1000) * 3)
    gc.collect()
    assert b.sum() == 3000


def test_dlpack_capsules():
    x = tt.ones(3)
    old, new = x.__dlpack__(), x.__dlpack__(max_version=(1, 0))
    assert (
        '"dltensor"' in repr(old)
        and '"dltensor_versioned"' in repr(new)
        and x.__dlpack_device__() == (1, 0)
    )
    for capsule in (old, new):
        y = tt.from_dlpack(capsule)
        assert y.data_ptr() == x.data_ptr() and "used_dltensor" in repr(capsule)
        with pytest.raises(ValueError, match="taken"):
            tt.from_dlpack(capsule)
    ref = weakref.ref(a := np.ones(2))
    x = tt.from_numpy(a)
    unused = x.__dlpack__(max_version=(1, 1))
    del x, a
    gc.collect()
    assert ref() is not None
    del unused
    gc.collect()
    assert ref() is None


def test_dlpack_options():
    x = tt.ones(3)
    copied = tt.from_dlpack(x, copy=True)
    assert (
        copied.data_ptr() != x.data_ptr()
        and copied.tolist() == x.tolist()
        and tt.from_dlpack(x, device="cpu").data_ptr() == x.data_ptr()
    )
    frozen = np.ones(2)
    frozen.flags.writeable = False
    y = tt.from_numpy(frozen)
    with pytest.raises(BufferError):
        y.__dlpack__()
    with pytest.raises(RuntimeError):
        tt.from_dlpack(y).add_(1)
    for bad in (
        lambda: tt.ones(2, requires_grad=True).__dlpack__(),
        lambda: x.__dlpack__(dl_device=(2, 0)),
        lambda: tt.empty(2, device="meta").__dlpack_device__(),
    ):
        with pytest.raises(BufferError):
            bad()
    for bad in (3, "a", [1.0]):
        with pytest.raises(TypeError):
            tt.from_dlpack(bad)


@pytest.mark.skipif(torch is None, reason="PyTorch is not installed")
def test_dlpack_with_torch():
    for name in [*DTYPES, "bfloat16"]:
        x = tt.tensor([[0, 1, 2], [3, 4, 5]]).to(getattr(tt, name))
        y = torch.from_dlpack(x)
        assert (
            y.data_ptr() == x.data_ptr()
            and str(y.dtype) == "torch." + name
            and y.tolist() == x.tolist()
        )
        z = tt.from_dlpack(y.t())
        assert z.data_ptr() == x.data_ptr() and z.dtype is x.dtype and z.stride() == (1, 3)
    y = torch.ones(3)
    x = tt.from_dlpack(y)
    x.add_(1)
    assert y.tolist() == [2, 2, 2]


# ---- pickle and copy ----


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 2, 3, bias=False, padding="same"),
            nn.BatchNorm2d(2),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.attention = nn.MultiheadAttention(4, 2)
        self.scale = nn.Parameter(tt.ones(3))
        self.tied = self.scale
        self.register_buffer("seen", tt.arange(2))

    def forward(self, x):
        return self.body(x)


def test_modules_pickle():
    m = Net().eval()
    x = tt.randn(2, 1, 4, 4)
    with tt.no_grad():
        m.body[1].running_mean.fill_(0.25)
    for made in (pickle.loads(pickle.dumps(m)), copy.deepcopy(m)):
        assert made(x).tolist() == m(x).tolist() and not made.training and not made.body[1].training
        assert (
            list(made.state_dict()) == list(m.state_dict())
            and made.tied is made.scale
            and isinstance(made.scale, nn.Parameter)
        )
        assert all(
            a.tolist() == b.tolist()
            for a, b in zip(made.state_dict().values(), m.state_dict().values())
        )
        made.train()(x).sum().backward()
        assert (
            made.body[0].weight.grad is not None
            and m.body[0].weight.grad is None
            and made.body[0].bias is None
        )
        q = tt.randn(3, 1, 4)
        assert made.eval().attention(q, q, q)[0].tolist() == m.attention(q, q, q)[0].tolist()
        assert repr(made) == repr(m)


def test_tensors_pickle_and_copy():
    p = nn.Parameter(tt.arange(3.0))
    p.tag = "kept"
    for made in (pickle.loads(pickle.dumps(p)), copy.deepcopy(p)):
        assert (
            type(made) is nn.Parameter
            and made.tag == "kept"
            and made.requires_grad
            and made.tolist() == [0, 1, 2]
            and made.data_ptr() != p.data_ptr()
        )
    near = copy.copy(p)
    assert (
        type(near) is nn.Parameter
        and near is not p
        and near.data_ptr() == p.data_ptr()
        and near.requires_grad
        and near.tag == "kept"
    )
    p.sum().backward()
    assert copy.deepcopy(p).grad is None  # as in PyTorch; copies of other leaves keep theirs
    x = tt.ones(2, requires_grad=True)
    x.sum().backward()
    assert copy.deepcopy(x).grad.tolist() == [1, 1]
    with pytest.raises(RuntimeError):
        copy.deepcopy(p * 2)
    a, b = copy.deepcopy([p, p])
    assert a is b
    assert (
        tt.device(type="cuda", index=1) == tt.device("cuda:1") != tt.device("cuda")
        and tt.device(tt.device("meta")).index is None
    )
    for thing in (
        tt.float32,
        tt.device("cuda:1"),
        tt.device("cpu"),
        tt.Size([1, 2]),
        tt.channels_last,
    ):
        assert pickle.loads(pickle.dumps(thing)) == thing and copy.deepcopy(thing) == thing
    opt = pickle.loads(
        pickle.dumps(tt.optim.Adam([nn.Parameter(tt.ones(2))], lr=0.5, betas=(0.8, 0.9)))
    )
    assert opt.param_groups[0]["lr"] == 0.5 and opt.param_groups[0]["betas"] == (0.8, 0.9)


# ---- subclasses and attributes ----


class Labelled(tt.Tensor):
    def __new__(cls, data, label=None):
        made = super().__new__(cls, data)
        made.label = label
        return made

    def __init__(self, data, label=None):
        pass

    def describe(self):
        return f"{self.label}: {self.sum().item():.1f}"


def test_subclasses():
    x = Labelled([1.0, 2.0], label="a")
    assert isinstance(x, tt.Tensor) and x.describe() == "a: 3.0" and (1 + x).tolist() == [2, 3]
    base = tt.ones(2)
    y = base.as_subclass(Labelled)
    assert (
        type(y) is Labelled
        and y.data_ptr() == base.data_ptr()
        and tt.cat([x, y]).tolist() == [1, 2, 1, 1]
    )
    assert (
        type(pickle.loads(pickle.dumps(x))) is Labelled
        and pickle.loads(pickle.dumps(x)).label == "a"
    )
    two = tt.ones(2, 2).as_subclass(Labelled)
    for kept in (
        tt.exp(x),
        tt.add(x, 1),
        tt.sum(x),
        tt.max(two, 1).values,
        tt.chunk(x, 2)[0],
        tt.reshape(x, (2, 1)),
        tt.zeros_like(x),
        tt.nn.functional.relu(x),
        x.view(-1),
        x.new_tensor([1.0]),
        x.type_as(base),
        x.reshape_as(two[0]),
        tt.matmul(two, two),
        x.to(tt.float64),
    ):
        assert type(kept) is Labelled, kept
    for kept in (
        tt.cat([x, y]),
        tt.stack((base, x)),
        tt.einsum("i,i->", base, x),
        tt.einsum("i,i->", [x, base]),
    ):
        assert type(kept) is Labelled, kept
    for plain in (
        tt.cat([base, base]),
        tt.stack([nn.Parameter(base), base]),
        tt.cat([nn.Parameter(base)] * 2),
    ):
        assert type(plain) is tt.Tensor
    out = tt.zeros(2)
    assert tt.stack([x, y], out=tt.zeros(2, 2)).tolist() == [[1, 2], [1, 1]]
    assert (
        tt.exp(x, out=out) is out
        and x.add_(0) is x
        and type(tt.exp(tt.nn.Parameter(base))) is tt.Tensor
    )
    with pytest.raises(TypeError, match="'input' must be Tensor, not str"):
        tt.exp("x")
    for kept in (
        x + 1,
        1 + x,
        x + base,
        base + x,
        -x,
        x == 1,
        x @ x,
        x[0],
        x.sum(),
        x.view(2, 1),
        x.clone(),
        x.detach(),
        x.max(0).values,
        x.chunk(2)[0],
        x // 2,
        x.double(),
    ):
        assert type(kept) is Labelled
    p = nn.Parameter(tt.ones(2, 2))
    assert (
        type(p + 1)
        is type(p * p)
        is type(p[0])
        is type(p.clone())
        is type(p.T)
        is type(tt.ones(1) + 1)
        is tt.Tensor
    )
    w = tt.ones(2, requires_grad=True)
    (w.as_subclass(Labelled) * x).sum().backward()
    assert w.grad.tolist() == [1, 2]


def test_attributes_of_tensors():
    x = tt.ones(2)
    x.note = [1]
    assert x.note == [1] and not hasattr(tt.ones(2), "note")
    x.value = 3
    assert x.value == 3 and x.tolist() == [1, 1]


# ---- Python's protocols ----


def test_text():
    assert (
        f"{tt.tensor(2.5):.2f}" == "2.50"
        and f"{tt.tensor(3):>4}" == "   3"
        and f"{tt.ones(2)}" == "tensor([1., 1.])"
        and str(tt.ones(1)) == "tensor([1.])"
    )
    with pytest.raises(TypeError):
        f"{tt.ones(2):>30}"
    assert (
        str(tt.float32) == "tt.float32"
        and str(tt.device("cpu")) == "cpu"
        and repr(tt.ones(2, 3).shape) == "tt.Size([2, 3])"
    )
    assert "%d" % tt.tensor(4) == "4" and "{:.1f}".format(tt.tensor(1.25)) == "1.2"


def test_numbers_of_python():
    x = tt.tensor(2.7)
    assert (
        int(x) == 2
        and math.floor(x) == 2
        and round(float(x), 1) == 2.7
        and abs(tt.tensor(-2)).item() == 2
        and divmod(7, 2) == (3, 1)
    )
    assert (
        bool(tt.tensor([1]))
        and not tt.tensor([[0.0]])
        and list(range(tt.tensor(2))) == [0, 1]
        and math.sqrt(tt.tensor(4.0)) == 2
    )
    for empty_or_many in (tt.ones(2), tt.ones(0)):
        with pytest.raises(RuntimeError, match="ambiguous"):
            bool(empty_or_many)
    assert (
        [r.tolist() for r in reversed(tt.arange(3))] == [2, 1, 0]
        and 2 in tt.arange(3)
        and 5 not in tt.arange(3)
    )
    a, b = tt.tensor([[1, 2], [3, 4]])
    assert (
        b.tolist() == [3, 4]
        and max(tt.tensor([1, 3, 2])).item() == 3
        and sum(tt.arange(4)).item() == 6
        and sorted(tt.tensor([2, 1]))[0].item() == 1
    )


def test_sizes():
    s = tt.ones(2, 3).shape
    assert (
        s + (4,) == tt.Size([2, 3, 4])
        and type(s + (4,)) is type((1,) + s) is type(s[:1]) is type(s * 2) is tt.Size
        and s.numel() == 6
        and s[1] == 3
    )
    assert {s: 1}[(2, 3)] == 1 and tt.zeros(*s).shape == s and tt.Size([]).numel() == 1


def test_facts():
    x = tt.ones(2, 3, dtype=tt.float64)
    assert (
        x.is_cpu
        and not x.is_cuda
        and not x.is_meta
        and x.get_device() == -1
        and x.is_signed()
        and x.is_same_size(tt.ones(2, 3))
    )
    assert (
        x.type() == "tt.DoubleTensor"
        and x.type(tt.int32).dtype is tt.int32
        and x.type(tt.Tensor).dtype is tt.float32
        and x.nbytes == 48
        and x.mT.shape == (3, 2)
    )
    w = tt.ones(2, requires_grad=True) * 2
    assert w.detach_() is w and w.is_leaf and not w.requires_grad and w.grad_fn is None
    assert (
        tt.empty(2, device="meta").is_meta
        and tt.tensor([[[], []]]).tolist() == [[[], []]]
        and tt.zeros(2, 0, 3).tolist() == [[], []]
    )


# ---- files ----


def test_save_and_load(tmp_path):
    m, path = nn.Linear(3, 2), tmp_path / "m.pt"
    tt.save(m.state_dict(), path)
    assert list(tt.load(path)) == [
        "weight",
        "bias",
    ] and "tt.structure" not in path.read_bytes().decode("latin1")
    m2 = nn.Linear(3, 2)
    m2.load_state_dict(tt.load(path))
    assert m2.weight.tolist() == m.weight.tolist()
    opt = tt.optim.Adam(m.parameters())
    m(tt.ones(1, 3)).sum().backward()
    opt.step()
    kept = {
        "model": m.state_dict(),
        "optimizer": opt.state_dict(),
        "epoch": 3,
        "loss": float("nan"),
        "best": 1e-300,
        "rates": (0.1, [None, True]),
        "shape": tt.Size([2, 3]),
        "dtype": tt.float16,
        "device": tt.device("cpu"),
        7: "seven",
        "same": [m.weight, m.weight],
    }
    tt.save(kept, path)
    back = tt.load(path, map_location="cpu", weights_only=True)
    assert (
        list(back) == list(kept)
        and back["epoch"] == 3
        and math.isnan(back["loss"])
        and back["best"] == 1e-300
        and back["rates"] == (0.1, [None, True])
    )
    assert (
        back["dtype"] is tt.float16
        and back["device"] == tt.device("cpu")
        and back[7] == "seven"
        and back["same"][0] is back["same"][1]
    )
    opt2 = tt.optim.Adam(m.parameters())
    opt2.load_state_dict(back["optimizer"])
    assert (
        opt2.state_dict()["state"][0]["exp_avg"].tolist()
        == opt.state_dict()["state"][0]["exp_avg"].tolist()
    )


def test_save_one_tensor_and_to_a_file_object(tmp_path):
    stream = io.BytesIO()
    tt.save(tt.arange(3), stream)
    stream.seek(0)
    assert tt.load(stream).tolist() == [0, 1, 2]
    tt.save([], tmp_path / "empty")
    assert tt.load(tmp_path / "empty") == []
    tt.save({"a.b": tt.ones(1), "a": {"b": tt.zeros(1)}}, tmp_path / "clash.safetensors")
    assert tt.load(tmp_path / "clash.safetensors")["a"]["b"].item() == 0
    mapped = tt.load(tmp_path / "clash.safetensors", mmap=True)["a.b"]
    with pytest.raises(RuntimeError):
        mapped.add_(1)


def test_what_cannot_be_saved_or_loaded(tmp_path):
    with pytest.raises(TypeError, match="state_dict"):
        tt.save({"model": nn.Linear(2, 2)}, tmp_path / "m.safetensors")
    with pytest.raises(TypeError, match="save"):
        tt.save({"model": lambda: 0}, tmp_path / "m")
    assert not list(tmp_path.iterdir())
    with pytest.raises(OSError):
        tt.load(tmp_path / "nothing")
    (tmp_path / "bad").write_bytes(b"12345678")
    with pytest.raises(ValueError):
        tt.load(tmp_path / "bad")
    with pytest.raises(OSError):
        tt.save({"x": tt.ones(1)}, tmp_path / "no" / "folder")


# ---- profiler ----


def test_profiler():
    x = tt.rand(64, 64, requires_grad=True)
    with tt.profiler.profile(activities=[tt.profiler.ProfilerActivity.CPU]) as p:
        with tt.profiler.record_function("step"):
            for _ in range(3):
                (x @ x).relu().sum().backward()
    rows = {r.key: r for r in p.key_averages()}
    assert (
        rows["aten::relu"].count == 3
        and rows["aten::matmul"].cpu_time_total >= rows["aten::matmul"].self_cpu_time_total > 0
        and rows["step"].count == 1
    )
    table = p.key_averages().table(sort_by="self_cpu_time_total", row_limit=4)
    assert "# of Calls" in table and len(table.splitlines()) == 9 and "Self CPU time total" in table
    with pytest.raises(RuntimeError):
        tt.profiler.profile().key_averages()


def test_a_tensor_is_no_buffer():
    """C's pointer must not be taken for values."""

    class Own(tt.Tensor):
        pass

    for x in (tt.ones(3), tt.nn.Parameter(tt.ones(3)), Own([1.0, 1.0, 1.0])):
        for take in (memoryview, bytearray):
            with pytest.raises(TypeError):
                take(x)


def test_results_of_operators_on_a_subclass_and_a_tensor():
    class Own(tt.Tensor):
        pass

    own, plain = tt.ones(2).as_subclass(Own), tt.ones(2)
    for result in (own + plain, plain + own, 1 - own, own**2, own[0], own == plain, -own):
        assert type(result) is Own
    assert type(own.new_tensor([1.0])) is Own and type(plain + plain) is tt.Tensor
    parameter = tt.nn.Parameter(tt.ones(2))
    assert type(parameter + plain) is type(plain + parameter) is tt.Tensor
    assert type(parameter + own) is Own
    before = dict(vars(Own))
    own += plain
    assert dict(vars(Own)) == before and type(own) is Own


def test_names_past_the_end_are_none():
    from tt._handles import StateDictHandle

    state = StateDictHandle()
    state.set("a", tt.ones(1))
    assert (state.name(0), state.name(1), state.structure()) == ("a", None, None)


def test_arrays_of_subclasses_share_their_memory():
    masked = np.ma.masked_array([1.0, 2.0], mask=[True, False])
    x = tt.from_numpy(masked)
    assert x.tolist() == [1, 2] and x.dtype is tt.float64
    x[1] = 5
    assert masked.data[1] == 5
    for convert in (tt.tensor, tt.as_tensor, tt.asarray):
        assert convert(masked).tolist() == [1, 5]
    own = np.zeros(2).view(type("Own", (np.ndarray,), {}))
    assert tt.from_numpy(own).data_ptr() == own.ctypes.data
