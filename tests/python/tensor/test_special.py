"""tt.special: the functions that Python computes by itself, beside 40 digits of mpmath, polynomials
written out, and finite differences."""
from math import fmod, acos, cos, inf, isnan, nan, pi, sin

import pytest
import tt

special = tt.special


def float64(x):
    return tt.tensor(x, dtype=tt.float64)


AT = [0.001, 0.7, 2.05, 4.9, 5.1, 8.5, 33.0]
VALUES = {
    "bessel_j0": [
        0.9999997500000156,
        0.8812008886074053,
        0.19514344422612948,
        -0.20973832758532632,
        -0.1443347470605005,
        0.041939251842934504,
        0.09727067223550946,
    ],
    "bessel_j1": [
        0.0004999999375000026,
        0.32899574154005895,
        0.5730027627066225,
        -0.3146946710151906,
        -0.33709720201823185,
        0.2731219636740537,
        0.10061964911511749,
    ],
    "bessel_y0": [
        -4.471416611375923,
        -0.19066492933739507,
        0.5150266718980248,
        -0.29205459424401414,
        -0.32160244912485947,
        0.27020510536578746,
        0.09913482552087946,
    ],
    "bessel_y1": [
        -636.6221672311394,
        -1.1032498719076334,
        -0.07909322610991577,
        0.18124669204504867,
        0.1137364419774996,
        -0.02616867939853747,
        -0.0957801224197018,
    ],
    "modified_bessel_i0": [
        1.0000002500000156,
        1.1263030183068092,
        2.360998757143559,
        24.914779075837757,
        29.788855440238848,
        683.1619269901156,
        14963796904156.906,
    ],
    "modified_bessel_i1": [
        0.0005000000625000026,
        0.37187967777700864,
        1.666433298695897,
        22.19934862009249,
        26.680435679477117,
        641.6199025400667,
        14735300419212.182,
    ],
    "modified_bessel_k0": [
        7.023688800562382,
        0.6605198599151015,
        0.1071249183735275,
        0.004118936235515889,
        0.0033083102180174644,
        8.625756634932507e-05,
        1.012661232385917e-15,
    ],
    "modified_bessel_k1": [
        999.9962381560856,
        1.0502835353129178,
        0.13099894526215047,
        0.004521169177299838,
        0.003619181462317798,
        9.119724775006898e-05,
        1.0278917122071688e-15,
    ],
    "scaled_modified_bessel_k0": [
        7.030716002378251,
        1.3301236562420555,
        0.8321357719467469,
        0.5531310396037262,
        0.5426353518989783,
        0.4239359993336981,
        0.2173612320297307,
    ],
    "scaled_modified_bessel_k1": [
        1000.9967345590685,
        2.1150113128480523,
        1.017586851826879,
        0.6071468127379164,
        0.5936250463138127,
        0.4482133915630794,
        0.2206303567404213,
    ],
    "spherical_bessel_j0": [
        0.9999998333333416,
        0.9203109817681301,
        0.4328596920162807,
        -0.20050053318863928,
        -0.18153229065249654,
        0.09393966030864592,
        0.030300359397189912,
    ],
}
AIRY = {
    -33.0: 0.23482951883019737,
    -5.1: 0.30952599628731753,
    -2.2: 0.09614537800766901,
    -2.0: 0.22740742820168558,
    0.0: 0.3550280538878172,
    1.5: 0.07174949700810541,
    2.2: 0.02561040442177322,
    8.5: 1.0997009755195506e-08,
}
ODD = ("bessel_j1", "modified_bessel_i1")
EVEN = ("bessel_j0", "modified_bessel_i0", "spherical_bessel_j0")


def near(found, expected, tolerance):
    assert tt.allclose(found, expected, rtol=tolerance, atol=tolerance * 1e-2), (found, expected)


@pytest.mark.parametrize("name", VALUES)
def test_bessel_functions(name):
    f, x, expected = getattr(special, name), float64(AT), float64(VALUES[name])
    near(f(x), expected, 1e-13)
    near(f(x.float()), expected.float(), 1e-5)  # its argument is rounded
    if name in ODD or name in EVEN:
        assert f(-x).equal(-f(x) if name in ODD else f(x))
    else:
        assert f(float64([-1.0])).isnan().all() and abs(f(float64([0.0])).item()) == inf
    assert isnan(f(float64([nan])).item()) and f(tt.empty(0, 2)).shape == (0, 2)
    leaf = float64([0.4, 1.6, 2.5, 4.4, 7.7]).requires_grad_()
    (found,) = tt.autograd.grad(f(leaf).sum(), leaf)
    x, h = leaf.detach(), 1e-6
    near(found, (f(x + h) - f(x - h)) / (2 * h), 1e-6)


