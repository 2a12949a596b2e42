"""tt.compile: records and replays, what it watches, what it leaves to the function."""
import gc
import random
import weakref

import pytest

import tt
from tt import nn
from tt._layout import SparseGrads


def model():
    tt.manual_seed(3)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 4))


def info(compiled):
    (entry,) = compiled.entries.values()
    return entry.info()


def trained(compiled):
    """The losses and parameters of 20 steps with a schedule."""
    m = model()
    optimizer = tt.optim.Adam(m.parameters(), lr=0.05)
    schedule = tt.optim.lr_scheduler.StepLR(optimizer, 4)

    def step(x, t):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(m(x), t)
        loss.backward()
        nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    run = tt.compile(step) if compiled else step
    losses = []
    for k in range(20):
        tt.manual_seed(k)
        losses.append(run(tt.randn(6, 8), tt.randint(0, 4, (6,))).item())
        schedule.step()
    if compiled:
        assert info(run)[:3] == (1, 19, 1), info(run)
    return losses, [p.tolist() for p in m.parameters()]


def test_a_training_step():
    assert trained(True) == trained(False)


def scaled_steps(compiled, whole, clips):
    """Losses, scales and parameters of 50 steps under a GradScaler, of which every seventh has an
    infinite gradient. whole: the compiled function takes the step and updates the scale, too."""
    tt.manual_seed(0)
    w = tt.randn(4, 3).requires_grad_()
    optimizer = tt.optim.Adam([w], lr=0.05)
    scaler = tt.amp.GradScaler("cpu", init_scale=64.0, growth_interval=4)
    calls = []
    optimizer.register_step_pre_hook(lambda *_: calls.append(1))

    def finish():
        scaler.step(optimizer)
        scaler.update()

    def step(x):
        optimizer.zero_grad()
        loss = (x @ w).square().mean()
        scaler.scale(loss).backward()
        if clips:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_([w], 1.0)
        if whole:
            finish()
        return loss.detach()

    run = tt.compile(step) if compiled else step
    seen = []
    for k in range(50):
        x = tt.full((2, 4), float("inf") if k % 7 == 0 else 0.1 * k)
        seen.append((run(x).isfinite().item(), scaler.get_scale(), w.tolist()))
        if not whole:
            finish()
    assert not compiled or info(run)[:3] == (1, 49, 1), info(run)
    return seen, len(calls) if not whole else None


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("clips", [True, False])
def test_steps_under_a_scaler(monkeypatch, whole, clips, sparse):
    """Also where another layer of the process has had sparse gradients."""
    monkeypatch.setattr(SparseGrads, "seen", sparse)
    want = scaled_steps(False, whole, clips)
    assert {scale for _, scale, _ in want[0]} == {32.0, 64.0}
    assert scaled_steps(True, whole, clips) == want


SCHEDULES = {
    "StepLR": lambda o: tt.optim.lr_scheduler.StepLR(o, 4),
    "OneCycleLR": lambda o: tt.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=20),
    "LambdaLR": lambda o: tt.optim.lr_scheduler.LambdaLR(o, lambda epoch: 0.9**epoch),
    "CyclicLR": lambda o: tt.optim.lr_scheduler.CyclicLR(o, 0.01, 0.1, 3),
    "ReduceLROnPlateau": lambda o: tt.optim.lr_scheduler.ReduceLROnPlateau(o, patience=1),
}


def scheduled(name, compiled):
    """The parameters after 12 steps with the schedule inside, and what was recorded."""
    tt.manual_seed(0)
    w = tt.randn(3, 2).requires_grad_()
    optimizer = tt.optim.SGD([w], lr=0.05, momentum=0.9)
    schedule = SCHEDULES[name](optimizer)

    def step(x):
        optimizer.zero_grad()
        (x @ w).square().sum().backward()
        optimizer.step()
        schedule.step(1.0) if name == "ReduceLROnPlateau" else schedule.step()
        return w.detach().clone()

    run = tt.compile(step) if compiled else step
    for k in range(12):
        run(tt.full((2, 3), 0.1 * k))
    return w.tolist(), schedule.last_epoch, info(run) if compiled else None


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_inside(name):
    *found, records = scheduled(name, True)
    assert found == list(scheduled(name, False)[:2])
    if name in ("CyclicLR", "ReduceLROnPlateau"):  # computed in Python
        assert records[0] == 0 and "a value of an optimizer is set" in records[3]
    else:
        assert records[:3] == (1, 11, 1), records


def test_shapes_and_structures():
    @tt.compile
    def f(pair, *, scale):
        a, b = pair["a"], pair["b"]
        return {"sum": (a + b) * scale, "list": [a * 2, None]}

    for n in (3, 4, 3, 4):
        a, b = tt.arange(n).float(), tt.ones(n)
        found = f({"a": a, "b": b}, scale=3)
        assert found["sum"].tolist() == ((a + b) * 3).tolist()
        assert found["list"][0].tolist() == (a * 2).tolist() and found["list"][1] is None
    assert info(f)[:3] == (2, 2, 2)
    assert f({"a": a, "b": b}, scale=5)["sum"].tolist() == ((a + b) * 5).tolist()
    assert len(f.entries) == 2


factor = 2.0


def helper(x):
    return x * factor


n_calls = 0


def test_numbers_of_closures_and_globals():
    global factor
    offset = 1

    @tt.compile
    def f(x):
        return helper(x) + offset

    x = tt.ones(2)
    assert f(x).tolist() == [3, 3] and f(x).tolist() == [3, 3]
    offset = 5
    assert f(x).tolist() == [7, 7] and f(x).tolist() == [7, 7]
    factor = 3.0
    try:
        assert f(x).tolist() == [8, 8]
    finally:
        factor = 2.0
    assert len(f.entries) == 3


def test_a_function_that_counts_its_calls_runs_unchanged():
    """Its counter is a new number in each call, and so would each record be."""
    global n_calls

    @tt.compile
    def f(x):
        global n_calls
        n_calls += 1
        return x * 2

    for k in range(1, 6):
        assert f(tt.ones(2)).tolist() == [2, 2] and n_calls == k
    assert len(f.entries) == 2
    n_calls = 0


def test_a_gradient_that_is_returned():
    """It is the leaf's, in memory that is new in each call."""
    w = tt.ones(3, requires_grad=True)

    @tt.compile
    def step(x):
        w.grad = None
        (w * x).square().sum().backward()
        return w.grad, w.grad[1:], w.grad * 2

    returned = []
    for k in range(4):
        x = tt.arange(3.0) + k
        whole, part, twice = step(x)
        assert whole.tolist() == (2 * x * x).tolist() and part.tolist() == whole[1:].tolist()
        assert twice.tolist() == (4 * x * x).tolist()
        assert w.grad.data_ptr() == whole.data_ptr()
        part.zero_()
        assert w.grad.tolist() == [2 * k * k, 0, 0]
        returned.append(whole)
    assert [g[0].item() for g in returned] == [0, 2, 8, 18]
    assert info(step)[:3] == (1, 3, 1)


