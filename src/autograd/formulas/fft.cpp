// Gradients of Fourier transforms: transforms with the other sign.
#include "autograd/formulas/formulas.h"
#include "ops/gen/ops.h"

namespace TT_NS::formula {

TensorRef fft_c2c_backward(const Tensor& g, int64_t dim, bool inverse, double scale) {
  return op::fft_c2c(g, dim, !inverse, scale);
}

// x, a spectrum of n real numbers, with the elements multiplied by k that represent two
// coefficients.
static TensorRef scale_mirrored(const Tensor& x, int64_t dim, int64_t n, double k) {
  const int64_t d = wrap_dim(dim, x.ndim);
  const Dtype real = real_of(x.dtype);
  const int64_t one = 1;
  const int64_t mirrored = (n - 1) / 2;
  TensorRef end = op::ones(Ints(&one, 1), real, x.device);
  TensorRef middle = op::full(Ints(&mirrored, 1), k, real, x.device);
  const Tensor* const parts[3] = {end.get(), middle.get(), end.get()};
  TensorRef factors = op::cat({parts, n % 2 ? 2 : 3}, 0);
  Shape shape;
  shape.resize(x.ndim - d, 1);
  shape[0] = x.size(d);
  return op::mul(x, op::reshape(factors, shape));
}
TensorRef fft_r2c_backward(const Tensor& g, Ints size, int64_t dim, bool inverse, double scale) {
  const int64_t n = size[wrap_dim(dim, size.n)];
  return op::fft_c2r(scale_mirrored(g, dim, n, 0.5), dim, n, !inverse, scale);
}
TensorRef fft_c2r_backward(const Tensor& g, int64_t dim, int64_t n, bool inverse, double scale) {
  return scale_mirrored(op::fft_r2c(g, dim, !inverse, scale), dim, n, 2);
}

}  // namespace TT_NS::formula
