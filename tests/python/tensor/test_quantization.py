"""Quantisation: fake quantisation and its gradient, integers, products of 8-bit integers."""
import sys
import unittest
from pathlib import Path

import tt
from tt.ao import quantization as q

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


class FakeQuantize(unittest.TestCase):
    def test_schemes_of_pytorch(self):
        x = tt.arange(-6.0, 6).view(3, 4)
        for observer, dtype, scheme, scale, zero in (  # PyTorch's numbers
            (q.MinMaxObserver, tt.quint8, tt.per_tensor_affine, [11 / 255], [139]),
            (q.MinMaxObserver, tt.qint8, tt.per_tensor_symmetric, [12 / 255], [0]),
            (q.MinMaxObserver, tt.quint8, tt.per_tensor_symmetric, [12 / 255], [128]),
            (
                q.PerChannelMinMaxObserver,
                tt.qint8,
                tt.per_channel_symmetric,
                [12 / 255, 4 / 255, 10 / 255],
                [0, 0, 0],
            ),
        ):
            fake = q.FakeQuantize(observer=observer, dtype=dtype, qscheme=scheme)
            fake(x)
            self.assertTrue(tt.allclose(fake.scale, tt.tensor(scale)))
            self.assertEqual(fake.zero_point.tolist(), zero)
        self.assertEqual(repr(tt.per_tensor_affine), "tt.per_tensor_affine")
        with self.assertRaisesRegex(ValueError, "does not fit ch_axis"):
            q.MinMaxObserver(qscheme=tt.per_channel_affine)

    def test_gradient_passes_where_nothing_is_clamped(self):
        x = tt.tensor([-3.0, -1.0, 0.04, 0.06, 1.4, 1.6, 9.0], requires_grad=True)
        y = tt.fake_quantize_per_tensor_affine(x, 0.1, 0, -15, 15)
        want = [-1.5, -1.0, 0.0, 0.1, 1.4, 1.5, 1.5]
        self.assertTrue(tt.allclose(y, tt.tensor(want)))
        y.sum().backward()
        self.assertEqual(x.grad.tolist(), [0, 1, 1, 1, 1, 0, 0])

    def test_per_channel(self):
        x = tt.randn(3, 4, requires_grad=True)
        scale, zero = tt.tensor([0.1, 0.2, 0.5]), tt.tensor([0, 2, -1])
        y = tt.fake_quantize_per_channel_affine(x, scale, zero, 0, -8, 7)
        for i in range(3):
            row = tt.fake_quantize_per_tensor_affine(x[i], scale[i], zero[i], -8, 7)
            self.assertEqual(y[i].tolist(), row.tolist())
        y.sum().backward()
        self.assertEqual(set(x.grad.flatten().tolist()) - {0.0, 1.0}, set())

    def test_half_and_double(self):
        for dtype in (tt.float16, tt.bfloat16, tt.float64):
            x = tt.tensor([0.3, -0.7], dtype=dtype)
            self.assertIs(tt.fake_quantize_per_tensor_affine(x, 0.5, 0, -8, 7).dtype, dtype)

    def test_refusals(self):
        x = tt.ones(2, 3)
        fake = tt.fake_quantize_per_tensor_affine
        for scale, zero, low, high in (
            (0, 0, 0, 9),
            (float("nan"), 0, 0, 9),
            (1, 10, 0, 9),
            (1, 0, 9, 0),
        ):
            self.assertRaises(ValueError, fake, x, float(scale), zero, low, high)
        self.assertRaises(tt.TtError, fake, x.to(tt.int32), 1.0, 0, 0, 9)
        per_channel = tt.fake_quantize_per_channel_affine
        self.assertRaises(ValueError, per_channel, x, tt.ones(2), tt.zeros(2), 1, 0, 9)
        self.assertRaises(ValueError, q.quantize_per_tensor, x, 1.0, 0, -1, 9, tt.uint8)


