"""Files of tensors, with the names of the safetensors package: save_file, load_file, safe_open."""
import ctypes
import os
from ctypes import byref, c_char_p, c_int64, c_uint64, c_void_p

from ._convert import pointers, tensor_list
from ._lib import Handle, fail, lib, local, quick, released_by
from ._tensor import Tensor, new


class SaveOptions(ctypes.Structure):
    """tt_safetensors_save_opts"""
    _fields_ = [("set", c_uint64), ("metadata", ctypes.POINTER(c_char_p)), ("n_metadata", c_int64)]


def texts(strings):
    return (c_char_p * len(strings))(*(s.encode() for s in strings))


def save_file(tensors, filename, metadata=None):
    """Writes a dict of tensors, atomically: after a crash filename is the old file or the new one. metadata: a dict of texts."""
    values = pointers(tensor_list(list(tensors.values()), "save_file", "tensors"))
    options = None
    if metadata:
        pairs = [text for pair in metadata.items() for text in pair]
        options = byref(SaveOptions(1, texts(pairs), len(pairs)))
    if lib.tt_safetensors_save(local.ctx, os.fsencode(filename), texts(list(tensors)), values, c_int64(len(tensors)), options):
        fail()


class safe_open(Handle):
    """An open file, whose tensors are read when they are asked for. A context manager."""
    __slots__ = ()

    def __init__(self, filename):
        if lib.tt_safetensors_open(local.ctx, os.fsencode(filename), byref(self)):
            fail()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        h, self._address = c_void_p(self._address), None
        quick.tt_safetensors_release(h)

    def keys(self):
        """The names, in the order of the file."""
        return [quick.tt_safetensors_name(self, c_int64(i)).decode() for i in range(quick.tt_safetensors_size(self))]

    def metadata(self):
        """The texts that were saved beside the tensors."""
        return {quick.tt_safetensors_metadata_key(self, c_int64(i)).decode(): quick.tt_safetensors_metadata_value(self, c_int64(i)).decode()
                for i in range(quick.tt_safetensors_metadata_size(self))}

    def get_tensor(self, name):
        """A new tensor on the CPU."""
        i = c_int64()
        if lib.tt_safetensors_find(local.ctx, self, name.encode(), byref(i)):
            fail()
        t = new(Tensor)
        if lib.tt_safetensors_get(local.ctx, self, i, byref(t)):
            fail()
        return t


released_by(safe_open, quick.tt_safetensors_release)


def load_file(filename):
    """A dict of all tensors of the file."""
    with safe_open(filename) as f:
        return {name: f.get_tensor(name) for name in f.keys()}
