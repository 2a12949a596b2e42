#include "cpu/decompose.h"

#include "cpu/divide.h"
#include "cpu/product.h"
#include "plan/panels.h"

#include <string.h>

namespace TT_NS {

#define TT_DECLARE_PANELS(isa, T)                            \
  namespace isa {                                            \
  void lu_panel(const Panel<T>& p) noexcept;                 \
  void solve_rows(const SolveRows<T>& p) noexcept;           \
  void qr_panel(const Panel<T>& p) noexcept;                 \
  void tridiagonal(const Condense<T>& p) noexcept;           \
  void bidiagonal(const Condense<T>& p) noexcept;            \
  void secular_vectors(const SecularVectors<T>& p) noexcept; \
  }
#if TT_HAVE_AVX512
TT_DECLARE_PANELS(avx512, float)
TT_DECLARE_PANELS(avx512, double)
namespace avx512 {
void secular_roots(const Secular& p) noexcept;
void secular_weights(const Secular& p, double* z) noexcept;
}  // namespace avx512
#endif
#undef TT_DECLARE_PANELS

namespace {

template <class T> struct Kernels {
  void (*lu)(const Panel<T>&) noexcept;
  void (*solve)(const SolveRows<T>&) noexcept;
  void (*qr)(const Panel<T>&) noexcept;
  void (*tridiagonal)(const Condense<T>&) noexcept;
  void (*bidiagonal)(const Condense<T>&) noexcept;
  SecularKernels<T> secular;
};
// Other instruction sets have no kernels: OpenBLAS knows the processors that stop there.
template <class T> Kernels<T> kernels() noexcept {
#if TT_HAVE_AVX512
  if (Isa(ctx().isa) == kIsaAvx512)
    return {avx512::lu_panel,
            avx512::solve_rows,
            avx512::qr_panel,
            avx512::tridiagonal,
            avx512::bidiagonal,
            {avx512::secular_roots, avx512::secular_weights, avx512::secular_vectors}};
#endif
  return {};
}

constexpr int64_t kPanel = 32;        // columns that are reduced by products with vectors
constexpr int64_t kReflections = 64;  // that are applied together
constexpr int64_t kStrip = 128;       // rows of a triangle that are updated at a time

// A power of two that scales the largest of (rows, columns) numbers to about 1 where their squares
// or products could be out of range; 1 elsewhere.
template <class T> double range_scale(const T* a, int64_t n) {
  constexpr double kFar = sizeof(T) == 4 ? 0x1p40 : 0x1p300;
  T tops[4] = {};
  for (int64_t i = 0; i < n; i++) tops[i % 4] = max(tops[i % 4], T(libm::fabs(double(a[i]))));
  const double top = double(max(max(tops[0], tops[1]), max(tops[2], tops[3])));
  if (top == 0 || (top < kFar && top > 1 / kFar)) return 1;
  const uint64_t exponent = bit_cast<uint64_t>(top) >> 52;
  const uint64_t inverse =
      uint64_t(clamp(int64_t(2046) - int64_t(exponent), int64_t(1), int64_t(2046)));
  return bit_cast<double>(inverse << 52);
}
template <class T> TT_NOINLINE void multiply(T* a, int64_t n, double by) {
  for (int64_t i = 0; by != 1 && i < n; i++) a[i] = T(double(a[i]) * by);
}

constexpr int64_t kTile = 16;

template <class T>
void copy_rows(T* to, int64_t to_row, const T* from, int64_t row, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; i++)
    memcpy(to + i * to_row, from + i * row, size_t(columns) * sizeof(T));
}
// to (rows, columns) becomes the transpose of from.
template <class T> void transpose_rows(T* to, int64_t to_row, const T* from, int64_t row,
                                       int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; i += kTile)
    for (int64_t j = 0; j < columns; j++)
      for (int64_t k = i; k < min(i + kTile, rows); k++) to[k * to_row + j] = from[j * row + k];
}
// Fills a from rows of n numbers, of which one triangle is read.
template <class T> void fill_symmetric(T* a, int64_t row, const T* from, int64_t n, bool lower) {
  for (int64_t j0 = 0; j0 < n; j0 += kTile)
    for (int64_t i = j0; i < n; i++)
      for (int64_t j = j0; j < min(j0 + kTile, i + 1); j++) {
        const T value = lower ? from[i * n + j] : from[j * n + i];
        a[i * row + j] = value;
        a[j * row + i] = value;
      }
}

