// cumsum, cumprod.
#include "ops/gen/impls.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"
#include "plan/scan_build.h"

namespace TT_NS::impl {

static TensorRef widened(const Tensor& t) {
  return t.dtype == Dtype::kF16 || t.dtype == Dtype::kBF16 ? op::to_dtype(t, Dtype::kF32)
                                                           : TensorRef::share(&t);
}
static TensorRef as_dtype(TensorRef t, Dtype d) {
  return t->dtype == d ? std::move(t) : op::to_dtype(*t, d);
}

// Returns the dtype of the result: int64 for integers and bool.
static Dtype sum_dtype(const Tensor& self, Dtype dtype) {
  if (dtype != Dtype::kNone) return dtype;
  return category(self.dtype) < 2 ? Dtype::kI64 : self.dtype;
}

// Complex numbers are summed as pairs of real columns.
TensorRef cumsum(Call, const Tensor& self, int64_t dim, Dtype dtype) {
  MaskGuard no_grad(bit(kKeyAutograd));
  const int64_t d = wrap_dim(dim, self.ndim);
  const int64_t n = self.ndim ? self.size(d) : 1;
  const Dtype out_dtype = sum_dtype(self, dtype);
  TensorRef x = widened(*as_dtype(TensorRef::share(&self), out_dtype));
  x = cast_input(*x, category(out_dtype) < 2 ? Dtype::kI64 : x->dtype);
  TensorRef out = new_tensor(self.sizes(), x->dtype, self.device);
  if (out->numel) {
    int64_t inner = 1;
    for (int64_t k = d + 1; k < self.ndim; k++) inner *= self.size(k);
    const int64_t outer = self.numel / n / inner;
    ScanPlan plan;
    if (is_complex(x->dtype)) build_scan(&plan, int32_t(real_of(x->dtype)), outer, n, 2 * inner);
    else build_scan(&plan, int32_t(x->dtype), outer, n, inner);
    Workspace sums(scan_workspace_bytes(&plan), self.device);
    plan.in = x->data;
    plan.out = out->data;
    plan.sums = sums.data();
    launch_stages(kernel_cumsum, self.device, &plan.run);
  }
  return as_dtype(std::move(out), out_dtype);
}

TensorRef cumprod(Call, const Tensor& self, int64_t dim, Dtype dtype) {
  MaskGuard no_grad(bit(kKeyAutograd));
  const int64_t d = wrap_dim(dim, self.ndim);
  const int64_t n = self.ndim ? self.size(d) : 1;
  const Dtype out_dtype = sum_dtype(self, dtype);
  TensorRef x = cast_input(*as_dtype(TensorRef::share(&self), out_dtype),
                           category(out_dtype) < 2 ? Dtype::kI64 : out_dtype);
  TensorRef out = new_tensor(self.sizes(), x->dtype, self.device);
  if (out->numel) {
    int64_t inner = 1;
    for (int64_t k = d + 1; k < self.ndim; k++) inner *= self.size(k);
    CumprodPlan plan;
    // pool_threads takes a lock; the result does not depend on the number of threads
    const int64_t threads = self.numel > kParallelGrain ? pool_threads(ctx().rt->pool) : 1;
    build_cumprod(&plan, int32_t(x->dtype), self.numel / n / inner, n, inner, threads);
    Workspace parts(cumprod_workspace_bytes(&plan), self.device);
    plan.in = x->data;
    plan.out = out->data;
    plan.parts = parts.data();
    launch_stages(kernel_cumprod, self.device, &plan.run);
  }
  return as_dtype(std::move(out), out_dtype);
}

}  // namespace TT_NS::impl
