"""FullyShardedDataParallel: each rank stores a part of the parameters, as in
torch.distributed.fsdp.

A unit is a module that FullyShardedDataParallel wraps. Its parameters are one flat tensor that is
sharded over the ranks. Forward gathers the shards of all ranks; the parameters are views of the
gathered tensor. Backward gathers them again and reduce-scatters the mean gradient to the shards.
"""
from __future__ import annotations

from contextlib import contextmanager, nullcontext
from enum import Enum
from typing import Any, Callable, Iterator

from ... import _ops as ops
from ..._tensor import Tensor
from ...autograd import Function, graph, is_grad_enabled, no_grad
from ...func import functional_call
from ...nn.module import Module
from ...nn.parameter import Parameter
from .. import ReduceOp, all_gather_into_tensor, all_reduce, checked, reduce_scatter_tensor
from ...errors import UnimplementedError
from ..checkpoint import Shard, entries_of, load, save
from . import api
from .api import StateDictType
from .api import *  # noqa: F403

__all__ = [*api.__all__, "FullyShardedDataParallel", "ShardingStrategy"]


class ShardingStrategy(Enum):
    """FULL_SHARD: the whole parameters exist only during forward and backward of the unit.
    SHARD_GRAD_OP: they exist from forward to the end of backward. For NO_SHARD use
    DistributedDataParallel."""

    FULL_SHARD = 1
    SHARD_GRAD_OP = 2


class Collect(Function):
    """Gathers the whole flat parameter. Its backward reduce-scatters the mean gradient."""

    @staticmethod
    def forward(ctx: Any, shard: Tensor, unit: FullyShardedDataParallel) -> Tensor:
        ctx.unit = unit
        return unit._collected()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        unit = ctx.unit
        unit._whole = None  # everything that used the parameters has run
        part = ops.empty(unit.flat_param.shape, dtype=grad.dtype, device=grad.device)
        reduce_scatter_tensor(part, grad.contiguous(), ReduceOp.AVG, unit.process_group)
        return part, None


class Part:
    """A view of a unit's whole flat parameter, which is gathered again when backward needs it."""

    def __init__(self, unit: FullyShardedDataParallel, view: Tensor) -> None:
        self.unit, self.dtype = unit, view.dtype
        self.place = tuple(view.shape), view.stride(), view.storage_offset()


