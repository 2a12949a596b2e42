#include "ops/image.h"

#include "ops/elementwise.h"

namespace TT_NS {

// PyTorch's suggest_memory_format: strides of dimensions of size 1 are ignored unless the others
// fit both orders.
bool channels_last(const Tensor& t) {
  if (t.ndim != 4 || t.contiguous() || t.numel == 0) return false;
  int64_t min_stride = 0;
  for (int64_t d : {1, 3, 2, 0}) {
    const int64_t stride = t.stride(d);
    const int64_t size = t.size(d);
    if (stride < min_stride) return false;
    if (d == 0 && min_stride == t.stride(1)) return false;
    min_stride = size > 1 ? stride * size : stride;
  }
  return t.stride(1) != 0;
}

bool strides_match(const Tensor& t, Ints strides) {
  for (int64_t d = 0; d < t.ndim; d++)
    if (t.size(d) != 1 && t.stride(d) != strides[d]) return false;
  return true;
}

TensorRef new_image(Ints sizes, bool last, Dtype dtype, Device device) {
  if (!last) return new_tensor(sizes, dtype, device);
  return new_strided(sizes, channels_last_strides(sizes), dtype, device);
}

TensorRef image_input(const Tensor& t, bool last, Dtype dtype) {
  if (!last) return cast_input(t, dtype);
  if (t.dtype == dtype && strides_match(t, channels_last_strides(t.sizes())))
    return TensorRef::share(&t);
  TensorRef out = new_image(t.sizes(), true, dtype, t.device);
  copy_elements(*out, t);
  return out;
}

}  // namespace TT_NS
