"""tt.export: graphs of modules and functions: printed, run, saved."""
import io

import pytest

import tt
from tt import nn


def network():
    tt.manual_seed(2)
    m = nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 2)
    )
    return m.eval()


def test_a_module(tmp_path):
    m = network()
    program = tt.export.export(m, (tt.zeros(2, 1, 6, 6),))
    assert "relu" in str(program.graph) and "digraph" in program.graph.dot()
    assert program.graph.num_inputs == program.graph.num_outputs == 1
    for seed in range(3):
        tt.manual_seed(seed)
        x = tt.randn(2, 1, 6, 6)
        assert program.run(x).tolist() == m(x).tolist() == program.module()(x).tolist()
    with pytest.raises(ValueError, match="captured with"):
        program.run(tt.zeros(3, 1, 6, 6))
    with pytest.raises(ValueError, match="0 tensors|arguments"):
        program.run()
    tt.export.save(program, tmp_path / "net.ttg")
    again = tt.export.load(tmp_path / "net.ttg")
    assert again.run(x).tolist() == m(x).tolist()


def test_an_example_whose_elements_share_an_address():
    program = tt.export.export(network(), (tt.zeros(1, 1, 6, 6).expand(2, 1, 6, 6),))
    x = tt.randn(2, 1, 6, 6)
    assert program.run(x).tolist() == network()(x).tolist()


def test_what_programs_know_of_the_module(tmp_path):
    m, x, file = network(), tt.randn(2, 1, 6, 6), io.BytesIO()
    program = tt.export.export(m, (x,), prefer_deferred_runtime_asserts_over_guards=True)
    names = [name for name, _ in m.named_parameters()]
    buffers = [name for name, _ in m.named_buffers()]
    tt.export.save(program, tmp_path / "net.pt2", extra_files={"note": "hi"})
    tt.export.save(program, file)
    file.seek(0)
    extra = {"note": ""}
    loaded = [tt.export.load(tmp_path / "net.pt2", extra_files=extra), tt.export.load(file)]
    assert extra == {"note": "hi"} and program.example_inputs[0][0] is x
    for p in (program, *loaded):
        signature = p.graph_signature
        assert list(signature.parameters) == names and list(signature.buffers) == buffers
        assert signature.user_inputs == ("input",) and len(signature.user_outputs) == 1
        kinds = [spec.kind.name for spec in signature.input_specs]
        assert kinds == ["PARAMETER"] * len(names) + ["BUFFER"] * len(buffers) + ["USER_INPUT"]
        assert signature.input_specs[0].target == "0.weight"
        assert signature.output_specs[0].kind == tt.export.OutputKind.USER_OUTPUT
        assert p.state_dict.keys() == m.state_dict().keys() and p.range_constraints == {}
        assert [n for n, _ in p.named_parameters()] == names and len([*p.buffers()]) == len(buffers)
        module = p.module()
        assert isinstance(module, nn.Module) and module is p.graph_module and p.validate() is None
        assert module(x).tolist() == m(x).tolist() == p.run_decompositions({}).module()(x).tolist()
        assert module.get_parameter("0.weight").equal(m[0].weight)
        with pytest.raises(RuntimeError, match="module"):
            p(x)
    pair = tt.export.export(lambda a, *, b: {"sum": a + b, "parts": [a, None]}, (x,), {"b": x + 1})
    tt.export.save(pair, tmp_path / "pair.pt2")
    found = tt.export.load(tmp_path / "pair.pt2").module()(x, b=x)
    assert found["sum"].equal(x + x) and found["parts"][1] is None


def test_structures():
    def f(pair, *, scale):
        return {"sum": (pair[0] + pair[1]) * scale, "parts": (pair[0], 7)}

    a, b = tt.ones(3), tt.arange(3).float()
    program = tt.export.export(f, ([a, b],), {"scale": 2})
    found = program.run([b, b], scale=2)
    assert found["sum"].tolist() == [0, 4, 8] and found["parts"][1] == 7
    assert found["parts"][0].tolist() == b.tolist()
    with pytest.raises(ValueError, match="not those of the capture"):
        program.run([a, b], scale=3)


def test_inputs_that_share_memory():
    x, y = tt.randn(3, 4), tt.randn(3, 4)
    for first, second in ((x, x), (x[:2], x[1:])):
        program = tt.export.export(lambda a, b: a + 2 * b, (first, second))
        a, b = y[: len(first)], y[-len(first) :] + 1
        assert program.run(a, b).tolist() == (a + 2 * b).tolist()


