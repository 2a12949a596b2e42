"""Factors, solutions and eigenvalues beside numpy's, for real and complex matrices: what the op
table compares by shape only, and gradients of functions of Hermitian matrices."""
import numpy as np
import pytest
import tt
from tt import linalg

DTYPES = ["float64", "complex128"]
SIZES = [1, 2, 3, 5, 12, 40]


def drawn(shape, dtype, seed=0):
    g = np.random.default_rng(seed)
    a = g.normal(size=shape)
    return a + 1j * g.normal(size=shape) if dtype.startswith("complex") else a


def adjoint(a):
    return np.conj(np.swapaxes(a, -1, -2))


def positive(n, dtype):
    a = drawn((2, n, n), dtype)
    return a @ adjoint(a) + np.eye(n)


def of(a, requires_grad=False):
    return tt.from_numpy(np.ascontiguousarray(a)).requires_grad_(requires_grad)


def close(got, want, tolerance=1e-9):
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def orthonormal(q):
    close(adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], *[q.shape[-1]] * 2)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [*SIZES, 60])
def test_solutions(n, dtype):
    a, b = drawn((2, n, n), dtype), drawn((2, n, 3), dtype, 1)
    close(linalg.inv(of(a)).numpy(), np.linalg.inv(a))
    close(linalg.solve(of(a), of(b)).numpy(), np.linalg.solve(a, b))
    close(linalg.det(of(a)).numpy(), np.linalg.det(a))
    for got, want in zip(linalg.slogdet(of(a)), np.linalg.slogdet(a)):
        close(got.numpy(), want)
    h = positive(n, dtype)
    factor = linalg.cholesky(of(h))
    close(factor.numpy(), np.linalg.cholesky(h))
    close(linalg.cholesky(of(h), upper=True).numpy(), adjoint(np.linalg.cholesky(h)))
    close(tt.cholesky_solve(of(b), factor).numpy(), np.linalg.solve(h, b))
    close(tt.cholesky_inverse(factor).numpy(), np.linalg.inv(h))


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("n", [56, 57, 80, 81, 130])
def test_solutions_in_single_precision(n, dtype):
    a = (drawn((2, n, n), dtype) + np.sqrt(n) * 3 * np.eye(n)).astype(dtype)
    b = drawn((2, n, 3), dtype, 1).astype(dtype)
    close(linalg.solve(of(a), of(b)).numpy(), np.linalg.solve(a, b), 1e-5)
    close(linalg.inv(of(a)).numpy() @ a, np.broadcast_to(np.eye(n), a.shape), 2e-5)
    close(linalg.qr(of(a)).R.numpy(), np.linalg.qr(a)[1], 2e-4)


def each_alone(f, *arrays):
    """f of batches, and f of each of their matrices: results with equal bits."""
    together = f(*map(of, arrays))
    for i in range(len(arrays[0])):
        for whole, alone in zip(together, f(*(of(a[i]) for a in arrays))):
            np.testing.assert_array_equal(whole[i].numpy(), alone.numpy())


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("m, n", [(1, 1), (3, 3), (5, 9), (9, 5), (16, 16)])
def test_groups_have_the_bits_of_single_matrices(m, n, dtype):
    """Batches of small matrices are computed several at a time, one in each lane of a vector."""
    a = drawn((19, m, n), dtype).astype(dtype)
    each_alone(lambda a: linalg.qr(a), a)
    if m != n:
        return
    a[3, -1] = a[3, 0] * (n > 1)  # singular: its group is computed one by one
    for sides in (1, 2, 7):
        b = drawn((19, n, sides), dtype, 1).astype(dtype)
        each_alone(lambda a, b: linalg.solve_ex(a, b), a, b)
    each_alone(lambda a: linalg.inv_ex(a), a)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("conjugate", [True, False])
def test_lu_solve(left, conjugate, dtype):
    a, b = drawn((2, 4, 4), dtype), drawn((2, 4, 4), dtype, 1)
    x = linalg.lu_solve(*linalg.lu_factor(of(a)), of(b), left=left, adjoint=conjugate).numpy()
    m = adjoint(a) if conjugate else a
    close(m @ x if left else x @ m, b)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (3, 6), (6, 3), (2, 5, 1), (1, 4), (30, 20)])
