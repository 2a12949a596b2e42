"""Where samples of PyTorch's own tests (OpInfo, ModuleInfo, OptimizerInfo) once gave other answers;
the values are those of PyTorch 2.15."""
import math

import pytest
import tt
from tt.nn import functional as F

NAN, INF = math.nan, math.inf


def same(got, want, rel=1e-5):
    got, want = tt.as_tensor(got), tt.as_tensor(want)
    assert tuple(got.shape) == tuple(want.shape)
    assert got.flatten().tolist() == pytest.approx(want.flatten().tolist(), rel=rel, nan_ok=True)


def leaf(values, **kwargs):
    return tt.tensor(values, requires_grad=True, **kwargs)


def grads(y, *inputs, **kwargs):
    return tt.autograd.grad(y.sum(), inputs, **kwargs)


# ---- gradients ----


def test_ties_of_fmax_and_fmin_share_the_gradient():
    x, y = leaf([1.0, NAN, NAN, 2.0, INF, 5.0]), leaf([NAN, 3.0, NAN, 2.0, INF, 4.0])
    dx, dy = grads(tt.fmax(x, y), x, y)
    assert dx.tolist() == [1, 0, 1, 0.5, 0.5, 1]
    assert dy.tolist() == [0, 1, 0, 0.5, 0.5, 0]
    dx, dy = grads(tt.fmin(x, y), x, y)
    assert dx.tolist() == [1, 0, 1, 0.5, 0.5, 0]
    assert dy.tolist() == [0, 1, 0, 0.5, 0.5, 1]


def test_bounds_of_clamp_have_no_gradient_at_nan():
    x, low, high = leaf([-1.0, 0.0, 3.0, NAN]), leaf([0.0] * 4), leaf([1.0] * 4)
    dx, d_low, d_high = grads(tt.clamp(x, low, high), x, low, high)
    assert dx.tolist() == [0, 0.5, 0, 1]
    assert d_low.tolist() == [1, 0.5, 0, 0]
    assert d_high.tolist() == [0, 0, 1, 0]


def test_the_gradient_of_acosh_is_that_of_its_formula_below_minus_one():
    x = leaf([-2.0, -1.0, 0.0, 1.0, 2.0])
    same(grads(tt.acosh(x), x)[0], [1 / math.sqrt(3), INF, NAN, INF, 1 / math.sqrt(3)])


def test_nextafter_has_no_gradient_where_nothing_follows():
    x = leaf([1.0, 2.0])
    assert grads(tt.nextafter(x, tt.tensor([3.0, 2.0])), x)[0].tolist() == [1, 0]


def test_gradients_of_eigenvalues_of_one_triangle_are_symmetric():
    a = leaf([[2.0, 1.0], [5.0, 3.0]], dtype=tt.float64)
    values = tt.linalg.eigvalsh(a, UPLO="U")
    weights = tt.tensor([1.0, 3.0], dtype=tt.float64)
    (first,) = grads(weights * values, a, create_graph=True)
    (second,) = tt.autograd.grad(first, a, tt.tensor([[0.0, 1.0], [0.0, 0.0]], dtype=tt.float64))
    assert second[0, 1].item() == pytest.approx(second[1, 0].item())


def test_constant_results_have_zero_gradients():
    a, tau = leaf([[1.0, 2.0], [3.0, 4.0]]), tt.zeros(0)
    assert grads(tt.linalg.matrix_power(a, 0), a)[0].tolist() == [[0, 0], [0, 0]]
    assert grads(tt.linalg.householder_product(a, tau), a)[0].tolist() == [[0, 0], [0, 0]]


def test_backward_of_prelu_and_of_distances_of_nothing_is_recorded():
    x = leaf([1.0, -2.0])
    (first,) = grads(F.prelu(x, tt.tensor(0.25)), x, create_graph=True)
    assert first.tolist() == [1, 0.25]
    assert grads(first, x)[0].tolist() == [0, 0]
    points = leaf([[], []])
    (first,) = grads(tt.cdist(points, points.detach()), points, create_graph=True)
    assert first.requires_grad


