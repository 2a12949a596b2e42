"""Optimizer: parameter groups and state. The classes of libtt keep both in C; a subclass of Optimizer keeps its own in Python."""
from collections import defaultdict
from collections.abc import MutableMapping
from copy import deepcopy
from ctypes import byref, c_char_p, c_double, c_int32, c_int64, c_void_p, create_string_buffer
from functools import wraps

from .._kinds import kind_name
from .. import _convert as convert
from .._construct import bind, construct
from .._hooks import HookHandle
from .._lib import Handle, fail, lib, local, quick, released_by
from .._optim_classes import CLASSES, ENUMS, VALUES
from .._tensor import Tensor, new
from ..autograd import enable_grad

# what PyTorch's constructors take besides: how to compute, which here follows from the parameters
IGNORED = {"foreach": None, "capturable": False, "differentiable": False, "fused": None}
ABSENT = {
    "SGD": "capturable",
    "Adagrad": "capturable",
    "RMSprop": "fused",
}  # which of them these do not take
EXTRAS = (
    "initial_lr",
    "max_lr",
    "min_lr",
    "base_momentum",
    "max_momentum",
)  # kept in C for schedulers


def with_hooks(step):
    """A class's step, from the first hook of one of its optimizers on."""

    @wraps(step)
    def hooked(self, *args, **kwargs):
        for hook in list(vars(self).get("_before_step", {}).values()):
            args, kwargs = hook(self, args, kwargs) or (args, kwargs)
        found = step(self, *args, **kwargs)
        for hook in list(vars(self).get("_after_step", {}).values()):
            hook(self, args, kwargs)
        return found

    hooked._without_hooks = step
    return hooked


