"""tt.onnx: models that tt reads again, and that onnx and onnxruntime take, where they are
installed."""
import io
import math
import struct

import pytest
import tt
from tt import nn
from tt._onnx_names import fields
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


def groups():
    layers = [nn.GroupNorm(2, 4), nn.Flatten(), nn.RMSNorm(40), nn.Linear(40, 3)]
    for layer in (layers[0], layers[2]):
        nn.init.uniform_(layer.weight, 0.5, 2.0)
    return nn.Sequential(*layers)


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


def upsampling():
    """By a whole factor, by tables of places, by weights."""
    return nn.Sequential(
        nn.Conv2d(2, 3, 3, padding=1),
        nn.Upsample(scale_factor=2),
        nn.Upsample(size=(7, 13), mode="nearest-exact"),
        nn.Upsample(scale_factor=1.5, mode="bilinear"),
    )


CASES = {
    "upsampling": (upsampling, lambda: tt.randn(2, 2, 4, 5)),
    "recurrent": (Recurrent, lambda: tt.randn(2, 6, 4)),
    "mlp": (mlp, lambda: tt.randn(3, 4)),
    "cnn": (cnn, lambda: tt.randn(2, 1, 8, 8)),
    "groups": (groups, lambda: tt.randn(2, 4, 5, 2)),
    "attention": (Attention, lambda: tt.randint(0, 11, (2, 5))),
}


NAMES = {"recurrent": "x", "attention": "tokens"}  # of the input; others: "input"


def flat(outs):
    """Returns the tensors of a result."""
    if isinstance(outs, tt.Tensor):
        return [outs]
    return [t for part in outs for t in flat(part)]


def check(program, m, *x):
    with tt.no_grad():
        want = flat(m(*x))
    got = flat(program.run(*x))
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
    assert NAMES.get(name, "input").encode() in data and b"out0" in data
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
    for a, b in zip(session.run(None, {NAMES.get(name, "input"): x.numpy()}), flat(m(x))):
        assert numpy.allclose(a, b.detach().numpy(), rtol=1e-4, atol=1e-5)


def written(x, key, value):
    y = x.clone()
    y[key] = value
    return y


def places(x):
    """Indices by tensors, scattered values, order, extremes and their places."""
    rows, columns = tt.tensor([1, 0, 1]), tt.tensor([[2], [-1]])
    at = x.long().abs() % 3
    return (
        x[rows],
        x[:, rows],
        x[rows[:2], columns],
        x[:, None, rows, rows],
        x[rows, :, None, rows] if x.ndim > 3 else x[rows, :, rows],
        x.index_put((rows[:2], rows[1:]), tt.ones(2, 4).to(x.dtype)),
        x.index_put((rows,), x, accumulate=True) if x.shape[0] == 3 else x,
        written(x, (slice(None), rows[:2]), tt.arange(2)[:, None].to(x.dtype)),
        written(x, (slice(None), rows[:2], columns), x[:, :2, :2]),
        written(x, (rows[:2], slice(None), columns), x[:2, :2, :3]),
        written(x, (slice(None), 1, rows[0]), x[:, 0, 2]),
        x.index_add(1, rows[:2], x[:, :2], alpha=2),
        x.index_copy(0, rows[:1], x[:1]),
        x.index_fill(2, rows, 3),
        x.scatter(2, at[..., :1], x + 1),
        x.scatter_add(1, at, x),
        x.scatter(0, at[:1] % 2, 7),
        x.max(1),
        x.min(-1, keepdim=True),
        x.sort(-1, descending=True),
        x.argsort(1),
        x.roll((1, -2), (0, 2)),
        x.roll(3),
        F.one_hot(at, 4),
        x.amax(0).any(),
    )


