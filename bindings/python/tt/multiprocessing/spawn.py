"""spawn runs a function in several processes and waits for them."""
from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import time
import traceback
from multiprocessing import connection
from typing import Any, Callable

__all__ = ["ProcessContext", "ProcessExitedException", "ProcessRaisedException", "spawn"]


class ProcessException(Exception):
    """A process failed. error_index: its index, error_pid: its process id."""

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, pid


class ProcessRaisedException(ProcessException):
    """The function raised an exception in a process. The message is its traceback."""


class ProcessExitedException(ProcessException):
    """A process was killed by a signal or exited with a nonzero exit code."""

    def __init__(
        self, msg: str, error_index: int, pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, pid)
        self.exit_code, self.signal_name = exit_code, signal_name


def run(fn: Callable[..., Any], i: int, args: tuple[Any, ...], error_file: str) -> None:
    """Runs fn(i, *args) in a child process. Writes the traceback of an exception to error_file."""
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        with open(error_file, "w", encoding="utf-8") as file:
            file.write(traceback.format_exc())
        raise SystemExit(1) from None


class ProcessContext:
    """The processes of one call of spawn."""

    def __init__(self, processes: list[Any], error_files: list[str]) -> None:
        self.processes, self.error_files = processes, error_files
        self.sentinels = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self) -> list[int]:
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Waits until a process fails or all have ended, for at most timeout seconds.

        Returns whether all have ended. If one fails, terminates the others after grace_period
        seconds and raises ProcessRaisedException or ProcessExitedException.
        """
        failed = None
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.sentinels and failed is None:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            ready = connection.wait(list(self.sentinels), left)
            if not ready:
                return False
            for sentinel in ready:
                i = self.sentinels.pop(sentinel)
                self.processes[i].join()
                if self.processes[i].exitcode:
                    failed = i
        if failed is None:
            return True
        self._end_all(grace_period)
        raise self._exception(failed)

    def _end_all(self, grace_period: float | None) -> None:
        if grace_period is not None:
            connection.wait(list(self.sentinels), grace_period)
        for process in self.processes:
            if process.is_alive():
                process.terminate()
            process.join()

    def _exception(self, i: int) -> ProcessException:
        process = self.processes[i]
        with open(self.error_files[i], encoding="utf-8") as file:
            text = file.read()
        if text:
            message = f"\n\n-- Process {i} terminated with the following error:\n{text}"
            return ProcessRaisedException(message, i, process.pid)
        code = process.exitcode
        if code < 0:
            name = signal.Signals(-code).name
            message = f"process {i} terminated with signal {name}"
            return ProcessExitedException(message, i, process.pid, code, name)
        message = f"process {i} terminated with exit code {code}"
        return ProcessExitedException(message, i, process.pid, code)

    def __del__(self, unlink: Any = os.unlink) -> None:
        for path in self.error_files:
            try:
                unlink(path)
            except OSError:
                pass


SpawnContext = ProcessContext


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Runs fn(i, *args) for each i in range(nprocs) in a process of its own. See spawn."""
    context: Any = multiprocessing.get_context(start_method)
    processes, error_files = [], []
    for i in range(nprocs):
        descriptor, path = tempfile.mkstemp(prefix="tt-spawn-", suffix=".txt")
        os.close(descriptor)
        error_files.append(path)
        process = context.Process(target=run, args=(fn, i, args, path), daemon=daemon)
        process.start()
        processes.append(process)
    started = ProcessContext(processes, error_files)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Runs fn(i, *args) for each i in range(nprocs) in a new process and waits for all.

    If one fails, terminates the others and raises ProcessRaisedException or ProcessExitedException.
    join=False: returns a ProcessContext immediately; its join() waits.
    """
    return start_processes(fn, args, nprocs, join, daemon, start_method)
