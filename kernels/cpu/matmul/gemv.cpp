// The rows path: a has few rows, so the time is that of reading b, which is read once and in the
// order of its memory. Two cases, by the layout of b:
//
//   columns contiguous (b_row == 1): c(i, j) is the dot product of two runs (dot_*)
//   rows contiguous    (b_col == 1): c(i, :) is a sum of rows of b, each times a(i, p) (axpy_*)
#include "kernels/cpu/matmul/epilogue.h"
#include "kernels/cpu/matmul/pack.h"
#include "kernels/cpu/matmul/walk.h"

TT_ENTRY_BEGIN
// load.h, whose half types are others.
void load_f32(void* dst, const char* src, int64_t stride, int64_t n, int32_t dtype) noexcept;
void store_f32(char* dst, int64_t stride, const float* src, int64_t n, int32_t dtype) noexcept;
TT_ENTRY_END

TT_ISA_BEGIN

// out[s * out_step] = dot(a[k], (b + s * stream)[k]) for kStreams runs at once. Hardware prefetches
// further ahead in two distant streams than in one; loads alternate between them often, so that
// neither is dropped.
template <class T, int kStreams> TT_INLINE void dot_runs(const T* a, const T* b, int64_t stream,
                                                         int64_t k, T* out, int64_t out_step) {
  constexpr int kL = kLanes<T>;
  constexpr int kChains = kStreams == 1 ? 8 : 2;
  Vec<T> acc[kStreams][kChains];
  TT_UNROLL
  for (int s = 0; s < kStreams; s++) {
    TT_UNROLL
    for (int u = 0; u < kChains; u++) acc[s][u] = Vec<T>{};
  }
  const auto step = [&](int64_t p, int u, auto... part) TT_INLINE_BODY {
    const Vec<T> x = load(a + p, part...);
    TT_UNROLL
    for (int s = 0; s < kStreams; s++)
      acc[s][u] = fma(x, load(b + s * stream + p, part...), acc[s][u]);
  };
  int64_t p = 0;
  for (; p + kChains * kL <= k; p += kChains * kL) {
    TT_UNROLL
    for (int u = 0; u < kChains; u++) step(p + u * kL, u);
  }
  for (; p + kL <= k; p += kL) step(p, 0);
  if (p < k) step(p, 0, Part<T>(int(k - p)));
  TT_UNROLL
  for (int s = 0; s < kStreams; s++) {
    TT_UNROLL
    for (int half = kChains / 2; half > 0; half /= 2) {
      TT_UNROLL
      for (int u = 0; u < half; u++) acc[s][u] = acc[s][u] + acc[s][u + half];
    }
    T two[2];
    fold_lanes<T, kL>(acc[s][0], two, [](auto x, auto y) { return x + y; });
    out[s * out_step] = two[0] + two[1];
  }
}

// sums[r][i] = the dot product of row r of a and column i of b, not yet added over lanes. Columns
// are contiguous runs, b_col apart.
template <class T, int kRows, int kCols> void dot_columns(const T* a, int64_t a_row, const T* b,
                                                          int64_t b_col, int64_t k, Vec<T>* sums,
                                                          int64_t sums_row) {
  constexpr int kL = kLanes<T>;
  Vec<T> acc[kRows][kCols];
  TT_UNROLL
  for (int r = 0; r < kRows; r++) {
    TT_UNROLL
    for (int i = 0; i < kCols; i++) acc[r][i] = Vec<T>{};
  }
  const auto step = [&](int64_t p, auto... part) TT_INLINE_BODY {
    Vec<T> x[kRows];
    TT_UNROLL
    for (int r = 0; r < kRows; r++) x[r] = load(a + r * a_row + p, part...);
    TT_UNROLL
    for (int i = 0; i < kCols; i++) {
      const Vec<T> y = load(b + i * b_col + p, part...);
      TT_UNROLL
      for (int r = 0; r < kRows; r++) acc[r][i] = fma(x[r], y, acc[r][i]);
    }
  };
  int64_t p = 0;
  for (; p + kL <= k; p += kL) step(p);
  if (p < k) step(p, Part<T>(int(k - p)));
  TT_UNROLL
  for (int r = 0; r < kRows; r++) {
    TT_UNROLL
    for (int i = 0; i < kCols; i++) sums[r * sums_row + i] = acc[r][i];
  }
}