def test_gradients_of_inputs():
    """Leaves that are inputs get gradients of their own; the history of an input is not recorded,
    which is another one in each call."""

    @tt.compile
    def step(x):
        x.square().sum().backward()

    leaves = [tt.full((3,), float(k), requires_grad=True) for k in range(4)]
    for x in leaves:
        step(x)
        assert x.grad.tolist() == (2 * x).tolist()
        if x[0] == 1:
            x.grad = None
    assert [x.grad is None for x in leaves] == [False, True, False, False]
    assert [leaves[k].grad[0].item() for k in (0, 2, 3)] == [0, 4, 6]
    assert info(step)[:3] == (1, 3, 1)

    @tt.compile
    def gradient(y, x):
        return tt.autograd.grad(y.square().sum(), x)[0]

    for k in range(1, 4):
        x = tt.full((3,), float(k), requires_grad=True)
        assert gradient(x * k, x).tolist() == [2.0 * k**3] * 3
    assert "history" in info(gradient)[3]


def test_a_number_as_a_position():
    """A tensor of one integer is another position in each call."""
    cache = tt.zeros(4, 2)
    at = tt.zeros((), dtype=tt.int64)

    @tt.compile
    def write(x):
        cache[at] = x
        cache[at, 1] = 5
        at.add_(1)

    for k in range(3):
        write(tt.full((2,), float(k)))
    assert cache.tolist() == [[0, 5], [1, 5], [2, 5], [0, 0]] and info(write)[:3] == (1, 2, 1)


def test_a_number_that_is_read_as_a_position():
    """x[i] with i in a tensor is recorded in the second call, unless x or x[i] is written or a
    result is a view of it."""

    def read(x, i, j):
        return x[i].exp().sum() + x[..., i, 1:].sum() + x[i, j] + x[None, :, j].max()

    x, compiled = tt.randn(5, 3), tt.compile(read, fullgraph=True)
    for k in (0, 1, 4, -1, 2):
        i, j = tt.tensor(k), tt.tensor(k % 3)
        assert tt.equal(compiled(x, i, j), read(x, i, j))
    assert info(compiled)[:3] == (1, 3, 2)
    with pytest.raises(IndexError, match="7"):
        compiled(x, tt.tensor(7), tt.tensor(0))
    for other in (4, 4, 4):  # rows
        x = tt.randn(other, 3)
        assert tt.equal(
            compiled(x, tt.tensor(3), tt.tensor(1)), read(x, tt.tensor(3), tt.tensor(1))
        )


def clears(x, i):
    x[i].zero_()
    return x + 1


def writes_after(x, i):
    row = x[i]
    x.add_(1)
    return row * 2


def gives(x, i):
    return x[i]


def gives_parts(x, i):
    y = x.exp()
    row, column = y[i], y[:, i]
    row.mul_(2)
    return {"row": row, "parts": (row[1:], column[1:]), "y": y}


def siblings(x, i):
    a, b, c = x[i], x[0], x[i]
    a.add_(3)
    d = b + c
    c.mul_(2)
    return a, b, c, d, x


def view_of_view(x, i):
    a = x.t()[i]
    b = a[i]
    b.add_(5)
    a.mul_(2)
    return b, a.sum()


def in_place(x, i):
    x[i] += 1
    x[:, i] *= 3
    x[i, i] -= 2
    x[i, :2][1:] = 7.0
    return x.sum(0)


def moves(x, i):
    a = x[i]
    i.add_(1).remainder_(3)
    a.zero_()
    b = x[i]
    b.sub_(1)
    return a, b, i


def layers(x, i):
    column, row = x[:, i], x[0]
    nn.Sequential(nn.ReLU(inplace=True), nn.Hardtanh(-0.5, 0.5, inplace=True))(column)
    nn.ReLU(inplace=True)(row)
    return column, row


def copies(x, i):
    """Where a copy of the view would be a view of a dense copy."""
    column, block = x[:, i].contiguous(), x[None].expand(2, 3, 3)[:, i].reshape(-1)
    column.add_(1)
    block.add_(2)
    return column, block


def detached(x, i):
    row, data = x[i], x.data
    row.detach().add_(1)
    row.data.mul_(2)
    data.add_(1)
    return row + x


def swaps(x, i):
    row = x[i].clone()
    x[i] = x[0]
    x[0] = row
    return x[i]


def gradients(x, i):
    w = x.detach().clone().requires_grad_()
    y = w * 2
    row = y[i]
    row.mul_(3)
    y[0].mul_(x[0])
    return tt.autograd.grad((y * y).sum() + row.sum(), w)[0]


def ends(x, i):
    row = x[i]
    row.add_(row.sum().item() > 0)
    x[i].mul_(2)
    return row, x[i]


AT_POSITIONS = [
    clears, writes_after, gives, gives_parts, siblings, view_of_view, in_place, moves, layers,
    copies, detached, swaps, gradients, ends,
]  # fmt: skip


