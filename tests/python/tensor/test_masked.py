"""torch.masked: reductions and normalizations with masks. Values are those of PyTorch 2.15."""
from math import inf, nan

import pytest
import tt
from tt import masked

X = tt.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])
M = tt.tensor([[True, False, True], [False, False, False]])


@pytest.mark.parametrize(
    "name, args, want",
    [
        ("sum", (1,), [4, 0]),
        ("prod", (1,), [3, 1]),
        ("amax", (1,), [3, -inf]),
        ("amin", (1,), [1, inf]),
        ("argmax", (1,), [2, 0]),
        ("mean", (1,), [2, nan]),
        ("median", (1,), [1, nan]),
        ("norm", (2.0, 1), [10**0.5, 0]),
        ("norm", (-inf, 1), [1, inf]),
        ("var", (1,), [2, nan]),
        ("std", (1, False), [1, nan]),
        ("logsumexp", (1,), [3.126928, -inf]),
        ("cumsum", (1,), [1, 1, 4, 0, 0, 0]),
        ("cumprod", (1,), [1, 1, 3, 1, 1, 1]),
        ("softmax", (1,), [0.119203, 0, 0.880797, nan, nan, nan]),
        ("softmin", (1,), [0.880797, 0, 0.119203, nan, nan, nan]),
        ("log_softmax", (1,), [-2.126928, -inf, -0.126928, nan, nan, nan]),
        ("normalize", (1.0, 1), [0.25, 0, 0.75, 0, 0, 0]),
    ],
)
def test_masked_out_elements_do_not_count(name, args, want):
    found = getattr(masked, name)(X, *args, mask=M)
    assert found.flatten().tolist() == pytest.approx(want, abs=1e-6, nan_ok=True)
    assert found.dtype is tt.float32
    without = getattr(masked, name)(X, *args)
    everywhere = getattr(masked, name)(X, *args, mask=tt.ones_like(X).bool())
    assert tt.equal(without, everywhere)


def test_masks_broadcast_and_results_have_pytorchs_dtypes():
    assert masked.sum(X, mask=M[0]).item() == 1 + 3 + 4 - 6
    assert masked.sum(X, (), keepdim=True, mask=None).tolist() == [[5]]
    whole = X.to(tt.int32)
    assert masked.sum(whole, 1, mask=M).dtype is tt.int64
    assert masked.cumsum(whole, 1, mask=M).dtype is tt.int32
    assert masked.amax(whole, 1, mask=M).tolist() == [3, -(2**31)]
    x = X.clone().requires_grad_()
    masked.mean(x, 1, mask=M)[0].backward()
    assert x.grad.tolist() == [[0.5, 0, 0.5], [0, 0, 0]]
    both = masked.logaddexp(X[0], X[1], input_mask=M[0], other_mask=M[1])
    assert both.tolist() == [1, -inf, 3]


def test_bad_arguments_of_masked_reductions():
    with pytest.raises(ValueError, match="floating"):
        masked.mean(X.long(), mask=M)
    with pytest.raises(IndexError):
        masked.sum(X[0], mask=M)
    with pytest.raises(IndexError):
        masked.sum(X, 2)
    with pytest.raises(RuntimeError, match="more than once"):
        masked.sum(X, (0, 0))
    with pytest.raises(RuntimeError, match="correction"):
        masked.var(X, 0, True, correction=1)


def test_masked_tensors():
    a = masked.masked_tensor(X, M)
    assert masked.is_masked_tensor(a) and not masked.is_masked_tensor(X)
    assert a.shape == (2, 3) and a.to_tensor(0).tolist() == [[1, 0, 3], [0, 0, 0]]
    assert (a.exp() * 2 + a).get_mask() is not None and (1 + a).to_tensor(0)[0].tolist() == [
        2,
        0,
        4,
    ]
    assert a.sum(1).to_tensor(9).tolist() == [4, 9] and tt.amax(a, 1).tolist() == [3, None]
    assert float(a.mean().get_data()) == 2 and a.t()[2].tolist() == [3, None]
    assert repr(a[0]) == "MaskedTensor(\n  [  1.0000,       --,   3.0000]\n)"
    assert repr(a.sum()) == "MaskedTensor(  4.0000, True)"
    both = tt.where(M, a, masked.masked_tensor(X * 2, M))
    assert both.tolist() == [[1, None, 3], [None, None, None]]
    with pytest.raises(ValueError, match="match"):
        a + masked.masked_tensor(X, ~M)
    with pytest.raises(TypeError, match="cumsum"):
        tt.cumsum(a, 0)
    with pytest.raises(ValueError, match="mask"):
        masked.masked_tensor(X, M[0])


def test_arguments_of_functions_of_masked_tensors():
    """By position, by name, and masked ones by name; keepdim keeps dimensions."""
    a = masked.masked_tensor(X, M)
    assert a.sum(1, True).tolist() == [[4], [None]] == a.sum(dim=1, keepdim=True).tolist()
    assert a.norm(1.0, 1).tolist() == [4, None] and a.norm(1.0, 1, True).shape == (2, 1)
    assert a.all(1, True).shape == (2, 1) == (a > 0).any(dim=1, keepdim=True).shape
    assert a.add(other=a).tolist() == (a + a).tolist() == [[2, None, 6], [None, None, None]]
    with pytest.raises(ValueError, match="match"):
        a.add(other=masked.masked_tensor(X, ~M))


def test_masked_tensors_are_joined_split_and_normalized():
    a = masked.masked_tensor(X, M)
    assert tt.cat([a, a], 1).tolist() == [[1, None, 3, 1, None, 3], [None] * 6]
    assert tt.stack([a, a]).shape == (2, 2, 3) and tt.cat([a, X])[3].tolist() == X[1].tolist()
    assert [part.tolist() for part in tt.split(a, 2, 1)] == [[[1, None], [None] * 2], [[3], [None]]]
    assert a.unbind(0)[0].tolist() == [1, None, 3]
    for p in (tt.softmax(a, -1), a.softmax(-1), tt.nn.functional.softmax(a, dim=-1)):
        kept = tt.tensor([1.0, 3.0]).softmax(0).tolist()
        assert p[0].tolist() == pytest.approx([kept[0], None, kept[1]]) and p[1].tolist()[0] is None
    logs = tt.nn.functional.log_softmax(a, -1)[0].tolist()
    assert logs[1] is None and logs[2] == pytest.approx(-0.126928, abs=1e-5)
    b = masked.masked_tensor(X, M, requires_grad=True)
    tt.softmax(b, -1)[0, 0].backward()
    assert b.grad[0].tolist() == pytest.approx([kept[0] * kept[1], None, -kept[0] * kept[1]])


def test_gradients_of_masked_tensors():
    x = X.clone().requires_grad_()
    masked.as_masked_tensor(x, M).square().sum().backward()
    assert x.grad.tolist() == [[2, 0, 6], [0, 0, 0]]
    a = masked.masked_tensor(X, M, requires_grad=True)
    (a * a).mean().backward()
    assert a.grad.tolist() == [[1, None, 3], [None, None, None]]
