// ldl_factor: A = L D L^T, or L D L^H if `adjoint`, with the pivoting of Bunch & Kaufman, Math.
// Comp. 31 (1977), in the form of LAPACK's sytf2 and hetf2. A block of D has size 1 or 2.
//
//   a: (n, n), whose lower triangle is read and replaced by D and, below its blocks, L
//   pivots: (n), from 1; a block of size 2 has the negative pivot twice    info: (1)
//
// ldl_solve: A X = B.
//
//   a, pivots: as above    b: (n, k), B, replaced by X
#pragma once

#include "kernels/functors/linalg/dense.h"

TT_FUNCTORS_BEGIN

template <class T> TT_TEAM TT_INLINE T conj_if(T x, bool yes) { return yes ? conj_of(x) : x; }

template <class T> struct BunchKaufman {
  static constexpr double kAlpha = 0.6403882032022076;  // (1 + sqrt(17)) / 8
  Team t;
  T* a;
  int64_t n;
  bool adjoint;

  TT_TEAM T& at(int64_t i, int64_t j) { return a[i * n + j]; }
  TT_TEAM double diagonal_size(int64_t i) {
    return adjoint ? magnitude(real_part(at(i, i))) : size_of(at(i, i));
  }
  TT_TEAM int64_t largest_below(int64_t k) {
    const auto size = [&](int64_t i) { return size_of(at(k + 1 + i, k)); };
    return k + 1 + t.first_largest(n - k - 1, size);
  }
  // The largest element beside the diagonal in row r of the matrix that remains from k on.
  TT_TEAM double row_top(int64_t r, int64_t k) {
    const Along all = t.all();
    double top = 0;
    for (int64_t j = k + all.from(); j < r; j += all.step()) top = larger(top, size_of(at(r, j)));
    for (int64_t i = r + 1 + all.from(); i < n; i += all.step())
      top = larger(top, size_of(at(i, r)));
    return t.largest(top);
  }
  // Exchanges rows and columns i < j of the matrix that remains.
  TT_TEAM void exchange(int64_t i, int64_t j) {
    const Along all = t.all();
    for (int64_t r = j + 1 + all.from(); r < n; r += all.step()) swap(&at(r, i), &at(r, j));
    for (int64_t r = i + 1 + all.from(); r < j; r += all.step()) {
      const T value = conj_if(at(r, i), adjoint);
      at(r, i) = conj_if(at(j, r), adjoint);
      at(j, r) = value;
    }
    if (t.is_leader()) {
      at(j, i) = conj_if(at(j, i), adjoint);
      swap(&at(i, i), &at(j, j));
    }
    t.sync();
  }
  static TT_TEAM void swap(T* x, T* y) {
    const T value = *x;
    *x = *y;
    *y = value;
  }
  // By one thread.
  TT_TEAM void make_real(int64_t i) {
    if (adjoint) at(i, i) = from_real<T>(real_part(at(i, i)));
  }
  TT_TEAM void eliminate_one(int64_t k) {
    if (t.is_leader()) make_real(k);
    t.sync();
    const T inverse = from_real<T>(1) / at(k, k);
    for (int64_t j = k + 1 + t.rows().from(); j < n; j += t.rows().step()) {
      const T factor = conj_if(at(j, k), adjoint) * inverse;
      for (int64_t i = j + t.lanes().from(); i < n; i += t.lanes().step())
        at(i, j) = at(i, j) - at(i, k) * factor;
      if (t.lanes().from() == 0) make_real(j);
    }
    t.sync();
    for (int64_t i = k + 1 + t.all().from(); i < n; i += t.all().step())
      at(i, k) = at(i, k) * inverse;
  }
  // What rows j of columns k and k + 1 become.
  struct Pair {
    T left, right;
  };
  TT_TEAM Pair solved_pair(int64_t k, int64_t j) {
    const T p = at(k, k);
    const T q = at(k + 1, k + 1);
    const T b = at(k + 1, k);
    const T c = conj_if(b, adjoint);
    const T det = p * q - b * c;
    const T x = at(j, k);
    const T y = at(j, k + 1);
    return {(x * q - y * b) / det, (y * p - x * c) / det};
  }
  TT_TEAM void eliminate_two(int64_t k) {
    if (t.is_leader()) {
      make_real(k);
      make_real(k + 1);
    }
    t.sync();
    for (int64_t j = k + 2 + t.rows().from(); j < n; j += t.rows().step()) {
      const Pair by = solved_pair(k, j);
      for (int64_t i = j + t.lanes().from(); i < n; i += t.lanes().step())
        at(i, j) = at(i, j) - (at(i, k) * conj_if(by.left, adjoint) +
                               at(i, k + 1) * conj_if(by.right, adjoint));
      if (t.lanes().from() == 0) make_real(j);
    }
    t.sync();
    for (int64_t j = k + 2 + t.all().from(); j < n; j += t.all().step()) {
      const Pair by = solved_pair(k, j);
      at(j, k) = by.left;
      at(j, k + 1) = by.right;
    }
  }

  // Returns the size of the block at k, and the row that is exchanged with its last one.
  TT_TEAM int64_t choose(int64_t k, int64_t* other) {
    const double own = diagonal_size(k);
    *other = k;
    if (k == n - 1) return 1;
    const int64_t below = largest_below(k);
    const double top = size_of(at(below, k));
    if (!(larger(own, top) > 0) || own >= kAlpha * top) return 1;
    const double beside = row_top(below, k);
    if (own >= kAlpha * top * (top / beside)) return 1;
    *other = below;
    return diagonal_size(below) >= kAlpha * beside ? 1 : 2;
  }

  TT_TEAM int32_t run(int32_t* pivots) {
    int32_t info = 0;
    for (int64_t k = 0; k < n;) {
      int64_t other;
      const int64_t size = choose(k, &other);
      const int64_t last = k + size - 1;
      t.sync();
      if (other != last) {
        if (size == 2 && t.is_leader()) swap(&at(k + 1, k), &at(other, k));
        exchange(last, other);
      }
      for (int64_t i = k; t.is_leader() && i <= last; i++)
        pivots[i] = int32_t(size == 1 ? other + 1 : -other - 1);
      const bool zero = size == 1 && size_of(at(k, k)) == 0;
      if (zero && !info) info = int32_t(k + 1);
      t.sync();
      if (size == 2) eliminate_two(k);
      else if (!zero) eliminate_one(k);
      t.sync();
      k += size;
    }
    return info;
  }
};

