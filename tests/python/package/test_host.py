"""How tt and the process around it affect each other: Ctrl-C, threads, the interpreter's lock,
objects by the hundred thousand, libraries that are not there."""
import ctypes
import gc
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import tt
from tt import _lib
from tt._structs import struct


def run(code, **env):
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path), **env)
    return subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120
    )


def live():
    """(bytes in use, tensors, nodes) of the runtime"""
    gc.collect()
    stats = struct("tt_memory_stats")()
    _lib.call("tt_memory", None, ctypes.byref(stats))
    return stats.in_use, stats.live_tensors, stats.live_nodes


# ---- the library ----


def test_a_missing_library_is_named(tmp_path):
    found = run("import tt", TT_LIBRARY=str(tmp_path / "libtt.so"))
    assert (
        found.returncode
        and "libtt was not found" in found.stderr
        and f"{tmp_path}/libtt.so (TT_LIBRARY): not there" in found.stderr
    )
    (tmp_path / "libtt.so").write_bytes(b"no library")
    found = run("import tt", TT_LIBRARY=str(tmp_path / "libtt.so"))
    assert (
        found.returncode
        and "ImportError" in found.stderr
        and "(TT_LIBRARY): " in found.stderr
        and "not there" not in found.stderr
    )


def test_a_package_alone_says_where_it_searched(tmp_path):
    code = f"""
import importlib.machinery, sys, types
sys.path.insert(0, {str(Path(tt.__file__).parent)!r})
package = types.ModuleType("tt"); package.__path__ = [{str(Path(tt.__file__).parent)!r}]; sys.modules["tt"] = package
import os; exists = os.path.exists
os.path.exists = lambda p: False if str(p).endswith(".so") else exists(p)
import tt._lib"""
    env = {k: v for k, v in os.environ.items() if k not in ("TT_LIBRARY", "LD_LIBRARY_PATH")}
    found = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    for where in ("beside the package", "the source tree's build", "the system's loader"):
        assert where in found.stderr, found.stderr
    assert "set TT_LIBRARY" in found.stderr


def test_a_library_of_another_version(tmp_path):
    other = tmp_path / "libtt.so"
    data = Path(_lib.path).read_bytes()
    assert data.count(b"\x000.1.0\x00")
    other.write_bytes(data.replace(b"\x000.1.0\x00", b"\x007.3.0\x00"))
    found = run("import tt", TT_LIBRARY=str(other))
    assert (
        found.returncode
        and f"{other} is version 7.3.0; this package is 0.1.0 and needs 0.1.x. Searched:"
        in found.stderr
    ), found.stderr
    found = run("import tt", TT_LIBRARY="libm.so.6")
    assert found.returncode and "no tt_version" in found.stderr and "0.1.0" in found.stderr


# ---- Ctrl-C ----

INTERRUPTED = """
import os, signal, threading, time, tt
w = tt.eye(800) * 0.99
w.requires_grad_()
first = x = tt.rand(800, 800) @ w
for _ in range(25):
    x = x @ w
loss = x.sum()
interrupts = 0
def begin(gradient):
    global interrupts
    if interrupts:
        interrupts -= 1
        threading.Timer(0.001, os.kill, (os.getpid(), signal.SIGINT)).start()
x.register_hook(begin)
ends, early = [], 0
first.register_hook(ends.append)
for _ in range(20):  # on a busy machine a signal may come after the last node
    if early == 2:
        break
    ends.clear()
    interrupts = 1
    try:
        loss.backward(retain_graph=True)
        while True:
            time.sleep(1)
    except KeyboardInterrupt:
        early += not ends
    w.grad = None
print(early)
for _ in range(3):
    loss.backward(retain_graph=True)
    (w * 2).sum()
print(w.grad is not None)
"""


def test_control_c_ends_a_long_backward():
    found = run(INTERRUPTED)
    assert found.stdout.split() == ["2", "True"], found.stdout + found.stderr


def test_control_c_with_a_custom_handler():
    code = """
import os, signal, threading, tt
seen = []
signal.signal(signal.SIGINT, lambda *_: seen.append(1))
w = tt.eye(500, requires_grad=True)
x = tt.rand(500, 500)
for _ in range(15):
    x = x @ w
loss = x.sum()
loss.backward(retain_graph=True)
threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT)).start()
while not seen:
    loss.backward(retain_graph=True)
print(seen)"""
    found = run(code)
    assert found.stdout.strip() == "[1]", found.stdout + found.stderr


