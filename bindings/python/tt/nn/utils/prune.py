"""Pruning: masks that zero parts of parameters, with the API of torch.nn.utils.prune.

A pruned parameter NAME is kept as NAME_orig, its mask is the buffer NAME_mask, and NAME is their
product, which a forward pre-hook computes.
"""
from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Iterable, Sequence

from ... import _ops as ops
from ..._tensor import Tensor
from ..module import Module

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


# ---- amounts ----


def check_amount(amount: Any) -> None:
    """Checks an amount: a number of units, or a fraction of them as a float in [0, 1]."""
    if isinstance(amount, bool) or not isinstance(amount, (int, float)):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if amount < 0 or isinstance(amount, float) and not amount <= 1:
        raise ValueError(
            f"amount={amount} should either be a float in the range [0.0, 1.0] "
            "or a non-negative integer"
        )


def number_to_prune(amount: int | float, size: int) -> int:
    """Returns the number of units that an amount of `size` units is."""
    if isinstance(amount, float):
        return round(amount * size)
    if amount > size:
        raise ValueError(
            f"amount={amount} should be smaller than the number of parameters to prune={size}"
        )
    return amount


def without_smallest(mask: Tensor, scores: Tensor, n: int) -> Tensor:
    """Returns the mask with 0 at the n smallest scores."""
    pruned = mask.clone()
    if n:
        smallest = ops.topk(scores.reshape(-1), n, largest=False).indices
        pruned.view(-1)[smallest] = 0
    return pruned


def over_channels(t: Tensor, dim: int, keep: Tensor) -> Tensor:
    """Expands `keep`, a number for each index in dim, to the shape of t."""
    shape = [1] * t.ndim
    shape[dim] = t.shape[dim]
    return keep.reshape(shape).to(t.dtype).expand(t.shape).contiguous()


# ---- methods ----


class BasePruningMethod(ABC):
    """A method of selecting pruned elements. A subclass defines PRUNING_TYPE and compute_mask."""

    PRUNING_TYPE: ClassVar[str]  # "unstructured", "structured" or "global"
    _tensor_name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        """Multiplies the original by the mask, before forward."""
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Returns default_mask with zeros for the elements to prune. t: the importance scores."""

    def apply_mask(self, module: Module) -> Tensor:
        """Returns the product of original and mask."""
        original = getattr(module, self._tensor_name + "_orig")
        return getattr(module, self._tensor_name + "_mask").to(original.dtype) * original

    @classmethod
    def apply(
        cls,
        module: Module,
        name: str,
        *args: Any,
        importance_scores: Tensor | None = None,
        **kwargs: Any,
    ) -> BasePruningMethod:
        """Prunes module.name by cls(*args, **kwargs), after earlier prunings. Returns the method.

        importance_scores: scores in the parameter's shape; None: the parameter.
        """
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        value = getattr(module, name)
        scores = value if importance_scores is None else importance_scores
        if scores.shape != value.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}"
            )
        earlier = hook_of(module, name)
        if earlier is None:
            mask = method.compute_mask(scores.detach(), ops.ones_like(value))
            original = module._parameters[name]
            delattr(module, name)
            module.register_parameter(name + "_orig", original)
            module.register_buffer(name + "_mask", mask)
        else:
            number, former = earlier
            method = PruningContainer.of(former, method)
            mask = method.compute_mask(scores.detach(), getattr(module, name + "_mask"))
            del module._forward_pre_hooks[number]
            setattr(module, name + "_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(
        self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None
    ) -> Tensor:
        """Returns a pruned copy of a tensor.

        default_mask: the mask of earlier prunings. importance_scores: by default t.
        """
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise AssertionError("importance_scores should have the same shape as tensor t")
        mask = ops.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, mask)

    def remove(self, module: Module) -> None:
        """Makes the pruned value the parameter. The caller removes the hook."""
        name = self._tensor_name
        pruned = self.apply_mask(module)
        original = module._parameters[name + "_orig"]
        if original is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        original.data = pruned.detach()
        for end in ("", "_orig", "_mask"):
            delattr(module, name + end)
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several methods on one parameter. Each prunes the remaining elements of the previous ones."""

    def __init__(self, *args: BasePruningMethod) -> None:
        self._methods: tuple[BasePruningMethod, ...] = ()
        for method in args:
            if not self._methods:
                self._tensor_name = method._tensor_name
            self.add_pruning_method(method)

    @classmethod
    def of(cls, former: BasePruningMethod, method: BasePruningMethod) -> PruningContainer:
        """Returns a container of a method and the previous ones."""
        earlier = former._methods if isinstance(former, PruningContainer) else (former,)
        return cls(*earlier, method)

    def add_pruning_method(self, method: Any) -> None:
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method._tensor_name != self._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._methods += (method,)

    def __len__(self) -> int:
        return len(self._methods)

    def __iter__(self) -> Any:
        return iter(self._methods)

    def __getitem__(self, i: int) -> BasePruningMethod:
        return self._methods[i]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Applies the last method to the entries that are not pruned yet."""
        method = self._methods[-1]
        kind = method.PRUNING_TYPE
        mask = default_mask.to(t.dtype)
        if kind == "global":
            return method.compute_mask(t, mask)
        if kind == "unstructured":
            left = mask == 1
            combined = mask.clone()
            combined[left] = method.compute_mask(t[left], mask[left])
            return combined
        if kind != "structured":
            raise AttributeError(f"Unrecognized PRUNING_TYPE {kind}")
        dim = getattr(method, "dim", 0) % t.ndim
        others = [d for d in range(t.ndim) if d != dim]
        left = (mask.sum(others) if others else mask) != 0
        channels = left.reshape(-1).argwhere().reshape(-1)
        part = method.compute_mask(t.index_select(dim, channels), mask.index_select(dim, channels))
        return mask.index_copy(dim, channels, part)


class Identity(BasePruningMethod):
    """Prunes nothing, but creates the original and the mask."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


