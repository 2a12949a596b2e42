// Lists the blocks of an arena, for reports of live objects. No thread may allocate or free in the
// arena meanwhile.
#pragma once

#include "base/memory/heap.h"

namespace TT_NS {

// The small blocks of an arena, free ones included; with TT_HEAP_DIRECT, all live blocks. The first
// word of a free block is NULL or the address of another block, a multiple of 64.
class BlockMap {
 public:
  // only: the blocks of one heap; NULL: of all. Fails with OOM.
  explicit BlockMap(Arena* a, const Heap* only = nullptr);
  ~BlockMap();
  BlockMap(const BlockMap&) = delete;

  // Calls f(const void* block, size_t bytes) until it returns false; bytes is the size of the
  // block's size class, or an upper bound. Returns false if f did.
  template <class F> bool each(F f) const {
    for (int64_t i = 0; i < n_; i++) {
      const Run r = run(at_[i]);
      for (int64_t k = 0; k < r.n; k++)
        if (!f(static_cast<const void*>(r.first + k * int64_t(r.bytes)), r.bytes)) return false;
    }
    return true;
  }
  // Returns whether a block of at least `bytes` bytes begins at p, which may be any value.
  bool has(const void* p, size_t bytes) const;

 private:
  struct Run {  // adjacent blocks
    const char* first;
    int64_t n;
    size_t bytes;
  };
  static Run run(uintptr_t at);
  void collect(Arena* a, const Heap* only);

  uintptr_t* at_;  // sorted addresses of slabs, or of direct blocks
  int64_t n_, cap_;
};

}  // namespace TT_NS
