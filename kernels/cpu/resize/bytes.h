// Rows of bytes whose columns are resized, kResizeGroup rows at once:
//
//   x       [16 rows][n], the elements that a block of results reads
//             | transpose: 8 × 8 bytes in each 64-bit lane
//   bytes   [n][16]
//   wide    [n][16], int32
//             | sums over windows, one row per lane
//   sums    [64 results][16]
//             | transpose
//   y       [16 rows][64 results]
#pragma once

#include "kernels/cpu/simd/vec.h"
#include "plan/resize_build.h"

TT_ISA_BEGIN

using Words = Vec<uint64_t>;
constexpr int64_t kWordLanes = kLanes<uint64_t>;
constexpr int64_t kAcross = 8 * kWordLanes;  // bytes of a vector
constexpr int64_t kSumBlock = 64;

// Exchanges the upper parts of a, by which it is shifted, with the lower parts of b.
TT_INLINE void exchange_parts(Words& a, Words& b, int bits, uint64_t lower) {
  const Words t = ((a >> uint64_t(bits)) ^ b) & splat(lower);
  b ^= t;
  a ^= t << uint64_t(bits);
}
// Byte i of lane l of v[j] becomes byte j of lane l of v[i].
TT_INLINE void transpose_bytes(Words* v) {
  TT_UNROLL
  for (int i = 0; i < 4; i++) exchange_parts(v[i], v[i + 4], 32, 0x00000000ffffffff);
  TT_UNROLL
  for (int i = 0; i < 8; i++)
    if (!(i & 2)) exchange_parts(v[i], v[i + 2], 16, 0x0000ffff0000ffff);
  TT_UNROLL
  for (int i = 0; i < 8; i += 2) exchange_parts(v[i], v[i + 1], 8, 0x00ff00ff00ff00ff);
}

// to[i][r] = row[r][i], of 8 rows; `to` has rows of kResizeGroup bytes, a multiple of 8 of them.
TT_NOINLINE void to_columns(uint8_t* to, const uint8_t* const* row, int64_t n) {
  for (int64_t i = 0; i < n; i += kAcross) {
    const int64_t count = min(n - i, kAcross);
    Words v[8];
    if (count == kAcross) {
      for (int r = 0; r < 8; r++) memcpy(&v[r], row[r] + i, sizeof v[r]);
    } else {
      for (int r = 0; r < 8; r++) {
        alignas(64) uint8_t part[kAcross] = {};
        memcpy(part, row[r] + i, size_t(count));
        memcpy(&v[r], part, sizeof v[r]);
      }
    }
    transpose_bytes(v);
    uint64_t word[8][kWordLanes];
    memcpy(word, v, sizeof v);
    uint8_t* const columns = to + i * kResizeGroup;
    for (int64_t l = 0; l < kWordLanes && 8 * l < count; l++)
      for (int64_t j = 0; j < 8; j++) memcpy(columns + (8 * l + j) * kResizeGroup, &word[j][l], 8);
  }
}
// row[r][i] = from[i][r], of 8 rows; `from` has kSumBlock rows of kResizeGroup bytes.
TT_NOINLINE void to_rows(uint8_t* const* row, const uint8_t* from, int64_t n) {
  for (int64_t i = 0; i < n; i += kAcross) {
    uint64_t word[8][kWordLanes];
    for (int64_t l = 0; l < kWordLanes; l++)
      for (int64_t j = 0; j < 8; j++) memcpy(&word[j][l], from + (i + 8 * l + j) * kResizeGroup, 8);
    Words v[8];
    memcpy(v, word, sizeof v);
    transpose_bytes(v);
    if (n - i >= kAcross) {
      for (int r = 0; r < 8; r++) memcpy(row[r] + i, &v[r], sizeof v[r]);
    } else {
      for (int r = 0; r < 8; r++) memcpy(row[r] + i, &v[r], size_t(n - i));
    }
  }
}

// n elements of rows of x, as columns: [n][kResizeGroup].
TT_NOINLINE void widen_columns(int32_t* TT_RESTRICT wide, const uint8_t* TT_RESTRICT bytes,
                               int64_t n) {
  TT_VECTORIZE
  for (int64_t i = 0; i < n; i++) wide[i] = bytes[i];
}
TT_NOINLINE void narrow_columns(uint8_t* TT_RESTRICT bytes, const int32_t* TT_RESTRICT wide,
                                int64_t n) {
  TT_VECTORIZE
  for (int64_t i = 0; i < n; i++) bytes[i] = uint8_t(wide[i]);
}

