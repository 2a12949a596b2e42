"""tt.amp: which dtypes autocast gives, its behaviour in functions and backward, and GradScaler."""
import copy
import pickle

import pytest

import tt
from tt import nn
from tt.nn import functional as F

BF16, F32 = tt.bfloat16, tt.float32
A, B = tt.ones(2, 2), tt.ones(2, 2, dtype=BF16)
E = tt.eye(2, dtype=BF16)
IMAGE, KERNEL = tt.ones(1, 1, 4, 4), tt.ones(1, 1, 3, 3)
DTYPES = [
    (lambda: A @ A, BF16),
    (lambda: tt.mm(A, B), BF16),
    (lambda: tt.bmm(A[None], A[None]), BF16),
    (lambda: tt.addmm(A, A, B), BF16),
    (lambda: tt.einsum("ij,jk->ik", A, A), BF16),
    (lambda: F.linear(A, A, A[0]), BF16),
    (lambda: F.conv2d(IMAGE, KERNEL), BF16),
    (lambda: F.conv_transpose2d(IMAGE, KERNEL), BF16),
    (lambda: F.scaled_dot_product_attention(A[None], A[None], A[None]), BF16),
    (lambda: A[0] @ A[0], BF16),
    (lambda: A.mv(A[0]), F32),
    (lambda: B.mv(B[0]), BF16),
    (lambda: tt.dot(A[0], A[0]), F32),
    (lambda: tt.vdot(A[0], A[0]), F32),
    (lambda: tt.inner(A[0], A[0]), F32),
    (lambda: tt.inner(A, A[0]), BF16),
    (lambda: tt.addmv(A[0], A, A[0]), F32),
    (lambda: F.pad(B[None], (1, 1), mode="reflect"), F32),
    (lambda: F.pad(B[None], (1, 1), mode="replicate"), F32),
    (lambda: F.pad(B[None], (1, 1), mode="circular"), BF16),
    (lambda: F.pad(B[None], (1, 1)), BF16),
    (lambda: A.double() @ A.double(), tt.float64),
    (lambda: A.int() @ A.int(), tt.int32),
    (lambda: A + B, F32),
    (lambda: B * 2, BF16),
    (lambda: B.softmax(0), BF16),
    (lambda: B.exp(), BF16),
    (lambda: F.layer_norm(B, (2,)), BF16),
    (lambda: tt.cat([A, B]), F32),
    (lambda: tt.stack([B, B]), BF16),
    (lambda: B.prod(), F32),
    (lambda: F.mse_loss(B, A), F32),
    (lambda: F.l1_loss(B, B), F32),
    (lambda: F.cross_entropy(B, tt.tensor([0, 1])), F32),
    (lambda: F.binary_cross_entropy_with_logits(B, B), F32),
    (lambda: tt.empty(2, 2, dtype=BF16).copy_(A), BF16),
    (lambda: tt.linalg.inv(E), F32),
    (lambda: tt.linalg.svdvals(B), F32),
    (lambda: tt.linalg.eigh(E).eigenvectors, F32),
    (lambda: tt.linalg.lstsq(A, A).solution, F32),
    (lambda: tt.linalg.vecdot(A, A), BF16),
    (lambda: tt.linalg.multi_dot([A, A]), BF16),
    (lambda: tt.fft.rfft(B), tt.complex64),
    (lambda: tt.fft.irfft2(B), F32),
    (lambda: tt.quantile(B, 0.5), F32),
    (lambda: F.avg_pool3d(B[None, None], 1), F32),
    (lambda: F.avg_pool2d(B[None], 1), BF16),
    (lambda: F.soft_margin_loss(B, B), F32),
]


@pytest.mark.parametrize("number", range(len(DTYPES)))
def test_dtypes_of_results(number):
    f, expected = DTYPES[number]
    with tt.autocast("cpu"):
        found = f()
    assert found.dtype == expected


def test_blocks_may_be_nested_and_decorate():
    assert not tt.is_autocast_enabled("cpu") and tt.get_autocast_dtype("cpu") == BF16
    with tt.amp.autocast("cpu", dtype=tt.float16):
        assert (A @ A).dtype == tt.get_autocast_dtype("cpu") == tt.float16
        with tt.autocast("cpu", enabled=False):
            assert (A @ A).dtype == F32 and not tt.is_autocast_cpu_enabled()
        with tt.cpu.amp.autocast():
            assert (A @ A).dtype == BF16
        assert (A @ A).dtype == tt.float16
    product = tt.autocast("cpu")(lambda: A @ A)
    assert product().dtype == BF16 and (A @ A).dtype == F32
    with pytest.raises(KeyError), tt.autocast("cpu"):
        raise KeyError
    assert not tt.is_autocast_enabled("cpu")


