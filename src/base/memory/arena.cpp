// Memory of a runtime, taken from the application's allocator: accounting, limit, slabs,
// lifetime.
#include "base/memory/arena.h"
#include "base/arith.h"

#include <string.h>

namespace TT_NS {

namespace {

constexpr size_t kHuge = size_t(2) << 20;
constexpr int64_t kKeepSpare = 64;                   // slabs
constexpr int64_t kSmallBatch = 4;                   // slabs mapped at once in small programs
constexpr int64_t kLargeBatch = kHuge / kSlabBytes;  // the same above kManySlabs slabs
constexpr int64_t kManySlabs = 64;

bool reserve(Arena* a, int64_t bytes) {
  const int64_t limit = atomic_load(&a->limit, kRelaxed);
  int64_t old = atomic_load(&a->reserved, kRelaxed);
  do {
    if (limit && bytes > limit - old) return false;
  } while (!atomic_compare_exchange_weak(&a->reserved, &old, old + bytes, kRelaxed, kRelaxed));
  return true;
}

void note_peak(Arena* a) {
  const int64_t now = atomic_load(&a->reserved, kRelaxed);
  int64_t peak = atomic_load(&a->peak, kRelaxed);
  while (now > peak && !atomic_compare_exchange_weak(&a->peak, &peak, now, kRelaxed, kRelaxed)) {}
}

void unreserve(Arena* a, int64_t bytes) { atomic_fetch_sub(&a->reserved, bytes, kRelaxed); }

// Large blocks of the C allocator are mapped: no fragmentation, and huge pages where the system has
// them.
bool is_mapped(const Arena* a, size_t bytes) {
  return !TT_HEAP_DIRECT && a->system && bytes >= kHuge;
}

void call_free(const tt_allocator& allocator, void* p, size_t bytes, size_t align) noexcept {
  try {
    allocator.free(allocator.user, p, bytes, align);
  } catch (...) {}
}
// An allocator that throws, or whose block is not aligned, counts as out of memory; exceptions of
// its free are swallowed.
void* call_alloc(const tt_allocator& allocator, size_t bytes, size_t align,
                 int64_t* misaligned) noexcept {
  try {
    void* p = allocator.alloc(allocator.user, bytes, align);
    if (!p) atomic_store(misaligned, int64_t(0), kRelaxed);
    if (TT_LIKELY((reinterpret_cast<uintptr_t>(p) & (align - 1)) == 0)) return p;
    atomic_store(misaligned, int64_t(align), kRelaxed);
    call_free(allocator, p, bytes, align);
  } catch (...) {}
  return nullptr;
}

void* alloc_from_application(Arena* a, size_t bytes, size_t align) {
  if (!is_mapped(a, bytes)) return call_alloc(a->allocator, bytes, align, &a->misaligned);
  void* p = os_map(bytes, kHuge);
  if (p) os_advise_huge(p, bytes);
  return p;
}

void* system_alloc(void*, size_t bytes, size_t align) { return os_alloc(bytes, align); }
void system_free(void*, void* p, size_t, size_t) { os_free(p); }

void* take_once(Arena* a, size_t bytes, size_t align) {
  if (!reserve(a, int64_t(bytes))) return nullptr;
  void* p = alloc_from_application(a, bytes, align);
  if (p) note_peak(a);
  else unreserve(a, int64_t(bytes));
  return p;
}

void* slab_base(Slab* s) {
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(s) & ~(kSlabBytes - 1));
}

void free_slab(Arena* a, Slab* s) {
  unreserve(a, int64_t(kSlabBytes));
  if (a->system && !TT_HEAP_DIRECT) os_unmap(slab_base(s), kSlabBytes);
  else call_free(a->allocator, slab_base(s), kSlabBytes, kSlabBytes);
}

void push_spare(Arena* a, Slab* s) {
  s->next = a->spare;
  a->spare = s;
  a->num_spare++;
}

// Maps n slabs. All but the first become the arena's unused ones; untouched pages cost nothing.
Slab* map_slabs(Arena* a, int64_t n) {
  const size_t bytes = size_t(n) * kSlabBytes;
  if (!reserve(a, int64_t(bytes))) return nullptr;
  char* p = static_cast<char*>(os_map(bytes, bytes >= kHuge ? kHuge : kSlabBytes));
  if (!p) {
    unreserve(a, int64_t(bytes));
    return nullptr;
  }
  if (bytes >= kHuge) os_advise_huge(p, bytes);
  note_peak(a);
  Lock l(a->lock);
  if (a->num_unused == 0) {
    a->unused = p + kSlabBytes;
    a->num_unused = n - 1;
  } else {  // another thread has been faster
    for (int64_t i = 1; i < n; i++) push_spare(a, slab_of(p + size_t(i) * kSlabBytes));
  }
  return slab_of(p);
}

Slab* new_slab(Arena* a, int64_t have) {
  if (!a->system || TT_HEAP_DIRECT) {
    void* p = take_once(a, kSlabBytes, kSlabBytes);
    return p ? slab_of(p) : nullptr;
  }
  Slab* s = map_slabs(a, have < kManySlabs ? kSmallBatch : kLargeBatch);
  return s ? s : map_slabs(a, 1);
}

// Returns a spare or an unused slab, or NULL.
Slab* pop_slab(Arena* a) {
  Slab* s = a->spare;
  if (s) {
    a->spare = s->next;
    a->num_spare--;
  } else if (a->num_unused) {
    s = slab_of(a->unused);
    a->unused += kSlabBytes;
    a->num_unused--;
  }
  return s;
}

Slab* take_slab_once(Arena* a) {
  int64_t have;
  {
    Lock l(a->lock);
    have = a->num_slabs++;
    if (Slab* s = pop_slab(a)) return s;
  }
  Slab* s = new_slab(a, have);
  if (!s) {
    Lock l(a->lock);
    a->num_slabs--;
  }
  return s;
}

void spares_trim(Arena* a) {
  Slab* s;
  char* unused;
  int64_t n;
  {
    Lock l(a->lock);
    s = a->spare;
    unused = a->unused;
    n = a->num_unused;
    a->spare = nullptr;
    a->num_spare = a->num_unused = 0;
  }
  for (; n; n--, unused += kSlabBytes) free_slab(a, slab_of(unused));
  while (s) {
    Slab* next = s->next;
    free_slab(a, s);
    s = next;
  }
}

}  // namespace

