"""tt.nn as a PyTorch user meets it: subclasses, trees, ties, moves, copies, hooks, errors."""
import copy
import pickle

import numpy as np
import pytest

import tt
from tt import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.head = nn.Linear(4, 4, bias=False)
        self.scale = nn.Parameter(tt.ones(4))
        self.register_buffer("seen", tt.zeros(()), persistent=False)

    def forward(self, x):
        return self.head(self.body(x)) * self.scale


def test_tree_and_state():
    m = Net()
    assert [n for n, _ in m.named_parameters()] == [
        "scale",
        "body.0.weight",
        "body.0.bias",
        "head.weight",
    ]
    assert list(m.state_dict()) == ["scale", "body.0.weight", "body.0.bias", "head.weight"]
    assert m.body[0].weight is m.get_parameter("body.0.weight") and m.head.bias is None
    assert repr(m) == (
        "Net(\n  (body): Sequential(\n    (0): Linear(in_features=4, out_features=4, bias=True)\n    (1): ReLU()\n  )\n"
        "  (head): Linear(in_features=4, out_features=4, bias=False)\n)"
    )
    other = Net()
    assert str(other.load_state_dict(m.state_dict())) == "<All keys matched successfully>"
    x = tt.randn(3, 4)
    assert m(x).tolist() == other(x).tolist()
    with pytest.raises(RuntimeError, match="Missing key"):
        m.load_state_dict({"scale": tt.ones(4)})
    with pytest.raises(RuntimeError, match="size mismatch"):
        m.load_state_dict({"scale": tt.ones(5)}, strict=False)


def test_tied_weights_train_as_one():
    m = Net()
    m.head.weight = m.body[0].weight
    assert len(list(m.parameters())) == 3 and len(m.state_dict()) == 4
    m(tt.randn(2, 4)).sum().backward()
    with tt.no_grad():
        m.head.weight.zero_()
    assert m(tt.randn(2, 4)).abs().max().item() == 0 and m.body[0].weight.grad is not None


def test_moves_keep_the_objects():
    m = Net()
    weight = m.head.weight
    assert m.double() is m and m.head.weight is weight and weight.dtype is tt.float64
    assert m(tt.randn(2, 4, dtype=tt.float64)).dtype is tt.float64
    assert m.to("meta").head.weight.device.type == "meta"
    with pytest.raises(TypeError):
        m.to(tt.int64)


def test_modes_and_freezing():
    m = nn.Sequential(nn.Dropout(0.5), Net())
    assert m.eval() is m and not m[0].training and not m[1].body.training
    x = tt.ones(8, 4)
    assert m[0](x).tolist() == x.tolist()
    m.train()
    assert 0 in [v for row in m[0](tt.ones(64, 4)).tolist() for v in row]
    m.requires_grad_(False)
    assert not any(p.requires_grad for p in m.parameters())


def test_copies_are_independent_but_keep_ties():
    m = Net()
    m.head.weight = m.body[0].weight
    twin = copy.deepcopy(m)
    assert twin.head.weight is twin.body[0].weight and twin.head.weight is not m.head.weight
    x = tt.randn(2, 4)
    assert twin(x).tolist() == m(x).tolist()
    with tt.no_grad():
        twin.scale.mul_(2)
    assert twin(x).tolist() != m(x).tolist()


@pytest.mark.parametrize(
    "make, names",
    [
        (nn.NLLLoss, ["weight"]),
        (nn.CrossEntropyLoss, ["weight"]),
        (nn.MultiMarginLoss, ["weight"]),
        (nn.BCELoss, ["weight"]),
        (nn.BCEWithLogitsLoss, ["weight", "pos_weight"]),
    ],
)
def test_losses_keep_their_weights_when_copied_or_changed(make, names):
    for given in ({}, {name: tt.tensor([1.0, 3.0]) for name in names}):
        m = make(**given)
        for twin in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
            assert repr(twin) == repr(m)
            for name in names:
                kept = getattr(twin, name)
                assert (None if kept is None else kept.tolist()) == ([1.0, 3.0] if given else None)
                assert kept is None or kept is not getattr(m, name)
        m.reduction = "sum"
        assert m.reduction == "sum" and list(m.state_dict()) == list(given)


def test_hooks_of_layers():
    layer, seen = nn.Linear(2, 2), []
    first = layer.register_forward_pre_hook(lambda m, args: seen.append("pre"))
    layer.register_forward_hook(lambda m, args, out: out * 0)
    assert layer(tt.ones(1, 2)).tolist() == [[0, 0]] and seen == ["pre"]
    first.remove()
    layer(tt.ones(1, 2))
    assert seen == ["pre"]


def test_errors_are_python_exceptions():
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'out_features'"):
        nn.Linear(2)
    with pytest.raises(TypeError, match="unexpected keyword argument 'bais'"):
        nn.Linear(2, 2, bais=True)
    with pytest.raises(ValueError, match="divisible"):
        nn.Conv2d(3, 4, 3, groups=2)
    with pytest.raises(AttributeError, match="before Module.__init__"):
        type("Bad", (nn.Module,), {"__init__": lambda self: setattr(self, "a", nn.ReLU())})()
    with pytest.raises(NotImplementedError, match="forward"):
        nn.Module()(1)
    with pytest.raises(RuntimeError, match="Linear|linear|shape|must"):
        nn.Linear(3, 2)(tt.ones(1, 4))
    with pytest.raises(TypeError, match="Parameter or None"):
        nn.Linear(2, 2).weight = tt.ones(2, 2)
    with pytest.raises(TypeError, match="MSELoss.*'target' must be Tensor, not int"):
        nn.MSELoss()(tt.ones(2), 3)


