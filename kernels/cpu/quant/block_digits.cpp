// One row times a matrix of q4_0 blocks, by dot products of bytes: the digits of the row's integers
// (quant_plan.h) and the nibbles of the matrix. A lane of a vector is four bytes of nibbles, a
// quarter of a block:
//   bytes of the block    0 … 3      4 … 7      8 … 11      12 … 15
//   low nibbles           0 … 3      4 … 7      8 … 11      12 … 15     numbers of the block
//   high nibbles          16 … 19    20 … 23    24 … 27     28 … 31
//   lane                  ((a * 256) + b) * 256 + c - 8 * sum of the eight integers
// With TT_NIBBLE_PAIRS the sums of two lanes are added as words, so that a vector has the products
// of eight blocks: half of a block is a lane. Rows are split for span_digits.cpp, too.
#include "kernels/cpu/quant/digits.h"

TT_ISA_BEGIN

#if TT_NIBBLE_DOT

using Floats = Vec<float>;
using Ints = Vec<int32_t>;
static_assert(kQuadStep == kQ4Bytes);

// ---- the row as digits ----

constexpr int32_t kMaxInteger = (127 * 256 + 127) * 256 + 127;
// Biased: a scale times that of a block stays normal, and the sum of a group is finite.
constexpr int32_t kMinExponent = 47, kMaxExponent = 250;

TT_INLINE void split_digits(const int32_t* q, int8_t (*digits)[kBlockItems]) {
  for (int64_t i = 0; i < kBlockItems; i++) {
    const auto c = int8_t(q[i]);
    const int32_t rest = (q[i] - c) >> 8;
    const auto b = int8_t(rest);
    digits[0][i] = int8_t((rest - b) >> 8);
    digits[1][i] = b;
    digits[2][i] = c;
  }
}

struct DigitBlock {
  int32_t format;
  int8_t* at;     // of the block in the first plane
  int64_t plane;  // bytes from a plane to the next
  int64_t index;
  float* scale;

  void store_integers(const int32_t* q) const {
    constexpr int64_t kHalf = kBlockItems / 2;
    alignas(64) int8_t digits[3][kBlockItems];
    split_digits(q, digits);
    for (int64_t d = 0; d < 3; d++) {
      memcpy(at + 2 * d * plane, digits[d], kHalf);
      memcpy(at + (2 * d + 1) * plane, digits[d] + kHalf, kHalf);
    }
    int32_t offsets[4];
    for (int64_t lane = 0; lane < 4; lane++) {
      int32_t sum = 0;
      for (int64_t i = 4 * lane; i < 4 * lane + 4; i++) sum += q[i] + q[kHalf + i];
      offsets[lane] = -8 * sum;
    }
    if (TT_NIBBLE_PAIRS) store_pairs(offsets);
    else memcpy(at + kOffsetPlane * plane, offsets, sizeof offsets);
  }
#if TT_NIBBLE_PAIRS
  // The same for spans: integers and digits in the order of the numbers.
  void store_straight(const int32_t* q) const {
    alignas(64) int8_t digits[3][kBlockItems];
    split_digits(q, digits);
    int8_t* const to = at + index * (kBlockItems / 2);  // planes are twice as wide
    for (int64_t d = 0; d < 3; d++) memcpy(to + 2 * d * plane, digits[d], kBlockItems);
    int32_t offsets[kBlockItems / 4];
    float groups[2][2];
    for (int64_t g = 0; g < 2; g++) {
      int32_t all = 0;
      for (int64_t lane = 4 * g; lane < 4 * g + 4; lane++) {
        int32_t sum = 0;
        for (int64_t i = 4 * lane; i < 4 * lane + 4; i++) sum += q[i];
        offsets[lane] = -digit_offset(format) * sum;
        all += sum;
      }
      groups[0][g] = *scale;
      groups[1][g] = float(all) * *scale;
    }
    memcpy(to + kOffsetPlane * plane, offsets, sizeof offsets);
    // Of 16 groups the scales, then the sums.
    int8_t* const eight = at + kGroupPlane * plane - index % 8 * (kBlockItems / 2);
    for (int64_t i = 0; i < 2; i++)
      memcpy(eight + (i * 8 + index % 8) * int64_t(sizeof groups[i]), groups[i], sizeof groups[i]);
  }
#endif
  // Offsets of eight blocks in the order of add_pairs, then their scales.
  void store_pairs(const int32_t* offsets) const {
    constexpr int64_t kEight = 8 * sizeof(int32_t);
    const int32_t of_pairs[2] = {offsets[0] + offsets[1], offsets[2] + offsets[3]};
    const float scales[2] = {*scale, *scale};
    int8_t* const eight = at + kOffsetPlane * plane - index % 8 * (kBlockItems / 2);
    int8_t* const two = eight + (index % 4 * 2 + index / 4 % 2) * int64_t(sizeof of_pairs);
    memcpy(two, of_pairs, sizeof of_pairs);
    memcpy(two + 2 * kEight, scales, sizeof scales);
  }
  void split(const float* x) const {
    alignas(64) int32_t q[kBlockItems] = {};
    uint32_t largest = 0;
    for (int64_t i = 0; i < kBlockItems; i++)
      largest = max(largest, bit_cast<uint32_t>(x[i]) & 0x7fffffffu);
    const auto exponent = int32_t(largest >> 23);
    *scale = largest ? float(kNan) : 0.0f;
    if (exponent >= kMinExponent && exponent < kMaxExponent) {
      // The largest number becomes half its mantissa, or a quarter if that is too large.
      const auto mantissa = int32_t((largest & 0x7fffffu) | 0x800000u);
      const int32_t less = mantissa > 2 * kMaxInteger;
      const int32_t steps = 22 + 127 - exponent - less;
      const float factor = bit_cast<float>(uint32_t(127 + steps) << 23);
      if (round_all(x, factor, q)) *scale = bit_cast<float>(uint32_t(127 - steps) << 23);
    }
#if TT_NIBBLE_PAIRS
    if (format != kBlockQ4_0) return store_straight(q);
#endif
    store_integers(q);
  }
  // Returns whether the sum of rounding errors is at most 2^-15 of the sum of all numbers but the
  // largest one.
  static bool round_all(const float* x, float factor, int32_t* q) {
    int32_t lost = 0;  // in 2^-8
    int32_t total = 0;
    int32_t largest = 0;
    for (int64_t i = 0; i < kBlockItems; i++) {
      const float whole = x[i] * factor;
      q[i] = int32_t(whole + (whole < 0 ? -0.5f : 0.5f));
      const auto rest = int32_t((whole - float(q[i])) * 256);
      const int32_t size = q[i] < 0 ? -q[i] : q[i];
      lost += rest < 0 ? -rest : rest;
      total += size;
      largest = max(largest, size);
    }
    return lost << (15 - 8) <= total - largest;
  }
};

