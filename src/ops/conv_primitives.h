// What the fronts of convolutions share.
#pragma once

#include "ops/impl.h"
#include "plan/conv_build.h"

namespace TT_NS {

// The parameters of a convolution as its caller gives them; empty lists stand for the defaults,
// lists of one for all dims.
struct ConvParams {
  Ints stride, padding, dilation;
  bool transposed;
  Ints output_padding;
  int64_t groups;
};

// A checked convolution: y = conv(x, w). For a transposed one y is the input and x the result.
struct Conv {
  ConvShape s;
  Shape x, y, w;  // sizes of the tensors
  Dtype compute;  // f32, f64 or i64; of the parts of complex tensors
  Device device;
  bool last;         // results are channels_last
  bool weight_last;  // so is the weight
  bool complex;
};

Conv check_conv(const Tensor& input, const Tensor& weight, const Tensor* bias, const ConvParams& p);

// a list of numbers per spatial dimension; checked to be at least `least`.
void spread(Ints list, int64_t n, int64_t fallback, int64_t least, const char* arg, int64_t* out);

}  // namespace TT_NS
