// reduce_max_index, reduce_min_index: the extreme element and the position of its first occurrence,
// of the first nan if there is one.
#include "kernels/cuda/reduce/reduce.h"
#include "kernels/cuda/rows.h"

namespace TT_NS {
namespace {

template <class T, class I> struct alignas(sizeof(T) + sizeof(I) > 8 ? 16 : 8) Occurrence {
  T value;
  I position;
};

template <class E> struct Extreme {
  using T = E;
  using Reads = E;
  using P = Occurrence<E, int32_t>;
  using Joined = Occurrence<E, int64_t>;
  using Base = Nothing;
  static __device__ __forceinline__ P identity(const ReduceArguments& a) {
    return {worst<T>(a.kind), INT32_MAX};
  }
  template <int kN> static __device__ __forceinline__ P group(const ReduceArguments& a, Base,
                                                              const T (&v)[kN], int position,
                                                              int step) {
    T best = v[0];
    int at = 0;
#pragma unroll
    for (int k = 1; k < kN; k++) {
      const bool first_nan = v[k] != v[k] && best == best;
      const bool takes = is_better(a.kind, v[k], best) || first_nan;
      best = takes ? v[k] : best;
      at = takes ? k : at;
    }
    return {best, position + at * step};
  }
  static __device__ __forceinline__ Joined joined(const ReduceArguments&, const P& x,
                                                  int64_t from) {
    return {x.value, x.position == INT32_MAX ? INT64_MAX : from + x.position};
  }
  // In any order of x and y.
  template <class X>
  static __device__ __forceinline__ X combine(const ReduceArguments& a, const X& x, const X& y) {
    const bool nan_x = x.value != x.value;
    const bool nan_y = y.value != y.value;
    const bool equal = x.value == y.value || (nan_x && nan_y);
    const bool earlier = equal && y.position < x.position;
    const bool better = !nan_x && (nan_y || is_better(a.kind, y.value, x.value));
    const bool takes = earlier || better;
    const auto value = takes ? y.value : x.value;
    const auto position = takes ? y.position : x.position;
    return {value, position};
  }
  static __device__ __forceinline__ void finish(const ReduceArguments& a, Base, const Joined& value,
                                                char* out, char* index) {
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
    default: return launch_reduce<Extreme<int64_t>>(p, kind, stream, workspace);
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
