"""Names that PyTorch scripts touch around the operators."""
import pickle
import subprocess
import sys
from collections import deque

import pytest

import tt
from tt import nn
from tt.testing import assert_close


def test_versions():
    assert tt.__torch_version__.startswith("2.")
    assert tt.version.__version__ == tt.__version__ and tt.version.cuda is None


AS_TORCH = """
import sys
import tt
assert tt.as_torch() is tt
import torch, torch.nn, torch.nn.functional as F, torch.optim.lr_scheduler
from torch.nn.parameter import Parameter
from torch.autograd import Function
import torch.nn.utils
assert torch is tt and torch.nn is tt.nn and F is tt.nn.functional
assert torch.__version__ == torch.version.__version__ == tt.__torch_version__
from torch.utils._pytree import tree_map
import torch.jit.annotations
x = torch.ones(2, dtype=torch.float64)
assert str(x.dtype) == "torch.float64" and x.type() == "torch.DoubleTensor"
assert str(x) == "tensor([1., 1.], dtype=torch.float64)" and repr(x.shape) == "torch.Size([2])"
assert Parameter is tt.nn.Parameter and Function is tt.autograd.Function
assert isinstance(torch.nn.Linear(2, 2), tt.nn.Module)
import importlib.metadata, importlib.util
import torch._dynamo.config, torch.distributed.tensor
assert torch._dynamo is tt._dynamo and torch.distributed.tensor is tt.distributed.tensor
assert torch.distributed.tensor.__spec__.name == "tt.distributed.tensor"
assert importlib.metadata.version("torch") == tt.__torch_version__
assert torch.torch is torch and torch.__name__ == "torch"
assert importlib.util.find_spec("torch.monitor") is None
from torch.distributions.relaxed_bernoulli import RelaxedBernoulli
from torch.nn.modules.distance import PairwiseDistance
from torch.nn.parallel.data_parallel import DataParallel
from torch.nn.utils.weight_norm import weight_norm
from torch.optim.adagrad import Adagrad
from torch.utils.tensorboard.writer import SummaryWriter
import torch.functional
assert Adagrad is tt.optim.Adagrad and weight_norm is tt.nn.utils.weight_norm
assert torch.nn.parallel.data_parallel is tt.nn.parallel.data_parallel
assert torch.optim.rprop.Rprop is tt.optim.Rprop and torch.functional.einsum is tt.einsum
from torch.nn.modules import *
assert LSTM is tt.nn.LSTM and PairwiseDistance is tt.nn.PairwiseDistance
assert RelaxedBernoulli is tt.distributions.RelaxedBernoulli and not tt.is_autocast_enabled("mps")
assert torch._C._nn._parse_to(torch.float64)[:2] == (None, tt.float64)
from torch.distributed.checkpoint.state_dict import get_model_state_dict
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointWrapper
for absent in (get_model_state_dict, CheckpointWrapper):
    try:
        absent()
    except NotImplementedError as error:
        assert absent.__name__ in str(error)
    else:
        raise AssertionError(absent)
try:
    import torch.monitor
except ModuleNotFoundError as error:
    assert "torch.monitor" in str(error)
from torch.quantization.observer import MinMaxObserver
assert MinMaxObserver is tt.ao.quantization.MinMaxObserver
from torch.utils import cpp_extension  # tt has nothing for it
assert cpp_extension is sys.modules["torch.utils.cpp_extension"]
try:
    cpp_extension.load_inline("name")
except NotImplementedError as error:
    assert "load_inline" in str(error)
try:
    from torch.quantization.observer import Nothing
except ImportError as error:
    assert "cannot import name 'Nothing'" in str(error)
    print("one package")
"""


def test_as_torch_gives_one_package(tmp_path):
    found = subprocess.run(
        [sys.executable, "-c", AS_TORCH],
        env={"PYTHONPATH": ":".join(sys.path), "TT_LIBRARY": tt._lib.path},
        capture_output=True,
        text=True,
    )
    assert found.stdout.strip() == "one package", found.stderr


def test_dtypes_without_tensors():
    for name in ("float8_e4m3fn", "float8_e5m2"):
        dtype = getattr(tt, name)
        assert dtype is getattr(tt, name) and dtype.itemsize == 1 and dtype.is_floating_point
        for make in (lambda: tt.zeros(2, dtype=dtype), lambda: tt.ones(2).to(dtype)):
            with pytest.raises(tt.TtError, match="no such dtype"):
                make()
    with pytest.raises(tt.TtError, match="dtype is complex32, of which there are no tensors"):
        tt.ones(2).chalf()
    assert tt.complex32 is tt.chalf and tt.complex32.is_complex
    limits = tt.finfo(tt.float8_e4m3fn)
    assert (limits.bits, limits.max, limits.eps, limits.tiny) == (8, 448.0, 0.125, 0.015625)
    assert tt.finfo(tt.float8_e5m2).max == 57344.0


