"""oneDNN, which tt does not use: it has kernels of its own."""

__all__ = ["enabled", "is_available", "set_flags"]
enabled = False


def is_available() -> bool:
    """Returns False."""
    return False


def set_flags(*args: object, **kwargs: object) -> None:
    """Does nothing."""
