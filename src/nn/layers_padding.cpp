// Padding by elements of the input.
#include "nn/gen/layers.h"
#include "ops/gen/ops.h"

namespace TT_NS {

// padding has two numbers for each spatial dimension; a batch dimension may be missing.
static TensorList padded(const Tensor& input, const Shape& padding, int64_t mode) {
  const int64_t spatial = padding.size() / 2;
  if (input.ndim != spatial + 1 && input.ndim != spatial + 2)
    fail_arg(TT_INVALID_ARG, "input", "input is {}: must have {} or {} dimensions", input.sizes(),
             spatial + 1, spatial + 2);
  return one(op::pad(input, padding, mode));
}

TensorList forward_of(Module&, const ReflectionPad1dArgs& a, TensorSpan in) {
  return padded(*in[0], a.padding, kPaddingReflect);
}
TensorList forward_of(Module&, const ReflectionPad2dArgs& a, TensorSpan in) {
  return padded(*in[0], a.padding, kPaddingReflect);
}
TensorList forward_of(Module&, const ReflectionPad3dArgs& a, TensorSpan in) {
  return padded(*in[0], a.padding, kPaddingReflect);
}
TensorList forward_of(Module&, const ReplicationPad1dArgs& a, TensorSpan in) {
  return padded(*in[0], a.padding, kPaddingReplicate);
}
TensorList forward_of(Module&, const ReplicationPad2dArgs& a, TensorSpan in) {
  return padded(*in[0], a.padding, kPaddingReplicate);
}
TensorList forward_of(Module&, const ReplicationPad3dArgs& a, TensorSpan in) {
  return padded(*in[0], a.padding, kPaddingReplicate);
}
TensorList forward_of(Module&, const CircularPad1dArgs& a, TensorSpan in) {
  return padded(*in[0], a.padding, kPaddingCircular);
}
TensorList forward_of(Module&, const CircularPad2dArgs& a, TensorSpan in) {
  return padded(*in[0], a.padding, kPaddingCircular);
}
TensorList forward_of(Module&, const CircularPad3dArgs& a, TensorSpan in) {
  return padded(*in[0], a.padding, kPaddingCircular);
}

}  // namespace TT_NS