def test_hints_of_a_module():
    import typing

    class Mine(nn.Module):
        config: int

    assert typing.get_type_hints(Mine)["config"] is int


def test_names_of_buffers_that_are_not_saved():
    m = nn.Module()
    m.register_buffer("kept", tt.ones(1))
    m.register_buffer("left_out", tt.ones(1), persistent=False)
    assert m._non_persistent_buffers_set == {"left_out"}


def test_base_of_losses():
    class Loss(nn.modules.loss._WeightedLoss):
        def forward(self, x):
            return getattr((x * self.weight), self.reduction)()

    x, weight = tt.ones(2), tt.tensor([1.0, 3.0])
    assert Loss(weight)(x).item() == 2 and Loss(weight, reduction="sum")(x).item() == 4
    assert Loss(weight, size_average=False).reduction == "sum" and Loss(reduce=False).reduction == (
        "none"
    )


def test_mapped_storage(tmp_path):
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(8)))
    storage = tt.UntypedStorage.from_file(str(path), nbytes=8)
    part = tt.asarray(storage[4:8], dtype=tt.uint8)
    assert part.tolist() == [4, 5, 6, 7] and part.data_ptr() == storage.data_ptr() + 4
    assert storage.untyped() is storage
    storage.fill_(9)
    assert path.read_bytes() == bytes(range(8))
    tt.UntypedStorage.from_file(str(path), shared=True, nbytes=16).fill_(9)
    assert path.read_bytes() == b"\t" * 16


def test_checks():
    tt._check(True)
    tt._assert(True, "")
    tt._assert_async(tt.tensor(1))
    for check, error in (
        (lambda: tt._check(False, lambda: "mine"), RuntimeError),
        (lambda: tt._check_value(False, "mine"), ValueError),
        (lambda: tt._assert(False, "mine"), AssertionError),
        (lambda: tt._assert_async(tt.tensor(0), "mine"), RuntimeError),
    ):
        with pytest.raises(error, match="^mine$"):
            check()
    assert tt._shape_as_tensor(tt.ones(2, 3)).tolist() == [2, 3]


def test_trees_of_other_classes():
    from tt.utils import _pytree as pytree

    class Pair:
        def __init__(self, left, right, name):
            self.left, self.right, self.name = left, right, name

    register = pytree.register_pytree_node
    register(Pair, lambda p: ([p.left, p.right], p.name), lambda items, name: Pair(*items, name))
    doubled = pytree.tree_map(lambda x: 2 * x, {"a": [1, Pair(2, (3,), "b")]})
    pair = doubled["a"][1]
    assert (pair.left, pair.right, pair.name) == (4, (6,), "b") and doubled["a"][0] == 2
    leaves, form = pytree.tree_flatten(Pair(1, [2], "c"))
    assert leaves == [1, 2] and form.type is Pair and form.context == "c"
    with pytest.raises(ValueError, match="registered already"):
        register(Pair, None, None)
    del pytree.registered[Pair], pytree.SUPPORTED_NODES[Pair]


def test_parts_that_share_one_tensor():
    from tt import _utils

    parts = [tt.ones(2, 3), tt.arange(4.0)]
    flat = _utils._flatten_dense_tensors(parts)
    again = _utils._unflatten_dense_tensors(flat, parts)
    assert flat.shape == (10,) and all(tt.equal(a, b) for a, b in zip(parts, again))
    assert _utils._get_device_index("cuda:3") == 3
    assert _utils._get_device_index("cpu", allow_cpu=True) == -1


