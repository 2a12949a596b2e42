// Panels of columns of large matrices: of LU and QR factors, and of the reductions to tridiagonal
// and to bidiagonal form, whose time is that of reading the matrix from the second-level cache once
// (symmetric) or twice for each column. Numbers N are real or complex, as pairs of real ones.
//
// A vector of complex numbers is multiplied by a number as by its real and by its imaginary part,
// and by another vector as by that and by that with its parts exchanged; each product has a sum of
// its own, and what belongs together is added at the end.
#include "plan/panels.h"

#include "kernels/cpu/simd/isa.h"

#include "kernels/cpu/simd/vec.h"

TT_ISA_BEGIN

// Rows that are read at a time.
template <class N> constexpr int kGroup = (TT_VEC_BYTES == 64 ? 8 : 4) / int(kParts<N>);

template <class N> using Lanes = Vec<RealOf<N>>;
template <class N> constexpr bool kIsPair = kParts<N> == 2;
template <class N> constexpr int kNumbers = kLanes<RealOf<N>> / int(kParts<N>);  // of a vector

// -1 and 1 for the real and the imaginary parts.
template <class R> TT_INLINE Vec<R> part_signs() {
  R signs[kLanes<R>];
  for (int i = 0; i < kLanes<R>; i++) signs[i] = R(i % 2 ? 1 : -1);
  return load(signs);
}
// The start of the vector that holds element i.
template <class N> TT_INLINE int64_t vector_start(int64_t i) { return i - i % kNumbers<N>; }

// Sums of the products of two vectors.
template <class N> struct Products {
  Lanes<N> sum;      // of parts
  Lanes<N> crossed;  // of parts of one with the other parts of the other; real: unused

  TT_INLINE void add(Lanes<N> a, Lanes<N> x, Lanes<N> turned) {
    sum = fma(a, x, sum);
    if constexpr (kIsPair<N>) crossed = fma(a, turned, crossed);
  }
  // The sum of a x, or of conj(a) x.
  template <bool kConj> TT_INLINE N total() const {
    const auto add = [](auto x, auto y) { return x + y; };
    RealOf<N> two[2];
    fold_lanes<RealOf<N>, kLanes<RealOf<N>>>(sum, two, add);
    if constexpr (!kIsPair<N>) {
      return two[0] + two[1];
    } else {
      RealOf<N> other[2];
      fold_lanes<RealOf<N>, kLanes<RealOf<N>>>(crossed, other, add);
      if (kConj) return {two[0] + two[1], other[0] - other[1]};
      return {two[0] - two[1], other[0] + other[1]};
    }
  }
};
template <class N> TT_INLINE Lanes<N> turned_of(Lanes<N> x) {
  if constexpr (kIsPair<N>) return exchanged_parts(x);
  else return x;
}

// A number that multiplies vectors.
template <class N> struct Factor {
  Lanes<N> re, im;  // real: im is unused
  TT_INLINE void set(N x) {
    re = splat(real_part(x));
    if constexpr (kIsPair<N>) im = splat(x.im);
  }
};
// Sums of products of vectors and numbers.
template <class N> struct Multiples {
  Lanes<N> by_re, by_im;  // real: by_im is unused

  TT_INLINE void add(Lanes<N> a, const Factor<N>& f) {
    by_re = fma(a, f.re, by_re);
    if constexpr (kIsPair<N>) by_im = fma(a, f.im, by_im);
  }
  // The sum of f a.
  TT_INLINE Lanes<N> total() const {
    if constexpr (kIsPair<N>) return fma(exchanged_parts(by_im), part_signs<RealOf<N>>(), by_re);
    else return by_re;
  }
  // The sum of f conj(a), of complex numbers.
  TT_INLINE Lanes<N> total_conj() const {
    if constexpr (kIsPair<N>) return exchanged_parts(by_im) - by_re * part_signs<RealOf<N>>();
    else return by_re;
  }
};

