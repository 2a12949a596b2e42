// Devices that the host registers with a runtime: memory of their own, operators by one callback;
// what that declines runs on the CPU. Views, allocation and operators made of others need neither.
#pragma once

#include "core/ctx.h"

namespace TT_NS {

// Returns the device's index; def.drop runs exactly once, also if this fails. The name is copied.
int32_t register_ext(Runtime* rt, const ExtDef& def);
// The index of the device of this name, -1: none.
int32_t find_ext_named(Runtime* rt, const char* name) noexcept;
bool valid_ext_name(const char* name) noexcept;

}  // namespace TT_NS
