// Joining and splitting along a dimension.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/image.h"
#include "ops/impl.h"

namespace TT_NS::impl {

// A 1-D tensor without elements may be joined with any shape.
static bool skipped(const Tensor& t) { return t.ndim == 1 && t.numel == 0; }

struct Joined {
  int64_t dim;
  Dtype dtype;
  Shape shape;
};

static Joined joined(TensorSpan tensors, int64_t dim) {
  if (tensors.n == 0)
    fail_arg(TT_INVALID_ARG, "tensors", "tensors is empty: at least one is needed");
  const Tensor* first = tensors[0];
  Dtype dtype = Dtype::kNone;
  for (const Tensor* t : tensors) {
    if (skipped(*first)) first = t;
    if (t->ndim == 0)
      fail_arg(TT_SHAPE, "tensors",
               "a tensor is 0-dim: cat needs at least one dimension, use stack");
    if (!(t->device == tensors[0]->device))
      fail_arg(TT_DEVICE, "tensors", "tensors are on {} and {}: must be on one device",
               fmt(tensors[0]->device), fmt(t->device));
    dtype = dtype == Dtype::kNone ? t->dtype : promote(dtype, t->dtype);
  }
  Joined j = {wrap_dim(dim, first->ndim), dtype, Shape(first->sizes())};
  j.shape[j.dim] = 0;
  for (const Tensor* t : tensors) {
    if (skipped(*t)) continue;
    bool fits = t->ndim == first->ndim;
    for (int64_t d = 0; fits && d < t->ndim; d++) fits = d == j.dim || t->size(d) == first->size(d);
    if (!fits)
      fail_arg(TT_SHAPE, "tensors",
               "tensors have shapes {} and {}: all sizes except that of dim {} must be equal",
               first->sizes(), t->sizes(), j.dim);
    if (add_overflow(j.shape[j.dim], t->size(j.dim), &j.shape[j.dim]))
      fail_arg(TT_SHAPE, "tensors", "the size of dim {} overflows", j.dim);
  }
  checked_numel(j.shape, dtype, "result");
  return j;
}

static bool all_channels_last(TensorSpan tensors) {
  for (const Tensor* t : tensors)
    if (!skipped(*t) && !has_channels_last_strides(*t)) return false;
  return true;
}

TensorRef cat(Call, TensorSpan tensors, int64_t dim) {
  Joined j = joined(tensors, dim);
  Shape last;
  if (j.shape.size() > 1 && all_channels_last(tensors)) last = channels_last_strides(j.shape);
  TensorRef out = new_strided(j.shape, last, j.dtype, tensors[0]->device);
  char* at = out->data;
  for (const Tensor* t : tensors) {
    if (skipped(*t)) continue;
    TensorRef piece = new_alias(out, t->sizes(), out->strides(), at, j.dtype);
    copy_elements(*piece, *t);
    at = advance(at, t->size(j.dim) * out->byte_stride(j.dim));
  }
  return out;
}

TensorRef stack(Call, TensorSpan tensors, int64_t dim) {
  if (tensors.n == 0)
    fail_arg(TT_INVALID_ARG, "tensors", "tensors is empty: at least one is needed");
  TensorList rows;
  SmallVec<const Tensor*, 8> borrowed;
  rows.reserve(tensors.n);
  borrowed.reserve(tensors.n);
  for (const Tensor* t : tensors) {
    if (!same(t->sizes(), tensors[0]->sizes()))
      fail_arg(TT_SHAPE, "tensors", "tensors have shapes {} and {}: must be equal",
               tensors[0]->sizes(), t->sizes());
    rows.push_back(op::unsqueeze(*t, dim));
    borrowed.push_back(rows.back().get());
  }
  const int64_t d = wrap_dim(dim, tensors[0]->ndim + 1);
  if (d == tensors[0]->ndim || !all_channels_last(tensors))
    return op::cat({borrowed.data(), borrowed.size()}, d);
  Shape shape(tensors[0]->sizes());
  shape.insert(d, tensors.n);
  return op::view(*op::cat(tensors, d), shape);
}

static int64_t split_dim(const Tensor& self, int64_t dim) {
  if (self.ndim == 0) fail_arg(TT_SHAPE, "self", "self is 0-dim: must have at least one dimension");
  return wrap_dim(dim, self.ndim);
}

TensorList split(Call, const Tensor& self, int64_t split_size, int64_t dim) {
  int64_t d = split_dim(self, dim);
  int64_t n = self.size(d);
  if (split_size < 0 || (split_size == 0 && n))
    fail_arg(TT_INVALID_ARG, "split_size",
             "split_size is {}, dimension {} has size {}: must be positive", split_size, d, n);
  Shape sizes;
  do {
    sizes.push_back(split_size < n ? split_size : n);
    n -= sizes.back();
  } while (n > 0);
  return op::split_with_sizes(self, sizes, d);
}

TensorList split_with_sizes(Call, const Tensor& self, Ints split_sizes, int64_t dim) {
  int64_t d = split_dim(self, dim);
  int64_t total = 0;
  for (int64_t s : split_sizes) {
    if (s < 0)
      fail_arg(TT_INVALID_ARG, "split_sizes", "split_sizes is {}: sizes must not be negative",
               split_sizes);
    if (add_overflow(total, s, &total)) total = INT64_MAX;
  }
  if (total != self.size(d))
    fail_arg(TT_INVALID_ARG, "split_sizes",
             "split_sizes is {}: must add up to {}, the size of dimension {}", split_sizes,
             self.size(d), d);
  TensorList out;
  out.reserve(split_sizes.n);
  Shape sizes(self.sizes());
  int64_t from = 0;
  for (int64_t s : split_sizes) {
    sizes[d] = s;
    out.push_back(make_one_of_views(self, sizes, self.strides(), self.address(d, from)));
    from += s;
  }
  return out;
}

TensorList chunk(Call, const Tensor& self, int64_t chunks, int64_t dim) {
  if (self.ndim == 0) fail_arg(TT_SHAPE, "self", "self is 0-dim: must have at least one dimension");
  if (chunks < 1 || chunks > INT32_MAX)
    fail_arg(TT_INVALID_ARG, "chunks", "chunks is {}: must be in [1, {}]", chunks, INT32_MAX);
  const int64_t d = wrap_dim(dim, self.ndim);
  const int64_t n = self.size(d);
  if (n) return op::split(self, n / chunks + (n % chunks != 0), d);
  Shape none;  // empty parts, so that there are `chunks`
  none.resize(chunks, 0);
  return op::split_with_sizes(self, none, d);
}

}  // namespace TT_NS::impl
