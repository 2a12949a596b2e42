"""Groups of 2 to 4 processes on this machine: this file, run by the launcher with the name of a
scenario, is the program of each process."""
import copy
import gc
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from datetime import timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "bindings/python"))

import tt  # noqa: E402
from tt import distributed as dist  # noqa: E402
from tt.distributed.algorithms.ddp_comm_hooks import default_hooks  # noqa: E402
from tt.nn.parallel import DistributedDataParallel as DDP  # noqa: E402

TIMEOUT = 20.0
FAULT_TIMEOUT = 3.0  # seconds, of the group in which a process fails
DTYPES = [
    tt.bool, tt.uint8, tt.int8, tt.int16, tt.int32, tt.int64,
    tt.float16, tt.bfloat16, tt.float32, tt.float64, tt.complex64, tt.complex128,
]  # fmt: skip


# ---- scenarios: run in every process, with its rank and the number of processes ----


def values(n, dtype, rank):
    """Small numbers, whose sums are exact in every dtype."""
    return ((tt.arange(n) * (rank + 3)) % 4 + 1).to(dtype)


def together(n, dtype, size, combine):
    """What a reduction of the values of all ranks gives."""
    found = values(n, dtype, 0)
    for r in range(1, size):
        found = combine(found, values(n, dtype, r))
    return found


def reductions(n, dtype, rank, size):
    """The collectives of reductions that collectives() does not call, for one dtype."""
    op = dist.ReduceOp
    total = together(size * n, dtype, size, tt.logical_or if dtype == tt.bool else tt.add)
    for wait in True, False:
        mine = values(size * n, dtype, rank)
        ended(dist.reduce(mine, size - 1, async_op=not wait))
        kept = rank != size - 1
        assert tt.equal(mine, values(size * n, dtype, rank) if kept else total), (dtype, wait)
        part = tt.empty(n, dtype=dtype)
        whole = values(size * n, dtype, rank)
        ended(dist.reduce_scatter_tensor(part, whole, op.SUM, async_op=not wait))
        assert tt.equal(part, total[rank * n : rank * n + n]), (dtype, wait)
        parts = [values(n, dtype, r) for r in range(size)]
        ended(dist.scatter(part, parts if rank == 1 else None, src=1, async_op=not wait))
        assert tt.equal(part, parts[rank]), (dtype, wait)
        found = [tt.empty(n, dtype=dtype) for _ in range(size)]
        ended(dist.gather(part, found if rank == 0 else None, dst=0, async_op=not wait))
        assert rank or all(map(tt.equal, found, parts)), (dtype, wait)
        ended(dist.all_gather(found, part, async_op=not wait))
        assert all(map(tt.equal, found, parts)), (dtype, wait)
        ended(dist.all_to_all(found, [part] * size, async_op=not wait))
        assert all(map(tt.equal, found, parts)), (dtype, wait)
        ended(dist.broadcast(part, 1, async_op=not wait))
        assert tt.equal(part, parts[1]), (dtype, wait)
    ended(dist.barrier(async_op=True))


def ended(work):
    """Waits for the work of an asynchronous call; the others have returned None."""
    if work is not None:
        work.wait()
        assert work.is_completed() and work.is_success()


def wide_integers(rank, size):
    """Dtypes that have few operators: compared as int64."""
    for dtype in tt.uint16, tt.uint32, tt.uint64:
        mine = values(7, tt.int64, rank).to(dtype)
        dist.all_reduce(mine)
        assert tt.equal(mine.to(tt.int64), together(7, tt.int64, size, tt.add)), dtype
        whole = tt.empty(size * 7, dtype=dtype)
        dist.all_gather_into_tensor(whole, values(7, tt.int64, rank).to(dtype))
        all_values = tt.cat([values(7, tt.int64, r) for r in range(size)])
        assert tt.equal(whole.to(tt.int64), all_values), dtype


def collectives(rank, size):
    op = dist.ReduceOp
    wide_integers(rank, size)
    for n in (0, 1, 7, 1000, 70001):
        for dtype in DTYPES:
            cases = {op.SUM: tt.add, op.PRODUCT: tt.mul}
            if not dtype.is_complex:
                cases |= {op.MIN: tt.minimum, op.MAX: tt.maximum}
            if not dtype.is_complex and not dtype.is_floating_point:
                cases |= {op.BAND: tt.bitwise_and, op.BOR: tt.bitwise_or, op.BXOR: tt.bitwise_xor}
            if n == 70001:
                cases = {op.SUM: tt.add}
            if dtype == tt.bool:
                cases = {op.SUM: tt.logical_or, op.PRODUCT: tt.logical_and}
            for which, combine in cases.items():
                mine = values(n, dtype, rank)
                dist.all_reduce(mine, which)
                assert tt.equal(mine, together(n, dtype, size, combine)), (n, dtype, which)
            if n == 7:
                reductions(n, dtype, rank, size)
            mine = values(n, dtype, rank)
            dist.broadcast(mine, size - 1)
            assert tt.equal(mine, values(n, dtype, size - 1))
            whole = tt.empty(size * n, dtype=dtype)
            dist.all_gather_into_tensor(whole, values(n, dtype, rank))
            assert tt.equal(whole, tt.cat([values(n, dtype, r) for r in range(size)]))
            dist.all_to_all_single(part := tt.empty(size * n, dtype=dtype), whole + whole)
            assert tt.equal(part[:n], (whole + whole)[rank * n : (rank + 1) * n])
    mean = tt.full((5,), float(rank))
    dist.all_reduce(mean, op.AVG)
    assert mean.tolist() == [(size - 1) / 2] * 5
    total = tt.full((100_000,), rank + 1.0)
    dist.reduce(total, dst=1)
    assert total[0] == (size * (size + 1) / 2 if rank == 1 else rank + 1)
    mine = tt.zeros(3)
    dist.reduce_scatter_tensor(mine, tt.arange(3.0 * size))
    assert mine.tolist() == [size * (3.0 * rank + i) for i in range(3)]
    items = [tt.full((2,), float(r)) for r in range(size)]
    dist.scatter(mine := tt.zeros(2), items if rank == 0 else None, src=0)
    assert mine.tolist() == [rank, rank]
    found = [tt.zeros(2) for _ in range(size)] if rank == 1 else None
    dist.gather(mine, found, dst=1)
    assert found is None or all(tt.equal(a, b) for a, b in zip(found, items))
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": r} for r in range(size)]
    dist.broadcast_object_list(objects := [rank, "x" * rank], src=1)
    assert objects == [1, "x"]


