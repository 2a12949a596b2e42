// Heaps: small blocks of one (thread, arena) pair. A heap passes to another thread only after its
// own has ended; it is taken from a living thread only when the arena loses its last reference
// (heaps_revoke).
#include "base/memory/heap.h"

#include "base/memory/arena.h"
#include "base/arith.h"
#include "base/small_vec.h"

#include <string.h>

namespace TT_NS {

namespace {

constexpr int64_t kCollectFrom = 64;  // slabs

// Guards Tls::heaps of all threads. Taken before any arena's lock.
constinit Mutex threads_lock;

int32_t capacity(const Slab* s) {
  const size_t used = (reinterpret_cast<uintptr_t>(s + 1)) & (kSlabBytes - 1);
  return int32_t((kSlabBytes - used) / s->block_bytes);
}

FreeBlock* block_at(Slab* s, int32_t i) {
  return reinterpret_cast<FreeBlock*>(reinterpret_cast<char*>(s + 1) + size_t(i) * s->block_bytes);
}

// Moves blocks that other threads have freed to the free lists.
void drain(Heap* h) {
  if (!atomic_load(&h->remote, kRelaxed)) return;
  FreeBlock* b = atomic_exchange(&h->remote, nullptr, kAcquire);
  while (b) {
    FreeBlock* next = b->next;
    FreeBlock** list = &h->free[slab_of(b)->cls];
    b->next = *list;
    *list = b;
    b = next;
  }
}

// Carves the next page's worth of blocks from a slab, lowest address first.
void carve(Heap* h, Slab* s) {
  int32_t n = int32_t(4096 / s->block_bytes);
  if (n == 0) n = 1;
  if (n > capacity(s) - s->carved) n = capacity(s) - s->carved;
  FreeBlock** list = &h->free[s->cls];
  for (int32_t i = s->carved + n - 1; i >= s->carved; i--) {
    FreeBlock* b = block_at(s, i);
    b->next = *list;
    *list = b;
  }
  s->carved += n;
}

bool add_slab(Heap* h, int cls) {
  Slab* s = arena_take_slab(h->arena);
  if (!s) return false;
  s->heap = h;
  s->next = h->slabs;
  s->block_bytes = kSmallClass.block_bytes[cls];
  s->cls = cls;
  s->carved = 0;
  h->slabs = s;
  h->fresh[cls] = s;
  h->num_slabs++;
  return true;
}

// Puts at least one block on the free list of the class.
bool refill(Heap* h, int cls) {
  drain(h);
  if (h->free[cls]) return true;
  Slab* s = h->fresh[cls];
  if (!s || s->carved == capacity(s)) {
    if (h->num_slabs >= h->collect_at) {
      heap_collect(h);
      h->collect_at = max(h->num_slabs * 2, kCollectFrom);
      if (h->free[cls]) return true;
    }
    // Under a limit this may also collect the heap.
    if (!add_slab(h, cls)) return h->free[cls] != nullptr;
  }
  carve(h, h->fresh[cls]);
  return true;
}

void count_free_blocks(Heap* h) {
  for (Slab* s = h->slabs; s; s = s->next) s->free = 0;
  for (FreeBlock* list : h->free)
    for (FreeBlock* b = list; b; b = b->next) slab_of(b)->free++;
}

void drop_blocks_of_empty_slabs(Heap* h) {
  for (FreeBlock*& list : h->free) {
    FreeBlock** at = &list;
    while (FreeBlock* b = *at) {
      const Slab* s = slab_of(b);
      if (s->free == s->carved) *at = b->next;
      else at = &b->next;
    }
  }
}

// Frees the heap and all its slabs. No block is live and no thread owns it.
void destroy(Heap* h) {
  Arena* a = h->arena;
  while (Slab* s = h->slabs) {
    h->slabs = s->next;
    arena_give_slab(a, s);
  }
  arena_give(a, h, sizeof(Heap), 64);
  arena_drop_life(a);
}

void remote_free(Heap* h, FreeBlock* b, int64_t bytes) {
  FreeBlock* head = atomic_load(&h->remote, kRelaxed);
  do b->next = head;
  while (!atomic_compare_exchange_weak(&h->remote, &head, b, kRelease, kRelaxed));
  // The last access to h, unless the count becomes 0.
  if (atomic_add_fetch(&h->remote_freed, bytes, kAcqRel) == 0) destroy(h);
}

Heap* make_heap(Arena* a) {
  Heap* h = static_cast<Heap*>(arena_take(a, sizeof(Heap), 64));
  if (!h) return nullptr;
  memset(static_cast<void*>(h), 0, sizeof(Heap));
  h->arena = a;
  h->collect_at = kCollectFrom;
  h->remote_freed = -kHeapAlive;
  atomic_fetch_add(&a->life, 1, kRelaxed);
  Lock l(a->lock);
  h->next_of_arena = a->heaps;
  a->heaps = h;
  return h;
}

Heap* adopt(Arena* a) {
  Lock l(a->lock);
  Heap* h = a->abandoned;
  if (h) a->abandoned = h->next_abandoned;
  return h;
}

void abandon(Heap* h) {
  Lock l(h->arena->lock);
  atomic_store(&h->owner, nullptr, kRelaxed);
  h->next_abandoned = h->arena->abandoned;
  h->arena->abandoned = h;
}

Heap* find_heap(Tls* t, const Arena* a) {
  Lock l(threads_lock);
  for (Heap* h = t->heaps; h; h = h->next_of_thread)
    if (h->arena == a) return h;
  return nullptr;
}

// Adds a reference to the arena of a heap, unless the last one is already gone.
bool try_retain(Arena* a) {
  int32_t refs = atomic_load(&a->refs, kRelaxed);
  while (refs > 0)
    if (atomic_compare_exchange_weak(&a->refs, &refs, refs + 1, kAcquire, kRelaxed)) return true;
  return false;
}

// Abandons the heaps of an ending thread, for adoption by others.
void thread_exit(void* p) {
  Tls* t = static_cast<Tls*>(p);
  for (;;) {
    Heap* h;
    {
      Lock l(threads_lock);
      h = t->heaps;
      if (!h) return;
      t->heaps = h->next_of_thread;
      if (!try_retain(h->arena)) {
        atomic_store(&h->owner, nullptr, kRelaxed);  // heaps_revoke waits for the lock
        continue;
      }
    }
    heap_collect(h);
    Arena* a = h->arena;
    abandon(h);
    arena_release(a);
  }
}

// Removes the heap from its thread's list; the caller holds threads_lock.
void revoke(Heap* h) {
  Tls* t = atomic_load(&h->owner, kRelaxed);
  h->revoked_from = t;
  if (!t) return;
  Heap** at = &t->heaps;
  while (*at && *at != h) at = &(*at)->next_of_thread;
  if (*at) *at = h->next_of_thread;
  atomic_store(&h->owner, nullptr, kRelaxed);
}

// The parent's threads do not run in a forked child: never wait for their unfinished operations.
void wait_outside_free(const Tls* t, int32_t pid) {
  while (t && atomic_load(&t->in_free, kAcquire) && os_pid() == pid) os_yield();
}

}  // namespace

Arena* heap_arena(Heap* h) noexcept { return h->arena; }

Heap* arena_heap(Arena* a) noexcept {
  Tls* t = &tls;
  if (Heap* h = find_heap(t, a)) return h;
  Heap* h = adopt(a);
  if (!h) h = make_heap(a);
  if (!h) return nullptr;
  if (!os_at_thread_exit(thread_exit, t)) {
    abandon(h);
    return nullptr;
  }
  Lock l(threads_lock);
  atomic_store(&h->owner, t, kRelaxed);
  h->next_of_thread = t->heaps;
  t->heaps = h;
  return h;
}

void* heap_alloc_slow(Heap* h, size_t bytes) noexcept {
  if (TT_HEAP_DIRECT || bytes > kSmallMax) return large_alloc(h->arena, bytes);
  const int cls = kSmallClass.of[(bytes + 63) / 64];
  if (!refill(h, cls)) return nullptr;
  FreeBlock* b = h->free[cls];
  h->free[cls] = b->next;
  atomic_store(&h->taken, h->taken + counted_bytes(bytes), kRelaxed);
  return b;
}

void mem_free_slow(void* p, size_t bytes) noexcept {
  if (TT_HEAP_DIRECT || bytes > kSmallMax) large_free(p, bytes);
  else remote_free(slab_of(p)->heap, static_cast<FreeBlock*>(p), counted_bytes(bytes));
}

void* mem_grow(void* p, int64_t used, int64_t owned, int64_t count, int64_t item) {
  // count * item cannot overflow: an item is far smaller than a megabyte. A division would take
  // longer than the rest.
  if (count > INT64_MAX >> 20) fail_oom(INT64_MAX);
  void* block = mem_alloc_wide(count * item);
  if (used) memcpy(block, p, size_t(used * item));
  mem_free_items(p, owned, item);
  return block;
}

void mem_free_items(void* p, int64_t owned, int64_t item) noexcept {
  if (owned) mem_free(p, size_t(owned * item));
}

void grow_vec(VecHead* v, int64_t need, int64_t item) {
  const int64_t cap = max(v->cap * 2, need);
  v->p = mem_grow(v->p, v->n, v->p == v + 1 ? 0 : v->cap, cap, item);
  v->cap = cap;
}

void drop_vec(VecHead* v, int64_t item, int64_t inline_cap) noexcept {
  if (v->p != v + 1) mem_free_items(v->p, v->cap, item);
  *v = {v + 1, 0, inline_cap};
}

void count_live_slow(const void* p, size_t bytes, LiveKind kind, int64_t change) noexcept {
  atomic_fetch_add(&block_arena(p, bytes)->live[kind], change, kRelaxed);
}

void heap_collect(Heap* h) noexcept {
  drain(h);
  count_free_blocks(h);
  drop_blocks_of_empty_slabs(h);
  Slab* list = h->slabs;
  h->slabs = nullptr;
  while (Slab* s = list) {
    list = s->next;
    if (s->free != s->carved) {
      s->next = h->slabs;
      h->slabs = s;
      continue;
    }
    if (h->fresh[s->cls] == s) h->fresh[s->cls] = nullptr;
    h->num_slabs--;
    arena_give_slab(h->arena, s);
  }
}

void heaps_trim(Arena* a) noexcept {
  if (Heap* h = find_heap(&tls, a)) heap_collect(h);
  Heap* list;
  {
    Lock l(a->lock);
    list = a->abandoned;
    a->abandoned = nullptr;
  }
  while (Heap* h = list) {
    list = h->next_abandoned;
    heap_collect(h);
    abandon(h);
  }
}

void heaps_revoke(Arena* a) noexcept {
  {
    Lock l(threads_lock);
    bool foreign = false;
    for (Heap* h = a->heaps; h; h = h->next_of_arena) {
      revoke(h);
      foreign |= h->revoked_from && h->revoked_from != &tls;
    }
    // After the barrier, a thread either shows that it is inside mem_free or sees that it no longer
    // owns the heap.
    if (foreign) os_barrier_all();
    for (Heap* h = a->heaps; h && foreign; h = h->next_of_arena)
      wait_outside_free(h->revoked_from, a->pid);
  }
  Heap* next;
  for (Heap* h = a->heaps; h; h = next) {
    next = h->next_of_arena;
    const int64_t live = h->taken - h->returned;
    if (atomic_add_fetch(&h->remote_freed, kHeapAlive - live, kAcqRel) == 0) destroy(h);
  }
}

}  // namespace TT_NS
