"""tt.profiler: events, sums, schedules and traces, by the names of torch.profiler."""
import gzip
import json
import threading

import pytest

import tt
from tt import nn
from tt.profiler import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    tensorboard_trace_handler,
)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 3), nn.Linear(3, 2)

    def forward(self, x):
        return self.second(self.first(x).relu())


def step(model, optimizer, x):
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()


def everything(**options):
    return profile(
        record_shapes=True, profile_memory=True, with_flops=True, with_modules=True, **options
    )


def trained(p, steps=2):
    model = Net()
    optimizer = tt.optim.Adam(model.parameters())
    x = tt.ones(5, 4)
    with p:
        for _ in range(steps):
            with record_function("step"):
                step(model, optimizer, x)
    return p


def inside(inner, outer):
    begin, end = outer["ts"], outer["ts"] + outer["dur"]
    return begin - 1e-3 <= inner["ts"] and inner["ts"] + inner["dur"] <= end + 1e-3


def read(path):
    opened = gzip.open(path, "rt") if str(path).endswith(".gz") else open(path)
    with opened as file:
        return json.load(file)["traceEvents"]


def test_chrome_trace(tmp_path):
    p = trained(everything())
    p.export_chrome_trace(tmp_path / "trace.json")
    events = read(tmp_path / "trace.json")
    by_id = {e["args"]["Ev Idx"]: e for e in events if e["ph"] == "X"}
    for e in by_id.values():
        parent = e["args"].get("parent")
        assert parent is None or inside(e, by_id[parent])

    def named(category, name):
        return [e for e in by_id.values() if (e["cat"], e["name"]) == (category, name)]

    assert len(named("user_annotation", "step")) == 2
    assert len(named("module", "Net_0")) == len(named("module", "Linear_1")) == 2
    assert len(named("optimizer", "Adam")) == 2
    assert len(named("autograd_node", "relu")) == 2
    assert len(named("cpu_op", "relu")) == 2 and named("kernel", "matmul")
    linear = named("module", "Linear_0")[0]
    assert by_id[linear["args"]["parent"]]["name"] == "Net_0"
    assert linear["args"]["flops"] == 2 * 5 * 4 * 3
    assert named("cpu_op", "linear")[0]["args"]["Input Dims"] == [[5, 4], [3, 4], [3]]
    memory = [e for e in events if e.get("name") == "[memory]"]
    assert memory and memory[-1]["args"]["Total Allocated"] == sum(
        e["args"]["Bytes"] for e in memory
    )
    p.export_chrome_trace(str(tmp_path / "trace.json.gz"))
    assert read(tmp_path / "trace.json.gz") == events
    assert sorted(f.name for f in tmp_path.iterdir()) == ["trace.json", "trace.json.gz"]
    with pytest.raises(OSError):
        p.export_chrome_trace(tmp_path / "no" / "folder.json")


def test_events_and_rows():
    p = trained(everything())
    events = p.events()
    net = [e for e in events if e.name == "nn.Module: Net_0"]
    assert len(net) == 2 and net[0].cpu_parent.name == "step"
    assert [e.name for e in net[0].cpu_children if e.name.startswith("nn.")] == [
        "nn.Module: Linear_0",
        "nn.Module: Linear_1",
    ]
    assert net[0].flops == 2 * 5 * (4 * 3 + 3 * 2)
    rows = {r.key: r for r in p.key_averages()}
    assert rows["nn.Module: Net_0"].flops == 2 * net[0].flops
    assert rows["aten::relu"].count == 2 and rows["Optimizer.step#Adam.step"].count == 2
    shaped = p.key_averages(group_by_input_shape=True)
    assert [r.input_shapes for r in shaped if r.key == "aten::addmm"] == [
        [[5, 4], [3, 4], [3]],
        [[5, 3], [2, 3], [2]],
    ]
    table = p.key_averages().table(sort_by="self_cpu_time_total", row_limit=3)
    for title in ("Self CPU %", "CPU time avg", "CPU Mem", "Total FLOPs", "# of Calls"):
        assert title in table
    assert len(table.splitlines()) == 8
    for key in ("self_cpu_memory_usage", "self_cuda_time_total", "cuda_memory_usage"):
        assert len(p.key_averages().table(sort_by=key, row_limit=3).splitlines()) == 8
    assert rows["aten::relu"].self_cpu_memory_usage == rows["aten::relu"].cpu_memory_usage > 0
    assert rows["nn.Module: Net_0"].self_cpu_memory_usage == 0
    from_events = {r.key: r for r in events.key_averages()}
    assert {key: r.count for key, r in from_events.items()} == {
        key: r.count for key, r in rows.items()
    }


