// Rows packed in q8_0 or q4_0, blocks of 32 numbers with a scale: packing, unpacking, and products
// of few rows with a packed matrix, whose time is that of reading it. The numbers of a block are
// exact in float32: a scale has 11 bits, an integer at most 8.
#include "kernels/cpu/quant/blocks.h"
#include "kernels/cpu/simd/bytes.h"
#include "kernels/cpu/simd/load.h"

TT_ISA_BEGIN

using Floats = Vec<float>;
constexpr int kL = kLanes<float>;
constexpr int kParts = int(kBlockItems) / kL;  // vectors of a block
constexpr int kRun = 16;                       // blocks whose scales are converted together
constexpr int64_t kFar = 64 << 10;             // bytes that are prefetched, at most

// Narrow vectors would unroll too much code.
#if TT_VEC_BYTES >= 32
#define TT_UNROLL_PARTS TT_UNROLL
#else
#define TT_UNROLL_PARTS
#endif

// whole(block, v): vector v of the integers of a block; part(block, v, scale): of its numbers.
struct Q8Block {
  static constexpr int64_t kBytes = kQ8Bytes;
  static TT_INLINE Floats whole(const char* block, int v) {
    return converted<Floats>(load_i8(block + 2 + v * kL));
  }
  static TT_INLINE Floats part(const char* block, int v, Floats scale) {
    return whole(block, v) * scale;
  }
};
struct Q4Block {
  static constexpr int64_t kBytes = kQ4Bytes;
  static TT_INLINE Vec<int32_t> nibbles(const char* block, int v) {
    const int half = v < kParts / 2 ? v : v - kParts / 2;
    const Vec<int32_t> pairs = load_u8(block + 2 + half * kL);
    return v < kParts / 2 ? pairs : pairs >> 4;
  }
  static TT_INLINE Floats whole(const char* block, int v) {
    return low_nibbles(nibbles(block, v), splat(1.0f));
  }
  static TT_INLINE Floats part(const char* block, int v, Floats scale) {
    return low_nibbles(nibbles(block, v), scale);
  }
};

TT_INLINE void widen_scales(const F16* halves, float* out) {
  if constexpr (kHalfConversions) {
    for (int i = 0; i < kRun; i += kL) store(out + i, load_f16(halves + i));
  } else {
    for (int i = 0; i < kRun; i++) out[i] = widen(halves[i]);
  }
}
// The scales of n <= kRun blocks of some size.
TT_NOINLINE void load_scales(const char* blocks, int64_t block_bytes, int64_t n, float* out) {
  alignas(32) F16 halves[kRun];
  for (int64_t b = 0; b < n; b++) memcpy(&halves[b], blocks + b * block_bytes, 2);
  for (int64_t b = n; b < kRun; b++) halves[b] = {};
  widen_scales(halves, out);
}

TT_NOINLINE float sum_of(const Floats& v) {
  float two[2];
  fold_lanes<float, kL>(v, two, [](auto x, auto y) { return x + y; });
  return two[0] + two[1];
}

// ---- products ----

// Rows [i, i + kRows) of the input times rows [j, j + kCols) of the packed matrix.
template <class Block, int kRows, int kCols> struct BlockDots {
  const float* x;
  int64_t k;
  const char* packed;
  int64_t row;    // bytes of a packed row
  int64_t ahead;  // bytes from a block to the one that is read kCols rows later
  Floats acc[kRows][kCols];

  TT_INLINE void add(int64_t block, const float (*scales)[kRun], int64_t of_run) {
    const float* at = x + block * kBlockItems;
    const char* bytes = packed + block * Block::kBytes;
    TT_UNROLL
    for (int c = 0; c < kCols; c++, bytes += row) {
      TT_PREFETCH_L2(bytes + ahead);
      const Floats scale = splat(scales[c][of_run]);
      if constexpr (kRows == 1) {  // the sum of a block times its scale: fewer products
        Floats sum = load(at) * Block::whole(bytes, 0);
        TT_UNROLL_PARTS
        for (int v = 1; v < kParts; v++) sum = fma(load(at + v * kL), Block::whole(bytes, v), sum);
        acc[0][c] = fma(sum, scale, acc[0][c]);
      } else {
        TT_UNROLL_PARTS
        for (int v = 0; v < kParts; v++) {
          const Floats w = Block::part(bytes, v, scale);
          TT_UNROLL
          for (int r = 0; r < kRows; r++) acc[r][c] = fma(load(at + r * k + v * kL), w, acc[r][c]);
        }
      }
    }
  }
};

