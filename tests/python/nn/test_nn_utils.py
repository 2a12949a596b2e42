"""tt.nn.utils: parametrizations, pruning, fusion, functional_call. Hooks of state dicts."""
import copy
import pickle

import pytest

import tt
from tt import nn
from tt.nn.utils import parametrizations, parametrize, prune
from tt.nn.utils.stateless import functional_call


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).t()

    def right_inverse(self, x):
        return x.triu()


class Twice(nn.Module):
    def forward(self, x):
        return 2 * x


def close(a, b):
    return tt.allclose(a, b, rtol=1e-5, atol=1e-6)


# ---- parametrize ----


def test_a_parametrized_weight_is_computed_from_its_original():
    m, x = nn.Linear(4, 4), tt.randn(2, 4)
    original = m.weight
    assert parametrize.register_parametrization(m, "weight", Symmetric()) is m
    assert list(m.state_dict()) == ["bias", "parametrizations.weight.original"]
    assert isinstance(m, nn.Linear) and type(m).__name__ == "ParametrizedLinear"
    assert parametrize.type_before_parametrizations(m) is nn.Linear
    assert tt.equal(m.weight, m.weight.t())
    assert close(m(x), x @ m.weight.t() + m.bias)
    m(x).sum().backward()
    assert m.parametrizations.weight.original is original and original.grad is not None
    with pytest.raises(RuntimeError, match="state_dict"):
        pickle.dumps(m)


def test_assignments_go_through_right_inverse():
    m = parametrize.register_parametrization(nn.Linear(4, 4), "weight", Symmetric())
    m.weight = nn.Parameter(tt.eye(4))
    assert tt.equal(m.weight, tt.eye(4))
    assert tt.equal(m(tt.eye(4)), tt.eye(4) + m.bias)
    twice = parametrize.register_parametrization(nn.Linear(4, 4), "weight", Twice())
    with pytest.raises(RuntimeError, match="right_inverse"):
        twice.weight = tt.eye(4)


def test_parametrizations_are_copied_and_removed():
    m = parametrize.register_parametrization(nn.Linear(4, 4), "weight", Symmetric())
    parametrize.register_parametrization(m, "bias", Twice())
    parametrize.register_parametrization(m, "weight", Twice())
    other, x = copy.deepcopy(m), tt.randn(3, 4)
    assert tt.equal(other(x), m(x))
    weight, original = m.weight.detach(), m.parametrizations.weight.original
    parametrize.remove_parametrizations(m, "weight")
    assert m.weight is original and tt.equal(m.weight, weight) and tt.equal(other(x), m(x))
    parametrize.remove_parametrizations(m, "bias", leave_parametrized=False)
    assert type(m) is nn.Linear and list(m.state_dict()) == ["weight", "bias"]
    assert parametrize.is_parametrized(other, "weight") and not parametrize.is_parametrized(m)
    assert close(m(x), x @ m.weight.t() + m.bias)


def test_parametrizations_are_checked():
    class Flat(nn.Module):
        def forward(self, x):
            return x.reshape(-1)

    m = nn.Linear(2, 3)
    with pytest.raises(ValueError, match="unsafe"):
        parametrize.register_parametrization(m, "weight", Flat())
    assert type(m) is nn.Linear and m.weight.shape == (3, 2)
    with pytest.raises(ValueError, match="does not have a parameter"):
        parametrize.register_parametrization(m, "wait", Twice())
    with pytest.raises(ValueError, match="does not have a parametrization"):
        parametrize.remove_parametrizations(m, "weight")


def test_cached_computes_once():
    calls = []

    class Counted(Twice):
        def forward(self, x):
            calls.append(1)
            return super().forward(x)

    m = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Counted(), unsafe=True)
    with parametrize.cached():
        assert m.weight is m.weight and len(calls) == 1
        m(tt.ones(1, 2))
    assert len(calls) == 1
    m(tt.ones(1, 2))
    assert len(calls) == 2


