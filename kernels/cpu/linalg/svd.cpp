// svd by one-sided Jacobi. Rotations of pairs of columns make the columns of W = A V orthogonal;
// their norms are the singular values, and even small ones have high relative accuracy. Hestenes,
// J. SIAM 6 (1958); Demmel & Veselic, SIAM J. Matrix Anal. Appl. 13 (1992); Golub & Van Loan,
// "Matrix Computations", section 8.6.
//
//   w: (n, m), the columns of A; in the end those of U    v: (n, n), the columns of V    s: (n)
//
// A complex number is two doubles. Groups of matrices are rotated together, one per lane of a
// vector, if the plan has rooms:
//
//   room: (n, m + n, lanes), the columns of w and behind each that of v, in doubles
//   behind it, if results are to be as accurate as float32 only: a HermitianRoom
//
// Without vectors, groups use the eigenvalues of A^H A if float32 loses nothing by that, else a
// bidiagonal matrix, whose room is behind w:
//
//   row: (m, lanes)    five of (n, lanes), real: those of BidiagonalLanes
#include "kernels/cpu/linalg/svd.h"

#include "kernels/cpu/linalg/bidiagonal.h"
#include "kernels/cpu/simd/transpose.h"

TT_ISA_BEGIN

constexpr int kMaxSweeps = 60;          // about ten are needed
constexpr double kNoNorms = 0x1p-1000;  // a product of norms, one of which counts as 0

// Dot products of columns p and q.
struct Dots {
  double pp, qq, re, im;  // |p|^2, |q|^2 and p^H q
};
constexpr int kWide = 8;
template <bool kComplex> struct DotLanes {
  alignas(64) double pp[kWide] = {}, qq[kWide] = {}, re[kWide] = {}, im[kWide] = {};
  TT_INLINE void add(const double* x, const double* y) {
    for (int j = 0; j < kWide; j++) {
      pp[j] += x[j] * x[j];
      qq[j] += y[j] * y[j];
      re[j] += x[j] * y[j];
      if constexpr (kComplex) im[j] += x[j] * y[j ^ 1];
    }
  }
};
template <bool kComplex> TT_NOINLINE Dots dots(const double* p, const double* q, int64_t n) {
  DotLanes<kComplex> lanes;
  int64_t i = 0;
  for (; i + kWide <= n; i += kWide) lanes.add(p + i, q + i);
  if (i < n) {
    double x[kWide] = {};
    double y[kWide] = {};
    for (int64_t j = 0; j < n - i; j++) {
      x[j] = p[i + j];
      y[j] = q[i + j];
    }
    lanes.add(x, y);
  }
  Dots d = {};
  for (int j = 0; j < kWide; j++) {
    d.pp += lanes.pp[j];
    d.qq += lanes.qq[j];
    d.re += lanes.re[j];
    d.im += j & 1 ? -lanes.im[j] : lanes.im[j];
  }
  return d;
}

// p' = c p - s q, q' = s p + c q
TT_NOINLINE void rotate(double* p, double* q, int64_t n, double c, double s) {
  for (int64_t i = 0; i < n; i++) {
    const double x = p[i];
    const double y = q[i];
    p[i] = c * x - s * y;
    q[i] = s * x + c * y;
  }
}
// x *= re + i im, elementwise
TT_NOINLINE void multiply_complex(double* x, int64_t n, double re, double im) {
  for (int64_t i = 0; i < n; i += 2) {
    const double a = x[i];
    const double b = x[i + 1];
    x[i] = a * re - b * im;
    x[i + 1] = a * im + b * re;
  }
}
TT_INLINE void swap_columns(double* p, double* q, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const double x = p[i];
    p[i] = q[i];
    q[i] = x;
  }
}
TT_INLINE void fill(double* p, int64_t n, double x) {
  for (int64_t i = 0; i < n; i++) p[i] = x;
}
TT_INLINE void multiply(double* p, int64_t n, double k) {
  for (int64_t i = 0; i < n; i++) p[i] *= k;
}

