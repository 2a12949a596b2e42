"""Names of torch._dynamo.utils that programs touch."""
from __future__ import annotations


def is_compile_supported(device_type: str) -> bool:
    """Returns False: functions that have a slower form without PyTorch's compiler use that."""
    return False
