// What the generated functions OpSchema::flops call.
#pragma once

#include "dispatch/value.h"

namespace TT_NS {

// The first result; of an in-place operator the tensor that it writes.
inline const Tensor* first_result(const Value* args, const TensorList& outs) {
  return outs.size() ? outs[0].get() : args[0].tensor;
}
inline double numel_of(const Tensor* t) { return t ? double(t->numel) : 0; }
// 0 for a dimension that the tensor does not have.
inline double size_of(const Tensor* t, int64_t d) {
  return t && d < t->ndim && d >= -int64_t(t->ndim) ? double(t->size(d)) : 0;
}

}  // namespace TT_NS
