"""tt.export: graphs of modules and functions: printed, run, saved."""
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


def test_refusals():
    x = tt.ones(2)
    with pytest.raises(tt.TtError, match="read"):
        tt.export.export(lambda x: x * x.sum().item(), (x,))
    assert tt.export.export(lambda x: x + 1, (x,)).run(x).tolist() == [2, 2]  # no capture is left
    with pytest.raises(NotImplementedError, match="dynamic_shapes"):
        tt.export.export(lambda x: x, (x,), dynamic_shapes={})
    with pytest.raises(TypeError, match="tuple"):
        tt.export.export(lambda x: x, x)
