"""Full backward hooks of modules, as PyTorch's."""
import pytest

import tt
from tt import nn


class Pair(nn.Module):
    def forward(self, a, b, scale=1):
        return a * b * scale, a + b


def leaf(*values):
    return tt.tensor([float(v) for v in values], requires_grad=True)


def test_what_hooks_see():
    m, a, b, seen = Pair(), leaf(2, 3), leaf(5, 7), []
    m.register_full_backward_hook(
        lambda m, grad_input, grad_output: seen.append((m, grad_input, grad_output))
    )
    product, total = m(a, b, 2)
    (product + 100 * total).sum().backward()
    ((module, grad_input, grad_output),) = seen
    assert module is m and [g if g is None else g.tolist() for g in grad_input] == [
        [110, 114],
        [104, 106],
        None,
    ]
    assert [g.tolist() for g in grad_output] == [[1, 1], [100, 100]]
    assert a.grad.tolist() == [110, 114] and b.grad.tolist() == [104, 106]
    seen.clear()
    m(a, tt.tensor([5.0, 7]))[0].sum().backward()
    assert seen[0][1][1].tolist() == [0, 0] and seen[0][2][1] is None


@pytest.mark.parametrize("recorded", [True, False])
def test_hooks_run_from_the_newest_call_to_the_oldest(recorded):
    to_input, to_state, order = nn.Linear(2, 2), nn.Linear(2, 2), []
    to_input.register_full_backward_hook(lambda m, gi, go: order.append("input"))
    to_state.register_full_backward_hook(lambda m, gi, go: order.append("state"))
    state, states = tt.zeros(1, 2), []
    for step in range(4):
        step_input = tt.full((1, 2), float(step), requires_grad=recorded)
        state = (to_input(step_input) + to_state(state)).tanh()
        states.append(state)
    tt.stack(states).sum().backward()
    assert order == ["state", "input"] * 4


def test_replacements_in_order():
    m, x, order = nn.ReLU(), leaf(-1, 3), []
    m.register_full_backward_pre_hook(lambda m, g: [g[0] * 10])
    m.register_full_backward_hook(lambda m, gi, go: order.append("second") or (gi[0] + go[0],))
    first = m.register_full_backward_hook(
        lambda m, gi, go: order.append("first") or gi[0] * 2, prepend=True
    )
    m(x).sum().backward()
    assert x.grad.tolist() == [10, 30] and order == ["first", "second"]
    first.remove()
    x.grad = None
    m(x).sum().backward()
    assert x.grad.tolist() == [10, 20]


def test_no_input_needs_a_gradient():
    m, seen = nn.Linear(2, 1), []
    handle = m.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go[0].tolist())))
    m(tt.ones(1, 2)).sum().backward()
    assert seen == [((None,), [[1.0]])] and m.weight.grad.tolist() == [[1, 1]]
    handle.remove()
    m.register_full_backward_hook(lambda m, gi, go: (go[0],))
    with pytest.raises(RuntimeError, match="none of whose inputs"):
        m(tt.ones(1, 2)).sum().backward()
    with tt.no_grad():
        m(tt.ones(1, 2))


def test_failures():
    m, x = nn.ReLU(), leaf(1)
    handle = m.register_full_backward_hook(lambda m, gi, go: (gi[0], gi[0]))
    with pytest.raises(RuntimeError, match="returned 2 gradients: expected 1"):
        m(x).sum().backward()
    handle.remove()

    def broken(*_):
        raise KeyError("mine")

    handle = m.register_full_backward_pre_hook(broken)
    with pytest.raises(KeyError, match="mine"):
        m(x).sum().backward()
    handle.remove()
    m(x).sum().backward()
    assert x.grad.tolist() == [1]


