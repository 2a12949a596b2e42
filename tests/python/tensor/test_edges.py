"""Edge values and arguments of operators where PyTorch 2.15 and tt once gave different answers; the
values are PyTorch's."""
import inspect
import math
import operator
import re
from threading import Thread

import numpy
import pytest
import tt


def grads(y, *inputs):
    return [g.tolist() for g in tt.autograd.grad(y.sum(), inputs)]


def test_atan2_at_the_origin_has_no_slope():
    y, x = tt.tensor([0.0, 0.0, 1e-30, 3.0], requires_grad=True), tt.tensor(
        [0.0, 1e-30, 0.0, 4.0], requires_grad=True
    )
    dy, dx = grads(tt.atan2(y, x), y, x)
    assert dy[:3] == [0, 0, 0] and dx[:3] == [0, 0, 0]
    assert dy[3] == pytest.approx(4 / 25) and dx[3] == pytest.approx(-3 / 25)


def test_elu_at_nan_and_zero():
    x = tt.tensor([math.nan, 0.0, -1.0, 2.0], requires_grad=True)
    (first,) = tt.autograd.grad(tt.nn.functional.elu(x, 0.5).sum(), x, create_graph=True)
    assert first.tolist() == pytest.approx([1, 0.5, 0.5 * math.exp(-1), 1])
    assert grads(first, x)[0] == pytest.approx([0, 0, 0.5 * math.exp(-1), 0])


@pytest.mark.parametrize(
    "low, high, expected",
    [
        (1.0, 1.0, ([0, 1, 0], [1, 0, 0], [0, 0, 1])),
        (0.0, 2.0, ([0.5, 1, 0.5], [0.5, 0, 0], [0, 0, 0.5])),
        (2.0, 1.0, ([0, 0, 0], [0, 0, 0], [1, 1, 1])),
    ],
)
def test_clamp_divides_its_gradient_among_bounds(low, high, expected):
    x = tt.tensor([0.0, 1.0, 2.0], requires_grad=True)
    bounds = [tt.full((3,), v, requires_grad=True) for v in (low, high)]
    assert grads(tt.clamp(x, *bounds), x, *bounds) == list(map(list, expected))


def test_tensors_of_one_number_as_bounds():
    """PyTorch takes 0-dim tensors that require no gradient for numbers."""
    x = tt.tensor([1.0, 2, 3])
    assert x.clamp(2, x.max()).tolist() == tt.clamp(x, tt.tensor(2), 3.5).tolist() == [2, 2, 3]
    assert x.clone().clamp_(min=0, max=tt.tensor(2)).tolist() == [1, 2, 2]
    for bound in (tt.ones(3), tt.ones((), requires_grad=True)):
        with pytest.raises(TypeError, match="no form takes"):
            x.clamp(0, bound)


def test_atleast_takes_several_tensors():
    x = tt.ones(2)
    shapes = [tuple(y.shape) for y in tt.atleast_3d(x, tt.tensor(1))]
    assert shapes == [(1, 2, 1), (1, 1, 1)] and tt.atleast_1d() == ()
    assert [y.shape for y in tt.atleast_2d([x, x])] == [(1, 2)] * 2


def test_numbers_as_bounds_have_the_gradient_of_elements_at_them():
    x = tt.tensor([0.0, 1.0, 2.0], requires_grad=True)
    assert grads(tt.clamp_min(x, 1.0), x) == [[0, 0, 1]]
    assert grads(tt.clamp_max(x, 1.0), x) == [[1, 0, 0]]


def test_logsigmoid_keeps_its_small_second_derivative_in_bfloat16():
    x = tt.tensor([-10.0], dtype=tt.bfloat16, requires_grad=True)
    (first,) = tt.autograd.grad(tt.nn.functional.logsigmoid(x).sum(), x, create_graph=True)
    assert grads(first, x)[0][0] == pytest.approx(-math.exp(-10), rel=2e-2)


@pytest.mark.parametrize("shape, dim", [((0,), None), ((3, 0), 1), ((3, 0), 0)])
def test_prod_of_nothing_has_second_derivatives(shape, dim):
    x = tt.zeros(*shape, requires_grad=True)
    y = tt.prod(x) if dim is None else tt.prod(x, dim)
    (first,) = tt.autograd.grad(y.sum(), x, create_graph=True)
    assert first.shape == shape and first.requires_grad
    assert tt.autograd.grad(first.sum(), x)[0].shape == shape


def test_integer_products_cut_their_factors():
    m = tt.full((1, 2, 2), 3)
    assert tt.addmm(m[0], m[0], m[0], beta=1.7, alpha=2.9).tolist() == [[39, 39], [39, 39]]
    assert tt.baddbmm(m, m, m, beta=-0.9, alpha=1.2).tolist() == [[[18, 18], [18, 18]]]


def test_numbers_come_first():
    t = tt.tensor([1, 2, -3])
    assert tt.floor_divide(7, t).tolist() == [7, 3, -3] and tt.floor_divide(-8, 6).item() == -2
    assert tt.bitwise_left_shift(True, tt.tensor([1, 2])).tolist() == [2, 4]
    assert (tt.tensor([True, False]) << tt.tensor([3, 1])).tolist() == [8, 0]
    assert tt.float_power(2, tt.tensor([1.0, 2.0])).tolist() == [2, 4]
    with pytest.raises(NotImplementedError):
        tt.bitwise_left_shift(tt.tensor([True]), tt.tensor([True]))


def test_operators_need_a_tensor():
    t = tt.ones(3)
    for name in (
        "__add__",
        "__radd__",
        "__iadd__",
        "__sub__",
        "__rsub__",
        "__mul__",
        "__truediv__",
        "__eq__",
        "__lt__",
        "__matmul__",
        "__neg__",
    ):
        for other in ((),) if name == "__neg__" else ((t,), (2.0,), (3,)):
            for wrong in (5, 2.5, None, "x"):
                with pytest.raises(TypeError):
                    getattr(tt.Tensor, name)(wrong, *other)


def test_reflected_operators_of_a_number_first():
    assert tt.Tensor.__rpow__(2.0, tt.tensor([3.0])).tolist() == [9]
    assert tt.Tensor.__rmod__(2.0, tt.tensor([3.0])).tolist() == [1]
    with pytest.raises(TypeError):
        tt.Tensor.__rpow__(2.0, 3)


def test_refusals():
    t = tt.ones(4, 5)
    for start in (tt.tensor([0, 1]), tt.tensor(True), tt.tensor(1.0)):
        with pytest.raises((RuntimeError, ValueError)):
            tt.narrow(t, 1, start, 2)
    assert tt.narrow(t, 1, tt.tensor(2), 2).shape == (4, 2)
    with pytest.raises(RuntimeError) as caught:
        tt.multinomial(tt.tensor([[1, 2]]), 2)
    assert not isinstance(caught.value, NotImplementedError)


def test_attention_to_one_key_has_no_gradient_of_its_score():
    """With one key the probability is 1 whatever the score: its gradients are exactly 0, however
    large the scores are."""
    g = tt.Generator().manual_seed(0)
    q, k, v = (tt.empty(2, n, 8).uniform_(-9, 9, generator=g).requires_grad_() for n in (3, 1, 1))
    y = tt.nn.functional.scaled_dot_product_attention(q, k, v)
    dq, dk, dv = tt.autograd.grad((y * y).sum(), (q, k, v))
    assert not dq.any() and not dk.any() and dv.any()


def test_attention_with_large_scores():
    """Rounding of a large log-sum-exp does not get into the values' gradient: against the same in
    float64."""
    g = tt.Generator().manual_seed(1)
    wide = [
        tt.empty(4, 3, n, 8, dtype=tt.float64).uniform_(-9, 9, generator=g).float().double()
        for n in (5, 6, 6, 5)
    ]

    def value_grad(q, k, v, out):
        v = v.detach().requires_grad_()
        return tt.autograd.grad(tt.nn.functional.scaled_dot_product_attention(q, k, v), v, out)[
            0
        ].double()

    exact = value_grad(*wide)
    assert (value_grad(*(t.float() for t in wide)) - exact).abs().max() <= 4e-7 * exact.abs().max()


def test_adagrad_starts_both_parts_of_complex_sums():
    p = tt.tensor([1 + 2j], requires_grad=True)
    p.grad = tt.tensor([3 - 4j])
    tt.optim.Adagrad([p], lr=0.1, initial_accumulator_value=0.5).step()
    want = complex(1 - 0.1 * 3 / math.sqrt(0.5 + 9), 2 + 0.1 * 4 / math.sqrt(0.5 + 16))
    assert abs(p.item() - want) < 1e-6


def test_kl_div_of_one_number_by_batchmean():
    x, y = tt.tensor(-1.0), tt.tensor(0.5)
    assert tt.nn.functional.kl_div(x, y, reduction="batchmean").item() == pytest.approx(
        0.5 * (math.log(0.5) + 1)
    )


