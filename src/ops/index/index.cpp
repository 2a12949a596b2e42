// gather, scatter, one_hot, index_select, index_add, index_copy, index_fill, embedding: one index
// tensor for one dimension.
#include "ops/gen/impl_decl.h"
#include "ops/gen/impls.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/index/nest.h"

namespace TT_NS {

// Sizes and strides in bytes; a 0-dim tensor counts as one of shape [1].
struct Geometry {
  Shape size, stride;
  explicit Geometry(const Tensor& t) : size(t.sizes()), stride(byte_strides(t)) {
    if (!t.ndim) {
      size.push_back(1);
      stride.push_back(t.item_size());
    }
  }
  int64_t ndim() const { return size.size(); }
};

static void check_devices(const Tensor& self, const Tensor& index, const Tensor* src,
                          const char* src_name) {
  check_same_device(self, "self", index, "index");
  if (src) check_same_device(self, "self", *src, src_name);
}
static void check_same_dtype(const Tensor& self, const Tensor& src, const char* arg) {
  if (self.dtype != src.dtype)
    fail_arg(TT_DTYPE, arg, "self is {}, {} is {}: must be equal", fmt(self.dtype), arg,
             fmt(src.dtype));
}

// Returns a copy of t if writing dst could change it.
static TensorRef copy_if_shared(const Tensor& t, const Tensor& dst) {
  if (!may_share_memory(t, dst)) return TensorRef::share(&t);
  TensorRef out = new_tensor(t.sizes(), t.dtype, t.device);
  copy_elements(*out, t);
  return out;
}
static TensorRef row_major_copy(const Tensor& t) {
  TensorRef out = new_tensor(t.sizes(), t.dtype, t.device);
  copy_elements(*out, t);
  return out;
}

// ---- gather, scatter_add: the index has self's number of dimensions ----

// Whether the values of an index are checked, or while they are used: where nothing is written but
// a new tensor.
enum Values : bool { kUnchecked, kChecked };

static int64_t check_along(const Tensor& self, int64_t dim, const Tensor& index, Values values) {
  const int64_t d = wrap_dim(dim, self.ndim);
  if (index.numel == 0) return d;  // may have any shape and dtype
  check_index_dtype(index, "index");
  if (TT_NS::max<int>(self.ndim, 1) != TT_NS::max<int>(index.ndim, 1))
    fail_arg(TT_SHAPE, "index", "index is {}, self is {}: must have the same number of dimensions",
             index.sizes(), self.sizes());
  const Geometry s(self);
  const Geometry i(index);
  for (int64_t k = 0; k < s.ndim(); k++)
    if (k != d && i.size[k] > s.size[k])
      fail_arg(TT_SHAPE, "index",
               "index is {}, self is {}: index must not be larger, except in dim {}", index.sizes(),
               self.sizes(), d);
  if (values == kChecked) check_indices(index, "index", 0, s.size[d]);
  return d;
}

static void along(const Kernel& k, const Tensor& a, int64_t dim, const Tensor& index,
                  const Tensor& b, Values values, IndexCombine combine = kCombineProduct) {
  if (index.numel == 0) return;
  const Geometry ga(a);
  const Geometry gb(b);
  const Geometry gi(index);
  IndexNest nest;
  for (int64_t d = 0; d < ga.ndim(); d++)
    nest.add(gi.size[d], d == dim ? 0 : ga.stride[d], gb.stride[d], gi.stride[d]);
  run_index(k, nest, a, a.data, b, index, {ga.size[dim], ga.stride[dim]}, combine,
            values == kUnchecked ? "index" : nullptr);
}

TensorRef impl::gather(Call, const Tensor& self, int64_t dim, const Tensor& index) {
  check_devices(self, index, nullptr, "");
  const int64_t d = check_along(self, dim, index, kUnchecked);
  TensorRef out = new_tensor(index.sizes(), self.dtype, self.device);
  along(kernel_index_get, self, d, index, *out, kUnchecked);
  return out;
}

static int64_t check_scatter(const Tensor& self, int64_t dim, const Tensor& index,
                             const Tensor& src, Values values) {
  check_devices(self, index, &src, "src");
  check_same_dtype(self, src, "src");
  if (index.numel == 0) return wrap_dim(dim, self.ndim);
  const Geometry s(src);
  const Geometry i(index);
  if (s.ndim() != i.ndim())
    fail_arg(TT_SHAPE, "src", "src is {}, index is {}: must have the same number of dimensions",
             src.sizes(), index.sizes());
  for (int64_t k = 0; k < s.ndim(); k++)
    if (i.size[k] > s.size[k])
      fail_arg(TT_SHAPE, "src", "src is {}, index is {}: src must not be smaller", src.sizes(),
               index.sizes());
  return check_along(self, dim, index, values);
}
int64_t check_scatter(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  return check_scatter(self, dim, index, src, kUnchecked);
}

// Whether sums of several terms are computed in float32 and rounded once.
static bool sums_in_float32(const Tensor& t) {
  return t.dtype == Dtype::kF16 || t.dtype == Dtype::kBF16;
}
// In place this pays where the conversion of self costs less than the additions.
static bool sums_in_float32(const Tensor& self, const Tensor& source) {
  return sums_in_float32(self) && source.numel >= self.numel;
}
static TensorRef as_float32(const Tensor& t) { return op::to_dtype(t, Dtype::kF32); }

TensorRef impl::scatter_add(Call, const Tensor& self, int64_t dim, const Tensor& index,
                            const Tensor& src) {
  const int64_t d = check_scatter(self, dim, index, src, kUnchecked);
  if (sums_in_float32(self)) {
    MaskGuard no_grad(bit(kKeyAutograd));
    TensorRef sum = row_major_copy(*as_float32(self));
    along(kernel_index_accumulate, *sum, d, index, *as_float32(src), kUnchecked);
    return op::to_dtype(*sum, self.dtype);
  }
  TensorRef out = row_major_copy(self);
  along(kernel_index_accumulate, *out, d, index, src, kUnchecked);
  return out;
}

void scatter_add__impl(Call, Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  const int64_t d = check_scatter(self, dim, index, src, kChecked);
  check_writable(self, "self");
  if (sums_in_float32(self, index)) {
    MaskGuard no_grad(bit(kKeyAutograd));
    op::copy_(self, *op::scatter_add(self, dim, index, src));
    return;
  }
  along(kernel_index_accumulate, self, d, *copy_if_shared(index, self), *copy_if_shared(src, self),
        kChecked);
  self.bump_version();
}

TensorRef impl::scatter_put(Call, const Tensor& self, int64_t dim, const Tensor& index,
                            const Tensor& src) {
  const int64_t d = check_scatter(self, dim, index, src, kUnchecked);
  TensorRef out = row_major_copy(self);
  along(kernel_index_put, *out, d, index, src, kUnchecked);
  return out;
}

// Views a tensor of one element in any shape.
static TensorRef number_as(const Scalar& value, const Tensor& like, Ints shape) {
  check_fits(value, like.dtype, "value");
  TensorRef one = new_tensor({}, like.dtype, like.device);
  fill_elements(*one, value);
  Shape strides;
  strides.resize(shape.n, 0);
  return new_alias(one, shape, strides);
}

TensorRef impl::scatter_fill(Call, const Tensor& self, int64_t dim, const Tensor& index,
                             const Scalar& value) {
  check_devices(self, index, nullptr, "");
  const int64_t d = check_along(self, dim, index, kUnchecked);
  TensorRef out = row_major_copy(self);
  TensorRef src = number_as(value, self, index.sizes());
  along(kernel_index_put, *out, d, index, src, kUnchecked);
  return out;
}

// How often index, which a caller checked, names each position of self; 1 more with include_self.
TensorRef impl::scatter_counts(Call, const Tensor& self, int64_t dim, const Tensor& index,
                               bool include_self) {
  TensorRef out = new_tensor(self.sizes(), Dtype::kI64, self.device);
  fill_elements(*out, Scalar(int64_t(include_self)));
  along(kernel_index_accumulate, *out, wrap_dim(dim, self.ndim), index,
        *number_as(1, *out, index.sizes()), kChecked);
  return out;
}

TensorRef impl::one_hot(Call, const Tensor& self, int64_t num_classes) {
  if (self.dtype != Dtype::kI64)
    fail_arg(TT_DTYPE, "self", "self is {}: must be int64", fmt(self.dtype));
  if (num_classes < -1 || (num_classes < 1 && self.numel == 0))
    fail_arg(
        TT_INVALID_ARG, "num_classes",
        "num_classes is {}, self has {} elements: must be positive, or -1 if there are elements",
        num_classes, self.numel);
  if (num_classes == -1) {
    const int64_t top = read_scalar(*op::max(self)).i;
    if (top == INT64_MAX)
      fail_arg(TT_INVALID_ARG, "self", "self has the class {}: too many classes", top);
    num_classes = top + 1 < 1 ? 1 : top + 1;
  }
  Shape shape(self.sizes());
  shape.push_back(num_classes);
  checked_numel(shape, Dtype::kI64, "result");
  TensorRef out = op::zeros(shape, Dtype::kI64, self.device);
  TensorRef index = op::unsqueeze(self, -1);
  along(kernel_index_put, *out, self.ndim, *index, *number_as(1, *out, index->sizes()), kUnchecked);
  return out;
}

TensorRef impl::scatter_multiply(Call, const Tensor& self, int64_t dim, const Tensor& index,
                                 const Tensor& src) {
  const int64_t d = check_scatter(self, dim, index, src, kUnchecked);
  TensorRef out = row_major_copy(self);
  along(kernel_index_combine, *out, d, index, src, kUnchecked, kCombineProduct);
  return out;
}

// Without self an element begins as any src that it receives: a maximum may meet it again.
TensorRef impl::scatter_extreme(Call, const Tensor& self, int64_t dim, const Tensor& index,
                                const Tensor& src, bool smallest, bool include_self) {
  const int64_t d = check_scatter(self, dim, index, src, kUnchecked);
  TensorRef out = row_major_copy(self);
  if (!include_self) along(kernel_index_put, *out, d, index, src, kUnchecked);
  along(kernel_index_combine, *out, d, index, src, include_self ? kUnchecked : kChecked,
        smallest ? kCombineMin : kCombineMax);
  return out;
}

TensorRef impl::scatter(Call, const Tensor& self, int64_t dim, const Tensor& index,
                        const Tensor& src, int64_t reduce) {
  if (reduce == kScatterAdd) return op::scatter_add(self, dim, index, src);
  if (reduce == kScatterMultiply) return op::scatter_multiply(self, dim, index, src);
  return op::scatter_put(self, dim, index, src);
}

TensorRef impl::scatter_value(Call c, const Tensor& self, int64_t dim, const Tensor& index,
                              const Scalar& value, int64_t reduce) {
  if (!reduce) return op::scatter_fill(self, dim, index, value);
  check_devices(self, index, nullptr, "");
  check_fits(value, self.dtype, "value");
  const TensorRef one = op::full({}, value, self.dtype, self.device);
  return scatter(c, self, dim, index, *op::expand(*one, index.sizes()), reduce);
}

// Writes src, or value, into self where that is all a call does. A composite would copy self twice.
static bool writes_alone(const Tensor& self, const Tensor& index, const Tensor* src) {
  return is_alone(self, kKeyCpu) && is_alone(index, kKeyCpu) && (!src || is_alone(*src, kKeyCpu));
}
static void put_along(Tensor& self, int64_t dim, const Tensor& index, const Tensor& src) {
  check_writable(self, "self");
  along(kernel_index_put, self, dim, *copy_if_shared(index, self), src, kChecked);
  self.bump_version();
}

void scatter__impl(Call c, Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                   int64_t reduce) {
  if (reduce != kScatterNone || !writes_alone(self, index, &src))
    return replace_values(self, *impl::scatter(c, self, dim, index, src, reduce));
  const int64_t d = check_scatter(self, dim, index, src, kChecked);
  put_along(self, d, index, *copy_if_shared(src, self));
}

void scatter_value__impl(Call c, Tensor& self, int64_t dim, const Tensor& index,
                         const Scalar& value, int64_t reduce) {
  if (reduce != kScatterNone || !writes_alone(self, index, nullptr))
    return replace_values(self, *impl::scatter_value(c, self, dim, index, value, reduce));
  check_devices(self, index, nullptr, "");
  const int64_t d = check_along(self, dim, index, kChecked);
  put_along(self, d, index, *number_as(value, self, index.sizes()));
}

// ---- index_select, index_add, index_copy, index_fill: the index is a vector ----

static int64_t check_vector(const Tensor& self, int64_t dim, const Tensor& index,
                            bool from_end = false, bool may_be_empty = false) {
  const int64_t d = wrap_dim(dim, self.ndim);
  check_index_dtype(index, "index");
  if (index.ndim > 1) fail_arg(TT_SHAPE, "index", "index is {}: must be 1-D or 0-D", index.sizes());
  if (self.ndim == 0 && index.numel != 1 && !(may_be_empty && index.numel == 0))
    fail_arg(TT_SHAPE, "index", "index is {}, self is 0-dim: exactly one index is needed",
             index.sizes());
  const int64_t n = self.ndim ? self.size(d) : 1;
  check_indices(index, "index", from_end ? -n : 0, n);
  return d;
}

// Pairs whole slices of a at `dim` with those of b.
static void slices(const Kernel& k, const Tensor& a, int64_t dim, const Tensor& index,
                   const Tensor& b) {
  if (b.numel == 0) return;
  const Geometry ga(a);
  const Geometry gb(b);
  IndexNest nest;
  for (int64_t d = 0; d < ga.ndim(); d++) {
    const bool indexed = d == dim;
    nest.add(indexed ? index.numel : ga.size[d], indexed ? 0 : ga.stride[d], gb.stride[d],
             indexed && index.ndim ? index.byte_stride(0) : 0);
  }
  run_index(k, nest, a, a.data, b, index, {ga.size[dim], ga.stride[dim]});
}

TensorRef impl::index_select(Call, const Tensor& self, int64_t dim, const Tensor& index) {
  check_devices(self, index, nullptr, "");
  const int64_t d = check_vector(self, dim, index);
  Shape shape(self.sizes());
  if (self.ndim) shape[d] = index.numel;
  TensorRef out = new_tensor(shape, self.dtype, self.device);
  slices(kernel_index_get, self, d, index, *out);
  return out;
}

static void check_source(const Tensor& self, int64_t* dim, const Tensor& index,
                         const Tensor& source) {
  check_devices(self, index, &source, "source");
  check_same_dtype(self, source, "source");
  *dim = check_vector(self, *dim, index);
  Geometry s(self);
  Geometry b(source);
  bool fits = s.ndim() == b.ndim() || (self.ndim == 0 && source.ndim <= 1);
  for (int64_t d = 0; fits && d < s.ndim(); d++)
    fits = b.size[d] == (d == *dim ? index.numel : s.size[d]);
  if (!fits)
    fail_arg(
        TT_SHAPE, "source",
        "source is {}, self is {}, index has {} elements: source must have self's sizes, except "
        "{} in dim {}",
        source.sizes(), self.sizes(), index.numel, index.numel, *dim);
}

// Returns alpha * source.
static TensorRef check_index_add(const Tensor& self, int64_t* dim, const Tensor& index,
                                 const Tensor& source, Scalar alpha) {
  check_source(self, dim, index, source);
  if (alpha.is_float() && category(self.dtype) < 2 && double(alpha.to_int()) == alpha.re)
    alpha = Scalar(alpha.to_int());
  // For bool, alpha may be an integer, as its default is: it counts as true or false.
  const Dtype held = self.dtype == Dtype::kBool ? Dtype::kI64 : self.dtype;
  if (!can_cast(alpha.natural_dtype(), held))
    fail_arg(TT_DTYPE, "alpha", "alpha is a {}, self is {}: alpha cannot be cast to self's dtype",
             fmt(alpha.natural_dtype()), fmt(self.dtype));
  if (alpha.is_one()) return TensorRef::share(&source);
  MaskGuard no_grad(bit(kKeyAutograd));
  TensorRef scaled = op::mul(source, alpha);
  return scaled->dtype == self.dtype ? std::move(scaled) : op::to_dtype(*scaled, self.dtype);
}

TensorRef impl::index_add(Call, const Tensor& self, int64_t dim, const Tensor& index,
                          const Tensor& source, const Scalar& alpha) {
  TensorRef scaled = check_index_add(self, &dim, index, source, alpha);
  if (sums_in_float32(self)) {
    MaskGuard no_grad(bit(kKeyAutograd));
    TensorRef sum = row_major_copy(*as_float32(self));
    slices(kernel_index_accumulate, *sum, dim, index, *as_float32(*scaled));
    return op::to_dtype(*sum, self.dtype);
  }
  TensorRef out = row_major_copy(self);
  slices(kernel_index_accumulate, *out, dim, index, *scaled);
  return out;
}

void index_add__impl(Call, Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                     const Scalar& alpha) {
  TensorRef scaled = check_index_add(self, &dim, index, source, alpha);
  check_writable(self, "self");
  if (sums_in_float32(self, *scaled)) {
    MaskGuard no_grad(bit(kKeyAutograd));
    op::copy_(self, *op::index_add(self, dim, index, *scaled));
    return;
  }
  slices(kernel_index_accumulate, self, dim, *copy_if_shared(index, self),
         *copy_if_shared(*scaled, self));
  self.bump_version();
}

TensorRef impl::index_copy(Call, const Tensor& self, int64_t dim, const Tensor& index,
                           const Tensor& source) {
  check_source(self, &dim, index, source);
  TensorRef out = row_major_copy(self);
  slices(kernel_index_put, *out, dim, index, source);
  return out;
}

TensorRef impl::index_fill(Call, const Tensor& self, int64_t dim, const Tensor& index,
                           const Scalar& value) {
  check_devices(self, index, nullptr, "");
  const int64_t d = check_vector(self, dim, index, true, true);
  Shape shape(self.sizes());
  if (self.ndim) shape[d] = index.numel;
  MaskGuard no_grad(bit(kKeyAutograd));
  TensorRef out = op::clone(self);  // in the order of self
  if (!index.numel) return out;
  slices(kernel_index_put, *out, d, index, *number_as(value, self, shape));
  return out;
}

void index_fill__impl(Call, Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  check_devices(self, index, nullptr, "");
  const int64_t d = check_vector(self, dim, index, true, true);
  check_not_read_only(self, "self");
  Shape shape(self.sizes());
  if (self.ndim) shape[d] = index.numel;
  if (index.numel)
    slices(kernel_index_put, self, d, *copy_if_shared(index, self), *number_as(value, self, shape));
  self.bump_version();
}

// By a mask of the filled positions, so that value's gradient counts each of them once.
TensorRef impl::index_fill_tensor(Call, const Tensor& self, int64_t dim, const Tensor& index,
                                  const Tensor& value) {
  if (value.ndim) fail_arg(TT_SHAPE, "value", "value is {}: must be 0-dim", value.sizes());
  if (is_complex(value.dtype) && !is_complex(self.dtype))
    fail_arg(TT_DTYPE, "value", "value is {}, self is {}: value cannot be cast to self's dtype",
             fmt(value.dtype), fmt(self.dtype));
  check_devices(self, index, nullptr, "");
  const int64_t d = check_vector(self, dim, index, true, true);
  Shape shape;
  shape.resize(self.ndim, 1);
  if (self.ndim) shape[d] = self.size(d);
  TensorRef filled = op::index_fill(*op::zeros(shape, Dtype::kBool, self.device), d, index, true);
  TensorRef v =
      value.dtype == self.dtype ? TensorRef::share(&value) : op::to_dtype(value, self.dtype);
  return op::where(*filled, *v, self);
}

void index_fill_tensor__impl(Call c, Tensor& self, int64_t dim, const Tensor& index,
                             const Tensor& value) {
  if (value.ndim == 0 && shares_elements(self) && !needs_gradient(value))
    return op::index_fill_(self, dim, index, read_scalar(value));
  replace_values(self, *impl::index_fill_tensor(c, self, dim, index, value));
}

// ---- embedding ----

TensorRef impl::embedding(Call, const Tensor& weight, const Tensor& indices,
                          Opt<int64_t> padding_idx, bool) {
  if (weight.ndim != 2)
    fail_arg(TT_SHAPE, "weight", "weight is {}: must be (rows, features)", weight.sizes());
  check_same_device(weight, "weight", indices, "indices");
  check_index_dtype(indices, "indices");
  if (padding_idx.has &&
      (padding_idx.value < -weight.size(0) || padding_idx.value >= weight.size(0)))
    fail_arg(TT_INVALID_ARG, "padding_idx", "padding_idx is {}: must be in [{}, {})",
             padding_idx.value, -weight.size(0), weight.size(0));
  check_indices(indices, "indices", 0, weight.size(0));
  Shape shape(indices.sizes());
  shape.push_back(weight.size(1));
  checked_numel(shape, weight.dtype, "result");
  TensorRef out = new_tensor(shape, weight.dtype, weight.device);
  if (out->numel == 0) return out;
  const int64_t item = out->item_size();
  IndexNest nest;
  for (int64_t d = 0; d < indices.ndim; d++)
    nest.add(shape[d], 0, out->stride(d) * item, indices.stride(d) * indices.item_size());
  nest.add(weight.size(1), weight.stride(1) * item, item, 0);
  run_index(kernel_index_get, nest, weight, weight.data, *out, indices,
            {weight.size(0), weight.stride(0) * item});
  return out;
}

}  // namespace TT_NS
