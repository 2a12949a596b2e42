"""Timers of statements, with the API of torch.utils.benchmark."""
from __future__ import annotations

import statistics
import timeit as _timeit
from collections import OrderedDict
from time import perf_counter
from typing import Any, Callable, Iterable

from .. import cuda
from .._handles import get_num_threads, set_num_threads

__all__ = ["Compare", "Measurement", "Timer", "timer"]
UNITS = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))


def timer() -> float:
    """Returns the time in seconds, after all work of a CUDA device is complete."""
    cuda.synchronize()
    return perf_counter()


def unit_of(seconds: float) -> tuple[str, float]:
    """Returns the name and the length of the unit for a duration."""
    return next((unit for unit in UNITS if seconds >= unit[1]), UNITS[-1])


class Measurement:
    """The result of a Timer: raw_times has the seconds of the repetitions, each of
    number_per_run calls."""

    def __init__(self, number_per_run: int, raw_times: list[float], task: dict[str, Any]) -> None:
        self.number_per_run, self.raw_times, self.task = number_per_run, raw_times, task

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
    def num_threads(self) -> int:
        return self.task["num_threads"]

    @property
    def title(self) -> str:
        """The label and the sub-label, or the statement."""
        label = self.task["label"] or str(self.task["stmt"])
        return f"{label}: {self.task['sub_label']}" if self.task["sub_label"] else label

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
        self.task = {
            "stmt": stmt,
            "setup": setup,
            "label": label,
            "sub_label": sub_label,
            "description": description,
            "env": env,
            "num_threads": num_threads,
        }
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
        return Measurement(number, [self._time(number)], self.task)

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
        return Measurement(number, times, self.task)

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
            found = Measurement(number, times, self.task)
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
        columns = list(OrderedDict.fromkeys(str(m.task["description"]) for m in self.results))
        rows: dict[Any, dict[str, str]] = OrderedDict()
        for m in self.results:
            key = m.num_threads, m.title + (f" ({m.task['env']})" if m.task["env"] else "")
            row = rows.setdefault(key, {})
            row[str(m.task["description"])] = f"{m.median / length:.4g}"
        cells = [["", *columns]]
        for (threads, title), row in rows.items():
            cells.append([f"{title}, {threads} thr.", *(row.get(c, "") for c in columns)])
        widths = [max(map(len, column)) for column in zip(*cells)]
        lines = [" | ".join(x.rjust(w) for x, w in zip(line, widths)) for line in cells]
        lines.insert(1, "-" * len(lines[0]))
        return "\n".join([*lines, f"Times are medians in {unit}."])


def __dir__() -> list[str]:
    return __all__
