"""DeviceMesh: the ranks of a job in an array, with a group for each line of it, as in
torch.distributed.device_mesh."""
from __future__ import annotations

from math import prod
from typing import Any, Sequence

from .. import distributed as dist
from .._create import as_tensor
from .._ops import arange
from .._tensor import Tensor
from ._group import ProcessGroup

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """Ranks in an array. All ranks of the default group must make it, also those outside of it.

    mesh: the ranks, as a tensor or nested lists. mesh_dim_names: a name for each dimension.
    mesh["tp"] is the line of this rank along a dimension.
    """

    def __init__(
        self,
        device_type: str,
        mesh: Any,
        *,
        mesh_dim_names: Sequence[str] | None = None,
        backend_override: Any = None,
        _groups: list[Any] | None = None,
    ) -> None:
        if not dist.is_initialized():
            dist.init_process_group()
        self.device_type = device_type
        self.mesh = as_tensor(mesh, device="cpu").long()
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        names = self.mesh_dim_names
        if names is not None and (len(names) != self.ndim or len(set(names)) != len(names)):
            raise RuntimeError(
                f"DeviceMesh: mesh_dim_names are {names}: must be {self.ndim} different names"
            )
        world = dist.checked(None, "DeviceMesh")
        ranks = self.mesh.flatten().tolist()
        if len(set(ranks)) != len(ranks) or any(not 0 <= r < world.size() for r in ranks):
            raise RuntimeError(
                f"DeviceMesh: the ranks are {ranks}: must be different and below {world.size()}"
            )
        self._coordinate: list[int] | None = None
        if world.rank() in ranks:
            self._coordinate = place_of(ranks.index(world.rank()), self.shape)
        self._groups = self._new_groups(world) if _groups is None else _groups
        self._root: DeviceMesh = self

    def _new_groups(self, world: ProcessGroup) -> list[Any]:
        """Returns the group of this rank along each dimension."""
        if self.ndim == 1 and self.mesh.tolist() == list(range(world.size())):
            return [world]
        return [group_along(world, self.mesh, [dim]) for dim in range(self.ndim)]

    # ---- sizes ----

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.mesh.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each dimension."""
        return tuple(self.mesh.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """Returns the number of ranks, of a dimension or of all."""
        return self.mesh.numel() if mesh_dim is None else self.mesh.size(mesh_dim)

    def __len__(self) -> int:
        return self.size()

    # ---- ranks ----

    def _dim(self, mesh_dim: int | str | None, what: str) -> int:
        """Returns the position of a dimension that is given by its name, too."""
        if mesh_dim is None:
            if self.ndim != 1:
                raise RuntimeError(f"{what}: a mesh of {self.ndim} dimensions needs mesh_dim")
            return 0
        if isinstance(mesh_dim, str):
            names = self.mesh_dim_names or ()
            if mesh_dim not in names:
                raise KeyError(f"{what}: {mesh_dim!r} is no dimension: there are {names}")
            return names.index(mesh_dim)
        return mesh_dim

    def get_rank(self) -> int:
        """Returns the rank of this process in the default group."""
        return dist.get_rank()

    def get_coordinate(self) -> list[int] | None:
        """Returns the place of this rank in the mesh; None outside of it."""
        return self._coordinate

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Returns the place of this rank along a dimension."""
        dim = self._dim(mesh_dim, "get_local_rank")
        if self._coordinate is None:
            raise RuntimeError("get_local_rank: this rank is not in the mesh")
        return self._coordinate[dim]

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """Returns the group of this rank's line along a dimension."""
        return self._groups[self._dim(mesh_dim, "get_group")]

    def get_all_groups(self) -> list[ProcessGroup]:
        """Returns the group of each dimension."""
        return list(self._groups)

    # ---- parts ----

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """Returns the part of the mesh with this rank that has only these dimensions."""
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        dims = [self._dim(name, "DeviceMesh") for name in names]
        if dims == list(range(self.ndim)):
            return self
        if self._coordinate is None:
            raise RuntimeError("DeviceMesh: this rank is not in the mesh")
        others = [d for d in range(self.ndim) if d not in dims]
        lines = self.mesh.permute(*others, *dims)
        part = lines[tuple(self._coordinate[d] for d in others)]
        groups = [self._groups[d] for d in dims]
        found = DeviceMesh(self.device_type, part, mesh_dim_names=names, _groups=groups)
        found._root = self._root
        return found

    def _flatten(self, mesh_dim_name: str | None = None) -> DeviceMesh:
        """Returns the ranks of this part in one dimension. All ranks must call it."""
        name = mesh_dim_name or "_".join(self.mesh_dim_names or ("flat",))
        if self.ndim == 1:
            group = self._groups[0]
        else:
            root, names = self._root, self.mesh_dim_names or ()
            dims = [root._dim(n, "_flatten") for n in names] or list(range(root.ndim))
            group = group_along(dist.checked(None, "_flatten"), root.mesh, dims)
        flat = self.mesh.flatten()
        return DeviceMesh(self.device_type, flat, mesh_dim_names=(name,), _groups=[group])

    @staticmethod
    def from_group(
        group: ProcessGroup | list[ProcessGroup],
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: Sequence[str] | None = None,
    ) -> DeviceMesh:
        """Returns a mesh over a group, or over one group for each dimension of mesh."""
        groups = list(group) if isinstance(group, (list, tuple)) else [group]
        if mesh is None:
            if len(groups) != 1:
                raise ValueError("DeviceMesh.from_group: several groups need mesh")
            mesh = dist.get_process_group_ranks(groups[0])
        found = DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names, _groups=groups)
        if found.ndim != len(groups):
            raise ValueError(
                f"DeviceMesh.from_group: mesh has {found.ndim} dimensions, there are "
                f"{len(groups)} groups"
            )
        return found

    def __enter__(self) -> DeviceMesh:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeviceMesh):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> Any:
        ranks = tuple(self.mesh.flatten().tolist())
        return self.device_type, self.shape, ranks, self.mesh_dim_names

    def __repr__(self) -> str:
        names = self.mesh_dim_names
        shape: Any = self.shape if names is None else dict(zip(names, self.shape))
        return f"DeviceMesh({shape}, {self.device_type!r}, {self.mesh.tolist()})"