def test_an_exception_of_a_handler_ends_a_long_call():
    code = """
import signal, time, traceback, tt
class Late(Exception):
    pass
def late(*_):
    tt.ones(3) + 1
    raise Late("too late")
signal.signal(signal.SIGALRM, late)
x = tt.ones(600, 600, requires_grad=True)
y, hooked = x, []
for _ in range(30):
    y = y @ tt.eye(600)
    y.register_hook(lambda g: hooked.append(time.monotonic()))
loss = y.sum()
start = time.monotonic()
loss.backward(retain_graph=True)
whole = time.monotonic() - start
def where_it_ends(call, seconds):
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        while True:
            call(retain_graph=True)
    except Late as e:
        inside = any(f.name == "fail" for f in traceback.extract_tb(e.__traceback__))
        return "ended" if inside else "between two calls"
    except tt.errors.CallbackError:
        return "reported by ctypes"
for call in (loss.backward, lambda **given: tt.autograd.grad(loss, x, **given)):
    for part in range(1, 8):
        for attempt in range(20):  # a signal may come between two calls
            place = where_it_ends(call, whole * part / 10)
            print(place)
            if place == "ended":
                break
x.grad = None
call(retain_graph=True)
(x * 2).sum().backward()
print(x.grad is not None)"""
    found = run(code)
    text = found.stdout + found.stderr
    assert found.stdout.count("ended") == 14 and found.stdout.endswith("True\n"), text
    # Python, not tt, reports what a handler raises in the first instructions of a ctypes callback
    # (see guarded in _hooks.py): rare, and the call fails.
    reported = found.stdout.count("reported by ctypes")
    assert reported <= 2, text
    assert found.stderr.count("Late: too late") == reported, text
    assert reported or not found.stderr, text


def test_control_c_outside_a_long_call_leaves_nothing_behind():
    code = """
import os, signal, time, tt
x = tt.ones(3, requires_grad=True)
(x * 2).sum().backward()
for _ in range(20):
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
        print("not interrupted")
    except KeyboardInterrupt:
        pass
    for _ in range(50):
        (x * 2).sum().backward()
print("done")"""
    found = run(code)
    assert found.stdout.strip() == "done", found.stdout + found.stderr


# ---- threads ----


def count_during(call, count):
    """Returns how often another thread counted while `call` ran."""
    before = count[0]
    call()
    return count[0] - before


def test_long_calls_release_the_lock():
    x = tt.rand(2000, 2000)  # a product takes long enough to switch threads many times
    start = time.perf_counter()
    for _ in range(3):
        x @ x
    microseconds = int((time.perf_counter() - start) / 3 * 1e6)
    count, running = [0], True

    def spin():
        while running:
            count[0] += 1
            time.sleep(0)

    t = threading.Thread(target=spin)
    t.start()
    released = kept = 0
    sleep = ctypes.PyDLL(None).usleep  # keeps the lock as long as a product takes
    for _ in range(100):  # on a busy machine the thread may wait as long as a call takes
        kept += count_during(lambda: sleep(microseconds), count)
        released += count_during(lambda: x @ x, count)
        if released > 10 * (kept + 1):
            break
    running = False
    t.join()
    assert released > 10 * (kept + 1)


def test_objects_die_in_any_order_and_thread():
    before = live()
    pile = []

    def make(seed):
        r = random.Random(seed)
        tt.manual_seed(seed)
        for _ in range(60):
            w = tt.rand(4, 4, requires_grad=True)
            y = (w @ w).exp()
            y.register_hook(lambda g: g * 1)
            pile.extend(
                [
                    w,
                    y,
                    y.grad_fn,
                    y[0],
                    tt.Generator(seed),
                    y.sum(),
                    y.detach().numpy(),
                    tt.nn.Linear(4, 4),
                    tt.optim.Adam([w]),
                    tt.from_dlpack(y.detach()),
                    y.register_hook(lambda g: None),
                ]
            )
            if r.random() < 0.5:
                y.sum().backward()

    threads = [threading.Thread(target=make, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    random.Random(0).shuffle(pile)
    parts = [pile[i::3] for i in range(3)]
    pile.clear()
    threads = [threading.Thread(target=p.clear) for p in parts[:2]]
    for t in threads:
        t.start()
    parts[2].clear()
    for t in threads:
        t.join()
    assert live()[1:] == before[1:] and not _lib.kept


# ---- many ----


def churn(n):
    w = tt.ones(3, requires_grad=True)
    for i in range(n):
        y = w * 2
        if i % 10 == 0:
            y.register_hook(lambda g: g)
            tt.frombuffer(bytearray(12), dtype=tt.float32)
            y.sum().backward()
            w.grad = None
        if i % 100 == 0:
            tt.tensor([1.0, 2.0]).tolist()
            tt.from_dlpack(y.detach())
            tt.Generator(i)
            with pytest.raises(ValueError):
                y + tt.ones(7)


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_a_hundred_thousand_objects_leave_nothing():
    churn(5_000)
    before, size = live(), resident()
    churn(100_000)
    assert live() == before and not _lib.kept
    assert resident() - size < 2 << 20


def test_functions_and_modules_leave_nothing():
    class Double(tt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    def work(n):
        for _ in range(n):
            m = tt.nn.Sequential(tt.nn.Linear(3, 3), tt.nn.ReLU())
            Double.apply(m(tt.ones(2, 3))).sum().backward()
            tt.optim.SGD(m.parameters(), 0.1).step()
            del m

    work(100)
    before, size = live(), resident()
    work(2000)
    assert live() == before and not _lib.kept and resident() - size < 2 << 20


def test_importing_changes_no_state_of_the_process():
    code = """
import sys
before = sys.unraisablehook, sys.excepthook, sys.displayhook
import tt
tt.nn, tt.optim, tt.optim.lr_scheduler, tt.library, tt.ones(2, requires_grad=True).exp().grad_fn
assert before == (sys.unraisablehook, sys.excepthook, sys.displayhook)
print("same")"""
    assert run(code).stdout.strip() == "same"
