"""tt.compile: functions whose results require gradients, beside the functions themselves."""
import copy
import gc
import threading

import pytest

import tt
from tt import nn
from tt.nn import functional as F


def info(compiled):
    (entry,) = getattr(compiled, "_compiled", compiled).entries.values()
    return entry.info()


class Attention(nn.Module):
    """Causal attention with dropout, whose tokens and logits share one matrix; returns the loss,
    too."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(20, 16)
        self.positions = nn.Embedding(8, 16)
        self.norm = nn.LayerNorm(16)
        self.projections = nn.Linear(16, 48)
        self.logits = nn.Linear(16, 20, bias=False)
        self.logits.weight = self.tokens.weight

    def forward(self, x):
        h = self.tokens(x) + self.positions(tt.arange(x.shape[1]))
        heads = [
            t.view(*x.shape, 2, 8).transpose(1, 2)
            for t in self.projections(self.norm(h)).split(16, -1)
        ]
        mixed = F.scaled_dot_product_attention(*heads, is_causal=True, dropout_p=0.2)
        logits = self.logits(h + mixed.transpose(1, 2).reshape(h.shape))
        return logits, F.cross_entropy(logits.view(-1, 20), x.roll(-1, 1).view(-1))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(20, 8)
        self.layers = nn.LSTM(8, 12, 2, batch_first=True, dropout=0.1)

    def forward(self, x):
        out, (h, _) = self.layers(self.tokens(x))
        return {"out": out, "last": (h[-1], None), "longest": out.argmax(1)}


class Pieces(nn.Module):
    """Results that share memory, one that is not used, and one of integers."""

    def __init__(self):
        super().__init__()
        self.both = nn.Linear(10, 6)
        self.unused = nn.Linear(10, 3)

    def forward(self, x):
        mean, scale = self.both(x).chunk(2, 1)
        return mean, scale, self.unused(x), x.argmax(1)


class Autocast(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = convolutions()

    def forward(self, x):
        with tt.autocast("cpu", dtype=tt.bfloat16):
            return self.layers(x).float()


def convolutions():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3),
        nn.Sigmoid(),
        nn.Flatten(),
        nn.Linear(16 * 9, 10),
    )


def mlp():
    return nn.Sequential(nn.Linear(10, 32), nn.GELU(), nn.Dropout(0.3), nn.Linear(32, 5))


def square(out):
    return out.square().mean()


def rows(k):
    return tt.randn(16, 10)


def images(k):
    return tt.randn(4, 3, 10, 10)


def tokens(k):
    return tt.randint(0, 20, (3, 8))


CASES = {
    "mlp": (mlp, rows, square),
    "float64": (lambda: mlp().double(), lambda k: rows(k).double(), square),
    "inputs that require gradients": (mlp, lambda k: rows(k).requires_grad_(), square),
    "inputs with a history": (mlp, lambda k: rows(k).requires_grad_() * 2, square),
    "convolutions": (convolutions, images, square),
    "channels last": (
        lambda: convolutions().to(memory_format=tt.channels_last),
        lambda k: images(k).to(memory_format=tt.channels_last),
        square,
    ),
    "autocast": (Autocast, images, square),
    "attention": (Attention, tokens, lambda out: out[1] + out[0].square().mean()),
    "recurrent": (
        Recurrent,
        tokens,
        lambda out: out["out"].square().mean() + out["last"][0].sin().sum(),
    ),
    "pieces": (Pieces, rows, lambda out: out[0].sum() + out[1].exp().mean() + out[3].sum()),
}


@pytest.mark.parametrize("name", CASES)
def test_losses_and_gradients_have_eager_bits(name):
    make, data, loss_of = CASES[name]
    tt.manual_seed(1)
    plain = make()
    other = copy.deepcopy(plain)
    compiled = tt.compile(other)
    optimizers = [tt.optim.SGD(m.parameters(), lr=0.05, momentum=0.9) for m in (plain, other)]
    for k in range(6):
        tt.manual_seed(k)
        x = data(k)
        losses = []
        for m, optimizer in zip((plain, compiled), optimizers):
            tt.manual_seed(k + 100)
            optimizer.zero_grad()
            losses.append(loss_of(m(x)))
            losses[-1].backward(retain_graph=x.grad_fn is not None)
            optimizer.step()
        assert losses[0].equal(losses[1])
        for a, b in zip(plain.parameters(), other.parameters()):
            assert (a.grad is None) == (b.grad is None)
            assert a.grad is None or a.grad.equal(b.grad)
            assert a.equal(b)
        assert all(a.equal(b) for a, b in zip(plain.buffers(), other.buffers()))
    assert info(compiled)[1:] == (5, 1, None)


def warm(function, *args):
    for _ in range(2):
        function(*args).sum().backward()


def test_a_gradient_in_another_order_of_elements():
    """It is copied, so sums may round differently."""
    layer = nn.Linear(10, 6)
    compiled = tt.compile(layer)
    x, weights = tt.randn(16, 10), tt.randn(6, 16)
    warm(compiled, x)
    for m in (layer, compiled):
        layer.zero_grad()
        (m(x).transpose(0, 1) * weights).sum().backward()
        if m is layer:
            wanted = [p.grad for p in layer.parameters()]
    for p, grad in zip(layer.parameters(), wanted):
        tt.testing.assert_close(p.grad, grad, rtol=1e-6, atol=1e-6)


def test_a_result_without_a_gradient_adds_no_nan():
    """Its terms are zeros, times infinity in these: the function computes the gradients again."""
    for other in (lambda x: x.abs().sqrt(), lambda x: (x - 1).log()):
        compiled = tt.compile(lambda x: (x.pow(2).sum(), other(x)))
        for _ in range(3):
            x = tt.tensor([0.0, 1.0], requires_grad=True)
            compiled(x)[0].backward()
            assert x.grad.tolist() == [0, 2]
        assert info(compiled)[1] == 2


def test_functions_of_the_application():
    """Their backward runs in each call: none is recorded."""
    steps = []

    class Scaled(tt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            steps.append(1)
            return grad * tt.rand(())

    compiled = tt.compile(lambda x: Scaled.apply(x * 3))
    seen = set()
    for k in range(4):
        x = tt.ones(2, requires_grad=True)
        compiled(x).sum().backward()
        seen.add(x.grad[0].item())
    assert len(steps) == len(seen) == 4 and "application" in info(compiled)[3]


def test_an_input_that_becomes_a_leaf():
    compiled = tt.compile(lambda x: (x.requires_grad_() * x).sum())
    for _ in range(3):
        x = tt.ones(2)
        compiled(x).backward()
        assert x.grad.tolist() == [2, 2]


def test_a_written_input():
    """As a running average that the function keeps in an argument."""
    w = tt.ones(3, requires_grad=True)

    def blended(state, x):
        with tt.no_grad():
            state.mul_(0.5).add_(x)
        return (w * state * x).sum()

    compiled = tt.compile(blended)
    states = [tt.zeros(3), tt.zeros(3)]
    for k in range(4):
        found = []
        for f, state in zip((blended, compiled), states):
            w.grad = None
            f(state, tt.full((3,), k + 1.0)).backward()
            found.append(w.grad)
        assert found[0].equal(found[1]) and states[0].equal(states[1])
    assert info(compiled)[1] == 3


def test_gradients_that_are_always_zero():
    x = tt.randn(1, 1, 3, 3, requires_grad=True)
    grid = tt.zeros(1, 2, 2, 2, requires_grad=True)
    nearest = tt.compile(lambda x, g: F.grid_sample(x, g, mode="nearest", align_corners=False))
    for _ in range(3):
        grid.grad = None
        nearest(x, grid).sum().backward()
        assert grid.grad.equal(tt.zeros(1, 2, 2, 2))


def test_recorded_gradients():
    """As those of a gradient penalty: the function runs again."""
    tt.manual_seed(1)
    plain = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 5))
    other = copy.deepcopy(plain)
    compiled = tt.compile(other)
    x = tt.randn(4, 10)
    for _ in range(4):
        for m in (plain, compiled):
            points = x.clone().requires_grad_()
            (gradient,) = tt.autograd.grad(m(points).sum(), points, create_graph=True)
            (gradient.norm() - 1).square().backward()
        for a, b in zip(plain.parameters(), other.parameters()):
            assert a.grad.equal(b.grad) if a.grad is not None else b.grad is None
    assert info(compiled)[1] == 3
    points = x.clone().requires_grad_()
    out = compiled(points).sum()
    with tt.no_grad():
        other[2].bias.fill_(2)
    with pytest.raises(RuntimeError, match="written in place"):
        tt.autograd.grad(out, points, create_graph=True)


def test_a_penalty_inside():
    tt.manual_seed(1)
    plain = nn.Sequential(nn.Linear(10, 8), nn.Tanh(), nn.Linear(8, 1))
    other = copy.deepcopy(plain)

    def penalty(layers, x):
        points = x.detach().requires_grad_()
        out = layers(points)
        (gradient,) = tt.autograd.grad(out.sum(), points, create_graph=True)
        return out.mean() + (gradient.norm(dim=1) - 1).square().mean()

    compiled = tt.compile(lambda x: penalty(other, x))
    for _ in range(4):
        x = tt.randn(6, 10)
        penalty(plain, x).backward()
        compiled(x).backward()
        assert all(a.grad.equal(b.grad) for a, b in zip(plain.parameters(), other.parameters()))
    assert info(compiled)[1] == 3


def test_transforms_of_a_compiled_function():
    tt.manual_seed(1)
    w = tt.randn(10, requires_grad=True)

    def plain(x):
        return (x @ w).tanh().sum()

    compiled = tt.compile(plain)
    x, tangent = tt.randn(4, 10), tt.randn(4, 10)
    warm(compiled, x.clone().requires_grad_())
    warm(compiled, x[0].clone().requires_grad_())
    assert tt.func.grad(compiled)(x).equal(tt.func.grad(plain)(x))
    tt.testing.assert_close(tt.func.hessian(compiled)(x[0]), tt.func.hessian(plain)(x[0]))
    samples = tt.func.vmap(tt.func.grad(plain))(x)
    tt.testing.assert_close(tt.func.vmap(tt.func.grad(compiled))(x), samples)
    for got, want in zip(*(tt.func.jvp(f, (x,), (tangent,)) for f in (compiled, plain))):
        tt.testing.assert_close(got, want)


def test_hooks():
    """Of modules, which are called in each call; of leaves and results, as ever."""
    tt.manual_seed(1)
    plain = nn.Sequential(nn.Linear(10, 8), nn.Tanh(), nn.Linear(8, 5))
    other = copy.deepcopy(plain)
    compiled = tt.compile(other)
    x = tt.randn(4, 10)
    warm(compiled, x)
    other.zero_grad()
    calls = []
    for m in (plain, other):
        m[0].weight.register_hook(lambda g: g * 2)
        m[2].bias.register_post_accumulate_grad_hook(lambda p: calls.append("leaf"))
    for _ in range(3):
        for m in (plain, compiled):
            out = m(x)
            out.register_hook(lambda g: g * 3)
            out.square().sum().backward()
    assert all(a.grad.equal(b.grad) for a, b in zip(plain.parameters(), other.parameters()))
    assert calls == ["leaf"] * 6
    other[0].register_full_backward_hook(lambda *_: calls.append("module"))
    for _ in range(3):
        compiled(x).square().sum().backward()
    assert calls.count("module") == 3


def test_what_gradients_need_must_not_change():
    layers = nn.Sequential(nn.Linear(10, 8), nn.Sigmoid())
    compiled = tt.compile(layers)
    x = tt.randn(4, 10)
    warm(compiled, x)
    loss = compiled(x).sum()
    with tt.no_grad():
        layers[0].weight.mul_(2)
    loss.backward()  # needs the input and the result alone
    out = compiled(x)
    out.mul_(2)
    with pytest.raises(RuntimeError, match="written in place"):
        out.sum().backward()
    y = x.clone()
    loss = compiled(y).sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match="written in place"):
        loss.backward()


def test_a_loss_whose_backward_has_run():
    """A step that returns its loss, not detached, is replayed."""
    w = tt.ones(3, requires_grad=True)
    optimizer = tt.optim.SGD([w], lr=0.1)

    @tt.compile
    def step(x):
        optimizer.zero_grad()
        loss = (w * x).exp().sum()
        loss.backward()
        optimizer.step()
        return loss

    losses = [step(tt.ones(3)) for _ in range(4)]
    assert info(step)[1:] == (3, 1, None)
    assert all(a.item() > b.item() for a, b in zip(losses, losses[1:]))
    for loss in losses:
        assert loss.requires_grad and loss.grad_fn is not None
        with pytest.raises(RuntimeError, match="freed"):
            loss.backward()


def test_a_function_of_its_own_results():
    """Gradients through the input of a call are not its own."""
    tt.manual_seed(1)
    plain = nn.Sequential(nn.Linear(6, 6), nn.Tanh())
    cell = nn.LSTMCell(6, 6)
    others = copy.deepcopy((plain, cell))
    compiled = [tt.compile(m) for m in others]

    def loss_of(layer, cell, x):
        h = c = tt.zeros(4, 6)
        for _ in range(3):
            h, c = cell(layer(x), (layer(h), c))
        return h.square().sum() + layer(layer(c)).sum()

    for k in range(5):
        tt.manual_seed(k)
        x = tt.randn(4, 6)
        for m in (*others, plain, cell):
            m.zero_grad()
        loss_of(plain, cell, x).backward()
        loss_of(*compiled, x).backward()
        for a, b in zip((plain, cell), others):
            for p, q in zip(a.parameters(), b.parameters()):
                tt.testing.assert_close(p.grad, q.grad, rtol=1e-6, atol=1e-6)
    assert info(compiled[1])[1] > 10
    points = tt.randn(4, 6, requires_grad=True)
    found = []
    for layer in (plain, compiled[0]):
        (first,) = tt.autograd.grad(layer(layer(points)).sum(), points, create_graph=True)
        found.append(tt.autograd.grad(first.square().sum(), [points, *layer.parameters()]))
    for a, b in zip(*found):
        tt.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_the_function_may_go_first():
    layer = nn.Linear(10, 5)
    compiled = tt.compile(layer)
    x = tt.randn(4, 10)
    warm(compiled, x)
    layer.zero_grad()
    loss = compiled(x).square().sum()
    del compiled
    gc.collect()
    loss.backward()
    found = layer.weight.grad
    layer.zero_grad()
    layer(x).square().sum().backward()
    assert found.equal(layer.weight.grad)


def test_threads():
    tt.manual_seed(1)
    layer = nn.Linear(10, 5)
    compiled = tt.compile(layer)
    x = tt.randn(64, 10)
    warm(compiled, x)
    parameters = list(layer.parameters())
    wanted = tt.autograd.grad(layer(x).square().sum(), parameters)
    differing = []

    def run():
        for _ in range(100):
            found = tt.autograd.grad(compiled(x).square().sum(), parameters)
            differing.extend(1 for a, b in zip(found, wanted) if not a.equal(b))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not differing


def test_copies():
    compiled = tt.compile(nn.Sequential(nn.Linear(10, 5), nn.ReLU()))
    x = tt.randn(4, 10)
    warm(compiled, x)
    other = copy.deepcopy(compiled)
    compiled._orig_mod[0].weight.data.zero_()
    warm(other, x)
    assert other(x).abs().sum() > 0 and info(other)[1:] == (2, 1, None)
    assert list(other.state_dict()) == list(compiled.state_dict())


def test_sparse_gradients():
    """Are not recorded."""
    compiled = tt.compile(nn.Embedding(10, 4, sparse=True))
    for _ in range(3):
        compiled.zero_grad()
        compiled(tt.tensor([1, 2, 2])).sum().backward()
        assert compiled.weight.grad.is_sparse
        assert compiled.weight.grad.to_dense().sum(1).tolist() == [0, 4, 8] + [0] * 7


def test_dynamic_sizes():
    tt.manual_seed(1)
    plain = nn.Sequential(nn.Linear(10, 8), nn.Tanh(), nn.Linear(8, 5))
    other = copy.deepcopy(plain)
    compiled = tt.compile(other, dynamic=True)
    for k in range(2, 12):
        x = tt.randn(k, 10)
        for m in (plain, compiled):
            m(x).square().mean().backward()
        assert all(a.grad.equal(b.grad) for a, b in zip(plain.parameters(), other.parameters()))
    assert info(compiled)[1:3] == (7, 3)
