// Two parts of the C++ runtime that libtt.so brings along in place of libstdc++'s: the exception
// state lies in tt's own initial-exec thread-local storage (libstdc++.a asks __tls_get_addr for
// it), and the terminate handler neither prints nor carries a demangler. Not in libtt.a: a static
// host has its own runtime.
#include "base/tls.h"

#include <stdlib.h>

namespace __cxxabiv1 {
struct __cxa_eh_globals;  // Itanium C++ ABI, exception handling 2.2.2: void* caughtExceptions,
                          // unsigned uncaughtExceptions
extern "C" __cxa_eh_globals* __cxa_get_globals() noexcept {
  return reinterpret_cast<__cxa_eh_globals*>(&TT_NS::tls.caught_exceptions);
}
extern "C" __cxa_eh_globals* __cxa_get_globals_fast() noexcept { return __cxa_get_globals(); }

using Handler = void (*)();
extern Handler __terminate_handler;
constinit Handler __terminate_handler = abort;
}  // namespace __cxxabiv1
