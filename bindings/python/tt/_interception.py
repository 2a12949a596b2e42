"""__torch_function__: arguments and modes that take the place of functions.

The functions of tt check nothing until a program needs it: a subclass of Tensor with its own
__torch_function__ is defined, a mode is entered, an argument of another class has the method, or
tt.fx traces. Then, and until the last of these ends, the public functions have the code of
stand_in(), which calls a Dispatcher. So names that were imported before are intercepted, too.
"""
from __future__ import annotations

import threading
import weakref
from contextlib import contextmanager
from importlib import import_module
from types import FunctionType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any, Callable, Iterable, Iterator

    from ._tensor import Tensor


class State(threading.local):
    """What a thread intercepts.

    modes: those that are entered, the innermost last.
    off: the depth of DisableTorchFunction: nothing is intercepted.
    subclass_off: the depth of DisableTorchFunctionSubclass: only modes are.
    """

    def __init__(self) -> None:
        self.modes: list[Any] = []
        self.off = 0
        self.subclass_off = 0


state = State()
# Classes that intercept nothing; Tensor adds itself
COMMON: set[type] = {int, float, bool, str, complex, type(None), slice, type(Ellipsis)}
NOT_CONVERTED = ("tt.Tensor.grad.__get__",)  # functions whose results keep their class


class DisableTorchFunctionSubclass:
    """Within the block, arguments intercept nothing; modes do."""

    def __enter__(self) -> None:
        state.subclass_off += 1

    def __exit__(self, *error: object) -> None:
        state.subclass_off -= 1


class DisableTorchFunction:
    """Within the block, neither arguments nor modes intercept functions."""

    def __enter__(self) -> None:
        state.off += 1
        state.subclass_off += 1

    def __exit__(self, *error: object) -> None:
        state.off -= 1
        state.subclass_off -= 1


