// Gradients of copies.
#include "autograd/formulas/formulas.h"
#include "ops/gen/ops.h"

namespace TT_NS::formula {

TensorRef on_device(const Tensor& g, Device device) {
  return g.device == device ? TensorRef::share(&g) : op::to_device(g, device);
}

}  // namespace TT_NS::formula
