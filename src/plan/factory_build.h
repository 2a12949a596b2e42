// Builds an ArangePlan.
#pragma once

#include "plan/factory_plan.h"

namespace TT_NS {

// start and step are integers for integer dtypes.
inline void build_arange(ArangePlan* p, int32_t dtype, int64_t n, void* out, int64_t start_int,
                         int64_t step_int, double start, double step) {
  p->dtype = dtype;
  p->n = n;
  p->out = static_cast<char*>(out);
  p->start_int = start_int;
  p->step_int = step_int;
  p->start = start;
  p->step = step;
  one_stage(&p->run, ceil_div(n, kArangeChunk), 2);
}

}  // namespace TT_NS
