// Checks of losses' arguments.
#include "nn/gen/layers.h"

namespace TT_NS {

void build(Module&, const TripletMarginLossArgs& a) {
  if (!(a.margin > 0))
    fail_arg(TT_INVALID_ARG, "margin", "margin is {}: must be greater than 0", a.margin);
}

void build(Module& m, const MultiMarginLossArgs& a) {
  if (a.p != 1 && a.p != 2) fail_arg(TT_INVALID_ARG, "p", "p is {}: must be 1 or 2", a.p);
  const Tensor* weight = m.slot_opt(0);
  if (weight && weight->ndim != 1)
    fail_arg(TT_INVALID_ARG, "weight", "weight is {}: must have one dimension", weight->sizes());
}

}  // namespace TT_NS
