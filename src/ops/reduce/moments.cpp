// Reductions that skip nan, count, or return several results; covariances.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"
#include "ops/index/nest.h"

namespace TT_NS::impl {

TensorRef trace(Call, const Tensor& self) {
  if (self.ndim != 2) fail_arg(TT_SHAPE, "self", "self is {}: must be a matrix", self.sizes());
  return op::sum(*op::diagonal(self));
}

TensorRef count_nonzero(Call, const Tensor& self, Ints dim) {
  return op::sum_dim(op::ne(self, 0), dim, false, Dtype::kI64);
}

TensorPair aminmax(Call, const Tensor& self, Opt<int64_t> dim, bool keepdim) {
  const Ints dims = dim.has ? Ints(&dim.value, 1) : Ints();
  return {op::amin(self, dims, keepdim), op::amax(self, dims, keepdim)};
}

TensorPair std_mean(Call, const Tensor& self, Ints dim, double correction, bool keepdim) {
  return {op::std(self, dim, correction, keepdim), op::mean_dim(self, dim, keepdim)};
}

TensorRef nanmean(Call, const Tensor& self, Ints dim, bool keepdim, Dtype dtype) {
  check_dtype_float(self, "self");
  const TensorRef numbers = op::logical_not(*op::isnan(self));
  const TensorRef count = op::sum_dim(*numbers, dim, keepdim, Dtype::kI64);
  if (is_complex(self.dtype)) {
    const TensorRef known = op::masked_fill(self, *op::isnan(self), 0);
    return op::div_true(*op::sum_dim(*known, dim, keepdim, dtype), *count);
  }
  // float16 ends at 65,504, which sums and counts exceed.
  const Dtype to = dtype == Dtype::kNone ? self.dtype : dtype;
  const bool half = to == Dtype::kF16 || to == Dtype::kBF16;
  const TensorRef sum = op::nansum(self, dim, keepdim, half ? Dtype::kF32 : dtype);
  TensorRef mean = op::div_true(*sum, *count);
  return half ? op::to_dtype(*mean, to) : std::move(mean);
}

// ---- cov, corrcoef ----

static void check_weights(const Tensor& w, const char* arg, int64_t n, const Tensor& self) {
  check_same_device(self, "self", w, arg);
  if (w.ndim > 1 || w.numel != n)
    fail_arg(TT_SHAPE, arg, "{} is {}: must be 1-D with {} entries, one for each observation", arg,
             w.sizes(), n);
  if (self.device.type == TT_META || n == 0) return;
  if (checks_later(w))
    return require_each(*op::logical_not(*op::lt(w, 0)), w, arg, "a weight is negative");
  if (read_scalar(*op::min(w)).real() < 0)
    fail_arg(TT_INVALID_ARG, arg, "{} has negative entries: must not be negative", arg);
}

// Rows are variables, columns are observations.
TensorRef cov(Call, const Tensor& self, int64_t correction, const Tensor* fweights,
              const Tensor* aweights) {
  if (self.ndim > 2)
    fail_arg(TT_SHAPE, "self", "self is {}: must have at most 2 dimensions", self.sizes());
  if (self.dtype == Dtype::kBool)
    fail_arg(TT_NOT_IMPLEMENTED, "self", "self is bool: must hold numbers");
  TensorRef x = op::atleast_2d(self);
  const int64_t n = x->size(1);
  TensorRef w;
  if (fweights) {
    if (category(fweights->dtype) != 1)
      fail_arg(TT_DTYPE, "fweights", "fweights is {}: must be integer", fmt(fweights->dtype));
    check_weights(*fweights, "fweights", n, self);
    w = TensorRef::share(fweights);
  }
  if (aweights) {
    if (!is_differentiable(aweights->dtype) || is_complex(aweights->dtype))
      fail_arg(TT_DTYPE, "aweights", "aweights is {}: must be floating", fmt(aweights->dtype));
    check_weights(*aweights, "aweights", n, self);
    w = w ? op::mul(*w, *aweights) : TensorRef::share(aweights);
  }
  const int64_t columns[1] = {1};
  const Scalar zero = 0;
  if (!w) {
    TensorRef centred =
        op::sub(*x, *op::div_true(*op::sum_dim(*x, columns, true), Scalar(double(n))));
    TensorRef c = op::matmul(*centred, *op::conj(*op::transpose(*centred, 0, 1)));
    return op::squeeze(*op::div_true(*c, Scalar(TT_NS::max(double(n) - double(correction), 0.0))));
  }
  TensorRef total = op::sum(*w);
  TensorRef mean = op::div_true(*op::sum_dim(op::mul(*x, *w), columns, true), *total);
  TensorRef lost =
      aweights ? op::div_true(*op::sum(*op::mul(*w, *aweights)), *total) : op::ones_like(*total);
  TensorRef freedom = op::sub(*total, *op::mul(*lost, double(correction)));
  TensorRef centred = op::sub(*x, *mean);
  TensorRef weighted = op::mul(*centred, *w);
  TensorRef c = op::matmul(*centred, *op::conj(*op::transpose(*weighted, 0, 1)));
  return op::squeeze(*op::div_true(*c, *op::clamp(*freedom, &zero)));
}

TensorRef corrcoef(Call, const Tensor& self) {
  TensorRef c = op::cov(self);
  if (c->ndim == 0) return op::div_true(*c, *c);
  TensorRef deviation = op::sqrt(*op::real(*op::diagonal(*c)));
  c = op::div_true(*op::div_true(*c, *op::unsqueeze(*deviation, 1)), *deviation);
  const Scalar low = -1;
  const Scalar high = 1;
  if (!is_complex(c->dtype)) return op::clamp(*c, &low, &high);
  return op::view_as_complex(*op::clamp(*op::view_as_real(*c), &low, &high));
}

}  // namespace TT_NS::impl