def numbers(x):
    """Divisions that round, bits, comparisons with numbers that the dtype does not have."""
    return (
        *(x // 3, x % 3, -7 // (x.abs() + 1), (x + 1) // (x.abs() + 2), x.clamp(-1, 2)),
        *(~x, x & 5, (x > 1) | 2, x > -300, x.any(1), (x > -1).all(0)),
        *(x.pow(2), x.flatten(1) @ x.flatten(1).T),
        tt.zeros(4).scatter_add(0, x[0, 0].long() % 4, x[1, 1] * 0.5),
    )


def parts(x):
    """Writes to parts of a memory, and views of it afterwards."""
    y, z = x.clone(), tt.empty(3, 2, 4)
    y[:, 0] += 1
    y[0] *= 2
    y.diagonal(0, 1, 2).fill_(9)
    for i in range(3):
        z[i] = x[:, i] * i
    return y, y.sum(1), z, z[1:, :, ::2], x[:, :2].diagonal(0, 1, 2)


def hidden(x):
    """A query that sees nothing has a result of 0; key heads are shared."""
    mask = tt.tensor([[True, False, True], [False] * 3, [True, True, False]])
    q, k = x[:, None, :, :4].expand(2, 4, 3, 4), x[:, None].expand(2, 2, 3, 4)
    return (
        F.scaled_dot_product_attention(q, q, q, attn_mask=mask),
        F.scaled_dot_product_attention(q, k, k * 2, enable_gqa=True, is_causal=True),
    )


def images(x):
    """Layers whose parts are computed or moved by tables."""
    theta = tt.tensor([[[1.0, 0.2, 0.1], [-0.1, 0.9, 0.0]]]).expand(2, 2, 3)
    grid = F.affine_grid(theta, (2, 3, 4, 4), align_corners=False)
    norm = tt.linspace(-1, 1, 3) + tt.atan2(x[0, 0], x[0, 1])[:3, :3]
    return (
        F.grid_sample(x, grid, align_corners=False),
        F.grid_sample(x, grid, mode="nearest", padding_mode="border", align_corners=True),
        F.unfold(x, 3, padding=1, stride=2),
        F.instance_norm(x, weight=tt.ones(3) * 2, bias=tt.ones(3)),
        F.pad(x, (1, 2, 3, 1), mode="reflect"),
        F.pad(x, (1, 2, 2, 1), mode="replicate"),
        F.pad(x, (1, 1, 1, 1), mode="circular"),
        F.avg_pool2d(x, 2, divisor_override=3),
        F.adaptive_max_pool2d(x, 3),
        F.embedding_bag(tt.arange(6).reshape(2, 3) % 4, x[0, 0, :4, :4], mode="mean"),
        (x / (x > 0)).nan_to_num(1.0, 2.0, -2.0),
        x.sigmoid().logit(),
        norm,
    )


class Call(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, input):
        return self.function(input)


def rounded(*shape):
    return (tt.randn(*shape) * 3).round()


FUNCTIONS = {
    "places": (places, lambda: rounded(3, 3, 4)),
    "places of integers": (places, lambda: rounded(3, 3, 4).long()),
    "numbers": (numbers, lambda: rounded(2, 3, 4).long()),
    "numbers of bytes": (numbers, lambda: rounded(2, 3, 4).abs().to(tt.uint8)),
    "numbers of 8 bits": (numbers, lambda: rounded(2, 3, 4).to(tt.int8)),
    "parts": (parts, lambda: tt.randn(2, 3, 4)),
    "hidden": (hidden, lambda: tt.randn(2, 3, 4)),
    "images": (images, lambda: tt.randn(2, 3, 6, 6)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, tmp_path):
    """Also in onnxruntime, where it is installed."""
    tt.manual_seed(0)
    function, inputs = FUNCTIONS[name]
    x, path = inputs(), str(tmp_path / "m.onnx")
    want = flat(function(x))
    tt.onnx.export(Call(function), x, path)
    got = flat(tt.onnx.load(path).run(x))
    assert len(got) == len(want)
    for i, (a, b) in enumerate(zip(got, want)):
        assert a.dtype == b.dtype and a.shape == b.shape, i
        assert tt.allclose(a.double(), b.double(), atol=1e-5), i
    try:
        import numpy
        import onnx
        import onnxruntime
    except ImportError:
        return
    onnx.checker.check_model(path, full_check=True)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for i, (a, b) in enumerate(zip(session.run(None, {"input": x.numpy()}), want)):
        b = b.numpy()
        assert a.dtype == b.dtype and a.shape == b.shape, i
        assert numpy.allclose(a.astype("f8"), b.astype("f8"), rtol=1e-4, atol=1e-5), i


@pytest.mark.parametrize("name", ["mlp", "cnn", "groups", "attention", "recurrent"])
def test_a_dynamic_batch(name, tmp_path):
    tt.manual_seed(0)
    make, inputs = CASES[name]
    m, x, path = make().eval(), inputs(), str(tmp_path / "m.onnx")
    if name == "recurrent":  # the zeros of its initial states are no inputs
        tt.onnx.export(m, x, path, dynamic_shapes={"x": {0: tt.export.Dim("batch")}})
    else:
        tt.onnx.export(m, x, path, dynamic_axes={NAMES.get(name, "input"): {0: "batch"}})
    assert b"batch" in (tmp_path / "m.onnx").read_bytes()
    for n in (1, x.shape[0], 5):
        check(tt.onnx.load(path, dynamic=n), m, tt.cat([x] * 5)[:n])


def test_the_last_of_any_length(tmp_path):
    m, path = Call(lambda x: x[:, -1] * x.sum(1)), str(tmp_path / "m.onnx")
    tt.onnx.export(m, tt.randn(2, 5, 4), path, dynamic_axes={"input": {1: "length"}})
    for n in (2, 5, 9):
        check(tt.onnx.load(path, dynamic=n), m, tt.randn(2, n, 4))


@pytest.mark.parametrize("name", CASES)
def test_a_dynamic_batch_in_onnxruntime(name, tmp_path):
    onnx = pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    numpy = pytest.importorskip("numpy")
    tt.manual_seed(0)
    make, inputs = CASES[name]
    m, x, path = make().eval(), inputs(), str(tmp_path / "m.onnx")
    tt.onnx.export(m, x, path, dynamic_axes={NAMES.get(name, "input"): {0: "batch"}})
    onnx.checker.check_model(path, full_check=True)
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for n in (1, 5):
        given = tt.cat([x] * 5)[:n]
        with tt.no_grad():
            want = flat(m(given))
        for a, b in zip(session.run(None, {NAMES.get(name, "input"): given.numpy()}), want):
            assert numpy.allclose(a, b.numpy(), rtol=1e-4, atol=1e-5)


class Decoder(tt.nn.Module):
    """Causal attention over tokens of any number and length, with positions of its own."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places = tt.nn.Embedding(11, 8), tt.nn.Embedding(16, 8)
        self.heads, self.out = tt.nn.Linear(8, 24), tt.nn.Linear(8, 11)

    def forward(self, ids, scale):
        rows, length = ids.shape
        x = self.tokens(ids) + self.places(tt.arange(length)) + tt.arange(0.5, length, 1.0)[:, None]
        x = x * scale.view(rows, 1, 1) - tt.ones(length, length).tril().sum(0)[:, None]
        heads = self.heads(x).view(rows, length, 3, 2, 4).permute(2, 0, 3, 1, 4)
        x = tt.nn.functional.scaled_dot_product_attention(*heads.unbind(0), is_causal=True)
        return self.out(x.transpose(1, 2).reshape(rows, length, 8))[:, -1:], x


def decoder_inputs(rows, length):
    return (tt.arange(rows * length) * 7 % 11).view(rows, length), tt.arange(float(rows))


def test_several_dynamic_dimensions(tmp_path):
    tt.manual_seed(0)
    m, path = Decoder().eval(), tmp_path / "m.onnx"
    axes = {"ids": {0: "batch", 1: "length"}, "scale": {0: "batch"}, "out1": {0: "batch"}}
    tt.onnx.export(m, decoder_inputs(2, 5), path, dynamic_axes=axes)
    inputs, outputs, sizes = ends(path.read_bytes())
    assert b"batch" in sizes["out0"] and b"length" not in sizes["out0"]
    assert b"batch" in sizes["out1"] and b"length" in sizes["out1"] and b"length" in sizes["ids"]
    for n in (1, 5, 9):  # load has one size for all
        check(tt.onnx.load(path, dynamic=n), m, *decoder_inputs(n, n))
    runtime = pytest.importorskip("onnxruntime")
    numpy = pytest.importorskip("numpy")
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for each in ((1, 1), (3, 7), (6, 2)):
        given = decoder_inputs(*each)
        with tt.no_grad():
            want = m(*given)
        for a, b in zip(session.run(None, dict(zip(inputs, [x.numpy() for x in given]))), want):
            assert numpy.allclose(a, b.numpy(), rtol=1e-4, atol=1e-5)


def outside(*entries):
    """The fields of a tensor whose elements are in another file."""
    pairs = [(13, message((1, k), (2, v))) for k, v in entries]
    return [(1, [2]), (2, F32), *pairs, (14, 1)]


def test_arguments_in_structures(tmp_path):
    """A language model is exported with (tokens, (hidden, cell)), as in PyTorch's examples."""
    lstm, path = nn.LSTM(4, 3), tmp_path / "lstm.onnx"
    x, h, c = tt.randn(2, 1, 4), tt.randn(1, 1, 3), tt.randn(1, 1, 3)
    tt.onnx.export(lstm, (x, (h, c)), path)
    y, (hidden, cell) = lstm(x, (h, c))
    for found, expected in zip(tt.onnx.load(path).module()(x, h, c), (y, hidden, cell)):
        tt.testing.assert_close(found, expected)
    tt.onnx.export(lambda values, scale: values["a"] * scale, ({"a": x}, 2.0), path)
    tt.testing.assert_close(tt.onnx.load(path).module()(x), 2 * x)


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 4)

    def forward(self, x, mask=None):
        y = self.linear(x)
        return (y, y + 1) if mask is None else y * mask


def ends(model):
    """The names of the inputs and outputs of a model, and the lengths of inputs by their names."""
    found, lengths = {11: [], 12: []}, {}
    for number, graph, _ in fields(memoryview(model)):
        for kind, item, _ in fields(graph) if number == 7 else ():
            if kind in found:
                name, kind_of = (bytes(content) for _, content, _ in fields(item))
                found[kind].append(name.decode())
                lengths[name.decode()] = kind_of
    return found[11], found[12], lengths


class Join(nn.Module):
    def forward(self, x):
        return tt.cat([x, x * 2, x + 1, -x], 1)


def test_one_node_concatenates_all_tensors(tmp_path):
    path, x = tmp_path / "m.onnx", tt.randn(2, 3)
    tt.onnx.export(Join(), (x,), path)
    assert path.read_bytes().count(b"Concat") == 1
    check(tt.onnx.load(path), Join(), x)


def test_names_of_inputs_and_outputs(tmp_path):
    """As scripts of PyTorch's call it, by both exporters."""
    path, m, x, file = tmp_path / "m.onnx", Masked(), tt.randn(2, 3), io.BytesIO()
    named = {"input_names": ["image"], "output_names": ["logits"]}
    axes = {"image": {0: "size"}, "logits": {0: "size"}}
    options = {"opset_version": 17, "do_constant_folding": True, "export_params": True}
    assert tt.onnx.export(m, x, file, dynamo=False, dynamic_axes=axes, **named, **options) is None
    inputs, outputs, lengths = ends(file.getvalue())
    assert (inputs, outputs) == (["image"], ["logits", "out1"])
    assert b"size" in lengths["image"] and b"size" in lengths["out1"]
    path.write_bytes(file.getvalue())
    y = m(x)
    for found, expected in zip(tt.onnx.load(path, dynamic=2).run(x), y):
        tt.testing.assert_close(found, expected.detach())
    mask = tt.ones(4)
    for args, kwargs in (((x,), {"mask": mask}), ((x, {"mask": mask}), None), ((x, mask), None)):
        program = tt.onnx.export(m, args, path, kwargs=kwargs, training=tt.onnx.TrainingMode.EVAL)
        assert ends(path.read_bytes())[:2] == (["x", "mask"], ["out0"])
    program.save(tmp_path / "other.onnx")
    assert (tmp_path / "other.onnx").read_bytes() == path.read_bytes()
    tt.testing.assert_close(program(x, mask)[0], m(x, mask).detach())
    with pytest.warns(UserWarning, match="no input or output"):
        program = tt.onnx.export(m, (x,), dynamic_axes={"y": {0: "batch"}}, dynamo=True)
    program = tt.onnx.export(tt.export.export(m, (x,)), f=path, input_names=["q"])
    assert ends(path.read_bytes())[0] == ["q"]


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


def load_node(path, op, constants, *attributes, opset=17):
    """Loads a model of one node, whose inputs are constants: lists of a TensorProto's fields."""
    names = [b"c%d" % i for i in range(len(constants))]
    inputs = [(1, name) for name in names]
    node = message(*inputs, (2, b"y"), (4, op), *((5, a) for a in attributes))
    initial = [(5, message(*c, (8, name))) for c, name in zip(constants, names)]
    graph = message((1, node), *initial, (12, message((1, b"y"))))
    path.write_bytes(message((7, graph), (8, message((2, opset)))))
    return tt.onnx.load(path)


F32, I32, I64, F16, F64 = 1, 6, 7, 10, 11


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


STEPS, ROWS, FEATURES, HIDDEN = 4, 3, 2, 2
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def sigmoid(v):
    return 1 / (1 + math.exp(-v))


def one_step(kind, before, x, h, c, w, r, b):
    """State and cell behind a step of one row, by the formulas of ONNX's operators."""
    n = len(h)

    def part(gate, state, apart=False):
        rows = range(gate * n, gate * n + n)
        own = [b[len(w) + k] + sum(p * q for p, q in zip(r[k], state)) for k in rows]
        given = [b[k] + sum(p * q for p, q in zip(w[k], x)) for k in rows]
        return (given, own) if apart else [p + q for p, q in zip(given, own)]

    if kind == "RNN":
        return [math.tanh(v) for v in part(0, h)], c
    if kind == "LSTM":
        i, o, f = ([sigmoid(v) for v in part(k, h)] for k in range(3))
        cell = [math.tanh(v) for v in part(3, h)]
        c = [p * q + s * t for p, q, s, t in zip(f, c, i, cell)]
        return [p * math.tanh(q) for p, q in zip(o, c)], c
    z, reset = ([sigmoid(v) for v in part(k, h)] for k in range(2))
    if before:
        fresh = part(2, [p * q for p, q in zip(reset, h)])
    else:
        given, own = part(2, h, apart=True)
        fresh = [p + q * s for p, q, s in zip(given, reset, own)]
    return [(1 - p) * math.tanh(q) + p * s for p, q, s in zip(z, fresh, h)], c


def recurrent_by_formulas(kind, direction, before, lengths, x, w, r, b, h0, c0):
    """Y, Y_h and Y_c as nested lists."""
    zero, ways = [0.0] * HIDDEN, {"forward": (0,), "reverse": (1,), "bidirectional": (0, 1)}
    y = [[[zero] * ROWS for _ in ways[direction]] for _ in range(STEPS)]
    last = [[[zero] * ROWS for _ in ways[direction]] for _ in range(2)]
    for d, back in enumerate(ways[direction]):
        for row, n in enumerate(lengths):
            h, c = h0[d][row], c0[d][row]
            for t in reversed(range(n)) if back else range(n):
                h, c = one_step(kind, before, x[t][row], h, c, w[d], r[d], b[d])
                y[t][d][row], last[0][d][row], last[1][d][row] = h, h, c
    return y, *last


@pytest.mark.parametrize("lengths", [None, (4, 2, 1), (0, 4, 3)], ids=str)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "GRU that resets first", "RNN"])
def test_recurrent_nodes(kind, direction, lengths, tmp_path):
    kind, before = kind.split()[0], kind.endswith("first")
    program, arrays, lens = recurrent_node(tmp_path / "m.onnx", kind, direction, before, lengths)
    got = program.run(*([arrays[0], lens] if lengths else [arrays[0]]))
    want = recurrent_by_formulas(
        kind, direction, before, lengths or (STEPS,) * ROWS, *(a.tolist() for a in arrays)
    )
    for a, b in zip(got, want, strict=False):
        assert tt.allclose(a, tt.tensor(b), atol=1e-6)