// out[i] = the sum of the lanes of sums[i], by a fixed tree.
template <class T> TT_NOINLINE void add_lanes(const Vec<T>* sums, T* out) {
  constexpr int kL = kLanes<T>;
  Vec<T> x[kL];
  TT_UNROLL
  for (int i = 0; i < kL; i++) x[i] = sums[i];
  transpose<T>(x);
  TT_UNROLL
  for (int s = kL / 2; s > 0; s /= 2) {
    TT_UNROLL
    for (int q = 0; q < s; q++) x[q] = x[q] + x[q + s];
  }
  store(out, x[0]);
}

// dot_columns for `cols` columns, kCols at a time; the rest one at a time.
template <class T, int kRows, int kCols> void dot_all(const T* a, int64_t a_row, const T* b,
                                                      int64_t b_col, int64_t k, int cols,
                                                      Vec<T>* sums) {
  constexpr int kL = kLanes<T>;
  int i = 0;
  for (; i + kCols <= cols; i += kCols)
    dot_columns<T, kRows, kCols>(a, a_row, b + i * b_col, b_col, k, sums + i, kL);
  for (; kCols > 1 && i < cols; i++)
    dot_columns<T, kRows, 1>(a, a_row, b + i * b_col, b_col, k, sums + i, kL);
}

// Rows [r0, r0 + kRows) of c, columns [j, j + cols), cols <= kLanes: they share the loads of a.
template <class T, int kRows>
void dot_group(const MatmulPlan& p, const BatchWalk& w, int64_t r0, int64_t j, int cols) {
  constexpr int kL = kLanes<T>;
  constexpr int kCols = min<int64_t>(4, kL);
  const T* a = reinterpret_cast<const T*>(w.a) + r0 * p.a_row;
  const T* b = reinterpret_cast<const T*>(w.b) + j * p.b_col;
  alignas(64) T out[kRows * kL];
  Vec<T> sums[kRows][kL];
  dot_all<T, kRows, kCols>(a, p.a_row, b, p.b_col, p.k, cols, sums[0]);
  for (int r = 0; r < kRows; r++)
    for (int i = cols; i < kL; i++) sums[r][i] = Vec<T>{};
  for (int r = 0; r < kRows; r++) add_lanes<T>(sums[r], out + r * kL);
  matmul_finish(p, w.c, w.d, r0, j, kRows, cols, out, kL, true);
}

// One row with a long k: columns [j, j + n), n <= kMatmulRowsUnit. Two columns at a time, one of
// each half of b.
template <class T> void dot_long(const MatmulPlan& p, const BatchWalk& w, int64_t j, int64_t n) {
  const T* a = reinterpret_cast<const T*>(w.a);
  const T* b = reinterpret_cast<const T*>(w.b) + j * p.b_col;
  alignas(64) T out[kMatmulRowsUnit];
  const int64_t half = n / 2;
  for (int64_t i = 0; i < half; i++)
    dot_runs<T, 2>(a, b + i * p.b_col, half * p.b_col, p.k, out + i, half);
  if (n % 2) dot_runs<T, 1>(a, b + (n - 1) * p.b_col, 0, p.k, out + n - 1, 0);
  matmul_finish(p, w.c, w.d, 0, j, 1, int(n), out, kMatmulRowsUnit, true);
}

