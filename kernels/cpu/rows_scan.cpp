// cumsum and cumprod along any dimension of a contiguous array.
#include "cpu/rows.h"

#include "cpu/rows_vec.h"
#include "cpu/running_sum.h"
#include "plan/row_plan.h"

TT_ISA_BEGIN

// Stored as V, multiplied as A: products of float32 may pass through what float32 cannot hold, as in PyTorch.
template <class V, class A> TT_INLINE A times(A a, V v) { return a * A(v); }
template <> TT_INLINE uint64_t times(uint64_t a, int64_t v) { return a * uint64_t(v); }
template <class R> TT_INLINE C128 times_complex(C128 a, Complex<R> v) {
  return {a.re * double(v.re) - a.im * double(v.im), a.re * double(v.im) + a.im * double(v.re)};
}
template <> TT_INLINE C128 times(C128 a, C64 v) { return times_complex(a, v); }
template <> TT_INLINE C128 times(C128 a, C128 v) { return times_complex(a, v); }
template <class A> constexpr A kOne = A(1);
template <> constexpr C128 kOne<C128> = {1, 0};
template <class V, class A> TT_INLINE V rounded(A a) { return V(a); }
template <> TT_INLINE C64 rounded(C128 a) { return {float(a.re), float(a.im)}; }
template <class V> TT_INLINE void store_values(char* p, const V* v, int64_t n, int32_t dtype) {
  if constexpr (sizeof(V) == 4) store_f32(p, kItemSize[dtype], v, n, dtype);
  else __builtin_memcpy(p, v, size_t(n) * sizeof(V));
}

