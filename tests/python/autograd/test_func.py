"""tt.func: gradients, Jacobian matrices, vmap and functional_call, nested as PyTorch's users do."""
import copy
from collections import defaultdict, deque

import pytest

import tt
from tt import func, nn

close = tt.testing.assert_close


def randn(*shape):
    return tt.randn(*shape, dtype=tt.float64)


@pytest.fixture(autouse=True)
def seeded():
    tt.manual_seed(0)


def product(x, w):
    return (x @ w).tanh()


# ---- gradients ----


def test_grad_of_structures():
    params = {"w": randn(3), "parts": [randn(3), randn(3)]}

    def f(p, scale):
        return (p["w"] ** 2 * scale + p["parts"][1] * p["parts"][0]).sum()

    found = func.grad(f)(params, 3.0)
    close(found["w"], 6 * params["w"])
    close(found["parts"], [params["parts"][1], params["parts"][0]])
    both = func.grad(lambda a, b: (a * b).sum(), argnums=(0, 1))(*params["parts"])
    close(both, (params["parts"][1], params["parts"][0]))
    g, value = func.grad_and_value(lambda a: (a**2).sum())(params["w"])
    close((g, value), (2 * params["w"], (params["w"] ** 2).sum()))
    g, aux = func.grad(lambda a: ((a**2).sum(), {"twice": a * 2}), has_aux=True)(params["w"])
    close(aux["twice"], 2 * params["w"])
    assert not aux["twice"].requires_grad and not g.requires_grad


def test_gradients_may_be_nested():
    x = randn(4)
    third = func.grad(lambda t: func.grad(lambda u: func.grad(lambda v: v**4)(u))(t))
    close(third(x[0]), 24 * x[0])
    close(func.hessian(lambda t: (t**3).sum())(x), tt.diag(6 * x))
    hvp = func.jvp(func.grad(lambda t: (t**3).sum()), (x,), (tt.ones_like(x),))[1]
    close(hvp, 6 * x)


def test_captured_parameters_get_gradients():
    w = randn(3).requires_grad_()
    x = randn(3)
    found = func.grad(lambda t: (t**2 * w).sum())(x)
    found.sum().backward()
    close(w.grad, 2 * x)
    with tt.no_grad():
        assert not func.grad(lambda t: (t**2 * w).sum())(x).requires_grad
    y = x.clone().requires_grad_()
    func.grad(lambda t: (t**3).sum())(y).sum().backward()
    close(y.grad, 6 * x)


def test_matrices_and_products():
    x, w = randn(3, 4), randn(4, 2)
    rev = func.jacrev(product, argnums=(0, 1))(x, w)
    assert [m.shape for m in rev] == [(3, 2, 3, 4), (3, 2, 4, 2)]
    close(func.jacfwd(product, argnums=(0, 1))(x, w), rev)
    out, back = func.vjp(product, x, w)
    v = randn(3, 2)
    close(back(v), (tt.tensordot(v, rev[0], 2), tt.tensordot(v, rev[1], 2)))
    out, forward = func.jvp(product, (x, w), (x, w))
    close(forward, tt.tensordot(rev[0], x, 2) + tt.tensordot(rev[1], w, 2))
    close(func.linearize(product, x, w)[1](x, w), forward)
    (rows,) = func.vmap(back, in_dims=0)(tt.eye(6, dtype=tt.float64).reshape(6, 3, 2))[:1]
    close(rows.reshape(3, 2, 3, 4), rev[0])
    matrices, aux = func.jacrev(lambda t: ({"a": t * 2}, t.sum()), has_aux=True)(x[0])
    close(matrices["a"], 2 * tt.eye(4, dtype=tt.float64))
    close(aux, x[0].sum())


def test_linearize_calls_the_function_twice():
    x, w = randn(3, 4), randn(4, 2)
    calls = []

    def layer(d, w):
        calls.append(1)
        return {
            "out": tt.softmax(d["x"] @ w, -1),
            "x": d["x"],
            "constant": tt.ones(2),
            "best": w.argmax(),
        }

    out, directional = func.linearize(layer, {"x": x}, w)
    for dx, dw in ((randn(3, 4), randn(4, 2)), (x, w)):
        found = directional({"x": dx}, dw)
        want = func.jvp(layer, ({"x": x}, w), ({"x": dx}, dw))
        close(out["out"], want[0]["out"])
        close(found["out"], want[1]["out"])
        assert found["x"].tolist() == dx.tolist() and found["constant"].tolist() == [0, 0]
        assert found["best"].item() == 0
    assert len(calls) == 4 and not found["out"].requires_grad
    columns = func.vmap(func.linearize(lambda x: (x**3).sum(0), x)[1])(tt.stack([x, x + 1]))
    close(columns, tt.stack([3 * x**3, 3 * x**2 * (x + 1)]).sum(1))
    leaf, scale = x.clone().requires_grad_(), randn(4).requires_grad_()
    func.linearize(lambda x: x**3 * scale, leaf)[1](x).sum().backward()
    close(leaf.grad, (6 * x**2 * scale).detach())
    func.linearize(lambda x: x * scale, x)[1](x).sum().backward()
    close(scale.grad, (3 * x**3 + x).sum(0))
    nested = func.jvp(lambda x: func.linearize(lambda x: x**3, x)[1](x), (x,), (x,))
    close(nested, (3 * x**3, 9 * x**3))
    for tangents, message in (((x[0],), "shape"), ((x, x), "2 items"), ((x.float(),), "float32")):
        with pytest.raises(RuntimeError, match=message):
            func.linearize(tt.exp, x)[1](*tangents)


def test_wrong_calls():
    x = randn(3)
    for call, error, message in (
        (lambda: func.grad(lambda t: t)(x), RuntimeError, "without dimensions"),
        (lambda: func.grad(lambda t: 1.0)(x), RuntimeError, "one Tensor"),
        (lambda: func.grad(lambda t: t.sum(), argnums=1)(x), RuntimeError, "argnums"),
        (lambda: func.grad(lambda t: t.sum(), argnums=(0, 0))(x), RuntimeError, "differ"),
        (lambda: func.grad(lambda t: t.sum(), argnums=[0])(x), RuntimeError, "tuple"),
        (lambda: func.jacrev(lambda t: t, chunk_size=0)(x), ValueError, "chunk_size"),
        (lambda: func.jvp(lambda t: t, x, x), RuntimeError, "tuples"),
        (lambda: func.jvp(lambda t: 3.0, (x,), (x,)), RuntimeError, "float"),
        (lambda: func.jvp(lambda t: (), (x,), (x,)), RuntimeError, "no tensors"),
        (lambda: func.jacfwd(lambda t: t)(tt.tensor([1])), ValueError, "int64"),
        (lambda: func.vmap(lambda t: 3.0)(x), ValueError, "float"),
        (lambda: func.grad(lambda t: t)(1.0), ValueError, "tensors"),
        (lambda: func.jvp(lambda t: t, (x,), (x[:2],)), ValueError, "tangent 0"),
        (lambda: func.vjp(lambda t: t, x)[1](x[:2]), RuntimeError, "shape"),
        (lambda: func.vmap(lambda t: t, in_dims=1)(x), ValueError, "in_dims"),
        (lambda: func.vmap(lambda t: t, in_dims=None)(x), ValueError, "in_dims"),
        (lambda: func.vmap(lambda a, b: a)(x, x[:2]), ValueError, "must be equal"),
        (lambda: func.vmap(lambda t: t, randomness="some")(x), RuntimeError, "randomness"),
        (lambda: func.grad(lambda t: 1 / 0)(x), ZeroDivisionError, ""),
        (lambda: func.vjp(lambda t: 1.0, x), RuntimeError, "float"),
        (lambda: func.vjp(lambda t: t.argmax(), x), RuntimeError, "int64"),
        (lambda: func.vjp(lambda t: (t, t), x)[1]([x, x]), RuntimeError, "list"),
        (lambda: func.vjp(lambda t: {"a": t}, x)[1]({"b": x}), RuntimeError, "keys"),
        (lambda: func.jvp(lambda t: t["a"], ({"a": x},), ([x],)), RuntimeError, "list"),
        (lambda: func.vmap(lambda t: t, out_dims=None)(x), ValueError, "differs"),
        (lambda: func.vmap(lambda t: t, out_dims="0")(x), ValueError, "out_dims"),
        (lambda: func.vmap(lambda t: tt.tensor(t.tolist()))(x[None]), RuntimeError, "vmap"),
        (lambda: func.vmap(lambda t: tt.from_numpy(t.numpy()))(x[None]), RuntimeError, "vmap"),
        (lambda: func.functional_call(nn.Tanh(), [x], x), ValueError, "dicts"),
    ):
        with pytest.raises(error, match=message):
            call()


