// Attention by cuDNN, once use_library has asked for it: f16 and bf16 with rows of at most 128
// numbers, without mask and dropout. Plans are kept by geometry. Only graphs serve that
// give the same bits in every run.
#pragma once

#include "base/platform.h"
#include "plan/attention_plan.h"

namespace TT_NS::cuda::sdpa {

enum Task : int32_t { kForward, kBackward };

// As matmul/lt.h.
void use_library(const char* path);

// Whether the library is there and has a plan.
bool serves(const AttentionPlan& p, Task task);
size_t workspace_bytes(const AttentionPlan& p, Task task);
int32_t run(const AttentionPlan& p, Task task, void* stream, void* workspace);

// What cuDNN has refused last, and its words; "" if it has refused nothing.
const char* refusal();

}  // namespace TT_NS::cuda::sdpa
