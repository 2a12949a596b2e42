"""How deep this thread is in calls of function transforms."""
import threading


class Depth(threading.local):
    """The numbers of nested vmaps, of functions that transforms call, and of open levels of dual
    tensors, on this thread; and the randomness of the innermost vmap."""

    vmap = 0
    functions = 0
    duals = 0
    randomness = "error"


depth = Depth()
