// Sums, products and extremes, which have a file each: nvcc takes more than linear time for a file,
// and a kernel in which the kind is a constant is a quarter as long.
#pragma once

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

template <class T> struct ReadsOf { using type = T; };
template <> struct ReadsOf<c128> { using type = AnyComplex; };

// Sums, products and, of real numbers, extremes. Integers are computed in int64, complex numbers in
// complex128: each compute type takes tens of kB of the library, and these are rare.
template <class E, ReduceKind kKind> struct Fold {
  using T = E;
  using Reads = typename ReadsOf<E>::type;
  using P = E;
  using Joined = E;
  using Base = Nothing;
  static __device__ __forceinline__ P identity(const ReduceArguments&) {
    if constexpr (kKind == ReduceKind::kSum) return number<T>(0);
    else if constexpr (kKind == ReduceKind::kProd) return number<T>(1);
    else return worst<T>(kKind);
  }
  template <int kN> static __device__ __forceinline__ P group(const ReduceArguments& a, Base,
                                                              const T (&v)[kN], int, int) {
    return group_of<Fold>(a, v);
  }
  static __device__ __forceinline__ P joined(const ReduceArguments&, P x, int64_t) { return x; }
  static __device__ __forceinline__ P combine(const ReduceArguments&, P x, P y) {
    if constexpr (kKind == ReduceKind::kSum) return plus(x, y);
    else if constexpr (kKind == ReduceKind::kProd) return times(x, y);
    else return is_better(kKind, y, x) || y != y ? y : x;
  }
  static __device__ __forceinline__ void finish(const ReduceArguments& a, Base, P value, char* out,
                                                char*) {
    if constexpr (kIsComplex<T>) {
      const auto divisor = typename T::Real(a.divisor);
      value = {value.re / divisor, value.im / divisor};
    } else if constexpr (kIsFloat<T>) {
      if constexpr (kKind == ReduceKind::kSum) value = value / T(a.divisor);
    }
    store_element(out, a.out_dtype, value);
  }
};

template <ReduceKind kKind>
int32_t launch_fold(const ReducePlan& p, void* stream, void* workspace) {
  switch (p.dtype) {
    case TT_F16:
    case TT_BF16:
    case TT_F32: return launch_reduce<Fold<float, kKind>>(p, kKind, stream, workspace);
    case TT_F64: return launch_reduce<Fold<double, kKind>>(p, kKind, stream, workspace);
    default: break;
  }
  if constexpr (kKind == ReduceKind::kSum || kKind == ReduceKind::kProd) {
    if (p.dtype == TT_C64 || p.dtype == TT_C128)
      return launch_reduce<Fold<c128, kKind>>(p, kKind, stream, workspace);
  }
  return launch_reduce<Fold<int64_t, kKind>>(p, kKind, stream, workspace);
}

#define TT_FOLD(name, kind)                                       \
  int32_t name(const void* plan, void* stream, void* workspace) { \
    const ReducePlan& p = *static_cast<const ReducePlan*>(plan);  \
    return launch_fold<ReduceKind::kind>(p, stream, workspace);   \
  }                                                               \
  size_t name##_workspace(const void* plan) { return reduce_workspace(plan); }

}  // namespace
}  // namespace TT_NS
