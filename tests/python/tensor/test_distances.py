"""Distances between rows, by one kernel; recorded gradients are by arrays of differences."""
import math

import numpy
import pytest
import tt
from tt.nn import functional as F

ORDERS = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, math.inf]
EXACT = "donot_use_mm_for_euclid_dist"


def norms(d, p):
    size = numpy.abs(d)
    if p == 0:
        return (d != 0).sum(-1).astype(d.dtype)
    return size.max(-1) if p == math.inf else (size**p).sum(-1) ** (1 / p)


def rows(n, m, seed=0):
    return numpy.random.default_rng(seed).standard_normal((n, m))


@pytest.mark.parametrize("dtype", [tt.float32, tt.float64])
@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize("m", [1, 7, 8, 131, 300])
def test_distances_of_rows_of_any_length(p, m, dtype):
    a, b = rows(137, m), rows(35, m, seed=1)
    b[3] = a[5]
    want = norms(a[:, None] - b, p)
    got = tt.cdist(tt.tensor(a, dtype=dtype), tt.tensor(b, dtype=dtype), p, EXACT)
    rtol = 1e-12 if dtype == tt.float64 else 3e-6
    numpy.testing.assert_allclose(got.numpy(), want, rtol, rtol * 10)
    first, second = numpy.triu_indices(137, 1)
    got = F.pdist(tt.tensor(a, dtype=dtype), p)
    numpy.testing.assert_allclose(got.numpy(), norms(a[first] - a[second], p), rtol, rtol * 10)


@pytest.mark.parametrize("p", ORDERS)
@pytest.mark.parametrize("m", [1, 9, 70])
def test_gradients_are_those_of_the_recorded_ones(p, m):
    a = tt.tensor(rows(70, m), requires_grad=True)
    b = tt.tensor(rows(19, m, seed=1), requires_grad=True)
    with tt.no_grad():
        b[3] = a[5]
    for f, inputs in ((lambda: tt.cdist(a, b, p, EXACT), (a, b)), (lambda: F.pdist(a, p), (a,))):
        y = f()
        g = tt.linspace(-1, 1, y.numel(), dtype=tt.float64).reshape(y.shape)
        plain = tt.autograd.grad(y, inputs, g, retain_graph=True)
        recorded = tt.autograd.grad(y, inputs, g, create_graph=True)
        for one, other in zip(plain, recorded):
            tt.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


def test_batches_broadcast_and_halves_are_computed_in_float32():
    a, b = rows(4, 5).reshape(2, 1, 2, 5), rows(9, 5, seed=1).reshape(3, 3, 5)
    want = norms(a[..., :, None, :] - b[..., None, :, :], 1)
    x, y = tt.tensor(a), tt.tensor(b)
    numpy.testing.assert_allclose(tt.cdist(x, y, 1.0).numpy(), want)
    half = tt.cdist(x.half(), y.half(), 1.0)
    assert half.dtype == tt.float16
    assert tt.equal(half, tt.cdist(x.half().float(), y.half().float(), 1.0).half())
    each = tt.func.vmap(lambda x: tt.cdist(x, y[0], 3.0))(x[:, 0])
    assert tt.equal(each, tt.cdist(x[:, 0], y[0], 3.0))


def test_ties_and_nan_of_the_largest_difference():
    a = tt.tensor([[1.0, -1.0, 0.0], [0.0, 0.0, 0.0]], requires_grad=True)
    for create_graph in (False, True):
        y = F.pdist(a, math.inf).sum()
        (g,) = tt.autograd.grad(y, a, create_graph=create_graph)
        assert g.tolist() == [[1, -1, 0], [-1, 1, 0]]
    x = tt.tensor([[1.0, math.nan], [0.0, 0.5], [math.inf, 2.0]])
    y = tt.cdist(x, tt.zeros(1, 2), math.inf).flatten()
    assert y.tolist() == [1, 0.5, math.inf]
    y = F.pdist(x, math.inf).tolist()
    assert math.isnan(y[0]) and math.isnan(y[1]) and y[2] == math.inf
    assert math.isnan(tt.cdist(x[:1], tt.zeros(1, 2), 0.0).item())


def test_pairs_of_more_rows_than_a_tensor_can_have():
    """The number of pairs is 14 modulo 2^64."""
    with pytest.raises(ValueError, match="the number of .* overflows"):
        F.pdist(tt.empty(486331011735726989, 0))
