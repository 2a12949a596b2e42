"""A character model with a GRU: names of stars, one character at a time.

The hidden state is carried from one piece of text to the next and cut off from its history.
"""
from common import STEPS, characters, report, same_start

import torch
import torch.nn as nn

STARS = (
    "sirius canopus arcturus vega capella rigel procyon achernar betelgeuse hadar altair acrux "
    "aldebaran antares spica pollux fomalhaut deneb mimosa regulus adhara shaula castor gacrux "
)
LENGTH, BATCH = 24, 8
chars, index = characters(STARS)
data = torch.tensor([index[c] for c in STARS * 8])


class CharRNN(nn.Module):
    def __init__(self, hidden=48, layers=2):
        super().__init__()
        self.embed = nn.Embedding(len(chars), 16)
        self.rnn = nn.GRU(16, hidden, layers, batch_first=True)
        self.decode = nn.Linear(hidden, len(chars))

    def forward(self, x, state=None):
        out, state = self.rnn(self.embed(x), state)
        return self.decode(out), state


model = same_start(CharRNN())
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
criterion = nn.CrossEntropyLoss()
rows = data[: len(data) // BATCH * BATCH].view(BATCH, -1)
state, start = None, 0
for step in range(1, STEPS + 1):
    if start + LENGTH + 1 > rows.size(1):
        state, start = None, 0
    x = rows[:, start : start + LENGTH]
    y = rows[:, start + 1 : start + LENGTH + 1]
    start += LENGTH
    logits, state = model(x, state)
    state = state.detach()
    loss = criterion(logits.reshape(-1, len(chars)), y.reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    report(step, loss.item())

model.eval()
with torch.no_grad():
    token, state, name = torch.tensor([[index["a"]]]), None, "a"
    for _ in range(20):
        logits, state = model(token, state)
        token = logits[:, -1].argmax(dim=-1, keepdim=True)
        name += chars[token.item()]
print("sample", repr(name))
