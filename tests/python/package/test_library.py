"""Operators by C's names and operators of Python: kinds of arguments, gradients, errors,
lifetimes."""
import gc
import weakref

import pytest

import tt
from tt import library


def test_the_manifest_names_every_operator():
    found = {op["name"]: op for op in library.operators()}
    assert len(found) > 300 and found["matmul"]["schema"].startswith(
        "matmul(self: Tensor, other: Tensor)"
    )


def test_built_in_operators_by_name():
    add = library.find("add")
    assert (
        add.name == "add"
        and add.schema == "add(self: Tensor, other: Tensor, alpha: Scalar = 1) -> Tensor"
        and repr(add) == f"<{add.schema}>"
    )
    x = tt.tensor([1.0, 2.0])
    for alpha in (2, 2.0):
        assert add(x, x, alpha).tolist() == [3.0, 6.0]
    assert add(x, x, None).tolist() == add(x, x).tolist() == [2.0, 4.0]
    assert library.find("mul_scalar")(x, 2j).tolist() == [2j, 4j]
    assert library.find("cat")([x, x], 0).shape == (4,)
    assert library.find("einsum")("i,i->", (x, x)).item() == 5
    assert library.find("reshape")(x, (2, 1)).shape == (2, 1)
    assert library.find("to")(x, tt.float64, tt.device("meta")).device.type == "meta"
    assert (
        library.find("rand")((3,), None, None, tt.Generator(7)).tolist()
        == tt.rand(3, generator=tt.Generator(7)).tolist()
    )
    values, indices = library.find("max_dim")(x, 0)
    assert values.item() == 2 and indices.item() == 1
    assert len(library.find("unbind")(tt.zeros(20, 1), 0)) == 20


def test_a_custom_operator():
    seen = []

    @library.custom_op(
        "scaled(x: Tensor, k: Float, name: Str, dims: Dims, more: Tensor?[], on: Bool = true) -> (a: Tensor, b: Tensor)",
        backward=lambda grads, args, results: [grads[0] * args[1], None, None],
    )
    def scaled(x, *rest):
        assert not (x * 2).requires_grad
        seen.append(rest)
        return x * rest[0], x + 1

    x = tt.ones(2, requires_grad=True)
    a, b = scaled(x, 3, "nämlich", [0, 1], [None, x])
    k, name, dims, more, on = seen[0]
    assert (
        (k, name, dims, on) == (3.0, "nämlich", [0, 1], True)
        and more[0] is None
        and more[1].tolist() == [1, 1]
    )
    assert b.tolist() == [2, 2] and a.grad_fn.name().startswith("Scaled")
    a.sum().backward()
    assert x.grad.tolist() == [3, 3]
    assert library.find("scaled").schema == scaled.schema


def test_without_a_backward_there_is_no_gradient():
    plain = library.custom_op("plain(x: Tensor) -> Tensor", lambda x: x * 2)
    assert not plain(tt.ones(1, requires_grad=True)).requires_grad


