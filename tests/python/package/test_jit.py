"""torch.jit's names: functions and modules run in Python, and traced ones are saved as graphs."""
import copy
import io
import pickle

import pytest
import tt
from tt import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
        self.head = nn.Linear(4, 2)
        self.steps = 2

    def forward(self, x):
        for _ in range(self.steps):
            y = self.body(x)
        return self.head(y)


@tt.jit.script
def doubled(x: tt.Tensor) -> tt.Tensor:
    """Doubles."""
    return x * 2


def test_script_keeps_functions_as_they_are():
    x = tt.ones(2, requires_grad=True)
    doubled(x).sum().backward()
    assert x.grad.tolist() == [2, 2] and doubled.__doc__ == "Doubles."
    assert isinstance(doubled, tt.jit.ScriptFunction) and tt.jit.script(doubled) is doubled
    assert tt.jit.script(Net) is Net
    with pytest.raises(TypeError, match="function or a module"):
        tt.jit.script(3)


@pytest.mark.parametrize("make", [Net, lambda: nn.Linear(3, 2)])
def test_scripted_modules_share_parameters_with_the_module(make):
    net = make()
    m = tt.jit.script(net)
    assert isinstance(m, tt.jit.ScriptModule) and not isinstance(net, tt.jit.ScriptModule)
    assert list(m.state_dict()) == list(net.state_dict())
    assert all(a is b for a, b in zip(m.parameters(), net.parameters()))
    x = tt.randn(5, 3)
    m(x).sum().backward()
    assert next(net.parameters()).grad is not None
    for twin in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert isinstance(twin, tt.jit.ScriptModule) and tt.equal(twin(x), net(x))
        assert next(twin.parameters()) is not next(m.parameters())
    assert repr(m) == repr(net) and tt.jit.script(m) is m
    with pytest.raises(RuntimeError, match="jit.trace"):
        m.save(io.BytesIO())
    with pytest.raises(RuntimeError, match="eval"):
        tt.jit.freeze(m)
    assert tt.jit.freeze(m.eval()) is m and tt.jit.optimize_for_inference(m) is m


@pytest.mark.parametrize("rows", [1, 4])
def test_traced_modules_are_loaded_without_their_code(tmp_path, rows):
    net = Net().eval()
    traced = tt.jit.trace(net, tt.randn(rows, 3))
    traced.save(tmp_path / "net.pt", _extra_files={"labels": "a b"})
    extra = {"labels": ""}
    loaded = tt.jit.load(tmp_path / "net.pt", map_location="cpu", _extra_files=extra)
    assert extra["labels"] == b"a b" and isinstance(loaded, tt.jit.ScriptModule)
    assert not loaded.training and loaded.eval() is loaded
    assert repr(loaded).startswith("RecursiveScriptModule(\n  original_name=Net")
    assert [tuple(p.shape) for p in loaded.parameters()] == [
        tuple(p.shape) for p in net.parameters()
    ]
    assert list(loaded.state_dict()) == list(net.state_dict())
    again = io.BytesIO()
    tt.jit.save(loaded, again)
    again.seek(0)
    for n in (rows, 1, 6):
        x = tt.randn(n, 3)
        for m in (traced, loaded, tt.jit.load(again)):
            assert tt.allclose(m(x), net(x))
            again.seek(0)
    with tt.no_grad():
        loaded.head.bias.add_(1)
    assert tt.allclose(loaded(x), net(x) + 1)
    with pytest.raises(ValueError, match="arguments"):
        loaded(tt.randn(2, 3), 1)
    assert "linear" in traced.code


def test_traced_functions_have_structures_and_fixed_sizes():
    def f(x, options, scale=1):
        return {"sum": (x + options["y"]) * scale, "rest": [x[:2], None]}

    example = tt.ones(3), {"y": tt.ones(3)}
    file = io.BytesIO()
    tt.jit.save(tt.jit.trace(f, example, check_trace=False), file)
    file.seek(0)
    loaded = tt.jit.load(file)
    out = loaded(tt.arange(3.0), {"y": tt.ones(3)})
    assert out["sum"].tolist() == [1, 2, 3] and out["rest"][0].tolist() == [0, 1]
    fixed = tt.jit.trace(lambda x: x.reshape(2, 3), tt.ones(6))
    file = io.BytesIO()
    fixed.save(file)
    file.seek(0)
    loaded = tt.jit.load(file)
    assert loaded(tt.arange(6.0)).tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(ValueError):
        loaded(tt.ones(4))


def test_bad_arguments_are_refused():
    with pytest.raises(RuntimeError, match="example_inputs"):
        tt.jit.trace(Net())
    with pytest.raises(RuntimeError, match="no file of tt.jit.save"):
        tt.jit.load(io.BytesIO(b"PK"))
    with pytest.raises(TypeError, match="jit.trace"):
        tt.jit.save(Net(), io.BytesIO())
    traced = tt.jit.trace(lambda x: {1, 2} and x, (tt.ones(1),))
    with pytest.raises(TypeError, match="set"):
        tt.jit.save(tt.jit.trace(lambda x: {1}, (tt.ones(1),)), io.BytesIO())
    assert traced(tt.ones(1)).item() == 1
    named = tt.jit.trace(
        lambda x, y: x - y, example_kwarg_inputs={"y": tt.ones(1), "x": tt.ones(1)}
    )
    assert named(x=tt.ones(1), y=tt.zeros(1)).item() == 1
    assert issubclass(tt.jit.TracerWarning, Warning)
