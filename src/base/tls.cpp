#include "base/tls.h"

#include "base/os_thread.h"

namespace TT_NS {

#if TT_TLS_EMULATED
Tls& tls_of_thread() noexcept { return *static_cast<Tls*>(os_thread_state(sizeof(Tls))); }
#else
TT_THREAD_LOCAL constinit Tls tls TT_TLS_MODEL = {};
#endif

}  // namespace TT_NS
