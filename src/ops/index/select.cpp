// Selection by masks and positions: tril, triu, masked_select, masked_fill, nonzero,
// take_along_dim.
#include "ops/gen/impl_decl.h"
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/index/nest.h"

namespace TT_NS::impl {

// Element (r, c) is on diagonal c - r.
static TensorRef triangle(const Tensor& self, int64_t diagonal, bool lower) {
  if (self.ndim < 2)
    fail_arg(TT_SHAPE, "self", "self is {}: must have at least 2 dimensions", self.sizes());
  if (self.numel == 0) return op::clone(self);
  const int64_t rows = self.size(-2);
  const int64_t columns = self.size(-1);
  const int64_t from = clamp(diagonal, -rows, columns);
  TensorRef limit = op::unsqueeze(*op::arange(from, from + rows, 1, Dtype::kI64, self.device), 1);
  TensorRef column = op::arange(0, columns, 1, Dtype::kI64, self.device);
  return op::masked_fill(self, lower ? *op::gt(column, *limit) : *op::lt(column, *limit), 0);
}
TensorRef tril(Call, const Tensor& self, int64_t diagonal) {
  return triangle(self, diagonal, true);
}
TensorRef triu(Call, const Tensor& self, int64_t diagonal) {
  return triangle(self, diagonal, false);
}

TensorRef masked_select(Call, const Tensor& self, const Tensor& mask) {
  if (mask.dtype != Dtype::kBool)
    fail_arg(TT_DTYPE, "mask", "mask is {}: must be bool", fmt(mask.dtype));
  check_same_device(self, "self", mask, "mask");
  Shape shape = broadcast_shapes(self.sizes(), mask.sizes(), "self", "mask");
  if (shape.empty()) shape.push_back(1);
  TensorRef values = op::expand(self, shape);
  TensorRef where = op::expand(mask, shape);
  const Tensor* const index[1] = {where.get()};
  return op::index(values, index);
}

TensorRef nonzero(Call, const Tensor& self) {
  const int64_t one[1] = {1};
  TensorRef flat = self.ndim ? TensorRef::share(&self) : new_alias(self, one, one);
  TensorRef found = nonzero_positions(flat, false);
  const int64_t shape[2] = {found->size(1), self.ndim};
  const int64_t strides[2] = {1, found->size(1)};  // as PyTorch's, so that each column is dense
  return new_alias(found, shape, strides);
}

// Converts positions that count from the end.
static TensorRef wrapped(const Tensor& indices, int64_t n) {
  return op::where(*op::lt(indices, 0), *op::add(indices, n), indices);
}

TensorRef take_along_dim(Call, const Tensor& self, const Tensor& indices, Opt<int64_t> dim) {
  check_index_dtype(indices, "indices");
  if (!dim.has) {
    const int64_t flat[1] = {-1};
    return op::gather(op::reshape(self, flat), 0, op::reshape(wrapped(indices, self.numel), flat));
  }
  if (self.ndim != indices.ndim)
    fail_arg(TT_SHAPE, "indices",
             "indices is {}, self is {}: must have the same number of dimensions", indices.sizes(),
             self.sizes());
  const int64_t d = wrap_dim(dim.value, self.ndim);
  if (self.ndim == 0) return op::gather(self, 0, wrapped(indices, 1));
  Shape of_self(self.sizes());
  Shape of_indices(indices.sizes());
  of_self[d] = of_indices[d] = 1;
  Shape common = broadcast_shapes(of_self, of_indices, "self", "indices");
  of_self = common;
  of_indices = common;
  of_self[d] = self.size(d);
  of_indices[d] = indices.size(d);
  return op::gather(op::expand(self, of_self), d,
                    op::expand(wrapped(indices, self.size(d)), of_indices));
}

TensorRef masked_fill_tensor(Call, const Tensor& self, const Tensor& mask, const Tensor& value) {
  if (value.ndim != 0) fail_arg(TT_SHAPE, "value", "value is {}: must be 0-dim", value.sizes());
  // a number of the same dtype, or beside reals, always fits
  const bool fits = value.dtype == self.dtype || (is_float(self.dtype) && !is_complex(value.dtype));
  if (value.is_cpu() && !(fits && checks_later(value)))
    check_fits(read_scalar(value), self.dtype, "value");
  return op::where(mask, *op::to(value, self.dtype), self);
}

}  // namespace TT_NS::impl

namespace TT_NS {

void masked_fill_tensor__impl(Call c, Tensor& self, const Tensor& mask, const Tensor& value) {
  if (value.ndim == 0 && shares_elements(self) && !needs_gradient(value))
    return op::masked_fill_(self, mask, read_scalar(value));
  replace_values(self, *impl::masked_fill_tensor(c, self, mask, value));
}

}  // namespace TT_NS
