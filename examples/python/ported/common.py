"""What the ported scripts share: the module they run on, and numbers that are the same on both.

PORT=torch takes PyTorch, anything else tt. Nothing else in a script knows which of them it runs on.
"""
import argparse
import math
import os
import sys
from pathlib import Path

if os.environ.get("PORT") == "torch":
    import torch
else:
    sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "bindings/python"))
    import tt

    torch = tt.as_torch()  # from here on `import torch` is tt

DIGITS = Path(__file__).resolve().parents[2] / "data/digits.csv"


def arguments():
    """The number of steps, and the model of a script that has several."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("steps", nargs="?", type=int, default=50, help="of training, by default 50")
    parser.add_argument("model", nargs="?", help="of a script that has several")
    found = parser.parse_args()
    if found.steps < 1:
        parser.error("steps must be positive")
    return found.steps, found.model


STEPS, MODEL = arguments()


def numbers(n, seed):
    """n numbers of [-1, 1), the same everywhere (the two libraries' generators differ)."""
    found, x = [], seed * 7919 + 12345
    for _ in range(n):
        x = (x * 1103515245 + 12345) % 2**31
        found.append((x >> 8) / 2**22 - 1)
    return found


def filled(*shape, seed=0):
    return torch.tensor(numbers(math.prod(shape), seed)).reshape(shape)


def same_start(model):
    """Gives the weights and biases of a model values that depend on their order alone; the scales
    of norms are 1 anyway."""
    with torch.no_grad():
        for i, (name, p) in enumerate(model.named_parameters()):
            if p.dim() > 1:
                p.copy_(filled(*p.shape, seed=i + 1) * math.sqrt(3.0 / math.prod(p.shape[1:])))
            elif "bias" in name:
                p.copy_(filled(*p.shape, seed=i + 1) * 0.1)
    return model


def digits(n):
    """n of the 8 x 8 digits: images (n, 1, 8, 8) in [0, 1] and labels (n)."""
    with open(DIGITS) as file:
        rows = [list(map(int, next(file).split(","))) for _ in range(n)]
    images = torch.tensor([row[:64] for row in rows], dtype=torch.float32) / 16
    return images.view(-1, 1, 8, 8), torch.tensor([row[64] for row in rows])


def characters(text):
    """(the sorted characters of a text, the index of each)."""
    found = sorted(set(text))
    return found, {c: i for i, c in enumerate(found)}


def report(step, loss):
    print(f"step {step} loss {loss:.8g}")
