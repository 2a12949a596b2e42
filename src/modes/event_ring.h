// EventRing: the latest events of a profile, in chunks that are allocated when first needed.
// NameTable: copies of names and shapes, each stored once.
#pragma once

#include "base/memory/heap.h"
#include "base/small_vec.h"
#include "core/event.h"

namespace TT_NS {

struct Event {
  int64_t id;          // counted from 1 over all profiles of a ctx
  int64_t parent;      // id; 0: none
  int64_t begin, end;  // ticks; end 0: not ended yet
  const char* name;
  int64_t bytes;  // kMemory: of the block, negative if it was released; else held more at the end
  double flops;
  const int64_t* shapes;  // of n_shapes numbers
  int32_t n_shapes;
  EventKind kind;
};

class EventRing {
 public:
  ~EventRing() { close(); }
  // Empties the ring; fails with OOM.
  void open(int64_t capacity) {
    close();
    chunks_.resize(ceil_div(capacity, kChunk), nullptr);
    capacity_ = capacity;
    pushed_ = 0;
  }
  void close() noexcept {
    for (Event* chunk : chunks_)
      if (chunk) mem_free(chunk, kChunk * sizeof(Event));
    chunks_.clear();
    capacity_ = at_ = pushed_ = 0;
  }
  // Returns the place of the next event, which replaces the oldest of a full ring; NULL if there is
  // no memory for it. heap is the running call's, or NULL if place has to exist already.
  Event* push(Heap* heap) noexcept {
    Event* at = place(at_, heap);
    if (TT_UNLIKELY(!at)) return nullptr;
    pushed_++;
    at_ = at_ + 1 == capacity_ ? 0 : at_ + 1;
    return at;
  }
  // Allocates the places of the next n events; false if there is no memory for them.
  bool reserve(int64_t n, Heap* heap) noexcept {
    for (int64_t i = 0; i < n + kChunk; i += kChunk)
      if (!place((at_ + min(i, n)) % capacity_, heap)) return false;
    return true;
  }
  int64_t size() const { return min(pushed_, capacity_); }
  int64_t dropped() const { return pushed_ - size(); }
  // The i-th of those that the ring holds, the oldest first.
  const Event& operator[](int64_t i) const {
    const int64_t at = pushed_ <= capacity_ ? i : (at_ + i) % capacity_;
    return chunks_[at / kChunk][at % kChunk];
  }

 private:
  static constexpr int64_t kChunk = 4096;
  TT_INLINE Event* place(int64_t at, Heap* heap) noexcept {
    Event*& chunk = chunks_[at / kChunk];
    if (TT_UNLIKELY(!chunk) && heap)
      chunk = static_cast<Event*>(heap_alloc(heap, kChunk * sizeof(Event)));
    return chunk ? chunk + at % kChunk : nullptr;
  }
  SmallVec<Event*, 1> chunks_;
  int64_t capacity_ = 0, at_ = 0, pushed_ = 0;
};

// Stored texts stay at their addresses until the table is cleared.
class NameTable {
 public:
  ~NameTable() { clear(); }
  // Returns the stored copy of `bytes` bytes, followed by a zero; NULL if there is no memory. The
  // copy is aligned to 8 bytes.
  const void* find_or_add(const void* data, int64_t bytes, Heap* heap) noexcept;
  void clear() noexcept;

 private:
  struct Entry {
    Entry* next;
    uint64_t hash;
    int64_t bytes;
    // the copy follows
  };
  static constexpr int64_t kBuckets = 4096;
  Entry** buckets_ = nullptr;  // kBuckets lists
};

}  // namespace TT_NS
