"""Layers that libtt computes: one class per declaration in src/nn/decl."""
import copy
from contextlib import contextmanager
from ctypes import byref, c_int32, c_int64, c_void_p, create_string_buffer

from .._kinds import kind_name
from .. import _nn_classes, _nn_layers
from .._construct import bind, construct
from .._convert import pointers
from .._lib import Handle, fail, lib, local, quick, released_by
from .._tensor import Tensor, new, wrap
from ..autograd import no_grad
from ..random import default_generator
from .module import Module
from .parameter import Parameter

MAX_OUTS = 16


class ModuleHandle(Handle):
    """Owns a tt_module."""

    __slots__ = ()


released_by(ModuleHandle, quick.tt_module_release)


@contextmanager
def undrawn():
    """First values that something else takes the place of draw no random numbers of the user's."""
    generator = default_generator()
    drawn = generator.get_state()
    try:
        yield
    finally:
        generator.set_state(drawn)


class Native(Module):
    """A layer of libtt: its parameters and buffers are those of the C module, its arguments are attributes."""

    def __init__(self, *args, **kwargs):
        super().__init__()
        name = type(self)._row_name
        row = _nn_classes.CLASSES[name]
        values = bind(name, row[2], args, kwargs)
        self._adopt(construct(ModuleHandle, name, row, self._given(values), _nn_classes.ENUMS))
        for key, value in as_shown(name, values).items():
            if (
                key not in ("device", "dtype")
                and key not in self._parameters
                and key not in self._buffers
            ):
                self.__dict__[key] = value
        if getattr(type(self), "reset_parameters", reset_parameters) is not reset_parameters:
            self.reset_parameters()

    def _given(self, values):
        """The arguments as C takes them: padding by name goes into a field of its own; None in sizes and as momentum is negative."""
        given = dict(values)
        if isinstance(given.get("padding"), str):
            given.update(padding=0, auto_padding=given["padding"])
        if "momentum" in given and given["momentum"] is None:
            given["momentum"] = -1.0
        if "output_size" in given:
            sizes = given["output_size"]
            given["output_size"] = tuple(
                -1 if s is None else s
                for s in (sizes if isinstance(sizes, (tuple, list)) else (sizes,))
            )
        return given

    def _adopt(self, h):
        self.__dict__["_module"] = h
        slots, buffers, _ = _nn_layers.LAYERS[type(self)._row_name]
        for name, is_buffer in zip(slots, buffers):
            t = new(Tensor)
            if lib.tt_module_get_tensor(local.ctx, h, name.encode(), byref(t)):
                fail()
            value = None if not t._address else t if is_buffer else Parameter.over(t)
            (self._buffers if is_buffer else self._parameters)[name] = value
        for i in range(quick.tt_module_num_children(h)):
            child = ModuleHandle()
            if lib.tt_module_child(local.ctx, h, c_int64(i), byref(child)):
                fail()
            self._modules[child_name(h, i)] = adopted(child)

    def _construct(self, tensors):
        """A C module of the same arguments; tensors: which of those by name are None."""
        row = _nn_classes.CLASSES[self._row_name]
        values = {
            key: tensors[key] is not None
            if key in tensors
            else self.__dict__.get(key, default[0] if default else None)
            for key, _, default, _, _ in row[2]
        }
        return construct(ModuleHandle, self._row_name, row, self._given(values), _nn_classes.ENUMS)

    def _renew(self, name, value):
        """An argument has changed: another C module with the same tensors."""
        old = self.__dict__[name]
        try:
            self.__dict__[name] = value
            self.__setstate__(self.__getstate__())
        except BaseException:
            self.__dict__[name] = old
            raise

    def __setattr__(self, name, value):
        if "_module" not in self.__dict__:
            return super().__setattr__(name, value)
        if name in self.__dict__ and any(
            name == row[0] for row in _nn_classes.CLASSES[self._row_name][2]
        ):
            return self.__dict__[name] is value or self._renew(name, value)
        super().__setattr__(name, value)
        if name == "training":
            status = lib.tt_module_train(local.ctx, self._module, c_int32(bool(value)))
        elif name in self._parameters:
            status = lib.tt_module_register_parameter(local.ctx, self._module, name.encode(), value)
        elif name in self._buffers:
            status = lib.tt_module_register_buffer(
                local.ctx,
                self._module,
                name.encode(),
                value,
                c_int32(name not in self._non_persistent),
            )
        else:
            return
        if status:
            fail()

    def __delattr__(self, name):
        super().__delattr__(name)
        slots, buffers, _ = _nn_layers.LAYERS[self._row_name]
        if name in slots:  # C's goes, too
            register = (
                lib.tt_module_register_buffer
                if buffers[slots.index(name)]
                else lib.tt_module_register_parameter
            )
            if register(local.ctx, self._module, name.encode(), None, c_int32(1)):
                fail()

    def forward(self, *args, **kwargs):
        if kwargs:
            args = in_order(
                type(self).__name__, _nn_layers.LAYERS[type(self)._row_name][2], args, kwargs
            )
        for x in args:
            if not (isinstance(x, Tensor) or x is None):
                raise TypeError(
                    f"{type(self).__name__}(): inputs must be Tensors, not {kind_name(x)}"
                )
        outs, n = (c_void_p * MAX_OUTS)(), c_int64()
        if lib.tt_module_forward(
            local.ctx,
            self._module,
            pointers(args),
            c_int64(len(args)),
            outs,
            c_int64(MAX_OUTS),
            byref(n),
        ):
            fail()
        made = tuple(map(wrap, outs[: n.value]))
        return made[0] if len(made) == 1 else made

    def __deepcopy__(self, memo):
        made = memo[id(self)] = self.__new__(type(self))
        made.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        return made

    def _inside(self):
        """Names of the layers inside it that are C's (attention has one)."""
        return [
            child_name(self._module, i) for i in range(quick.tt_module_num_children(self._module))
        ]

    def __getstate__(self):
        """Everything but the C module; of the layers inside it the tensors, by their dotted names."""
        inside = self._inside()
        tensors = {
            path: t
            for name in inside
            for group in ("_parameters", "_buffers")
            for path, t in self._modules[name]._named(group, name, True, False)
        }
        state = {
            **self.__dict__,
            "_modules": {name: m for name, m in self._modules.items() if name not in inside},
            "inside": tensors,
        }
        del state["_module"]
        return state

    def __setstate__(self, state):
        state = dict(state)
        inside, groups = state.pop("inside"), {
            group: state.pop(group) for group in ("_parameters", "_buffers", "_modules")
        }
        tensors = {**groups["_parameters"], **groups["_buffers"]}
        self.__dict__.update(state)
        with undrawn():
            made = self._construct(tensors)
        Module.__init__(self)
        self._adopt(made)
        self.__dict__.update(state)
        for group, items in groups.items():
            self.__dict__[group].update(items)
        for name in _nn_layers.LAYERS[self._row_name][0]:
            if name in tensors:
                setattr(self, name, tensors[name])
            else:
                delattr(self, name)
        for path, t in inside.items():
            owner, _, name = path.rpartition(".")
            setattr(self.get_submodule(owner), name, t)
        self.training = self.training
        for name in self._inside():
            self._modules[name].train(self.training)

    def extra_repr(self):
        n, buffer = c_int64(), create_string_buffer(4096)
        if lib.tt_module_print(local.ctx, self._module, buffer, c_int64(4096), byref(n)):
            fail()
        text = buffer.value.decode()
        return text[text.index("(") + 1 : -1].split("\n")[0] if not self._inside() else ""


