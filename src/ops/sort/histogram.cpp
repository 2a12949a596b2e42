// histogram: counts of elements in bins.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"

namespace TT_NS::impl {

static void check_histogram(const Tensor& self, const Tensor* weight) {
  if (self.dtype != Dtype::kF32 && self.dtype != Dtype::kF64)
    fail_arg(TT_NOT_IMPLEMENTED, "self", "self is {}: must be float32 or float64", fmt(self.dtype));
  if (!weight) return;
  check_same_device(self, "self", *weight, "weight");
  if (weight->dtype != self.dtype)
    fail_arg(TT_DTYPE, "weight", "weight is {}, self is {}: must be equal", fmt(weight->dtype),
             fmt(self.dtype));
  if (!same(weight->sizes(), self.sizes()))
    fail_arg(TT_SHAPE, "weight", "weight is {}, self is {}: must be equal", weight->sizes(),
             self.sizes());
}

// Elements outside the edges are counted in one bin more, which is cut off.
static TensorPair counted(const Tensor& self, TensorRef edges, const Tensor* weight, bool density) {
  const int64_t bins = edges->numel - 1;
  const int64_t all = bins + 1;
  TensorRef counts = op::zeros(Ints(&all, 1), self.dtype, self.device);
  if (self.numel) {
    TensorRef x = op::contiguous(*op::flatten(self));
    TensorRef w = weight ? op::flatten(*weight) : op::ones_like(*x);
    TensorRef first = op::select(*edges, 0, 0);
    TensorRef last = op::select(*edges, 0, -1);
    TensorRef bin = op::sub(*op::bucketize(*x, *edges, false, true), 1);
    const Scalar zero = 0;  // where edges do not ascend
    bin = op::clamp(*bin, &zero, nullptr);
    bin = op::masked_fill(*bin, *op::eq(*x, *last), TT_NS::max<int64_t>(bins - 1, 0));
    TensorRef inside = op::logical_and(*op::ge(*x, *first), *op::le(*x, *last));
    bin = op::masked_fill(*bin, *op::logical_not(*inside), bins);
    counts = op::index_add(*counts, 0, *bin, *w);
  }
  TensorRef hist = op::contiguous(*op::narrow(*counts, 0, 0, bins));
  if (density) hist = op::div(*op::div(*hist, *op::sum(*hist)), *op::diff(*edges));
  return {std::move(hist), std::move(edges)};
}

TensorPair histogram(Call, const Tensor& self, int64_t bins, Opt<double> lower, Opt<double> upper,
                     const Tensor* weight, bool density) {
  MaskGuard no_grad(bit(kKeyAutograd));
  check_histogram(self, weight);
  if (bins < 1) fail_arg(TT_INVALID_ARG, "bins", "bins is {}: must be positive", bins);
  const int64_t last = bins < INT64_MAX ? bins + 1 : bins;
  checked_numel(Ints(&last, 1), Dtype::kF64, "bins");
  if (lower.has != upper.has)
    fail_arg(TT_INVALID_ARG, "lower", "only one end of the range is given: both are needed");
  double low = lower.or_else(0);
  double high = upper.or_else(0);
  if (!lower.has && !self.numel) high = 1;
  if (!lower.has && self.numel && self.device.type != TT_META) {
    low = read_scalar(*op::min(self)).real();
    high = read_scalar(*op::max(self)).real();
  }
  if (!libm::is_finite(low) || !libm::is_finite(high) || !libm::is_finite(high - low))
    fail_arg(TT_INVALID_ARG, "lower", "the range [{}, {}] is not finite", low, high);
  if (low > high)
    fail_arg(TT_INVALID_ARG, "lower", "lower is {}, upper is {}: lower must not be larger", low,
             high);
  if (low == high) {
    low -= 0.5;
    high += 0.5;
  }
  check_fits(Scalar(low), self.dtype, "lower");
  check_fits(Scalar(high), self.dtype, "upper");
  return counted(self, op::linspace(low, high, last, self.dtype, self.device), weight, density);
}

TensorPair histogram_edges(Call, const Tensor& self, const Tensor& bins, const Tensor* weight,
                           bool density) {
  MaskGuard no_grad(bit(kKeyAutograd));
  check_histogram(self, weight);
  check_same_device(self, "self", bins, "bins");
  if (bins.ndim != 1 || bins.numel == 0)
    fail_arg(TT_SHAPE, "bins", "bins is {}: must be 1-D and not empty", bins.sizes());
  if (bins.dtype != self.dtype)
    fail_arg(TT_DTYPE, "bins", "bins is {}, self is {}: must be equal", fmt(bins.dtype),
             fmt(self.dtype));
  return counted(self, op::clone(bins, TT_CONTIGUOUS), weight, density);
}

}  // namespace TT_NS::impl
