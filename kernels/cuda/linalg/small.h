// Real matrices of at most 32 rows and columns: a warp for each, which keeps them in registers.
//   u: of lane i the elements of row i, or of column i for a transpose
#pragma once

#include "kernels/cuda/rows.h"
#include "kernels/cuda/warp.h"
#include "kernels/functors/linalg/dense.h"

namespace TT_NS {
namespace {

constexpr int kSmallWarps = 4;  // matrices of a block

inline bool is_small(const MatrixPlan& p) {
  return !p.complex && p.m <= kWarp && p.n <= kWarp && p.k <= kWarp;
}
inline int32_t launch_small(void (*kernel)(MatrixPlan), const MatrixPlan& p, void* stream) {
  const int64_t batch = p.run.units[0];
  if (batch == 0) return TT_OK;
  return device::launch(kernel, unsigned(ceil_div(batch, int64_t(kSmallWarps))),
                        kSmallWarps * kWarp, 0, stream, p);
}
__device__ __forceinline__ int64_t small_matrix() {
  return int64_t(blockIdx.x) * kSmallWarps + threadIdx.x / kWarp;
}
__device__ __forceinline__ int warp_lane() { return int(threadIdx.x) % kWarp; }

// 1 over the diagonal element of the lane.
__device__ __forceinline__ double inverse_pivot(const double (&u)[kWarp]) {
  double pivot = 1;
#pragma unroll
  for (int j = 0; j < kWarp; j++) pivot = warp_lane() == j ? u[j] : pivot;
  return 1 / pivot;
}
// Solves for kColumns right-hand sides, of which lane i has row i, with the triangle of n rows
// below the diagonal, or above it. inverse: of the lane's diagonal element; a `unit` has ones.
template <bool kLower, int kColumns>
__device__ __forceinline__ void substitute(double (&b)[kColumns], const double (&u)[kWarp], int n,
                                           bool unit, double inverse) {
  const int lane = warp_lane();
#pragma unroll
  for (int step = 0; step < kWarp; step++) {
    const int j = kLower ? step : kWarp - 1 - step;
    if (j >= n) continue;
    const bool waits = kLower ? lane > j : lane < j;
#pragma unroll
    for (int c = 0; c < kColumns; c++) {
      if (lane == j && !unit) b[c] = b[c] * inverse;
      const double x = shuffle_from(b[c], j);
      if (waits) b[c] = b[c] - u[j] * x;
    }
  }
}

}  // namespace
}  // namespace TT_NS