def test_logit_of_bounds_that_cross_and_of_numbers_beyond_them():
    x = leaf([0.1, 0.5, 0.9, -1.0, NAN])
    y = tt.logit(x, 0.6)
    same(y, [math.log(1.5), math.log(1.5), -math.log(1.5), math.log(1.5), NAN])
    assert grads(y, x)[0].tolist() == [0, 0, 0, 0, 0]
    x = leaf([-1.0, 0.25, 2.0])
    (first,) = grads(tt.logit(x), x, create_graph=True)
    same(first, [NAN, 16 / 3, NAN])
    same(grads(first, x)[0], [0, -((16 / 3) ** 2) / 2, 0])


def test_celu_and_selu_pass_the_gradient_at_nan():
    x = leaf([NAN])
    assert grads(F.celu(x), x)[0].item() == 1
    assert grads(F.selu(x), x)[0].item() == pytest.approx(1.0507009873554805)


@pytest.mark.parametrize("shape, dim", [((8, 1000, 8), 1), ((64, 4096), 0), ((64, 4096), 1)])
def test_variances_are_rounded_once(shape, dim):
    x = tt.randn(*shape) + 10
    want = x.double().var(dim)
    half_ulp = 2.0**-24 * 1.001
    assert ((x.var(dim).double() - want).abs() / want).max().item() < half_ulp
    want = want.sqrt()
    assert ((x.std(dim).double() - want).abs() / want).max().item() < half_ulp


# ---- dtypes ----


@pytest.mark.parametrize("dtype", [tt.bool, tt.uint8, tt.int16])
def test_sums_to_a_size_and_positions_are_int64(dtype):
    assert tt.ones(2, 3, dtype=dtype).sum_to_size(3).dtype == tt.int64
    assert tt.ones((), dtype=dtype).sum_to_size(()).dtype == tt.int64
    assert tt.ones(2, 3, dtype=dtype).sum_to_size(2, 3).dtype == dtype
    if dtype != tt.bool:
        assert tt.unravel_index(tt.ones(2, dtype=dtype), (2, 5))[0].dtype == tt.int64


def test_dtypes_of_ldexp_addr_bilinear_and_bincount():
    i = tt.tensor([1, 2], dtype=tt.int32)
    assert tt.ldexp(tt.ones(2, dtype=tt.bfloat16), i).dtype == tt.bfloat16
    assert tt.ldexp(i, i).dtype == tt.float32
    v = tt.tensor([True, False])
    y = tt.addr(tt.zeros(2, 2, dtype=tt.bool), v, v, beta=3, alpha=2)
    assert y.dtype == tt.bool and y.tolist() == [[True, False], [False, False]]
    ones = tt.ones(1, 2, 2, dtype=tt.uint8)
    assert F.bilinear(ones[0], ones[0], ones).dtype == tt.uint8
    assert tt.bincount(tt.zeros(0, dtype=tt.int8), tt.zeros(0), 3).dtype == tt.int64


def test_integers_wrap_around_where_pytorch_computes_in_their_dtype():
    u = tt.tensor([200, 100, 255], dtype=tt.uint8)
    same(tt.cumulative_trapezoid(u, u), [104.0, 224.5])
    a, b, c = (tt.tensor(v, dtype=tt.uint8) for v in ([5, 2, 200], [3, 9, 100], [1, 2, 3]))
    same(F.margin_ranking_loss(a, b, c, 0.5, reduction="none"), [254.5, 14.5, 212.5])


def test_nextafter_in_float16():
    x = tt.tensor([0.0, 1.0, 1.0, 65504.0, INF, -(2.0**-14), 2.0**-24, NAN], dtype=tt.float16)
    y = tt.tensor([-1.0, 2.0, 0.0, INF, 0.0, 0.0, 0.0, 1.0], dtype=tt.float16)
    want = [-(2.0**-24), 1 + 2**-10, 1 - 2**-11, INF, 65504, -(2.0**-14 - 2**-24), 0, NAN]
    same(tt.nextafter(x, y), want)


def test_complex_tanhshrink_and_log_of_sums():
    z = leaf([0.5 + 1.5j], dtype=tt.complex128)
    y = F.tanhshrink(z)
    assert y.item() == pytest.approx(z.item() - tt.tanh(z).item())
    turns = tt.tensor([1 + 3j, 2 + 9j], dtype=tt.complex128)
    sums = tt.logcumsumexp(turns, 0)
    assert sums[0].item() == 1 + 3j
    assert abs(sums[1].item().imag - 9) < math.pi  # of the larger one, not wrapped


