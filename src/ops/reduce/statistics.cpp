// var, std, var_mean, logsumexp, nansum, norm. 16-bit numbers are computed in float32.
#include "ops/gen/impls.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "ops/impl.h"
#include "plan/reduce_build.h"

namespace TT_NS::impl {

static TensorRef widened(const Tensor& t) {
  return t.dtype == Dtype::kF16 || t.dtype == Dtype::kBF16 ? op::to_dtype(t, Dtype::kF32)
                                                           : TensorRef::share(&t);
}

// Returns variance and mean, with kept dimensions, in the dtype of x, or in float64 for float32: as
// in PyTorch the results are then rounded once. The divisor of the variance is max(n - correction,
// 0).
static TensorPair moments(const Tensor& x, Ints dims, double correction) {
  double n = 1;
  for (int64_t d : dims) n *= double(x.size(d));
  const double freedom = n - correction > 0 ? n - correction : 0;
  const Dtype wide = x.dtype == Dtype::kF32 ? Dtype::kF64 : x.dtype;
  TensorRef mean = op::mean_dim(x, dims, true, wide);
  TensorRef centred = op::sub(x, *mean);
  TensorRef sum = op::sum_dim(op::mul(*centred, *centred), dims, true);
  return {op::div_true(*sum, *op::full({}, freedom, sum->dtype, sum->device)), std::move(mean)};
}

// Returns the dimensions that `dim` lists, or all of them.
static Shape listed(Ints dim, int64_t ndim) {
  const uint64_t mask = dim_mask(dim, ndim, true);
  Shape out;
  for (int64_t d = 0; d < ndim; d++)
    if (mask >> d & 1) out.push_back(d);
  return out;
}
static TensorRef shaped(TensorRef t, Ints dims, bool keepdim, Dtype d) {
  if (!keepdim && !dims.empty()) t = op::squeeze_dims(*t, dims);
  return as_dtype(std::move(t), d);
}

// ---- sums of terms by one kernel ----

struct TermSum {
  ReduceTerm term;
  bool root = false;
  double order = 1;
  double correction = 0;  // of kReduceCentred: subtracted from the divisor
  bool with_mean = false;
};

// The results, of the dtype of x, and the means if they are asked for.
static TensorPair term_sum(const Tensor& x, Ints dims, bool keepdim, const TermSum& sum) {
  uint64_t mask = 0;
  for (int64_t d : dims) mask |= uint64_t(1) << d;
  Shape shape;
  Shape kept;
  for (int64_t d = 0; d < x.ndim; d++) {
    const bool reduced = mask >> d & 1;
    if (!reduced) kept.push_back(x.size(d));
    if (!reduced || keepdim) shape.push_back(reduced ? 1 : x.size(d));
  }
  TensorRef out = new_tensor(shape, x.dtype, x.device);
  TensorRef mean = sum.with_mean ? new_tensor(shape, x.dtype, x.device) : TensorRef();
  if (out->numel == 0) return {std::move(out), std::move(mean)};
  Shape out_strides = kept;
  int64_t step = x.item_size();
  for (int64_t d = kept.size() - 1; d >= 0; d--) {
    out_strides[d] = step;
    step *= kept[d];
  }
  const Shape strides = byte_strides(x);
  ReducePlan plan;
  build_reduce(&plan, {
                          .ndim = x.ndim,
                          .size = x.sizes_ptr(),
                          .stride = strides.data(),
                          .reduced = mask,
                          .dtype = int32_t(x.dtype),
                          .out_dtype = int32_t(x.dtype),
                          .out_stride = out_strides.data(),
                          .index_stride = out_strides.data(),
                          .ordered = false,
                          .term = sum.term,
                      });
  plan.by_output = !x.is_cpu();
  if (plan.by_output) one_stage(&plan.run, plan.n_out, 1);
  Workspace workspace(plan.by_output ? 0 : reduce_workspace_bytes(&plan), x.device);
  plan.in = x.data;
  plan.out = out->data;
  plan.index = mean ? mean->data : nullptr;
  plan.root = sum.root;
  plan.order = sum.order;
  if (sum.term == kReduceCentred)
    plan.divisor = TT_NS::max(double(plan.length) - sum.correction, 0.0);
  plan.workspace = workspace.data();
  launch_stages(kernel_reduce_sum, x.device, &plan.run);
  return {std::move(out), std::move(mean)};
}
// Whether dims, in ascending order, make rows whose numbers the CPU adds in the order of the
// operators that nansum is composed of. It adds short rows in another order.
static bool has_long_rows(const Tensor& x, Ints dims) {
  constexpr int64_t kShortRow = 64;
  const bool has_rows = dims.n && dims[dims.n - 1] == x.ndim - 1;
  return has_rows && x.contiguous() && x.size(-1) > kShortRow;
}
// Whether x is a tensor of the CPU, whatever modes see its calls. A norm is one node of graphs, so
// its bits may not depend on modes.
static bool is_plain(const Tensor& x) { return (x.keys & ~ctx().exclude) == bit(kKeyCpu); }
// Whether a kernel sums the terms of x, which is floating or complex. The CPU has one for terms
// that are computed as elements are loaded. For nansum it has one where sums have the same bits
// without it: graphs record the operators, and replays have the bits of calls.
static bool has_term_sum(const Tensor& x, ReduceTerm term, Ints dims = {}) {
  if (x.ndim == 0 || x.numel == 0 || is_complex(x.dtype)) return false;
  const bool is_loaded =
      term == kReduceNonzero || term == kReduceMagnitudes || term == kReduceSquares;
  const bool has_order = term == kReduceNumbers && x.dtype != Dtype::kF64 && has_long_rows(x, dims);
  if (is_loaded && is_plain(x)) return true;
  return is_alone_on_device(x) || (has_order && is_alone(x, kKeyCpu));
}

TensorPair var_mean(Call, const Tensor& self, Ints dim, double correction, bool keepdim) {
  check_dtype_float(self, "self");
  const Shape dims = listed(dim, self.ndim);
  if (has_term_sum(self, kReduceCentred))
    return term_sum(self, dims, keepdim,
                    {.term = kReduceCentred, .correction = correction, .with_mean = true});
  const Dtype real = is_complex(self.dtype) ? real_of(self.dtype) : self.dtype;
  if (self.ndim == 0) {  // a single element, like a vector
    const int64_t one[1] = {1};
    const int64_t first[1] = {0};
    TensorPair r = op::var_mean(*op::view(self, one), first, correction, false);
    return r;
  }
  if (!is_complex(self.dtype)) {
    TensorPair r = moments(*widened(self), dims, correction);
    return {shaped(std::move(r.first), dims, keepdim, real),
            shaped(std::move(r.second), dims, keepdim, self.dtype)};
  }
  const int64_t parts[1] = {-1};  // the variances of both parts are added
  TensorPair r = moments(*op::view_as_real(self), dims, correction);
  return {shaped(op::sum_dim(*r.first, parts), dims, keepdim, real),
          shaped(op::view_as_complex(*op::contiguous(*r.second)), dims, keepdim, self.dtype)};
}

TensorRef var(Call, const Tensor& self, Ints dim, double correction, bool keepdim) {
  MaskGuard no_grad(bit(kKeyAutograd));
  check_dtype_float(self, "self");
  if (has_term_sum(self, kReduceCentred))
    return term_sum(self, listed(dim, self.ndim), keepdim,
                    {.term = kReduceCentred, .correction = correction})
        .first;
  return op::var_mean(self, dim, correction, keepdim).first;
}

TensorRef logsumexp(Call, const Tensor& self, Ints dim, bool keepdim) {
  MaskGuard no_grad(bit(kKeyAutograd));
  const Dtype d = is_differentiable(self.dtype) ? self.dtype : default_float();
  TensorRef x = d == self.dtype ? widened(self) : op::to_dtype(self, d);
  const Shape dims = listed(dim, self.ndim);
  if (x->dtype != Dtype::kF64 && has_term_sum(*x, kReduceExponentials))
    return as_dtype(term_sum(*x, dims, keepdim, {.term = kReduceExponentials}).first, d);
  if (self.numel == 0) return as_dtype(op::log(*op::sum_dim(op::exp(*x), dim, keepdim)), d);
  TensorRef top = op::amax(is_complex(d) ? op::real(*x) : TensorRef::share(x.get()), dim, true);
  for (double end : {kInf, -kInf}) top = op::masked_fill(top, *op::eq(top, end), 0);
  TensorRef sum = op::sum_dim(op::exp(*op::sub(x, top)), dim, true);
  TensorRef out = op::add(*op::log(*sum), *top);
  return as_dtype(op::contiguous(*shaped(std::move(out), dims, keepdim, d)), d);
}

TensorRef nansum(Call, const Tensor& self, Ints dim, bool keepdim, Dtype dtype) {
  if (is_complex(self.dtype))
    fail_arg(TT_NOT_IMPLEMENTED, "self", "self is {}: must be real", fmt(self.dtype));
  if (!is_differentiable(self.dtype)) return op::sum_dim(self, dim, keepdim, dtype);
  const Shape dims = listed(dim, self.ndim);
  if ((dtype == Dtype::kNone || dtype == self.dtype) && has_term_sum(self, kReduceNumbers, dims))
    return term_sum(self, dims, keepdim, {.term = kReduceNumbers}).first;
  return op::sum_dim(op::masked_fill(self, *op::isnan(self), 0), dim, keepdim, dtype);
}

// ---- norm ----

static Dtype norm_dtype(const Tensor& self, Dtype asked) {
  if (!is_differentiable(self.dtype))
    fail_arg(TT_NOT_IMPLEMENTED, "self", "self is {}: must be floating or complex",
             fmt(self.dtype));
  if (asked == Dtype::kNone) return self.dtype;
  if (!is_differentiable(asked) || is_complex(asked) != is_complex(self.dtype) ||
      promote(self.dtype, asked) != asked)
    fail_arg(TT_DTYPE, "dtype",
             "dtype is {}, self is {}: must represent self's values exactly, real or complex as "
             "they are",
             fmt(asked), fmt(self.dtype));
  return asked;
}

static TermSum norm_terms(double p) {
  if (p == 0) return {.term = kReduceNonzero};
  if (p == 1) return {.term = kReduceMagnitudes};
  if (p == 2) return {.term = kReduceSquares, .root = true};
  if (p == kInf) return {.term = kReduceLargest};
  if (p == -kInf) return {.term = kReduceSmallest};
  return {.term = kReducePowers, .order = p};
}

// In the compute dtype, with kept dimensions.
static TensorRef norm_of(const Tensor& x, double p, Ints dims) {
  const double inf = kInf;
  if (p == 0) return op::sum_dim(op::to_dtype(*op::ne(x, 0), real_of(x.dtype)), dims, true);
  TensorRef size = op::abs(x);
  if (p == inf || p == -inf)
    return p > 0 ? op::amax(*size, dims, true) : op::amin(*size, dims, true);
  if (p == 1) return op::sum_dim(*size, dims, true);
  if (p == 2) return op::sqrt(*op::sum_dim(op::mul(*size, *size), dims, true));
  return op::pow(*op::sum_dim(op::pow(*size, Scalar(p)), dims, true), Scalar(1 / p));
}

TensorRef norm(Call, const Tensor& self, double p, Ints dim, bool keepdim, Dtype dtype) {
  MaskGuard no_grad(bit(kKeyAutograd));
  const Dtype d = norm_dtype(self, dtype);
  const Shape dims = listed(dim, self.ndim);
  bool empty = false;
  for (int64_t k : dims) empty |= self.size(k) == 0;
  if (empty && (p < 0 || p == kInf))
    fail_arg(TT_INVALID_ARG, "p", "p is {}, self is {}: this norm needs at least one element", p,
             self.sizes());
  TensorRef x = as_dtype(TensorRef::share(&self), d);
  if (is_complex(d) && is_alone_on_device(*x)) x = op::abs(*x);
  const TermSum terms = norm_terms(p);
  if (has_term_sum(*x, terms.term)) return term_sum(*x, dims, keepdim, terms).first;
  x = widened(*x);
  if (self.ndim == 0) {
    const int64_t one[1] = {1};
    const int64_t first[1] = {0};
    return as_dtype(op::squeeze_dims(*norm_of(*op::reshape(x, one), p, first), first), real_of(d));
  }
  return as_dtype(op::contiguous(*shaped(norm_of(x, p, dims), dims, keepdim, real_of(d))),
                  real_of(d));
}

// The gradient is 0 where the variance is 0.
TensorRef std(Call, const Tensor& self, Ints dim, double correction, bool keepdim) {
  MaskGuard no_grad(bit(kKeyAutograd));
  check_dtype_float(self, "self");
  const Shape dims = listed(dim, self.ndim);
  if (has_term_sum(self, kReduceCentred))
    return term_sum(self, dims, keepdim,
                    {.term = kReduceCentred, .root = true, .correction = correction})
        .first;
  const bool wide = self.dtype == Dtype::kF32 && self.ndim;  // the root is rounded, nothing before
  TensorRef variance =
      wide ? shaped(moments(self, dims, correction).first, dims, keepdim, Dtype::kF64)
           : op::var(*widened(self), dim, correction, keepdim);
  TensorRef none = op::eq(*variance, 0);
  TensorRef root = op::masked_fill(*op::sqrt(*op::masked_fill(*variance, *none, 1)), *none, 0);
  return as_dtype(std::move(root), is_complex(self.dtype) ? real_of(self.dtype) : self.dtype);
}

}  // namespace TT_NS::impl
