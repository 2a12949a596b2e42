// Panels of the reductions to tridiagonal and to bidiagonal form. The time is that of reading the
// matrix from the second-level cache once (symmetric) or twice for each column.
#include "plan/condense.h"

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
  const uint64_t exponent = __builtin_bit_cast(uint64_t, x) >> 52;
  return __builtin_bit_cast(double, (exponent > 2045 ? 1 : 2046 - exponent) << 52);
}

// Replaces x by v of the reflection that leaves beta in x[0] and zeros behind. Returns tau.
template <class T> TT_NOINLINE T reflect(T* x, int64_t n, T* beta) {
  double top = 0;
  for (int64_t i = 1; i < n; i++) top = max(top, __builtin_fabs(double(x[i])));
  *beta = x[0];
  x[0] = 1;
  if (top == 0) return 0;
  const double alpha = *beta;
  const double by = scale_of(max(top, __builtin_fabs(alpha)));
  double sum[8] = {alpha * by * (alpha * by)};
  for (int64_t i = 1; i < n; i++) {
    const double part = double(x[i]) * by;
    sum[i % 8] += part * part;
  }
  for (int i = 1; i < 8; i++) sum[0] += sum[i];
  const double norm = alpha < 0 ? __builtin_sqrt(sum[0]) : -__builtin_sqrt(sum[0]);
  const double factor = 1 / (alpha * by - norm);
  for (int64_t i = 1; i < n; i++) x[i] = T(double(x[i]) * by * factor);
  *beta = T(norm / by);
  return T((norm - alpha * by) / norm);
}

template <class T> TT_INLINE void scale(T* x, int64_t from, int64_t to, T by) {
  for (int64_t i = from; i < to; i++) x[i] *= by;
}
template <class T> TT_INLINE T dot(const T* x, const T* y, int64_t from, int64_t to) {
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
    __builtin_memcpy(v + i, p.a + i * row + i, size_t(n - i) * sizeof(T));
    read_column(v_panel, row, j, i, of_v);
    read_column(w_panel, row, j, i, of_w);
    add_rows<T>(v_panel, row, j, of_w, -1, i, n, v);
    add_rows<T>(w_panel, row, j, of_v, -1, i, n, v);
    p.d[i] = v[i];
    for (int64_t k = vector_start<T>(i); k <= i; k++) v[k] = 0;
    p.tau[i] = 0;
    if (i + 1 < n) {
      p.tau[i] = reflect(v + i + 1, n - i - 1, p.e + i);
      symmetric_times(p.a, row, v, i + 1, n, w);
      times(v_panel, row, j, v, i + 1, n, of_v);
      times(w_panel, row, j, v, i + 1, n, of_w);
      add_rows<T>(v_panel, row, j, of_w, -1, i + 1, n, w);
      add_rows<T>(w_panel, row, j, of_v, -1, i + 1, n, w);
      for (int64_t k = vector_start<T>(i + 1); k <= i; k++) w[k] = 0;
      scale(w, i + 1, n, p.tau[i]);
      const T half = T(-0.5) * p.tau[i] * dot(v, w, i + 1, n);
      add_rows<T>(v, row, 1, &half, 1, i + 1, n, w);
    }
    __builtin_memcpy(v_again + j * row, v, size_t(row) * sizeof(T));
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
    for (int64_t k = vector_start<T>(i); k < i; k++) v[k] = 0;
    p.tau[i] = reflect(v + i, m - i, p.d + i);
    p.tau_u[i] = 0;
    if (i + 1 >= n) continue;
    // y = tau a^T v of the updated a
    add_rows<T>(p.a + i * row, row, m - i, v + i, 1, i + 1, n, y);
    times(v_panel, height, j, v, i, m, first);
    times(x_panel, height, j, v, i, m, second);
    add_rows<T>(y_panel, row, j, first, -1, i + 1, n, y);
    add_rows<T>(u_panel, row, j, second, -1, i + 1, n, y);
    for (int64_t k = vector_start<T>(i + 1); k <= i; k++) y[k] = 0;
    scale(y, i + 1, n, p.tau[i]);
    // row i
    __builtin_memcpy(u + i + 1, p.a + i * row + i + 1, size_t(n - i - 1) * sizeof(T));
    read_column(v_panel, height, j + 1, i, first);
    read_column(x_panel, height, j, i, second);
    add_rows<T>(y_panel, row, j + 1, first, -1, i + 1, n, u);
    add_rows<T>(u_panel, row, j, second, -1, i + 1, n, u);
    for (int64_t k = vector_start<T>(i + 1); k <= i; k++) u[k] = 0;
    p.tau_u[i] = reflect(u + i + 1, n - i - 1, p.e + i);
    // x = tau a u
    times(p.a + (i + 1) * row, row, m - i - 1, u, i + 1, n, x + i + 1);
    times(y_panel, row, j + 1, u, i + 1, n, first);
    times(u_panel, row, j, u, i + 1, n, second);
    add_rows<T>(v_panel, height, j + 1, first, -1, i + 1, m, x);
    add_rows<T>(x_panel, height, j, second, -1, i + 1, m, x);
    for (int64_t k = vector_start<T>(i + 1); k <= i; k++) x[k] = 0;
    scale(x, i + 1, m, p.tau_u[i]);
  }
}

TT_ISA_END

TT_ENTRY_BEGIN

void tridiagonal(const Condense<float>& p) noexcept { tridiagonal_panel(p); }
void tridiagonal(const Condense<double>& p) noexcept { tridiagonal_panel(p); }
void bidiagonal(const Condense<float>& p) noexcept { bidiagonal_panel(p); }
void bidiagonal(const Condense<double>& p) noexcept { bidiagonal_panel(p); }

TT_ENTRY_END