// y (kRows, n) += a (kRows, kDepth) · b (kDepth, n); y has rows of n rounded up to whole vectors.
template <class T, int kRows, int kDepth> void axpy_rows(const T* a, int64_t a_row, int64_t a_col,
                                                         const T* b, int64_t b_row, int64_t n,
                                                         T* y) {
  constexpr int kL = kLanes<T>;
  const int64_t ld = round_up(n, kL);
  Vec<T> x[kRows][kDepth];
  TT_UNROLL
  for (int r = 0; r < kRows; r++) {
    TT_UNROLL
    for (int p = 0; p < kDepth; p++) x[r][p] = splat(a[r * a_row + p * a_col]);
  }
  const auto step = [&](int64_t j, auto... part) TT_INLINE_BODY {
    Vec<T> sum[kRows];
    TT_UNROLL
    for (int r = 0; r < kRows; r++) sum[r] = load(y + r * ld + j);
    TT_UNROLL
    for (int p = 0; p < kDepth; p++) {
      const Vec<T> row = load(b + p * b_row + j, part...);
      TT_UNROLL
      for (int r = 0; r < kRows; r++) sum[r] = fma(x[r][p], row, sum[r]);
    }
    TT_UNROLL
    for (int r = 0; r < kRows; r++) store(y + r * ld + j, sum[r]);
  };
  int64_t j = 0;
  for (; j + kL <= n; j += kL) step(j);
  if (j < n) step(j, Part<T>(int(n - j)));
}

template <class T, int kRows> void axpy_range(const MatmulPlan& p, const T* a, const T* b,
                                              int64_t k0, int64_t k_end, int64_t n, T* y) {
  constexpr int kDepth = 4;
  a += k0 * p.a_col;
  b += k0 * p.b_row;
  for (; k0 + kDepth <= k_end; k0 += kDepth, a += kDepth * p.a_col, b += kDepth * p.b_row)
    axpy_rows<T, kRows, kDepth>(a, p.a_row, p.a_col, b, p.b_row, n, y);
  for (; k0 < k_end; k0++, a += p.a_col, b += p.b_row)
    axpy_rows<T, kRows, 1>(a, p.a_row, p.a_col, b, p.b_row, n, y);
}

template <class T> struct RowBlock {
  void (*dot)(const MatmulPlan&, const BatchWalk&, int64_t, int64_t, int);
  void (*axpy)(const MatmulPlan&, const T*, const T*, int64_t, int64_t, int64_t, T*);
};
// By number of rows - 1.
template <class T> constexpr RowBlock<T> kRowBlocks[4] = {{dot_group<T, 1>, axpy_range<T, 1>},
                                                          {dot_group<T, 2>, axpy_range<T, 2>},
                                                          {dot_group<T, 3>, axpy_range<T, 3>},
                                                          {dot_group<T, 4>, axpy_range<T, 4>}};

// Columns [j, j + n) as dot products. A group of kLanes columns stays in the cache for all blocks
// of rows.
template <class T> void dot_unit(const MatmulPlan& p, const BatchWalk& w, int64_t j, int64_t n) {
  if (p.m == 1 && p.k >= 32 * kLanes<T>) return dot_long<T>(p, w, j, n);
  const int64_t blocks = matmul_ceil(p.m, 4);
  for (int64_t i = 0; i < n; i += kLanes<T>)
    for (int64_t at = 0; at < blocks; at++) {
      const int64_t r0 = matmul_piece(p.m, blocks, at);
      const int64_t rows = matmul_piece(p.m, blocks, at + 1) - r0;
      kRowBlocks<T>[rows - 1].dot(p, w, r0, j + i, int(matmul_min(kLanes<T>, n - i)));
    }
}

// Rows of b that are added one to the other; longer sums are sums of such sums, whose rounding
// errors are smaller. Products of more than two rows have shorter chains, as packed ones have.
constexpr int64_t kRowsChain = 512;
constexpr int64_t kManyRowsChain = 192;

