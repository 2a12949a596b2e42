// cumprod along any dimension of a contiguous array.
//   in, out: (outer, dim, inner)
//
// A product may leave the range of numbers on the way, and stays 0, infinite or nan from there on.
// So rows and columns are multiplied one by one, several beside each other, however the work is
// cut.
#include "kernels/cpu/simd/load.h"
#include "kernels/cpu/simd/row_primitives.h"
#include "plan/scan_plan.h"

TT_ISA_BEGIN

// Stored as V, multiplied as A: products of float32 may leave the range of float32 on the way, as
// in PyTorch.
template <class V, class A> TT_INLINE A times(A a, V v) { return a * A(v); }
template <> TT_INLINE uint64_t times(uint64_t a, int64_t v) { return a * uint64_t(v); }
// -x by its sign bit, so that gcc 12 has no pair of a difference and a sum to fuse, which it does
// even where contraction is off.
TT_INLINE double flipped(double x) { return bit_cast<double>(bit_cast<uint64_t>(x) ^ 1ull << 63); }
template <class R> TT_INLINE C128 times_complex(C128 a, Complex<R> v) {
  const double re = double(v.re);
  const double im = double(v.im);
  return {a.re * re + a.im * flipped(im), a.re * im + a.im * re};
}
template <> TT_INLINE C128 times(C128 a, C64 v) { return times_complex(a, v); }
template <> TT_INLINE C128 times(C128 a, C128 v) { return times_complex(a, v); }
template <class A> constexpr A kOne = A(1);
template <> constexpr C128 kOne<C128> = {1, 0};
template <class V, class A> TT_INLINE V rounded(A a) { return V(a); }
template <> TT_INLINE C64 rounded(C128 a) { return {float(a.re), float(a.im)}; }

template <class V> TT_INLINE void store_values(char* p, const V* v, int64_t n, int32_t dtype) {
  if constexpr (sizeof(V) == 4) store_f32(p, kItemSize[dtype], v, n, dtype);
  else memcpy(p, v, size_t(n) * sizeof(V));
}

// Multiplies n elements of each of kRows rows, `pitch` elements apart, to the rows' products.
// out may be in.
template <int kRows, class V, class A>
TT_INLINE void multiply_beside(A* products, const V* in, V* out, int64_t pitch, int64_t n) {
  A product[kRows];
  for (int k = 0; k < kRows; k++) product[k] = products[k];
  for (int64_t i = 0; i < n; i++) {
    TT_UNROLL_BY(4)
    for (int k = 0; k < kRows; k++) product[k] = times(product[k], in[k * pitch + i]);
    TT_UNROLL_BY(4)
    for (int k = 0; k < kRows; k++) out[k * pitch + i] = rounded<V>(product[k]);
  }
  for (int k = 0; k < kRows; k++) products[k] = product[k];
}
// Several rows are multiplied at once, since each waits for its own products only. Which ones does
// not depend on how the work is cut: of two nans, instructions of different order give either.
constexpr int kRowsAtOnce = int(kCumprodRows);
template <class V, class A>
TT_NOINLINE void multiply_rows(const V* in, V* out, int64_t dim, int64_t rows) {
  int64_t r = 0;
  for (; r + kRowsAtOnce <= rows; r += kRowsAtOnce) {
    A products[kRowsAtOnce];
    for (A& product : products) product = kOne<A>;
    multiply_beside<kRowsAtOnce>(products, in + r * dim, out + r * dim, dim, dim);
  }
  for (; r < rows; r++) {
    A product = kOne<A>;
    multiply_beside<1>(&product, in + r * dim, out + r * dim, dim, dim);
  }
}

// The same for kColumns columns of elements `pitch` apart.
template <int kColumns, class V, class A>
TT_NOINLINE void multiply_down(const V* in, V* out, int64_t pitch, int64_t n) {
  A product[kColumns];
  for (A& x : product) x = kOne<A>;
  for (int64_t i = 0; i < n; i++) {
    TT_UNROLL_BY(4)
    for (int k = 0; k < kColumns; k++) product[k] = times(product[k], in[i * pitch + k]);
    TT_UNROLL_BY(4)
    for (int k = 0; k < kColumns; k++) out[i * pitch + k] = rounded<V>(product[k]);
  }
}

