"""Base classes of the layers that libtt computes. The layers are generated: _layers.py."""
from __future__ import annotations

import copy
from contextlib import contextmanager
from ctypes import byref, c_int32, c_int64, c_void_p, create_string_buffer
from functools import partial
from types import MethodType
from typing import Any, Iterator, Mapping
from weakref import ref

from .._construct import construct
from .._convert import pointers, wrong_kind
from .._tensor_facts import TensorHandle
from .._handles import StateDictHandle
from .._hints import Self
from .._interception import is_intercepted, switch
from .._lib import Handle, call, fail, finalizer, lib, local, quick, result
from .._tensor import Tensor, exchanged, from_address, leaves, tensor_result, wrap
from ..autograd import no_grad
from ..errors import InvalidArgumentError, TtError
from ..random import thread_generator
from .module import Module, is_sparse, modes
from .parameter import Parameter, is_lazy

MAX_RESULTS = 16
LAZY_SIZE = -2147483647  # TT_NN_LAZY: C's constructors make a lazy layer of this size
LAZY_SIZES = ("in_features", "in_channels", "num_features")
module_forward = lib.tt_module_forward
ONE = c_int64(1)
UNREAD = byref(c_int64())  # a number of results that is known
STRIDELESS = ("LPPool1d", "LPPool2d", "LPPool3d")  # an absent stride remains None
LAYERS: dict[str, type[Layer]] = {}  # name of a C module's type, or of a place -> its class


class ModuleHandle(Handle):
    """Owns a tt_module."""

    __slots__ = ()
    __del__ = finalizer(quick.tt_module_release)


@contextmanager
def preserve_rng_state() -> Iterator[None]:
    """Restores this thread's generator at the end of the block, for initial values that will be
    replaced."""
    generator = thread_generator()
    state = generator.get_state()
    try:
        yield
    finally:
        generator.set_state(state)


