"""Measures the time of operators, with the API of torch.profiler.

A profile records the calls of the thread that starts it. Times are in microseconds.
"""
from __future__ import annotations

import functools
import gzip
import itertools
import json
import os
import re
import shutil
import socket
import threading
import time
from contextlib import nullcontext
from ctypes import c_int64
from enum import Enum, IntEnum
from operator import attrgetter
from typing import Any, Callable, Iterable, NamedTuple

from ._handles import (
    profiler_begin,
    profiler_chrome_trace,
    profiler_dropped,
    profiler_end,
    profiler_rows,
    profiler_start,
    profiler_start_ex,
    profiler_stop,
)
from ._hints import Self
from ._lib import filled, local
from ._structs import struct
from .autograd._nodes import pytorchs_name

__all__ = [
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]

# kinds of events, as in tt.h
OP, KERNEL, MODULE, NODE, MEMORY, OPTIMIZER, REGION, COMMUNICATION = range(1, 9)
NAMES = {  # kind -> the name of its events in PyTorch
    MODULE: "nn.Module: {}",
    NODE: "autograd::engine::evaluate_function: {}",
    OPTIMIZER: "Optimizer.step#{}.step",
}
LOST = "is gone: the thread has started another profile since"


class ProfilerActivity(Enum):
    """The kinds of recorded activity. Kernels of every device are always recorded."""

    CPU, XPU, MTIA, CUDA, HPU, PrivateUse1 = range(6)


class DeviceType(IntEnum):
    """The type of device on which an event ran."""

    CPU, CUDA = range(2)


class ProfilerAction(Enum):
    """The action of a schedule for a step. WARMUP is equivalent to NONE."""

    NONE, WARMUP, RECORD, RECORD_AND_SAVE, DEVICE_STOPPED = range(5)


def supported_activities() -> set[ProfilerActivity]:
    """Returns the activities that can be recorded."""
    return {ProfilerActivity.CPU}


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """Returns a function of the step that gives its action. After skip_first steps, cycles of wait,
    warmup and active steps are repeated `repeat` times, or without end if that is 0.
    skip_first_wait: unless 0, the first cycle has no wait."""
    if min(wait, warmup, repeat, skip_first) < 0 or active < 1:
        raise ValueError(
            f"schedule: wait {wait}, warmup {warmup}, active {active}, repeat {repeat}, "
            f"skip_first {skip_first}: must be >= 0, active > 0"
        )

    def action(step: int) -> ProfilerAction:
        step -= skip_first
        if step < 0:
            return ProfilerAction.NONE
        if skip_first_wait:
            step += wait
        cycle, at = divmod(step, wait + warmup + active)
        if (repeat and cycle >= repeat) or at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        last = at == wait + warmup + active - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD

    return action


def kineto_available() -> bool:
    """Returns False: the profiler is tt's own."""
    return False


