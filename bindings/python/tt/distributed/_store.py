"""Stores: values by key that the processes of a job share, as in torch.distributed."""
from __future__ import annotations

import json
import os
import socket
import struct
import threading
import time
from datetime import timedelta
from typing import Any, Callable

from ..errors import DistributedError, InvalidArgumentError

DEFAULT_TIMEOUT = timedelta(seconds=300)
PAUSE = 0.01  # seconds between looks at a file
MAX_FIELD = 1 << 30  # bytes


class Store:
    """The base of stores. Values are bytes; a str is encoded."""

    def __init__(self, timeout: timedelta = DEFAULT_TIMEOUT) -> None:
        self.timeout = timeout

    # A subclass defines these two.
    def _change(self, key: str, change: Callable[[bytes | None], bytes | None]) -> bytes | None:
        """Replaces a value by change(value), at once for all processes; None: there is none.
        Returns the new value."""
        raise NotImplementedError

    def _items(self) -> dict[str, bytes]:
        """Returns all values."""
        raise NotImplementedError

    def set(self, key: str, value: str | bytes) -> None:
        """Sets a value."""
        self._change(key, lambda _: encoded(value))

    def get(self, key: str) -> bytes:
        """Returns a value; waits until there is one, at most the timeout."""
        self.wait([key])
        return self._items()[key]

    def add(self, key: str, amount: int) -> int:
        """Adds to a number, which is 0 at first, and returns the sum."""
        total = self._change(key, lambda value: str(int(value or 0) + amount).encode())
        return int(total or 0)

    def append(self, key: str, value: str | bytes) -> None:
        """Appends to a value, which is empty at first."""
        self._change(key, lambda before: (before or b"") + encoded(value))

    def compare_set(self, key: str, expected_value: str, desired_value: str) -> bytes:
        """Sets a value if it is expected_value, or if there is none and expected_value is "".
        Returns the value; expected_value if there is none."""
        expected, desired = encoded(expected_value), encoded(desired_value)
        value = self._change(key, lambda v: desired if (v or b"") == expected else v)
        return expected if value is None else value

    def check(self, keys: list[str]) -> bool:
        """Returns whether there are values for all keys."""
        items = self._items()
        return all(key in items for key in keys)

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        """Waits until there are values for all keys. Raises DistributedError after the timeout."""
        limit = self.timeout if timeout is None else timeout
        end = time.monotonic() + limit.total_seconds()
        while not self.check(keys):
            if time.monotonic() >= end:
                raise DistributedError(f"wait: after {limit} there is no value for all of {keys}")
            self._pause(end)

    def _pause(self, end: float) -> None:
        """Waits for a change, at most until `end`."""
        time.sleep(PAUSE)

    def delete_key(self, key: str) -> bool:
        """Removes a value. Returns whether there was one."""
        there: list[bool] = []

        def remove(value: bytes | None) -> None:
            there.append(value is not None)

        self._change(key, remove)
        return there[0]

    def num_keys(self) -> int:
        """Returns the number of values."""
        return len(self._items())

    def list_keys(self) -> list[str]:
        """Returns the keys."""
        return list(self._items())

    def multi_get(self, keys: list[str]) -> list[bytes]:
        """Returns the values of several keys, as get does."""
        self.wait(keys)
        items = self._items()
        return [items[key] for key in keys]

    def multi_set(self, keys: list[str], values: list[str | bytes]) -> None:
        """Sets several values."""
        for key, value in zip(keys, values):
            self.set(key, value)

    def has_extended_api(self) -> bool:
        """Returns True: there are append, multi_get and multi_set."""
        return True

    def set_timeout(self, timeout: timedelta) -> None:
        """Sets the limit of waits."""
        self.timeout = timeout

    def _address(self) -> str:
        """Returns a rendezvous of this machine for a new group."""
        with socket.socket() as free:
            free.bind(("", 0))
            return f"tcp://{self._host()}:{free.getsockname()[1]}"

    def _host(self) -> str:
        """Returns the name of this machine for the others."""
        return "127.0.0.1"


