// Building blocks of the generated structs of constructor arguments (gen/classes.h).
#pragma once

#include "dispatch/value.h"

namespace TT_NS {

struct Optimizer;
struct Scheduler;

// A number of each parameter group, by PyTorch's name.
struct ClassValue {
  const char* name;
  double standard;
  bool flag;  // 0 or 1
};

constexpr bool same_text(const char* a, const char* b) {
  for (; *a && *a == *b; a++) b++;
  return *a == *b;
}
// Returns the position of a value in a class's table.
template <size_t N> consteval int at(const ClassValue (&table)[N], const char* name) {
  for (size_t i = 0; i < N; i++)
    if (same_text(table[i].name, name)) return int(i);
  throw "no such value";
}

}  // namespace TT_NS
