// Replaces two parts of libstdc++ in libtt.so: the exception state is in tt's own initial-exec
// thread-local storage (libstdc++.a calls __tls_get_addr), and the terminate handler neither prints
// nor needs a demangler. Not part of libtt.a: a statically linked application has its own C++
// runtime.
#include "base/tls.h"

#include <stdlib.h>

namespace __cxxabiv1 {
struct __cxa_eh_globals;  // Itanium C++ ABI, exception handling 2.2.2: void* caughtExceptions,
                          // unsigned uncaughtExceptions
#if defined(__ARM_EABI__)
// ARM's exception handling ABI has a third word, the exceptions that run cleanups.
static thread_local constinit void* globals[3] TT_TLS_MODEL = {};
extern "C" __cxa_eh_globals* __cxa_get_globals() noexcept {
  return reinterpret_cast<__cxa_eh_globals*>(globals);
}
#else
extern "C" __cxa_eh_globals* __cxa_get_globals() noexcept {
  return reinterpret_cast<__cxa_eh_globals*>(&TT_NS::tls.caught_exceptions);
}
#endif
extern "C" __cxa_eh_globals* __cxa_get_globals_fast() noexcept { return __cxa_get_globals(); }

using Handler = void (*)();
extern Handler __terminate_handler;
constinit Handler __terminate_handler = abort;
}  // namespace __cxxabiv1

extern "C" void tt_abort_on_terminate() { abort(); }  // libtt.a's has a message
