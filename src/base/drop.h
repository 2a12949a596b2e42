// Ends of host objects that blocks of an arena hold: run at once, or (a runtime's option) queued
// until the host polls.
#pragma once

#include "base/heap.h"

namespace TT_NS {

constexpr size_t kDropBytes =
    40;  // what a block must have, so that it can stand in the queue itself

// Calls drop(user), unless drop is NULL. What it throws ends here: nobody is there who could be
// told.
void run_drop(void (*drop)(void*), void* user) noexcept;

// run_drop, and then mem_retire of the block. Where drops are queued both happen in the poll; no
// memory is needed for that.
void drop_and_free(void* block, size_t bytes, void (*drop)(void*), void* user) noexcept;

// Turning it off runs what is queued.
void arena_queue_drops(Arena*, bool on) noexcept;
// Runs what is queued, oldest first, also what that queues; how many it were.
int64_t arena_poll(Arena*) noexcept;

}  // namespace TT_NS
