// SSE2, the baseline of x86-64. See vec.h for the contracts.
#pragma once

#include "kernels/cpu/simd/partial.h"

TT_ISA_BEGIN

constexpr int kPackedTileRows = 4;
constexpr int kSmallTileRows = 4;
constexpr int kConvTileRows = 4;
constexpr bool kRowsOutside = false;
constexpr bool kCheapParts = false;
constexpr bool kStreams = true;

TT_INLINE Vec<float> fma(Vec<float> x, Vec<float> y, Vec<float> z) { return x * y + z; }
TT_INLINE Vec<double> fma(Vec<double> x, Vec<double> y, Vec<double> z) { return x * y + z; }

TT_INLINE Vec<float> vmax(Vec<float> x, Vec<float> m) {
  return Vec<float>(_mm_max_ps(__m128(x), __m128(m)));
}
TT_INLINE Vec<float> vmin(Vec<float> x, Vec<float> m) {
  return Vec<float>(_mm_min_ps(__m128(x), __m128(m)));
}
TT_INLINE Vec<double> vmax(Vec<double> x, Vec<double> m) {
  return Vec<double>(_mm_max_pd(__m128d(x), __m128d(m)));
}
TT_INLINE Vec<double> vmin(Vec<double> x, Vec<double> m) {
  return Vec<double>(_mm_min_pd(__m128d(x), __m128d(m)));
}

TT_INLINE Vec<float> vsqrt(Vec<float> x) { return Vec<float>(_mm_sqrt_ps(__m128(x))); }
TT_INLINE Vec<double> vsqrt(Vec<double> x) { return Vec<double>(_mm_sqrt_pd(__m128d(x))); }
TT_INLINE Vec<float> exact_sqrt(Vec<float> x) { return vsqrt(x); }

constexpr bool kHalfConversions = false;
TT_INLINE float f16_value(uint16_t x) { return f16_to_float(x); }
TT_INLINE uint16_t f16_bits(float x) { return float_to_f16(x); }
TT_INLINE Vec<float> load_f16(const void*) { return Vec<float>{}; }
TT_INLINE void store_f16(void*, Vec<float>) {}

TT_INLINE void stream_vector(char* p, const char* from) {
  _mm_stream_si128(reinterpret_cast<__m128i*>(p),
                   _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
TT_INLINE void stream_fence() { _mm_sfence(); }

TT_INLINE Vec<int32_t> dot_words(Vec<int32_t> x, Vec<int32_t> y) {
  return Vec<int32_t>(_mm_madd_epi16(__m128i(x), __m128i(y)));
}

using NanMask = Vec<int32_t>;
TT_INLINE NanMask unordered(Vec<float> a, Vec<float> b) {
  return NanMask(_mm_cmpunord_ps(__m128(a), __m128(b)));
}
TT_INLINE bool any(NanMask m) { return _mm_movemask_ps(__m128(m)) != 0; }
TT_INLINE uint32_t sign_bits(Vec<int64_t> m) { return uint32_t(_mm_movemask_pd(__m128d(m))); }

TT_INLINE Vec<uint64_t> mul_low(Vec<uint64_t> a, Vec<uint64_t> b) {
  return Vec<uint64_t>(_mm_mul_epu32(__m128i(a), __m128i(b)));
}

TT_INLINE Vec<double> load_as_double(const float* p) {
  Vector<float, 2> v;
  memcpy(&v, p, sizeof v);
  return converted<Vec<double>>(v);
}
TT_INLINE void store_as_float(float* p, Vec<double> v) {
  for (int l = 0; l < kLanes<double>; l++) p[l] = float(v[l]);
}

TT_ISA_END