def test_adjacent_columns_do_not_overlap():
    """x[:, 2:] += x[:, :2] and the like: all pairs of such views against NumPy; what truly overlaps
    is refused."""
    keys = [
        (slice(a, b, c), slice(d, e, f))
        for a, b, c in ((0, 4, 1), (0, 4, 2), (1, 4, 2))
        for d, e, f in ((0, 2, 1), (2, 4, 1), (1, 3, 1), (0, 4, 2), (1, 4, 2))
    ]
    refused = 0
    for a in keys:
        for b in keys:
            want = numpy.arange(16.0).reshape(4, 4)
            x = tt.tensor(want)
            if want[a].shape != want[b].shape:
                continue
            cells = numpy.arange(16).reshape(4, 4)
            apart = not set(cells[a].ravel()) & set(cells[b].ravel())
            try:
                x[a].sub_(x[b])
            except ValueError:
                assert not apart, (a, b)
                refused += 1
            else:
                want[a] -= want[b].copy()
                assert x.tolist() == want.tolist(), (a, b)
    assert refused


def test_leaves_over_a_part_of_a_tensor():
    x = tt.arange(6.0).reshape(2, 3).requires_grad_()
    for write in (
        lambda: x[0].zero_(),
        lambda: x.view(-1).mul_(2),
        lambda: x.__setitem__(0, 5),
        lambda: x.mul_(2),
    ):
        with pytest.raises(RuntimeError, match="leaf"):
            write()
    row = x[1]
    with tt.no_grad():
        x.mul_(2)
    assert row.requires_grad and x.is_leaf
    row.sum().backward()
    assert x.grad.tolist() == [[0, 0, 0], [1, 1, 1]]
    x.data -= x.grad
    assert x.tolist() == [[0, 2, 4], [5, 7, 9]]


def test_writes_through_data():
    """Graphs of x do not heed them, and use the values of the time of backward, as PyTorch's do."""
    x = tt.tensor([1.0, 2], requires_grad=True)
    y = x.exp()
    z = y * x
    x.data.mul_(3)
    y.data[0] = 5
    assert (x._version, y._version, x.data._version) == (0, 0, 1)
    z.sum().backward()
    assert x.grad.tolist() == pytest.approx([5 + 3 * 5, 7 * math.exp(2)], rel=1e-6)
    data = x.data
    y = x * data
    data.add_(1)
    with pytest.raises(RuntimeError, match="written in place since"):
        y.sum().backward()
    y = x * x
    x.detach().add_(1)
    with pytest.raises(RuntimeError, match="written in place since"):
        y.sum().backward()


def test_what_depends_on_values_heeds_writes_through_data():
    """Weights that autocast has converted, and a compiled step."""
    weight = tt.nn.Parameter(tt.ones(2, 2))
    x = tt.ones(1, 2)
    with tt.autocast("cpu", tt.bfloat16):
        assert tt.nn.functional.linear(x, weight).tolist() == [[2, 2]]
        weight.data.mul_(2)
        assert tt.nn.functional.linear(x, weight).tolist() == [[4, 4]]
    layer = tt.nn.Linear(64, 64, bias=False)
    compiled = tt.compile(layer)
    x = tt.ones(8, 64)
    for _ in range(3):
        assert tt.equal(compiled(x), layer(x))
        layer.weight.data.mul_(2)


def test_base_of_a_view():
    x = tt.zeros(2, 3, requires_grad=True)
    assert x[0][1:]._base is x and x.t()._base is x and x._base is None
    y = x * 1
    assert y[0]._base.data_ptr() == y.data_ptr() and y[0]._base.shape == (2, 3)
    assert x.data._base is None and not x.data._is_view() and x.detach()._base is None
    assert x.data[0]._is_view() and x.view_as(x)._base is x and tt.ones(2)[:1]._base.shape == (2,)


def test_kept_gradients_are_tensors_of_their_own():
    x = tt.ones(3, requires_grad=True)
    y = x * 2
    z = y + 1
    y.retain_grad()
    z.retain_grad()
    z.sum().backward()
    y.grad.mul_(5)
    assert y.grad.tolist() == [5, 5, 5] and z.grad.tolist() == [1, 1, 1]


def test_where_of_a_condition_alone():
    x = tt.tensor([[0.0, 2.0], [3.0, 0.0]])
    rows, columns = tt.where(x > 1)
    assert rows.tolist() == [0, 1] and columns.tolist() == [1, 0]
    assert tt.where(x > 1, x, 0).tolist() == [[0, 2], [3, 0]] == x.where(x > 1, 0).tolist()
    with pytest.raises(TypeError):
        tt.where(x > 1, x)


@pytest.mark.parametrize("number", [2**63, 2**64, -(2**63) - 1])
def test_ints_of_any_size_are_floats_where_the_dtype_says_so(number):
    assert tt.tensor([number, 1], dtype=tt.float32)[0].item() == float(number)
    assert tt.tensor(number, dtype=tt.complex128).item() == complex(number)
    with pytest.raises(ValueError):
        tt.tensor([number])


def test_numbers_that_do_not_fit_are_no_tensor():
    for data, dtype in (
        ([300], tt.uint8),
        (2**40, tt.int32),
        ([[0.0], [1e30]], tt.int64),
        ([1, -129], tt.int8),
    ):
        with pytest.raises(ValueError):
            tt.tensor(data, dtype=dtype)
    assert (
        tt.tensor([255, 1.7], dtype=tt.uint8).tolist() == [255, 1]
        and tt.tensor([], dtype=tt.int8).dtype is tt.int8
    )
    assert (
        tt.tensor([numpy.float64(1), numpy.float32(2)]).dtype is tt.float64
        and tt.tensor([numpy.int32(3)]).dtype is tt.int32
    )
    assert tt.tensor([numpy.arange(2), numpy.arange(2)]).tolist() == [[0, 1], [0, 1]]
    endless = []
    endless.append(endless)
    with pytest.raises(TypeError, match="Could not infer dtype of list"):
        tt.tensor(endless)
    assert numpy.float32(2) in tt.arange(3.0) and "a" not in ["b"]


def test_conversions_that_change_nothing_return_the_tensor():
    p = tt.nn.Parameter(tt.ones(2, 2))
    assert (
        p.to("cpu") is p
        and p.float() is p
        and p.contiguous() is p
        and p.cpu() is p
        and p.to(tt.float32) is p
        and tt.as_tensor(p) is p
    )
    assert p.double() is not p and p.t().contiguous() is not p and p.to("cpu", copy=True) is not p
    m = tt.nn.Module()
    m.w = tt.nn.Parameter(tt.ones(1)).to("cpu")
    assert [name for name, _ in m.named_parameters()] == ["w"]


def test_grad_takes_what_pytorchs_takes():
    x, unused = tt.ones(2, requires_grad=True), tt.ones(3, requires_grad=True)
    found = tt.autograd.grad(
        outputs=(x * x).sum(),
        inputs=[x, unused],
        create_graph=True,
        only_inputs=True,
        materialize_grads=True,
    )
    assert [g.tolist() for g in found] == [[2, 2], [0, 0, 0]]
    assert tt.autograd.grad(x.sum(), [x, unused], None, None, False, True, True)[1] is None
    with pytest.raises(RuntimeError, match="not used"):
        tt.autograd.grad(x.sum(), [x, unused])


def test_sorted_tensors_have_the_strides_of_the_input():
    x = (tt.arange(120.0) * 7 % 31).reshape(2, 3, 4, 5)
    for view, strides in (
        (x.permute(3, 1, 0, 2), (1, 20, 60, 5)),
        (x.permute(3, 1, 0, 2)[::2], (1, 12, 36, 3)),
        (x.contiguous(memory_format=tt.channels_last), (60, 1, 15, 3)),
        (x[0, 0].T, (1, 5)),
        (tt.arange(3.0)[:, None].expand(3, 4), (4, 1)),
    ):
        for dim in range(view.ndim):
            values, indices = view.sort(dim, stable=True)
            assert values.stride() == indices.stride() == strides
            assert view.argsort(dim, stable=True).stride() == strides
            assert not values._is_view()
            dense = view.clone(memory_format=tt.contiguous_format).sort(dim, stable=True)
            assert values.equal(dense.values) and indices.equal(dense.indices)


