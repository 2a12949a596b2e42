"""Modules that PyTorch scripts import around tensors: devices, processes, compilers."""
import copy
import json
import os
import pickle
import signal
import threading
import time
from types import SimpleNamespace

import pytest

import tt
from tt import distributed as dist
from tt import multiprocessing as mp
from tt import nn

# ---- devices ----


@pytest.mark.skipif(tt.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_cuda_device():
    assert tt.cuda.device_count() == 0 and not tt.cuda.is_initialized()
    assert not tt.cuda.is_bf16_supported() and tt.cuda.memory_allocated() == 0
    assert tt.cuda.max_memory_allocated() == tt.cuda.memory_reserved() == 0
    assert tt.accelerator.current_accelerator() is None and not tt.accelerator.is_available()
    state = tt.get_rng_state()
    tt.cuda.manual_seed(3)
    tt.cuda.manual_seed_all(3)
    tt.cuda.synchronize()
    assert tt.equal(tt.get_rng_state(), state) and tt.cuda.get_rng_state_all() == []
    for needs in ("current_device", "get_device_name", "init", "get_rng_state", "Stream"):
        with pytest.raises(tt.errors.DeviceError, match=f"cuda.{needs}: device is cuda:0"):
            getattr(tt.cuda, needs)()
    with pytest.raises(tt.errors.DeviceError, match="set_device"):
        tt.cuda.set_device(1)
    with pytest.raises(tt.errors.DeviceError), tt.cuda.device("cuda:0"):
        pass
    with tt.cuda.device(-1):
        pass
    for needs in (lambda: tt.cuda.FloatTensor([1.0]), lambda: tt.ones(2).type(tt.cuda.LongTensor)):
        with pytest.raises(tt.errors.DeviceError):
            needs()
    assert not isinstance(tt.ones(2), tt.cuda.FloatTensor)


def test_switches_and_modules_that_change_nothing():
    mha = tt.backends.mha
    mha.set_fastpath_enabled(False)
    assert not mha.get_fastpath_enabled()
    mha.set_fastpath_enabled(True)
    for name in ("nnpack", "cusparselt", "kleidiai", "miopen", "xnnpack"):
        assert not getattr(tt.backends, name).is_available()
    with tt.sparse.check_sparse_tensor_invariants(False):
        assert tt.sparse.check_sparse_tensor_invariants.is_enabled()
        with pytest.raises(IndexError):
            tt.sparse_coo_tensor([[3]], [1.0], (2,))
    assert tt.version.rocm is None and tt.version.xpu is None
    assert tt.accelerator.set_device_idx is tt.accelerator.set_device_index
    assert tt.distributions.utils.logits_to_probs(tt.zeros(2)).tolist() == [0.5, 0.5]


def test_backends():
    for name in ("cudnn", "mps", "mkldnn", "mkl", "openmp"):
        assert not getattr(tt.backends, name).is_available()
    tt.backends.cudnn.benchmark = True
    assert tt.backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2", "AVX512")
    assert not tt.xpu.is_available() and not tt.mps.is_available() and tt.cpu.is_available()


def test_cuda_math():
    """PyTorch's switches of libraries, precision and determinism are fields of one struct."""
    cuda, cudnn = tt.backends.cuda, tt.backends.cudnn
    chosen = tt._cuda_math.chosen
    first = dict(chosen)
    assert first["deterministic"] and not first["matmul_tf32"] and not first["conv_tf32"]
    assert cudnn.enabled and cudnn.deterministic and not cudnn.allow_tf32
    cuda.matmul.allow_tf32 = True
    assert chosen["matmul_tf32"] and tt.get_float32_matmul_precision() == "high"
    tt.set_float32_matmul_precision("highest")
    assert not cuda.matmul.allow_tf32
    with cudnn.flags(enabled=False):
        assert not chosen["cudnn"] and chosen["conv_tf32"] and not cudnn.deterministic
    assert chosen == first
    cudnn.deterministic = False
    assert not tt.are_deterministic_algorithms_enabled()
    tt.use_deterministic_algorithms(True)  # one switch that asks for it is enough
    assert cudnn.deterministic
    tt.set_deterministic_debug_mode("default")
    assert not cudnn.deterministic
    cudnn.deterministic = True
    with tt.nn.attention.sdpa_kernel(tt.nn.attention.SDPBackend.FLASH_ATTENTION):
        assert not cuda.cudnn_sdp_enabled() and cuda.flash_sdp_enabled()
    with cuda.sdp_kernel(enable_cudnn=False):
        assert not chosen["cudnn_attention"]
    for field in ("blas", "linalg", "fft"):
        prefer = getattr(cuda, f"preferred_{field}_library")
        assert prefer() == "default" and prefer("tt") == "tt" and prefer("default") == "default"
    assert chosen == first
    x = tt.ones(2, 2)  # the CPU computes in float32
    tt.set_float32_matmul_precision("high")
    assert bool(((x * (1 + 2**-20)) @ x == 2 * (1 + 2**-20)).all())
    tt.set_float32_matmul_precision("highest")


def test_settings():
    tt.set_default_device("cpu")
    assert tt.get_default_device() == tt.device("cpu")
    with pytest.raises(RuntimeError, match="'gpu' is no device"):
        tt.set_default_device("gpu")
    tt.set_default_device(None)
    mps = tt.device("mps")  # PyTorch's other types can be named
    assert (str(mps), mps.index, str(tt.device("xpu:1"))) == ("mps", None, "xpu:1")
    assert mps != tt.ones(1).device and mps == tt.device("mps")
    for use in (lambda: tt.ones(1).to("mps"), lambda: tt.ones(1, device=mps)):
        with pytest.raises(RuntimeError, match="'mps' is no device of tt"):
            use()
    tt.set_default_tensor_type(tt.FloatTensor)
    tt.set_default_tensor_type("torch.FloatTensor")
    assert not tt.are_deterministic_algorithms_enabled()  # torchmetrics chooses a slow way then
    tt.use_deterministic_algorithms(True)
    assert tt.are_deterministic_algorithms_enabled()
    tt.set_float32_matmul_precision("high")
    assert tt.get_float32_matmul_precision() == "high"
    tt.set_float32_matmul_precision("highest")
    with pytest.raises(ValueError):
        tt.set_float32_matmul_precision("low")
    assert tt.typename(tt.ones(1)) == "tt.FloatTensor" and tt.typename(3) == "int"
    assert tt.numel(tt.ones(2, 3)) == 6 and tt.is_nonzero(tt.ones(1))
    assert tt.broadcast_shapes((2, 1), (3,), 1) == (2, 3) and tt.broadcast_shapes() == ()
    for wrong in (((2,), (3,)), ((-1,),)):
        with pytest.raises(ValueError, match="broadcast_shapes"):
            tt.broadcast_shapes(*wrong)


def test_attributes_of_tensors():
    x = tt.ones(2, 3)
    assert x.layout is tt.strided and str(tt.strided) == "tt.strided"
    assert not (x.is_sparse or x.is_xpu or x.is_mps or x.is_nested or x.is_pinned())
    assert x.pin_memory() is x and x.to_dense() is x and x.names == (None, None)
    assert x.new(2, 2).shape == (2, 2) and x.new([1, 2]).tolist() == [1.0, 2.0]
    x.apply_(lambda v: v + 1)
    assert x.tolist() == [[2.0] * 3] * 2
    x.map_(tt.arange(3.0), lambda a, b: a * b)
    assert x.tolist() == [[0.0, 2.0, 4.0]] * 2


def test_resize():
    x = tt.arange(6.0)
    assert x.resize_(2, 3) is x and x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert x.resize_(2, 2).tolist() == [[0, 1], [2, 3]]
    x.resize_((3, 4))
    assert x.shape == (3, 4) and x.flatten()[:6].tolist() == [0, 1, 2, 3, 4, 5]
    assert tt.empty(0).resize_as_(x).shape == (3, 4)
    y = tt.ones(2)
    x.set_(y)
    assert x.data_ptr() == y.data_ptr() and x.set_().shape == (0,)
    with pytest.raises(RuntimeError, match="set_: source is"):
        x.set_(tt.ones(2).long())


def test_asarray():
    x = tt.ones(2, requires_grad=True)
    assert not tt.asarray(x).requires_grad and tt.asarray(x).data_ptr() == x.data_ptr()
    assert tt.asarray(x, copy=True).data_ptr() != x.data_ptr()
    assert tt.asarray([1, 2]).dtype is tt.int64 and tt.asarray(3.0).shape == ()
    assert tt.asarray(bytes(8)).tolist() == [0.0, 0.0]
    data = bytearray(8)
    assert tt.asarray(data, copy=False).data_ptr() and tt.asarray(memoryview(data)).numel() == 2
    for wrong in ([1, 2], tt.ones(2).long()):
        with pytest.raises(ValueError, match="copy is False"):
            tt.asarray(wrong, dtype=tt.float32, copy=False)


# ---- compilers ----


def test_compile_refuses():
    for wrong in (lambda: tt.compile(3), lambda: tt.compile(abs, mode="a", options={})):
        with pytest.raises(RuntimeError, match="compile"):
            wrong()


@pytest.mark.parametrize("name", "jit.fork jit.wait".split())
def test_absent_tools_say_so_by_name(name):
    module, _, attribute = name.partition(".")
    absent = getattr(getattr(tt, module), attribute)
    with pytest.raises(NotImplementedError, match=f"^{name}: tt "):
        absent(nn.Linear(2, 2))


def test_marks_for_compilers():
    def f():
        return 1

    assert tt.jit.ignore(f) is f and tt.jit.ignore(drop=True)(f) is f and tt.jit.unused(f) is f
    assert tt.jit._overload_method(f) is tt.jit._script_if_tracing(f) is f  # torchvision's
    assert not tt.jit.is_scripting()
    assert not isinstance(nn.Linear(1, 1), tt.jit.ScriptModule) and tt.jit.isinstance(1, int)


def test_nested_structures():
    from collections import OrderedDict, defaultdict, deque, namedtuple

    from tt.utils._pytree import tree_all, tree_flatten, tree_leaves, tree_map, tree_map_only
    from tt.utils._pytree import tree_structure, tree_unflatten

    Pair = namedtuple("Pair", "a b")
    tree = {"x": [1, (2, None)], "y": Pair(3, deque([4], maxlen=2)), "z": OrderedDict(w=5)}
    tree["d"] = defaultdict(list, k=6)
    leaves, form = tree_flatten(tree)
    assert leaves == [1, 2, None, 3, 4, 5, 6] and form.num_leaves == 7 and form.num_children == 4
    again = tree_unflatten(leaves, form)
    assert again == tree and again["y"].b.maxlen == 2 and again["d"]["new"] == []
    doubled = tree_map_only(int, lambda v: 2 * v, tree)
    assert tree_leaves(doubled) == [2, 4, None, 6, 8, 10, 12]
    assert tree_structure(doubled) == form != tree_structure([1])
    assert tree_map(lambda a, b: a + b, [1, (2,)], [3, (4,)]) == [4, (6,)]
    assert tree_leaves([1, (2, 3)], is_leaf=lambda t: isinstance(t, tuple)) == [1, (2, 3)]
    assert tree_all(bool, [1, {"a": 2}]) and not tree_all(bool, [1, {"a": 0}])
    with pytest.raises(ValueError, match="tree_unflatten"):
        tree_unflatten([1], form)


def test_nested_structures_of_deeper_forms_and_paths():
    from collections import OrderedDict, namedtuple

    from tt.utils import _pytree as pytree

    def pair(*x):
        return x

    # keras gives trees whose leaves are structures in another one
    assert pytree.tree_map(pair, [1, (2,)], [[3, 4], ({"a": 5},)]) == [
        (1, [3, 4]),
        ((2, {"a": 5}),),
    ]
    assert pytree.tree_map(pair, {"a": 1, "b": 2}, OrderedDict(b=3, a=4)) == {
        "a": (1, 4),
        "b": (2, 3),
    }
    for tree, other, match in (
        ([1], (2,), "tuple must be list"),
        ([1, 2], [2], "1 items: must be 2"),
        ({"a": 1}, {"b": 1}, "keys are"),
        ([1], 5, "int must be list"),
    ):
        with pytest.raises(ValueError, match=match):
            pytree.tree_map(max, tree, other)

    Point = namedtuple("Point", "x y")
    tree = {"a": [1, Point(2, "s")]}
    paths, form = pytree.tree_flatten_with_path(tree)
    assert [pytree.keystr(path) for path, _ in paths] == ["['a'][0]", "['a'][1].x", "['a'][1].y"]
    assert pytree.tree_unflatten([leaf for _, leaf in paths], form) == tree
    named = pytree.tree_map_with_path(lambda path, x: f"{len(path)}{x}", tree)
    assert named == {"a": ["21", Point("32", "3s")]}
    seen = []
    assert pytree.tree_map_only_(int, seen.append, tree) is tree and seen == [1, 2]
    assert pytree.tree_map_(seen.append, tree) is tree and seen[2:] == [1, 2, "s"]
    assert pytree.tree_all_only(int, lambda x: x > 0, tree)
    assert not pytree.tree_any_only(str, lambda x: x == "t", tree)


# ---- processes ----


def test_a_group_of_one(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    assert dist.is_available() and not dist.is_initialized()
    with pytest.raises(ValueError, match="init_process_group"):
        dist.get_rank()
    with pytest.raises(ValueError, match="MASTER_ADDR"):
        dist.init_process_group("gloo", world_size=2, rank=0)
    dist.init_process_group("gloo", rank=0, world_size=1)
    try:
        assert dist.get_rank() == 0 and dist.get_world_size() == 1 and dist.get_backend() == "gloo"
        x = tt.arange(3.0)
        dist.all_reduce(x, op=dist.ReduceOp.SUM)
        dist.broadcast(x, 0)
        gathered = [tt.zeros(3)]
        assert dist.all_gather(gathered, x, async_op=True).wait()
        assert gathered[0].tolist() == x.tolist() == [0, 1, 2]
        dist.barrier()
        for wrong in (lambda: dist.broadcast(x, 1), lambda: dist.all_gather([], x)):
            with pytest.raises(ValueError):
                wrong()
        model = nn.parallel.DistributedDataParallel(nn.Linear(3, 1))
        with model.no_sync():
            model(x).backward()
        assert list(model.state_dict()) == ["module.weight", "module.bias"]
        assert model.module.weight.grad is not None
    finally:
        dist.destroy_process_group()
    assert not dist.is_initialized()


def test_data_parallel():
    inner = nn.Linear(2, 1)
    model = nn.DataParallel(inner, device_ids=[0])
    x = tt.ones(3, 2)
    assert tt.equal(model(x), inner(x)) and model.module is inner
    assert tt.equal(nn.parallel.data_parallel(inner, x), inner(x))


def add_one(rank, x, queue=None, received=None):
    x[rank] += 1
    if rank == 0 and queue is not None:
        queue.put(x[:1])
        received.wait(60)  # a sender must live until its tensors have arrived


def fail(rank):
    if rank == 1:
        raise ValueError("rank 1 is unwell")
    time.sleep(30)


def die(rank):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_share_tensors(method):
    context = mp.get_context(method)
    queue, arrived = context.Queue(), context.Event()
    x = tt.zeros(2).share_memory_()
    assert x.is_shared() and not tt.zeros(2).is_shared()
    processes = [context.Process(target=add_one, args=(i, x, queue, arrived)) for i in range(2)]
    for process in processes:
        process.start()
    received = queue.get(timeout=60)
    arrived.set()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert x.tolist() == [1.0, 1.0] and received.tolist() == [1.0]
    received.fill_(5)  # the same memory
    assert x.tolist() == [5.0, 1.0]


def test_modules_in_shared_memory():
    model = nn.Linear(2, 2)
    before = model.weight.detach().clone()
    assert model.share_memory() is model and model.weight.is_shared()
    assert tt.equal(model.weight, before)
    model(tt.ones(1, 2)).sum().backward()
    tt.optim.SGD(model.parameters(), lr=0.1).step()
    assert model.weight.is_shared() and not tt.equal(model.weight, before)
    y = model.weight * 2
    with pytest.raises(RuntimeError, match="leaf"):
        y.share_memory_()


def test_spawn():
    x = tt.zeros(2)
    x.share_memory_()
    mp.spawn(add_one, args=(x,), nprocs=2)
    assert x.tolist() == [1.0, 1.0]
    with pytest.raises(mp.ProcessRaisedException, match="rank 1 is unwell") as raised:
        mp.start_processes(fail, nprocs=2, start_method="fork")
    assert raised.value.error_index == 1
    with pytest.raises(mp.ProcessExitedException, match="SIGKILL"):
        mp.start_processes(die, nprocs=1, start_method="fork")


# ---- others ----


def test_futures():
    future = tt.futures.Future()
    doubled = future.then(lambda f: f.value() * 2)
    both = tt.futures.collect_all([future, doubled])
    with pytest.raises(RuntimeError, match="has not been set"):
        future.value()
    threading.Timer(0.01, future.set_result, [3]).start()
    assert future.wait() == 3 and doubled.wait() == 6 and [f.value() for f in both.wait()] == [3, 6]
    with pytest.raises(RuntimeError, match="complete already"):
        future.set_result(4)
    failed = tt.futures.Future()
    failed.set_exception(KeyError("k"))
    with pytest.raises(KeyError):
        tt.futures.wait_all([failed])


def test_hub(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", "/models")
    assert tt.hub._get_torch_home() == "/models" and tt.hub.get_dir() == "/models/hub"
    (tmp_path / "hubconf.py").write_text(
        "import tt\n\n\ndef small(n=2):\n    'A small model.'\n    return tt.nn.Linear(n, 1)\n"
    )
    folder = str(tmp_path)
    assert tt.hub.load(folder, "small", 3, source="local").in_features == 3
    assert tt.hub.list(folder, source="local") == ["small"]
    assert tt.hub.help(folder, "small", source="local") == "A small model."
    with pytest.raises(NotImplementedError, match="source is 'github'"):
        tt.hub.load("owner/name", "small")
    with pytest.raises(RuntimeError, match="no model 'large'"):
        tt.hub.load(folder, "large", source="local")
    tt.save({"w": tt.ones(2)}, tmp_path / "weights.pt")
    url = (tmp_path / "weights.pt").as_uri()
    state = tt.hub.load_state_dict_from_url(url, model_dir=str(tmp_path / "cache"))
    assert state["w"].tolist() == [1.0, 1.0]


def test_modules_of_nn():
    from tt.nn.modules.batchnorm import BatchNorm2d
    from tt.nn.modules.linear import NonDynamicallyQuantizableLinear
    from tt.nn.modules.module import Module
    from tt.nn.modules.utils import _pair

    assert BatchNorm2d is nn.BatchNorm2d and Module is nn.Module
    assert issubclass(NonDynamicallyQuantizableLinear, nn.Linear)
    assert _pair(2) == (2, 2) and _pair([1, 3]) == (1, 3)


def test_base_classes_of_norms():
    from tt.nn.modules.batchnorm import _BatchNorm, _NormBase
    from tt.nn.modules.instancenorm import _InstanceNorm

    batch = [nn.BatchNorm1d(2), nn.BatchNorm2d(2), nn.BatchNorm3d(2), nn.SyncBatchNorm(2)]
    instance = [nn.InstanceNorm1d(2), nn.InstanceNorm2d(2), nn.InstanceNorm3d(2)]
    assert all(isinstance(m, _BatchNorm) and not isinstance(m, _InstanceNorm) for m in batch)
    assert all(isinstance(m, _InstanceNorm) and not isinstance(m, _BatchNorm) for m in instance)
    assert all(isinstance(m, _NormBase) for m in batch + instance)
    assert not isinstance(nn.LayerNorm(2), _NormBase)


def test_base_classes_of_layers_with_windows():
    from tt.nn.modules.conv import _ConvNd, _ConvTransposeNd
    from tt.nn.modules.dropout import _DropoutNd
    from tt.nn.modules.padding import _ConstantPadNd, _ReflectionPadNd
    from tt.nn.modules.pooling import _AdaptiveAvgPoolNd, _AvgPoolNd, _MaxPoolNd

    conv, turned = nn.Conv2d(2, 3, 3, padding=(1, 2)), nn.ConvTranspose1d(2, 3, 3)
    assert isinstance(conv, _ConvNd) and isinstance(turned, _ConvNd)
    assert isinstance(turned, _ConvTransposeNd) and not isinstance(conv, _ConvTransposeNd)
    assert not conv.transposed and conv.output_padding == (0, 0) and turned.transposed
    assert conv._reversed_padding_repeated_twice == (2, 2, 1, 1)
    same = nn.Conv1d(2, 2, 4, padding="same")
    assert same._reversed_padding_repeated_twice == [1, 2]
    kinds = (
        (nn.MaxPool2d(2), _MaxPoolNd),
        (nn.AvgPool1d(2), _AvgPoolNd),
        (nn.AdaptiveAvgPool3d(1), _AdaptiveAvgPoolNd),
        (nn.Dropout(), _DropoutNd),
        (nn.ZeroPad2d(1), _ConstantPadNd),
        (nn.ReflectionPad1d(1), _ReflectionPadNd),
    )
    for layer, kind in kinds:
        assert [isinstance(layer, each) for _, each in kinds].count(True) == 1
        assert isinstance(layer, kind)


def test_convolutions_by_parts():
    class Standardized(nn.Conv2d):
        def _conv_forward(self, input, weight, bias):
            weight = weight - weight.mean((1, 2, 3), keepdim=True)
            return super()._conv_forward(input, weight, bias)

    x = tt.randn(2, 3, 5, 5)
    for options in ({}, {"padding": "same"}, {"padding": 1, "padding_mode": "circular"}):
        layer = Standardized(3, 4, 3, **options)
        plain = nn.Conv2d(3, 4, 3, **options)
        plain.load_state_dict(layer.state_dict())
        assert tt.allclose(plain._conv_forward(x, plain.weight, plain.bias), plain(x), atol=1e-6)
        with tt.no_grad():
            plain.weight -= plain.weight.mean((1, 2, 3), keepdim=True)
        assert tt.allclose(nn.Sequential(layer)(x), plain(x), atol=1e-6)
    plain._conv_forward = lambda input, weight, bias: input + 1
    assert tt.equal(plain(x), x + 1) and tt.equal(nn.Sequential(plain)(x), x + 1)


def test_convolutions_derived_from_the_base_class():
    from tt.nn.modules.conv import _ConvNd, _pair

    class Own(_ConvNd):
        def __init__(self, channels, size, padding=0, bias=True):
            size, padding, one = _pair(size), _pair(padding), _pair(1)
            super().__init__(
                channels, 4, size, one, padding, one, False, _pair(0), 1, bias, "zeros"
            )

        def forward(self, input):
            return self._conv_forward(input, self.weight * 2, self.bias)

    layer, x = Own(3, 3, padding=1), tt.randn(2, 3, 5, 5)
    assert layer.weight.shape == (4, 3, 3, 3) and layer.bias.shape == (4,)
    want = nn.functional.conv2d(x, layer.weight * 2, layer.bias, padding=1)
    assert tt.allclose(layer(x), want)
    layer(x).sum().backward()
    assert layer.weight.grad is not None
    assert list(layer.state_dict()) == ["weight", "bias"]
    assert Own(3, 3, bias=False).bias is None
    again = copy.deepcopy(layer)
    assert tt.allclose(again(x), want) and type(again) is Own


def test_numbers_as_flags_of_layers():
    assert nn.Linear(2, 2, bias=0).bias is None and nn.Linear(2, 2, bias=1).bias is not None
    assert nn.Conv1d(2, 2, 1, bias=True and 0).bias is None
    with pytest.raises(TypeError, match="bias' must be bool, not str"):
        nn.Linear(2, 2, bias="no")


def test_default_dtype():
    assert tt.get_default_dtype() is tt.float32
    found = {}
    try:
        tt.set_default_dtype(tt.float64)
        assert tt.ones(2).dtype is tt.rand(2).dtype is tt.arange(3.0).dtype is tt.float64
        assert tt.tensor(1.5).dtype is tt.tensor([1.5]).dtype is tt.float64
        assert tt.tensor(1j).dtype is (tt.ones(1) * 1j).dtype is tt.complex128
        ints = tt.ones(2, dtype=tt.int64)
        assert (ints / 2).dtype is (ints * 0.5).dtype is ints.exp().dtype is tt.float64
        assert tt.nn.Linear(2, 2).weight.dtype is tt.float64
        assert (tt.ones(1, dtype=tt.float32) * 0.5).dtype is tt.float32
        assert repr(tt.ones(1)) == "tensor([1.])"
        other = threading.Thread(target=lambda: found.update(dtype=tt.zeros(1).dtype))
        other.start()
        other.join()
        assert found["dtype"] is tt.float64
        tt.set_default_dtype(tt.bfloat16)
        assert tt.tensor([1.5]).dtype is tt.linspace(0, 1, 3).dtype is tt.bfloat16
    finally:
        tt.set_default_dtype(tt.float32)
    assert tt.ones(1).dtype is tt.float32
    for wrong in (tt.int64, tt.complex64):
        with pytest.raises(tt.errors.DtypeError, match="must be floating"):
            tt.set_default_dtype(wrong)
    with pytest.raises(TypeError):
        tt.set_default_dtype("float64")


def test_print_options():
    x = tt.tensor([1.23456, 100.0])
    try:
        tt.set_printoptions(precision=2)
        assert str(x) == "tensor([  1.23, 100.00])"
        tt.set_printoptions(sci_mode=True)
        assert str(x) == "tensor([1.23e+00, 1.00e+02])"
        assert str(tt.zeros(2)) == "tensor([0., 0.])"  # no nonzero number decides
        assert tt._tensor_str.get_printoptions()["sci_mode"] is True
        tt.set_printoptions(profile="default")
        assert str(x) == "tensor([  1.2346, 100.0000])"
        tt.set_printoptions(threshold=5, edgeitems=1)
        assert str(tt.arange(10)) == "tensor([0,  ..., 9])"
        tt.set_printoptions(profile="full", linewidth=20)
        assert str(tt.arange(6.0)) == "tensor([0., 1., 2.,\n        3., 4., 5.])"
        tt.set_printoptions(profile="full")
        assert "..." not in str(tt.arange(1001))
    finally:
        tt.set_printoptions(profile="default")
    assert "..." in str(tt.arange(1001))
    for wrong in ({"precision": 18}, {"threshold": -1}, {"profile": "tiny"}):
        with pytest.raises(ValueError):
            tt.set_printoptions(**wrong)


def test_functions_of_lists():
    x, y = [tt.ones(2), tt.ones(3)], [tt.ones(2), tt.ones(3) * 2]
    assert [t.tolist() for t in tt._foreach_add(x, y, alpha=2)] == [[3, 3], [5, 5, 5]]
    assert [t.item() for t in tt._foreach_norm([tt.ones(4)])] == [2]
    assert [t.tolist() for t in tt._foreach_addcdiv(x, y, y, [1, 2])] == [[2, 2], [3, 3, 3]]
    assert [t.tolist() for t in tt._foreach_pow(2, [tt.tensor([3.0])])] == [[8]]
    assert tt._foreach_mul_(x, tt.tensor(3.0))[0] is x[0] and x[1].tolist() == [3, 3, 3]
    tt._foreach_zero_(x)
    tt._foreach_copy_(x, y)
    assert x[1].tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match="self has 2 tensors, other has 1 items"):
        tt._foreach_add(x, [1])
    assert not hasattr(tt, "_foreach_nothing")


def test_functions_at_the_top_of_torch():
    x = tt.tensor([-1.0, 1.0])
    assert tt.relu_(x) is x and x.tolist() == [0, 1]
    assert tt.fill_(tt.zeros(2), 3).tolist() == tt.clamp_(tt.tensor([5.0, 3]), 3, 3).tolist()
    assert tt.dropout(tt.ones(3), 0.5, False).tolist() == [1, 1, 1]
    assert tt.embedding(tt.ones(3, 2), tt.tensor([1])).shape == (1, 2)
    losses = tt.hinge_embedding_loss(tt.ones(2), tt.tensor([1.0, -1.0]))
    assert losses.tolist() == [1, 0]
    assert tt.kl_div(tt.ones(2), tt.ones(2), 1).item() == -1
    assert tt.range(1, 4).tolist() == [1, 2, 3, 4]
    base = tt.ones(2, 2)
    for copy in (tt.t_copy(base), tt.view_copy(base, (4,)), *tt.unbind_copy(base)):
        copy.zero_()
    assert base.tolist() == [[1, 1], [1, 1]]
    assert tt.norm_except_dim(tt.ones(2, 4), 2, 0).tolist() == [[2], [2]]
    low = tt.arange(12.0).reshape(4, 3)  # of rank 2
    u, s, v = tt.svd_lowrank(low, 2)
    tt.testing.assert_close(u * s @ v.T, low, rtol=1e-4, atol=1e-4)
    assert tt.GradScaler is tt.amp.GradScaler and not tt.is_conj(base)
    with pytest.raises(ValueError, match="reduction is 7"):
        tt.kl_div(base, base, 7)
    with pytest.raises(AttributeError):
        tt.no_such_function_


def test_further_functions_of_nn_functional():
    f = tt.nn.functional
    drawn = f.gumbel_softmax(tt.zeros(2, 3, requires_grad=True), hard=True)
    assert drawn.sum(1).tolist() == [1, 1] and drawn.requires_grad
    x = tt.tensor([-1.0, 1.0])
    assert f.relu_(x) is x and x.tolist() == [0, 1]
    values, at = f.adaptive_max_pool2d_with_indices(tt.arange(4.0).reshape(1, 1, 2, 2), 1)
    assert (values.item(), at.item()) == (3, 3)
    assert f.upsample(tt.ones(1, 1, 2, 2), scale_factor=2).shape == (1, 1, 4, 4)


def test_flags_that_pytorch_takes():
    assert tt.gather(tt.ones(2, 2), 0, tt.zeros(1, 2, dtype=tt.int64), sparse_grad=False).shape
    last = tt.rand_like(tt.ones(2, 2, 2, 2), memory_format=tt.channels_last)
    assert last.stride() == (8, 1, 4, 2)
    kept = tt.empty_like(tt.ones(2, 3).t(), memory_format=tt.preserve_format)
    assert kept.stride() == (1, 3)
    x = tt.arange(12.0).view(4, 3)
    for parts, want in ((2, [2, 2]), ([1, 3], [1, 3])):
        found = tt.split(tensor=x, split_size_or_sections=parts)
        assert [len(part) for part in found] == want and found[1].data_ptr() > x.data_ptr()
    assert [part.shape[1] for part in tt.split(x, 2, dim=1)] == [2, 1]
    assert [part.shape[1] for part in x.split(split_size=2, dim=1)] == [2, 1]
    assert tt.tensor([1, 2], pin_memory=False).tolist() == [1, 2]
    assert tt.scalar_tensor(2, pin_memory=False).item() == 2
    assert tt.tril_indices(2, 2, pin_memory=False).shape == tt.triu_indices(2, 2).shape


# ---- more modules that scripts import ----


def test_timers():
    from tt.utils.benchmark import Compare, Measurement, Timer

    x = tt.ones(4)
    options = {"globals": {"x": x}, "label": "add", "sub_label": "4"}
    found = [
        Timer("x + x", description=str(n), num_threads=n, **options).timeit(20) for n in (1, 2)
    ]
    found.append(Timer(lambda: x + x).blocked_autorange(min_run_time=0.01))
    found.append(Timer("x * x", globals={"x": x}).adaptive_autorange(min_run_time=0.001))
    # Times that never become steady end with max_run_time, however little of it is measured.
    options = {"threshold": -1, "min_run_time": 1e-6, "max_run_time": 0.2}
    start = time.perf_counter()
    found.append(Timer("x * x", globals={"x": x}).adaptive_autorange(**options))
    assert time.perf_counter() - start >= 0.2
    assert all(isinstance(m, Measurement) and 0 < m.median < 1 and m.iqr >= 0 for m in found)
    assert "add: 4" in repr(found[0]) and "2 threads" in repr(found[1])
    table = str(Compare(found[:2]))
    assert "add: 4, 1 thr." in table and "Times are medians in" in table
    with pytest.raises(ValueError, match="language"):
        Timer(language="cpp")


def test_measurements():
    from tt.utils.benchmark import Measurement, TaskSpec

    task = TaskSpec("f(x)", "pass", label="sums", sub_label="rows", description="a")
    m = Measurement(2, [2.0, 2.002, 2.004, 2.006], task)
    assert (m.title, m.as_row_name, m.stmt, m.env) == ("sums: rows", "rows", "f(x)", None)
    assert m.median == pytest.approx(1.0015) and not m.has_warnings
    assert m.significant_figures == 3 and m.meets_confidence(0.01) and not m.meets_confidence(1e-4)
    assert Measurement(1, [1.0, 2.0, 3.0, 9.0], task).has_warnings
    (merged,) = Measurement.merge([m, Measurement(1, [3.0], task)])
    assert merged.times == [1.0, 1.001, 1.002, 1.003, 3.0] and merged.task_spec is task
    assert pickle.loads(pickle.dumps(m)).median == m.median
    with pytest.raises(AttributeError, match="median_of"):
        m.median_of


def test_hooks_of_optimizers():
    w, seen = tt.ones(2, requires_grad=True), []
    optimizer = tt.optim.adam.Adam([w])
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("before"))
    optimizer.register_state_dict_pre_hook(lambda o: seen.append("first"), prepend=True)
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "more": 1})
    optimizer.register_load_state_dict_pre_hook(lambda o, state: state.pop("more") and None)
    optimizer.register_load_state_dict_post_hook(lambda o: seen.append("loaded"))
    state = optimizer.state_dict()
    optimizer.load_state_dict(state)
    assert seen == ["first", "before", "loaded"] and state["more"] == 1


