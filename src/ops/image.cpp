#include "ops/image.h"

#include "ops/elementwise.h"

namespace TT_NS {

bool has_channels_last_strides(const Tensor& t) {
  if (t.ndim < 4 || t.ndim > 5 || t.stride(1) == 0 || t.numel == 0) return false;
  static constexpr int64_t kInnermostFirst[2][5] = {{1, 3, 2, 0}, {1, 4, 3, 2, 0}};
  int64_t min_stride = 0;
  for (int64_t i = 0; i < t.ndim; i++) {
    const int64_t d = kInnermostFirst[t.ndim - 4][i];
    if (t.stride(d) < min_stride) return false;
    if (d == 0 && min_stride == t.stride(1)) return false;
    min_stride = t.stride(d) * t.size(d);
  }
  return true;
}

bool channels_last(const Tensor& t) {
  return t.ndim == 4 && !t.contiguous() && has_channels_last_strides(t);
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

void expand_dims_list(Ints list, int64_t n, int64_t fallback, int64_t min_value, const char* arg,
                      int64_t* out) {
  if (list.n > 1 && list.n != n)
    fail_arg(TT_INVALID_ARG, arg, "{} is {}: must have 1 or {} numbers", arg, list, n);
  for (int64_t d = 0; d < n; d++) {
    if (list.n == 0) out[d] = fallback;
    else out[d] = list[list.n == 1 ? 0 : d];
    if (out[d] < min_value)
      fail_arg(TT_INVALID_ARG, arg, "{} is {}: must be at least {}", arg, list, min_value);
  }
}

}  // namespace TT_NS
