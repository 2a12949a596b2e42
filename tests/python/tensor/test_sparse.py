"""Sparse matrices: conversions, products with dense ones and their gradients, against dense
tensors."""
import copy
import io

import pytest

import tt
import tt.nn.functional as F
from tt import nn, optim, sparse


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
    assert (a + dense).tolist() == (2 * dense).tolist()
    assert a.sum(0).to_dense().tolist() == [2, 6, 4, 3]
    assert sparse.sum(a, 1).to_dense().tolist() == [9, 4, 2]
    assert (a - a).to_dense().abs().sum() == 0 and (a - dense).abs().sum() == 0
    assert (2 * dense - a).tolist() == DENSE and (a * a).to_dense().tolist() == (
        dense**2
    ).tolist()


@pytest.mark.parametrize("width", [1, 40])
def test_products_by_rows(a, width):
    x = tt.randn(4, width, dtype=tt.float64, requires_grad=True)
    y = tt.randn(3, width, dtype=tt.float64, requires_grad=True)
    for m in (a, a.coalesce(), a.coalesce().to_sparse_csr()):
        m = m.double().detach().requires_grad_()
        dense = m.detach().to_dense().requires_grad_()
        got = sparse.mm(m, x).square().sum() + sparse.mm(m.t(), y).square().sum()
        want = (dense @ x).square().sum() + (dense.t() @ y).square().sum()
        for g, w in zip(tt.autograd.grad(got, [x, y]), tt.autograd.grad(want, [x, y])):
            tt.testing.assert_close(g, w)
        got, want = sparse.mm(m, x).square().sum(), (dense @ x).square().sum()
        (of_values,) = tt.autograd.grad(got, m._values())
        (of_dense,) = tt.autograd.grad(want, dense)
        tt.testing.assert_close(of_values, of_dense[tuple(m._indices())])


def test_products_follow_indices_that_change(a):
    x = tt.eye(4)
    assert (a @ x).tolist() == DENSE
    a._indices()[0] = tt.tensor([2, 2, 1, 0, 0])
    assert (a @ x).tolist() == a.to_dense().tolist()


def test_requires_grad_leaves_the_values_of_the_caller():
    values = tt.ones(2)
    s = tt.sparse_coo_tensor([[0, 1], [1, 0]], values, (2, 2), requires_grad=True)
    assert s.requires_grad and not values.requires_grad


def test_products_and_gradients(a):
    values = a._values().double().requires_grad_()
    s = tt.sparse_coo_tensor(a._indices(), values, (3, 4))
    x = tt.rand(4, 2, dtype=tt.float64, requires_grad=True)
    products = [
        sparse.mm(s, x),
        tt.spmm(s, x),
        tt.dsmm(s, x),
        s @ x,
        s.to_sparse_csr() @ x,
        s.mm(x),
    ]
    for product in (*products, tt.mm(s, x), tt.matmul(s, x)):
        tt.testing.assert_close(product, s.to_dense() @ x)
        weights = tt.rand(3, 2, dtype=tt.float64)
        found = tt.autograd.grad((product * weights).sum(), [values, x], retain_graph=True)
        wanted = tt.autograd.grad((s.to_dense() @ x * weights).sum(), [values, x])
        for one, other in zip(found, wanted):
            tt.testing.assert_close(one, other)
    assert (s @ x[:, 0]).shape == (3,)
    left = tt.rand(2, 3, dtype=tt.float64)
    for product in (left @ s, tt.mm(left, s), left.mm(s), left.matmul(s)):
        tt.testing.assert_close(product, left @ s.to_dense())
    for wrong in ((s, 2.0), (2.0, x), (x, [s])):
        with pytest.raises(TypeError, match=r"mm\(\): argument '(input|mat2)' must be Tensor"):
            tt.mm(*wrong)
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


def test_constructors_by_dtype():
    places, values = tt.tensor([[0, 1], [2, 0]]), tt.tensor([3.0, 4.0])
    x = tt.sparse.FloatTensor(places, values, tt.Size([2, 3]))
    assert x.to_dense().tolist() == [[0, 0, 3], [4, 0, 0]] and x.dtype is tt.float32
    assert tt.sparse.DoubleTensor(places, values).dtype is tt.float64
    assert isinstance(x, tt.sparse.FloatTensor) and not isinstance(x, tt.sparse.LongTensor)
    assert not isinstance(values, tt.sparse.FloatTensor)
    for empty in (tt.sparse.FloatTensor(2, 3), tt.sparse.FloatTensor(tt.Size([2, 3]))):
        assert empty.shape == (2, 3) and empty.to_dense().sum() == 0