def test_classes_of_dtypes():
    x = tt.ones(2)
    assert isinstance(x, tt.FloatTensor) and not isinstance(x, tt.LongTensor)
    assert not isinstance(3.0, tt.FloatTensor) and isinstance(nn.Parameter(x), tt.FloatTensor)
    assert tt.FloatTensor(2, 3).shape == (2, 3) and tt.LongTensor().shape == (0,)
    assert tt.LongTensor([1, 2]).tolist() == [1, 2] and tt.LongTensor((3,)).dtype is tt.int64
    assert tt.LongTensor(x.shape).shape == (2,) and tt.BoolTensor([0, 1]).tolist() == [False, True]
    assert tt.LongTensor([1.7]).tolist() == [1]
    assert tt.FloatTensor(x).data_ptr() == x.data_ptr()
    assert tt.IntTensor([1], device="cpu").dtype is tt.int32 and tt.IntTensor(
        device="cpu"
    ).shape == (0,)
    assert tt.IntTensor.layout is tt.strided and not tt.IntTensor.is_cuda
    with pytest.raises(ValueError, match="makes tensors on cpu"):
        tt.IntTensor([1], device="meta")
    for wrong in (lambda: tt.FloatTensor(x.long()), lambda: tt.LongTensor(3.5)):
        with pytest.raises(TypeError):
            wrong()


def test_type_by_name():
    x = tt.ones(2)
    assert x.type("torch.DoubleTensor").dtype is x.type("tt.DoubleTensor").dtype is tt.float64
    assert x.type(tt.DoubleTensor).dtype is tt.float64 and x.type(tt.int64).dtype is tt.int64
    assert x.type(x.type()) is x
    for wrong in ("DoubleTensor", "torch.SomeTensor", "torch.mps.FloatTensor"):
        with pytest.raises(ValueError, match="names no type"):
            x.type(wrong)


def test_unknown_print_option():
    with pytest.raises(TypeError):
        tt.set_printoptions(digits=3)


def test_variable():
    x = tt.ones(2)
    v = tt.autograd.Variable(x, requires_grad=True)
    assert type(v) is tt.Tensor and v.requires_grad and v.data_ptr() == x.data_ptr()
    assert isinstance(x, tt.autograd.Variable) and not isinstance(1.0, tt.autograd.Variable)


def test_generators():
    state = tt.get_rng_state()
    assert state.dtype is tt.uint8
    a = tt.rand(3)
    tt.set_rng_state(state)
    assert tt.equal(tt.rand(3), a)
    with pytest.raises(TypeError):
        tt.set_rng_state((1, 2))
    g = tt.Generator(device="cpu").manual_seed(7)
    assert g.device == tt.device("cpu") and g.initial_seed() == 7
    assert tt.Generator("cuda:1").device.index == 1 and tt.Generator(3).initial_seed() == 3
    assert tt.equal(tt.rand(2, generator=g), tt.rand(2, generator=tt.Generator(7)))
    tt.default_generator.manual_seed(5)
    a = tt.rand(3)
    tt.default_generator.manual_seed(5)
    assert tt.equal(tt.rand(3, generator=tt.default_generator), a)
    assert tt.default_generator.initial_seed() == tt.initial_seed() == 5
    assert tt.seed() == tt.initial_seed() != 5


def test_softmax_without_a_dimension():
    for shape, dim in (((4,), 0), ((2, 4), 1), ((2, 3, 4), 0)):
        x = tt.rand(shape)
        for name in ("softmax", "log_softmax", "softmin"):
            f = getattr(nn.functional, name)
            with pytest.warns(UserWarning, match="implicit"):
                assert tt.equal(f(x), f(x, dim))
            assert f(x, dim=dim, dtype=tt.float64).dtype is tt.float64


def test_numbers_and_limits():
    assert int(tt.tensor(3 + 0j)) == 3 and float(tt.tensor(3 + 0j)) == 3.0
    assert complex(tt.tensor(3 + 2j)) == 3 + 2j
    for kind in (int, float):
        with pytest.raises(RuntimeError, match="imaginary part"):
            kind(tt.tensor(1 + 2j))
    assert tt.finfo(tt.complex64).dtype == "float32" and tt.finfo(tt.complex128).bits == 64
    for f, x in ((tt.iinfo, tt.ones(2)), (tt.finfo, tt.ones(2)), (tt.iinfo, tt.float32)):
        with pytest.raises(TypeError, match="type"):
            f(x)
    with pytest.raises(TypeError):
        tt.iinfo()
    assert tt.can_cast(tt.int8, tt.uint8) and not tt.can_cast(tt.float32, tt.int64)
    assert not tt.can_cast(tt.int64, tt.bool) and tt.can_cast(tt.bool, tt.int8)


def test_sequences():
    assert tt.tensor(deque([1, 2, 3])).tolist() == [1, 2, 3]
    assert tt.tensor([deque([1.0]), deque([2.0])]).tolist() == [[1], [2]]


