"""Names of torch._tensor_str: how tensors are printed."""
from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Iterator

from ._settings import print_options
from ._settings import set_printoptions as set_printoptions
from ._tensor import Tensor


class Options:
    """What set_printoptions has set, as attributes."""


PRINT_OPTS: Any = Options()
PRINT_OPTS.__dict__ = print_options  # the options themselves, not a copy of them


@contextmanager
def printoptions(**kwargs: Any) -> Iterator[None]:
    """Changes set_printoptions for a block."""
    before = dict(print_options)
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        set_printoptions(**before)


def _str(self: Tensor, *, tensor_contents: str | None = None) -> str:
    """Returns the text of a tensor."""
    return repr(self)


def _tensor_str(self: Tensor, indent: int) -> str:
    """Returns the values of a tensor as a text whose lines after the first are indented. The lines
    are shorter by the indent."""
    if not self.numel():
        return "[]"
    shift = indent - len("tensor(")
    narrow = {**print_options, "linewidth": max(print_options["linewidth"] - shift, 1)}
    with printoptions(**narrow):
        text = repr(self.detach().cpu())
    inside = text[text.index("(") + 1 : text.rindex("]") + 1] if "]" in text else text[7:-1]
    first, *lines = inside.splitlines()
    if shift < 0:
        lines = [line[-shift:] for line in lines]
    return "\n".join([first, *(" " * max(shift, 0) + line for line in lines)])


def get_printoptions() -> dict[str, Any]:
    """Returns what set_printoptions has set."""
    return dict(print_options)
