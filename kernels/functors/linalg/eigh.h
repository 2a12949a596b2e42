// eigh: eigenvalues and eigenvectors of Hermitian matrices. Householder reflections make a real
// tridiagonal matrix, whose eigenvalues QL steps with implicit shifts find (Golub & Van Loan,
// "Matrix Computations", section 8.3; Bowdler, Martin, Reinsch & Wilkinson, Numer. Math. 11
// (1968)).
//
// The signs of eigenvectors follow from the steps. These are steqr's of LAPACK 3.9, whose signs
// PyTorch's results have (measured): each block is taken from the end that is smaller, a rotation
// has a positive cosine where that is the larger part, and two rows are finished at once. LAPACK
// reduces an upper triangle from its last row to its first: those are the steps on the lower
// triangle of the mirrored matrix, whose rows and columns are in reverse order. `mirrored` marks
// it where LAPACK's steps depend on the order.
//
//   a: (n, n), one triangle of which is read; overwritten    w: (n), ascending
//   b: (n, n), the eigenvectors as columns, if `vectors`    work: (3 n), info: (1)
#pragma once

#include "kernels/functors/linalg/dense.h"

TT_FUNCTORS_BEGIN

constexpr int kMaxSteps = 60;  // for one eigenvalue; two are usual
// The matrix is split where the square of the number beside the diagonal is at most this share of
// the product of the two numbers on it.
TT_TEAM TT_INLINE constexpr double split_share(bool single) { return single ? 0x1p-48 : 0x1p-106; }
// LAPACK divides a larger tridiagonal matrix in front of row m = n / 2 and conquers. The
// eigenvectors v that it finds have v[m - 1] + u v[m] < 0, where u is the sign of the number beside
// the diagonal there. The functions below choose the same signs.
constexpr int64_t kMostUndivided = 25;
TT_TEAM TT_INLINE constexpr int64_t division(int64_t n, bool mirrored) {
  return mirrored ? n - n / 2 : n / 2;
}

// Whether LAPACK takes a block with these numbers at the ends of its diagonal from the last one.
TT_TEAM TT_INLINE bool is_taken_from_last(double first, double last, bool mirrored) {
  if (mirrored) return !(magnitude(first) < magnitude(last));
  return magnitude(last) < magnitude(first);
}

// Whether the matrix is split between `on` and `next` of its diagonal, with `beside` beside it.
TT_TEAM TT_INLINE bool splits(double beside, double on, double next, double share) {
  return beside * beside <= share * (magnitude(on) * magnitude(next)) + kNegligibleSquare;
}

// p = s x - … : (x, y) = (c x - s y, s x + c y)
template <class T>
TT_TEAM TT_INLINE void rotate_rows(T* x, T* y, int64_t n, double c, double s, Along along) {
  double* p = reinterpret_cast<double*>(x);
  double* q = reinterpret_cast<double*>(y);
  for (int64_t i = along.from(); i < n * kParts<T>; i += along.step()) {
    const double u = p[i];
    const double v = q[i];
    p[i] = c * u - s * v;
    q[i] = s * u + c * v;
  }
}

