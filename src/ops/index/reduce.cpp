// scatter_reduce and index_reduce, of primitives in index.cpp.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/index/nest.h"

namespace TT_NS::impl {

static TensorRef mean_of(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                         bool include_self) {
  TensorRef start = include_self ? TensorRef::share(&self) : op::scatter_fill(self, dim, index, 0);
  TensorRef sum = op::scatter_add(*start, dim, index, src);
  TensorRef count;
  {
    MaskGuard no_grad(bit(kKeyAutograd));
    const Scalar one = 1;
    count = op::clamp(*op::scatter_counts(self, dim, index, include_self), &one);
    if (count->dtype != self.dtype) count = op::to_dtype(*count, self.dtype);
  }
  return is_differentiable(self.dtype) ? op::div_true(*sum, *count)
                                       : op::div(*sum, *count, kRoundingFloor);
}

TensorRef scatter_reduce(Call, const Tensor& self, int64_t dim, const Tensor& index,
                         const Tensor& src, int64_t reduce, bool include_self) {
  const bool orders = reduce == kScatterReduceAmax || reduce == kScatterReduceAmin;
  if (orders && is_complex(self.dtype))
    fail_arg(TT_NOT_IMPLEMENTED, "self", "self is {}: must be real for amax and amin",
             fmt(self.dtype));
  if (index.numel == 0) {
    check_scatter(self, dim, index, src);
    return op::clone(self);
  }
  if (reduce == kScatterReduceSum || reduce == kScatterReduceProd) {
    const bool adds = reduce == kScatterReduceSum;
    const int neutral = adds ? 0 : 1;
    TensorRef start =
        include_self ? TensorRef::share(&self) : op::scatter_fill(self, dim, index, neutral);
    return op::scatter(*start, dim, index, src, adds ? kScatterAdd : kScatterMultiply);
  }
  if (reduce == kScatterReduceMean) return mean_of(self, dim, index, src, include_self);
  return op::scatter_extreme(self, dim, index, src, reduce == kScatterReduceAmin, include_self);
}

TensorRef index_reduce(Call, const Tensor& self, int64_t dim, const Tensor& index,
                       const Tensor& source, int64_t reduce, bool include_self) {
  constexpr int64_t kReductions[] = {kScatterReduceProd, kScatterReduceMean, kScatterReduceAmax,
                                     kScatterReduceAmin};
  const int64_t d = wrap_dim(dim, self.ndim);
  check_same_device(self, "self", index, "index");
  check_same_device(self, "self", source, "source");
  if (source.dtype != self.dtype)
    fail_arg(TT_DTYPE, "source", "source is {}, self is {}: must be equal", fmt(source.dtype),
             fmt(self.dtype));
  check_index_dtype(index, "index");
  if (index.ndim > 1) fail_arg(TT_SHAPE, "index", "index is {}: must be 1-D or 0-D", index.sizes());
  bool fits = source.ndim == self.ndim;
  if (self.ndim == 0) fits = source.numel == 1 && source.ndim <= 1 && index.numel == 1;
  for (int64_t k = 0; fits && k < self.ndim; k++)
    fits = source.size(k) == (k == d ? index.numel : self.size(k));
  if (!fits)
    fail_arg(TT_SHAPE, "source",
             "source is {}, self is {}, index has {} elements: source must have self's sizes, "
             "except {} in dim {}",
             source.sizes(), self.sizes(), index.numel, index.numel, d);
  Shape shape;
  shape.resize(self.ndim, 1);
  if (self.ndim) shape[d] = index.numel;
  TensorRef wide = op::reshape(index, shape);
  TensorRef values =
      source.ndim == self.ndim ? TensorRef::share(&source) : op::reshape(source, self.sizes());
  return op::scatter_reduce(self, d, *op::expand(*wide, values->sizes()), *values,
                            kReductions[reduce], include_self);
}

}  // namespace TT_NS::impl