def test_gradients_of_gradients():
    m, x, calls = Pair(), leaf(3), []
    m.register_full_backward_hook(lambda m, gi, go: calls.append(1) or (gi[0] * 2, gi[1]))
    (g,) = tt.autograd.grad(m(x, x)[0].sum(), [x], create_graph=True)
    assert g.tolist() == [9]  # 2 x + x
    assert (
        tt.autograd.grad(g.sum(), [x])[0].tolist() == [3] and len(calls) == 1
    )  # the second backward comes by the inputs alone


class Failing(nn.Module):
    def forward(self, x):
        raise KeyError("forward")


def test_hooks_after_a_failure():
    m, seen = Failing(), []
    m.register_forward_hook(lambda m, args, out: seen.append("skipped"))
    m.register_forward_hook(lambda m, args, out: seen.append(out), always_call=True)
    m.register_forward_hook(
        lambda m, args, kwargs, out: seen.append(kwargs), with_kwargs=True, always_call=True
    )
    with pytest.raises(KeyError, match="forward"):
        m(x=1)
    assert seen == [None, {"x": 1}]
    m.register_forward_hook(lambda *_: 1 / 0, always_call=True)
    with pytest.warns(UserWarning, match="ZeroDivisionError"), pytest.raises(KeyError):
        m(1)
    m.register_forward_pre_hook(lambda *_: (1, 2, 3), with_kwargs=True)
    with pytest.warns(UserWarning), pytest.raises(RuntimeError, match="new_args, new_kwargs"):
        m(1)


def test_hooks_of_all_modules():
    from tt.nn.modules import module as everywhere

    seen, m = [], nn.Sequential(nn.Linear(1, 1))
    with everywhere.register_module_forward_pre_hook(lambda m, a: seen.append(type(m).__name__)):
        with everywhere.register_module_forward_hook(lambda m, a, out: seen.append(len(a))):
            m.register_forward_hook(lambda *_: seen.append("own"))
            m(tt.ones(1))
    assert seen == ["Sequential", "Linear", 1, 1, "own"]
    seen.clear()
    handle = everywhere.register_module_full_backward_hook(
        lambda m, inputs, outputs: seen.append(type(m).__name__)
    )
    m(leaf(1)).sum().backward()
    handle.remove()
    handle.remove()
    m(leaf(1)).sum().backward()
    assert seen == ["own", "Linear", "Sequential", "own"]


def test_replaced_registration_sees_all_tensors(monkeypatch):
    """Libraries make modules without memory so."""
    register_parameter, register_buffer = (nn.Module.register_parameter, nn.Module.register_buffer)

    def empty_parameter(module, name, param):
        register_parameter(module, name, param)
        if param is not None:
            module._parameters[name] = nn.Parameter(param.to("meta"), param.requires_grad)

    def empty_buffer(module, name, buffer, persistent=True):
        register_buffer(module, name, buffer, persistent)
        module._buffers[name] = module._buffers[name].to("meta")

    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(tt.ones(3))
            self.layers = nn.ModuleList([nn.Linear(3, 4), nn.BatchNorm1d(4)])
            self.attention = nn.MultiheadAttention(4, 2)

    with monkeypatch.context() as m:
        m.setattr(nn.Module, "register_parameter", empty_parameter)
        m.setattr(nn.Module, "register_buffer", empty_buffer)
        own = Own()
    assert {t.device.type for t in (*own.parameters(), *own.buffers())} == {"meta"}
    assert own.layers[0](tt.ones(2, 3, device="meta")).shape == (2, 4)
    filled = Own()
    own.load_state_dict(filled.state_dict(), assign=True)
    x = tt.randn(2, 3)
    assert tt.equal(own.layers[0](x), filled.layers[0](x))