def place_of(index: int, shape: tuple[int, ...]) -> list[int]:
    """Returns the place in an array of this shape of the element with this index, in row-major
    order."""
    place: list[int] = []
    for size in reversed(shape):
        index, i = divmod(index, size)
        place.insert(0, i)
    return place


def group_along(world: ProcessGroup, mesh: Tensor, dims: list[int]) -> Any:
    """Returns this rank's group of a mesh's ranks that differ only along dims. All ranks of world
    must call it."""
    others = [d for d in range(mesh.ndim) if d not in dims]
    lines = mesh.permute(*others, *dims).reshape(-1, prod(mesh.size(d) for d in dims))
    color, place = -1, 0
    for i, line in enumerate(lines.tolist()):
        if world.rank() in line:
            color, place, ranks = i, line.index(world.rank()), line
    handle = world.split(color, place)
    if handle is None:
        return dist.GroupMember.NON_GROUP_MEMBER
    return ProcessGroup(handle, world.backend, ranks)


def init_device_mesh(
    device_type: str,
    mesh_shape: Sequence[int],
    *,
    mesh_dim_names: Sequence[str] | None = None,
    backend_override: Any = None,
) -> DeviceMesh:
    """Returns the ranks of the default group, which is made if it does not exist, as an array of
    this shape. backend_override is ignored."""
    if not dist.is_initialized():
        dist.init_process_group()
    shape = tuple(mesh_shape)
    if prod(shape) > dist.get_world_size():
        raise RuntimeError(
            f"init_device_mesh: mesh_shape is {shape}: the default group has "
            f"{dist.get_world_size()} ranks"
        )
    mesh = arange(prod(shape), device="cpu").view(shape)
    return DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names)


def __dir__() -> list[str]:
    return __all__
