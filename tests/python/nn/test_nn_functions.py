"""What the conformance cases of tt.nn.functional leave out: random numbers, names that only Python
has, and arguments with side effects. Expected values are computed by hand or from definitions."""
import math

import pytest

import tt
import tt.nn.functional as F
from tt import nn
from tt.testing import assert_close


def grad(y, x):
    found = tt.autograd.grad(y.sum(), x)
    return found if isinstance(x, tuple) else found[0]


def test_channel_dropout_drops_whole_channels():
    tt.manual_seed(1)
    for function, shape, unbatched in (
        (F.dropout1d, (8, 16, 5), (16, 5)),
        (F.dropout2d, (8, 16, 3, 2), None),
        (F.dropout3d, (8, 16, 2, 2, 2), (16, 2, 2, 2)),
    ):
        y = function(tt.ones(shape), 0.25)
        channels = y.flatten(2)
        assert (channels == channels[:, :, :1]).all()
        assert set(channels[:, :, 0].flatten().tolist()) == {0.0, tt.tensor(1 / 0.75).item()}
        if unbatched:
            y = function(tt.ones(unbatched), 0.5)
            assert y.shape == unbatched and (y.flatten(1) == y.flatten(1)[:, :1]).all()
    with pytest.raises((RuntimeError, ValueError), match="dropout1d: input is"):
        F.dropout1d(tt.ones(3), 0.5)
    with pytest.raises(ValueError, match=r"p is 1.5: must be in \[0, 1\]"):
        F.dropout2d(tt.ones(1, 2, 3, 3), 1.5)


def test_dropout_in_place_that_drops_nothing_writes_nothing():
    x = tt.randn(3, 4, requires_grad=True)
    for layer in (nn.Dropout(0.0, inplace=True), nn.Dropout(0.5, inplace=True).eval()):
        weights = x.softmax(1)
        layer(weights)[:, 0].sum().backward()  # softmax saved its result
    assert weights._version == 0 and bool((x.grad != 0).any())


@pytest.mark.parametrize("channels", [256, 512])
def test_sums_over_many_channels_err_as_little_as_those_over_few(channels):
    tt.manual_seed(0)
    x, weight = tt.randn(1, channels, 6, 6), tt.randn(8, channels, 3, 3)
    exact = F.conv2d(x.double(), weight.double())
    error = (F.conv2d(x, weight) - exact).square().mean() / exact.square().mean()
    assert error.sqrt() < 4.5 * 2**-24  # PyTorch's: 4.0


def test_normalize_over_several_dimensions():
    x = tt.tensor([[[3.0, 0.0], [0.0, 0.0]], [[4.0, 0.0], [0.0, 0.0]]])
    assert F.normalize(x, dim=(0, 1))[:, 0, 0].tolist() == pytest.approx([0.6, 0.8])
    assert F.normalize(x, p=1.0, dim=[-1, 0])[:, 0, 0].tolist() == pytest.approx([3 / 7, 4 / 7])
    assert F.normalize(x, dim=0).equal(F.normalize(x, dim=(0,)))


@pytest.mark.parametrize("drop", [F.dropout1d, F.dropout2d, F.dropout3d])
def test_channel_dropout_in_place_that_drops_nothing_writes_nothing(drop):
    x = tt.rand(2, 3, 2, 2, requires_grad=True)
    y = x.tanh() if drop is not F.dropout1d else x[0].tanh()  # saves its result
    for p, training in ((0.0, True), (0.5, False)):
        drop(y, p, training, inplace=True)
    assert y._version == 0
    y.sum().backward()


def test_alpha_dropout_keeps_mean_and_variance():
    tt.manual_seed(2)
    x = tt.randn(200000)
    y = F.alpha_dropout(x, 0.3, True)
    assert abs(y.mean().item()) < 0.02 and abs(y.var().item() - 1) < 0.02
    channels = F.feature_alpha_dropout(tt.zeros(4, 50, 3), 0.5, True)
    assert (channels == channels[:, :, :1]).all() and len(channels.unique()) == 2
    assert F.alpha_dropout(x, 1.0, True).abs().max() == 0
    inside = tt.ones(10)
    assert F.alpha_dropout(inside, 0.5, True, inplace=True) is inside and inside.std() > 0