def recurrent_node(path, kind, direction, before, lengths):
    """A model of one node with random constants; x and lengths are its inputs."""
    tt.manual_seed(1)
    ways, width = 1 + (direction == "bidirectional"), GATES[kind] * HIDDEN
    shapes = [(STEPS, ROWS, FEATURES), (ways, width, FEATURES), (ways, width, HIDDEN)]
    shapes += [(ways, 2 * width), (ways, ROWS, HIDDEN), (ways, ROWS, HIDDEN)]
    arrays = [tt.randn(*shape) for shape in shapes]
    names = [b"x", b"w", b"r", b"b", b"lens" if lengths else b"", b"h0", b"c0"]
    outputs = [b"y", b"yh", b"yc"]
    if kind != "LSTM":
        names, outputs = names[:-1], outputs[:-1]
    node = message(
        *((1, name) for name in names),
        *((2, name) for name in outputs),
        (4, kind.encode()),
        (5, message((1, b"direction"), (4, direction.encode()))),
        (5, message((1, b"hidden_size"), (3, HIDDEN))),
        (5, message((1, b"linear_before_reset"), (3, int(not before)))),
    )
    initial = []
    for name, a in zip((b"w", b"r", b"b", b"h0", b"c0"), arrays[1:]):
        raw = struct.pack(f"<{a.numel()}f", *a.flatten().tolist())
        initial.append((5, message((1, list(a.shape)), (2, F32), (8, name), (9, raw))))

    def given(name, dtype, *shape):
        sizes = message(*((1, message((1, n))) for n in shape))
        return 11, message((1, name), (2, message((1, message((1, dtype), (2, sizes))))))

    inputs = [given(b"x", F32, *shapes[0])]
    if lengths:
        inputs.append(given(b"lens", I32, ROWS))
    ends = [(12, message((1, name))) for name in outputs]
    graph = message((1, node), *initial, *inputs, *ends)
    path.write_bytes(message((7, graph), (8, message((2, 20)))))
    return tt.onnx.load(path), arrays, tt.tensor(lengths or (), dtype=tt.int32)


