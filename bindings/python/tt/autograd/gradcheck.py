"""Compares gradients with finite differences, as torch.autograd.gradcheck."""
from __future__ import annotations

import warnings
from typing import Any, Callable, Sequence

from .. import _ops as ops
from .._tensor import Tensor
from .._types import BY_NAME
from ._gradients import grad
from .grad_mode import enable_grad, no_grad

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """Raised if a gradient differs from the finite differences."""


def differentiable(x: Any) -> bool:
    return isinstance(x, Tensor) and (x.dtype.is_floating_point or x.dtype.is_complex)


def as_tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def outputs_of(func: Callable[..., Any], args: Sequence[Any]) -> list[Tensor]:
    """Returns the results of func that can have a gradient."""
    return [o for o in as_tuple(func(*args)) if differentiable(o)]


def directions(t: Tensor, eps: float) -> list[Any]:
    """Returns the steps for an element of t: a real one, and an imaginary one if t is complex."""
    return [eps, 1j * eps] if t.dtype.is_complex else [eps]


def moved(t: Tensor, index: int, step: Any) -> Tensor:
    """Returns a copy of t, with its strides, with a step added to one element."""
    flat = t.detach().contiguous().reshape(-1).clone()
    flat[index] = flat[index] + step
    copy = ops.empty_like(t.detach())
    copy.copy_(flat.reshape(t.shape))
    return copy


def numerical(
    func: Callable[..., Any], args: Sequence[Any], at: int, outs: Sequence[Tensor], eps: float
) -> list[list[list[Tensor]]]:
    """Returns central differences [result][direction][element of input at], flat.

    In the direction of a real or an imaginary step; complex results are complex.
    """
    quotients: list[list[list[Tensor]]] = []
    t = args[at]
    for _ in outs:
        quotients.append([[] for _ in directions(t, eps)])
    with no_grad():
        for k, step in enumerate(directions(t, eps)):
            for i in range(t.numel()):
                ends = []
                for side in (step, -step):
                    changed = list(args)
                    changed[at] = moved(t, i, side)
                    ends.append([o.detach().clone() for o in outputs_of(func, changed)])
                for n, (up, down) in enumerate(zip(*ends)):
                    quotients[n][k].append(((up - down) / (2 * eps)).reshape(-1))
    return quotients


def analytical(out: Tensor, t: Tensor, weight: Any, allow_none: bool = True) -> list[Tensor]:
    """Returns the gradient of each element of out with respect to t, with a cotangent of `weight`
    (1 or 1j) there."""
    gradients = []
    for j in range(out.numel()):
        v = ops.zeros(out.numel(), dtype=out.dtype, device=out.device)
        v[j] = weight
        (g,) = grad(out, [t], v.reshape(out.shape), retain_graph=True, allow_unused=True)
        gradients.append(ops.zeros(t.shape, dtype=t.dtype, device=t.device) if g is None else g)
    return gradients


def close(a: Tensor, b: Tensor, rtol: float, atol: float) -> bool:
    both = [x.to(BY_NAME["complex128" if x.dtype.is_complex else "float64"]) for x in (a, b)]
    return bool(ops.isclose(both[0], both[1], rtol, atol, True).all())


def compare(
    func: Callable[..., Any],
    args: Sequence[Any],
    eps: float,
    rtol: float,
    atol: float,
    nondet_tol: float,
) -> None:
    """Raises GradcheckError for the first gradient that is wrong."""
    with enable_grad():
        outs = outputs_of(func, args)
        again = outputs_of(func, args)
    for i, (a, b) in enumerate(zip(outs, again)):
        if not close(a.detach(), b.detach(), 0.0, nondet_tol):
            raise GradcheckError(f"gradcheck: result {i} differs between two equal calls")
    for at, t in enumerate(args):
        if not (differentiable(t) and t.requires_grad):
            continue
        differences = numerical(func, args, at, outs, eps)
        for number, out in enumerate(outs):
            if out.numel() == 0 or t.numel() == 0:
                continue
            compare_one(out, t, differences[number], (at, number), rtol, atol)


def compare_one(
    out: Tensor,
    t: Tensor,
    differences: list[list[Tensor]],
    place: tuple[int, int],
    rtol: float,
    atol: float,
) -> None:
    """Compares the gradients of one result with respect to one input.

    For a real function w of the result, dw = Re(conj(cotangent) dout), and the gradient g of the
    input has dw = Re(conj(g) dt): its real part belongs to real steps, its imaginary part to
    imaginary ones.
    """
    weights = [1, 1j] if out.dtype.is_complex else [1]
    for weight in weights:
        if out.requires_grad:
            rows = analytical(out, t, weight)
        else:
            rows = [ops.zeros_like(t) for _ in range(out.numel())]
        matrix = ops.stack([r.reshape(-1) for r in rows])  # [result element, input element]
        for k, columns in enumerate(differences):
            expected = ops.stack(columns, 1)
            if out.dtype.is_complex:
                expected = expected.real if weight == 1 else expected.imag
            actual = matrix
            if t.dtype.is_complex:
                actual = matrix.real if k == 0 else matrix.imag
            if not close(actual, expected.to(actual.dtype), rtol, atol):
                raise GradcheckError(
                    f"gradcheck: the gradient of result {place[1]} with respect to input "
                    f"{place[0]} is wrong.\nnumerical:\n{expected.T}\nanalytical:\n{actual.T}"
                )


