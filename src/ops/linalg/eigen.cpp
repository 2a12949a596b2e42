// Eigenvalues and eigenvectors.
#include "ops/linalg/matrices.h"

namespace TT_NS::impl {

TensorPair native_eigh(Call, const Tensor& self, bool upper, bool vectors) {
  MaskGuard no_grad(bit(kKeyAutograd));
  const int64_t n = self.size(-1);
  const TensorRef a = working_copy(self);
  TensorRef values = new_tensor(vector_shape(batch_of(self), n), Dtype::kF64, self.device);
  const int64_t none[1] = {0};
  TensorRef basis = new_tensor(vectors ? self.sizes() : Ints(none, 1), a->dtype, self.device);
  const TensorRef info = new_tensor(batch_of(self), Dtype::kI32, self.device);
  if (values->numel) {
    MatrixPlan plan = matrix_plan(*a, info->numel, 10 * n * n * n);
    plan.work_size = 3 * n * a->item_size() / 8;
    const Workspace work(info->numel * plan.work_size * 8, self.device);
    plan.work = reinterpret_cast<double*>(work.data());
    plan.upper = upper;
    plan.vectors = vectors;
    plan.b = doubles(*basis);
    plan.w = doubles(*values);
    plan.info = info->as<int32_t>();
    launch_stages(kernel_eigh, self.device, &plan.run);
    check_info(*info, kNoResult);
  }
  return {converted(std::move(values), real_of(self.dtype)),
          converted(std::move(basis), self.dtype)};
}

TensorPair linalg_eigh(Call, const Tensor& self, int64_t UPLO) {
  check_square(self, "self");
  return op::native_eigh(self, UPLO == kTriangleU, true);
}
TensorRef linalg_eigvalsh(Call, const Tensor& self, int64_t UPLO) {
  check_square(self, "self");
  return op::native_eigh(self, UPLO == kTriangleU, is_tracked(self)).first;
}

TensorPair native_eig(Call, const Tensor& self, bool vectors) {
  MaskGuard no_grad(bit(kKeyAutograd));
  const int64_t n = self.size(-1);
  const Dtype d = Dtype::kC128;
  TensorRef a = new_tensor(self.sizes(), d, self.device);
  copy_elements(*a, self);
  TensorRef values = new_tensor(vector_shape(batch_of(self), n), d, self.device);
  const int64_t none[1] = {0};
  TensorRef basis = new_tensor(vectors ? self.sizes() : Ints(none, 1), d, self.device);
  const TensorRef info = new_tensor(batch_of(self), Dtype::kI32, self.device);
  if (values->numel) {
    MatrixPlan plan = matrix_plan(*a, info->numel, 40 * n * n * n);
    plan.work_size = 6 * n;
    const Workspace work(info->numel * plan.work_size * 8, self.device);
    plan.work = reinterpret_cast<double*>(work.data());
    plan.vectors = vectors;
    plan.real = !is_complex(self.dtype);
    plan.b = doubles(*basis);
    plan.w = doubles(*values);
    plan.info = info->as<int32_t>();
    launch_stages(kernel_eig, self.device, &plan.run);
    check_info(*info, kNoResult);
  }
  return {converted(std::move(values), complex_of(self.dtype)),
          converted(std::move(basis), complex_of(self.dtype))};
}

TensorPair linalg_eig(Call, const Tensor& self) {
  check_square(self, "self");
  return op::native_eig(self, true);
}
TensorRef linalg_eigvals(Call, const Tensor& self) {
  check_square(self, "self");
  return op::native_eig(self, is_tracked(self)).first;
}

}  // namespace TT_NS::impl
