#include "autograd/wrap.h"

#include "ops/gen/ops.h"

namespace TT_NS {

void fail_into_grad() {
  fail_arg(TT_AUTOGRAD, "dst",
           "an _into call records no gradient: neither dst nor, while gradients are recorded, an "
           "input may require one");
}
void fail_no_formula(const char* arg) {
  fail_arg(TT_NOT_IMPLEMENTED, arg,
           "{} requires a gradient, but this operator has no formula for it: detach it first", arg);
}

static void overwrite_apply(Node&, TensorRef* grads, TensorRef* out) {
  out[0] = op::zeros_like(*grads[0]);
}
static void nothing_saved(Node&) noexcept {}
static constinit const NodeType kOverwriteType = {
    .name = "overwrite",
    .apply = overwrite_apply,
    .destroy_saved = nothing_saved,
    .saved_bytes = 0,
    .takes_undefined = false,
};

NodeRef prepare_overwrite(Tensor& self) {
  check_tracked(self);
  if (!needs_grad(self)) return {};
  NodeRef node = new_node(&kOverwriteType, 1, 1);
  as_node(node).released = false;
  as_node(node).set_edge(0, self);
  return prepare_inplace(self, node);
}

}  // namespace TT_NS