def test_parts_for_devices():
    from tt.nn import parallel

    inputs = (tt.arange(4), {"a": tt.ones(2)}, 3)
    parts = parallel.scatter(inputs, ["cpu", "cpu"])
    assert parts[1][0].tolist() == [2, 3] and parts[0][1]["a"].tolist() == [1] and parts[1][2] == 3
    model = nn.Linear(2, 1)
    copies = parallel.replicate(model, ["cpu", "cpu"])
    assert copies[0] is model and copies[1] is not model
    rows = parallel.parallel_apply(copies, [tt.ones(1, 2), (tt.ones(1, 2),)])
    assert parallel.gather(rows, "cpu").shape == (2, 1)
    assert parallel.gather([{"a": tt.ones(())}] * 2, "cpu")["a"].tolist() == [1, 1]


def test_gradients_of_convolutions():
    x, w = tt.randn(2, 3, 8, requires_grad=True), tt.randn(4, 3, 3, requires_grad=True)
    y = nn.functional.conv1d(x, w, None, 2, 1)
    g = tt.randn(y.shape)
    y.backward(g)
    tt.testing.assert_close(nn.grad.conv1d_input(x.shape, w, g, 2, 1), x.grad)
    tt.testing.assert_close(nn.grad.conv1d_weight(x, w.shape, g, 2, 1), w.grad)


