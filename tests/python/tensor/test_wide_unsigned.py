"""uint16, uint32 and uint64: storage, conversion, comparison, bits and indexing, with the results
and refusals of PyTorch 2.15."""
import io

import numpy as np
import pytest
import tt

DTYPES = (tt.uint16, tt.uint32, tt.uint64)
HIGH = {tt.uint16: 2**16 - 1, tt.uint32: 2**32 - 1, tt.uint64: 2**64 - 1}
MIXED = "have no common dtype"


@pytest.fixture(params=DTYPES, ids=lambda dtype: dtype.name)
def dtype(request):
    return request.param


@pytest.fixture
def x(dtype):
    return tt.tensor([1, 2, HIGH[dtype]], dtype=dtype)


def values(t):
    return t.dtype.name, t.tolist()


def test_facts(dtype):
    assert tt.iinfo(dtype).max == HIGH[dtype] and tt.iinfo(dtype).min == 0
    assert not dtype.is_signed and not dtype.is_floating_point
    assert tt.can_cast(dtype, tt.float16) and not tt.can_cast(tt.float32, dtype)


def test_reads_what_was_stored(dtype, x):
    high = HIGH[dtype]
    assert x.tolist() == [1, 2, high] and x[2].item() == high and x.sum().dtype is tt.int64
    assert repr(tt.tensor([high], dtype=dtype)) == f"tensor([{high}], dtype={dtype})"
    assert x.numpy().dtype == dtype.name and x.numpy().tolist() == [1, 2, high]
    assert tt.from_numpy(x.numpy()).dtype is dtype
    assert tt.from_dlpack(x).tolist() == x.tolist()
    assert x.view(tt.uint8).numel() == 3 * dtype.itemsize


def test_conversions_of_every_dtype(dtype):
    name = dtype.name
    for other in ("bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64"):
        for numbers in ([0, 1, 2, 200, HIGH[dtype] // 2], [HIGH[dtype], HIGH[dtype] - 1]):
            there = np.array(numbers, name)
            assert (
                tt.from_numpy(there).to(getattr(tt, other)).tolist() == there.astype(other).tolist()
            ), (other, numbers)
        if other != "bool":
            back = np.array([0, 1, 100], other)
            assert tt.from_numpy(back).to(dtype).tolist() == [0, 1, 100]
    assert tt.tensor([-1]).to(dtype).tolist() == [HIGH[dtype]]
    assert tt.tensor([1.9, 3e4]).to(dtype).tolist() == [1, 30000]
    assert tt.tensor([2 + 1j]).to(dtype).tolist() == [2]
    strided = tt.arange(12).reshape(3, 4).t().to(dtype)
    assert strided.float().tolist() == tt.arange(12.0).reshape(3, 4).t().tolist()


def test_uint64_is_rounded_once():
    odd = 2**63 + 2**39 + 1  # to float64 and then to float32 it would be rounded twice
    x = tt.tensor([odd, 2**64 - 1, 2**53 + 1], dtype=tt.uint64)
    for dtype in ("float32", "float64"):
        assert (
            x.to(getattr(tt, dtype)).tolist()
            == np.array(x.tolist(), "uint64").astype(dtype).tolist()
        )
    assert x.float().to(tt.uint64).tolist()[0] == 9223373136366403584
    assert tt.tensor([1.5 * 2**63], dtype=tt.float64).to(tt.uint64).tolist() == [3 * 2**62]
    assert x.to(tt.complex64).real.tolist() == x.float().tolist()


def test_comparison_and_bits(dtype, x):
    high = HIGH[dtype]
    assert (x == 2).tolist() == [False, True, False] and (x != x).tolist() == [False] * 3
    if dtype is not tt.uint64:
        assert (x == high).tolist() == [False, False, True]
    assert (x == x.float()).tolist()[:2] == [True, True]
    assert values(x & 3) == (dtype.name, [1, 2, 3])
    assert values(x | x) == (dtype.name, x.tolist())
    assert values(x ^ x) == (dtype.name, [0, 0, 0])
    assert values(x * 3) == (dtype.name, [3, 6, high - 2])
    assert values(x.clone().mul_(2)) == (dtype.name, [2, 4, high - 1])
    assert values(tt.maximum(x, x.flip(0))) == (dtype.name, [high, 2, high])
    assert values(x.clamp(2, 5)) == (dtype.name, [2, 2, 5])
    assert values(x.flip(0).sort()[0]) == (dtype.name, [1, 2, high])
    assert x.flip(0).argsort().tolist() == [2, 1, 0]
    assert values(tt.cat([x, x]).unique()) == (dtype.name, [1, 2, high])
    assert tt.equal(x, x.clone()) and x.any().item() and not x.isnan().any().item()


def test_bounds(dtype, x):
    name, high = dtype.name, HIGH[dtype]
    for bound in (-1, -200):
        for call in (tt.clamp_max, tt.Tensor.clamp_max_, lambda t, b: tt.clamp(t, max=b)):
            with pytest.raises(tt.errors.InvalidArgumentError, match=f"{name} has no values that"):
                call(x, bound)
        assert values(tt.clamp_min(x, bound)) == values(tt.clamp(x, bound)) == values(x)
    if dtype is not tt.uint64:
        for call in (tt.clamp_min, tt.Tensor.clamp_min_, tt.clamp):
            with pytest.raises(tt.errors.InvalidArgumentError, match=f"{name} has no values that"):
                call(x, high + 1)
        assert values(tt.clamp_max(x, high + 1)) == values(x)
        return
    for bound in (2**63, 2**63 + 1, high):
        assert values(tt.clamp_min(x, bound)) == (name, [bound, bound, high])
        assert values(tt.clamp_max(x, bound)) == (name, [1, 2, bound])
        assert values(x.clone().clamp_min_(bound)) == (name, [bound, bound, high])
        assert values(tt.clamp_min(x, bound, out=x.clone())) == (name, [bound, bound, high])
        assert (
            values(x.clamp(bound)) == values(x.clone().clamp_(bound)) == values(x.clip(bound, high))
        )
        assert values(x.clamp(-1, bound)) == values(x.clamp(max=bound)) == (name, [1, 2, bound])
        with pytest.raises(OverflowError):
            x.clamp(bound, 2**64)
        with pytest.raises(OverflowError):
            x.clamp(bound, out=tt.empty(0, dtype=tt.float32))
        for other in (-1, 0.5):
            with pytest.raises(OverflowError, match="the other bound must be an int"):
                x.clamp(bound, other)


def test_floating_operands(x):
    small = x[:2]
    assert values(small + 1.5) == ("float32", [2.5, 3.5])
    assert values(small / 2) == ("float32", [0.5, 1.0])
    assert (small < 1.5).tolist() == [True, False]
    assert values(small.sqrt() ** 2)[0] == "float32"
    assert values(tt.ones(2).mul_(small)) == ("float32", [1.0, 2.0])
    with pytest.raises(tt.errors.DtypeError, match="cannot be cast"):
        small.clone().mul_(2.5)


def test_moves(dtype, x):
    high = HIGH[dtype]
    name = dtype.name
    picks = tt.tensor([2, 0])
    mask = tt.tensor([True, False, True])
    assert values(x[1:]) == (name, [2, high]) and values(x[picks]) == (name, [high, 1])
    assert values(x[mask]) == (name, [1, high])
    assert values(x.gather(0, picks)) == values(x.index_select(0, picks)) == (name, [high, 1])
    assert values(tt.where(mask, x, x.flip(0))) == (name, [1, 2, high])
    assert values(tt.stack([x, x])[1]) == (name, x.tolist())
    assert values(x.scatter(0, picks[1:], tt.full((1,), 9, dtype=dtype))) == (name, [9, 2, high])
    assert values(x.scatter_add(0, picks, x[:2]))[1] == [3, 2, 0]
    assert values(tt.full((2,), 7, dtype=dtype)) == (name, [7, 7])
    assert values(tt.zeros_like(x)) == (name, [0, 0, 0])
    x[0] = 5
    assert x[0].item() == 5
    assert values(x.fill_(9)) == (name, [9, 9, 9])
    drawn = tt.randint(0, 60000, (50,), dtype=dtype)
    assert drawn.dtype is dtype and max(drawn.tolist()) > 30000
    assert tt.nn.functional.pad(x, (1, 0)).tolist() == [0, 9, 9, 9]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x + x, lambda x: x - 1, lambda x: -x, lambda x: x // 2, lambda x: x < 2,
        lambda x: ~x, lambda x: x << 1, lambda x: x.max(), lambda x: x.abs(), lambda x: x @ x,
        lambda x: tt.arange(3, dtype=x.dtype), lambda x: x.sum(dtype=x.dtype),
        lambda x: x.bincount(), lambda x: x.nonzero(), lambda x: tt.nn.functional.softmax(x, 0),
    ],
)  # fmt: skip
def test_refusals_name_operator_and_dtype(x, call):
    with pytest.raises(tt.TtError, match=x.dtype.name):
        call(x)


