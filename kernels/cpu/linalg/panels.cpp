// Panels of columns of large real matrices: of LU and QR factors, and of the reductions to
// tridiagonal and to bidiagonal form, whose time is that of reading the matrix from the
// second-level cache once (symmetric) or twice for each column.
#include "plan/panels.h"

#include "kernels/cpu/simd/isa.h"

#include "kernels/cpu/simd/vec.h"

TT_ISA_BEGIN

// Rows that are read at a time.
template <class T> constexpr int kGroup = TT_VEC_BYTES == 64 ? 8 : 4;

template <class T> TT_INLINE T lane_sum(Vec<T> v) {
  T two[2];
  fold_lanes<T, kLanes<T>>(v, two, [](auto x, auto y) { return x + y; });
  return two[0] + two[1];
}
// The start of the vector that holds element i.
template <class T> TT_INLINE int64_t vector_start(int64_t i) { return i - i % kLanes<T>; }

// out[r] = the dot product of row r of a and x, over columns [from, to).
template <class T, int kRows>
TT_INLINE void dot_rows(const T* a, int64_t row, const T* x, int64_t from, int64_t to, T* out) {
  Vec<T> sum[kRows];
  TT_UNROLL
  for (int r = 0; r < kRows; r++) sum[r] = Vec<T>{};
  for (int64_t c = from; c < to; c += kLanes<T>) {
    const Vec<T> v = load(x + c);
    TT_UNROLL
    for (int r = 0; r < kRows; r++) sum[r] = fma(load(a + r * row + c), v, sum[r]);
  }
  TT_UNROLL
  for (int r = 0; r < kRows; r++) out[r] = lane_sum<T>(sum[r]);
}
template <class T> TT_NOINLINE void times(const T* a, int64_t row, int64_t rows, const T* x,
                                          int64_t from, int64_t to, T* out) {
  from = vector_start<T>(from);
  int64_t r = 0;
  for (; r + kGroup<T> <= rows; r += kGroup<T>)
    dot_rows<T, kGroup<T>>(a + r * row, row, x, from, to, out + r);
  for (; r < rows; r++) dot_rows<T, 1>(a + r * row, row, x, from, to, out + r);
}

// y += the sum of factor[r] times row r of a, over columns [from, to).
template <class T, int kRows> TT_INLINE void add_group(const T* a, int64_t row, const T* factor,
                                                       T sign, int64_t from, int64_t to, T* y) {
  Vec<T> by[kRows];
  TT_UNROLL
  for (int r = 0; r < kRows; r++) by[r] = splat(sign * factor[r]);
  for (int64_t c = from; c < to; c += kLanes<T>) {
    Vec<T> sum = load(y + c);
    TT_UNROLL
    for (int r = 0; r < kRows; r++) sum = fma(load(a + r * row + c), by[r], sum);
    store(y + c, sum);
  }
}
template <class T> TT_NOINLINE void add_rows(const T* a, int64_t row, int64_t rows, const T* factor,
                                             T sign, int64_t from, int64_t to, T* y) {
  from = vector_start<T>(from);
  int64_t r = 0;
  for (; r + kGroup<T> <= rows; r += kGroup<T>)
    add_group<T, kGroup<T>>(a + r * row, row, factor + r, sign, from, to, y);
  for (; r < rows; r++) add_group<T, 1>(a + r * row, row, factor + r, sign, from, to, y);
}

