"""The CIFAR model zoo in small, on pictures that are drawn here: ResNet, VGG and MobileNet blocks.

python cifar_zoo.py [STEPS] [resnet | vgg | mobilenet]
"""
import sys

from common import MODEL, STEPS, filled, report, same_start

import torch
import torch.backends.cudnn as cudnn
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, in_planes, planes, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(in_planes, planes, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, stride=1, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.shortcut = nn.Sequential()
        if stride != 1 or in_planes != planes:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_planes, planes, 1, stride=stride, bias=False), nn.BatchNorm2d(planes)
            )

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        return F.relu(out)


class ResNet(nn.Module):
    def __init__(self, num_classes=4):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.layer1 = BasicBlock(8, 8)
        self.layer2 = BasicBlock(8, 16, stride=2)
        self.linear = nn.Linear(16, num_classes)

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.layer2(self.layer1(out))
        out = F.avg_pool2d(out, 8)
        return self.linear(out.view(out.size(0), -1))


class VGG(nn.Module):
    CFG = [8, "M", 16, "M", 16, "M"]

    def __init__(self, num_classes=4):
        super().__init__()
        layers, channels = [], 3
        for x in self.CFG:
            if x == "M":
                layers += [nn.MaxPool2d(kernel_size=2, stride=2)]
            else:
                layers += [nn.Conv2d(channels, x, 3, padding=1), nn.BatchNorm2d(x), nn.ReLU(True)]
                channels = x
        layers += [nn.AdaptiveAvgPool2d(1)]
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Linear(channels, num_classes)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


class Separable(nn.Module):
    """A depthwise and a pointwise convolution."""

    def __init__(self, n_in, n_out, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, n_in, 3, stride, 1, groups=n_in, bias=False)
        self.bn1 = nn.BatchNorm2d(n_in)
        self.conv2 = nn.Conv2d(n_in, n_out, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(n_out)

    def forward(self, x):
        x = F.relu6(self.bn1(self.conv1(x)))
        return F.relu6(self.bn2(self.conv2(x)))


class MobileNet(nn.Module):
    def __init__(self, num_classes=4):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.layers = nn.Sequential(Separable(8, 16, 2), Separable(16, 16))
        self.linear = nn.Linear(16, num_classes)

    def forward(self, x):
        out = self.layers(F.relu(self.bn1(self.conv1(x))))
        return self.linear(F.adaptive_avg_pool2d(out, 1).flatten(1))


ZOO = {"resnet": ResNet, "vgg": VGG, "mobilenet": MobileNet}
name = MODEL or "resnet"
if name not in ZOO:
    sys.exit(f"cifar_zoo: no model {name}: must be one of {', '.join(ZOO)}")
device = "cuda" if torch.cuda.is_available() else "cpu"


def pictures(n):
    """n pictures of 16 x 16 with stripes: the label says in which direction and how wide."""
    labels = torch.arange(n) % 4
    y, x = torch.meshgrid(torch.arange(16), torch.arange(16), indexing="ij")
    stripes = torch.stack([torch.sin(p.float() * w) for p in (x, y) for w in (0.8, 1.9)])
    return stripes[labels].unsqueeze(1) + filled(n, 3, 16, 16, seed=9) * 0.5, labels


images, labels = pictures(128)
net = same_start(ZOO[name]()).to(device)
if device == "cuda":
    net = torch.nn.DataParallel(net)
    cudnn.benchmark = True
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=max(STEPS, 50))
net.train()
for step in range(1, STEPS + 1):
    first = step * 32 % 128
    inputs, targets = images[first : first + 32].to(device), labels[first : first + 32].to(device)
    optimizer.zero_grad()
    loss = criterion(net(inputs), targets)
    loss.backward()
    optimizer.step()
    scheduler.step()
    report(step, loss.item())
net.eval()
with torch.no_grad():
    _, predicted = net(images.to(device)).max(1)
print("accuracy above 0.7", predicted.eq(labels.to(device)).float().mean().item() > 0.7)
