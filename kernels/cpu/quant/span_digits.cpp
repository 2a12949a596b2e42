// One row times a matrix of blocks, by dot products of bytes, for formats but q4_0. A span of kSpan
// numbers is four vectors of unsigned bytes, each beside the digits of as many numbers of the row.
// A lane is four numbers:
//   ((a * 256) + b) * 256 + c - digit_offset * (the sum of the row's four integers)
// where a, b and c are sums of products of bytes and digits; the last term comes with the digits.
// Four lanes are a group, whose scale they are multiplied by. Its shift is multiplied by the sum of
// the row's numbers. Products with integers of 8 bits would not fit in lanes: the upper and the
// lower four bits of these are bytes of their own.
#include "kernels/cpu/quant/digits.h"
#include "kernels/cpu/quant/factors.h"

TT_ISA_BEGIN

#if TT_NIBBLE_PAIRS

using Floats = Vec<float>;
using Ints = Vec<int32_t>;
using Bits = Vec<uint64_t>;         // 64 bytes
using Table = Vector<uint64_t, 2>;  // 16 bytes
constexpr int kL = kLanes<float>;
constexpr int kVectors = int(kSpan) / TT_VEC_BYTES;
constexpr int64_t kFar = 8 << 10;  // bytes that are prefetched
constexpr int64_t kLine = 64;

// ---- bytes ----

// Of each byte of the first and of the second half of v the `bits`, moved down by two counts, or
// up if they are negative.
template <int kFirst, int kSecond> TT_INLINE Bits moved(Bits v, uint64_t bits) {
  constexpr bool kUp = kFirst < 0 || kSecond < 0;
  constexpr auto a = uint64_t(kUp ? -kFirst : kFirst);
  constexpr auto b = uint64_t(kUp ? -kSecond : kSecond);
  const Bits counts = {a, a, a, a, b, b, b, b};
  return (kUp ? v << counts : v >> counts) & bits * kEachByte;
}
// The nibbles of 16 bytes at p, the low ones first, then of those at q.
TT_INLINE Bits nibbles_of_two(const char* p, const char* q) {
  const Bits counts = {0, 0, 4, 4, 0, 0, 4, 4};
  return load_two(p, q) >> counts & 15 * kEachByte;
}
// Adds 16 to numbers of two blocks whose fifth bits at p and at q are set.
TT_INLINE Bits add_fifth(Bits v, const char* p, const char* q) {
  return add_where(v, read_as<uint32_t>(p) | uint64_t(read_as<uint32_t>(q)) << 32, 16);
}

// ---- factors, a lane for each group ----

struct Factors {
  Floats scale;
  Floats shift = Floats{};
};
// A float16 for each two lanes: eight of them, `step` bytes apart.
TT_INLINE Floats halves_apart(const char* p, int64_t step) {
  uint64_t words[2] = {};
  TT_UNROLL
  for (int64_t i = 0; i < 8; i++)
    words[i / 4] |= uint64_t(read_as<uint16_t>(p + i * step)) << 16 * uint64_t(i % 4);
  return spread_eight(eight_halves(words[0], words[1]));
}
// Bytes, less `offset`, for each two lanes.
TT_INLINE Floats spread_bytes(uint64_t v, float factor, int32_t offset = 0) {
  const auto lanes = converted<Vector<float, 8>>(eight_bytes(v) - offset);
  return spread_eight(lanes * factor);
}

// ---- formats: bytes<v>(b) is vector v of the span at b, factors(b) are those of its groups ----

// Their bytes are nibbles that select integers of 8 bits, with upper_half() and lower_half().
constexpr bool has_halves(int32_t format) { return format == kBlockIq4Nl || format == kBlockIq4Xs; }

