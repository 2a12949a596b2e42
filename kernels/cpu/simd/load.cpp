// Loads of strided runs with conversion, for all kernels that are not elementwise.
#include "kernels/cpu/simd/load.h"

#include "kernels/cpu/simd/vec.h"

TT_ISA_BEGIN

// Halves of whole vectors, where there are instructions for them; return how many were converted.
inline int64_t widen_halves(float* dst, const char* src, int64_t n) {
  int64_t i = 0;
  if constexpr (kHalfConversions)
    for (; i + kLanes<float> <= n; i += kLanes<float>) store(dst + i, load_f16(src + 2 * i));
  return i;
}
// As those instructions: a NaN keeps the leading bits of its payload.
TT_INLINE F16 narrow_half(float x) {
  const uint32_t m = bit_cast<uint32_t>(x) & 0x7fffffffu;
  const uint32_t payload = m > 0x7f800000u ? m >> 13 & 0x3ffu : 0u;
  return {uint16_t(narrow_f16(x).bits | payload)};
}
inline int64_t narrow_halves(char* dst, const float* src, int64_t n) {
  int64_t i = 0;
  if constexpr (kHalfConversions)
    for (; i + kLanes<float> <= n; i += kLanes<float>) store_f16(dst + 2 * i, load(src + i));
  return i;
}

// kVectors: contiguous runs by vectors, whose code is long if D is much smaller than S.
template <class D, class S, bool kVectors = true>
inline void load_as(void* to, const char* src, int64_t stride, int64_t n) {
  D* TT_RESTRICT dst = static_cast<D*>(to);
  if (kVectors && stride == int64_t(sizeof(S))) {
    const S* s = reinterpret_cast<const S*>(src);
    for (int64_t i = 0; i < n; i++) dst[i] = To<D>::from(s[i]);
  } else {
    for (int64_t i = 0; i < n; i++, src += stride) {
      dst[i] = To<D>::from(*reinterpret_cast<const S*>(src));
      TT_SCALAR_LOOP;
    }
  }
}

template <class D>
inline void load_integer(void* dst, const char* src, int64_t stride, int64_t n, int32_t dtype) {
  switch (dtype) {
    case TT_BOOL: return load_as<D, Bool>(dst, src, stride, n);
    case TT_U8: return load_as<D, uint8_t>(dst, src, stride, n);
    case TT_I8: return load_as<D, int8_t>(dst, src, stride, n);
    case TT_I16: return load_as<D, int16_t>(dst, src, stride, n);
    case TT_I32: return load_as<D, int32_t>(dst, src, stride, n);
    default: return load_as<D, int64_t>(dst, src, stride, n);
  }
}

template <class S> inline void copy_run(void* dst, const char* src, int64_t stride, int64_t n) {
  S* d = static_cast<S*>(dst);
  if (stride == int64_t(sizeof(S))) {
    memcpy(dst, src, size_t(n) * sizeof(S));
    return;
  }
  for (int64_t i = 0; i < n; i++, src += stride) memcpy(d + i, src, sizeof(S));
}

template <class S, S (*narrow)(float)>
inline void store_as(char* dst, int64_t stride, const float* TT_RESTRICT src, int64_t n) {
  if (stride == int64_t(sizeof(S))) {
    S* TT_RESTRICT d = reinterpret_cast<S*>(dst);
    for (int64_t i = 0; i < n; i++) d[i] = narrow(src[i]);
  } else {
    for (int64_t i = 0; i < n; i++, dst += stride) {
      *reinterpret_cast<S*>(dst) = narrow(src[i]);
      TT_SCALAR_LOOP;
    }
  }
}

TT_INLINE float same(float x) { return x; }

TT_ISA_END

TT_ENTRY_BEGIN

void load_f32(void* dst, const char* src, int64_t stride, int64_t n, int32_t dtype) noexcept {
  if (dtype == TT_F32) load_as<float, float>(dst, src, stride, n);
  else if (is_dtype(dtype, TT_BF16)) load_as<float, BF16>(dst, src, stride, n);
  else {
    const int64_t done = stride == 2 ? widen_halves(static_cast<float*>(dst), src, n) : 0;
    load_as<float, F16>(static_cast<float*>(dst) + done, src + done * stride, stride, n - done);
  }
}

void load_i32(void* dst, const char* src, int64_t stride, int64_t n, int32_t dtype) noexcept {
  load_integer<int32_t>(dst, src, stride, n, dtype);
}

void load_i64(void* dst, const char* src, int64_t stride, int64_t n, int32_t dtype) noexcept {
  load_integer<int64_t>(dst, src, stride, n, dtype);
}

void load_logical(void* dst, const char* src, int64_t stride, int64_t n, int32_t dtype) noexcept {
  switch (dtype) {
    case TT_F16: return load_as<uint8_t, F16>(dst, src, stride, n);
    case TT_BF16: return load_as<uint8_t, BF16>(dst, src, stride, n);
    case TT_F32: return load_as<uint8_t, float>(dst, src, stride, n);
    case TT_F64: return load_as<uint8_t, double>(dst, src, stride, n);
    case TT_C64: return load_as<uint8_t, C64, false>(dst, src, stride, n);
    case TT_C128: return load_as<uint8_t, C128, false>(dst, src, stride, n);
    default: return load_integer<uint8_t>(dst, src, stride, n, dtype);
  }
}

void load_raw8(void* dst, const char* src, int64_t stride, int64_t n, int32_t) noexcept {
  copy_run<uint64_t>(dst, src, stride, n);
}

void load_raw16(void* dst, const char* src, int64_t stride, int64_t n, int32_t) noexcept {
  copy_run<C128>(dst, src, stride, n);
}

void store_f32(char* dst, int64_t stride, const float* src, int64_t n, int32_t dtype) noexcept {
  if (dtype == TT_F32) store_as<float, same>(dst, stride, src, n);
  else if (is_dtype(dtype, TT_BF16)) store_as<BF16, narrow_bf16>(dst, stride, src, n);
  else {
    const int64_t done = stride == 2 ? narrow_halves(dst, src, n) : 0;
    store_as<F16, narrow_half>(dst + done * stride, stride, src + done, n - done);
  }
}

TT_ENTRY_END
