"""Gradients: backward, grad, functions with a gradient of their own, grad modes."""
from contextlib import ContextDecorator
from functools import wraps
from inspect import isgeneratorfunction

from .._handles import (
    backward,
    grad,
    is_anomaly_enabled,
    is_grad_enabled,
    switch_anomaly,
    switch_grad,
)  # noqa: F401


class Mode(ContextDecorator):
    """A mode that is on, or off, within: a context manager, which may be nested, and a decorator."""

    def __init__(self, on, switch=switch_grad):
        self.on, self.switch, self.previous = bool(on), switch, []

    def __enter__(self):
        self.previous.append(self.switch(self.on))

    def __exit__(self, *_):
        self.switch(self.previous.pop())

    def _recreate_cm(self):
        """Of a decorator: each call has its own."""
        return Mode(self.on, self.switch)

    def __call__(self, function):
        if not isgeneratorfunction(function):
            return super().__call__(function)

        @wraps(function)
        def generator(*args, **kwargs):
            return (yield from self._resumed(function(*args, **kwargs)))

        return generator

    def _resumed(self, generator):
        """The same generator, whose body alone is in the mode: not who takes what it yields."""
        resume, given = generator.send, None
        try:
            while True:
                with self._recreate_cm():
                    found = resume(given)
                try:
                    resume, given = generator.send, (yield found)
                except GeneratorExit:
                    with self._recreate_cm():
                        generator.close()
                    raise
                except BaseException as e:
                    resume, given = generator.throw, e
        except StopIteration as end:
            return end.value


def no_grad(function=None):
    """Operators inside record no gradients. A mode of this thread: others, also those started inside, record as before."""
    return Mode(False) if function is None else Mode(False)(function)


def enable_grad(function=None):
    """Operators inside record gradients, also within no_grad."""
    return Mode(True) if function is None else Mode(True)(function)


def inference_mode(mode=True):
    """As no_grad; tensors made inside are ordinary ones. inference_mode(False) changes nothing."""
    return no_grad(mode) if callable(mode) else Mode(not mode and is_grad_enabled())


class set_grad_enabled(Mode):
    """Sets the mode at once; as a context manager only until its end."""

    def __init__(self, mode, switch=switch_grad):
        super().__init__(mode, switch)
        super().__enter__()

    def __enter__(self):
        self.switch(self.on)

    def __call__(self, function):
        """As a decorator: within the function alone."""
        self.__exit__()
        return super().__call__(function)


def set_detect_anomaly(mode, check_nan=True):
    """Backward fails at the first operator whose gradient has nan, and names it; as a context manager until its end."""
    return set_grad_enabled(mode and check_nan, switch_anomaly)


def detect_anomaly(check_nan=True):
    """with detect_anomaly(): …"""
    return set_detect_anomaly(True, check_nan)


from .function import Function  # noqa: E402, F401  (which needs the modes)
