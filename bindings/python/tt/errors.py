"""Exceptions: each is a RuntimeError and, where Python has one, its natural class."""


class TtError(RuntimeError):
    """A failed call of tt. code, op, arg, arg_index and shapes say what was wrong; __cause__ what a callback had met."""
    code, op, arg, arg_index, shapes = 0, "", "", -1, ()


class InvalidArgumentError(TtError, ValueError):
    """A value outside its domain."""


class ShapeError(TtError, ValueError):
    """Shapes that do not fit each other or the operator."""


class DtypeError(TtError):
    """A dtype that the operator does not take."""


class DeviceError(TtError):
    """Tensors on different devices, or a device that is not there."""


class OutOfRangeError(TtError, IndexError):
    """An index or a dim out of range."""


class OutOfMemoryError(TtError, MemoryError):
    """The allocator or the memory limit said no."""


class FileError(TtError, OSError):
    """Reading or writing failed."""


class FormatError(TtError, ValueError):
    """A file that is not what it should be."""


class UnimplementedError(TtError, NotImplementedError):
    """A valid call that tt has no kernel or formula for."""


class AutogradError(TtError):
    """A graph that was freed, a saved tensor that was overwritten, an in-place write to a leaf …"""


class CancelledError(TtError):
    """The ctx's cancel token was set."""


class CallbackError(TtError):
    """A callback of the host failed."""


# tt_status -> class; all others are TtError itself
CLASSES = {1: InvalidArgumentError, 2: ShapeError, 3: DtypeError, 4: DeviceError, 5: OutOfRangeError, 6: OutOfMemoryError, 7: FileError,
           8: FormatError, 9: UnimplementedError, 10: InvalidArgumentError, 13: AutogradError, 14: CancelledError, 15: CallbackError}
