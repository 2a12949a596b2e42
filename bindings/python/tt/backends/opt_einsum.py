"""opt_einsum, which tt does not use: einsum multiplies from left to right."""

__all__ = ["enabled", "is_available"]
enabled = False
strategy = None


def is_available() -> bool:
    """Returns False."""
    return False
