"""tt.onnx: models that tt reads again, and that onnx and onnxruntime take, where they are
installed."""
import struct

import pytest
import tt
from tt import nn
from tt.nn import functional as F


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.norm = nn.Embedding(11, 8), nn.LayerNorm(8)
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 11)

    def forward(self, tokens):
        x = self.embedding(tokens)
        b, n, d = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, n, 3, 2, d // 2).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(x + F.gelu(y.transpose(1, 2).reshape(b, n, d)))


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.5),
        nn.Flatten(),
        nn.Linear(64, 10),
        nn.LogSoftmax(-1),
    )


def mlp():
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2), nn.Softmax(-1))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 3, num_layers=2, bidirectional=True, batch_first=True)
        self.gru, self.rnn = nn.GRU(6, 5, bias=False), nn.RNN(5, 2, nonlinearity="relu")

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        y, _ = self.gru(y)
        y, last = self.rnn(y)
        return y, h, c, last


CASES = {
    "recurrent": (Recurrent, lambda: tt.randn(2, 6, 4)),
    "mlp": (mlp, lambda: tt.randn(3, 4)),
    "cnn": (cnn, lambda: tt.randn(2, 1, 8, 8)),
    "attention": (Attention, lambda: tt.randint(0, 11, (2, 5))),
}


def flat(outs):
    """Returns the tensors of a result."""
    if isinstance(outs, tt.Tensor):
        return [outs]
    return [t for part in outs for t in flat(part)]


def check(program, m, x):
    with tt.no_grad():
        want = flat(m(x))
    got = flat(program.run(x))
    assert len(got) == len(want)
    for a, b in zip(got, want):
        assert a.shape == b.shape and tt.allclose(a, b, atol=1e-6)


def exported(name, path):
    tt.manual_seed(0)
    make, inputs = CASES[name]
    m, x = make(), inputs()
    m.train()
    tt.onnx.export(m, (x,), path)
    assert m.training
    return m.eval(), x


@pytest.mark.parametrize("name", CASES)
def test_writes_a_model(name, tmp_path):
    exported(name, tmp_path / "m.onnx")
    data = (tmp_path / "m.onnx").read_bytes()
    assert b"in0" in data and b"out0" in data
    assert (b"LSTM" if name == "recurrent" else b"MatMul") in data


@pytest.mark.parametrize("name", CASES)
def test_loads_a_model(name, tmp_path):
    m, x = exported(name, tmp_path / "m.onnx")
    program = tt.onnx.load(tmp_path / "m.onnx")
    check(program, m, x)
    (tmp_path / "bad.onnx").write_bytes((tmp_path / "m.onnx").read_bytes()[:-3])
    with pytest.raises(RuntimeError, match="not an ONNX model"):
        tt.onnx.load(tmp_path / "bad.onnx")


@pytest.mark.parametrize("name", CASES)
def test_runs_in_onnxruntime(name, tmp_path):
    onnx = pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    numpy = pytest.importorskip("numpy")
    path = str(tmp_path / "m.onnx")
    m, x = exported(name, path)
    onnx.checker.check_model(path, full_check=True)
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for a, b in zip(session.run(None, {"in0": x.numpy()}), flat(m(x))):
        assert numpy.allclose(a, b.detach().numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["mlp", "cnn", "attention", "recurrent"])
def test_a_dynamic_batch(name, tmp_path):
    tt.manual_seed(0)
    make, inputs = CASES[name]
    m, x, path = make().eval(), inputs(), str(tmp_path / "m.onnx")
    if name == "recurrent":  # the zeros of its initial states are no inputs
        tt.onnx.export(m, x, path, dynamic_shapes={"x": {0: tt.export.Dim("batch")}})
    else:
        tt.onnx.export(m, x, path, dynamic_axes={"in0": {0: "batch"}})
    assert b"batch" in (tmp_path / "m.onnx").read_bytes()
    for n in (1, x.shape[0], 5):
        check(tt.onnx.load(path, dynamic=n), m, tt.cat([x] * 5)[:n])


@pytest.mark.parametrize("name", CASES)
def test_a_dynamic_batch_in_onnxruntime(name, tmp_path):
    onnx = pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    numpy = pytest.importorskip("numpy")
    tt.manual_seed(0)
    make, inputs = CASES[name]
    m, x, path = make().eval(), inputs(), str(tmp_path / "m.onnx")
    tt.onnx.export(m, x, path, dynamic_axes={"in0": {0: "batch"}})
    onnx.checker.check_model(path, full_check=True)
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for n in (1, 5):
        given = tt.cat([x] * 5)[:n]
        with tt.no_grad():
            want = flat(m(given))
        for a, b in zip(session.run(None, {"in0": given.numpy()}), want):
            assert numpy.allclose(a, b.numpy(), rtol=1e-4, atol=1e-5)


def outside(*entries):
    """The fields of a tensor whose elements are in another file."""
    pairs = [(13, message((1, k), (2, v))) for k, v in entries]
    return [(1, [2]), (2, F32), *pairs, (14, 1)]


