"""Random numbers: generators with a state of their own.

Each thread has a generator, made when it first uses tt, and draws other numbers than the rest.
Its seed follows from the last manual_seed and the order in which threads come to use tt; without
a manual_seed it is different in every run.
"""
from contextlib import contextmanager
from ctypes import c_uint64

from ._convert import uint64
from ._handles import GeneratorHandle
from ._lib import lib, result, runtime


class Generator(GeneratorHandle):
    """A stream of random numbers (Philox4x32-10). Generator(seed)"""

    __slots__ = ()

    def manual_seed(self, seed):
        """Starts anew from a seed; returns self."""
        self.set_state((uint64(seed, "manual_seed", "seed").value, 0))
        return self

    def initial_seed(self):
        return self.get_state()[0]


def default_generator():
    """This thread's own."""
    return result(Generator, "tt_ctx_generator")


def manual_seed(seed):
    """Starts this thread's generator anew with the seed and returns it.

    Threads that first use tt after this draw numbers of their own, which follow from the seed and
    the order in which they come. Other threads keep their generators.
    """
    generator = default_generator().manual_seed(seed)
    lib.tt_runtime_manual_seed(runtime, uint64(seed, "manual_seed", "seed"))
    return generator


def initial_seed():
    """The seed of this thread's generator."""
    return default_generator().initial_seed()


def get_rng_state():
    """Of this thread's generator."""
    return default_generator().get_state()


def set_rng_state(new_state):
    default_generator().set_state(new_state)


def _thread_seeds():
    """The seed that new threads' generators follow from, and how many have come since it was set."""
    state = (c_uint64 * 2)()
    lib.tt_runtime_rng_state(runtime, state)
    return tuple(state)


@contextmanager
def fork_rng(devices=None, enabled=True):
    """Restores this thread's generator, and the seed of new threads', when the block ends.

    devices is ignored: all devices draw from one generator.
    """
    state, seeds = get_rng_state(), _thread_seeds()
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)
            now = _thread_seeds()
            if now[0] != seeds[0] or now[1] < seeds[1]:  # seeded; else new threads go on counting
                lib.tt_runtime_set_rng_state(runtime, (c_uint64 * 2)(*seeds))