void* arena_take(Arena* a, size_t bytes, size_t align) noexcept {
  if (void* p = take_once(a, bytes, align)) return p;
  arena_trim(a);
  return take_once(a, bytes, align);
}

void arena_give(Arena* a, void* p, size_t bytes, size_t align) noexcept {
  unreserve(a, int64_t(bytes));
  if (is_mapped(a, bytes)) os_unmap(p, bytes);
  else call_free(a->allocator, p, bytes, align);
}

int64_t arena_whole_pages(const Arena* a, int64_t bytes) noexcept {
  const int64_t whole = round_up(bytes, int64_t(kHuge));
  return is_mapped(a, size_t(bytes)) && whole - bytes <= bytes / 8 ? whole : bytes;
}

Slab* arena_take_slab(Arena* a) noexcept {
  if (Slab* s = take_slab_once(a)) return s;
  arena_trim(a);
  return take_slab_once(a);
}

void arena_give_slab(Arena* a, Slab* s) noexcept {
  {
    Lock l(a->lock);
    a->num_slabs--;
    if (!a->dying && a->num_spare < kKeepSpare) {
      push_spare(a, s);
      return;
    }
  }
  free_slab(a, s);
}

Arena* arena_new(const tt_allocator* allocator) noexcept {
  tt_allocator h = {sizeof(tt_allocator), nullptr, system_alloc, system_free};
  if (allocator) h = *allocator;
  int64_t misaligned;
  void* p = call_alloc(h, sizeof(Arena), 64, &misaligned);
  if (!p) return nullptr;
  memset(p, 0, sizeof(Arena));
  Arena* a = static_cast<Arena*>(p);
  a->refs = a->life = 1;
  a->pid = os_pid();
  a->system = !allocator && os_maps_pages();
  a->allocator = h;
  a->reserved = a->peak = int64_t(sizeof(Arena));
  return a;
}