// One matrix. Lengths of columns count doubles.
template <bool kComplex> struct Jacobi {
  static constexpr int64_t kParts = kComplex ? 2 : 1;
  double *w, *v, *s;
  int64_t m, n;
  int64_t length, width;  // of a column of w, kParts m, and of v, kParts n or, not wanted, 0
  double close;           // cosine of the angle of columns that count as orthogonal

  // A power of two that scales the largest element to about 1; 0 if all are 0, NaN if one is not
  // finite.
  TT_NOINLINE double scale() const {
    double tops[kWide] = {};
    double odds[kWide] = {};
    const int64_t count = n * length;
    for (int64_t i = 0; i < count; i += kWide)
      for (int64_t j = 0; j < min<int64_t>(kWide, count - i); j++) {
        const double a = libm::fabs(w[i + j]);
        tops[j] = max(a, tops[j]);
        odds[j] += a - a;
      }
    double top = 0;
    double odd = 0;
    for (int j = 0; j < kWide; j++) {
      top = max(tops[j], top);
      odd += odds[j];
    }
    if (odd != 0 || top == 0) return odd;
    const uint64_t exponent = bit_cast<uint64_t>(top) >> 52;
    return bit_cast<double>((exponent > 2045 ? 1 : 2046 - exponent) << 52);
  }

  // Rotates columns i and k until they are orthogonal. Returns false if they already are.
  bool orthogonal_pair(int64_t i, int64_t k) {
    double* p = w + i * length;
    double* q = w + k * length;
    Dots d = dots<kComplex>(p, q, length);
    const double norms = libm::sqrt(d.pp) * libm::sqrt(d.qq);
    if constexpr (kComplex) {
      if (!(norms > kNoNorms)) return false;
      const double re = d.re / norms;
      const double im = d.im / norms;
      const double cosine = libm::sqrt(re * re + im * im);
      if (!(cosine > close)) return false;
      multiply_complex(q, length, re / cosine, -im / cosine);
      multiply_complex(v + k * width, width, re / cosine, -im / cosine);
      d.re = cosine * norms;
    } else if (!(libm::fabs(d.re) > close * norms)) {
      return false;
    }
    const double z = (d.qq - d.pp) / (2 * d.re);
    const double t = (z < 0 ? -1 : 1) / (libm::fabs(z) + libm::sqrt(1 + z * z));
    const double c = 1 / libm::sqrt(1 + t * t);
    rotate(p, q, length, c, c * t);
    rotate(v + i * width, v + k * width, width, c, c * t);
    return true;
  }

  void sort() {
    for (int64_t i = 0; i < n; i++) {
      int64_t best = i;
      for (int64_t k = i + 1; k < n; k++) best = s[k] > s[best] ? k : best;
      if (best == i) continue;
      const double t = s[i];
      s[i] = s[best];
      s[best] = t;
      swap_columns(w + i * length, w + best * length, length);
      swap_columns(v + i * width, v + best * width, width);
    }
  }

  // Sets column k of w to a unit vector orthogonal to the columns before it: an axis,
  // orthogonalised twice. At least one axis keeps a norm of sqrt(1 / m).
  void complete(int64_t k) {
    double* u = w + k * length;
    for (int64_t axis = 0; axis < m; axis++) {
      fill(u, length, 0);
      u[axis * kParts] = 1;
      for (int64_t twice = 0; twice < 2 * k; twice++) {
        const double* p = w + twice % k * length;
        const Dots d = dots<kComplex>(p, u, length);
        for (int64_t i = 0; i < length; i++) {
          u[i] -= p[i] * d.re;
          if (kComplex) u[i] += p[i ^ 1] * (i & 1 ? -d.im : d.im);
        }
      }
      const double size = dots<false>(u, u, length).pp;
      if (size * double(2 * m) < 1) continue;
      return multiply(u, length, 1 / libm::sqrt(size));
    }
  }

  // A pair of singular vectors is known but for a sign, or a phase: makes the first large element
  // of V's column a positive number.
  void fix_phase(int64_t k) {
    double* y = v + k * width;
    const auto square = [&](int64_t i) {
      return y[i] * y[i] + (kComplex ? y[i + 1] * y[i + 1] : 0);
    };
    double top = 0;
    for (int64_t i = 0; i < width; i += kParts) top = max(square(i), top);
    int64_t at = 0;
    while (at + kParts < width && square(at) <= kSvdLargeSquare * top) at += kParts;
    if constexpr (kComplex) {
      const double size = libm::sqrt(square(at));
      const double re = y[at] / size;
      const double im = y[at + 1] / size;
      multiply_complex(w + k * length, length, re, -im);
      multiply_complex(y, width, re, -im);
      y[at + 1] = 0;
    } else if (y[at] < 0) {
      multiply(w + k * length, length, -1);
      multiply(y, width, -1);
    }
  }

  // Makes V the identity and the largest element about 1. Returns the factor.
  double prepare() {
    const double by = scale();
    fill(v, n * width, 0);
    for (int64_t i = 0; width && i < n; i++) v[i * width + i * kParts] = 1;
    multiply(w, n * length, by >= 0 ? by : 0);
    return by;
  }
  void sweep() {
    bool more = true;
    for (int count = 0; more && count < kMaxSweeps; count++) {
      more = false;
      for (int64_t i = 0; i < n; i++)
        for (int64_t k = i + 1; k < n; k++) more |= orthogonal_pair(i, k);
    }
  }
  // Splits W into U and the singular values, in order.
  void finish(double by) {
    if (!(by >= 0)) {
      fill(w, n * length, by);
      fill(v, n * width, by);
      return fill(s, n, by);
    }
    for (int64_t i = 0; i < n; i++)
      s[i] = libm::sqrt(dots<false>(w + i * length, w + i * length, length).pp);
    sort();
    for (int64_t i = 0; width && i < n; i++) fix_phase(i);
    for (int64_t i = 0; i < n; i++) {
      if (!width) {
        if (!(s[i] > 0x1p-500)) s[i] = 0;
      } else if (s[i] > 0x1p-500) {
        multiply(w + i * length, length, 1 / s[i]);
      } else {
        s[i] = 0;
        complete(i);
      }
      s[i] = by > 0 ? s[i] / by : 0;
    }
  }
};

