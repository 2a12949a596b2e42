"""Habits and idioms of PyTorch's users, and corner cases. Expected values are PyTorch
2.15's."""
import copy
import pickle

import pytest

import tt

X = tt.arange(12).reshape(3, 4)


# ---- modes ----


def test_a_mode_holds_in_the_body_of_a_generator_alone():
    seen = []

    @tt.no_grad()
    def body():
        """doc"""
        seen.append(tt.is_grad_enabled())
        got = yield 1
        seen.append((got, tt.is_grad_enabled()))
        try:
            yield 2
        except KeyError as e:
            seen.append((type(e), tt.is_grad_enabled()))
        try:
            yield 3
        finally:
            seen.append(tt.is_grad_enabled())

    running = body()
    assert body.__name__ == "body" and body.__doc__ == "doc"
    assert next(running) == 1 and tt.is_grad_enabled()
    assert running.send("sent") == 2 and tt.is_grad_enabled()
    assert running.throw(KeyError()) == 3 and tt.is_grad_enabled()
    running.close()
    assert seen == [False, ("sent", False), (KeyError, False), False] and tt.is_grad_enabled()


@pytest.mark.parametrize(
    "outer, inner", [(tt.no_grad, True), (tt.inference_mode, True), (tt.enable_grad, False)]
)
def test_modes_of_generators_and_their_values(outer, inner):
    @outer()
    @tt.set_grad_enabled(inner)
    def body(n):
        for _ in range(n):
            yield tt.is_grad_enabled()
        return "end"

    def whole():
        result = yield from body(2)
        yield result

    assert list(whole()) == [inner, inner, "end"] and tt.is_grad_enabled()

    @outer()
    def fails():
        yield 1
        raise LookupError("own")

    with pytest.raises(LookupError, match="own"):
        list(fails())
    assert tt.is_grad_enabled()


def test_generators_of_two_modes_in_turn():
    @tt.no_grad
    def off():
        while True:
            yield tt.is_grad_enabled()

    @tt.enable_grad
    def on():
        while True:
            yield tt.is_grad_enabled()

    pairs = zip(off(), on())
    with tt.no_grad():
        assert [next(pairs) for _ in range(3)] == [(False, True)] * 3 and not tt.is_grad_enabled()
    assert next(pairs) == (False, True) and tt.is_grad_enabled()


def test_set_grad_enabled_as_a_decorator_leaves_the_mode():
    @tt.set_grad_enabled(False)
    def f():
        return tt.is_grad_enabled()

    assert tt.is_grad_enabled() and not f() and tt.is_grad_enabled()


# ---- keys and numbers ----


@pytest.mark.parametrize(
    "key, found",
    [
        ([[0, 2], [1, 1]], [1, 9]),
        ([[0, 2]], [[0, 1, 2, 3], [8, 9, 10, 11]]),
        ([slice(0, 2), 1], [1, 5]),
        ([0, slice(None)], [0, 1, 2, 3]),
        ([None, 0], [[0, 1, 2, 3]]),
        ([..., 0], [0, 4, 8]),
        ([[True, False, True], 1], [1, 9]),
        ([tt.tensor([0, 2]), tt.tensor([1, 1])], [1, 9]),
        ([tt.tensor([0, 2]), 1], [1, 9]),
        ([tt.tensor(0), tt.tensor(1)], 1),
        ([(0, 2), (1, 1)], [1, 9]),
        ([range(2), range(2)], [0, 5]),
        ([0, [1, 2]], [1, 2]),
        ([X > 5], [6, 7, 8, 9, 10, 11]),
        ([[[0, 1]]], [[[0, 1, 2, 3], [4, 5, 6, 7]]]),
    ],
    ids=str,
)
def test_a_list_with_more_than_numbers_is_a_tuple(key, found):
    with pytest.warns(UserWarning, match="tuple"):
        assert X[key].tolist() == found
    y, z = X.clone(), X.clone()
    with pytest.warns(UserWarning):
        y[key] = -1
    z[tuple(key)] = -1
    assert y.tolist() == z.tolist() != X.tolist()


