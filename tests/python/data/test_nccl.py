"""The backend nccl on the fake devices: this file, run by the launcher with the name of a scenario
and its argument, is the program of each process. tests/fake/nccl.cpp takes the place of NVIDIA's
library."""
import ctypes
import os
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import test_distributed as t  # noqa: E402
from test_distributed import DDP, DTYPES, TIMEOUT, dist, raises, together, tt, values  # noqa: E402

LATE_ORDERS = (0, 7)  # work of the devices runs at once, or in an order that 7 picks


def fake_library():
    return str(Path(os.environ["TT_BUILD"]) / "tests/fake/libtt_fake.so")


def begin_on_devices(seconds=TIMEOUT, late=None):
    """Joins the default group with the backend nccl; each rank uses the fake device of its own."""
    from tt import runtime
    from tt.distributed import _group

    runtime.load_cuda(fake_library())
    found = _group.library_of
    _group.library_of = lambda b: fake_library() if b == "nccl" else found(b)
    if late is not None:
        ctypes.CDLL(fake_library()).tt_fake_late(ctypes.c_uint64(late))
    dist.init_process_group("cpu:gloo,cuda:nccl", timeout=timedelta(seconds=seconds))
    return dist.get_rank(), dist.get_world_size()


def on_devices(order):
    """Collectives and transfers of CUDA tensors are those of the CPU, in every order of streams."""
    rank, size = begin_on_devices(late=int(order))
    op = dist.ReduceOp
    for n in (0, 1, 7, 3000) if order == "0" else (7,):
        for dtype in DTYPES:
            expected = together(n, dtype, size, tt.add if dtype != tt.bool else tt.logical_or)
            mine = values(n, dtype, rank).to("cuda")
            mine = mine | mine if dtype == tt.bool else mine * 1  # work of the device comes first
            if dtype != tt.int16:
                dist.all_reduce(mine)
                again = mine | mine if dtype == tt.bool else mine * 2
                assert tt.equal(mine.cpu(), expected), (n, dtype)
                assert tt.equal(again.cpu(), expected if dtype == tt.bool else expected * 2)
            mine = values(n, dtype, rank).to("cuda")
            dist.broadcast(mine, size - 1)
            assert tt.equal(mine.cpu(), values(n, dtype, size - 1))
            whole = tt.empty(size * n, dtype=dtype, device="cuda")
            dist.all_gather_into_tensor(whole, values(n, dtype, rank).to("cuda"))
            gathered = tt.cat([values(n, dtype, r) for r in range(size)])
            assert tt.equal(whole.cpu(), gathered)
            part = tt.empty(size * n, dtype=dtype, device="cuda")
            dist.all_to_all_single(part, whole)
            own = gathered[rank * n : (rank + 1) * n]
            assert tt.equal(part.cpu(), tt.cat([own] * size))
    mean = tt.full((5,), float(rank), device="cuda")
    dist.all_reduce(mean, op.AVG)
    assert mean.tolist() == [(size - 1) / 2] * 5
    total = tt.full((1000,), rank + 1.0, device="cuda")
    dist.reduce(total, dst=1)
    assert total[0].item() == (size * (size + 1) / 2 if rank == 1 else rank + 1)
    mine = tt.zeros(3, device="cuda")
    dist.reduce_scatter_tensor(mine, tt.arange(3.0 * size).to("cuda"))
    assert mine.tolist() == [size * (3.0 * rank + i) for i in range(3)]
    items = [tt.full((2,), float(r)).to("cuda") for r in range(size)]
    dist.scatter(mine := tt.zeros(2, device="cuda"), items if rank == 0 else None, src=0)
    assert mine.tolist() == [rank, rank]
    found = [tt.zeros(2, device="cuda") for _ in range(size)] if rank == 1 else None
    dist.gather(mine, found, dst=1)
    assert found is None or all(tt.equal(a.cpu(), b.cpu()) for a, b in zip(found, items))
    above, below = (rank + 1) % size, (rank - 1) % size
    for n in (3, 50_000):  # all send at once, more than waits on its way
        mine, into = tt.full((n,), float(rank), device="cuda"), tt.zeros(n, device="cuda")
        sent = dist.isend(mine, above, tag=3)
        received = dist.irecv(into, below, tag=3)
        tt.cuda.synchronize()
        received.wait()
        sent.wait()
        assert into[n - 1].item() == below
    works = [dist.all_reduce(tt.ones(9, device="cuda"), async_op=True) for _ in range(5)]
    assert all(w.wait() for w in works)
    side = tt.cuda.Stream()
    with tt.cuda.stream(side):
        x = tt.full((100,), rank + 1.0, device="cuda") * 2
        dist.all_reduce(x)
        x += 1
    assert x[99].item() == size * (size + 1) + 1
    half = dist.new_group([0, 1])
    if rank < 2:
        dist.broadcast(x := tt.tensor([float(rank)]).to("cuda"), 1, group=half)
        assert x.item() == 1
    on_cpu = tt.full((3,), rank + 1.0)
    dist.all_reduce(on_cpu)
    assert on_cpu[0] == size * (size + 1) / 2
    refusals(rank)
    train_on_devices(rank, size)


