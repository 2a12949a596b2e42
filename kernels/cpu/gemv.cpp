// Products of up to four rows, bound by the bandwidth at which b is read, once and in the order of its memory.
#include "matmul_finish.h"
#include "matmul_walk.h"

TT_ISA_BEGIN

// sums[r][i] = lanes of the dot product of row r of a and column i of kCols columns of b (each a run, b_col apart).
template <class T, int kRows, int kCols>
void dot_columns(const T* a, int64_t a_row, const T* b, int64_t b_col, int64_t k, Vec<T>* sums, int64_t sums_row) {
  constexpr int kL = kLanes<T>;
  Vec<T> acc[kRows][kCols];
  TT_UNROLL
  for (int r = 0; r < kRows; r++) {
    TT_UNROLL
    for (int i = 0; i < kCols; i++) acc[r][i] = Vec<T>{};
  }
  const auto step = [&](int64_t p, auto... part) __attribute__((always_inline)) {
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

// Up to kLanes columns from j: their dot products with kRows rows of a, lanes added by a transpose and a fixed tree.
template <class T, int kRows>
void dot_group(const MatmulPlan& p, const BatchWalk& w, int64_t j, int cols) {
  constexpr int kL = kLanes<T>, kCols = 4 < kL ? 4 : kL;
  Vec<T> sums[kRows][kL];
  const T* a = reinterpret_cast<const T*>(w.a);
  const T* b = reinterpret_cast<const T*>(w.b) + j * p.b_col;
  int i = 0;
  for (; i + kCols <= cols; i += kCols)
    dot_columns<T, kRows, kCols>(a, p.a_row, b + i * p.b_col, p.b_col, p.k, &sums[0][i], kL);
  for (; i < cols; i++) dot_columns<T, kRows, 1>(a, p.a_row, b + i * p.b_col, p.b_col, p.k, &sums[0][i], kL);
  for (; i < kL; i++)
    for (int r = 0; r < kRows; r++) sums[r][i] = Vec<T>{};
  alignas(64) T out[kRows * kL];
  for (int r = 0; r < kRows; r++) {
    Vec<T>(&x)[kL] = sums[r];
    transpose<T>(x);
    TT_UNROLL
    for (int s = kL / 2; s > 0; s /= 2) {
      TT_UNROLL
      for (int q = 0; q < s; q++) x[q] = x[q] + x[q + s];
    }
    store(out + r * kL, x[0]);
  }
  finish<T, T>(p, w.c, w.d, 0, j, kRows, cols, out, kL, true);
}

// y (kRows, n) += a (kRows, kTerms) times kTerms rows of b.
template <class T, int kRows, int kTerms>
void add_terms(const T* a, int64_t a_row, int64_t a_col, const T* b, int64_t b_row, int64_t n, T* y, int64_t ld) {
  constexpr int kL = kLanes<T>;
  Vec<T> x[kRows][kTerms];
  TT_UNROLL
  for (int r = 0; r < kRows; r++) {
    TT_UNROLL
    for (int t = 0; t < kTerms; t++) x[r][t] = splat(a[r * a_row + t * a_col]);
  }
  const auto step = [&](int64_t j, auto... part) __attribute__((always_inline)) {
    Vec<T> sum[kRows];
    TT_UNROLL
    for (int r = 0; r < kRows; r++) sum[r] = load(y + r * ld + j);
    TT_UNROLL
    for (int t = 0; t < kTerms; t++) {
      const Vec<T> row = load(b + t * b_row + j, part...);
      TT_UNROLL
      for (int r = 0; r < kRows; r++) sum[r] = fma(x[r][t], row, sum[r]);
    }
    TT_UNROLL
    for (int r = 0; r < kRows; r++) store(y + r * ld + j, sum[r]);
  };
  int64_t j = 0;
  for (; j + kL <= n; j += kL) step(j);
  if (j < n) step(j, Part<T>(int(n - j)));
}

template <class T, int kRows>
void wide_unit(const MatmulPlan& p, const BatchWalk& w, int64_t j, int64_t n) {
  constexpr int kTerms = kRows == 1 ? 8 : 4;
  alignas(64) T y[kRows * kMatmulRowsWide];
  for (int64_t i = 0; i < kRows * kMatmulRowsWide; i++) y[i] = T(0);
  const T* a = reinterpret_cast<const T*>(w.a);
  const T* b = reinterpret_cast<const T*>(w.b) + j;
  int64_t q = 0;
  for (; q + kTerms <= p.k; q += kTerms)
    add_terms<T, kRows, kTerms>(a + q * p.a_col, p.a_row, p.a_col, b + q * p.b_row, p.b_row, n, y, kMatmulRowsWide);
  for (; q < p.k; q++)
    add_terms<T, kRows, 1>(a + q * p.a_col, p.a_row, p.a_col, b + q * p.b_row, p.b_row, n, y, kMatmulRowsWide);
  finish<T, T>(p, w.c, w.d, 0, j, kRows, int(n), y, kMatmulRowsWide, true);
}

template <class T, int kRows>
void rows_units(const MatmulPlan& p, int64_t begin, int64_t end) {
  const int64_t width = matmul_rows_unit(p), per_product = matmul_ceil(p.n, width);
  const bool by_dot = matmul_rows_by_dot(p);
  BatchWalk w(p, begin / per_product);
  for (int64_t at = begin % per_product; begin < end; begin++) {
    const int64_t j = at * width, n = matmul_min(width, p.n - j);
    if (by_dot) {
      for (int64_t i = 0; i < n; i += kLanes<T>) dot_group<T, kRows>(p, w, j + i, int(matmul_min(kLanes<T>, n - i)));
    } else {
      wide_unit<T, kRows>(p, w, j, n);
    }
    if (++at == per_product) at = 0, w.next();
  }
}

template <class T>
void rows_of(const MatmulPlan& p, int64_t begin, int64_t end) {
  switch (p.m) {
    case 1: return rows_units<T, 1>(p, begin, end);
    case 2: return rows_units<T, 2>(p, begin, end);
    case 3: return rows_units<T, 3>(p, begin, end);
    default: return rows_units<T, 4>(p, begin, end);
  }
}

TT_ISA_END

TT_ENTRY_BEGIN
TT_KERNEL(matmul_rows)(const void* plan, int64_t begin, int64_t end) noexcept {
  const MatmulPlan& p = *static_cast<const MatmulPlan*>(plan);
  if (p.dtype == TT_F32)
    rows_of<float>(p, begin, end);
  else
    rows_of<double>(p, begin, end);
  return TT_OK;
}
TT_ENTRY_END
