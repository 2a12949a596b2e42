// The sum of exponentials of a row in one pass: the largest element so far and the sum of
// exp(x - top), which is rescaled when the top rises. Milakov & Gimelshein, "Online normalizer
// calculation for softmax", 2018.
#pragma once

#include "kernels/cuda/matmul/async.h"
#include "kernels/cuda/row.h"

namespace TT_NS {
namespace {

// e^x, in rows of S. For halves with a relative error of 2^-22 + |x| 2^-24, which the rounding of
// the results hides.
template <class S> __device__ __forceinline__ Compute<S> exp_of(Compute<S> x) {
  if constexpr (kIsHalf<S>) return device::fast_exp2(x * 1.44269504088896341f);
  else return math::exp(x);
}

// The larger number; a nan is skipped.
__device__ __forceinline__ float larger(float x, float y) { return ::fmaxf(x, y); }
__device__ __forceinline__ double larger(double x, double y) { return ::fmax(x, y); }

// The maximum of a row of S so far, and the sum of exp(x - maximum).
template <class S> struct alignas(2 * sizeof(Compute<S>)) OnlineSum {
  using T = Compute<S>;
  T top, sum;

  static __device__ __forceinline__ T none() { return T(-__builtin_inf()); }
  static __device__ __forceinline__ OnlineSum empty() { return {none(), T(0)}; }
  // Adds kN elements, for which the sum is rescaled once. A nan is skipped by top and counts in
  // sum; infinity makes the sum nan.
  template <int kN> __device__ __forceinline__ void add(const T (&x)[kN]) {
    T high = top;
#pragma unroll
    for (int j = 0; j < kN; j++) high = larger(high, x[j]);
    if (high > top) {
      sum = sum * exp_of<S>(top - high);
      top = high;
    }
    const T shift = top == none() ? T(0) : top;
    T more = 0;
#pragma unroll
    for (int j = 0; j < kN; j++) more += exp_of<S>(x[j] - shift);
    sum += more;
  }
  __device__ __forceinline__ OnlineSum joined(const OnlineSum& other) const {
    const T high = other.top > top ? other.top : top;
    if (high == none()) return {high, sum + other.sum};
    return {high, sum * math::exp(top - high) + other.sum * math::exp(other.top - high)};
  }
};

// In all threads of the row's team.
template <class S> __device__ __forceinline__ OnlineSum<S> online_total(const Row& r,
                                                                        const OnlineSum<S>& part,
                                                                        OnlineSum<S>* shared) {
  return r.combined(part, shared,
                    [](const OnlineSum<S>& a, const OnlineSum<S>& b) { return a.joined(b); });
}

}  // namespace
}  // namespace TT_NS
