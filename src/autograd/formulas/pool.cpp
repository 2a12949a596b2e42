// Second derivatives of pooling.
#include "autograd/expr.h"
#include "autograd/formulas/formulas.h"
#include "ops/gen/ops.h"

namespace TT_NS::formula {

static TensorRef flat_planes(const Tensor& t) { return op::flatten(t, t.ndim - 2, t.ndim - 1); }

TensorRef pool_take(const Tensor& x, const Tensor& indices) {
  return op::reshape(op::gather(flat_planes(x), -1, flat_planes(indices)), indices.sizes());
}

}  // namespace TT_NS::formula
