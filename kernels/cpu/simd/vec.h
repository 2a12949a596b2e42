// Vec<T>: the vector of this instruction set (vector.h). Everything else has one name on every
// instruction set; one header per vector unit has its bodies (avx512, avx2, sse2, sve, neon, any):
//
//   Part<T>(n)            the first n lanes, 0 <= n <= kLanes<T>, of a load, whose other lanes are
//                         0, or of a store
//   fma(x, y, z)          x * y + z, rounded once if TT_FUSED; integers wrap
//   vmax(x, m), vmin      x > m ? x : m: a NaN in x is skipped
//   vsqrt(x)              float: within 1 ulp
//   load_f16, store_f16   kLanes<float> halves <-> floats; only if kHalfConversions
//   load_as_double        kLanes<double> floats -> doubles, and store_as_float back
//   unordered(a, b)       NanMask: lanes where either is NaN; any(NanMask)
//   sign_bits(m)          bit l is the sign of lane l
//   mul_low(a, b)         products of the lower halves of 64-bit lanes
//   dot_words(x, y)       sums of two products of 16-bit words per 32-bit lane
//   dot_bytes(sum, u, s)  adds four products of bytes, u unsigned and s signed, or those of u - 128
//                         if kDotLowersU; if TT_BYTE_DOT
//   fma(pairs, pairs, z)  adds two products of bf16 to a lane of z, and treats subnormal factors
//                         as 0; if TT_PAIR_DOT
//   f16_value, f16_bits one half <-> float
//   stream_vector         a store past the caches to a multiple of TT_VEC_BYTES; stream_fence()
//   clear_upper_halves    before code of SSE; AVX2 and AVX-512
//   permute(a, b, i)      lane i[l] of a and b, one after the other; AVX2, AVX-512, SVE
//
// and the constants
//   k…TileRows            rows by two vectors of the tile of a product or a convolution: as many
//                         accumulators as the registers hold beside their operands
//   kRowsOutside          the order of tiles in a packed product
//   kCheapParts           a partial load costs no more than a whole one
//   kStreams              stream_vector passes the caches
//   kHalfConversions      there are instructions that convert halves
#pragma once

#include "core/half.h"
#include "kernels/cpu/simd/intrinsics.h"
#include "kernels/cpu/simd/isa.h"
#include "kernels/cpu/simd/vector.h"

TT_ISA_BEGIN

template <class T> using Vec = Vector<T, TT_VEC_BYTES / int(sizeof(T))>;

template <class T> constexpr int kLanes = TT_VEC_BYTES / int(sizeof(T));

using Bf16Pair = uint32_t;  // two bf16, the first in the low half

template <class T> constexpr T kMinusInfinity = T(-kInf);

template <class T> TT_INLINE Vec<T> load(const T* p) {
  Vec<T> v;
  memcpy(&v, p, sizeof v);
  return v;
}
template <class T> TT_INLINE void store(T* p, Vec<T> v) { memcpy(p, &v, sizeof v); }

template <class T> TT_INLINE Vec<T> splat(T x) { return x - Vec<T>{}; }
TT_INLINE Vec<float> splat(float x) {
#if defined(__AVX512F__)
  return Vec<float>(_mm512_set1_ps(x));
#else
  return x - Vec<float>{};
#endif
}
TT_INLINE Vec<double> splat(double x) {
#if defined(__AVX512F__)
  return Vec<double>(_mm512_set1_pd(x));
#else
  return x - Vec<double>{};
#endif
}

TT_ISA_END

#if defined(__AVX512F__)
#include "kernels/cpu/simd/avx512.h"
#elif defined(__AVX2__)
#include "kernels/cpu/simd/avx2.h"
#elif TT_SSE2
#include "kernels/cpu/simd/sse2.h"
#elif defined(__aarch64__)
#include "kernels/cpu/simd/arm.h"
#else
#include "kernels/cpu/simd/any.h"
#endif

TT_ISA_BEGIN

TT_INLINE Vec<int32_t> fma(Vec<int32_t> x, Vec<int32_t> y, Vec<int32_t> z) {
  using U = Vec<uint32_t>;
  return Vec<int32_t>(U(x) * U(y) + U(z));
}
TT_INLINE Vec<int64_t> fma(Vec<int64_t> x, Vec<int64_t> y, Vec<int64_t> z) {
  using U = Vec<uint64_t>;
  return Vec<int64_t>(U(x) * U(y) + U(z));
}

// Whether a multiplication takes a lane of a register as a factor.
template <class T> constexpr bool kLaneFactors = TT_LANE_FACTORS;
template <> constexpr bool kLaneFactors<float> = TT_LANE_FACTORS || TT_NEON32;

// v, which the compiler cannot replace by loads of its lanes; only if kLaneFactors.
template <class V> TT_INLINE V kept_whole(V v) {
#if TT_LANE_FACTORS || TT_NEON32
  __asm__("" : "+w"(v));
#endif
  return v;
}

// The halves of a vector.
template <class T, int N> struct Halves {
  using Whole = Vector<T, N>;
  using Half = Vector<T, N / 2>;
  static TT_INLINE Half low(Whole v) {
    if constexpr (N == 16) return shuffled<0, 1, 2, 3, 4, 5, 6, 7>(v, v);
    else if constexpr (N == 8) return shuffled<0, 1, 2, 3>(v, v);
    else return shuffled<0, 1>(v, v);
  }
  static TT_INLINE Half high(Whole v) {
    if constexpr (N == 16) return shuffled<8, 9, 10, 11, 12, 13, 14, 15>(v, v);
    else if constexpr (N == 8) return shuffled<4, 5, 6, 7>(v, v);
    else return shuffled<2, 3>(v, v);
  }
};

// Combines lane l with lane l + N/2, then the results likewise, until two lanes are left: out[2].
template <class T, int N, class Op>
TT_INLINE void fold_lanes(typename Halves<T, N>::Whole v, T* out, const Op& op) {
  if constexpr (N == 2) {
    out[0] = v[0];
    out[1] = v[1];
  } else {
    const auto half = op(Halves<T, N>::low(v), Halves<T, N>::high(v));
    if constexpr (N == 4) {
      out[0] = half[0];
      out[1] = half[1];
    } else {
      fold_lanes<T, N / 2>(half, out, op);
    }
  }
}

TT_ISA_END