@pytest.mark.parametrize(
    "call, last, permuted",
    [
        (lambda x: tt.nn.functional.dropout(x), (120, 1, 20, 4), (24, 6, 1, 48)),
        (lambda x: tt.nn.functional.dropout(x[::2]), (120, 1, 20, 4), (24, 6, 1, 24)),
        (lambda x: tt.diff(x), (96, 1, 16, 4), (24, 6, 1, 48)),
        (lambda x: tt.diff(x, 0, 1), (120, 1, 20, 4), (24, 6, 1, 48)),
        (lambda x: tt.nn.functional.group_norm(x, 2), (120, 1, 20, 4), (120, 30, 5, 1)),
        (lambda x: padded(x, "reflect"), (224, 1, 28, 4), (224, 56, 7, 1)),
        (lambda x: padded(x, "replicate"), (224, 1, 28, 4), (224, 56, 7, 1)),
        (lambda x: padded(x, "circular"), (224, 56, 7, 1), (224, 56, 7, 1)),
        (lambda x: x.roll((1, 2), (2, 3)), (120, 1, 20, 4), (120, 30, 5, 1)),
        (lambda x: x.roll((1, 5), (2, 3)), (120, 30, 5, 1), (120, 30, 5, 1)),
        (lambda x: tt.nn.functional.rms_norm(x, (5,)), (120, 1, 20, 4), (120, 30, 5, 1)),
        (lambda x: x.masked_scatter(x > 0, x), (120, 30, 5, 1), (120, 30, 5, 1)),
        (lambda x: tt.nn.functional.logsigmoid(x), (120, 30, 5, 1), (120, 30, 5, 1)),
        (lambda x: 2**x, (120, 30, 5, 1), (120, 30, 5, 1)),
    ],
)
def test_strides_of_results(call, last, permuted):
    """Those of PyTorch's for channels last and for another order of dimensions."""
    x = tt.randn(2, 4, 6, 5)
    for view, strides in (
        (x.contiguous(memory_format=tt.channels_last), last),
        (x.permute(3, 0, 1, 2).contiguous().permute(1, 2, 3, 0), permuted),
    ):
        got = call(view)
        assert [s for s, n in zip(got.stride(), got.shape) if n > 1] == [
            s for s, n in zip(strides, got.shape) if n > 1
        ]
        if got.equal(call(view)):  # no random numbers
            tt.testing.assert_close(got, call(x))
        else:
            assert ((got == 0) | (got == view[: len(got)] * 2)).all() and (got == 0).any()


def test_strides_of_attention_positions_and_rows():
    attention = tt.nn.functional.scaled_dot_product_attention
    x = tt.randn(2, 3, 4, 8)  # heads outside of queries
    y = attention(x, x, x, is_causal=True)
    assert y.view(6, 4, 8).shape == (6, 4, 8)
    inner = x.transpose(1, 2).contiguous().transpose(1, 2)
    z = attention(inner, inner, inner, is_causal=True)
    assert z.transpose(1, 2).view(2, 4, 24).shape == (2, 4, 24)
    tt.testing.assert_close(y, z)
    for view in (x[:, :1].expand(2, 3, 4, 8), x.mT.contiguous().mT):
        assert attention(view, x, x).is_contiguous()
    found = (x > 0).nonzero()
    assert found.t().is_contiguous() and found.t().view(-1).tolist() == sum(
        [found[:, d].tolist() for d in range(4)], []
    )
    rows = x[0].transpose(1, 2)
    assert tt.nn.functional.interpolate(rows, scale_factor=2).is_contiguous()


def padded(x, mode):
    return tt.nn.functional.pad(x, (1, 1, 1, 1), mode=mode)


def test_gradients_of_channels_last_groups_and_dropout():
    x = tt.randn(2, 4, 3, 3).contiguous(memory_format=tt.channels_last).requires_grad_()
    (grad,) = tt.autograd.grad(tt.nn.functional.group_norm(x, 2).square().sum(), [x])
    assert grad.stride() == x.stride()
    y = tt.nn.functional.dropout(x)
    (grad,) = tt.autograd.grad(y.sum(), [x])
    assert grad.equal((y != 0) * 2.0) and grad.stride() == x.stride()


def mean_of(values):
    return sum(values) / len(values)


def test_scatter_reduce_of_complex_numbers():
    x = tt.tensor([1 + 2j, 3j, 2.0], dtype=tt.complex128, requires_grad=True)
    src = tt.tensor([1j, 2 - 1j, -1.0, 4.0], dtype=tt.complex128, requires_grad=True)
    index = tt.tensor([0, 0, 2, 0])
    for include in (True, False):
        first = [complex(x[0])] * include + [1j, 2 - 1j, 4.0]
        third = [2.0] * include + [-1.0]
        for reduce, of in (("sum", sum), ("prod", math.prod), ("mean", mean_of)):
            got = x.scatter_reduce(0, index, src, reduce, include_self=include)
            tt.testing.assert_close(got, tt.tensor([of(first), 3j, of(third)], dtype=x.dtype))
            assert tt.autograd.gradcheck(
                lambda a, b: a.scatter_reduce(0, index, b, reduce, include_self=include), (x, src)
            )
    for reduce in ("amax", "amin"):
        with pytest.raises(NotImplementedError, match="must be real for amax and amin"):
            x.scatter_reduce(0, index, src, reduce)


def test_names_of_numpys():
    x = tt.arange(6.0).reshape(2, 3)
    assert (
        x.sum(axis=0).tolist() == [3, 5, 7]
        and x.mean(axis=1, keepdims=True).tolist() == [[1], [4]]
        and x.max(axis=1).indices.tolist() == [2, 2]
    )
    assert (
        tt.cat([x, x], axis=1).shape == (2, 6)
        and tt.stack([x, x], axis=-1).shape == (2, 3, 2)
        and x.argmax(axis=0).tolist() == [1, 1, 1]
    )
    assert (
        x.sum(axis=(0, 1)).item() == 15
        and x[None].squeeze(axis=0).shape == (2, 3)
        and x.var(axis=1, keepdims=True).shape == (2, 1)
    )
    index = tt.tensor([[2], [0]])
    assert (
        x.index_select(axis=1, index=index[0]).tolist() == [[2], [5]]
        and tt.gather(x, axis=1, index=index).tolist() == [[2], [3]]
        and x.select(axis=0, index=1).tolist() == [3, 4, 5]
        and x.narrow(axis=1, start=1, length=2).shape == (2, 2)
        and x.scatter_add(axis=1, index=index, src=tt.ones(2, 1)).sum().item() == 17
    )
    assert x.scatter(axis=1, index=index, value=5.0).equal(x.scatter(1, index, 5.0))
    assert x.scatter(axis=1, index=index, src=x).equal(x.scatter(1, index, x))
    assert tt.index_fill(x, axis=0, index=index[1], value=3).equal(x.index_fill(0, index[1], 3))
    assert tt.unflatten(x, axis=1, sizes=(3, 1)).shape == (2, 3, 1)
    assert tt.aminmax(x, axis=0, keepdims=True).min.tolist() == [[0, 1, 2]]
    assert tt.trapezoid(x, axis=0).equal(tt.trapezoid(x, dim=0))
    given = {"axis": 0, "index": index * 0, "src": x, "reduce": "amax"}
    assert tt.scatter_reduce(x, **given).equal(x.scatter_reduce(0, index * 0, x, "amax"))
    given = {"axis": 0, "index": index[1], "source": -x[:1], "reduce": "amin"}
    assert tt.index_reduce(x, **given).equal(x.index_reduce(0, index[1], -x[:1], "amin"))
    for call in (
        lambda: x.scatter(index=index, src=x),
        lambda: x.index_fill(index=index[0], value=2),
        lambda: tt.unflatten(x, sizes=(2, 2)),
        lambda: tt.gather(x, axis=1),
        lambda: x.index_select(index=index[0]),
        lambda: x.narrow(axis=1, start=1),
    ):
        with pytest.raises(TypeError, match="must be"):
            call()
    assert all(
        numpy.allclose(getattr(numpy, name)(x, axis=1), getattr(x.numpy(), name)(axis=1))
        for name in ("sum", "mean", "argmin", "prod")
    )


def test_operands_by_names_of_numpy():
    x, y = tt.tensor([1.0, 4.0]), tt.tensor([2.0, 3.0])
    for name in ("x", "x1", "a"):
        assert tt.add(**{name: x}, x2=y, alpha=2).tolist() == [5, 10]
        assert tt.sqrt(**{name: x}).tolist() == [1, 2] and tt.sum(**{name: x}, axis=0) == 5
        assert tt.fft.fft(**{name: x}, axis=0).real.tolist() == [5, -3]
        assert tt.permute(**{name: y[None]}, dims=(1, 0)).shape == (2, 1)
    assert tt.where(x > y, x=x, x2=y).tolist() == [2, 4]
    assert x.maximum(x2=y).tolist() == [2, 4] and x.clone().mul_(x2=y).tolist() == [2, 12]
    out = tt.empty(2)
    assert tt.sub(x=x, x2=y, out=out) is out and out.tolist() == [-1, 1]


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda x: tt.add(x, x=x), "'input' twice, once as 'x'"),
        (lambda x: tt.add(x, x, x2=x), "'other' twice, once as 'x2'"),
        (lambda x: tt.fft.fft(x, input=x, x=x), "'input' twice, once as 'x'"),
        (lambda x: x.add(x=x), "unexpected keyword argument 'x'"),
        (lambda x: tt.add(x, x, y=x), "unexpected keyword argument 'y'"),
        (lambda x: tt.add(), "missing 2 required positional arguments: 'input' and 'other'"),
        (lambda x: x.add(), "missing 1 required positional argument: 'other'"),
        (lambda x: tt.topk(x=x), "missing 1 required positional argument: 'k'"),
    ],
)
def test_operands_that_are_missing_or_given_twice(call, said):
    with pytest.raises(TypeError, match=re.escape(said)):
        call(tt.ones(2))


