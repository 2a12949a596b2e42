#include "graph/plan/device_plan.h"

#include "core/callback.h"

#include <string.h>

namespace TT_NS {

namespace {

void release_memory(void* user) { Ref<PlanMemory>::adopt(static_cast<PlanMemory*>(user)).reset(); }

void release_tensor(void* user) { TensorRef::adopt(static_cast<Tensor*>(user)).reset(); }

class Running {
 public:
  explicit Running(Plan& p) : p_(p) {
    if (atomic_exchange(&p.running, 1, kAcquire))
      fail(TT_INVALID_ARG, "the plan is running on another thread: a plan runs once at a time");
  }
  ~Running() { atomic_store(&p_.running, 0, kRelease); }
  Running(const Running&) = delete;

 private:
  Plan& p_;
};

void run_launch(Plan& p, const PlanStep& s) {
  if (s.draw >= 0) {
    Rng rng = p.draws[s.draw].begin;
    rng.offset += s.offset;
    memcpy(s.plan + s.kernel->rng, &rng, sizeof rng);
  }
  const bool is_seen = TT_UNLIKELY(ctx().watched != 0) && !polls_later();
  if (TT_UNLIKELY(s.units > s.grain || is_seen))
    return launch(*s.kernel, kCpuDevice, s.plan, s.units, s.grain);
  const int32_t status = s.fn(s.plan, 0, s.units);
  if (TT_UNLIKELY(status != 0)) {
    if (status == kKernelEnded) fail_again();
    fail(status, "kernel {} failed", s.kernel->name);
  }
}

void run_draw(Plan& p, const PlanStep& s) {
  if (p.draws_given) return;
  PlanDraw& d = p.draws[s.draw];
  Generator& g = d.generator ? *d.generator.get() : *ctx().gen;
  d.begin = g.take(d.counters);
}

int32_t load32(const char* p) {
  int32_t v;
  memcpy(&v, p, sizeof v);
  return v;
}

void run_check(const Plan& p, const PlanStep& s) {
  const PlanCheck& c = p.checks[s.check];
  if (c.check.is_flag) {
    if (TT_LIKELY(*c.found != 0)) return;
    tls.op = c.check.op;
    return c.check.report(c.check, 0);
  }
  if (c.check.is_info) {
    const char* end = c.found + c.check.values->numel * 4;
    const char* p = c.found;
    while (p < end && !load32(p)) p += 4;
    if (TT_LIKELY(p == end)) return;
    tls.op = c.check.op;
    return c.check.report(c.check, 0);
  }
  int64_t found;
  memcpy(&found, c.found, sizeof found);
  if (TT_LIKELY(found == kCheckPassed)) return;
  tls.op = c.check.op;
  c.check.report(c.check, found);
}

void run_step(Plan& p, const PlanStep& s) {
  switch (s.kind) {
    case StepKind::kLaunch: return run_launch(p, s);
    case StepKind::kDraw: return run_draw(p, s);
    case StepKind::kWrite: memcpy(s.to, s.plan, size_t(s.bytes)); return;
    case StepKind::kCheck: return run_check(p, s);
    case StepKind::kHost: return s.run_host(p, s);
    case StepKind::kCall:                // run_call
    case StepKind::kDeviceLaunch:        // PlanDevice::run
    case StepKind::kDeviceCopy: return;  // PlanDevice::run
  }
}

// Returns the step that comes next: the one behind step i, or the next call of its operator.
int64_t run_call(const Plan& p, int64_t i) {
  const PlanStep& s = p.steps[i++];
  if (TT_LIKELY(!s.call(*s.object, s.to))) return i;
  while (i < p.steps.size() && p.steps[i].kind != StepKind::kCall) i++;
  return i;
}

}  // namespace

static TT_INLINE bool goes_on_elsewhere(const PlanStep& s) { return s.kind >= StepKind::kCall; }

bool run_plan(Plan& p, int64_t ns) {
  const Running running(p);
  if (TT_UNLIKELY(p.device)) p.device->begin(p);
  const int64_t end = p.steps.size();
  const int64_t begin = ns < 0 ? 0 : os_now_ns();
  int64_t i = p.next;
  p.next = 0;  // a failing run begins anew
  while (i < end) {
    if (TT_LIKELY(!goes_on_elsewhere(p.steps[i]))) run_step(p, p.steps[i++]);
    else if (p.steps[i].kind == StepKind::kCall) i = run_call(p, i);
    else i = p.device->run(p, i);
    if (ns >= 0 && i < end && os_now_ns() - begin >= ns) {
      p.next = i;
      return false;
    }
  }
  if (TT_UNLIKELY(p.device)) p.device->end(p);
  for (Storage* s : p.written) atomic_fetch_add(&s->version, 1, kRelaxed);
  return true;
}

TensorRef plan_slot(Plan& p, bool output, int64_t i) {
  const Graph& g = *p.graph;
  const auto& list = output ? g.outputs : g.inputs;
  if (i < 0 || i >= list.size())
    fail_arg(TT_INVALID_ARG, "i", "i is {}: the plan has {} {}", i, list.size(),
             output ? "outputs" : "inputs");
  return plan_tensor(p, list[i], output ? p.outputs[i] : p.inputs[i]);
}

TensorRef plan_tensor(Plan& p, int32_t value, char* data) {
  const Graph& g = *p.graph;
  const IrValue& v = g.values[value];
  const IrStorage& s = g.storages[v.storage];
  if (s.role != IrRole::kMade && s.role != IrRole::kInput)
    return new_alias(*s.tensor, v.sizes, v.strides, data, v.dtype);
  if (s.device.type != TT_CPU)
    return new_import(data, v.sizes, v.strides, v.dtype, s.device, release_tensor,
                      TensorRef::share(p.device->arena.get()).leak());
  if (!p.memory) return new_import(data, v.sizes, v.strides, v.dtype, kCpuDevice, nullptr, nullptr);
  return new_import(data, v.sizes, v.strides, v.dtype, kCpuDevice, release_memory,
                    Ref<PlanMemory>::share(p.memory.get()).leak());
}

}  // namespace TT_NS
