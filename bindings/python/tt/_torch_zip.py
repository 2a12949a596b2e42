"""Reads PyTorch's files: a zip archive of a pickle and of storages. The pickle is read by a machine for the opcodes that PyTorch writes; it calls
nothing but Machine.calls."""
import os
import pickletools
import zipfile
from collections import Counter, OrderedDict

from . import _types, errors
from ._create import from_bytes
from ._lib import Status
from ._tensor import Tensor
from .nn.parameter import Parameter

DEEPEST, VERSIONS = 200, range(1, 11)
STORAGES = {f"{d.shown}Storage": d.name for d in _types.DTYPES[1:]}
CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
PLAIN = {"BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT", "BINUNICODE"}
EMPTY = {"EMPTY_TUPLE": tuple, "EMPTY_LIST": list, "EMPTY_DICT": dict}
TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


def refuse(reason):
    e = errors.FormatError(f"load: {reason}")
    e.code, e.op = Status(8), "load"
    raise e


class Name(str):
    """A class or function that a pickle names; pickle wants it callable."""
    __call__ = None


class Machine:
    """Objects of a pickle. Containers are counted in levels and complete once they stand in another one, so none holds itself."""

    def __init__(self, tensor_of, place):
        self.tensor_of, self.place, self.levels = tensor_of, place, {}  # id -> [container, levels, complete]
        self.calls = {"collections OrderedDict": lambda: self.made(OrderedDict()),
                      "collections Counter": lambda counts: self.made(Counter(counts), [counts]), "torch Size": _types.Size, "torch device": _types.device,
                      "torch._utils _rebuild_tensor_v2": self.tensor, "torch._utils _rebuild_parameter": lambda data, grad, hooks: Parameter(data, grad)}

    def made(self, container, children=()):
        self.levels[id(container)] = [container, 1, False]
        return self.filled(container, children)

    def filled(self, container, children):
        row = self.levels[id(container)]
        for child in children:
            below = self.levels.get(id(child))
            if below:
                below[2], row[1] = True, max(row[1], below[1] + 1)
        if row[2] or row[1] > DEEPEST:
            refuse("a container of the pickle holds itself" if row[2] else "the pickle is nested too deep")
        return container

    def named(self, name):
        kind = name.removeprefix("torch ")
        if name in self.calls or kind in STORAGES:
            return Name(name)
        return _types.BY_NAME.get(kind) or refuse(f"the pickle names {name}, which is not allowed")

    def tensor(self, storage, offset, size, stride, grad, hooks, metadata=None):
        numbers = (offset, *size, *stride)
        if metadata or len(size) != len(stride) or any(type(n) is not int or n < 0 for n in numbers):
            refuse("a tensor's sizes, strides or offset are not what they may be")
        if 0 not in size and offset + sum((n - 1) * s for n, s in zip(size, stride)) >= storage.numel():
            refuse("a tensor is larger than its storage")
        return self.place(storage.as_strided(size, stride, offset if storage.numel() else 0)).requires_grad_(bool(grad))

    def run(self, data):
        stack, marks, memo = [], [], {}

        def since_mark():
            found = stack[marks[-1]:]
            del stack[marks.pop():]
            return found
        for opcode, arg, _ in pickletools.genops(data):
            op = opcode.name
            if op in PLAIN:
                stack.append(arg)
            elif op in CONSTANTS:
                stack.append(CONSTANTS[op])
            elif op in EMPTY:
                stack.append(self.made(EMPTY[op]()))
            elif op in ("BINPUT", "LONG_BINPUT"):
                memo[arg] = stack[-1]
            elif op in ("BINGET", "LONG_BINGET"):
                stack.append(memo[arg])
            elif op == "MARK":
                marks.append(len(stack))
            elif op == "TUPLE" or op in TUPLES:
                items = tuple(since_mark() if op == "TUPLE" else [stack.pop() for _ in range(TUPLES[op])][::-1])
                stack.append(self.made(items, items))
            elif op in ("APPEND", "APPENDS"):
                items = since_mark() if op == "APPENDS" else [stack.pop()]
                list.extend(self.filled(stack[-1], items), items)
            elif op in ("SETITEM", "SETITEMS"):
                items = since_mark() if op == "SETITEMS" else [stack.pop() for _ in range(2)][::-1]
                self.filled(stack[-1], items).update(zip(items[::2], items[1::2]))
            elif op == "GLOBAL":
                stack.append(self.named(arg))
            elif op == "BINPERSID":
                stack.append(self.tensor_of(*stack.pop()))
            elif op == "REDUCE":
                args = stack.pop()
                stack.append(self.calls[stack.pop()](*args))
            elif op == "BUILD":  # the _metadata of a state dict
                stack.pop()
            elif not (op == "STOP" and len(stack) == 1 or op == "PROTO" and arg == 2):
                refuse(f"the pickle has {op} {'' if arg is None else arg}, which PyTorch does not write there")
        return stack.pop()


def read(path, place):
    """The object in a file; its tensors go through place."""
    try:
        with zipfile.ZipFile(path) as z:
            return read_entries({i.filename: i for i in z.infolist()}, z, place, os.path.getsize(path))
    except (errors.FormatError, MemoryError):
        raise
    except Exception as e:
        refuse(f"{os.fspath(path)!r} is no file of torch.save: {type(e).__name__}: {e}")


def read_entries(entries, z, place, size):
    if any(i.compress_type or i.flag_bits & 1 for i in entries.values()):
        refuse("an entry of the archive is compressed or encrypted")
    if sum(i.file_size for i in entries.values()) > size:
        refuse("the entries are longer than the file")
    root, storages = next(iter(entries)).partition("/")[0], {}
    if int(z.read(f"{root}/version")) not in VERSIONS:
        refuse("the archive has an unknown version")
    big = f"{root}/byteorder" in entries and z.read(f"{root}/byteorder") == b"big"

    def tensor_of(what, kind, key, location, numel):
        dtype = _types.BY_NAME[STORAGES[kind.removeprefix("torch ")]]
        if key not in storages:
            data, width = z.read(f"{root}/data/{key}"), dtype.itemsize // (2 if dtype.is_complex else 1)
            if not 0 <= numel * dtype.itemsize <= len(data):
                refuse(f"storage {key} must have {numel} elements, its entry has {len(data)} bytes")
            if big:
                swapped = bytearray(data)
                for i in range(width):
                    swapped[i::width] = data[width - 1 - i::width]
                data = bytes(swapped)
            storages[key] = from_bytes(data, dtype, (numel,))
        return storages[key] if storages[key].dtype is dtype else refuse(f"storage {key} has two dtypes")
    return Machine(tensor_of, place).run(z.read(f"{root}/data.pkl"))
