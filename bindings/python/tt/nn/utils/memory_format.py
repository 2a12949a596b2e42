"""Functions of nn.utils, under the name of PyTorch's module."""
from . import convert_conv2d_weight_memory_format, convert_conv3d_weight_memory_format

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]