template <class Block, int kRows, int kCols>
void block_dots(const BlockPlan& p, int64_t i, int64_t j) {
  const int64_t blocks = p.k / kBlockItems;
  const int64_t row = blocks * Block::kBytes;
  BlockDots<Block, kRows, kCols> dots = {
      .x = p.input + i * p.k,
      .k = p.k,
      .packed = p.packed + j * row,
      .row = row,
      .ahead = min<int64_t>(kCols * row, kFar),
      .acc = {},
  };
  // The scales of the next run are loaded while one is computed: a vector that is loaded right
  // behind the stores of its elements would wait for them.
  alignas(32) F16 halves[2][kCols][kRun];
  alignas(64) float scales[kCols][kRun];
  const char* next = dots.packed;
  const char* const last = next + max<int64_t>(0, row - Block::kBytes);
  const auto fetch = [&](F16(*to)[kRun], int64_t b) {
    TT_UNROLL
    for (int c = 0; c < kCols; c++) memcpy(&to[c][b], next + c * row, 2);
    next = next == last ? last : next + Block::kBytes;
  };
  for (int b = 0; b < kRun && blocks; b++) fetch(halves[0], b);
  for (int64_t at = 0, run = 0; at < blocks; at += kRun, run ^= 1) {
    for (int c = 0; c < kCols; c++) widen_scales(halves[run][c], scales[c]);
    const int64_t n = min<int64_t>(kRun, blocks - at);
    for (int64_t b = 0; b < n; b++) {
      fetch(halves[run ^ 1], b);
      dots.add(at + b, scales, b);
    }
  }
  TT_UNROLL
  for (int r = 0; r < kRows; r++) {
    TT_UNROLL
    for (int c = 0; c < kCols; c++)
      p.out[(i + r) * p.n + j + c] = sum_of(dots.acc[r][c]) + (p.bias ? p.bias[j + c] : 0);
  }
}

// Packed rows stay in the cache for all rows of the input.
template <class Block> void block_units(const BlockPlan& p, int64_t begin, int64_t end) {
  const int64_t last = min(p.n, end * kBlockColumns);
  int64_t j = begin * kBlockColumns;
  if (p.m == 1)
    for (; j + 4 <= last; j += 4) block_dots<Block, 1, 4>(p, 0, j);
  for (; j + 2 <= last; j += 2) {
    int64_t i = 0;
    for (; i + 4 <= p.m; i += 4) block_dots<Block, 4, 2>(p, i, j);
    for (; i + 2 <= p.m; i += 2) block_dots<Block, 2, 2>(p, i, j);
    for (int64_t one = j; i < p.m && one < j + 2; one++) block_dots<Block, 1, 1>(p, i, one);
  }
  for (int64_t i = 0; j < last && i < p.m; i++) block_dots<Block, 1, 1>(p, i, j);
}

// ---- unpacking ----

template <class Block> void unpack_rows(const BlockPlan& p, int64_t begin, int64_t end) {
  const int64_t blocks = p.k / kBlockItems;
  const char* from = p.packed + begin * blocks * Block::kBytes;
  float* to = p.out + begin * p.k;
  for (int64_t left = (end - begin) * blocks; left > 0; left -= kRun) {
    const int64_t n = min<int64_t>(kRun, left);
    alignas(64) float scales[kRun];
    load_scales(from, Block::kBytes, n, scales);
    for (int64_t b = 0; b < n; b++, from += Block::kBytes, to += kBlockItems) {
      const Floats scale = splat(scales[b]);
      TT_UNROLL_PARTS
      for (int v = 0; v < kParts; v++) store(to + v * kL, Block::part(from, v, scale));
    }
  }
}

