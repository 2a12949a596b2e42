"""Rust's operators on tensors: tt/src/gen/operators.rs, the traits of std::ops from the symbols of
the declarations. A number stands on the right where the operator has a form for numbers, on the
left where it commutes, an operator with exchanged operands is declared (rsub), or
bindings/rust/overrides.toml has number_first."""
from codegen.rust.common import HEAD

# (symbol, operands) -> trait; its method is the name in lower case
TRAITS = {
    ("+", 2): "Add",
    ("-", 2): "Sub",
    ("*", 2): "Mul",
    ("/", 2): "Div",
    ("%", 2): "Rem",
    ("&", 2): "BitAnd",
    ("|", 2): "BitOr",
    ("^", 2): "BitXor",
    ("-", 1): "Neg",
    ("~", 1): "Not",
}
FLIP = """fn flip(
    x: &Tensor,
    n: impl Into<Scalar>,
    f: impl FnOnce(&Tensor, Scalar) -> Result<Tensor>,
) -> Result<Tensor> {
    f(x, n.into())
}
"""


def borrowed(receiver, name):
    return name if receiver.startswith("&") else f"&{name}"


def impl(trait, receiver, method, other, call):
    param = f", other: {other}" if other else ""
    return [
        f"impl ops::{trait} for {receiver} {{",
        "    type Output = Tensor;",
        "    #[inline]",
        "    #[track_caller]",
        f"    fn {method}(self{param}) -> Tensor {{",
        f"        match {call} {{",
        "            Ok(result) => result,",
        "            Err(e) => refuse(e),",
        "        }",
        "    }",
        "}",
    ]


def impl_assign(trait, other, call):
    method = trait.lower() + "_assign"
    return [
        "/// The result takes the place of `self`; what shares its memory keeps its values.",
        f"impl ops::{trait}Assign<{other}> for Tensor {{",
        "    #[inline]",
        "    #[track_caller]",
        f"    fn {method}(&mut self, other: {other}) {{",
        f"        *self = match {call} {{",
        "            Ok(result) => result,",
        "            Err(e) => refuse(e),",
        "        };",
        "    }",
        "}",
    ]


def number_first(op, ops):
    """The expression of `n op x`, None if there is none."""
    given = op.overrides["rust"].get("number_first")
    if given:
        return given
    exchanged = ops.get(f"r{op.name}_scalar")
    if exchanged:
        return f"x.{exchanged.rust_name}(n)"
    if op.get("commutes") and op.kernel.get("set") != "bitwise":
        return f"x.{ops[f'{op.name}_scalar'].rust_name}(n)"
    return None


def unary(op, trait):
    lines = []
    for receiver in ("Tensor", "&Tensor"):
        call = f"Tensor::{op.rust_name}({borrowed(receiver, 'self')})"
        lines += impl(trait, receiver, trait.lower(), None, call)
    return lines


def binary(op, trait, ops):
    lines = []
    method = trait.lower()
    flipped = number_first(op, ops)
    numbers = ("f64", "i64") if flipped else ("i64",)  # one of each kind: literals need no type
    for left in ("Tensor", "&Tensor"):
        for right in ("Tensor", "&Tensor"):
            operands = f"{borrowed(left, 'self')}, {borrowed(right, 'other')}"
            call = f"Tensor::{op.rust_name}({operands})"
            lines += impl(f"{trait}<{right}>", left, method, right, call)
        for number in numbers:
            call = f"self.{ops[f'{op.name}_scalar'].rust_name}(other)"
            lines += impl(f"{trait}<{number}>", left, method, number, call)
            if flipped:
                call = f"flip({borrowed(left, 'other')}, self, |x, n| {flipped})"
                lines += impl(f"{trait}<{left}>", number, method, left, call)
    for right in ("Tensor", "&Tensor"):
        call = f"Tensor::{op.rust_name}(self, {borrowed(right, 'other')})"
        lines += impl_assign(trait, right, call)
    for number in numbers:
        call = f"self.{ops[f'{op.name}_scalar'].rust_name}(other)"
        lines += impl_assign(trait, number, call)
    return lines


def generate(ops):
    """Behind rust/ops.py, which names the operators in Rust."""
    imports = "use crate::prelude::*;\nuse crate::tensor::refuse;\nuse std::ops;\n"
    lines = [HEAD.format("src/ops/decl") + imports]
    for op in ops.values():
        trait = TRAITS.get(op.symbol_key)
        if trait and op.symbol_key[1] == 2:
            lines += binary(op, trait, ops)
        elif trait:
            lines += unary(op, trait)
    return {"bindings/rust/tt/src/gen/operators.rs": "\n".join(lines + [FLIP])}
