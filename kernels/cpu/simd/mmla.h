// Matrix instructions of 64-bit ARM: 16 bytes are two rows or two columns of 8 bytes each, and one
// instruction adds the products of two rows and two columns to a 2 by 2 matrix.
//
//   rows    r0: k 0 … 7 | r1: k 0 … 7        bytes; four bf16 likewise
//   columns c0: k 0 … 7 | c1: k 0 … 7
//   sums    4 lanes of int32 or float
//
// TT_MMLA says that the build has files for these processors, compiled with flags of their own; the
// instructions are used only if has_arm() says so.
//   TT_MMLA_BYTES       this file has products of bytes
//   TT_MMLA_BF16        this file has products of bf16: fma
#pragma once

#include "kernels/cpu/simd/vec.h"

#if defined(__aarch64__)
#define TT_MMLA 1
#else
#define TT_MMLA 0
#endif
#if TT_MMLA && defined(__ARM_FEATURE_MATMUL_INT8)
#define TT_MMLA_BYTES 1
#else
#define TT_MMLA_BYTES 0
#endif
#if TT_MMLA && !TT_SVE && defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#define TT_MMLA_BF16 1
#else
#define TT_MMLA_BF16 0
#endif

#if TT_MMLA

TT_ISA_BEGIN

using MmlaInts = Vector<int32_t, 4>;

// In a register, which the compiler does not load again.
TT_INLINE MmlaInts mmla_load(const void* p) {
  MmlaInts v;
  memcpy(&v, p, sizeof v);
  __asm__("" : "+w"(v));
  return v;
}

// Makes pairs of quads that are neighbours along k: [2][n] becomes [n][2]; n is a multiple of 4.
template <int kN> TT_INLINE void pair_quads(char* quads) {
  int32x4_t x[2][kN / 4];
  memcpy(x, quads, sizeof x);
  for (int i = 0; i < kN / 4; i++) {
    const int32x4_t low = vzip1q_s32(x[0][i], x[1][i]);
    const int32x4_t high = vzip2q_s32(x[0][i], x[1][i]);
    memcpy(quads + i * 32, &low, sizeof low);
    memcpy(quads + i * 32 + 16, &high, sizeof high);
  }
}

#if TT_MMLA_BYTES

// Adds c0·r0, c0·r1, c1·r0, c1·r1, columns unsigned and rows signed.
TT_INLINE MmlaInts mmla_bytes(MmlaInts sums, MmlaInts columns, MmlaInts rows) {
  return MmlaInts(vusmmlaq_s32(int32x4_t(sums), uint8x16_t(columns), int8x16_t(rows)));
}
// The sums of four columns by row.
TT_INLINE MmlaInts mmla_first_row(MmlaInts low, MmlaInts high) {
  return MmlaInts(vuzp1q_s32(int32x4_t(low), int32x4_t(high)));
}
TT_INLINE MmlaInts mmla_second_row(MmlaInts low, MmlaInts high) {
  return MmlaInts(vuzp2q_s32(int32x4_t(low), int32x4_t(high)));
}

#endif

#if TT_MMLA_BF16

using Bf16Quad = uint64_t;  // four bf16, the first in the low bits

// Adds r0·c0, r0·c1, r1·c0, r1·c1. Sums of two products and of those are rounded to odd, subnormal
// numbers are 0.
TT_INLINE Vec<float> fma(Vec<Bf16Quad> rows, Vec<Bf16Quad> columns, Vec<float> sums) {
  return Vec<float>(vbfmmlaq_f32(float32x4_t(sums), bfloat16x8_t(rows), bfloat16x8_t(columns)));
}

#endif

TT_ISA_END

#endif
