/* References in double precision, written from the definitions, without code of tt:
   refs/FAMILY.h. */
#include "op_table.h"

#include <float.h>
#include <math.h>

/* One of the functions computes the operator. */
typedef struct Reference {
  const char* name;
  double (*unary)(double);
  double (*binary)(double, double);
  double (*elementwise)(const Inputs* in, const double* operands);
  int (*whole)(const Inputs* in, Array* outs); /* returns the number of results */
  int exact;                                   /* 0, kExact, kExactSum or kExactWide */
} Reference;

/* ---- memory ---- */

typedef union Block { /* header in front of each allocation */
  union Block* next;
  long double alignment;
} Block;
static Block* blocks;
void* scratch(size_t bytes) {
  Block* b = calloc(1, sizeof *b + bytes);
  assert_non_null(b);
  b->next = blocks;
  blocks = b;
  return b + 1;
}
void scratch_clear(void) {
  while (blocks) {
    Block* next = blocks->next;
    free(blocks);
    blocks = next;
  }
}

/* ---- families; a later one may use an earlier one ---- */

#pragma GCC diagnostic ignored \
    "-Wmissing-field-initializers" /* functions that a row leaves out are NULL */
#include "refs/arrays.h"
#include "wide.h"

#include "refs/activation.h"
#include "refs/arith.h"
#include "refs/bitwise.h"
#include "refs/compare.h"
#include "refs/complex.h"
#include "refs/copy.h"
#include "refs/factory.h"
#include "refs/index.h"
#include "refs/reduce.h"
#include "refs/softmax.h"
#include "refs/sort.h"
#include "refs/special.h"
#include "refs/unary.h"

#include "refs/attention.h"
#include "refs/conv.h"
#include "refs/quant.h"
#include "refs/fft.h"
#include "refs/fold.h"
#include "refs/linalg.h"
#include "refs/matmul.h"
#include "refs/norm.h"
#include "refs/resize.h"
#include "refs/grid.h"
#include "refs/scan.h"
#include "refs/view.h"

#include "refs/arrange.h"
#include "refs/loss.h"
#include "refs/pool.h"
#include "refs/recurrent.h"

typedef struct Family {
  const Reference* references;
  size_t n;
} Family;
#define FAMILY(table) \
  { table, sizeof table / sizeof *table }
static const Family kFamilies[] = {
    FAMILY(kActivation), FAMILY(kArith),   FAMILY(kArrange), FAMILY(kAttention), FAMILY(kBitwise),
    FAMILY(kCompare),    FAMILY(kComplex), FAMILY(kConv),    FAMILY(kCopy),      FAMILY(kFactory),
    FAMILY(kFft),        FAMILY(kFold),    FAMILY(kGrid),    FAMILY(kIndex),     FAMILY(kLinalg),
    FAMILY(kLoss),       FAMILY(kMatmul),  FAMILY(kNorm),    FAMILY(kPool),      FAMILY(kRecurrent),
    FAMILY(kQuant),      FAMILY(kReduce),  FAMILY(kResize),  FAMILY(kScan),      FAMILY(kSoftmax),
    FAMILY(kSort),       FAMILY(kSpecial), FAMILY(kUnary),   FAMILY(kView),
};

/* ---- lookup ---- */

static const Reference* named(const char* name) {
  for (size_t f = 0; f < sizeof kFamilies / sizeof *kFamilies; f++)
    for (size_t i = 0; i < kFamilies[f].n; i++)
      if (strcmp(kFamilies[f].references[i].name, name) == 0) return &kFamilies[f].references[i];
  return NULL;
}
/* An overload has the reference of its base operator: add_scalar that of add, max_dim that of
   max. */
static const Reference* find_reference(const Row* row) {
  char name[64];
  const Reference* found;
  snprintf(name, sizeof name, "%s", row->name);
  while (!(found = named(name))) {
    char* suffix = strrchr(name, '_');
    if (!suffix) return NULL;
    *suffix = 0;
  }
  return found;
}

static double element(const Reference* r, const Inputs* in, const double* operands) {
  if (r->unary) return r->unary(operands[0]);
  if (r->binary) return r->binary(operands[0], operands[1]);
  return r->elementwise(in, operands);
}
/* The operands are the tensors and the numbers without a default, in order. */
static void compute_elements(const Reference* r, const Inputs* in, Array* out) {
  const Row* row = in->sample->row;
  Array operands[kMaxArgs];
  int64_t index[kMaxDims];
  int n = 0;
  for (int k = 0; k < row->n_args; k++) {
    const RowArg* arg = &row->args[k];
    if (in->tensors[k].data) operands[n++] = in->tensors[k];
    else if (strcmp(arg->type, "Scalar") == 0 && !arg->has_default)
      operands[n++] = zero_dim(number_arg(in, arg->name, 0));
  }
  *out = broadcast_zeros(operands, n);
  for (int64_t i = 0; i < out->n; i++) {
    double values[kMaxArgs] = {0};
    index_of(out, i, index);
    for (int k = 0; k < n; k++) values[k] = broadcast_value(&operands[k], index, out->ndim);
    out->data[i] = element(r, in, values);
  }
}

int reference(const Inputs* in, Array* outs, int* exact) {
  const Reference* r = find_reference(in->sample->row);
  if (!r) return -1;
  *exact = r->exact;
  if (r->whole) return r->whole(in, outs);
  compute_elements(r, in, outs);
  return 1;
}
