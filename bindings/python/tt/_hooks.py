"""Callbacks of autograd: one C trampoline per kind, Python functions in a table."""
import itertools
from ctypes import CFUNCTYPE, POINTER, byref, c_int32, c_int64, c_void_p

from ._lib import Handle, call, dropper, local, quick, released_by, result
from ._printing import node_name
from ._tensor import Tensor, borrow

CALLBACK_FAILED = 15
functions = {}  # key -> Python function
keys = itertools.count(1)
drop = dropper(functions)


def guarded(body):
    """Runs body(); an exception waits in local.raised until the call that led here fails."""
    try:
        body()
    except BaseException as e:
        local.raised = e
        return CALLBACK_FAILED
    return 0


def give(results, i, t, what):
    """Writes an owned handle into a C array of results, nothing for None."""
    if t is None:
        return
    if not isinstance(t, Tensor):
        raise TypeError(f"{what} must return a Tensor or None, not {type(t).__name__}")
    quick.tt_tensor_retain(t)
    results[i] = t._address


@CFUNCTYPE(c_int32, c_void_p, c_void_p, c_void_p, POINTER(c_void_p))
def on_grad(key, _ctx, grad, replacement):
    return guarded(lambda: give(replacement, 0, functions[key](borrow(grad)), "a tensor hook"))


@CFUNCTYPE(c_int32, c_void_p, c_void_p, c_void_p)
def on_accumulate(key, _ctx, leaf):
    return guarded(lambda: functions[key](borrow(leaf)) and None)


@CFUNCTYPE(c_int32, c_void_p, c_void_p, POINTER(c_void_p), c_int64, POINTER(c_void_p))
def on_node(key, _ctx, grads, n, replacements):
    def body():
        found = functions[key](tuple(borrow(grads[i]) if grads[i] else None for i in range(n)))
        if found is None:
            return
        found = found if isinstance(found, (tuple, list)) else (found,)
        if len(found) != n:
            raise ValueError(f"a node hook must return {n} gradients, not {len(found)}")
        for i, t in enumerate(found):
            give(replacements, i, t, "a node hook")
    return guarded(body)


class HookHandle:
    """Of a registered hook: remove() ends it."""
    __slots__ = ("_end",)

    def __init__(self, end):
        self._end = end

    def remove(self):
        end, self._end = self._end, None
        if end:
            end()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()


def registered(register, remove, owner, fn, trampoline, *before):
    if not callable(fn):
        raise TypeError(f"a hook must be callable, not {type(fn).__name__}")
    key, number = next(keys), c_int64()
    functions[key] = fn
    call(register, owner, *before, trampoline, c_void_p(key), drop, byref(number))
    return HookHandle(lambda: call(remove, owner, number))


def register_hook(t, fn):
    return registered("tt_register_hook", "tt_remove_hook", t, fn, on_grad)


def register_accumulate_hook(t, fn):
    return registered("tt_register_accumulate_hook", "tt_remove_hook", t, fn, on_accumulate)


class Node(Handle):
    """A recorded operator."""
    __slots__ = ()

    @classmethod
    def of(cls, t):
        return result(cls, "tt_tensor_grad_fn", t)

    def name(self):
        """PyTorch's name of it: "AddBackward0"."""
        return node_name(quick.tt_node_name(self).decode())

    @property
    def next_functions(self):
        """The nodes of its inputs, in pairs as PyTorch has them (the second item is always 0); None for a leaf or for no gradient."""
        return tuple((result(Node, "tt_node_next", self, c_int64(i)), 0) for i in range(quick.tt_node_num_inputs(self)))

    def register_prehook(self, fn):
        """Calls fn(grads) on the gradients of its outputs, before the formula."""
        return registered("tt_node_register_hook", "tt_node_remove_hook", self, fn, on_node, c_int32(1))

    def register_hook(self, fn):
        """Calls fn(grads) on the gradients of its inputs, after the formula."""
        return registered("tt_node_register_hook", "tt_node_remove_hook", self, fn, on_node, c_int32(0))

    def __eq__(self, other):
        return isinstance(other, Node) and self._address == other._address

    def __hash__(self):
        return hash(self._address)

    def __repr__(self):
        return f"<{self.name()} object at {self._address:#x}>"


released_by(Node, quick.tt_node_release)