BYTES = {  # of the first image: mode, size, antialias -> values
    ("bilinear", (4, 9), False): "69 81 102 80 47 68 88 109 121 105 117 138 158 179 200 196 92 29 "
    "205 143 38 34 55 76 96 117 129 113 125 146 166 187 154 132 153 165",
    ("bicubic", (4, 9), False): "70 87 110 78 36 46 81 112 132 95 109 132 165 195 241 214 89 15 "
    "234 145 20 0 39 69 102 125 139 101 122 153 188 198 156 124 147 167",
    ("bilinear", (3, 3), True): "120 92 95 108 117 126 139 142 114",
}


@pytest.mark.parametrize("mode, size, antialias", BYTES)
def test_images_of_bytes_are_resized_with_rounded_weights(mode, size, antialias):
    x = (tt.arange(70) * 37 % 256).to(tt.uint8).reshape(1, 2, 7, 5)
    y = F.interpolate(x, size=size, mode=mode, antialias=antialias)
    want = BYTES[mode, size, antialias].split()
    assert y[0, 0].flatten().tolist() == [int(v) for v in want]


def test_sums_of_half_precision_are_rounded_once():
    x, index = tt.full((300,), 1.0, dtype=tt.bfloat16), tt.zeros(300, dtype=tt.int64)
    zero = tt.zeros(1, dtype=tt.bfloat16)  # 256 + 1 is 256 there
    assert zero.scatter_add(0, index, x).item() == zero.index_add(0, index, x).item() == 300
    assert zero.clone().scatter_add_(0, index, x).item() == 300
    assert zero.clone().index_add_(0, index, x, alpha=2).item() == 600
    y = leaf([1.0] * 300, dtype=tt.bfloat16)
    assert grads(y.cummax(0).values, y)[0].sum().item() == 300
    v = leaf([1.0] * 300, dtype=tt.bfloat16)
    product = tt.addr(tt.zeros(1, 300, dtype=tt.bfloat16), leaf([1.0], dtype=tt.bfloat16), v)
    assert product.dtype == tt.bfloat16 and product.sum().item() == 300
    one = leaf([1.0], dtype=tt.bfloat16)
    third = tt.full((3,), 1 / 3, dtype=tt.bfloat16)
    same(grads(tt.addr(tt.zeros(1, 3, dtype=tt.bfloat16), one, third), one)[0], [1.0], 4e-3)


def test_pseudo_inverses_of_matrices_that_are_not_finite_are_nan():
    both = tt.stack([tt.eye(2), tt.full((2, 2), INF)])
    assert tt.linalg.pinv(both).isnan().flatten().tolist() == [False] * 4 + [True] * 4
    assert tt.pinverse(both[1]).isnan().all().item()


# ---- arguments ----


def test_types_of_tensors_set_the_default_device(monkeypatch):
    if not tt.cuda.is_available():
        with pytest.raises(TypeError, match="there is none"):
            tt.set_default_tensor_type("torch.cuda.FloatTensor")
    monkeypatch.setattr(tt.cuda, "is_available", lambda: True)
    try:
        tt.set_default_tensor_type(tt.cuda.DoubleTensor)
        assert tt.get_default_device().type == "cuda" and tt.get_default_dtype() == tt.float64
    finally:
        tt.set_default_tensor_type(tt.FloatTensor)
    assert tt.get_default_device().type == "cpu" and tt.get_default_dtype() == tt.float32


def test_factors_may_be_bools():
    x = tt.tensor([1.0, 2.0])
    assert tt.addcmul(x, x, x, value=True).tolist() == [2, 6]
    assert tt.addcdiv(x, x, x, value=False).tolist() == [1, 2]


def test_empty_and_zero_dimensional_arguments():
    assert tt.histogram(tt.zeros(0), 2).bin_edges.tolist() == [0, 0.5, 1]
    assert tt.index_fill(tt.tensor(3), 0, tt.zeros(0, dtype=tt.int64), 7).item() == 3
    assert tt.linalg.vander(tt.tensor(2.0), N=3).tolist() == [[1, 2, 4]]
    assert tt.tensor(1 + 2j).H.item() == 1 - 2j
    assert tt.igamma(tt.tensor(INF), tt.tensor(NAN)).item() == 0
    assert tt.igamma(tt.tensor(1e30), tt.tensor(1e30)).item() == 0.5


