"""tt.utils.data: datasets, samplers and collating as PyTorch's; workers that fail, die or are
abandoned; epochs that continue where they were saved."""
import collections
import gc
import multiprocessing
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
from tt.utils import data
from tt.utils.data import DataLoader, TensorDataset

BINDING = Path(tt.__file__).parents[1]
WORKERS = [{}, {"num_workers": 2}, {"num_workers": 3, "worker": "thread"}]
NAMES = ["none", "processes", "threads"]
every_kind = pytest.mark.parametrize("how", WORKERS, ids=NAMES)
both_kinds = pytest.mark.parametrize("how", WORKERS[1:], ids=NAMES[1:])


class Squares(data.Dataset):
    """Sample i is i * i. Those at `bad` call act."""

    def __init__(self, n, bad=(), act=None):
        self.n, self.bad, self.act = n, bad, act

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return self.act(i) if i in self.bad else i * i


class Stream(data.IterableDataset):
    """0 … n - 1, shared out among the workers."""

    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __iter__(self):
        info = data.get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        return iter(range(first, self.n, step))


def rows(n=10):
    return TensorDataset(tt.arange(n), tt.arange(n).float() * 0.5)


def lists(loader):
    """The batches of the first column as lists."""
    return [(b[0] if isinstance(b, (list, tuple)) else b).tolist() for b in loader]


def children_end(within=60):
    """Whether no child process is left soon."""
    gc.collect()  # exceptions of other tests keep iterators
    until = time.monotonic() + within
    while multiprocessing.active_children() and time.monotonic() < until:
        time.sleep(0.01)
    return not multiprocessing.active_children()


# ---- datasets ----


def test_datasets_give_samples_by_index():
    a, b = rows(3), Squares(4)
    assert [t.item() for t in a[-1]] == [2, 1.0] and len(a) == 3
    joined = a + b
    assert len(joined) == 7 and joined[3] == 0 and joined[-1] == 9
    assert joined.cumulative_sizes == [3, 7]
    assert joined[0][0].item() == 0
    with pytest.raises(ValueError):
        joined[-8]
    with pytest.raises(IndexError):
        joined[7]
    pairs = data.StackDataset(Squares(3), Squares(3))
    assert pairs[2] == (4, 4) and pairs.__getitems__([0, 2]) == [(0, 0), (4, 4)]
    assert data.StackDataset(x=Squares(3), y=Squares(3))[1] == {"x": 1, "y": 1}
    part = data.Subset(b, [3, 1])
    assert [part[0], part[1]] == [9, 1] and part.__getitems__([1, 0]) == [1, 9] and len(part) == 2
    chain = Stream(2) + Stream(3)
    assert list(chain) == [0, 1, 0, 1, 2] and len(chain) == 5


@pytest.mark.parametrize(
    "make",
    [
        lambda: TensorDataset(tt.ones(2), tt.ones(3)),
        lambda: data.ConcatDataset([]),
        lambda: data.ConcatDataset([Stream(1)]),
        lambda: list(data.ChainDataset([Squares(1)])),
        lambda: data.StackDataset(),
        lambda: data.StackDataset(Squares(1), x=Squares(1)),
        lambda: data.StackDataset(Squares(1), Squares(2)),
    ],
)
def test_datasets_refuse_wrong_arguments(make):
    with pytest.raises((AssertionError, ValueError)):
        make()


def test_random_split_distributes_all_samples():
    parts = data.random_split(Squares(10), [7, 3], generator=tt.Generator(1))
    assert [len(p) for p in parts] == [7, 3]
    assert sorted(parts[0].indices + parts[1].indices) == list(range(10))
    again = data.random_split(Squares(10), [7, 3], generator=tt.Generator(1))
    assert again[0].indices == parts[0].indices
    assert [len(p) for p in data.random_split(Squares(10), [0.5, 0.25, 0.25])] == [6, 2, 2]
    with pytest.raises(ValueError, match="sum of lengths is 9"):
        data.random_split(Squares(10), [4, 5])
    with pytest.warns(UserWarning, match="empty"):
        data.random_split(Squares(1), [0.5, 0.5])


# ---- samplers ----


