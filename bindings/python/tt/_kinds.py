"""Names of kinds in messages."""
from __future__ import annotations


def kind_name(x: object) -> str:
    """Returns the name of x's class, after its library: torch.Tensor is none of tt's tensors."""
    kind = type(x)
    library = kind.__module__.split("._")[0]
    if library in ("builtins", "__main__"):
        return kind.__qualname__
    return f"{library}.{kind.__qualname__}"
