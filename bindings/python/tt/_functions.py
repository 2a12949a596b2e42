"""Functions whose Python form no rule of the generator gives."""
from . import _ops


def einsum(equation, *operands):
    """einsum(equation, *operands)

    Sums of products by Einstein's convention. The operands follow the equation, or stand in one list.
    """
    if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = tuple(operands[0])
    return _ops.einsum(equation, operands)
