// Thread pool and parallel_for. No thread exists before set_threads(n > 1) and the first region
// that wants it.
#pragma once

#include "base/heap.h"

namespace TT_NS {

struct Pool;  // one per runtime

constexpr int32_t kMaxThreads = 1024;

Pool* pool_new(Arena*) noexcept;   // NULL on OOM; one thread (the caller's)
void pool_delete(Pool*) noexcept;  // joins its threads
// The host's executor instead of own threads; NULL: own ones again.
void pool_set_executor(Pool*, const tt_executor* e) noexcept;
// Waits for a running region. TT_INVALID_ARG: n outside [1, kMaxThreads], or called from a body of
// parallel_for.
tt_status pool_set_threads(Pool*, int32_t n) noexcept;
int32_t pool_threads(Pool*) noexcept;  // the executor's, if there is one

// Covers [0, n) by calls body(body_ctx, begin, end) on ranges [i*grain, min(n, (i+1)*grain)): the
// split depends on n and grain only. Serial when the pool has one thread, n <= grain, inside
// another region, in a forked child, or while another thread's region runs. Returns 0, or the
// status of a failing host executor. Choose grain so that a range is some 5 to 50 µs of work:
// workers that still spin after a region of the last 20 µs take part at once; sleeping ones are
// woken (and missing ones started) only if, by the time that the first range took, at least 100 µs
// of work are left, or were in a stream of regions whose pauses are shorter than their work.
// range_ns: what a range takes at least, if that is known: ranges that are long, but few, then call
// for hands at once.
tt_status parallel_for(Pool*, int64_t n, int64_t grain, tt_range_fn body, void* body_ctx,
                       int64_t range_ns = 0) noexcept;

}  // namespace TT_NS
