// cumsum, cumprod, cummax, cummin, logcumsumexp.
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

// Returns the dtype of the result: int64 for integers and bool.
static Dtype sum_dtype(const Tensor& self, Dtype dtype) {
  if (dtype != Dtype::kNone) return dtype;
  return category(self.dtype) < 2 ? Dtype::kI64 : self.dtype;
}

// The number of elements between neighbours along dimension d.
static int64_t inner_of(const Tensor& t, int64_t d) {
  int64_t inner = 1;
  for (int64_t k = d + 1; k < t.ndim; k++) inner *= t.size(k);
  return inner;
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
    const int64_t inner = inner_of(self, d);
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
    const int64_t inner = inner_of(self, d);
    CumprodPlan plan;
    // pool_threads takes a lock; the result does not depend on the number of threads
    const int64_t threads = self.numel > kParallelGrain ? pool_threads(ctx().rt->pool) : 1;
    build_cumprod(&plan, int32_t(x->dtype), self.numel / n / inner, n, inner, threads);
    plan.in = x->data;
    plan.out = out->data;
    launch_stages(kernel_cumprod, self.device, &plan.run);
  }
  return as_dtype(std::move(out), out_dtype);
}

// ---- cummax, cummin, logcumsumexp ----

// The kernel finds indices and values in one of three dtypes; on devices the indices select the
// values.
static TensorPair cumulative_extreme(const Tensor& self, int64_t dim, bool smallest) {
  MaskGuard no_grad(bit(kKeyAutograd));
  if (is_complex(self.dtype))
    fail_arg(TT_NOT_IMPLEMENTED, "self", "self is {}: complex numbers have no order",
             fmt(self.dtype));
  const int64_t d = wrap_dim(dim, self.ndim);
  Dtype compared = Dtype::kI64;
  if (is_differentiable(self.dtype))
    compared = self.dtype == Dtype::kF64 ? Dtype::kF64 : Dtype::kF32;
  TensorRef x = cast_input(self, compared);
  TensorRef indices = new_tensor(self.sizes(), Dtype::kI64, self.device);
  TensorRef values;
  if (self.is_cpu()) values = new_tensor(self.sizes(), compared, self.device);
  if (self.numel) {
    const int64_t n = self.ndim ? self.size(d) : 1;
    const int64_t inner = inner_of(self, d);
    CumExtremePlan plan;
    build_cum_extreme(&plan, int32_t(compared), smallest, self.numel / n / inner, n, inner);
    plan.in = x->data;
    plan.indices = indices->as<int64_t>();
    if (values) plan.values = static_cast<char*>(values->data);
    launch_stages(kernel_cummax, self.device, &plan.run);
  }
  values = values ? as_dtype(std::move(values), self.dtype) : op::gather(self, d, *indices);
  return {std::move(values), std::move(indices)};
}
TensorPair cummax(Call, const Tensor& self, int64_t dim) {
  return cumulative_extreme(self, dim, false);
}
TensorPair cummin(Call, const Tensor& self, int64_t dim) {
  return cumulative_extreme(self, dim, true);
}

// On devices complex numbers are shifted by the largest real part; phases are wrapped.
static TensorRef complex_logcumsumexp(const Tensor& x, int64_t d) {
  if (x.numel == 0 || x.ndim == 0) return op::clone(x);
  TensorRef top = op::amax(*op::real(x), Ints(&d, 1), true);
  for (double end : {kInf, -kInf}) top = op::masked_fill(*top, *op::eq(*top, end), 0);
  return op::add(*op::log(*op::cumsum(*op::exp(*op::sub(x, *top)), d)), *top);
}

TensorRef logcumsumexp(Call, const Tensor& self, int64_t dim) {
  MaskGuard no_grad(bit(kKeyAutograd));
  check_dtype_float(self, "self");
  const int64_t d = wrap_dim(dim, self.ndim);
  if (is_complex(self.dtype) && self.device.type != TT_CPU) return complex_logcumsumexp(self, d);
  TensorRef x = dense_input(*widened(self));
  TensorRef out = new_tensor(self.sizes(), x->dtype, self.device);
  if (self.numel) {
    const int64_t n = self.ndim ? self.size(d) : 1;
    const int64_t inner = inner_of(self, d);
    LogSumPlan plan;
    build_log_sum(&plan, int32_t(x->dtype), self.numel / n / inner, n, inner);
    plan.in = x->data;
    plan.out = out->data;
    launch_stages(kernel_logcumsumexp, self.device, &plan.run);
  }
  return as_dtype(std::move(out), self.dtype);
}

}  // namespace TT_NS::impl
