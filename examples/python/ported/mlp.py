"""A classifier of points on two spirals: Linear, GELU, Adam, a cosine schedule, clipped
gradients."""
from common import STEPS, filled, report, same_start, torch

nn = torch.nn
torch.manual_seed(0)

n = 200
t = torch.linspace(0.5, 3.0, n)
label = torch.arange(2 * n) // n
angle = torch.cat([1.5 * t, 1.5 * t + 3.14159])
points = torch.stack([angle.cos(), angle.sin()], dim=1) * torch.cat([t, t])[:, None] + 0.1 * filled(
    2 * n, 2, seed=99
)


class MLP(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(2, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 2)
        )

    def forward(self, x):
        return self.layers(x)


model = same_start(MLP())
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS)
criterion = nn.CrossEntropyLoss(label_smoothing=0.05)

for step in range(1, STEPS + 1):
    optimizer.zero_grad()
    loss = criterion(model(points), label)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    report(step, loss.item())

model.eval()
with torch.no_grad():
    accuracy = (model(points).argmax(dim=1) == label).float().mean().item()
print(f"accuracy {accuracy:.3f}")
