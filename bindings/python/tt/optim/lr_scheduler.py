"""Learning-rate schedules, by the names of torch.optim.lr_scheduler. Those of libtt live in C; LRScheduler is the base of one's own."""
from contextlib import contextmanager
from ctypes import CFUNCTYPE, POINTER, byref, c_char_p, c_double, c_int32, c_int64, c_void_p, create_string_buffer
from weakref import WeakKeyDictionary

from .._construct import bind, construct
from .._hooks import guarded
from .._lib import Handle, fail, lib, local, quick, released_by
from .._optim_classes import CLASSES, ENUMS, VALUES
from .._ops import zeros
from .optimizer import NATIVE, NativeOptimizer, Optimizer


def check_optimizer(optimizer, last_epoch):
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
    for i, group in enumerate(optimizer.param_groups):
        if last_epoch != -1 and "initial_lr" not in group:
            raise KeyError(f"param 'initial_lr' is not specified in param_groups[{i}] when resuming a scheduler with last_epoch {last_epoch}")


class LRScheduler:
    """Base class: get_lr() gives the rates after step self.last_epoch."""

    def __init__(self, optimizer, last_epoch=-1):
        check_optimizer(optimizer, last_epoch)
        self.optimizer, self.last_epoch = optimizer, last_epoch
        if last_epoch == -1:
            for group in optimizer.param_groups:
                group.setdefault("initial_lr", group["lr"])
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self._step_count, self._is_initial = 0, True
        self.step()
        self._is_initial = False

    def get_lr(self):
        raise NotImplementedError("a subclass of LRScheduler must define get_lr")

    def get_last_lr(self):
        """The rates that the last step has set, one per group."""
        return self._last_lr

    def step(self, epoch=None):
        """Sets the rates; call it after the optimizer's step."""
        self._step_count += 1
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed = getattr(self, "_get_closed_form_lr", None)
        rates = closed() if closed and epoch is not None else self.get_lr()
        for group, lr in zip(self.optimizer.param_groups, rates):
            group["lr"] = lr
        self._last_lr = [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self):
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict):
        self.__dict__.update(state_dict)


# ---- what C's schedules move: an optimizer of C, or for one of Python a stand-in with the same rates ----

CARRIED = ("lr", "initial_lr", "momentum", "betas")
stand_ins = WeakKeyDictionary()


def moved(optimizer):
    if isinstance(optimizer, NativeOptimizer):
        return optimizer
    if optimizer not in stand_ins:
        kind = NATIVE["Adam" if "betas" in optimizer.defaults else "SGD" if "momentum" in optimizer.defaults else "Adagrad"]
        stand_ins[optimizer] = kind([{"params": [zeros(1)]} for _ in optimizer.param_groups])
    return stand_ins[optimizer]


@contextmanager
def carried(optimizer):
    """Around a step of a schedule: the stand-in takes over the optimizer's rates, and gives it the new ones."""
    pairs = list(zip(optimizer.param_groups, moved(optimizer).param_groups)) if not isinstance(optimizer, NativeOptimizer) else ()
    for group, stand_in in pairs:
        stand_in.update((key, group[key]) for key in CARRIED if key in group)
    yield
    for group, stand_in in pairs:
        group.update((key, stand_in[key]) for key in CARRIED if key in stand_in and (key in group or key == "initial_lr"))


class SchedulerHandle(Handle):
    __slots__ = ()


released_by(SchedulerHandle, quick.tt_scheduler_release)


