#!/usr/bin/env python3
"""tt's groups beside torch.distributed over Gloo, in turn on the same machine: all_reduce of 25 MB,
and the speed-up of DistributedDataParallel; each process has one thread.

    bench/distributed.py --torch PYTHON [--rounds N] [--backend mpi] [--pin]   writes a table
    bench/distributed.py trace FILE [--model mlp|cnn|wide]
    bench/distributed.py simulate [--trace FILE] [--bandwidth B --latency L]

Without torch: tt alone. A figure is a median, the best of the rounds, which alternate between
both. Workers are this file, run by the launcher of each. The models "mlp" and "cnn" are train_mlp
and train_cnn of bench/worker_torch.py with their batches; "mlp256" and "cnnbn" have a batch of
256 and batch normalizations. With --backend mpi, tt runs under mpirun, torch over Gloo. --pin keeps
each process on a core, for machines that compute something else, too.

What processes can reach is bounded by "part without", the step of their part of the batch in each
at the same time, and by "TCP alone": two processes that only exchange the bytes of an all_reduce
over one socket, as sums of halves and the halves back, without adding.

trace trains a model in one process and writes when its gradients are there: the buckets that
DistributedDataParallel would send, with their bytes and the milliseconds from the begin of a step,
medians of 10 steps.

simulate plays such a trace, or the buckets of a model that fill at an even pace, against a network:
a bucket of n bytes on p ranks takes 2 (p - 1) (latency + n / (p bandwidth)), the time of a ring,
and begins when its last gradient is there and the bucket before is done. It names the first p at
which less than half of the time is computation.
"""
import argparse
import json
import os
import select
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MB = 1 << 20
STEPS = {"mlp": 60, "mlp256": 40, "cnn": 20, "cnnbn": 12}
BATCH = {"mlp": 128, "mlp256": 256, "cnn": 64, "cnnbn": 64, "wide": 32}  # of all processes
KINDS = tuple(STEPS)
GRADIENTS = {"mlp": 784 * 512 + 512 * 512 + 512 * 10 + 1034}  # numbers


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
    if kind in ("mlp", "mlp256"):
        layers = [nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(512, 10)), (784,)
    if kind == "wide":
        return nn.Sequential(*[nn.Linear(2048, 2048) for _ in range(7)], nn.Linear(2048, 10)), (
            2048,
        )
    norm = nn.BatchNorm2d if kind == "cnnbn" else lambda channels: nn.Identity()
    layers = [nn.Conv2d(3, 32, 3, padding=1), norm(32), nn.ReLU(), nn.MaxPool2d(2)]
    layers += [nn.Conv2d(32, 64, 3, padding=1), norm(64), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    if kind == "cnn":
        layers += [nn.Linear(64 * 8 * 8, 128), nn.ReLU(), nn.Linear(128, 10)]
    else:
        layers += [nn.Linear(64 * 8 * 8, 10)]
    return nn.Sequential(*layers), (3, 32, 32)


def milliseconds(f, times):
    """Of one call: the median."""
    taken = []
    for _ in range(times):
        begin = time.perf_counter()
        f()
        taken.append(time.perf_counter() - begin)
    return 1000 * sorted(taken)[times // 2]


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


def exchange(s, out, into):
    """Sends and receives as many bytes at the same time."""
    poll, sent, received = select.poll(), 0, 0
    while sent < len(out) or received < len(into):
        before = sent + received
        try:
            sent += s.send(out[sent : sent + MB // 2]) if sent < len(out) else 0
        except BlockingIOError:
            pass
        try:
            received += s.recv_into(into[received:]) if received < len(into) else 0
        except BlockingIOError:
            pass
        if sent + received == before:
            poll.register(s, select.POLLIN | (select.POLLOUT if sent < len(out) else 0))
            poll.poll()


def tcp_alone(dist, rank, numbers):
    """Milliseconds that a socket takes for the bytes of an all_reduce by two processes."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        place = [listener.getsockname()]
        dist.broadcast_object_list(place, src=0)
        s = socket.create_connection(place[0]) if rank else listener.accept()[0]
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    s.setblocking(False)
    out, into = memoryview(bytearray(2 * numbers)), memoryview(bytearray(2 * numbers))
    exchange(s, out, into)

    def both_ways():
        exchange(s, out, into)
        exchange(s, out, into)

    found = milliseconds(both_ways, 20)
    s.close()
    return found


def worker(name, backend, pin):
    rank = int(os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("RANK", 0)))
    if pin == "pin":
        os.sched_setaffinity(0, {rank % os.cpu_count()})
    lib = library(name)
    dist = lib.distributed
    dist.init_process_group(backend)
    size = dist.get_world_size()
    found = {}
    x = lib.ones(25 * MB // 4)
    dist.all_reduce(x)
    if size > 1:
        found["all_reduce 25 MB"] = milliseconds(lambda: dist.all_reduce(x), 10)
        middle, small = lib.ones(GRADIENTS["mlp"]), lib.ones(1)
        found["all_reduce of mlp's gradients"] = milliseconds(lambda: dist.all_reduce(middle), 40)
        found["all_reduce 4 B"] = milliseconds(lambda: dist.all_reduce(small), 200)
    if size == 2:
        found["TCP alone, 25 MB"] = tcp_alone(dist, rank, 25 * MB // 4)
        found["TCP alone, mlp's gradients"] = tcp_alone(dist, rank, GRADIENTS["mlp"])
    for kind in KINDS:
        found[f"train_{kind}, ddp"] = training(lib, kind, True, size)
        if size == 1:
            found[f"train_{kind}, without"] = training(lib, kind, False, size)
        else:
            dist.barrier()
            found[f"train_{kind}, part without"] = training(lib, kind, False, size)
    if rank == 0:
        print(json.dumps(found), flush=True)


def run(python, name, size, backend, pin):
    command = [python, "-m", f"{name}.distributed.run", f"--nproc-per-node={size}"]
    if backend == "mpi" and name == "tt":
        command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(size), python]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment.pop("OPENBLAS_CORETYPE", None)
    if name == "tt":
        environment["PYTHONPATH"] = str(ROOT / "bindings/python")
    engine = backend if name == "tt" else "gloo"
    program = [__file__, "worker", name, engine, "pin" if pin else ""]
    done = subprocess.run([*command, *program], capture_output=True, text=True, env=environment)
    rows = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not rows:
        sys.exit(done.stderr[-2000:])
    return json.loads(rows[-1])


def compare(args):
    pythons = {"tt": sys.executable, **({"torch": args.torch} if args.torch else {})}
    best = {}
    for _ in range(args.rounds):
        for size in (1, 2, 4):
            for name, python in pythons.items():
                for what, ms in run(python, name, size, args.backend, args.pin).items():
                    key = (size, what, name)
                    best[key] = min(best.get(key, ms), ms)
    print(f"load before the end: {os.getloadavg()[0]:.1f}\n")
    print("| processes | what | " + " | ".join(f"{n}, ms" for n in pythons) + " |")
    print("|---|---|" + "---|" * len(pythons))
    for size, what in dict.fromkeys(k[:2] for k in best):
        cells = [f"{best[size, what, n]:.2f}" for n in pythons]
        print(f"| {size} | {what} | " + " | ".join(cells) + " |")
    for kind in KINDS:
        over = []
        for n in pythons:
            alone = best[1, f"train_{kind}, without", n]
            over.append(f"{n} {100 * (best[1, f'train_{kind}, ddp', n] / alone - 1):.1f} %")
        print(f"\ntrain_{kind}: overhead of DDP in one process {', '.join(over)}")
        for size in (2, 4):
            ups, bound = [], []
            for n in pythons:
                alone = best[1, f"train_{kind}, without", n]
                ups.append(f"{n} {alone / best[size, f'train_{kind}, ddp', n]:.2f}")
                bound.append(f"{n} {alone / best[size, f'train_{kind}, part without', n]:.2f}")
            print(f"speed-up of {size} processes {', '.join(ups)} (without communication "
                  f"{', '.join(bound)})")  # fmt: skip


def buckets_of(parameters):
    """The parameters of each bucket, in DistributedDataParallel's order and sizes."""
    buckets, used = [[]], 0
    for p in reversed(parameters):
        if used >= (MB if len(buckets) == 1 else 25 * MB):
            buckets.append([])
            used = 0
        buckets[-1].append(p)
        used += 4 * p.numel()
    return buckets


def trace(args):
    """Writes when the buckets of a model are full."""
    sys.path.insert(0, str(ROOT / "bindings/python"))
    lib = library("tt")
    model, shape = model_of(lib.nn, args.model)
    x, y = lib.randn(BATCH[args.model], *shape), lib.randint(0, 10, (BATCH[args.model],))
    parameters = list(model.parameters())
    came = {}
    for i, p in enumerate(parameters):
        p.register_post_accumulate_grad_hook(lambda _, i=i: came.update({i: time.perf_counter()}))
    places = {id(p): i for i, p in enumerate(parameters)}
    buckets = [[places[id(p)] for p in b] for b in buckets_of(parameters)]
    sgd = lib.optim.SGD(parameters, lr=0.01)
    steps = []
    for _ in range(13):
        begin = time.perf_counter()
        sgd.zero_grad()
        lib.nn.functional.cross_entropy(model(x), y).backward()
        sgd.step()
        end = time.perf_counter()
        ready = [1000 * (max(came[i] for i in b) - begin) for b in buckets]
        steps.append([*ready, 1000 * (end - begin)])
    *ready, step = [sorted(column)[5] for column in zip(*steps[3:])]
    sizes = [sum(4 * parameters[i].numel() for i in b) for b in buckets]
    rows = [{"bytes": n, "ready_ms": round(t, 3)} for n, t in zip(sizes, ready)]
    text = json.dumps({"model": args.model, "step_ms": round(step, 3), "buckets": rows}, indent=1)
    Path(args.file).write_text(text + "\n")
    print(text)


def even_trace(args):
    """Buckets that a backward, two thirds of a step, fills at an even pace."""
    sizes = [min(MB, args.parameters)]
    while sum(sizes) < args.parameters:
        sizes.append(min(25 * MB, args.parameters - sum(sizes)))
    forward, backward = args.step / 3, 2 * args.step / 3
    filled, rows = 0, []
    for n in sizes:
        filled += n
        rows.append({"bytes": n, "ready_ms": forward + backward * filled / args.parameters})
    return {"step_ms": args.step, "buckets": rows}


def simulate(args):
    """Scaling of a step whose buckets are ready at given times. What a step does after its last
    bucket is full, the optimizer, waits for the reductions."""
    played = json.loads(Path(args.trace).read_text()) if args.trace else even_trace(args)
    step, buckets = played["step_ms"], played["buckets"]
    after = step - buckets[-1]["ready_ms"]
    limit = None
    print("| ranks | step, ms | of it computation |\n|---|---|---|")
    for power in range(13):
        p, now = 1 << power, 0.0
        for b in buckets:
            ring = (
                2 * (p - 1) * (args.latency + 1e6 * b["bytes"] / (p * args.bandwidth * 1e9)) / 1000
            )
            now = max(now, b["ready_ms"]) + (ring if p > 1 else 0)
        share = step / (now + after)
        limit = limit or (p if share < 0.5 else None)
        print(f"| {p} | {now + after:.1f} | {100 * share:.0f} % |")
    print(f"\nless than half is computation from {limit or 'more than 4096'} ranks on")


def main():
    if sys.argv[1:2] == ["worker"]:
        return worker(*sys.argv[2:])
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "mode", nargs="?", default="compare", choices=["compare", "trace", "simulate"]
    )
    parser.add_argument("file", nargs="?", help="of trace")
    parser.add_argument("--model", default="wide", choices=sorted(BATCH), help="of trace")
    parser.add_argument("--trace", help="a file of trace")
    parser.add_argument("--backend", default="gloo", choices=["gloo", "mpi"])
    parser.add_argument("--pin", action="store_true", help="each process has a core")
    parser.add_argument("--torch", help="a Python that has torch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parameters", type=int, default=100 * MB, help="bytes of gradients")
    parser.add_argument("--step", type=float, default=100.0, help="ms of a step of one rank")
    parser.add_argument("--bandwidth", type=float, default=12.5, help="GB/s of a link")
    parser.add_argument("--latency", type=float, default=10.0, help="us of a message")
    args = parser.parse_args()
    return {"compare": compare, "trace": trace, "simulate": simulate}[args.mode](args)


if __name__ == "__main__":
    main()
