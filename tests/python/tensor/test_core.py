"""The hand-written core of the Python binding: handles, errors, host memory, indexing, hooks,
threads."""
import copy
import ctypes
import gc
import math
import os
import pickle
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import tt
from tt import _lib


class Stats(ctypes.Structure):
    _fields_ = [
        (n, ctypes.c_int64)
        for n in (
            "in_use",
            "reserved",
            "peak",
            "limit",
            "live_tensors",
            "live_nodes",
            "live_handles",
        )
    ]


def live():
    """Tensors alive in the runtime."""
    gc.collect()
    stats = Stats()
    assert _lib.lib.tt_memory(_lib.local.ctx, None, ctypes.byref(stats)) == 0
    return stats.live_tensors


# ---- lifetimes ----


def test_a_dead_wrapper_releases_its_tensor():
    before = live()
    xs = [tt.ones(3) + i for i in range(10)]
    assert live() == before + 10
    del xs
    assert live() == before


def test_a_view_keeps_its_storage_alive():
    x = tt.arange(6.0)
    v = x[2:]
    del x
    gc.collect()
    assert v.tolist() == [2, 3, 4, 5]


def test_failed_calls_leak_nothing():
    x = tt.ones(2, 3)
    before = live()
    for _ in range(50):
        with pytest.raises(ValueError):
            x + tt.ones(4, 5)
        with pytest.raises(IndexError):
            x[7]
    assert live() == before


def test_graphs_are_released():
    before = live()
    x = tt.ones(4, requires_grad=True)
    y = x
    for _ in range(100):
        y = y * 2
    y.sum().backward()
    del x, y
    assert live() == before


def test_the_class_is_a_constructor():
    x = tt.arange(3.0)
    assert (
        tt.Tensor([1, 2]).tolist() == [1, 2]
        and tt.Tensor([1, 2]).dtype is tt.float32
        and tt.Tensor(2, 3).shape == (2, 3)
    )
    assert tt.Tensor().shape == (0,) and tt.Tensor(x).data_ptr() == x.data_ptr()
    with pytest.raises(TypeError):
        tt.Tensor("text")


def test_a_tensor_is_no_buffer_of_its_pointer():
    for x in (tt.ones(3), tt.nn.Parameter(tt.ones(3)), type("Sub", (tt.Tensor,), {})(tt.ones(3))):
        with pytest.raises(TypeError):
            memoryview(x)
        assert (
            np.asarray(x.detach()).tolist() == [1, 1, 1]
            and bytes(np.ones(3, "f4")) == x.detach().numpy().tobytes()
        )


def test_exit_with_everything_alive():
    code = """
import numpy as np, tt
x, y = tt.from_numpy(np.ones(5)), tt.frombuffer(bytearray(8), dtype=tt.int32)
w = tt.ones(3, requires_grad=True)
z = w * 2
z.register_hook(lambda g: g * 2)
generator, node, array = tt.Generator(3), z.grad_fn, x.numpy()
class C: pass
c = C()
c.self, c.x = c, x
"""
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")


def test_weak_references_and_hash():
    x = tt.ones(2)
    ref = weakref.ref(x)
    assert ref() is x and {x: 1}[x] == 1
    del x
    gc.collect()
    assert ref() is None


# ---- from and to Python ----


@pytest.mark.parametrize(
    "data, dtype, shape",
    [
        (True, tt.bool, ()),
        (3, tt.int64, ()),
        (2.5, tt.float32, ()),
        (1j, tt.complex64, ()),
        ([], tt.float32, (0,)),
        ([[], []], tt.float32, (2, 0)),
        ([1, 2], tt.int64, (2,)),
        ([1, 2.0], tt.float32, (2,)),
        ([True, False], tt.bool, (2,)),
        ([True, 2], tt.int64, (2,)),
        ([[1.0], [2.0]], tt.float32, (2, 1)),
        ([1, 2j], tt.complex64, (2,)),
    ],
)
def test_tensor_from_values(data, dtype, shape):
    x = tt.tensor(data)
    assert (x.dtype, tuple(x.shape)) == (dtype, shape)
    assert x.tolist() == data


@pytest.mark.parametrize(
    "name",
    [
        "bool",
        "uint8",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    ],
)
def test_every_dtype_there_and_back(name):
    dtype = getattr(tt, name)
    x = tt.tensor([[0, 1], [1, 0], [1, 1]], dtype=dtype)
    assert x.dtype is dtype and str(dtype).endswith(name) and x.element_size() == dtype.itemsize
    assert x.tolist() == [[0, 1], [1, 0], [1, 1]] and x.t().tolist() == [[0, 1, 1], [1, 0, 1]]
    assert x[1, 0].item() == 1


def test_tensor_with_dtype_and_gradient():
    x = tt.tensor([0.1, 0.2], dtype=tt.float64, requires_grad=True)
    assert x.tolist() == [0.1, 0.2] and x.requires_grad and x.is_leaf
    assert tt.tensor([1, 2], dtype=tt.float16).dtype is tt.float16
    assert tt.tensor(x).requires_grad is False