class Blocks(unittest.TestCase):
    def test_there_and_back(self):
        x = tt.randn(3, 2, 64)
        for name, bytes_of_block, error in (("q8_0", 34, 0.006), ("q4_0", 18, 0.13)):
            packed = q.quantize_blockwise(x, name)
            self.assertIs(packed.dtype, tt.uint8)
            self.assertEqual(packed.shape, (3, 2, 2 * bytes_of_block))
            numbers = q.dequantize_blockwise(packed, name)
            most = x.reshape(3, 2, 2, 32).abs().amax(-1, keepdim=True)
            errors = (numbers - x).reshape(3, 2, 2, 32).abs() / most
            self.assertLess(float(errors.max()), error)
            again = q.quantize_blockwise(numbers, name)
            self.assertEqual(q.dequantize_blockwise(again, name).tolist(), numbers.tolist())

    def test_special_numbers(self):
        x = tt.zeros(5, 32)
        x[1, 3], x[2, 4], x[3, 5], x[4, 6] = float("nan"), float("inf"), 1e30, 1e-40
        for name in ("q8_0", "q4_0"):
            numbers = q.dequantize_blockwise(q.quantize_blockwise(x, name), name)
            self.assertEqual(numbers[0].tolist(), [0.0] * 32)
            self.assertTrue(all(not bool(row.isfinite().all()) for row in numbers[1:4]))
            self.assertEqual(numbers[4].abs().tolist(), [0.0] * 32)

    def test_linear_and_its_gradient(self):
        w, bias = tt.randn(7, 64), tt.randn(7, requires_grad=True)
        for name in ("q8_0", "q4_0"):
            packed = q.quantize_blockwise(w, name)
            numbers = q.dequantize_blockwise(packed, name)
            for rows in ((), (1,), (5,), (3, 4)):
                x = tt.randn(*rows, 64, requires_grad=True)
                y = q.blockwise_linear(x, packed, bias, name)
                want = tt.nn.functional.linear(x, numbers, bias)
                self.assertTrue(tt.allclose(y, want, atol=1e-4))
                got = tt.autograd.grad(y.square().sum(), [x, bias])
                for a, b in zip(got, tt.autograd.grad(want.square().sum(), [x, bias])):
                    self.assertTrue(tt.allclose(a, b, atol=1e-3, rtol=1e-3))
            for dtype in (tt.float16, tt.bfloat16, tt.float64):
                y = q.blockwise_linear(x.detach().to(dtype), packed, None, name)
                self.assertIs(y.dtype, dtype)

    def test_model(self):
        tt.manual_seed(0)
        model = tt.nn.Sequential(
            tt.nn.Embedding(11, 64), tt.nn.Linear(64, 96), tt.nn.ReLU(), tt.nn.Linear(96, 5)
        )
        indices = tt.tensor([[1, 2, 10], [0, 0, 3]])
        want = model(indices)
        for name, error in (("q8_0", 0.01), ("q4_0", 0.2)):
            packed = tt.nn.Sequential(*[tt.nn.Sequential(m) for m in model])
            q.quantize_(packed, q.BlockwiseWeightOnlyConfig(name))
            kinds = [type(m[0]) for m in packed]
            self.assertEqual(kinds.count(q.BlockwiseLinear), 2)
            self.assertEqual(kinds.count(q.BlockwiseEmbedding), 1)
            self.assertLess(float((packed(indices) - want).abs().max()), error)
            state = packed.state_dict()
            self.assertIs(state["1.0.weight"].dtype, tt.uint8)
            compiled = tt.compile(packed.eval())
            with tt.no_grad():
                for _ in range(3):
                    self.assertEqual(compiled(indices).tolist(), packed(indices).tolist())
        only = tt.nn.Sequential(tt.nn.Linear(32, 32), tt.nn.Linear(32, 32), tt.nn.Linear(31, 32))
        q.quantize_(only, q.BlockwiseWeightOnlyConfig("q4_0"), lambda m, name: name == "1")
        self.assertEqual([type(m) is tt.nn.Linear for m in only], [True, False, True])
        q.quantize_(only, q.BlockwiseWeightOnlyConfig())
        self.assertEqual([type(m) is tt.nn.Linear for m in only], [False, False, True])

    def test_refusals(self):
        packed = q.quantize_blockwise(tt.ones(2, 32), "q8_0")
        x = tt.ones(1, 32)
        self.assertRaises(ValueError, q.quantize_blockwise, tt.ones(2, 33), "q8_0")
        self.assertRaises(ValueError, q.quantize_blockwise, x, "q4_k")
        self.assertRaises(ValueError, q.dequantize_blockwise, packed, "q4_0")
        self.assertRaises(ValueError, q.blockwise_linear, x, packed, None, "q4_0")
        self.assertRaises(ValueError, q.blockwise_linear, x, packed, tt.ones(3), "q8_0")
        self.assertRaises(tt.TtError, q.blockwise_linear, x, x, None, "q8_0")
        self.assertRaises(tt.TtError, q.blockwise_linear, x.long(), packed, None, "q8_0")
        self.assertRaises(ValueError, q.BlockwiseWeightOnlyConfig, "q2_k")