def test_products_of_two_sparse_matrices(a):
    values = tt.tensor([2.0, -3.0, 5.0, 0.5], requires_grad=True)
    first = tt.sparse_coo_tensor([[2, 0, 2, 0], [0, 3, 1, 3]], values, (3, 4))
    other = tt.tensor([[0.0, 1.0], [2.0, 0.0], [0.0, 0.0], [3.0, -1.0]])
    weight = tt.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    product = first @ other.to_sparse()
    assert tt.equal(product.to_dense(), first.to_dense() @ other) and product.is_coalesced()
    (product.to_dense() * weight).sum().backward()
    dense = first.to_dense().detach().requires_grad_()
    ((dense @ other) * weight).sum().backward()
    assert tt.equal(values.grad, dense.grad[[2, 0, 2, 0], [0, 3, 1, 3]])
    rows = sparse.mm(first.to_sparse_csr(), other.to_sparse_csr())
    assert rows.is_sparse_csr and tt.equal(rows.to_dense(), product.to_dense())
    assert sparse.mm(first, tt.zeros(4, 2).to_sparse())._nnz() == 0


def test_functions_of_the_elements():
    x = tt.sparse_coo_tensor([[0, 1, 0]], [-4.0, 9.0, 2.0], (3,))  # two of one place
    dense = x.to_dense()
    for name in ("abs", "sign", "square", "neg", "expm1", "relu"):
        assert tt.equal(getattr(x, name)().to_dense(), getattr(dense, name)())
    assert tt.equal(abs(x).to_dense(), abs(dense)) and tt.equal((x**2).to_dense(), dense**2)
    assert tt.equal(x.mul(3).to_dense(), dense * 3) and tt.equal(x.div(2).to_dense(), dense / 2)
    assert tt.equal(x.to_sparse().sqrt().to_dense()[1:], tt.tensor([3.0, 0.0]))


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
    with pytest.raises(ValueError, match="must equal mat2.shape"):
        sparse.mm(a, a)
    with pytest.raises(ValueError, match="pow: exponent is 0: must be a number above 0"):
        a.pow(0)
    with pytest.raises(AttributeError, match="SparseTensor' object has no attribute 'cos'"):
        a.cos()
    empty = tt.sparse_coo_tensor(tt.zeros(2, 0), tt.zeros(0), (2, 3))
    assert (empty @ tt.ones(3, 2)).tolist() == [[0, 0], [0, 0]] and empty.coalesce()._nnz() == 0


# ---- sparse gradients ----


def table(rows=6, columns=2):
    return tt.nn.Parameter(tt.arange(float(rows * columns)).reshape(rows, columns) / 10)


INDICES = [[1, 2, 0], [2, 5, 1]]


def looked_up(weight, **options):
    """Returns weight.grad after a backward of squares, sparse and dense."""
    grads = []
    for sparse_grad in (True, False):
        weight.grad = None
        (
            F.embedding(tt.tensor(INDICES), weight, sparse=sparse_grad, **options) ** 2
        ).sum().backward()
        grads.append(weight.grad)
    weight.grad = None
    return grads


@pytest.mark.parametrize("padding_idx", [None, 0, -1])
def test_embedding_has_a_sparse_gradient(padding_idx):
    weight = table()
    grad, dense = looked_up(weight, padding_idx=padding_idx)
    assert grad.is_sparse and not grad.is_coalesced() and grad.shape == (6, 2)
    assert tt.equal(grad.to_dense(), dense)
    n = 6 - sum(row.count((padding_idx or 0) % 6) for row in INDICES) * (padding_idx is not None)
    assert grad._nnz() == n


@pytest.mark.parametrize("padding_idx", [None, 2])
@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_embedding_bag_has_a_sparse_gradient(mode, padding_idx):
    indices, offsets = tt.tensor([1, 2, 0, 2, 5, 1]), tt.tensor([0, 2, 2])
    grads = []
    for sparse_grad in (True, False):
        weight, factors = table(), tt.arange(6.0).requires_grad_()
        given = {"per_sample_weights": factors} if mode == "sum" else {}
        bags = F.embedding_bag(
            indices,
            weight,
            offsets,
            mode=mode,
            sparse=sparse_grad,
            padding_idx=padding_idx,
            **given,
        )
        (bags**2).sum().backward()
        grads.append((bags, weight.grad, factors.grad))
    (bags, grad, of_factors), (dense_bags, dense, dense_of_factors) = grads
    assert grad.is_sparse and tt.equal(bags, dense_bags)
    tt.testing.assert_close(grad.to_dense(), dense)
    if mode == "sum":
        tt.testing.assert_close(of_factors, dense_of_factors)


