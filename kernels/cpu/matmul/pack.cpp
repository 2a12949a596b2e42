// Packs panels of words of four or eight bytes (pack.h).
#include "kernels/cpu/matmul/pack.h"

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

template <class T> TT_INLINE void pack(const T* x, int64_t i_stride, int64_t k_stride, int w,
                                       int pitch, int64_t nk, T* out) {
  if (i_stride == 1) pack_copy(x, k_stride, w, pitch, nk, out);
  else if (k_stride == 1) pack_transpose(x, i_stride, w, pitch, nk, out);
  else pack_strided(x, i_stride, k_stride, w, pitch, nk, out);
}

TT_ISA_END

TT_ENTRY_BEGIN

void pack_words(const int32_t* x, int64_t i_stride, int64_t k_stride, int w, int pitch, int64_t nk,
                int32_t* out) noexcept {
  pack(x, i_stride, k_stride, w, pitch, nk, out);
}

void pack_words(const int64_t* x, int64_t i_stride, int64_t k_stride, int w, int pitch, int64_t nk,
                int64_t* out) noexcept {
  pack(x, i_stride, k_stride, w, pitch, nk, out);
}

TT_ENTRY_END