class Integers(unittest.TestCase):
    def test_there_and_back(self):
        x = tt.rand(50) * 2 - 1
        i = q.quantize_per_tensor(x, 0.01, 5, -128, 127, tt.int8)
        self.assertIs(i.dtype, tt.int8)
        y = q.dequantize_per_tensor(i, 0.01, 5, -128, 127, tt.int8)
        self.assertLess(float((x - y).abs().max()), 0.00501)

    def test_products_are_exact(self):
        tt.manual_seed(1)
        for m, n, k in ((1, 1, 1), (3, 40, 5), (50, 33, 70), (13, 64, 1023)):
            for low, dtype in ((-128, tt.int8), (0, tt.uint8)):
                a = tt.randint(low, low + 256, (m, k)).to(dtype)
                b = tt.randint(-128, 128, (n, k)).to(tt.int8)
                got = tt._int_mm(a, b.t())
                want = a.to(tt.int64) @ b.t().to(tt.int64)
                self.assertIs(got.dtype, tt.int32)
                self.assertTrue(bool((got == want).all()), (m, n, k, dtype))
                self.assertTrue(bool((tt._int_mm(b, a.t()) == want.t()).all()))

    def test_refusals(self):
        a = tt.ones(2, 3, dtype=tt.int8)
        self.assertRaises(tt.TtError, tt._int_mm, a, a)
        self.assertRaises(tt.TtError, tt._int_mm, a, tt.ones(3, 2))
        one, zero = tt.tensor(0.1), tt.tensor(0)
        linear = q.quantized_linear
        self.assertRaises(tt.TtError, linear, a, tt.ones(3), zero, a, one)
        self.assertRaises(tt.TtError, linear, a, one, zero, a.to(tt.uint8), one)
        self.assertRaises(tt.TtError, linear, a, one, zero, a, one, tt.ones(3))
        image = tt.ones(1, 2, 4, 4, dtype=tt.int8)
        weight = tt.ones(2, 2, 3, 3, dtype=tt.int8)
        conv = q.quantized_conv2d
        self.assertRaises(tt.TtError, conv, image, 0.1, 200, weight, one)
        self.assertRaises(tt.TtError, conv, image, 0.1, 0, weight, one, padding=-1)
        self.assertRaises(tt.TtError, conv, image, 0.1, 0, weight, one, padding=1 << 62)
        self.assertRaises(tt.TtError, conv, image, 0.1, 0, weight, one, groups=3)


def bounds(x, weight, bias):
    """Sums in double precision, and by how much rounding x and weight to 8 bits may change them:
    x by a step of its row, weight by half a step of its output."""
    x, weight = x.to(tt.float64), weight.to(tt.float64)
    steps = (x.amax(-1).clamp(min=0) - x.amin(-1).clamp(max=0)).unsqueeze(-1) / 255
    half = weight.abs().amax(-1) / 254
    wide = x.abs().sum(-1, keepdim=True) * half + x.shape[-1] * steps * half
    return x @ weight.T + bias.to(tt.float64), steps * weight.abs().sum(-1) + wide + 1e-6