def test_refusals(tmp_path):
    x = tt.ones(2)
    masked = tt.export.export(lambda x, m: x.clone().index_put_((m,), x.sum()), (x, x > 0))
    tt.export.save(masked, tmp_path / "masked.ttg")
    with pytest.raises(tt.TtError, match="index_put_ reads elements on the host"):
        tt.export.load(tmp_path / "masked.ttg").run(x, x > 0)
    with pytest.raises(tt.TtError, match="read"):
        tt.export.export(lambda x: x * x.sum().item(), (x,))
    assert tt.export.export(lambda x: x + 1, (x,)).run(x).tolist() == [2, 2]  # no capture is left
    with pytest.raises(TypeError, match="tuple"):
        tt.export.export(lambda x: x, x)


def test_a_dynamic_batch():
    m = network()
    batch = tt.export.Dim("batch", max=64)
    program = tt.export.export(m, (tt.zeros(2, 1, 6, 6),), dynamic_shapes=({0: batch},))
    for n in (1, 2, 5, 33, 5):
        x = tt.randn(n, 1, 6, 6)
        assert program.run(x).tolist() == m(x).tolist()
    assert len(program._sizes.plans) == 4
    with pytest.raises(ValueError, match="must be in"):
        program.run(tt.zeros(65, 1, 6, 6))
    with pytest.raises(ValueError, match="captured with"):
        program.run(tt.zeros(2, 1, 7, 6))

    def attend(q, k, scale):
        scores = tt.softmax(q @ k.transpose(-1, -2) * scale, -1)
        return scores.reshape(q.shape[0] * 3, -1), tt.cat([q, k], 0), tt.zeros(q.shape[0], 2) + 1

    by_name = {"q": {0: batch}, "k": {0: batch}, "scale": None}
    q, k = tt.randn(4, 3, 5), tt.randn(4, 3, 5)
    program = tt.export.export(attend, (q, k, 0.5), dynamic_shapes=by_name)
    for n in (4, 1, 7):
        q, k = tt.randn(n, 3, 5), tt.randn(n, 3, 5)
        for got, want in zip(program.run(q, k, 0.5), attend(q, k, 0.5)):
            assert got.shape == want.shape and got.tolist() == want.tolist()
    with pytest.raises(ValueError, match="one size"):
        program.run(q, tt.randn(2, 3, 5), 0.5)


