"""Layers that libtt computes: one class per declaration in src/nn/decl."""
from ctypes import byref, c_int32, c_int64, c_void_p, create_string_buffer

from .. import _nn_classes, _nn_layers
from .._construct import bind, construct
from .._convert import pointers
from .._lib import Handle, fail, lib, local, quick, released_by
from .._tensor import Tensor, new, wrap
from ..random import default_generator
from .module import Module
from .parameter import Parameter

MAX_OUTS = 16


class ModuleHandle(Handle):
    """Owns a tt_module."""
    __slots__ = ()


released_by(ModuleHandle, quick.tt_module_release)


class Native(Module):
    """A layer of libtt: its parameters and buffers are those of the C module, its arguments are attributes."""

    def __init__(self, *args, **kwargs):
        super().__init__()
        name = type(self)._row_name
        row = _nn_classes.CLASSES[name]
        values = bind(name, row[2], args, kwargs)
        self._adopt(construct(ModuleHandle, name, row, self._given(values), _nn_classes.ENUMS))
        for key, value in values.items():
            if key not in ("device", "dtype") and key not in self._parameters and key not in self._buffers:
                self.__dict__[key] = value

    def _given(self, values):
        """The arguments as C takes them: padding by name goes into a field of its own; None in sizes and as momentum is negative."""
        given = dict(values)
        if isinstance(given.get("padding"), str):
            given.update(padding=0, auto_padding=given["padding"])
        if "momentum" in given and given["momentum"] is None:
            given["momentum"] = -1.0
        if "output_size" in given:
            sizes = given["output_size"]
            given["output_size"] = tuple(-1 if s is None else s for s in (sizes if isinstance(sizes, (tuple, list)) else (sizes,)))
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

    def _renew(self, name, value):
        """An argument has changed: another C module with the same tensors. Their first values draw no random numbers of the user's."""
        old, generator = self.__dict__[name], default_generator()
        drawn = generator.get_state()
        try:
            self.__dict__[name] = value
            self.__setstate__(self.__getstate__())
        except BaseException:
            self.__dict__[name] = old
            raise
        finally:
            generator.set_state(drawn)

    def __setattr__(self, name, value):
        if "_module" not in self.__dict__:
            return super().__setattr__(name, value)
        if name in self.__dict__ and any(name == row[0] for row in _nn_classes.CLASSES[self._row_name][2]):
            return self.__dict__[name] is value or self._renew(name, value)
        super().__setattr__(name, value)
        if name == "training":
            status = lib.tt_module_train(local.ctx, self._module, c_int32(bool(value)))
        elif name in self._parameters:
            status = lib.tt_module_register_parameter(local.ctx, self._module, name.encode(), value)
        elif name in self._buffers:
            status = lib.tt_module_register_buffer(local.ctx, self._module, name.encode(), value, c_int32(name not in self._non_persistent))
        else:
            return
        if status:
            fail()

    def forward(self, *args, **kwargs):
        if kwargs:
            args = in_order(type(self).__name__, _nn_layers.LAYERS[type(self)._row_name][2], args, kwargs)
        for x in args:
            if not (isinstance(x, Tensor) or x is None):
                raise TypeError(f"{type(self).__name__}(): inputs must be Tensors, not {type(x).__name__}")
        outs, n = (c_void_p * MAX_OUTS)(), c_int64()
        if lib.tt_module_forward(local.ctx, self._module, pointers(args), c_int64(len(args)), outs, c_int64(MAX_OUTS), byref(n)):
            fail()
        made = tuple(map(wrap, outs[:n.value]))
        return made[0] if len(made) == 1 else made

    def __deepcopy__(self, memo):
        h = ModuleHandle()
        if lib.tt_module_copy(local.ctx, self._module, byref(h)):
            fail()
        made = self.__new__(type(self))
        memo[id(self)] = made
        Module.__init__(made)
        made.__dict__.update({k: v for k, v in self.__dict__.items() if not k.startswith("_")})
        made._adopt(h)
        for group in ("_parameters", "_buffers"):  # what is shared elsewhere in the tree stays shared
            for name, t in self.__dict__[group].items():
                if t is not None and id(t) in memo:
                    setattr(made, name, memo[id(t)])
                elif t is not None:
                    memo[id(t)] = made.__dict__[group][name]
        return made

    def __getstate__(self):
        """Everything but the C module; of layers inside (attention has one) the tensors by their dotted names."""
        below = {name: t for child, m in self.named_modules() if child for group in ("_parameters", "_buffers")
                 for name, t in m._named(group, child, False, False)}
        return {**{key: value for key, value in self.__dict__.items() if key not in ("_module", "_modules")},
                "tensors": {**self._parameters, **self._buffers, **below}}

    def __setstate__(self, state):
        row, tensors = _nn_classes.CLASSES[type(self)._row_name], state.pop("tensors")
        values = {key: tensors[key] is not None if key in tensors else state.get(key, default[0] if default else None) for key, _, default, _, _ in row[2]}
        made = construct(ModuleHandle, type(self)._row_name, row, self._given(values), _nn_classes.ENUMS)
        Module.__init__(self)
        self._adopt(made)
        self.__dict__.update((key, value) for key, value in state.items() if key not in ("_parameters", "_buffers"))
        for path, t in tensors.items():
            owner, _, name = path.rpartition(".")
            setattr(self.get_submodule(owner), name, t)
        self.train(self.training)

    def extra_repr(self):
        n, buffer = c_int64(), create_string_buffer(4096)
        if lib.tt_module_print(local.ctx, self._module, buffer, c_int64(4096), byref(n)):
            fail()
        text = buffer.value.decode()
        return text[text.index("(") + 1:-1].split("\n")[0] if not self._modules else ""


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
    return [given.get(n) for n in names[:last + 1]]


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
        LAYERS[_name] = type(_name, (Native,), {"_row_name": _name, "__doc__": f"{_name}({_shown})\n\n{_doc}", "__module__": "tt.nn"})
globals().update(LAYERS)
