"""tt.utils.checkpoint: the same results and gradients as without it, from a second computation."""
import gc
import weakref

import pytest

import tt
from tt import nn
from tt.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    set_checkpoint_early_stop,
)


def block():
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 4))


def gradients(run, model, x):
    """The result, and the gradients of the model and of x. What follows draws random numbers."""
    tt.manual_seed(3)
    model.zero_grad()
    x.grad = None
    y = run(x)
    after = tt.rand(2)
    (y**2).sum().backward()
    return [y, after, tt.rand(2), *(p.grad.clone() for p in model.parameters())] + (
        [x.grad.clone()] if x.requires_grad else []
    )


@pytest.mark.parametrize("needs", [True, False])
@pytest.mark.parametrize("reentrant", [True, False, None])
def test_gradients_are_those_without_it(needs, reentrant):
    model, x = block(), tt.randn(3, 4).requires_grad_(needs)
    expected = gradients(model, model, x)
    found = gradients(lambda x: checkpoint(model, x, use_reentrant=reentrant), model, x)
    assert len(expected) == len(found) and all(map(tt.equal, expected, found))
    nested = gradients(lambda x: checkpoint(lambda x: checkpoint(model, x), x), model, x)
    assert all(map(tt.equal, expected, nested))


def test_without_the_random_state_another_mask_is_drawn():
    x, drawn = tt.ones(64, requires_grad=True), []

    def drop(x):
        drawn.append(nn.functional.dropout(x))
        return drawn[-1] * 1

    checkpoint(drop, x, preserve_rng_state=False).sum().backward()
    assert len(drawn) == 2 and not tt.equal(drawn[0], drawn[1])
    checkpoint(drop, x).sum().backward()
    assert tt.equal(drawn[2], drawn[3])


def test_only_backward_computes_again():
    calls = []

    def f(x):
        calls.append(tt.is_grad_enabled())
        return x.exp()

    x = tt.ones(2, requires_grad=True)
    y = checkpoint(f, x)
    assert calls == [False]
    y.sum().backward()
    assert calls == [False, True]
    with tt.no_grad():
        assert not checkpoint(f, x).requires_grad
    assert len(calls) == 3


def test_structures_keywords_and_integers():
    def f(pair, *, scale, flag):
        a, rest = pair
        return {"sum": a + rest["b"] * scale, "index": (a.argmax(), flag)}

    a, b, scale = (tt.tensor([1.0, 3.0], requires_grad=True) for _ in range(3))
    found = checkpoint(f, (a, {"b": b}), scale=scale, flag="yes")
    assert found["index"][0].item() == 1 and found["index"][1] == "yes"
    assert not found["index"][0].requires_grad
    found["sum"].sum().backward()
    assert a.grad.tolist() == [1, 1] and b.grad.tolist() == scale.grad.tolist() == [1, 3]


def test_an_argument_may_be_returned():
    x = tt.ones(2, requires_grad=True)
    y, z = checkpoint(lambda x: (x, x * 2), x)
    (y + z).sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_sequential():
    model, x = nn.Sequential(*(nn.Linear(4, 4) for _ in range(5))), tt.randn(2, 4)
    expected = gradients(model, model, x)
    for segments in (1, 2, 5):
        found = gradients(lambda x: checkpoint_sequential(model, segments, x), model, x)
        assert all(map(tt.equal, expected, found))


def test_contexts_are_entered_once_each():
    seen = []

    class Note:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            seen.append(self.name)

        def __exit__(self, *_):
            pass

    x = tt.ones(2, requires_grad=True)
    y = checkpoint(tt.exp, x, context_fn=lambda: (Note("first"), Note("second")))
    assert seen == ["first"]
    y.sum().backward()
    assert seen == ["first", "second"]


def test_unsupported_uses_are_errors():
    sizes = iter((2, 3))
    x = tt.ones(3, requires_grad=True)
    with pytest.raises(CheckpointError, match="computed again"):
        checkpoint(lambda x: x[: next(sizes)], x).sum().backward()
    with pytest.raises(RuntimeError, match="create_graph"):
        checkpoint(tt.exp, x).sum().backward(create_graph=True)
    with pytest.raises(ValueError, match="determinism_check"):
        checkpoint(tt.exp, x, determinism_check="maybe")
    y = checkpoint(tt.exp, x)
    with tt.no_grad():
        x.add_(1)
    with pytest.raises(tt.TtError, match="in place|changed"):
        y.sum().backward()