// Reflections i of `count`: I - tau[i] v v^T with v at row i of `vectors`, of `length` numbers, the
// first `shift` + i of which are 0.
template <class T> struct Reflections {
  const T* vectors;
  int64_t row, length, count, shift;
  const T* tau;
};

// The factor T of H_0 H_1 … = I - V^T T V, of reflections [at, at + width).
template <class T>
void block_factor(const Reflections<T>& r, int64_t at, int64_t width, T* gram, T* factor) {
  const Part v = {const_cast<T*>(r.vectors + at * r.row), width, r.length, r.row, 1};
  multiply_parts(kDtype<T>, {gram, width, width, kReflections, 1}, v, transposed(v), 1, false);
  for (int64_t j = 0; j < width; j++) {
    const T tau = r.tau[at + j];
    for (int64_t i = 0; i < kReflections; i++) factor[i * kReflections + j] = 0;
    factor[j * kReflections + j] = tau;
    for (int64_t i = 0; i < j; i++) {
      T sum = 0;
      for (int64_t k = i; k < j; k++)
        sum += factor[i * kReflections + k] * gram[k * kReflections + j];
      factor[i * kReflections + j] = -tau * sum;
    }
  }
}

// Rows of c, which are `row` apart, become those of (H_0 H_1 … c^T)^T.
template <class T> void reflect_rows(const Reflections<T>& r, T* c, int64_t rows, int64_t row) {
  const Numbers<T> gram(kReflections * kReflections);
  const Numbers<T> factor(kReflections * kReflections);
  const Numbers<T> along(rows * kReflections);
  const Numbers<T> turned(rows * kReflections);
  for (int64_t at = (r.count - 1) / kReflections * kReflections; at >= 0; at -= kReflections) {
    const int64_t width = min(kReflections, r.count - at);
    const int64_t from = at + r.shift;
    const int64_t length = r.length - from;
    if (length <= 0) continue;
    block_factor(r, at, width, gram.get(), factor.get());
    const Part v = {const_cast<T*>(r.vectors + at * r.row + from), width, length, r.row, 1};
    const Part changed = {c + from, rows, length, row, 1};
    const Part w = {along.get(), rows, width, kReflections, 1};
    const Part x = {turned.get(), rows, width, kReflections, 1};
    multiply_parts(kDtype<T>, w, changed, transposed(v), 1, false);
    multiply_parts(kDtype<T>, x, w, {factor.get(), width, width, 1, kReflections}, 1, false);
    multiply_parts(kDtype<T>, changed, x, v, -1, true);
  }
}

// ---- factors ----

// The height of a panel of LU or QR, padded: a multiple of 4096 bytes would use one set of a cache.
template <class T> int64_t panel_height(int64_t m) {
  return padded<T>(m) + kLine / int64_t(sizeof(T));
}

// The rows of a matrix (m, n), whole vectors each: its own, or copies that return.
template <class T> class Rows {
 public:
  Rows(T* a, int64_t m, int64_t n)
      : a_(a), m_(m), n_(n), row(padded<T>(n)), copy_(is_direct() ? 0 : m * row) {
    if (!is_direct()) copy_rows(copy_.get(), row, a, n, m, n);
  }
  T* get() const { return is_direct() ? a_ : copy_.get(); }
  void put_back() const {
    if (!is_direct()) copy_rows(a_, n_, copy_.get(), row, m_, n_);
  }

 private:
  bool is_direct() const { return row == n_ && uintptr_t(a_) % kLine == 0; }
  T* a_;
  int64_t m_, n_;

 public:
  const int64_t row;

 private:
  Numbers<T> copy_;
};

