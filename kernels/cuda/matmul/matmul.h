// What the kernels of the row `matmul` share: their arguments, sums in the compute type, and the
// epilogue. Splits and tiles depend on the shape alone, so that the bits of a result do not depend
// on the device.
#pragma once

#include <math.h>

#include "kernels/cuda/convert.h"
#include "plan/matmul_plan.h"

namespace TT_NS {
namespace {

constexpr int kMatmulDims = 8;  // of the batch in one launch; the host loops over the others

struct MatmulArguments {
  int64_t m, n, k;
  const char *a, *b, *d;
  char* c;
  char* partials;  // [splits][batch][m][n] sums of pieces of k, if splits > 1
  int64_t a_row, a_col, b_row, b_col, c_row, c_col, d_row, d_col;
  int64_t batch, tiles_m, tiles_n, splits, split_len;
  MatmulScalar alpha, beta;
  int32_t n_batch;
  bool scaled;
  bool a_packs, b_packs;  // 16 bytes of a or b at once
  MatmulBatchDim dim[kMatmulDims];
};

// The operands of one matrix of the batch.
struct MatmulMatrix {
  const char *a, *b, *d;
  char* c;
};
__device__ __forceinline__ MatmulMatrix matrix_of(const MatmulArguments& p, int64_t index) {
  MatmulMatrix x = {p.a, p.b, p.d, p.c};
  for (int i = 0; i < p.n_batch; i++) {
    const MatmulBatchDim& dim = p.dim[i];
    const int64_t rest = index / dim.size;
    const int64_t at = index - rest * dim.size;
    index = rest;
    x.a += at * dim.a;
    x.b += at * dim.b;
    x.c += at * dim.c;
    if (x.d) x.d += at * dim.d;
  }
  return x;
}

// Stored types and those that they are summed in.
template <class S> struct SumOf { using type = S; };
template <> struct SumOf<F16> { using type = float; };
template <> struct SumOf<BF16> { using type = float; };
template <class S> __device__ __forceinline__ typename SumOf<S>::type widened(S s) {
  if constexpr (kIsHalf<S>) return widen(s);
  else return s;
}
template <class S> __device__ __forceinline__ S narrowed(typename SumOf<S>::type x) {
  if constexpr (__is_same(S, F16)) return narrow_f16(x);
  else if constexpr (__is_same(S, BF16)) return narrow_bf16(x);
  else return x;
}

// x * y + z with one rounding; integers wrap.
template <class T> __device__ __forceinline__ T multiply_add(T x, T y, T z) {
  if constexpr (kIsComplex<T>) {
    return {multiply_add(x.re, y.re, multiply_add(flipped(x.im), y.im, z.re)),
            multiply_add(x.re, y.im, multiply_add(x.im, y.re, z.im))};
  } else if constexpr (__is_same(T, float)) {
    return ::fmaf(x, y, z);
  } else if constexpr (__is_same(T, double)) {
    return ::fma(x, y, z);
  } else {
    return T(Unsigned<T>(x) * Unsigned<T>(y) + Unsigned<T>(z));
  }
}
template <class T> __device__ __forceinline__ T sum_of(T x, T y) {
  if constexpr (kIsInt<T>) return T(Unsigned<T>(x) + Unsigned<T>(y));
  else return x + y;
}
template <class T> __device__ __forceinline__ T scalar_of(const MatmulScalar& s) {
  if constexpr (kIsComplex<T>) return {typename T::Real(s.re), typename T::Real(s.im)};
  else if constexpr (kIsFloat<T>) return T(s.re);
  else return T(s.i);
}

// c(i, j) = alpha sum + beta d(i, j)
template <class S>
__device__ __forceinline__ void store_result(const MatmulArguments& p, const MatmulMatrix& x,
                                             int64_t i, int64_t j, typename SumOf<S>::type sum) {
  using T = typename SumOf<S>::type;
  if (p.scaled) sum = multiply_add(sum, scalar_of<T>(p.alpha), T{});
  if (x.d) {
    const S d = reinterpret_cast<const S*>(x.d)[i * p.d_row + j * p.d_col];
    sum = multiply_add(scalar_of<T>(p.beta), widened(d), sum);
  }
  reinterpret_cast<S*>(x.c)[i * p.c_row + j * p.c_col] = narrowed<S>(sum);
}

// The same for a piece of k: the sum goes to the workspace if there are several.
template <class S> __device__ __forceinline__ void put_sum(const MatmulArguments& p,
                                                           const MatmulMatrix& x, int64_t matrix,
                                                           int64_t split, int64_t i, int64_t j,
                                                           typename SumOf<S>::type sum) {
  if (p.splits == 1) return store_result<S>(p, x, i, j, sum);
  const int64_t at = ((split * p.batch + matrix) * p.m + i) * p.n + j;
  reinterpret_cast<typename SumOf<S>::type*>(p.partials)[at] = sum;
}

// Which tile a block computes. Neighbouring blocks take 8 rows of tiles and then the next column,
// so that they share operands in the cache.
struct MatmulTile {
  int64_t matrix, split, i, j;
};
__device__ __forceinline__ MatmulTile tile_of(const MatmulArguments& p, int64_t block) {
  constexpr int64_t kRows = 8;
  const int64_t tiles = p.tiles_m * p.tiles_n;
  const int64_t rest = block / tiles;
  const int64_t tile = block - rest * tiles;
  const int64_t band = tile / (kRows * p.tiles_n);
  const int64_t within = tile - band * kRows * p.tiles_n;
  const int64_t left = p.tiles_m - band * kRows;
  const int64_t rows = left < kRows ? left : kRows;
  return {rest / p.splits, rest % p.splits, band * kRows + within % rows, within / rows};
}

__device__ __forceinline__ int64_t least(int64_t x, int64_t y) { return x < y ? x : y; }

}  // namespace
}  // namespace TT_NS
