"""while_loop, under the name of PyTorch's module."""
from .._torch_functions import while_loop

__all__ = ["while_loop"]