def test_factors(shape, dtype):
    a = drawn(shape, dtype)
    p, lower, upper = linalg.lu(of(a))
    close((p @ lower @ upper).numpy(), a)
    for mode in ("reduced", "complete"):
        q, r = (t.numpy() for t in linalg.qr(of(a), mode))
        close(q @ r, a)
        close(r, np.triu(r), 0)
        orthonormal(q)
    close(linalg.qr(of(a)).R.numpy(), np.linalg.qr(a)[1])  # LAPACK's signs
    for full in (False, True):
        u, s, vh = (t.numpy() for t in linalg.svd(of(a), full))
        k = s.shape[-1]
        close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], a)
        close(s, np.linalg.svd(a, compute_uv=False))
        orthonormal(u)
        orthonormal(adjoint(vh))
    close(linalg.pinv(of(a)).numpy(), np.linalg.pinv(a))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_eigenvalues(n, dtype):
    h = positive(n, dtype)
    w, v = (t.numpy() for t in linalg.eigh(of(h)))
    close(w, np.linalg.eigvalsh(h))
    close(h @ v, v * w[..., None, :], 1e-8)
    orthonormal(v)
    a = drawn((2, n, n), dtype)
    w, v = (t.numpy() for t in linalg.eig(of(a)))
    close(a @ v, v * w[..., None, :])
    close(np.linalg.norm(v, axis=-2), np.ones((2, n)))
    close(np.sort_complex(w.round(6)), np.sort_complex(np.linalg.eigvals(a).round(6)), 1e-5)
    if dtype == "float64":  # conjugates are equal to the last bit
        assert sorted(map(complex, w.ravel()), key=str) == sorted(
            map(complex, w.conj().ravel()), key=str
        )


def test_eigenvalues_of_special_matrices():
    jordan = np.array([[2.0, 1, 0], [0, 2, 1], [0, 0, 2]])
    close(linalg.eigvals(of(jordan)).numpy(), [2, 2, 2])
    shift = np.roll(np.eye(6), 1, 0)
    close(
        np.sort(np.angle(linalg.eigvals(of(shift)).numpy() * np.exp(0.1j))),
        np.sort(np.angle(np.exp(2j * np.pi * np.arange(6) / 6 + 0.1j))),
    )
    close(linalg.eigvals(of(np.zeros((3, 3)))).numpy(), np.zeros(3))
    for scale in (1e-300, 1e300):
        close(linalg.eigvalsh(of(scale * np.array([[2.0, 1], [1, 2]]))).numpy() / scale, [1, 3])
        values = linalg.eigvals(of(scale * np.array([[2.0, 1], [1, 2]]))).numpy() / scale
        close(np.sort_complex(values), [1, 3])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("hermitian", [True, False])
@pytest.mark.parametrize("n", SIZES)
def test_ldl(n, hermitian, dtype):
    a, b = drawn((2, n, n), dtype), drawn((2, n, 3), dtype, 1)
    a = a + (adjoint(a) if hermitian else np.swapaxes(a, -1, -2))
    factors, pivots = linalg.ldl_factor(of(a), hermitian=hermitian)
    x = linalg.ldl_solve(factors, pivots, of(b), hermitian=hermitian)
    close(a @ x.numpy(), b, 1e-8)


