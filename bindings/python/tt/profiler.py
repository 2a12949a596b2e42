"""Where the time of operators goes: profile, by the names of torch.profiler.

A profile counts the operators of the thread that starts it. Times are in microseconds.
"""
from __future__ import annotations

from time import perf_counter_ns

from ._handles import profiler_rows, profiler_start, profiler_stop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import Self

running: list[profile] = []  # profiles that record regions of record_function


class ProfilerActivity:
    """What PyTorch's profile can record; ignored here."""

    CPU, CUDA = "cpu", "cuda"


class Row:
    """An operator, or a region of record_function.

    count: number of calls. cpu_time_total: with the operators that it calls; self_cpu_time_total:
    without them. cpu_time: mean of cpu_time_total over the calls.
    """

    def __init__(self, key: str, count: int, self_ns: float, total_ns: float) -> None:
        self.key = self.name = key
        self.count = count
        self.self_cpu_time_total = self_ns / 1e3
        self.cpu_time_total = total_ns / 1e3
        self.cpu_time = self.cpu_time_total / max(count, 1)

    def __repr__(self) -> str:
        return f"<{self.key}: {self.count} calls, {self.cpu_time_total:.1f} us>"


class Rows(list[Row]):
    """The rows of a profile."""

    def total_average(self) -> Row:
        """Returns a row with the sums of all rows."""
        ns = sum(row.self_cpu_time_total for row in self) * 1e3
        return Row("Total", sum(row.count for row in self), ns, ns)

    def table(self, sort_by: str = "cpu_time_total", row_limit: int = 100) -> str:
        """Returns the rows as text, the largest first.

        sort_by: an attribute of Row. row_limit: the number of rows that are shown; -1: all.
        """
        limit = row_limit if row_limit >= 0 else None
        rows = sorted(self, key=lambda row: getattr(row, sort_by or "count"), reverse=True)[:limit]
        width = max([len("Name"), *(len(row.key) for row in rows)])
        head = (
            f"{'Name':<{width}}  {'Self CPU':>14}  {'CPU total':>14}  "
            f"{'CPU time avg':>14}  {'# of Calls':>10}"
        )
        lines = []
        for row in rows:
            lines.append(
                f"{row.key:<{width}}  {row.self_cpu_time_total:>12.3f}us  "
                f"{row.cpu_time_total:>12.3f}us  {row.cpu_time:>12.3f}us  {row.count:>10}"
            )
        rule = "-" * len(head)
        total = sum(row.self_cpu_time_total for row in self)
        last = f"Self CPU time total: {total:.3f}us"
        return "\n".join([rule, head, rule, *lines, rule, last])


class profile:
    """with profile() as p: …; then p.key_averages().table(sort_by=…, row_limit=…)

    The arguments are ignored.
    """

    def __init__(
        self,
        *,
        activities: Any = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
    ) -> None:
        self.regions: dict[str, tuple[int, int]] = {}  # name -> calls, ns
        self.rows: Rows | None = None

    def start(self) -> None:
        profiler_start()
        running.append(self)

    def stop(self) -> None:
        running.remove(self)
        profiler_stop()
        self.rows = Rows(Row(*row.values()) for row in profiler_rows())
        self.rows += [Row(name, count, 0, ns) for name, (count, ns) in self.regions.items()]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def step(self) -> None:
        """Marks the end of a training step. It has no effect."""

    def key_averages(self) -> Rows:
        """Returns the rows, one per operator and region. Raises RuntimeError before the end."""
        if self.rows is None:
            raise RuntimeError("the profile has not stopped yet")
        return self.rows


class record_function:
    """with record_function("name"): … is a row of the profiles that are running."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.since = 0

    def __enter__(self) -> Self:
        self.since = perf_counter_ns()
        return self

    def __exit__(self, *_: object) -> None:
        for p in running:
            count, ns = p.regions.get(self.name, (0, 0))
            p.regions[self.name] = count + 1, ns + perf_counter_ns() - self.since