def test_a_small_training():
    tt.manual_seed(0)
    m = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
    opt = tt.optim.Adam(m.parameters(), lr=0.05)
    x = tt.randn(64, 2)
    y = (x[:, :1] * x[:, 1:]).detach()
    for _ in range(200):
        opt.zero_grad()
        loss = nn.functional.mse_loss(m(x), y)
        loss.backward()
        opt.step()
    assert loss.item() < 0.02


def test_arguments_may_change_later():
    drop, bn, x = nn.Dropout(0.5), nn.BatchNorm1d(2), tt.arange(6.0).reshape(3, 2)
    calls = []
    drop.register_forward_hook(lambda *_: calls.append(1))
    drop.p = 0.0
    assert (
        drop(x).tolist() == x.tolist()
        and calls == [1]
        and repr(drop) == "Dropout(p=0.0, inplace=False)"
    )
    weight, mean, drawn = bn.weight, bn.running_mean, tt.get_rng_state().tolist()
    bn.momentum, bn.eps = 1.0, 0.5
    assert tt.get_rng_state().tolist() == drawn and bn.weight is weight and bn.running_mean is mean
    bn(x)
    assert bn.running_mean.tolist() == [2, 3] and bn.training and not bn.eval().training
    conv = nn.Conv1d(1, 1, 3).requires_grad_(False)
    conv.stride = 2
    assert conv(tt.ones(1, 1, 7)).shape == (1, 1, 3) and not conv.weight.requires_grad
    with pytest.raises(TypeError):
        conv.stride = "x"
    assert conv.stride == 2 and conv(tt.ones(1, 1, 7)).shape == (1, 1, 3)
    attention = nn.MultiheadAttention(4, 2)
    out = attention.out_proj.weight
    attention.dropout = 0.0
    assert attention.out_proj.weight is out


def test_lists_print_as_pytorchs():
    same = nn.ModuleList([nn.Linear(1, 2), nn.Linear(1, 2), nn.ReLU()])
    assert (
        repr(same)
        == "ModuleList(\n  (0-1): 2 x Linear(in_features=1, out_features=2, bias=True)\n  (2): ReLU()\n)"
    )
    assert (
        repr(nn.ParameterList([tt.ones(2, 3)]))
        == "ParameterList(  (0): Parameter containing: [tt.float32 of size 2x3])"
    )


def test_layers_print_as_pytorch_s():
    assert repr(nn.AvgPool1d(2)) == "AvgPool1d(kernel_size=(2,), stride=(2,), padding=(0,))"
    assert repr(nn.AvgPool2d(2)) == "AvgPool2d(kernel_size=2, stride=2, padding=0)"
    assert (
        repr(nn.LayerNorm(5, elementwise_affine=False))
        == "LayerNorm((5,), eps=1e-05, elementwise_affine=False, bias=False)"
    )
    assert (
        repr(nn.LayerNorm((2, 5), bias=False))
        == "LayerNorm((2, 5), eps=1e-05, elementwise_affine=True, bias=False)"
    )
    assert (
        repr(nn.GroupNorm(1, 3, affine=False))
        == "GroupNorm(1, 3, eps=1e-05, affine=False, bias=False)"
    )
    assert repr(nn.Softplus(2, 0.5)) == "Softplus(beta=2, threshold=0.5)"
    assert repr(nn.Softshrink(1)) == "Softshrink(1)"
    assert repr(nn.RMSNorm(4, eps=1)) == "RMSNorm((4,), eps=1, elementwise_affine=True)"
    pool = nn.LPPool2d(2, (3, 2))
    assert pool.stride is None and pool(tt.ones(1, 1, 6, 4)).shape == (1, 1, 2, 2)
    assert repr(pool) == "LPPool2d(norm_type=2, kernel_size=(3, 2), stride=None, ceil_mode=False)"
    assert (
        repr(nn.MultiheadAttention(8, 2).out_proj)
        == "NonDynamicallyQuantizableLinear(in_features=8, out_features=8, bias=True)"
    )


class Adapted(nn.Linear):
    """A layer of tt's with more in it, as users derive them."""

    def __init__(self, i, o):
        super().__init__(i, o)
        self.down = nn.Parameter(tt.ones(2, i))
        self.up = nn.Parameter(tt.ones(o, 2))
        self.register_buffer("scale", tt.ones(1))
        self.register_buffer("seen", tt.zeros(1), persistent=False)
        self.norm = nn.LayerNorm(o)
        self.facts = {"rank": [2]}

    def reset_parameters(self):
        nn.init.constant_(self.weight, 0.5)
        nn.init.zeros_(self.bias)

    def forward(self, x):
        return self.norm(
            super().forward(x)
            + self.scale * (x @ self.down.t() @ self.up.t()) * tt.arange(float(self.out_features))
        )