def test_no_promotion_with_other_integers(dtype, x):
    assert tt.promote_types(dtype, tt.float16) is tt.float16
    for other in ("bool", "uint8", "int32", "int64", "complex64"):
        with pytest.raises(tt.errors.DtypeError, match=MIXED):
            tt.promote_types(dtype, getattr(tt, other))
    with pytest.raises(tt.errors.DtypeError, match=MIXED):
        tt.cat([x, tt.ones(1, dtype=tt.int32)])
    with pytest.raises(tt.errors.DtypeError, match=MIXED):
        x == tt.ones(3, dtype=tt.int64)


def test_files(tmp_path, dtype, x):
    path = tmp_path / "x.safetensors"
    tt.save({"x": x}, str(path))
    assert values(tt.load(str(path))["x"]) == values(x)
    file = io.BytesIO()
    tt.save({"x": x, "rest": x[1:]}, file)
    file.seek(0)
    back = tt.load(file)
    assert values(back["x"]) == values(x) and values(back["rest"]) == values(x[1:])
    c_file = tmp_path / "x.pt"
    tt.save({"x": x}, str(c_file))
    assert values(tt.load(str(c_file))["x"]) == values(x)


def test_hash_tensor():
    # recorded from PyTorch 2.15
    assert values(tt.hash_tensor(tt.tensor([1.0, 2.0, 3.0]))) == ("uint64", 4609434218613702656)
    x = tt.arange(24.0).reshape(2, 3, 4)
    assert tt.hash_tensor(x, 1).tolist() == [
        [13510798882111488, 4595360469778169856, 4628574517030027264, 4625759767262920704],
        [4624070917402656768, 4624633867356078080, 4622945017495814144, 4623507967449235456],
    ]
    assert tt.hash_tensor(x, (0, 2), keepdim=True).shape == (1, 3, 1)
    assert tt.hash_tensor(tt.tensor([-1, 5], dtype=tt.int8)).item() == 18446744073709551610
    assert tt.hash_tensor(tt.tensor([0.1, 3])).item() == 9201304398788034560
    with pytest.raises(tt.TtError, match="mode"):
        tt.hash_tensor(x, mode=1)
    with pytest.raises(IndexError, match="has size 0"):
        tt.hash_tensor(tt.empty(0))
