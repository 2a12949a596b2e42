"""Fourier transforms beyond the op table of the C tests: complex signals of every kind
of length beside numpy's, strides, derivatives, errors."""
import numpy as np
import pytest
import tt

# 1, primes with and without code, Bluestein's, powers, products, lengths in two steps, long ones
LENGTHS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 30, 31, 49, 61, 64, 67, 71, 97, 122, 128, 134]
LENGTHS += [210, 243, 256, 360, 500, 512, 625, 1000, 1009, 1024, 1155, 2018, 2048, 2187, 4099, 6561]
LENGTHS += [8192, 10007, 12288, 20014, 65536, 100000, 131072]
NORMS = ["backward", "ortho", "forward"]
ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
SEVERAL = ["fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"]
TYPES = {"f32": (np.float32, np.complex64, 1e-6), "f64": (np.float64, np.complex128, 1e-15)}


def signal(shape, real, dtypes, seed=0):
    g = np.random.default_rng(seed)
    x = g.normal(size=shape)
    return (x if real else x + 1j * g.normal(size=shape)).astype(dtypes[0] if real else dtypes[1])


def is_near(got, want, epsilon):
    """Errors are relative to the largest element, and grow with the logarithm of the length."""
    got = got.numpy()
    assert got.shape == want.shape
    scale = np.abs(want).max(initial=0) + 1e-30
    assert np.abs(got - want).max(initial=0) / scale < epsilon * (2 + np.log2(want.size + 1))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", ONE)
def test_lengths(name, kind):
    *dtypes, epsilon = TYPES[kind]
    for n in LENGTHS:
        for rows in (1, 3, 18) if n < 3000 else (1, 5):
            x = signal((rows, n), name in ("rfft", "ihfft"), dtypes, n)
            if n == 1 and name in ("irfft", "hfft"):
                continue
            want = getattr(np.fft, name)(x.astype(np.complex128) if np.iscomplexobj(x) else x)
            got = getattr(tt.fft, name)(tt.from_numpy(x))
            assert got.numpy().dtype == dtypes[0 if name in ("irfft", "hfft") else 1]
            is_near(got, want, epsilon)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ONE)
def test_arguments(name, norm):
    *dtypes, epsilon = TYPES["f64"]
    x = signal((4, 6, 19, 5), name in ("rfft", "ihfft"), dtypes)
    for axis in (0, 1, 2, 3, -2):
        for n in (None, 1, 2, 5, 6, 7, 67, 134, 256):
            want = getattr(np.fft, name)(x, n, axis, norm)
            is_near(getattr(tt.fft, name)(tt.from_numpy(x), n, axis, norm), want, epsilon)


@pytest.mark.parametrize("name", SEVERAL)
def test_several_dimensions(name):
    *dtypes, epsilon = TYPES["f64"]
    x = signal((4, 6, 9), name.startswith("r"), dtypes)
    for s, axes in ((None, (0, 2)), ((3, 8), (2, 0)), ((6, 5), (1, 2)), (None, (1, 2))):
        for norm in NORMS:
            want = getattr(np.fft, name)(x, s, axes, norm)
            is_near(getattr(tt.fft, name)(tt.from_numpy(x), s, axes, norm), want, epsilon)
    if name.endswith("n"):
        is_near(getattr(tt.fft, name)(tt.from_numpy(x)), getattr(np.fft, name)(x), epsilon)


@pytest.mark.parametrize("name", ["hfft2", "ihfft2", "hfftn", "ihfftn"])
def test_hermitian_signals(name):
    x = tt.from_numpy(signal((4, 6), name.startswith("i"), TYPES["f64"][:2]))
    transform = getattr(tt.fft, name)
    if name.startswith("i"):
        want = tt.fft.ifft(tt.fft.ihfft(x), dim=0)
    else:
        want = tt.fft.hfft(tt.fft.fft(x, dim=0))
    is_near(transform(x), want.numpy(), 1e-15)


def test_strided_inputs():
    a = signal((40, 30), False, TYPES["f64"][:2])
    x = tt.from_numpy(a)
    for view, array in ((x.t(), a.T), (x[::2, 3:], a[::2, 3:]), (x[:, ::3], a[:, ::3])):
        is_near(tt.fft.fft(view), np.fft.fft(array), 1e-15)
        is_near(tt.fft.irfft(view, dim=0), np.fft.irfft(array, axis=0), 1e-15)
        is_near(tt.fft.rfft(view.real), np.fft.rfft(array.real), 1e-15)


