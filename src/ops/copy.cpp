// Copies and conversions.
#include "ops/gen/impls.h"
#include "ops/gen/ops.h"
#include "ops/elementwise.h"
#include "ops/image.h"
#include "ops/impl.h"

namespace TT_NS::impl {

static void transfer(char* dst, Device to, const char* src, Device from, int64_t bytes) {
  if (to.type == TT_META || bytes == 0) return;
  if (from.type == TT_META)
    fail_arg(TT_NOT_IMPLEMENTED, "src", "a meta tensor has no data to copy");
  if (to.type == TT_EXT) return ext_copy(ext_device(to.index), dst, src, bytes, kHostToDevice);
  if (from.type == TT_EXT) return ext_copy(ext_device(from.index), dst, src, bytes, kDeviceToHost);
  cuda_calls->copy(ctx(), dst, to, src, from, bytes);
}

static DeviceStream& stream_of(Device cuda) {
  return current_stream(runtime_cuda(ctx().rt, cuda.index));
}

static TensorRef moved(const Tensor& src, Device to) {
  if (src.device == to) return TensorRef::share(&src);
  // A device of the application copies between itself and the CPU.
  const bool via_application = (src.device.type == TT_EXT && to.type != TT_META) ||
                               (to.type == TT_EXT && src.device.type != TT_META);
  if (via_application && !src.is_cpu() && to.type != TT_CPU)
    return moved(*moved(src, kCpuDevice), to);
  TensorRef rows = dense_input(src);
  TensorRef out = new_tensor(src.sizes(), src.dtype, to);
  if (src.device.type == TT_CUDA)
    cuda_calls->wait_for_writer(stream_of(src.device), *rows->storage);
  const int64_t bytes = out->numel * out->item_size();
  if (bytes && to.type == TT_CUDA && cuda_calls->is_pinned(*rows->storage))
    cuda_calls->copy_pinned(ctx(), out->data, to, rows->data, src.device, bytes, *rows->storage);
  else transfer(out->data, to, rows->data, src.device, bytes);
  // The Stream mode does not see this operator: it launches no kernel.
  if (src.device.type == TT_CUDA)
    cuda_calls->mark_used(stream_of(src.device), *rows->storage, false);
  if (to.type == TT_CUDA) cuda_calls->mark_used(stream_of(to), *out->storage, true);
  return out;
}

void copy_(Call, Tensor& self, const Tensor& src) {
  if (!broadcastable_to(src.sizes(), self.sizes()))
    fail_arg(TT_SHAPE, "src", "self is {}, src is {}: src must broadcast to self", self.sizes(),
             src.sizes());
  if (src.numel == 1) check_not_read_only(self, "self");
  else check_writable(self, "self");
  TensorRef from = moved(src, self.device);
  if (from->numel && may_share_memory(self, from) &&
      !(from->data == self.data && same_geometry(self, from))) {
    TensorRef separate = new_tensor(from->sizes(), from->dtype, from->device);
    copy_elements(*separate, from);
    from = std::move(separate);
  }
  copy_elements(self, from);
  self.bump_version();
}

// Strides of TT_CHANNELS_LAST and TT_CHANNELS_LAST_3D.
static Shape last_strides(Ints sizes, int64_t memory_format) {
  if (memory_format != TT_CHANNELS_LAST && memory_format != TT_CHANNELS_LAST_3D)
    fail_arg(TT_INVALID_ARG, "memory_format", "memory_format is {}: there is no such value",
             memory_format);
  const int64_t ndim = memory_format == TT_CHANNELS_LAST ? 4 : 5;
  if (sizes.n != ndim)
    fail_arg(TT_SHAPE, "memory_format", "self is {}: must have {} dimensions for channels last",
             sizes, ndim);
  return channels_last_strides(sizes);
}

TensorRef clone(Call, const Tensor& self, int64_t memory_format) {
  Shape last;
  Ints strides;  // empty: row-major
  if (memory_format == TT_PRESERVE) {
    last = self.dense() ? Shape(self.strides()) : strides_like(self.sizes(), self.strides());
    strides = last;
  } else if (memory_format != TT_CONTIGUOUS) {
    last = last_strides(self.sizes(), memory_format);
    strides = last;
  }
  TensorRef out = new_strided(self.sizes(), strides, self.dtype, self.device);
  copy_elements(*out, self);
  return out;
}

TensorRef to_dtype(Call, const Tensor& self, Dtype dtype) {
  TensorRef out = new_ordered_like(self, dtype, self.device);
  copy_elements(*out, self);
  return out;
}
TensorRef to_device(Call, const Tensor& self, Device device) { return moved(self, device); }

// Returns whether t counts as having this memory format. As in PyTorch, strides alone decide about
// channels last, those of dimensions of size 1 included.
static bool has_format(const Tensor& t, int64_t memory_format) {
  if (memory_format == TT_PRESERVE) return true;
  if (memory_format == TT_CONTIGUOUS) return t.contiguous();
  last_strides(t.sizes(), memory_format);  // checks
  return has_channels_last_strides(t);
}

TensorRef to(Call, const Tensor& self, Dtype dtype, Opt<Device> device, bool copy,
             int64_t memory_format) {
  TensorRef out = TensorRef::share(&self);
  if (device.has && !(device.value == self.device)) out = op::to_device(out, device.value);
  if (dtype != Dtype::kNone && dtype != self.dtype) out = op::to_dtype(out, dtype);
  return (copy && out.get() == &self) || !has_format(out, memory_format)
             ? op::clone(out, memory_format)
             : out;
}

TensorRef contiguous(Call, const Tensor& self) {
  return self.contiguous() ? TensorRef::share(&self) : op::clone(self, TT_CONTIGUOUS);
}

void fill_(Call, Tensor& self, const Scalar& value) {
  check_not_read_only(self, "self");
  check_fits(value, self.dtype, "value");
  fill_elements(self, value);
  self.bump_version();
}
void zero_(Call c, Tensor& self) { fill_(c, self, 0); }

static TensorRef empty_copy(const Tensor& self) {
  return new_ordered_like(self, self.dtype, self.device);
}
TensorRef fill(Call, const Tensor& self, const Scalar& value) {
  check_fits(value, self.dtype, "value");
  TensorRef out = empty_copy(self);
  fill_elements(*out, value);
  return out;
}
TensorRef fill_tensor(Call, const Tensor& self, const Tensor& value) {
  if (value.ndim) fail_arg(TT_SHAPE, "value", "value is {}: must be 0-dim", value.sizes());
  TensorRef out = empty_copy(self);
  copy_elements(*out, *moved(value, self.device));
  return out;
}

}  // namespace TT_NS::impl

namespace TT_NS {

void clone_into_impl(Call, const Tensor& self, int64_t, Tensor& dst) {
  check_into(dst, self, {&self});
  copy_result(dst, self, false);
}

}  // namespace TT_NS
