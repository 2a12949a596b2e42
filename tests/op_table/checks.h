/* Shared by the checks of the op table: calls, samples in other forms, comparisons, messages. */
#ifndef TT_TEST_OP_TABLE_CHECKS_H
#define TT_TEST_OP_TABLE_CHECKS_H

#include "op_table.h"

/* ---- messages ---- */
extern const char* doing; /* the check in progress */
void lost(const Sample* s, const char* text, double got, double want);
void done(const Sample* s, tt_status status); /* fails the test for a status that is not 0 */

/* ---- calls ---- */
/* The operator named row->name + suffix with s's arguments and more tensors behind them. */
tt_status call_variant(const Sample* s, const char* suffix, tt_tensor** more, int n_more,
                       tt_tensor** outs, int64_t* n_outs);
/* The operator as a function: one without results writes a copy of its first argument and returns
 * that. */
tt_status call(const Sample* s, tt_tensor** outs, int* n);
tt_tensor* clone_of(const tt_tensor* t);
tt_tensor* cast(const tt_tensor* t, tt_dtype d);
int is_integer(tt_dtype d); /* or bool */
int is_random(const Row* r);
int has_values(const Row* r); /* false for empty and empty_like */

/* ---- a sample in another form ---- */
typedef enum Layout { kColumnsFirst, kEverySecond, kBehindOffset, kNumLayouts } Layout;
Sample with_dtype(const Sample* s, tt_dtype d); /* of its float64 tensors */
Sample with_layout(const Sample* s, Layout layout);
Sample on_device(const Sample* s, int type);
tt_tensor* laid_out(const tt_tensor* t, Layout layout);
tt_tensor* on_cpu(const tt_tensor* t);
/* A complex tensor as pairs of real numbers; others as they are. */
tt_tensor* as_reals(const tt_tensor* t);

/* ---- comparisons ---- */
int have_equal_shapes(const tt_tensor* a, const tt_tensor* b);
void check_shape(const Sample* s, const tt_tensor* t, const int64_t* shape, int ndim);
/* ulps: tolerance in units in the last place of each value; share: tolerance as a share of the
   largest value, for sums. */
void check_close(const Sample* s, const tt_tensor* t, const double* want, int64_t n, double ulps,
                 double share);
/* The same dtype, shape and, with ulps = 0, bits (any nan equals any nan). */
void check_same(const Sample* s, const tt_tensor* a, const tt_tensor* b, double ulps, double share);

/* ---- checks of their own files ---- */
/* Values in a dtype: against the reference, or, for random operators, against their known range
   and statistics. *exact is set by reference(). */
void check_values(const Sample* s, tt_dtype d, int* exact);
/* Sums of another order than `want`, those of the CPU: they differ by at most n u sum |x|, the
   bound of the error of any order of n summands, and, in float16 and bfloat16, by a last
   rounding. */
void check_sums(const Sample* s, const tt_tensor* got, const tt_tensor* want);
/* First and second derivatives against finite differences. */
void check_derivatives(const Sample* s);
/* Gradients on a device against those on the CPU. */
void check_device_gradients(const Sample* s, int device_type);
int count_derivatives(void); /* derivatives compared so far, of first and second order */

#endif
