"""Names of torch.fx.experimental.proxy_tensor: tt traces functions, not operators of tensors."""
from __future__ import annotations


def get_proxy_mode() -> None:
    """Returns None."""
