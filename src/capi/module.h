// Modules and state dicts as handles.
#pragma once

#include "capi/api.h"
#include "nn/module.h"

namespace TT_NS {

Module& module_arg(const tt_module* h, const char* arg = "m", int32_t index = 1);
StateDict& state_dict_arg(const tt_state_dict* h, const char* arg, int32_t index);

}  // namespace TT_NS
