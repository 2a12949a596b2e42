"""Functions of neural networks, by their PyTorch names."""
from .. import _ops

__all__ = sorted([*_ops.PLACES["nn.functional"].split(), "upsample_bilinear", "upsample_nearest"])


def __getattr__(name):
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = _ops.find("nn.functional", name)
    return found


def __dir__():
    return __all__


def upsample_nearest(input, size=None, scale_factor=None):
    """interpolate with mode="nearest"."""
    return _ops.find("nn.functional", "interpolate")(input, size, scale_factor, "nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    """interpolate with mode="bilinear" and align_corners=True."""
    return _ops.find("nn.functional", "interpolate")(
        input, size, scale_factor, "bilinear", align_corners=True
    )
