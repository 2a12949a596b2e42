"""Backends, with the names of torch.backends. is_available() returns False for those that tt does
not use; their switches are accepted and ignored."""
from . import cpu, cuda, cudnn, mkl, mkldnn, mps, openmp, opt_einsum, quantized

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum", "quantized"]


def __dir__() -> list[str]:
    return __all__
