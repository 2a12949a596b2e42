"""A variational autoencoder of bumps on a 8 x 8 grid: reparametrisation, KL term, RMSprop, state
saved and loaded again."""
import os
import tempfile

from common import STEPS, filled, report, same_start, torch

nn = torch.nn
F = nn.functional
torch.manual_seed(0)

n = 96
centre = filled(n, 2, seed=5) * 2.5 + 3.5
y, x = torch.arange(8.0)[:, None].expand(8, 8), torch.arange(8.0)[None, :].expand(8, 8)
far = (y - centre[:, 0].view(n, 1, 1)) ** 2 + (x - centre[:, 1].view(n, 1, 1)) ** 2
data = torch.exp(-far / 3.0).view(n, 64)


class VAE(nn.Module):
    def __init__(self, hidden=48, latent=4):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(64, hidden), nn.Tanh())
        self.mu, self.logvar = nn.Linear(hidden, latent), nn.Linear(hidden, latent)
        self.decode = nn.Sequential(
            nn.Linear(latent, hidden), nn.SiLU(), nn.Linear(hidden, 64), nn.Sigmoid()
        )

    def forward(self, x, noise):
        h = self.encode(x)
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + noise * torch.exp(0.5 * logvar)
        return self.decode(z), mu, logvar


def loss_function(found, x, mu, logvar):
    reconstruction = F.binary_cross_entropy(found, x, reduction="sum")
    kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return (reconstruction + 0.5 * kl) / len(x)


model = same_start(VAE())
optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3)

for step in range(1, STEPS + 1):
    noise = filled(n, 4, seed=1000 + step) * 1.7
    optimizer.zero_grad()
    found, mu, logvar = model(data, noise)
    loss = loss_function(found, data, mu, logvar)
    loss.backward()
    optimizer.step()
    report(step, loss.item())

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "vae.pt")
    torch.save(model.state_dict(), path)
    again = VAE()
    again.load_state_dict(torch.load(path))
zeros = torch.zeros(n, 4)
with torch.no_grad():
    same = torch.abs(again(data, zeros)[0] - model(data, zeros)[0]).max().item()
print(f"after loading: {same:.1f} apart")
