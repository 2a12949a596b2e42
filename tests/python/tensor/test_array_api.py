"""tt.array_api: behaviour that the public test suite of the standard does not test, and a sample of
what it does. The count of the suite is in docs/pytorch-users.md."""
import pytest

import tt
import tt.array_api as xp


def test_tensors_name_their_namespace():
    x = tt.ones(2)
    assert x.__array_namespace__() is xp and x.__array_namespace__(api_version="2023.12") is xp
    with pytest.raises(ValueError, match="2099.12"):
        x.__array_namespace__(api_version="2099.12")
    assert xp.__array_api_version__ == "2024.12" and x.to_device("cpu") is x


def test_promotion_is_the_standards():
    one, many = tt.ones((), dtype=tt.float64), tt.ones(2)
    assert xp.add(one, many).dtype is xp.float64 and (one + many).dtype is tt.float32
    assert (
        xp.result_type(tt.int8, tt.uint8) is xp.int16 and xp.result_type(many, 3j) is xp.complex64
    )
    assert xp.add(tt.ones(2, dtype=tt.int8), 3).dtype is xp.int8
    assert xp.concat([tt.ones(1, dtype=tt.int8), tt.ones(1)]).dtype is xp.float32
    with pytest.raises(TypeError):
        xp.add(1, 2)
    assert xp.can_cast(xp.int8, xp.int16) and not xp.can_cast(xp.int16, xp.int8)
    assert xp.isdtype(xp.uint8, ("unsigned integer", "bool")) and xp.isdtype(xp.bool, xp.bool)
    with pytest.raises(ValueError, match="kind is 'odd'"):
        xp.isdtype(xp.bool, "odd")
    assert xp.finfo(many).dtype is xp.float32 and xp.iinfo(xp.int8).max == 127
    with pytest.raises(TypeError, match="complex"):
        xp.astype(many * 1j, xp.float32)


def test_information():
    info = xp.__array_namespace_info__()
    assert info.devices()[0] == tt.device("cpu") == info.default_device()
    assert info.default_dtypes()["integral"] is xp.int64
    assert list(info.dtypes(kind=("bool", "real floating"))) == ["bool", "float32", "float64"]


def test_functions():
    x = tt.tensor([[3.0, 1.0], [2.0, 2.0]])
    assert xp.sum(x, axis=(0, 1)).item() == 8 and xp.max(x, axis=0, keepdims=True).shape == (1, 2)
    assert xp.var(x, axis=1, correction=1).tolist() == [2.0, 0.0] and xp.std(x, axis=()).sum() == 0
    assert xp.all(x).item() and xp.count_nonzero(x - 2, axis=1).tolist() == [2, 0]
    assert xp.cumulative_sum(x[0], include_initial=True).tolist() == [0, 3, 4]
    found = xp.unique_all(x)
    assert found.values.tolist() == [1, 2, 3] and found.indices.tolist() == [1, 2, 0]
    assert found.counts.tolist() == [1, 2, 1] and found.inverse_indices.shape == x.shape
    assert xp.take(x, tt.tensor([-1]), axis=1).tolist() == [[1], [2]]
    assert xp.argsort(x, axis=0, descending=True).tolist() == [[0, 1], [1, 0]]
    assert xp.argmax(x, keepdims=True).tolist() == [[0]] and xp.argmin(x).item() == 1
    assert xp.squeeze(x[:, :1], 1).shape == (2,) and xp.expand_dims(x, axis=1).shape == (2, 1, 2)
    with pytest.raises(ValueError, match="must be 1"):
        xp.squeeze(x, 0)
    assert xp.clip(tt.tensor([-30, 5], dtype=tt.int8), -1000, 3).tolist() == [-30, 3]
    assert xp.linspace(0, 1, 4, endpoint=False).tolist() == [0, 0.25, 0.5, 0.75]
    assert xp.eye(2, 3, k=1).tolist() == [[0, 1, 0], [0, 0, 1]] and xp.arange(5, 2).shape == (0,)
    assert xp.linalg.vecdot(x, x).tolist() == [10, 8] and xp.tensordot(x, x, axes=2).item() == 18
    assert xp.where(x > 2, x, 0).tolist() == [[3, 0], [0, 0]] and len(xp.unstack(x)) == 2
    assert xp.reshape(x, (4,), copy=True).data_ptr() != x.data_ptr()
    assert xp.asarray([1, 2], dtype=xp.float32).tolist() == [1, 2] and xp.nonzero(x - 2)[
        0
    ].shape == (2,)
