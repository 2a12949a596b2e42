// Gradients of operators that select elements by rank.
#include "autograd/expr.h"
#include "autograd/formulas/formulas.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

namespace TT_NS::formula {

TensorRef equal_elements_backward(const Tensor& g, const Tensor& self, const Tensor& y) {
  TensorRef both_nan = op::logical_and(op::isnan(self), op::isnan(y));
  TensorRef hit = op::logical_or(op::eq(self, y), both_nan);
  // A half may be less than their number.
  const Dtype counted = g.item_size() == 2 ? Dtype::kF32 : g.dtype;
  TensorRef share = as_dtype(g / op::to_dtype(op::sum(hit), counted), g.dtype);
  return op::where(hit, share, op::zeros({}, g.dtype, g.device));  // also where g is nan
}

}  // namespace TT_NS::formula