// ---- packing, to the bytes of GGML's reference ----

TT_INLINE uint32_t magnitude_bits(float x) { return bit_cast<uint32_t>(x) & 0x7fffffffu; }

// The number of largest magnitude, the first one of several; NaN if there is one.
TT_INLINE float extreme(const float* x) {
  float largest = 0;
  for (int64_t i = 0; i < kBlockItems; i++)
    if (magnitude_bits(x[i]) > magnitude_bits(largest)) largest = x[i];
  return largest;
}
TT_INLINE bool is_finite(float x) { return x - x == 0; }
// round(x), halves away from zero, of |x| <= 128.
TT_INLINE int32_t nearest(float x) {
  const auto whole = int32_t(x);
  const float rest = x - float(whole);
  return whole + (rest >= 0.5f) - (rest <= -0.5f);
}

// Stores a scale and returns its inverse, or 0 unless both are finite.
TT_INLINE float put_scale(float scale, char* out) {
  const F16 half = narrow_f16(scale);
  memcpy(out, &half, sizeof half);
  const float inverse = 1 / scale;
  return is_finite(scale) && is_finite(inverse) ? inverse : 0;
}

TT_INLINE void pack_block(const float* x, Q8Block, char* out) {
  const float inverse = put_scale(bit_cast<float>(magnitude_bits(extreme(x))) / 127, out);
  for (int64_t i = 0; i < kBlockItems; i++)
    out[2 + i] = inverse != 0 ? char(nearest(x[i] * inverse)) : 0;
}
TT_INLINE int32_t nibble(float steps) { return min<int32_t>(15, int32_t(steps + 8.5f)); }
TT_INLINE void pack_block(const float* x, Q4Block, char* out) {
  const float inverse = put_scale(extreme(x) / -8, out);
  for (int64_t i = 0; i < kBlockItems / 2; i++) {
    const int32_t low = inverse != 0 ? nibble(x[i] * inverse) : 8;
    const int32_t high = inverse != 0 ? nibble(x[i + kBlockItems / 2] * inverse) : 8;
    out[2 + i] = char(low | high << 4);
  }
}

template <class Block> void pack_rows(const BlockPlan& p, int64_t begin, int64_t end) {
  const int64_t blocks = p.k / kBlockItems;
  for (int64_t b = begin * blocks; b < end * blocks; b++)
    pack_block(p.input + b * kBlockItems, Block{}, p.packed + b * Block::kBytes);
}

TT_ISA_END

TT_ENTRY_BEGIN
TT_KERNEL(block_quantize)(const void* plan, int64_t begin, int64_t end) noexcept {
  const BlockPlan& p = *static_cast<const BlockPlan*>(plan);
  if (p.format == kBlockQ8_0) pack_rows<Q8Block>(p, begin, end);
  else pack_rows<Q4Block>(p, begin, end);
  return TT_OK;
}
TT_KERNEL(block_dequantize)(const void* plan, int64_t begin, int64_t end) noexcept {
  const BlockPlan& p = *static_cast<const BlockPlan*>(plan);
  if (p.format == kBlockQ8_0) unpack_rows<Q8Block>(p, begin, end);
  else if (p.format == kBlockQ4_0) unpack_rows<Q4Block>(p, begin, end);
  else block_spans_unpack(p, begin, end);
  return TT_OK;
}
TT_KERNEL(block_linear)(const void* plan, int64_t begin, int64_t end) noexcept {
  const BlockPlan& p = *static_cast<const BlockPlan*>(plan);
  if (p.tiles.pieces) {
    block_tiles(p, begin, end);
    return TT_OK;
  }
  if (p.digits && (block_digits(p, begin, end) || p.run.stage == 0)) return TT_OK;
  if (p.format == kBlockQ8_0) block_units<Q8Block>(p, begin, end);
  else if (p.format == kBlockQ4_0) block_units<Q4Block>(p, begin, end);
  else block_spans_linear(p, begin, end);
  return TT_OK;
}
TT_ENTRY_END
