// Checked convolutions, between the public operators (conv.cpp) and the primitives
// (primitives.cpp).
#pragma once

#include "ops/impl.h"
#include "plan/conv_build.h"

namespace TT_NS {

// The parameters of a convolution as passed by the caller. Lists have one entry per spatial
// dimension, or one for all; an empty list means the default.
struct ConvParams {
  Ints stride, padding, dilation;
  bool transposed;
  Ints output_padding;
  int64_t groups;
};

// A checked convolution y = conv(x, w). For a transposed one, y is the input and x the result.
struct Conv {
  ConvShape s;
  Shape x, y, w;  // sizes of the tensors
  Dtype compute;  // f32, f64 or i64; for complex tensors, that of their parts
  Device device;
  bool last;         // results are channels_last
  bool weight_last;  // the weight and its gradient are channels_last
  bool complex;
};

Conv check_conv(const Tensor& input, const Tensor& weight, const Tensor* bias, const ConvParams& p);

}  // namespace TT_NS
