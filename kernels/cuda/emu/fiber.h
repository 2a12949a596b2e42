// Fibers for the emulation, and what the sanitizers must be told about them. EMU_TSAN and EMU_ASAN
// are set by the build where the rest of the program is instrumented.
#pragma once

#include "base/platform.h"

#include <stddef.h>

#ifndef EMU_TSAN
#define EMU_TSAN 0
#endif
#ifndef EMU_ASAN
#define EMU_ASAN 0
#endif

namespace TT_NS::emu {

// ThreadSanitizer sees each thread of a kernel as a thread; a fiber then runs one of them only.
constexpr bool kFibersAreChecked = EMU_TSAN;

struct Fiber {
  void* sp = nullptr;
  char* stack = nullptr;
  void (*body)(void*) = nullptr;
  void* user = nullptr;
  void* tsan = nullptr;
  void* fake_stack = nullptr;
  Fiber* next = nullptr;
};

Fiber* fiber_new(void (*body)(void*), void* user);
Fiber* fiber_current();  // NULL: none of fiber_new's
// From a fiber to the thread's own stack (to = NULL), or from there to a fiber. A fiber that `ends`
// is freed by fiber_end_of_launch.
void fiber_switch(Fiber* to, bool ends);
void fiber_abandon(Fiber* f);  // never switched to again
void fiber_end_of_launch();

void fiber_release(void* at);
void fiber_acquire(void* at);
void fiber_ignore(bool on);
void fiber_poison(const void* p, size_t bytes);
void fiber_unpoison(const void* p, size_t bytes);

}  // namespace TT_NS::emu
