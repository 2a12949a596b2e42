"""Jacobian and Hessian matrices of functions of tensors, and products with them.

Each function takes one tensor or a tuple of tensors as inputs, and returns results of the same
structure. create_graph=True makes the results differentiable. strict=True raises RuntimeError if a
result does not depend on an input, instead of returning zeros. The API is that of
torch.autograd.functional.
"""
from __future__ import annotations

from typing import Any, Callable, Sequence

from .. import _ops as ops
from .._tensor import Tensor
from . import enable_grad, grad, is_grad_enabled, set_grad_enabled

Tensors = tuple[Tensor, ...]

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def as_tuple(x: Any, what: str, function: str) -> tuple[bool, Tensors]:
    """Returns (whether x is a tuple, x as a tuple of tensors)."""
    is_tuple = isinstance(x, tuple)
    parts = x if is_tuple else (x,)
    for i, item in enumerate(parts):
        if not isinstance(item, Tensor):
            place = f" {i}" if is_tuple else ""
            raise TypeError(
                f"{function}: {what}{place} is {type(item).__name__}: "
                "must be a Tensor or a tuple of Tensors"
            )
    return is_tuple, parts


def unwrapped(items: Sequence[Any], is_tuple: bool) -> Any:
    return tuple(items) if is_tuple else items[0]


def prepared(tensors: Tensors, create_graph: bool, need_graph: bool = True) -> Tensors:
    """Returns inputs for one call: views that keep the history if create_graph, else leaves."""
    copies = []
    for t in tensors:
        if create_graph and t.requires_grad:
            copies.append(t.view_as(t))
        else:
            copies.append(t.detach().requires_grad_(need_graph))
    return tuple(copies)


def finished(outs: Any, create_graph: bool) -> Any:
    """Returns results without their history, unless create_graph."""
    if create_graph:
        return outs
    if isinstance(outs, tuple):
        return tuple(finished(x, create_graph) for x in outs)
    return outs.detach()


def check_recorded(tensors: Tensors, what: str, function: str, strict: bool) -> None:
    if not strict:
        return
    for i, t in enumerate(tensors):
        if not t.requires_grad:
            raise RuntimeError(f"{function}: {what} {i} does not depend on the inputs (strict)")


