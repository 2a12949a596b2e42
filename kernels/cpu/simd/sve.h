// SVE of 64-bit ARM with vectors of 256 bits (-msve-vector-bits=256), to which gcc compiles the
// vector extension, too. See vec.h for the contracts.
#pragma once

TT_ISA_BEGIN

constexpr int kPackedTileRows = 12;
constexpr int kSmallTileRows = 8;
constexpr int kConvTileRows = 9;
constexpr bool kRowsOutside = false;
constexpr bool kCheapParts = true;
constexpr bool kStreams = false;

typedef svbool_t SvePart __attribute__((arm_sve_vector_bits(256)));

template <class T> struct Part {
  SvePart lanes;
  TT_INLINE explicit Part(int n)
      : lanes(sizeof(T) == 4 ? svwhilelt_b32(0, n) : svwhilelt_b64(0, n)) {}
};
TT_INLINE Vec<float> load(const float* p, Part<float> m) { return svld1_f32(m.lanes, p); }
TT_INLINE Vec<double> load(const double* p, Part<double> m) { return svld1_f64(m.lanes, p); }
TT_INLINE Vec<int32_t> load(const int32_t* p, Part<int32_t> m) { return svld1_s32(m.lanes, p); }
TT_INLINE Vec<int64_t> load(const int64_t* p, Part<int64_t> m) { return svld1_s64(m.lanes, p); }
TT_INLINE void store(float* p, Vec<float> v, Part<float> m) { svst1_f32(m.lanes, p, v); }
TT_INLINE void store(double* p, Vec<double> v, Part<double> m) { svst1_f64(m.lanes, p, v); }
TT_INLINE void store(int32_t* p, Vec<int32_t> v, Part<int32_t> m) { svst1_s32(m.lanes, p, v); }
TT_INLINE void store(int64_t* p, Vec<int64_t> v, Part<int64_t> m) { svst1_s64(m.lanes, p, v); }

TT_INLINE Vec<float> fma(Vec<float> x, Vec<float> y, Vec<float> z) {
  __asm__("fmla %0.s, %1/m, %2.s, %3.s" : "+w"(z) : "Upl"(svptrue_b32()), "w"(x), "w"(y));
  return z;
}
TT_INLINE Vec<double> fma(Vec<double> x, Vec<double> y, Vec<double> z) {
  __asm__("fmla %0.d, %1/m, %2.d, %3.d" : "+w"(z) : "Upl"(svptrue_b64()), "w"(x), "w"(y));
  return z;
}

// FMAX would return a NaN of either operand.
TT_INLINE Vec<float> vmax(Vec<float> x, Vec<float> m) {
  return svsel_f32(svcmpgt_f32(svptrue_b32(), x, m), x, m);
}
TT_INLINE Vec<float> vmin(Vec<float> x, Vec<float> m) {
  return svsel_f32(svcmplt_f32(svptrue_b32(), x, m), x, m);
}
TT_INLINE Vec<double> vmax(Vec<double> x, Vec<double> m) {
  return svsel_f64(svcmpgt_f64(svptrue_b64(), x, m), x, m);
}
TT_INLINE Vec<double> vmin(Vec<double> x, Vec<double> m) {
  return svsel_f64(svcmplt_f64(svptrue_b64(), x, m), x, m);
}

TT_INLINE Vec<float> vsqrt(Vec<float> x) { return svsqrt_f32_x(svptrue_b32(), x); }
TT_INLINE Vec<double> vsqrt(Vec<double> x) { return svsqrt_f64_x(svptrue_b64(), x); }
TT_INLINE Vec<float> exact_sqrt(Vec<float> x) { return vsqrt(x); }

// Halves are in the low bits of lanes of 32.
constexpr bool kHalfConversions = true;
TT_INLINE float f16_value(uint16_t x) { return f16_to_float(x); }
TT_INLINE uint16_t f16_bits(float x) { return float_to_f16(x); }
TT_INLINE Vec<float> load_f16(const void* p) {
  const svuint32_t bits = svld1uh_u32(svptrue_b32(), static_cast<const uint16_t*>(p));
  return svcvt_f32_f16_x(svptrue_b32(), svreinterpret_f16_u32(bits));
}
TT_INLINE void store_f16(void* p, Vec<float> v) {
  const svfloat16_t halves = svcvt_f16_f32_x(svptrue_b32(), v);
  svst1h_u32(svptrue_b32(), static_cast<uint16_t*>(p), svreinterpret_u32_f16(halves));
}

TT_INLINE void stream_vector(char* p, const char* from) { memcpy(p, from, 32); }
TT_INLINE void stream_fence() {}
TT_INLINE void clear_upper_halves() {}

// A lane outside of a table is 0.
TT_INLINE Vec<float> permute(Vec<float> a, Vec<float> b, Vec<int32_t> i) {
  const Vec<uint32_t> x = svtbl_u32(Vec<uint32_t>(a), Vec<uint32_t>(i));
  const Vec<uint32_t> y = svtbl_u32(Vec<uint32_t>(b), Vec<uint32_t>(i - kLanes<float>));
  return Vec<float>(x | y);
}

TT_INLINE Vec<int32_t> dot_words(Vec<int32_t> x, Vec<int32_t> y) {
  const Vec<int32_t> low = ((x << 16) >> 16) * ((y << 16) >> 16);
  return low + (x >> 16) * (y >> 16);
}

#if TT_BYTE_DOT
// Both operands of the instruction are signed: u ^ 128 is u - 128.
constexpr bool kDotLowersU = true;
TT_INLINE Vec<int32_t> dot_bytes(Vec<int32_t> sum, Vec<int32_t> u, Vec<int32_t> s) {
  using Bytes = Vec<int8_t>;
  return svdot_s32(sum, Bytes(u) ^ int8_t(-128), Bytes(s));
}
#endif

using NanMask = Vec<int32_t>;
TT_INLINE NanMask unordered(Vec<float> a, Vec<float> b) { return (a != a) | (b != b); }
TT_INLINE bool any(NanMask m) {
  return svptest_any(svptrue_b32(), svcmpne_n_s32(svptrue_b32(), m, 0));
}
TT_INLINE uint32_t sign_bits(Vec<int64_t> m) {
  const Vec<uint64_t> bits = (Vec<uint64_t>(m) >> 63) << Vec<uint64_t>{0, 1, 2, 3};
  return uint32_t(svorv_u64(svptrue_b64(), bits));
}

TT_INLINE Vec<uint64_t> mul_low(Vec<uint64_t> a, Vec<uint64_t> b) {
  return (a & 0xffffffffu) * (b & 0xffffffffu);
}

TT_INLINE Vec<double> load_as_double(const float* p) {
  const svuint64_t bits = svld1uw_u64(svptrue_b64(), reinterpret_cast<const uint32_t*>(p));
  return svcvt_f64_f32_x(svptrue_b64(), svreinterpret_f32_u64(bits));
}
TT_INLINE void store_as_float(float* p, Vec<double> v) {
  const svfloat32_t floats = svcvt_f32_f64_x(svptrue_b64(), v);
  svst1w_u64(svptrue_b64(), reinterpret_cast<uint32_t*>(p), svreinterpret_u64_f32(floats));
}

TT_ISA_END
