"""Reads and writes torch.save's files of any Python objects with Python's pickle.

libtt itself reads and writes files of tensors, dicts, lists, numbers and strings.
"""
from __future__ import annotations

import io
import os
import pickle
import pickletools
import struct
import sys
import zipfile
from array import array
from collections import Counter, OrderedDict
from importlib import import_module
from typing import Any, Callable

import tt

from . import _types, errors
from ._create import from_bytes, frombuffer
from ._layout import layout as Layout
from ._layout import sparse_coo, sparse_csr
from ._lib import Status
from ._tensor import Tensor
from .autograd import no_grad
from .nn.parameter import Buffer, Parameter
from .storage import TypedStorage

TYPE_CHECKING = False

Relocate = Callable[["TypedStorage", str], Any]

if TYPE_CHECKING:
    PythonPickler: Any = object
    PythonUnpickler: Any = object
else:
    PythonPickler, PythonUnpickler = pickle._Pickler, pickle._Unpickler
ALIGNMENT = 64  # bytes, of the elements in a file
MAX_NESTING = 200  # of containers, as in libtt
# dtype -> the class of its storages in PyTorch
STORAGES = {
    "float64": "DoubleStorage",
    "float32": "FloatStorage",
    "float16": "HalfStorage",
    "bfloat16": "BFloat16Storage",
    "int64": "LongStorage",
    "int32": "IntStorage",
    "int16": "ShortStorage",
    "int8": "CharStorage",
    "uint8": "ByteStorage",
    "bool": "BoolStorage",
    "complex64": "ComplexFloatStorage",
    "complex128": "ComplexDoubleStorage",
}
UNTYPED = ("uint16", "uint32", "uint64")  # dtypes whose storages have none
BY_STORAGE = {storage: dtype for dtype, storage in STORAGES.items()}
BY_STORAGE["UntypedStorage"] = "uint8"
LEGACY_MAGIC = 0x1950A86A20F9469CFC6C  # with which files of PyTorch before 1.6 begin
LEGACY_START = b"\x80\x02\x8a\n" + LEGACY_MAGIC.to_bytes(10, "little") + b"."
ADVICE = (
    "if the file is from someone you trust, load it with weights_only=False, or name the class by "
    "tt.serialization.add_safe_globals"
)


def coded(error: Any) -> Any:
    """Gives an exception for a malformed file its status."""
    error.code = Status(8)  # FORMAT
    return error


def malformed(message: str) -> errors.FormatError:
    """Returns the exception for a malformed file."""
    return coded(errors.FormatError(message))


class UnsafeFileError(errors.FormatError, pickle.UnpicklingError):
    """A file names what only weights_only=False creates."""


class UnknownFileError(errors.FormatError, pickle.UnpicklingError):
    """A file is of no format that tt reads."""


class EmptyFileError(errors.FormatError, EOFError):
    """A file has no bytes."""


def unsafe(message: str) -> UnsafeFileError:
    """Returns the exception for a file that needs weights_only=False."""
    return coded(UnsafeFileError(message))


# ---- writing ----


class TorchGlobal:
    """A global name of PyTorch in a pickle."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self) -> None:
        """Exists because pickle requires callables."""


NAMES: dict[tuple[str, str], TorchGlobal] = {}


def torch_name(module: str, name: str) -> TorchGlobal:
    """Returns the single object for a name, so that a pickle has it once."""
    return NAMES.setdefault((module, name), TorchGlobal(module, name))


class TorchPickler(PythonPickler):
    """Writes tensors as PyTorch does, with their elements as separate entries of the archive."""

    dispatch = PythonPickler.dispatch.copy()

    def __init__(self, file: io.BytesIO, protocol: int) -> None:
        super().__init__(file, protocol)
        self.storages: dict[Any, tuple[int, Tensor]] = {}  # address and dtype -> number, elements

    def save_torch_name(self, name: TorchGlobal) -> None:
        line = f"{name.module}\n{name.name}\n".encode()
        self.write(pickle.GLOBAL + line)
        self.memoize(name)

    dispatch[TorchGlobal] = save_torch_name

    def save_global(self, obj: Any, name: str | None = None) -> None:
        if isinstance(obj, _types.dtype):
            self.save_torch_name(torch_name("torch", obj.name))
        else:
            super().save_global(obj, name)

    def persistent_id(self, obj: Any) -> Any:
        """Returns PyTorch's persistent id of a storage."""
        if not isinstance(obj, StorageToWrite):
            return None
        t = obj.tensor
        number, elements = self.storages.setdefault(obj.key, (len(self.storages), obj.elements))
        n = elements.numel()
        if t.dtype.name in UNTYPED:
            kind, n = torch_name("torch.storage", "UntypedStorage"), n * t.itemsize
        else:
            kind = torch_name("torch", STORAGES[t.dtype.name])
        return ("storage", kind, str(number), "cpu", n)

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Tensor):
            return reduced_tensor(obj)
        if getattr(obj, "is_sparse", False) is True:
            return reduced_sparse_tensor(obj)
        if isinstance(obj, _types.dtype):
            return obj.name  # for save_global
        if isinstance(obj, _types.device):
            return torch_name("torch", "device"), (str(obj),)
        if isinstance(obj, _types.Size):
            return torch_name("torch", "Size"), (tuple(obj),)
        return NotImplemented