@pytest.mark.filterwarnings("error")
def test_lists_that_are_one_index():
    assert X[[0, 2]].tolist() == X[(0, 2),].tolist() == [[0, 1, 2, 3], [8, 9, 10, 11]] and X[
        []
    ].shape == (0, 4)
    assert X[[True, False, True]].shape == (2, 4) and X[[[0, 1], [0, 1]],].shape == (2, 2, 4)
    assert X[[tt.tensor(0)] * 40].shape == (40, 4)


@pytest.mark.parametrize(
    "dtype, x, refused",
    [
        ("int8", 300, True),
        ("int8", 128, True),
        ("int8", -129, True),
        ("int8", 127, False),
        ("uint8", 256, True),
        ("uint8", -1, False),
        ("int32", 2**40, True),
        ("int64", 2**40, False),
        ("float32", 1e300, True),
        ("float64", 1e300, False),
        ("float16", 1e6, False),
        ("bfloat16", 1e300, False),
        ("complex64", 1e300, True),
        ("complex64", 1e300j, True),
        ("complex128", 1e300j, False),
        ("int64", 1e300, True),
        ("int8", 300.5, False),
        ("bool", 300, False),
        ("float32", float("inf"), False),
    ],
)
def test_where_refuses_numbers_that_do_not_fit(dtype, x, refused):
    condition, t = tt.tensor([True, False]), tt.ones(2, dtype=getattr(tt, dtype))
    for call in (
        lambda: tt.where(condition, t, x),
        lambda: tt.where(~condition, x, t),
        lambda: t.where(condition, x),
        lambda: tt.where(condition, t[0], x),
    ):
        if refused:
            with pytest.raises(RuntimeError):
                call()
        else:
            assert call()[1].item() in (x, 255, float("inf"))


def test_numbers_beside_tensors_without_dimensions():
    half, byte = tt.tensor(1.0, dtype=tt.float16), tt.tensor(2, dtype=tt.int8)
    assert (
        tt.mul(300, byte).tolist() == 88
        and tt.mul(300, byte).dtype is tt.int8
        and tt.sub(1e6, half).item() == float("inf")
    )
    assert (
        tt.mul(300, byte).tolist() == (300 * byte).tolist()
        and tt.sub(0.1, tt.tensor(0.0, dtype=tt.float64)).item() == 0.1
    )


def test_one_argument_and_words():
    x = tt.tensor([[0, 3], [4, 0]])
    assert (
        [i.tolist() for i in tt.where(x)]
        == [i.tolist() for i in x.nonzero(as_tuple=True)]
        == [[0, 1], [1, 0]]
    )
    assert [i.tolist() for i in tt.nonzero(tt.tensor(5), as_tuple=True)] == [[0]] and tt.nonzero(
        x
    ).tolist() == [[0, 1], [1, 0]]
    y = x.float()
    assert (
        tt.norm(y).item() == tt.norm(y, None).item() == y.norm("fro").item() == 5
        and y.norm(1, 1).tolist() == [3, 4]
        and y.norm("nuc").item() == pytest.approx(7)
    )
    assert y.norm("nuc", dtype=tt.float64).dtype is tt.float64
    with pytest.raises(TypeError):
        y.norm("max")


def test_sizes_are_tuples():
    x = tt.arange(6.0).reshape(2, 3)
    assert (
        x.as_strided(x.shape, x.stride()).tolist() == x.tolist()
        and x.sum(tt.Size([0, 1])).item() == 15
    )
    assert x.size(-1) == 3 and x.stride(0) == 3 and x.stride(-1) == 1
    for bad in (
        lambda: x.size(2),
        lambda: x.stride(-3),
        lambda: tt.tensor(1).size(0),
        lambda: tt.tensor(1).stride(0),
    ):
        with pytest.raises(IndexError):
            bad()


# ---- random numbers ----