def hermitian_part(x):
    return (x + x.mH) / 2


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: linalg.cholesky(hermitian_part(x) + 4 * tt.eye(3, dtype=x.dtype)),
        lambda x: tt.cholesky_inverse(linalg.cholesky(x @ x.mH + tt.eye(3, dtype=x.dtype))),
        lambda x: tt.cholesky_solve(x, linalg.cholesky(x @ x.mH + tt.eye(3, dtype=x.dtype))),
        lambda x: linalg.eigvalsh(hermitian_part(x)),
        lambda x: linalg.eigh(hermitian_part(x)).eigenvectors.abs(),
        lambda x: linalg.eigvals(x).abs(),
        lambda x: linalg.eig(x).eigenvectors.abs(),
        lambda x: linalg.svd(x).U.abs(),
        lambda x: linalg.svdvals(x),
        lambda x: linalg.det(x),
        lambda x: linalg.slogdet(x).logabsdet,
        lambda x: linalg.slogdet(x).sign,
        lambda x: linalg.inv(x),
        lambda x: linalg.solve(x, x.mT, left=False),
        lambda x: linalg.pinv(x[:2]),
        lambda x: linalg.qr(x).R,
        lambda x: linalg.qr(x[:, :2]).Q,
        lambda x: linalg.qr(x[:2]).R,
        lambda x: linalg.lu_factor(x).LU,
        lambda x: linalg.matrix_exp(x),
        lambda x: linalg.matrix_power(x, -2),
        lambda x: linalg.lstsq(x[:, :2], x, driver="gelsd").residuals,
        lambda x: linalg.norm(x, 2),
        lambda x: linalg.cond(x, "fro"),
        lambda x: linalg.householder_product(x, x[0]),
    ],
)
def test_gradients(function, dtype):
    x = of(drawn((3, 3), dtype, 3), True)
    assert tt.autograd.gradcheck(function, [x])
    assert tt.autograd.gradgradcheck(function, [x])


def test_gradient_of_singular_determinants():
    a = of(np.array([[[1.0, 2, 3], [2, 4, 6], [1, 0, 1]], [[1, 2, 3], [0, 1, 4], [5, 6, 0]]]), True)
    (g,) = tt.autograd.grad([linalg.det(a).sum()], [a])
    cofactors = [[4.0, 4, -4], [-2, -2, 2], [0, 0, 0]]
    close(g.numpy()[0], cofactors)
    close(
        g.numpy()[1], np.linalg.det(a.detach().numpy()[1]) * np.linalg.inv(a.detach().numpy()[1]).T
    )


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: linalg.inv(tt.zeros(2, 3, 3)), "matrix 0 of self is singular: U[0][0]"),
        (lambda: linalg.solve(tt.ones(2, 2), tt.ones(2)), "self is singular: U[1][1]"),
        (lambda: linalg.cholesky(-tt.eye(2)), "is not positive definite"),
        (lambda: linalg.eigh(tt.full((2, 2), float("nan"))), "has no result"),
        (lambda: linalg.svd(tt.full((2, 2), float("nan"))), "has no result"),
        (lambda: linalg.inv_ex(tt.zeros(2, 2), check_errors=True), "is singular"),
    ],
)
def test_errors(call, text):
    with pytest.raises(linalg.LinAlgError) as raised:
        call()
    assert text in str(raised.value) and isinstance(raised.value, RuntimeError)


def test_pivots_out_of_range():
    with pytest.raises(IndexError):
        linalg.lu_solve(tt.eye(2), tt.tensor([1, 3]), tt.ones(2, 1))


def test_residuals_and_ranks():
    a, b = drawn((5, 2), "float64"), drawn((5, 3), "float64", 1)
    x, residuals, rank, s = linalg.lstsq(of(a), of(b), driver="gelsd")
    want = np.linalg.lstsq(a, b, rcond=None)
    for got, value in zip((x, residuals, rank, s), want):
        close(got.numpy(), value)
    assert linalg.matrix_rank(of(np.outer(a[:, 0], a[:, 1]))).item() == 1


@pytest.mark.parametrize("dtype", [*DTYPES, "float32"])
def test_large_matrices(dtype):
    """Those that LAPACK decomposes, where it is installed."""
    n, tolerance = 140, 1e-3 if dtype == "float32" else 1e-10
    a, b = (drawn(shape, dtype).astype(dtype) for shape in ((2, n, n), (2, n, 3)))
    a += 2 * n**0.5 * np.eye(n, dtype=dtype)  # a condition of about 4
    h = a @ adjoint(a) + np.eye(n, dtype=dtype)
    close(a @ linalg.solve(of(a), of(b)).numpy(), b, tolerance)
    close(a @ linalg.inv(of(a)).numpy(), np.broadcast_to(np.eye(n), (2, n, n)), tolerance)
    for got, want in zip(linalg.slogdet(of(a)), np.linalg.slogdet(a)):
        close(got.numpy(), want, tolerance)
    x = linalg.lu_solve(*linalg.lu_factor(of(a)), of(b), adjoint=True).numpy()
    close(adjoint(a) @ x, b, tolerance)
    p, lower, upper = linalg.lu(of(a[:, :, 5:]))
    close((p @ lower @ upper).numpy(), a[:, :, 5:], tolerance)
    for triangle in (False, True):
        factor = linalg.cholesky(of(h), upper=triangle).numpy()
        square = adjoint(factor) @ factor if triangle else factor @ adjoint(factor)
        np.testing.assert_allclose(square, h, atol=tolerance)
    q, r = (t.numpy() for t in linalg.qr(of(a[:, :, 5:])))
    close(q @ r, a[:, :, 5:], tolerance)
    w, v = (t.numpy() for t in linalg.eigh(of(h)))
    np.testing.assert_allclose(h @ v, v * w[:, None, :], atol=tolerance)
    w, v = (t.numpy() for t in linalg.eigh(of(h), "U"))
    np.testing.assert_allclose(h @ v, v * w[:, None, :], atol=tolerance)
    w, v = (t.numpy() for t in linalg.eig(of(a)))
    close(a @ v, v * w[:, None, :], tolerance)
    u, s, vh = (t.numpy() for t in linalg.svd(of(a[:, 5:])))
    close((u * s[:, None, :]) @ vh[:, : n - 5], a[:, 5:], tolerance)


