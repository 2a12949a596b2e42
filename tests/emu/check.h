// What the tests of kernels share: a row is run on arrays, with its workspace, in several orders of
// threads. Failures are printed; g_failed is the result of main.
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <vector>

#include "kernels/cuda/device.h"
#include "kernels/cuda/rows.h"

#ifndef EMU_TSAN
#define EMU_TSAN 0
#endif

namespace TT_NS::test {

using Row = int32_t (*)(const void* plan, void* stream, void* workspace);
using Bytes = size_t (*)(const void* plan);

inline int g_failed;

inline void check(bool right, const char* what, int i) {
  if (right) return;
  g_failed = 1;
  printf("%s %d: FAILED\n", what, i);
}

// The workspace of a row, full of nans, aligned as a device's blocks are.
struct alignas(256) WorkspaceUnit {
  unsigned char bytes[256];
};
inline std::vector<WorkspaceUnit> workspace_of(Bytes bytes, const void* plan) {
  std::vector<WorkspaceUnit> units(bytes ? bytes(plan) / sizeof(WorkspaceUnit) + 1 : 1);
  memset(units.data(), 0xff, units.size() * sizeof(WorkspaceUnit));
  return units;
}

inline void run(const char* name, Row row, Bytes bytes, const void* plan) {
  std::vector<WorkspaceUnit> workspace = workspace_of(bytes, plan);
  if (row(plan, nullptr, workspace.data()) == TT_OK) return;
  g_failed = 1;
  printf("%s: %s\n", name, emu::last_fault());
}

// Calls compute() in each order; the bytes of out must not depend on it. ThreadSanitizer sees a
// race in any order.
template <class T, class F>
void in_orders(const char* name, std::vector<T>& out, const F& compute, bool once = EMU_TSAN) {
  std::vector<T> first;
  for (uint64_t order : {0, 1, 7}) {
    if (once && order) break;
    emu::set_order(order);
    for (T& v : out) memset(static_cast<void*>(&v), 0xff, sizeof v);
    compute();
    if (order == 0) first = out;
    if (out.size() && memcmp(first.data(), out.data(), out.size() * sizeof(T)) != 0) {
      g_failed = 1;
      printf("%s: other bits in order %d\n", name, int(order));
    }
  }
  emu::set_order(0);
}

// Numbers from a fixed sequence.
struct Numbers {
  uint32_t seed = 1;
  uint32_t next() {
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
  }
  int whole(int least, int most) { return least + int(next() % uint32_t(most - least + 1)); }
};

inline int finished() {
  printf(g_failed ? "FAILED\n" : "ok\n");
  return g_failed;
}

}  // namespace TT_NS::test
