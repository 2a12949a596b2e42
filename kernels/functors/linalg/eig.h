// eig: eigenvalues and eigenvectors of square matrices, in complex arithmetic. Householder
// reflections make a Hessenberg matrix H, QR steps with one shift a triangular one, T, and back
// substitution its eigenvectors (Golub & Van Loan, "Matrix Computations", sections 7.4 to 7.6).
//
//   a: (n, n), overwritten    w: (n) complex numbers    b: (n, n), the eigenvectors as columns,
//   if `vectors`    work: (3 n) complex numbers    info: (1)
//
// `real`: the elements of a are real, so eigenvalues are real or pairs of conjugates.
#pragma once

#include "kernels/functors/linalg/dense.h"

TT_FUNCTORS_BEGIN

constexpr int kMaxQrSteps = 60;  // for one eigenvalue; three are usual
constexpr double kEpsilon = 0x1p-52;

TT_TEAM TT_INLINE c128 square_root(c128 z) {
  const double size = modulus(z);
  const double x = square_root_of((size + magnitude(z.re)) / 2);
  if (x == 0) return {0, 0};
  const double y = z.im / (2 * x);
  if (z.re >= 0) return {x, y};
  return {magnitude(y), z.im < 0 ? -x : x};
}

struct Schur {
  Team t;
  c128* h;
  c128* z;  // NULL: no vectors
  c128* w;
  c128* work;
  int64_t n;

  TT_TEAM c128& at(int64_t i, int64_t j) { return h[i * n + j]; }

  // rows[i] = rows[i] (I - tau v v^H) for rows of `width` elements
  TT_TEAM void apply_right(c128* rows, int64_t count, const c128* v, int64_t width, c128 tau) {
    const Along lanes = t.lanes();
    for (int64_t i = t.rows().from(); i < count; i += t.rows().step()) {
      c128* row = rows + i * n;
      c128 sum = {0, 0};
      for (int64_t j = lanes.from(); j < width; j += lanes.step()) sum = sum + row[j] * v[j];
      sum = tau * t.warp_sum(sum);
      for (int64_t j = lanes.from(); j < width; j += lanes.step())
        row[j] = row[j] - sum * conj_of(v[j]);
    }
  }

  TT_TEAM void make_hessenberg() {
    const Along all = t.all();
    if (z) set_identity(t, z, n, n);
    c128* v = work;
    for (int64_t k = 0; k + 2 < n; k++) {
      const int64_t rest = n - k - 1;
      for (int64_t i = all.from(); i < rest; i += all.step()) v[i] = at(k + 1 + i, k);
      t.sync();
      const c128 tau = reflect(t, v, rest, 1);
      const c128 beta = v[0];
      t.sync();
      if (t.is_leader()) v[0] = {1, 0};
      t.sync();
      if (size_of(tau) != 0) {
        apply_right(h + k + 1, n, v, rest, tau);
        t.sync();
        apply_left(t, h + (k + 1) * n + k + 1, rest, rest, n, v, 1, conj_of(tau), work + n);
        if (z) apply_right(z + k + 1, n, v, rest, tau);
      }
      if (t.is_leader()) at(k + 1, k) = beta;
      for (int64_t i = k + 2 + all.from(); i < n; i += all.step()) at(i, k) = {0, 0};
      t.sync();
    }
  }

  // The eigenvalue of the last 2 x 2 block that is nearest to its last element.
  TT_TEAM c128 shift_of(int64_t last) {
    const c128 a = at(last - 1, last - 1);
    const c128 d = at(last, last);
    const c128 bc = at(last - 1, last) * at(last, last - 1);
    const c128 half = (a - d) * 0.5;
    const c128 root = square_root(half * half + bc);
    const bool same_side = half.re * root.re + half.im * root.im >= 0;
    const c128 below = same_side ? half + root : half - root;
    return size_of(below) == 0 ? d : d - bc / below;
  }

