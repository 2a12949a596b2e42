// Padding of the last dimensions.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/image.h"

namespace TT_NS::impl {

// pad = (before, after) of the last dimension, then of the one before it, …
struct Pads {
  Ints pad;
  int64_t ndim;
  int64_t before(int64_t d) const { return at(d, 0); }
  int64_t after(int64_t d) const { return at(d, 1); }

 private:
  int64_t at(int64_t d, int64_t side) const {
    const int64_t k = 2 * (ndim - 1 - d) + side;
    return k < pad.n ? pad[k] : 0;
  }
};

static Pads pads_of(const Tensor& self, Ints pad) {
  if (pad.n % 2 || pad.n / 2 > self.ndim)
    fail_arg(TT_INVALID_ARG, "pad",
             "pad has {} numbers: must be two for each of up to {} dimensions", pad.n, self.ndim);
  return {pad, self.ndim};
}
static Shape padded(const Tensor& self, const Pads& pads) {
  Shape out(self.sizes());
  for (int64_t d = 0; d < self.ndim; d++) {
    int64_t n;
    const int64_t before = pads.before(d);
    const int64_t after = pads.after(d);
    const int64_t size = out[d];
    const bool cropped_away =
        before < -size || after < -size ||
        TT_NS::min<int64_t>(before, 0) + TT_NS::min<int64_t>(after, 0) < -size;
    if (cropped_away || add_overflow(size, before, &n) || add_overflow(n, after, &n) || n < 0)
      fail_arg(TT_INVALID_ARG, "pad",
               "pad is {}, self is {}: the size of dimension {} would be invalid", pads.pad,
               self.sizes(), d);
    out[d] = n;
  }
  checked_numel(out, self.dtype, "pad");
  return out;
}

TensorRef constant_pad_nd(Call, const Tensor& self, Ints pad, const Scalar& value) {
  const Pads pads = pads_of(self, pad);
  check_fits(value, self.dtype, "value");
  TensorRef out = new_image(padded(self, pads), channels_last(self), self.dtype, self.device);
  fill_elements(*out, value);
  Shape sizes;
  char* from = self.data;
  char* to = out->data;
  for (int64_t d = 0; d < self.ndim; d++) {
    const int64_t before = pads.before(d);
    const int64_t skip = before < 0 ? -before : 0;
    const int64_t lead = before > 0 ? before : 0;
    const int64_t drop = pads.after(d) < 0 ? -pads.after(d) : 0;
    const int64_t kept = self.size(d) - skip - drop;
    sizes.push_back(kept > 0 ? kept : 0);
    from = advance(from, skip * self.byte_stride(d));
    to = advance(to, lead * out->byte_stride(d));
  }
  if (numel_of(sizes) == 0) return out;
  TensorRef inner = new_alias(self, sizes, self.strides(), from, self.dtype);
  TensorRef place = new_alias(*out, sizes, out->strides(), to, self.dtype);
  copy_elements(*place, *inner);
  return out;
}

// ---- reflect, replicate, circular: each padded dimension by indices ----

// Returns the index in a dimension of size n of position i of the padded one; i < 0 is before it.
static int64_t source(int64_t i, int64_t n, int64_t mode) {
  if (mode == kPaddingReplicate) return clamp<int64_t>(i, 0, n - 1);
  if (i < 0) return -i;
  return i < n ? i : 2 * (n - 1) - i;
}
// The same for circular padding: repeats the part of a cropped dimension that remains.
static int64_t circular_source(int64_t i, int64_t n, int64_t before, int64_t after) {
  const int64_t from = before < 0 ? -before : 0;
  const int64_t rest = n - from + (after < 0 ? after : 0);
  const int64_t r = (i - from) % rest;
  return from + (r < 0 ? r + rest : r);
}
static TensorRef sources(int64_t before, int64_t n, int64_t out, int64_t mode, Device device) {
  TensorRef index = new_tensor(Ints(&out, 1), Dtype::kI64, kCpuDevice);
  for (int64_t o = 0; o < out; o++)
    index->as<int64_t>()[o] = mode == kPaddingCircular
                                  ? circular_source(o - before, n, before, out - n - before)
                                  : source(o - before, n, mode);
  note_host_write(*index);
  return device.type == TT_CPU ? std::move(index) : op::to_device(*index, device);
}

TensorRef pad_indexed(Call, const Tensor& self, Ints pad, int64_t mode) {
  MaskGuard no_grad(bit(kKeyAutograd));
  const Pads pads = pads_of(self, pad);
  const Shape size = padded(self, pads);
  TensorRef out = TensorRef::share(&self);
  for (int64_t d = self.ndim - pad.n / 2; d < self.ndim; d++)
    if (pads.before(d) || pads.after(d))
      out = op::index_select(*out, d,
                             *sources(pads.before(d), self.size(d), size[d], mode, self.device));
  if (out.get() == &self) return op::clone(self);
  const bool last = mode != kPaddingCircular && channels_last(self);  // as in PyTorch
  return image_input(*out, last, self.dtype);
}
TensorRef pad_indexed_backward(Call, const Tensor& grad, const Tensor& self, Ints pad,
                               int64_t mode) {
  MaskGuard no_grad(bit(kKeyAutograd));
  const Pads pads = pads_of(self, pad);
  const bool half = grad.item_size() == 2;
  TensorRef g = half ? op::to_dtype(grad, Dtype::kF32) : TensorRef::share(&grad);
  for (int64_t d = self.ndim - 1; d >= self.ndim - pad.n / 2; d--) {
    if (!pads.before(d) && !pads.after(d)) continue;
    Shape size(g->sizes());
    size[d] = self.size(d);
    TensorRef index = sources(pads.before(d), self.size(d), g->size(d), mode, self.device);
    g = op::index_add(*op::zeros(size, g->dtype, g->device), d, *index, *g);
  }
  if (half) return op::to_dtype(*g, grad.dtype);
  return g.get() == &grad ? op::clone(grad) : std::move(g);
}

static void check_borders(const Tensor& input, Ints pad, int64_t mode) {
  const int64_t dims = pad.n / 2;
  if (pad.n % 2 || dims < 1 || dims > 3 || (input.ndim != dims + 1 && input.ndim != dims + 2))
    fail_arg(TT_NOT_IMPLEMENTED, "pad",
             "pad has {} numbers, input is {}: two for the last of 2 or 3 dimensions, four for 3 "
             "or 4, six for 4 or 5",
             pad.n, input.sizes());
  const Pads pads = pads_of(input, pad);
  const Shape size = padded(input, pads);
  for (int64_t d = input.ndim - dims; d < input.ndim; d++) {
    const int64_t n = input.size(d);
    const int64_t max_pad = TT_NS::max(pads.before(d), pads.after(d));
    const int64_t rest =
        n + TT_NS::min<int64_t>(pads.before(d), 0) + TT_NS::min<int64_t>(pads.after(d), 0);
    if (n == 0 || size[d] == 0 || (mode == kPaddingCircular && rest < 1))
      fail_arg(TT_SHAPE, "input", "input is {}: padded dimensions must not be or become empty",
               input.sizes());
    if ((mode == kPaddingReflect && max_pad >= n) || (mode == kPaddingCircular && max_pad > n))
      fail_arg(TT_INVALID_ARG, "pad", "pad is {}: must be {} the size {} of dimension {}", pad,
               mode == kPaddingReflect ? "less than" : "at most", n, d);
  }
  for (int64_t d = input.ndim == dims + 2 ? 1 : 0; d < input.ndim - dims; d++)
    if (input.size(d) == 0 && mode != kPaddingCircular)  // as in PyTorch
      fail_arg(TT_SHAPE, "input", "input is {}: only the batch may be empty", input.sizes());
}

TensorRef pad(Call, const Tensor& input, Ints pad, int64_t mode, const Scalar* value) {
  if (mode == kPaddingConstant) return op::constant_pad_nd(input, pad, value ? *value : Scalar(0));
  if (value && !(value->real() == 0))
    fail_arg(TT_INVALID_ARG, "value", "value is given: only mode constant uses it");
  check_borders(input, pad, mode);
  const MaskGuard uncast(mode == kPaddingCircular ? bit(kKeyAutocast) : 0);  // as in PyTorch
  return op::pad_indexed(input, pad, mode);
}

}  // namespace TT_NS::impl