float* digit_scales(const BlockPlan& p) {
  return reinterpret_cast<float*>(p.digits + kScalePlane * digit_plane(p.k));
}

void split_row(const BlockPlan& p, int64_t begin, int64_t end) {
  const int64_t blocks = p.k / kBlockItems;
  const float zeros[kBlockItems] = {};
  for (int64_t b = begin * kDigitRun; b < end * kDigitRun; b++) {
    const DigitBlock block = {
        .format = p.format,
        .at = p.digits + b * (kBlockItems / 2),
        .plane = digit_plane(p.k),
        .index = b,
        .scale = digit_scales(p) + b,
    };
    block.split(b < blocks ? p.input + b * kBlockItems : zeros);
  }
}

bool expresses_row(const BlockPlan& p) {
  const float* const scales = digit_scales(p);
  bool all = true;
  for (int64_t b = 0; b < digit_blocks(p.k); b++) all &= scales[b] == scales[b];
  return all;
}

// ---- products ----

// Stores columns [j, j + kCols) of the result.
template <int kCols> TT_INLINE void store_sums(const BlockPlan& p, int64_t j, const Floats* acc) {
  TT_UNROLL
  for (int c = 0; c < kCols; c++) store_lanes(p, j + c, acc[c]);
}

#if TT_NIBBLE_PAIRS

constexpr int64_t kRun = 8;  // blocks of a step
constexpr int64_t kRunBytes = kRun * kQ4Bytes;
// Rows that are read together are contiguous. The bytes kFar behind them are prefetched in order:
// no line is fetched twice.
constexpr int64_t kFar = 36 << 10;
constexpr int64_t kLine = 64;
static_assert(kDigitRun % kRun == 0);

