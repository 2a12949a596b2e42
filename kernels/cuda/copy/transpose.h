// Copies between operands that are dense in different dimensions.
#pragma once

#include "plan/elementwise_plan.h"

namespace TT_NS::cuda {

// Runs a copy of equal dtypes, if this is one between such operands that is large enough; returns
// whether it is.
bool transpose(const ElementPlan& p, void* stream, int32_t* status);

// to[image][channel][pixel] = from[image][pixel][channel] + bias[channel]; no bias: NULL. In a
// floating dtype.
struct PlanesCopy {
  const char *from, *bias;
  char* to;
  int64_t images, pixels, channels;
  int32_t dtype;
};
int32_t copy_planes(const PlanesCopy& c, void* stream);

}  // namespace TT_NS::cuda