def sine_of_product(w):
    return lambda x: (x * w).sin()


@pytest.mark.parametrize(
    "inner",
    [
        lambda f, x: func.grad(lambda x: f(x).sum())(x),
        lambda f, x: func.vjp(f, x)[1](x)[0],
        lambda f, x: func.vjp(f, x)[0],
        lambda f, x: func.jacrev(f)(x),
        lambda f, x: func.jacfwd(f)(x),
        lambda f, x: func.jvp(f, (x,), (x,))[1],
        lambda f, x: func.hessian(lambda x: f(x).sum())(x),
    ],
)
def test_inner_transforms_depend_on_tensors_of_outer_ones(inner):
    """The function of the inner transform uses a tensor that the outer one, or a backward, differs
    by, and which is no argument of it."""
    x, w, direction = randn(3), randn(3), randn(3)
    plain = lambda w: inner(sine_of_product(w), x)
    step = 1e-6
    slope = (plain(w + step * direction) - plain(w - step * direction)) / (2 * step)
    want = slope.sum()
    gradient = func.grad(lambda w: plain(w).sum())(w)
    close(gradient @ direction, want, rtol=1e-6, atol=1e-7)
    assert not gradient.requires_grad
    close(func.jvp(plain, (w,), (direction,))[1], slope, rtol=1e-6, atol=1e-7)
    close(func.jacrev(plain)(w), func.jacfwd(plain)(w))
    leaf = w.clone().requires_grad_()
    plain(leaf).sum().backward()
    close(leaf.grad, gradient)
    assert not func.hessian(lambda w: plain(w).sum())(w).requires_grad


def test_structures_of_cotangents_and_tangents():
    """Dicts are paired by their keys, not in the order in which these were set."""
    x, a, b = randn(3), randn(3), randn(3)
    pull_back = func.vjp(lambda x: {"two": 2 * x, "three": 3 * x}, x)[1]
    close(pull_back({"three": b, "two": a})[0], 2 * a + 3 * b)
    times = lambda d: d["x"] * d["y"]
    close(func.jvp(times, ({"x": a, "y": b},), ({"y": x, "x": a},))[1], a * b + a * x)
    close(func.linearize(times, {"x": a, "y": b})[1]({"y": x, "x": a}), a * b + a * x)
    found = func.grad(lambda d: (d["x"] * d["y"]).sum())(defaultdict(list, y=b, x=a))
    assert type(found) is defaultdict and found.default_factory is list
    close(found["x"], b)
    pair = func.grad(lambda d: (d[0] * d[1]).sum())(deque([a, b], maxlen=2))
    assert type(pair) is deque and pair.maxlen == 2
    close(pair[1], a)


def filled_at_random(x):
    y = tt.zeros(3, dtype=tt.float64)
    y[0] = x[0]
    return (y + x) * tt.rand(())


def test_random_numbers_of_functions_that_fill_tensors():
    x = randn(3)
    with pytest.raises(tt.TtError, match="random"):
        func.jacfwd(filled_at_random)(x)
    same = func.jacfwd(filled_at_random, randomness="same")(x).diagonal()
    assert same[0] == 2 * same[1] and same[1] == same[2]
    different = func.jacfwd(filled_at_random, randomness="different")(x).diagonal()
    assert different[1] != different[2]


def test_vjp_records_as_its_caller_does():
    w, x = randn(3).requires_grad_(), randn(3)
    out, product = func.vjp(lambda a: (a * w).sin().sum(), x)
    assert product(tt.ones_like(out))[0].requires_grad
    with tt.no_grad():
        assert not product(tt.ones_like(out))[0].requires_grad
    with pytest.raises(ValueError, match="floating"):
        func.vjp(lambda a, i: a * i, x, tt.tensor(2))


def test_forward_mode_of_functions_that_fill_tensors():
    def filled(x):
        y = tt.zeros(3, dtype=tt.float64)
        y[0] = x[0] * x[1]
        y[1:] = x[1:].sin()
        return y

    x = randn(3)
    want = func.jacrev(filled)(x)
    close(func.jacfwd(filled)(x), want)
    close(
        func.hessian(lambda x: (filled(x) ** 2).sum())(x).T,
        func.jacrev(func.grad(lambda x: (filled(x) ** 2).sum()))(x),
    )
    matrix, aux = func.jacfwd(lambda x: (filled(x), x * 2), has_aux=True)(x)
    close(matrix, want)
    close(aux, x * 2)
    vectorized = tt.autograd.functional.jacobian(
        lambda x: (filled(x), x.sum()), x, vectorize=True, strategy="forward-mode"
    )
    assert type(vectorized) is tuple
    close(vectorized[0], want)


# ---- vmap ----

BATCHED = [
    lambda a, b: a * b + a,
    lambda a, b: a @ b,
    lambda a, b: a @ b[0],
    lambda a, b: a.sum() * b.mean(0),
    lambda a, b: tt.cat([a, b]).softmax(-1),
    lambda a, b: tt.stack([a, b], 1)[:, 0, 1:],
    lambda a, b: a.reshape(-1).unsqueeze(0).expand(2, 9).transpose(0, 1),
    lambda a, b: nn.functional.linear(a, b, b[0]),
    lambda a, b: nn.functional.layer_norm(a, (3,), b[0], b[1]),
    lambda a, b: tt.where(a > 0, a, b).max(1).values,
    lambda a, b: a.sort(0).values.cumsum(1).flip(0).roll(1, 1),
    lambda a, b: a.var() + b.std(0) + a.amax(1),
    lambda a, b: tt.einsum("ij,kj->ik", a, b).logsumexp(1),
    lambda a, b: a[0, 0] * b + a.norm(),
    lambda a, b: nn.functional.cross_entropy(a, tt.tensor([0, 2, 1])),
    lambda a, b: (a * b).mul_(2).add_(b),
    lambda a, b: a.tril().T.diagonal() + b.trace(),
    lambda a, b: nn.functional.max_pool2d(a[None, None], 2),
    lambda a, b: nn.functional.conv2d(a[None, None], b[None, None], b[0, :1], padding=1),
]


@pytest.mark.parametrize("number", range(len(BATCHED)))
def test_vmap_is_a_loop_over_samples(number):
    f = BATCHED[number]
    a, b = randn(4, 3, 3), randn(4, 3, 3)
    expected = tt.stack([f(x, y) for x, y in zip(a, b)])
    close(func.vmap(f)(a, b), expected)
    close(func.vmap(f, in_dims=(2, 0), out_dims=-1)(a.permute(1, 2, 0), b).movedim(-1, 0), expected)
    close(func.vmap(f, in_dims=(0, None))(a, b[0]), tt.stack([f(x, b[0]) for x in a]))
    close(func.vmap(f, in_dims=(None, 0))(a[0], b), tt.stack([f(a[0], y) for y in b]))


@pytest.mark.parametrize("number", range(len(BATCHED)))
def test_gradients_of_samples(number):
    f = BATCHED[number]
    a, b = randn(4, 3, 3), randn(4, 3, 3)

    def loss(x, y):
        return (f(x, y) ** 2).sum()

    g = func.grad(loss, argnums=(0, 1))
    found = func.vmap(g)(a, b)
    expected = [g(x, y) for x, y in zip(a, b)]
    for k in (0, 1):
        close(found[k], tt.stack([e[k] for e in expected]))
    found = func.vmap(g, in_dims=(0, None))(a, b[0])
    close(found[1], tt.stack([g(x, b[0])[1] for x in a]))


