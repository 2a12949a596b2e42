"""nccl_test.py [--device FILE] [--nccl FILE] [--only SETS]: the backend "nccl" of tt with NVIDIA's
library on one GPU.

Prints a line for each case and exits with 1 if one has failed. TT_LIBRARY is libtt.so, by default
that of .gpu/lib; beside it are libtt_gloo.so and, unless --device names another, the device library
libtt_cuda.so; NCCL is pip's, or that of --nccl. Two processes share the GPU: NCCL_HOSTID lets NCCL
take them for two hosts, which it connects by sockets. Without it NCCL refuses them. TT_FAKE_NCCL is
for the NCCL of the fake devices, on which python.nccl runs this file.
"""
import argparse
import ctypes
import gc
import os
import signal
import socket
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
os.environ.setdefault("TT_LIBRARY", str(ROOT / ".gpu/lib/libtt.so.0"))
sys.path.insert(0, str(ROOT / "bindings/python"))

import tt  # noqa: E402
from tt import distributed as dist  # noqa: E402
from tt.distributed import _group  # noqa: E402
from tt.distributed.algorithms.ddp_comm_hooks import default_hooks  # noqa: E402
from tt.nn.parallel import DistributedDataParallel as DDP  # noqa: E402

CASE_SECONDS = 100  # of one set of processes; on a device most of it is the start
GROUP_SECONDS = 30
LOST_SECONDS = 6  # the timeout of a group in which a process dies
SIZES = (0, 1, 7, 3000)
DTYPES = (
    tt.bool, tt.uint8, tt.int8, tt.int16, tt.int32, tt.int64,
    tt.float16, tt.bfloat16, tt.float32, tt.float64, tt.complex64, tt.complex128,
)  # fmt: skip


# ---- values, in numpy ----


def wide(dtype):
    return np.complex128 if dtype.is_complex else np.float64


def numbers(n, dtype, rank):
    """Small numbers, whose sums are exact in every dtype."""
    found = (np.arange(n) * (rank + 3) % 4 + 1).astype(wide(dtype))
    return found % 2 if dtype == tt.bool else found


def on_device(array, dtype):
    """Like an operator of the device: what comes next must wait for it."""
    t = tt.from_numpy(array).to(dtype).to("cuda")
    return t | t if dtype == tt.bool else t * 1


def found_in(t):
    return t.cpu().to(tt.complex128 if t.dtype.is_complex else tt.float64).numpy()


def same(t, expected, what):
    np.testing.assert_array_equal(found_in(t), expected, err_msg=str(what))


def bits(t):
    return _group.bytes_of(t.detach().cpu().contiguous().view(tt.uint8))


def raises(call, *texts, kind=Exception):
    try:
        call()
    except kind as e:
        assert all(text in str(e) for text in texts), f"{e!r} lacks one of {texts}"
        return str(e)
    raise AssertionError(f"no error with {texts}")


# ---- cases: each runs on every rank ----


def reductions(rank, size):
    """all_reduce, reduce and reduce_scatter, over dtypes and sizes."""
    op = dist.ReduceOp
    cases = ((op.SUM, np.sum), (op.PRODUCT, np.prod), (op.MIN, np.min), (op.MAX, np.max))
    for dtype in DTYPES:
        if dtype == tt.int16 and size > 1:
            continue  # NCCL has none: see errors
        for n in SIZES:
            for which, combine in cases:
                if dtype.is_complex and which in (op.MIN, op.MAX):
                    continue
                if dtype.is_complex and which == op.PRODUCT and size > 1:
                    continue
                all_ranks = np.stack([numbers(n, dtype, r) for r in range(size)])
                total = combine(all_ranks, axis=0)
                if dtype == tt.bool:
                    total = (total > 0).astype(float)
                x = on_device(numbers(n, dtype, rank), dtype)
                dist.all_reduce(x, which)
                same(x, total, (dtype, n, which))
        total = np.sum([numbers(5 * size, dtype, r) for r in range(size)], axis=0)
        total = (total > 0).astype(float) if dtype == tt.bool else total
        whole = on_device(numbers(5 * size, dtype, rank), dtype)
        part = tt.empty(5, dtype=dtype, device="cuda")
        dist.reduce_scatter_tensor(part, whole, op.SUM)
        same(part, total[5 * rank : 5 * rank + 5], ("reduce_scatter", dtype))
        dist.reduce(whole, dst=size - 1)
        kept = rank != size - 1
        same(whole, numbers(5 * size, dtype, rank) if kept else total, ("reduce", dtype))
    mean = tt.full((70_001,), float(rank), device="cuda")
    dist.all_reduce(mean, op.AVG)
    same(mean, np.full(70_001, (size - 1) / 2), "mean")