// out[r] = the sum of a x, or of conj(a) x, over row r of a and columns [from, to).
template <class N, int kRows, bool kConj = false>
TT_INLINE void dot_rows(const N* a, int64_t row, const N* x, int64_t from, int64_t to, N* out) {
  Products<N> sum[kRows] = {};
  for (int64_t c = from; c < to; c += kNumbers<N>) {
    const Lanes<N> v = load(parts_of(x + c));
    const Lanes<N> turned = turned_of<N>(v);
    TT_UNROLL
    for (int r = 0; r < kRows; r++) sum[r].add(load(parts_of(a + r * row + c)), v, turned);
  }
  TT_UNROLL
  for (int r = 0; r < kRows; r++) out[r] = sum[r].template total<kConj>();
}
template <class N, bool kConj = false> TT_NOINLINE void times(const N* a, int64_t row, int64_t rows,
                                                              const N* x, int64_t from, int64_t to,
                                                              N* out) {
  from = vector_start<N>(from);
  int64_t r = 0;
  for (; r + kGroup<N> <= rows; r += kGroup<N>)
    dot_rows<N, kGroup<N>, kConj>(a + r * row, row, x, from, to, out + r);
  for (; r < rows; r++) dot_rows<N, 1, kConj>(a + r * row, row, x, from, to, out + r);
}

// y += the sum of factor[r] times row r of a, over columns [from, to).
template <class N, int kRows> TT_INLINE void add_group(const N* a, int64_t row, const N* factor,
                                                       RealOf<N> sign, int64_t from, int64_t to,
                                                       N* y) {
  Factor<N> by[kRows];
  TT_UNROLL
  for (int r = 0; r < kRows; r++) by[r].set(factor[r] * sign);
  for (int64_t c = from; c < to; c += kNumbers<N>) {
    Multiples<N> sum = {load(parts_of(y + c)), Lanes<N>{}};
    TT_UNROLL
    for (int r = 0; r < kRows; r++) sum.add(load(parts_of(a + r * row + c)), by[r]);
    store(parts_of(y + c), sum.total());
  }
}
template <class N> TT_NOINLINE void add_rows(const N* a, int64_t row, int64_t rows, const N* factor,
                                             RealOf<N> sign, int64_t from, int64_t to, N* y) {
  from = vector_start<N>(from);
  int64_t r = 0;
  for (; r + kGroup<N> <= rows; r += kGroup<N>)
    add_group<N, kGroup<N>>(a + r * row, row, factor + r, sign, from, to, y);
  for (; r < rows; r++) add_group<N, 1>(a + r * row, row, factor + r, sign, from, to, y);
}

// y = a x for a Hermitian matrix of which the triangle right of the diagonal is read, whole vectors
// of rows at the diagonal; rows and columns [from, to). Each element is read once.
template <class N> TT_NOINLINE void hermitian_times(const N* a, int64_t row, const N* x,
                                                    int64_t from, int64_t to, N* y) {
  constexpr int kWidth = kNumbers<N>;
  constexpr int kRows = TT_NS::min(kGroup<N>, kWidth);
  from = vector_start<N>(from);
  for (int64_t c = from; c < to; c += kWidth) store(parts_of(y + c), Lanes<N>{});
  for (int64_t r = from; r < to; r += kRows) {
    Products<N> sum[kRows] = {};
    Factor<N> by[kRows];
    const int64_t corner = vector_start<N>(r);
    const Lanes<N> first = load(parts_of(x + corner));
    const Lanes<N> first_turned = turned_of<N>(first);
    TT_UNROLL
    for (int i = 0; i < kRows; i++) {
      sum[i].add(load(parts_of(a + (r + i) * row + corner)), first, first_turned);
      by[i].set(x[r + i]);
    }
    for (int64_t c = corner + kWidth; c < to; c += kWidth) {
      const Lanes<N> v = load(parts_of(x + c));
      const Lanes<N> turned = turned_of<N>(v);
      Multiples<N> below = {};
      TT_UNROLL
      for (int i = 0; i < kRows; i++) {
        const Lanes<N> part = load(parts_of(a + (r + i) * row + c));
        sum[i].add(part, v, turned);
        below.add(part, by[i]);
      }
      store(parts_of(y + c), load(parts_of(y + c)) + below.total_conj());
    }
    TT_UNROLL
    for (int i = 0; i < kRows; i++) y[r + i] = y[r + i] + sum[i].template total<false>();
  }
}

// A power of two that scales x > 0 to about 1.
inline double scale_of(double x) {
  const uint64_t exponent = bit_cast<uint64_t>(x) >> 52;
  return bit_cast<double>((exponent > 2045 ? 1 : 2046 - exponent) << 52);
}

