// Thread pool and parallel_for. No thread is started before set_threads(n > 1) and the first region
// that needs it.
#pragma once

#include "base/memory/heap.h"

namespace TT_NS {

struct Pool;  // one per runtime

constexpr int32_t kMaxThreads = 1024;

Pool* pool_new(Arena*) noexcept;   // NULL on OOM; starts with one thread, the caller's
void pool_delete(Pool*) noexcept;  // joins its threads
// Sets the application's executor instead of own threads; NULL restores own threads.
void pool_set_executor(Pool*, const tt_executor* e) noexcept;
// Waits for a running region. TT_INVALID_ARG: n is outside [1, kMaxThreads], or the caller is a
// body of parallel_for.
tt_status pool_set_threads(Pool*, int32_t n) noexcept;
int32_t pool_threads(Pool*) noexcept;  // the executor's, if one is set

// Calls body(body_ctx, begin, end) for the ranges [i*grain, min(n, (i+1)*grain)) of [0, n). The
// split depends on n and grain only. Serial if the pool has one thread, n <= grain, inside another
// region, in a forked child, or while another thread's region runs. Returns 0, or -1 if an executor
// failed or left ranges out: the record of the running call has the error.
// Choose grain so that a range takes 5 to 50 µs. Workers that still spin (20 µs after a region)
// take part at once. Sleeping workers are woken only if, judging by the first range, at least 100
// µs of work are left, or were missed in a stream of regions. range_ns is a known lower bound of
// the time of a range, or 0; with it, few long ranges wake workers at once.
tt_status parallel_for(Pool*, int64_t n, int64_t grain, tt_range_fn body, void* body_ctx,
                       int64_t range_ns = 0) noexcept;

}  // namespace TT_NS
