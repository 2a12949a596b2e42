// Primitives of kernels over rows (softmax, norms, losses): blocks of a row are loaded with
// conversion, exponentiated, summed and stored. They compute in float (f16 bf16 f32) or double.
// Where the reduced dimension is not the innermost one, the same is done for Columns.
#pragma once

#include "kernels/cpu/math/math.h"
#include "kernels/cpu/simd/load.h"
#include "kernels/cpu/simd/virtual_lanes.h"
#include "kernels/cpu/simd/running_sum.h"
#include "plan/rows.h"

TT_ENTRY_BEGIN

constexpr int64_t kRowBlock = 1024;  // elements of a block

// A sum over a row, from block to block: element i of a block is added to lane i % 64.
template <class T> struct RowSum {
  alignas(64) T lane[64] = {};
};

// `steps` rows of n <= kRowTile columns, `step` bytes apart. If n is small, `copies` rows are read
// at a time as one wide row, and there are that many copies of each column's result.
struct Columns {
  int64_t steps, step, n, copies;
  int32_t dtype;
};

// All take blocks of n <= kRowBlock elements (row_max: any n).

// The largest of x and start; NaNs are skipped.
float row_max(const float* x, int64_t n, float start) noexcept;
double row_max(const double* x, int64_t n, double start) noexcept;
// y[i] = exp(x[i] - shift); adds y to the sum, and prefetches as much memory from `ahead` on if it
// is not NULL.
void row_exp(float* y, const float* x, float shift, int64_t n, RowSum<float>* sum,
             const char* ahead = nullptr) noexcept;
void row_exp(double* y, const double* x, double shift, int64_t n, RowSum<double>* sum,
             const char* ahead = nullptr) noexcept;
// Adds exp(x[i] - shift) to the sum, and prefetches as much memory from `ahead` on.
void row_add_exp(RowSum<float>* sum, const float* x, float shift, int64_t n,
                 const char* ahead) noexcept;
void row_add_exp(RowSum<double>* sum, const double* x, double shift, int64_t n,
                 const char* ahead) noexcept;
// y[j] = exp(x[j] - shift[j])
void column_exp(float* y, const float* x, const float* shift, int64_t n) noexcept;
void column_exp(double* y, const double* x, const double* shift, int64_t n) noexcept;
// top: [copies][n], the largest element of each column; NaNs are skipped.
void columns_max(float* top, const char* x, const Columns& c) noexcept;
void columns_max(double* top, const char* x, const Columns& c) noexcept;
// sum: [copies][n], the sum of exp(x - top), a top of -inf counting as 0. If `kept` is not NULL, it
// receives the exponentials, with x's strides.
void columns_sum_exp(float* sum, const float* top, const char* x, char* kept,
                     const Columns& c) noexcept;
void columns_sum_exp(double* sum, const double* top, const char* x, char* kept,
                     const Columns& c) noexcept;
// sum: [copies][n], the sum of g, or of g y if y is not NULL.
void columns_sum(float* sum, const char* g, const char* y, const Columns& c) noexcept;
void columns_sum(double* sum, const char* g, const char* y, const Columns& c) noexcept;
// v: [copies][n]; repeats the first n values.
void columns_repeat(float* v, const Columns& c) noexcept;
void columns_repeat(double* v, const Columns& c) noexcept;
// Combines n <= kMaxRowChunks chunks of a row: tops, their largest elements, and sums, of exp(x -
// top).
void join_exps(const double* tops, const double* sums, int64_t n, float* top, float* sum) noexcept;
void join_exps(const double* tops, const double* sums, int64_t n, double* top,
               double* sum) noexcept;
