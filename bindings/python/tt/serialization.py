"""save and load: tensors, modules and other objects in files.

Files have PyTorch's format, which torch.load reads, unless their name ends in .safetensors. A
safetensors file has the structure around the tensors as JSON in its metadata.
"""
from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections import Counter, OrderedDict
from contextlib import AbstractContextManager, contextmanager
from enum import Enum
from typing import IO, Any, Callable, Iterator

from . import _types
from ._absent import absent_class
from ._handles import StateDictHandle, torch_load, torch_save
from ._tensor import Tensor
from ._torch_files import ADVICE, LEGACY_START, EmptyFileError, UnknownFileError
from ._torch_files import coded, malformed, opened_archive, read_archive, read_legacy, unsafe
from ._torch_files import relocation, safe, unsafe_names, write_archive
from .errors import FileError, FormatError, UnimplementedError
from .nn.parameter import Parameter
from .safetensors import safe_open, save_file
from .storage import TypedStorage

DEFAULT_PROTOCOL = 2  # of pickle, as PyTorch's
__all__ = [
    "LoadEndianness",
    "MAP_LOCATION",
    "SourceChangeWarning",
    "add_safe_globals",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
]

PyTorchFileReader = absent_class("PyTorchFileReader", "read PyTorch's files by tt.load")
MAP_LOCATION = object  # for hints
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
    """Converts structures to JSON values, which tt.h describes; tensors become names of `tensors`.

    keeps_classes: loading restores each nn.Parameter as such, and containers of other classes, such
    as named tuples, are refused.
    """

    def __init__(self, keeps_classes: bool) -> None:
        self.tensors: dict[str, Tensor] = {}
        self.names: dict[int, str] = {}  # id of a tensor -> its name
        self.keeps_classes = keeps_classes

    def tensor(self, t: Tensor, path: tuple[str, ...]) -> dict[str, str]:
        if id(t) not in self.names:
            base = ".".join(path).replace("\0", "?").encode(errors="replace").decode() or "tensor"
            name, k = base, 1
            while name in self.tensors:
                name, k = f"{base}#{k}", k + 1
            self.names[id(t)], self.tensors[name] = name, t
        is_parameter = self.keeps_classes and isinstance(t, Parameter)
        return {"parameter" if is_parameter else "tensor": self.names[id(t)]}

    def pack(self, x: Any, path: tuple[str, ...] = ()) -> Any:
        """Returns the JSON value of x; path: the keys that lead to it."""
        if isinstance(x, Tensor):
            return self.tensor(x, path)
        if x is None or isinstance(x, (int, str)):
            return x
        if isinstance(x, float):
            return {"float": float.hex(x)}
        if self.keeps_classes and is_of_others(x):
            raise TypeError(f"save(): a {type(x).__name__} has to be pickled")
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


def is_of_others(x: Any) -> bool:
    """Returns whether x is a container of a class of the application, which JSON cannot restore."""
    if type(x) in (dict, list, tuple, OrderedDict, _types.Size):
        return False
    named = hasattr(x, "_fields") or not type(x).__module__.startswith("tt.")
    return isinstance(x, (dict, list, tuple)) and named


def sequence_kind(x: list[Any] | tuple[Any, ...]) -> str:
    if isinstance(x, list):
        return "list"
    return "size" if isinstance(x, _types.Size) else "tuple"


def unpack(x: Any, tensors: dict[str, Tensor]) -> Any:
    """Returns the structure that a JSON value describes, with tensors by name."""
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


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
    *,
    format: str | None = None,
) -> None:
    """Writes an object to a path or to a file object.

    Tensors, numbers, strings, dicts, lists and tuples are written so that any load reads them.
    Modules, NumPy arrays, sets and other objects are pickled: load accepts most of them only with
    weights_only=False, and PyTorch does not know tt's modules.

    format: "torch" or "safetensors", which supports only the former kinds; None: "safetensors" for
    a path with that extension. After a crash the file is either the old or the new one. Raises
    TypeError for objects that cannot be pickled.
    """
    is_path = isinstance(f, (str, bytes, os.PathLike))
    if not is_path and not hasattr(f, "write"):
        raise TypeError(f"save: f must be a path or a file object, not {type(f).__name__}")
    if format is None:
        named = is_path and os.fsencode(f).endswith(b".safetensors")
        format = "safetensors" if named else "torch"
    if format not in ("torch", "safetensors"):
        raise ValueError(f"save: format is {format!r}: must be 'torch' or 'safetensors'")
    if hasattr(f, "write"):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "saved")
            save(obj, path, pickle_protocol=pickle_protocol, format=format)
            with open(path, "rb") as written:
                shutil.copyfileobj(written, f)
    elif format == "safetensors":
        save_safetensors(obj, f)
    else:
        save_torch(obj, f, pickle_protocol)


