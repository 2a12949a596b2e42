"""__torch_function__: what intercepts functions, by PyTorch's rules. All but the last tests pass
with PyTorch in tt's place, too."""
import pytest
import tt
import tt.nn.functional as F
from tt import mean
from tt.overrides import TorchFunctionMode, handle_torch_function, has_torch_function
from tt.overrides import is_tensor_method_or_property, resolve_name


def duck(answer=None):
    """A class that is no tensor, whose calls are listed in .seen."""

    class Duck:
        seen = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            cls.seen.append((func, types, args, kwargs or {}))
            return answer

    return Duck


def logging(base=tt.Tensor):
    class Logging(base):
        seen = []

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            Logging.seen.append(func)
            return super().__torch_function__(func, types, args, kwargs)

    return Logging


def test_an_object_that_is_no_tensor_intercepts_functions():
    Duck = duck(7)
    d, t = Duck(), tt.ones(2)
    assert mean(d) == 7 and Duck.seen.pop() == (mean, (Duck,), (d,), {})
    assert tt.add(t, d, alpha=2) == 7
    assert Duck.seen.pop() == (tt.add, (Duck,), (t, d), {"alpha": 2})
    assert tt.cat([t, d]) == 7 and Duck.seen.pop()[0] is tt.cat
    assert F.linear(t, d) == 7 and Duck.seen.pop()[0] is F.linear
    assert t + d == 7 and Duck.seen.pop()[0] is tt.Tensor.add
    assert t[d] == 7 and Duck.seen.pop()[0] == tt.Tensor.__getitem__
    assert F.cross_entropy(t, target=d) == 7


@pytest.mark.parametrize(
    "call",
    [
        lambda d, t: tt.exp(d),
        lambda d, t: tt.add(t, d),
        lambda d, t: tt.mul(d, 2),
        lambda d, t: tt.stack((t, d)),
        lambda d, t: t * d,
        lambda d, t: F.linear(t, t, d),
        lambda d, t: t.matmul(d),
        lambda d, t: tt.where(d, t, t),
        lambda d, t: tt.nn.Linear(2, 2)(d),
        lambda d, t: tt.nn.Conv2d(1, 1, 3)(d),
    ],
)
def test_the_first_call_is_intercepted_as_the_others_are(call):
    Duck = duck("found")
    assert call(Duck(), tt.ones(2)) == "found" and len(Duck.seen) == 1
    assert call(Duck(), tt.ones(2)) == "found" and len(Duck.seen) == 2


def test_a_subclass_intercepts_functions_methods_and_attributes():
    Logging = logging()
    x = tt.ones(2, 3).as_subclass(Logging)
    y = x + 1
    assert type(y) is Logging and Logging.seen == [tt.Tensor.add]
    assert (2 * y).sum(0).tolist() == [8, 8, 8]
    tolist = tt.Tensor.tolist
    assert Logging.seen[1:] == [tt.Tensor.mul, tt.Tensor.sum, tolist]
    del Logging.seen[:]
    assert type(F.linear(tt.ones(4, 3), y)) is Logging and Logging.seen == [F.linear]
    assert y.shape == (2, 3) and Logging.seen[1] == tt.Tensor.shape.__get__
    assert type(x.max(1).values) is Logging
    assert type(x.add_(1)) is Logging and type(x.detach()) is Logging