// `steps` elements of `n` columns each, `step` bytes apart; kColumns 1: side by side, in blocks.
template <class V, class A> TT_NOINLINE void scan_row(const char* in, char* out, int64_t steps, int32_t dtype) {
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

template <class V, class A> TT_NOINLINE int32_t scan(const SoftmaxPlan& p, int64_t begin, int64_t end) {
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

// ---- cumsum ----

// n elements, `step` apart: each run of 16 by itself, which goes to the sum, and the rest one by one.
constexpr int64_t kScanRun = 16, kScanBlock = 256;
template <class V> TT_INLINE void scan_run(RunningSum<V>* sum, const V* in, V* out, int64_t step, int64_t n) {
  using Part = typename RunningSum<V>::Part;
  Part part = 0, run[kScanRun];
#pragma GCC unroll 16
  for (int64_t j = 0; j < n; j++) run[j] = part += Part(in[j * step]);
#pragma GCC unroll 16
  for (int64_t j = 0; j < n; j++) out[j * step] = sum->with(run[j]);
  sum->add(part);
}
template <class V> TT_INLINE void scan_runs(RunningSum<V>* before, const V* in, V* out, int64_t step, int64_t n) {
  RunningSum<V> sum = *before;
  int64_t i = 0;
  for (; i + kScanRun <= n; i += kScanRun) scan_run(&sum, in + i * step, out + i * step, step, kScanRun);
  for (; i < n; i++) scan_run(&sum, in + i * step, out + i * step, step, 1);
  *before = sum;
}

// Only their sum: of blocks, in lanes.
template <class V> TT_INLINE void add_blocks(RunningSum<V>* sum, const V* in, int64_t step, int64_t n) {
  using Part = typename RunningSum<V>::Part;
  for (int64_t i = 0; i < n; i += kScanBlock) {
    const int64_t k = n - i < kScanBlock ? n - i : kScanBlock;
    Part lane[kScanRun] = {};
    int64_t r = 0;
    for (; r + kScanRun <= k; r += kScanRun)
      for (int64_t j = 0; j < kScanRun; j++) lane[j] += Part(in[(i + r + j) * step]);
    for (int64_t j = 0; r + j < k; j++) lane[j] += Part(in[(i + r + j) * step]);
    for (int64_t w = kScanRun / 2; w; w /= 2)
      for (int64_t j = 0; j < w; j++) lane[j] += lane[j + w];
    sum->add(lane[0]);
  }
}

// out NULL: only the sum is wanted.
template <class V> TT_NOINLINE void sum_row(RunningSum<V>* sum, const V* in, V* out, int64_t n) {
  out ? scan_runs(sum, in, out, 1, n) : add_blocks(sum, in, 1, n);
}
template <class V> TT_NOINLINE void sum_column(RunningSum<V>* sum, const V* in, V* out, int64_t step, int64_t n) {
  out ? scan_runs(sum, in, out, step, n) : add_blocks(sum, in, step, n);
}

// `steps` rows of n <= kRowTile elements, `step` elements apart; of each column. out NULL: only the sums are wanted.
template <class V>
TT_NOINLINE void sum_tile(RunningSum<V>* before, const V* in, V* out, int64_t steps, int64_t step, int64_t n) {
  RunningSum<V> sum[kRowTile];
  for (int64_t j = 0; j < n; j++) sum[j] = before[j];
  for (int64_t i = 0; i < steps; i++) {
    for (int64_t j = 0; j < n; j++) sum[j].add(typename RunningSum<V>::Part(in[i * step + j]));
    if (out)
      for (int64_t j = 0; j < n; j++) out[i * step + j] = sum[j].with(0);
  }
  for (int64_t j = 0; j < n; j++) before[j] = sum[j];
}

template <class V> TT_NOINLINE int32_t sums(const ScanPlan& p, int64_t begin, int64_t end) {
  for (int64_t u = begin; u < end; u++) {
    const int64_t c = u % p.n_chunks, tile = u / p.n_chunks % p.n_tiles, o = u / p.n_chunks / p.n_tiles;
    const int64_t column = tile * kRowTile, n = p.inner - column < kRowTile ? p.inner - column : kRowTile;
    const int64_t first = c * p.chunk, steps = p.dim - first < p.chunk ? p.dim - first : p.chunk;
    const int64_t at = (o * p.dim + first) * p.inner + column;
    auto sums_at = [&](int64_t k) {
      return reinterpret_cast<RunningSum<V>*>(p.sums + ((o * p.n_chunks + k) * p.inner + column) * 16);
    };
    RunningSum<V> sum[kRowTile];
    for (int64_t k = 0; k < c && p.run.stage == 1; k++)
      for (int64_t j = 0; j < n; j++) sum[j].add(sums_at(k)[j]);
    const V* in = reinterpret_cast<const V*>(p.in) + at;
    V* out = p.run.stage == 1 ? reinterpret_cast<V*>(p.out) + at : nullptr;
    if (p.inner == 1) sum_row(sum, in, out, steps);
    else if (n < 8)
      for (int64_t j = 0; j < n; j++) sum_column(sum + j, in + j, out ? out + j : nullptr, p.inner, steps);
    else sum_tile(sum, in, out, steps, p.inner, n);
    for (int64_t j = 0; j < n && p.run.stage == 0; j++) sums_at(c)[j] = sum[j];
  }
  return TT_OK;
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(cumsum)(const void* plan, int64_t begin, int64_t end) noexcept {
  const ScanPlan& p = *static_cast<const ScanPlan*>(plan);
  if (p.dtype == TT_F32) return sums<float>(p, begin, end);
  return p.dtype == TT_F64 ? sums<double>(p, begin, end) : sums<int64_t>(p, begin, end);
}

TT_KERNEL(cumprod)(const void* plan, int64_t begin, int64_t end) noexcept {
  const SoftmaxPlan& p = *static_cast<const SoftmaxPlan*>(plan);
  switch (p.dtype) {
    case TT_F64: return scan<double, double>(p, begin, end);
    case TT_I64: return scan<int64_t, uint64_t>(p, begin, end);
    case TT_C64: return scan<C64, C128>(p, begin, end);
    case TT_C128: return scan<C128, C128>(p, begin, end);
    default: return scan<float, double>(p, begin, end);
  }
}

TT_ENTRY_END
