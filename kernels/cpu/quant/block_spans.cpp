// Unpacking, and products of few rows, of every format but q8_0 and q4_0: 256 numbers of a packed
// row are unpacked into the cache, and multiplied from there for all rows of the input.
#include "kernels/cpu/quant/unpack.h"

TT_ISA_BEGIN

using Floats = Vec<float>;
constexpr int kL = kLanes<float>;
constexpr int kChains = 2;         // sums of a row, of every other group
constexpr int64_t kFar = 8 << 10;  // bytes that are prefetched
constexpr int64_t kLine = 64;

template <class Unpack>
TT_INLINE void unpack_blocks(const char* from, BlockLayout block, int64_t items, BlockSpan& s) {
  for (int64_t i = 0; i < items; i += block.items, from += block.bytes) Unpack::block(s, i, from);
}

// Adds the products of a span and kRows rows of the input, k numbers apart.
template <int kRows> void add_span(const float* x, int64_t k, const BlockSpan& s, int64_t items,
                                   Floats (*sums)[kChains]) {
  Floats acc[kRows][kChains];
  TT_UNROLL
  for (int r = 0; r < kRows; r++)
    for (int c = 0; c < kChains; c++) acc[r][c] = sums[r][c];
  for (int64_t g = 0; g < items / kGroup; g += kChains, x += kChains * kGroup) {
    TT_UNROLL
    for (int c = 0; c < kChains; c++) {
      TT_UNROLL
      for (int v = 0; v < int(kGroup) / kL; v++) {
        const Floats w = numbers_of(s, g + c, v);
        const float* const at = x + c * kGroup + v * kL;
        TT_UNROLL
        for (int r = 0; r < kRows; r++) acc[r][c] = fma(load(at + r * k), w, acc[r][c]);
      }
    }
  }
  TT_UNROLL
  for (int r = 0; r < kRows; r++)
    for (int c = 0; c < kChains; c++) sums[r][c] = acc[r][c];
}

float sum_of(const Floats& v) {
  float two[2];
  fold_lanes<float, kL>(v, two, [](auto x, auto y) { return x + y; });
  return two[0] + two[1];
}

// Rows [first, first + rows), rows <= kBlockRows.
void some_dots(const BlockPlan& p, int64_t j, int64_t first, int64_t rows) {
  const char* from = p.packed + packed_bytes(p.format, j * p.k);
  const int64_t bytes = packed_bytes(p.format, kSpan);
  Floats sums[kBlockRows][kChains] = {};
  BlockSpan s;
  for (int64_t at = 0; at < p.k; at += kSpan) {
    const int64_t items = min(kSpan, p.k - at);
    for (int64_t i = 0; i < bytes; i += kLine) TT_PREFETCH_L2(from + kFar + i);
    unpack_span(p.format, from, items, s);
    const float* const x = p.input + first * p.k + at;
    int64_t i = 0;
    for (; i + 4 <= rows; i += 4) add_span<4>(x + i * p.k, p.k, s, items, sums + i);
    for (; i + 2 <= rows; i += 2) add_span<2>(x + i * p.k, p.k, s, items, sums + i);
    if (i < rows) add_span<1>(x + i * p.k, p.k, s, items, sums + i);
    from += bytes;
  }
  for (int64_t i = 0; i < rows; i++)
    p.out[(first + i) * p.n + j] = sum_of(sums[i][0] + sums[i][1]) + (p.bias ? p.bias[j] : 0);
}

TT_ISA_END

TT_ENTRY_BEGIN
void unpack_span(int32_t format, const char* from, int64_t items, BlockSpan& s) noexcept {
  const BlockLayout block = block_layout(format);
  switch (format) {
    case kBlockQ8_0: return unpack_blocks<UnpackQ8_0>(from, block, items, s);
    case kBlockQ4_0: return unpack_blocks<UnpackQ4_0>(from, block, items, s);
    case kBlockQ4_1: return unpack_blocks<UnpackQ4_1>(from, block, items, s);
    case kBlockQ5_0: return unpack_blocks<UnpackQ5_0>(from, block, items, s);
    case kBlockQ5_1: return unpack_blocks<UnpackQ5_1>(from, block, items, s);
    case kBlockQ2K: return unpack_blocks<UnpackQ2K>(from, block, items, s);
    case kBlockQ3K: return unpack_blocks<UnpackQ3K>(from, block, items, s);
    case kBlockQ4K: return unpack_blocks<UnpackQ4K>(from, block, items, s);
    case kBlockQ5K: return unpack_blocks<UnpackQ5K>(from, block, items, s);
    case kBlockQ6K: return unpack_blocks<UnpackQ6K>(from, block, items, s);
    case kBlockIq4Nl: return unpack_blocks<UnpackIq4Nl>(from, block, items, s);
    case kBlockIq4Xs: return unpack_blocks<UnpackIq4Xs>(from, block, items, s);
    default: return unpack_blocks<UnpackMxfp4>(from, block, items, s);
  }
}
void span_dots(const BlockPlan& p, int64_t j, int64_t begin, int64_t end) noexcept {
  for (int64_t i = begin; i < end; i += kBlockRows) some_dots(p, j, i, min(kBlockRows, end - i));
}
void block_spans_unpack(const BlockPlan& p, int64_t begin, int64_t end) noexcept {
  const char* from = p.packed + packed_bytes(p.format, begin * p.k);
  float* to = p.out + begin * p.k;
  BlockSpan s;
  for (int64_t left = (end - begin) * p.k; left > 0; left -= kSpan) {
    const int64_t items = min(kSpan, left);
    unpack_span(p.format, from, items, s);
    for (int64_t g = 0; g < items / kGroup; g++)
      for (int v = 0; v < int(kGroup) / kL; v++, to += kL) store(to, numbers_of(s, g, v));
    from += packed_bytes(p.format, items);
  }
}
void block_spans_linear(const BlockPlan& p, int64_t begin, int64_t end) noexcept {
  const int64_t last = min(p.n, end * kBlockColumns);
  for (int64_t j = begin * kBlockColumns; j < last; j++) span_dots(p, j, 0, p.m);
}
TT_ENTRY_END
