"""The samples of the op table: what the generator refuses, and the C that it writes for valid
ones."""
import pytest
from codegen.model.schema import Op, parse_schema
from codegen.tests import samples

ADD = "add(self: Tensor, other: Tensor, alpha: Scalar = 1) -> Tensor"
ADD_SCALAR = "add_scalar(self: Tensor, other: Scalar, alpha: Scalar = 1) -> Tensor"
SOFTMAX = "softmax(input: Tensor, dim: Dim) -> Tensor"
LOSS = "loss(input: Tensor, reduction: Enum<Reduction> = mean, dims: Dims = []) -> Tensor"
CAST = "cast(self: Tensor, dtype: DType? = None, copy: Bool = False) -> Tensor"
CAT = "cat(tensors: Tensor[], dim: Dim = 0) -> Tensor"
RANDOM = "random(size: Size, generator: Generator = None) -> Tensor"


def operator(schema, group):
    name = schema.partition("(")[0]
    args, outs = parse_schema(name, schema)
    return Op(name, "family", schema, args, outs, {"samples": group})


def generated(folder, text, *schemas, group="group"):
    """The C table of one file of samples whose group all of the operators use."""
    path = folder / samples.FOLDER
    path.mkdir(parents=True, exist_ok=True)
    (path / "family.toml").write_text(text)
    ops = {op.name: op for op in (operator(schema, group) for schema in schemas)}
    return samples.generate(folder, ops)["tests/gen/op_samples.inc"]


def one(sample):
    return f"[group]\nsamples = [{{ {sample} }}]\n"


def test_a_line_becomes_a_row(tmp_path):
    table = generated(tmp_path, one('self = "signed(2,3)", dim = -1, gradient = true'), SOFTMAX)
    tensor = '{"self", kTensorArg, TENSORS({kSigned, TT_F64, 2, {2, 3}})}'
    dim = '{"dim", kNumberArg, INTEGER(-1)}'
    assert f'{{"self = signed(2,3), dim = -1", ARGS({tensor}, {dim}), .gradient = 1}},' in table
    assert '{"group", lines_group, 1},' in table


@pytest.mark.parametrize(
    "value, row",
    [
        ('"signed()"', "{kSigned, TT_F64, 0, {0}}"),
        ('"bits(4) as int32"', "{kBits, TT_I32, 1, {4}}"),
        ('"indices(2) below 5"', "{kIndices, TT_I64, 1, {2}, .parameter = 5.0}"),
        ('"full(2) with 0.25"', "{kFull, TT_F64, 1, {2}, .parameter = 0.25}"),
        (
            "[[1.5, -inf], [nan, -0.0]]",
            "{kData, TT_F64, 2, {2, 2}, .data = DOUBLES(1.5, -INFINITY, NAN, -0.0)}",
        ),
        ("[2, 0]", "{kData, TT_I64, 1, {2}, .data = DOUBLES(2, 0)}"),
        ("[true, false]", "{kData, TT_BOOL, 1, {2}, .data = DOUBLES(1, 0)}"),
    ],
)
def test_tensors(tmp_path, value, row):
    assert f"TENSORS({row})" in generated(tmp_path, one(f"self = {value}, dim = 0"), SOFTMAX)


def test_a_number_stands_in_for_a_tensor(tmp_path):
    table = generated(
        tmp_path, one('self = "signed(2)", other = "signed(2) or 2.0"'), ADD, ADD_SCALAR
    )
    assert '{"other", kTensorArg, TENSORS({kSigned, TT_F64, 1, {2}}), FLOAT(2.0)}' in table


def test_a_line_without_a_number_is_for_tensors_only(tmp_path):
    text = '[group]\nsamples = [{ self = "signed(2)", other = "signed(2)" }]\n'
    assert generated(tmp_path, text, ADD)
    with pytest.raises(samples.SampleError, match="no sample is for add_scalar"):
        generated(tmp_path, text, ADD, ADD_SCALAR)


def test_a_line_for_no_operator_is_refused(tmp_path):
    text = """[group]
samples = [
  { self = "signed(2)", other = "signed(2) or 2.0" },
  { self = "signed(2)", other = "signed(2)" },
]
"""
    with pytest.raises(samples.SampleError, match="sample 2 is for no operator"):
        generated(tmp_path, text, ADD_SCALAR)


def test_include_and_also(tmp_path):
    text = (
        '[base]\nsamples = [{ self = "signed(2)", other = "signed(2)" }, { self = "signed(9)", '
        'other = "signed(9)", big = true, once = true }]\n'
        '[group]\ninclude = "base"\nalso = [{ alpha = 3.0 }]\n'
    )
    table = generated(tmp_path, text, ADD)
    assert '{"alpha = 3.0", ARGS({"alpha", kNumberArg, FLOAT(3.0)}), .repeats = 1},' in table
    assert table.count(".repeats") == 1
    assert '{"group", lines_group, 3},' in table


