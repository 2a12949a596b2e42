"""Nodes of onnxruntime's own domain, and of attention: beside formulas, and beside onnxruntime
where it is installed."""
import math

import pytest
import tt
from test_onnx import attribute, constant, image, message
from tt.nn import functional as F

MICROSOFT = "com.microsoft"


def model_of(op, tensors, attributes, n_outs, domain, opset):
    """The bytes of a model of one node, whose inputs are constants; a tensor that is None is left
    out."""
    names = [b"" if t is None else b"c%d" % i for i, t in enumerate(tensors)]
    ends = [(1, name) for name in names] + [(2, b"y%d" % i) for i in range(n_outs)]
    pairs = [(5, attribute(k, v) + message((20, kind_of(v)))) for k, v in attributes.items()]
    node = message(*ends, (3, b"n"), (4, op.encode()), *pairs, (7, domain.encode()))
    given = [(5, message(*constant(t), (8, n))) for t, n in zip(tensors, names) if t is not None]
    outs = [(12, message((1, b"y%d" % i))) for i in range(n_outs)]
    graph = message((1, node), (2, b"g"), *given, *outs)
    opsets = [(8, message((1, b""), (2, opset))), (8, message((1, MICROSOFT.encode()), (2, 1)))]
    return message((1, 10), (7, graph), *opsets)


def kind_of(v):
    """AttributeProto.type."""
    if isinstance(v, list):
        return 6 if isinstance(v[0], float) else 7
    return {float: 1, int: 2, str: 3}[type(v)]


def floats(*shape):
    return image(*shape) / 2


def bytes_of(dtype, *shape, seed=0):
    least = -128 if dtype == tt.int8 else 0
    n = math.prod(shape)
    return ((tt.arange(n) * 89 + seed * 31) % 256 + least).to(dtype).view(*shape)


def byte(n, dtype=tt.uint8):
    return tt.tensor(n, dtype=dtype)


def scale(x):
    return tt.tensor(x)


def reals(t, factor, zero):
    return (t.float() - zero) * factor


def as_bytes(x, factor, zero, dtype=tt.uint8):
    least = -128 if dtype == tt.int8 else 0
    return (tt.round(x / factor) + zero).clamp(least, least + 255).to(dtype)


def by_range(x):
    """x in 255 steps from its least number, or 0, to its largest, or 0."""
    low, high = x.min().clamp(max=0), x.max().clamp(min=0)
    step = (high - low) / 255
    zero = tt.round(-low / step)
    return ((tt.round(x / step) + zero).clamp(0, 255) - zero) * step