// A block is 32 numbers, kBytes long, of which the last 16 are nibbles.
template <int32_t format, int64_t bytes_of_block> struct SmallBlocks {
  static constexpr int32_t kFormat = format;
  static constexpr int64_t kBytes = bytes_of_block;
  template <int v> static TT_INLINE Bits nibbles(const char* b) {
    const char* const end = b + (2 * v + 1) * kBytes;
    return nibbles_of_two(end - 16, end + kBytes - 16);
  }
};
struct BytesOfQ4_1 : SmallBlocks<kBlockQ4_1, 20> {
  static constexpr bool kShifts = true;
  template <int v> static TT_INLINE Bits bytes(const char* b) { return nibbles<v>(b); }
  static TT_INLINE Factors factors(const char* b) {
    return {halves_apart(b, kBytes), halves_apart(b + 2, kBytes)};
  }
};
struct BytesOfQ5_0 : SmallBlocks<kBlockQ5_0, 22> {
  static constexpr bool kShifts = false;
  template <int v> static TT_INLINE Bits bytes(const char* b) {
    const char* const fifth = b + 2 * v * kBytes + 2;
    return add_fifth(nibbles<v>(b), fifth, fifth + kBytes);
  }
  static TT_INLINE Factors factors(const char* b) { return {halves_apart(b, kBytes)}; }
};
struct BytesOfQ5_1 : SmallBlocks<kBlockQ5_1, 24> {
  static constexpr bool kShifts = true;
  template <int v> static TT_INLINE Bits bytes(const char* b) {
    const char* const fifth = b + 2 * v * kBytes + 4;
    return add_fifth(nibbles<v>(b), fifth, fifth + kBytes);
  }
  static TT_INLINE Factors factors(const char* b) {
    return {halves_apart(b, kBytes), halves_apart(b + 2, kBytes)};
  }
};
// Of a table of bytes the upper four bits, plus 8, and the lower ones.
constexpr uint64_t upper_halves(uint64_t table) {
  return (table >> 4 & 15 * kEachByte) ^ 8 * kEachByte;
}
constexpr uint64_t lower_halves(uint64_t table) { return table & 15 * kEachByte; }
struct HalvesOfIq4 {
  static constexpr bool kShifts = false;
  static TT_INLINE Bits upper_half(Bits nibbles) {
    return byte_entries(Table{upper_halves(kIq4Low), upper_halves(kIq4High)}, nibbles);
  }
  static TT_INLINE Bits lower_half(Bits nibbles) {
    return byte_entries(Table{lower_halves(kIq4Low), lower_halves(kIq4High)}, nibbles);
  }
};
struct BytesOfIq4Nl : SmallBlocks<kBlockIq4Nl, 18>, HalvesOfIq4 {
  template <int v> static TT_INLINE Bits bytes(const char* b) { return nibbles<v>(b); }
  static TT_INLINE Factors factors(const char* b) { return {halves_apart(b, kBytes)}; }
};
struct BytesOfMxfp4 : SmallBlocks<kBlockMxfp4, 17> {
  static constexpr bool kShifts = false;
  // Eight entries of the table, each as an unsigned byte.
  static constexpr uint64_t unsigned_entries(uint64_t table) {
    uint64_t out = 0;
    for (int i = 0; i < 64; i += 8)
      out |= uint64_t(uint8_t((table >> i) + uint64_t(digit_offset(kFormat)))) << i;
    return out;
  }
  template <int v> static TT_INLINE Bits bytes(const char* b) {
    constexpr uint64_t kLow = unsigned_entries(kMxfp4Low);
    constexpr uint64_t kHigh = unsigned_entries(kMxfp4High);
    return byte_entries(Table{kLow, kHigh}, nibbles<v>(b));
  }
  static TT_INLINE Factors factors(const char* b) {
    uint64_t exponents = 0;
    TT_UNROLL
    for (int64_t i = 0; i < 8; i++)
      exponents |= uint64_t(uint8_t(b[i * kBytes])) << 8 * uint64_t(i);
    // 2^(e - 128), since the entries are twice the numbers; subnormal below 2.
    const Vector<int32_t, 8> e = eight_bytes(exponents);
    const Vector<int32_t, 8> powers = chosen(e < 2, (e + 1) << 21, (e - 1) << 23);
    return {spread_eight(Vector<float, 8>(powers))};
  }
};

