// Loads and stores of f16 and bf16 as floats.
#pragma once

#include "kernels/cpu/simd/vec.h"

TT_ISA_BEGIN

constexpr uint32_t kHighHalf = 0xffff0000u;

// The float whose high half is x rounded to bf16; a nan remains one.
TT_INLINE Vec<uint32_t> round_to_bf16(Vec<float> x) {
  const Vec<uint32_t> u = Vec<uint32_t>(x);
  return chosen(x == x, u + 0x7fffu + (u >> 16 & 1u), u | 0x400000u);
}

struct Floats {
  Vec<float> low, high;
};

// A vector of halves. Of bf16, the elements of pairs, each of which is a lane of 32 bits.
TT_INLINE Floats load_halves(bool is_bf16, const char* p) {
  if (!is_bf16) return {load_f16(p), load_f16(p + TT_VEC_BYTES / 2)};
  const auto pairs = load(reinterpret_cast<const uint32_t*>(p));
  return {Vec<float>(pairs << 16), Vec<float>(pairs & kHighHalf)};
}
TT_INLINE void store_halves(bool is_bf16, char* p, Floats x) {
  if (is_bf16) {
    const Vec<uint32_t> high = round_to_bf16(x.high) & kHighHalf;
    return store(reinterpret_cast<uint32_t*>(p), round_to_bf16(x.low) >> 16 | high);
  }
  store_f16(p, x.low);
  store_f16(p + TT_VEC_BYTES / 2, x.high);
}

TT_ISA_END
