// AVX2, FMA and F16C. See vec.h for the contracts.
#pragma once

TT_ISA_BEGIN

constexpr int kPackedTileRows = 6;
constexpr int kSmallTileRows = 6;
constexpr int kConvTileRows = 6;
constexpr bool kRowsOutside = false;
constexpr bool kCheapParts = false;
constexpr bool kStreams = true;

template <class T> struct Part {
  __m256i bits;
  TT_INLINE explicit Part(int n) {
    if constexpr (sizeof(T) == 4)
      bits = _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    else bits = _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
  }
};
TT_INLINE Vec<float> load(const float* p, Part<float> m) {
  return Vec<float>(_mm256_maskload_ps(p, m.bits));
}
TT_INLINE Vec<double> load(const double* p, Part<double> m) {
  return Vec<double>(_mm256_maskload_pd(p, m.bits));
}
TT_INLINE Vec<int32_t> load(const int32_t* p, Part<int32_t> m) {
  return Vec<int32_t>(_mm256_maskload_epi32(p, m.bits));
}
TT_INLINE Vec<int64_t> load(const int64_t* p, Part<int64_t> m) {
  return Vec<int64_t>(_mm256_maskload_epi64(reinterpret_cast<const long long*>(p), m.bits));
}
TT_INLINE void store(float* p, Vec<float> v, Part<float> m) {
  _mm256_maskstore_ps(p, m.bits, __m256(v));
}
TT_INLINE void store(double* p, Vec<double> v, Part<double> m) {
  _mm256_maskstore_pd(p, m.bits, __m256d(v));
}
TT_INLINE void store(int32_t* p, Vec<int32_t> v, Part<int32_t> m) {
  _mm256_maskstore_epi32(p, m.bits, __m256i(v));
}
TT_INLINE void store(int64_t* p, Vec<int64_t> v, Part<int64_t> m) {
  _mm256_maskstore_epi64(reinterpret_cast<long long*>(p), m.bits, __m256i(v));
}

TT_INLINE Vec<float> fma(Vec<float> x, Vec<float> y, Vec<float> z) {
  return Vec<float>(_mm256_fmadd_ps(__m256(x), __m256(y), __m256(z)));
}
TT_INLINE Vec<double> fma(Vec<double> x, Vec<double> y, Vec<double> z) {
  return Vec<double>(_mm256_fmadd_pd(__m256d(x), __m256d(y), __m256d(z)));
}

TT_INLINE Vec<float> vmax(Vec<float> x, Vec<float> m) {
  return Vec<float>(_mm256_max_ps(__m256(x), __m256(m)));
}
TT_INLINE Vec<float> vmin(Vec<float> x, Vec<float> m) {
  return Vec<float>(_mm256_min_ps(__m256(x), __m256(m)));
}
TT_INLINE Vec<double> vmax(Vec<double> x, Vec<double> m) {
  return Vec<double>(_mm256_max_pd(__m256d(x), __m256d(m)));
}
TT_INLINE Vec<double> vmin(Vec<double> x, Vec<double> m) {
  return Vec<double>(_mm256_min_pd(__m256d(x), __m256d(m)));
}

TT_INLINE Vec<float> vsqrt(Vec<float> x) { return Vec<float>(_mm256_sqrt_ps(__m256(x))); }
TT_INLINE Vec<double> vsqrt(Vec<double> x) { return Vec<double>(_mm256_sqrt_pd(__m256d(x))); }
TT_INLINE Vec<float> exact_sqrt(Vec<float> x) { return vsqrt(x); }

constexpr bool kHalfConversions = true;
TT_INLINE float f16_value(uint16_t x) { return _cvtsh_ss(x); }
TT_INLINE uint16_t f16_bits(float x) { return uint16_t(_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT)); }
TT_INLINE Vec<float> load_f16(const void* p) {
  return Vec<float>(_mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(p))));
}
TT_INLINE void store_f16(void* p, Vec<float> v) {
  _mm_storeu_si128(static_cast<__m128i*>(p), _mm256_cvtps_ph(__m256(v), _MM_FROUND_TO_NEAREST_INT));
}

TT_INLINE void stream_vector(char* p, const char* from) {
  _mm256_stream_si256(reinterpret_cast<__m256i*>(p),
                      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
}
TT_INLINE void stream_fence() { _mm_sfence(); }
TT_INLINE void clear_upper_halves() { _mm256_zeroupper(); }

TT_INLINE Vec<float> permute(Vec<float> a, Vec<float> b, Vec<int32_t> i) {
  const __m256 x = _mm256_permutevar8x32_ps(__m256(a), __m256i(i));
  const __m256 y = _mm256_permutevar8x32_ps(__m256(b), __m256i(i));
  return Vec<float>(_mm256_blendv_ps(
      x, y, _mm256_castsi256_ps(_mm256_cmpgt_epi32(__m256i(i), _mm256_set1_epi32(7)))));
}

TT_INLINE Vec<int32_t> dot_words(Vec<int32_t> x, Vec<int32_t> y) {
  return Vec<int32_t>(_mm256_madd_epi16(__m256i(x), __m256i(y)));
}
#if defined(__AVXVNNI__)
constexpr bool kDotLowersU = false;
TT_INLINE Vec<int32_t> dot_bytes(Vec<int32_t> sum, Vec<int32_t> u, Vec<int32_t> s) {
  return Vec<int32_t>(_mm256_dpbusd_avx_epi32(__m256i(sum), __m256i(u), __m256i(s)));
}
#endif

using NanMask = Vec<int32_t>;
TT_INLINE NanMask unordered(Vec<float> a, Vec<float> b) {
  return NanMask(_mm256_cmp_ps(__m256(a), __m256(b), _CMP_UNORD_Q));
}
TT_INLINE bool any(NanMask m) { return _mm256_movemask_ps(__m256(m)) != 0; }
TT_INLINE uint32_t sign_bits(Vec<int64_t> m) { return uint32_t(_mm256_movemask_pd(__m256d(m))); }

TT_INLINE Vec<uint64_t> mul_low(Vec<uint64_t> a, Vec<uint64_t> b) {
  return Vec<uint64_t>(_mm256_mul_epu32(__m256i(a), __m256i(b)));
}

TT_INLINE Vec<double> load_as_double(const float* p) {  // gcc 12 converts halves one by one
  return Vec<double>(_mm256_cvtps_pd(_mm_loadu_ps(p)));
}
TT_INLINE void store_as_float(float* p, Vec<double> v) {
  _mm_storeu_ps(p, _mm256_cvtpd_ps(__m256d(v)));
}

TT_ISA_END
