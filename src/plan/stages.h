// Stages: the parallel regions of a kernel, run in order. A front end sets plan.run.stage = s, then
// covers [0, units[s]).
#pragma once

#include "plan/kernel.h"

namespace TT_NS {

constexpr int32_t kMaxStages = 4;

struct Stages {
  int64_t units[kMaxStages];  // work units of each stage; 0 = nothing to do
  int64_t grain[kMaxStages];  // units worth one task; depends on shapes only
  int32_t n;                  // 1 … kMaxStages
  int32_t stage;              // the running one
};

}  // namespace TT_NS
