// index and index_put: several index tensors at once, including masks (NumPy's advanced indexing).
#include "ops/gen/impl_decl.h"
#include "ops/gen/impls.h"
#include "ops/gen/kernels.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/index/nest.h"

namespace TT_NS {

static bool is_mask(const Tensor& t) { return t.dtype == Dtype::kBool || t.dtype == Dtype::kU8; }

// The geometry of self[indices]: the indexed dimensions, their indices, and the shape of the
// result.
class Advanced {
 public:
  Advanced(const Tensor& self, TensorSpan indices) : self_(self) {
    int64_t dim = 0;
    for (const Tensor* t : indices) dim = add(dim, t);
    if (!n_indexed_) fail_arg(TT_INDEX, "indices", "indices has no tensor: at least one is needed");
    for (; dim < self.ndim; dim++) keep(dim);
    place_dims();
  }

  Ints shape() const { return shape_; }
  // Strides of the result, ordered in memory like self, then like the index tensors. Empty:
  // row-major.
  Shape result_strides() const {
    bool row_major = self_.contiguous();
    for (const Dim& d : dims_) row_major &= !d.index || d.index->contiguous();
    if (row_major) return {};
    SmallVec<Shape, 4> operands;
    operands.reserve(n_indexed_ + 1);
    Shape of_self;
    for (int64_t d = 0; d < first_; d++) of_self.push_back(dims_[d].stride);
    for (int64_t d = 0; d < index_shape_.size(); d++) of_self.push_back(0);
    for (int64_t d = first_; d < dims_.size(); d++)
      if (!dims_[d].index) of_self.push_back(dims_[d].stride);
    operands.push_back(std::move(of_self));
    for (const Dim& d : dims_)
      if (d.index) operands.push_back(index_strides(*d.index));
    return strides_like(shape_, {operands.data(), operands.size()});
  }
  // b: shape() with these strides in bytes (0 where it broadcasts).
  void run(const Kernel& k, const Tensor& a, const Tensor& b, Ints b_stride) {
    if (numel_of(shape_) == 0) return check_all();
    IndexedDim dim;
    TensorRef index = prepare(&dim);
    IndexNest nest;
    int64_t r = 0;
    auto add_slices = [&](int64_t from, int64_t to) {
      for (int64_t d = from; d < to; d++)
        if (!dims_[d].index) nest.add(dims_[d].size, dims_[d].stride, b_stride[r++], 0);
    };
    add_slices(0, first_);
    for (int64_t i = 0; i < index_shape_.size(); i++) {
      const int64_t d = index->ndim - index_shape_.size() + i;
      nest.add(index_shape_[i], 0, b_stride[r++],
               d < 0 || index->size(d) == 1 ? 0 : index->byte_stride(d));
    }
    add_slices(first_, dims_.size());
    run_index(k, nest, a, a.data, b, index, dim);
  }
  // Indices that share memory with dst are copied before it is written.
  void copy_shared_indices(const Tensor& dst) {
    for (Dim& d : dims_)
      if (d.index && may_share_memory(*d.index, dst)) {
        TensorRef copy = new_tensor(d.index->sizes(), d.index->dtype, d.index->device);
        copy_elements(*copy, d.index);
        d.index = std::move(copy);
      }
    check_all();
  }
  void check_all() const {
    for (const Dim& d : dims_)
      if (d.index) check_indices(*d.index, "indices", -d.size, d.size);
  }

 private:
  // A dimension of self, or several dimensions indexed by one mask.
  struct Dim {
    int64_t size, stride;  // bytes
    TensorRef index;
  };

  int64_t stride(int64_t d) const { return self_.byte_stride(d); }
  void keep(int64_t d) { dims_.push_back({self_.size(d), stride(d), {}}); }
  void take(int64_t size, int64_t stride, TensorRef index) {
    dims_.push_back({size, stride, std::move(index)});
    n_indexed_++;
  }

