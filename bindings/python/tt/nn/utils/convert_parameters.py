"""Functions of nn.utils, under the name of PyTorch's module."""
from . import parameters_to_vector, vector_to_parameters

__all__ = ["parameters_to_vector", "vector_to_parameters"]
