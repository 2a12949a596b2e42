"""Timers of statements, with the API of torch.utils.benchmark."""
from __future__ import annotations

import math
import statistics
import timeit as _timeit
from collections import OrderedDict
from time import perf_counter
from typing import Any, Callable, Iterable, NamedTuple

from .. import cuda
from .._handles import get_num_threads, set_num_threads

__all__ = ["Compare", "Measurement", "TaskSpec", "Timer", "timer"]
IQR_LIMIT = 0.1  # of the median: a measurement with a larger distance of the quartiles has warnings
UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))


def timer() -> float:
    """Returns the time in seconds, after all work of a CUDA device is complete."""
    cuda.synchronize()
    return perf_counter()


def unit_of(seconds: float) -> tuple[str, float]:
    """Returns the name and the length of the unit for a duration."""
    return next((unit for unit in UNITS if seconds >= unit[1]), UNITS[-1])


class TaskSpec(NamedTuple):
    """The statement that a Timer measures, and its setup."""

    stmt: Any
    setup: Any
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label and the sub-label, or the statement."""
        label = self.label or str(self.stmt)
        return f"{label}: {self.sub_label}" if self.sub_label else label


class Measurement:
    """The result of a Timer: raw_times has the seconds of the repetitions, each of
    number_per_run calls of task_spec. metadata is kept."""

    def __init__(
        self,
        number_per_run: int,
        raw_times: list[float],
        task_spec: TaskSpec,
        metadata: dict[Any, Any] | None = None,
    ) -> None:
        self.number_per_run, self.raw_times = number_per_run, raw_times
        self.task_spec, self.metadata = task_spec, metadata

    def __getattr__(self, name: str) -> Any:
        """Returns a field of the task, or its title."""
        if name not in (*TaskSpec._fields, "title"):
            raise AttributeError(f"'Measurement' object has no attribute '{name}'")
        return getattr(self.task_spec, name)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Returns a measurement for each task, of the seconds of its calls in all of them."""
        times: dict[TaskSpec, list[float]] = {}
        for m in measurements:
            times.setdefault(m.task_spec, []).extend(m.times)
        return [Measurement(1, found, task) for task, found in times.items()]

    @property
    def times(self) -> list[float]:
        """Seconds of a call, in each repetition."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def median(self) -> float:
        return statistics.median(self.times)

    @property
    def mean(self) -> float:
        return statistics.fmean(self.times)

    @property
    def iqr(self) -> float:
        """The distance between the quartiles."""
        if len(self.times) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.times, n=4, method="inclusive")
        return high - low

    @property
    def significant_figures(self) -> int:
        """The number of certain figures of the median, 1 to 4, from the standard deviation
        between the quartiles."""
        n = len(self.times)
        middle = sorted(self.times)[n // 4 : math.ceil(3 * n / 4)]
        deviation = statistics.pstdev(middle)
        interval = max(1.645 * deviation / math.sqrt(len(middle)), 25e-9)
        return min(max(math.floor(math.log10(self.median / interval)), 1), 4)

    @property
    def has_warnings(self) -> bool:
        """Whether the quartiles are far from each other, as on a busy machine."""
        return not self.meets_confidence()

    def meets_confidence(self, threshold: float = IQR_LIMIT) -> bool:
        """Returns whether the distance of the quartiles is below threshold times the median."""
        return self.iqr / self.median < threshold

    @property
    def as_row_name(self) -> str:
        return self.task_spec.sub_label or str(self.task_spec.stmt) or "[Unknown]"

    def __repr__(self) -> str:
        unit, length = unit_of(self.median)
        count = len(self.raw_times)
        lines = [f"<tt.utils.benchmark.Measurement object of {count} measurements>", self.title]
        lines.append(f"  Median: {self.median / length:.2f} {unit}")
        lines.append(f"  IQR:    {self.iqr / length:.2f} {unit}")
        lines.append(
            f"  {count} measurements, {self.number_per_run} runs per measurement, "
            f"{self.num_threads} thread{'s' if self.num_threads > 1 else ''}"
        )
        return "\n".join(lines)


class Timer:
    """Measures a statement: Timer("x @ x", globals={"x": x}).blocked_autorange().

    stmt, setup: Python code; globals: its names.
    label, sub_label, description, env: for printing and Compare.
    num_threads: the number of threads that compute meanwhile.
    """

    def __init__(
        self,
        stmt: str | Callable[[], Any] = "pass",
        setup: str | Callable[[], Any] = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: str = "python",
    ) -> None:
        if language != "python" or global_setup:
            raise ValueError("Timer: language must be 'python', which has no global_setup")
        self.task_spec = TaskSpec(
            stmt, setup, global_setup, label, sub_label, description, env, num_threads
        )
        self.num_threads = num_threads
        self._timer = _timeit.Timer(stmt, setup, timer, {} if globals is None else globals)

    def _time(self, number: int) -> float:
        """Returns the seconds of some calls."""
        before = get_num_threads()
        set_num_threads(self.num_threads)
        try:
            return max(self._timer.timeit(number), 1e-9)
        finally:
            set_num_threads(before)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """Measures `number` calls, after some that are not counted."""
        self._time(max(number // 100, 2))
        return Measurement(number, [self._time(number)], self.task_spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        raise NotImplementedError("Timer.repeat: see blocked_autorange")

    def autorange(self, callback: Callable[[int, float], Any] | None = None) -> None:
        raise NotImplementedError("Timer.autorange: see blocked_autorange")

    def _calls_within(self, seconds: float) -> int:
        """Returns a number of calls that takes about so long."""
        number, taken = 1, self._time(1)
        while taken < seconds / 10:
            number *= 10
            taken = self._time(number)
        return max(int(number * seconds / taken), 1)

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Measures blocks of calls for at least min_run_time seconds."""
        number = self._calls_within(min_run_time / 20)
        times: list[float] = []
        while sum(times) < min_run_time:
            times.append(self._time(number))
            if callback is not None:
                callback(number, times[-1])
        return Measurement(number, times, self.task_spec)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """Measures until the distance of the quartiles is below threshold times the median, or for
        max_run_time seconds, what is not measured included."""
        end = perf_counter() + max_run_time
        number = self._calls_within(min_run_time / 10)
        times: list[float] = []
        while True:
            times.append(self._time(number))
            if callback is not None:
                callback(number, times[-1])
            found = Measurement(number, times, self.task_spec)
            steady = len(times) > 3 and found.iqr < threshold * found.median
            if (steady and sum(times) >= min_run_time) or perf_counter() >= end:
                return found