def test_fork_rng():
    tt.manual_seed(1)
    want = tt.rand(3).tolist()
    tt.manual_seed(1)
    with tt.random.fork_rng():
        tt.manual_seed(99)
        tt.rand(5)
    assert tt.rand(3).tolist() == want
    tt.manual_seed(1)
    with pytest.raises(KeyError), tt.random.fork_rng(devices=[]):
        tt.rand(1)
        raise KeyError
    assert tt.rand(3).tolist() == want
    tt.manual_seed(1)
    with tt.random.fork_rng(enabled=False):
        tt.rand(4)
    assert tt.rand(3).tolist() != want


# ---- copies ----


@pytest.mark.parametrize(
    "order", [lambda a: [a, a[:2]], lambda a: [a[:2], a], lambda a: [a[2:], a.t(), a[:, 1], a]]
)
def test_deep_copies_share_what_their_originals_share(order):
    a = tt.arange(12.0).reshape(4, 3)
    given = order(a)
    made = copy.deepcopy(given)
    assert [t.tolist() for t in made] == [t.tolist() for t in given] and [
        t.stride() for t in made
    ] == [t.stride() for t in given]
    assert (
        len({t._storage_data() for t in made}) == 1 and made[0]._storage_data() != a._storage_data()
    )
    made[-1].fill_(7)
    assert all((t == 7).any() for t in made) and not (a == 7).all()


def test_deep_copies_of_leaves():
    w = tt.ones(2, 3, requires_grad=True)
    w.grad = tt.full((2, 3), 2.0)
    other = copy.deepcopy(w)
    assert (
        other.is_leaf
        and other.requires_grad
        and not other._is_view()
        and other.grad.tolist() == w.grad.tolist()
    )
    (other * 3).sum().backward()
    with tt.no_grad():
        other.add_(1)
    assert w.tolist() == [[1] * 3] * 2 and other.grad[0, 0].item() == 5 and w.grad[0, 0].item() == 2
    for empty in (tt.empty(0, 3), tt.empty(2, 2, device="meta")):
        assert (
            copy.deepcopy(empty).shape == empty.shape
            and copy.deepcopy(empty).device == empty.device
        )


# ---- the same numbers ----

NAN = float("nan")


def test_equal():
    x = tt.tensor([1.0, 2.0])
    assert (
        tt.equal(x, tt.tensor([1, 2])) is True
        and x.equal(x + 1) is False
        and not tt.equal(x, x[:, None])
        and tt.equal(tt.ones(0), tt.ones(0))
    )
    assert (
        not tt.equal(tt.tensor([NAN]), tt.tensor([NAN]))
        and tt.equal(tt.tensor([1j]), tt.tensor([1j]))
        and tt.equal(tt.tensor(True), tt.tensor(1))
    )
    with pytest.raises(TypeError):
        tt.equal(x, 1.0)


@pytest.mark.parametrize(
    "a, b, options, close",
    [
        ([1.0, 2.0], [1.0, 2.0 + 1e-6], {}, True),
        ([1.0], [1.001], {}, False),
        ([1.0], [1.001], {"rtol": 1e-2}, True),
        ([1.0], [1.001], {"atol": 1e-2}, True),
        ([float("inf")], [float("inf")], {}, True),
        ([float("inf")], [1.0], {"atol": 1e9}, False),
        ([NAN], [NAN], {}, False),
        ([NAN, 1.0], [NAN, 1.0], {"equal_nan": True}, True),
        ([10**9], [10**9 + 1], {}, True),
        ([10**9], [10**9 + 1], {"rtol": 0, "atol": 0}, False),
        ([1j], [1j + 1e-9], {}, True),
        ([True], [True], {}, True),
        ([[1.0], [1.0]], [1.0, 1.0], {}, True),
    ],
)
def test_allclose(a, b, options, close):
    x, y = tt.tensor(a), tt.tensor(b)
    assert tt.allclose(x, y, **options) is close and x.allclose(y, **options) is close


