"""Settings of PyTorch's compiler that programs set. None of them changes what tt does."""
from __future__ import annotations

from types import SimpleNamespace

fx_graph_cache = freezing = max_autotune = epilogue_fusion = coordinate_descent_tuning = False
fallback_random = shape_padding = cpp_wrapper = reorder_for_compute_comm_overlap = False
force_fuse_int_mm_with_mul = use_mixed_mm = max_autotune_gemm = max_autotune_pointwise = False
conv_1x1_as_mm = triton_kernel_cache = False
triton = SimpleNamespace(cudagraphs=False, unique_kernel_names=False, cudagraph_trees=False)
cpp = SimpleNamespace(threads=-1, enable_kernel_profile=False)