def test_derived_layers_are_copied_whole():
    m, log = Adapted(3, 4), []
    m.register_forward_hook(lambda *_: log.append("hook"))
    m.norm.eval()
    x, state = tt.arange(6.0).reshape(2, 3), list(m.state_dict())
    assert state == ["weight", "bias", "down", "up", "scale", "norm.weight", "norm.bias"]
    assert m.weight.tolist() == [[0.5] * 3] * 4  # construction sets its own initial values
    tt.manual_seed(7)
    drawn = tt.get_rng_state().tolist()
    twin = copy.deepcopy(m)
    assert tt.get_rng_state().tolist() == drawn
    assert list(twin.state_dict()) == state and [name for name, _ in twin.named_buffers()] == [
        "scale",
        "seen",
    ]
    assert twin(x).tolist() == m(x).tolist() and log == ["hook", "hook"]
    assert twin.facts == m.facts and twin.facts["rank"] is not m.facts["rank"]
    assert twin.training and not twin.norm.training and twin.down is not m.down
    m._forward_hooks.clear()
    loaded = pickle.loads(pickle.dumps(m))
    assert list(loaded.state_dict()) == state and loaded(x).tolist() == m(x).tolist()
    assert "in_features=3, out_features=4, bias=True\n  (norm)" in repr(m)


def test_a_layer_without_its_weight_says_so():
    for m, x in (
        (nn.Linear(2, 2), tt.ones(1, 2)),
        (nn.Conv2d(1, 1, 1), tt.ones(1, 1, 2, 2)),
        (nn.Embedding(2, 2), tt.tensor([0])),
    ):
        m.weight = None
        with pytest.raises(ValueError, match="has no weight"):
            m(x)
        with pytest.raises(ValueError, match="has no weight"):
            copy.deepcopy(m)(x)
    m = nn.MultiheadAttention(4, 2)
    m.in_proj_weight = None
    with pytest.raises(ValueError, match="has no q_proj_weight"):
        m(*[tt.ones(2, 1, 4)] * 3)
    m = nn.Linear(2, 2)
    m.bias = None
    assert m(tt.zeros(1, 2)).tolist() == [[0, 0]] and list(m.state_dict()) == ["weight"]
    del m.weight
    with pytest.raises(AttributeError, match="no attribute 'weight'"):
        m(tt.ones(1, 2))
    m.weight = tt.ones(2, 2)  # a tensor that is no parameter serves, as in PyTorch
    assert m(tt.ones(1, 2)).tolist() == [[2, 2]] and not m.state_dict()


@pytest.mark.parametrize(
    "make, shape",
    [
        (lambda: nn.Linear(4, 3), (2, 4)),
        (lambda: nn.Conv2d(2, 3, 1), (1, 2, 3, 3)),
        (lambda: nn.BatchNorm1d(3), (4, 3)),
        (lambda: nn.LSTM(3, 4), (2, 1, 3)),
    ],
)
def test_shallow_copies_share_parameters_and_keep_sharing(make, shape):
    m = make().eval()
    twin, x = copy.copy(m), tt.randn(*shape)
    assert twin._parameters is m._parameters and twin._buffers is m._buffers

    def results():
        outs = [layer(x) for layer in (m, twin)]
        return [out[0] if isinstance(out, tuple) else out for out in outs]

    before = results()
    assert tt.equal(*before)
    name, weight = next(iter(m.named_parameters()))
    setattr(twin, name, nn.Parameter(weight.detach() + 1))
    after = results()
    assert tt.equal(*after) and not tt.equal(after[0], before[0])
    twin.train()
    assert twin.training and not m.training


def test_a_bias_that_is_deleted_and_set_again():
    m, x = nn.Linear(2, 2), tt.ones(1, 2)
    with tt.no_grad():
        m.weight.fill_(1)
    del m.bias
    for _ in range(2):
        with pytest.raises(AttributeError, match="'Linear' object has no attribute 'bias'"):
            m(x)
    m.bias = None
    assert m(x).tolist() == [[2, 2]] and "bias" not in m._parameters
    del m.bias
    m.bias = tt.ones(2)  # a plain attribute
    for layer in (m, copy.copy(m), copy.deepcopy(m)):
        assert layer(x).tolist() == [[3, 3]] and list(layer.state_dict()) == ["weight"]
    del m.bias
    m.register_buffer("bias", tt.full((2,), 2.0))
    for layer in (m, copy.deepcopy(m)):
        assert layer(x).tolist() == [[4, 4]] and list(layer.state_dict()) == ["weight", "bias"]
        assert list(dict(layer.named_buffers())) == ["bias"]
    del m.bias
    m.bias = nn.Parameter(tt.zeros(2))
    assert m(x).tolist() == [[2, 2]]
    m(x).sum().backward()
    assert m.bias.grad.tolist() == [1, 1]
    m._parameters.pop("bias")
    with pytest.raises(AttributeError, match="bias"):
        m(x)


