"""A character model with nn.TransformerEncoder, sines as positions and a causal mask."""
import math

from common import STEPS, characters, report, same_start

import torch
import torch.nn as nn
import torch.nn.functional as F

TEXT = (
    "a watched pot never boils. the early bird catches the worm. still waters run deep. "
    "all that glitters is not gold. actions speak louder than words. better late than never. "
)
CONTEXT, WIDTH = 32, 32
chars, index = characters(TEXT)
data = torch.tensor([index[c] for c in TEXT * 4])


class PositionalEncoding(nn.Module):
    def __init__(self, width, length):
        super().__init__()
        position = torch.arange(length).unsqueeze(1)
        scale = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        table = torch.zeros(length, width)
        table[:, 0::2] = torch.sin(position * scale)
        table[:, 1::2] = torch.cos(position * scale)
        self.register_buffer("table", table)

    def forward(self, x):
        return x + self.table[: x.size(1)]


class TransformerModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(len(chars), WIDTH)
        self.position = PositionalEncoding(WIDTH, CONTEXT)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.decode = nn.Linear(WIDTH, len(chars))

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.size(1))
        x = self.position(self.embed(x) * math.sqrt(WIDTH))
        return self.decode(self.encoder(x, mask=mask, is_causal=True))


model = same_start(TransformerModel())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 20, gamma=0.9)
for step in range(1, STEPS + 1):
    starts = [(step * 41 + 59 * i) % (len(data) - CONTEXT - 1) for i in range(8)]
    x = torch.stack([data[s : s + CONTEXT] for s in starts])
    y = torch.stack([data[s + 1 : s + CONTEXT + 1] for s in starts])
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    scheduler.step()
    report(step, loss.item())