class Dynamic(unittest.TestCase):
    """Linear layers whose input is quantised in each call."""

    def setUp(self):
        tt.manual_seed(0)
        nn = tt.nn
        self.model = nn.Sequential(
            nn.Linear(64, 48), nn.ReLU(), nn.Sequential(nn.Linear(48, 48), nn.Linear(48, 5))
        )

    def test_rows(self):
        layer = tt.nn.Linear(70, 33)
        quantized = q.DynamicQuantizedLinear.from_float(layer)
        self.assertIs(quantized.weight.dtype, tt.int8)
        for shape in ((70,), (1, 70), (2, 5, 70), (0, 70)):
            x = tt.randn(*shape)
            if x.ndim == 3:
                x[0] *= 1000
                x[1, 0] = 0
                x[1, 1] = x[1, 1].abs() + 3
            with tt.no_grad():
                y = quantized(x)
                want, error = bounds(x, layer.weight, layer.bias) if x.numel() else (y, y)
            self.assertEqual(y.shape, (*shape[:-1], 33))
            self.assertTrue(bool(((y - want).abs() <= error).all()))
        self.assertIs(quantized(tt.ones(2, 70).to(tt.float16)).dtype, tt.float16)
        self.assertIn("in_features=70, out_features=33", repr(quantized))

    def test_quantize_dynamic(self):
        x = tt.randn(7, 64)
        want = self.model(x)
        for spec in (None, {tt.nn.Linear}, {"2", "0"}):
            got = q.quantize_dynamic(self.model, spec, dtype=tt.int8)
            self.assertIs(type(self.model[0]), tt.nn.Linear)
            kinds = [type(m) for m in got.modules()]
            self.assertEqual(kinds.count(q.DynamicQuantizedLinear), 3)
            self.assertLess(float((got(x) - want).abs().max()), 0.02 * float(want.abs().max()))
        usual = q.quantize_dynamic(self.model, {tt.nn.Linear: q.default_dynamic_qconfig}, tt.qint8)
        self.assertEqual(repr(usual), repr(q.quantize_dynamic(self.model)))
        got = q.quantize_dynamic(self.model, {"2.1"})
        self.assertEqual([type(m) for m in got[2]], [tt.nn.Linear, q.DynamicQuantizedLinear])
        again = q.quantize_dynamic(self.model, inplace=True)
        self.assertIs(again, self.model)
        state = again.state_dict()
        self.assertIs(state["0.weight"].dtype, tt.int8)
        self.assertRaises(NotImplementedError, q.quantize_dynamic, self.model, {tt.nn.GRU})
        none = q.quantize_dynamic(self.model, {tt.nn.Linear: None})
        self.assertEqual(repr(none), repr(self.model))
        self.assertRaises(NotImplementedError, q.quantize_dynamic, self.model, dtype=tt.float16)

    def test_dynamic_lstm(self):
        for options in (
            {},
            {"num_layers": 2, "batch_first": True, "bidirectional": True, "dropout": 0.5},
            {"bias": False},
        ):
            layer = tt.nn.LSTM(16, 24, **options).eval()
            got = q.quantize_dynamic(tt.nn.Sequential(layer), {tt.nn.LSTM}).eval()[0]
            self.assertIs(type(got), q.DynamicQuantizedLSTM)
            k = layer.num_layers * (2 if layer.bidirectional else 1)
            for x, shape in ((tt.randn(5, 3, 16), (k, 3, 24)), (tt.randn(4, 16), (k, 24))):
                if layer.batch_first and x.ndim == 3:
                    x = x.transpose(0, 1)
                states = (tt.randn(shape), tt.randn(shape))
                for hx in (None, states):
                    with tt.no_grad():
                        want, last = layer(x, hx)
                        out, (h, c) = got(x, hx)
                    for a, b in ((out, want), (h, last[0]), (c, last[1])):
                        self.assertEqual(a.shape, b.shape)
                        self.assertLess(float((a - b).abs().max()), 0.02)
        self.assertIn("DynamicQuantizedLSTM(\n  16, 24, bias=False\n", repr(got))
        self.assertIs(got.state_dict()["input_products.0.weight"].dtype, tt.int8)
        packed = tt.nn.utils.rnn.pack_sequence([tt.randn(2, 16)])
        self.assertRaises(NotImplementedError, got, packed)
        right, turned = tt.zeros(1, 3, 24), tt.zeros(1, 24, 3)
        for x, hx in (
            (tt.zeros(5, 3, 16), (right, turned)),
            (tt.zeros(5, 3, 16), (turned, right)),
            (tt.zeros(3, 16), (right, right)),
            (tt.zeros(5, 3, 2, 16), None),
            (tt.zeros(5, 3, 15), None),
            (tt.zeros(0, 3, 16), None),
        ):
            for module in (layer, got):
                self.assertRaises(tt.errors.ShapeError, module, x, hx)
        projected = tt.nn.LSTM(4, 4, proj_size=2)
        self.assertRaises(NotImplementedError, q.quantize_dynamic, tt.nn.Sequential(projected))

    def test_quantize(self):
        both = tt.nn.Sequential(tt.nn.Embedding(9, 64), self.model)
        at = tt.tensor([1, 8, 0])
        want = both(at)
        q.quantize_(both, q.Int8DynamicActivationInt8WeightConfig())
        self.assertIs(type(both[0]), tt.nn.Embedding)
        self.assertIs(type(self.model[0]), q.DynamicQuantizedLinear)
        self.assertLess(float((both(at) - want).abs().max()), 0.02 * float(want.abs().max()))
        config = q.Int8DynamicActivationInt8WeightConfig()
        self.assertRaises(TypeError, q.quantize_, both, config, lambda m, name: True)

    def test_the_qconfig_of_a_model(self):
        config = q.QConfig(q.default_fake_quant, q.default_weight_fake_quant)
        self.model.qconfig = config
        layer = q.prepare_qat(self.model)[0]
        self.assertIsNone(layer.weight_fake_quant.activation_post_process.ch_axis)


