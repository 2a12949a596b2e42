"""Nodes of the graph: their names, what they saved, where they lead."""
import gc
import threading
import weakref

import pytest

import tt
import tt.nn.functional as F


def leaf(*values):
    return tt.tensor(values, requires_grad=True)


def saved_names(node):
    return {name[len("_saved_") :] for name in dir(node) if name.startswith("_saved_")}


x, y = leaf(1.5, 2.5, 3.5), leaf(2.0, 3.0, 1.5)
m = tt.tensor([[0.1, 0.9, 0.3], [0.5, 0.2, 0.7], [0.8, 0.4, 0.6]], requires_grad=True)

# PyTorch 2.15: a call, the name of its node, the names of what it saved
RECORDED = [
    (lambda: x * y, "MulBackward0", {"self", "other"}),
    (lambda: 2 * x, "MulBackward0", {"self", "other"}),
    (lambda: x / 2, "DivBackward0", {"self", "other"}),
    (lambda: x**2, "PowBackward0", {"self", "exponent"}),
    (lambda: x**y, "PowBackward1", {"self", "exponent", "result"}),
    (lambda: 2**x, "PowBackward2", {"self", "exponent", "result"}),
    (lambda: x % y, "RemainderBackward1", {"self", "other"}),
    (lambda: x % 2, "RemainderBackward0", set()),
    (lambda: x.clamp(1, 2), "ClampBackward1", {"self", "min", "max"}),
    (lambda: tt.clamp_min(x, y), "ClampMinBackward1", {"self", "min"}),
    (lambda: tt.lerp(x, y, 0.5), "LerpBackward0", {"weight"}),
    (lambda: tt.lerp(x, y, y), "LerpBackward1", {"self", "end", "weight"}),
    (lambda: tt.rsub(x, y), "RsubBackward0", {"alpha"}),
    (lambda: x.exp(), "ExpBackward0", {"result"}),
    (lambda: tt.special.i0e(x), "SpecialI0EBackward0", {"self", "result"}),
    (lambda: tt.polygamma(1, x), "PolygammaBackward0", {"n", "self"}),
    (lambda: F.gelu(x), "GeluBackward0", {"self", "approximate"}),
    (lambda: F.elu(x), "EluBackward0", {"self", "alpha", "scale", "input_scale"}),
    (lambda: m.sum(), "SumBackward0", {"self_sym_sizes"}),
    (lambda: m.sum(0).sum(0), "SumBackward1", {"self_sym_sizes", "dim", "keepdim"}),
    (lambda: m.mean(), "MeanBackward0", {"self_sym_sizes", "self_sym_numel"}),
    (lambda: m.max(), "MaxBackward1", {"self", "result"}),
    (lambda: m.max(0)[0], "MaxBackward0", {"dim", "indices", "keepdim", "self_sym_sizes"}),
    (lambda: m.median(0)[0], "MedianBackward1", {"dim", "indices", "keepdim", "self_sym_sizes"}),
    (lambda: m.softmax(0), "SoftmaxBackward0", {"dim", "result"}),
    (lambda: m.topk(2)[0], "TopkBackward0", {"dim", "indices", "self_sym_sizes"}),
    (lambda: m[[0, 1]], "IndexBackward0", {"indices", "self_sym_sizes"}),
    (lambda: tt.det(m), "LinalgDetBackward0", {"A", "LU", "pivots", "result"}),
]


@pytest.mark.parametrize("k", range(len(RECORDED)))
def test_names_are_pytorchs(k):
    call, name, saved = RECORDED[k]
    node = call().grad_fn
    assert type(node).__name__ == node.name() == name
    assert saved_names(node) == saved
    for value in saved:
        getattr(node, f"_saved_{value}")


def test_values():
    node = (x * y).grad_fn
    assert node._saved_self.tolist() == x.tolist() and node._saved_self.requires_grad
    assert (2 * x).grad_fn._saved_other.item() == 2 and (2 * x).grad_fn._saved_self is None
    assert m.sum(0).grad_fn._saved_dim == (0,) and m.sum(0).grad_fn._saved_keepdim is False
    assert m.sum(0).grad_fn._saved_self_sym_sizes == (3, 3)
    assert x.clamp(max=tt.inf).grad_fn._saved_max == tt.inf
    assert x.clamp(max=tt.inf).grad_fn._saved_min is None
    (indices,) = m[[0, 1]].grad_fn._saved_indices
    assert indices.tolist() == [0, 1]
    result = x.exp()
    assert result.grad_fn._saved_result.grad_fn == result.grad_fn
    linear = F.linear(m, m, x).grad_fn
    assert linear._saved_mat2.tolist() == m.t().tolist() and linear._saved_alpha == 1
    product, stack = (m @ m).grad_fn, tt.bmm(m[None], m[None]).grad_fn
    assert product._saved_mat2_sym_sizes == (3, 3) and not hasattr(stack, "_saved_mat2_sym_sizes")
    with pytest.raises(AttributeError, match="MulBackward0.*_saved_result"):
        node._saved_result


