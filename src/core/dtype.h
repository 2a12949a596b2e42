// Dtype facts and PyTorch's promotion lattice.
#pragma once

#include "base/error.h"
#include "core/device.h"
#include "core/kernel.h"

namespace TT_NS {

enum class Dtype : uint8_t {
  kNone = 0,
  kBool = TT_BOOL,
  kU8 = TT_U8,
  kI8 = TT_I8,
  kI16 = TT_I16,
  kI32 = TT_I32,
  kI64 = TT_I64,
  kF16 = TT_F16,
  kBF16 = TT_BF16,
  kF32 = TT_F32,
  kF64 = TT_F64,
  kC64 = TT_C64,
  kC128 = TT_C128,
  kU16 = TT_U16,
  kU32 = TT_U32,
  kU64 = TT_U64
};
constexpr int kNumDtypes = 16;  // codes 0 (none) … 15

constexpr bool valid_dtype(int32_t d) { return d >= TT_BOOL && d < kNumDtypes; }
constexpr int64_t item_size(Dtype d) { return kItemSize[int(d)]; }
// uint16, uint32, uint64: kernels move and convert them, and compute nothing else in them
// (ops/wide_unsigned.cpp).
constexpr bool is_wide_unsigned(Dtype d) { return d >= Dtype::kU16; }
constexpr bool is_complex(Dtype d) { return d == Dtype::kC64 || d == Dtype::kC128; }
constexpr bool is_float(Dtype d) { return d >= Dtype::kF16 && d <= Dtype::kF64; }
constexpr bool is_integral(Dtype d) {  // without bool
  return (d >= Dtype::kU8 && d <= Dtype::kI64) || is_wide_unsigned(d);
}
constexpr bool is_differentiable(Dtype d) { return d >= Dtype::kF16 && d <= Dtype::kC128; }
// The dispatch key of operators on these dtypes (dispatch/key.h): not their own implementations.
constexpr KeySet kWideUnsignedKey = KeySet(1) << 25;
constexpr KeySet dtype_key(Dtype d) { return is_wide_unsigned(d) ? kWideUnsignedKey : 0; }
// The signed dtype of the same size.
constexpr Dtype signed_of(Dtype wide_unsigned) {
  return Dtype(int(Dtype::kI16) + int(wide_unsigned) - int(Dtype::kU16));
}
// 0 bool, 1 integral, 2 floating, 3 complex: the category that decides promotion of scalars and
// 0-dim tensors.
constexpr int category(Dtype d) {
  if (d == Dtype::kBool) return 0;
  if (is_integral(d)) return 1;
  return is_float(d) ? 2 : 3;
}
constexpr Dtype real_of(Dtype d) {
  if (d == Dtype::kC64) return Dtype::kF32;
  return d == Dtype::kC128 ? Dtype::kF64 : d;
}
constexpr Dtype complex_of(Dtype d) {
  return d == Dtype::kF64 || d == Dtype::kC128 ? Dtype::kC128 : Dtype::kC64;
}

// Same as torch.promote_types; fails for uint16, uint32 and uint64 with integers other than
// themselves, with bool and with complex dtypes.
Dtype promote(Dtype a, Dtype b);
// Same as torch.can_cast(from, to): same or higher category.
constexpr bool can_cast(Dtype from, Dtype to) { return category(from) <= category(to); }

inline FmtArg fmt(Dtype d) { return fmt_dtype(int32_t(d)); }

}  // namespace TT_NS