def save_safetensors(obj: Any, path: Any) -> None:
    writer = Writer(False)
    structure = json.dumps(writer.pack(obj))
    if is_state_dict(obj):
        save_file(obj, path)
    else:
        save_file(writer.tensors, path, {KEY: structure})


def save_torch(obj: Any, path: Any, pickle_protocol: int) -> None:
    writer = Writer(True)
    try:
        if pickle_protocol != 2:
            raise TypeError("libtt writes protocol 2")
        structure = json.dumps(writer.pack(obj))
    except (TypeError, RecursionError):
        pickled(obj, path, pickle_protocol)
        return
    state = StateDictHandle()
    for name, t in writer.tensors.items():
        state.set(name, t)
    torch_save(path, state, structure)


def pickled(obj: Any, path: Any, pickle_protocol: int) -> None:
    """Writes a pickle in PyTorch's format, first to a temporary file beside the path."""
    folder, name = os.path.split(os.path.abspath(os.fsdecode(path)))
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=name + ".", dir=folder)
    except OSError as error:
        raise FileError(f"save: {path}: {error.strerror}") from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            write_archive(obj, file, pickle_protocol)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~umask())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def umask() -> int:
    """Returns the process's umask."""
    mask = os.umask(0o22)
    os.umask(mask)
    return mask


def is_state_dict(x: Any) -> bool:
    """Returns whether x is a non-empty dict from strings to tensors."""
    if not isinstance(x, dict) or not x:
        return False
    return all(type(k) is str and isinstance(v, Tensor) for k, v in x.items())


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool = False,
    **pickle_load_args: Any,
) -> Any:
    """Loads an object that save() or torch.save wrote to a path or a file object.

    For other safetensors files, returns a dict of the tensors.

    map_location: the device of the tensors; a dict from a device in the file to another one; a
        function of (storage, device in the file), which returns the storage itself or that of
        another device. None: the CPU.
    weights_only: creates only tensors, numbers, strings, containers, and objects of
    add_safe_globals: runs no code of a file. False: creates any object, such as whole modules, with
        Python's pickle. A file can then run any code. None: True, but False beside pickle_module.
    mmap: tensors are read-only views of a safetensors file; ignored for PyTorch's files.
    Raises FileError or FormatError.
    """
    if pickle_module is not None and weights_only:
        raise RuntimeError("load: weights_only=True takes no pickle_module")
    if weights_only is None:
        weights_only = pickle_module is None
    if hasattr(f, "read"):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "saved")
            with open(path, "wb") as copy:
                shutil.copyfileobj(f, copy)
            return load(path, map_location, weights_only=weights_only)
    with open_file(f) as file:
        start = file.read(len(LEGACY_START))
    if not start:
        raise coded(EmptyFileError(f"load: {f} is empty"))
    if start.startswith(ZIP_MAGIC):
        return load_archive(f, map_location, weights_only)
    if start == LEGACY_START:
        return read_legacy(f, map_location, weights_only)
    try:
        with safe_open(f, mmap) as opened:
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}
            structure = opened.metadata().get(KEY)
    except FormatError as error:
        explain(f, start)
        text = f"load: {f} is neither a file of save nor a safetensors file: {error}"
        raise coded(UnknownFileError(text)) from error
    return arranged(tensors, structure, map_location)


class MissingFileError(FileError, FileNotFoundError):
    """There is no file of this name."""


class FolderError(FileError, IsADirectoryError):
    """The name is that of a folder."""


def explain(path: Any, start: bytes) -> None:
    """Raises FormatError for files of known but unsupported formats."""
    if start[:1] == b"\x80" and start[1:2] in (b"\2", b"\3", b"\4", b"\5"):
        text = f"load: {path} is a plain pickle, not a file of save: use pickle.load"
        raise coded(UnknownFileError(text))
    if is_tar(path):
        raise malformed(
            f"load: {path} is a tar file of PyTorch before 0.1.10, which tt cannot read"
        )


