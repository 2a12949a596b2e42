"""Tracing of Python code: a module or function is called with proxies."""
from __future__ import annotations

import builtins
import inspect
import math
import types
from contextlib import contextmanager
from functools import wraps
from typing import Any, Callable, Iterator

from .. import _interception
from .._tensor import Tensor
from ..errors import UnimplementedError
from ..nn.containers import Sequential
from ..nn.module import Module
from ..nn.parameter import Parameter
from ..utils._pytree import tree_leaves
from .graph import Graph
from .graph_module import GraphModule
from .node import Node, map_aggregate
from .proxy import Proxy, TracerBase

__all__ = ["PH", "Tracer", "is_fx_tracing", "symbolic_trace", "wrap"]

wrapped: list[tuple[dict[str, Any], str]] = []  # (globals of a module, name in it)
wrapped_functions: list[Any] = []
tracing = 0


class PHBase:
    """The class of PH, which stands for "a placeholder" among concrete_args."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


def is_fx_tracing() -> bool:
    """Returns whether a function is being traced."""
    return bool(tracing)


def wrap(fn_or_name: str | Callable[..., Any]) -> Any:
    """Makes a global function of the calling module a leaf: a call with proxies is recorded.

    fn_or_name: its name, as in wrap("len"), or the function, as a decorator. Returns the argument.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("wrap: must be the name of a global function, or the function")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame: Any = inspect.currentframe().f_back  # type: ignore[union-attr]
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    wrapped.append((frame.f_globals, name))
    if callable(fn_or_name):
        wrapped_functions.append(fn_or_name)
    return fn_or_name