def test_tensors_in_other_files(tmp_path):
    path = tmp_path / "m.onnx"
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "w.bin").write_bytes(struct.pack("<4f", 9, 1.5, -2, 9))
    (tmp_path.parent / "w.bin").write_bytes(struct.pack("<4f", 9, 1.5, -2, 9))
    place, at, length = (b"location", b"part/w.bin"), (b"offset", b"4"), (b"length", b"8")
    for entries in ((place, at, length), (place, at)):
        assert load_node(path, b"Neg", [outside(*entries)]).run().tolist() == [-1.5, 2]
    for name in (b"../w.bin", b"part/../../w.bin", b"/etc/passwd", b"part\\w.bin", b"", b"c:w.bin"):
        with pytest.raises(RuntimeError, match="stay in the model's folder"):
            load_node(path, b"Neg", [outside((b"location", name), at, length)])
    for bad in ((b"offset", b"9"), (b"offset", b"16"), (b"offset", b"999999999999999999")):
        with pytest.raises(RuntimeError, match="too short"):
            load_node(path, b"Neg", [outside(place, bad)])
    for bad in ((b"offset", b"-4"), (b"offset", b""), (b"length", b"8x"), (b"offset", b"9" * 19)):
        with pytest.raises(RuntimeError, match="no number"):
            load_node(path, b"Neg", [outside(place, bad)])
    with pytest.raises(RuntimeError, match="bytes of its shape"):
        load_node(path, b"Neg", [outside(place, (b"length", b"12"))])
    with pytest.raises((RuntimeError, OSError), match="cannot be opened"):
        load_node(path, b"Neg", [outside((b"location", b"part/none.bin"))])


def message(*fields):
    """A message of the wire format: (number, value), where a value is bytes, an integer or, packed,
    a list of integers."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
            continue
        if isinstance(value, list):
            value = b"".join(map(varint, value))
        out += varint(number << 3 | 2) + varint(len(value)) + value
    return out


def varint(v):
    out = []
    while v > 127:
        out.append(v & 127 | 128)
        v >>= 7
    return bytes([*out, v])


def load_node(path, op, constants, *attributes):
    """Loads a model of one node, whose inputs are constants: lists of a TensorProto's fields."""
    names = [b"c%d" % i for i in range(len(constants))]
    inputs = [(1, name) for name in names]
    node = message(*inputs, (2, b"y"), (4, op), *((5, a) for a in attributes))
    initial = [(5, message(*c, (8, name))) for c, name in zip(constants, names)]
    graph = message((1, node), *initial, (12, message((1, b"y"))))
    path.write_bytes(message((7, graph), (8, message((2, 17)))))
    return tt.onnx.load(path)


F32, I64, F16, F64 = 1, 7, 10, 11


def test_tensors_whose_lists_have_other_lengths(tmp_path):
    """The list that a dtype does not use decided that another one was read beyond its end."""
    path, one, many = tmp_path / "m.onnx", struct.pack("<f", 1), [1] * 4000
    floats = one * 4000
    for fields in (
        [(1, [4000]), (2, F32), (4, one), (5, many)],
        [(1, [4000]), (2, F16), (4, floats)],
        [(1, [4000]), (2, I64), (4, floats), (7, [1])],
        [(1, [4000]), (2, F64), (7, many)],
        [(1, [4000]), (2, F32), (9, floats[:-1])],
    ):
        with pytest.raises(RuntimeError, match="has not the elements of its shape"):
            load_node(path, b"Neg", [fields])
    halves = [(1, [2]), (2, F16), (5, [0x3C00, 0xC000])]
    assert load_node(path, b"Neg", [halves]).run().tolist() == [-1, 2]
    floats = [(1, [2]), (2, F32), (4, struct.pack("<ff", 0.5, -2))]
    assert load_node(path, b"Neg", [floats]).run().tolist() == [-0.5, 2]


def test_counts_that_are_no_integers(tmp_path):
    path = tmp_path / "m.onnx"
    row = [(1, [2]), (2, F32), (9, struct.pack("<ff", 1, 2))]
    huge = [(2, F32), (9, struct.pack("<f", 1e30))]
    with pytest.raises(NotImplementedError, match="no integers"):
        load_node(path, b"TopK", [row, huge])
    zero, wide = [(2, I64), (7, [0])], [(2, F64), (9, struct.pack("<d", 1e300))]
    step = [(2, F64), (9, struct.pack("<d", 1e299))]
    with pytest.raises(NotImplementedError, match="a range of large numbers"):
        load_node(path, b"Range", [zero, wide, step])


def test_refuses(tmp_path):
    path = tmp_path / "m.onnx"
    for options, error in (({"opset_version": 21}, ValueError), ({"input_names": []}, TypeError)):
        with pytest.raises(error, match="onnx.export"):
            tt.onnx.export(mlp(), tt.randn(3, 4), path, **options)
    with pytest.raises(NotImplementedError, match="has no translation"):
        tt.onnx.export(lambda x: x.cumprod(0), tt.randn(3, 4), path)
    assert not path.exists() and not tt.onnx.is_in_onnx_export()