def tensors_of(value):
    if isinstance(value, tt.Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value
    return [x for item in items for x in tensors_of(item)]


def assert_alike(results, expected):
    """The same numbers in the same geometry, over the same memory."""
    assert len(results) == len(expected)
    for x, y in zip(results, expected):
        assert x.shape == y.shape and x.stride() == y.stride() and tt.equal(x, y)
        for u, v in zip(results, expected):
            shared = x._storage_data() == u._storage_data()
            assert shared == (y._storage_data() == v._storage_data())
            assert not shared or x.data_ptr() - u.data_ptr() == y.data_ptr() - v.data_ptr()


@pytest.mark.parametrize("function", AT_POSITIONS)
def test_views_at_positions_that_are_written_or_returned(function):
    compiled = tt.compile(function)
    for k in (0, 1, 2, 1, 0, 2):
        x, i = tt.randn(3, 3), tt.tensor(k)
        y, j = x.clone(), i.clone()
        results, expected = tensors_of(compiled(x, i)), tensors_of(function(y, j))
        assert_alike([x, i, *results], [y, j, *expected])
    assert info(compiled)[:2] == ((0, 0) if function is ends else (1, 4))


def test_a_position_in_memory_that_arguments_share():
    """x[i] stays a view if x is written as another argument, or as one that has a name."""

    def adds(x, y, i):
        row = x[i]
        y.add_(1)
        return row * 2

    compiled = tt.compile(adds)
    for k in range(3):
        x = tt.ones(3, 2)
        assert tt.equal(compiled(x, tt.zeros(3, 2), tt.tensor(k)), tt.full((2,), 2.0))
    for k in range(3):
        x = tt.ones(3, 2)
        assert tt.equal(compiled(x, x, tt.tensor(k)), tt.full((2,), 4.0))
    table = tt.ones(3, 2)

    @tt.compile
    def reads(y, i):
        row = table[i]
        y.add_(1)
        return row * 2

    for k in range(3):
        assert tt.equal(reads(tt.zeros(3, 2), tt.tensor(k)), tt.full((2,), 2.0))
    assert tt.equal(reads(table, tt.tensor(0)), tt.full((2,), 4.0))
    assert tt.equal(reads(tt.zeros(3, 2), tt.tensor(0)), tt.full((2,), 4.0))


def test_a_position_that_fails():
    """The next index has no position in a tensor: its result may be written."""

    @tt.compile
    def writes(x, i):
        try:
            x[i, 0, 0]
        except IndexError:
            pass
        y = x[[0, 1]]
        y.zero_()
        return y + x[i].sum()

    for k in (0, 1, 2, 1):
        x = tt.arange(6.0).reshape(3, 2)
        assert tt.equal(writes(x, tt.tensor(k)), tt.zeros(2, 2) + x[k].sum())


def unsqueezes(x, i):
    row = x[i]
    row.unsqueeze_(0)
    row.add_(1)
    return x * 1, row


def replaces_memory(x, i):
    row = x[i]
    x.data = tt.zeros(3, 3)
    x.add_(1)
    return row * 1


def shares_addresses(x, i):
    row = x.as_strided((3, 3), (1, 1))[i]
    row.add_(1)
    return x * 1, row


def transposes_back(x, i):
    x = x.clone()
    x.t_()
    row = x[i]
    x.t_()
    row.add_(1)
    return x


def shrinks(x, i):
    row = x[i]
    row.resize_(2)
    row.add_(1)
    return x * 1


@pytest.mark.parametrize(
    "function", [unsqueezes, replaces_memory, shares_addresses, transposes_back, shrinks]
)
def test_shapes_and_memory_that_change_in_place_behind_positions(function):
    compiled = tt.compile(function)
    for k in (0, 1, 2, 1, 0):
        x, i = tt.randn(3, 3), tt.tensor(k)
        y, j = x.clone(), i.clone()
        results, expected = tensors_of(compiled(x, i)), tensors_of(function(y, j))
        assert_alike([x, *results], [y, *expected])
    assert info(compiled)[:2] == (0, 0)


def test_a_tensor_with_positions_is_noted_once():
    from tt._positions import Positions

    x, y = tt.ones(3, 2), tt.ones(3, 2)
    with Positions(False) as positions:
        for k in range(3):
            x[tt.tensor(k)] + y[tt.tensor(k)]
    assert len(positions.tensors) == 2 and not positions.are_written()


def test_a_write_at_a_position_that_no_call_before_made():
    """The call that is recorded takes another branch than the one before it."""
    calls = []

    def clears_later(x, i):
        calls.append(i)
        row, column = x[i], x[:, i]
        if len(calls) % 3:
            row.zero_()
            column.t().add_(1)
        return x + 1, column[1:] if len(calls) % 3 == 2 else column

    for start in range(3):
        calls[:] = range(start)
        compiled = tt.compile(clears_later)
        for k in range(2):
            x = tt.randn(3, 3)
            y = x.clone()
            results, n = compiled(x, tt.tensor(k)), len(calls)
            calls.pop()
            expected = clears_later(y, tt.tensor(k))
            assert len(calls) == n and tt.equal(x, y)
            assert all(map(tt.equal, results, expected))


def test_memory_that_python_reads():
    """What follows from it would be frozen in a record."""
    import io

    import numpy as np

    seen = []

    def through_a_file(x):
        file = io.BytesIO()
        tt.save(x, file)
        file.seek(0)
        return tt.load(file)

    functions = [
        lambda x: tt.tensor((x * 2).tolist()),
        lambda x: tt.from_numpy((x * 2).numpy() + 1),
        lambda x: tt.tensor(np.asarray(x * 2)),
        lambda x: x * float(np.asarray(x * 2, dtype=np.float64).sum()),
        lambda x: tt.from_dlpack(x * 2) + 1,
        lambda x: x.view(tt.int32) & 7,
        lambda x: tt.tensor((x * 2).untyped_storage().tolist()),
        lambda x: (x * 2).share_memory_() + 1,
        lambda x: (x * 2).apply_(lambda v: v + 1),
        lambda x: x * len(repr(x * 2)),
        lambda x: x * len(f"{x}"),
        lambda x: x + len(seen.append(str(x)) or seen),
        lambda x: through_a_file(x * 2) + 1,
    ]
    for function in functions:
        compiled = tt.compile(function)
        for k in (1, 1000, 3):
            x = tt.arange(4.0) / k
            results = compiled(x)
            seen[:] = seen[:-1] if seen else seen
            assert tt.equal(results, function(x))
        assert info(compiled)[1] == 0 and "are read" in info(compiled)[3]
    shape = tt.compile(lambda x: x * len(str(x.shape)))
    for k in range(3):
        shape(tt.ones(2))
    assert info(shape)[:3] == (1, 2, 1)


def test_a_position_that_is_read_in_a_module():
    class Positional(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.linear = nn.Parameter(tt.randn(6, 4)), nn.Linear(4, 4)

        def forward(self, x, i):
            return self.linear(x + self.table[i])

    m = Positional()

    @tt.compile
    def gradient(x, i):
        return tt.autograd.grad(m(x, i).square().sum(), m.table)[0]

    exported = tt.export.export(m, (tt.randn(2, 4), tt.tensor(1)))
    for k in (0, 5, 2, -1):
        x, i = tt.randn(2, 4), tt.tensor(k)
        assert tt.equal(exported.run(x, i), m(x, i))
        assert tt.equal(gradient(x, i), gradient.fn(x, i))
    assert info(gradient)[:3] == (1, 2, 2)

    class Adding(nn.Module):
        def forward(self, x, i):
            x[i].add_(1)
            return x * 1

    exported = tt.export.export(Adding(), (tt.randn(2, 4), tt.tensor(1)))
    for k in range(2):
        x, i = tt.randn(2, 4), tt.tensor(k)
        assert tt.equal(exported.run(x, i), Adding()(x.clone(), i))

    class Flattening(nn.Module):
        def forward(self, x, i):
            x[:, i].reshape(-1).add_(1)
            return x * 1

    with pytest.raises(NotImplementedError, match="x.i., with i in a tensor, after a reshape"):
        tt.export.export(Flattening(), (tt.randn(2, 3, 4), tt.tensor(1)))


@pytest.mark.parametrize("dynamic", [False, True])
def test_inputs_that_share_memory(dynamic):
    """As a sequence and the same one a step later, or a leaf given twice."""
    w = tt.tensor([[1.0, 2.0]], requires_grad=True)

    @tt.compile(dynamic=dynamic)
    def step(x, y):
        w.grad = None
        loss = ((x[:, None] @ w).sum(1) - y).square().mean()
        loss.backward()
        return loss.detach()

    for k in range(6):
        t = tt.arange(5.0 + k * dynamic) + k
        loss = step(t[:-1], t[1:])
        assert loss.item() == ((3 * t[:-1] - t[1:]).square().mean()).item()
    assert info(step)[:3] == ((6, 3, 3) if dynamic else (1, 5, 1))

    product = tt.compile(lambda x, y: (x * y).sum().backward(), dynamic=dynamic)
    a, b, c = (tt.tensor([k], requires_grad=True) for k in (2.0, 3.0, 5.0))
    product(a, b)
    product(c, c)
    assert (a.grad.item(), b.grad.item(), c.grad.item()) == (3, 2, 10)


def test_many_inputs_that_share_memory():
    """More than are compared with each other."""
    add = tt.compile(lambda *x: sum((k + 1) * t.sum() for k, t in enumerate(x)))
    for k in range(4):
        t = tt.arange(80.0) + k
        x = [t[i : i + 3] for i in range(40)] + [t, t]
        if k == 3:
            x[7] = x[7].clone()
        assert add(*x).item() == sum((i + 1) * t.sum().item() for i, t in enumerate(x))
    assert info(add)[:3] == (2, 2, 2)


def test_hooks_of_inputs():
    @tt.compile
    def step(x):
        x.grad = None
        (x * x).sum().backward()
        return x.grad

    plain, hooked = (tt.tensor([5.0], requires_grad=True) for _ in range(2))
    hook = hooked.register_hook(lambda g: g * 10)
    for _ in range(2):
        assert step(plain).item() == 10
        assert step(hooked).item() == 100
    assert info(step)[:3] == (2, 2, 2)
    hook.remove()
    assert step(hooked).item() == 10


def test_hooks_that_come_later():
    """Of a parameter, and of a module that the function calls."""
    m = nn.Linear(2, 1, bias=False)
    step = tt.compile(lambda x: m(x).sum().backward())
    seen = []
    for k in range(6):
        if k == 2:
            hook = m.weight.register_hook(lambda g: g * 2)
        if k == 4:
            hook.remove()
            m.register_forward_hook(lambda m, args, y: y * 5)
        m.weight.grad = None
        step(tt.ones(1, 2))
        seen.append(m.weight.grad.tolist())
    assert seen == [[[1, 1]]] * 2 + [[[2, 2]]] * 2 + [[[5, 5]]] * 2


def test_gradients_that_stay():
    """Each call adds to the gradient of the one before; the application drops and keeps some."""
    w = tt.tensor([1.0, 2.0], requires_grad=True)
    add = tt.compile(lambda x: (w * x).sum().backward())
    kept, want = [], [0, 0]
    for k in range(12):
        add(tt.tensor([1.0, k]))
        want = [want[0] + 1, want[1] + k]
        assert w.grad.tolist() == want
        if k % 3 == 2:
            kept.append((w.grad, want))
            w.grad, want = None, [0, 0]
    assert all(grad.tolist() == numbers for grad, numbers in kept)
    assert info(add)[:3] == (2, 10, 2)

    optimizer = tt.optim.Adam([w], lr=0.1)
    step = tt.compile(optimizer.step)
    other = w.detach().clone().requires_grad_()
    plain = tt.optim.Adam([other], lr=0.1)
    for k in range(5):  # their gradients are new each time
        for p, run, o in ((w, step, optimizer), (other, plain.step, plain)):
            o.zero_grad()
            (p * p * k).sum().backward()
            run()
    assert w.tolist() == other.tolist() and info(step)[:3] == (1, 4, 1)


def test_gradients_that_the_application_keeps():
    w = tt.tensor([1.0, 2.0], requires_grad=True)

    @tt.compile
    def step(x):
        w.grad = None
        (w * x).sum().backward()

    kept = []
    for k in range(5):
        step(tt.tensor([1.0, k]))
        kept.append(w.grad)
    assert [g.tolist() for g in kept] == [[1, k] for k in range(5)]
    assert info(step)[:3] == (1, 4, 1)


def test_an_argument_that_has_a_name():
    """A record would multiply each argument by itself."""
    w = tt.tensor([1.0, 2.0])
    f = tt.compile(lambda x: x * w)
    assert f(w[:]).tolist() == [1, 4]
    assert f(tt.tensor([10.0, 10.0])).tolist() == [10, 20]


def test_inputs_that_get_a_history():
    """By a write, or by requires_grad_."""
    scale = tt.compile(lambda x: x.mul_(2).detach().sum())

    @tt.compile
    def direction(x):
        x.requires_grad_()
        (x * x).sum().backward()
        return x.grad.sign()

    for k in range(3):
        a = tt.tensor([1.0, 2.0], requires_grad=True)
        b = a * 3
        assert scale(b).item() == 18
        b.sum().backward()
        assert a.grad.tolist() == [6, 6]
        x = tt.tensor([-1.0, k])
        assert direction(x).tolist() == [-1, k > 0]
        assert x.requires_grad and x.grad.tolist() == [-2, 2 * k]
    assert info(direction)[:3] == (1, 2, 1) and "history" in info(scale)[3]


def test_results_of_several_structures():
    w = tt.tensor([1.0], requires_grad=True)
    f = tt.compile(lambda x: [x * 2] if w.grad is None else {"x": x * 3})
    assert f(tt.ones(2))[0].tolist() == [2, 2]
    w.grad = tt.ones(1)
    for _ in range(2):
        assert f(tt.ones(2))["x"].tolist() == [3, 3]


STATEMENTS = {
    "add": lambda s: s.t.add_(s.y.sum()),
    "write x": lambda s: s.x.mul_(1.5),
    "write y": lambda s: s.y.add_(1),
    "first of x": lambda s: s.t.add_(s.x.reshape(-1)[0]),
    "last of y": lambda s: s.t.add_(s.y.reshape(-1)[-1:].sum()),
    "backward": lambda s: s.backward(s.w * s.v * s.x.sum()),
    "backward of w": lambda s: s.backward(s.w * s.t),
    "read w.grad": lambda s: s.t.add_(0 if s.w.grad is None else s.w.grad.sum()),
    "drop w.grad": lambda s: setattr(s.w, "grad", None),
    "scale w.grad": lambda s: s.w.grad is None or s.w.grad.mul_(0.5),
    "zero v.grad": lambda s: s.v.grad is None or s.v.grad.zero_(),
    "set v.grad": lambda s: setattr(s.v, "grad", s.t * tt.ones(3)),
    "return x": lambda s: s.outs.append(s.x),
    "return y": lambda s: s.outs.append(s.y.reshape(-1)[:1]),
    "return w.grad": lambda s: s.w.grad is None or s.outs.append(s.w.grad),
}
PAIRS = {
    "apart": lambda t: (t[:4].clone(), t[4:].clone()),
    "the same": lambda t: (t, t),
    "detached": lambda t: (t, t.detach()),
    "shifted": lambda t: (t[:-1], t[1:]),
    "halves": lambda t: (t[:4], t[4:]),
    "columns": lambda t: (t.reshape(2, 4)[:, :2], t.reshape(2, 4)[:, 2:]),
    "a part": lambda t: (t.reshape(2, 4), t.reshape(2, 4)[1]),
    "two shapes": lambda t: (t.reshape(2, 4), t.reshape(4, 2)),
}
EVENTS = {
    "drop": lambda w, v, kept: (setattr(w, "grad", None), setattr(v, "grad", None)),
    "keep": lambda w, v, kept: w.grad is None or kept.append(w.grad),
    "zero": lambda w, v, kept: w.grad is None or w.grad.zero_(),
    "replace": lambda w, v, kept: setattr(w, "grad", tt.ones(3)),
    "share": lambda w, v, kept: share_gradients(w, v, kept),
    "hook": lambda w, v, kept: w.register_hook(lambda g: g * 2),
}


def share_gradients(w, v, kept):
    kept.append(tt.arange(6.0))
    w.grad, v.grad = kept[-1][:3], kept[-1][3:]


class Statements:
    """What the statements of one call see."""

    def __init__(self, x, y, w, v):
        self.x, self.y, self.w, self.v, self.outs = x, y, w, v, []
        self.t = x.sum() * y.sum() + x.mean()

    @staticmethod
    def backward(terms):
        with tt.enable_grad():
            terms.sum().backward()


def random_calls(seed, compiled):
    """All that can be seen of eight calls of a random function."""
    choose = random.Random(seed)
    names = [choose.choice(list(STATEMENTS)) for _ in range(choose.randint(1, 5))]
    pairs = [choose.choice(list(PAIRS)) for _ in range(2)]
    w = tt.tensor([1.0, 2.0, 3.0], requires_grad=True)
    v = tt.tensor([0.5, 0.25, 1.0], requires_grad=True)

    def function(x, y):
        s = Statements(x, y, w, v)
        with tt.no_grad():
            for name in names:
                if name.startswith("backward"):
                    with tt.enable_grad():
                        STATEMENTS[name](s)
                else:
                    STATEMENTS[name](s)
        return s.outs + [s.t]

    run = tt.compile(function) if compiled else function
    seen, kept = [], []
    for k in range(8):
        x, y = PAIRS[choose.choice(pairs)]((tt.arange(8.0) + 1) * (k % 3 + 1) / 4)
        if choose.random() < 0.3:
            EVENTS[choose.choice(list(EVENTS))](w, v, kept)
        outs = run(x, y)
        if choose.random() < 0.3:
            outs[0].add_(1)
        if choose.random() < 0.2:
            kept.append(outs[-1])
        tensors = [*outs, x, y, w.grad, v.grad, *kept]
        seen.append([None if t is None else t.tolist() for t in tensors])
    return seen, names, pairs


@pytest.mark.parametrize("seed", range(60))
def test_random_functions(seed):
    """Whose arguments share memory, whose gradients stay, are kept and are written."""
    assert random_calls(seed, True) == random_calls(seed, False)


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.factor, self.calls, self.function = 2.0, 0, tt.exp
        self.counts = False

    def forward(self, x):
        if self.counts:
            self.calls += 1
        return self.function(x) * self.factor


def test_attributes_of_modules():
    m = Scaled()
    compiled = tt.compile(m)
    run = tt.compile(lambda x: m(x))
    x = tt.tensor([0.0, 1.0])
    for change in ("factor", None, "function", None, "factor"):
        if change:
            setattr(m, change, 3.0 if change == "factor" else tt.cos)
        if change == "factor":
            m.factor = m.factor + 1
        for f in (compiled, run):
            assert tt.equal(f(x), m(x)) and tt.equal(f(x), m(x))
    m.counts = True
    for k in range(1, 4):
        compiled(x)
        assert m.calls == k
    assert "attribute" in list(compiled._compiled.entries.values())[-1].plain


class Weighted(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(tt.ones(2), requires_grad=False)
        self.register_buffer("sum", tt.zeros(2))
        self.inner = nn.Sequential(nn.ReLU())
        self.adds = False

    def forward(self, x):
        if self.adds:
            self.sum = self.sum + x
        return self.inner(x) * self.weight + self.sum


def test_a_module_before_any_attribute_is_set():
    """As in a process whose first module is a layer."""
    nn.module.modes[0] = None
    layer = nn.Linear(2, 2).requires_grad_(False)
    compiled = tt.compile(lambda x: layer(x))
    compiled(tt.ones(2))
    assert [entry.plain for entry in compiled.entries.values()] == [None]


def test_parameters_and_children_of_modules():
    m = Weighted()
    compiled = tt.compile(m)
    run = tt.compile(lambda x: m(x))
    x = tt.tensor([-1.0, 2.0])

    def check():
        for f in (compiled, run):
            assert tt.equal(f(x), m(x)) and tt.equal(f(x), m(x))

    check()
    m.weight = nn.Parameter(tt.tensor([3.0, 4.0]), requires_grad=False)
    check()
    m.sum = tt.ones(2)
    check()
    m.inner[0] = nn.Tanh()
    check()
    m.inner.append(nn.Sigmoid())
    check()
    m.inner = nn.Sequential(Scaled())
    check()
    m.inner[0].factor = 5.0
    check()
    given = {"_orig_mod.weight": tt.zeros(2)}
    assert tt.func.functional_call(compiled, given, x).tolist() == [1, 1]
    check()
    m.adds = True
    assert [compiled(x).tolist()[1] - m.inner(x)[1].item() * 4 for _ in range(3)] == [3, 5, 7]


def test_a_seed_inside():
    def f(x):
        tt.manual_seed(3)
        return x + tt.rand(2)

    compiled = tt.compile(f)
    x = tt.zeros(2)
    assert [compiled(x).tolist() for _ in range(3)] == [f(x).tolist()] * 3
    assert "generator" in info(compiled)[3]


def test_results_that_are_slices():
    compiled = tt.compile(lambda x: (x + 1)[1::3])
    for shape in ((300, 128), (64, 5), (7,)):
        x = tt.randn(shape)
        for _ in range(3):
            assert tt.equal(compiled(x), (x + 1)[1::3])
            assert compiled(x).stride() == (x + 1)[1::3].stride()


def test_a_batch_of_any_size():
    m = model().eval()
    compiled = tt.compile(m, dynamic=True)
    step = tt.compile(dynamic=True)(lambda x, y: (x * y).sum(0))
    with tt.no_grad():
        for n in (1, 2, 5, 3, 4, 17, 2, 8):
            x = tt.randn(n, 8)
            assert compiled(x).tolist() == m(x).tolist()
            y = tt.randn(n, 8)
            assert step(x, y).tolist() == (x * y).sum(0).tolist()
    for f in (compiled._compiled, step):
        (entry,) = f.entries.values()
        assert entry.info()[0] == 7 and entry.info()[2] == 4


def test_a_module():
    m = model()
    x = tt.randn(2, 8)
    compiled = tt.compile(m, mode="max-autotune", backend="inductor", dynamic=False)
    assert isinstance(compiled, nn.Module) and compiled._orig_mod is m
    assert [id(p) for p in compiled.parameters()] == [id(p) for p in m.parameters()]
    assert list(compiled.state_dict())[0] == "_orig_mod.0.weight"
    compiled.eval()
    assert not m.training
    with tt.no_grad():
        want = m(x).tolist()
        assert compiled(x).tolist() == want and compiled(x).tolist() == want
        for p in m.parameters():
            p.mul_(2)
        assert compiled(x).tolist() == m(x).tolist()
        m.train()
        tt.manual_seed(1)
        want = m(x).tolist()
        tt.manual_seed(1)
        assert compiled(x).tolist() == want
        m[0].weight = nn.Parameter(tt.zeros(16, 8))
        m.eval()
        assert compiled(x).tolist() == m(x).tolist()
    run = tt.compile(lambda x: m(x).detach())
    for mode in (False, True, False):
        m[2].training = mode
        for k in range(3):  # the last ones are replays
            tt.manual_seed(k)
            want = m(x).tolist()
            tt.manual_seed(k)
            assert run(x).tolist() == want
    out = compiled(x)  # with gradients: test_compile_gradients.py
    out.sum().backward()
    assert m[0].weight.grad is not None


def test_what_is_not_recorded():
    calls = []

    @tt.compile
    def reads(x):
        calls.append(1)
        return x * x.sum().item()

    for k in (1.0, 2.0, 3.0):
        assert reads(tt.full((2,), k)).tolist() == [2 * k * k] * 2
    assert len(calls) == 3 and "read" in info(reads)[3]

    @tt.compile
    def numbers(x):
        return x + 1, x.shape[0]

    assert [numbers(tt.ones(n))[1] for n in (2, 3, 2)] == [2, 3, 2]
    assert "int" in next(iter(numbers.entries.values())).plain
    with pytest.raises(RuntimeError, match="fullgraph.*read"):
        tt.compile(lambda x: x * x.sum().item(), fullgraph=True)(tt.ones(2))
    weight = tt.ones(2, requires_grad=True)  # which no replay can give, but PyTorch can
    tt.compile(lambda x: x * weight, fullgraph=True)(tt.ones(2)).sum().backward()
    assert weight.grad.tolist() == [1, 1]


def test_stances_and_modes():
    calls = []

    @tt.compile(mode="reduce-overhead")
    def f(x):
        calls.append(1)
        return x + 1

    for _ in range(3):
        f(tt.ones(2))
    assert len(calls) == 1
    with tt.compiler.set_stance("force_eager"):
        for _ in range(3):
            assert f(tt.ones(2)).tolist() == [2, 2]
    assert len(calls) == 4
    f(tt.ones(2))
    assert len(calls) == 4
    with pytest.raises(RuntimeError, match="set_stance"):
        tt.compiler.set_stance("eager")
    with pytest.raises(RuntimeError, match="unrecognized mode 'fast'"):
        tt.compile(f, mode="fast")


def test_failures():
    calls = []

    @tt.compile
    def f(x):
        calls.append(1)
        if len(calls) == 1:
            raise KeyError("first")
        return x.neg()

    with pytest.raises(KeyError, match="first"):
        f(tt.ones(1))
    assert f(tt.ones(1)).item() == -1 and f(tt.ones(1)).item() == -1
    assert len(calls) == 2
    table = tt.randn(5, 2)
    pick = tt.compile(lambda i: nn.functional.embedding(i, table))
    assert pick(tt.tensor([1, 2])).tolist() == table[1:3].tolist()
    with pytest.raises(IndexError, match="7"):
        pick(tt.tensor([1, 7]))
    assert pick(tt.tensor([0, 4])).tolist() == [table[0].tolist(), table[4].tolist()]
    assert info(pick)[0] == 1


def test_names():
    def f(x):
        return x + 1, tt.compiler.is_compiling()

    seen = []
    assert tt.compiler.disable(f) is f and tt.compile(f, disable=True) is f
    assert not tt.compiler.is_compiling() and not tt.compiler.is_exporting()
    compiled = tt.compile(fullgraph=False)(
        lambda x: seen.append(tt.compiler.is_compiling()) or x + 1
    )
    for _ in range(3):
        assert compiled(tt.ones(1)).item() == 2
    assert seen == [True]
    tt.compiler.reset()
    assert compiled(tt.ones(1)).item() == 2 and len(seen) == 2

    class Owner:
        def __init__(self, by):
            self.by = by

        @tt.compile
        def method(self, x):
            return x * self.by

    one, two = Owner(2), Owner(3)
    for _ in range(2):
        assert one.method(tt.ones(1)).item() == 2 and two.method(tt.ones(1)).item() == 3


def test_nothing_is_kept():
    class Big:
        pass

    big = Big()
    gone = weakref.ref(big)
    f = tt.compile(lambda x: x + (big is not None))
    f(tt.ones(1))
    f(tt.ones(1))
    del f, big
    gc.collect()
    assert gone() is None


def test_sums_of_terms_have_the_bits_of_the_calls_that_they_replay():
    tt.manual_seed(4)
    norm = tt.linalg.vector_norm
    calls = [lambda x, p=p: norm(x, p, dim=-1) for p in (0, 1, 2, 3)]
    calls += [
        lambda x: tt.nansum(x, -1),
        lambda x: tt.nansum(tt.where(x > 1, tt.nan, x), 0),
        lambda x: tt.nansum(tt.where(x > 1, tt.nan, x).to(tt.bfloat16)),
        lambda x: tt.nansum(x[..., ::3], -1),
        lambda x: tt.nanmean(x, -1),
        lambda x: tt.logsumexp(x, -1),
    ]
    for x in (tt.randn(300, 49), tt.randn(7, 1500), tt.randn(100_003)):
        x[..., 1] = 0
        for call in calls:
            compiled = tt.compile(call)
            compiled(x)
            assert tt.equal(compiled(x), call(x)) and info(compiled)[1] == 1
            assert tt.equal(call(x.clone().requires_grad_()).detach(), call(x))


def test_steps_whose_gradients_divide_by_elements_or_whose_masks_write_numbers():
    w = tt.tensor([[0.5, -2.0, 3.0], [1.5, 1.0, -1.0]], requires_grad=True)

    def step(x):
        y = w * x
        y[x > 2] = 0.25
        w.grad = None
        (y.prod() + y.prod(0).sum() + y.cumprod(1).sum()).backward()
        return w.grad.clone()

    compiled = tt.compile(step)
    for x in (tt.ones(2, 3), tt.eye(2, 3), tt.full((2, 3), 3.0), 2 * tt.ones(2, 3)):
        assert tt.equal(compiled(x), step(x))
    assert info(compiled)[1] == 3


def test_norms_under_autocast():
    def call(x):
        with tt.autocast("cpu", dtype=tt.bfloat16):
            return tt.linalg.vector_norm(x, 2, 1), nn.functional.normalize(x)

    tt.manual_seed(5)
    compiled = tt.compile(call)
    for x in tt.randn(3, 70, 33):
        assert all(map(tt.equal, compiled(x), call(x)))
        with tt.profiler.profile():
            assert tt.equal(call(x)[0], tt.linalg.vector_norm(x, 2, 1))


def of_matrices(cls, compiled):
    """The parameters after steps of a class that computes by operators, whose values change."""
    tt.manual_seed(7)
    p = tt.randn(3, 5, requires_grad=True)
    optimizer = cls([p], lr=0.1, weight_decay=0.1)
    schedule = tt.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)

    def step(x):
        optimizer.zero_grad()
        (x @ p).square().sum().backward()
        optimizer.step()
        schedule.step()
        return p.detach().clone()

    run = tt.compile(step) if compiled else step
    found = []
    for k in range(8):
        if k == 5:
            optimizer.param_groups[0]["weight_decay"] = 0.01
        found.append(run(tt.full((2, 3), 0.1 * k)).tolist())
    states = [t.tolist() for t in optimizer.state[p].values()]
    return (found, states), info(run)[:3] if compiled else None


@pytest.mark.parametrize("cls", [tt.optim.Adafactor, tt.optim.Muon])
def test_steps_of_matrices(cls):
    found, counts = of_matrices(cls, True)
    assert found == of_matrices(cls, False)[0]
    assert counts == (1, 7, 1)


@pytest.mark.parametrize(
    "make, name, value, runs",
    [
        (lambda p: tt.optim.SGD(p, lr=0.1, momentum=0.9), "momentum", 0.5, 1),
        (lambda p: tt.optim.SGD(p, lr=0.1), "weight_decay", 0.1, 1),
        (lambda p: tt.optim.SGD(p, lr=0.1), "momentum", 0.5, 2),
        (lambda p: tt.optim.Adam(p, lr=0.1), "betas", (0.5, 0.6), 1),
        (lambda p: tt.optim.Adam(p, lr=0.1), "amsgrad", True, 2),
        (lambda p: tt.optim.Adafactor(p, lr=0.1), "d", 2.0, 2),
        (lambda p: tt.optim.Muon(p, lr=0.1), "nesterov", False, 2),
    ],
)
def test_values_set_between_steps(make, name, value, runs):
    """The recorded step reads them, or the function runs and is recorded again."""

    def train(compiled):
        tt.manual_seed(7)
        p = tt.randn(3, 5, requires_grad=True)
        optimizer = make([p])

        def step(x):
            optimizer.zero_grad()
            (x @ p).square().sum().backward()
            optimizer.step()
            return p.detach().clone()

        run = tt.compile(step) if compiled else step
        for k in range(8):
            if k == 4:
                optimizer.param_groups[0][name] = value
            run(tt.full((2, 3), 0.1 * k + 0.1))
        return p.tolist(), info(run) if compiled else None

    found, records = train(True)
    assert found == train(False)[0]
    assert records[:3] == (1, 8 - runs, runs), records


def test_a_checkpoint_of_a_leaf_that_the_step_makes_is_recorded_once():
    m = nn.Linear(4, 4)
    optimizer = tt.optim.SGD(m.parameters(), lr=0.1)

    @tt.compile
    def step(x):
        x = x.detach().requires_grad_()
        y = tt.utils.checkpoint.checkpoint(lambda x: tt.tanh(m(x)), x, use_reentrant=False)
        loss = y.sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    for _ in range(4):
        step(tt.randn(2, 4))
    assert info(step)[:3] == (1, 3, 1)


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("p", [0.0, 0.5])
def test_checkpoints(reentrant, p):
    """A checkpoint is recorded with its second call, unless that must draw the same numbers."""

    def train(compiled):
        tt.manual_seed(7)
        layers = [nn.Linear(3, 4), nn.Tanh(), *([nn.Dropout(p)] * (p > 0)), nn.Linear(4, 1)]
        m = nn.Sequential(*layers)
        optimizer = tt.optim.SGD(m.parameters(), lr=0.1)

        def step(x):
            optimizer.zero_grad()
            y = tt.utils.checkpoint.checkpoint(m, x, use_reentrant=reentrant)
            y.square().mean().backward()
            optimizer.step()
            return y.detach()

        run = tt.compile(step) if compiled else step
        found = [run(tt.full((2, 3), 0.1 * k)).tolist() for k in range(6)]
        return found + [q.tolist() for q in m.parameters()], info(run) if compiled else None

    found, records = train(True)
    assert found == train(False)[0]
    assert records[1] == (0 if p else 5), records


@pytest.mark.parametrize("name", ["a leaf inside", "jacobians", "a leaf that is kept"])
def test_leaves_of_a_step(name):
    """A leaf that the function makes and drops does not keep its record from being replayed."""
    kept = []

    def train(compiled):
        tt.manual_seed(7)
        w = nn.Linear(3, 1)
        optimizer = tt.optim.SGD(w.parameters(), lr=0.1)

        def step(x):
            optimizer.zero_grad()
            if name == "jacobians":
                jacobian = tt.func.vmap(tt.func.jacrev(lambda v: tt.tanh(w(v))))(x)
                loss = jacobian.square().mean()
            else:
                z = (x * 2).requires_grad_()
                (slope,) = tt.autograd.grad(w(z).tanh().sum(), z, create_graph=True)
                loss = slope.square().mean()
                if name == "a leaf that is kept":
                    kept[:] = [z]
            loss.backward()
            optimizer.step()
            return loss.detach()

        run = tt.compile(step) if compiled else step
        found = []
        for k in range(6):
            found.append(run(tt.full((4, 3), 0.1 * k)).item())
            found += [z.grad.tolist() for z in kept]
        return found, info(run) if compiled else None

    found, records = train(True)
    assert found == train(False)[0]
    assert records[1] == (0 if kept else 5), records


def test_a_metric_outside():
    """The learning rate that follows from a metric is that of the next replayed step."""

    def train(compiled):
        tt.manual_seed(7)
        p = tt.randn(3, 5, requires_grad=True)
        optimizer = tt.optim.Adam([p], lr=0.1)
        schedule = tt.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)

        def step(x):
            optimizer.zero_grad()
            loss = (x @ p).square().sum()
            loss.backward()
            optimizer.step()
            return loss.detach()

        run = tt.compile(step) if compiled else step
        for k in range(8):
            schedule.step(run(tt.full((2, 3), 0.3 * k)).item())
        return p.tolist(), optimizer.param_groups[0]["lr"], info(run)[:3] if compiled else None

    *found, counts = train(True)
    assert found == list(train(False)[:2])
    assert found[1] < 0.1 and counts == (1, 7, 1)


def test_averages_outside():
    """AveragedModel reads its count of models on the host: a compiled step leaves it outside."""

    def train(compiled, inside):
        tt.manual_seed(7)
        m = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5))
        optimizer = tt.optim.SGD(m.parameters(), lr=0.1)
        average = tt.optim.swa_utils.AveragedModel(m)
        schedule = tt.optim.swa_utils.SWALR(optimizer, 0.01, 4)

        def follow():
            average.update_parameters(m)
            schedule.step()

        def step(x):
            optimizer.zero_grad()
            loss = m(x).square().mean()
            loss.backward()
            optimizer.step()
            if inside:
                follow()
            return loss.detach()

        run = tt.compile(step) if compiled else step
        for k in range(6):
            tt.manual_seed(k)
            run(tt.randn(4, 3))
            if not inside:
                follow()
        found = [p.tolist() for p in average.parameters()], optimizer.param_groups[0]["lr"]
        return found, info(run) if compiled else None

    for inside in (False, True):
        found, records = train(True, inside)
        assert found == train(False, inside)[0]
        assert records[0] == (not inside)


