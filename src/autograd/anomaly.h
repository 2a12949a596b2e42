// Anomaly mode: fails the backward at the first node whose formula gives a nan. A pointer in the
// ctx, so that a program that never turns it on does not contain it.
#pragma once

#include "core/ctx.h"

namespace TT_NS {

// Fails with AUTOGRAD, naming the forward operator, the input and the shape.
void check_anomaly(GraphNode& node, const TensorRef* grads);

}  // namespace TT_NS