def test_vmap_may_be_nested():
    a, b = randn(3, 2), randn(4, 2)
    outer = func.vmap(func.vmap(lambda x, y: x @ y, in_dims=(None, 0)), in_dims=(0, None))
    close(outer(a, b), a @ b.T)
    hessians = func.vmap(func.hessian(lambda x: (x**3).sum()))(a)
    close(hessians, tt.stack([tt.diag(6 * x) for x in a]))
    inner = func.grad(lambda x: func.vmap(lambda r: (r**2).sum())(x).sum())(a)
    close(inner, 2 * a)


def test_vmap_of_structures_and_chunks():
    x = randn(5, 2)
    found = func.vmap(lambda d, k: {"out": d["x"] * k, "n": tt.ones(3)}, in_dims=({"x": 0}, None))(
        {"x": x}, 2.0
    )
    close(found["out"], 2 * x)
    assert found["n"].shape == (5, 3)
    close(func.vmap(lambda r: r.sum(), chunk_size=2)(x), x.sum(1))
    close(func.vmap(lambda r, k=None: r * k, chunk_size=2)(x, k=x), x[:, None] * x)
    close(tt.vmap(lambda r: (r, tt.ones(3)), out_dims=(1, None))(x)[0], x.T)
    close(tt.vmap(lambda r: r.sum(), out_dims=(0,))(x), x.sum(1))


def test_vmap_keeps_named_results():
    x = randn(4, 3)
    largest = func.vmap(lambda row: row.max(0))(x)
    assert type(largest) is type(x.max(1)) and largest.indices.tolist() == x.argmax(1).tolist()
    values, indices = func.vmap(lambda row: {"best": row.topk(2)})(x)["best"]
    assert values.tolist() == x.topk(2).values.tolist() and indices.shape == (4, 2)


def test_random_numbers_in_vmap():
    x = tt.zeros(4, 3)

    def draw(r):
        return r + tt.rand_like(r)

    with pytest.raises(ValueError, match="randomness"):
        func.vmap(draw)(x)
    same = func.vmap(draw, randomness="same")(x)
    assert bool((same == same[0]).all())
    different = func.vmap(draw, randomness="different")(x)
    assert different.unique().numel() == 12
    for f in (tt.bernoulli, tt.normal, lambda r: nn.functional.dropout(r + 1), tt.Tensor.uniform_):
        loops = counted(func.vmap(f, randomness="different"), tt.full((50, 40), 0.5))
        assert loops < 40
    drawn = func.vmap(lambda r: r + tt.rand(3), randomness="different")(x)
    assert drawn.unique().numel() == 12


def test_what_vmap_refuses():
    x, kept = randn(3, 2), []
    with pytest.raises(ValueError, match="all samples share"):
        func.vmap(lambda r: tt.zeros(2, dtype=tt.float64).add_(r))(x)
    with pytest.raises(RuntimeError, match="vmap"):
        func.vmap(lambda r: r.sum().item())(x)
    func.vmap(lambda r: kept.append(r) or r)(x)
    with pytest.raises(ValueError, match="has ended"):
        kept[0] + 1


# ---- modules ----


def test_functional_call_uses_other_tensors():
    model = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Linear(5, 1)).eval()
    other = copy.deepcopy(model)
    with tt.no_grad():
        for p in other.parameters():
            p.mul_(2).add_(0.1)
    x = tt.randn(3, 4)
    params = {name: p.detach().clone() for name, p in other.named_parameters()}
    before = model(x)
    close(func.functional_call(model, params, x), other(x))
    close(model(x), before)
    grads = func.grad(lambda p: func.functional_call(model, p, (x,)).sum())(params)
    other(x).sum().backward()
    for name, p in other.named_parameters():
        close(grads[name], p.grad)
    close(func.functional_call(model, {"none": x}, x), model(x))
    with pytest.raises(RuntimeError, match="unexpected keys: other"):
        func.functional_call(model, {**params, "other": x}, x, strict=True)
    with pytest.raises(RuntimeError, match="missing keys: 0.weight"):
        func.functional_call(model, {"0.bias": params["0.bias"]}, x, strict=True)
    attention = nn.MultiheadAttention(4, 2)
    zeros = {name: tt.zeros_like(p) for name, p in attention.named_parameters()}
    y = tt.randn(2, 1, 4)
    assert func.functional_call(attention, zeros, (y, y, y))[0].count_nonzero().item() == 0


def test_tied_weights_are_replaced_together():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)
            self.b.weight = self.a.weight

        def forward(self, x):
            return self.b(self.a(x))

    model, x = Tied(), tt.ones(1, 2)
    given = {"a.weight": tt.eye(2), "a.bias": tt.zeros(2), "b.bias": tt.zeros(2)}
    close(func.functional_call(model, given, x), x)
    assert not func.functional_call(model, given, x, tie_weights=False).equal(x)


def test_ensembles_and_gradients_per_sample():
    models = [nn.Linear(3, 2) for _ in range(4)]
    params, buffers = func.stack_module_state(models)
    x, y = tt.randn(5, 3), tt.tensor([0, 1, 1, 0, 1])

    def call(p, b, data):
        return func.functional_call(models[0], (p, b), (data,))

    found = func.vmap(call, in_dims=(0, 0, None))(params, buffers, x)
    close(found, tt.stack([m(x) for m in models]))

    def loss(p, data, target):
        out = func.functional_call(models[0], p, (data.unsqueeze(0),))
        return nn.functional.cross_entropy(out, target.unsqueeze(0))

    one = {name: p.detach() for name, p in models[0].named_parameters()}
    grads = func.vmap(func.grad(loss), in_dims=(None, 0, 0))(one, x, y)
    for i in range(5):
        models[0].zero_grad()
        nn.functional.cross_entropy(models[0](x[i : i + 1]), y[i : i + 1]).backward()
        for name, p in models[0].named_parameters():
            close(grads[name][i], p.grad)


# ---- rules of operators in vmap ----


def counted(f, *args):
    """The operators that a call of f runs, in calls."""
    tt.profiler  # loads it
    with tt.profiler.profile() as p:
        f(*args)
    return sum(
        row.count for row in p.key_averages() if row.key.startswith(("aten::stack", "aten::select"))
    )


@pytest.mark.parametrize("number", range(len(BATCHED)))
def test_rules_do_not_loop(number):
    """A loop would select each of 50 samples."""
    a, b = randn(50, 3, 3), randn(50, 3, 3)
    assert counted(func.vmap(BATCHED[number]), a, b) < 40


MEAN, VAR = tt.ones(3, dtype=tt.float64), tt.full((3,), 2.0, dtype=tt.float64)
MORE = [
    lambda a, b: a[tt.tensor([0, 2])] + b[tt.tensor([[1, 0]])].sum(1),
    lambda a, b: a[b.argmax(0)] * 2,
    lambda a, b: tt.ones(3, 3, dtype=tt.float64)[b.argmax(0), a.argmax(1)],
    lambda a, b: a.gather(1, b.argsort(1)) + a.scatter_add(0, b.argmax(0)[None], b),
    lambda a, b: nn.functional.embedding(b.argmax(0), tt.eye(3, dtype=tt.float64)),
    lambda a, b: nn.functional.pad(a, (1, 0, 2, 1)) @ tt.ones(4, 1, dtype=tt.float64),
    lambda a, b: tt.addmm(b[0], a, b, beta=0.5, alpha=2.0) + tt.baddbmm(a[None], a[None], b[None]),
    lambda a, b: nn.functional.conv2d(a[None], tt.ones(2, 1, 2, 2, dtype=tt.float64)),
    lambda a, b: nn.functional.conv_transpose2d(a[None, None], b[None, None]),
    lambda a, b: nn.functional.avg_pool2d(tt.stack([a, b])[None], 2),
    lambda a, b: nn.functional.batch_norm(a * b, MEAN, VAR),
    lambda a, b: nn.functional.layer_norm(tt.ones(2, 3, dtype=tt.float64), (3,), b[0], a[1]),
    lambda a, b: nn.functional.nll_loss(a.log_softmax(1), b.argmax(1), reduction="sum"),
    lambda a, b: nn.functional.cross_entropy(a, b.argmax(1), ignore_index=1),
    lambda a, b: nn.functional.cross_entropy(a[0], b.argmax(1)[0]),
    lambda a, b: nn.functional.scaled_dot_product_attention(a[None], b[None], b[None]),
    lambda a, b: tt.cat([a, tt.ones(1, 3, dtype=tt.float64)]).prod() + b.prod(0).squeeze(),
    lambda a, b: (a > 0).any() | (b > 0).all(0),
    lambda a, b: a.max() - b.min() + a.flatten().topk(2).values,
    lambda a, b: a[None].squeeze().squeeze(0).unbind(1)[1] * b.split(2)[0][1],
    lambda a, b: a.masked_fill(b > 0, 0.0).unfold(0, 2, 1).permute(2, 0, 1),
    lambda a, b: a.norm() * b.cumprod(1).logcumsumexp(0),
    lambda a, b: a.select_scatter(b[0], 1, 2).diff(dim=0).expand(2, 2, 3),
]


