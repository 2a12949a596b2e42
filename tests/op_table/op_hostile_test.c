/* Every operator on its samples with one or two arguments replaced by senseless values: integers
   at the ends of their range, numbers outside an enumeration, nan, tensors on META, empty,
   0-dimensional or of another dtype. Each call must end within seconds with a result, or with a
   status that leaves no result and unchanged inputs. A result that requires a gradient is
   differentiated. TT_HOSTILE_TRACE=1 prints every call before it is made. */
#include "op_table.h"
#include "share.h"

#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <unistd.h>

enum {
  kSamplesPerRow = SLOW_BUILD ? 4 : 8,
  kSecondsPerAlarm = 10,
  kAlarmsPerCall = 4, /* a call ends within 30 s */
  kTrials = SLOW_BUILD ? 100 : 300,
  kDoing = 512
};
static const int64_t kMemoryLimit = (int64_t)48 << 20;

/* Larger results, which are views, are not summed. */
static const int64_t kLongSum = (int64_t)1 << 24;

static char doing[kDoing]; /* the call in progress, for messages */
/* Writes at doing[at], as far as there is room. Returns where the text ends. */
static int describe(int at, const char* format, ...) {
  va_list list;
  va_start(list, format);
  at += vsnprintf(doing + at, sizeof doing - (size_t)at, format, list);
  va_end(list);
  return at < kDoing ? at : kDoing - 1;
}
static int traced, n_calls, n_accepted, n_wrong, samples_left;

/* Alarms since the call in progress began; negative between calls. An alarm set by each call would
   be two system calls, as long as most calls of tt. */
static volatile sig_atomic_t alarms;
static void begin_call(void) { alarms = 0; }
static void end_call(void) { alarms = INT_MIN; }
static void on_alarm(int sig) {
  (void)sig;
  alarm(kSecondsPerAlarm);
  if (++alarms < kAlarmsPerCall) return;
  (void)!write(2, "takes too long: ", 16);
  (void)!write(2, doing, strlen(doing));
  (void)!write(2, "\n", 1);
  _exit(1);
}

/* ---- one call ---- */

/* What must not change: the values, shape and version of the tensor that a variant writes. */
typedef struct Before {
  tt_tensor* t;
  char* bytes;
  int64_t n, version;
} Before;
static Before remember(tt_tensor* t) {
  Before b = {.t = t};
  if (!t || tt_tensor_device_type(t) != TT_CPU) return b;
  b.n = tt_tensor_numel(t) * tt_dtype_size(tt_tensor_dtype(t));
  b.version = tt_tensor_version(t);
  b.bytes = malloc((size_t)b.n + 1);
  OK(tt_tensor_read(c, t, b.bytes, b.n));
  return b;
}
static int is_changed(Before* b) {
  char* now;
  int changed;
  if (!b->bytes) return 0;
  now = malloc((size_t)b->n + 1);
  OK(tt_tensor_read(c, b->t, now, b->n));
  changed = memcmp(now, b->bytes, (size_t)b->n) != 0 || tt_tensor_version(b->t) != b->version;
  free(now);
  free(b->bytes);
  return changed;
}

static void wrong(const char* text) {
  n_wrong++;
  print_error("%s: %s: %s\n", doing, text, tt_ctx_error(c)->message);
}

/* Calls row->name + suffix with s's arguments and n_more tensors behind them; `written` is the
 * tensor it writes. */
static tt_status call(const Sample* s, const char* suffix, tt_tensor** more, int n_more,
                      tt_tensor* written, tt_tensor** outs, int64_t* n_outs) {
  tt_value args[kMaxArgs + kMaxOuts];
  char name[96];
  const tt_op* op;
  Before before;
  tt_status st;
  const int n = s->row->n_args;
  int i;
  snprintf(name, sizeof name, "%s%s", s->row->name, suffix);
  OK(tt_op_find(c, name, &op));
  memcpy(args, s->args, (size_t)n * sizeof *args);
  point_to_items(s, args);
  for (i = 0; i < n_more; i++) {
    memset(&args[n + i], 0, sizeof *args);
    args[n + i].tag = TT_VAL_TENSOR;
    args[n + i].tensor = more[i];
  }
  before = remember(written);
  for (i = 0; i < kMaxOuts; i++) outs[i] = written;
  if (traced) fprintf(stderr, "%s, variant \"%s\"\n", doing, suffix);
  begin_call();
  st = tt_op_call(c, op, args, n + n_more, outs, kMaxOuts, n_outs);
  end_call();
  n_calls++;
  if (!st) {
    n_accepted++;
    free(before.bytes);
    return st;
  }
  if (st == TT_INTERNAL) wrong("an internal error");
  for (i = 0; i < kMaxOuts; i++)
    if (outs[i]) wrong("fails and leaves a result");
  if (is_changed(&before)) wrong("fails and changes what it should have written");
  return st;
}

