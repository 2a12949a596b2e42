"""tt.autograd.functional, gradcheck, autograd.graph and batched gradients as PyTorch has them."""
import gc
import weakref

import pytest

import tt
from tt import _lib
from tt.autograd import functional as AF


def tensors(*shapes):
    tt.manual_seed(0)
    return tuple(tt.randn(shape, dtype=tt.float64) for shape in shapes)


def both(x, y):
    return (x.exp() * y).sum(0), x @ y.T


def test_jacobian_has_the_shapes_of_results_and_inputs():
    x, y = tensors((2, 3), (2, 3))
    single = AF.jacobian(lambda t: t * 3, x)
    assert single.shape == (2, 3, 2, 3)
    tt.testing.assert_close(single.reshape(6, 6), 3 * tt.eye(6, dtype=tt.float64))
    nested = AF.jacobian(both, (x, y))
    assert [[m.shape for m in row] for row in nested] == [
        [(3, 2, 3), (3, 2, 3)],
        [(2, 2, 2, 3), (2, 2, 2, 3)],
    ]
    forward = AF.jacobian(both, (x, y), vectorize=True, strategy="forward-mode")
    tt.testing.assert_close(forward, nested)


def test_products_agree_with_the_jacobian():
    x, y = tensors((2, 3), (2, 3))
    v, w = tensors((3,), (2, 2))
    matrices = AF.jacobian(both, (x, y))
    outs, products = AF.vjp(both, (x, y), (v, w))
    tt.testing.assert_close(outs, both(x, y))
    for k in (0, 1):
        expected = tt.tensordot(v, matrices[0][k], 1) + tt.tensordot(w, matrices[1][k], 2)
        tt.testing.assert_close(products[k], expected)
    _, products = AF.jvp(both, (x, y), (x, y))
    for row, product in zip(matrices, products):
        expected = tt.tensordot(row[0], x, 2) + tt.tensordot(row[1], y, 2)
        tt.testing.assert_close(product, expected)


def test_hessian_products():
    x, v = tensors((4,), (4,))

    def f(t):
        return (t**3 * t.sin()).sum() * t.prod()

    matrix = AF.hessian(f, x)
    assert matrix.shape == (4, 4)
    tt.testing.assert_close(matrix, matrix.T)
    for product in (AF.vhp, AF.hvp):
        out, found = product(f, x, v)
        tt.testing.assert_close(out, f(x))
        tt.testing.assert_close(found, matrix @ v)
    pair = AF.hessian(lambda a, b: (a * b).sum(), (x, v))
    tt.testing.assert_close(pair[0][1], tt.eye(4, dtype=tt.float64))
    tt.testing.assert_close(pair[0][0], tt.zeros(4, 4, dtype=tt.float64))
    forward = AF.hessian(f, x, vectorize=True, outer_jacobian_strategy="forward-mode")
    tt.testing.assert_close(forward, matrix)


def test_create_graph_keeps_the_history():
    (x,) = tensors((3,))
    x.requires_grad_()
    found = AF.jacobian(lambda t: t**3, x, create_graph=True)
    (second,) = tt.autograd.grad(found.sum(), x)
    tt.testing.assert_close(second, 6 * x.detach())
    assert not AF.jacobian(lambda t: t**3, x).requires_grad
    for product in (AF.vjp, AF.jvp):
        _, found = product(lambda t: t**3, x, tt.ones_like(x), create_graph=True)
        (second,) = tt.autograd.grad(found.sum(), x)
        tt.testing.assert_close(second, 6 * x.detach())


def test_strict_refuses_independent_results():
    x, y = tensors((2,), (2,))
    assert AF.jacobian(lambda a, b: a * 2, (x, y))[1].count_nonzero().item() == 0
    for f in (lambda a, b: a * 2, lambda a, b: tt.ones(2)):
        with pytest.raises(RuntimeError, match="does not depend"):
            AF.jacobian(f, (x, y), strict=True)
        with pytest.raises(RuntimeError, match="do(es)? not depend"):
            AF.vjp(f, (x, y), tt.ones(2), strict=True)
    with pytest.raises(RuntimeError, match="constant"):
        AF.jacobian(lambda a: a * 2, x, strict=True, create_graph=True)


