// Factors of symmetric and Hermitian matrices that are not definite.
#include "ops/linalg/matrices.h"

namespace TT_NS::impl {

TensorTriple linalg_ldl_factor_ex(Call, const Tensor& self, bool hermitian, bool check_errors) {
  MaskGuard no_grad(bit(kKeyAutograd));
  check_square(self, "self");
  const int64_t n = self.size(-1);
  TensorRef factors = working_copy(self, precise(self.dtype));
  TensorRef pivots = new_tensor(vector_shape(batch_of(self), n), Dtype::kI32, self.device);
  TensorRef info = new_tensor(batch_of(self), Dtype::kI32, self.device);
  if (info->numel) {
    MatrixPlan plan = matrix_plan(*factors, info->numel, n * n * n / 3);
    plan.adjoint = hermitian;
    plan.pivots = pivots->as<int32_t>();
    plan.info = info->as<int32_t>();
    launch_stages(kernel_ldl_factor, self.device, &plan.run);
  }
  if (check_errors) check_info(*info, kSingularLdl);
  return {converted(std::move(factors), self.dtype), std::move(pivots), std::move(info)};
}

TensorPair linalg_ldl_factor(Call, const Tensor& self, bool hermitian) {
  TensorTriple f = op::linalg_ldl_factor_ex(self, hermitian, true);
  return {std::move(f.first), std::move(f.second)};
}

TensorRef linalg_ldl_solve(Call, const Tensor& LD, const Tensor& pivots, const Tensor& other,
                           bool hermitian) {
  MaskGuard no_grad(bit(kKeyAutograd));
  check_square(LD, "LD");
  check_same_device(LD, "LD", pivots, "pivots");
  if (other.ndim < 2)
    fail_arg(TT_SHAPE, "other", "other is {}: must have at least two dimensions", other.sizes());
  check_same_dtype(LD, "LD", other, "other");
  const int64_t n = LD.size(-1);
  if (other.size(-2) != n)
    fail_arg(TT_SHAPE, "other", "LD is {}, other is {}: {} and other.shape[-2] must be equal",
             LD.sizes(), other.sizes(), n);
  const Shape batch =
      broadcast_shapes(batch_of(LD), batch_of(other), "LD's batch", "other's batch");
  checked_numel(matrix_shape(batch, n, other.size(-1)), Dtype::kC128, "result");
  checked_numel(matrix_shape(batch, n, n), Dtype::kC128, "LD");
  const TensorRef rows = checked_pivots(pivots, "pivots", batch_of(LD), n, n);
  const TensorRef there = LD.is_cpu() ? rows : op::to_device(*rows, LD.device);
  const TensorRef exchanges = dense_input(*op::expand(*there, vector_shape(batch, n)));
  const TensorRef factors = cast_input(*with_batch(LD, batch), precise(LD.dtype));
  TensorRef x = working_copy(*with_batch(other, batch), factors->dtype);
  if (x->numel) {
    MatrixPlan plan = matrix_plan(*factors, x->numel / (n * other.size(-1)), n * n * x->size(-1));
    plan.k = x->size(-1);
    plan.b = doubles(*x);
    plan.adjoint = hermitian;
    plan.pivots = exchanges->as<int32_t>();
    launch_stages(kernel_ldl_solve, LD.device, &plan.run);
  }
  return converted(std::move(x), other.dtype);
}

}  // namespace TT_NS::impl
