"""What the generator refuses in declarations, overrides, headers and the lock of the ABI."""
import tomllib

import pytest
from codegen.c import abi, classes
from codegen.cxx import autograd, manifest
from codegen.model import checks, headers, overrides, schema
from codegen.model.checks import DeclError
from codegen.model.expr import Emitter
from codegen.model.flops import Flops

ADD = """
[add]
schema = "add(self: Tensor, other: Tensor, alpha: Scalar = 1) -> Tensor"
scalar = "other"
symbol = "+"
commutes = true
variants = ["inplace", "into"]
dtype = "promote"
kernel = { elementwise = "add", set = "arith", factor = true }
grad = { self = "grads[0]", other = "grads[0] * conj(alpha)" }
samples = "binary"
doc = "Adds."
args = { alpha = "factor of other" }
"""
OTHERS = """
[mul]
schema = "mul(self: Tensor, other: Tensor) -> Tensor"
internal = true
symbol = "*"
impl = "composite"

[sub]
schema = "sub(self: Tensor, other: Tensor) -> Tensor"
internal = true
symbol = "-"
impl = "composite"

[conj]
schema = "conj(self: Tensor) -> Tensor"
internal = true
impl = "composite"
"""
FUNCTIONS = {"scaled"}


def read(text):
    return schema.read({"arith": text + OTHERS}, FUNCTIONS)


def changed(old, new):
    assert ADD.count(old) == 1, old
    return ADD.replace(old, new)


FLOPS = [
    ("self.shape[0] *", "flops 'self.shape\\[0\\] \\*' is no expression"),
    ("beta.numel", "asks for the size of beta, which is no tensor"),
    ("alpha.numel", "asks for the size of alpha, which is no tensor"),
    ("results[1].numel", "asks for the size of results\\[1\\]"),
    ("self.ndim", "has self.ndim, which stands for no number"),
    ("alpha", "has alpha, which stands for no number"),
    ("self.numel ** 2", "which stands for no number"),
]


@pytest.mark.parametrize("flops, message", FLOPS)
def test_flops_of_unknown_numbers_are_refused(flops, message):
    with pytest.raises(DeclError, match=message):
        read(changed('doc = "Adds."', f'doc = "Adds."\nflops = "{flops}"'))


def test_flops_become_cpp():
    text = 'flops = "2 * results[0].numel * self.shape[-1]"'
    op = read(changed('doc = "Adds."', f'doc = "Adds."\n{text}'))["add"]
    cpp = "((2.0 * numel_of(first_result(args, outs))) * size_of(args[0].tensor, -1))"
    assert Flops(op).text == cpp


def test_the_declaration_that_the_cases_change_is_accepted():
    ops = read(ADD)
    assert set(ops) == {"add", "add_scalar", "mul", "sub", "conj"}
    assert ops["add_scalar"].scalar_arg == "other"


def fields(name, variant):
    ops = read(ADD)
    return autograd.schema_fields(ops[name], variant, autograd.ArgTables(ops))


def test_schemas_say_what_modes_need():
    add = fields("add", "")
    assert (add["kind"], add["leaf"]) == ("OpKind::kElementwise", "true")
    assert "leaf" not in fields("mul", "") and fields("mul", "")["kind"] == "OpKind::kComposite"
    assert fields("mul", "_into")["leaf"] == "true"  # it copies without a call