def test_dicts_of_hooks_have_the_hooks_themselves():
    m = nn.Linear(2, 2)

    def hook(*args, **kwargs):
        pass

    plain = m.register_forward_pre_hook(hook)
    with_kwargs = m.register_forward_pre_hook(hook, with_kwargs=True, prepend=True)
    after = m.register_forward_hook(hook, with_kwargs=True, always_call=True)
    assert list(m._forward_pre_hooks) == [with_kwargs.id, plain.id]
    assert list(m._forward_pre_hooks.values()) == [hook, hook]
    assert list(m._forward_pre_hooks_with_kwargs) == [with_kwargs.id]
    assert m._forward_hooks == {after.id: hook}
    assert list(m._forward_hooks_always_called) == [after.id]
    after.remove()
    assert not m._forward_hooks and not m._forward_hooks_with_kwargs
    assert not m._forward_hooks_always_called

    hooks = {}
    with tt.utils.hooks.RemovableHandle(hooks) as handle:
        hooks[handle.id] = hook
    assert not hooks


def test_prunings_are_found_among_the_hooks():
    m = nn.Linear(4, 2)
    tt.nn.utils.prune.l1_unstructured(m, "weight", 2)
    tt.nn.utils.prune.random_unstructured(m, "weight", 1)
    (found,) = [h for h in m._forward_pre_hooks.values() if h._tensor_name == "weight"]
    assert [type(method).__name__ for method in found] == ["L1Unstructured", "RandomUnstructured"]


def test_optimizer_steps_in_the_backward_pass():
    m, x = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1)), tt.randn(4, 3)
    optimizers = {p: tt.optim.SGD([p], lr=0.1) for p in m.parameters()}

    def step(p):
        optimizers[p].step()
        optimizers[p].zero_grad()

    for p in m.parameters():
        p.register_post_accumulate_grad_hook(step)
    before = [p.detach().clone() for p in m.parameters()]
    m(x).sum().backward()
    assert all(p.grad is None for p in m.parameters())
    assert not any(tt.equal(p, b) for p, b in zip(m.parameters(), before))
    with pytest.raises(TypeError, match="callable"):
        x.requires_grad_().register_post_accumulate_grad_hook(3)


def test_hooks_of_what_modules_register():
    from tt.nn.modules import module

    seen = []

    def note(m, name, value):
        seen.append((type(m).__name__, name, type(value).__name__))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 2)
            self.scale = nn.Parameter(tt.ones(1))
            self.register_parameter("none", None)
            self.register_buffer("mean", tt.zeros(1))
            self.mean = tt.ones(1)
            self.seq = nn.Sequential(nn.ReLU())

    handles = [
        module.register_module_parameter_registration_hook(note),
        module.register_module_buffer_registration_hook(note),
        module.register_module_module_registration_hook(note),
    ]
    Net()
    assert seen == [
        ("Linear", "weight", "Parameter"),
        ("Linear", "bias", "Parameter"),
        ("Net", "fc", "Linear"),
        ("Net", "scale", "Parameter"),
        ("Net", "mean", "Tensor"),
        ("Net", "mean", "Tensor"),
        ("Sequential", "0", "ReLU"),
        ("Net", "seq", "Sequential"),
    ]
    for handle in handles:
        handle.remove()
    Net()
    assert len(seen) == 8

    def fill(m, name, parameter):
        return nn.Parameter(tt.full_like(parameter, 7.0))

    with module.register_module_parameter_registration_hook(fill):
        layer = nn.Linear(2, 1)
    assert layer.weight.tolist() == [[7, 7]] and layer(tt.ones(1, 2)).tolist() == [[21]]
    with module.register_module_module_registration_hook(lambda m, name, child: nn.Identity()):
        assert type(nn.Sequential(nn.ReLU())[0]) is nn.Identity


def test_layers_show_whether_they_have_a_bias_now():
    for layer in (
        nn.Conv2d(1, 2, 3),
        nn.ConvTranspose1d(1, 2, 3),
        nn.Linear(2, 3),
        nn.LayerNorm(3),
    ):
        assert "bias=False" not in repr(layer)
        layer.bias = None
        assert "bias=False" in repr(layer)
    layer = nn.Conv1d(1, 2, 3, bias=False)
    layer.bias = nn.Parameter(tt.zeros(2))
    assert repr(layer) == "Conv1d(1, 2, kernel_size=(3,), stride=(1,))"