def test_freed_values_are_refused():
    result = x * y
    node = result.grad_fn
    result.sum().backward()
    assert saved_names(node) == {"self", "other"}
    with pytest.raises(RuntimeError, match="has been freed"):
        node._saved_self
    changed = x.exp()
    node = changed.grad_fn
    changed.add_(1)
    with pytest.raises(RuntimeError, match="written in place"):
        node._saved_result


def test_names_stay_after_backward():
    stack, product = tt.bmm(m[None], m[None]), m @ m
    (stack.sum() + product.sum()).backward()
    assert stack.grad_fn.name() == "BmmBackward0" and product.grad_fn.name() == "MmBackward0"
    assert "mat2_sym_sizes" not in saved_names(stack.grad_fn)
    assert "mat2_sym_sizes" in saved_names(product.grad_fn)


def test_values_are_as_they_were_given():
    normed = F.layer_norm(m, (3,)).grad_fn
    assert normed._saved_normalized_shape == (3,)
    assert not hasattr(normed, "_saved_normalized_sym_sizes")
    assert m.sum().grad_fn._saved_self_sym_sizes == (3, 3)


def test_threads_read_nodes_while_backward_runs():
    parts = tt.cat([x] * 500)
    failed = []

    def read():
        for _ in range(100):
            try:
                assert parts.grad_fn.name() == "CatBackward0"
                dir(parts.grad_fn)
                repr(parts)
            except Exception as e:
                failed.append(e)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    while any(reader.is_alive() for reader in readers):
        parts.backward(tt.ones_like(parts), retain_graph=True)
    assert failed == []


def test_a_hook_reads_nodes_that_wait_and_threads_see_none_of_their_values():
    total = x.exp().sum(0)
    seen = []

    def hook(grads):
        own = total.grad_fn
        seen.append((own.name(), saved_names(own)))

    def read_in_thread(grads):
        thread = threading.Thread(target=hook, args=(grads,))
        thread.start()
        thread.join()

    total.grad_fn.register_prehook(hook)
    total.grad_fn.register_prehook(read_in_thread)
    total.backward()
    names = {"self_sym_sizes", "dim", "keepdim"}
    assert seen == [("SumBackward1", names), ("SumBackward1", set())]


def test_inputs_know_which_result_they_are():
    a, b = m.split([1, 2])
    functions = (b * 1).grad_fn.next_functions
    assert [(f and f.name(), nr) for f, nr in functions] == [("SplitBackward0", 1), (None, 0)]
    assert (a.sum(0) * b.sum(0)).grad_fn.next_functions[0][0].name() == "SumBackward1"


def test_metadata_lives_with_the_node():
    result = x * y
    result.grad_fn.metadata["mark"] = 1
    assert result.grad_fn.metadata == {"mark": 1}
    ((parent, _),) = result.sum().grad_fn.next_functions
    assert parent.metadata == {"mark": 1}
    accumulate = parent.next_functions[0][0]
    accumulate.metadata["leaf"] = 2
    assert (x + 1).grad_fn.next_functions[0][0].metadata == {"leaf": 2}
    assert parent.next_functions[1][0].metadata == {}
    result.grad_fn.metadata["mark"] = mark = Mark()
    found = weakref.ref(mark)
    del result, parent, accumulate, mark
    gc.collect()
    assert found() is None


class Mark:
    """An object that metadata may hold."""


def test_metadata_of_a_node_that_is_gone_is_not_seen_again():
    held = []
    for _ in range(20):  # nodes at the same address
        node = x.exp().grad_fn
        assert node.metadata == {}
        node.metadata["mark"] = 1
        held.append(node.metadata)
        del node


class Scaled(tt.autograd.Function):
    @staticmethod
    def forward(ctx, t, factor):
        ctx.save_for_backward(t, None)
        ctx.factor = factor
        return t * factor

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None


@pytest.mark.parametrize("name", ["square", "mul", "B:inf", 'a"b\\c\n', "naïve"])
def test_functions_are_known_by_any_name(name):
    node = type(name, (Scaled,), {}).apply(x, 3).grad_fn
    assert type(node).__name__ == node.name() == f"{name}Backward"
    assert node.factor == 3 and node.saved_tensors[0].tolist() == x.tolist()
    assert saved_names(node) == set() and len(node.next_functions) == 1


def test_a_functions_node_has_the_attributes_of_its_ctx():
    result = Scaled.apply(x, 3)
    node = result.grad_fn
    assert node.name() == "ScaledBackward" and node.factor == 3
    assert node.needs_input_grad == (True, False)
    first, second = node.saved_tensors
    assert first.tolist() == x.tolist() and second is None
    with pytest.raises(AttributeError):
        node.other
    result.sum().backward()
    with pytest.raises(RuntimeError, match="freed"):
        node.saved_tensors
    with pytest.raises(AttributeError):
        x.exp().grad_fn.saved_tensors
