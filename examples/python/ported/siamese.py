"""A siamese network: do two pictures show the same digit? Two towers with the same weights."""
from common import STEPS, digits, report, same_start

import torch
import torch.nn as nn
import torch.nn.functional as F

images, labels = digits(400)


class SiameseNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.tower = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.Flatten(),
            nn.Linear(256, 32),
        )

    def forward(self, a, b):
        return self.tower(a), self.tower(b)


class ContrastiveLoss(nn.Module):
    """Pulls pairs together; others at least margin apart."""

    def __init__(self, margin=1.0):
        super().__init__()
        self.margin = margin

    def forward(self, a, b, same):
        distance = F.pairwise_distance(a, b)
        apart = torch.clamp(self.margin - distance, min=0.0)
        return torch.mean(same * distance.pow(2) + (1 - same) * apart.pow(2))


def pairs(step, n=32):
    first = torch.arange(n) * 7 + step * 13
    second = torch.arange(n) * 11 + step * 5 + 3
    first, second = first % len(images), second % len(images)
    for i in range(0, n, 2):  # every other pair shows the same digit
        alike = (labels == labels[first[i]]).nonzero().view(-1)
        second[i] = alike[(step + i) % len(alike)]
    return first, second, (labels[first] == labels[second]).float()


model = same_start(SiameseNetwork())
criterion = ContrastiveLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for step in range(1, STEPS + 1):
    i, j, same = pairs(step)
    a, b = model(images[i], images[j])
    loss = criterion(a, b, same)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    report(step, loss.item())
