// cholesky: A = U^H U, the outer products of the rows of U (Golub & Van Loan, "Matrix
// Computations", section 4.2).
//
//   a: (n, n), one triangle of which is read; replaced by U or, unless `upper`, by U^H
//   info: (1): the size of the first leading block that is not positive definite, or 0
//
// solve_triangular: A X = B.
//
//   a: (n, n), one triangle of which is read    b: (n, k), B, replaced by X
#pragma once

#include "kernels/functors/linalg/lu.h"

TT_FUNCTORS_BEGIN

struct Cholesky {
  // Writes the conjugates of one triangle into the other.
  template <class T> static TT_TEAM void reflect_triangle(Team t, T* a, int64_t n, bool to_upper) {
    for (int64_t i = t.rows().from(); i < n; i += t.rows().step())
      for (int64_t j = t.lanes().from(); j < i; j += t.lanes().step()) {
        if (to_upper) a[j * n + i] = conj_of(a[i * n + j]);
        else a[i * n + j] = conj_of(a[j * n + i]);
      }
    t.sync();
  }
  template <class T> static TT_TEAM void run(Team t, const MatrixPlan& p, int64_t at) {
    const int64_t n = p.n;
    T* a = matrix_of<T>(p.a, at, n * n);
    int32_t info = 0;
    if (!p.upper) reflect_triangle(t, a, n, true);
    for (int64_t k = 0; k < n; k++) {
      T* row = a + k * n;
      const double square = real_part(row[k]);
      if (!(square > 0)) {
        info = int32_t(k + 1);
        break;
      }
      const double root = square_root_of(square);
      t.sync();
      if (t.is_leader()) row[k] = from_real<T>(root);
      multiply_row(row + k + 1, n - k - 1, from_real<T>(1 / root), t.all());
      t.sync();
      for (int64_t i = k + 1 + t.rows().from(); i < n; i += t.rows().step())
        subtract_row(a + i * n + i, row + i, n - i, conj_of(row[i]), t.lanes());
      t.sync();
    }
    if (t.is_leader()) p.info[at] = info;
    if (!p.upper) reflect_triangle(t, a, n, false);
    for (int64_t i = t.rows().from(); i < n; i += t.rows().step())
      for (int64_t j = t.lanes().from(); j < i; j += t.lanes().step())
        a[p.upper ? i * n + j : j * n + i] = from_real<T>(0);
  }
};

struct SolveTriangular {
  template <class T> static TT_TEAM void run(Team t, const MatrixPlan& p, int64_t at) {
    const int64_t n = p.n;
    const int64_t k = p.k;
    const T* a = matrix_of<T>(p.a, at, n * n);
    T* b = matrix_of<T>(p.b, at, n * k);
    for (int64_t step = 0; step < n; step++) {
      const int64_t i = p.upper ? n - 1 - step : step;
      const int64_t from = p.upper ? i + 1 : 0;
      const int64_t to = p.upper ? n : i;
      subtract_rows(t, b, i, a + i * n, from, to, k);
      if (!p.unit) multiply_row(b + i * k, k, from_real<T>(1) / a[i * n + i], t.all());
      if (k == 1) t.sync();
    }
  }
};

TT_FUNCTORS_END
