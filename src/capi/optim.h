// Optimizers and schedulers as handles.
#pragma once

#include "capi/api.h"
#include "optim/scheduler.h"

namespace TT_NS {

Optimizer& optimizer_arg(const tt_optimizer* h, const char* arg, int32_t index);
Scheduler& scheduler_arg(const tt_scheduler* h, const char* arg, int32_t index);
Span<Scheduler* const> schedulers_arg(tt_scheduler* const* list, int64_t n, const char* arg,
                                      int32_t index);

}  // namespace TT_NS
