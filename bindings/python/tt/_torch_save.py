"""Writes PyTorch's files: a zip archive of a pickle and of storages."""
import io
import os
import pickle
import sys
import zipfile
from collections import OrderedDict
from ctypes import string_at

from . import _types
from ._tensor import Tensor
from ._torch_zip import STORAGES, Name
from .nn.parameter import Parameter

SAVED = {bool, int, float, str, list, tuple, dict, OrderedDict, Name, _types.dtype}
STORAGE_OF = {dtype: name for name, dtype in STORAGES.items()}


class StorageId:
    """What the pickle keeps of a storage."""

    def __init__(self, *row):
        self.row = row


class Writer(pickle._Pickler):
    """The pickle as PyTorch writes it. storages: (address, dtype) -> (key, memory, a tensor that holds it)."""
    dispatch = dict(pickle._Pickler.dispatch)
    dispatch[Name] = lambda self, name: self.write(b"c" + name.replace(" ", "\n").encode() + b"\n")
    dispatch[_types.dtype] = lambda self, dtype: self.save(Name(f"torch {dtype.name}"))

    def __init__(self, file):
        super().__init__(file, 2)
        self.storages = {}

    def persistent_id(self, x):
        return x.row if isinstance(x, StorageId) else None

    def save(self, x, save_persistent_id=True):
        for kind in (int, float, str, list, tuple, dict):  # what only derives from them is saved as they are
            if isinstance(x, kind) and type(x) not in (kind, bool, Name, OrderedDict, _types.Size):
                x = kind(x)
        super().save(x, save_persistent_id)

    def reducer_override(self, x):
        if isinstance(x, Parameter):
            return Name("torch._utils _rebuild_parameter"), (x.detach(), x.requires_grad, OrderedDict())
        if isinstance(x, Tensor):
            t = x.detach().cpu()
            row = self.storage(t), t.storage_offset(), tuple(t.shape), t.stride(), x.requires_grad, OrderedDict()
            return Name("torch._utils _rebuild_tensor_v2"), row
        if isinstance(x, (_types.Size, _types.device)):
            return Name(f"torch {type(x).__name__}"), (tuple(x) if isinstance(x, _types.Size) else str(x),)
        if x is None or x is OrderedDict or type(x) in SAVED:
            return NotImplemented
        raise TypeError(f"save(): cannot keep a {type(x).__name__}: only tensors, numbers, texts, dicts, lists and tuples (of a module: its state_dict())")

    def storage(self, t):
        memory = t.untyped_storage()
        key = self.storages.setdefault((memory.data_ptr(), t.dtype), (str(len(self.storages)), memory, t))[0]
        return StorageId("storage", Name("torch " + STORAGE_OF[t.dtype.name]), key, "cpu", memory.nbytes() // t.dtype.itemsize)


def write(obj, path):
    """Writes obj so that torch.load reads it; after a crash path is the old file or the new one."""
    path, data = os.path.abspath(os.fspath(path)), io.BytesIO()
    writer, root, partial = Writer(data), os.path.splitext(os.path.basename(path))[0], f"{path}.{os.getpid()}.part"
    writer.dump(obj)
    try:
        with open(partial, "wb") as f:
            with zipfile.ZipFile(f, "w") as z:
                z.writestr(f"{root}/data.pkl", data.getvalue())
                z.writestr(f"{root}/byteorder", sys.byteorder)
                for key, memory, _ in writer.storages.values():
                    z.writestr(f"{root}/data/{key}", string_at(memory.data_ptr(), memory.nbytes()))
                z.writestr(f"{root}/version", "3\n")
            f.flush()
            os.fsync(f.fileno())
        os.replace(partial, path)
    finally:
        if os.path.exists(partial):
            os.unlink(partial)