def test_wrong_arguments():
    with pytest.raises(RuntimeError, match="cpu"):
        tt.autocast("mps")
    with pytest.raises(TypeError, match="device_type"):
        tt.autocast(1)
    with pytest.warns(UserWarning, match="bfloat16"):
        assert not tt.autocast("cpu", dtype=F32).enabled
    assert tt.amp.is_autocast_available("cpu") and not tt.amp.is_autocast_available("tpu")
    if not tt.cuda.is_available():
        with pytest.warns(UserWarning, match="CUDA"), tt.cuda.amp.autocast():
            assert (A @ A).dtype == F32
        with pytest.warns(UserWarning, match="CUDA"):
            assert not tt.cuda.amp.GradScaler().is_enabled()
            assert tt.cuda.amp.grad_scaler.GradScaler is tt.amp.GradScaler


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers(layer, packed):
    model, x = layer(4, 6, bidirectional=True, batch_first=True), tt.randn(2, 3, 4)
    cell = getattr(nn, layer.__name__ + "Cell")(4, 6)
    if packed:
        x = nn.utils.rnn.pack_padded_sequence(x, [3, 2], batch_first=True)
    with tt.autocast("cpu"):
        found = model(x)
        of_cell = cell(tt.ones(2, 4))
    plain = model(x)
    for a, b in zip(found, plain):
        a, b = (t[0] if isinstance(t, tuple) else t for t in (a, b))
        assert a.dtype == BF16
        tt.testing.assert_close(a.float(), b, rtol=0.05, atol=0.02)
    assert (of_cell[0] if layer is nn.LSTM else of_cell).dtype == BF16
    output = found[0].data if packed else found[0]
    output.float().sum().backward()
    assert all(p.grad.dtype == F32 for p in model.parameters())


def test_recurrent_cells_in_vmap():
    cell, x = nn.GRUCell(4, 6), tt.randn(3, 2, 4)
    with tt.autocast("cpu"):
        found = tt.func.vmap(lambda row: cell(row))(x)
        expected = tt.stack([cell(row) for row in x])
    assert found.dtype == BF16
    tt.testing.assert_close(found, expected, rtol=0.02, atol=0.02)


def test_training_keeps_float32_weights():
    tt.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(8, 3))
    x = tt.randn(4, 1, 4, 4)
    plain = copy.deepcopy(model)
    with tt.autocast("cpu"):
        for _ in range(2):  # the second backward runs through new casts of the weights
            loss = model(x).float().pow(2).mean()
            loss.backward()
    for _ in range(2):
        plain(x).pow(2).mean().backward()
    for p, q in zip(model.parameters(), plain.parameters()):
        assert p.dtype == p.grad.dtype == F32
        tt.testing.assert_close(p.grad, q.grad, rtol=0.1, atol=0.05)


class Product(tt.autograd.Function):
    seen = []

    @staticmethod
    @tt.amp.custom_fwd(device_type="cpu")
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return a @ a

    @staticmethod
    @tt.amp.custom_bwd(device_type="cpu")
    def backward(ctx, grad):
        Product.seen.append((tt.is_autocast_enabled("cpu"), (A @ A).dtype))
        return grad.float()


class InFloat32(tt.autograd.Function):
    @staticmethod
    @tt.amp.custom_fwd(device_type="cpu", cast_inputs=F32)
    def forward(ctx, a):
        return a @ a

    @staticmethod
    @tt.amp.custom_bwd(device_type="cpu")
    def backward(ctx, grad):
        Product.seen.append((tt.is_autocast_enabled("cpu"), grad.dtype))
        return grad


def test_functions_of_the_application():
    Product.seen.clear()
    x = tt.ones(2, 2, requires_grad=True)
    with tt.autocast("cpu"):
        y = Product.apply(x)
        z = InFloat32.apply(B.detach().requires_grad_())
    assert y.dtype == BF16 and z.dtype == F32
    with tt.autocast("cpu"):
        y.sum().backward()
        z.sum().backward()
    assert Product.seen == [(True, BF16), (False, F32)]

    class Module(nn.Module):
        def forward(self, a):
            return a @ a

    with tt.autocast("cpu"):
        assert nn.Sequential(Module())(A).dtype == BF16


