"""torch.nn.utils._per_sample_grad: the gradients of each sample, in grad_sample of parameters."""
from __future__ import annotations

from functools import wraps
from typing import Any, Callable

from ..._tensor import Tensor
from ...func import functional_call, vmap
from ...utils import _pytree as pytree
from ..module import Module


def size_of(given: list[Any], dim: int) -> int:
    """Returns the number of samples of all tensors."""
    sizes = {x.shape[dim] for x in given if isinstance(x, Tensor)}
    if len(sizes) != 1:
        raise RuntimeError(
            f"call_for_per_sample_grads: the batch sizes of the arguments are {sorted(sizes)}: "
            "must be one; otherwise batch_size must be given"
        )
    return sizes.pop()


def expanded(p: Tensor, size: int, factor: int) -> Tensor:
    """Returns a parameter for each sample, whose gradients are added to p.grad_sample."""
    each = p.detach().expand(size, *p.shape).requires_grad_()

    def keep(e: Tensor) -> None:
        grad, e.grad = e.grad, None
        assert grad is not None
        before = getattr(p, "grad_sample", None)
        setattr(p, "grad_sample", grad * factor if before is None else before + grad * factor)

    each.register_post_accumulate_grad_hook(keep)
    return each


def call_for_per_sample_grads(
    module: Module,
    *,
    batch_size: int | None = None,
    loss_reduction: str = "sum",
    batch_first: bool = True,
) -> Callable[..., Any]:
    """Returns module.forward such that backward() puts the gradients of each sample into
    grad_sample of the parameters, (samples, *shape), and none into grad.

    batch_size: by default the size that all tensors among the arguments have in the dimension of
    samples. loss_reduction: "mean" multiplies the gradients by it. batch_first: whether the first
    dimension is that of samples, or the second one.
    """
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(f"loss_reduction is {loss_reduction!r}: must be 'sum' or 'mean'")
    if not isinstance(module, Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if batch_size is not None and (not isinstance(batch_size, int) or batch_size < 1):
        raise RuntimeError(f"batch_size is {batch_size!r}: must be a positive int or None")
    if any(getattr(p, "grad_sample", None) is not None for p in module.parameters()):
        raise RuntimeError("grad_sample of a parameter is not None: clear it between two calls")
    dim = 0 if batch_first else 1

    @wraps(module.forward)
    def call(*args: Any, **kwargs: Any) -> Any:
        given, spec = pytree.tree_flatten((args, kwargs))
        size = size_of(given, dim) if batch_size is None else batch_size
        factor = size if loss_reduction == "mean" else 1
        shared = {name: p for name, p in module.named_parameters() if not p.requires_grad}
        own = {
            name: expanded(p, size, factor)
            for name, p in module.named_parameters()
            if p.requires_grad
        }
        batched = [isinstance(x, Tensor) and x.ndim > dim and x.shape[dim] == size for x in given]

        def one(parameters: dict[str, Tensor], sample: list[Any]) -> Any:
            inputs = [x.unsqueeze(dim) if b else x for x, b in zip(sample, batched)]
            arguments, named = pytree.tree_unflatten(inputs, spec)
            result = functional_call(module, {**shared, **parameters}, arguments, named)
            return pytree.tree_map(lambda y: y.squeeze(dim), result)

        of_samples = [dim if b else None for b in batched]
        return vmap(one, (0, of_samples), dim, randomness="different")(own, given)

    return call
