"""The key `flops` of declarations: an expression in Python's syntax that becomes C++.

It has numbers, + - * /, `a if b else c`, the sizes `x.shape[i]` and `x.numel` of a tensor argument
x or of results[0], and the values of arguments of type Int, Float and Bool.
"""
import ast

from codegen.model.checks import DeclError

OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
NUMBERS = {"Int": "i", "Bool": "i", "Float": "f"}
TENSORS = ("Tensor", "Tensor?", "Tensor!")


class Flops:
    """The C++ expression of an operator's flops; args and outs are those of a boxed call."""

    def __init__(self, op):
        self.op = op
        self.places = {a.name: i for i, a in enumerate(op.args)}
        try:
            self.text = self.cpp(ast.parse(op.get("flops"), mode="eval").body)
        except SyntaxError:
            self.fail("is no expression")

    def fail(self, why):
        raise DeclError(f"{self.op.name}: flops {self.op.get('flops')!r} {why}")

    def tensor(self, node):
        """The tensor whose size is asked for."""
        if isinstance(node, ast.Name) and node.id in self.places:
            if self.op.arg(node.id).type in TENSORS:
                return f"args[{self.places[node.id]}].tensor"
        if ast.unparse(node) == "results[0]":
            return "first_result(args, outs)"
        return self.fail(f"asks for the size of {ast.unparse(node)}, which is no tensor")

    def cpp(self, node):
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return f"{node.value}.0"
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            sign = OPERATORS[type(node.op)]
            return f"({self.cpp(node.left)} {sign} {self.cpp(node.right)})"
        if isinstance(node, ast.IfExp):
            return f"({self.cpp(node.test)} ? {self.cpp(node.body)} : {self.cpp(node.orelse)})"
        if isinstance(node, ast.Name) and node.id in self.places:
            field = NUMBERS.get(self.op.arg(node.id).type)
            if field:
                return f"double(args[{self.places[node.id]}].{field})"
        if isinstance(node, ast.Attribute) and node.attr == "numel":
            return f"numel_of({self.tensor(node.value)})"
        if isinstance(node, ast.Subscript) and getattr(node.value, "attr", "") == "shape":
            return f"size_of({self.tensor(node.value.value)}, {ast.unparse(node.slice)})"
        return self.fail(f"has {ast.unparse(node)}, which stands for no number")


def check_flops(op):
    if op.get("flops"):
        Flops(op)
