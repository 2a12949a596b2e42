"""torch.distributed.elastic.multiprocessing: how processes of a group report errors."""
from . import errors as errors

__all__ = ["errors"]