def transfers_and_groups(rank, size):
    above, below = (rank + 1) % size, (rank - 1) % size
    sent = dist.isend(tt.full((70_000,), float(rank)), above, tag=3)
    received = dist.irecv(into := tt.zeros(70_000), below, tag=3)
    received.wait()
    sent.wait()
    assert into[69_999] == below and sent.is_success()
    late = dist.irecv(into, below, tag=5)
    raises(lambda: late.wait(timedelta(seconds=0.01)), "recv is not done after 0.")
    dist.barrier()
    dist.send(tt.full((70_000,), float(rank)), above, tag=5)
    late.wait()
    assert into[0] == below and late.source_rank() == below
    pair = dist.new_group([1, 0])
    rest = dist.new_group([2])
    assert dist.get_rank(rest) == (0 if rank == 2 else -1)
    if rank < 2:
        assert pair.rank() == 1 - rank and dist.get_global_rank(pair, 0) == 1
        dist.broadcast(x := tt.tensor([float(rank)]), 1, group=pair)
        assert x.item() == 1
    if rank == 0:
        found = {dist.recv(into, None, tag=4): int(into[0]) for _ in range(size - 1)}
        assert found == {r: r for r in range(1, size)}, found
    else:
        dist.send(tt.full((70_000,), float(rank)), 0, tag=4)
    works = [dist.all_reduce(tt.ones(9), async_op=True) for _ in range(5)]
    assert all(w.wait() and w.is_completed() for w in works)


def fails(call, text):
    try:
        call()
    except Exception as e:
        assert text in str(e), e
        return
    raise AssertionError("no error")