// Columns [j, j + n) as sums of rows of b, a few rows at a time.
// y, total: [m][ld], the sums of a chain and of all chains.
template <class T> void axpy_unit(const MatmulPlan& p, const BatchWalk& w, int64_t j, int64_t n) {
  constexpr int64_t kSize = sizeof(T);
  alignas(64) T y[kMatmulRowsSums / kSize];
  alignas(64) T total[kMatmulRowsSums / kSize];
  const int64_t blocks = matmul_ceil(p.m, 4);
  const int64_t ld = matmul_ceil(n, kLanes<T>) * kLanes<T>;
  for (int64_t i = 0; i < p.m * ld; i++) y[i] = T(0);
  int64_t chain = p.k > 2 * kRowsChain ? kRowsChain : p.k;
  const bool short_chains = sizeof(T) == 4 && p.m > 2 && p.k > kManyRowsChain;
  if (short_chains)  // equal ones, of whole steps of the blocks of rows
    chain = round_up(ceil_div(p.k, ceil_div(p.k, kManyRowsChain)), int64_t(4));
  if (chain < p.k) memset(total, 0, size_t(p.m * ld * kSize));
  const T* a = reinterpret_cast<const T*>(w.a);
  const T* b = reinterpret_cast<const T*>(w.b) + j;
  // A single block of rows takes all of k at once; several blocks share the rows of b that the
  // first-level cache holds.
  const int64_t step = blocks == 1 ? chain : 4;
  for (int64_t q = 0; q < p.k; q += step) {
    for (int64_t at = 0; at < blocks; at++) {
      const int64_t r0 = matmul_piece(p.m, blocks, at);
      const int64_t rows = matmul_piece(p.m, blocks, at + 1) - r0;
      kRowBlocks<T>[rows - 1].axpy(p, a + r0 * p.a_row, b, q, matmul_min(p.k, q + step), n,
                                   y + r0 * ld);
    }
    const bool chain_ends = (q + step) % chain == 0 || q + step >= p.k;
    if (chain == p.k || !chain_ends) continue;
    for (int64_t i = 0; i < p.m * ld; i += kLanes<T>) {
      store(total + i, load(total + i) + load(y + i));
      store(y + i, Vec<T>{});
    }
  }
  matmul_finish(p, w.c, w.d, 0, j, int(p.m), int(n), chain < p.k ? total : y, ld, true);
}

// --- rows of f16 or bf16: sums are those of f32 ---

constexpr int64_t kHalfBytes = 2;
constexpr int kRowDepth = 8;                        // rows of b that are added at once
constexpr int64_t kHalfSums = kMatmulRowsSums / 4;  // most sums of a unit

template <int n> struct RowCount { static constexpr int value = n; };
// Calls f(r, RowCount<n>{}) for blocks of n rows from r on: 4 where the registers hold their sums,
// else 2, and 1.
template <class F> TT_INLINE void each_row_block(int64_t m, F f) {
  constexpr int kMost = kLanes<float> == 16 ? 4 : 2;
  int64_t r = 0;
  for (; r + kMost <= m; r += kMost) f(r, RowCount<kMost>{});
  if (kMost > 2 && r + 2 <= m) {
    f(r, RowCount<2>{});
    r += 2;
  }
  if (r < m) f(r, RowCount<1>{});
}

template <class Half> TT_NOINLINE Vec<float> widened_by_ones(const Half* p) { return load_wide(p); }
template <class Half> TT_INLINE Vec<float> widened(const Half* p) {
  if constexpr (kVectorConversions<Half>) return load_wide(p);
  else return widened_by_ones(p);
}

// 2 * kLanes<float> elements, widened: for bf16 those of even places, then those of odd ones.
struct Pairs {
  Vec<float> first, second;
};
TT_INLINE Pairs load_pairs(const Bf16* p) {
  const auto v = load(reinterpret_cast<const uint32_t*>(p));
  return {Vec<float>(v << 16), Vec<float>(v & 0xffff0000u)};
}
TT_INLINE Pairs load_pairs(const F16* p) { return {widened(p), widened(p + kLanes<float>)}; }
template <class Half> TT_INLINE Pairs load_pairs(const Half* p, int64_t n) {
  Half tail[2 * kLanes<float>] = {};
  memcpy(tail, p, size_t(n) * sizeof(Half));
  return load_pairs(tail);
}

