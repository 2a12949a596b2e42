"""torch.fx's names. tt does not capture graphs yet: each use raises UnimplementedError."""
from __future__ import annotations

from ._absent import absent_class, absent_function

__all__ = ["Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer"]
__all__ += ["replace_pattern", "symbolic_trace", "wrap"]
WHY = "tt does not capture graphs yet"
Graph = absent_class("fx.Graph", WHY)
GraphModule = absent_class("fx.GraphModule", WHY)
Interpreter = absent_class("fx.Interpreter", WHY)
Node = absent_class("fx.Node", WHY)
Proxy = absent_class("fx.Proxy", WHY)
Tracer = absent_class("fx.Tracer", WHY)
Transformer = absent_class("fx.Transformer", WHY)
replace_pattern = absent_function("fx.replace_pattern", WHY)
symbolic_trace = absent_function("fx.symbolic_trace", WHY)


def wrap(fn_or_name: object) -> object:
    """Returns its argument: nothing is traced."""
    return fn_or_name
