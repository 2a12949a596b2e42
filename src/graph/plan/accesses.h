// What a launch reads and writes, if its kernel works on rows: images, rows of a matrix, elements.
#pragma once

#include "graph/ir.h"

namespace TT_NS {

struct Access {
  uint64_t at = 0;    // address, or a name of memory
  int64_t bytes = 0;  // from there on
  // 0: each row may touch all of it. Otherwise row r of n touches [at + r * span / n,
  // at + (r + 1) * span / n) only.
  int64_t span = 0;
  bool write = false;
};

inline uint64_t address(const void* p) { return uint64_t(reinterpret_cast<uintptr_t>(p)); }

struct LaunchRows {
  int64_t rows = 0;         // into which the units divide evenly
  int64_t product_row = 0;  // bytes of a row of a product, which runs its units itself; else 0
  SmallVec<Access, 8> list;
};

// Whether the launch of all units works on rows.
bool read_accesses(const Kernel& k, const void* plan, int64_t units, LaunchRows* out);

// Whether what two launches do to memory is in order if they take turns row by row: what one
// touches in a row, the other touches in this row only, or not at all.
inline bool keeps_order(const Access& a, const Access& b) {
  if (a.at + uint64_t(a.bytes) <= b.at || b.at + uint64_t(b.bytes) <= a.at) return true;
  return a.span && a.at == b.at && a.span == b.span;
}

}  // namespace TT_NS