def test_modules_in_python_are_parametrized():
    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(tt.ones(3))

        def forward(self, x):
            return x * self.scale

    m = parametrize.register_parametrization(Scale(), "scale", Twice())
    assert m(tt.ones(3)).tolist() == [2, 2, 2]
    m2 = parametrize.transfer_parametrizations_and_params(m, Scale())
    assert m2(tt.ones(3)).tolist() == [2, 2, 2]


def test_weight_norm():
    m, x = nn.Conv2d(3, 4, 3), tt.randn(1, 3, 5, 5)
    before = m(x)
    parametrizations.weight_norm(m)
    names = [f"parametrizations.weight.original{i}" for i in range(2)]
    assert list(m.state_dict()) == ["bias", *names] and close(m(x), before)
    assert m.parametrizations.weight.original0.shape == (4, 1, 1, 1)
    m.parametrizations.weight.original0.data *= 2
    assert close(m(x) - m.bias.reshape(4, 1, 1), 2 * (before - m.bias.reshape(4, 1, 1)))
    former = nn.utils.weight_norm(nn.Conv2d(3, 4, 3))
    assert list(former.state_dict()) == ["bias", "weight_g", "weight_v"]
    m.load_state_dict(former.state_dict())
    assert close(m(x), former(x))
    whole = parametrizations.weight_norm(nn.Linear(2, 3), dim=None)
    assert whole.parametrizations.weight.original0.shape == ()


def test_former_weight_norm_is_removed():
    m, x = nn.utils.weight_norm(nn.Linear(3, 4)), tt.randn(2, 3)
    m(x).sum().backward()
    assert m.weight_g.grad is not None and m.weight_v.grad is not None
    before = m(x)
    with pytest.raises(RuntimeError, match="two weight_norm"):
        nn.utils.weight_norm(m)
    nn.utils.remove_weight_norm(m)
    assert list(m.state_dict()) == ["bias", "weight"] and close(m(x), before)
    with pytest.raises(ValueError, match="not found"):
        nn.utils.remove_weight_norm(m)


@pytest.mark.parametrize("former", [False, True])
def test_spectral_norm(former):
    apply = nn.utils.spectral_norm if former else parametrizations.spectral_norm
    m = apply(nn.Linear(5, 3), n_power_iterations=20)
    m(tt.randn(1, 5)).sum().backward()
    for _ in range(5):
        m(tt.randn(1, 5))
    m.eval()
    m(tt.randn(1, 5))
    gram = (m.weight @ m.weight.t()).detach()
    for _ in range(12):  # the largest eigenvalue is 1
        gram = gram @ gram
        assert gram.norm().item() < 1.8
    assert abs(gram.norm().item() - 1) < 0.1
    weight = m.weight.detach()
    if former:
        nn.utils.remove_spectral_norm(m)
    else:
        parametrize.remove_parametrizations(m, "weight")
    assert close(m.weight, weight) and set(m.state_dict()) == {"weight", "bias"}


def test_spectral_norm_of_complex_numbers():
    m = nn.Linear(2, 2, bias=False, dtype=tt.complex64)
    with tt.no_grad():
        m.weight.copy_(tt.tensor([[1, 2j], [-3, 4]]))
    parametrizations.spectral_norm(m, n_power_iterations=50)
    m(tt.ones(1, 2, dtype=tt.complex64))
    assert abs(tt.linalg.svdvals(m.weight)[0].item() - 1) < 1e-5