class Reduced:
    """A call of a global name of PyTorch in a pickle."""

    def __init__(self, name: TorchGlobal, args: tuple[Any, ...]) -> None:
        self.name, self.args = name, args

    def __reduce__(self) -> Any:
        return self.name, self.args


class StorageToWrite:
    """The elements of a tensor's storage."""

    def __init__(self, t: Tensor) -> None:
        self.tensor = t
        if t.is_cpu:
            n = t._storage_bytes() // t.itemsize
            self.elements = t.detach().as_strided((n,), (1,), 0)
        else:
            self.elements = t.detach().cpu().reshape(-1)
        self.key = t._storage_data() or id(t), t.dtype.name


def reduced_tensor(t: Tensor) -> Any:
    """Returns a tensor's __reduce__ value in PyTorch's form."""
    if t.requires_grad and not t.is_leaf:
        raise TypeError(
            "save(): a tensor that requires a gradient and is no leaf cannot be kept in an object: "
            "detach() it"
        )
    cpu = t if t.is_cpu else t.detach().cpu().contiguous()
    storage = StorageToWrite(t)
    place = (storage, cpu.storage_offset(), tuple(cpu.shape), cpu.stride())
    kind = type(t)
    hooks: Any = OrderedDict()
    if isinstance(t, Parameter) and not isinstance(t, Buffer):
        data = t.detach()
        return torch_name("torch._utils", "_rebuild_parameter"), (data, t.requires_grad, hooks)
    if kind is Tensor or not t._attributes() and kind.__module__.startswith("tt."):
        if t.dtype.name in UNTYPED:
            rebuild = torch_name("torch._utils", "_rebuild_tensor_v3")
            return rebuild, (*place, t.requires_grad, hooks, t.dtype)
        return torch_name("torch._utils", "_rebuild_tensor_v2"), (*place, t.requires_grad, hooks)
    return t.__reduce__()


def reduced_sparse_tensor(t: tt.sparse.SparseTensor) -> Any:
    """Returns a sparse tensor's __reduce__ value in PyTorch's form."""
    layout = torch_name("torch.serialization", "_get_layout"), (f"torch.{t.layout.name}",)
    values = t._values_.detach()
    parts: tuple[Any, ...] = (t._indices_, values, t.shape, t._coalesced)
    if t._crow is not None:
        parts = (t._crow, t._indices_[1].contiguous(), values, t.shape)
    return torch_name("torch._utils", "_rebuild_sparse_tensor"), (Reduced(*layout), parts)


def write_archive(obj: Any, file: Any, protocol: int) -> None:
    """Writes obj as torch.save does, in a zip archive. Raises TypeError if it cannot be pickled."""
    text = io.BytesIO()
    pickler = TorchPickler(text, protocol)
    try:
        pickler.dump(obj)
    except (pickle.PicklingError, AttributeError, RecursionError) as error:
        raise TypeError(f"save(): {error}") from error
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        out: Any = archive.fp
        archive.writestr("archive/data.pkl", text.getvalue())
        archive.writestr("archive/byteorder", sys.byteorder)
        for number, elements in pickler.storages.values():
            entry = zipfile.ZipInfo(f"archive/data/{number}")
            start = out.tell() + 30 + len(entry.filename) + 4
            padding = -start % ALIGNMENT
            entry.extra = struct.pack("<2sH", b"FB", padding) + b"Z" * padding
            archive.writestr(entry, elements._bytes())
        archive.writestr("archive/version", "3\n")


# ---- reading ----


