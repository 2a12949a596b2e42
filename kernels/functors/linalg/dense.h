// What the algorithms over a MatrixPlan share: numbers, rows, reflectors. T is double or c128.
#pragma once

#include "kernels/functors/linalg/team.h"
#include "plan/linalg_plan.h"

TT_FUNCTORS_BEGIN

// What counts as 0 beside a matrix of norm 1: squares of larger numbers do not underflow.
constexpr double kNegligible = 0x1p-500;
constexpr double kNegligibleSquare = kNegligible * kNegligible;

TT_TEAM TT_INLINE double conj_of(double x) { return x; }
TT_TEAM TT_INLINE c128 conj_of(c128 x) { return {x.re, -x.im}; }
TT_TEAM TT_INLINE double real_part(double x) { return x; }
TT_TEAM TT_INLINE double real_part(c128 x) { return x.re; }
TT_TEAM TT_INLINE double square_of(double x) { return x * x; }
TT_TEAM TT_INLINE double square_of(c128 x) { return x.re * x.re + x.im * x.im; }
// LAPACK's cabs1, by which pivots are chosen.
TT_TEAM TT_INLINE double size_of(double x) { return magnitude(x); }
TT_TEAM TT_INLINE double size_of(c128 x) { return magnitude(x.re) + magnitude(x.im); }
TT_TEAM TT_INLINE double modulus(double x) { return magnitude(x); }
TT_TEAM TT_INLINE double modulus(c128 x) {
  const double top = larger(magnitude(x.re), magnitude(x.im));
  if (!(top > 0) || top - top != 0) return size_of(x);
  const double a = x.re / top;
  const double b = x.im / top;
  return top * square_root_of(a * a + b * b);
}
template <class T> TT_TEAM TT_INLINE T from_real(double x) {
  if constexpr (kIsComplex<T>) return {x, 0};
  else return x;
}
template <class T> constexpr int64_t kParts = kIsComplex<T> ? 2 : 1;

// y - a * x, fused where the CPU can, since groups of matrices (cpu/linalg/groups.h) are to have
// the same bits.
#if TT_ON_DEVICE || !TT_FUSED
template <class T> TT_TEAM TT_INLINE T take_product(T a, T x, T y) { return y - a * x; }
#else
TT_INLINE double take_product(double a, double x, double y) { return libm::fma(-a, x, y); }
TT_INLINE c128 take_product(c128 a, c128 x, c128 y) {
  return {libm::fma(-a.re, x.re, libm::fma(a.im, x.im, y.re)),
          libm::fma(-a.re, x.im, libm::fma(-a.im, x.re, y.im))};
}
#endif

// y -= a * x. On the CPU many places share one body.
template <class T> TT_TEAM TT_INLINE void subtract_row(T* TT_RESTRICT y, const T* TT_RESTRICT x,
                                                       int64_t n, T a, Along along) {
  for (int64_t i = along.from(); i < n; i += along.step()) y[i] = take_product(a, x[i], y[i]);
}
#if !TT_ON_DEVICE
template <> inline TT_ONE_BODY void subtract_row(double* TT_RESTRICT y, const double* TT_RESTRICT x,
                                                 int64_t n, double a, Along) {
  for (int64_t i = 0; i < n; i++) y[i] = take_product(a, x[i], y[i]);
}
template <> inline TT_ONE_BODY void subtract_row(c128* TT_RESTRICT y, const c128* TT_RESTRICT x,
                                                 int64_t n, c128 a, Along) {
  for (int64_t i = 0; i < n; i++) y[i] = take_product(a, x[i], y[i]);
}
#endif
template <class T> TT_TEAM TT_INLINE void multiply_row(T* x, int64_t n, T a, Along along) {
  for (int64_t i = along.from(); i < n; i += along.step()) x[i] = x[i] * a;
}
template <class T> TT_TEAM TT_INLINE void exchange(T& x, T& y) {
  const T old = x;
  x = y;
  y = old;
}
template <class T> TT_TEAM TT_INLINE void swap_rows(T* x, T* y, int64_t n, Along along) {
  for (int64_t i = along.from(); i < n; i += along.step()) {
    const T t = x[i];
    x[i] = y[i];
    y[i] = t;
  }
}
// Exchanges rows i and `other` of b, of n rows of k numbers; does nothing for an `other` outside.
template <class T>
TT_TEAM TT_INLINE void exchange_rows(Team t, T* b, int64_t i, int64_t other, int64_t n, int64_t k) {
  if (other != i && other >= 0 && other < n) swap_rows(b + i * k, b + other * k, k, t.all());
}
template <class T> TT_TEAM TT_INLINE void fill_row(T* x, int64_t n, T a, Along along) {
  for (int64_t i = along.from(); i < n; i += along.step()) x[i] = a;
}
// The terms of a thread: y^H x
template <class T> TT_TEAM TT_INLINE T dot(const T* y, const T* x, int64_t n, Along along) {
  T sum[4] = {};
  int64_t i = along.from();
  const int64_t step = along.step();
  for (; i + 3 * step < n; i += 4 * step)
    for (int64_t j = 0; j < 4; j++) sum[j] = sum[j] + conj_of(y[i + j * step]) * x[i + j * step];
  for (; i < n; i += step) sum[0] = sum[0] + conj_of(y[i]) * x[i];
  return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}
