// Second derivatives of activations and losses. g: the product of the two gradients that meet.
#include "autograd/formulas.h"

#include "ops/gen/ops.h"

namespace TT_NS::formula {

// s (1 - s) (2 + x (1 - 2 s)) with s = sigmoid(x).
TensorRef silu_second(const Tensor& g, const Tensor& x) {
  TensorRef s = op::sigmoid(x);
  TensorRef bend = op::add(*op::mul(x, *op::rsub(*op::mul(*s, Scalar(2)), Scalar(1))), Scalar(2));
  return op::mul(g, op::conj(op::mul(*op::mul(*s, *op::rsub(*s, Scalar(1))), *bend)));
}

// (1 - t^2) s (2 + x (1 - s - 2 t s)) with s = sigmoid(x), t = tanh(softplus(x)).
TensorRef mish_second(const Tensor& g, const Tensor& x) {
  TensorRef s = op::sigmoid(x);
  TensorRef t = op::tanh(*op::softplus(x));
  TensorRef inner = op::sub(*op::rsub(*s, Scalar(1)), *op::mul(*op::mul(*t, *s), Scalar(2)));
  TensorRef bend = op::add(*op::mul(x, *inner), Scalar(2));
  return op::mul(*op::tanh_backward(g, *t), *op::mul(*s, *bend));
}

TensorRef softplus_second(const Tensor& g, const Tensor& x, double beta, double threshold) {
  TensorRef z = op::mul(x, Scalar(beta));
  TensorRef slope = op::mul(*op::sigmoid_backward(g, *op::sigmoid(*z)), Scalar(beta));
  return op::masked_fill(*slope, *op::gt(*z, Scalar(threshold)), Scalar(0));
}

// (2 - x^2) times the density of the standard normal distribution.
TensorRef gelu_exact_second(const Tensor& g, const Tensor& x) {
  TensorRef square = op::mul(x, x);
  TensorRef density =
      op::mul(*op::exp(*op::mul(*square, Scalar(-0.5))), Scalar(0.3989422804014327));
  return op::mul(g, *op::mul(*density, *op::rsub(*square, Scalar(2))));
}

// With t = tanh(u): (1 - t^2) (u' + x (u'' / 2 - t u'^2)).
TensorRef gelu_tanh_second(const Tensor& g, const Tensor& x) {
  const double k = 0.7978845608028654, c = 0.044715;
  TensorRef square = op::mul(x, x);
  TensorRef u = op::mul(x, *op::add(*op::mul(*square, Scalar(k * c)), Scalar(k)));
  TensorRef slope = op::add(*op::mul(*square, Scalar(3 * k * c)), Scalar(k));
  TensorRef t = op::tanh(*u);
  TensorRef bend = op::sub(*op::mul(x, Scalar(3 * k * c)), *op::mul(*t, *op::mul(*slope, *slope)));
  return op::mul(*op::tanh_backward(g, *t), *op::add(*slope, *op::mul(x, *bend)));
}

// ---- losses ----

TensorRef within(const Tensor& g, const Tensor& x, double limit) {
  return op::hardtanh_backward(g, x, -limit, limit);
}

static TensorRef no_less(const Tensor& x, double low) {
  const Scalar bound(low);
  return op::clamp(x, &bound, nullptr);
}
// The spread x (1 - x) of a probability, away from 0.
static TensorRef spread(const Tensor& x) {
  return no_less(*op::mul(x, *op::rsub(x, Scalar(1))), 1e-12);
}

TensorRef bernoulli_entropy_target(const Tensor& g, const Tensor& x) {
  TensorRef no = no_less(*op::log(*op::rsub(x, Scalar(1))), -100);
  TensorRef yes = no_less(*op::log(x), -100);
  return op::mul(g, *op::sub(*no, *yes));
}
// (x (x - 2 y) + y) / (x (1 - x))^2.
TensorRef bernoulli_entropy_second(const Tensor& g, const Tensor& x, const Tensor& y) {
  TensorRef top = op::add(*op::mul(x, *op::sub(x, *op::mul(y, Scalar(2)))), y);
  TensorRef low = spread(x);
  return op::mul(g, *op::div(*op::div(*top, *low), *low));
}
TensorRef bernoulli_entropy_mixed(const Tensor& g, const Tensor& x) {
  return op::neg(*op::div(g, *spread(x)));
}

}  // namespace TT_NS::formula
