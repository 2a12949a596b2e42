"""Reads the functions of C++ sources, as their formatting shows where they end."""
import re

FUNCTION = re.compile(
    r"^(?:template <[^\n]*>\s*)?(?:TT_COLD |static |inline )*[A-Za-z_][\w:<>,&* ]*?[ &*]"
    r"(?:impl::)?(\w+)\([^;{}]*\)(?: const)?(?: noexcept)? \{(?: ([^\n]*)\}$|\n(.*?)^\})",
    re.M | re.S,
)
CALLED = re.compile(r"\b(\w+)\(")


def sources(folder):
    """The hand-written sources in a folder, in order."""
    return [f for f in sorted(folder.rglob("*.cpp")) if f.parent.name != "gen"]


def functions(text):
    """Returns (name, body, position of the name, position of the definition) of each function."""
    for m in FUNCTION.finditer(text):
        yield m[1], m[2] or m[3] or "", m.start(1), m.start()
