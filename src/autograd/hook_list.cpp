#include "autograd/hook_list.h"

#include "base/finalizer.h"
#include "base/error.h"
#include "core/ctx.h"

namespace TT_NS {

constinit Mutex shared_lock;

static_assert(sizeof(Hook) >= kDropBytes);

void Hook::destroy(Hook* h) noexcept { drop_and_free(h, sizeof *h, h->drop, h->user); }

int64_t HookList::add(int32_t kind, uint32_t nr, AnyFn fn, void* user, void (*drop)(void*)) {
  auto* h = static_cast<Hook*>(heap_alloc(tls.heap, sizeof(Hook)));
  if (!h) {
    run_drop(drop, user);
    fail_oom(sizeof(Hook));
  }
  static constinit int64_t last_id = 0;
  Lock lock(shared_lock);
  *h = Hook{1, kind, nr, ++last_id, fn, user, drop, nullptr};
  Hook** at = &first_;
  while (*at) at = &(*at)->next;
  atomic_store(at, h, kRelaxed);
  return h->id;
}

bool HookList::remove(int64_t id) noexcept {
  Ref<Hook> gone;
  {
    Lock lock(shared_lock);
    for (Hook** at = &first_; *at; at = &(*at)->next) {
      if ((*at)->id != id) continue;
      gone = Ref<Hook>::adopt(*at);
      atomic_store(at, gone->next, kRelaxed);
      break;
    }
  }
  return bool(gone);
}

Ref<Hook> HookList::next(int32_t kind, uint32_t nr, int64_t after) const {
  Lock lock(shared_lock);
  for (const Hook* h = first_; h; h = h->next)
    if (h->kind == kind && h->nr == nr && h->id > after) return Ref<Hook>::share(h);
  return {};
}

uint64_t HookList::mark(const Lock&) const {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  uint64_t mark = 0;
  for (const Hook* h = first_; h; h = h->next) mark = (mark + uint64_t(h->id)) * kOdd;
  return mark;
}

void HookList::clear() noexcept {
  while (Hook* h = first_) {
    first_ = h->next;
    Ref<Hook>::adopt(h).reset();
  }
}

}  // namespace TT_NS