def test_sparse_gradients_accumulate():
    layer = nn.Embedding(6, 2, sparse=True)
    x = tt.tensor(INDICES)
    layer(x).sum().backward()
    layer(x[0]).sum().backward()
    assert layer.weight.grad.is_sparse
    assert layer.weight.grad.to_dense().tolist() == [[2, 2], [3, 3], [3, 3], [0, 0], [0, 0], [1, 1]]
    layer.weight.sum().backward()
    assert isinstance(layer.weight.grad, tt.Tensor)
    layer(x[0]).sum().backward()
    assert layer.weight.grad.tolist() == [[4, 4], [5, 5], [5, 5], [1, 1], [1, 1], [2, 2]]
    layer.zero_grad()
    assert layer.weight.grad is None
    layer(x).sum().backward()
    layer.zero_grad(set_to_none=False)
    assert layer.weight.grad._nnz() == 0
    with tt.no_grad():
        assert not layer(x).requires_grad
    doubled = layer.weight * 2  # the gradient of what is no leaf stays dense
    layer.weight.grad = None
    F.embedding(x, doubled, sparse=True).sum().backward()
    assert isinstance(layer.weight.grad, tt.Tensor)


def test_layers_with_sparse_gradients_are_layers():
    for layer, text in (  # PyTorch's, too, leave it out of a bag's
        (nn.Embedding(6, 2, padding_idx=0, sparse=True), "sparse=True)"),
        (nn.EmbeddingBag(6, 2, sparse=True), "mode='mean')"),
    ):
        assert layer.sparse and repr(layer).endswith(text)
        layer(tt.tensor(INDICES)).sum().backward()
        for clone in (copy.deepcopy(layer), copied_by_file(layer)):
            assert clone.sparse and tt.equal(clone.weight, layer.weight)
            clone.zero_grad()
            clone(tt.tensor(INDICES)).sum().backward()
            assert clone.weight.grad.is_sparse
        model = nn.Sequential(layer, nn.Flatten(), nn.LazyLinear(1))
        model.zero_grad()
        model(tt.tensor(INDICES)).sum().backward()
        assert layer.weight.grad.is_sparse
        assert layer.double().weight.grad.dtype is tt.float64


def copied_by_file(layer):
    file = io.BytesIO()
    tt.save(layer, file)
    file.seek(0)
    return tt.load(file, weights_only=False)


def steps(opt, weight, sparse_grad):
    for x in ([[1, 2, 0], [2, 5, 1]], [[3, 3, 3], [1, 1, 0]], [[4, 2, 0], [2, 2, 2]]):
        opt.zero_grad()
        rows = F.embedding(tt.tensor(x), weight, padding_idx=0, sparse=sparse_grad)
        (rows**2).sum().backward()
        opt.step()


def test_sparse_adam_takes_the_steps_of_pytorch():
    weight = table()
    opt = optim.SparseAdam([weight], lr=0.1)
    steps(opt, weight, True)
    rows = [
        [0, 0.1],
        [0.0068, 0.1030],
        [0.2149, 0.3153],
        [0.5256, 0.6256],
        [0.7361, 0.8361],
        [0.9, 1],
    ]
    tt.testing.assert_close(weight.detach(), tt.tensor(rows), rtol=0, atol=6e-5)
    state = opt.state[weight]
    mean = [[0, 0], [0.1120, 0.1880], [0.3840, 0.5], [0.36, 0.42], [0.16, 0.18], [0.2, 0.22]]
    tt.testing.assert_close(state["exp_avg"], tt.tensor(mean), rtol=0, atol=6e-5)
    assert state["step"] == 3
    copied = table()
    other = optim.SparseAdam([copied], lr=0.1)
    other.load_state_dict(opt.state_dict())
    assert tt.equal(other.state[copied]["exp_avg_sq"], state["exp_avg_sq"])


@pytest.mark.parametrize(
    "options", [{}, {"momentum": 0.9}, {"weight_decay": 0.1}, {"maximize": True}]
)
def test_sgd_takes_sparse_gradients_as_dense_ones(options):
    weights = table(), table()
    for weight, sparse_grad in zip(weights, (True, False)):
        steps(optim.SGD([weight], lr=0.1, **options), weight, sparse_grad)
    tt.testing.assert_close(*weights)
    assert weights[0].grad.is_sparse


def test_adagrad_takes_sparse_gradients_and_others_refuse_them():
    weights = table(), table()
    for weight, sparse_grad in zip(weights, (True, False)):
        steps(optim.Adagrad([weight], lr=0.1), weight, sparse_grad)
    tt.testing.assert_close(*weights)
    for make in (optim.Adam, optim.AdamW, optim.RMSprop, optim.Adafactor):
        with pytest.raises(RuntimeError, match=f"{make.__name__} does not support sparse"):
            make(weights[:1]).step()
    tied = table()  # looked up and used whole: the sum of both gradients is dense
    (F.embedding(tt.tensor(INDICES), tied, sparse=True).sum() + tied.sum()).backward()
    optim.Adam([tied]).step()
    assert isinstance(tied.grad, tt.Tensor) and tied.grad[:, 0].tolist() == [2, 3, 3, 1, 1, 2]


