"""NativeOptimizer: the base of the optimizers that libtt runs, with groups and state in C."""
from __future__ import annotations

from collections.abc import MutableMapping
from ctypes import byref, c_char_p, c_double, c_int32, c_int64, create_string_buffer
from typing import Any, Callable, Iterable

from .. import _convert as convert
from .._construct import construct
from .._lib import Handle, fail, finalizer, lib, local, quick
from .._layout import SparseGrads
from .._tensor import Tensor, tensor_result
from ..autograd import enable_grad
from ..errors import ShapeError
from .edits import EditedList
from .optimizer import Optimizer, Params

# values of a group that schedules keep in C
OF_SCHEDULES = ("initial_lr", "max_lr", "min_lr", "base_momentum", "max_momentum", "swa_lr")
NAME_CAP = c_int64(96)
NAN = float("nan")  # in C: a number that is not given


class ParamGroup(dict[Any, Any]):
    """A parameter group whose numbers are in C. Reading returns the values for the next step."""

    def __init__(self, optimizer: NativeOptimizer, number: int, group: dict[str, Any]) -> None:
        super().__init__()
        self._optimizer = optimizer
        self._tensors: dict[str, float] = {}  # keys that have tensors -> their numbers in C
        self._begin(number, group)

    def _begin(self, number: int, group: dict[str, Any]) -> None:
        """Writes the values to a group of C."""
        self._number = number
        # key -> names in C, kind
        self._values: dict[str, tuple[tuple[str, ...], Any]] = {
            key: (names, kind) for key, names, kind in self._optimizer._values
        }
        self._values.update((key, ((key,), float)) for key in OF_SCHEDULES)
        for key, value in group.items():
            self[key] = value

    def _read(self, key: str) -> None:
        """Copies a value from C into the dict."""
        names, kind = self._values[key]
        parts: list[Any] = []
        for name in names:
            x = c_double()
            if lib.tt_optim_get_f64(
                local.ctx,
                self._optimizer._handle,
                c_int64(self._number),
                c_char_p(name.encode()),
                byref(x),
            ):
                return  # a value of a schedule that is not set
            parts.append(kind[int(x.value)] if isinstance(kind, tuple) else kind(x.value))
        value = tuple(parts) if len(parts) > 1 else parts[0]
        if key in self._tensors:
            if value != self._tensors[key]:  # a schedule has changed it
                dict.__getitem__(self, key).fill_(value)
                self._tensors[key] = value
            return
        if not dict.__contains__(self, key) or dict.__getitem__(self, key) != value:
            dict.__setitem__(self, key, value)

    def _read_all(self) -> None:
        for key in self._values:
            self._read(key)

    def __setitem__(self, key: str, value: Any) -> None:
        if key == "params":
            self._optimizer._unsettled = True
            value = EditedList(self._optimizer, value)
        elif key in self._values:
            self._write(key, value)
            self._tensors.pop(key, None)
            if isinstance(value, Tensor):
                self._optimizer._unsettled = True
                self._tensors[key] = float(value)
        dict.__setitem__(self, key, value)

    def _settle(self) -> None:
        """Writes the numbers of changed tensors to C."""
        for key, known in self._tensors.items():
            value = float(dict.__getitem__(self, key))
            if value != known:
                self._write(key, value)
                self._tensors[key] = value

    def _write(self, key: str, value: Any) -> None:
        """Sets a value in C."""
        names, kind = self._values[key]
        if isinstance(kind, tuple):
            if value not in kind:
                allowed = " or ".join(map(repr, kind))
                raise ValueError(f"{key} is {value!r}: must be {allowed}")
            value = kind.index(value)
        elif value is None:
            return  # C has the default
        parts = tuple(value) if len(names) > 1 else (value,)
        if len(parts) != len(names):
            raise ValueError(f"{key} must have {len(names)} numbers, not {len(parts)}")
        for name, part in zip(names, parts):
            if lib.tt_optim_set_f64(
                local.ctx,
                self._optimizer._handle,
                c_int64(self._number),
                c_char_p(name.encode()),
                c_double(NAN if part is None else float(part)),
            ):
                fail()

    def __getitem__(self, key: str) -> Any:
        if key in self._values:
            self._read(key)
        return dict.__getitem__(self, key)

    def __contains__(self, key: Any) -> bool:
        if key in self._values:
            self._read(key)
        return dict.__contains__(self, key)

    def __iter__(self) -> Any:
        self._read_all()
        return dict.__iter__(self)

    def __len__(self) -> int:
        self._read_all()
        return dict.__len__(self)

    def keys(self) -> Any:
        self._read_all()
        return dict.keys(self)

    def values(self) -> Any:
        self._read_all()
        return dict.values(self)

    def items(self) -> Any:
        self._read_all()
        return dict.items(self)

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, *args: Any, **kwargs: Any) -> None:
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def __delitem__(self, key: str) -> None:
        if key not in self._values:
            dict.__delitem__(self, key)

    def copy(self) -> dict[str, Any]:
        return dict(self.items())

    def __reduce__(self) -> Any:
        return dict, (self.copy(),)

    def __repr__(self) -> str:
        self._read_all()
        return dict.__repr__(self)


