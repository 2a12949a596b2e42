"""Random numbers.

Each thread has a generator of its own, made when the thread first uses tt. Its seed follows from
the last manual_seed and the order in which threads begin to use tt; without a manual_seed it
differs in every run.
"""
from __future__ import annotations

from contextlib import contextmanager
from ctypes import c_uint64

from ._convert import uint64
from ._handles import GeneratorHandle
from ._lib import lib, result, runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, Sequence

    from typing_extensions import Self


class Generator(GeneratorHandle):
    """A source of random numbers (Philox4x32-10), equal on every device. Generator(seed=0)"""

    __slots__ = ()

    def manual_seed(self, seed: int) -> Self:
        """Starts again from a seed. Returns self."""
        self.set_state((uint64(seed, "manual_seed", "seed").value, 0))
        return self

    def initial_seed(self) -> int:
        """Returns the last seed."""
        return self.get_state()[0]


def default_generator() -> Generator:
    """Returns this thread's generator."""
    return result(Generator, "tt_ctx_generator")


def manual_seed(seed: int) -> Generator:
    """Seeds this thread's generator and the generators of threads that begin to use tt later.

    Each of those draws numbers of its own, which follow from the seed and the order of the threads.
    Generators that exist in other threads do not change. Returns this thread's generator.
    """
    generator = default_generator().manual_seed(seed)
    lib.tt_runtime_manual_seed(runtime, uint64(seed, "manual_seed", "seed"))
    return generator


def initial_seed() -> int:
    """Returns the seed of this thread's generator."""
    return default_generator().initial_seed()


def get_rng_state() -> tuple[int, int]:
    """Returns the state of this thread's generator: (seed, numbers drawn / 4)."""
    return default_generator().get_state()


def set_rng_state(new_state: Sequence[int]) -> None:
    """Sets the state of this thread's generator, as get_rng_state() has returned it."""
    default_generator().set_state(new_state)


def _thread_seeds() -> tuple[int, int]:
    """Returns the seed that new threads' generators follow from, and the number of such threads."""
    state = (c_uint64 * 2)()
    lib.tt_runtime_rng_state(runtime, state)
    return state[0], state[1]


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True) -> Iterator[None]:
    """Restores this thread's generator, and the seed of new threads', when the block ends.

    devices is ignored: all devices draw from one generator. enabled=False restores nothing.
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