def test_sparse_gradients_are_clipped_and_unscaled():
    for clip in (nn.utils.clip_grad_norm_, nn.utils.clip_grad_value_):
        weights = table(), table()
        grads = []
        for weight, sparse_grad in zip(weights, (True, False)):
            other = tt.ones(2, requires_grad=True)
            other.grad = tt.full((2,), 3.0)
            (F.embedding(tt.tensor(INDICES), weight, sparse=sparse_grad) ** 2).sum().backward()
            total = clip([weight, other], 0.5)
            grad = weight.grad.to_dense() if sparse_grad else weight.grad
            grads.append((grad, other.grad, total))
        for x, y in zip(*grads):
            assert x is None and y is None or tt.allclose(x, y)
    weight = table()
    scaler, opt = tt.amp.GradScaler("cpu", init_scale=8.0), optim.SparseAdam([weight])
    scaler.scale(F.embedding(tt.tensor(INDICES), weight, sparse=True).sum()).backward()
    scaler.unscale_(opt)
    assert weight.grad.values().tolist() == [[1, 1], [2, 2], [2, 2], [1, 1]]
    scaler.step(opt)
    scaler.update()
    before = weight.tolist()
    weight.grad = weight.grad * float("inf")
    scaler.step(opt)
    assert weight.tolist() == before


def test_sparse_tables_refuse_what_has_no_sparse_gradient():
    x, weight = tt.tensor(INDICES), table()
    with pytest.raises(ValueError, match="scale_grad_by_freq"):
        F.embedding(x, weight, scale_grad_by_freq=True, sparse=True)
    with pytest.raises(ValueError, match="max"):
        F.embedding_bag(x, weight, mode="max", sparse=True)
    with pytest.raises(IndexError):
        F.embedding(x + 1, weight, sparse=True)


def test_what_is_not_backward_gets_dense_gradients():
    x, weight, other = tt.tensor(INDICES), table(), tt.ones(2, requires_grad=True)
    grads = []
    for sparse_grad in (True, False):

        def loss(w, sparse_grad=sparse_grad):
            return (F.embedding(x, w, sparse=sparse_grad) ** 3 * other).sum()

        grad, of_other = tt.autograd.grad(loss(weight), (weight, other), create_graph=True)
        (of_square,) = tt.autograd.grad((grad**2).sum(), weight)
        (batched,) = tt.autograd.grad(
            F.embedding(x, weight, sparse=sparse_grad).sum((0, 1)),
            weight,
            tt.eye(2),
            is_grads_batched=True,
        )
        plain = weight.detach()
        grads.append(
            (grad, of_other, of_square, batched)
            + (tt.func.grad(loss)(plain), tt.func.jvp(loss, (plain,), (plain,))[1])
            + (tt.func.vmap(lambda i, w=plain: F.embedding(i, w, sparse=True))(x),)
            + (tt.autograd.functional.hessian(loss, plain),)
        )
    for a, b in zip(*grads):
        tt.testing.assert_close(a, b)
    assert weight.grad is None


