// Attention by cuDNN, which is opened by the first one that it can serve: f16 and bf16 with rows of
// at most 128 numbers, without mask and dropout. Plans are kept by geometry. Graphs give the same
// bits in every run, but for gradients where the plan allows others (kNondeterministic).
#pragma once

#include "base/platform.h"
#include "plan/attention_plan.h"

namespace TT_NS::cuda::sdpa {

enum Task : int32_t { kForward, kBackward };

// Which attention is left to the library. work: numbers of queries * keys * (width + value width).
struct Rule {
  double least_work;
  bool backward;
};
// backward: whether gradients are that must have the same bits in every run.
constexpr Rule kAlways = {0, true};
// A plan is compiled for tenths of a second, and a launch costs the host some microseconds more
// than one of an own kernel. The backward graphs of equal bits take two bytes of workspace for each
// query and key, a GB for 128 heads of 2,048.
constexpr Rule kWhereFaster = {double(1 << 29), false};

// As matmul/lt.h; kWhereFaster holds until it is called.
void use_library(const char* path, const Rule& rule = kAlways);

// Whether the library is there and has a plan.
bool serves(const AttentionPlan& p, Task task);
size_t workspace_bytes(const AttentionPlan& p, Task task);  // 0 where it does not serve
// Returns TT_OK, or TT_NOT_IMPLEMENTED if the library does not serve: then nothing was launched.
int32_t run(const AttentionPlan& p, Task task, void* stream, void* workspace);

// What cuDNN has refused last, and its words; "" if it has refused nothing.
const char* refusal();

}  // namespace TT_NS::cuda::sdpa
