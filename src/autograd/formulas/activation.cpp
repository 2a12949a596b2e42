// Second derivatives of activations. g is the product of the incoming gradient and the gradient
// passed to the first derivative.
#include "autograd/expr.h"
#include "autograd/formulas/formulas.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

namespace TT_NS::formula {

TensorRef silu_second(const Tensor& g, const Tensor& x) {
  TensorRef s = op::sigmoid(x);
  return g * op::conj(s * (1 - s) * (2 + x * (1 - 2 * s)));
}

TensorRef tied(const Tensor& out, const Tensor& x) {
  if ((ctx().exclude & bit(kKeyAutograd)) || !needs_gradient(x)) return TensorRef::share(&out);
  return out + op::masked_fill(x, op::ones({}, Dtype::kBool, Opt<Device>(x.device)), 0);
}

TensorRef mish_second(const Tensor& g, const Tensor& x) {
  if (x.dtype == Dtype::kF32) {  // differences of numbers near 1
    const TensorRef wide = op::to_dtype(x, Dtype::kF64);
    return op::to_dtype(mish_second(op::to_dtype(g, Dtype::kF64), wide), Dtype::kF32);
  }
  TensorRef s = op::sigmoid(x);
  TensorRef t = op::tanh(op::softplus(x));
  return op::tanh_backward(g, t) * (s * (2 + x * (1 - s - 2 * (t * s))));
}

TensorRef softplus_second(const Tensor& g, const Tensor& x, double beta, double threshold) {
  TensorRef z = x * beta;
  TensorRef slope = op::sigmoid_backward(g, op::sigmoid(z)) * beta;
  return op::masked_fill(slope, op::gt(z, Scalar(threshold)), 0);
}

TensorRef gelu_exact_second(const Tensor& g, const Tensor& x) {
  TensorRef square = x * x;
  TensorRef density = 0.3989422804014327 * op::exp(-0.5 * square);
  return g * (density * (2 - square));
}

TensorRef gelu_tanh_second(const Tensor& g, const Tensor& x) {
  const double k = 0.7978845608028654;  // sqrt(2 / pi)
  const double c = 0.044715;
  TensorRef square = x * x;
  TensorRef u = x * (k + k * c * square);
  TensorRef slope = k + 3 * k * c * square;
  TensorRef t = op::tanh(u);
  TensorRef curvature = 3 * k * c * x - t * (slope * slope);
  return op::tanh_backward(g, t) * (slope + x * curvature);
}

TensorRef celu_second(const Tensor& g, const Tensor& x, double alpha) {
  TensorRef slope = op::celu_backward(g, x, alpha) * (1 / alpha);
  return op::masked_fill(slope, op::logical_not(op::lt(x, 0)), 0);
}

// y = x s with s = 1 / (1 + |x|), whose derivative by |x| is -s^2.
TensorRef softsign_backward(const Tensor& g, const Tensor& x) {
  TensorRef width = op::abs(x) + 1;
  if (!is_complex(x.dtype)) return op::div(g, op::square(width));
  TensorRef along = op::real(g * op::conj(x));
  return op::div(g, width) - op::sgn(x) * op::div(along, op::square(width));
}

}  // namespace TT_NS::formula
