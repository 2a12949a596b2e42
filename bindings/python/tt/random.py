"""Random numbers: generators with a state of their own."""
from contextlib import contextmanager

from ._convert import uint64
from ._handles import GeneratorHandle
from ._lib import result


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
    """Starts this thread's generator anew; returns it."""
    return default_generator().manual_seed(seed)


def initial_seed():
    return default_generator().initial_seed()


def get_rng_state():
    """Of this thread's generator."""
    return default_generator().get_state()


def set_rng_state(new_state):
    default_generator().set_state(new_state)


@contextmanager
def fork_rng(devices=None, enabled=True):
    """Within, this thread's generator may be seeded and drawn from; afterwards it goes on as if nothing had been. Of devices there is this one alone."""
    state = get_rng_state()
    try:
        yield
    finally:
        if enabled:
            set_rng_state(state)
