// Entry points over the plans of row_plan.h and channel_plan.h. All run plan.run.n stages.
#pragma once

#include "cpu/isa.h"

TT_ENTRY_BEGIN

// SoftmaxPlan
TT_KERNEL(softmax)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(log_softmax)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(softmax_backward)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(log_softmax_backward)(const void* plan, int64_t begin, int64_t end) noexcept;

// LayerNormPlan, LayerNormBackwardPlan
TT_KERNEL(layer_norm)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(layer_norm_backward)(const void* plan, int64_t begin, int64_t end) noexcept;

// ChannelSumPlan, ChannelAffinePlan
TT_KERNEL(channel_sums)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(channel_affine)(const void* plan, int64_t begin, int64_t end) noexcept;

// ClassLossPlan
TT_KERNEL(cross_entropy)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(cross_entropy_backward)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(nll_loss)(const void* plan, int64_t begin, int64_t end) noexcept;
TT_KERNEL(nll_loss_backward)(const void* plan, int64_t begin, int64_t end) noexcept;

TT_ENTRY_END