def test_windows():
    from tt.signal import windows

    assert [round(v, 4) for v in windows.hann(5).tolist()] == [0, 0.5, 1, 0.5, 0]
    assert [round(v, 4) for v in windows.bartlett(4, sym=False).tolist()] == [0, 0.5, 1, 0.5]
    for name in windows.__all__:
        make = getattr(windows, name)
        options = {"a": [0.5, 0.5]} if name == "general_cosine" else {}
        assert [make(n, **options).shape[0] for n in (0, 1, 7)] == [0, 1, 7]
        symmetric = make(8, dtype=tt.float64, **options)
        tt.testing.assert_close(symmetric, symmetric.flip(0), rtol=0, atol=1e-12)
        with pytest.raises(ValueError, match="non-negative"):
            make(-1, **options)
    assert windows.kaiser(5, beta=2.0).tolist()[0] == pytest.approx(0.4387, abs=1e-4)


def test_small_functions_of_scripts():
    assert tt.cond(tt.tensor(True), lambda x: x + 1, lambda x: x, (1,)) == 2
    assert tt.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (0, 1)) == (3, 8)
    assert tt.sym_max(1, 2.0) == 2.0 and tt.sym_min(3, 2) == 2 and tt.sym_sum([1, 2]) == 3
    assert tt.sym_ite(tt.sym_not(False), 1, 2) == tt.sym_int(1.5) == 1
    assert tt.sym_sqrt(tt.sym_float(4)) == 2 and not isinstance(3, tt.SymInt)
    made = tt.testing.make_tensor((3, 4), dtype=tt.int8, device="cpu", low=2, high=5)
    assert made.dtype is tt.int8 and bool(((made >= 2) & (made < 5)).all())
    gaps = tt.testing.make_tensor(3, 4, dtype=tt.complex64, device=None, noncontiguous=True)
    assert gaps.shape == (3, 4) and not gaps.is_contiguous()
    tt.testing.assert_allclose(1.0, tt.ones(()))
    with tt.nn.attention.sdpa_kernel([tt.nn.attention.SDPBackend.MATH]):
        pass
    with pytest.raises(TypeError, match="sdpa_kernel"):
        with tt.nn.attention.sdpa_kernel("math"):
            pass
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2))
    tt.func.replace_all_batch_norm_modules_(model)
    nn.utils.convert_conv2d_weight_memory_format(model, tt.channels_last)
    assert model[0].weight.is_contiguous(memory_format=tt.channels_last)
    assert not any("running" in name for name in model.state_dict())
    assert model.eval()(tt.randn(3, 1, 4, 4)).mean().abs() < 1e-4
    generator = tt.Generator().manual_seed(3)
    twin = generator.clone_state()
    drawn = tt.poisson(tt.full((99,), 4.0), generator)
    assert tt.equal(drawn, tt.poisson(tt.full((99,), 4.0), twin)) and 3 < drawn.mean() < 5
    assert generator.get_offset() == twin.get_offset() > 0
    generator.set_offset(0)
    assert tt.equal(drawn, tt.poisson(tt.full((99,), 4.0), generator))
    assert 0 < tt.binomial(tt.full((99,), 10.0), tt.full((99,), 0.5)).mean() < 10
    assert tt.OutOfMemoryError is tt.cuda.OutOfMemoryError and tt.cuda.memory_summary()
    assert tt.overrides.is_tensor_like(tt.ones(1)) and not tt.overrides.has_torch_function(())
    with tt.cuda.nvtx.range("step"):
        tt.cuda.nvtx.range_push("a")