@pytest.mark.parametrize("lengths", [(4, 5, 1), (4, -1, 1)], ids=str)
def test_lengths_beyond_the_steps(lengths, tmp_path):
    program, arrays, lens = recurrent_node(tmp_path / "m.onnx", "GRU", "forward", True, lengths)
    with pytest.raises(IndexError, match="gather"):
        program.run(arrays[0], lens)


TYPES = {
    tt.float32: (F32, "f"),
    tt.int64: (I64, "q"),
    tt.int32: (I32, "i"),
    tt.uint8: (2, "B"),
    tt.int8: (3, "b"),
    tt.bool: (9, "?"),
}


def constant(t):
    """The fields of a TensorProto with the numbers of a tensor."""
    number, kind = TYPES[t.dtype]
    raw = struct.pack(f"<{t.numel()}{kind}", *t.flatten().tolist())
    return [(1, list(t.shape)), (2, number), (9, raw)]


def attribute(name, v):
    name = message((1, name.encode()))
    if isinstance(v, float):
        return name + varint(2 << 3 | 5) + struct.pack("<f", v)
    if isinstance(v, list) and isinstance(v[0], float):
        return name + message((7, struct.pack(f"<{len(v)}f", *v)))
    if isinstance(v, list):
        return name + message((8, v))
    return name + message((3, v) if isinstance(v, int) else (4, v.encode()))