def as_shown(name, values):
    """Arguments as PyTorch's attributes have them: tuples of convolutions, the stride of pooling."""
    wide = (
        {"kernel_size", "stride", "padding", "dilation", "output_padding"}
        if name.startswith("Conv")
        else {"normalized_shape"}
    )
    n = int(name[-2]) if name.startswith("Conv") else 1
    shown = {
        key: (x,) * n
        if key in wide and isinstance(x, int)
        else tuple(x)
        if key in wide and isinstance(x, list)
        else x
        for key, x in values.items()
    }
    if shown.get("stride", 0) is None:
        shown["stride"] = shown["kernel_size"]
    return shown


def reset_parameters(self):
    """New first values for parameters and buffers. Construction calls it where a subclass has its own."""
    fresh = self.__new__(type(self))
    Module.__init__(fresh)
    fresh._adopt(self._construct({**self._parameters, **self._buffers}))
    with no_grad():
        for name, t in (*fresh.named_parameters(), *fresh.named_buffers()):
            owner, _, key = name.rpartition(".")
            own = getattr(self.get_submodule(owner), key)
            if own is not None:
                own.copy_(t)


def reset_running_stats(self):
    """The statistics as they were at first."""
    if self.track_running_stats:
        for t, value in (
            (self.running_mean, 0),
            (self.running_var, 1),
            (self.num_batches_tracked, 0),
        ):
            t.fill_(value)


def in_order(op, names, args, kwargs):
    """Keyword inputs at their places."""
    given = dict(zip(names, args))
    for key, value in kwargs.items():
        if key not in names:
            raise TypeError(f"{op}() got an unexpected keyword argument '{key}'")
        if key in given:
            raise TypeError(f"{op}() got multiple values for argument '{key}'")
        given[key] = value
    last = max(i for i, n in enumerate(names) if n in given)
    return [given.get(n) for n in names[: last + 1]]


def child_name(h, i):
    return quick.tt_module_child_name(h, c_int64(i)).decode()


def adopted(h):
    """The layer object over a C module that nobody else has wrapped."""
    name = quick.tt_module_type(h).decode()
    made = object.__new__(LAYERS.get(name, LAYERS["Linear"]))
    Module.__init__(made)
    made._adopt(h)
    return made


CONTAINERS = {"Sequential", "ModuleList", "ModuleDict", "Identity"}
LAYERS = {}
for _name, (_function, _doc, _rows) in _nn_classes.CLASSES.items():
    if _name not in CONTAINERS:
        _shown = ", ".join(a if d is None else f"{a}={d[0]!r}" for a, _, d, _, _ in _rows)
        LAYERS[_name] = type(
            _name,
            (Native,),
            {"_row_name": _name, "__doc__": f"{_name}({_shown})\n\n{_doc}", "__module__": "tt.nn"},
        )
        if not all(_nn_layers.LAYERS[_name][1]):
            LAYERS[_name].reset_parameters = reset_parameters
        if _name.startswith("BatchNorm"):
            LAYERS[_name].reset_running_stats = reset_running_stats
globals().update(LAYERS)
