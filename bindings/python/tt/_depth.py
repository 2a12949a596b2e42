"""How deep this thread is in calls of function transforms."""
import threading
from typing import Any


class Depth(threading.local):
    """The numbers of nested vmaps, of functions that transforms call, and of open levels of dual
    tensors, on this thread; the randomness of the innermost vmap; and what a container's functions
    of batch dimensions do (_containers.py)."""

    vmap = 0
    functions = 0
    duals = 0
    randomness = "error"
    batching: Any = None


depth = Depth()
