/* Creates the tensors and arguments of samples/FAMILY.toml. op_table_test.c makes other layouts
   from every sample. */
#include "op_table.h"

#include <math.h>

const Row kRows[] = {
#include "op_rows.inc"
};
const int kNumRows = (int)(sizeof kRows / sizeof *kRows);

/* ---- the table of samples ---- */

typedef enum Filler {
  kData, /* the elements are given */
  kZeros,
  kFull,
  kSigned,
  kPositive,
  kUnit,
  kSmall,
  kWide,
  kLow,
  kHigh,
  kProbability,
  kChance,
  kFew,
  kSpecial,
  kSpecialOther,
  kHoles,
  kSlowRamp,
  kStairs,
  kBits,
  kSignedBits,
  kOtherBits,
  kIndices,
  kMask
} Filler;
typedef struct TensorSpec {
  Filler filler;
  tt_dtype dtype;
  int ndim;
  int64_t shape[5];
  double parameter;   /* kIndices: all are below it; kFull: the value */
  const double* data; /* kData: the elements in row-major order */
} TensorSpec;

typedef enum ArgKind { kNumberArg, kIntegersArg, kTextArg, kTensorArg, kTensorsArg } ArgKind;
typedef struct SampleArg {
  const char* name; /* as row_arg takes it */
  ArgKind kind;
  int n; /* integers, tensors */
  const int64_t* integers;
  const TensorSpec* tensors;
  const char* text;
  double number; /* kTensorArg: for operators that take a number in its place */
  int has_number, is_integer;
} SampleArg;
struct SampleLine {
  const char* text; /* its arguments as they are written in the file */
  const SampleArg* args;
  int n_args;
  int gradient, special, big; /* see Sample */
  int repeats;                /* the line before once more, with other options */
};
typedef struct SampleLine SampleLine;

#define COUNT(type, ...) (int)(sizeof((type[]){__VA_ARGS__}) / sizeof(type))
#define ARGS(...) (const SampleArg[]){__VA_ARGS__}, COUNT(SampleArg, __VA_ARGS__)
#define TENSORS(...) \
  .tensors = (const TensorSpec[]){__VA_ARGS__}, .n = COUNT(TensorSpec, __VA_ARGS__)
#define INTEGERS(...) .integers = (const int64_t[]){__VA_ARGS__}, .n = COUNT(int64_t, __VA_ARGS__)
#define DOUBLES(...) \
  (const double[]) { __VA_ARGS__ }
#define FLOAT(x) .number = (x), .has_number = 1
#define INTEGER(x) .number = (x), .has_number = 1, .is_integer = 1
#pragma GCC diagnostic ignored \
    "-Wmissing-field-initializers" /* fields that a line leaves out are 0 */
#include "op_samples.inc"

const SampleGroup* row_samples(const Row* r) {
  size_t i;
  for (i = 0; i < sizeof kGroups / sizeof *kGroups; i++)
    if (strcmp(kGroups[i].name, r->samples) == 0) return &kGroups[i];
  fail_msg("%s: there are no samples \"%s\"", r->name, r->samples);
  return NULL;
}

/* ---- rows ---- */

static int find_arg(const Row* r, const char* name) {
  int i;
  for (i = 0; i < r->n_args; i++)
    if (strcmp(r->args[i].name, name) == 0) return i;
  return -1;
}
int row_arg(const Row* r, const char* name) {
  const int i = find_arg(r, name);
  if (i < 0) fail_msg("%s has no argument %s", r->name, name);
  return i;
}
/* Groups of several operators call the first argument self and the second one other. */
static int line_arg(const Row* r, const char* name) {
  const int i = find_arg(r, name);
  if (i >= 0) return i;
  if (strcmp(name, "self") == 0) return 0;
  if (strcmp(name, "other") == 0) return 1;
  return row_arg(r, name);
}
static int takes_tensor(const RowArg* a) { return strncmp(a->type, "Tensor", 6) == 0; }

/* ---- elements ---- */