def test_new_first_values():
    net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU())
    before = net[0].weight.tolist()
    with tt.no_grad():
        net[1].running_mean.fill_(9)
        net[1].weight.fill_(9)
    for m in net:
        if hasattr(m, "reset_parameters"):
            m.reset_parameters()
    assert net[0].weight.tolist() != before and abs(net[0].weight).max().item() <= 0.5
    assert net[1].running_mean.tolist() == [0] * 4 and net[1].weight.tolist() == [1] * 4
    assert not hasattr(net[2], "reset_parameters")
    net[1](tt.arange(8.0).reshape(2, 4))
    net[1].reset_running_stats()
    assert [
        net[1].running_mean.tolist(),
        net[1].running_var.tolist(),
        net[1].num_batches_tracked.item(),
    ] == [[0] * 4, [1] * 4, 0]


def test_attributes_as_pytorchs():
    conv = nn.Conv2d(1, 2, 3, padding="same")
    assert (conv.kernel_size, conv.stride, conv.dilation, conv.padding) == (
        (3, 3),
        (1, 1),
        (1, 1),
        "same",
    )
    assert nn.Conv2d(1, 2, 3, padding=1).padding == (1, 1) and nn.ConvTranspose1d(
        1, 1, 2
    ).output_padding == (0,)
    assert nn.MaxPool2d(2).stride == 2 and nn.LayerNorm(3).normalized_shape == (3,)
    rows = nn.Embedding.from_pretrained(tt.arange(6.0).reshape(3, 2))
    assert (
        rows(tt.tensor([2])).tolist() == [[4, 5]]
        and not rows.weight.requires_grad
        and isinstance(rows, nn.Embedding)
    )
    assert nn.Embedding.from_pretrained(
        tt.ones(3, 2), freeze=False, padding_idx=0
    ).weight.requires_grad


def test_order_of_apply_and_of_hooks():
    net, seen = nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.ReLU(), nn.Tanh())), []
    assert net.apply(lambda m: seen.append(type(m).__name__)) is net
    assert seen == ["Linear", "ReLU", "Tanh", "Sequential", "Sequential"]
    seen.clear()
    net.register_forward_hook(lambda *_: seen.append(2))
    net.register_forward_hook(lambda *_: seen.append(1), prepend=True)
    net.register_forward_pre_hook(lambda *_: seen.append(0), prepend=True)
    net(tt.ones(1))
    assert seen == [0, 1, 2]


def test_lists_change_as_lists():
    a, b, c = nn.ReLU(), nn.Tanh(), nn.Sigmoid()
    for kind in (lambda *items: nn.ModuleList(items), nn.Sequential):
        m = kind(a, b)
        m += [c]
        del m[0]
        assert list(m) == [b, c] and list(m._modules) == ["0", "1"]
        assert m.pop(0) is b and list(m) == [c]
        assert (
            list(m.insert(0, a)) == [a, c]
            and list(m + kind(b)) == [a, c, b]
            and type(m + [b]) is type(m)
        )
        with pytest.raises(TypeError, match="not a Module"):
            m.append(5)
    d = nn.ModuleDict({"a": a})
    assert d.pop("a") is a and not len(d)
    with pytest.raises(KeyError, match="forward"):
        d["forward"] = a
    m = nn.Sequential(a)
    m.child = b
    with pytest.raises(TypeError, match="child module 'child'"):
        m.child = 5
    m.child = None
    assert m._modules["child"] is None


def test_loading_by_assigning():
    m = nn.BatchNorm1d(2)
    m.weight.requires_grad_(False)
    old, state = m.weight, {key: t.double() + 1 for key, t in m.state_dict().items()}
    m.load_state_dict(state, assign=True)
    assert (
        m.weight is not old
        and m.weight.dtype is tt.float64
        and not m.weight.requires_grad
        and m.bias.requires_grad
    )
    assert m.running_mean is state["running_mean"] and m(
        tt.ones(2, 2, dtype=tt.float64)
    ).tolist() == [[1, 1], [1, 1]]
    with pytest.raises(TypeError, match="must be a dict"):
        m.load_state_dict([1])


class Counter(tt.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.fc = tt.nn.Linear(1, 1)

    def get_extra_state(self):
        return {"calls": self.calls}

    def set_extra_state(self, state):
        self.calls = state["calls"]


def test_extra_states():
    net, other = tt.nn.Sequential(Counter(), tt.nn.ReLU()), tt.nn.Sequential(
        Counter(), tt.nn.ReLU()
    )
    net[0].calls = 7
    state = net.state_dict()
    assert sorted(state) == ["0._extra_state", "0.fc.bias", "0.fc.weight"] and state[
        "0._extra_state"
    ] == {"calls": 7}
    assert (
        not any(other.load_state_dict(state))
        and other[0].calls == 7
        and tt.equal(net[0].fc.weight, other[0].fc.weight)
    )
    own = Counter()
    own.load_state_dict(net[0].state_dict())
    assert own.calls == 7 and list(own.state_dict())[-1] != "0._extra_state"
    del state["0._extra_state"]
    with pytest.raises(RuntimeError, match="Missing key.*_extra_state"):
        other.load_state_dict(state)
    with pytest.raises(RuntimeError, match="Unexpected key.*_extra_state"):
        tt.nn.Linear(1, 1).load_state_dict({**own.fc.state_dict(), "_extra_state": 1})
    with pytest.raises(RuntimeError):
        tt.nn.ReLU().get_extra_state()


class Renamed(nn.Module):
    """Its state was called "old" in version 1."""

    _version = 2

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(tt.zeros(2))
        self.bn = nn.BatchNorm1d(2)
        self.seen = []

    def train(self, mode=True):
        super().train(mode)
        self.bn.training = False
        return self

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "more"] = tt.ones(1)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *lists):
        self.seen.append((prefix, local_metadata.get("version")))
        state_dict.pop(prefix + "more", None)
        if prefix + "old" in state_dict:
            state_dict[prefix + "w"] = state_dict.pop(prefix + "old")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *lists)

    def _apply(self, fn, recurse=True):
        super()._apply(fn)
        self.plain = fn(tt.ones(1))
        return self


