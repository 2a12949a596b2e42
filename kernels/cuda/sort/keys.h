// Elements of any real dtype as unsigned keys of the same order, of 8, 16, 32 or 64 bits. Both
// zeros have one key; all nans have the last.
#pragma once

#include "kernels/cuda/convert.h"
#include "plan/sort_plan.h"

namespace TT_NS {
namespace {

TT_FN constexpr int key_bits_of(int32_t dtype) {
  switch (dtype) {
    case TT_BOOL:
    case TT_U8:
    case TT_I8: return 8;
    case TT_I16:
    case TT_F16:
    case TT_BF16: return 16;
    case TT_F64:
    case TT_I64: return 64;
    default: return 32;
  }
}
TT_FN constexpr uint64_t last_key(int32_t dtype) {
  return ~uint64_t(0) >> (64 - key_bits_of(dtype));
}

template <class Bits> TT_FN uint64_t float_key(Bits bits, Bits infinity) {
  constexpr Bits kSign = Bits(1) << (8 * sizeof(Bits) - 1);
  const Bits size = bits & Bits(~kSign);
  if (size > infinity) return Bits(~Bits(0));
  if (size == 0) return kSign;
  return bits & kSign ? Bits(~bits) : Bits(bits | kSign);
}

template <class Bits> TT_FN Bits bits_at(const char* p) {
  return *reinterpret_cast<const Bits*>(p);
}

TT_FN uint64_t ascending_key(const char* p, int32_t dtype) {
  switch (dtype) {
    case TT_F64: return float_key(bits_at<uint64_t>(p), uint64_t(0x7ff0000000000000u));
    case TT_F32: return float_key(bits_at<uint32_t>(p), 0x7f800000u);
    case TT_F16: return float_key(bits_at<uint16_t>(p), uint16_t(0x7c00));
    case TT_BF16: return float_key(bits_at<uint16_t>(p), uint16_t(0x7f80));
    case TT_I64: return bits_at<uint64_t>(p) ^ uint64_t(1) << 63;
    case TT_I16: return bits_at<uint16_t>(p) ^ 0x8000u;
    case TT_I8: return bits_at<uint8_t>(p) ^ 0x80u;
    case TT_BOOL:
    case TT_U8: return bits_at<uint8_t>(p);
    default: return uint32_t(load_element<int32_t>(p, dtype)) ^ 0x80000000u;
  }
}
TT_FN uint64_t sort_key(const char* p, int32_t dtype, bool descending) {
  const uint64_t key = ascending_key(p, dtype);
  return descending ? key ^ last_key(dtype) : key;
}

// Whether the key is that of one element only: of an f32, 32 bits; *bits receives them.
TT_FN bool element_of_key(uint32_t key, bool descending, uint32_t* bits) {
  constexpr uint32_t kSign = 0x80000000u;
  const uint32_t k = descending ? ~key : key;
  *bits = k & kSign ? k ^ kSign : ~k;
  return k != kSign && k != ~0u;
}

}  // namespace
}  // namespace TT_NS