def disabled_torch_function(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """The __torch_function__ of classes whose instances are treated as plain tensors."""
    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


def default_torch_function(
    cls: type[Tensor], func: Any, types: Any, args: Any = (), kwargs: Any = None
) -> Any:
    """Calls func on self as on a plain tensor and returns its tensors in the class of self.

    Returns NotImplemented if an argument is of a class that is no base of it.
    """
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
    return result if names.get(func) in NOT_CONVERTED else converted(result, cls)


def converted(result: Any, cls: type[Tensor]) -> Any:
    """Returns a result whose plain tensors are of this class."""
    if type(result) in COMMON and hasattr(result, "as_subclass"):
        return result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        items = [converted(x, cls) for x in result]
        make = getattr(type(result), "_make", type(result))
        return make(items)
    return result


# ---- arguments ----


def intercepts(kind: type) -> bool:
    """Returns whether a class has a __torch_function__, as subclasses of Tensor always have."""
    if kind in COMMON:
        return False
    method = getattr(kind, "__torch_function__", None)
    return method is not None and method is not disabled_torch_function


def overrides(kind: type) -> bool:
    """Returns whether a class has a __torch_function__ of its own."""
    if not intercepts(kind):
        return False
    method: Any = getattr(kind, "__torch_function__")
    return getattr(method, "__func__", method) is not default_torch_function


def candidates(args: Iterable[Any]) -> Iterator[Any]:
    """Yields the arguments that may intercept, the items of lists and tuples included."""
    for x in args:
        if type(x) in (list, tuple):
            for item in x:
                if type(item) not in COMMON:
                    yield item
        elif type(x) not in COMMON:
            yield x


def overloaded(args: Iterable[Any]) -> list[Any]:
    """Returns one argument of each class with a __torch_function__ in the order in which they are
    asked: from left to right, subclasses before their bases."""
    found: list[Any] = []
    seen: set[type] = set()
    for x in candidates(args):
        kind = type(x)
        if kind in seen or not intercepts(kind):
            continue
        seen.add(kind)
        after = (i for i, other in enumerate(found) if issubclass(kind, type(other)))
        found.insert(next(after, len(found)), x)
    return found


def is_overridden(args: Iterable[Any]) -> bool:
    """Returns whether a class of the arguments has a __torch_function__ of its own."""
    return any(overrides(type(x)) for x in candidates(args))


# ---- calls ----


@contextmanager
def innermost_mode() -> Iterator[Any]:
    """Leaves the innermost mode during the block."""
    mode = state.modes.pop()
    try:
        yield mode
    finally:
        state.modes.append(mode)


def handle(public: Any, found: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Returns the result of the innermost mode or of the first of the found arguments whose
    __torch_function__ does not return NotImplemented."""
    types = tuple(map(type, found))
    if state.modes and not state.off:
        with innermost_mode() as mode:
            result = mode.__torch_function__(public, types, args, kwargs)
        if result is not NotImplemented:
            return result
    if not state.subclass_off:
        for x in found:
            result = x.__torch_function__(public, types, args, kwargs)
            if result is not NotImplemented:
                return result
    from .overrides import resolve_name

    name = resolve_name(public) or getattr(public, "__name__", repr(public))
    asked = [*map(type, reversed(state.modes[-1:])), *types]
    raise TypeError(
        f"Multiple dispatch failed for '{name}': all __torch_function__ handlers returned "
        f"NotImplemented: {', '.join(map(str, asked))}"
    )


class Dispatcher:
    """Calls a function of tt, or those that intercept it.

    public: the function as __torch_function__ gets it. plain: what it does otherwise.
    """

    __slots__ = ("public", "plain")

    def __init__(self, public: Any, plain: Any) -> None:
        self.public, self.plain = public, plain

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not state.off:
            given = (*args, *kwargs.values()) if kwargs else args
            if state.modes or not state.subclass_off and is_overridden(given):
                return self.intercepted(given, args, kwargs)
        return self.plain(*args, **kwargs)

    def intercepted(self, given: Any, args: Any, kwargs: Any) -> Any:
        return handle(self.public, overloaded(given), args, kwargs)


class OperatorDispatcher(Dispatcher):
    """That of a method such as __add__: Python tries the other operand if nothing handles it."""

    __slots__ = ()

    def intercepted(self, given: Any, args: Any, kwargs: Any) -> Any:
        try:
            return super().intercepted(given, args, kwargs)
        except TypeError:
            return NotImplemented


class LayerDispatcher(Dispatcher):
    """That of Layer._forward, which calls C: the layer's function is intercepted instead."""

    __slots__ = ()

    def __call__(self, layer: Any, *inputs: Any) -> Any:
        if not state.off and (state.modes or not state.subclass_off and is_overridden(inputs)):
            from .nn._formulas import forward

            return forward(layer, inputs)
        return self.plain(layer, *inputs)


# ---- the public functions ----


def stand_in(*args: Any, **kwargs: Any) -> Any:
    dispatcher: Any = "its Dispatcher"
    return dispatcher(*args, **kwargs)


class Overridable:
    """A public function and the two codes that it may have."""

    __slots__ = ("function", "own", "dispatching")

    def __init__(self, function: FunctionType, public: Any, kind: type[Dispatcher]) -> None:
        own = function.__code__
        plain = FunctionType(
            own, function.__globals__, own.co_name, function.__defaults__, function.__closure__
        )
        plain.__kwdefaults__ = function.__kwdefaults__
        function.__wrapped__ = plain  # type: ignore[attr-defined]  # inspect.signature reads it
        self.function, self.own = function, own
        self.dispatching = dispatching_code(own, kind(public, plain))


def dispatching_code(own: CodeType, dispatcher: Dispatcher) -> CodeType:
    """Returns the code of stand_in with this dispatcher, which fits the closure of the own one."""
    template = stand_in.__code__
    constants = tuple(dispatcher if c == "its Dispatcher" else c for c in template.co_consts)
    return template.replace(
        co_consts=constants,
        co_freevars=own.co_freevars,
        co_name=own.co_name,
        co_filename=own.co_filename,
        co_firstlineno=own.co_firstlineno,
    )


# Attributes of Tensor and functions that are never intercepted
IGNORED_ATTRIBUTES = set(
    "__new__ __init__ __init_subclass__ __torch_function__ __hash__ __iter__ __setstate__ "
    "__delitem__ __array_namespace__ as_subclass new new_empty new_full new_ones new_tensor "
    "new_zeros new_empty_strided stride to_sparse unflatten".split()
)
IGNORED_FUNCTIONS = set(
    "as_torch are_deterministic_algorithms_enabled build_info can_cast compile "
    "get_default_device get_default_dtype get_device_module get_float32_matmul_precision "
    "get_num_interop_threads get_num_threads get_rng_state import_module initial_seed "
    "is_anomaly_enabled is_grad_enabled is_inference_mode_enabled is_storage is_tensor "
    "is_warn_always_enabled load manual_seed save seed set_default_device set_default_dtype "
    "set_default_tensor_type set_deterministic_debug_mode set_float32_matmul_precision "
    "set_flush_denormal set_num_interop_threads set_num_threads set_printoptions set_rng_state "
    "set_warn_always typename use_deterministic_algorithms vmap".split()
)
NAMESPACES = "tt tt.nn.functional tt.nn.init tt.linalg tt.fft tt.special".split()
# Methods of Python's operators -> the method that __torch_function__ gets for them
OPERATORS = {
    f"__{prefix}{name}__": method + ("_" if prefix == "i" else "")
    for prefix in ("", "i")
    for name, method in (
        ("add", "add"),
        ("sub", "sub"),
        ("mul", "mul"),
        ("truediv", "div"),
        ("mod", "remainder"),
        ("pow", "pow"),
    )
}
OPERATORS.update({f"__{name}__": name for name in "eq ne lt le gt ge matmul neg abs".split()})
OPERATORS.update(__invert__="bitwise_not", __pos__="positive")
BINARY = set(OPERATORS) - {"__neg__", "__abs__", "__invert__", "__pos__"} | {
    f"__{prefix}{name}__"
    for prefix in ("", "r", "i")
    for name in ("add sub mul truediv floordiv mod pow matmul and or xor lshift rshift div".split())
}

names: dict[Any, str] = {}  # public function -> its name
of_tensor: set[Any] = set()  # those of Tensor
entered: set[FunctionType] = set()
table: list[Overridable] = []
lock = threading.RLock()
users = 0  # how many need interception
intercepting = False


def public_functions() -> Iterator[tuple[str, FunctionType]]:
    """Yields the functions of the namespaces with their names."""
    for namespace in NAMESPACES:
        module = import_module(namespace)
        for name in dir(module):
            private = name.startswith("_") and name != "_assert"
            if private or name in IGNORED_FUNCTIONS:
                continue
            function = getattr(module, name, None)
            owner = getattr(function, "__module__", None) or ""
            if isinstance(function, FunctionType) and owner.split(".")[0] == "tt":
                yield f"{namespace}.{name}", function


def tensor_attributes() -> Iterator[tuple[str, Any]]:
    """Yields what Tensor has, from its own class to its bases."""
    from ._tensor import Tensor

    for cls in Tensor.__mro__[:-1]:
        for name, attribute in vars(cls).items():
            private = name.startswith("_") and not name.startswith("__")
            if not private and name not in IGNORED_ATTRIBUTES:
                yield name, attribute


def enter(name: str, function: Any, public: Any, kind: type[Dispatcher] = Dispatcher) -> None:
    """Adds a function to the table. public: what __torch_function__ gets for it."""
    names.setdefault(public, name)
    if isinstance(function, FunctionType) and function not in entered:
        entered.add(function)
        table.append(Overridable(function, public, kind))


def enter_property(name: str, attribute: property) -> None:
    parts = {"__get__": attribute.fget, "__set__": attribute.fset, "__delete__": attribute.fdel}
    for part, function in parts.items():
        public = getattr(attribute, part)
        of_tensor.add(public)
        enter(f"tt.Tensor.{name}.{part}", function, public)


def enter_method(name: str, function: FunctionType) -> None:
    from ._tensor import Tensor

    shown = OPERATORS.get(name, name)
    public = getattr(Tensor, shown, function)
    of_tensor.add(public)
    kind = OperatorDispatcher if name in BINARY else Dispatcher
    enter(f"tt.Tensor.{shown}", function, public, kind)


def build() -> None:
    """Fills the table of public functions."""
    from .nn.layer import Layer

    for name, function in public_functions():
        enter(name, function, function)
    for name, attribute in tensor_attributes():
        if isinstance(attribute, FunctionType):
            enter_method(name, attribute)
        elif isinstance(attribute, property):
            enter_property(name, attribute)
    forward: Any = Layer._forward
    table.append(Overridable(forward, forward, LayerDispatcher))


def ensure_built() -> None:
    with lock:
        if not table:
            build()


def begin() -> None:
    """Makes the public functions dispatch, until end() was called as often."""
    global users, intercepting
    with lock:
        users += 1
        if users == 1:
            ensure_built()
            for entry in table:
                entry.function.__code__ = entry.dispatching
            intercepting = True


def end() -> None:
    global users, intercepting
    with lock:
        users -= 1
        if not users:
            for entry in table:
                entry.function.__code__ = entry.own
            intercepting = False


def adopt(cls: type[Tensor]) -> None:
    """Prepares for a subclass of Tensor with a __torch_function__ of its own."""
    cls._keeps_class = False
    if overrides(cls):
        serve(cls)


def serve(cls: type) -> None:
    """Makes the public functions dispatch while a class exists."""
    begin()
    weakref.finalize(cls, end).atexit = False


# ---- calls that failed before anything was intercepted ----


@contextmanager
def served(args: Iterable[Any]) -> Iterator[None]:
    """Makes the public functions dispatch in the block, and afterwards for the classes of the
    arguments, but for those that are _transient."""
    begin()
    try:
        for x in overloaded(args):
            if not getattr(type(x), "_transient", False):
                serve(type(x))
        yield
    finally:
        end()


def retried(function: Any, values: dict[str, Any]) -> Any:
    """Handles a TypeError of a function. If an argument has a __torch_function__, calls it again,
    intercepted; raises the error otherwise.

    values: the local variables of the call.
    """
    if intercepting or state.subclass_off:
        raise
    code = function.__code__
    n, n_keywords = code.co_argcount, code.co_kwonlyargcount
    positional = [values[name] for name in code.co_varnames[:n]]
    keywords = {name: values[name] for name in code.co_varnames[n : n + n_keywords]}
    if code.co_flags & 4:  # takes *args
        positional += values[code.co_varnames[n + n_keywords]]
    given = (*positional, *keywords.values())
    if not is_overridden(given):
        raise
    defaults = function.__defaults__ or ()
    while len(positional) == n and defaults and positional[-1] is defaults[-1]:
        positional.pop()
        n, defaults = n - 1, defaults[:-1]
    usual = function.__kwdefaults__ or {}
    named = {k: v for k, v in keywords.items() if v is not usual.get(k)}
    with served(given):
        return function(*positional, **named)


def retried_operator(function: Any, left: Any, right: Any, **more: Any) -> Any:
    """Returns function(left, right) for a Python operator that knows not both operands: what
    intercepts it, or NotImplemented."""
    if intercepting or state.subclass_off or not is_overridden((left, right)):
        return NotImplemented
    with served((left, right)):
        return function(left, right, **more)
