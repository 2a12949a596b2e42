"""einsum with an equation, or with the dimensions of each operand as a list of numbers."""
from __future__ import annotations

from typing import Any

from ._interception import handle, is_intercepted, overloaded, overridable_functions
from ._ops import einsum as einsum_of_equation
from ._tensor import Tensor
from .errors import InvalidArgumentError

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def einsum(*args: Any) -> Tensor:
    """einsum(equation, *operands)

    Sums products of the elements of operands along the dimensions that equation specifies, in
    Einstein notation: see tt.einsum in the reference. einsum(a, [0, 1], b, [1, 2], [0, 2]) names
    dimensions by numbers from 0 to 51 instead, with ... for further ones. The last list, of the
    result's dimensions, is optional.
    """
    if len(args) == 2 and isinstance(args[1], (list, tuple)) and isinstance(args[0], str):
        args = (args[0], *args[1])  # a list of operands is taken apart before a tracer sees it
    if is_intercepted(args):
        return handle(einsum, overloaded(args), args, {})
    if not args or not isinstance(args[0], Tensor):
        return einsum_of_equation(*args)
    operands = args[: len(args) // 2 * 2 : 2]
    terms = ",".join(labels(of) for of in args[1::2])
    if len(args) % 2:
        terms += "->" + labels(args[-1])
    return einsum_of_equation(terms, operands)


overridable_functions.add(einsum)


def labels(sublist: Any) -> str:
    """Returns the labels that a list of numbers has in an equation."""
    if not isinstance(sublist, (tuple, list)):
        raise TypeError(
            f"einsum(): after each operand comes a list of ints, not {type(sublist).__name__}"
        )
    letters = ""
    for n in sublist:
        if n is Ellipsis:
            letters += "..."
        elif isinstance(n, int) and 0 <= n < len(LETTERS):
            letters += LETTERS[n]
        else:
            raise InvalidArgumentError(
                f"einsum: {n} in {list(sublist)} must be from 0 to 51 or ..."
            )
    return letters
