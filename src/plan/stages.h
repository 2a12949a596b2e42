// Stages: the parallel regions of a kernel, run in order. An implementation sets plan.run.stage to
// s, then runs [0, units[s]).
#pragma once

#include "plan/kernel.h"

namespace TT_NS {

constexpr int32_t kMaxStages = 4;

struct Stages {
  int64_t units[kMaxStages];  // work units of each stage; 0 = nothing to do
  int64_t grain[kMaxStages];  // units of one task; depends on shapes only
  int32_t n;                  // 1 … kMaxStages
  int32_t stage;              // the current stage
};

// Sets up a plan with a single stage.
inline void one_stage(Stages* s, int64_t units, int64_t grain) {
  for (int32_t i = 0; i < kMaxStages; i++) {
    s->units[i] = 0;
    s->grain[i] = 1;
  }
  s->units[0] = units;
  s->grain[0] = grain;
  s->n = 1;
  s->stage = 0;
}

}  // namespace TT_NS
