"""What one binding does differently: bindings/<language>/overrides.toml, a table of keys per
operator.

Names, places and manners that follow from no declaration. The head of each file says what its keys
mean; an unknown key, one of a wrong type, and an operator that applications cannot name are errors.
"""
import tomllib

from codegen.model.checks import DeclError, check_types

KEYS = {  # language -> key -> type of its value
    "python": {
        "in": list,
        "aliases": list,
        "also_by_own_name": bool,
        "wrapped_by": str,
        "wrapped_in": list,
        "order": list,
        "names": dict,
        "python_names": dict,
        "results_on_request": dict,
        "keyword_only": list,
        "also_positional": list,
        "number_allowed": list,
        "number_beside_tensor": list,
        "number_must_fit": bool,
        "string_values": dict,
        "one_argument_call": str,
        "columns_flag": str,
        "bool_name": dict,
        "varargs": bool,
        "first_optional": str,
        "deprecated_factors": list,
        "takes_out": bool,
        "takes_requires_grad": bool,
        "takes_memory_format": bool,
        "ignored": list,
        "legacy_reduction": bool,
        "byte_mask": str,
        "sparse_operands": bool,
        "exact_out": (bool, str),
        "floats": str,
        "empty_dims_keep": bool,
        "inplace_view": bool,
        "as_method": bool,
        "new_method": bool,
        "returns_self": bool,
        "operator": str,
        "more_operators": dict,
    },
    "julia": {"left_out": str, "dotted": bool},
    "rust": {"name": str, "number_first": str},
}
# keys of Python whose values name arguments of the operator
ARGUMENTS = (
    "order",
    "names",
    "python_names",
    "keyword_only",
    "also_positional",
    "number_allowed",
    "number_beside_tensor",
    "string_values",
    "bool_name",
)


def check(language, op, table):
    where = f"{language} overrides of {op.name}"
    check_types(where, table, KEYS[language])
    for key in ARGUMENTS if language == "python" else ():
        for name in table.get(key, ()):
            if not op.arg(name):
                raise DeclError(f"{where}: {key} names an argument {name!r} that does not exist")


def read(language, text, ops):
    """Operator -> its table. "classes" is the generator's of classes."""
    tables = tomllib.loads(text)
    tables.pop("classes", None)
    for name, table in tables.items():
        if name not in ops:
            raise DeclError(f"{language} overrides: no operator is called {name!r}")
        if ops[name].internal:
            raise DeclError(f"{language} overrides: {name} is internal: applications never see it")
        check(language, ops[name], table)
    return tables


def load(root, ops):
    """Gives each operator its tables; the form for numbers of an operator has those of the
    operator."""
    for language in KEYS:
        path = root / "bindings" / language / "overrides.toml"
        tables = read(language, path.read_text(), ops)
        for op in ops.values():
            base = op.name if op.get("overload_of") else op.scalar_of or op.name
            op.overrides[language] = tables.get(op.name) or tables.get(base, {})
