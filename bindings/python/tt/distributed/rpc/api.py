"""The names of torch.distributed.rpc.api that packages import."""
from __future__ import annotations

from functools import wraps
from typing import Any, Callable

from . import _calls
from ._calls import RpcFuture as RpcFuture
from ._calls import WorkerInfo as WorkerInfo
from ._calls import get_worker_info as get_worker_info
from ._calls import rpc_async as rpc_async
from ._calls import rpc_sync as rpc_sync
from ._calls import shutdown as shutdown
from ._rref import RRef as RRef
from ._rref import remote as remote

DEFAULT_SHUTDOWN_TIMEOUT = 0.0
UNSET_RPC_TIMEOUT = -1.0  # the timeout of init_rpc


def _is_current_rpc_agent_set() -> bool:
    """Returns whether init_rpc has connected this worker."""
    return _calls.agent is not None


def _require_initialized(func: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a function raise RuntimeError before init_rpc."""

    @wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        _calls.current()
        return func(*args, **kwargs)

    return call