ONES = tt.ones(3, dtype=tt.float64)
MERGED = [  # of these no samples are selected, either
    lambda a, b: tt.fft.ifft(tt.fft.fft(a, dim=0) * b, dim=-1).real + tt.fft.rfft(b, 3, 0).imag[:1],
    lambda a, b: tt.fft.irfft2(tt.fft.rfft2(a), (3, 3)) + b,
    lambda a, b: a.index_add(1, tt.tensor([0, 2]), b[:, :2], alpha=2),
    lambda a, b: a.index_add(0, b.argmax(0)[:2], b[:2], alpha=2),
    lambda a, b: a.index_copy(0, tt.tensor([1, 2]), b[1:]).index_fill(1, tt.tensor([0]), 3.0),
    lambda a, b: a.index_select(1, b.argmax(0)) + b.index_select(0, a.argmax(1)),
    lambda a, b: a.index_put((b.argmax(0), b.argmax(1)), a[0], accumulate=True),
    lambda a, b: a.index_put((tt.tensor([2, 0]),), b[0])
    + b.clone().index_put_((ONES.long(),), b[1]),
    lambda a, b: a.scatter_reduce(1, b.argsort(1), b, "amax")
    + a.scatter_reduce(0, b.argmin(0)[None], b, "prod", include_self=False),
    lambda a, b: nn.functional.scaled_dot_product_attention(
        a[None, None], b[None, None], b[None, None], b[None, None]
    ),
    lambda a, b: nn.functional.batch_norm(a.T @ b, None, None, b[0], a[1], training=True),
    lambda a, b: nn.functional.batch_norm(a, b[0], b[1].exp(), a[0], training=False),
    lambda a, b: nn.functional.grid_sample(a[None, None], b[None, :, :2, None].expand(1, 3, 2, 2)),
    lambda a, b: nn.functional.unfold(a[None, None], 2) + nn.functional.unfold(b[None, None], 2),
    lambda a, b: nn.functional.fold((a @ b).reshape(1, 1, 9), (3, 3), (1, 1)),
    lambda a, b: nn.functional.pad(a[None], (1, 1, 1, 1), mode="reflect") * b.sum(),
    lambda a, b: a.median() + b.nanmedian() + a.clone().cumsum_(0).cumprod_(1),
    lambda a, b: tt.searchsorted(a[0].sort().values, b[1]) + tt.searchsorted(ONES, b[0]),
    lambda a, b: tt.isin(a.argsort(1), tt.tensor([1, 2])) & (b > 0),
    lambda a, b: nn.functional.one_hot(b.argmax(0), 3) + a,
    lambda a, b: tt.linalg.householder_product(a, b[0]),
]


@pytest.mark.parametrize("number", range(len(MERGED)))
def test_merged_samples_do_not_loop(number):
    a, b = randn(50, 3, 3), randn(50, 3, 3)
    assert counted(func.vmap(MERGED[number]), a, b) < 40


MORE += MERGED


def recurrent(x, h):
    """Layers whose weights are the same for all samples."""
    w = tt.arange(36, dtype=tt.float64).reshape(12, 3).sin()
    flags = (False, 1, 0.0, False, False, False)
    y, h_n, c_n = tt.lstm(x[:, None], (h[None, :1], h[None, 1:2]), [w, w.cos()], *flags)
    return y[:, 0] * h_n[0] + c_n[0] + tt.gru(x[None], h[None], [w[:9], w[3:].cos()], *flags)[0][0]


def bags(a, b):
    rows = tt.arange(15, dtype=tt.float64).reshape(5, 3).cos()
    bag = nn.functional.embedding_bag
    places = tt.stack([a.argmax(0), b.argmax(1)])
    return bag(places, rows, mode="max") + bag(places, rows, mode="sum", per_sample_weights=a[:2])


def bags_of_tables(tables, x):
    places = tt.stack([x.argmax(0), x.argmax(1)])
    bag = nn.functional.embedding_bag
    return bag(places, tables, padding_idx=1) + bag(places, tables, mode="max", padding_idx=0)


MORE += [recurrent, bags, bags_of_tables]


def attention_of(x):
    return nn.functional.scaled_dot_product_attention(x[None], x[None] * 2, x[None].exp())


BACKWARD = [  # their gradients' operators get samples of the gradient alone
    lambda x: nn.functional.layer_norm(x, (3,)) + x.softmax(0) + x.log_softmax(-1),
    lambda x: nn.functional.rms_norm(x, (3,)) + nn.functional.group_norm(x, 3),
    lambda x: nn.functional.group_norm(x, 3, x[0, 0].exp()) + recurrent(x[0], x[1]),
    lambda x: nn.functional.batch_norm(x, None, None, training=True),
    lambda x: nn.functional.conv2d(x[None], tt.ones(2, 2, 2, 2, dtype=tt.float64)),
    lambda x: nn.functional.max_pool2d(x, 2) + nn.functional.avg_pool2d(x[None], 2),
    lambda x: nn.functional.adaptive_avg_pool2d(x, 2) + nn.functional.adaptive_max_pool2d(x, 2),
    lambda x: x[0].diagonal() + x[:, 1:].sum((0, 1)),
    lambda x: nn.functional.cross_entropy(x, tt.zeros(2, 3, dtype=tt.int64)),
    attention_of,
]


@pytest.mark.parametrize("number", range(len(BACKWARD)))
def test_jacrev_takes_all_rows_at_once(number):
    x = randn(2, 3, 3)
    close(func.jacrev(BACKWARD[number])(x), func.jacfwd(BACKWARD[number])(x))
    close(func.jacrev(BACKWARD[number], chunk_size=4)(x), func.jacrev(BACKWARD[number])(x))


def test_recurrent_layers_and_bags_do_not_loop():
    x, h = randn(50, 3, 3), randn(50, 3, 3)
    assert counted(func.vmap(recurrent), x, h) < 40
    assert counted(func.vmap(bags), x, h) < 40
    assert counted(func.vmap(bags_of_tables), x, h) < 40
    with pytest.raises(RuntimeError, match="no rule for vmap over 0 samples"):
        func.vmap(recurrent)(randn(0, 3, 3), randn(0, 3, 3))


@pytest.mark.parametrize("reverse", [False, True])
def test_packed_rows_do_not_loop(reverse):
    w = randn(12, 3)

    def packed(x):
        states = (x[None, :2].repeat(1 + reverse, 1, 1),) * 2
        weights = [w, w] * (1 + reverse)
        return tt.lstm(x, states, weights, False, 1, 0.0, False, reverse, False, [2, 2, 1])[0]

    x = randn(50, 5, 3)
    assert counted(func.vmap(packed), x) < 40
    close(func.vmap(packed)(x), tt.stack([packed(t) for t in x]))
    grad = func.grad(lambda x: (packed(x) ** 2).sum())
    assert counted(func.vmap(grad), x) < 40
    close(func.vmap(grad)(x), tt.stack([grad(t) for t in x]))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("dims", [(None, 0, 0), (0, None, None), (0, 0, None), (0, 0, 0)])
