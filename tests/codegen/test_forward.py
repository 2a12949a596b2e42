"""The rules of forward mode, which follow from the formulas of gradients."""
import tomllib

import pytest
from codegen.cxx import autograd, forward
from codegen.model import schema
from codegen.model.checks import DeclError

OPERATORS = """
[defaults]
internal = true
impl = "cpp"
grad = "none"

[mul]
schema = "mul(self: Tensor, other: Tensor) -> Tensor"
symbol = "*"
kernel = { elementwise = "mul", set = "arith" }
dtype = "promote"
grad = { self = "grads[0] * other", other = "grads[0] * self" }

[zeros_like]
schema = "zeros_like(self: Tensor) -> Tensor"

[apply]
schema = "apply(self: Tensor, weight: Tensor, bias: Tensor, index: Tensor, k: Scalar) -> Tensor"
nondiff = ["bias"]
"""


def forward_of(grad, more=""):
    text = f"{OPERATORS}grad = {grad}\n{more}"
    tomllib.loads(text)
    ops = schema.read({"arith": text}, {"moved"})
    f = autograd.formula(ops["apply"], ops)
    forward.check(ops["apply"], f)
    rule, roles = forward.rule_and_roles(ops["apply"], f)
    return rule, roles, forward.arg_roles(ops["apply"], f)


DERIVED = [
    ('{ self = "moved(grads[0], index)" }', "product", {"self": "addend", "k": "addend"}),
    ('{ self = "moved(grads[0], index, k)" }', "product", {"self": "addend"}),
    (
        '{ self = "moved(grads[0], weight, k)", weight = "moved(grads[0], self)" }',
        "product",
        {"self": "factor", "weight": "factor"},
    ),
    (
        '{ self = "moved(grads[0], weight, k)", weight = "moved(grads[0], weight)" }',
        "product",
        {"self": "factor", "weight": "other"},
    ),
    ('{ self = "moved(grads[0], self)" }', "twice", {"self": "other"}),
    ('{ self = "moved(grads[0], results[0])" }', "twice", {"self": "other"}),
    ('{ "self,weight" = "moved(grads[0])" }', "twice", {"self": "other", "weight": "other"}),
    ('{ self = "zeros_like(grads[0])" }', "none", {}),
]


@pytest.mark.parametrize("grad, rule, roles", DERIVED)
def test_rules_follow_from_gradients(grad, rule, roles):
    assert forward_of(grad)[:2] == (rule, roles)


def test_arguments_without_a_formula_are_refused():
    roles = forward_of('{ self = "moved(grads[0])" }')[2]
    assert (roles["weight"], roles["index"], "bias" in roles) == ("refused", "refused", False)


def test_kernels_are_diagonal():
    ops = schema.read({"arith": OPERATORS}, set())
    f = autograd.formula(ops["mul"], ops)
    assert forward.rule_and_roles(ops["mul"], f)[0] == "symmetric"


REFUSED = [
    ('{ weight = "addend" }', "forward_ad must name \\['self'\\]"),
    ('{ self = "linear" }', "forward_ad has \\['linear'\\]"),
    ('"moved(tangents[0], x)"', "unknown name 'x'"),
    ("1", "forward_ad must be text or a table"),
]


@pytest.mark.parametrize("declared, message", REFUSED)
def test_wrong_declarations_are_refused(declared, message):
    with pytest.raises(DeclError, match=message):
        forward_of('{ self = "moved(grads[0])" }', f"forward_ad = {declared}\n")


@pytest.mark.parametrize(
    "declared, rule", [("moved(tangents[0], self)", "formula"), ("mul(self, self)", "instead")]
)
def test_a_formula_without_tangents_is_the_result(declared, rule):
    grad = '{ self = "moved(grads[0])" }'
    assert forward_of(grad, f'forward_ad = "{declared}"\n')[0] == rule