// What the panels of LU and QR factors leave: the pivots and info, or tau.
template <class T> struct Factors {
  void (*kernel)(const Panel<T>&) noexcept;
  int32_t *pivots, *info;
  T* tau;
};
// Factors the panels of a (m, n), and calls update(panel) for the columns right of each.
template <class T, class Update>
void factor_panels(int64_t m, int64_t n, T* a, const Factors<T>& of, const Update& update) {
  const Rows<T> rows(a, m, n);
  const int64_t height = panel_height<T>(m);
  const Numbers<T> panel(kPanel * height);
  const Numbers<T> factors(2 * kPanel);
  for (int64_t at = 0; at < min(m, n); at += kPanel) {
    const Panel<T> p = {.m = m,
                        .n = n,
                        .at = at,
                        .width = min(kPanel, min(m, n) - at),
                        .a = rows.get(),
                        .row = rows.row,
                        .panel = panel.get(),
                        .height = height,
                        .x = factors.get(),
                        .pivots = of.pivots,
                        .info = of.info,
                        .tau = of.tau};
    of.kernel(p);
    update(p);
  }
  rows.put_back();
}

template <class T> void lu_of(int64_t m, int64_t n, T* a, int32_t* pivots, int32_t* info) {
  *info = 0;
  factor_panels<T>(m, n, a, {kernels<T>().lu, pivots, info, nullptr}, [](const Panel<T>& p) {
    const int64_t from = p.at + p.width;
    T* const below = p.a + from * p.row;
    multiply_parts(kDtype<T>, {below + from, p.m - from, p.n - from, p.row, 1},
                   {below + p.at, p.m - from, p.width, p.row, 1},
                   {p.a + p.at * p.row + from, p.width, p.n - from, p.row, 1}, -1, true);
  });
}

// b becomes the solution of a X = b. Blocks of rows are solved one after the other; behind block i,
// the next s blocks lose what the last s contribute, s the largest power of two that divides i.
// `inverts`: b is the unit matrix, and the solution lower triangular.
template <class T> void solve_blocks(int64_t n, int64_t k, const Part& a, const Rows<T>& b,
                                     bool lower, bool unit, bool inverts) {
  const Numbers<T> factors(kPanel);
  const auto at = [&](int64_t i, int64_t j) {
    return static_cast<T*>(a.data) + i * a.row + j * a.column;
  };
  // The first of `count` rows, of which `before` are solved or will be.
  const auto start = [&](int64_t before, int64_t count) {
    return lower ? before : n - before - count;
  };
  for (int64_t i = 0; i * kPanel < n; i++) {
    const int64_t before = i * kPanel;
    const int64_t height = min(n - before, kPanel);
    const int64_t row = start(before, height);
    kernels<T>().solve({.n = height,
                        .k = inverts ? before + height : k,
                        .a = at(row, row),
                        .a_row = a.row,
                        .a_column = a.column,
                        .b = b.get() + row * b.row,
                        .row = b.row,
                        .lower = lower,
                        .unit = unit,
                        .x = factors.get()});
    const int64_t solved = before + height;
    const int64_t known = ((i + 1) & -(i + 1)) * kPanel;
    const int64_t next = min(n - solved, known);
    if (next <= 0) continue;
    const int64_t columns = inverts ? solved : k;
    const int64_t from = start(solved - known, known);
    const int64_t to = start(solved, next);
    multiply_parts(kDtype<T>, {b.get() + to * b.row, next, columns, b.row, 1},
                   {at(to, from), next, known, a.row, a.column},
                   {b.get() + from * b.row, known, columns, b.row, 1}, -1, true);
  }
}
template <class T>
void solve_of(int64_t n, int64_t k, const T* a, T* b, bool upper, bool adjoint, bool unit) {
  const Rows<T> rows(b, n, k);
  const Part matrix = {const_cast<T*>(a), n, n, n, 1};
  solve_blocks(n, k, adjoint ? transposed(matrix) : matrix, rows, upper == adjoint, unit, false);
  rows.put_back();
}
template <class T> void inverse_of(int64_t n, const T* lu, const int32_t* pivots, T* x) {
  memset(x, 0, size_t(n * n) * sizeof(T));
  for (int64_t i = 0; i < n; i++) x[i * n + i] = 1;
  const Part factors = {const_cast<T*>(lu), n, n, n, 1};
  const Rows<T> rows(x, n, n);
  solve_blocks(n, n, factors, rows, true, true, true);
  solve_blocks(n, n, factors, rows, false, false, false);
  rows.put_back();
  const Memory order(n * int64_t(sizeof(int64_t)));  // column i of the result is column order[i]
  int64_t* const from = order.as<int64_t>();
  for (int64_t i = 0; i < n; i++) from[i] = i;
  for (int64_t i = n - 1; i >= 0; i--) {
    const int64_t other = pivots[i] - 1;
    const int64_t t = from[i];
    from[i] = from[other];
    from[other] = t;
  }
  const Numbers<T> row(n);
  for (int64_t r = 0; r < n; r++) {
    for (int64_t i = 0; i < n; i++) row.get()[i] = x[r * n + from[i]];
    memcpy(x + r * n, row.get(), size_t(n) * sizeof(T));
  }
}