template <bool kComplex> TT_INLINE Jacobi<kComplex> matrix(const SvdPlan& p, int64_t i) {
  constexpr int64_t kParts = kComplex ? 2 : 1;
  const int64_t length = kParts * p.m;
  const int64_t width = p.vectors ? kParts * p.n : 0;
  const double close = p.single ? 0x1p-30 : 0x1p-50 * libm::sqrt(double(p.m));
  return {
      p.w + i * p.n * length, p.v + i * p.n * width, p.s + i * p.n, p.m, p.n, length, width, close};
}
template <bool kComplex> TT_INLINE void decompose(const SvdPlan& p, int64_t i) {
  Jacobi<kComplex> jacobi = matrix<kComplex>(p, i);
  const double by = jacobi.prepare();
  jacobi.sweep();
  jacobi.finish(by);
}

// ---- one matrix per lane ----

#if TT_VEC_BYTES > 16
constexpr double kShortSquare = 0x1p-40;  // of a short column's length beside the longest one's
// The same where the roots of eigenvalues of A^H A are to have all digits of float32.
constexpr double kExactSquare = 0x1p-27;

template <bool kComplex> struct LaneJacobi {
  using N = typename LaneNumber<kComplex>::Type;
  static constexpr int64_t kStep = kPartsOf<N> * L;  // doubles of a number

  double* room;
  int64_t n;
  int64_t length, height;  // doubles of a column of w, and of v behind it, if vectors are wanted

  double* column(int64_t k) const { return room + k * height * L; }

  // Reads the first `count` lanes of W, scaled by `by`, and makes V the identity.
  TT_NOINLINE void read(const Jacobi<kComplex>& first, int64_t count, F by) const {
    for (int64_t i = 0; i < n * height * L; i += L) store(room + i, F{});
    for (int64_t k = 0; k < n; k++) {
      double* const to = column(k);
      transpose<uint64_t>(bytes_of(to), kRow, bytes_of(first.w + k * length), n * length * kItem,
                          length, count);
      for (int64_t i = 0; i < length * L; i += L) store(to + i, load(to + i) * by);
      if (first.width) store(to + length * L + k * kStep, splat(1.0));
    }
  }
  TT_NOINLINE void write(const Jacobi<kComplex>& first, int64_t count) const {
    for (int64_t k = 0; k < n; k++) {
      const int64_t width = first.width;
      const double* const from = column(k);
      transpose<uint64_t>(bytes_of(first.w + k * length), n * length * kItem, bytes_of(from), kRow,
                          count, length);
      transpose<uint64_t>(bytes_of(first.v + k * width), n * width * kItem,
                          bytes_of(from + length * L), kRow, count, width);
    }
  }
  // Writes the values of some lanes, as bits.
  void write_values(const Jacobi<kComplex>& first, uint32_t which, const double* values) const {
    for (int64_t lane = 0; lane < L; lane++)
      for (int64_t k = 0; which >> lane & 1 && k < n; k++)
        first.s[lane * n + k] = values[k * L + lane];
  }
  static constexpr int64_t kItem = sizeof(double);
  static constexpr int64_t kRow = L * kItem;
  static char* bytes_of(double* p) { return reinterpret_cast<char*>(p); }
  static const char* bytes_of(const double* p) { return reinterpret_cast<const char*>(p); }

  // Multiplies W, and V = I, by the eigenvectors of W^H W in double precision, after which the
  // columns of most matrices are as orthogonal as float32 can tell. Columns that are much shorter
  // than others would lose digits: lanes that have such stay as they are, as those do whose
  // `scale` is not above 0.
  TT_NOINLINE void start_from_gram(F scale) const {
    const HermitianRoom<N> gram(column(n), n, true);
    multiply_adjoint(gram.a, scale > 0);
    const Mask converged = lanes_of(eigh_lanes(gram.a, n, kComplex, true));
    const Mask turns = all_above(gram.d, kShortSquare) & converged;
    if (!any_of(turns)) return;
    for (int64_t k = 0; k < n; k++)
      for (int64_t j = 0; j < n; j++) {
        double* const at = gram.z_row(k) + j * kStep;
        const N kept = from_real_lanes<N>(splat(j == k ? 1.0 : 0.0));
        put(at, chosen_lanes(turns, get<N>(at), kept));
      }
    multiply_vectors(gram);
  }
  // Whether all of n squares of lengths are above `share` of the largest one.
  TT_INLINE Mask all_above(const double* squares, double share) const {
    F shortest = load(squares);
    F longest = shortest;
    for (int64_t k = 1; k < n; k++) {
      shortest = vmin(load(squares + k * L), shortest);
      longest = vmax(load(squares + k * L), longest);
    }
    return shortest > longest * share;
  }
  static TT_INLINE Mask lanes_of(uint32_t bits) {
    double flags[L];
    for (int64_t lane = 0; lane < L; lane++) flags[lane] = double(bits >> lane & 1);
    return load(flags) > 0;
  }
  // Replaces squares by their roots, the largest one first, divided by `by`, which is 0 or NaN
  // where all are to be that.
  TT_INLINE void finish_values(double* values, F by) const {
    for (int64_t k = 0; k < n; k++) {
      F top = load(values + (n - 1) * L);
      for (int64_t i = n - 2; i >= k; i--) {
        const F x = load(values + i * L);
        store(values + (i + 1) * L, vmin(x, top));
        top = vmax(x, top);
      }
      const F root = vsqrt(vmax(top, F{}));
      store(values + k * L, chosen(by > 0, F(root / by), by));
    }
  }
  // Leaves the singular values, from the eigenvalues of W^H W, in gram.d. Returns the lanes, as
  // bits, that have them with the digits of float32.
  TT_NOINLINE uint32_t find_by_gram(const HermitianRoom<N>& gram, F by) const {
    multiply_adjoint(gram.a, by > 0);
    const Mask converged = lanes_of(eigh_lanes(gram.a, n, kComplex, false));
    const Mask exact = converged & all_above(gram.d, kExactSquare);
    finish_values(gram.d, by);
    return sign_bits(exact | ~(by > 0));
  }

  // Makes row k a multiple of an axis by a reflection of the columns behind k. row: (m). Returns
  // the number beside the diagonal.
  TT_INLINE F reflect_row(int64_t k, double* row) const {
    const int64_t at = k * kStep;
    for (int64_t j = k + 1; j < n; j++) put(column(j) + at, conj_of(get<N>(column(j) + at)));
    const LaneReflection<N> r = reflect_lanes<N>(column(k + 1) + at, n - k - 1, height * L);
    for (int64_t i = at + kStep; i < length * L; i += kStep) {
      N sum = {};
      for (int64_t j = k + 1; j < n; j++)
        sum = add_product(get<N>(column(j) + i), get<N>(column(j) + at), sum);
      put(row + i, add_product(sum, r.tau, N{}));
    }
    for (int64_t j = k + 1; j < n; j++) {
      const N v = conj_of(get<N>(column(j) + at));
      for (int64_t i = at + kStep; i < length * L; i += kStep)
        put(column(j) + i, take_product(get<N>(row + i), v, get<N>(column(j) + i)));
    }
    return r.beta;
  }
  // Makes column k, from row k on, a multiple of an axis by a reflection of these rows. Returns the
  // number on the diagonal.
  TT_INLINE F reflect_column(int64_t k) const {
    const double* const v = column(k);
    const int64_t from = k * kStep;
    const LaneReflection<N> r =
        reflect_lanes<N>(column(k) + from, (length * L - from) / kStep, kStep);
    const N tau = conj_of(r.tau);
    for (int64_t j = k + 1; j < n; j++) {
      double* const x = column(j);
      N sum = {};
      for (int64_t i = from; i < length * L; i += kStep)
        sum = add_product(conj_of(get<N>(v + i)), get<N>(x + i), sum);
      sum = add_product(sum, tau, N{});
      for (int64_t i = from; i < length * L; i += kStep)
        put(x + i, take_product(get<N>(v + i), sum, get<N>(x + i)));
    }
    return r.beta;
  }
  // Leaves the singular values in `shifts` of a bidiagonal matrix. row: (m). Returns the lanes that
  // have them, as bits.
  TT_NOINLINE uint32_t find_by_bidiagonal(const BidiagonalLanes& to, double* row, F by) const {
    for (int64_t k = 0; k < n; k++) {
      const F d = reflect_column(k);
      store(to.q + k * L, d * d);
      if (k == n - 1) break;
      const F e = reflect_row(k, row);
      store(to.e + k * L, e * e);
    }
    const uint32_t converged = to.find();
    finish_values(to.shifts, by);
    return converged;
  }
  // Writes the singular values of `which` lanes, as bits. Returns those that it did not find.
  TT_NOINLINE uint32_t find_values(const Jacobi<kComplex>& first, uint32_t which, F by,
                                   bool single) const {
    double* const row = column(n);
    if (single) {
      const HermitianRoom<N> gram(row, n, false);
      const uint32_t found = which & find_by_gram(gram, by);
      write_values(first, found, gram.d);
      which &= ~found;
    }
    if (!which) return 0;
    double* const q = row + length * L;
    const int64_t size = n * L;
    const BidiagonalLanes lanes = {n, q, q + size, q + 2 * size, q + 3 * size, q + 4 * size};
    const uint32_t found = which & find_by_bidiagonal(lanes, row, by);
    write_values(first, found, lanes.shifts);
    return which & ~found;
  }

  // The lower triangle of W^H W, or 0.
  TT_INLINE void multiply_adjoint(double* to, Mask wanted) const {
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j <= i; j++) {
        N sum = {};
        for (int64_t k = 0; k < length * L; k += kStep)
          sum = add_product(conj_of(get<N>(column(i) + k)), get<N>(column(j) + k), sum);
        put(to + (i * n + j) * kStep, chosen_lanes(wanted, sum, N{}));
      }
  }
  // W = W V, and V, for the columns of V in the rows of z.
  TT_INLINE void multiply_vectors(const HermitianRoom<N>& gram) const {
    double* const row = gram.a;  // of W
    for (int64_t i = 0; i < length * L; i += kStep) {
      for (int64_t k = 0; k < n; k++) put(row + k * kStep, get<N>(column(k) + i));
      for (int64_t k = 0; k < n; k++) {
        const double* v = gram.z_row(k);
        N sum = {};
        for (int64_t j = 0; j < n * kStep; j += kStep)
          sum = add_product(get<N>(row + j), get<N>(v + j), sum);
        put(column(k) + i, sum);
      }
    }
    for (int64_t k = 0; k < n && height > length; k++)
      memcpy(column(k) + length * L, gram.z_row(k), size_t(n * kStep) * sizeof(double));
  }

  struct LaneDots {
    F pp, qq, re, im;  // as Dots
  };
  static TT_INLINE LaneDots real_dots(const double* p, const double* q, int64_t m) {
    F pp[2] = {}, qq[2] = {}, pq[2] = {};
    for (int64_t i = 0; i < m; i += 2) {
      TT_UNROLL for (int64_t j = 0; j < 2; j++) {
        if (i + j >= m) break;
        const F x = load(p + (i + j) * L);
        const F y = load(q + (i + j) * L);
        pp[j] = fma(x, x, pp[j]);
        qq[j] = fma(y, y, qq[j]);
        pq[j] = fma(x, y, pq[j]);
      }
    }
    return {pp[0] + pp[1], qq[0] + qq[1], pq[0] + pq[1], F{}};
  }
  static TT_INLINE LaneDots complex_dots(const double* p, const double* q, int64_t m) {
    LaneDots d = {};
    for (int64_t i = 0; i < m; i += 2) {
      const F x = load(p + i * L);
      const F x_im = load(p + (i + 1) * L);
      const F y = load(q + i * L);
      const F y_im = load(q + (i + 1) * L);
      d.pp = fma(x, x, fma(x_im, x_im, d.pp));
      d.qq = fma(y, y, fma(y_im, y_im, d.qq));
      d.re = fma(x, y, fma(x_im, y_im, d.re));
      d.im = fma(x, y_im, fma(-x_im, y, d.im));
    }
    return d;
  }

  // As Jacobi::orthogonal_pair, in each lane.
  TT_INLINE bool orthogonal_pair(double* p, double* q, F close) const {
    const F one = splat(1.0);
    const LaneDots d = kComplex ? complex_dots(p, q, length) : real_dots(p, q, length);
    const F norms = vsqrt(d.pp) * vsqrt(d.qq);
    F dot = d.re;
    F re = one;  // of the dot product by its magnitude
    F im = {};
    Mask turns;
    if constexpr (kComplex) {
      const Mask some = norms > kNoNorms;
      const F by = one / chosen(some, norms, one);
      const F cosine = vsqrt(fma(d.re * by, d.re * by, (d.im * by) * (d.im * by)));
      turns = some & (cosine > close);
      if (!any_of(turns)) return false;
      const F to_one = by / chosen(turns, cosine, one);
      re = chosen(turns, F(d.re * to_one), one);
      im = chosen(turns, F(d.im * to_one), F{});
      dot = cosine * norms;
    } else {
      turns = size_of(dot) > close * norms;
      if (!any_of(turns)) return false;
    }
    const F z = (d.qq - d.pp) / chosen(turns, F(dot + dot), one);
    const F size = one / (vmax(z, -z) + vsqrt(fma(z, z, one)));
    const F tangent = chosen(z < 0, F(-size), size);
    const F t = chosen(turns, tangent, F{});
    const F c = one / vsqrt(fma(t, t, one));
    const F s = c * t;
    if constexpr (kComplex) multiply_column(q, re, F(-im));
    for (int64_t i = 0; i < height * L; i += L) {
      const F x = load(p + i);
      const F y = load(q + i);
      store(p + i, fma(c, x, -(s * y)));
      store(q + i, fma(s, x, c * y));
    }
    return true;
  }
  // x *= re + i im, elementwise
  TT_INLINE void multiply_column(double* x, F re, F im) const {
    for (int64_t i = 0; i < height * L; i += 2 * L) {
      const F a = load(x + i);
      const F b = load(x + i + L);
      store(x + i, fma(a, re, -(b * im)));
      store(x + i + L, fma(a, im, b * re));
    }
  }
  TT_NOINLINE void sweep(double close) const {
    bool more = true;
    for (int count = 0; more && count < kMaxSweeps; count++) {
      more = false;
      for (int64_t i = 0; i < n; i++)
        for (int64_t k = i + 1; k < n; k++)
          more |= orthogonal_pair(column(i), column(k), splat(close));
    }
  }
};