def test_transforms_and_inputs_within_a_sparse_backward():
    x, weight, other = tt.tensor(INDICES), table(), tt.ones(2, requires_grad=True)

    class Inner(tt.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            return t.clone()

        @staticmethod
        def backward(ctx, grad):
            def inner(w):
                return F.embedding(x, w, sparse=True).sum()

            assert tt.func.grad(inner)(table().detach())[1].tolist() == [2, 2]
            with tt.enable_grad():
                assert tt.autograd.grad(inner(weight), weight)[0][2].tolist() == [2, 2]
            return grad

    Inner.apply((F.embedding(x, weight, sparse=True) * other).sum()).backward()
    assert weight.grad.to_dense()[:, 0].tolist() == [1, 2, 2, 0, 0, 1]
    weight.grad = other.grad = None
    (F.embedding(x, weight, sparse=True) * other).sum().backward(inputs=[other])
    assert weight.grad is None and other.grad is not None
    (F.embedding(x, weight, sparse=True) * other).sum().backward(inputs=[weight])
    assert weight.grad.is_sparse


def test_buffers_of_modules_may_be_sparse():
    module = tt.nn.Linear(2, 2)
    module.register_buffer("adjacency", tt.eye(3).to_sparse())
    assert "adjacency" in module.state_dict() and module.adjacency.is_cpu
    module.double()
    assert module.adjacency.dtype is tt.float64
    other = copy.deepcopy(module)
    module.adjacency = tt.full((3, 3), 2.0, dtype=tt.float64).to_sparse()
    other.load_state_dict(module.state_dict())
    assert other.adjacency.to_dense().tolist() == [[2.0] * 3] * 3
    assert (other.adjacency @ tt.ones(3, 1, dtype=tt.float64)).flatten().tolist() == [6.0] * 3
    with pytest.raises(ValueError, match="must be a sparse tensor of shape"):
        other.adjacency.copy_(tt.eye(3))
    with pytest.raises(TypeError, match="cannot assign 'int' as buffer"):
        other.adjacency = 3
    with pytest.raises(TypeError, match="must be dense"):
        nn.BatchNorm1d(3).running_mean = tt.eye(3).to_sparse()


def test_dense_tensors_name_the_layout_that_a_method_needs():
    dense = tt.ones(2, 3)
    assert dense.sparse_dim() == 0 and dense.dense_dim() == 2
    for method in ("coalesce", "is_coalesced", "indices", "values"):
        with pytest.raises(RuntimeError, match=f"^{method}: self is dense.* sparse_coo"):
            getattr(dense, method)()
    for method in ("crow_indices", "col_indices"):
        with pytest.raises(RuntimeError, match=f"^{method}: self is dense.* sparse_csr"):
            getattr(dense, method)()


def test_compressed_layouts():
    dense = tt.tensor([[0.0, 2, 0, 0], [1, 0, 0, 3]])
    csc, bsr, bsc = dense.to_sparse_csc(), dense.to_sparse_bsr((1, 2)), dense.to_sparse_bsc((2, 2))
    assert csc.layout is tt.sparse_csc and csc.ccol_indices().tolist() == [0, 1, 2, 2, 3]
    assert csc.row_indices().tolist() == [1, 0, 1] and csc.values().tolist() == [1, 2, 3]
    assert bsr.crow_indices().tolist() == [0, 1, 3] and bsr.col_indices().tolist() == [0, 0, 1]
    assert bsr.values().tolist() == [[[0, 2]], [[1, 0]], [[0, 3]]] and bsr._nnz() == 3
    assert bsc.ccol_indices().tolist() == [0, 1, 2] and bsc.row_indices().tolist() == [0, 0]
    x = tt.randn(4, 3)
    for m in (csc, bsr, bsc, dense.to_sparse_csr().to_sparse_csc(), csc.to_sparse_bsr((1, 2))):
        assert tt.equal(m.to_dense(), dense) and tt.equal(m.t().to_dense(), dense.t())
        assert tt.allclose(m @ x, dense @ x) and (-m).layout is m.layout
        assert tt.equal(m.to_sparse_csr().to_dense(), dense)
        assert tt.equal(m.to_sparse().to_dense(), dense) and m.double().dtype is tt.float64
    assert dense.to_sparse_csr().t().layout is tt.sparse_csc
    assert (bsr.t().layout, csc.t().layout) == (tt.sparse_bsc, tt.sparse_csr)
    assert repr(csc) == (
        "tensor(ccol_indices=tensor([0, 1, 2, 2, 3]),\n       row_indices=tensor([1, 0, 1]),\n"
        "       values=tensor([1., 2., 3.]), size=(2, 4), nnz=3, layout=tt.sparse_csc)"
    )


def test_construction_of_compressed_layouts():
    values = tt.tensor([1.0, 2.0, 3.0], requires_grad=True)
    m = tt.sparse_csc_tensor([0, 1, 3], [1, 0, 1], values, (2, 2))
    (m.to_dense() * tt.tensor([[1.0, 2], [3, 4]])).sum().backward()
    assert values.grad.tolist() == [3, 2, 4]
    blocks = tt.arange(8.0).view(2, 2, 2)
    m = tt.sparse_compressed_tensor([0, 1, 2], [1, 0], blocks, layout=tt.sparse_bsr)
    assert m.shape == (4, 4) and m.to_dense()[0].tolist() == [0, 0, 0, 1]
    assert tt.equal(tt.sparse_bsc_tensor([0, 1, 2], [1, 0], blocks).to_dense()[2:, :2], blocks[0])
    for wrong in (
        lambda: tt.sparse_csc_tensor([0, 1, 2], [1, 0, 1], [1.0, 2.0, 3.0]),
        lambda: tt.sparse_bsr_tensor([0, 1, 2], [0, 5], blocks, (4, 4)),
        lambda: tt.sparse_csc_tensor([0, 2, 1], [0], [1.0]),
        lambda: tt.ones(4, 4).to_sparse_bsr((3, 3)),
        lambda: tt.sparse_compressed_tensor([0], [0], [1.0], layout=tt.strided),
    ):
        with pytest.raises((RuntimeError, ValueError), match="sparse_"):
            wrong()
    with pytest.raises(RuntimeError, match="layout"):
        tt.ones(2, 2).to_sparse_csc().crow_indices()


def test_row_indices_are_compressed_and_expanded():
    rows = tt.tensor([0, 0, 2])
    starts = tt._convert_indices_from_coo_to_csr(rows, 4)
    assert starts.tolist() == [0, 2, 2, 3, 3] and starts.dtype is tt.int64
    assert tt._convert_indices_from_coo_to_csr(rows, 4, out_int32=True).dtype is tt.int32
    pairs = tt._convert_indices_from_csr_to_coo(starts, tt.tensor([1, 0, 3]))
    assert pairs.tolist() == [[0, 0, 2], [1, 0, 3]]
    flipped = tt._convert_indices_from_csr_to_coo(starts, tt.tensor([1, 0, 3]), transpose=True)
    assert flipped.tolist() == [[1, 0, 3], [0, 0, 2]]


# ---- functions of tensors ----


def hybrid():
    """A tensor of two sparse dimensions and a dense one, with a place given twice."""
    places = [[0, 1, 1, 0], [2, 0, 2, 2]]
    values = tt.arange(8.0).reshape(4, 2)
    return tt.sparse_coo_tensor(places, values, (2, 3, 2))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tt.cat([x, x * 2]),
        lambda x: tt.cat([x, x * 2], 1),
        lambda x: tt.cat([x, x * 2, x], -1),
        lambda x: tt.stack([x, x * 2]),
        lambda x: tt.stack([x, x * 2], 2),
        lambda x: tt.stack([x, x * 2], -1),
        lambda x: x.unsqueeze(1),
        lambda x: x.unsqueeze(-1),
        lambda x: x.permute(1, 0, 2),
        lambda x: tt.permute(x, (1, 0, 2)),
        lambda x: tt.transpose(x, 0, 1),
        lambda x: x.index_select(1, tt.tensor([2, 0, 2, 1])),
        lambda x: tt.index_select(x, -1, tt.tensor([1, 1, 0])),
        lambda x: x.index_select(0, tt.tensor([1])),
        lambda x: x.select(1, -1),
        lambda x: x.select(-1, 1),
        lambda x: x[1],
        lambda x: x[:, 2],
        lambda x: x[0, 2],
        lambda x: x[0, -1, 1],
        lambda x: tt.add(x, x, alpha=3),
        lambda x: tt.sub(x, x * 3),
        lambda x: tt.mul(x, 3),
        lambda x: x * tt.arange(3.0).reshape(1, 3, 1),
        lambda x: tt.zeros_like(x),
        lambda x: tt.norm(x),
        lambda x: x.norm(1),
        lambda x: tt.sum(x),
        lambda x: tt.sum(x, 0),
        lambda x: x.sum((1, -1)),
        lambda x: x.sum((0, 1), keepdim=True),
        lambda x: tt.sum(x, dim=-1, keepdim=True),
        lambda x: tt.sum(x, 1, dtype=tt.float64),
        lambda x: tt.sum(x.long(), 1),
        lambda x: x.double(),
        lambda x: x.long(),
        lambda x: x.type(tt.float64),
    ],
)
def test_functions_of_sparse_tensors(function):
    x = hybrid()
    found, expected = function(x), function(x.to_dense())
    if isinstance(found, tt.sparse.SparseTensor):
        found = found.to_dense()
    assert found.dtype is expected.dtype and found.shape == expected.shape
    assert tt.allclose(found, expected)