// out[r * out_row + s * out_step] = the dot product of row r of a and the run at b + s * stream,
// for kRows rows and kStreams runs at once (see dot_runs).
template <class Half, int kRows, int kStreams>
TT_NOINLINE void dot_halves(const Half* a, int64_t a_row, const Half* b, int64_t stream, int64_t k,
                            float* out, int64_t out_row, int64_t out_step) {
  constexpr int kStep = 2 * kLanes<float>;
  constexpr int kChains = 4 / min(4, kRows * kStreams);
  Pairs acc[kRows][kStreams][kChains] = {};
  const auto step = [&](int64_t p, int u, auto... part) TT_INLINE_BODY {
    Pairs y[kStreams];
    TT_UNROLL
    for (int s = 0; s < kStreams; s++) y[s] = load_pairs(b + s * stream + p, part...);
    TT_UNROLL
    for (int r = 0; r < kRows; r++) {
      const Pairs x = load_pairs(a + r * a_row + p, part...);
      TT_UNROLL
      for (int s = 0; s < kStreams; s++) {
        Pairs& sum = acc[r][s][u];
        sum.first = fma(x.first, y[s].first, sum.first);
        sum.second = fma(x.second, y[s].second, sum.second);
      }
    }
  };
  int64_t p = 0;
  for (; p + kChains * kStep <= k; p += kChains * kStep) {
    TT_UNROLL
    for (int u = 0; u < kChains; u++) step(p + u * kStep, u);
  }
  for (; p + kStep <= k; p += kStep) step(p, 0);
  if (p < k) step(p, 0, k - p);
  TT_UNROLL
  for (int r = 0; r < kRows; r++) {
    TT_UNROLL
    for (int s = 0; s < kStreams; s++) {
      Pairs sum = acc[r][s][0];
      TT_UNROLL
      for (int u = 1; u < kChains; u++) {
        sum.first = sum.first + acc[r][s][u].first;
        sum.second = sum.second + acc[r][s][u].second;
      }
      float two[2];
      fold_lanes<float, kLanes<float>>(sum.first + sum.second, two,
                                       [](auto x, auto y) { return x + y; });
      out[r * out_row + s * out_step] = two[0] + two[1];
    }
  }
}

// out[r * out_row + i] = the dot product of row r of a and column i of b, for kRows rows and n
// columns. Two columns at a time, one of each half of b; the last of an odd number by itself.
template <class Half, int kRows> void dot_half_rows(const Half* a, int64_t a_row, const Half* b,
                                                    int64_t b_col, int64_t n, int64_t k, float* out,
                                                    int64_t out_row) {
  const int64_t half = n / 2;
  for (int64_t i = 0; i < half; i++)
    dot_halves<Half, kRows, 2>(a, a_row, b + i * b_col, half * b_col, k, out + i, out_row, half);
  const int64_t last = n - 1;
  if (n % 2 == 0) return;
  if constexpr (kRows == 1) dot_halves<Half, 1, 1>(a, 0, b + last * b_col, 0, k, out + last, 0, 0);
  else dot_halves<Half, kRows, 2>(a, a_row, b + last * b_col, 0, k, out + last, out_row, 0);
}

// sums[r * kMatmulRowsUnit + i] = the dot product of row r of a and column j + i, for n columns.
template <class Half> TT_NOINLINE void dot_half_unit(const MatmulPlan& p, const BatchWalk& w,
                                                     int64_t j, int64_t n, float* sums) {
  const Half* a = reinterpret_cast<const Half*>(w.a);
  const Half* b = reinterpret_cast<const Half*>(w.b) + j * p.b_col;
  each_row_block(p.m, [&](int64_t r, auto rows) TT_INLINE_BODY {
    dot_half_rows<Half, decltype(rows)::value>(a + r * p.a_row, p.a_row, b, p.b_col, n, p.k,
                                               sums + r * kMatmulRowsUnit, kMatmulRowsUnit);
  });
}