@pytest.mark.parametrize(
    "data, error",
    [
        ([[1], [1, 2]], ValueError),
        ("text", TypeError),
        ([None], TypeError),
        ([[1], 2], ValueError),
        ([2**70], ValueError),
    ],
)
def test_tensor_from_bad_values(data, error):
    with pytest.raises(error):
        tt.tensor(data)


def test_python_protocols():
    x = tt.tensor([[1, 2], [3, 4]])
    assert len(x) == 2 and [row.tolist() for row in x] == [[1, 2], [3, 4]] and 3 in x and 7 not in x
    assert (
        int(tt.tensor(3)) == 3
        and float(tt.tensor(2.5)) == 2.5
        and complex(tt.tensor(1j)) == 1j
        and bool(tt.tensor(0.0)) is False
    )
    assert [10, 20, 30][tt.tensor(1)] == 20 and f"{tt.tensor(2.5):.2f}" == "2.50"
    for bad in (lambda: bool(x), lambda: float(x)):
        with pytest.raises((RuntimeError, ValueError)):
            bad()
    for bad in (lambda: len(tt.tensor(1)), lambda: iter(tt.tensor(1)), lambda: [1][tt.tensor(0.5)]):
        with pytest.raises(TypeError):
            bad()


def test_pickle_and_copy():
    x = tt.tensor([[1.5, 2], [3, 4]], dtype=tt.bfloat16, requires_grad=True)
    for y in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert (
            y.dtype is tt.bfloat16
            and y.requires_grad
            and y.tolist() == x.tolist()
            and y.data_ptr() != x.data_ptr()
        )
    assert pickle.loads(pickle.dumps(tt.float32)) is tt.float32


def test_printing():
    assert repr(tt.tensor([1.0, 2.5])) == "tensor([1.0000, 2.5000])"
    assert "3" in str(tt.tensor(3)) and repr(tt.ones(2, 2).shape) == "tt.Size([2, 2])"


# ---- host memory ----


def test_numpy_shares_memory_both_ways():
    a = np.arange(6, dtype="f4").reshape(2, 3)
    x = tt.from_numpy(a)
    assert x.data_ptr() == a.ctypes.data and x.shape == (2, 3)
    a[0, 0] = 9
    assert x[0, 0].item() == 9
    b = x.numpy()
    x.add_(1)
    assert b[0, 0] == 10 and a[0, 0] == 10 and np.may_share_memory(a, b)
    assert tt.from_numpy(a.T).stride() == (1, 3) and np.asarray(x).ctypes.data == a.ctypes.data


def test_memory_lives_as_long_as_needed():
    a = np.ones(1000)
    ref = weakref.ref(a)
    x = tt.from_numpy(a)
    v = x[10:]
    del a, x
    gc.collect()
    assert ref() is not None
    del v
    gc.collect()
    assert ref() is None
    b = (tt.ones(1000) * 3).numpy()
    gc.collect()
    assert b.sum() == 3000


def test_read_only_memory_is_refused_in_place():
    a = np.ones(3)
    a.flags.writeable = False
    x = tt.from_numpy(a)
    assert (
        (x + 1).tolist() == [2, 2, 2]
        and not x.numpy().flags.writeable
        and not x[1:].numpy().flags.writeable
        and (x + 1).numpy().flags.writeable
    )
    with pytest.raises(RuntimeError):
        x.add_(1)
    y = tt.frombuffer(bytes(8), dtype=tt.int32)
    assert y.tolist() == [0, 0]
    with pytest.raises(RuntimeError):
        y.fill_(1)
    assert a.tolist() == [1, 1, 1]


def test_frombuffer():
    data = bytearray(16)
    x = tt.frombuffer(data, dtype=tt.int32, offset=4, count=2)
    x.fill_(-1)
    assert data == bytes(4) + b"\xff" * 8 + bytes(4)
    for bad in (
        dict(dtype=tt.int64, offset=3),
        dict(dtype=tt.int32, count=5),
        dict(dtype=tt.int32, offset=17),
    ):
        with pytest.raises(ValueError):
            tt.frombuffer(data, **bad)
    with pytest.raises(TypeError):
        tt.frombuffer(data, dtype="int32")


def test_numpy_that_cannot_be_shared():
    for bad in (np.ones(4)[::-1], np.ones(3, "f4,f4")["f0"]):
        with pytest.raises((ValueError, TypeError)):
            tt.from_numpy(bad[::-1] if bad.dtype == "f4" else bad)
    with pytest.raises(TypeError):
        tt.from_numpy(np.array(["a"]))
    with pytest.raises(RuntimeError, match="detach"):
        tt.ones(2, requires_grad=True).numpy()
    with pytest.raises(TypeError):
        tt.ones(2, dtype=tt.bfloat16).numpy()
    assert (
        tt.as_tensor(np.float32(2)).item() == 2
        and tt.tensor(np.ones(4)[::-1].copy()).dtype is tt.float64
    )


