"""Quantised tensors and their functions. Expected values are PyTorch 2.15's."""
import pickle

import pytest

import tt
from tt.errors import DtypeError

X = tt.tensor([[-1.0, 0.04, 1.26], [2.0, 2.55, 40.0]])


def test_one_scale():
    q = tt.quantize_per_tensor(X, 0.1, 10, tt.quint8)
    assert q.int_repr().tolist() == [[0, 10, 23], [30, 36, 255]] and q.int_repr().dtype is tt.uint8
    tt.testing.assert_close(q.dequantize(), tt.tensor([[-1.0, 0, 1.3], [2, 2.6, 24.5]]))
    assert q.q_scale() == 0.1 and q.q_zero_point() == 10 and q.qscheme() is tt.per_tensor_affine
    assert q.dtype is tt.quint8 and q.shape == (2, 3) and q.is_quantized and not X.is_quantized
    assert repr(tt.quantize_per_tensor(X[0], 0.5, 1, tt.qint8)) == (
        "tensor([-1.0000,  0.0000,  1.5000], size=(3,), dtype=tt.qint8,\n"
        "       quantization_scheme=tt.per_tensor_affine, scale=0.5, zero_point=1)"
    )
    assert tt.quantize_per_tensor(X, tt.tensor(0.1), tt.tensor(-3), tt.qint8).q_zero_point() == -3
    both = tt.quantize_per_tensor([X, X[0]], tt.tensor([1.0, 2]), tt.tensor([0, 1]), tt.qint32)
    assert both[1].int_repr().tolist() == [1, 1, 2] and both[0].q_scale() == 1


def test_a_scale_for_each_channel():
    q = tt.quantize_per_channel(X, tt.tensor([0.5, 0.25]), tt.tensor([1, 0]), 0, tt.qint8)
    assert q.int_repr().tolist() == [[-1, 1, 4], [8, 10, 127]]
    assert q.dequantize().tolist() == [[-1, 0, 1.5], [2, 2.5, 31.75]]
    assert q.q_per_channel_scales().tolist() == [0.5, 0.25] and q.q_per_channel_axis() == 0
    assert tt.q_per_channel_zero_points(q).tolist() == [1, 0]
    assert q.qscheme() is tt.per_channel_affine and "axis=0" in repr(q)
    with pytest.raises(RuntimeError, match="q_scale: self is per_channel_affine: must be"):
        q.q_scale()
    with pytest.raises(RuntimeError, match="reshape: self is per_channel_affine"):
        q.reshape(6)


def test_integers_of_32_bits_do_not_wrap():
    x = tt.tensor([[3e9, -3e9, 2**31 - 128, float("inf")]])
    want = [[2**31 - 1, -(2**31), 2**31 - 128, 2**31 - 1]]
    assert tt.quantize_per_tensor(x, 1, 0, tt.qint32).int_repr().tolist() == want
    ones, zeros = tt.ones(1), tt.zeros(1)
    assert tt.quantize_per_channel(x, ones, zeros, 0, tt.qint32).int_repr().tolist() == want


def test_scales_from_the_elements():
    q = tt.quantize_per_tensor_dynamic(X, tt.quint8, False)
    assert q.q_scale() == pytest.approx(41 / 255) and q.q_zero_point() == 6
    q = tt.quantize_per_tensor_dynamic(X, tt.qint8, True)
    assert q.q_scale() == pytest.approx(41 / 127) and q.q_zero_point() == -61
    assert tt.quantize_per_tensor_dynamic(tt.zeros(2), tt.quint8, False).q_zero_point() == 0


def test_moves_and_comparisons():
    q = tt.quantize_per_tensor(X, 0.1, 10, tt.quint8)
    assert q.t().shape == tt.reshape(q, (3, 2)).shape == (3, 2) and q[1, 0].item() == 2
    assert tt.relu(q).int_repr().tolist() == [[10, 10, 23], [30, 36, 255]]
    assert tt.equal(q, q.clone()) and not tt.equal(q, tt.relu(q))
    assert (q > 2).tolist() == [[False] * 3, [False, True, True]] and (q == q).all()
    assert q[1, 0] and not q[0, 1]
    again = pickle.loads(pickle.dumps(q))
    assert again.equal(q) and q.copy_(tt.zeros(2, 3)).int_repr().unique().tolist() == [10]
    coarse = tt.quantize_per_tensor(X[:1], 1.0, 0, tt.qint8)
    assert tt.cat([again, coarse]).int_repr()[2].tolist() == [0, 10, 20]
    assert tt.dequantize([again, X])[1].equal(X) and X.dequantize().dtype is tt.float32


@pytest.mark.parametrize(
    "call, error, message",
    [
        (
            lambda: tt.quantize_per_tensor(X.long(), 1, 0, tt.qint8),
            DtypeError,
            "int64: must be flo",
        ),
        (lambda: tt.quantize_per_tensor(X, 1, 0, tt.int8), DtypeError, "must be qint8, quint8 or"),
        (lambda: tt.quantize_per_tensor(X, 1, 300, tt.quint8), ValueError, "must be in .0, 255"),
        (lambda: tt.quantize_per_tensor(X, 0, 0, tt.quint8), ValueError, "scale is 0.0: must be"),
        (
            lambda: tt.quantize_per_channel(X, tt.ones(2), tt.zeros(2), 1, tt.qint8),
            ValueError,
            r"scales are \[2\]: must be \[3\]",
        ),
        (
            lambda: tt.quantize_per_channel(X, tt.ones(2), tt.tensor([0, 128]), 0, tt.qint8),
            ValueError,
            r"zero_points are \[0, 128\]: must be in \[-128, 127\]",
        ),
        (
            lambda: tt.quantize_per_tensor([X, X], tt.ones(1), tt.zeros(1), tt.qint8),
            ValueError,
            "2 tensors, 1 scales and 1 zero points",
        ),
        (
            lambda: bool(tt.quantize_per_tensor(X, 1, 0, tt.qint8)),
            RuntimeError,
            "more than one value is ambiguous",
        ),
        (lambda: tt.int_repr(X), TypeError, "must be a quantised tensor"),
        (
            lambda: tt.add(*[tt.quantize_per_tensor(X, 1, 0, tt.qint8)] * 2),
            TypeError,
            "add: not a function of quantised tensors: use dequantize",
        ),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()