class RandomUnstructured(BasePruningMethod):
    """Prunes elements at random."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: int | float) -> None:
        check_amount(amount)
        self.amount = amount

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        n = number_to_prune(self.amount, t.numel())
        return without_smallest(default_mask, ops.rand(t.shape), n)


class L1Unstructured(BasePruningMethod):
    """Prunes the elements with the smallest absolute values."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: int | float) -> None:
        check_amount(amount)
        self.amount = amount

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        n = number_to_prune(self.amount, t.numel())
        return without_smallest(default_mask, ops.abs(t), n)


class StructuredMethod(BasePruningMethod):
    """Prunes whole slices along dim."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: int | float, dim: int = -1) -> None:
        check_amount(amount)
        self.amount, self.dim = amount, dim

    def scores(self, t: Tensor) -> Tensor:
        """Returns a number for each slice."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if t.ndim < 2:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. "
                f"Found tensor of shape {tuple(t.shape)} with {t.ndim} dims"
            )
        if not -t.ndim <= self.dim < t.ndim:
            raise IndexError(f"Invalid index {self.dim} for tensor of size {tuple(t.shape)}")
        channels = t.shape[self.dim]
        n = number_to_prune(self.amount, channels)
        keep = without_smallest(ops.ones(channels), self.scores(t), n)
        return default_mask * over_channels(default_mask, self.dim, keep)


class RandomStructured(StructuredMethod):
    """Prunes slices at random."""

    def scores(self, t: Tensor) -> Tensor:
        return ops.rand(t.shape[self.dim])


class LnStructured(StructuredMethod):
    """Prunes the slices with the smallest n-norms."""

    def __init__(self, amount: int | float, n: float | str, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def scores(self, t: Tensor) -> Tensor:
        slices = t.movedim(self.dim, 0).flatten(1)
        return ops.norm(slices, self.n, 1)


class CustomFromMask(BasePruningMethod):
    """Prunes elements where a mask is 0."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if self.mask.shape != default_mask.shape:
            raise AssertionError("the mask should have the shape of the parameter")
        return default_mask * self.mask.to(default_mask.dtype)


# ---- functions ----


def hook_of(module: Module, name: str) -> tuple[int, BasePruningMethod] | None:
    """Returns the hook key and the method of the pruning of module.name."""
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            return number, hook
    return None


def identity(module: Module, name: str) -> Module:
    """Creates the original and the mask of a parameter, without pruning it. Returns the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: int | float) -> Module:
    """Prunes elements of a parameter at random. Returns the module.

    amount: number of elements, or their fraction as a float.
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: Module, name: str, amount: int | float, importance_scores: Tensor | None = None
) -> Module:
    """Prunes the elements of a parameter with the smallest absolute values. Returns the module.

    amount: number of elements, or their fraction as a float.
    importance_scores: compared instead of the parameter's elements.
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: int | float, dim: int) -> Module:
    """Prunes slices of a parameter along dim at random. Returns the module.

    amount: number of slices, or their fraction as a float.
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module,
    name: str,
    amount: int | float,
    n: float,
    dim: int,
    importance_scores: Tensor | None = None,
) -> Module:
    """Prunes the slices of a parameter along dim with the smallest n-norms. Returns the module.

    amount: number of slices, or their fraction as a float.
    importance_scores: used for the norms instead of the parameter's elements.
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prunes elements of several parameters, which are compared with each other.

    parameters: (module, name) pairs.
    pruning_method: a class whose PRUNING_TYPE is "unstructured"; kwargs are its arguments.
    importance_scores: {(module, name): scores}, compared instead of a parameter's elements.
    """
    pairs: Sequence[tuple[Module, str]] = list(parameters)
    given = importance_scores or {}
    if not isinstance(given, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    values = [getattr(module, name) for module, name in pairs]
    scores = [given.get(pair, value).detach() for pair, value in zip(pairs, values)]
    masks = [
        getattr(module, name + "_mask", ops.ones_like(value.detach()))
        for (module, name), value in zip(pairs, values)
    ]
    method = PruningContainer()
    method._tensor_name = "temp"
    new_method: Any = pruning_method(**kwargs)
    new_method._tensor_name = "temp"
    if new_method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. '
            f"Found method {pruning_method} of type {new_method.PRUNING_TYPE}"
        )
    method.add_pruning_method(new_method)
    mask = method.compute_mask(
        ops.cat([s.reshape(-1) for s in scores]), ops.cat([m.reshape(-1) for m in masks])
    )
    start = 0
    for (module, name), value in zip(pairs, values):
        part = mask[start : start + value.numel()]
        custom_from_mask(module, name, part.reshape(value.shape))
        start += value.numel()


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prunes the elements of a parameter where a mask is 0. Returns the module."""
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module: Module, name: str) -> Module:
    """Makes the pruned value the parameter, and removes mask and hook. Returns the module."""
    hook = hook_of(module, name)
    if hook is None:
        raise ValueError(
            f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
        )
    number, method = hook
    method.remove(module)
    del module._forward_pre_hooks[number]
    return module


def is_pruned(module: Module) -> bool:
    """Returns whether a parameter of the module, or of one below it, is pruned."""
    return any(
        isinstance(hook, BasePruningMethod)
        for m in module.modules()
        for hook in m._forward_pre_hooks.values()
    )