// Two bits of each number: four fields of 32 bytes are 128 numbers.
template <int v> TT_INLINE Bits two_bits(const char* p) {
  constexpr int kFirst = v % 2 * 4;
  return moved<kFirst, kFirst + 2>(load_twice(p + 32 * (v / 2)), 3);
}
struct BytesOfQ2K {
  static constexpr int32_t kFormat = kBlockQ2K;
  static constexpr bool kShifts = true;
  template <int v> static TT_INLINE Bits bytes(const char* b) { return two_bits<v>(b + 16); }
  static TT_INLINE Factors factors(const char* b) {
    const Ints both = load_u8(b);
    const auto scales = converted<Floats>(both & 15);
    const auto shifts = converted<Floats>(both >> 4);
    return {scales * splat(half_at(b + 80)), shifts * splat(-half_at(b + 82))};
  }
};
// The third bits of 32 numbers are one of each of 32 bytes.
struct BytesOfQ3K {
  static constexpr int32_t kFormat = kBlockQ3K;
  static constexpr bool kShifts = false;
  template <int v> static TT_INLINE Bits bytes(const char* b) {
    return two_bits<v>(b + 32) | moved<2 * v - 2, 2 * v - 1>(load_twice(b), 4);
  }
  static TT_INLINE Factors factors(const char* b) {
    const TwoWords v = q3k_factors(b + 96);
    const Ints factors = sixteen_bytes(v.low, v.high) - 32;
    return {converted<Floats>(factors) * splat(half_at(b + 108))};
  }
};
TT_INLINE Factors factors_of_k(const char* b) {
  const TwoWords v = k_factors(b + 4);
  return {spread_bytes(v.low, half_at(b)), spread_bytes(v.high, -half_at(b + 2))};
}
struct BytesOfQ4K {
  static constexpr int32_t kFormat = kBlockQ4K;
  static constexpr bool kShifts = true;
  template <int v> static TT_INLINE Bits bytes(const char* b) {
    return moved<0, 4>(load_twice(b + 16 + 32 * v), 15);
  }
  static TT_INLINE Factors factors(const char* b) { return factors_of_k(b); }
};
struct BytesOfQ5K {
  static constexpr int32_t kFormat = kBlockQ5K;
  static constexpr bool kShifts = true;
  template <int v> static TT_INLINE Bits bytes(const char* b) {
    const Bits fifth = moved<2 * v - 4, 2 * v - 3>(load_twice(b + 16), 16);
    return moved<0, 4>(load_twice(b + 48 + 32 * v), 15) | fifth;
  }
  static TT_INLINE Factors factors(const char* b) { return factors_of_k(b); }
};
struct BytesOfQ6K {
  static constexpr int32_t kFormat = kBlockQ6K;
  static constexpr bool kShifts = false;
  template <int v> static TT_INLINE Bits bytes(const char* b) {
    constexpr int kNibble = v % 2 * 4;
    const auto low = read_as<Bits>(b + 64 * (v / 2));
    const Bits high = load_twice(b + 128 + 32 * (v / 2));
    return moved<kNibble, kNibble>(low, 15) | moved<kNibble - 4, kNibble - 2>(high, 48);
  }
  static TT_INLINE Factors factors(const char* b) {
    return {converted<Floats>(load_i8(b + 192)) * splat(half_at(b + 208))};
  }
};

struct BytesOfIq4Xs : HalvesOfIq4 {
  static constexpr int32_t kFormat = kBlockIq4Xs;
  template <int v> static TT_INLINE Bits bytes(const char* b) {
    return nibbles_of_two(b + 8 + 32 * v, b + 24 + 32 * v);
  }
  static TT_INLINE Factors factors(const char* b) {
    return {spread_bytes(xs_factors(b + 2), half_at(b), 32)};
  }
};

// ---- products ----

// A span's part of the digits.
struct SpanDigits {
  const int8_t* straight;  // of its first block
  const int8_t* groups;
  int64_t plane;

