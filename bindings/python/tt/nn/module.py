"""Module: the base class of layers and models, as torch.nn.Module."""
from __future__ import annotations

import copy
import warnings
from collections import OrderedDict
from itertools import count
from typing import Any, Callable, Iterator, Mapping, NamedTuple, Sequence

from .._class_name import class_name
from .. import _types
from .._hints import Self
from .._tensor import Tensor, to_arguments
from .._types import device as Device
from .._types import dtype as DType
from ..autograd import no_grad
from ._backward import Watch
from .parameter import Buffer, Parameter, is_lazy

TYPE_CHECKING = False

Found = tuple["Module", str, Any, Any]  # module, name, value in the state dict, former value

hook_numbers = count(1)
# What each call of a module runs: block(module), a context manager that encloses it (a profile's),
# and the hooks of all modules
enclosing: list[Callable[[Module], Any] | GlobalHook] = []
# one object, another whenever an attribute, parameter, buffer or child of a module is set
modes: list[object] = [None]


class RemovableHandle:
    """The handle of a registered hook. remove() unregisters it, as does the end of a with block.

    hooks_dict: the hooks by the id of their handles. The caller adds the hook.
    extra_dict: a dict, or a list of dicts, that may have entries for the same id.
    """

    def __init__(
        self,
        hooks_dict: dict[int, Any],
        *,
        extra_dict: dict[int, Any] | Sequence[dict[int, Any]] | None = None,
    ) -> None:
        extra = [extra_dict] if isinstance(extra_dict, dict) else extra_dict or []
        self.id = next(hook_numbers)
        self.dicts = [hooks_dict, *extra]
        modes[0] = object()

    def remove(self) -> None:
        for entries in self.dicts:
            entries.pop(self.id, None)
        modes[0] = object()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def hook_handle(
    hooks: OrderedDict[int, Any], hook: Any, prepend: bool, flags: Sequence[dict[int, Any]]
) -> RemovableHandle:
    """Registers a hook. flags: the dicts of ids of hooks with a property that this one has."""
    handle = RemovableHandle(hooks, extra_dict=flags)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    for ids in flags:
        ids[handle.id] = True
    return handle


class GlobalHook:
    """A hook of all modules, and its handle: kind is the name of the modules' group of hooks."""

    def __init__(
        self, kind: str, hook: Any, with_kwargs: bool = False, always_call: bool = False
    ) -> None:
        self.kind, self.row = kind, (hook, with_kwargs, always_call)
        enclosing.append(self)

    def remove(self) -> None:
        if self in enclosing:
            enclosing.remove(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


# kind of what modules register -> the hooks of all modules that see it, by the ids of their handles
registration_hooks: dict[str, OrderedDict[int, Any]] = {
    "parameter": OrderedDict(),
    "buffer": OrderedDict(),
    "module": OrderedDict(),
}


def hooked(kind: str, module: Module, name: str, value: Any) -> Any:
    """Returns what a module registers: value, or what hooks of all modules put in its place."""
    for hook in registration_hooks[kind].values():
        replaced = hook(module, name, value)
        if replaced is not None:
            value = replaced
    return value


class IncompatibleKeys(NamedTuple):
    """The result of load_state_dict.

    missing_keys: the module's names that the state dict lacks. unexpected_keys: the state dict's
    names that the module lacks.
    """

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if self == ([], []):
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self[0]}, unexpected_keys={self[1]})"


IncompatibleKeys.__name__ = "_IncompatibleKeys"

GROUPS = ("_parameters", "_buffers", "_modules")
HOOK_FLAGS = (
    "_forward_pre_hooks_with_kwargs",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
)
EXTRA = "_extra_state"  # last part of the name of get_extra_state() in a state dict


def has_extra(module: Module) -> bool:
    return type(module).get_extra_state is not Module.get_extra_state


def joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


