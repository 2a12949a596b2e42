// The terminate handler of a static program that asks for it with -Wl,-u,tt_abort_on_terminate: it
// aborts. libstdc++'s prints the demangled name of an exception's type, for 49 kB. Part of libtt.a
// alone, and weak, so that two copies of tt share it.
#include <stdlib.h>

#define TT_SHARED __attribute__((weak, visibility("default")))

extern "C" TT_SHARED void tt_abort_on_terminate() { abort(); }

namespace __cxxabiv1 {
using Handler = void (*)();
extern TT_SHARED Handler __terminate_handler;
constinit Handler __terminate_handler = tt_abort_on_terminate;
}  // namespace __cxxabiv1