def meshes_and_stores(rank, size):
    """Arrays of ranks, ranks inside of groups, lists of objects; of 4 processes."""
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    assert mesh.get_coordinate() == [rank // 2, rank % 2] and mesh.shape == (2, 2)
    assert mesh.get_local_rank("tp") == rank % 2 and mesh.size(0) == 2 and len(mesh) == 4
    line = mesh["tp"]
    assert line.mesh.tolist() == [rank // 2 * 2, rank // 2 * 2 + 1] and line.ndim == 1
    for name, expected in (("dp", rank % 2 * 2 + 2), ("tp", rank // 2 * 4 + 1)):
        dist.all_reduce(x := tt.tensor([float(rank)]), group=mesh.get_group(name))
        assert x.item() == expected
    flat = mesh["dp", "tp"]._flatten()
    dist.all_reduce(x := tt.ones(1), group=flat.get_group())
    assert x.item() == 4 and flat.mesh_dim_names == ("dp_tp",)
    assert dist.DeviceMesh("cpu", [0, 1, 2, 3]).get_group() is dist.group.WORLD
    part = dist.DeviceMesh("cpu", [3, 1])
    assert part.get_coordinate() == {3: [0], 1: [1]}.get(rank)
    if rank in (1, 3):
        group = part.get_group()
        dist.broadcast(x := tt.tensor([float(rank)]), group_src=0, group=group)
        assert x.item() == 3
        if rank == 3:
            dist.send_object_list([{"a": 1}, "b"], group=group, group_dst=1)
        else:
            assert dist.recv_object_list(got := [None, None], 3, group) == 3
            assert got == [{"a": 1}, "b"]
        fails(lambda: dist.broadcast(x, 3, group, group_src=0), "either src or group_src")
    fails(lambda: mesh.get_group(), "needs mesh_dim")
    fails(lambda: dist.init_device_mesh("cpu", (8,)), "has 4 ranks")
    fails(lambda: dist.DeviceMesh("cpu", [0, 0]), "must be different")
    fails(lambda: dist.new_group([0], use_local_synchronization=True), "must call new_group")
    mine, both = dist.new_subgroups(2)
    assert dist.get_process_group_ranks(mine) == [rank // 2 * 2, rank // 2 * 2 + 1]
    assert len(both) == 2 and dist.get_node_local_rank() == rank
    place = os.environ["TT_TEST_PLACE"]
    store = dist.FileStore(place + "/store", size)
    port = store.get("port") if rank else None
    tcp = dist.TCPStore("127.0.0.1", int(port or 0), None, rank == 0, timedelta(seconds=20))
    store.set("port", str(tcp.port))
    for shared in (store, dist.PrefixStore("a", tcp)):
        shared.add("n", rank + 1)
        shared.append("log", str(rank))
        shared.set(f"rank{rank}", b"\x00\xff")
        assert shared.multi_get([f"rank{r}" for r in range(size)]) == [b"\x00\xff"] * 4
        dist.barrier()
        assert shared.get("n") == b"10" and sorted(shared.get("log")) == [48, 49, 50, 51]
        winner = shared.compare_set("winner", "", str(rank))
        dist.barrier()
        assert shared.get("winner") == winner
    dist.destroy_process_group()
    dist.init_process_group("gloo", store=dist.PrefixStore("b", tcp), rank=rank, world_size=size)
    dist.all_reduce(x := tt.ones(1))
    assert x.item() == 4
    dist.barrier()


def model_of(kind):
    nn = tt.nn
    tt.manual_seed(7)
    if kind == "mlp":
        return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3)), (6,)
    between = [nn.BatchNorm2d(4)] if kind == "normalized" else []
    layers = [nn.Conv2d(2, 4, 3), *between, nn.ReLU(), nn.Flatten(), nn.Linear(64, 3)]
    return nn.Sequential(*layers), (2, 6, 6)


def data_parallel(rank, size):
    """Gradients are those of the joint batch, also after accumulation; all runs are bit-equal."""
    for kind in ("mlp", "cnn", "normalized"):
        model, shape = model_of(kind)
        joint, _ = model_of(kind)
        model = tt.nn.SyncBatchNorm.convert_sync_batchnorm(model)
        if rank:
            with tt.no_grad():
                for p in model.parameters():
                    p.fill_(float(rank))  # rank 0's replace them
        ddp = DDP(model, bucket_cap_mb=0.0002)
        batches = tt.randn(2, 4 * size, *shape)
        seen = []
        for _ in range(2):
            ddp.zero_grad()
            mine = batches[:, 4 * rank : 4 * rank + 4]
            with ddp.no_sync():
                ddp(mine[0]).square().mean().backward()
            ddp(mine[1]).square().mean().backward()
            seen.append([p.grad.clone() for p in model.parameters()])
        sum(joint(b).square().mean() for b in batches).backward()
        for p, once, again in zip(joint.parameters(), *seen):
            assert tt.allclose(once, p.grad, rtol=1e-3, atol=1e-5), (kind, rank)
            assert tt.equal(once, again)
        if kind == "normalized":  # the model has seen the batches once more
            [joint(b) for b in batches]
        for a, b in zip(model.buffers(), joint.buffers()):
            assert tt.allclose(a, b, rtol=1e-4, atol=1e-6)
    both = "rank 0", "rank 1"
    raises(lambda: DDP(tt.nn.Linear(2 + rank, 1)), *both, "weight (float32 [1,3])")
    raises(lambda: DDP(tt.nn.Sequential(*[tt.nn.Linear(1, 1)] * 1, *other(rank))), *both, "4 and 0")
    raises(lambda: DDP(tt.nn.Linear(1, 1), find_unused_parameters=bool(rank)), *both, "options")


class Gpt(tt.nn.Module):
    """One block over tokens and positions, without dropout."""

    def __init__(self, vocabulary, length, width):
        super().__init__()
        nn = tt.nn
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.block = nn.TransformerEncoderLayer(width, 2, 32, 0.0, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, x):
        n = x.shape[1]
        mask = tt.nn.Transformer.generate_square_subsequent_mask(n)
        h = self.tokens(x) + self.places(tt.arange(n))
        return self.head(self.block(h, src_mask=mask, is_causal=True))


def accumulated_gpt(rank, size):
    """Gradients that a GPT adds up over parts of its batch are those of the joint batch."""
    parts, each, length = 3, 2, 8
    tt.manual_seed(3)
    model = Gpt(11, length, 16)
    joint = copy.deepcopy(model)
    ddp = DDP(model, bucket_cap_mb=0.001)
    tokens = tt.randint(0, 11, (parts, each * size, length + 1))

    def loss_of(m, x):
        logits = m(x[:, :-1])
        return tt.nn.functional.cross_entropy(logits.flatten(0, 1), x[:, 1:].flatten()) / parts

    for k in range(parts):
        mine = tokens[k, each * rank : each * (rank + 1)]
        if k + 1 < parts:
            with ddp.no_sync():
                loss_of(ddp, mine).backward()
        else:
            loss_of(ddp, mine).backward()
        loss_of(joint, tokens[k]).backward()
    for (name, p), q in zip(model.named_parameters(), joint.parameters()):
        assert tt.allclose(p.grad, q.grad, rtol=1e-3, atol=1e-5), name


def other(rank):
    return [tt.nn.Linear(1, 1)] if rank else []


class Branches(tt.nn.Module):
    """Two layers, of which a call uses one or both."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.never = (tt.nn.Linear(2, 1, bias=False) for _ in range(3))

    def forward(self, x, which):
        return sum(getattr(self, name)(x).sum() for name in which)


def unused_parameters(rank, size):
    x = tt.tensor([[1.0, 2.0]]) * (rank + 1)
    ddp = DDP(Branches(), find_unused_parameters=True)
    ddp(x, "ab" if rank else "a").backward()
    m = ddp.module
    assert m.a.weight.grad.tolist() == [[1.5, 3.0]], m.a.weight.grad
    assert m.b.weight.grad.tolist() == [[1.0, 2.0]], m.b.weight.grad
    assert m.never.weight.grad is None
    ddp = DDP(Branches())
    try:  # all ranks: each says what is missing
        ddp(x, "a").backward()
    except tt.errors.AutogradError as e:
        assert "b.weight, never.weight" in str(e) and "find_unused_parameters" in str(e)
    m = Branches()
    m.never = None
    ddp = DDP(m, bucket_cap_mb=1e-6)
    try:  # the others learn it at once
        ddp(x, "ba" if rank else "a").backward()
        raise AssertionError("no error")
    except tt.errors.AutogradError as e:
        assert rank == 0 and "b.weight" in str(e), e
    except dist.DistError as e:
        assert rank == 1 and "rank 0" in str(e) and "without a gradient" in str(e), e
    ddp.zero_grad()
    ddp(x, "ba").backward()  # the group and the model are still usable
    assert m.a.weight.grad.tolist() == [[1.5, 3.0]], m.a.weight.grad


def scaled(state, bucket):
    """Sums in bfloat16 what a rank has, as a chain of futures."""
    assert sum(g.numel() for g in bucket.gradients()) == bucket.buffer().numel()
    assert [g.shape for g in bucket.gradients()] == [p.shape for p in bucket.parameters()]
    state.append((bucket.index(), bucket.is_last(), bucket.buffer().numel()))
    work = dist.all_reduce(message := bucket.buffer().bfloat16(), async_op=True)
    half = work.get_future().then(lambda f: f.value()[0].float())
    assert message.dtype == tt.bfloat16
    return half.then(lambda f: f.value() / dist.get_world_size())


def bucket_hooks(rank, size):
    """Hooks of the application; one that fails on a rank, at each place, is an error on all."""
    model, shape = model_of("mlp")
    ddp = DDP(model, bucket_cap_mb=0.00005)  # 13 numbers: the parameter that fills it is the last
    x = tt.randn(4, *shape) + rank

    def gradients():
        ddp.zero_grad()
        ddp(x).square().mean().backward()
        return [p.grad.clone() for p in model.parameters()]

    plain = gradients()
    calls = []
    ddp.register_comm_hook(calls, scaled)
    rounded = gradients()
    assert calls == [(0, False, 3 + 3 * 16), (1, False, 16), (2, True, 16 * 6)], calls
    assert all(tt.allclose(a, b, rtol=2e-2, atol=1e-2) for a, b in zip(plain, rounded))
    assert any(not tt.equal(a, b) for a, b in zip(plain, rounded))

    def wrapped(state, bucket):
        return default_hooks.allreduce_hook(state, bucket)

    ddp.register_comm_hook(dist.group.WORLD, wrapped)
    assert all(tt.equal(a, b) for a, b in zip(plain, gradients()))
    for place in "start", "then", "result":
        for failing in range(3):
            ddp.register_comm_hook((place, failing, rank), faulty)
            try:
                gradients()
                raise AssertionError("no error")
            except (ZeroDivisionError, TypeError) as e:
                assert rank == 1 and (place == "result") == isinstance(e, TypeError), e
            except dist.DistError as e:
                assert rank != 1 and "rank 1 calls nothing: its hook of gradients" in str(e), e
            dist.all_reduce(n := tt.ones(2))  # the group is still usable
            assert n.tolist() == [size, size]
    ddp.register_comm_hook(None, default_hooks.allreduce_hook)
    assert all(tt.equal(a, b) for a, b in zip(plain, gradients()))
    raises(lambda: ddp.register_comm_hook([], scaled) if rank else call_none(ddp),
           "rank 1 has a hook, rank 0 has none")  # fmt: skip


def call_none(ddp):
    """tt_ddp_set_hook without a hook."""
    tt._lib.call("tt_ddp_set_hook", ddp._handle, None, None, None, None)


def faulty(state, bucket):
    """Fails on rank 1 at a place of a bucket."""
    place, failing, rank = state
    fails = rank == 1 and bucket.index() == failing
    if fails and place == "start":
        1 / 0
    if fails and place == "result":
        return bucket.buffer()
    future = default_hooks.allreduce_hook(None, bucket)
    return future.then(lambda f: 1 / 0) if fails and place == "then" else future


def ddp_options(rank, size):
    """Buffers of rank 0, messages in bfloat16, clipping, autocast, checkpoints; no hooks stay."""
    nn = tt.nn
    tt.manual_seed(rank)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))
    ddp = DDP(model)
    if rank:
        with tt.no_grad():
            model[1].running_mean.fill_(7.0)
    ddp(tt.randn(6, 4)).sum().backward()
    ddp(tt.randn(6, 4))
    means = [tt.zeros(8) for _ in range(size)]
    dist.all_gather(means, model[1].running_mean)
    assert all((m.abs() < 3).all() for m in means)  # without the broadcast: 5.67
    exact, rounded = ([p.grad.clone() for p in reduced(model, hook)] for hook in (False, True))
    assert all(tt.allclose(a, b, rtol=2e-2, atol=1e-2) for a, b in zip(exact, rounded))
    assert any(not tt.equal(a, b) for a, b in zip(exact, rounded))
    ddp = DDP(model)
    x = tt.randn(6, 4)
    with tt.autocast("cpu", dtype=tt.bfloat16):
        y = tt.utils.checkpoint.checkpoint(ddp, x, use_reentrant=False)
    loss = y.float().square().sum()
    ddp.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    norms = [tt.zeros(()) for _ in range(size)]
    dist.all_gather(norms, norm)
    assert all(tt.equal(norm, n) for n in norms)
    before = model[0].weight.grad.clone()
    del ddp, y, loss  # the checkpoint keeps its function, in a cycle
    gc.collect()
    model(x).square().sum().backward()  # of this rank alone
    alone = model[0].weight.grad - before
    dist.all_reduce(mean := alone.clone(), dist.ReduceOp.AVG)
    assert not tt.equal(mean, alone)
    compiled_steps(rank, size)
    overlap(rank, size)


def compiled_steps(rank, size):
    """A compiled step records no reduction; one after it gives what an eager step gives."""
    (model, shape), (eager, _) = model_of("mlp"), model_of("mlp")
    ddp, reference = DDP(model), DDP(eager)
    optimizers = [tt.optim.Adam(m.parameters(), lr=0.01) for m in (model, eager)]

    @tt.compile
    def backward(x):
        with ddp.no_sync():
            model(x).square().mean().backward()

    @tt.compile
    def refused(x):
        model(x).square().mean().backward()

    for _ in range(4):
        x = tt.randn(5, *shape) + rank
        [o.zero_grad(set_to_none=False) for o in optimizers]
        backward(x)
        ddp.reduce_gradients()
        reference(x).square().mean().backward()
        [o.step() for o in optimizers]
        assert all(tt.equal(a, b) for a, b in zip(model.parameters(), eager.parameters()))
    try:
        refused(x)
        raise AssertionError("no error")
    except tt.errors.CallbackError as e:
        assert "tt_ddp_reduce" in str(e.__cause__), e.__cause__


def overlapping(path):
    """Returns whether a node of backward and a reduction run at the same time in a trace."""
    with open(path) as f:
        events = [e for e in json.load(f)["traceEvents"] if e["ph"] == "X"]
    spans = {kind: [(e["ts"], e["ts"] + e["dur"]) for e in events if e["cat"] == kind]
             for kind in ("communication", "autograd_node")}  # fmt: skip
    return any(
        a < d and c < b for a, b in spans["communication"] for c, d in spans["autograd_node"]
    )


def overlap(rank, size):
    """A trace shows that buckets are reduced while backward goes on."""
    nn = tt.nn
    model = nn.Sequential(*[nn.Linear(256, 256) for _ in range(8)])
    ddp = DDP(model, bucket_cap_mb=0.25)  # one layer each
    x = tt.randn(64, 256)
    path = f"{os.environ['TT_TEST_PLACE']}/trace{rank}.json"
    for _ in range(20):
        with tt.profiler.profile() as p:
            ddp(x).square().mean().backward()
        p.export_chrome_trace(path)
        assert sum(e.name == "all_reduce" for e in p.events()) == 8
        seen = tt.tensor(int(overlapping(path)))
        dist.all_reduce(seen, dist.ReduceOp.MIN)
        if seen.item():
            return
    raise AssertionError("no overlap")


def reduced(model, compressed):
    ddp = DDP(model)
    if compressed:
        ddp.register_comm_hook(None, default_hooks.bf16_compress_hook)
    ddp.zero_grad()
    tt.manual_seed(dist.get_rank())
    ddp(tt.randn(6, 4)).square().sum().backward()
    return list(model.parameters())


def steps(n, model, optimizer, joint, reference, clip=None):
    """Trains a model on parts of batches, and another one alone on the whole ones."""
    rank, size = dist.get_rank(), dist.get_world_size()
    for _ in range(n):
        batch = tt.randn(6 * size, 6)
        optimizer.zero_grad()
        reference.zero_grad()
        model(batch[6 * rank : 6 * rank + 6]).square().mean().backward()
        joint(batch).square().mean().backward()
        if clip is not None:
            norm = tt.nn.utils.clip_grad_norm_(joint.parameters(), 0.5)
            assert tt.allclose(clip(0.5), norm, rtol=1e-4)
        optimizer.step()
        reference.step()


def close(state, joint):
    for name, value in joint.state_dict().items():
        assert tt.allclose(state[name], value, rtol=1e-3, atol=1e-5), name


def sharded_optimizer(rank, size):
    """The state of Adam is divided; it is collected, and loaded by an optimizer of one process."""
    (model, _), (joint, _) = model_of("mlp"), model_of("mlp")
    make = tt.distributed.optim.ZeroRedundancyOptimizer
    zero, adam = make(model.parameters(), tt.optim.Adam, lr=0.01), tt.optim.Adam
    reference = adam(joint.parameters(), lr=0.01)
    schedules = [tt.optim.lr_scheduler.StepLR(o, 2) for o in (zero, reference)]
    ddp = DDP(model)
    for _ in range(3):
        steps(1, ddp, zero, joint, reference)
        [s.step() for s in schedules]
    assert len(zero.optim.state) == (3 if rank else 1)  # of four parameters, by their sizes
    zero.consolidate_state_dict(1)
    state = [zero.state_dict() if rank == 1 else None]
    dist.broadcast_object_list(state, src=1)
    again = make(model.parameters(), adam, lr=0.5)
    again.load_state_dict(state[0])
    assert again.param_groups[0]["lr"] == reference.param_groups[0]["lr"]
    steps(2, ddp, again, joint, reference)
    close(model.state_dict(), joint)
    alone = adam(joint.parameters(), lr=0.5)
    alone.load_state_dict(state[0])
    assert len(alone.state) == 4


def sharded_model():
    fsdp = tt.distributed.fsdp
    model = tt.nn.Sequential(*[model_of("mlp")[0], tt.nn.BatchNorm1d(3), tt.nn.Linear(3, 5)])
    model.eval()  # statistics of a part of a batch would differ
    model[0] = fsdp.FullyShardedDataParallel(model[0])
    model = fsdp.FullyShardedDataParallel(model)
    return model, tt.optim.AdamW(model.parameters(), lr=0.01)


def sharded_parameters(rank, size):
    """Each rank has its shard; training, checkpoints of another number of ranks, faults."""
    place = os.environ["TT_TEST_PLACE"]
    tt.manual_seed(7)
    joint = tt.nn.Sequential(model_of("mlp")[0], tt.nn.BatchNorm1d(3), tt.nn.Linear(3, 5)).eval()
    reference = tt.optim.AdamW(joint.parameters(), lr=0.01)
    tt.manual_seed(7 + rank)
    model, optimizer = sharded_model()
    model.load_full_state_dict(joint.state_dict())
    assert [n for n, _ in model.named_parameters()] == ["flat_param", "module.0.flat_param"]
    whole = sum(p.numel() for p in joint.parameters())
    assert sum(p.numel() for p in model.parameters()) <= whole / size + 2
    saved = os.path.exists(f"{place}/metadata.json")  # by two ranks
    tt.manual_seed(8)
    if not saved:
        steps(2, model, optimizer, joint, reference, model.clip_grad_norm_)
        close(model.full_state_dict(), joint)
        model.save_sharded(place, optimizer)
        if rank == 0:
            tt.save({"model": joint.state_dict(), "adam": reference.state_dict()}, place + "/joint")
        return
    other = tt.load(place + "/joint")
    joint.load_state_dict(other["model"])
    reference.load_state_dict(other["adam"])
    model.load_sharded(place, optimizer)
    close(model.full_state_dict(), joint)
    steps(2, model, optimizer, joint, reference)
    close(model.full_state_dict(), joint)
    with tt.no_grad():
        assert tt.allclose(model(x := tt.ones(2, 6)), joint(x), rtol=1e-3, atol=1e-5)
    os.path.exists(place + "/none")
    try:
        model.load_sharded(place + "/none")
        raise AssertionError("no error")
    except ValueError as e:
        assert "is no whole checkpoint" in str(e)


def add(a, b=0):
    return a + b


def refuse():
    raise ValueError("no such thing")


def ask_first(x):
    return tt.distributed.rpc.rpc_sync("worker0", add, (x, 1))


def ask_first_later(x):
    time.sleep(1)
    return ask_first(x)


class Counter:
    def __init__(self, n):
        self.n = n

    def add(self, k):
        self.n += k
        return self.n


def value_of(ref):
    return ref.local_value().n if ref.is_owner() else -1


def through_first(x):
    return tt.distributed.rpc.rpc_sync("worker0", tt.exp, (x * 2,))


def later(x):
    done = tt.futures.Future()
    threading.Timer(0.01, lambda: done.set_result(x + 1)).start()
    return done


later = tt.distributed.rpc.functions.async_execution(later)


class Remote(tt.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = tt.nn.Linear(2, 2, bias=False)
        tt.nn.init.ones_(self.layer.weight)

    def forward(self, x):
        return self.layer(x)

    def gradient(self, context):
        return tt.distributed.autograd.get_gradients(context)[self.layer.weight]


def remote_values(rank, size):
    """References to values of others, and gradients through calls."""
    rpc, autograd = tt.distributed.rpc, tt.distributed.autograd
    other = f"worker{(rank + 1) % size}"
    ref = rpc.remote(other, Counter, (rank,))
    assert ref.owner_name() == other and not ref.is_owner()
    assert ref.rpc_sync().add(5) == rank + 5 and ref.rpc_async().add(1).wait() == rank + 6
    assert ref.remote().add(1).to_here() == ref.to_here().n == rank + 7
    assert rpc.rpc_sync(other, value_of, (ref,)) == rank + 7
    mine = rpc.RRef(Counter(3))
    assert mine.is_owner() and rpc.rpc_sync(other, value_of, (mine,)) == -1
    assert mine.local_value() is mine.to_here()
    raises(rpc.remote(other, refuse).to_here, "ValueError: no such thing")
    try:
        ref.local_value()
        raise AssertionError("no error")
    except RuntimeError as e:
        assert "is the owner" in str(e)
    assert rpc.rpc_sync(other, later, (1,)) == 2
    assert rpc.rpc_async(other, add, (1, 2)).then(lambda f: f.wait() * 2).wait() == 6

    x = tt.tensor([0.5, 1.0], requires_grad=True)
    model = rpc.remote(other, Remote)
    with autograd.context() as context:
        y = model.rpc_sync().forward(x)
        z = rpc.rpc_sync(other, through_first, (x,)) * y + rpc.rpc_sync(other, tt.sin, (x,))
        autograd.backward(context, [z.sum()])
        found = autograd.get_gradients(context)[x]
        of_weight = model.rpc_sync().gradient(context)
    a = x.detach().requires_grad_()
    w = tt.ones(2, 2).requires_grad_()
    ((a * 2).exp() * (a @ w.T) + a.sin()).sum().backward()
    tt.testing.assert_close(found, a.grad)
    tt.testing.assert_close(of_weight, w.grad)
    assert x.grad is None and not autograd._is_valid_context(context)


def remote_calls(rank, size):
    """Calls of all workers by all, with tensors, nested, failing, late; a worker that dies."""
    backend = dist.get_backend()
    dist.destroy_process_group()
    rpc = tt.distributed.rpc
    rpc.init_rpc(f"worker{rank}", backend)
    names = [f"worker{r}" for r in range(size)]
    started = [rpc.rpc_async(to, add, (tt.ones(1000),), {"b": rank}) for to in names]
    assert all(tt.equal(f.wait(), tt.full((1000,), rank + 1.0)) for f in started)
    assert rpc.rpc_sync(1, ask_first, (5,)) == 6
    raises(lambda: rpc.rpc_sync("worker1", refuse) if rank != 1 else rpc.rpc_sync(0, refuse),
           "refuse on worker", "ValueError: no such thing")  # fmt: skip
    raises(lambda: rpc.rpc_sync((rank + 1) % size, sys.exit), "SystemExit")
    late = rpc.rpc_async((rank + 1) % size, ask_first_later, (rank,), timeout=0.1)
    raises(late.wait, f"ask_first_later on worker{(rank + 1) % size} has not ended within 0.1 s")
    if backend == "gloo":  # MPI's threads wait actively: more messages would only take longer
        remote_values(rank, size)
    rpc.shutdown()  # the late calls end before, though nobody waits for them
    assert late.done() and late.wait() == rank + 1


def survivors(rank, size):
    """The surviving ranks make a new group and continue."""
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    raises(dist.barrier, "rank 1 has failed")
    dist.destroy_process_group()
    place = f"file://{os.environ['TT_TEST_PLACE']}/generation1"
    dist.init_process_group("gloo", place, timedelta(seconds=TIMEOUT), size - 1, rank // 2)
    dist.all_reduce(x := tt.ones(2))
    assert x.tolist() == [2, 2]


def raises(call, *texts):
    try:
        call()
    except dist.DistError as e:
        assert all(t in str(e) for t in texts), e
        return
    raise AssertionError("no error")


def disagreements(rank, size):
    def reduce(*args, **kwargs):
        return lambda: dist.all_reduce(tt.zeros(*args, **kwargs))

    both = "rank 0", "rank 1", "all_reduce"
    raises(reduce(3 + (rank == 1)), *both, "[3]", "[4]")
    raises(reduce(2, 3) if rank else reduce(6), *both, "[6]", "[2,3]")
    raises(reduce(3, dtype=tt.float64) if rank else reduce(3), *both, "float32", "float64")
    raises(dist.barrier if rank else reduce(3), *both, "barrier")
    dist.all_reduce(x := tt.ones(2))  # the group is still usable
    assert x.tolist() == [size, size]


def lost(rank, size, number):
    """Rank 1 gets a signal; the others name it, within the timeout."""
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), number)
    begin = time.monotonic()
    raises(lambda: dist.all_reduce(tt.zeros(100_000)), "all_reduce", "rank 1 has failed")
    assert time.monotonic() - begin < 3 * FAULT_TIMEOUT
    raises(dist.barrier, "rank 1 has failed")


def killed(rank, size):
    lost(rank, size, signal.SIGKILL)


def stopped(rank, size):
    lost(rank, size, signal.SIGSTOP)


def disconnected(rank, size):
    """The sockets of rank 1 are closed under it; all others name it."""
    dist.barrier()
    for name in os.listdir("/proc/self/fd") if rank == 1 else ():
        try:
            with socket.socket(fileno=os.dup(int(name))) as s:
                s.shutdown(socket.SHUT_RDWR)
        except OSError:
            continue  # not a connected socket
    raises(lambda: dist.all_reduce(tt.zeros(100_000)), "all_reduce",
           "has failed" if rank == 1 else "rank 1 has failed")  # fmt: skip


def faulty_transfers(rank, size):
    """Transfers that nobody answers, and those that do not fit, end within the timeout. Each breaks
    its group; the processes meet again at another place."""
    dist.destroy_process_group()
    like = tt.zeros(200_000)

    def send(t, to):
        return lambda: dist.send(t, to)

    def receive(src):
        return lambda: dist.recv(like, src)

    faults = [  # what rank 0 calls, what rank 1 calls, what rank 0 says
        (send(like, 1), dist.barrier, "rank 1 has failed"),
        (receive(1), dist.barrier, "rank 1 has failed"),
        (receive(None), dist.barrier, "no rank has sent to rank 0 within 0.5 s"),
        (receive(1), send(like[:7], 0), "rank 1 sends a float32 tensor [7], rank 0 receives into"),
        (receive(1), send(like.to(tt.int64), 0), "rank 1 sends a int64 tensor [200000], rank 0"),
    ]
    for i, (first, second, says) in enumerate(faults):
        place = f"file://{os.environ['TT_TEST_PLACE']}/meeting{i}"
        dist.init_process_group("gloo", place, timedelta(seconds=0.5), size, rank)
        begin, said = time.monotonic(), ""
        try:
            (second if rank else first)()
        except dist.DistError as e:
            said = str(e)
        assert rank or says in said, (i, said)
        assert time.monotonic() - begin < TIMEOUT / 2
        dist.destroy_process_group()


def launched(rank, size):
    """The variables of torchrun, in a job of two nodes with one process each."""
    names = "GROUP_RANK LOCAL_RANK LOCAL_WORLD_SIZE WORLD_SIZE TORCHELASTIC_RUN_ID".split()
    assert [os.environ[name] for name in names] == [str(rank), "0", "1", "2", "a"]
    dist.all_reduce(x := tt.ones(2))
    assert x.tolist() == [2, 2]


def restarted(rank, size):
    first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
    if first and rank == 1:
        os._exit(3)
    if first:
        raises(dist.barrier, "rank 1")
        os._exit(4)


SCENARIOS = [
    data_parallel, unused_parameters, ddp_options, collectives, transfers_and_groups,
    disagreements, killed, stopped, restarted, sharded_optimizer, sharded_parameters, remote_calls,
    survivors, accumulated_gpt, bucket_hooks, faulty_transfers, launched,
    meshes_and_stores,
]  # fmt: skip


def main(backend, names):
    """Runs scenarios, whose names are separated by commas, one after the other."""
    short = names in ("killed", "stopped", "restarted")
    seconds = FAULT_TIMEOUT if short else TIMEOUT
    dist.init_process_group(backend, timeout=timedelta(seconds=seconds))
    rank = dist.get_rank()
    for name in names.split(","):
        {f.__name__: f for f in SCENARIOS}[name](rank, dist.get_world_size())
        print(f"{name}: rank {rank} is done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
    sys.exit()


# ---- tests ----

import pytest  # noqa: E402

sanitized = os.environ.get("TT_SANITIZED") == "1"


def needs(backend):
    there = dist._group.is_there(backend)
    return pytest.mark.skipif(not there or sanitized, reason=f"no libtt_{backend} in this build")


def launch(name, size, backend="gloo", *options, program=None):
    command = [sys.executable, "-m", "tt.distributed.run", f"--nproc-per-node={size}", *options]
    if backend == "mpi":
        run = ["mpirun", "--allow-run-as-root", "--oversubscribe"]
        command = [*run, "-n", str(size), sys.executable]
    if backend == "mpich":
        command = ["mpirun.mpich", "-n", str(size), sys.executable]
        backend = "mpi"  # the launcher says which library is meant
    paths = [str(ROOT / "bindings/python"), os.environ.get("PYTHONPATH", "")]
    mark = uuid.uuid4().hex
    ran = subprocess.run(
        [*command, *(program or [__file__, backend, name])],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p), "TT_MARK": mark},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert not alive(mark)
    return ran


def alive(mark):
    """Returns the processes that have inherited a mark."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_bytes())
        except OSError:
            continue  # it has ended, or is another user's
    return found


def succeeds(ran, names, ranks):
    for rank in ranks:
        for name in names.split(","):
            assert f"{name}: rank {rank} is done" in ran.stdout, ran.stdout + ran.stderr


@needs("gloo")
@pytest.mark.parametrize("size", [2, 3])
def test_collectives_over_gloo(size):
    succeeds(launch("collectives", size), "collectives", range(size))


@pytest.mark.parametrize(
    "backend", [pytest.param(name, marks=needs(name)) for name in ("mpi", "mpich")]
)
def test_collectives_over_mpi(backend):
    names = "collectives,transfers_and_groups"
    succeeds(launch(names, 3, backend), names, range(3))


@needs("gloo")
def test_transfers_and_groups():
    succeeds(launch("transfers_and_groups", 3), "transfers_and_groups", range(3))


@needs("gloo")
def test_meshes_and_stores(tmp_path, monkeypatch):
    monkeypatch.setenv("TT_TEST_PLACE", str(tmp_path))
    succeeds(launch("meshes_and_stores", 4), "meshes_and_stores", range(4))


def test_a_store_of_threads():
    store = dist.HashStore()
    store.set_timeout(timedelta(seconds=0.05))
    raises(lambda: store.get("a"), "no value for all of ['a']")
    assert store.add("n", 2) == 2 and store.add("n", -3) == -1 and store.num_keys() == 1
    assert store.compare_set("n", "-1", "x") == b"x" and store.compare_set("q", "a", "b") == b"a"
    assert store.delete_key("n") and not store.delete_key("n") and not store.check(["n"])
    store.multi_set(["a", "b"], ["1", b"2"])
    assert store.multi_get(["b", "a"]) == [b"2", b"1"] and store.list_keys() == ["a", "b"]


@needs("gloo")
def test_gradients_are_those_of_the_joint_batch():
    succeeds(launch("data_parallel", 2), "data_parallel", range(2))


@needs("gloo")
def test_gradients_of_a_gpt_add_up_to_those_of_the_joint_batch():
    succeeds(launch("accumulated_gpt", 2), "accumulated_gpt", range(2))


@needs("gloo")
def test_unused_parameters():
    succeeds(launch("unused_parameters", 2), "unused_parameters", range(2))


@needs("gloo")
def test_hooks_of_buckets():
    succeeds(launch("bucket_hooks", 3), "bucket_hooks", range(3))


@needs("gloo")
def test_ddp_options(tmp_path, monkeypatch):
    monkeypatch.setenv("TT_TEST_PLACE", str(tmp_path))
    succeeds(launch("ddp_options", 2), "ddp_options", range(2))


@needs("gloo")
def test_the_state_of_an_optimizer_is_divided():
    succeeds(launch("sharded_optimizer", 2), "sharded_optimizer", range(2))


@needs("gloo")
def test_parameters_are_divided_and_loaded_by_other_numbers_of_ranks(tmp_path, monkeypatch):
    monkeypatch.setenv("TT_TEST_PLACE", str(tmp_path))
    for size in (2, 3):
        succeeds(launch("sharded_parameters", size), "sharded_parameters", range(size))


@pytest.mark.parametrize(
    "backend", [pytest.param(name, marks=needs(name)) for name in ("gloo", "mpi")]
)
def test_remote_calls(backend):
    succeeds(launch("remote_calls", 3, backend), "remote_calls", range(3))


def test_a_reference_may_go_before_its_value_comes():
    """The threads of a worker may answer the two calls in either order."""
    references, key = tt.distributed.rpc._rref, (0, -1)
    references.drop_reference(key)
    expected = references.entry(key).future
    references.create(key, add, (1, 2), {})
    assert expected.value() == 3 and key not in references.owned


@needs("gloo")
def test_survivors_make_a_new_group(tmp_path, monkeypatch):
    monkeypatch.setenv("TT_TEST_PLACE", str(tmp_path))
    named_by_the_others("survivors", tmp_path, TIMEOUT)


@needs("gloo")
def test_a_model_is_divided_among_processes():
    ran = launch(None, 2, "gloo", program=[ROOT / "examples/python/parallel_mlp.py"])
    assert ran.stdout.count("equal those of the whole model") == 8, ran.stdout + ran.stderr


@needs("gloo")
def test_disagreements_name_two_ranks():
    succeeds(launch("disagreements", 3), "disagreements", range(3))


@needs("gloo")
def test_faulty_transfers_end_in_time(tmp_path, monkeypatch):
    monkeypatch.setenv("TT_TEST_PLACE", str(tmp_path))
    succeeds(launch("faulty_transfers", 2), "faulty_transfers", range(2))


@needs("mpi")
def test_mpirun_ends_all_when_a_rank_dies():
    ran = launch("killed", 3, "mpi")
    assert ran.returncode and "killed: rank" not in ran.stdout, ran.stdout + ran.stderr


@needs("gloo")
def test_launchers_of_two_nodes():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    paths = os.pathsep.join([str(ROOT / "bindings/python"), str(Path(__file__).parent)])
    environment = {**os.environ, "PYTHONPATH": paths}
    nodes = []
    for node in range(2):
        place = [f"--rdzv-endpoint=127.0.0.1:{port}", f"--node_rank={node}", "--rdzv-id=a"]
        command = [sys.executable, "-m", "tt.distributed.run", "--nnodes=2", "--nproc_per_node=1"]
        program = ["-m", "test_distributed", "gloo", "launched"]
        pipe = subprocess.PIPE
        nodes.append(
            subprocess.Popen(
                [*command, *place, *program], env=environment, stdout=pipe, stderr=pipe
            )
        )
    said = [n.communicate(timeout=60) for n in nodes]
    assert [n.returncode for n in nodes] == [0, 0], said
    assert all(f"launched: rank {r} is done" in said[r][0].decode() for r in range(2)), said


@needs("gloo")
def test_a_killed_rank_is_named():
    ran = launch("killed", 4, "gloo", "--grace-seconds=10")
    assert ran.returncode == 128 + signal.SIGKILL and "process 1" in ran.stderr


def named_by_the_others(scenario, tmp_path, seconds=FAULT_TIMEOUT):
    """Runs a scenario in 3 processes without the launcher, which would end all after a fault."""
    place = f"file://{tmp_path}/meeting"
    program = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import test_distributed as t
t.dist.init_process_group("gloo", {place!r}, t.timedelta(seconds={seconds}), 3,
                          int(sys.argv[1]))
t.{scenario}(int(sys.argv[1]), 3)
print("named")
"""
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(r)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for r in range(3)
    ]
    try:
        said = {r: ranks[r].communicate(timeout=60)[0].decode() for r in (0, 2)}
        assert all("named" in text for text in said.values()), said
    finally:
        for p in ranks:
            p.kill()
            p.wait()


@needs("gloo")
def test_a_stopped_rank_is_named_and_ended(tmp_path):
    named_by_the_others("stopped", tmp_path)


@needs("gloo")
def test_a_rank_whose_sockets_are_closed_is_named(tmp_path):
    named_by_the_others("disconnected", tmp_path)


@needs("gloo")
def test_a_full_disk_at_the_rendezvous_is_named(tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))  # Python ignores the signal
    try:
        with pytest.raises(dist.DistError, match="cannot write .*File too large"):
            alone(init_method=f"file://{tmp_path}/a", world_size=2, rank=0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@needs("gloo")
def test_the_launcher_starts_all_ranks_again():
    ran = launch("restarted", 2, "gloo", "--max-restarts=1")
    assert ran.returncode == 0, ran.stderr
    succeeds(ran, "restarted", range(2))


DYING = """
import os, sys
sys.path.insert(0, {folder!r})
import train_ddp
save = train_ddp.save
def save_and_die(path, epoch, *rest):
    save(path, epoch, *rest)
    if epoch == 2 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        os.kill(os.getpid(), 9)
train_ddp.save = save_and_die
train_ddp.main()
"""


@needs("gloo")
def test_checkpoint_of_nested_dicts(tmp_path):
    """One process: a model beside its optimizer, numbers, tuples; what does not fit."""
    checkpoint = tt.distributed.checkpoint
    model = tt.nn.Linear(2, 3)
    adam = tt.optim.Adam(model.parameters())
    model(tt.ones(1, 2)).sum().backward()
    adam.step()
    state = {"model": model.state_dict(), "adam": adam.state_dict(), "epoch": 3, "at": (1, 2)}
    state["flat"] = checkpoint.Shard(tt.arange(6.0), 0, 5)
    checkpoint.save(state, tmp_path)
    other = tt.nn.Linear(2, 3)
    second = tt.optim.Adam(other.parameters(), lr=1)
    other(tt.ones(1, 2)).sum().backward()
    second.step()
    found = {"model": other.state_dict(), "adam": second.state_dict(), "epoch": 0, "at": ()}
    found["flat"] = checkpoint.Shard(tt.zeros(3), 2, 5)
    checkpoint.load(found, tmp_path)
    second.load_state_dict(found["adam"])
    assert found["epoch"] == 3 and found["at"] == (1, 2) and second.param_groups[0]["lr"] == 1e-3
    assert found["flat"].tensor.tolist() == [2, 3, 4] and other.weight.equal(model.weight)
    for key, text in ((object(), "does not fit JSON"), ({"b": tt.ones(1)}, "the name a.b")):
        with pytest.raises(ValueError, match=text):
            checkpoint.save({"a": key, "a.b": 2}, tmp_path)
    with pytest.raises(ValueError, match="has no other"):
        checkpoint.load({"other": 1}, tmp_path)
    metadata = tmp_path / "metadata.json"
    text = metadata.read_text()
    for old, new, words in (
        ('"version": 1', '"version": 2', "version 2"),
        ('"n": 5', '"n": 4', "lacks 1 elements"),
        ('"ranks": [', '"ranks": [1, ', "no whole checkpoint"),
    ):
        metadata.write_text(text.replace(old, new))
        with pytest.raises(ValueError, match=words):
            checkpoint.load(found, tmp_path)


def test_training_resumes_from_its_checkpoint_after_a_restart(tmp_path):
    program = tmp_path / "dying.py"
    program.write_text(DYING.format(folder=str(ROOT / "examples/python")))
    arguments = ["--epochs=3", f"--checkpoint={tmp_path}/run"]
    ran = launch(None, 2, "gloo", "--max-restarts=1", program=[program, *arguments])
    assert ran.returncode == 0, ran.stderr
    epochs = [line.split()[1] for line in ran.stdout.splitlines() if line.startswith("epoch")]
    assert epochs == ["1:", "2:", "3:"], ran.stdout


def alone(**arguments):
    dist.init_process_group("gloo", timeout=timedelta(seconds=0.3), **arguments)


@needs("gloo")
def test_a_rendezvous_without_others_fails_in_time(tmp_path):
    with pytest.raises(dist.DistError, match="rank 1 has not come in time"):
        alone(init_method=f"file://{tmp_path}/a", world_size=2, rank=0)
    with pytest.raises(dist.DistError, match="rank 0 already"):
        alone(init_method=f"file://{tmp_path}/a", world_size=2, rank=0)
    with pytest.raises(dist.DistError, match="rank 0 does not answer"):
        alone(init_method="tcp://127.0.0.1:1", world_size=2, rank=1)
    with pytest.raises(dist.DistError, match="cannot make the directory"):
        alone(init_method=f"file://{tmp_path}/no/such", world_size=2, rank=1)
    assert not dist.is_initialized()


@needs("gloo")
def test_different_world_sizes_are_named(tmp_path):
    (tmp_path / "a.rendezvous").mkdir()
    (tmp_path / "a.rendezvous/size1").write_text("3")
    with pytest.raises(dist.DistError, match="rank 1 has the world size 3, .*rank 0. 2"):
        alone(init_method=f"file://{tmp_path}/a", world_size=2, rank=0)


def test_a_missing_library_is_named():
    with pytest.raises(OSError, match='cannot open the library "libtt_none.so" of the backend'):
        dist.init_process_group("none", "tcp://127.0.0.1:1", world_size=2, rank=0)