class FullyShardedDataParallel(Module):
    """Wraps a module whose parameters are sharded over the ranks.

    Units may contain units. Each has one parameter, `flat_param`, so create the optimizer from
    parameters() after wrapping. All ranks start with the values of rank 0.

    auto_wrap_policy: a function of (module, recurse, nonwrapped_numel); submodules for which it
        returns True become units too.
    device_mesh: a mesh of one dimension, instead of process_group.
    The other arguments are accepted and change nothing; those that would are errors.
    """

    def __init__(
        self,
        module: Module,
        process_group: Any = None,
        sharding_strategy: ShardingStrategy | None = None,
        cpu_offload: Any = None,
        auto_wrap_policy: Callable[..., bool] | None = None,
        backward_prefetch: Any = None,
        mixed_precision: Any = None,
        ignored_modules: Any = None,
        param_init_fn: Any = None,
        device_id: Any = None,
        sync_module_states: bool = False,
        forward_prefetch: bool = False,
        limit_all_gathers: bool = True,
        use_orig_params: bool = False,
        ignored_states: Any = None,
        device_mesh: Any = None,
    ) -> None:
        for name, value in (
            ("cpu_offload", getattr(cpu_offload, "offload_params", cpu_offload)),
            ("mixed_precision", mixed_precision),
            ("ignored_modules", ignored_modules),
            ("param_init_fn", param_init_fn),
            ("ignored_states", ignored_states),
        ):
            if value:
                raise UnimplementedError(f"FullyShardedDataParallel: tt has no {name}")
        if device_mesh is not None:
            process_group = device_mesh.get_group()
        super().__init__()
        self.process_group = checked(process_group, "FullyShardedDataParallel")
        self.sharding_strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        if auto_wrap_policy is not None:
            self._wrap_inside(module, auto_wrap_policy)
        self.module = module
        self._whole: Tensor | None = None
        self._kind: Any = None  # a StateDictType
        self._kind_config: Any = None
        self._divide()

    def _wrap_inside(self, module: Module, policy: Callable[..., bool]) -> None:
        for name, child in list(module.named_children()):
            self._wrap_inside(child, policy)
            numel = sum(p.numel() for p in child.parameters())
            if numel and policy(module=child, recurse=False, nonwrapped_numel=numel):
                group, strategy = self.process_group, self.sharding_strategy
                setattr(module, name, FullyShardedDataParallel(child, group, strategy))

    def _divide(self) -> None:
        """Replaces the parameters of this unit by its shard of the flat parameter."""
        own = {
            name: p
            for name, p in self.module.named_parameters()
            if p.requires_grad and "flat_param" not in name.split(".")
        }
        if not own:
            raise ValueError("FullyShardedDataParallel: no parameter of module requires a gradient")
        if len({p.dtype for p in own.values()}) > 1:
            raise ValueError("FullyShardedDataParallel: the parameters of a unit have one dtype")
        self._shapes = {name: tuple(p.shape) for name, p in own.items()}
        size, rank = self.process_group.size(), self.process_group.rank()
        with no_grad():
            flat = ops.cat([p.detach().flatten() for p in own.values()])
            self._numel = flat.numel()
            length = -(-self._numel // size)
            flat = ops.cat(
                [flat, ops.zeros(length * size - self._numel, dtype=flat.dtype, device=flat.device)]
            )
            self.process_group.start("tt_group_broadcast", (flat,), 0, wait=True)
            for b in self.module.buffers():
                self.process_group.start("tt_group_broadcast", (b.detach(),), 0, wait=True)
            for name, p in own.items():  # one element, expanded to the shape
                p.requires_grad_(False)
                p.data = ops.zeros((), dtype=p.dtype, device=p.device).expand(p.shape)
        self.flat_param = Parameter(flat[rank * length : (rank + 1) * length].clone())

    # ---- the whole parameters ----

    def _collected(self) -> Tensor:
        """Returns the whole flat parameter, gathered from all ranks."""
        if self._whole is None:
            shard = self.flat_param.detach()
            whole = ops.empty(
                shard.numel() * self.process_group.size(), dtype=shard.dtype, device=shard.device
            )
            all_gather_into_tensor(whole, shard, self.process_group)
            self._whole = whole
        return self._whole

    def _views(self, whole: Tensor) -> dict[str, Tensor]:
        views, start = {}, 0
        for name, shape in self._shapes.items():
            n = 1
            for length in shape:
                n *= length
            views[name] = whole.narrow(0, start, n).view(shape)
            start += n
        return views

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        self._whole = None  # an optimizer may have changed the shards
        whole = Collect.apply(self.flat_param, self)
        drops = self.sharding_strategy is ShardingStrategy.FULL_SHARD or not is_grad_enabled()
        address = self._collected().untyped_storage().data_ptr()

        def pack(t: Tensor) -> Any:
            inside = t.numel() and t.untyped_storage().data_ptr() == address
            return Part(self, t) if inside else t

        def unpack(packed: Any) -> Tensor:
            if not isinstance(packed, Part):
                return packed
            return packed.unit._collected().as_strided(*packed.place)

        saving: Any = nullcontext()
        if is_grad_enabled():
            saving = graph.saved_tensors_hooks(pack, unpack)
        with saving:
            result = functional_call(self.module, self._views(whole), args, kwargs)
        if drops:
            self._whole = None
        return result

    # ---- for all units together ----

    def _units(self) -> list[tuple[str, FullyShardedDataParallel]]:
        return [(n, m) for n, m in self.named_modules() if isinstance(m, FullyShardedDataParallel)]

    def named_parameters(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the flat parameters of the units and the parameters that need no gradient."""
        hidden = {f"{n}.module.{p}".lstrip(".") for n, u in self._units() for p in u._shapes}
        for name, p in super().named_parameters(*args, **kwargs):
            if name not in hidden:
                yield name, p

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        for _, p in self.named_parameters(recurse=recurse):
            yield p

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """Scales the gradients of all units so that their norm over all ranks is at most max_norm.
        Returns the norm before clipping."""
        grads = [u.flat_param.grad for _, u in self._units() if u.flat_param.grad is not None]
        with no_grad():
            if norm_type == float("inf"):
                total = ops.stack([g.abs().max() for g in grads]).max()
                all_reduce(total, ReduceOp.MAX, self.process_group)
            else:
                total = ops.stack([(g.abs() ** norm_type).sum() for g in grads]).sum()
                all_reduce(total, ReduceOp.SUM, self.process_group)
                total = total ** (1 / norm_type)
            factor = (max_norm / (total + 1e-6)).clamp(max=1.0)
            for g in grads:
                g.mul_(factor)
        return total

    @contextmanager
    def summon_full_params(self) -> Iterator[dict[str, Tensor]]:
        """Yields copies of the whole parameters of all units, by their original names. All ranks
        must enter the block. Changes to them are lost."""
        with no_grad():
            yield self.full_state_dict(buffers=False)

    def full_state_dict(self, buffers: bool = True) -> dict[str, Tensor]:
        """Returns the whole parameters and the buffers by their original names. All ranks must call
        it."""
        state: dict[str, Tensor] = {}
        with no_grad():
            for path, unit in self._units():
                views = unit._views(unit._collected())
                unit._whole = None
                for name, t in views.items():
                    state[plain_name(f"{path}.module.{name}")] = t.clone()
            if buffers:
                for name, b in self.named_buffers():
                    state[plain_name(name)] = b.detach().clone()
        return state

    def load_full_state_dict(self, state: dict[str, Tensor]) -> None:
        """Loads a full_state_dict(), or a state_dict() of the unwrapped module."""
        with no_grad():
            for path, unit in self._units():
                parts = [
                    state[plain_name(f"{path}.module.{name}")].flatten() for name in unit._shapes
                ]
                length, rank = unit.flat_param.numel(), unit.process_group.rank()
                flat = ops.cat(parts)
                missing = length * unit.process_group.size() - flat.numel()
                flat = ops.cat([flat, ops.zeros(missing, dtype=flat.dtype, device=flat.device)])
                unit.flat_param.copy_(flat[rank * length : (rank + 1) * length])
            for name, b in self.named_buffers():
                b.copy_(state[plain_name(name)])

    def sharded_state_dict(self) -> dict[str, Any]:
        """Returns the shards of the units and the buffers, for tt.distributed.checkpoint. They
        share memory with the model."""
        state: dict[str, Any] = {}
        for path, unit in self._units():
            state[f"{path}.flat_param".lstrip(".")] = unit._shard(unit.flat_param.detach())
        state.update((plain_name(n), b.detach()) for n, b in self.named_buffers())
        return state

    def save_sharded(self, checkpoint_id: Any, optimizer: Any = None) -> None:
        """Saves the model and optionally an optimizer of it. Each rank writes its shards."""
        state = self.sharded_state_dict()
        if optimizer is not None:
            saved = optimizer.state_dict()
            state["optimizer.param_groups"] = saved["param_groups"]
            for i, unit in enumerate(self._units_of(optimizer)):
                for key, value in saved["state"].get(i, {}).items():
                    state[f"optimizer.{i}.{key}"] = unit._state_part(value)
        save(state, checkpoint_id, self.process_group)

    def load_sharded(self, checkpoint_id: Any, optimizer: Any = None) -> None:
        """Loads a checkpoint of save_sharded, on any number of ranks."""
        state = self.sharded_state_dict()
        load(state, checkpoint_id, self.process_group)
        if optimizer is None:
            return
        names = [n for n in entries_of(checkpoint_id)[0] if n.startswith("optimizer.")]
        states: dict[int, dict[str, Any]] = {}
        for i, unit in enumerate(self._units_of(optimizer)):
            wanted = [n for n in names if n.startswith(f"optimizer.{i}.")]
            values: dict[str, Any] = {n: unit._state_room(n, checkpoint_id) for n in wanted}
            load(values, checkpoint_id, self.process_group)
            states[i] = {
                n.split(".", 2)[2]: v.tensor if isinstance(v, Shard) else v
                for n, v in values.items()
            }
        groups: dict[str, Any] = {"optimizer.param_groups": None}
        load(groups, checkpoint_id, self.process_group)
        optimizer.load_state_dict(
            {"state": states, "param_groups": groups["optimizer.param_groups"]}
        )

    # ---- PyTorch's names of these ----

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> list[FullyShardedDataParallel]:
        """Returns the units in a module; root_only: only those that are in no other."""
        if isinstance(module, FullyShardedDataParallel) and root_only:
            return [module]
        if root_only:
            parts = [FullyShardedDataParallel.fsdp_modules(m, True) for m in module.children()]
            return [unit for units in parts for unit in units]
        return [m for m in module.modules() if isinstance(m, FullyShardedDataParallel)]

    @staticmethod
    def set_state_dict_type(
        module: Module,
        state_dict_type: StateDictType,
        state_dict_config: Any = None,
        optim_state_dict_config: Any = None,
    ) -> None:
        """Sets what state_dict() of the outer units returns and load_state_dict() takes:
        full_state_dict(), or sharded_state_dict()."""
        for unit in FullyShardedDataParallel.fsdp_modules(module, True):
            unit._kind, unit._kind_config = state_dict_type, state_dict_config

    @staticmethod
    @contextmanager
    def state_dict_type(
        module: Module,
        state_dict_type: StateDictType,
        state_dict_config: Any = None,
        optim_state_dict_config: Any = None,
    ) -> Iterator[None]:
        """Calls set_state_dict_type for a block."""
        units = FullyShardedDataParallel.fsdp_modules(module, True)
        before = [(unit._kind, unit._kind_config) for unit in units]
        FullyShardedDataParallel.set_state_dict_type(module, state_dict_type, state_dict_config)
        try:
            yield
        finally:
            for unit, (kind, config) in zip(units, before):
                unit._kind, unit._kind_config = kind, config

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Returns what set_state_dict_type chose; at first the tensors of this rank by name."""
        if args or kwargs or self._kind in (None, api.StateDictType.LOCAL_STATE_DICT):
            return super().state_dict(*args, **kwargs)
        if self._kind is api.StateDictType.SHARDED_STATE_DICT:
            return self.sharded_state_dict()
        state = self.full_state_dict()
        hidden = getattr(self._kind_config, "rank0_only", False) and self.process_group.rank()
        return {} if hidden else state

    def load_state_dict(self, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
        """Loads what state_dict() returns. Tensors of sharded_state_dict() are those of the model,
        so that loading a checkpoint into it is enough."""
        if self._kind is api.StateDictType.FULL_STATE_DICT:
            return self.load_full_state_dict(state_dict)
        if self._kind is api.StateDictType.SHARDED_STATE_DICT:
            return None
        return super().load_state_dict(state_dict, *args, **kwargs)

    @staticmethod
    def optim_state_dict(
        model: FullyShardedDataParallel,
        optim: Any,
        optim_state_dict: dict[str, Any] | None = None,
        group: Any = None,
    ) -> dict[str, Any]:
        """Returns the whole state of an optimizer by the original names of the parameters. All
        ranks must call it."""
        saved = optim.state_dict() if optim_state_dict is None else optim_state_dict
        units, names = model._units_of(optim), {id(u): path for path, u in model._units()}
        state: dict[str, dict[str, Any]] = {}
        own = []
        with no_grad():
            for i, unit in enumerate(units):
                path = names[id(unit)]
                own.append([plain_name(f"{path}.module.{name}") for name in unit._shapes])
                for key, value in saved["state"].get(i, {}).items():
                    whole = unit._gathered(value)
                    for plain, name in zip(own[-1], unit._shapes):
                        part = whole if whole is value else unit._views(whole)[name].clone()
                        state.setdefault(plain, {})[key] = part
        groups = [
            {**g, "params": [name for i in g["params"] for name in own[i]]}
            for g in saved["param_groups"]
        ]
        return {"state": state, "param_groups": groups}

    @staticmethod
    def optim_state_dict_to_load(
        model: FullyShardedDataParallel,
        optim: Any,
        optim_state_dict: dict[str, Any],
        is_named_optimizer: bool = False,
        load_directly: bool = False,
        group: Any = None,
    ) -> dict[str, Any]:
        """Returns what optim.load_state_dict takes for the result of optim_state_dict."""
        units, names = model._units_of(optim), {id(u): path for path, u in model._units()}
        state: dict[int, dict[str, Any]] = {}
        with no_grad():
            for i, unit in enumerate(units):
                path = names[id(unit)]
                parts = [
                    optim_state_dict["state"].get(plain_name(f"{path}.module.{name}"), {})
                    for name in unit._shapes
                ]
                for key in parts[0]:
                    values = [part[key] for part in parts]
                    state.setdefault(i, {})[key] = unit._own_part(values)
        groups = [
            {**new, "params": old["params"]}
            for new, old in zip(
                optim_state_dict["param_groups"], optim.state_dict()["param_groups"]
            )
        ]
        result = {"state": state, "param_groups": groups}
        if load_directly:
            optim.load_state_dict(result)
        return result

    def _gathered(self, value: Any) -> Any:
        """Returns state of the flat parameter from all ranks; what has another shape unchanged."""
        if not (isinstance(value, Tensor) and value.shape == self.flat_param.shape):
            return value
        size = value.numel() * self.process_group.size()
        whole = ops.empty(size, dtype=value.dtype, device=value.device)
        all_gather_into_tensor(whole, value.contiguous(), self.process_group)
        return whole

    def _own_part(self, values: list[Any]) -> Any:
        """Returns this rank's part of state of all parameters, of which a number is one."""
        shapes = list(self._shapes.values())
        if not all(isinstance(v, Tensor) and v.shape == s for v, s in zip(values, shapes)):
            return values[0]
        flat = ops.cat([v.flatten() for v in values])
        length, rank = self.flat_param.numel(), self.process_group.rank()
        missing = length * self.process_group.size() - flat.numel()
        flat = ops.cat([flat, ops.zeros(missing, dtype=flat.dtype, device=flat.device)])
        return flat[rank * length : (rank + 1) * length].clone()

    def _units_of(self, optimizer: Any) -> list[FullyShardedDataParallel]:
        """Returns the units of an optimizer's parameters, in the order of the optimizer."""
        of = {id(u.flat_param): u for _, u in self._units()}
        params = [p for g in optimizer.param_groups for p in g["params"]]
        if any(id(p) not in of for p in params):
            raise ValueError("FullyShardedDataParallel: the optimizer has other parameters")
        return [of[id(p)] for p in params]

    def _state_part(self, value: Any) -> Any:
        """Returns optimizer state, as a Shard if it has the shape of the parameter."""
        is_part = isinstance(value, Tensor) and value.shape == self.flat_param.shape
        return self._shard(value) if is_part else value

    def _state_room(self, name: str, checkpoint_id: Any) -> Any:
        """Returns a Shard or tensor to load a saved state into; None for a number."""
        entry = entries_of(checkpoint_id)[0][name]
        if "total" in entry:
            return self._shard(ops.zeros_like(self.flat_param.detach()))
        return ops.zeros(entry["shape"]) if "shape" in entry else None

    def _shard(self, part: Tensor) -> Shard:
        return Shard(part, self.process_group.rank() * self.flat_param.numel(), self._numel)


def plain_name(path: str) -> str:
    """Returns a parameter's name without the names of the wrappers."""
    return ".".join(word for word in path.split(".") if word and word != "module")
