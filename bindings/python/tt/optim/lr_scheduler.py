"""Learning-rate schedules, by the names of torch.optim.lr_scheduler. Those of libtt live in C; LRScheduler is the base of one's own."""
from bisect import bisect_right
from contextlib import contextmanager
from ctypes import (
    CFUNCTYPE,
    POINTER,
    byref,
    c_char_p,
    c_double,
    c_int32,
    c_int64,
    c_void_p,
    create_string_buffer,
)
from weakref import WeakKeyDictionary

from .._construct import bind, construct
from .._hooks import guarded
from .._lib import Handle, fail, lib, local, quick, released_by
from .._optim_classes import CLASSES, ENUMS, VALUES
from .._ops import zeros
from .optimizer import EXTRAS, NATIVE, NativeOptimizer
from .schedules import (
    CosineAnnealingWarmRestarts,
    CyclicLR,
    LRScheduler,
    ReduceLROnPlateau,
    check_optimizer,
    kept,
    one_per_group,
)


# ---- what C's schedules move: an optimizer of C, or for one of Python a stand-in with the same rates ----

CARRIED = ("lr", "initial_lr", "momentum", "betas")
stand_ins = WeakKeyDictionary()


def moved(optimizer):
    if isinstance(optimizer, NativeOptimizer):
        return optimizer
    if optimizer not in stand_ins:
        kind = NATIVE[
            "Adam"
            if "betas" in optimizer.defaults
            else "SGD"
            if "momentum" in optimizer.defaults
            else "Adagrad"
        ]
        stand_ins[optimizer] = kind([{"params": [zeros(1)]} for _ in optimizer.param_groups])
    return stand_ins[optimizer]


@contextmanager
def carried(optimizer):
    """Around a step of a schedule: the stand-in takes over the optimizer's rates, and gives it the new ones."""
    pairs = (
        list(zip(optimizer.param_groups, moved(optimizer).param_groups))
        if not isinstance(optimizer, NativeOptimizer)
        else ()
    )
    for group, stand_in in pairs:
        stand_in.update((key, group[key]) for key in CARRIED if key in group)
    yield
    for group, stand_in in pairs:
        group.update(
            (key, stand_in[key])
            for key in CARRIED
            if key in stand_in and (key in group or key == "initial_lr")
        )


class SchedulerHandle(Handle):
    __slots__ = ()


released_by(SchedulerHandle, quick.tt_scheduler_release)


class NativeScheduler(LRScheduler):
    """A schedule that libtt computes, on one of its optimizers."""

    _class = None

    def __init__(self, *args, **kwargs):
        name = self._class
        values = bind(name, CLASSES[name][2], args, kwargs)
        self._given = {
            arg: values[arg]
            for arg, _, default, _, _ in CLASSES[name][2]
            if not default or values[arg] is not default[0]
        }
        self._begin(values)
        self.__dict__.update(
            (key, value)
            for key, value in values.items()
            if not hasattr(type(self), key) and key not in self.__dict__
        )
        with carried(self.optimizer):
            self._handle = construct(
                SchedulerHandle,
                name,
                CLASSES[name],
                {**values, "optimizer": moved(self.optimizer)},
                ENUMS,
            )

    def __reduce__(self):
        return restored, (type(self), self._given, self.optimizer, self.state_dict())

    def _begin(self, values):
        """Checks the optimizer, brings arguments into the table's form."""
        optimizer = values["optimizer"]
        check_optimizer(optimizer, values["last_epoch"])
        self.optimizer = optimizer
        for arg, kind, default, _, _ in CLASSES[self._class][2]:
            if kind == "Float[]":
                given = values[arg]
                if default and given is default[0]:
                    continue  # one number for all groups
                values[arg] = [float(x) for x in one_per_group(arg, given, optimizer)]
            elif kind == "Int[]":
                values[arg] = list(values[arg])
            elif kind.startswith("Enum<") and values[arg] not in ENUMS[kind[5:-1]]:
                raise ValueError(
                    f"{arg} must be one of {sorted(ENUMS[kind[5:-1]])}, not {values[arg]!r}"
                )

    @property
    def last_epoch(self):
        return quick.tt_scheduler_last_epoch(self._handle)

    @property
    def base_lrs(self):
        return self.state_dict()["base_lrs"]

    def step(self, epoch=None):
        """Sets the rates; call it after the optimizer's step. epoch: goes there by the closed form."""
        with carried(self.optimizer):
            if (
                lib.tt_scheduler_step(local.ctx, self._handle)
                if epoch is None
                else lib.tt_scheduler_step_to(local.ctx, self._handle, c_int64(epoch))
            ):
                fail()

    def _update_lr(self, epoch=None):
        self.step(epoch)

    def _initial_step(self):
        self._load_number("_step_count", 0)
        self.step()

    def _undo(self):
        self._load_number("last_epoch", self.last_epoch - 1)

    def get_last_lr(self):
        n, cap = c_int64(), len(self.optimizer.param_groups)
        found = (c_double * max(cap, 1))()
        if lib.tt_scheduler_get_last_lr(local.ctx, self._handle, found, c_int64(cap), byref(n)):
            fail()
        return list(found[: n.value])

    def _numbers(self):
        name, x = create_string_buffer(512), c_double()
        for i in range(quick.tt_scheduler_num_numbers(self._handle)):
            if lib.tt_scheduler_number_at(
                local.ctx, self._handle, c_int64(i), name, c_int64(512), byref(x)
            ):
                fail()
            yield name.value.decode(), x.value

    def state_dict(self):
        """Steps and rates; those of parts under "_schedulers"."""
        root = {}
        for name, value in self._numbers():
            at, keys = root, name.split(".")
            while keys[0].isdigit():
                parts, i = at.setdefault("_schedulers", []), int(keys.pop(0))
                parts.extend({} for _ in range(i + 1 - len(parts)))
                at = parts[i]
            if len(keys) == 1:
                at[keys[0]] = int(value)
            else:
                at.setdefault(keys[0], []).append(value)
        return root

    def load_state_dict(self, state_dict):
        def load(state, prefix):
            for key, value in state.items():
                if key == "_schedulers":
                    for i, part in enumerate(value):
                        load(part, f"{prefix}{i}.")
                elif key in ("base_lrs", "_last_lr"):
                    for i, x in enumerate(value):
                        self._load_number(f"{prefix}{key}.{i}", x)
                elif key in ("last_epoch", "_step_count"):
                    self._load_number(prefix + key, value)

        load(state_dict, "")

    def _load_number(self, name, value):
        if lib.tt_scheduler_load_number(
            local.ctx, self._handle, c_char_p(name.encode()), c_double(value)
        ):
            fail()


