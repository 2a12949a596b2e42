#!/usr/bin/env python3
"""Trains a small convolutional network on handwritten digits: the Python form of
examples/c/train_digits.c.

    train_digits.py [OPTIONS]
    train_digits.py --evaluate CHECKPOINT [--logits FILE]

The figure shows the losses, the confusion matrix and the digits that were misread; it needs
matplotlib.
"""
import argparse
import csv
import sys
import time
from array import array
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
try:
    import tt
except ImportError:  # in the tree, not installed
    sys.path.insert(0, str(ROOT / "bindings/python"))
    import tt
from tt import nn
from tt.nn import functional as F

TRAIN, BATCH, CLASSES = 1500, 50, 10


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", default=ROOT / "examples/data/digits.csv", help="rows of 64 pixels and a digit")
    add("--epochs", type=int, default=30)
    add("--lr", type=float, default=0.01, help="learning rate at the start")
    add("--threads", type=int, default=1)
    add("--seed", type=int, default=0)
    add("--checkpoint", metavar="FILE", help="saves the model after each epoch")
    add("--evaluate", metavar="CHECKPOINT", help="tests a saved model, also of the C program")
    add("--logits", metavar="FILE", help="writes the scores of the test rows, float32 (297, 10)")
    add("--figure", metavar="FILE", default="train_digits.png", help="PNG file; '' for none")
    args = parser.parse_args()
    if args.epochs < 1 or not args.lr > 0:
        parser.error("--epochs and --lr must be positive")
    return args


def read(path):
    """Rows of 64 pixels (0-16) and a label: images (N, 1, 8, 8) in 0 … 1 and labels (N)."""
    pixels, labels = [], []
    with open(path, newline="") as file:
        for number, line in enumerate(csv.reader(file), 1):
            row = [int(value) if value.isdigit() else -1 for value in line]
            if len(row) != 65 or not 0 <= row[64] < CLASSES or not all(0 <= p <= 16 for p in row):
                raise ValueError(f"{path}:{number}: not 64 pixels of 0 to 16 and a digit")
            pixels.append([p / 16 for p in row[:64]])
            labels.append(row[64])
    if len(labels) <= TRAIN:
        raise ValueError(f"{path}: {len(labels)} rows, more than {TRAIN} are needed")
    return tt.tensor(pixels).reshape(-1, 1, 8, 8), tt.tensor(labels)


def build():
    """(N, 1, 8, 8) -> (N, 32, 2, 2) -> (N, 10)"""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(32 * 2 * 2, CLASSES),
    )


def save(model, path):
    state = {f"module.{name}": value for name, value in model.state_dict().items()}
    tt.save(state, path, format="safetensors")


def load(model, path):
    """The model's part of a checkpoint, under the names that the C program gives."""
    saved = tt.load(path)
    model.load_state_dict(
        {
            name[len("module.") :]: value
            for name, value in saved.items()
            if name.startswith("module.")
        }
    )


def progress(epoch, epochs, loss, start):
    seconds = time.perf_counter() - start
    done = 30 * epoch // epochs
    print(
        f"\repoch {epoch:3}/{epochs} [{'#' * done}{'-' * (30 - done)}] loss {loss:.4f}  "
        f"{epoch * TRAIN / seconds:.0f} samples/s  ETA {seconds / epoch * (epochs - epoch):.1f} s ",
        end="",
        flush=True,
    )


def train(model, images, labels, args):
    """Returns the mean loss of each epoch."""
    adam = tt.optim.Adam(model.parameters(), lr=args.lr)
    schedule = tt.optim.lr_scheduler.CosineAnnealingLR(adam, args.epochs)
    losses, start = [], time.perf_counter()
    for epoch in range(1, args.epochs + 1):
        batches = tt.randperm(TRAIN).split(BATCH)
        total = 0.0
        for rows in batches:
            loss = F.cross_entropy(model(images[rows]), labels[rows])
            adam.zero_grad()
            loss.backward()
            adam.step()
            total += loss.item()
        schedule.step()
        losses.append(total / len(batches))
        if args.checkpoint:
            save(model, args.checkpoint)
        progress(epoch, args.epochs, losses[-1], start)
    print()
    return losses


def confusion(truth, guess):
    """Rows: the true class; columns: the predicted one."""
    counts = [[0] * CLASSES for _ in range(CLASSES)]
    for t, g in zip(truth, guess):
        counts[t][g] += 1
    return counts


def print_confusion(counts):
    print("confusion matrix (rows: truth)\n    " + "".join(f"{c:4}" for c in range(CLASSES)))
    for label, row in enumerate(counts):
        print(f"{label:4}" + "".join(f"{n:4}" if n else "   ." for n in row))


def draw(path, losses, counts, images, truth, guess):
    try:
        import matplotlib
    except ImportError:
        return print(f"no {path}: the figure needs matplotlib (pip install matplotlib)")
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure = plt.figure(figsize=(12, 4.2), layout="constrained")
    curve, matrix, misread = figure.subfigures(1, 3)

    axes = curve.subplots()
    axes.semilogy(range(1, len(losses) + 1), losses)
    axes.set(xlabel="epoch", ylabel="cross entropy, training", title="Loss")
    axes.grid(True, which="both", alpha=0.3)

    axes = matrix.subplots()
    axes.imshow([[n**0.5 for n in row] for row in counts], cmap="Blues")
    for t, row in enumerate(counts):
        for g, n in enumerate(row):
            if n:
                axes.text(
                    g,
                    t,
                    str(n),
                    ha="center",
                    va="center",
                    fontsize=8,
                    color="white" if t == g else "black",
                )
    axes.set(
        xticks=range(CLASSES),
        yticks=range(CLASSES),
        xlabel="predicted",
        ylabel="truth",
        title="Confusion, test rows",
    )

    wrong = [i for i, (t, g) in enumerate(zip(truth, guess)) if t != g]
    misread.suptitle(f"{len(wrong)} of {len(truth)} misread")
    cells = misread.subplots(3, 4).flat
    for i, cell in zip(wrong + [None] * 12, cells):
        cell.axis("off")
        if i is not None:
            cell.imshow(images[i, 0].tolist(), cmap="gray_r")
            cell.set_title(f"{truth[i]} as {guess[i]}", fontsize=9)
    figure.savefig(path, dpi=120)
    print(f"wrote {path}")


def main():
    args = parse()
    images, labels = read(args.data)
    tt.set_num_threads(args.threads)
    tt.manual_seed(1234)  # the split is always the same
    order = tt.randperm(len(labels))
    tests = order[TRAIN:]
    tt.manual_seed(args.seed)
    model = build()
    losses = []
    if args.evaluate:
        load(model, args.evaluate)
    else:
        losses = train(model, images[order[:TRAIN]], labels[order[:TRAIN]], args)
    model.eval()
    with tt.no_grad():
        scores = model(images[tests])
    if args.logits:
        Path(args.logits).write_bytes(array("f", scores.flatten().tolist()).tobytes())
    truth, guess = labels[tests].tolist(), scores.argmax(1).tolist()
    counts = confusion(truth, guess)
    print_confusion(counts)
    print(f"test accuracy {100 * sum(counts[c][c] for c in range(CLASSES)) / len(truth):.1f} %")
    if losses and args.figure:
        draw(args.figure, losses, counts, images[tests], truth, guess)


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, RuntimeError) as error:
        sys.exit(f"train_digits: {error}")
