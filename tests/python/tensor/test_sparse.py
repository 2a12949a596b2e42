"""Sparse matrices: conversions, products with dense ones and their gradients, against dense
tensors."""
import pytest

import tt
from tt import sparse


@pytest.fixture
def a():
    """A matrix with a place that is listed twice."""
    places = tt.tensor([[0, 2, 0, 1, 0], [1, 0, 3, 2, 1]])
    return tt.sparse_coo_tensor(places, tt.tensor([1.0, 2.0, 3.0, 4.0, 5.0]), (3, 4))


DENSE = [[0.0, 6.0, 0.0, 3.0], [0.0, 0.0, 4.0, 0.0], [2.0, 0.0, 0.0, 0.0]]


def test_parts_and_conversions(a):
    assert a.is_sparse and a.layout is tt.sparse_coo and a.shape == (3, 4) and a._nnz() == 5
    assert a.to_dense().tolist() == DENSE and not a.is_coalesced() and a.sparse_dim() == 2
    with pytest.raises(ValueError, match="coalesce"):
        a.indices()
    c = a.coalesce()
    assert c.indices().tolist() == [[0, 0, 1, 2], [1, 3, 2, 0]]
    assert c.values().tolist() == [6, 3, 4, 2] and c.coalesce() is c
    assert c.t().to_dense().tolist() == tt.tensor(DENSE).t().tolist()
    csr = c.to_sparse_csr()
    assert csr.crow_indices().tolist() == [0, 2, 3, 4] and csr.layout is tt.sparse_csr
    assert csr.col_indices().tolist() == [1, 3, 2, 0] and csr.to_dense().tolist() == DENSE
    assert tt.tensor(DENSE).to_sparse().to_dense().tolist() == DENSE
    assert tt.tensor(DENSE).to_sparse_csr().values().tolist() == [6, 3, 4, 2]
    assert a.to(tt.float64).dtype is tt.float64 and a.double().to_dense().tolist() == DENSE
    rows = tt.tensor([[[1.0, 2.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 3.0]]]).to_sparse(2)
    assert rows.values().shape == (2, 2) and rows.dense_dim() == 1 and "nnz=2" in repr(rows)


def test_arithmetic(a):
    dense = tt.tensor(DENSE)
    assert (a * 2).to_dense().tolist() == (dense * 2).tolist()
    assert (a.coalesce() * dense).to_dense().tolist() == (dense * dense).tolist()
    assert (a + a).to_dense().tolist() == (2 * dense).tolist() and (-a / 2).sum().item() == -7.5
    assert (a + dense).tolist() == (2 * dense).tolist() and a.sum(0).tolist() == [2, 6, 4, 3]
    assert sparse.sum(a, 1).tolist() == [9, 4, 2]
    assert (a - a).to_dense().abs().sum() == 0 and (a - dense).abs().sum() == 0
    assert (2 * dense - a).tolist() == DENSE and (a * a).to_dense().tolist() == (
        dense**2
    ).tolist()


def test_requires_grad_leaves_the_values_of_the_caller():
    values = tt.ones(2)
    s = tt.sparse_coo_tensor([[0, 1], [1, 0]], values, (2, 2), requires_grad=True)
    assert s.requires_grad and not values.requires_grad


def test_products_and_gradients(a):
    values = a._values().double().requires_grad_()
    s = tt.sparse_coo_tensor(a._indices(), values, (3, 4))
    x = tt.rand(4, 2, dtype=tt.float64, requires_grad=True)
    for product in (sparse.mm(s, x), tt.spmm(s, x), s @ x, s.to_sparse_csr() @ x, s.mm(x)):
        tt.testing.assert_close(product, s.to_dense() @ x)
        weights = tt.rand(3, 2, dtype=tt.float64)
        found = tt.autograd.grad((product * weights).sum(), [values, x], retain_graph=True)
        wanted = tt.autograd.grad((s.to_dense() @ x * weights).sum(), [values, x])
        for one, other in zip(found, wanted):
            tt.testing.assert_close(one, other)
    assert (s @ x[:, 0]).shape == (3,)
    left = tt.rand(2, 3, dtype=tt.float64)
    tt.testing.assert_close(left @ s, left @ s.to_dense())
    tt.testing.assert_close(
        sparse.addmm(tt.ones(3, 2).double(), s, x, beta=2.0, alpha=0.5),
        2 + 0.5 * (s.to_dense() @ x),
    )
    tt.autograd.backward((s @ x).sum())
    assert s.grad.to_dense().shape == (3, 4) and s.requires_grad


def test_softmax(a):
    dense = tt.tensor(DENSE)
    for dim in (0, 1, -1):
        masked = dense.masked_fill(dense == 0, float("-inf")).softmax(dim)
        found = sparse.softmax(a, dim).to_dense()
        tt.testing.assert_close(found, masked.nan_to_num(0.0))
    values = tt.rand(5, dtype=tt.float64, requires_grad=True)
    s = sparse.softmax(tt.sparse_coo_tensor(a._indices(), values, (3, 4)), 1)
    (g,) = tt.autograd.grad((s.values() ** 2).sum(), values)
    assert g[[1, 3]].abs().max() < 1e-12 and g[0].item() != 0


def test_csr_construction():
    m = tt.sparse_csr_tensor([0, 2, 2, 3], [0, 1, 1], [1.0, 2.0, 3.0])
    assert m.to_dense().tolist() == [[1, 2], [0, 0], [0, 3]]
    wrong = (
        lambda: tt.sparse_csr_tensor([0, 2], [0], [1.0]),
        lambda: tt.sparse_csr_tensor([0, 2, 1], [0], [1.0]),
        lambda: tt.sparse_csr_tensor([0, 1], [0], [1.0], (2, 2)),
    )
    for call in wrong:
        with pytest.raises(ValueError, match="sparse_csr_tensor"):
            call()


def test_wrong_arguments(a):
    for call in (
        lambda: tt.sparse_coo_tensor([[0, 1]], [1.0]),
        lambda: tt.sparse_coo_tensor([[0, 4]], [1.0, 2.0], (4,)),
        lambda: tt.sparse_coo_tensor([[0, -1]], [1.0, 2.0], (4,)),
        lambda: tt.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (4, 2)),
        lambda: a @ tt.ones(3, 2),
        lambda: a @ tt.ones(4, 2, 2),
        lambda: a.transpose(0, 2),
        lambda: tt.ones(2).to_sparse(2),
    ):
        with pytest.raises((ValueError, IndexError)):
            call()
    with pytest.raises(NotImplementedError, match="both are sparse"):
        sparse.mm(a, a.t())
    empty = tt.sparse_coo_tensor(tt.zeros(2, 0), tt.zeros(0), (2, 3))
    assert (empty @ tt.ones(3, 2)).tolist() == [[0, 0], [0, 0]] and empty.coalesce()._nnz() == 0
