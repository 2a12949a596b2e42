// Second derivatives of softmax and log_softmax.
#include "autograd/expr.h"
#include "autograd/formulas/formulas.h"
#include "autograd/formulas/forward.h"
#include "ops/gen/ops.h"

namespace TT_NS::formula {

static TensorRef row_sum(const Tensor& t, int64_t dim) {
  return op::sum_dim(t, Ints(&dim, 1), true);
}

// softmax_backward is y * (grad - sum(grad * y)).
TensorRef softmax_backward_y(const Tensor& g, const Tensor& grad, const Tensor& y, int64_t dim) {
  TensorRef along_g = row_sum(g * y, dim);
  TensorRef along_grad = row_sum(grad * y, dim);
  return g * (grad - along_grad) - grad * along_g;
}

// log_softmax_backward is grad - exp(y) * sum(grad).
TensorRef log_softmax_backward_grad(const Tensor& g, const Tensor& y, int64_t dim) {
  return g - row_sum(g * op::exp(y), dim);
}

TensorRef log_softmax_backward_y(const Tensor& g, const Tensor& grad, const Tensor& y,
                                 int64_t dim) {
  return -(g * op::exp(y) * row_sum(grad, dim));
}

TensorRef log_softmax_forward(const Tensor& t, const Tensor& y, int64_t dim) {
  return t - sum_along(*(op::exp(y) * t), dim, true);
}

}  // namespace TT_NS::formula
