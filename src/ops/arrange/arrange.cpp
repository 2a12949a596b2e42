// Rearranged and repeated elements in a new tensor: flip, roll, repeat, tile.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/image.h"
#include "ops/impl.h"

namespace TT_NS::impl {

// A single copy from an alias with negative strides.
TensorRef flip(Call, const Tensor& self, Ints dims) {
  const uint64_t mask = dim_mask(dims, self.ndim, false, "dims");
  TensorRef out = new_ordered_like(self, self.dtype, self.device);
  if (self.numel == 0) return out;
  Shape strides(self.strides());
  int64_t last = 0;
  for (int64_t d = 0; d < self.ndim; d++) {
    if (!(mask >> d & 1)) continue;
    last += (self.size(d) - 1) * strides[d];
    strides[d] = -strides[d];
  }
  copy_elements(*out, *new_alias(self, self.sizes(), strides,
                                 advance(self.data, last * self.item_size()), self.dtype));
  return out;
}

// Each rolled dimension splits the tensor in two; each combination of halves is copied as one box.
static TensorRef roll_dims(const Tensor& self, const Shape& shift, bool last) {
  TensorRef out = new_image(self.sizes(), last, self.dtype, self.device);
  if (self.numel == 0) return out;
  Shape sizes(self.sizes()), moving;
  for (int64_t d = 0; d < self.ndim; d++)
    if (shift[d]) moving.push_back(d);
  for (uint64_t box = 0; box < uint64_t(1) << moving.size(); box++) {
    int64_t from = 0;
    int64_t to = 0;
    for (int64_t i = 0; i < moving.size(); i++) {
      const int64_t d = moving[i];
      const int64_t s = shift[d];
      const int64_t n = self.size(d);
      const bool wraps = box >> i & 1;  // the last s indices wrap to the start
      sizes[d] = wraps ? s : n - s;
      from += wraps ? (n - s) * self.stride(d) : 0;
      to += wraps ? 0 : s * out->stride(d);
    }
    TensorRef src = new_alias(self, sizes, self.strides(),
                              advance(self.data, from * self.item_size()), self.dtype);
    TensorRef dst = new_alias(out, sizes, out->strides(), advance(out->data, to * self.item_size()),
                              self.dtype);
    copy_elements(*dst, *src);
  }
  return out;
}

TensorRef roll(Call, const Tensor& self, Ints shifts, Ints dims) {
  if (shifts.empty()) fail_arg(TT_INVALID_ARG, "shifts", "shifts is empty: at least one is needed");
  if (!(dims.empty() && shifts.n == 1) && dims.n != shifts.n)
    fail_arg(TT_INVALID_ARG, "shifts", "shifts is {}, dims is {}: must have equal lengths", shifts,
             dims);
  const auto within = [](int64_t s, int64_t n) {  // the remainder in [0, n)
    const int64_t r = n ? s % n : 0;
    return r < 0 ? r + n : r;
  };
  if (dims.empty()) {
    TensorRef flat = dense_input(self);
    const int64_t n[1] = {self.numel};
    const int64_t step[1] = {1};
    TensorRef out = roll_dims(*new_alias(flat, n, step), {within(shifts[0], self.numel)}, false);
    return new_alias(out, self.sizes(), {});
  }
  if (self.ndim == 0) fail_arg(TT_INDEX, "dims", "self is 0-dim: it has no dimension to roll");
  // PyTorch joins two halves by `cat`, which keeps channels last unless one of them is empty.
  bool last = has_channels_last_strides(self);
  Shape shift;
  shift.resize(self.ndim, 0);
  for (int64_t i = 0; i < dims.n; i++) {
    const int64_t d = wrap_dim(dims[i], self.ndim, "dims");
    const int64_t n = self.size(d);
    const int64_t step = within(shifts[i], n);
    last = last && step;
    shift[d] = within(shift[d] - n + step, n);  // shift - n: no sum overflows
  }
  return roll_dims(self, shift, last);
}

// A repeated dimension becomes two dimensions of an expanded view: the copies, and the original.
TensorRef repeat(Call, const Tensor& self, Ints repeats) {
  if (repeats.n < self.ndim)
    fail_arg(TT_SHAPE, "repeats",
             "repeats is {}, self is {}: at least one entry per dimension is needed", repeats,
             self.sizes());
  if (repeats.n > kMaxDims)
    fail_arg(TT_SHAPE, "repeats", "repeats has {} entries, at most {} are supported", repeats.n,
             kMaxDims);
  const int64_t fresh = repeats.n - self.ndim;
  Shape split, wide, whole;
  for (int64_t d = 0; d < repeats.n; d++) {
    const int64_t r = repeats[d];
    const int64_t n = d < fresh ? 1 : self.size(d - fresh);
    if (r < 0)
      fail_arg(TT_SHAPE, "repeats", "repeats is {}: entries must not be negative", repeats);
    int64_t total;
    if (mul_overflow(r, n, &total))
      fail_arg(TT_SHAPE, "repeats", "repeats is {}, self is {}: the size of the result overflows",
               repeats, self.sizes());
    if (r != 1 && n != 1) {
      split.push_back(1);
      wide.push_back(r);
    }
    split.push_back(n);
    wide.push_back(n == 1 ? r : n);
    whole.push_back(total);
  }
  if (split.size() > kMaxDims)
    fail_arg(TT_SHAPE, "repeats", "repeats is {}: too many dimensions repeat", repeats);
  checked_numel(whole, self.dtype, "result");
  TensorRef copies = op::clone(*op::expand(*op::view(self, split), wide), TT_CONTIGUOUS);
  return op::view(*copies, whole);
}

TensorRef tile(Call, const Tensor& self, Ints dims) {
  if (dims.n >= self.ndim) return op::repeat(self, dims);
  Shape repeats;
  repeats.resize(self.ndim - dims.n, 1);
  repeats.append(dims);
  return op::repeat(self, repeats);
}

}  // namespace TT_NS::impl
