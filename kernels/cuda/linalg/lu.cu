// lu_factor and lu_solve.
#include "kernels/functors/linalg/lu.h"

#include "kernels/cuda/linalg/cublas.h"
#include "kernels/cuda/linalg/cusolver.h"
#include "kernels/cuda/linalg/dense.h"
#include "kernels/cuda/linalg/small.h"

namespace TT_NS {
namespace {

struct Pivot {
  double size;
  int32_t position, lane;
};

// LU with the bits of functors/linalg. Rows stay where they are; what moves is
//   position: of a lane: that of its row    holder: of lane i: the lane whose row is at i
__global__ void __launch_bounds__(kSmallWarps* kWarp)
    small_lu(const __grid_constant__ MatrixPlan p) {
  const int lane = warp_lane();
  const int64_t at = small_matrix();
  if (at >= p.run.units[0]) return;
  const int m = int(p.m);
  const int n = int(p.n);
  const int steps = m < n ? m : n;
  double* const a = matrix_of<double>(p.a, at, p.m * p.n);
  double u[kWarp];
#pragma unroll
  for (int j = 0; j < kWarp; j++) u[j] = lane < m && j < n ? a[lane * n + j] : 0;
  int32_t position = lane;
  int32_t holder = lane;
  int32_t pivot_of_lane = 0;
  int32_t info = 0;
  bool odd = false;
#pragma unroll
  for (int k = 0; k < kWarp; k++) {
    if (k >= steps) continue;
    const double size = magnitude(u[k]);
    const bool counts = lane < m && position >= k && size == size;
    Pivot best = {counts ? size : -1, position, lane};
    best = combine_warp(best, [](const Pivot& x, const Pivot& y) {
      return y.size > x.size || (y.size == x.size && y.position < x.position) ? y : x;
    });
    best = shuffle_from(best, 0);
    const int32_t top = shuffle_from(holder, k);
    const double top_size = shuffle_from(size, top);
    if (top_size != top_size || best.size < 0) best = {top_size, k, top};
    if (lane == k) pivot_of_lane = best.position + 1;
    if (best.position != k) {
      odd = !odd;
      if (lane == top) position = best.position;
      if (lane == best.lane) position = k;
      if (lane == k) holder = best.lane;
      if (lane == best.position) holder = top;
    }
    const double pivot = shuffle_from(u[k], best.lane);
    if (pivot == 0) {
      info = info ? info : k + 1;
      continue;
    }
    const bool below = position > k;
    const double factor = u[k] * (1 / pivot);
    if (below) u[k] = factor;
#pragma unroll
    for (int j = k + 1; j < kWarp; j++) {
      const double x = shuffle_from(u[j], best.lane);
      if (below) u[j] = u[j] - factor * x;
    }
  }
#pragma unroll
  for (int j = 0; j < kWarp; j++)
    if (lane < m && j < n) a[position * n + j] = u[j];
  if (lane < steps) p.pivots[at * steps + lane] = pivot_of_lane;
  __syncwarp();
  if (lane != 0) return;
  p.info[at] = info;
  if (p.det) write_determinant(a, n, odd, p.det + at * 6);
}

// The row that is exchanged for that of the lane, by the pivots 0, 1, … or the last one first.
__device__ __forceinline__ int32_t exchanged_row(const int32_t* pivots, int n, bool from_last) {
  const int lane = warp_lane();
  const int32_t own = lane < n ? pivots[lane] - 1 : -1;
  int32_t row = lane;
  for (int step = 0; step < n; step++) {
    const int i = from_last ? n - 1 - step : step;
    const int32_t other = shuffle_from(own, i);
    if (other < 0 || other >= n) continue;
    const int32_t row_i = shuffle_from(row, i);
    const int32_t row_other = shuffle_from(row, other);
    if (lane == i) row = row_other;
    if (lane == other) row = row_i;
  }
  return row;
}
template <int kColumns> __global__ void __launch_bounds__(kSmallWarps* kWarp)
    small_lu_solve(const __grid_constant__ MatrixPlan p) {
  const int lane = warp_lane();
  const int64_t at = small_matrix();
  if (at >= p.run.units[0]) return;
  const int n = int(p.n);
  const int k = int(p.k);
  const double* const a = matrix_of<double>(p.a, at, p.n * p.n);
  double* const x = matrix_of<double>(p.b, at, p.n * p.k);
  double u[kWarp];
#pragma unroll
  for (int j = 0; j < kWarp; j++) {
    const int source = p.adjoint ? j * n + lane : lane * n + j;
    u[j] = lane < n && j < n ? a[source] : 0;
  }
  const double inverse = inverse_pivot(u);
  const int32_t row = exchanged_row(p.pivots + at * n, n, p.adjoint);
  for (int first = 0; first < k; first += kColumns) {
    double b[kColumns];
#pragma unroll
    for (int c = 0; c < kColumns; c++) {
      const bool is_here = lane < n && first + c < k;
      b[c] = is_here ? x[(p.adjoint ? lane : row) * k + first + c] : 0;
    }
    substitute<true>(b, u, n, !p.adjoint, inverse);
    substitute<false>(b, u, n, p.adjoint, inverse);
    __syncwarp();  // all have read what others write
#pragma unroll
    for (int c = 0; c < kColumns; c++) {
      const double result = p.adjoint ? shuffle_from(b[c], row) : b[c];
      if (lane < n && first + c < k) x[lane * k + first + c] = result;
    }
  }
}

}  // namespace

namespace cuda {

int32_t lu_factor(const void* plan, void* stream, void* workspace) {
  const MatrixPlan& p = *static_cast<const MatrixPlan*>(plan);
  if (cublas::serves(p)) return cublas::lu_factor(p, stream, workspace);
  if (cusolver::serves(cusolver::kLu, p)) return cusolver::run(cusolver::kLu, p, stream, workspace);
  if (is_small(p)) return launch_small(small_lu, p, stream);
  return launch_matrices<LuFactor>(plan, stream);
}
size_t lu_factor_workspace(const void* plan) {
  const MatrixPlan& p = *static_cast<const MatrixPlan*>(plan);
  return cublas::serves(p) ? cublas::workspace_bytes(p)
                           : cusolver::workspace_bytes(cusolver::kLu, p);
}
int32_t lu_solve(const void* plan, void* stream, void* workspace) {
  const MatrixPlan& p = *static_cast<const MatrixPlan*>(plan);
  if (cublas::serves(p)) return cublas::lu_solve(p, stream, workspace);
  if (cusolver::serves(cusolver::kLuSolve, p))
    return cusolver::run(cusolver::kLuSolve, p, stream, workspace);
  if (is_small(p)) return launch_small(p.k == 1 ? small_lu_solve<1> : small_lu_solve<4>, p, stream);
  return launch_matrices<LuSolve>(plan, stream);
}
size_t lu_solve_workspace(const void* plan) {
  const MatrixPlan& p = *static_cast<const MatrixPlan*>(plan);
  return cublas::serves(p) ? cublas::workspace_bytes(p)
                           : cusolver::workspace_bytes(cusolver::kLuSolve, p);
}

}  // namespace cuda
}  // namespace TT_NS
