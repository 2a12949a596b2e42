// cumsum: float32 is added in double, float64 in pairs of doubles, integers modulo 2^64.
#include "kernels/cuda/rows.h"
#include "kernels/cuda/scan/scan.h"
#include "plan/scan_plan.h"

namespace TT_NS {
namespace {

template <class T, class Part> struct Sum {
  using V = T;
  using P = Part;
  using R = T;
  static __device__ __forceinline__ P empty() { return 0; }
  static __device__ __forceinline__ P of(V x, int64_t) { return P(x); }
  static __device__ __forceinline__ P joined(P x, P y) { return x + y; }
  static __device__ __forceinline__ R result(P sum) { return R(sum); }
};

// A sum and the sum of its rounding errors.
struct alignas(16) Compensated {
  double sum, lost;
};
struct CompensatedSum {
  using V = double;
  using P = Compensated;
  using R = double;
  static __device__ __forceinline__ P empty() { return {0, 0}; }
  static __device__ __forceinline__ P of(V x, int64_t) { return {x, 0}; }
  static __device__ __forceinline__ P joined(P x, P y) {
    const double next = x.sum + y.sum;
    const double rounded = next - x.sum;
    const double error = (x.sum - (next - rounded)) + (y.sum - rounded);
    if (next - next != 0) return {next, 0};  // infinite sums have no error
    return {next, x.lost + y.lost + error};
  }
  static __device__ __forceinline__ R result(P x) { return x.sum + x.lost; }
};

}  // namespace

namespace cuda {

int32_t cumsum(const void* plan, void* stream, void* workspace) {
  const ScanPlan& p = *static_cast<const ScanPlan*>(plan);
  const auto run = [&](auto scan) {
    return launch_scan<decltype(scan)>(p.outer, p.dim, p.inner, p.in, p.out, stream, workspace);
  };
  if (p.dtype == TT_F32) return run(Sum<float, double>());
  return p.dtype == TT_F64 ? run(CompensatedSum()) : run(Sum<int64_t, uint64_t>());
}
size_t cumsum_workspace(const void* plan) {
  const ScanPlan& p = *static_cast<const ScanPlan*>(plan);
  return scan_workspace(p.outer, p.dim, p.inner);
}

}  // namespace cuda
}  // namespace TT_NS