def test_children_may_override_what_the_tree_does():
    m = nn.Sequential(Renamed(), nn.Linear(2, 2))
    assert [x.training for x in m.train().modules()] == [True, True, False, True]
    state = m.state_dict()
    assert state["0.more"].tolist() == [1] and state._metadata["0.bn"] == {"version": 2}
    assert str(m.load_state_dict(state)) == "<All keys matched successfully>"
    old = {name: x for name, x in state.items() if name not in ("0.w", "0.more")}
    m.load_state_dict({**old, "0.old": tt.ones(2)})
    assert m[0].w.tolist() == [1, 1] and m[0].seen == [("0.", 2), ("0.", None)]
    keys = m.load_state_dict({"0.x": tt.ones(1), "2.x": tt.ones(1)}, strict=False)
    assert keys.unexpected_keys == ["0.x", "2.x"] and "0.w" in keys.missing_keys
    m.double()
    assert m[0].plain.dtype is m[0].w.dtype is m[1].weight.dtype is m[0].bn.weight.dtype
    copied = copy.deepcopy(state)
    assert copied._metadata == state._metadata


class OwnState(nn.Module):
    def state_dict(self, *args, **kwargs):
        out = super().state_dict(*args, **kwargs)
        out[kwargs["prefix"] + "x"] = 1
        return out


def test_names_of_state_dicts():
    assert nn.Sequential(OwnState()).state_dict() == {"0.x": 1}
    layer = nn.Linear(1, 1)
    assert list(layer.state_dict(prefix="a_")) == ["a_weight", "a_bias"]
    assert list(layer.state_dict(None, "a.", True)) == ["a.weight", "a.bias"]
    layer._register_state_dict_hook(lambda m, state, prefix, metadata: {"all": 1})
    seen = []
    layer._register_load_state_dict_pre_hook(lambda state, prefix, *_: seen.append(prefix))
    assert layer.state_dict() == {"all": 1}
    layer.load_state_dict({}, strict=False)
    assert seen == [""]
    with pytest.raises(RuntimeError, match="the value of weight is list: must be a Tensor"):
        layer.load_state_dict({"weight": [[1]]}, strict=False)
    layer.weight.requires_grad_(False)
    layer.load_state_dict({"weight": nn.Parameter(tt.ones(1, 1))}, strict=False, assign=True)
    assert not layer.weight.requires_grad


def test_places_and_modules_that_change():
    m = nn.Sequential(nn.Linear(2, 3, device="meta"), nn.Sequential(nn.ReLU()))
    weight = m[0].weight
    assert m.to_empty(device="cpu")[0].weight is weight and weight.device.type == "cpu"
    m.set_submodule("1.0", nn.Tanh())
    m.set_submodule("1.next", nn.Tanh())
    assert len(m[1]) == 2
    for target, error in (("", ValueError), ("a.b", AttributeError), ("0.weight", AttributeError)):
        with pytest.raises(error):
            m.set_submodule(target, nn.ReLU())
    with pytest.raises(AttributeError, match="no submodule 'z'"):
        m.set_submodule("1.z", nn.ReLU(), strict=True)
    memo = {m[0]}
    assert [name for name, _ in m.named_modules(memo)] == ["", "1", "1.0", "1.next"]
    assert len(memo) == 5 and len(list(nn.Sequential(m, m).modules(False))) == 11


class Mixin:
    def __init__(self, a):
        self.mixed = a


class Cooperative(nn.Module, Mixin):
    call_super_init = True

    def __setstate__(self, state):
        super().__setstate__(state)
        self.restored = True

    def extra_repr(self):
        return "a=1,\nb=2"


def test_bases_copies_and_printing():
    m = Cooperative(3)
    assert m.mixed == 3 and copy.deepcopy(m).restored and pickle.loads(pickle.dumps(m)).restored
    assert repr(nn.Sequential(m)).splitlines()[2:4] == ["    a=1,", "    b=2"]
    with pytest.raises(TypeError, match="unexpected arguments"):
        nn.Module(3)


def test_a_module_compiles_itself():
    m = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    x = tt.ones(3, 2)
    with tt.no_grad():
        expected = m(x).tolist()
        m.compile()
        assert [m(x).tolist() for _ in range(3)] == [expected] * 3
        assert list(m.state_dict()) == ["0.weight", "0.bias"]
        for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
            assert "forward" not in vars(other) and other(x).tolist() == expected