// y = a x for a symmetric matrix of which the triangle right of the diagonal is read, whole vectors
// of rows at the diagonal; rows and columns [from, to). Each element is read once.
template <class T> TT_NOINLINE void symmetric_times(const T* a, int64_t row, const T* x,
                                                    int64_t from, int64_t to, T* y) {
  constexpr int kL = kLanes<T>;
  constexpr int kRows = TT_NS::min(kGroup<T>, kL);
  from = vector_start<T>(from);
  for (int64_t c = from; c < to; c += kL) store(y + c, Vec<T>{});
  for (int64_t r = from; r < to; r += kRows) {
    Vec<T> sum[kRows];
    Vec<T> by[kRows];
    const int64_t corner = vector_start<T>(r);
    const Vec<T> first = load(x + corner);
    TT_UNROLL
    for (int i = 0; i < kRows; i++) {
      sum[i] = load(a + (r + i) * row + corner) * first;
      by[i] = splat(x[r + i]);
    }
    for (int64_t c = corner + kL; c < to; c += kL) {
      const Vec<T> v = load(x + c);
      Vec<T> below = load(y + c);
      TT_UNROLL
      for (int i = 0; i < kRows; i++) {
        const Vec<T> part = load(a + (r + i) * row + c);
        sum[i] = fma(part, v, sum[i]);
        below = fma(part, by[i], below);
      }
      store(y + c, below);
    }
    TT_UNROLL
    for (int i = 0; i < kRows; i++) y[r + i] += lane_sum<T>(sum[i]);
  }
}

// A power of two that scales x > 0 to about 1.
inline double scale_of(double x) {
  const uint64_t exponent = bit_cast<uint64_t>(x) >> 52;
  return bit_cast<double>((exponent > 2045 ? 1 : 2046 - exponent) << 52);
}

// Replaces x by v of the reflection that leaves beta in x[0] and zeros behind. Returns tau.
template <class T> TT_NOINLINE T reflect(T* x, int64_t n, T* beta) {
  double top = 0;
  for (int64_t i = 1; i < n; i++) top = max(top, libm::fabs(double(x[i])));
  *beta = x[0];
  x[0] = 1;
  if (top == 0) return 0;
  const double alpha = *beta;
  const double by = scale_of(max(top, libm::fabs(alpha)));
  double sum[8] = {alpha * by * (alpha * by)};
  for (int64_t i = 1; i < n; i++) {
    const double part = double(x[i]) * by;
    sum[i % 8] += part * part;
  }
  for (int i = 1; i < 8; i++) sum[0] += sum[i];
  const double norm = alpha < 0 ? libm::sqrt(sum[0]) : -libm::sqrt(sum[0]);
  const double factor = 1 / (alpha * by - norm);
  for (int64_t i = 1; i < n; i++) x[i] = T(double(x[i]) * by * factor);
  *beta = T(norm / by);
  return T((norm - alpha * by) / norm);
}

// Clears the elements before `to` in the vector that holds i.
template <class T> TT_NOINLINE void clear_to(T* x, int64_t i, int64_t to) {
  for (int64_t k = vector_start<T>(i); k < to; k++) x[k] = 0;
}
template <class T> TT_NOINLINE void divide(T* x, int64_t n, T by) {
  for (int64_t i = 0; i < n; i++) x[i] /= by;
}
template <class T> TT_NOINLINE void scale(T* x, int64_t from, int64_t to, T by) {
  for (int64_t i = from; i < to; i++) x[i] *= by;
}
template <class T> TT_NOINLINE T dot(const T* x, const T* y, int64_t from, int64_t to) {
  T sum;
  dot_rows<T, 1>(x, 0, y, vector_start<T>(from), to, &sum);
  return sum;
}

// Factors of the rows of two panels: their elements in one column.
template <class T>
TT_INLINE void read_column(const T* panel, int64_t row, int64_t count, int64_t column, T* out) {
  for (int64_t r = 0; r < count; r++) out[r] = panel[r * row + column];
}

