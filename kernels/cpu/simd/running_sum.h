// RunningSum: a sum of arbitrarily many numbers, for cumulative sums.
#pragma once

#include "kernels/cpu/simd/isa.h"

TT_ISA_BEGIN

// float: in double. double: compensated, `lost` being the sum of the rounding errors. int64: modulo
// 2^64. with(x) is the sum after x, rounded.
template <class V> struct RunningSum;
template <> struct RunningSum<float> {
  using Part = double;
  double sum = 0;
  TT_INLINE void add(double x) { sum += x; }
  TT_INLINE void add(const RunningSum& s) { sum += s.sum; }
  TT_INLINE float with(double x) const { return float(sum + x); }
};
template <> struct RunningSum<double> {
  using Part = double;
  double sum = 0, lost = 0;
  TT_INLINE void add(double x) {
    const double next = sum + x;
    const double rounded = next - sum;
    const double error = (sum - (next - rounded)) + (x - rounded);
    sum = next;
    lost = next - next == 0 ? lost + error : 0;  // infinite sums have no error
  }
  TT_INLINE void add(const RunningSum& s) {
    add(s.sum);
    lost += s.lost;
  }
  TT_INLINE double with(double x) const { return sum + (x + lost); }
};
template <> struct RunningSum<int64_t> {
  using Part = uint64_t;
  uint64_t sum = 0;
  TT_INLINE void add(uint64_t x) { sum += x; }
  TT_INLINE void add(const RunningSum& s) { sum += s.sum; }
  TT_INLINE int64_t with(uint64_t x) const { return int64_t(sum + x); }
};

TT_ISA_END
