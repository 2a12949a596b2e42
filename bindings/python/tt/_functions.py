"""Functions whose Python form no rule of the generator gives."""
from . import _ops


def where(condition, input=None, other=None, *, out=None):
    """where(condition, input, other, *, out=None)

    `input` where `condition` is true, else `other`; broadcasts all three. Of condition alone: nonzero(condition, as_tuple=True).
    """
    return nonzero(condition, as_tuple=True) if input is None and other is None else _ops.where(condition, input, other, out=out)


def nonzero(input, *, as_tuple=False, out=None):
    """nonzero(input, *, as_tuple=False, out=None)

    The positions of the elements that are not 0: one row of indices each. as_tuple: one tensor of indices per dimension.
    """
    found = _ops.nonzero(_ops.reshape(input, -1) if as_tuple and input.ndim == 0 else input, out=out)
    return _ops.unbind(found, 1) if as_tuple else found


def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """norm(input, p='fro', dim=None, keepdim=False, dtype=None): the vector norm over the listed dimensions (none: all); 'nuc': of matrices."""
    if p == "nuc":
        return _ops.nuclear_norm(input.to(dtype), dim, keepdim=keepdim, out=out)
    return _ops.norm(input, 2.0 if p in ("fro", None) else p, dim, keepdim=keepdim, dtype=dtype, out=out)
