// What os.h lacks of threads; implemented in os_<system>.cpp.
#pragma once

#include "base/os.h"

namespace TT_NS {

// The thread frees itself at its end: instead of os_thread_join, for one that ends itself.
void os_thread_detach(OsThread* t) noexcept;
// Windows only, for TT_TLS_EMULATED: zeroed memory of the calling thread, of one size in all calls,
// freed after the function of os_at_thread_exit has run. Ends the process if there is no memory.
void* os_thread_state(size_t bytes) noexcept;

}  // namespace TT_NS
