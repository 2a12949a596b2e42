"""The exceptions of Python and Julia: status without TT_ -> class. What each is about: the comments
of tt_status in tt_types.h."""

EXCEPTIONS = {
    "INVALID_ARG": "InvalidArgumentError",
    "SHAPE": "ShapeError",
    "DTYPE": "DtypeError",
    "DEVICE": "DeviceError",
    "INDEX": "OutOfRangeError",
    "OOM": "OutOfMemoryError",
    "IO": "FileError",
    "FORMAT": "FormatError",
    "NOT_IMPLEMENTED": "UnimplementedError",
    "AUTOGRAD": "AutogradError",
    "CANCELLED": "CancelledError",
    "CALLBACK": "CallbackError",
    "LINALG": "LinAlgError",
    "DISTRIBUTED": "DistributedError",
}


def exception(status):
    return EXCEPTIONS.get(status, f"TT_{status}")