def test_checkpoint_computes_again_under_autocast():
    dtypes = []

    def f(a):
        dtypes.append((a @ a).dtype)
        return (a @ a).sum()

    for use_reentrant in (True, False):
        x = tt.ones(2, 2, requires_grad=True)
        with tt.autocast("cpu"):
            y = tt.utils.checkpoint.checkpoint(f, x, use_reentrant=use_reentrant)
        y.backward()
        assert x.grad.tolist() == [[4, 4], [4, 4]]
    assert dtypes == [BF16] * 4


# ---- GradScaler ----


def test_scale_follows_inf():
    p = tt.zeros(2, requires_grad=True)
    opt = tt.optim.SGD([p], lr=1.0)
    scaler = tt.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    scales = []
    for value in (1.0, 1.0, float("inf"), float("nan"), 1.0, 1.0, 1.0):
        opt.zero_grad()
        scaler.scale(p.sum() * value).backward()
        scaler.step(opt)
        scaler.update()
        scales.append(scaler.get_scale())
    assert scales == [8, 16, 8, 4, 4, 8, 8]
    assert p.tolist() == [-5, -5]
    assert scaler.state_dict() == {
        "scale": 8.0,
        "growth_factor": 2.0,
        "backoff_factor": 0.5,
        "growth_interval": 2,
        "_growth_tracker": 1,
    }
    other = tt.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == 8 and pickle.loads(pickle.dumps(scaler)).get_scale() == 8


def test_unscaled_gradients_may_be_clipped():
    p = tt.zeros(2, requires_grad=True)
    opt = tt.optim.Adam([p])
    scaler = tt.amp.GradScaler("cpu", init_scale=1024.0)
    scaler.scale((p * tt.tensor([3.0, 4.0])).sum()).backward()
    scaler.unscale_(opt)
    assert p.grad.tolist() == [3, 4]
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(opt)
    scaler.step(opt)
    with pytest.raises(RuntimeError, match="step"):
        scaler.step(opt)
    scaler.update()
    scaler.update(2.0)
    assert scaler.get_scale() == 2
    assert [x.item() for x in scaler.scale([tt.tensor(1.0), tt.tensor(2.0)])] == [2, 4]
    with pytest.raises(AssertionError, match="inf checks"):
        scaler.update()
    half = tt.zeros(1, dtype=tt.float16, requires_grad=True)
    half.grad = tt.ones(1, dtype=tt.float16)
    with pytest.raises(ValueError, match="FP16"):
        scaler.unscale_(tt.optim.SGD([half], lr=0.1))
    with pytest.raises(AssertionError, match="scale"):
        tt.amp.GradScaler("cpu").step(opt)
    off = tt.amp.GradScaler("cpu", enabled=False)
    assert off.scale(p) is p and off.get_scale() == 1 and off.state_dict() == {}
    off.step(opt)
    off.update()


@pytest.mark.parametrize("dtype", [tt.float16, BF16, F32, tt.float64, tt.complex64])
def test_gradients_of_all_layouts_are_unscaled(dtype):
    p = tt.zeros(40, 30, dtype=dtype).requires_grad_()
    opt = tt.optim.SGD([p], lr=1.0)
    for bad in (None, float("inf"), float("-inf"), float("nan")):
        grad = tt.ones(30, 40, dtype=dtype).T
        if bad is not None:
            grad[39, 29] = bad
        p.grad = grad
        scaler = tt.amp.GradScaler("cpu", init_scale=4.0)
        scaler.scale(tt.ones(()))
        assert scaler._unscaled(opt, True) == (bad is not None)
        assert p.grad[0, 0].item() == 0.25


@pytest.mark.parametrize("dim", [(1,), (0, 1)])
def test_the_gradient_of_logsumexp_is_not_of_its_rounded_result(dim):
    x = tt.linspace(-4, 4, 2048, dtype=BF16).reshape(4, 512).requires_grad_()
    x.logsumexp(dim).sum().backward()
    powers = x.detach().double().exp()
    want = powers / powers.sum(dim, keepdim=True)
    assert ((x.grad.double() - want).abs() / want).max() < 1.01 * 2.0**-8
