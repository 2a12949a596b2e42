// Positions in the flattened tensor, and masks: take, put, masked_scatter; argwhere,
// nonzero_static, unravel_index.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/index/nest.h"
#include "ops/one_pass.h"

#include <string.h>

namespace TT_NS::impl {

static void check_same_dtype(const Tensor& self, const Tensor& t, const char* arg) {
  if (t.dtype != self.dtype)
    fail_arg(TT_DTYPE, arg, "{} is {}, self is {}: must be equal", arg, fmt(t.dtype),
             fmt(self.dtype));
}
static void check_flat_index(const Tensor& self, const Tensor& index) {
  check_same_device(self, "self", index, "index");
  check_index_dtype(index, "index");
  check_indices(index, "index", -self.numel, self.numel);
}

// Takes the elements of a strided tensor at n positions; negative ones count from the end. If
// another thread has moved a position out of range since the check, it counts as 0.
struct TakePlan {
  const Tensor* from;
  int64_t n;
  const int64_t* index;
  char* out;
};
// The distance in elements from the first element of t to the one at position `at`.
static int64_t offset_of(const Tensor& t, int64_t at) {
  if (at < 0) at += t.numel;
  if (TT_UNLIKELY(uint64_t(at) >= uint64_t(t.numel))) at = 0;
  int64_t offset = 0;
  for (int64_t d = t.ndim - 1; d > 0; d--) {
    const bool is_short = (at | t.size(d)) < int64_t(1) << 32;  // a division takes half as long
    const int64_t rest = is_short ? int64_t(uint32_t(at) / uint32_t(t.size(d))) : at / t.size(d);
    offset += (at - rest * t.size(d)) * t.stride(d);
    at = rest;
  }
  return offset + at * t.stride(0);
}
template <class T> static void copy_elements_at(const char* const* from, int64_t n, char* to) {
  for (int64_t i = 0; i < n; i++) memcpy(to + i * int64_t(sizeof(T)), from[i], sizeof(T));
}
static void take_elements(const TakePlan& p) {
  constexpr int64_t kBlock = 64;  // elements that are on their way from memory at a time
  const Tensor& t = *p.from;
  const int64_t size = t.item_size();
  const char* from[kBlock];
  for (int64_t at = 0; at < p.n; at += kBlock) {
    const int64_t n = TT_NS::min(kBlock, p.n - at);
    for (int64_t i = 0; i < n; i++) {
      from[i] = t.data + offset_of(t, p.index[at + i]) * size;
      TT_PREFETCH(from[i]);
    }
    char* const to = p.out + at * size;
    if (size == 4) copy_elements_at<float>(from, n, to);
    else if (size == 8) copy_elements_at<double>(from, n, to);
    else
      for (int64_t i = 0; i < n; i++) memcpy(to + i * size, from[i], size_t(size));
  }
}
constexpr Kernel kTake = one_pass_kernel<TakePlan, take_elements>("take");

TensorRef take(Call, const Tensor& self, const Tensor& index) {
  check_flat_index(self, index);
  if (index.numel == 0) return op::reshape(*op::slice(*op::flatten(self), 0, 0, 0), index.sizes());
  // An element by its position takes about as long as four of a copy, by operators as 64.
  const bool some = index.numel < self.numel / 4;
  const bool few = index.numel < self.numel / 64;
  if (some && !self.contiguous() && takes_one_pass(self) && takes_one_pass(index)) {
    const TensorRef at = cast_input(index, Dtype::kI64);
    TensorRef out = new_tensor(index.sizes(), self.dtype, self.device);
    const TakePlan plan = {
        .from = &self, .n = index.numel, .index = at->as<int64_t>(), .out = out->data};
    launch(kTake, kCpuDevice, &plan, 1);
    return out;
  }
  if (few && !self.contiguous()) {  // which flatten would copy whole
    const TensorList found = op::unravel_index(index, self.sizes());
    SmallVec<const Tensor*, 4> indices;
    for (const TensorRef& i : found) indices.push_back(i.get());
    return op::index(self, {indices.data(), indices.size()});
  }
  const Tensor* const indices[1] = {&index};
  return op::index(*op::flatten(self), indices);
}

TensorRef put(Call, const Tensor& self, const Tensor& index, const Tensor& source,
              bool accumulate) {
  check_flat_index(self, index);
  check_same_device(self, "self", source, "source");
  check_same_dtype(self, source, "source");
  if (source.numel != index.numel)
    fail_arg(TT_SHAPE, "source", "source is {}, index is {}: must have as many elements",
             source.sizes(), index.sizes());
  if (index.numel == 0) return op::clone(self);
  const Tensor* const indices[1] = {&index};
  TensorRef out =
      op::index_put(*op::flatten(self), indices, *op::reshape(source, index.sizes()), accumulate);
  return op::reshape(*out, self.sizes());
}

// The k-th true element of mask gets source[k].
TensorRef masked_scatter(Call, const Tensor& self, const Tensor& mask, const Tensor& source) {
  if (mask.dtype != Dtype::kBool)
    fail_arg(TT_DTYPE, "mask", "mask is {}: must be bool", fmt(mask.dtype));
  check_same_device(self, "self", mask, "mask");
  check_same_device(self, "self", source, "source");
  check_same_dtype(self, source, "source");
  const Shape shape = broadcast_shapes(self.sizes(), mask.sizes(), "self", "mask");
  TensorRef wide = op::expand(mask, shape);
  if (wide->numel == 0) return op::clone(*op::expand(self, shape), TT_CONTIGUOUS);
  const TensorRef flat = op::flatten(*wide);
  wide = op::reshape(flat, shape);  // dense, as the result is then
  TensorRef count = op::cumsum(*flat, 0, Dtype::kI64);
  const TensorRef needed_here = op::select(*count, 0, -1);
  if (self.device.type == TT_CPU && checks_later(self) && source.numel) {
    require(*op::le(*needed_here, source.numel), TT_SHAPE, "source",
            "source has fewer elements than mask has true ones");
  } else if (self.device.type != TT_META) {
    const int64_t needed = read_scalar(*needed_here).i;
    if (needed > source.numel)
      fail_arg(TT_SHAPE, "source", "source has {} elements, mask has {} true ones: not enough",
               source.numel, needed);
    if (!source.numel) return op::clone(*op::expand(self, shape), TT_CONTIGUOUS);
  }
  const Scalar first = 0;
  TensorRef index = op::clamp(*op::sub(*count, 1), &first);
  TensorRef values = op::reshape(*op::index_select(*op::flatten(source), 0, *index), shape);
  return op::where(*wide, *values, self);
}

TensorRef argwhere(Call, const Tensor& self) { return op::nonzero(self); }

TensorRef nonzero_static(Call, const Tensor& self, int64_t size, int64_t fill_value) {
  if (size < 0) fail_arg(TT_INVALID_ARG, "size", "size is {}: must not be negative", size);
  const int64_t shape[2] = {size, self.ndim};
  TensorRef out = op::full(shape, fill_value, Dtype::kI64, self.device);
  if (self.device.type == TT_META) return out;
  TensorRef found = op::nonzero(self);
  const int64_t n = TT_NS::min(size, found->size(0));
  copy_elements(*op::slice(*out, 0, 0, n), *op::slice(*found, 0, 0, n));
  return out;
}

TensorList unravel_index(Call, const Tensor& indices, Ints shape) {
  if (category(indices.dtype) != 1)
    fail_arg(TT_DTYPE, "indices", "indices is {}: must be integer", fmt(indices.dtype));
  for (int64_t n : shape)
    if (n < 0) fail_arg(TT_INVALID_ARG, "shape", "shape is {}: sizes must not be negative", shape);
  const int64_t total = checked_numel(shape, Dtype::kI8, "shape");
  check_indices(indices, "indices", -total, total);
  const TensorRef positions = op::to(indices, Dtype::kI64);
  TensorList out;
  int64_t inner = total;
  for (int64_t n : shape) {
    inner = n ? inner / n : 1;
    TensorRef whole = op::div(*positions, inner ? inner : 1, kRoundingFloor);
    out.push_back(op::remainder(*whole, n ? n : 1));
  }
  return out;
}

}  // namespace TT_NS::impl