template <class T> struct Hermitian {
  Team t;
  T* a;
  T* z;  // rows: the eigenvectors; NULL: none
  T* tau;
  T* p;
  double* d;  // the diagonal
  double* e;  // beside it
  int64_t n;
  double share;  // split_share
  bool mirrored;

  TT_TEAM void mirror() {
    const int64_t count = n * n;
    for (int64_t i = t.all().from(); i < count / 2; i += t.all().step())
      exchange(a[i], a[count - 1 - i]);
    t.sync();
  }
  TT_TEAM void fill_upper_triangle() {
    for (int64_t i = t.rows().from(); i < n; i += t.rows().step()) {
      if (t.lanes().from() == 0) a[i * n + i] = from_real<T>(real_part(a[i * n + i]));
      for (int64_t j = t.lanes().from(); j < i; j += t.lanes().step())
        a[j * n + i] = conj_of(a[i * n + j]);
    }
    t.sync();
  }

  // Leaves reflector k in row k, right of the diagonal.
  TT_TEAM void make_tridiagonal() {
    const Along all = t.all();
    const Along lanes = t.lanes();
    for (int64_t k = 0; k < n; k++) {
      if (t.is_leader()) {
        d[k] = real_part(a[k * n + k]);
        e[k] = 0;
      }
      const int64_t rest = n - k - 1;
      if (rest == 0) break;
      T* v = a + k * n + k + 1;
      T* block = v + n;
      for (int64_t i = all.from(); i < rest; i += all.step()) v[i] = a[(k + 1 + i) * n + k];
      t.sync();
      const T factor = reflect(t, v, rest, 1);
      t.sync();
      if (t.is_leader()) {
        tau[k] = factor;
        e[k] = real_part(v[0]);
        v[0] = from_real<T>(1);
      }
      t.sync();
      if (size_of(factor) == 0) continue;
      for (int64_t i = t.rows().from(); i < rest; i += t.rows().step()) {
        const T* row = block + i * n;
        T sum = from_real<T>(0);
        for (int64_t j = lanes.from(); j < rest; j += lanes.step()) sum = sum + row[j] * v[j];
        sum = t.warp_sum(sum);
        if (lanes.from() == 0) p[i] = factor * sum;
      }
      t.sync();
      const T half = factor * t.sum(dot(p, v, rest, all)) * -0.5;
      for (int64_t i = all.from(); i < rest; i += all.step()) p[i] = p[i] + half * v[i];
      t.sync();
      for (int64_t i = t.rows().from(); i < rest; i += t.rows().step()) {
        T* row = block + i * n;
        for (int64_t j = lanes.from(); j < rest; j += lanes.step())
          row[j] = row[j] - (v[i] * conj_of(p[j]) + p[i] * conj_of(v[j]));
      }
      t.sync();
    }
    t.sync();
  }

  // A warp computes whole rows of z.
  TT_TEAM void make_vectors() {
    set_identity(t, z, n, n);
    for (int64_t r = t.rows().from(); r < n; r += t.rows().step())
      for (int64_t k = r - 1; k >= 0; k--) make_vector(k, r);
    t.sync();
  }
  TT_TEAM void make_vector(int64_t k, int64_t r) {
    const int64_t rest = n - k - 1;
    const T* v = a + k * n + k + 1;
    T* row = z + r * n + k + 1;
    const T sum = t.warp_sum(dot(v, row, rest, t.lanes()));
    t.sync_warp();
    subtract_row(row, v, rest, tau[k] * sum, t.lanes());
    t.sync_warp();
  }

  // Leaves in the first row of a, which is no longer needed, the row whose product with an
  // eigenvector is v[m - 1] + u v[m]: see kMostUndivided. The rows of z are not yet rotated.
  TT_TEAM void save_division() {
    const int64_t at = division(n, mirrored);
    const double side = e[at - 1] < 0 ? -1 : 1;
    const T* first = z + (mirrored ? at : at - 1) * n;  // in LAPACK's order
    const T* second = z + (mirrored ? at - 1 : at) * n;
    for (int64_t i = t.all().from(); i < n; i += t.all().step()) a[i] = first[i] + second[i] * side;
    t.sync();
  }
  // A warp turns whole rows of z.
  TT_TEAM void choose_signs() {
    for (int64_t r = t.rows().from(); r < n; r += t.rows().step()) {
      T* row = z + r * n;
      const T product = t.warp_sum(dot(a, row, n, t.lanes()));
      const double by = real_part(product) > 0 ? -1 : 1;
      for (int64_t i = t.lanes().from(); i < n; i += t.lanes().step()) row[i] = row[i] * by;
    }
    t.sync();
  }

  TT_TEAM bool is_split(int64_t i) const { return splits(e[i], d[i], d[i + 1], share); }
  // The last row of the block that begins with `from`; rows behind `last` are other blocks.
  TT_TEAM int64_t block_end(int64_t from, int64_t last) const {
    int64_t to = from;
    while (to < last && !is_split(to)) to++;
    return to;
  }

  // Finishes the two rows from `from` on as LAPACK's laev2 does, by one thread; see step().
  // reversed: they are in reverse of LAPACK's order.
  TT_TEAM void finish(int64_t from, bool reversed, double* cosines, double* sines) {
    double& first = d[reversed ? from + 1 : from];
    double& second = d[reversed ? from : from + 1];
    const double beside = e[from];
    const double sum = first + second;
    const double apart = first - second;
    const double twice = beside + beside;
    const double root = square_root_of(apart * apart + twice * twice);
    const double x = apart < 0 ? apart - root : apart + root;
    const double norm = square_root_of(x * x + twice * twice);
    const bool larger = magnitude(x) > magnitude(twice);
    const bool negative = larger ? x < 0 : twice > 0;
    double c = -twice / (negative ? -norm : norm);
    double s = x / (negative ? -norm : norm);
    if ((sum < 0) == (apart < 0)) {
      const double old = c;
      c = -s;
      s = old;
    }
    const double value = 0.5 * (sum < 0 ? sum - root : sum + root);
    const bool first_larger = magnitude(first) > magnitude(second);
    const double most = first_larger ? first : second;
    const double least = first_larger ? second : first;
    second = most / value * least - beside / value * beside;
    first = value;
    e[from] = 0;
    cosines[from] = c;
    sines[from] = reversed ? s : -s;
  }

  // One QL step on rows [from, to], by one thread. Rotation i, of rows i and i + 1 of z, is left in
  // cosines and sines. Returns the last one.
  TT_TEAM int64_t step(int64_t from, int64_t to, double* cosines, double* sines) {
    double g = (d[from + 1] - d[from]) / (2 * e[from]);
    double r = square_root_of(g * g + 1);
    g = d[to] - d[from] + e[from] / (g + (g < 0 ? -r : r));
    double s = 1;
    double c = 1;
    double shift = 0;
    for (int64_t i = to - 1; i >= from; i--) {
      const double f = s * e[i];
      const double b = c * e[i];
      const double square = f * f + g * g;
      const bool below = (g < 0 && -g > magnitude(f)) || (g == 0 && f < 0);
      r = below ? -square_root_of(square) : square_root_of(square);
      e[i + 1] = r;
      if (square <= kNegligibleSquare) {  // f and g have lost digits, or are 0
        d[i + 1] -= shift;
        e[to] = 0;
        return i + 1;
      }
      s = f / r;
      c = g / r;
      g = d[i + 1] - shift;
      r = (d[i] - g) * s + 2 * c * b;
      shift = s * r;
      d[i + 1] = g + shift;
      g = c * r - b;
      cosines[i] = c;
      sines[i] = s;
    }
    d[from] -= shift;
    e[from] = g;
    e[to] = 0;
    return from;
  }
  // A thread computes whole columns of z.
  TT_TEAM void rotate(int64_t from, int64_t to, bool reversed) {
    double* cosines = reinterpret_cast<double*>(tau);  // the reflectors are no longer needed
    double* sines = reinterpret_cast<double*>(p);
    int64_t last = from;
    if (to == from + 1) {
      if (t.is_leader()) finish(from, reversed != mirrored, cosines, sines);
      t.sync();
    } else {
      last = t.share(t.is_leader() ? step(from, to, cosines, sines) : 0);
    }
    for (int64_t i = to - 1; z && i >= last; i--)
      rotate_rows(z + i * n, z + (i + 1) * n, n, cosines[i], sines[i], t.all());
    t.sync();
  }

  // Reverses the order of rows [from, to].
  TT_TEAM void reverse(int64_t from, int64_t to) {
    t.sync();
    for (int64_t i = from, j = to; i < j; i++, j--) {
      if (z) swap_rows(z + i * n, z + j * n, n, t.all());
      if (!t.is_leader()) continue;
      exchange(d[i], d[j]);
      exchange(e[i], e[j - 1]);
    }
    t.sync();
  }
  TT_TEAM bool diagonalise_block(int64_t first, int64_t last, bool reversed) {
    for (int64_t from = first; from < last; from++) {
      for (int steps = 0;; steps++) {
        const int64_t to = block_end(from, last);
        if (to == from) break;
        if (steps == kMaxSteps) return false;
        t.sync();
        rotate(from, to, reversed);
      }
    }
    return true;
  }
  TT_TEAM bool diagonalise() {
    int64_t to = 0;
    for (int64_t from = 0; from < n; from = to + 1) {
      to = block_end(from, n - 1);
      const bool reversed = is_taken_from_last(d[from], d[to], mirrored);
      if (reversed) reverse(from, to);
      if (!diagonalise_block(from, to, reversed)) return false;
      if (reversed) reverse(from, to);
    }
    return true;
  }

  TT_TEAM void sort() {
    for (int64_t i = 0; i < n; i++) {
      int64_t best = i;
      for (int64_t k = i + 1; k < n; k++) best = d[k] < d[best] ? k : best;
      if (best == i) continue;
      t.sync();
      if (t.is_leader()) exchange(d[i], d[best]);
      if (z) swap_rows(z + i * n, z + best * n, n, t.all());
      t.sync();
    }
  }

  TT_TEAM void mirror_vectors() {
    for (int64_t r = t.rows().from(); r < n; r += t.rows().step())
      for (int64_t i = t.lanes().from(); i < n / 2; i += t.lanes().step())
        exchange(z[r * n + i], z[r * n + n - 1 - i]);
    t.sync();
  }
  TT_TEAM void transpose() {
    for (int64_t i = t.rows().from(); i < n; i += t.rows().step())
      for (int64_t j = t.lanes().from(); j < i; j += t.lanes().step()) {
        const T value = z[i * n + j];
        z[i * n + j] = z[j * n + i];
        z[j * n + i] = value;
      }
  }
};