def numbers_of(name: str, values: Any) -> tuple[float, ...]:
    """Converts values to numbers. They must be all numbers or all tensors of one element."""
    if len({isinstance(v, Tensor) for v in values}) > 1:
        raise ValueError(f"{name} must be all numbers or all tensors")
    return tuple(float(v) if isinstance(v, Tensor) else v for v in values)


class OptimizerHandle(Handle):
    """Owns a tt_optimizer."""

    __slots__ = ()
    __del__ = finalizer(quick.tt_optim_release)


class NativeOptimizer(Optimizer):
    """An optimizer that libtt runs. A step updates all parameters in one call."""

    _class = ""  # name in messages
    _function = ""  # C function that constructs it
    _arguments: tuple[Any, ...] = ()  # rows as _construct.py describes them
    # values of a group: (key, names in C, kind). kind: a type, or the names of an enum
    _values: tuple[Any, ...] = ()
    _handle: OptimizerHandle
    _groups: list[Any]
    _known: list[tuple[ParamGroup, list[Tensor]]]  # groups in C, and their parameters there
    # whether param_groups, values that are tensors or states may differ from what C has
    _unsettled = False
    # id of a parameter -> it, and states that C does not take: of those that were removed from
    # param_groups, and of another shape before a parameter is replaced
    _apart: dict[int, tuple[Tensor, dict[str, Any]]]
    # after parameters were replaced: what schedules change, with as many groups
    _stand_in: NativeOptimizer | None = None
    # the handle of a GradScaler that decides whether a step in a recording is taken
    _scaler: Any = None

    def _initialize(self, *, params: Params, **values: Any) -> None:
        """Completes the constructor; values: its other arguments by name."""
        if "betas" in values:
            values["betas"] = numbers_of("betas", values["betas"])
        if values.get("fused") and values.get("differentiable"):
            raise RuntimeError("`fused` does not support `differentiable`")
        if values.get("fused") and values.get("foreach"):
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
        is_adam = "amsgrad" in values  # PyTorch refuses it of Adam and AdamW alone
        if is_adam and values.get("foreach") and not values.get("capturable"):
            if isinstance(values["lr"], Tensor):
                raise ValueError("lr is a tensor: with foreach=True it must be a number")
        self._handle, self._apart = self._constructed(values), {}
        Optimizer.__init__(self, params, values)

    def _constructed(self, values: dict[str, Any]) -> OptimizerHandle:
        """Returns an optimizer of C without groups."""
        given = {k: float(v) if isinstance(v, Tensor) else v for k, v in values.items()}
        given["params"] = ()
        for key, names, _ in self._values:
            if key not in names and len(names) == len(given[key]):
                given.update(zip(names, given[key]))
        return construct(OptimizerHandle, self._function, self._class, self._arguments, given)

    def __reduce__(self) -> Any:
        self._settle()
        groups = [dict(group) for group in self.param_groups]
        return restored, (type(self), groups, dict(self.defaults), self.state_dict())

    def _start(self) -> None:
        self._known = []

    # ---- groups ----

    @property
    def param_groups(self) -> list[Any]:
        """The groups: dicts of values with a list of parameters. The application may change them:
        the next step takes that over."""
        return self._groups

    @param_groups.setter
    def param_groups(self, groups: Iterable[Any]) -> None:
        self._groups, self._unsettled = EditedList(self, groups), True

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a dict with "params" and the values that differ from the defaults."""
        self._settle()
        super().add_param_group(param_group)
        self._settle()

    def _new_group(self, group: dict[str, Any]) -> dict[str, Any]:
        params = list(group["params"])
        self._add_params(self._handle, params)
        made = ParamGroup(self, len(self._known), group)
        self._known.append((made, params))
        return made

    def _add_params(self, handle: OptimizerHandle, params: list[Tensor]) -> None:
        if lib.tt_optim_add_param_group(
            local.ctx, handle, convert.pointers(tuple(params)), convert.length(params)
        ):
            fail()

    def _settle(self) -> None:
        """Gives C what the application has changed in param_groups."""
        if not self._unsettled:
            return
        known = [(id(group), [id(p) for p in params]) for group, params in self._known]
        if known != [(id(group), [id(p) for p in group["params"]]) for group in self._groups]:
            self._begin_again()
        for group in self._groups:
            group._settle()
        self._unsettled = bool(self._apart) or any(group._tensors for group in self._groups)

    def _begin_again(self) -> None:
        """Makes another optimizer of C, with the groups and parameters of param_groups. Values and
        states are kept; schedules still change the first one, from which rates are copied."""
        groups = [{**self.defaults, **group} for group in self._groups]
        params = [p for group in groups for p in group["params"]]
        self._check_types(params)
        if len({id(p) for p in params}) < len(params):
            raise ValueError("some parameters appear in more than one parameter group")
        states = {id(p): (p, dict(state)) for p, state in States(self).items()}
        handle = self._constructed(self.defaults)
        for group in groups:
            self._add_params(handle, group["params"])
        if self._stand_in is None:
            self._stand_in = object.__new__(type(self))
            self._stand_in._handle = self._handle
            n = len(self._known)
            self._stand_in._groups = [ParamGroup(self._stand_in, i, {}) for i in range(n)]
        for former, _ in self._known:
            former._values, former._tensors = {}, {}  # a plain dict, if it was removed
        self._handle, self._known = handle, []
        for i, (kept, group) in enumerate(zip(list(self._groups), groups)):
            made = kept if isinstance(kept, ParamGroup) else ParamGroup(self, i, {})
            made._begin(i, group)
            list.__setitem__(self._groups, i, made)
            self._known.append((made, list(group["params"])))
        self._apart = states
        self._load({i: states.pop(id(p))[1] for i, p in enumerate(params) if id(p) in states})

    def _position(self, param: Tensor) -> int | None:
        """Returns the position of a parameter in C; None if it is not there."""
        positions = (i for i, p in enumerate(self._params_of_c()) if p is param)
        return next(positions, None)

    def _params_of_c(self) -> list[Tensor]:
        return [p for _, params in self._known for p in params]

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Removes the parameters' gradients. set_to_none=False fills them with 0 instead."""
        if self._unsettled:
            self._settle()
        if SparseGrads.seen:
            from .. import _sparse_grad

            _sparse_grad.zero(self._params(), set_to_none)
        if lib.tt_optim_zero_grad(local.ctx, self._handle, c_int32(bool(set_to_none))):
            fail()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates the parameters from their gradients.

        closure: called first, with gradients enabled, to recompute the loss and its gradients. step
            returns its result.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        if self._unsettled:
            self._settle_for_step()
        if self._scaler is not None:
            self._scaler.step(self._handle)
        elif SparseGrads.seen:
            from .. import _sparse_grad

            _sparse_grad.step(self)
        elif lib.tt_optim_step(local.ctx, self._handle):
            fail()
        return loss

    def _settle_for_step(self) -> None:
        """Gives C what the application has changed. Raises if a state has a wrong shape."""
        self._settle()
        for position, p in enumerate(self._params_of_c()):
            if id(p) in self._apart:
                self._load({position: {**self.state[p], **self._apart[id(p)][1]}})

    def _step(self) -> None:
        """Updates the parameters that have dense gradients."""
        if lib.tt_optim_step(local.ctx, self._handle):
            fail()

    # ---- state ----

    @property
    def state(self) -> Any:
        """{parameter: {name: tensor}}. Changes of the dicts and their tensors change the
        optimizer."""
        self._settle()
        return States(self)

    @state.setter
    def state(self, states: Any) -> None:
        self._settle()
        self._load({i: states.get(p, {}) for i, p in enumerate(self._params())})

    def _states(self) -> dict[int, dict[str, Any]]:
        """Returns {index of a parameter: {name: tensor}}."""
        name, x = create_string_buffer(NAME_CAP.value), c_double()
        states: dict[int, dict[str, Any]] = {}
        for i in range(quick.tt_optim_num_numbers(self._handle)):
            if lib.tt_optim_number_at(
                local.ctx, self._handle, c_int64(i), name, NAME_CAP, byref(x)
            ):
                fail()
            head, position, key = name.value.decode().split(".", 2)
            if head == "state":
                number = self._number(int(position), key, x.value)
                states.setdefault(int(position), {})[key] = number
        for i in range(quick.tt_optim_num_tensors(self._handle)):
            t = tensor_result("tt_optim_tensor_at", self._handle, c_int64(i), name, NAME_CAP)
            _, position, key = name.value.decode().split(".", 2)
            states.setdefault(int(position), {})[key] = t
        return dict(sorted(states.items()))

    def _number(self, position: int, key: str, value: float) -> Any:
        """Returns a number of a parameter's state as the state's dict has it."""
        return self._state(position, key)

    def _state(self, position: int, key: str) -> Any:
        """Returns a tensor of a parameter's state; None if there is none."""
        return tensor_result(
            "tt_optim_get_state", self._handle, c_int64(position), c_char_p(key.encode())
        )

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads the state and the groups' values of a state_dict(): all, or nothing if it raises.

        Raises ValueError if its groups have other sizes.
        """
        self._settle()
        states, groups = self._states(), [group.copy() for group in self.param_groups]
        try:
            super().load_state_dict(state_dict)
        except Exception:
            self._load({i: states.get(i, {}) for i in range(len(self._params()))})
            for group, before in zip(self.param_groups, groups):
                for key in [key for key in group if key not in before]:
                    del group[key]
                group.update((key, value) for key, value in before.items() if key != "params")
            raise

    def _load(self, states: dict[int, dict[str, Any]]) -> None:
        old = self._states()
        for position, state in states.items():
            for key in old.get(position, {}):
                if key not in state:
                    self._set_state(position, key, None)
            for key, value in state.items():
                if value is not None:
                    self._set_state(position, key, value)

    def _set_state(self, position: int, key: str, value: Any) -> None:
        """Sets a tensor of a parameter's state; None removes it."""
        if value is not None and not isinstance(value, Tensor):
            from .._create import tensor

            value = tensor(value)
        if lib.tt_optim_set_state(
            local.ctx, self._handle, c_int64(position), c_char_p(key.encode()), value
        ):
            fail()

    def _taken(self, p: Tensor, position: int, key: str, value: Any) -> Any:
        """Sets a tensor of a parameter's state and returns that of C. One of another shape is kept
        apart: the next step refuses it unless the parameter was replaced."""
        try:
            self._set_state(position, key, value)
        except ShapeError:
            self._apart.setdefault(id(p), (p, {}))[1][key] = value
            self._unsettled = True
            return value
        if id(p) in self._apart:
            self._apart[id(p)][1].pop(key, None)
            if not self._apart[id(p)][1]:
                del self._apart[id(p)]
        return self._state(position, key)


