"""Functions that one pass computes have the results of the operators they are composed of."""
import itertools

import numpy
import pytest
import tt


@pytest.mark.parametrize("n", [0, 1, 2, 33, 1000, 1024, 1025, 2049, 20000])
def test_randperm_sorts_random_keys(n):
    tt.manual_seed(n)
    got = tt.randperm(n)
    step = tt.compile(lambda x: x + tt.randperm(n))  # a plan has the sort of keys
    step(tt.zeros(n, dtype=tt.int64))
    tt.manual_seed(n)
    assert tt.equal(got, step(tt.zeros(n, dtype=tt.int64)))
    assert got.sort()[0].tolist() == list(range(n))


@pytest.mark.parametrize("dtype", [tt.float32, tt.float64, tt.int32, tt.int64, tt.int16, tt.bool])
def test_runs_of_equal_neighbours(dtype):
    x = (tt.rand(2500) * 3).floor().to(dtype)  # more than the block that is compared at a time
    runs = [(k, len(list(g))) for k, g in itertools.groupby(x.tolist())]
    values, inverse, counts = tt.unique_consecutive(x, return_inverse=True, return_counts=True)
    assert values.tolist() == [k for k, _ in runs] and counts.tolist() == [n for _, n in runs]
    assert tt.equal(values[inverse], x) and tt.equal(values, tt.unique_consecutive(x))
    assert values.dtype == dtype
    square, inverse = tt.unique_consecutive(x.view(50, 50).t(), return_inverse=True)
    assert inverse.shape == (50, 50) and tt.equal(square[inverse], x.view(50, 50).t())


def test_nan_is_a_run_of_its_own():
    x = tt.tensor([float("nan"), float("nan"), 0.0, -0.0])
    assert tt.unique_consecutive(x, return_counts=True)[1].tolist() == [1, 1, 2]


@pytest.mark.parametrize("bins", [1, 7, 1000])
def test_histogram_between_ends(bins):
    x = numpy.random.default_rng(0).standard_normal(5000)
    x[:4] = [-1.5, 2.5, numpy.nan, numpy.inf]
    weight = numpy.arange(5000) % 17 + 0.25
    got = tt.histogram(tt.tensor(x), bins, range=(-1.5, 2.5), weight=tt.tensor(weight))
    edges = got.bin_edges.numpy()
    good = numpy.isfinite(x)
    want = numpy.histogram(x[good], edges, weights=weight[good])[0]
    numpy.testing.assert_allclose(got.hist.numpy(), want)
    again = tt.histogram(tt.tensor(x), got.bin_edges, weight=tt.tensor(weight))  # searches the bins
    assert tt.equal(got.hist, again.hist)


def test_histogram_of_edges_that_round_to_each_other():
    x = tt.tensor([1.0, 1.0, 1.0 + 2**-23, 1.0 + 2**-22])
    got = tt.histogram(x, 8)
    assert tt.equal(got.hist, tt.histogram(x, got.bin_edges).hist) and got.hist.sum() == 4


@pytest.mark.parametrize("dtype", [tt.float32, tt.float64, tt.bfloat16, tt.uint8])
def test_take_from_strided_tensors(dtype):
    x = tt.arange(24 * 10 * 16).view(24, 10, 16).to(dtype).permute(2, 0, 1)
    index = tt.randint(-x.numel(), x.numel(), (7, 67))  # no multiple of a block
    assert tt.equal(x.take(index), x.contiguous().flatten()[index.flatten()].view(7, 67))


def test_take_and_cross_with_gradients_and_without():
    x = tt.rand(30, 40, 3).permute(2, 0, 1)
    index = tt.tensor([[0, -1], [3599, -3600]])
    recorded = x.clone().requires_grad_()
    assert tt.equal(x.take(index), recorded.take(index))
    assert x.take(index).tolist() == [[v[i] for i in (0, -1)] for v in [x.flatten().tolist()]] + [
        [x.flatten()[-1].item(), x.flatten()[0].item()]
    ]
    with pytest.raises(IndexError):
        x.take(tt.tensor([3600]))
    a, b = tt.rand(100, 3), tt.rand(100, 3)
    assert tt.equal(tt.linalg.cross(a, b), tt.linalg.cross(a.clone().requires_grad_(), b))