static tt_tensor* clone_of(const tt_tensor* t) {
  tt_tensor* out;
  OK(tt_clone(c, t, NULL, &out));
  return out;
}
static tt_tensor* to_device(const tt_tensor* t, int type) {
  const tt_to_opts to = {.set = TT_TO_DEVICE, .device = {type, 0}};
  tt_tensor* out;
  OK(tt_to(c, t, &to, &out));
  return out;
}
/* NULL if t cannot be converted. */
static tt_tensor* cast(const tt_tensor* t, tt_dtype d) {
  const tt_to_opts to = {.set = TT_TO_DTYPE, .dtype = d};
  tt_tensor* out;
  return tt_to(c, t, &to, &out) ? NULL : out;
}

/* The gradient of the sum of the results, if there is one. */
static void differentiate(Sample* s) {
  tt_tensor **places[kMaxTensors], *outs[kMaxOuts], *leaf = NULL, *sum, *grad;
  const tt_grad_opts unused = {.set = TT_GRAD_ALLOW_UNUSED, .allow_unused = 1};
  int64_t n_outs = 0, k;
  int i;
  const int n = tensor_places(s, places);
  for (i = 0; i < n && !leaf; i++) {
    if (tt_tensor_dtype(*places[i]) != TT_F64) continue;
    *places[i] = leaf = clone_of(*places[i]);
    OK(tt_requires_grad_(c, leaf, 1));
  }
  if (!leaf || s->row->n_outs == 0 || call(s, "", NULL, 0, NULL, outs, &n_outs)) return;
  for (k = 0; k < n_outs; k++) {
    if (!outs[k] || !tt_tensor_requires_grad(outs[k]) || tt_tensor_numel(outs[k]) > kLongSum ||
        tt_sum(c, outs[k], NULL, &sum))
      continue;
    begin_call();
    if (traced) fprintf(stderr, "%s, gradient\n", doing);
    if (tt_grad(c, LIST(sum), (const tt_tensor* const[]){leaf}, 1, &unused, &grad) == TT_INTERNAL)
      wrong("an internal error of the gradient");
    end_call();
    break;
  }
}

static const tt_tensor* first_tensor(const Sample* s) {
  return s->args[0].tag == TT_VAL_TENSOR ? s->args[0].tensor : NULL;
}

/* Calls all variants of the operator on s. `usual`: the results of the original sample. */
static void try_variants(const Sample* s, tt_tensor** usual, int n_usual) {
  tt_tensor* outs[kMaxOuts];
  tt_tensor* none[kMaxOuts];
  tt_tensor* dst[kMaxOuts] = {NULL};
  int64_t n_outs = 0, n_none = 0;
  Sample t = *s;
  int k, n_dst = n_usual;
  tt_status st;
  OK(tt_scope_push(c));
  OK(tt_manual_seed(c, 3));
  if (s->row->n_outs == 0 && first_tensor(s)) t.args[0].tensor = clone_of(first_tensor(s));
  st = call(&t, "", NULL, 0, s->row->n_outs == 0 ? t.args[0].tensor : NULL, outs, &n_outs);
  if (!st && s->row->differentiable) {
    t = *s;
    differentiate(&t);
  }
  if (s->row->into) {
    if (!st) n_dst = (int)n_outs;
    for (k = 0; k < n_dst; k++) dst[k] = clone_of(st ? usual[k] : outs[k]);
    call(s, "_into", dst, n_dst, n_dst ? dst[0] : NULL, none, &n_none);
    for (k = 0; k < n_dst; k++) dst[k] = to_device(usual[k], TT_META);
    call(s, "_into", dst, n_dst, NULL, none, &n_none);
  }
  if (s->row->inplace && first_tensor(s)) {
    t = *s;
    t.args[0].tensor = clone_of(first_tensor(s));
    call(&t, "_", NULL, 0, t.args[0].tensor, none, &n_none);
  }
  OK(tt_scope_pop(c, NULL, 0));
}