def encoded(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


class HashStore(Store):
    """A store for the threads of this process."""

    def __init__(self) -> None:
        super().__init__()
        self._values: dict[str, bytes] = {}
        self._changed = threading.Condition()

    def _change(self, key: str, change: Callable[[bytes | None], bytes | None]) -> bytes | None:
        with self._changed:
            value = change(self._values.get(key))
            if value is None:
                self._values.pop(key, None)
            else:
                self._values[key] = value
            self._changed.notify_all()
            return value

    def _items(self) -> dict[str, bytes]:
        with self._changed:
            return dict(self._values)


class FileStore(Store):
    """A store in a file that all processes can write and lock. The last one may remove it.

    world_size: accepted and ignored.
    """

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self.path = file_name

    def _locked(self, change: Callable[[dict[str, str]], Any]) -> Any:
        """Returns change(values) of the values in the file, which it may change."""
        import fcntl

        with open(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600), "r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            text = file.read()
            values = json.loads(text) if text else {}
            result = change(values)
            after = json.dumps(values)
            if after != text:
                file.seek(0)
                file.write(after)
                file.truncate()
                file.flush()
            return result

    def _change(self, key: str, change: Callable[[bytes | None], bytes | None]) -> bytes | None:
        def changed(values: dict[str, str]) -> bytes | None:
            before = values.get(key)
            value = change(None if before is None else before.encode("latin1"))
            if value is None:
                values.pop(key, None)
            else:
                values[key] = value.decode("latin1")
            return value

        return self._locked(changed)

    def _items(self) -> dict[str, bytes]:
        return self._locked(lambda values: {k: v.encode("latin1") for k, v in values.items()})


class PrefixStore(Store):
    """Another store whose keys begin with a prefix."""

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__(store.timeout)
        self.prefix, self.underlying_store = prefix + "/", store

    def _change(self, key: str, change: Callable[[bytes | None], bytes | None]) -> bytes | None:
        return self.underlying_store._change(self.prefix + key, change)

    def _items(self) -> dict[str, bytes]:
        n, items = len(self.prefix), self.underlying_store._items().items()
        return {key[n:]: value for key, value in items if key.startswith(self.prefix)}

    def _host(self) -> str:
        return self.underlying_store._host()


# ---- over TCP ----


def send_fields(to: socket.socket, *fields: bytes) -> None:
    """Sends a list of bytes: its length, then the length of each and the bytes."""
    lengths = b"".join(struct.pack("!I", len(field)) + field for field in fields)
    to.sendall(struct.pack("!I", len(fields)) + lengths)


def receive(source: socket.socket, n: int) -> bytes:
    """Returns n bytes. Raises ConnectionError if the other side has closed the connection."""
    parts: list[bytes] = []
    while n:
        part = source.recv(min(n, 1 << 16))
        if not part:
            raise ConnectionError("the connection was closed")
        parts.append(part)
        n -= len(part)
    return b"".join(parts)


def receive_fields(source: socket.socket) -> list[bytes]:
    """Receives what send_fields has sent."""
    (count,) = struct.unpack("!I", receive(source, 4))
    fields = []
    for _ in range(count):
        (length,) = struct.unpack("!I", receive(source, 4))
        if length > MAX_FIELD:
            raise ConnectionError("malformed message")
        fields.append(receive(source, length))
    return fields


class Server:
    """Serves a HashStore: a thread for each connection.

    A message is (b"items",), or (b"swap", key, marked expected value, marked new value), which
    answers the marked value and is done if it was the expected one.
    """

    def __init__(self, port: int) -> None:
        self.store = HashStore()
        self.listener = socket.create_server(("", port))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                while True:
                    send_fields(connection, *self._answer(receive_fields(connection)))
            except (OSError, struct.error):
                return

    def _answer(self, message: list[bytes]) -> list[bytes]:
        if message == [b"items"]:
            pairs = self.store._items().items()
            return [field for key, value in pairs for field in (key.encode(), value)]
        if len(message) != 4 or message[0] != b"swap":
            raise ConnectionError("malformed message")
        found: list[bytes | None] = []

        def swap(value: bytes | None) -> bytes | None:
            found.append(value)
            return unmarked(message[3]) if value == unmarked(message[2]) else value

        self.store._change(message[1].decode(), swap)
        return [marked(found[0])]


def marked(value: bytes | None) -> bytes:
    """Returns a value with a mark that tells it from no value."""
    return b"" if value is None else b"=" + value


def unmarked(field: bytes) -> bytes | None:
    return field[1:] if field else None


class TCPStore(Store):
    """A store that one process, the master, serves over TCP.

    port: of the master; 0: any, which the attribute `port` of the master has.
    world_size: the number of processes, for which the constructor waits with wait_for_workers.
    The other arguments are accepted and ignored. The connection is neither encrypted nor checked:
    use it in networks that you trust.
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = DEFAULT_TIMEOUT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        super().__init__(timeout)
        self.host, self.world_size = host_name, world_size
        self._server = Server(port) if is_master else None
        self.port = self._server.port if self._server else port
        self._connection = self._connected()
        self._lock = threading.Lock()
        if wait_for_workers and world_size:
            self.add("tt/workers", 1)
            self._await_workers(world_size)

    @property
    def is_master(self) -> bool:
        """Whether this process serves the store."""
        return self._server is not None

    def _connected(self) -> socket.socket:
        end = time.monotonic() + self.timeout.total_seconds()
        while True:
            try:
                connection = socket.create_connection((self.host, self.port), PAUSE * 500)
                connection.settimeout(None)
                return connection
            except OSError as error:
                if time.monotonic() >= end:
                    raise DistributedError(
                        f"TCPStore: no server at {self.host}:{self.port} after {self.timeout}"
                    ) from error
                time.sleep(PAUSE)

    def _await_workers(self, world_size: int) -> None:
        end = time.monotonic() + self.timeout.total_seconds()
        while self.add("tt/workers", 0) < world_size:
            if time.monotonic() >= end:
                raise DistributedError(f"TCPStore: fewer than {world_size} processes came")
            time.sleep(PAUSE)

    def _ask(self, *fields: bytes) -> list[bytes]:
        with self._lock:
            try:
                send_fields(self._connection, *fields)
                return receive_fields(self._connection)
            except OSError as error:
                raise DistributedError(
                    f"TCPStore: the server at {self.host}:{self.port} does not answer: {error}"
                ) from error

    def _change(self, key: str, change: Callable[[bytes | None], bytes | None]) -> bytes | None:
        expected: bytes | None = None
        while True:
            value = change(expected)
            name = key.encode()
            (answer,) = self._ask(b"swap", name, marked(expected), marked(value))
            found = unmarked(answer)
            if found == expected:
                return value
            expected = found

    def _items(self) -> dict[str, bytes]:
        fields = self._ask(b"items")
        return {k.decode(): v for k, v in zip(fields[::2], fields[1::2])}

    def num_keys(self) -> int:
        return len([key for key in self._items() if key != "tt/workers"])

    def clone(self) -> TCPStore:
        """Returns another connection to the server."""
        return TCPStore(self.host, self.port, None, False, self.timeout)

    def _host(self) -> str:
        return self.host


def rendezvous_of(store: Any, rank: int, size: int) -> tuple[int, int, str]:
    """Returns the world size, the rank and the address of a rendezvous that rank 0 chooses."""
    if not isinstance(store, Store):
        raise InvalidArgumentError(
            f"init_process_group: store is {type(store).__name__}: must be a Store of "
            "tt.distributed"
        )
    if size < 1 or not 0 <= rank < size:
        raise InvalidArgumentError(
            f"init_process_group: rank is {rank}, world_size {size}: a store needs both"
        )
    if size == 1:
        return size, rank, ""
    if rank == 0:
        store.set("tt/rendezvous", store._address())
    return size, rank, store.get("tt/rendezvous").decode()