def test_small_incomplete_gamma_functions():
    def of(function, a, x):
        return function(*(tt.tensor(n, dtype=tt.float64) for n in (a, x))).item()

    assert of(tt.igamma, 20, 1e-10) == pytest.approx(4.110317622920576e-219, rel=1e-12)
    assert of(tt.igammac, 2**-52, 1) == pytest.approx(4.871301903975276e-17, rel=1e-12)


def test_cosines_of_vectors_whose_length_overflows():
    x = tt.tensor([[3.4e38, 3.4e38], [0, 0], [3, 4]])
    found = tt.nn.functional.cosine_similarity(x, tt.tensor([[1.0, 2], [1, 1], [4, 3]]))
    same(found, [0, 0, 0.96])


def test_complex_numbers_are_no_real_ones():
    for dtype in (tt.int64, tt.float32):
        with pytest.raises(TypeError):
            tt.tensor([1 + 2j], dtype=dtype)
    assert tt.tensor([1 + 2j], dtype=tt.bool).item() is True


def test_alpha_dropout_is_off_by_default():
    x = tt.ones(2, 3, 4)
    assert tt.equal(F.alpha_dropout(x), x) and tt.equal(F.feature_alpha_dropout(x), x)
    z = tt.ones(64, dtype=tt.complex64)
    assert 0 < (F.alpha_dropout(z, 0.5, True).real < 0).sum().item() < 64


def test_conversions_that_change_nothing_return_self():
    x = tt.zeros(4, 3).t()
    assert x.float(memory_format=tt.contiguous_format) is x
    last = tt.zeros(2, 3, 4, 5).contiguous(memory_format=tt.channels_last)
    assert last.float(memory_format=tt.contiguous_format).is_contiguous()
    assert x.double(memory_format=tt.contiguous_format).is_contiguous()


def test_out_must_have_the_dtype_of_the_result():
    wide = tt.zeros(3, dtype=tt.float64)
    for call in (tt.amax, tt.amin):
        with pytest.raises(RuntimeError):
            call(tt.ones(2, 3), 0, out=wide)
    with pytest.raises(RuntimeError):
        tt.aminmax(tt.ones(2, 3), dim=0, out=(tt.zeros(3), wide))
    with pytest.raises(RuntimeError):
        tt.complex(wide, wide, out=tt.zeros(3, dtype=tt.complex64))
    with pytest.raises(RuntimeError):
        tt.multinomial(wide + 1, 2, out=tt.zeros(2, dtype=tt.float64))


# ---- layers ----


def test_linear_cross_entropy_loss_of_several_losses_per_sample():
    layer = tt.nn.LinearCrossEntropyLoss(5, 4, out_features=(3, 2), bias=True)
    assert [tuple(p.shape) for p in layer.parameters()] == [(24, 5), (24,)]
    x, target = tt.randn(7, 5), tt.zeros(7, 3, 2, dtype=tt.int64)
    scores = layer.linear(x).reshape(7, 4, 3, 2)
    same(layer(x, target), F.cross_entropy(scores, target))
    with pytest.raises(ValueError):
        tt.nn.LinearCrossEntropyLoss(5, 4, weight=tt.ones(3))
    with pytest.raises(ValueError):
        tt.nn.LinearCrossEntropyLoss(5, 4, label_smoothing=2.0)
    with pytest.raises(ValueError):
        F.linear_cross_entropy(tt.ones(3), tt.ones(2, 4, 3), tt.ones(2, 4))
    with pytest.raises(ValueError):
        F.linear_cross_entropy(tt.ones(4, 3), tt.ones(2, 3), tt.ones(5, 2))


def test_recurrent_layers_refuse_and_take_what_pytorch_does():
    with pytest.raises(ValueError):
        tt.nn.LSTM(0, 3)
    with pytest.raises(ValueError):
        tt.nn.GRU(2, 3)(tt.zeros(1, 1, 2, dtype=tt.float64))
    for cell in (tt.nn.RNNCell, tt.nn.GRUCell, tt.nn.LSTMCell):
        assert cell(2, 3, "relu").bias is True


def test_fractional_pooling_takes_samples_of_a_larger_batch():
    x, samples = tt.randn(2, 5, 5, 5), tt.rand(3, 2, 3)
    y = F.fractional_max_pool3d(x, 2, output_size=(2, 2, 2), _random_samples=samples)
    one = F.fractional_max_pool3d(x, 2, output_size=(2, 2, 2), _random_samples=samples[:1])
    assert tt.equal(y, one)


