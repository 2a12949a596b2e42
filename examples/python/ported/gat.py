"""A graph attention network on a grid of two regions: two heads, softmax over each node's edges."""
from common import STEPS, filled, report, same_start

import torch
import torch.nn as nn
import torch.nn.functional as F

SIDE = 7
N = SIDE * SIDE


def grid():
    """Edges (2, E) between neighbours of a square grid, and from each node to itself."""
    edges = [(i, i) for i in range(N)]
    for y in range(SIDE):
        for x in range(SIDE):
            if x + 1 < SIDE:
                edges.append((y * SIDE + x, y * SIDE + x + 1))
            if y + 1 < SIDE:
                edges.append((y * SIDE + x, y * SIDE + x + SIDE))
    edges += [(b, a) for a, b in edges if a != b]
    return torch.tensor(edges, dtype=torch.long).t().contiguous()


class GATLayer(nn.Module):
    def __init__(self, n_in, n_out, heads, concat=True):
        super().__init__()
        self.heads, self.n_out, self.concat = heads, n_out, concat
        self.linear = nn.Linear(n_in, heads * n_out, bias=False)
        self.score_source = nn.Parameter(torch.empty(1, heads, n_out))
        self.score_target = nn.Parameter(torch.empty(1, heads, n_out))
        nn.init.xavier_uniform_(self.score_source)
        nn.init.xavier_uniform_(self.score_target)
        self.leaky = nn.LeakyReLU(0.2)

    def forward(self, x, edges):
        source, target = edges
        h = self.linear(x).view(-1, self.heads, self.n_out)
        scores = (h * self.score_source).sum(-1)[source] + (h * self.score_target).sum(-1)[target]
        scores = self.leaky(scores)
        weights = (scores - scores.max()).exp()  # softmax over the edges that lead to a node
        total = torch.zeros(x.size(0), self.heads).index_add(0, target, weights)
        weights = weights / (total[target] + 1e-16)
        out = torch.zeros_like(h).index_add(0, target, h[source] * weights.unsqueeze(-1))
        return out.flatten(1) if self.concat else out.mean(dim=1)


class GAT(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = GATLayer(4, 8, heads=2)
        self.second = GATLayer(16, 2, heads=1, concat=False)

    def forward(self, x, edges):
        return self.second(F.elu(self.first(x, edges)), edges)


edges = grid()
places = torch.arange(N)
labels = ((places % SIDE) + places.div(SIDE, rounding_mode="floor") >= SIDE).long()
features = filled(N, 4, seed=3) + labels.float().unsqueeze(1) * 1.2
train_mask = places % 3 == 0
model = same_start(GAT())
optimizer = torch.optim.Adam(model.parameters(), lr=0.005, weight_decay=5e-4)
for step in range(1, STEPS + 1):
    out = model(features, edges)
    loss = F.cross_entropy(out[train_mask], labels[train_mask])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    report(step, loss.item())
correct = model(features, edges).argmax(dim=-1).eq(labels)[~train_mask].float().mean().item()
print("accuracy above 0.7", correct > 0.7)
