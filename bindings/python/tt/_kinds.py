"""Names of kinds in messages."""
from __future__ import annotations


def kind_name(x: object) -> str:
    """The name of x's class, after the library that it is from: another library's Tensor is none of
    tt's."""
    kind = type(x)
    library = kind.__module__.split("._")[0]
    return (
        kind.__qualname__
        if library in ("builtins", "__main__")
        else f"{library}.{kind.__qualname__}"
    )