def test_lists_repeat_and_hold_anything():
    m = nn.Sequential(nn.ReLU(), nn.Tanh())
    assert len(m * 2) == len(2 * m) == 4 and (m * 2)[2] is m[0]
    m *= 3
    assert len(m) == 6 and list(m._modules) == [str(i) for i in range(6)]
    for wrong, error in ((0, ValueError), (1.0, TypeError)):
        with pytest.raises(error):
            m * wrong
    with pytest.raises(IndexError, match="index 9 is out of range: it has 6"):
        m[9]
    with pytest.raises(IndexError):
        m.insert(9, nn.ReLU())
    values = nn.ParameterList([tt.ones(1), 3, "x"])
    assert [type(v) for v in values] == [nn.Parameter, int, str] and len(values) == 3
    assert "(1): Object of type: int" in repr(values)
    values[0] = None
    values[1] = tt.ones(2)
    assert values[0] is None and list(values.state_dict()) == ["1"]
    named = nn.ParameterDict({"b": tt.ones(1), "a": 3})
    assert list(named) == ["a", "b"] and named.pop("a") == 3 and list(copy.deepcopy(named)) == ["b"]
    assert named.popitem()[0] == "b" and not len(named)
    with pytest.raises(RuntimeError, match="ParameterDict has no forward"):
        named(1)


def test_the_layer_inside_attention():
    inner = nn.MultiheadAttention(4, 2).out_proj
    assert (inner.in_features, inner.out_features) == (4, 4)
    assert tt.equal(copy.deepcopy(inner).weight, inner.weight)


def test_repeated_calls_of_layers():
    x, drop, pool = tt.ones(2, 4), nn.Dropout(0.0), nn.MaxPool1d(2)
    for _ in range(3):
        assert drop(x).tolist() == x.tolist() and pool(x).shape == (2, 2)
    drop.p = 1.0
    assert drop(x).sum() == 0
    pool.return_indices = True
    for _ in range(2):
        values, places = pool(x)
        assert values.shape == places.shape == (2, 2)
    assert nn.ReLU(inplace=True)(x) is not None and type(copy.deepcopy(pool)(x)) is tuple
    with pytest.raises(TypeError, match="input"):
        drop(3)
    lstm = nn.LSTM(4, 2)
    for _ in range(2):
        out, state = lstm(x)
        assert out.shape == (2, 2) and len(state) == 2


def test_modules_take_memory_formats():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Linear(4, 2))
    x = tt.randn(2, 3, 5, 5)
    before = net[0](x)
    assert net.to(memory_format=tt.channels_last) is net
    assert net[0].weight.stride() == (27, 1, 9, 3) and net[1].weight.stride() == (4, 1)
    assert tt.allclose(net[0](x), before, atol=1e-6)
    net.to(tt.float64, memory_format=tt.contiguous_format)
    assert net[0].weight.stride() == (27, 9, 3, 1) and net[0].weight.dtype is tt.float64


def test_tensors_written_into_the_dicts_of_a_layer():
    """As programs of meta-learning do: the layer computes with them."""
    layer, x = nn.Linear(2, 3, bias=False), tt.ones(1, 2)
    fast = (layer.weight * 0 + 2).clone()
    layer._parameters["weight"] = fast
    y = layer(x)
    assert y.tolist() == [[4, 4, 4]] and layer.weight is fast
    (grad,) = tt.autograd.grad(y.sum(), fast)
    assert grad.tolist() == [[1, 1]] * 3
    layer._parameters["weight"] = nn.Parameter(tt.ones(3, 2))
    assert layer(x).tolist() == [[2, 2, 2]] and list(layer.state_dict()) == ["weight"]
    norm = nn.BatchNorm1d(2, affine=False).eval()
    norm._buffers["running_mean"] = tt.ones(2)
    assert norm(x).tolist() == [[0, 0]] and norm.running_mean.tolist() == [1, 1]
    assert type(copy.deepcopy(layer)._parameters["weight"]) is nn.Parameter
    pickle.loads(pickle.dumps(layer))(x)


def test_dicts_of_tensors_are_plain():
    """As programs expect that flatten them, build others of their class or update them."""
    layer, x = nn.BatchNorm1d(2).eval(), tt.zeros(1, 2)
    for group in (layer._parameters, layer._buffers, copy.deepcopy(layer)._parameters):
        assert type(group) is dict
    layer._parameters.update(bias=tt.ones(2), weight=tt.ones(2))
    layer._buffers.update(running_mean=tt.ones(2))
    tt.testing.assert_close(layer(x), 1 - 1 / tt.full((1, 2), 1 + 1e-5).sqrt())
    others = {"bias": tt.full((2,), 5.0), "running_mean": tt.zeros(2)}
    layer._parameters["bias"] = tt.zeros(2)
    assert tt.func.functional_call(layer, others, (x,)).tolist() == [[5, 5]]
    layer._parameters["bias"] = None
    assert (layer(x) < -0.99).all()
    scale = tt.ones((), requires_grad=True)
    layer._parameters["bias"] = scale * tt.ones(2)
    assert layer(x).requires_grad and layer.weight.grad_fn is None
    layer._parameters["bias"].detach_()  # becomes another tensor of C
    assert not layer(x).requires_grad
    attention, y = nn.MultiheadAttention(2, 1, batch_first=True), tt.ones(1, 1, 2)
    attention.out_proj._parameters["bias"] = tt.full((2,), 7.0)
    attention.out_proj._parameters["weight"] = tt.zeros(2, 2)
    assert attention(y, y, y)[0].tolist() == [[[7, 7]]]


