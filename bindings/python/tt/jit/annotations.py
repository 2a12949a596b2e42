"""Hints for TorchScript's compiler, which are those of typing."""
from typing import Dict as Dict
from typing import List as List
from typing import Optional as Optional
from typing import Tuple as Tuple

__all__ = ["BroadcastingList1", "BroadcastingList2", "BroadcastingList3"]
__all__ += ["Dict", "List", "Optional", "Tuple"]
BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = List  # a list of n, or one number