def test_airy_function():
    x = float64(list(AIRY))
    near(special.airy_ai(x), float64(list(AIRY.values())), 1e-12)
    assert special.airy_ai(float64([200.0, inf])).tolist() == [0, 0]
    with pytest.raises(NotImplementedError):
        special.airy_ai(x.requires_grad_()).sum().backward()


# by n: p(n) of x, and the trigonometric form for larger n, where x = cos(t)
POLYNOMIALS = {
    "chebyshev_polynomial_t": (lambda x: 4 * x**3 - 3 * x, lambda n, t: cos(n * t)),
    "chebyshev_polynomial_u": (
        lambda x: 8 * x**3 - 4 * x,
        lambda n, t: sin((n + 1) * t) / sin(t),
    ),
    "chebyshev_polynomial_v": (
        lambda x: 8 * x**3 - 4 * x**2 - 4 * x + 1,
        lambda n, t: cos((n + 0.5) * t) / cos(t / 2),
    ),
    "chebyshev_polynomial_w": (
        lambda x: 8 * x**3 + 4 * x**2 - 4 * x - 1,
        lambda n, t: sin((n + 0.5) * t) / sin(t / 2),
    ),
    "hermite_polynomial_h": (lambda x: 8 * x**3 - 12 * x, None),
    "hermite_polynomial_he": (lambda x: x**3 - 3 * x, None),
    "laguerre_polynomial_l": (lambda x: (6 - 18 * x + 9 * x**2 - x**3) / 6, None),
    "legendre_polynomial_p": (lambda x: (5 * x**3 - 3 * x) / 2, None),
}


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name):
    f, (cubic, of_angle) = getattr(special, name), POLYNOMIALS[name]
    x = float64([-1.3, -1.0, -0.4, 0.0, 0.7, 1.0, 2.5])
    near(f(x, 3), cubic(x), 1e-13)
    near(f(x.float(), float64(3.0)), cubic(x.float().double()).float(), 1e-6)
    assert f(x.float(), 3).dtype is tt.float32 and f(tt.tensor([1, 2]), 3).dtype is tt.float32
    mixed = f(x[:, None], tt.tensor([-1, 0, 1, 2, 3]))
    assert mixed[:, 0].equal(0 * x) and mixed[:, 1].equal(0 * x + 1) and mixed.shape == (7, 5)
    for k in (2, 3, 4):
        assert mixed[:, k].equal(f(x, k - 1))
    assert f(0.7, float64([3.9])).item() == f(float64([0.7]), 3).item() and f(x, nan).equal(0 * x)
    if of_angle:
        near(f(float64([0.7]), 40), float64([of_angle(40, acos(0.7))]), 1e-12)
        moved = getattr(special, "shifted_" + name)
        assert moved(x, 5).equal(f(2 * x - 1, 5)) and moved(x.float(), 5).dtype is tt.float32
    if "hermite" in name:
        assert f(x.float(), 129).isnan().all() and not f(x, 100).isnan().any()
    leaf = x.clone().requires_grad_()
    (found,) = tt.autograd.grad(f(leaf, 4).sum(), leaf)
    near(found, (f(x + 1e-6, 4) - f(x - 1e-6, 4)) / 2e-6, 1e-5)


def test_wrong_arguments_and_out():
    out = tt.empty(2)
    assert special.bessel_j0(tt.zeros(2), out=out) is out and out.tolist() == [1, 1]
    assert special.legendre_polynomial_p(tt.ones(2), 4, out=out) is out
    for call in (
        lambda: special.bessel_j0(0.5),
        lambda: special.bessel_y1(tt.ones(2, dtype=tt.complex64)),
        lambda: special.chebyshev_polynomial_t(0.5, 2),
        lambda: special.chebyshev_polynomial_t(tt.ones(2), "2"),
    ):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(ValueError):
        special.laguerre_polynomial_l(tt.ones(2), tt.ones(3))
    with pytest.raises(ValueError, match="order is 1099511627776: must be 0 to 16777216"):
        special.legendre_polynomial_p(tt.ones(2), 2**40)  # minutes for each element


def test_numbers_beside_tensors():
    x = tt.tensor([2.0, 3])
    assert special.zeta(x, 1).tolist() == pytest.approx([pi**2 / 6, 1.2020569], rel=1e-6)
    assert special.zeta(2, x).tolist() == pytest.approx([pi**2 / 6 - 1, 0.3949341], rel=1e-6)
    with pytest.raises(TypeError, match="must be Tensor"):
        special.zeta(2, 3)


