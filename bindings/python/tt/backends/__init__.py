"""Backends, with the names of torch.backends. is_available() returns False for those that tt does
not use; their switches are accepted and ignored."""
from . import cpu, cuda, cudnn, cusparselt, kleidiai, mha, miopen, mkl, mkldnn, mps, nnpack
from . import openmp, opt_einsum, quantized, xnnpack

__all__ = [
    "cpu",
    "cuda",
    "cudnn",
    "cusparselt",
    "kleidiai",
    "mha",
    "miopen",
    "mkl",
    "mkldnn",
    "mps",
    "nnpack",
    "openmp",
    "opt_einsum",
    "quantized",
    "xnnpack",
]
fp32_precision = "none"  # accepted: each of cuda and cudnn has its own switches


def __dir__() -> list[str]:
    return __all__
