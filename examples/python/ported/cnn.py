"""A small convolutional network with BatchNorm on striped images: SGD with momentum, StepLR, train
and eval modes."""
from common import STEPS, filled, report, same_start, torch

nn = torch.nn
F = nn.functional
torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, inside, out, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(inside, out, 3, stride=stride, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(out)
        self.skip = (
            nn.Identity()
            if inside == out and stride == 1
            else nn.Conv2d(inside, out, 1, stride=stride)
        )

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)) + self.skip(x), inplace=True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(1, 8), Block(8, 16, stride=2), Block(16, 16)])
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(torch.flatten(self.pool(x), 1))


def images(n, seed):
    """Stripes in four directions under noise, and the number of the direction."""
    y, x = torch.arange(12).float().view(1, 12, 1), torch.arange(12).float().view(1, 1, 12)
    label = torch.arange(n) % 4
    a = torch.tensor([1.0, 0.0, 1.0, 1.0])[label].view(n, 1, 1)
    b = torch.tensor([0.0, 1.0, 1.0, -1.0])[label].view(n, 1, 1)
    return (torch.sin(1.3 * (a * x + b * y)) + 0.6 * filled(n, 12, 12, seed=seed)).unsqueeze(
        1
    ), label


train_x, train_y = images(64, seed=7)
test_x, test_y = images(64, seed=8)
model = same_start(Net())
optimizer = torch.optim.SGD(
    model.parameters(), lr=0.02, momentum=0.9, nesterov=True, weight_decay=5e-4
)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=20, gamma=0.5)

for step in range(1, STEPS + 1):
    model.train()
    rows = [(step * 32 + i) % 64 for i in range(32)]
    loss = F.cross_entropy(model(train_x[rows]), train_y[rows])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    scheduler.step()
    report(step, loss.item())

model.eval()
with torch.no_grad():
    right = (model(test_x).argmax(1) == test_y).sum().item()
print(f"accuracy {right / len(test_y):.3f}")
