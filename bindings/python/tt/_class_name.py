"""Names of classes in messages."""
from __future__ import annotations


def class_name(x: object) -> str:
    """Returns the name of x's class with its library, to tell torch.Tensor from tt's."""
    kind = type(x)
    library = kind.__module__.split("._")[0]
    if library in ("builtins", "__main__"):
        return kind.__qualname__
    return f"{library}.{kind.__qualname__}"
