"""Time series: two LSTMCells learn a sine wave with LBFGS, then continue it."""
from common import STEPS, report, same_start

import torch
import torch.nn as nn
import torch.optim as optim

LENGTH, WAVES = 40, 6


class Sequence(nn.Module):
    def __init__(self, hidden=16):
        super(Sequence, self).__init__()
        self.hidden = hidden
        self.lstm1 = nn.LSTMCell(1, hidden)
        self.lstm2 = nn.LSTMCell(hidden, hidden)
        self.linear = nn.Linear(hidden, 1)

    def forward(self, input, future=0):
        outputs = []
        h_t = torch.zeros(input.size(0), self.hidden, dtype=torch.double)
        c_t, h_t2, c_t2 = (torch.zeros_like(h_t) for _ in range(3))
        for input_t in input.split(1, dim=1):
            h_t, c_t = self.lstm1(input_t, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        for _ in range(future):
            h_t, c_t = self.lstm1(output, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        return torch.cat(outputs, dim=1)


starts = torch.arange(WAVES, dtype=torch.double).unsqueeze(1) * 2.3
data = torch.sin((torch.arange(LENGTH + 1, dtype=torch.double) + starts) / 3.0)
input, target = data[:, :-1], data[:, 1:]
seq = same_start(Sequence()).double()
criterion = nn.MSELoss()
optimizer = optim.LBFGS(seq.parameters(), lr=0.5, max_iter=2)


def closure():
    optimizer.zero_grad()
    loss = criterion(seq(input), target)
    loss.backward()
    return loss


for step in range(1, STEPS + 1):
    loss = optimizer.step(closure)
    report(step, loss.item())
with torch.no_grad():
    pred = seq(input, future=20)
print("goes on for", pred.shape[1] - LENGTH)