def special_matrices(n, dtype):
    """Symmetric ones."""
    a = drawn((n, n), "float64")
    q = np.linalg.qr(a)[0]
    far = 1e-36 if dtype == "float32" else 1e-300
    fall = np.logspace(0, -30 if dtype == "float32" else -200, n)
    yield a + a.T
    yield np.outer(a[0], a[0])
    yield np.zeros((n, n))
    yield 3 * np.eye(n)
    yield (a + a.T) * far
    yield (a + a.T) / far
    yield fall[:, None] * (a + a.T) * fall
    yield (q * np.repeat([1, 2, 3, 4], n)[:n]) @ q.T
    yield np.eye(n) + np.outer(a[0], a[0])
    yield (q * (1 + 1e-9 * np.arange(n))) @ q.T
    yield np.ones((n, n))
    beside = np.ones(n - 1)
    yield np.diag(np.abs(np.arange(n) - n // 2)) + np.diag(beside, 1)  # Wilkinson's
    beside[20::21] = 1e-7
    yield np.diag(np.abs(np.arange(n) % 21 - 10)) + np.diag(beside, 1)  # glued ones
    yield np.diag(fall) + np.diag(np.where(np.arange(n - 1) % 5 == 2, 0, fall[1:]), 1)
    yield np.diag(np.arange(n) % 3 - 1.0) + np.diag(np.arange(n - 1) % 2, 1)


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_large_hermitian_matrices(dtype):
    """The symmetric ones between diagonal matrices of phases."""
    n, limit = 101, 100 * np.finfo(dtype).eps
    single = "float32" if dtype == "complex64" else "float64"
    phases = np.exp(1j * np.arange(n) ** 2)
    for h in special_matrices(n, single):
        h = phases[:, None] * ((h + h.T) / 2) * phases.conj()
        h = (np.tril(h, -1) + np.tril(h, -1).conj().T + np.diag(h.diagonal().real)).astype(dtype)
        size = float(max(np.abs(h.real).max(), np.abs(h.imag).max())) or 1.0
        exact = h.real.astype("float64") / size + 1j * (h.imag.astype("float64") / size)
        norm = np.linalg.norm(exact, 2)
        odd_diagonal = 1j * np.eye(n, dtype=dtype)  # its imaginary part is not read
        for triangle, other in (("L", np.triu), ("U", np.tril)):
            one_triangle = h + other(np.full((n, n), 1e30, dtype), 1 if triangle == "L" else -1)
            w, v = (t.numpy() for t in linalg.eigh(of(one_triangle + odd_diagonal), triangle))
            w, v = w.astype("float64") / size, v.astype("complex128")
            assert np.abs(exact @ v - v * w).max() <= limit * norm
            assert np.abs(v.conj().T @ v - np.eye(n)).max() <= limit
            alone = linalg.eigvalsh(of(one_triangle), triangle).numpy() / size
            assert np.abs(alone - w).max() <= limit * norm


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_large_special_matrices(dtype):
    n, limit = 101, 100 * np.finfo(dtype).eps
    unit = np.eye(n)
    for h in special_matrices(n, dtype):
        h = h.astype(dtype)
        h = np.triu(h) + np.triu(h, 1).T
        size = float(np.abs(h).max()) or 1.0
        exact = h.astype("float64") / size
        norm = np.linalg.norm(exact, 2)
        one_triangle = np.triu(h) + 1e30 * np.tri(n, k=-1, dtype=dtype)
        w, v = (t.numpy().astype("float64") for t in linalg.eigh(of(one_triangle), "U"))
        assert np.abs(exact @ v - v * (w / size)).max() <= limit * norm
        assert np.abs(v.T @ v - unit).max() <= limit
        for a in (h, h[:70], h[:, :70]):
            u, s, vh = (t.numpy().astype("float64") for t in linalg.svd(of(a), False))
            k = len(s)
            kept = exact[: a.shape[0], : a.shape[1]]
            assert np.abs((u * (s / size)) @ vh - kept).max() <= limit * norm
            assert np.abs(u.T @ u - unit[:k, :k]).max() <= limit
            assert np.abs(vh @ vh.T - unit[:k, :k]).max() <= limit


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "complex64"])
@pytest.mark.parametrize("shape", [(131, 200), (200, 131), (160, 160), (57, 57), (64, 60)])
def test_large_factors(shape, dtype):
    """P L U is also compared by |P| |L| |U|, which bounds what rounding does to a product of
    factors (Higham, "Accuracy and Stability of Numerical Algorithms", theorem 9.3)."""
    eps = np.finfo(dtype).eps
    limit = 200 * eps
    wide = "complex128" if dtype.startswith("complex") else "float64"
    largest = 1 if wide == "float64" else 1.4143  # complex pivots: the largest |re| + |im|
    m, n = shape
    k = min(shape)
    for scale in (1, 2.0**-123 if dtype in ("float32", "complex64") else 2.0**-997):
        a = (drawn(shape, wide) * scale).astype(dtype)
        lu, pivots, info = linalg.lu_factor_ex(of(a))
        p, lower, upper = (t.numpy().astype(wide) for t in tt.lu_unpack(lu, pivots))
        exact = a.astype(wide) / scale
        assert int(info) == 0 and np.abs(lower).max() <= largest
        error = np.abs(p @ lower @ (upper / scale) - exact)
        assert error.max() <= limit
        assert (error <= 2 * eps * np.abs(p) @ np.abs(lower) @ np.abs(upper / scale)).all()
        for mode, columns in (("reduced", k), ("complete", m)):
            q, r = (t.numpy().astype(wide) for t in linalg.qr(of(a), mode))
            assert np.abs(q @ (r / scale) - exact).max() <= limit
            assert np.abs(adjoint(q) @ q - np.eye(columns)).max() <= limit
    singular = tt.zeros(*shape, dtype=getattr(tt, dtype))
    assert int(linalg.lu_factor_ex(singular)[2]) == 1
    assert np.isnan(linalg.qr(singular + float("nan")).R.numpy()).any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [1, 2, 3, 8, 11, 16])
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (5, 5), (12, 7), (7, 16), (20, 20), (200, 4)])
def test_singular_values_of_batches(shape, batch, dtype):
    """Several matrices share vectors, one per lane."""
    a = drawn((batch, *shape), dtype, 11)
    a[batch // 2] *= 1e-200
    a[-1, :, 0] = 0
    if batch > 2:
        a[1] = 0
        a[2] *= 1e250
    u, s, vh = (t.numpy() for t in linalg.svd(of(a), full_matrices=False))
    orthonormal(u)
    orthonormal(adjoint(vh))
    for k in range(batch):
        scale = np.abs(a[k]).max() or 1
        close((u[k] * (s[k] / scale)) @ vh[k], a[k] / scale)
        close(s[k] / scale, np.linalg.svd(a[k] / scale, compute_uv=False))
        alone = linalg.svdvals(of(a)).numpy()[k] / scale
        close(alone, s[k] / scale)
    assert (s >= 0).all() and (np.diff(s, axis=-1) <= 0).all()


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("shape", [(16, 16), (9, 5), (5, 9), (1, 1)])
def test_singular_values_of_graded_matrices_in_a_batch(shape, dtype):
    """Also small ones have float32's precision, and no matrix changes another one's bits."""
    a = drawn((19, *shape), "complex128" if dtype == "complex64" else "float64", 17)
    k = min(shape)
    a[::3] *= 10.0 ** -np.linspace(0, 8, shape[-1])
    a[1] = 0
    a[4, -1] = a[4, 0]  # of lower rank, if there are several rows
    a = a.astype(dtype)
    order = np.random.default_rng(1).permutation(19)
    u, s, vh = linalg.svd(of(a), full_matrices=False)
    for x, y in zip((u, s, vh), linalg.svd(of(a[order]), full_matrices=False)):
        assert (x.numpy()[order] == y.numpy()).all()
    u, s, vh = (t.numpy() for t in (u, s, vh))
    assert (np.diff(s, axis=-1) <= 0).all() and (s >= 0).all()
    for q in (u, adjoint(vh)):
        assert np.abs(adjoint(q) @ q - np.eye(k)).max() < 2e-6
    assert np.abs((u * s[:, None]) @ vh - a).max() < 5e-6
    wide = "complex128" if dtype == "complex64" else "float64"
    for values in (s, linalg.svdvals(of(a)).numpy()):
        for i in range(0, 19, 3):
            want = np.linalg.svd(a[i].astype(wide), compute_uv=False)
            limit = 1e-6 if shape[0] >= shape[1] else 1
            assert (np.abs(values[i] - want) <= limit * want).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(16, 16), (24, 7), (7, 24), (2, 2), (40, 1), (1, 3)])
