"""torch.fx: graphs of traced Python code, and graphs of captured operators.

symbolic_trace() calls a module or function with proxies and returns a GraphModule: Python code
that passes change, for inputs of any shapes. capture() calls a function with tensors and records
the calls of C below autograd, whose graphs tt compiles, saves and exports: see captured.
"""
from __future__ import annotations

from . import captured as captured
from ._symbolic_trace import PH as PH
from ._symbolic_trace import Tracer as Tracer
from ._symbolic_trace import is_fx_tracing as is_fx_tracing
from ._symbolic_trace import symbolic_trace as symbolic_trace
from ._symbolic_trace import wrap as wrap
from .captured import capture as capture
from .graph import Graph as Graph
from .graph_module import GraphModule as GraphModule
from .interpreter import Interpreter as Interpreter
from .interpreter import Transformer as Transformer
from .node import Node as Node
from .node import map_arg as map_arg
from .proxy import Proxy as Proxy
from .proxy import TraceError as TraceError
from .subgraph_rewriter import Match as Match
from .subgraph_rewriter import replace_pattern as replace_pattern

__all__ = ["Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer"]
__all__ += ["capture", "captured", "map_arg", "replace_pattern", "symbolic_trace", "wrap"]


def __dir__() -> list[str]:
    return __all__
