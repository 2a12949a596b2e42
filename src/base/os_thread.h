// What os.h lacks of threads; implemented in os_<system>.cpp.
#pragma once

#include "base/os.h"

namespace TT_NS {

// The thread frees itself at its end: instead of os_thread_join, for one that ends itself.
void os_thread_detach(OsThread* t) noexcept;

}  // namespace TT_NS
