// Comparisons made of others: isclose, isin.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/impl.h"

namespace TT_NS::impl {

TensorRef isclose(Call, const Tensor& self, const Tensor& other, double rtol, double atol,
                  bool equal_nan) {
  MaskGuard no_grad(bit(kKeyAutograd));
  if (self.dtype != other.dtype)
    fail_arg(TT_DTYPE, "other", "self is {}, other is {}: must be equal", fmt(self.dtype),
             fmt(other.dtype));
  if (!(rtol >= 0)) fail_arg(TT_INVALID_ARG, "rtol", "rtol is {}: must not be negative", rtol);
  if (!(atol >= 0)) fail_arg(TT_INVALID_ARG, "atol", "atol is {}: must not be negative", atol);
  TensorRef close = op::eq(self, other);
  const bool inexact = is_differentiable(self.dtype);
  if (equal_nan && inexact)
    close = op::logical_or(*close, *op::logical_and(*op::isnan(self), *op::isnan(other)));
  if (rtol == 0 && atol == 0) return close;
  TensorRef a =
      self.dtype == Dtype::kBool ? op::to_dtype(self, Dtype::kF32) : TensorRef::share(&self);
  TensorRef b = inexact ? TensorRef::share(&other) : op::to_dtype(other, Dtype::kF32);
  TensorRef error = op::abs(*op::sub(*a, *b));
  TensorRef allowed = op::add(*op::abs(*op::mul(*b, rtol)), atol);
  TensorRef within = op::logical_and(*op::isfinite(*error), *op::le(*error, *allowed));
  return op::logical_or(*close, *within);
}

// By bisection of the sorted test elements; nan equals nothing.
TensorRef isin(Call, const Tensor& elements, const Tensor& test_elements, bool, bool invert) {
  MaskGuard no_grad(bit(kKeyAutograd));
  check_same_device(elements, "elements", test_elements, "test_elements");
  Dtype d = result_type({&elements, &test_elements});
  if (is_complex(d))
    fail_arg(TT_NOT_IMPLEMENTED, "elements",
             "elements and test_elements promote to {}: must be real", fmt(d));
  if (test_elements.numel == 0)
    return op::full(elements.sizes(), invert, Dtype::kBool, elements.device);
  if (d == Dtype::kBool) d = Dtype::kU8;
  TensorRef x = op::to(elements, d);
  TensorRef sorted = op::sort(*op::ravel(*op::to(test_elements, d)), 0).first;
  TensorRef at = op::searchsorted(*sorted, *op::contiguous(*x));
  const Scalar last = test_elements.numel - 1;
  TensorRef index = op::ravel(*op::clamp(*at, nullptr, &last));
  TensorRef nearest = op::reshape(*op::index_select(*sorted, 0, *index), elements.sizes());
  return invert ? op::ne(*nearest, *x) : op::eq(*nearest, *x);
}

}  // namespace TT_NS::impl
