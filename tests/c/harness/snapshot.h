/* Everything that a failing call must leave as it was, as bytes that can be compared: values,
   geometry, versions and gradients of tensors, tensors and training mode of modules, values and
   state of optimizers and schedulers, positions of generators. */
#ifndef TT_TEST_SNAPSHOT_H
#define TT_TEST_SNAPSHOT_H

#include "harness.h"

/* NULL items are passed over. */
typedef struct Watched {
  tt_ctx* watcher; /* of the same runtime, and nobody else's: a scope of the ctx under test is left
                      alone */
  tt_ctx* ctx;     /* whose own generator and grad mode are looked at */
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
/* The memory that it needs for a moment does not count for host.fail_at. */
Snapshot* snapshot_take(const Watched* w);
/* NULL if all is as it was, else what is not; valid until the next call. */
const char* snapshot_changed(const Snapshot* was, const Watched* w);
void snapshot_free(Snapshot* s);

#endif
