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
    x = (tt.rand(500) * 3).floor().to(dtype)
    runs = [(k, len(list(g))) for k, g in itertools.groupby(x.tolist())]
    values, inverse, counts = tt.unique_consecutive(x, return_inverse=True, return_counts=True)
    assert values.tolist() == [k for k, _ in runs] and counts.tolist() == [n for _, n in runs]
    assert tt.equal(values[inverse], x) and tt.equal(values, tt.unique_consecutive(x))
    assert values.dtype == dtype
    square, inverse = tt.unique_consecutive(x.view(20, 25).t(), return_inverse=True)
    assert inverse.shape == (25, 20) and tt.equal(square[inverse], x.view(20, 25).t())


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
