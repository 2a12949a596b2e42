"""tt.cuda on the fake device, in a process of its own: a process has one device library."""
import os
import subprocess
import sys

PROGRAM = """
import threading
import tt
from tt import runtime

runtime.load_cuda({fake!r})
cuda = tt.cuda
assert cuda.is_available() and cuda.device_count() == 2
assert cuda.get_device_name() == "fake" and cuda.get_device_capability() == (9, 0)
assert cuda.get_device_properties("cuda:1").warp_size == 32
assert cuda.can_device_access_peer(0, 1)
x = tt.arange(6.0).to("cuda")
for name in "Bool Byte Char Short Int Long Half BFloat16 Float Double".split():
    of_device, of_cpu = getattr(cuda, name + "Tensor"), getattr(tt, name + "Tensor")
    made = of_device([1, 0])
    assert made.is_cuda and isinstance(made, of_device) and not isinstance(made, of_cpu), name
    assert of_device(2, 3).shape == (2, 3) and of_device(2, 3).is_cuda and of_cpu is not of_device
    back = made.type(of_cpu)
    assert isinstance(back, of_cpu) and isinstance(back.type(of_device), of_device)
    assert back.tolist() == [1, 0]
side = cuda.Stream()
assert side == side and side != cuda.default_stream() and side != 3
assert cuda.current_stream() == cuda.default_stream()
begin, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
with cuda.stream(side):
    assert cuda.current_stream() == side
    begin.record()
    y = x * 2
    end.record()
with side:
    z = y + 1
assert cuda.current_stream() == cuda.default_stream()
assert (y + z).tolist() == [1, 5, 9, 13, 17, 21]
end.synchronize()
assert begin.query() and begin.elapsed_time(end) >= 0
side.wait_stream(cuda.current_stream())
side.wait_event(side.record_event())
side.synchronize()
assert side.query() and side.cuda_stream
with cuda.stream(None):
    pass
foreign = cuda.ExternalStream(side.cuda_stream)
assert foreign == side
with cuda.stream(foreign):
    w = x * 3
assert w.tolist() == [0, 3, 6, 9, 12, 15]


class Producer:
    def __dlpack_device__(self):
        return x.__dlpack_device__()

    def __dlpack__(self, **options):
        asked.append(options["stream"])
        return (x + 1).__dlpack__(**options)


asked = []
with cuda.stream(side):
    taken = tt.from_dlpack(Producer())
assert asked == [side.cuda_stream] and taken.tolist() == [1, 2, 3, 4, 5, 6]
assert tt.from_dlpack(x.__dlpack__(stream=-1)).data_ptr() == x.data_ptr()
try:
    x.__dlpack__(stream=0)
except BufferError as e:
    assert "stream is 0" in str(e)
else:
    assert False
del foreign, w, taken
pinned = tt.arange(6.0).pin_memory()
assert pinned.is_pinned() and pinned.pin_memory() is pinned and not tt.zeros(2).is_pinned()
assert pinned.to("cuda", non_blocking=True).tolist() == pinned.tolist() == [0, 1, 2, 3, 4, 5]
back = tt.zeros(6).pin_memory()
with cuda.stream(side):
    assert back.copy_(x + 1, non_blocking=True) is back
    side.synchronize()
assert back.tolist() == [1, 2, 3, 4, 5, 6]
assert x.clone().copy_(back, True).tolist() == back.tolist()
assert x.clone().copy_(pinned[0], non_blocking=True).tolist() == [0] * 6
leaf = pinned.clone().requires_grad_()
x.clone().copy_(leaf, non_blocking=True).sum().backward()
assert leaf.grad.tolist() == [1] * 6
del leaf
used = cuda.memory_allocated()
assert 0 < used <= cuda.memory_reserved() and used <= cuda.max_memory_allocated()
free, total = cuda.mem_get_info()
assert 0 < free < total
cuda.reset_peak_memory_stats()
assert cuda.max_memory_allocated() == used
assert cuda.memory_stats()["num_ooms"] == 0
del y, z
cuda.synchronize()
cuda.empty_cache()
assert cuda.memory_reserved() == cuda.memory_allocated() < used
assert cuda.current_device() == 0 and tt.device("cuda") == tt.device("cuda:0")
cuda.set_device(1)
assert cuda.current_device() == 1 and tt.zeros(2, device="cuda").device.index == 1
assert cuda.current_stream().device.index == cuda.Stream().device.index == 1
assert pinned.cuda(non_blocking=True).device.index == 1 and pinned.cuda(0).device.index == 0
assert tt.nn.Linear(2, 1).cuda().weight.device.index == 1
assert pinned.cuda("cuda:0").tolist() == pinned.tolist()
with cuda.device(0):
    assert tt.zeros(2).cuda().device.index == 0
    with cuda.device_of(tt.zeros(2, device="cuda:1")), cuda.device(-1), cuda.device_of(pinned):
        assert cuda.current_device() == 1
    assert cuda.current_device() == 0
seen = []
thread = threading.Thread(target=lambda: seen.append(cuda.current_device()))
thread.start()
thread.join()
assert seen == [0] and cuda.current_device() == 1
try:
    cuda.set_device(2)
except tt.errors.DeviceError as e:
    assert "cuda.set_device: device is cuda:2: there are 2 CUDA devices" in str(e)
else:
    assert False
cuda.set_device("cuda:0")
try:
    cuda.Stream("cuda:2")
except tt.errors.DeviceError as e:
    assert "there are 2 CUDA devices" in str(e)
else:
    assert False
"""


