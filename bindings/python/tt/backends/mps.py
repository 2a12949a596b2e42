"""Metal, which tt does not use."""

__all__ = ["is_available", "is_built"]


def is_available() -> bool:
    """Returns False."""
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Returns False."""
    return False


is_built = is_available
