"""Lazy modules, and the layers whose Python class has more than its C module."""
import copy
import pickle

import pytest

import tt
from tt import nn


def network():
    return nn.Sequential(
        nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.ReLU(), nn.Flatten(), nn.LazyLinear(5)
    )


def test_the_first_input_decides():
    m = network()
    parameters = list(m.parameters())
    assert m[0].has_uninitialized_params() and repr(m[4]).startswith("LazyLinear(in_features=0, ")
    drawn = tt.get_rng_state().tolist()
    assert repr(m[0]) == "LazyConv2d(0, 4, kernel_size=(3, 3), stride=(1, 1))"
    assert tt.get_rng_state().tolist() == drawn
    with pytest.raises(RuntimeError, match="uninitialized"):
        m[0].weight.shape
    m.double()
    m(tt.randn(2, 3, 6, 6, dtype=tt.float64)).sum().backward()
    assert [type(layer) for layer in m][:2] == [nn.Conv2d, nn.BatchNorm2d]
    assert all(a is b for a, b in zip(m.parameters(), parameters))
    assert {type(p) for p in parameters} == {nn.Parameter}
    assert {p.dtype for p in parameters} == {tt.float64}
    assert all(p.grad is not None for p in parameters)
    assert m[4].in_features == 64 and m[1].num_batches_tracked == 1
    assert repr(m[0]) == "Conv2d(3, 4, kernel_size=(3, 3), stride=(1, 1))"


def test_copies_and_states():
    m = network()
    copied, pickled = copy.deepcopy(m), pickle.loads(pickle.dumps(m))
    x = tt.randn(2, 3, 6, 6)
    m(x)
    m.eval()
    copied.eval()
    copied.load_state_dict(m.state_dict())
    assert type(copied[4]) is nn.Linear and tt.equal(copied(x), m(x))
    pickled.eval()
    assert pickled(x).shape == (2, 5) and not pickled[0].training


@pytest.mark.parametrize("n", [1, 2, 3])
def test_lazy_layers_without_a_batch(n):
    sizes = [6, 5, 4][:n]
    conv = getattr(nn, f"LazyConvTranspose{n}d")(2, 3)
    assert conv(tt.randn(4, *sizes)).shape == (2, *(size + 2 for size in sizes))
    norm = getattr(nn, f"LazyInstanceNorm{n}d")()
    assert norm(tt.randn(4, *sizes)).shape == (4, *sizes) and norm.num_features == 4


def test_a_mixin_for_modules_of_the_application():
    class Scale(nn.lazy.LazyModuleMixin):
        def __init__(self):
            super().__init__()
            self.scale = nn.UninitializedParameter()
            self.register_buffer("seen", nn.UninitializedBuffer())

        def initialize_parameters(self, x):
            self.scale.materialize(x.shape[-1:])
            self.seen.materialize(x.shape)
            nn.init.ones_(self.scale)

        def forward(self, x):
            return self.scale * x

    m = Scale()
    assert m(tt.ones(3)).tolist() == [1, 1, 1] and not m.has_uninitialized_params()
    assert isinstance(m.scale, nn.Parameter) and list(m.state_dict()) == ["scale", "seen"]


def test_only_lazy_layers_are_lazy():
    for make in (
        lambda: nn.Linear(-2147483647, 3),
        lambda: nn.Conv2d(-2147483647, 3, 1),
        lambda: nn.ConvTranspose1d(-2147483647, 3, 1),
        lambda: nn.BatchNorm1d(-2147483647),
        lambda: nn.InstanceNorm2d(-2147483647),
    ):
        with pytest.raises(
            ValueError, match="(in_features|in_channels|num_features) is -2147483647"
        ):
            make()


def test_functional_calls_of_lazy_layers():
    m, x = nn.Sequential(nn.LazyLinear(3), nn.ReLU()), tt.randn(2, 4)
    given = {"0.weight": tt.ones(3, 4), "0.bias": tt.zeros(3)}
    out = tt.func.functional_call(m, given, (x,))
    assert tt.equal(out, nn.functional.linear(x, tt.ones(3, 4)).relu())
    assert type(m[0]) is nn.LazyLinear and m[0].has_uninitialized_params()
    with pytest.raises(RuntimeError, match="LazyLinear.*bias"):
        tt.func.functional_call(m, {"0.weight": tt.ones(3, 4)}, (x,))
    assert m(x).shape == (2, 3) and type(m[0]) is nn.Linear and m[0].in_features == 4