def test_empty_takes_a_memory_format():
    assert tt.empty(2, 3, 4, 5, memory_format=tt.channels_last).stride() == (60, 1, 15, 3)
    assert tt.empty((2, 3, 4, 5), memory_format=tt.contiguous_format).stride() == (60, 20, 5, 1)
    other = tt.ones(1).new_empty(2, 3, 4, 5, memory_format=tt.channels_last)
    assert other.stride() == (60, 1, 15, 3)
    leaf = tt.empty(2, 3, 4, 5, memory_format=tt.channels_last, requires_grad=True)
    assert leaf.is_leaf and leaf.requires_grad


@pytest.mark.parametrize(
    "shape, converted, strides",
    [
        ((2, 1, 3, 4), (12, 1, 4, 1), (12, 12, 4, 1)),
        ((2, 3, 1, 1), (3, 1, 3, 3), (3, 1, 1, 1)),
        ((2, 0, 3, 4), (0, 1, 0, 0), (0, 1, 0, 0)),
        ((1, 3, 1, 4), (12, 1, 12, 3), (12, 1, 12, 3)),
    ],
)
def test_channels_last_of_sizes_0_and_1(shape, converted, strides):
    x = tt.ones(shape)
    y = x.to(memory_format=tt.channels_last)
    assert y.stride() == converted and y.to(memory_format=tt.channels_last).stride() == converted
    assert x.double(memory_format=tt.channels_last).stride() == converted
    assert tt.empty(shape, memory_format=tt.channels_last).stride() == converted
    assert (x.contiguous(memory_format=tt.channels_last) is x) == (x.stride() == strides)
    assert x.contiguous(memory_format=tt.channels_last).stride() == strides
    assert not tt.ones(2, 0, 3, 4).is_contiguous(memory_format=tt.channels_last)
    with pytest.raises(ValueError, match="must have 4 dimensions"):
        tt.ones(2, 3).to(memory_format=tt.channels_last)


@pytest.mark.parametrize("p", [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, float("inf")])
def test_second_derivatives_of_distances_between_equal_elements(p):
    a = tt.tensor([[0.0, 1.0], [0.0, 0.3]], dtype=tt.float64, requires_grad=True)
    for distance in (lambda a, p: tt.cdist(a, a.detach(), p), tt.pdist):
        (slope,) = tt.autograd.grad(distance(a, p).sum(), a, create_graph=True)
        if slope.requires_grad:
            (curve,) = tt.autograd.grad((slope * tt.tensor([[2.0, 3.0], [5.0, 7.0]])).sum(), a)
            bent = 1 / 0.7 if p == 2 else 0.0  # perpendicular to the difference
            one = -1 if distance is tt.pdist else 0
            expected = [[bent * (2 + 5 * one), 0], [bent * (5 + 2 * one), 0]]
            tt.testing.assert_close(curve, tt.tensor(expected, dtype=tt.float64))


@pytest.mark.parametrize("name", ["elu", "celu", "selu"])
def test_activations_are_straight_at_0_in_second_derivatives(name):
    x = tt.tensor([-1.0, 0.0, 1.0, float("nan")], dtype=tt.float64, requires_grad=True)
    y = getattr(tt.nn.functional, name)(x)
    (slope,) = tt.autograd.grad(y.sum(), x, create_graph=True)
    (curve,) = tt.autograd.grad((slope * tt.ones(4)).sum(), x)
    assert curve[0] > 0.3 and curve[1:].tolist() == [0, 0, 0]


@pytest.mark.parametrize("dims", [0, (0, 1)])
def test_logsumexp_with_infinity_has_no_gradient_elsewhere(dims):
    x = tt.tensor([[1.0, tt.inf, -tt.inf, 2.0]] * 2, requires_grad=True)
    other = tt.tensor([[1.0, 2.0]] * 2, requires_grad=True)
    rows = x[0] if dims == 0 else x
    (slope,) = tt.autograd.grad(tt.logsumexp(rows, dims), x)
    assert slope[0].isnan().tolist() == [False, True, False, False]
    assert slope[0].nansum().item() == 0
    (slope,) = tt.autograd.grad(tt.logsumexp(other, 0).sum(), other)
    assert slope.tolist() == [[0.5, 0.5]] * 2


def test_sinc_is_bent_at_0():
    x = tt.zeros(1, dtype=tt.float64, requires_grad=True)
    (slope,) = tt.autograd.grad(tt.sinc(x), x, create_graph=True)
    (curve,) = tt.autograd.grad(slope, x)
    assert slope.item() == 0 and curve.item() == pytest.approx(-(math.pi**2) / 3)


def test_splits_take_the_names_of_their_forms():
    x = tt.arange(24).reshape(4, 2, 3)
    for keywords in (
        {"indices": [1, 3]},
        {"indices": (1, 3), "dim": 0},
        {"tensor_indices_or_sections": tt.tensor([1, 3])},
    ):
        for parts in (tt.tensor_split(x, **keywords), x.tensor_split(**keywords)):
            assert [len(part) for part in parts] == [1, 2, 1]
    for parts in (tt.tensor_split(x, sections=3), x.tensor_split(sections=3, dim=0)):
        assert [len(part) for part in parts] == [2, 1, 1]
    assert [len(part) for part in x.vsplit(indices=[1])] == [1, 3]
    assert [part.shape[1] for part in x.hsplit(indices=[1])] == [1, 1]
    assert [part.shape[2] for part in x.dsplit(indices=[1])] == [1, 2]
    with pytest.raises(TypeError):
        x.tensor_split()


def test_forms_of_functions_show_their_arguments():
    shown = inspect.signature(tt.nn.functional.max_pool2d_with_indices).parameters
    assert "kernel_size" in shown and "return_indices" not in shown
    assert tt.nn.functional.max_pool2d_with_indices.__name__ == "max_pool2d_with_indices"


def test_classes_of_other_libraries_are_named_with_them():
    foreign = type("Tensor", (), {"__module__": "torch"})()
    nn = tt.nn
    attention = nn.MultiheadAttention(4, 2)
    x = tt.ones(2, 4)
    for call in (
        lambda: tt.relu(foreign),
        lambda: tt.cat([x, foreign]),
        lambda: nn.Linear(4, 2)(foreign),
        lambda: attention(x, foreign, x),
        lambda: setattr(nn.Linear(4, 2), "weight", foreign),
        lambda: tt.optim.SGD([foreign], lr=0.1),
    ):
        with pytest.raises(TypeError, match=r"torch\.Tensor"):
            call()
    with pytest.raises(TypeError, match="must be Tensor, not tt.nn"):
        tt.relu(tt.nn.Linear(4, 2))
    with pytest.raises(TypeError, match="must be Tensor, not str"):
        tt.relu("x")


def test_a_slice_with_nan_is_left_by_renorm():
    found = tt.renorm(tt.tensor([[3.0, math.nan], [3.0, 4.0]]), 2, 0, 1.0)
    assert found[0, 0] == 3 and found[1].tolist() == pytest.approx([0.6, 0.8])


@pytest.mark.parametrize("worst", [math.nan, math.inf, 1e30])
def test_matrices_of_a_batch_do_not_change_the_exponentials_of_others(worst):
    x = tt.tensor([[3.0, -2.0], [1.5, 4.0]], dtype=tt.float64)
    batch = tt.stack([x, tt.full((2, 2), worst, dtype=tt.float64), x / 8])
    found = tt.linalg.matrix_exp(batch)
    for k in 0, 2:
        assert tt.allclose(found[k], tt.linalg.matrix_exp(batch[k]), rtol=1e-13, atol=0)


def test_signs_of_determinants_are_exact():
    tt.manual_seed(0)
    x = tt.randn(200, 3, 3, dtype=tt.float64)
    negative = tt.linalg.det(x) < 0
    assert set(tt.linalg.slogdet(x).sign.tolist()) == {1.0, -1.0}
    assert tt.equal(tt.isnan(tt.logdet(x)), negative)


def test_storages():
    x = tt.arange(6).view(2, 3)
    typed, untyped = x[1:].storage(), x[1:].untyped_storage()
    assert typed.data_ptr() == untyped.data_ptr() == x.data_ptr() and tt.is_storage(typed)
    assert (len(typed), typed.size(), typed.nbytes(), len(untyped)) == (6, 6, 48, 48)
    assert (typed.element_size(), untyped.element_size(), typed.dtype) == (8, 1, tt.int64)
    assert list(typed) == typed.tolist() == [0, 1, 2, 3, 4, 5] and typed[-1] == 5
    typed[1] = 9
    typed[4:].fill_(7)
    assert x.tolist() == [[0, 9, 2], [3, 7, 7]] and typed.untyped()[8] == 9
    assert typed.clone().copy_(tt.ones(6, dtype=tt.int64).storage()).tolist() == [1] * 6
    assert typed.type() == "tt.LongStorage" and typed.cpu() is typed and not typed.is_shared()
    for i in (6, -7):
        with pytest.raises(IndexError, match="out of range for a storage of size 6"):
            typed[i]
    assert untyped.resize_(48) is untyped
    with pytest.raises(NotImplementedError, match="tt cannot change that to 0"):
        untyped.resize_(0)
    y = tt.empty(0, dtype=tt.int64)
    assert y.set_(untyped, 1, (2, 2), (3, 1)).tolist() == [[9, 2], [7, 7]]
    assert y.set_(typed).tolist() == x.reshape(-1).tolist() and y.set_(x).shape == (2, 3)
    with pytest.raises(RuntimeError, match="must be of self's dtype"):
        tt.empty(0).set_(x)
    own = tt.UntypedStorage(8).fill_(0)
    assert tt.empty(0).set_(own, 0, (2,)).tolist() == [0, 0]


