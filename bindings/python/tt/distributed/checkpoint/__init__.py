"""Checkpoints that all ranks write together and that any number of ranks can load.

A checkpoint is a directory with a safetensors file per rank and metadata.json, which is written
last. A directory without metadata.json is an incomplete save, not a checkpoint.
"""
from __future__ import annotations

import json
import os
from typing import Any, Iterable, Iterator

from ..._tensor import Tensor
from ...autograd import no_grad
from ...errors import InvalidArgumentError
from ...safetensors import safe_open, save_file
from .. import all_gather_object, barrier, checked, group

__all__ = [
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "FileSystemReader",
    "FileSystemWriter",
    "Shard",
    "load",
    "load_state_dict",
    "save",
    "save_state_dict",
]
VERSION = 1


class FileSystemReader:
    """Names the directory of a checkpoint to load."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path


class FileSystemWriter:
    """Names the directory of a checkpoint to save. The other arguments of PyTorch's change
    nothing."""

    def __init__(self, path: str | os.PathLike[str], *args: Any, **kwargs: Any) -> None:
        self.path = path


class DefaultSavePlanner:
    """Saves everything. Arguments change nothing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass


class DefaultLoadPlanner:
    """allow_partial_load: names that the checkpoint lacks keep their values."""

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        allow_partial_load: bool = False,
    ) -> None:
        self.allow_partial_load = allow_partial_load


def directory(what: str, checkpoint_id: Any, storage: Any) -> str:
    """Returns the directory of a checkpoint, which one of the two arguments names."""
    if checkpoint_id is None:
        checkpoint_id = getattr(storage, "path", None)
    if checkpoint_id is None:
        raise InvalidArgumentError(f"checkpoint.{what}: checkpoint_id or a storage must be given")
    return os.fspath(checkpoint_id)


class Shard:
    """Elements [start, start + tensor.numel()) of a flat tensor of `total` elements. Elements with
    an index of `total` or more are padding, which is not saved."""

    def __init__(self, tensor: Tensor, start: int, total: int) -> None:
        self.tensor, self.start, self.total = tensor, start, total

    def used(self) -> int:
        """Returns the number of elements that are not padding."""
        return max(0, min(self.tensor.numel(), self.total - self.start))


def items_of(value: Any) -> Iterable[tuple[Any, Any]]:
    """Returns the keys and values of a dict or list; nothing for another value."""
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def holds_tensors(value: Any) -> bool:
    return isinstance(value, (Tensor, Shard)) or any(holds_tensors(x) for _, x in items_of(value))