  // One QR step on the block [from, last]: H - s = Q R, then R Q + s.
  TT_TEAM void step(int64_t from, int64_t last, c128 s) {
    const Along all = t.all();
    c128* cosines = work;
    c128* sines = work + n;
    for (int64_t i = from + all.from(); i <= last; i += all.step()) at(i, i) = at(i, i) - s;
    t.sync();
    for (int64_t k = from; k < last; k++) {
      const double top = larger(modulus(at(k, k)), modulus(at(k + 1, k)));
      const c128 x = at(k, k) * (1 / top);
      const c128 y = at(k + 1, k) * (1 / top);
      const double norm = 1 / square_root_of(square_of(x) + square_of(y));
      const c128 c = top > 0 ? x * norm : c128{1, 0};
      const c128 r = top > 0 ? y * norm : c128{0, 0};
      t.sync();
      if (t.is_leader()) {
        cosines[k] = c;
        sines[k] = r;
      }
      for (int64_t j = k + all.from(); j < n; j += all.step()) {
        const c128 u = at(k, j);
        const c128 v = at(k + 1, j);
        at(k, j) = conj_of(c) * u + conj_of(r) * v;
        at(k + 1, j) = c * v - r * u;
      }
      t.sync();
    }
    for (int64_t i = all.from(); i <= last; i += all.step())
      rotate_row(h + i * n, i - 1 > from ? i - 1 : from, last, cosines, sines);
    for (int64_t i = all.from(); z && i < n; i += all.step())
      rotate_row(z + i * n, from, last, cosines, sines);
    t.sync();
    for (int64_t i = from + all.from(); i <= last; i += all.step()) at(i, i) = at(i, i) + s;
    t.sync();
  }
  // Rotates neighbouring elements k and k + 1 of a row.
  static TT_TEAM void rotate_row(c128* row, int64_t from, int64_t last, const c128* cosines,
                                 const c128* sines) {
    for (int64_t k = from; k < last; k++) {
      const c128 c = cosines[k];
      const c128 r = sines[k];
      const c128 u = row[k];
      const c128 v = row[k + 1];
      row[k] = u * c + v * r;
      row[k + 1] = v * conj_of(c) - u * conj_of(r);
    }
  }

  TT_TEAM bool make_triangular() {
    int64_t last = n - 1;
    int steps = 0;
    while (last > 0) {
      int64_t from = last;
      while (from > 0) {
        const double beside = size_of(at(from, from - 1));
        const double about = size_of(at(from, from)) + size_of(at(from - 1, from - 1));
        if (beside <= kEpsilon * about || beside < 0x1p-1000) break;
        from--;
      }
      t.sync();
      if (from > 0 && t.is_leader()) at(from, from - 1) = {0, 0};
      t.sync();
      if (from == last) {
        last--;
        steps = 0;
        continue;
      }
      if (steps++ == kMaxQrSteps) return false;
      const c128 unusual = {size_of(at(last, last - 1)) + at(last, last).re, at(last, last).im};
      const c128 shift = steps % 10 ? shift_of(last) : unusual;
      t.sync();
      step(from, last, shift);
    }
    for (int64_t i = t.all().from(); i < n; i += t.all().step()) w[i] = at(i, i);
    t.sync();
    return true;
  }

  // Solves (T - w[k]) x = 0 with x[k] = 1.
  TT_TEAM void back_substitute(int64_t k, c128* x) {
    const Along all = t.all();
    for (int64_t i = all.from(); i <= k; i += all.step()) x[i] = i == k ? c128{1, 0} : -at(i, k);
    t.sync();
    for (int64_t i = k - 1; i >= 0; i--) {
      c128 by = at(i, i) - w[k];
      if (size_of(by) < kEpsilon) by = {kEpsilon, 0};
      const c128 value = x[i] / by;
      t.sync();
      if (t.is_leader()) x[i] = value;
      for (int64_t j = all.from(); j < i; j += all.step()) x[j] = x[j] - value * at(j, i);
      t.sync();
      if (size_of(value) < 0x1p300) continue;
      multiply_row(x, k + 1, from_real<c128>(1 / size_of(value)), all);
      t.sync();
    }
  }

  // Norm 1, the largest element real.
  TT_TEAM void normalise(c128* v) {
    const Along all = t.all();
    double top = 0;
    for (int64_t i = all.from(); i < n; i += all.step()) top = larger(top, size_of(v[i]));
    top = t.largest(top);
    double sum = 0;
    for (int64_t i = all.from(); i < n; i += all.step()) {
      v[i] = v[i] * (1 / top);
      sum += square_of(v[i]);
    }
    sum = t.sum(sum);
    const int64_t best = t.first_largest(n, [&](int64_t i) { return square_of(v[i]); });
    const c128 phase = conj_of(v[best]) * (1 / (modulus(v[best]) * square_root_of(sum)));
    t.sync();
    for (int64_t i = all.from(); i < n; i += all.step()) {
      v[i] = v[i] * phase;
      if (i == best) v[i].im = 0;
    }
    t.sync();
  }

