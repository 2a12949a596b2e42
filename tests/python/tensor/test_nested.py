"""torch.nested: batches of tensors whose sizes differ, beside the same calls for each sample."""
import pytest
import tt
from tt import nested, nn
from tt.nn import functional as F

A, B = tt.randn(3, 4), tt.randn(5, 4)
layouts = pytest.mark.parametrize("layout", [tt.strided, tt.jagged])


def same(found, expected):
    assert len(found.unbind()) == len(expected)
    for x, y in zip(found, expected):
        assert x.shape == y.shape and tt.allclose(x, y)


@layouts
def test_samples_and_padding(layout):
    x = nested.nested_tensor([A, B], layout=layout)
    assert x.is_nested and x.layout is layout and x.dim() == 3 and x.numel() == 32
    assert (x.size(0), x.size(2), x.dtype, len(x)) == (2, 4, tt.float32, 2)
    same(x, [A, B])
    padded = nested.to_padded_tensor(x, 7.0)
    assert padded.shape == (2, 5, 4) and tt.equal(padded[0, :3], A) and padded[0, 3:].eq(7).all()
    assert x.to_padded_tensor(0.0, (2, 6, 4)).shape == (2, 6, 4)
    assert tt.equal(x.values(), tt.cat([A, B])) and x.offsets().tolist() == [0, 3, 8]
    same(nested.nested_tensor_from_jagged(x.values(), x.offsets()), [A, B])
    halves = nested.nested_tensor_from_jagged(x.values(), lengths=tt.tensor([2, 6]))
    same(halves, [A[:2], tt.cat([A[2:], B])])


@layouts
def test_functions_of_samples(layout):
    x = nested.nested_tensor([A, B], layout=layout)
    linear, norm = nn.Linear(4, 6), nn.LayerNorm(4)
    net = nn.Sequential(linear, nn.GELU(), nn.Linear(6, 2))
    for f in (
        lambda t: t + t,
        lambda t: 2 * t - t / 2,
        lambda t: F.relu(-t),
        lambda t: F.softmax(t, dim=-1),
        lambda t: t.sigmoid().double(),
        lambda t: tt.where(t > 0, t, t * 3),
        linear,
        norm,
        net,
    ):
        same(f(x), [f(A), f(B)])
    first, second = x.chunk(2, dim=-1)
    same(first, [A[:, :2], B[:, :2]])
    same(x.transpose(1, 2), [A.t(), B.t()])


@layouts
def test_attention(layout):
    x = nested.nested_tensor([A, B], layout=layout)

    def attend(t, dim):
        q = t.unflatten(-1, [2, 2]).transpose(dim, dim + 1)
        return F.scaled_dot_product_attention(q, q, q).transpose(dim, dim + 1).flatten(-2)

    same(attend(x, 1), [attend(A, 0), attend(B, 0)])


@layouts
def test_gradients(layout):
    a, b = A.clone().requires_grad_(), B.clone().requires_grad_()
    x = nested.as_nested_tensor([a, b], layout=layout)
    assert x.requires_grad
    x.exp().to_padded_tensor(0.0).sum().backward()
    assert tt.allclose(a.grad, A.exp()) and tt.allclose(b.grad, B.exp())
    leaf = nested.nested_tensor([A, B], requires_grad=True, layout=layout)
    assert leaf.grad is None
    leaf.to_padded_tensor(0.0).square().sum().backward()
    same(leaf.grad, [2 * A, 2 * B])


def test_refusals():
    x = nested.nested_tensor([A, B])
    for wrong, name in (
        (lambda: x.size(1), "size"),
        (lambda: nested.nested_tensor([A, B[0]]), "dimensions"),
        (lambda: nested.nested_tensor([A, B.t()], layout=tt.jagged), "first dimension"),
        (lambda: x.to_padded_tensor(0.0, (2, 2, 4)), "output_size"),
        (lambda: tt.cumprod(x, 1), "cumprod"),
        (lambda: x.sum(0), "samples"),
        (lambda: x + nested.nested_tensor([A]), "samples"),
        (lambda: tt.fft.fft(x), "fft"),
    ):
        with pytest.raises((RuntimeError, TypeError, NotImplementedError), match=name):
            wrong()
    assert repr(nested.nested_tensor([[1.0, 2.0], [3.0]])) == (
        "nested_tensor([\n  tensor([1., 2.]),\n  tensor([3.])\n])"
    )
