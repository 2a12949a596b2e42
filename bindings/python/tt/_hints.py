"""Names of hints that not every Python's typing has, or whose import would cost time."""
from typing import Any, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from numpy import ndarray
    from typing_extensions import Self as Self

    Array = ndarray[Any, Any]
else:
    Array = Any
    Self = TypeVar("Self")
