"""The checks of operator declarations; src/ops/decl/README.md defines every key."""
import ast

from codegen.model import dtypes


class DeclError(Exception):
    """An error in a declaration; the message names the operator and the key."""


# key -> the type of its value
KEYS = {
    "schema": str,
    "host": str,
    "overload_of": str,
    "internal": bool,
    "since": str,
    "doc": str,
    "shape": str,
    "dtypes": str,
    "args": dict,
    "samples": str,
    "positional": list,
    "no_opts": bool,
    "scalar": str,
    "symbol": str,
    "commutes": bool,
    "variants": list,
    "direct": list,
    "inline_capi": bool,
    "impl": str,
    "composite": str,
    "kernel": dict,
    "dtype": str,
    "view": bool,
    "no_kernel": bool,
    "kind": str,
    "alias": str,
    "grad": (str, dict),
    "forward_ad": (str, dict),
    "nondiff": list,
    "reads_self": list,
    "c": str,
    "flops": str,
    "autocast": (str, dict),
    "wide_unsigned": str,
}
KERNEL_KEYS = {
    "elementwise": str,
    "set": str,
    "functor": str,
    "operands": list,
    "params": list,
    "promote_params": bool,
    "factor": bool,
    "masks": int,
    "long": bool,
    "no_bool": str,
    "no_integers": bool,
    "vectors": bool,
    "bounds": bool,
    "row_major": bool,
    "write_shared": str,
    "check": str,
    "scalar_check": str,
}
WAYS = ("kernel", "composite", "impl")
AUTOCAST = ("lower", "fp32", "promote")
AUTOCAST_DEVICES = ("cpu", "cuda")
IMPLS = ("cpp", "composite")
VARIANTS = ("inplace", "into")
KINDS = ("reduce", "row", "product", "conv", "index", "copy", "random", "other")
ALIASES = ("none", "maybe")
WIDE_UNSIGNED = ("none", "moves", "bits", "order", "rank", "int64", "integer")
DTYPE_RULES = ("promote", "float", "bool", "same", "logical", "first", "modulus")
DTYPE_SETS = ("all", "arith", "real", "float", "real_float", "bitwise", "logical")
SYMBOLS = (
    *("+", "-", "*", "/", "**", "%", "@"),
    *("&", "|", "^", "~", "<<", ">>"),
    *("==", "!=", "<", "<=", ">", ">="),
)
TYPE_NAMES = {str: "text", bool: "true or false", list: "a list", dict: "a table", int: "a number"}
FACTS = ("shape", "dtype", "device", "ndim", "strides", "offset", "shapes")
FORMULA_NAMES = ("grads", "results", "needs", "tangents")
FORWARD_RULES = ("symmetric", "twice")
FORWARD_ROLES = ("addend", "factor", "other")


def check_types(where, table, types):
    """Checks that every key of the table is known and has a value of its type."""
    unknown = sorted(set(table) - set(types))
    if unknown:
        raise DeclError(f"{where}: unknown keys {unknown}")
    for key, value in table.items():
        wanted = types[key] if isinstance(types[key], tuple) else (types[key],)
        if type(value) not in wanted:
            words = " or ".join(TYPE_NAMES[t] for t in wanted)
            raise DeclError(f"{where}: {key} must be {words}, not {value!r}")


def check_enums(enums):
    """Checks enumerations: values must be 0, 1, …, since the C API compares a number with their
    count."""
    for name, values in enums.items():
        if list(values.values()) != list(range(len(values))):
            raise DeclError(f"{name}: its values must be 0, 1, 2 …")


def check_keys(name, raw):
    check_types(name, raw, KEYS)
    if "schema" not in raw:
        raise DeclError(f"{name}: no schema")


def check_op(op):
    """Checks one declaration, except its formulas."""
    check_text(op)
    check_way(op)
    check_names(op)
    check_variants(op)
    check_gradients(op)
    check_autocast(op)
    if op.get("wide_unsigned", "none") not in WIDE_UNSIGNED:
        known = ", ".join(WIDE_UNSIGNED)
        raise DeclError(f"{op.name}: wide_unsigned is none of {known}")
    symbol = op.get("symbol")
    if symbol and symbol not in SYMBOLS:
        raise DeclError(f"{op.name}: unknown symbol {symbol!r}, known are {' '.join(SYMBOLS)}")


def check_autocast(op):
    policy = op.get("autocast", {})
    table = policy if isinstance(policy, dict) else dict.fromkeys(AUTOCAST_DEVICES, policy)
    check_types(f"{op.name}: autocast", table, dict.fromkeys(AUTOCAST_DEVICES, str))
    for value in table.values():
        if value not in AUTOCAST:
            raise DeclError(
                f"{op.name}: autocast is {value!r}: must be one of {', '.join(AUTOCAST)}"
            )


def check_text(op):
    if op.internal:
        return
    if not op.get("doc"):
        raise DeclError(f"{op.name}: no doc")
    if not op.get("samples"):
        raise DeclError(f"{op.name}: no samples")
    for word in op.get("dtypes", "all").split(", "):
        if word not in dtypes.WORDS:
            known = ", ".join(dtypes.WORDS)
            raise DeclError(f"{op.name}: dtypes has the unknown word {word!r}, known are {known}")