def test_parts_that_packages_import(monkeypatch):
    from tt.distributions.transforms import _InverseTransform
    from tt.nn.utils.stateless import _reparametrize_module
    from tt.utils._python_dispatch import is_traceable_wrapper_subclass

    assert tt.xpu.memory_allocated() == tt.mps.current_allocated_memory() == 0
    assert tt.xpu.get_rng_state_all() == [] and not tt.xpu.is_bf16_supported()
    with pytest.raises(tt.errors.DeviceError, match="xpu.get_device_name: there is no XPU device"):
        tt.xpu.get_device_name()
    x = tt.randn(4)
    devices, states = tt.utils.checkpoint.get_device_states(x)
    tt.utils.checkpoint.set_device_states(devices, states)
    assert devices == [] and not is_traceable_wrapper_subclass(x)
    pair = tt.return_types.max(x.reshape(2, 2).max(0))
    assert isinstance(pair, tt.return_types.max) and pair.values.shape == (2,)
    assert tt.functional.einsum is tt.einsum and tt.jit.interface(nn.Module) is nn.Module
    assert len(tt.utils.data._utils.worker._generate_state(3, 1)) == 4
    assert tt._inductor.list_mode_options() == {} and tt.Future[int] is tt.futures.Future
    layer = nn.Linear(2, 2)
    with _reparametrize_module(layer, {"bias": tt.zeros(2)}):
        assert layer.bias.tolist() == [0, 0]
    assert isinstance(tt.distributions.AffineTransform(1, 2).inv, _InverseTransform)
    tt._check_tensor_all(x == x)
    collate = tt.utils.data._utils.collate
    assert tt.equal(collate.collate_tensor_fn([x, x], collate_fn_map={tt.Tensor: 1})[1], x)
    with pytest.raises(TypeError, match="a text"):
        tt._check_with(TypeError, False, lambda: "a text")
    assert tt.get_deterministic_debug_mode() == 2 and tt._standard_gamma(tt.ones(3)).min() > 0
    assert tt.allclose(tt._sample_dirichlet(tt.ones(2, 3)).sum(-1), tt.ones(2))
    with tt._tensor_str.printoptions(precision=1):
        assert repr(tt.tensor([1.26])) == "tensor([1.3])"
    assert repr(tt.tensor([1.26])) == "tensor([1.2600])"


