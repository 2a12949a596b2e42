// AVX-512. See vec.h for the contracts.
#pragma once

TT_ISA_BEGIN

constexpr int kPackedTileRows = 14;
constexpr int kSmallTileRows = 8;
constexpr int kConvTileRows = 14;
constexpr bool kRowsOutside = true;
constexpr bool kCheapParts = true;
constexpr bool kStreams = true;

template <class T> struct Part {
  uint32_t bits;
  TT_INLINE explicit Part(int n) : bits((uint32_t(1) << n) - 1) {}
};
TT_INLINE Vec<float> load(const float* p, Part<float> m) {
  return Vec<float>(_mm512_maskz_loadu_ps(__mmask16(m.bits), p));
}
TT_INLINE Vec<double> load(const double* p, Part<double> m) {
  return Vec<double>(_mm512_maskz_loadu_pd(__mmask8(m.bits), p));
}
TT_INLINE Vec<int32_t> load(const int32_t* p, Part<int32_t> m) {
  return Vec<int32_t>(_mm512_maskz_loadu_epi32(__mmask16(m.bits), p));
}
TT_INLINE Vec<int64_t> load(const int64_t* p, Part<int64_t> m) {
  return Vec<int64_t>(_mm512_maskz_loadu_epi64(__mmask8(m.bits), p));
}
TT_INLINE void store(float* p, Vec<float> v, Part<float> m) {
  _mm512_mask_storeu_ps(p, __mmask16(m.bits), __m512(v));
}
TT_INLINE void store(double* p, Vec<double> v, Part<double> m) {
  _mm512_mask_storeu_pd(p, __mmask8(m.bits), __m512d(v));
}
TT_INLINE void store(int32_t* p, Vec<int32_t> v, Part<int32_t> m) {
  _mm512_mask_storeu_epi32(p, __mmask16(m.bits), __m512i(v));
}
TT_INLINE void store(int64_t* p, Vec<int64_t> v, Part<int64_t> m) {
  _mm512_mask_storeu_epi64(p, __mmask8(m.bits), __m512i(v));
}

TT_INLINE Vec<float> fma(Vec<float> x, Vec<float> y, Vec<float> z) {
  return Vec<float>(_mm512_fmadd_ps(__m512(x), __m512(y), __m512(z)));
}
TT_INLINE Vec<double> fma(Vec<double> x, Vec<double> y, Vec<double> z) {
  return Vec<double>(_mm512_fmadd_pd(__m512d(x), __m512d(y), __m512d(z)));
}

// Half a vector, for operands that fill no more.
template <class T> using HalfVec = Vector<T, TT_VEC_BYTES / 2 / int(sizeof(T))>;
TT_INLINE HalfVec<float> load_half(const float* p, Part<float> m) {
  return HalfVec<float>(_mm256_maskz_loadu_ps(__mmask8(m.bits), p));
}
TT_INLINE HalfVec<double> load_half(const double* p, Part<double> m) {
  return HalfVec<double>(_mm256_maskz_loadu_pd(__mmask8(m.bits), p));
}
TT_INLINE void store_half(float* p, HalfVec<float> v, Part<float> m) {
  _mm256_mask_storeu_ps(p, __mmask8(m.bits), __m256(v));
}
TT_INLINE void store_half(double* p, HalfVec<double> v, Part<double> m) {
  _mm256_mask_storeu_pd(p, __mmask8(m.bits), __m256d(v));
}
TT_INLINE HalfVec<float> fma_half(float x, HalfVec<float> y, HalfVec<float> z) {
  return HalfVec<float>(_mm256_fmadd_ps(_mm256_set1_ps(x), __m256(y), __m256(z)));
}
TT_INLINE HalfVec<double> fma_half(double x, HalfVec<double> y, HalfVec<double> z) {
  return HalfVec<double>(_mm256_fmadd_pd(_mm256_set1_pd(x), __m256d(y), __m256d(z)));
}

// (The unmasked intrinsics of gcc 12 warn of their own undefined operand.)
TT_INLINE Vec<float> vmax(Vec<float> x, Vec<float> m) {
  return Vec<float>(_mm512_maskz_max_ps(__mmask16(-1), __m512(x), __m512(m)));
}
TT_INLINE Vec<float> vmin(Vec<float> x, Vec<float> m) {
  return Vec<float>(_mm512_maskz_min_ps(__mmask16(-1), __m512(x), __m512(m)));
}
TT_INLINE Vec<double> vmax(Vec<double> x, Vec<double> m) {
  return Vec<double>(_mm512_maskz_max_pd(__mmask8(-1), __m512d(x), __m512d(m)));
}
TT_INLINE Vec<double> vmin(Vec<double> x, Vec<double> m) {
  return Vec<double>(_mm512_maskz_min_pd(__mmask8(-1), __m512d(x), __m512d(m)));
}

// An approximation and one Newton step: within 1 ulp of the root of a normal number; 0 and infinity
// are exact. The hardware's root and quotient together would take longer than memory does.
TT_INLINE Vec<float> vsqrt(Vec<float> x) {
  const __m512 v = __m512(x);
  const __m512 r = _mm512_rsqrt14_ps(v);
  const __m512 y = _mm512_mul_ps(v, r);
  const __m512 root =
      _mm512_fmadd_ps(_mm512_fnmadd_ps(y, y, v), _mm512_mul_ps(r, _mm512_set1_ps(0.5f)), y);
  const __mmask16 own = _mm512_fpclass_ps_mask(v, 0x0e);  // +0, -0, +infinity
  return Vec<float>(_mm512_mask_mov_ps(root, own, v));
}
// Correctly rounded.
TT_INLINE Vec<float> exact_sqrt(Vec<float> x) { return Vec<float>(_mm512_sqrt_ps(__m512(x))); }
TT_INLINE Vec<double> vsqrt(Vec<double> x) { return Vec<double>(_mm512_sqrt_pd(__m512d(x))); }

