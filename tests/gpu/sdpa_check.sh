#!/bin/sh
# From the root of the repository: compiles sdpa_check and runs it; with an argument only compiles.
set -e
nvcc -std=c++20 -O2 -fmad=false -gencode arch=compute_90a,code=sm_90a -I. -Isrc -Iinclude \
  tests/gpu/sdpa_check.cu kernels/cuda/attention/*.cu -o "${1:-sdpa_check}"
[ -n "$1" ] || ./sdpa_check