def test_wrong_calls_of_functional():
    x, _ = tensors((2,), (2,))
    for call, message in (
        (lambda: AF.vjp(lambda a: a, x), "v may be None only"),
        (lambda: AF.jvp(lambda a: a, x, tt.ones(3)), "must have the shape"),
        (lambda: AF.hessian(lambda a: a, x), "one element"),
    ):
        with pytest.raises(RuntimeError, match=message):
            call()
    with pytest.raises(TypeError, match="must be a Tensor"):
        AF.jacobian(lambda a: 1.0, x)
    with pytest.raises(ValueError, match="strategy"):
        AF.jacobian(lambda a: a, x, strategy="both")


class Wrong(tt.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


def test_gradcheck_finds_wrong_gradients():
    x, y = (t.requires_grad_() for t in tensors((2, 3), (3, 2)))
    assert tt.autograd.gradcheck(lambda a, b: (a @ b).tanh(), (x, y))
    assert tt.autograd.gradgradcheck(lambda a, b: (a @ b).tanh(), (x, y))
    with pytest.raises(tt.autograd.GradcheckError, match="input 0 is wrong"):
        tt.autograd.gradcheck(Wrong.apply, x)
    assert not tt.autograd.gradcheck(Wrong.apply, x, raise_exception=False)
    with pytest.raises(tt.autograd.GradcheckError, match="two equal calls"):
        tt.autograd.gradcheck(lambda a: a * tt.rand(1, dtype=tt.float64), x)
    with pytest.raises(ValueError, match="requires_grad"):
        tt.autograd.gradcheck(lambda a: a, x.detach())


def test_gradcheck_of_complex_numbers():
    tt.manual_seed(1)
    z = tt.randn(3, dtype=tt.complex128).requires_grad_()
    assert tt.autograd.gradcheck(lambda a: a * a.conj() + a.exp(), z)
    assert tt.autograd.gradcheck(lambda a: a.abs(), z)
    assert tt.autograd.gradgradcheck(lambda a: a**2, z)


def test_batched_gradients():
    (x,) = tensors((3,))
    x.requires_grad_()
    (rows,) = tt.autograd.grad(x**2, x, tt.eye(3, dtype=tt.float64), is_grads_batched=True)
    tt.testing.assert_close(rows, tt.diag(2 * x.detach()))
    with pytest.raises(RuntimeError, match="first size"):
        tt.autograd.grad(x**2, x, is_grads_batched=True)


def test_hooks_of_several_gradients():
    x, y = (t.requires_grad_() for t in tensors((2,), (2,)))
    seen, first = [], []
    handle = tt.autograd.graph.register_multi_grad_hook((x, y), seen.append)
    tt.autograd.graph.register_multi_grad_hook((x, y), first.append, mode="any")
    (x * y).sum().backward()
    x.sum().backward()
    (x * y).sum().backward()
    assert [len(s) for s in seen] == [2, 2] and len(first) == 3
    handle.remove()
    (x * y).sum().backward()
    assert len(seen) == 2
    with pytest.raises(ValueError, match="mode"):
        tt.autograd.graph.register_multi_grad_hook((x,), print, mode="some")


@pytest.mark.parametrize("mode", ["all", "any"])
def test_hooks_of_several_gradients_do_not_keep_the_tensors(mode):
    x, y = (t.requires_grad_() for t in tensors((2,), (2,)))
    before = len(_lib.kept)
    tt.autograd.graph.register_multi_grad_hook((x, y), lambda grads: None, mode=mode)
    (x * y).sum().backward()
    assert len(_lib.kept) == before + 2
    del x, y
    assert len(_lib.kept) == before


# ---- hooks on saved tensors ----


def test_saved_tensors_are_packed_and_unpacked():
    (x,) = tensors((3,))
    x.requires_grad_()
    packed, unpacked = [], []

    def pack(t):
        assert not t.requires_grad and t.grad_fn is None
        packed.append(t)
        return t.numpy().copy()

    def unpack(values):
        unpacked.append(values)
        return tt.from_numpy(values)

    with tt.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = (x.exp() * x).sum()
    (g,) = tt.autograd.grad(y, x, create_graph=True)
    tt.testing.assert_close(g.detach(), (x.exp() * x + x.exp()).detach())
    (h,) = tt.autograd.grad(g.sum(), x)
    tt.testing.assert_close(h, (x.exp() * x + 2 * x.exp()).detach())
    assert len(packed) == 3 and len(unpacked) >= 3


def test_hooks_on_saved_tensors_of_functions_and_in_place():
    with tt.autograd.graph.save_on_cpu(pin_memory=True):
        x = tt.tensor([1.0, 2.0], requires_grad=True)
        y = x.clone().exp_().relu_().mul_(x)
        z = Wrong.apply(y).sum()
    z.backward()
    want = tt.tensor([1.0, 2.0], requires_grad=True)
    Wrong.apply(want.exp() * want).sum().backward()
    tt.testing.assert_close(x.grad, want.grad)


def test_hooks_on_saved_tensors_that_fail():
    hooks = tt.autograd.graph.saved_tensors_hooks
    x = tt.ones(2, requires_grad=True)
    with hooks(lambda t: 1 / 0, lambda p: p), pytest.raises(ZeroDivisionError):
        x.exp()
    with hooks(lambda t: t, lambda p: 1):
        y = x.exp()
    with pytest.raises(TypeError, match="unpack_hook"):
        y.sum().backward()
    with hooks(lambda t: t, lambda p: p[:1]):
        y = x.exp()
    with pytest.raises(tt.TtError, match="must be float32 of shape"):
        y.sum().backward()
    with tt.autograd.graph.disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="not here"), hooks(lambda t: t, lambda p: p):
            pass
    with hooks(lambda t: t * 2, lambda p: p / 2), hooks(lambda t: t * 4, lambda p: p / 4):
        y = x.sin()
    y.sum().backward()
    tt.testing.assert_close(x.grad, x.detach().cos())


