// householder_qr: A = Q R by reflections of columns (Golub & Van Loan, "Matrix Computations",
// section 5.2), with the signs of LAPACK's geqrf.
//
//   a: (m, n), replaced by R and, below the diagonal, the reflectors    b: (min(m, n)), tau
//   work: (n)
//
// householder_product: the first n columns of the product of k reflections.
//
//   a: (m, n), the reflectors in the first k columns    w: (k), tau    b: (m, n), the product
//   work: (n)
#pragma once

#include "kernels/functors/linalg/dense.h"

TT_FUNCTORS_BEGIN

struct HouseholderQr {
  template <class T> static TT_TEAM void run(Team t, const MatrixPlan& p, int64_t at) {
    const int64_t m = p.m;
    const int64_t n = p.n;
    const int64_t steps = m < n ? m : n;
    T* a = matrix_of<T>(p.a, at, m * n);
    T* tau = matrix_of<T>(p.b, at, steps);
    T* w = reinterpret_cast<T*>(p.work + at * p.work_size);
    for (int64_t k = 0; k < steps; k++) {
      T* corner = a + k * n + k;
      const T factor = reflect(t, corner, m - k, n);
      if (t.is_leader()) tau[k] = factor;
      apply_left(t, corner + 1, m - k, n - k - 1, n, corner, n, conj_of(factor), w);
      t.sync();
    }
  }
};

struct HouseholderProduct {
  template <class T> static TT_TEAM void run(Team t, const MatrixPlan& p, int64_t at) {
    const int64_t m = p.m;
    const int64_t n = p.n;
    const T* a = matrix_of<T>(p.a, at, m * n);
    const T* tau = matrix_of<T>(p.w, at, p.k);
    T* q = matrix_of<T>(p.b, at, m * n);
    T* w = reinterpret_cast<T*>(p.work + at * p.work_size);
    set_identity(t, q, m, n);
    for (int64_t k = p.k - 1; k >= 0; k--) {
      apply_left(t, q + k * n + k, m - k, n - k, n, a + k * n + k, n, tau[k], w);
      t.sync();
    }
  }
};

TT_FUNCTORS_END
