"""Formula expressions -> C++ over the internal API; finds what a formula needs saved."""
import ast
from dataclasses import dataclass, field

from codegen.model.checks import DeclError, ops_by_symbol

BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}  # -> symbol

PLACES = {"grads": "g", "results": "r", "tangents": "t"}  # -> what their local variables begin with


@dataclass
class Uses:
    args: set = field(default_factory=set)  # argument names read as values
    facts: set = field(
        default_factory=set
    )  # (argument, "shape" | "dtype" | "device" | "ndim" | "shapes")
    results: set = field(default_factory=set)
    grads: set = field(default_factory=set)
    tangents: set = field(default_factory=set)


class Emitter(ast.NodeVisitor):
    """name(arg) gives the C++ of an argument; fact(arg, attribute) that of its shape, dtype …"""

    def __init__(self, op, ops, functions, name, fact):
        self.op = op
        self.ops = ops
        self.functions = functions
        self.name = name
        self.fact = fact
        self.symbols = ops_by_symbol(ops)
        self.hosts = {o.host for o in ops.values()} | set(ops)
        self.uses = Uses()

    def emit(self, text):
        return self.visit(ast.parse(text, mode="eval").body)

    def visit_Name(self, node):
        if node.id == "needs":
            return "Needs(n)"
        self.uses.args.add(node.id)
        return self.name(node.id)

    def visit_Constant(self, node):
        if node.value is None:
            return "{}"
        if isinstance(node.value, bool):
            return "true" if node.value else "false"
        return repr(node.value)

    def visit_Attribute(self, node):
        if isinstance(node.value, ast.Subscript):
            return f"{self.visit(node.value)}.{node.attr}"
        if not isinstance(node.value, ast.Name):
            raise DeclError(f"{self.op.name}: .{node.attr} of an expression")
        self.uses.facts.add((node.value.id, node.attr))
        return self.fact(node.value.id, node.attr)

    def visit_Subscript(self, node):
        if isinstance(node.value, ast.Name) and node.value.id in PLACES:
            i = node.slice.value
            getattr(self.uses, node.value.id).add(i)
            return f"{PLACES[node.value.id]}{i}"
        if isinstance(node.value, ast.Name) and node.value.id == "needs":
            return f"needs({node.slice.value})"
        return f"{self.visit(node.value)}.{('first', 'second', 'third')[node.slice.value]}"

    def visit_Call(self, node):
        args = ", ".join(self.visit(a) for a in node.args)
        name = node.func.id
        if name in self.functions and name not in self.hosts:
            return f"formula::{name}({args})"
        return f"op::{name}({args})"

    def visit_BinOp(self, node):
        if type(node.op) not in BINARY:
            raise DeclError(f"{self.op.name}: operator {type(node.op).__name__} in a formula")
        found = self.symbols[BINARY[type(node.op)], 2]
        if isinstance(node.left, ast.Constant):  # a number first: the operators take it second
            name = found.name if found.get("commutes") else f"r{found.name}"
            if name not in self.ops:
                raise DeclError(f"{self.op.name}: {ast.unparse(node)}: no operator {name}")
            return f"op::{name}({self.visit(node.right)}, {self.visit(node.left)})"
        left = self.visit(node.left)
        right = self.visit(node.right)
        if isinstance(node.op, ast.Mult) and self.is_scalar(node.right):
            return f"formula::scaled({left}, {right})"
        return f"op::{found.name}({left}, {right})"

    def is_scalar(self, node):
        """A Scalar argument, or a function of it alone, such as its conjugate."""
        if isinstance(node, ast.Call) and len(node.args) == 1:
            node = node.args[0]
        arg = self.op.arg(node.id) if isinstance(node, ast.Name) else None
        return bool(arg) and arg.type == "Scalar"

    def visit_UnaryOp(self, node):
        if not isinstance(node.op, ast.USub):
            raise DeclError(f"{self.op.name}: operator {type(node.op).__name__} in a formula")
        if isinstance(node.operand, ast.Constant):
            return f"-{self.visit(node.operand)}"
        return f"op::{self.symbols['-', 1].name}({self.visit(node.operand)})"

    def generic_visit(self, node):
        raise DeclError(f"{self.op.name}: {type(node).__name__} in a formula")