  // Handles the entry for dimension `dim`; returns the next one.
  int64_t add(int64_t dim, const Tensor* t) {
    const int64_t n = !t || !is_mask(*t) ? 1 : t->ndim;
    if (dim + n > self_.ndim)
      fail_arg(TT_INDEX, "indices", "indices has entries for more than the {} dimensions of self",
               self_.ndim);
    if (!t) {
      keep(dim);
      return dim + 1;
    }
    TensorRef index = on_device(*t);
    if (is_mask(*t)) return add_mask(dim, *index);
    if (category(t->dtype) != 1)
      fail_arg(TT_INDEX, "indices", "an index tensor is {}: must be integer or bool",
               fmt(t->dtype));
    if (index->dtype != Dtype::kI64 && index->dtype != Dtype::kI32)
      index = cast_input(*index, Dtype::kI64);
    take(self_.size(dim), stride(dim), std::move(index));
    return dim + 1;
  }

  TensorRef on_device(const Tensor& t) const {
    if (t.device == self_.device || (t.ndim && !t.is_cpu())) {
      check_same_device(self_, "self", t, "indices");
      return TensorRef::share(&t);
    }
    return op::to_device(t, self_.device);
  }

  int64_t add_mask(int64_t dim, const Tensor& mask) {
    const int64_t n = mask.ndim;
    if (!same(mask.sizes(), self_.sizes().slice(dim, dim + n)))
      fail_arg(TT_INDEX, "indices",
               "a mask is {}: must have the sizes {} of the dimensions that it indexes",
               mask.sizes(), self_.sizes().slice(dim, dim + n));
    if (n == 0) fail_arg(TT_INDEX, "indices", "a mask is 0-dim: must have at least one dimension");
    bool one_run = true;
    for (int64_t d = dim; d + 1 < dim + n; d++)
      one_run &= stride(d) == stride(d + 1) * self_.size(d + 1);
    TensorRef positions = nonzero_positions(mask, one_run);
    const int64_t count[1] = {positions->size(1)};
    const int64_t step[1] = {1};
    for (int64_t d = 0; d < (one_run ? 1 : n); d++) {
      TensorRef row =
          new_alias(positions, count, step, positions->data + d * count[0] * 8, Dtype::kI64);
      take(one_run ? mask.numel : self_.size(dim + d), stride(one_run ? dim + n - 1 : dim + d),
           std::move(row));
    }
    return dim + n;
  }

  // The index dimensions replace the indexed ones if those are adjacent, else they come first.
  void place_dims() {
    bool first = true;
    bool ended = false;
    bool neighbours = true;
    for (int64_t d = 0; d < dims_.size(); d++) {
      if (!dims_[d].index) {
        ended |= !first;
        continue;
      }
      neighbours &= !ended;
      if (first) first_ = d;
      const Ints sizes = dims_[d].index->sizes();
      if (!first && !compatible(sizes))
        fail_arg(TT_INDEX, "indices",
                 "index tensors have shapes {} and {}: must broadcast together", Ints(index_shape_),
                 sizes);
      index_shape_ =
          first ? Shape(sizes) : broadcast_shapes(index_shape_, sizes, "indices", "indices");
      first = false;
    }
    if (!neighbours) first_ = 0;
    for (int64_t d = 0; d < first_; d++) shape_.push_back(dims_[d].size);
    shape_.append(index_shape_);
    for (int64_t d = first_; d < dims_.size(); d++)
      if (!dims_[d].index) shape_.push_back(dims_[d].size);
    checked_numel(shape_, self_.dtype, "result");
  }
  bool compatible(Ints s) const {
    for (int64_t i = 1; i <= s.n && i <= index_shape_.size(); i++) {
      const int64_t x = s[s.n - i];
      const int64_t y = index_shape_[index_shape_.size() - i];
      if (x != y && x != 1 && y != 1) return false;
    }
    return true;
  }

  Shape index_strides(const Tensor& index) const {
    Shape out;
    out.resize(shape_.size(), 0);
    const int64_t end = first_ + index_shape_.size();
    for (int64_t d = 1; d <= index.ndim; d++)
      if (index.size(-d) != 1) out[end - d] = index.stride(-d);
    return out;
  }

