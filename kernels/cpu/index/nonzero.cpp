// nonzero_count: stage 0 counts the nonzero elements of each chunk, stage 1 turns the counts into
// starts (starts: [chunks]) and *total. nonzero_write: writes the positions, out: (total, ndim) by
// strides. Another thread may write x between the two: a chunk writes as many rows as were counted,
// zeros if it finds fewer.
#include "kernels/cpu/index/index.h"

#include "kernels/cpu/simd/load.h"
#include "plan/index_plan.h"

TT_ISA_BEGIN

constexpr int64_t kBlock = 1024;

// Writes the coordinates of an element.
TT_INLINE void put_position(const NonzeroPlan& p, int64_t* out, int64_t position) {
  for (int32_t d = p.ndim - 1; d > 0; position /= p.size[d--])
    out[d * p.dim_stride] = position % p.size[d];
  *out = position;
}

TT_ISA_END

TT_ENTRY_BEGIN

TT_KERNEL(nonzero_count)(const void* plan, int64_t begin, int64_t end) noexcept {
  const NonzeroPlan& p = *static_cast<const NonzeroPlan*>(plan);
  if (p.run.stage == 1) {
    int64_t start = 0;
    for (int64_t c = 0; c * kNonzeroChunk < p.n; c++) {
      const int64_t count = p.starts[c];
      p.starts[c] = start;
      start += count;
    }
    *p.total = start;
    return TT_OK;
  }
  const int64_t item = kItemSize[p.dtype];
  alignas(64) uint8_t hit[kBlock];
  for (int64_t c = begin; c < end; c++) {
    const int64_t last = (c + 1) * kNonzeroChunk < p.n ? (c + 1) * kNonzeroChunk : p.n;
    int64_t count = 0;
    for (int64_t i = c * kNonzeroChunk; i < last; i += kBlock) {
      const int64_t n = min(last - i, kBlock);
      load_logical(hit, p.x + i * item, item, n, p.dtype);
      int32_t sum = 0;
      for (int64_t k = 0; k < n; k++) sum += hit[k];
      count += sum;
    }
    p.starts[c] = count;
  }
  return TT_OK;
}

TT_KERNEL(nonzero_write)(const void* plan, int64_t begin, int64_t end) noexcept {
  const NonzeroPlan& p = *static_cast<const NonzeroPlan*>(plan);
  const int64_t item = kItemSize[p.dtype];
  alignas(64) uint8_t hit[kBlock];
  int32_t found[kBlock];
  for (int64_t c = begin; c < end; c++) {
    const int64_t last = (c + 1) * kNonzeroChunk < p.n ? (c + 1) * kNonzeroChunk : p.n;
    int64_t* out = p.out + p.starts[c] * p.row_stride;
    int64_t left = (last < p.n ? p.starts[c + 1] : *p.total) - p.starts[c];
    for (int64_t i = c * kNonzeroChunk; i < last; i += kBlock) {
      const int64_t n = min(last - i, kBlock);
      load_logical(hit, p.x + i * item, item, n, p.dtype);
      int64_t hits = 0;
      for (int64_t k = 0; k < n; k++) {
        found[hits] = int32_t(k);
        hits += hit[k];
      }
      if (hits > left) hits = left;
      left -= hits;
      for (int64_t k = 0; k < hits; k++, out += p.row_stride) put_position(p, out, i + found[k]);
    }
    for (; left > 0; left--, out += p.row_stride) put_position(p, out, 0);
  }
  return TT_OK;
}

TT_ENTRY_END