def test_samplers():
    ten = range(10)
    assert list(data.SequentialSampler(ten)) == list(ten)
    assert sorted(data.RandomSampler(ten)) == list(ten)
    long = list(data.RandomSampler(ten, num_samples=25))
    assert sorted(long[:10]) == sorted(long[10:20]) == list(ten) and len(set(long[20:])) == 5
    drawn = list(data.RandomSampler(ten, replacement=True, num_samples=100))
    assert len(drawn) == 100 and set(drawn) <= set(ten)
    assert sorted(data.SubsetRandomSampler([4, 7, 9])) == [4, 7, 9]
    weighted = list(data.WeightedRandomSampler([0, 1.0, 3.0], 4000, generator=tt.Generator(0)))
    assert 0 not in weighted and abs(weighted.count(2) / 4000 - 0.75) < 0.03
    assert sorted(data.WeightedRandomSampler([1, 1, 1], 3, replacement=False)) == [0, 1, 2]
    assert list(data.BatchSampler(range(5), 2, False)) == [[0, 1], [2, 3], [4]]
    assert list(data.BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
    assert len(data.BatchSampler(range(5), 2, False)) == 3
    for bad in (0, -1, True, 1.5):
        with pytest.raises(ValueError):
            data.BatchSampler(ten, bad, False)
        with pytest.raises(ValueError):
            data.RandomSampler(ten, num_samples=bad)


def test_a_generator_decides_the_order():
    orders = [list(data.RandomSampler(range(20), generator=tt.Generator(s))) for s in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    tt.manual_seed(5)
    first = list(data.RandomSampler(range(20)))
    second = list(data.RandomSampler(range(20)))
    tt.manual_seed(5)
    assert list(data.RandomSampler(range(20))) == first != second


@pytest.mark.parametrize("n, drop_last, sizes", [(10, False, 4), (10, True, 3), (1, False, 1)])
def test_distributed_samplers_share_an_order(n, drop_last, sizes):
    made = [data.DistributedSampler(range(n), 3, r, seed=4, drop_last=drop_last) for r in range(3)]
    parts = [list(s) for s in made]
    assert [len(p) for p in parts] == [len(s) for s in made] == [sizes] * 3
    together = [p[i] for i in range(sizes) for p in parts]
    assert len(set(together)) == min(n, 3 * sizes)
    assert together == (together[:n] * 3)[: 3 * sizes]  # the first ones again at the end
    for s in made:
        s.set_epoch(1)
    assert n == 1 or [list(s) for s in made] != parts
    assert list(data.DistributedSampler(range(4), shuffle=False)) == [0, 1, 2, 3]
    with pytest.raises(ValueError):
        data.DistributedSampler(range(4), 2, 2)


# ---- collating ----


def test_collate_stacks_what_samples_hold():
    Point = collections.namedtuple("Point", "x y")
    samples = [
        {
            "t": tt.ones(2) * i,
            "n": i,
            "f": i / 2,
            "b": i > 0,
            "s": "ab"[i],
            "p": Point(i, (i, b"c")),
        }
        for i in range(2)
    ]
    batch = data.default_collate(samples)
    assert batch["t"].tolist() == [[0, 0], [1, 1]] and batch["n"].dtype is tt.int64
    assert batch["f"].dtype is tt.float64 and batch["b"].dtype is tt.bool
    assert batch["s"] == ["a", "b"] and type(batch["p"]) is Point
    assert batch["p"].y[0].tolist() == [0, 1] and batch["p"].y[1] == (b"c", b"c")
    ordered = collections.OrderedDict(a=1)
    assert type(data.default_collate([ordered, ordered])) is collections.OrderedDict
    assert [t.tolist() for t in data.default_collate([[1, 2], [3, 4]])] == [[1, 3], [2, 4]]
    with pytest.raises(RuntimeError, match="equal"):
        data.default_collate([[1], [1, 2]])
    with pytest.raises(TypeError, match="object"):
        data.default_collate([object()])


def test_collate_and_convert_take_numpy():
    numpy = pytest.importorskip("numpy")
    assert data.default_collate([numpy.ones(3), numpy.zeros(3)]).shape == (2, 3)
    assert data.default_collate([numpy.float32(1), numpy.float32(2)]).dtype is tt.float32
    with pytest.raises(TypeError):
        data.default_collate([numpy.array(["a"])])
    found = data.default_convert({"a": (numpy.arange(2), "s"), "b": [1.5]})
    assert found["a"][0].tolist() == [0, 1] and found["a"][1] == "s" and found["b"] == [1.5]


# ---- the loader ----


@every_kind
def test_batches_come_in_order(how):
    assert lists(DataLoader(rows(), 4, **how)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert lists(DataLoader(rows(), 4, drop_last=True, **how)) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert lists(DataLoader(rows(), batch_sampler=[[3, 1], [2]], **how)) == [[3, 1], [2]]
    assert lists(DataLoader(rows(), 2, sampler=[5, 5, 1], **how)) == [[5, 5], [1]]
    assert list(DataLoader(Squares(3), None, **how)) == [0, 1, 4]
    assert lists(DataLoader(data.Subset(rows(), [7, 3, 5]), 2, **how)) == [[7, 3], [5]]
    assert list(DataLoader(Squares(4), 2, collate_fn=sum, **how)) == [1, 13]
    tt.manual_seed(3)
    expected = lists(DataLoader(rows(), 4, shuffle=True))
    tt.manual_seed(3)
    assert lists(DataLoader(rows(), 4, shuffle=True, **how)) == expected
    loader = DataLoader(rows(), 4, shuffle=True, generator=tt.Generator(1), **how)
    assert len(loader) == 3 and lists(loader) != lists(loader)


@every_kind
def test_rows_of_a_tensor_dataset_are_collated_as_samples(how):
    source = TensorDataset(tt.randn(7, 2, 3), tt.arange(7))
    fast = list(DataLoader(source, 3, **how))
    slow = list(DataLoader(source, 3, collate_fn=lambda b: data.default_collate(b)))
    assert all(type(f) is type(s) is list for f, s in zip(fast, slow))
    assert all(tt.equal(x, y) for f, s in zip(fast, slow) for x, y in zip(f, s))


@every_kind
def test_streams_are_divided_among_workers(how):
    loader = DataLoader(Stream(7), 2, **how)
    assert sorted(sum(lists(loader), [])) == list(range(7)) and len(loader) == 4
    assert list(DataLoader(Stream(3), None, **how)) == [0, 1, 2]
    alone = {"num_workers": min(how.get("num_workers", 0), 1)}
    assert lists(DataLoader(Stream(5), 2, drop_last=True, **{**how, **alone})) == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    "options",
    [
        {"num_workers": -1},
        {"timeout": -1},
        {"prefetch_factor": 2},
        {"persistent_workers": True},
        {"shuffle": True, "sampler": [0]},
        {"batch_sampler": [[0]], "batch_size": 2},
        {"batch_size": None, "drop_last": True},
        {"batch_size": 0},
        {"worker": "fibre"},
        {"multiprocessing_context": "spawn"},
        {"num_workers": 1, "multiprocessing_context": "spoon"},
        {"num_workers": 1, "prefetch_factor": 0},
    ],
    ids=str,
)
def test_the_loader_refuses_arguments_that_contradict_each_other(options):
    with pytest.raises(ValueError):
        DataLoader(Squares(3), **options)


def test_the_loader_refuses_orders_of_streams_and_changes():
    for options in ({"shuffle": True}, {"sampler": [0]}, {"batch_sampler": [[0]]}):
        with pytest.raises(ValueError, match="IterableDataset"):
            DataLoader(Stream(3), **options)
    loader = DataLoader(Squares(3), pin_memory=True)
    with pytest.raises(ValueError, match="batch_size cannot be changed"):
        loader.batch_size = 2


# ---- workers ----


def raise_key_error(i):
    raise KeyError(f"sample {i}")


class NeedsTwo(Exception):
    def __init__(self, one, two):
        super().__init__(one, two)


def raise_odd(i):
    raise NeedsTwo(1, 2)


def end_early(i):
    raise StopIteration


@both_kinds
@pytest.mark.parametrize(
    "act, kind", [(raise_key_error, KeyError), (raise_odd, RuntimeError), (end_early, RuntimeError)]
)
def test_errors_come_with_the_workers_traceback(how, act, kind):
    loader = DataLoader(Squares(6, [2], act), 2, **how)
    found = iter(loader)
    assert next(found).tolist() == [0, 1]
    with pytest.raises(kind) as raised:
        next(found)
    text = str(raised.value)
    assert "in DataLoader worker" in text and act.__name__ in text and "Traceback" in text
    assert next(found).tolist() == [16, 25]  # the others are not lost


def test_a_sample_that_raises_stop_iteration_does_not_end_the_epoch():
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(DataLoader(Squares(3, [1], end_early)))


def test_unpicklable_objects_are_errors():
    with pytest.raises(Exception, match="(?s)DataLoader worker process.*pickle"):
        list(DataLoader(Squares(2), 1, collate_fn=lambda b: threading.Lock(), num_workers=1))


@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_worker_is_an_error(kind):
    loader = DataLoader(Squares(9, [4], lambda i: os.kill(os.getpid(), kind)), num_workers=2)
    found = iter(loader)
    received = []
    with pytest.raises(RuntimeError, match=f"worker 0 .*killed by signal {int(kind)}"):
        received.extend(found)
    assert list(found) == [] and children_end()
    assert loader.state_dict()["batches"] == len(received) <= 4


def test_a_worker_that_exits_is_an_error():
    with pytest.raises(RuntimeError, match="exit code 3"):
        list(DataLoader(Squares(3, [1], lambda i: os._exit(3)), num_workers=1))
    assert children_end()


def fail(worker):
    raise ValueError(f"no worker {worker}")


@both_kinds
def test_worker_init_fn_is_called_and_may_fail(how):
    def note():
        seen = threading.local()
        return lambda worker: setattr(seen, "id", worker), lambda batch: seen.id

    init, ids = note()
    found = list(DataLoader(Squares(6), 1, worker_init_fn=init, collate_fn=ids, **how))
    n = how["num_workers"]
    assert found == [i % n for i in range(6)]
    with pytest.raises(ValueError, match="no worker 0"):
        list(DataLoader(Squares(6), worker_init_fn=fail, **how))


@both_kinds
def test_each_worker_has_its_own_seed(how):
    def seeds(batch):
        info = data.get_worker_info()
        return info.id, info.seed, tt.initial_seed(), info.num_workers

    tt.manual_seed(2)
    first = list(DataLoader(Squares(4), 1, collate_fn=seeds, **how))
    base, n = first[0][1], how["num_workers"]
    assert first == [(i % n, base + i % n, base + i % n, n) for i in range(4)]
    loader = DataLoader(Squares(4), 1, collate_fn=seeds, generator=tt.Generator(9), **how)
    assert [list(loader), list(loader)] != [first, first]
    tt.manual_seed(2)
    assert list(DataLoader(Squares(4), 1, collate_fn=seeds, **how)) == first
    assert data.get_worker_info() is None


def test_processes_seed_python_and_numpy():
    def draw(batch):
        numpy = sys.modules.get("numpy")
        return random.random(), numpy and numpy.random.random()

    tt.manual_seed(2)
    first = list(DataLoader(Squares(4), 1, collate_fn=draw, num_workers=2))
    assert len(set(first)) == 4
    tt.manual_seed(2)
    assert list(DataLoader(Squares(4), 1, collate_fn=draw, num_workers=2)) == first


def test_batches_own_their_memory():
    def fancy(batch):
        t = tt.tensor(batch, dtype=tt.float32, requires_grad=True)
        return {
            "t": t,
            "same": [t.detach(), "x"],
            "empty": tt.ones(0, 2),
            "half": t.detach().half(),
        }

    batches = list(DataLoader(Squares(400), 1, collate_fn=fancy, num_workers=2))
    assert len(os.listdir("/proc/self/fd")) < 200  # a batch holds no descriptor
    gc.collect()
    assert [b["t"].item() for b in batches] == [float(i * i) for i in range(400)]
    batch = batches[3]
    assert batch["t"].requires_grad and batch["empty"].shape == (0, 2)
    assert batch["half"].dtype is tt.float16 and batch["same"][1] == "x"
    batch["same"][0].add_(1)
    assert batch["same"][0].item() == 10


@both_kinds
def test_leaving_an_epoch_leaves_no_worker(how):
    threads = threading.active_count()
    for _ in DataLoader(Squares(100), 1, **how):
        break
    gc.collect()
    assert children_end() and threading.active_count() == threads
    stopped = iter(DataLoader(Squares(100), 1, **how))
    next(stopped)
    del stopped
    assert children_end() and threading.active_count() == threads


@both_kinds
def test_a_batch_that_takes_too_long_is_an_error(how):
    given_up = multiprocessing.Event()

    def wait(i):
        assert given_up.wait(60)
        return i

    batches = iter(DataLoader(Squares(2, [0], wait), timeout=0.1, **how))
    with pytest.raises(RuntimeError, match="timed out after 0.1 seconds"):
        next(batches)
    given_up.set()


@both_kinds
def test_persistent_workers_serve_all_epochs(how):
    def who(batch):
        return os.getpid(), threading.get_ident()

    loader = DataLoader(Squares(6), 1, collate_fn=who, persistent_workers=True, **how)
    first = list(loader)
    for _ in loader:  # leave in the middle: pending batches do not reach the next epoch
        break
    assert list(loader) == first and len(set(first)) == how["num_workers"]
    stream = DataLoader(Stream(5), 1, persistent_workers=True, **how)
    assert lists(stream) == lists(stream)
    del loader, stream
    gc.collect()
    assert children_end()


@both_kinds
def test_batches_may_come_as_they_are_ready(how):
    another_came = multiprocessing.Event()

    def slow(i):
        assert another_came.wait(60)
        return i

    found = []
    for batch in DataLoader(Squares(6, [0], slow), 1, in_order=False, **how):
        found.append(batch.tolist())
        another_came.set()
    assert sorted(found) == [[i * i] for i in range(6)] and found[0] != [0]


def test_spawned_workers():
    loader = DataLoader(Squares(3), 2, num_workers=1, multiprocessing_context="spawn")
    assert lists(loader) == [[0, 1], [4]]


INTERRUPTED = """
import os, sys, time
from tt.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 100
    def __getitem__(self, i):
        time.sleep(0.05)
        return os.getpid()

for batch in DataLoader(Slow(), 1, num_workers=2):
    print(int(batch), flush=True)
"""


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGKILL])
def test_no_worker_outlives_a_program_that_is_stopped(kind):
    env = {**os.environ, "PYTHONPATH": str(BINDING)}
    program = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    workers = [int(program.stdout.readline()) for _ in range(2)]
    os.killpg(program.pid, kind) if kind == signal.SIGINT else program.kill()
    _, text = program.communicate(timeout=120)
    assert program.returncode != 0
    if kind == signal.SIGINT:
        assert text.count("KeyboardInterrupt") == 1
    until = time.monotonic() + 60
    while any(map(alive, workers)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any(map(alive, workers))


# ---- continuing in the middle of an epoch ----


def loaders(how):
    """Loaders of random order whose generators begin anew."""
    source = rows(9)
    drawn = data.RandomSampler(range(9), True, 40, generator=tt.Generator(5))
    return [
        DataLoader(source, 2, shuffle=True, **how),
        DataLoader(source, 2, shuffle=True, generator=tt.Generator(4), **how),
        DataLoader(source, 2, sampler=drawn, **how),
        DataLoader(source, 2, sampler=data.SubsetRandomSampler(range(9)), **how),
        DataLoader(source, 2, sampler=data.DistributedSampler(source, 2, 1), **how),
        DataLoader(Stream(9), 2, **how),
    ]


@pytest.mark.parametrize("which", range(6))
@pytest.mark.parametrize(
    "how, returned",
    [(WORKERS[0], 0), (WORKERS[0], 1), (WORKERS[0], 5), (WORKERS[1], 3), (WORKERS[2], 3)],
)
def test_an_epoch_continues_where_it_was_saved(how, which, returned, tmp_path):
    tt.manual_seed(11)
    loader = loaders(how)[which]
    if which == 4:
        loader.sampler.set_epoch(7)
    lists(loader)  # an epoch before
    found = iter(loader)
    for _ in range(min(returned, len(loader))):
        next(found)
    loader_state = loader.state_dict()
    tt.save({"loader": loader_state}, str(tmp_path / "state.pt"))
    rng = tt.get_rng_state()
    rest, following = lists(found), lists(loader)

    tt.manual_seed(99)
    other = loaders(how)[which]
    other.load_state_dict(tt.load(str(tmp_path / "state.pt"))["loader"])
    assert str(other.state_dict()) == str(loader_state)
    tt.set_rng_state(rng)
    assert lists(other) == rest
    assert lists(other) == following
    if which == 4:
        assert other.sampler.epoch == 7


def test_the_state_survives_a_break():
    loader = DataLoader(rows(), 2, shuffle=True)
    for _ in loader:
        break
    state = loader.state_dict()
    assert state["batches"] == 1 and str(loader.state_dict()) == str(state)
    loader.load_state_dict(state)
    assert len(lists(loader)) == 4 and len(lists(loader)) == 5


def test_a_state_between_epochs_begins_the_next_one():
    loader, other = (DataLoader(rows(), 3, shuffle=True, generator=tt.Generator(3)) for _ in "ab")
    lists(loader)
    state = loader.state_dict()
    expected = lists(loader)
    other.load_state_dict(state)
    assert state["batches"] == 0 and lists(other) == expected
    with pytest.raises(ValueError, match="version"):
        other.load_state_dict({})
    with pytest.raises(ValueError, match="generators"):
        DataLoader(rows()).load_state_dict(state)


# ---- the native loader ----


@every_kind
def test_a_tensor_dataset_is_loaded_by_c(how):
    source = TensorDataset(tt.arange(103).float().reshape(103, 1), tt.arange(103))
    loader = DataLoader(source, 10, shuffle=True, generator=tt.Generator(5), **how)
    found = iter(loader)
    assert type(found).__name__ == "NativeIterator" and len(found) == 11
    batches = list(found)
    assert [len(y) for _, y in batches] == [10] * 10 + [3]
    assert all(x.shape == (len(y), 1) and tt.equal(x[:, 0].long(), y) for x, y in batches)
    assert sorted(tt.cat([y for _, y in batches]).tolist()) == list(range(103))
    assert next(found, None) is None and next(found, None) is None
    expected = DataLoader(
        source, 10, shuffle=True, generator=tt.Generator(5), collate_fn=own_collate
    )
    assert lists_of_labels(batches) == lists_of_labels(expected)
    first = iter(loader)
    part = [next(first) for _ in range(4)]
    state = loader.state_dict()
    rest = lists_of_labels(first)
    again = DataLoader(source, 10, shuffle=True, generator=tt.Generator(5), **how)
    again.load_state_dict(state)
    assert lists_of_labels(again) == rest and len(part) + len(rest) == 11
    empty = TensorDataset(tt.ones(0, 2))
    assert list(DataLoader(empty, 3, **how)) == []
    assert len(list(DataLoader(source, 200, drop_last=True, **how))) == 0


def own_collate(samples):
    return data.default_collate(samples)


def lists_of_labels(batches):
    return [y.tolist() for _, y in batches]


def test_other_datasets_are_loaded_in_python():
    source = TensorDataset(tt.arange(4))
    for options in (
        {"collate_fn": own_collate},
        {"sampler": data.RandomSampler(source, replacement=True)},
        {"sampler": [1, 0]},
        {"batch_size": None},
    ):
        assert type(iter(DataLoader(source, **options))).__name__ == "SingleIterator"
    leaf = TensorDataset(tt.ones(4, requires_grad=True))
    (batch,) = next(iter(DataLoader(leaf, 2)))
    assert batch.requires_grad


class Restarting:
    """A batch sampler that is its own iterator, and starts again whenever iter() is called."""

    def __iter__(self):
        self.left = [[0, 1], [2, 3], [4]]
        return self

    def __next__(self):
        if not self.left:
            raise StopIteration
        return self.left.pop(0)

    def __len__(self):
        return 3


@every_kind
def test_a_sampler_is_started_once_per_epoch(how):
    loader = DataLoader(Squares(5), batch_sampler=Restarting(), **how)
    for _ in range(2):
        assert [b.tolist() for b in loader] == [[0, 1], [4, 9], [16]]


def test_loaders_with_an_iteration_of_their_own():
    class Endless(DataLoader):
        def __iter__(self):
            self.iterator = getattr(self, "iterator", None) or self._get_iterator()
            return iter([next(self.iterator)])

    loader = Endless(TensorDataset(tt.arange(4)), batch_size=2)
    assert [next(iter(loader))[0].tolist() for _ in range(2)] == [[0, 1], [2, 3]]


def test_a_loader_whose_dataset_makes_whole_batches():
    class Table:
        rows = tt.arange(10).reshape(5, 2)

        def __len__(self):
            return 5

        def __getitem__(self, indices):
            return self.rows[indices]

    class Loader(DataLoader):
        @property
        def _auto_collation(self):
            return not hasattr(self, "ready")

        @property
        def _index_sampler(self):
            return self.batch_sampler

    for workers in (0, 1):
        loader = Loader(Table(), batch_size=2, collate_fn=lambda batch: batch, num_workers=workers)
        assert loader._auto_collation and len(loader) == 3
        loader.ready = True
        assert [batch.tolist() for batch in loader] == [
            [[0, 1], [2, 3]],
            [[4, 5], [6, 7]],
            [[8, 9]],
        ]