def test_storages_of_a_dtype():
    made = tt.FloatStorage([1.0, 2.0])
    assert isinstance(made, tt.FloatStorage) and not isinstance(made, tt.LongStorage)
    assert len(tt.LongStorage(3)) == 3 and made.long().tolist() == [1, 2]
    assert made.double().type() == "tt.DoubleStorage" and made.type(tt.int32).tolist() == [1, 2]
    assert isinstance(tt.ones(2).storage(), tt.FloatStorage)
    assert tt.tensor([0.0]).set_(made).tolist() == [1, 2] and made.share_memory_().is_shared()


def test_default_device():
    assert tt.get_default_device() == tt.device("cpu")
    with tt.device("meta") as meta:
        made = [tt.ones(2), tt.randn(2), tt.tensor([1.0]), tt.arange(3), tt.fft.fftfreq(4)]
        assert all(t.is_meta for t in made) and tt.get_default_device() is meta
        layer = tt.nn.Sequential(tt.nn.Linear(2, 3), tt.nn.BatchNorm1d(3))
        assert all(t.is_meta for t in layer.state_dict().values())
        x = tt.zeros(3, device="cpu")
        x[0], x[1:] = 1, [2.0, 3.0]
        assert (x + 1).tolist() == [2, 3, 4] and tt.ones_like(x).is_cpu
        tt.arange(3, out=x)
        assert x.tolist() == [0, 1, 2]
        with tt.device("cpu"):
            assert tt.ones(2).is_cpu
        assert tt.ones(2).is_meta
        seen = []
        thread = Thread(target=lambda: seen.append(tt.ones(2).is_cpu))
        thread.start()
        thread.join()
        assert seen == [True]
    tt.set_default_device("meta")
    try:
        assert tt.ones(2).is_meta
    finally:
        tt.set_default_device(None)
    assert tt.ones(2).is_cpu


def test_small_attributes():
    assert tt.Tensor(tt.Size([2, 3])).shape == (2, 3) and tt.Tensor([1], device="meta").is_meta
    with pytest.raises(TypeError, match="tt.tensor.. takes a number"):
        tt.Tensor(3.5)
    x = tt.ones(2, 3, 4)
    assert x.permute(2, 0, 1).dim_order() == (1, 2, 0) and x.name is None
    assert x.const_data_ptr() == x.data_ptr()
    y = tt.ones(2).map2_(tt.zeros(2), tt.full((2,), 5.0), lambda a, b, c: a + b * c)
    assert y.tolist() == [1, 1]
    dtypes = (tt.complex128, tt.complex64, tt.float64, tt.bfloat16, tt.int64)
    reals = [tt.float64, tt.float32, tt.float64, tt.bfloat16, tt.int64]
    assert [d.to_real() for d in dtypes] == reals
    assert tt.device(1) == tt.device("cuda:1")
    version = x._version
    tt.autograd.graph.increment_version([x, x])
    assert x._version == version + 2
    w = tt.ones(2, requires_grad=True)
    e = w.exp()
    tt.autograd.graph.increment_version(e)
    with pytest.raises(RuntimeError, match="written in place"):
        e.sum().backward()


def test_histograms_of_points():
    """PyTorch's results: the last bin includes both edges, points outside are not counted."""
    points = tt.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [0.5, 3.0]])
    found = tt.histogramdd(points, bins=[2, 2])
    assert found.hist.tolist() == [[1, 1], [1, 1]]
    assert [edges.tolist() for edges in found.bin_edges] == [[0, 1, 2], [0, 1.5, 3]]
    weight = tt.tensor([1.0, 2.0, 3.0, 4.0])
    part = tt.histogramdd(points, [2, 1], range=[0.0, 1.0, 0.0, 1.0], weight=weight)
    assert part.hist.tolist() == [[1], [2]]
    edges = [tt.tensor([0.0, 1.0, 3.0]), tt.tensor([0.0, 4.0])]
    assert tt.histogramdd(points, edges, density=True).hist.tolist() == [[0.125], [0.0625]]
    with pytest.raises(ValueError, match="histogramdd: bins has 1 entries: must have 2"):
        tt.histogramdd(points, [2])


def test_segments():
    data = tt.tensor([1.0, 2.0, 2.0, 5.0], requires_grad=True)
    lengths = tt.tensor([3, 0, 1])
    results = {"sum": [5, 0, 5], "max": [2, -tt.inf, 5], "min": [1, tt.inf, 5], "prod": [4, 1, 5]}
    for reduce, expected in results.items():
        assert tt.segment_reduce(data, reduce, lengths=lengths).tolist() == expected
    offsets = tt.tensor([0, 3, 3, 4])
    means = tt.segment_reduce(data, "mean", offsets=offsets, initial=1.0)
    assert means.tolist() == [2, 1, 6]
    tt.segment_reduce(data, "max", lengths=tt.tensor([3, 1])).sum().backward()
    assert data.grad.tolist() == [0, 0.5, 0.5, 1]
    rows = tt.arange(6.0).reshape(2, 3)
    two = tt.segment_reduce(rows, "sum", lengths=tt.tensor([[1, 2], [3, 0]]), axis=1)
    assert two.tolist() == [[0, 3], [12, 0]]
    with pytest.raises(ValueError, match="lengths must add up to 4"):
        tt.segment_reduce(data, "sum", lengths=tt.tensor([3]))


def test_products_with_reflections():
    a = tt.arange(12.0, dtype=tt.float64).reshape(4, 3).sin()
    h, tau = tt.geqrf(a)
    q = tt.ormqr(h, tau, tt.eye(4, dtype=tt.float64))
    assert tt.allclose(q @ q.T, tt.eye(4, dtype=tt.float64))
    assert tt.allclose(tt.ormqr(h, tau, a, transpose=True)[3], tt.zeros(3, dtype=tt.float64))
    assert tt.allclose(h.ormqr(tau, a.T, left=False), a.T @ q)
    with pytest.raises(tt.TtError, match="ormqr: input has shape"):
        tt.ormqr(h, tau, tt.eye(3, dtype=tt.float64))


def test_layouts_by_the_order_of_dimensions():
    x = tt.empty_permuted((2, 3, 4, 5), (0, 2, 3, 1))
    assert x.shape == (2, 3, 4, 5) and x.stride() == (60, 1, 15, 3)
    with pytest.raises(ValueError, match="each of the 2 dimensions once"):
        tt.empty_permuted((2, 3), (0, 0))


def test_nanmean_counts_more_than_float16_holds():
    x = tt.ones(2, 70000, dtype=tt.float16)
    x[0, :10] = float("nan")
    assert x.nanmean(1).tolist() == [1, 1] and x.nanmean().dtype == tt.float16
    assert x.nanmean(dtype=tt.float64).tolist() == 1


def test_index_add_of_bool_is_or():
    x, rows = tt.tensor([False, True, False, False]), tt.tensor([0, 0, 3])
    source = tt.tensor([True, False, True])
    assert x.index_add(0, rows, source).tolist() == [True, True, False, True]
    assert x.index_add(0, rows, source, alpha=0).tolist() == x.tolist()
    with pytest.raises(tt.TtError, match="alpha is a float32, self is bool"):
        x.index_add(0, rows, source, alpha=1.5)


@pytest.mark.parametrize(
    "call, expected",
    [
        (lambda x, d: x.sum(d), [3, 12]),
        (lambda x, d: x.prod(d), [0, 60]),
        (lambda x, d: tt.prod(x, dim=d, keepdim=True), [[0], [60]]),
        (lambda x, d: x.all(d), [False, True]),
        (lambda x, d: tt.any(x, dim=d), [True, True]),
        (lambda x, d: x.median(d).values, [1, 4]),
        (lambda x, d: tt.nanmedian(x, d, True).values, [[1], [4]]),
        (lambda x, d: x.unsqueeze(1).squeeze(d), [[0, 1, 2], [3, 4, 5]]),
        (lambda x, d: x.hsplit(d)[0], [[0, 1, 2], [3, 4, 5]]),
        (lambda x, d: x.sort(stable=None, dim=d).values, [[0, 1, 2], [3, 4, 5]]),
        (lambda x, d: x.clone(memory_format=None), [[0, 1, 2], [3, 4, 5]]),
        (lambda x, d: tt.swapaxes(x, axis0=0, axis1=d), [[0, 3], [1, 4], [2, 5]]),
        (lambda x, d: tt.add(x[0], d, 2), [2, 3, 4]),
        (lambda x, d: x[0].clone().add_(2, -1.0), [-2, -1, 0]),
        (lambda x, d: x[0].sub(2, 0.5), [-1, 0, 1]),
        (lambda x, d: tt.subtract(x[0], x[1], 2), [-6, -7, -8]),
        (lambda x, d: tt.abs_(input=-x[0]), [0, 1, 2]),
        (lambda x, d: tt.clamp_(input=x[0].clone(), min=1), [1, 1, 2]),
        (lambda x, d: tt.fft.fftfreq(2, layout=None, pin_memory=False), [0, -0.5]),
        (lambda x, d: tt.fft.rfftfreq(2, layout=tt.strided), [0, 0.5]),
        (lambda x, d: tt.scalar_tensor(2, layout=tt.strided), 2),
        (lambda x, d: tt.tril_indices(2, 2, layout=tt.strided), [[0, 1, 1], [0, 0, 1]]),
        (lambda x, d: tt.triu_indices(2, 2, layout=None), [[0, 0, 1], [0, 1, 1]]),
        (lambda x, d: x[0].histogram(range=(0.0, 1.0)).hist.sum(), 2),
        (lambda x, d: tt.sparse_coo_tensor((2, 2)).to_dense(), [[0, 0], [0, 0]]),
        (lambda x, d: tt.sparse_coo_tensor(size=(1, 2)).to_dense(), [[0, 0]]),
    ],
)
def test_forms_of_arguments(call, expected):
    assert call(tt.arange(6.0).reshape(2, 3), tt.tensor(1)).tolist() == expected