// kRun blocks of kCols rows of the matrix.
template <int kCols> struct DigitRun {
  const char* bytes;  // of the first row
  int64_t row;        // bytes from a row to the next
  const char* ahead;  // kCols * kRunBytes bytes that are prefetched
  const int8_t* digits;
  int64_t plane;

  TT_INLINE Ints digit(int g, int i) const {
    return load(reinterpret_cast<const int32_t*>(digits + i * plane + g * int64_t(sizeof(Ints))));
  }
  TT_INLINE void add(Floats* acc) const {
    const Ints mask = splat(int32_t(0x0f0f0f0f));
    const Floats of_digits =
        load(reinterpret_cast<const float*>(digits + kOffsetPlane * plane + sizeof(Ints)));
    TT_UNROLL
    for (int64_t i = 0; i < kCols * kRunBytes; i += kLine) TT_PREFETCH_L2(ahead + i);
    TT_UNROLL
    for (int c = 0; c < kCols; c++) {
      const char* const at = bytes + c * row;
      Ints a[2];
      Ints b[2];
      Ints last[2];
      TT_UNROLL
      for (int g = 0; g < 2; g++) {
        const Ints pairs = load_quads(at + 2 + g * (kRunBytes / 2));
        const Ints low = pairs & mask;
        const Ints high = (pairs >> 4) & mask;
        a[g] = dot_nibbles(Ints{}, low, digit(g, 0), high, digit(g, 1));
        b[g] = dot_nibbles(Ints{}, low, digit(g, 2), high, digit(g, 3));
        last[g] = dot_nibbles(Ints{}, low, digit(g, 4), high, digit(g, 5));
      }
      Ints sum = add_pairs(Ints{}, a[0], a[1], 256);
      sum = add_pairs(sum, b[0], b[1], 1) << 8;
      sum = add_pairs(sum + digit(0, kOffsetPlane), last[0], last[1], 1);
      acc[c] = fma(converted<Floats>(sum), load_pair_scales(at) * of_digits, acc[c]);
    }
  }
};

// Columns [j, j + kCols) of the result.
template <int kCols> void digit_dots(const BlockPlan& p, int64_t j) {
  const int64_t blocks = p.k / kBlockItems;
  const int64_t row = blocks * kQ4Bytes;
  Floats acc[kCols] = {};
  DigitRun<kCols> run = {
      .bytes = p.packed + j * row,
      .row = row,
      .ahead = p.packed + (j + kCols) * row + kFar,
      .digits = p.digits,
      .plane = digit_plane(p.k),
  };
  for (int64_t left = blocks; left >= kRun; left -= kRun) {
    run.add(acc);
    run.bytes += kRunBytes;
    run.ahead += kCols * kRunBytes;
    run.digits += kRun * (kBlockItems / 2);
  }
  if (const int64_t left = blocks % kRun) {  // filled up with zeros
    alignas(64) char last[kCols][kRunBytes] = {};
    for (int c = 0; c < kCols; c++) memcpy(last[c], run.bytes + c * row, size_t(left * kQ4Bytes));
    run.bytes = last[0];
    run.row = kRunBytes;
    run.add(acc);
  }
  store_sums<kCols>(p, j, acc);
}

#else

constexpr int kL = kLanes<float>;
constexpr int kQuads = kL / 4;  // blocks of a vector
constexpr int kVectors = int(kDigitRun) / kL;
constexpr int64_t kFar = 64 << 10;  // bytes that are prefetched, at most
constexpr int64_t kRunBytes = kDigitRun * kQ4Bytes;

// Scales of the blocks [b, b + n) of kCols rows.
template <int kCols> TT_INLINE void fetch_scales(const char* bytes, int64_t row, int64_t b,
                                                 int64_t n, F16 (*to)[kDigitRun]) {
  for (int64_t i = b; i < b + n; i++) {
    const char* const block = bytes + i * kQ4Bytes;
    TT_UNROLL
    for (int c = 0; c < kCols; c++) memcpy(&to[c][i], block + c * row, sizeof(F16));
  }
}

