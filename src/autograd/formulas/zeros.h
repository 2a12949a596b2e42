// Gradients that divide by elements, and have another formula if one of them is 0.
#pragma once

#include "core/ctx.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

namespace TT_NS::formula {

// Returns divided() if x has no zero, else undivided(). A capture records both and the choice,
// since replays have other elements, unless derivatives of the result are recorded: those of the
// alternative that is not chosen may be nan. Then the elements are read.
template <class Divided, class Undivided>
TensorRef unless_zero(const Tensor& x, Divided divided, Undivided undivided) {
  if (x.device.type == TT_META) return undivided();
  const TensorRef found = op::any(op::eq(x, 0));
  const bool differentiable = !(ctx().exclude & bit(kKeyAutograd));
  if (ctx().graph && !differentiable) return op::where(found, undivided(), divided());
  return read_scalar(found).is_zero() ? divided() : undivided();
}

}  // namespace TT_NS::formula
