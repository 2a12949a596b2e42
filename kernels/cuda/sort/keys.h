// Elements of any real dtype as unsigned keys of the same order, of 32 or 64 bits. Both zeros have
// one key; all nans have the last.
#pragma once

#include "kernels/cuda/convert.h"
#include "plan/sort_plan.h"

namespace TT_NS {
namespace {

TT_FN constexpr int key_bits_of(int32_t dtype) {
  return dtype == TT_F64 || dtype == TT_I64 ? 64 : 32;
}

template <class Bits> TT_FN uint64_t float_key(Bits bits, Bits infinity) {
  constexpr Bits kSign = Bits(1) << (8 * sizeof(Bits) - 1);
  const Bits size = bits & ~kSign;
  if (size > infinity) return Bits(~Bits(0));
  if (size == 0) return kSign;
  return bits & kSign ? Bits(~bits) : Bits(bits | kSign);
}

TT_FN uint64_t ascending_key(const char* p, int32_t dtype) {
  switch (dtype) {
    case TT_F64: return float_key(*reinterpret_cast<const uint64_t*>(p), 0x7ff0000000000000u);
    case TT_I64: return *reinterpret_cast<const uint64_t*>(p) ^ uint64_t(1) << 63;
    case TT_F16:
    case TT_BF16:
    case TT_F32: return float_key(bits_as<uint32_t>(load_element<float>(p, dtype)), 0x7f800000u);
    default: return uint32_t(load_element<int32_t>(p, dtype)) ^ 0x80000000u;
  }
}
TT_FN uint64_t sort_key(const char* p, int32_t dtype, bool descending) {
  const uint64_t key = ascending_key(p, dtype);
  if (!descending) return key;
  return key_bits_of(dtype) == 64 ? ~key : uint64_t(uint32_t(~key));
}

}  // namespace
}  // namespace TT_NS
