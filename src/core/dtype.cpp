#include "core/dtype.h"

namespace TT_NS {

static TT_COLD Dtype promote_unsigned(Dtype a, Dtype b) {  // a < b
  if (is_float(a)) return a;
  fail(TT_DTYPE, "{} and {} have no common dtype: convert one of them first", fmt(a), fmt(b));
}

Dtype promote(Dtype a, Dtype b) {
  if (a == b || b == Dtype::kNone) return a;
  if (a == Dtype::kNone) return b;
  if (a > b) {
    Dtype t = a;
    a = b;
    b = t;
  }  // codes ascend with the lattice, except for these pairs:
  if (TT_UNLIKELY(is_wide_unsigned(b))) return promote_unsigned(a, b);
  if (a == Dtype::kU8 && (b == Dtype::kI8)) return Dtype::kI16;
  if (a == Dtype::kF16 && b == Dtype::kBF16) return Dtype::kF32;
  if (a == Dtype::kF64 && b == Dtype::kC64) return Dtype::kC128;
  return b;
}

}  // namespace TT_NS
