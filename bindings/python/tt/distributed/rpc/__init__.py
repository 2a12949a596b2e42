"""Remote procedure calls between workers, with the names of torch.distributed.rpc."""
from __future__ import annotations

from ._calls import RpcFuture as RpcFuture
from ._calls import WorkerInfo as WorkerInfo
from ._calls import get_worker_info as get_worker_info
from ._calls import init_rpc as init_rpc
from ._calls import rpc_async as rpc_async
from ._calls import rpc_sync as rpc_sync
from ._calls import shutdown as shutdown
from ._rref import RRef as RRef
from ._rref import remote as remote
from .._groups import is_available as is_available
from . import api as api
from . import functions as functions

__all__ = ["RRef", "RpcFuture", "WorkerInfo", "api", "functions", "get_worker_info", "init_rpc"]
__all__ += ["is_available", "remote", "rpc_async", "rpc_sync", "shutdown"]