def compare_forward(
    func: Callable[..., Any], args: Sequence[Any], eps: float, rtol: float, atol: float
) -> None:
    """Raises GradcheckError for the first derivative in forward mode that is wrong."""
    from ..func import jvp

    outs = outputs_of(func, args)
    for at, t in enumerate(args):
        if not (differentiable(t) and t.requires_grad):
            continue
        differences = numerical(func, args, at, outs, eps)

        def of_one(x: Tensor) -> tuple[Tensor, ...]:
            return tuple(outputs_of(func, [*args[:at], x, *args[at + 1 :]]))

        for k, step in enumerate(directions(t, eps)):
            for i in range(t.numel()):
                tangent = moved(ops.zeros_like(t), i, step / eps)
                _, derivatives = jvp(of_one, (t.detach(),), (tangent,))
                for number, derivative in enumerate(derivatives):
                    expected = differences[number][k][i]
                    if not close(derivative.detach().reshape(-1), expected, rtol, atol):
                        raise GradcheckError(
                            f"gradcheck: the derivative in forward mode of result {number} with "
                            f"respect to input {at} is wrong.\nnumerical:\n{expected}\n"
                            f"analytical:\n{derivative}"
                        )


def check_inputs(args: Sequence[Any]) -> None:
    """Raises ValueError unless an input requires a gradient, RuntimeError for one whose elements
    overlap in memory; warns of one of low precision."""
    checked = [t for t in args if differentiable(t) and t.requires_grad]
    if not checked:
        raise ValueError("gradcheck: at least one input must be a Tensor with requires_grad=True")
    for i, t in enumerate(args):
        if not (differentiable(t) and t.requires_grad):
            continue
        if t.dtype.name not in ("float64", "complex128"):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or "
                "complex. This check will likely fail if all the inputs are not of double "
                "precision floating point or complex."
            )
        if any(step == 0 and size > 1 for size, step in zip(t.shape, t.stride())):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs "
                "that are non-overlapping to be able to compute the numerical gradients correctly. "
                "You should call .contiguous on the input before passing it to gradcheck."
            )


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Returns whether the gradients of func at inputs agree with central differences of step eps.

    Tensors among the inputs that require a gradient are checked; they should be float64 or
    complex128. raise_exception: raises GradcheckError instead of returning False.
    nondet_tol: the allowed difference of two equal calls. check_forward_ad, check_backward_ad:
    compares func.jvp, and autograd.grad. check_grad_dtypes: gradients must have the dtype of their
    input, which always holds. The other arguments are ignored: all elements are compared.
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("gradcheck: check_forward_ad or check_backward_ad must be True")
    args = as_tuple(inputs)
    check_inputs(args)
    try:
        if check_forward_ad:
            compare_forward(func, args, eps, rtol, atol)
        if check_backward_ad:
            compare(func, args, eps, rtol, atol, nondet_tol)
    except RuntimeError:  # also of a backward that fails
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Returns whether the gradients of the gradients of func agree with central differences.

    grad_outputs: the cotangents of the results; by default random. For the other arguments see
    gradcheck; check_rev_over_rev or check_fwd_over_rev must be True, and both compare the
    derivatives of autograd.grad by autograd.grad.
    """
    if not (check_rev_over_rev or check_fwd_over_rev):
        raise AssertionError("gradgradcheck: check_rev_over_rev or check_fwd_over_rev must be True")
    args = as_tuple(inputs)
    if grad_outputs is None:
        outs = outputs_of(func, args)
        weights = [random_like(o).requires_grad_() for o in outs if o.requires_grad]
    else:
        weights = [w.detach().requires_grad_() for w in as_tuple(grad_outputs)]
    wanted = [i for i, t in enumerate(args) if differentiable(t) and t.requires_grad]

    def gradient(*both: Any) -> tuple[Any, ...]:
        given, cotangents = both[: len(args)], both[len(args) :]
        with enable_grad():
            given = tuple(
                x.detach().requires_grad_() if i in wanted and not x.requires_grad else x
                for i, x in enumerate(given)
            )
            outs = [o for o in outputs_of(func, given) if o.requires_grad]
            grads = grad(
                outs,
                [given[i] for i in wanted],
                list(cotangents),
                create_graph=True,
                allow_unused=True,
            )
        return tuple(g for g in grads if g is not None)

    return gradcheck(
        gradient,
        (*args, *weights),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
    )


def random_like(o: Tensor) -> Tensor:
    return ops.randn(o.shape, dtype=o.dtype, device=o.device)
