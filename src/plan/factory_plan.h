// Plan of arange. POD, also device code.
#pragma once

#include "plan/stages.h"

namespace TT_NS {

// out[i] = start + i * step for i < n, computed in int64 for integers, else in double. Units:
// chunks of kArangeChunk elements.
struct ArangePlan {
  Stages run;
  int32_t dtype;
  int64_t n;
  char* out;
  int64_t start_int, step_int;
  double start, step;
};

constexpr int64_t kArangeChunk = 32768;

}  // namespace TT_NS