def moves(rank, size):
    """Collectives that move data, over dtypes and sizes."""
    for dtype in DTYPES:
        for n in SIZES:
            each = [numbers(n, dtype, r) for r in range(size)]
            x = on_device(each[rank], dtype)
            dist.broadcast(x, size - 1)
            same(x, each[-1], ("broadcast", dtype, n))
            whole = tt.empty(size * n, dtype=dtype, device="cuda")
            dist.all_gather_into_tensor(whole, on_device(each[rank], dtype))
            same(whole, np.concatenate(each), ("all_gather", dtype, n))
            parts = tt.empty(size * n, dtype=dtype, device="cuda")
            dist.all_to_all_single(parts, whole)
            same(parts, np.concatenate([each[rank]] * size), ("all_to_all", dtype, n))
        items = [on_device(e, dtype) for e in each] if rank == 0 else None
        x = tt.empty(n, dtype=dtype, device="cuda")
        dist.scatter(x, items, src=0)
        same(x, each[rank], ("scatter", dtype))
        root = size - 1
        found = [tt.empty(n, dtype=dtype, device="cuda") for _ in each] if rank == root else None
        dist.gather(x, found, dst=root)
        for a, b in zip(found or [], each):
            same(a, b, ("gather", dtype))
    dist.barrier()
    on_cpu = tt.full((3,), rank + 1.0)
    dist.all_reduce(on_cpu)
    assert on_cpu.tolist() == [size * (size + 1) / 2] * 3


def async_works(rank, size):
    """Works in the order of streams: before them, after them, on a stream of the application."""
    total = size * (size + 1) / 2
    xs = [tt.full((100_000,), rank + 1.0, device="cuda") * (i + 1) for i in range(5)]
    works = [dist.all_reduce(x, async_op=True) for x in xs]
    assert all(w.wait() for w in works)
    for i, x in enumerate(xs):
        assert (x * 2)[99_999].item() == total * (i + 1) * 2
    deadline = time.monotonic() + GROUP_SECONDS
    while not all(w.is_completed() for w in works):
        assert time.monotonic() < deadline
        time.sleep(0.001)
    assert all(w.is_success() for w in works)
    side = tt.cuda.Stream()
    with tt.cuda.stream(side):
        x = tt.full((100_000,), rank + 1.0, device="cuda") * 2
        dist.all_reduce(x)
        x += 1
    assert x[99_999].item() == 2 * total + 1
    future = dist.all_reduce(tt.ones(3, device="cuda"), async_op=True).get_future()
    assert future.then(lambda f: f.value()[0].tolist()).wait() == [size] * 3


def sub_groups(rank, size):
    same_ranks, mine = dist.new_group(), dist.new_group([rank] if size == 1 else [0])
    reverse = dist.new_group(list(reversed(range(size))))
    x = on_device(numbers(9, tt.float32, reverse.rank()), tt.float32)
    dist.broadcast(x, reverse.ranks[0], group=reverse)
    same(x, numbers(9, tt.float32, 0), "reversed ranks")
    for g in (same_ranks, mine):
        if g is dist.GroupMember.NON_GROUP_MEMBER:
            continue
        dist.all_reduce(x := tt.ones(4, device="cuda"), group=g)
        assert x.tolist() == [g.size()] * 4
        dist.destroy_process_group(g)
        raises(lambda g=g: dist.destroy_process_group(g))


def transfers(rank, size):
    """send and recv, both at once, and the same again over the same communicators."""
    if size == 1:
        raises(lambda: dist.send(tt.ones(3, device="cuda"), 0), "the rank of this process")
        return
    above, below = (rank + 1) % size, (rank - 1) % size
    for n in (3, 500_000):
        into = tt.zeros(n, device="cuda")
        sent = dist.isend(tt.full((n,), float(rank), device="cuda"), above, tag=3)
        received = dist.irecv(into, below, tag=3)
        received.wait()
        sent.wait()
        same(into, np.full(n, below), ("both at once", n))
    for sender in range(2):
        if rank == sender:
            dist.send(tt.arange(5.0).to("cuda"), 1 - rank)
        elif rank < 2:
            dist.recv(into := tt.zeros(5, device="cuda"), 1 - rank)
            same(into, np.arange(5.0), "one after the other")


