"""Optimizer: the base class of optimizers, which keeps parameter groups and state in Python."""
from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable
from copy import deepcopy
from functools import wraps
from types import MappingProxyType
from typing import Any, Callable, Mapping, Union

from .._class_name import class_name
from .._hooks import HookHandle
from .._tensor import Tensor
from ..autograd import set_grad_enabled

Params = Union[
    Iterable[Tensor], Iterable[tuple[str, Tensor]], Iterable[dict[str, Any]]
]  # of a constructor


def params_with_sparse_grads(params: Iterable[Any]) -> list[Any]:
    """Returns those whose gradient is sparse, not a sum with a dense one."""
    return [p for p in params if p._sparse_grad is not None and p.grad is p._sparse_grad]


def refuse_sparse_grads(optimizer: str, params: Iterable[Tensor]) -> None:
    if params_with_sparse_grads(params):
        raise RuntimeError(
            f"{optimizer} does not support sparse gradients, please consider SparseAdam instead"
        )


before_any_step: dict[object, Any] = {}  # hooks of all optimizers by key
after_any_step: dict[object, Any] = {}


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> HookHandle:
    """Calls hook(optimizer, args, kwargs) before each step of any optimizer, as
    Optimizer.register_step_pre_hook does for one."""
    return registered(before_any_step, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> HookHandle:
    """Calls hook(optimizer, args, kwargs) after each step of any optimizer."""
    return registered(after_any_step, hook)


def registered(hooks: dict[object, Any], hook: Callable[..., Any]) -> HookHandle:
    """Adds a hook. Its handle removes it."""
    key = object()
    hooks[key] = hook
    return HookHandle(lambda: hooks.pop(key, None))


def with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a step method that calls the optimizer's hooks before and after `step`."""

    @wraps(step)
    def step_with_hooks(self: Any, *args: Any, **kwargs: Any) -> Any:
        if type(self).step is not step_with_hooks:  # a subclass's step calls this one
            return step(self, *args, **kwargs)
        args = (self, *args)
        for hook in [*before_any_step.values(), *self._before_step.values()]:
            given = hook(self, args, kwargs)
            if given is None:
                continue
            if not isinstance(given, tuple) or len(given) != 2:
                raise RuntimeError(
                    f"step: a pre-hook returned {given!r}: must be None or (args, kwargs)"
                )
            args, kwargs = given
        self._opt_called = True
        result = step(*args, **kwargs)
        for hook in [*self._after_step.values(), *after_any_step.values()]:
            hook(self, args, kwargs)
        return result

    return step_with_hooks


# ---- names of torch.optim.optimizer that optimizers of other people import ----


class Required:
    """The default of an argument that has to be given."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = Required()
ParamsT = _params_t = Iterable  # for hints


def _use_grad_for_differentiable(step: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a step method that records operators only if defaults["differentiable"] is true."""

    @wraps(step)
    def step_in_mode(self: Any, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(bool(self.defaults.get("differentiable"))):
            return step(self, *args, **kwargs)

    return step_in_mode


def _default_to_fused_or_foreach(
    params: list[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Returns (fused, foreach), which are False: functions of lists call those of tensors."""
    return False, False


def _get_value(x: Any) -> Any:
    """Returns the number of a tensor of one element, or the number given."""
    return x.item() if isinstance(x, Tensor) else x


class Optimizer:
    """The base class of optimizers. A subclass defines step().

    params: leaf tensors, (name, tensor) pairs, or dicts with a list of either under "params" and
        values of their group.
    defaults: the values for groups that do not set them.

    Every step calls the hooks of register_step_pre_hook and register_step_post_hook.
    """

    defaults: dict[str, Any]
    param_groups: list[dict[str, Any]]
    state: Any
    # hooks by key; an optimizer has dicts of its own once it has any
    _before_step: Mapping[object, Any] = MappingProxyType({})
    _after_step: Mapping[object, Any] = MappingProxyType({})
    _before_state_dict: Mapping[object, Any] = MappingProxyType({})
    _after_state_dict: Mapping[object, Any] = MappingProxyType({})
    _before_load: Mapping[object, Any] = MappingProxyType({})
    _after_load: Mapping[object, Any] = MappingProxyType({})

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in vars(cls):
            cls.step = with_hooks(cls.step)  # type: ignore[assignment]

    _opt_called = True  # whether step has run since the last schedule was made

    def __init__(self, params: Params, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.param_groups = []
        self._start()
        if isinstance(params, Tensor):
            raise TypeError(
                f"params must be an iterable of tensors or dicts, not {type(params).__name__}"
            )
        given: list[Any] = list(params)
        if not given:
            raise ValueError("optimizer got an empty parameter list")
        for group in given if isinstance(given[0], dict) else [{"params": given}]:
            self.add_param_group(group)

    def _start(self) -> None:
        self.state = defaultdict(dict)

    def _new_group(self, group: dict[str, Any]) -> dict[str, Any]:
        return group

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a dict with "params" and the values that differ from the defaults."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, not {type(param_group).__name__}")
        group = dict(param_group)
        given = group["params"]
        if isinstance(given, (set, frozenset)):
            raise TypeError("parameters must be in an ordered collection, not a set")
        given = [given] if isinstance(given, Tensor) else list(given)
        names = [p[0] for p in given if isinstance(p, tuple)]
        if names and len(names) != len(given):
            raise ValueError("either all parameters have names or none")
        if any(bool(names) != ("param_names" in g) for g in self.param_groups):
            raise ValueError("either all groups have named parameters or none")
        params = [p[1] if isinstance(p, tuple) else p for p in given]
        first = {id(p): i for i, p in reversed(list(enumerate(params)))}
        if len(first) < len(params):
            warnings.warn(
                "a parameter appears more than once in its group: it is updated once", stacklevel=3
            )
        group["params"] = [p for i, p in enumerate(params) if first[id(p)] == i]
        if names:
            group["param_names"] = [name for i, name in enumerate(names) if i in first.values()]
        self._check_params(group["params"])
        for key, value in self.defaults.items():
            if value is required and key not in group:
                raise ValueError(f"parameter group didn't specify a value of {key}")
            group.setdefault(key, value)
        self.param_groups.append(self._new_group(group))

    def _check_types(self, params: list[Any]) -> None:
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(f"only tensors can be optimized, not {class_name(p)}")
            if not p.is_leaf:
                raise ValueError("only leaves can be optimized")

    def _check_params(self, params: list[Any]) -> None:
        self._check_types(params)
        known = {id(p) for group in self.param_groups for p in group["params"]}
        if any(id(p) in known for p in params):
            raise ValueError("some parameters appear in more than one parameter group")

    def _params(self) -> list[Tensor]:
        """Returns the parameters of all groups, in order."""
        return [p for group in self.param_groups for p in group["params"]]

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Removes the parameters' gradients. set_to_none=False fills them with 0 instead."""
        for p in self._params():
            if p.grad is None:
                continue
            if set_to_none:
                p.grad = None
            else:
                p.grad = p.grad.detach().zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates the parameters. closure: recomputes and returns the loss."""
        raise NotImplementedError("a subclass of Optimizer must define step")

    def _patch_step_function(self) -> None:
        """Does nothing: steps call hooks without a preparation."""

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Calls hook(optimizer, args, kwargs) before each step. args begins with the optimizer.

        A result other than None must be (args, kwargs), and replaces step's arguments.
        """
        return self._register("_before_step", hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Calls hook(optimizer, args, kwargs) after each step."""
        return self._register("_after_step", hook)

    def register_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> HookHandle:
        """Calls hook(optimizer) before state_dict. prepend: before the hooks that are registered
        already."""
        return self._register("_before_state_dict", hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> HookHandle:
        """Calls hook(optimizer, state_dict) after state_dict. A result other than None replaces
        it."""
        return self._register("_after_state_dict", hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> HookHandle:
        """Calls hook(optimizer, state_dict) before load_state_dict. A result other than None
        replaces the state dict, of which hook receives a copy."""
        return self._register("_before_load", hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> HookHandle:
        """Calls hook(optimizer) after load_state_dict."""
        return self._register("_after_load", hook, prepend)

    def _register(self, when: str, hook: Callable[..., Any], prepend: bool = False) -> HookHandle:
        hooks = vars(self).setdefault(when, {})
        key = object()
        before = dict(hooks) if prepend else {}
        if prepend:
            hooks.clear()
        hooks[key] = hook
        hooks.update(before)
        return HookHandle(lambda: hooks.pop(key, None))

    # ---- state ----

    def state_dict(self) -> dict[str, Any]:
        """Returns {"state": {index: state}, "param_groups": groups}.

        Parameters are numbered across all groups. A group has their indices under "params".
        """
        for hook in list(self._before_state_dict.values()):
            hook(self)
        groups: list[dict[str, Any]] = []
        index: dict[int, int] = {}
        start = 0
        for group in self.param_groups:
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = list(range(start, start + len(group["params"])))
            index.update((id(p), start + i) for i, p in enumerate(group["params"]))
            start += len(group["params"])
            groups.append(packed)
        state = {}
        for p, own_state in self.state.items():
            is_dict = isinstance(own_state, dict)  # a program may keep other values by other keys
            state[index.get(id(p), p)] = dict(own_state) if is_dict else own_state
        result = {"state": state, "param_groups": groups}
        for hook in list(self._after_state_dict.values()):
            replaced = hook(self, result)
            result = result if replaced is None else replaced
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads the state and the groups' values of a state_dict().

        Raises ValueError if its groups have other sizes.
        """
        state_dict = dict(state_dict)
        for hook in list(self._before_load.values()):
            state_dict = hook(self, state_dict) or state_dict
        saved = state_dict["param_groups"]
        if len(saved) != len(self.param_groups):
            raise ValueError("the loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(saved, self.param_groups)):
            raise ValueError("the loaded state dict has a parameter group of another size")
        keys = [key for group in saved for key in group["params"]]
        states = state_dict["state"]
        self._load({position: states.get(key, {}) for position, key in enumerate(keys)})
        for key in set(states).difference(keys):
            self.state[key] = deepcopy(states[key])
        for own, given in zip(self.param_groups, saved):
            for key in [k for k in own if k not in given and k not in ("params", "param_names")]:
                del own[key]
            own.update((k, deepcopy(v)) for k, v in given.items() if k != "params")
        for hook in list(self._after_load.values()):
            hook(self)

    def _load(self, states: dict[int, dict[str, Any]]) -> None:
        """Replaces the state by copies; states: {index of a parameter: its state}."""
        self.state = defaultdict(dict)
        params = self._params()
        for position, state in states.items():
            p = params[position]
            if state:
                self.state[p] = {key: copied(key, value, p) for key, value in state.items()}

    def __repr__(self) -> str:
        lines = [type(self).__name__ + " ("]
        for i, group in enumerate(self.param_groups):
            if i:
                lines.append("")
            lines.append(f"Parameter Group {i}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join(lines + [")"])


def copied(key: str, value: Any, p: Tensor) -> Any:
    """Returns a copy of a value of p's state. Tensors except "step" get the dtype of p."""
    if not isinstance(value, Tensor):
        return deepcopy(value)
    return value.detach().clone().to(value.dtype if key == "step" else p.dtype)