void arena_release(Arena* a) noexcept {
  if (!a || atomic_fetch_sub(&a->refs, 1, kAcqRel) != 1) return;
  {
    Lock l(a->lock);
    a->dying = true;
  }
  retired_free(a);
  large_trim(a);
  spares_trim(a);
  heaps_revoke(a);
  arena_drop_life(a);
}

void arena_drop_life(Arena* a) noexcept {
  if (atomic_fetch_sub(&a->life, 1, kAcqRel) != 1) return;
  const tt_allocator allocator = a->allocator;
  call_free(allocator, a, sizeof(Arena), 64);
}

void arena_set_limit(Arena* a, int64_t bytes) noexcept { atomic_store(&a->limit, bytes, kRelaxed); }

void fail_oom(int64_t bytes) {
  if (bytes && tls.heap) {
    const Arena* a = heap_arena(tls.heap);
    const int64_t limit = atomic_load(&a->limit, kRelaxed);
    const int64_t reserved = atomic_load(&a->reserved, kRelaxed);
    if (limit && bytes > limit - reserved)
      fail(TT_OOM, "out of memory: cannot allocate {} bytes: {} are reserved, the limit is {}",
           bytes, reserved, limit);
    if (const int64_t align = atomic_load(&a->misaligned, kRelaxed))
      fail(TT_OOM, "cannot allocate {} bytes: the allocator's block is not aligned to {} bytes",
           bytes, align);
  }
  fail(TT_OOM, "out of memory: cannot allocate {} bytes", bytes);
}

#if TT_CHECKED
void mem_retire_checked(void* p, size_t bytes) noexcept {
  Arena* a = (static_cast<LargeBlock*>(p) - 1)->arena;  // TT_HEAP_DIRECT: every block is large
  {
    Lock l(a->lock);
    if (!a->dying) {
      auto& slot = a->retired[a->num_retired++ % kRetired];
      void* old = slot.p;
      const size_t old_bytes = slot.bytes;
      slot.p = p;
      slot.bytes = bytes;
      p = old;
      bytes = old_bytes;
    }
  }
  if (p) mem_free(p, bytes);
}

void retired_free(Arena* a) noexcept {
  for (auto& slot : a->retired) {
    void* p;
    size_t bytes;
    {
      Lock l(a->lock);
      p = slot.p;
      bytes = slot.bytes;
      slot.p = nullptr;
    }
    if (p) mem_free(p, bytes);
  }
}
#else
void mem_retire_checked(void* p, size_t bytes) noexcept { mem_free(p, bytes); }
void retired_free(Arena*) noexcept {}
#endif

void arena_trim(Arena* a) noexcept {
  retired_free(a);
  large_trim(a);
  heaps_trim(a);
  spares_trim(a);
}

void arena_stats(Arena* a, tt_memory_stats* out) noexcept {
  Lock l(a->lock);
  int64_t in_use = a->large.live;
  int64_t live[3];
  for (int k = 0; k < 3; k++) {
    live[k] = atomic_load(&a->live[k], kRelaxed);
    for (Heap* h = a->heaps; h; h = h->next_of_arena) live[k] += atomic_load(&h->live[k], kRelaxed);
  }
  out->live_tensors = live[kLiveTensors];
  out->live_nodes = live[kLiveNodes];
  out->live_handles = live[kLiveHandles];
  for (Heap* h = a->heaps; h; h = h->next_of_arena)
    in_use += atomic_load(&h->taken, kRelaxed) - atomic_load(&h->returned, kRelaxed) -
              (atomic_load(&h->remote_freed, kRelaxed) + kHeapAlive);
  out->in_use = in_use;
  out->reserved = atomic_load(&a->reserved, kRelaxed);
  out->peak = atomic_load(&a->peak, kRelaxed);
  out->limit = atomic_load(&a->limit, kRelaxed);
}

}  // namespace TT_NS
