"""Decompositions beyond the op table of the C tests: complex matrices, derivatives of
third order, sizes, extremes."""
import numpy as np
import pytest
import tt
from tt import linalg

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


# ---- eigenpairs of large matrices ----


def symmetric(dtype):
    x = tt.randn(30, 30, dtype=dtype, generator=tt.Generator().manual_seed(3))
    return x + x.mT


@pytest.mark.parametrize("dtype", [tt.float32, tt.float64])
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("with_b", [True, False])
def test_lobpcg_finds_eigenpairs(dtype, largest, with_b):
    a = symmetric(dtype)
    eye = tt.eye(30, dtype=dtype)
    b = tt.linspace(1, 3, 30, dtype=dtype).diag() if with_b else eye
    root = tt.linalg.inv(tt.linalg.cholesky(b))
    expected = tt.linalg.eigvalsh(root @ a @ root.mT)
    expected = expected.flip(0)[:3] if largest else expected[:3]
    tolerance = 1e-3 if dtype is tt.float32 else 1e-6
    values, vectors = tt.lobpcg(a, 3, b if with_b else None, largest=largest)
    tt.testing.assert_close(values, expected, atol=tolerance, rtol=tolerance)
    assert (a @ vectors - b @ vectors * values).norm() < 100 * tolerance
    gram = vectors.mT @ b @ vectors
    tt.testing.assert_close(gram, tt.eye(3, dtype=dtype), atol=1e-4, rtol=0)


def test_lobpcg_of_other_matrices():
    batch = tt.stack([tt.arange(1.0, 31).diag(), tt.arange(2.0, 32).diag()])
    values, vectors = tt.lobpcg(batch, k=2)
    tt.testing.assert_close(values, tt.tensor([[30.0, 29.0], [31.0, 30.0]]), atol=1e-3, rtol=0)
    assert vectors.shape == (2, 30, 2)
    sparse, _ = tt.lobpcg(batch[0].to_sparse(), k=2)
    tt.testing.assert_close(sparse, values[0], atol=1e-3, rtol=0)
    scaled = (tt.arange(1.0, 31) ** 3).diag()
    inverse = (1 / (tt.arange(1.0, 31) ** 3)).diag()
    smallest, _ = tt.lobpcg(scaled, k=1, iK=inverse, largest=False, niter=20, tol=1e-7)
    tt.testing.assert_close(smallest, tt.ones(1), atol=1e-3, rtol=0)
    start = tt.eye(30)[:, -2:]
    assert tt.lobpcg(batch[0], X=start, niter=0)[0].tolist() == [30, 29]
    assert tt.lobpcg(tt.zeros(9, 9))[0].tolist() == [0]
    tt.testing.assert_close(tt.lobpcg(tt.eye(9), k=3)[0], tt.ones(3))


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_lobpcg_has_the_gradients_of_eigh(largest, batch):
    generator = tt.Generator().manual_seed(3)
    x = tt.randn(*batch, 9, 9, dtype=tt.float64, generator=generator)
    start = tt.randn(*batch, 9, 2, dtype=tt.float64, generator=generator)
    weight = tt.randn(*batch, 9, 2, dtype=tt.float64, generator=generator)
    a = (x @ x.mT + tt.arange(9.0, dtype=tt.float64).diag()).requires_grad_()

    def loss(values, vectors):
        signed = vectors * vectors.detach()[..., :1, :].sign()
        return (values.sin() * weight[..., 0, :]).sum() + (signed * weight).sum()

    def found(a):
        return loss(*tt.lobpcg((a + a.mT) / 2, 2, X=start, tol=1e-13, largest=largest))

    values, vectors = tt.linalg.eigh((a + a.mT) / 2)
    at = [-1, -2] if largest else [0, 1]
    expected = tt.autograd.grad(loss(values[..., at], vectors[..., at]), a)[0]
    tt.testing.assert_close(tt.autograd.grad(found(a), a)[0], expected, rtol=1e-7, atol=1e-9)
    if not batch:
        assert tt.autograd.gradgradcheck(found, (a,))


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: tt.lobpcg(tt.ones(2, 3)), AssertionError, "A is .2, 3.: must be square"),
        (lambda: tt.lobpcg(tt.eye(5), k=2), ValueError, "5 rows: must be at least 3 times"),
        (lambda: tt.lobpcg(tt.eye(9), B=tt.eye(8)), AssertionError, "B is .8, 8."),
        (lambda: tt.lobpcg(tt.eye(9), X=tt.ones(8, 1)), AssertionError, "X is .8, 1."),
        (lambda: tt.lobpcg(tt.eye(9), k=2, n=1), ValueError, "k is 2: must be 1 to 1"),
        (lambda: tt.lobpcg(tt.eye(9), method="other"), ValueError, "method is 'other'"),
        (lambda: tt.lobpcg(tt.eye(9, dtype=tt.int64)), TypeError, "A is tt.int64"),
        (lambda: tt.lobpcg(tt.eye(9).requires_grad_(), B=tt.eye(9)), ValueError, "B is given"),
        (lambda: tt.lobpcg(tt.eye(9) * float("nan")), tt.errors.TtError, "."),
    ],
)
def test_lobpcg_refuses(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("name", ["input", "x", "A"])
def test_functions_whose_matrix_is_named_input(name):
    # PyTorch's documentation calls it A, its functions take input and x
    given = {name: tt.tensor([[4.0, 1.0], [1.0, 3.0]])}
    matrix = given[name]
    for function in [linalg.norm, linalg.matrix_norm, linalg.vector_norm, linalg.cond]:
        assert function(**given) == function(matrix)
    for function in [linalg.matrix_rank, linalg.pinv, linalg.eigvalsh, linalg.matrix_exp]:
        assert function(**given).tolist() == function(matrix).tolist()
    assert linalg.eigh(**given)[0].tolist() == linalg.eigh(matrix)[0].tolist()
    assert linalg.matrix_power(**given, n=3).tolist() == linalg.matrix_power(matrix, 3).tolist()
    assert linalg.cholesky(**given).tolist() == linalg.cholesky(matrix).tolist()
    assert linalg.eigvals(**given).tolist() == linalg.eigvals(matrix).tolist()
    for function in [linalg.cholesky_ex, linalg.eig, linalg.ldl_factor]:
        assert function(**given)[0].tolist() == function(matrix)[0].tolist()
    assert linalg.tensorinv(**given, ind=1).tolist() == linalg.tensorinv(matrix, 1).tolist()
    upper = linalg.solve_triangular(**given, B=matrix, upper=True)
    assert upper.tolist() == linalg.solve_triangular(matrix, matrix, upper=True).tolist()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("shape", [(70, 90, 64), (33, 40, 41), (40, 500, 80)])
def test_scaled_sums_of_complex_products(shape, dtype):
    m, k, n = shape
    a, b, c = (matrices(s, "complex", i) for i, s in enumerate(((m, k), (k, n), (m, n))))
    arrays = [x.astype(dtype) for x in (a, b, c)]
    a, b, c = (tt.from_numpy(x) for x in arrays)
    x, y, z = (array.astype("complex128") for array in arrays)
    for beta, alpha in ((1, 1), (1, -1), (-2, 0.5), (0.5 - 2j, 1j - 3), (0, 2j)):
        want = beta * z + alpha * (x @ y)
        terms = abs(beta) * np.abs(z) + abs(alpha) * (np.abs(x) @ np.abs(y))
        for addend in (c, c.T.contiguous().T):
            got = tt.addmm(addend, a, b, beta=beta, alpha=alpha).numpy()
            assert (np.abs(got - want) <= 8 * np.finfo(dtype).eps * terms).all()
