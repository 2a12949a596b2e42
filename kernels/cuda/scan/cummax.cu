// cummax and cummin: the index of the running extreme, the last of equal ones, and a nan once there
// is one. logcumsumexp: log(sum(exp(x))) of the elements so far, in double.
#include "kernels/cuda/rows.h"
#include "kernels/cuda/scan/scan.h"
#include "plan/scan_plan.h"

namespace TT_NS {
namespace {

template <class T> struct alignas(16) Best {
  T value;
  int64_t index;  // -1: there is none
};
template <class T, bool kSmallest> struct Extreme {
  using V = T;
  using P = Best<T>;
  using R = int64_t;
  static __device__ __forceinline__ P empty() { return {T(0), -1}; }
  static __device__ __forceinline__ P of(V x, int64_t i) { return {x, i}; }
  static __device__ __forceinline__ P joined(const P& x, const P& y) {
    if (x.index < 0) return y;
    if (y.index < 0) return x;
    const bool reaches = kSmallest ? y.value <= x.value : y.value >= x.value;
    const bool replaces = reaches ? x.value == x.value : y.value != y.value;
    return replaces ? y : x;
  }
  static __device__ __forceinline__ R result(const P& best) { return best.index; }
};

// The sum is sum * exp(top).
struct alignas(16) Exponentials {
  double top, sum;
};
template <class T> struct LogSum {
  using V = T;
  using P = Exponentials;
  using R = T;
  static __device__ __forceinline__ P empty() { return {-__builtin_inf(), 0}; }
  static __device__ __forceinline__ P of(V x, int64_t) { return {double(x), 1}; }
  static __device__ __forceinline__ P joined(const P& x, const P& y) {
    if (x.top == y.top) return {x.top, x.sum + y.sum};  // also of infinities
    if (y.top < x.top) return {x.top, x.sum + y.sum * math::exp(y.top - x.top)};
    return {y.top, x.sum * math::exp(x.top - y.top) + y.sum};
  }
  static __device__ __forceinline__ R result(const P& x) { return T(x.top + math::log(x.sum)); }
};

template <class T> int32_t run_extreme(const CumExtremePlan& p, void* stream, void* workspace) {
  const auto launch = p.smallest ? launch_scan<Extreme<T, true>> : launch_scan<Extreme<T, false>>;
  return launch(p.outer, p.dim, p.inner, p.in, reinterpret_cast<char*>(p.indices), stream,
                workspace);
}

}  // namespace

namespace cuda {

int32_t cummax(const void* plan, void* stream, void* workspace) {
  const CumExtremePlan& p = *static_cast<const CumExtremePlan*>(plan);
  if (p.dtype == TT_F32) return run_extreme<float>(p, stream, workspace);
  if (p.dtype == TT_F64) return run_extreme<double>(p, stream, workspace);
  return run_extreme<int64_t>(p, stream, workspace);
}
size_t cummax_workspace(const void* plan) {
  const CumExtremePlan& p = *static_cast<const CumExtremePlan*>(plan);
  return scan_workspace(p.outer, p.dim, p.inner);
}

int32_t logcumsumexp(const void* plan, void* stream, void* workspace) {
  const LogSumPlan& p = *static_cast<const LogSumPlan*>(plan);
  const auto launch = p.dtype == TT_F32 ? launch_scan<LogSum<float>> : launch_scan<LogSum<double>>;
  return launch(p.outer, p.dim, p.inner, p.in, p.out, stream, workspace);
}
size_t logcumsumexp_workspace(const void* plan) {
  const LogSumPlan& p = *static_cast<const LogSumPlan*>(plan);
  return scan_workspace(p.outer, p.dim, p.inner);
}

}  // namespace cuda
}  // namespace TT_NS
