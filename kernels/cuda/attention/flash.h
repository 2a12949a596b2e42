// Attention of f16 and bf16 by tensor cores, for rows of at most kFlashWidth numbers. backward
// leaves few keys to attention_backward, which sums the weights of all again.
#pragma once

#include "base/platform.h"
#include "plan/attention_plan.h"

namespace TT_NS::cuda::flash {

constexpr int64_t kFlashWidth = 128;
constexpr int64_t kFlashLength = int64_t(1) << 30;

bool fits(const AttentionPlan& p);  // of any dtype
bool serves(const AttentionPlan& p);
int32_t forward(const AttentionPlan& p, void* stream);
bool serves_backward(const AttentionPlan& p);
int32_t backward(const AttentionPlan& p, void* stream, void* workspace);
size_t backward_workspace(const AttentionPlan& p);
// Whether flash_wgmma.h computes the gradients that it serves, on devices of sm_90. Until this is
// called it does not: no device has timed it. A pass and its workspace must see the same choice.
void use_wgmma(bool on);
bool serves_wgmma(const AttentionPlan& p);  // requires serves_backward

}  // namespace TT_NS::cuda::flash

// The same for f32, without tensor cores.
namespace TT_NS::cuda::simt {

bool serves(const AttentionPlan& p);
int32_t forward(const AttentionPlan& p, void* stream);
bool serves_backward(const AttentionPlan& p);
int32_t backward(const AttentionPlan& p, void* stream, void* workspace);
size_t backward_workspace(const AttentionPlan& p);

}  // namespace TT_NS::cuda::simt