class Layer(Module):
    """A layer that libtt computes. Its parameters and buffers are those of a C module.

    The constructor's arguments are attributes. Assigning to one, as in `drop.p = 0`, creates a new
    C module over the same tensors.
    """

    _class = ""  # name of the C module's type
    _function = ""  # C function that constructs it
    _arguments: tuple[Any, ...] = ()  # rows as _construct.py describes them
    _slots: tuple[str, ...] = ()  # names of the C module's own tensors
    _buffer_flags: tuple[bool, ...] = ()  # which of them are buffers
    _inputs: tuple[str, ...] = ()  # arguments of forward
    _list_length = 0  # to which the C module expands lists of one number
    _computed: tuple[str, ...] = ()  # slots whose tensors are computed for each call
    _folded: tuple[str, ...] = ()  # C's arguments that Python takes as part of another
    _module: ModuleHandle
    _single = False  # whether the last call of C returned one tensor
    _lent: set[str]  # slots whose tensors in C are not those of the Python object
    _known: dict[str, Any]  # _parameters, unless a program has replaced it
    _held: list[int]  # what _ids() was when C got the tensors of _parameters and _buffers
    # Weak references to the tensors that C holds: C releases one when Python has dropped it.
    _watches: list[ref[Tensor]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "_class" in vars(cls):
            LAYERS[cls._class] = cls

    def _initialize(self, **values: Any) -> None:
        """Completes the constructor; values: its arguments by name."""
        Module.__init__(self)
        self._adopt(self._new_module(values))
        for name, value in self._as_attributes(values).items():
            is_tensor = name in self._parameters or name in self._buffers
            if not is_tensor and name not in ("device", "dtype"):
                self.__dict__[name] = value
        for m in self.modules():  # of C's composites the children, too
            m._register_again()
        reset = getattr(type(self), "reset_parameters", None)
        if reset not in (None, ParameterLayer.reset_parameters):
            self.reset_parameters()

    def _new_module(self, values: dict[str, Any]) -> ModuleHandle:
        """Calls the C constructor with Python values."""
        given = dict(values)
        for name in LAZY_SIZES:
            if given.get(name) == LAZY_SIZE:
                raise ValueError(
                    f"{self._class}: {name} is {LAZY_SIZE}: must not be negative; "
                    f"Lazy{self._class} infers it"
                )
        if isinstance(given.get("padding"), str):
            given.update(padding=0, auto_padding=given["padding"])
        if "momentum" in given and given["momentum"] is None:
            given["momentum"] = -1.0  # C's cumulative average
        if given.get("output_size") is not None:
            sizes = given["output_size"]
            if not isinstance(sizes, (tuple, list)):
                sizes = (sizes,)
            if any(isinstance(size, int) and size < 0 for size in sizes):
                raise InvalidArgumentError(
                    f"{self._class}: output_size is {given['output_size']}: must be at least 0"
                )
            given["output_size"] = tuple(-1 if size is None else size for size in sizes)
        return construct(ModuleHandle, self._function, self._class, self._arguments, given)

    def _as_attributes(self, values: dict[str, Any]) -> dict[str, Any]:
        """Converts arguments to the form of PyTorch's attributes: lists to tuples, the default of
        stride."""
        shown = dict(values)
        for name, kind, _, _ in self._arguments:
            if kind == "Int[]" and self._list_length and isinstance(shown[name], int):
                shown[name] = (shown[name],) * self._list_length
            elif kind in ("Int[]", "Shape"):
                shown[name] = as_tuple(shown[name], of_one=kind == "Shape")
        if "stride" in shown and shown["stride"] is None and self._class not in STRIDELESS:
            shown["stride"] = shown["kernel_size"]
        return shown

    def _adopt(self, handle: ModuleHandle) -> None:
        """Takes ownership of the C module, and registers its tensors and children."""
        for name, is_buffer in zip(self._slots, self._buffer_flags):
            t = tensor_result("tt_module_get_tensor", handle, name.encode())
            if is_buffer:
                self._buffers[name] = t
            else:
                self._parameters[name] = t if t is None else adopted(t)
        self._hold(handle)
        for i in range(quick.tt_module_num_children(handle)):
            child = ModuleHandle()
            if lib.tt_module_child(local.ctx, handle, c_int64(i), byref(child)):
                fail()
            name = child_name(handle, i)
            self._modules[name] = layer_over(child, f"{self._class}.{name}")

    def _hold(self, handle: ModuleHandle) -> None:
        """Takes ownership of the C module, whose tensors are those of the dicts."""
        self.__dict__.update(_module=handle, _lent=set(), _single=False, _known=self._parameters)
        self._remember()

    def _remember(self) -> None:
        """Notes that the C module has the tensors of the dicts."""
        layer = ref(self)
        items = (*self._parameters.items(), *self._buffers.items())
        self.__dict__["_held"] = self._ids()
        self.__dict__["_watches"] = [
            ref(t, partial(let_go, layer, name))
            for name, t in items
            if name in self._slots and isinstance(t, Tensor)
        ]

    def _ids(self) -> list[int]:
        """Returns numbers that change with the tensors in the dicts."""
        ids = (*map(id, self._parameters.values()), *map(id, self._buffers.values()))
        return [exchanged[0], *ids]

    def _is_known(self) -> bool:
        """Returns whether the C module has the tensors of the dicts."""
        return self._parameters is self._known and self._ids() == self._held

    def _follow(self) -> None:
        """Makes the C module compute with the tensors that a program has written into the dicts."""
        if self._parameters is not self._known:
            self._part()
        if self._ids() != self._held:
            for name in self._slots:
                if name not in self._computed:
                    self._take(name, getattr(self, name))
            self._remember()
        for name in self._computed:
            self._lend(name, getattr(self, name))

    def _hold_other(self, handle: ModuleHandle) -> None:
        """Takes ownership of another C module, which gets the tensors of self."""
        self._hold(handle)
        for name in self._slots:
            self._lend(name, getattr(self, name, None))
        for i, name in enumerate(self._inner_names()):
            child = self._modules.get(name)
            if isinstance(child, Layer):
                inner = ModuleHandle()
                if lib.tt_module_child(local.ctx, handle, c_int64(i), byref(inner)):
                    fail()
                child._hold_other(inner)

    def _part(self) -> None:
        """Gets a C module of its own, after a program has copied the attributes of another layer
        and replaced the dict of parameters."""
        with preserve_rng_state():
            handle = self._new_module_from_attributes({**self._parameters, **self._buffers})
        self._hold_other(handle)
        self.training = self.training

    def _new_module_from_attributes(self, tensors: dict[str, Tensor | None]) -> ModuleHandle:
        """Calls the C constructor with the current arguments of self.

        tensors: those of self by name. An argument with such a name is the tensor, or says whether
        it exists.
        """
        values = {}
        for name, kind, default, _ in self._arguments:
            own = self.__dict__.get(name, default[0] if default else None)
            value = tensors.get(name, own)
            is_tensor = name in tensors or isinstance(value, Tensor)  # which a program may have set
            values[name] = value is not None if is_tensor and kind != "Tensor?" else value
        return self._new_module(values)

    def _change_argument(self, name: str, value: Any) -> None:
        """Replaces the C module by one with a changed argument and the same tensors."""
        old = self.__dict__[name]
        try:
            self.__dict__[name] = value
            self.__setstate__(self.__getstate__())
        except BaseException:
            self.__dict__[name] = old
            raise

    def __setattr__(self, name: str, value: Any) -> None:
        if "_module" not in self.__dict__:
            super().__setattr__(name, value)
            return
        if self._is_argument(name):
            if self.__dict__[name] is not value:
                self._change_argument(name, value)
            return
        super().__setattr__(name, value)
        ctx, module, key = local.ctx, self._module, name.encode()
        status = 0
        if name == "training":
            status = lib.tt_module_train(ctx, module, c_int32(bool(value)))
        elif name in self._parameters:
            self._end_loan(name)
            registered = self._parameters[name]
            status = lib.tt_module_register_parameter(ctx, module, key, registered)
        elif name in self._buffers and self._takes_parameter(name):
            self._lend(name, value)
        elif name in self._buffers and not is_sparse(value):
            persistent = c_int32(name not in self._non_persistent)
            status = lib.tt_module_register_buffer(ctx, module, key, value, persistent)
        elif name in self._slots and isinstance(self.__dict__.get(name), Tensor):
            self._lend(name, value)
        if status:
            fail()

    def _check_kind(self, name: str, value: Any, kind: Any, what: str) -> None:
        super()._check_kind(name, value, kind, what)
        if name in self._slots and is_sparse(value):
            raise TypeError(f"cannot assign a sparse tensor as {what} '{name}': it must be dense")

    def _take(self, name: str, value: Any) -> None:
        """Makes the C module compute with a tensor that was written into a dict of tensors."""
        if isinstance(value, Parameter) or (value is None and name in self._parameters):
            self._end_loan(name)
            if lib.tt_module_register_parameter(local.ctx, self._module, name.encode(), value):
                fail()
        elif isinstance(value, Tensor) or value is None:
            self._lend(name, value)
        else:
            raise wrong_kind(self._class, name, "Tensor", value)

    def _is_argument(self, name: str) -> bool:
        """Returns whether an attribute is an argument of the constructor."""
        if name not in self.__dict__ or name in self._slots:
            return False
        return any(name == row[0] for row in self._arguments)

    def _takes_parameter(self, name: str) -> bool:
        """Returns whether the C module has a slot of this name for a parameter."""
        return name in self._slots and not self._buffer_flags[self._slots.index(name)]

    def _lend(self, name: str, value: Tensor | None) -> None:
        """Makes the C module compute with a tensor that is not its parameter, as a buffer."""
        ctx, module, key = local.ctx, self._module, name.encode()
        status = 0
        if name not in self._lent and self._takes_parameter(name):
            status = lib.tt_module_register_parameter(ctx, module, key, None)
        self._lent.add(name)
        if status or lib.tt_module_register_buffer(ctx, module, key, value, c_int32(0)):
            fail()

    def _end_loan(self, name: str) -> None:
        """Prepares the slot of a lent tensor for a parameter again."""
        if name in self._lent:
            self._lend(name, None)
            self._lent.remove(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        super().register_parameter(name, param)
        if name in self._slots:
            setattr(self, name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        super().register_buffer(name, tensor, persistent)
        if name in self._slots:
            setattr(self, name, tensor)

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        if name in self._slots:
            self._empty_slot(name)

    def _empty_slot(self, name: str) -> None:
        """Takes a tensor from the C module."""
        ctx, module, key = local.ctx, self._module, name.encode()
        if self._takes_parameter(name):
            self._end_loan(name)
            status = lib.tt_module_register_parameter(ctx, module, key, None)
        else:
            status = lib.tt_module_register_buffer(ctx, module, key, None, c_int32(1))
        if status:
            fail()

    def _forward(self, *inputs: Tensor | None) -> Any:
        """Calls the C module. Returns its result, or a tuple of several results."""
        if switch.users and is_intercepted(inputs):
            return self._formula(inputs)
        if (
            self._parameters is not self._known
            or self._computed
            or self._slots  # the list is _ids(), whose call would be a fifth of a small layer's
            and [
                exchanged[0],
                *map(id, self._parameters.values()),
                *map(id, self._buffers.values()),
            ]
            != self._held
        ):
            self._follow()
        if self._single and len(inputs) == 1 and type(inputs[0]) is Tensor:
            pointer = byref(inputs[0]._as_parameter_)
            handle = TensorHandle()
            if module_forward(local.ctx, self._module, pointer, ONE, byref(handle), ONE, UNREAD):
                fail()
            given = inputs[0]  # in-place layers, and dropout in evaluation, return it
            return given if handle._address == given._address else wrap(handle)
        for x in inputs:
            if not (isinstance(x, Tensor) or x is None):
                if is_intercepted((x,)):
                    return self._formula(inputs)
                i = next(i for i, y in enumerate(inputs) if y is x)
                raise wrong_kind(self._class, self._inputs[i], "Tensor", x)
        n = c_int64()
        outs: Any = (c_void_p * MAX_RESULTS)()
        if module_forward(
            local.ctx,
            self._module,
            pointers(inputs),
            c_int64(len(inputs)),
            outs,
            c_int64(MAX_RESULTS),
            byref(n),
        ):
            self._fail(inputs)
        results = tuple(map(from_address, outs[: n.value]))
        if len(results) != 1:
            return results
        first = inputs[0]
        is_input = first is not None and results[0]._address == first._address
        self.__dict__["_single"] = True
        return first if is_input else results[0]

    def _fail(self, inputs: tuple[Tensor | None, ...]) -> None:
        """Raises the error of forward: a TypeError if a tensor that it needs is None."""
        try:
            fail()
        except TtError as error:
            for i, x in enumerate(inputs):
                if x is None and f"inputs[{i}] is NULL" in str(error):
                    raise wrong_kind(self._class, self._inputs[i], "Tensor", x) from None
            raise

    def _formula(self, inputs: tuple[Any, ...]) -> Any:
        """Calls the layer's functions, which something intercepts, instead of C."""
        from ._formulas import forward

        return forward(self, inputs)

    def __copy__(self) -> Self:
        """Returns a layer with the same dicts of parameters, buffers and hooks, as PyTorch does. A
        layer with layers inside its C module gets dicts of its own, over the same tensors."""
        twin = self.__new__(type(self))
        if self._inner_names():
            twin.__setstate__(self.__getstate__())
            return twin
        twin.__dict__.update(self.__dict__)
        twin._part()
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        clone = memo[id(self)] = self.__new__(type(self))
        clone.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        return clone

    def _inner_names(self) -> list[str]:
        """Returns the names of the layers inside the C module (attention has one)."""
        n = quick.tt_module_num_children(self._module)
        return [child_name(self._module, i) for i in range(n)]

    def __getstate__(self) -> dict[str, Any]:
        """Returns all attributes but the C module. Its inner layers become tensors by dotted
        names."""
        names = self._inner_names()
        tensors: dict[str, Tensor] = {}
        for name in names:
            for group in ("_parameters", "_buffers"):
                tensors.update(self.get_submodule(name)._named(group, name, True, False))
        state = super().__getstate__()
        state["_modules"] = {name: m for name, m in self._modules.items() if name not in names}
        state["inside"] = tensors
        for name in ("_module", "_lent", "_single", "_known", "_held", "_watches"):
            del state[name]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        inside = state.pop("inside")
        groups = {group: state.pop(group) for group in ("_parameters", "_buffers", "_modules")}
        tensors = {**groups["_parameters"], **groups["_buffers"]}
        self.__dict__.update(state)
        with preserve_rng_state():
            handle = self._new_module_from_attributes(tensors)
        Module.__init__(self)
        self._adopt(handle)
        self.__dict__.update(state)
        self._parameters.clear()
        self._buffers.clear()
        for group, items in groups.items():
            self.__dict__[group].update(items)
        for name in self._slots:
            value = tensors.get(name)
            is_plain = isinstance(value, Tensor) and not isinstance(value, Parameter)
            if is_plain and name in self._parameters:  # a program has put it there
                self._lend(name, value)
            elif name in tensors:
                setattr(self, name, value)
            else:
                self._empty_slot(name)
                if isinstance(self.__dict__.get(name), Tensor):
                    self._lend(name, self.__dict__[name])
        for path, t in inside.items():
            owner, _, name = path.rpartition(".")
            setattr(self.get_submodule(owner), name, t)
        self.training = self.training
        for name in self._inner_names():
            self.get_submodule(name).train(self.training)

    def extra_repr(self) -> str:
        self._follow()
        n, buffer = c_int64(), create_string_buffer(4096)
        if lib.tt_module_print(local.ctx, self._module, buffer, c_int64(4096), byref(n)):
            fail()
        if self._inner_names():
            return ""
        sizes = self.__dict__.get("output_size")
        if isinstance(sizes, tuple) and (None in sizes or len(sizes) == 1):  # C prints numbers
            return f"output_size={sizes}"
        text = buffer.value.decode()
        return self._as_given(text[text.index("(") + 1 : -1].split("\n")[0])

    def _as_given(self, text: str) -> str:
        """Converts C's text to the attributes of self: floats that were given as integers, an
        absent stride."""
        for name, kind, _, _ in self._arguments:
            value = self.__dict__.get(name)
            if kind in ("Float", "Float?") and type(value) is int:
                shown = str(float(value))
                if text == shown:
                    return str(value)
                text = text.replace(f"{name}={shown}", f"{name}={value}")
        if self._class in STRIDELESS and self.__dict__["stride"] is None:
            text = text.replace(f"stride={self.__dict__['kernel_size']}", "stride=None")
        return text


class ParameterLayer(Layer):
    """A layer with parameters."""

    def reset_parameters(self) -> None:
        """Gives parameters and buffers new initial values. The constructor calls it if a subclass
        overrides it."""
        fresh = self.__new__(type(self))
        Module.__init__(fresh)
        tensors: dict[str, Any] = {**self._parameters, **self._buffers}
        fresh._adopt(self._new_module_from_attributes(tensors))
        with no_grad():
            for path, t in (*fresh.named_parameters(), *fresh.named_buffers()):
                owner, _, name = path.rpartition(".")
                own = getattr(self.get_submodule(owner), name)
                if own is not None:
                    own.copy_(t)


class NormLayer(ParameterLayer):
    """A normalisation with running statistics."""

    _version = 2  # as PyTorch's, whose first one had no num_batches_tracked
    track_running_stats: bool
    running_mean: Any
    running_var: Any
    num_batches_tracked: Any

    def reset_running_stats(self) -> None:
        """Resets running_mean to 0, running_var to 1 and num_batches_tracked to 0."""
        if self.track_running_stats:
            self.running_mean.fill_(0)
            self.running_var.fill_(1)
            self.num_batches_tracked.fill_(0)


class ConvLayer(ParameterLayer):
    """A convolution, transposed or not.

    A subclass may override _conv_forward, which computes forward from weight and bias, or derive
    from this class itself, as from PyTorch's _ConvNd.
    """

    transposed = False
    output_padding: Any
    kernel_size: Any
    stride: Any
    padding: Any
    dilation: Any
    groups: int
    padding_mode: Any
    weight: Any
    bias: Any

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "_arguments" in vars(cls):
            cls.transposed = any(name == "output_padding" for name, *_ in cls._arguments)
            cls.output_padding = (0,) * cls._list_length
        if "_conv_forward" in vars(cls):
            setattr(cls, "_forward", forward_by_parts)

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: Any,
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        values = dict(
            in_channels=in_channels,
            out_channels=out_channels,
            kernel_size=kernel_size,
            stride=stride,
            padding=padding,
            dilation=dilation,
            groups=groups,
            bias=bias,
            padding_mode=padding_mode,
            device=device,
            dtype=dtype,
        )
        if transposed:
            values["output_padding"] = output_padding
        else:
            values["auto_padding"] = "none"
        of = LAYERS[f"Conv{'Transpose' if transposed else ''}{len(kernel_size)}d"]
        for name in ("_class", "_function", "_arguments", "_list_length", "_slots", "_inputs"):
            self.__dict__[name] = getattr(of, name)
        self.__dict__.update(_buffer_flags=of._buffer_flags, transposed=transposed)
        self.__dict__["output_padding"] = output_padding
        self._initialize(**values)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "_conv_forward":
            self.__dict__["_forward"] = MethodType(forward_by_parts, self)

    @property
    def _reversed_padding_repeated_twice(self) -> list[int] | tuple[int, ...]:
        """The padding in the order of nn.functional.pad; a list where it is a string, as in
        PyTorch."""
        both: list[int] = []
        for i in reversed(range(len(self.kernel_size))):
            if not isinstance(self.padding, str):
                both += [self.padding[i]] * 2
                continue
            total = self.dilation[i] * (self.kernel_size[i] - 1) if self.padding == "same" else 0
            both += [total // 2, total - total // 2]
        return both if isinstance(self.padding, str) else tuple(both)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Convolves the input with other filters of the same shape."""
        from . import functional

        function = getattr(functional, f"conv{len(self.kernel_size)}d")
        padding = self.padding
        if self.padding_mode != "zeros":
            pads = self._reversed_padding_repeated_twice
            input = functional.pad(input, pads, mode=self.padding_mode)
            padding = 0
        return function(input, weight, bias, self.stride, padding, self.dilation, self.groups)


def forward_by_parts(self: Any, input: Tensor) -> Tensor:
    """Is _forward of convolutions whose _conv_forward a program has replaced."""
    return self._conv_forward(input, self.weight, self.bias)


def as_tuple(sizes: Any, of_one: bool) -> Any:
    """Returns a list as a tuple. of_one: also converts a number."""
    if of_one and isinstance(sizes, int):
        return (sizes,)
    return tuple(sizes) if isinstance(sizes, list) else sizes


def let_go(owner: ref[Layer], name: str, gone: ref[Tensor]) -> None:
    """Removes a tensor that is gone from the C module of its layer, whose memory it would keep."""
    layer = owner()
    if layer is None or not any(watch is gone for watch in layer._watches):
        return
    layer.__dict__["_held"] = []  # another tensor may get the same id
    if name in layer._computed:
        return
    try:
        layer._take(name, getattr(layer, name, None))
    except (TtError, TypeError):
        pass  # the next call of the layer raises it


def child_name(handle: ModuleHandle, i: int) -> str:
    return quick.tt_module_child_name(handle, c_int64(i)).decode()


def layer_over(handle: ModuleHandle, place: str) -> Layer:
    """Returns a layer object for a C module that has none. place: the names of its parent's type
    and of the child, which may have a class of its own."""
    name = quick.tt_module_type(handle).decode()
    kind = LAYERS.get(name, LAYERS["Linear"])
    layer = object.__new__(LAYERS.get(place, kind))
    Module.__init__(layer)
    layer._adopt(handle)
    if name == "Linear":
        out_features, in_features = layer._parameters["weight"].shape  # type: ignore[union-attr]
        layer.__dict__.update(in_features=in_features, out_features=out_features)
    return layer


def adopted(t: Tensor) -> Parameter:
    """Returns a parameter of a C module as an object, which graphs find again."""
    parameter = leaves[t._address] = t.as_subclass(Parameter)
    return parameter


# ---- calls with other tensors (tt.func.functional_call, tt.nn.utils.stateless) ----


def exchange(layer: Any, state: StateDictHandle) -> None:
    """Swaps tensors of the C module with the tensors of the same names in state. The dicts of the
    layer have them already."""
    call("tt_module_exchange_tensors", layer._module, state)
    layer.__dict__["_held"] = layer._ids()


def places_of(module: Module) -> dict[str, tuple[Module, str, str]]:
    """Returns {dotted name: (owner, group, name in the owner)} of all parameters and buffers."""
    places = {}
    for prefix, m in module.named_modules(remove_duplicate=False):
        for group in ("_parameters", "_buffers"):
            for name, t in getattr(m, group).items():
                if t is not None:
                    places[f"{prefix}.{name}" if prefix else name] = (m, group, name)
    return places


@contextmanager
def functional_tensors(
    module: Module, given: Mapping[str, Tensor], tie_weights: bool = False, strict: bool = False
) -> Iterator[None]:
    """Replaces the named parameters and buffers by other tensors within a block.

    strict: names that the module lacks, and names of the module that are not given, are errors.
    """
    places = places_of(module)
    if strict:
        check_names(given, places)
    given = {name: t for name, t in given.items() if name in places}
    if tie_weights:
        given = with_ties(places, given)
    waiting = []  # lazy layers
    for owner in {places[name][0] for name in given}:
        if isinstance(owner, Layer) and "_module" not in owner.__dict__:
            check_all_given(owner, given, places)
            waiting.append((owner, type(owner), dict(owner.__dict__)))
        elif isinstance(owner, Layer) and not owner._is_known():
            owner._follow()
    former = []
    states: list[tuple[Any, StateDictHandle]] = []
    try:
        for name, t in given.items():
            owner, group, own_name = places[name]
            former.append((owner.__dict__[group], own_name, owner.__dict__[group][own_name]))
            owner.__dict__[group][own_name] = t
            if isinstance(owner, Layer) and "_module" in owner.__dict__:
                state = result(StateDictHandle, "tt_state_dict_new")
                call("tt_state_dict_set", state, own_name.encode(), t)
                exchange(owner, state)
                states.append((owner, state))
        modes[0] = object()
        yield
    finally:
        modes[0] = object()
        for tensors_of_owner, own_name, t in reversed(former):
            tensors_of_owner[own_name] = t
        for lazy, kind, attributes in waiting:
            if type(lazy) is not kind:
                lazy.__class__ = kind
                lazy._wait_again(attributes)
        for owner, state in states:
            exchange(owner, state)


def check_all_given(
    lazy: Any, given: Mapping[str, Tensor], places: dict[str, tuple[Module, str, str]]
) -> None:
    """Raises RuntimeError unless all tensors of a lazy layer that have no shape yet are given."""
    for name, (owner, group, own_name) in places.items():
        if owner is lazy and name not in given and is_lazy(owner.__dict__[group][own_name]):
            raise RuntimeError(
                f"functional_call: {type(lazy).__name__} has no {own_name} before its first call, "
                f"and '{name}' is not given"
            )


def check_names(given: Mapping[str, Tensor], own: Mapping[str, Any]) -> None:
    """Raises RuntimeError unless both have the same names."""
    unexpected = sorted(set(given) - set(own))
    missing = sorted(set(own) - set(given))
    if unexpected or missing:
        raise RuntimeError(
            f"functional_call: unexpected keys: {', '.join(unexpected) or 'none'}; "
            f"missing keys: {', '.join(missing) or 'none'}"
        )


def with_ties(
    places: dict[str, tuple[Module, str, str]], given: dict[str, Tensor]
) -> dict[str, Tensor]:
    """Returns `given` with entries for the other names of shared tensors."""
    replaced: dict[int, Tensor] = {}
    for name, t in given.items():
        owner, group, own_name = places[name]
        key = id(owner.__dict__[group][own_name])
        if replaced.setdefault(key, t) is not t:
            raise ValueError(
                f"functional_call: {name} and another given name are one tensor, but have two "
                "values"
            )
    tensors = dict(given)
    for name, (owner, group, own_name) in places.items():
        if name not in tensors and id(owner.__dict__[group][own_name]) in replaced:
            tensors[name] = replaced[id(owner.__dict__[group][own_name])]
    return tensors