def test_what_is_wrong():
    with pytest.raises(NotImplementedError, match='no operator "nope"'):
        library.find("nope")
    with pytest.raises(ValueError, match="self is an integer"):
        library.find("add")(1, 2)
    with pytest.raises(TypeError, match="object"):
        library.find("add")(object())
    with pytest.raises(ValueError, match='schema "bad"'):
        library.custom_op("bad", lambda: 0)
    broken = library.custom_op("broken(x: Tensor) -> Tensor", lambda x: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        broken(tt.ones(1))
    several = library.custom_op("several(x: Tensor) -> Tensor", lambda x: (x, x))
    with pytest.raises(ValueError, match="must return 1 tensors, not 2"):
        several(tt.ones(1))
    other = library.custom_op("other(x: Tensor) -> Tensor", lambda x: 5)
    with pytest.raises(TypeError, match="must return a Tensor or None, not int"):
        other(tt.ones(1))


def test_a_refused_function_is_dropped():
    class Compute:
        def __call__(self):
            pass

    compute = Compute()
    gone = weakref.ref(compute)
    with pytest.raises(ValueError):
        library.custom_op("bad", compute)
    del compute
    gc.collect()
    assert gone() is None


def test_operators_as_pytorch_defines_them():
    @tt.library.custom_op("mine::scaled_sin", mutates_args=())
    def scaled_sin(x: tt.Tensor, factor: float = 2.0, name: str = "a") -> tt.Tensor:
        return (x * factor).sin()

    @scaled_sin.register_fake
    def _(x, factor=2.0, name="a"):
        return tt.empty_like(x)

    x = tt.tensor([0.5, 1.0], requires_grad=True)
    assert tt.allclose(scaled_sin(x, name="b"), (x * 2).sin()) and "mine::" in repr(scaled_sin)
    with pytest.raises(RuntimeError, match="mine::scaled_sin: register_autograd"):
        scaled_sin(x).sum().backward()

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.factor = inputs[1]

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * ctx.factor * (x * ctx.factor).cos(), None, None

    tt.library.register_autograd("mine::scaled_sin", backward, setup_context=setup_context)
    assert tt.autograd.gradcheck(
        lambda x: scaled_sin(x, factor=3.0), x.double().detach().requires_grad_()
    )
    scaled_sin.register_kernel("cpu")(lambda x, factor, name: x * 0)
    assert scaled_sin(x).sum() == 0
    with pytest.raises(TypeError):
        scaled_sin(x, wrong=3)
    with pytest.raises(RuntimeError, match="there is no operator 'mine::none'"):
        tt.library.register_kernel("mine::none", "cpu", scaled_sin)


def test_operators_by_namespace():
    x = tt.tensor([[1.0, 2.0], [3.0, 4.0]])
    for mm in (tt.ops.aten.mm, tt.ops.aten.mm.default):
        assert tt.equal(mm(x, x), x @ x)
    assert tt.ops.aten.relu.default is tt.ops.aten.relu.default
    assert tt.ops.aten.view(x, 4).shape == (4,)
    with pytest.raises(NotImplementedError, match="_to_copy"):
        tt.ops.aten._to_copy.default(x)
    assert not hasattr(tt.ops.aten, "some_operator") and not hasattr(tt.ops.mine, "some_operator")
    with pytest.raises(OSError, match="some.so"):
        tt.ops.load_library("some.so")


def test_operators_of_a_library():
    lib = library.Library("scaling", "DEF")
    assert lib.define("twice(Tensor x, int n=1) -> Tensor") == "twice"
    with pytest.raises(NotImplementedError, match="scaling::twice"):
        tt.ops.scaling.twice(tt.ones(1))
    lib.impl("twice", lambda x, n=1: x * 2**n, "CompositeExplicitAutograd")
    assert tt.ops.scaling.twice(tt.ones(1), n=3).item() == 8
    assert tt.ops.scaling.twice.default(tt.ones(1)).item() == 2
    library.define("scaling::half", "(Tensor x) -> Tensor")

    @library.impl("scaling::half", "cpu")
    def half(x):
        return x / 2

    assert tt.ops.scaling.half(tt.ones(1)).item() == 0.5
    for wrong in (lambda: library.define("half", "()"), lambda: library.Library("a", "b")):
        with pytest.raises(ValueError):
            wrong()


def test_pytorchs_arguments_of_custom_op():
    def twice(x):
        return 2 * x

    op = library.custom_op("scaling::two", twice, mutates_args=(), schema="(Tensor x) -> Tensor")
    assert op(tt.ones(1)).item() == tt.ops.scaling.two(tt.ones(1)).item() == 2


def test_rules_for_vmap():
    calls = []

    @library.custom_op("scripts::scaled", mutates_args=())
    def scaled(x: tt.Tensor, k: float) -> tt.Tensor:
        return x * k

    @scaled.register_vmap
    def _(info, in_dims, x, k):
        calls.append((info.batch_size, in_dims, tuple(x.shape)))
        return x * k, in_dims[0]

    x = tt.randn(3, 2)
    assert tt.equal(tt.vmap(lambda row: scaled(row, 2.0))(x), x * 2)
    assert calls == [(3, (0, None), (3, 2))] and tt.equal(scaled(x, 2.0), x * 2)
    library.register_vmap("scripts::scaled", lambda info, in_dims, x, k: (x * 0, in_dims[0]))
    assert tt.vmap(lambda row: scaled(row, 2.0))(x).abs().sum() == 0


def test_operators_around_kernels_of_triton():
    @library.triton_op("scripts::doubled", mutates_args={})
    def doubled(x: tt.Tensor) -> tt.Tensor:
        return library.wrap_triton(lambda t: t * 2)(x)

    assert doubled(tt.ones(2)).tolist() == [2, 2]
    assert tt.ops.scripts.doubled(tt.ones(2)).tolist() == [2, 2]