def test_bags_with_offsets_do_not_loop(mode, dims):
    tables, indices = randn(50, 6, 2), tt.randint(0, 6, (50, 7))
    offsets = tt.tensor([[0, 2, 5], [0, 0, 3]]).repeat(25, 1)
    args = [t if d == 0 else t[0] for t, d in zip((tables, indices, offsets), dims)]

    def bag(w, i, o):
        return nn.functional.embedding_bag(i, w, o, mode=mode)

    for f in (bag, func.grad(lambda w, i, o: (bag(w, i, o) ** 3).sum())):
        sample = lambda k: [t if d is None else t[k] for t, d in zip(args, dims)]  # noqa: E731
        close(func.vmap(f, dims)(*args), tt.stack([f(*sample(k)) for k in range(50)]))
    assert counted(func.vmap(bag, dims), *args) < 40
    wrong = offsets.clone()
    wrong[49, 1] = 9
    with pytest.raises(IndexError, match="offsets holds 9 at"):
        func.vmap(bag, (None, None, 0))(tables[0], indices[0], wrong)
    wrong[49, 1] = 6
    with pytest.raises(ValueError, match="offsets descends: must be ascending"):
        func.vmap(bag, (None, None, 0))(tables[0], indices[0], wrong)


def ctc(x, targets, lengths, target_lengths, **options):
    log_probs = x.log_softmax(-1)
    return nn.functional.ctc_loss(log_probs, targets, lengths, target_lengths, **options)


@pytest.mark.parametrize("dims", [(0, None, None, None), (0, 0, None, None), (0, 0, 0, 0)])
def test_ctc_of_samples_does_not_loop(dims):
    x, targets = randn(50, 6, 3, 4), tt.randint(1, 4, (50, 3, 2))
    lengths, sizes = tt.randint(4, 7, (50, 3)), tt.randint(1, 3, (50, 3))
    args = [t if d == 0 else t[0] for t, d in zip((x, targets, lengths, sizes), dims)]
    tangent = randn(6, 3, 4)

    def tangents(*args):
        return func.jvp(lambda x: ctc(x, *args[1:]), (args[0],), (tangent,))

    for f in (lambda *a: ctc(*a, reduction="none"), func.grad(ctc), tangents):
        assert counted(func.vmap(f, dims), *args) < 40
        found = func.vmap(f, dims)(*args)
        each = [f(*[t if d is None else t[k] for t, d in zip(args, dims)]) for k in range(50)]
        if f is tangents:
            found, each = found[1], [e[1] for e in each]
        close(found, tt.stack(each))
    wrong = targets.clone()
    wrong[49, 2, 0] = 4
    with pytest.raises(IndexError, match="targets holds 4 at"):
        func.vmap(ctc, (0, 0, None, None))(x, wrong, lengths[0], sizes[0])


def test_tangents_of_ctc():
    x, t = randn(6, 3, 4).double(), randn(6, 3, 4).double()
    given = tt.tensor([[1, 2], [3, 0], [2, 2]]), tt.tensor([6, 4, 5]), tt.tensor([2, 1, 2])
    f = lambda x: ctc(x, *given, reduction="none")  # noqa: E731
    differences = (f(x + 1e-6 * t) - f(x - 1e-6 * t)) / 2e-6
    assert (func.jvp(f, (x,), (t,))[1] - differences).abs().max() < 1e-7
    close(func.jacfwd(f)(x), func.jacrev(f)(x))


@pytest.mark.parametrize("norm", ["layer_norm", "rms_norm"])
def test_rows_of_nested_samples(norm):
    f = lambda x, y: (getattr(nn.functional, norm)(x, (3,)) * y).sum()  # noqa: E731
    for shape in ((3,), (2, 3)):
        x, y = randn(4, *shape), randn(5, *shape)
        for g in (f, func.grad(f)):
            found = func.vmap(lambda x: func.vmap(g, (None, 0))(x, y))(x)
            close(found, tt.stack([tt.stack([g(a, b) for b in y]) for a in x]))


def test_jacrev_refuses_numbers_that_are_not_real():
    x = randn(3)
    for f, given in ((lambda x: x * 1j, x), (lambda x: x, x * 1j), (lambda x: x, tt.arange(3))):
        with pytest.raises(RuntimeError, match="must be floating"):
            func.jacrev(f)(given)
    with pytest.raises(RuntimeError, match="must return tensors"):
        func.jacrev(lambda x: 3.0)(x)


@pytest.mark.parametrize("number", range(len(MORE)))
def test_rules_agree_with_a_loop(number):
    f = MORE[number]
    a, b = randn(4, 3, 3), randn(4, 3, 3)
    close(func.vmap(f)(a, b), tt.stack([f(x, y) for x, y in zip(a, b)]))
    close(func.vmap(f, in_dims=(0, None))(a, b[0]), tt.stack([f(x, b[0]) for x in a]))
    turned = b.movedim(0, 1)
    close(func.vmap(f, in_dims=(None, 1))(a[0], turned), tt.stack([f(a[0], y) for y in b]))
    nested = func.vmap(func.vmap(f, in_dims=(None, 0)), in_dims=(0, None))(a, b)
    close(nested, tt.stack([tt.stack([f(x, y) for y in b]) for x in a]))


def test_vmap_draws_numbers_without_a_sample():
    """Factories, modules and keyword arguments see whether samples share random numbers."""
    x = randn(4, 3)
    for f in (lambda _: tt.rand(3), lambda _: tt.randn(2, 3), lambda _: nn.Linear(3, 2).weight):
        with pytest.raises(RuntimeError, match="random"):
            func.vmap(f)(x)
        same = func.vmap(f, randomness="same")(x)
        assert same[0].equal(same[1])
    different = func.vmap(lambda _: tt.rand(3), randomness="different")(x)
    assert different.shape == (4, 3) and not different[0].equal(different[1])
    close(func.vmap(lambda a, k: a * k)(x, k=x), x[:, None] * x)


def test_vmap_of_matrices():
    x = randn(3, 2, 2)
    for f in (tt.linalg.matrix_exp, tt.linalg.inv, tt.linalg.det, tt.linalg.svdvals):
        close(func.vmap(f)(x), f(x))
    close(func.vmap(tt.linalg.solve)(x, x.mT), tt.linalg.solve(x, x.mT))
    close(func.vmap(tt.linalg.solve, in_dims=(None, 0))(x[0], x), tt.linalg.solve(x[0], x))
    i = tt.tensor([0, 1, 0])
    close(func.vmap(lambda m, k: m[k])(x, i), tt.stack([x[0, 0], x[1, 1], x[2, 0]]))
    close(func.vmap(lambda k: x[k, :, 1])(i), tt.stack([x[k, :, 1] for k in (0, 1, 0)]))


def test_dropout_in_evaluation_mode_draws_nothing():
    x = randn(3, 4)
    close(func.vmap(lambda r: nn.functional.dropout(r, training=False))(x), x)


def test_dual_tensors():
    from tt.autograd import forward_ad as fwd

    x, v = tt.tensor([1.0, 2.0], dtype=tt.float64), tt.tensor([1.0, 0.5], dtype=tt.float64)
    w = tt.tensor([3.0, 4.0], dtype=tt.float64, requires_grad=True)
    with fwd.dual_level():
        dual = fwd.make_dual(x, v)
        y = tt.sin(dual) * w
        tangent = fwd.unpack_dual(y).tangent
        tt.testing.assert_close(tangent.detach(), (tt.cos(x) * v * w).detach())
        assert fwd.unpack_dual(dual).tangent is v
        assert fwd.unpack_dual(w).tangent is None
        assert fwd.unpack_dual(dual * 0 + w).tangent.tolist() == [0, 0]
        both = fwd.make_dual(w.detach(), v) @ dual
        tt.testing.assert_close(fwd.unpack_dual(both).tangent, w.detach() @ v + v @ x)
        for wrong in (tt.ones(3, dtype=tt.float64), tt.ones(2)):
            with pytest.raises(ValueError):
                fwd.make_dual(x, wrong)
        with pytest.raises(RuntimeError, match="do not nest"):
            fwd.enter_dual_level()
    assert fwd.unpack_dual(dual).tangent is None
    with pytest.raises(RuntimeError, match="no level"):
        fwd.make_dual(x, v)