def test_shallow_copies_of_lazy_layers_share_what_the_first_call_makes():
    m, x = nn.LazyLinear(3), tt.randn(2, 4)
    twin = copy.copy(m)
    out = twin(x)
    assert m.weight is twin.weight and tt.equal(m(x), out)
    assert type(twin) is nn.Linear and not m.has_uninitialized_params()


def test_tensors_that_a_program_gives_a_lazy_layer():
    m = nn.LazyLinear(2)
    weight, bias = m.weight, m.bias
    weight.materialize((2, 5))
    bias.materialize((2,))
    nn.init.ones_(weight)
    nn.init.zeros_(bias)
    state = tt.get_rng_state()
    assert m(tt.ones(1, 5)).tolist() == [[5, 5]] and m.weight is weight and m.in_features == 5
    assert tt.equal(tt.get_rng_state(), state)
    norm = nn.LazyBatchNorm1d(affine=False, track_running_stats=False)
    assert norm(tt.randn(4, 3)).shape == (4, 3) and type(norm) is nn.BatchNorm1d
    without = nn.LazyLinear(2)
    without.bias = None
    assert without(tt.ones(1, 5)).shape == (1, 2) and without.bias is None


def test_the_state_of_a_lazy_layer():
    m, other = nn.Sequential(nn.LazyLinear(3)), nn.Sequential(nn.LazyLinear(3))
    assert str(m.load_state_dict(other.state_dict())) == "<All keys matched successfully>"
    assert m[0].has_uninitialized_params()
    with pytest.raises(RuntimeError, match="uninitialized"):
        nn.Sequential(nn.Linear(2, 3)).load_state_dict(other.state_dict())


def test_adaptive_log_softmax():
    m, x = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10], head_bias=True), tt.randn(6, 8)
    target = tt.tensor([0, 4, 5, 9, 10, 19])
    chances = m.log_prob(x)
    assert tt.allclose(chances.exp().sum(1), tt.ones(6))
    output, loss = m(x, target)
    assert tt.allclose(output, chances.gather(1, target.unsqueeze(1)).squeeze(1), atol=1e-5)
    assert tt.allclose(loss, -output.mean())
    assert m.predict(x).shape == (6,) and m(x[0], target[0]).output.shape == ()
    with pytest.raises(RuntimeError, match=r"\[0, 19\]"):
        m(x, target + 1)
    with pytest.raises(ValueError, match="cutoffs"):
        nn.AdaptiveLogSoftmaxWithLoss(8, 20, [10, 5])


def test_sync_batch_norm_replaces_batch_norms():
    net = nn.Sequential(nn.BatchNorm2d(3), nn.Sequential(nn.BatchNorm1d(2))).eval()
    weight, mean = net[0].weight, net[0].running_mean
    made = nn.SyncBatchNorm.convert_sync_batchnorm(net)
    assert made is net and type(net[1][0]) is nn.SyncBatchNorm
    assert net[0].weight is weight and net[0].running_mean is mean and not net[0].training
    assert net[0](tt.randn(2, 3, 4)).shape == (2, 3, 4)


def test_scale_factors_of_each_dimension():
    x = tt.randn(2, 3, 4, 5)
    assert nn.Upsample(scale_factor=(2, 3))(x).shape == (2, 3, 8, 15)
    assert nn.UpsamplingBilinear2d(scale_factor=(1, 2))(x).shape == (2, 3, 4, 10)
    assert repr(nn.Upsample(scale_factor=2)) == "Upsample(scale_factor=2.0, mode='nearest')"


def test_cross_map_lrn_sums_neighbouring_channels():
    x = tt.randn(2, 6, 3, 3)
    for size, side in ((1, 0), (2, 0), (3, 1), (4, 1), (5, 2)):
        m = nn.CrossMapLRN2d(size, alpha=0.5, beta=0.75, k=2)
        for c in range(6):
            near = x[:, max(0, c - side) : c + side + 1]
            expected = x[:, c] / (2 + 0.5 / size * (near * near).sum(1)) ** 0.75
            assert tt.allclose(m(x)[:, c], expected, atol=1e-6)


# ---- layers that Python extends ----


def test_unpooling_takes_the_size_of_the_result():
    values, indices = nn.MaxPool2d(2, return_indices=True)(tt.randn(2, 4, 6, 6))
    assert nn.MaxUnpool2d(2)(values, indices).shape == (2, 4, 6, 6)
    x = tt.randn(2, 4, 7, 7)
    values, indices = nn.MaxPool2d(2, return_indices=True)(x)
    back = nn.MaxUnpool2d(2)(values, indices, output_size=x.shape)
    assert back.shape == x.shape and tt.equal(back[back != 0], x[back != 0])


