"""Gradients: backward, grad, functions with a gradient of their own, grad modes."""
from contextlib import ContextDecorator
from ctypes import addressof, c_void_p
from struct import Struct

from .._convert import length, pointers, tensor_list
from .._handles import is_anomaly_enabled, is_grad_enabled, switch_anomaly, switch_grad  # noqa: F401
from .._interrupt import interruptible
from .._tensor import Tensor, wrap

BACKWARD = Struct("QPiiPq").pack  # tt_backward_opts: set, gradient, retain_graph, create_graph, inputs, n_inputs
GRAD = Struct("QPqiii0q").pack    # tt_grad_opts: set, grad_outputs, n, retain_graph, create_graph, allow_unused


def __getattr__(name):
    if name != "Function":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .function import Function
    return Function


def listed(x, op, arg, optional=False):
    """A tuple of tensors from one or several."""
    return (x,) if isinstance(x, Tensor) else tensor_list(x, op, arg, optional)


def handles(xs):
    """A C array of the handles; None items are NULL."""
    return (c_void_p * max(len(xs), 1))(*(None if x is None else x._address for x in xs))


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, inputs=None):
    """Adds the gradients of tensors (one or several; grad_tensors: theirs, None: 1) to the leaves' .grad."""
    outputs = listed(tensors, "backward", "tensors")
    starts = None if grad_tensors is None else listed(grad_tensors, "backward", "grad_tensors", True)
    if starts is not None and len(starts) != len(outputs):
        raise RuntimeError(f"backward(): got {len(outputs)} tensors and {len(starts)} gradients")
    given = listed(inputs, "backward", "inputs") if inputs is not None else ()
    array = handles(given)
    bits = (retain_graph is not None) << 1 | 4 | (inputs is not None) << 3
    opts = BACKWARD(bits, 0, bool(retain_graph), bool(create_graph), addressof(array), len(given))
    interruptible("tt_backward_all", pointers(outputs), pointers(starts) if starts else None, length(outputs), opts)


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, allow_unused=None):
    """The gradients of outputs with respect to inputs, as a tuple; unused inputs get None if allow_unused."""
    outputs, inputs = listed(outputs, "grad", "outputs"), listed(inputs, "grad", "inputs")
    given = () if grad_outputs is None else listed(grad_outputs, "grad", "grad_outputs", True)
    array = handles(given)
    bits = (grad_outputs is not None) | (retain_graph is not None) << 1 | 4 | 8
    opts = GRAD(bits, addressof(array), len(given), bool(retain_graph), bool(create_graph), bool(allow_unused))
    found = (c_void_p * max(len(inputs), 1))()
    interruptible("tt_grad", pointers(outputs), length(outputs), pointers(inputs), length(inputs), opts, found)
    return tuple(wrap(h) if h else None for h in found[:len(inputs)])


# ---- modes ----

class Mode(ContextDecorator):
    """A mode as a context manager, which may be nested, and as a decorator."""
    switch, on = staticmethod(switch_grad), True

    def __init__(self):
        self.previous = []

    def __enter__(self):
        self.previous.append(self.switch(self.on))

    def __exit__(self, *_):
        self.switch(self.previous.pop())

    def _recreate_cm(self):
        """Of a decorator: each call has its own."""
        made = Mode()
        made.switch, made.on = self.switch, self.on
        return made


class no_grad(Mode):
    """Operators inside record no gradients."""
    on = False

    def __new__(cls, function=None):
        made = super().__new__(cls)
        if function is None:
            return made
        made.__init__()
        return made(function)


class enable_grad(Mode):
    """Operators inside record gradients, also within no_grad."""


class inference_mode(no_grad):
    """As no_grad; tensors made inside are ordinary ones. inference_mode(False) changes nothing."""

    def __new__(cls, mode=True):
        return no_grad.__new__(cls, mode if callable(mode) else None)

    def __init__(self, mode=True):
        super().__init__()
        self.on = not mode and is_grad_enabled()


class set_grad_enabled(Mode):
    """Sets the mode at once; as a context manager only until its end."""

    def __init__(self, mode):
        self.on = bool(mode)
        self.previous = [self.switch(self.on)]

    def __enter__(self):
        self.switch(self.on)


class set_detect_anomaly(set_grad_enabled):
    """Backward fails at the first operator whose gradient has nan, and names it; as a context manager until its end."""
    switch = staticmethod(switch_anomaly)

    def __init__(self, mode, check_nan=True):
        super().__init__(mode and check_nan)


class detect_anomaly(set_detect_anomaly):
    """with detect_anomaly(): …"""

    def __init__(self, check_nan=True):
        super().__init__(True, check_nan)
