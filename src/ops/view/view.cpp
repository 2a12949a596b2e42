// Views: only the geometry changes.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/impl.h"

namespace TT_NS::impl {

TensorRef view(Call, const Tensor& self, Ints size) {
  if (self.contiguous() && is_size_of(size, self.numel))
    return make_view(self, size, {}, self.data);
  Shape to = infer_size(size, self.numel, "size");
  if (self.contiguous()) return make_view(self, to, {}, self.data);
  Shape strides;
  strides.resize(to.size());
  if (!view_strides(self.sizes(), self.strides(), to, strides.data()))
    fail_arg(TT_INVALID_ARG, "size",
             "self has shape {} and strides {}: cannot be viewed as {}, use reshape", self.sizes(),
             self.strides(), Ints(to));
  return make_view(self, to, strides, self.data);
}

TensorRef reshape(Call, const Tensor& self, Ints size) {
  Shape to = infer_size(size, self.numel, "shape");
  Shape strides;
  strides.resize(to.size());
  if (view_strides(self.sizes(), self.strides(), to, strides.data())) return op::view(self, to);
  return op::view(*op::clone(self, TT_CONTIGUOUS), to);
}

TensorRef transpose(Call, const Tensor& self, int64_t dim0, int64_t dim1) {
  int64_t a = wrap_dim(dim0, self.ndim, "dim0");
  int64_t b = wrap_dim(dim1, self.ndim, "dim1");
  Shape sizes(self.sizes());
  Shape strides(self.strides());
  if (self.ndim) {
    std::swap(sizes[a], sizes[b]);
    std::swap(strides[a], strides[b]);
  }
  return make_view(self, sizes, strides, self.data);
}

TensorRef t(Call, const Tensor& self) {
  if (self.ndim > 2)
    fail_arg(TT_SHAPE, "self", "self has {} dims, at most 2 are allowed: use transpose or permute",
             self.ndim);
  return op::transpose(self, 0, self.ndim == 2 ? 1 : 0);
}

TensorRef permute(Call, const Tensor& self, Ints dims) {
  if (dims.n != self.ndim)
    fail_arg(TT_INVALID_ARG, "dims", "dims is {}, self has {} dims: must have one entry for each",
             dims, self.ndim);
  dim_mask(dims, self.ndim, false, "dims");
  Shape sizes, strides;
  for (int64_t d : dims) {
    int64_t k = wrap_dim(d, self.ndim, "dims");
    sizes.push_back(self.size(k));
    strides.push_back(self.stride(k));
  }
  return make_view(self, sizes, strides, self.data);
}

TensorRef expand(Call, const Tensor& self, Ints size) {
  int64_t extra = size.n - self.ndim;
  if (extra < 0 || size.n > kMaxDims)
    fail_arg(TT_SHAPE, "size", "size is {}, self is {}: must have {} to 64 entries", size,
             self.sizes(), self.ndim);
  Shape sizes(size), strides;
  strides.resize(size.n, 0);
  for (int64_t d = 0; d < size.n; d++) {
    int64_t own = d - extra;
    int64_t have = own < 0 ? 1 : self.size(own);
    if (size[d] == -1) {
      if (own < 0)
        fail_arg(TT_SHAPE, "size", "size is {}: -1 is not allowed in a new dimension", size);
      sizes[d] = have;
    } else if (size[d] < 0) {
      fail_arg(TT_SHAPE, "size", "size is {}: sizes must not be negative", size);
    } else if (have != 1 && size[d] != have) {
      fail_arg(TT_SHAPE, "size", "size is {}, self is {}: dimension {} has size {}, not 1", size,
               self.sizes(), own, have);
    }
    if (own >= 0 && (have != 1 || sizes[d] == 1)) strides[d] = self.stride(own);
  }
  checked_numel(sizes, self.dtype, "size");
  return make_view(self, sizes, strides, self.data);
}

static TensorRef squeeze_mask(const Tensor& self, uint64_t mask) {
  Shape sizes, strides;
  for (int64_t d = 0; d < self.ndim; d++)
    if (!(mask >> d & 1) || self.size(d) != 1) {
      sizes.push_back(self.size(d));
      strides.push_back(self.stride(d));
    }
  return make_view(self, sizes, strides, self.data);
}
TensorRef squeeze(Call, const Tensor& self) { return squeeze_mask(self, ~uint64_t(0)); }
TensorRef squeeze_dims(Call, const Tensor& self, Ints dim) {
  return squeeze_mask(self, dim_mask(dim, self.ndim, false));
}

TensorRef unsqueeze(Call, const Tensor& self, int64_t dim) {
  if (self.ndim == kMaxDims)
    fail_arg(TT_SHAPE, "self", "self has {} dims: no more are supported", self.ndim);
  int64_t d = wrap_dim(dim, self.ndim + 1);
  Shape sizes(self.sizes());
  Shape strides(self.strides());
  int64_t stride = 1;  // overflows only in a tensor without elements
  if (d < self.ndim && mul_overflow(self.size(d), self.stride(d), &stride)) stride = kMaxIdleStride;
  sizes.insert(d, 1);
  strides.insert(d, stride);
  return make_view(self, sizes, strides, self.data);
}

TensorRef select(Call, const Tensor& self, int64_t dim, int64_t index) {
  if (self.ndim == 0) fail_arg(TT_INDEX, "self", "self is 0-dim: must have at least one dimension");
  int64_t d = wrap_dim(dim, self.ndim);
  int64_t n = self.size(d);
  if (index < -n || index >= n)
    fail_arg(TT_INDEX, "index", "index is {}: dimension {} has size {}", index, d, n);
  if (index < 0) index += n;
  Shape sizes(self.sizes());
  Shape strides(self.strides());
  char* data = self.address(d, index);
  sizes.erase(d);
  strides.erase(d);
  return make_view(self, sizes, strides, data);
}

TensorRef slice(Call, const Tensor& self, int64_t dim, Opt<int64_t> start, Opt<int64_t> end,
                int64_t step) {
  if (self.ndim == 0) fail_arg(TT_INDEX, "self", "self is 0-dim: must have at least one dimension");
  if (step < 1) fail_arg(TT_INVALID_ARG, "step", "step is {}: must be at least 1", step);
  int64_t d = wrap_dim(dim, self.ndim);
  int64_t n = self.size(d);
  auto clip = [n](int64_t i) { return clamp<int64_t>(i < 0 ? i + n : i, 0, n); };
  int64_t from = clip(start.or_else(0));
  int64_t to = clip(end.or_else(n));
  if (to < from) to = from;
  Shape sizes(self.sizes());
  Shape strides(self.strides());
  sizes[d] = to > from ? (to - from - 1) / step + 1 : 0;
  char* data = self.address(d, from);
  int64_t stride;
  const bool fits = !mul_overflow(strides[d], step, &stride);
  if (fits && (sizes[d] > 1 || stride <= kMaxIdleStride)) strides[d] = stride;
  return make_view(self, sizes, strides, data);
}

// Fails unless all elements of a geometry are inside the storage.
static void check_inside(const Tensor& self, Ints size, Ints stride, int64_t offset) {
  if (size.n != stride.n)
    fail_arg(TT_INVALID_ARG, "stride", "size is {}, stride is {}: must have equal lengths", size,
             stride);
  int64_t n = checked_numel(size, self.dtype, "size");
  int64_t last = offset;
  for (int64_t s : stride)
    if (s < 0)
      fail_arg(TT_INVALID_ARG, "stride", "stride is {}: strides must not be negative", stride);
  if (offset < 0)
    fail_arg(TT_INVALID_ARG, "storage_offset", "storage_offset is {}: must not be negative",
             offset);
  if (n == 0) return;
  int64_t room = self.storage->bytes / self.item_size();
  int64_t step;
  for (int64_t d = 0; d < size.n; d++)
    if (mul_overflow(size[d] - 1, stride[d], &step) || add_overflow(last, step, &last)) {
      last = INT64_MAX;
      d = size.n;
    }
  if (last >= room)
    fail_arg(TT_INVALID_ARG, "size",
             "size {}, stride {} and offset {} reach element {} of a storage of {} elements", size,
             stride, offset, last, room);
}

TensorRef as_strided(Call, const Tensor& self, Ints size, Ints stride,
                     Opt<int64_t> storage_offset) {
  int64_t offset = storage_offset.or_else(self.offset());
  check_inside(self, size, stride, offset);
  return make_view(self, size, usable_strides(size, stride),
                   reinterpret_cast<char*>(uintptr_t(self.storage->data) +
                                           uint64_t(offset) * uint64_t(self.item_size())));
}

TensorRef as_strided_scatter(Call, const Tensor& self, const Tensor& src, Ints size, Ints stride,
                             Opt<int64_t> storage_offset) {
  check_same_device(self, "self", src, "src");
  const int64_t offset = storage_offset.or_else(self.offset());
  check_inside(self, size, stride, offset);
  if (offset < self.offset())
    fail_arg(TT_INVALID_ARG, "storage_offset",
             "storage_offset is {}: must be at least {}, the offset of self", offset,
             self.offset());
  if (may_overlap_self(size, stride))
    fail_arg(TT_INVALID_ARG, "stride",
             "size is {}, stride is {}: elements that are replaced must not share an address", size,
             stride);
  TensorRef x = shares_elements(self) ? op::contiguous(self) : TensorRef::share(&self);
  TensorRef values = src.dtype == self.dtype ? TensorRef::share(&src) : op::to(src, self.dtype);
  return op::as_strided_put(x, values, size, stride, offset - self.offset());
}

TensorRef detach(Call, const Tensor& self) { return new_alias(self); }

// ---- adjoints of views: new tensors ----

static TensorRef zeros_of(const Tensor& like, Ints size) {
  TensorRef out = new_tensor(size, like.dtype, like.device);
  fill_elements(*out, 0);
  return out;
}
TensorRef select_backward(Call, const Tensor& grad, Ints size, int64_t dim, int64_t index) {
  TensorRef out = zeros_of(grad, size);
  MaskGuard no_grad(bit(kKeyAutograd));
  copy_elements(*op::select(out, dim, index), grad);
  return out;
}
TensorRef slice_backward(Call, const Tensor& grad, Ints size, int64_t dim, Opt<int64_t> start,
                         Opt<int64_t> end, int64_t step) {
  TensorRef out = zeros_of(grad, size);
  MaskGuard no_grad(bit(kKeyAutograd));
  copy_elements(*op::slice(out, dim, start, end, step), grad);
  return out;
}

// Returns a copy with the given strides, whose storage begins at the first element.
TensorRef restride(Call, const Tensor& self, Ints stride) {
  int64_t extent = self.numel ? 1 : 0;
  for (int64_t d = 0; d < self.ndim && extent; d++) extent += (self.size(d) - 1) * stride[d];
  TensorRef flat = new_tensor(Ints(&extent, 1), self.dtype, self.device);
  if (extent != self.numel) fill_elements(*flat, 0);
  TensorRef out = new_alias(flat, self.sizes(), stride);
  copy_elements(*out, self);
  return out;
}

TensorRef as_strided_put(Call c, const Tensor& self, const Tensor& src, Ints size, Ints stride,
                         int64_t offset) {
  TensorRef out = restride(c, self, self.strides());
  check_inside(out, size, stride, offset);
  if (!same(src.sizes(), size))
    fail_arg(TT_SHAPE, "src", "src is {}: must have the shape {}", src.sizes(), size);
  if (src.numel == 0) return out;
  TensorRef target =
      new_alias(out, size, stride, out->data + offset * out->item_size(), out->dtype);
  copy_elements(*target, src);
  return out;
}

}  // namespace TT_NS::impl
