"""Networks beside PyTorch: a training step and an inference, both libraries in one process.

    PYTHONPATH=bindings/python TT_LIBRARY=build/libtt.so taskset -c 0 \\
        python bench/networks.py [NETWORK…]

Needs torch. Both have the same weights, inputs and AdamW; each step is forward, cross entropy,
backward and update, and the losses of all steps must agree to a part in a thousand. Prints medians
of the clock, the libraries taking turns on one thread: the ratio of PyTorch's time by tt's (above 1
tt is faster), and both in ms.
"""
import statistics
import sys
import time

import tiles  # before torch
import numpy
import torch

import tt

STEPS = 15
BATCH, SIZE, CLASSES = 8, 64, 10  # images of three channels and SIZE × SIZE pixels
AGREE = 1e-3


def norm_relu(n, channels):
    return [n.BatchNorm2d(channels), n.ReLU()]


def resnet(n, lib):
    """Three residual blocks behind a stem of 7 × 7 windows and max pooling."""

    class Block(n.Module):
        def __init__(self, a, b, stride):
            super().__init__()
            self.body = n.Sequential(
                n.Conv2d(a, b, 3, stride, 1, bias=False),
                *norm_relu(n, b),
                n.Conv2d(b, b, 3, 1, 1, bias=False),
                n.BatchNorm2d(b),
            )
            short = [n.Conv2d(a, b, 1, stride, bias=False), n.BatchNorm2d(b)]
            self.short = n.Sequential(*short) if a != b else n.Identity()

        def forward(self, x):
            return n.functional.relu(self.body(x) + self.short(x))

    return n.Sequential(
        n.Conv2d(3, 32, 7, 2, 3, bias=False),
        *norm_relu(n, 32),
        n.MaxPool2d(3, 2, 1),
        Block(32, 32, 1),
        Block(32, 64, 2),
        Block(64, 128, 2),
        n.AdaptiveAvgPool2d(1),
        n.Flatten(),
        n.Linear(128, CLASSES),
    )


def mobilenet(n, lib):
    """Inverted residuals: depthwise convolutions between pointwise ones."""

    class Inverted(n.Module):
        def __init__(self, a, b, stride):
            super().__init__()
            wide = 4 * a
            self.keeps = stride == 1 and a == b
            self.body = n.Sequential(
                n.Conv2d(a, wide, 1, bias=False),
                *norm_relu(n, wide),
                n.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False),
                *norm_relu(n, wide),
                n.Conv2d(wide, b, 1, bias=False),
                n.BatchNorm2d(b),
            )

        def forward(self, x):
            return x + self.body(x) if self.keeps else self.body(x)

    return n.Sequential(
        n.Conv2d(3, 16, 3, 2, 1, bias=False),
        *norm_relu(n, 16),
        Inverted(16, 24, 2),
        Inverted(24, 24, 1),
        Inverted(24, 32, 2),
        Inverted(32, 32, 1),
        n.AdaptiveAvgPool2d(1),
        n.Flatten(),
        n.Linear(32, CLASSES),
    )


def unet(n, lib):
    """Two levels, group norm, upsampling by both modes: a class for each pixel."""
    F = n.functional

    def double(a, b):
        def half(a, b):
            return [n.Conv2d(a, b, 3, padding=1), n.GroupNorm(4, b), n.SiLU()]

        return n.Sequential(*half(a, b), *half(b, b))

    class UNet(n.Module):
        def __init__(self):
            super().__init__()
            self.down1, self.down2, self.middle = double(3, 16), double(16, 32), double(32, 64)
            self.up2, self.up1 = double(96, 32), double(48, 16)
            self.head = n.Conv2d(16, CLASSES, 1)

        def forward(self, x):
            a = self.down1(x)
            b = self.down2(F.max_pool2d(a, 2))
            y = self.middle(F.max_pool2d(b, 2))
            y = F.interpolate(y, scale_factor=2, mode="bilinear", align_corners=False)
            y = self.up2(lib.cat([y, b], 1))
            y = F.interpolate(y, scale_factor=2, mode="nearest")
            return self.head(self.up1(lib.cat([y, a], 1)))

    return UNet()


def vit(n, lib):
    """Three layers of a transformer over 64 patches."""

    class ViT(n.Module):
        def __init__(self):
            super().__init__()
            self.patches = n.Conv2d(3, 64, 8, 8)
            self.position = n.Parameter(lib.zeros(1, 64, 64))
            layer = n.TransformerEncoderLayer(
                64, 4, 128, 0.0, batch_first=True, norm_first=True, activation="gelu"
            )
            self.layers = n.TransformerEncoder(layer, 3, enable_nested_tensor=False)
            self.head = n.Linear(64, CLASSES)

        def forward(self, x):
            x = self.patches(x).flatten(2).transpose(1, 2) + self.position
            return self.head(self.layers(x).mean(1))

    return ViT()


