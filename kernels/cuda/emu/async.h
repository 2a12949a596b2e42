// Copies to shared memory that run on their own, and fragments of matrices from there, for g++. A
// copy is done when its thread waits for it, and not before: until then its place has nans.
#pragma once

#include <math.h>

#include "kernels/cuda/emu/emu.h"

namespace TT_NS::emu {

struct AsyncCopy {
  void* to;
  const void* from;
  bool present;
  int bytes;
  int group;
};
void begin_copy(void* to, const void* from, bool present, int bytes) noexcept;
void end_group() noexcept;
// The thread's next copy of the groups that are complete when at most `pending` are not.
bool next_copy(int pending, AsyncCopy* copy) noexcept;
// The thread has written dynamic shared memory that products may read (emu/wgmma.h).
void mark_written(const void* p, size_t bytes) noexcept;

// Stores and loads that ThreadSanitizer sees, unlike those of an inlined memcpy.
using Word [[gnu::may_alias]] = uint64_t;
using HalfWord [[gnu::may_alias]] = uint32_t;
inline void store_pack(void* to, uint64_t low, uint64_t high) {
  static_cast<Word*>(to)[0] = low;
  static_cast<Word*>(to)[1] = high;
}

// The 16 bytes that each lane points at: words 0 and 1, words 2 and 3.
struct MatrixRows {
  uint64_t low[32], high[32];

  MatrixRows(const void* row, Where where) {
    if (uintptr_t(row) % 16) fault("ldmatrix reads rows of 16 bytes");
    const Word* const own = static_cast<const Word*>(row);
    const uint32_t all = 0xffffffffu;
    const uint32_t present = exchange(all, own[0], "ldmatrix", where, low);
    if ((present & exchange(all, own[1], "ldmatrix", where, high)) != all)
      fault("ldmatrix needs all lanes of the warp");
  }
  uint32_t half(int row, int column) const {
    const uint64_t words = column < 4 ? low[row] : high[row];
    return uint32_t(words >> (16 * (column % 4)) & 0xffff);
  }
};

}  // namespace TT_NS::emu

namespace TT_NS::device {

inline void copy_async(void* to, const void* from, bool present) {
  if ((uintptr_t(to) | uintptr_t(from)) % 16) emu::fault("cp.async copies 16 aligned bytes");
  emu::store_pack(to, ~uint64_t(0), ~uint64_t(0));
  emu::begin_copy(to, from, present, 16);
}
inline void copy_async_word(void* to, const void* from, bool present) {
  if ((uintptr_t(to) | uintptr_t(from)) % 4) emu::fault("cp.async copies 4 aligned bytes");
  *static_cast<emu::HalfWord*>(to) = ~uint32_t(0);
  emu::begin_copy(to, from, present, 4);
}
inline void commit_copies() { emu::end_group(); }
template <int kPending> void wait_for_copies() {
  emu::AsyncCopy copy;
  while (emu::next_copy(kPending, &copy)) {
    if (copy.bytes == 4) {
      const auto* const word = static_cast<const emu::HalfWord*>(copy.from);
      *static_cast<emu::HalfWord*>(copy.to) = copy.present ? *word : 0;
      continue;
    }
    const emu::Word* const from = static_cast<const emu::Word*>(copy.from);
    if (copy.present) emu::store_pack(copy.to, from[0], from[1]);
    else emu::store_pack(copy.to, 0, 0);
    emu::mark_written(copy.to, 16);
  }
}

inline void ldmatrix(uint32_t (&d)[4], const void* base, int offset,
                     const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  const emu::MatrixRows rows(static_cast<const char*>(base) + offset, {file, line});
  const int row = emu::lane() / 4;
  const int column = emu::lane() % 4 * 2;
  for (int m = 0; m < 4; m++)
    d[m] = rows.half(8 * m + row, column) | rows.half(8 * m + row, column + 1) << 16;
}
inline void ldmatrix_transposed(uint32_t (&d)[4], const void* base, int offset,
                                const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  const emu::MatrixRows rows(static_cast<const char*>(base) + offset, {file, line});
  const int column = emu::lane() / 4;
  const int row = emu::lane() % 4 * 2;
  for (int m = 0; m < 4; m++)
    d[m] = rows.half(8 * m + row, column) | rows.half(8 * m + row + 1, column) << 16;
}

inline float fast_exp2(float x) { return ::exp2f(x); }

// Blocks run one after the other: one that has to wait would do so for ever.
inline int32_t load_acquire(const int32_t* p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
inline void store_release(int32_t* p, int32_t x) { __atomic_store_n(p, x, __ATOMIC_RELEASE); }
[[noreturn]] inline void pause() { emu::fault("a block waits for one that has not run"); }
inline uint4 load_shared(const uint4* p) { return *p; }

}  // namespace TT_NS::device