def lstm_by_ranges(x, w, r, b, h, c, back):
    """One direction of an LSTM of gates i o f c, whose inputs and states have 8 bits: all states,
    the last ones and the cells."""
    gates = by_range(x.flatten(0, 1)).view(x.shape) @ w + b.view(2, -1).sum(0)
    states = [None] * len(x)
    for t in reversed(range(len(x))) if back else range(len(x)):
        i, o, f, g = (gates[t] + by_range(h) @ r).chunk(4, -1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        states[t] = h = o.sigmoid() * c.tanh()
    return tt.stack(states), h, c


def lstm_of_bytes():
    """The results of the inputs LSTM, in both directions."""
    x, w, r, b, _, h, c, _, w_scale, w_zero, r_scale, r_zero = LSTM
    w = reals(w, w_scale[:, None], w_zero[:, None])
    r = reals(r, r_scale[:, None, None], r_zero[:, None, None])
    made = [lstm_by_ranges(x, w[d], r[d], b[d], h[d], c[d], d == 1) for d in range(2)]
    return [tt.stack([one[k] for one in made], 1 if k == 0 else 0) for k in range(3)]


def heads(x, n):
    return x.view(x.shape[0], x.shape[1], n, -1).transpose(1, 2)


def united(x):
    return x.transpose(1, 2).flatten(2)


def attended(q, k, v, n, **options):
    return united(F.scaled_dot_product_attention(heads(q, n), heads(k, n), heads(v, n), **options))


def seen(rows, keys, past=0):
    """Row i sees the keys of the past and those up to the i-th behind them."""
    return tt.ones(rows, past + keys).tril(past).bool()


def rotated(x, at, in_pairs):
    """Heads of the width of the tables, twice."""
    c, s = COS[at][:, None], SIN[at][:, None]
    a, b = (x[..., ::2], x[..., 1::2]) if in_pairs else x.chunk(2, -1)
    turned = (a * c - b * s, a * s + b * c)
    return tt.stack(turned, -1).flatten(3) if in_pairs else tt.cat(turned, -1)


def unpacked(packed, bits, factors, zeros):
    """Rows of blocks of numbers of a few bits."""
    parts = [packed.int() // 2 ** (bits * k) % 2**bits for k in range(8 // bits)]
    return ((tt.stack(parts, -1).flatten(2) - zeros[..., None]) * factors[..., None]).flatten(1)


X, Y, V8, V24 = floats(2, 5, 8), image(2, 5, 8).flip(1), image(8), image(24)
W, WIDE = image(8, 24), floats(2, 5, 16)
KEYS, VALUES = image(2, 7, 8), image(2, 7, 8).flip(2)
MASK = tt.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], dtype=tt.int32)
COS, SIN = image(16, 4).cos(), image(16, 4).sin()
AT = tt.tensor([[0, 1, 2, 3, 4], [3, 4, 5, 6, 7]])
IMAGE, KERNEL = image(1, 3, 6, 6), image(4, 3, 3, 3)
A, B = bytes_of(tt.uint8, 2, 3, 8), bytes_of(tt.int8, 8, 5)
COLUMNS = tt.tensor([0.01, 0.02, 0.005, 0.03, 0.01])
BITS, FACTORS = bytes_of(tt.uint8, 6, 2, 16), (image(6, 2).abs() + 0.1) / 8
QKV = (X @ W + V24).chunk(3, -1)
IDS = tt.tensor([[0, 3, 1, 1, 2], [4, 0, 2, 1, 3]], dtype=tt.int32)
SEEN = MASK.bool()[:, None, None]
LSTM = [
    image(5, 3, 8), bytes_of(tt.uint8, 2, 8, 16), bytes_of(tt.uint8, 2, 4, 16, seed=1),
    image(2, 32), None, image(2, 3, 4) / 2, image(2, 3, 4), None,
    image(2, 16).abs() / 100 + 0.001, tt.full((2, 16), 128, dtype=tt.uint8),
    tt.tensor([0.004, 0.006]), tt.tensor([120, 133], dtype=tt.uint8),
]  # fmt: skip
# type, inputs, attributes, results
CASES = {
    "DynamicQuantizeLSTM": (
        "DynamicQuantizeLSTM",
        LSTM,
        {"hidden_size": 4, "direction": "bidirectional"},
        lstm_of_bytes,
    ),
    "Gelu": ("Gelu", [X], {}, lambda: [F.gelu(X)]),
    "BiasGelu": ("BiasGelu", [X, V8], {}, lambda: [F.gelu(X + V8)]),
    "FastGelu": ("FastGelu", [X, V8], {}, lambda: [F.gelu(X + V8, approximate="tanh")]),
    "QuickGelu": ("QuickGelu", [X], {"alpha": 1.5}, lambda: [X * tt.sigmoid(1.5 * X)]),
    "FusedMatMul": (
        "FusedMatMul",
        [X, Y],
        {"transB": 1, "alpha": 0.5},
        lambda: [X @ Y.transpose(1, 2) / 2],
    ),
    "FusedMatMul of batches behind rows": (
        "FusedMatMul",
        [X.transpose(0, 1).contiguous(), Y],
        {"transBatchA": 1, "transA": 1},
        lambda: [X.transpose(1, 2) @ Y],
    ),
    "FusedConv": (
        "FusedConv",
        [IMAGE, KERNEL, image(4), image(1, 4, 6, 6)],
        {"pads": [1] * 4, "activation": "Relu"},
        lambda: [F.relu(F.conv2d(IMAGE, KERNEL, image(4), padding=1) + image(1, 4, 6, 6))],
    ),
    "FusedConv and Clip": (
        "FusedConv",
        [IMAGE, KERNEL, image(4)],
        {"activation": "Clip", "activation_params": [-0.5, 0.25]},
        lambda: [F.conv2d(IMAGE, KERNEL, image(4)).clamp(-0.5, 0.25)],
    ),
    "FusedGemm": (
        "FusedGemm",
        [X[0], W[:, :6], image(6)],
        {"alpha": 0.5, "activation": "LeakyRelu", "activation_alpha": 0.2},
        lambda: [F.leaky_relu(X[0] @ W[:, :6] / 2 + image(6), 0.2)],
    ),
    "SkipLayerNormalization": (
        "SkipLayerNormalization",
        [X, Y, V8, V8 * 2, V8 * 3],
        {"epsilon": 0.01},
        lambda: [F.layer_norm(X + Y + V8 * 3, (8,), V8, V8 * 2, 0.01)],
    ),
    "SkipSimplifiedLayerNormalization": (
        "SkipSimplifiedLayerNormalization",
        [X, Y, V8],
        {"epsilon": 0.01},
        lambda: [F.rms_norm(X + Y, (8,), V8, 0.01)],
    ),
    "EmbedLayerNormalization": (
        "EmbedLayerNormalization",
        [IDS, IDS % 2, W.T.contiguous(), KEYS[0], Y[0, :2], V8, V8, MASK],
        {"epsilon": 0.01},
        lambda: [
            F.layer_norm(
                W.T[IDS.long()] + KEYS[0, :5] + Y[0][(IDS % 2).long()], (8,), V8, V8, 0.01
            ),
            MASK.sum(1).int(),
        ],
    ),
    "Attention": (
        "Attention",
        [X, W, V24, MASK],
        {"num_heads": 2},
        lambda: [attended(*QKV, 2, attn_mask=SEEN)],
    ),
    "causal Attention of lengths": (
        "Attention",
        [X, W, V24, MASK.sum(1).int()],
        {"num_heads": 2, "unidirectional": 1, "scale": 0.5},
        lambda: [attended(*QKV, 2, scale=0.5, attn_mask=SEEN & tt.ones(5, 5).tril().bool())],
    ),
    "MultiHeadAttention": (
        "MultiHeadAttention",
        [X, KEYS, VALUES, V24, None, image(1, 2, 5, 7)],
        {"num_heads": 2},
        lambda: [
            attended(
                X + V24[:8], KEYS + V24[8:16], VALUES + V24[16:], 2, attn_mask=image(1, 2, 5, 7)
            )
        ],
    ),
    "MultiHeadAttention behind a past": (
        "MultiHeadAttention",
        [X, Y, X, None, None, None, heads(KEYS, 2).contiguous(), heads(VALUES, 2).contiguous()],
        {"num_heads": 2, "unidirectional": 1},
        lambda: [
            attended(
                X,
                tt.cat([KEYS, Y], 1),
                tt.cat([VALUES, X], 1),
                2,
                attn_mask=tt.ones(5, 12).tril(7).bool(),
            ),
            heads(tt.cat([KEYS, Y], 1), 2),
            heads(tt.cat([VALUES, X], 1), 2),
        ],
    ),
    "unidirectional MultiHeadAttention of more rows than keys": (
        "MultiHeadAttention",
        [X, KEYS[:, :2], VALUES[:, :2]],
        {"num_heads": 2, "unidirectional": 1},
        lambda: [attended(X, KEYS[:, :2], VALUES[:, :2], 2, attn_mask=seen(5, 2))],
    ),
    "unidirectional MultiHeadAttention of a row": (
        "MultiHeadAttention",
        [X[:, :1], KEYS, VALUES],
        {"num_heads": 2, "unidirectional": 1},
        lambda: [attended(X[:, :1], KEYS, VALUES, 2)],
    ),
    "unidirectional Attention behind a past": (
        "Attention",
        [X, W, V24, None, tt.stack([heads(KEYS, 2), heads(VALUES, 2)])],
        {"num_heads": 2, "unidirectional": 1},
        lambda: [
            attended(
                QKV[0],
                tt.cat([KEYS, QKV[1]], 1),
                tt.cat([VALUES, QKV[2]], 1),
                2,
                attn_mask=seen(5, 5, 7),
            ),
            tt.stack([heads(tt.cat([KEYS, QKV[1]], 1), 2), heads(tt.cat([VALUES, QKV[2]], 1), 2)]),
        ],
    ),
    "GroupQueryAttention": (
        "GroupQueryAttention",
        [WIDE.repeat(1, 1, 4), WIDE.repeat(1, 1, 2), WIDE.repeat(1, 1, 2) * 2]
        + [None, None, tt.tensor([4, 4], dtype=tt.int32), tt.tensor(5, dtype=tt.int32)],
        {"num_heads": 4, "kv_num_heads": 2},
        lambda: [
            united(
                F.scaled_dot_product_attention(
                    *(heads(WIDE.repeat(1, 1, n), n) * k for n, k in ((4, 1), (2, 1), (2, 2))),
                    is_causal=True,
                    enable_gqa=True,
                )
            )
        ],
    ),
    "RotaryEmbedding": (
        "RotaryEmbedding",
        [WIDE, AT, COS, SIN],
        {},
        lambda: [united(rotated(heads(WIDE, 2), AT, False))],
    ),
    "RotaryEmbedding of pairs from a position": (
        "RotaryEmbedding",
        [WIDE, tt.tensor([2]), COS, SIN],
        {"interleaved": 1},
        lambda: [united(rotated(heads(WIDE, 2), tt.arange(2, 7)[None], True))],
    ),
    "MatMulNBits": (
        "MatMulNBits",
        [image(3, 64), BITS, FACTORS.flatten()],
        {"K": 64, "N": 6, "bits": 4, "block_size": 32},
        lambda: [image(3, 64) @ unpacked(BITS, 4, FACTORS, tt.full((6, 2), 8)).T],
    ),
    "MatMulNBits with zero points": (
        "MatMulNBits",
        [image(3, 32), BITS, FACTORS.flatten(), tt.arange(12, dtype=tt.uint8) * 9],
        {"K": 32, "N": 6, "bits": 8, "block_size": 16},
        lambda: [image(3, 32) @ unpacked(BITS, 8, FACTORS, (tt.arange(12) * 9).view(6, 2)).T],
    ),
    "QLinearAdd": (
        "QLinearAdd",
        [A, scale(0.1), byte(3), A[0], scale(0.07), byte(5), scale(0.15), byte(2)],
        {},
        lambda: [as_bytes(reals(A, 0.1, 3) + reals(A[0], 0.07, 5), 0.15, 2)],
    ),
    "QLinearMul": (
        "QLinearMul",
        [A, scale(0.1), byte(3), A[0], scale(0.07), byte(5), scale(0.9), byte(2)],
        {},
        lambda: [as_bytes(reals(A, 0.1, 3) * reals(A[0], 0.07, 5), 0.9, 2)],
    ),
    "QLinearConcat": (
        "QLinearConcat",
        [scale(0.1), byte(4), A[0], scale(0.2), byte(3), A[1], scale(0.05), byte(1)],
        {"axis": 1},
        lambda: [as_bytes(tt.cat([reals(A[0], 0.2, 3), reals(A[1], 0.05, 1)], 1), 0.1, 4)],
    ),
    "QLinearSigmoid": (
        "QLinearSigmoid",
        [A, scale(0.05), byte(9), scale(1 / 256), byte(0)],
        {},
        lambda: [as_bytes(tt.sigmoid(reals(A, 0.05, 9)), 1 / 256, 0)],
    ),
    "QLinearLeakyRelu": (
        "QLinearLeakyRelu",
        [B, scale(0.05), byte(9, tt.int8), scale(0.05), byte(3, tt.int8)],
        {"alpha": 0.1},
        lambda: [as_bytes(F.leaky_relu(reals(B, 0.05, 9), 0.1), 0.05, 3, tt.int8)],
    ),
    "QLinearSoftmax": (
        "QLinearSoftmax",
        [A, scale(0.05), byte(9), scale(1 / 256), byte(0)],
        {"axis": 2, "opset": 13},
        lambda: [as_bytes(reals(A, 0.05, 9).softmax(-1), 1 / 256, 0)],
    ),
    "QLinearSoftmax over dimensions from 1 on": (
        "QLinearSoftmax",
        [A, scale(0.05), byte(9), scale(1 / 256), byte(0)],
        {"axis": 1, "opset": 12},
        lambda: [as_bytes(reals(A, 0.05, 9).flatten(1).softmax(-1).view(2, 3, 8), 1 / 256, 0)],
    ),
    "QLinearSoftmax over dimension 1": (
        "QLinearSoftmax",
        [A, scale(0.05), byte(9), scale(1 / 256), byte(0)],
        {"axis": 1, "opset": 13},
        lambda: [as_bytes(reals(A, 0.05, 9).softmax(1), 1 / 256, 0)],
    ),
    "QLinearAveragePool": (
        "QLinearAveragePool",
        [bytes_of(tt.uint8, 1, 2, 6, 6), scale(0.05), byte(9), scale(0.04), byte(2)],
        {"kernel_shape": [3, 3], "pads": [1] * 4, "strides": [2, 2]},
        lambda: [
            as_bytes(
                F.avg_pool2d(
                    reals(bytes_of(tt.uint8, 1, 2, 6, 6), 0.05, 9), 3, 2, 1, count_include_pad=False
                ),
                0.04,
                2,
            )
        ],
    ),
    "QLinearGlobalAveragePool": (
        "QLinearGlobalAveragePool",
        [bytes_of(tt.uint8, 1, 2, 5, 5), scale(0.05), byte(9), scale(0.02), byte(2)],
        {},
        lambda: [
            as_bytes(
                reals(bytes_of(tt.uint8, 1, 2, 5, 5), 0.05, 9).mean((2, 3), keepdim=True), 0.02, 2
            )
        ],
    ),
    "QGemm": (
        "QGemm",
        [A[0], scale(0.02), byte(9), B, COLUMNS, tt.zeros(5).to(tt.int8)]
        + [tt.tensor([900, -70, 0, 5, -900]).int(), scale(0.3), byte(100)],
        {},
        lambda: [
            as_bytes(
                ((A[0].double() - 9) @ B.double() + tt.tensor([900.0, -70, 0, 5, -900])).float()
                * (COLUMNS * 0.02),
                0.3,
                100,
            )
        ],
    ),
    "MatMulIntegerToFloat": (
        "MatMulIntegerToFloat",
        [A, B, scale(0.02), COLUMNS, byte(9), tt.ones(5).to(tt.int8), COLUMNS],
        {},
        lambda: [((A.double() - 9) @ (B.double() - 1)).float() * (COLUMNS * 0.02) + COLUMNS],
    ),
}
ONNX = {
    "Attention": (
        "Attention",
        [WIDE, KEYS, VALUES, tt.ones(5, 7).tril(2).bool()],
        {"q_num_heads": 4, "kv_num_heads": 2},
        lambda: [
            united(
                F.scaled_dot_product_attention(
                    heads(WIDE, 4),
                    heads(KEYS, 2),
                    heads(VALUES, 2),
                    attn_mask=tt.ones(5, 7).tril(2).bool(),
                    enable_gqa=True,
                )
            )
        ],
    ),
    "causal Attention of more keys than rows": (
        "Attention",
        [X[:, :2], KEYS, VALUES],
        {"q_num_heads": 2, "kv_num_heads": 2, "is_causal": 1},
        lambda: [attended(X[:, :2], KEYS, VALUES, 2, attn_mask=seen(2, 7))],
    ),
    "causal Attention of more rows than keys": (
        "Attention",
        [X, KEYS[:, :2], VALUES[:, :2]],
        {"q_num_heads": 2, "kv_num_heads": 2, "is_causal": 1},
        lambda: [attended(X, KEYS[:, :2], VALUES[:, :2], 2, attn_mask=seen(5, 2))],
    ),
    "causal Attention of more keys behind a past": (
        "Attention",
        [X[:, :2], Y, X, image(2, 12), heads(KEYS, 2).contiguous(), heads(VALUES, 2).contiguous()],
        {"q_num_heads": 2, "kv_num_heads": 2, "is_causal": 1},
        lambda: [
            attended(
                X[:, :2],
                tt.cat([KEYS, Y], 1),
                tt.cat([VALUES, X], 1),
                2,
                attn_mask=tt.where(seen(2, 5, 7), image(2, 12), -math.inf),
            ),
            heads(tt.cat([KEYS, Y], 1), 2),
            heads(tt.cat([VALUES, X], 1), 2),
        ],
    ),
    "SimplifiedLayerNormalization": (
        "SimplifiedLayerNormalization",
        [X, image(5, 8)],
        {"axis": 1, "epsilon": 0.01},
        lambda: [F.rms_norm(X, (5, 8), image(5, 8), 0.01)],
    ),
    "RotaryEmbedding": (
        "RotaryEmbedding",
        [heads(WIDE, 2).contiguous(), COS, SIN, AT],
        {},
        lambda: [rotated(heads(WIDE, 2), AT, False)],
    ),
    "NonZero": (
        "NonZero",
        [tt.tensor([[0, 1, 2], [3, 0, 0]])],
        {},
        lambda: [tt.tensor([[0, 0, 1], [1, 2, 0]])],
    ),
}


