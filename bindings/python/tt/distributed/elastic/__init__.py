"""The names of torch.distributed.elastic that scripts under a launcher use."""
from . import multiprocessing as multiprocessing

__all__ = ["multiprocessing"]
