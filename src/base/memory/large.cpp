// Blocks above kSmallMax: a cache over the application's allocator, in bins of equal size.
#include "base/memory/arena.h"
#include "base/arith.h"

namespace TT_NS {

namespace {

constexpr int kSlackBins = 3;  // a free block up to 3/16 of a doubling larger is accepted
// Bytes of free blocks that stay cached, or twice the most that was ever live, if that is more.
constexpr int64_t kKeepCached = int64_t(256) << 20;

// Bin b holds blocks of 2^(13 + b/16) · (16 + b%16) / 16 bytes.
constexpr int64_t bin_bytes(int b) { return (int64_t(16 + b % 16)) << (9 + b / 16); }

int bin_for(int64_t bytes) {
  if (bytes <= bin_bytes(0)) return 0;
  const int top = 63 - leading_zeros(uint64_t(bytes));  // bytes in [2^top, 2^(top+1))
  const int b = (top - 13) * 16 + int((bytes >> (top - 4)) & 15);
  return bin_bytes(b) < bytes ? b + 1 : b;
}

void unlink(LargeCache* c, LargeBlock* b) {
  (b->bin_prev ? b->bin_prev->bin_next : c->bins[b->bin]) = b->bin_next;
  if (b->bin_next) b->bin_next->bin_prev = b->bin_prev;
  (b->age_prev ? b->age_prev->age_next : c->oldest) = b->age_next;
  (b->age_next ? b->age_next->age_prev : c->youngest) = b->age_prev;
  c->cached -= b->total;
}

void link(LargeCache* c, LargeBlock* b) {
  LargeBlock** bin = &c->bins[b->bin];
  b->bin_prev = nullptr;
  b->bin_next = *bin;
  if (*bin) (*bin)->bin_prev = b;
  *bin = b;
  b->age_next = nullptr;
  b->age_prev = c->youngest;
  (c->youngest ? c->youngest->age_next : c->oldest) = b;
  c->youngest = b;
  c->cached += b->total;
}

// With TT_HEAP_DIRECT there are no free blocks: the age list holds the live ones, for BlockMap.
void link_live(LargeCache* c, LargeBlock* b) {
  b->age_next = nullptr;
  b->age_prev = c->youngest;
  (c->youngest ? c->youngest->age_next : c->oldest) = b;
  c->youngest = b;
}

void unlink_live(LargeCache* c, LargeBlock* b) {
  (b->age_prev ? b->age_prev->age_next : c->oldest) = b->age_next;
  (b->age_next ? b->age_next->age_prev : c->youngest) = b->age_prev;
}

LargeBlock* find(LargeCache* c, int bin) {
  const int end = bin + kSlackBins < kLargeBins ? bin + kSlackBins : kLargeBins - 1;
  for (; bin <= end; bin++) {
    if (LargeBlock* b = c->bins[bin]) {
      unlink(c, b);
      return b;
    }
  }
  return nullptr;
}

// Unlinks the oldest blocks above the cache's bound and returns them, linked by bin_next.
LargeBlock* take_surplus(LargeCache* c) {
  const int64_t keep = max(2 * c->peak_live, kKeepCached);
  LargeBlock* out = nullptr;
  while (c->cached > keep) {
    LargeBlock* b = c->oldest;
    unlink(c, b);
    b->bin_next = out;
    out = b;
  }
  return out;
}

void give_list(Arena* a, LargeBlock* b) {
  while (b) {
    LargeBlock* next = b->bin_next;
    arena_give(a, b, size_t(b->total), 64);
    b = next;
  }
}

void count_in(Arena* a, int64_t bytes) {
  LargeCache* c = &a->large;
  c->live += bytes;
  if (c->live > c->peak_live) c->peak_live = c->live;
  if (c->count++ == 0) atomic_fetch_add(&a->life, 1, kRelaxed);
}

// Returns true if no large block is left; the caller then drops their share of arena.life.
bool count_out(Arena* a, int64_t bytes) {
  a->large.live -= bytes;
  return --a->large.count == 0;
}

LargeBlock* make(Arena* a, int64_t need, int bin) {
  const int64_t total = TT_HEAP_DIRECT ? need : arena_whole_pages(a, bin_bytes(bin));
  LargeBlock* b = static_cast<LargeBlock*>(arena_take(a, size_t(total), 64));
  if (!b) return nullptr;
  b->arena = a;
  b->total = total;
  b->bin = bin;
  return b;
}

}  // namespace

void* large_alloc(Arena* a, size_t bytes) noexcept {
  if (bytes > size_t(kMaxBlock) - 65536) return nullptr;
  const int64_t need = int64_t(bytes + sizeof(LargeBlock));
  const int bin = bin_for(need);
  LargeBlock* b;
  {
    Lock l(a->lock);
    b = find(&a->large, bin);
    if (b) count_in(a, counted_bytes(bytes));
  }
  if (!b) {
    b = make(a, need, bin);
    if (!b) return nullptr;
    Lock l(a->lock);
    count_in(a, counted_bytes(bytes));
    if (TT_HEAP_DIRECT) link_live(&a->large, b);
  }
  return b + 1;
}

void large_free(void* p, size_t bytes) noexcept {
  LargeBlock* b = static_cast<LargeBlock*>(p) - 1;
  Arena* a = b->arena;
  LargeBlock* surplus;
  bool last = false;
  {
    Lock l(a->lock);
    if (TT_HEAP_DIRECT) unlink_live(&a->large, b);
    if (TT_HEAP_DIRECT || a->dying) {
      b->bin_next = nullptr;
      surplus = b;
    } else {
      link(&a->large, b);
      surplus = take_surplus(&a->large);
      if (!surplus) last = count_out(a, counted_bytes(bytes));
    }
  }
  if (surplus) {
    // Until it is counted out, the block keeps the arena alive.
    give_list(a, surplus);
    Lock l(a->lock);
    last = count_out(a, counted_bytes(bytes));
  }
  if (last) arena_drop_life(a);
}

void large_trim(Arena* a) noexcept {
  if (TT_HEAP_DIRECT) return;
  LargeBlock* all = nullptr;
  {
    Lock l(a->lock);
    LargeCache* c = &a->large;
    while (LargeBlock* b = c->oldest) {
      unlink(c, b);
      b->bin_next = all;
      all = b;
    }
  }
  give_list(a, all);
}

}  // namespace TT_NS