# ---- use_reentrant=False ----


def test_gradients_of_any_kind_without_reentrance():
    weight = tt.tensor([2.0, 3.0], requires_grad=True)
    calls = []

    def f(x, scale=1.0):
        calls.append(x)
        return (x.exp() * weight).tanh() * scale, x.sum()

    x = tt.tensor([0.1, 0.2], requires_grad=True)
    out, total = checkpoint(f, x, use_reentrant=False, scale=2.0)
    want = f(x, 2.0)
    assert len(calls) == 2
    for wanted in ([x, weight], [weight]):
        found = tt.autograd.grad(out.sum() + total, wanted, create_graph=True, allow_unused=True)
        expected = tt.autograd.grad(
            want[0].sum() + want[1], wanted, create_graph=True, allow_unused=True
        )
        tt.testing.assert_close(found, expected)
        second = tt.autograd.grad(found[0].sum(), weight, retain_graph=True)
        tt.testing.assert_close(
            second, tt.autograd.grad(expected[0].sum(), weight, retain_graph=True)
        )
    out.sum().backward()
    assert weight.grad is not None and x.grad is not None


def test_random_numbers_and_early_stop_without_reentrance():
    seen = []

    def f(x):
        y = nn.functional.dropout(x * 2)
        seen.append(y.detach())
        z = y * y
        seen.append("end")
        return z

    x = tt.ones(64, requires_grad=True)
    y = checkpoint(f, x, use_reentrant=False)
    y.sum().backward()
    tt.testing.assert_close(x.grad, 2 * y.detach())
    assert tt.equal(seen[0], seen[2]) and len(seen) == 3  # the last product saves, then it stops
    seen.clear()
    checkpoint(f, x, use_reentrant=False, early_stop=False).sum().backward()
    assert len(seen) == 4
    seen.clear()
    with set_checkpoint_early_stop(False):
        y = checkpoint(f, x, use_reentrant=False)
    y.sum().backward()
    assert len(seen) == 4


def test_a_recomputation_that_differs_is_an_error():
    x = tt.ones(3, requires_grad=True)
    sizes = iter((2, 3))
    y = checkpoint(lambda x: x[: next(sizes)].exp(), x, use_reentrant=False)
    with pytest.raises(CheckpointError, match="computed again"):
        y.sum().backward()
    ops = iter((2, 1))

    def fewer(x):
        for _ in range(next(ops)):
            x = x.exp()
        return x

    y = checkpoint(fewer, x, use_reentrant=False)
    with pytest.raises(CheckpointError, match="saved 2 tensors"):
        y.sum().backward()


# ---- selective checkpoints ----


@pytest.mark.parametrize("as_list", [True, False])
def test_results_of_chosen_operators_are_stored(as_list):
    from tt.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

    w = tt.rand(4, 4, requires_grad=True)
    layer = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    chosen = [tt.ops.aten.mm.default, tt.ops.aten.addmm.default, tt.ops.aten.dropout.default]

    def policy(ctx, op, *args, **kwargs):
        saves = op in chosen
        return CheckpointPolicy.MUST_SAVE if saves else CheckpointPolicy.PREFER_RECOMPUTE

    seen = []

    def f(x, y):
        z = tt.matmul(tt.matmul(x, y) * 2, y)
        z = nn.functional.dropout(tt.sigmoid(z)) * layer(y)
        seen.append(z.detach())
        return z.exp()

    def contexts():
        return create_selective_checkpoint_contexts(chosen if as_list else policy)

    x = tt.rand(4, 4, requires_grad=True)
    # without the random state, only a stored mask gives the same numbers again
    options = dict(use_reentrant=False, preserve_rng_state=False, early_stop=False)
    tt.manual_seed(0)
    checkpoint(f, x, w, context_fn=contexts, **options).sum().backward()
    found = [x.grad, w.grad, layer[0].weight.grad]
    assert len(seen) == 2 and tt.equal(*seen)
    x.grad = w.grad = layer[0].weight.grad = None
    tt.manual_seed(0)
    f(x, w).sum().backward()
    tt.testing.assert_close(found, [x.grad, w.grad, layer[0].weight.grad])
    with pytest.raises(ValueError, match="use_reentrant"):
        checkpoint(f, x, w, use_reentrant=True, context_fn=contexts)


