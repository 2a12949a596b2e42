"""python -m tt.distributed.run starts the processes of a group. Its arguments are torchrun's.

Each process gets RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, GROUP_RANK, MASTER_ADDR,
MASTER_PORT and TORCHELASTIC_RUN_ID. If one fails, the others are terminated; with --max-restarts,
all of them are then restarted.
"""
from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
from typing import Any, NoReturn

POLL_SECONDS = 0.05


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the arguments."""
    p = argparse.ArgumentParser(prog="tt.distributed.run", description=__doc__)
    p.add_argument("--nproc-per-node", "--nproc_per_node", default="1")
    p.add_argument("--nnodes", default="1")
    p.add_argument("--node-rank", "--node_rank", type=int, default=0)
    p.add_argument("--master-addr", "--master_addr", default="127.0.0.1")
    p.add_argument("--master-port", "--master_port", type=int, default=0)
    p.add_argument("--rdzv-endpoint", "--rdzv_endpoint", default="")
    p.add_argument("--rdzv-backend", "--rdzv_backend", default="static")
    p.add_argument("--rdzv-id", "--rdzv_id", default="none")
    p.add_argument("--max-restarts", "--max_restarts", type=int, default=0)
    p.add_argument("--grace-seconds", type=float, default=5, help="between SIGTERM and SIGKILL")
    p.add_argument("--standalone", action="store_true")
    p.add_argument("--no-python", "--no_python", action="store_true")
    p.add_argument("-m", "--module", action="store_true")
    p.add_argument("script")
    p.add_argument("args", nargs=argparse.REMAINDER)
    return p


def processes_of(text: str) -> int:
    """Parses --nproc-per-node: a number, or "auto" or "cpu" for one process per processor."""
    if text in ("auto", "cpu"):
        return len(os.sched_getaffinity(0))
    return int(text)


def free_port() -> int:
    """Returns a free port."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def command_of(args: Any) -> list[str]:
    """Returns the command line of one process."""
    if args.no_python:
        return [args.script, *args.args]
    return [sys.executable, "-u", *(["-m"] if args.module else []), args.script, *args.args]


def start(args: Any, local_size: int, nodes: int, attempt: int) -> list[subprocess.Popen[bytes]]:
    """Starts the processes of this node."""
    address, port = args.master_addr, args.master_port
    if args.rdzv_endpoint:
        address, _, text = args.rdzv_endpoint.rpartition(":")
        port = int(text)
    if not port:
        if nodes > 1:
            raise SystemExit("tt.distributed.run: --master-port is needed for several nodes")
        port = free_port()
    common = {
        "WORLD_SIZE": local_size * nodes,
        "LOCAL_WORLD_SIZE": local_size,
        "GROUP_RANK": args.node_rank,
        "MASTER_ADDR": address,
        "MASTER_PORT": port,
        "TORCHELASTIC_RUN_ID": args.rdzv_id,
        "TORCHELASTIC_RESTART_COUNT": attempt,
        "TORCHELASTIC_MAX_RESTARTS": args.max_restarts,
    }
    started = []
    for local in range(local_size):
        own = {"RANK": args.node_rank * local_size + local, "LOCAL_RANK": local}
        values = {name: str(value) for name, value in {**common, **own}.items()}
        started.append(subprocess.Popen(command_of(args), env={**os.environ, **values}))
    return started


def end(processes: list[subprocess.Popen[bytes]], grace: float) -> None:
    """Terminates all processes with SIGTERM and, after the grace period, with SIGKILL."""
    running = [p for p in processes if p.poll() is None]
    for p in running:
        p.terminate()
    deadline = time.monotonic() + grace
    for p in running:
        try:
            p.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            p.kill()  # stopped processes, too
            p.wait()


def watch(processes: list[subprocess.Popen[bytes]], grace: float) -> int:
    """Waits until all processes end or one fails. Returns the exit status of that one, else 0."""
    try:
        while True:
            codes = [p.poll() for p in processes]
            failed = [(i, code) for i, code in enumerate(codes) if code]
            if failed:
                local, code = failed[0]
                print(
                    f"tt.distributed.run: process {local} (pid {processes[local].pid}) failed "
                    f"with status {code}",
                    file=sys.stderr,
                )
                return code if code > 0 else 128 - code
            if all(code == 0 for code in codes):
                return 0
            time.sleep(POLL_SECONDS)
    finally:
        end(processes, grace)


def stop(number: int, frame: Any) -> NoReturn:
    """Handles a signal to the launcher by ending the processes."""
    raise SystemExit(128 + number)


def main(argv: list[str] | None = None) -> int:
    """Runs the launcher and returns its exit status."""
    args = parser().parse_args(argv)
    local_size, nodes = processes_of(args.nproc_per_node), int(args.nnodes.split(":")[0])
    signal.signal(signal.SIGTERM, stop)
    for attempt in range(args.max_restarts + 1):
        code = watch(start(args, local_size, nodes, attempt), args.grace_seconds)
        if not code:
            return 0
    return code


if __name__ == "__main__":
    sys.exit(main())
