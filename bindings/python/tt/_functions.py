"""Functions whose Python form no rule of the generator gives."""
from . import _ops, errors
from ._tensor import Tensor


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


def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """norm(input, p='fro', dim=None, keepdim=False, dtype=None): the vector norm over the listed dimensions (none: all); 'nuc': of matrices."""
    if isinstance(p, str) or p is None:
        if p == "nuc":
            return _ops.nuclear_norm(input if dtype is None else input.to(dtype), () if dim is None else dim, keepdim=keepdim, out=out)
        if p not in ("fro", None):
            raise errors.ShapeError(f"norm(): p is {p!r}: must be a number, 'fro' or 'nuc'")
        if isinstance(dim, (tuple, list)) and len(dim) > 2:
            raise errors.ShapeError("norm(): 'fro' takes at most two dimensions")
        p = 2.0
    return _ops.norm(input, p, dim, keepdim=keepdim, dtype=dtype, out=out)