class Module:
    """The base class of layers and models.

    A subclass defines forward(). Parameters, buffers and modules are registered when they are
    assigned to attributes, after super().__init__().
    """

    training: bool = True
    call_super_init: bool = False  # whether __init__ calls that of the next base class
    dump_patches: bool = False
    _version: int = 1  # of the state dict: local_metadata of hooks has it
    if TYPE_CHECKING:  # typing.get_type_hints of a subclass finds no name that is not imported
        _parameters: dict[str, Parameter | None]
        _buffers: dict[str, Tensor | None]
        _modules: dict[str, Module | None]
        _non_persistent: set[str]
        _forward_pre_hooks: OrderedDict[int, Any]
        _forward_pre_hooks_with_kwargs: dict[int, bool]  # has the ids of hooks that take kwargs
        _forward_hooks: OrderedDict[int, Any]
        _forward_hooks_with_kwargs: dict[int, bool]
        _forward_hooks_always_called: dict[int, bool]
        _backward_pre_hooks: OrderedDict[int, Any]
        _backward_hooks: OrderedDict[int, Any]
        _state_hooks: dict[str, OrderedDict[int, Any]]  # those of state dicts by kind

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if (args or kwargs) and not self.call_super_init:
            extra = f"keyword argument {next(iter(kwargs))!r}" if kwargs else "arguments"
            raise TypeError(f"{type(self).__name__}: Module.__init__() got unexpected {extra}")
        state = self.__dict__
        state["training"] = True  # an attribute that programs may delete
        state["_parameters"], state["_buffers"], state["_modules"] = {}, {}, {}
        state["_non_persistent"] = set()
        state["_forward_pre_hooks"], state["_forward_hooks"] = OrderedDict(), OrderedDict()
        state["_forward_pre_hooks_with_kwargs"] = {}
        state["_forward_hooks_with_kwargs"], state["_forward_hooks_always_called"] = {}, {}
        state["_backward_pre_hooks"], state["_backward_hooks"] = OrderedDict(), OrderedDict()
        state["_state_hooks"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    # ---- registration ----

    def _check_name(self, name: str, kind: str) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"cannot assign a {kind} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"a {kind}'s name must be str, not {type(name).__name__}")
        if not name or "." in name:
            raise KeyError(f"a {kind}'s name must not be empty or contain a dot: {name!r}")

    def _check_kind(self, name: str, value: Any, kind: Any, what: str) -> None:
        """Raises TypeError unless value is None or of this class. A buffer may be sparse, too."""
        allowed = value is None or isinstance(value, kind) or what == "buffer" and is_sparse(value)
        if not allowed:
            raise TypeError(
                f"cannot assign '{class_name(value)}' as {what} '{name}': "
                f"{kind.__name__} or None required"
            )

    def _check_free(self, name: str, group: Mapping[str, Any]) -> None:
        if hasattr(self, name) and name not in group:
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter as the attribute `name`. None registers the name without a parameter."""
        self._check_name(name, "parameter")
        self._check_free(name, self._parameters)
        self._check_kind(name, param, Parameter, "parameter")
        if param is not None:
            param = hooked("parameter", self, name, param)
        self._parameters[name] = param
        modes[0] = object()

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a buffer, a tensor that is no parameter, as the attribute `name`.

        persistent: whether state_dict() contains it.
        """
        self._check_name(name, "buffer")
        self._check_free(name, self._buffers)
        self._check_kind(name, tensor, Tensor, "buffer")
        self._buffers[name] = hooked("buffer", self, name, tensor)
        self._set_persistent(name, persistent)
        modes[0] = object()

    def _set_persistent(self, name: str, persistent: bool) -> None:
        if persistent:
            self._non_persistent.discard(name)
        else:
            self._non_persistent.add(name)

    def register_module(self, name: str, module: Module | None) -> None:
        """Adds a child module as the attribute `name`."""
        self._check_name(name, "module")
        self._check_free(name, self._modules)
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{class_name(module)} is not a Module")
        self._modules[name] = hooked("module", self, name, module)
        modes[0] = object()

    add_module = register_module

    def _register_again(self) -> None:
        """Calls what a program has put in place of register_parameter and register_buffer, and the
        hooks of all modules."""
        if is_replaced("register_parameter") or registration_hooks["parameter"]:
            for name, p in list(self._parameters.items()):
                Module.register_parameter(self, name, p)
        if is_replaced("register_buffer") or registration_hooks["buffer"]:
            for name, t in list(self._buffers.items()):
                Module.register_buffer(self, name, t, name not in self._non_persistent)
        if registration_hooks["module"]:
            for name, m in list(self._modules.items()):
                Module.register_module(self, name, m)

    def __setattr__(self, name: str, value: Any) -> None:
        groups = self.__dict__
        if isinstance(value, Parameter):
            self._check_name(name, "parameter")
            self._forget(name, "_parameters")
            if is_replaced("register_parameter"):
                Module.register_parameter(self, name, value)
            else:
                self._parameters[name] = hooked("parameter", self, name, value)
        elif isinstance(value, Module):
            self._check_name(name, "module")
            self._forget(name, "_modules")
            self._modules[name] = hooked("module", self, name, value)
        elif isinstance(value, Buffer):
            self._check_name(name, "buffer")
            self._forget(name, "_buffers")
            self._buffers[name] = hooked("buffer", self, name, value)
            self._set_persistent(name, value.persistent)
        elif name in groups.get("_parameters", ()):
            self._check_kind(name, value, Parameter, "parameter")
            self._parameters[name] = None
        elif name in groups.get("_modules", ()):
            self._check_kind(name, value, Module, "child module")
            self._modules[name] = hooked("module", self, name, None)
        elif name in groups.get("_buffers", ()):
            self._check_kind(name, value, Tensor, "buffer")
            self._buffers[name] = hooked("buffer", self, name, value)
        else:
            object.__setattr__(self, name, value)
        modes[0] = object()

    def _forget(self, name: str, but: str) -> None:
        """Removes the attribute from all other groups."""
        self.__dict__.pop(name, None)
        for group in GROUPS:
            if group != but:
                self.__dict__[group].pop(name, None)

    def __getattr__(self, name: str) -> Any:
        state = self.__dict__
        for group in GROUPS:
            if group in state and name in state[group]:
                return state[group][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        for group in GROUPS:
            if name in self.__dict__.get(group, ()):
                del self.__dict__[group][name]
                break
        else:
            object.__delattr__(self, name)
        modes[0] = object()

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._parameters, *self._buffers, *self._modules]

    # ---- calls ----

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Computes the result; a subclass defines it. Call the module itself, which also runs
        hooks."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not (
            self._forward_pre_hooks
            or self._forward_hooks
            or self._backward_pre_hooks
            or self._backward_hooks
            or enclosing
        ):
            return self.forward(*args, **kwargs)
        blocks = [block for block in enclosing if not isinstance(block, GlobalHook)]
        if not blocks:
            return self._call_with_hooks(args, kwargs)
        from contextlib import ExitStack

        with ExitStack() as stack:
            for block in blocks:
                stack.enter_context(block(self))
            return self._call_with_hooks(args, kwargs)

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        return Module.__call__(self, *args, **kwargs)

    _wrapped_call_impl = _call_impl

    def _hooks(self, kind: str) -> list[tuple[Any, bool, bool]]:
        """Returns (hook, whether it takes kwargs, whether it is always called) of the hooks of a
        group: first those of all modules."""
        rows = [e.row for e in enclosing if isinstance(e, GlobalHook) and e.kind == kind]
        own = self.__dict__[kind]
        if not own:
            return rows
        with_kwargs = self.__dict__.get(kind + "_with_kwargs", ())
        always_called = self.__dict__.get(kind + "_always_called", ())
        for number, hook in own.items():
            rows.append((hook, number in with_kwargs, number in always_called))
        return rows

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        waiting = self._hooks("_forward_hooks")
        try:
            return self._call_with(waiting, args, kwargs)
        except BaseException:
            for hook, with_kwargs, always_call in waiting:
                if always_call:
                    run_after_failure(hook, self, args, kwargs if with_kwargs else None)
            raise

    def _call_with(self, waiting: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls forward between the hooks. waiting: forward hooks; those that have run are
        removed."""
        for hook, with_kwargs, _ in self._hooks("_forward_pre_hooks"):
            changed = hook(self, args, kwargs) if with_kwargs else hook(self, args)
            if changed is None:
                continue
            if not with_kwargs:
                args = changed if isinstance(changed, tuple) else (changed,)
            elif isinstance(changed, tuple) and len(changed) == 2:
                args, kwargs = changed
            else:
                raise RuntimeError(
                    "forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
                    f"but got {changed}"
                )
        watch = None
        backward, before = self._hooks("_backward_hooks"), self._hooks("_backward_pre_hooks")
        if backward or before:
            watch = Watch(self, [row[0] for row in backward], [row[0] for row in before])
            args = watch.inputs(args)
        out = self.forward(*args, **kwargs)
        while waiting:
            hook, with_kwargs, _ = waiting.pop(0)
            changed = hook(self, args, kwargs, out) if with_kwargs else hook(self, args, out)
            out = out if changed is None else changed
        return out if watch is None else watch.results(out)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Replaces forward by tt.compile(forward). args, kwargs: those of tt.compile but model."""
        from ..compiler import compile

        forward = self.__dict__.get("forward", self.forward)
        object.__setattr__(self, "forward", compile(forward, *args, **kwargs))

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Calls hook(module, args) before forward. A result other than None replaces the arguments.

        with_kwargs: calls hook(module, args, kwargs), which may return (args, kwargs).
        prepend: runs before the hooks that are registered already.
        """
        flags = [self._forward_pre_hooks_with_kwargs] if with_kwargs else []
        return hook_handle(self._forward_pre_hooks, hook, prepend, flags)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Calls hook(module, args, output) after forward. A result other than None replaces the
        output.

        with_kwargs: calls hook(module, args, kwargs, output).
        prepend: runs before the hooks that are registered already.
        always_call: calls hook also if forward or a hook raises, with None as output.
        """
        flags = [self._forward_hooks_with_kwargs] if with_kwargs else []
        if always_call:
            flags.append(self._forward_hooks_always_called)
        return hook_handle(self._forward_hooks, hook, prepend, flags)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls hook(module, grad_output) in backward. A result other than None replaces
        grad_output."""
        return hook_handle(self._backward_pre_hooks, hook, prepend, [])

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls hook(module, grad_input, grad_output) in backward.

        A result other than None replaces the gradients of the inputs. The gradients are tuples,
        with None for arguments that are no tensors and for results without a gradient.
        """
        return hook_handle(self._backward_hooks, hook, prepend, [])

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls register_full_backward_hook. Deprecated."""
        return self.register_full_backward_hook(hook)

    # ---- the tree ----

    def children(self) -> Iterator[Module]:
        """Yields the direct children, each once."""
        return (m for _, m in self.named_children())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Yields (name, module) of the direct children, each module once."""
        seen = set()
        for name, m in self._modules.items():
            if m is not None and id(m) not in seen:
                seen.add(id(m))
                yield name, m

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Yields self and all modules below it, each once.

        remove_duplicate: False: yields a module once for each of its names.
        """
        return (m for _, m in self.named_modules(remove_duplicate=remove_duplicate))

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Yields (dotted name, module) of self and all modules below it.

        memo: modules to leave out; the yielded modules are added.
        remove_duplicate: yields a module that has several names once.
        """
        seen = {id(m) for m in memo or ()}
        todo = [(prefix, self)]
        while todo:
            path, m = todo.pop()
            if remove_duplicate and id(m) in seen:
                continue
            seen.add(id(m))
            if memo is not None and remove_duplicate:
                memo.add(m)
            yield path, m
            for name, child in reversed(m._modules.items()):
                if child is not None:
                    todo.append((joined(path, name), child))

    def _tree(
        self, method: str, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module, bool]]:
        """Yields self and all modules below it: (prefix of its names, module, whether its class
        overrides `method`, which has to be called then).

        Modules below an override are left to it. The override of self, if any, has called this.
        """
        seen: set[int] = set()
        todo = [(prefix, self)]
        while todo:
            path, m = todo.pop()
            if remove_duplicate and id(m) in seen:
                continue
            seen.add(id(m))
            own = m is not self and getattr(type(m), method) is not getattr(Module, method)
            yield path, m, own
            if own:
                continue
            for name, child in reversed(m._modules.items()):
                if child is not None:
                    todo.append((f"{path}{name}.", child))

    def _named(
        self, group: str, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        """Yields the members of a group ("_parameters" or "_buffers") by dotted names."""
        modules: Any = [(prefix, self)]
        if recurse:
            modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        seen = set()
        for path, m in modules:
            for name, t in m.__dict__[group].items():
                if t is None or remove_duplicate and id(t) in seen:
                    continue
                seen.add(id(t))
                yield joined(path, name), t

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yields (dotted name, parameter). recurse: includes those of all modules below."""
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yields the parameters, each once. recurse: includes those of all modules below."""
        return (p for _, p in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yields (dotted name, buffer). recurse: includes those of all modules below."""
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yields the buffers, each once. recurse: includes those of all modules below."""
        return (b for _, b in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> Module:
        """Returns the module with a dotted name; "" is self. Raises AttributeError if there is
        none."""
        m = self
        for name in target.split(".") if target else ():
            child = m._modules.get(name)
            if child is None:
                raise AttributeError(f"{type(m).__name__} has no submodule '{name}'")
            m = child
        return m

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Replaces the module with a dotted name, or adds one.

        strict: raises AttributeError if there is none with this name.
        """
        if not target:
            raise ValueError("set_submodule: target is empty: it must name a module below self")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{type(parent).__name__} has no submodule '{name}'")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"'{name}' of {type(parent).__name__} is not a Module")
        if not isinstance(module, Module):
            raise ValueError(f"set_submodule: module is {class_name(module)}: must be a Module")
        setattr(parent, name, module)

    def _get(self, group: str, target: str) -> Any:
        path, _, name = target.rpartition(".")
        members = self.get_submodule(path).__dict__[group]
        if name not in members:
            raise AttributeError(f"no '{target}' in {type(self).__name__}")
        return members[name]

    def get_parameter(self, target: str) -> Parameter:
        """Returns the parameter with a dotted name. Raises AttributeError if there is none."""
        return self._get("_parameters", target)

    def get_buffer(self, target: str) -> Tensor:
        """Returns the buffer with a dotted name. Raises AttributeError if there is none."""
        return self._get("_buffers", target)

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Calls fn on every module below self, then on self. Returns self."""
        for m in self.children():
            m.apply(fn)
        fn(self)
        return self

    # ---- state ----

    def state_dict(
        self,
        *args: Any,
        destination: dict[str, Any] | None = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> dict[str, Any]:
        """Returns parameters and persistent buffers by dotted names. They share the module's
        memory.

        destination: the dict to fill. prefix: prepended to every name.
        keep_vars: returns the parameters and buffers themselves instead of detached tensors.
        args: these three by position. Deprecated.
        """
        if args:
            if len(args) > 3:
                raise TypeError(f"state_dict takes 3 arguments by position, not {len(args)}")
            destination = args[0]
            prefix = args[1] if len(args) > 1 else prefix
            keep_vars = args[2] if len(args) > 2 else keep_vars
        out: Any = destination
        if out is None:
            out = OrderedDict()
            out._metadata = OrderedDict()  # version of each module, as in PyTorch's files
        metadata = getattr(out, "_metadata", {})
        visited = []
        for path, m, own in self._tree("state_dict", prefix, remove_duplicate=False):
            if own:
                m.state_dict(destination=out, prefix=path, keep_vars=keep_vars)
                continue
            local_metadata = metadata[path[:-1]] = {"version": m._version}
            visited.append((path, m, local_metadata))
            for hook in m._state_hooks_of("save_pre"):
                hook(m, path, keep_vars)
            m._save_to_state_dict(out, path, keep_vars)
        for path, m, local_metadata in reversed(visited):
            out = m._run_save_hooks(out, path, local_metadata)
        return out

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        """Adds the module's own state to destination, by names with a prefix. A subclass may extend
        this."""
        for name, t in self._members().items():
            destination[prefix + name] = t if keep_vars or name == EXTRA else t.detach()

    def _run_save_hooks(self, out: Any, prefix: str, local_metadata: dict[str, Any]) -> Any:
        """Calls the hooks at the end of state_dict. Returns the state dict, which those of
        _register_state_dict_hook may replace."""
        replacing: dict[int, bool] = self._state_hooks.get("save_replace", {})
        for number, hook in list(self._state_hooks.get("save_post", {}).items()):
            replaced = hook(self, out, prefix, local_metadata)
            if replaced is None:
                continue
            if number not in replacing:
                raise RuntimeError("state_dict post-hook must return None")
            out = replaced
        return out

    def _members(self) -> dict[str, Any]:
        """Returns the module's own parameters, persistent buffers and extra state by name."""
        kept = {name: b for name, b in self._buffers.items() if name not in self._non_persistent}
        tensors = (*self._parameters.items(), *kept.items())
        members: dict[str, Any] = {name: t for name, t in tensors if t is not None}
        if has_extra(self):
            members[EXTRA] = self.get_extra_state()
        return members

    def _state_hooks_of(self, kind: str) -> list[Any]:
        return list(self._state_hooks.get(kind, {}).values())

    def _add_state_hook(self, kind: str, hook: Callable[..., Any]) -> RemovableHandle:
        return hook_handle(self._state_hooks_by_number(kind), hook, False, [])

    def _state_hooks_by_number(self, kind: str) -> OrderedDict[int, Any]:
        return self._state_hooks.setdefault(kind, OrderedDict())

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls hook(module, prefix, keep_vars) before state_dict reads the module."""
        return self._add_state_hook("save_pre", hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls hook(module, state_dict, prefix, local_metadata) at the end of state_dict. The hook
        may change state_dict. local_metadata["version"] is the module's _version."""
        return self._add_state_hook("save_post", hook)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls hook as register_state_dict_post_hook does; a result other than None replaces
        state_dict."""
        flags = [self._state_hooks_by_number("save_replace")]
        return hook_handle(self._state_hooks_by_number("save_post"), hook, False, flags)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs) before load_state_dict reads state_dict. The hook may change
        state_dict, which is a copy, and add to the three lists."""
        return self._add_state_hook("load_pre", hook)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        """Calls register_load_state_dict_pre_hook; without with_module, hook does not receive the
        module."""
        if with_module:
            return self.register_load_state_dict_pre_hook(hook)
        return self.register_load_state_dict_pre_hook(lambda _, *args: hook(*args))

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls hook(module, keys) after load_state_dict has copied the values.

        keys: the result of load_state_dict. The hook may remove names that are no errors.
        """
        return self._add_state_hook("load_post", hook)

    @property
    def _non_persistent_buffers_set(self) -> set[str]:
        """The names of buffers that are in no state dict, by PyTorch's name."""
        return self._non_persistent

    def get_extra_state(self) -> Any:
        """Returns extra state for state_dict(). A subclass defines this and set_extra_state."""
        raise RuntimeError(f"{type(self).__name__} has no get_extra_state")

    def set_extra_state(self, state: Any) -> None:
        """Restores the result of get_extra_state()."""
        raise RuntimeError(f"{type(self).__name__} has no set_extra_state")

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copies the values of a state dict into parameters and buffers.

        strict: missing and unexpected names are errors.
        assign: makes the state dict's tensors the module's parameters and buffers, without a copy.
        Raises RuntimeError, and changes nothing, if names or shapes do not match. Modules that
        override _load_from_state_dict load their own state as they please.
        """
        if not hasattr(state_dict, "keys"):
            raise TypeError(f"state_dict must be a dict, not {type(state_dict).__name__}")
        metadata = getattr(state_dict, "_metadata", None) or {}
        state_dict = OrderedDict(state_dict)
        keys = IncompatibleKeys([], [])
        wrong: list[str] = []
        known: set[str] = set()
        found: list[Found] = []
        modules = []
        lists = (True, *keys, wrong)
        for path, m in self.named_modules(remove_duplicate=False):
            prefix = path and path + "."
            local_metadata = dict(metadata.get(path, {}))
            if assign:
                local_metadata["assign_to_params_buffers"] = True
            modules.append(m)
            if loads_itself(m):
                m._load_from_state_dict(state_dict, prefix, local_metadata, *lists)
            else:
                found += m._find_in(state_dict, prefix, local_metadata, known, *lists)
        keys.unexpected_keys.extend(
            name for name in state_dict if name not in known and not loads_itself(self._owner(name))
        )
        watched = any(m._state_hooks.get("load_post") for m in modules)
        self._raise_load_errors(keys if strict and not watched else None, wrong)
        for m, name, value, old in found:
            m._load_value(name, value, old, assign)
        for m in reversed(modules):
            for hook in m._state_hooks_of("load_post"):
                if hook(m, keys) is not None:
                    raise RuntimeError(
                        "Hooks registered with register_load_state_dict_post_hook must return "
                        "None: they change missing_keys and unexpected_keys in place"
                    )
        self._raise_load_errors(keys if strict else None, [])
        return keys

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Loads the module's own state, for subclasses that extend this. The lists receive names
        and errors."""
        known: set[str] = set()
        lists = (strict, missing_keys, unexpected_keys, error_msgs)
        for _, name, value, old in self._find_in(state_dict, prefix, local_metadata, known, *lists):
            assign = local_metadata.get("assign_to_params_buffers", False)
            self._load_value(name, value, old, assign)
        if strict:
            for key in state_dict:
                first = key[len(prefix) :].partition(".")[0]
                if key.startswith(prefix) and key not in known and first not in self._modules:
                    unexpected_keys.append(key)

    def _find_in(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        known: set[str],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> list[Found]:
        """Returns (self, name, value, former value) of the module's own state in a state dict, and
        adds its names to `known`."""
        for hook in self._state_hooks_of("load_pre"):
            hook(
                self,
                state_dict,
                prefix,
                local_metadata,
                strict,
                missing_keys,
                unexpected_keys,
                error_msgs,
            )
        found: list[Found] = []
        for name, old in self._members().items():
            key = prefix + name
            known.add(key)
            if key not in state_dict:
                counts = name == "num_batches_tracked"  # since version 2 of the layers that have it
                if strict and not (counts and local_metadata.get("version", 1) < 2):
                    missing_keys.append(key)
                continue
            value = state_dict[key]
            if is_lazy(old) and is_lazy(value):
                continue
            if name != EXTRA and len(old.shape) == 0 and tuple(getattr(value, "shape", ())) == (1,):
                value = value[0]  # of files from before PyTorch had 0-dim tensors
            error = None if name == EXTRA else mismatch(key, value, old)
            if error:
                error_msgs.append(error)
            else:
                found.append((self, name, value, old))
        return found

    def _load_value(self, name: str, value: Any, old: Any, assign: bool) -> None:
        """Copies, or assigns, a value of a state dict."""
        if name == EXTRA:
            self.set_extra_state(value)
        elif not assign:
            with no_grad():
                (old if is_sparse(old) else old.detach()).copy_(value)
        elif not isinstance(old, Parameter):
            setattr(self, name, value)
        elif isinstance(value, Parameter):
            setattr(self, name, value.requires_grad_(old.requires_grad))
        else:
            setattr(self, name, Parameter(value, requires_grad=old.requires_grad))

    def _owner(self, name: str) -> Module:
        """Returns the module below self that a name in a state dict belongs to."""
        m = self
        for part in name.split("."):
            child = m._modules.get(part)
            if child is None:
                break
            m = child
        return m

    def _raise_load_errors(self, keys: IncompatibleKeys | None, wrong: list[str]) -> None:
        """Raises RuntimeError if there are errors. keys: names that are errors."""
        if keys is not None:
            named = [*key_errors("Missing", keys[0]), *key_errors("Unexpected", keys[1])]
            wrong = [*named, *wrong]
        if wrong:
            head = f"Error(s) in loading state_dict for {type(self).__name__}:"
            raise RuntimeError("\n\t".join([head, *wrong]))

    # ---- modes and moves ----

    def train(self, mode: bool = True) -> Self:
        """Sets `training` of self and all modules below. Returns self."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        for _, m, own in self._tree("train"):
            if own:
                m.train(mode)
            else:
                m.training = mode
        return self

    def eval(self) -> Self:
        """Calls train(False)."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Sets requires_grad of all parameters. Returns self."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Removes the parameters' gradients. set_to_none=False fills them with 0 instead."""
        for p in self.parameters():
            if set_to_none:
                p.grad = None
            elif p.grad is not None:
                p.grad.zero_()

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Applies fn to the data of every parameter and to every buffer. A subclass may extend
        this. recurse: includes those of all modules below."""
        tree = list(self._tree("_apply")) if recurse else [("", self, False)]
        modules = [m for _, m, own in tree if not own]
        tensors = [p for m in modules for p in m._parameters.values() if p is not None]
        buffers = [b for m in modules for b in m._buffers.values() if b is not None]
        with no_grad():
            unique = {id(p): p for p in tensors}.values()
            former = [(p, p.detach()) for p in unique]
            parameters = [(p, old, fn(old), p.grad) for p, old in former]
            converted = {key: fn(b) for key, b in {id(b): b for b in buffers}.items()}
            for p, old, data, grad in parameters:
                if data is not old:  # a parameter that an operator made may keep its memory alone
                    p.data = data
                if grad is not None:
                    p.grad = fn(grad)
            for m in modules:
                for name, b in list(m._buffers.items()):
                    if b is not None:
                        setattr(m, name, converted[id(b)])
        for _, m, own in tree:
            if own:
                m._apply(fn)
        return self

    def to_empty(self, *, device: Device | str | None, recurse: bool = True) -> Self:
        """Moves parameters and buffers to a device without their values, in place. Returns self."""
        from .._ops import empty_like

        return self._apply(lambda t: empty_like(t, device=device), recurse)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Converts or moves all parameters and buffers in place: to(dtype), to(device),
        to(device, dtype) or to(memory_format=…).

        The dtype must be floating or complex, and converts only floating and complex tensors. The
        memory format is that of tensors with 4 or 5 dimensions. Returns self.
        """
        dtype, device, _, memory_format = to_arguments(*args, **kwargs)
        others = _types.preserve_format
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, not {dtype}"
            )

        def converted(t: Tensor) -> Tensor:
            takes_dtype = t.is_floating_point() or t.is_complex()
            return t.to(
                dtype=dtype if takes_dtype else None,
                device=device,
                memory_format=memory_format if t.ndim in (4, 5) else others,
            )

        return self._apply(converted)

    def type(self, dst_type: DType | str) -> Self:
        """Converts all parameters and buffers, those of integers too, in place. Returns self."""
        return self._apply(lambda t: t.type(dst_type))

    def cpu(self) -> Self:
        """Calls to("cpu")."""
        return self.to("cpu")

    def cuda(self, device: int | Device | None = None) -> Self:
        """Moves to a CUDA device, which may be given by its index; None: the current one."""
        if device is None or isinstance(device, int):
            device = _types.device("cuda", device)
        return self.to(device)

    def xpu(self, device: int | Device | None = None) -> Self:
        """Raises an error: there are no XPUs."""
        return self.to("xpu")

    def ipu(self, device: int | Device | None = None) -> Self:
        """Raises an error: there are no IPUs."""
        return self.to("ipu")

    def mtia(self, device: int | Device | None = None) -> Self:
        """Raises an error: there are no MTIA devices."""
        return self.to("mtia")

    def float(self) -> Self:
        """Calls to(tt.float32)."""
        return self.to(_types.float32)

    def double(self) -> Self:
        """Calls to(tt.float64)."""
        return self.to(_types.float64)

    def half(self) -> Self:
        """Calls to(tt.float16)."""
        return self.to(_types.float16)

    def bfloat16(self) -> Self:
        """Calls to(tt.bfloat16)."""
        return self.to(_types.bfloat16)

    def share_memory(self) -> Self:
        """Moves parameters and buffers into shared memory. Returns self."""
        for t in (*self.parameters(), *self.buffers()):
            t.share_memory_()
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        clone = self.__new__(type(self))
        memo[id(self)] = clone
        clone.__setstate__({k: copy.deepcopy(v, memo) for k, v in self.__getstate__().items()})
        return clone

    def __getstate__(self) -> dict[str, Any]:
        """Returns all attributes but a compiled forward."""
        from ..compiler import Compiled

        state = dict(self.__dict__)
        if isinstance(state.get("forward"), Compiled):
            del state["forward"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in HOOK_FLAGS:  # files that were written before have none
            self.__dict__.setdefault(name, {})

    # ---- printing ----

    def extra_repr(self) -> str:
        """Returns the text printed between the parentheses. A subclass may define it."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def _printed(self) -> list[tuple[str, str]]:
        """Returns (name, text) of the children."""
        return [(name, repr(m)) for name, m in self._modules.items()]

    def __repr__(self) -> str:
        extra = self.extra_repr()
        extras = extra.split("\n") if extra else []
        children = [f"({name}): " + text.replace("\n", "\n  ") for name, text in self._printed()]
        if len(extras) < 2 and not children:
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}(\n  " + "\n  ".join([*extras, *children]) + "\n)"


REGISTER = {name: getattr(Module, name) for name in ("register_parameter", "register_buffer")}


def is_replaced(name: str) -> bool:
    """Returns whether a program has replaced a method of Module, as those that make modules without
    memory do."""
    return getattr(Module, name) is not REGISTER[name]


def loads_itself(m: Module) -> bool:
    return type(m)._load_from_state_dict is not Module._load_from_state_dict


def is_sparse(value: Any) -> bool:
    """Returns whether value is a sparse tensor, which is no Tensor."""
    return getattr(type(value), "is_sparse", False) is True


def mismatch(key: str, value: Any, old: Tensor) -> str | None:
    """Describes a value of a state dict that a tensor of a module cannot take, if it cannot."""
    if not isinstance(value, Tensor) and not is_sparse(value):
        return f"the value of {key} is {class_name(value)}: must be a Tensor"
    given = list(value.shape)
    if given == list(old.shape):
        return None
    return f"size mismatch for {key}: the state has {given}, the module {list(old.shape)}"


def run_after_failure(hook: Any, m: Module, args: Any, kwargs: Any) -> None:
    """Calls a forward hook after an exception. Its own one becomes a warning."""
    try:
        if kwargs is None:
            hook(m, args, None)
        else:
            hook(m, args, kwargs, None)
    except Exception as error:
        warnings.warn(
            f"forward hook with always_call=True raised {type(error).__name__} after another "
            f"exception: {error}",
            stacklevel=2,
        )


def key_errors(what: str, names: list[str]) -> list[str]:
    """Returns the error lines that list keys: none without keys."""
    quoted = ", ".join(f'"{name}"' for name in names)
    return [f"{what} key(s) in state_dict: {quoted}"] if names else []
