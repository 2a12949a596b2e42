#include "core/dtype.h"

namespace TT_NS {

Dtype promote(Dtype a, Dtype b) noexcept {
  if (a == b || b == Dtype::kNone) return a;
  if (a == Dtype::kNone) return b;
  if (a > b) {
    Dtype t = a;
    a = b;
    b = t;
  }  // codes ascend with the lattice, except for these pairs:
  if (a == Dtype::kU8 && (b == Dtype::kI8)) return Dtype::kI16;
  if (a == Dtype::kF16 && b == Dtype::kBF16) return Dtype::kF32;
  if (a == Dtype::kF64 && b == Dtype::kC64) return Dtype::kC128;
  return b;
}

}  // namespace TT_NS
