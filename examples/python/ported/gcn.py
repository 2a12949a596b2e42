"""A graph convolutional network on Zachary's karate club: two known members, all others guessed.

The normalised adjacency matrix is sparse.
"""
from common import STEPS, report, same_start

import torch
import torch.nn as nn
import torch.nn.functional as F

FRIENDS = (
    "1-2 1-3 1-4 1-5 1-6 1-7 1-8 1-9 1-11 1-12 1-13 1-14 1-18 1-20 1-22 1-32 2-3 2-4 2-8 2-14 "
    "2-18 2-20 2-22 2-31 3-4 3-8 3-9 3-10 3-14 3-28 3-29 3-33 4-8 4-13 4-14 5-7 5-11 6-7 6-11 "
    "6-17 7-17 9-31 9-33 9-34 10-34 14-34 15-33 15-34 16-33 16-34 19-33 19-34 20-34 21-33 21-34 "
    "23-33 23-34 24-26 24-28 24-30 24-33 24-34 25-26 25-28 25-32 26-32 27-30 27-34 28-34 29-32 "
    "29-34 30-33 30-34 31-33 31-34 32-33 32-34 33-34"
)
OFFICERS = {9, 10, 15, 16, 19, 21, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34}
N = 34


def adjacency():
    """D^-1/2 (A + I) D^-1/2 as a sparse tensor."""
    edges = [tuple(int(v) - 1 for v in pair.split("-")) for pair in FRIENDS.split()]
    edges += [(b, a) for a, b in edges] + [(i, i) for i in range(N)]
    rows, columns = torch.tensor(edges).t()
    degree = torch.bincount(rows, minlength=N).float()
    values = degree[rows].pow(-0.5) * degree[columns].pow(-0.5)
    return torch.sparse_coo_tensor(torch.stack([rows, columns]), values, (N, N)).coalesce()


class GraphConvolution(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_features, out_features))
        self.bias = nn.Parameter(torch.zeros(out_features))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x, adj):
        return torch.sparse.mm(adj, x @ self.weight) + self.bias


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.gc1 = GraphConvolution(N, 16)
        self.gc2 = GraphConvolution(16, 2)

    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj))
        return F.log_softmax(self.gc2(x, adj), dim=1)


adj, features = adjacency(), torch.eye(N)
labels = torch.tensor([int(i + 1 in OFFICERS) for i in range(N)])
known = torch.tensor([0, 33])
model = same_start(GCN())
optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)
for step in range(1, STEPS + 1):
    model.train()
    output = model(features, adj)
    loss = F.nll_loss(output[known], labels[known])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    report(step, loss.item())

model.eval()
right = (model(features, adj).argmax(dim=1) == labels).sum().item()
print("members on the right side", right, "of", N)