TT_INLINE bool pays(int64_t count) { return count >= kSvdFewest; }
// Matrices [first, first + count), count <= L.
template <bool kComplex>
TT_NOINLINE void decompose_group(const SvdPlan& p, int64_t first, int64_t count) {
  const Room room(p.rooms);
  const Jacobi<kComplex> one = matrix<kComplex>(p, first);
  const LaneJacobi<kComplex> lanes = {room.as<double>(), p.n, one.length, one.length + one.width};
  double by[L] = {};
  double factors[L] = {};
  for (int64_t l = 0; l < count; l++) {
    by[l] = matrix<kComplex>(p, first + l).scale();
    factors[l] = by[l] > 0 ? by[l] : 0;
  }
  lanes.read(one, count, load(factors));
  uint32_t left = (1u << count) - 1;
  if (!p.vectors) {
    left = lanes.find_values(one, left, load(by), p.single);
    if (!left) return;
    lanes.read(one, count, load(factors));
  }
  if (p.single) lanes.start_from_gram(load(factors));
  lanes.sweep(one.close);
  lanes.write(one, count);
  for (int64_t l = 0; l < count; l++)
    if (left >> l & 1) matrix<kComplex>(p, first + l).finish(by[l]);
}
#else
constexpr int64_t L = 1;
TT_INLINE bool pays(int64_t) { return false; }
template <bool kComplex> TT_INLINE void decompose_group(const SvdPlan&, int64_t, int64_t) {}
#endif

template <bool kComplex> TT_INLINE void decompose_all(const SvdPlan& p, int64_t i, int64_t end) {
  for (; p.rooms.bytes && pays(end - i); i += L) decompose_group<kComplex>(p, i, min(L, end - i));
  for (; i < end; i++) decompose<kComplex>(p, i);
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(svd)(const void* plan, int64_t begin, int64_t end) noexcept {
  const SvdPlan& p = *static_cast<const SvdPlan*>(plan);
  if (p.complex) decompose_all<true>(p, begin, end);
  else decompose_all<false>(p, begin, end);
  return TT_OK;
}

TT_ENTRY_END
