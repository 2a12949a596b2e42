// Elements by rank: kthvalue, median, nanmedian, mode, quantile, nanquantile;
// counts: bincount, histc.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/index/nest.h"
#include "ops/sort/sort.h"

namespace TT_NS::impl {

// A 0-dim tensor as a vector of one element.
static TensorRef with_dim(const Tensor& t) {
  return t.ndim ? TensorRef::share(&t) : op::flatten(t);
}
// Rows of one element as the results of a reduction over d of self.
static TensorPair reduced(const Tensor& self, int64_t d, bool keepdim, TensorRef values,
                          TensorRef indices) {
  const Ints dims(&d, 1);
  if (self.ndim == 0 || !keepdim) {
    values = op::squeeze_dims(*values, dims);
    indices = op::squeeze_dims(*indices, dims);
  }
  return {op::contiguous(*values), op::contiguous(*indices)};
}

TensorPair kthvalue(Call, const Tensor& self, int64_t k, int64_t dim, bool keepdim) {
  const int64_t d = wrap_dim(dim, self.ndim);
  const int64_t n = size_along(self, d);
  if (k < 1 || k > n)
    fail_arg(TT_INVALID_ARG, "k", "k is {}: must be in [1, {}], the size of dimension {}", k, n, d);
  MaskGuard no_grad(bit(kKeyAutograd));
  const int64_t one[1] = {1};
  TensorRef rank = op::full(one, k - 1, Dtype::kI64, self.device);
  TensorPair found = selected_rows(*with_dim(self), d, kSelectRanks, rank.get());
  return reduced(self, d, keepdim, std::move(found.first), std::move(found.second));
}

static TensorPair one_of(const Tensor& self, int64_t dim, bool keepdim, SelectKind kind) {
  MaskGuard no_grad(bit(kKeyAutograd));
  const int64_t d = wrap_dim(dim, self.ndim);
  if (size_along(self, d) == 0)
    fail_arg(TT_INDEX, "dim", "dim is {}, self is {}: there is no element to select", dim,
             self.sizes());
  TensorPair found = selected_rows(*with_dim(self), d, kind, nullptr);
  return reduced(self, d, keepdim, std::move(found.first), std::move(found.second));
}
static TensorPair median_of(const Tensor& self, int64_t dim, bool keepdim, bool skips_nan) {
  return one_of(self, dim, keepdim, skips_nan ? kSelectNanMedian : kSelectMedian);
}
static TensorRef median_of_all(const Tensor& self, bool skips_nan) {
  if (self.numel) return median_of(*op::flatten(self), 0, false, skips_nan).first;
  if (!is_differentiable(self.dtype))
    fail_arg(TT_INVALID_ARG, "self", "self is {}: there is no element to select", self.sizes());
  return op::full({}, kNan, self.dtype, self.device);
}
TensorRef median(Call, const Tensor& self) { return median_of_all(self, false); }
TensorRef nanmedian(Call, const Tensor& self) { return median_of_all(self, true); }
TensorPair median_dim(Call, const Tensor& self, int64_t dim, bool keepdim) {
  return median_of(self, dim, keepdim, false);
}
TensorPair nanmedian_dim(Call, const Tensor& self, int64_t dim, bool keepdim) {
  return median_of(self, dim, keepdim, true);
}

// The first of the longest runs of equal elements in sorted rows; its last element is selected.
TensorPair mode(Call, const Tensor& self, int64_t dim, bool keepdim) {
  return one_of(self, dim, keepdim, kSelectMode);
}

// ---- quantile, nanquantile ----

static TensorRef between(const Tensor& low, const Tensor& high, const Tensor& weight) {
  TensorRef gap = op::sub(high, low);
  TensorRef from_high = op::sub(high, *op::mul(*gap, *op::rsub(weight, 1)));
  return op::where(*op::lt(weight, 0.5), *op::add(low, *op::mul(*gap, weight)), *from_high);
}

static void check_real(const Tensor& self) {
  if (!is_differentiable(self.dtype) || is_complex(self.dtype))
    fail_arg(TT_DTYPE, "self", "self is {}: must be floating", fmt(self.dtype));
}

TensorPair select_ranks(Call, const Tensor& self, const Tensor& ranks, bool nan_last) {
  MaskGuard no_grad(bit(kKeyAutograd));
  return selected_rows(self, self.ndim - 1, nan_last ? kSelectNanOrRanks : kSelectRanks, &ranks);
}

static void check_quantile(const Tensor& self, const Tensor& q) {
  check_real(self);
  if (q.ndim > 1) fail_arg(TT_SHAPE, "q", "q is {}: must be 0-dim or 1-D", q.sizes());
  if (q.dtype != self.dtype)
    fail_arg(TT_DTYPE, "q", "q is {}, self is {}: must be equal", fmt(q.dtype), fmt(self.dtype));
  check_same_device(self, "self", q, "q");
}
static void check_values(const Tensor& self, const Tensor& q) {
  if (self.numel == 0)
    fail_arg(TT_INVALID_ARG, "self", "self is {}: there is no element to select", self.sizes());
  if (q.device.type == TT_META) return;
  TensorRef inside = op::logical_and(*op::ge(q, 0), *op::le(q, 1));
  require_each(*inside, q, "q", "q has values outside [0, 1]");
}

// The ranks of the quantiles of each row, which may be between two elements: (m). If nans are
// skipped, rows have different lengths, and the ranks are (…, m).
static TensorRef ranks_of(const Tensor& rows, const Tensor& q, int64_t interpolation,
                          bool skips_nan) {
  const int64_t last = rows.ndim - 1;
  TensorRef wanted = op::contiguous(*op::atleast_1d(q));
  TensorRef ranks;
  if (skips_nan) {
    const Ints along(&last, 1);
    const Scalar zero = 0;
    TensorRef numbers = op::sum_dim(*op::eq(rows, rows), along, true, Dtype::kI64);
    TensorRef last_rank = op::sub(*op::to_dtype(*numbers, rows.dtype), 1);
    ranks = op::clamp(*op::mul(*wanted, *last_rank), &zero);
  } else {
    ranks = op::mul(*wanted, double(rows.size(last) - 1));
  }
  if (interpolation == kQuantileLower) return op::floor(*ranks);
  if (interpolation == kQuantileHigher) return op::ceil(*ranks);
  if (interpolation == kQuantileNearest) return op::round(*ranks);
  return ranks;
}

// The elements of the ranks, or interpolations between the two neighbours of each rank. The ranks
// of both neighbours alternate, so that one selection finds them.
static TensorRef elements_at(const Tensor& rows, const Tensor& ranks, int64_t interpolation,
                             bool skips_nan) {
  TensorRef floor = op::floor(ranks);
  TensorRef below = op::to_dtype(*floor, Dtype::kI64);
  if (interpolation != kQuantileLinear && interpolation != kQuantileMidpoint)
    return op::select_ranks(rows, *below, !skips_nan).first;
  TensorRef weight = op::sub(ranks, *floor);
  if (interpolation == kQuantileMidpoint) weight = op::full_like(*weight, 0.5);
  TensorRef above = op::to_dtype(*op::ceil(ranks), Dtype::kI64);
  const Tensor* const parts[2] = {below.get(), above.get()};
  const int64_t side = ranks.ndim;
  TensorRef both = op::flatten(*op::stack(parts, side), side - 1, side);
  TensorRef found = op::select_ranks(rows, *both, !skips_nan).first;
  const int64_t last = rows.ndim - 1;
  return between(*op::slice(*found, last, 0, INT64_MAX, 2),
                 *op::slice(*found, last, 1, INT64_MAX, 2), *weight);
}

static TensorRef quantile_of(const Tensor& self, const Tensor& q, Opt<int64_t> dim, bool keepdim,
                             int64_t interpolation, bool skips_nan) {
  check_quantile(self, q);
  if (self.dtype != Dtype::kF32 && self.dtype != Dtype::kF64)  // 16 bits
    return op::to_dtype(
        *quantile_of(*op::to_dtype(self, Dtype::kF32), *op::to_dtype(q, Dtype::kF32), dim, keepdim,
                     interpolation, skips_nan),
        self.dtype);
  check_values(self, q);
  const int64_t d = dim.has ? wrap_dim(dim.value, self.ndim) : 0;
  // The shape of self with size 1 at d, then the elements of a row.
  TensorRef rows =
      dim.has && self.ndim ? op::transpose(*op::unsqueeze(self, -1), d, -1) : op::flatten(self);
  TensorRef ranks = ranks_of(*rows, q, interpolation, skips_nan);
  TensorRef out = elements_at(*rows, *ranks, interpolation, skips_nan);
  // The quantiles become the first dimension; d is kept with size 1 or removed.
  Shape shape;
  if (q.ndim) shape.push_back(q.numel);
  for (int64_t k = 0; k < self.ndim; k++) {
    const bool gone = !dim.has || k == d;
    if (!gone) shape.push_back(self.size(k));
    else if (keepdim) shape.push_back(1);
  }
  const int64_t from[1] = {-1};
  const int64_t to[1] = {0};
  return op::reshape(*op::contiguous(*op::movedim(*out, from, to)), shape);
}
TensorRef quantile(Call, const Tensor& self, const Tensor& q, Opt<int64_t> dim, bool keepdim,
                   int64_t interpolation) {
  return quantile_of(self, q, dim, keepdim, interpolation, false);
}
TensorRef nanquantile(Call, const Tensor& self, const Tensor& q, Opt<int64_t> dim, bool keepdim,
                      int64_t interpolation) {
  return quantile_of(self, q, dim, keepdim, interpolation, true);
}
static TensorRef one_quantile(const Tensor& self, double q, Opt<int64_t> dim, bool keepdim,
                              int64_t interpolation, bool skips_nan) {
  if (!(q >= 0 && q <= 1)) fail_arg(TT_INVALID_ARG, "q", "q is {}: must be in [0, 1]", q);
  check_real(self);
  if (self.dtype != Dtype::kF32 && self.dtype != Dtype::kF64)  // 16 bits
    return op::to_dtype(
        *one_quantile(*op::to_dtype(self, Dtype::kF32), q, dim, keepdim, interpolation, skips_nan),
        self.dtype);
  TensorRef at = op::full({}, q, self.dtype, self.device);
  return quantile_of(self, *at, dim, keepdim, interpolation, skips_nan);
}
TensorRef quantile_scalar(Call, const Tensor& self, double q, Opt<int64_t> dim, bool keepdim,
                          int64_t interpolation) {
  return one_quantile(self, q, dim, keepdim, interpolation, false);
}
TensorRef nanquantile_scalar(Call, const Tensor& self, double q, Opt<int64_t> dim, bool keepdim,
                             int64_t interpolation) {
  return one_quantile(self, q, dim, keepdim, interpolation, true);
}

// ---- bincount, histc ----

TensorRef bincount(Call, const Tensor& self, const Tensor* weights, int64_t minlength) {
  MaskGuard no_grad(bit(kKeyAutograd));
  if (self.ndim != 1) fail_arg(TT_SHAPE, "self", "self is {}: must be 1-D", self.sizes());
  if (category(self.dtype) != 1)
    fail_arg(TT_DTYPE, "self", "self is {}: must be integer", fmt(self.dtype));
  if (minlength < 0)
    fail_arg(TT_INVALID_ARG, "minlength", "minlength is {}: must not be negative", minlength);
  if (self.device.type == TT_META)
    fail_arg(TT_DEVICE, "self", "self is on meta: the shape of the result depends on its data");
  if (weights) {
    check_same_device(self, "self", *weights, "weights");
    if (!same(weights->sizes(), self.sizes()))
      fail_arg(TT_SHAPE, "weights", "weights is {}, self is {}: must be equal", weights->sizes(),
               self.sizes());
    if (is_complex(weights->dtype))
      fail_arg(TT_NOT_IMPLEMENTED, "weights", "weights is {}: must be real", fmt(weights->dtype));
  }
  Dtype d = Dtype::kI64;
  if (weights && self.numel) d = weights->dtype == Dtype::kF32 ? Dtype::kF32 : Dtype::kF64;
  TensorRef index = op::to(self, Dtype::kI64);
  int64_t n = minlength;
  if (self.numel) {
    const int64_t low = read_scalar(*op::min(*index)).i;
    const int64_t top = read_scalar(*op::max(*index)).i;
    if (low < 0) fail_arg(TT_INVALID_ARG, "self", "self has {}: must not be negative", low);
    if (top == INT64_MAX) fail_arg(TT_SHAPE, "self", "self has {}: too large to count", top);
    n = TT_NS::max(n, top + 1);
  }
  checked_numel(Ints(&n, 1), d, "self");
  TensorRef counts = op::zeros(Ints(&n, 1), d, self.device);
  if (!self.numel) return counts;
  TensorRef w =
      weights ? op::to(*weights, d) : op::expand(*op::ones({}, d, self.device), self.sizes());
  return op::index_add(*counts, 0, *index, *w);
}

// How many of the numbers that are inside are in each bin; the others count in a bin behind them.
static TensorRef counts_of(const Tensor& at, const Tensor& inside, int64_t bins, Dtype d) {
  const Scalar first = 0;
  const Scalar last = bins - 1;
  const int64_t n = bins + 1;
  TensorRef index = op::clamp(*op::to_dtype(at, Dtype::kI64), &first, &last);
  index = op::masked_fill(*index, *op::logical_not(inside), bins);
  TensorRef counts = op::zeros(Ints(&n, 1), Dtype::kI64, at.device);
  counts = op::index_add(*counts, 0, *index, *op::ones_like(*index));
  return op::to_dtype(*op::narrow(*counts, 0, 0, bins), d);
}
// histc from the smallest to the largest number, which a plan finds in each run.
static TensorRef bins_of_its_range(const Tensor& x, int64_t bins, Dtype d) {
  TensorRef low = op::min(x);
  TensorRef high = op::max(x);
  const TensorRef alone = op::to_dtype(*op::eq(*low, *high), x.dtype);
  low = op::sub(*low, *alone);
  high = op::add(*high, *alone);
  const TensorRef range =
      op::sub(*op::to_dtype(*high, Dtype::kF64), *op::to_dtype(*low, Dtype::kF64));
  require(*op::isfinite(*range), TT_INVALID_ARG, "min", "the range is not finite");
  const TensorRef at =
      op::div(*op::mul(*op::sub(x, *low), double(bins)), *op::to_dtype(*range, x.dtype));
  const TensorRef inside = op::logical_and(*op::ge(x, *low), *op::le(x, *high));
  return counts_of(*at, *inside, bins, d);
}

TensorRef histc(Call, const Tensor& self, int64_t bins, double min, double max) {
  MaskGuard no_grad(bit(kKeyAutograd));
  check_dtype_float(self, "self");
  if (is_complex(self.dtype))
    fail_arg(TT_NOT_IMPLEMENTED, "self", "self is {}: must be real", fmt(self.dtype));
  if (bins < 1) fail_arg(TT_INVALID_ARG, "bins", "bins is {}: must be positive", bins);
  checked_numel(Ints(&bins, 1), Dtype::kI64, "bins");
  if (!(min <= max))
    fail_arg(TT_INVALID_ARG, "min", "min is {}, max is {}: min must not exceed max", min, max);
  TensorRef x = op::flatten(self);
  if (self.dtype != Dtype::kF64) x = op::to_dtype(*x, Dtype::kF32);
  if (self.device.type == TT_META) return op::zeros(Ints(&bins, 1), self.dtype, self.device);
  if (min == max && self.numel && ctx().graph) return bins_of_its_range(*x, bins, self.dtype);
  if (min == max && self.numel) {
    min = read_scalar(*op::min(*x)).real();
    max = read_scalar(*op::max(*x)).real();
  }
  if (min == max) {
    min -= 1;
    max += 1;
  }
  if (!(max - min < kInf))
    fail_arg(TT_INVALID_ARG, "min", "the range [{}, {}] is not finite", min, max);
  const TensorRef inside = op::logical_and(*op::ge(*x, min), *op::le(*x, max));
  return counts_of(*op::div(*op::mul(*op::sub(*x, min), double(bins)), max - min), *inside, bins,
                   self.dtype);
}

}  // namespace TT_NS::impl
