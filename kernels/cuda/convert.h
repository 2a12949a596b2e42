// Elements of any dtype as numbers of a compute type, and back, on both sides of a launch.
// Conversions are those of kernels/cpu/simd/convert.h.
#pragma once

#include "kernels/cuda/device.h"
#include "kernels/functors/functor.h"

#if defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

namespace TT_NS {
namespace {

// kItemSize, for code of the device, which has no tables: log2 of the sizes, four bits each.
TT_FN int64_t item_size(int32_t dtype) {
  constexpr uint64_t kLog2 = 0x3214332113210000;
  return int64_t(1) << (kLog2 >> (4 * dtype) & 15);
}

// Stored halves.
struct F16 {
  uint16_t bits;
};
struct BF16 {
  uint16_t bits;
};

template <class To, class From> TT_FN To bits_as(From x) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, x);
}

#if defined(__CUDA_ARCH__)
TT_FN float widen(F16 h) { return __half2float(__ushort_as_half(h.bits)); }
TT_FN F16 narrow_f16(float x) { return {__half_as_ushort(__float2half_rn(x))}; }
TT_FN BF16 narrow_bf16(float x) { return {__bfloat16_as_ushort(__float2bfloat16_rn(x))}; }
#else
TT_FN float widen(F16 h) {
  const uint32_t magnitude = uint32_t(h.bits & 0x7fff) << 13;
  const uint32_t f = bits_as<uint32_t>(bits_as<float>(magnitude) * 0x1p112f);
  const uint32_t special = magnitude >= 0x0f800000u ? 0x7f800000u : 0u;
  return bits_as<float>(f | special | uint32_t(h.bits & 0x8000) << 16);
}
// To nearest, ties to even; a nan becomes a quiet one.
TT_FN F16 narrow_f16(float x) {
  const uint32_t all = bits_as<uint32_t>(x);
  const uint32_t sign = all & 0x80000000u;
  const uint32_t m = all ^ sign;
  const uint32_t normal = (m + 0xc8000fffu + (m >> 13 & 1)) >> 13;
  const uint32_t tiny = bits_as<uint32_t>(bits_as<float>(m) + 0.5f) - 0x3f000000u;
  const uint32_t huge = m > 0x7f800000u ? 0x7e00u : 0x7c00u;
  const uint32_t finite = m < 0x38800000u ? tiny : normal;
  return {uint16_t((m >= 0x47800000u ? huge : finite) | sign >> 16)};
}
TT_FN BF16 narrow_bf16(float x) {
  const uint32_t b = bits_as<uint32_t>(x);
  const uint32_t rounded = (b + 0x7fffu + (b >> 16 & 1)) >> 16;
  return {uint16_t((b & 0x7fffffffu) > 0x7f800000u ? (b >> 16 | 0x40u) : rounded)};
}
#endif
TT_FN float widen(BF16 h) { return bits_as<float>(uint32_t(h.bits) << 16); }

template <class T> constexpr bool kIsHalf = false;
template <> inline constexpr bool kIsHalf<F16> = true;
template <> inline constexpr bool kIsHalf<BF16> = true;

// Float to integer truncates; what does not fit becomes the smallest integer, as on x86.
template <class D, class S> TT_FN D truncate_to(S x) {
  constexpr S kLimit = sizeof(D) == 4 ? S(0x1p31) : S(0x1p63);
  const bool fits = x >= -kLimit && x < kLimit;
  return D(fits ? x : -kLimit);
}

// Between int32, int64, float, double and complex numbers.
template <class D, class S> TT_FN D convert(S s) {
  if constexpr (__is_same(D, bool)) {
    return s != S{};
  } else if constexpr (kIsComplex<S>) {
    if constexpr (kIsComplex<D>) return {typename D::Real(s.re), typename D::Real(s.im)};
    else return convert<D>(s.re);
  } else if constexpr (kIsComplex<D>) {
    return {typename D::Real(s), 0};
  } else if constexpr (kIsFloat<S> && !kIsFloat<D>) {
    return truncate_to<D>(s);
  } else {
    return D(s);
  }
}

