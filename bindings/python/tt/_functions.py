"""Functions whose Python form no rule of the generator gives."""
from . import _ops, errors
from ._tensor import Tensor


def einsum(equation, *operands):
    """einsum(equation, *operands)

    Sums of products by Einstein's convention. The operands follow the equation, or stand in one list.
    """
    if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = tuple(operands[0])
    return _ops.einsum(equation, operands)


def linspace(start, end, steps, *, dtype=None, device=None, out=None, requires_grad=False):
    """linspace(start, end, steps): that many numbers at equal distances, both ends included. The ends may be 0-dim tensors."""
    for name, x in (("start", start), ("end", end)):
        if isinstance(x, Tensor) and x.ndim:
            raise errors.ShapeError(f"linspace: {name} is {list(x.shape)}: must be a number or 0-dim")
    return _ops.linspace(start, end, steps, dtype=dtype, device=device, out=out, requires_grad=requires_grad)


def nonzero(input, *, as_tuple=False, out=None):
    """nonzero(input, *, as_tuple=False, out=None)

    The positions of the elements that are not 0: one row of indices each. as_tuple: one tensor of indices per dimension.
    """
    if not as_tuple:
        return _ops.nonzero(input, out=out)
    if out is not None:
        raise TypeError("nonzero(): out= is only taken without as_tuple")
    return _ops.unbind(_ops.nonzero(_ops.reshape(input, -1) if input.ndim == 0 else input), 1)


def spread(operator):
    """var, std and var_mean, which take `unbiased` for a correction of 1 or 0, also in the place of dim."""
    def function(input, dim=None, unbiased=None, keepdim=False, *, correction=None, **out):
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        if unbiased is not None and correction is not None:
            raise TypeError(f"{operator.__name__}(): takes unbiased or correction, not both")
        if correction is None:
            correction = 1 if unbiased is None else int(unbiased)
        return operator(input, dim, correction, keepdim, **out)
    function.__name__, function.__doc__ = operator.__name__, operator.__doc__
    return function


var, std, var_mean = spread(_ops.var), spread(_ops.std), spread(_ops.var_mean)
Tensor.nonzero, Tensor.var, Tensor.std = nonzero, var, std