def test_transposes_of_numbers_and_dense_channels_last():
    x = tt.tensor(2.0)
    assert x.mT.equal(x) and x.mH.equal(x) and tt.tensor(1j).mH == -1j
    last = tt.randn(2, 4, 6, 5).contiguous(memory_format=tt.channels_last)[:, :, 1:]
    dense = last.contiguous(memory_format=tt.channels_last)
    assert dense.stride() == (100, 1, 20, 4) and dense.equal(last)
    assert dense.contiguous(memory_format=tt.channels_last) is dense


def test_parts_of_tensor_split_are_written_in_place():
    x = tt.arange(6.0, requires_grad=True)
    y = x * 1
    for parts in (y.tensor_split(4), y.hsplit(2), y.reshape(6, 1).vsplit(3)):
        parts[0].mul_(2)
    assert [len(part) for part in y.tensor_split(4)] == [2, 2, 1, 1]
    y.sum().backward()
    assert x.grad.tolist() == [8, 8, 2, 1, 1, 1]
    with pytest.raises(RuntimeError, match="one of the views"):
        (x * 1).split(3)[0].mul_(2)


@pytest.mark.parametrize("pick", [tt.median, tt.nanmedian, tt.max, tt.min])
def test_gradients_of_nan_reach_the_picked_element_alone(pick):
    x = tt.tensor([1.0, 3.0, 2.0], requires_grad=True)
    y = pick(x)
    (y * float("nan")).backward()
    assert x.grad.isnan().equal(x == y) and x.grad[x != y].eq(0).all()


@pytest.mark.parametrize("pick", [tt.median, tt.max, tt.amax, lambda x: x.amin(0)])
def test_more_equal_halves_than_a_half_counts_share_a_gradient(pick):
    x = tt.zeros(70000, dtype=tt.float16, requires_grad=True)
    (pick(x) * 7).backward()
    assert x.grad.eq(tt.tensor(1e-4, dtype=tt.float16)).all()


def test_negative_bases_with_complex_exponents_have_gradients():
    base = tt.tensor([-2.0, 3.0, -1.0], dtype=tt.float64, requires_grad=True)
    exponent = tt.tensor([0.5 + 1j, 2 - 1j, 1.5], dtype=tt.complex128, requires_grad=True)
    assert tt.autograd.gradcheck(lambda b, e: b**e, (base, exponent))
    assert tt.autograd.gradcheck(lambda e: tt.tensor(-2) ** e, (exponent,))


def test_gradients_of_values_for_numbers():
    x, source = tt.tensor(1.0, requires_grad=True), tt.tensor([2.0], requires_grad=True)
    index = tt.tensor([0])
    assert grads(x.index_copy(0, index, source), x, source) == [0, [1]]
    assert grads(x.index_add(0, index, source, alpha=2), x, source) == [1, [2]]


def test_lu_by_its_former_name():
    a = tt.tensor([[0.0, 2], [3, 4]])
    for factors, pivots, *info in (a.lu(), tt.lu(a), a.lu(get_infos=True)):
        assert factors.tolist() == [[3, 4], [0, 2]] and pivots.tolist() == [2, 2]
        assert [x.item() for x in info] in ([], [0])
    p, lower, upper = tt.lu_unpack(*a.lu())
    assert tt.equal(p @ lower @ upper, a)
    assert tt.lu(tt.zeros(2, 2), get_infos=True)[2].item() == 1
    with pytest.raises(tt.TtError, match="linalg_lu_factor"):
        tt.zeros(2).lu()


# ---- what PyTorch 2.15 takes or gives, found by programs ----


def test_the_pooling_of_torch_returns_a_pair():
    """torch.adaptive_max_pool1d is not that of nn.functional."""
    x = tt.arange(12.0).reshape(1, 2, 6)
    values, places = tt.adaptive_max_pool1d(x, 3)
    assert values.tolist() == [[[1, 3, 5], [7, 9, 11]]] and places.tolist() == [[[1, 3, 5]] * 2]
    assert tt.nn.functional.adaptive_max_pool1d(x, [3]).tolist() == values.tolist()
    assert tt.adaptive_max_pool1d(input=x, output_size=[3])[1].dtype is tt.int64


def test_a_byte_condition_selects_with_a_warning():
    x, bytes_ = tt.tensor([1.0, 2, 3], requires_grad=True), tt.tensor([1, 0, 2], dtype=tt.uint8)
    with pytest.warns(UserWarning, match="where received a uint8 condition"):
        y = tt.where(bytes_, x, -1)
    assert y.tolist() == [1, -1, 3] and tt.autograd.grad(y.sum(), x)[0].tolist() == [1, 0, 1]
    with pytest.warns(UserWarning, match="uint8"):
        assert x.where(bytes_, -x).tolist() == [1, -2, 3]
    with pytest.raises(tt.errors.DtypeError, match="condition is int64: must be bool"):
        tt.where(bytes_.long(), x, x)


def test_l1_loss_of_integers_is_not_averaged():
    x, y = tt.tensor([1, 2]), tt.tensor([3, 5])
    assert tt.nn.functional.l1_loss(x, y, reduction="none").tolist() == [2, 3]
    total = tt.nn.functional.l1_loss(x, y, reduction="sum")
    assert total.item() == 5 and total.dtype is tt.int64
    with pytest.raises(RuntimeError, match="mean"):
        tt.nn.functional.l1_loss(x, y)


def test_bools_beside_numbers_are_factors():
    x, true = tt.tensor([1, 2]), tt.tensor([True, False])
    assert tt.addcmul(x, true, true, value=3).tolist() == [4, 2]
    assert x.float().addcmul_(x, true).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="addcmul: self is bool: convert it"):
        tt.addcmul(true, true, true)


def test_a_deviation_that_is_a_tensor_beside_a_number():
    assert tt.normal(3, tt.tensor(0.0), (2,)).tolist() == [3, 3]


def test_areas_without_points_are_numbers():
    for dtype, expected in (("int64", "float32"), ("uint8", "float32"), ("float16", "float16")):
        y = tt.cumulative_trapezoid(tt.empty(0, dtype=getattr(tt, dtype)))
        assert y.shape == (0,) and y.dtype is getattr(tt, expected)
    empty = tt.empty(0, dtype=tt.int64)
    assert tt.cumulative_trapezoid(tt.empty(2, 0, dtype=tt.int64), empty).dtype is tt.float32


def test_integers_beyond_halves_are_infinite():
    for dtype in (tt.int32, tt.int64):
        x = tt.tensor([70000, -70000, 65519, 65520], dtype=dtype).to(tt.float16)
        assert x.tolist() == [float("inf"), float("-inf"), 65504, float("inf")]


@pytest.mark.parametrize("call", ["copysign_", "sub_"])
def test_a_tensor_written_by_itself_has_a_gradient(call):
    x = tt.tensor([1.0, -2, 3], requires_grad=True)
    y = x * 1
    getattr(y, call)(y)
    y.sum().backward()
    assert x.grad.tolist() == ([1, 1, 1] if call == "copysign_" else [0, 0, 0])


def test_the_gradient_of_a_sign_has_its_dtype():
    x, sign = tt.ones(2, 3, dtype=tt.float64), tt.ones(3, requires_grad=True)
    tt.copysign(x.requires_grad_(), sign).sum().backward()
    assert sign.grad.tolist() == [0, 0, 0] and sign.grad.dtype is tt.float32


@pytest.mark.parametrize(
    "call",
    [
        lambda x: tt.complex(x, 2 * x),
        lambda x: tt.complex(x, x.contiguous()),
        lambda x: x.index_fill(0, tt.tensor([0]), 1.0),
        lambda x: tt.select_scatter(x, tt.zeros(2, 3), 0, 0),
        lambda x: tt.slice_scatter(x, tt.zeros(1, 2, 3), 0, 0, 1),
        lambda x: tt.diagonal_scatter(x, tt.zeros(3, 2)),
        lambda x: tt.nn.functional.kl_div(x, x + 1, reduction="none"),
    ],
)
def test_results_keep_the_order_of_elements_in_memory(call):
    x = tt.rand(2, 3, 4).permute(2, 0, 1)
    y, plain = call(x), call(x.contiguous())
    assert y.stride() == (1, 12, 4) and plain.is_contiguous() and tt.equal(y, plain)


