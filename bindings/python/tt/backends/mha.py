"""The fast path of nn.MultiheadAttention and nn.TransformerEncoder in PyTorch. tt computes each
layer in one way, so the switch changes nothing."""

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]
enabled = True


def get_fastpath_enabled() -> bool:
    """Returns what set_fastpath_enabled has been given; at first True."""
    return enabled


def set_fastpath_enabled(value: bool) -> None:
    """Changes nothing but get_fastpath_enabled."""
    global enabled
    enabled = value
