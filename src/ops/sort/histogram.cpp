// histogram: counts of elements in bins.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/one_pass.h"

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

// Counts elements between edges that a line makes: a guess is off by one bin at most, unless the
// edges round to each other.
struct HistogramPlan {
  Dtype dtype;
  int64_t n, bins;
  const char *x, *weight, *edges;  // weight: NULL for 1
  char* counts;
};
template <class T> static void count_in_line(const HistogramPlan& p) {
  const T* x = reinterpret_cast<const T*>(p.x);
  const T* weight = reinterpret_cast<const T*>(p.weight);
  const T* edge = reinterpret_cast<const T*>(p.edges);
  T* counts = reinterpret_cast<T*>(p.counts);
  const T first = edge[0];
  const T last = edge[p.bins];
  const T scale = T(p.bins) / (last - first);
  for (int64_t i = 0; i < p.n; i++) {
    const T v = x[i];
    if (!(v >= first && v <= last)) continue;
    const T guess = (v - first) * scale;
    int64_t bin = guess < T(p.bins) ? int64_t(guess) : p.bins - 1;
    while (bin > 0 && v < edge[bin]) bin--;
    while (bin + 1 < p.bins && v >= edge[bin + 1]) bin++;
    counts[bin] += weight ? weight[i] : T(1);
  }
}
static void count_elements(const HistogramPlan& p) {
  if (p.dtype == Dtype::kF64) count_in_line<double>(p);
  else count_in_line<float>(p);
}
constexpr Kernel kHistogram = one_pass_kernel<HistogramPlan, count_elements>("histogram");

// Elements outside the edges are counted in one bin more, which is cut off.
static TensorPair counted(const Tensor& self, TensorRef edges, const Tensor* weight, bool density,
                          bool in_line) {
  const int64_t bins = edges->numel - 1;
  const int64_t all = bins + 1;
  TensorRef counts = op::zeros(Ints(&all, 1), self.dtype, self.device);
  if (in_line && takes_one_pass(self) && (!weight || takes_one_pass(*weight))) {
    const TensorRef x = dense_input(self);
    const TensorRef w = weight ? dense_input(*weight) : TensorRef();
    const HistogramPlan plan = {.dtype = self.dtype,
                                .n = self.numel,
                                .bins = bins,
                                .x = x->data,
                                .weight = w ? w->data : nullptr,
                                .edges = edges->data,
                                .counts = counts->data};
    launch(kHistogram, kCpuDevice, &plan, 1);
  } else if (self.numel) {
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
  return counted(self, op::linspace(low, high, last, self.dtype, self.device), weight, density,
                 true);
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
  return counted(self, op::clone(bins, TT_CONTIGUOUS), weight, density, false);
}

}  // namespace TT_NS::impl
