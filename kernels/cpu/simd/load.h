// Loads of strided runs with conversion to a compute type, and stores of single results.
#pragma once

#include "kernels/cpu/simd/isa.h"

TT_ISA_BEGIN

struct F16 {
  uint16_t bits;
};
struct BF16 {
  uint16_t bits;
};
struct Bool {
  uint8_t bits;
};
template <class R> struct Complex { R re, im; };
using C64 = Complex<float>;
using C128 = Complex<double>;

// A multiplication moves the exponent and normalises subnormals.
TT_INLINE float widen(F16 h) {
  const uint32_t mag = uint32_t(h.bits & 0x7fff) << 13;
  const uint32_t f = bit_cast<uint32_t>(bit_cast<float>(mag) * 0x1p112f);
  const uint32_t special = mag >= 0x0f800000u ? 0x7f800000u : 0u;
  return bit_cast<float>(f | special | uint32_t(h.bits & 0x8000) << 16);
}
TT_INLINE float widen(BF16 h) { return bit_cast<float>(uint32_t(h.bits) << 16); }

// Both round to nearest, ties to even. A NaN becomes a quiet NaN.
TT_INLINE F16 narrow_f16(float x) {
  const uint32_t all = bit_cast<uint32_t>(x);
  const uint32_t sign = all & 0x80000000u;
  const uint32_t m = all ^ sign;
  const uint32_t normal = (m + 0xc8000fffu + (m >> 13 & 1)) >> 13;
  const uint32_t tiny = bit_cast<uint32_t>(bit_cast<float>(m) + 0.5f) - 0x3f000000u;
  const uint32_t huge = m > 0x7f800000u ? 0x7e00u : 0x7c00u;
  const uint32_t finite = m < 0x38800000u ? tiny : normal;
  const uint32_t r = m >= 0x47800000u ? huge : finite;
  return {uint16_t(r | sign >> 16)};
}
TT_INLINE BF16 narrow_bf16(float x) {
  const uint32_t b = bit_cast<uint32_t>(x);
  const uint32_t r = (b + 0x7fffu + (b >> 16 & 1)) >> 16;
  return {uint16_t((b & 0x7fffffffu) > 0x7f800000u ? (b >> 16 | 0x40u) : r)};
}

// To<D>::from(stored value) converts to compute type D. uint8_t is the logical type: 1 iff nonzero.
template <class D> struct To {
  template <class S> static TT_INLINE D from(S x) { return D(x); }
  static TT_INLINE D from(Bool x) { return D(x.bits != 0); }
};
template <> struct To<float> {
  template <class S> static TT_INLINE float from(S x) { return float(x); }
  static TT_INLINE float from(F16 x) { return widen(x); }
  static TT_INLINE float from(BF16 x) { return widen(x); }
};
template <class R> struct To<Complex<R>> {
  static TT_INLINE Complex<R> from(Complex<R> x) { return x; }
};
template <> struct To<uint8_t> {
  template <class S> static TT_INLINE uint8_t from(S x) { return x != 0; }
  static TT_INLINE uint8_t from(Bool x) { return x.bits != 0; }
  static TT_INLINE uint8_t from(F16 x) { return (x.bits & 0x7fff) != 0; }
  static TT_INLINE uint8_t from(BF16 x) { return (x.bits & 0x7fff) != 0; }
  template <class R> static TT_INLINE uint8_t from(Complex<R> x) {
    return uint8_t((x.re != 0) | (x.im != 0));
  }
};

TT_ISA_END

// dst[i] = the element of `dtype` at src + i * stride bytes, converted. dtypes per compute type:
// float: f16 bf16 f32; int32_t: bool and integers up to i32; int64_t: bool and integers; uint8_t:
// all; the others: their own.
TT_ENTRY_BEGIN
using LoadRun = void (*)(void* dst, const char* src, int64_t stride, int64_t n,
                         int32_t dtype) noexcept;
void load_f32(void* dst, const char* src, int64_t stride, int64_t n, int32_t dtype) noexcept;
void load_i32(void* dst, const char* src, int64_t stride, int64_t n, int32_t dtype) noexcept;
void load_i64(void* dst, const char* src, int64_t stride, int64_t n, int32_t dtype) noexcept;
void load_logical(void* dst, const char* src, int64_t stride, int64_t n, int32_t dtype) noexcept;
void load_raw8(void* dst, const char* src, int64_t stride, int64_t n, int32_t dtype) noexcept;
void load_raw16(void* dst, const char* src, int64_t stride, int64_t n, int32_t dtype) noexcept;
// f32 -> f16, bf16 or f32 at dst + i * stride bytes.
void store_f32(char* dst, int64_t stride, const float* src, int64_t n, int32_t dtype) noexcept;
TT_ENTRY_END

TT_ISA_BEGIN

// The loading function of a compute type, and the dtype that needs no conversion (0: none).
template <class D> struct Loads;
template <> struct Loads<float> {
  static constexpr LoadRun run = load_f32;
  static constexpr int32_t native = TT_F32;
};
template <> struct Loads<double> {
  static constexpr LoadRun run = load_raw8;
  static constexpr int32_t native = TT_F64;
};
template <> struct Loads<int32_t> {
  static constexpr LoadRun run = load_i32;
  static constexpr int32_t native = TT_I32;
};
template <> struct Loads<int64_t> {
  static constexpr LoadRun run = load_i64;
  static constexpr int32_t native = TT_I64;
};
template <> struct Loads<uint8_t> {
  static constexpr LoadRun run = load_logical;
  static constexpr int32_t native = 0;
};
template <> struct Loads<C64> {
  static constexpr LoadRun run = load_raw8;
  static constexpr int32_t native = TT_C64;
};
template <> struct Loads<C128> {
  static constexpr LoadRun run = load_raw16;
  static constexpr int32_t native = TT_C128;
};

template <class D>
TT_INLINE void load_run(D* d, const char* s, int64_t stride, int64_t n, int32_t dtype) {
  Loads<D>::run(d, s, stride, n, dtype);
}

template <class D> TT_INLINE void put(char* p, D v) { memcpy(p, &v, sizeof v); }
TT_INLINE void store_one(char* p, float v, int32_t dtype) {
  if (dtype == TT_F32) put(p, v);
  else if (is_dtype(dtype, TT_BF16)) put(p, narrow_bf16(v));
  else put(p, narrow_f16(v));
}
TT_INLINE void store_one(char* p, double v, int32_t) { put(p, v); }
TT_INLINE void store_one(char* p, C64 v, int32_t) { put(p, v); }
TT_INLINE void store_one(char* p, C128 v, int32_t) { put(p, v); }
TT_INLINE void store_one(char* p, uint8_t v, int32_t) { put(p, v); }
TT_INLINE void store_one(char* p, int64_t v, int32_t dtype) {
  switch (kItemSize[dtype]) {
    case 1: return put(p, int8_t(v));
    case 2: return put(p, int16_t(v));
    case 4: return put(p, int32_t(v));
    default: return put(p, v);
  }
}
TT_INLINE void store_one(char* p, int32_t v, int32_t dtype) { store_one(p, int64_t(v), dtype); }

TT_ISA_END