def changed_optimizer(compiled):
    """The parameters after steps of an optimizer that loads a state and gets a parameter."""
    tt.manual_seed(6)
    w, b = tt.randn(3, 2).requires_grad_(), tt.zeros(2).requires_grad_()
    optimizer = tt.optim.Adam([w], lr=0.1)

    def step(x):
        optimizer.zero_grad()
        (x @ w + b).square().sum().backward()
        optimizer.step()

    run = tt.compile(step) if compiled else step
    for k in range(9):
        if k == 3:
            optimizer.load_state_dict(optimizer.state_dict())
        if k == 6:
            optimizer.add_param_group({"params": [b]})
        run(tt.full((2, 3), 0.1 * k + 0.1))
    if compiled:
        assert info(run)[:3] == (1, 5, 4), info(run)  # b gets a gradient in the first
    return w.tolist(), b.tolist()


def test_an_optimizer_that_loads_a_state_and_gets_a_parameter():
    assert changed_optimizer(True) == changed_optimizer(False)


def moves(make):
    """Asserts that a compiled function gives the function's results before and after a move. make:
    returns the function, its argument and the move."""
    found = []
    for compiled in (False, True):
        function, x, move = make()
        run = tt.compile(function) if compiled else function
        results = [run(x).tolist(), run(x).tolist()]
        with tt.no_grad():
            move()
        found.append(results + [run(x).tolist(), run(x).tolist()])
    assert found[1] == found[0] and found[0][1] != found[0][2]
    assert sum(entry.info()[1] for entry in run.entries.values()) >= 1


