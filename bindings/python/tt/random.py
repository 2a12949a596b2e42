"""Random numbers: generators with a state of their own."""
from ctypes import byref, c_uint64

from ._lib import Handle, call, quick, released_by, result


class Generator(Handle):
    """A stream of random numbers (Philox4x32-10). Generator(seed)"""
    __slots__ = ()

    def __init__(self, seed=0):
        call("tt_generator_new", c_uint64(checked(seed)), byref(self))

    def manual_seed(self, seed):
        """Starts anew from a seed; returns self."""
        self.set_state((checked(seed), 0))
        return self

    def initial_seed(self):
        return self.get_state()[0]

    def get_state(self):
        """(seed, numbers drawn / 4)"""
        state = (c_uint64 * 2)()
        call("tt_generator_state", self, state)
        return tuple(state)

    def set_state(self, state):
        seed, offset = state
        call("tt_generator_set_state", self, (c_uint64 * 2)(checked(seed), offset))


released_by(Generator, quick.tt_generator_release)


def checked(seed):
    """A seed as 64 bits; negative ones wrap."""
    if isinstance(seed, bool) or not hasattr(seed, "__index__"):
        raise TypeError(f"a seed must be int, not {type(seed).__name__}")
    if not -2**63 <= seed.__index__() < 2**64:
        raise ValueError(f"seed {seed} does not fit 64 bits")
    return seed.__index__() % 2**64


def default_generator():
    """This thread's own."""
    return result(Generator, "tt_ctx_generator")


def manual_seed(seed):
    """Starts this thread's generator anew; returns it."""
    call("tt_manual_seed", c_uint64(checked(seed)))
    return default_generator()


def initial_seed():
    return default_generator().initial_seed()


def get_rng_state():
    """Of this thread's generator."""
    return default_generator().get_state()


def set_rng_state(new_state):
    default_generator().set_state(new_state)
