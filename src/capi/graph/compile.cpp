// Compiled functions.
#include "nn/compile/compiled.h"

#include "base/finalizer.h"
#include "capi/api.h"
#include "optim/captured.h"

using namespace TT_NS;

constexpr int64_t kDefaultLimit = 8;

static Compiled* compiled_of(const tt_compiled* h) {
  auto* f = reinterpret_cast<Compiled*>(const_cast<tt_compiled*>(h));
  return f && f->tag == kTagCompiled ? f : nullptr;
}
static Compiled& compiled_arg(const tt_compiled* h) {
  if (!compiled_of(h)) fail_handle(h, "f", 1, "compiled function");
  return *compiled_of(h);
}

tt_status tt_compile(tt_ctx* h, tt_fn fn, void* user, void (*drop)(void*),
                     const tt_compile_opts* opts, tt_compiled** out) {
  if (out) *out = nullptr;
  bool passed_on = false;
  const tt_status status = api_call(h, "compile", [&](Ctx&) {
    if (!fn) fail_null("fn", 1);
    check_opts(opts, 2);
    out_arg(out, "out", 5);
    const int64_t limit = opts_has(opts, 0) ? opts->limit : kDefaultLimit;
    if (limit < 0) fail_arg(TT_INVALID_ARG, "limit", "limit is {}: must be at least 0", limit);
    const SameObject dynamic = opts_has(opts, 1) && opts->dynamic ? is_same_step : nullptr;
    *out = reinterpret_cast<tt_compiled*>(
        new_compiled(fn, user, drop, limit, dynamic, is_current_step).leak());
    passed_on = true;
  });
  if (!passed_on) run_drop(drop, user);
  return status;
}

tt_status tt_compiled_call(tt_ctx* h, tt_compiled* handle, const tt_tensor* const* inputs,
                           int64_t n, tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  clear_list(outs, cap, n_outs);
  return api_call(h, "compiled_call", [&](Ctx& c) {
    const Ref<Compiled> f = Ref<Compiled>::share(&compiled_arg(handle));
    const TensorSpan list = tensors_arg(inputs, n, "inputs", 2, false);
    if (cap > 0 && !outs) fail_null("outs", 4);
    out_arg(n_outs, "n_outs", 6);
    give_list(c, outs, cap, n_outs, call_compiled(*f, list, cap, n_outs));
  });
}

tt_status tt_compiled_get_info(tt_ctx* h, const tt_compiled* handle, tt_compiled_info* out) {
  if (out) *out = tt_compiled_info{};
  return api_call(h, "compiled_get_info", [&](Ctx&) {
    const Compiled& f = compiled_arg(handle);
    out_arg(out, "out", 2);
    *out = {.n_records = num_plans(f),
            .n_replays = f.n_replays,
            .n_runs = f.n_runs,
            .reason = f.reason.empty() ? nullptr : f.reason.c_str()};
  });
}

tt_status tt_compiled_reset(tt_ctx* h, tt_compiled* f) {
  return api_call(h, "compiled_reset", [&](Ctx&) { drop_records(compiled_arg(f)); });
}

void tt_compiled_retain(tt_compiled* h) {
  if (Compiled* f = compiled_of(h)) ref_inc_external(&f->refs);
}
void tt_compiled_release(tt_compiled* h) {
  if (Compiled* f = compiled_of(h)) Ref<Compiled>::adopt(f).reset();
}
