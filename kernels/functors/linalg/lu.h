// lu_factor: A = P L U with partial pivoting, row by row (Golub & Van Loan, "Matrix Computations",
// section 3.4).
//
//   a: (m, n), replaced by L below the diagonal and U    pivots: (min(m, n)), from 1
//   info: (1)    det: NULL or (6): the determinant, its sign, the logarithm of its absolute value
//
// lu_solve: A X = B, or A^H X = B.
//
//   a: (n, n), L and U    pivots: (n), from 1    b: (n, k), B, replaced by X
#pragma once

#include "kernels/functors/linalg/dense.h"

TT_FUNCTORS_BEGIN

// u / |u|, exactly 1 or -1 for a real number; 0 for 0.
TT_TEAM TT_INLINE double sign_of_pivot(double u, double) {
  if (u > 0) return 1;
  return u < 0 ? -1 : u;
}
TT_TEAM TT_INLINE c128 sign_of_pivot(c128 u, double size) {
  if (size == 0) return {0, 0};
  return u * (1 / size);
}

template <class T>
TT_TEAM TT_INLINE void write_determinant(const T* a, int64_t n, bool odd, double* out) {
  T det = from_real<T>(odd ? -1 : 1);
  T sign = det;
  double log = 0;
  for (int64_t i = 0; i < n; i++) {
    const T u = a[i * n + i];
    const double size = modulus(u);
    det = det * u;
    sign = sign * sign_of_pivot(u, size);
    log += log_of(size);
  }
  *reinterpret_cast<T*>(out) = det;
  *reinterpret_cast<T*>(out + 2) = sign;
  out[4] = log;
}

struct LuFactor {
  template <class T> static TT_TEAM void run(Team t, const MatrixPlan& p, int64_t at) {
    const int64_t m = p.m;
    const int64_t n = p.n;
    const int64_t steps = m < n ? m : n;
    T* a = matrix_of<T>(p.a, at, m * n);
    int32_t* pivots = p.pivots + at * steps;
    int32_t info = 0;
    bool odd = false;
    for (int64_t k = 0; k < steps; k++) {
      T* row = a + k * n;
      const int64_t best =
          k + t.first_largest(m - k, [&](int64_t i) { return size_of(row[i * n + k]); });
      if (t.is_leader()) pivots[k] = int32_t(best + 1);
      if (best != k) {
        swap_rows(row, a + best * n, n, t.all());
        odd = !odd;
        t.sync();
      }
      if (size_of(row[k]) == 0) {
        info = info ? info : int32_t(k + 1);
        continue;
      }
      const T inverse = from_real<T>(1) / row[k];
      for (int64_t i = k + 1 + t.rows().from(); i < m; i += t.rows().step()) {
        T* other = a + i * n;
        const T factor = other[k] * inverse;
        t.sync_warp();
        if (t.lanes().from() == 0) other[k] = factor;
        subtract_row(other + k + 1, row + k + 1, n - k - 1, factor, t.lanes());
      }
      t.sync();
    }
    if (!t.is_leader()) return;
    p.info[at] = info;
    if (p.det) write_determinant(a, n, odd, p.det + at * 6);
  }
};

// b[i] -= the sum of a[j] * b[j] over rows j in [from, to). A thread computes whole columns, but
// one column is shared by all.
template <class T> TT_TEAM TT_INLINE void subtract_rows(Team t, T* b, int64_t i, const T* a,
                                                        int64_t from, int64_t to, int64_t k) {
  if (k == 1) {
    T sum = from_real<T>(0);
    for (int64_t j = from + t.all().from(); j < to; j += t.all().step()) sum = sum + a[j] * b[j];
    sum = t.sum(sum);
    if (t.is_leader()) b[i] = b[i] - sum;
    return;
  }
  for (int64_t j = from; j < to; j++) subtract_row(b + i * k, b + j * k, k, a[j], t.all());
}
struct LuSolve {
  template <class T> static TT_TEAM void run(Team t, const MatrixPlan& p, int64_t at) {
    const int64_t n = p.n;
    const int64_t k = p.k;
    const T* a = matrix_of<T>(p.a, at, n * n);
    T* b = matrix_of<T>(p.b, at, n * k);
    const int32_t* pivots = p.pivots + at * n;
    if (p.adjoint) return adjoint(t, a, b, pivots, n, k);
    for (int64_t i = 0; i < n; i++) exchange_rows(t, b, i, int64_t(pivots[i]) - 1, n, k);
    t.sync();
    for (int64_t i = 1; i < n; i++) {
      subtract_rows(t, b, i, a + i * n, 0, i, k);
      if (k == 1) t.sync();
    }
    for (int64_t i = n - 1; i >= 0; i--) {
      subtract_rows(t, b, i, a + i * n, i + 1, n, k);
      multiply_row(b + i * k, k, from_real<T>(1) / a[i * n + i], t.all());
      if (k == 1) t.sync();
    }
  }
  // A thread computes whole columns.
  template <class T> static TT_TEAM void adjoint(Team t, const T* a, T* b, const int32_t* pivots,
                                                 int64_t n, int64_t k) {
    const Along all = t.all();
    for (int64_t i = 0; i < n; i++) {
      multiply_row(b + i * k, k, from_real<T>(1) / conj_of(a[i * n + i]), all);
      for (int64_t j = i + 1; j < n; j++)
        subtract_row(b + j * k, b + i * k, k, conj_of(a[i * n + j]), all);
    }
    for (int64_t i = n - 1; i >= 0; i--)
      for (int64_t j = 0; j < i; j++)
        subtract_row(b + j * k, b + i * k, k, conj_of(a[i * n + j]), all);
    for (int64_t i = n - 1; i >= 0; i--) exchange_rows(t, b, i, int64_t(pivots[i]) - 1, n, k);
  }
};

TT_FUNCTORS_END