def test_rrelu_draws_a_slope_for_each_negative_element():
    tt.manual_seed(3)
    x = tt.full((1000,), -1.0).requires_grad_()
    y = F.rrelu(x, 0.1, 0.4, training=True)
    assert -0.4 <= y.min() < -0.35 and -0.15 < y.max() <= -0.1
    assert tt.equal(grad(y, x), -y)
    assert F.rrelu(tt.tensor([2.0]), training=True).item() == 2
    images = tt.ones(2, 3, 4, 5).contiguous(memory_format=tt.channels_last)
    assert F.rrelu(images, training=True).stride() == (60, 20, 5, 1)  # row-major, as PyTorch's
    assert F.rrelu(tt.tensor([-1.0], dtype=tt.float64), 0.1, 0.3).item() == pytest.approx(-0.2)


def test_embedding_scales_rows_to_max_norm():
    weight = tt.tensor([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]]).requires_grad_()
    rows = F.embedding(tt.tensor([0, 1, 0]), weight, max_norm=1.0, scale_grad_by_freq=True)
    tt.testing.assert_close(rows[0], tt.tensor([0.6, 0.8]))
    tt.testing.assert_close(weight.detach()[1:], tt.tensor([[0.3, 0.4], [6.0, 8.0]]))
    assert grad(rows, weight).tolist() == [[1, 1], [1, 1], [0, 0]]


def test_embedding_bag_refuses_contradictory_arguments():
    weight = tt.ones(3, 2)
    for match, arguments in (
        ("offsets is given", (tt.tensor([[0, 1]]), weight, tt.tensor([0]))),
        ("with 1-dim offsets", (tt.tensor([0, 1]), weight)),
        ("must begin with 0", (tt.tensor([0, 1]), weight, tt.tensor([1]))),
        ("must be ascending", (tt.tensor([0, 1]), weight, tt.tensor([0, 2, 1]))),
    ):
        with pytest.raises((RuntimeError, ValueError), match=match):
            F.embedding_bag(*arguments)
    with pytest.raises(NotImplementedError, match="only mode sum"):
        F.embedding_bag(tt.tensor([[0]]), weight, per_sample_weights=tt.ones(1, 1))
    assert F.embedding_bag(tt.empty(0, dtype=tt.int64), weight, tt.tensor([0, 0])).tolist() == [
        [0, 0],
        [0, 0],
    ]


def test_embedding_bag_takes_its_table_first():
    weight, rows = tt.tensor([[3.0, 4.0], [0.3, 0.4]]), tt.tensor([[0, 1]])
    with pytest.warns(UserWarning, match="exchanged"):
        y = F.embedding_bag(weight, rows, max_norm=1.0, mode="sum")
    tt.testing.assert_close(y, tt.tensor([[0.9, 1.2]]))


def test_ctc_loss_and_its_gradient():
    tt.manual_seed(4)
    x = tt.randn(6, 2, 4, dtype=tt.float64).requires_grad_()
    targets = tt.tensor([[1, 1, 3], [2, 3, 0]])

    def loss(x, lengths=(3, 2), reduction="sum"):
        return F.ctc_loss(x.log_softmax(-1), targets, (6, 4), lengths, reduction=reduction)

    slope = grad(loss(x), x)
    step = 1e-5
    for t, n, c in ((0, 0, 0), (2, 0, 1), (3, 1, 3), (5, 1, 2)):
        moved = tt.zeros_like(x)
        moved[t, n, c] = step
        with tt.no_grad():
            difference = (loss(x + moved) - loss(x - moved)).item() / (2 * step)
        assert slope[t, n, c].item() == pytest.approx(difference, abs=1e-7)
    assert slope[4:, 1].abs().max() == 0
    each = loss(x, reduction="none")
    mean = loss(x, reduction="mean")
    tt.testing.assert_close(mean, (each / tt.tensor([3.0, 2.0], dtype=tt.float64)).mean())
    flat = F.ctc_loss(x.log_softmax(-1), tt.tensor([1, 1, 3, 2, 3]), [6, 4], [3, 2], 0, "sum")
    tt.testing.assert_close(flat, each.sum())


