"""Parametrizations compute a tensor of a module from other parameters whenever it is read. The API
is that of torch.nn.utils.parametrize.

A module with parametrizations has its own class, with a property for each parametrized name.
"""
from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Iterator, Sequence

from ..._tensor import Tensor
from ...autograd import no_grad
from ..containers import ModuleDict, ModuleList
from ..layer import Layer
from ..module import Module
from ..parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]


class Cache:
    """Values of parametrized tensors by (id of the module, name) within cached()."""

    depth = 0
    values: dict[tuple[int, str], Tensor] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Computes each parametrized tensor only once, on first use, within the block."""
    Cache.depth += 1
    try:
        yield
    finally:
        Cache.depth -= 1
        if not Cache.depth:
            Cache.values = {}


def check_alike(result: Any, like: Tensor, what: str) -> None:
    """Raises ValueError unless result is a tensor of the dtype and the shape of `like`."""
    if not isinstance(result, Tensor):
        raise ValueError(f"{what} must return a tensor, not {type(result).__name__}")
    if result.dtype != like.dtype or result.shape != like.shape:
        raise ValueError(
            f"{what} must return {like.dtype} {tuple(like.shape)}, "
            f"not {result.dtype} {tuple(result.shape)}; unsafe=True allows it"
        )


def inverse(parametrization: Module, value: Any) -> Any:
    """Returns right_inverse of a value, or the value itself if there is none."""
    function = getattr(parametrization, "right_inverse", None)
    if function is None:
        return value
    try:
        return function(value)
    except NotImplementedError:
        return value


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor. A call computes it.

    It is computed from the parameter `original`, or from `original0`, `original1`, … if
    right_inverse returns several tensors.
    """

    def __init__(
        self, modules: Sequence[Module], original: Tensor | Parameter, unsafe: bool = False
    ) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        value: Any = original
        with no_grad():
            for m in reversed(list(self)):
                value = inverse(m, value)
        if not isinstance(value, (Tensor, list, tuple)):
            raise ValueError(
                f"right_inverse must return a tensor or a sequence, not {type(value).__name__}"
            )
        self.is_tensor = isinstance(value, Tensor)
        self.ntensors = 1 if self.is_tensor else len(value)
        if isinstance(value, Tensor):
            if not unsafe:
                check_alike(value, original, "right_inverse")
            if value is not original:
                original.data = value.detach()
            self._put_original("original", original, original)
        else:
            for i, t in enumerate(value):
                if not isinstance(t, Tensor):
                    raise ValueError(f"right_inverse must return tensors, not {type(t).__name__}")
                self._put_original(f"original{i}", t, original)
        if not unsafe:
            check_alike(self(), original, "forward")

    def _put_original(self, name: str, t: Tensor, like: Tensor) -> None:
        """Registers a tensor as a parameter or a buffer, like another one."""
        if isinstance(t, Parameter):
            self.register_parameter(name, t)
        elif isinstance(like, Parameter):
            self.register_parameter(name, Parameter(t, requires_grad=like.requires_grad))
        else:
            self.register_buffer(name, t)

    def _originals(self) -> list[Tensor]:
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value: Tensor) -> None:
        """Changes the originals so that the parametrized tensor becomes `value`."""
        with no_grad():
            values: Any = value
            for m in reversed(list(self)):
                if not hasattr(m, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(m).__name__} does not implement right_inverse."
                    )
                values = m.right_inverse(values)
            if self.is_tensor:
                values = [values]
            originals = self._originals()
            if len(values) != len(originals):
                raise ValueError(
                    f"right_inverse returned {len(values)} tensors: expected {len(originals)}"
                )
            for own, t in zip(originals, values):
                check_alike(t, own, "right_inverse")
                own.data = t.detach()

    def forward(self) -> Tensor:
        first, *others = list(self)
        value = first(*self._originals())
        for m in others:
            value = m(value)
        return value


# ---- classes of modules with parametrizations ----