def test_gradients_of_complex_numbers_made_of_views():
    parts = [tt.rand(2, 3, 4, dtype=tt.float64).permute(2, 0, 1).requires_grad_() for _ in "xy"]
    assert tt.autograd.gradcheck(lambda *xy: tt.complex(*xy).square(), parts)


def test_the_gradient_of_kl_div_where_the_target_is_0():
    target = tt.tensor([0.0, 0.5], requires_grad=True)
    tt.nn.functional.kl_div(tt.tensor([-1.0, -2]), target, reduction="sum").backward()
    tt.testing.assert_close(target.grad, tt.tensor([1.0, 3 + tt.tensor(0.5).log()]))


@pytest.mark.parametrize("whole", [True, False])
def test_what_is_filled_with_a_tensor_has_its_gradient(whole):
    x = tt.tensor([1.0, 2, 3], requires_grad=True)
    y = x * 1
    (y if whole else y[:2]).fill_((x * x).mean())
    (y * tt.tensor([1.0, 2, 3])).sum().backward()
    assert x.grad.tolist() == ([4, 8, 12] if whole else [2, 4, 9])
    zeros = tt.zeros(2).fill_(x.sum())
    assert zeros.requires_grad and zeros.tolist() == [6, 6]


@pytest.mark.parametrize(
    "call",
    [
        lambda x, n: tt.add(x, x, alpha=n),
        lambda x, n: x.addcmul(x, x, value=n),
        lambda x, n: tt.full((2,), n),
        lambda x, n: tt.nn.functional.leaky_relu(x, n),
    ],
)
def test_a_number_with_a_gradient_is_refused(call):
    number = tt.tensor(2.0)
    call(tt.ones(2), number)
    with pytest.raises(TypeError, match="not tt.Tensor"):
        call(tt.ones(2), number.requires_grad_())


def test_bounds_of_ranges_of_halves_are_rounded_first():
    assert tt.logspace(4.3, 0, 2, dtype=tt.float16).tolist() == [19984, 1]
    assert tt.logspace(4.3, 0, 1, dtype=tt.float16).tolist() == [19952]
    assert tt.logspace(4.3, 1.2, 2, 5.0, dtype=tt.bfloat16)[0] == 1032
    assert tt.linspace(4.3, -3, 50, dtype=tt.float16)[26] == tt.tensor(0.427, dtype=tt.float16)


def test_linspace_reads_numbers_without_their_gradients():
    end = tt.tensor(2.0, requires_grad=True)
    assert tt.linspace(0, end, 3).tolist() == [0, 1, 2]


def test_einsum_multiplies_sums_of_integers():
    a, b = tt.full((2, 3), 2, dtype=tt.int32), tt.full((4, 3), 3, dtype=tt.int32)
    assert tt.einsum("ab,cd->d", a, b).tolist() == [144] * 3
    assert tt.einsum("ab,cb,cb->c", tt.ones(2, 3, dtype=tt.int32), b, b).tolist() == [54] * 4


def test_einsum_keeps_fractions_of_other_dtypes():
    a, b = tt.full((2, 3), 0.5), tt.full((4, 3), 0.25, dtype=tt.float64)
    y = tt.einsum("ab,cd->d", a, b)
    assert y.tolist() == [3.0] * 3 and y.dtype is tt.float64
    with pytest.raises(tt.errors.DtypeError):
        tt.einsum("ab,cb->ac", a, b)


def test_a_source_of_which_nothing_is_taken_has_zeros():
    x, source = tt.ones(3, requires_grad=True), tt.ones(2, requires_grad=True)
    x.masked_scatter(tt.zeros(3, dtype=tt.bool), source).sum().backward()
    assert x.grad.tolist() == [1] * 3 and source.grad.tolist() == [0] * 2


def test_einsum_promotes_integers():
    a, b = tt.tensor([3, -2], dtype=tt.int16), tt.tensor([255, 2], dtype=tt.uint8)
    outer = tt.einsum("a,b->ab", a, b)
    assert outer.dtype is tt.int16 and outer.tolist() == [[765, 6], [-510, -4]]
    assert tt.einsum("a,a->a", b, a).dtype is tt.int16


def test_forms_that_pytorch_takes():
    u, s, v = tt.svd(tt.eye(3)[:, :2], compute_uv=False)
    assert (u.shape, s.tolist(), v.shape) == ((3, 3), [1, 1], (2, 2)) and not u.any()
    x = tt.tensor([2**24 + 1, 2, 3])
    assert tt.index_add(x, 0, tt.tensor([0]), x[:1], alpha=2.0)[0] == 3 * (2**24 + 1)
    with pytest.raises(tt.errors.DtypeError, match="alpha"):
        tt.index_add(x, 0, tt.tensor([0]), x[:1], alpha=2.5)
    empty = tt.stft(tt.zeros(0, 16), 4, window=tt.ones(4), pad_mode="circular", return_complex=True)
    assert empty.shape == (0, 3, 17)


