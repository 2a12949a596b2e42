"""Backends, by the names of torch.backends. Those that tt lacks say so by is_available(); switches
that choose between their algorithms are accepted and change nothing."""
from . import cpu, cuda, cudnn, mkl, mkldnn, mps, openmp, opt_einsum, quantized

__all__ = ["cpu", "cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp", "opt_einsum", "quantized"]
