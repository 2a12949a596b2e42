// Packs operands into panels, which a micro-kernel reads as one stream of memory.
//
//   x: w vectors (rows of a or columns of b) of nk elements, any strides
//   out: [nk][pitch], the w elements of one k position side by side, zeros up to pitch
#pragma once

#include "core/half.h"
#include "kernels/cpu/matmul/vec.h"

TT_ENTRY_BEGIN
// pack_panel() of words; packing moves elements, whose type it need not know.
void pack_words(const int32_t* x, int64_t i_stride, int64_t k_stride, int w, int pitch, int64_t nk,
                int32_t* out) noexcept;
void pack_words(const int64_t* x, int64_t i_stride, int64_t k_stride, int w, int pitch, int64_t nk,
                int64_t* out) noexcept;
TT_ENTRY_END

TT_ISA_BEGIN

template <int kBytes> struct WordOf { using type = int32_t; };
template <> struct WordOf<8> { using type = int64_t; };

// out[p * pitch + i] = x[i * i_stride + p * k_stride] for i < w, 0 for w <= i < pitch.
template <class T> TT_INLINE void pack_panel(const T* x, int64_t i_stride, int64_t k_stride, int w,
                                             int pitch, int64_t nk, T* out) {
  using Word = typename WordOf<sizeof(T)>::type;
  pack_words(reinterpret_cast<const Word*>(x), i_stride, k_stride, w, pitch, nk,
             reinterpret_cast<Word*>(out));
}

// --- f16 and bf16 operands, packed as f32 ---
struct F16 {
  uint16_t bits;
};
struct Bf16 {
  uint16_t bits;
};
TT_INLINE float widen(Bf16 x) { return bf16_to_float(x.bits); }
TT_INLINE Bf16 narrow(float x, Bf16) { return {float_to_bf16(x)}; }
TT_INLINE float widen(F16 x) { return f16_value(x.bits); }
TT_INLINE F16 narrow(float x, F16) { return {f16_bits(x)}; }

// True iff S is converted a vector at a time.
template <class S> constexpr bool kVectorConversions = true;
template <> constexpr bool kVectorConversions<F16> = kHalfConversions;

// Converts a vector of contiguous values.
TT_INLINE Vec<float> load_wide(const Bf16* x) {
  Vector<uint16_t, kLanes<float>> bits;
  memcpy(&bits, x, sizeof bits);
  return Vec<float>(converted<Vec<uint32_t>>(bits) << 16);
}
TT_INLINE void store_narrow(Bf16* out, Vec<float> x) {
  using Bits = Vector<uint16_t, kLanes<float>>;
  using U = Vec<uint32_t>;
  const U u = U(x);
  const U nan = u >> 16 | 0x40;
  const U rounded = (u + 0x7fff + (u >> 16 & 1)) >> 16;
  const U is_nan = U((u & 0x7fffffff) > 0x7f800000);
  const Bits bits = converted<Bits>((nan & is_nan) | (rounded & ~is_nan));
  memcpy(out, &bits, sizeof bits);
}
TT_INLINE Vec<float> load_wide(const F16* x) {
  if constexpr (kHalfConversions) return load_f16(x);
  Vec<float> v;
  for (int i = 0; i < kLanes<float>; i++) v[i] = widen(x[i]);
  return v;
}
TT_INLINE void store_narrow(F16* out, Vec<float> x) { store_f16(out, x); }

// Converts n contiguous values.
template <class S> TT_INLINE void widen_run(const S* x, int64_t n, float* out) {
  int64_t i = 0;
  if constexpr (kVectorConversions<S>)
    for (; i + kLanes<float> <= n; i += kLanes<float>) store(out + i, load_wide(x + i));
  for (; i < n; i++) out[i] = widen(x[i]);
}
template <class S> TT_INLINE void narrow_run(const float* x, int64_t n, S* out) {
  int64_t i = 0;
  if constexpr (kVectorConversions<S>)
    for (; i + kLanes<float> <= n; i += kLanes<float>) store_narrow(out + i, load(x + i));
  for (; i < n; i++) out[i] = narrow(x[i], S{});
}

// Widens kPiece k positions at a time into a buffer, then packs that.
template <class S> void pack_halves(const S* x, int64_t i_stride, int64_t k_stride, int w,
                                    int pitch, int64_t nk, float* out) {
  constexpr int64_t kPiece = 64;
  float buffer[kPiece * 64];
  for (int64_t p = 0; p < nk; p += kPiece) {
    const int64_t depth = min(nk - p, kPiece);
    const S* src = x + p * k_stride;
    if (i_stride == 1 && (w > 1 || k_stride > 1)) {
      for (int64_t q = 0; q < depth; q++) widen_run(src + q * k_stride, w, buffer + q * w);
      pack_panel(buffer, 1, int64_t(w), w, pitch, depth, out + p * pitch);
      continue;
    }
    for (int i = 0; i < w; i++) {
      if (k_stride == 1) widen_run(src + i * i_stride, depth, buffer + i * kPiece);
      else
        for (int64_t q = 0; q < depth; q++)
          buffer[i * kPiece + q] = widen(src[i * i_stride + q * k_stride]);
    }
    pack_panel(buffer, kPiece, 1, w, pitch, depth, out + p * pitch);
  }
}
TT_INLINE void pack_panel(const F16* x, int64_t i_stride, int64_t k_stride, int w, int pitch,
                          int64_t nk, float* out) {
  pack_halves(x, i_stride, k_stride, w, pitch, nk, out);
}
TT_INLINE void pack_panel(const Bf16* x, int64_t i_stride, int64_t k_stride, int w, int pitch,
                          int64_t nk, float* out) {
  pack_halves(x, i_stride, k_stride, w, pitch, nk, out);
}

TT_ISA_END
