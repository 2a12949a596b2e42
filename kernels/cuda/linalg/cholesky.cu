// cholesky and solve_triangular.
#include "kernels/functors/linalg/cholesky.h"

#include "kernels/cuda/linalg/dense.h"
#include "kernels/cuda/linalg/solver.h"
#include "kernels/cuda/warp.h"

namespace TT_NS {
namespace {

// Cholesky of real matrices of at most 32 rows, with the bits of functors/linalg: a warp for each,
// which keeps it in registers.
//   u: of lane i the elements (0 … i, i) of the upper triangle, which becomes U row by row
constexpr int kSmallWarps = 4;
__global__ void __launch_bounds__(kSmallWarps* kWarp)
    small_cholesky(const __grid_constant__ MatrixPlan p) {
  const int lane = int(threadIdx.x) % kWarp;
  const int64_t at = int64_t(blockIdx.x) * kSmallWarps + threadIdx.x / kWarp;
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

int32_t launch_small_cholesky(const MatrixPlan& p, void* stream) {
  const int64_t batch = p.run.units[0];
  if (batch == 0) return TT_OK;
  return device::launch(small_cholesky, unsigned(ceil_div(batch, int64_t(kSmallWarps))),
                        kSmallWarps * kWarp, 0, stream, p);
}

}  // namespace

namespace cuda {

int32_t cholesky(const void* plan, void* stream, void* workspace) {
  const MatrixPlan& p = *static_cast<const MatrixPlan*>(plan);
  if (cusolver::serves(cusolver::kCholesky, p))
    return cusolver::run(cusolver::kCholesky, p, stream, workspace);
  if (!p.complex && p.n <= kWarp) return launch_small_cholesky(p, stream);
  return launch_matrices<Cholesky>(plan, stream);
}
size_t cholesky_workspace(const void* plan) {
  return cusolver::workspace_bytes(cusolver::kCholesky, *static_cast<const MatrixPlan*>(plan));
}
int32_t solve_triangular(const void* plan, void* stream, void*) {
  return launch_matrices<SolveTriangular>(plan, stream);
}

}  // namespace cuda
}  // namespace TT_NS
