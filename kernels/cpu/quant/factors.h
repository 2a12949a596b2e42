// Numbers of a block that are not its integers: float16, and factors of 6 bits.
#pragma once

#include "kernels/cpu/quant/blocks.h"
#include "kernels/cpu/simd/vec.h"

TT_ISA_BEGIN

constexpr uint64_t kEachByte = 0x0101010101010101u;

template <class T> TT_INLINE T read_as(const char* p) {
  T v;
  memcpy(&v, p, sizeof v);
  return v;
}
TT_INLINE float half_at(const char* p) { return f16_value(read_as<uint16_t>(p)); }

// Sixteen bytes.
struct TwoWords {
  uint64_t low, high;
};
// The factors of q3_k plus 32. Bytes 0 to 7 have the low nibbles of factors 0 to 7 and 8 to 15;
// bytes 8 to 11 two more bits of factors i, i + 4, i + 8, i + 12.
TT_INLINE TwoWords q3k_factors(const char* b) {
  constexpr uint64_t kFour = 15 * kEachByte;
  constexpr uint64_t kTwo = 3 * kEachByte;
  const auto nibbles = read_as<uint64_t>(b);
  const uint64_t bits = read_as<uint32_t>(b + 8);
  const uint64_t both = bits | bits >> 2 << 32;
  return {(nibbles & kFour) | (both & kTwo) << 4, (nibbles >> 4 & kFour) | (both >> 4 & kTwo) << 4};
}
// Those of q4_k and q5_k, of 32 numbers each: eight of scales (low), eight of shifts (high).
TT_INLINE TwoWords k_factors(const char* b) {
  constexpr uint32_t kSix = 0x3f3f3f3fu, kFour = 0x0f0f0f0fu, kTwo = 0x30303030u;
  const auto of_scale = read_as<uint32_t>(b);
  const auto of_shift = read_as<uint32_t>(b + 4);
  const auto rest = read_as<uint32_t>(b + 8);
  const uint64_t scales = (rest & kFour) | (of_scale >> 2 & kTwo);
  const uint64_t shifts = (rest >> 4 & kFour) | (of_shift >> 2 & kTwo);
  return {(of_scale & kSix) | scales << 32, (of_shift & kSix) | shifts << 32};
}
// Those of iq4_xs plus 32, of 32 numbers each: two bits of each, then four.
TT_INLINE uint64_t xs_factors(const char* b) {
  uint64_t two = read_as<uint16_t>(b);
  two = (two | two << 24) & 0x000000ff000000ffu;
  two = (two | two << 12) & 0x000f000f000f000fu;
  two = (two | two << 6) & 3 * kEachByte;
  uint64_t four = read_as<uint32_t>(b + 2);
  four = (four | four << 16) & 0x0000ffff0000ffffu;
  four = (four | four << 8) & 0x00ff00ff00ff00ffu;
  four = (four | four << 4) & 15 * kEachByte;
  return four | two << 4;
}

TT_ISA_END
