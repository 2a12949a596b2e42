#include "core/device_alloc.h"

#include "base/arith.h"
#include "base/os.h"

#include <string.h>

namespace TT_NS {

static const DeviceBackend* g_backend = nullptr;

bool set_cuda_backend(const DeviceBackend* b) noexcept {
  const DeviceBackend* none = nullptr;
  return atomic_compare_exchange(&g_backend, &none, b, kAcqRel, kAcquire) || none == b;
}
const DeviceBackend* cuda_backend() noexcept { return atomic_load(&g_backend, kAcquire); }

// Blocks of up to kSmall are cut from slabs, so that a few of them never keep a large segment.
constexpr size_t kUnit = 512;
constexpr size_t kSmall = size_t(1) << 20;
constexpr size_t kSlab = size_t(2) << 20;
constexpr size_t kSegment = size_t(20) << 20;  // for large blocks of less than half of it
constexpr size_t kHuge = TT_MAX_BYTES / 2;     // no device has so much
// The free blocks of a pool by size: up to 8 units one bin for each, then 8 for each power of two.
constexpr int kBins = 320;
// A search for the best fit looks at this many blocks of a bin, so that its time is bounded.
constexpr int kFitTries = 8;

struct DevicePool {
  DeviceAlloc* alloc;
  int32_t number;  // of the stream
  struct Bins {
    uint64_t any[kBins / 64];  // a bit for each bin that is not empty
    DeviceBlock* bin[kBins];
  } bins[2];  // of large blocks, of small ones
};

// A block that waits until a stream has passed an event.
struct WaitingBlock {
  WaitingBlock* next;
  DeviceBlock* block;
  void* event;
};

// Free nodes of one type, taken from the system in pages.
template <class T> struct Nodes {
  union Node {
    Node* next;
    alignas(T) char room[sizeof(T)];
  };
  struct Page {
    Page* next;
    Node nodes[31];
  };
  Node* free;
  Page* pages;

  T* get() noexcept {
    if (TT_UNLIKELY(!free) && !add_page()) return nullptr;
    Node* n = free;
    free = n->next;
    return reinterpret_cast<T*>(n);
  }
  void put(T* t) noexcept {
    auto* n = reinterpret_cast<Node*>(t);
    n->next = free;
    free = n;
  }
  TT_COLD bool add_page() noexcept {
    auto* p = static_cast<Page*>(os_alloc(sizeof(Page), 64));
    if (!p) return false;
    p->next = pages;
    pages = p;
    for (Node& n : p->nodes) {
      n.next = free;
      free = &n;
    }
    return true;
  }
  void end() noexcept {
    while (Page* p = pages) {
      pages = p->next;
      os_free(p);
    }
  }
};

struct DeviceAlloc {
  Mutex mutex;
  int32_t device;
  const DeviceBackend* backend;
  void (*ended)(void*);
  void* user;
  bool released, lost;
  int64_t live;  // blocks, and what holds the device
  DeviceAllocStats stats;
  void* streams[kMaxStreams];
  DevicePool* pools[kMaxStreams];
  WaitingBlock* waiting;
  void* spare_event;  // a chain of one
  Nodes<DeviceBlock> blocks;
  Nodes<WaitingBlock> waits;
};

DeviceAlloc* device_alloc_new(const DeviceBackend* backend, int32_t device, void (*ended)(void*),
                              void* user) noexcept {
  auto* a = static_cast<DeviceAlloc*>(os_alloc(sizeof(DeviceAlloc), 64));
  if (!a) return nullptr;
  memset(static_cast<void*>(a), 0, sizeof *a);
  a->device = device;
  a->backend = backend;
  a->ended = ended;
  a->user = user;
  return a;
}

static DevicePool* new_pool(DeviceAlloc* a, int32_t number) noexcept {
  auto* p = static_cast<DevicePool*>(os_alloc(sizeof(DevicePool), 64));
  if (!p) return nullptr;
  memset(static_cast<void*>(p), 0, sizeof *p);
  p->alloc = a;
  p->number = number;
  return p;
}

DevicePool* device_alloc_stream(DeviceAlloc* a, int32_t number, void* stream) noexcept {
  Lock lock(a->mutex);
  if (!a->pools[number]) a->pools[number] = new_pool(a, number);
  if (a->pools[number]) a->streams[number] = stream;
  return a->pools[number];
}

// ---- bins ----

static int bin_of(size_t bytes) {
  const uint64_t units = bytes / kUnit;
  if (units < 8) return int(units);
  const int log = 63 - leading_zeros(units);
  return (log - 2) * 8 + int((units >> (log - 3)) & 7);
}

static DevicePool::Bins& bins_of(const DeviceBlock& b) { return b.pool->bins[b.small]; }

static void bin_insert(DeviceBlock* b) {
  DevicePool::Bins& bins = bins_of(*b);
  const int k = bin_of(b->bytes);
  b->bin_prev = nullptr;
  b->bin_next = bins.bin[k];
  if (b->bin_next) b->bin_next->bin_prev = b;
  bins.bin[k] = b;
  bins.any[k / 64] |= uint64_t(1) << (k % 64);
  b->free = true;
}

static void bin_remove(DeviceBlock* b) {
  DevicePool::Bins& bins = bins_of(*b);
  const int k = bin_of(b->bytes);
  if (b->bin_next) b->bin_next->bin_prev = b->bin_prev;
  if (b->bin_prev) {
    b->bin_prev->bin_next = b->bin_next;
  } else {
    bins.bin[k] = b->bin_next;
    if (!b->bin_next) bins.any[k / 64] &= ~(uint64_t(1) << (k % 64));
  }
  b->free = false;
}

// Among the first kFitTries blocks of a bin, finds the smallest one of at least `bytes` and at most
// `at_most` bytes.
static DeviceBlock* fit_in(DeviceBlock* b, size_t bytes, size_t at_most) {
  DeviceBlock* best = nullptr;
  for (int i = 0; b && i < kFitTries; i++, b = b->bin_next) {
    if (b->bytes < bytes || b->bytes > at_most) continue;
    if (!best || b->bytes < best->bytes) best = b;
  }
  return best;
}

static DeviceBlock* find_free(const DevicePool::Bins& bins, size_t bytes, size_t at_most) {
  int k = bin_of(bytes);
  if (DeviceBlock* b = fit_in(bins.bin[k], bytes, at_most)) return b;
  for (k++; k < kBins;) {
    const uint64_t rest = bins.any[k / 64] >> (k % 64);
    if (!rest) {
      k = (k / 64 + 1) * 64;
      continue;
    }
    k += trailing_zeros(rest);
    if (DeviceBlock* b = fit_in(bins.bin[k], bytes, at_most)) return b;
    if (at_most == bytes) return nullptr;
    k++;
  }
  return nullptr;
}

// ---- segments ----

static bool is_whole_segment(const DeviceBlock& b) { return !b.prev && !b.next; }

static void free_segment(DeviceAlloc* a, DeviceBlock* b) noexcept {
  bin_remove(b);
  if (!a->lost) a->backend->raw_free(a->device, b->p);
  a->stats.reserved -= int64_t(b->bytes);
  a->blocks.put(b);
}

static void trim_pool(DeviceAlloc* a, DevicePool* p) noexcept {
  for (DevicePool::Bins& bins : p->bins)
    for (DeviceBlock* first : bins.bin)
      for (DeviceBlock *b = first, *next; b; b = next) {
        next = b->bin_next;
        if (is_whole_segment(*b)) free_segment(a, b);
      }
}

static void trim_locked(DeviceAlloc* a) noexcept {
  for (DevicePool* p : a->pools)
    if (p) trim_pool(a, p);
}

// Takes a segment from the device, as one free block.
static DeviceBlock* new_segment(DevicePool* pool, size_t bytes, bool small) noexcept {
  DeviceAlloc* a = pool->alloc;
  if (a->lost || (a->stats.limit && a->stats.reserved + int64_t(bytes) > a->stats.limit))
    return nullptr;
  DeviceBlock* b = a->blocks.get();
  if (!b) return nullptr;
  void* p = nullptr;
  if (a->backend->raw_alloc(a->device, bytes, &p) != TT_OK) {
    a->blocks.put(b);
    return nullptr;
  }
  memset(static_cast<void*>(b), 0, sizeof *b);
  b->p = static_cast<char*>(p);
  b->bytes = bytes;
  b->pool = pool;
  b->small = small;
  a->stats.reserved += int64_t(bytes);
  a->stats.peak_reserved = max(a->stats.peak_reserved, a->stats.reserved);
  bin_insert(b);
  return b;
}

// Cuts the tail off a block that is not in a bin, unless it is too small to be of use.
static void cut(DeviceAlloc* a, DeviceBlock* b, size_t bytes) noexcept {
  const size_t rest = b->bytes - bytes;
  if (a->backend->block_rule == kWholeBlocks || rest < (b->small ? kUnit : kSmall)) return;
  DeviceBlock* tail = a->blocks.get();
  if (!tail) return;
  memset(static_cast<void*>(tail), 0, sizeof *tail);
  tail->p = b->p + bytes;
  tail->bytes = rest;
  tail->prev = b;
  tail->next = b->next;
  tail->pool = b->pool;
  tail->small = b->small;
  if (b->next) b->next->prev = tail;
  b->next = tail;
  b->bytes = bytes;
  bin_insert(tail);
}

// Appends the free block `tail` to its neighbour b.
static void merge(DeviceAlloc* a, DeviceBlock* b, DeviceBlock* tail) noexcept {
  b->bytes += tail->bytes;
  b->next = tail->next;
  if (tail->next) tail->next->prev = b;
  a->blocks.put(tail);
}

// Frees a block of the pool that no stream uses any longer.
static void make_free(DeviceAlloc* a, DeviceBlock* b) noexcept {
  if (DeviceBlock* next = b->next; next && next->free) {
    bin_remove(next);
    merge(a, b, next);
  }
  if (DeviceBlock* prev = b->prev; prev && prev->free) {
    bin_remove(prev);
    merge(a, prev, b);
    b = prev;
  }
  bin_insert(b);
}

// ---- blocks that other streams work on ----

static void give_event(DeviceAlloc* a, void* event) noexcept {
  if (a->lost) return;
  if (a->spare_event) a->backend->event_free(a->device, event);
  else a->spare_event = event;
}

// Frees the blocks whose streams have passed their events.
static void reap(DeviceAlloc* a) noexcept {
  for (WaitingBlock** at = &a->waiting; WaitingBlock* w = *at;) {
    if (!a->lost && a->backend->event_done(a->device, w->event) != 1) {
      at = &w->next;
      continue;
    }
    *at = w->next;
    give_event(a, w->event);
    if (--w->block->n_events == 0) make_free(a, w->block);
    a->waits.put(w);
  }
}

// Has the block wait for what the stream has to do so far. Returns false if that is not possible.
static bool wait_for(DeviceAlloc* a, DeviceBlock* b, void* stream) noexcept {
  WaitingBlock* w = a->waits.get();
  if (!w) return false;
  void* event = a->spare_event;
  a->spare_event = nullptr;
  if (!event && a->backend->event_new(a->device, &event) != TT_OK) event = nullptr;
  if (!event || a->backend->event_record(a->device, event, stream) != TT_OK) {
    if (event) give_event(a, event);
    a->waits.put(w);
    return false;
  }
  *w = {a->waiting, b, event};
  a->waiting = w;
  b->n_events++;
  return true;
}

static void sync_streams(DeviceAlloc* a) noexcept {
  // A failure of the work is kept by the backend until the application asks.
  for (int k = 0; k < kMaxStreams; k++)
    if (a->pools[k] && a->backend->stream_wait) a->backend->stream_sync(a->device, a->streams[k]);
}

// ---- get and put ----

// What get asks of the device when there is no block: more than needed first, then no more.
static DeviceBlock* enlarge(DevicePool* pool, size_t bytes, bool small) noexcept {
  size_t wanted = size_t(round_up(int64_t(bytes), int64_t(kSlab)));
  if (small) wanted = kSlab;
  else if (bytes < kSegment / 2) wanted = kSegment;
  if (pool->alloc->backend->block_rule == kWholeBlocks) wanted = bytes;
  if (DeviceBlock* b = new_segment(pool, wanted, small)) return b;
  return wanted == bytes ? nullptr : new_segment(pool, bytes, small);
}

static TT_COLD DeviceBlock* get_new(DevicePool* pool, size_t bytes, size_t at_most,
                                    bool small) noexcept {
  DeviceAlloc* a = pool->alloc;
  if (a->waiting) {
    reap(a);
    if (DeviceBlock* b = find_free(pool->bins[small], bytes, at_most)) return b;
  }
  if (DeviceBlock* b = enlarge(pool, bytes, small)) return b;
  if (a->lost) return nullptr;
  a->stats.retries++;
  trim_locked(a);
  if (DeviceBlock* b = enlarge(pool, bytes, small)) return b;
  if (!a->waiting) return nullptr;
  sync_streams(a);
  reap(a);
  if (DeviceBlock* b = find_free(pool->bins[small], bytes, at_most)) return b;
  trim_locked(a);
  return enlarge(pool, bytes, small);
}

DeviceBlock* device_alloc_get(DevicePool* pool, size_t wanted) noexcept {
  DeviceAlloc* a = pool->alloc;
  Lock lock(a->mutex);
  DeviceBlock* b = nullptr;
  if (TT_LIKELY(wanted <= kHuge)) {
    const size_t bytes = max((wanted + kUnit - 1) & ~(kUnit - 1), kUnit);
    const bool small = bytes <= kSmall;
    const size_t at_most = a->backend->block_rule == kWholeBlocks ? bytes : SIZE_MAX;
    b = find_free(pool->bins[small], bytes, at_most);
    if (!b) b = get_new(pool, bytes, at_most, small);
    if (TT_LIKELY(b != nullptr)) {
      bin_remove(b);
      cut(a, b, bytes);
    }
  }
  if (TT_UNLIKELY(!b)) {
    a->stats.failures++;
    return nullptr;
  }
  a->live++;
  a->stats.allocations++;
  a->stats.in_use += int64_t(b->bytes);
  a->stats.peak_in_use = max(a->stats.peak_in_use, a->stats.in_use);
  return b;
}

static void end(DeviceAlloc* a) noexcept {
  if (a->waiting && !a->lost) sync_streams(a);
  while (WaitingBlock* w = a->waiting) {
    a->waiting = w->next;
    if (!a->lost) a->backend->event_free(a->device, w->event);
    if (--w->block->n_events == 0) make_free(a, w->block);
  }
  if (a->spare_event && !a->lost) a->backend->event_free(a->device, a->spare_event);
  trim_locked(a);
  for (DevicePool* p : a->pools)
    if (p) os_free(p);
  a->blocks.end();
  a->waits.end();
  void (*ended)(void*) = a->ended;
  void* user = a->user;
  os_free(a);
  if (ended) ended(user);
}

void device_alloc_put(DeviceBlock* b, uint32_t users) noexcept {
  DeviceAlloc* a = b->pool->alloc;
  a->mutex.lock();
  a->stats.in_use -= int64_t(b->bytes);
  uint32_t others = users & ~(uint32_t(1) << b->pool->number);
  if (TT_UNLIKELY(others != 0) && !a->lost) {
    for (; others; others &= others - 1) {
      void* stream = a->streams[trailing_zeros(others)];
      if (!wait_for(a, b, stream)) a->backend->stream_sync(a->device, stream);
    }
  }
  if (TT_LIKELY(!b->n_events)) make_free(a, b);
  const bool last = --a->live == 0 && a->released;
  a->mutex.unlock();
  if (TT_UNLIKELY(last)) end(a);
}

// ---- the rest ----

void device_alloc_release(DeviceAlloc* a) noexcept {
  if (!a) return;
  a->mutex.lock();
  a->released = true;
  const bool last = a->live == 0;
  a->mutex.unlock();
  if (last) end(a);
}

void device_alloc_hold(DeviceAlloc* a) noexcept {
  Lock lock(a->mutex);
  a->live++;
}
void device_alloc_unhold(DeviceAlloc* a) noexcept {
  a->mutex.lock();
  const bool last = --a->live == 0 && a->released;
  a->mutex.unlock();
  if (last) end(a);
}

void device_alloc_trim(DeviceAlloc* a) noexcept {
  Lock lock(a->mutex);
  reap(a);
  trim_locked(a);
}
void device_alloc_limit(DeviceAlloc* a, int64_t bytes) noexcept {
  Lock lock(a->mutex);
  a->stats.limit = bytes;
}
void device_alloc_lose(DeviceAlloc* a) noexcept {
  Lock lock(a->mutex);
  a->lost = true;
}
void device_alloc_stats(DeviceAlloc* a, DeviceAllocStats* out) noexcept {
  Lock lock(a->mutex);
  *out = a->stats;
}
void device_alloc_reset_peak(DeviceAlloc* a) noexcept {
  Lock lock(a->mutex);
  a->stats.peak_in_use = a->stats.in_use;
  a->stats.peak_reserved = a->stats.reserved;
}

}  // namespace TT_NS
