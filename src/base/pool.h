// Thread pool and parallel_for. No thread exists before set_threads(n > 1) and the first region that wants it.
#pragma once

#include "base/heap.h"

namespace TT_NS {

struct Pool;  // one per runtime

Pool* pool_new(Arena*) noexcept;  // NULL on OOM; one thread (the caller's)
void pool_delete(Pool*) noexcept;  // joins its threads
// The host's executor instead of own threads; NULL: own ones again.
void pool_set_executor(Pool*, const tt_executor* e) noexcept;
tt_status pool_set_threads(Pool*, int32_t n) noexcept;
int32_t pool_threads(Pool*) noexcept;

// Covers [0, n) by calls body(body_ctx, begin, end) on ranges [i*grain, min(n, (i+1)*grain)): the split depends on n
// and grain only. Serial when the pool has one thread, n <= grain, inside another region, or in a forked child.
// Returns 0, or the status of a failing host executor.
tt_status parallel_for(Pool*, int64_t n, int64_t grain, tt_range_fn body, void* body_ctx) noexcept;

}  // namespace TT_NS