def test_optimizers_refuse_what_pytorch_refuses():
    p = tt.zeros(2, 2).requires_grad_()
    with pytest.raises(ValueError):
        tt.optim.Adam([p], lr=tt.tensor(0.1), foreach=True)
    with pytest.raises(ValueError):
        tt.optim.Adam([p], betas=(0.9, tt.tensor(0.9)))
    assert tt.optim.Adam([p], betas=(tt.tensor(0.5), tt.tensor(0.75))).defaults["betas"] == (
        0.5,
        0.75,
    )
    for made in (tt.optim.SGD, tt.optim.Adagrad):  # which take it
        assert made([p], lr=tt.tensor(0.5), foreach=True).param_groups[0]["lr"] == 0.5
    for name in ("lambd", "alpha"):
        with pytest.raises(ValueError, match=name):
            tt.optim.ASGD([p], **{name: -0.5})
    with pytest.raises(ValueError):
        tt.optim.SparseAdam([tt.zeros(2, dtype=tt.complex64).requires_grad_()])
    with pytest.raises(ValueError):
        q = tt.zeros(2).requires_grad_()
        tt.optim.SGD([{"params": [("p", p)]}, {"params": [q]}])


def test_muon_scales_steps_by_the_shape():
    steps = {}
    for name in ("original", "spectral_unclamped"):
        p = tt.zeros(2, 8).requires_grad_()
        p.grad = tt.ones(2, 8)
        tt.optim.Muon([p], adjust_lr_fn=name).step()
        steps[name] = p.detach()
    same(steps["spectral_unclamped"], 0.5 * steps["original"])


# ---- nan and infinities ----


def test_margins_between_classes_drop_nan():
    x = leaf([[1, NAN, 2], [NAN, 1, 2], [1, 2, INF], [INF, INF, 1]])
    target = tt.tensor([0, 0, 1, 1])
    same(F.multi_margin_loss(x, target, reduction="none"), [2 / 3, 0, INF, 0])
    dx = grads(F.multi_margin_loss(x, target), x)[0]
    same(dx, [[-1 / 12, 0, 1 / 12], [0, 0, 0], [0, -1 / 12, 1 / 12], [0, 0, 0]])
    labels = tt.tensor([[0, -1, 1], [0, 2, -1], [1, -1, -1], [1, 0, -1]])
    same(F.multilabel_margin_loss(x, labels, reduction="none"), [2 / 3, 0, INF, 0])
    same(grads(F.multilabel_margin_loss(x, labels), x)[0], dx)


def test_distances_of_nan():
    a = tt.tensor([[1, NAN], [INF, 2], [INF, INF], [-INF, 3]])
    b = tt.tensor([[0, 1], [NAN, NAN], [INF, 0], [5, NAN]])
    most = [[1, 0, INF, 4], [INF, 0, 2, INF], [INF, 0, INF, INF], [INF, 0, INF, INF]]
    same(tt.cdist(a, b, p=INF), most)
    counts = [[NAN] * 4, [2, NAN, NAN, NAN], [2, NAN, NAN, NAN], [2, NAN, 2, NAN]]
    same(tt.cdist(a, b, p=0), counts)
    same(F.pdist(a, p=0), [NAN, NAN, NAN, NAN, 2, 2])
    assert math.isnan(F.pdist(a[:2], p=INF).item())


def test_norms_of_matrices_without_elements_are_zero():
    for order in (1, 2, INF):
        assert tt.linalg.norm(tt.zeros(0, 0), order).item() == 0
        assert tt.linalg.matrix_norm(tt.zeros(2, 0, 0), order).tolist() == [0, 0]
    assert tt.linalg.norm(tt.zeros(3, 0), 1, keepdim=True).tolist() == [[0]]
    for order in (-1, -2, -INF):
        with pytest.raises(RuntimeError, match="size 0"):
            tt.linalg.norm(tt.zeros(0, 0), order)