def test_ctc_loss_of_impossible_targets_and_second_derivatives():
    x = tt.randn(2, 1, 3).log_softmax(-1).detach().requires_grad_()
    arguments = (tt.tensor([[1, 1, 1]]), [2], [3])
    assert F.ctc_loss(x, *arguments).item() == math.inf
    loss = F.ctc_loss(x, *arguments, zero_infinity=True)
    assert loss.item() == 0 and grad(loss, x).abs().max() == 0
    loss = F.ctc_loss(x, tt.tensor([[1]]), [2], [1])
    (first,) = tt.autograd.grad(loss, x, create_graph=True)
    with pytest.raises(RuntimeError):
        tt.autograd.grad(first.sum(), x)
    with pytest.raises((RuntimeError, IndexError), match="targets"):
        F.ctc_loss(x, tt.tensor([[7]]), [2], [1])
    with pytest.raises((RuntimeError, IndexError), match="input_lengths"):
        F.ctc_loss(x, tt.tensor([[1]]), [9], [1])


def test_fold_is_the_sum_of_unfolded_windows():
    x = tt.arange(2 * 3 * 5 * 4, dtype=tt.float32).reshape(2, 3, 5, 4)
    columns = F.unfold(x, (2, 3), padding=(1, 0), stride=(2, 1))
    assert columns.shape == (2, 18, 6)
    counts = F.fold(
        F.unfold(tt.ones_like(x), (2, 3), 1, (1, 0), (2, 1)), (5, 4), (2, 3), 1, (1, 0), (2, 1)
    )
    back = F.fold(columns, (5, 4), (2, 3), padding=(1, 0), stride=(2, 1))
    tt.testing.assert_close(back, x * counts)


def test_triplet_margin_with_distance_loss():
    a, p, n = tt.randn(3, 4, 5, dtype=tt.float64)
    expected = F.triplet_margin_loss(a, p, n, swap=True)
    tt.testing.assert_close(F.triplet_margin_with_distance_loss(a, p, n, swap=True), expected)
    loss = F.triplet_margin_with_distance_loss(
        a, p, n, distance_function=lambda x, y: (x - y).abs().sum(-1), reduction="none"
    )
    near, far = (a - p).abs().sum(-1), (a - n).abs().sum(-1)
    tt.testing.assert_close(loss, (1 + near - far).clamp(min=0))
    with pytest.raises(ValueError, match="margin"):
        F.triplet_margin_with_distance_loss(a, p, n, margin=0)


def test_fractional_max_pool_draws_windows():
    x = tt.arange(49.0).reshape(1, 1, 7, 7)
    y, indices = F.fractional_max_pool2d(x, 2, output_ratio=0.5, return_indices=True)
    assert y.shape == (1, 1, 3, 3) and tt.equal(y.flatten(), x.flatten()[indices.flatten()])
    assert y[0, 0, 2, 2] == 48
    assert F.fractional_max_pool3d(tt.randn(2, 5, 5, 5), 2, 3).shape == (2, 3, 3, 3)
    with pytest.raises(ValueError, match="either output_size or output_ratio"):
        F.fractional_max_pool2d(x, 2)


@pytest.mark.parametrize("dtype", [tt.bfloat16, tt.float16])
@pytest.mark.parametrize(
    "size", [(2, 2), (7, 9), (28, 28), (64, 130), (3, 1023), (5, 1025), (6, 4000)]
)
def test_pooling_of_halves_has_the_results_of_float32(size, dtype):
    """Maxima are elements and gradients are moved, so no number is rounded."""
    tt.manual_seed(0)
    x = tt.randn(2, 3, *size).to(dtype)
    x[0, 0, 0, 0] = math.nan
    for image in (x, x.to(memory_format=tt.channels_last)):
        half = image.clone().requires_grad_()
        full = image.float().requires_grad_()
        y, expected = F.max_pool2d(half, 2), F.max_pool2d(full, 2)
        assert_close(y, expected.to(dtype), rtol=0, atol=0, equal_nan=True)
        g = tt.randn_like(y)
        y.backward(g)
        expected.backward(g.float())
        assert tt.equal(half.grad, full.grad.to(dtype))


