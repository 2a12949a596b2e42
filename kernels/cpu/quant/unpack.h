// The blocks of every format as integers with scales, for unpack_span.
#pragma once

#include "kernels/cpu/quant/factors.h"
#include "kernels/cpu/quant/span.h"
#include "kernels/cpu/simd/load.h"

TT_ISA_BEGIN

using Longs = Vector<uint64_t, 4>;  // 32 bytes
using Pair = Vector<uint64_t, 2>;   // 16 bytes

// Of each byte the bits from `shift` on that `bits` has.
template <class V> TT_INLINE V field(V v, uint64_t shift, uint64_t bits) {
  return (v >> shift) & bits * kEachByte;
}
// The low nibbles of 16 bytes, then the high ones.
TT_INLINE Longs nibbles_at(const char* p) {
  const auto v = read_as<Pair>(p);
  return field(shuffled<0, 1, 2, 3>(v, v >> uint64_t(4)), 0, 15);
}
// Stores 32 integers of a span, less `offset`.
TT_INLINE void put(BlockSpan& s, int64_t at, Longs v, int8_t offset = 0) {
  const auto q = Vector<int8_t, 32>(v) - offset;
  memcpy(s.q + at, &q, sizeof q);
}
// Scale and shift of 32 numbers.
TT_INLINE void put_scale(BlockSpan& s, int64_t at, float scale, float shift) {
  const int64_t g = at / kGroup;
  s.scale[g] = scale;
  s.scale[g + 1] = scale;
  s.shift[g] = shift;
  s.shift[g + 1] = shift;
}
// 16 factors of 8 bits times d.
TT_INLINE void put_factors(float* out, Pair factors, float d) {
  constexpr int kL = kLanes<float>;
  alignas(16) char bytes[16];
  memcpy(bytes, &factors, sizeof factors);
  for (int i = 0; i < 16; i += kL)
    store(out + i, converted<Vec<float>>(load_i8(bytes + i)) * splat(d));
}
TT_INLINE void put_zeros(float* out) {
  for (int i = 0; i < 16; i += kLanes<float>) store(out + i, Vec<float>{});
}

// ---- blocks of 32 numbers ----

// block(s, at, b) unpacks the block at b to the numbers of s from `at` on.
struct UnpackQ8_0 {
  static TT_INLINE void block(BlockSpan& s, int64_t at, const char* b) {
    put(s, at, read_as<Longs>(b + 2));
    put_scale(s, at, half_at(b), 0);
  }
};
struct UnpackQ4_0 {
  static TT_INLINE void block(BlockSpan& s, int64_t at, const char* b) {
    put(s, at, nibbles_at(b + 2), 8);
    put_scale(s, at, half_at(b), 0);
  }
};
struct UnpackQ4_1 {
  static TT_INLINE void block(BlockSpan& s, int64_t at, const char* b) {
    put(s, at, nibbles_at(b + 4));
    put_scale(s, at, half_at(b), half_at(b + 2));
  }
};
struct UnpackQ5_0 {
  static TT_INLINE void block(BlockSpan& s, int64_t at, const char* b) {
    put(s, at, nibbles_at(b + 6) | byte_bits(b + 2) << uint64_t(4), 16);
    put_scale(s, at, half_at(b), 0);
  }
};
struct UnpackQ5_1 {
  static TT_INLINE void block(BlockSpan& s, int64_t at, const char* b) {
    put(s, at, nibbles_at(b + 8) | byte_bits(b + 4) << uint64_t(4));
    put_scale(s, at, half_at(b), half_at(b + 2));
  }
};
struct UnpackIq4Nl {
  static TT_INLINE void block(BlockSpan& s, int64_t at, const char* b) {
    put(s, at, byte_entries(Pair{kIq4Low, kIq4High}, nibbles_at(b + 2)));
    put_scale(s, at, half_at(b), 0);
  }
};
struct UnpackMxfp4 {
  // 2^(e - 128), since the entries are twice the numbers.
  static TT_INLINE float power(uint8_t e) {
    const uint32_t bits = e < 2 ? 0x200000u << e : uint32_t(e - 1) << 23;
    return bit_cast<float>(bits);
  }
  static TT_INLINE void block(BlockSpan& s, int64_t at, const char* b) {
    put(s, at, byte_entries(Pair{kMxfp4Low, kMxfp4High}, nibbles_at(b + 1)));
    put_scale(s, at, power(uint8_t(b[0])), 0);
  }
};

// ---- blocks of 256 numbers ----