def test_functions_of_sparse_matrices():
    dense = tt.tensor([[0.0, 2, 0], [-1, 0, 3]])
    x, y = dense.to_sparse(), tt.arange(12.0).reshape(3, 4)
    assert tt.equal(tt.addmm(tt.ones(2, 4), x, y, beta=2), 2 + dense @ y)
    assert tt.equal(tt.mv(x, y[:, 0]), dense @ y[:, 0]) and tt.equal(x.mv(y[:, 0]), dense @ y[:, 0])
    assert tt.equal(tt.nn.functional.linear(y.t(), x, tt.ones(2)), y.t() @ dense.t() + 1)
    pair = tt.bmm(tt.stack([x, x * 2]), tt.stack([y, y]))
    assert tt.equal(pair, tt.stack([dense @ y, 2 * dense @ y]))
    assert tt.equal(y.t() @ x.T, y.t() @ dense.t()) and tt.equal(tt.ones(2, 3) + x, 1 + dense)
    assert tt.equal(tt.ones(2, 3).add_(x, alpha=2), 1 + 2 * dense)
    assert tt.equal(tt.relu(x).to_dense(), dense.relu()) and tt.abs(x).is_sparse
    masked = tt.ones(2, 3).sparse_mask(x)
    assert masked.values().tolist() == [1, 1, 1] and tt.equal(masked.to_dense(), (dense != 0) * 1.0)
    other = x.clone()
    assert other.add_(x) is other and tt.equal(other.div_(4).to_dense(), dense / 2)
    assert tt.equal(other.sub_(x).to_dense(), -dense / 2) and len(x) == 2
    assert x.is_leaf and not x.is_cuda and x.grad_fn is None
    assert x.sum(0).is_sparse and isinstance(x.sum((0, 1)), tt.Tensor)
    assert tt.sparse.sum(x, 1, dtype=tt.float64).to_dense().tolist() == [2, 2]
    empty = tt.sparse_coo_tensor((0, 2, 3))
    assert empty.is_coalesced() and tt.bmm(empty, tt.ones(0, 3, 4)).shape == (0, 2, 4)
    assert x.type() == "tt.sparse.FloatTensor" and not x.is_contiguous()
    for other in (x.to_sparse_csr(), x.to_sparse_csc(), x.to_sparse_bsr((1, 3))):
        assert tt.zeros_like(other).layout is other.layout
    assert x[1].shape == (3,) and x[1, 2].item() == 3 and x[0].is_sparse


