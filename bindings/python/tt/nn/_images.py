"""Pooling as nn.functional has it: return_indices chooses the form, and None keeps a size of the input."""
from .. import _ops
from .._tensor import Tensor


def _pooling(name):
    """The function that gives values, or values and their indices."""
    values, both = getattr(_ops, name), getattr(_ops, name + "_with_indices")

    def pool(
        input,
        kernel_size,
        stride=None,
        padding=0,
        dilation=1,
        ceil_mode=False,
        return_indices=False,
    ):
        return (
            tuple(both(input, kernel_size, stride, padding, dilation, ceil_mode))
            if return_indices
            else values(input, kernel_size, stride, padding, dilation, ceil_mode)
        )

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = f"{values.__doc__}  return_indices: gives the positions too\n    "
    return pool


max_pool1d, max_pool2d = _pooling("max_pool1d"), _pooling("max_pool2d")


def _sizes(input, output_size):
    """None stands for the input's own size."""
    if (
        not isinstance(output_size, (tuple, list))
        or not isinstance(input, Tensor)
        or None not in output_size
    ):
        return output_size
    own = input.shape[-len(output_size) :]
    return tuple(o if size is None else size for size, o in zip(output_size, own))


def _adaptive_max(name):
    both = getattr(_ops, name)

    def pool(input, output_size, return_indices=False):
        out, indices = both(input, _sizes(input, output_size))
        return (out, indices) if return_indices else out

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = f"{both.__doc__}  return_indices: gives the positions too\n    "
    return pool


adaptive_max_pool1d, adaptive_max_pool2d = _adaptive_max("adaptive_max_pool1d"), _adaptive_max(
    "adaptive_max_pool2d"
)


def adaptive_avg_pool2d(input, output_size):
    return _ops.adaptive_avg_pool2d(input, _sizes(input, output_size))


adaptive_avg_pool2d.__doc__ = _ops.adaptive_avg_pool2d.__doc__


def interpolate(
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    scales = {}
    if isinstance(scale_factor, (tuple, list)):
        dims = input.dim() - 2 if isinstance(input, Tensor) else len(scale_factor)
        if len(scale_factor) != dims:
            raise ValueError(
                f"interpolate: scale_factor has {len(scale_factor)} numbers: must be one number or {dims}"
            )
        scales = dict(zip(("scale_w", "scale_h", "scale_d"), reversed(scale_factor)))
        scale_factor = None
    return _ops.interpolate(
        input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias, **scales
    )


interpolate.__doc__ = _ops.interpolate.__doc__