class Decoder(tt.nn.Module):
    """Tokens of any number and length, with causal attention by an operator and by hand."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places = tt.nn.Embedding(11, 8), tt.nn.Embedding(16, 8)
        self.heads, self.out = tt.nn.Linear(8, 24), tt.nn.Linear(8, 11)

    def forward(self, ids, seen):
        rows, length = ids.shape
        x = self.tokens(ids) * tt.tensor([2.0]) + self.places(tt.arange(length))
        heads = self.heads(x).view(rows, length, 3, 2, 4).permute(2, 0, 3, 1, 4)
        q, k, v = heads.unbind(0)
        x = tt.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        later = tt.ones(length, length).triu(1).bool() | ~seen.view(rows, 1, 1, length)
        weights = (q @ k.transpose(-2, -1)).masked_fill(later, -1e9).softmax(-1)
        x = (x + weights @ v).transpose(1, 2).reshape(rows * length, 8)
        return self.out(x).view(rows, length, 11), weights, x.mean()


def decoder_inputs(rows, length):
    ids = (tt.arange(rows * length) * 7 % 11).view(rows, length)
    return ids, tt.arange(length).ge(0).repeat(rows, 1)


def test_several_dynamic_dimensions(tmp_path):
    tt.manual_seed(0)
    m = Decoder().eval()
    batch, length = tt.export.Dim("batch"), tt.export.Dim("length", max=16)
    shapes = {"ids": {0: batch, 1: length}, "seen": {0: batch, 1: length}}
    program = tt.export.export(m, decoder_inputs(2, 16), dynamic_shapes=shapes)
    assert program.range_constraints == {"batch": (None, None), "length": (None, 16)}
    tt.export.save(program, tmp_path / "decoder.pt2")
    loaded = tt.export.load(tmp_path / "decoder.pt2")
    assert loaded.range_constraints == program.range_constraints
    assert str(loaded.graph) == str(program.graph)
    for sizes in ((2, 16), (1, 1), (3, 7), (5, 2), (16, 16)):
        inputs = decoder_inputs(*sizes)
        for got, again, want in zip(program.run(*inputs), loaded.run(*inputs), m(*inputs)):
            assert got.shape == want.shape and got.tolist() == want.tolist()
            assert again.tolist() == want.tolist()
    with pytest.raises(ValueError, match="must be in"):
        program.run(*decoder_inputs(1, 17))
    auto, three = tt.export.Dim.AUTO, tt.export.dims("a", "b", "c")
    x, y = tt.randn(2, 3, 4), tt.randn(5, 4)

    def product(x, y):
        return (x.flatten(0, 1) @ y.T).reshape(*x.shape[:2], -1).sum((0, 1)) / x.shape[0]

    free = {"x": {0: auto, 1: auto}, "y": {0: auto, 1: None}}
    program = tt.export.export(product, (x, y), dynamic_shapes=free)
    for sizes in ((2, 3, 5), (7, 1, 9)):
        x, y = tt.randn(*sizes[:2], 4), tt.randn(sizes[2], 4)
        assert program.run(x, y).tolist() == product(x, y).tolist()
    x = x[:2]
    with pytest.raises(ValueError, match="three sizes"):
        narrow = tt.export.Dim("a", min=2, max=3)
        tt.export.export(product, (x, y), dynamic_shapes={"x": {0: narrow}, "y": None})
    for f in (lambda x: x.reshape(-1) * x.shape[0] ** 2, lambda x: tt.zeros(x.shape[0] ** 2)):
        with pytest.raises(NotImplementedError, match="size"):
            tt.export.export(f, (tt.ones(3, 4, 5),), dynamic_shapes=(dict(enumerate(three)),))


def test_lengths_of_layers():
    """Recurrent layers, whose rows of each step are a list; a mask; a square."""
    tt.manual_seed(0)
    batch, length = tt.export.Dim("batch"), tt.export.Dim("length")
    encoder = tt.nn.TransformerEncoder(tt.nn.TransformerEncoderLayer(4, 2, batch_first=True), 1)

    def masked(x):
        assert tt.compiler.is_exporting() == capturing
        return encoder(x, mask=tt.nn.Transformer.generate_square_subsequent_mask(x.shape[1]))

    encoder.eval()
    for f in (tt.nn.GRU(4, 3, batch_first=True, bidirectional=True).eval(), masked):
        capturing = True
        shapes = ({0: batch, 1: length},)
        program = tt.export.export(f, (tt.randn(2, 6, 4),), dynamic_shapes=shapes)
        capturing = False
        for sizes in ((5, 9), (1, 1), (2, 30)):
            x = tt.randn(*sizes, 4)
            got, want = program.run(x), f(x)
            if f is not masked:
                got, want = got[0], want[0]
            tt.testing.assert_close(got, want.detach(), rtol=1e-6, atol=1e-6)
    square = ({0: length, 1: length},)
    program = tt.export.export(lambda x: x @ x + 1, (tt.ones(3, 3),), dynamic_shapes=square)
    assert program.run(tt.ones(5, 5)).tolist() == [[6] * 5] * 5


def test_refusals_of_dynamic_shapes():
    x = tt.ones(4, 3)
    batch = tt.export.Dim("batch")
    export = tt.export.export
    with pytest.raises(ValueError, match="no arguments"):
        export(lambda x: x, (x,), dynamic_shapes={"y": {0: batch}})
    four = dict(enumerate(tt.export.dims("a", "b", "c", "d")))
    with pytest.raises(NotImplementedError, match="at most 3"):
        export(lambda x: x, (tt.ones(2, 2, 2, 2),), dynamic_shapes=(four,))
    with pytest.raises(ValueError, match="min is 3"):
        tt.export.Dim("a", min=3, max=2)
    with pytest.raises(NotImplementedError, match="number that is no size"):
        export(lambda x: x * 0.9 ** x.shape[0], (x,), dynamic_shapes=({0: batch},))
    for f in (lambda x: tt.arange(x.shape[0] ** 2), lambda x: tt.zeros(x.shape[0] ** 2) + x[0, 0]):
        with pytest.raises(NotImplementedError, match="size"):
            export(f, (x,), dynamic_shapes=({0: batch},))