// A stored element as T. T = bool: is it not zero?
template <class T> TT_FN T load_element(const char* p, int32_t dtype) {
  switch (dtype) {
    case TT_BOOL: return convert<T>(int32_t(*reinterpret_cast<const uint8_t*>(p) != 0));
    case TT_U8: return convert<T>(int32_t(*reinterpret_cast<const uint8_t*>(p)));
    case TT_I8: return convert<T>(int32_t(*reinterpret_cast<const int8_t*>(p)));
    case TT_I16: return convert<T>(int32_t(*reinterpret_cast<const int16_t*>(p)));
    case TT_I32: return convert<T>(*reinterpret_cast<const int32_t*>(p));
    case TT_I64: return convert<T>(*reinterpret_cast<const int64_t*>(p));
    case TT_F16: return convert<T>(widen(*reinterpret_cast<const F16*>(p)));
    case TT_BF16: return convert<T>(widen(*reinterpret_cast<const BF16*>(p)));
    case TT_F32: return convert<T>(*reinterpret_cast<const float*>(p));
    case TT_F64: return convert<T>(*reinterpret_cast<const double*>(p));
    case TT_C64: return convert<T>(*reinterpret_cast<const c64*>(p));
    case TT_U16: return convert<T>(int32_t(*reinterpret_cast<const uint16_t*>(p)));
    case TT_U32: return convert<T>(int64_t(*reinterpret_cast<const uint32_t*>(p)));
    case TT_U64: return convert<T>(*reinterpret_cast<const uint64_t*>(p));
    default: return convert<T>(*reinterpret_cast<const c128*>(p));
  }
}

// Values from 2^63 on are those of uint64, others those of int64.
template <class T> TT_FN uint64_t as_uint64(T v) {
  if constexpr (kIsComplex<T>) {
    return as_uint64(v.re);
  } else {
    if constexpr (kIsFloat<T>)
      if (v >= T(0x1p63) && v < T(0x1p64)) return uint64_t(v);
    return uint64_t(convert<int64_t>(v));
  }
}

template <class T> TT_FN void store_element(char* p, int32_t dtype, T v) {
  switch (dtype) {
    case TT_BOOL: *reinterpret_cast<uint8_t*>(p) = convert<bool>(v); return;
    case TT_U8: *reinterpret_cast<uint8_t*>(p) = uint8_t(convert<int32_t>(v)); return;
    case TT_I8: *reinterpret_cast<int8_t*>(p) = int8_t(convert<int32_t>(v)); return;
    case TT_I16: *reinterpret_cast<int16_t*>(p) = int16_t(convert<int32_t>(v)); return;
    case TT_I32: *reinterpret_cast<int32_t*>(p) = convert<int32_t>(v); return;
    case TT_I64: *reinterpret_cast<int64_t*>(p) = convert<int64_t>(v); return;
    case TT_F16: *reinterpret_cast<F16*>(p) = narrow_f16(convert<float>(v)); return;
    case TT_BF16: *reinterpret_cast<BF16*>(p) = narrow_bf16(convert<float>(v)); return;
    case TT_F32: *reinterpret_cast<float*>(p) = convert<float>(v); return;
    case TT_F64: *reinterpret_cast<double*>(p) = convert<double>(v); return;
    case TT_C64: *reinterpret_cast<c64*>(p) = convert<c64>(v); return;
    case TT_U16: *reinterpret_cast<uint16_t*>(p) = uint16_t(convert<int64_t>(v)); return;
    case TT_U32: *reinterpret_cast<uint32_t*>(p) = uint32_t(convert<int64_t>(v)); return;
    case TT_U64: *reinterpret_cast<uint64_t*>(p) = as_uint64(v); return;
    default: *reinterpret_cast<c128*>(p) = convert<c128>(v); return;
  }
}

// Host: the bytes of a number as an element of this dtype.
inline void encode_number(void* at, int32_t dtype, const tt_scalar& s) {
  char* p = static_cast<char*>(at);
  if (s.kind <= TT_SCALAR_INT) {
    store_element(p, dtype, int64_t(s.i));
    return;
  }
  store_element(p, dtype, c128{s.re, s.kind == TT_SCALAR_COMPLEX ? s.im : 0.0});
}

}  // namespace
}  // namespace TT_NS