def test_copies_of_a_layer_whose_dict_has_a_plain_tensor():
    layer, x = nn.Linear(2, 2, bias=False), tt.ones(1, 2)
    layer._parameters["weight"] = tt.full((2, 2), 3.0)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert type(other.weight) is tt.Tensor and other(x).tolist() == [[6, 6]]
        other.weight = nn.Parameter(tt.ones(2, 2))
        assert other(x).tolist() == [[2, 2]]
    layer._parameters["weight"] = 5
    with pytest.raises(TypeError, match="Linear.*weight.*Tensor, not int"):
        layer(x)


def test_a_layer_keeps_no_tensor_that_its_dict_has_lost():
    """As programs do that load weights for each call."""
    layer = nn.Linear(64, 64, bias=False)
    before = tt.runtime.memory_stats()["in_use"]
    layer._parameters["weight"] = nn.Parameter(layer.weight.to("meta"))
    assert tt.runtime.memory_stats()["in_use"] <= before - 4 * 64 * 64
    layer._parameters["weight"] = nn.Parameter(tt.ones(64, 64))
    assert layer(tt.ones(64)).tolist() == [64] * 64


@pytest.mark.parametrize("original", [nn.Linear(4, 4), nn.LSTM(4, 4), nn.MultiheadAttention(4, 2)])
def test_layers_made_of_the_attributes_of_others(original):
    """As libraries do that make a module functional: another class, the same attributes."""

    class Twin(type(original)):
        def __init__(self):
            nn.Module.__init__(self)

    twin = Twin()
    twin.__dict__.update(original.__dict__)
    parameters = {n: p if p is None else p * 0 + 0.5 for n, p in original._parameters.items()}
    twin.__dict__["_parameters"] = parameters
    twin.__dict__["_modules"] = copy.deepcopy(original._modules)
    inputs = (tt.ones(1, 3, 4),) * (3 if isinstance(original, nn.MultiheadAttention) else 1)
    before, after = original(*inputs), twin(*inputs)
    again = original(*inputs)
    first = lambda x: x[0] if isinstance(x, tuple) else x
    assert tt.equal(first(before), first(again)) and not tt.allclose(first(before), first(after))
    (grad,) = tt.autograd.grad(first(after).sum(), next(iter(parameters.values())))
    assert grad.abs().sum() > 0
    expected = copy.deepcopy(original)
    with tt.no_grad():
        for p in expected._parameters.values():
            if p is not None:
                p.fill_(0.5)
    assert tt.allclose(first(expected(*inputs)), first(after))


def test_former_arguments_of_hardtanh():
    with pytest.warns(FutureWarning, match="min_value is deprecated and renamed to min_val"):
        layer = nn.Hardtanh(min_value=-2.0, max_value=3.0)
    assert repr(layer) == "Hardtanh(min_val=-2.0, max_val=3.0)"
    assert layer(tt.tensor([-5.0, 0.0, 5.0])).tolist() == [-2, 0, 3]
    assert nn.Hardtanh(-2.0, 3.0, True).inplace


def test_trunc_normal_far_from_the_mean():
    """Values are at the nearest end where the interval is too far to be drawn from."""
    with pytest.warns(UserWarning, match="more than 2 std"):
        x = nn.init.trunc_normal_(tt.empty(50), mean=3.0, std=0.1, a=-1, b=1)
    assert x.min() >= -1 and x.max() <= 1
    x = nn.init.trunc_normal_(tt.empty(20000), std=0.5, a=-0.5, b=1.0)
    assert x.min() >= -0.5 and x.max() <= 1
    assert x.mean().item() == pytest.approx(0.115, abs=0.01)  # (pdf(-1) - pdf(2)) / 0.8186 / 2


def test_embeddings_take_their_weight():
    weight = tt.arange(6.0).reshape(3, 2)
    assert nn.Embedding(3, 2, _weight=weight).weight.tolist() == weight.tolist()
    assert nn.EmbeddingBag(3, 2, mode="sum", _weight=weight)(tt.tensor([[0, 2]])).tolist() == [
        [4, 6]
    ]
    with pytest.raises(AssertionError, match=r"_weight is \[3, 2\]: must be \[4, 2\]"):
        nn.Embedding(4, 2, _weight=weight)


def test_embeddings_show_a_padding_idx_from_the_start():
    layer = nn.Embedding(5, 3, padding_idx=-1)
    assert layer.padding_idx == 4 and repr(layer) == "Embedding(5, 3, padding_idx=4)"
    assert layer.weight[4].tolist() == [0, 0, 0]
    bags = nn.EmbeddingBag(5, 3, padding_idx=-5, mode="sum")
    assert bags.padding_idx == 0 and "padding_idx=0" in repr(bags)
    assert bags(tt.tensor([[0, 0]])).tolist() == [[0, 0, 0]]


def test_containers_of_parameters_print_as_pytorchs():
    items = [tt.ones(2), tt.ones(2, 3), 4]
    assert repr(nn.ParameterList(items)) == (
        "ParameterList(\n"
        "    (0): Parameter containing: [tt.float32 of size 2]\n"
        "    (1): Parameter containing: [tt.float32 of size 2x3]\n"
        "    (2): Object of type: int\n)"
    )
    text = "ParameterDict(  (a): Parameter containing: [tt.FloatTensor of size 2])"
    assert (
        repr(nn.ParameterDict({"a": tt.ones(2)})) == text
        and repr(nn.ParameterList()) == "ParameterList()"
    )