def relocation(map_location: Any) -> Relocate:
    """Returns a function of (storage, location) that moves the storage as map_location says."""

    def to(storage: TypedStorage, device: Any) -> TypedStorage:
        return storage if device is None else TypedStorage(storage.elements.to(device))

    if map_location is None:
        return lambda storage, location: storage
    if callable(map_location):
        return lambda storage, location: map_location(storage, location) or storage
    if isinstance(map_location, dict):
        return lambda storage, location: to(storage, map_location.get(location))
    return lambda storage, location: to(storage, map_location)


def rebuild_tensor(
    storage: TypedStorage,
    offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    hooks: Any = None,
    metadata: Any = None,
) -> Tensor:
    """Implements PyTorch's _rebuild_tensor_v2. metadata: whether the tensor is a conjugate or
    negative view of its storage."""
    with no_grad():
        view = storage.elements.as_strided(tuple(size), tuple(stride), offset).detach()
        if metadata and (metadata.get("conj") or metadata.get("neg")):
            view = computed_view(storage, view, metadata)
    return view.requires_grad_() if requires_grad else view


def computed_view(storage: TypedStorage, view: Tensor, metadata: Any) -> Tensor:
    """Returns a copy of the conjugate or the negative of a view, whose elements a storage of a file
    before version 1.6 gets later."""

    def elements() -> Tensor:
        part = view.conj() if metadata.get("conj") else view
        return -part if metadata.get("neg") else part

    made = elements()
    if hasattr(storage, "when_filled"):
        storage.when_filled.append(lambda: made.copy_(elements()))
    return made


def rebuild_plain_tensor(storage: TypedStorage, offset: int, size: Any, stride: Any) -> Tensor:
    """Implements PyTorch's _rebuild_tensor, of old files."""
    return rebuild_tensor(storage, offset, size, stride, False)


def rebuild_typed_tensor(
    storage: TypedStorage,
    offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    hooks: Any,
    dtype: _types.dtype,
    metadata: Any = None,
) -> Tensor:
    """Implements PyTorch's _rebuild_tensor_v3, over a storage of bytes."""
    typed = TypedStorage(storage.elements.view(dtype))
    return rebuild_tensor(typed, offset, size, stride, requires_grad, hooks, metadata)


TENSOR = TorchGlobal("torch", "Tensor")  # the class, which makes nothing here


def rebuild_from_type(function: Any, cls: Any, args: Any, state: Any) -> Tensor:
    """Implements PyTorch's _rebuild_from_type_v2, for tensors with attributes of their own."""
    made = function(*args)
    if isinstance(cls, type) and not isinstance(made, cls):
        made = made.as_subclass(cls)
    attributes = state[0] if isinstance(state, tuple) else state
    if attributes:
        made.__dict__.update(attributes)
    return made


def rebuild_parameter(data: Tensor, requires_grad: bool, *rest: Any) -> Parameter:
    """Implements PyTorch's _rebuild_parameter."""
    return Parameter(data, requires_grad)


def layout_of(name: str) -> Layout:
    """Implements PyTorch's _get_layout."""
    layouts = {f"torch.{layout.name}": layout for layout in (sparse_coo, sparse_csr)}
    if name not in layouts:
        raise malformed(f"load: a tensor has the layout {name!r}: must be one of {list(layouts)}")
    return layouts[name]


def rebuild_sparse_tensor(layout: Layout, parts: tuple[Any, ...]) -> tt.sparse.SparseTensor:
    """Implements PyTorch's _rebuild_sparse_tensor. parts: indices, values and size, and in newer
    files whether positions are sorted and unique; of compressed rows, crow, columns, values and
    size."""
    from .sparse import sparse_coo_tensor, sparse_csr_tensor

    for t in parts[:2]:
        if not isinstance(t, Tensor) or t.nbytes > t._storage_bytes():
            raise malformed("load: indices of a sparse tensor must be tensors with memory")
    if layout is sparse_csr:
        crow, columns, values, size = parts
        return sparse_csr_tensor(crow, columns, values, size)
    indices, values, size, *rest = parts
    return sparse_coo_tensor(indices, values, size, is_coalesced=bool(rest and rest[0]))


def encoded(text: str, encoding: str) -> bytes:
    """Decodes bytes of pickles before protocol 3."""
    if encoding != "latin1":
        raise malformed(f"load: bytes are encoded as {encoding!r}: must be latin1")
    return text.encode("latin1")


