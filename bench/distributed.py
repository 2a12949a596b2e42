#!/usr/bin/env python3
"""tt's groups beside torch.distributed over Gloo, in turn on the same machine: all_reduce of 25 MB,
and the speed-up of DistributedDataParallel; each process has one thread.

    bench/distributed.py --torch PYTHON [--rounds N]      writes a table
    bench/distributed.py simulate [--bandwidth B --latency L]

Without torch: tt alone. A figure is the best of the rounds, which alternate between both. Workers
are this file, run by the launcher of each.

simulate plays the buckets of a model against a network: a bucket of n bytes on p ranks takes
2 (p - 1) (latency + n / (p bandwidth)), the time of a ring, and begins when its last gradient is
there and the bucket before is done. It names the first p at which less than half of the time is
computation.
"""
import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MB = 1 << 20
STEPS = {"mlp": 40, "cnn": 12}
BATCH = {"mlp": 256, "cnn": 64}  # of all processes together


def library(name):
    """tt or torch, with one thread."""
    if name == "torch":
        import torch

        torch.set_num_threads(1)
        return torch
    import tt

    tt.set_num_threads(1)
    return tt


def model_of(nn, kind):
    if kind == "mlp":
        layers = [nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(512, 10)), (784,)
    layers = [nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2)]
    layers += [nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 8 * 8, 10)), (3, 32, 32)


def milliseconds(f, times):
    """Of one call."""
    begin = time.perf_counter()
    for _ in range(times):
        f()
    return 1000 * (time.perf_counter() - begin) / times


def training(lib, kind, wrap, size):
    """Milliseconds of a step on this process's part of a batch."""
    model, shape = model_of(lib.nn, kind)
    x, y = lib.randn(BATCH[kind] // size, *shape), lib.randint(0, 10, (BATCH[kind] // size,))
    model = lib.nn.parallel.DistributedDataParallel(model) if wrap else model
    sgd = lib.optim.SGD(model.parameters(), lr=0.01)

    def step():
        sgd.zero_grad()
        lib.nn.functional.cross_entropy(model(x), y).backward()
        sgd.step()

    milliseconds(step, 3)
    return milliseconds(step, STEPS[kind])


def worker(name):
    lib = library(name)
    dist = lib.distributed
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    found = {}
    x = lib.ones(25 * MB // 4)
    dist.all_reduce(x)
    if size > 1:
        found["all_reduce 25 MB"] = milliseconds(lambda: dist.all_reduce(x), 10)
        small = lib.ones(1)
        found["all_reduce 4 B"] = milliseconds(lambda: dist.all_reduce(small), 200)
    if size <= 2:
        for kind in ("mlp", "cnn"):
            found[f"train_{kind}, ddp"] = training(lib, kind, True, size)
            if size == 1:
                found[f"train_{kind}, without"] = training(lib, kind, False, size)
    if rank == 0:
        print(json.dumps(found), flush=True)


def run(python, name, size):
    command = [python, "-m", f"{name}.distributed.run", f"--nproc-per-node={size}", __file__]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if name == "tt":
        environment["PYTHONPATH"] = str(ROOT / "bindings/python")
    done = subprocess.run(
        [*command, "worker", name], capture_output=True, text=True, env=environment
    )
    if done.returncode:
        sys.exit(done.stderr[-2000:])
    return json.loads(done.stdout.strip().splitlines()[-1])


def compare(args):
    pythons = {"tt": sys.executable, **({"torch": args.torch} if args.torch else {})}
    best = {}
    for _ in range(args.rounds):
        for size in (1, 2, 4):
            for name, python in pythons.items():
                for what, ms in run(python, name, size).items():
                    key = (size, what, name)
                    best[key] = min(best.get(key, ms), ms)
    print(f"load before the end: {os.getloadavg()[0]:.1f}\n")
    print("| processes | what | " + " | ".join(f"{n}, ms" for n in pythons) + " |")
    print("|---|---|" + "---|" * len(pythons))
    for size, what in dict.fromkeys(k[:2] for k in best):
        cells = [f"{best[size, what, n]:.2f}" for n in pythons]
        print(f"| {size} | {what} | " + " | ".join(cells) + " |")
    for kind in ("mlp", "cnn"):
        name = f"train_{kind}, ddp"
        ups = [
            f"{n} {best[1, f'train_{kind}, without', n] / best[2, name, n]:.2f}" for n in pythons
        ]
        over = [
            f"{n} {100 * (best[1, name, n] / best[1, f'train_{kind}, without', n] - 1):.1f} %"
            for n in pythons
        ]
        print(f"\ntrain_{kind}: speed-up of 2 processes {', '.join(ups)}; overhead of DDP in one "
              f"process {', '.join(over)}")  # fmt: skip


def simulate(args):
    """Scaling of a step whose backward fills buckets at an even pace."""
    sizes = [min(MB, args.parameters)]
    while sum(sizes) < args.parameters:
        sizes.append(min(25 * MB, args.parameters - sum(sizes)))
    forward, backward = args.step / 3, 2 * args.step / 3
    limit = None
    print("| ranks | step, ms | of it computation |\n|---|---|---|")
    for power in range(13):
        p, now, filled = 1 << power, 0.0, 0
        for n in sizes:
            filled += n
            ready = forward + backward * filled / args.parameters
            ring = 2 * (p - 1) * (args.latency / 1000 + 1000 * n / (p * args.bandwidth * 1e9))
            now = max(now, ready) + (ring if p > 1 else 0)
        share = args.step / max(now, args.step)
        limit = limit or (p if share < 0.5 else None)
        print(f"| {p} | {max(now, args.step):.1f} | {100 * share:.0f} % |")
    print(f"\nless than half is computation from {limit or 'more than 4096'} ranks on")


def main():
    if sys.argv[1:2] == ["worker"]:
        return worker(sys.argv[2])
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("mode", nargs="?", default="compare", choices=["compare", "simulate"])
    parser.add_argument("--torch", help="a Python that has torch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parameters", type=int, default=100 * MB, help="bytes of gradients")
    parser.add_argument("--step", type=float, default=100.0, help="ms of a step of one rank")
    parser.add_argument("--bandwidth", type=float, default=12.5, help="GB/s of a link")
    parser.add_argument("--latency", type=float, default=10.0, help="us of a message")
    args = parser.parse_args()
    return simulate(args) if args.mode == "simulate" else compare(args)


if __name__ == "__main__":
    main()
