"""tt's Python on a CUDA device, beside PyTorch: a line a case, which says passed or FAILED and why.

    python3 tests/gpu/python_cuda.py [CASE…]

Cases run in a process of their own, which is started again after a case that ended it or lost the
device. Libraries: TT_LIBRARY, by default .gpu/lib/libtt.so.0, with libtt_cuda.so beside it or on
LD_LIBRARY_PATH. With the emulation as libtt_cuda.so, PyTorch computes on the CPU and cases are
small. PyTorch is the reference; without it, cases that need one are not run.
"""
import glob
import io
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
import traceback

HERE = os.path.abspath(__file__)
ROOT = os.path.dirname(HERE)  # of the repository, also for a copy of this file in .gpu
while not os.path.isdir(os.path.join(ROOT, "bindings/python")) and ROOT != "/":
    ROOT = os.path.dirname(ROOT)
LIMIT = 60.0  # seconds of a case
BITS_OF_BFLOAT16 = 2.0**-8
CASES = {}


class NotRun(Exception):
    """A case cannot run here."""


def case(function):
    CASES[function.__name__] = function
    return function


# ---- the process that starts the others ----


def environment():
    env = dict(os.environ)
    if "TT_LIBRARY" not in env:
        env["TT_LIBRARY"] = os.path.join(ROOT, ".gpu/lib/libtt.so.0")
    folders = [os.path.dirname(env["TT_LIBRARY"])]
    for site in sys.path:
        folders += glob.glob(os.path.join(site, "nvidia/*/lib"))
    known = env.get("LD_LIBRARY_PATH", "").split(":")
    env["LD_LIBRARY_PATH"] = ":".join([x for x in known if x] + folders)
    env["PYTHONPATH"] = ":".join([os.path.join(ROOT, "bindings/python"), *sys.path[1:]])
    return env


def read_lines(stream, lines):
    for line in stream:
        lines.put(line.rstrip("\n"))
    lines.put(None)