def restored(cls, given, optimizer, state):
    """A copy of a schedule, whose constructor must not move the optimizer again."""
    before = [
        {key: group[key] for key in (*CARRIED, *EXTRAS) if key in group}
        for group in optimizer.param_groups
    ]
    made = cls(**given)
    made.load_state_dict(state)
    for group, values in zip(optimizer.param_groups, before):
        group.update(values)
    return made


def blank(cls):
    return object.__new__(cls)


def checked(name, schedulers, optimizer):
    """The parts of a scheduler of schedulers, and their optimizer."""
    parts = list(schedulers)
    if not parts:
        raise ValueError(f"{name} needs at least one scheduler")
    optimizer = optimizer or getattr(parts[0], "optimizer", None)
    for i, part in enumerate(parts):
        if not hasattr(part, "optimizer"):
            raise TypeError(
                f"{name}: schedulers[{i}] must be a scheduler, not {type(part).__name__}"
            )
        if isinstance(part, ReduceLROnPlateau):
            raise ValueError(
                f"{name}: schedulers[{i}] is a ReduceLROnPlateau, whose step() needs a metric"
            )
        if part.optimizer is not optimizer:
            raise ValueError(f"{name}: schedulers[{i}] belongs to another optimizer")
    return parts, optimizer


class Composite(NativeScheduler):
    """A scheduler of schedulers."""

    def _begin(self, values):
        parts, optimizer = checked(self._class, values["schedulers"], values.get("optimizer"))
        self.optimizer, self._schedulers = optimizer, parts
        values.update(schedulers=parts, optimizer=optimizer)
        if "milestones" in values:
            values["milestones"] = list(values["milestones"])

    def _initial_step(self):
        self.step()

    def _undo(self):
        for part in self._schedulers:
            part._undo()


def are_native(schedulers):
    return all(
        isinstance(part, NativeScheduler) and not isinstance(part, Mixed) for part in schedulers
    )


class SequentialLR(Composite):
    __doc__ = CLASSES["SequentialLR"][1]
    _class = "SequentialLR"

    def __new__(cls, optimizer, schedulers, milestones, last_epoch=-1):
        return object.__new__(cls if are_native(schedulers) else MixedSequentialLR)


class ChainedScheduler(Composite):
    __doc__ = CLASSES["ChainedScheduler"][1]
    _class = "ChainedScheduler"

    def __new__(cls, schedulers, optimizer=None):
        return object.__new__(cls if are_native(schedulers) else MixedChainedScheduler)

    def __init__(self, schedulers, optimizer=None):
        super().__init__(checked(self._class, schedulers, optimizer)[0])


