// NEON of 64-bit ARM, its baseline. See vec.h for the contracts.
#pragma once

#include "kernels/cpu/simd/partial.h"

TT_ISA_BEGIN

constexpr int kPackedTileRows = 12;
constexpr int kSmallTileRows = 8;
constexpr int kConvTileRows = 9;
constexpr bool kRowsOutside = false;
constexpr bool kCheapParts = false;
constexpr bool kStreams = false;

TT_INLINE Vec<float> fma(Vec<float> x, Vec<float> y, Vec<float> z) {
  return Vec<float>(vfmaq_f32(float32x4_t(z), float32x4_t(x), float32x4_t(y)));
}
TT_INLINE Vec<double> fma(Vec<double> x, Vec<double> y, Vec<double> z) {
  return Vec<double>(vfmaq_f64(float64x2_t(z), float64x2_t(x), float64x2_t(y)));
}

// FMAX would return a NaN of either operand.
TT_INLINE Vec<float> vmax(Vec<float> x, Vec<float> m) { return chosen(x > m, x, m); }
TT_INLINE Vec<float> vmin(Vec<float> x, Vec<float> m) { return chosen(x < m, x, m); }
TT_INLINE Vec<double> vmax(Vec<double> x, Vec<double> m) { return chosen(x > m, x, m); }
TT_INLINE Vec<double> vmin(Vec<double> x, Vec<double> m) { return chosen(x < m, x, m); }

TT_INLINE Vec<float> vsqrt(Vec<float> x) { return Vec<float>(vsqrtq_f32(float32x4_t(x))); }
TT_INLINE Vec<double> vsqrt(Vec<double> x) { return Vec<double>(vsqrtq_f64(float64x2_t(x))); }
TT_INLINE Vec<float> exact_sqrt(Vec<float> x) { return vsqrt(x); }

constexpr bool kHalfConversions = true;
TT_INLINE float f16_value(uint16_t x) { return f16_to_float(x); }
TT_INLINE uint16_t f16_bits(float x) { return float_to_f16(x); }
TT_INLINE Vec<float> load_f16(const void* p) {
  return Vec<float>(vcvt_f32_f16(vld1_f16(static_cast<const __fp16*>(p))));
}
TT_INLINE void store_f16(void* p, Vec<float> v) {
  vst1_f16(static_cast<__fp16*>(p), vcvt_f16_f32(float32x4_t(v)));
}

// STNP is a hint that compilers emit for none of their intrinsics.
TT_INLINE void stream_vector(char* p, const char* from) { memcpy(p, from, 16); }
TT_INLINE void stream_fence() {}

TT_INLINE Vec<int32_t> dot_words(Vec<int32_t> x, Vec<int32_t> y) {
  const Vec<int32_t> low = ((x << 16) >> 16) * ((y << 16) >> 16);
  return low + (x >> 16) * (y >> 16);
}

#if TT_BYTE_DOT
// Both operands of the instruction are signed: u ^ 128 is u - 128.
constexpr bool kDotLowersU = true;
TT_INLINE Vec<int32_t> dot_bytes(Vec<int32_t> sum, Vec<int32_t> u, Vec<int32_t> s) {
  const int8x16_t lowered = veorq_s8(int8x16_t(u), vdupq_n_s8(-128));
  return Vec<int32_t>(vdotq_s32(int32x4_t(sum), lowered, int8x16_t(s)));
}
#endif

using NanMask = Vec<int32_t>;
TT_INLINE NanMask unordered(Vec<float> a, Vec<float> b) { return (a != a) | (b != b); }
TT_INLINE bool any(NanMask m) { return vmaxvq_u32(uint32x4_t(m)) != 0; }
TT_INLINE uint32_t sign_bits(Vec<int64_t> m) {
  const uint64x2_t bits = vshrq_n_u64(uint64x2_t(m), 63);
  return uint32_t(vgetq_lane_u64(bits, 0) | vgetq_lane_u64(bits, 1) << 1);
}

TT_INLINE Vec<uint64_t> mul_low(Vec<uint64_t> a, Vec<uint64_t> b) {
  return Vec<uint64_t>(vmull_u32(vmovn_u64(uint64x2_t(a)), vmovn_u64(uint64x2_t(b))));
}

TT_INLINE Vec<double> load_as_double(const float* p) {
  return Vec<double>(vcvt_f64_f32(vld1_f32(p)));
}
TT_INLINE void store_as_float(float* p, Vec<double> v) {
  vst1_f32(p, vcvt_f32_f64(float64x2_t(v)));
}

TT_ISA_END
