"""Files of tensors, with the names of the safetensors package: save_file, load_file, safe_open."""
import os
from ctypes import byref, c_void_p

from ._handles import SafeTensorsHandle, safetensors_save
from ._lib import call, quick


def save_file(tensors, filename, metadata=None):
    """Writes a dict of tensors, atomically: after a crash filename is the old file or the new one. metadata: a dict of texts."""
    pairs = [text for pair in metadata.items() for text in pair] if metadata else None
    safetensors_save(filename, list(tensors), list(tensors.values()), pairs)


class safe_open(SafeTensorsHandle):
    """An open file, whose tensors are read when they are asked for. A context manager."""

    __slots__ = ()

    def __init__(self, filename, mmap=False):
        """mmap: tensors are read-only and lie in the file as mapped into memory."""
        call(
            "tt_safetensors_map" if mmap else "tt_safetensors_open",
            os.fsencode(filename),
            byref(self),
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        h, self._address = c_void_p(self._address), None
        quick.tt_safetensors_release(h)

    def get_tensor(self, name):
        """A new tensor on the CPU."""
        return self.get(self.find(name))


def load_file(filename, mmap=False):
    """A dict of all tensors of the file."""
    with safe_open(filename, mmap) as f:
        return {name: f.get_tensor(name) for name in f.keys()}
