"""Where the time of operators goes: profile, by the names of torch.profiler. It counts what the thread that starts it does."""
from time import perf_counter_ns

from ._handles import profiler_rows, profiler_start, profiler_stop

running = []  # profiles that record record_function's regions


class ProfilerActivity:
    CPU, CUDA = "cpu", "cuda"


class Row:
    """An operator, or a region of record_function. Times in µs; self: without the operators that it called."""

    def __init__(self, key, count, self_ns, total_ns):
        self.key = self.name = key
        self.count, self.self_cpu_time_total, self.cpu_time_total = (
            count,
            self_ns / 1e3,
            total_ns / 1e3,
        )
        self.cpu_time = self.cpu_time_total / max(count, 1)

    def __repr__(self):
        return f"<{self.key}: {self.count} calls, {self.cpu_time_total:.1f} us>"


class Rows(list):
    def total_average(self):
        return Row(
            "Total",
            sum(r.count for r in self),
            *(sum(r.self_cpu_time_total for r in self) * 1e3,) * 2,
        )

    def table(self, sort_by="cpu_time_total", row_limit=100):
        """As text, the largest first."""
        shown = sorted(self, key=lambda r: getattr(r, sort_by or "count"), reverse=True)[
            : row_limit if row_limit >= 0 else None
        ]
        width = max([len("Name"), *(len(r.key) for r in shown)])
        head = f"{'Name':<{width}}  {'Self CPU':>14}  {'CPU total':>14}  {'CPU time avg':>14}  {'# of Calls':>10}"
        lines = [
            f"{r.key:<{width}}  {r.self_cpu_time_total:>12.3f}us  {r.cpu_time_total:>12.3f}us  {r.cpu_time:>12.3f}us  {r.count:>10}"
            for r in shown
        ]
        rule = "-" * len(head)
        return "\n".join(
            [
                rule,
                head,
                rule,
                *lines,
                rule,
                f"Self CPU time total: {sum(r.self_cpu_time_total for r in self):.3f}us",
            ]
        )


class profile:
    """with profile() as p: …; then p.key_averages().table(sort_by=…, row_limit=…)"""

    def __init__(
        self, *, activities=None, record_shapes=False, profile_memory=False, with_stack=False
    ):
        self.regions, self.rows = {}, None

    def start(self):
        profiler_start()
        running.append(self)

    def stop(self):
        running.remove(self)
        profiler_stop()
        self.rows = Rows(Row(*r.values()) for r in profiler_rows())
        self.rows += [Row(name, count, 0, ns) for name, (count, ns) in self.regions.items()]

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def step(self):
        """One more training step; nothing depends on it."""

    def key_averages(self):
        if self.rows is None:
            raise RuntimeError("the profile has not stopped yet")
        return self.rows


class record_function:
    """with record_function("name"): … appears in the table as a row of its own."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        self.since = perf_counter_ns()
        return self

    def __exit__(self, *_):
        for p in running:
            count, ns = p.regions.get(self.name, (0, 0))
            p.regions[self.name] = count + 1, ns + perf_counter_ns() - self.since