def bytes_of(data: Any = b"", encoding: str = "latin1") -> bytearray:
    """Returns bytearray(x), but refuses a number, with which a file could allocate any memory."""
    if isinstance(data, str):
        return bytearray(encoded(data, encoding))
    return bytearray(data) if isinstance(data, (bytes, list, tuple)) else bytearray()


# what files may name without weights_only=False
ALLOWED: dict[str, Any] = {
    "torch._utils._rebuild_tensor_v2": rebuild_tensor,
    "torch._utils._rebuild_tensor_v3": rebuild_typed_tensor,
    "torch._utils._rebuild_tensor": rebuild_plain_tensor,
    "torch._tensor._rebuild_from_type_v2": rebuild_from_type,
    "torch._utils._rebuild_sparse_tensor": rebuild_sparse_tensor,
    "torch.serialization._get_layout": layout_of,
    "torch._utils._rebuild_parameter": rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": rebuild_parameter,
    "torch.Size": _types.Size,
    "torch.device": _types.device,
    "collections.OrderedDict": OrderedDict,
    "collections.Counter": Counter,
    "_codecs.encode": encoded,
    "builtins.bytearray": bytes_of,
    "builtins.set": set,
    "builtins.complex": complex,
}
ALLOWED.update((f"torch.{name}", dtype) for name, dtype in _types.BY_NAME.items())
PYTHON2 = {"__builtin__": "builtins", "copy_reg": "copyreg"}  # modules in protocol 2
PYTHON2_NAMES = {"xrange": "range", "unicode": "str", "long": "int"}  # of __builtin__
safe: dict[str, Any] = {}  # what add_safe_globals has been given


class Names:
    """Resolves the names of a pickle: a mixin of unpicklers."""

    weights_only: bool
    load_storage: Any

    def find_class(self, module: str, name: str) -> Any:
        if module == "__builtin__":
            name = PYTHON2_NAMES.get(name, name)
        module = PYTHON2.get(module, module)
        full = f"{module}.{name}"
        if full in safe:
            return safe[full]
        if full in ALLOWED:
            return ALLOWED[full]
        if self.weights_only and full == "torch.Tensor":
            return TENSOR
        if module in ("torch", "torch.storage") and name in BY_STORAGE:
            return BY_STORAGE[name]
        if self.weights_only:
            raise unsafe(f"load: the file names {module} {name}: {ADVICE}")
        return trusted(module, name)

    def persistent_load(self, pid: Any) -> Any:
        return self.load_storage(*pid[1:]) if pid[0] == "storage" else None


class SafeUnpickler(Names, PythonUnpickler):
    """Creates only allowed objects. It is Python's unpickler in Python, from which a file cannot
    request much memory."""


class Unpickler(Names, pickle.Unpickler):
    """Creates any object that a file names."""


def trusted(module: str, name: str) -> Any:
    """Returns the object of a name; PyTorch's names are tt's."""
    if module.partition(".")[0] == "torch" and "torch" not in sys.modules:
        module = "tt" + module[len("torch") :]
    try:
        try:
            target: Any = import_module(module)
        except ImportError:  # NumPy 2 has renamed a module
            former, other = ("numpy.core", "numpy._core")
            if module.startswith(other):
                former, other = other, former
            target = import_module(module.replace(former, other))
        for part in name.split("."):
            target = getattr(target, part)
    except (ImportError, AttributeError) as error:
        raise malformed(f"load: the file needs {module} {name}: {error}") from None
    return target


def check_nesting(obj: Any) -> None:
    """Raises FormatError if containers are nested more than MAX_NESTING levels deep.

    Later recursion over them, by repr or a collector, would end the process.
    """
    level = [obj]
    for _ in range(MAX_NESTING + 1):
        members: dict[int, Any] = {}
        for x in level:
            if isinstance(x, (dict, list, tuple, set, frozenset)):
                inside = x.values() if isinstance(x, dict) else x
                members.update((id(member), member) for member in inside)
        level = list(members.values())
        if not level:
            return
    raise malformed("load: the pickle is nested too deeply")


def unpickle(text: Any, weights_only: bool, load_storage: Any) -> Any:
    """Loads the object of a pickle."""
    kind: Any = SafeUnpickler if weights_only else Unpickler
    unpickler = kind(text, encoding="utf-8")
    unpickler.weights_only, unpickler.load_storage = weights_only, load_storage
    try:
        obj = unpickler.load()
        if weights_only:
            check_nesting(obj)
        return obj
    except errors.TtError:
        raise
    except Exception as error:
        if not weights_only:
            raise
        raise malformed(f"load: the pickle is malformed: {error!r}") from error


