"""The package where Python has only what it has on Windows: no mmap by ctypes, no fork, no fcntl.
It runs here, with the rest hidden."""
import os
import subprocess
import sys
from pathlib import Path

BINDING = Path(__file__).resolve().parents[3] / "bindings/python"
PROGRAM = """
import ctypes, importlib, importlib.abc, os, pkgutil, signal, sys
# the standard library has a Windows form of its own of these
import asyncio, concurrent.futures, logging, multiprocessing.connection, multiprocessing.context
import multiprocessing.reduction, multiprocessing.shared_memory, multiprocessing.spawn
import shutil, socket, subprocess, tempfile

MODULES = "fcntl grp posix_ipc pty pwd resource syslog termios".split()
OF_OS = "fork forkpty register_at_fork sched_getaffinity memfd_create mkfifo getuid killpg setsid "
OF_OS += "wait4 WNOHANG eventfd posix_spawn sendfile pread pwrite chown uname"
OF_SIGNAL = "SIGKILL SIGCHLD SIGHUP SIGALRM SIGUSR1 SIGUSR2 SIGQUIT setitimer pthread_kill alarm"

class Hidden(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in MODULES:
            raise ModuleNotFoundError(f"Windows has no {name}", name=name)

sys.meta_path.insert(0, Hidden())
for name in MODULES:
    sys.modules.pop(name, None)
for module, names in ((os, OF_OS), (signal, OF_SIGNAL)):
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
load = ctypes.CDLL.__init__

def load_named(self, name, *args, **kwargs):
    if name is None:  # there is no library of all that the process has
        raise TypeError("bad argument type for built-in operation")
    load(self, name, *args, **kwargs)

ctypes.CDLL.__init__ = load_named

import tt
for module in pkgutil.walk_packages(tt.__path__, "tt."):
    importlib.import_module(module.name)
from tt import nn, optim
from tt.utils.data import DataLoader

layer = nn.Linear(2, 1)
step = optim.SGD(layer.parameters(), lr=0.1)
for batch in DataLoader(tt.ones(4, 2), batch_size=2):
    layer(batch).sum().backward()
    step.step()
try:
    tt.ones(2).share_memory_()
except OSError as error:
    print(error)
"""


def test_every_module_loads_and_a_net_trains():
    env = {**os.environ, "PYTHONPATH": str(BINDING)}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "no memory that processes can share" in done.stdout
