"""Hooks for DistributedDataParallel.register_comm_hook. They select a
compression in the C library: calling one raises RuntimeError."""
from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

__all__ = ["allreduce_hook", "bf16_compress_hook", "fp16_compress_hook"]


def refuse() -> NoReturn:
    raise RuntimeError("hooks of gradients are run by C: pass them to register_comm_hook")


def allreduce_hook(process_group: Any, bucket: Any) -> NoReturn:
    """Gradients are reduced in their own dtype."""
    refuse()


def bf16_compress_hook(process_group: Any, bucket: Any) -> NoReturn:
    """Gradients are communicated as bfloat16."""
    refuse()


def fp16_compress_hook(process_group: Any, bucket: Any) -> NoReturn:
    """Gradients are communicated as float16."""
    refuse()