def test_dual_tensors_in_eager_code():
    from tt.autograd import forward_ad as fwd

    x, t = randn(3, 3), randn(3, 3)
    w = randn(3, 3).requires_grad_()
    buffer = tt.zeros(4, 3, dtype=tt.float64)
    rows = buffer[1:]
    with fwd.dual_level():
        dual = fwd.make_dual(x, t)
        rows.copy_(dual * dual)
        close(fwd.unpack_dual(buffer.sum(0)).tangent, (2 * x * t).sum(0))
        rows[0].mul_(2).add_(dual[0])
        close(fwd.unpack_dual(buffer).tangent[1], 4 * x[0] * t[0] + t[0])
        with pytest.raises(RuntimeError, match="has a tangent"):
            fwd.make_dual(dual, t)
        # the gradient of a dual tensor is one
        (grad,) = tt.autograd.grad(((dual @ w) ** 3).sum(), w)
        scale = lambda y: func.grad(lambda v: ((y @ v) ** 3).sum())(w.detach())  # noqa: E731
        close(fwd.unpack_dual(grad), func.jvp(scale, (x,), (t,)))
        leaf = fwd.make_dual(x, t).requires_grad_()
        assert leaf.requires_grad and leaf.is_leaf and not x.requires_grad
        (grad,) = tt.autograd.grad((leaf**3).sum(), leaf)
        close(fwd.unpack_dual(grad), (3 * x**2, 6 * x * t))
        with pytest.raises(RuntimeError, match="use grad"):
            (leaf**3).sum().backward()
        # so is the tangent, which may be recorded
        slope = fwd.unpack_dual((dual @ w).tanh()).tangent.sum()
        (grad,) = tt.autograd.grad(slope, w)
        directional = lambda v: func.jvp(lambda y: (y @ v).tanh(), (x,), (t,))[
            1
        ].sum()  # noqa: E731
        close(grad, func.grad(directional)(w.detach()))
        module = nn.Linear(3, 2).double()
        close(fwd.unpack_dual(module(dual)).tangent, t @ module.weight.T)
    assert not (dual * 2).requires_grad

    @fwd.dual_level()
    def directional(y):
        return fwd.unpack_dual(fwd.make_dual(y, t).sin()).tangent

    close(directional(x), x.cos() * t)


def test_gradients_inside_other_transforms():
    x, t = randn(3), randn(3)

    def by_vjp(y):
        return func.vjp(lambda z: z**3, y)[1](tt.ones(3, dtype=tt.float64))[0]

    close(func.jvp(by_vjp, (x,), (t,))[1], 6 * x * t)

    def by_grad(y):
        y = y.view_as(y).requires_grad_()
        return tt.autograd.grad((y**3).sum(), y)[0]

    close(func.jvp(by_grad, (x,), (t,)), (3 * x**2, 6 * x * t))
    assert not x.requires_grad
    cubes = lambda y: (y**3).sum()  # noqa: E731
    close(func.hessian(cubes)(x), tt.diag(6 * x))
    close(func.jacrev(func.jacfwd(cubes))(x), tt.diag(6 * x))


@pytest.mark.parametrize(
    "norm",
    [
        lambda x, w: nn.functional.layer_norm(x, (3,), w, w),
        lambda x, w: nn.functional.rms_norm(x, (3,), w),
        lambda x, w: nn.functional.group_norm(x, 1, w, w),
        lambda x, w: nn.functional.batch_norm(x, None, None, w, w, training=True),
        lambda x, w: nn.functional.batch_norm(x, MEAN, VAR, w, w),
    ],
    ids=["layer", "rms", "group", "batch", "running"],
)
def test_tangents_of_gradients_of_norms(norm):
    x, w, dx, dw = randn(4, 3), randn(3), randn(4, 3), randn(3)
    gradients = func.grad(lambda x, w: (norm(x, w) ** 3).sum(), (0, 1))
    found = func.jvp(gradients, (x, w), (dx, dw))[1]
    by_rows = func.jacrev(gradients, (0, 1))(x, w)
    for tangent, (of_x, of_w) in zip(found, by_rows):
        want = (of_x * dx).flatten(tangent.ndim).sum(-1) + (of_w * dw).sum(-1)
        close(tangent, want)


def test_jacfwd_calls_the_function_once():
    a, b, calls = randn(2, 3), randn(3), []

    def f(x):
        calls.append(1)
        return {"y": x[0] @ x[1], "x": x[1] * 2}, x[0].sum(0)

    found, aux = func.jacfwd(f, has_aux=True)((a, b))
    assert len(calls) == 1
    close(found["y"][0], func.jacrev(lambda m: m @ b)(a))
    close(found["y"][1], a)
    close(found["x"][0], tt.zeros(3, 2, 3, dtype=tt.float64))
    close(found["x"][1], 2 * tt.eye(3, dtype=tt.float64))
    close(aux, a.sum(0))
    wide = a[0].expand(2, 3)  # whose rows share memory, those of its tangent do not
    close(func.jvp(lambda y: y.T.exp(), (wide,), (a,))[1], (wide.exp() * a).T)
    noisy = lambda y: y * tt.rand(3, dtype=tt.float64)  # noqa: E731
    with pytest.raises(RuntimeError, match="random"):
        func.jacfwd(noisy)(b)
    assert func.jacfwd(noisy, randomness="same")(b).shape == (3, 3)


# ---- forward mode ----


def differences(f, x, t, step=1e-6):
    return (f(x + step * t) - f(x - step * t)) / (2 * step)


def written(x):
    """Writes x into a part of a buffer, of which another view was made before."""
    buffer = tt.zeros(4, 4, dtype=tt.float64)
    rows = buffer[1:]
    buffer[1:3, :3] = x[:2]
    buffer[0].add_(x[0, 0])
    return rows * rows + buffer[0].exp()


W = tt.linspace(-1, 1, 9, dtype=tt.float64).reshape(3, 3)
FORWARD = [
    lambda x: x.exp() * x.sin() / (x * x + 1),
    lambda x: x @ W + W @ x,
    lambda x: nn.functional.linear(x, x, x[0]),
    lambda x: tt.addmm(x, x, W, beta=0.5, alpha=2.0),
    lambda x: nn.functional.conv2d(x[None, None], x[None, None, :2, :2], x[0, :1]),
    lambda x: nn.functional.layer_norm(x, (3,), x[0], x[1]).softmax(1).log_softmax(0),
    lambda x: nn.functional.batch_norm(x, None, None, x[0], x[1], training=True),
    lambda x: nn.functional.cross_entropy(x, tt.tensor([0, 2, 1]), reduction="none"),
    lambda x: nn.functional.scaled_dot_product_attention(x[None], x.T[None], x[None] * 2),
    lambda x: x.sort(0).values.cumprod(1) * x.max() + x.prod() + x.median(),
    lambda x: tt.linalg.inv(x).norm(dim=1) + tt.linalg.det(x),
    lambda x: tt.linalg.svdvals(x) + tt.linalg.solve(x, W)[0],
    lambda x: tt.nn.functional.pad(x, (1, 1), value=3.0).flip(1)[:, 1:] * x[:, :1],
    lambda x: tt.cat([x, x * x], 1).reshape(-1).index_fill(0, tt.tensor([0]), 2.0),
    lambda x: (x * 2).mul_(x).add_(1).cumsum_(0).clamp_(min=0.1),
    lambda x: x.clone().index_put_((tt.tensor([1]),), x[:1] * x[2:]).T.contiguous(),
    written,
    lambda x: tt.view_as_real(tt.fft.fft(x.to(tt.complex128)).exp()).sum(2),
    lambda x: tt.complex(x, x * x).abs().log(),
    lambda x: x * tt.zeros(3, 3, dtype=tt.int64).add(2),
]


