// cumprod along any dimension of a contiguous array.
#include "cpu/rows.h"

#include "cpu/rows_vec.h"
#include "plan/row_plan.h"

TT_ISA_BEGIN

// Stored as V, multiplied as A: products of float32 may pass through what float32 cannot hold, as in PyTorch.
template <class V, class A>
TT_INLINE A times(A a, V v) {
  return a * A(v);
}
template <>
TT_INLINE uint64_t times(uint64_t a, int64_t v) {
  return a * uint64_t(v);
}
template <class R>
TT_INLINE C128 times_complex(C128 a, Complex<R> v) {
  return {a.re * double(v.re) - a.im * double(v.im), a.re * double(v.im) + a.im * double(v.re)};
}
template <>
TT_INLINE C128 times(C128 a, C64 v) {
  return times_complex(a, v);
}
template <>
TT_INLINE C128 times(C128 a, C128 v) {
  return times_complex(a, v);
}
template <class A>
constexpr A kOne = A(1);
template <>
constexpr C128 kOne<C128> = {1, 0};
template <class V, class A>
TT_INLINE V rounded(A a) {
  return V(a);
}
template <>
TT_INLINE C64 rounded(C128 a) {
  return {float(a.re), float(a.im)};
}
template <class V>
TT_INLINE void store_values(char* p, const V* v, int64_t n, int32_t dtype) {
  if constexpr (sizeof(V) == 4)
    store_f32(p, kItemSize[dtype], v, n, dtype);
  else
    __builtin_memcpy(p, v, size_t(n) * sizeof(V));
}

// `steps` elements of `n` columns each, `step` bytes apart; kColumns 1: side by side, in blocks.
template <class V, class A>
TT_NOINLINE void scan_row(const char* in, char* out, int64_t steps, int32_t dtype) {
  const int64_t item = kItemSize[dtype];
  alignas(64) V v[kRowBlock];
  A product = kOne<A>;
  for (int64_t i = 0; i < steps; i += kRowBlock) {
    const int64_t k = steps - i < kRowBlock ? steps - i : kRowBlock;
    load_run(v, in + i * item, item, k, dtype);
    for (int64_t j = 0; j < k; j++) {
      product = times(product, v[j]);
      v[j] = rounded<V>(product);
    }
    store_values(out + i * item, v, k, dtype);
  }
}
template <class V, class A>
TT_NOINLINE void scan_tile(const char* in, char* out, int64_t steps, int64_t step, int64_t n, int32_t dtype) {
  alignas(64) V v[kRowTile];
  alignas(64) A product[kRowTile];
  for (int64_t j = 0; j < n; j++) product[j] = kOne<A>;
  for (int64_t i = 0; i < steps; i++) {
    load_run(v, in + i * step, kItemSize[dtype], n, dtype);
    for (int64_t j = 0; j < n; j++) {
      product[j] = times(product[j], v[j]);
      v[j] = rounded<V>(product[j]);
    }
    store_values(out + i * step, v, n, dtype);
  }
}

template <class V, class A>
TT_NOINLINE int32_t scan(const SoftmaxPlan& p, int64_t begin, int64_t end) {
  const int64_t item = kItemSize[p.dtype];
  for (int64_t u = begin; u < end; u++) {
    if (p.inner == 1) {
      scan_row<V, A>(p.a + u * p.dim * item, p.out + u * p.dim * item, p.dim, p.dtype);
      continue;
    }
    const int64_t column = u % p.n_tiles * kRowTile, rest = p.inner - column;
    const int64_t at = (u / p.n_tiles * p.dim * p.inner + column) * item;
    scan_tile<V, A>(p.a + at, p.out + at, p.dim, p.inner * item, rest < kRowTile ? rest : kRowTile, p.dtype);
  }
  return TT_OK;
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(cumprod)(const void* plan, int64_t begin, int64_t end) noexcept {
  const SoftmaxPlan& p = *static_cast<const SoftmaxPlan*>(plan);
  switch (p.dtype) {
    case TT_F64:
      return scan<double, double>(p, begin, end);
    case TT_I64:
      return scan<int64_t, uint64_t>(p, begin, end);
    case TT_C64:
      return scan<C64, C128>(p, begin, end);
    case TT_C128:
      return scan<C128, C128>(p, begin, end);
    default:
      return scan<float, double>(p, begin, end);
  }
}

TT_ENTRY_END