def test_reports_and_settings_by_pytorchs_names():
    from tt.utils import collect_env, deterministic

    report = collect_env.get_pretty_env_info()
    assert f"tt_version: {tt.__version__}" in report and f"build: {tt.build_info()}" in report
    assert collect_env.get_env_info().is_cuda_available is tt.cuda.is_available()
    assert deterministic.fill_uninitialized_memory is True
    deterministic.fill_uninitialized_memory = False
    assert tt.utils.deterministic.fill_uninitialized_memory is False
    deterministic.fill_uninitialized_memory = True
    with pytest.raises(RuntimeError, match="fill_uninitialized_memory must be a bool, not int"):
        deterministic.fill_uninitialized_memory = 1
    assert tt.quantization.QConfig is tt.ao.quantization.QConfig


def test_managers_that_decorate():
    from tt.utils._contextlib import _DecoratorContextManager, _NoParamDecoratorContextManager

    seen = []

    class Manager(_DecoratorContextManager):
        def __enter__(self):
            seen.append("in")

        def __exit__(self, *error):
            seen.append("out")

    class Plain(Manager, _NoParamDecoratorContextManager):
        pass

    assert Manager()(lambda x: x + 1)(2) == 3 and Plain(abs)(-2) == 2
    assert seen == ["in", "out"] * 2


def test_swapped_tensors():
    layer, other = nn.Linear(3, 2, bias=False), nn.Parameter(tt.ones(4, 3))
    old, weight = layer.weight.detach().clone(), layer.weight
    other.grad, other.mark = tt.full((4, 3), 2.0), 1
    tt.utils.swap_tensors(other, weight)
    assert tt.equal(other, old) and other.grad is None and not hasattr(other, "mark")
    assert weight.grad.tolist() == [[2] * 3] * 4 and weight.mark == 1
    assert layer(tt.ones(1, 3)).tolist() == [[3] * 4]
    plain = tt.zeros(2)
    tt.utils.swap_tensors(other, plain)
    assert type(plain) is nn.Parameter and plain.requires_grad and not other.requires_grad
    with pytest.raises(RuntimeError, match="leaves"):
        tt.utils.swap_tensors(plain * 1, other)


