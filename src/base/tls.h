// tt's only thread-local object: the state of the running call on this thread. Initial-exec,
// trivially destructible.
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
  int16_t in_parallel;  // > 0 inside a body of parallel_for: nested regions run serially
  int8_t freeing;       // 1 while the loop over free_list runs
  int8_t in_free;       // 1 while mem_free changes a heap of this thread (see arena_release)
};
static_assert(sizeof(Tls) <= 64);

extern thread_local constinit Tls tls __attribute__((tls_model("initial-exec")));

}  // namespace TT_NS
