"""CUDA devices, by the names of torch.cuda. Tensors move there by x.to("cuda"); the library for them is opened when it is first wanted."""
from . import runtime


def device_count():
    """How many there are; 0 without a driver or without libtt_cuda.so."""
    return runtime.device_count("cuda")


def is_available():
    return device_count() > 0


def synchronize(device=None):
    """Waits until what was asked of the device is done."""
    if is_available():
        runtime.synchronize("cuda" if device is None else device)


def empty_cache():
    """Gives cached memory back."""
    runtime.trim()


def memory_allocated(device="cuda"):
    """Bytes in use."""
    return runtime.memory_stats(device)["in_use"]


def max_memory_allocated(device="cuda"):
    """The most bytes at once so far."""
    return runtime.memory_stats(device)["peak"]
