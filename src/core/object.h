// Object: what an internal operator is called with besides tensors and numbers, such as the step
// counts of an optimizer. A higher layer derives from it; whoever keeps the call shares it.
#pragma once

#include "base/ref.h"

namespace TT_NS {

struct Object {
  RefCount refs;
  void (*destroy_fn)(Object*) noexcept;
  static void destroy(Object* o) noexcept { o->destroy_fn(o); }
};
// Computes on the host, from an object, numbers that a kernel reads; data is in memory of the CPU.
// Returns true if what the operator does until its next call on the host is to be left out.
using HostFn = bool (*)(Object& object, char* data);

}  // namespace TT_NS
