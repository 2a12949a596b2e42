"""OpenMP, which tt does not use: it has a thread pool of its own, see tt.set_num_threads."""

__all__ = ["is_available"]


def is_available() -> bool:
    """Returns False."""
    return False