@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (3, 6)])
@pytest.mark.parametrize("kind", [None, "matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("trivial", [True, False])
def test_orthogonal(shape, kind, trivial):
    def check(w):
        gram = w.t() @ w if shape[0] >= shape[1] else w @ w.t()
        assert tt.allclose(gram, tt.eye(min(shape), dtype=tt.float64), atol=1e-10)

    m = nn.Linear(shape[1], shape[0]).double()
    parametrizations.orthogonal(m, orthogonal_map=kind, use_trivialization=trivial)
    check(m.weight)
    (m(tt.randn(2, shape[1], dtype=tt.float64)) ** 3).sum().backward()
    original = m.parametrizations.weight.original
    with tt.no_grad():
        original.sub_(0.1 * original.grad)
    check(m.weight)
    q = tt.linalg.qr(tt.randn(max(shape), min(shape), dtype=tt.float64)).Q
    q = q if shape[0] >= shape[1] else q.t()
    reflections = kind == "householder" or kind is None and shape[0] != shape[1]
    if trivial or reflections:
        m.weight = q
        assert tt.allclose(m.weight, q, atol=1e-9)
    else:
        with pytest.raises(NotImplementedError):
            m.weight = q


def test_orthogonal_checks_its_arguments():
    with pytest.raises(ValueError, match="orthogonal_map"):
        parametrizations.orthogonal(nn.Linear(2, 2), orthogonal_map="qr")
    with pytest.raises(ValueError, match="matrix"):
        parametrizations.orthogonal(nn.Linear(2, 2), "bias")


# ---- prune ----


def test_pruning_masks_and_becomes_permanent():
    m = nn.Linear(6, 4)
    prune.l1_unstructured(m, "weight", amount=5)
    assert list(m.state_dict()) == ["bias", "weight_orig", "weight_mask"]
    kept = m.weight_orig.abs()[m.weight_mask == 1]
    assert (m.weight == 0).sum() == 5
    assert kept.min() >= m.weight_orig.abs()[m.weight_mask == 0].max()
    prune.ln_structured(m, "weight", 0.5, n=2, dim=0)
    assert (m.weight_mask.sum(1) == 0).sum() == 2
    m(tt.eye(6)).sum().backward()
    assert (m.weight_orig.grad[m.weight_mask == 0] == 0).all()
    copied = pickle.loads(pickle.dumps(m))
    assert tt.equal(copied(tt.eye(6)), m(tt.eye(6)))
    weight = m.weight.detach()
    assert prune.is_pruned(m)
    prune.remove(m, "weight")
    assert not prune.is_pruned(m) and isinstance(m.weight, nn.Parameter)
    assert tt.equal(m.weight, weight) and set(m.state_dict()) == {"weight", "bias"}
    assert close(m(tt.eye(6)), weight.t() + m.bias)


def test_other_ways_of_pruning():
    m = nn.Conv2d(2, 4, 3)
    prune.random_structured(m, "weight", amount=2, dim=1)
    assert (m.weight == 0).all()
    prune.random_unstructured(m, "bias", amount=0.25)
    assert (m.bias == 0).sum() == 1
    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    pairs = [(net[0], "weight"), (net[1], "weight")]
    prune.global_unstructured(pairs, prune.L1Unstructured, amount=6)
    prune.global_unstructured(pairs, prune.L1Unstructured, amount=0.5)
    left = sum(int((layer.weight != 0).sum()) for layer in net)
    assert left == 6
    custom = nn.Linear(2, 2)
    prune.custom_from_mask(custom, "weight", tt.tensor([[1, 0], [0, 1]]))
    prune.identity(custom, "bias")
    assert custom.weight[0, 1] == 0 and tt.equal(custom.bias, custom.bias_orig)
    for amount, error in ((True, TypeError), (-1, ValueError), (1.5, ValueError)):
        with pytest.raises(error):
            prune.l1_unstructured(nn.Linear(2, 2), "weight", amount)
    whole = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="smaller"):
        prune.l1_unstructured(whole, "weight", 5)
    assert list(whole.state_dict()) == ["weight", "bias"]


# ---- fusion, skip_init ----


def test_batch_normalisations_are_folded():
    x = tt.randn(2, 3, 5, 5)
    bn = nn.BatchNorm2d(4).eval()
    bn.running_mean.normal_()
    bn.running_var.uniform_(1, 2)
    bn.weight.data.normal_()
    for conv, transpose in (
        (nn.Conv2d(3, 4, 3, bias=False), False),
        (nn.ConvTranspose2d(3, 4, 3), True),
    ):
        conv.eval()
        fused = nn.utils.fuse_conv_bn_eval(conv, bn, transpose)
        assert tt.allclose(fused(x), bn(conv(x)), atol=1e-4)
    linear, norm = nn.Linear(3, 4).eval(), nn.BatchNorm1d(4).eval()
    norm.running_mean.normal_()
    fused = nn.utils.fuse_linear_bn_eval(linear, norm)
    assert tt.allclose(fused(tt.ones(2, 3)), norm(linear(tt.ones(2, 3))), atol=1e-5)
    with pytest.raises(AssertionError, match="eval"):
        nn.utils.fuse_conv_bn_eval(nn.Conv2d(3, 4, 3), bn)


def test_skip_init_draws_nothing():
    state = tt.get_rng_state()
    assert nn.utils.skip_init(nn.Linear, 3, 4).weight.shape == (4, 3)
    assert tt.equal(tt.get_rng_state(), state)
    with pytest.raises(RuntimeError, match="device"):
        nn.utils.skip_init(nn.ReLU)


# ---- functional_call ----


def test_functional_call_takes_any_tensors():
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    own, x = net[0].weight, tt.randn(3, 2)
    w = tt.ones(2, 2, requires_grad=True)
    mean = tt.zeros(2)
    out = functional_call(net, {"0.weight": w * 2, "1.running_mean": mean}, (x,))
    (out[:, 0] * out[:, 0] * out[:, 1]).sum().backward()
    assert w.grad is not None and own.grad is None and net[0].weight is own
    assert (mean != 0).all() and (net[1].running_mean == 0).all()
    assert close(net[0](x), x @ own.t() + net[0].bias)
    with pytest.raises(RuntimeError, match="missing"):
        functional_call(net, {"0.weight": w}, x, strict=True)


def test_functional_call_ties_weights():
    net = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    net[1].weight = net[0].weight
    double = 2 * tt.eye(2)
    assert functional_call(net, {"0.weight": double}, tt.ones(2)).tolist() == [4, 4]
    with pytest.raises(ValueError, match="one tensor"):
        functional_call(net, {"0.weight": double, "1.weight": tt.eye(2)}, tt.ones(2))


# ---- a layer's tensors and its C module ----


def test_register_parameter_reaches_the_layer():
    m, x = nn.Linear(2, 3), tt.randn(4, 2)
    m.register_parameter("bias", None)
    assert close(m(x), x @ m.weight.t())
    m.register_parameter("bias", nn.Parameter(tt.ones(3)))
    assert close(m(x), x @ m.weight.t() + 1)


# ---- hooks of state dicts ----


def test_hooks_of_state_dicts():
    seen = []
    inner = nn.Linear(2, 2)
    net = nn.Sequential(inner)
    handle = inner.register_state_dict_pre_hook(lambda m, prefix, keep: seen.append(prefix))
    inner.register_state_dict_post_hook(lambda m, state, prefix, _: state.update({prefix + "x": 1}))
    state = net.state_dict()
    assert list(state) == ["0.weight", "0.bias", "0.x"] and seen == ["0."]
    handle.remove()
    net.state_dict()
    assert seen == ["0."]

    def drop(m, state, prefix, metadata, strict, missing, unexpected, errors):
        state.pop(prefix + "x", None)
        if prefix + "bad" in state:
            errors.append("a bad state")

    inner.register_load_state_dict_pre_hook(drop)
    net.load_state_dict(state)
    assert "0.x" in state
    with pytest.raises(RuntimeError, match="a bad state"):
        net.load_state_dict({**state, "0.bad": 1})
    inner.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
    keys = net.load_state_dict({"0.weight": tt.ones(2, 2)})
    assert keys == ([], []) and tt.equal(inner.weight, tt.ones(2, 2))


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_gradients_of_each_sample(reduction):
    from tt.nn.utils._per_sample_grad import call_for_per_sample_grads

    net = nn.Sequential(nn.Conv1d(1, 4, 3), nn.GroupNorm(2, 4), nn.Flatten(), nn.Linear(8, 2))
    net[0].bias.requires_grad_(False)
    x = tt.randn(3, 1, 4)
    y = call_for_per_sample_grads(net, loss_reduction=reduction)(x)
    assert tt.allclose(y, net(x), atol=1e-6)
    getattr(y.square().sum(1), reduction)().backward()
    for p in net.parameters():
        assert p.grad is None and hasattr(p, "grad_sample") == p.requires_grad
        for i in range(3 if p.requires_grad else 0):
            (expected,) = tt.autograd.grad(net(x[i : i + 1]).square().sum(), p)
            tt.testing.assert_close(p.grad_sample[i], expected)
    with pytest.raises(RuntimeError, match="clear it between"):
        call_for_per_sample_grads(net)
    with pytest.raises(RuntimeError, match=r"batch sizes of the arguments are \[2, 3\]"):
        call_for_per_sample_grads(nn.Bilinear(1, 1, 1))(tt.ones(2, 1), tt.ones(3, 1))


def test_modules_as_programs_take_them_apart():
    """Clones have parameters that operators made; an attribute of all modules may be deleted."""
    lstm = nn.LSTM(2, 3)
    clone = lstm._apply(lambda t: t)
    clone._parameters.update({name: p * 1 for name, p in lstm.named_parameters()})
    clone = clone._apply(lambda t: t)
    assert clone(tt.ones(4, 2))[0].requires_grad

    class Facade(nn.Module):
        def __init__(self):
            super().__init__()
            del self.training

    assert "training" not in vars(Facade()) and nn.Module().__dict__["training"]
    keys = nn.modules.module._IncompatibleKeys(["a"], [])
    assert keys.missing_keys == ["a"] == keys[0] and keys == (["a"], [])


def test_hooks_of_state_dict_run_in_the_order_of_their_registration():
    layer = nn.Linear(2, 2)
    calls = []
    first = layer._register_state_dict_hook(lambda m, state, *rest: {**state, "first": len(calls)})
    layer.register_state_dict_post_hook(lambda m, state, *rest: calls.append(list(state)))
    assert list(layer.state_dict()) == ["weight", "bias", "first"] and calls == [
        ["weight", "bias", "first"]
    ]
    first.remove()
    assert list(layer.state_dict()) == ["weight", "bias"]
    layer.register_state_dict_post_hook(lambda m, state, *rest: state)
    with pytest.raises(RuntimeError, match="must return None"):
        layer.state_dict()


def test_parameters_of_lazy_layers_cannot_be_counted():
    net = nn.Sequential(nn.LazyLinear(2), nn.Linear(2, 1))
    with pytest.raises(ValueError, match="uninitialized"):
        sum(p.numel() for p in net.parameters())
    net(tt.ones(1, 3))
    assert sum(p.numel() for p in net.parameters()) == 3 * 2 + 2 + 3


def test_utils_of_vectors_and_wrong_kinds():
    m = nn.utils.spectral_norm(nn.Linear(2, 3), "bias")
    m(tt.ones(1, 2))
    assert abs(m.bias.norm().item() - 1) < 1e-5 and m.bias_v.shape == (1,)
    m = nn.Linear(2, 3)
    prune.ln_structured(m, "weight", 1, n="fro", dim=0)
    assert m.weight_mask.sum().item() == 4
    with pytest.raises(ValueError, match="must be a dict"):
        tt.func.functional_call(m, 3, tt.ones(1, 2))
