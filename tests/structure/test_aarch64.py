"""The inner loops of products and convolutions on 64-bit ARM keep their accumulators in registers
and are mostly multiplications. Needs the cross compiler; docs/benchmarks/aarch64-mca.md has
predicted cycles."""
import os
import re
import shutil
import sys

import pytest
from common import ROOT

sys.path.insert(0, str(ROOT / "bench"))
import mca  # noqa: E402

pytestmark = pytest.mark.skipif(
    not shutil.which(mca.COMPILER), reason="no cross compiler for 64-bit ARM"
)


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    return tmp_path_factory.mktemp("aarch64")


def check(loop, most):
    assert mca.fmas(loop) >= 16
    assert mca.stack_accesses(loop) == 0
    assert len(loop) / mca.fmas(loop) <= most


@pytest.mark.parametrize("name, source, function", mca.LOOPS)
def test_loop(objects, name, source, function):
    check(mca.inner_loop(mca.compile_kernel(source, objects), function), 2)


@pytest.mark.parametrize("name, source, function", mca.SVE_LOOPS)
def test_loop_of_sve(objects, name, source, function):
    if "TT_TEST_SHARE" in os.environ and not name.startswith("small"):
        pytest.skip("compiling all of them takes 8 s")
    check(mca.inner_loop(mca.compile_kernel(source, objects, sve=True), function), 3)


# gcc 12 converts the lanes of a vector one by one unless an intrinsic says otherwise.
WIDTHS = """#include "kernels/cpu/simd/four_doubles.h"
TT_ENTRY_BEGIN
void widen(double* y, const float* x) {
  const D4 v = widened(loaded<S4>(x));
  put(y, v.lo);
  put(y + 2, v.hi);
}
void narrow(float* y, const double* x) { put(y, narrowed({loaded<D2>(x), loaded<D2>(x + 2)})); }
TT_ENTRY_END
"""


def test_four_floats_are_converted_as_vectors(objects):
    source = objects / "widths.cpp"
    source.write_text(WIDTHS)
    code = mca.disassembly(mca.compile_kernel(source, objects))
    for instruction in ("fcvtl", "fcvtl2", "fcvtn", "fcvtn2"):
        assert re.search(rf"\t{instruction}\t", code), instruction
    assert not re.search(r"\tfcvt\t", code)