def test_what_allclose_refuses():
    x = tt.ones(2)
    for bad in (
        lambda: tt.allclose(x, x.double()),
        lambda: tt.allclose(x, x, rtol=-1),
        lambda: x.allclose(tt.ones(3)),
    ):
        with pytest.raises(RuntimeError):
            bad()
    with pytest.raises(TypeError):
        tt.allclose(x, 1.0)


def test_a_device_is_no_tuple():
    d = tt.device("cuda:1")
    assert (
        "%s" % d == f"{d}" == "cuda:1"
        and not isinstance(d, tuple)
        and d == tt.device("cuda", 1) != tt.device("cpu")
        and d != "cuda:1"
    )
    assert (
        {d: 1}[tt.device("cuda:1")] == 1
        and pickle.loads(pickle.dumps(d)) == copy.deepcopy(d) == d
        and tt.device(d) is d
    )


# ---- mistakes of new users: the message names the function, the argument and the rule ----


def cut(path):
    tt.save(tt.nn.Linear(2, 2).state_dict(), path)
    path.write_bytes(path.read_bytes()[:-50])
    return tt.load(path)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda path: tt.tensor([[1, 2], [3]]), ValueError, "tensor.*different lengths"),
        (lambda path: tt.ones(2, 3) + tt.ones(4), ValueError, r"self is \[2,3\], other is \[4\]"),
        (lambda path: tt.ones(2)["a"], IndexError, "index must be an int.*not str"),
        (lambda path: tt.nn.Linear(3, 2)(tt.ones(2, 4)), ValueError, "Linear: input is"),
        (lambda path: tt.nn.Dropout(2), ValueError, r"p is 2.*\[0, 1\]"),
        (lambda path: tt.nn.AlphaDropout(-0.1), ValueError, r"p is -0.1.*\[0, 1\]"),
        (lambda path: tt.nn.Sequential(3), TypeError, "int is not a Module"),
        (lambda path: tt.nn.Parameter([1.0]), TypeError, "data must be a Tensor, not list"),
        (lambda path: tt.nn.BatchNorm2d(3)(tt.ones(2, 3)), ValueError, "takes 4 dimensions"),
        (lambda path: tt.ones(2).backward(), RuntimeError, "^backward: .*not require a gradient"),
        (lambda path: tt.load(5), TypeError, "load: f must be a path or a file object, not int"),
        (lambda path: tt.save(path, tt.ones(2)), TypeError, "save: f must be a path.*not Tensor"),
        (lambda path: tt.save({1}, path / "no" / "a.pt"), OSError, "save: .*a.pt: No such file"),
        (lambda path: tt.load(path / "no.pt"), FileNotFoundError, "No such file.*no.pt"),
        (lambda path: tt.load(path), OSError, "Is a directory"),
        (lambda path: tt.ones(2).__delitem__(0), TypeError, "does not support deleting items"),
        (lambda path: tt.autograd.graph.Node(3), TypeError, "Node"),
        (lambda path: cut(path / "cut.pt"), ValueError, "cut.pt.*not end like a zip archive"),
        (lambda path: tt.files.npy_load(path / "no.npy"), OSError, "no.npy.*cannot be opened"),
        (lambda path: tt.utils.data.TensorDataset([1]), TypeError, "takes tensors, not list"),
        (lambda path: tt.utils.data.DataLoader([1], batch_size="4"), ValueError, "is '4': must be"),
        (lambda path: next(iter(tt.utils.data.DataLoader([object()]))), TypeError, "not object"),
    ],
)  # fmt: skip
def test_mistakes_of_new_users(tmp_path, call, error, message):
    with pytest.raises(error, match=message):
        call(tmp_path)


def test_a_text_is_no_checkpoint(tmp_path):
    path = tmp_path / "notes.pt"
    path.write_text("hello world " * 10)
    with pytest.raises(tt.errors.FormatError, match="notes.pt is neither a file of save nor"):
        tt.load(path)


# ---- what a new user asks modules, gradients and groups ----