class Compare:
    """A table of measurements: a row for each sub-label and number of threads, a column for each
    description."""

    def __init__(self, results: Iterable[Measurement]) -> None:
        self.results = list(results)

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Adds measurements."""
        self.results += results

    def trim_significant_figures(self) -> None:
        """Does nothing: the table has four figures."""

    def colorize(self, rowwise: bool = False) -> None:
        """Does nothing: the table has no colours."""

    def highlight_warnings(self) -> None:
        """Does nothing: the table has no colours."""

    def print(self) -> None:
        """Prints the table."""
        print(self)

    def __str__(self) -> str:
        if not self.results:
            return ""
        unit, length = unit_of(min(m.median for m in self.results))
        columns = list(OrderedDict.fromkeys(str(m.description) for m in self.results))
        rows: dict[Any, dict[str, str]] = OrderedDict()
        for m in self.results:
            key = m.num_threads, m.title + (f" ({m.env})" if m.env else "")
            row = rows.setdefault(key, {})
            row[str(m.description)] = f"{m.median / length:.4g}"
        cells = [["", *columns]]
        for (threads, title), row in rows.items():
            cells.append([f"{title}, {threads} thr.", *(row.get(c, "") for c in columns)])
        widths = [max(map(len, column)) for column in zip(*cells)]
        lines = [" | ".join(x.rjust(w) for x, w in zip(line, widths)) for line in cells]
        lines.insert(1, "-" * len(lines[0]))
        return "\n".join([*lines, f"Times are medians in {unit}."])


def __dir__() -> list[str]:
    return __all__
