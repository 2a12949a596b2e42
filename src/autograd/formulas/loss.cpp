// Second derivatives of losses.
// Classes: x is (C), (N, C) or (N, C, d1, …); target has the shape of x without C.
#include "autograd/expr.h"
#include "autograd/formulas/formulas.h"
#include "autograd/formulas/forward.h"
#include "ops/gen/ops.h"

namespace TT_NS::formula {

static int64_t class_dim(const Tensor& x) { return x.ndim == 1 ? 0 : 1; }

TensorRef class_scores(const Tensor& x, const Tensor& target, int64_t ignore_index) {
  return op::neg(*op::native_nll_loss(x, target, nullptr, ignore_index, kReductionNone).first);
}

// Subtracts in float32, since the numbers are close; the engine rounds the gradient once.
static TensorRef widened(const Tensor& t) {
  return t.dtype == Dtype::kF16 || t.dtype == Dtype::kBF16 ? op::to_dtype(t, Dtype::kF32)
                                                           : TensorRef::share(&t);
}

// cross_entropy_backward is (softmax(input) - one_hot(target)) * grad * row_weight.
TensorRef cross_entropy_backward_grad(const Tensor& g, const Tensor& input, const Tensor& target,
                                      const Tensor& row_weight, int64_t ignore_index) {
  const int64_t dim = class_dim(input);
  TensorRef wide = widened(g);
  TensorRef expected = op::sum_dim(wide * op::softmax(widened(input), dim), Ints(&dim, 1));
  return (expected - class_scores(wide, target, ignore_index)) * row_weight;
}

TensorRef cross_entropy_backward_input(const Tensor& g, const Tensor& grad, const Tensor& input,
                                       const Tensor& row_weight) {
  const int64_t dim = class_dim(input);
  TensorRef scaled = widened(g) * op::unsqueeze(widened(grad) * row_weight, dim);
  return op::softmax_backward(scaled, op::softmax(widened(input), dim), dim);
}

// ---- pairs of elements ----

TensorRef within(const Tensor& g, const Tensor& x, double limit) {
  return op::hardtanh_backward(g, x, -limit, limit);
}

static TensorRef at_least(const Tensor& x, double low) {
  const Scalar bound(low);
  return op::clamp(x, &bound, nullptr);
}

// The variance of a Bernoulli variable, kept away from 0.
static TensorRef variance(const Tensor& x) { return at_least(x * (1 - x), 1e-12); }

TensorRef bernoulli_entropy_target(const Tensor& g, const Tensor& x) {
  TensorRef log_zero = at_least(op::log(1 - x), -100);
  TensorRef log_one = at_least(op::log(x), -100);
  return g * (log_zero - log_one);
}

TensorRef bernoulli_entropy_second(const Tensor& g, const Tensor& x, const Tensor& y) {
  TensorRef v = variance(x);
  return g * ((x * (x - 2 * y) + y) / v / v);
}

TensorRef bernoulli_entropy_mixed(const Tensor& g, const Tensor& x) { return -(g / variance(x)); }

TensorRef ctc_second_derivative(const Tensor&) {
  fail(TT_NOT_IMPLEMENTED, "ctc_loss: its gradient cannot be differentiated");
}

TensorRef class_sums(const Tensor& x, const Tensor& loss) {
  if (!loss.ndim) return op::sum(x);
  return sum_along(x, 1, false);
}

}  // namespace TT_NS::formula