def test_a_stored_result_that_was_written_is_an_error():
    from tt.utils.checkpoint import create_selective_checkpoint_contexts as contexts

    def f(x):
        y = tt.exp(x)
        kept.append(y)
        return tt.sin(y)

    x = tt.ones(3, requires_grad=True)
    for mutable in (False, True):
        kept = []
        chosen = [tt.ops.aten.exp.default]
        y = checkpoint(f, x, use_reentrant=False, context_fn=lambda: contexts(chosen, mutable))
        kept[0].detach().zero_()
        if mutable:
            y.sum().backward()
        else:
            with pytest.raises(RuntimeError, match="written to"):
                y.sum().backward()
    with pytest.raises(TypeError, match="list of ops"):
        contexts(3)


# ---- autograd.graph ----


def test_saved_tensors_may_be_written():
    with tt.autograd.graph.allow_mutation_on_saved_tensors():
        a = tt.ones(2, 3, requires_grad=True)
        b = a.clone()
        out = (b**2).sum()
        b.sin_()
        c = a.exp()
        d = (c * 3 + tt.relu(c)).sum()
        c[0] = 5
        tt.add(c.detach(), 1, out=c.detach())
        out.backward(retain_graph=True)
        tt.testing.assert_close(a.grad, tt.full((2, 3), 2.0))
        a.grad = None
        d.backward()
        with pytest.raises(RuntimeError, match="nested"):
            with tt.autograd.graph.allow_mutation_on_saved_tensors():
                pass
    tt.testing.assert_close(a.grad, 4 * a.detach().exp())
    with pytest.raises(AssertionError, match="outside"):
        out.backward()


def test_nodes_are_seen_when_they_are_made():
    seen = []
    x, w = tt.rand(3, 3, requires_grad=True), tt.rand(3, 3)
    with tt.autograd.graph.node_creation_hook(seen.append):
        y = nn.functional.mse_loss((x * w).relu() + 1, w)
        (w + w).sum()
    names = [node.name() for node in seen]
    assert names[:3] == ["MulBackward0", "ReluBackward0", "AddBackward0"]
    assert seen[-1] == y.grad_fn and len(names) == len(set(seen))


def test_parts_of_checkpoints():
    from tt.utils import checkpoint as parts

    x = tt.ones(2, requires_grad=True)
    a, b, c = parts.detach_variable((x * 2, 3, tt.ones(1)))
    assert a.is_leaf and a.requires_grad and a.tolist() == [2, 2]
    assert b == 3 and not c.requires_grad
    with pytest.raises(RuntimeError, match="detach_variable: inputs is a list"):
        parts.detach_variable([x])
    parts.check_backward_validity([x, 3])
    with pytest.warns(UserWarning, match="requires gradients"):
        parts.check_backward_validity([c, 3])
    first, second = parts.noop_context_fn()
    with first, second:
        assert tt.distributed.autograd.is_available()


def test_nothing_lives_until_the_garbage_collector_runs():
    layer, before = nn.Linear(4, 4), gc.isenabled()
    gc.disable()
    try:
        x = tt.randn(2, 4).requires_grad_()
        checkpoint(lambda x: tt.tanh(layer(x)), x, use_reentrant=False).sum().backward()
        alive = weakref.ref(x)
        del x
        assert alive() is None
    finally:
        if before:
            gc.enable()


def test_checkpoint_decorates_functions():
    w = tt.randn(3).requires_grad_()

    @checkpoint(use_reentrant=False, respect_saved_tensors_hooks=True)
    def f(x, scale=1):
        return (x * w).sin() * scale

    x = tt.randn(3)
    f(x, scale=2).sum().backward()
    tt.testing.assert_close(w.grad, (2 * x * (x * w).cos()).detach())
    assert f.__name__ == "f"


def test_a_pack_hook_must_not_write():
    x = tt.randn(3).requires_grad_()
    with pytest.raises(RuntimeError, match="pack_hook wrote"):
        with tt.autograd.graph.saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t):
            x.sin()


def test_gradients_by_name_and_copies_of_modes():
    x, y = tt.randn(3).requires_grad_(), tt.randn(3).requires_grad_()
    found = tt.autograd.grad((x * y).sum(), {"y": y, "x": x})
    assert list(found) == ["y", "x"]
    tt.testing.assert_close(found["x"], y.detach())
    copy = tt.no_grad().clone()
    with copy:
        assert not tt.is_grad_enabled()
    assert tt.is_grad_enabled()