struct LdlFactor {
  template <class T> static TT_TEAM void run(Team t, const MatrixPlan& p, int64_t at) {
    const int64_t n = p.n;
    T* a = matrix_of<T>(p.a, at, n * n);
    BunchKaufman<T> b = {t, a, n, p.adjoint};
    const int32_t info = b.run(p.pivots + at * n);
    if (t.is_leader()) p.info[at] = info;
    for (int64_t i = t.rows().from(); i < n; i += t.rows().step())
      fill_row(a + i * n + i + 1, n - i - 1, from_real<T>(0), t.lanes());
  }
};

// A thread computes whole columns of b.
struct LdlSolve {
  static TT_TEAM int64_t row_of(int32_t pivot) {
    return (pivot < 0 ? -int64_t(pivot) : int64_t(pivot)) - 1;
  }
  template <class T> static TT_TEAM void run(Team t, const MatrixPlan& p, int64_t at) {
    const int64_t n = p.n;
    const int64_t k = p.k;
    const T* a = matrix_of<T>(p.a, at, n * n);
    T* b = matrix_of<T>(p.b, at, n * k);
    const int32_t* pivots = p.pivots + at * n;
    for (int64_t i = 0; i < n;) {
      const int64_t size = pivots[i] < 0 && i + 1 < n ? 2 : 1;
      exchange_rows(t, b, i + size - 1, row_of(pivots[i]), n, k);
      for (int64_t j = i; j < i + size; j++)
        for (int64_t r = i + size; r < n; r++)
          subtract_row(b + r * k, b + j * k, k, a[r * n + j], t.all());
      if (size == 1) multiply_row(b + i * k, k, from_real<T>(1) / a[i * n + i], t.all());
      else solve_block(t, a + i * n + i, b + i * k, n, k, p.adjoint);
      i += size;
    }
    for (int64_t i = n - 1; i >= 0;) {
      const int64_t size = pivots[i] < 0 && i > 0 ? 2 : 1;
      for (int64_t j = i - size + 1; j <= i; j++)
        for (int64_t r = i + 1; r < n; r++)
          subtract_row(b + j * k, b + r * k, k, conj_if(a[r * n + j], p.adjoint), t.all());
      exchange_rows(t, b, i, row_of(pivots[i]), n, k);
      i -= size;
    }
  }
  // Two rows of b by a block of D.
  template <class T>
  static TT_TEAM void solve_block(Team t, const T* d, T* b, int64_t n, int64_t k, bool adjoint) {
    const T lower = d[n];
    const T upper = conj_if(lower, adjoint);
    const T det = d[0] * d[n + 1] - lower * upper;
    for (int64_t j = t.all().from(); j < k; j += t.all().step()) {
      const T x = b[j];
      const T y = b[k + j];
      b[j] = (d[n + 1] * x - upper * y) / det;
      b[k + j] = (d[0] * y - lower * x) / det;
    }
  }
};

TT_FUNCTORS_END
