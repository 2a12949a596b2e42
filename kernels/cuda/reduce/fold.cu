// reduce_sum, reduce_prod, reduce_max, reduce_min, reduce_any, reduce_all. What a kernel computes
// is dispatched at run time: a branch that all threads take alike, between loads of 16 bytes.
#include "kernels/cuda/reduce/reduce.h"
#include "kernels/cuda/rows.h"

namespace TT_NS {
namespace {

__device__ __forceinline__ int64_t plus(int64_t x, int64_t y) {
  return int64_t(uint64_t(x) + uint64_t(y));
}
__device__ __forceinline__ int64_t times(int64_t x, int64_t y) {
  return int64_t(uint64_t(x) * uint64_t(y));
}
template <class T> __device__ __forceinline__ T plus(T x, T y) { return x + y; }
template <class T> __device__ __forceinline__ T times(T x, T y) { return x * y; }
template <class T> __device__ __forceinline__ T number(int x) {
  if constexpr (kIsComplex<T>) return {typename T::Real(x), 0};
  else return T(x);
}

// Sums, products and, of real numbers, extremes. Integers are summed in int64; the extremes of the
// smaller ones are found in int32.
template <class E> struct Fold {
  using T = E;
  using P = E;
  static __device__ __forceinline__ P identity(const ReduceArguments& a) {
    if (a.kind == ReduceKind::kSum) return number<T>(0);
    if (a.kind == ReduceKind::kProd) return number<T>(1);
    if constexpr (kIsComplex<T>) return number<T>(0);
    else return worst<T>(a.kind);
  }
  static __device__ __forceinline__ P of(const ReduceArguments&, T x, int64_t) { return x; }
  static __device__ __forceinline__ P combine(const ReduceArguments& a, P x, P y) {
    if constexpr (!__is_same(T, int32_t)) {
      if (a.kind == ReduceKind::kSum) return plus(x, y);
      if (a.kind == ReduceKind::kProd) return times(x, y);
    }
    if constexpr (kIsComplex<T>) return x;
    else return is_better(a.kind, y, x) || y != y ? y : x;
  }
  static __device__ __forceinline__ void finish(const ReduceArguments& a, P value, char* out,
                                                char*) {
    if constexpr (kIsComplex<T>) {
      const auto divisor = typename T::Real(a.divisor);
      value = {value.re / divisor, value.im / divisor};
    } else if constexpr (kIsFloat<T>) {
      if (a.kind == ReduceKind::kSum) value = value / T(a.divisor);
    }
    store_element(out, a.out_dtype, value);
  }
};

// Whether any (kMax) or all (kMin) elements are not zero.
struct Truth {
  using T = bool;
  using P = int32_t;
  static __device__ __forceinline__ P identity(const ReduceArguments& a) {
    return a.kind == ReduceKind::kMin;
  }
  static __device__ __forceinline__ P of(const ReduceArguments&, bool x, int64_t) { return x; }
  static __device__ __forceinline__ P combine(const ReduceArguments& a, P x, P y) {
    return a.kind == ReduceKind::kMin ? x & y : x | y;
  }
  static __device__ __forceinline__ void finish(const ReduceArguments& a, P value, char* out,
                                                char*) {
    store_element(out, a.out_dtype, value);
  }
};

int32_t run_arithmetic(const void* plan, ReduceKind kind, void* stream, void* workspace) {
  const ReducePlan& p = *static_cast<const ReducePlan*>(plan);
  switch (p.dtype) {
    case TT_F16:
    case TT_BF16:
    case TT_F32: return launch_reduce<Fold<float>>(p, kind, stream, workspace);
    case TT_F64: return launch_reduce<Fold<double>>(p, kind, stream, workspace);
    case TT_C64: return launch_reduce<Fold<c64>>(p, kind, stream, workspace);
    case TT_C128: return launch_reduce<Fold<c128>>(p, kind, stream, workspace);
    default: return launch_reduce<Fold<int64_t>>(p, kind, stream, workspace);
  }
}
int32_t run_extreme(const void* plan, ReduceKind kind, void* stream, void* workspace) {
  const ReducePlan& p = *static_cast<const ReducePlan*>(plan);
  if (p.dtype < TT_I64) return launch_reduce<Fold<int32_t>>(p, kind, stream, workspace);
  return run_arithmetic(plan, kind, stream, workspace);
}

}  // namespace

namespace cuda {

#define TT_REDUCTION(name, call)                                                 \
  int32_t name(const void* plan, void* stream, void* workspace) { return call; } \
  size_t name##_workspace(const void* plan) { return reduce_workspace(plan); }
TT_REDUCTION(reduce_sum, run_arithmetic(plan, ReduceKind::kSum, stream, workspace))
TT_REDUCTION(reduce_prod, run_arithmetic(plan, ReduceKind::kProd, stream, workspace))
TT_REDUCTION(reduce_max, run_extreme(plan, ReduceKind::kMax, stream, workspace))
TT_REDUCTION(reduce_min, run_extreme(plan, ReduceKind::kMin, stream, workspace))
TT_REDUCTION(reduce_any, launch_reduce<Truth>(*static_cast<const ReducePlan*>(plan),
                                              ReduceKind::kMax, stream, workspace))
TT_REDUCTION(reduce_all, launch_reduce<Truth>(*static_cast<const ReducePlan*>(plan),
                                              ReduceKind::kMin, stream, workspace))
#undef TT_REDUCTION

}  // namespace cuda
}  // namespace TT_NS
