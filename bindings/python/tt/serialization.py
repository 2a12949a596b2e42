"""save and load: nested dicts, lists and tuples of tensors, numbers and texts, in safetensors files, or in PyTorch's.

A dict of texts to tensors, such as a state dict, becomes a plain file that every reader of safetensors understands; of anything else
the structure stands beside the tensors as JSON. A name that ends in .pt or .pth makes a file of PyTorch's, which torch.load reads.
"""
import json
import os
import shutil
import tempfile

from . import _types
from .safetensors import safe_open, save_file
from ._tensor import Tensor

KEY = "tt.structure"


class Writer:
    """Structures as JSON values; tensors by the names under which they are kept."""

    def __init__(self):
        self.tensors, self.names = {}, {}

    def tensor(self, t, path):
        if id(t) not in self.names:
            name = base = ".".join(path) or "tensor"
            k = 1
            while name in self.tensors:
                name, k = f"{base}#{k}", k + 1
            self.names[id(t)], self.tensors[name] = name, t
        return {"tensor": self.names[id(t)]}

    def pack(self, x, path=()):
        if isinstance(x, Tensor):
            return self.tensor(x, path)
        if x is None or type(x) in (bool, int, str):
            return x
        if isinstance(x, float):
            return {"float": x.hex()}
        if isinstance(x, dict):
            return {"dict": [[self.pack(k), self.pack(v, (*path, str(k)))] for k, v in x.items()]}
        if isinstance(x, (_types.dtype, _types.device)):
            return {type(x).__name__: str(x).replace("tt.", "")}
        if isinstance(x, (list, tuple)):
            return {"list" if isinstance(x, list) else "tuple": [self.pack(v, (*path, str(i))) for i, v in enumerate(x)]}
        raise TypeError(f"save(): cannot keep a {type(x).__name__} at '{'.'.join(path)}': only tensors, numbers, texts, dicts, lists and tuples "
                        f"(of a module: its state_dict())")


def unpack(x, tensors):
    if not isinstance(x, dict):
        return x
    (kind, value), = x.items()
    if kind == "tensor":
        return tensors[value]
    if kind == "dict":
        return {unpack(k, tensors): unpack(v, tensors) for k, v in value}
    if kind in ("list", "tuple"):
        return (list if kind == "list" else tuple)(unpack(v, tensors) for v in value)
    return {"float": float.fromhex, "dtype": _types.BY_NAME.get, "device": _types.device}[kind](value)


def save(obj, f):
    """Writes obj to a path, atomically, or to a file object."""
    if hasattr(f, "write"):
        with tempfile.TemporaryDirectory() as folder:
            save(obj, os.path.join(folder, "saved"))
            with open(os.path.join(folder, "saved"), "rb") as written:
                shutil.copyfileobj(written, f)
        return
    if os.fsencode(f).endswith((b".pt", b".pth")):
        from ._torch_save import write
        return write(obj, f)
    if isinstance(obj, dict) and obj and all(type(k) is str and isinstance(v, Tensor) for k, v in obj.items()):
        save_file(obj, f)
    else:
        writer = Writer()
        structure = json.dumps(writer.pack(obj))
        save_file(writer.tensors, f, {KEY: structure})


def is_zip(path):
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"PK\3\4"
    except OSError:
        return False  # safe_open says why


def load(f, map_location=None, *, weights_only=True, mmap=False):
    """What save, or PyTorch, has written to a path or a file object; of other safetensors files, the dict of their tensors. mmap: read-only
    tensors that lie in the file (PyTorch's files are read). map_location: a device for the tensors. No code of the file is run."""
    if hasattr(f, "read"):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "saved"), "wb") as copy:
                shutil.copyfileobj(f, copy)
            return load(os.path.join(folder, "saved"), map_location)
    if is_zip(f):
        from ._torch_zip import read
        return read(f, (lambda t: t) if map_location is None else lambda t: t.to(map_location))
    with safe_open(f, mmap) as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}
        structure = file.metadata().get(KEY)
    if map_location is not None:
        tensors = {name: t.to(map_location) for name, t in tensors.items()}
    return tensors if structure is None else unpack(json.loads(structure), tensors)
