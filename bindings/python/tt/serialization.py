"""save and load: nested dicts, lists and tuples of tensors, numbers and texts, in safetensors files, or in PyTorch's.

A dict of texts to tensors, such as a state dict, becomes a plain file that every reader of safetensors understands; of anything else
the structure stands beside the tensors as JSON. A name that ends in .pt or .pth makes a file of PyTorch's, which torch.load reads.
"""
import json
import os
import shutil
import tempfile
from collections import Counter, OrderedDict

from . import _types
from ._handles import StateDictHandle, torch_load, torch_save
from .nn.parameter import Parameter
from .safetensors import safe_open, save_file
from ._tensor import Tensor

KEY = "tt.structure"
KINDS = {
    "list": list,
    "tuple": tuple,
    "size": _types.Size,
    "dict": dict,
    "ordered": OrderedDict,
    "counter": Counter,
}


class Writer:
    """Structures as JSON values (tt.h describes them); tensors by the names under which they are kept."""

    def __init__(self, parameters):
        """parameters: nn.Parameter is told from other tensors."""
        self.tensors, self.names, self.parameters = {}, {}, parameters

    def tensor(self, t, path):
        if id(t) not in self.names:
            name = base = (
                ".".join(path).replace("\0", "?").encode(errors="replace").decode() or "tensor"
            )
            k = 1
            while name in self.tensors:
                name, k = f"{base}#{k}", k + 1
            self.names[id(t)], self.tensors[name] = name, t
        return {
            "parameter"
            if self.parameters and isinstance(t, Parameter)
            else "tensor": self.names[id(t)]
        }

    def pack(self, x, path=()):
        if isinstance(x, Tensor):
            return self.tensor(x, path)
        if x is None or isinstance(x, (int, str)):
            return x
        if isinstance(x, float):
            return {"float": float.hex(x)}
        if isinstance(x, dict):
            return {
                "ordered"
                if isinstance(x, OrderedDict)
                else "dict": [[self.pack(k), self.pack(v, (*path, str(k)))] for k, v in x.items()]
            }
        if isinstance(x, (_types.dtype, _types.device)):
            return {type(x).__name__: str(x).replace("tt.", "")}
        if isinstance(x, (list, tuple)):
            kind = (
                "list" if isinstance(x, list) else "size" if isinstance(x, _types.Size) else "tuple"
            )
            return {kind: [self.pack(v, (*path, str(i))) for i, v in enumerate(x)]}
        raise TypeError(
            f"save(): cannot keep a {type(x).__name__} at '{'.'.join(path)}': only tensors, numbers, texts, dicts, lists and tuples "
            f"(of a module: its state_dict())"
        )


def unpack(x, tensors):
    if not isinstance(x, dict):
        return x
    ((kind, value),) = x.items()
    if kind == "parameter" and not isinstance(tensors[value], Parameter):
        tensors[value] = Parameter(tensors[value], tensors[value].requires_grad)
    if kind in ("tensor", "parameter"):
        return tensors[value]
    if kind in ("list", "tuple", "size"):
        return KINDS[kind](unpack(v, tensors) for v in value)
    if kind in KINDS:
        return KINDS[kind]({unpack(k, tensors): unpack(v, tensors) for k, v in value})
    return {"float": float.fromhex, "dtype": _types.BY_NAME.get, "device": _types.device}[kind](
        value
    )


def save(obj, f):
    """Writes obj to a path, atomically, or to a file object."""
    if hasattr(f, "write"):
        with tempfile.TemporaryDirectory() as folder:
            save(obj, os.path.join(folder, "saved"))
            with open(os.path.join(folder, "saved"), "rb") as written:
                shutil.copyfileobj(written, f)
        return
    torch = os.fsencode(f).endswith((b".pt", b".pth"))
    writer = Writer(torch)
    structure = json.dumps(writer.pack(obj))
    if torch:
        state = StateDictHandle()
        for name, t in writer.tensors.items():
            state.set(name, t)
        torch_save(f, state, structure)
    elif (
        isinstance(obj, dict)
        and obj
        and all(type(k) is str and isinstance(v, Tensor) for k, v in obj.items())
    ):
        save_file(obj, f)
    else:
        save_file(writer.tensors, f, {KEY: structure})


def load(f, map_location=None, *, weights_only=True, mmap=False):
    """What save, or PyTorch, has written to a path or a file object; of other safetensors files, the dict of their tensors. mmap: read-only
    tensors that lie in the file (PyTorch's files are read). map_location: a device for the tensors. No code of the file is run.
    """
    if hasattr(f, "read"):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "saved"), "wb") as copy:
                shutil.copyfileobj(f, copy)
            return load(os.path.join(folder, "saved"), map_location)
    with open(f, "rb") as file:
        torch = file.read(4) == b"PK\3\4"  # a zip file
    if torch:
        state = torch_load(f)
        tensors = {state.name(i): state.get(i) for i in range(len(state))}
        structure = state.structure()
    else:
        with safe_open(f, mmap) as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}
            structure = file.metadata().get(KEY)
    if map_location is not None:
        tensors = {
            name: t.detach().to(map_location).requires_grad_(t.requires_grad)
            for name, t in tensors.items()
        }
    return tensors if structure is None else unpack(json.loads(structure), tensors)