def test_products_of_groups():
    x, weights = tt.randn(6, 3), tt.randn(2, 3, 4, requires_grad=True)
    offs = tt.tensor([2, 5], dtype=tt.int32)
    y = nn.functional.grouped_mm(x, weights, offs=offs)
    assert tt.equal(y[:2], x[:2] @ weights[0]) and tt.equal(y[2:5], x[2:5] @ weights[1])
    assert y.shape == (6, 4) and y[5].tolist() == [0] * 4
    y.sum().backward()
    assert tt.allclose(weights.grad[0][:, 0], x[:2].sum(0))
    pairs = nn.functional.grouped_mm(x.t(), x, offs=offs)
    assert pairs.shape == (2, 3, 3) and tt.equal(pairs[1], x[2:5].t() @ x[2:5])
    columns = nn.functional.grouped_mm(weights.mT, x.t(), offs=offs)
    assert columns.shape == (4, 6) and tt.equal(columns[:, :2], weights[0].t() @ x[:2].t())
    assert tt._grouped_mm(weights, weights.mT, out_dtype=tt.float64).dtype is tt.float64
    with pytest.raises(ValueError, match="offs"):
        nn.functional.grouped_mm(x, weights)


def test_fsdp_by_pytorchs_names(tmp_path):
    import tt.distributed.checkpoint as checkpoint
    from tt.distributed.checkpoint.default_planner import DefaultLoadPlanner
    from tt.distributed.fsdp import FullStateDictConfig, StateDictType
    from tt.distributed.fsdp import FullyShardedDataParallel as FSDP
    from tt.distributed.fsdp.wrap import enable_wrap, wrap

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        with enable_wrap(wrapper_cls=FSDP):
            model = wrap(nn.Sequential(nn.Linear(3, 3), wrap(nn.Linear(3, 2))))
        assert type(wrap(nn.ReLU())) is nn.ReLU and len(FSDP.fsdp_modules(model)) == 2
        assert FSDP.fsdp_modules(nn.Sequential(model), root_only=True) == [model]
        adam = tt.optim.AdamW(model.parameters(), lr=0.1)
        model(tt.ones(2, 3)).sum().backward()
        adam.step()
        whole = FSDP.optim_state_dict(model, adam)
        names = ["0.weight", "0.bias", "1.weight", "1.bias"]
        assert sorted(whole["state"]) == sorted(names)
        assert whole["param_groups"][0]["params"] == names
        assert whole["state"]["1.weight"]["exp_avg"].shape == (2, 3)
        twin = tt.optim.AdamW(model.parameters(), lr=0.5)
        twin.load_state_dict(FSDP.optim_state_dict_to_load(model, twin, whole))
        for p in model.parameters():
            assert tt.equal(twin.state[p]["exp_avg"], adam.state[p]["exp_avg"])
        assert twin.param_groups[0]["lr"] == 0.1
        full = StateDictType.FULL_STATE_DICT
        with FSDP.state_dict_type(model, full, FullStateDictConfig(rank0_only=True)):
            state = model.state_dict()
            assert sorted(state) == sorted(names) and state["0.weight"].shape == (3, 3)
            model.load_state_dict({name: t * 0 for name, t in state.items()})
            assert model(tt.ones(1, 3)).tolist() == [[0, 0]]
            model.load_state_dict(state)
        assert "module.0.weight" in " ".join(model.state_dict())
        writer, reader = (
            made(tmp_path / "a")
            for made in (checkpoint.FileSystemWriter, checkpoint.FileSystemReader)
        )
        with FSDP.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
            checkpoint.save(model.state_dict(), storage_writer=writer)
            before = model(tt.ones(1, 3))
            with tt.no_grad():
                [p.zero_() for p in model.parameters()]
            checkpoint.load(model.state_dict(), storage_reader=reader)
        assert tt.equal(model(tt.ones(1, 3)), before)
        values = {"more": 1}
        checkpoint.load(values, reader.path, planner=DefaultLoadPlanner(allow_partial_load=True))
        assert values == {"more": 1}
        with pytest.raises(tt.errors.InvalidArgumentError, match="must be given"):
            checkpoint.load_state_dict(values, None)
    finally:
        dist.destroy_process_group()


def test_distributions_of_other_classes_expand():
    from tt import distributions as d

    class Diagonal(d.Independent):
        def __init__(self, loc):
            super().__init__(d.Normal(loc, 1.0), 1)

        def expand(self, batch_shape, _instance=None):
            return super().expand(batch_shape, self._get_checked_instance(Diagonal, _instance))

    wide = Diagonal(tt.zeros(3)).expand((4,))
    assert type(wide) is Diagonal and wide.batch_shape == (4,) and wide.event_shape == (3,)
    assert wide.sample().shape == (4, 3) and wide.log_prob(tt.zeros(3)).shape == (4,)

    class Inner(Diagonal):
        def __init__(self):
            super().__init__(tt.zeros(3))

    with pytest.raises(NotImplementedError, match="Inner.expand"):
        Inner().expand((2,))
    assert d.LogNormal(tt.zeros(2), 1.0).expand((3, 2)).sample().shape == (3, 2)


# ---- names that tensordict, torchrl and fvcore import ----


def test_dictionaries_of_tensors_by_identity():
    from tt.utils.weak import TensorWeakRef, WeakIdKeyDictionary, WeakTensorKeyDictionary

    a, b = tt.ones(2), tt.ones(2)
    held = WeakTensorKeyDictionary({a: 1})
    held[b] = 2
    assert (
        len(held) == 2 and held[a] == 1 and b in held and tt.ones(2) not in held and 3 not in held
    )
    assert (held | {a: 5})[a] == 5 and held[a] == 1 and isinstance(held, WeakIdKeyDictionary)
    one, other = TensorWeakRef(a), TensorWeakRef(b)
    assert one() is a and one == TensorWeakRef(a) and one != other and hash(one) != hash(other)
    del a
    assert list(held) == [b] and len(held) == 1 and one() is None
    del held[b]
    assert not held


def test_modules_as_functions_of_their_parameters():
    from tt._functorch import package as functorch

    models = [nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).eval() for _ in range(4)]
    x = tt.randn(5, 3)
    function, params, buffers = functorch.make_functional_with_buffers(models[0])
    assert tt.equal(function(params, buffers, x), models[0](x))
    assert function([2 * p for p in params], buffers, x)[0, 0] != models[0](x)[0, 0]
    with pytest.raises(RuntimeError, match="make_functional_with_buffers"):
        functorch.make_functional(models[0])
    plain, weights = functorch.make_functional(models[0][0], disable_autograd_tracking=True)
    assert tt.equal(plain(weights, x), models[0][0](x)) and not weights[0].requires_grad
    whole, params, buffers = functorch.combine_state_for_ensemble(models)
    each = functorch.vmap(whole, in_dims=(0, 0, None))(params, buffers, x)
    assert tt.allclose(each, tt.stack([m(x) for m in models]))


def test_questions_about_transforms():
    from tt._C import _functorch as inside
    from tt._functorch.vmap import _broadcast_to_and_flatten, tree_flatten

    seen = []

    def function(x):
        seen.append((inside.is_batchedtensor(x), inside.maybe_current_level() is not None))
        return x.sum()

    tt.vmap(function)(tt.ones(2, 3))
    assert seen[0] == (True, True) and not inside.is_batchedtensor(tt.ones(2))
    assert inside.maybe_current_level() is None and not inside.is_functorch_wrapped_tensor(1)
    with pytest.raises(NotImplementedError, match="_add_batch_dim: the dimensions of samples"):
        inside._add_batch_dim(tt.ones(2), 0, 1)
    form = tree_flatten((1, {"a": 2, "b": [3, 4]}))[1]
    assert _broadcast_to_and_flatten((0, {"a": None, "b": 1}), form) == [0, None, 1, 1]
    assert _broadcast_to_and_flatten(0, form) == [0] * 4
    assert (
        _broadcast_to_and_flatten((0,), form) is _broadcast_to_and_flatten((0, [1]), form) is None
    )


def test_swapped_attributes_of_modules():
    from tt.nn.utils._named_member_accessor import swap_tensor

    layer = nn.Linear(2, 2)
    first, other = layer.weight, tt.zeros(2, 2)
    assert swap_tensor(layer, "weight", other) is first and not layer(tt.ones(1, 2)).equal(first)
    assert swap_tensor(layer, "weight", first) is other and layer.weight is first
    with pytest.raises(AttributeError, match="Linear has no attribute scale"):
        swap_tensor(layer, "scale", other)
    missing = swap_tensor(layer, "scale", other, allow_missing=True)
    assert layer.scale is other and swap_tensor(layer, "scale", missing) is other
    assert not hasattr(layer, "scale")