def refusals(rank):
    op = dist.ReduceOp
    short = tt.zeros(3, dtype=tt.int16, device="cuda")
    for x, which in ((short, op.SUM), (short, op.BOR), (short.to(tt.complex64), op.PRODUCT)):
        try:
            dist.all_reduce(x, which)
        except (tt.errors.DtypeError, NotImplementedError) as e:
            assert "NCCL has no reduction" in str(e)
        else:
            raise AssertionError("no error")
    place = "cuda" if rank else "cpu"
    raises(lambda: dist.all_reduce(tt.zeros(3, device=place)), "rank 0", "rank 1", "CUDA tensor")


def train_on_devices(rank, size):
    """Gradients of a module on the device are those of the joint batch."""
    model, shape = t.model_of("cnn")
    joint, _ = t.model_of("cnn")
    model.to("cuda")
    ddp = DDP(model, bucket_cap_mb=0.0002)
    batch = tt.randn(4 * size, *shape)
    for _ in range(2):
        ddp.zero_grad()
        ddp(batch[4 * rank : 4 * rank + 4].to("cuda")).square().mean().backward()
    joint(batch).square().mean().backward()
    for p, q in zip(model.parameters(), joint.parameters()):
        assert p.grad.is_cuda and tt.allclose(p.grad.cpu(), q.grad, rtol=1e-3, atol=1e-5)


def without_answer(kind):
    """An error of NCCL, or one that never answers, ends the call in time and breaks the group."""
    begin_on_devices(seconds=3)
    begin = time.monotonic()
    text = "network error" if kind == "fail" else "NCCL is not done after 3.0 s"
    raises(lambda: (dist.all_reduce(x := tt.ones(3, device="cuda")), x.item()), text)
    assert time.monotonic() - begin < TIMEOUT
    raises(lambda: dist.all_reduce(tt.ones(3)), "failed before")


if __name__ == "__main__":
    {f.__name__: f for f in (on_devices, without_answer)}[sys.argv[1]](sys.argv[2])
    print(f"{sys.argv[1]}: rank {dist.get_rank()} is done", flush=True)
    sys.exit()


# ---- tests ----

import pytest  # noqa: E402


def launched(name, argument, size):
    ran = t.launch(None, size, program=[__file__, name, argument])
    t.succeeds(ran, name, range(size))


@t.needs("gloo")
@pytest.mark.parametrize("order", LATE_ORDERS)
def test_tensors_on_devices(order):
    launched("on_devices", str(order), 2 + (order == 0))


@t.needs("gloo")
@pytest.mark.parametrize("kind", ["fail", "hang"])
def test_a_silent_or_failing_nccl_ends_in_time(kind, monkeypatch):
    monkeypatch.setenv("TT_FAKE_NCCL", kind)
    launched("without_answer", kind, 2)


@t.needs("gloo")
def test_the_program_for_a_gpu():
    """tests/gpu/nccl_test.py, which is for NVIDIA's library, on the fake devices."""
    program = Path(__file__).parents[2] / "gpu/nccl_test.py"
    args = ["--device", fake_library(), "--nccl", fake_library(), "--only", "close,pair,refused"]
    ran = subprocess.run([sys.executable, program, *args], capture_output=True, text=True)
    assert ran.returncode == 0 and "FAIL" not in ran.stdout, ran.stdout + ran.stderr
    assert "on rank 1: Duplicate GPU detected : rank 0 and rank 1" in ran.stdout


def test_a_missing_or_foreign_nccl_is_named(monkeypatch):
    def connect(library):
        monkeypatch.setattr("tt.distributed._group.library_of", lambda backend: library)
        dist.init_process_group("nccl", "tcp://127.0.0.1:1", world_size=2, rank=0)

    with pytest.raises(OSError, match='cannot open the library "/no/libnccl.so" of the backend'):
        connect("/no/libnccl.so")
    with pytest.raises(RuntimeError, match="does not export ncclGetVersion"):
        connect("libc.so.6")
