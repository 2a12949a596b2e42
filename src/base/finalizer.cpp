#include "base/finalizer.h"

#include "base/memory/arena.h"

namespace TT_NS {

// Written into a block after its first word, which remains the tag of a released object.
struct QueuedDrop {
  QueuedDrop* next;
  void (*drop)(void*);
  void* user;
  size_t bytes;
};
static_assert(sizeof(QueuedDrop) + 8 == kDropBytes);

namespace {

// Returns false if drops are not queued.
bool enqueue(Arena* a, void* block, const QueuedDrop& entry) {
  Lock l(a->lock);
  if (!a->queue_drops) return false;
  auto* q = reinterpret_cast<QueuedDrop*>(static_cast<char*>(block) + 8);
  *q = entry;
  *(a->last_drop ? &a->last_drop->next : &a->drops) = q;
  a->last_drop = q;
  return true;
}

QueuedDrop* take_all(Arena* a) {
  Lock l(a->lock);
  QueuedDrop* list = a->drops;
  a->drops = a->last_drop = nullptr;
  return list;
}

}  // namespace

void run_drop(void (*drop)(void*), void* user) noexcept {
  if (!drop) return;
  try {
    drop(user);
  } catch (...) {  // from a C++ application; the process must not end
  }
}

void drop_and_free(void* block, size_t bytes, void (*drop)(void*), void* user) noexcept {
  if (drop) {
    Arena* a = block_arena(block, bytes);
    if (atomic_load(&a->queue_drops, kRelaxed) && enqueue(a, block, {nullptr, drop, user, bytes}))
      return;
    run_drop(drop, user);
  }
  mem_retire(block, bytes);
}

void arena_queue_drops(Arena* a, bool on) noexcept {
  {
    Lock l(a->lock);
    atomic_store(&a->queue_drops, on, kRelaxed);
  }
  if (!on) arena_poll(a);
}

int64_t arena_poll(Arena* a) noexcept {
  int64_t n = 0;
  while (QueuedDrop* q = take_all(a))
    for (; q; n++) {
      const QueuedDrop entry = *q;
      run_drop(entry.drop, entry.user);
      mem_retire(reinterpret_cast<char*>(q) - 8, entry.bytes);
      q = entry.next;
    }
  return n;
}

}  // namespace TT_NS