  // Returns the index tensor that the kernel reads: the only one, checked, or the sum of the byte
  // offsets of all.
  TensorRef prepare(IndexedDim* dim) const {
    if (n_indexed_ == 1) {
      for (const Dim& d : dims_)
        if (d.index) {
          check_indices(*d.index, "indices", -d.size, d.size);
          *dim = {d.size, d.stride};
          return d.index;
        }
    }
    TensorRef offsets = new_tensor(index_shape_, Dtype::kI64, self_.device);
    bool add = false;
    for (const Dim& d : dims_)
      if (d.index) {
        index_offsets(*offsets, *d.index, "indices", {d.size, d.stride}, add);
        add = true;
      }
    *dim = {0, 1};
    return offsets;
  }

  const Tensor& self_;
  SmallVec<Dim, 8> dims_;
  Shape index_shape_, shape_;
  int64_t n_indexed_ = 0;
  int64_t first_ = 0;  // dims_[0 … first_) precede the index dimensions
};

TensorRef impl::index(Call, const Tensor& self, TensorSpan indices) {
  MaskGuard no_grad(bit(kKeyAutograd));
  Advanced a(self, indices);
  TensorRef out = new_strided(a.shape(), a.result_strides(), self.dtype, self.device);
  a.run(kernel_index_get, self, *out, byte_strides(*out));
  return out;
}

static void put(Tensor& dst, TensorSpan indices, const Tensor& values, bool accumulate) {
  MaskGuard no_grad(bit(kKeyAutograd));
  Advanced a(dst, indices);
  if (values.dtype != dst.dtype)
    fail_arg(TT_DTYPE, "values", "values is {}, self is {}: must be equal", fmt(values.dtype),
             fmt(dst.dtype));
  TensorRef v = values.ndim == 0 && !(values.device == dst.device)
                    ? op::to_device(values, dst.device)
                    : TensorRef::share(&values);
  check_same_device(dst, "self", *v, "values");
  if (!broadcastable_to(v->sizes(), a.shape()))
    fail_arg(TT_SHAPE, "values", "values is {}: must broadcast to {}, the shape of self[indices]",
             v->sizes(), a.shape());
  if (may_share_memory(*v, dst)) v = op::clone(*v);
  a.copy_shared_indices(dst);
  Shape strides;
  strides.resize(a.shape().n, 0);
  for (int64_t d = 1; d <= v->ndim; d++)
    if (v->size(-d) != 1) strides[strides.size() - d] = v->byte_stride(-d);
  a.run(accumulate ? kernel_index_accumulate : kernel_index_put, dst, *v, strides);
}

TensorRef impl::index_put(Call, const Tensor& self, TensorSpan indices, const Tensor& values,
                          bool accumulate) {
  TensorRef out = new_tensor(self.sizes(), self.dtype, self.device);
  copy_elements(*out, self);
  put(*out, indices, values, accumulate);
  return out;
}

void index_put__impl(Call, Tensor& self, TensorSpan indices, const Tensor& values,
                     bool accumulate) {
  if (values.numel == 1 && !accumulate) check_not_read_only(self, "self");
  else check_writable(self, "self");
  put(self, indices, values, accumulate);
  self.bump_version();
}

// Slices in which no two elements share an address are filled one after the other.
static void fill_slices(Tensor& self, const Tensor& mask, const Scalar& value) {
  if (!may_overlap_self(self.sizes(), self.strides())) return op::masked_fill_(self, mask, value);
  const int64_t d = dim_to_slice(self.sizes(), self.strides());
  Shape sizes(self.sizes());
  sizes[d] = 1;
  for (int64_t i = 0; i < self.size(d); i++) {
    const auto slice = [&](const Tensor& t) {
      return new_alias(t, sizes, t.strides(), advance(t.data, i * t.byte_stride(d)), t.dtype);
    };
    fill_slices(*slice(self), *slice(mask), value);
  }
}

// An address is filled if the mask has one of its elements.
void fill_shared(Tensor& self, const Tensor& mask, const Scalar& value) {
  if (mask.dtype != Dtype::kBool)
    fail_arg(TT_DTYPE, "mask", "mask is {}: must be bool", fmt(mask.dtype));
  check_not_read_only(self, "self");
  MaskGuard no_grad(bit(kKeyAutograd));
  fill_slices(self, *op::expand(mask, self.sizes()), value);
}

}  // namespace TT_NS
