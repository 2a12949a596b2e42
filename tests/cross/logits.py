"""Compares logits of train_digits on a target with those of the host: little-endian float32.

    logits.py WANT GOT [UNITS]

Prints "equal", or the largest difference in units of the last place of the largest logit. Fails if
it is more than UNITS, by default 0.
"""
import struct
import sys
from pathlib import Path


def floats(path):
    data = Path(path).read_bytes()
    return struct.unpack(f"<{len(data) // 4}f", data)


def main():
    want, got = floats(sys.argv[1]), floats(sys.argv[2])
    allowed = float(sys.argv[3]) if len(sys.argv) > 3 else 0
    if len(want) != len(got) or not want:
        sys.exit(f"{len(got)} logits instead of {len(want)}")
    if want == got:
        print("equal")
        return
    scale = max(abs(x) for x in want) * 2.0**-23
    units = max(abs(a - b) for a, b in zip(want, got)) / scale
    print(f"{units:.1f} units")
    if not units <= allowed:
        sys.exit(1)


main()
