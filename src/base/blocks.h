// The blocks of an arena, for listings of what is alive: nobody may allocate in it or free its
// blocks meanwhile, since an allocation that finds memory short trims slabs.
#pragma once

#include "base/heap.h"

namespace TT_NS {

// Small blocks; where every block is direct (TT_HEAP_DIRECT), all of them. Free ones too, but for
// direct ones: the first word of a free block is NULL or the address of another, which is a
// multiple of 64.
class BlockMap {
 public:
  explicit BlockMap(Arena* a);  // fails with OOM
  ~BlockMap();
  BlockMap(const BlockMap&) = delete;

  // f(const void* block, size_t bytes) until it returns false, bytes being those of the block's
  // size class or more than were asked for. False if f has returned false.
  template <class F> bool each(F f) const {
    for (int64_t i = 0; i < n_; i++) {
      const Run r = run(at_[i]);
      for (int64_t k = 0; k < r.n; k++)
        if (!f(static_cast<const void*>(r.first + k * int64_t(r.bytes)), r.bytes)) return false;
    }
    return true;
  }
  // Whether a block begins at p, with at least so many bytes. p may be any value.
  bool has(const void* p, size_t bytes) const;

 private:
  struct Run {  // blocks side by side
    const char* first;
    int64_t n;
    size_t bytes;
  };
  static Run run(uintptr_t at);
  void collect(Arena* a);

  uintptr_t* at_;  // sorted: slabs' addresses, or direct blocks'
  int64_t n_, cap_;
};

}  // namespace TT_NS
