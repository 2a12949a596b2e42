// Elements by rank, from sorted rows: kthvalue, median, nanmedian, mode, quantile, nanquantile;
// counts: bincount, histc.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/sort/sort.h"

namespace TT_NS::impl {

static int64_t length(const Tensor& t, int64_t d) { return t.ndim ? t.size(d) : 1; }
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
  const int64_t n = length(self, d);
  if (k < 1 || k > n)
    fail_arg(TT_INVALID_ARG, "k", "k is {}: must be in [1, {}], the size of dimension {}", k, n, d);
  MaskGuard no_grad(bit(kKeyAutograd));
  TensorPair first = sorted_rows(*with_dim(self), d, k, false, true);
  return reduced(self, d, keepdim, op::narrow(*first.first, d, k - 1, 1),
                 op::narrow(*first.second, d, k - 1, 1));
}

// ---- median, nanmedian: nan are the last elements of a sorted row ----

// The positions of the medians in sorted rows.
static TensorRef middle(const Tensor& sorted, int64_t d, bool skips_nan) {
  const Ints dims(&d, 1);
  const int64_t n = sorted.size(d);
  Shape one(sorted.sizes());
  one[d] = 1;
  TensorRef usual = op::full(one, (n - 1) / 2, Dtype::kI64, sorted.device);
  if (!is_differentiable(sorted.dtype)) return usual;
  TensorRef numbers = op::sum_dim(*op::eq(sorted, sorted), dims, true, Dtype::kI64);
  const Scalar zero = 0;
  if (skips_nan) return op::clamp(*op::div(*op::sub(*numbers, 1), 2, kRoundingFloor), &zero);
  return op::where(*op::lt(*numbers, n), *numbers, *usual);
}
static TensorPair median_of(const Tensor& self, int64_t dim, bool keepdim, bool skips_nan) {
  MaskGuard no_grad(bit(kKeyAutograd));
  const int64_t d = wrap_dim(dim, self.ndim);
  const int64_t n = length(self, d);
  if (n == 0)
    fail_arg(TT_INDEX, "dim", "dim is {}, self is {}: there is no element to select", dim,
             self.sizes());
  TensorPair sorted = sorted_rows(*with_dim(self), d, n, false, true);
  TensorRef at = middle(*sorted.first, d, skips_nan);
  return reduced(self, d, keepdim, op::gather(*sorted.first, d, *at),
                 op::gather(*sorted.second, d, *at));
}
static TensorRef median_of_all(const Tensor& self, bool skips_nan) {
  if (self.numel) return median_of(*op::flatten(self), 0, false, skips_nan).first;
  if (!is_differentiable(self.dtype))
    fail_arg(TT_INVALID_ARG, "self", "self is {}: there is no element to select", self.sizes());
  return op::full({}, __builtin_nan(""), self.dtype, self.device);
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
  MaskGuard no_grad(bit(kKeyAutograd));
  const int64_t d = wrap_dim(dim, self.ndim);
  const int64_t n = length(self, d);
  if (n == 0)
    fail_arg(TT_INDEX, "dim", "dim is {}, self is {}: there is no element to select", dim,
             self.sizes());
  TensorPair sorted = sorted_rows(*with_dim(self), d, n, false, true);
  const Tensor& x = *sorted.first;
  Shape one(x.sizes());
  one[d] = 1;
  TensorRef first = op::ones(one, Dtype::kBool, self.device);
  TensorRef fresh = op::ne(*op::slice(x, d, 1), *op::slice(x, d, 0, n - 1));
  const Tensor* const parts[2] = {first.get(), fresh.get()};
  TensorRef run = op::sub(*op::cumsum(*op::cat(parts, d), d), 1);  // each element's
  TensorRef ones = op::ones(x.sizes(), Dtype::kI64, self.device);
  TensorRef zeros = op::zeros(x.sizes(), Dtype::kI64, self.device);
  TensorRef lengths = op::gather(*op::scatter_add(*zeros, d, *run, *ones), d, *run);
  TensorRef begin = op::argmax(*lengths, d, true);
  TensorRef at = op::sub(*op::add(*begin, *op::gather(*lengths, d, *begin)), 1);
  return reduced(self, d, keepdim, op::gather(x, d, *at), op::gather(*sorted.second, d, *at));
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

// Sorted rows in the last dimension; the ranks of all q are columns of the same rows.
static TensorRef quantile_of(const Tensor& self, const Tensor& q, Opt<int64_t> dim, bool keepdim,
                             int64_t interpolation, bool skips_nan) {
  check_real(self);
  if (q.ndim > 1) fail_arg(TT_SHAPE, "q", "q is {}: must be 0-dim or 1-D", q.sizes());
  if (q.dtype != self.dtype)
    fail_arg(TT_DTYPE, "q", "q is {}, self is {}: must be equal", fmt(q.dtype), fmt(self.dtype));
  check_same_device(self, "self", q, "q");
  if (self.dtype != Dtype::kF32 && self.dtype != Dtype::kF64)  // 16 bits
    return op::to_dtype(
        *quantile_of(*op::to_dtype(self, Dtype::kF32), *op::to_dtype(q, Dtype::kF32), dim, keepdim,
                     interpolation, skips_nan),
        self.dtype);
  if (self.numel == 0)
    fail_arg(TT_INVALID_ARG, "self", "self is {}: there is no element to select", self.sizes());
  TensorRef inside = op::logical_and(*op::ge(q, 0), *op::le(q, 1));
  if (q.device.type != TT_META)
    require(*op::all(*inside), TT_INVALID_ARG, "q", "q has values outside [0, 1]");
  const int64_t d = dim.has ? wrap_dim(dim.value, self.ndim) : 0;
  TensorRef rows =
      dim.has && self.ndim ? op::transpose(*op::unsqueeze(self, -1), d, -1) : op::flatten(self);
  // rows: the shape of self with size 1 at d, then the elements of the row
  TensorRef sorted = op::sort(*rows, -1).first;
  const int64_t last = rows->ndim - 1;
  const int64_t n = rows->size(last);
  TensorRef wanted = op::contiguous(*op::atleast_1d(q));
  TensorRef number = op::eq(*sorted, *sorted);
  const Ints along(&last, 1);
  Shape wide(rows->sizes());
  wide[last] = wanted->numel;
  const Scalar zero = 0;
  TensorRef count = op::to_dtype(*op::sum_dim(*number, along, true, Dtype::kI64), self.dtype);
  TensorRef ranks;
  if (skips_nan) {
    ranks = op::clamp(*op::mul(*wanted, *op::sub(*count, 1)), &zero);
  } else {
    ranks = op::expand(*op::mul(*wanted, double(n - 1)), wide);
    ranks = op::masked_fill(*ranks, *op::lt(*count, double(n)), double(n - 1));
  }
  if (interpolation == kQuantileLower) ranks = op::floor(*ranks);
  if (interpolation == kQuantileHigher) ranks = op::ceil(*ranks);
  if (interpolation == kQuantileNearest) ranks = op::round(*ranks);
  TensorRef below = op::to_dtype(*op::floor(*ranks), Dtype::kI64);
  TensorRef out = op::gather(*sorted, last, *below);
  if (interpolation == kQuantileLinear || interpolation == kQuantileMidpoint) {
    TensorRef weight = op::sub(*ranks, *op::floor(*ranks));
    if (interpolation == kQuantileMidpoint) weight = op::full_like(*weight, 0.5);
    TensorRef above = op::gather(*sorted, last, *op::to_dtype(*op::ceil(*ranks), Dtype::kI64));
    out = between(*out, *above, *weight);
  }
  // the columns first, then the kept or removed dimension
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
  TensorRef w = weights ? op::to(*weights, d) : op::ones(self.sizes(), d, self.device);
  return op::index_add(*counts, 0, *index, *w);
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
  if (min == max && self.numel) {
    min = read_scalar(*op::min(*x)).real();
    max = read_scalar(*op::max(*x)).real();
  }
  if (min == max) {
    min -= 1;
    max += 1;
  }
  if (!(max - min < __builtin_inf()))
    fail_arg(TT_INVALID_ARG, "min", "the range [{}, {}] is not finite", min, max);
  x = op::masked_select(*x, *op::logical_and(*op::ge(*x, min), *op::le(*x, max)));
  TensorRef at = op::div(*op::mul(*op::sub(*x, min), double(bins)), max - min);
  const Scalar first = 0;
  const Scalar last = bins - 1;
  TensorRef index = op::clamp(*op::to_dtype(*at, Dtype::kI64), &first, &last);
  TensorRef counts = op::zeros(Ints(&bins, 1), Dtype::kI64, self.device);
  counts = op::index_add(*counts, 0, *index, *op::ones_like(*index));
  return op::to_dtype(*counts, self.dtype);
}

}  // namespace TT_NS::impl