def node(path, op, *tensors, opset=17, **attributes):
    """The result of a model of one node; a tensor that is None is left out."""
    constants = [constant(tt.zeros(0) if t is None else t) for t in tensors]
    pairs = [attribute(k, v) for k, v in attributes.items()]
    return load_node(path, op.encode(), constants, *pairs, opset=opset).run()


def image(*shape):
    tt.manual_seed(2)
    return tt.randn(*shape)


def sizes(*numbers):
    return tt.tensor(numbers)


def steps_of(t, zero):
    return tt.round(t / SCALES) + zero.float()


def quantized_by_range(t):
    low, high = t.min().clamp(max=0), t.max().clamp(min=0)
    scale = (high - low) / 255
    zero = tt.round((-low / scale).clamp(0, 255))
    return (tt.round(t / scale) + zero).clamp(0, 255).to(tt.uint8)


def of_sums(sums, factor, zero):
    """Exact sums of products as int8."""
    return (tt.round(sums.float() * factor) + zero).clamp(-128, 127).to(tt.int8)


SCALES = tt.tensor([0.1, 0.2, 0.3, 0.05, 1.0]).view(5)
ZEROS = tt.tensor([1, -2, 3, 0, 5], dtype=tt.int8)
X, V, W3 = image(2, 8, 6, 5), image(8), image(1, 2, 4, 4, 4)
BYTES = (tt.arange(240) * 37 % 256).to(tt.uint8).view(2, 4, 6, 5)
KERNEL = (tt.arange(108) * 29 % 256 - 128).to(tt.int8).view(3, 4, 3, 3)
ROWS_OF = tt.tensor([[0, 1], [-1, 2]])
MODE = "coordinate_transformation_mode"
NODES = {
    "quantize": (
        lambda p: node(p, "QuantizeLinear", X, SCALES, ZEROS, axis=3),
        lambda: steps_of(X, ZEROS).clamp(-128, 127).to(tt.int8),
    ),
    "quantize_bytes": (
        lambda p: node(p, "QuantizeLinear", X, tt.tensor(0.5)),
        lambda: tt.round(X / 0.5).clamp(0, 255).to(tt.uint8),
    ),
    "quantize_signed": (
        lambda p: node(p, "QuantizeLinear", X, tt.tensor(0.5), output_dtype=3),
        lambda: tt.round(X / 0.5).clamp(-128, 127).to(tt.int8),
    ),
    "dequantize": (
        lambda p: node(p, "DequantizeLinear", ZEROS.expand(2, 5), SCALES, ZEROS + 1),
        lambda: -SCALES.expand(2, 5),
    ),
    "quantize_by_range": (
        lambda p: node(p, "DynamicQuantizeLinear", X),
        lambda: quantized_by_range(X),
    ),
    "quantize_zeros_by_range": (
        lambda p: node(p, "DynamicQuantizeLinear", X * 0),
        lambda: tt.zeros(X.shape, dtype=tt.uint8),
    ),
    "convolve_integers": (
        lambda p: node(p, "ConvInteger", BYTES, KERNEL, tt.tensor(7, dtype=tt.uint8), pads=[1] * 4),
        lambda: F.conv2d(BYTES.double() - 7, KERNEL.double(), padding=1).to(tt.int32),
    ),
    "multiply_integers": (
        lambda p: node(
            p, "MatMulInteger", BYTES, ZEROS.view(5, 1) * 20, BYTES[0, 0, 0, 0], ZEROS[:1]
        ),
        lambda: (BYTES.double() @ (ZEROS.view(5, 1) * 20 - 1).double()).to(tt.int32),
    ),
    "convolve_quantized": (
        lambda p: node(
            p,
            "QLinearConv",
            *(BYTES, tt.tensor(0.1), tt.tensor(9, dtype=tt.uint8)),
            *(KERNEL, SCALES[:3], ZEROS[[3, 3, 3]]),
            *(tt.tensor(64.0), tt.tensor(-5, dtype=tt.int8), tt.tensor([1000, -70, 0]).int()),
            strides=[2, 1],
        ),
        lambda: of_sums(
            F.conv2d(
                BYTES.double() - 9, KERNEL.double(), tt.tensor([1000.0, -70, 0]).double(), (2, 1)
            ),
            (tt.tensor(0.1) * SCALES[:3] / 64).view(3, 1, 1),
            -5,
        ),
    ),
    "multiply_quantized": (
        lambda p: node(
            p,
            "QLinearMatMul",
            *(BYTES, tt.tensor(0.1), tt.tensor(9, dtype=tt.uint8)),
            *(ZEROS.view(5, 1).expand(5, 2), SCALES[:2], ZEROS[:2]),
            *(tt.tensor(0.75), tt.tensor(3, dtype=tt.int8)),
        ),
        lambda: of_sums(
            (BYTES.double() - 9) @ (ZEROS.view(5, 1).double() - ZEROS[:2].double()),
            tt.tensor(0.1) * SCALES[:2] / 0.75,
            3,
        ),
    ),
    "softmax_of_axes": (
        lambda p: node(p, "Softmax", X, axis=1, opset=11),
        lambda: tt.softmax(X.flatten(1), 1).view(X.shape),
    ),
    "rms_norm": (
        lambda p: node(p, "RMSNormalization", X, SCALES, epsilon=0.01),
        lambda: F.rms_norm(X, (5,), SCALES, 0.01),
    ),
    "rms_norm_of_axes": (
        lambda p: node(p, "RMSNormalization", X, SCALES, axis=2),
        lambda: F.rms_norm(X, (6, 5), SCALES.expand(6, 5), 1e-5),
    ),
    "mean": (lambda p: node(p, "Mean", X, X, X + 3), lambda: X + 1),
    "swish": (lambda p: node(p, "Swish", X, alpha=2.0), lambda: X * tt.sigmoid(2 * X)),
    "cast_like": (lambda p: node(p, "CastLike", X, V.to(tt.int64)), lambda: X.to(tt.int64)),
    "floats": (
        lambda p: node(p, "Constant", value_floats=[0.5, -2.0]),
        lambda: tt.tensor([0.5, -2.0]),
    ),
    "cubic": (
        lambda p: node(p, "Resize", X, None, None, sizes(2, 8, 7, 9), mode="cubic"),
        lambda: F.interpolate(X, size=(7, 9), mode="bicubic"),
    ),
    "linear": (
        lambda p: node(p, "Resize", X, None, tt.tensor([1.0, 1, 2, 0.4]), mode="linear"),
        lambda: F.interpolate(X, size=(12, 2), mode="bilinear"),
    ),
    "corners": (
        lambda p: node(
            p, "Resize", X, None, None, sizes(2, 8, 7, 9), mode="linear", **{MODE: "align_corners"}
        ),
        lambda: F.interpolate(X, size=(7, 9), mode="bilinear", align_corners=True),
    ),
    "nearest": (
        lambda p: node(
            p,
            "Resize",
            X,
            None,
            None,
            sizes(2, 8, 9, 3),
            mode="nearest",
            nearest_mode="floor",
            **{MODE: "asymmetric"},
        ),
        lambda: F.interpolate(X, size=(9, 3), mode="nearest"),
    ),
    "nearest_ties": (  # the places are 0.5, 2.5 and 4.5, and go down
        lambda p: node(p, "Resize", X, None, None, sizes(2, 8, 3, 5), mode="nearest"),
        lambda: X[:, :, tt.tensor([0, 2, 4])],
    ),
    "instance_norm": (
        lambda p: node(p, "InstanceNormalization", X, V, V + 1, epsilon=0.01),
        lambda: F.instance_norm(X, weight=V, bias=V + 1, eps=0.01),
    ),
    "group_norm": (
        lambda p: node(p, "GroupNormalization", X, V, V + 1, num_groups=2),
        lambda: F.group_norm(X, 2, V, V + 1),
    ),
    "lrn": (
        lambda p: node(p, "LRN", X, size=3, alpha=0.1, beta=0.5, bias=2.0),
        lambda: F.local_response_norm(X, 3, 0.1, 0.5, 2.0),
    ),
    "einsum": (
        lambda p: node(p, "Einsum", X, V, equation="nchw,c->nhw"),
        lambda: tt.einsum("nchw,c->nhw", X, V),
    ),
    "scatter_add": (
        lambda p: node(p, "ScatterElements", V, sizes(1, -1, 1), V[:3], axis=0, reduction="add"),
        lambda: V.scatter_add(0, sizes(1, 7, 1), V[:3]),
    ),
    "scatter": (
        lambda p: node(p, "ScatterElements", V, sizes(3, -8), V[:2]),
        lambda: V.scatter(0, sizes(3, 0), V[:2]),
    ),
    "gather_nd": (lambda p: node(p, "GatherND", X, ROWS_OF), lambda: tt.stack([X[0, 1], X[1, 2]])),
    "scatter_nd": (
        lambda p: node(p, "ScatterND", X[:, :, 0, 0], ROWS_OF, tt.tensor([9.0, 8.0])),
        lambda: X[:, :, 0, 0].index_put((sizes(0, 1), sizes(1, 2)), tt.tensor([9.0, 8.0])),
    ),
    "one_hot": (
        lambda p: node(p, "OneHot", sizes(2, -1, 0), sizes(4), tt.tensor([-1.0, 5.0]), axis=0),
        lambda: F.one_hot(sizes(2, 3, 0), 4).T * 6.0 - 1,
    ),
    "crd": (
        lambda p: node(p, "DepthToSpace", X, blocksize=2, mode="CRD"),
        lambda: F.pixel_shuffle(X, 2),
    ),
    "dcr": (
        lambda p: node(p, "DepthToSpace", X, blocksize=2),
        lambda: F.pixel_shuffle(X.reshape(2, 4, 2, 6, 5).transpose(1, 2).reshape(X.shape), 2),
    ),
    "space_to_depth": (
        lambda p: node(p, "SpaceToDepth", X[..., :4], blocksize=2),
        lambda: F.pixel_unshuffle(X[..., :4], 2)
        .reshape(2, 8, 4, 3, 2)
        .transpose(1, 2)
        .reshape(2, 32, 3, 2),
    ),
    "reflect": (
        lambda p: node(p, "Pad", X, sizes(0, 0, 1, 2, 0, 0, 3, 1), mode="reflect"),
        lambda: F.pad(X, (2, 1, 1, 3), mode="reflect"),
    ),
    "edge": (
        lambda p: node(p, "Pad", X, sizes(0, 0, 1, 2, 0, 0, 3, 1), mode="edge"),
        lambda: F.pad(X, (2, 1, 1, 3), mode="replicate"),
    ),
    "cumsum": (
        lambda p: node(p, "CumSum", V, sizes(0), reverse=1, exclusive=1),
        lambda: V.flip(0).cumsum(0).flip(0) - V,
    ),
    "max_pool3d": (
        lambda p: node(p, "MaxPool", W3, kernel_shape=[2, 2, 2], strides=[1, 2, 2]),
        lambda: F.max_pool3d(W3, 2, (1, 2, 2)),
    ),
    "same_pool": (
        lambda p: node(p, "MaxPool", X, kernel_shape=[2, 2], strides=[2, 2], auto_pad="SAME_UPPER"),
        lambda: F.max_pool2d(F.pad(X, (0, 1), value=-math.inf), 2),
    ),
    "same_conv": (
        lambda p: node(p, "Conv", X, W_CONV, auto_pad="SAME_LOWER"),
        lambda: F.conv2d(F.pad(X, (1, 0, 1, 0)), W_CONV),
    ),
    "selu": (lambda p: node(p, "Selu", V), lambda: F.selu(V)),
    "shrink": (
        lambda p: node(p, "Shrink", V, lambd=0.25, bias=0.25),
        lambda: F.softshrink(V, 0.25),
    ),
    "grid_sample": (
        lambda p: node(p, "GridSample", X, GRID, padding_mode="border", align_corners=1),
        lambda: F.grid_sample(X, GRID, padding_mode="border", align_corners=True),
    ),
}
W_CONV, GRID = image(3, 8, 2, 2), image(2, 3, 4, 2)