class Optimizer:
    """Base class. params: tensors, (name, tensor) pairs, or dicts with a list of them under "params" and values of their group."""

    def __init__(self, params, defaults):
        self.defaults = defaults
        self.param_groups = []
        self._start()
        if isinstance(params, Tensor):
            raise TypeError(
                f"params must be an iterable of tensors or dicts, not {type(params).__name__}"
            )
        params = list(params)
        if not params:
            raise ValueError("optimizer got an empty parameter list")
        for group in params if isinstance(params[0], dict) else [{"params": params}]:
            self.add_param_group(group)

    def _start(self):
        self.state = defaultdict(dict)

    def _new_group(self, group):
        return group

    def add_param_group(self, param_group):
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
        group["params"] = [p[1] if isinstance(p, tuple) else p for p in given]
        if names:
            group["param_names"] = names
        for p in group["params"]:
            if not isinstance(p, Tensor):
                raise TypeError(f"only tensors can be optimized, not {kind_name(p)}")
            if not p.is_leaf:
                raise ValueError("only leaves can be optimized")
        known = {id(p) for g in self.param_groups for p in g["params"]}
        if any(id(p) in known for p in group["params"]):
            raise ValueError("some parameters appear in more than one parameter group")
        for key, value in self.defaults.items():
            group.setdefault(key, value)
        self.param_groups.append(self._new_group(group))

    def zero_grad(self, set_to_none=True):
        """Takes the gradients away, or fills them with 0."""
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if set_to_none:
                    p.grad = None
                else:
                    p.grad = p.grad.detach().zero_()

    def step(self, closure=None):
        raise NotImplementedError("a subclass of Optimizer must define step")

    def register_step_pre_hook(self, hook):
        """Calls hook(optimizer, args, kwargs) before each step; what it returns, if not None, takes the place of the two."""
        return self._register("_before_step", hook)

    def register_step_post_hook(self, hook):
        """Calls hook(optimizer, args, kwargs) after each step."""
        return self._register("_after_step", hook)

    def _register(self, when, hook):
        cls, hooks = type(self), vars(self).setdefault(when, {})
        if not hasattr(cls.step, "_without_hooks"):
            cls.step = with_hooks(cls.step)
        key = object()
        hooks[key] = hook
        return HookHandle(lambda: hooks.pop(key, None))

    # ---- state ----

    def state_dict(self):
        """{"state": {index of a parameter: its state}, "param_groups": groups with indices for "params"}"""
        groups, start, index = [], 0, {}
        for g in self.param_groups:
            packed = {k: v for k, v in g.items() if k != "params"}
            packed["params"] = list(range(start, start + len(g["params"])))
            index.update((id(p), start + i) for i, p in enumerate(g["params"]))
            start += len(g["params"])
            groups.append(packed)
        return {
            "state": {index.get(id(p), p): dict(s) for p, s in self.state.items()},
            "param_groups": groups,
        }

    def load_state_dict(self, state_dict):
        """Takes over the state and the groups' values of a state_dict() of an optimizer with groups of the same sizes."""
        saved = state_dict["param_groups"]
        if len(saved) != len(self.param_groups):
            raise ValueError("the loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(saved, self.param_groups)):
            raise ValueError("the loaded state dict has a parameter group of another size")
        keys = [key for g in saved for key in g["params"]]
        self._load(
            {position: state_dict["state"].get(key, {}) for position, key in enumerate(keys)}
        )
        for have, given in zip(self.param_groups, saved):
            for key in [k for k in have if k not in given and k != "params" and k != "param_names"]:
                del have[key]
            have.update((k, deepcopy(v)) for k, v in given.items() if k != "params")

    def _load(self, states):
        self.state = defaultdict(dict)
        params = [p for g in self.param_groups for p in g["params"]]
        for position, state in states.items():
            p = params[position]
            if state:
                self.state[p] = {
                    k: v.detach().clone().to(p.dtype if k != "step" else v.dtype)
                    if isinstance(v, Tensor)
                    else deepcopy(v)
                    for k, v in state.items()
                }

    def __repr__(self):
        lines = [type(self).__name__ + " ("]
        for i, g in enumerate(self.param_groups):
            lines += [""] * bool(i) + [f"Parameter Group {i}"]
            lines += [f"    {k}: {g[k]}" for k in sorted(g) if k != "params"]
        return "\n".join(lines + [")"])


# ---- optimizers of libtt ----


class ParamGroup(dict):
    """A parameter group whose numbers live in C: what is read is what the next step takes."""

    def __init__(self, optimizer, number, group):
        super().__init__(group)
        self._optimizer, self._number = optimizer, number
        self._values = {key: (names, flag) for key, names, flag in VALUES[optimizer._class]}
        self._values.update((key, ((key,), False)) for key in EXTRAS)
        for key, value in group.items():
            self[key] = value

    def _read(self, key):
        """Brings the dict's copy of a value up to date."""
        names, flag = self._values[key]
        found = []
        for name in names:
            x = c_double()
            if lib.tt_optim_get_f64(
                local.ctx,
                self._optimizer._handle,
                c_int64(self._number),
                c_char_p(name.encode()),
                byref(x),
            ):
                return  # a value of schedulers that is not there yet
            found.append(bool(x.value) if flag else x.value)
        new = tuple(found) if len(found) > 1 else found[0]
        if not dict.__contains__(self, key) or dict.__getitem__(self, key) != new:
            dict.__setitem__(self, key, new)

    def _all(self):
        for key in self._values:
            self._read(key)

    def __setitem__(self, key, value):
        if key in self._values:
            names, _ = self._values[key]
            parts = tuple(value) if len(names) > 1 else (value,)
            if len(parts) != len(names):
                raise ValueError(f"{key} must have {len(names)} numbers, not {len(parts)}")
            for name, part in zip(names, parts):
                if lib.tt_optim_set_f64(
                    local.ctx,
                    self._optimizer._handle,
                    c_int64(self._number),
                    c_char_p(name.encode()),
                    c_double(float(part)),
                ):
                    fail()
            if isinstance(value, Tensor):
                value = float(value)
        dict.__setitem__(self, key, value)

    def __getitem__(self, key):
        if key in self._values:
            self._read(key)
        return dict.__getitem__(self, key)

    def __contains__(self, key):
        if key in self._values:
            self._read(key)
        return dict.__contains__(self, key)

    def __iter__(self):
        self._all()
        return dict.__iter__(self)

    def __len__(self):
        self._all()
        return dict.__len__(self)

    def keys(self):
        self._all()
        return dict.keys(self)

    def values(self):
        self._all()
        return dict.values(self)

    def items(self):
        self._all()
        return dict.items(self)

    def get(self, key, default=None):
        return self[key] if key in self else default

    def setdefault(self, key, default=None):
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, *args, **kwargs):
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def __delitem__(self, key):
        if key not in self._values:
            dict.__delitem__(self, key)

    def copy(self):
        return dict(self.items())

    def __repr__(self):
        self._all()
        return dict.__repr__(self)


class OptimizerHandle(Handle):
    __slots__ = ()


released_by(OptimizerHandle, quick.tt_optim_release)


