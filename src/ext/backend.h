// Devices that the application registers with a runtime. They have their own memory and compute
// operators by one callback; operators that it declines run on the CPU. Views, allocation and
// composite operators need neither.
#pragma once

#include "core/ctx.h"

namespace TT_NS {

// Returns the device's index. The name is copied; def.drop runs exactly once, also on failure.
int32_t register_ext(Runtime* rt, const ExtDef& def);
// Returns the index of the device with this name, or -1.
int32_t find_ext_named(Runtime* rt, const char* name) noexcept;
bool valid_ext_name(const char* name) noexcept;

}  // namespace TT_NS