// kDigitRun blocks of kCols rows of the matrix.
template <int kCols> struct DigitRun {
  const char* bytes;  // of the first row
  int64_t row;        // bytes from a row to the next
  int64_t ahead;      // bytes from a block to the one that is read kCols rows later
  const int8_t* digits;
  int64_t plane;
  const float* of_digits;
  const F16 (*scales)[kDigitRun] = nullptr;
  const char* next = nullptr;  // the run whose scales are loaded
  F16 (*next_scales)[kDigitRun] = nullptr;

  TT_INLINE Ints digit(int64_t block, int i) const {
    const int8_t* const at = digits + i * plane + block * (kBlockItems / 2);
    return load(reinterpret_cast<const int32_t*>(at));
  }
  // Group g of vector v.
  template <int v, int g> TT_INLINE void add_group(const Floats* of_vector, Floats* acc) const {
    constexpr int64_t kBlock = v * kL + g * kQuads;
    fetch_scales<kCols>(next, row, kBlock, kQuads, next_scales);
    const Ints mask = splat(int32_t(0x0f0f0f0f));
    TT_UNROLL
    for (int c = 0; c < kCols; c++) {
      const char* const at = bytes + c * row + kBlock * kQ4Bytes;
      TT_UNROLL
      for (int b = 0; b < kQuads; b += 2) TT_PREFETCH_L2(at + ahead + b * kQ4Bytes);
      const Ints pairs = load_quads(at + 2);
      const Ints low = pairs & mask;
      const Ints high = (pairs >> 4) & mask;
      Ints sum = dot_nibbles(Ints{}, low, digit(kBlock, 0), high, digit(kBlock, 1)) << 8;
      sum = dot_nibbles(sum, low, digit(kBlock, 2), high, digit(kBlock, 3)) << 8;
      sum = dot_nibbles(sum, low, digit(kBlock, 4), high, digit(kBlock, 5));
      sum += digit(kBlock, kOffsetPlane);
      acc[c] = fma(converted<Floats>(sum), spread_quads<g>(of_vector[c]), acc[c]);
    }
  }
  template <int v> TT_INLINE void add_vector(Floats* acc) const {
    Floats of_vector[kCols];
    TT_UNROLL
    for (int c = 0; c < kCols; c++)
      of_vector[c] = load_f16(scales[c] + v * kL) * load(of_digits + v * kL);
    add_group<v, 0>(of_vector, acc);
    add_group<v, 1>(of_vector, acc);
    add_group<v, 2>(of_vector, acc);
    add_group<v, 3>(of_vector, acc);
    if constexpr (v + 1 < kVectors) add_vector<v + 1>(acc);
  }
};

// Columns [j, j + kCols) of the result.
template <int kCols> void digit_dots(const BlockPlan& p, int64_t j) {
  const int64_t blocks = p.k / kBlockItems;
  const int64_t row = blocks * kQ4Bytes;
  alignas(64) F16 scales[2][kCols][kDigitRun];
  Floats acc[kCols] = {};
  DigitRun<kCols> run = {
      .bytes = p.packed + j * row,
      .row = row,
      .ahead = min<int64_t>(kCols * row, kFar),
      .digits = p.digits,
      .plane = digit_plane(p.k),
      .of_digits = digit_scales(p),
  };
  // The scales of the next run are fetched while one is computed: a vector that is loaded right
  // behind the stores of its elements would wait for them.
  fetch_scales<kCols>(run.bytes, row, 0, kDigitRun, scales[0]);
  alignas(64) char last[kCols][kRunBytes];
  int64_t i = 0;
  for (int64_t left = blocks; left > 0; left -= kDigitRun, i ^= 1) {
    if (left < kDigitRun) {  // filled up with zeros
      memset(last, 0, sizeof last);
      for (int c = 0; c < kCols; c++) memcpy(last[c], run.bytes + c * row, size_t(left * kQ4Bytes));
      fetch_scales<kCols>(last[0], kRunBytes, 0, kDigitRun, scales[i]);
      run.bytes = last[0];
      run.row = kRunBytes;
      run.ahead = 0;
    }
    run.scales = scales[i];
    run.next = left >= 2 * kDigitRun ? run.bytes + kRunBytes : run.bytes;
    run.next_scales = scales[i ^ 1];
    run.template add_vector<0>(acc);
    run.bytes += kRunBytes;
    run.digits += kDigitRun * (kBlockItems / 2);
    run.of_digits += kDigitRun;
  }
  store_sums<kCols>(p, j, acc);
}

#endif

#endif

TT_ISA_END

TT_ENTRY_BEGIN
#if TT_NIBBLE_DOT
bool block_digits(const BlockPlan& p, int64_t begin, int64_t end) noexcept {
  int32_t isa = kIsaBaseline;
  if (TT_VEC_BYTES == 32) isa = kIsaAvx2;
  if (TT_VEC_BYTES == 64) isa = kIsaAvx512;
  if (!(p.dots >> isa & 1)) return false;
  const bool spans = p.format != kBlockQ4_0;
  if (spans && !TT_NIBBLE_PAIRS) return false;
  if (p.run.stage == 0) {
    split_row(p, begin, end);
    return true;
  }
  if (!expresses_row(p)) return false;
  const int64_t last = min(p.n, end * kBlockColumns);
  int64_t j = begin * kBlockColumns;
  if (spans) {
    span_digits(p, j, last);
    return true;
  }
  for (; j + 4 <= last; j += 4) digit_dots<4>(p, j);
  for (; j < last; j++) digit_dots<1>(p, j);
  return true;
}
#else
bool block_digits(const BlockPlan&, int64_t, int64_t) noexcept { return false; }
#endif
TT_ENTRY_END
