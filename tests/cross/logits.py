"""Compares logits of train_digits on a target with those of the host: little-endian float32."""
import struct
from pathlib import Path


def floats(path):
    data = Path(path).read_bytes()
    return struct.unpack(f"<{len(data) // 4}f", data)


def distance(want_path, got_path):
    """The largest difference, in units of the last place of the largest logit; 0: equal bits."""
    want, got = floats(want_path), floats(got_path)
    if len(want) != len(got) or not want:
        raise ValueError(f"{len(got)} logits instead of {len(want)}")
    if want == got:
        return 0
    scale = max(abs(x) for x in want) * 2.0**-23
    return max(abs(a - b) for a, b in zip(want, got)) / scale