template <class T> void tridiagonal_panel(const Condense<T>& p) {
  const int64_t n = p.n;
  const int64_t row = p.row;
  T* v_panel = p.right;
  T* w_panel = v_panel + p.width * row;
  T* v_again = w_panel + p.width * row;
  T* of_v = p.x;
  T* of_w = p.x + round_up(p.width, kLanes<T>);
  for (int64_t j = 0; j < p.width; j++) {
    const int64_t i = p.at + j;
    T* v = v_panel + j * row;
    T* w = w_panel + j * row;
    memcpy(v + i, p.a + i * row + i, size_t(n - i) * sizeof(T));
    read_column(v_panel, row, j, i, of_v);
    read_column(w_panel, row, j, i, of_w);
    add_rows<T>(v_panel, row, j, of_w, -1, i, n, v);
    add_rows<T>(w_panel, row, j, of_v, -1, i, n, v);
    p.d[i] = v[i];
    clear_to(v, i, i + 1);
    p.tau[i] = 0;
    if (i + 1 < n) {
      p.tau[i] = reflect(v + i + 1, n - i - 1, p.e + i);
      symmetric_times(p.a, row, v, i + 1, n, w);
      times(v_panel, row, j, v, i + 1, n, of_v);
      times(w_panel, row, j, v, i + 1, n, of_w);
      add_rows<T>(v_panel, row, j, of_w, -1, i + 1, n, w);
      add_rows<T>(w_panel, row, j, of_v, -1, i + 1, n, w);
      clear_to(w, i + 1, i + 1);
      scale(w, i + 1, n, p.tau[i]);
      const T half = T(-0.5) * p.tau[i] * dot(v, w, i + 1, n);
      add_rows<T>(v, row, 1, &half, 1, i + 1, n, w);
    }
    memcpy(v_again + j * row, v, size_t(row) * sizeof(T));
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

// The column of the largest absolute value of row[from, to), the first of equals.
template <class T> TT_NOINLINE int64_t largest_of(const T* row, int64_t from, int64_t to) {
  T tops[16] = {};
  int64_t i = from;
  for (; i + 16 <= to; i += 16)
    for (int k = 0; k < 16; k++) tops[k] = max(tops[k], row[i + k] < 0 ? -row[i + k] : row[i + k]);
  for (; i < to; i++) tops[0] = max(tops[0], row[i] < 0 ? -row[i] : row[i]);
  for (int k = 1; k < 16; k++) tops[0] = max(tops[0], tops[k]);
  for (i = from; i < to; i++)
    if (row[i] == tops[0] || row[i] == -tops[0]) return i;
  return from;
}
template <class T> TT_NOINLINE void swap_numbers(T* x, T* y, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const T t = x[i];
    x[i] = y[i];
    y[i] = t;
  }
}
// The panel's columns as rows, and back.
template <class T> TT_NOINLINE void read_panel(const Panel<T>& p, T* panel) {
  const T* a = p.a + p.at * p.row + p.at;
  for (int64_t r = 0; r < p.m - p.at; r++)
    for (int64_t j = 0; j < p.width; j++) panel[j * p.height + r] = a[r * p.row + j];
  const int64_t rows = p.m - p.at;
  for (int64_t j = 0; j < p.width; j++)
    for (int64_t r = rows; r % kLanes<T>; r++) panel[j * p.height + r] = 0;
}
template <class T> TT_NOINLINE void write_panel(const Panel<T>& p, const T* panel) {
  T* a = p.a + p.at * p.row + p.at;
  for (int64_t r = 0; r < p.m - p.at; r++)
    for (int64_t j = 0; j < p.width; j++) a[r * p.row + j] = panel[j * p.height + r];
}

template <class T> void solve_triangle(const SolveRows<T>& p) {
  constexpr int64_t kTile = 1024 / int64_t(sizeof(T));  // columns that the first-level cache holds
  for (int64_t from = 0; from < p.k; from += kTile) {
    const int64_t to = min(from + kTile, p.k);
    for (int64_t s = 0; s < p.n; s++) {
      const int64_t i = p.lower ? s : p.n - 1 - s;
      const int64_t first = p.lower ? 0 : i + 1;
      T* row = p.b + i * p.row;
      read_column(p.a + i * p.a_row + first * p.a_column, p.a_column, s, 0, p.x);
      add_rows<T>(p.b + first * p.row, p.row, s, p.x, -1, from, to, row);
      const T corner = p.a[i * (p.a_row + p.a_column)];
      if (p.unit) continue;
      divide(row + from, to - from, corner);
    }
  }
}

template <class T> void factor_panel(const Panel<T>& p) {
  const int64_t rows = p.m - p.at;
  T* factors = p.x;
  read_panel(p, p.panel);
  for (int64_t j = 0; j < p.width; j++) {
    T* column = p.panel + j * p.height;
    for (int64_t i = 0; i < j; i++) {
      T value = column[i];
      for (int64_t k = 0; k < i; k++) value -= p.panel[k * p.height + i] * factors[k];
      factors[i] = value;
    }
    add_rows<T>(p.panel, p.height, j, factors, -1, j, rows, column);
    for (int64_t i = 0; i < j; i++) column[i] = factors[i];
    const int64_t best = largest_of(column, j, rows);
    p.pivots[p.at + j] = int32_t(p.at + best + 1);
    if (best != j) {
      for (int64_t k = 0; k < p.width; k++) {
        T* of_panel = p.panel + k * p.height;
        const T t = of_panel[j];
        of_panel[j] = of_panel[best];
        of_panel[best] = t;
      }
      swap_numbers(p.a + (p.at + j) * p.row, p.a + (p.at + best) * p.row, p.row);
    }
    const T pivot = column[j];
    if (pivot == 0) *p.info = *p.info ? *p.info : int32_t(p.at + j + 1);
    else divide(column + j + 1, rows - j - 1, pivot);
  }
  write_panel(p, p.panel);
  // The rows right of it, of U; if the panel ends within a vector, there are no more.
  const int64_t end = p.at + p.width;
  const int64_t right = min(round_up(end, kLanes<T>), p.n);
  T* first = p.a + p.at * p.row;
  for (int64_t i = 1; i < p.width; i++)
    for (int64_t j = 0; j < i; j++)
      for (int64_t c = end; c < right; c++)
        first[i * p.row + c] -= p.panel[j * p.height + i] * first[j * p.row + c];
  solve_triangle<T>({.n = p.width,
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

template <class T> void reflect_panel(const Panel<T>& p) {
  const int64_t rows = p.m - p.at;
  T* panel = p.panel;
  read_panel(p, panel);
  for (int64_t j = 0; j < p.width; j++) {
    T* v = panel + j * p.height;
    T* top = p.x;
    T* along = p.x + p.width;
    T beta = 0;
    for (int64_t i = 0; i < j; i++) {
      top[i] = v[i];
      v[i] = 0;
    }
    const T tau = reflect(v + j, rows - j, &beta);
    p.tau[p.at + j] = tau;
    times(v + p.height, p.height, p.width - j - 1, v, j, rows, along);
    for (int64_t k = j + 1; k < p.width; k++) {
      const T by = tau * along[k - j - 1];
      add_rows<T>(v, p.height, 1, &by, -1, j, rows, panel + k * p.height);
    }
    T* column = p.a + p.at * p.row + p.at + j;  // of R, and the vector below
    for (int64_t i = 0; i < rows; i++) {
      T value = v[i];
      if (i < j) value = top[i];
      if (i == j) value = beta;
      column[i * p.row] = value;
    }
  }
}

TT_ISA_END

TT_ENTRY_BEGIN

void lu_panel(const Panel<float>& p) noexcept { factor_panel(p); }
void lu_panel(const Panel<double>& p) noexcept { factor_panel(p); }
void solve_rows(const SolveRows<float>& p) noexcept { solve_triangle(p); }
void solve_rows(const SolveRows<double>& p) noexcept { solve_triangle(p); }
void qr_panel(const Panel<float>& p) noexcept { reflect_panel(p); }
void qr_panel(const Panel<double>& p) noexcept { reflect_panel(p); }
void tridiagonal(const Condense<float>& p) noexcept { tridiagonal_panel(p); }
void tridiagonal(const Condense<double>& p) noexcept { tridiagonal_panel(p); }
void bidiagonal(const Condense<float>& p) noexcept { bidiagonal_panel(p); }
void bidiagonal(const Condense<double>& p) noexcept { bidiagonal_panel(p); }

TT_ENTRY_END