def test_fractional_pooling():
    x = tt.randn(2, 4, 6, 6)
    m = nn.FractionalMaxPool2d(2, output_ratio=(0.5, 0.7), _random_samples=tt.rand(2, 4, 2))
    out = m(x)
    assert out.shape == (2, 4, 3, 4) and tt.equal(m(x), out)
    assert tt.equal(copy.deepcopy(m)(x), out) and tt.equal(pickle.loads(pickle.dumps(m))(x), out)
    values, indices = nn.FractionalMaxPool2d(2, output_size=3, return_indices=True)(x)
    assert tt.equal(x.flatten(2).gather(2, indices.flatten(2)), values.flatten(2))
    for bad in ({}, {"output_size": 2, "output_ratio": 0.5}, {"output_ratio": 1.5}):
        with pytest.raises(ValueError):
            nn.FractionalMaxPool2d(2, **bad)


def test_losses_take_numbers():
    chances = tt.randn(10, 2, 5).log_softmax(2)
    targets = tt.tensor([[1, 2, 3], [1, 4, 2]])
    lengths = [tt.tensor([10, 10]), tt.tensor([3, 2])]
    by_tensors = nn.CTCLoss()(chances, targets, *lengths)
    assert nn.CTCLoss()(chances, targets, (10, 10), [3, 2]).item() == by_tensors.item()
    x, y = tt.randn(3), tt.randn(3)
    loss = nn.GaussianNLLLoss()
    assert loss(x, y, 0.5).item() == loss(x, y, tt.full((3,), 0.5)).item()


def test_arguments_that_losses_refuse():
    for make in (
        lambda: nn.TripletMarginLoss(margin=0),
        lambda: nn.TripletMarginWithDistanceLoss(margin=0),
        lambda: nn.MultiMarginLoss(p=3),
        lambda: nn.MultiMarginLoss(weight=tt.ones(2, 2)),
    ):
        with pytest.raises(ValueError):
            make()


def test_embedding_bag_from_pretrained():
    m = nn.EmbeddingBag.from_pretrained(tt.eye(4), mode="max")
    assert m(tt.tensor([[0, 1]])).tolist() == [[1, 1, 0, 0]] and not m.weight.requires_grad
    bounded = nn.EmbeddingBag(10, 3, mode="sum", max_norm=1.0)
    bounded(tt.arange(10), tt.tensor([0, 5]))
    assert (bounded.weight.norm(2.0, 1) <= 1 + 1e-5).all()


def test_dicts_of_parameters_are_dicts():
    m = nn.ParameterDict({"a": tt.ones(2), "b": tt.zeros(3)})
    assert m.get("a") is m["a"] and m.get("c") is None
    assert m.setdefault("c", tt.ones(1)) is m["c"] and isinstance(m["c"], nn.Parameter)
    assert list(reversed(m)) == ["c", "b", "a"] and m.popitem()[0] == "c"
    other = m.copy()
    other |= nn.ParameterDict({"d": tt.ones(1)})
    assert other["a"] is m["a"] and list(other) == ["a", "b", "d"] and len(m) == 2
    assert list(m | nn.ParameterDict({"e": tt.ones(1)})) == ["a", "b", "e"]
    assert list(m.fromkeys(["x", "y"], tt.ones(1)).state_dict()) == ["x", "y"]


def test_a_lazy_layer_is_printed_without_weights():
    layer = nn.LazyLinear(1 << 40)  # 4 TB for each input
    assert repr(layer) == f"LazyLinear(in_features=0, out_features={1 << 40}, bias=True)"
    layer = nn.LazyConv2d(6, 3, groups=3, device="cpu", dtype=tt.float64)
    state = tt.get_rng_state()
    assert repr(layer) == "LazyConv2d(0, 6, kernel_size=(3, 3), stride=(1, 1), groups=3)"
    assert tt.equal(tt.get_rng_state(), state)


def test_lazy_layers_check_dimensions_and_sharing():
    for layer, x in ((nn.LazyConv2d(2, 3), tt.ones(4, 4)), (nn.LazyInstanceNorm1d(), tt.ones(4))):
        with pytest.raises(ValueError, match="must have . or . dimensions"):
            layer(x)
        assert layer.has_uninitialized_params()
    with pytest.raises(RuntimeError, match="uninitialized"):
        nn.LazyLinear(2).share_memory()