@pytest.mark.parametrize("dtype", [tt.float16, tt.bfloat16, tt.float32, tt.float64])
@pytest.mark.parametrize("n", [2, 5, 17, 40, 64, 65])
def test_terms_of_short_rows(dtype, n):
    tolerance = 4 * tt.finfo(dtype).eps
    dense = (tt.arange(20.0 * n).reshape(20, n) * 1.7).cos().to(dtype)
    wide = tt.cat([dense, dense], 1)[:, :n]
    for x in (dense, wide, wide[:, None].expand(20, 3, n), dense.reshape(4, 5, n).mT.mT):
        exact = x.double()
        holes = x.where(x < 0.5, float("nan"))
        numbers = exact.where(exact < 0.5, 0.0).sum(-1)
        for got, expected in (
            (x.norm(dim=-1), exact.square().sum(-1).sqrt()),
            (x.norm(p=1, dim=-1), exact.abs().sum(-1)),
            (holes.nansum(-1), numbers),
            (holes[:, None].expand(x.shape[0], 2, *x.shape[1:]).nansum(-1)[:, 0], numbers),
        ):
            tt.testing.assert_close(got.double(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("dtype", [tt.float32, tt.float64])
def test_gradients_of_sampled_positions(mode, padding, dims, dtype):
    if mode == "bicubic" and dims == 3:
        return
    sizes = (5, 6, 7)[:dims]
    image = tt.randn(2, 3, *sizes, dtype=dtype, requires_grad=True)
    grid = (tt.rand(2, *[9] * dims, dims, dtype=dtype) * 3 - 1.5).requires_grad_()
    for align in (False, True):
        y = tt.nn.functional.grid_sample(image, grid, mode, padding, align)
        g = tt.randn(*y.shape, dtype=dtype)
        plain = tt.autograd.grad(y, grid, g, retain_graph=True)
        recorded = tt.autograd.grad(y, grid, g, create_graph=True)
        tt.testing.assert_close(plain[0], recorded[0], rtol=1e-4, atol=1e-4)
        wide = tt.nn.functional.grid_sample(image.double(), grid.double(), mode, padding, align)
        if mode != "nearest":  # positions halfway between elements round either way
            tt.testing.assert_close(y, wide.to(dtype), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "dtype", [tt.float16, tt.bfloat16, tt.float32, tt.float64, tt.complex64, tt.int64]
)
@pytest.mark.parametrize("n", [1, 31, 3000])
def test_numbers_in_place_of_nan_and_infinities(dtype, n):
    x = (tt.randn(n, dtype=tt.float64) * 3).to(dtype)
    if dtype != tt.int64:
        x[::3], x[1::5], x[2::5] = float("nan"), float("inf"), float("-inf")
    recorded = x.clone().requires_grad_() if dtype != tt.int64 else x
    for numbers in ((), (1.5,), (1.0, 2.0, 3.0), (None, 0.0, None)):
        got = x.nan_to_num(*numbers)
        assert tt.equal(got, recorded.nan_to_num(*numbers)) and got.dtype == dtype
    both = tt.stack([x, x], 1)
    assert tt.equal(both.t().nan_to_num(1, 2, 3)[1], x.nan_to_num(1, 2, 3))


@pytest.mark.parametrize("dtype", [tt.float16, tt.bfloat16, tt.float32, tt.float64, tt.complex64])
@pytest.mark.parametrize("recorded", [True, False])
def test_infinite_numbers_in_place_of_others(dtype, recorded):
    """The number for one is not replaced as another."""
    inf, nan = float("inf"), float("nan")
    x = tt.tensor([nan, inf, -inf, 1.0], dtype=dtype, requires_grad=recorded)
    for numbers in ((inf, 2, 3), (-inf, 2, 3), (5, -inf, inf), (inf, -inf, 3), (5, nan, inf)):
        want = tt.tensor([*numbers, 1.0], dtype=dtype)
        assert tt.allclose(x.nan_to_num(*numbers), want, rtol=0, atol=0, equal_nan=True)
    assert tt.tensor([nan], dtype=tt.float16).nan_to_num(1e6).item() == inf


@pytest.mark.parametrize("dtype", [tt.float16, tt.bfloat16, tt.float32, tt.float64, tt.int64])
@pytest.mark.parametrize("n", [1, 31, 5000])
def test_clamp_between_tensors(dtype, n):
    x, low, high = ((tt.randn(n) * 9).to(dtype) for _ in range(3))
    if dtype != tt.int64:
        x[::7], low[::5], high[::4] = float("nan"), float("nan"), float("nan")
    want = tt.minimum(tt.maximum(x, low), high)
    for got in (x.clamp(low, high), x.clone().clamp_(low, high)):
        assert tt.allclose(got, want, equal_nan=True, rtol=0, atol=0) and got.dtype == dtype
    pairs = [tt.stack([t, t], 1).t() for t in (x, low, high)]
    got = pairs[0].clamp(*pairs[1:])
    assert tt.allclose(got[1], want, equal_nan=True, rtol=0, atol=0) and got.shape == (2, n)


def test_views_whose_base_needs_a_gradient_later():
    base = tt.zeros(4, 3)
    view, index = base.t(), tt.tensor([0, 5])
    assert not view.nan_to_num().requires_grad
    weight = tt.ones(4, 3, requires_grad=True)
    base.add_(weight)  # the view learns of it when it is used
    (view.nan_to_num().sum() + view.clamp(-view.detach(), 9 * view.detach()).sum()).backward()
    assert weight.grad.tolist() == [[2.0] * 3] * 4
    wide = tt.zeros(40, 30)
    rows = wide.t()
    leaf = tt.ones(40, 30, requires_grad=True)
    wide.add_(leaf)
    rows.take(index).sum().backward()
    assert leaf.grad.sum().item() == 2


@pytest.mark.parametrize("dtype", [tt.bfloat16, tt.float32, tt.float64])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_gradient_of_gated_halves(dtype, dim):
    x = (tt.randn(6, 10, 34, dtype=tt.float64) * 4).to(dtype)
    for input in (x, x.mT.contiguous().mT):
        input.requires_grad_()
        y = tt.nn.functional.glu(input, dim)
        g = tt.randn(*y.shape, dtype=tt.float64).to(dtype)
        plain = tt.autograd.grad(y, input, g, retain_graph=True)[0]
        recorded = tt.autograd.grad(y, input, g, create_graph=True)[0]
        value, gate = input.detach().double().chunk(2, dim)
        s, wide = gate.sigmoid(), g.double()
        exact = tt.cat([wide * s, wide * value * s * (-gate).sigmoid()], dim)
        for got in (plain, recorded.detach()):
            tt.testing.assert_close(got, exact.to(dtype))


def test_gradients_of_clamping_by_tensors():
    nan = float("nan")
    x = tt.tensor([0.0, 1.0, 2.0, 3.0, nan, 5.0, 1.0, 0.0, 9.0, 4.0]).expand(3, 10).clone()
    low = tt.tensor([[1.0], [2.0], [nan]])
    high = tt.tensor([1.0, 1.0, 2.0, 3.0, 4.0, 4.0, 3.0, 2.0, 2.0, -1.0])
    leaves = [t.requires_grad_() for t in (x, low, high)]
    g = tt.arange(30.0).view(3, 10)
    y = tt.clamp(*leaves)
    plain = tt.autograd.grad(y, leaves, g)
    # Under vmap the operators of the composition are seen.
    each = tt.vmap(tt.clamp, in_dims=(0, 0, None))(*leaves)
    composed = tt.autograd.grad(each, leaves, g)
    numpy.testing.assert_array_equal(y.detach().numpy(), each.detach().numpy())
    for got, want in zip(plain, composed):
        numpy.testing.assert_array_equal(got.numpy(), want.numpy())
    assert tt.equal(tt.clamp(*(t.detach() for t in leaves)).isnan(), y.isnan())


@pytest.mark.parametrize("dtype", [tt.float16, tt.float32, tt.float64, tt.complex64])
def test_gradient_of_replaced_numbers(dtype):
    x = tt.randn(40, dtype=tt.float64).to(dtype)
    x[::3], x[1::5], x[2::5] = float("nan"), float("inf"), float("-inf")
    x.requires_grad_()
    g = tt.randn(40, dtype=tt.float64).to(dtype)
    got = tt.autograd.grad(tt.nan_to_num(x, 1.0), x, g)[0]
    assert tt.equal(got, g.where(x.isfinite(), tt.zeros(1, dtype=dtype)))


@pytest.mark.parametrize("dtype", [tt.float16, tt.bfloat16])
@pytest.mark.parametrize("weight", [0.0, 0.3, -0.4, 0.5, 0.75, 1.0, -3.0, float("nan")])
def test_lerp_of_halves_by_a_number(dtype, weight):
    a = (tt.randn(101) * 3).to(dtype)
    b = tt.randn(101).to(dtype)
    a[:4], b[1:5] = float("inf"), -0.0
    want = tt.lerp(a.float(), b.float(), weight).to(dtype)
    numpy.testing.assert_array_equal(tt.lerp(a, b, weight).float().numpy(), want.float().numpy())


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16"])
@pytest.mark.parametrize("n", [1, 31, 200])
def test_narrow_integers(dtype, n):
    rng = numpy.random.default_rng(n)
    info = numpy.iinfo(dtype)
    a, b, c = (rng.integers(info.min, info.max, n, dtype, endpoint=True) for _ in range(3))
    by = rng.integers(max(info.min, -3), 20, n).astype(dtype)
    wide, count = a.astype("int64"), numpy.minimum(by.astype("int64"), 63)
    left = numpy.where(count < 0, 0, wide << numpy.maximum(count, 0)).astype(dtype)
    right = wide >> numpy.where(count < 0, 63, count)
    x = tt.from_numpy(a)
    numpy.testing.assert_array_equal((x << tt.from_numpy(by)).numpy(), left)
    numpy.testing.assert_array_equal((x >> tt.from_numpy(by)).numpy(), right)
    numpy.testing.assert_array_equal((x >> 2).numpy(), a >> 2)
    got = tt.addcmul(x, tt.from_numpy(b), tt.from_numpy(c), value=3)
    product = wide + 3 * b.astype("int64") * c.astype("int64")
    numpy.testing.assert_array_equal(got.numpy(), product.astype(dtype))
    for same in (x.floor(), x.ceil(), x.trunc(), x.round()):
        assert tt.equal(same, x)


@pytest.mark.parametrize("channels", [(2, 3), (4, 4), (5, 12), (3, 9), (16, 16), (24, 20), (9, 40)])
@pytest.mark.parametrize("width, rows", [(14, 14), (17, 9), (28, 33)])
def test_gradients_of_groups_of_few_channels(channels, width, rows):
    ci, co = channels
    x = tt.randn(2, 3 * ci, rows, width, requires_grad=True)
    w = tt.randn(3 * co, ci, 3, 3, requires_grad=True)
    conv = tt.nn.functional.conv2d
    y = conv(x, w, padding=1, groups=3)
    g = tt.randn(*y.shape)
    got = (y, *tt.autograd.grad(y, (x, w), g))
    wide = [t.detach().double().requires_grad_() for t in (x, w)]
    exact = conv(*wide, padding=1, groups=3)
    for a, b in zip(got, (exact, *tt.autograd.grad(exact, wide, g.double()))):
        tt.testing.assert_close(a.double(), b, rtol=1e-4, atol=1e-3)
