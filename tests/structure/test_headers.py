"""The public headers in every language that the ABI promises, by both compilers, without a
warning."""
import shutil

import pytest
from common import ROOT, run

COMPILERS = [("gcc", "g++"), ("clang", "clang++")]
MODES = ["c99", "c11", "c17", "c++98", "c++11", "c++17", "c++20"]
FLAGS = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only"]


@pytest.mark.parametrize("header", ["tt.h", "tt_types.h", "tt_ops.h", "tt_nn.h", "tt_optim.h"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("cc, cxx", COMPILERS, ids=lambda c: c)
def test_header(header, mode, cc, cxx, tmp_path):
    if not shutil.which(cc):
        pytest.skip(f"no {cc} here")
    source = tmp_path / ("use.cpp" if "++" in mode else "use.c")
    source.write_text(
        f'#include "{header}"\n#include "{header}"\nint main(void) {{ tt_scalar s; (void)s; return TT_OK; }}\n'
    )
    # long long is no part of C++98, and UINT64_C of the C library ends in ULL or UL as the platform
    # has it
    extra = ["-Wno-long-long"] if mode == "c++98" else []
    run(
        cxx if "++" in mode else cc, f"-std={mode}", *FLAGS, *extra, f"-I{ROOT / 'include'}", source
    )
