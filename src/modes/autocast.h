// Mixed precision: the Autocast key and its boxed handler. It casts the floating arguments of the
// operators whose declaration has the key `autocast`.
#pragma once

#include "core/ctx.h"

namespace TT_NS {

// Autocast on one type of device, TT_CPU or TT_CUDA, until pop_autocast. dtype kNone: that type's
// default, bfloat16 on the CPU and float16 on CUDA. cache: casts of leaves that require a gradient
// are kept until the outermost pop.
void push_autocast(int32_t type, bool enabled, Dtype dtype, bool cache);
void pop_autocast();
void clear_autocast_cache();
bool autocast_enabled(const Ctx& c, int32_t type) noexcept;
Dtype autocast_dtype(const Ctx& c, int32_t type) noexcept;
bool autocast_cache_enabled(const Ctx& c) noexcept;

}  // namespace TT_NS