template <class T> TT_TEAM TT_INLINE void set_identity(Team t, T* a, int64_t m, int64_t n) {
  fill_row(a, m * n, from_real<T>(0), t.all());
  t.sync();
  const int64_t count = m < n ? m : n;
  for (int64_t i = t.all().from(); i < count; i += t.all().step()) a[i * n + i] = from_real<T>(1);
  t.sync();
}

// A power of two that scales the largest part of n doubles to about 1; 0 if all are 0, NaN if one
// is not finite.
TT_TEAM TT_INLINE double scale_of(Team t, const double* a, int64_t n) {
  double top = 0;
  double odd = 0;
  for (int64_t i = t.all().from(); i < n; i += t.all().step()) {
    const double x = magnitude(a[i]);
    top = larger(top, x);
    odd += x - x;
  }
  top = t.largest(top);
  odd = t.sum(odd);
  if (odd != 0 || top == 0) return odd;
  const uint64_t exponent = bit_cast<uint64_t>(top) >> 52;
  return bit_cast<double>((exponent > 2045 ? 1 : 2046 - exponent) << 52);
}

// Finds H = I - tau v v^H, v[0] = 1, with H^H x = beta e_0 for real beta, as LAPACK's larfg does.
// x: beta and v[1 … n - 1].
template <class T> TT_TEAM TT_NOINLINE T reflect(Team t, T* x, int64_t n, int64_t stride) {
  const Along all = t.all();
  double rest = 0;
  for (int64_t i = 1 + all.from(); i < n; i += all.step())
    rest = larger_or_nan(rest, size_of(x[i * stride]));
  rest = t.largest_or_nan(rest);
  T alpha = x[0];
  if (rest == 0 && size_of(alpha - from_real<T>(real_part(alpha))) == 0) return from_real<T>(0);
  double top = larger_or_nan(rest, size_of(alpha));
  // What rounding errors leave of dependent columns may be this small: reciprocals would overflow.
  const bool tiny = top < 0x1p-900;
  if (tiny) {
    t.sync();  // every thread has read x[0]
    for (int64_t i = all.from(); i < n; i += all.step()) x[i * stride] = x[i * stride] * 0x1p900;
    alpha = alpha * 0x1p900;
    top *= 0x1p900;
    t.sync();
  }
  double sum = 0;
  for (int64_t i = all.from(); i < n; i += all.step()) sum += square_of(x[i * stride] * (1 / top));
  const double norm = top * square_root_of(t.sum(sum));
  const double beta = real_part(alpha) < 0 ? norm : -norm;
  const T factor = from_real<T>(1) / (alpha - from_real<T>(beta));
  for (int64_t i = 1 + all.from(); i < n; i += all.step()) x[i * stride] = x[i * stride] * factor;
  if (t.is_leader()) x[0] = from_real<T>(tiny ? beta * 0x1p-900 : beta);
  t.sync();
  return (from_real<T>(beta) - alpha) * (1 / beta);
}

// The rows [0, m) of a, of `width` elements and `stride` apart, are multiplied from the left by
// I - tau v v^H; v has elements `step` apart, of which the first is 1. w: (width). A thread
// computes whole columns; a sync() must follow.
template <class T> TT_TEAM TT_NOINLINE void apply_left(Team t, T* a, int64_t m, int64_t width,
                                                       int64_t stride, const T* v, int64_t step,
                                                       T tau, T* w) {
  if (width <= 0) return;
  const Along all = t.all();
  for (int64_t j = all.from(); j < width; j += all.step()) w[j] = a[j];
  for (int64_t i = 1; i < m; i++)
    subtract_row(w, a + i * stride, width, -conj_of(v[i * step]), all);
  subtract_row(a, w, width, tau, all);
  for (int64_t i = 1; i < m; i++) subtract_row(a + i * stride, w, width, tau * v[i * step], all);
}

// Matrix i of a list of matrices with `size` elements.
template <class T> TT_TEAM TT_INLINE T* matrix_of(double* list, int64_t i, int64_t size) {
  return reinterpret_cast<T*>(list + i * size * kParts<T>);
}

TT_FUNCTORS_END
