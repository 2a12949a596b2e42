// The compiler's header of intrinsics, and which vector unit this build is for:
//   TT_VEC_BYTES        bytes of a vector
//   TT_VECTOR_EXTENSION 1: the compiler has vectors of any type
//   TT_LANE_FACTORS     1: a multiplication takes a lane of a register as a factor
//   TT_NEON32           1: this file is for NEON of 32-bit ARM, which tile_sums.h uses for float
//   TT_VECTOR_MATH      1: math/ has functions of vectors of 16 floats, math::F32v
//   TT_PAIR_DOT         1: fma takes pairs of bf16
//   TT_BYTE_DOT         1: dot_bytes sums four products of bytes at a time
#pragma once

#include "kernels/cpu/simd/fused.h"

#if defined(_MSC_VER) || defined(TT_NO_VECTOR_EXTENSION)
#define TT_VECTOR_EXTENSION 0
#else
#define TT_VECTOR_EXTENSION 1
#endif

#if defined(__SSE2__) || defined(_M_X64)
#define TT_SSE2 1
#else
#define TT_SSE2 0
#endif
#if defined(__AVX2__) || defined(_M_X64)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // gcc 12's own headers: GCC bug 105593
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#elif TT_SSE2  // the other header would take half of the time of most kernels
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#if defined(__ARM_FEATURE_SVE)
#include <arm_sve.h>
#endif
#endif

#if defined(__arm__) && defined(__ARM_NEON)
#include <arm_neon.h>
#define TT_NEON32 1
#else
#define TT_NEON32 0
#endif

// TT_SVE: the vectors are those of SVE, 256 bits wide.
#if defined(__ARM_FEATURE_SVE_BITS) && __ARM_FEATURE_SVE_BITS == 256
#define TT_SVE 1
#else
#define TT_SVE 0
#endif

#if defined(__AVX512F__)
#define TT_VEC_BYTES 64
#elif defined(__AVX2__) || TT_SVE
#define TT_VEC_BYTES 32
#else
#define TT_VEC_BYTES 16
#endif

#if defined(__aarch64__) && !TT_SVE
#define TT_LANE_FACTORS 1
#else
#define TT_LANE_FACTORS 0
#endif

#if defined(__AVX512F__) && TT_VECTOR_EXTENSION
#define TT_VECTOR_MATH 1
#else
#define TT_VECTOR_MATH 0
#endif

#if defined(__AVX512BF16__)
#define TT_PAIR_DOT 1
#else
#define TT_PAIR_DOT 0
#endif

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__) || \
    (defined(__aarch64__) && defined(__ARM_FEATURE_DOTPROD))
#define TT_BYTE_DOT 1
#else
#define TT_BYTE_DOT 0
#endif
