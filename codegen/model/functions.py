"""What a binding does in its own way with functions of tt.h: bindings/<language>/functions.toml.
The head of each file says what its keys mean; unknown keys and unknown functions are errors."""
import fnmatch
import tomllib

from codegen.model.checks import DeclError, check_types

KEYS = {  # language -> key -> type of its value
    "python": {
        "name": str,
        "doc": str,
        "property": bool,
        "aliases": list,
        "parameters": dict,
        "forms": dict,
        "extra": dict,
        "hidden": list,
    },
    "rust": {"name": str, "unsafe": str, "local": bool, "also": str, "then": str},
}


class Functions:
    """The tables of a language, by C name."""

    def __init__(self, language, text, api):
        table = tomllib.loads(text)
        known = {fn.name: fn for fn in api.functions if fn.header == "tt.h"}
        self.patterns = table.pop("by_hand")
        self.tables = table
        for pattern in self.patterns:
            if not fnmatch.filter(known, pattern):
                raise DeclError(
                    f"{language} functions: by_hand has {pattern}, which matches nothing"
                )
        for name, keys in table.items():
            if name not in known:
                raise DeclError(f"{language} functions: tt.h has no {name}")
            check_types(f"{language} functions: {name}", keys, KEYS[language])
            params = {p.name for p in known[name].params}
            for key in ("parameters",):
                for param in set(keys.get(key, ())) - params:
                    raise DeclError(f"{language} functions: {name} has no parameter {param}")

    def by_hand(self, name):
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in self.patterns)

    def get(self, name, key, default=None):
        return self.tables.get(name, {}).get(key, default)


def load(root, language, api):
    return Functions(language, (root / "bindings" / language / "functions.toml").read_text(), api)