def record_always(step: int) -> ProfilerAction:
    return ProfilerAction.RECORD


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """Returns an on_trace_ready that writes a trace into dir_name for TensorBoard."""

    def handler(p: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + ".gz" * use_gzip
        p.export_chrome_trace(os.path.join(dir_name, name))

    return handler


# ---- results ----


class Interval(NamedTuple):
    """Begin and end of an event, in microseconds."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        return self.end - self.start


class FormattedTimes:
    """Times as text, for tables."""

    @property
    def cpu_time(self) -> float:
        """Mean of cpu_time_total over the calls."""
        return self.cpu_time_total / max(self.count, 1)  # type: ignore[attr-defined]

    cpu_time_str = property(lambda self: time_text(self.cpu_time))
    cpu_time_total_str = property(lambda self: time_text(self.cpu_time_total))
    self_cpu_time_total_str = property(lambda self: time_text(self.self_cpu_time_total))
    # what PyTorch's events have and those here do not differ in
    device_type, device_index, use_device, node_id = DeviceType.CPU, 0, None, -1
    is_async = is_remote = is_legacy = is_user_annotation = False
    scope, stack, overload_name = 0, (), ""
    device_time = device_time_total = self_device_time_total = 0.0
    device_memory_usage = self_device_memory_usage = 0


class FunctionEvent(FormattedTimes):
    """One event.

    kind: OP, KERNEL, MODULE, NODE, MEMORY, OPTIMIZER, REGION or COMMUNICATION. operator: its name
    in C, "" for other kinds. cpu_parent, cpu_children: the event around it and those inside. flops
    and cpu_memory_usage include the events inside.
    """

    count = 1
    kernels: tuple[Any, ...] = ()
    concrete_inputs: tuple[Any, ...] = ()
    fwd_thread, sequence_nr = None, -1

    def __init__(self, name: str, kind: int, id: int, time_range: Interval) -> None:
        self.name = self.key = name
        self.operator = ""
        self.kind, self.id, self.time_range = kind, id, time_range
        self.thread = threading.get_ident()
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] = []
        self.input_shapes: list[list[int]] = []
        self.flops = 0.0
        self.cpu_memory_usage = 0

    @property
    def cpu_time_total(self) -> float:
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:
        inside = (e.cpu_time_total for e in self.cpu_children if e.kind != KERNEL)
        return self.cpu_time_total - sum(inside)

    @property
    def self_cpu_memory_usage(self) -> int:
        return self.cpu_memory_usage - sum(e.cpu_memory_usage for e in self.cpu_children)

    def __repr__(self) -> str:
        return f"<FunctionEvent {self.name}: {self.cpu_time_total:.1f} us>"


class FunctionEventAvg(FormattedTimes):
    """An operator, or a region of record_function.

    count: number of calls. cpu_time_total: time including called operators; self_cpu_time_total:
    time without them. cpu_time: mean of cpu_time_total over the calls.
    """

    def __init__(
        self,
        key: str,
        count: int = 0,
        self_us: float = 0.0,
        total_us: float = 0.0,
        flops: float = 0.0,
        bytes: int = 0,
        input_shapes: list[list[int]] | None = None,
    ) -> None:
        self.key = self.name = key
        self.count = count
        self.self_cpu_time_total, self.cpu_time_total = self_us, total_us
        self.flops, self.cpu_memory_usage = flops, bytes
        self.self_cpu_memory_usage = 0
        self.input_shapes = input_shapes or []

    def add(self, e: FunctionEvent) -> None:
        """Adds an event. Its totals are not added if it is inside another event with the same
        name."""
        self.count += 1
        self.self_cpu_time_total += e.self_cpu_time_total
        self.self_cpu_memory_usage += e.self_cpu_memory_usage
        outer = e.cpu_parent
        while outer is not None and (outer.name, outer.kind) != (e.name, e.kind):
            outer = outer.cpu_parent
        if outer is None:
            self.cpu_time_total += e.cpu_time_total
            self.flops += e.flops
            self.cpu_memory_usage += e.cpu_memory_usage

    def __repr__(self) -> str:
        return f"<{self.key}: {self.count} calls, {self.cpu_time_total:.1f} us>"


def row_name(name: str) -> str:
    """Returns the name of the row for events of a name: all steps have one row, as in PyTorch."""
    return "ProfilerStep*" if name.startswith("ProfilerStep#") else name


TIME_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}  # in microseconds, the longest first


def time_text(us: float, unit: str | None = None) -> str:
    """Returns a time in a unit, by default in the longest one that it has a whole one of."""
    if unit is None:
        unit = next((u for u, size in TIME_UNITS.items() if us >= size), "us")
    return f"{us / TIME_UNITS[unit]:.3f}{unit}"


def bytes_text(n: float) -> str:
    for size, unit in ((1 << 30, "Gb"), (1 << 20, "Mb"), (1 << 10, "Kb")):
        if abs(n) >= size:
            return f"{n / size:.2f} {unit}"
    return f"{n:.0f} b"


def flops_text(n: float) -> str:
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "K")):
        if n >= size:
            return f"{n / size:.3f} {unit}FLOPs"
    return f"{n:.3f}" if n else "--"


def shortened(text: str, width: int | None) -> str:
    return text if width is None or len(text) <= width else text[: width - 3] + "..."


class EventList(list):
    """Events, or the rows of a profile."""

    def total_average(self) -> FunctionEventAvg:
        """Returns a row with the sums of all rows."""
        us = self.self_cpu_time_total
        outer = [e for e in self if getattr(e, "cpu_parent", None) is None]
        return FunctionEventAvg(
            "Total",
            sum(row.count for row in self),
            us,
            us,
            sum(e.flops for e in outer),
            sum(e.cpu_memory_usage for e in outer),
        )

    @property
    def self_cpu_time_total(self) -> float:
        """The time that events cover, without counting overlaps twice."""
        rows = (row for row in self if getattr(row, "kind", OP) != KERNEL)
        return sum(row.self_cpu_time_total for row in rows)

    def key_averages(self, group_by_input_shapes: bool = False) -> EventList:
        """Returns a row for each name of an operator, module, node, step or region."""
        rows: dict[Any, FunctionEventAvg] = {}
        for e in self:
            if e.kind in (KERNEL, MEMORY):
                continue
            name = row_name(e.name)
            key = (e.kind, name, str(e.input_shapes) if group_by_input_shapes else "")
            if key not in rows:
                shapes = e.input_shapes if group_by_input_shapes else None
                rows[key] = FunctionEventAvg(name, input_shapes=shapes)
            rows[key].add(e)
        return EventList(rows.values())

    def table(
        self,
        sort_by: str | None = "cpu_time_total",
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """Returns the rows as text.

        sort_by: an attribute of the rows, the largest first; None keeps their order; "cuda" and
        "xpu" in it mean "device". row_limit: the number of rows that are shown; -1: all. Columns
        for memory, shapes and FLOPs appear if something was recorded for them. time_unit: "s", "ms"
        or "us" for all times; default: one that suits each.
        """
        if time_unit not in (None, *TIME_UNITS):
            raise ValueError(f"table: time_unit is {time_unit!r}: must be 's', 'ms' or 'us'")
        rows: list[Any] = list(self)
        if top_level_events_only:
            rows = [e for e in rows if getattr(e, "cpu_parent", None) is None]
        if sort_by:
            by = sort_by.replace("cuda", "device").replace("xpu", "device")
            rows.sort(key=attrgetter(by), reverse=True)
        rows = rows[:row_limit] if row_limit >= 0 else rows
        total = self.self_cpu_time_total

        def share(us: float) -> str:
            return f"{100 * us / total:.2f}%" if total else "0.00%"

        columns: list[tuple[str, Callable[[Any], str]]] = [
            ("Self CPU %", lambda row: share(row.self_cpu_time_total)),
            ("Self CPU", lambda row: time_text(row.self_cpu_time_total, time_unit)),
            ("CPU total %", lambda row: share(row.cpu_time_total)),
            ("CPU total", lambda row: time_text(row.cpu_time_total, time_unit)),
            ("CPU time avg", lambda row: time_text(row.cpu_time, time_unit)),
        ]
        if any(row.cpu_memory_usage for row in rows):
            columns.append(("CPU Mem", lambda row: bytes_text(row.cpu_memory_usage)))
        columns.append(("# of Calls", lambda row: str(row.count)))
        if any(row.input_shapes for row in rows):
            width = max_shapes_column_width
            columns.append(("Input Shapes", lambda row: shortened(str(row.input_shapes), width)))
        if any(row.flops for row in rows):
            columns.append(("Total FLOPs", lambda row: flops_text(row.flops)))
        names = [shortened(row.key, max_name_column_width) for row in rows]
        cells = [[title, *(text(row) for row in rows)] for title, text in columns]
        lines = [f"{name:<{max(map(len, ['Name', *names]))}}" for name in ["Name", *names]]
        for column in cells:
            width_of = max(12, *map(len, column))
            lines = [f"{line}  {cell:>{width_of}}" for line, cell in zip(lines, column)]
        rule = "-" * len(lines[0])
        last = f"Self CPU time total: {time_text(total)}"
        head = [header, rule] if header is not None else []
        return "\n".join([*head, rule, lines[0], rule, *lines[1:], rule, last])

    def __str__(self) -> str:
        return self.table()


# what PyTorch calls operators that the profiler sees here by names of tt's own
OPERATORS = {
    "linear_rows": "addmm",
    "matmul_stack": "mm",
    "native_cross_entropy": "nll_loss_forward",
    "native_dropout": "dropout",
    "native_log_softmax": "_log_softmax",
    "native_softmax": "_softmax",
}
OF_NUMBERS = re.compile("(_scalar|_number|_true|_dim)(?=_?$)")


def shown_name(kind: int, name: bytes) -> str:
    """Returns the name of an event as PyTorch writes it: aten::relu, ReluBackward0."""
    text = name.decode("utf-8", "replace")
    if kind == OP and "::" not in text:
        return f"aten::{OPERATORS.get(text) or OF_NUMBERS.sub('', text)}"
    if kind == NODE:
        of_function = text[:1].isupper()  # as far as a name tells
        text = text + "Backward" if of_function else pytorchs_name(text, 1)
    return NAMES.get(kind, "{}").format(text)


def shapes_of(raw: Any) -> list[list[int]]:
    """Returns the shapes of a C event."""
    if not raw.n_shapes:
        return []
    numbers, shapes = list((c_int64 * raw.n_shapes).from_address(raw.shapes)), []
    while numbers:
        end = 1 + numbers[0]
        shapes.append(numbers[1:end])
        numbers = numbers[end:]
    return shapes


def read_events() -> EventList:
    """Returns the events of this thread's last profile."""
    events, by_id = EventList(), {}
    for raw in filled(struct("tt_profile_event"), "tt_profiler_events"):
        end = raw.end_ns or time.perf_counter_ns()
        span = Interval(raw.begin_ns / 1e3, end / 1e3)
        e = FunctionEvent(shown_name(raw.kind, raw.name), raw.kind, raw.id, span)
        e.operator = raw.name.decode("utf-8", "replace") if raw.kind == OP else ""
        e.flops, e.cpu_memory_usage = raw.flops, raw.bytes
        e.input_shapes = shapes_of(raw)
        if raw.kind != MEMORY:
            by_id[raw.id] = e
        parent = by_id.get(raw.parent)
        if parent is not None and raw.kind != MEMORY:
            e.cpu_parent = parent
            parent.cpu_children.append(e)
        events.append(e)
    return events


def read_sums() -> EventList:
    """Returns the sums of this thread's last profile."""
    rows: dict[tuple[int, str], FunctionEventAvg] = {}
    for r in filled(struct("tt_profile_sum"), "tt_profiler_sums"):
        if r.kind in (KERNEL, MEMORY):
            continue
        name = row_name(shown_name(r.kind, r.name))
        row = rows.setdefault((r.kind, name), FunctionEventAvg(name))
        row.count += r.calls
        row.self_cpu_time_total += r.self_ns / 1e3
        row.cpu_time_total += r.total_ns / 1e3
        row.flops += r.flops
        row.cpu_memory_usage += r.bytes
    return EventList(rows.values())


# ---- profiles ----


class ModuleCalls:
    """Encloses calls of modules in regions while a profile with modules runs."""

    def __init__(self) -> None:
        self.lock, self.users = threading.Lock(), 0

    def watch(self, change: int) -> None:
        from .nn.module import enclosing

        with self.lock:
            self.users += change
            if change == 1 == self.users:
                enclosing.append(self.region)
            elif not self.users:
                enclosing.remove(self.region)

    def region(self, module: Any) -> Any:
        from .nn.layer import Layer

        p = getattr(local, "profile", None)
        if p is None or isinstance(module, Layer):  # whose call C records
            return nullcontext()
        return Region(MODULE, p.module_name(module))


module_calls = ModuleCalls()


class profile:
    """with profile(activities=…, schedule=…, …) as p: …; then p.key_averages().table(sort_by=…)

    schedule: which steps are recorded; step() ends one. By default all are.
    on_trace_ready: called with the profile when its events are complete: at the end, and after each
        cycle of the schedule.
    record_shapes: events have input_shapes. profile_memory: events of allocation and release, and
    cpu_memory_usage. with_flops: counts floating-point operations. with_modules: events of modules.
    capacity: number of events that are kept, the latest ones; key_averages counts all.
    The other arguments are ignored.
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Any = None,
        capacity: int = 1 << 20,
    ) -> None:
        self.activities = set(activities) if activities else supported_activities()
        self.schedule = schedule or record_always
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.record_shapes, self.profile_memory = record_shapes, profile_memory
        self.with_flops, self.with_modules = with_flops, with_modules
        self.capacity = capacity
        self.step_num = 0
        self.current_action = self.schedule(0)
        self._running = self._started = False
        self._step: Region | None = None
        self._rows: EventList | None = None
        self._events: EventList | None = None
        self._modules: dict[int, str] = {}
        self._metadata: dict[str, Any] = {}
        self._has_self_memory = False

    # ---- begin and end ----

    def start(self) -> None:
        if self._started:
            raise RuntimeError("profile: start() was called twice")
        other = getattr(local, "profile", None)
        if other is not None:
            raise RuntimeError("profile: another profile of this thread is running")
        self._started = True
        self._act(self.current_action)

    def stop(self) -> None:
        if not self._started:
            return
        self._started = False
        self._end_step()
        if self._running:
            self._save()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def step(self) -> None:
        """Marks the end of a training step."""
        self._end_step()
        self.step_num += 1
        if self.current_action is ProfilerAction.RECORD_AND_SAVE and self._running:
            self._save()
        self.current_action = self.schedule(self.step_num)
        if self._started:
            self._act(self.current_action)

    def _act(self, action: ProfilerAction) -> None:
        wanted = action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        if wanted and not self._running:
            self._record()
        elif not wanted and self._running:
            self._save()
        if self._running and self.record_steps:
            self._step = Region(REGION, f"ProfilerStep#{self.step_num}")
            self._step.begin()

    def _end_step(self) -> None:
        if self._step is not None:
            self._step.end()
            self._step = None

    def _record(self) -> None:
        before = getattr(local, "recorded", None)
        if before is not None:
            before._keep_events()
        profiler_start_ex(
            capacity=self.capacity,
            record_shapes=self.record_shapes,
            profile_memory=self.profile_memory,
            with_flops=self.with_flops,
            with_modules=self.with_modules,
        )
        self._rows = self._events = None
        self._has_self_memory = False
        self._modules.clear()
        self._running, local.profile, local.recorded = True, self, self
        if self.with_modules:
            module_calls.watch(1)

    def _save(self) -> None:
        self._running, local.profile = False, None
        if self.with_modules:
            module_calls.watch(-1)
        profiler_stop()
        self._rows = read_sums()
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def module_name(self, module: Any) -> str:
        """Returns the name of a module, such as "Net_0": its class and its number within the
        class."""
        kind = type(module).__name__
        if id(module) not in self._modules:
            same = sum(name.rpartition("_")[0] == kind for name in self._modules.values())
            self._modules[id(module)] = f"{kind}_{same}"
        return self._modules[id(module)]

    # ---- results ----

    def _keep_events(self) -> None:
        """Reads the events before another profile replaces them."""
        if self._events is None and self._rows is not None:
            self._events = read_events()

    def _is_last(self) -> bool:
        return getattr(local, "recorded", None) is self

    def _check(self) -> EventList:
        if self._rows is None:
            raise RuntimeError("the profile has not stopped yet")
        return self._rows

    def add_metadata(self, key: str, value: str) -> None:
        """Adds a text to the traces that are written later."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Adds a value in JSON to the traces that are written later."""
        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json

    def events(self) -> EventList:
        """Returns the events, sorted by begin. Raises RuntimeError while the profile runs."""
        self._check()
        if self._events is None and not self._is_last():
            raise RuntimeError("profile: events() must be called by the thread of the profile")
        self._keep_events()
        assert self._events is not None
        return self._events

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool = False,
    ) -> EventList:
        """Returns the rows, one per operator and region. Raises RuntimeError while the profile
        runs.

        group_by_input_shape: one per operator and shapes of its arguments. The other arguments are
        ignored: events have no stack and no overload.
        """
        rows = self._check()
        if group_by_input_shape:
            return self.events().key_averages(True)
        if self.profile_memory and not self._has_self_memory:
            self._add_self_memory(rows)
        return rows

    def _add_self_memory(self, rows: EventList) -> None:
        """Adds the memory of the events without those inside to the rows, whose sums lack it."""
        if self._events is None and not self._is_last():
            return
        own: dict[str, int] = {}
        for e in self.events():
            if e.kind not in (KERNEL, MEMORY):
                name = row_name(e.name)
                own[name] = own.get(name, 0) + e.self_cpu_memory_usage
        for row in rows:
            row.self_cpu_memory_usage = own.get(row.name, 0)
        self._has_self_memory = True

    def dropped(self) -> int:
        """Returns the number of events that exceeded the capacity."""
        return profiler_dropped()

    def export_chrome_trace(self, path: str | os.PathLike[str], **ignored: Any) -> None:
        """Writes the events to a file for chrome://tracing or Perfetto; compressed if its name ends
        in .gz. Raises RuntimeError if this thread has started another profile since. PyTorch's
        arguments use_python_export, graph_lanes and the like are ignored."""
        self._check()
        if not self._is_last():
            raise RuntimeError(f"profile: the trace {LOST}")
        name = os.fspath(path)
        if not name.endswith(".gz"):
            profiler_chrome_trace(name)
            return self._add_metadata_to(name)
        plain = name[: -len(".gz")] + f".{os.getpid()}"
        profiler_chrome_trace(plain)
        try:
            self._add_metadata_to(plain)
            with open(plain, "rb") as source, gzip.open(name, "wb") as target:
                shutil.copyfileobj(source, target)
        finally:
            os.remove(plain)

    def _add_metadata_to(self, path: str) -> None:
        """Adds what add_metadata was given to a trace."""
        if not self._metadata:
            return
        with open(path) as source:
            trace = json.load(source)
        with open(path, "w") as target:
            json.dump({**trace, **self._metadata}, target)

    @property
    def self_cpu_time_total(self) -> float:
        """The time that events cover, without counting overlaps twice."""
        return self._check().self_cpu_time_total

    def total_average(self) -> FunctionEventAvg:
        """Returns a row with the sums of all rows."""
        return self._check().total_average()

    def table(self, *args: Any, **kwargs: Any) -> str:
        """Returns key_averages() as text."""
        return self.key_averages().table(*args, **kwargs)

    def export_stacks(
        self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total"
    ) -> None:
        """Writes lines "outer;inner metric" for flame graphs: the names of an event and of those
        around it, and the sum of a metric, such as "self_cpu_time_total", where it is not 0. There
        are no lines of Python's stack."""
        metric = metric.replace("cuda", "device").replace("xpu", "device")
        sums: dict[str, float] = {}
        for e in self.events():
            if e.kind in (KERNEL, MEMORY):
                continue
            names, outer = [e.name], e.cpu_parent
            while outer is not None:
                names.append(outer.name)
                outer = outer.cpu_parent
            stack = ";".join(name.replace(";", ",") for name in reversed(names))
            sums[stack] = sums.get(stack, 0) + getattr(e, metric)
        with open(path, "w") as f:
            f.writelines(f"{stack} {int(x)}\n" for stack, x in sums.items() if int(x))

    def export_memory_timeline(
        self, path: str | os.PathLike[str], device: str | None = None
    ) -> None:
        """Writes [times, bytes] as JSON: when a result of an operator was allocated or released, in
        microseconds, and the bytes of those alive since the profile began. profile_memory must be
        True."""
        if not self.profile_memory:
            raise ValueError("export_memory_timeline: profile_memory is False: must be True")
        changes = [e for e in self.events() if e.kind == MEMORY]
        times = [e.time_range.start for e in changes]
        alive = list(itertools.accumulate(e.cpu_memory_usage for e in changes))
        with open(path, "w") as f:
            json.dump([times, alive], f)


class Region:
    """Records an event between begin() and end() if this thread's profile is recording."""

    def __init__(self, kind: int, name: str) -> None:
        self.kind, self.name = kind, name
        self.events: list[int] = []  # of the entries that have not been left yet

    def begin(self) -> None:
        recording = getattr(local, "profile", None) is not None
        self.events.append(profiler_begin(self.kind, self.name) if recording else 0)

    def end(self) -> None:
        event = self.events.pop()
        if event:
            profiler_end(event)

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


class record_function(Region):
    """Records a with block, or a decorated function, as an event of the running profile."""

    def __init__(self, name: str, args: str | None = None) -> None:
        super().__init__(REGION, name)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name):
                return function(*args, **kwargs)

        return recorded


def __dir__() -> list[str]:
    return __all__