  // From the last to the first, so that a vector may take the place of its column.
  TT_TEAM void make_vectors() {
    c128* x = work;
    c128* v = work + n;
    for (int64_t k = n - 1; k >= 0; k--) {
      back_substitute(k, x);
      for (int64_t i = t.rows().from(); i < n; i += t.rows().step()) {
        c128 sum = {0, 0};
        for (int64_t j = t.lanes().from(); j <= k; j += t.lanes().step())
          sum = sum + z[i * n + j] * x[j];
        sum = t.warp_sum(sum);
        if (t.lanes().from() == 0) v[i] = sum;
      }
      t.sync();
      normalise(v);
      set_column(k, v);
    }
  }
  TT_TEAM void set_column(int64_t k, const c128* v) {
    for (int64_t i = t.all().from(); i < n; i += t.all().step()) z[i * n + k] = v[i];
    t.sync();
  }

  TT_TEAM void copy_conjugate(int64_t to, int64_t from) {
    if (t.is_leader()) w[to] = conj_of(w[from]);
    for (int64_t i = t.all().from(); z && i < n; i += t.all().step())
      z[i * n + to] = conj_of(z[i * n + from]);
    t.sync();
  }
  TT_TEAM void exchange(int64_t i, int64_t k) {
    if (t.is_leader()) exchange_numbers(w + i, w + k);
    for (int64_t r = t.all().from(); z && r < n; r += t.all().step())
      exchange_numbers(z + r * n + i, z + r * n + k);
    t.sync();
  }
  static TT_TEAM void exchange_numbers(c128* x, c128* y) {
    const c128 value = *x;
    *x = *y;
    *y = value;
  }
  // Real matrices: makes the eigenvalues real or neighbouring pairs of conjugates, which they are
  // up to rounding. An eigenvalue is real unless another is nearer to its conjugate.
  TT_TEAM void pair_conjugates() {
    for (int64_t i = 0; i < n; i++) {
      int64_t best = i;
      for (int64_t k = i + 1; k < n; k++)
        if (size_of(w[k] - conj_of(w[i])) < size_of(w[best] - conj_of(w[i]))) best = k;
      const bool tiny = magnitude(w[i].im) < 64 * kEpsilon;  // the matrix is scaled to 1
      t.sync();
      if (best == i || tiny) {
        make_real(i);
        continue;
      }
      if (best != i + 1) exchange(best, i + 1);
      const bool turned = w[i].im < 0;
      t.sync();
      if (turned) exchange(i, i + 1);
      copy_conjugate(i + 1, i);
      i++;
    }
  }
  TT_TEAM void make_real(int64_t i) {
    if (t.is_leader()) w[i].im = 0;
    for (int64_t r = t.all().from(); z && r < n; r += t.all().step())
      work[r] = {z[r * n + i].re, 0};
    t.sync();
    if (!z) return;
    normalise(work);
    set_column(i, work);
  }

  TT_TEAM bool run(bool real) {
    make_hessenberg();
    if (!make_triangular()) return false;
    if (z) make_vectors();
    if (real) pair_conjugates();
    return true;
  }
};

struct Eig {
  template <class T> static TT_TEAM void run(Team t, const MatrixPlan& p, int64_t at) {
    const int64_t n = p.n;
    c128* a = matrix_of<c128>(p.a, at, n * n);
    c128* b = p.vectors ? matrix_of<c128>(p.b, at, n * n) : nullptr;
    c128* w = matrix_of<c128>(p.w, at, n);
    double* parts = reinterpret_cast<double*>(a);
    const double by = scale_of(t, parts, 2 * n * n);
    if (by > 0) multiply_row(parts, 2 * n * n, by, t.all());
    t.sync();
    Schur schur = {t, a, b, w, reinterpret_cast<c128*>(p.work + at * p.work_size), n};
    const bool found = by >= 0 && schur.run(p.real);
    t.sync();
    if (t.is_leader()) p.info[at] = found ? 0 : 1;
    const c128 none = {kNan, 0};
    if (!found) {
      fill_row(w, n, none, t.all());
      if (b) fill_row(b, n * n, none, t.all());
    } else if (by > 0) {
      multiply_row(reinterpret_cast<double*>(w), 2 * n, 1 / by, t.all());
    }
  }
};

TT_FUNCTORS_END
