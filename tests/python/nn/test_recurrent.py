"""Recurrent layers, packed sequences and transformers beyond PyTorch's recorded cases."""
import copy
import pickle

import pytest

import tt
from tt import nn
from tt.nn.utils import rnn

LAYERS = [
    (nn.RNN, {}),
    (nn.RNN, {"nonlinearity": "relu"}),
    (nn.GRU, {}),
    (nn.LSTM, {}),
    (nn.LSTM, {"proj_size": 2}),
]


def states_of(hx):
    return list(hx) if isinstance(hx, tuple) else [hx]


def sequences(*lengths, width=3):
    return [tt.randn(n, width, dtype=tt.float64) for n in lengths]


@pytest.mark.parametrize("kind, options", LAYERS)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_packed_sequences_are_computed_one_by_one(kind, options, bidirectional):
    tt.manual_seed(0)
    layer = kind(3, 4, num_layers=2, bidirectional=bidirectional, dtype=tt.float64, **options)
    given = sequences(2, 5, 1, 5)
    output, hx = layer(rnn.pack_sequence(given, enforce_sorted=False))
    outputs = rnn.unpack_sequence(output)
    for i, x in enumerate(given):
        one, last = layer(x)
        tt.testing.assert_close(outputs[i], one)
        for a, b in zip(states_of(hx), states_of(last)):
            tt.testing.assert_close(a[:, i], b)


@pytest.mark.parametrize("kind, options", LAYERS)
def test_gradients_of_packed_sequences(kind, options):
    tt.manual_seed(0)
    layer = kind(2, 3, bidirectional=True, dtype=tt.float64, **options)
    lengths = tt.tensor([3, 1, 2])

    packed = rnn.pack_padded_sequence(
        tt.randn(3, 3, 2, dtype=tt.float64), lengths, enforce_sorted=False
    )

    def run(data):
        output, hx = layer(rnn.PackedSequence(data, packed.batch_sizes))
        return (output.data, *states_of(hx))

    inputs = (packed.data.requires_grad_(),)
    assert tt.autograd.gradcheck(run, inputs)
    assert tt.autograd.gradgradcheck(run, inputs)


@pytest.mark.parametrize("dtype", [tt.bfloat16, tt.float16])
@pytest.mark.parametrize("kind, options", LAYERS)
def test_half_precision(kind, options, dtype):
    tt.manual_seed(0)
    layer = kind(5, 6, batch_first=True, **options)
    x = tt.randn(3, 4, 5)
    want, _ = layer(x)
    want.sum().backward()
    grad = layer.weight_hh_l0.grad.clone()
    layer.zero_grad()
    half = layer.to(dtype)
    got, _ = half(x.to(dtype))
    got.sum().backward()
    assert got.dtype == dtype
    tt.testing.assert_close(got.float(), want, rtol=0, atol=0.03)
    tt.testing.assert_close(half.weight_hh_l0.grad.float(), grad, rtol=0.1, atol=0.1)


def test_padding_and_packing():
    given = sequences(3, 1)
    right = rnn.pad_sequence(given, batch_first=True, padding_value=7)
    assert right.shape == (2, 3, 3) and (right[1, 1:] == 7).all()
    left = rnn.pad_sequence(given, padding_side="left")
    assert left.shape == (3, 2, 3) and (left[:2, 1] == 0).all()
    for a, b in zip(rnn.unpad_sequence(right, tt.tensor([3, 1]), batch_first=True), given):
        tt.testing.assert_close(a, b)
    packed = rnn.pack_padded_sequence(right, [3, 1], batch_first=True)
    assert packed.batch_sizes.tolist() == [2, 1, 1] and packed.sorted_indices is None
    padded, lengths = rnn.pad_packed_sequence(packed, padding_value=9, total_length=4)
    assert padded.shape == (4, 2, 3) and (padded[3] == 9).all() and lengths.tolist() == [3, 1]
    assert packed.to(tt.float32).data.dtype == tt.float32
    with pytest.raises(RuntimeError, match="must not increase"):
        rnn.pack_padded_sequence(right, [1, 3], batch_first=True)
    with pytest.raises(RuntimeError, match="must be in"):
        rnn.pack_padded_sequence(right, [3, 0], batch_first=True)
    with pytest.raises(ValueError, match="total_length"):
        rnn.pad_packed_sequence(packed, total_length=2)


def test_copies():
    layer = nn.LSTM(2, 3, num_layers=2, bias=False)
    x = tt.randn(4, 1, 2)
    want, _ = layer(x)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        tt.testing.assert_close(other(x)[0], want)
        assert list(other.state_dict()) == list(layer.state_dict())
    layer.reset_parameters()
    assert not tt.equal(layer(x)[0], want)
    layer.flatten_parameters()
    assert [len(w) for w in layer.all_weights] == [2, 2]