GRAPHS = """
import copy
import ctypes
import os
import tt
from tt import nn, runtime

runtime.load_cuda({fake!r})
cuda = tt.cuda
F = nn.functional


def raises(kind, run, words):
    try:
        run()
    except kind as e:
        assert words in str(e), e
    else:
        assert False, words


# a training step, as PyTorch's documentation captures it
tt.manual_seed(1)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.3), nn.Linear(8, 2)).to("cuda")
eager = copy.deepcopy(model)
data = [(tt.randn(3, 4).to("cuda"), tt.randn(3, 2).to("cuda")) for _ in range(6)]


def step(model, optimizer, x, y):
    optimizer.zero_grad(set_to_none=True)
    prediction = model(x)
    loss = F.mse_loss(prediction, y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()
    return loss


optimizers = [tt.optim.Adam(m.parameters(), lr=0.01) for m in (model, eager)]
schedules = [tt.optim.lr_scheduler.StepLR(o, 2) for o in optimizers]
static_x, static_y = (t.clone() for t in data[0])
side = cuda.Stream()
side.wait_stream(cuda.current_stream())
with cuda.stream(side):
    for _ in range(3):
        tt.manual_seed(2)
        step(model, optimizers[0], static_x, static_y)
cuda.current_stream().wait_stream(side)
for _ in range(3):
    tt.manual_seed(2)
    step(eager, optimizers[1], *data[0])

g = cuda.CUDAGraph()
assert not cuda.is_current_stream_capturing()
state = tt.get_rng_state()
with cuda.graph(g):
    assert cuda.is_current_stream_capturing()
    static_loss = step(model, optimizers[0], static_x, static_y)
assert not cuda.is_current_stream_capturing() and tt.equal(tt.get_rng_state(), state)
gradient = model[0].weight.grad
for x, y in data:
    assert all(tt.equal(p, q) for p, q in zip(model.parameters(), eager.parameters()))
    static_x.copy_(x)
    static_y.copy_(y)
    tt.manual_seed(3)
    g.replay()
    tt.manual_seed(3)
    loss = step(eager, optimizers[1], x, y)
    assert static_loss.item() == loss.item()
    assert model[0].weight.grad is gradient and tt.equal(gradient, eager[0].weight.grad)
    for schedule in schedules:
        schedule.step()
with cuda.stream(side):
    g.replay()
path = os.path.join({folder!r}, "graph.dot")
g.enable_debug_mode()
g.debug_dump(path)
assert "digraph" in open(path).read()
raises(RuntimeError, lambda: g.capture_begin(), "call reset()")
g.reset()
raises(RuntimeError, g.replay, "nothing was recorded")

# its parts by hand, and a graph that reads what another one has made
first, second = cuda.CUDAGraph(), cuda.CUDAGraph()
x = tt.ones(3, device="cuda")
first.capture_begin(pool=cuda.graph_pool_handle())
raises(tt.errors.InvalidArgumentError, second.capture_begin, "a capture is running")
raises(RuntimeError, second.capture_end, "is not being recorded")
made = x * 2
part = made[1:]
first.capture_end()
with cuda.graph(second, pool=first.pool(), stream=side):
    total = made.sum() + part
for k in range(4):
    x.fill_(k)
    first.replay()
    second.replay()
    assert made.tolist() == [2 * k] * 3 and part.tolist() == [2 * k] * 2
    assert total.tolist() == [8 * k] * 2
launches = ctypes.CDLL({fake!r}).tt_fake_launches
launches.restype = ctypes.c_int64
before = launches()
first.replay()
assert launches() == before + 1  # the product is computed where it is kept
del first, x
second.replay()
assert total.tolist() == [24] * 2 and made.tolist() == [6] * 3


def read():
    with cuda.graph(cuda.CUDAGraph()):
        made.sum().item()


raises(tt.errors.InvalidArgumentError, read, "elements of a tensor are read")
assert not cuda.is_current_stream_capturing() and made.sum().item() == 18

# callables
tt.manual_seed(4)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4)).to("cuda")
eager = copy.deepcopy(model)
sample = tt.randn(3, 4, device="cuda", requires_grad=True)


def both(a, b):
    return {{"sum": a + b, "product": (a * b).exp(), "order": a.detach().argsort(-1)}}


graphed, fused = cuda.make_graphed_callables(
    (model, both), ((sample,), (sample.clone().detach(), sample.detach().clone().requires_grad_()))
)
assert graphed is model
for k in range(4):
    x = tt.randn(3, 4, device="cuda")
    results = []
    for m, f in ((graphed, fused), (eager, both)):
        given = x.clone().requires_grad_()
        hidden = m(given)
        out = f(x, hidden)
        (out["sum"].sum() + out["product"].sum() + out["order"].sum()).backward()
        results.append([hidden, *out.values(), given.grad] + [p.grad for p in m.parameters()])
        for p in m.parameters():
            p.data.sub_(p.grad * 0.01)
    assert all(tt.allclose(p, q, rtol=1e-5, atol=1e-6) for p, q in zip(*results)), k
    for p, q in zip(model.parameters(), eager.parameters()):
        p.grad = q.grad = None
graphed.eval()
assert graphed(x[:2]).shape == (2, 4)
raises(ValueError, lambda: fused(x[:2], x), "tensor 0 is")
raises(ValueError, lambda: fused(x), "differ from the samples")
"""


def run_program(program, **values):
    fake = os.path.join(os.environ["TT_BUILD"], "tests/fake/libtt_fake.so")
    run = subprocess.run(
        [sys.executable, "-c", program.format(fake=fake, **values)],
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)),
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr


def test_streams_events_and_memory():
    run_program(PROGRAM)


def test_graphs(tmp_path):
    run_program(GRAPHS, folder=str(tmp_path))