@pytest.mark.parametrize("name", NODES)
def test_nodes(name, tmp_path):
    run, want = NODES[name]
    got, want = run(tmp_path / "m.onnx"), want()
    assert got.shape == want.shape and tt.allclose(got, want, atol=1e-5)


def branch(op, depth=0):
    """A graph that gives op of the name c1, below `depth` conditions that hold."""
    node = message((1, b"c1"), (2, b"r%d" % depth), (4, op))
    for k in reversed(range(depth)):
        inner = (
            5,
            message(
                (1, b"then_branch"), (6, message((1, node), (12, message((1, b"r%d" % (k + 1))))))
            ),
        )
        node = message((1, b"c0"), (2, b"r%d" % k), (4, b"If"), inner)
    return message((1, node), (12, message((1, b"r0"))))


def test_branches(tmp_path):
    path, v = tmp_path / "m.onnx", tt.tensor([1.5, -2.0])
    for condition, depth, want in ((1, 0, [-1.5, 2]), (1, 7, [-1.5, 2]), (0, 0, [1.5, 2])):
        branches = [message((1, b"then_branch"), (6, branch(b"Neg", depth)))]
        branches.append(message((1, b"else_branch"), (6, branch(b"Abs"))))
        constants = [constant(sizes(condition)), constant(v)]
        assert load_node(path, b"If", constants, *branches).run().tolist() == want
    deep = message((1, b"then_branch"), (6, branch(b"Neg", 8)))
    for given in ([], [deep]):
        with pytest.raises(NotImplementedError, match="branches in too many"):
            load_node(path, b"If", [constant(sizes(1)), constant(v)], *given)