// The sums of `count` columns, `step` numbers apart, as bytes.
TT_INLINE void sum_columns(int32_t* to, const int32_t* x, int64_t step, const int32_t* weight,
                           int64_t weight_step, int64_t count, int32_t shift) {
  constexpr int L = kLanes<int32_t>;
  constexpr int kVectors = int(kResizeGroup) / L;
  using V = Vec<int32_t>;
  V sum[kVectors];
  TT_UNROLL
  for (int v = 0; v < kVectors; v++) sum[v] = splat(int32_t(1) << (shift - 1));
  for (int64_t k = 0; k < count; k++, x += step) {
    const V w = splat(weight[k * weight_step]);
    TT_UNROLL
    for (int v = 0; v < kVectors; v++) sum[v] = fma(load(x + v * L), w, sum[v]);
  }
  TT_UNROLL
  for (int v = 0; v < kVectors; v++) {
    V byte = sum[v] >> shift;
    byte = chosen(byte < 0, V{}, byte);
    store(to + v * L, chosen(byte > 255, splat(int32_t(255)), byte));
  }
}

// Resizes the columns of the `rows` rows at x, which are in_row bytes apart, to the rows at y,
// out_row bytes apart. room: resize_column_bytes().
class ByteColumns {
 public:
  ByteColumns(const ResizePlan& p, char* room)
      : table_(p, p.table, 1),
        shift_(*table_.shift),
        in_(p.in[1]),
        out_(p.out[1]),
        pixel_(p.channels_last ? p.c : 1),
        block_(resize_byte_block(pixel_)),
        wide_(reinterpret_cast<int32_t*>(room)),
        bytes_(reinterpret_cast<uint8_t*>(room) + resize_column_bytes(p) / 5 * 4) {}

  TT_NOINLINE void resize(uint8_t* y, const uint8_t* x, int64_t rows) const {
    const uint8_t* from[kResizeGroup];
    uint8_t* to[kResizeGroup];
    for (int64_t o = 0; o < out_; o += block_) {
      const int64_t end = min(o + block_, out_);
      const int64_t first = table_.first[o];
      const int64_t n = (table_.first[end - 1] + table_.count[end - 1] - first) * pixel_;
      // Rows that are not there are those of the last one.
      for (int64_t r = 0; r < kResizeGroup; r++)
        from[r] = x + (min(r, rows - 1) * in_ + first) * pixel_;
      for (int64_t r = 0; r < kResizeGroup; r += 8) to_columns(bytes_ + r, from + r, n);
      widen_columns(wide_, bytes_, n * kResizeGroup);
      for (int64_t r = 0; r < kResizeGroup; r++) to[r] = y + (r * out_ + o) * pixel_;
      sum_block(to, o, end, first);
    }
  }

 private:
  // Results [o, end) of all rows; `wide` begins with pixel `first`.
  TT_INLINE void sum_block(uint8_t** to, int64_t o, int64_t end, int64_t first) const {
    alignas(64) int32_t sums[kSumBlock * kResizeGroup];
    alignas(64) uint8_t narrow[kSumBlock * kResizeGroup];
    const int64_t n = (end - o) * pixel_;
    int64_t channel = 0;
    for (int64_t i = 0; i < n; i += kSumBlock) {
      const int64_t count = min(n - i, kSumBlock);
      for (int64_t k = 0; k < count; k++) {
        const int64_t at = (table_.first[o] - first) * pixel_ + channel;
        sum_columns(sums + k * kResizeGroup, wide_ + at * kResizeGroup, pixel_ * kResizeGroup,
                    &table_.at(o, 0), table_.tap_step, table_.count[o], shift_);
        if (++channel < pixel_) continue;
        channel = 0;
        o++;
      }
      narrow_columns(narrow, sums, count * kResizeGroup);
      for (int64_t r = 0; r < kResizeGroup; r += 8) to_rows(to + r, narrow + r, count);
      for (int64_t r = 0; r < kResizeGroup; r++) to[r] += count;
    }
  }

  const ResizeTable<int32_t> table_;
  const int32_t shift_;
  const int64_t in_, out_, pixel_, block_;
  int32_t* wide_;   // [span][pixel][kResizeGroup]
  uint8_t* bytes_;  // as wide_
};

TT_ISA_END
