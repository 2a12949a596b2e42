"""Gradients: backward, grad, functions with a gradient of their own, grad modes."""
from contextlib import ContextDecorator

from .. import _handles
from .._handles import is_anomaly_enabled, is_grad_enabled, switch_anomaly, switch_grad  # noqa: F401
from .._tensor import Tensor


def listed(x):
    return (x,) if isinstance(x, Tensor) else x


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, inputs=None):
    """Adds the gradients of tensors (one or several; grad_tensors: theirs, None: 1) to the leaves' .grad."""
    tensors, starts = listed(tensors), listed(grad_tensors)
    if starts is not None and len(starts) != len(tensors):
        raise RuntimeError(f"backward(): got {len(tensors)} tensors and {len(starts)} gradients")
    _handles.backward(tensors, starts, retain_graph=retain_graph, create_graph=create_graph, inputs=listed(inputs))


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, allow_unused=None):
    """The gradients of outputs with respect to inputs, as a tuple; unused inputs get None if allow_unused."""
    return _handles.grad(listed(outputs), listed(inputs), listed(grad_outputs), retain_graph, create_graph, allow_unused)


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


from .function import Function  # noqa: E402, F401  (which needs the modes)
