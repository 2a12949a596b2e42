// Packs operands into panels, which a micro-kernel reads as one stream of memory.
//
//   x: w vectors (rows of a or columns of b) of nk elements, any strides
//   out: [nk][pitch], the w elements of one k position side by side, zeros up to pitch
#pragma once

#include "core/half.h"
#include "kernels/cpu/matmul/vec.h"

TT_ISA_BEGIN

// Any strides: element p of vector i is x[i * i_stride + p * k_stride].
template <class T> void pack_strided(const T* x, int64_t i_stride, int64_t k_stride, int w,
                                     int pitch, int64_t nk, T* out) {
  for (int64_t p = 0; p < nk; p++, out += pitch, x += k_stride) {
    for (int i = 0; i < w; i++) out[i] = x[i * i_stride];
    for (int i = w; i < pitch; i++) out[i] = T{};
  }
}

// pitch may end within a SIMD vector. A whole store there spills into the next k position, which is
// harmless if that is written later: so the last vector of every k position is stored before the
// others, and only the last kLanes positions need partial stores.
template <class T> TT_INLINE int last_vector(int pitch) {
  return (pitch - 1) / kLanes<T> * kLanes<T>;
}

// i_stride is 1: copies runs of w elements.
template <class T>
void pack_copy(const T* x, int64_t k_stride, int w, int pitch, int64_t nk, T* out) {
  constexpr int kL = kLanes<T>;
  if (w == 2 * kL && pitch == w) {
    for (int64_t p = 0; p < nk; p++, out += pitch, x += k_stride) {
      const Vec<T> lo = load(x);
      const Vec<T> hi = load(x + kL);
      store(out, lo);
      store(out + kL, hi);
    }
    return;
  }
  for (int v = last_vector<T>(pitch); v >= 0; v -= kL) {
    const int in_lanes = clamp(w - v, 0, kL);
    const int out_lanes = min(pitch - v, kL);
    const Part<T> in(in_lanes);
    const Part<T> to(out_lanes);
    const T* src = x + v;
    T* dst = out + v;
    int64_t p = 0;
    for (; p + kL < nk; p++, dst += pitch, src += k_stride) store(dst, load(src, in));
    for (; p < nk; p++, dst += pitch, src += k_stride) store(dst, load(src, in), to);
  }
}

// k_stride is 1: transposes blocks of kLanes x kLanes.
template <class T>
void pack_transpose(const T* x, int64_t i_stride, int w, int pitch, int64_t nk, T* out) {
  constexpr int kL = kLanes<T>;
  if (pitch == 1) return void(memcpy(out, x, size_t(nk) * sizeof(T)));
  for (int v = last_vector<T>(pitch); v >= 0; v -= kL) {
    const int rows = clamp(w - v, 0, kL);
    const int lanes = min(pitch - v, kL);
    const Part<T> to(lanes);
    const T* src = x + v * i_stride;
    T* dst = out + v;
    for (int64_t p = 0; p < nk; p += kL, src += kL) {
      const int depth = nk - p < kL ? int(nk - p) : kL;
      const Part<T> in(depth);
      Vec<T> r[kL];
      for (int i = 0; i < rows; i++)
        TT_PREFETCH_L2(src + (i + w) * i_stride);  // for the next panel
      if (depth == kL &&
          rows == lanes) {  // lanes from `lanes` on are not stored: they may be any row
        TT_UNROLL
        for (int i = 0; i < kL; i++) r[i] = load(src + (i < rows ? i : 0) * i_stride);
      } else {
        TT_UNROLL
        for (int i = 0; i < kL; i++) r[i] = i < rows ? load(src + i * i_stride, in) : Vec<T>{};
      }
      transpose<T>(r);
      // What a whole store may write: the rest of the panel.
      const int64_t room = (nk - p) * pitch - v;
      if (depth == kL && (kL - 1) * int64_t(pitch) + kL <= room) {
        // One pointer: the compiler would keep one for each row in memory.
        int64_t row = pitch;
        TT_UNROLL
        for (int i = 0; i < kL; i++) {
          store(dst, r[i]);
          dst += row;
          TT_KEEP_IN_REGISTERS(dst, row);
        }
        continue;
      }
      alignas(64) T turned[kL * kL];
      TT_UNROLL
      for (int i = 0; i < kL; i++) store(turned + i * kL, r[i]);
      for (int i = 0; i < depth; i++, dst += pitch) {
        const Vec<T> row = load(turned + i * kL);
        if (i * int64_t(pitch) + kL <= room) store(dst, row);
        else store(dst, row, to);
      }
    }
  }
}

// out[p * pitch + i] = x[i * i_stride + p * k_stride] for i < w, 0 for w <= i < pitch.
template <class T> void pack_panel(const T* x, int64_t i_stride, int64_t k_stride, int w, int pitch,
                                   int64_t nk, T* out) {
  if (i_stride == 1) pack_copy(x, k_stride, w, pitch, nk, out);
  else if (k_stride == 1) pack_transpose(x, i_stride, w, pitch, nk, out);
  else pack_strided(x, i_stride, k_stride, w, pitch, nk, out);
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
      pack_copy(buffer, int64_t(w), w, pitch, depth, out + p * pitch);
      continue;
    }
    for (int i = 0; i < w; i++) {
      if (k_stride == 1) widen_run(src + i * i_stride, depth, buffer + i * kPiece);
      else
        for (int64_t q = 0; q < depth; q++)
          buffer[i * kPiece + q] = widen(src[i * i_stride + q * k_stride]);
    }
    pack_transpose(buffer, int64_t(kPiece), w, pitch, depth, out + p * pitch);
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
