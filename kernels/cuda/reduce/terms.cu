// reduce_sum of terms that are computed from the elements: norms, sums without nan, logsumexp;
// centred.cu computes variances. One kernel computes all norms of a compute type, since a kernel
// for each would take a megabyte of the library: the term is chosen once for each group of
// elements.
#include "kernels/cuda/reduce/reduce.h"
#include "kernels/functors/math.h"

namespace TT_NS {
namespace {

// x^y, which has hundreds of instructions.
template <class T> TT_NOINLINE __device__ T power(T x, T y) { return math::pow(x, y); }

template <class T> struct Added {
  using P = T;
  static __device__ __forceinline__ P combine(const ReduceArguments&, P x, P y) { return x + y; }
};
// The largest or smallest number, nan if there is one.
template <class T, ReduceKind kKind> struct Extreme {
  using P = T;
  static __device__ __forceinline__ P combine(const ReduceArguments&, P x, P y) {
    return is_better(kKind, y, x) || y != y ? y : x;
  }
};

template <class E> struct Terms {
  using T = E;
  using Reads = E;
  using P = E;
  using Joined = E;
  using Base = Nothing;
  using Largest = Extreme<E, ReduceKind::kMax>;
  using Smallest = Extreme<E, ReduceKind::kMin>;

  static __device__ __forceinline__ P identity(const ReduceArguments& a) {
    return a.term == kReduceSmallest ? kHighest<T> : T(0);
  }
  static __device__ __forceinline__ P combine(const ReduceArguments& a, P x, P y) {
    if (a.term == kReduceLargest) return Largest::combine(a, x, y);
    if (a.term == kReduceSmallest) return Smallest::combine(a, x, y);
    return x + y;
  }
  template <int kN> static __device__ __forceinline__ P group(const ReduceArguments& a, Base,
                                                              const T (&v)[kN], int, int) {
    T terms[kN];
    switch (a.term) {
      case kReduceSquares:
#pragma unroll
        for (int i = 0; i < kN; i++) terms[i] = v[i] * v[i];
        break;
      case kReduceNumbers:
#pragma unroll
        for (int i = 0; i < kN; i++) terms[i] = v[i] == v[i] ? v[i] : T(0);
        break;
      case kReduceNonzero:
#pragma unroll
        for (int i = 0; i < kN; i++) terms[i] = v[i] != T(0) ? T(1) : T(0);
        break;
      case kReducePowers:
#pragma unroll
        for (int i = 0; i < kN; i++) terms[i] = power(math::fabs(v[i]), T(a.order));
        break;
      default:
#pragma unroll
        for (int i = 0; i < kN; i++) terms[i] = math::fabs(v[i]);
    }
    if (a.term == kReduceLargest) return group_of<Largest>(a, terms);
    if (a.term == kReduceSmallest) return group_of<Smallest>(a, terms);
    return group_of<Added<T>>(a, terms);
  }
  static __device__ __forceinline__ P joined(const ReduceArguments&, P x, int64_t) { return x; }
  static __device__ __forceinline__ void finish(const ReduceArguments& a, Base, P value, char* out,
                                                char*) {
    if (a.root) value = math::sqrt(value);
    if (a.term == kReducePowers) value = power(value, T(1 / a.order));
    store_element(out, a.out_dtype, value);
  }
};

// The sum of e^(x - top). top is the largest element so far, or the finite number nearest to it:
// sums are rescaled by powers of differences of tops, which infinite ones would make nan.
struct alignas(8) ScaledSum {
  float top, sum;
};
constexpr float kMostFinite = 0x1.fffffep127f;

// logsumexp in one pass (Milakov & Gimelshein, "Online normalizer calculation for softmax", 2018).
// In float32; that of float64 is left to operators.
struct Exponentials {
  using T = float;
  using Reads = float;
  using P = ScaledSum;
  using Joined = ScaledSum;
  using Base = Nothing;
  static __device__ __forceinline__ P identity(const ReduceArguments&) { return {-kMostFinite, 0}; }
  template <int kN> static __device__ __forceinline__ P group(const ReduceArguments&, Base,
                                                              const T (&v)[kN], int, int) {
    P all = {-kMostFinite, 0};
#pragma unroll
    for (int i = 0; i < kN; i++) all.top = v[i] > all.top ? v[i] : all.top;
    all.top = all.top < kMostFinite ? all.top : kMostFinite;
#pragma unroll
    for (int i = 0; i < kN; i++) all.sum += math::exp(v[i] - all.top);
    return all;
  }
  static __device__ __forceinline__ P joined(const ReduceArguments&, const P& x, int64_t) {
    return x;
  }
  static __device__ __forceinline__ P combine(const ReduceArguments&, const P& x, const P& y) {
    const float scale = math::exp(-math::fabs(x.top - y.top));
    if (x.top < y.top) return {y.top, x.sum * scale + y.sum};
    return {x.top, x.sum + y.sum * scale};
  }
  static __device__ __forceinline__ void finish(const ReduceArguments& a, Base, const P& value,
                                                char* out, char*) {
    store_element(out, a.out_dtype, math::log(value.sum) + value.top);
  }
};

}  // namespace

namespace cuda {

int32_t reduce_terms(const ReducePlan& p, void* stream, void* workspace) {
  constexpr ReduceKind kSum = ReduceKind::kSum;
  if (p.term == kReduceExponentials) return launch_reduce<Exponentials>(p, kSum, stream, workspace);
  if (p.dtype == TT_F64) return launch_reduce<Terms<double>>(p, kSum, stream, workspace);
  return launch_reduce<Terms<float>>(p, kSum, stream, workspace);
}

}  // namespace cuda
}  // namespace TT_NS
