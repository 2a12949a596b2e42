#!/usr/bin/env python3
"""Trains a small network on handwritten digits in several processes: the Python form of
examples/c/train_ddp.c.

    python3 -m tt.distributed.run --nproc-per-node 2 --max-restarts 3 \
        examples/python/train_ddp.py --checkpoint run.safetensors
    mpirun -n 2 python3 examples/python/train_ddp.py

Rank 0 writes the checkpoint after each epoch; all ranks go on from it if it is there, as after a
restart by the launcher.
"""
import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
try:
    import tt
except ImportError:  # in the tree, not installed
    sys.path.insert(0, str(ROOT / "bindings/python"))
    import tt
from tt import distributed as dist
from tt import nn
from tt.nn import functional as F
from tt.nn.parallel import DistributedDataParallel

TRAIN, BATCH = 1500, 60


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=ROOT / "examples/data/digits.csv")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--checkpoint", type=Path)
    return parser.parse_args()


def read(path):
    try:
        text = Path(path).read_text()
    except OSError as error:
        sys.exit(f"train_ddp: {error}")
    rows = [[int(v) for v in line.split(",")] for line in text.split()]
    return tt.tensor([row[:64] for row in rows]) / 16.0, tt.tensor([row[64] for row in rows])


def save(path, epoch, model, adam):
    state = {"epoch": epoch, "model": model.state_dict(), "adam": adam.state_dict()}
    tt.save(state, path.with_suffix(".new"))
    path.with_suffix(".new").replace(path)


def main():
    args = parse()
    dist.init_process_group()
    tt.set_num_threads(1)
    rank, size = dist.get_rank(), dist.get_world_size()
    images, labels = read(args.data)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    adam, done = tt.optim.Adam(model.parameters()), 0
    if args.checkpoint and args.checkpoint.exists():
        saved = tt.load(args.checkpoint)
        model.load_state_dict(saved["model"])
        adam.load_state_dict(saved["adam"])
        done = saved["epoch"]
    ddp = DistributedDataParallel(model)  # all ranks get rank 0's parameters
    for epoch in range(done + 1, args.epochs + 1):
        for begin in range(0, TRAIN, BATCH):
            mine = slice(begin + rank * BATCH // size, begin + (rank + 1) * BATCH // size)
            loss = F.cross_entropy(ddp(images[mine]), labels[mine])
            adam.zero_grad()
            loss.backward()
            adam.step()
        if rank == 0:
            print(f"epoch {epoch}: loss {loss.item():.4f}", flush=True)
            if args.checkpoint:
                save(args.checkpoint, epoch, model, adam)
    if rank == 0:
        right = (model(images[TRAIN:]).argmax(1) == labels[TRAIN:]).float().mean().item()
        print(f"{size} processes: test accuracy {100 * right:.1f} %")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