def run_worker(names, env):
    """Runs the cases in a process. Returns the results and the names of those that are left."""
    worker = subprocess.Popen(
        [sys.executable, HERE, "--worker", *names],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    lines, errors = queue.Queue(), queue.Queue()
    for stream, words in ((worker.stdout, lines), (worker.stderr, errors)):
        threading.Thread(target=read_lines, args=(stream, words), daemon=True).start()
    left, failures, current = list(names), 0, names[0]
    while True:
        try:
            line = lines.get(timeout=LIMIT)
        except queue.Empty:
            worker.kill()
            line = None
            print(f"FAILED {current}: stopped after {LIMIT:.0f} s", flush=True)
            return left[1:], failures + 1
        if line is None:
            break
        kind, _, words = line.partition("\t")
        if kind == "begin":
            current = words
        elif kind == "end":
            left.pop(0)
            failures += words.startswith("FAILED")
            print(words, flush=True)
        else:
            print("    " + line, flush=True)
    status = worker.wait()
    if left and status != 9:  # 9: the device is lost, the rest needs another process
        said = [x for x in iter(errors.get, None)][-3:]
        print(f"FAILED {current}: the process ended with {status}: {' / '.join(said)}", flush=True)
        return left[1:], failures + 1
    return left, failures


def main(names):
    unknown = [x for x in names if x not in CASES]
    if unknown:
        sys.exit(f"no such case: {unknown}; there are {list(CASES)}")
    left, failures, start = names or list(CASES), 0, time.monotonic()
    number = len(left)
    env = environment()
    while left:
        left, failed = run_worker(left, env)
        failures += failed
    seconds = time.monotonic() - start
    print(f"{number} cases, {failures} failed, {seconds:.0f} s", flush=True)
    return 1 if failures else 0


# ---- the process that runs cases ----


def device_lives():
    try:
        x = tt.ones(2, device="cuda")
        return (x + x).tolist() == [2, 2]
    except Exception:
        return False


def work(names):
    for name in names:
        print(f"begin\t{name}", flush=True)
        start, tensors = time.monotonic(), 0
        try:
            words = CASES[name]()
            verdict = "passed"
        except NotRun as e:
            verdict, words = "not run", str(e)
        except BaseException as e:
            place = traceback.extract_tb(e.__traceback__)[-1]
            at = [x for x in traceback.extract_tb(e.__traceback__) if x.filename == __file__]
            place = at[-1] if at else place
            verdict, words = "FAILED", f"line {place.lineno}: {type(e).__name__}: {e}"
        words = " ".join(str(words or "").split())
        seconds = time.monotonic() - start
        print(f"end\t{verdict} {name} ({seconds:.2f} s) {words}".rstrip(), flush=True)
        if verdict == "FAILED" and not device_lives():
            os._exit(9)
    sys.stdout.flush()


def child(program, **changes):
    """Runs a program in a fresh process, which prints what it found; it must end with 0."""
    env = {**os.environ, **changes}
    run = subprocess.run(
        [sys.executable, "-c", "import tt\n" + program],
        env=env,
        capture_output=True,
        text=True,
        timeout=LIMIT - 5,
    )
    assert run.returncode == 0, f"the process ended with {run.returncode}: {run.stderr[-600:]}"
    return run.stdout.strip()


def raised(kind, run, *words):
    """Runs what must raise the exception, with the words in its text. Returns the text."""
    try:
        run()
    except kind as e:
        for word in words:
            assert word in str(e), f"{word!r} is missing: {e}"
        return str(e)
    raise AssertionError(f"no {kind.__name__}")


def peer():
    if torch is None:
        raise NotRun("PyTorch is not installed")
    return torch


def needs_peer_on_device():
    if DEVICE_OF_PEER != "cuda":
        raise NotRun("PyTorch has no CUDA device")
    return torch


def on_device():
    if EMULATED:
        raise NotRun("on a GPU only")


def host(x):
    x = x.detach()
    if str(x.dtype).endswith(("bfloat16", "float16")):
        x = x.float()
    return numpy.asarray(x.cpu().numpy())


def apart(got, want):
    """The largest difference, relative to the largest number of what is wanted."""
    got, want = host(got).astype("float64"), host(want).astype("float64")
    assert got.shape == want.shape, f"shape {got.shape}, wanted {want.shape}"
    if not want.size:
        return 0.0
    assert numpy.isfinite(got).all() == numpy.isfinite(want).all(), "not finite"
    return float(abs(got - want).max() / max(abs(want).max(), 1e-30))


def ours(array):
    return tt.from_numpy(numpy.ascontiguousarray(array)).to("cuda")


def theirs(array):
    return torch.from_numpy(numpy.ascontiguousarray(array)).to(DEVICE_OF_PEER)


def theirs_in_double(array):
    x = theirs(array)
    return x.double() if x.is_floating_point() else x


def normal(*shape, seed=0):
    return numpy.random.RandomState(seed + sum(shape)).standard_normal(shape).astype("float32")


def integers(high, *shape, seed=0):
    return numpy.random.RandomState(seed + sum(shape)).randint(0, high, shape)


def milliseconds(cuda, run, times):
    run()
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    cuda.synchronize()
    start.record()
    for _ in range(times):
        run()
    end.record()
    cuda.synchronize()
    return start.elapsed_time(end) / times


# ---- the runtime ----


@case
def names():
    assert cuda.is_available() and cuda.device_count() >= 1 and cuda.current_device() == 0
    facts = cuda.get_device_properties()
    assert facts.name == cuda.get_device_name() and facts.warp_size == 32
    assert (facts.major, facts.minor) == cuda.get_device_capability()
    free, total = cuda.mem_get_info()
    assert 0 < free <= total
    if DEVICE_OF_PEER == "cuda":
        same = torch.cuda.get_device_properties(0)
        assert (facts.name, facts.major, facts.minor) == (same.name, same.major, same.minor)
        assert facts.total_memory == same.total_memory
        assert facts.multi_processor_count == same.multi_processor_count
        assert facts.L2_cache_size == same.L2_cache_size
        assert cuda.device_count() == torch.cuda.device_count()
    return f"{facts.name}, {facts.major}.{facts.minor}, {total >> 20} MiB; {tt.build_info()}"


@case
def streams():
    side, other = cuda.Stream(), cuda.Stream(priority=-1)
    assert side == side and side != other and cuda.current_stream() == cuda.default_stream()
    x = ours(normal(SIZE, SIZE))
    want = x
    for _ in range(4):
        want = (want @ x) / SIZE
    for k in range(20):
        with cuda.stream(side):
            y = x
            for _ in range(4):
                y = (y @ x) / SIZE
        with cuda.stream(other):
            z = y + 1
        assert cuda.current_stream() == cuda.default_stream()
        del y  # its memory serves side again only after other has read it
        assert tt.equal(z, want + 1), f"round {k}"
    side.wait_stream(cuda.current_stream())
    side.wait_event(other.record_event())
    side.synchronize()
    assert side.query() and side.cuda_stream
    with cuda.stream(cuda.ExternalStream(side.cuda_stream)):
        assert (x * 2).sum().item() == (x * 2).sum().item()


@case
def events():
    x = ours(normal(SIZE, SIZE))
    x @ x
    cuda.synchronize()
    begin, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    start = time.perf_counter()
    begin.record()
    for _ in range(50):
        x @ x
    end.record()
    issued = time.perf_counter() - start
    end.synchronize()
    wall = (time.perf_counter() - start) * 1000
    assert begin.query() and end.query()
    device = begin.elapsed_time(end)
    assert (device > 0 or EMULATED) and device <= wall * 1.05, f"{device} ms of {wall}"
    raised(Exception, lambda: cuda.Event().elapsed_time(end))
    return f"50 products of {SIZE}: {device:.2f} ms, issued in {issued * 1000:.2f} ms"


@case
def pinned():
    number = SIZE * SIZE
    source = tt.arange(number, dtype=tt.float32).pin_memory()
    assert source.is_pinned() and source.pin_memory() is source and not tt.zeros(2).is_pinned()
    back = tt.zeros(number).pin_memory()
    cuda.synchronize()
    start = time.perf_counter()
    x = source.to("cuda", non_blocking=True)
    y = x * 2
    back.copy_(y, non_blocking=True)
    issued = time.perf_counter() - start
    cuda.synchronize()
    total = time.perf_counter() - start
    assert tt.equal(back, source * 2) and tt.equal(x.cpu(), source)
    for k in range(8):  # memory that is dropped while it is copied is not reused before
        piece = tt.full((number,), float(k)).pin_memory()
        there = piece.to("cuda", non_blocking=True)
        del piece
        again = tt.full((number,), -1.0).pin_memory()
        assert there.min().item() == there.max().item() == k
        del again
    loader = tt.utils.data.DataLoader(
        tt.utils.data.TensorDataset(tt.arange(32.0)), batch_size=8, pin_memory=True
    )
    batches = [b[0].to("cuda", non_blocking=True) for b in loader]
    assert tt.cat(batches).tolist() == list(range(32))
    return (
        f"{number >> 18} MiB there and back: issued in {issued * 1e3:.2f} of {total * 1e3:.2f} ms"
    )


@case
def memory():
    cuda.synchronize()
    cuda.empty_cache()
    before = cuda.memory_allocated()
    x = tt.zeros(SIZE, SIZE, device="cuda")
    used = cuda.memory_allocated() - before
    assert SIZE * SIZE * 4 <= used <= SIZE * SIZE * 4 + (2 << 20)
    cuda.reset_peak_memory_stats()
    y = x + 1
    assert cuda.max_memory_allocated() >= before + 2 * SIZE * SIZE * 4
    assert cuda.memory_reserved() >= cuda.memory_allocated()
    stats = cuda.memory_stats()
    assert stats["allocated_bytes.all.current"] == cuda.memory_allocated()
    del x, y
    cuda.synchronize()
    held = cuda.memory_reserved()
    left = cuda.mem_get_info()[0]
    cuda.empty_cache()
    assert cuda.memory_allocated() == before and cuda.memory_reserved() <= held
    if not EMULATED:
        assert cuda.mem_get_info()[0] >= left
    return f"peak {cuda.max_memory_allocated() >> 10} KiB, reserved {cuda.memory_reserved()} after"


@case
def out_of_memory():
    ooms = cuda.memory_stats()["num_ooms"]
    text = raised(
        cuda.OutOfMemoryError,
        lambda: tt.empty(10 * 2**40, dtype=tt.uint8, device="cuda"),
        "cuda:0",
        str(10 * 2**40),
        "in use",
        "reserved",
    )
    assert cuda.memory_stats()["num_ooms"] == ooms + 1
    assert device_lives()
    return text


@case
def memory_limit():
    piece = 16 << 20
    cuda.synchronize()
    cuda.empty_cache()
    from tt import runtime

    runtime.set_memory_limit(
        runtime.memory_stats()["reserved"] + cuda.memory_reserved() + 4 * piece
    )
    try:
        kept = [tt.empty(piece, dtype=tt.uint8, device="cuda") for _ in range(2)]
        text = raised(
            cuda.OutOfMemoryError,
            lambda: tt.empty(8 * piece, dtype=tt.uint8, device="cuda"),
            "limit",
        )
        retries = cuda.memory_stats()["num_alloc_retries"]
        del kept
        # what is cached is given back, and the call succeeds
        whole = tt.empty(3 * piece, dtype=tt.uint8, device="cuda")
        assert whole.numel() == 3 * piece
        tried = cuda.memory_stats()["num_alloc_retries"] - retries
        del whole
    finally:
        runtime.set_memory_limit(0)
    assert tt.empty(8 * piece, dtype=tt.uint8, device="cuda").numel() == 8 * piece
    return f"{tried} retries after a full cache; {text}"


@case
def random_numbers():
    for draw in (
        lambda device: tt.rand(1001, device=device),
        lambda device: tt.randint(0, 1000, (1001,), device=device),
        lambda device: tt.bernoulli(tt.full((1001,), 0.3, device=device)),
        lambda device: tt.nn.functional.dropout(tt.ones(1001, device=device), 0.4),
        lambda device: tt.randperm(1001, device=device),
    ):
        tt.manual_seed(7)
        want = draw("cpu")
        tt.manual_seed(7)
        assert tt.equal(draw("cuda").cpu(), want)
    tt.manual_seed(7)
    want = tt.randn(1001)
    tt.manual_seed(7)
    return f"randn differs by {apart(tt.randn(1001, device='cuda'), want):.1e} from the CPU's"


@case
def threads():
    x, results = ours(normal(SIZE, SIZE)), {}

    def compute(k):
        with cuda.stream(cuda.Stream()):
            y = x + k
            for _ in range(20):
                y = y * 0.5 + k
            results[k] = y.cpu()

    running = [threading.Thread(target=compute, args=(k,)) for k in range(4)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    for k in range(4):
        y = x + k
        for _ in range(20):
            y = y * 0.5 + k
        assert tt.equal(results[k], y.cpu()), f"thread {k}"


# ---- errors ----


@case
def faults():
    table = tt.nn.Embedding(10, 4).to("cuda")
    good, bad = ours(integers(10, 100)), integers(10, 100)
    bad[3], bad[50] = 12, -1
    ours_bad = ours(bad)
    want = table(good).detach()
    texts = []
    for run, words in (
        (lambda: table(ours_bad), ("Embedding", "indices", "[3]", "12", "[0, 10)")),
        (lambda: want.index_select(0, ours_bad + 100), ("index_select", "index", "[0]")),
        (lambda: want.gather(0, ours_bad[:, None] + 200), ("gather", "index", "[0,0]")),
        (lambda: tt.nn.functional.cross_entropy(want, good + 3), ("cross_entropy",)),
        (lambda: good // tt.zeros_like(good), ("zero", "other holds 0 at [0]")),
        (lambda: tt.bernoulli(tt.full((3,), 2.0, device="cuda")), ("bernoulli", "2", "[0]")),
    ):
        kept = run()
        texts.append(raised(tt.errors.TtError, cuda.synchronize, *words))
        cuda.synchronize()  # told once
        del kept
    assert tt.equal(table(good).detach(), want)
    return " | ".join(texts)


LOST = """
import ctypes, os, re
cuda = tt.cuda
how = "HOW"
if how == "fake":
    path = os.path.dirname(os.environ["TT_LIBRARY"]) + "/tests/fake/libtt_fake.so"
    tt.runtime.load_cuda(path)
x = tt.ones(4, device="cuda")
x = x + 1
cuda.synchronize()
if how == "fake":
    ctypes.CDLL(path).tt_fake_fail(ctypes.c_int64(0), 4, 1)  # the next synchronisation fails
    x + 1
elif how == "torch":
    import torch
    table = torch.zeros(4, device="cuda")
    table[torch.tensor([1000000], device="cuda")]
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        pass
else:  # tt computes over an address where there is no memory
    class DLTensor(ctypes.Structure):
        _fields_ = [("data", ctypes.c_void_p), ("kind", ctypes.c_int32), ("index", ctypes.c_int32),
                    ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                    ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p),
                    ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64),
                    ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]
    size = (ctypes.c_int64 * 1)(4)
    managed = DLTensor(1 << 44, 2, 0, 1, 2, 32, 1, ctypes.addressof(size), None, 0, None, None)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    nowhere = tt.from_dlpack(new(ctypes.addressof(managed), b"dltensor", None))
    try:
        y = nowhere + 1
    except tt.errors.TtError:
        pass
texts = []
for run in (cuda.synchronize, lambda: x + 1, lambda: x.cpu(), lambda: tt.ones(9, device="cuda"),
            cuda.Stream, cuda.synchronize):
    try:
        run()
    except tt.errors.DeviceError as e:
        texts.append(str(e))
    else:
        raise SystemExit(f"no error after {texts}")
assert (tt.ones(3) + 1).tolist() == [2, 2, 2]
kept = re.sub(r"^[a-z]+: (cuda:0 was lost: )?", "", texts[0])[:40]
assert all(kept in text for text in texts), texts
print(texts[0], "| later:", texts[1])
"""


@case
def lost_by_illegal_address():
    if EMULATED:
        return child(LOST.replace("HOW", "fake"))
    return child(LOST.replace("HOW", "address"))


@case
def lost_by_assert_of_torch():
    on_device()
    needs_peer_on_device()
    return child(LOST.replace("HOW", "torch"))


@case
def fork():
    return child(
        """
import os
x = tt.ones(3, device="cuda")
read, write = os.pipe()
pid = os.fork()
if pid == 0:
    text = "no error"
    try:
        x + 1
    except tt.errors.DeviceError as e:
        text = str(e)
    del x
    try:
        tt.ones(2, device="cuda")
        text = "no error for a new tensor"
    except tt.errors.DeviceError:
        pass
    text = text if (tt.ones(2) + 1).tolist() == [2, 2] else "the CPU's results are wrong"
    os.write(write, text.encode())
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
text = os.read(read, 9999).decode()
assert "fork" in text, text
assert (x + 1).tolist() == [2, 2, 2]
print(text)
"""
    )


WITHOUT = """
assert not tt.cuda.is_available() and tt.cuda.device_count() == 0
assert tt.cuda.memory_allocated() == 0
tt.cuda.manual_seed(1)
tt.cuda.synchronize()
texts = []
for run in (lambda: tt.ones(3).to("cuda"), lambda: tt.ones(3, device="cuda"), tt.cuda.init,
            tt.cuda.Stream, tt.cuda.get_device_name):
    try:
        run()
    except tt.errors.DeviceError as e:
        texts.append(str(e))
    else:
        raise SystemExit(f"no error after {texts}")
assert (tt.ones(3) + 1).tolist() == [2, 2, 2]
print(texts[0], "|", texts[-1])
"""


@case
def without_devices():
    if EMULATED:
        return child(WITHOUT, LD_LIBRARY_PATH="")
    return child(WITHOUT, CUDA_VISIBLE_DEVICES="")


LIBRARIES = {"cublasLt": ("13", "12"), "cudnn": ("9",), "cusolver": ("12", "11"),
             "cufft": ("12", "11")}  # fmt: skip
COMPUTE = """
import time
tt.manual_seed(0)
made = {"a": tt.randn(N, N), "b": tt.randn(N, N), "x": tt.randn(4, C, 16, 16),
        "w": tt.randn(C, C, 3, 3)}
def results(a, b, x, w):
    half = (a.bfloat16() @ b.bfloat16()).float()
    s = a[:M, :M]
    return {"matmul": a @ b, "bf16 matmul": half,
            "conv2d": tt.nn.functional.conv2d(x, w, padding=1),
            "svdvals": tt.linalg.svdvals(s), "eigvalsh": tt.linalg.eigvalsh(s + s.mT),
            "cholesky": tt.linalg.cholesky(s @ s.mT + 10 * tt.eye(M, device=a.device)),
            "solve": tt.linalg.solve(s + 20 * tt.eye(M, device=a.device), b[:M, :3]),
            "fft": tt.fft.fft(a).abs(), "rfft": tt.fft.rfft2(b).abs()}
want = results(**made)
start = time.perf_counter()
got = results(**{k: v.to("cuda") for k, v in made.items()})
tt.cuda.synchronize()
seconds = time.perf_counter() - start
worst = {}
for name, value in got.items():
    worst[name] = ((value.cpu() - want[name]).abs().max() / want[name].abs().max()).item()
allowed = {"bf16 matmul": 2.0**-8, "solve": 5e-5}
bad = {k: v for k, v in worst.items() if not v <= allowed.get(k, 1e-5)}
assert not bad, bad
maps = open("/proc/self/maps").read()
loaded = [x for x in ("cublasLt", "cudnn", "cusolver", "cufft") if "lib" + x + ".so" in maps]
print("loaded:", loaded, "largest difference:", f"{max(worst.values()):.1e},", f"{seconds:.2f} s")
"""


def computed(**changes):
    sizes = ("32", "16", "8") if EMULATED else ("512", "160", "96")
    program = COMPUTE
    for name, size in zip("NMC", sizes):
        program = program.replace(name, size)
    return child(program, **changes)


def present(name):
    folders = os.environ["LD_LIBRARY_PATH"].split(":")
    files = (os.path.join(x, f"lib{name}.so.{v}") for x in folders for v in LIBRARIES[name])
    return any(os.path.exists(x) for x in files)


@case
def with_libraries():
    found = computed()
    if not EMULATED:
        missing = [x for x in LIBRARIES if present(x) and x not in found.split("]")[0]]
        assert not missing, f"{missing} are on the path, but were not opened; {found}"
    return found


def hidden(names):
    """Computes with files that are no libraries in place of NVIDIA's."""
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            for version in LIBRARIES[name]:
                with open(os.path.join(folder, f"lib{name}.so.{version}"), "w") as f:
                    f.write("no library")
        found = computed(LD_LIBRARY_PATH=folder + ":" + os.environ["LD_LIBRARY_PATH"])
        loaded = found.split("]")[0]
        assert not any(name in loaded for name in names), found
        return found


@case
def without_cublas():
    return hidden(["cublasLt"])


@case
def without_cudnn():
    return hidden(["cudnn"])


@case
def without_libraries():
    return hidden(list(LIBRARIES))


# ---- DLPack ----


@case
def dlpack_from_torch():
    needs_peer_on_device()
    x = theirs(normal(SIZE, SIZE))
    want = x
    for _ in range(20):
        want = want @ x / SIZE
    want = want.cpu()
    for where in (torch.cuda.current_stream(), torch.cuda.Stream()):
        where.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(where):
            y = x
            for _ in range(20):
                y = y @ x / SIZE
            mine = tt.from_dlpack(y)  # tt's stream waits for torch's
        assert mine.data_ptr() == y.data_ptr() and str(mine.device) == "cuda:0"
        assert numpy.array_equal(host(mine + 0), want.numpy())
        del y
        again = torch.empty(SIZE, SIZE, device="cuda").fill_(7)  # torch must not reuse the memory
        assert numpy.array_equal(host(mine), want.numpy())
        mine.add_(1)
        del again
    integers_of_torch = torch.arange(6, device="cuda").view(2, 3).T
    assert tt.from_dlpack(integers_of_torch).tolist() == integers_of_torch.tolist()
    half = torch.ones(3, dtype=torch.bfloat16, device="cuda")
    assert tt.from_dlpack(half).dtype == tt.bfloat16


@case
def dlpack_to_torch():
    needs_peer_on_device()
    x = ours(normal(SIZE, SIZE))
    want = x
    for _ in range(20):
        want = want @ x / SIZE
    want = host(want)
    for where in (cuda.default_stream(), cuda.Stream()):
        with cuda.stream(where):
            y = x
            for _ in range(20):
                y = y @ x / SIZE
            yours = torch.from_dlpack(y)
        assert yours.data_ptr() == y.data_ptr()
        assert numpy.array_equal((yours + 0).cpu().numpy(), want)
        del y
        again = tt.full((SIZE, SIZE), 7.0, device="cuda")  # tt must not reuse the memory
        assert numpy.array_equal(yours.cpu().numpy(), want)
        del again
        before = cuda.memory_allocated()
        del yours
        cuda.synchronize()
        assert before - cuda.memory_allocated() >= SIZE * SIZE * 4
    assert numpy.array_equal(torch.from_dlpack(x.T).cpu().numpy(), host(x).T)
    raised(BufferError, lambda: x.__dlpack__(stream=0), "stream is 0")
    there = tt.from_dlpack(torch.from_dlpack(x))
    assert there.data_ptr() == x.data_ptr()


@case
def shared_stream_with_torch():
    needs_peer_on_device()
    x = ours(normal(SIZE, SIZE))
    stream = torch.cuda.Stream()
    with cuda.stream(cuda.ExternalStream(stream.cuda_stream)), torch.cuda.stream(stream):
        y = x @ x
        z = torch.from_dlpack(y) * 2
        w = tt.from_dlpack(z) + 1
        found = host(w)
    assert numpy.array_equal(found, host(x @ x) * 2 + 1)


# ---- numbers ----


def attention(lib, q, k, v, **options):
    return lib.nn.functional.scaled_dot_product_attention(q, k, v, **options)


def functions():
    n = SIZE
    image = normal(8, 16, 24, 24)
    q, k, v = (normal(2, 4, n // 4, 64, seed=s) for s in (1, 2, 3))
    f = "nn.functional"
    return {
        "add": ([normal(n, n), normal(n)], lambda lib, a, b: a + b),
        "gelu": ([normal(n, n)], lambda lib, a: lib.nn.functional.gelu(a)),
        "silu": ([normal(n, n)], lambda lib, a: lib.nn.functional.silu(a)),
        "exp": ([normal(n, n)], lambda lib, a: a.exp()),
        "tanh": ([normal(n, n)], lambda lib, a: a.tanh()),
        "sum": ([normal(n, n)], lambda lib, a: a.sum(0)),
        "mean": ([normal(n, n)], lambda lib, a: a.mean(-1)),
        "var": ([normal(n, n)], lambda lib, a: a.var(-1)),
        "amax": ([normal(n, n)], lambda lib, a: a.amax(-1)),
        "cumsum": ([normal(64, n)], lambda lib, a: a.cumsum(-1)),
        "softmax": ([normal(n, n)], lambda lib, a: a.softmax(-1)),
        "log_softmax": ([normal(n, n)], lambda lib, a: a.log_softmax(-1)),
        "layer_norm": (
            [normal(n, 96), normal(96), normal(96, seed=1)],
            lambda lib, a, w, b: lib.nn.functional.layer_norm(a, (96,), w, b),
        ),
        "rms_norm": (
            [normal(n, 96), normal(96)],
            lambda lib, a, w: lib.nn.functional.rms_norm(a, (96,), w, 1e-6),
        ),
        "group_norm": ([image], lambda lib, a: lib.nn.functional.group_norm(a, 4)),
        "batch_norm": (
            [image],
            lambda lib, a: lib.nn.functional.batch_norm(a, None, None, training=True),
        ),
        "matmul": ([normal(n, n), normal(n, n, seed=1)], lambda lib, a, b: a @ b),
        "bmm": ([normal(8, 40, 56), normal(8, 56, 24)], lambda lib, a, b: a @ b),
        "linear": (
            [normal(n, 96), normal(64, 96), normal(64)],
            lambda lib, a, w, b: lib.nn.functional.linear(a, w, b),
        ),
        "conv2d": (
            [image, normal(32, 16, 3, 3), normal(32)],
            lambda lib, a, w, b: lib.nn.functional.conv2d(a, w, b, stride=2, padding=1),
        ),
        "depthwise": (
            [image, normal(16, 1, 3, 3)],
            lambda lib, a, w: lib.nn.functional.conv2d(a, w, padding=1, groups=16),
        ),
        "conv_transpose2d": (
            [image, normal(16, 8, 3, 3)],
            lambda lib, a, w: lib.nn.functional.conv_transpose2d(a, w, stride=2),
        ),
        "max_pool2d": ([image], lambda lib, a: lib.nn.functional.max_pool2d(a, 3, 2)),
        "avg_pool2d": ([image], lambda lib, a: lib.nn.functional.avg_pool2d(a, 2)),
        "interpolate": (
            [image],
            lambda lib, a: lib.nn.functional.interpolate(a, scale_factor=2, mode="bilinear"),
        ),
        "attention": ([q, k, v], attention),
        "causal attention": (
            [q, k, v],
            lambda lib, a, b, c: attention(lib, a, b, c, is_causal=True),
        ),
        "permute": ([image], lambda lib, a: a.permute(0, 2, 3, 1).contiguous()),
        "sort": ([normal(64, n)], lambda lib, a: a.sort(dim=-1, stable=True).values),
        "logsumexp": ([normal(n, n)], lambda lib, a: a.logsumexp(-1)),
    }


def compared(names, dtype, bound):
    """Compares results and gradients with PyTorch's in double precision. bound(name): the relative
    difference that is allowed."""
    peer()
    worst, bad = (0.0, ""), []
    for name, (arrays, run) in functions().items():
        if names and name not in names:
            continue
        sides = []
        for lib, move in ((tt, ours), (torch, theirs)):
            xs = [move(a).to(getattr(lib, dtype)) for a in arrays]
            if lib is torch:
                xs = [x.double() for x in xs]
            xs = [x.requires_grad_() for x in xs]
            y = run(lib, *xs)
            weight = move(normal(*y.shape, seed=9) if y.dim() else normal(1)[0])
            (y * weight).sum().backward()
            sides.append([y] + [x.grad for x in xs])
        for k, (got, want) in enumerate(zip(*sides)):
            what = name if k == 0 else f"{name}'s gradient {k - 1}"
            difference = apart(got, want)
            worst = max(worst, (difference, what))
            if not difference <= bound(name):
                bad.append(f"{what} {difference:.1e}")
    assert not bad, "; ".join(bad)
    return f"largest difference {worst[0]:.1e} of {worst[1]}"


@case
def functions_float32():
    return compared(None, "float32", lambda name: 1e-5)


@case
def functions_bfloat16():
    """tt rounds its results, and the parts of composites, to bfloat16."""
    return compared(None, "bfloat16", lambda name: 4 * BITS_OF_BFLOAT16)


@case
def indexing():
    peer()
    a, i = normal(200, 64), integers(200, 500)
    sides = []
    for lib, move in ((tt, ours), (torch, theirs)):
        x, k = move(a).requires_grad_(), move(i)
        y = lib.nn.functional.embedding(k, x)
        (y * move(normal(500, 64))).sum().backward()
        base = move(a)
        scattered = base.index_add(0, k, move(normal(500, 64)))
        chosen = base.gather(1, k[:200, None] % 64)
        top = base.topk(5, dim=-1)
        sides.append(
            [y, x.grad, scattered, chosen, top.values, base[base > 0.5], base.argsort(0),
             base.argmax(-1), (base > 0).nonzero(), k.unique(), k.bincount()]
        )  # fmt: skip
    worst = max(apart(got, want) for got, want in zip(*sides))
    assert worst <= 1e-5, worst
    return f"largest difference {worst:.1e}"


# ---- training ----


def cnn(lib):
    nn = lib.nn
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(32 * 7 * 7, 64), nn.GELU(), nn.Linear(64, 10),
    )  # fmt: skip


def gpt(lib):
    nn = lib.nn
    vocabulary, width, heads, layers, context = GPT_SIZES

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = (
                m.view(b, t, heads, c // heads).transpose(1, 2)
                for m in self.qkv(self.norm1(x)).split(c, dim=-1)
            )
            y = attention(lib, q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
            return x + self.narrow(nn.functional.gelu(self.wide(self.norm2(x))))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(
                context, width
            )
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
            self.register_buffer("places", lib.arange(context))

        def forward(self, ids):
            x = self.token(ids) + self.position(self.places)
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x)).flatten(0, 1)

    return GPT()


def pair(make):
    """The same model in tt and in PyTorch, each on its device."""
    torch.manual_seed(0)
    reference = make(torch)
    arrays = {k: v.detach().numpy().copy() for k, v in reference.state_dict().items()}
    model = make(tt)
    model.load_state_dict({k: tt.tensor(v) for k, v in arrays.items()})
    return model.to("cuda"), reference.to(DEVICE_OF_PEER)


def batches(make, number):
    if make is cnn:
        rows = 4 if EMULATED else 64
        return [
            (normal(rows, 1, 28, 28, seed=k), integers(10, rows, seed=k)) for k in range(number)
        ]
    vocabulary, _, _, _, context = GPT_SIZES
    rows = 2 if EMULATED else 16
    ids = [integers(vocabulary, rows, context + 1, seed=k) for k in range(number)]
    return [(x[:, :-1], x[:, 1:].reshape(-1)) for x in ids]


def adamw(lib, model):
    return lib.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)


def sgd(lib, model):
    return lib.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def train(lib, move, model, optimizer, data):
    """Returns the losses, and the gradients of the first step."""
    losses, first = [], None
    for x, y in data:
        optimizer.zero_grad()
        loss = lib.nn.functional.cross_entropy(model(move(x)), move(y))
        loss.backward()
        if first is None:
            first = [p.grad.clone() for p in model.parameters()]
        lib.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
    return [float(x.item()) for x in losses], first


def same_training(make, optimizer):
    peer()
    model, reference = pair(make)
    data = batches(make, 5)
    losses, gradients = train(tt, ours, model, optimizer(tt, model), data)
    reference = reference.double()
    wanted, want = train(torch, theirs_in_double, reference, optimizer(torch, reference), data)
    first = abs(losses[0] - wanted[0]) / wanted[0]
    assert first <= 1e-5, f"loss {losses[0]}, PyTorch's {wanted[0]}"
    # of all gradients: one that is a sum of cancelling terms has no precision of its own
    largest = max(float(abs(host(g)).max()) for g in want)
    worst = max(float(abs(host(a) - host(b)).max()) for a, b in zip(gradients, want)) / largest
    assert worst <= 1e-5, f"gradients differ by {worst:.1e}"
    last = abs(losses[-1] - wanted[-1]) / wanted[-1]
    assert last <= 1e-3, f"losses {losses}, PyTorch's {wanted}"
    return f"loss {first:.1e}, gradients {worst:.1e}, loss of step 5 {last:.1e} from PyTorch's"


@case
def train_cnn():
    return same_training(cnn, sgd)


@case
def train_gpt():
    return same_training(gpt, adamw)


@case
def autocast():
    peer()
    model, reference = pair(gpt)
    ((x, y),) = batches(gpt, 1)
    sides = []
    for lib, move, net in ((tt, ours, model), (torch, theirs, reference)):
        kind = "cuda" if lib is tt else DEVICE_OF_PEER
        with lib.autocast(kind, dtype=lib.bfloat16):
            logits = net(move(x))
            loss = lib.nn.functional.cross_entropy(logits, move(y))
        assert str(logits.dtype).endswith("bfloat16") and str(loss.dtype).endswith("float32")
        loss.backward()
        sides.append([loss.item(), [p.grad for p in net.parameters()]])
        assert all(str(p.grad.dtype).endswith("float32") for p in net.parameters())
    (loss, gradients), (wanted, want) = sides
    assert abs(loss - wanted) <= BITS_OF_BFLOAT16 * wanted, f"loss {loss}, PyTorch's {wanted}"
    largest = max(float(abs(host(g)).max()) for g in want)
    worst = max(float(abs(host(a) - host(b)).max()) for a, b in zip(gradients, want)) / largest
    assert worst <= 8 * BITS_OF_BFLOAT16, f"gradients differ by {worst:.1e}"
    optimizer = adamw(tt, model)
    optimizer.step()
    with tt.no_grad(), tt.autocast("cuda", dtype=tt.bfloat16):
        after = tt.nn.functional.cross_entropy(model(ours(x)), ours(y)).item()
    assert after < loss, f"loss {loss}, {after} after a step"
    return f"loss {abs(loss - wanted) / wanted:.1e}, gradients {worst:.1e} from PyTorch's"


@case
def grad_scaler():
    peer()
    scales = []
    for lib, move in ((tt, ours), (torch, theirs)):
        kind = "cuda" if lib is tt else DEVICE_OF_PEER
        w = lib.nn.Parameter(move(normal(64)))
        optimizer = lib.optim.SGD([w], lr=0.1)
        scaler = lib.amp.GradScaler(kind, init_scale=2.0**10, growth_interval=2)
        found = []
        for step in range(6):
            optimizer.zero_grad()
            factor = float("inf") if step == 3 else 1.0
            scaler.scale((w * w).sum() * factor).backward()
            scaler.unscale_(optimizer)
            norm = lib.nn.utils.clip_grad_norm_([w], 1.0)
            scaler.step(optimizer)
            scaler.update()
            found.append((scaler.get_scale(), float(norm.item())))
        scales.append((found, host(w)))
    (got, mine), (want, yours) = scales
    assert [s for s, _ in got] == [s for s, _ in want], f"{got}, PyTorch's {want}"
    assert apart(tt.tensor(mine), tt.tensor(yours)) <= 1e-5
    return f"scales {[s for s, _ in got]}"


@case
def checkpoints():
    peer()
    model, _ = pair(cnn)
    optimizer = adamw(tt, model)
    data = batches(cnn, 4)
    train(tt, ours, model, optimizer, data[:2])
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    saved = io.BytesIO()
    tt.save(state, saved)
    want, _ = train(tt, ours, model, optimizer, data[2:])
    found = []
    for place, move in (("cuda", ours), ("cpu", tt.from_numpy)):
        saved.seek(0)
        loaded = tt.load(saved, map_location=place)
        assert all(v.device.type == place for v in loaded["model"].values())
        again = cnn(tt).to(place)
        again.load_state_dict(loaded["model"])
        resumed = adamw(tt, again)
        resumed.load_state_dict(loaded["optimizer"])
        losses, _ = train(tt, move, again, resumed, data[2:])
        found.append(losses)
    assert found[0] == want, f"{found[0]} after loading, {want} without"
    cpu = max(abs(a - b) / b for a, b in zip(found[1], want))
    assert cpu <= 1e-4, f"{found[1]} on the CPU, {want}"
    saved.seek(0)
    read = torch.load(saved, map_location=DEVICE_OF_PEER, weights_only=True)["model"]
    saved.seek(0)
    there = tt.load(saved)["model"]
    assert all(apart(there[k], v) == 0 for k, v in read.items())
    return f"the CPU's losses differ by {cpu:.1e}; PyTorch reads the file"


@case
def determinism():
    peer()
    found = []
    for _ in range(2):
        model = pair(gpt)[0]
        losses, gradients = train(tt, ours, model, adamw(tt, model), batches(gpt, 3))
        found.append((losses, [host(g).tobytes() for g in gradients]))
    assert found[0] == found[1]


def step_of(lib, model, optimizer, dropout=0.0):
    def step(x, y):
        optimizer.zero_grad()
        logits = lib.nn.functional.dropout(model(x), dropout, training=dropout > 0)
        loss = lib.nn.functional.cross_entropy(logits, y)
        loss.backward()
        lib.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    return step


def captured(make, dropout):
    """A compiled training step has the bits of the eager one. Returns the times of both."""
    peer()
    data = batches(make, 6)
    runs, times = [], []
    for wrap in (lambda f: f, tt.compile):
        model, _ = pair(make)
        optimizer = adamw(tt, model)
        step = wrap(step_of(tt, model, optimizer, dropout))
        tt.manual_seed(3)
        losses = [step(ours(x), ours(y)).item() for x, y in data]
        runs.append((losses, [host(p).tobytes() for p in model.parameters()]))
        x, y = (ours(a) for a in data[0])
        if not EMULATED:
            times.append(milliseconds(cuda, lambda: step(x, y), 30))
    assert runs[0][0] == runs[1][0], f"losses {runs[0][0]}, compiled {runs[1][0]}"
    assert runs[0][1] == runs[1][1], "parameters differ"
    words = ""
    if not EMULATED:
        _, reference = pair(make)
        step = step_of(torch, reference, adamw(torch, reference), dropout)
        x, y = (theirs(a) for a in data[0])
        times.append(milliseconds(torch.cuda, lambda: step(x, y), 30))
        words = "step: eager {:.3f} ms, compiled {:.3f} ms, PyTorch eager {:.3f} ms".format(*times)
    return words


@case
def compiled_cnn():
    return captured(cnn, 0.0)


@case
def compiled_gpt():
    return captured(gpt, 0.0)


@case
def compiled_gpt_with_dropout():
    return captured(gpt, 0.2)


@case
def compiled_forward():
    peer()
    model, reference = pair(gpt)
    ((x, y),) = batches(gpt, 1)
    run = tt.compile(model)
    with tt.no_grad():
        want = model(ours(x))
        for _ in range(4):
            assert tt.equal(run(ours(x)), want)
    with torch.no_grad():
        difference = apart(want, reference(theirs(x)))
    assert difference <= 1e-5, difference
    return f"logits differ by {difference:.1e} from PyTorch's"


def graph_of_step(lib, graphs, model, optimizer, x, y):
    """A CUDA graph of a training step, as PyTorch's documentation makes it. Returns what replays it
    with the batch in x and y, and its loss."""

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = lib.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    side = graphs.Stream()
    side.wait_stream(graphs.current_stream())
    with graphs.stream(side):
        for _ in range(3):
            step()
    graphs.current_stream().wait_stream(side)
    g = graphs.CUDAGraph()
    with graphs.graph(g):
        loss = step()
    return g, loss


@case
def graph_of_gpt():
    """A captured step has the bits of the eager one, for new batches, too."""
    peer()
    data = batches(gpt, 5)
    (model, reference), (eager, _) = pair(gpt), pair(gpt)
    x, y = (ours(a) for a in data[0])
    g, loss = graph_of_step(tt, cuda, model, adamw(tt, model), x, y)
    optimizer = adamw(tt, eager)
    losses = []
    for k, batch in enumerate([data[0]] * 3 + data):
        optimizer.zero_grad(set_to_none=True)
        want = tt.nn.functional.cross_entropy(eager(ours(batch[0])), ours(batch[1]))
        want.backward()
        optimizer.step()
        if k < 3:
            continue
        x.copy_(tt.from_numpy(numpy.ascontiguousarray(batch[0])))
        y.copy_(tt.from_numpy(numpy.ascontiguousarray(batch[1])))
        g.replay()
        losses.append(loss.item())
        assert losses[-1] == want.item(), f"step {k}: {losses[-1]}, eager {want.item()}"
    for p, q in zip(model.parameters(), eager.parameters()):
        assert tt.equal(p, q) and tt.equal(p.grad, q.grad)
    if EMULATED or DEVICE_OF_PEER != "cuda":
        return f"loss {losses[0]:.4f} to {losses[-1]:.4f}"
    mine = milliseconds(cuda, g.replay, 30)
    there = [theirs(a) for a in data[0]]
    capturable = torch.optim.AdamW(
        reference.parameters(), lr=1e-3, weight_decay=0.01, capturable=True
    )
    torch_graph, _ = graph_of_step(torch, torch.cuda, reference, capturable, *there)
    yours = milliseconds(torch.cuda, torch_graph.replay, 30)
    return (
        f"replay {mine:.3f} ms, PyTorch's {yours:.3f} ms; loss {losses[0]:.4f} to {losses[-1]:.4f}"
    )


@case
def graphed_callables():
    peer()
    (model, _), (eager, _) = pair(cnn), pair(cnn)
    data = batches(cnn, 4)
    graphed = cuda.make_graphed_callables(model, (ours(data[0][0]),), num_warmup_iters=0)
    optimizers = [sgd(tt, m) for m in (model, eager)]
    for x, y in data:
        losses = []
        for net, optimizer in zip((graphed, eager), optimizers):
            optimizer.zero_grad()
            loss = tt.nn.functional.cross_entropy(net(ours(x)), ours(y))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[0] == losses[1], losses
    assert all(tt.equal(p, q) for p, q in zip(model.parameters(), eager.parameters()))


if __name__ == "__main__":
    if sys.argv[1:2] != ["--worker"]:
        sys.exit(main(sys.argv[1:]))
    import numpy

    try:
        import torch
    except ImportError:
        torch = None
    import tt

    cuda = tt.cuda
    EMULATED = cuda.is_available() and cuda.get_device_name() == "fake"
    DEVICE_OF_PEER = "cpu"
    if torch is not None:
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cuda.matmul.allow_tf32 = False
        if torch.cuda.is_available():
            DEVICE_OF_PEER = "cuda"
    SIZE = 32 if EMULATED else 1024
    GPT_SIZES = (17, 16, 2, 1, 8) if EMULATED else (65, 256, 8, 4, 128)
    work(sys.argv[2:])
    os._exit(0)
