// sum_tile: the sums of products of a tile, by vec.h's fma or by NEON of 32-bit ARM.
//
// NEON there takes subnormal numbers as 0, as factors, summands and results, and makes every NaN
// the default one. Else it rounds as scalar instructions do: a product, then a sum, to nearest.
// FPSCR says afterwards whether a number was taken as 0, exactly and by the architecture (ARM DDI
// 0406C, A2.7 and FPRound). So a tile is summed by NEON, and once more by fma if that happened or
// if a sum is NaN: the bits are always the baseline's.
//
//   sum_tile(acc, sum)    calls sum(unit, acc), which sets acc and changes nothing else but what
//                         a second call writes again, and returns what it returns
//   VectorUnit            factors and sums by vec.h
//   NeonUnit              by NEON; TT_NEON32
#pragma once

#include "kernels/cpu/simd/broadcast.h"

TT_ISA_BEGIN

struct VectorUnit {
  template <class T> static TT_INLINE Vec<T> factor(T x) { return splat(x); }
  template <class T> static TT_INLINE Vec<T> factor_at(const T* p) { return splat_at(p); }
  template <class V> static TT_INLINE V lane(V v, int i) { return splat(v[i]); }
  template <class V, class Sums> static TT_INLINE Sums add_product(V x, V y, Sums z) {
    return fma(x, y, z);
  }
};

#if TT_NEON32

struct NeonUnit {
  struct Factor {
    float32x2_t pair;
    int lane;
  };
  // x is in memory: a value would pass through a register of integers.
  static TT_INLINE Factor factor(const float& x) { return {vld1_dup_f32(&x), 0}; }
  static TT_INLINE Factor factor_at(const float* p) { return {vld1_dup_f32(p), 0}; }
  static TT_INLINE Factor lane(Vec<float> v, int i) {
    const float32x4_t four = float32x4_t(v);
    return {i < 2 ? vget_low_f32(four) : vget_high_f32(four), i % 2};
  }
  static TT_INLINE Vec<float> add_product(Factor x, Vec<float> y, Vec<float> z) {
    const float32x4_t sums = float32x4_t(z);
    const float32x4_t row = float32x4_t(y);
    // The instruction has the lane's number.
    if (x.lane == 0) return Vec<float>(vmlaq_lane_f32(sums, row, x.pair, 0));
    return Vec<float>(vmlaq_lane_f32(sums, row, x.pair, 1));
  }
  static TT_INLINE Vec<float> add_product(Vec<float> x, Vec<float> y, Vec<float> z) {
    return Vec<float>(vmlaq_f32(float32x4_t(z), float32x4_t(x), float32x4_t(y)));
  }
};

// Finds subnormal numbers that NEON took as 0 since its construction. Bits of FPSCR that were set
// before are set afterwards.
class FlushedNumbers {
  static constexpr uint32_t kFlushed = 1 << 7 | 1 << 3;  // IDC: an operand; UFC: a result
  uint32_t before_;

  static TT_INLINE uint32_t status() {
    uint32_t bits;
    __asm__ volatile("vmrs %0, fpscr" : "=r"(bits) : : "memory");
    return bits;
  }
  static TT_INLINE void set_status(uint32_t bits) {
    __asm__ volatile("vmsr fpscr, %0" : : "r"(bits) : "memory");
  }

 public:
  TT_INLINE FlushedNumbers() : before_(status()) {
    if (TT_UNLIKELY(before_ & kFlushed)) set_status(before_ & ~kFlushed);
  }
  TT_INLINE bool found() const {
    const uint32_t after = status();
    if (TT_UNLIKELY((before_ | after) & kFlushed))
      set_status((after & ~kFlushed) | (before_ & kFlushed));
    return (after & kFlushed) != 0;
  }
};

template <int kMr, int kVecs> TT_INLINE bool has_nan(const Vec<float> (&acc)[kMr][kVecs]) {
  Vec<uint32_t> nan = {};
  TT_UNROLL
  for (int i = 0; i < kMr; i++) {
    TT_UNROLL
    for (int v = 0; v < kVecs; v++)
      nan |= Vec<uint32_t>((Vec<uint32_t>(acc[i][v]) << 1) > 0xff000000u);
  }
  const uint32x4_t all = uint32x4_t(nan);
  const uint32x2_t half = vorr_u32(vget_low_u32(all), vget_high_u32(all));
  return (vget_lane_u32(half, 0) | vget_lane_u32(half, 1)) != 0;
}

// Apart from the loop of NeonUnit, which needs all registers.
template <int kMr, int kVecs, class Sum>
TT_NOINLINE void sum_by_vectors(Vec<float> (&acc)[kMr][kVecs], const Sum& sum) {
  Vec<float> sums[kMr][kVecs];
  sum(VectorUnit{}, sums);
  memcpy(acc, sums, sizeof sums);
}

template <int kMr, int kVecs, class Sum>
TT_INLINE auto sum_tile(Vec<float> (&acc)[kMr][kVecs], Sum sum) {
  const FlushedNumbers flushed;
  const auto result = sum(NeonUnit{}, acc);
  // Through memory, also to end before status(): lanes that are used one by one afterwards would
  // bind the sums to the registers that a factor must be in.
  Vec<float> sums[kMr][kVecs];
  TT_UNROLL
  for (int i = 0; i < kMr; i++) {
    TT_UNROLL
    for (int v = 0; v < kVecs; v++) sums[i][v] = acc[i][v];
  }
  __asm__ volatile("" : "+m"(sums));
  if (TT_UNLIKELY(flushed.found() | has_nan(acc))) {
    const Sum copy = sum;
    sum_by_vectors(sums, copy);
  }
  TT_UNROLL
  for (int i = 0; i < kMr; i++) {
    TT_UNROLL
    for (int v = 0; v < kVecs; v++) acc[i][v] = sums[i][v];
  }
  return result;
}

#endif

template <class V, int kMr, int kVecs, class Sum>
TT_INLINE auto sum_tile(V (&acc)[kMr][kVecs], const Sum& sum) {
  return sum(VectorUnit{}, acc);
}

TT_ISA_END
