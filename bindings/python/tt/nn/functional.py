"""Functions of neural networks, by their PyTorch names."""
from .. import _ops

globals().update(_ops.PLACES["nn.functional"])
__all__ = sorted(_ops.PLACES["nn.functional"])
