"""Streams and events of CUDA devices."""
from __future__ import annotations

from ctypes import byref, c_double, c_int32, c_void_p
from typing import Any

from .._convert import place
from .._lib import Handle, call, finalizer, quick
from .._types import device as Device
from .devices import required
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
    """A queue of work on a device. Work of a stream runs in order, concurrently with other streams.

    priority: streams with lower values run first. Operators wait automatically for the streams
    that wrote their arguments, and memory is reused only after all streams that use it have
    finished; record_stream does nothing.
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
        """Returns whether all work of the stream is complete."""
        done = c_int32()
        call("tt_stream_query", self.handle, byref(done))
        return bool(done.value)

    def synchronize(self) -> None:
        """Waits for the work of the stream. Raises the error of work that failed."""
        call("tt_stream_synchronize", self.handle)

    def wait_stream(self, stream: Stream) -> None:
        """Makes later work wait for the work queued so far on the other stream."""
        call("tt_stream_wait_stream", self.handle, stream.handle)

    def wait_event(self, event: Event) -> None:
        """Makes later work wait for the event."""
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


class ExternalStream(Stream):
    """A stream of the application or of another library.

    stream_ptr: the address of its cudaStream_t, which must live longer than this object.
    """

    def __init__(self, stream_ptr: int, device: AnyDevice = None, **kwargs: Any) -> None:
        self.device = required("ExternalStream", device)
        self.priority = 0
        self.handle = stream_from("tt_stream_import", place(self.device), c_void_p(stream_ptr))


class Event:
    """A point in the work of a stream.

    enable_timing: allows elapsed_time. blocking is ignored; interprocess must be False.
    """

    handle: EventHandle | None

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        if interprocess:
            raise NotImplementedError("cuda.Event: interprocess is True: events are of one process")
        self.enable_timing = bool(enable_timing)
        self.handle = None  # created on the device of the first stream that records it

    def handle_on(self, device: Device) -> EventHandle:
        if self.handle is None:
            handle = EventHandle.__new__(EventHandle)
            call("tt_event_new", place(device), c_int32(self.enable_timing), byref(handle))
            self.handle = handle
        return self.handle

    def record(self, stream: Stream | None = None) -> None:
        """Records the event on the stream, by default the current one, after its queued work."""
        stream = current_stream() if stream is None else stream
        call("tt_event_record", self.handle_on(stream.device), stream.handle)

    def wait(self, stream: Stream | None = None) -> None:
        """Makes later work of the stream, by default the current one, wait for the event."""
        if self.handle is not None:
            (current_stream() if stream is None else stream).wait_event(self)

    def query(self) -> bool:
        """Returns whether the event is complete. True if it was never recorded."""
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
        """Returns the milliseconds from this event to end_event. Both must be complete."""
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
    """Returns the current stream of this thread. Raises DeviceError if there is no such device."""
    return named("current_stream", "tt_stream_current", device)


def default_stream(device: AnyDevice = None) -> Stream:
    """Returns the default stream of a device. Raises DeviceError if there is no such device."""
    return named("default_stream", "tt_stream_default", device)


def set_stream(stream: Stream | None) -> None:
    """Sets the current stream of this thread; None does nothing."""
    if stream is not None:
        call("tt_stream_set", stream.handle)


class stream:
    """Sets the current stream of this thread for a block; None does nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(self, *_: object) -> None:
        if self.stream is not None:
            self.stream.__exit__()


StreamContext = stream
