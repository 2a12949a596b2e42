// Transposes a matrix of 1-, 2-, 4-, 8- or 16-byte elements, tile by tile in vector registers.
#pragma once

#include "kernels/cpu/simd/lanes.h"
#include "kernels/cpu/simd/vec.h"

TT_ISA_BEGIN

constexpr int kTileBytes = TT_VEC_BYTES;

// The low or high half of a0 b0 a1 b1 ….
template <class V, int n> TT_INLINE V interleave(V a, V b, bool high) {
  if constexpr (n == 2) return high ? shuffled<1, 3>(a, b) : shuffled<0, 2>(a, b);
  else if constexpr (n == 4) return high ? shuffled<2, 6, 3, 7>(a, b) : shuffled<0, 4, 1, 5>(a, b);
  else if constexpr (n == 8)
    return high ? shuffled<4, 12, 5, 13, 6, 14, 7, 15>(a, b)
                : shuffled<0, 8, 1, 9, 2, 10, 3, 11>(a, b);
  else
    return high ? shuffled<8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31>(a, b)
                : shuffled<0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23>(a, b);
}

// Transposes an n x n tile: interleaves row i with row i + n/2, log2(n) times.
template <class T, int n>
TT_INLINE void transpose_tile(char* dst, int64_t dst_stride, const char* src, int64_t src_stride) {
  using V = Vector<T, n>;
  V a[n], b[n];
  TT_UNROLL_BY(16)
  for (int i = 0; i < n; i++) memcpy(&a[i], src + i * src_stride, sizeof(V));
  TT_UNROLL_BY(4)
  for (int round = 1; round < n; round *= 2) {
    TT_UNROLL_BY(16)
    for (int i = 0; i < n / 2; i++) {
      b[2 * i] = interleave<V, n>(a[i], a[i + n / 2], false);
      b[2 * i + 1] = interleave<V, n>(a[i], a[i + n / 2], true);
    }
    TT_UNROLL_BY(16)
    for (int i = 0; i < n; i++) a[i] = b[i];
  }
  TT_UNROLL_BY(16)
  for (int i = 0; i < n; i++) memcpy(dst + i * dst_stride, &a[i], sizeof(V));
}

#if defined(__AVX512F__)
// Interleaves within 128 bits, then moves 128-bit quarters: half the time of interleaving whole
// registers.
template <> TT_INLINE void transpose_tile<uint32_t, 16>(char* dst, int64_t dst_stride,
                                                        const char* src, int64_t src_stride) {
  __m512i a[16], b[16];
  const int64_t three = 3 * src_stride;  // gcc keeps four strides, but would spill 16 addresses
  TT_UNROLL_BY(4)
  for (int i = 0; i < 16; i += 4, src += 4 * src_stride) {
    a[i] = _mm512_loadu_si512(src);
    a[i + 1] = _mm512_loadu_si512(src + src_stride);
    a[i + 2] = _mm512_loadu_si512(src + 2 * src_stride);
    a[i + 3] = _mm512_loadu_si512(src + three);
  }
  TT_UNROLL_BY(8)
  for (int i = 0; i < 16; i += 2) {
    b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]);
    b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
  }
  TT_UNROLL_BY(4)
  for (int i = 0; i < 16; i += 4) {
    a[i] = _mm512_unpacklo_epi64(b[i], b[i + 2]);
    a[i + 1] = _mm512_unpackhi_epi64(b[i], b[i + 2]);
    a[i + 2] = _mm512_unpacklo_epi64(b[i + 1], b[i + 3]);
    a[i + 3] = _mm512_unpackhi_epi64(b[i + 1], b[i + 3]);
  }
  TT_UNROLL_BY(4)
  for (int i = 0; i < 4; i++) {  // 0x88: the even quarters of both, 0xdd: the odd ones
    b[i] = _mm512_shuffle_i32x4(a[i], a[i + 4], 0x88);
    b[i + 4] = _mm512_shuffle_i32x4(a[i], a[i + 4], 0xdd);
    b[i + 8] = _mm512_shuffle_i32x4(a[i + 8], a[i + 12], 0x88);
    b[i + 12] = _mm512_shuffle_i32x4(a[i + 8], a[i + 12], 0xdd);
  }
  TT_UNROLL_BY(4)
  for (int i = 0; i < 4; i++) {
    _mm512_storeu_si512(dst + i * dst_stride, _mm512_shuffle_i32x4(b[i], b[i + 8], 0x88));
    _mm512_storeu_si512(dst + (i + 4) * dst_stride,
                        _mm512_shuffle_i32x4(b[i + 4], b[i + 12], 0x88));
    _mm512_storeu_si512(dst + (i + 8) * dst_stride, _mm512_shuffle_i32x4(b[i], b[i + 8], 0xdd));
    _mm512_storeu_si512(dst + (i + 12) * dst_stride,
                        _mm512_shuffle_i32x4(b[i + 4], b[i + 12], 0xdd));
  }
}
#endif

template <class T> TT_INLINE void transpose_scalar(char* dst, int64_t dst_stride, const char* src,
                                                   int64_t src_stride, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < cols; c++)
      reinterpret_cast<T*>(dst + r * dst_stride)[c] =
          reinterpret_cast<const T*>(src + c * src_stride)[r];
}

// dst[r][c] = src[c][r] for r < rows, c < cols; strides between rows of each, in bytes. No overlap.
template <class T> void transpose(char* dst, int64_t dst_stride, const char* src,
                                  int64_t src_stride, int64_t rows, int64_t cols) {
  constexpr int64_t kItem = sizeof(T);
  constexpr bool kVector = kItem == 4 || kItem == 8;
  constexpr int64_t n = kVector ? kTileBytes / kItem : 16;
  for (int64_t r = 0; r < rows; r += n) {  // whole rows of the output
    const int64_t nr = min(rows - r, n);
    for (int64_t c = 0; c < cols; c += n) {
      const int64_t nc = min(cols - c, n);
      char* d = dst + r * dst_stride + c * kItem;
      const char* s = src + c * src_stride + r * kItem;
      if constexpr (kVector) {
        if (TT_LIKELY(nr == n && nc == n)) {
          transpose_tile<T, int(n)>(d, dst_stride, s, src_stride);
          continue;
        }
      }
      transpose_scalar<T>(d, dst_stride, s, src_stride, nr, nc);
    }
  }
}

// to[r * to_step + c] = from[c * from_step + r] for r, c < n.
template <int n>
TT_INLINE void transpose_block(float* to, int64_t to_step, const float* from, int64_t from_step) {
  constexpr int kL = kLanes<float>;
  for (int r = 0; r < n; r += kL)
    for (int c = 0; c < n; c += kL)
      transpose_tile<uint32_t, kL>(reinterpret_cast<char*>(to + r * to_step + c), to_step * 4,
                                   reinterpret_cast<const char*>(from + c * from_step + r),
                                   from_step * 4);
}

TT_ISA_END