// c -= V^T T V c, or V^T T^T V c, for the reflections of a panel.
template <class T>
void reflect_columns(const Reflections<T>& r, const Part& c, bool adjoint, const Numbers<T>& work) {
  if (!c.columns) return;
  T* const gram = work.get();
  T* const factor = gram + kReflections * kReflections;
  T* const along = factor + kReflections * kReflections;
  T* const turned = along + kPanel * c.columns;
  block_factor(r, 0, r.count, gram, factor);
  const Part v = {const_cast<T*>(r.vectors), r.count, r.length, r.row, 1};
  const Part of_factor = {factor, r.count, r.count, kReflections, 1};
  const Part w = {along, r.count, c.columns, c.columns, 1};
  const Part x = {turned, r.count, c.columns, c.columns, 1};
  multiply_parts(kDtype<T>, w, v, c, 1, false);
  multiply_parts(kDtype<T>, x, adjoint ? transposed(of_factor) : of_factor, w, 1, false);
  multiply_parts(kDtype<T>, c, transposed(v), x, -1, true);
}
template <class T> int64_t reflect_room(int64_t n) {
  return 2 * kReflections * kReflections + 2 * kPanel * n;
}

template <class T> void qr_of(int64_t m, int64_t n, T* a, T* tau) {
  const Numbers<T> work(reflect_room<T>(n));
  factor_panels<T>(m, n, a, {kernels<T>().qr, nullptr, nullptr, tau}, [&](const Panel<T>& p) {
    T* const right = p.a + p.at * p.row + p.at + p.width;
    reflect_columns<T>({p.panel, p.height, p.m - p.at, p.width, 0, tau + p.at},
                       {right, p.m - p.at, p.n - p.at - p.width, p.row, 1}, true, work);
  });
}

template <class T> void q_of(int64_t m, int64_t n, int64_t k, const T* a, const T* tau, T* q) {
  const int64_t height = panel_height<T>(m);
  Numbers<T> panel(kPanel * height);
  const Numbers<T> work(reflect_room<T>(n));
  memset(q, 0, size_t(m * n) * sizeof(T));
  for (int64_t i = 0; i < min(m, n); i++) q[i * n + i] = 1;
  for (int64_t at = (k - 1) / kPanel * kPanel; at >= 0; at -= kPanel) {
    const int64_t width = min(kPanel, k - at);
    panel.clear();
    for (int64_t r = 0; r < m - at; r++)
      for (int64_t j = 0; j <= min(r, width - 1); j++)
        panel.get()[j * height + r] = r == j ? T(1) : a[(at + r) * n + at + j];
    reflect_columns<T>({panel.get(), height, m - at, width, 0, tau + at},
                       {q + at * n + at, m - at, n - at, n, 1}, false, work);
  }
}

// ---- symmetric matrices ----