def convnext(n, lib):
    """Three blocks of depthwise 7 × 7 windows and linear layers over channels."""

    class Block(n.Module):
        def __init__(self, width):
            super().__init__()
            self.depthwise = n.Conv2d(width, width, 7, padding=3, groups=width)
            self.norm = n.LayerNorm(width)
            self.mlp = n.Sequential(
                n.Linear(width, 4 * width), n.GELU(), n.Linear(4 * width, width)
            )

        def forward(self, x):
            y = self.mlp(self.norm(self.depthwise(x).permute(0, 2, 3, 1)))
            return x + y.permute(0, 3, 1, 2)

    blocks = [Block(48) for _ in range(3)]
    head = [n.AdaptiveAvgPool2d(1), n.Flatten(), n.Linear(48, CLASSES)]
    return n.Sequential(n.Conv2d(3, 48, 4, 4), *blocks, *head)


def wavenet(n, lib):
    """Gated convolutions of growing dilation over 2,048 samples."""

    class WaveNet(n.Module):
        def __init__(self):
            super().__init__()
            self.first = n.Conv1d(1, 32, 1)
            steps = [2**k for k in range(5)]
            gates = [n.Conv1d(32, 64, 3, padding=step, dilation=step) for step in steps]
            self.gates = n.ModuleList(gates)
            self.mix = n.ModuleList([n.Conv1d(32, 32, 1) for _ in steps])
            self.head = n.Linear(32, CLASSES)

        def forward(self, x):
            x = self.first(x.flatten(1)[:, None, :2048])
            for gate, mix in zip(self.gates, self.mix):
                x = x + mix(n.functional.glu(gate(x), 1))
            return self.head(x.mean(2))

    return WaveNet()


def lstm(n, lib):
    """Two bidirectional layers over 64 tokens."""

    class Tagger(n.Module):
        def __init__(self):
            super().__init__()
            self.embed = n.Embedding(256, 64)
            self.lstm = n.LSTM(64, 128, 2, batch_first=True, bidirectional=True)
            self.head = n.Linear(256, CLASSES)

        def forward(self, x):
            tokens = (x[:, 0, :, 0] * 50 + 128).long().clamp(0, 255)
            return self.head(self.lstm(self.embed(tokens))[0].mean(1))

    return Tagger()


NETWORKS = (resnet, mobilenet, unet, vit, convnext, wavenet, lstm)


class Side:
    """A network in one of the libraries, with its data and optimizer."""

    def __init__(self, lib, network, images, labels):
        self.lib = lib
        self.model = network(lib.nn, lib)
        self.images, self.labels = lib.from_numpy(images), lib.from_numpy(labels)
        self.optimizer = lib.optim.AdamW(self.model.parameters(), 1e-3)

    def step(self):
        self.optimizer.zero_grad()
        loss = self.lib.nn.functional.cross_entropy(self.model(self.images), self.labels)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def infer(self):
        with self.lib.no_grad():
            self.model(self.images)


def timed(run):
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result


def compare(network):
    """Medians in ms: PyTorch's step, tt's step, PyTorch's inference, tt's inference."""
    random = numpy.random.default_rng(0)
    images = random.standard_normal((BATCH, 3, SIZE, SIZE)).astype("float32")
    of_pixels = (SIZE, SIZE) if network is unet else ()
    labels = random.integers(0, CLASSES, (BATCH, *of_pixels))
    torch.manual_seed(0)
    peer, ours = (Side(lib, network, images, labels) for lib in (torch, tt))
    weights = peer.model.state_dict().items()
    ours.model.load_state_dict({key: tt.from_numpy(w.numpy().copy()) for key, w in weights})
    times = {"step": ([], []), "infer": ([], [])}
    for _ in range(STEPS):
        losses = []
        for side, found in zip((peer, ours), times["step"]):
            seconds, loss = timed(side.step)
            found.append(seconds)
            losses.append(loss)
        assert abs(losses[0] - losses[1]) <= AGREE * abs(losses[0]), (network.__name__, losses)
    for side in (peer, ours):
        side.model.eval()
    for _ in range(STEPS):
        for side, found in zip((peer, ours), times["infer"]):
            found.append(timed(side.infer)[0])
    return [statistics.median(found) * 1e3 for pair in times.values() for found in pair]


def main():
    torch.set_num_threads(1)
    tt.set_num_threads(1)
    print("| network | step | tt ms | PyTorch ms | inference | tt ms | PyTorch ms |")
    print("|---|---|---|---|---|---|---|")
    for network in NETWORKS:
        if sys.argv[1:] and network.__name__ not in sys.argv[1:]:
            continue
        a, b, c, d = compare(network)
        cells = f"{a / b:.2f} | {b:.1f} | {a:.1f} | {c / d:.2f} | {d:.1f} | {c:.1f}"
        print(f"| {network.__name__} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
