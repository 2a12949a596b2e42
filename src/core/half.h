// f16 and bf16 as bits: conversion to float, and from float by round to nearest, ties to even.
#pragma once

#include "base/platform.h"

namespace TT_NS {

TT_INLINE float bits_to_float(uint32_t u) { return bit_cast<float>(u); }
TT_INLINE uint32_t float_to_bits(float f) { return bit_cast<uint32_t>(f); }

TT_INLINE float bf16_to_float(uint16_t h) { return bits_to_float(uint32_t(h) << 16); }
TT_INLINE uint16_t float_to_bf16(float f) {
  uint32_t u = float_to_bits(f);
  if ((u & 0x7fffffffu) > 0x7f800000u) return uint16_t((u >> 16) | 0x40);  // remains nan
  return uint16_t((u + 0x7fffu + ((u >> 16) & 1)) >> 16);
}

TT_INLINE float f16_to_float(uint16_t h) {
  uint32_t sign = uint32_t(h & 0x8000) << 16;
  uint32_t em = h & 0x7fff;
  if (em >= 0x7c00)
    return bits_to_float(sign | 0x7f800000u | (em & 0x3ff) << 13 | (em > 0x7c00 ? 0x400000u : 0));
  if (em >= 0x400) return bits_to_float(sign | ((em << 13) + (112u << 23)));
  return bits_to_float(sign | float_to_bits(float(em) * 0x1p-24f));  // subnormal: exact
}
TT_INLINE uint16_t float_to_f16(float f) {
  uint32_t u = float_to_bits(f);
  uint32_t sign = u >> 16 & 0x8000;
  uint32_t a = u & 0x7fffffffu;
  if (a > 0x7f800000u) return uint16_t(sign | 0x7e00 | (a >> 13 & 0x3ff));
  if (a >= 0x477ff000u) return uint16_t(sign | 0x7c00);  // rounds to inf
  if (a < 0x38800000u) {                                 // subnormal: the adder rounds
    uint32_t r = float_to_bits(bits_to_float(a) + 0.5f) - float_to_bits(0.5f);
    return uint16_t(sign | r);
  }
  return uint16_t(sign | ((a + 0xfffu + (a >> 13 & 1) - (112u << 23)) >> 13));
}

}  // namespace TT_NS
