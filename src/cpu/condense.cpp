#include "cpu/condense.h"

#include "cpu/product.h"
#include "plan/condense.h"

namespace TT_NS {

#define TT_DECLARE_CONDENSE(isa)                        \
  namespace isa {                                       \
  void tridiagonal(const Condense<float>& p) noexcept;  \
  void tridiagonal(const Condense<double>& p) noexcept; \
  void bidiagonal(const Condense<float>& p) noexcept;   \
  void bidiagonal(const Condense<double>& p) noexcept;  \
  }
#if TT_HAVE_AVX2
TT_DECLARE_CONDENSE(avx2)
#endif
#if TT_HAVE_AVX512
TT_DECLARE_CONDENSE(avx512)
#endif
#undef TT_DECLARE_CONDENSE

namespace {

template <class T> using Reduce = void (*)(const Condense<T>&) noexcept;
template <class T> struct Reductions { Reduce<T> tridiagonal, bidiagonal; };
// Of the baseline there are none: OpenBLAS picks its kernels by the processor.
template <class T> Reductions<T> reductions() noexcept {
#if TT_HAVE_AVX512
  if (Isa(ctx().isa) == kIsaAvx512) return {avx512::tridiagonal, avx512::bidiagonal};
#endif
#if TT_HAVE_AVX2
  if (Isa(ctx().isa) == kIsaAvx2) return {avx2::tridiagonal, avx2::bidiagonal};
#endif
  return {};
}

constexpr int64_t kPanel = 32;        // columns that are reduced by products with vectors
constexpr int64_t kReflections = 64;  // that are applied together
constexpr int64_t kStrip = 128;       // rows of a triangle that are updated at a time
constexpr int64_t kLine = 64;         // bytes

template <class T> constexpr Dtype kDtype = sizeof(T) == 4 ? Dtype::kF32 : Dtype::kF64;
template <class T> int64_t padded(int64_t n) { return round_up(n, kLine / int64_t(sizeof(T))); }

// Zeros, from a multiple of 64 bytes on.
template <class T> class Numbers {
 public:
  explicit Numbers(int64_t n) : memory_(n * int64_t(sizeof(T)) + kLine), n_(n) {
    p_ = reinterpret_cast<T*>((uintptr_t(memory_.get()) + kLine - 1) / kLine * kLine);
    clear();
  }
  void clear() { __builtin_memset(p_, 0, size_t(n_) * sizeof(T)); }
  T* get() const { return p_; }

 private:
  Memory memory_;
  int64_t n_;
  T* p_;
};

// A power of two that scales the largest of (rows, columns) numbers to about 1 where their squares
// or products could be out of range; 1 elsewhere.
template <class T> double range_scale(const T* a, int64_t n) {
  constexpr double kFar = sizeof(T) == 4 ? 0x1p40 : 0x1p300;
  T tops[4] = {};
  for (int64_t i = 0; i < n; i++) tops[i % 4] = max(tops[i % 4], T(__builtin_fabs(double(a[i]))));
  const double top = double(max(max(tops[0], tops[1]), max(tops[2], tops[3])));
  if (top == 0 || (top < kFar && top > 1 / kFar)) return 1;
  const uint64_t exponent = __builtin_bit_cast(uint64_t, top) >> 52;
  const uint64_t inverse =
      uint64_t(clamp(int64_t(2046) - int64_t(exponent), int64_t(1), int64_t(2046)));
  return __builtin_bit_cast(double, inverse << 52);
}
template <class T> void multiply(T* a, int64_t n, double by) {
  for (int64_t i = 0; by != 1 && i < n; i++) a[i] = T(double(a[i]) * by);
}

constexpr int64_t kTile = 16;

template <class T>
void copy_rows(T* to, int64_t to_row, const T* from, int64_t row, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; i++)
    __builtin_memcpy(to + i * to_row, from + i * row, size_t(columns) * sizeof(T));
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

// ---- symmetric matrices ----

template <class T> int64_t eigh_of(int64_t n, T* a, T* w, bool upper, bool vectors) {
  const int64_t row = padded<T>(n);
  const double by = range_scale(a, n * n);
  const Numbers<T> matrix(row * row);
  fill_symmetric(matrix.get(), row, a, n, upper);
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
    reductions<T>().tridiagonal(p);
    if (vectors)
      __builtin_memcpy(reflectors.get() + at * row, panels.get(), size_t(width * row) * sizeof(T));
    for (int64_t r = at + width; r < n; r += kStrip) {
      const int64_t rows = min(kStrip, n - r);
      const Part left = {panels.get() + r, rows, 2 * width, 1, row};
      const Part right = {panels.get() + width * row + r, 2 * width, n - r, row, 1};
      multiply_parts(kDtype<T>, {matrix.get() + r * row + r, rows, n - r, row, 1}, left, right, -1,
                     true);
    }
  }
  const int64_t info =
      lapack_tridiagonal_eigh(kDtype<T>, n, w, beside.get(), vectors ? a : nullptr, n);
  if (info) return info;
  if (vectors) reflect_rows<T>({reflectors.get(), row, n, n - 1, 1, tau.get()}, a, n, n);
  multiply(w, n, 1 / by);
  return 0;
}

// ---- singular values ----

template <class T> int64_t svd_of(int64_t m, int64_t n, const T* a, T* u, T* s, T* vt) {
  const bool wide = m < n;
  const int64_t long_side = max(m, n);
  const int64_t k = min(m, n);
  const int64_t row = padded<T>(k);
  const int64_t height = padded<T>(long_side);
  const double by = range_scale(a, m * n);
  const Numbers<T> matrix(height * row);
  if (wide) transpose_rows(matrix.get(), row, a, n, n, m);
  else copy_rows(matrix.get(), row, a, n, m, n);
  multiply(matrix.get(), height * row, by);
  const Numbers<T> left(k * height);
  const Numbers<T> right(k * row);
  const Numbers<T> beside(k);
  const Numbers<T> tau(k);
  const Numbers<T> tau_u(k);
  const Numbers<T> factors(2 * round_up(kPanel, kLine));
  Numbers<T> left_panels(2 * kPanel * height);
  Numbers<T> right_panels(2 * kPanel * row);
  for (int64_t at = 0; at < k; at += kPanel) {
    const int64_t width = min(kPanel, k - at);
    left_panels.clear();
    right_panels.clear();
    const Condense<T> p = {.m = long_side,
                           .n = k,
                           .at = at,
                           .width = width,
                           .a = matrix.get(),
                           .row = row,
                           .height = height,
                           .left = left_panels.get(),
                           .right = right_panels.get(),
                           .d = s,
                           .e = beside.get(),
                           .tau = tau.get(),
                           .tau_u = tau_u.get(),
                           .x = factors.get()};
    reductions<T>().bidiagonal(p);
    __builtin_memcpy(left.get() + at * height, p.left, size_t(width * height) * sizeof(T));
    __builtin_memcpy(right.get() + at * row, p.right + width * row,
                     size_t(width * row) * sizeof(T));
    const int64_t from = at + width;
    multiply_parts(kDtype<T>,
                   {matrix.get() + from * row + from, long_side - from, k - from, row, 1},
                   {p.left + from, long_side - from, 2 * width, 1, height},
                   {p.right + from, 2 * width, k - from, row, 1}, -1, true);
  }
  // The rows of the long factor and of the short one, transposed.
  const Numbers<T> long_rows(k * height);
  const Numbers<T> short_rows(k * row);
  const Numbers<T> vectors(k * k);
  const int64_t info =
      lapack_bidiagonal_svd(kDtype<T>, k, s, beside.get(), long_rows.get(), height, vectors.get());
  if (info) return info;
  multiply(s, k, 1 / by);
  transpose_rows(short_rows.get(), row, vectors.get(), k, k, k);
  reflect_rows<T>({left.get(), height, long_side, k, 0, tau.get()}, long_rows.get(), k, height);
  reflect_rows<T>({right.get(), row, k, k - 1, 1, tau_u.get()}, short_rows.get(), k, row);
  const T* const u_rows = wide ? short_rows.get() : long_rows.get();
  const T* const v_rows = wide ? long_rows.get() : short_rows.get();
  transpose_rows(u, k, u_rows, wide ? row : height, m, k);
  copy_rows(vt, n, v_rows, wide ? height : row, k, n);
  return 0;
}

}  // namespace

bool condenses(Dtype d) noexcept {
  return (d == Dtype::kF32 || d == Dtype::kF64) && reductions<float>().bidiagonal;
}
int64_t condensed_eigh(Dtype d, int64_t n, void* a, void* w, bool upper, bool vectors) {
  if (d == Dtype::kF32)
    return eigh_of(n, static_cast<float*>(a), static_cast<float*>(w), upper, vectors);
  return eigh_of(n, static_cast<double*>(a), static_cast<double*>(w), upper, vectors);
}
int64_t condensed_svd(Dtype d, int64_t m, int64_t n, const void* a, void* u, void* s, void* vt) {
  if (d == Dtype::kF32)
    return svd_of(m, n, static_cast<const float*>(a), static_cast<float*>(u),
                  static_cast<float*>(s), static_cast<float*>(vt));
  return svd_of(m, n, static_cast<const double*>(a), static_cast<double*>(u),
                static_cast<double*>(s), static_cast<double*>(vt));
}

}  // namespace TT_NS
