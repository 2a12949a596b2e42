#include "nn/compile/compiled.h"

#include "base/finalizer.h"
#include "nn/compile/record.h"
#include "ops/impl.h"

namespace TT_NS {

void CompiledLink::destroy(CompiledLink* l) noexcept { mem_free(l, sizeof *l); }

void free_record(CompiledRecord* r) noexcept {
  r->~CompiledRecord();
  mem_free(r, sizeof *r);
}

int64_t num_recorded(const Compiled& f) {
  int64_t n = 0;
  for (const CompiledRecord* r : f.records) n += !r->derived;
  return n;
}

TensorList run_function(Compiled& f, TensorSpan inputs) {
  atomic_fetch_add(&f.n_runs, 1, kRelaxed);
  return call_function(f.fn, f.user, inputs);
}

namespace {

constexpr KeySet kPassingModes = bit(kKeyAutocast) | bit(kKeyProfile);

TensorList run_unrecorded(Compiled& f, TensorSpan inputs, const char* reason) {
  f.reason = Text(reason);
  return run_function(f, inputs);
}

// Why the function itself must run in the modes of the ctx, or NULL.
const char* reason_of_modes() {
  const Ctx& c = ctx();
  if (c.graph) return "a capture is on";
  if (c.vmap) return "vmap is on";
  if ((c.include & ~c.exclude & kModeKeys & ~kPassingModes) || (c.watched & kWatchWork))
    return "a mode that sees every operator is on";
  if (c.anomaly) return "anomaly detection is on";
  if (c.saved_hooks) return "hooks on saved tensors are on";
  return nullptr;
}

// Locks the records, unless a call is using them.
class RecordsLock {
 public:
  explicit RecordsLock(Compiled& f) : held(!atomic_exchange(&f.busy, 1, kAcquire)), f_(f) {}
  ~RecordsLock() {
    if (held) atomic_store(&f_.busy, 0, kRelease);
  }
  RecordsLock(const RecordsLock&) = delete;

  const bool held;

 private:
  Compiled& f_;
};

CompiledRecord* find_record(const Compiled& f, TensorSpan inputs) {
  for (CompiledRecord* r : f.records)
    if (fits(*r, inputs)) return r;
  return nullptr;
}

// Why the function itself must run although there is a record, or NULL.
const char* reason_against(CompiledRecord& r, TensorSpan inputs) {
  if (!r.plan) return r.reason.c_str();
  for (const Tensor* t : inputs)
    if (r.outside.find(t->storage) >= 0) return "an input shares memory with state of the function";
  if (r.writes_inputs && storages_overlap(inputs))
    return "inputs of different storages overlap, and the function writes one";
  return nullptr;
}

bool is_current(const Compiled& f, const CompiledRecord& r) {
  for (const Ref<Object>& o : r.objects)
    if (!f.is_current(*o)) return false;
  return true;
}
// Drops the records that no call can replay any longer.
void drop_outdated(Compiled& f) {
  for (int64_t i = f.records.size() - 1; i >= 0; i--) {
    if (TT_LIKELY(is_current(f, *f.records[i]))) continue;
    free_record(f.records[i]);
    f.records.erase(i);
  }
}

}  // namespace

Ref<Compiled> new_compiled(ApplicationFn fn, void* user, void (*drop)(void*), int64_t limit,
                           SameObject dynamic, IsCurrent is_current) {
  auto* link = static_cast<CompiledLink*>(mem_alloc(sizeof(CompiledLink)));
  *link = {1, nullptr};
  const Ref<CompiledLink> owned = Ref<CompiledLink>::adopt(link);
  auto* f = new (mem_alloc(sizeof(Compiled))) Compiled{};
  f->tag = kTagCompiled;
  f->refs = 1;
  f->link = owned;
  link->f = f;
  f->fn = fn;
  f->user = user;
  f->drop = drop;
  f->limit = limit;
  f->dynamic = dynamic;
  f->is_current = is_current;
  return Ref<Compiled>::adopt(f);
}

void Compiled::destroy(Compiled* f) noexcept {
  static_assert(sizeof(Compiled) >= kDropBytes);
  f->tag = 0;
  {
    const Lock lock(shared_lock);
    f->link->f = nullptr;
  }
  for (CompiledRecord* r : f->records) free_record(r);
  void (*const drop)(void*) = f->drop;
  void* const user = f->user;
  f->~Compiled();
  drop_and_free(f, sizeof *f, drop, user);
}

TensorList call_compiled(Compiled& f, TensorSpan inputs, int64_t cap, int64_t* n_outs) {
  const RecordsLock lock(f);
  if (!lock.held) return run_function(f, inputs);
  if (const char* reason = reason_of_modes()) return run_unrecorded(f, inputs, reason);
  drop_outdated(f);
  CompiledRecord* found = find_record(f, inputs);
  if (!found) {
    if (const char* reason = reason_against_memories(inputs))
      return run_unrecorded(f, inputs, reason);
    found = derive_record(f, inputs);
  }
  if (found) {
    if (const char* reason = reason_against(*found, inputs))
      return run_unrecorded(f, inputs, reason);
    if (TT_UNLIKELY(holds_gradient(*found))) renew_gradients(*found);
    return replay(f, *found, inputs, cap, n_outs);
  }
  if (num_recorded(f) >= f.limit)
    return run_unrecorded(f, inputs, "there are as many records as the limit allows");
  return record(f, inputs);
}

int64_t num_plans(const Compiled& f) {
  int64_t n = 0;
  for (const CompiledRecord* r : f.records) n += bool(r->plan);
  return n;
}

void drop_records(Compiled& f) {
  const RecordsLock lock(f);
  if (!lock.held) fail_arg(TT_INVALID_ARG, "f", "f is running: its records are in use");
  for (CompiledRecord* r : f.records) free_record(r);
  f.records = {};
  f.reason = Text();
}

}  // namespace TT_NS
