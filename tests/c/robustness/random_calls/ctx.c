/* Scopes, modes and limits of a ctx, generators, and live objects. */
#include "program.h"

static void change_scopes(Program* p) {
  tt_tensor* keep[8];
  int64_t n = 0, i;
  int* depth = &p->depth[p->at];
  if (p->nested) return;
  if (*depth < kMaxDepth && one_in(p, 2)) {
    const Watch w = begin_call(p, "tt_scope_push", 1);
    *depth += end_call(p, w, tt_scope_push(p->c)) == TT_OK;
    return;
  }
  for (i = 0; i < kTensors && n < 8; i++)
    if (p->tensors[i].t && p->tensors[i].ctx == p->at && p->tensors[i].depth == *depth && *depth)
      if (one_in(p, 3)) keep[n++] = p->tensors[i].t;
  {
    const Watch w = begin_call(p, "tt_scope_pop", 1);
    if (end_call(p, w, tt_scope_pop(p->c, keep, n))) return;
  }
  forget_scope(p, *depth, keep, n);
  --*depth;
}

static void use_generators(Program* p) {
  tt_generator** place = &p->generators[below(p, kGenerators)];
  tt_generator *g = *place, *made = NULL;
  uint64_t state[2] = {any(p), (uint64_t)below(p, 100)};
  switch (below(p, 6)) {
    case 0: CALL(tt_generator_new(p->c, state[0], &made)); break;
    case 1: CALL(tt_ctx_generator(p->c, &made)); break;
    case 2: CALL(tt_generator_state(p->c, g, state)); break;
    case 3: ATOMIC(tt_generator_set_state(p->c, g, state)); break;
    case 4: ATOMIC(tt_manual_seed(p->c, state[0])); break;
    default: CALL(tt_runtime_manual_seed(p->rt, state[0]));
  }
  if (!made) return;
  if (p->nested && g) {
    tt_generator_release(made);
    return;
  }
  *place = made;
  tt_generator_release(g);
}

/* It is called at times that vary, so it must not influence the program, and always returns OK. */
static tt_status on_poll(void* user, tt_ctx* c) {
  Program* p = user;
  const uint64_t random = p->random;
  const int paused = host.paused;
  p->polled++;
  host.paused = 1;
  reenter(p, c);
  host.paused = paused;
  p->polled--;
  p->random = random;
  return TT_OK;
}
static void on_trace(void* user, const char* op, const char* slot, int32_t depth) {
  (void)user;
  (void)op;
  (void)slot;
  (void)depth;
}
static void change_modes(Program* p) {
  tt_profile_row rows[16];
  tt_cancel* k = NULL;
  const int32_t on = !one_in(p, 3);
  int64_t n;
  switch (below(p, 8)) {
    case 0:
    case 1: CALL(tt_set_grad_enabled(p->c, on, NULL)); break;
    case 2: CALL(tt_set_anomaly_enabled(p->c, !on, NULL)); break;
    case 3: CALL(tt_profiler_start(p->c)); break;
    case 4:
      CALL(tt_profiler_stop(p->c));
      CALL(tt_profiler_rows(p->c, rows, 16, &n));
      break;
    case 5: CALL(tt_ctx_trace_dispatch(p->c, on ? NULL : on_trace, p)); break;
    case 6:
      if (on) {
        CALL(tt_ctx_set_poll(p->c, NULL, NULL, NULL));
      } else {
        void (*drop)(void*) = counted_drop(p);
        CALL(tt_ctx_set_poll(p->c, on_poll, p, drop));
      }
      break;
    default:
      CALL(tt_cancel_new(p->c, &k));
      if (k && one_in(p, 8)) tt_cancel_request(k);
      CALL(tt_ctx_set_cancel(p->c, one_in(p, 2) ? k : NULL));
      tt_cancel_release(k);
  }
}

static void look_around(Program* p) {
  static tt_live_row rows[400];
  tt_memory_stats stats;
  const tt_device device = any_device(p);
  int64_t n;
  switch (below(p, 6)) {
    case 0: CALL(tt_runtime_live(p->c, rows, 400, &n)); break;
    case 1: CALL(tt_memory(p->c, one_in(p, 2) ? NULL : &device, &stats)); break;
    case 2: CALL(tt_trim(p->c)); break;
    case 3: CALL(tt_set_num_threads(p->c, 1 + below(p, 2))); break;
    case 4: CALL(tt_synchronize(p->c, one_in(p, 2) ? NULL : &device)); break;
    default: tt_runtime_poll(p->rt);
  }
}

void act_ctx(Program* p) {
  switch (below(p, 10)) {
    case 0:
    case 1: return use_generators(p);
    case 2:
    case 3: return change_modes(p);
    case 4: return look_around(p);
    default: return change_scopes(p);
  }
}