class State(dict[Any, Any]):
    """The state of one parameter: {name: tensor}. Changes are written to C."""

    def __init__(
        self, optimizer: NativeOptimizer, param: Tensor | None, items: Iterable[Any] = ()
    ) -> None:
        super().__init__(items)
        self._optimizer, self._param = optimizer, param

    def __setitem__(self, key: Any, value: Any) -> None:
        param, position = self._param, self._position()
        if param is not None and position is not None:
            value = self._optimizer._taken(param, position, key, value)
        super().__setitem__(key, value)

    def __delitem__(self, key: Any) -> None:
        super().__delitem__(key)
        position = self._position()
        if position is not None:
            self._optimizer._set_state(position, key, None)

    def _position(self) -> int | None:
        return None if self._param is None else self._optimizer._position(self._param)

    def __reduce__(self) -> Any:
        return dict, (dict(self),)

    # those of dict would not call __setitem__ and __delitem__
    update = MutableMapping.update
    setdefault = MutableMapping.setdefault
    pop = MutableMapping.pop
    popitem = MutableMapping.popitem
    clear = MutableMapping.clear


class States(State):
    """The state of all parameters: {parameter: its state}."""

    def __init__(self, optimizer: NativeOptimizer) -> None:
        super().__init__(optimizer, None)
        params = optimizer._params_of_c()
        states = {params[i]: s for i, s in optimizer._states().items()}
        for p, apart in optimizer._apart.values():
            states[p] = {**states.get(p, {}), **apart}
        for p, state in states.items():
            dict.__setitem__(self, p, State(optimizer, p, state))

    def __missing__(self, p: Tensor) -> State:
        if self._optimizer._position(p) is None:
            raise KeyError("the optimizer has no such parameter")
        return State(self._optimizer, p)

    def __setitem__(self, p: Tensor, items: Any) -> None:
        position = self._optimizer._position(p)
        self._optimizer._apart.pop(id(p), None)
        if position is None:  # it is put into a group later
            self._optimizer._apart[id(p)] = p, dict(items)
            self._optimizer._unsettled = True
        else:
            self._optimizer._load({position: items})
        dict.__setitem__(self, p, State(self._optimizer, p, items))

    def __delitem__(self, p: Tensor) -> None:
        dict.__delitem__(self, p)
        self._optimizer._apart.pop(id(p), None)
        position = self._optimizer._position(p)
        if position is not None:
            self._optimizer._load({position: {}})


def restored(
    cls: type[NativeOptimizer],
    groups: list[dict[str, Any]],
    defaults: dict[str, Any],
    state: dict[str, Any],
) -> NativeOptimizer:
    """Unpickles an optimizer: see NativeOptimizer.__reduce__."""
    optimizer: Any = cls(groups, **defaults)
    optimizer.load_state_dict(state)
    return optimizer
