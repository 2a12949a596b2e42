// Packs bf16 for instructions that multiply two k positions at once (512-bit vectors only) or four.
#pragma once

#include "kernels/cpu/matmul/pack.h"
#include "kernels/cpu/simd/mmla.h"

#if TT_VEC_BYTES == 64

TT_ISA_BEGIN

// i_stride is 1: zips the elements of two k positions to pairs.
void pack_zip(const Bf16* x, int64_t k_stride, int w, int pitch, int64_t nk, Bf16Pair* out) {
  constexpr int kL = kLanes<Bf16Pair>;
  const Part<int32_t> to_low(min(pitch, kL));
  const Part<int32_t> to_high(pitch < kL ? 0 : pitch - kL);
  for (int64_t p = 0; p < nk; p += 2, out += pitch) {
    const Bf16* row = x + p * k_stride;
    const Vec<int32_t> even = load_words(row, w);
    const Vec<int32_t> odd = p + 1 < nk ? load_words(row + k_stride, w) : Vec<int32_t>{};
    int32_t* to = reinterpret_cast<int32_t*>(out);
    store(to, zip_words(even, odd, 0), to_low);
    if (pitch > kL) store(to + kL, zip_words(even, odd, 16), to_high);
  }
}

// out[p / 2 * pitch + i] = the pair of elements p and p + 1 of vector i, for even p. Elements from
// nk on and vectors from w on are 0.
[[maybe_unused]] void pack_panel(const Bf16* x, int64_t i_stride, int64_t k_stride, int w,
                                 int pitch, int64_t nk, Bf16Pair* out) {
  if (i_stride == 1) return pack_zip(x, k_stride, w, pitch, nk, out);
  int64_t done = 0;
  if (k_stride == 1 && i_stride % 2 == 0) {  // a pair of bf16 is one int32
    done = nk & ~int64_t(1);
    pack_panel(reinterpret_cast<const int32_t*>(x), i_stride / 2, 1, w, pitch, done / 2,
               reinterpret_cast<int32_t*>(out));
  }
  for (int64_t p = done; p < nk; p += 2)
    for (int i = 0; i < pitch; i++) {
      const Bf16* at = x + i * i_stride + p * k_stride;
      const uint32_t even = i < w ? at[0].bits : 0;
      const uint32_t odd = i < w && p + 1 < nk ? at[k_stride].bits : 0;
      out[p / 2 * pitch + i] = even | odd << 16;
    }
}

TT_ISA_END

#endif

#if TT_MMLA_BF16

TT_ISA_BEGIN

// Four columns of four k positions, a row of neighbours each.
TT_INLINE void quads_of_rows(const Bf16* x, int64_t k_stride, Bf16Quad* out) {
  Vector<uint16_t, 4> r[4];
  for (int q = 0; q < 4; q++) memcpy(&r[q], x + q * k_stride, sizeof r[q]);
  const Vec<Bf16Pair> low = Vec<Bf16Pair>(shuffled<0, 4, 1, 5, 2, 6, 3, 7>(r[0], r[1]));
  const Vec<Bf16Pair> high = Vec<Bf16Pair>(shuffled<0, 4, 1, 5, 2, 6, 3, 7>(r[2], r[3]));
  Vec<Bf16Pair> quads[2];
  zip(low, high, &quads[0], &quads[1]);
  memcpy(out, quads, sizeof quads);
}

// out[p / 4 * pitch + i] = the quad of elements p … p + 3 of vector i, for p a multiple of 4.
// Elements from nk on and vectors from w on are 0.
void pack_panel(const Bf16* x, int64_t i_stride, int64_t k_stride, int w, int pitch, int64_t nk,
                Bf16Quad* out) {
  for (int64_t p = 0; p < nk; p += 4, out += pitch) {
    const Bf16* at = x + p * k_stride;
    const int depth = int(min<int64_t>(4, nk - p));
    int i = 0;
    if (depth == 4 && k_stride == 1) {
      for (; i < w; i++) memcpy(out + i, at + i * i_stride, sizeof *out);
    } else if (depth == 4 && i_stride == 1) {
      for (; i + 4 <= w; i += 4) quads_of_rows(at + i, k_stride, out + i);
    }
    for (; i < pitch; i++) {
      Bf16Quad quad = 0;
      for (int q = 0; i < w && q < depth; q++)
        quad |= Bf16Quad(at[i * i_stride + q * k_stride].bits) << 16 * q;
      out[i] = quad;
    }
  }
}

TT_ISA_END

#endif
