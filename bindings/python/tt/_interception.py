"""__torch_function__: arguments and modes that take the place of functions.

A public function first looks at switch.users, which is 0 until a program needs interception: it
defines a subclass of Tensor with its own __torch_function__, enters a mode, or tt.fx traces. An
argument of any other class that has the method is found when the function does not take it.
Generated functions have these lines themselves; those that are written by hand have the decorator
overridable, and attributes of Tensor are intercepted by the subclasses that want it (see adopt).
"""
from __future__ import annotations

import numbers
import threading
import warnings
import weakref
from contextlib import contextmanager
from functools import update_wrapper
from importlib import import_module
from sys import exc_info
from types import FunctionType
from typing import Any, Callable, Iterable, Iterator, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])


class Switch:
    """users: how many classes, modes and tracers need interception."""

    __slots__ = ("users",)

    def __init__(self) -> None:
        self.users = 0


switch = Switch()
PLAIN: Any = object()  # what nothing intercepts: the function goes on


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


def is_off() -> bool:
    """Returns whether nothing intercepts in this thread now."""
    return bool(state.off or state.subclass_off and not state.modes)


def is_intercepted(given: Iterable[Any]) -> bool:
    """Returns whether a mode or an argument intercepts a call with these arguments."""
    return not is_off() and (bool(state.modes) or is_overridden(given))