template <class T> TT_INLINE double largest_part(const T* x, int64_t n) {
  double top = 0;
  for (int64_t i = 0; i < n; i++) top = max(top, libm::fabs(double(x[i])));
  return top;
}
// The sum of the squares of x times by, and of `first`.
template <class T> TT_INLINE double scaled_squares(double first, const T* x, int64_t n, double by) {
  double sum[8] = {first};
  for (int64_t i = 0; i < n; i++) {
    const double part = double(x[i]) * by;
    sum[(i + 1) % 8] += part * part;
  }
  for (int i = 1; i < 8; i++) sum[0] += sum[i];
  return sum[0];
}

// Replaces x by v of the reflection whose adjoint leaves beta in x[0] and zeros behind. Returns
// tau.
template <class T> TT_NOINLINE T reflect(T* x, int64_t n, T* beta) {
  const double top = largest_part(x + 1, n - 1);
  *beta = x[0];
  x[0] = 1;
  if (top == 0) return 0;
  const double alpha = *beta;
  const double by = scale_of(max(top, libm::fabs(alpha)));
  const double square = scaled_squares(alpha * by * (alpha * by), x + 1, n - 1, by);
  const double norm = alpha < 0 ? libm::sqrt(square) : -libm::sqrt(square);
  const double factor = 1 / (alpha * by - norm);
  for (int64_t i = 1; i < n; i++) x[i] = T(double(x[i]) * by * factor);
  *beta = T(norm / by);
  return T((norm - alpha * by) / norm);
}
template <class R> TT_NOINLINE ComplexNumber<R> reflect(ComplexNumber<R>* x, int64_t n, R* beta) {
  R* const rest = parts_of(x + 1);
  const int64_t count = 2 * (n - 1);
  const ComplexNumber<double> corner = {x[0].re, x[0].im};
  const double top = max(largest_part(rest, count), libm::fabs(corner.im));
  *beta = x[0].re;
  x[0] = {1, 0};
  if (top == 0) return {0, 0};
  const double by = scale_of(max(top, libm::fabs(corner.re)));
  const ComplexNumber<double> alpha = corner * by;
  const double first = alpha.re * alpha.re + alpha.im * alpha.im;
  const double square = scaled_squares(first, rest, count, by);
  const double norm = alpha.re < 0 ? libm::sqrt(square) : -libm::sqrt(square);
  const ComplexNumber<double> apart = {alpha.re - norm, alpha.im};
  const double inverse_square = 1 / (apart.re * apart.re + apart.im * apart.im);
  const ComplexNumber<double> factor = conj_of(apart) * inverse_square;  // 1 / apart
  for (int64_t i = 1; i < n; i++) {
    const ComplexNumber<double> scaled = {double(x[i].re) * by, double(x[i].im) * by};
    const ComplexNumber<double> v = scaled * factor;
    x[i] = {R(v.re), R(v.im)};
  }
  *beta = R(norm / by);
  return {R((norm - alpha.re) / norm), R(-alpha.im / norm)};
}

// Clears the elements before `to` in the vector that holds i.
template <class N> TT_NOINLINE void clear_to(N* x, int64_t i, int64_t to) {
  for (int64_t k = vector_start<N>(i); k < to; k++) x[k] = N{};
}
template <class T> TT_NOINLINE void divide(T* x, int64_t n, T by) {
  for (int64_t i = 0; i < n; i++) x[i] /= by;
}
// by is scaled to about 1, which its inverse then is, too.
template <class R> TT_NOINLINE void divide(ComplexNumber<R>* x, int64_t n, ComplexNumber<R> by) {
  const double scale = scale_of(max(libm::fabs(double(by.re)), libm::fabs(double(by.im))));
  const double re = double(by.re) * scale;
  const double im = double(by.im) * scale;
  const double square = re * re + im * im;
  const ComplexNumber<double> inverse = {re / square, -im / square};
  for (int64_t i = 0; i < n; i++) {
    const ComplexNumber<double> part = {double(x[i].re) * scale, double(x[i].im) * scale};
    const ComplexNumber<double> value = part * inverse;
    x[i] = {R(value.re), R(value.im)};
  }
}
template <class N> TT_NOINLINE void scale(N* x, int64_t from, int64_t to, N by) {
  for (int64_t i = from; i < to; i++) x[i] = x[i] * by;
}
// The sum of conj(x) y.
template <class N> TT_NOINLINE N dot(const N* x, const N* y, int64_t from, int64_t to) {
  N sum;
  dot_rows<N, 1, true>(x, 0, y, vector_start<N>(from), to, &sum);
  return sum;
}
template <class N> TT_NOINLINE void copy_conj(N* to, const N* from, int64_t n) {
  for (int64_t i = 0; i < n; i++) to[i] = conj_of(from[i]);
}

