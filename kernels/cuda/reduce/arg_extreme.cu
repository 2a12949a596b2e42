// reduce_max_index, reduce_min_index: the extreme element and the position of its first occurrence,
// of the first nan if there is one.
#include "kernels/cuda/reduce/reduce.h"
#include "kernels/cuda/rows.h"

namespace TT_NS {
namespace {

template <class T> struct alignas(16) Occurrence {
  T value;
  int64_t position;
};

template <class E> struct Extreme {
  using T = E;
  using P = Occurrence<E>;
  static __device__ __forceinline__ P identity(const ReduceArguments& a) {
    return {worst<T>(a.kind), INT64_MAX};
  }
  static __device__ __forceinline__ P of(const ReduceArguments&, T x, int64_t position) {
    return {x, position};
  }
  // In any order of x and y.
  static __device__ __forceinline__ P combine(const ReduceArguments& a, const P& x, const P& y) {
    const bool nan_x = x.value != x.value;
    const bool nan_y = y.value != y.value;
    const bool equal = x.value == y.value || (nan_x && nan_y);
    if (equal) return y.position < x.position ? y : x;
    return nan_y || (!nan_x && is_better(a.kind, y.value, x.value)) ? y : x;
  }
  static __device__ __forceinline__ void finish(const ReduceArguments& a, const P& value, char* out,
                                                char* index) {
    if (out) store_element(out, a.out_dtype, value.value);
    if (index) *reinterpret_cast<int64_t*>(index) = value.position;
  }
};

int32_t run_extreme(const void* plan, ReduceKind kind, void* stream, void* workspace) {
  const ReducePlan& p = *static_cast<const ReducePlan*>(plan);
  switch (p.dtype) {
    case TT_F16:
    case TT_BF16:
    case TT_F32: return launch_reduce<Extreme<float>>(p, kind, stream, workspace);
    case TT_F64: return launch_reduce<Extreme<double>>(p, kind, stream, workspace);
    case TT_I64: return launch_reduce<Extreme<int64_t>>(p, kind, stream, workspace);
    default: return launch_reduce<Extreme<int32_t>>(p, kind, stream, workspace);
  }
}

}  // namespace

namespace cuda {

int32_t reduce_max_index(const void* plan, void* stream, void* workspace) {
  return run_extreme(plan, ReduceKind::kMax, stream, workspace);
}
int32_t reduce_min_index(const void* plan, void* stream, void* workspace) {
  return run_extreme(plan, ReduceKind::kMin, stream, workspace);
}
size_t reduce_max_index_workspace(const void* plan) { return reduce_workspace(plan); }
size_t reduce_min_index_workspace(const void* plan) { return reduce_workspace(plan); }

}  // namespace cuda
}  // namespace TT_NS