// Four fields of 2 bits of 32 bytes are 128 numbers.
struct UnpackQ2K {
  static TT_INLINE void block(BlockSpan& s, int64_t, const char* b) {
    for (int64_t half = 0; half < 2; half++) {
      const auto two = read_as<Longs>(b + 16 + 32 * half);
      for (int64_t j = 0; j < 4; j++) put(s, 128 * half + 32 * j, field(two, uint64_t(2 * j), 3));
    }
    const auto factors = read_as<Pair>(b);
    put_factors(s.scale, field(factors, 0, 15), half_at(b + 80));
    put_factors(s.shift, field(factors, 4, 15), -half_at(b + 82));
  }
};
struct UnpackQ3K {
  static TT_INLINE Pair factors(const char* b) {
    const TwoWords v = q3k_factors(b);
    return Pair(Vector<int8_t, 16>(Pair{v.low, v.high}) - int8_t(32));
  }
  static TT_INLINE void block(BlockSpan& s, int64_t, const char* b) {
    const auto third = read_as<Longs>(b);
    for (int64_t half = 0; half < 2; half++) {
      const auto two = read_as<Longs>(b + 32 + 32 * half);
      for (int64_t j = 0; j < 4; j++) {
        const Longs high = field(third, uint64_t(4 * half + j), 1);
        put(s, 128 * half + 32 * j, field(two, uint64_t(2 * j), 3) | high << uint64_t(2), 4);
      }
    }
    put_factors(s.scale, factors(b + 96), half_at(b + 108));
    put_zeros(s.shift);
  }
};
// Scales and shifts of q4_k and q5_k.
TT_INLINE void put_k_factors(BlockSpan& s, const char* b) {
  const TwoWords factors = k_factors(b + 4);
  const Pair all = {factors.low, factors.high};
  using Bytes = Vector<uint8_t, 16>;
  const auto v = Bytes(all);
  const Bytes first = shuffled<0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7>(v, v);
  const Bytes second = shuffled<8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15>(v, v);
  put_factors(s.scale, Pair(first), half_at(b));
  put_factors(s.shift, Pair(second), -half_at(b + 2));
}
struct UnpackQ4K {
  static TT_INLINE void block(BlockSpan& s, int64_t, const char* b) {
    for (int64_t j = 0; j < 4; j++) {
      const auto four = read_as<Longs>(b + 16 + 32 * j);
      put(s, 64 * j, field(four, 0, 15));
      put(s, 64 * j + 32, field(four, 4, 15));
    }
    put_k_factors(s, b);
  }
};
struct UnpackQ5K {
  static TT_INLINE void block(BlockSpan& s, int64_t, const char* b) {
    const auto fifth = read_as<Longs>(b + 16);
    for (int64_t j = 0; j < 4; j++) {
      const auto four = read_as<Longs>(b + 48 + 32 * j);
      const Longs first = field(fifth, uint64_t(2 * j), 1);
      const Longs second = field(fifth, uint64_t(2 * j + 1), 1);
      put(s, 64 * j, field(four, 0, 15) | first << uint64_t(4));
      put(s, 64 * j + 32, field(four, 4, 15) | second << uint64_t(4));
    }
    put_k_factors(s, b);
  }
};
struct UnpackQ6K {
  static TT_INLINE void block(BlockSpan& s, int64_t, const char* b) {
    for (int64_t half = 0; half < 2; half++) {
      const auto low = read_as<Longs>(b + 64 * half);
      const auto next = read_as<Longs>(b + 64 * half + 32);
      const auto high = read_as<Longs>(b + 128 + 32 * half);
      const auto upper = [&](uint64_t shift) { return field(high, shift, 3) << uint64_t(4); };
      put(s, 128 * half, field(low, 0, 15) | upper(0), 32);
      put(s, 128 * half + 32, field(next, 0, 15) | upper(2), 32);
      put(s, 128 * half + 64, field(low, 4, 15) | upper(4), 32);
      put(s, 128 * half + 96, field(next, 4, 15) | upper(6), 32);
    }
    put_factors(s.scale, read_as<Pair>(b + 192), half_at(b + 208));
    put_zeros(s.shift);
  }
};
struct UnpackIq4Xs {
  static TT_INLINE void block(BlockSpan& s, int64_t, const char* b) {
    const float d = half_at(b);
    const uint64_t factors = xs_factors(b + 2);
    for (int64_t j = 0; j < 8; j++) {
      const int32_t factor = int32_t(factors >> 8 * j & 63) - 32;
      put(s, 32 * j, byte_entries(Pair{kIq4Low, kIq4High}, nibbles_at(b + 8 + 16 * j)));
      put_scale(s, 32 * j, d * float(factor), 0);
    }
  }
};

TT_ISA_END