NARROW = [tt.int8, tt.uint8, tt.int16, tt.int32]


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1, 2**32, 2**62 + 1, -(2**63)])
@pytest.mark.parametrize("dtype", NARROW)
def test_numbers_beyond_32_bits_are_compared_as_they_are(dtype, number):
    for values in ([0, 1, 100], [[7], [2]]):
        x = tt.tensor(values, dtype=dtype).flatten()
        items = x.tolist()
        assert (x == number).tolist() == [False] * x.numel()
        assert (x != number).all()
        assert (x < number).tolist() == [i < number for i in items]
        assert (x >= number).tolist() == [i >= number for i in items]
        if dtype is not tt.uint8 or number > 0:
            assert x.floor_divide(number).tolist() == [i // number for i in items]
        assert x.fmod(number).tolist() == items
        assert tt.nn.functional.hardtanh(x, -abs(number), abs(number)).tolist() == items


@pytest.mark.parametrize("dtype", NARROW)
def test_numbers_that_a_dtype_lacks_are_not_stored(dtype):
    x = tt.tensor([0, 1], dtype=dtype)
    for number in (2**40, 2**63, 2**64 - 1):
        for store in (x.fill_, lambda n: x.masked_fill(x > 0, n), lambda n: tt.full_like(x, n)):
            with pytest.raises(RuntimeError, match="cannot represent|64 bits"):
                store(number)
        with pytest.raises(RuntimeError, match="threshold is|64 bits"):
            tt.nn.functional.threshold(x, number, 1)
    assert x.tolist() == [0, 1]


def test_large_ints_are_positive_where_the_result_is_floating():
    x = tt.tensor([1, 2])
    assert tt.copysign(x, 2**63).tolist() == [1, 2]
    assert tt.xlogy(x, 2**64 - 1).tolist() == pytest.approx([64 * math.log(2), 128 * math.log(2)])


def test_addcmul_of_integers_converts_its_factor():
    x = tt.tensor([1, 2, 3], dtype=tt.int8)
    for factor, expected in ((2.0, [3, 10, 21]), (2.5, [3, 10, 21]), (-3.7, [-2, -10, -24])):
        assert tt.addcmul(x, x, x, value=factor).tolist() == expected
        assert x.clone().addcmul_(x, x, value=factor).tolist() == expected
    for factor in (math.nan, math.inf, 1e20, 1j):
        with pytest.raises(RuntimeError, match="value is"):
            tt.addcmul(x, x, x, value=factor)


def test_sizes_are_of_integers():
    made = tt.Size([tt.tensor(2), numpy.int64(3), True])
    assert made == (2, 3, 1) and all(type(n) is int for n in made)
    assert tt.Size() == () and tt.Size(range(3))[1:] == (1, 2)
    for items in (["a"], [1.5], [None], "ab", [tt.tensor(2.0)]):
        with pytest.raises(TypeError):
            tt.Size(items)


@pytest.mark.parametrize("arguments", [(), (5,), (5, None)])
def test_randint_needs_a_size(arguments):
    with pytest.raises(TypeError, match="size"):
        tt.randint(*arguments)


def test_what_copies_from_meta_tensors_raise():
    x = tt.empty(2, device="meta")
    for copy in (
        x.cpu,
        x.tolist,
        lambda: tt.zeros(2).copy_(x),
        tt.nn.Linear(2, 2, device="meta").cpu,
    ):
        with pytest.raises(NotImplementedError, match="meta tensor"):
            copy()
    with pytest.raises(TypeError, match="on meta"):
        x.numpy()


def test_repeat_interleave_of_numbers_of_copies():
    assert tt.repeat_interleave(tt.tensor([2, 0, 1])).tolist() == [0, 0, 2]
    assert tt.repeat_interleave(tt.tensor([1, 2], dtype=tt.int32)).dtype is tt.int32
    assert tt.repeat_interleave(tt.ones(2), 2).shape == (4,)
    assert tt.repeat_interleave(repeats=tt.tensor([2, 0, 1])).tolist() == [0, 0, 2]
    with pytest.raises(RuntimeError, match="vector"):
        tt.repeat_interleave(tt.tensor(2))
    with pytest.raises(RuntimeError):
        tt.repeat_interleave(tt.tensor([[1, 2]]))


def test_ints_that_fit_only_uint64_and_large_floats():
    ints, bytes_ = tt.tensor([1, 2]), tt.tensor([1, 2], dtype=tt.uint8)
    assert tt.div(ints, 2**64 - 1).tolist() == pytest.approx([2.0**-64, 2.0**-63])
    assert tt.float_power(ints, 2**63).tolist() == [1, math.inf]
    assert tt.div(2**63, ints).tolist() == [2.0**63, 2.0**62]
    assert tt.mul(2**63, tt.tensor([1.0, 2.0])).tolist() == [2.0**63, 2.0**64]
    assert tt.add(2**64 - 1, ints).tolist() == [0, 1]
    assert (bytes_ < 2**64 - 1).tolist() == [True, True]
    assert (ints == 2**63).tolist() == [False, False]
    assert tt.mul(1e300, ints).tolist() == [math.inf, math.inf]
    for number in (complex(1e300, 0), complex(1e300, 1)):
        assert tt.add(number, ints).dtype is tt.mul(number, ints).dtype is tt.complex64
        assert tt.add(number, ints).tolist() == [complex(math.inf, number.imag)] * 2
    assert tt.pow(tt.tensor([1.0, 2.0, 0.0]), 1e300).tolist() == [1, math.inf, 0]


def test_uint64_as_the_first_operand():
    ints = tt.tensor([1, 2])
    top = 2**64 - 1
    assert (top // ints).tolist() == tt.div(top, ints, rounding_mode="floor").tolist() == [-1, -1]
    assert tt.div(top, ints, rounding_mode="trunc").tolist() == [-1, 0]
    assert tt.div(top, ints).tolist() == [2.0**64, 2.0**63]
    assert (top // ints).dtype is tt.int64
    assert tt.bitwise_and(top, ints).tolist() == [1, 2]
    assert tt.bitwise_or(top, ints).tolist() == [-1, -1]
    assert tt.bitwise_xor(top, ints).tolist() == (top ^ ints).tolist() == [-2, -3]
    mask = tt.tensor([True, False])
    for number in (2**63, top):
        with pytest.raises(OverflowError):
            tt.where(mask, number, ints)
        large = tt.where(mask, number, ints.to(tt.uint64))
        assert large.dtype is tt.uint64 and large.tolist() == [number, 2]


@pytest.mark.parametrize("number", [2**63, 2**64 - 1])
@pytest.mark.parametrize("ints", [[2**63 - 1], [-(2**63)], [0]])
def test_no_int64_reaches_a_uint64(ints, number):
    x = tt.tensor(ints)
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        holds = getattr(operator, name)
        assert holds(x, number).tolist() == [holds(ints[0], number)]
        assert holds(number, x).tolist() == [holds(number, ints[0])]
        assert getattr(x.clone(), name + "_")(number).tolist() == [holds(ints[0], number)]


@pytest.mark.parametrize("dtype", [tt.int32, tt.uint8])
def test_bounds_that_no_value_keeps_are_refused(dtype):
    t = tt.tensor([1, 2], dtype=dtype)
    for call in (lambda: tt.clamp_min(t, 2**31), lambda: t.clamp_max_(-(2**31) - 1)):
        with pytest.raises(RuntimeError, match="has no values that"):
            call()
    assert tt.clamp_max(t, 2**31).tolist() == tt.clamp_min(t, -(2**31) - 1).tolist() == [1, 2]


def test_ints_beyond_int64_where_floats_are_read():
    assert tt.linspace(0, 2**63, 3).tolist() == [0, 2.0**62, 2.0**63]
    assert tt.scalar_tensor(2**64 - 1).item() == 2.0**64
    padded = tt.nn.functional.pad(tt.tensor([1.0]), (1, 0), value=10**30)
    assert padded.tolist() == pytest.approx([1e30, 1])
    assert tt.scalar_tensor(2**63 + 1, dtype=tt.uint64).item() == 2**63 + 1
    wide = tt.nn.functional.pad(tt.ones(1, dtype=tt.uint64), (1, 0), value=2**64 - 1)
    assert wide.tolist() == [2**64 - 1, 1]
    halves = tt.zeros(3, dtype=tt.float16)
    halves[0], halves[1], halves[2] = 2**31, 65504, -(10**7)
    assert halves.tolist() == [math.inf, 65504, -math.inf]


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2.0**63, 2**64])
def test_numbers_beyond_int64_are_not_stored_in_integers(number):
    x = tt.ones(1, dtype=tt.int64)
    for call in (
        lambda: tt.scalar_tensor(number, dtype=tt.int64),
        lambda: tt.linspace(0, number, 3, dtype=tt.int64),
        lambda: tt.full((1,), number, dtype=tt.int64),
        lambda: tt.nn.functional.pad(x, (1, 0), value=number),
        lambda: tt.scalar_tensor(max(number, 2.0**64), dtype=tt.uint64),
        lambda: tt.full((1,), max(number, 2.0**64), dtype=tt.uint64),
        lambda: tt.nn.functional.pad(x.to(tt.uint64), (1, 0), value=max(number, 2.0**64)),
    ):
        with pytest.raises(tt.errors.InvalidArgumentError):
            call()
    assert tt.full((1,), 2.0**63 - 1024, dtype=tt.int64).item() == 2**63 - 1024
    assert tt.full((1,), -(2.0**63), dtype=tt.int64).item() == -(2**63)
    assert tt.full((1,), 2.0**64 - 2048, dtype=tt.uint64).item() == 2**64 - 2048


def test_lists_of_tensors_have_the_dtype_to_which_they_promote():
    double, half = tt.tensor(2.5, dtype=tt.float64), tt.tensor(1.0, dtype=tt.float16)
    small = tt.tensor(3, dtype=tt.int32)
    assert tt.tensor([double, double]).dtype is tt.as_tensor([double, 1]).dtype is tt.float64
    assert tt.tensor([half, 1]).dtype is tt.float16
    assert tt.tensor([half, 2.0]).dtype is tt.tensor([small, 2.5]).dtype is tt.float32
    assert tt.tensor([small, small]).dtype is tt.int32
    assert tt.tensor([[small], [2]]).dtype is tt.int64
    assert tt.tensor([double], dtype=tt.float32).dtype is tt.float32
    assert tt.tensor([2**63, small], dtype=tt.uint64).tolist() == [2**63, 3]


def test_shuffled_images_keep_channels_last():
    x = tt.arange(2 * 8 * 4 * 6, dtype=tt.float32).reshape(2, 8, 4, 6).requires_grad_()
    last = x.detach().contiguous(memory_format=tt.channels_last).requires_grad_()
    for function, number in (("pixel_shuffle", 2), ("pixel_unshuffle", 2), ("channel_shuffle", 4)):
        shuffle = getattr(tt.nn.functional, function)
        want, got = shuffle(x, number), shuffle(last, number)
        assert got.tolist() == want.tolist() and want.is_contiguous()
        assert got.is_contiguous(memory_format=tt.channels_last)
        (wanted,) = tt.autograd.grad(want, x, want.detach())
        (found,) = tt.autograd.grad(got, last, want.detach())
        assert found.tolist() == wanted.tolist()


def test_an_assignment_reads_before_it_writes():
    x = tt.arange(5.0)
    x[1:] = x[:-1]
    assert x.tolist() == [0, 0, 1, 2, 3]
    x[:-1].copy_(x[1:])
    assert x.tolist() == [0, 1, 2, 3, 3]


def test_long_sums_are_as_exact_as_pytorchs():
    """PyTorch 2.15's errors on these numbers: 4.8e-7, 6.1e-7 and 5.6e-8, as nearest floats have."""
    rng = numpy.random.default_rng(0)

    def drawn(*shape):
        return rng.standard_normal(shape, numpy.float32)

    def error(found, exact):
        return abs(found.numpy() - exact).max() / abs(exact).max()

    a, b = drawn(4, 10**6), drawn(10**6, 4)
    assert error(tt.matmul(tt.tensor(a), tt.tensor(b)), a.astype("d") @ b.astype("d")) < 4.8e-7
    image, kernel = drawn(1, 64, 14, 14), drawn(32, 64, 3, 3)
    padded = numpy.pad(image[0].astype("d"), ((0, 0), (1, 1), (1, 1)))
    exact = sum(
        numpy.tensordot(kernel[:, :, i, j].astype("d"), padded[:, i : i + 14, j : j + 14], 1)
        for i in range(3)
        for j in range(3)
    )
    found = tt.nn.functional.conv2d(tt.tensor(image), tt.tensor(kernel), padding=1)
    assert error(found[0], exact) < 6.1e-7
    x = drawn(16, 4096, 32)
    assert error(tt.var(tt.tensor(x), 1), x.astype("d").var(1, ddof=1)) < 2**-24