def leaf_call(function: Any) -> Any:
    """Returns a function that records calls with proxies."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy((args, kwargs))
        if proxy is None:
            return function(*args, **kwargs)
        return proxy.tracer.create_proxy("call_function", function, args, kwargs)

    call.__wrapped_by_fx__ = True  # type: ignore[attr-defined]
    return call


def find_proxy(x: Any) -> Any:
    """Returns a proxy in an argument, or None."""
    found: list[Proxy] = []

    def note(item: Any) -> Any:
        if isinstance(item, Proxy):
            found.append(item)
        return item

    map_aggregate(x, note)
    return found[0] if found else None


class Patches:
    """Values of dicts and attributes that are replaced for a while."""

    def __init__(self) -> None:
        self.undo: list[Callable[[], None]] = []

    def replace(self, names: dict[str, Any], name: str, value: Any) -> None:
        if name in names:
            old = names[name]
            self.undo.append(lambda: names.__setitem__(name, old))
        else:
            self.undo.append(lambda: names.pop(name, None))
        names[name] = value

    def replace_attribute(self, owner: Any, name: str, value: Any) -> None:
        old = getattr(owner, name)
        self.undo.append(lambda: setattr(owner, name, old))
        setattr(owner, name, value)

    def end(self) -> None:
        for undo in reversed(self.undo):
            undo()


class Tracer(TracerBase):
    """Traces modules and functions.

    autowrap_modules: modules whose functions are leaves
    autowrap_functions: further functions that are
    param_shapes_constant: shapes and dtypes of parameters are constants of the graph
    A subclass decides by is_leaf_module which modules are calls in the graph.
    """

    def __init__(
        self,
        autowrap_modules: tuple[types.ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        self.autowrapped = list(autowrap_functions)
        for module in autowrap_modules:
            functions = (value for name, value in vars(module).items() if name[:1] != "_")
            self.autowrapped += [value for value in functions if callable(value)]
        self.autowrap_modules = autowrap_modules
        self.param_shapes_constant = param_shapes_constant
        self.tensor_attrs: list[tuple[Any, str]] = []
        self.root: Module = Module()

    # ---- what a subclass may change ----

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Returns whether a module is one call in the graph: those of tt.nn are, but Sequential."""
        place = type(m).__module__
        return (place + ".").startswith(("tt.nn.", "tt.ao.")) and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """Returns the dotted name of a submodule of the root."""
        for name, module in self.root.named_modules():
            if module is mod:
                return name
        raise NameError(f"module {type(mod).__name__} is not installed as a submodule")

    def call_module(
        self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Called for each call of a submodule: records it, or traces into it."""
        name = self.path_of_module(m)
        if self.is_leaf_module(m, name):
            return self.create_proxy("call_module", name, args, kwargs)
        return forward(*args, **kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """Called for each parameter or buffer that code reads."""
        if not self.param_shapes_constant or not isinstance(attr_val, Parameter):
            return attr_val
        name = self.name_of_tensor(attr_val)
        if name is None:
            return attr_val
        if name not in parameter_proxy_cache:
            made = self.graph.get_attr(name)
            from .proxy import ParameterProxy

            parameter_proxy_cache[name] = ParameterProxy(self, made, name, attr_val)
        return parameter_proxy_cache[name]

    def name_of_tensor(self, tensor: Any) -> str | None:
        """Returns the dotted name of a parameter, buffer or other tensor of the root, or None."""
        named: list[tuple[str, Any]] = list(self.root.named_parameters(remove_duplicate=False))
        named += self.root.named_buffers(remove_duplicate=False)
        for name, value in named:
            if value is tensor:
                return name
        return next((name for value, name in self.tensor_attrs if value is tensor), None)

    def create_arg(self, a: Any) -> Any:
        """Returns an argument as a node has it. Tensors become attributes of the root."""
        if isinstance(a, Tensor):
            return self.create_node("get_attr", self.kept(a, "_tensor_constant"), (), {})
        if isinstance(a, Module):
            for name, module in self.root.named_modules():
                if module is a:
                    return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    def kept(self, value: Any, prefix: str) -> str:
        """Returns the name of a tensor of the root; a new one becomes an attribute."""
        name = self.name_of_tensor(value)
        if name is None:
            number = 0
            while hasattr(self.root, f"{prefix}{number}"):
                number += 1
            name = f"{prefix}{number}"
            setattr(self.root, name, value)
            self.tensor_attrs.append((value, name))
        return name

    # ---- tracing ----

    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> Graph:
        """Returns the graph of a module or function.

        concrete_args: parameter name -> a value that is a constant of the graph, or PH: it is none
        """
        if isinstance(root, Module):
            self.root, function = root, type(root).forward
        else:
            self.root, function = Module(), root
        self.graph = Graph(tracer_cls=type(self))
        self.tensor_attrs = collected_tensors(self.root)
        with self._patched(function):
            called, args = self.create_args_for_root(
                function, isinstance(root, Module), concrete_args
            )
            result = self.create_arg(called(*args))
            self.create_node("output", "output", (result,), {})
        return self.graph

    def create_args_for_root(
        self,
        root_fn: Callable[..., Any],
        is_module: bool,
        concrete_args: dict[str, Any] | None = None,
    ) -> tuple[Callable[..., Any], list[Any]]:
        """Inserts the placeholders. Returns the function to call and its arguments."""
        code = inspect.unwrap(root_fn).__code__
        parameters = inspect.signature(root_fn).parameters
        given = {k: v for k, v in (concrete_args or {}).items() if v is not PH}
        for name, value in given.items():
            if any(leaf is PH for leaf in tree_leaves(value)):
                raise UnimplementedError(
                    f"fx.Tracer.trace: concrete_args has PH inside {name}: must be the whole value"
                )
        n = code.co_argcount + code.co_kwonlyargcount
        names = list(code.co_varnames[:n])
        args: list[Any] = []
        if is_module:
            args.append(self.root)
            del names[0]
        for name in names:
            default = parameters[name].default if name in parameters else inspect.Parameter.empty
            if name in given:
                args.append(self._specialized(name, given[name]))
            else:
                empty = default is inspect.Parameter.empty
                args.append(self._placeholder(name, () if empty else (default,)))
        stars = [
            star + name
            for star, flag in (("*", inspect.CO_VARARGS), ("**", inspect.CO_VARKEYWORDS))
            for name in starred(code, flag)
        ]
        args += [self._placeholder(name, ()) for name in stars]
        if stars or code.co_kwonlyargcount:
            return with_plain_parameters(root_fn, code, n + len(stars)), args
        return root_fn, args

    def _placeholder(self, name: str, default: tuple[Any, ...]) -> Proxy:
        return self.create_proxy("placeholder", name, default, {})

    def _specialized(self, name: str, value: Any) -> Any:
        """Inserts the placeholder of a constant argument, and a check of its value."""
        import tt

        out = self._placeholder(f"{name}_1", ())
        if isinstance(value, (bool, int, float, str)):
            text = f"{name} has been specialized to have value {value} but got another value"
            self.create_proxy("call_function", tt._assert, (out == value, text), {})
        return value

    @contextmanager
    def _patched(self, function: Any) -> Iterator[None]:
        """Makes calls of modules and leaf functions go through the tracer."""
        global tracing
        patches = Patches()
        original_call, original_getattr = Module.__call__, Module.__getattr__
        cache: dict[str, Any] = {}

        def call_module(mod: Module, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return original_call(mod, *args, **kwargs)

            return self.call_module(mod, forward, args, kwargs)

        def get_attribute(mod: Module, name: str) -> Any:
            return self.getattr(name, original_getattr(mod, name), cache)

        _interception.begin()
        tracing += 1
        try:
            patches.replace_attribute(Module, "__call__", call_module)
            patches.replace_attribute(Module, "__getattr__", get_attribute)
            self._patch_functions(patches, function)
            yield
        finally:
            patches.end()
            tracing -= 1
            _interception.end()

    def _patch_functions(self, patches: Patches, function: Any) -> None:
        for names, name in wrapped:
            original = names.get(name, getattr(builtins, name, None))
            if original is not None and not hasattr(original, "__wrapped_by_fx__"):
                patches.replace(names, name, leaf_call(original))
        leaves = self.autowrapped + wrapped_functions
        places = [vars(module) for module in self.autowrap_modules]
        places += [getattr(function, "__globals__", {})]
        places += [type(m).forward.__globals__ for m in self.root.modules() if has_globals(m)]
        done: list[Any] = []
        for names in places:
            if any(names is other for other in done):
                continue
            done.append(names)
            for name, value in list(names.items()):
                if callable(value) and any(value is leaf for leaf in leaves):
                    patches.replace(names, name, leaf_call(value))


def starred(code: types.CodeType, flag: int) -> list[str]:
    """Returns the name of the parameter *args or **kwargs, in a list, empty without it."""
    if not code.co_flags & flag:
        return []
    place = code.co_argcount + code.co_kwonlyargcount
    behind = flag == inspect.CO_VARKEYWORDS and code.co_flags & inspect.CO_VARARGS
    return [code.co_varnames[place + (1 if behind else 0)]]


def with_plain_parameters(function: Any, code: types.CodeType, n: int) -> Any:
    """Returns the function with n positional parameters in place of *args, **kwargs and those by
    keyword only: each is one proxy."""
    flags = code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    plain = code.replace(co_flags=flags, co_argcount=n, co_kwonlyargcount=0, co_posonlyargcount=0)
    inner = inspect.unwrap(function)
    return types.FunctionType(plain, inner.__globals__, code.co_name, None, inner.__closure__)


def has_globals(module: Module) -> bool:
    return hasattr(type(module).forward, "__globals__")


def collected_tensors(module: Any, prefix: str = "") -> list[tuple[Any, str]]:
    """Returns the tensors that are plain attributes of a module or of those inside."""
    found = [(v, prefix + k) for k, v in vars(module).items() if isinstance(v, Tensor)]
    for name, child in module.named_children():
        found += collected_tensors(child, f"{prefix}{name}.")
    return found


def symbolic_trace(
    root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None
) -> GraphModule:
    """Returns a GraphModule that computes what root does. root is called once, with proxies.

    concrete_args: parameter name -> a value that is a constant of the graph, such as a flag that
    decides
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