def test_packed_tensors_are_released():
    class Box:
        pass

    kept = []

    def pack(t):
        box = Box()
        box.t = t
        kept.append(weakref.ref(box))
        return box

    x = tt.ones(2, requires_grad=True)
    with tt.autograd.graph.saved_tensors_hooks(pack, lambda box: box.t):
        y = (x * x).sum()
    assert all(r() is not None for r in kept)
    y.backward()
    gc.collect()
    assert len(kept) == 2 and all(r() is None for r in kept)


@pytest.mark.parametrize(
    "write, expected",  # gradients of PyTorch's
    [
        (lambda z, v: v.mul_(2), [2 + 2j, 2 + 2j]),
        (lambda z, v: v[0].mul_(3), [3 + 3j, 1 + 1j]),
        (lambda z, v: v.select(-1, 1).mul_(3), [1 + 3j, 1 + 3j]),
        (lambda z, v: z.mul_(3), [3 + 3j, 3 + 3j]),
        (lambda z, v: z.imag.mul_(2), [1 + 2j, 1 + 2j]),
        (lambda z, v: v[1].zero_(), [1 + 1j, 0]),
    ],
)
def test_writes_through_views_of_parts(write, expected):
    leaf = tt.tensor([1 + 2j, 3j], requires_grad=True)
    z = leaf * 1
    v = tt.view_as_real(z)
    write(z, v)
    v.sum().backward()
    assert leaf.grad.tolist() == expected
    parts = tt.view_as_real(z.detach()).clone()
    assert v.detach().equal(parts)


def test_writes_through_views_of_pairs():
    leaf = tt.tensor([[1.0, 2], [3, 4]], requires_grad=True)
    z = leaf * 1
    v = tt.view_as_complex(z)
    v[0] *= 2j
    z.mul_(3)
    assert v.tolist() == [-12 + 6j, 9 + 12j]
    (v * tt.tensor([1, 2 - 1j])).real.sum().backward()
    assert leaf.grad.tolist() == [[0, -6], [6, 3]]

    def f(x):
        z = x * x
        tt.view_as_complex(z)[1].mul_(1 + 1j)
        return z

    assert tt.autograd.gradgradcheck(f, (leaf.detach().double().requires_grad_(),))


def test_writes_through_views_of_pairs_from_an_odd_element_on():
    leaf = tt.ones(9, requires_grad=True)
    z = tt.zeros(10)[1:].detach()
    z.add_(leaf)
    v = tt.view_as_complex(z[1:].reshape(4, 2))
    v.mul_(2)
    (slope,) = tt.autograd.grad(z.sum(), leaf, retain_graph=True)
    assert slope.tolist() == [1] + 8 * [2]
    (slope,) = tt.autograd.grad(v.imag.sum(), leaf)
    assert slope.tolist() == [0] + 4 * [0, 2]