// Add x[i], a[i] b[i] or (x[i] - center)^2 to the sum.
void row_add(RowSum<float>* sum, const float* x, int64_t n) noexcept;
void row_add(RowSum<double>* sum, const double* x, int64_t n) noexcept;
void row_add_products(RowSum<float>* sum, const float* a, const float* b, int64_t n) noexcept;
void row_add_products(RowSum<double>* sum, const double* a, const double* b, int64_t n) noexcept;
void row_add_squares(RowSum<float>* sum, const float* x, float center, int64_t n) noexcept;
void row_add_squares(RowSum<double>* sum, const double* x, double center, int64_t n) noexcept;
// v[i] *= factor
void row_scale(float* v, float factor, int64_t n) noexcept;
void row_scale(double* v, double factor, int64_t n) noexcept;
float row_total(const RowSum<float>& sum) noexcept;
double row_total(const RowSum<double>& sum) noexcept;

TT_ENTRY_END

TT_ISA_BEGIN

// A row that is read block by block, in place if its dtype is T.
template <class T> struct RowIn {
  const char* p;
  int32_t dtype;

  TT_INLINE bool direct() const { return sizeof(T) == 8 || dtype == TT_F32; }
  // Elements [i, i + n), n <= kRowBlock unless direct.
  TT_INLINE const T* get(int64_t i, int64_t n, T* buffer) const {
    if (direct()) return reinterpret_cast<const T*>(p) + i;
    load_run(buffer, p + i * 2, 2, n, dtype);
    return buffer;
  }
};
TT_INLINE void store_run(char* p, const float* x, int64_t n, int32_t dtype) {
  store_f32(p, kItemSize[dtype], x, n, dtype);
}
TT_INLINE void store_run(char* p, const double* x, int64_t n, int32_t) {
  memcpy(p, x, size_t(n) * 8);
}

template <class T> struct RowOut {
  char* p;
  int32_t dtype;

  TT_INLINE bool direct() const { return sizeof(T) == 8 || dtype == TT_F32; }
  // Where to compute elements from i on: in the output, or in the buffer, which put() converts.
  TT_INLINE T* at(int64_t i, T* buffer) const {
    return direct() ? reinterpret_cast<T*>(p) + i : buffer;
  }
  TT_INLINE void put(int64_t i, int64_t n, const T* buffer) const {
    if (!direct()) store_run(p + i * 2, buffer, n, dtype);
  }
};

template <class F> TT_INLINE void for_blocks(int64_t n, const F& f) {
  for (int64_t i = 0; i < n; i += kRowBlock) f(i, min(n - i, kRowBlock));
}

// The steps of a kernel that this stage runs.
struct Steps {
  int32_t first, last;

  TT_INLINE bool has(int32_t step) const { return first <= step && step <= last; }
};

// Two sums of each chunk of a row. p: [2][rows][n_chunks].
struct RowParts {
  double* p;
  int64_t rows, n_chunks, row;

  double* at(int which) const { return p + (which * rows + row) * n_chunks; }
  void put(int which, int64_t chunk, double v) const { at(which)[chunk] = v; }
  TT_NOINLINE double total(int which) const {
    RunningSum<double> sum;
    for (int64_t k = 0; k < n_chunks; k++) sum.add(at(which)[k]);
    return sum.with(0);
  }
};

TT_INLINE Columns columns_of(int64_t inner, int64_t steps, int64_t n, int32_t dtype) {
  const int64_t fit = kRowTile / inner;
  const int64_t copies = min(fit, steps / 4);
  return {steps, inner * kItemSize[dtype], n, max<int64_t>(copies, 1), dtype};
}
// Calls f(step, byte offset, width) for all rows of columns: `copies` of them at a time, then the
// rest one by one.
template <class F> TT_INLINE void for_columns(const Columns& c, const F& f) {
  const int64_t bulk = c.steps - c.steps % c.copies;
  for (int64_t i = 0, k; i < c.steps; i += k) {
    k = i < bulk ? c.copies : 1;
    f(i, i * c.step, k * c.n);
  }
}

// Loads one value as T.
template <class T> TT_INLINE T load_one(const char* p, int32_t dtype) {
  T v;
  if (dtype == Loads<T>::native) memcpy(&v, p, sizeof v);
  else load_run(&v, p, kItemSize[dtype], 1, dtype);
  return v;
}

TT_ISA_END