def test_gaussian_nll_loss_takes_a_number_and_refuses_negative_variances():
    x, y = tt.randn(2, 3, 4)
    expected = F.gaussian_nll_loss(x, y, tt.full((3, 4), 2.0))
    tt.testing.assert_close(F.gaussian_nll_loss(x, y, 2.0), expected)
    with pytest.raises(ValueError, match="negative"):
        F.gaussian_nll_loss(x, y, tt.full((3, 4), -1.0))


def test_interpolate_of_bytes_and_antialiasing():
    x = tt.arange(8, dtype=tt.uint8).reshape(1, 1, 2, 2, 2)
    y = F.interpolate(x, scale_factor=2)
    assert y.dtype == tt.uint8 and y[0, 0, 0, 0].tolist() == [0, 0, 1, 1]
    line = tt.tensor([[0.0, 0, 0, 8, 0, 0, 0, 0]]).reshape(1, 1, 1, 8)
    y = F.interpolate(line, size=(1, 2), mode="bilinear", antialias=True)
    # The filter is a triangle of 4 elements to each side, normalised.
    weights = [1 - abs(i + 0.5 - 2) / 4 for i in range(6)]
    assert y[0, 0, 0, 0].item() == pytest.approx(8 * weights[3] / sum(weights))
    with pytest.raises((ValueError, RuntimeError), match="antialias"):
        F.interpolate(line, size=(1, 2), antialias=True)


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize(
    "shape,size",
    [((2, 3, 37, 150), (61, 197)), ((1, 2, 70, 41), (20, 300)), ((1, 5, 33, 300), (33, 70))],
)
def test_interpolate_of_bytes_beside_floats(shape, size, mode, antialias):
    """Bytes are rounded twice: 0.5 and, by bicubic windows, up to 0.7. Groups of 16 rows, blocks of
    results, windows of several widths, channels last."""
    tt.manual_seed(1)
    x = tt.randint(96, 160, shape).to(tt.uint8)  # nothing is clamped between the steps
    want = F.interpolate(x.float(), size=size, mode=mode, antialias=antialias)
    for format in (tt.contiguous_format, tt.channels_last):
        z = x.contiguous(memory_format=format)
        y = F.interpolate(z, size=size, mode=mode, antialias=antialias)
        assert (y.float() - want).abs().max().item() <= 1.25
        y = F.interpolate(z.float(), size=size, mode=mode, antialias=antialias)
        assert (y - want).abs().max().item() <= 1e-3


def test_adaptive_pooling_keeps_sizes_that_are_none():
    x = tt.randn(2, 3, 4, 5, 6)
    assert F.adaptive_avg_pool3d(x, (2, None, 3)).shape == (2, 3, 2, 5, 3)
    values, indices = F.adaptive_max_pool3d(x, (None, 2, 2), return_indices=True)
    assert tt.equal(values, x.flatten(2).gather(2, indices.flatten(2)).reshape(values.shape))
    values, indices = F.max_pool3d(x, 2, return_indices=True)
    assert tt.equal(F.max_unpool3d(values, indices, 2, output_size=(4, 5, 6)).sum(), values.sum())


def test_the_class_of_one_sample_may_be_in_a_list():
    x = tt.tensor([-1.0, -2, -3], requires_grad=True)
    for loss in (F.nll_loss, F.cross_entropy):
        y = loss(x, tt.tensor([1]), reduction="none")
        assert y.shape == () and tt.equal(y, loss(x, tt.tensor(1)))
    F.nll_loss(x, tt.tensor([2])).backward()
    assert x.grad.tolist() == [0, 0, -1]
    with pytest.raises(tt.errors.ShapeError, match=r"target is \[2\], input is \[3\]"):
        F.nll_loss(x, tt.tensor([1, 2]))


