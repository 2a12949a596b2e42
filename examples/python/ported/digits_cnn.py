"""The MNIST example on 8 x 8 digits: Net, train() and test(), DataLoader, Adadelta, StepLR."""
from common import STEPS, digits, report, same_start

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, 1, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, 1)
        self.fc1 = nn.Linear(288, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.max_pool2d(x, 2)
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        return F.log_softmax(self.fc2(x), dim=1)


def train(model, device, loader, optimizer, first):
    model.train()
    step = first
    for data, target in loader:
        if step > STEPS:
            break
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        report(step, loss.item())
        step += 1
    return step


def test(model, device, loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for data, target in loader:
            output = model(data.to(device))
            pred = output.argmax(dim=1, keepdim=True)
            correct += pred.eq(target.to(device).view_as(pred)).sum().item()
    return correct / len(loader.dataset)


def main():
    use_cuda = torch.cuda.is_available()
    torch.manual_seed(1)
    device = torch.device("cuda" if use_cuda else "cpu")
    images, labels = digits(1000)
    train_loader = DataLoader(TensorDataset(images[:800], labels[:800]), batch_size=64)
    test_loader = DataLoader(TensorDataset(images[800:], labels[800:]), batch_size=200)
    model = same_start(Net()).to(device)
    optimizer = optim.Adadelta(model.parameters(), lr=0.5)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.9)
    step = 1
    while step <= STEPS:
        step = train(model, device, train_loader, optimizer, step)
        scheduler.step()
    print("accuracy above 0.8", test(model, device, test_loader) > 0.8)


if __name__ == "__main__":
    main()
