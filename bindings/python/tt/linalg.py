"""Linear algebra, by PyTorch's names."""
from . import _ops

__all__ = ["vector_norm"]


def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None, out=None):
    """vector_norm(x, ord=2, dim=None, keepdim=False): the norm of the elements along the listed dimensions (none: all)."""
    return _ops.norm(x, ord, dim, keepdim=keepdim, dtype=dtype, out=out)