// y (kRows, n) += x (kRows, kDepth) · b (kDepth, n), n: whole vectors. Rows of x are kRowDepth
// apart, those of y ld. The next rows are prefetched: where a row ends at the end of a page, the
// hardware does not go on.
template <class Half, int kRows, int kDepth>
TT_NOINLINE void axpy_half_rows(const float* x, const Half* b, int64_t b_row, int64_t n, float* y,
                                int64_t ld) {
  Vec<float> factor[kRows][kDepth];
  TT_UNROLL
  for (int r = 0; r < kRows; r++) {
    TT_UNROLL
    for (int p = 0; p < kDepth; p++) factor[r][p] = splat(x[r * kRowDepth + p]);
  }
  for (int64_t j = 0; j < n; j += kLanes<float>) {
    Vec<float> sum[kRows];
    TT_UNROLL
    for (int r = 0; r < kRows; r++) sum[r] = load(y + r * ld + j);
    TT_UNROLL
    for (int p = 0; p < kDepth; p++) {
      TT_PREFETCH(b + (p + kDepth) * b_row + j);
      const Vec<float> row = widened(b + p * b_row + j);
      TT_UNROLL
      for (int r = 0; r < kRows; r++) sum[r] = fma(factor[r][p], row, sum[r]);
    }
    TT_UNROLL
    for (int r = 0; r < kRows; r++) store(y + r * ld + j, sum[r]);
  }
}

// y (m, n) += rows [0, m) of a, positions [0, depth) · b (depth, n), n: whole vectors.
template <class Half> TT_NOINLINE void axpy_half_block(const MatmulPlan& p, const char* a,
                                                       int64_t depth, const Half* b, int64_t b_row,
                                                       int64_t n, float* y, int64_t ld) {
  each_row_block(p.m, [&](int64_t r, auto rows) TT_INLINE_BODY {
    constexpr int kRows = decltype(rows)::value;
    constexpr int kDepth = kRows == 1 ? kRowDepth : kRowDepth / 2;
    float x[kRows][kRowDepth];
    for (int i = 0; i < kRows; i++)
      load_f32(x[i], a + (r + i) * p.a_row * kHalfBytes, p.a_col * kHalfBytes, depth, p.dtype);
    float* const to = y + r * ld;
    int64_t k = 0;
    for (; k + kDepth <= depth; k += kDepth)
      axpy_half_rows<Half, kRows, kDepth>(x[0] + k, b + k * b_row, b_row, n, to, ld);
    for (; k < depth; k++) {
      for (int i = 0; i < kRows; i++)
        axpy_half_rows<Half, 1, 1>(x[i] + k, b + k * b_row, b_row, n, to + i * ld, ld);
    }
  });
}

// sums[r * ld + i] = the sum of column j + i of b, row p times a(r, p), for n columns; rows of sums
// have whole vectors.
template <class Half> TT_NOINLINE void axpy_half_unit(const MatmulPlan& p, const BatchWalk& w,
                                                      int64_t j, int64_t n, float* sums,
                                                      int64_t ld) {
  constexpr int kL = kLanes<float>;
  alignas(64) float chain[kHalfSums];
  Half tail[kRowDepth][kL] = {};
  const size_t bytes = size_t(p.m * ld) * sizeof(float);
  const int64_t rest = n % kL;
  const int64_t whole = n - rest;
  memset(sums, 0, bytes);
  const char* a = w.a;
  const Half* b = reinterpret_cast<const Half*>(w.b) + j;
  for (int64_t q = 0; q < p.k; q += kRowDepth) {
    if (q % kRowsChain == 0) memset(chain, 0, bytes);
    const int64_t depth = min<int64_t>(kRowDepth, p.k - q);
    axpy_half_block<Half>(p, a, depth, b, p.b_row, whole, chain, ld);
    if (rest) {
      for (int64_t i = 0; i < depth; i++)
        memcpy(tail[i], b + i * p.b_row + whole, size_t(rest) * sizeof(Half));
      axpy_half_block<Half>(p, a, depth, tail[0], kL, kL, chain + whole, ld);
    }
    const bool chain_ends = (q + kRowDepth) % kRowsChain == 0 || q + kRowDepth >= p.k;
    for (int64_t i = 0; chain_ends && i < p.m * ld; i++) {
      sums[i] += chain[i];
      TT_SCALAR_LOOP;  // scalar: it runs once per chain
    }
    a += kRowDepth * p.a_col * kHalfBytes;
    b += kRowDepth * p.b_row;
  }
}

