"""out= of other shapes and dtypes, and further arguments that PyTorch takes. The values are PyTorch
2.15's."""
import itertools
import math
import warnings

import pytest
import tt


def test_out_is_resized():
    out = tt.empty(0)
    assert tt.add(tt.ones(2, 3), 1, out=out) is out
    assert out.tolist() == [[2, 2, 2], [2, 2, 2]]
    with pytest.warns(UserWarning, match="is resized to"):
        tt.add(tt.ones(2), 1, out=out)
    assert out.tolist() == [2, 2]
    values, indices = tt.empty(0), tt.empty(0, dtype=tt.int64)
    tt.sort(tt.tensor([3.0, 1, 2]), out=(values, indices))
    assert (values.tolist(), indices.tolist()) == ([1, 2, 3], [1, 2, 0])
    for make in (tt.zeros, tt.ones, tt.rand, tt.randn):
        out = tt.empty(0)
        assert make(2, 2, out=out) is out and out.shape == (2, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tt.matmul(tt.ones(2, 3), tt.ones(3, 2), out=tt.empty(0)).shape == (2, 2)


@pytest.mark.parametrize(
    "dtype, value", [("float64", 2), ("float16", 2), ("complex64", 2), ("float32", 2)]
)
def test_out_of_another_dtype_receives_converted_values(dtype, value):
    out = tt.empty(2, dtype=getattr(tt, dtype))
    assert tt.add(tt.ones(2), 1, out=out).tolist() == [value, value]
    assert out.dtype is getattr(tt, dtype)


def test_integers_are_converted_with_wrapping_and_kinds_never_fall():
    x = tt.tensor([1, 2, 300])
    assert tt.add(x, 1, out=tt.empty(3, dtype=tt.int8)).tolist() == [2, 3, 45]
    assert tt.gt(x, 1, out=tt.empty(3)).tolist() == [0, 1, 1]
    for result, out in ((tt.ones(3), tt.int64), (x, tt.bool), (tt.ones(3) * 1j, tt.float32)):
        with pytest.raises(tt.errors.DtypeError, match="out is"):
            tt.add(result, 1, out=tt.empty(3, dtype=out))


def test_out_gives_the_dtype_of_sums_and_new_tensors():
    assert tt.sum(tt.ones(2, 3), 1, out=tt.empty(2, dtype=tt.int64)).tolist() == [3, 3]
    assert tt.cumsum(tt.ones(3), 0, out=tt.empty(3, dtype=tt.float64)).tolist() == [1, 2, 3]
    out = tt.empty(0, dtype=tt.float64)
    assert tt.linspace(0, 1, 4, out=out)[1].item() == 1 / 3


def test_products_and_indices_keep_their_dtype():
    with pytest.raises(tt.errors.DtypeError):
        tt.matmul(tt.ones(2, 2), tt.ones(2, 2), out=tt.empty(2, 2, dtype=tt.float64))
    with pytest.raises(tt.errors.DtypeError):
        tt.topk(tt.ones(3), 2, out=(tt.empty(0), tt.empty(0)))


@pytest.mark.parametrize(
    "name, args",
    [
        ("floor", ()),
        ("sign", ()),
        ("clamp", (0, 3)),
        ("narrow_copy", (1, 0, 1)),
        ("softmax", (0,)),
        ("tril", ()),
        ("take", (tt.tensor([0]),)),
        ("scatter_add", (0, tt.zeros(1, 2, dtype=tt.int64), tt.ones(1, 2))),
        ("quantile", (0.5,)),
    ],
)
def test_functions_that_pytorch_restricts_to_the_dtype_of_the_result(name, args):
    function, x = getattr(tt, name), tt.tensor([[1.5, 2.0], [3.0, 4.5]])
    for wrong in (tt.float64, tt.complex64):
        with pytest.raises(tt.errors.DtypeError):
            function(x, *args, out=tt.empty(0, dtype=wrong))
    out = tt.empty(0)
    assert function(x, *args, out=out) is out
    assert tt.equal(out, function(x, *args))


@pytest.mark.parametrize(
    "call",
    [
        lambda **options: tt.arange(3, **options),
        lambda **options: tt.ones(3, **options),
        lambda **options: tt.rand(3, **options),
        lambda **options: tt.linspace(0, 1, 3, **options),
        lambda **options: tt.cumsum(tt.ones(3), 0, **options),
        lambda **options: tt.sum(tt.ones(3, 2), 1, **options),
    ],
)
def test_out_has_the_dtype_that_the_call_names(call):
    for wrong in (tt.float64, tt.float16, tt.complex64):
        with pytest.raises(tt.errors.DtypeError):
            call(dtype=tt.float32, out=tt.empty(3, dtype=wrong))
        assert call(out=tt.empty(3, dtype=wrong)).dtype is wrong
    assert call(dtype=tt.float64, out=tt.empty(3, dtype=tt.float64)).dtype is tt.float64


def test_functions_that_pytorch_lets_convert():
    x, wide = tt.ones(2, 2), tt.empty(0, dtype=tt.float64)
    assert tt.lerp(x, x, 0.5, out=wide).dtype is tt.float64
    assert tt.abs(x.to(tt.complex64), out=wide).dtype is tt.float64
    outs = [tt.empty(0, dtype=d) for d in (tt.float64, tt.float64, tt.int64, tt.float64)]
    assert tt.linalg.lstsq(tt.eye(3), tt.ones(3, 1), out=tuple(outs))[0].dtype is tt.float64


@pytest.mark.parametrize("name", ["cholesky", "det", "eigvalsh", "inv", "norm", "qr", "svdvals"])
def test_matrices_keep_their_dtype(name):
    function, x = getattr(tt.linalg, name), tt.tensor([[2.0, 1.0], [1.0, 3.0]])
    n = 2 if name == "qr" else 1

    def outs(dtype):
        made = tuple(tt.empty(0, dtype=dtype) for _ in range(n))
        return made if n > 1 else made[0]

    with pytest.raises(tt.errors.DtypeError):
        function(x, out=outs(tt.float64))
    found, expected = function(x, out=outs(tt.float32)), function(x)
    for a, b in zip(found, expected) if n > 1 else [(found, expected)]:
        assert tt.equal(a, b)


@pytest.mark.parametrize("name", ["cummax", "cummin", "max", "median", "sort", "mode"])
def test_elements_beside_indices_keep_their_dtype(name):
    x, wrong = tt.tensor([3, 1, 2], dtype=tt.uint8), tt.empty(0, dtype=tt.int64)
    with pytest.raises(tt.errors.DtypeError):
        getattr(tt, name)(x, 0, out=(wrong, wrong.clone()))


def test_copies_of_views_are_written_to_out():
    x, out = tt.arange(4.0), tt.empty(0)
    assert tt.view_copy(x, (2, 2), out=out) is out and out.tolist() == [[0, 1], [2, 3]]
    parts = tt.empty(0), tt.empty(0)
    tt.split_copy(x, 3, out=parts)
    assert [p.tolist() for p in parts] == [[0, 1, 2], [3]]
    with pytest.raises(tt.errors.DtypeError):
        tt.alias_copy(x, out=tt.empty(4, dtype=tt.float64))


def test_all_forms_of_normal_resize_out():
    number, one, many = 2.0, tt.ones(()), tt.ones(2, 3)
    for mean, std in ((one, one), (many, many), (number, many), (many, number)):
        out = tt.empty(0)
        assert tt.normal(mean, std, out=out) is out and out.shape == (one * mean * std).shape


def test_norms_of_complex_numbers_are_written_to_real_ones():
    out = tt.empty(0)
    assert tt.norm(tt.tensor([3 + 4j, 0j]), out=out).item() == 5 and out.dtype is tt.float32


def test_out_may_be_the_input():
    x = tt.tensor([1.0, 2, 3])
    assert tt.cumsum(x, 0, out=x).tolist() == [1, 3, 6]
    assert tt.exp(x, out=x) is x
    with pytest.raises(tt.errors.InvalidArgumentError, match="shares memory"):
        tt.add(x[:-1], 1, out=x[1:])


def test_scatter_reads_what_it_writes():
    x = tt.tensor([3, 2, 0, 1])
    version = x._version
    assert x.scatter_(0, x, x).tolist() == [0, 1, 2, 3] and x._version > version
    assert x.scatter_(0, x[:2], 7).tolist() == [7, 7, 2, 3]
    with pytest.raises(IndexError, match=r"index holds 7 at \[1\]"):
        x.scatter_(0, tt.tensor([2, 7]), 1)
    assert x.tolist() == [7, 7, 2, 3]


def test_out_has_no_gradient():
    x = tt.ones(2, requires_grad=True)
    for out in (tt.empty(2), tt.empty(0)):
        with pytest.raises(tt.errors.AutogradError):
            tt.add(x, 1, out=out)


def test_writes_of_one_value_to_elements_that_share_an_address():
    def written(write, *shape):
        base = tt.ones(1)
        write(base.expand(*shape or (3,)))
        return base.item()

    some = tt.tensor([True, False, True])
    assert written(lambda x: x.fill_(3)) == 3
    assert written(lambda x: x.zero_(), 2, 2) == 0
    assert written(lambda x: x.masked_fill_(some, 2)) == 2
    assert written(lambda x: x.masked_fill_(some, tt.tensor(2.0))) == 2
    assert written(lambda x: x.masked_fill_(some & False, 2)) == 1
    assert written(lambda x: x.index_fill_(0, tt.tensor([0, 2]), 2)) == 2
    assert written(lambda x: x.index_fill_(0, tt.tensor([1]), tt.tensor(2.0))) == 2
    assert written(lambda x: x.index_put_((tt.tensor([0]),), tt.tensor(2.0))) == 2
    assert written(lambda x: x.fill_diagonal_(2), 3, 3) == 2
    for key in (0, slice(2), some, tt.tensor([0, 1]), (slice(None), None)):
        assert written(lambda x: x.__setitem__(key, 5)) == 5
    x = tt.zeros(4).as_strided((2, 3), (1, 1))  # neighbours overlap
    x.masked_fill_(tt.tensor([[False, False, True], [False, False, False]]), 1)
    assert x.tolist() == [[0, 0, 1], [0, 1, 0]]


def test_several_values_do_not_fit_one_address():
    for write in (
        lambda x: x.add_(1),
        lambda x: x.copy_(tt.ones(3)),
        lambda x: x.index_put_((tt.tensor([0, 1]),), tt.ones(2)),
        lambda x: x.index_add_(0, tt.tensor([0]), tt.ones(1)),
    ):
        with pytest.raises(tt.errors.InvalidArgumentError, match="share an address"):
            write(tt.zeros(1).expand(3))


def test_strides_of_results():
    last = tt.ones(2, 3, 4, 5).to(memory_format=tt.channels_last)
    cut = tt.ones(4, 6, 8)[:, ::2]
    at = tt.tensor([0, 1])
    wide = tt.ones(3, 4).t()
    grey = tt.ones(2, 4, 5, 1).permute(0, 3, 1, 2)
    single = tt.ones(6, 1, 1, 1)[::2]
    for result, strides in (
        (tt.cat([last] * 2, 1), (120, 1, 30, 6)),
        (tt.cat([grey] * 2, 1), (40, 1, 10, 2)),
        (tt.cat([single] * 2, 1), (2, 1, 1, 1)),
        (tt.cat([last] * 2, 0), (60, 1, 15, 3)),
        (tt.cat([last, last.contiguous()], 0), (60, 20, 5, 1)),
        (tt.stack([last] * 2, 1), (120, 3, 1, 30, 6)),
        (tt.stack([last] * 2, 4), (120, 40, 10, 2, 1)),
        (tt.roll(last, 1, 1), (60, 1, 15, 3)),
        (tt.flip(last, [0]), (60, 1, 15, 3)),
        (last[at], (60, 1, 15, 3)),
        (last[:, :, at], (30, 1, 3, 6)),
        (cut.transpose(0, 2) + 1, (1, 8, 24)),
        (tt.zeros_like(cut.transpose(0, 2)), (1, 8, 24)),
        (tt.ones(4, 6, 8).permute(2, 0, 1)[1:3] * tt.ones(6), (1, 12, 2)),
        (tt.tril(wide), (3, 1)),
        (wide.masked_fill(tt.ones(4, 1) > 0, 2.0), (3, 1)),
        (wide[::2].clone(), (1, 2)),
    ):
        assert result.stride() == strides
    both = [tt.arange(12.0).reshape(2, 3, 2, 1).to(memory_format=tt.channels_last)] * 2
    assert tt.equal(tt.stack(both, 2), tt.stack([x.contiguous() for x in both], 2))


def test_promotion_as_pytorch_does():
    assert (tt.ones(1) + tt.tensor(1j, dtype=tt.complex128)).dtype is tt.complex64
    half = tt.tensor([1.0], dtype=tt.float16)
    assert (tt.tensor([2049]) + half).tolist() == [2048]  # 2049 is rounded to float16 first
    assert (tt.tensor([100001]) / half).tolist() == [float("inf")]
    x = tt.tensor([5, -5], dtype=tt.int32)
    assert tt.clamp(x, max=2**31).tolist() == [5, -5]
    assert tt.clamp(x, min=-(2**40), max=0).tolist() == [0, -5]
    assert tt.clamp(x.to(tt.int8), min=-129).tolist() == [5, -5]
    with pytest.raises(tt.errors.InvalidArgumentError):
        tt.clamp(x, min=2**31)


def test_batch_norm_of_nothing_and_softsign_of_complex_numbers():
    empty = tt.ones(0)
    assert tt.nn.functional.batch_norm(empty, None, None, training=True).shape == (0,)
    x = tt.tensor([1 + 2j, -3j], requires_grad=True)
    y = tt.nn.functional.softsign(x)
    tt.testing.assert_close(y.detach(), tt.tensor([0.309017 + 0.618034j, -0.75j]))
    y.abs().sum().backward()
    tt.testing.assert_close(x.grad, tt.tensor([0.0427051 + 0.0854102j, -0.0625j]))


def test_view_as_another_dtype():
    x = tt.ones(2)
    assert x.view(tt.int32).tolist() == [1065353216] * 2
    assert x.view(dtype=tt.uint8).tolist() == [0, 0, 128, 63] * 2
    assert tt.ones(2, 4).view(tt.float64).shape == (2, 2)
    assert tt.ones(2, 2).view(tt.complex64).tolist() == [[1 + 1j], [1 + 1j]]
    assert tt.ones(4, 2).t().view(tt.int32).shape == (2, 4)
    assert tt.tensor(1.0).view(tt.int32).item() == 1065353216
    assert not tt.ones(2, requires_grad=True).view(tt.float16).requires_grad
    bits = x.view(tt.int32)
    del x
    assert bits.view(tt.float32).tolist() == [1, 1]
    y = tt.ones(2)
    y.view(tt.int32).zero_()
    assert y.tolist() == [0, 0]
    assert tt.ones(0, 4).view(tt.uint8).shape == (0, 16)


@pytest.mark.parametrize(
    "x, dtype",
    [
        (tt.ones(3), tt.float64),
        (tt.ones(4, 2).t(), tt.int16),
        (tt.tensor(1.0), tt.int16),
        (tt.ones(5)[1:], tt.float64),
        (tt.ones(3, 2, 1).expand(3, 2, 4), tt.int16),
    ],
)
def test_view_as_another_dtype_is_refused(x, dtype):
    with pytest.raises(tt.errors.ShapeError, match="^view: self"):
        x.view(dtype)


def test_any_and_all_over_no_dimension():
    x = tt.tensor([[True, False], [True, True]])
    assert tt.all(x, []).tolist() == x.tolist() and tt.any(x, ()).tolist() == x.tolist()
    assert tt.all(x, [], keepdim=True).shape == (2, 2)
    assert x.all(dim=[]).shape == (2, 2) and tt.all(x, dim=None).item() is False
    found = tt.all(tt.tensor([3, 0], dtype=tt.uint8), [])
    assert (found.dtype, found.tolist()) == (tt.uint8, [1, 0])


def test_layout_and_pin_memory():
    for make in (tt.zeros, tt.ones, tt.empty, tt.rand, tt.randn, tt.eye, tt.arange):
        assert make(2, layout=tt.strided, pin_memory=False).numel() in (2, 4)
    assert tt.full((2,), 1.0, layout=tt.strided).shape == (2,)
    assert tt.zeros_like(tt.ones(2), layout=tt.strided, pin_memory=False).tolist() == [0, 0]
    with pytest.raises(tt.errors.UnimplementedError, match="zeros: layout is tt.sparse_coo"):
        tt.zeros(2, layout=tt.sparse_coo)


def test_axis_is_dim():
    x = tt.ones(2, 2)
    assert tt.softmax(x, axis=0).tolist() == [[0.5, 0.5], [0.5, 0.5]]
    assert tt.cumsum(x, axis=0).tolist() == [[1, 1], [2, 2]] == x.cumsum(axis=0).tolist()
    assert tt.unsqueeze(x, axis=0).shape == (1, 2, 2)
    assert tt.logsumexp(x, axis=1).shape == (2,)
    with pytest.raises(TypeError, match="dim"):
        tt.cumsum(x)


def test_integers_beyond_64_bits():
    assert (tt.ones(1) + 2**63).item() == 2.0**63
    assert (tt.ones(1) * (2**64 - 1)).item() == 2.0**64 and (tt.ones(1) < 2**63).item()
    assert (tt.ones(1, dtype=tt.int64) + 2**63).item() == 1 - 2**63
    with pytest.raises(OverflowError):
        tt.tensor([True]) * 2**63
    assert tt.full((1,), 2**63, dtype=tt.float32).item() == 2.0**63
    assert tt.zeros(1).fill_(2**63).item() == 2.0**63
    for bad in (lambda: tt.ones(1) + 2**64, lambda: tt.full((1,), 2**63)):
        with pytest.raises(tt.errors.InvalidArgumentError, match="64 bits"):
            bad()


def test_ints_above_int64_as_bounds_and_factors():
    integers = tt.tensor([1, 5])
    for top in (2**63, 2**64 - 1):
        assert integers.clamp(max=top).tolist() == [1, 5]
        assert integers.clamp_max(top).tolist() == [1, 5]
        assert integers.to(tt.uint8).clamp(max=top).tolist() == [1, 5]
        with pytest.raises(OverflowError):
            integers.clamp(min=top)
        with pytest.raises(OverflowError):
            integers.clamp_min(top)
    assert tt.ones(1).clamp(min=2**64 - 1).item() == 2.0**64
    assert tt.add(tt.zeros(1), 1, alpha=2**63).item() == 2.0**63
    with pytest.raises(OverflowError):
        tt.add(integers, 1, alpha=2**63)
    with pytest.raises(OverflowError):
        tt.ones(1) * 2**64


def test_einsum_with_numbers_for_dimensions():
    a, b = tt.rand(2, 3), tt.rand(3, 4)
    assert tt.einsum(a, [0, 1], b, [1, 2], [0, 2]).tolist() == tt.einsum("ij,jk", a, b).tolist()
    assert tt.einsum(a, [0, 1], b, [1, 2]).tolist() == tt.einsum("ij,jk->ik", a, b).tolist()
    assert tt.einsum(a, [1, 0]).tolist() == a.t().tolist()
    assert tt.einsum(a, [27, 1], [27]).tolist() == tt.einsum("ij->i", [a]).tolist()
    batch = tt.rand(5, 2, 3)
    assert tt.einsum(batch, [..., 0, 1], b, [1, 2], [..., 0, 2]).shape == (5, 2, 4)
    with pytest.raises(tt.errors.InvalidArgumentError, match="52"):
        tt.einsum(a, [0, 52], [0])
    with pytest.raises(TypeError, match="list of ints"):
        tt.einsum(a, b)


def test_expanded_out_is_refused():
    for size in (2, 3):
        with pytest.raises(tt.errors.InvalidArgumentError, match="share an address"):
            tt.add(tt.ones(3), 1, out=tt.zeros(1).expand(size))


@pytest.mark.parametrize(
    "size, stride, offset",
    [
        ((4, 3), (1, 1), 0),
        ((5, 3), (0, 2), 1),
        ((2, 3, 3), (3, 2, 1), 0),
        ((3, 1, 7), (1, 9, 0), 2),
    ],
)
def test_addresses_that_elements_share(size, stride, offset):
    """Such an address receives the gradients of all its elements, and is filled if the mask has one
    of them."""
    base = [0.5 * i - 2 for i in range(12)]
    weights = tt.arange(1, math.prod(size) + 1, dtype=tt.float64).reshape(size)
    mask = weights.remainder(3) == 0
    gradient, filled = [0.0] * len(base), list(base)
    for at in itertools.product(*map(range, size)):
        address = offset + sum(i * s for i, s in zip(at, stride))
        gradient[address] += 2 * base[address] * weights[at].item()
        if mask[at].item():
            filled[address] = 7
    x = tt.tensor(base, dtype=tt.float64, requires_grad=True)
    (x.as_strided(size, stride, offset).square() * weights).sum().backward()
    assert x.grad.tolist() == gradient
    y = tt.tensor(base, dtype=tt.float64)
    y.as_strided(size, stride, offset).masked_fill_(mask, 7)
    assert y.tolist() == filled


def test_out_has_the_dtype_of_the_result_where_pytorch_demands_it():
    x, eye = tt.ones(2), tt.eye(2)
    wide = tt.float64
    calls = [
        (lambda out: tt.any(x > 0, out=out), wide),
        (lambda out: tt.all(eye > 0, dim=1, out=out), wide),
        (lambda out: tt.any(eye > 0, dim=[], out=out), wide),
        (lambda out: tt.abs(x, out=out), wide),
        (lambda out: tt.lerp(x, x, x, out=out), wide),
        (lambda out: tt.clamp_min(x, 0.5, out=out), wide),
        (lambda out: tt.clamp_max(x, 0.5, out=out), wide),
        (lambda out: tt.inverse(eye, out=out), wide),
        (lambda out: tt.slogdet(eye, out=(out, out.clone())), wide),
        (lambda out: tt.fft.irfft(x, out=out), tt.complex64),
        (lambda out: tt.fft.hfft2(eye, out=out), tt.complex64),
    ]
    for call, dtype in calls:
        out = tt.full((2,), 7, dtype=dtype)
        with pytest.raises(RuntimeError):
            call(out)
        assert (out == 7).all()


def test_out_of_another_precision_where_pytorch_converts():
    x, eye = tt.ones(2), tt.eye(2)
    double, byte = tt.empty(2, dtype=tt.float64), tt.empty(2, dtype=tt.uint8)
    assert tt.any(eye > 0, dim=1, out=byte) is byte and byte.tolist() == [1, 1]
    assert tt.lerp(x, 2 * x, 0.5, out=double).tolist() == [1.5, 1.5]
    assert tt.clamp_min(x, 2 * x, out=double).tolist() == [2, 2]
    assert tt.abs(tt.complex(3 * x, 4 * x), out=double).tolist() == [5, 5]
    assert tt.fft.irfft(x, out=double).tolist() == [1, 0]
