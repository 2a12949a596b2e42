"""Changes of graphs for inference, with the API of torch.fx.experimental.optimization."""
from __future__ import annotations

import copy
from typing import Any

from ... import nn
from ...nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from .. import GraphModule, Node, Transformer, symbolic_trace

__all__ = ["fuse", "matches_module_pattern", "remove_dropout", "replace_node_module"]
PATTERNS: tuple[tuple[type, type, Any], ...] = (
    (nn.Conv1d, nn.BatchNorm1d, fuse_conv_bn_eval),
    (nn.Conv2d, nn.BatchNorm2d, fuse_conv_bn_eval),
    (nn.Conv3d, nn.BatchNorm3d, fuse_conv_bn_eval),
    (nn.Linear, nn.BatchNorm1d, fuse_linear_bn_eval),
)


def matches_module_pattern(pattern: Any, node: Node, modules: dict[str, Any]) -> bool:
    """Returns whether a node calls a module of the class pattern[1] with the result of a call of
    one of the class pattern[0]. modules: by their names."""
    if not node.args or not isinstance(node.args[0], Node):
        return False
    for kind, current in zip(pattern, (node.args[0], node)):
        if current.op != "call_module" or type(modules.get(str(current.target))) is not kind:
            return False
    return True


def replace_node_module(node: Node, modules: dict[str, Any], new_module: nn.Module) -> None:
    """Makes a node call another module, which takes the place of the former one."""
    name = str(node.target)
    modules[name] = new_module
    parent, _, last = name.rpartition(".")
    setattr(modules[parent], last, new_module)


def fuse(model: nn.Module, inplace: bool = False, no_trace: bool = False) -> GraphModule:
    """Folds batch normalisations into the convolutions and linear layers before them, for
    evaluation. Returns a GraphModule.

    inplace: changes the model's layers instead of those of a copy. no_trace: the model is a
    GraphModule, which is not traced again.
    """
    if not inplace:
        model = copy.deepcopy(model)
    traced = model
    if not (no_trace and isinstance(model, GraphModule)):
        traced = symbolic_trace(model)
    modules: dict[str, Any] = dict(traced.named_modules())
    graph = copy.deepcopy(traced.graph)
    for first, second, fused in PATTERNS:
        for node in graph.nodes:
            if not matches_module_pattern((first, second), node, modules):
                continue
            before: Any = node.args[0]
            norm = modules[node.target]
            if len(before.users) > 1 or not norm.track_running_stats:
                continue
            replace_node_module(before, modules, fused(modules[before.target], norm))
            node.replace_all_uses_with(before)
            graph.erase_node(node)
    return GraphModule(traced, graph)


class DropoutRemover(Transformer):
    """Replaces calls of Dropout by their inputs."""

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        if isinstance(self.submodules[target], nn.Dropout):
            return args[0]
        return super().call_module(target, args, kwargs)


def remove_dropout(model: nn.Module) -> GraphModule:
    """Returns the traced model without its Dropout layers."""
    return DropoutRemover(symbolic_trace(model)).transform()