def test_grid_sample_of_the_identity():
    x = tt.randn(2, 3, 4, 5)
    theta = tt.tensor([[1.0, 0, 0], [0, 1, 0]]).expand(2, 2, 3)
    for align in (False, True):
        grid = F.affine_grid(theta, (2, 3, 4, 5), align_corners=align)
        tt.testing.assert_close(F.grid_sample(x, grid, align_corners=align), x)
    assert F.grid_sample(x, tt.full((2, 1, 2, 2), 5.0)).abs().max() == 0
    outside = tt.full((2, 1, 2, 2), math.nan)
    assert F.grid_sample(x, outside).isnan().all()  # as PyTorch's
    assert F.grid_sample(x, outside, mode="nearest").abs().max() == 0
    assert F.grid_sample(x, outside, padding_mode="border").isfinite().all()


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
def test_grid_sample_has_second_derivatives(mode, padding_mode):
    tt.manual_seed(5)
    x = tt.randn(1, 2, 3, 4, dtype=tt.float64).requires_grad_()
    grid = (tt.rand(1, 2, 2, 2, dtype=tt.float64) * 3 - 1.5).requires_grad_()

    def sample(x, grid):
        return F.grid_sample(x, grid, mode, padding_mode)

    assert tt.autograd.gradcheck(sample, (x, grid))
    assert tt.autograd.gradgradcheck(sample, (x, grid))


LEGACY_LOSSES = [
    ("l1_loss", nn.L1Loss, 2), ("mse_loss", nn.MSELoss, 2), ("smooth_l1_loss", nn.SmoothL1Loss, 2),
    ("kl_div", nn.KLDivLoss, 2), ("binary_cross_entropy", nn.BCELoss, 2),
    ("binary_cross_entropy_with_logits", nn.BCEWithLogitsLoss, 2),
    ("poisson_nll_loss", nn.PoissonNLLLoss, 2), ("soft_margin_loss", nn.SoftMarginLoss, 2),
    ("hinge_embedding_loss", nn.HingeEmbeddingLoss, 2),
    ("margin_ranking_loss", nn.MarginRankingLoss, 3),
    ("triplet_margin_loss", nn.TripletMarginLoss, 3),
    ("multilabel_soft_margin_loss", nn.MultiLabelSoftMarginLoss, 2),
]  # fmt: skip


@pytest.mark.parametrize("name, layer, n", LEGACY_LOSSES)
def test_losses_take_the_flags_before_reduction(name, layer, n):
    inputs = [tt.linspace(0.1, 0.7 + i / 10, 6).reshape(3, 2) for i in range(n)]
    function = getattr(F, name)
    flags = [
        ("sum", {"size_average": False}),
        ("mean", {"size_average": True}),
        ("none", {"reduce": False}),
        ("none", {"reduce": False, "size_average": True}),
        ("sum", {"reduce": True, "size_average": False}),
    ]
    for reduction, given in flags:
        expected = function(*inputs, reduction=reduction)
        assert tt.equal(function(*inputs, **given), expected), given
        assert tt.equal(layer(**given)(*inputs), expected), given


def test_cross_entropy_takes_the_flags_before_reduction():
    logits, classes = tt.eye(3), tt.tensor([0, 2, 1])
    expected = F.cross_entropy(logits, classes, reduction="sum")
    assert tt.equal(F.cross_entropy(logits, classes, size_average=False), expected)
    assert tt.equal(nn.CrossEntropyLoss(size_average=False)(logits, classes), expected)
    assert nn.NLLLoss(reduce=False)(logits, classes).shape == (3,)


# ---- attention ----


def test_causal_biases():
    from tt.nn.attention.bias import causal_lower_right, causal_upper_left

    attend = F.scaled_dot_product_attention
    q, k, v = tt.randn(1, 2, 3, 4), tt.randn(1, 2, 5, 4), tt.randn(1, 2, 5, 4)
    square = tt.ones(3, 5, dtype=tt.bool)
    for bias, mask in (
        (causal_upper_left(3, 5), square.tril()),
        (causal_lower_right(3, 5), square.tril(2)),
    ):
        expected = attend(q, k, v, mask)
        tt.testing.assert_close(attend(q, k, v, bias), expected)
        tt.testing.assert_close(attend(q, k, v, attn_mask=bias, dropout_p=0.0), expected)
        assert repr(bias) == repr(mask)
        with pytest.raises(ValueError, match="is_causal must be False"):
            attend(q, k, v, bias, is_causal=True)
        with pytest.raises(TypeError, match="only be given as attn_mask"):
            attend(bias, k, v)
    tt.testing.assert_close(
        attend(q, q, q, causal_lower_right(3, 3)), attend(q, q, q, is_causal=True)
    )
    with pytest.warns(UserWarning, match="5 queries are more than 3 keys"):
        causal_lower_right(5, 3)
    with pytest.raises(AssertionError, match="1 sizes are given: must be 2"):
        causal_upper_left(3)


