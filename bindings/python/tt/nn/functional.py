"""Functions of neural networks, by their PyTorch names."""
from .. import _ops
from . import _images

globals().update({**_ops.PLACES["nn.functional"], **_images.FUNCTIONS})
__all__ = sorted({*_ops.PLACES["nn.functional"], *_images.FUNCTIONS})