def entries_in(state: Any, prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yields (name, container, key) for each value. The name is made of the keys, with dots in
    between. Dicts and lists without tensors are one value."""
    for key, value in items_of(state):
        if isinstance(value, (dict, list)) and holds_tensors(value):
            yield from entries_in(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", state, key


def ranks_of(process_group: Any) -> tuple[int, int]:
    """Returns the rank of this process and the number of ranks; 0 and 1 without a group."""
    if process_group is None and group.WORLD is None:
        return 0, 1
    g = checked(process_group, "checkpoint")
    return g.rank(), g.size()


def save(
    state_dict: dict[str, Any],
    checkpoint_id: str | os.PathLike[str] | None = None,
    process_group: Any = None,
    *,
    storage_writer: FileSystemWriter | None = None,
    planner: DefaultSavePlanner | None = None,
    **options: Any,
) -> None:
    """Writes a checkpoint. All ranks must call it with the same names.

    state_dict: dicts may be nested, with lists in them. Each rank writes its Shards; rank 0 writes
        the tensors and the other values, which must be the same on all ranks and fit JSON (where
        tuples in lists and dicts become lists).
    checkpoint_id: the directory, which all ranks must have access to; None: that of
        storage_writer. Other options of PyTorch's change nothing.
    """
    path = directory("save", checkpoint_id, storage_writer)
    rank, size = ranks_of(process_group)
    tensors, entries = written_by(rank, state_dict)
    os.makedirs(path, exist_ok=True)
    metadata = os.path.join(path, "metadata.json")
    if rank == 0 and os.path.exists(metadata):
        os.remove(metadata)
    if size > 1:
        barrier(process_group)
    save_file(tensors, os.path.join(path, f"{rank}.safetensors"))
    parts: list[Any] = [entries]
    if size > 1:
        parts = [None] * size
        all_gather_object(parts, entries, process_group)
    if rank == 0:
        text = json.dumps({"version": VERSION, "ranks": parts})
        with open(metadata + ".new", "w", encoding="utf-8") as f:
            f.write(text)
            f.flush()
            os.fsync(f.fileno())
        os.replace(metadata + ".new", metadata)
    if size > 1:
        barrier(process_group)


def written_by(
    rank: int, state_dict: dict[str, Any]
) -> tuple[dict[str, Tensor], dict[str, dict[str, Any]]]:
    """Returns the tensors that a rank writes, and the metadata of all values. Raises on every rank
    for a value that fits neither, before one of them waits for another."""
    tensors: dict[str, Tensor] = {}
    entries: dict[str, dict[str, Any]] = {}
    for name, container, key in entries_in(state_dict):
        value = container[key]
        if name in entries:
            raise InvalidArgumentError(f"checkpoint.save: two values have the name {name}")
        if isinstance(value, Shard):
            tensors[name] = value.tensor.detach().flatten()[: value.used()].contiguous()
            entries[name] = {"total": value.total, "start": value.start, "n": value.used()}
        elif isinstance(value, Tensor):
            if rank == 0:
                tensors[name] = value.detach().contiguous()
            entries[name] = {"shape": list(value.shape)}
        else:
            entries[name] = {"value": value}
            try:
                json.dumps(value)
            except (TypeError, ValueError) as e:
                raise InvalidArgumentError(f"checkpoint.save: {name} does not fit JSON: {e}") from e
    return tensors, entries


def load(
    state_dict: dict[str, Any],
    checkpoint_id: str | os.PathLike[str] | None = None,
    process_group: Any = None,
    *,
    storage_reader: FileSystemReader | None = None,
    planner: DefaultLoadPlanner | None = None,
    **options: Any,
) -> None:
    """Copies the values of a checkpoint into the tensors and Shards of state_dict, and replaces its
    other values. The number of ranks may differ from that of the save.

    checkpoint_id: the directory; None: that of storage_reader.
    """
    path = directory("load", checkpoint_id, storage_reader)
    ranks = entries_of(path)
    partial = getattr(planner, "allow_partial_load", False)
    files: dict[int, Any] = {}

    def tensor_of(rank: int, name: str) -> Tensor:
        if rank not in files:
            files[rank] = safe_open(os.path.join(path, f"{rank}.safetensors"))
        return files[rank].get_tensor(name)

    try:
        with no_grad():
            for name, container, key in list(entries_in(state_dict)):
                value = container[key]
                if name not in ranks[0]:
                    if partial:
                        continue
                    raise InvalidArgumentError(f"checkpoint.load: {path} has no {name}")
                entry = ranks[0][name]
                if isinstance(value, Shard):
                    load_shard(name, value, [r.get(name) or {} for r in ranks], tensor_of)
                elif isinstance(value, Tensor):
                    check_shape(name, value, entry)
                    value.copy_(tensor_of(0, name))
                else:
                    saved = entry.get("value")
                    container[key] = tuple(saved) if isinstance(value, tuple) else saved
    finally:
        files.clear()


def save_state_dict(
    state_dict: dict[str, Any],
    storage_writer: FileSystemWriter,
    process_group: Any = None,
    **_: Any,
) -> None:
    """Calls save, whose former name this is."""
    save(state_dict, None, process_group, storage_writer=storage_writer)


def load_state_dict(
    state_dict: dict[str, Any],
    storage_reader: FileSystemReader,
    process_group: Any = None,
    **_: Any,
) -> None:
    """Calls load, whose former name this is."""
    load(state_dict, None, process_group, storage_reader=storage_reader)


def entries_of(checkpoint_id: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Returns the entries that each rank saved, as dicts from names to metadata."""
    path = os.fspath(checkpoint_id)
    try:
        with open(os.path.join(path, "metadata.json"), encoding="utf-8") as f:
            found = json.load(f)
            version, ranks = found["version"], found["ranks"]
        if not ranks or not all(isinstance(entries, dict) for entries in ranks):
            raise ValueError("metadata.json has no list of entries")
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise InvalidArgumentError(f"checkpoint.load: {path} is no whole checkpoint: {e}") from e
    if version != VERSION:
        raise InvalidArgumentError(f"checkpoint.load: {path} has version {version}, not {VERSION}")
    return ranks


def check_shape(name: str, value: Tensor, entry: dict[str, Any]) -> None:
    if entry.get("shape") != list(value.shape):
        raise InvalidArgumentError(
            f"checkpoint.load: {name} has shape {list(value.shape)}, but the checkpoint has "
            f"{entry.get('shape')}"
        )


def load_shard(name: str, shard: Shard, parts: list[dict[str, Any]], tensor_of: Any) -> None:
    """Fills a shard from the saved parts that overlap it."""
    if parts[0].get("total") != shard.total:
        raise InvalidArgumentError(
            f"checkpoint.load: {name} has {shard.total} elements, {parts[0].get('total')} in the "
            "checkpoint"
        )
    to, end = shard.tensor.detach().flatten(), shard.start + shard.used()
    missing = shard.used()
    for rank, part in enumerate(parts):
        start, n = part.get("start", 0), part.get("n", 0)
        first, last = max(shard.start, start), min(end, start + n)
        missing -= max(last - first, 0)
    if missing:
        raise InvalidArgumentError(f"checkpoint.load: {name} lacks {missing} elements of a rank")
    for rank, part in enumerate(parts):
        start, n = part.get("start", 0), part.get("n", 0)
        first, last = max(shard.start, start), min(end, start + n)
        if first < last:
            source = tensor_of(rank, name)[first - start : last - start]
            to[first - shard.start : last - shard.start].copy_(source)