def test_stacks_and_the_timeline_of_memory(tmp_path):
    p = trained(everything())
    p.export_stacks(tmp_path / "stacks", "self_cpu_time_total")
    stacks = dict(line.rsplit(" ", 1) for line in (tmp_path / "stacks").read_text().splitlines())
    assert all(int(us) > 0 for us in stacks.values())
    assert any(stack.startswith("step;nn.Module: Net_0;") for stack in stacks)
    p.export_memory_timeline(tmp_path / "memory.json")
    times, alive = json.loads((tmp_path / "memory.json").read_text())
    assert len(times) == len(alive) > 10 and times == sorted(times) and max(alive) > 0
    with profile() as without:
        tt.ones(2)
    with pytest.raises(ValueError, match="profile_memory is False"):
        without.export_memory_timeline(tmp_path / "memory.json")


def test_operations_are_counted(capsys):
    net = tt.nn.Sequential(tt.nn.Conv2d(3, 4, 3), tt.nn.Flatten(), tt.nn.Linear(144, 5))
    with tt.utils.flop_counter.FlopCounterMode(display=False) as counter:
        net(tt.ones(2, 3, 8, 8)).sum().backward()
    counts = counter.get_flop_counts()
    assert counts["Global"] == {  # PyTorch's
        "convolution": 15552,
        "addmm": 2880,
        "mm": 5760,
        "convolution_backward": 15552,
    }
    assert counter.get_total_flops() == 39744
    assert counts["Sequential_0"] == {"convolution": 15552, "addmm": 2880}
    assert counts["Linear_0"] == {"addmm": 2880}
    assert "Linear_0" in counter.get_table() and "Linear_0" not in counter.get_table(depth=1)
    with tt.utils.flop_counter.FlopCounterMode():
        q = tt.ones(1, 2, 4, 8, requires_grad=True)
        tt.nn.functional.scaled_dot_product_attention(q, q, q).sum().backward()
    assert "aten._scaled_dot_product_flash_attention_for_cpu" in capsys.readouterr().out


def test_schedule():
    actions = [schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)(i) for i in range(11)]
    none, warmup, record, save, _ = ProfilerAction
    assert actions == [none, *[none, warmup, record, save] * 2, none, none]
    saved = []

    def ready(p):
        names = [e.name for e in p.events() if e.name.startswith("ProfilerStep")]
        relus = sum(e.name == "aten::relu" and e.kind == 1 for e in p.events())
        saved.append((p.step_num, names, relus))

    x = tt.ones(2)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=0, active=2, repeat=2),
        on_trace_ready=ready,
    ) as p:
        for _ in range(8):
            x.relu()
            p.step()
    assert saved == [
        (3, ["ProfilerStep#1", "ProfilerStep#2"], 2),
        (6, ["ProfilerStep#4", "ProfilerStep#5"], 2),
    ]


def test_tensorboard_handler(tmp_path):
    with profile(on_trace_ready=tensorboard_trace_handler(str(tmp_path / "log"), "me", True)):
        tt.ones(2).relu()
    (path,) = (tmp_path / "log").iterdir()
    assert path.name.startswith("me.") and path.name.endswith(".pt.trace.json.gz")
    assert any(e["name"] == "relu" for e in read(path))


