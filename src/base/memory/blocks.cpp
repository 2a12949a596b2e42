#include "base/memory/blocks.h"

#include "base/memory/arena.h"

#include <algorithm>

namespace TT_NS {

static int64_t count_runs(Arena* a) {
  Lock l(a->lock);
  if (TT_HEAP_DIRECT) return a->large.count;
  int64_t n = 0;
  for (const Heap* h = a->heaps; h; h = h->next_of_arena) n += h->num_slabs;
  return n;
}

BlockMap::BlockMap(Arena* a, const Heap* only)
    : n_(0), cap_(count_runs(a) + 8) {  // the list itself may need a slab
  at_ = static_cast<uintptr_t*>(mem_alloc(size_t(cap_) * sizeof *at_));
  collect(a, only);
  std::sort(at_, at_ + n_);
}

BlockMap::~BlockMap() { mem_free(at_, size_t(cap_) * sizeof *at_); }

void BlockMap::collect(Arena* a, const Heap* only) {
  Lock l(a->lock);
  if (TT_HEAP_DIRECT) {
    for (const LargeBlock* b = a->large.oldest; b && n_ < cap_; b = b->age_next)
      at_[n_++] = reinterpret_cast<uintptr_t>(b);
    return;
  }
  for (const Heap* h = a->heaps; h; h = h->next_of_arena) {
    if (only && h != only) continue;
    for (const Slab* s = h->slabs; s && n_ < cap_; s = s->next)
      at_[n_++] = reinterpret_cast<uintptr_t>(s);
  }
}

BlockMap::Run BlockMap::run(uintptr_t at) {
  if (TT_HEAP_DIRECT) {
    const auto* b = reinterpret_cast<const LargeBlock*>(at);
    return {reinterpret_cast<const char*>(b + 1), 1, size_t(b->total) - sizeof *b};
  }
  const auto* s = reinterpret_cast<const Slab*>(at);
  return {reinterpret_cast<const char*>(s + 1), s->carved, s->block_bytes};
}

bool BlockMap::has(const void* p, size_t bytes) const {
  const auto address = reinterpret_cast<uintptr_t>(p);
  const uintptr_t key =
      TT_HEAP_DIRECT ? address - sizeof(LargeBlock) : reinterpret_cast<uintptr_t>(slab_of(p));
  if (!std::binary_search(at_, at_ + n_, key)) return false;
  const Run r = run(key);
  const auto first = reinterpret_cast<uintptr_t>(r.first);
  if (address < first || bytes > r.bytes) return false;
  return (address - first) % r.bytes == 0 && (address - first) / r.bytes < uintptr_t(r.n);
}

}  // namespace TT_NS