class Mixed(Composite):
    """Of schedulers that are not all of C's: those are stepped here."""

    last_epoch = base_lrs = None  # the instance's, not C's

    get_last_lr = LRScheduler.get_last_lr

    def __reduce__(self):
        return blank, (type(self),), self.__dict__

    def state_dict(self):
        state = {
            key: value
            for key, value in self.__dict__.items()
            if key not in ("optimizer", "_schedulers")
        }
        return {**state, "_schedulers": [part.state_dict() for part in self._schedulers]}

    def load_state_dict(self, state_dict):
        self.__dict__.update(
            (key, value) for key, value in state_dict.items() if key != "_schedulers"
        )
        for part, state in zip(self._schedulers, state_dict["_schedulers"]):
            part.load_state_dict(state)


class MixedSequentialLR(Mixed, SequentialLR):
    def __init__(self, optimizer, schedulers, milestones, last_epoch=-1):
        self._schedulers, self.optimizer = checked(self._class, schedulers, optimizer)
        self._milestones, self.last_epoch = list(milestones), last_epoch + 1
        if len(self._milestones) != len(self._schedulers) - 1:
            raise ValueError(
                f"SequentialLR: {len(self._schedulers)} schedulers need {len(self._schedulers) - 1} milestones, not {len(self._milestones)}"
            )
        for group in optimizer.param_groups:
            group["lr"] = kept(group["initial_lr"])
        self._undo()
        first = self._schedulers[bisect_right(self._milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self):
        """Sets the rates; call it after the optimizer's step."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        part = self._schedulers[i]
        if i and self._milestones[i - 1] == self.last_epoch:
            part._update_lr(0)
        else:
            part.step()
        self._last_lr = part.get_last_lr()


class MixedChainedScheduler(Mixed, ChainedScheduler):
    def __init__(self, schedulers, optimizer=None):
        self._schedulers, self.optimizer = checked(self._class, schedulers, optimizer)
        self._last_lr = [kept(group["lr"]) for group in self.optimizer.param_groups]

    def step(self):
        """Sets the rates; call it after the optimizer's step."""
        for part in self._schedulers:
            part.step()
        self._last_lr = [kept(group["lr"]) for group in self.optimizer.param_groups]


CALLBACK = CFUNCTYPE(c_int32, c_void_p, c_void_p, c_int64, c_int64, POINTER(c_double))


class ByFunction(NativeScheduler):
    _function = None

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        check_optimizer(optimizer, last_epoch)
        n = len(optimizer.param_groups)
        functions = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * n
        if len(functions) != n:
            raise ValueError(f"{n} functions are needed, one per group, not {len(functions)}")
        for f in functions:
            if not callable(f):
                raise TypeError(f"lr_lambda must be a function, not {type(f).__name__}")
        self.optimizer, self.lr_lambdas = optimizer, functions
        self._given = {"optimizer": optimizer, "lr_lambda": functions, "last_epoch": last_epoch}

        def factor(_user, _ctx, epoch, group, out):
            def body():
                out[0] = float(functions[group](epoch))

            return guarded(body)

        self._callback = CALLBACK(factor)  # lives as long as the handle
        self._handle = SchedulerHandle()
        with carried(optimizer):
            if getattr(lib, self._function)(
                local.ctx,
                moved(optimizer)._handle,
                self._callback,
                None,
                None,
                c_int64(last_epoch),
                byref(self._handle),
            ):
                fail()


class LambdaLR(ByFunction):
    """Multiplies each group's initial learning rate by lr_lambda(step); a list has one function per group."""

    _function = "tt_lr_lambda"


class MultiplicativeLR(ByFunction):
    """Multiplies each group's learning rate by lr_lambda(step) at every step."""

    _function = "tt_lr_multiplicative"


for _class in CLASSES:
    if _class not in VALUES and _class not in globals():
        globals()[_class] = type(
            _class,
            (NativeScheduler,),
            {"__doc__": CLASSES[_class][1], "_class": _class, "__module__": __name__},
        )
BASES = (NativeScheduler, Composite, ByFunction, Mixed, MixedSequentialLR, MixedChainedScheduler)
NATIVES = [
    name
    for name, x in globals().items()
    if isinstance(x, type) and issubclass(x, NativeScheduler) and x not in BASES
]
__all__ = sorted(
    ["CosineAnnealingWarmRestarts", "CyclicLR", "LRScheduler", "ReduceLROnPlateau", *NATIVES]
)
_LRScheduler = LRScheduler  # by which older scripts derive
