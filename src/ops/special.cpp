// Composites of special functions.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

namespace TT_NS::impl {

TensorRef polygamma(Call, int64_t n, const Tensor& self) {
  constexpr int64_t kMaxOrder = int64_t(1) << 53;  // as far as a double counts
  if (n < 0 || n > kMaxOrder)
    fail_arg(TT_INVALID_ARG, "n", "n is {}: must be in [0, {}]", n, kMaxOrder);
  return n == 0 ? op::digamma(self) : op::polygamma_kernel(self, n);
}

TensorRef mvlgamma(Call, const Tensor& self, int64_t p) {
  if (p < 1) fail_arg(TT_INVALID_ARG, "p", "p is {}: must be at least 1", p);
  const double log_pi = 1.1447298858494002;
  const double constant = 0.25 * double(p) * double(p - 1) * log_pi;
  TensorRef halves = op::arange(0.5 * double(1 - p), 0.5 - 0.25, 0.5, Dtype::kF64, self.device);
  const Dtype d = category(self.dtype) < 2 ? default_float() : self.dtype;
  TensorRef shifted = op::add(*op::unsqueeze(self, -1), *op::to(*halves, d));
  const int64_t last = -1;
  return op::add(*op::sum_dim(*op::lgamma(*shifted), {&last, 1}), constant);
}

}  // namespace TT_NS::impl
