#!/usr/bin/env python3
"""tt beside its peers: bench.py [-n ROUNDS] [-t THREADS] [--fastest] [--note TEXT] [NAME…] writes
docs/benchmarks/<host>.md.

Each workload's two workers stay alive and compute in turn (ab.py), so a ratio holds on a machine
whose speed drifts. Peers live in a virtual environment with torch 2.15.0: $TT_PEERS,
/opt/peers/venv or .cache/peers, made there if `--install` is given. A peer that is absent is
skipped with a line.
"""
import argparse
import datetime
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from ab import Worker, compare  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / ".cache"

# workload: (peer, gate); None: a row without a gate.
LIBTORCH = {
    "add4x4": 10,
    "add_4x4": 10,
    "muls4x4": 20,
    "mul4x4rg": 8,
    "view4x4": 6,
    "sum4x4": 12,
    "mm8": 8,
    "empty4x4": None,
    "chain100fwd": None,
    "chain100fb": None,
    "chain100fb2": None,
    "train_tiny_sgd": 12,
    "train_tiny_adam": 12,
}
TORCH = {
    "mm32x32x32": 2.5,
    "mm64x64x64": 1.25,
    "mm128x128x128": 1.0,
    "mm256x256x256": 1.0,
    "mm512x512x512": 1.0,
    "mm1024x1024x1024": 1.0,
    "mm2048x2048x2048": 1.0,
    "linear1x1024": 6,
    "bmm1024x8": None,
    "addout1e6": 0.97,
    "addout1e7": 0.97,
    "exp1e6": 1.3,
    "sigmoid1e6": 1.3,
    "tanh1e6": 4,
    "sum1e6": 1.0,
    "max1e6": 3,
    "softmax1024x1024": 1.7,
    "layernorm1024x1024": 1.5,
    "xent128x50257": 2.5,
    "where1e6": 15,
    "dropout1e6": 15,
    "rand1e6": 7,
    "randn1e6": 4,
    "argmax128x50257": 5,
    "transpose1024x1024": 2,
    "gather1e6": 1.5,
    "gelu1e6": 1.3,
    "addnew1e7": 0.97,
    "sumdim0_8192x1024": 2,
    "gemv_dram": 2.7,
    "mmbf16_128": None,
    "mmbf16_256": 0.9,
    "mmbf16_512": 0.9,
    "mmbf16_1024": 0.93,
    "mmbf16_2048": 0.9,
    "mmbf16_4096": 0.9,
    "convNHWC_c2": 0.95,
    "convNHWC_c3": 0.95,
    "convNHWC_c4": 0.95,
    "convNHWC_c5": 0.95,
    "convNHWC_c2_fb": 0.95,
    "convNHWC_c3_fb": 0.95,
    "convNHWC_c4_fb": 0.95,
    "convNHWC_c5_fb": 0.95,
    "convNHWC_stem_fb": 1.6,
    "convNHWC_cifar0_fb": 1.5,
    "convNHWC_p1": 1.15,
    "convNHWC_p1_fb": None,
    "convNHWC_stem": None,
    "convNHWC_cifar0": None,
    "convNHWC_cifar": None,
    "convNHWC_cifar_fb": None,
    "convNCHW_c2": None,
    "convNCHW_c3": None,
    "convNCHW_c4": None,
    "convNCHW_c5": None,
    "convNCHW_cifar": None,
    "convNCHW_cifar_fb": None,
    "convNCHW_c2_fb": None,
    "convNCHW_c3_fb": None,
    "convNCHW_c4_fb": None,
    "convNCHW_c5_fb": None,
    "convNCHW_stem_fb": None,
    "convNCHW_cifar0_fb": None,
    "convNCHW_p1": None,
    "maxpool": 25,
    "bilinear": 10,
    "bntrain": 3,
    "mha": None,
    "mha_fb": 1.05,
    "sdpa1024": 1.05,
    "sdpa1024c": 1.3,
    "sdpa4096": None,
    "adam1e6": 1.6,
    "adam1e7": 1.0,
    "adam100x1e4": 2.5,
    "train_mlp_sgd": None,
    "train_mlp_adam": 1.12,
    "train_lenet_sgd": None,
    "train_lenet_adam": 1.8,
    "train_cnn_sgd": None,
    "train_cnn_adam": 1.4,
    "train_gpt_sgd": None,
    "train_gpt_adam": 1.1,
    "train_gpt_bf16": 1.2,
    "train_mlp_bf16": None,
    "train_lenet_bf16": None,
    "train_cnn_bf16": None,
}
ONEDNN = {
    "mm128x128x128": 1.0,
    "mm256x256x256": 1.0,
    "mm512x512x512": 1.0,
    "mm1024x1024x1024": 1.0,
    "mm2048x2048x2048": 1.0,
}
# Why a row misses its gate, and what is planned: printed below the table while it does.
REASONS = {
    "view4x4": "two locked instructions, the base's count up and down, are a quarter of its time.",
    "sigmoid1e6": "bound by arithmetic; a plain division would take 0.75 of its time, but is off by 2.4 ulp.",
    "linear1x1024": "4.2 MB of weights come from the third-level cache.",
}
AT_LIMIT = 0.85  # a gate counts as met at this share of the machine's limit
BACKWARD = ("backward per node", "chain100fb", "chain100fwd", 100, 20)  # (fb - fwd) / nodes


