// softmax and log_softmax along any dimension.
#include "ops/gen/impls.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"
#include "plan/softmax_build.h"

namespace TT_NS::impl {

// Computes out[outer][dim][inner] from a (and b) of the same shape.
static TensorRef along_rows(const Kernel& k, const Tensor& a, const Tensor* b, int64_t dim) {
  if (!is_float(a.dtype))
    fail_arg(TT_NOT_IMPLEMENTED, "self", "self is {}: must be floating, or dtype must be given",
             fmt(a.dtype));
  const int64_t d = wrap_dim(dim, a.ndim);
  TensorRef x = dense_input(a);
  TensorRef y = b ? cast_input(*b, a.dtype) : TensorRef();
  TensorRef out = new_tensor(a.sizes(), a.dtype, a.device);
  if (out->numel == 0) return out;
  const Ints sizes = a.sizes();
  const int64_t inner = a.ndim ? numel_of(sizes.slice(d + 1, a.ndim)) : 1;
  const int64_t outer = a.ndim ? numel_of(sizes.slice(0, d)) : 1;
  SoftmaxPlan plan;
  build_softmax(&plan, int32_t(a.dtype), outer, a.ndim ? sizes[d] : 1, inner);
  split_softmax(&plan);
  Workspace workspace(softmax_workspace_bytes(&plan), a.device);
  plan.parts = reinterpret_cast<double*>(workspace.data());
  plan.a = x->data;
  plan.b = y ? y->data : nullptr;
  plan.out = out->data;
  launch_stages(k, a.device, &plan.run);
  return out;
}

TensorRef native_softmax(Call, const Tensor& self, int64_t dim) {
  return along_rows(kernel_softmax, self, nullptr, dim);
}
TensorRef native_log_softmax(Call, const Tensor& self, int64_t dim) {
  return along_rows(kernel_log_softmax, self, nullptr, dim);
}
TensorRef softmax_backward(Call, const Tensor& grad, const Tensor& y, int64_t dim) {
  return along_rows(kernel_softmax_backward, grad, &y, dim);
}
TensorRef log_softmax_backward(Call, const Tensor& grad, const Tensor& y, int64_t dim) {
  return along_rows(kernel_log_softmax_backward, grad, &y, dim);
}

TensorRef softmax(Call, const Tensor& self, int64_t dim, Dtype dtype) {
  return dtype == Dtype::kNone ? op::native_softmax(self, dim)
                               : op::native_softmax(*op::to(self, dtype), dim);
}
TensorRef log_softmax(Call, const Tensor& self, int64_t dim, Dtype dtype) {
  return dtype == Dtype::kNone ? op::native_log_softmax(self, dim)
                               : op::native_log_softmax(*op::to(self, dtype), dim);
}

}  // namespace TT_NS::impl
