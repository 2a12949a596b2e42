"""tt.cuda on the fake device, in a process of its own: a process has one device library."""
import os
import subprocess
import sys

PROGRAM = """
import tt
from tt import runtime

runtime.load_cuda({fake!r})
cuda = tt.cuda
assert cuda.is_available() and cuda.device_count() == 2
assert cuda.get_device_name() == "fake" and cuda.get_device_capability() == (9, 0)
assert cuda.get_device_properties("cuda:1").warp_size == 32
assert cuda.can_device_access_peer(0, 1)
x = tt.arange(6.0).to("cuda")
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
try:
    cuda.Stream("cuda:2")
except tt.errors.DeviceError as e:
    assert "there are 2 CUDA devices" in str(e)
else:
    assert False
"""


def test_streams_events_and_memory():
    fake = os.path.join(os.environ["TT_BUILD"], "tests/fake/libtt_fake.so")
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(fake=fake)],
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)),
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
