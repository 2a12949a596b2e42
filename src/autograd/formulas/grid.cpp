// Gradients of sampling.
#include "autograd/expr.h"
#include "autograd/formulas/formulas.h"
#include "ops/gen/ops.h"

namespace TT_NS::formula {

// By the derivative of the weights along one dimension after the other.
TensorRef grid_slopes(const Tensor& g, const Tensor& x, const Tensor& grid, int64_t mode,
                      int64_t padding, bool align, Ints order) {
  if (mode == kGridModeNearest) return tied(op::zeros_like(grid), grid);
  int64_t orders = 0;
  for (const int64_t k : order) orders += k;
  const bool is_recorded = !(ctx().exclude & bit(kKeyAutograd));
  if (!is_recorded && orders == 0) return op::grid_backward(g, x, grid, mode, padding, align);
  const int64_t channels[1] = {1};
  TensorRef slopes[3];
  const Tensor* parts[3];
  for (int64_t d = 0; d < order.n; d++) {
    Shape next(order);
    next[d]++;
    slopes[d] = op::sum_dim(g * op::grid_take(x, grid, mode, padding, align, next), channels);
    parts[order.n - 1 - d] = slopes[d].get();
  }
  return op::stack(TensorSpan{parts, order.n}, -1);
}

}  // namespace TT_NS::formula
