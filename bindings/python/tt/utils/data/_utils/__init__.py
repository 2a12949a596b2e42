"""Parts of utils.data, under the names of PyTorch's modules."""
from . import collate, pin_memory, worker

__all__ = ["collate", "pin_memory", "worker"]
