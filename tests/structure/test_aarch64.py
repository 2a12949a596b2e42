"""The inner loops of products and convolutions on ARM keep their accumulators in registers
and are mostly multiplications. Needs the cross compiler; docs/benchmarks/aarch64-mca.md has
predicted cycles. CI compiles them with every second commit: with the others the kernels run
(test_platforms.py)."""
import os
import shutil
import sys

import pytest
from common import ROOT, left_out_in_turn

sys.path.insert(0, str(ROOT / "bench"))
import mca  # noqa: E402

pytestmark = [
    pytest.mark.skipif(not shutil.which(mca.COMPILER), reason="no cross compiler for 64-bit ARM"),
    pytest.mark.skipif(left_out_in_turn(1, 2), reason="takes 13 s: every second commit"),
]


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


@pytest.mark.skipif(not shutil.which(mca.COMPILER_32), reason="no compiler for 32-bit ARM")
@pytest.mark.parametrize("name, source, function", mca.NEON_LOOPS)
def test_loop_of_neon(objects, name, source, function):
    if "TT_TEST_SHARE" in os.environ and not name.startswith("small"):
        pytest.skip("compiling all of them takes 11 s")
    loop = mca.inner_loop(mca.compile_neon(source, objects), function, mca.OBJDUMP_32)
    assert mca.fmas(loop) == 8
    assert not [text for text in loop if text.startswith("v") and "[sp" in text]
    assert len(loop) / mca.fmas(loop) <= 4


def test_products_of_bytes_by_sdot(objects):
    if "TT_TEST_SHARE" in os.environ:
        pytest.skip("CI reads the loop of USMMLA, which takes its place")
    loop = mca.inner_loop(mca.compile_kernel("quant/int8_vnni.cpp", objects), "int8_tiles_vnni")
    check(loop, 2.25)
