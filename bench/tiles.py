"""Asks Linux for AMX's tiles, where a processor has them; import it before torch.

tt asks at its first product, and Linux refuses tiles to a process with small signal stacks. torch
makes one when it is imported (docs/platforms.md, AMX).
"""
import tt

_matrix = tt.ones(64, 64, dtype=tt.bfloat16)
_matrix @ _matrix