constexpr bool kHalfConversions = true;
TT_INLINE float f16_value(uint16_t x) { return _cvtsh_ss(x); }
TT_INLINE uint16_t f16_bits(float x) { return uint16_t(_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT)); }
TT_INLINE Vec<float> load_f16(const void* p) {
  return Vec<float>(
      _mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(static_cast<const __m256i*>(p))));
}
TT_INLINE void store_f16(void* p, Vec<float> v) {
  _mm256_storeu_si256(static_cast<__m256i*>(p),
                      _mm512_maskz_cvtps_ph(0xffff, __m512(v), _MM_FROUND_TO_NEAREST_INT));
}
// Some of the lanes; those that are not loaded are 0.
TT_INLINE Vec<float> load_f16(const void* p, Part<float> m) {
  return Vec<float>(_mm512_maskz_cvtph_ps(0xffff, _mm256_maskz_loadu_epi16(__mmask16(m.bits), p)));
}
TT_INLINE void store_f16(void* p, Vec<float> v, Part<float> m) {
  _mm256_mask_storeu_epi16(p, __mmask16(m.bits),
                           _mm512_maskz_cvtps_ph(0xffff, __m512(v), _MM_FROUND_TO_NEAREST_INT));
}

TT_INLINE void stream_vector(char* p, const char* from) {
  _mm512_stream_si512(reinterpret_cast<__m512i*>(p), _mm512_loadu_si512(from));
}
TT_INLINE void stream_fence() { _mm_sfence(); }
TT_INLINE void clear_upper_halves() { _mm256_zeroupper(); }

TT_INLINE Vec<float> permute(Vec<float> a, Vec<float> b, Vec<int32_t> i) {
  return Vec<float>(_mm512_permutex2var_ps(__m512(a), __m512i(i), __m512(b)));
}

// The entry of a table of 16 for each lane: its last four bits count.
TT_INLINE Vec<double> look_up(const double* table, Vec<int64_t> i) {
  const __m512d behind = _mm512_load_pd(table + 8);
  return Vec<double>(_mm512_permutex2var_pd(_mm512_load_pd(table), __m512i(i), behind));
}

TT_INLINE Vec<int32_t> dot_words(Vec<int32_t> x, Vec<int32_t> y) {
  return Vec<int32_t>(_mm512_madd_epi16(__m512i(x), __m512i(y)));
}
#if defined(__AVX512VNNI__)
constexpr bool kDotLowersU = false;
TT_INLINE Vec<int32_t> dot_bytes(Vec<int32_t> sum, Vec<int32_t> u, Vec<int32_t> s) {
  return Vec<int32_t>(_mm512_dpbusd_epi32(__m512i(sum), __m512i(u), __m512i(s)));
}
#endif

// The first n <= 32 words of a vector, zeros beyond.
TT_INLINE Vec<int32_t> load_words(const void* p, int n) {
  return Vec<int32_t>(_mm512_maskz_loadu_epi16(n < 32 ? (1u << n) - 1 : ~0u, p));
}
// Lane l is the pair of words first + l of both.
TT_INLINE Vec<int32_t> zip_words(Vec<int32_t> even, Vec<int32_t> odd, int16_t first) {
  const __m512i lane = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i other = _mm512_slli_epi32(_mm512_add_epi32(lane, _mm512_set1_epi32(32)), 16);
  const __m512i words = _mm512_add_epi16(_mm512_or_si512(lane, other), _mm512_set1_epi16(first));
  return Vec<int32_t>(_mm512_permutex2var_epi16(__m512i(even), words, __m512i(odd)));
}
#if defined(__AVX512BF16__)
TT_INLINE Vec<float> fma(Vec<Bf16Pair> x, Vec<Bf16Pair> y, Vec<float> z) {
  return Vec<float>(_mm512_dpbf16_ps(__m512(z), __m512bh(x), __m512bh(y)));
}
#endif

using NanMask = uint32_t;
TT_INLINE NanMask unordered(Vec<float> a, Vec<float> b) {
  return _mm512_cmp_ps_mask(__m512(a), __m512(b), _CMP_UNORD_Q);
}
TT_INLINE bool any(NanMask m) { return m != 0; }
TT_INLINE uint32_t sign_bits(Vec<int64_t> m) { return _mm512_movepi64_mask(__m512i(m)); }

TT_INLINE Vec<uint64_t> mul_low(Vec<uint64_t> a, Vec<uint64_t> b) {
  return Vec<uint64_t>(_mm512_maskz_mul_epu32(__mmask8(-1), __m512i(a), __m512i(b)));
}

// x 2^n, rounded once.
TT_INLINE Vec<double> times_power_of_two(Vec<double> x, Vec<double> n) {
  return Vec<double>(_mm512_maskz_scalef_pd(__mmask8(-1), __m512d(x), __m512d(n)));
}

TT_INLINE Vec<double> load_as_double(const float* p) {
  Vector<float, 8> v;
  memcpy(&v, p, sizeof v);
  return converted<Vec<double>>(v);
}
TT_INLINE void store_as_float(float* p, Vec<double> v) {
  _mm256_storeu_ps(p, _mm512_cvtpd_ps(__m512d(v)));
}

TT_ISA_END