def environment(threads, tcmalloc):
    cpus = ",".join(str(i) for i in range(threads))
    preload = (
        [f"LD_PRELOAD={tcmalloc}"]
        if tcmalloc
        else ["MALLOC_MMAP_MAX_=0", "MALLOC_TRIM_THRESHOLD_=100000000000"]
    )
    clean = (
        f"taskset -c {cpus} env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE OMP_NUM_THREADS={threads}"
    )
    return clean, " ".join([clean, *preload])


def find_tcmalloc():
    for path in (
        "/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4",
        "/usr/lib/x86_64-linux-gnu/libtcmalloc.so.4",
    ):
        if Path(path).exists():
            return path
    return None


def find_python(install):
    """The interpreter of an environment that has torch, or None."""
    places = [os.environ.get("TT_PEERS"), "/opt/peers/venv", CACHE / "peers"]
    for place in filter(None, places):
        python = Path(place) / "bin/python"
        if (
            python.exists()
            and subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0
        ):
            return python
    if not install:
        return None
    subprocess.run([sys.executable, "-m", "venv", CACHE / "peers"], check=True)
    subprocess.run([CACHE / "peers/bin/pip", "install", "-q", "torch==2.15.0", "numpy"], check=True)
    return CACHE / "peers/bin/python"