def test_gradients_through_moves_of_sparse_tensors():
    values = tt.tensor([2.0, -1.0, 3.0], requires_grad=True)
    x = tt.sparse_coo_tensor([[0, 1, 1], [1, 0, 2]], values, (2, 3))
    y = tt.cat([x, x.index_select(0, tt.tensor([1, 1]))]).select(1, 2)
    (y.to_dense() * tt.arange(1.0, 5.0)).sum().backward()
    assert values.grad.tolist() == [0, 0, 2 + 3 + 4]


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda x: tt.cat([x, x.t()]), ValueError, r"cat: tensors are \[2, 3\] and \[3, 2\]"),
        (lambda x: tt.cat([x, tt.ones(2, 3)]), TypeError, "cat.*beside a SparseTensor"),
        (lambda x: x[2], IndexError, "select: index is 2: dim 0 has 2 entries"),
        (lambda x: x[0:1], TypeError, "the key has slice"),
        (lambda x: x.permute(0, 0), ValueError, r"permute: dims is \[0, 0\]"),
        (lambda x: x.unsqueeze(3), IndexError, "unsqueeze: dim is 3"),
        (lambda x: x.index_select(1, tt.tensor([3])), IndexError, "within the 3 entries of dim 1"),
        (lambda x: x.index_select(1, tt.tensor([1.0])), ValueError, "must be int64"),
        (lambda x: x.sum(2), IndexError, "sum: dim is 2"),
        (lambda x: x * tt.ones(2, 2, 3), ValueError, r"mul: self is \[2, 3\]"),
        (lambda x: tt.conv1d(x, x), TypeError, "conv1d.*SparseTensor"),
        (lambda x: x.narrow(0, 0, 1), AttributeError, "narrow"),
    ],
)
def test_what_functions_of_sparse_tensors_refuse(call, error, message):
    with pytest.raises(error, match=message):
        call(tt.tensor([[0.0, 2, 0], [1, 0, 3]]).to_sparse())


def test_matrices_with_given_diagonals():
    rows = tt.arange(1.0, 10).reshape(3, 3).requires_grad_()
    x = sparse.spdiags(rows, tt.tensor([0, -1, 2]), (3, 3))
    assert x.layout is tt.sparse_coo and x.to_dense().tolist() == [[1, 0, 9], [4, 2, 0], [0, 5, 3]]
    wide = sparse.spdiags(rows, tt.tensor([1, -3, 7]), (4, 2), tt.sparse_csr)
    assert wide.to_dense().tolist() == [[0, 2], [0, 0], [0, 0], [4, 0]]
    assert wide.layout is tt.sparse_csr
    assert sparse.spdiags(tt.ones(2), tt.tensor(-1), (2, 2)).to_dense().tolist() == [[0, 0], [1, 0]]
    (x.to_dense() * tt.tensor([[10.0, 0, 3], [2, 1, 1], [1, 1, 1]])).sum().backward()
    assert rows.grad.tolist() == [[10, 1, 1], [2, 1, 0], [0, 0, 3]]
    with pytest.raises(ValueError, match="must be 3 different ones"):
        sparse.spdiags(rows, tt.tensor([0, 0, 1]), (3, 3))
    with pytest.raises(tt.errors.DtypeError, match="offsets are tt.float32: must be int64"):
        sparse.spdiags(rows, tt.ones(3), (3, 3))
    with pytest.raises(tt.errors.ShapeError, match=r"shape is \[-3, 3\]: must be .* two sizes"):
        sparse.spdiags(rows, tt.arange(3), (-3, 3))