def model_of():
    tt.manual_seed(7)
    nn = tt.nn
    layers = [nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 10)]
    return nn.Sequential(*layers).to("cuda")


def trained(model, batches, hook=None):
    """Returns the bits of the parameters after a step for each batch."""
    step = DDP(model, bucket_cap_mb=0.01) if hook is not False else model
    if hook:
        step.register_comm_hook(None, hook)
    optimizer = tt.optim.Adam(model.parameters(), lr=1e-2)
    for x, y in batches:
        optimizer.zero_grad()
        tt.nn.functional.cross_entropy(step(x), y).backward()
        optimizer.step()
    return [bits(p) for p in model.parameters()]


def batches_of(seed):
    tt.manual_seed(seed)
    xs = [tt.randn(16, 32) for _ in range(3)]
    ys = [tt.randint(0, 10, (16,)) for _ in range(3)]
    return [(x.to("cuda"), y.to("cuda")) for x, y in zip(xs, ys)]


def training(rank, size):
    """Equal batches give the bits of training without a group; other ones those of all ranks."""
    alone = trained(model_of(), batches_of(5), hook=False)
    assert trained(model_of(), batches_of(5)) == alone, "other bits than without a group"
    first, again = (trained(model_of(), batches_of(10 + rank)) for _ in range(2))
    assert first == again, "other bits in the second run"
    joint = _group.tensor_of_bytes(b"".join(first)).to("cuda")
    others = joint.clone()
    dist.broadcast(others, 0)
    assert tt.equal(joint, others), "other bits than rank 0"
    assert size == 1 or first != alone
    trained(model_of(), batches_of(10 + rank), default_hooks.bf16_compress_hook)


def close_at_once(rank, size):
    """What was sent arrives although its sender closes the group."""
    group = dist.new_group()
    if rank == 0:
        dist.send(tt.arange(5.0).to("cuda"), 1, group=group)
    else:
        dist.recv(into := tt.zeros(5, device="cuda"), 0, group=group)
        same(into, np.arange(5.0), "sent before the group was closed")
    dist.destroy_process_group(group)


def errors(rank, size):
    """Refusals before NCCL is asked, after which the group is usable."""
    op = dist.ReduceOp
    one = tt.zeros(3, device="cuda")
    raises(lambda: dist.broadcast(one, size), "rank")
    raises(lambda: dist.reduce(one, -1), "rank")
    raises(lambda: dist.reduce_scatter_tensor(one, tt.zeros(3 * size + 1, device="cuda")))
    raises(lambda: dist.all_gather_into_tensor(one.to(tt.float64), one), "float64")
    if size > 1:
        for x, which in (
            (one.to(tt.int16), op.SUM),
            (one.to(tt.int32), op.BXOR),
            (one.to(tt.complex64), op.PRODUCT),
        ):
            raises(lambda x=x, which=which: dist.all_reduce(x, which), "NCCL has no reduction")
        mixed = one.to(tt.float32 if rank == 0 else tt.float64)
        raises(lambda: dist.all_reduce(mixed), "the ranks disagree", "float32", "float64")
        raises(lambda: dist.all_reduce(tt.zeros(3 + rank, device="cuda")), "disagree", "[3]", "[4]")
        place = "cuda" if rank else "cpu"
        raises(lambda: dist.all_reduce(tt.zeros(3, device=place)), "rank 0", "CUDA tensor")
        raises(lambda: dist.recv(one, rank), "rank")
    dist.all_reduce(x := tt.ones(3, device="cuda"))
    assert x.tolist() == [size] * 3


def closing(rank, size):
    """Closing twice is an error; memory of the device is as it was, and a new group works."""
    dist.destroy_process_group()
    raises(dist.destroy_process_group, kind=ValueError)
    raises(lambda: dist.all_reduce(tt.ones(3, device="cuda")), kind=ValueError)