template <class T> int64_t eigh_of(int64_t n, T* a, T* w, bool upper, bool vectors) {
  const int64_t row = padded<T>(n);
  Numbers<T> matrix(row * row);
  fill_symmetric(matrix.get(), row, a, n, upper);
  const double by = range_scale(matrix.get(), row * row);
  multiply(matrix.get(), row * row, by);
  const Numbers<T> reflectors(vectors ? n * row : 0);
  const Numbers<T> beside(n);
  const Numbers<T> tau(n);
  const Numbers<T> factors(2 * round_up(kPanel, kLine));
  Numbers<T> panels(3 * kPanel * row);
  for (int64_t at = 0; at < n; at += kPanel) {
    const int64_t width = min(kPanel, n - at);
    panels.clear();
    Condense<T> p = {};
    p.m = n;
    p.n = n;
    p.at = at;
    p.width = width;
    p.a = matrix.get();
    p.row = row;
    p.right = panels.get();
    p.d = w;
    p.e = beside.get();
    p.tau = tau.get();
    p.x = factors.get();
    kernels<T>().tridiagonal(p);
    if (vectors) memcpy(reflectors.get() + at * row, panels.get(), size_t(width * row) * sizeof(T));
    for (int64_t r = at + width; r < n; r += kStrip) {
      const int64_t rows = min(kStrip, n - r);
      const Part left = {panels.get() + r, rows, 2 * width, 1, row};
      const Part right = {panels.get() + width * row + r, 2 * width, n - r, row, 1};
      multiply_parts(kDtype<T>, {matrix.get() + r * row + r, rows, n - r, row, 1}, left, right, -1,
                     true);
    }
  }
  int64_t info = 0;
  if (vectors) {
    matrix.clear();
    divide_eigh<T>(kernels<T>().secular, n, w, beside.get(), {matrix.get(), row});
    reflect_rows<T>({reflectors.get(), row, n, n - 1, 1, tau.get()}, matrix.get(), n, row);
    copy_rows(a, n, matrix.get(), row, n, n);
  } else {
    info = lapack_tridiagonal_eigvalsh(kDtype<T>, n, w, beside.get());
  }
  multiply(w, n, 1 / by);
  return info;
}

// ---- singular values ----

// A matrix that reflections from both sides make bidiagonal, a panel of columns at a time.
template <class T> struct Bidiagonal {
  const int64_t m, n;  // m >= n
  const int64_t row, height;
  const bool keeps_reflectors;
  Numbers<T> beside;               // the diagonal above the main one
  Numbers<T> left, right;          // the reflectors, as rows, if they are kept
  Numbers<T> left_tau, right_tau;  // their factors

  Bidiagonal(int64_t rows, int64_t columns, bool keep)
      : m(rows),
        n(columns),
        row(padded<T>(columns)),
        height(padded<T>(rows)),
        keeps_reflectors(keep),
        beside(columns),
        left(keep ? columns * height : 0),
        right(keep ? columns * row : 0),
        left_tau(columns),
        right_tau(columns) {}

  // a [m][row] is overwritten; d gets the main diagonal.
  void reduce(T* a, T* d) {
    const Numbers<T> factors(2 * round_up(kPanel, kLine));
    Numbers<T> left_panels(2 * kPanel * height);
    Numbers<T> right_panels(2 * kPanel * row);
    for (int64_t at = 0; at < n; at += kPanel) {
      const int64_t width = min(kPanel, n - at);
      left_panels.clear();
      right_panels.clear();
      const Condense<T> p = {.m = m,
                             .n = n,
                             .at = at,
                             .width = width,
                             .a = a,
                             .row = row,
                             .height = height,
                             .left = left_panels.get(),
                             .right = right_panels.get(),
                             .d = d,
                             .e = beside.get(),
                             .tau = left_tau.get(),
                             .tau_u = right_tau.get(),
                             .x = factors.get()};
      kernels<T>().bidiagonal(p);
      if (keeps_reflectors) {
        memcpy(left.get() + at * height, p.left, size_t(width * height) * sizeof(T));
        memcpy(right.get() + at * row, p.right + width * row, size_t(width * row) * sizeof(T));
      }
      const int64_t from = at + width;
      multiply_parts(kDtype<T>, {a + from * row + from, m - from, n - from, row, 1},
                     {p.left + from, m - from, 2 * width, 1, height},
                     {p.right + from, 2 * width, n - from, row, 1}, -1, true);
    }
  }
};