def test_linear_interpolation_of_infinities():
    x = tt.tensor([[[1, INF, 2, -INF, INF, INF, NAN, 0, 0, 0, 0, INF]]])
    same(F.interpolate(x, size=5, mode="linear"), [[[INF, NAN, NAN, 0, INF]]])
    y = F.interpolate(x, size=24, mode="linear")[0, 0]
    same(y[:7], [NAN, INF, INF, INF, INF, -INF, -INF])  # 0 * inf at the first
    same(y[15:], [0] * 6 + [INF] * 3)
    image = tt.zeros(1, 1, 6, 20)
    image[0, 0, 2, 2] = INF
    for last in (False, True):
        if last:
            image = image.contiguous(memory_format=tt.channels_last)
        # PyTorch has nan here, 0 * inf, where a dimension keeps its size.
        assert tt.equal(F.interpolate(image, size=(6, 20), mode="bilinear"), image)
        wide = F.interpolate(image, size=(6, 40), mode="bilinear")
        rows = F.interpolate(image[0, :, 2:3], size=40, mode="linear")
        same(wide[0, 0, 2], rows[0, 0])
        assert wide.isfinite().sum().item() == 236
    cube = tt.zeros(1, 1, 3, 3, 3)
    cube[0, 0, 1, 1, 1] = INF
    same(F.interpolate(cube, size=2, mode="trilinear"), tt.full((1, 1, 2, 2, 2), INF))


WINDOWS = {  # mode, antialias, size -> the rows of a result, "+" for inf, "-" for -inf, "n" for nan
    ("bicubic", False, (2, 14)): ["0nnnn000000nnn", "000000000nnnn0"],
    ("bicubic", True, (2, 7)): ["++-0-nn", "--+0+nn"],
    ("bilinear", True, (2, 4)): ["++0n", "00--"],
    ("bicubic", True, (5, 12)): [
        "00+00000000n",
        "00+00000000n",
        "00-000000+0n",
        "000000000-00",
        "000000000-00",
    ],
}


@pytest.mark.parametrize("mode, antialias, size", WINDOWS)
@pytest.mark.parametrize("last", [False, True])
def test_infinities_stay_in_the_windows_of_interpolate(mode, antialias, size, last):
    x = tt.zeros(2, 3, 4, 12)
    for row, column, value in ((0, 2, INF), (3, 9, -INF), (0, 11, NAN)):
        x[1, 2, row, column] = value
    if last:
        x = x.contiguous(memory_format=tt.channels_last)
    y = F.interpolate(x, size=size, mode=mode, antialias=antialias)
    values = {"0": 0, "+": INF, "-": -INF, "n": NAN}
    want = [[values[c] for c in row] for row in WINDOWS[mode, antialias, size]]
    same(y[1, 2], want)
    assert y[0].count_nonzero().item() == 0 and y[1, :2].count_nonzero().item() == 0


def test_gradients_of_windows_are_their_transposes():
    for mode, antialias, size in ((*w, s) for *w, _ in WINDOWS for s in ((3, 20), (9, 5))):
        for last in (False, True):
            x = tt.randn(2, 70 if last else 2, 7, 11, dtype=tt.float64)
            if last:
                x = x.contiguous(memory_format=tt.channels_last)
            x.requires_grad_()
            y = F.interpolate(x, size=size, mode=mode, antialias=antialias)
            g = tt.randn_like(y)
            dx = tt.autograd.grad(y, x, g)[0]
            assert (dx * x).sum().item() == pytest.approx((g * y).sum().item(), rel=1e-9)


def test_positions_that_are_not_finite():
    x = tt.arange(12.0).reshape(1, 1, 3, 4)
    grid = tt.tensor([[[[NAN, 0], [0.5, NAN], [INF, 0.2], [-INF, -INF], [0.3, -0.2], [3, 3]]]])
    cases = [
        ("bilinear", "zeros", [NAN, NAN, NAN, NAN, 4.9, 0]),
        ("bilinear", "border", [4, 2.5, 8.2, 0, 4.9, 11]),
        ("bilinear", "reflection", [4, 2.5, 5.2, 0, 4.9, 0]),
        ("nearest", "zeros", [0, 0, 0, 0, 6, 0]),
        ("nearest", "border", [4, 2, 7, 0, 6, 11]),
        ("nearest", "reflection", [4, 2, 4, 0, 6, 0]),
        ("bicubic", "border", [NAN, NAN, NAN, NAN, 4.5857525, 11]),
        ("bicubic", "reflection", [NAN, NAN, NAN, NAN, 4.5857525, -0.9375]),
    ]
    for mode, padding, want in cases:
        y = F.grid_sample(x, grid, mode=mode, padding_mode=padding, align_corners=False)
        same(y.flatten(), want)