struct Eigh {
  template <class T> static TT_TEAM void run(Team t, const MatrixPlan& p, int64_t at) {
    const int64_t n = p.n;
    T* work = reinterpret_cast<T*>(p.work + at * p.work_size);
    T* a = matrix_of<T>(p.a, at, n * n);
    T* z = p.vectors ? matrix_of<T>(p.b, at, n * n) : nullptr;
    double* e = reinterpret_cast<double*>(work + 2 * n);
    Hermitian<T> h = {t, a, z, work, work + n, p.w + at * n, e, n, split_share(p.single), p.upper};
    if (h.mirrored) h.mirror();
    h.fill_upper_triangle();
    double* parts = reinterpret_cast<double*>(a);
    const int64_t n_parts = n * n * kParts<T>;
    const double by = scale_of(t, parts, n_parts);
    if (by > 0) multiply_row(parts, n_parts, by, t.all());
    t.sync();
    bool found = by >= 0;
    if (found) {
      const bool divided = z && n > kMostUndivided;
      h.make_tridiagonal();
      if (z) h.make_vectors();
      if (divided) h.save_division();
      found = h.diagonalise();
      if (divided) h.choose_signs();
    }
    if (t.is_leader()) p.info[at] = found ? 0 : 1;
    if (!found) {
      t.sync();
      fill_row(h.d, n, kNan, t.all());
      if (z) fill_row(z, n * n, from_real<T>(kNan), t.all());
      return;
    }
    h.sort();
    if (z && h.mirrored) h.mirror_vectors();
    if (z) h.transpose();
    t.sync();
    for (int64_t i = t.all().from(); by > 0 && i < n; i += t.all().step()) h.d[i] /= by;
  }
};

TT_FUNCTORS_END