static uint64_t random_state;
static double uniform(void) { /* SplitMix64, in [0, 1) */
  uint64_t z = (random_state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}
static double either_sign(double x) { return uniform() < 0.5 ? -x : x; }

static double special(int64_t i) {
  static const double kValues[] = {0,  -0.0, 1,   -1,      0.5,  INFINITY, -INFINITY, NAN,     3,
                                   -2, 20,   -30, 0x1p-10, 7.25, -7.25,    2,         0x1p-30, 100};
  return kValues[i % 18];
}
static double hole(int64_t i) {
  static const double kValues[] = {NAN,       1,         -INFINITY, -INFINITY, 2,
                                   -INFINITY, -INFINITY, INFINITY,  -3,        5};
  return kValues[i % 10];
}
static double bits(int64_t i) {
  static const double kValues[] = {0, 1, 2, 3, 5, 7, 85, 100, 127, 12, 31, 8, 64, 63, 33, 6};
  return kValues[i % 16];
}
static double signed_bits(int64_t i) { return i % 3 == 2 ? -bits(i) - 1 : bits(i); }

/* Element i of a tensor in row-major order. */
static double element(const TensorSpec* t, int64_t i) {
  switch (t->filler) {
    case kData: return t->data[i];
    case kZeros: return 0;
    case kFull: return t->parameter;
    case kSigned: return either_sign(0.2 + 1.5 * uniform());
    case kPositive: return 0.2 + 1.5 * uniform();
    case kUnit: return either_sign(0.1 + 0.8 * uniform());
    case kSmall: return either_sign(0.01 + 0.08 * uniform());
    case kWide: return 100 * either_sign(0.2 + 1.5 * uniform());
    case kLow: return -0.2 - 0.11 * (double)(i % 4) - 0.02 * uniform();
    case kHigh: return 1.1 + 0.3 * (double)(i % 3) + 0.02 * uniform();
    case kProbability: return 0.05 + 0.9 * uniform();
    case kChance: return 0.5 * (0.2 + 1.5 * uniform());
    case kFew: return floor(5 * uniform()) - 2;
    case kSpecial: return special(i);
    case kSpecialOther: return special(i * 5 + i / 18 + 2);
    case kHoles: return hole(i);
    case kSlowRamp: return floor(0.1 * (double)(i % 1100));
    case kStairs: return floor(0.6 * (double)(i % 5));
    case kBits: return bits(i);
    case kSignedBits: return signed_bits(i);
    case kOtherBits: return signed_bits(i * 5 + i / 16 + 2);
    case kIndices: return floor(t->parameter * uniform());
    case kMask: return uniform() < 0.5;
  }
  fail_msg("unknown filler %d", (int)t->filler);
  return 0;
}
static tt_tensor* tensor_of(const TensorSpec* t) {
  int64_t n = 1;
  int64_t i;
  int d;
  double* values;
  tt_tensor* out;
  for (d = 0; d < t->ndim; d++) n *= t->shape[d];
  values = malloc((size_t)(n + 1) * sizeof *values);
  for (i = 0; i < n; i++) values[i] = element(t, i);
  out = make(t->dtype, t->shape, t->ndim, values, n);
  free(values);
  return out;
}

/* ---- arguments ---- */

static tt_value number_value(const RowArg* arg, const SampleArg* from) {
  tt_value v = {0};
  if (takes_tensor(arg)) {
    v.tag = TT_VAL_TENSOR;
    v.tensor = number(TT_F64, from->number);
  } else if (strncmp(arg->type, "Scalar", 6) == 0) {
    v.tag = TT_VAL_SCALAR;
    v.scalar = from->is_integer ? int_scalar((int64_t)from->number) : real_scalar(from->number);
  } else if (strncmp(arg->type, "Float", 5) == 0) {
    v.tag = TT_VAL_FLOAT;
    v.f = from->number;
  } else {
    v.tag = strncmp(arg->type, "Bool", 4) == 0 ? TT_VAL_BOOL : TT_VAL_INT;
    v.i = (int64_t)from->number;
  }
  return v;
}
static tt_value list_value(int32_t tag, int n) {
  tt_value v = {0};
  v.tag = tag;
  v.n = n;
  return v;
}
/* An argument of s. Tensors are drawn even where a number replaces them, so that overloads get
   the same values. */
static tt_value argument(Sample* s, const RowArg* arg, const SampleArg* from) {
  tt_value v = {0};
  int i;
  switch (from->kind) {
    case kNumberArg: return number_value(arg, from);
    case kIntegersArg:
      v = list_value(TT_VAL_INTS, from->n);
      v.ints = from->integers;
      return v;
    case kTextArg:
      v = list_value(TT_VAL_STR, (int)strlen(from->text));
      v.str = from->text;
      return v;
    case kTensorsArg: /* the caller of the operator points it to the items */
      s->first_item[arg - s->row->args] = s->n_items;
      for (i = 0; i < from->n; i++) s->items[s->n_items++] = tensor_of(&from->tensors[i]);
      return list_value(TT_VAL_TENSORS, from->n);
    case kTensorArg:
      v.tag = TT_VAL_TENSOR;
      v.tensor = tensor_of(from->tensors);
      return takes_tensor(arg) ? v : number_value(arg, from);
  }
  return v;
}

/* ---- samples ---- */

/* A line whose tensor has no number does not apply to an operator that takes a number instead. */
static int is_for(const SampleLine* line, const Row* r) {
  int i;
  for (i = 0; i < line->n_args; i++) {
    const SampleArg* a = &line->args[i];
    if (a->kind == kTensorArg && !a->has_number && !takes_tensor(&r->args[line_arg(r, a->name)]))
      return 0;
  }
  return 1;
}
/* Gives s the arguments and flags of a line. */
static void apply(Sample* s, const SampleLine* line) {
  int i;
  s->what = line->text;
  s->smooth = line->gradient;
  s->special = line->special;
  s->big = line->big;
  for (i = 0; i < line->n_args; i++) {
    const int place = line_arg(s->row, line->args[i].name);
    s->args[place] = argument(s, &s->row->args[place], &line->args[i]);
  }
}

void each_sample(const Row* r, SampleFn fn, void* user) {
  const SampleGroup* group = row_samples(r);
  Sample first; /* the last line that does not repeat another one */
  int i;
  memset(&first, 0, sizeof first);
  random_state = 1;
  OK(tt_scope_push(c));
  for (i = 0; i < group->n_lines; i++) {
    const SampleLine* line = &group->lines[i];
    Sample s = first;
    if (!is_for(line, r)) continue;
    if (!line->repeats) {
      memset(&s, 0, sizeof s);
      s.row = r;
    }
    apply(&s, line);
    if (!line->repeats) first = s;
    fn(&s, user);
  }
  OK(tt_scope_pop(c, NULL, 0));
}

void point_to_items(const Sample* s, tt_value* args) {
  int i;
  for (i = 0; i < s->row->n_args; i++)
    if (args[i].tag == TT_VAL_TENSORS) args[i].tensors = (tt_tensor**)&s->items[s->first_item[i]];
}

int tensor_places(Sample* s, tt_tensor** out[kMaxTensors]) {
  int n = 0;
  int i;
  int64_t j;
  for (i = 0; i < s->row->n_args; i++) {
    tt_value* v = &s->args[i];
    if (v->tag == TT_VAL_TENSOR && v->tensor) out[n++] = &v->tensor;
    for (j = 0; v->tag == TT_VAL_TENSORS && j < v->n; j++) {
      tt_tensor** item = &s->items[s->first_item[i] + j];
      if (*item) out[n++] = item;
    }
  }
  return n;
}
int float32_inputs(Sample* s, const tt_tensor** inputs) {
  tt_tensor** places[kMaxTensors];
  int i, n = tensor_places(s, places);
  for (i = 0; i < n; i++) {
    if (tt_tensor_dtype(*places[i]) == TT_F64) {
      const tt_to_opts opts = {.set = TT_TO_DTYPE, .dtype = TT_F32};
      OK(tt_to(c, *places[i], &opts, places[i]));
    }
    OK(tt_contiguous(c, *places[i], places[i]));
    OK(tt_clone(c, *places[i], NULL, places[i]));
    inputs[i] = *places[i];
  }
  return n;
}