def test_normalization_of_other_sizes(tmp_path):
    """The statistics were read without a look whether they are there, or how many they are."""
    path, long = tmp_path / "m.onnx", image(2000)
    x, v = constant(image(1, 400, 2, 2)), constant(image(400))
    with pytest.raises(RuntimeError, match="lacks input 3"):
        load_node(path, b"BatchNormalization", [x, v, v])
    for k in range(1, 5):
        given = [x, v, v, v, v]
        given[k] = constant(long)
        with pytest.raises((RuntimeError, ValueError)):
            load_node(path, b"BatchNormalization", given)


def test_names_that_are_no_texts(tmp_path):
    """Fields of another kind than bytes have no address, which was given to memcmp."""
    tensor = (5, message((1, [1]), (2, F32), (4, struct.pack("<f", 1)), (8, 7)))
    graph = message(tensor, tensor)
    (tmp_path / "m.onnx").write_bytes(message((7, graph), (8, message((2, 17)))))
    with pytest.raises(RuntimeError, match="makes a name twice"):
        tt.onnx.load(tmp_path / "m.onnx")


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


def test_empty_range(tmp_path):
    """A range that ended before it began was one number, which nothing had set."""
    start, limit, step = ([(2, I64), (7, [n])] for n in (3, 0, 1))
    loaded = load_node(tmp_path / "m.onnx", b"Range", [start, limit, step])
    assert loaded.run().tolist() == []


