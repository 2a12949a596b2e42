"""Counts the floating-point operations of products, convolutions and attention, with the API of
torch.utils.flop_counter."""
from __future__ import annotations

from typing import Any

from .._hints import Self
from ..profiler import KERNEL, MODULE, FunctionEvent, flops_text, profile

__all__ = ["FlopCounterMode"]

# operators -> the names of aten that their operations are counted under
OPERATORS = {
    "attention_backward": "_scaled_dot_product_flash_attention_for_cpu_backward",
    "baddbmm": "baddbmm",
    "addmm": "addmm",
    "convolution": "convolution",
    "convolution_backward": "convolution_backward",
    "linear_rows": "addmm",
    "matmul_stack": "mm",
    "native_attention": "_scaled_dot_product_flash_attention_for_cpu",
}
PREFIX = "nn.Module: "


class FlopCounterMode:
    """with FlopCounterMode() as counter: …; then counter.get_total_flops()

    Counts the operations of the thread, those of backward included, by a profile: no other profile
    of the thread may run. Modules are named by class and number, such as "Linear_0", where PyTorch
    has their places in the model; operations of backward count for "Global" only.

    mods, custom_mapping and skip_unsupported are ignored. depth: of modules in the table. display:
    prints the table at the end.
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int = 2,
        display: bool = True,
        custom_mapping: dict[Any, Any] | None = None,
        skip_unsupported: bool = False,
    ) -> None:
        self.depth, self.display = depth, display
        self.flop_counts: dict[str, dict[str, int]] = {"Global": {}}
        self._depths = {"Global": 0}

    def __enter__(self) -> Self:
        self.flop_counts, self._depths = {"Global": {}}, {"Global": 0}
        self._profile = profile(with_flops=True, with_modules=True)
        self._profile.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._profile.stop()
        for e in self._profile.events():
            if e.kind != KERNEL and e.flops and e.operator in OPERATORS:
                self._add(e)
        if self.display:
            print(self.get_table())

    def _add(self, e: FunctionEvent) -> None:
        """Adds the operations of an operator to the modules around it, each once."""
        modules = []
        outer = e.cpu_parent
        while outer is not None:
            if outer.kind != KERNEL and outer.operator in OPERATORS:
                return  # counted with the operator around it
            if outer.kind == MODULE:
                modules.append(outer.name.removeprefix(PREFIX))
            outer = outer.cpu_parent
        path = ["Global", *reversed(modules)]
        for i, name in enumerate(path):
            self._depths.setdefault(name, i)
            counts = self.flop_counts.setdefault(name, {})
            operator = OPERATORS[e.operator]
            counts[operator] = counts.get(operator, 0) + int(e.flops)

    def get_total_flops(self) -> int:
        """Returns the number of operations."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[str, int]]:
        """Returns module -> operator -> number of operations. "Global" has all."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """Returns the counts as text, of modules down to a depth."""
        deepest = self.depth if depth is None else depth
        total = self.get_total_flops()
        lines = [f"{'Module':<40}{'FLOP':>16}{'% Total':>10}"]
        for name, counts in self.flop_counts.items():
            level = self._depths[name]
            if level > deepest:
                continue
            for label, flops in ((name, sum(counts.values())), *counts.items()):
                shown = "  " * level + (label if label == name else f" - aten.{label}")
                share = 100 * flops / total if total else 0.0
                lines.append(f"{shown:<40}{flops_text(flops):>16}{share:>9.2f}%")
        return "\n".join(lines)


def __dir__() -> list[str]:
    return __all__
