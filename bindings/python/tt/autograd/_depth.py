"""How deep this thread is in calls of function transforms."""
import threading


class Depth(threading.local):
    """The numbers of nested vmaps, and of functions that transforms call, on this thread."""

    vmap = 0
    functions = 0


depth = Depth()
