"""The networks of the training workloads for PyTorch; models.c has the same for tt."""
import torch
import torch.nn as nn
import torch.nn.functional as F

randn = torch.randn


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.ln1, self.ln2, self.heads = nn.LayerNorm(d), nn.LayerNorm(d), heads
        self.qkv, self.proj, self.f1, self.f2 = (
            nn.Linear(d, 3 * d),
            nn.Linear(d, d),
            nn.Linear(d, 4 * d),
            nn.Linear(4 * d, d),
        )

    def forward(self, x):
        batch, length, d = x.shape
        q, k, v = (
            self.qkv(self.ln1(x))
            .view(batch, length, 3, self.heads, d // self.heads)
            .permute(2, 0, 3, 1, 4)
            .unbind(0)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(batch, length, d))
        return x + self.f2(F.gelu(self.f1(self.ln2(x))))


class GPT(nn.Module):
    def __init__(self, vocab=256, d=256, layers=4, heads=8, length=128):
        super().__init__()
        self.embed, self.pos = nn.Embedding(vocab, d), nn.Parameter(randn(length, d) * 0.02)
        self.blocks = nn.Sequential(*[Block(d, heads) for _ in range(layers)])
        self.ln, self.head = nn.LayerNorm(d), nn.Linear(d, vocab)

    def forward(self, tokens):
        return self.head(self.ln(self.blocks(self.embed(tokens) + self.pos)))


def image_net(batch, *layers):
    return nn.Sequential(*layers), randn(batch, 3, 32, 32), torch.randint(0, 10, (batch,))


NETS = {  # name -> function of the batch size that returns module, input, target
    "tiny": lambda batch=4: (
        nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4)),
        randn(batch, 8),
        torch.randint(0, 4, (batch,)),
    ),
    "mlp": lambda batch=128: (
        nn.Sequential(
            nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
        ),
        randn(batch, 784),
        torch.randint(0, 10, (batch,)),
    ),
    "lenet": lambda batch=64: image_net(
        batch,
        nn.Conv2d(3, 6, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, 10),
    ),
    "cnn": lambda batch=64: image_net(
        batch,
        nn.Conv2d(3, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(4096, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    ),
    "gpt": lambda batch=8: (
        GPT(),
        torch.randint(0, 256, (batch, 128)),
        torch.randint(0, 256, (batch, 128)),
    ),
}