// Without vectors, u and vt are NULL.
template <class T> int64_t svd_of(int64_t m, int64_t n, const T* a, T* u, T* s, T* vt) {
  const bool wide = m < n;
  const int64_t k = min(m, n);
  const double by = range_scale(a, m * n);
  Bidiagonal<T> b(max(m, n), k, u);
  const Numbers<T> matrix(b.height * b.row);
  if (wide) transpose_rows(matrix.get(), b.row, a, n, n, m);
  else copy_rows(matrix.get(), b.row, a, n, m, n);
  multiply(matrix.get(), b.height * b.row, by);
  b.reduce(matrix.get(), s);
  if (!u) {
    const Numbers<T> work(4 * k);
    const int64_t info = lapack_bidiagonal_svdvals(kDtype<T>, k, s, b.beside.get(), work.get());
    multiply(s, k, 1 / by);
    return info;
  }
  // The rows of the long factor and of the short one, transposed.
  const Numbers<T> long_rows(k * b.height);
  const Numbers<T> short_rows(k * b.row);
  divide_svd<T>(kernels<T>().secular, k, s, b.beside.get(), {long_rows.get(), b.height},
                {short_rows.get(), b.row});
  multiply(s, k, 1 / by);
  reflect_rows<T>({b.left.get(), b.height, b.m, k, 0, b.left_tau.get()}, long_rows.get(), k,
                  b.height);
  reflect_rows<T>({b.right.get(), b.row, k, k - 1, 1, b.right_tau.get()}, short_rows.get(), k,
                  b.row);
  const T* const u_rows = wide ? short_rows.get() : long_rows.get();
  const T* const v_rows = wide ? long_rows.get() : short_rows.get();
  transpose_rows(u, k, u_rows, wide ? b.row : b.height, m, k);
  copy_rows(vt, n, v_rows, wide ? b.height : b.row, k, n);
  return 0;
}

}  // namespace

bool decomposes(Dtype d) noexcept {
  return (d == Dtype::kF32 || d == Dtype::kF64) && kernels<float>().lu;
}
void own_lu(Dtype d, int64_t m, int64_t n, void* a, int32_t* pivots, int32_t* info) {
  if (d == Dtype::kF32) lu_of(m, n, static_cast<float*>(a), pivots, info);
  else lu_of(m, n, static_cast<double*>(a), pivots, info);
}
void own_solve_triangular(Dtype d, int64_t n, int64_t k, const void* a, void* b, bool upper,
                          bool adjoint, bool unit) {
  if (d == Dtype::kF32)
    solve_of(n, k, static_cast<const float*>(a), static_cast<float*>(b), upper, adjoint, unit);
  else solve_of(n, k, static_cast<const double*>(a), static_cast<double*>(b), upper, adjoint, unit);
}
void own_inverse(Dtype d, int64_t n, const void* lu, const int32_t* pivots, void* x) {
  if (d == Dtype::kF32)
    inverse_of(n, static_cast<const float*>(lu), pivots, static_cast<float*>(x));
  else inverse_of(n, static_cast<const double*>(lu), pivots, static_cast<double*>(x));
}
void own_qr(Dtype d, int64_t m, int64_t n, void* a, void* tau) {
  if (d == Dtype::kF32) qr_of(m, n, static_cast<float*>(a), static_cast<float*>(tau));
  else qr_of(m, n, static_cast<double*>(a), static_cast<double*>(tau));
}
void own_q(Dtype d, int64_t m, int64_t n, int64_t k, const void* a, const void* tau, void* q) {
  if (d == Dtype::kF32)
    q_of(m, n, k, static_cast<const float*>(a), static_cast<const float*>(tau),
         static_cast<float*>(q));
  else
    q_of(m, n, k, static_cast<const double*>(a), static_cast<const double*>(tau),
         static_cast<double*>(q));
}
int64_t own_eigh(Dtype d, int64_t n, void* a, void* w, bool upper, bool vectors) {
  if (d == Dtype::kF32)
    return eigh_of(n, static_cast<float*>(a), static_cast<float*>(w), upper, vectors);
  return eigh_of(n, static_cast<double*>(a), static_cast<double*>(w), upper, vectors);
}
int64_t own_svdvals(Dtype d, int64_t m, int64_t n, const void* a, void* s) {
  if (d == Dtype::kF32)
    return svd_of<float>(m, n, static_cast<const float*>(a), nullptr, static_cast<float*>(s),
                         nullptr);
  return svd_of<double>(m, n, static_cast<const double*>(a), nullptr, static_cast<double*>(s),
                        nullptr);
}
void own_svd(Dtype d, int64_t m, int64_t n, const void* a, void* u, void* s, void* vt) {
  if (d == Dtype::kF32)
    svd_of(m, n, static_cast<const float*>(a), static_cast<float*>(u), static_cast<float*>(s),
           static_cast<float*>(vt));
  else
    svd_of(m, n, static_cast<const double*>(a), static_cast<double*>(u), static_cast<double*>(s),
           static_cast<double*>(vt));
}

}  // namespace TT_NS