@pytest.mark.parametrize(
    "sample, schema, message",
    [
        ('self = "signed(2)", dmi = 0', SOFTMAX, "no argument 'dmi'"),
        ('self = "signed(2)"', SOFTMAX, "'dim' has no value"),
        ('self = "signed(2)", dim = "last"', SOFTMAX, "dim is an integer, not 'last'"),
        ('self = "signed(2)", dim = true', SOFTMAX, "dim is an integer, not True"),
        ('self = "sigend(2)", dim = 0', SOFTMAX, "unknown filler 'sigend'; is it 'signed'"),
        ('self = "signed[2]", dim = 0', SOFTMAX, "is not FILLER"),
        ('self = "signed(1,1,1,1,1,1)", dim = 0', SOFTMAX, "at most 5 dimensions"),
        ('self = "signed(2) as float31", dim = 0', SOFTMAX, "unknown dtype 'float31'"),
        ('self = "indices(2)", dim = 0', SOFTMAX, "needs 'below N'"),
        ('self = "signed(2) below 3", dim = 0', SOFTMAX, "takes no 'below'"),
        ("self = [[1.0], [1.0, 2.0]], dim = 0", SOFTMAX, "ragged"),
        ("self = [1.0, 2], dim = 0", SOFTMAX, "mixes"),
        ("self = [], dim = 0", SOFTMAX, "empty tensor"),
        ('self = "signed(2)", dim = 0, gradient = false', SOFTMAX, "true or left out"),
        ('self = "signed(2)", reduction = "men"', LOSS, "one of none, mean, sum; not 'men'"),
        ('self = "signed(2)", dims = [0, 1.5]', LOSS, "a list of integers"),
        ('self = "signed(2)", dtype = "float31"', CAST, "dtype is one of"),
        ('self = "signed(2)", copy = 1', CAST, "copy is true or false, not 1"),
        ('tensors = "signed(2)"', CAT, "a list of 1 to 24 tensors"),
        ('self = "signed(2)", other = "signed(2)", alpha = [1]', ADD, "alpha is a number"),
        ('self = "signed(2)", other = "signed(2) or two"', ADD, "'two' is no value"),
        ('self = "signed(2)", other = "signed(2) or [2]"', ADD, "behind 'or' is no number"),
        ("size = [2], generator = 3", RANDOM, "which samples cannot give"),
    ],
)
def test_a_wrong_line_is_refused(tmp_path, sample, schema, message):
    with pytest.raises(samples.SampleError, match=r"family.toml: \[group\] sample 1") as refused:
        generated(tmp_path, one(sample), schema)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    "text, message",
    [
        ("[group]\n", "has no samples"),
        ("[group]\nsample = []\n", "unknown key 'sample'; is it 'samples'"),
        ("[group]\nsamples = [1]\n", "is no table"),
        ('[group]\ninclude = "grop"\n', "includes 'grop', which is no group; is it 'group'"),
        ('[group]\ninclude = "group"\n', "includes itself"),
        (
            one('self = "signed(2)", dim = 0') + "drawn = { men = 0.5 }\n",
            "unknown key 'men' of drawn",
        ),
        (
            one('self = "signed(2)", dim = 0') + "drawn = { low = 0.5 }\n",
            "low and high, or neither",
        ),
        (
            one('self = "signed(2)", dim = 0') + 'no_gradient = ["weigth"]\n',
            "'weigth', which is no argument",
        ),
        (
            one('self = "signed(2)", dim = 0') + 'no_gradient = ["a", "b", "c"]\n',
            "names more than 2 arguments",
        ),
        (
            one('self = "signed(2)", dim = 0') + one('self = "signed()"').replace("group", "spare"),
            "[spare] is used by no operator",
        ),
    ],
)
def test_a_wrong_group_is_refused(tmp_path, text, message):
    with pytest.raises(samples.SampleError) as refused:
        generated(tmp_path, text, SOFTMAX)
    assert message in str(refused.value)


def test_an_operator_without_a_group_is_refused(tmp_path):
    with pytest.raises(
        samples.SampleError, match="softmax: samples = 'goup' names no group .*; is it 'group'"
    ):
        generated(tmp_path, one('self = "signed(2)", dim = 0'), SOFTMAX, group="goup")


def test_a_group_is_in_the_file_of_its_family(tmp_path):
    text = one('self = "signed(2)", dim = 0')
    generated(tmp_path, text, SOFTMAX)
    folder = tmp_path / samples.FOLDER
    (folder / "family.toml").rename(folder / "other.toml")
    with pytest.raises(samples.SampleError, match=r"other.toml: \[group\] is for .* of family"):
        samples.generate(tmp_path, {"softmax": operator(SOFTMAX, "group")})


def test_a_group_is_in_one_file_only(tmp_path):
    text = one('self = "signed(2)", dim = 0')
    generated(tmp_path, text, SOFTMAX)
    (tmp_path / samples.FOLDER / "other.toml").write_text(text)
    with pytest.raises(
        samples.SampleError, match=r"other.toml: \[group\] is already in family.toml"
    ):
        generated(tmp_path, text, SOFTMAX)


def test_operators_of_a_group_agree(tmp_path):
    wide = "wide(self: Tensor, dim: Dims) -> Tensor"
    flat = "flat(self: Tensor, dim: Tensor) -> Tensor"
    with pytest.raises(samples.SampleError, match="means something else to flat than to wide"):
        generated(tmp_path, one('self = "signed(2)", dim = [0]'), wide, flat)
