// Gradients of operators that select elements by rank.
#include "autograd/expr.h"
#include "autograd/formulas/formulas.h"
#include "ops/gen/ops.h"

namespace TT_NS::formula {

TensorRef equal_elements_backward(const Tensor& g, const Tensor& self, const Tensor& y) {
  TensorRef both_nan = op::logical_and(op::isnan(self), op::isnan(y));
  TensorRef hit = op::to_dtype(op::logical_or(op::eq(self, y), both_nan), g.dtype);
  return op::masked_fill(hit / op::sum(hit) * g, op::eq(hit, 0), 0);  // also where g is nan
}

}  // namespace TT_NS::formula