@pytest.mark.parametrize("dtype", [tt.float32, tt.float64])
@pytest.mark.parametrize("width", [1, 31, 64, 80, 130])
def test_attention_of_one_query_is_that_of_the_first_of_two(width, dtype):
    tt.manual_seed(3)
    q, k, v = (
        tt.randn(2, heads, n, width, dtype=dtype) for heads, n in ((4, 2), (2, 300), (2, 300))
    )
    k[0, 1, 7] *= 20  # a score far above the others
    k, v = k.transpose(1, 2).contiguous().transpose(1, 2).requires_grad_(), v.requires_grad_()
    attend = F.scaled_dot_product_attention
    one, two = attend(q[:, :, :1], k, v, enable_gqa=True), attend(q, k, v, enable_gqa=True)
    assert_close(one, two[:, :, :1])
    assert_close(grad(one, (k, v)), grad(two[:, :, :1], (k, v)))


def test_flex_attention():
    from tt.nn.attention import flex_attention as flex

    tt.manual_seed(2)
    q, k, v = tt.randn(2, 4, 6, 8), tt.randn(2, 2, 6, 8), tt.randn(2, 2, 6, 8)
    expected = nn.functional.scaled_dot_product_attention
    assert_close(flex.flex_attention(q, k, v, enable_gqa=True), expected(q, k, v, enable_gqa=True))
    causal = flex.create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 6, 6, BLOCK_SIZE=2)
    assert causal.to_dense().tolist() == [[[[1, 0, 0], [1, 1, 0], [1, 1, 1]]]]
    assert causal.kv_num_blocks.tolist() == [[[1, 2, 3]]] and 33 < causal.sparsity() < 34
    options = {"enable_gqa": True, "block_mask": causal}
    found, lse = flex.flex_attention(q, k, v, return_lse=True, **options)
    assert_close(found, expected(q, k, v, is_causal=True, enable_gqa=True))
    assert lse.shape == (2, 4, 6)
    bias = tt.randn(4, 6, 6)
    found = flex.flex_attention(
        q, k, v, lambda score, b, h, q, kv: score + bias[h, q, kv], enable_gqa=True
    )
    assert_close(found, expected(q, k, v, attn_mask=bias, enable_gqa=True))
    nothing = flex.create_block_mask(lambda b, h, q, kv: q < 0, None, None, 6, 6)
    assert flex.flex_attention(q, q, q, block_mask=nothing).abs().max() == 0
    both = flex.and_masks(lambda b, h, q, kv: q >= kv, lambda b, h, q, kv: kv > 0)
    assert flex.create_mask(both, 1, 1, 2, 2).tolist() == [[[[False, False], [False, True]]]]


def test_scan_of_a_function():
    from tt._higher_order_ops import associative_scan

    x = tt.tensor([[1.0, 2.0, 3.0, 4.0, 5.0]])
    for reverse in (False, True):
        found = associative_scan(lambda a, b: a + b, x, 1, reverse)
        assert_close(found, x.flip(1).cumsum(1).flip(1) if reverse else x.cumsum(1))
    # y[i] = a[i] y[i - 1] + b[i]
    a, b = tt.full((5,), 0.5), tt.ones(5)
    recurrence = lambda left, right: (
        left[0] * right[0],
        left[1] * right[0] + right[1],
    )  # noqa: E731
    found = associative_scan(recurrence, (a, b), 0)[1]
    assert_close(found, tt.tensor([1.0, 1.5, 1.75, 1.875, 1.9375]))


def test_sizes_of_interpolate_are_one_for_each_dimension():
    x = tt.ones(1, 1, 3, 3)
    for given in ({"size": (3,)}, {"scale_factor": [2.0, 2.0, 2.0]}):
        with pytest.raises(ValueError, match=r"has [13] numbers: must be one number or 2"):
            F.interpolate(x, mode="bilinear", **given)
    assert F.interpolate(x, size=[4, 5]).shape == (1, 1, 4, 5)