def refused(rank, size):
    """NCCL refuses two ranks on one GPU: a status with NCCL's words, and no other call hangs."""
    begin = time.monotonic()
    text = raises(lambda: dist.all_reduce(tt.ones(3, device="cuda")), "NCCL fails with")
    assert "GPU" in text, f"NCCL's reason is not in: {text}"
    print(f"     rank {rank}: {text}", flush=True)
    raises(lambda: dist.all_reduce(tt.ones(3, device="cuda")), "failed before")
    raises(lambda: dist.all_reduce(tt.ones(3)), "failed before")
    assert time.monotonic() - begin < GROUP_SECONDS


def lost(rank, size):
    """A rank that is killed in a call: the others have an error within the timeout."""
    dist.all_reduce(tt.ones(3, device="cuda"))
    tt.cuda.synchronize()
    x = tt.ones(30_000_000 if os.environ["TT_NCCL_FAKE"] == "no" else 100, device="cuda")
    dist.barrier()
    if rank == size - 1:
        works = [dist.all_reduce(x, async_op=True) for _ in range(3)]
        time.sleep(0.05)  # on a device the first one takes longer
        os.kill(os.getpid(), signal.SIGKILL)
    works = [dist.all_reduce(x, async_op=True) for _ in range(3)]
    begin = time.monotonic()
    raises(lambda: ([w.wait() for w in works], dist.barrier()))
    assert time.monotonic() - begin < 3 * LOST_SECONDS
    raises(lambda: dist.all_reduce(tt.ones(3)), "failed before")