def test_values_of_hard_matrices_in_a_batch(shape, dtype):
    """Each has the error of LAPACK beside its largest value, whatever is in the other lanes."""
    m, n = shape
    k = min(shape)
    wide = "complex128" if dtype.startswith("complex") else "float64"
    i, j = np.arange(m)[:, None], np.arange(n)
    noise = drawn((5, m, n), wide, 3)
    left = np.linalg.qr(drawn((5, m, k), wide, 4))[0]
    right = adjoint(np.linalg.qr(drawn((5, n, k), wide, 5))[0])
    q = np.arange(k)
    spectra = [10.0**-q, 2.0**-q, 1 + 1e-9 * q, np.where(q == 0, 1, 1e-7), (q < 2) * 1.0]
    hard = [(left[r] * s) @ right[r] for r, s in enumerate(spectra)]
    hard += [noise[0] * 10.0 ** (-0.7 * (i + j)), noise[1] * 10.0 ** (0.7 * (i + j - m - n))]
    hard += [noise[2] * 10.0**-j, noise[3] * (i == j), noise[4] * 1e-30, 0 * noise[0]]
    hard += [np.ones(shape), np.eye(m, n) + np.eye(m, n, k=1), np.eye(m, n)[::-1]]
    hard += [np.triu(-0.9 * np.ones(shape), 1) + np.eye(m, n), np.tril(np.ones(shape))]
    hard += [1 / (1.0 + i + j), noise[1] * (noise[0].real > 1), noise[2] * 1e30]
    a = np.stack([np.asarray(x, wide) for x in hard]).astype(dtype)
    got = linalg.svdvals(of(a)).numpy()
    want = np.linalg.svd(a.astype(wide), compute_uv=False)
    limit = 8 * np.sqrt(k) * np.finfo(dtype).eps * want[:, :1]
    assert (np.abs(got - want) <= limit).all()
    assert (np.diff(got, axis=-1) <= 0).all() and (got >= 0).all()
    order = np.random.default_rng(1).permutation(len(a))
    assert (linalg.svdvals(of(a[order])).numpy() == got[order]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("shape", [(131, 200), (200, 131), (160, 160), (2, 30, 9), (4, 6)])
def test_singular_values_without_vectors(shape, dtype):
    tiny = 1e-37 if dtype == "float32" else 1e-300
    for scale in (1, tiny):
        a = (drawn(shape, dtype if dtype.startswith("complex") else "float64", 13) * scale).astype(
            dtype
        )
        want = np.linalg.svd(a.astype("complex128") / scale, compute_uv=False)
        alone = linalg.svdvals(of(a)).numpy()
        with_vectors = linalg.svdvals(of(a, requires_grad=True))
        limit = 100 * np.finfo(dtype).eps * want.max()
        assert with_vectors.requires_grad
        assert np.abs(alone / scale - want).max() <= limit
        assert np.abs(with_vectors.detach().numpy() / scale - want).max() <= limit
    a[..., 1, 2] = np.inf
    with pytest.raises(linalg.LinAlgError):
        linalg.svdvals(of(a))
    assert not linalg.svdvals(tt.zeros(*shape)).any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("n", [1, 2, 5, 16, 33])
def test_eigenvalues_of_batches(n, upper, dtype):
    """Eight matrices share vectors, one per lane; those that are left over do not."""
    a = drawn((19, n, n), dtype, 14)
    a += adjoint(a)
    a[1] = np.eye(n)
    a[2] = 0
    a[3] = 1  # of rank one: what is left of it by rounding must not stop the iteration
    a[4, n // 2 :] = a[4, :, n // 2 :] = 0
    graded = 10.0 ** -np.arange(n)
    a[5] *= graded[:, None] * graded
    a[6] *= 1e-250
    a[9] *= 1e250
    half = np.triu(a) + np.tril(np.full(a.shape, 7), -1)
    if not upper:
        half = np.tril(a) + np.triu(np.full(a.shape, 7), 1)
    values = linalg.eigvalsh(of(half), UPLO="LU"[upper]).numpy()
    w, v = (t.numpy() for t in linalg.eigh(of(half), UPLO="LU"[upper]))
    orthonormal(v)
    for k in range(19):
        scale = np.abs(a[k]).max() or 1
        exact = a[k] / scale
        close((v[k] * (w[k] / scale)) @ adjoint(v[k]), exact, 1e-12)
        close(w[k] / scale, np.linalg.eigvalsh(exact), 1e-12)
        close(values[k] / scale, w[k] / scale, 1e-12)
    half[5, 0, 0] = np.nan
    with pytest.raises(linalg.LinAlgError, match="matrix 5 of"):
        linalg.eigvalsh(of(half))


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("n", [1, 4, 7, 16])
def test_eigenvalues_of_batches_in_single_precision(n, dtype):
    """In every group of a batch, full or not, a matrix gets the same bits."""
    a = drawn((19, n, n), dtype, 15)
    a = (a + adjoint(a)).astype(dtype)
    a[3] = 0
    w, v = linalg.eigh(of(a))
    order = np.random.default_rng(1).permutation(19)
    for x, y in zip((w, v), linalg.eigh(of(a[order]))):
        assert (x.numpy()[order] == y.numpy()).all()
    assert (w - linalg.eigvalsh(of(a))).abs().max() < 1e-5
    w, v = w.numpy(), v.numpy()
    assert np.abs(adjoint(v) @ v - np.eye(n)).max() < 2e-6
    assert np.abs((v * w[:, None]) @ adjoint(v) - a).max() < 2e-5
    wide = "complex128" if dtype == "complex64" else "float64"
    assert np.abs(np.linalg.eigvalsh(a.astype(wide)) - w).max() < 1e-6
    a[18, 0, 0] = np.inf
    with pytest.raises(linalg.LinAlgError, match="matrix 18 of"):
        linalg.eigh(of(a))


def test_a_matrix_of_a_batch_that_is_not_finite():
    a = drawn((9, 4, 4), "float64", 12)
    a[3, 1, 1] = np.nan
    norms = tt.nuclear_norm(of(a), (1, 2)).numpy()
    assert np.isnan(norms[3]) and np.isfinite(np.delete(norms, 3)).all()
    with pytest.raises(linalg.LinAlgError):
        linalg.svd(of(a))


def bits(x):
    """The parts of a tensor's numbers as integers, one for all nan."""
    parts = (tt.view_as_real(x) if x.is_complex() else x).double()
    return tt.where(parts.isnan(), 0.5, parts).contiguous().view(tt.int64)


def agree(function, *batches):
    """Whether each matrix of a batch has the bits that it has by itself."""
    count = len(batches[0])
    every = function(*batches)
    for i in range(count):
        alone = function(*[x[i : i + 1].contiguous() for x in batches])
        for a, b in zip(every, alone):
            if not bits(a[i]).equal(bits(b[0])):
                return False
    return True


@pytest.mark.parametrize("m, n", [(1, 1), (3, 3), (7, 4), (4, 7), (16, 16), (17, 17)])
@pytest.mark.parametrize("dtype", [tt.float32, tt.float64, tt.complex64, tt.complex128])
def test_matrices_of_a_batch_have_the_bits_of_single_ones(m, n, dtype):
    tt.manual_seed(m)
    a = tt.randn(11, m, n, dtype=dtype)
    a[2] = 0  # a matrix that ends a group's own way
    assert agree(lambda x: tt.linalg.qr(x, mode="complete"), a) and agree(tt.geqrf, a)
    assert agree(tt.linalg.lu_factor_ex, a)
    a[3, 0] = np.nan
    a[4, 0, 0] = np.inf
    assert agree(tt.linalg.qr, a) and agree(tt.linalg.lu_factor_ex, a)
    if m != n:
        return
    positive = a @ a.mH + tt.eye(n, dtype=dtype)
    assert agree(tt.linalg.cholesky_ex, positive)
    positive[:8] = positive[9]
    assert agree(lambda x: tt.linalg.cholesky_ex(x, upper=True), positive)
    for k in (1, 2, 5, 11):
        b = tt.randn(11, n, k, dtype=dtype)
        assert agree(lambda x, y: tt.linalg.solve_ex(x, y), a, b)
        for upper in (False, True):
            for unit in (False, True):
                options = {"upper": upper, "unitriangular": unit}
                solve = lambda x, y: (tt.linalg.solve_triangular(x, y, **options),)
                assert agree(solve, a, b)


def same_vectors(got, want):
    """Columns, with their signs and phases. Where values are close, vectors of float32 are not."""
    differ = np.abs(got - want).max(-2) > 0.05
    assert differ.mean() <= 0.04


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(26, 26), (40, 40), (70, 70), (9, 33, 33)])
@pytest.mark.parametrize("triangle", ["L", "U"])
def test_eigenvectors_have_the_signs_of_lapack(triangle, shape, dtype):
    a = drawn(shape, dtype).astype(dtype)
    h = a + adjoint(a)
    vectors = linalg.eigh(of(h), UPLO=triangle).eigenvectors.numpy()
    same_vectors(vectors, np.linalg.eigh(h, triangle)[1])


