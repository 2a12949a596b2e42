/* A snapshot of everything that a failing call must not change, as bytes: values, shapes,
   strides, versions and gradients of tensors, tensors and training mode of modules, values and
   state of optimizers and schedulers, offsets of generators. */
#ifndef TT_TEST_SNAPSHOT_H
#define TT_TEST_SNAPSHOT_H

#include "harness.h"

/* NULL items are skipped. */
typedef struct Watched {
  tt_ctx*
      watcher; /* a ctx of its own in the same runtime: scopes of the ctx under test are not used */
  tt_ctx* ctx; /* its generator and grad mode are part of the snapshot */
  tt_tensor* const* tensors;
  int64_t n_tensors;
  tt_module* const* modules;
  int64_t n_modules;
  tt_optimizer* const* optimizers;
  int64_t n_optimizers;
  tt_scheduler* const* schedulers;
  int64_t n_schedulers;
  tt_generator* const* generators;
  int64_t n_generators;
} Watched;

typedef struct Snapshot Snapshot;
/* Its temporary memory is not counted by host.fail_at. */
Snapshot* snapshot_take(const Watched* w);
/* NULL if nothing changed, else a text that names what did; valid until the next call. */
const char* snapshot_changed(const Snapshot* was, const Watched* w);
void snapshot_free(Snapshot* s);

#endif