def test_attributes_that_layers_of_pytorch_have():
    assert nn.Conv2d(1, 1, 1).output_padding == (0, 0) and not nn.Conv1d(1, 1, 1).transposed
    assert nn.ConvTranspose2d(1, 1, 1).transposed
    assert nn.ReLU6().max_val == 6 and nn.ZeroPad2d(1).value == 0


def test_state_dicts_of_arrays_are_refused():
    with pytest.raises(RuntimeError, match="weight is numpy.ndarray: must be a Tensor"):
        nn.Linear(2, 1, bias=False).load_state_dict({"weight": np.ones((1, 2), "float32")})


def test_type_converts_buffers_of_integers():
    m = nn.BatchNorm1d(2).type(tt.float16)
    assert {t.dtype for t in m.state_dict().values()} == {tt.float16}
    assert nn.Linear(2, 2).type("torch.DoubleTensor").weight.dtype is tt.float64


def test_state_dicts_from_before_batches_were_counted():
    m = nn.Sequential(nn.BatchNorm1d(2), nn.InstanceNorm1d(2, track_running_stats=True))
    m[0].num_batches_tracked += 3
    state = m.state_dict()
    old = {name: t for name, t in state.items() if "num_batches" not in name}
    assert m.load_state_dict(old) == ([], []) and m[0].num_batches_tracked == 3
    del state["0.num_batches_tracked"]  # its _metadata has version 2 of the layer
    with pytest.raises(RuntimeError, match="Missing.*0.num_batches_tracked"):
        m.load_state_dict(state)


def test_what_lists_refuse():
    with pytest.raises(TypeError, match="not a Tensor"):
        nn.ParameterList(tt.ones(2))
    with pytest.raises(ValueError, match="not to int"):
        nn.Sequential(nn.ReLU()) + 3


def test_flat_weights():
    m = nn.LSTM(2, 3)
    assert m._flat_weights_names == [name for name, _ in m.named_parameters()]
    assert all(a is b for a, b in zip(m._flat_weights, m.parameters()))


def test_arguments_of_containers_and_tables_by_keyword():
    layers = nn.ModuleList(modules=[nn.ReLU(), nn.Tanh()])
    assert len(layers) == 2 and len(layers[:1]) == 1
    assert list(nn.ModuleDict(modules={"a": nn.ReLU()})) == ["a"]
    assert list(nn.ParameterDict(parameters={"b": tt.ones(1)}).copy()) == ["b"]
    assert len(nn.ParameterList(values=[tt.ones(1)])) == 1
    weight = tt.ones(3, 2)
    assert not nn.Embedding(3, 2, _freeze=True).weight.requires_grad
    frozen = nn.EmbeddingBag(3, 2, _weight=weight, _freeze=True)
    assert tt.equal(frozen.weight, weight) and not frozen.weight.requires_grad


def test_dropout_in_evaluation_returns_its_input():
    layer, x = nn.Dropout(), tt.ones(3)
    assert layer(x) is not x and layer.eval()(x) is x and layer.train()(x) is not x


@pytest.mark.parametrize("name", ["ReLU", "SiLU", "Hardtanh", "Dropout", "Dropout2d"])
def test_layers_in_place_return_their_input(name):
    layer = getattr(nn, name)(inplace=True)
    x = tt.full((2, 3, 4, 4), -2.0)
    assert layer(x) is x and layer(x) is x and layer.eval()(x) is x
    other = getattr(nn, name)()
    assert other(x) is not x and other(x) is not x
    leaf = tt.tensor([-1.0, 2.0], requires_grad=True)
    written = leaf * 3
    assert nn.ReLU(inplace=True)(written) is written
    written.sum().backward()
    assert leaf.grad.tolist() == [0, 3]


def test_what_layers_print():
    assert repr(nn.EmbeddingBag(6, 3, mode="sum", sparse=True, include_last_offset=True)) == (
        "EmbeddingBag(6, 3, mode='sum')"
    )
    assert repr(nn.AdaptiveAvgPool1d((1,))) == "AdaptiveAvgPool1d(output_size=(1,))"
    assert repr(nn.AdaptiveMaxPool2d(3)) == "AdaptiveMaxPool2d(output_size=3)"
    keys = nn.Linear(2, 3).load_state_dict({}, strict=False)
    assert type(keys).__name__ == "_IncompatibleKeys"


def test_what_layers_refuse():
    for size in (-1, (2, -1), (None, -1)):
        with pytest.raises(RuntimeError, match="output_size is .* must be at least 0"):
            nn.AdaptiveAvgPool2d(size)
    for bounds in ((1, -1), (1, 1)):
        with pytest.raises(AssertionError, match="max_val"):
            nn.Hardtanh(*bounds)
    layer = nn.Linear(1, 1)
    for move in (layer.xpu, layer.ipu, layer.mtia):
        with pytest.raises(RuntimeError, match="no device of tt"):
            move()
    with pytest.raises(ValueError, match="scale_d is given"):
        nn.Upsample(scale_factor=(2, 2, 2))(tt.ones(1, 1, 2, 2))