def test_printing_coordinates():
    x = tt.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    assert repr(x) == (
        "tensor(indices=tensor([[0, 1],\n                       [2, 0]]),\n"
        "       values=tensor([3., 4.]),\n       size=(2, 3), nnz=2, layout=tt.sparse_coo)"
    )
    lines = repr(tt.ones(16).to_sparse()).splitlines()
    assert lines[0].endswith(" 13,") and lines[1] == " " * 24 + "14, 15]]),"
    assert repr(tt.zeros(2, 0).to_sparse()) == (
        "tensor(indices=tensor([], size=(2, 0)),\n       values=tensor([], size=(0,)),\n"
        "       size=(2, 0), nnz=0, layout=tt.sparse_coo)"
    )


@pytest.mark.parametrize("name", ["isinf", "isposinf", "isneginf", "signbit", "positive"])
def test_more_functions_that_keep_0(name):
    dense = tt.tensor([[0.0, -1], [float("inf"), float("-inf")]])
    found = getattr(dense.to_sparse(), name)().to_dense()
    assert tt.equal(found, getattr(dense, name)())


def test_softmax_of_any_dimension():
    x = tt.tensor([[[1.0, 0, 2], [0, 3, 0]], [[0, 0, 0], [1, 1, -1]]], requires_grad=True)
    a = x.to_sparse()
    for dim in (0, 1, 2, -1):
        scores = tt.where(x == 0, -tt.inf, x)
        dense = tt.where(x == 0, 0, scores.softmax(dim))
        assert tt.allclose(tt.sparse.softmax(a, dim).to_dense(), dense)
        logs = tt.sparse.log_softmax(a, dim).to_dense()
        assert tt.allclose(logs, tt.where(x == 0, 0, scores.log_softmax(dim)))
    vector = tt.sparse.softmax(tt.tensor([1.0, 0, 2]).to_sparse(), 0)
    assert tt.allclose(vector.values(), tt.tensor([1.0, 2]).softmax(0))
    hybrid = tt.sparse_coo_tensor([[0, 1, 1]], tt.arange(6.0).reshape(3, 2), (2, 2))
    assert tt.allclose(tt.sparse.softmax(hybrid, 1).values().sum(1), tt.ones(2))
    (grad,) = tt.autograd.grad(tt.sparse.softmax(a, 2).to_dense()[0, 0, 0], x)
    p = tt.tensor([1.0, 2]).softmax(0)
    assert tt.allclose(grad[0, 0], tt.tensor([p[0] * p[1], 0, -p[0] * p[1]]))
    with pytest.raises(IndexError):
        tt.sparse.softmax(a, 3)


def test_sampled_addmm():
    a = tt.tensor([[1.0, 0, 2], [0, 3, 0]]).to_sparse_csr()
    x = tt.arange(8.0).reshape(2, 4).requires_grad_()
    y = tt.arange(12.0).reshape(4, 3)
    found = tt.sparse.sampled_addmm(a, x, y, beta=0.5, alpha=2.0)
    mask = a.to_dense() != 0
    expected = tt.where(mask, 0.5 * a.to_dense() + 2 * (x @ y), 0)
    assert found.layout is tt.sparse_csr and tt.equal(found.to_dense(), expected)
    ours, theirs = (tt.autograd.grad(t.sum(), x)[0] for t in (found.to_dense(), expected))
    assert tt.equal(ours, theirs)
    with pytest.raises(ValueError, match="m × n"):
        tt.sparse.sampled_addmm(a, x, x)


def test_narrow_copy_and_any():
    x = tt.tensor([[1.0, 0, 2], [0, 3, 0]])
    a = x.to_sparse()
    assert tt.equal(a.narrow_copy(0, 1, 1).to_dense(), x[1:])
    assert tt.equal(a.narrow_copy(-1, -2, 2).to_dense(), x[:, 1:])
    hybrid = tt.sparse_coo_tensor([[1]], [[1.0, 2, 3]], (2, 3))
    assert hybrid.narrow_copy(1, 1, 2).to_dense().tolist() == [[0, 0], [2, 3]]
    with pytest.raises(IndexError, match="within the 2 entries"):
        a.narrow_copy(0, 1, 2)
    assert a.any().item() and not (a * 0).any().item()


def test_any_sees_the_values_that_are_listed():
    x = tt.sparse_coo_tensor(tt.tensor([[0, 0], [1, 1]]), tt.tensor([1.0, -1.0]), (2, 2))
    assert tt.any(x).item() is True and x.any().item() is True