def gradients(
    outputs: Tensors, inputs: Tensors, weights: Sequence[Tensor | None], create_graph: bool
) -> tuple[Tensor | None, ...]:
    """Returns the gradients of the outputs that have a history; None for unused inputs."""
    pairs = [(o, w) for o, w in zip(outputs, weights) if o.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    return grad(
        [o for o, _ in pairs],
        inputs,
        [w for _, w in pairs],
        create_graph=create_graph,
        retain_graph=True,
        allow_unused=True,
    )


def filled(
    grads: Sequence[Tensor | None], like: Tensors, function: str, strict: bool, create_graph: bool
) -> Tensors:
    """Returns grads with zeros for None; with strict it raises RuntimeError."""
    filled_in = []
    for i, (g, t) in enumerate(zip(grads, like)):
        if g is None:
            if strict:
                raise RuntimeError(f"{function}: the outputs do not depend on input {i} (strict)")
            g = ops.zeros_like(t)
        elif strict and create_graph and not g.requires_grad:
            raise RuntimeError(f"{function}: the gradient of input {i} is constant (strict)")
        filled_in.append(g)
    return tuple(filled_in)


def checked_weights(v: Any, like: Tensors, function: str, what: str) -> Tensors:
    """Returns v as a tuple with the sizes of `like`; None means 1, for a tensor of one element."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(f"{function}: v may be None only for {what} of one element")
        return (ops.ones_like(like[0]),)
    _, weights = as_tuple(v, "v", function)
    if len(weights) != len(like):
        raise RuntimeError(f"{function}: v has length {len(weights)}: must be {len(like)}")
    for i, (w, t) in enumerate(zip(weights, like)):
        if w.shape != t.shape:
            raise RuntimeError(
                f"{function}: v[{i}] is {tuple(w.shape)}: must have the shape of {what}, "
                f"{tuple(t.shape)}"
            )
    return weights


def vjp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Returns (func(*inputs), the product of v and the Jacobian matrix).

    v: tensors in the structure of the results; optional for a result of one element.
    """
    recorded = create_graph or is_grad_enabled()
    with enable_grad():
        was_tuple, given = as_tuple(inputs, "inputs", "vjp")
        given = prepared(given, create_graph)
        out_tuple, outs = as_tuple(func(*given), "result", "vjp")
        check_recorded(outs, "result", "vjp", strict)
        weights = checked_weights(v, outs, "vjp", "a result")
    with set_grad_enabled(recorded):
        grads = gradients(outs, given, weights, create_graph)
        products = filled(grads, given, "vjp", strict, create_graph)
    return (
        unwrapped(finished(outs, create_graph), out_tuple),
        unwrapped(finished(products, create_graph), was_tuple),
    )


def pushed(
    outs: Tensors, given: Tensors, tangents: Tensors, create_graph: bool, strict: bool, name: str
) -> Tensors:
    """Returns the derivatives of outs in the direction of tangents, by two backward passes, which
    find out what does not depend on an input: the gradient w -> w J is linear in w, and its own
    gradient in the direction of tangents is J v."""
    weights = tuple(ops.zeros_like(o).requires_grad_() for o in outs)
    grads = gradients(outs, given, weights, True)
    back = filled(grads, given, name, strict, False)
    pairs = tuple((b, t) for b, t in zip(back, tangents) if b.requires_grad)
    if not pairs:
        return filled((None,) * len(outs), outs, name, strict, create_graph)
    forward = gradients(
        tuple(b for b, _ in pairs), weights, tuple(t for _, t in pairs), create_graph
    )
    return filled(forward, outs, name, strict, create_graph)


def run_forward(
    func: Callable[..., Any], given: Tensors, tangents: Tensors, name: str
) -> tuple[bool, Tensors, Tensors]:
    """Returns (whether the result is a tuple, the results, their derivatives in the direction of
    tangents), in forward mode."""
    from ..func import Wrapped, run_jvp

    was_tuple = []

    def listed(tensors: Tensors) -> list[Tensor]:
        is_tuple, outs = as_tuple(func(*tensors), "result", name)
        was_tuple.append(is_tuple)
        return list(outs)

    outs, found = run_jvp(Wrapped(listed), given, tangents)
    products = tuple(ops.zeros_like(o) if p is None else p for o, p in zip(outs, found))
    return was_tuple[0], tuple(outs), products


def jvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Returns (func(*inputs), the product of the Jacobian matrix and v).

    v: tensors in the structure of the inputs; optional for an input of one element.
    """
    with enable_grad():
        _, given = as_tuple(inputs, "inputs", "jvp")
        given = prepared(given, create_graph)
        tangents = checked_weights(v, given, "jvp", "an input")
        if strict:
            out_tuple, outs = as_tuple(func(*given), "result", "jvp")
            check_recorded(outs, "result", "jvp", strict)
            products = pushed(outs, given, tangents, create_graph, strict, "jvp")
        else:
            out_tuple, outs, products = run_forward(func, given, tangents, "jvp")
    return (
        unwrapped(finished(outs, create_graph), out_tuple),
        unwrapped(finished(products, create_graph), out_tuple),
    )


def rows(
    out: Tensor, given: Tensors, create_graph: bool, strict: bool, number: int
) -> tuple[Tensor, ...]:
    """Returns the Jacobian matrices of one result: out.shape + input.shape for each input."""
    grads_by_input: list[list[Tensor]] = [[] for _ in given]
    flat = out.reshape(-1)
    for i in range(flat.numel()):
        grads = gradients((flat[i],), given, (None,), create_graph)
        for k, (g, t) in enumerate(zip(grads, given)):
            if g is None and strict:
                raise RuntimeError(
                    f"jacobian: result {number} does not depend on input {k} (strict)"
                )
            if g is not None and strict and create_graph and not g.requires_grad:
                raise RuntimeError(
                    f"jacobian: the Jacobian matrix of result {number} and input {k} is constant "
                    "(strict)"
                )
            grads_by_input[k].append(ops.zeros_like(t) if g is None else g)
    matrices = []
    for grads_of_input, t in zip(grads_by_input, given):
        shape = tuple(out.shape) + tuple(t.shape)
        if grads_of_input:
            matrices.append(ops.stack(grads_of_input).reshape(shape))
        else:
            matrices.append(ops.zeros(shape, dtype=t.dtype, device=t.device))
    return tuple(matrices)


def columns(func: Callable[..., Any], given: Tensors) -> tuple[bool, list[tuple[Tensor, ...]]]:
    """Returns (whether the result is a tuple, the Jacobian matrices of each result), in forward
    mode for all elements of the inputs at once."""
    from ..func import jacfwd

    was_tuple = []

    def listed(*tensors: Tensor) -> Tensors:
        is_tuple, outs = as_tuple(func(*tensors), "result", "jacobian")
        was_tuple.append(is_tuple)
        return outs

    matrices = jacfwd(listed, tuple(range(len(given))))(*given)
    return was_tuple[0], list(matrices)


def check_strategy(function: str, argument: str, strategy: str, vectorize: bool) -> None:
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ValueError(
            f"{function}: {argument} is {strategy!r}: must be 'reverse-mode' or 'forward-mode'"
        )
    if strategy == "forward-mode" and not vectorize:
        raise NotImplementedError(
            f"{function}: {argument}='forward-mode' is for vectorize=True: use 'reverse-mode'"
        )


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Returns the Jacobian matrices of func at inputs.

    A matrix has the shape out.shape + input.shape. Tuples of results or inputs give tuples of
    matrices, nested with the results outside. vectorize only changes which strict and strategy are
    allowed. strategy: "reverse-mode" needs a backward pass per element of the results,
    "forward-mode" computes the derivatives by all elements of the inputs at once, in vmap.
    """
    check_strategy("jacobian", "strategy", strategy, vectorize)
    if strategy == "forward-mode" and create_graph:
        raise NotImplementedError(
            "jacobian: create_graph=True needs strategy='reverse-mode': the forward mode is not "
            "recorded"
        )
    if vectorize and strict:
        raise RuntimeError("jacobian: strict=True is not supported with vectorize=True")
    with enable_grad():
        was_tuple, given = as_tuple(inputs, "inputs", "jacobian")
        given = prepared(given, create_graph)
        if strategy == "forward-mode":
            out_tuple, matrices = columns(func, given)
        else:
            out_tuple, outs = as_tuple(func(*given), "result", "jacobian")
            check_recorded(outs, "result", "jacobian", strict)
            matrices = [rows(o, given, create_graph, strict, i) for i, o in enumerate(outs)]
    matrices_of_results = [unwrapped(finished(row, create_graph), was_tuple) for row in matrices]
    return unwrapped(matrices_of_results, out_tuple)


def scalar_result(func: Callable[..., Any], args: Tensors, function: str) -> Tensor:
    """Returns func(*args), a tensor of one element, as a 0-dim tensor."""
    out = func(*args)
    is_tuple, outs = as_tuple(out, "result", function)
    if is_tuple or outs[0].numel() != 1:
        raise RuntimeError(f"{function}: func must return a single Tensor of one element")
    return outs[0].reshape(())


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Returns the Hessian matrices of func at inputs: input.shape + input.shape, or a tuple of
    tuples of them. func returns a tensor of one element."""
    check_strategy("hessian", "outer_jacobian_strategy", outer_jacobian_strategy, vectorize)
    was_tuple, given = as_tuple(inputs, "inputs", "hessian")

    def gradient(*args: Tensor) -> Tensors:
        out = scalar_result(func, args, "hessian")
        check_recorded((out,), "result", "hessian", strict)
        grads = gradients((out,), args, (None,), True)
        return filled(grads, args, "hessian", strict, strict)

    blocks = jacobian(
        gradient, given, create_graph, strict, vectorize, strategy=outer_jacobian_strategy
    )
    return blocks if was_tuple else blocks[0][0]


def vhp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Returns (func(*inputs), the product of v and the Hessian matrix)."""
    recorded = create_graph or is_grad_enabled()
    with enable_grad():
        was_tuple, given = as_tuple(inputs, "inputs", "vhp")
        given = prepared(given, create_graph)
        weights = checked_weights(v, given, "vhp", "an input")
        out = scalar_result(func, given, "vhp")
        check_recorded((out,), "result", "vhp", strict)
        grads = gradients((out,), given, (None,), True)
        first = filled(grads, given, "vhp", strict, strict)
    with set_grad_enabled(recorded):
        second = gradients(first, given, weights, create_graph)
        products = filled(second, given, "vhp", strict, create_graph)
    return finished(out, create_graph), unwrapped(finished(products, create_graph), was_tuple)


def gradient_and_product(
    func: Callable[..., Any], given: Tensors, tangents: Tensors, create_graph: bool
) -> tuple[Tensor, Tensors]:
    """Returns func(*given) and the product of the Hessian matrix and tangents: the derivative of
    the gradient, in forward mode."""

    def both(*tensors: Tensor) -> Tensors:
        out = scalar_result(func, tensors, "hvp")
        grads = gradients((out,), tensors, (None,), create_graph)
        return (out, *filled(grads, tensors, "hvp", False, False))

    _, outs, products = run_forward(both, given, tangents, "hvp")
    return outs[0], products[1:]


def hvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Returns (func(*inputs), the product of the Hessian matrix and v).

    vhp is faster and returns the same if the Hessian matrix is symmetric, as it is for functions
    with continuous second derivatives.
    """
    with enable_grad():
        was_tuple, given = as_tuple(inputs, "inputs", "hvp")
        given = prepared(given, create_graph)
        tangents = checked_weights(v, given, "hvp", "an input")
        if strict:
            out = scalar_result(func, given, "hvp")
            check_recorded((out,), "result", "hvp", strict)
            grads = gradients((out,), given, (None,), True)
            first = filled(grads, given, "hvp", strict, strict)
            products = pushed(first, given, tangents, create_graph, strict, "hvp")
        else:
            out, products = gradient_and_product(func, given, tangents, create_graph)
    return finished(out, create_graph), unwrapped(finished(products, create_graph), was_tuple)


def __dir__() -> list[str]:
    return __all__
