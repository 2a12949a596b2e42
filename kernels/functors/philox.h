// Philox4x32-10, a counter-based generator: Salmon, Moraes, Dror, Shaw, "Parallel random numbers:
// as easy as 1, 2, 3", SC 2011. Every random value of tt is a function of (seed, offset, index),
// equal on every device.
//
// Numbering. Counters are 64-bit (the upper 64 bits are zero), the key is the seed. 16 consecutive
// blocks make a group of 64 words: word w (0 … 3) of block 16 g + lane is random word 64 g + 16 w +
// lane of the sequence that starts at `offset`.
#pragma once

#include "kernels/functors/target.h"

namespace TT_NS {

constexpr uint32_t kPhiloxM0 = 0xD2511F53u, kPhiloxM1 = 0xCD9E8D57u;  // multipliers
constexpr uint32_t kPhiloxW0 = 0x9E3779B9u,
                   kPhiloxW1 = 0xBB67AE85u;  // key increments (golden ratio, sqrt(3) - 1)
constexpr int kPhiloxRounds = 10;
constexpr int kPhiloxGroup = 16;  // counters of a group

struct PhiloxBlock {
  uint32_t word[4];
};

TT_FN PhiloxBlock philox(PhiloxBlock c, uint32_t k0, uint32_t k1) {
  for (int i = 0; i < kPhiloxRounds; i++) {
    const uint64_t p0 = uint64_t(kPhiloxM0) * c.word[0];
    const uint64_t p1 = uint64_t(kPhiloxM1) * c.word[2];
    c = {{uint32_t(p1 >> 32) ^ c.word[1] ^ k0, uint32_t(p1), uint32_t(p0 >> 32) ^ c.word[3] ^ k1,
          uint32_t(p0)}};
    k0 += kPhiloxW0;
    k1 += kPhiloxW1;
  }
  return c;
}

// Random word `index` of the sequence (seed, offset).
TT_FN uint32_t philox_word(uint64_t seed, uint64_t offset, uint64_t index) {
  const uint64_t counter = offset + index / 64 * kPhiloxGroup + index % 16;
  const PhiloxBlock b = philox({{uint32_t(counter), uint32_t(counter >> 32), 0, 0}}, uint32_t(seed),
                               uint32_t(seed >> 32));
  return b.word[index / 16 % 4];
}

// [0, 1): 24 bits, and 53 bits of two words.
TT_FN float uniform_f32(uint32_t w) { return float(int32_t(w >> 8)) * 0x1p-24f; }
TT_FN double uniform_f64(uint32_t hi, uint32_t lo) {
  return double(int64_t((uint64_t(hi) << 32 | lo) >> 11)) * 0x1p-53;
}

}  // namespace TT_NS