@pytest.mark.parametrize("number", range(len(FORWARD)))
def test_tangents_are_derivatives(number):
    f = FORWARD[number]
    x, t = randn(3, 3) + 2 * tt.eye(3, dtype=tt.float64), randn(3, 3)
    out, tangent = func.jvp(f, (x,), (t,))
    close(out, f(x))
    tt.testing.assert_close(tangent, differences(f, x, t), atol=2e-7, rtol=2e-7)
    assert not out.requires_grad and not tangent.requires_grad
    if f is not written:  # vmap refuses writes to what all samples share
        xs = tt.stack([x, x + 0.5])
        each = func.vmap(lambda y: func.jvp(f, (y,), (t,))[1])(xs)
        close(each, tt.stack([func.jvp(f, (y,), (t,))[1] for y in xs]))
    second = func.jvp(lambda y: func.jvp(f, (y,), (t,))[1], (x,), (t,))[1]
    slope = differences(lambda y: func.jvp(f, (y,), (t,))[1], x, t)
    tt.testing.assert_close(second, slope, atol=1e-5, rtol=1e-5)
    # of the gradient, and the gradient of the tangent
    scalar = lambda y: (f(y) ** 2).sum()  # noqa: E731
    product = func.jvp(func.grad(scalar), (x,), (t,))[1]
    close(product, func.grad(lambda y: func.jvp(scalar, (y,), (t,))[1])(x))
    tt.testing.assert_close(product, differences(func.grad(scalar), x, t), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["svdvals", "eigvalsh", "cond"])
def test_values_of_each_sample_have_gradients(name):
    f = getattr(tt.linalg, name)
    xs, t = randn(2, 3, 3), randn(3, 3)
    xs, t = xs + xs.mT, t + t.mT
    grad = func.grad(lambda y: f(y).sum())
    close(func.vmap(grad)(xs), tt.stack([grad(x) for x in xs]))
    tangent = lambda y: func.jvp(f, (y,), (t,))[1]  # noqa: E731
    close(func.vmap(tangent)(xs), tt.stack([tangent(x) for x in xs]))


COMPLEX = [
    lambda z: z.exp() * z.sin() / (z * z + 1),
    lambda z: z.abs() * z,
    lambda z: z.conj() @ z,
    lambda z: z.sgn() + z.sqrt(),
    lambda z: z.real * z.imag + z.angle(),
    lambda z: z.prod(0) + z.norm() + z.pow(2.5).tanh().mean(),
    lambda z: tt.linalg.inv(z),
    lambda z: tt.fft.irfft(tt.fft.ifft(z)).cumsum(0),
]


@pytest.mark.parametrize("number", range(len(COMPLEX)))
def test_tangents_of_complex_numbers(number):
    f = COMPLEX[number]
    z, t = tt.complex(randn(3, 3), randn(3, 3)), tt.complex(randn(3, 3), randn(3, 3))
    out, tangent = func.jvp(f, (z,), (t,))
    assert tangent.dtype == out.dtype
    tt.testing.assert_close(tangent, differences(f, z, t), atol=2e-7, rtol=2e-7)


def test_tangents_of_what_f_captures():
    """The inner function of a gradient may use a tensor that has a tangent."""
    x, t = randn(3), randn(3)
    f = lambda y: func.grad(lambda z: (z**3 * y).sum())(y * 2)  # noqa: E731
    tt.testing.assert_close(func.jvp(f, (x,), (t,))[1], differences(f, x, t))
    third = func.jacfwd(func.jacrev(func.jacfwd(lambda z: (z**4).sum())))(x)
    close(third, tt.diag_embed(tt.diag(24 * x)))


def test_tangents_end_with_the_transform():
    x, kept = randn(3), []
    buffer = tt.zeros(3, dtype=tt.float64)

    def f(y):
        buffer.copy_(y)
        kept.append(y * 2)
        return y.detach() * y + tt.ones(3, dtype=tt.float64)

    out, tangent = func.jvp(f, (x,), (x,))
    close(tangent, x * x)
    close(kept[0] + buffer, 3 * x)
    assert func.jvp(lambda y: buffer * kept[0], (x,), (x,))[1].count_nonzero().item() == 0
    with pytest.raises(RuntimeError, match="an _into call computes no tangent"):
        func.jvp(lambda y: tt.exp(y, out=tt.zeros(3, dtype=tt.float64)), (x,), (x,))
    ids = tt.tensor([2, 0])
    assert func.jvp(lambda i, y: (y[i], i + 1), (ids, x), (ids, x))[1][0].equal(x[ids])


def test_tangents_are_recorded_for_the_caller():
    w, x, t = randn(3, 2).requires_grad_(), randn(4, 3), randn(4, 3)
    f = lambda y: (y @ w).tanh()  # noqa: E731
    func.jvp(f, (x,), (t,))[1].sum().backward()
    y = x @ w.detach()
    u = t @ w.detach()
    slope = 1 - y.tanh() ** 2
    close(w.grad, t.T @ slope - 2 * x.T @ (y.tanh() * slope * u))
    with tt.no_grad():
        assert not func.jvp(f, (x,), (t,))[1].requires_grad


