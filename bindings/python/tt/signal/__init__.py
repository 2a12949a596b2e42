"""Signal processing, as in torch.signal."""
from . import windows

__all__ = ["windows"]
