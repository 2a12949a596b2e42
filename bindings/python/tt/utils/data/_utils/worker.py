"""What workers of a DataLoader know, under the name of PyTorch's module."""
from ..worker import WorkerInfo, get_worker_info

__all__ = ["WorkerInfo", "get_worker_info"]