def test_grid_sample_far_outside():
    x = tt.arange(1.0, 26).reshape(1, 1, 5, 5)
    for dtype in (tt.float32, tt.float64):  # vectors, one by one
        grid = tt.tensor([[[[0, 1e10], [1e10, 0], [-1e10, -1e10], [1, 3e9]]]], dtype=dtype)
        for mode in ("nearest", "bilinear", "bicubic"):
            y = F.grid_sample(x.to(dtype), grid, mode, "border", align_corners=True)
            same(y.flatten(), [23, 15, 1, 25])


# ---- tools around ----


def failure(f, *args, **kwargs):
    with pytest.raises(Exception) as caught:
        f(*args, **kwargs)
    return f"{type(caught.value).__name__}: {caught.value}"


def test_assert_close_compares_large_integers_and_says_what_it_expected():
    close = tt.testing.assert_close
    big = tt.tensor([2**60])
    assert "difference: 1 at index (0,)" in failure(close, big, big + 1)
    text = "Scalars are not close!\n\nExpected 2.0 but got 1.0.\nAbsolute difference: 1.0"
    assert text in failure(close, tt.tensor(1.0), tt.tensor(2.0))
    assert failure(close, True, False) == "AssertionError: Booleans mismatch: True is not False"
    assert "None is not 1" in failure(close, None, 1)
    assert "TypeError" in failure(close, [1.0], tt.ones(1))
    assert "got no atol" in failure(close, 1.0, 1.0, rtol=0.1)
    assert "up to 0.0001" in failure(tt.testing.assert_allclose, tt.ones(1), tt.zeros(1))
    close(None, None)


def test_make_tensor_refuses_empty_ranges_and_gradients_of_integers():
    make = tt.testing.make_tensor
    assert "ValueError" in failure(make, 3, dtype=tt.int64, device="cpu", low=1, high=1)
    assert "ValueError" in failure(make, 3, dtype=tt.bool, device="cpu", requires_grad=True)
    assert make(3, dtype=tt.float32, device="cpu", low=1, high=1).tolist() == [1, 1, 1]


def test_gradcheck_compares_in_the_modes_that_it_is_told():
    check, x = tt.autograd.gradcheck, leaf([0.5, -1.0], dtype=tt.float64)
    assert check(tt.sin, x, check_forward_ad=True, check_backward_ad=False)
    z = leaf([0.5 + 1j], dtype=tt.complex128)
    assert check(lambda z: z * z.conj() * z, z, check_forward_ad=True)
    forward = {"check_forward_ad": True, "check_backward_ad": False}
    assert not check(lambda x: x * x.detach(), x, raise_exception=False, **forward)
    assert "AssertionError" in failure(check, tt.sin, x, check_backward_ad=False)
    assert "stride 0" in failure(check, tt.sin, x.detach()[:1].expand(3).requires_grad_())
    with pytest.warns(UserWarning, match="double precision"):
        check(tt.sin, leaf([0.5]), raise_exception=False)
    again = tt.autograd.gradgradcheck
    assert "AssertionError" in failure(again, tt.sin, x, check_rev_over_rev=False)
    assert again(tt.sin, x, check_rev_over_rev=False, check_fwd_over_rev=True)


@pytest.mark.parametrize("order, norm", [(0, 1.0), (-1, 12 / 7), (-math.inf, 3.0)])
def test_gradients_are_clipped_by_orders_below_one(order, norm):
    p = tt.nn.Parameter(tt.zeros(2))
    p.grad = tt.tensor([3.0, -4.0])
    assert tt.nn.utils.clip_grad_norm_(p, 1.0, order).item() == pytest.approx(norm)
    same(p.grad, [3 / norm, -4 / norm])


def test_collate_combines_types_that_an_application_adds():
    from tt.utils.data._utils.collate import collate, default_collate, default_collate_fn_map

    def joined(batch, *, collate_fn_map):
        return set().union(*batch)

    assert collate([{"a": {1}}, {"a": {2}}], collate_fn_map={set: joined}) == {"a": {1, 2}}
    default_collate_fn_map[set] = joined
    try:
        assert default_collate([({1}, 2), ({3}, 4)])[0] == {1, 3}
    finally:
        del default_collate_fn_map[set]
    with pytest.raises(TypeError):
        default_collate([{1}])