def opened_archive(path: Any) -> zipfile.ZipFile:
    """Opens a zip archive. Raises FormatError if it is none."""
    try:
        return zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
        raise malformed(f"load: {path}: {error}") from error


def unsafe_names(text: bytes) -> list[str]:
    """Returns the names in a pickle that weights_only=True refuses."""
    try:
        steps = [(op.name, arg) for op, arg, _ in pickletools.genops(text)]
    except ValueError as error:
        raise malformed(f"the pickle is malformed: {error}") from error
    if any(name == "STACK_GLOBAL" for name, _ in steps):
        raise malformed("the pickle has protocol 4 or newer: its names cannot be listed")
    found = {str(arg).replace(" ", ".") for name, arg in steps if name == "GLOBAL"}
    storages = {f"torch.{name}" for name in BY_STORAGE} | {"torch.storage.UntypedStorage"}
    return sorted(found - set(ALLOWED) - set(safe) - storages)


def read_archive(path: Any, map_location: Any, weights_only: bool) -> Any:
    """Loads the object of a zip archive of torch.save."""
    relocate = relocation(map_location)
    kept: dict[str, TypedStorage] = {}
    with opened_archive(path) as archive:
        root = next(
            (n[: -len("data.pkl")] for n in archive.namelist() if n.endswith("data.pkl")), None
        )
        if root is None:
            raise malformed(f"load: {path} is a zip archive without data.pkl")
        order = b"little"
        if root + "byteorder" in archive.namelist():
            order = archive.read(root + "byteorder")
        if order not in (b"little", b"big"):
            raise malformed(f"load: the byteorder is {order!r}: must be little or big")

        def load_storage(dtype_name: Any, key: str, location: str, n: int) -> TypedStorage:
            if key not in kept:
                dtype = _types.BY_NAME[dtype_name]
                data = archive.read(f"{root}data/{key}")
                if len(data) != n * dtype.itemsize:
                    raise malformed(
                        f"load: {root}data/{key} has {len(data)} bytes: must have "
                        f"{n * dtype.itemsize}"
                    )
                if order == b"big":
                    data = swapped(data, dtype)
                kept[key] = relocate(TypedStorage(from_bytes(data, dtype, (n,))), location)
            return kept[key]

        text = io.BytesIO(archive.read(root + "data.pkl"))
        return unpickle(text, weights_only, load_storage)


def swapped(data: bytes, dtype: Any) -> bytes:
    """Returns the elements with swapped byte order."""
    size = dtype.itemsize // (2 if dtype.is_complex else 1)
    if size == 1:
        return data
    numbers = array({2: "H", 4: "I", 8: "Q"}[size], data)
    numbers.byteswap()
    return numbers.tobytes()


def read_legacy(path: Any, map_location: Any, weights_only: bool) -> Any:
    """Loads the object of a file that PyTorch before 1.6 wrote."""
    relocate = relocation(map_location)
    waiting: dict[str, tuple[Any, Tensor]] = {}

    def load_storage(
        dtype_name: Any, key: str, location: str, n: int, view: Any = None
    ) -> TypedStorage:
        dtype = _types.BY_NAME[dtype_name]
        if n * dtype.itemsize > os.path.getsize(path):
            raise malformed(f"load: {path} is too short for {n} elements of {dtype.name}")
        if key not in waiting:
            elements = from_bytes(bytes(n * dtype.itemsize), dtype, (n,))
            storage: Any = relocate(TypedStorage(elements), location)
            storage.when_filled = []
            waiting[key] = storage, elements
        return waiting[key][0]

    with open(path, "rb") as file:
        for _ in range(3):  # the magic number, the version, sizes of C's types
            unpickle(file, True, None)
        obj = unpickle(file, weights_only, load_storage)
        for key in unpickle(file, True, None):
            if key not in waiting:
                raise malformed(f"load: {path} has a storage {key!r} that nothing needs")
            storage, elements = waiting[key]
            n = int.from_bytes(file.read(8), "little")
            data = bytearray(file.read(elements.nbytes))
            if n != elements.numel() or len(data) != elements.nbytes:
                raise malformed(f"load: {path} ends too early")
            if data:
                storage.elements.copy_(frombuffer(data, dtype=elements.dtype))
        with no_grad():
            for storage, _ in waiting.values():
                for fill in storage.when_filled:
                    fill()
    return obj
