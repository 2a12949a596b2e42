#include "base/finalizer.h"
#include "capi/optim.h"
#include "core/graph_hooks.h"

namespace TT_NS {

static Scheduler* live(const tt_scheduler* h) {
  auto* s = reinterpret_cast<Scheduler*>(const_cast<tt_scheduler*>(h));
  return s && s->tag == kTagScheduler ? s : nullptr;
}
Scheduler& scheduler_arg(const tt_scheduler* h, const char* arg, int32_t index) {
  Scheduler* s = live(h);
  if (!s) fail_handle(h, arg, index, "scheduler");
  return *s;
}
Span<Scheduler* const> schedulers_arg(tt_scheduler* const* list, int64_t n, const char* arg,
                                      int32_t index) {
  if (n < 0) fail_arg(TT_INVALID_ARG, arg, "{} has length {}: must not be negative", arg, n);
  if (n && !list)
    fail_arg(TT_INVALID_ARG, arg, "{} is NULL, its length is {}: must be a list", arg, n);
  for (int64_t i = 0; i < n; i++) scheduler_arg(list[i], arg, index);
  return {reinterpret_cast<Scheduler* const*>(list), n};
}

}  // namespace TT_NS

using namespace TT_NS;

void tt_scheduler_retain(tt_scheduler* h) {
  if (Scheduler* s = live(h)) ref_inc_external(&s->refs);
}
void tt_scheduler_release(tt_scheduler* h) {
  if (Scheduler* s = live(h)) SchedulerRef::adopt(s).reset();
}

static tt_status new_lambda(tt_ctx* h, const char* name, tt_optimizer* optimizer,
                            const LrLambda& lambda, bool multiplicative, int64_t last_epoch,
                            tt_scheduler** out) {
  if (out) *out = nullptr;
  const tt_status status = api_call(h, name, [&](Ctx&) {
    Optimizer& o = optimizer_arg(optimizer, "optimizer", 1);
    if (!lambda.fn) fail_null("fn", 2);
    out_arg(out, "out", 6);
    *out =
        reinterpret_cast<tt_scheduler*>(make_lambda(o, lambda, multiplicative, last_epoch).leak());
  });
  if (status) run_drop(lambda.drop, lambda.user);
  return status;
}
tt_status tt_lr_lambda(tt_ctx* h, tt_optimizer* optimizer, tt_lr_lambda_fn fn, void* user,
                       void (*drop)(void*), int64_t last_epoch, tt_scheduler** out) {
  return new_lambda(h, "lr_lambda", optimizer, {fn, user, drop}, false, last_epoch, out);
}
tt_status tt_lr_multiplicative(tt_ctx* h, tt_optimizer* optimizer, tt_lr_lambda_fn fn, void* user,
                               void (*drop)(void*), int64_t last_epoch, tt_scheduler** out) {
  return new_lambda(h, "lr_multiplicative", optimizer, {fn, user, drop}, true, last_epoch, out);
}

tt_status tt_scheduler_step(tt_ctx* h, tt_scheduler* s) {
  return api_call(h, "scheduler_step",
                  [&](Ctx&) { take_scheduler_step(scheduler_arg(s, "s", 1)); });
}
tt_status tt_scheduler_step_to(tt_ctx* h, tt_scheduler* s, int64_t epoch) {
  return api_call(h, "scheduler_step_to",
                  [&](Ctx&) { take_scheduler_step_to(scheduler_arg(s, "s", 1), epoch); });
}
tt_status tt_scheduler_step_metric(tt_ctx* h, tt_scheduler* s, double metric) {
  return api_call(h, "scheduler_step_metric",
                  [&](Ctx&) { take_scheduler_step_metric(scheduler_arg(s, "s", 1), metric); });
}
int64_t tt_scheduler_last_epoch(const tt_scheduler* h) { return live(h) ? live(h)->last_epoch : 0; }
tt_status tt_scheduler_get_last_lr(tt_ctx* h, const tt_scheduler* handle, double* lrs, int64_t cap,
                                   int64_t* n) {
  if (n) *n = 0;
  return api_call(h, "scheduler_get_last_lr", [&](Ctx&) {
    Scheduler& s = scheduler_arg(handle, "s", 1);
    out_arg(lrs, "lrs", 2);
    out_arg(n, "n", 4);
    *n = s.last_lr.size();
    if (s.last_lr.size() > cap)
      fail_arg(TT_BUFFER_TOO_SMALL, "lrs", "lrs has room for {} numbers, there are {}", cap,
               s.last_lr.size());
    for (int64_t i = 0; i < s.last_lr.size(); i++) lrs[i] = s.last_lr[i];
  });
}

int64_t tt_scheduler_num_numbers(const tt_scheduler* h) {
  return live(h) ? num_numbers(*live(h)) : 0;
}
tt_status tt_scheduler_number_at(tt_ctx* h, const tt_scheduler* handle, int64_t i, char* name,
                                 int64_t cap, double* out) {
  return api_call(h, "scheduler_number_at", [&](Ctx&) {
    Scheduler& s = scheduler_arg(handle, "s", 1);
    if (!name) fail_null("name", 3);
    if (cap < 1) fail_arg(TT_INVALID_ARG, "cap", "cap is {}: must be at least 1", cap);
    name[0] = 0;
    out_arg(out, "out", 5);
    *out = number_at(s, i, name, cap);
  });
}
tt_status tt_scheduler_load_number(tt_ctx* h, tt_scheduler* handle, const char* name,
                                   double value) {
  return api_call(h, "scheduler_load_number", [&](Ctx&) {
    Scheduler& s = scheduler_arg(handle, "s", 1);
    str_arg(name, "name", 2);
    note_change("the state of a scheduler");
    load_number(s, name, value);
  });
}