/* ---- replacements ---- */

typedef struct Replaced {
  const char* what; /* NULL: there are no more */
  Sample s;
} Replaced;

static int is_list(const char* type) {
  return strncmp(type, "Dims", 4) == 0 || strcmp(type, "Size") == 0 || strcmp(type, "Shape") == 0 ||
         strcmp(type, "Int[]") == 0;
}
static int is_integer(const char* type) {
  return strncmp(type, "Int", 3) == 0 || strcmp(type, "Dim") == 0 || strcmp(type, "Dim?") == 0 ||
         strncmp(type, "Index", 5) == 0 || strncmp(type, "Enum", 4) == 0 ||
         strcmp(type, "MemoryFormat") == 0;
}
static int takes_integers(const char* type) {
  return strcmp(type, "Index[]") && (is_list(type) || is_integer(type));
}

static const int64_t kIntegers[] = {INT64_MIN,
                                    INT64_MIN + 1,
                                    -((int64_t)1 << 62),
                                    -1,
                                    0,
                                    1,
                                    (int64_t)1 << 31,
                                    (int64_t)1 << 60,
                                    ((int64_t)1 << 61) + 1,
                                    (int64_t)1 << 62,
                                    INT64_MAX - 1,
                                    INT64_MAX};
enum { kNumIntegers = sizeof kIntegers / sizeof *kIntegers };

/* Argument i of s becomes v, or a list of n such values; if n is negative, entry -1 - n of the
   list becomes v. Returns 0 if there is no such entry. */
static int put_integer(Sample* s, int i, int64_t v, int n) {
  const tt_value old = s->args[i];
  int64_t k;
  memset(&s->args[i], 0, sizeof s->args[i]);
  if (!is_list(s->row->args[i].type)) {
    s->args[i].tag = TT_VAL_INT;
    s->args[i].i = v;
    return 1;
  } else {
    const int64_t entry = -1 - n;
    const int64_t length = n < 0 ? old.n : n;
    int64_t* list = scratch((size_t)(length + 1) * sizeof *list);
    if (n < 0 && (old.tag != TT_VAL_INTS || entry >= old.n)) return 0;
    for (k = 0; k < length; k++) list[k] = n < 0 && k != entry ? old.ints[k] : v;
    s->args[i].tag = TT_VAL_INTS;
    s->args[i].ints = list;
    s->args[i].n = length;
    return 1;
  }
}

static void replace_integers(const Sample* s, tt_tensor** usual, int n_usual) {
  const Row* r = s->row;
  int i, j, v, w, n;
  for (i = 0; i < r->n_args; i++) {
    if (!takes_integers(r->args[i].type)) continue;
    for (n = is_list(r->args[i].type) ? -4 : 1; n <= (is_list(r->args[i].type) ? 3 : 1); n++)
      for (v = 0; v < kNumIntegers; v++) {
        Sample t = *s;
        snprintf(doing, sizeof doing, "%s, sample \"%s\", %s = %lld (%d of them)", r->name, s->what,
                 r->args[i].name, (long long)kIntegers[v], n);
        if (put_integer(&t, i, kIntegers[v], n)) try_variants(&t, usual, n_usual);
      }
    for (j = 0; j < i; j++) {
      if (!takes_integers(r->args[j].type)) continue;
      for (v = 0; v < kNumIntegers; v++)
        for (w = v % 2; w < kNumIntegers; w += SLOW_BUILD ? 3 : 1) {
          Sample t = *s;
          snprintf(doing, sizeof doing, "%s, sample \"%s\", %s = %lld, %s = %lld", r->name, s->what,
                   r->args[i].name, (long long)kIntegers[v], r->args[j].name,
                   (long long)kIntegers[w]);
          put_integer(&t, i, kIntegers[v], 1);
          put_integer(&t, j, kIntegers[w], 1);
          try_variants(&t, usual, n_usual);
        }
    }
  }
}

