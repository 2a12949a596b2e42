"""Random numbers.

Each thread has its own generator, created when the thread first uses tt. Its seed is derived from
the last manual_seed and the order in which threads first use tt. Without a manual_seed it differs
in every run.
"""
from __future__ import annotations

import os
from contextlib import contextmanager
from ctypes import c_uint64
from struct import Struct
from typing import Any, Iterator

from ._convert import uint64
from ._create import from_bytes
from ._handles import GeneratorHandle
from ._hints import Self
from ._lib import lib, result, runtime
from ._tensor import Tensor
from ._types import BY_NAME
from ._types import device as device_class

__all__ = [
    "Generator",
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]

STATE = Struct("QQ")  # seed, numbers drawn / 4


class Generator(GeneratorHandle):
    """A source of random numbers (Philox4x32-10), equal on every device.

    Generator(seed=0) or, as in PyTorch, Generator(device): the device is only stored.
    """

    __slots__ = ("_device",)

    def __init__(
        self, seed: int | str | device_class = 0, *, device: device_class | str | None = None
    ) -> None:
        if isinstance(seed, (str, device_class)):
            device = seed
            seed = 0
        super().__init__(seed)
        if device is not None:
            self._device = device_class(device)

    @property
    def device(self) -> device_class:
        """The device that the constructor received."""
        return getattr(self, "_device", device_class("cpu"))

    def manual_seed(self, seed: int) -> Self:
        """Sets the seed. Returns self."""
        super().set_state((uint64(seed, "manual_seed", "seed").value, 0))
        return self

    def seed(self) -> int:
        """Seeds the generator from the system's entropy. Returns the seed."""
        seed = int.from_bytes(os.urandom(8), "little")
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """Returns the last seed."""
        return super().get_state()[0]

    def get_state(self) -> Tensor:  # type: ignore[override]
        """Returns the state: 16 bytes."""
        return from_bytes(STATE.pack(*super().get_state()), BY_NAME["uint8"], (STATE.size,))

    def set_state(self, new_state: Tensor) -> Generator:  # type: ignore[override]
        """Sets the state to a result of get_state(). Returns self."""
        if not isinstance(new_state, Tensor) or new_state.nbytes != STATE.size:
            raise TypeError(f"set_state(): the state must be a Tensor of {STATE.size} bytes")
        super().set_state(STATE.unpack(new_state._bytes()))
        return self

    def __reduce__(self) -> Any:
        return restored, (str(self.device), self.get_state())

    def clone_state(self) -> Generator:
        """Returns a generator that draws the same numbers from now on."""
        clone = Generator(device=self.device)
        clone.set_state(self.get_state())
        return clone

    def get_offset(self) -> int:
        """Returns how many numbers have been drawn, rounded up to a multiple of 4."""
        return 4 * super().get_state()[1]

    def set_offset(self, offset: int) -> None:
        """Continues as if `offset` numbers, a multiple of 4, had been drawn since the seeding."""
        if offset < 0 or offset % 4:
            raise ValueError(
                f"set_offset: offset is {offset}: must be a multiple of 4, not below 0"
            )
        super().set_state((super().get_state()[0], offset // 4))

    graphsafe_get_state = clone_state

    def graphsafe_set_state(self, state: Generator) -> None:
        """Continues where another generator is."""
        self.set_state(state.get_state())


def restored(device: str, state: Tensor) -> Generator:
    """Unpickles a generator: see Generator.__reduce__."""
    generator = Generator(device=device)
    generator.set_state(state)
    return generator


def thread_generator() -> Generator:
    """Returns this thread's generator."""
    return result(Generator, "tt_ctx_generator")


class DefaultGenerator:
    """The generator of the calling thread: see the methods of Generator."""

    device = device_class("cpu")

    def manual_seed(self, seed: int) -> Generator:
        return thread_generator().manual_seed(seed)

    def seed(self) -> int:
        return thread_generator().seed()

    def initial_seed(self) -> int:
        return thread_generator().initial_seed()

    def get_state(self) -> Tensor:
        return thread_generator().get_state()

    def set_state(self, new_state: Tensor) -> Generator:
        return thread_generator().set_state(new_state)


default_generator = DefaultGenerator()


def manual_seed(seed: float) -> Generator:
    """Seeds this thread's generator and the generators of threads that begin to use tt later.

    Each of those has its own sequence, derived from the seed and the order of the threads. Existing
    generators of other threads are unchanged. Returns this thread's generator.
    """
    seed = int(seed)
    generator = thread_generator().manual_seed(seed)
    lib.tt_runtime_manual_seed(runtime, uint64(seed, "manual_seed", "seed"))
    return generator


def initial_seed() -> int:
    """Returns the seed of this thread's generator."""
    return thread_generator().initial_seed()


def seed() -> int:
    """Seeds this thread's generator from the system's entropy. Returns the seed."""
    return thread_generator().seed()


def numbers_drawn() -> tuple[int, int]:
    """Returns the seed of this thread's generator, and how far it is. Reads no tensor."""
    generator = thread_generator()
    return generator.initial_seed(), generator.get_offset()


def get_rng_state() -> Tensor:
    """Returns the state of this thread's generator, as bytes."""
    return thread_generator().get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Sets the state of this thread's generator, as get_rng_state() has returned it."""
    thread_generator().set_state(new_state)


def _thread_seeds() -> tuple[int, int]:
    """Returns the seed for generators of new threads, and the number of such threads."""
    state = (c_uint64 * 2)()
    lib.tt_runtime_rng_state(runtime, state)
    return state[0], state[1]


@contextmanager
def fork_rng(
    devices: Any = None, enabled: bool = True, *, device_type: str = "cuda"
) -> Iterator[None]:
    """Restores this thread's generator, and the seed for new threads, at the end of the block.

    devices, device_type are ignored: all devices draw from one generator. enabled=False restores
    nothing.
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


def __dir__() -> list[str]:
    return __all__
