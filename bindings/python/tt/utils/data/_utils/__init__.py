"""Parts of utils.data, under the names of PyTorch's modules."""
from . import collate, worker

__all__ = ["collate", "worker"]