def check_way(op):
    if sum(way in op.raw for way in WAYS) != 1:
        raise DeclError(f"{op.name}: needs exactly one of {', '.join(WAYS)}")
    if op.get("impl", "cpp") not in IMPLS:
        raise DeclError(f"{op.name}: impl is {op.get('impl')!r}, not one of {', '.join(IMPLS)}")
    for key, known in (("kind", KINDS), ("alias", ALIASES)):
        value = op.get(key, known[-1])
        if value not in known:
            raise DeclError(f"{op.name}: {key} is {value!r}, not one of {', '.join(known)}")
    if "kernel" not in op.raw:
        return
    check_types(f"{op.name}: kernel", op.kernel, KERNEL_KEYS)
    for key in ("elementwise", "set"):
        if key not in op.kernel:
            raise DeclError(f"{op.name}: kernel has no {key}")
    if op.kernel["set"] not in DTYPE_SETS:
        raise DeclError(f"{op.name}: set {op.kernel['set']!r} is none of {', '.join(DTYPE_SETS)}")
    if op.get("dtype") not in DTYPE_RULES:
        raise DeclError(f"{op.name}: dtype rule {op.get('dtype')!r} is unknown")


def check_names(op):
    """Checks keys whose values name arguments."""
    named = [("args", op.get("args", {})), ("positional", op.get("positional", ()))]
    named += [(key, op.get(key, ())) for key in ("nondiff", "reads_self")]
    named += [(key, op.kernel.get(key, ())) for key in ("operands", "params")]
    for key, names in named:
        for name in names:
            if not op.arg(name):
                raise DeclError(f"{op.name}: {key} names an argument {name!r} that does not exist")
    for name in op.get("positional", ()):
        if op.arg(name).default is None:
            raise DeclError(f"{op.name}: positional names {name!r}, which is required anyway")
    which = op.get("scalar")
    if which and (not op.arg(which) or op.arg(which).type != "Tensor"):
        raise DeclError(f"{op.name}: scalar names {which!r}, which is no Tensor argument")


def check_variants(op):
    unknown = sorted(set(op.variants) - set(VARIANTS))
    if unknown:
        raise DeclError(f"{op.name}: unknown variants {unknown}")
    missing = sorted(set(op.get("direct", [])) - set(op.variants))
    if missing:
        raise DeclError(f"{op.name}: direct names {missing}, which are no variants of it")
    if op.get("reads_self") and not (op.structural and "inplace" in op.variants):
        raise DeclError(f"{op.name}: reads_self is for composites with an in-place variant")
    if "inplace" in op.variants and not (op.args and op.args[0].type == "Tensor"):
        raise DeclError(f"{op.name}: in place, but its first argument is no Tensor")


def check_gradients(op):
    if "grad" not in op.raw:
        if not op.composite and op.get("impl") != "composite":
            raise DeclError(f'{op.name}: no gradient (say grad = "none" if it has none)')
        return
    if isinstance(op.grad, str):
        if op.grad != "none":
            raise DeclError(f'{op.name}: grad is a table of formulas or "none", not {op.grad!r}')
        return
    for key in op.grad:
        for name in key.split(","):
            arg = op.arg(name)
            if not arg or not arg.is_tensorish:
                raise DeclError(f"{op.name}: gradient for {name!r}, which is no tensor argument")
    first = op.args[0].name if op.args else None
    known = {name for key in op.grad for name in key.split(",")} | set(op.get("nondiff", ()))
    if op.grad and "inplace" in op.variants and first not in known:
        # in place on a view, the node of the base takes its first gradient for that of self
        raise DeclError(f"{op.name}: an in-place variant needs a gradient of {first!r}")


def check_table(ops):
    """Checks that concern several declarations."""
    for op in ops.values():
        base = op.get("overload_of")
        if base and base not in ops:
            raise DeclError(f"{op.name}: overload_of names {base!r}, which is no operator")
    symbols = ops_by_symbol(ops)
    for op in ops.values():
        other = symbols.get(op.symbol_key)
        if op.symbol_key and other is not op:
            raise DeclError(f"{op.name}: {other.name} has the symbol {op.symbol_key[0]!r} already")


def ops_by_symbol(ops):
    """(symbol, number of operands) -> operator."""
    found = {}
    for op in ops.values():
        if op.symbol_key:
            found.setdefault(op.symbol_key, op)
    return found


# ---- formulas ----


def check_formulas(op, ops, functions):
    """functions: names of src/autograd/formulas/formulas.h."""
    callable_names = {o.name for o in ops.values()} | {o.host for o in ops.values()} | functions
    formulas = list(op.grad.values()) if op.has_grad else []
    formulas += [op.composite] if op.composite else []
    forward = op.get("forward_ad")
    formulas += [forward] if isinstance(forward, str) and forward not in FORWARD_RULES else []
    for formula in formulas:
        try:
            tree = ast.parse(formula, mode="eval")
        except SyntaxError as error:
            raise DeclError(f"{op.name}: formula {formula!r}: {error.msg}") from None
        check_formula(op, tree, callable_names)


def check_formula(op, tree, callable_names):
    called = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and id(node) in called:
            if node.id not in callable_names:
                raise DeclError(
                    f"{op.name}: formula calls {node.id!r}, which is no declared operator "
                    "or formula function"
                )
        elif isinstance(node, ast.Name):
            if not op.arg(node.id) and node.id not in FORMULA_NAMES:
                raise DeclError(f"{op.name}: formula uses unknown name {node.id!r}")
        elif isinstance(node, ast.Attribute) and node.attr not in FACTS:
            raise DeclError(f"{op.name}: formula uses .{node.attr}, known are {', '.join(FACTS)}")
        elif isinstance(node, ast.Subscript):
            check_subscript(op, node)


def check_subscript(op, node):
    """Checks that grads[i] or results[i] exists."""
    name = getattr(node.value, "id", "")
    place = getattr(node.slice, "value", None)
    if type(place) is not int:
        raise DeclError(f"{op.name}: {ast.unparse(node)} in a formula: the place must be a number")
    count = max(
        1, len(op.outs)
    )  # an operator that only writes into its first argument has one, too
    if name in ("grads", "results") and place >= count:
        raise DeclError(f"{op.name}: formula uses {name}[{place}] of {count}")
