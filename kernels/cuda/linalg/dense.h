// Runs the algorithms of functors/linalg, a block for each matrix.
#pragma once

#include "kernels/cuda/rows.h"
#include "kernels/functors/linalg/dense.h"

namespace TT_NS {
namespace {

template <class Run, class T> __global__ void __launch_bounds__(kTeamWarps* kWarp)
    decompose_matrices(const __grid_constant__ MatrixPlan p) {
  TT_SHARED(TeamSlot, slots, kTeamWarps);
  Run::template run<T>(Team(slots), p, int64_t(blockIdx.x));
}

// A warp is enough where no row or column is longer.
inline int threads_of(const MatrixPlan& p) {
  const bool small = p.m <= kWarp && p.n <= kWarp && p.k <= kWarp;
  return small ? kWarp : kTeamWarps * kWarp;
}
template <class Run, class T> int32_t launch_matrices_of(const void* plan, void* stream) {
  const MatrixPlan& p = *static_cast<const MatrixPlan*>(plan);
  const int64_t batch = p.run.units[0];
  if (batch == 0) return TT_OK;
  const auto kernel = decompose_matrices<Run, T>;
  return device::launch(kernel, unsigned(batch), threads_of(p), 0, stream, p);
}
template <class Run> int32_t launch_matrices(const void* plan, void* stream) {
  if (static_cast<const MatrixPlan*>(plan)->complex)
    return launch_matrices_of<Run, c128>(plan, stream);
  return launch_matrices_of<Run, double>(plan, stream);
}

}  // namespace
}  // namespace TT_NS