KEYS = [
    ('doc = "Adds."', 'doc = "Adds."\ntypo = 1', "unknown keys \\['typo'\\]"),
    ("factor = true", "factor = true, typo = 1", "unknown keys \\['typo'\\]"),
    ("commutes = true", 'commutes = "yes"', "commutes must be true or false"),
    ('variants = ["inplace", "into"]', 'variants = "inplace"', "variants must be a list"),
    ("factor = true", 'factor = "true"', "factor must be true or false"),
    ('doc = "Adds."', "doc = 1", "doc must be text"),
    ('doc = "Adds."\n', "", "no doc"),
    ('samples = "binary"\n', "", "no samples"),
    ('doc = "Adds."', 'doc = "Adds."\nkind = "view"', "kind is 'view', not one of reduce, row"),
    ('doc = "Adds."', 'doc = "Adds."\nalias = "view"', "alias is 'view', not one of none, maybe"),
    ('symbol = "+"', 'symbol = "plus"', "unknown symbol 'plus'"),
    ('symbol = "+"', 'symbol = "*"', "has the symbol '\\*' already"),
]
SCHEMAS = [
    ("add(self: Tensor,", "plus(self: Tensor,", "is not 'name\\(arg: Type = default"),
    ("other: Tensor,", "other: Matrix,", "other has unknown type 'Matrix'"),
    ("other: Tensor,", "other Tensor,", "'other Tensor' is not 'name: Type = default'"),
    ("other: Tensor,", "self: Tensor,", "two arguments are called self"),
    ("alpha: Scalar = 1", "mode: Enum<Colour> = red", "mode has unknown type"),
    ("alpha: Scalar = 1", "mode: Enum<Reduction> = max", "mode has no value max"),
    ("-> Tensor", "-> Matrix", "out has unknown type 'Matrix'"),
]
NAMES = [
    ("{ alpha =", "{ beta =", "args names an argument 'beta' that does not exist"),
    ('scalar = "other"', 'scalar = "alpha"', "scalar names 'alpha', which is no Tensor"),
    ('doc = "Adds."', 'doc = "Adds."\npositional = ["x"]', "positional names an argument 'x'"),
    ('doc = "Adds."', 'doc = "Adds."\npositional = ["self"]', "which is required anyway"),
    ('doc = "Adds."', 'doc = "Adds."\nnondiff = ["x"]', "nondiff names an argument 'x'"),
    ('doc = "Adds."', 'doc = "Adds."\nreads_self = ["x"]', "reads_self names an argument 'x'"),
    ('doc = "Adds."', 'doc = "Adds."\nreads_self = ["other"]', "reads_self is for composites"),
    ("factor = true", 'operands = ["x"]', "operands names an argument 'x'"),
    ('"into"]', '"out"]', "unknown variants \\['out'\\]"),
    ('doc = "Adds."', 'doc = "Adds."\ndirect = ["view"]', "direct names \\['view'\\]"),
    ("(self: Tensor,", "(self: Float,", "its first argument is no Tensor"),
    ('doc = "Adds."', 'doc = "Adds."\noverload_of = "plus"', "which is no operator"),
]
WAYS = [
    ('dtype = "promote"', 'impl = "cpp"', "exactly one of kernel, composite, impl"),
    ('dtype = "promote"', 'dtype = "wider"', "dtype rule 'wider' is unknown"),
    ('dtype = "promote"\n', "", "dtype rule None is unknown"),
    ('set = "arith"', 'set = "some"', "set 'some' is none of"),
    ('set = "arith", ', "", "kernel has no set"),
]
GRADIENTS = [
    ('grad = { self = "grads[0]", other = "grads[0] * conj(alpha)" }\n', "", "no gradient"),
    ('{ self = "grads[0]", other = "grads[0] * conj(alpha)" }', '"no"', 'formulas or "none"'),
    ('{ self = "grads[0]", other', "{ other", "an in-place variant needs a gradient of 'self'"),
    ('self = "grads[0]"', 'x = "grads[0]"', "gradient for 'x', which is no tensor argument"),
    ('self = "grads[0]"', 'alpha = "grads[0]"', "gradient for 'alpha', which is no tensor"),
    ('self = "grads[0]"', 'self = "grads[0"', "formula 'grads\\[0'"),
    ('self = "grads[0]"', 'self = "plus(grads[0])"', "calls 'plus', which is no declared operator"),
    ('self = "grads[0]"', 'self = "grads[0] * beta"', "unknown name 'beta'"),
    ('self = "grads[0]"', 'self = "grads[1]"', "uses grads\\[1\\] of 1"),
    ('self = "grads[0]"', 'self = "results[1]"', "uses results\\[1\\] of 1"),
    ('self = "grads[0]"', 'self = "scaled(grads[0], self.size)"', "uses .size, known are shape"),
    ('self = "grads[0]"', 'self = "grads[needs]"', "the place must be a number"),
]


@pytest.mark.parametrize("old, new, message", KEYS + SCHEMAS + NAMES + WAYS + GRADIENTS)
def test_declaration_is_refused(old, new, message):
    with pytest.raises(DeclError, match=message):
        read(changed(old, new))


def test_an_operator_is_declared_once():
    with pytest.raises(DeclError, match="add: declared twice"):
        schema.read({"arith": ADD + OTHERS, "more": ADD}, FUNCTIONS)


@pytest.mark.parametrize(
    "formula, message",
    [
        ("grads[0] % self", "operator Mod in a formula"),
        ("1 - self", "no operator rsub"),
        ("not self", "operator Not in a formula"),
        ("[self]", "List in a formula"),
        ("grads[0] if self else other", "IfExp in a formula"),
    ],
)
def test_formula_is_refused(formula, message):
    ops = read(ADD)
    emitter = Emitter(ops["add"], ops, FUNCTIONS, lambda name: name, None)
    with pytest.raises(DeclError, match=message):
        emitter.emit(formula)


def test_formulas_use_the_symbols_of_declared_operators():
    ops = read(ADD)
    emitter = Emitter(ops["add"], ops, FUNCTIONS, lambda name: name, None)
    assert emitter.emit("self * other + 2") == "op::add(op::mul(self, other), 2)"
    assert emitter.emit("2 + self") == "op::add(self, 2)"
    assert emitter.emit("grads[0] * conj(alpha)") == "formula::scaled(g0, op::conj(alpha))"


