"""The instruction set of the CPU's kernels."""
from .. import runtime

__all__ = ["get_cpu_capability"]
NAMES = {
    "baseline": "DEFAULT",
    "avx2": "AVX2",
    "avx512": "AVX512",
    "sve256": "SVE256",
    "neon": "NEON",
}


def get_cpu_capability() -> str:
    """Returns "DEFAULT", "AVX2", "AVX512", "SVE256" or "NEON"."""
    return NAMES[runtime.instruction_set()]
