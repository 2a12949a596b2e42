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

#ifdef __cplusplus
}
#endif
#endif
