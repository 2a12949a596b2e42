"""Gradients: grad, backward, grad modes."""
from ctypes import addressof, byref, c_int32, c_void_p
from functools import wraps
from struct import Struct

from ._convert import length, pointers, tensor_list
from ._lib import fail, lib, local, quick
from ._tensor import Tensor, wrap

BACKWARD = Struct("QPiiPq").pack  # tt_backward_opts: set, gradient, retain_graph, create_graph, inputs, n_inputs
GRAD = Struct("QPqiii0q").pack    # tt_grad_opts: set, grad_outputs, n, retain_graph, create_graph, allow_unused


def listed(x, op, arg):
    """A tuple of tensors from one or several."""
    return (x,) if isinstance(x, Tensor) else tensor_list(x, op, arg)


def handles(xs):
    """A C array of the handles; None items are NULL."""
    return (c_void_p * max(len(xs), 1))(*(None if x is None else x._address for x in xs))


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, inputs=None):
    """Adds the gradients of tensors (one or several; grad_tensors: theirs, None: 1) to the leaves' .grad."""
    outputs = listed(tensors, "backward", "tensors")
    starts = grad_tensors
    if starts is not None:
        starts = (starts,) if isinstance(starts, Tensor) else tensor_list(starts, "backward", "grad_tensors", True)
        if len(starts) != len(outputs):
            raise RuntimeError(f"backward(): got {len(outputs)} tensors and {len(starts)} gradients")
    given = listed(inputs, "backward", "inputs") if inputs is not None else ()
    array = handles(given)
    bits = (retain_graph is not None) << 1 | 4 | (inputs is not None) << 3
    opts = BACKWARD(bits, 0, bool(retain_graph), bool(create_graph), addressof(array), len(given))
    if lib.tt_backward_all(local.ctx, pointers(outputs), pointers(starts) if starts else None, length(outputs), opts):
        fail()


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, allow_unused=None):
    """The gradients of outputs with respect to inputs, as a tuple; unused inputs get None if allow_unused."""
    outputs, inputs = listed(outputs, "grad", "outputs"), listed(inputs, "grad", "inputs")
    given = grad_outputs
    if given is not None:
        given = (given,) if isinstance(given, Tensor) else tensor_list(given, "grad", "grad_outputs", True)
    array = handles(given or ())
    bits = (given is not None) | (retain_graph is not None) << 1 | 4 | 8
    opts = GRAD(bits, addressof(array), len(given or ()), bool(retain_graph), bool(create_graph), bool(allow_unused))
    found = (c_void_p * max(len(inputs), 1))()
    if lib.tt_grad(local.ctx, pointers(outputs), length(outputs), pointers(inputs), length(inputs), opts, found):
        fail()
    return tuple(wrap(h) if h else None for h in found[:len(inputs)])


# ---- grad modes ----

def is_grad_enabled():
    return bool(quick.tt_grad_enabled(local.ctx))


def switch(on):
    """Sets the mode; the previous one."""
    previous = c_int32()
    if quick.tt_set_grad_enabled(local.ctx, on, byref(previous)):
        fail()
    return previous.value


class GradMode:
    """A grad mode as a context manager and as a decorator."""
    on = True

    def __init__(self):
        self.previous = []

    def __enter__(self):
        self.previous.append(switch(self.on))

    def __exit__(self, *_):
        switch(self.previous.pop())

    def __call__(self, function):
        @wraps(function)
        def inside(*args, **kwargs):
            with type(self).again(self):
                return function(*args, **kwargs)
        return inside

    def again(self):
        """A fresh one of the same mode."""
        fresh = GradMode()
        fresh.on = self.on
        return fresh


class no_grad(GradMode):
    """Operators inside record no gradients."""
    on = False

    def __new__(cls, function=None):
        made = super().__new__(cls)
        if function is None:
            return made
        made.__init__()
        return made(function)


class enable_grad(GradMode):
    """Operators inside record gradients, also within no_grad."""


class set_grad_enabled(GradMode):
    """Sets the mode at once; as a context manager only until its end."""

    def __init__(self, mode):
        super().__init__()
        self.on = bool(mode)
        self.before = switch(self.on)

    def __enter__(self):
        switch(self.on)
        self.previous.append(self.before)


# ---- anomaly mode ----

class set_detect_anomaly:
    """Backward fails at the first operator whose gradient has nan, and names it; as a context manager until its end."""

    def __init__(self, mode, check_nan=True):
        previous = c_int32()
        if lib.tt_set_anomaly_enabled(local.ctx, c_int32(bool(mode and check_nan)), byref(previous)):
            fail()
        self.previous = previous.value

    def __enter__(self):
        return self

    def __exit__(self, *_):
        set_detect_anomaly(self.previous)


class detect_anomaly(set_detect_anomaly):
    """with detect_anomaly(): …"""

    def __init__(self, check_nan=True):
        super().__init__(True, check_nan)
