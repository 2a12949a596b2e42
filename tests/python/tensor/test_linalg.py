"""Decompositions beyond the op table of the C tests: complex matrices, derivatives of
third order, sizes, extremes."""
import numpy as np
import pytest
import tt

SHAPES = [(4, 4), (3, 5), (5, 3), (2, 4, 3), (6, 1), (1, 6)]


def matrices(shape, dtype, seed=0):
    g = np.random.default_rng(seed)
    return (
        g.normal(size=shape) + 1j * g.normal(size=shape)
        if dtype == "complex"
        else g.normal(size=shape)
    )


def nuclear(a):
    return tt.norm(tt.from_numpy(a.copy()), "nuc", (-2, -1)).numpy().copy()


def directional(a, directions):
    """The norm's sum, and its derivatives along the first one, two and three directions."""
    x = tt.from_numpy(a.copy()).requires_grad_(True)
    norm = tt.norm(x, "nuc", (-2, -1)).sum()
    (g,) = tt.autograd.grad([norm], [x], create_graph=True)
    out = [norm.item()]
    for k, e in enumerate(directions):
        out.append(np.sum(g.detach().numpy() * e.conj()).real)
        if k + 1 < len(directions):
            (g,) = tt.autograd.grad([g], [x], [tt.from_numpy(e.copy())], create_graph=True)
    return np.array(out)


@pytest.mark.parametrize("dtype", ["real", "complex"])
@pytest.mark.parametrize("shape", SHAPES)
def test_nuclear_norm(shape, dtype):
    a, h = matrices(shape, dtype), 1e-5
    np.testing.assert_allclose(nuclear(a), np.linalg.svd(a, compute_uv=False).sum(-1), rtol=1e-14)
    e = [matrices(shape, dtype, seed) for seed in (1, 2, 3)]
    want = directional(a, e)[1:]
    for k in range(3):
        fd = (directional(a + h * e[k], e)[k] - directional(a - h * e[k], e)[k]) / (2 * h)
        np.testing.assert_allclose(fd, want[k], rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("size", [1e300, 1e-300, 5e-324])
def test_extreme_sizes(size):
    a = matrices((4, 3), "real") * size
    np.testing.assert_allclose(nuclear(a), np.linalg.svd(a, compute_uv=False).sum(), rtol=1e-13)


def test_hard_matrices():
    hilbert = 1 / (1.0 + np.arange(12)[:, None] + np.arange(12))
    low_rank = matrices((50, 3), "real") @ matrices((3, 40), "real", 1)
    for a in (hilbert, low_rank, matrices((130, 90), "complex"), np.eye(7), np.zeros((3, 2))):
        np.testing.assert_allclose(nuclear(a), np.linalg.svd(a, compute_uv=False).sum(), rtol=1e-13)
    assert np.isnan(nuclear(np.array([[1, np.nan], [2, 3.0]])))
    assert np.isnan(nuclear(np.array([[1, np.inf], [2, 3.0]])))


@pytest.mark.parametrize("dtype", ["real", "complex"])
def test_gradient_is_orthogonal_whatever_the_rank(dtype):
    for a in (
        matrices((5, 2), dtype) @ matrices((2, 5), dtype, 1),
        matrices((6, 4), dtype),
        np.zeros((3, 3), matrices((1, 1), dtype).dtype),
    ):
        x = tt.from_numpy(a.copy()).requires_grad_(True)
        tt.norm(x, "nuc").backward()
        q = x.grad.numpy()
        np.testing.assert_allclose(q.conj().T @ q, np.eye(q.shape[1]), atol=1e-13)


def test_refusals():
    x = tt.ones(2, 3, 4)
    for dim in (None, (0,), (0, 1, 2), (1, 1), (1, -2)):
        with pytest.raises(RuntimeError):
            tt.norm(x, "nuc", dim)
    with pytest.raises(IndexError):
        tt.norm(x, "nuc", (0, 3))
    with pytest.raises(RuntimeError):
        tt.norm(tt.ones(2, 3, dtype=tt.int64), "nuc")


@pytest.mark.parametrize("dtype", [tt.float64, tt.complex128])
def test_square_roots_and_polar_factors(dtype):
    a = tt.randn(2, 4, 3, dtype=dtype)
    square = a.mH @ a
    root = tt.linalg.matrix_sqrth(square)
    assert tt.allclose(root @ root, square) and tt.allclose(root, root.mH)
    u, h = tt.linalg.polar(a)
    assert tt.allclose(u @ h, a) and tt.allclose(h, root)
    assert tt.allclose(u.mH @ u, tt.eye(3, dtype=dtype).expand(2, 3, 3))
    out = tt.empty(0, dtype=dtype), tt.empty(0, dtype=dtype)
    assert tt.linalg.polar(a, out=out).U is out[0] and tt.equal(out[1], h)
    x = a[:1].clone().requires_grad_()
    assert tt.autograd.gradcheck(lambda x: tt.linalg.matrix_sqrth(x.mH @ x), (x,))
    assert tt.autograd.gradcheck(tt.linalg.polar, (x,))
    with pytest.raises(RuntimeError, match="polar: A is"):
        tt.linalg.polar(a.mT)