def is_near(a, b):
    """Bytes may differ by one: a quotient that ends in a half is rounded up or down."""
    at_most = 1 if a.dtype in (tt.uint8, tt.int8) else 1e-4
    same = a.dtype == b.dtype and a.shape == b.shape
    return same and (a.double() - b.double()).abs().max() <= at_most


@pytest.mark.parametrize("domain,name", [(MICROSOFT, k) for k in CASES] + [("", k) for k in ONNX])
def test_nodes(domain, name, tmp_path):
    op, tensors, attributes, formula = (CASES if domain else ONNX)[name]
    want, path = formula(), tmp_path / "m.onnx"
    path.write_bytes(model_of(op, tensors, attributes, len(want), domain, 23))
    got = tt.onnx.load(path).run()
    got = [got] if isinstance(got, tt.Tensor) else got
    assert len(got) == len(want) and all(map(is_near, got, want))
    runtime = pytest.importorskip("onnxruntime")
    one_thread = runtime.SessionOptions()  # threads quantize states by the range of their rows
    one_thread.intra_op_num_threads = 1
    session = runtime.InferenceSession(str(path), one_thread, ["CPUExecutionProvider"])
    others = [tt.tensor(x) for x in session.run(None, {})]
    assert len(others) == len(want) and all(map(is_near, got, others))