def passed(function: FunctionType, values: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Returns the arguments of a running call, given its local variables, without those at the end
    that are the defaults."""
    code = function.__code__
    n, n_keywords = code.co_argcount, code.co_kwonlyargcount
    positional = [values[name] for name in code.co_varnames[:n]]
    names = code.co_varnames[n : n + n_keywords]
    keywords = {name: values[name] for name in names if name in values}  # an operator has no out
    if code.co_flags & 4:  # takes *args
        several = values[code.co_varnames[n + n_keywords]]
        positional += several
        if several:  # the first keyword is the list of them
            keywords.pop(names[0], None)
    defaults = function.__defaults__ or ()
    while len(positional) == n and defaults and positional[-1] is defaults[-1]:
        positional.pop()
        n, defaults = n - 1, defaults[:-1]
    usual = function.__kwdefaults__ or {}
    return positional, {k: v for k, v in keywords.items() if v is not usual.get(k)}


def intercepted(function: Any, values: dict[str, Any]) -> Any:
    """Returns the result of what intercepts the running call of a function, or PLAIN.

    values: the local variables of the call before its first statement.
    """
    if is_off():
        return PLAIN
    args, kwargs = passed(function, values)
    given = (*args, *kwargs.values())
    if not is_intercepted(given):
        return PLAIN
    return handle(function, overloaded(given), tuple(args), kwargs)


# NumPy's names of operands, and of the other arguments that functions written by hand share
ALIASES = {
    "x": "input",
    "x1": "input",
    "a": "input",
    "x2": "other",
    "axis0": "dim0",  # of swapaxes
    "axis1": "dim1",
}
# Arguments that PyTorch takes as 0-dim tensors, too, whatever the others are
INTS = ("dim", "axis", "sections", "indices_or_sections", "split_size_or_sections")
ALL_ALIASES = {
    **ALIASES,
    "A": "input",  # of torch.linalg's documentation, not of its functions
    "axis": "dim",
    "keepdims": "keepdim",
}


class Required:
    """The default of an argument that must be given, by its own name or by an alias."""

    def __repr__(self) -> str:
        return "<required>"


REQUIRED: Any = Required()


def renamed(function: Any, values: dict[str, Any]) -> Any:
    """Returns the result of a call whose operands are given by names of NumPy's.

    values: the local variables of the call before its first statement; `aliases` holds the keywords
      that are no parameters.
    """
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    defaults = dict(zip(reversed(names), reversed(function.__defaults__)))
    given = {name: values[name] for name in names}
    given |= passed(function, values)[1]
    for alias, operand in values["aliases"].items():
        name = ALIASES.get(alias)
        if name not in given:
            raise TypeError(f"{function.__name__}() got an unexpected keyword argument {alias!r}")
        if given[name] is not defaults.get(name, REQUIRED):
            raise TypeError(f"{function.__name__}() got {name!r} twice, once as {alias!r}")
        given[name] = operand
    return function(**given)


def factors_first(function: Any, values: dict[str, Any], names: tuple[str, ...]) -> Any:
    """Returns the result of a call in PyTorch's deprecated form, in which factors are given by
    position: add_(alpha, other), addmm(beta, input, alpha, mat1, mat2).

    values: the local variables of the call before its first statement; names: the factors, of which
      the last ones may be left out.
    """
    code = function.__code__
    operands = code.co_varnames[: code.co_argcount]
    given = [*(values[name] for name in operands), *values["deprecated"]]
    if names == ("alpha",) and len(given) == 3 and values["alpha"] == 1:
        is_last = not isinstance(given[2], Tensor) or isinstance(given[1], Tensor)
        if is_last:  # add(input, other, alpha)
            return function(*given[:2], alpha=given[2])
    factors = [x for x in given if isinstance(x, numbers.Number)]
    tensors = [x for x in given if not isinstance(x, numbers.Number)]
    name = function.__name__
    if len(tensors) != len(operands) or len(factors) > len(names):
        raise TypeError(
            f"{name}() takes {len(operands)} tensors and, by keyword, {', '.join(names)}"
        )
    by_name = dict(zip(names, factors))
    usual = function.__kwdefaults__
    keywords = {k: values[k] for k in usual if k in values and values[k] is not usual[k]}
    twice = by_name.keys() & keywords.keys()
    if twice:
        raise TypeError(f"{name}() got multiple values for argument {twice.pop()!r}")
    warnings.warn(
        f"This overload of {name} is deprecated: give {' and '.join(by_name)} by keyword",
        stacklevel=3,
    )
    return function(*tensors, **by_name, **keywords)


def unaliased(function: Any, aliases: dict[str, str], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Returns keyword arguments by the function's own names."""
    found: dict[str, Any] = {}
    for key, value in kwargs.items():
        name = aliases.get(key, key)
        if name in found:
            raise TypeError(f"{function.__name__}() got {name!r} twice, once as {key!r}")
        found[name] = value
    return found


def retried(function: Any, values: dict[str, Any]) -> Any:
    """Returns what intercepts a call that has failed by a TypeError, or the result with 0-dim
    tensors as numbers or bounds as tensors; raises the error without either, or one that names the
    arguments that are missing."""
    found = PLAIN if switch.users else intercepted(function, values)
    if found is PLAIN:
        missing = [repr(name) for name, value in values.items() if value is REQUIRED]
        if missing:
            s = "s" if len(missing) > 1 else ""
            raise TypeError(
                f"{function.__name__}() missing {len(missing)} required positional argument{s}: "
                + " and ".join(missing)
            ) from None
        changed = with_numbers(function, values) or with_bounds(function, values)
        if changed:
            return function(**changed)
        raise  # noqa: PLE0704  (the caller handles the TypeError)
    return found


def with_numbers(function: Any, values: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a call with 0-dim tensors beside numbers as numbers, for which
    PyTorch takes them, too, as in x.clamp(0, x.max()), and with defaults in place of None; {}
    without such."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    beside = any(type(values[name]) in (int, float) for name in names)
    found = {
        name: values[name].item()
        for name in names[1:]
        if name != "out"
        and isinstance(values[name], Tensor)
        and not (values[name].ndim or values[name].requires_grad)
        and (beside or name in INTS)
    }
    defaults = function.__kwdefaults__ or {}
    found |= {
        name: default
        for name, default in defaults.items()
        if values[name] is None and default is not None and default is not REQUIRED
    }
    return {**{name: values[name] for name in names}, **found} if found else {}


def with_bounds(function: Any, values: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments of a call with int bounds of a uint64 tensor as tensors, for one that
    has failed because a bound fits only uint64; {} for others. A negative lower bound is 0."""
    from ._convert import WideBoundError, uint64_tensor

    if not isinstance(exc_info()[1], WideBoundError):
        return {}
    bounds = {name: values[name] for name in ("min", "max") if values[name] is not None}
    if "min" in bounds and type(bounds["min"]) is int:
        bounds["min"] = max(bounds["min"], 0)
    if any(type(bound) is not int or not 0 <= bound < 2**64 for bound in bounds.values()):
        return {}
    out = values.get("out")
    if out is not None and out.dtype.name != "uint64":
        return {}
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    tensors = {name: uint64_tensor(bound) for name, bound in bounds.items()}
    return {**{name: values[name] for name in names}, **tensors}


def with_bool(function: Any, values: dict[str, Any], name: str) -> Any:
    """Returns the result with a uint8 mask as a bool one, for a call that has failed because of it;
    raises the error of others."""
    mask = values[name]
    if mask.dtype.name != "uint8":
        raise  # noqa: PLE0704  (the caller handles the DtypeError)
    warnings.warn(
        f"{function.__name__} received a uint8 {name} tensor. This behavior is deprecated and will "
        f"be removed in a future version of PyTorch. Use a boolean {name} instead.",
        stacklevel=3,
    )
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return function(**{**{key: values[key] for key in names}, name: mask.bool()})


def intercepted_operator(public: Any, *operands: Any) -> Any:
    """Returns the result of what intercepts a Python operator, NotImplemented if that refuses, so
    that Python asks the other operand, or PLAIN.

    public: the method of Tensor that __torch_function__ gets.
    """
    if not is_intercepted(operands):
        return PLAIN
    try:
        return handle(public, overloaded(operands), operands, {})
    except TypeError:
        return NotImplemented


def unknown_operand(public: Any, self: Any, other: Any) -> Any:
    """Returns what a Python operator does with an operand that it does not take."""
    found = PLAIN if switch.users else intercepted_operator(public, self, other)
    return NotImplemented if found is PLAIN else found


def overridable(function: F) -> F:
    """Makes a function that is written by hand call what intercepts it, and take NumPy's names of
    its arguments."""
    code = function.__code__
    own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    aliases = {k: v for k, v in ALL_ALIASES.items() if v in own and k not in own}

    def call(*args: Any, **kwargs: Any) -> Any:
        asks = switch.users
        if kwargs and not aliases.keys().isdisjoint(kwargs):
            kwargs = unaliased(function, aliases, kwargs)
        for x in (*args, *kwargs.values()) if kwargs else args:
            if type(x) not in COMMON:
                asks = True
        if asks:
            given = (*args, *kwargs.values())
            if is_intercepted(given):
                return handle(call, overloaded(given), args, kwargs)
        return function(*args, **kwargs)

    update_wrapper(call, function)
    overridable_functions.add(call)
    return call  # type: ignore[return-value]


overridable_functions: set[Any] = set()


# ---- attributes of subclasses ----


def dispatching(public: Any, plain: Callable[..., Any]) -> Callable[..., Any]:
    """Returns plain, or what intercepts it."""

    def call(*args: Any, **kwargs: Any) -> Any:
        given = (*args, *kwargs.values())
        if is_intercepted(given):
            return handle(public, overloaded(given), args, kwargs)
        return plain(*args, **kwargs)

    return update_wrapper(call, plain)


def dispatching_property(attribute: property) -> property:
    def part(name: str, plain: Any) -> Any:
        return plain and dispatching(getattr(attribute, name), plain)

    return property(
        part("__get__", attribute.fget),
        part("__set__", attribute.fset),
        part("__delete__", attribute.fdel),
        attribute.__doc__,
    )


def adopt(cls: type[Tensor]) -> None:
    """Prepares a subclass of Tensor with a __torch_function__ of its own: it gets attributes that
    call it, where those of Tensor do not by themselves."""
    cls._keeps_class = False
    if not overrides(cls):
        return
    for name, attribute in tensor_attributes():
        if getattr(cls, name, None) is not attribute or attribute in overridable_functions:
            continue  # redefined by the subclass, or asks by itself
        if isinstance(attribute, property):
            setattr(cls, name, dispatching_property(attribute))
        elif isinstance(attribute, FunctionType) and not asks_by_itself(attribute):
            setattr(cls, name, dispatching(attribute, attribute))
    begin()
    weakref.finalize(cls, end).atexit = False


def asks_by_itself(function: FunctionType) -> bool:
    """Returns whether a method looks at the switch, as generated ones do."""
    generated = function.__module__ in ("tt._ops.methods", "tt._arithmetic")
    return generated or function.__name__ in ("__getitem__", "__setitem__")


# ---- the public functions ----


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
# Methods of Python's operators for which __torch_function__ gets another method
SHARED = set(
    "__add__ __radd__ __iadd__ __sub__ __isub__ __mul__ __rmul__ __imul__ __truediv__ __itruediv__ "
    "__mod__ __imod__ __pow__ __ipow__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __matmul__ "
    "__neg__ __abs__ __invert__ __pos__".split()
)

names: dict[Any, str] = {}  # public function -> its name
of_tensor: set[Any] = set()  # those of Tensor
lock = threading.RLock()


def public_functions() -> Iterator[tuple[str, FunctionType]]:
    """Yields the functions of the namespaces with their names."""
    for namespace in NAMESPACES:
        module = import_module(namespace)
        for name in dir(module):
            private = name.startswith("_") and name != "_assert"
            if private or name in IGNORED_FUNCTIONS:
                continue
            function = getattr(module, name, None)
            if not isinstance(function, FunctionType):
                continue
            if function.__module__.startswith("tt._ops.") or function in overridable_functions:
                yield f"{namespace}.{name}", function


def tensor_attributes() -> Iterator[tuple[str, Any]]:
    """Yields what Tensor has, from its own class to its bases."""
    from ._tensor import Tensor

    for cls in Tensor.__mro__[:-1]:
        for name, attribute in vars(cls).items():
            private = name.startswith("_") and not name.startswith("__")
            if not private and name not in IGNORED_ATTRIBUTES:
                yield name, attribute


def enter_method(name: str, attribute: Any) -> None:
    if isinstance(attribute, property):
        for part in ("__get__", "__set__", "__delete__"):
            public = getattr(attribute, part)
            names.setdefault(public, f"tt.Tensor.{name}.{part}")
            of_tensor.add(public)
    elif isinstance(attribute, FunctionType) and name not in SHARED:
        names.setdefault(attribute, f"tt.Tensor.{name}")
        of_tensor.add(attribute)


def ensure_built() -> None:
    """Fills the table of public functions."""
    with lock:
        if names:
            return
        for name, function in public_functions():
            names.setdefault(function, name)
        for name, attribute in tensor_attributes():
            enter_method(name, attribute)


def begin() -> None:
    """Makes the public functions ask what intercepts them, until end() was called as often."""
    with lock:
        switch.users += 1


def end() -> None:
    with lock:
        switch.users -= 1
