"""Metal, which tt does not use."""

__all__ = ["is_available", "is_built"]


def is_available() -> bool:
    """Returns False."""
    return False


is_built = is_available
