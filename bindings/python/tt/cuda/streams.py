"""Streams and events of CUDA devices."""
from __future__ import annotations

from ctypes import byref, c_double, c_int32

from .._convert import place
from .._lib import Handle, call, finalizer, quick
from .._types import device as Device
from .devices import required

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .devices import AnyDevice


class StreamHandle(Handle):
    """Owns a tt_stream."""

    __slots__ = ()
    __del__ = finalizer(quick.tt_stream_release)


class EventHandle(Handle):
    """Owns a tt_event."""

    __slots__ = ()
    __del__ = finalizer(quick.tt_event_release)


def stream_from(name: str, *args: Any) -> StreamHandle:
    handle = StreamHandle.__new__(StreamHandle)
    call(name, *args, byref(handle))
    return handle


class Stream:
    """A queue of work on a device, which runs in order beside that of other streams.

    priority: lower values are served first. Operators wait by themselves for the streams that wrote
    their arguments, and memory is reused only after all streams that use it; record_stream has
    nothing to do.
    """

    handle: StreamHandle
    device: Device

    def __init__(self, device: AnyDevice = None, priority: int = 0, **kwargs: Any) -> None:
        self.device = required("Stream", device)
        self.priority = priority
        self.handle = stream_from("tt_stream_new", place(self.device), c_int32(priority))

    @property
    def cuda_stream(self) -> int:
        """The address of the cudaStream_t."""
        return int(quick.tt_stream_handle(self.handle) or 0)

    def query(self) -> bool:
        """Returns whether no work is left."""
        done = c_int32()
        call("tt_stream_query", self.handle, byref(done))
        return bool(done.value)

    def synchronize(self) -> None:
        """Waits for the work of the stream, and raises the error of work that failed."""
        call("tt_stream_synchronize", self.handle)

    def wait_stream(self, stream: Stream) -> None:
        """Lets later work wait for what the other stream has to do so far."""
        call("tt_stream_wait_stream", self.handle, stream.handle)

    def wait_event(self, event: Event) -> None:
        """Lets later work wait for the event."""
        call("tt_stream_wait_event", self.handle, event.handle)

    def record_event(self, event: Event | None = None) -> Event:
        """Records the event, or a new one, and returns it."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        return self.device == other.device and self.cuda_stream == other.cuda_stream

    def __hash__(self) -> int:
        return hash((self.cuda_stream, self.device))

    def __repr__(self) -> str:
        return f"<tt.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"

    def __enter__(self) -> Stream:
        self.outer = current_stream(self.device)
        set_stream(self)
        return self

    def __exit__(self, *_: object) -> None:
        set_stream(self.outer)


class Event:
    """A point in the work of a stream.

    enable_timing: elapsed_time compares the event with another one. blocking and interprocess are
    accepted; the latter must be False.
    """

    handle: EventHandle | None

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        if interprocess:
            raise NotImplementedError("cuda.Event: interprocess is True: events are of one process")
        self.enable_timing = bool(enable_timing)
        self.handle = None  # made on the device of the first stream that records it

    def handle_on(self, device: Device) -> EventHandle:
        if self.handle is None:
            handle = EventHandle.__new__(EventHandle)
            call("tt_event_new", place(device), c_int32(self.enable_timing), byref(handle))
            self.handle = handle
        return self.handle

    def record(self, stream: Stream | None = None) -> None:
        """The event happens when the stream, or the current one, has done its present work."""
        stream = current_stream() if stream is None else stream
        call("tt_event_record", self.handle_on(stream.device), stream.handle)

    def wait(self, stream: Stream | None = None) -> None:
        """Lets later work of the stream, or of the current one, wait for the event."""
        if self.handle is not None:
            (current_stream() if stream is None else stream).wait_event(self)

    def query(self) -> bool:
        """Returns whether the event has happened; one that was never recorded has."""
        if self.handle is None:
            return True
        done = c_int32()
        call("tt_event_query", self.handle, byref(done))
        return bool(done.value)

    def synchronize(self) -> None:
        """Waits for the event."""
        if self.handle is not None:
            call("tt_event_synchronize", self.handle)

    def elapsed_time(self, end_event: Event) -> float:
        """Returns the milliseconds from this event to another. Both must have happened."""
        if self.handle is None or end_event.handle is None:
            raise ValueError("cuda.Event.elapsed_time: both events must be recorded first")
        milliseconds = c_double()
        call("tt_event_elapsed", self.handle, end_event.handle, byref(milliseconds))
        return milliseconds.value


def named(what: str, name: str, device: AnyDevice) -> Stream:
    stream = Stream.__new__(Stream)
    stream.device, stream.priority = required(what, device), 0
    stream.handle = stream_from(name, place(stream.device))
    return stream


def current_stream(device: AnyDevice = None) -> Stream:
    """Returns the stream on which this thread computes. Raises DeviceError without the device."""
    return named("current_stream", "tt_stream_current", device)


def default_stream(device: AnyDevice = None) -> Stream:
    """Returns the device's own stream. Raises DeviceError without the device."""
    return named("default_stream", "tt_stream_default", device)


def set_stream(stream: Stream | None) -> None:
    """Lets this thread compute on the stream from now on; None changes nothing."""
    if stream is not None:
        call("tt_stream_set", stream.handle)


class stream:
    """A block in which this thread computes on a stream; None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(self, *_: object) -> None:
        if self.stream is not None:
            self.stream.__exit__()


StreamContext = stream
