// The sum of exponentials of a row in one pass: the largest element so far and the sum of
// exp(x - top), which is rescaled when the top rises. Milakov & Gimelshein, "Online normalizer
// calculation for softmax", 2018.
#pragma once

#include "kernels/cuda/row.h"

namespace TT_NS {
namespace {

template <class T> struct alignas(2 * sizeof(T)) OnlineSum {
  T top, sum;

  static __device__ __forceinline__ T none() { return T(-__builtin_inf()); }
  static __device__ __forceinline__ OnlineSum empty() { return {none(), T(0)}; }
  // Adds kN elements, for which the sum is rescaled once. A nan is skipped by top and counts in
  // sum; infinity makes the sum nan.
  template <int kN> __device__ __forceinline__ void add(const T (&x)[kN]) {
    T high = none();
#pragma unroll
    for (int j = 0; j < kN; j++)
      if (x[j] > high) high = x[j];
    if (high > top) {
      sum = sum * math::exp(top - high);
      top = high;
    }
    const T shift = top == none() ? T(0) : top;
    T more = 0;
#pragma unroll
    for (int j = 0; j < kN; j++) more += math::exp(x[j] - shift);
    sum += more;
  }
  __device__ __forceinline__ OnlineSum joined(const OnlineSum& other) const {
    const T high = other.top > top ? other.top : top;
    if (high == none()) return {high, sum + other.sum};
    return {high, sum * math::exp(top - high) + other.sum * math::exp(other.top - high)};
  }
};

// In all threads of the row's team.
template <class T> __device__ __forceinline__ OnlineSum<T> online_total(const Row& r,
                                                                        const OnlineSum<T>& part,
                                                                        OnlineSum<T>* shared) {
  return r.combined(part, shared,
                    [](const OnlineSum<T>& a, const OnlineSum<T>& b) { return a.joined(b); });
}

}  // namespace
}  // namespace TT_NS