def test_refuses(tmp_path):
    path = tmp_path / "m.onnx"
    for options, error in (
        ({"opset_version": 21}, ValueError),
        ({"output_names": ["input"]}, ValueError),
        ({"input_names": ["t1"]}, ValueError),
        ({"input_names": ["a", "b"]}, ValueError),
        ({"export_params": False}, NotImplementedError),
    ):
        with pytest.raises(error, match="onnx.export"):
            tt.onnx.export(mlp(), tt.randn(3, 4), path, **options)
    with pytest.raises(TypeError, match="f is missing"):
        tt.onnx.export(mlp(), tt.randn(3, 4), dynamo=False)
    with pytest.raises(NotImplementedError, match="has no translation"):
        tt.onnx.export(lambda x: x.lgamma(), tt.randn(3, 4), path)
    assert not path.exists() and not tt.onnx.is_in_onnx_export()


def test_integers_that_a_double_rounds(tmp_path):
    large = 2**53 + 1

    class Large(nn.Module):
        def forward(self, x):
            return x + large, tt.full((3,), large), x.masked_fill(x > 1, -large)

    x = tt.tensor([-1, 1, 2])
    tt.onnx.export(Large(), (x,), tmp_path / "net.onnx")
    found = tt.onnx.load(tmp_path / "net.onnx").run(x)
    assert [t.tolist() for t in found] == [t.tolist() for t in Large()(x)]


def test_floors_of_the_largest_integers(tmp_path):
    class Floors(nn.Module):
        def forward(self, x):
            return x // 7, x // -7, tt.floor_divide(x, tt.full_like(x, 3))

    for dtype, bits in ((tt.int32, 31), (tt.int64, 63)):
        x = tt.tensor([-(2**bits), 1 - 2**bits, -1, 0, 1, 2**bits - 1], dtype=dtype)
        tt.onnx.export(Floors(), (x,), tmp_path / "net.onnx")
        found = tt.onnx.load(tmp_path / "net.onnx").run(x)
        assert [t.tolist() for t in found] == [t.tolist() for t in Floors()(x)]
