"""Tensors and nodes as text, as PyTorch prints them."""
import re
from ctypes import c_char

from ._lib import filled

WIDTH = 80
FACTS = re.compile(r",\s+(?=(?:device|size|dtype|grad_fn|requires_grad)=)")


def node_name(operator):
    """PyTorch's name of the node of an operator, or of a Function."""
    return operator + "Backward" if operator[:1].isupper() else "".join(part[:1].upper() + part[1:] for part in operator.split("_")) + "Backward0"


def __repr__(t):
    """libtt writes the values and the facts behind them; the facts are laid out anew, with the names and the line breaks that PyTorch has."""
    text, *facts = FACTS.split(filled(c_char, "tt_tensor_print", t, cap=4096).decode()[:-1])
    line = len(text) - text.rfind("\n") + 1
    for fact in facts:
        key, value = fact.split("=", 1)
        width = len(fact)
        if key == "dtype":
            fact, width = f"dtype=tt.{value}", width + len("torch.")
        elif key == "device":
            fact = f"device='{t.device}'"
        elif key == "grad_fn":
            fact = f"grad_fn=<{node_name(value[1:-1])}>"
            width = len(fact)
        if line + width + 2 > WIDTH:
            text, line = f"{text},\n{' ' * len('tensor(')}{fact}", len("tensor(") + width
        else:
            text, line = f"{text}, {fact}", line + width + 2
    return text + ")"
