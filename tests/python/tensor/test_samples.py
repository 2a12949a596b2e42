"""histogram, gradient and in-place operators whose first argument has no gradient."""
import numpy as np
import pytest
import tt

X = np.random.default_rng(0).normal(size=(7, 9))


def test_histogram():
    x = tt.from_numpy(X)
    edges = np.array([-2.0, -0.5, 0.25, 0.5, 3.0])
    weight = np.abs(X)
    for got, want in (
        (tt.histogram(x, 5), np.histogram(X, 5)),
        (tt.histogram(x, 4, range=(-1.0, 1.0)), np.histogram(X, 4, (-1, 1))),
        (tt.histogram(x, 6, density=True), np.histogram(X, 6, density=True)),
        (tt.histogram(x, tt.from_numpy(edges)), np.histogram(X, edges)),
        (tt.histogram(x, 5, weight=tt.from_numpy(weight)), np.histogram(X, 5, weights=weight)),
    ):
        np.testing.assert_allclose(got.hist.numpy(), want[0])
        np.testing.assert_allclose(got.bin_edges.numpy(), want[1])
    out = tt.empty(5, dtype=tt.float64), tt.empty(6, dtype=tt.float64)
    tt.histogram(x, 5, out=out)
    np.testing.assert_allclose(out[0].numpy(), np.histogram(X, 5)[0])


def test_wrong_histograms():
    x = tt.ones(3)
    for call in (
        lambda: tt.histogram(x, 0),
        lambda: tt.histogram(x, 3, range=(2.0, 1.0)),
        lambda: tt.histogram(x * float("nan"), 3),
        lambda: tt.histogram(x, 3, weight=tt.ones(4)),
        lambda: tt.histogram(x, tt.ones(2, dtype=tt.float64)),
        lambda: tt.histogram(x, tt.ones(2), range=(0.0, 1.0)),
        lambda: tt.histogram(x, 1 << 62),
    ):
        with pytest.raises((RuntimeError, MemoryError)):
            call()


def test_gradient():
    points = [np.cumsum(np.arange(1.0, 8)), np.linspace(0, 1, 9) ** 2]
    for order in (1, 2):
        got = tt.gradient(tt.from_numpy(X), spacing=0.5, edge_order=order)
        for a, b in zip(got, np.gradient(X, 0.5, edge_order=order)):
            np.testing.assert_allclose(a.numpy(), b)
        spacing = [tt.from_numpy(p) for p in points]
        got = tt.gradient(tt.from_numpy(X), spacing=spacing, edge_order=order)
        for a, b in zip(got, np.gradient(X, *points, edge_order=order)):
            np.testing.assert_allclose(a.numpy(), b)
    (got,) = tt.gradient(tt.from_numpy(X), spacing=[3.0], dim=1)
    np.testing.assert_allclose(got.numpy(), np.gradient(X, 3.0, axis=1))
    with pytest.raises(ValueError):
        tt.gradient(tt.ones(2), edge_order=2)
    with pytest.raises(ValueError):
        tt.gradient(tt.ones(4, 4), spacing=[1.0])


@pytest.mark.parametrize("name", ["igamma", "igammac"])
def test_incomplete_gamma_in_place(name):
    a = tt.rand(2, 3, dtype=tt.float64) + 0.5
    x = (tt.rand(2, 3, dtype=tt.float64) + 0.5).requires_grad_()
    want = getattr(tt, name)(a, x)
    (g,) = tt.autograd.grad([want.sum()], [x])
    base = tt.stack([a, a])
    row = base[1]
    getattr(row, name + "_")(x)
    np.testing.assert_allclose(base[1].detach().numpy(), want.detach().numpy())
    (h,) = tt.autograd.grad([base.sum()], [x])
    np.testing.assert_allclose(g.numpy(), h.numpy())
    with pytest.raises(RuntimeError):
        getattr(a.clone().requires_grad_() * 1, name + "_")(x)


def test_empty_strided():
    t = tt.empty_strided((2, 3), (1, 2), dtype=tt.int32)
    assert (tuple(t.shape), t.stride(), t.dtype) == ((2, 3), (1, 2), tt.int32)
    assert t.new_empty_strided((4, 5), (0, 1)).stride() == (0, 1)
    for size, stride in (((2, 3), (1,)), ((2,), (-1,)), ((1 << 40, 2), (1 << 40, 1))):
        with pytest.raises((RuntimeError, MemoryError)):
            tt.empty_strided(size, stride)
