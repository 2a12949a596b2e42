// The two memory orders of images (N, C, H, W): row-major, and channels last, whose strides
// decrease in the order N, H, W, C.
#pragma once

#include "ops/impl.h"

namespace TT_NS {

// True for 4-dim tensors that are not row-major and whose strides follow channels last.
bool channels_last(const Tensor& t);
// Returns whether t has these strides; those of dimensions of size 1 are ignored.
bool strides_match(const Tensor& t, Ints strides);
// A dense, uninitialised tensor, channels last if `last`. The sizes are not checked.
TensorRef new_image(Ints sizes, bool last, Dtype dtype, Device device);
// Returns t, or a dense copy in this order and dtype. The copy is not recorded.
TensorRef image_input(const Tensor& t, bool last, Dtype dtype);

}  // namespace TT_NS