// Multiplies a row of n columns to the columns' products. out may be in. The instructions for a
// column do not depend on the tile that it is in, but for whole strips before it.
constexpr int64_t kStrip = 16;
template <class V, class A>
TT_INLINE void multiply_across(A* products, const V* in, V* out, int64_t n) {
  int64_t j = 0;
  for (; j + kStrip <= n; j += kStrip) {
    for (int64_t k = j; k < j + kStrip; k++) products[k] = times(products[k], in[k]);
    for (int64_t k = j; k < j + kStrip; k++) out[k] = rounded<V>(products[k]);
  }
  for (; j < n; j++) {
    TT_SCALAR_LOOP;
    products[j] = times(products[j], in[j]);
    out[j] = rounded<V>(products[j]);
  }
}

constexpr int64_t kBuffer = 2048, kFewColumns = 16;
template <class V, class A> struct Cumprod {
  const CumprodPlan& p;
  const int64_t item;
  alignas(64) V v[kBuffer];

  explicit Cumprod(const CumprodPlan& plan) : p(plan), item(kItemSize[plan.dtype]) {}

  // Whether elements are stored as V and need no conversion.
  bool native() const { return p.dtype == Loads<V>::native; }

  void rows(int64_t begin, int64_t end) {
    const int64_t bytes = p.dim * item;
    if (native())
      return multiply_rows<V, A>(reinterpret_cast<const V*>(p.in + begin * bytes),
                                 reinterpret_cast<V*>(p.out + begin * bytes), p.dim, end - begin);
    if (p.dim > kBuffer / kRowsAtOnce) {
      for (int64_t r = begin; r < end; r++) long_row(r * bytes);
      return;
    }
    for (int64_t r = begin, n; r < end; r += n) {
      n = min(end - r, kBuffer / p.dim / kRowsAtOnce * kRowsAtOnce);
      load_run(v, p.in + r * bytes, item, n * p.dim, p.dtype);
      multiply_rows<V, A>(v, v, p.dim, n);
      store_values(p.out + r * bytes, v, n * p.dim, p.dtype);
    }
  }
  // The row at byte `at`, converted in parts.
  void long_row(int64_t at) {
    A product = kOne<A>;
    for (int64_t i = 0, n; i < p.dim; i += n) {
      n = min(p.dim - i, kBuffer);
      load_run(v, p.in + at + i * item, item, n, p.dtype);
      multiply_beside<1>(&product, v, v, n, n);
      store_values(p.out + at + i * item, v, n, p.dtype);
    }
  }
  // Columns whose products stay in registers.
  void few_columns(int64_t at, int64_t n) {
    const V* const in = reinterpret_cast<const V*>(p.in + at);
    V* const out = reinterpret_cast<V*>(p.out + at);
    int64_t j = 0;
    for (; j + 4 <= n; j += 4) multiply_down<4, V, A>(in + j, out + j, p.inner, p.dim);
    for (; j < n; j++) multiply_down<1, V, A>(in + j, out + j, p.inner, p.dim);
  }
  // Unit u: n <= kRowTile columns.
  void columns(int64_t u) {
    const int64_t column = u % p.n_tiles * p.width;
    const int64_t n = min(p.inner - column, p.width);
    const int64_t pitch = p.inner * item;
    int64_t at = u / p.n_tiles * p.dim * pitch + column * item;
    if (native() && p.inner < kFewColumns) return few_columns(at, n);
    alignas(64) A products[kRowTile];
    for (int64_t j = 0; j < n; j++) products[j] = kOne<A>;
    for (int64_t i = 0; i < p.dim; i++, at += pitch) {
      if (native()) {
        multiply_across(products, reinterpret_cast<const V*>(p.in + at),
                        reinterpret_cast<V*>(p.out + at), n);
        continue;
      }
      load_run(v, p.in + at, item, n, p.dtype);
      multiply_across(products, v, v, n);
      store_values(p.out + at, v, n, p.dtype);
    }
  }
};

template <class V, class A>
TT_NOINLINE int32_t cumprods(const CumprodPlan& p, int64_t begin, int64_t end) {
  Cumprod<V, A> of(p);
  if (p.inner == 1) {
    of.rows(begin, end);
    return TT_OK;
  }
  for (int64_t u = begin; u < end; u++) of.columns(u);
  return TT_OK;
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(cumprod)(const void* plan, int64_t begin, int64_t end) noexcept {
  const CumprodPlan& p = *static_cast<const CumprodPlan*>(plan);
  switch (p.dtype) {
    case TT_F64: return cumprods<double, double>(p, begin, end);
    case TT_I64: return cumprods<int64_t, uint64_t>(p, begin, end);
    case TT_C64: return cumprods<C64, C128>(p, begin, end);
    case TT_C128: return cumprods<C128, C128>(p, begin, end);
    default: return cumprods<float, double>(p, begin, end);
  }
}

TT_ENTRY_END
