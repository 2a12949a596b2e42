// The two memory orders of images: row-major, or channels last (N, H, W, C in falling order of
// strides).
#pragma once

#include "ops/impl.h"

namespace TT_NS {

// True for 4-dim tensors that are not row-major and whose strides follow channels last.
bool channels_last(const Tensor& t);
// Where a size is not 1, the stride is this.
bool strides_match(const Tensor& t, Ints strides);
// Uninitialised, dense, in one of the orders; sizes are checked ones.
TensorRef new_image(Ints sizes, bool last, Dtype dtype, Device device);
// t itself or a dense copy in that order and dtype (without recording).
TensorRef image_input(const Tensor& t, bool last, Dtype dtype);

}  // namespace TT_NS
