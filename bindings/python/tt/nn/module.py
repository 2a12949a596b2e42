"""Module: the base class of layers and models, as torch.nn.Module."""
import copy
from collections import OrderedDict
from itertools import count

from .._kinds import kind_name
from .. import _types
from .._tensor import Tensor, to_arguments
from ..autograd import no_grad
from ._backward import Watch
from .parameter import Buffer, Parameter

hook_numbers = count(1)


class HookHandle:
    """remove() ends a hook."""

    def __init__(self, hooks, hook, prepend=False):
        self.hooks, self.number = hooks, next(hook_numbers)
        hooks[self.number] = hook
        if prepend:
            hooks.move_to_end(self.number, last=False)

    def remove(self):
        self.hooks.pop(self.number, None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()


class LoadResult(tuple):
    """(missing_keys, unexpected_keys) of load_state_dict."""

    __slots__ = ()
    missing_keys = property(lambda self: self[0])
    unexpected_keys = property(lambda self: self[1])

    def __repr__(self):
        return (
            "<All keys matched successfully>"
            if self == ([], [])
            else f"missing {self[0]}, unexpected {self[1]}"
        )


EXTRA = "_extra_state"  # its name in a state_dict


def has_extra(module):
    return type(module).get_extra_state is not Module.get_extra_state


class Module:
    """A node of a tree of layers: parameters, buffers and children are registered when they are assigned to attributes."""

    training = True

    def __init__(self):
        made = self.__dict__
        made["_parameters"], made["_buffers"], made["_modules"] = {}, {}, {}
        made["_non_persistent"] = set()
        made["_forward_pre_hooks"], made["_forward_hooks"] = OrderedDict(), OrderedDict()
        made["_backward_pre_hooks"], made["_backward_hooks"] = OrderedDict(), OrderedDict()

    # ---- registration ----

    def _check(self, name, kind):
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"cannot assign a {kind} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"a {kind}'s name must be str, not {type(name).__name__}")
        if not name or "." in name:
            raise KeyError(f"a {kind}'s name must not be empty or hold a dot: {name!r}")

    def register_parameter(self, name, param):
        self._check(name, "parameter")
        if hasattr(self, name) and name not in self._parameters:
            raise KeyError(f"attribute '{name}' already exists")
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{kind_name(param)}' as parameter '{name}': Parameter or None required"
            )
        self._parameters[name] = param

    def register_buffer(self, name, tensor, persistent=True):
        self._check(name, "buffer")
        if hasattr(self, name) and name not in self._buffers:
            raise KeyError(f"attribute '{name}' already exists")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{kind_name(tensor)}' as buffer '{name}': Tensor or None required"
            )
        self._buffers[name] = tensor
        (self._non_persistent.discard if persistent else self._non_persistent.add)(name)

    def register_module(self, name, module):
        self._check(name, "module")
        if hasattr(self, name) and name not in self._modules:
            raise KeyError(f"attribute '{name}' already exists")
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{kind_name(module)} is not a Module")
        self._modules[name] = module

    add_module = register_module

    def __setattr__(self, name, value):
        groups = self.__dict__
        if isinstance(value, Parameter):
            self._check(name, "parameter")
            self._forget(name, "_parameters")
            self._parameters[name] = value
        elif isinstance(value, Module):
            self._check(name, "module")
            self._forget(name, "_modules")
            self._modules[name] = value
        elif isinstance(value, Buffer):
            self._check(name, "buffer")
            self._forget(name, "_buffers")
            self._buffers[name] = value
            (self._non_persistent.discard if value.persistent else self._non_persistent.add)(name)
        elif name in groups.get("_parameters", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{kind_name(value)}' as parameter '{name}': Parameter or None required"
                )
            self._parameters[name] = None
        elif name in groups.get("_modules", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{kind_name(value)}' as child module '{name}': Module or None required"
                )
            self._modules[name] = None
        elif name in groups.get("_buffers", ()):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{kind_name(value)}' as buffer '{name}': Tensor or None required"
                )
            self._buffers[name] = value
        else:
            object.__setattr__(self, name, value)

    def _forget(self, name, but):
        self.__dict__.pop(name, None)
        for group in ("_parameters", "_buffers", "_modules"):
            if group != but:
                self.__dict__[group].pop(name, None)

    def __getattr__(self, name):
        for group in ("_parameters", "_buffers", "_modules"):
            found = self.__dict__.get(group, {})
            if name in found:
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name):
        for group in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__.get(group, ()):
                del self.__dict__[group][name]
                return
        object.__delattr__(self, name)

    def __dir__(self):
        return [*super().__dir__(), *self._parameters, *self._buffers, *self._modules]

    # ---- calls ----

    def forward(self, *args, **kwargs):
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    def __call__(self, *args, **kwargs):
        if not (
            self._forward_pre_hooks
            or self._forward_hooks
            or self._backward_pre_hooks
            or self._backward_hooks
        ):
            return self.forward(*args, **kwargs)
        for hook, with_kwargs in list(self._forward_pre_hooks.values()):
            found = hook(self, args, kwargs) if with_kwargs else hook(self, args)
            if found is not None and with_kwargs:
                args, kwargs = found
            elif found is not None:
                args = found if isinstance(found, tuple) else (found,)
        watch = None
        if self._backward_pre_hooks or self._backward_hooks:
            watch = Watch(self, self._backward_hooks.values(), self._backward_pre_hooks.values())
            args = watch.inputs(args)
        out = self.forward(*args, **kwargs)
        for hook, with_kwargs in list(self._forward_hooks.values()):
            found = hook(self, args, kwargs, out) if with_kwargs else hook(self, args, out)
            out = out if found is None else found
        return out if watch is None else watch.results(out)

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """Calls hook(module, args) before forward; what it returns takes the place of the arguments."""
        return HookHandle(self._forward_pre_hooks, (hook, with_kwargs), prepend)

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False):
        """Calls hook(module, args, output) after forward; what it returns takes the place of the output."""
        return HookHandle(self._forward_hooks, (hook, with_kwargs), prepend)

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """Calls hook(module, grad_output) in backward; what it returns takes the place of the gradients of the results."""
        return HookHandle(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(self, hook, prepend=False):
        """Calls hook(module, grad_input, grad_output) in backward; what it returns takes the place of the gradients of the inputs.

        The gradients are tuples, with None for what is no tensor and for results that got none.
        """
        return HookHandle(self._backward_hooks, hook, prepend)

    # ---- the tree ----

    def children(self):
        return (m for _, m in self.named_children())

    def named_children(self):
        seen = set()
        for name, m in self._modules.items():
            if m is not None and id(m) not in seen:
                seen.add(id(m))
                yield name, m

    def modules(self):
        return (m for _, m in self.named_modules())

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        memo, todo = set() if memo is None else memo, [(prefix, self)]
        while todo:
            path, m = todo.pop()
            if remove_duplicate and id(m) in memo:
                continue
            memo.add(id(m))
            yield path, m
            todo += [
                (f"{path}.{n}" if path else n, child)
                for n, child in reversed(m._modules.items())
                if child is not None
            ]

    def _named(self, group, prefix, recurse, remove_duplicate):
        seen = set()
        for path, m in (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        ):
            for name, t in m.__dict__[group].items():
                if t is not None and not (remove_duplicate and id(t) in seen):
                    seen.add(id(t))
                    yield f"{path}.{name}" if path else name, t

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse=True):
        return (p for _, p in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        return (b for _, b in self.named_buffers(recurse=recurse))

    def get_submodule(self, target):
        m = self
        for name in target.split(".") if target else ():
            found = m._modules.get(name)
            if found is None:
                raise AttributeError(f"{type(m).__name__} has no submodule '{name}'")
            m = found
        return m

    def _get(self, group, target):
        path, _, name = target.rpartition(".")
        found = self.get_submodule(path).__dict__[group]
        if name not in found:
            raise AttributeError(f"no '{target}' in {type(self).__name__}")
        return found[name]

    def get_parameter(self, target):
        return self._get("_parameters", target)

    def get_buffer(self, target):
        return self._get("_buffers", target)

    def apply(self, fn):
        """Calls fn on every module below, then on self."""
        for m in self.children():
            m.apply(fn)
        fn(self)
        return self

    # ---- state ----

    def state_dict(self, *, destination=None, prefix="", keep_vars=False):
        """Parameters and persistent buffers under their dotted names; they share memory with the module."""
        out = OrderedDict() if destination is None else destination
        for path, m in self.named_modules(prefix=prefix.rstrip("."), remove_duplicate=False):
            for group in (m._parameters, m._buffers):
                for name, t in group.items():
                    if t is not None and not (group is m._buffers and name in m._non_persistent):
                        out[f"{path}.{name}" if path else name] = t if keep_vars else t.detach()
            if has_extra(m):
                out[f"{path}.{EXTRA}" if path else EXTRA] = m.get_extra_state()
        return out

    def get_extra_state(self):
        """What state_dict() holds of the module beside its tensors: a class that defines this and set_extra_state has it there."""
        raise RuntimeError(f"{type(self).__name__} has no get_extra_state")

    def set_extra_state(self, state):
        raise RuntimeError(f"{type(self).__name__} has no set_extra_state")

    def load_state_dict(self, state_dict, strict=True, assign=False):
        """Copies the values under the module's names into it; strict: other names and missing ones are an error; assign: the tensors themselves
        become the module's."""
        if not hasattr(state_dict, "keys"):
            raise TypeError(f"state_dict must be a dict, not {type(state_dict).__name__}")
        own = self.state_dict(keep_vars=True)
        missing, unexpected = [k for k in own if k not in state_dict], [
            k for k in state_dict if k not in own
        ]
        wrong = []
        for what, names in (("Missing", missing), ("Unexpected", unexpected)):
            if names and strict:
                wrong.append(
                    f"{what} key(s) in state_dict: " + ", ".join(f'"{name}"' for name in names)
                )
        extras = {name for name in own if name.rpartition(".")[2] == EXTRA}
        for name, t in own.items():
            if (
                name in state_dict
                and name not in extras
                and tuple(state_dict[name].shape) != tuple(t.shape)
            ):
                wrong.append(
                    f"size mismatch for {name}: the state has {list(state_dict[name].shape)}, the module {list(t.shape)}"
                )
        if wrong:
            raise RuntimeError(
                "\n\t".join([f"Error(s) in loading state_dict for {type(self).__name__}:", *wrong])
            )
        for name, t in own.items():
            if name in extras and name in state_dict:
                self.get_submodule(name.rpartition(".")[0]).set_extra_state(state_dict[name])
            elif name in state_dict and assign:
                self._assign(name, state_dict[name], t)
            elif name in state_dict:
                with no_grad():
                    t.detach().copy_(state_dict[name])
        return LoadResult((missing, unexpected))

    def _assign(self, path, value, old):
        owner, _, name = path.rpartition(".")
        if isinstance(old, Parameter) and not isinstance(value, Parameter):
            value = Parameter(value, requires_grad=old.requires_grad)
        setattr(self.get_submodule(owner), name, value)

    # ---- modes and moves ----

    def train(self, mode=True):
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        for m in self.modules():
            m.training = mode
        return self

    def eval(self):
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        for p in self.parameters():
            if set_to_none:
                p.grad = None
            elif p.grad is not None:
                p.grad.zero_()

    def _convert(self, fn):
        """Gives every parameter the data fn makes of it (the objects stay), and every buffer's place what fn makes of that."""
        with no_grad():
            parameters = [(p, fn(p.detach()), p.grad) for p in self.parameters()]
            made = {id(b): fn(b) for b in self.buffers()}
            for p, data, grad in parameters:
                p.data = data
                if grad is not None:
                    p.grad = fn(grad)
            for m in self.modules():
                for name, b in list(m._buffers.items()):
                    if b is not None:
                        setattr(m, name, made[id(b)])
        return self

    def to(self, *args, **kwargs):
        dtype, device, _, _ = to_arguments(args, kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, not {dtype}"
            )
        return self._convert(
            lambda t: t.to(
                dtype=dtype if t.is_floating_point() or t.is_complex() else None, device=device
            )
        )

    def type(self, dst_type):
        return self.to(dst_type)

    def cpu(self):
        return self.to("cpu")

    def cuda(self, device=0):
        return self.to(_types.device("cuda", device))

    def float(self):
        return self.to(_types.float32)

    def double(self):
        return self.to(_types.float64)

    def half(self):
        return self.to(_types.float16)

    def bfloat16(self):
        return self.to(_types.bfloat16)

    def __deepcopy__(self, memo):
        made = self.__new__(type(self))
        memo[id(self)] = made
        made.__dict__.update({k: copy.deepcopy(v, memo) for k, v in self.__dict__.items()})
        return made

    # ---- printing ----

    def extra_repr(self):
        return ""

    def _get_name(self):
        return type(self).__name__

    def _printed(self):
        """(name, text) of the children."""
        return [(name, repr(m)) for name, m in self._modules.items()]

    def __repr__(self):
        extra = self.extra_repr()
        lines = [f"({name}): " + text.replace("\n", "\n  ") for name, text in self._printed()]
        if not lines:
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}(\n  " + "\n  ".join(([extra] if extra else []) + lines) + "\n)"
