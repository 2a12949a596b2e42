// Optimizers and schedulers as handles.
#pragma once

#include "capi/api.h"
#include "optim/optimizer.h"

namespace TT_NS {

Optimizer& optimizer_arg(const tt_optimizer* h, const char* arg, int32_t index);

}  // namespace TT_NS
