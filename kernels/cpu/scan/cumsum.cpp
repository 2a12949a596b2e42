// cumsum along any dimension of a contiguous array.
//   in, out: (outer, dim, inner); sums: [outer][n_chunks][inner] RunningSum
//
// A long dim is cut into chunks: stage 0 sums each chunk, stage 1 adds the sums of the chunks
// before to its own cumulative sums.
#include "kernels/cpu/simd/row_primitives.h"
#include "kernels/cpu/simd/running_sum.h"
#include "plan/scan_plan.h"

TT_ISA_BEGIN

// Cumulative sums of n elements, `step` apart. Each run of 16 is summed by itself, then added to
// the sum; the rest one by one.
constexpr int64_t kScanRun = 16, kScanBlock = 256;
template <class V>
TT_INLINE void scan_run(RunningSum<V>* sum, const V* in, V* out, int64_t step, int64_t n) {
  using Part = typename RunningSum<V>::Part;
  Part part = 0, run[kScanRun];
  TT_UNROLL_BY(16)
  for (int64_t j = 0; j < n; j++) {
    part += Part(in[j * step]);
    run[j] = part;
  }
  TT_UNROLL_BY(16)
  for (int64_t j = 0; j < n; j++) out[j * step] = sum->with(run[j]);
  sum->add(part);
}
template <class V>
TT_INLINE void scan_runs(RunningSum<V>* before, const V* in, V* out, int64_t step, int64_t n) {
  RunningSum<V> sum = *before;
  int64_t i = 0;
  for (; i + kScanRun <= n; i += kScanRun)
    scan_run(&sum, in + i * step, out + i * step, step, kScanRun);
  for (; i < n; i++) scan_run(&sum, in + i * step, out + i * step, step, 1);
  *before = sum;
}

// Adds n elements to the sum: blocks of kScanBlock, in lanes.
template <class V>
TT_INLINE void add_blocks(RunningSum<V>* sum, const V* in, int64_t step, int64_t n) {
  using Part = typename RunningSum<V>::Part;
  for (int64_t i = 0; i < n; i += kScanBlock) {
    const int64_t k = min(n - i, kScanBlock);
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

// A row, or a column of elements `step` apart. out NULL: only updates the sum.
template <class V> TT_NOINLINE void sum_row(RunningSum<V>* sum, const V* in, V* out, int64_t n) {
  if (out) scan_runs(sum, in, out, 1, n);
  else add_blocks(sum, in, 1, n);
}
template <class V>
TT_NOINLINE void sum_column(RunningSum<V>* sum, const V* in, V* out, int64_t step, int64_t n) {
  if (out) scan_runs(sum, in, out, step, n);
  else add_blocks(sum, in, step, n);
}

// The columns of `steps` rows of n <= kRowTile elements, rows `step` elements apart. out NULL: only
// updates the sums.
template <class V> TT_NOINLINE void sum_tile(RunningSum<V>* before, const V* in, V* out,
                                             int64_t steps, int64_t step, int64_t n) {
  RunningSum<V> sum[kRowTile];
  for (int64_t j = 0; j < n; j++) sum[j] = before[j];
  for (int64_t i = 0; i < steps; i++) {
    for (int64_t j = 0; j < n; j++) sum[j].add(typename RunningSum<V>::Part(in[i * step + j]));
    if (out)
      for (int64_t j = 0; j < n; j++) out[i * step + j] = sum[j].with(0);
  }
  for (int64_t j = 0; j < n; j++) before[j] = sum[j];
}

// kCumsumRows short rows of n elements beside each other, since each waits for its own sum only.
// scan_runs() has the same sums up to the end of its second run, as the first one is added to 0.
constexpr int64_t kShortRow = 2 * kScanRun;
TT_NOINLINE void sum_short_rows(const float* in, float* out, int64_t n) {
  double sum[kCumsumRows] = {};
  for (int64_t i = 0; i < n; i++) {
    TT_UNROLL_BY(4)
    for (int64_t k = 0; k < kCumsumRows; k++) sum[k] += double(in[k * n + i]);
    TT_UNROLL_BY(4)
    for (int64_t k = 0; k < kCumsumRows; k++) out[k * n + i] = float(sum[k]);
  }
}

// Rows that are not cut.
template <class V> TT_INLINE int32_t whole_rows(const ScanPlan& p, int64_t begin, int64_t end) {
  if constexpr (kIsSame<V, float>)
    for (; p.dim < kShortRow && begin + kCumsumRows <= end; begin += kCumsumRows)
      sum_short_rows(reinterpret_cast<const V*>(p.in) + begin * p.dim,
                     reinterpret_cast<V*>(p.out) + begin * p.dim, p.dim);
  for (int64_t u = begin; u < end; u++) {
    RunningSum<V> sum;
    scan_runs(&sum, reinterpret_cast<const V*>(p.in) + u * p.dim,
              reinterpret_cast<V*>(p.out) + u * p.dim, 1, p.dim);
  }
  return TT_OK;
}

template <class V> TT_NOINLINE int32_t sums(const ScanPlan& p, int64_t begin, int64_t end) {
  if (p.inner == 1 && p.n_chunks == 1) return whole_rows<V>(p, begin, end);
  for (int64_t u = begin; u < end; u++) {
    const int64_t c = u % p.n_chunks;
    const int64_t tile = u / p.n_chunks % p.n_tiles;
    const int64_t o = u / p.n_chunks / p.n_tiles;
    const int64_t column = tile * kRowTile;
    const int64_t n = min(p.inner - column, kRowTile);
    const int64_t first = c * p.chunk;
    const int64_t steps = min(p.dim - first, p.chunk);
    const int64_t at = (o * p.dim + first) * p.inner + column;
    auto sums_at = [&](int64_t k) {
      return reinterpret_cast<RunningSum<V>*>(p.sums +
                                              ((o * p.n_chunks + k) * p.inner + column) * 16);
    };
    RunningSum<V> sum[kRowTile];
    for (int64_t k = 0; k < c && p.run.stage == 1; k++)
      for (int64_t j = 0; j < n; j++) sum[j].add(sums_at(k)[j]);
    const V* in = reinterpret_cast<const V*>(p.in) + at;
    V* out = p.run.stage == 1 ? reinterpret_cast<V*>(p.out) + at : nullptr;
    if (p.inner == 1) {
      sum_row(sum, in, out, steps);
    } else if (n < 8) {
      for (int64_t j = 0; j < n; j++)
        sum_column(sum + j, in + j, out ? out + j : nullptr, p.inner, steps);
    } else {
      sum_tile(sum, in, out, steps, p.inner, n);
    }
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

TT_ENTRY_END
