// tt's only thread-local object: the state of the running call on this thread. Trivially
// destructible.
#pragma once

#include "base/platform.h"

namespace TT_NS {

struct Ctx;
struct Heap;
struct ErrorRecord;

struct Tls {
  Ctx* ctx;    // of the running call, NULL outside of calls; set and restored at the C boundary
  Heap* heap;  // where the running call allocates
  ErrorRecord* error;  // where fail() writes
  const char* op;      // operator name for error messages
  void* free_list;  // autograd nodes waiting to be freed: a loop, not recursion, frees long chains
  Heap* heaps;      // the heaps that this thread owns, one per arena
  // __cxa_eh_globals of the C++ runtime, in libtt.so only (cxx_runtime.cpp); the last four bytes
  // are padding
  void* caught_exceptions;
  uint32_t uncaught_exceptions;
#if defined(__ARM_EABI_UNWINDER__)
  void* propagating_exceptions;  // the third word of ARM's exception handling ABI
#endif
  int16_t in_parallel;  // > 0 inside a body of parallel_for: nested regions run serially
  int8_t freeing;       // 1 while the loop over free_list runs
  int8_t in_free;       // 1 while mem_free changes a heap of this thread (see arena_release)
};
static_assert(sizeof(Tls) <= 64);

#if TT_TLS_EMULATED
Tls& tls_of_thread() noexcept;
#define tls (TT_NS::tls_of_thread())
#else
extern TT_THREAD_LOCAL constinit Tls tls TT_TLS_MODEL;
#endif

}  // namespace TT_NS
