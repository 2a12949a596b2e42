// HookList: the callbacks of the host that stand at a tensor, a node or a module, in the order of
// registration.
#pragma once

#include "base/os.h"
#include "base/ref.h"
#include "dispatch/op_info.h"

namespace TT_NS {

// Guards what threads change in the tensors and nodes that they share: hooks, gradients, edges.
// Held for a few instructions, never while memory is allocated or freed, a kernel or the host runs.
extern Mutex shared_lock;

struct Hook {
  RefCount refs;  // the list's, and one of each call in progress
  int32_t kind;   // the owner's kinds
  uint32_t nr;    // (of a tensor, on its node) which output
  int64_t id;     // unique in the process
  AnyFn fn;
  void* user;
  void (*drop)(void*);
  Hook* next;
  static void destroy(Hook*) noexcept;
};

// Zeroed memory is an empty list. Any thread may add, remove and run hooks; a hook may take itself
// away.
class HookList {
 public:
  HookList() = default;
  HookList(const HookList&) = delete;
  ~HookList() { clear(); }
  bool empty() const { return !__atomic_load_n(&first_, __ATOMIC_RELAXED); }
  // Appends; `drop` runs exactly once, also when this fails. Returns the id.
  int64_t add(int32_t kind, uint32_t nr, AnyFn fn, void* user, void (*drop)(void*));
  bool remove(int64_t id) noexcept;
  bool has(int32_t kind) const { return bool(next(kind, 0, 0)); }
  // The first of a kind with an id above `after`; empty: none.
  Ref<Hook> next(int32_t kind, uint32_t nr, int64_t after) const;
  void clear() noexcept;  // nobody else uses the list any more

 private:
  Hook* first_ = nullptr;
};

// Calls f(hook) for each of a kind; hooks may be added and removed meanwhile.
template <class F> void for_each_hook(const HookList& list, int32_t kind, uint32_t nr, F f) {
  if (list.empty()) return;
  for (Ref<Hook> h = list.next(kind, nr, 0); h; h = list.next(kind, nr, h->id)) f(*h);
}

}  // namespace TT_NS