class NativeScheduler(LRScheduler):
    """A schedule that libtt computes, on one of its optimizers."""
    _class = None

    def __init__(self, *args, **kwargs):
        name = self._class
        values = bind(name, CLASSES[name][2], args, kwargs)
        self._begin(values)
        self.__dict__.update((key, value) for key, value in values.items() if not hasattr(type(self), key) and key not in self.__dict__)
        with carried(self.optimizer):
            self._handle = construct(SchedulerHandle, name, CLASSES[name], {**values, "optimizer": moved(self.optimizer)}, ENUMS)

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
                given = list(given) if isinstance(given, (list, tuple)) else [given] * len(optimizer.param_groups)
                if len(given) != len(optimizer.param_groups):
                    raise ValueError(f"{arg} must have {len(optimizer.param_groups)} values, not {len(given)}")
                values[arg] = [float(x) for x in given]
            elif kind == "Int[]":
                values[arg] = list(values[arg])
            elif kind.startswith("Enum<") and values[arg] not in ENUMS[kind[5:-1]]:
                raise ValueError(f"{arg} must be one of {sorted(ENUMS[kind[5:-1]])}, not {values[arg]!r}")

    @property
    def last_epoch(self):
        return quick.tt_scheduler_last_epoch(self._handle)

    @property
    def base_lrs(self):
        return self.state_dict()["base_lrs"]

    def step(self, epoch=None):
        """Sets the rates; call it after the optimizer's step. epoch: goes there by the closed form."""
        with carried(self.optimizer):
            if lib.tt_scheduler_step(local.ctx, self._handle) if epoch is None else lib.tt_scheduler_step_to(local.ctx, self._handle, c_int64(epoch)):
                fail()

    def get_last_lr(self):
        n, cap = c_int64(), len(self.optimizer.param_groups)
        found = (c_double * max(cap, 1))()
        if lib.tt_scheduler_get_last_lr(local.ctx, self._handle, found, c_int64(cap), byref(n)):
            fail()
        return list(found[:n.value])

    def _numbers(self):
        name, x = create_string_buffer(512), c_double()
        for i in range(quick.tt_scheduler_num_numbers(self._handle)):
            if lib.tt_scheduler_number_at(local.ctx, self._handle, c_int64(i), name, c_int64(512), byref(x)):
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
        if lib.tt_scheduler_load_number(local.ctx, self._handle, c_char_p(name.encode()), c_double(value)):
            fail()


class Composite(NativeScheduler):
    """A scheduler of schedulers."""

    def _begin(self, values):
        parts = list(values["schedulers"])
        if not parts:
            raise ValueError(f"{self._class} needs at least one scheduler")
        optimizer = values.get("optimizer") or parts[0].optimizer
        for i, part in enumerate(parts):
            if not isinstance(part, NativeScheduler):
                raise TypeError(f"{self._class}: schedulers[{i}] must be a scheduler of tt's own, not {type(part).__name__}")
            if part.optimizer is not optimizer:
                raise ValueError(f"{self._class}: schedulers[{i}] belongs to another optimizer")
        self.optimizer, self._schedulers = optimizer, parts
        values.update(schedulers=parts, optimizer=optimizer)
        if "milestones" in values:
            values["milestones"] = list(values["milestones"])


class SequentialLR(Composite):
    __doc__ = CLASSES["SequentialLR"][1]
    _class = "SequentialLR"


class ChainedScheduler(Composite):
    __doc__ = CLASSES["ChainedScheduler"][1]
    _class = "ChainedScheduler"

    def __init__(self, schedulers, optimizer=None):
        schedulers = list(schedulers)
        if optimizer is not None and any(s.optimizer is not optimizer for s in schedulers):
            raise ValueError("ChainedScheduler: a scheduler belongs to another optimizer")
        super().__init__(schedulers)


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

        def factor(_user, _ctx, epoch, group, out):
            def body():
                out[0] = float(functions[group](epoch))
            return guarded(body)
        self._callback = CALLBACK(factor)  # lives as long as the handle
        self._handle = SchedulerHandle()
        with carried(optimizer):
            if getattr(lib, self._function)(local.ctx, moved(optimizer)._handle, self._callback, None, None, c_int64(last_epoch), byref(self._handle)):
                fail()


class LambdaLR(ByFunction):
    """Multiplies each group's initial learning rate by lr_lambda(step); a list has one function per group."""
    _function = "tt_lr_lambda"


class MultiplicativeLR(ByFunction):
    """Multiplies each group's learning rate by lr_lambda(step) at every step."""
    _function = "tt_lr_multiplicative"


for _class in CLASSES:
    if _class not in VALUES and _class not in globals():
        globals()[_class] = type(_class, (NativeScheduler,), {"__doc__": CLASSES[_class][1], "_class": _class, "__module__": __name__})
__all__ = sorted(name for name, x in globals().items() if isinstance(x, type) and issubclass(x, LRScheduler) and name not in ("NativeScheduler", "Composite", "ByFunction"))
_LRScheduler = LRScheduler  # by which older scripts derive
