"""Memory, devices, kernels and the trace of the library, as Python sees them."""
import pytest

import tt
from tt import runtime


def test_memory():
    before = runtime.memory_stats()
    x = tt.zeros(1000, 100)
    during = runtime.memory_stats("cpu")
    assert (
        during["in_use"] - before["in_use"] >= 400_000
        and during["peak"] >= during["in_use"]
        and during["live_tensors"] > before["live_tensors"]
    )
    row = next(r for r in runtime.live() if r.get("shape") == (1000, 100))
    assert (row["kind"], row["bytes"], row["dtype"], row["requires_grad"], str(row["device"])) == (
        "tensor",
        400_000,
        tt.float32,
        False,
        "cpu",
    )
    assert any(r["kind"] == "ctx" and r["dtype"] is None for r in runtime.live())
    del x
    runtime.trim()
    kept = [tt.zeros(i + 1) for i in range(100)]
    assert sum(r["kind"] == "tensor" for r in runtime.live()) >= len(kept)


def test_memory_limit():
    runtime.set_memory_limit(runtime.memory_stats()["reserved"] + 100_000_000)
    try:
        with pytest.raises(MemoryError):
            tt.zeros(200_000_000)
    finally:
        runtime.set_memory_limit(0)
    with pytest.raises(TypeError):
        runtime.set_memory_limit("much")


def test_devices():
    assert (
        runtime.device_count("cpu") == 1
        and tt.cuda.device_count() == runtime.device_count()
        and tt.cuda.is_available() == (tt.cuda.device_count() > 0)
    )
    runtime.synchronize()
    runtime.synchronize("cpu")
    tt.cuda.synchronize()
    tt.cuda.empty_cache()
    with pytest.raises(tt.errors.FileError, match="cannot open the device library"):
        runtime.load_cuda("/nowhere")
    if not tt.cuda.is_available():
        for wanted in (tt.cuda.memory_allocated, tt.cuda.max_memory_allocated):
            assert wanted() == 0


def test_instruction_set():
    assert (
        runtime.instruction_set() in ("baseline", "avx2", "avx512", "sve256", "neon")
        and runtime.instruction_set() in tt.build_info()
    )


def test_trace():
    seen = []
    x = tt.ones(2, requires_grad=True)
    with runtime.trace_dispatch(lambda *row: seen.append(row)):
        x.relu()
    x.relu()
    assert seen == [("relu", "autograd", 0), ("relu", "cpu", 0)]


def test_an_exception_in_a_trace_is_raised_at_its_end():
    seen = []

    def see(*row):
        seen.append(row)
        raise KeyError("seen")

    x = tt.ones(2)
    with pytest.raises(KeyError, match="seen"):
        with runtime.trace_dispatch(see):
            x.relu()
            y = x.exp()
    assert len(seen) == 1 and y.tolist()[0] > 2.7
    assert x.relu().tolist() == [1, 1]


def test_storage():
    x = tt.arange(6, dtype=tt.float32)
    part = x[2:]
    assert part._is_view() and not x._is_view()
    assert (
        part.untyped_storage().data_ptr() == x.data_ptr() != part.data_ptr()
        and part.untyped_storage().nbytes() == 24
    )