  TT_INLINE Ints digit(int d, int v) const {
    return load(reinterpret_cast<const int32_t*>(straight + 2 * d * plane) + v * kL);
  }
  TT_INLINE Floats of_groups(int i) const {
    return load(reinterpret_cast<const float*>(groups) + i * kL);
  }
  TT_INLINE void advance() {
    straight += kSpan;
    groups += 2 * sizeof(Floats);
  }
};
// Sums of products of bytes and the integers of the row beside vector v.
TT_INLINE Ints dot_digits(Bits of_weight, const SpanDigits& x, int v) {
  const auto bytes = Ints(of_weight);
  Ints sum = dot_bytes(Ints{}, bytes, x.digit(0, v)) << 8;
  sum = dot_bytes(sum, bytes, x.digit(1, v)) << 8;
  return dot_bytes(sum, bytes, x.digit(2, v));
}
template <class Format> TT_INLINE Floats lane_sums(Bits bytes, const SpanDigits& x, int v) {
  if constexpr (has_halves(Format::kFormat)) {
    const Ints upper = dot_digits(Format::upper_half(bytes), x, v) + x.digit(3, v);
    const Ints lower = dot_digits(Format::lower_half(bytes), x, v);
    return fma(converted<Floats>(upper), splat(16.0f), converted<Floats>(lower));
  } else {
    Ints sum = dot_digits(bytes, x, v);
    if constexpr (digit_offset(Format::kFormat) != 0) sum += x.digit(3, v);
    return converted<Floats>(sum);
  }
}
template <class Format, int v>
TT_INLINE void add_vector(const char* b, const SpanDigits& x, Floats scales, Floats& acc) {
  const Ints lane = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3};
  const Floats sums = lane_sums<Format>(Format::template bytes<v>(b), x, v);
  acc = fma(sums, permute(scales, scales, Ints(lane + 4 * v)), acc);
  if constexpr (v + 1 < kVectors) add_vector<Format, v + 1>(b, x, scales, acc);
}
template <class Format> TT_INLINE Floats add_span(const char* b, const SpanDigits& x, Floats acc) {
  const Factors factors = Format::factors(b);
  if constexpr (Format::kShifts) acc = fma(factors.shift, x.of_groups(1), acc);
  add_vector<Format, 0>(b, x, factors.scale * x.of_groups(0), acc);
  return acc;
}

// Columns [begin, end) of the result.
template <class Format> void span_columns(const BlockPlan& p, int64_t begin, int64_t end) {
  const int64_t bytes = packed_bytes(Format::kFormat, kSpan);
  const int64_t rest = packed_bytes(Format::kFormat, p.k % kSpan);
  const int64_t plane = digit_plane(p.k);
  const char* from = p.packed + packed_bytes(Format::kFormat, begin * p.k);
  alignas(64) char last[kSpan] = {};  // filled up with zeros
  for (int64_t j = begin; j < end; j++) {
    SpanDigits x = {.straight = p.digits, .groups = p.digits + kGroupPlane * plane, .plane = plane};
    Floats acc[2] = {};  // of even and odd spans
    for (int64_t left = p.k; left >= kSpan; left -= kSpan, from += bytes) {
      for (int64_t i = 0; i < bytes; i += kLine) TT_PREFETCH_L2(from + kFar + i);
      const Floats sum = add_span<Format>(from, x, acc[0]);
      acc[0] = acc[1];
      acc[1] = sum;
      x.advance();
    }
    if (rest) {
      memcpy(last, from, size_t(rest));
      from += rest;
      acc[0] = add_span<Format>(last, x, acc[0]);
    }
    store_lanes(p, j, acc[0] + acc[1]);
  }
}

#endif

TT_ISA_END

TT_ENTRY_BEGIN
#if TT_NIBBLE_PAIRS
void span_digits(const BlockPlan& p, int64_t begin, int64_t end) noexcept {
  switch (p.format) {
    case kBlockQ4_1: return span_columns<BytesOfQ4_1>(p, begin, end);
    case kBlockQ5_0: return span_columns<BytesOfQ5_0>(p, begin, end);
    case kBlockQ5_1: return span_columns<BytesOfQ5_1>(p, begin, end);
    case kBlockQ2K: return span_columns<BytesOfQ2K>(p, begin, end);
    case kBlockQ3K: return span_columns<BytesOfQ3K>(p, begin, end);
    case kBlockQ4K: return span_columns<BytesOfQ4K>(p, begin, end);
    case kBlockQ5K: return span_columns<BytesOfQ5K>(p, begin, end);
    case kBlockQ6K: return span_columns<BytesOfQ6K>(p, begin, end);
    case kBlockIq4Nl: return span_columns<BytesOfIq4Nl>(p, begin, end);
    case kBlockIq4Xs: return span_columns<BytesOfIq4Xs>(p, begin, end);
    default: return span_columns<BytesOfMxfp4>(p, begin, end);
  }
}
#else
void span_digits(const BlockPlan&, int64_t, int64_t) noexcept {}
#endif
TT_ENTRY_END
