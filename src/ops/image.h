// What operators on images share: the two memory orders of (N, C, H, W), which are row-major and
// channels last, whose strides decrease in the order N, H, W, C; and lists with a number for each
// spatial dimension.
#pragma once

#include "ops/impl.h"

namespace TT_NS {

// PyTorch's rule (c10/core/MemoryFormat.h) for tensors of 4 or 5 dimensions: strides increase from
// channels over the spatial dimensions to the batch. Strides that also fit the row-major order do
// not count as channels last.
bool has_channels_last_strides(const Tensor& t);
// Returns whether kernels read t as channels last: a 4-dim tensor with such strides that is not
// contiguous, as images of one channel may be.
bool channels_last(const Tensor& t);
// Returns whether t has these strides; those of dimensions of size 1 are ignored.
bool strides_match(const Tensor& t, Ints strides);
// A dense, uninitialised tensor, channels last if `last`. The sizes are not checked.
TensorRef new_image(Ints sizes, bool last, Dtype dtype, Device device);
// Returns t, or a dense copy in this order and dtype. The copy is not recorded.
TensorRef image_input(const Tensor& t, bool last, Dtype dtype);
// Writes one number for each of n dimensions to out: those of the list, its only one for all
// dimensions, or `fallback` if it is empty.
void expand_dims_list(Ints list, int64_t n, int64_t fallback, int64_t min_value, const char* arg,
                      int64_t* out);

}  // namespace TT_NS