def test_modules_say_what_they_are():
    attention = tt.nn.MultiheadAttention(6, 2)
    assert attention.head_dim == 3
    assert repr(tt.nn.AdaptiveAvgPool2d((None, 7))) == "AdaptiveAvgPool2d(output_size=(None, 7))"
    assert repr(tt.nn.AdaptiveMaxPool1d(3)) == "AdaptiveMaxPool1d(output_size=3)"
    keys = tt.nn.Linear(2, 2).load_state_dict({"weight": tt.ones(2, 2)}, strict=False)
    assert repr(keys) == "_IncompatibleKeys(missing_keys=['bias'], unexpected_keys=[])"
    from tt.nn.parameter import UninitializedParameter

    assert UninitializedParameter is tt.nn.UninitializedParameter


def test_retains_grad():
    x = tt.ones(2, requires_grad=True)
    y = x * 2
    x.retain_grad()
    assert not x.retains_grad and not y.retains_grad
    y.retain_grad()
    assert y.retains_grad and not y[0].retains_grad and not y.detach_().retains_grad


@pytest.fixture
def group_of_one():
    tt.distributed.init_process_group("gloo", rank=0, world_size=1)
    yield tt.distributed
    tt.distributed.destroy_process_group()


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda dist, x: dist.all_reduce(3), TypeError, "all_reduce.*takes Tensors, not int"),
        (lambda dist, x: dist.all_reduce([x]), TypeError, "all_reduce.*takes Tensors, not list"),
        (lambda dist, x: dist.isend("x", 0), TypeError, "send.*takes Tensors, not str"),
        (lambda dist, x: dist.all_reduce(x, "sum"), TypeError, "'op' must be ReduceOp, not str"),
        (lambda dist, x: dist.barrier("all"), TypeError, "'group' must be ProcessGroup, not str"),
        (lambda dist, x: dist.broadcast(x, 3), ValueError, "src is 3: must be a rank"),
        (lambda dist, x: dist.all_gather(x, x), TypeError, "'tensor_list' must be list, not"),
        (lambda dist, x: dist.all_gather([], x), ValueError, "tensor_list has 0 items"),
        (lambda dist, x: dist.all_gather([tt.ones(3)], x), ValueError, r"list\[0\] is \[3\]"),
        (lambda dist, x: dist.gather(x, [tt.ones(3)]), ValueError, r"gather_list\[0\] is \[3\]"),
        (lambda dist, x: dist.init_process_group(), ValueError, "exists already"),
    ],
)  # fmt: skip
def test_mistakes_in_groups(group_of_one, call, error, message):
    with pytest.raises(error, match=message):
        call(group_of_one, tt.ones(2))


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"backend": "gloop"}, "backend is 'gloop'"),
        ({"init_method": "http://a"}, "init_method is 'http://a'"),
        ({"rank": 1}, "rank is 1, world_size 1"),
    ],
)
def test_groups_that_cannot_be(arguments, message):
    with pytest.raises(ValueError, match=message):
        tt.distributed.init_process_group(**{"rank": 0, "world_size": 1, **arguments})
    assert not tt.distributed.is_initialized()


def test_the_world_by_both_names(group_of_one):
    dist = group_of_one
    world = dist.group.WORLD
    assert dist.GroupMember.WORLD is world and world.size() == 1
    dist.destroy_process_group(dist.new_group([0]))
    assert dist.group.WORLD is world
    part = dist.new_group([0])
    dist.destroy_process_group(part)
    with pytest.raises(ValueError, match="barrier: the group has been destroyed"):
        dist.barrier(part)


def test_calls_that_pytorch_refuses():
    x = tt.ones(2)
    for layer, arg in ((tt.nn.Linear(2, 2), "input"), (tt.nn.ReLU(), "input")):
        with pytest.raises(TypeError, match=f"argument '{arg}' must be Tensor, not NoneType"):
            layer(None)
    with pytest.raises(TypeError, match="argument 'target' must be Tensor, not NoneType"):
        tt.nn.MSELoss()(x, None)
    with pytest.raises(tt.TtError, match="device: index is -5: must not be negative"):
        tt.device("cpu", -5)
    with pytest.raises(ValueError, match="clamp: min and max are both none"):
        x.clamp()