def test_names_of_pytorchs_classes():
    from tt import _utils
    from tt.ao.quantization import FakeQuantize, FakeQuantizeBase, enable_fake_quant
    from tt.distributions import Normal
    from tt.distributions.kl import _KL_REGISTRY
    from tt.nn.modules.rnn import RNNCellBase
    from tt.utils import _pytree

    assert tt.DeviceObjType is tt.device and isinstance(nn.GRUCell(1, 1), RNNCellBase)
    assert (Normal, Normal) in _KL_REGISTRY and isinstance(nn.Parameter(), nn.Parameter)
    assert (
        _utils._get_available_device_type() == ("cuda" if tt.cuda.is_available() else None)
        and _utils._get_device_module("cpu") is tt.cpu
    )
    fake = FakeQuantize()
    fake.disable_fake_quant()
    fake.disable_observer()
    x = tt.tensor([0.1, 0.777])
    assert isinstance(fake, FakeQuantizeBase) and fake(x) is x and fake.scale == 1
    fake.apply(enable_fake_quant).enable_observer()
    assert not fake(x).equal(x) and fake.scale != 1
    assert _pytree.is_structseq_instance(os.stat(".")) and not _pytree.is_structseq_instance((1,))
    assert _pytree.is_namedtuple_instance(tt.ones(2).max(0)) and _pytree.tree_is_leaf(3)
    with pytest.raises(NotImplementedError, match="jit._get_trace_graph: tt has no TorchScript"):
        tt.jit._get_trace_graph(nn.ReLU(), tt.ones(2))


def test_placeholders_among_constants_of_traces():
    def scaled(x, double, by):
        return x * by * 2 if double else x * by

    traced = tt.fx.symbolic_trace(scaled, {"double": True, "by": tt.fx.PH})
    assert repr(tt.fx.PH) == "PH" and traced(tt.ones(1), True, 3.0).item() == 6
    with pytest.raises(NotImplementedError, match="PH inside by: must be the whole value"):
        tt.fx.symbolic_trace(scaled, {"double": True, "by": [tt.fx.PH]})


def test_aliases_and_containers_of_packages():
    x = tt.ones(4)
    assert tt._C._is_alias_of(x, x[2:]) and not tt._C._is_alias_of(x, x.clone())
    assert not tt._C._is_alias_of(tt.ones(0), tt.ones(0))

    class Collection(nn.ModuleDict):  # whose update needs what __init__ sets later
        def __init__(self, items):
            super().__init__()
            self.ready = True
            self.update(items)

        def update(self, items):
            assert self.ready
            super().update(items)

    assert list(Collection({"a": nn.ReLU()})) == ["a"]


# ---- what packages walk ----


def test_optimizers_have_one_class_of_a_name():
    """pykeen finds optimizers among the subclasses of Optimizer in public modules."""

    def below(cls):
        for kind in cls.__subclasses__():
            yield kind
            yield from below(kind)

    names = [
        kind.__name__ for kind in set(below(tt.optim.Optimizer)) if kind.__module__ == "tt.optim"
    ]
    assert len(names) == len(set(names)) and {"Adafactor", "LBFGS", "Adam"} <= set(names)


def test_classes_of_libraries():
    tt.classes.__path__ = []  # as streamlit's users write
    with pytest.raises(OSError, match="classes.load_library"):
        tt.classes.load_library("x.so")
    with pytest.raises(RuntimeError, match="classes.torchvision.Video"):
        tt.classes.torchvision.Video
    api = dist.rpc.api
    assert dist.rpc.is_available() and api.UNSET_RPC_TIMEOUT == -1
    assert not api._is_current_rpc_agent_set()
    with pytest.raises(RuntimeError, match="init_rpc"):
        api._require_initialized(lambda: 1)()


def test_errors_are_recorded_for_the_launcher(tmp_path, monkeypatch):
    from tt.distributed.elastic.multiprocessing.errors import record

    path = tmp_path / "error.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(path))

    @record
    def main(n):
        """doc"""
        return 6 // n

    assert main(2) == 3 and main.__doc__ == "doc" and not path.exists()
    with pytest.raises(ZeroDivisionError):
        main(0)
    message = json.loads(path.read_text())["message"]
    assert message["message"].startswith("ZeroDivisionError: ")
    assert "in main" in message["extraInfo"]["py_callstack"]
    seen = []
    handler = SimpleNamespace(record_exception=seen.append)
    with pytest.raises(ZeroDivisionError):
        record(main.__wrapped__, handler)(0)
    assert len(seen) == 1


@pytest.mark.skipif(tt.cuda.is_available(), reason="there is a CUDA device")
def test_lazy_calls_of_devices():
    """fairscale and megatron set generators by these."""
    seen = []
    tt.cuda._lazy_call(lambda: seen.append(1))
    assert not seen
    with pytest.raises(tt.errors.DeviceError):
        tt.cuda._lazy_init()


def test_reductions_by_pytorchs_numbers():
    from tt.nn import _reduction

    assert [_reduction.get_enum(name) for name in ("none", "mean", "sum")] == [0, 1, 2]
    with pytest.warns(UserWarning, match="reduction='sum'"):
        assert _reduction.legacy_get_enum(False, None) == 2
    with pytest.raises(ValueError, match="median"):
        _reduction.get_enum("median")


def test_groups_of_tensors_for_lists():
    from tt.utils._foreach_utils import _group_tensors_by_device_and_dtype

    a, b, c = tt.ones(1), tt.ones(2).double(), tt.ones(3)
    groups = _group_tensors_by_device_and_dtype([[a, b, c], [], [b, None, a]], with_indices=True)
    (singles, at), (doubles, _) = groups.values()
    assert [x is y for x, y in zip(singles[0], (a, c))] == [True, True] and at == [0, 2]
    assert singles[1] == [] and singles[2][1] is a and doubles[2] == [None]


def test_further_parts_that_packages_import():
    from tt._subclasses.fake_tensor import unset_fake_temporarily
    from tt._vmap_internals import _vmap
    from tt.distributions.multivariate_normal import _precision_to_scale_tril
    from tt.nn.init import _no_grad_fill_, _no_grad_uniform_, _no_grad_zero_

    x = tt.randn(3, 4)
    assert tt.equal(_vmap(lambda row: row.sum())(x), tt.stack([row.sum() for row in x]))
    with unset_fake_temporarily() as mode:
        assert mode is None
    p = x @ x.mT + tt.eye(3)
    tril = _precision_to_scale_tril(p)
    assert tt.allclose(tril @ tril.mT, p.inverse(), atol=1e-4) and tt.equal(tril, tril.tril())
    leaf = nn.Parameter(tt.zeros(2))
    assert _no_grad_fill_(leaf, 3.0).tolist() == [3, 3]
    assert _no_grad_zero_(leaf).tolist() == [0, 0] and 4 <= _no_grad_uniform_(leaf, 4, 5)[0] < 5
    assert tt.cuda._initialized is tt.cuda.is_initialized()


def test_subclasses_of_parameters_with_other_arguments():
    class Point(nn.Parameter):
        def __new__(cls, data, label="", requires_grad=True):
            made = tt.Tensor._make_subclass(cls, data, requires_grad)
            made.label = label
            return made

    data = tt.ones(2)
    point = Point(data, label="a")
    m = nn.Module()
    m.point = point
    assert type(m.point) is Point and m.point.label == "a" and point.requires_grad
    assert (
        point.is_leaf and point.data_ptr() == data.data_ptr() and list(m.state_dict()) == ["point"]
    )
    with pytest.raises(RuntimeError, match="str"):
        "name" in point


def test_optimizers_with_state_of_no_parameter():
    class Counting(tt.optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {})
            self.state["k"] = tt.tensor([0])
            self._patch_step_function()

        def step(self, closure=None):
            self.state["k"] += 1

    leaf = nn.Parameter(tt.ones(1))
    optimizer, other = Counting([leaf]), Counting([leaf])
    optimizer.step()
    state = optimizer.state_dict()
    assert state["state"]["k"].tolist() == [1]
    other.load_state_dict(state)
    optimizer.step()
    assert other.state["k"].tolist() == [1] and optimizer.state["k"].tolist() == [2]


def test_functions_of_functions():
    from tt._higher_order_ops import foreach_map, map, while_loop

    n, x = while_loop(lambda n, x: n < 3, lambda n, x: (n + 1, 2 * x), (0, tt.ones(2)))
    assert n == 3 and x.tolist() == [8, 8]
    rows = {"a": tt.arange(4).reshape(2, 2), "b": tt.ones(2)}
    found = map(lambda row, c: (row["a"] * row["b"] + c, row["b"]), rows, 1)
    assert found[0].tolist() == [[1, 2], [3, 4]] and found[1].tolist() == [1, 1]
    sums = foreach_map(tt.add, [tt.ones(1), tt.ones(2)], 2.0)
    assert [t.tolist() for t in sums] == [[3], [3, 3]]
    for wrong in (lambda: foreach_map(tt.add, [x], [x, x]), lambda: map(tt.neg, tt.ones(0, 2))):
        with pytest.raises(ValueError, match="must"):
            wrong()


def test_ranges_of_profilers():
    for ranges in (tt.autograd.profiler.emit_nvtx, tt.autograd.profiler.emit_itt):
        with ranges(enabled=False):
            assert tt.ones(1) + 1 == 2
        with pytest.raises(NotImplementedError, match=ranges.__name__):
            ranges()