# ---- errors ----


def test_errors_have_pythons_classes():
    x = tt.ones(2, 3)
    for error, call in (
        (ValueError, lambda: x + tt.ones(4)),
        (IndexError, lambda: x.sum(5)),
        (IndexError, lambda: x.select(0, 2)),
        (NotImplementedError, lambda: tt.arange(3).mean()),
        (TypeError, lambda: tt.add("a", x)),
        (TypeError, lambda: x.sum("a")),
        (TypeError, lambda: tt.max(x, "a")),
        (TypeError, lambda: tt.zeros(2, dtype="f4")),
        (TypeError, lambda: tt.exp()),
        (RuntimeError, lambda: tt.ones(3).view(2)),
    ):
        with pytest.raises(error):
            call()
    with pytest.raises(tt.TtError) as caught:
        x + tt.ones(4)
    e = caught.value
    assert (
        isinstance(e, RuntimeError)
        and isinstance(e, ValueError)
        and e.code == 2
        and str(e.code) == "SHAPE"
        and e.op == "add"
        and "[2,3]" in str(e)
    )


def test_errors_name_the_argument():
    i, f, u = tt.arange(3), tt.ones(3), tt.zeros(3, dtype=tt.uint8)
    for call, text in (
        (
            lambda: tt.add(i, i, alpha=1.5),
            "add: alpha is 1.5: must be an integer for int64 operands",
        ),
        (lambda: f.sub_(f, alpha=1j), "sub_: alpha is complex: must be real for float32 operands"),
        (
            lambda: tt.add(f, f, alpha=True),
            "add: alpha is true: a bool is allowed for bool operands only, these are float32",
        ),
        (
            lambda: f.__setitem__(0, 1j),
            "value is 0.0 and has an imaginary part: float32 cannot represent this value",
        ),
        (lambda: u.__setitem__(0, 300), "value is 300.0: uint8 cannot represent this value"),
        (lambda: u.clamp(min=300), "clamp: min is 300: uint8 has no values that large"),
        (lambda: f.pow(tt.ones(4)), "pow: self is [3], exponent is [4]"),
    ):
        with pytest.raises(RuntimeError) as caught:
            call()
        assert text in str(caught.value)


def test_integers_out_of_range():
    with pytest.raises(ValueError):
        tt.ones(2) + 2**70
    with pytest.raises((ValueError, IndexError)):
        tt.ones(2).select(0, 2**70)


def test_a_failed_import_names_the_searched_paths(tmp_path):
    env = dict(
        os.environ, TT_LIBRARY=str(tmp_path / "libtt.so"), PYTHONPATH=os.pathsep.join(sys.path)
    )
    run = subprocess.run(
        [sys.executable, "-c", "import tt"], env=env, capture_output=True, text=True
    )
    assert run.returncode and "TT_LIBRARY" in run.stderr and "not there" in run.stderr


def test_import_needs_no_numpy():
    code = "import sys; sys.modules['numpy'] = None; import tt; print((tt.ones(2) + tt.tensor([1, 2])).tolist(), 'torch' in sys.modules)"
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert run.stdout.strip() == "[2.0, 3.0] False", run.stderr


def test_import_loads_no_more_than_it_needs():
    code = (
        "import sys, tt; print([m for m in sys.modules if m.startswith('tt.') and m.count('.') > 1 "
        "or m in ('tt.nn', 'tt.optim', 'inspect', 'numpy')])"
    )
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    run = subprocess.run(
        [sys.executable, "-S", "-c", code], env=env, capture_output=True, text=True
    )
    assert run.stdout.strip() == "['tt._ops.methods']", run.stdout + run.stderr


def test_every_public_name_resolves():
    for name in tt.__all__:
        assert getattr(tt, name) is not None or name == "newaxis"
    for name in tt.nn.functional.__all__:
        assert callable(getattr(tt.nn.functional, name))
    for name in dir(tt.Tensor):
        getattr(tt.Tensor, name, None)
    assert set(tt.__all__) <= set(dir(tt)) and not hasattr(tt, "no_such_name")
    with pytest.raises(ImportError):
        from tt import no_such_name  # noqa: F401


# ---- operators ----


