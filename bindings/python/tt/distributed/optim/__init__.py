"""An optimizer whose state is sharded over the ranks (ZeRO stage 1), as in
torch.distributed.optim."""
from __future__ import annotations

from typing import Any, Callable

from ... import _ops as ops
from ..._tensor import Tensor
from ...autograd import no_grad
from ...optim.optimizer import Optimizer
from .. import all_gather_object, checked

__all__ = ["ZeroRedundancyOptimizer"]


def owners_of(params: list[Tensor], size: int) -> list[int]:
    """Assigns parameters to ranks, largest first, each to the rank with the fewest elements."""
    load, owners = [0] * size, [0] * len(params)
    for i in sorted(range(len(params)), key=lambda i: (-params[i].numel(), i)):
        owners[i] = load.index(min(load))
        load[owners[i]] += params[i].numel()
    return owners


class ZeroRedundancyOptimizer(Optimizer):
    """An optimizer whose state is sharded: each rank has the state of a part of the parameters.

    A step updates the parameters of this rank and receives the others from their ranks. The result
    is that of one optimizer of class optimizer_class. Gradients must be equal on all ranks, as they
    are after backward of DistributedDataParallel.

    consolidate_state_dict(to), which all ranks must call, collects the state on rank `to`, where
    state_dict() then returns it. load_state_dict accepts it on any number of ranks.
    """

    def __init__(
        self,
        params: Any,
        optimizer_class: Any,
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise NotImplementedError("ZeroRedundancyOptimizer: overlap_with_ddp must be False")
        self.process_group = checked(process_group, "ZeroRedundancyOptimizer")
        self._optimizer_class: Any = optimizer_class
        self._consolidated: dict[int, Any] | None = None
        super().__init__(params, defaults)
        self._owners = owners_of(self._params(), self.process_group.size())
        me = self.process_group.rank()
        self._mine = [i for i, owner in enumerate(self._owners) if owner == me]
        self.optim: Optimizer | None = None
        groups = [
            {**g, "params": [p for i, p in enumerate(g["params"], start) if i in self._mine]}
            for start, g in self._numbered()
        ]
        self._group_of_local = [i for i, g in enumerate(groups) if g["params"]]
        if self._group_of_local:
            used = [groups[i] for i in self._group_of_local]
            self.optim = optimizer_class(used, **defaults)
            self.state = self.optim.state
        self._fill_defaults()

    def _numbered(self) -> list[tuple[int, dict[str, Any]]]:
        """Returns (index of the first parameter, group) for all groups."""
        numbered, start = [], 0
        for group in self.param_groups:
            numbered.append((start, group))
            start += len(group["params"])
        return numbered

    def _fill_defaults(self) -> None:
        """Adds the default values of optimizer_class to the groups, so that all ranks have them."""
        probe = ops.zeros(1).requires_grad_()
        values = self._optimizer_class([probe], **self.defaults).param_groups[0]
        for group in self.param_groups:
            for key, value in values.items():
                group.setdefault(key, value)

    def _send_values(self) -> None:
        """Copies the values of the groups, which schedulers change, to this rank's optimizer."""
        if self.optim is None:
            return
        for own, i in zip(self.optim.param_groups, self._group_of_local):
            for key, value in self.param_groups[i].items():
                if key not in ("params", "param_names"):
                    own[key] = value

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates the parameters of this rank and receives the others."""
        self._consolidated = None
        loss = None if closure is None else closure()
        self._send_values()
        if self.optim is not None:
            self.optim.step()
        self._exchange()
        return loss

    def _exchange(self) -> None:
        """Broadcasts the parameters of each rank to the others, concatenated by dtype."""
        params, started = self._params(), []
        with no_grad():
            for rank in range(self.process_group.size()):
                for dtype in dict.fromkeys(p.dtype for p in params):
                    owned = [
                        p for p, r in zip(params, self._owners) if r == rank and p.dtype == dtype
                    ]
                    if owned:
                        flat = ops.cat([p.detach().flatten() for p in owned])
                        work = self.process_group.start(
                            "tt_group_broadcast", (flat,), rank, wait=False
                        )
                        started.append((rank, owned, flat, work))
            for rank, owned, flat, work in started:
                work.wait()  # type: ignore[union-attr]
                if rank == self.process_group.rank():
                    continue
                for p, part in zip(owned, flat.split([p.numel() for p in owned])):
                    p.copy_(part.view(p.shape))

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Collects the state of all ranks on rank `to`, whose state_dict() returns it."""
        own = {"state": {}} if self.optim is None else self.optim.state_dict()
        mine = {self._mine[i]: state for i, state in own["state"].items()}
        states: list[Any] = [None] * self.process_group.size()
        all_gather_object(states, mine, self.process_group)
        if self.process_group.rank() == to:
            self._consolidated = {i: s for part in states for i, s in part.items()}

    def state_dict(self) -> dict[str, Any]:
        """Returns the consolidated state. Raises RuntimeError before consolidate_state_dict."""
        if self._consolidated is None:
            raise RuntimeError(
                "ZeroRedundancyOptimizer: all ranks must call consolidate_state_dict(to) before "
                "state_dict() on rank `to`"
            )
        groups = []
        for start, group in self._numbered():
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = list(range(start, start + len(group["params"])))
            groups.append(packed)
        return {"state": dict(sorted(self._consolidated.items())), "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads a state_dict() of any number of ranks, or of optimizer_class itself."""
        saved = state_dict["param_groups"]
        sizes = [len(g["params"]) for g in self.param_groups]
        if [len(g["params"]) for g in saved] != sizes:
            raise ValueError("the loaded state dict has parameter groups of other sizes")
        keys = [key for group in saved for key in group["params"]]
        for own, given in zip(self.param_groups, saved):
            own.update((k, v) for k, v in given.items() if k not in ("params", "param_names"))
        if self.optim is None:
            return
        states = {i: state_dict["state"].get(keys[k]) for i, k in enumerate(self._mine)}
        groups, start = [], 0
        for own, i in zip(self.optim.param_groups, self._group_of_local):
            values = {k: v for k, v in saved[i].items() if k not in ("params", "param_names")}
            values["params"] = list(range(start, start + len(own["params"])))
            start += len(own["params"])
            groups.append(values)
        given = {i: s for i, s in states.items() if s is not None}
        self.optim.load_state_dict({"state": given, "param_groups": groups})
        self.state = self.optim.state