// Factors of the rows of two panels: their elements in one column.
template <class N>
TT_INLINE void read_column(const N* panel, int64_t row, int64_t count, int64_t column, N* out) {
  for (int64_t r = 0; r < count; r++) out[r] = panel[r * row + column];
}

template <class N> void tridiagonal_panel(const Condense<N>& p) {
  const int64_t n = p.n;
  const int64_t row = p.row;
  N* v_panel = p.right;
  N* w_panel = v_panel + p.width * row;
  N* w_conj = w_panel + p.width * row;
  N* v_conj = w_conj + p.width * row;
  N* of_v = p.x;
  N* of_w = p.x + round_up(p.width, kNumbers<N>);
  for (int64_t j = 0; j < p.width; j++) {
    const int64_t i = p.at + j;
    N* v = v_panel + j * row;
    N* w = w_panel + j * row;
    copy_conj(v + i, p.a + i * row + i, n - i);
    read_column(v_conj, row, j, i, of_v);
    read_column(w_conj, row, j, i, of_w);
    add_rows<N>(v_panel, row, j, of_w, -1, i, n, v);
    add_rows<N>(w_panel, row, j, of_v, -1, i, n, v);
    p.d[i] = real_part(v[i]);
    clear_to(v, i, i + 1);
    p.tau[i] = N{};
    if (i + 1 < n) {
      p.tau[i] = reflect(v + i + 1, n - i - 1, p.e + i);
      hermitian_times(p.a, row, v, i + 1, n, w);
      times<N, kIsPair<N>>(v_panel, row, j, v, i + 1, n, of_v);
      times<N, kIsPair<N>>(w_panel, row, j, v, i + 1, n, of_w);
      add_rows<N>(v_panel, row, j, of_w, -1, i + 1, n, w);
      add_rows<N>(w_panel, row, j, of_v, -1, i + 1, n, w);
      clear_to(w, i + 1, i + 1);
      scale(w, i + 1, n, p.tau[i]);
      const N half = p.tau[i] * dot(w, v, i + 1, n) * RealOf<N>(-0.5);
      add_rows<N>(v, row, 1, &half, 1, i + 1, n, w);
    }
    copy_conj(w_conj + j * row, w, row);
    copy_conj(v_conj + j * row, v, row);
  }
}

