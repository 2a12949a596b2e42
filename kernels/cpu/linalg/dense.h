// What the kernels over a MatrixPlan share: numbers, rows, reflectors. T is double or c128.
#pragma once

#include "kernels/functors/functor.h"
#include "plan/linalg_plan.h"

TT_ISA_BEGIN

TT_INLINE double conj_of(double x) { return x; }
TT_INLINE c128 conj_of(c128 x) { return {x.re, -x.im}; }
TT_INLINE double real_part(double x) { return x; }
TT_INLINE double real_part(c128 x) { return x.re; }
TT_INLINE double square_of(double x) { return x * x; }
TT_INLINE double square_of(c128 x) { return x.re * x.re + x.im * x.im; }
// LAPACK's cabs1, by which pivots are chosen.
TT_INLINE double size_of(double x) { return __builtin_fabs(x); }
TT_INLINE double size_of(c128 x) { return __builtin_fabs(x.re) + __builtin_fabs(x.im); }
TT_INLINE double modulus(double x) { return __builtin_fabs(x); }
TT_INLINE double modulus(c128 x) {
  const double top = max(__builtin_fabs(x.re), __builtin_fabs(x.im));
  if (!(top > 0) || top - top != 0) return size_of(x);
  const double a = x.re / top;
  const double b = x.im / top;
  return top * __builtin_sqrt(a * a + b * b);
}
template <class T> TT_INLINE T from_real(double x) {
  if constexpr (kIsComplex<T>) return {x, 0};
  else return x;
}
template <class T> constexpr int64_t kParts = kIsComplex<T> ? 2 : 1;

// y -= a * x
template <class T>
TT_INLINE void subtract_row(T* __restrict y, const T* __restrict x, int64_t n, T a) {
  for (int64_t i = 0; i < n; i++) y[i] = y[i] - a * x[i];
}
template <class T> TT_INLINE void multiply_row(T* x, int64_t n, T a) {
  for (int64_t i = 0; i < n; i++) x[i] = x[i] * a;
}
template <class T> TT_INLINE void swap_rows(T* x, T* y, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const T t = x[i];
    x[i] = y[i];
    y[i] = t;
  }
}
// y^H x
template <class T> TT_INLINE T dot(const T* y, const T* x, int64_t n) {
  T sum[4] = {};
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int64_t j = 0; j < 4; j++) sum[j] = sum[j] + conj_of(y[i + j]) * x[i + j];
  for (; i < n; i++) sum[0] = sum[0] + conj_of(y[i]) * x[i];
  return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}
template <class T> TT_INLINE void set_identity(T* a, int64_t m, int64_t n) {
  for (int64_t i = 0; i < m * n; i++) a[i] = from_real<T>(0);
  for (int64_t i = 0; i < min(m, n); i++) a[i * n + i] = from_real<T>(1);
}

// A power of two that scales the largest part of n doubles to about 1; 0 if all are 0, NaN if one
// is not finite.
TT_INLINE double scale_of(const double* a, int64_t n) {
  double top = 0;
  double odd = 0;
  for (int64_t i = 0; i < n; i++) {
    const double x = __builtin_fabs(a[i]);
    top = max(x, top);
    odd += x - x;
  }
  if (odd != 0 || top == 0) return odd;
  const uint64_t exponent = __builtin_bit_cast(uint64_t, top) >> 52;
  return __builtin_bit_cast(double, (exponent > 2045 ? 1 : 2046 - exponent) << 52);
}

// Finds H = I - tau v v^H, v[0] = 1, with H^H x = beta e_0 for real beta, as LAPACK's larfg does.
// x: beta and v[1 … n - 1].
template <class T> TT_NOINLINE T reflect(T* x, int64_t n, int64_t stride) {
  double top = 0;
  bool done = true;
  for (int64_t i = 0; i < n; i++) {
    const double size = size_of(x[i * stride]);
    top = size > top || size != size ? size : top;
    done = done && (i == 0 || size == 0);
  }
  const T alpha = x[0];
  if (done && size_of(alpha - from_real<T>(real_part(alpha))) == 0) return from_real<T>(0);
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += square_of(x[i * stride] * (1 / top));
  const double norm = top * __builtin_sqrt(sum);
  const double beta = real_part(alpha) < 0 ? norm : -norm;
  const T factor = from_real<T>(1) / (alpha - from_real<T>(beta));
  for (int64_t i = 1; i < n; i++) x[i * stride] = x[i * stride] * factor;
  x[0] = from_real<T>(beta);
  return (from_real<T>(beta) - alpha) * (1 / beta);
}

// The rows [0, m) of a, of `width` elements and `stride` apart, are multiplied from the left by
// I - tau v v^H; v has elements `step` apart, of which the first is 1. w: (width)
template <class T> TT_NOINLINE void apply_left(T* a, int64_t m, int64_t width, int64_t stride,
                                               const T* v, int64_t step, T tau, T* w) {
  if (width <= 0) return;
  for (int64_t j = 0; j < width; j++) w[j] = a[j];
  for (int64_t i = 1; i < m; i++) subtract_row(w, a + i * stride, width, -conj_of(v[i * step]));
  subtract_row(a, w, width, tau);
  for (int64_t i = 1; i < m; i++) subtract_row(a + i * stride, w, width, tau * v[i * step]);
}

// Calls run(double or c128) for the matrices of a plan.
template <class Run> TT_INLINE int32_t each_matrix(const void* plan, int64_t begin, int64_t end) {
  const MatrixPlan& p = *static_cast<const MatrixPlan*>(plan);
  for (int64_t i = begin; i < end; i++) {
    if (p.complex) Run::template run<c128>(p, i);
    else Run::template run<double>(p, i);
  }
  return TT_OK;
}
// Matrix i of a list of matrices with `size` elements.
template <class T> TT_INLINE T* matrix_of(double* list, int64_t i, int64_t size) {
  return reinterpret_cast<T*>(list + i * size * kParts<T>);
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(lu_factor)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(lu_solve)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(cholesky)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(solve_triangular)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(householder_qr)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(householder_product)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(eigh)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(eig)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(ldl_factor)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(ldl_solve)(const void* plan, int64_t begin, int64_t end) noexcept;

TT_ENTRY_END