def built(name, flags, level="-O2"):
    """A peer's worker as a program in .cache, compiled when its source is newer; None if that
    fails."""
    CACHE.mkdir(exist_ok=True)
    source, program = ROOT / "bench" / f"{name}.cpp", CACHE / name
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        done = subprocess.run(
            ["g++", level, "-std=c++20", str(source), *flags, "-o", str(program)],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            print(
                f"skipped: {name} does not build here ({done.stderr.strip().splitlines()[0][:100] if done.stderr else ''})"
            )
            return None
    return program


def libtorch(python):
    site = subprocess.run(
        [python, "-c", "import torch; print(torch.__path__[0])"], capture_output=True, text=True
    ).stdout.strip()
    return built(
        "worker_lt",
        [
            f"-I{site}/include",
            f"-I{site}/include/torch/csrc/api/include",
            f"-L{site}/lib",
            "-ltorch",
            "-ltorch_cpu",
            "-lc10",
            f"-Wl,-rpath,{site}/lib",
        ],
    )


def peers(args, prefix):
    """(title, command, gates) of every peer that is installed."""
    python = find_python(args.install)
    if python:
        lt = libtorch(python)
        if lt:
            yield "libtorch C++", f"{prefix} {lt} {args.threads}", LIBTORCH
        yield "PyTorch eager", f"{prefix} {python} {ROOT}/bench/worker_torch.py {args.threads}", TORCH
    else:
        print(
            "skipped: no PyTorch (set TT_PEERS to a virtual environment that has it, or pass --install)"
        )
    if any(Path(p, "libdnnl.so.2").exists() for p in ("/usr/lib/x86_64-linux-gnu", "/usr/lib")):
        blas = built("worker_blas", ["-lopenblas", "-ldl"])
        if blas:
            yield "oneDNN", f"{prefix} {blas} dnnl", ONEDNN
    else:
        print("skipped: no oneDNN (apt-get install libdnnl2 libopenblas-dev)")


def measure(title, peer, tt, gates, args):
    a, b = Worker(peer, 0.015), Worker(tt, 0.015)
    known = set(a.ask("?").split()) & set(b.ask("?").split())
    rows = {}
    for name in gates:
        if name not in known or (args.names and name not in args.names):
            continue
        row = compare(a, b, name, args.rounds, args.fastest)
        rows[name] = row | {"peer": title, "gate": gates[name]}
        print(
            "{name:20s} {peer:14s} {a_ns:14.1f} ns  tt {b_ns:14.1f} ns  ratio {ratio:7.2f} [{p10:.2f}, {p90:.2f}]".format(
                **rows[name]
            ),
            flush=True,
        )
    a.close(), b.close()
    label, whole, part, nodes, gate = BACKWARD
    if whole in rows and part in rows:
        per_node = {
            side: (rows[whole][side] - rows[part][side]) / nodes for side in ("a_ns", "b_ns")
        }
        ratio = per_node["a_ns"] / per_node["b_ns"]
        rows[label] = {
            "name": label,
            "peer": title,
            "gate": gate,
            **per_node,
            "ratio": ratio,
            "p10": ratio,
            "p90": ratio,
        }
    return list(rows.values())


def add_limits(rows, worker, tt, args):
    """Measures the machine's limit beside tt, in the same run: rows get "limit", the share of it
    that tt reaches."""
    a, b = Worker(worker, 0.015), Worker(tt, 0.015)
    known = set(a.ask("?").split())
    shares = {}
    for name in dict.fromkeys(r["name"] for r in rows if r["name"] in known):
        shares[name] = compare(a, b, name, args.rounds, args.fastest)["ratio"]
        print(f"{name:20s} {shares[name]:.2f} of the machine's limit", flush=True)
    a.close(), b.close()
    for row in rows:
        row["limit"] = shares.get(row["name"])


def nanoseconds(ns):
    for unit, size in (("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.3g} ns"


def verdict(row):
    if row["gate"] is None:
        return ""
    if row["ratio"] >= row["gate"]:
        return "met"
    return "met by its limit" if (row.get("limit") or 0) >= AT_LIMIT else "**missed**"


def table(rows):
    lines = [
        "| workload | peer | peer's time | tt | ratio [p10, p90] | gate | of the limit | |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        gate = "" if r["gate"] is None else f"{r['gate']:g}×"
        limit = f"{r['limit']:.2f}" if r.get("limit") else ""
        lines.append(
            f"| {r['name']} | {r['peer']} | {nanoseconds(r['a_ns'])} | {nanoseconds(r['b_ns'])} | "
            f"{r['ratio']:.2f} [{r['p10']:.2f}, {r['p90']:.2f}] | {gate} | {limit} | {verdict(r)} |"
        )
    return "\n".join(lines)


def host():
    model = [
        line.split(":")[1].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ][0]
    return model


def order(row):
    """Missed rows first, the worst on top."""
    return (
        not verdict(row).startswith("**"),
        row["gate"] is None,
        row["ratio"] / (row["gate"] or 1),
    )


def losses(rows):
    """Each missed row with its reason."""
    missed = [r["name"] for r in rows if verdict(r).startswith("**")]
    return "\n".join(f"- {n}: {REASONS.get(n, 'to be looked into')}" for n in dict.fromkeys(missed))


def output(command):
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT).stdout.strip()


def report(rows, args, tcmalloc):
    family = os.environ.get("TT_HOST") or "".join(
        c if c.isalnum() else "-" for c in host().lower()
    ).strip("-")
    path = (
        ROOT / "docs/benchmarks" / f"{family}{'' if args.threads == 1 else f'-{args.threads}t'}.md"
    )
    dirty = (
        " and changes"
        if output(["git", "status", "--porcelain", "--", "src", "kernels", "include"])
        else ""
    )
    size = output([sys.executable, "bench/size.py", "--brief"])
    commit = output(["git", "rev-parse", "--short", "HEAD"])
    how = "processor time of the fastest batches" if args.fastest else "median of the rounds"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"""# tt and its peers on {host()}
`./dev bench`, {datetime.date.today()}, commit {commit}{dirty}, {args.threads} thread(s),
{args.rounds} rounds of both workers in turn. Ratio: the peer's time by tt's, {how};
above 1 tt is faster. Peers run with {"tcmalloc" if tcmalloc else "malloc that keeps its memory"},
pinned, without `OPENBLAS_CORETYPE`. Gates are those of the project's machine table; one counts as
met, too, at {AT_LIMIT} of the machine's limit, which worker_limit.cpp shows in the same run
(reading or writing the same bytes from the same level of memory, or issuing the same
multiply-adds, with as many threads).
{args.note}
{table(sorted(rows, key=order))}

{losses(rows)}

{size}
"""
    )
    print(f"wrote {path.relative_to(ROOT)}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-n", dest="rounds", type=int, default=15)
    parser.add_argument("-t", dest="threads", type=int, default=1)
    parser.add_argument(
        "--install",
        action="store_true",
        help="make .cache/peers with PyTorch if there is none (6 GB)",
    )
    parser.add_argument(
        "--fastest",
        action="store_true",
        help="compare processor times of the fastest of many short batches, for hosts that others"
        " load; one thread",
    )
    parser.add_argument("--note", default="", help="a line for the report")
    parser.add_argument("--no-report", action="store_true", help="print only")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    if args.fastest:
        os.environ["TT_BENCH_BATCH"] = "0.002"  # seconds: shorter than a time slice
    tcmalloc = find_tcmalloc()
    clean, prefix = environment(args.threads, tcmalloc)
    if not shutil.which("taskset"):
        sys.exit("taskset (util-linux) is needed")
    rows, tt = [], f"{clean} {ROOT}/build/bench/tt_worker {args.threads}"
    for title, command, gates in peers(args, prefix):
        rows += measure(title, command, tt, gates, args)
    limits = rows and built("worker_limit", ["-march=native", "-pthread"], "-O3")
    if limits:
        add_limits(rows, f"{clean} {limits} {args.threads}", tt, args)
    if rows and not args.no_report and not args.names:
        report(rows, args, tcmalloc)


if __name__ == "__main__":
    main()
