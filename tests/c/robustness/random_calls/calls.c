/* One call: recorded, with a failing allocation at times, and checked. */
#include "program.h"

void program_fails(Program* p, const char* why, const char* detail) {
  fprintf(stderr, "seed %llu, call %lld: %s: %s\n  %s\n", (unsigned long long)p->report->seed,
          (long long)p->report->call, p->report->what, why, detail);
  fflush(stderr);
  abort();
}

static Watched watched(Program* p, tt_tensor** tensors) {
  Watched w = {.watcher = p->watcher,
               .ctx = p->c,
               .tensors = tensors,
               .n_tensors = kTensors,
               .modules = p->modules,
               .n_modules = kModules,
               .optimizers = p->optimizers,
               .n_optimizers = kOptimizers,
               .schedulers = p->schedulers,
               .n_schedulers = kSchedulers,
               .generators = p->generators,
               .n_generators = kGenerators};
  int i;
  for (i = 0; i < kTensors; i++) tensors[i] = p->tensors[i].t;
  return w;
}

/* Only if no other call is running: its snapshot would include this call's changes. */
Watch begin_call(Program* p, const char* what, int atomic) {
  Watch w = {NULL, p->reentered};
  p->calls++;
  if (p->nested) {
    p->reentered++;
    return w;
  }
  p->report->call++;
  snprintf(p->report->what, sizeof p->report->what, "%s", what);
  if (atomic && one_in(p, 8)) {
    tt_tensor* tensors[kTensors];
    const Watched all = watched(p, tensors);
    w.was = snapshot_take(&all);
  }
  if (one_in(p, 30)) {
    host.fail_n = below(p, 3);
    host.fail_at = host.calls + 1 + below(p, one_in(p, 4) ? 40 : 8);
  }
  return w;
}

tt_status end_call(Program* p, Watch w, tt_status s) {
  const tt_error* e = tt_ctx_error(p->c);
  if (!p->nested) host.fail_at = 0;
  if (s < TT_OK || s > TT_LINALG) program_fails(p, "the status is none", "");
  if (s == TT_INTERNAL) program_fails(p, "an internal error", e->message);
  if (s && s != TT_BAD_HANDLE && (e->code != s || !e->message[0]))
    program_fails(p, "the error record is of another failure", e->message);
  p->failed += s != TT_OK;
  if (p->report->told)
    fprintf(stderr, "%*s%lld %s: %s\n", 2 * p->nested, "", (long long)p->report->call,
            p->nested ? "(callback)" : p->report->what, s ? e->message : "ok");
  if (w.was && s && s != TT_CANCELLED && s != TT_CALLBACK && p->reentered == w.reentered) {
    tt_tensor* tensors[kTensors];
    const Watched all = watched(p, tensors);
    const char* changed = snapshot_changed(w.was, &all);
    char text[600];
    snprintf(text, sizeof text, "%s: %s", e->message, changed ? changed : "");
    if (changed) program_fails(p, "it failed, but it has changed something", text);
  }
  snapshot_free(w.was);
  return s;
}
