"""Functions of one tensor beyond the op table of the C tests: complex numbers and
their derivatives, dtypes, refusals."""
import numpy as np
import pytest
import tt

COMPLEX = [
    "abs",
    "sqrt",
    "rsqrt",
    "square",
    "reciprocal",
    "exp2",
    "expm1",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
]
NUMPY = {"asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "rsqrt": lambda z: 1 / np.sqrt(z)}


def values(seed, n=6, real=False):
    g = np.random.default_rng(seed)
    return g.normal(size=n) if real else g.normal(size=n) + 1j * g.normal(size=n)


def apply(name, x):
    return getattr(tt, name)(tt.from_numpy(x.copy())).numpy().copy()


def gradients(name, x, g, v):
    """The gradient of x for the cotangent g, and the gradients of that for v, with respect to x and
    g."""
    x, g, v = (tt.from_numpy(a.copy()) for a in (x, g, v))
    x.requires_grad_(True), g.requires_grad_(True)
    (first,) = tt.autograd.grad([getattr(tt, name)(x)], [x], [g], create_graph=True)
    return [t.detach().numpy().copy() for t in (first, *tt.autograd.grad([first], [x, g], [v]))]


def differences(f, x, cotangent, h=1e-6):
    """dL/d(re x) + i dL/d(im x) of L = Re <cotangent, f(x)>, which is PyTorch's gradient."""
    out = np.zeros_like(x)
    for i in range(x.size):
        for unit in (1, 1j) if np.iscomplexobj(x) else (1,):
            step = np.zeros_like(x)
            step[i] = h * unit
            out[i] += (
                np.sum((np.conj(cotangent) * (f(x + step) - f(x - step))).real) / (2 * h) * unit
            )
    return out


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_values(name):
    z = values(1, 200)
    want = NUMPY.get(name, getattr(np, name, None))(z)
    np.testing.assert_allclose(apply(name, z), want, rtol=1e-12)
    narrow = z.astype(np.complex64)
    got = apply(name, narrow)
    assert got.dtype == (np.float32 if name == "abs" else np.complex64)
    np.testing.assert_allclose(
        got, NUMPY.get(name, getattr(np, name, None))(narrow.astype(complex)), rtol=1e-6
    )


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_derivatives(name):
    x, g, v = values(2), values(3, real=name == "abs"), values(4)
    first, by_x, by_g = gradients(name, x, g, v)
    np.testing.assert_allclose(
        first, differences(lambda a: apply(name, a), x, g), rtol=1e-6, atol=1e-6
    )
    np.testing.assert_allclose(
        by_x, differences(lambda a: gradients(name, a, g, v)[0], x, v), rtol=1e-6, atol=1e-6
    )
    np.testing.assert_allclose(
        by_g, differences(lambda a: gradients(name, x, a, v)[0], g, v), rtol=1e-6, atol=1e-6
    )


def test_modulus_at_zero_has_no_slope():
    x = tt.from_numpy(np.zeros(2, complex)).requires_grad_(True)
    assert (
        tt.autograd.grad([tt.abs(x)], [x], [tt.ones((2,), dtype=tt.float64)])[0].numpy() == 0
    ).all()


def test_tests_of_complex_numbers_look_at_both_parts():
    z = np.array(
        [1 + 1j, complex(np.nan, 0), complex(0, np.nan), complex(np.inf, 1), complex(1, -np.inf)]
    )
    assert apply("isnan", z).tolist() == [False, True, True, False, False]
    assert apply("isinf", z).tolist() == [False, False, False, True, True]
    assert apply("isfinite", z).tolist() == [True, False, False, False, False]


def test_dtypes():
    assert tt.square(tt.ones((2,), dtype=tt.bool)).dtype == tt.int64
    assert tt.sign(tt.ones((2,), dtype=tt.bool)).dtype == tt.bool
    assert tt.floor(tt.ones((2,), dtype=tt.int16)).dtype == tt.int16
    assert tt.sin(tt.ones((2,), dtype=tt.int16)).dtype == tt.float32
    out = tt.empty((2,), dtype=tt.float32)
    assert tt.abs(
        tt.from_numpy(np.array([3 + 4j, -1j], np.complex64)), out=out
    ).numpy().tolist() == [5, 1]


def test_refusals():
    z, whole = tt.ones((2,), dtype=tt.complex64), tt.ones((2,), dtype=tt.int32)
    for call in (z.abs_, z.floor, z.sign, whole.sqrt_, tt.ones((2,), dtype=tt.bool).abs):
        with pytest.raises(RuntimeError):
            call()
    with pytest.raises(NotImplementedError):
        tt.round(whole, decimals=1)
    assert tt.round(whole, decimals=0).dtype == tt.int32