def test_kinds_of_losses():
    from tt.nn.modules.loss import _Loss, _WeightedLoss

    class Own(_WeightedLoss):
        pass

    assert isinstance(nn.MSELoss(), _Loss) and not isinstance(nn.MSELoss(), _WeightedLoss)
    assert isinstance(nn.CrossEntropyLoss(), _WeightedLoss)
    assert isinstance(nn.CTCLoss(), _Loss) and isinstance(nn.TripletMarginLoss(), _Loss)
    assert issubclass(nn.TripletMarginWithDistanceLoss, _Loss) and isinstance(Own(), _Loss)
    assert not isinstance(nn.Linear(1, 1), _Loss) and not isinstance(nn.MSELoss(), Own)


def test_names_of_scripts_around_layers():
    from tt import functional
    from tt.nn.modules.utils import consume_prefix_in_state_dict_if_present

    assert tt.legacy_contiguous_format is tt.contiguous_format
    state = tt.nn.Sequential(tt.nn.Linear(2, 1)).state_dict(prefix="module.")
    consume_prefix_in_state_dict_if_present(state, "module.")
    assert list(state) == ["0.weight", "0.bias"]
    with tt.autograd.set_multithreading_enabled(False):
        assert functional.lu(tt.eye(2))[0].tolist() == [[1, 0], [0, 1]]
    assert functional.istft is tt.istft


def test_copies_of_views_are_row_major():
    x = tt.arange(24.0).reshape(2, 3, 4)
    assert tt.permute_copy(x, (2, 0, 1)).is_contiguous()
    assert tt.diagonal_copy(x).stride() == (2, 1)
    assert all(part.is_contiguous() for part in tt.unbind_copy(x, 2))


def test_primitives_of_layers():
    x, scale = tt.randn(2, 4, 3, 3), tt.rand(4)
    mean, var = tt.zeros(4), tt.ones(4)
    y, means, rstd = tt.native_batch_norm(x, scale, None, mean, var, True, 1.0, 1e-5)
    same = nn.functional.batch_norm(x, None, None, scale, None, True)
    assert tt.equal(y, same) and tt.allclose(mean, means) and rstd.shape == (4,)
    assert tt.native_batch_norm(x, None, None, mean, var, False, 0.1, 1e-5)[1].shape == (0,)
    y, means, rstd = tt.native_layer_norm(x, (3, 3), None, None, 0.0)
    tt.testing.assert_close((x - means) * rstd, y)
    assert tt.native_group_norm(x, None, None, 2, 4, 9, 2, 1e-5)[1].shape == (2, 2)
    kernel, no = tt.randn(4, 2, 2, 2), [0, 0]
    y = tt.convolution(x, kernel, None, [2, 2], [1, 1], [1, 1], False, no, 2)
    assert tt.equal(y, nn.functional.conv2d(x, kernel, None, 2, 1, groups=2))
    y = tt.convolution(x, tt.randn(4, 1, 2, 2), None, [2, 2], no, [1, 1], True, [1, 1], 2)
    assert y.shape == (2, 2, 7, 7)
    y, kept = tt.native_dropout(x, 0.5, True)
    assert tt.equal(y, x * 2 * kept) and tt.native_dropout(x, 0.5, False)[1].all()
    table, rows = tt.arange(10.0).reshape(5, 2), tt.tensor([0, 2, 1, 4, 3])
    y, bags, sizes, _ = tt.embedding_bag(table, rows, tt.tensor([0, 2, 2]), mode=1, padding_idx=2)
    assert (y[:2].tolist(), y[2].mul(3).tolist()) == ([[0, 1], [0, 0]], [16, 19])
    assert bags.tolist() == [0, 0, 2, 2, 2] and sizes.tolist() == [1, 0, 3]


def test_statistics_have_the_dtype_of_the_parameters():
    x, scale = tt.randn(2, 4, 3).bfloat16(), tt.ones(4)

    def dtypes(results):
        return {r.dtype for r in results[1:]}

    half, single = {tt.bfloat16}, {tt.float32}
    assert dtypes(tt.native_layer_norm(x, (3,), None, None, 1e-5)) == half
    assert dtypes(tt.native_layer_norm(x, (3,), tt.ones(3), None, 1e-5)) == single
    assert dtypes(tt.native_group_norm(x, None, None, 2, 4, 3, 2, 1e-5)) == half
    assert dtypes(tt.native_group_norm(x, scale, scale, 2, 4, 3, 2, 1e-5)) == single
    assert dtypes(tt.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)) == half
    running = tt.zeros(4), tt.ones(4)
    for training in (True, False):
        found = tt.native_batch_norm(x, None, None, *running, training, 0.1, 1e-5)
        assert dtypes(found) == single


def test_the_factor_of_native_dropout_is_exact():
    y, _ = tt.native_dropout(tt.ones(100, dtype=tt.float64), 0.1, True)
    assert y.max().item() == 1 / 0.9


def test_lists_of_bags():
    table = tt.arange(10.0).reshape(5, 2)
    for wide in (tt.int32, tt.int64):
        rows = tt.tensor([0, 2, 1, 4, 3], dtype=tt.int32)
        starts = tt.tensor([0, 2, 2], dtype=wide)
        y, bags, sizes, last = tt.embedding_bag(table, rows, starts, mode=1, padding_idx=-1)
        assert y.tolist() == [[2, 3], [0, 0], [4, 5]]
        assert bags.tolist() == [0, 0, 2, 2, 2] and sizes.tolist() == [2, 0, 2]
        assert {bags.dtype, sizes.dtype, last.dtype} == {wide}


@pytest.mark.parametrize(
    "mode, padding, grad, expected",
    [
        (0, None, False, ([], [0, 0, 0], [0, 0, 0])),
        (0, 2, False, ([0, 0, 1, 1, 1], [0, 0, 0], [0, 0, 0])),
        (0, 2, True, ([0, 0, 1, 1, 1], [0, 0], [0, 0])),
        (1, None, True, ([0, 0, 1, 1, 1], [2, 3], [2, 3])),
        (2, 2, True, ([0, 0, 1, 1, 1], [1, 3], [[0, 0], [4, 1]])),
    ],
)
def test_what_lists_of_bags_say_of_them(mode, padding, grad, expected):
    table = tt.tensor([[0.0, 5], [1, 4], [2, 3], [3, 2], [4, 1]], requires_grad=grad)
    rows, starts = tt.tensor([0, 2, 1, 4, 3]), tt.tensor([0, 2, 5])
    found = tt.embedding_bag(
        table, rows, starts, mode=mode, include_last_offset=True, padding_idx=padding
    )
    assert tuple(x.tolist() for x in found[1:]) == expected


def test_changes_of_autocast_are_bounded():
    from tt.amp.autocast_mode import changes

    was = tt.is_autocast_cache_enabled()
    with tt.autocast("cpu", enabled=False):
        for k in range(10):
            tt.set_autocast_enabled("cuda", k % 2 == 0)
            tt.set_autocast_dtype("cpu", tt.float16)
            tt.set_autocast_dtype("cuda", tt.bfloat16)
            tt.set_autocast_cache_enabled(k % 2 == 1)
            assert tt.is_autocast_enabled("cuda") == (k % 2 == 0)
            assert tt.is_autocast_cache_enabled() == (k % 2 == 1)
        assert tt.get_autocast_dtype("cpu") == tt.float16
        assert tt.get_autocast_dtype("cuda") == tt.bfloat16
        assert sorted(changes.levels[-1]) == ["cpu", "cuda"]
    assert tt.get_autocast_dtype("cpu") == tt.bfloat16
    assert tt.is_autocast_cache_enabled() == was


def test_autocast_is_set_without_a_block():
    a = tt.ones(2, 2)
    try:
        tt.set_autocast_enabled("cpu", True)
        assert tt.is_autocast_enabled("cpu") and (a @ a).dtype == tt.bfloat16
        with tt.autocast("cpu", enabled=False):
            for on in (True, False, True):
                tt.set_autocast_enabled("cpu", on)
            tt.set_autocast_dtype("cpu", tt.float16)
            tt.set_autocast_enabled(True)  # of CUDA
            assert (a @ a).dtype == tt.float16 and tt.is_autocast_enabled()
        assert (a @ a).dtype == tt.bfloat16 and not tt.is_autocast_enabled()
    finally:
        tt.set_autocast_enabled("cpu", False)
    assert (a @ a).dtype == tt.float32
    assert tt.autocast_increment_nesting() == 1 and tt.autocast_decrement_nesting() == 0


def test_streams_of_the_cpu():
    stream = tt.cpu.Stream()
    with tt.cpu.stream(stream):
        assert tt.cpu.current_stream() is stream
    assert tt.cpu.current_stream() is not stream and tt.cpu.Event().query()