def test_numbers_on_either_side():
    x = tt.tensor([1.0, 2.0])
    assert (
        (2 - x).tolist() == [1, 0]
        and (x - 2).tolist() == [-1, 0]
        and (2 / x).tolist() == [2, 1]
        and (2**x).tolist() == [2, 4]
    )
    assert (
        (x**2).tolist() == [1, 4]
        and (x // 2).tolist() == [0, 1]
        and (-x).tolist() == [-1, -2]
        and (3 + x).tolist() == [4, 5]
    )
    assert (1 + tt.tensor([1, 2])).dtype is tt.int64 and (
        1.0 + tt.tensor([1, 2])
    ).dtype is tt.float32
    assert (True + tt.tensor([1, 2], dtype=tt.int8)).dtype is tt.int8 and (
        1j * x
    ).dtype is tt.complex64
    assert (0.1 / tt.tensor([1.0], dtype=tt.float64)).item() == 0.1 and (
        np.float32(2) * x
    ).tolist() == [2, 4]
    assert tt.where(x > 1, 0.1, x.double()).tolist() == [1, 0.1]
    with pytest.raises(TypeError):
        x + "a"
    assert (x == "a") is False and (x != None) is True  # noqa: E711


def test_in_place_operators_keep_the_object():
    x = y = tt.ones(3)
    x += 2
    x *= tt.tensor([1.0, 2, 3])
    x -= 1
    x /= 2
    assert x is y and x.tolist() == [1, 2.5, 4]


def test_shape_in_place():
    x = tt.arange(6.0).reshape(2, 3)
    base = x
    p = x.data_ptr()
    assert x.t_() is base and x.shape == (3, 2) and x.data_ptr() == p
    assert (
        x.unsqueeze_(0).shape == (1, 3, 2)
        and x.squeeze_().shape == (3, 2)
        and x.transpose_(0, 1).shape == (2, 3)
    )
    w = tt.ones(2, 3, requires_grad=True)
    with pytest.raises(RuntimeError):
        w.t_()


def test_forms_of_one_name():
    x = tt.tensor([[1.0, 5.0], [4.0, 2.0]])
    assert (
        tt.max(x).item() == 5
        and tt.max(x, 1).indices.tolist() == [1, 0]
        and tt.max(x, dim=0, keepdim=True).values.tolist() == [[4, 5]]
    )
    assert (
        tt.max(x, tt.tensor(3.0)).tolist() == [[3, 5], [4, 3]]
        and tt.max(x, other=x).tolist() == x.tolist()
    )
    assert (
        x.sum().item() == 12
        and x.sum(0).tolist() == [5, 7]
        and x.sum((0, 1)).item() == 12
        and x.sum(dim=None, keepdim=True).tolist() == [[12]]
    )
    assert x.sum(-1, True).shape == (2, 1) and x.sum(0, dtype=tt.float64).dtype is tt.float64
    assert tt.pow(2, x).tolist() == [[2, 32], [16, 4]] and x.view(4).shape == x.view(
        -1
    ).shape == x.view((4,)).shape == (4,)
    assert [p.tolist() for p in tt.split(x, 1)] == [[[1, 5]], [[4, 2]]] and len(
        x.split([1, 1], dim=1)
    ) == 2
    assert x.permute(1, 0).tolist() == x.permute((1, 0)).tolist() == x.T.tolist() and tt.arange(
        3
    ).tolist() == [0, 1, 2]
    assert tt.zeros(2, 3).shape == tt.zeros((2, 3)).shape == tt.zeros(size=(2, 3)).shape == (2, 3)
    values, indices = x.max(dim=1)
    assert values.tolist() == [5, 4]


def test_unbiased_and_correction():
    x = tt.tensor([[1.0, 2.0, 4.0], [0.0, 3.0, 9.0]])
    for f in (tt.var, tt.std, lambda *a, **k: tt.var_mean(*a, **k).var):
        assert (
            f(x, False).item()
            == f(x, unbiased=False).item()
            == f(x, correction=0).item()
            != f(x).item()
            == f(x, True).item()
        )
        assert f(x, 1, False).tolist() == f(x, 1, correction=0).tolist() and f(
            x, (0, 1), True, True
        ).shape == (1, 1)
    assert tt.std(x, 1, correction=None).tolist() == x.std(1, True).tolist()
    with pytest.raises(TypeError):
        tt.var(x, 1, "no")


def test_numbers_as_tensors():
    assert (
        tt.linspace(tt.tensor(0), tt.tensor(1.0), 3).tolist()
        == [0, 0.5, 1]
        == tt.zeros(3).add(tt.tensor([0.0, 1.0, 2.0]), alpha=tt.tensor(0.5)).tolist()
    )
    with pytest.raises(tt.errors.ShapeError, match="0-dim"):
        tt.linspace(tt.zeros(1), 1, 3)


def test_out():
    x, out = tt.ones(3), tt.zeros(3)
    assert tt.add(x, x, out=out) is out and out.tolist() == [2, 2, 2]
    assert tt.zeros(3, out=out) is out and out.tolist() == [0, 0, 0]
    with pytest.raises(RuntimeError):
        tt.add(x, x, out=tt.zeros(3, dtype=tt.int64))
    with pytest.raises(TypeError):
        tt.add(x, x, out=[1])


def test_conversions():
    x = tt.arange(16.0).reshape(1, 2, 2, 4)
    assert (
        x.to(tt.float64).dtype is tt.float64
        and x.to("cpu") is not None
        and x.double().float().tolist() == x.tolist()
    )
    assert (
        x.to(x.int()).dtype is tt.int32
        and x.to("cpu", tt.float16).dtype is tt.float16
        and x.to(dtype=tt.int64).dtype is tt.int64
    )
    y = x.to(memory_format=tt.channels_last)
    assert (
        y.is_contiguous(memory_format=tt.channels_last)
        and y.tolist() == x.tolist()
        and y.stride() == (16, 1, 8, 2)
    )
    assert (
        y.contiguous().is_contiguous()
        and x.clone(memory_format=tt.channels_last).stride() == y.stride()
    )
    assert (
        x.to(tt.float32).data_ptr() == x.data_ptr()
        and x.to(tt.float32, copy=True).data_ptr() != x.data_ptr()
    )
    assert tt.zeros(2).new_ones(3, dtype=tt.int32).tolist() == [1, 1, 1] and x.new_full(
        (2,), 7
    ).tolist() == [7, 7]


def test_devices():
    m = tt.empty(2, 3, device="meta")
    assert (
        str(m.device) == "meta"
        and (m + m).shape == (2, 3)
        and tt.ones(1).device == tt.device("cpu")
    )
    assert (
        tt.device("cuda", 1) == tt.device("cuda:1") != tt.device("cuda")
        and repr(tt.device("cuda:1")) == "device(type='cuda', index=1)"
    )
    for bad in ("nowhere", "cuda:x", "cpu:", ""):
        with pytest.raises(RuntimeError):
            tt.zeros(2, device=bad)
    with pytest.raises(RuntimeError):
        m.numpy()


# ---- indexing ----

KEYS = [
    1,
    -1,
    slice(1, None),
    slice(None, None, 2),
    None,
    ...,
    (0, 1),
    (slice(None), 2),
    (..., 0),
    (None, 1, ..., None),
    [0, 2],
    ([[0, 1], [2, 0]],),
    (slice(None), [0, 3]),
    ([0, 1], [1, 2]),
    (0, [1, 2]),
    ([0, 2], slice(1, 3), 0),
    True,
    False,
    (slice(5, 1),),
    (slice(-2, None), slice(None, -1)),
    range(2),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_get_as_numpy(key):
    a = np.arange(60).reshape(3, 4, 5)
    x = tt.from_numpy(a)
    want = a[list(key) if isinstance(key, range) else key]
    assert x[key].tolist() == want.tolist() and x[key].shape == want.shape


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_set_as_numpy(key):
    a = np.arange(60).reshape(3, 4, 5)
    x = tt.tensor(a)
    k = list(key) if isinstance(key, range) else key
    x[key] = -1
    a[k] = -1
    assert x.tolist() == a.tolist()
    x[key] = x[key] * 2 + 1
    a[k] = a[k] * 2 + 1
    assert x.tolist() == a.tolist()


def test_masks_and_index_tensors():
    a = np.arange(12).reshape(3, 4)
    x = tt.tensor(a)
    assert (
        x[x > 5].tolist() == a[a > 5].tolist()
        and x[tt.tensor([True, False, True])].tolist() == a[[0, 2]].tolist()
    )
    assert (
        x[tt.tensor([2, 0])].tolist() == a[[2, 0]].tolist()
        and x[tt.tensor(1)].tolist() == a[1].tolist()
    )
    assert x[np.array([0, 1])].tolist() == a[:2].tolist() and x[np.int64(2), 1].item() == 9
    x[x > 5] = 0
    assert x.sum().item() == 15
    x[1] = tt.tensor([9.7, 9.2, 9, 9])
    assert x[1].tolist() == [9, 9, 9, 9]


def test_views_share_and_bad_keys_fail():
    x = tt.zeros(3, 4)
    x[1][2] = 5
    v = x[:, 2]
    assert v.tolist() == [0, 5, 0] and x[tt.tensor(1)].data_ptr() == x[1].data_ptr()
    for error, key in (
        (IndexError, 3),
        (IndexError, (0, 4)),
        (IndexError, (0, 0, 0)),
        (IndexError, 1.5),
        (IndexError, "a"),
        (ValueError, slice(None, None, -1)),
        (ValueError, slice(None, None, 0)),
        (IndexError, [0, 7]),
        (TypeError, slice("a", None)),
        (IndexError, (..., ...)),
        (IndexError, tt.tensor([True, False])),
        (IndexError, 2**70),
    ):
        with pytest.raises(error):
            x[key]


# ---- gradients ----


def test_accumulate_grad():
    x, w = tt.ones(2, requires_grad=True), tt.ones(2)
    y = x * 2 + w
    (product, _), (nothing, _) = y.grad_fn.next_functions
    ((node, _),) = product.next_functions[:1]
    assert nothing is None and node.name() == "torch::autograd::AccumulateGrad"
    assert type(node).__name__ == "AccumulateGrad" and node.next_functions == ()
    assert node == (x * 3).grad_fn.next_functions[0][0] and node != product
    assert node.variable is x
    seen = []
    hooks = [
        node.register_prehook(lambda grads: (grads[0] * 10,)),
        node.register_hook(lambda *grads: seen.append(grads)),
    ]
    for factor in (2, 3):
        (x * factor).sum().backward()
    assert x.grad.tolist() == [50, 50]
    assert [grads[1][0].tolist() for grads in seen] == [[20, 20], [30, 30]] and seen[0][0] == ()
    for hook in hooks:
        hook.remove()
    (x * 4).sum().backward()
    assert x.grad.tolist() == [54, 54] and len(seen) == 2


def test_leaves_of_graphs_are_the_objects_of_the_application():
    layer, late = tt.nn.Linear(2, 2), tt.ones(1, 2)
    late.requires_grad = True
    ends = [edge[0] for edge in layer(late).grad_fn.next_functions]
    assert [end.variable for end in ends] == [late, layer.weight, layer.bias]
    y = tt.ones(2, requires_grad=True) * 2  # no object is left
    (end, _), (number, _) = y.grad_fn.next_functions
    assert number is None
    again = y.grad_fn.next_functions[0][0]
    assert again == end and again.variable is end.variable
    wide = tt.ones(3, requires_grad=True)
    wide.data = tt.ones(4)
    assert (wide * 2).grad_fn.next_functions[0][0].variable is wide


def test_edges_stand_for_tensors():
    x = tt.ones(2, requires_grad=True)
    y = x * 2
    z = y.exp().sum()
    get_gradient_edge = tt.autograd.graph.get_gradient_edge
    edges = [get_gradient_edge(t) for t in (x, y, z)]
    assert edges[1][:2] == (y.grad_fn, 0) and edges[0].node == y.grad_fn.next_functions[0][0]
    found = tt.autograd.grad(edges[2], edges[:2], retain_graph=True)
    for g, e in zip(found, tt.autograd.grad(z, [x, y], retain_graph=True)):
        assert g.equal(e)
    tt.autograd.backward(edges[2], inputs=edges[0])
    assert x.grad.equal(found[0]) and y.grad is None
    with pytest.raises(RuntimeError):
        get_gradient_edge(tt.ones(2))
    with pytest.raises(TypeError):
        tt.autograd.grad(z, tt.autograd.graph.GradientEdge(y.grad_fn, 0))


def test_view_as_complex_takes_even_places_only():
    x = tt.arange(9.0)
    assert tt.view_as_complex(x[2:6].view(2, 2)).tolist() == [2 + 3j, 4 + 5j]
    assert tt.view_as_complex(x.as_strided((1, 2), (3, 1))).tolist() == [1j]
    for odd in (x[1:5].view(2, 2), x.as_strided((2, 2), (3, 1)), x.as_strided((2, 2), (4, 2))):
        with pytest.raises(RuntimeError, match="view_as_complex: self"):
            tt.view_as_complex(odd)


def test_backward_and_grad():
    x = tt.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = (x * x).sum()
    assert (
        y.grad_fn.name() == "SumBackward0"
        and y.grad_fn.next_functions[0][0].name() == "MulBackward0"
        and x.grad_fn is None
        and x.is_leaf
        and not y.is_leaf
    )
    y.backward()
    assert x.grad.tolist() == [2, 4, 6] and x.grad is x.grad
    y = (x**3).sum()
    (g,) = tt.autograd.grad(y, x, create_graph=True)
    (gg,) = tt.autograd.grad(g.sum(), [x])
    assert g.tolist() == [3, 12, 27] and gg.tolist() == [6, 12, 18]
    assert x.grad.tolist() == [2, 4, 6]
    x.grad = None
    assert x.grad is None
    with pytest.raises(RuntimeError):
        y.backward()
        y.backward()
    assert (
        tt.autograd.grad((x * 2).sum(), [x, tt.ones(1, requires_grad=True)], allow_unused=True)[1]
        is None
    )
    z = x * 3
    z.retain_grad()
    z.backward(tt.tensor([1.0, 0, 1]))
    assert z.grad.tolist() == [1, 0, 1]
    with pytest.raises(TypeError):
        tt.autograd.grad(1, x)
    with pytest.raises(ValueError, match="equally long"):
        tt.autograd.backward([z, z], [None])
    x.data = tt.zeros(2)
    assert x.requires_grad and x.shape == (2,) and not x.data.requires_grad
    for wrong in ("data", "grad"):
        with pytest.raises(TypeError, match="must be Tensor"):
            setattr(x, wrong, 5)


def test_grad_modes():
    assert tt.autograd.grad_mode.no_grad is tt.no_grad
    assert tt.autograd.anomaly_mode.detect_anomaly is tt.autograd.detect_anomaly
    x = tt.ones(2, requires_grad=True)
    with tt.no_grad():
        assert not (x * 2).requires_grad and not tt.is_grad_enabled()
        with tt.enable_grad():
            assert (x * 2).requires_grad
    assert tt.is_grad_enabled()

    @tt.no_grad()
    def f():
        return x * 2

    @tt.no_grad
    def g():
        return x * 2

    twice = tt.no_grad()
    with twice:
        with twice:
            assert not (x * 2).requires_grad
        assert not (x * 2).requires_grad
    with tt.inference_mode(False), tt.autograd.detect_anomaly():
        assert (x * 2).requires_grad and tt.autograd.is_anomaly_enabled()
    assert (
        not tt.autograd.is_anomaly_enabled()
        and not tt.inference_mode(lambda: x * 2)().requires_grad
    )
    assert not f().requires_grad and not g().requires_grad and tt.is_grad_enabled()
    tt.set_grad_enabled(False)
    assert not (x * 2).requires_grad
    tt.set_grad_enabled(True)
    with tt.set_grad_enabled(False):
        assert not tt.is_grad_enabled()
    assert tt.is_grad_enabled()
    with pytest.raises(ZeroDivisionError):
        with tt.no_grad():
            1 / 0
    assert tt.is_grad_enabled()


def test_hooks():
    x = tt.ones(2, requires_grad=True)
    y = x * 2
    seen = []
    handle = y.register_hook(lambda g: seen.append(g.tolist()))
    y.register_hook(lambda g: g * 10)
    x.register_post_accumulate_grad_hook(
        lambda leaf: seen.append(leaf is not None and leaf.grad.tolist())
    )
    y.sum().backward(retain_graph=True)
    assert seen == [[1, 1], [20, 20]] and x.grad.tolist() == [20, 20]
    handle.remove()
    handle.remove()
    y.sum().backward()
    assert len(seen) == 3
    pre = []
    z = x * 3
    z.grad_fn.register_prehook(lambda gs: pre.append(len(gs)))
    z.sum().backward()
    assert pre == [1]


def test_exceptions_of_hooks_are_passed_on():
    class Mine(Exception):
        pass

    def bad(g):
        raise Mine("from the hook")

    x = tt.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(bad)
    with pytest.raises(Mine, match="from the hook"):
        y.sum().backward()
    z = x * 2
    z.register_hook(lambda g: 5)
    with pytest.raises(TypeError):
        z.sum().backward()
    with pytest.raises(ValueError):  # the next error is its own
        x + tt.ones(7)


def test_hooks_are_dropped_with_their_graph():
    class Owner:
        def __call__(self, g):
            return None

    owner = Owner()
    ref = weakref.ref(owner)
    x = tt.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(owner)
    del owner
    gc.collect()
    assert ref() is not None
    del y, x
    gc.collect()
    assert ref() is None


def test_hooks_may_call_operators_and_nested_backward():
    x = tt.tensor([3.0], requires_grad=True)
    inner = []

    def hook(g):
        w = tt.tensor([2.0], requires_grad=True)
        with tt.enable_grad():
            (w * w).backward()
        inner.append(w.grad.item())
        with pytest.raises(ValueError):
            tt.ones(2) + tt.ones(3)
        return g + w.grad

    y = x * 5
    y.register_hook(hook)
    y.backward()
    assert inner == [4.0] and x.grad.item() == 25


# ---- random numbers ----


def test_seeds_and_generators():
    tt.manual_seed(7)
    a = tt.rand(5)
    assert (
        tt.manual_seed(7).initial_seed() == 7
        and tt.rand(5).tolist() == a.tolist()
        and tt.rand(5).tolist() != a.tolist()
    )
    g = tt.Generator(7)
    assert tt.rand(5, generator=g).tolist() == a.tolist()
    state = g.get_state()
    b = tt.randn(4, generator=g)
    g.set_state(state)
    assert tt.randn(4, generator=g).tolist() == b.tolist() and g.manual_seed(7) is g
    assert tt.rand(5, generator=g).tolist() == a.tolist()
    with pytest.raises(TypeError):
        tt.rand(5, generator=3)
    with pytest.raises(TypeError):
        tt.Generator(1.5)
    with pytest.raises(tt.errors.DeviceError):
        tt.Generator("a")


# ---- threads ----


def test_each_thread_has_a_ctx():
    found, errors = {}, []

    def work(i):
        try:
            with tt.no_grad():
                x = tt.ones(50, requires_grad=True)
                assert not (x * 2).requires_grad
            x = tt.full((50,), float(i), requires_grad=True)
            for _ in range(50):
                y = (x * x).sum()
                (g,) = tt.autograd.grad(y, x)
            with pytest.raises(ValueError):
                x + tt.ones(3)
            found[i] = g[0].item()
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors and found == {i: 2.0 * i for i in range(8)} and tt.is_grad_enabled()


def test_tensors_cross_threads():
    box = []
    t = threading.Thread(target=lambda: box.append(tt.ones(100) * 3))
    t.start()
    t.join()
    before = live()
    assert box[0].sum().item() == 300
    box.clear()
    assert live() == before - 1


def test_cycles_are_collected():
    before = live()

    class Holder:
        pass

    h = Holder()
    h.me, h.x = h, tt.ones(10)
    del h
    assert live() == before


def test_limits_of_dtypes():
    f = tt.finfo(tt.float32)
    assert (f.bits, f.eps, f.max, f.min, f.tiny, f.resolution) == (
        32,
        2**-23,
        3.4028234663852886e38,
        -3.4028234663852886e38,
        2**-126,
        1e-6,
    )
    assert (
        tt.finfo(tt.float64).max == sys.float_info.max
        and tt.finfo(tt.float16).max == 65504
        and tt.finfo().dtype == "float32"
    )
    assert (
        repr(tt.finfo(tt.bfloat16))
        == "finfo(resolution=0.01, min=-3.38953e+38, max=3.38953e+38, eps=0.0078125, smallest_normal=1.17549e-38, tiny=1.17549e-38, dtype=bfloat16)"
    )
    assert (tt.iinfo(tt.uint8).min, tt.iinfo(tt.uint8).max, tt.iinfo(tt.int64).min) == (
        0,
        255,
        -(2**63),
    ) and repr(tt.iinfo(tt.int8)) == "iinfo(min=-128, max=127, dtype=int8)"
    for wrong in (lambda: tt.finfo(tt.int32), lambda: tt.iinfo(tt.float32)):
        with pytest.raises(TypeError):
            wrong()


def test_what_dtypes_combine_to():
    i, x = tt.arange(3), tt.ones(3)
    assert (
        tt.result_type(i, 1.5) is tt.float32
        and tt.result_type(i, x[0].double()) is tt.float64
        and tt.result_type(x, 2j) is tt.complex64
        and tt.result_type(1, 2) is tt.int64
    )
    assert (
        tt.promote_types(tt.int8, tt.uint8) is tt.int16
        and tt.promote_types(tt.float16, tt.bfloat16) is tt.float32
    )
    assert (
        tt.can_cast(tt.int64, tt.float16)
        and not tt.can_cast(tt.float32, tt.int64)
        and tt.can_cast(tt.int8, tt.uint8)
        and not tt.can_cast(tt.int8, tt.bool)
    )
    assert (
        tt.is_floating_point(x)
        and not tt.is_complex(x)
        and x[:, tt.newaxis].shape == (3, 1)
        and tt.pi == math.pi
        and -tt.inf < 0 != tt.nan
    )


def test_transpose_by_numpys_names():
    x = tt.arange(6).reshape(2, 3)
    assert (
        tt.swapaxes(x, 0, 1).tolist() == x.swapdims(0, -1).tolist() == x.t().tolist()
        and x.swapaxes_(0, 1).shape == (3, 2) == x.shape
    )


def test_numpys_float64_beside_other_numbers():
    wide = np.float64(1)
    assert tt.tensor([wide, 2]).dtype == tt.tensor([[1.5, 2], [True, wide]]).dtype == tt.float64
    assert tt.tensor([wide, 1j]).dtype == tt.complex128
    assert (
        tt.tensor([np.float32(1), 2.0]).dtype == tt.tensor([np.int64(1), 2.0]).dtype == tt.float32
    )


def test_factors_by_position():
    """PyTorch's deprecated forms, which optimizers of old scripts call."""
    x, y = tt.tensor([1.0, 2.0]), tt.tensor([4.0, 8.0])
    with pytest.warns(UserWarning, match="add_ is deprecated: give alpha by keyword"):
        assert x.clone().add_(-0.5, y).tolist() == [-1, -2]
    m, identity = tt.ones(2, 2), tt.eye(2)
    with pytest.warns(UserWarning):
        assert tt.add(x, 2, y).tolist() == x.add(2, y).tolist() == [9, 18]
        assert tt.sub(x, 2, y, out=tt.empty(2)).tolist() == x.sub_(2, y).tolist() == [-7, -14]
        assert x.clone().addcdiv_(-1, y, y).tolist() == [-8, -15]
        assert tt.addcmul(x, 0.5, y, y).tolist() == [1, 18]
        assert tt.addmm(3, m, 2, m, identity).tolist() == [[5, 5], [5, 5]]
        assert m.addmm(3, 2, m, identity).tolist() == m.addmm_(3, 2, m, identity).tolist()
        assert m.addmm(0, identity, identity).tolist() == identity.tolist()
    with pytest.raises(TypeError, match="takes 2 tensors and, by keyword, alpha"):
        x.add(1, 2, y)
    with pytest.raises(TypeError, match="multiple values for argument 'alpha'"):
        x.add(1, y, alpha=2)


def test_copy_takes_a_number():
    assert tt.zeros(2).copy_(2.5).tolist() == [2.5, 2.5]
    assert tt.zeros(2, dtype=tt.int32).copy_(np.float32(2.5)).tolist() == [2, 2]


def test_hooks_of_nodes_see_what_prehooks_leave():
    x, seen = tt.ones(2, requires_grad=True), []
    y = x * 2
    node = y.grad_fn
    node.register_prehook(lambda grads: (grads[0] + 1,))
    node.register_hook(lambda inputs, outputs: seen.append((inputs[0][0], outputs[0][0])))
    node.register_hook(lambda inputs, outputs: seen.append(outputs[0][0]))
    node.register_prehook(lambda grads: (grads[0] * 3,))
    y.sum().backward()
    assert seen == [(12, 6), 6] and x.grad.tolist() == [12, 12]
    address = node._address
    assert address in tt.autograd.graph.watching
    del y, node
    assert address not in tt.autograd.graph.watching