def open_file(path: Any) -> IO[bytes]:
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"load: f must be a path or a file object, not {type(path).__name__}")
    try:
        return open(path, "rb")
    except IsADirectoryError as error:
        raise FolderError(f"load: {error}") from error
    except FileNotFoundError as error:
        raise MissingFileError(f"load: {error}") from error
    except OSError as error:
        raise FileError(f"load: {error}") from error


def is_tar(path: Any) -> bool:
    with open(path, "rb") as file:
        return file.read(512)[257:262] == b"ustar"


def load_archive(path: Any, map_location: Any, weights_only: bool) -> Any:
    """Reads a zip archive of PyTorch, by libtt if it contains only tensors and containers."""
    by_location = callable(map_location) or isinstance(map_location, dict)
    if by_location or not weights_only:
        return read_archive(path, map_location, weights_only)
    try:
        state = torch_load(path)
    except FormatError as error:
        if not names_more(str(error)):
            raise
        try:
            return read_archive(path, map_location, True)
        except FormatError as other:
            if "has protocol" in str(error):
                raise
            if " names " not in str(error):
                raise malformed(str(error)) from other
            if "the file names" not in str(other):
                raise  # a name that libtt does not know, with wrong values
            raise unsafe(f"{error}; {ADVICE}") from other
    tensors = {name: state.get(i) for i, name in enumerate(state.keys())}
    return arranged(tensors, state.structure(), map_location)


def names_more(message: str) -> bool:
    """Returns whether libtt refused a name, an opcode or metadata that read_archive may support."""
    return any(word in message for word in (" names ", "the opcode", "has protocol", "metadata"))


def arranged(tensors: dict[str, Tensor], structure: str | None, map_location: Any) -> Any:
    """Returns the structure with its tensors on the devices of map_location."""
    if map_location is not None:
        relocate = relocation(map_location)
        for name, t in tensors.items():
            moved = relocate(TypedStorage(t.detach()), "cpu").elements
            tensors[name] = moved.requires_grad_(t.requires_grad)
    return tensors if structure is None else unpack(json.loads(structure), tensors)


# ---- what files may name ----


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Allows load to create objects of these classes and call these functions if a file names them.
    An item is a class, a function or (one of them, its name in the file)."""
    for item in safe_globals:
        obj, name = item if isinstance(item, tuple) else (item, None)
        safe[name or f"{obj.__module__}.{obj.__qualname__}"] = obj


def get_safe_globals() -> list[Any]:
    """Returns the items of add_safe_globals."""
    return list(safe.values())


def clear_safe_globals() -> None:
    """Removes all items of add_safe_globals."""
    safe.clear()


@contextmanager
def safe_globals_block(given: list[Any]) -> Iterator[None]:
    before = dict(safe)
    add_safe_globals(given)
    try:
        yield
    finally:
        safe.clear()
        safe.update(before)


def safe_globals(safe_globals: list[Any]) -> AbstractContextManager[None]:
    """Applies add_safe_globals within a block."""
    return safe_globals_block(safe_globals)


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """Returns the names in a file that load refuses unless they are given to add_safe_globals."""
    with opened_archive(f) as archive:
        found = [name for name in archive.namelist() if name.endswith("data.pkl")]
        if not found:
            raise malformed(f"get_unsafe_globals_in_checkpoint: {f} has no data.pkl")
        return unsafe_names(archive.read(found[0]))


# ---- PyTorch's names ----


class LoadEndianness(Enum):
    """The byte order of files that do not say theirs."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class SourceChangeWarning(Warning):
    """Warned by PyTorch about modules whose source changed; tt does not compare sources."""


def get_default_load_endianness() -> LoadEndianness | None:
    """Returns None: files without a byte order are read as little-endian."""
    return None


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Accepts None and little-endian, as which tt reads files without a byte order."""
    if endianness not in (None, LoadEndianness.LITTLE):
        raise UnimplementedError(f"set_default_load_endianness: {endianness}: must be LITTLE")


def get_crc32_options() -> bool:
    """Returns True: save writes the checksums of entries."""
    return True


def set_crc32_options(compute_crc32: bool) -> None:
    """Does nothing: save writes the checksums of entries."""


def location_tag(storage: Any) -> str:
    """Returns the device of a storage as files name it, such as "cuda:0"."""
    return str(storage.device)


def default_restore_location(storage: Any, location: Any) -> Any:
    """Returns the storage on the device of a location: for functions that are a map_location."""
    return relocation(location)(storage, "cpu")


def __dir__() -> list[str]:
    return __all__
