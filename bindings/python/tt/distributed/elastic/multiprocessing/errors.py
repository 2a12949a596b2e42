"""record: writes the error of a process to the file that its launcher names."""
from __future__ import annotations

import json
import os
import time
import traceback
from functools import wraps
from typing import Any, Callable

__all__ = ["record"]


def record(fn: Callable[..., Any], error_handler: Any = None) -> Callable[..., Any]:
    """Returns fn, which on an exception also writes a JSON file, if TORCHELASTIC_ERROR_FILE has its
    name.

    error_handler: an object whose record_exception(error) is called instead.
    """

    @wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return fn(*args, **kwargs)
        except Exception as error:
            if error_handler is not None:
                error_handler.record_exception(error)
            else:
                write(error)
            raise

    return call


def write(error: Exception) -> None:
    """Writes an error in the form of torchrun's files."""
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if not path:
        return
    extra = {"py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))}
    message = {"message": f"{type(error).__name__}: {error}", "extraInfo": extra}
    with open(path, "w") as file:
        json.dump({"message": message}, file)
