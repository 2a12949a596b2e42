// Finalizers: the drop callbacks of objects of the application. They run at once or, by an option
// of the runtime, are queued until the application polls.
#pragma once

#include "base/memory/heap.h"

namespace TT_NS {

// Minimum size of a block for drop_and_free: a queued block is its own queue entry.
constexpr size_t kDropBytes = 8 + 3 * sizeof(void*) + sizeof(size_t);

// Calls drop(user) unless drop is NULL. Exceptions are swallowed.
void run_drop(void (*drop)(void*), void* user) noexcept;

// Calls run_drop, then mem_retire on the block. If drops are queued, both happen in the poll;
// queueing does not allocate.
void drop_and_free(void* block, size_t bytes, void (*drop)(void*), void* user) noexcept;

// Switches queueing on or off. Switching it off runs the queued drops.
void arena_queue_drops(Arena*, bool on) noexcept;
// Runs the queued drops, oldest first, including those that they queue. Returns their number.
int64_t arena_poll(Arena*) noexcept;

}  // namespace TT_NS