def test_tensors_that_move_in_their_memory():
    flat = tt.arange(4).float()

    def gradient():
        w = tt.ones(2).requires_grad_()
        w.grad = flat[:2]
        return lambda x: x * w.grad, tt.ones(2), lambda: setattr(w, "grad", flat[2:])

    def data():
        w = tt.ones(2)
        w.data = flat[:2]
        return lambda x: x * w, tt.ones(2), lambda: setattr(w, "data", flat[2:])

    def the_second_of_a_memory():
        v, w = tt.ones(2), tt.ones(2)
        v.data, w.data = flat[:2], flat[:2]
        return lambda x: x * v + w, tt.ones(2), lambda: setattr(w, "data", flat[2:])

    def transposed_weight():
        m = nn.Linear(2, 2, bias=False).requires_grad_(False)
        m.weight.copy_(flat.view(2, 2))
        return m.forward, tt.ones(1, 2), lambda: setattr(m.weight, "data", m.weight.data.t())

    def in_place():
        w = flat.view(2, 2).clone()
        return lambda x: x * w, tt.ones(2, 2), lambda: w.t_()

    for make in (gradient, data, the_second_of_a_memory, transposed_weight, in_place):
        moves(make)


def test_an_input_in_the_memory_of_a_gradient():
    w = tt.ones(2).requires_grad_()
    w.grad = tt.tensor([1.0, 2.0])
    run = tt.compile(lambda x: x * w.grad)
    assert run(w.grad[:]).tolist() == [1.0, 4.0]
    assert "memory of a gradient" in info(run)[3]
    assert run(w.grad[:]).tolist() == [1.0, 4.0]
    assert run(tt.tensor([5.0, 6.0])).tolist() == [5.0, 12.0]