@pytest.mark.parametrize(
    "op,tensors,attributes,reason",
    [
        ("Attention", [X, W, V24], {"num_heads": 3}, "does not divide"),
        ("Attention", [X, W, V24, MASK[:1]], {"num_heads": 2}, "a mask of other dimensions"),
        (
            "Attention",
            [X, W, V24, None, tt.zeros(2, 2, 2, 7, 4), None, tt.tensor([3], dtype=tt.int32)],
            {"num_heads": 2},
            "shares its buffer",
        ),
        (
            "Attention",
            [X, W, V24],
            {"num_heads": 2, "past_present_share_buffer": 1},
            "shares its buffer",
        ),
        (
            "MultiHeadAttention",
            [X[:, :2], KEYS, VALUES],
            {"num_heads": 2, "unidirectional": 1},
            "fewer than the keys",
        ),
        (
            "MultiHeadAttention",
            [X, KEYS, VALUES] + [None] * 5 + [tt.tensor([3], dtype=tt.int32)],
            {"num_heads": 2},
            "shares its buffer",
        ),
        (
            "MultiHeadAttention",
            [X, KEYS, VALUES] + [None] * 6 + [tt.zeros(2, 1, 7, dtype=tt.int32)],
            {"num_heads": 2},
            "or beams",
        ),
        (
            "GroupQueryAttention",
            [X, KEYS, VALUES],
            {"num_heads": 2, "kv_num_heads": 2},
            "other numbers of rows and keys",
        ),
        ("MatMulNBits", [image(3, 64), BITS, FACTORS], {"K": 64, "N": 1 << 40}, "bits, blocks"),
        ("QLinearAdd", [A, COLUMNS, byte(3)] * 2 + [scale(1.0), byte(2)], {}, "several scales"),
        ("RotaryEmbedding", [X, AT, COS, SIN], {"num_heads": 8}, "more angles than columns"),
        (
            "DynamicQuantizeLSTM",
            [*LSTM[:4], tt.tensor([5, 5, 4], dtype=tt.int32), *LSTM[5:]],
            {"hidden_size": 4, "direction": "bidirectional"},
            "lengths of sequences",
        ),
        ("BeamSearch", [X], {}, "no counterpart"),
    ],
)
def test_refuses(op, tensors, attributes, reason, tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(model_of(op, tensors, attributes, 1, MICROSOFT, 17))
    with pytest.raises(NotImplementedError, match=reason):
        tt.onnx.load(path)


def test_attention_refuses_numbers_of_keys(tmp_path):
    path = tmp_path / "m.onnx"
    tensors = [heads(t, 2).contiguous() for t in (X, KEYS, VALUES)] + [None] * 3
    path.write_bytes(model_of("Attention", tensors + [tt.tensor([7, 4])], {}, 1, "", 24))
    with pytest.raises(NotImplementedError, match="numbers of keys"):
        tt.onnx.load(path)


def test_packed_weights_of_other_sizes(tmp_path):
    path = tmp_path / "m.onnx"
    for sizes in ({"N": 1 << 40}, {"N": 7}, {"K": 32}):
        attributes = {"K": 64, "N": 6, "block_size": 32, **sizes}
        tensors = [image(3, 64), BITS, FACTORS.flatten()]
        path.write_bytes(model_of("MatMulNBits", tensors, attributes, 1, MICROSOFT, 17))
        with pytest.raises(RuntimeError, match="weights of other sizes"):
            tt.onnx.load(path)
