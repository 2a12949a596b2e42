"""Settings of PyTorch's compiler that programs set. None of them changes what tt does."""
from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Iterator

cache_size_limit = recompile_limit = 8
accumulated_cache_size_limit = accumulated_recompile_limit = 256
capture_dynamic_output_shape_ops = capture_scalar_outputs = suppress_errors = verbose = False
automatic_dynamic_shapes = optimize_ddp = True


@contextmanager
def patch(settings: dict[str, Any] | None = None, **named: Any) -> Iterator[None]:
    """Returns a context manager, or a decorator, inside which settings have other values."""
    values = {**(settings or {}), **named}
    own = globals()
    before = {name: own[name] for name in values if name in own}
    own.update(values)
    try:
        yield
    finally:
        for name in values:
            if name in before:
                own[name] = before[name]
            else:
                del own[name]