template <class T> void bidiagonal_panel(const Condense<T>& p) {
  const int64_t m = p.m;
  const int64_t n = p.n;
  const int64_t row = p.row;
  const int64_t height = p.height;
  T* v_panel = p.left;
  T* x_panel = v_panel + p.width * height;
  T* y_panel = p.right;
  T* u_panel = y_panel + p.width * row;
  T* first = p.x;
  T* second = p.x + round_up(p.width, kLanes<T>);
  for (int64_t j = 0; j < p.width; j++) {
    const int64_t i = p.at + j;
    T* v = v_panel + j * height;
    T* x = x_panel + j * height;
    T* y = y_panel + j * row;
    T* u = u_panel + j * row;
    for (int64_t r = i; r < m; r++) v[r] = p.a[r * row + i];
    read_column(y_panel, row, j, i, first);
    read_column(u_panel, row, j, i, second);
    add_rows<T>(v_panel, height, j, first, -1, i, m, v);
    add_rows<T>(x_panel, height, j, second, -1, i, m, v);
    clear_to(v, i, i);
    p.tau[i] = reflect(v + i, m - i, p.d + i);
    p.tau_u[i] = 0;
    if (i + 1 >= n) continue;
    // y = tau a^T v of the updated a
    add_rows<T>(p.a + i * row, row, m - i, v + i, 1, i + 1, n, y);
    times(v_panel, height, j, v, i, m, first);
    times(x_panel, height, j, v, i, m, second);
    add_rows<T>(y_panel, row, j, first, -1, i + 1, n, y);
    add_rows<T>(u_panel, row, j, second, -1, i + 1, n, y);
    clear_to(y, i + 1, i + 1);
    scale(y, i + 1, n, p.tau[i]);
    // row i
    memcpy(u + i + 1, p.a + i * row + i + 1, size_t(n - i - 1) * sizeof(T));
    read_column(v_panel, height, j + 1, i, first);
    read_column(x_panel, height, j, i, second);
    add_rows<T>(y_panel, row, j + 1, first, -1, i + 1, n, u);
    add_rows<T>(u_panel, row, j, second, -1, i + 1, n, u);
    clear_to(u, i + 1, i + 1);
    p.tau_u[i] = reflect(u + i + 1, n - i - 1, p.e + i);
    // x = tau a u
    times(p.a + (i + 1) * row, row, m - i - 1, u, i + 1, n, x + i + 1);
    times(y_panel, row, j + 1, u, i + 1, n, first);
    times(u_panel, row, j, u, i + 1, n, second);
    add_rows<T>(v_panel, height, j + 1, first, -1, i + 1, m, x);
    add_rows<T>(x_panel, height, j, second, -1, i + 1, m, x);
    clear_to(x, i + 1, i + 1);
    scale(x, i + 1, m, p.tau_u[i]);
  }
}

// The column of the largest size of row[from, to), the first of equals.
template <class N> TT_NOINLINE int64_t largest_of(const N* row, int64_t from, int64_t to) {
  using R = RealOf<N>;
  R tops[16] = {};
  int64_t i = from;
  for (; i + 16 <= to; i += 16)
    for (int k = 0; k < 16; k++) tops[k] = max(tops[k], magnitude_of(row[i + k]));
  for (; i < to; i++) tops[0] = max(tops[0], magnitude_of(row[i]));
  for (int k = 1; k < 16; k++) tops[0] = max(tops[0], tops[k]);
  for (i = from; i < to; i++)
    if (magnitude_of(row[i]) == tops[0]) return i;
  return from;
}
template <class N> TT_NOINLINE void swap_numbers(N* x, N* y, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const N t = x[i];
    x[i] = y[i];
    y[i] = t;
  }
}
// The panel's columns as rows, and back.
template <class N> TT_NOINLINE void read_panel(const Panel<N>& p, N* panel) {
  const N* a = p.a + p.at * p.row + p.at;
  for (int64_t r = 0; r < p.m - p.at; r++)
    for (int64_t j = 0; j < p.width; j++) panel[j * p.height + r] = a[r * p.row + j];
  const int64_t rows = p.m - p.at;
  for (int64_t j = 0; j < p.width; j++)
    for (int64_t r = rows; r % kNumbers<N>; r++) panel[j * p.height + r] = N{};
}
template <class N> TT_NOINLINE void write_panel(const Panel<N>& p, const N* panel) {
  N* a = p.a + p.at * p.row + p.at;
  for (int64_t r = 0; r < p.m - p.at; r++)
    for (int64_t j = 0; j < p.width; j++) a[r * p.row + j] = panel[j * p.height + r];
}

template <class N> void solve_triangle(const SolveRows<N>& p) {
  constexpr int64_t kTile = 1024 / int64_t(sizeof(N));  // columns that the first-level cache holds
  for (int64_t from = 0; from < p.k; from += kTile) {
    const int64_t to = min(from + kTile, p.k);
    for (int64_t s = 0; s < p.n; s++) {
      const int64_t i = p.lower ? s : p.n - 1 - s;
      const int64_t first = p.lower ? 0 : i + 1;
      N* row = p.b + i * p.row;
      read_column(p.a + i * p.a_row + first * p.a_column, p.a_column, s, 0, p.x);
      add_rows<N>(p.b + first * p.row, p.row, s, p.x, -1, from, to, row);
      if (!p.unit) divide(row + from, to - from, p.a[i * (p.a_row + p.a_column)]);
    }
  }
}