def test_errors():
    layer = nn.LSTM(2, 3)
    x = tt.randn(4, 5, 2)
    with pytest.raises(RuntimeError, match="input_size 2"):
        layer(tt.randn(4, 5, 3))
    with pytest.raises(RuntimeError, match=r"h_0 is \[1,4,3\]: must be \[1,5,3\]"):
        layer(x, (tt.zeros(1, 4, 3), tt.zeros(1, 5, 3)))
    with pytest.raises(TypeError, match="must be a tuple"):
        layer(x, tt.zeros(1, 5, 3))
    with pytest.raises(ValueError, match="proj_size"):
        nn.LSTM(2, 3, proj_size=3)
    with pytest.raises(RuntimeError, match="at least one step"):
        layer(tt.zeros(0, 5, 2))
    with pytest.raises(ValueError, match="add up"):
        layer(rnn.PackedSequence(tt.zeros(3, 2), tt.tensor([2, 2])))


def test_dropout_between_layers():
    tt.manual_seed(0)
    layer = nn.GRU(2, 3, num_layers=2, dropout=0.5)
    x = tt.randn(4, 5, 2)
    assert not tt.equal(layer(x)[0], layer(x)[0])
    layer.eval()
    assert tt.equal(layer(x)[0], layer(x)[0])


@pytest.mark.parametrize("batch_first", [False, True])
def test_causal_masks_are_recognised(batch_first):
    tt.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=batch_first)
    stack = nn.TransformerEncoder(layer, 2).eval()
    x = tt.randn(2, 5, 8) if batch_first else tt.randn(5, 2, 8)
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    want = stack(x, mask=mask, is_causal=False)
    tt.testing.assert_close(stack(x, mask=mask), want)
    tt.testing.assert_close(stack(x, mask=mask, is_causal=True), want)
    with tt.no_grad():
        tt.testing.assert_close(stack(x, mask=mask), want)


def test_causal_attention_without_weights_leaves_out_appended_rows():
    tt.manual_seed(0)
    plain = nn.MultiheadAttention(6, 2)
    layer = nn.MultiheadAttention(6, 2, add_bias_kv=True, add_zero_attn=True)
    layer.load_state_dict(plain.state_dict(), strict=False)
    x = tt.randn(4, 2, 6)
    mask = nn.Transformer.generate_square_subsequent_mask(4)
    options = {"attn_mask": mask, "is_causal": True}
    found, _ = layer(x, x, x, need_weights=False, **options)
    tt.testing.assert_close(found, plain(x, x, x, need_weights=False, **options)[0])
    assert not tt.allclose(found, layer(x, x, x, **options)[0], atol=1e-3)


def test_functional_multi_head_attention_equals_the_layer():
    tt.manual_seed(0)
    layer = nn.MultiheadAttention(6, 2, add_bias_kv=True, add_zero_attn=True, kdim=4, vdim=5)
    q, k, v = tt.randn(3, 2, 6), tt.randn(4, 2, 4), tt.randn(4, 2, 5)
    padding = tt.tensor([[False, False, True, False], [False, True, False, False]])
    for need_weights in (False, True):
        options = {"key_padding_mask": padding, "need_weights": need_weights}
        want, shares = layer(q, k, v, **options)
        got, own = nn.functional.multi_head_attention_forward(
            q,
            k,
            v,
            6,
            2,
            None,
            layer.in_proj_bias,
            layer.bias_k,
            layer.bias_v,
            True,
            0.0,
            layer.out_proj.weight,
            layer.out_proj.bias,
            use_separate_proj_weight=True,
            q_proj_weight=layer.q_proj_weight,
            k_proj_weight=layer.k_proj_weight,
            v_proj_weight=layer.v_proj_weight,
            **options,
        )
        tt.testing.assert_close(got, want)
        if need_weights:
            tt.testing.assert_close(own, shares)


@pytest.mark.parametrize("sizes", [[3, 3, 3], [3], [3, 4, -1]])
def test_batch_sizes_that_do_not_match_the_rows_are_refused(sizes):
    layer = tt.nn.RNN(2, 4)
    params = list(layer.parameters())
    with pytest.raises(ValueError, match="batch_sizes"):
        tt.rnn_tanh(
            tt.ones(6, 2), tt.zeros(1, 3, 4), params, True, 1, 0.0, False, False, False, sizes
        )


def test_packed_sequences_convert():
    packed = nn.utils.rnn.pack_sequence([tt.ones(3), tt.ones(2)])
    for name in ("long", "int", "short", "char", "byte", "double", "half"):
        other = getattr(packed, name)()
        assert other.data.dtype is getattr(packed.data, name)().dtype
        assert other.batch_sizes is packed.batch_sizes
    assert not packed.pin_memory().is_pinned() or tt.cuda.is_available()
