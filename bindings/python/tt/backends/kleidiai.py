"""KleidiAI, which tt does not use."""

__all__ = ["is_available"]


def is_available() -> bool:
    """Returns False."""
    return False