def test_lengths_of_packed_sequences_may_be_floats():
    packed = tt.nn.utils.rnn.pack_padded_sequence(tt.ones(3, 2), tt.tensor([3.0, 1.0]))
    assert packed.batch_sizes.tolist() == [2, 1, 1]


class Twice(tt.nn.Module):
    def forward(self, x):
        return 2 * x


@pytest.mark.parametrize("within", [False, True])
def test_out_proj_of_an_attention_layer_may_be_parametrized(within):
    layer = tt.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0)
    attention = layer.self_attn
    called = layer if within else lambda x: attention(x, x, x)[0]
    x = tt.randn(3, 2, 4)
    tt.nn.utils.parametrize.register_parametrization(attention.out_proj, "weight", Twice())
    original = attention.out_proj.parametrizations.weight.original
    y = called(x)
    (g,) = tt.autograd.grad(y.square().sum(), original)
    tt.nn.utils.parametrize.remove_parametrizations(attention.out_proj, "weight")
    want = called(x)
    same(y, want)
    same(g / 2, tt.autograd.grad(want.square().sum(), attention.out_proj.weight)[0], 1e-3)


@pytest.mark.parametrize("composed", [False, True])
def test_schedulers_take_groups_that_are_added_later(composed):
    opt = tt.optim.SGD([tt.nn.Parameter(tt.ones(1))], lr=0.5)
    scheduler = tt.optim.lr_scheduler.ExponentialLR(opt, 0.9)
    if composed:
        halved = tt.optim.lr_scheduler.StepLR(opt, 2, 0.5)
        scheduler = tt.optim.lr_scheduler.ChainedScheduler([scheduler, halved])
    scheduler.step()
    opt.add_param_group({"params": [tt.nn.Parameter(tt.ones(2))], "lr": 0.3})
    scheduler.step()
    factor = 0.5 if composed else 1
    want = pytest.approx([0.5 * 0.81 * factor, 0.3 * 0.9 * factor])
    assert [g["lr"] for g in opt.param_groups] == want == scheduler.get_last_lr()


def test_flags_of_optimizers_that_exclude_each_other():
    p = tt.nn.Parameter(tt.ones(1))
    for optimizer in (tt.optim.SGD, tt.optim.Adam, tt.optim.AdamW, tt.optim.Adagrad):
        for other in ("foreach", "differentiable"):
            with pytest.raises(RuntimeError, match="fused"):
                optimizer([p], fused=True, **{other: True})


def test_methods_histogram_and_polygamma():
    x = tt.tensor([1.0, 2.0, 2.5])
    assert x.histogram(2, range=(0, 4)).hist.tolist() == [1, 2]
    want = tt.polygamma(1, x)
    assert x.polygamma_(1) is x and x.tolist() == want.tolist()


def test_products_of_long_vectors_with_strides():
    x = (tt.arange(600.0) % 7).requires_grad_()
    product = tt.dot(x[::2], x[1::2])
    assert product.item() == sum(k % 7 * ((k + 1) % 7) for k in range(0, 600, 2))
    product.backward()
    assert x.grad[:4].tolist() == [1, 0, 3, 2]
    assert (x[::2].to(tt.int64) @ x[1::2].to(tt.int64)).item() == product.item()


@pytest.mark.parametrize("dtype", [tt.float64, tt.int64, tt.int32])
def test_extremes_of_wide_numbers_at_every_place(dtype):
    for n in (1, 63, 64, 65, 200):
        for place in {0, n // 2, n - 1}:
            x = tt.zeros(n, dtype=dtype)
            x[place] = 7
            assert x.max().item() == 7 and x.argmax().item() == place
            assert (-x).min().item() == -7
    x = tt.zeros(200, dtype=tt.float64)
    x[130] = tt.nan
    assert x.max().isnan().item() and x.min().isnan().item()


@pytest.mark.parametrize("n", [5, 16, 17, 300, 768, 1025])
def test_norms_and_sums_of_numbers_over_rows(n):
    x = tt.arange(3.0 * n).reshape(3, n)
    wide = x.double()
    norm = tt.linalg.vector_norm(x, dim=1)
    assert tt.allclose(norm.double(), (wide * wide).sum(1).sqrt(), rtol=1e-6)
    x[1, n // 2] = tt.nan
    wide[1, n // 2] = 0
    assert tt.nansum(x, 1).tolist() == tt.nansum(wide, 1).float().tolist()
