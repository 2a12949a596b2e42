/* The op table: every operator that an application can name, its samples and its reference. */
#ifndef TT_TEST_OP_TABLE_H
#define TT_TEST_OP_TABLE_H

#include "harness.h"

enum { kMaxArgs = 12, kMaxItems = 24, kMaxTensors = kMaxArgs + kMaxItems, kMaxDims = 8 };
enum { kMaxOuts = 8, kMaxNoGradient = 2 };

/* ---- rows: generated from the declarations ---- */
typedef struct RowArg {
  const char *name, *type;
  int has_default;
} RowArg;
typedef struct Row {
  const char *name, *samples;
  int differentiable, inplace, into;
  int n_outs; /* -1: a list */
  int n_args;
  RowArg args[kMaxArgs];
} Row;
extern const Row kRows[];
extern const int kNumRows;
int row_arg(const Row* r, const char* name); /* its position; fails the test if there is none */

/* ---- samples: generated from samples/FAMILY.toml, whose README explains the words ---- */

/* Range and statistics of the results of a random operator; 0 where nothing is known. */
typedef struct Drawn {
  double low, high; /* low <= x < high */
  double mean, variance;
  double tolerance;   /* tolerances: of the mean, and of the variance relative to it */
  double ulps, share; /* tolerance between instruction sets and devices, as in check_close */
  int has_low, has_mean, has_variance, integers;
  int permutation;       /* of 0, 1, ... */
  const double* weights; /* positions are drawn by these weights */
  int n_weights;
} Drawn;
typedef struct SampleGroup {
  const char* name;
  const struct SampleLine* lines;
  int n_lines;
  int summed;            /* the operators sum up: errors are relative to the largest value */
  int shape_from_values; /* on META the shape of the results is unknown */
  int no_half;           /* the operators do not compute in float16 and bfloat16 */
  const char* no_gradient[kMaxNoGradient];
  const Drawn* drawn; /* NULL: the results are not random */
} SampleGroup;
const SampleGroup* row_samples(const Row* r);

typedef struct Sample {
  const Row* row;
  const char* what;
  tt_value args[kMaxArgs];
  tt_tensor* items[kMaxItems]; /* of the tensor lists among args */
  int first_item[kMaxArgs];    /* position in items of the first tensor of a list */
  int n_items;
  int smooth;  /* finite differences are meaningful */
  int special; /* contains inf or nan: not converted to integers */
  int big;     /* for the comparison of thread counts only */
} Sample;
typedef void (*SampleFn)(const Sample* s, void* user);
/* Calls fn for every sample of the row. */
void each_sample(const Row* r, SampleFn fn, void* user);
/* Points the tensor lists of args, a copy of those of s, to its items. */
void point_to_items(const Sample* s, tt_value* args);
/* Pointers to the tensors of a sample, items of lists included. */
int tensor_places(Sample* s, tt_tensor** out[kMaxTensors]);
/* Replaces the tensors of a sample by dense copies, float64 ones by float32, as exported graphs
   read them. Returns their number, and them in `inputs`. */
int float32_inputs(Sample* s, const tt_tensor** inputs);

/* ---- references in double precision, which share no code with tt ---- */
typedef struct Array {
  int ndim;
  int64_t shape[kMaxDims];
  int64_t n;
  double* data; /* in row-major order */
} Array;
typedef struct Inputs {
  const Sample* sample;
  Array tensors[kMaxArgs]; /* of its arguments; data is NULL where there is none */
  Array items[kMaxItems];
  int n_items;
  int integral; /* the tensors have an integer dtype */
} Inputs;
/* Of results that are bit-equal on every ISA, what a device with kernels of its own may do: nothing
   else; add in another order (sums over elements, means); round the sums of halves once, not after
   each summand. */
enum { kExact = 1, kExactSum = 2, kExactWide = 3 };
/* Fills outs and returns their number; -1: the operator has no reference. *exact: 0 or one of the
   above. */
int reference(const Inputs* in, Array* outs, int* exact);
void* scratch(size_t bytes); /* zeroed; freed by scratch_clear */
void scratch_clear(void);

#endif
