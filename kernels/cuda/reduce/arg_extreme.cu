// reduce_max_index, reduce_min_index: the extreme element and the position of its first occurrence,
// of the first nan if there is one. Of a run of memory each thread keeps the pack in which it is,
// which takes an instruction or two for an element; its place in the pack is found at the end.
#include "kernels/cuda/reduce/reduce.h"
#include "kernels/cuda/rows.h"

namespace TT_NS {
namespace {

template <class T, class I> struct alignas(sizeof(T) + sizeof(I) > 8 ? 16 : 8) Occurrence {
  T value;
  I position;
};

// The better one, nan if one is.
template <class T> __device__ __forceinline__ T better_or_nan(ReduceKind kind, T x, T y) {
  return is_better(kind, y, x) || y != y ? y : x;
}
#if defined(__CUDA_ARCH__)
__device__ __forceinline__ float better_or_nan(ReduceKind kind, float x, float y) {
  float most, least;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(x), "f"(y));
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(least) : "f"(x), "f"(y));
  return kind == ReduceKind::kMax ? most : least;
}
#endif

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
  // *all = the better of it and the pack, at whose position the element is somewhere. Positions
  // rise from call to call.
  template <int kN> static __device__ __forceinline__ void add_pack(const ReduceArguments& a,
                                                                    P* all, const T (&v)[kN],
                                                                    int position) {
    T best = v[0];
#pragma unroll
    for (int k = 1; k < kN; k++) best = better_or_nan(a.kind, best, v[k]);
    const bool first_nan = best != best && all->value == all->value;
    const bool is_first = all->position == INT32_MAX;  // may be no better than the worst number
    const bool takes = is_better(a.kind, best, all->value) || first_nan || is_first;
    all->value = takes ? best : all->value;
    all->position = takes ? position : all->position;
  }
  template <class S>
  static __device__ __forceinline__ P refined(const P& x, const S* elements, int n) {
    const bool is_nan = x.value != x.value;
    for (int k = 0; k < n; k++) {
      const T v = value_as<T>(elements[k]);
      if (v == x.value || (is_nan && v != v)) return {v, x.position + k};
    }
    return x;
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

template <class E> constexpr bool kRefined<Extreme<E>> = true;

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