class Observers(unittest.TestCase):
    def test_ranges(self):
        o = q.MinMaxObserver(dtype=tt.uint8)
        o(tt.tensor([0.5, 2.0]))
        o(tt.tensor([-0.5, 1.0]))
        scale, zero = o.calculate_qparams()
        self.assertAlmostEqual(float(scale), 2.5 / 255, 6)
        self.assertEqual(int(zero), 51)
        o = q.MovingAverageMinMaxObserver(averaging_constant=0.5)
        o(tt.tensor([0.0, 2.0]))
        o(tt.tensor([-1.0, 4.0]))
        self.assertEqual((float(o.min_val), float(o.max_val)), (-0.5, 3.0))
        o = q.PerChannelMinMaxObserver(dtype=tt.int8, symmetric=True)
        o(tt.tensor([[-1.0, 0.5], [0.25, 2.0]]))
        scale, zero = o.calculate_qparams()
        self.assertTrue(tt.allclose(scale, tt.tensor([1.0, 2.0]) / 127.5))
        self.assertEqual(zero.tolist(), [0, 0])

    def test_constant_and_empty_input(self):
        o = q.MinMaxObserver()
        o(tt.zeros(0, 3))
        o(tt.zeros(3))
        scale, zero = o.calculate_qparams()
        self.assertGreater(float(scale), 0)


class Training(unittest.TestCase):
    """The network of train_digits.py: integers lose at most 0.3 points."""

    def test_digits(self):
        sys.path.insert(0, str(EXAMPLES / "python"))
        import train_digits as digits

        tt.manual_seed(0)
        images, labels = digits.read(EXAMPLES / "data/digits.csv")
        n = digits.TRAIN
        model = digits.build()
        train(model, images[:n], labels[:n], 6, 0.01)
        right = accuracy(model, images[n:], labels[n:])
        qat = q.prepare_qat(model)
        self.assertIs(type(qat[0]), q.QATConv2d)
        self.assertIs(type(model[0]), tt.nn.Conv2d)
        train(qat, images[:n], labels[:n], 1, 0.002)
        qat.apply(q.disable_observer)
        integers = q.convert(qat)
        self.assertIs(type(integers[10]), q.QuantizedLinear)
        self.assertIs(integers[0].weight.dtype, tt.int8)
        got = accuracy(integers, images[n:], labels[n:])
        self.assertGreaterEqual(got, right - 0.003, (got, right))
        # Rounding is all that convert changes: the integers give what fake quantisation gave.
        with tt.no_grad():
            fake, exact = qat.eval()(images[:20]), integers(images[:20])
        self.assertLess(float((fake - exact).abs().max()), 0.2)


def train(model, images, labels, epochs, lr):
    model.train()
    optimizer = tt.optim.Adam(model.parameters(), lr)
    for _ in range(epochs):
        order = tt.randperm(len(images))
        for i in range(0, len(images), 50):
            rows = order[i : i + 50]
            optimizer.zero_grad()
            loss = tt.nn.functional.cross_entropy(model(images[rows]), labels[rows])
            loss.backward()
            optimizer.step()


def accuracy(model, images, labels):
    model.eval()
    with tt.no_grad():
        return float((model(images).argmax(1) == labels).to(tt.float32).mean())


if __name__ == "__main__":
    unittest.main()
