#include "autograd/anomaly.h"

#include "autograd/node.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

namespace TT_NS {

void check_anomaly(GraphNode& node, const TensorRef* grads) {
  Node& n = static_cast<Node&>(node);
  MaskGuard no_grad(bit(kKeyAutograd));
  for (int64_t i = 0; i < n.n_edges; i++) {
    const Tensor* g = grads[i].get();
    if (!g || !is_differentiable(g->dtype) || g->device.type == TT_META) continue;
    if (read_scalar(*op::any(*op::isnan(*g))).to_int() == 0) continue;
    fail(TT_AUTOGRAD,
         "anomaly: the gradient of {} with respect to its input {} ({} of shape {}) has nan; its "
         "result had shape {}",
         n.type->name, i, fmt(g->dtype), g->sizes(), n.n_outs ? n.outs()[0].sizes() : Ints());
  }
}

}  // namespace TT_NS
