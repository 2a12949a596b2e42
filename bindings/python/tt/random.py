"""Random numbers: generators with a state of their own."""
from ctypes import byref, c_uint64

from ._lib import Handle, fail, lib, local, quick, released_by


class Generator(Handle):
    """A stream of random numbers (Philox4x32-10). Generator(seed)"""
    __slots__ = ()

    def __init__(self, seed=0):
        if lib.tt_generator_new(local.ctx, c_uint64(checked(seed)), byref(self)):
            fail()

    def manual_seed(self, seed):
        """Starts anew from a seed; returns self."""
        self.set_state((checked(seed), 0))
        return self

    def initial_seed(self):
        return self.get_state()[0]

    def get_state(self):
        """(seed, numbers drawn / 4)"""
        state = (c_uint64 * 2)()
        if lib.tt_generator_state(local.ctx, self, state):
            fail()
        return tuple(state)

    def set_state(self, state):
        seed, offset = state
        if lib.tt_generator_set_state(local.ctx, self, (c_uint64 * 2)(checked(seed), offset)):
            fail()


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
    found = Generator.__new__(Generator)
    if lib.tt_ctx_generator(local.ctx, byref(found)):
        fail()
    return found


def manual_seed(seed):
    """Starts this thread's generator anew; returns it."""
    if lib.tt_manual_seed(local.ctx, c_uint64(checked(seed))):
        fail()
    return default_generator()
