"""Super-resolution: digits of 4 x 4 pixels become 8 x 8 by sub-pixel convolution."""
from common import STEPS, digits, report, same_start

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.nn.init as init
import torch.optim as optim


class Net(nn.Module):
    def __init__(self, upscale_factor):
        super(Net, self).__init__()
        self.relu = nn.ReLU()
        self.conv1 = nn.Conv2d(1, 16, (5, 5), (1, 1), (2, 2))
        self.conv2 = nn.Conv2d(16, 16, (3, 3), (1, 1), (1, 1))
        self.conv3 = nn.Conv2d(16, upscale_factor**2, (3, 3), (1, 1), (1, 1))
        self.upscale_factor = upscale_factor
        self._initialize_weights()

    def forward(self, x):
        x = self.relu(self.conv1(x))
        x = self.relu(self.conv2(x))
        return F.pixel_shuffle(self.conv3(x), self.upscale_factor)

    def _initialize_weights(self):
        init.orthogonal_(self.conv1.weight, init.calculate_gain("relu"))
        init.orthogonal_(self.conv2.weight, init.calculate_gain("relu"))
        init.orthogonal_(self.conv3.weight)


def psnr(mse):
    return 10 * torch.log10(1 / mse)


images = digits(256)[0]
small = F.interpolate(images, scale_factor=0.5, mode="bilinear", align_corners=False)
model = same_start(Net(upscale_factor=2))
criterion = nn.MSELoss()
optimizer = optim.Adam(model.parameters(), lr=0.005)
for step in range(1, STEPS + 1):
    first = step * 32 % len(images)
    input, target = small[first : first + 32], images[first : first + 32]
    optimizer.zero_grad()
    loss = criterion(model(input), target)
    loss.backward()
    optimizer.step()
    report(step, loss.item())
with torch.no_grad():
    print("psnr above 10 dB", psnr(criterion(model(small), images)).item() > 10)
