// Vectorised Philox (functors/philox.h). A 64-bit lane holds one 32-bit word in its lower half; the
// upper half holds what a multiplication left there, which the next widening one ignores.
#pragma once

#include "kernels/cpu/simd/virtual_lanes.h"
#include "kernels/functors/philox.h"

TT_ISA_BEGIN

using U64v = Vec<uint64_t>;
using U32v = Vec<uint32_t>;

// What is stored for each random word: itself, or the float32 that uniform_f32() makes of it.
enum class Stored { kWord, kUniform };

template <Stored kStored> TT_INLINE U32v stored(U32v words) {
  if constexpr (kStored == Stored::kWord) return words;
  const auto u24 = bit_cast<Vec<int32_t>>(words >> 8);
  return bit_cast<U32v>(converted<F32v>(u24) * splat(0x1p-24f));
}

// out: [kGroups][64], the first group begins at `counter`; first: the counters of a group relative
// to its beginning; keys: two per round.
template <int kGroups, Stored kStored>
TT_INLINE void philox_groups(uint32_t* out, uint64_t counter, const U64v* first, const U64v* keys) {
  constexpr int N = kPhiloxGroup / kLanes<uint64_t>;
  constexpr int kHalf = N / 2;
  constexpr int kAll = N * kGroups;
  const U64v m0 = splat(uint64_t(kPhiloxM0));
  const U64v m1 = splat(uint64_t(kPhiloxM1));
  const U64v low = splat(uint64_t(0xffffffffu));
  U64v c0[kAll], c1[kAll], c2[kAll], c3[kAll];
  TT_UNROLL_BY(16)
  for (int v = 0; v < kAll; v++) {  // the first round: words 2 and 3 are zero
    const U64v c = first[v % N] + splat(counter + uint64_t(v / N * kPhiloxGroup));
    const U64v p0 = mul_low(c, m0);
    c0[v] = (c >> 32) ^ keys[0];
    c1[v] = U64v{};
    c2[v] = (p0 >> 32) ^ keys[1];
    c3[v] = p0;
  }
  TT_UNROLL_BY(10)
  for (int r = 1; r < kPhiloxRounds; r++) {
    TT_UNROLL_BY(16)
    for (int v = 0; v < kAll; v++) {
      const U64v p0 = mul_low(c0[v], m0);
      const U64v p1 = mul_low(c2[v], m1);
      c0[v] = (p1 >> 32) ^ c1[v] ^ keys[2 * r];
      c1[v] = p1;
      c2[v] = (p0 >> 32) ^ c3[v] ^ keys[2 * r + 1];
      c3[v] = p0;
    }
  }
  const U64v* words[4] = {c0, c1, c2, c3};
  TT_UNROLL_BY(4)
  for (int w = 0; w < 4; w++) {
    TT_UNROLL_BY(16)
    for (int v = 0; v < kAll; v++) {
      if (v % N >= kHalf) continue;
      const U64v both = (words[w][v] & low) | (words[w][v + kHalf] << 32);
      const U32v bits = stored<kStored>(bit_cast<U32v>(both));
      memcpy(out + v / N * 64 + 16 * w + 2 * kLanes<uint64_t> * (v % N), &bits, sizeof bits);
    }
  }
}

// Groups computed at once; measured.
constexpr int kGroupsOf256Bits = kLanes<uint64_t> == 4 ? 2 : 1;
constexpr int kGroupsAtOnce = kLanes<uint64_t> == 8 ? 4 : kGroupsOf256Bits;

// out: [groups][64]; the first group begins at `counter`. kUniform: multiples of kGroupsAtOnce.
template <Stored kStored>
TT_NOINLINE void philox_words(uint32_t* out, uint64_t seed, uint64_t counter, int64_t groups) {
  constexpr int L = kLanes<uint64_t>;
  constexpr int N = kPhiloxGroup / L;
  // The first half of the vectors has even counters, the other odd ones.
  constexpr int kHalf = N / 2;
  U64v first[N], keys[2 * kPhiloxRounds];
  for (int v = 0; v < N; v++)
    for (int l = 0; l < L; l++)
      first[v][l] = v < kHalf ? uint64_t(2 * (v * L + l)) : uint64_t(2 * ((v - kHalf) * L + l) + 1);
  uint32_t k0 = uint32_t(seed);
  uint32_t k1 = uint32_t(seed >> 32);
  for (int r = 0; r < kPhiloxRounds; r++, k0 += kPhiloxW0, k1 += kPhiloxW1) {
    keys[2 * r] = splat(uint64_t(k0));
    keys[2 * r + 1] = splat(uint64_t(k1));
  }
  constexpr int kStep = kGroupsAtOnce;
  int64_t g = 0;
  for (; g + kStep <= groups; g += kStep, counter += kStep * kPhiloxGroup, out += kStep * 64)
    philox_groups<kStep, kStored>(out, counter, first, keys);
  if constexpr (kStored == Stored::kWord)
    for (; g < groups; g++, counter += kPhiloxGroup, out += 64)
      philox_groups<1, kStored>(out, counter, first, keys);
}

TT_ISA_END