def test_tangents_of_functions_with_their_own_gradient():
    class Triple(tt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.detach().clone()

        @staticmethod
        def backward(ctx, grad):
            return grad * 3

    x, t = randn(3), randn(3)
    close(func.jvp(lambda y: Triple.apply(y * 2), (x,), (t,))[1], 6 * t)


class Product(tt.autograd.Function):
    """x * x * y with 3 x y for its gradient by x, so that the formula shows, and x + y."""

    @staticmethod
    def forward(x, y):
        return x * x * y, x + y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.doubled = inputs[0] * 2

    @staticmethod
    def backward(ctx, g, h):
        x, y = ctx.saved_tensors
        return (x + ctx.doubled) * y * g + h, x * x * g + h


def product_sum(x, y):
    return Product.apply(x, y)[0].sum() + Product.apply(y, x)[1].sum()


def test_functions_with_their_own_gradient_in_vmap():
    x, y = randn(5, 3), randn(3)
    rows = [func.grad(product_sum, (0, 1))(row, y) for row in x]
    by_x, by_y = (tt.stack([row[k] for row in rows]) for k in (0, 1))
    close(by_x, 3 * x * y + 1)
    inside = func.vmap(func.grad(product_sum, (0, 1)), (0, None))(x, y)
    close(inside[0], by_x)
    close(inside[1], by_y)
    outside = func.grad(lambda *a: func.vmap(product_sum, (0, None))(*a).sum(), (0, 1))(x, y)
    close(outside[0], by_x)
    close(outside[1], by_y.sum(0))  # y is shared by all samples
    leaf = x.clone().requires_grad_()
    func.vmap(product_sum, (0, None))(leaf, y).sum().backward()  # after the vmap has ended
    close(leaf.grad, by_x)
    both = func.vmap(lambda *a: func.jvp(product_sum, a, a)[1], (0, None))(x, y)
    close(both, (by_x * x + by_y * y).sum(1))
    z, w = randn(4, 5, 3), randn(4, 3)
    nested = func.vmap(func.vmap(func.grad(product_sum, 1), (0, None)))(z, w)
    close(nested[1, 2], func.grad(product_sum, 1)(z[1, 2], w[1]))


def test_tangents_under_autocast():
    x, w = tt.randn(4, 8), tt.randn(8, 8)

    def f(y):
        with tt.autocast("cpu", dtype=tt.bfloat16):
            return (y @ w).float().tanh() + nn.functional.linear(y, w)

    out, tangent = func.jvp(f, (x,), (x,))
    assert tangent.dtype == out.dtype
    exact = func.jvp(lambda y: (y @ w).tanh() + nn.functional.linear(y, w), (x,), (x,))[1]
    tt.testing.assert_close(tangent.float(), exact, atol=0.2, rtol=0.05)


def test_gradients_need_floating_arguments():
    for t in (tt.tensor(3), tt.tensor([True])):
        for transform in (tt.func.grad, tt.func.grad_and_value):
            with pytest.raises(RuntimeError, match=f"grad: tensor 0 is {t.dtype}: must be fl"):
                transform(lambda x: (x * 1.0).sum())(t)


# ---- containers of tensors ----


class Box:
    """A container that vmap takes apart by the methods of PyTorch's, as TensorDict has them."""

    def __init__(self, tensors, shape):
        self.tensors, self.shape, self.ndim = tensors, tuple(shape), len(shape)

    def clone(self, recurse=True):
        return Box(dict(self.tensors), self.shape)

    def _add_batch_dim(self, *, in_dim, vmap_level):
        from tt._C._functorch import _add_batch_dim

        shape = self.shape[:in_dim] + self.shape[in_dim + 1 :]
        tensors = {k: _add_batch_dim(t, in_dim, vmap_level) for k, t in self.tensors.items()}
        return Box(tensors, shape)

    def _maybe_remove_batch_dim(self, funcname, vmap_level, batch_size, out_dim):
        from tt._functorch.vmap import _maybe_remove_batch_dim as remove

        shape = (*self.shape[:out_dim], batch_size, *self.shape[out_dim:])
        tensors = {}
        for k, t in self.tensors.items():
            tensors[k] = remove(funcname, t, vmap_level, batch_size, out_dim)
            assert tuple(tensors[k].shape[: len(shape)]) == shape
        return Box(tensors, shape)


def test_vmap_takes_containers_apart():
    a, b, w = tt.randn(4, 3), tt.randn(4, 3, 2), tt.randn(5, 3)
    box = Box({"a": a, "b": b}, (4,))

    def f(box, w):
        assert box.shape == () and box.tensors["a"].shape == (3,)
        return Box({"c": box.tensors["a"] * w, "d": box.tensors["b"].sum(0)}, ()), w * 2

    found, twice = func.vmap(f, in_dims=(0, None))(box, w[0])
    assert found.shape == (4,) and twice.shape == (4, 3)
    close(found.tensors["c"], a * w[0])
    close(found.tensors["d"], b.sum(1))
    nested = func.vmap(func.vmap(f, in_dims=(0, None)), in_dims=(None, 0))(box, w)[0]
    assert nested.shape == (5, 4)
    close(nested.tensors["c"], a * w[:, None])
    whole = func.vmap(lambda box, x: box.tensors["a"].sum() * x, in_dims=(None, 0))(box, w)
    close(whole, a.sum() * w)
    with pytest.raises(NotImplementedError, match="tt.vmap"):
        box._add_batch_dim(in_dim=0, vmap_level=1)


def part_multiplied(x):
    y = x.clone()
    y[..., 1:] *= x[..., :-1]
    return y


def parts_written(x):
    y = x * x
    y[0].add_(x[1])
    y.T[1:].mul_(x.T[1:])
    y.diagonal().copy_(x[:, 2])
    return y


def in_place(x):
    return x.clone().mul_(x).add_(x * x)


@pytest.mark.parametrize("f", [part_multiplied, parts_written, in_place])
def test_writes_in_place_inside_transforms(f):
    x, size = randn(3, 4), 12
    rows = tt.stack([func.vjp(f, x)[1](e.reshape(3, 4))[0] for e in tt.eye(size).double()])
    matrix = rows.reshape(3, 4, 3, 4)
    close(func.jacrev(f)(x), matrix)
    close(func.jacfwd(f)(x), matrix)
    close(func.vmap(func.jacrev(f))(tt.stack([x, 2 * x]))[0], matrix)
    leaf = x.clone().requires_grad_()
    batched = {"grad_outputs": tt.eye(size).double().reshape(size, 3, 4), "is_grads_batched": True}
    close(tt.autograd.grad(f(leaf), leaf, **batched)[0], rows)
    hessians = [
        outer(inner(lambda x: (f(x) ** 2).sum()))(x)
        for outer in (func.jacfwd, func.jacrev)
        for inner in (func.jacfwd, func.jacrev)
    ]
    for h in hessians[:3]:
        close(h, hessians[3])


def test_geometry_of_samples():
    x = randn(4, 6)
    for f in (
        lambda r: r.as_strided((2, 2), (1, 2), 1),
        lambda r: r.as_strided((3, 2), (1, 1)),
        lambda r: tt.as_strided_scatter(r, r[:4].reshape(2, 2), (2, 2), (1, 2), 1),
    ):
        each = lambda f: tt.stack([f(r.clone()) for r in x])  # noqa: E731, B023
        close(func.vmap(f)(x), each(f))
        g = func.grad(lambda r: (f(r) ** 2).sum())  # noqa: B023
        close(func.vmap(g)(x), each(g))


def test_gradients_of_copies_leave_the_cotangent_a_leaf():
    x, w = randn(3).requires_grad_(), randn(3).requires_grad_()
    y = tt.zeros(3, dtype=tt.float64).copy_(x * x)
    (product,) = tt.autograd.grad(y, x, w, create_graph=True)
    assert w.is_leaf and w.grad_fn is None
    product.sum().backward()
    close(w.grad, 2 * x)


# ---- tangents of recurrent layers and bags ----

TABLE = tt.arange(18, dtype=tt.float64).reshape(6, 3).cos()
PLACES, STARTS = tt.tensor([0, 2, 2, 5, 1, 0, 3]), tt.tensor([0, 3, 3, 5])


def bag_of(mode, *factors, padding=None):
    return lambda table, *given: nn.functional.embedding_bag(
        PLACES, table, STARTS, mode=mode, padding_idx=padding, per_sample_weights=(*given, None)[0]
    )


def layer_of(kind, **options):
    layer = getattr(nn, kind)(3, 4, dtype=tt.float64, **options)
    names = [name for name, _ in layer.named_parameters()]

    def call(x, *weights):
        y, state = func.functional_call(layer, dict(zip(names, weights)), (x,))
        states = state if isinstance(state, tuple) else (state,)
        return tt.cat([y.flatten(), *(s.flatten() for s in states)])

    return call, [p.detach() for p in layer.parameters()]


def packed(x):
    layer = nn.GRU(3, 4, dtype=tt.float64, bidirectional=True)
    for p in layer.parameters():
        p.data.copy_(tt.arange(p.numel(), dtype=tt.float64).reshape(p.shape).sin())
    return layer(nn.utils.rnn.pack_padded_sequence(x, [5, 3, 2], enforce_sorted=False))[0].data


@pytest.mark.parametrize(
    "f, inputs",
    [
        *((bag_of(mode, padding=p), [TABLE]) for mode in ("sum", "mean", "max") for p in (None, 2)),
        (bag_of("sum"), [TABLE, tt.arange(7, dtype=tt.float64).sin()]),
        (packed, [tt.arange(45, dtype=tt.float64).reshape(5, 3, 3).sin()]),
        *(
            (call, [tt.arange(30, dtype=tt.float64).reshape(5, 2, 3).sin(), *weights])
            for call, weights in (
                layer_of("RNN"),
                layer_of("RNN", nonlinearity="relu", bidirectional=True),
                layer_of("GRU", num_layers=2),
                layer_of("LSTM", bias=False, bidirectional=True),
                layer_of("LSTM", proj_size=2),
            )
        ),
    ],
)
def test_tangents_of_steps_and_bags(f, inputs):
    inputs = tuple(inputs)
    tangents = tuple(randn(*x.shape) for x in inputs)
    moved = [tuple(x + s * t for x, t in zip(inputs, tangents)) for s in (1e-6, -1e-6)]
    result, tangent = func.jvp(f, inputs, tangents)
    close(result, f(*inputs))
    close(tangent, (f(*moved[0]) - f(*moved[1])) / 2e-6, atol=1e-7, rtol=1e-6)
    first = func.jvp(lambda x: f(x, *inputs[1:]), inputs[:1], tangents[:1])[1]
    by_rows = func.jacrev(f)(*inputs)
    close(first, by_rows.flatten(-inputs[0].ndim) @ tangents[0].flatten())
    turned = randn(*tangent.shape)
    along = lambda *xs: (func.jvp(f, xs, tangents)[1] * turned).sum()  # noqa: E731
    slope = func.grad(along)(*inputs)
    there, back = (x[0] for x in moved)
    change = (along(there, *inputs[1:]) - along(back, *inputs[1:])) / 2e-6
    close((slope * tangents[0]).sum(), change, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_tangents_of_no_sequences(kind):
    call, _ = layer_of(kind)
    x = tt.zeros(2, 0, 3, dtype=tt.float64)
    assert func.jvp(call, (x,), (x,))[1].shape == (0,)
