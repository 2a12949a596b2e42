// HookList: callbacks of the application at a tensor, node or module, in order of registration.
#pragma once

#include "base/os.h"
#include "base/ref.h"
#include "dispatch/op_info.h"

namespace TT_NS {

// Guards the shared mutable state of tensors and nodes: hooks, gradients, edges. Held for a few
// instructions, never during an allocation, a free, a kernel or a callback.
extern Mutex shared_lock;

struct Hook {
  RefCount refs;  // one of the list and one of each running call
  int32_t kind;   // defined by the owner
  uint32_t nr;    // (of a tensor, on its node) index of the output
  int64_t id;     // unique in the process
  AnyFn fn;
  void* user;
  void (*drop)(void*);
  Hook* next;
  static void destroy(Hook*) noexcept;
};

// Zeroed memory is an empty list. Any thread may add, remove and run hooks; a hook may remove
// itself.
class HookList {
 public:
  HookList() = default;
  HookList(const HookList&) = delete;
  ~HookList() { clear(); }
  bool empty() const { return !atomic_load(&first_, kRelaxed); }
  // Appends a hook and returns its id; `drop` runs exactly once, also on failure.
  int64_t add(int32_t kind, uint32_t nr, AnyFn fn, void* user, void (*drop)(void*));
  bool remove(int64_t id) noexcept;
  bool has(int32_t kind) const { return bool(next(kind, 0, 0)); }
  // Returns the first hook of a kind with an id above `after`, or an empty reference.
  Ref<Hook> next(int32_t kind, uint32_t nr, int64_t after) const;
  // A number that differs once hooks are added or removed; 0: there are none. `locked` proves that
  // shared_lock is held.
  uint64_t mark(const Lock& locked) const;
  void clear() noexcept;  // no other thread may use the list

 private:
  Hook* first_ = nullptr;
};

// Calls f(hook) for each hook of a kind; hooks may be added and removed meanwhile.
template <class F> void for_each_hook(const HookList& list, int32_t kind, uint32_t nr, F f) {
  if (list.empty()) return;
  for (Ref<Hook> h = list.next(kind, nr, 0); h; h = list.next(kind, nr, h->id)) f(*h);
}

}  // namespace TT_NS