def test_subclasses_are_asked_before_their_bases_and_from_left_to_right():
    order = []

    class Base(tt.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            order.append((cls.__name__, [kind.__name__ for kind in types]))
            return NotImplemented

    class Sub(Base):
        pass

    class Other:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            order.append((cls.__name__, [kind.__name__ for kind in types]))
            return "other"

    base, sub = tt.ones(1).as_subclass(Base), tt.ones(1).as_subclass(Sub)
    assert tt.where(Other(), base, sub) == "other"
    types = ["Other", "Sub", "Base"]
    assert order == [("Other", types)]
    del order[:]
    assert tt.where(base, sub, Other()) == "other"
    types = ["Sub", "Base", "Other"]
    assert order == [("Sub", types), ("Base", types), ("Other", types)]
    with pytest.raises(TypeError, match="Multiple dispatch failed for '.*exp'"):
        tt.exp(base)


def test_tensors_of_other_classes_are_left_to_them():
    First, Second = logging(), logging()
    with pytest.raises(TypeError, match="Multiple dispatch failed"):
        tt.add(tt.ones(1).as_subclass(First), tt.ones(1).as_subclass(Second))


def test_data_beside_a_tensor():
    """PyTorch's example of MetadataTensor."""

    class Metadata:
        def __init__(self, data, metadata=None):
            self._t, self._metadata = tt.as_tensor(data), metadata

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            metadatas = tuple(a._metadata for a in args if hasattr(a, "_metadata"))
            args = [getattr(a, "_t", a) for a in args]
            return cls(func(*args, **(kwargs or {})), metadata=metadatas[0])

    m = Metadata([[1, 2], [3, 4]], metadata={"owner": "Ministry"})
    found = tt.add(tt.tensor([[1, 2], [1, 2]]), m)
    assert found._t.tolist() == [[2, 4], [4, 6]] and found._metadata == {"owner": "Ministry"}
    assert tt.mul(found, m)._t.tolist() == [[2, 8], [12, 24]]


def test_disabling():
    Logging = logging()
    x = tt.ones(2).as_subclass(Logging)
    with tt._C.DisableTorchFunctionSubclass():
        y = x + x
        assert not has_torch_function((x,))
    assert type(y) is tt.Tensor and not Logging.seen and has_torch_function((x,))

    class Plain(tt.Tensor):
        __torch_function__ = tt._C._disabled_torch_function_impl

    p = tt.ones(2).as_subclass(Plain)
    weight = tt.nn.Parameter(tt.ones(1))
    assert type(p + 1) is tt.Tensor and not has_torch_function((p, weight))
    assert has_torch_function((tt.ones(2).as_subclass(type("Kept", (tt.Tensor,), {})),))


def test_modes_see_all_functions():
    seen = []

    class Mode(TorchFunctionMode):
        def __init__(self, name):
            super().__init__()
            self.name = name

        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append((self.name, resolve_name(func).partition(".")[2]))
            return func(*args, **(kwargs or {}))

    x = tt.ones(2, 3)
    with Mode("outer"), Mode("inner"):
        y = tt.mul(x, 2)
    assert y.sum().item() == 12 and seen == [("inner", "mul"), ("outer", "mul")]
    del seen[:]
    layer = tt.nn.Sequential(tt.nn.Linear(3, 2), tt.nn.ReLU(), tt.nn.BatchNorm1d(2))
    with Mode("m"):
        z = layer(x)
        tt.zeros(1)
    names = [name for _, name in seen]
    assert "nn.functional.linear" in names and "zeros" in names
    assert any(name.endswith("batch_norm") for name in names)
    assert any(name.endswith("relu") for name in names)
    del seen[:]
    assert layer[0].weight.grad is None and z.shape == (2, 2) and not seen

    class Halved(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            return out / 2 if func is tt.exp else out

    with Halved():
        assert tt.exp(tt.zeros(1)).item() == 0.5
        with pytest.raises(ZeroDivisionError):
            1 / 0
    assert tt.exp(tt.zeros(1)).item() == 1


def test_functions_of_users_are_overridable():
    def twice(x):
        if has_torch_function((x,)):
            return handle_torch_function(twice, (x,), x)
        return 2 * x

    Duck = duck("found")
    assert twice(Duck()) == "found" and Duck.seen[0][0] is twice
    assert twice(tt.ones(1)).item() == 2

    @tt.overrides.wrap_torch_function(lambda a, b=None: (a, b))
    def join(a, b=None):
        return (a, b)

    assert join(1, b=Duck()) == "found" and join(1) == (1, None)


def test_names():
    assert resolve_name(tt.add).endswith(".add")
    assert resolve_name(tt.Tensor.add).endswith(".Tensor.add")
    assert resolve_name(tt.Tensor.shape.__get__).endswith(".Tensor.shape.__get__")
    assert is_tensor_method_or_property(tt.Tensor.relu)
    assert is_tensor_method_or_property(tt.Tensor.shape.__get__)
    assert not is_tensor_method_or_property(tt.relu)
    found = tt.overrides.get_overridable_functions()
    assert tt.Tensor.add in found[tt.Tensor] and tt.matmul in found[tt]
    assert F.linear in found[F]
    assert tt.is_tensor in tt.overrides.get_ignored_functions()
    assert tt.overrides.get_testing_overrides()[tt.add](1, 2) == -1
    assert tt.overrides.is_tensor_like(duck()()) and not tt.overrides.is_tensor_like(3)


def test_gradients_pass_through_a_subclass():
    Logging = logging()
    w = tt.ones(3, requires_grad=True)
    (w.as_subclass(Logging) * 2).sum().backward()
    assert w.grad.tolist() == [2, 2, 2]


def test_every_layer_meets_a_function_of_its_kind():
    """What a layer computes is the same with and without a mode."""
    from tt.nn import _formulas

    x = {1: tt.randn(2, 4, 8), 2: tt.randn(2, 4, 8, 8), 3: tt.randn(2, 4, 4, 4, 4)}
    nn = tt.nn
    layers = {
        1: [nn.Conv1d(4, 6, 3, padding=1, padding_mode="circular"), nn.ReflectionPad1d(2)],
        2: [
            nn.Conv2d(4, 6, 3, padding="same"),
            nn.Conv2d(4, 6, (3, 5), padding=(1, 2), padding_mode="reflect"),
            nn.ConvTranspose2d(4, 2, 3, stride=2),
            nn.BatchNorm2d(4),
            nn.BatchNorm2d(4, momentum=None),
            nn.BatchNorm2d(4, track_running_stats=False).eval(),
            nn.InstanceNorm2d(4, affine=True, track_running_stats=True),
            nn.GroupNorm(2, 4),
            nn.LayerNorm(8),
            nn.RMSNorm(8),
            nn.MaxPool2d(2),
            nn.AvgPool2d(2, ceil_mode=True, count_include_pad=False),
            nn.AdaptiveAvgPool2d((2, 3)),
            nn.LPPool2d(2, 2),
            nn.Upsample(scale_factor=2, mode="bilinear"),
            nn.PixelShuffle(2),
            nn.ConstantPad2d((1, 0, 2, 1), 3.0),
            nn.ZeroPad2d(1),
            nn.Softmax2d(),
            nn.Softmax(1),
            nn.LeakyReLU(0.3),
            nn.PReLU(4),
            nn.GELU("tanh"),
            nn.Hardtanh(-0.5, 0.25),
            nn.Softplus(2, 3),
            nn.Flatten(),
            nn.Linear(8, 3, bias=False),
            nn.Dropout(0.5).eval(),
            nn.LocalResponseNorm(3),
            nn.Unfold(3, padding=1),
        ],
        3: [nn.MaxPool3d(2), nn.Conv3d(4, 4, 3, groups=2)],
    }
    for dims, those in layers.items():
        for layer in those:
            state = {k: v.clone() for k, v in layer.state_dict().items()}
            expected = layer(x[dims])
            after = {k: v.clone() for k, v in layer.state_dict().items()}
            layer.load_state_dict(state)
            found = _formulas.forward(layer, (x[dims],))
            tt.testing.assert_close(found, expected)
            for name, value in layer.state_dict().items():
                tt.testing.assert_close(value, after[name])


def test_interception_ends_with_the_last_class_that_needs_it():
    import gc

    from tt._interception import switch

    gc.collect()
    before = switch.users
    Logging = logging()
    assert switch.users == before + 1
    with TorchFunctionMode():
        assert switch.users == before + 2
    del Logging
    gc.collect()
    assert switch.users == before


def test_functions_that_are_written_by_hand_keep_their_signatures():
    import inspect

    assert list(inspect.signature(tt.linalg.inv).parameters)[0] == "A"
    assert F.max_pool2d.__name__ == "max_pool2d"


def test_layers_without_a_function_run_in_a_mode():
    class Mode(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    lstm, x = tt.nn.LSTM(3, 4), tt.randn(5, 1, 3)
    expected = lstm(x)[0]
    with Mode():
        assert tt.equal(lstm(x)[0], expected)


def test_operators_and_lists_of_a_subclass():
    """-x has no out, and a list given as several arguments is not given twice."""

    class Passing(tt.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return super().__torch_function__(func, types, args, kwargs or {})

    x = tt.ones(2).as_subclass(Passing)
    assert type(-x) is Passing and (-x).tolist() == [-1, -1]
    assert type(abs(x)) is Passing

    class Model(tt.nn.Module):
        def forward(self, a, b):
            a, b = tt.broadcast_tensors(a, b)
            return a + b

    assert tt.fx.symbolic_trace(Model())(tt.ones(2), tt.ones(3, 2)).shape == (3, 2)