def test_a_function_that_transposes_a_tensor_in_place():
    w = tt.arange(4).float().view(2, 2)

    def turned(x):
        w.t_()
        return x * w

    run = tt.compile(turned)
    found = [run(tt.ones(2, 2)).tolist() for _ in range(4)]
    assert found == [[[0.0, 2.0], [1.0, 3.0]], [[0.0, 1.0], [2.0, 3.0]]] * 2


def test_dicts_of_a_module_that_are_named_like_hooks():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.loss_hooks = {"scale": 2.0}

        def forward(self, x):
            return x * self.loss_hooks["scale"]

    m = Scaled()
    run = tt.compile(m)
    assert [run(tt.ones(1)).item() for _ in range(2)] == [2.0, 2.0]
    m.loss_hooks = {"scale": 3.0}
    assert [run(tt.ones(1)).item() for _ in range(2)] == [3.0, 3.0]


def test_results_of_another_structure_are_released():
    def calls():
        for _ in range(5):
            kinds = [tuple, list]
            run = tt.compile(lambda x, kinds=kinds: kinds.pop(0)([x + 1, x + 2]))
            assert type(run(tt.ones(3))) is tuple and type(run(tt.ones(4))) is list
        gc.collect()
        return tt.runtime.memory_stats()["live_tensors"]

    assert calls() == calls()


def test_a_compiled_function_in_a_capture():
    w = tt.full((2,), 3.0)
    scaled = tt.compile(lambda a, x: a * w * x)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = w

        def forward(self, x):
            return scaled(self.w, x)

    program = tt.export.export(Model(), (tt.ones(2),))
    assert program.module()(tt.full((2,), 2.0)).tolist() == [18.0, 18.0]
    assert scaled(w, tt.ones(2)).tolist() == [9.0, 9.0]
    assert scaled(tt.ones(2), tt.ones(2)).tolist() == [3.0, 3.0]


def test_inputs_of_two_storages_that_overlap():
    np = pytest.importorskip("numpy")

    def shifted(x, y):
        x.add_(1)
        z = y * 2
        y.add_(z)
        return z

    found = []
    for run in (shifted, tt.compile(shifted)):
        a = np.zeros(4, np.float32)
        apart = run(tt.zeros(3), tt.zeros(3)).tolist(), run(tt.ones(3), tt.ones(3)).tolist()
        steps = [run(tt.from_numpy(a[:3]), tt.from_numpy(a[1:])).tolist() for _ in range(3)]
        found.append((apart, steps, a.tolist()))
    assert found[0] == found[1]
    assert "overlap" in info(run)[3]
