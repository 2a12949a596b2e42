#include "cpu/decompose.h"

#include "cpu/divide.h"
#include "cpu/product.h"
#include "plan/panels.h"

#include <string.h>

namespace TT_NS {

#define TT_DECLARE_PANELS(isa, N)                  \
  namespace isa {                                  \
  void lu_panel(const Panel<N>& p) noexcept;       \
  void solve_rows(const SolveRows<N>& p) noexcept; \
  void qr_panel(const Panel<N>& p) noexcept;       \
  void tridiagonal(const Condense<N>& p) noexcept; \
  }
#define TT_DECLARE_REAL_PANELS(isa, T)                       \
  TT_DECLARE_PANELS(isa, T)                                  \
  namespace isa {                                            \
  void bidiagonal(const Condense<T>& p) noexcept;            \
  void secular_vectors(const SecularVectors<T>& p) noexcept; \
  }
#if TT_HAVE_AVX512
TT_DECLARE_REAL_PANELS(avx512, float)
TT_DECLARE_REAL_PANELS(avx512, double)
TT_DECLARE_PANELS(avx512, ComplexNumber<float>)
TT_DECLARE_PANELS(avx512, ComplexNumber<double>)
namespace avx512 {
void secular_roots(const Secular& p) noexcept;
void secular_weights(const Secular& p, double* z) noexcept;
}  // namespace avx512
#endif
#undef TT_DECLARE_REAL_PANELS
#undef TT_DECLARE_PANELS

namespace {

template <class N> struct Kernels {
  void (*lu)(const Panel<N>&) noexcept;
  void (*solve)(const SolveRows<N>&) noexcept;
  void (*qr)(const Panel<N>&) noexcept;
  void (*tridiagonal)(const Condense<N>&) noexcept;
};
template <class T> struct RealKernels {
  void (*bidiagonal)(const Condense<T>&) noexcept;
  SecularKernels<T> secular;
};
bool has_kernels() noexcept { return TT_HAVE_AVX512 && Isa(ctx().isa) == kIsaAvx512; }
// Other instruction sets have no kernels: OpenBLAS knows the processors that stop there.
template <class N> Kernels<N> kernels() noexcept {
#if TT_HAVE_AVX512
  if (has_kernels())
    return {avx512::lu_panel, avx512::solve_rows, avx512::qr_panel, avx512::tridiagonal};
#endif
  return {};
}
template <class T> RealKernels<T> real_kernels() noexcept {
#if TT_HAVE_AVX512
  if (has_kernels())
    return {avx512::bidiagonal,
            {avx512::secular_roots, avx512::secular_weights, avx512::secular_vectors}};
#endif
  return {};
}

template <class N> void conjugate(N* a, int64_t n) {
  for (int64_t i = 0; kParts<N> == 2 && i < n; i++) a[i] = conj_of(a[i]);
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

// The distance between rows of n numbers: whole vectors, but no multiple of 2048 bytes, whose rows
// would share few sets of a cache.
template <class N> int64_t row_length(int64_t n) {
  const int64_t length = padded<N>(n);
  return length * int64_t(sizeof(N)) % 2048 ? length : length + kLine / int64_t(sizeof(N));
}
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
template <class T> void reverse(T* a, int64_t n) {
  for (int64_t i = 0; i < n / 2; i++) {
    const T x = a[i];
    a[i] = a[n - 1 - i];
    a[n - 1 - i] = x;
  }
}
// Fills a from columns of n numbers, of which one triangle is read; with rows and columns in
// reverse order if that is the upper one, which LAPACK reduces from its last row.
template <class N> void fill_hermitian(N* a, int64_t row, const N* from, int64_t n, bool upper) {
  for (int64_t j0 = 0; j0 < n; j0 += kTile)
    for (int64_t i = j0; i < n; i++)
      for (int64_t j = j0; j < min(j0 + kTile, i + 1); j++) {
        const int64_t at = j * n + i;
        const N value = from[upper ? n * n - 1 - at : at];
        a[i * row + j] = i == j ? from_real<N>(real_part(value)) : value;
        a[j * row + i] = conj_of(a[i * row + j]);
      }
}

// Reflections i of `count`: I - tau[i] v v^H with v at row i of `vectors`, of `length` numbers, the
// first `shift` + i of which are 0.
template <class N> struct Reflections {
  const N* vectors;
  int64_t row, length, count, shift;
  const N* tau;
};

// What some of the reflections, the rows V, are as a block: H_0 H_1 … = I - V^T T conj(V).
template <class N> class Block {
 public:
  explicit Block(int64_t length)
      : gram_(kReflections * kReflections),
        factor_(kReflections * kReflections),
        product_(kReflections * kReflections / 4),
        conj_(kParts<N> == 2 ? kReflections * row_length<N>(length) : 0) {}

  // Reflections [at, at + width); `from`: the first column that is not 0.
  void set(const Reflections<N>& r, int64_t at, int64_t width, int64_t from) {
    N* const first = const_cast<N*>(r.vectors + at * r.row + from);
    const int64_t length = r.length - from;
    v = {first, width, length, r.row, 1};
    v_conj = v;
    if (kParts<N> == 2) {
      const int64_t row = row_length<N>(length);
      copy_rows(conj_.get(), row, first, r.row, width, length);
      conjugate(conj_.get(), width * row);
      v_conj = {conj_.get(), width, length, row, 1};
    }
    multiply_parts(kDtype<N>, {gram_.get(), width, width, kReflections, 1}, v_conj, transposed(v),
                   1, false);
    set_factor(r.tau + at, width);
  }
  // Makes T its adjoint.
  void adjoin() {
    conjugate(factor_.get(), kReflections * kReflections);
    factor = transposed(factor);
  }

  Part v, v_conj, factor;

 private:
  // T of few reflections, from `at` on: column j is -tau[j] T V conj(v_j).
  void set_few(const N* taus, int64_t at, int64_t width) {
    N* const t = factor_.get();
    const N* const gram = gram_.get();
    for (int64_t j = at; j < at + width; j++) {
      t[j * kReflections + j] = taus[j];
      for (int64_t i = at; i < j; i++) {
        N sum = {};
        for (int64_t k = i; k < j; k++)
          sum = sum + t[i * kReflections + k] * gram[k * kReflections + j];
        t[i * kReflections + j] = -(taus[j] * sum);
      }
    }
  }
  Part part_of(const Numbers<N>& a, int64_t i, int64_t j, int64_t rows, int64_t columns) const {
    return {a.get() + i * kReflections + j, rows, columns, kReflections, 1};
  }
  // From T and S of two halves: T, -T G S beside it, and S below, G their part of the products.
  void set_part(const N* taus, int64_t at, int64_t width) {
    if (width <= kFew) return set_few(taus, at, width);
    const int64_t half = round_up(width / 2, kFew);
    const int64_t middle = at + half;
    const int64_t rest = width - half;
    set_part(taus, at, half);
    set_part(taus, middle, rest);
    const Part product = {product_.get(), half, rest, kReflections / 2, 1};
    multiply_parts(kDtype<N>, product, part_of(gram_, at, middle, half, rest),
                   part_of(factor_, middle, middle, rest, rest), 1, false);
    multiply_parts(kDtype<N>, part_of(factor_, at, middle, half, rest),
                   part_of(factor_, at, at, half, half), product, -1, false);
  }
  void set_factor(const N* taus, int64_t width) {
    set_part(taus, 0, width);
    factor = part_of(factor_, 0, 0, width, width);
  }

  static constexpr int64_t kFew = 16;

  const Numbers<N> gram_, factor_, product_, conj_;
};

// Rows of c, which are `row` apart, become those of (H_0 H_1 … c^T)^T.
template <class N> void reflect_rows(const Reflections<N>& r, N* c, int64_t rows, int64_t row) {
  Block<N> block(r.length);
  const Numbers<N> along(rows * kReflections);
  const Numbers<N> turned(rows * kReflections);
  for (int64_t at = (r.count - 1) / kReflections * kReflections; at >= 0; at -= kReflections) {
    const int64_t width = min(kReflections, r.count - at);
    const int64_t from = at + r.shift;
    if (from >= r.length) continue;
    block.set(r, at, width, from);
    const Part changed = {c + from, rows, r.length - from, row, 1};
    const Part w = {along.get(), rows, width, kReflections, 1};
    const Part x = {turned.get(), rows, width, kReflections, 1};
    multiply_parts(kDtype<N>, w, changed, transposed(block.v_conj), 1, false);
    multiply_parts(kDtype<N>, x, w, transposed(block.factor), 1, false);
    multiply_parts(kDtype<N>, changed, x, block.v, -1, true);
  }
}

// ---- factors ----

// The rows of a matrix (m, n), of row_length(n): its own, or copies that return.
template <class N> class Rows {
 public:
  const int64_t row;  // from a row to the next

  Rows(N* a, int64_t m, int64_t n)
      : row(row_length<N>(n)), a_(a), m_(m), n_(n), copy_(is_direct() ? 0 : m * row) {
    if (!is_direct()) copy_rows(copy_.get(), row, a, n, m, n);
  }
  N* get() const { return is_direct() ? a_ : copy_.get(); }
  void put_back() const {
    if (!is_direct()) copy_rows(a_, n_, copy_.get(), row, m_, n_);
  }

 private:
  bool is_direct() const { return row == n_ && uintptr_t(a_) % kLine == 0; }

  N* a_;
  int64_t m_, n_;
  Numbers<N> copy_;
};

// What the panels of LU and QR factors leave: the pivots and info, or tau.
template <class N> struct Factors {
  void (*kernel)(const Panel<N>&) noexcept;
  int32_t *pivots, *info;
  N* tau;
};
// Factors the panels of a (m, n), and calls update(panel) for the columns right of each.
template <class N, class Update>
void factor_panels(int64_t m, int64_t n, N* a, const Factors<N>& of, const Update& update) {
  const Rows<N> rows(a, m, n);
  const int64_t height = row_length<N>(m);
  const Numbers<N> panel(kPanel * height);
  const Numbers<N> factors(2 * kPanel);
  for (int64_t at = 0; at < min(m, n); at += kPanel) {
    const Panel<N> p = {.m = m,
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

template <class N> void lu_of(int64_t m, int64_t n, N* a, int32_t* pivots, int32_t* info) {
  *info = 0;
  factor_panels<N>(m, n, a, {kernels<N>().lu, pivots, info, nullptr}, [](const Panel<N>& p) {
    const int64_t from = p.at + p.width;
    N* const below = p.a + from * p.row;
    multiply_parts(kDtype<N>, {below + from, p.m - from, p.n - from, p.row, 1},
                   {below + p.at, p.m - from, p.width, p.row, 1},
                   {p.a + p.at * p.row + from, p.width, p.n - from, p.row, 1}, -1, true);
  });
}

// b becomes the solution of a X = b. Blocks of rows are solved one after the other; behind block i,
// the next s blocks lose what the last s contribute, s the largest power of two that divides i.
// `inverts`: b is the unit matrix, and the solution lower triangular.
template <class N> void solve_blocks(int64_t n, int64_t k, const Part& a, const Rows<N>& b,
                                     bool lower, bool unit, bool inverts) {
  const Numbers<N> factors(kPanel);
  const auto at = [&](int64_t i, int64_t j) {
    return static_cast<N*>(a.data) + i * a.row + j * a.column;
  };
  // The first of `count` rows, of which `before` are solved or will be.
  const auto start = [&](int64_t before, int64_t count) {
    return lower ? before : n - before - count;
  };
  for (int64_t i = 0; i * kPanel < n; i++) {
    const int64_t before = i * kPanel;
    const int64_t height = min(n - before, kPanel);
    const int64_t row = start(before, height);
    kernels<N>().solve({.n = height,
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
    multiply_parts(kDtype<N>, {b.get() + to * b.row, next, columns, b.row, 1},
                   {at(to, from), next, known, a.row, a.column},
                   {b.get() + from * b.row, known, columns, b.row, 1}, -1, true);
  }
}
template <class N>
void solve_of(int64_t n, int64_t k, const N* a, N* b, bool upper, bool adjoint, bool unit) {
  const Rows<N> rows(b, n, k);
  const Part matrix = {const_cast<N*>(a), n, n, n, 1};
  solve_blocks(n, k, adjoint ? transposed(matrix) : matrix, rows, upper == adjoint, unit, false);
  rows.put_back();
}
template <class N> void inverse_of(int64_t n, const N* lu, const int32_t* pivots, N* x) {
  memset(x, 0, size_t(n * n) * sizeof(N));
  for (int64_t i = 0; i < n; i++) x[i * n + i] = from_real<N>(1);
  const Part factors = {const_cast<N*>(lu), n, n, n, 1};
  const Rows<N> rows(x, n, n);
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
  const Numbers<N> row(n);
  for (int64_t r = 0; r < n; r++) {
    for (int64_t i = 0; i < n; i++) row.get()[i] = x[r * n + from[i]];
    memcpy(x + r * n, row.get(), size_t(n) * sizeof(N));
  }
}

// The reflections of a panel, the last one first, or their adjoints, the first one first, applied
// to the columns of c: c -= V^T T conj(V) c, or V^T T^H conj(V) c.
template <class N> class ColumnReflector {
 public:
  ColumnReflector(int64_t m, int64_t n)
      : block_(m),
        along_(kReflections * row_length<N>(n)),
        turned_(kReflections * row_length<N>(n)) {}

  void apply(const Reflections<N>& r, const Part& c, bool adjoint) {
    if (!c.columns) return;
    block_.set(r, 0, r.count, 0);
    if (adjoint) block_.adjoin();
    const int64_t width = kParts<N> == 2 ? strip_columns(c) : c.columns;
    for (int64_t at = 0; at < c.columns; at += width)
      apply_to({static_cast<N*>(c.data) + at, c.rows, min(width, c.columns - at), c.row, 1});
  }

 private:
  // The columns of a strip of c, which stays in a cache: products of complex numbers pack them in
  // twice their bytes.
  static int64_t strip_columns(const Part& c) {
    constexpr int64_t kBytes = 512 << 10;
    return max(kBytes / (c.rows * int64_t(sizeof(N))) / 32 * 32, int64_t(32));
  }
  void apply_to(const Part& c) {
    const int64_t count = block_.v.rows;
    const int64_t row = row_length<N>(c.columns);
    const Part w = {along_.get(), count, c.columns, row, 1};
    const Part x = {turned_.get(), count, c.columns, row, 1};
    multiply_parts(kDtype<N>, w, block_.v_conj, c, 1, false);
    multiply_parts(kDtype<N>, x, block_.factor, w, 1, false);
    multiply_parts(kDtype<N>, c, transposed(block_.v), x, -1, true);
  }

  Block<N> block_;
  const Numbers<N> along_, turned_;
};

template <class N> void qr_of(int64_t m, int64_t n, N* a, N* tau) {
  ColumnReflector<N> reflector(m, n);
  factor_panels<N>(m, n, a, {kernels<N>().qr, nullptr, nullptr, tau}, [&](const Panel<N>& p) {
    N* const right = p.a + p.at * p.row + p.at + p.width;
    reflector.apply({p.panel, p.height, p.m - p.at, p.width, 0, tau + p.at},
                    {right, p.m - p.at, p.n - p.at - p.width, p.row, 1}, true);
  });
}

template <class N> void q_of(int64_t m, int64_t n, int64_t k, const N* a, const N* tau, N* q) {
  const int64_t height = row_length<N>(m);
  Numbers<N> panel(kReflections * height);
  ColumnReflector<N> reflector(m, n);
  memset(q, 0, size_t(m * n) * sizeof(N));
  for (int64_t i = 0; i < min(m, n); i++) q[i * n + i] = from_real<N>(1);
  const Rows<N> rows(q, m, n);
  for (int64_t at = (k - 1) / kReflections * kReflections; at >= 0; at -= kReflections) {
    const int64_t width = min(kReflections, k - at);
    panel.clear();
    for (int64_t r = 0; r < m - at; r++)
      for (int64_t j = 0; j <= min(r, width - 1); j++)
        panel.get()[j * height + r] = r == j ? from_real<N>(1) : a[(at + r) * n + at + j];
    reflector.apply({panel.get(), height, m - at, width, 0, tau + at},
                    {rows.get() + at * rows.row + at, m - at, n - at, rows.row, 1}, false);
  }
  rows.put_back();
}

// ---- Hermitian matrices ----

// Makes a, [n][row], tridiagonal: d and e. reflectors: NULL, or [n][row], gets the reflections.
template <class N> void make_tridiagonal(int64_t n, N* a, int64_t row, RealOf<N>* d, RealOf<N>* e,
                                         N* tau, N* reflectors) {
  const Numbers<N> factors(2 * round_up(kPanel, kLine));
  Numbers<N> panels(4 * kPanel * row);
  for (int64_t at = 0; at < n; at += kPanel) {
    const int64_t width = min(kPanel, n - at);
    panels.clear();
    Condense<N> p = {};
    p.m = n;
    p.n = n;
    p.at = at;
    p.width = width;
    p.a = a;
    p.row = row;
    p.right = panels.get();
    p.d = d;
    p.e = e;
    p.tau = tau;
    p.x = factors.get();
    kernels<N>().tridiagonal(p);
    if (reflectors) memcpy(reflectors + at * row, panels.get(), size_t(width * row) * sizeof(N));
    for (int64_t r = at + width; r < n; r += kStrip) {
      const int64_t rows = min(kStrip, n - r);
      const Part left = {panels.get() + r, rows, 2 * width, 1, row};
      const Part right = {panels.get() + 2 * width * row + r, 2 * width, n - r, row, 1};
      multiply_parts(kDtype<N>, {a + r * row + r, rows, n - r, row, 1}, left, right, -1, true);
    }
  }
}

// a: columns of n numbers, which the eigenvectors replace
template <class N> int64_t eigh_of(int64_t n, N* a, RealOf<N>* w, bool upper, bool vectors) {
  using T = RealOf<N>;
  const int64_t row = row_length<N>(n);
  const int64_t parts = row * row * kParts<N>;
  Numbers<N> matrix(row * row);
  fill_hermitian(matrix.get(), row, a, n, upper);
  const double by = range_scale(parts_of(matrix.get()), parts);
  multiply(parts_of(matrix.get()), parts, by);
  const Numbers<N> reflectors(vectors ? n * row : 0);
  const Numbers<T> beside(n);
  const Numbers<N> tau(n);
  make_tridiagonal(n, matrix.get(), row, w, beside.get(), tau.get(),
                   vectors ? reflectors.get() : nullptr);
  int64_t info = 0;
  if (vectors) {
    const int64_t real_row = row_length<T>(n);
    const Numbers<T> rows(kParts<N> == 2 ? n * real_row : 0);
    T* const basis = kParts<N> == 2 ? rows.get() : parts_of(matrix.get());
    if (kParts<N> == 1) matrix.clear();
    if (upper) {  // LAPACK divides the matrix in its own order
      reverse(w, n);
      reverse(beside.get(), n - 1);
    }
    divide_eigh<T>(real_kernels<T>().secular, n, w, beside.get(), {basis, real_row});
    for (int64_t i = 0; upper && i < n; i++) reverse(basis + i * real_row, n);
    for (int64_t i = 0; kParts<N> == 2 && i < n; i++)
      for (int64_t k = 0; k < n; k++)
        matrix.get()[i * row + k] = from_real<N>(basis[i * real_row + k]);
    reflect_rows<N>({reflectors.get(), row, n, n - 1, 1, tau.get()}, matrix.get(), n, row);
    copy_rows(a, n, matrix.get(), row, n, n);
    for (int64_t i = 0; upper && i < n; i++) reverse(a + i * n, n);
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
        row(row_length<T>(columns)),
        height(row_length<T>(rows)),
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
      real_kernels<T>().bidiagonal(p);
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
  divide_svd<T>(real_kernels<T>().secular, k, s, b.beside.get(), {long_rows.get(), b.height},
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
  return (d == Dtype::kF32 || d == Dtype::kF64 || is_complex(d)) && has_kernels();
}

// Calls f with a number of d.
template <class F> static auto with_number(Dtype d, const F& f) {
  if (d == Dtype::kF32) return f(float());
  if (d == Dtype::kF64) return f(double());
  if (d == Dtype::kC64) return f(ComplexNumber<float>());
  return f(ComplexNumber<double>());
}
void own_lu(Dtype d, int64_t m, int64_t n, void* a, int32_t* pivots, int32_t* info) {
  with_number(d, [&](auto number) {
    using N = decltype(number);
    lu_of(m, n, static_cast<N*>(a), pivots, info);
  });
}
void own_solve_triangular(Dtype d, int64_t n, int64_t k, const void* a, void* b, bool upper,
                          bool adjoint, bool unit) {
  with_number(d, [&](auto number) {
    using N = decltype(number);
    solve_of(n, k, static_cast<const N*>(a), static_cast<N*>(b), upper, adjoint, unit);
  });
}
void own_inverse(Dtype d, int64_t n, const void* lu, const int32_t* pivots, void* x) {
  with_number(d, [&](auto number) {
    using N = decltype(number);
    inverse_of(n, static_cast<const N*>(lu), pivots, static_cast<N*>(x));
  });
}
void own_qr(Dtype d, int64_t m, int64_t n, void* a, void* tau) {
  with_number(d, [&](auto number) {
    using N = decltype(number);
    qr_of(m, n, static_cast<N*>(a), static_cast<N*>(tau));
  });
}
void own_q(Dtype d, int64_t m, int64_t n, int64_t k, const void* a, const void* tau, void* q) {
  with_number(d, [&](auto number) {
    using N = decltype(number);
    q_of(m, n, k, static_cast<const N*>(a), static_cast<const N*>(tau), static_cast<N*>(q));
  });
}
int64_t own_eigh(Dtype d, int64_t n, void* a, void* w, bool upper, bool vectors) {
  return with_number(d, [&](auto number) {
    using N = decltype(number);
    return eigh_of(n, static_cast<N*>(a), static_cast<RealOf<N>*>(w), upper, vectors);
  });
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