def test_long_columns():
    a = signal((5000, 3), False, TYPES["f64"][:2])
    is_near(tt.fft.fft(tt.from_numpy(a), dim=0), np.fft.fft(a, axis=0), 1e-15)
    is_near(tt.fft.irfft(tt.from_numpy(a), dim=0), np.fft.irfft(a, axis=0), 1e-15)


def adjoint_defect(transform, x, y):
    """|<y, F dx> - <F* y, dx>| for the recorded gradient F* of a transform that is linear."""
    leaf = tt.from_numpy(x).requires_grad_(True)
    out = transform(leaf)
    (g,) = tt.autograd.grad([out], [leaf], [tt.from_numpy(y.astype(out.detach().numpy().dtype))])
    left = np.vdot(y, out.detach().numpy()).real
    return abs(left - np.vdot(g.numpy(), x).real) / (abs(left) + 1)


@pytest.mark.parametrize("n", [1, 2, 5, 6, 67, 256, 360])
@pytest.mark.parametrize("name", ONE)
def test_gradients_are_adjoints(name, n):
    dtypes = TYPES["f64"][:2]
    for norm in NORMS:
        for length in (n, n + 3):
            x = signal((3, n), name in ("rfft", "ihfft"), dtypes)
            shape = getattr(tt.fft, name)(tt.from_numpy(x), length).shape
            y = signal(shape, name in ("irfft", "hfft"), dtypes, 1)
            f = lambda t: getattr(tt.fft, name)(t, length, norm=norm)  # noqa: E731
            assert adjoint_defect(f, x, y) < 1e-13


def test_stft_and_back():
    g = np.random.default_rng(0)
    x = g.normal(size=(2, 1000))
    for n_fft, hop, win in ((64, 16, 64), (50, 10, 40), (67, 13, 67)):
        window = tt.hann_window(win, dtype=tt.float64)
        y = tt.stft(tt.from_numpy(x), n_fft, hop, win, window, return_complex=True)
        length = (y.shape[-1] - 1) * hop
        back = tt.istft(y, n_fft, hop, win, window, length=length)
        np.testing.assert_allclose(back.numpy(), x[:, :length], atol=1e-12)
        leaf = tt.from_numpy(x).requires_grad_(True)
        z = tt.stft(leaf, n_fft, hop, win, window, return_complex=True)
        back = tt.istft(z, n_fft, hop, win, window, length=length)
        (d,) = tt.autograd.grad([back.sum()], [leaf])
        np.testing.assert_allclose(d.numpy()[:, :length], 1, atol=1e-12)


def test_wrong_arguments():
    x = tt.ones(3, 4)
    f = tt.fft
    for call in (
        lambda: f.fft(x, 0),
        lambda: f.fft(x, norm="twice"),
        lambda: f.fft(tt.ones(0)),
        lambda: f.rfft(x.to(tt.complex64)),
        lambda: f.ihfft(x.to(tt.complex64)),
        lambda: f.irfft(tt.ones(1)),
        lambda: f.fft2(tt.ones(3)),
        lambda: f.fftn(x, (2, 2, 2)),
        lambda: f.fftn(x, (2, 2), (0,)),
        lambda: f.fftn(x, dim=(0, 0)),
        lambda: f.rfftn(tt.ones(())),
        lambda: f.fft(x.to(tt.float16)),
        lambda: f.fft(x, 1 << 60),
        lambda: f.irfft(x, 1 << 62),
        lambda: tt.stft(tt.ones(8), 4),
        lambda: tt.stft(tt.ones(8), 20, return_complex=True, center=False),
        lambda: tt.stft(tt.ones(8), 4, 0, return_complex=True),
        lambda: tt.stft(tt.ones(8), 4, window=tt.ones(3), return_complex=True),
        lambda: tt.istft(tt.ones(3, 2), 4),
        lambda: tt.istft(tt.ones(4, 2, dtype=tt.complex64), 8),
    ):
        with pytest.raises((RuntimeError, MemoryError)):
            call()
    with pytest.raises(IndexError):
        f.fft(tt.ones(()))
    with pytest.raises(IndexError):
        f.fft(x, dim=2)
