// Blocks of rows: loads and stores with conversion, exp and sums, for float (f16 bf16 f32) and double.
#pragma once

#include "cpu/math.h"
#include "cpu/reduce_load.h"
#include "cpu/reduce_vec.h"

TT_ENTRY_BEGIN

constexpr int64_t kRowBlock = 1024;  // elements that are converted or computed at a time

// A sum over a row, kept from block to block: element i of a block goes to lane i mod 64.
template <class T> struct RowSum {
  alignas(64) T lane[64] = {};
};

// Of blocks of n <= kRowBlock elements (row_max: any n).
// Largest of x and start, NaNs passed over.
float row_max(const float* x, int64_t n, float start) noexcept;
double row_max(const double* x, int64_t n, double start) noexcept;
// y[i] = exp(x[i] - shift), which is added to the sum.
void row_exp(float* y, const float* x, float shift, int64_t n, RowSum<float>* sum) noexcept;
void row_exp(double* y, const double* x, double shift, int64_t n, RowSum<double>* sum) noexcept;
// Adds exp(x[i] - shift) to the sum; from `ahead` on lies what will be read next: as much is fetched meanwhile.
void row_add_exp(RowSum<float>* sum, const float* x, float shift, int64_t n, const char* ahead) noexcept;
void row_add_exp(RowSum<double>* sum, const double* x, double shift, int64_t n, const char* ahead) noexcept;
// v[j] = exp(v[j] - shift[j])
void column_exp(float* v, const float* shift, int64_t n) noexcept;
void column_exp(double* v, const double* shift, int64_t n) noexcept;
// Adds x[i], a[i] b[i], (x[i] - center)^2.
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

// A row of n elements read block by block; native ones in place.
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
TT_INLINE void store_run(char* p, const double* x, int64_t n, int32_t) { __builtin_memcpy(p, x, size_t(n) * 8); }

template <class T> struct RowOut {
  char* p;
  int32_t dtype;

  TT_INLINE bool direct() const { return sizeof(T) == 8 || dtype == TT_F32; }
  // Where to compute elements [i, …) and, after that, put(): nothing more to do if direct.
  TT_INLINE T* at(int64_t i, T* buffer) const { return direct() ? reinterpret_cast<T*>(p) + i : buffer; }
  TT_INLINE void put(int64_t i, int64_t n, const T* buffer) const {
    if (!direct()) store_run(p + i * 2, buffer, n, dtype);
  }
};

template <class F> TT_INLINE void for_blocks(int64_t n, const F& f) {
  for (int64_t i = 0; i < n; i += kRowBlock) f(i, n - i < kRowBlock ? n - i : kRowBlock);
}

// One value of a dtype that computes in T.
template <class T> TT_INLINE T load_one(const char* p, int32_t dtype) {
  T v;
  load_run(&v, p, kItemSize[dtype], 1, dtype);
  return v;
}

TT_ISA_END
