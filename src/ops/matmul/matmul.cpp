// The family matmul: implementations.
#include "ops/gen/impls.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/impl.h"
#include "cpu/matmul_run.h"

namespace TT_NS {

constexpr int64_t kLarge = 1 << 19;  // multiplications, about 5 µs

static void run_plan(MatmulPlan& plan, Device device) {
  if (device.type == TT_CPU) matmul_pick_provider(&plan, Isa(ctx().isa));
  plan.math = ctx().cuda_math;
  Workspace workspace(matmul_workspace_bytes(plan), device);
  plan.workspace = workspace.data();
  if (plan.batch * plan.m * plan.n * plan.k > kLarge) poll_if_watched(true);
  launch(kernel_matmul, device, &plan, 1);
}

static MatmulOperand operand(const Tensor& t) {
  return {t.data, t.ndim, t.sizes_ptr(), t.strides_ptr()};
}

// Returns the dtype of the kernel: small integers are widened.
static Dtype product_dtype(const Tensor& a, const Tensor& b, const char* a_name,
                           const char* b_name) {
  if (a.dtype != b.dtype)
    fail_arg(TT_DTYPE, b_name, "{} is {}, {} is {}: must have the same dtype", a_name, fmt(a.dtype),
             b_name, fmt(b.dtype));
  if (a.dtype == Dtype::kBool)
    fail_arg(TT_DTYPE, a_name, "{} is bool: products of bool tensors are not defined", a_name);
  return a.dtype < Dtype::kI32 ? Dtype::kI32 : a.dtype;
}

// out = alpha * a @ b + beta * d for stacks of matrices whose shapes have been checked.
static TensorRef multiply(const Tensor& a, const Tensor& b, const Tensor* d, Ints shape,
                          Dtype compute, const Scalar& alpha, const Scalar& beta) {
  TensorRef x = a.dtype == compute ? TensorRef::share(&a) : cast_input(a, compute);
  TensorRef y = b.dtype == compute ? TensorRef::share(&b) : cast_input(b, compute);
  TensorRef addend = !d || d->dtype == compute ? TensorRef::share(d) : cast_input(*d, compute);
  TensorRef out = new_tensor(shape, compute, a.device);
  if (out->numel == 0) return out->dtype == a.dtype ? out : new_tensor(shape, a.dtype, a.device);
  MatmulPlan plan;
  const MatmulOperand extra = addend ? operand(*addend) : MatmulOperand{};
  matmul_build(&plan, int32_t(compute), operand(*x), operand(*y), addend ? &extra : nullptr,
               operand(*out), matmul_scalar(alpha), matmul_scalar(beta));
  run_plan(plan, a.device);
  return out->dtype == a.dtype ? out : cast_input(*out, a.dtype);
}

static TensorRef multiply_2d(const Tensor& a, const Tensor& b) {
  const int64_t shape[2] = {a.size(0), b.size(1)};
  TensorRef out = new_tensor(shape, a.dtype, a.device);
  MatmulPlan plan;
  matmul_build_2d(&plan, int32_t(a.dtype), shape[0], shape[1], a.size(1), a.data, a.stride(0),
                  a.stride(1), b.data, b.stride(0), b.stride(1), out->data);
  run_plan(plan, a.device);
  return out;
}

namespace impl {

TensorRef matmul_stack(Call, const Tensor& self, const Tensor& other) {
  check_same_device(self, "self", other, "other");
  Dtype compute = product_dtype(self, other, "self", "other");
  if (self.size(-1) != other.size(-2))
    fail_arg(TT_SHAPE, "other",
             "self is {}, other is {}: self.shape[-1] ({}) must equal other.shape[-2] ({})",
             self.sizes(), other.sizes(), self.size(-1), other.size(-2));
  if (self.ndim == 2 && other.ndim == 2 && compute == self.dtype) return multiply_2d(self, other);
  Shape shape =
      broadcast_shapes(self.sizes().slice(0, self.ndim - 2), other.sizes().slice(0, other.ndim - 2),
                       "self's batch", "other's batch");
  shape.push_back(self.size(-2));
  shape.push_back(other.size(-1));
  checked_numel(shape, compute, "result");
  return multiply(self, other, nullptr, shape, compute, 1, 0);
}

constexpr int64_t kLongVector = 256;
TensorRef matmul(Call, const Tensor& self, const Tensor& other) {
  if (self.ndim >= 2 && other.ndim >= 2) return op::matmul_stack(self, other);
  if (self.ndim == 0 || other.ndim == 0)
    fail_arg(TT_SHAPE, self.ndim ? "other" : "self",
             "self is {}, other is {}: both need at least one dimension", self.sizes(),
             other.sizes());
  bool row = self.ndim == 1;
  bool column = other.ndim == 1;
  const int64_t n = row ? self.numel : self.size(-1);
  const int64_t m = column ? other.numel : other.size(-2);
  if (n != m)
    fail_arg(TT_SHAPE, "other",
             "self is {}, other is {}: self.shape[-1] ({}) must equal the inner size of other ({})",
             self.sizes(), other.sizes(), n, m);
  TensorRef a = TensorRef::share(&self);
  TensorRef b = TensorRef::share(&other);
  if (row && column && n >= kLongVector) {  // kernels of products read vectors with strides slowly
    a = op::contiguous(self);
    b = op::contiguous(other);
  }
  if (row) a = op::unsqueeze(*a, 0);
  if (column) b = op::unsqueeze(*b, 1);
  TensorRef out = op::matmul_stack(*a, *b);
  Shape left(out->sizes());
  if (row) left.erase(left.size() - 2);
  if (column) left.erase(left.size() - 1);
  return op::view(*out, left);
}

TensorRef linear(Call, const Tensor& input, const Tensor& weight, const Tensor* bias) {
  if (weight.ndim == 2 && input.ndim >= 1) return op::linear_rows(input, weight, bias);
  if (weight.ndim != 1)
    fail_arg(TT_SHAPE, "weight", "weight is {}: must be (out, in) or (in)", weight.sizes());
  TensorRef out = op::matmul(input, weight);
  return bias ? op::add(*out, *bias) : out;
}

TensorRef linear_rows(Call, const Tensor& input, const Tensor& weight, const Tensor* bias) {
  check_same_device(input, "input", weight, "weight");
  Dtype compute = product_dtype(input, weight, "input", "weight");
  if (input.size(-1) != weight.size(1))
    fail_arg(TT_SHAPE, "weight",
             "input is {}, weight is {}: input.shape[-1] ({}) must equal weight.shape[1] ({})",
             input.sizes(), weight.sizes(), input.size(-1), weight.size(1));
  if (bias) {
    check_same_device(input, "input", *bias, "bias");
    if (bias->dtype != input.dtype)
      fail_arg(TT_DTYPE, "bias", "bias is {}, input is {}: must have the same dtype",
               fmt(bias->dtype), fmt(input.dtype));
  }
  Shape shape(input.sizes());
  shape[shape.size() - 1] = weight.size(0);
  if (bias && !broadcastable_to(bias->sizes(), shape))
    fail_arg(TT_SHAPE, "bias", "bias is {}: must broadcast to the result's {}", bias->sizes(),
             Ints(shape));
  int64_t sizes[2] = {weight.size(1), weight.size(0)};
  int64_t strides[2] = {weight.stride(1), weight.stride(0)};
  TensorRef turned = new_alias(weight, sizes, strides);
  if (input.ndim == 2) return multiply(input, *turned, bias, shape, compute, 1, 1);
  int64_t rows = 1;
  for (int64_t d = 0; d + 1 < input.ndim; d++) rows *= input.size(d);
  TensorRef flat = dense_input(input);
  const int64_t flat_in[2] = {rows, input.size(-1)};
  const int64_t flat_out[2] = {rows, weight.size(0)};
  const int64_t in_strides[2] = {input.size(-1), 1};
  TensorRef matrix = new_alias(*flat, flat_in, in_strides);
  if (bias && bias->ndim > 1) {
    TensorRef out = multiply(*matrix, *turned, nullptr, flat_out, compute, 1, 0);
    TensorRef shaped = new_alias(*out, shape, {});
    return op::add(*shaped, *bias);
  }
  TensorRef out = multiply(*matrix, *turned, bias, flat_out, compute, 1, 1);
  return new_alias(*out, shape, {});
}

// Checks an operand of a matmul of dtype d.
static void check_weight(const Scalar& s, Dtype d, const char* arg) {
  check_fits(s, widen(d), arg);
}

// Returns beta * self + alpha * (a @ b) for matrices or batches whose shapes have been checked.
static TensorRef add_product(const Tensor& self, const Tensor& a, const Tensor& b,
                             const char* a_name, const char* b_name, const Scalar& beta,
                             const Scalar& alpha) {
  check_same_device(a, a_name, b, b_name);
  check_same_device(a, a_name, self, "self");
  Dtype compute = product_dtype(a, b, a_name, b_name);
  if (self.dtype != a.dtype)
    fail_arg(TT_DTYPE, "self", "self is {}, {} is {}: must have the same dtype", fmt(self.dtype),
             a_name, fmt(a.dtype));
  if (a.size(-1) != b.size(-2))
    fail_arg(TT_SHAPE, b_name, "{} is {}, {} is {}: {}.shape[-1] ({}) must equal {}.shape[-2] ({})",
             a_name, a.sizes(), b_name, b.sizes(), a_name, a.size(-1), b_name, b.size(-2));
  check_weight(beta, a.dtype, "beta");
  check_weight(alpha, a.dtype, "alpha");
  Shape shape(a.sizes().slice(0, a.ndim - 1));
  shape.push_back(b.size(-1));
  checked_numel(shape, compute, "result");
  if (!broadcastable_to(self.sizes(), shape))
    fail_arg(TT_SHAPE, "self", "self is {}: must broadcast to the product's {}", self.sizes(),
             Ints(shape));
  return multiply(a, b, &self, shape, compute, alpha, beta);
}

TensorRef addmm(Call, const Tensor& self, const Tensor& mat1, const Tensor& mat2,
                const Scalar& beta, const Scalar& alpha) {
  if (mat1.ndim != 2 || mat2.ndim != 2)
    fail_arg(TT_SHAPE, mat1.ndim != 2 ? "mat1" : "mat2",
             "mat1 is {}, mat2 is {}: both must be matrices", mat1.sizes(), mat2.sizes());
  return add_product(self, mat1, mat2, "mat1", "mat2", beta, alpha);
}

TensorRef baddbmm(Call, const Tensor& self, const Tensor& batch1, const Tensor& batch2,
                  const Scalar& beta, const Scalar& alpha) {
  if (batch1.ndim != 3 || batch2.ndim != 3 || batch1.size(0) != batch2.size(0))
    fail_arg(TT_SHAPE, batch1.ndim != 3 ? "batch1" : "batch2",
             "batch1 is {}, batch2 is {}: both must be 3-D with equal batch sizes", batch1.sizes(),
             batch2.sizes());
  return add_product(self, batch1, batch2, "batch1", "batch2", beta, alpha);
}

}  // namespace impl
}  // namespace TT_NS
