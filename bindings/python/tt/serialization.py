"""save and load: dicts, lists and tuples of tensors, numbers and strings.

A dict of strings to tensors, such as a state dict, becomes a plain safetensors file. Anything else
does, too, with its structure as JSON in the file's metadata. A name that ends in .pt or .pth makes
a file that torch.load reads.
"""
from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections import Counter, OrderedDict

from . import _types
from ._handles import StateDictHandle, torch_load, torch_save
from ._tensor import Tensor
from .nn.parameter import Parameter
from .safetensors import safe_open, save_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from ._types import device as Device

KEY = "tt.structure"  # of the metadata of a safetensors file
ZIP_MAGIC = b"PK\3\4"  # with which PyTorch's files begin
CONTAINERS: dict[str, Callable[..., Any]] = {
    "list": list,
    "tuple": tuple,
    "size": _types.Size,
    "dict": dict,
    "ordered": OrderedDict,
    "counter": Counter,
}


class Writer:
    """Turns structures into JSON values, which tt.h describes; tensors become names of `tensors`.

    marks_parameters: an nn.Parameter is loaded as such.
    """

    def __init__(self, marks_parameters: bool) -> None:
        self.tensors: dict[str, Tensor] = {}
        self.names: dict[int, str] = {}  # id of a tensor -> its name
        self.marks_parameters = marks_parameters

    def tensor(self, t: Tensor, path: tuple[str, ...]) -> dict[str, str]:
        if id(t) not in self.names:
            base = ".".join(path).replace("\0", "?").encode(errors="replace").decode() or "tensor"
            name, k = base, 1
            while name in self.tensors:
                name, k = f"{base}#{k}", k + 1
            self.names[id(t)], self.tensors[name] = name, t
        is_parameter = self.marks_parameters and isinstance(t, Parameter)
        return {"parameter" if is_parameter else "tensor": self.names[id(t)]}

    def pack(self, x: Any, path: tuple[str, ...] = ()) -> Any:
        """Returns the JSON value of x; path: the keys that lead to it."""
        if isinstance(x, Tensor):
            return self.tensor(x, path)
        if x is None or isinstance(x, (int, str)):
            return x
        if isinstance(x, float):
            return {"float": float.hex(x)}
        if isinstance(x, dict):
            kind = "ordered" if isinstance(x, OrderedDict) else "dict"
            items = [[self.pack(k), self.pack(v, (*path, str(k)))] for k, v in x.items()]
            return {kind: items}
        if isinstance(x, (_types.dtype, _types.device)):
            return {type(x).__name__: str(x).replace("tt.", "")}
        if isinstance(x, (list, tuple)):
            return {sequence_kind(x): [self.pack(v, (*path, str(i))) for i, v in enumerate(x)]}
        raise TypeError(
            f"save(): cannot keep a {type(x).__name__} at '{'.'.join(path)}': only tensors, "
            f"numbers, strings, dicts, lists and tuples (of a module: its state_dict())"
        )


def sequence_kind(x: list[Any] | tuple[Any, ...]) -> str:
    if isinstance(x, list):
        return "list"
    return "size" if isinstance(x, _types.Size) else "tuple"


def unpack(x: Any, tensors: dict[str, Tensor]) -> Any:
    """Returns the structure of a JSON value, with tensors by name."""
    if not isinstance(x, dict):
        return x
    ((kind, value),) = x.items()
    if kind == "parameter" and not isinstance(tensors[value], Parameter):
        tensors[value] = Parameter(tensors[value], tensors[value].requires_grad)
    if kind in ("tensor", "parameter"):
        return tensors[value]
    if kind in ("list", "tuple", "size"):
        return CONTAINERS[kind](unpack(v, tensors) for v in value)
    if kind in CONTAINERS:
        return CONTAINERS[kind]({unpack(k, tensors): unpack(v, tensors) for k, v in value})
    if kind == "float":
        return float.fromhex(value)
    return _types.BY_NAME[value] if kind == "dtype" else _types.device(value)


def save(obj: Any, f: Any) -> None:
    """Writes tensors, numbers, strings, dicts, lists and tuples to a path or to a file object.

    A path that ends in .pt or .pth makes a file of PyTorch's, any other a safetensors file. After a
    crash the file is the old or the new one. Raises TypeError for other objects.
    """
    if hasattr(f, "write"):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "saved")
            save(obj, path)
            with open(path, "rb") as written:
                shutil.copyfileobj(written, f)
        return
    for_torch = os.fsencode(f).endswith((b".pt", b".pth"))
    writer = Writer(for_torch)
    structure = json.dumps(writer.pack(obj))
    if for_torch:
        state = StateDictHandle()
        for name, t in writer.tensors.items():
            state.set(name, t)
        torch_save(f, state, structure)
    elif is_state_dict(obj):
        save_file(obj, f)
    else:
        save_file(writer.tensors, f, {KEY: structure})


def is_state_dict(x: Any) -> bool:
    """Returns whether x is a dict of strings to tensors, and not empty."""
    if not isinstance(x, dict) or not x:
        return False
    return all(type(k) is str and isinstance(v, Tensor) for k, v in x.items())


def load(
    f: Any,
    map_location: Device | str | None = None,
    *,
    weights_only: bool = True,
    mmap: bool = False,
) -> Any:
    """Returns what save(), or torch.save, has written to a path or a file object.

    Of other safetensors files it is the dict of their tensors. No code of a file is run.

    map_location: the device of the tensors; None: the CPU. weights_only is ignored.
    mmap: tensors are read-only views of a safetensors file; ignored for PyTorch's files.
    Raises FileError or FormatError.
    """
    if hasattr(f, "read"):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "saved")
            with open(path, "wb") as copy:
                shutil.copyfileobj(f, copy)
            return load(path, map_location)
    with open(f, "rb") as file:
        from_torch = file.read(4) == ZIP_MAGIC
    if from_torch:
        state = torch_load(f)
        tensors = {name: state.get(i) for i, name in enumerate(state.keys())}
        structure: str | None = state.structure()
    else:
        with safe_open(f, mmap) as opened:
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}
            structure = opened.metadata().get(KEY)
    if map_location is not None:
        for name, t in tensors.items():
            tensors[name] = t.detach().to(map_location).requires_grad_(t.requires_grad)
    return tensors if structure is None else unpack(json.loads(structure), tensors)
