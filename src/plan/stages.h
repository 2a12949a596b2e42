// Stages: the parallel regions of a kernel, run in order. A front end sets plan.run.stage = s, then covers
// [0, units[s]).
#pragma once

#include "plan/kernel.h"

namespace TT_NS {

struct Stages {
  int64_t units[2];  // work units of each stage; 0 = nothing to do
  int64_t grain[2];  // units worth one task; depends on shapes only
  int32_t n;         // 1 or 2
  int32_t stage;     // the running one
};

}  // namespace TT_NS