# ---- schemas of the manifest ----
def test_a_schema_begins_with_its_operator():
    ops = read(ADD)
    manifest.check_schemas(ops)
    ops["add"].schema = "plus(self: Tensor) -> Tensor"
    with pytest.raises(AssertionError, match="plus\\(self: Tensor\\)"):
        manifest.check_schemas(ops)


@pytest.mark.parametrize("variant", ["_", "_into"])
def test_no_operator_is_named_like_a_variant(variant):
    ops = read(ADD)
    ops[f"add{variant}"] = ops["mul"]
    with pytest.raises(AssertionError, match=f"add{variant} is named like a variant"):
        manifest.check_schemas(ops)


# ---- classes ----

CLASS = """
[class]
handle = "tt_optimizer"

[optim_sgd]
schema = "SGD(params: Tensor![], lr: Float = 1e-3)"
doc = "Descends."
args = { lr = "learning rate" }
"""


def test_a_class_is_accepted():
    assert classes.read("optim", CLASS)[0].host == "SGD"


@pytest.mark.parametrize(
    "old, new, message",
    [
        ('handle = "tt_optimizer"', "", "no handle"),
        ('handle = "tt_optimizer"', 'handle = "tt_optimizer"\nkinds = 1', "unknown keys"),
        ('doc = "Descends."', "", "optim_sgd: no doc"),
        ('doc = "Descends."', 'doc = "Descends."\nslots = []', "unknown keys \\['slots'\\]"),
        ("{ lr =", "{ rate =", "args names an argument 'rate'"),
        ("SGD(params", "params", "schema is not"),
        ('doc = "Descends."', 'doc = "Descends."\nkeyword = "lr"', "keyword must be a list"),
    ],
)
def test_class_is_refused(old, new, message):
    assert CLASS.count(old) == 1
    with pytest.raises(DeclError, match=message):
        classes.read("optim", CLASS.replace(old, new))


# ---- overrides ----


@pytest.mark.parametrize(
    "language, text, message",
    [
        ("python", "plus = { aliases = [] }", "no operator is called 'plus'"),
        ("python", "conj = { aliases = [] }", "conj is internal"),
        ("python", "add = { alias = [] }", "unknown keys \\['alias'\\]"),
        ("python", 'add = { aliases = "plus" }', "aliases must be a list"),
        ("python", 'add = { order = ["x"] }', "order names an argument 'x'"),
        ("python", 'add = { names = { x = "y" } }', "names names an argument 'x'"),
        ("julia", "add = { aliases = [] }", "unknown keys \\['aliases'\\]"),
        ("rust", "add = { name = true }", "name must be text"),
    ],
)
def test_override_is_refused(language, text, message):
    with pytest.raises(DeclError, match=message):
        overrides.read(language, text, read(ADD))


def test_an_override_is_accepted():
    text = 'add = { number_beside_tensor = ["self"] }'
    assert overrides.read("python", text, read(ADD)) == tomllib.loads(text)


# ---- the lock of the ABI ----

LOCK = ["fn tt_add(tt_ctx *c)", "bit add 0 alpha: Scalar", "enum Reduction none = 0"]


def test_the_abi_grows_behind_its_rows():
    assert abi.merged(LOCK, ["fn tt_abs(tt_ctx *c)", *LOCK]) == [*LOCK, "fn tt_abs(tt_ctx *c)"]


@pytest.mark.parametrize(
    "now",
    [
        LOCK[:2],
        ["fn tt_add(tt_ctx *c, int32_t n)", *LOCK[1:]],
        [LOCK[0], "bit add 1 alpha: Scalar", LOCK[2]],
        [*LOCK[:2], "enum Reduction none = 1"],
    ],
)
def test_the_abi_never_changes(now):
    with pytest.raises(DeclError, match="the ABI may only grow"):
        abi.merged(LOCK, now)


# ---- headers ----


@pytest.mark.parametrize(
    "text, message",
    [
        ("int64_t tt_size(tt_nothing *x);", "unknown \\{'tt_nothing'\\}"),
        ("typedef double tt_real;", "unknown typedef"),
        ("int64_t *a, *b;", "unknown: "),
        ("typedef struct tt_pair { int64_t *a, *b; } tt_pair;", "one pointer per declaration"),
        ("int64_t tt_size(void)", "no statement"),
    ],
)
def test_header_is_refused(text, message):
    with pytest.raises(headers.HeaderError, match=message):
        headers.parse({"tt_types.h": text})


def test_values_of_an_enumeration_count_from_zero():
    checks.check_enums({"Side": {"left": 0, "right": 1}})
    for values in ({"left": 1, "right": 2}, {"left": 0, "right": 2}):
        with pytest.raises(DeclError, match="Side: its values"):
            checks.check_enums({"Side": values})