def parametrized_class(base: type[Module], names: Sequence[str] = ()) -> type[Module]:
    """Returns a subclass whose attributes `names` are computed."""

    def no_pickle(self: Module, protocol: Any) -> Any:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict()."
        )

    def deepcopy(self: Any, memo: dict[int, Any]) -> Module:
        copied = super(cls, self).__deepcopy__(memo)
        copied.__class__ = parametrized_class(base, list(self.parametrizations))
        return copied

    def assign(self: Any, name: str, value: Any) -> None:
        if isinstance(vars(type(self)).get(name), property):
            self.parametrizations[name].right_inverse(value)
        else:
            super(cls, self).__setattr__(name, value)

    members = {
        "__reduce_ex__": no_pickle,
        "__deepcopy__": deepcopy,
        "__setattr__": assign,
        "_without_parametrizations": base,
    }
    cls: Any = type(f"Parametrized{base.__name__}", (base,), members)
    for name in names:
        add_property(cls, name)
    return cls


def add_property(cls: Any, name: str) -> None:
    def computed(self: Any) -> Tensor:
        parametrization = self.parametrizations[name]
        if not Cache.depth:
            return parametrization()
        key = (id(self), name)
        if key not in Cache.values:
            Cache.values[key] = parametrization()
        return Cache.values[key]

    setattr(cls, name, property(computed))
    if issubclass(cls, Layer) and name in cls._slots:
        cls._computed += (name,)


def remove_property(cls: Any, name: str) -> None:
    delattr(cls, name)
    if issubclass(cls, Layer):
        cls._computed = tuple(other for other in cls._computed if other != name)


# ---- registration ----


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Returns whether a module, or its tensor of this name, is parametrized."""
    lists = module.__dict__.get("_modules", {}).get("parametrizations")
    if not isinstance(lists, ModuleDict):
        return False
    return len(lists) > 0 if tensor_name is None else tensor_name in lists


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Makes module.tensor_name the result of parametrization(original). Returns the module.

    A second parametrization of a name is applied to the result of the first. A method
    right_inverse(tensor) of the parametrization computes the original for the current value, and
    for later assignments to module.tensor_name. unsafe: the parametrization may change dtype and
    shape, and is not checked.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        add_to_list(module, tensor_name, parametrization, unsafe)
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        parametrizations = ParametrizationList([parametrization], original, unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            module.__class__ = parametrized_class(type(module))
            module.parametrizations = ModuleDict()
        add_property(type(module), tensor_name)
        lists: Any = module.parametrizations
        lists[tensor_name] = parametrizations
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element "
            f"with name '{tensor_name}'"
        )
    return module


def add_to_list(module: Any, tensor_name: str, parametrization: Module, unsafe: bool) -> None:
    """Adds a parametrization to those of a name."""
    parametrizations = module.parametrizations[tensor_name]
    if not unsafe:
        before = getattr(module, tensor_name)
        after = parametrization(before)
        check_alike(after, before, "forward")
        if hasattr(parametrization, "right_inverse"):
            check_alike(inverse(parametrization, after), before, "right_inverse")
    parametrizations.append(parametrization)
    parametrizations.unsafe |= unsafe


def remove_parametrizations(
    module: Module, tensor_name: str, leave_parametrized: bool = True
) -> Module:
    """Makes module.tensor_name a parameter or buffer again. Returns the module.

    leave_parametrized: keeps the current value; otherwise restores the original, which must be one
    tensor.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    lists: Any = module.parametrizations
    parametrizations = lists[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            original.data = getattr(module, tensor_name).detach()
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is "
            "parametrized in terms of a sequence of tensors."
        )
    remove_property(type(module), tensor_name)
    del lists[tensor_name]
    if not isinstance(original, Parameter):
        module.register_buffer(tensor_name, original)
    setattr(module, tensor_name, original)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type_before_parametrizations(module)
    return module


def type_before_parametrizations(module: Module) -> type[Module]:
    """Returns the class of a module before its parametrization."""
    return vars(type(module)).get("_without_parametrizations", type(module))


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Gives a module the parametrizations of another, and their originals. Returns to_module.

    tensor_name: the only name whose parametrizations are transferred.
    """
    if not is_parametrized(from_module):
        return to_module
    lists: Any = from_module.parametrizations
    for name in list(lists) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach().clone()))
        for parametrization in lists[name]:
            register_parametrization(to_module, name, parametrization, unsafe=True)
        copies: Any = to_module.parametrizations
        for own, t in zip(copies[name]._originals(), lists[name]._originals()):
            own.data = t.detach().clone()
    return to_module
