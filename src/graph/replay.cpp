#include "graph/plan.h"

#include "core/ctx.h"

#include <string.h>

namespace TT_NS {

namespace {

void release_plan(void* user) { Ref<Plan>::adopt(static_cast<Plan*>(user)).reset(); }

class Running {
 public:
  explicit Running(Plan& p) : p_(p) {
    if (__atomic_exchange_n(&p.running, 1, __ATOMIC_ACQUIRE))
      fail(TT_INVALID_ARG, "the plan is running on another thread: a plan runs once at a time");
  }
  ~Running() { __atomic_store_n(&p_.running, 0, __ATOMIC_RELEASE); }
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
  if (TT_UNLIKELY(ctx().watched != 0 || s.units > s.grain))
    return launch(*s.kernel, kCpuDevice, s.plan, s.units, s.grain);
  const int32_t status = s.fn(s.plan, 0, s.units);
  if (TT_UNLIKELY(status != 0)) {
    if (status == kKernelEnded) fail_again();
    fail(status, "kernel {} failed", s.kernel->name);
  }
}

void run_draw(Plan& p, const PlanStep& s) {
  PlanDraw& d = p.draws[s.draw];
  Generator& g = d.generator ? *d.generator.get() : *ctx().gen;
  d.begin = g.take(d.counters);
}

void run_step(Plan& p, const PlanStep& s) {
  switch (s.kind) {
    case StepKind::kLaunch: return run_launch(p, s);
    case StepKind::kDraw: return run_draw(p, s);
    case StepKind::kWrite: memcpy(s.to, s.plan, size_t(s.bytes)); return;
    case StepKind::kCheck: {
      int64_t found;
      memcpy(&found, s.to, sizeof found);
      if (TT_UNLIKELY(found != s.good))
        fail(TT_INVALID_ARG, "{} refuses its arguments in this run: element {} is out of range",
             p.graph->nodes[s.node].op->schema->call, found);
      return;
    }
  }
}

}  // namespace

bool run_plan(Plan& p, int64_t ns) {
  const Running running(p);
  const int64_t end = p.steps.size();
  const int64_t limit = ns < 0 ? 0 : os_now_ns() + ns;
  int64_t i = p.next;
  p.next = 0;  // a failing run begins anew
  for (; i < end; i++) {
    run_step(p, p.steps[i]);
    if (ns >= 0 && i + 1 < end && os_now_ns() >= limit) {
      p.next = i + 1;
      return false;
    }
  }
  for (Storage* s : p.written) __atomic_fetch_add(&s->version, 1, __ATOMIC_RELAXED);
  return true;
}

TensorRef plan_slot(Plan& p, bool output, int64_t i) {
  const Graph& g = *p.graph;
  const auto& list = output ? g.outputs : g.inputs;
  if (i < 0 || i >= list.size())
    fail_arg(TT_INVALID_ARG, "i", "i is {}: the plan has {} {}", i, list.size(),
             output ? "outputs" : "inputs");
  const IrValue& v = g.values[list[i]];
  char* data = output ? p.outputs[i] : p.inputs[i];
  return new_import(data, v.sizes, v.strides, v.dtype, kCpuDevice, release_plan,
                    Ref<Plan>::share(&p).leak());
}

}  // namespace TT_NS