static void replace_numbers(const Sample* s, tt_tensor** usual, int n_usual) {
  static const double kReals[] = {0, -1, NAN, INFINITY, -INFINITY, 1e308, 5e-324};
  const Row* r = s->row;
  int i;
  size_t v;
  for (i = 0; i < r->n_args; i++) {
    const int real = strncmp(r->args[i].type, "Float", 5) == 0;
    const int scalar = strncmp(r->args[i].type, "Scalar", 6) == 0;
    for (v = 0; (real || scalar) && v < sizeof kReals / sizeof *kReals; v++) {
      Sample t = *s;
      memset(&t.args[i], 0, sizeof t.args[i]);
      t.args[i].tag = TT_VAL_FLOAT;
      t.args[i].f = kReals[v];
      snprintf(doing, sizeof doing, "%s, sample \"%s\", %s = %g", r->name, s->what, r->args[i].name,
               kReals[v]);
      try_variants(&t, usual, n_usual);
    }
    for (v = 0; scalar && v < kNumIntegers; v++) {
      Sample t = *s;
      memset(&t.args[i], 0, sizeof t.args[i]);
      t.args[i].tag = TT_VAL_INT;
      t.args[i].i = kIntegers[v];
      snprintf(doing, sizeof doing, "%s, sample \"%s\", %s = %lld", r->name, s->what,
               r->args[i].name, (long long)kIntegers[v]);
      try_variants(&t, usual, n_usual);
    }
  }
}

/* A number outside its enumeration is refused by the argument's name. */
static void replace_enumerators(const Sample* s) {
  static const int64_t kNumbers[] = {-1, 64, 100000, (int64_t)1 << 32, INT64_MIN, INT64_MAX};
  const Row* r = s->row;
  tt_tensor* outs[kMaxOuts];
  int64_t n_outs;
  int i;
  size_t v;
  for (i = 0; i < r->n_args; i++) {
    if (strncmp(r->args[i].type, "Enum", 4)) continue;
    for (v = 0; v < sizeof kNumbers / sizeof *kNumbers; v++) {
      Sample t = *s;
      put_integer(&t, i, kNumbers[v], 1);
      snprintf(doing, sizeof doing, "%s, sample \"%s\", %s = %lld", r->name, s->what,
               r->args[i].name, (long long)kNumbers[v]);
      if (call(&t, "", NULL, 0, NULL, outs, &n_outs) != TT_INVALID_ARG ||
          strcmp(tt_ctx_error(c)->arg, r->args[i].name))
        wrong("a number that is no enumerator is not refused by name");
    }
  }
}

static tt_tensor* of_shape(const int64_t* shape, int64_t ndim, tt_dtype d, int type) {
  const tt_ones_opts opts = {
      .set = TT_ONES_DTYPE | TT_ONES_DEVICE, .dtype = d, .device = {type, 0}};
  tt_tensor* t;
  OK(tt_ones(c, shape, ndim, &opts, &t));
  return t;
}

/* Integers of t's shape. */
static tt_tensor* filled_with(const tt_tensor* t, int64_t v) {
  const tt_scalar s = int_scalar(v);
  const tt_full_opts opts = {.set = TT_FULL_DTYPE, .dtype = TT_I64};
  tt_tensor* out;
  OK(tt_full_scalar(c, tt_tensor_shape(t), tt_tensor_ndim(t), &s, &opts, &out));
  return out;
}

/* Without elements; with elements, sizes or strides in bytes would overflow. */
static tt_tensor* empty_but_wide(const tt_tensor* t, int kind) {
  const int64_t ndim = tt_tensor_ndim(t);
  int64_t shape[kMaxDims], strides[kMaxDims], d;
  tt_tensor* out;
  if (ndim < 2 || ndim > kMaxDims) return NULL;
  for (d = 0; d < ndim; d++) {
    shape[d] = 1;
    if (kind < 2) shape[d] = (int64_t)1 << 62 / (ndim - 1);
    if (kind == 4) shape[d] = tt_tensor_shape(t)[d];
    strides[d] = INT64_MAX - d;
  }
  shape[kind % 2 ? ndim - 1 : 0] = 0;
  if (kind == 2 || kind == 3) shape[kind % 2 ? 0 : ndim - 1] = INT64_MAX;
  if (kind < 4) return of_shape(shape, ndim, tt_tensor_dtype(t), TT_CPU);
  OK(tt_as_strided(c, t, shape, ndim, strides, ndim, NULL, &out));
  return out;
}