class NativeOptimizer(Optimizer):
    """An optimizer that libtt runs: all parameters in one kernel."""

    _class = None  # its name in the generated table

    def __init__(self, *args, **kwargs):
        rows = CLASSES[self._class][2]
        extra = {
            key: kwargs.pop(key, standard)
            for key, standard in IGNORED.items()
            if key != ABSENT.get(self._class)
        }
        values = bind(self._class, rows, args, kwargs)
        params = values.pop("params")
        values = {k: float(v) if isinstance(v, Tensor) else v for k, v in values.items()}
        self._handle = construct(
            OptimizerHandle, self._class, CLASSES[self._class], dict(values, params=()), ENUMS
        )
        super().__init__(params, {**values, **extra})

    def _start(self):
        pass

    def __reduce__(self):
        return restored, (
            type(self),
            [dict(g) for g in self.param_groups],
            dict(self.defaults),
            self.state_dict(),
        )

    def _new_group(self, group):
        params = tuple(group["params"])
        if lib.tt_optim_add_param_group(
            local.ctx, self._handle, convert.pointers(params), convert.length(params)
        ):
            fail()
        return ParamGroup(self, len(self.param_groups), group)

    def zero_grad(self, set_to_none=True):
        """Takes the gradients away, or fills them with 0."""
        if lib.tt_optim_zero_grad(local.ctx, self._handle, c_int32(bool(set_to_none))):
            fail()

    def step(self, closure=None):
        """One step; closure, if given, recomputes the loss and its gradients first, and its result is returned."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        if lib.tt_optim_step(local.ctx, self._handle):
            fail()
        return loss

    def _states(self):
        """{position of a parameter: {name: tensor}}"""
        name, cap, found, x = create_string_buffer(96), c_int64(96), {}, c_double()
        for i in range(quick.tt_optim_num_numbers(self._handle)):
            if lib.tt_optim_number_at(local.ctx, self._handle, c_int64(i), name, cap, byref(x)):
                fail()
            head, position, key = name.value.decode().split(".", 2)
            if head == "state":
                found.setdefault(int(position), {})[key] = self._state(int(position), key)
        for i in range(quick.tt_optim_num_tensors(self._handle)):
            t = new(Tensor)
            if lib.tt_optim_tensor_at(local.ctx, self._handle, c_int64(i), name, cap, byref(t)):
                fail()
            _, position, key = name.value.decode().split(".", 2)
            found.setdefault(int(position), {})[key] = t
        return dict(sorted(found.items()))

    def _state(self, position, key):
        t = new(Tensor)
        if lib.tt_optim_get_state(
            local.ctx, self._handle, c_int64(position), c_char_p(key.encode()), byref(t)
        ):
            fail()
        return t

    @property
    def state(self):
        """{parameter: {name: tensor}}: shared tensors; what is put into it, or taken out, the optimizer knows."""
        return States(self)

    @state.setter
    def state(self, states):
        self._load(
            {
                i: states.get(p, {})
                for i, p in enumerate(p for g in self.param_groups for p in g["params"])
            }
        )

    def _load(self, states):
        old = self._states()
        for position, state in states.items():
            for key in old.get(position, {}):
                if key not in state:
                    self._set_state(position, key, None)
            for key, value in state.items():
                if value is not None:
                    self._set_state(position, key, value)

    def _set_state(self, position, key, value):
        if value is not None and not isinstance(value, Tensor):
            from .._create import tensor

            value = tensor(value)
        if lib.tt_optim_set_state(
            local.ctx,
            self._handle,
            c_int64(position),
            c_char_p(key.encode()),
            None if value is None else value,
        ):
            fail()


class State(dict):
    """The state of one parameter."""

    def __init__(self, optimizer, position, items=()):
        super().__init__(items)
        self._optimizer, self._position = optimizer, position

    def __setitem__(self, key, value):
        self._optimizer._set_state(self._position, key, value)
        super().__setitem__(key, self._optimizer._state(self._position, key))

    def __delitem__(self, key):
        super().__delitem__(key)
        self._optimizer._set_state(self._position, key, None)

    def __reduce__(self):
        return dict, (dict(self),)

    update, setdefault, pop, clear = (
        MutableMapping.update,
        MutableMapping.setdefault,
        MutableMapping.pop,
        MutableMapping.clear,
    )
    popitem = MutableMapping.popitem


class States(State):
    """{parameter: its state}"""

    def __init__(self, optimizer):
        params = [p for g in optimizer.param_groups for p in g["params"]]
        dict.__init__(
            self, {params[i]: State(optimizer, i, s) for i, s in optimizer._states().items()}
        )
        self._optimizer, self._places = optimizer, {p: i for i, p in enumerate(params)}

    def __missing__(self, p):
        return State(self._optimizer, self._places[p])

    def __setitem__(self, p, items):
        self._optimizer._load({self._places[p]: items})
        dict.__setitem__(self, p, State(self._optimizer, self._places[p], items))

    def __delitem__(self, p):
        dict.__delitem__(self, p)
        self._optimizer._load({self._places[p]: {}})


def restored(cls, groups, defaults, state):
    made = cls(groups, **defaults)
    made.load_state_dict(state)
    return made


def native(name):
    """The class of a row of the table."""
    doc = (
        CLASSES[name][1]
        + "\n\n"
        + "\n".join(f"  {a}: default {d[0]}" for a, _, d, _, _ in CLASSES[name][2] if d)
    )
    return type(
        name, (NativeOptimizer,), {"__doc__": doc, "_class": name, "__module__": "tt.optim"}
    )


NATIVE = {name: native(name) for name in VALUES}
