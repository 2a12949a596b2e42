"""Module: the base class of layers and models, as torch.nn.Module."""
from __future__ import annotations

import copy
from collections import OrderedDict
from itertools import count

from .._kinds import kind_name
from .. import _types
from .._tensor import Tensor, to_arguments
from ..autograd import no_grad
from ._backward import Watch
from .parameter import Buffer, Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator, Mapping

    from typing_extensions import Self

    from .._types import device as Device
    from .._types import dtype as DType

hook_numbers = count(1)
# block(module) is a context manager that encloses each call of a module: a profile's
enclosing: list[Callable[[Module], Any]] = []
modes: list[object] = [None]  # one object, another whenever `training` of a module is set


class RemovableHandle:
    """The handle of a registered hook. remove() unregisters it, as does the end of a with block."""

    def __init__(self, hooks: OrderedDict[int, Any], hook: Any, prepend: bool = False) -> None:
        self.hooks, self.number = hooks, next(hook_numbers)
        hooks[self.number] = hook
        if prepend:
            hooks.move_to_end(self.number, last=False)

    def remove(self) -> None:
        self.hooks.pop(self.number, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


class IncompatibleKeys(tuple[list[str], list[str]]):
    """The result of load_state_dict: (missing_keys, unexpected_keys)."""

    __slots__ = ()

    @property
    def missing_keys(self) -> list[str]:
        """The module's names that the state dict lacks."""
        return self[0]

    @property
    def unexpected_keys(self) -> list[str]:
        """The state dict's names that the module lacks."""
        return self[1]

    def __repr__(self) -> str:
        if self == ([], []):
            return "<All keys matched successfully>"
        return f"IncompatibleKeys(missing_keys={self[0]}, unexpected_keys={self[1]})"


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
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _non_persistent: set[str]
    _forward_pre_hooks: OrderedDict[int, Any]
    _forward_hooks: OrderedDict[int, Any]
    _backward_pre_hooks: OrderedDict[int, Any]
    _backward_hooks: OrderedDict[int, Any]
    _state_hooks: dict[str, OrderedDict[int, Any]]  # those of state dicts by kind

    def __init__(self) -> None:
        state = self.__dict__
        state["_parameters"], state["_buffers"], state["_modules"] = {}, {}, {}
        state["_non_persistent"] = set()
        state["_forward_pre_hooks"], state["_forward_hooks"] = OrderedDict(), OrderedDict()
        state["_backward_pre_hooks"], state["_backward_hooks"] = OrderedDict(), OrderedDict()
        state["_state_hooks"] = {}

    # ---- registration ----

    def _check_name(self, name: str, kind: str) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"cannot assign a {kind} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"a {kind}'s name must be str, not {type(name).__name__}")
        if not name or "." in name:
            raise KeyError(f"a {kind}'s name must not be empty or contain a dot: {name!r}")

    def _check_kind(self, name: str, value: Any, kind: Any, what: str) -> None:
        """Raises TypeError unless value is None or of this class."""
        if value is not None and not isinstance(value, kind):
            raise TypeError(
                f"cannot assign '{kind_name(value)}' as {what} '{name}': "
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
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a buffer, a tensor that is no parameter, as the attribute `name`.

        persistent: whether state_dict() contains it.
        """
        self._check_name(name, "buffer")
        self._check_free(name, self._buffers)
        self._check_kind(name, tensor, Tensor, "buffer")
        self._buffers[name] = tensor
        self._set_persistent(name, persistent)

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
            raise TypeError(f"{kind_name(module)} is not a Module")
        self._modules[name] = module

    add_module = register_module

    def __setattr__(self, name: str, value: Any) -> None:
        groups = self.__dict__
        if isinstance(value, Parameter):
            self._check_name(name, "parameter")
            self._forget(name, "_parameters")
            self._parameters[name] = value
        elif isinstance(value, Module):
            self._check_name(name, "module")
            self._forget(name, "_modules")
            self._modules[name] = value
        elif isinstance(value, Buffer):
            self._check_name(name, "buffer")
            self._forget(name, "_buffers")
            self._buffers[name] = value
            self._set_persistent(name, value.persistent)
        elif name in groups.get("_parameters", ()):
            self._check_kind(name, value, Parameter, "parameter")
            self._parameters[name] = None
        elif name in groups.get("_modules", ()):
            self._check_kind(name, value, Module, "child module")
            self._modules[name] = None
        elif name in groups.get("_buffers", ()):
            self._check_kind(name, value, Tensor, "buffer")
            self._buffers[name] = value
        else:
            object.__setattr__(self, name, value)
            if name == "training":
                modes[0] = object()

    def _forget(self, name: str, but: str) -> None:
        """Removes the attribute from all other groups."""
        self.__dict__.pop(name, None)
        for group in ("_parameters", "_buffers", "_modules"):
            if group != but:
                self.__dict__[group].pop(name, None)

    def __getattr__(self, name: str) -> Any:
        for group in ("_parameters", "_buffers", "_modules"):
            members = self.__dict__.get(group, {})
            if name in members:
                return members[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def _swap_tensor(self, name: str, value: Any) -> Any:
        """Replaces a parameter or buffer by any tensor, without checks. Returns the former one."""
        group: Any = self._parameters if name in self._parameters else self._buffers
        before = group[name]
        group[name] = value
        return before

    def __delattr__(self, name: str) -> None:
        for group in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__.get(group, ()):
                del self.__dict__[group][name]
                return
        object.__delattr__(self, name)

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
        if not enclosing:
            return self._call_with_hooks(args, kwargs)
        from contextlib import ExitStack

        with ExitStack() as blocks:
            for block in list(enclosing):
                blocks.enter_context(block(self))
            return self._call_with_hooks(args, kwargs)

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for hook, with_kwargs in list(self._forward_pre_hooks.values()):
            changed = hook(self, args, kwargs) if with_kwargs else hook(self, args)
            if changed is None:
                continue
            if with_kwargs:
                args, kwargs = changed
            else:
                args = changed if isinstance(changed, tuple) else (changed,)
        watch = None
        if self._backward_pre_hooks or self._backward_hooks:
            watch = Watch(self, self._backward_hooks.values(), self._backward_pre_hooks.values())
            args = watch.inputs(args)
        out = self.forward(*args, **kwargs)
        for hook, with_kwargs in list(self._forward_hooks.values()):
            changed = hook(self, args, kwargs, out) if with_kwargs else hook(self, args, out)
            out = out if changed is None else changed
        return out if watch is None else watch.results(out)

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Calls hook(module, args) before forward. A result other than None replaces the arguments.

        with_kwargs: calls hook(module, args, kwargs), which may return (args, kwargs).
        prepend: runs before the hooks that are registered already.
        """
        return RemovableHandle(self._forward_pre_hooks, (hook, with_kwargs), prepend)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Calls hook(module, args, output) after forward. A result other than None replaces the
        output.

        with_kwargs: calls hook(module, args, kwargs, output).
        prepend: runs before the hooks that are registered already.
        """
        return RemovableHandle(self._forward_hooks, (hook, with_kwargs), prepend)

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls hook(module, grad_output) in backward. A result other than None replaces
        grad_output."""
        return RemovableHandle(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls hook(module, grad_input, grad_output) in backward.

        A result other than None replaces the gradients of the inputs. The gradients are tuples,
        with None for arguments that are no tensors and for results without a gradient.
        """
        return RemovableHandle(self._backward_hooks, hook, prepend)

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

    def modules(self) -> Iterator[Module]:
        """Yields self and all modules below it, each once."""
        return (m for _, m in self.named_modules())

    def named_modules(
        self, memo: set[int] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Yields (dotted name, module) of self and all modules below it.

        memo: ids of modules to leave out; the ids of yielded modules are added.
        remove_duplicate: yields a module that has several names once.
        """
        seen: set[int] = set() if memo is None else memo
        todo = [(prefix, self)]
        while todo:
            path, m = todo.pop()
            if remove_duplicate and id(m) in seen:
                continue
            seen.add(id(m))
            yield path, m
            for name, child in reversed(m._modules.items()):
                if child is not None:
                    todo.append((joined(path, name), child))

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
        *,
        destination: dict[str, Any] | None = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> dict[str, Any]:
        """Returns parameters and persistent buffers by dotted names. They share the module's
        memory.

        destination: the dict to fill. prefix: prepended to every name.
        keep_vars: returns the parameters and buffers themselves instead of detached tensors.
        """
        out = OrderedDict() if destination is None else destination
        modules = list(self.named_modules(prefix=prefix.rstrip("."), remove_duplicate=False))
        for path, m in modules:
            m._run_state_hooks("save_pre", path, keep_vars)
            for name, t in m._members().items():
                out[joined(path, name)] = t if keep_vars or name == EXTRA else t.detach()
        for path, m in reversed(modules):
            m._run_state_hooks("save_post", path, out)
        return out

    def _members(self) -> dict[str, Any]:
        """Returns the module's own parameters, persistent buffers and extra state by name."""
        kept = {name: b for name, b in self._buffers.items() if name not in self._non_persistent}
        tensors = (*self._parameters.items(), *kept.items())
        members: dict[str, Any] = {name: t for name, t in tensors if t is not None}
        if has_extra(self):
            members[EXTRA] = self.get_extra_state()
        return members

    def _run_state_hooks(self, kind: str, path: str, *more: Any) -> None:
        """Calls the hooks of state_dict and load_state_dict with the prefix of the names."""
        prefix = path + "." if path else ""
        for hook in list(self._state_hooks.get(kind, {}).values()):
            if kind == "save_pre":
                hook(self, prefix, *more)
            elif kind == "save_post":
                hook(self, *more, prefix, {})
            elif kind == "load_pre":
                hook(self, more[0], prefix, {}, *more[1:])
            elif hook(self, *more) is not None:
                raise RuntimeError(
                    "Hooks registered with register_load_state_dict_post_hook must return None: "
                    "they change missing_keys and unexpected_keys in place"
                )

    def _add_state_hook(self, kind: str, hook: Callable[..., Any]) -> RemovableHandle:
        return RemovableHandle(self._state_hooks.setdefault(kind, OrderedDict()), hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls hook(module, prefix, keep_vars) before state_dict reads the module."""
        return self._add_state_hook("save_pre", hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls hook(module, state_dict, prefix, {}) at the end of state_dict. The hook may change
        state_dict."""
        return self._add_state_hook("save_post", hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls hook(module, state_dict, prefix, {}, strict, missing_keys, unexpected_keys,
        error_msgs) before load_state_dict reads state_dict. The hook may change state_dict, which
        is a copy, and add to the three lists."""
        return self._add_state_hook("load_pre", hook)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls hook(module, keys) after load_state_dict has copied the values.

        keys: the result of load_state_dict. The hook may remove names that are no errors.
        """
        return self._add_state_hook("load_post", hook)

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
        Raises RuntimeError, and changes nothing, if names or shapes do not match.
        """
        if not hasattr(state_dict, "keys"):
            raise TypeError(f"state_dict must be a dict, not {type(state_dict).__name__}")
        modules = list(self.named_modules(remove_duplicate=False))
        keys = IncompatibleKeys(([], []))
        wrong: list[str] = []
        state_dict = dict(state_dict)
        for path, m in modules:
            m._run_state_hooks("load_pre", path, state_dict, strict, *keys, wrong)
        own = {joined(path, n): t for path, m in modules for n, t in m._members().items()}
        extras = {name for name in own if name.rpartition(".")[2] == EXTRA}
        keys.missing_keys.extend(name for name in own if name not in state_dict)
        keys.unexpected_keys.extend(name for name in state_dict if name not in own)
        wrong += self._mismatches(state_dict, own, extras)
        watched = any(m._state_hooks.get("load_post") for _, m in modules)
        self._raise_load_errors(keys if strict and not watched else None, wrong)
        for name, t in own.items():
            if name not in state_dict:
                continue
            if name in extras:
                self.get_submodule(name.rpartition(".")[0]).set_extra_state(state_dict[name])
            elif assign:
                self._assign(name, state_dict[name], t)
            else:
                with no_grad():
                    t.detach().copy_(state_dict[name])
        for path, m in reversed(modules):
            m._run_state_hooks("load_post", path, keys)
        self._raise_load_errors(keys if strict else None, [])
        return keys

    def _raise_load_errors(self, keys: IncompatibleKeys | None, wrong: list[str]) -> None:
        """Raises RuntimeError if there are errors. keys: names that are errors."""
        if keys is not None:
            named = [*key_errors("Missing", keys[0]), *key_errors("Unexpected", keys[1])]
            wrong = [*named, *wrong]
        if wrong:
            head = f"Error(s) in loading state_dict for {type(self).__name__}:"
            raise RuntimeError("\n\t".join([head, *wrong]))

    @staticmethod
    def _mismatches(
        state_dict: Mapping[str, Any], own: Mapping[str, Any], extras: set[str]
    ) -> list[str]:
        """Describes tensors of a state dict whose shapes differ from the module's."""
        wrong = []
        for name, t in own.items():
            if name not in state_dict or name in extras:
                continue
            given = tuple(state_dict[name].shape)
            if given != tuple(t.shape):
                wrong.append(
                    f"size mismatch for {name}: the state has {list(given)}, "
                    f"the module {list(t.shape)}"
                )
        return wrong

    def _assign(self, path: str, value: Tensor, old: Tensor) -> None:
        owner, _, name = path.rpartition(".")
        if isinstance(old, Parameter) and not isinstance(value, Parameter):
            value = Parameter(value, requires_grad=old.requires_grad)
        setattr(self.get_submodule(owner), name, value)

    # ---- modes and moves ----

    def train(self, mode: bool = True) -> Self:
        """Sets `training` of self and all modules below. Returns self."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        for m in self.modules():
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

    def _convert(self, fn: Callable[[Tensor], Tensor]) -> Self:
        """Applies fn to the data of every parameter and to every buffer."""
        with no_grad():
            parameters = [(p, fn(p.detach()), p.grad) for p in self.parameters()]
            converted = {id(b): fn(b) for b in self.buffers()}
            for p, data, grad in parameters:
                p.data = data
                if grad is not None:
                    p.grad = fn(grad)
            for m in self.modules():
                for name, b in list(m._buffers.items()):
                    if b is not None:
                        setattr(m, name, converted[id(b)])
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Converts or moves all parameters and buffers in place: to(dtype), to(device) or
        to(device, dtype).

        The dtype must be floating or complex, and converts only floating and complex tensors.
        Returns self.
        """
        dtype, device, _, _ = to_arguments(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, not {dtype}"
            )

        def converted(t: Tensor) -> Tensor:
            takes_dtype = t.is_floating_point() or t.is_complex()
            return t.to(dtype=dtype if takes_dtype else None, device=device)

        return self._convert(converted)

    def type(self, dst_type: DType) -> Self:
        """Calls to(dst_type)."""
        return self.to(dst_type)

    def cpu(self) -> Self:
        """Calls to("cpu")."""
        return self.to("cpu")

    def cuda(self, device: int = 0) -> Self:
        """Moves to the CUDA device with this index."""
        return self.to(_types.device("cuda", device))

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
        clone.__dict__.update({k: copy.deepcopy(v, memo) for k, v in self.__dict__.items()})
        return clone

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
        lines = [f"({name}): " + text.replace("\n", "\n  ") for name, text in self._printed()]
        if not lines:
            return f"{self._get_name()}({extra})"
        if extra:
            lines.insert(0, extra)
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


def key_errors(what: str, names: list[str]) -> list[str]:
    """Returns the error lines that list keys of a state dict: none without keys."""
    quoted = ", ".join(f'"{name}"' for name in names)
    return [f"{what} key(s) in state_dict: {quoted}"] if names else []
