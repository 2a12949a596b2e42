"""A regression whose activation is an autograd.Function of one's own, with a gradient penalty that
differentiates it twice."""
from common import STEPS, filled, report, same_start, torch

nn = torch.nn
torch.manual_seed(0)


class SmoothStep(torch.autograd.Function):
    """x / sqrt(1 + x^2), with its gradient written down."""

    @staticmethod
    def forward(ctx, x):
        r = torch.rsqrt(1 + x * x)
        ctx.save_for_backward(x)
        return x * r

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (1 + x * x) ** -1.5


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(3, 32), nn.Linear(32, 32), nn.Linear(32, 1)
        self.scale = nn.Parameter(torch.ones(32))

    def forward(self, x):
        h = SmoothStep.apply(self.first(x)) * self.scale
        return self.last(SmoothStep.apply(self.second(h))).squeeze(-1)


x = filled(128, 3, seed=11) * 2
y = torch.sin(x[:, 0]) * x[:, 1] + 0.5 * x[:, 2] ** 2
model = same_start(Regressor())
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.98**step)

for step in range(1, STEPS + 1):
    points = x.clone().requires_grad_(True)
    found = model(points)
    (slope,) = torch.autograd.grad(found.sum(), points, create_graph=True)
    loss = nn.functional.mse_loss(found, y) + 1e-3 * slope.pow(2).sum(dim=1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    report(step, loss.item())
