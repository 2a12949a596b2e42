"""autograd.Function as a PyTorch user writes it."""
import gc
import threading
import weakref

import pytest

import tt
from tt.autograd.function import once_differentiable


class Cube(tt.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad


class Scale(tt.autograd.Function):
    """Numbers among the arguments, attributes of ctx, several results."""

    @staticmethod
    def forward(ctx, x, factor, y, flag=None):
        ctx.factor, ctx.x_shape = factor, x.shape
        ctx.save_for_backward(None, y)
        return x * factor, y + 1, "text"

    @staticmethod
    def backward(ctx, gx, gy, text):
        assert text is None and ctx.saved_tensors[0] is None and gx.shape == ctx.x_shape
        seen.append(ctx.needs_input_grad)
        return gx * ctx.factor, None, gy * ctx.saved_tensors[1], None


seen = []


def test_gradients_of_any_order():
    x = tt.tensor([1.0, 2.0, -3.0], requires_grad=True)
    y = Cube.apply(x)
    assert (
        y.tolist() == [1, 8, -27]
        and y.requires_grad
        and not y.is_leaf
        and "CubeBackward" in repr(y)
    )
    (g,) = tt.autograd.grad(y.sum(), x, create_graph=True)
    assert g.tolist() == [3, 12, 27]
    (gg,) = tt.autograd.grad(g.sum(), x, create_graph=True)
    assert gg.tolist() == [6, 12, -18]
    assert tt.autograd.grad(gg.sum(), x)[0].tolist() == [6, 6, 6]
    Cube.apply(x).sum().backward()
    assert x.grad.tolist() == [3, 12, 27]


def test_other_arguments_and_results():
    x, y = tt.ones(2, requires_grad=True), tt.tensor([2.0, 3.0], requires_grad=True)
    a, b, text = Scale.apply(x, 5, y)
    assert text == "text" and a.tolist() == [5, 5] and b.tolist() == [3, 4]
    (a.sum() + b.sum()).backward()
    assert (
        x.grad.tolist() == [5, 5] and y.grad.tolist() == [2, 3] and seen[-1] == (True, False, True)
    )
    a, b, _ = Scale.apply(x, 5, y.detach())
    a.sum().backward()  # b's gradient comes as zeros
    assert seen[-1] == (True, False, False)


def test_without_gradients():
    x = tt.ones(2)
    assert not Cube.apply(x).requires_grad
    x.requires_grad_()
    with tt.no_grad():
        assert not Cube.apply(x).requires_grad
    assert Cube.apply(x).detach().grad_fn is None


def test_setup_context_and_results_that_are_saved():
    class Exp(tt.autograd.Function):
        @staticmethod
        def forward(x):
            return x.exp()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx, grad):
            (out,) = ctx.saved_tensors
            return grad * out

    x = tt.tensor([0.5], requires_grad=True)
    y = Exp.apply(x)
    (g,) = tt.autograd.grad(y, x, create_graph=True)
    (gg,) = tt.autograd.grad(g, x)
    assert abs(gg.item() - y.item()) < 1e-6


def test_materialized_and_missing_gradients():
    class Two(tt.autograd.Function):
        @staticmethod
        def forward(ctx, x, materialize):
            ctx.set_materialize_grads(materialize)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            found.append(b is None or b.tolist())
            return a * 2, None

    found = []
    x = tt.ones(2, requires_grad=True)
    Two.apply(x, True)[0].sum().backward()
    Two.apply(x, False)[0].sum().backward()
    assert found == [[0, 0], True]


