// Any other processor, by the vector extension alone. See vec.h for the contracts.
#pragma once

#include "kernels/cpu/simd/partial.h"

TT_ISA_BEGIN

constexpr int kPackedTileRows = TT_MINIMAL ? 2 : 4;  // 32 registers hold 2 by 8 accumulators
constexpr int kSmallTileRows = 4;
constexpr int kConvTileRows = 4;
constexpr bool kRowsOutside = false;
constexpr bool kCheapParts = false;
constexpr bool kStreams = false;

TT_INLINE Vec<float> fma(Vec<float> x, Vec<float> y, Vec<float> z) { return x * y + z; }
TT_INLINE Vec<double> fma(Vec<double> x, Vec<double> y, Vec<double> z) { return x * y + z; }

TT_INLINE Vec<float> vmax(Vec<float> x, Vec<float> m) { return chosen(x > m, x, m); }
TT_INLINE Vec<float> vmin(Vec<float> x, Vec<float> m) { return chosen(x < m, x, m); }
TT_INLINE Vec<double> vmax(Vec<double> x, Vec<double> m) { return chosen(x > m, x, m); }
TT_INLINE Vec<double> vmin(Vec<double> x, Vec<double> m) { return chosen(x < m, x, m); }

TT_INLINE Vec<float> vsqrt(Vec<float> x) {
  for (int l = 0; l < kLanes<float>; l++) x[l] = libm::sqrtf(x[l]);
  return x;
}
TT_INLINE Vec<double> vsqrt(Vec<double> x) {
  for (int l = 0; l < kLanes<double>; l++) x[l] = libm::sqrt(x[l]);
  return x;
}
TT_INLINE Vec<float> exact_sqrt(Vec<float> x) { return vsqrt(x); }

constexpr bool kHalfConversions = false;
TT_INLINE float f16_value(uint16_t x) { return f16_to_float(x); }
TT_INLINE uint16_t f16_bits(float x) { return float_to_f16(x); }
TT_INLINE Vec<float> load_f16(const void*) { return Vec<float>{}; }
TT_INLINE void store_f16(void*, Vec<float>) {}

TT_INLINE void stream_vector(char* p, const char* from) { memcpy(p, from, TT_VEC_BYTES); }
TT_INLINE void stream_fence() {}

TT_INLINE Vec<int32_t> dot_words(Vec<int32_t> x, Vec<int32_t> y) {
  const Vec<int32_t> low = ((x << 16) >> 16) * ((y << 16) >> 16);
  return low + (x >> 16) * (y >> 16);
}

using NanMask = Vec<int32_t>;
TT_INLINE NanMask unordered(Vec<float> a, Vec<float> b) { return (a != a) | (b != b); }
TT_INLINE bool any(NanMask m) {
  int32_t all = 0;
  for (int l = 0; l < kLanes<int32_t>; l++) all |= m[l];
  return all != 0;
}
TT_INLINE uint32_t sign_bits(Vec<int64_t> m) {
  uint32_t bits = 0;
  for (int l = 0; l < kLanes<int64_t>; l++) bits |= uint32_t(m[l] < 0) << l;
  return bits;
}

TT_INLINE Vec<uint64_t> mul_low(Vec<uint64_t> a, Vec<uint64_t> b) {
  const Vec<uint64_t> low = 0xffffffffu - Vec<uint64_t>{};
  return (a & low) * (b & low);
}

TT_INLINE Vec<double> load_as_double(const float* p) {
  Vec<double> v;
  for (int l = 0; l < kLanes<double>; l++) v[l] = double(p[l]);
  return v;
}
TT_INLINE void store_as_float(float* p, Vec<double> v) {
  for (int l = 0; l < kLanes<double>; l++) p[l] = float(v[l]);
}

TT_ISA_END
