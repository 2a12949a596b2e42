// vmap: a function of one sample, called for a batch. Its tensors have the key Vmap, whose boxed
// handler calls each operator for all samples at once.
#pragma once

#include "autograd/transform.h"

namespace TT_NS {

enum VmapRandomness : int32_t { kRandomError, kRandomSame, kRandomDifferent };

constexpr int64_t kNotBatched = INT64_MIN;  // in in_dims: each sample gets the whole input

struct VmapOptions {
  Ints in_dims;   // one per input; empty: all 0
  Ints out_dims;  // one per result; empty: all 0
  int32_t randomness = kRandomError;
};
TensorList vmap(const TensorFunction& f, TensorSpan inputs, const VmapOptions& o);

}  // namespace TT_NS