enum { kTensorKinds = 22 };
/* The replacement of t; NULL: none. */
static tt_tensor* stand_in(const tt_tensor* t, int kind) {
  static const int64_t kOnes[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  static const int64_t kZero[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  const tt_dtype d = tt_tensor_dtype(t);
  const int64_t ndim = tt_tensor_ndim(t);
  tt_tensor *one, *wide;
  switch (kind) {
    case 0: return to_device(t, TT_META);
    case 1: return of_shape(kOnes, 0, d, TT_CPU);
    case 2: return of_shape(kOnes, 0, d, TT_META);
    case 3: return of_shape(kOnes, 8, d, TT_CPU);
    case 4: return of_shape(kZero, ndim, d, TT_CPU);
    case 5: return of_shape(kOnes, ndim, d, TT_CPU);
    case 6: return of_shape(kZero, 1, d, TT_CPU);
    case 7: return cast(t, TT_BOOL);
    case 8: return cast(t, TT_C64);
    case 9: return cast(t, TT_I64);
    case 10: return cast(t, TT_F16);
    case 11: return cast(t, TT_U8);
    case 12:
      one = of_shape(kOnes, ndim, d, TT_CPU);
      return tt_expand(c, one, tt_tensor_shape(t), ndim, &wide) ? NULL : wide;
    case 13: return tt_unsqueeze(c, t, 0, &wide) ? NULL : wide;
    case 14: return ndim == 0 || tt_select(c, t, 0, 0, &wide) ? NULL : wide;
    case 15: return filled_with(t, INT64_MIN);
    case 16: return filled_with(t, -1);
    case 17:
    case 18:
    case 19:
    case 20:
    case 21: return empty_but_wide(t, kind - 17);
  }
  return NULL;
}
/* Several arguments at once, at random. */
static uint64_t chance_now;
static int64_t chance(int64_t below) { /* Knuth's MMIX generator */
  chance_now = chance_now * 6364136223846793005u + 1442695040888963407u;
  return (int64_t)((chance_now >> 33) % (uint64_t)below);
}
/* Replaces some tensors of s at random and appends what they become to a message of length `at`. */
static void replace_some_tensors(Sample* s, int at) {
  tt_tensor** places[kMaxTensors];
  const int n = tensor_places(s, places);
  int i;
  for (i = 0; i < n; i++) {
    const int kind = (int)chance(kTensorKinds + 6);
    tt_tensor* changed = stand_in(*places[i], kind);
    if (changed) *places[i] = changed;
    at = describe(at, ", tensor %d is of kind %d", i, kind);
  }
}
static void replace_many(const Sample* s, tt_tensor** usual, int n_usual) {
  const Row* r = s->row;
  int trial, i, n_integers = 0;
  for (i = 0; i < r->n_args; i++) n_integers += takes_integers(r->args[i].type);
  chance_now = 1;
  for (trial = 0; trial < kTrials / share() * (1 + n_integers); trial++) {
    Sample t = *s;
    int at = describe(0, "%s, sample \"%s\", trial %d", r->name, s->what, trial);
    OK(tt_scope_push(c));
    for (i = 0; i < r->n_args; i++) {
      const int64_t v = chance(3) ? kIntegers[chance(kNumIntegers)] : chance(4);
      if (strcmp(r->args[i].type, "Bool") == 0 && chance(2)) {
        memset(&t.args[i], 0, sizeof t.args[i]);
        t.args[i].tag = TT_VAL_BOOL;
        t.args[i].i = chance(2);
      } else if (takes_integers(r->args[i].type) && chance(2)) {
        put_integer(&t, i, v, is_list(r->args[i].type) ? (int)chance(4) : 1);
        at = describe(at, ", %s = %lld", r->args[i].name, (long long)v);
      }
    }
    if (!n_integers || chance(2)) replace_some_tensors(&t, at);
    try_variants(&t, usual, n_usual);
    OK(tt_scope_pop(c, NULL, 0));
  }
}

static void replace_tensors(const Sample* s, tt_tensor** usual, int n_usual) {
  Sample plain = *s;
  tt_tensor** places[kMaxTensors];
  const int n = tensor_places(&plain, places);
  int i, k, points, others, kind;
  for (points = 0; points < 2; points++) /* all tensors as they are, or 0-dimensional */
    for (i = 0; i < n; i++)
      for (others = 0; others < 2; others++) /* as they are, or on META */
        for (kind = -1; kind < kTensorKinds; kind++) {
          Sample t = *s;
          tt_tensor* changed;
          OK(tt_scope_push(c));
          tensor_places(&t, places);
          for (k = 0; points && k < n; k++) *places[k] = stand_in(*places[k], 1);
          changed = kind < 0 ? *places[i] : stand_in(*places[i], kind);
          for (k = 0; others && k < n; k++) *places[k] = to_device(*places[k], TT_META);
          *places[i] = changed;
          snprintf(doing, sizeof doing, "%s, sample \"%s\", tensor %d is of kind %d%s%s",
                   s->row->name, s->what, i, kind, points ? ", all have no dimension" : "",
                   others ? ", the others are on META" : "");
          if (changed) try_variants(&t, usual, n_usual);
          OK(tt_scope_pop(c, NULL, 0));
        }
}

/* All tensors with one dimension cut to 0 or 1 elements, counted from the front and from the
   back. */
static void replace_sizes(const Sample* s, tt_tensor** usual, int n_usual) {
  Sample t;
  tt_tensor** places[kMaxTensors];
  int i, from;
  for (from = -4; from < 4; from++) {
    int64_t size;
    for (size = 0; size < 2; size++) {
      int n, changed = 0;
      t = *s;
      n = tensor_places(&t, places);
      OK(tt_scope_push(c));
      for (i = 0; i < n; i++) {
        const int64_t ndim = tt_tensor_ndim(*places[i]);
        const int64_t dim = from < 0 ? ndim + from : from;
        tt_tensor* cut;
        if (dim < 0 || dim >= ndim || tt_narrow(c, *places[i], dim, 0, size, &cut)) continue;
        OK(tt_contiguous(c, cut, places[i]));
        changed = 1;
      }
      snprintf(doing, sizeof doing, "%s, sample \"%s\", dimension %d of all tensors has size %d",
               s->row->name, s->what, from, (int)size);
      if (changed) try_variants(&t, usual, n_usual);
      OK(tt_scope_pop(c, NULL, 0));
    }
  }
}

/* ---- rows ---- */

static void try_sample(const Sample* s, void* user) {
  tt_tensor* usual[kMaxOuts];
  int64_t n_usual = 0;
  Sample t = *s;
  (void)user;
  if (s->big || samples_left-- <= 0) return;
  OK(tt_scope_push(c));
  snprintf(doing, sizeof doing, "%s, sample \"%s\"", s->row->name, s->what);
  if (s->row->n_outs == 0) t.args[0].tensor = clone_of(s->args[0].tensor);
  OK(call(&t, "", NULL, 0, NULL, usual, &n_usual));
  replace_integers(s, usual, (int)n_usual);
  replace_many(s, usual, (int)n_usual);
  replace_numbers(s, usual, (int)n_usual);
  replace_enumerators(s);
  replace_tensors(s, usual, (int)n_usual);
  replace_sizes(s, usual, (int)n_usual);
  OK(tt_scope_pop(c, NULL, 0));
  scratch_clear();
}
static void test_row(void** state) {
  const Row* r = *state;
  n_wrong = 0;
  samples_left = kSamplesPerRow;
  OK(tt_set_memory_limit(c, kMemoryLimit));
  each_sample(r, try_sample, NULL);
  assert_int_equal(n_wrong, 0);
}

int main(int argc, char** argv) {
  struct CMUnitTest* tests = calloc((size_t)kNumRows, sizeof *tests);
  int i, n = 0, failed;
  traced = getenv("TT_HOSTILE_TRACE") != NULL;
  end_call();
  signal(SIGALRM, on_alarm);
  alarm(kSecondsPerAlarm);
  for (i = 0; i < kNumRows; i++) {
    if (argc > 1 && strcmp(argv[1], kRows[i].name)) continue;
    tests[n].name = kRows[i].name;
    tests[n].test_func = test_row;
    tests[n].setup_func = open_plain;
    tests[n].teardown_func = close_ctx;
    tests[n++].initial_state = (void*)&kRows[i];
  }
  failed = _cmocka_run_group_tests("op_hostile", tests, (size_t)n, NULL, NULL);
  print_message("%d operators, %d calls, %d of them accepted\n", n, n_calls, n_accepted);
  free(tests);
  return failed;
}
