// Anomaly mode: fails backward at the first node whose formula returns nan. Reached by a pointer in
// the ctx, so that programs that never enable it do not link it.
#pragma once

#include "core/ctx.h"

namespace TT_NS {

// Fails with AUTOGRAD, naming the forward operator, the input and the shape.
void check_anomaly(GraphNode& node, const TensorRef* grads);

}  // namespace TT_NS