def test_former_names_of_init():
    fan = nn.init._calculate_correct_fan
    assert (fan(tt.ones(2, 3, 5), "fan_in"), fan(tt.ones(2, 3, 5), "FAN_OUT")) == (15, 10)
    for name in ("uniform", "normal", "xavier_uniform", "kaiming_normal", "orthogonal", "eye"):
        x, y = tt.zeros(3, 3), tt.zeros(3, 3)
        tt.manual_seed(1)
        with pytest.warns(FutureWarning, match=f"nn.init.{name}_"):
            assert getattr(nn.init, name)(x) is x
        tt.manual_seed(1)
        getattr(nn.init, name + "_")(y)
        assert tt.equal(x, y)


# ---- testing ----


def test_close():
    assert_close(tt.tensor([1.0, 2.0]), tt.tensor([1.0, 2.0 + 1e-6]))
    assert_close([1.0, {"a": tt.ones(2)}], [1.0, {"a": tt.ones(2)}])
    assert_close(tt.tensor([float("nan"), float("inf")]), tt.tensor([float("nan"), float("inf")]),
                 equal_nan=True)  # fmt: skip
    assert_close(tt.tensor(1.0), tt.tensor(1.5), rtol=0.4, atol=0.0)
    assert_close(tt.tensor([True, False]), tt.tensor([True, False]))
    assert_close(3, 3)


@pytest.mark.parametrize(
    "actual, expected, message",
    [
        (tt.ones(2), tt.ones(3), r"attribute 'shape' do not match: tt.Size\(\[2\]\) != tt"),
        (tt.ones(2), tt.ones(2).double(), "attribute 'dtype' do not match"),
        (1, 1.5, "types do not match"),
        ({"a": 1}, {"b": 1}, r"Missing keys in the actual mapping: \['b'\]"),
        ([1], [1, 2], "length of the sequences mismatch: 1 != 2"),
        (
            tt.tensor([1, 2]),
            tt.tensor([1, 3]),
            r"not equal!\n\nMismatched elements: 1 / 2 \(50.0%\)",
        ),
        (
            tt.ones(2, 2),
            tt.tensor([[1.0, 1.0], [1.0, 2.0]]),
            r"1.0 at index \(1, 1\) \(up to 1e-05",
        ),
        ([tt.ones(2)], [tt.zeros(2)], r"occurred for item \[0\]"),
        (tt.tensor(1.0), tt.tensor(2.0), "Scalars are not close!"),
        (tt.tensor([float("nan")]), tt.tensor([float("nan")]), "not close"),
        (tt.tensor([float("inf")]), tt.tensor([1.0]), "not close"),
    ],
)
def test_what_is_not_close(actual, expected, message):
    with pytest.raises(AssertionError, match=message):
        assert_close(actual, expected)


def test_other_errors_of_assert_close():
    with pytest.raises(TypeError):
        assert_close("a", "a")
    with pytest.raises(ValueError):
        assert_close(1.0, 1.0, rtol=0.1)
    with pytest.raises(AssertionError, match="^mine$"):
        assert_close(1.0, 2.0, msg="mine")
    with pytest.raises(TypeError, match="No comparison pair .* <class 'int'> and <class 'str'>"):
        assert_close(1, "a", rtol=0.1)
    with pytest.raises(TypeError, match="No comparison pair"):
        assert_close(tt.ones(2), 1.0)


def test_data_that_are_no_numbers():
    for wrong in ({1}, None, "a", object(), {"a": 1}.keys(), iter([1])):
        for kind in (TypeError, RuntimeError):
            with pytest.raises(kind):
                tt.tensor(wrong)
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got list"):
        tt.autograd.Variable([1.0])
    assert tt.autograd.Variable(tt.ones(1), volatile=True).tolist() == [1.0]


def test_what_follows_the_default_dtype():
    try:
        tt.set_default_dtype(tt.float64)
        assert tt.Tensor([1, 2]).dtype is tt.Tensor(2).dtype is tt.float64
        assert tt.finfo().dtype == "float64"
    finally:
        tt.set_default_dtype(tt.float32)
    assert tt.finfo().dtype == "float32"
    for wrong in (tt.int64, tt.complex64, tt.bool):
        with pytest.raises(TypeError, match="must be floating"):
            tt.set_default_dtype(wrong)


def test_storages_and_generators():
    assert repr(tt.FloatStorage([1, 2])) == (
        " 1.0\n 2.0\n[tt.storage.TypedStorage(dtype=tt.float32, device=cpu) of size 2]"
    )
    text = repr(tt.ones(1).untyped_storage())
    assert text.endswith("\n 63\n[tt.storage.UntypedStorage(device=cpu) of size 4]")
    g = tt.Generator()
    assert g.set_state(g.get_state()) is g