// Columns [j, j + n) of row r of c from their sums.
TT_NOINLINE void finish_halves(const MatmulPlan& p, const BatchWalk& w, int64_t r, int64_t j,
                               int64_t n, float* sum) {
  const float alpha = scalar_of<float>(p.alpha);
  const float beta = scalar_of<float>(p.beta);
  for (int64_t i = 0; p.scaled && i < n; i++) sum[i] *= alpha;
  if (p.d) {
    alignas(64) float d[kMatmulHalfCols];
    const char* from = w.d + (r * p.d_row + j * p.d_col) * kHalfBytes;
    load_f32(d, from, p.d_col * kHalfBytes, n, p.dtype);
    for (int64_t i = 0; i < n; i++) sum[i] += beta * d[i];
  }
  char* c = w.c + (r * p.c_row + j * p.c_col) * kHalfBytes;
  store_f32(c, p.c_col * kHalfBytes, sum, n, p.dtype);
}

template <class Half>
TT_NOINLINE void half_unit(const MatmulPlan& p, const BatchWalk& w, int64_t j, int64_t n) {
  static_assert(kHalfSums >= kMatmulHalfRows * kMatmulRowsUnit);
  alignas(64) float sums[kHalfSums];
  const bool by_dot = matmul_rows_by_dot(p);
  const int64_t ld = by_dot ? kMatmulRowsUnit : round_up(n, kLanes<float>);
  if (by_dot) dot_half_unit<Half>(p, w, j, n, sums);
  else axpy_half_unit<Half>(p, w, j, n, sums, ld);
  for (int64_t r = 0; r < p.m; r++) finish_halves(p, w, r, j, n, sums + r * ld);
}

template <class T> void rows_of(const MatmulPlan& p, int64_t begin, int64_t end) {
  const int64_t width = matmul_rows_unit(p);
  const int64_t units_per_matrix = matmul_ceil(p.n, width);
  const bool by_dot = matmul_rows_by_dot(p);
  BatchWalk w(p, begin / units_per_matrix);
  for (int64_t at = begin % units_per_matrix; begin < end; begin++) {
    const int64_t j = at * width;
    const int64_t n = matmul_min(width, p.n - j);
    if (is_dtype(p.dtype, TT_BF16)) half_unit<Bf16>(p, w, j, n);
    else if (is_dtype(p.dtype, TT_F16)) half_unit<F16>(p, w, j, n);
    else if (by_dot) dot_unit<T>(p, w, j, n);
    else axpy_unit<T>(p, w, j, n);
    if (++at == units_per_matrix) {
      at = 0;
      w.next();
    }
  }
}

TT_ISA_END

TT_ENTRY_BEGIN
TT_KERNEL(matmul_rows)(const void* plan, int64_t begin, int64_t end) noexcept {
  const MatmulPlan& p = *static_cast<const MatmulPlan*>(plan);
  if (is_dtype(p.dtype, TT_F64)) rows_of<double>(p, begin, end);
  else rows_of<float>(p, begin, end);
  return TT_OK;
}
TT_ENTRY_END
