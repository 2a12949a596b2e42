// Composites of the arithmetic family.
#include "ops/gen/impls.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/index/nest.h"
#include "ops/one_pass.h"

namespace TT_NS::impl {

template <class B>
static TensorRef divide(const Tensor& self, const B& other, int64_t rounding_mode) {
  if (rounding_mode == kRoundingFloor) return op::div_floor(self, other);
  if (rounding_mode == kRoundingTrunc) return op::div_trunc(self, other);
  return op::div_true(self, other);
}
// Fails on integer division by zero.
static void check_divisor(const Tensor& self, const Tensor& other, int64_t mode) {
  if (mode == kRoundingNone || category(self.dtype) > 1 || category(other.dtype) > 1 ||
      other.device.type == TT_META)
    return;
  if (other.numel) require_each(*op::ne(other, 0), other, "other", "integer division by zero");
}
TensorRef div(Call, const Tensor& self, const Tensor& other, int64_t rounding_mode) {
  check_divisor(self, other, rounding_mode);
  return divide(self, other, rounding_mode);
}
TensorRef div_scalar(Call, const Tensor& self, const Scalar& other, int64_t rounding_mode) {
  if (rounding_mode != kRoundingNone && other.is_zero() && category(self.dtype) < 2 &&
      other.category() < 2)
    fail_arg(TT_INVALID_ARG, "other", "integer division by zero");
  return divide(self, other, rounding_mode);
}

// ---- remainders ----

static void check_numbers(const Tensor& self, Dtype other) {
  if (self.dtype == Dtype::kBool && other == Dtype::kBool)
    fail_arg(TT_NOT_IMPLEMENTED, "other", "self and other are bool: convert one to a number first");
}
static void check_modulus(const Tensor& self, const Scalar& other) {
  check_numbers(self, other.natural_dtype());
  if (other.is_zero() && category(self.dtype) < 2 && other.category() < 2)
    fail_arg(TT_INVALID_ARG, "other", "integer division by zero");
}
static void check_modulus(const Tensor& self, const Tensor& other) {
  check_numbers(self, other.dtype);
  check_divisor(self, other, kRoundingFloor);
}
TensorRef fmod(Call, const Tensor& self, const Tensor& other) {
  check_modulus(self, other);
  return op::rest_trunc(self, other);
}
TensorRef fmod_scalar(Call, const Tensor& self, const Scalar& other) {
  check_modulus(self, other);
  return op::rest_trunc(self, other);
}
TensorRef remainder(Call, const Tensor& self, const Tensor& other) {
  check_modulus(self, other);
  return op::rest_floor(self, other);
}
TensorRef remainder_scalar(Call, const Tensor& self, const Scalar& other) {
  check_modulus(self, other);
  return op::rest_floor(self, other);
}

TensorRef floor_divide(Call, const Tensor& self, const Tensor& other) {
  MaskGuard no_grad(bit(kKeyAutograd));
  check_modulus(self, other);
  return op::div_floor(self, other);
}
TensorRef floor_divide_scalar(Call, const Tensor& self, const Scalar& other) {
  MaskGuard no_grad(bit(kKeyAutograd));
  check_modulus(self, other);
  return op::div_floor(self, other);
}

TensorRef pow_scalar(Call, const Tensor& self, const Scalar& exponent) {
  if (category(self.dtype) < 2 && exponent.is_int() && exponent.i < 0)
    fail_arg(TT_INVALID_ARG, "exponent",
             "exponent is {}, self is {}: integers to negative integer powers are not allowed",
             exponent.i, fmt(self.dtype));
  return op::pow_number(self, exponent);
}

// out where min and max differ. Where they are equal, the one operand that self is clamped to has
// the whole gradient, as in PyTorch: minimum and maximum would share it.
static TensorRef clamp_to_one(const Tensor& self, const Tensor& min, const Tensor& max,
                              const Tensor& out) {
  const TensorRef above = op::where(op::gt(self, max), max, self);
  const TensorRef clamped = op::where(op::lt(self, min), min, *above);
  return op::where(op::eq(min, max), *clamped, out);
}

// Whether operands are of one dtype, and nothing but autograd sees the operators on them.
static bool clamps_in_one_pass(const Tensor& self, const Tensor& min, const Tensor& max) {
  for (const Tensor* t : {&self, &min, &max})
    if (t->dtype != self.dtype || !records_one_pass(*t)) return false;
  return true;
}

TensorRef clamp_tensor(Call, const Tensor& self, const Tensor* min, const Tensor* max) {
  if (!min && !max)
    fail_arg(TT_INVALID_ARG, "min", "min and max are both none: at least one is needed");
  if (!min) return op::minimum(self, *max);
  if (!max) return op::maximum(self, *min);
  if (clamps_in_one_pass(self, *min, *max)) return op::clamp_between(self, *min, *max);
  TensorRef low = TensorRef::share(min);
  TensorRef high = TensorRef::share(max);
  const bool differentiable = needs_gradient(*min) || needs_gradient(*max);
  if (differentiable && category(self.dtype) > 1) {
    const TensorRef unordered = op::isnan(self);  // where the bounds have no gradient
    low = op::where(*unordered, *op::detach(*min), *min);
    high = op::where(*unordered, *op::detach(*max), *max);
  }
  const TensorRef out = op::minimum(*op::maximum(self, *low), *high);
  if (!differentiable && !needs_gradient(self)) return out;
  return clamp_to_one(self, *low, *high, *out);
}

// ---- parts of floating numbers ----

TensorRef nextafter(Call, const Tensor& self, const Tensor& other) {
  const Dtype d = result_type({self, other});
  // The gradient reads self, which nextafter_ overwrites.
  const bool differentiable = self.keys & bit(kKeyAutograd);
  const TensorRef from = differentiable ? op::clone(self) : TensorRef::share(&self);
  if (d == Dtype::kF16) return op::next_f16(*from, other);
  return d == Dtype::kBF16 ? op::next_bf16(*from, other) : op::next_number(*from, other);
}

TensorPair frexp(Call, const Tensor& self) {
  TensorRef mantissa = op::frexp_mantissa(self);
  return {mantissa, op::to(*op::frexp_exponent(self), Dtype::kI32)};
}

TensorRef ldexp(Call, const Tensor& self, const Tensor& other) {
  const Dtype d = result_type({self, other});
  if (category(d) < 2) return op::mul(self, *op::pow_base(2.0, other));
  return op::mul(self, *op::pow_base(2.0, *op::to(other, d)));
}

static Dtype double_of(const Tensor& self, bool complex) {
  return complex || is_complex(self.dtype) ? Dtype::kC128 : Dtype::kF64;
}
TensorRef float_power(Call, const Tensor& self, const Tensor& exponent) {
  const Dtype d = double_of(self, is_complex(exponent.dtype));
  return op::pow(*op::to(self, d), *op::to(exponent, d));
}
TensorRef float_power_scalar(Call, const Tensor& self, const Scalar& exponent) {
  return op::pow(*op::to(self, double_of(self, exponent.is_complex())), exponent);
}

}  // namespace TT_NS::impl
