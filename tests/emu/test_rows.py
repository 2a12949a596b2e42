"""Which rows of a device's table have a CUDA kernel. cpu_rows.txt lists the others, which devices
lack: no operator launches them there. A row that gets a kernel leaves the list."""

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]


def names(path, macro):
    text = (ROOT / path).read_text()
    found = re.findall(rf"^{macro}\((\w+)[,)]", text, re.M)
    for included in re.findall(r'^#include "(.*)"', text, re.M):
        found += names(included, "TT_ELEMENTWISE")
    return found


def test_rows():
    rows = names("src/plan/gen/kernel_rows.inc", "TT_KERNEL_ROW")
    own = names("kernels/cuda/rows.inc", "TT_CUDA_ROW(?:_WORKSPACE)?")
    listed = (ROOT / "tests/emu/cpu_rows.txt").read_text().split()
    print(f"{len(set(own))} of {len(rows)} rows have a CUDA kernel")
    assert set(own) <= set(rows)
    assert listed == [name for name in rows if name not in own]