def test_consecutive_profiles(tmp_path):
    with profile() as first:
        tt.ones(2).relu()
    with pytest.raises(RuntimeError):
        with first, profile():
            pass
    with profile() as first:
        tt.ones(2).relu()
    with profile() as second:
        tt.ones(2).tanh()
    assert [e.name for e in first.events() if e.kind == 1] == ["aten::ones", "aten::relu"]
    assert "aten::relu" in [r.key for r in first.key_averages()]
    with pytest.raises(RuntimeError, match="another profile"):
        first.export_chrome_trace(tmp_path / "trace.json")
    second.export_chrome_trace(tmp_path / "trace.json")
    with pytest.raises(RuntimeError):
        profile().events()


def test_full_ring():
    with profile(capacity=10) as p:
        for _ in range(50):
            tt.ones(2)
    assert len(p.events()) == 10 and p.dropped() == 90
    assert {r.key: r.count for r in p.key_averages()} == {"aten::ones": 50}


def test_threads():
    found = {}

    def run(n):
        with everything() as p:
            for _ in range(n):
                tt.ones(2).relu()
        found[n] = sum(e.name == "aten::relu" and e.kind == 1 for e in p.events())

    threads = [threading.Thread(target=run, args=(n,)) for n in (3, 5, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {3: 3, 5: 5, 7: 7}
    assert nn.Module.__call__.__qualname__ == "Module.__call__"


def test_record_function():
    @record_function("decorated")
    def work(x):
        with record_function("inner"):
            return x.relu()

    work(tt.ones(1))  # without a profile
    with tt.autograd.profiler.profile(use_kineto=True) as p:
        work(tt.ones(1))
        with pytest.raises(ZeroDivisionError), record_function("failed"):
            1 / 0
    rows = {r.key: r.count for r in p.key_averages()}
    assert rows["decorated"] == rows["inner"] == rows["failed"] == 1
    with tt.autograd.profiler.profile(enabled=False):
        work(tt.ones(1))


def test_names_and_metadata_are_pytorchs(tmp_path):
    layer, x = tt.nn.Linear(2, 2), tt.ones(3, 2)
    with profile() as p:
        (layer(x) * 2).sum(0).log1p().sum().backward()
    names = {row.key for row in p.key_averages()}
    assert {"aten::addmm", "aten::mul", "aten::sum", "aten::log1p"} <= names
    assert "autograd::engine::evaluate_function: Log1PBackward0" in names
    assert len(names) == len(p.key_averages())
    event = next(e for e in p.events() if e.key == "aten::addmm")
    assert event.device_type.name == "CPU" and not event.is_async and event.operator
    p.add_metadata("model", "tiny")
    p.add_metadata_json("sizes", "[2, 2]")
    for name in ("trace.json", "trace.json.gz"):
        p.export_chrome_trace(tmp_path / name)
        opened = gzip.open if name.endswith(".gz") else open
        with opened(tmp_path / name, "rt") as source:
            trace = json.load(source)
        assert (trace["model"], trace["sizes"]) == ("tiny", [2, 2]) and trace["traceEvents"]


def test_steps_have_one_row():
    with tt.profiler.profile(schedule=schedule(wait=0, warmup=0, active=3, repeat=1)) as p:
        for _ in range(3):
            tt.ones(3) + 1
            p.step()
    assert {row.key: row.count for row in p.key_averages()}["ProfilerStep*"] == 3
    assert [e.name for e in p.events() if e.name.startswith("ProfilerStep")][0] == "ProfilerStep#0"


def test_arguments_and_older_names():
    with tt.autograd.profiler.profile(record_shapes=True) as p:
        tt.ones(3) + 1
    rows = p.key_averages(group_by_overload_name=True, include_python_functions=True)
    assert any("aten::add" == e.name for e in p.function_events) and "Self CPU" in str(p)
    assert "ms" in rows.table(time_unit="ms") and "us " not in rows.table(time_unit="ms")
    with pytest.raises(ValueError, match="time_unit"):
        rows.table(time_unit="minutes")
    assert str(tt.autograd.profiler.profile(enabled=False)) == "None"
    assert tt.profiler.ProfilerAction.DEVICE_STOPPED.value == 4
