"""REINFORCE: a policy network learns to balance a pole on a cart, which is simulated here."""
import math
import random
from collections import deque

from common import STEPS, report, same_start

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical


class CartPole:
    """A cart with a pole that falls: states (x, v, angle, turn), actions 0 and 1, 60 moves."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def reset(self):
        self.state = [self.random.uniform(-0.05, 0.05) for _ in range(4)]
        self.moves = 0
        return self.state

    def step(self, action):
        x, v, angle, turn = self.state
        force = 10.0 if action == 1 else -10.0
        sine, cosine = math.sin(angle), math.cos(angle)
        push = (force + 0.05 * turn**2 * sine) / 1.1
        acceleration = (9.8 * sine - cosine * push) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
        pull = push - 0.05 * acceleration * cosine / 1.1
        x, v = x + 0.02 * v, v + 0.02 * pull
        angle, turn = angle + 0.02 * turn, turn + 0.02 * acceleration
        self.state = [x, v, angle, turn]
        self.moves += 1
        return self.state, 1.0, abs(x) > 2.4 or abs(angle) > 0.21 or self.moves >= 60


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(4, 32)
        self.affine2 = nn.Linear(32, 2)

    def forward(self, x):
        return F.softmax(self.affine2(F.relu(self.affine1(x))), dim=1)


policy = same_start(Policy())
optimizer = optim.Adam(policy.parameters(), lr=1e-2)
eps = torch.finfo(torch.float32).eps
env, dice = CartPole(543), random.Random(7)
for step in range(1, STEPS + 1):
    state, log_probs, rewards = env.reset(), [], []
    done = False
    while not done:
        m = Categorical(policy(torch.tensor(state).float().unsqueeze(0)))
        action = torch.tensor([int(dice.random() < m.probs[0, 1].item())])  # m.sample() elsewhere
        log_probs.append(m.log_prob(action))
        state, reward, done = env.step(action.item())
        rewards.append(reward)
    R, returns = 0, deque()
    for r in rewards[::-1]:
        R = r + 0.99 * R
        returns.appendleft(R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + eps)
    loss = torch.cat([-lp * R for lp, R in zip(log_probs, returns)]).sum() / 60 + 1
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    report(step, loss.item())