def test_assert_close_of_sparse_tensors():
    eye = tt.eye(3)
    for convert in ("to_sparse", "to_sparse_csr", "to_sparse_csc"):
        assert_close(getattr(eye, convert)(), getattr(eye, convert)())
    assert_close(eye.to_sparse(), eye, check_layout=False)
    halves = tt.sparse_coo_tensor([[0, 0], [1, 1]], [0.5, 0.5], (2, 2))
    whole = tt.sparse_coo_tensor([[0], [1]], [1.0], (2, 2))
    cases = [
        (eye.to_sparse(), eye, "'layout' do not match: tt.sparse_coo != tt.strided"),
        (eye.to_sparse(), (2 * eye).to_sparse(), "^Sparse COO values are not close!"),
        (eye.to_sparse(), eye.flip(0).to_sparse(), "^Sparse COO indices are not equal!"),
        (eye.to_sparse_csr(), (2 * eye).to_sparse_csr(), "^Sparse CSR values are not close!"),
        (eye.to_sparse(), tt.ones(3, 3).to_sparse(), "specified values in sparse COO .*: 3 != 9"),
        (halves, whole, "specified values in sparse COO tensors does not match: 2 != 1"),
    ]
    for actual, expected, text in cases:
        with pytest.raises(AssertionError, match=text):
            assert_close(actual, expected)


def test_numbers_beyond_16_bits_become_infinite_when_they_are_assigned():
    x = tt.ones(2, dtype=tt.float16)
    x[0] = 1e6
    assert x.tolist() == [float("inf"), 1.0]
    y = tt.ones(3, dtype=tt.int64)
    y[1:] = -1
    assert y.tolist() == [1, -1, -1]
    for wrong in (1.5j, 2**70):
        with pytest.raises((ValueError, RuntimeError)):
            y[0] = wrong


def test_conversions_that_change_nothing_return_self():
    x = tt.ones(2)
    for target in (tt.float32, "cpu", tt.device("cpu")):
        assert x.to(target) is x
    assert x.to("cpu", copy=True) is not x and x.to(tt.float64).dtype is tt.float64
    assert x.to("meta").is_meta and tt.ones(2, device="meta").to("meta").is_meta


def test_slices_and_lists():
    x = tt.arange(10)
    assert x[1:6].tolist() == [1, 2, 3, 4, 5] and x[:3].tolist() == [0, 1, 2]
    assert x[tt.tensor(1) : tt.tensor(4) : 2].tolist() == [1, 3] and x[-(2**70) :].numel() == 10
    assert x[::3].tolist() == [0, 3, 6, 9] and tt.tensor([True, False]).tolist() == [True, False]
    with pytest.raises((TypeError, IndexError, ValueError)):
        x[0.5:]
    assert tt.tensor([1.0, 2.5]).dtype is tt.float32 and tt.tensor([1, 2.5]).dtype is tt.float32
    assert tt.tensor([]).dtype is tt.float32 and tt.tensor([True, 1]).dtype is tt.int64
    assert tt.tensor([1, 2], dtype=tt.int8).tolist() == [1, 2]
    with pytest.raises(ValueError, match="64 bits"):
        tt.tensor([2**70])
    assert tt.ones(2, 2).t().tolist() == [[1, 1], [1, 1]] and tt.ones(2).half().tolist() == [1, 1]
    assert tt.tensor([1 + 2j]).tolist() == [1 + 2j] and tt.zeros(2, 0).tolist() == [[], []]


def test_result_classes():
    found = tt.max(tt.eye(2), 0)
    assert type(found) is tt.return_types.max and not hasattr(tt.return_types, "nothing")
    copied = pickle.loads(pickle.dumps(found))
    assert type(copied) is type(found) and tt.equal(copied.values, found.values)
    assert isinstance(tt.linalg.svd(tt.eye(2)), tt.return_types.linalg_svd)


def test_versions_are_compared_by_their_numbers():
    version = tt.torch_version.TorchVersion
    assert version("2.15.0+cpu") >= (1, 9) and version("1.10") > "1.9"
    assert version("2.0.0a0") < "2.0" and version("2.0.0") == (2, 0)


def test_modules_that_call_their_own_call():
    m = nn.Linear(2, 2)
    m.register_forward_hook(lambda module, args, out: out * 0)
    assert m._call_impl(tt.ones(2)).tolist() == [0, 0]