template <class N> void factor_panel(const Panel<N>& p) {
  const int64_t rows = p.m - p.at;
  N* factors = p.x;
  read_panel(p, p.panel);
  for (int64_t j = 0; j < p.width; j++) {
    N* column = p.panel + j * p.height;
    for (int64_t i = 0; i < j; i++) {
      N value = column[i];
      for (int64_t k = 0; k < i; k++) value = value - p.panel[k * p.height + i] * factors[k];
      factors[i] = value;
    }
    add_rows<N>(p.panel, p.height, j, factors, -1, j, rows, column);
    for (int64_t i = 0; i < j; i++) column[i] = factors[i];
    const int64_t best = largest_of(column, j, rows);
    p.pivots[p.at + j] = int32_t(p.at + best + 1);
    if (best != j) {
      for (int64_t k = 0; k < p.width; k++) {
        N* of_panel = p.panel + k * p.height;
        const N t = of_panel[j];
        of_panel[j] = of_panel[best];
        of_panel[best] = t;
      }
      swap_numbers(p.a + (p.at + j) * p.row, p.a + (p.at + best) * p.row, p.row);
    }
    const N pivot = column[j];
    if (is_zero(pivot)) *p.info = *p.info ? *p.info : int32_t(p.at + j + 1);
    else divide(column + j + 1, rows - j - 1, pivot);
  }
  write_panel(p, p.panel);
  // The rows right of it, of U; if the panel ends within a vector, there are no more.
  const int64_t end = p.at + p.width;
  const int64_t right = min(round_up(end, kNumbers<N>), p.n);
  N* first = p.a + p.at * p.row;
  for (int64_t i = 1; i < p.width; i++)
    for (int64_t j = 0; j < i; j++)
      for (int64_t c = end; c < right; c++) {
        N& x = first[i * p.row + c];
        x = x - p.panel[j * p.height + i] * first[j * p.row + c];
      }
  solve_triangle<N>({.n = p.width,
                     .k = p.n - right,
                     .a = p.panel,
                     .a_row = 1,
                     .a_column = p.height,
                     .b = first + right,
                     .row = p.row,
                     .lower = true,
                     .unit = true,
                     .x = factors});
}

template <class N> void reflect_panel(const Panel<N>& p) {
  const int64_t rows = p.m - p.at;
  N* panel = p.panel;
  read_panel(p, panel);
  for (int64_t j = 0; j < p.width; j++) {
    N* v = panel + j * p.height;
    N* top = p.x;
    N* along = p.x + p.width;
    RealOf<N> beta = 0;
    for (int64_t i = 0; i < j; i++) {
      top[i] = v[i];
      v[i] = N{};
    }
    const N tau = reflect(v + j, rows - j, &beta);
    p.tau[p.at + j] = tau;
    // a^H v of the columns a right of it
    times<N, kIsPair<N>>(v + p.height, p.height, p.width - j - 1, v, j, rows, along);
    for (int64_t k = j + 1; k < p.width; k++) {
      const N by = conj_of(tau * along[k - j - 1]);
      add_rows<N>(v, p.height, 1, &by, -1, j, rows, panel + k * p.height);
    }
    N* column = p.a + p.at * p.row + p.at + j;  // of R, and the vector below
    for (int64_t i = 0; i < rows; i++) {
      N value = v[i];
      if (i < j) value = top[i];
      if (i == j) value = from_real<N>(beta);
      column[i * p.row] = value;
    }
  }
}

TT_ISA_END

TT_ENTRY_BEGIN

#define TT_PANELS_OF(N)                                                  \
  void lu_panel(const Panel<N>& p) noexcept { factor_panel(p); }         \
  void solve_rows(const SolveRows<N>& p) noexcept { solve_triangle(p); } \
  void qr_panel(const Panel<N>& p) noexcept { reflect_panel(p); }        \
  void tridiagonal(const Condense<N>& p) noexcept { tridiagonal_panel(p); }
TT_PANELS_OF(float)
TT_PANELS_OF(double)
TT_PANELS_OF(ComplexNumber<float>)
TT_PANELS_OF(ComplexNumber<double>)
#undef TT_PANELS_OF
void bidiagonal(const Condense<float>& p) noexcept { bidiagonal_panel(p); }
void bidiagonal(const Condense<double>& p) noexcept { bidiagonal_panel(p); }

TT_ENTRY_END