def test_marked_results_have_no_gradient():
    class Split(tt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            whole, sign = x * 1, x.sign()
            ctx.mark_non_differentiable(sign)
            return whole, sign, x.long()

        @staticmethod
        def backward(ctx, g, *rest):
            return g

    x = tt.tensor([1.5, -2.0], requires_grad=True)
    whole, sign, integers = Split.apply(x)
    assert (
        whole.requires_grad
        and not sign.requires_grad
        and not integers.requires_grad
        and integers.dtype is tt.int64
    )
    whole.sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_an_input_given_back():
    class Same(tt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return -g

    x = tt.ones(2, requires_grad=True)
    y = Same.apply(x)
    assert y is not x and y.data_ptr() == x.data_ptr()
    with pytest.raises(RuntimeError):  # the history of x would not see it
        y.mul_(2)
    y.sum().backward()
    assert x.grad.tolist() == [-1, -1]

    z = x * 3
    y = Same.apply(z)
    z.mul_(2)
    assert y.tolist() == [6, 6] and y._version == z._version
    plain = tt.ones(2)
    y = Same.apply(plain)
    y.mul_(2)
    assert y is not plain and plain.tolist() == [2, 2] and not y.requires_grad
    with tt.no_grad():
        y = Same.apply(x)
    assert y is not x and not y.requires_grad and y.data_ptr() == x.data_ptr()


def test_an_input_given_back_and_saved():
    class Saves(tt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * x  # x is the input: its gradient does not pass through this call

    x = tt.tensor([2.0, 3.0], requires_grad=True)
    (g,) = tt.autograd.grad(Saves.apply(x).sum(), x, create_graph=True)
    assert g.tolist() == [2, 3]
    assert tt.autograd.grad(g.sum(), x)[0].tolist() == [1, 1]


class Mine(Exception):
    pass


def raises(*args):
    raise Mine("from the function")


@pytest.mark.parametrize("where", ["forward", "backward"])
def test_its_exceptions_are_passed_on(where):
    methods = {
        "forward": staticmethod(lambda ctx, x: x * 2),
        "backward": staticmethod(lambda ctx, g: g),
        where: staticmethod(raises),
    }
    f = type("Bad", (tt.autograd.Function,), methods)
    x = tt.ones(2, requires_grad=True)
    with pytest.raises(Mine, match="from the function"):
        f.apply(x).sum().backward()
    assert x.grad is None and (x * 2).sum().item() == 4 and tt.is_grad_enabled()


@pytest.mark.parametrize(
    "result, error",
    [((1, 2), RuntimeError), (5, TypeError), ((None, None), None), ("a", TypeError)],
)
def test_wrong_gradients(result, error):
    f = type(
        "Bad",
        (tt.autograd.Function,),
        {
            "forward": staticmethod(lambda ctx, x: x * 2),
            "backward": staticmethod(lambda ctx, g: result),
        },
    )
    x = tt.ones(2, requires_grad=True)
    y = f.apply(x).sum()
    if error is None:
        y.backward()
        assert x.grad is None
    else:
        with pytest.raises(error):
            y.backward()


def test_wrong_shapes_and_misuse():
    f = type(
        "Bad",
        (tt.autograd.Function,),
        {
            "forward": staticmethod(lambda ctx, x: x * 2),
            "backward": staticmethod(lambda ctx, g: tt.ones(3)),
        },
    )
    with pytest.raises(RuntimeError):
        f.apply(tt.ones(2, requires_grad=True)).sum().backward()
    with pytest.raises(TypeError):
        Cube()
    with pytest.raises(NotImplementedError):
        tt.autograd.Function.apply(tt.ones(1, requires_grad=True))


def test_backward_runs_again_only_with_a_kept_graph():
    x = tt.ones(2, requires_grad=True)
    y = Cube.apply(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [6, 6]
    with pytest.raises(RuntimeError):
        y.backward()


def test_once_differentiable():
    class Square(tt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            assert not tt.is_grad_enabled()
            return 2 * ctx.saved_tensors[0] * g

    x = tt.tensor([3.0], requires_grad=True)
    (g,) = tt.autograd.grad(Square.apply(x), x, create_graph=True)
    assert g.item() == 6 and not g.requires_grad


def test_nothing_is_kept_alive():
    class Held:
        pass

    held = Held()

    class F(tt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.held = held
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    x = tt.ones(2, requires_grad=True)
    y = F.apply(x)
    ref = weakref.ref(held)
    del held
    gc.collect()
    assert ref() is not None
    y.sum().backward()
    del y
    gc.collect()
    assert ref() is None


def test_in_several_threads():
    results = []

    def work():
        x = tt.full((50,), 2.0, requires_grad=True)
        for _ in range(50):
            (g,) = tt.autograd.grad(Cube.apply(x).sum(), x)
        results.append(g[0].item())

    threads = [threading.Thread(target=work) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [12.0] * 6


def test_views_of_inputs_are_not_written_in_place():
    class Views(tt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x), x[:1], (x * 2)[:1]

        @staticmethod
        def backward(ctx, *grads):
            return grads[0] * 3

    x = tt.ones(2, requires_grad=True)
    y = x * 2
    same, part, fresh = Views.apply(y)
    for view in (same, part, same[:1]):  # y would change, and its history would not know
        with pytest.raises(RuntimeError, match="custom function"):
            view.mul_(5)
        with tt.no_grad():
            view.add_(0)
    fresh.mul_(5)
    assert y.tolist() == [2, 2] and fresh.tolist() == [20]
    same.sum().backward()
    assert x.grad.tolist() == [6, 6]
    assert Views.apply(tt.ones(2))[0].mul_(5).tolist() == [5, 5]


def test_mark_dirty():
    class Increment(tt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.add_(1)

        @staticmethod
        def backward(ctx, g):
            return 3 * g

    x = tt.zeros(2, requires_grad=True)
    y = x * 1
    same = y.detach()
    z = Increment.apply(y)
    assert same.data_ptr() == y.data_ptr() and z is y and y.tolist() == [1, 1] and y._version == 1
    (z * y).sum().backward()
    assert x.grad.tolist() == [6, 6]
    for wrong in (x, (x * 1)[:1]):
        with pytest.raises(RuntimeError, match="mark_dirty"):
            Increment.apply(wrong)
    plain = tt.zeros(1)
    assert Increment.apply(plain) is plain and plain.item() == 1


@pytest.mark.parametrize("at", [1, 2])
def test_what_comes_between_leaves_gradients_on(monkeypatch, at):
    from tt.autograd import function

    switch, calls = function.switch_grad, []

    def interrupted(on):
        """As by a signal: behind the first switch, before the second."""
        calls.append(on)
        if len(calls) == at == 2:
            raise KeyboardInterrupt
        switch(on)
        if len(calls) == at == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(function, "switch_grad", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Cube.apply(tt.ones(2, requires_grad=True))
    assert tt.is_grad_enabled() and calls == [False, True, True]


def test_what_a_function_saves():
    class Wrong(tt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_forward(x)
            ctx.save_for_backward(None, 3)
            return x * 2

    with pytest.raises(TypeError, match="argument 1 is int: must be a Tensor or None"):
        Wrong.apply(tt.ones(1))


def test_inputs_of_backward():
    x = tt.ones(1, requires_grad=True)
    y = x * 2
    tt.autograd.backward(y * y, inputs=y, grad_variables=[tt.full((1,), 3.0)])
    assert y.grad.tolist() == [12] and x.grad is None
    with pytest.raises(RuntimeError, match="either grad_tensors or grad_variables"):
        tt.autograd.backward(y, [tt.ones(1)], grad_variables=[tt.ones(1)])
    with pytest.raises(ValueError, match="allow_unused is False"):
        tt.autograd.grad(x * 2, x, materialize_grads=True, allow_unused=False)


def test_hooks_of_nodes_see_both_sides():
    x, seen = tt.ones(1, requires_grad=True), []
    y = x * 3
    handle = y.grad_fn.register_hook(lambda inputs, outputs: seen.append((inputs, outputs)))
    y.backward(retain_graph=True)
    ((inputs, outputs),) = seen
    assert inputs[0].tolist() == [3] and outputs[0].tolist() == [1]
    handle.remove()
    handle = y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] + 4 * outputs[0],))
    y.backward(retain_graph=True)
    assert len(seen) == 1 and x.grad.tolist() == [10]
    handle.remove()
    y.backward()
    assert x.grad.tolist() == [13]


class Scaled(tt.autograd.Function):
    """x * x * y and x + y, whose tangents are 10 times too large, so that the rule shows."""

    @staticmethod
    def forward(x, y):
        return x * x * y, x + y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g, h):
        x, y = ctx.saved_tensors
        return 2 * x * y * g + h, x * x * g + h

    @staticmethod
    def jvp(ctx, dx, dy):
        x, y = ctx.saved_tensors
        assert dy is None
        return 20 * x * y * dx, None


def test_tangents_by_jvp():
    x, y, t = tt.randn(3), tt.randn(3), tt.randn(3)
    apply = Scaled.apply
    (out, total), (tangent, none) = tt.func.jvp(lambda x: apply(x, y), (x,), (t,))
    assert tt.equal(out, x * x * y) and none.tolist() == [0, 0, 0]
    tt.testing.assert_close(tangent, 20 * x * y * t)
    with tt.autograd.forward_ad.dual_level(), tt.no_grad():
        dual = tt.autograd.forward_ad.make_dual(x, t)
        found = tt.autograd.forward_ad.unpack_dual(apply(dual, y)[0])
        tt.testing.assert_close(found.tangent, tangent)
    leaf = x.clone().requires_grad_()
    tt.func.jvp(lambda x: apply(x, y)[0], (leaf,), (t,))[1].sum().backward()
    tt.testing.assert_close(leaf.grad, 20 * y * t)
    twice = tt.func.jvp(lambda x: tt.func.jvp(lambda x: apply(x, y)[0], (x,), (t,))[1], (x,), (t,))
    tt.testing.assert_close(twice[1], 20 * y * t * t)
    rows = tt.func.vmap(lambda x: tt.func.jvp(lambda x: apply(x, y)[0], (x,), (t,))[1])
    tt.testing.assert_close(rows(tt.stack([x, y])), tt.stack([tangent, 20 * y * y * t]))
    assert tt.equal(tt.func.grad(lambda x: apply(x, y)[0].sum())(x), 2 * x * y)


def test_wrong_jvps():
    class Wrong(Scaled):
        @staticmethod
        def jvp(ctx, dx, dy):
            return found

    x, y = tt.randn(3), tt.randn(3)
    for found, says in (((x,), "1 tangents: must return 2"), ((x.sum(), x), "shape")):
        with pytest.raises(RuntimeError, match=says):
            tt.func.jvp(lambda x: Wrong.apply(x, y), (x,), (x,))
    with pytest.raises(TypeError, match="save_for_forward: argument 1 is int"):
        tt.autograd.function.FunctionCtx().save_for_forward(x, 2)


class Rows(tt.autograd.Function):
    """x * n and the sum of x, whose vmap adds 100 to the product, so that the rule shows."""

    @staticmethod
    def forward(x, n, y):
        return x * n, x.sum() + y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.n, ctx.size = inputs[1], inputs[0].shape

    @staticmethod
    def backward(ctx, g, h):
        return g * ctx.n + h.expand(ctx.size), None, h

    @staticmethod
    def vmap(info, in_dims, x, n, y):
        calls.append((info.batch_size, info.randomness, in_dims))
        return (x * n + 100, x.sum(1) + y), (0, 0)


calls = []


def test_vmap_of_functions():
    x, y = tt.randn(4, 3), tt.randn(())
    f = lambda x: Rows.apply(x, 2, y)  # noqa: E731
    calls.clear()
    product, total = tt.func.vmap(f, randomness="same")(x)
    tt.testing.assert_close(product, x * 2 + 100)
    tt.testing.assert_close(total, x.sum(1) + y)
    assert calls == [(4, "same", (0, None, None))]
    leaf = x.clone().requires_grad_()
    tt.func.vmap(f)(leaf)[0].sum().backward()  # the gradient of vmap's own operators
    tt.testing.assert_close(leaf.grad, tt.full((4, 3), 2.0))
    inside = tt.func.vmap(tt.func.grad(lambda x: f(x)[0].sum()))(x)
    tt.testing.assert_close(inside, tt.full((4, 3), 2.0))
    tt.testing.assert_close(tt.func.vmap(f, in_dims=1)(x.T)[0], product)
    assert tt.equal(f(x[0])[0], x[0] * 2)  # not batched
    nested = tt.func.vmap(tt.func.vmap(f))(tt.stack([x, x]))
    tt.testing.assert_close(nested[0], tt.stack([product, product]))


def test_wrong_vmaps_of_functions():
    class Wrong(Rows):
        @staticmethod
        def vmap(info, in_dims, x, n, y):
            return found

    class Both(Rows):
        generate_vmap_rule = True

    x, y = tt.randn(4, 3), tt.randn(())
    wrong = [(x, "must return two values"), (((x, x), (0,)), "out_dims"), (((x.T, x), 0), "begin")]
    for found, says in wrong:
        with pytest.raises(Exception, match=says):
            tt.func.vmap(lambda x: Wrong.apply(x, 2, y))(x)
    with pytest.raises(RuntimeError, match="must have one of them"):
        tt.func.vmap(lambda x: Both.apply(x, 2, y))(x)


def test_in_place_functions_of_older_programs():
    class Double(tt.autograd.function.InplaceFunction):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = tt.ones(2, requires_grad=True)
    Double.apply(x * 1).sum().backward()
    assert x.grad.tolist() == [2, 2]
    with pytest.raises(TypeError, match="call Double.apply"):
        Double(inplace=True)


def test_nodes_have_pytorchs_names():
    x = tt.randn(3, 3, requires_grad=True)
    for name, y in {
        "SumBackward0": x.sum(),
        "SumBackward1": x.sum(0),
        "MaxBackward1": x.max(),
        "MaxBackward0": x.max(0)[0],
        "MaximumBackward0": tt.maximum(x, x),
        "BmmBackward0": tt.stack([x, x]) @ tt.stack([x, x]),
        "MmBackward0": x @ x,
        "Log1PBackward0": x.log1p(),
        "LinalgDetBackward0": tt.linalg.det(x),
        "ToCopyBackward0": x.double(),
        "MaxPool2DWithIndicesBackward0": tt.nn.functional.max_pool2d(x[None], 2),
        "RsubBackward1": 1 - x,
    }.items():
        assert type(y.grad_fn).__name__ == y.grad_fn.name() == name
        assert repr(y.grad_fn).startswith(f"<{name} object") and f"grad_fn=<{name}>" in repr(y)
        assert isinstance(y.grad_fn, tt.autograd.graph.Node)
    y = x.clone()
    y[0] = 1.0
    assert y.grad_fn.name() == "torch::autograd::CopySlices"
    assert y.grad_fn.next_functions[0][0].name() == "CloneBackward0"


@pytest.mark.parametrize("beside", [lambda s: s.sum(), lambda s: (2 * s).sum()])
@pytest.mark.parametrize("of_leaf", [False, True])
def test_a_backward_passes_through_nodes_that_wait_for_the_outer_one(beside, of_leaf):
    """As integrals of functions that depend on results of a network compute their gradients."""
    x = tt.tensor([1.0, 2, 3], requires_grad=True)

    class Sum(tt.autograd.Function):
        @staticmethod
        def forward(ctx, s):
            ctx.save_for_backward(s)
            return (s.detach() ** 3).sum()

        @staticmethod
        def backward(ctx, grad):
            (s,) = ctx.saved_tensors
            with tt.enable_grad():
                y = (s**3).sum()
            (found,) = tt.autograd.grad(y, x if of_leaf else s, grad, retain_graph=True)
            return found / 2 if of_leaf else found

    s = x * 2
    (Sum.apply(s) + beside(s)).backward()
    direct = 2 * (3 * (2 * x) ** 2) + (2 if beside(tt.ones(1)) == 1 else 4)
    assert x.grad.tolist() == direct.tolist()


def test_a_graph_that_an_inner_backward_frees():
    class Free(Cube):
        @staticmethod
        def backward(ctx, grad):
            (s,) = ctx.saved_tensors
            with tt.enable_grad():
                tt.autograd.grad(s**2, x, grad)
            return s * 0

    for _ in range(2):  # nothing waits from the first failure
        x = tt.ones(2, requires_grad=True)
        s = x.exp()
        with pytest.raises(RuntimeError, match="has been freed"):
            (Free.apply(s).sum() + s.sum()).backward()


def test_what_an_inner_backward_frees_is_freed_if_the_outer_one_fails():
    class Free(Cube):
        @staticmethod
        def backward(ctx, grad):
            tt.autograd.grad(ctx.saved_tensors[0], x, grad)  # frees a node that waits
            raise ValueError("later")

    def bytes_in_use():
        gc.collect()
        return tt.runtime.memory_stats()["in_use"]

    before = None
    for _ in range(3):
        x = tt.ones(100_000, requires_grad=True)
        s = (2 * x).exp()
        with pytest.raises(ValueError, match="later"):
            (Free.apply(s) + s).sum().backward()
        del x, s
        before = before or bytes_in_use()
    assert bytes_in_use() < before + 100_000


def test_a_result_gets_other_data():
    """As programs do that clip or mask activations behind the graph's back, which keeps what it has
    saved."""
    x = tt.tensor([1.0, 2, 3], requires_grad=True)
    y = x * 2
    z = y * y
    y.data = y.data.clamp(max=3)
    assert y.tolist() == [2, 3, 3] and y.requires_grad and z.tolist() == [4, 16, 36]
    (y * y + z).sum().backward()
    assert x.grad.tolist() == [8 + 8, 12 + 16, 12 + 24]
    for wrong in (tt.ones(2), tt.ones(3, dtype=tt.float64)):
        with pytest.raises(RuntimeError, match="leaf is the result of an operator: it must be no"):
            y.data = wrong
    with tt.no_grad():
        plain = x * 2
    plain.data = tt.ones(2)
    assert plain.shape == (2,) and tt.autograd._is_checkpoint_valid()


@pytest.mark.parametrize("gives", [True, False])
def test_tensors_of_transforms_get_and_give_no_data(gives):
    """Their elements are those of all samples, or of a primal, which they hold."""

    def replaced(x):
        y = tt.zeros(3) if gives else x * 2
        y.data = x if gives else tt.ones(3)
        return y * y

    with pytest.raises(RuntimeError, match="of vmap or with a tangent"):
        tt.vmap(replaced)(tt.ones(2, 3))
    with pytest.raises(RuntimeError, match="of vmap or with a tangent"):
        tt.func.jvp(replaced, (tt.ones(3),), (tt.ones(3),))


def test_nodes_that_save_no_tensors_run_again():
    x = tt.ones(2, requires_grad=True)
    shared = (x + 1).reshape(1, 2) - 3
    for _ in range(2):  # as attacks do that add a constant before their steps
        (found,) = tt.autograd.grad(shared.sum(), x)
        assert found.tolist() == [1, 1]
    total = (shared.exp() * 2).sum()
    tt.autograd.grad(total, x)
    with pytest.raises(RuntimeError, match="exp has been freed"):
        tt.autograd.grad(total, x)

    operators = (
        lambda t: t.sum(0),
        lambda t: t.roll(1, 0),
        lambda t: t.as_strided((2, 2), (1, 1)),
        lambda t: tt.cat([t, t]),
        lambda t: tt.stack([t, t]),
    )
    for f in operators:
        y = f(tt.ones(2, 3, requires_grad=True) + 0)
        for _ in range(2):
            y.sum().backward()


def test_a_function_that_saves_no_tensors_runs_again():
    class Twice(tt.autograd.Function):
        @staticmethod
        def forward(ctx, x, saves):
            if saves:
                ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2, None

    x = tt.ones(2, requires_grad=True)
    y = Twice.apply(x, False)
    for _ in range(2):
        y.sum().backward()
    assert x.grad.tolist() == [4, 4]
    y = Twice.apply(x, True)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="Twice has been freed"):
        y.sum().backward()
