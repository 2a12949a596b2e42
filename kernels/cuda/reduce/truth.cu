// reduce_any, reduce_all.
#include "kernels/cuda/reduce/reduce.h"
#include "kernels/cuda/rows.h"

namespace TT_NS {
namespace {

// Whether any (kMax) or all (kMin) elements are not zero.
template <ReduceKind kKind> struct Truth {
  using T = bool;
  using Reads = bool;
  using P = int32_t;
  using Joined = int32_t;
  using Base = Nothing;
  static __device__ __forceinline__ P identity(const ReduceArguments&) {
    return kKind == ReduceKind::kMin;
  }
  template <int kN> static __device__ __forceinline__ P group(const ReduceArguments& a, Base,
                                                              const T (&v)[kN], int, int) {
    return group_of<Truth>(a, v);
  }
  static __device__ __forceinline__ P joined(const ReduceArguments&, P x, int64_t) { return x; }
  static __device__ __forceinline__ P combine(const ReduceArguments&, P x, P y) {
    return kKind == ReduceKind::kMin ? x & y : x | y;
  }
  static __device__ __forceinline__ void finish(const ReduceArguments& a, Base, P value, char* out,
                                                char*) {
    store_element(out, a.out_dtype, value);
  }
};

template <ReduceKind kKind> int32_t launch_truth(const void* plan, void* stream, void* workspace) {
  const ReducePlan& p = *static_cast<const ReducePlan*>(plan);
  return launch_reduce<Truth<kKind>>(p, kKind, stream, workspace);
}

}  // namespace

namespace cuda {

int32_t reduce_any(const void* plan, void* stream, void* workspace) {
  return launch_truth<ReduceKind::kMax>(plan, stream, workspace);
}
int32_t reduce_all(const void* plan, void* stream, void* workspace) {
  return launch_truth<ReduceKind::kMin>(plan, stream, workspace);
}
size_t reduce_any_workspace(const void* plan) { return reduce_workspace(plan); }
size_t reduce_all_workspace(const void* plan) { return reduce_workspace(plan); }

}  // namespace cuda
}  // namespace TT_NS