def test_zeta_has_derivatives_by_its_second_argument():
    q = float64([0.5, 2.0, -1.5]).requires_grad_()
    s = float64([2.0, 3.5, 3.0])
    assert tt.autograd.gradcheck(lambda q: special.zeta(s, q), q)
    assert tt.autograd.gradgradcheck(lambda q: special.zeta(s, q), q)
    (slope,) = tt.autograd.grad(special.zeta(2, q).sum(), q)
    assert slope.equal(-2 * special.zeta(3, q.detach()))
    with pytest.raises(RuntimeError, match="zeta"):
        special.zeta(s.requires_grad_(), q)
    with pytest.raises(RuntimeError, match="zeta"):  # a result that is given has no history
        special.zeta(s, q.detach(), out=tt.empty(3, dtype=tt.float64))


@pytest.mark.parametrize("name", ["erfinv", "ndtri"])
def test_inverses_return_where_they_came_from(name):
    y = tt.linspace(-0.999, 0.999, 4001, dtype=tt.float64)
    if name == "erfinv":
        assert (tt.erf(tt.erfinv(y)) - y).abs().max().item() < 3e-16
        assert tt.erfinv(-y).equal(-tt.erfinv(y))
        for dtype in (tt.float32, tt.float64):
            assert tt.signbit(tt.erfinv(tt.full((40,), -0.0, dtype=dtype))).all()
    else:
        p = 10 ** (tt.linspace(-300, -0.31, 4001, dtype=tt.float64))
        x = special.ndtri(p)
        near(special.log_ndtr(x), p.log(), 1e-15 * 4)
        assert x.diff().min().item() > 0


def test_orthogonal_polynomials_have_second_derivatives():
    x = float64([-0.7, 0.2, 0.9]).requires_grad_()
    for f in (special.legendre_polynomial_p, special.shifted_chebyshev_polynomial_v):
        assert tt.autograd.gradcheck(lambda x: f(x, 5), x)
        assert tt.autograd.gradgradcheck(lambda x: f(x, 5), x)
    with tt.autograd.forward_ad.dual_level():
        dual = tt.autograd.forward_ad.make_dual(x.detach(), tt.ones_like(x))
        tangent = tt.autograd.forward_ad.unpack_dual(special.bessel_j0(dual)).tangent
    assert tangent.equal(-special.bessel_j1(x.detach()))


HALF_FUNCTIONS = ("sqrt", "rsqrt", "reciprocal", "floor", "ceil", "trunc", "round", "relu")


@pytest.mark.parametrize("dtype", [tt.float16, tt.bfloat16])
@pytest.mark.parametrize("name", HALF_FUNCTIONS)
def test_functions_of_halves_are_those_of_floats_rounded(name, dtype):
    every = tt.arange(2**16, dtype=tt.int32).to(tt.uint16).view(dtype)
    for x in (every, every[::3], every[5:12]):
        expected = getattr(tt, name)(x.float()).to(dtype)
        tt.testing.assert_close(getattr(tt, name)(x), expected, rtol=0, atol=0, equal_nan=True)
    numbers = every[~every.isnan()]
    for low, high in ((-1.5, 2.25), (None, 0.3), (3, None), (2, 1)):
        expected = tt.clamp(numbers.float(), low, high).to(dtype)
        assert tt.clamp(numbers, low, high).equal(expected)


@pytest.mark.parametrize("dtype", [tt.int8, tt.uint8, tt.int16])
def test_functions_of_small_integers_are_those_of_large_ones(dtype):
    info = tt.iinfo(dtype)
    x = tt.arange(info.min, info.max + 1)
    small = x.to(dtype)
    for f in (tt.relu, tt.sign, lambda x: tt.clamp(x, 3, 70), lambda x: tt.clamp(x, max=5)):
        assert f(small).dtype is dtype and f(small).long().equal(f(x))
        assert f(small[::3]).long().equal(f(x[::3])) and f(small[:7]).long().equal(f(x[:7]))
    for low, high in ((-5, 4), (9, 2), (info.min, info.max), (-1000000, 1000000)):
        if info.min < 0 or low >= 0:
            assert tt.clamp(small, low, high).long().equal(tt.clamp(x, low, high))


def test_remainders_of_float64_are_exact():
    a = tt.tensor([7.5, -7.5, 1e300, 5e-324, 1e18, 0.3, tt.inf, 1.0], dtype=tt.float64)
    b = tt.tensor([2.0, 2.0, 3.0, 1.0, 0.7, 0.1, 2.0, 0.0], dtype=tt.float64)
    expected = [fmod(p, q) for p, q in zip(a.tolist()[:6], b.tolist()[:6])]
    for k in range(1, 7):
        assert tt.fmod(a[:k], b[:k]).tolist() == expected[:k]
    assert tt.fmod(a, b)[6:].isnan().all()