@pytest.mark.parametrize("dtype", DTYPES)  # in float32, steps of small ones depend on roundings
@pytest.mark.parametrize("n", [3, 8, 20, 33, 70])
def test_singular_vectors_have_the_signs_of_lapack(n, dtype):
    a = drawn((n, n), dtype).astype(dtype)
    u, _, vh = linalg.svd(of(a))
    left, _, right = np.linalg.svd(a)
    same_vectors(u.numpy(), left)
    same_vectors(adjoint(vh.numpy()), adjoint(right))


# PyTorch's (MKL's) signs of the columns of eigenvectors of 3 to 25 rows.
SIGNS = {
    "L": ["-+++++", "++----", "---++-", "++--++", "++++++", "-++-+-"],
    "U": ["+-----", "--++++", "---++-", "++--++", "++++++", "+--+-+"],
}


@pytest.mark.parametrize("batch", [(), (9,)])
@pytest.mark.parametrize("triangle", SIGNS)
def test_eigh_has_the_signs_of_pytorch(triangle, batch):
    i = tt.arange(6.0, dtype=tt.float64)
    a = (tt.sin(3 * i[:, None] * i + 1) + i.diag()).expand(*batch, 6, 6)
    vectors = tt.linalg.eigh(a, UPLO=triangle)[1].reshape(-1, 6, 6)
    for matrix in vectors:
        found = ["".join("+" if x > 0 else "-" for x in row) for row in matrix.mT.tolist()]
        assert found == SIGNS[triangle]


# Most numbers beside the diagonal become as small as their squares can be, at different steps.
@pytest.mark.parametrize("batch", [(), (9,)])
@pytest.mark.parametrize("n", [5, 20, 25, 31])
def test_eigenvectors_of_equal_rows_are_orthogonal(batch, n):
    vectors = tt.linalg.eigh(tt.ones(*batch, n, n, dtype=tt.float64))[1].numpy()
    products = np.swapaxes(vectors, -1, -2) @ vectors
    assert np.abs(products - np.eye(n)).max() < 1e-14