def direct(rank, size):
    """A communicator of one rank by tt's own declarations of NCCL's types and numbers."""

    class Id(ctypes.Structure):
        _fields_ = [("bytes", ctypes.c_char * 128)]

    class Config(ctypes.Structure):  # NcclConfig in src/dist/nccl_library.h
        _fields_ = [
            ("size", ctypes.c_size_t),
            ("magic", ctypes.c_uint),
            ("version", ctypes.c_uint),
            ("blocking", ctypes.c_int),
        ]

    nccl = ctypes.CDLL(_group.library_of("nccl") or "libnccl.so.2")
    comm, own, state, version = ctypes.c_void_p(), Id(), ctypes.c_int(), ctypes.c_int()
    tt.ones(1, device="cuda").item()  # a current device

    def settle(result):
        deadline = time.monotonic() + GROUP_SECONDS
        while result == 7:
            assert time.monotonic() < deadline, "NCCL is in progress for ever"
            assert nccl.ncclCommGetAsyncError(comm, ctypes.byref(state)) == 0
            result = state.value
        assert result == 0, f"NCCL fails with {result}"

    settle(nccl.ncclGetVersion(ctypes.byref(version)))
    print(f"     NCCL {version.value}", flush=True)
    settle(nccl.ncclGetUniqueId(ctypes.byref(own)))
    config = Config(ctypes.sizeof(Config), 0xCAFEBEEF, 21400, 0)
    begun = nccl.ncclCommInitRankConfig(ctypes.byref(comm), 1, own, 0, ctypes.byref(config))
    settle(begun or 7)
    stream = tt.cuda.Stream()
    numbers_of = {
        tt.int8: 0, tt.uint8: 1, tt.int32: 2, tt.int64: 4, tt.float16: 6, tt.float32: 7,
        tt.float64: 8, tt.bfloat16: 9,
    }  # fmt: skip
    for dtype, number in numbers_of.items():
        x, y = on_device(numbers(1000, dtype, 0), dtype), tt.zeros(1000, device="cuda").to(dtype)
        tt.cuda.synchronize()
        for which in range(5):
            args = (x.data_ptr(), y.data_ptr(), 1000, number, which, comm.value)
            types = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
            call = nccl.ncclAllReduce
            call.argtypes = [*types, ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
            settle(call(*args, stream.cuda_stream) or 7)
            stream.synchronize()
            same(y, numbers(1000, dtype, 0), (dtype, which))
    nccl.ncclGetErrorString.restype = nccl.ncclGetLastError.restype = ctypes.c_char_p
    assert b"invalid usage" in nccl.ncclGetErrorString(5)
    settle(nccl.ncclCommAbort(comm))


COMMON = [reductions, moves, async_works, sub_groups, transfers, training, errors, closing]
HOSTS = {
    "NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1", "NCCL_MNNVL_ENABLE": "0",
    "NCCL_NVLS_ENABLE": "0", "NCCL_DEBUG": "WARN",
}  # fmt: skip
PAIR = {"NCCL_HOSTID": "tt-{rank}"}
SETS = {  # name: processes, cases, timeout of the group, environment
    "direct": (1, [direct], GROUP_SECONDS, {}),
    "alone": (1, COMMON, GROUP_SECONDS, {}),
    "pair": (2, COMMON, GROUP_SECONDS, PAIR),
    "refused": (2, [refused], GROUP_SECONDS, {"TT_FAKE_NCCL": "duplicate"}),
    "close": (2, [close_at_once], GROUP_SECONDS, {**PAIR, "TT_FAKE_NCCL": "slow"}),
    "lost": (2, [lost], LOST_SECONDS, PAIR),
}


# ---- processes ----


def begin(options, seconds):
    tt.runtime.load_cuda(options.device)
    found = _group.library_of
    if options.nccl:
        _group.library_of = lambda b: options.nccl if b == "nccl" else found(b)
    dist.init_process_group("cpu:gloo,cuda:nccl", timeout=timedelta(seconds=seconds))


def run_rank(options):
    """Runs the cases of a set; after one that has failed the ranks are at different calls."""
    size, cases, seconds, _ = SETS[options.set]
    begin(options, seconds)
    rank, before = dist.get_rank(), tt.cuda.memory_allocated()
    for case in cases:
        start = time.monotonic()
        try:
            case(rank, size)
        except BaseException as e:
            print(f"FAIL {options.set}.{case.__name__} rank {rank}: {e!r}", flush=True)
            os._exit(1)
        if rank == 0:
            took = time.monotonic() - start
            print(f"ok   {options.set}.{case.__name__} {took:.2f} s", flush=True)
    if dist.is_initialized():
        dist.destroy_process_group()
    gc.collect()
    tt.cuda.synchronize()
    left = tt.cuda.memory_allocated() - before
    handles = [row for row in tt.runtime.live() if row["kind"] in ("group", "work")]
    if left or handles:
        print(f"FAIL {options.set}: rank {rank} leaves {left} bytes and {handles}", flush=True)
        os._exit(1)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run_set(name, options):
    """Starts the processes of a set and returns whether all have succeeded in time."""
    size, _, _, more = SETS[name]
    port = str(free_port())
    processes = []
    for rank in range(size):
        env = {**os.environ, **HOSTS, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        env.update({key: value.format(rank=rank) for key, value in more.items()})
        env.update(RANK=str(rank), WORLD_SIZE=str(size))
        folder = os.path.dirname(os.environ["TT_LIBRARY"])  # of the libraries that Gloo needs, too
        env["LD_LIBRARY_PATH"] = f"{folder}:{env.get('LD_LIBRARY_PATH', '')}"
        env["TT_NCCL_FAKE"] = "yes" if "fake" in Path(options.device).name else "no"
        args = [sys.executable, __file__, "--device", options.device, "--set", name]
        args += ["--nccl", options.nccl] if options.nccl else []
        processes.append(subprocess.Popen(args, env=env))
    deadline = time.monotonic() + CASE_SECONDS
    good = True
    for rank, process in enumerate(processes):
        killed = name == "lost" and rank == size - 1
        try:
            status = process.wait(max(0.0, deadline - time.monotonic()))
            good &= status == (-signal.SIGKILL if killed else 0)
            if status not in (0, 1) and not killed:
                print(f"FAIL {name}: rank {rank} ends with {status}", flush=True)
        except subprocess.TimeoutExpired:
            print(f"FAIL {name}: rank {rank} hangs after {CASE_SECONDS} s", flush=True)
            good = False
            process.kill()
            process.wait()
    return good


def main():
    parser = argparse.ArgumentParser()
    folder = Path(os.environ["TT_LIBRARY"]).parent
    parser.add_argument("--device", default=str(folder / "libtt_cuda.so"))
    parser.add_argument("--nccl")
    parser.add_argument("--only", default=",".join(SETS), help="sets of cases, by commas")
    parser.add_argument("--set", choices=SETS, help="be a process of this set")
    options = parser.parse_args()
    if options.set:
        return run_rank(options)
    begun = time.monotonic()
    results = [run_set(name, options) for name in options.only.split(",")]
    took = time.monotonic() - begun
    print(f"{sum(results)} of {len(results)} sets of cases passed in {took:.0f} s", flush=True)
    return sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
