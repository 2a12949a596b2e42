"""A character model with causal attention: Embedding, LayerNorm, scaled_dot_product_attention,
AdamW in two groups, linear warm-up."""
from common import STEPS, report, same_start, torch

nn = torch.nn
F = nn.functional
torch.manual_seed(0)

text = "the quick brown fox jumps over the lazy dog; pack my box with five dozen liquor jugs. " * 8
chars = sorted(set(text))
index = {c: i for i, c in enumerate(chars)}
data = torch.tensor([index[c] for c in text], dtype=torch.long)
CONTEXT, WIDTH, HEADS = 32, 32, 4


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (
            m.view(b, t, HEADS, c // HEADS).transpose(1, 2) for m in self.qkv(x).split(c, dim=-1)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, c))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(approximate="tanh"), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Embedding(len(chars), WIDTH)
        self.position = nn.Embedding(CONTEXT, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(2))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, len(chars), bias=False)
        self.register_buffer("places", torch.arange(CONTEXT))

    def forward(self, ids, targets=None):
        x = self.token(ids) + self.position(self.places[: ids.size(1)])
        for layer in self.layers:
            x = layer(x)
        logits = self.head(self.norm(x))
        loss = (
            None
            if targets is None
            else F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1))
        )
        return logits, loss


model = same_start(GPT())
decayed = [p for p in model.parameters() if p.dim() >= 2]
others = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW(
    [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
    lr=3e-3,
    betas=(0.9, 0.95),
)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=10)

for step in range(1, STEPS + 1):
    starts = [(step * 31 + i * 77) % (len(data) - CONTEXT - 1) for i in range(8)]
    ids = torch.stack([data[s : s + CONTEXT] for s in starts])
    targets = torch.stack([data[s + 1 : s + CONTEXT + 1] for s in starts])
    _, loss = model(ids, targets)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    report(step, loss.item())

out = data[:8].unsqueeze(0)
with torch.no_grad():
    for _ in range(16):
        logits, _ = model(out[:, -CONTEXT:])
        out = torch.cat([out, logits[:, -1].argmax(dim=-1, keepdim=True)], dim=1)
print("sample", repr("".join(chars[i] for i in out[0].tolist())))
