// Compiled functions: records of the calls of a function of the application. A call whose inputs
// are like those of a record runs its plan in place of the function.
#pragma once

#include "autograd/transform.h"
#include "base/text/text.h"
#include "graph/resize.h"

namespace TT_NS {

struct CompiledRecord;

// Whether a replay may use an object as it is.
using IsCurrent = bool (*)(const Object&);

// What a node that may outlive a compiled function knows of it: NULL once it is gone.
struct CompiledLink {
  RefCount refs;
  struct Compiled* f;  // under shared_lock
  static void destroy(CompiledLink*) noexcept;
};

struct Compiled {
  uint32_t tag;
  RefCount refs;
  ApplicationFn fn;
  void* user;
  void (*drop)(void*);
  int64_t limit;                         // most records of calls of the function
  SameObject dynamic;                    // records of other sizes are derived from them; NULL: not
  IsCurrent is_current;                  // of what recorded operators are called with
  int32_t busy = 0;                      // atomic: a thread is in a call
  SmallVec<CompiledRecord*, 2> records;  // owned
  int64_t n_replays = 0, n_runs = 0;     // atomic
  Text reason;                           // why the last run was not recorded; empty: it was
  Ref<CompiledLink> link;
  static void destroy(Compiled*) noexcept;
};

Ref<Compiled> new_compiled(ApplicationFn fn, void* user, void (*drop)(void*), int64_t limit,
                           SameObject dynamic, IsCurrent is_current);
// Fails with BUFFER_TOO_SMALL, and sets *n_outs, if there are more than cap results.
TensorList call_compiled(Compiled& f, TensorSpan inputs, int64_t cap, int64_t* n_outs);
// The records that can be replayed.
int64_t num_plans(const Compiled& f);
// Fails if a call is running.
void drop_records(Compiled& f);

}  // namespace TT_NS
