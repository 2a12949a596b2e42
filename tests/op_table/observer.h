/* What op_launches_test sees of the internals of tt, with which it is linked. */
#ifndef TT_TEST_OBSERVER_H
#define TT_TEST_OBSERVER_H

#include "tt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* From now on each kernel of the ctx runs from a copy of its plan, while the stack between the
   caller of observe_launches and the kernel is overwritten: what a recorded launch may not need. */
void observe_launches(tt_ctx* ctx);
void observe_nothing(tt_ctx* ctx);
int count_reads(void); /* elements that the host has read since the last observe_launches */
/* Kernels of CPU builds that no observed call has launched; names receives up to n of them. */
int unseen_kernels(const char** names, int n);

/* NULL, or how the results of a call contradict OpSchema::alias. */
const char* wrong_alias(const tt_op* op, const tt_value* args, int n_args, tt_tensor* const* outs,
                        int n_outs);

/* NULL, or what is wrong with a plan of the graph whose inputs and outputs are bound to memory
   elsewhere, twice, while their own places are poisoned: the results are `outs`, as of the call.
   refused: no plan could be made. */
const char* wrong_bound(tt_ctx* ctx, const tt_graph* g, tt_tensor* const* given, int n,
                        tt_tensor* const* outs, int n_outs, int* n_bound, int* refused);

#ifdef __cplusplus
}
#endif
#endif
