#include "ops/image.h"

#include "ops/elementwise.h"

namespace TT_NS {

static void last_strides(Ints sizes, int64_t* strides) {
  const int64_t c = sizes[1], h = sizes[2], w = sizes[3];
  auto at_least_1 = [](int64_t n) { return n > 1 ? n : 1; };
  strides[1] = 1, strides[3] = at_least_1(c), strides[2] = strides[3] * at_least_1(w),
  strides[0] = strides[2] * at_least_1(h);
}

// As PyTorch's suggest_memory_format: sizes of 1 do not decide, save where the strides say nothing else.
bool channels_last(const Tensor& t) {
  if (t.ndim != 4 || t.contiguous()) return false;
  int64_t least = 0;
  for (int64_t d : {1, 3, 2, 0}) {
    const int64_t stride = t.stride(d), size = t.size(d);
    if (size == 0 || stride < least || (d == 0 && least == t.stride(1))) return false;
    least = size > 1 ? stride * size : stride;
  }
  return t.stride(1) != 0;
}

TensorRef new_image(Ints sizes, bool last, Dtype dtype, Device device) {
  if (!last) return new_tensor(sizes, dtype, device);
  int64_t strides[4];
  last_strides(sizes, strides);
  return new_strided(sizes, Ints(strides, 4), dtype, device);
}

TensorRef image_input(const Tensor& t, bool last, Dtype dtype) {
  if (!last) return cast_input(t, dtype);
  if (t.dtype == dtype) {
    int64_t strides[4];
    last_strides(t.sizes(), strides);
    bool fits = true;
    for (int d = 0; d < 4; d++) fits &= t.size(d) == 1 || t.stride(d) == strides[d];
    if (fits) return TensorRef::share(&t);
  }
  TensorRef out = new_image(t.sizes(), true, dtype, t.device);
  copy_elements(*out, t);
  return out;
}

}  // namespace TT_NS
