// cholesky and solve_triangular.
#include "kernels/functors/linalg/cholesky.h"

#include "kernels/cuda/linalg/cusolver.h"
#include "kernels/cuda/linalg/dense.h"
#include "kernels/cuda/linalg/small.h"

namespace TT_NS {
namespace {

// Cholesky with the bits of functors/linalg.
//   u: of lane i the elements (0 … i, i) of the upper triangle, which becomes U row by row
__global__ void __launch_bounds__(kSmallWarps* kWarp)
    small_cholesky(const __grid_constant__ MatrixPlan p) {
  const int lane = warp_lane();
  const int64_t at = small_matrix();
  if (at >= p.run.units[0]) return;
  const int n = int(p.n);
  double* const a = matrix_of<double>(p.a, at, p.n * p.n);
  const auto place = [&](int j) { return p.upper ? j * n + lane : lane * n + j; };
  double u[kWarp];
#pragma unroll
  for (int j = 0; j < kWarp; j++) u[j] = j <= lane && lane < n ? a[place(j)] : 0;
  int32_t info = 0;
#pragma unroll
  for (int k = 0; k < kWarp; k++) {
    if (k >= n || info) continue;
    const double square = shuffle_from(u[k], k);
    if (!(square > 0)) {
      info = k + 1;
      continue;
    }
    const double root = math::sqrt(square);
    u[k] = lane == k ? root : u[k] * (1 / root);
#pragma unroll
    for (int j = k + 1; j < kWarp; j++) u[j] = u[j] - shuffle_from(u[k], j) * u[k];
  }
#pragma unroll
  for (int j = 0; j < kWarp; j++)
    if (j < n && lane < n) a[place(j)] = j <= lane ? u[j] : 0;
  if (lane == 0) p.info[at] = info;
}

template <int kColumns> __global__ void __launch_bounds__(kSmallWarps* kWarp)
    small_triangular(const __grid_constant__ MatrixPlan p) {
  const int lane = warp_lane();
  const int64_t at = small_matrix();
  if (at >= p.run.units[0]) return;
  const int n = int(p.n);
  const int k = int(p.k);
  const double* const a = matrix_of<double>(p.a, at, p.n * p.n);
  double* const x = matrix_of<double>(p.b, at, p.n * p.k) + lane * k;
  double u[kWarp];
#pragma unroll
  for (int j = 0; j < kWarp; j++) u[j] = lane < n && j < n ? a[lane * n + j] : 0;
  const double inverse = inverse_pivot(u);
  for (int first = 0; first < k; first += kColumns) {
    double b[kColumns];
#pragma unroll
    for (int c = 0; c < kColumns; c++) b[c] = lane < n && first + c < k ? x[first + c] : 0;
    if (p.upper) substitute<false>(b, u, n, p.unit, inverse);
    else substitute<true>(b, u, n, p.unit, inverse);
#pragma unroll
    for (int c = 0; c < kColumns; c++)
      if (lane < n && first + c < k) x[first + c] = b[c];
  }
}

}  // namespace

namespace cuda {

int32_t cholesky(const void* plan, void* stream, void* workspace) {
  const MatrixPlan& p = *static_cast<const MatrixPlan*>(plan);
  if (cusolver::serves(cusolver::kCholesky, p))
    return cusolver::run(cusolver::kCholesky, p, stream, workspace);
  if (is_small(p)) return launch_small(small_cholesky, p, stream);
  return launch_matrices<Cholesky>(plan, stream);
}
size_t cholesky_workspace(const void* plan) {
  return cusolver::workspace_bytes(cusolver::kCholesky, *static_cast<const MatrixPlan*>(plan));
}
int32_t solve_triangular(const void* plan, void* stream, void*) {
  const MatrixPlan& p = *static_cast<const MatrixPlan*>(plan);
  if (is_small(p))
    return launch_small(p.k == 1 ? small_triangular<1> : small_triangular<4>, p, stream);
  return launch_matrices<SolveTriangular>(plan, stream);
}

}  // namespace cuda
}  // namespace TT_NS
