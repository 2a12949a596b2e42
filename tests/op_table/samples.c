/* Sample builders, one per family. Each holds what its operators must get right: broadcasting,
   0-dim and empty tensors, kinks, ±0, inf, nan, extremes; layouts other than row-major are made of
   every sample by op_table_test.c. */
#include "op_table.h"

#include <math.h>

typedef struct Build {
  const Row* row;
  SampleFn fn;
  void* user;
} Build;

int row_arg(const Row* r, const char* name) {
  int i;
  for (i = 0; i < r->n_args; i++)
    if (strcmp(r->args[i].name, name) == 0) return i;
  fail_msg("%s has no argument %s", r->name, name);
  return -1;
}
static int has_arg(const Row* r, const char* name) {
  int i;
  for (i = 0; i < r->n_args; i++)
    if (strcmp(r->args[i].name, name) == 0) return 1;
  return 0;
}
int is_random(const Row* r) { /* attention: only with dropout, which its samples leave out */
  return has_arg(r, "generator") && !has_arg(r, "attn_mask");
}

/* ---- values ---- */

#define S_(...) \
  (const int64_t[]){__VA_ARGS__}, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static uint64_t seed_now = 1;
static double uniform(void) { /* SplitMix64 */
  uint64_t z = (seed_now += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}
static int64_t count(const int64_t* shape, int ndim) {
  int64_t n = 1;
  int i;
  for (i = 0; i < ndim; i++) n *= shape[i];
  return n;
}
static tt_tensor* filled(const int64_t* shape, int ndim, double (*value)(int64_t i)) {
  const int64_t n = count(shape, ndim);
  double* v = malloc((size_t)(n + 1) * sizeof *v);
  tt_tensor* t;
  int64_t i;
  for (i = 0; i < n; i++) v[i] = value(i);
  t = make(TT_F64, shape, ndim, v, n);
  free(v);
  return t;
}
/* Smooth values: |x| in [0.2, 1.7], no two of a sample nearly equal. */
static double signed_value(int64_t i) {
  const double x = 0.2 + 1.5 * uniform();
  (void)i;
  return uniform() < 0.5 ? -x : x;
}
static double positive_value(int64_t i) {
  (void)i;
  return 0.2 + 1.5 * uniform();
}
static tt_tensor* signed_(const int64_t* shape, int ndim) {
  return filled(shape, ndim, signed_value);
}
static tt_tensor* positive(const int64_t* shape, int ndim) {
  return filled(shape, ndim, positive_value);
}
static double special_value(int64_t i) {
  static const double kSpecial[] = {0,  -0.0, 1,       -1,   0.5,   INFINITY, -INFINITY, NAN, 3, -2,
                                    20, -30,  0x1p-10, 7.25, -7.25, 2,        0x1p-30,   100};
  return kSpecial[i % 18];
}
static double special_other(int64_t i) { return special_value(i * 5 + i / 18 + 2); }
static tt_tensor* indices(const int64_t* shape, int ndim, int64_t below) {
  const int64_t n = count(shape, ndim);
  int64_t *v = malloc((size_t)(n + 1) * sizeof *v), i;
  tt_tensor* t;
  for (i = 0; i < n; i++) v[i] = (int64_t)(uniform() * (double)below);
  OK(tt_tensor_from_data(c, v, TT_I64, shape, ndim, &t));
  free(v);
  return t;
}
static tt_tensor* mask(const int64_t* shape, int ndim) {
  const int64_t n = count(shape, ndim);
  uint8_t* v = malloc((size_t)n + 1);
  tt_tensor* t;
  int64_t i;
  for (i = 0; i < n; i++) v[i] = uniform() < 0.5;
  OK(tt_tensor_from_data(c, v, TT_BOOL, shape, ndim, &t));
  free(v);
  return t;
}

static tt_value tensor_value(tt_tensor* t) {
  tt_value v = {0};
  v.tag = TT_VAL_TENSOR;
  v.tensor = t;
  return v;
}
static tt_value int_value(int64_t i) {
  tt_value v = {0};
  v.tag = TT_VAL_INT;
  v.i = i;
  return v;
}
static tt_value bool_value(int b) {
  tt_value v = {0};
  v.tag = TT_VAL_BOOL;
  v.i = b;
  return v;
}
static tt_value float_value(double f) {
  tt_value v = {0};
  v.tag = TT_VAL_FLOAT;
  v.f = f;
  return v;
}
static tt_value scalar_value(double f) {
  tt_value v = {0};
  v.tag = TT_VAL_SCALAR;
  v.scalar = real_scalar(f);
  return v;
}
static tt_value ints_value(const int64_t* p, int n) {
  tt_value v = {0};
  int64_t* copy = scratch((size_t)(n + 1) * sizeof *copy);
  if (n) memcpy(copy, p, (size_t)n * sizeof *copy);
  v.tag = TT_VAL_INTS;
  v.ints = copy;
  v.n = n;
  return v;
}

/* ---- samples ---- */

static Sample blank(const Build* b, const char* what, int smooth) {
  Sample s;
  memset(&s, 0, sizeof s);
  s.row = b->row;
  s.what = what;
  s.smooth = smooth;
  return s;
}
static void put(Sample* s, const char* arg, tt_value v) { s->args[row_arg(s->row, arg)] = v; }
static void emit(const Build* b, const Sample* s) { b->fn(s, b->user); }

/* The i-th tensor argument (required or not). */
static int nth_tensor(const Row* r, int nth) {
  int i;
  for (i = 0; i < r->n_args; i++)
    if (strncmp(r->args[i].type, "Tensor", 6) == 0 && !strchr(r->args[i].type, '[') && nth-- == 0)
      return i;
  return -1;
}
static Sample one(const Build* b, const char* what, int smooth, tt_tensor* t) {
  Sample s = blank(b, what, smooth);
  s.args[nth_tensor(b->row, 0)] = tensor_value(t);
  return s;
}

/* Fills the numbers that have no default: Scalar arguments of scalar forms. */
static void numbers_for(Sample* s, double v) {
  int i;
  for (i = 0; i < s->row->n_args; i++) {
    const RowArg* a = &s->row->args[i];
    if (strcmp(a->type, "Scalar") == 0 && !a->has_default) s->args[i] = scalar_value(v);
  }
}

/* ---- elementwise ---- */

static void unary_of(const Build* b, double (*smooth_value)(int64_t)) {
  const struct {
    const char* what;
    int64_t shape[3];
    int ndim;
  } kShapes[] = {{"0-dim", {0}, 0},          {"vector", {5}, 1},      {"matrix", {2, 3}, 2},
                 {"one element", {1, 1}, 2}, {"empty", {2, 0, 3}, 3}, {"tail", {67}, 1}};
  size_t i;
  Sample s;
  for (i = 0; i < sizeof kShapes / sizeof *kShapes; i++) {
    s = one(b, kShapes[i].what, count(kShapes[i].shape, kShapes[i].ndim) < 10,
            filled(kShapes[i].shape, kShapes[i].ndim, smooth_value));
    numbers_for(&s, 1.5);
    emit(b, &s);
  }
  s = one(b, "special values", 0, filled(S_(36), special_value));
  s.special = 1;
  numbers_for(&s, -0.75);
  emit(b, &s);
  s = one(b, "big", 0, filled(S_(300, 1001), smooth_value));
  s.big = 1;
  numbers_for(&s, 3);
  emit(b, &s);
}
static void build_unary(const Build* b) { unary_of(b, signed_value); }
static void build_positive(const Build* b) { unary_of(b, positive_value); }

/* One sample of a two-operand operator, its tensors or numbers in order. */
static void pair(const Build* b, const char* what, int smooth, int special, tt_tensor* x,
                 tt_tensor* y) {
  const Row* r = b->row;
  int mode, modes = has_arg(r, "rounding_mode") ? 3 : has_arg(r, "alpha") ? 2 : 1;
  for (mode = 0; mode < modes; mode++) {
    Sample s = blank(b, what, smooth);
    int i, nth = 0;
    for (i = 0; i < r->n_args; i++) {
      const RowArg* a = &r->args[i];
      if (strcmp(a->type, "Tensor") == 0) s.args[i] = tensor_value(nth++ == 0 && i == 0 ? x : y);
      if (strcmp(a->type, "Scalar") == 0 && !a->has_default)
        s.args[i] = scalar_value(i == 0 ? 1.75 : special ? -0.5 : 2);
    }
    if (mode && has_arg(r, "rounding_mode")) put(&s, "rounding_mode", int_value(mode));
    if (mode && has_arg(r, "alpha")) put(&s, "alpha", scalar_value(3));
    s.special = special;
    emit(b, &s);
  }
}

static void build_binary(const Build* b) {
  Sample s;
  pair(b, "equal shapes", 1, 0, positive(S_(2, 3)), signed_(S_(2, 3)));
  pair(b, "row and column", 1, 0, positive(S_(3, 1)), signed_(S_(1, 2)));
  pair(b, "vector to matrix", 1, 0, positive(S_(2, 3)), positive(S_(3)));
  pair(b, "0-dim", 1, 0, positive(NULL, 0), positive(NULL, 0));
  pair(b, "0-dim to vector", 1, 0, positive(S_(4)), positive(NULL, 0));
  pair(b, "vector to 0-dim", 1, 0, positive(NULL, 0), positive(S_(4)));
  pair(b, "empty", 1, 0, positive(S_(0, 3)), positive(S_(1, 3)));
  pair(b, "tail", 0, 0, positive(S_(67)), signed_(S_(67)));
  pair(b, "special values", 0, 1, filled(S_(18 * 18), special_value),
       filled(S_(18 * 18), special_other));
  s = blank(b, "big", 0);
  pair(b, "equal values", 0, 0, make(TT_F64, SHAPE(3), DATA(1, 2, 3)),
       make(TT_F64, SHAPE(3), DATA(1, 3, 2)));
  s.args[0] = strcmp(b->row->args[0].type, "Tensor") ? scalar_value(1.5)
                                                     : tensor_value(positive(S_(300, 1001)));
  s.args[1] =
      strcmp(b->row->args[1].type, "Tensor") ? scalar_value(1.5) : tensor_value(positive(S_(1001)));
  s.big = 1;
  emit(b, &s);
}

static void build_where(const Build* b) {
  const struct {
    tt_tensor *m, *x, *y;
    int smooth, big;
  } kCases[] = {{mask(S_(2, 3)), signed_(S_(2, 3)), signed_(S_(2, 3)), 1, 0},
                {mask(S_(2, 1)), signed_(S_(3)), signed_(NULL, 0), 1, 0},
                {mask(NULL, 0), signed_(S_(3)), signed_(S_(2, 1)), 1, 0},
                {mask(S_(0)), signed_(S_(1)), signed_(S_(0)), 1, 0},
                {mask(S_(36)), filled(S_(36), special_value), filled(S_(36), special_other), 0, 0},
                {mask(S_(300, 1001)), signed_(S_(300, 1001)), signed_(S_(300, 1)), 0, 1}};
  size_t i;
  for (i = 0; i < sizeof kCases / sizeof *kCases; i++) {
    Sample s = blank(b, "where", kCases[i].smooth);
    s.args[0] = tensor_value(kCases[i].m);
    s.args[1] = tensor_value(kCases[i].x);
    s.args[2] = tensor_value(kCases[i].y);
    s.big = kCases[i].big;
    s.special = !s.smooth;
    emit(b, &s);
  }
}

static void build_clamp(const Build* b) {
  const int tensors = strcmp(b->row->args[1].type, "Scalar?") != 0;
  int which;
  Sample s;
  for (which = 1; which <= 3; which++) { /* min, max, both */
    s = one(b, "bounds", 1, signed_(S_(2, 5)));
    if (which & 1)
      put(&s, "min",
          tensors ? tensor_value(make(TT_F64, SHAPE(2, 1), DATA(-0.11, 0.13)))
                  : scalar_value(-0.6));
    if (which & 2)
      put(&s, "max",
          tensors ? tensor_value(make(TT_F64, SHAPE(5), DATA(0.5, 1, 0.3, 0.05, 0.9)))
                  : scalar_value(0.85));
    emit(b, &s);
    s = one(b, "special values", 0, filled(S_(36), special_value));
    s.special = 1;
    if (which & 1) put(&s, "min", tensors ? tensor_value(number(TT_F64, -1)) : scalar_value(-1));
    if (which & 2) put(&s, "max", tensors ? tensor_value(number(TT_F64, 1)) : scalar_value(1));
    emit(b, &s);
  }
  s = one(b, "empty", 1, signed_(S_(0)));
  put(&s, "min", tensors ? tensor_value(number(TT_F64, -1)) : scalar_value(-1));
  emit(b, &s);
  s = one(b, "big", 0, signed_(S_(300, 1001)));
  s.big = 1;
  put(&s, "max", tensors ? tensor_value(number(TT_F64, 0.5)) : scalar_value(0.5));
  emit(b, &s);
}

static void build_masked(const Build* b) {
  const int tensor = strcmp(b->row->args[2].type, "Tensor") == 0;
  const struct {
    tt_tensor *x, *m;
    int smooth, big;
  } kCases[] = {{signed_(S_(2, 3)), mask(S_(2, 3)), 1, 0},
                {signed_(S_(2, 3)), mask(S_(3)), 1, 0},
                {signed_(S_(3)), mask(S_(2, 1)), 1, 0},
                {signed_(NULL, 0), mask(NULL, 0), 1, 0},
                {signed_(S_(2, 0)), mask(S_(0)), 1, 0},
                {filled(S_(36), special_value), mask(S_(36)), 0, 0},
                {signed_(S_(300, 1001)), mask(S_(1001)), 0, 1}};
  size_t i;
  for (i = 0; i < sizeof kCases / sizeof *kCases; i++) {
    Sample s = one(b, "masked", kCases[i].smooth, kCases[i].x);
    s.args[1] = tensor_value(kCases[i].m);
    s.args[2] = tensor ? tensor_value(number(TT_F64, 1.5)) : scalar_value(i == 5 ? INFINITY : 2);
    s.big = kCases[i].big;
    s.special = i == 5;
    emit(b, &s);
  }
}

/* ---- copies, casts, creation ---- */

static void build_copy(const Build* b) {
  const struct {
    tt_tensor *dst, *src;
    int smooth;
  } kCases[] = {{signed_(S_(2, 3)), signed_(S_(2, 3)), 1},
                {signed_(S_(2, 3)), signed_(S_(3)), 1},
                {signed_(S_(2, 3)), signed_(NULL, 0), 1},
                {signed_(S_(0)), signed_(S_(1)), 1},
                {signed_(S_(36)), filled(S_(36), special_value), 0}};
  size_t i;
  for (i = 0; i < sizeof kCases / sizeof *kCases; i++) {
    Sample s = one(b, "copy", kCases[i].smooth, kCases[i].dst);
    s.args[1] = tensor_value(kCases[i].src);
    s.special = !s.smooth;
    emit(b, &s);
  }
}

static void build_cast(const Build* b) {
  static const tt_dtype kTo[] = {TT_BOOL, TT_I32, TT_F16, TT_BF16, TT_F32, TT_F64, TT_C64, TT_C128};
  size_t i;
  Sample s = one(b, "nothing to do", 1, signed_(S_(2, 3)));
  emit(b, &s);
  for (i = 0; i < sizeof kTo / sizeof *kTo; i++) {
    s = one(b, "dtype", kTo[i] == TT_F64, signed_(S_(2, 3)));
    put(&s, "dtype", int_value(kTo[i]));
    put(&s, "copy", bool_value((int)i % 2));
    emit(b, &s);
  }
}

static void build_factory(const Build* b) {
  static const tt_dtype kOf[] = {TT_F32, TT_F64, TT_BF16, TT_I64, TT_BOOL, TT_C64};
  const Row* r = b->row;
  size_t i;
  for (i = 0; i < sizeof kOf / sizeof *kOf; i++) {
    Sample s = blank(b, "of a dtype", 0);
    if (has_arg(r, "size"))
      put(&s, "size",
          i % 3 == 2 ? ints_value(S_(2, 0))
          : i % 3    ? ints_value(NULL, 0)
                     : ints_value(S_(2, 3)));
    if (has_arg(r, "self")) put(&s, "self", tensor_value(signed_(S_(3, 2))));
    if (has_arg(r, "fill_value")) put(&s, "fill_value", scalar_value(1));
    if (has_arg(r, "start")) {
      put(&s, "start", scalar_value(-1));
      put(&s, "end", scalar_value(kOf[i] == TT_BOOL ? 1 : 5.5));
      if (i % 2) put(&s, "step", scalar_value(1.5));
    }
    if (i) put(&s, "dtype", int_value(kOf[i]));
    emit(b, &s);
  }
}

static void build_random(const Build* b) {
  const Row* r = b->row;
  const int factory = has_arg(r, "size");
  int k;
  for (k = 0; k < 3; k++) {
    Sample s = blank(b, k == 0 ? "small" : k == 1 ? "many" : "big", k == 0);
    const int64_t n[] = {7, 20000, 400001};
    if (factory) {
      put(&s, "size", ints_value(&n[k], 1));
    } else {
      tt_tensor *t = filled(&n[k], 1, positive_value), *p;
      OK(tt_mul_f64(c, t, 0.5, &p)); /* in [0.1, 0.85]: probabilities too */
      s.args[nth_tensor(r, 0)] = tensor_value(p);
      if (has_arg(r, "p")) put(&s, "p", float_value(0.25));
    }
    s.big = k == 2;
    emit(b, &s);
  }
}

/* ---- reductions ---- */

static void reduce_of(const Build* b, int empty_too) {
  const Row* r = b->row;
  const int one_dim = has_arg(r, "dim") && strcmp(r->args[row_arg(r, "dim")].type, "Dims") != 0;
  const int dims = has_arg(r, "dim") && !one_dim;
  int k, keep;
  for (k = 0; k < 6; k++) {
    for (keep = 0; keep < (has_arg(r, "keepdim") ? 2 : 1); keep++) {
      Sample s = one(b, "reduce", 1,
                     k == 5   ? signed_(NULL, 0)
                     : k == 4 ? signed_(S_(5))
                              : signed_(S_(2, 3, 2)));
      if (one_dim) put(&s, "dim", int_value(k >= 4 ? 0 : k == 3 ? -1 : k));
      if (dims) {
        static const int64_t kDims[] = {0, 2, 1, -1};
        put(&s, "dim",
            k == 0   ? ints_value(kDims, 2)
            : k == 1 ? ints_value(kDims + 2, 1)
            : k == 2 ? ints_value(NULL, 0)
            : k == 3 ? ints_value(kDims + 3, 1)
                     : ints_value(kDims, 1));
      }
      if (has_arg(r, "keepdim")) put(&s, "keepdim", bool_value(keep));
      emit(b, &s);
    }
  }
  for (k = 0; k < 3; k++) {
    Sample s = one(b,
                   k == 0   ? "special values"
                   : k == 1 ? "equal values"
                            : "long",
                   0,
                   k == 0   ? filled(S_(6, 6), special_value)
                   : k == 1 ? make(TT_F64, SHAPE(2, 4), DATA(1, 3, 3, 2, -1, -1, -5, -1))
                            : signed_(S_(40, 131)));
    if (one_dim) put(&s, "dim", int_value(1));
    if (dims) put(&s, "dim", ints_value(S_(1)));
    s.special = k == 0;
    emit(b, &s);
  }
  for (k = 0; k < 2 && empty_too; k++) {
    Sample s = one(b, "empty", 1, k ? signed_(S_(0, 2)) : signed_(S_(0)));
    if (dims) put(&s, "dim", ints_value(S_(0)));
    emit(b, &s);
  }
  for (k = 0; k < 2; k++) {
    Sample s = one(b, "big", 0, signed_(S_(700, 701)));
    if (one_dim) put(&s, "dim", int_value(k));
    if (dims) put(&s, "dim", k ? ints_value(S_(0)) : ints_value(S_(1)));
    s.big = 1;
    emit(b, &s);
  }
}
static void build_reduce(const Build* b) { reduce_of(b, 1); }
static void build_reduce_nonempty(const Build* b) { reduce_of(b, 0); }

/* ---- products ---- */

static void product(const Build* b, int smooth, int big, tt_tensor* x, tt_tensor* y) {
  Sample s = blank(b, "product", smooth);
  s.args[0] = tensor_value(x);
  s.args[1] = tensor_value(y);
  s.big = big;
  emit(b, &s);
}
static void build_matmul(const Build* b) {
  product(b, 1, 0, signed_(S_(2, 3)), signed_(S_(3, 2)));
  product(b, 1, 0, signed_(S_(3)), signed_(S_(3)));
  product(b, 1, 0, signed_(S_(3)), signed_(S_(3, 2)));
  product(b, 1, 0, signed_(S_(2, 3)), signed_(S_(3)));
  product(b, 1, 0, signed_(S_(2, 1, 2)), signed_(S_(2, 2, 2)));
  product(b, 1, 0, signed_(S_(2, 1, 1, 2)), signed_(S_(2, 2, 1)));
  product(b, 1, 0, signed_(S_(2, 2, 2)), signed_(S_(2)));
  product(b, 1, 0, signed_(S_(2)), signed_(S_(2, 2, 1)));
  product(b, 1, 0, signed_(S_(0, 3)), signed_(S_(3, 2)));
  product(b, 1, 0, signed_(S_(2, 0)), signed_(S_(0, 3)));
  product(b, 0, 0, signed_(S_(33, 65)), signed_(S_(65, 37)));
  product(b, 0, 0, signed_(S_(5, 9, 17)), signed_(S_(17, 8)));
  product(b, 0, 1, signed_(S_(190, 210)), signed_(S_(210, 230)));
}
static void build_linear(const Build* b) {
  const struct {
    tt_tensor *x, *w, *bias;
    int smooth, big;
  } kCases[] = {{signed_(S_(2, 3)), signed_(S_(2, 3)), signed_(S_(2)), 1, 0},
                {signed_(S_(2, 3)), signed_(S_(2, 3)), NULL, 1, 0},
                {signed_(S_(3)), signed_(S_(2, 3)), signed_(S_(2)), 1, 0},
                {signed_(S_(2, 2, 3)), signed_(S_(1, 3)), signed_(S_(1)), 1, 0},
                {signed_(S_(2, 3)), signed_(S_(3)), NULL, 1, 0},
                {signed_(S_(0, 3)), signed_(S_(2, 3)), signed_(S_(2)), 1, 0},
                {signed_(S_(3, 0)), signed_(S_(2, 0)), signed_(S_(2)), 1, 0},
                {signed_(S_(19, 70)), signed_(S_(33, 70)), signed_(S_(33)), 0, 0},
                {signed_(S_(190, 210)), signed_(S_(230, 210)), signed_(S_(230)), 0, 1}};
  size_t i;
  for (i = 0; i < sizeof kCases / sizeof *kCases; i++) {
    Sample s = blank(b, "linear", kCases[i].smooth);
    s.args[0] = tensor_value(kCases[i].x);
    s.args[1] = tensor_value(kCases[i].w);
    if (kCases[i].bias) s.args[2] = tensor_value(kCases[i].bias);
    s.big = kCases[i].big;
    emit(b, &s);
  }
}
static void build_addmm(const Build* b) {
  int k;
  for (k = 0; k < 6; k++) {
    Sample s = blank(b, "addmm", k < 4);
    const int64_t m = k == 4 ? 35 : k == 5 ? 190 : k == 3 ? 0 : 2;
    const int64_t n = k == 4 ? 41 : k == 5 ? 230 : 2;
    const int64_t p = k == 4 ? 66 : k == 5 ? 210 : 3;
    s.args[0] = tensor_value(k == 1   ? signed_(S_(n))
                             : k == 2 ? signed_(NULL, 0)
                                      : signed_(S_(m, n)));
    s.args[1] = tensor_value(signed_(S_(m, p)));
    s.args[2] = tensor_value(signed_(S_(p, n)));
    if (k == 1) {
      put(&s, "beta", scalar_value(0.5));
      put(&s, "alpha", scalar_value(-2));
    }
    if (k == 2) put(&s, "beta", scalar_value(0));
    s.big = k == 5;
    emit(b, &s);
  }
}

/* ---- rows ---- */

static void build_softmax(const Build* b) {
  int k;
  for (k = 0; k < 7; k++) {
    Sample s = one(b, "softmax", k < 5,
                   k == 3   ? signed_(NULL, 0)
                   : k == 4 ? signed_(S_(0, 3))
                   : k == 5 ? signed_(S_(5, 131))
                   : k == 6 ? signed_(S_(300, 1001))
                            : signed_(S_(2, 3, 2)));
    put(&s, "dim", int_value(k == 3 ? 0 : k >= 4 ? 1 : k == 2 ? -1 : k));
    s.big = k == 6;
    emit(b, &s);
  }
}
static void build_layer_norm(const Build* b) {
  int k;
  for (k = 0; k < 7; k++) {
    const int wide = k == 4 ? 131 : k == 5 ? 1001 : 3;
    const int64_t shape[] = {wide, 2};
    const int two = k == 3;
    Sample s = one(b, "layer_norm", k < 4 || k == 6,
                   two      ? signed_(S_(2, 3, 2))
                   : k == 6 ? signed_(S_(0, 3))
                            : signed_(S_(k == 5 ? 300 : 2, wide)));
    put(&s, "normalized_shape", ints_value(shape, two ? 2 : 1));
    if (k != 1) put(&s, "weight", tensor_value(signed_(shape, two ? 2 : 1)));
    if (k != 1 && k != 2) put(&s, "bias", tensor_value(signed_(shape, two ? 2 : 1)));
    if (k == 2) put(&s, "eps", float_value(0.1));
    s.big = k == 5;
    emit(b, &s);
  }
}

static void loss_options(Sample* s, int k, int64_t classes) {
  if (k & 1) put(s, "weight", tensor_value(positive(&classes, 1)));
  if (k & 2) put(s, "ignore_index", int_value(1));
  put(s, "reduction", int_value(k % 3));
}
static void build_nll_loss(const Build* b) {
  int k;
  for (k = 0; k < 8; k++) {
    Sample s = one(b, "classes", 1,
                   k == 6   ? signed_(S_(3))
                   : k == 7 ? signed_(S_(2, 3, 2))
                            : signed_(S_(4, 3)));
    put(&s, "target",
        tensor_value(k == 6   ? indices(NULL, 0, 3)
                     : k == 7 ? indices(S_(2, 2), 3)
                              : indices(S_(4), 3)));
    loss_options(&s, k, 3);
    emit(b, &s);
  }
}
static void build_cross_entropy(const Build* b) {
  int k;
  build_nll_loss(b);
  for (k = 0; k < 6; k++) {
    Sample s = one(b, "smoothed classes", 1, signed_(S_(4, 3)));
    put(&s, "target", tensor_value(indices(S_(4), 3)));
    put(&s, "label_smoothing", float_value(0.1));
    loss_options(&s, k, 3);
    emit(b, &s);
  }
  for (k = 0; k < 6; k++) {
    Sample s = one(b, "probabilities", 1, k == 5 ? signed_(S_(3)) : signed_(S_(2, 3)));
    put(&s, "target", tensor_value(k == 5 ? positive(S_(3)) : positive(S_(2, 3))));
    loss_options(&s, k & 1, 3);
    put(&s, "reduction", int_value(k % 3));
    if (k >= 3) put(&s, "label_smoothing", float_value(0.2));
    emit(b, &s);
  }
}

/* ---- indexing ---- */

static void build_gather(const Build* b) {
  int k;
  for (k = 0; k < 5; k++) {
    Sample s = one(b, "gather", k < 4,
                   k == 3   ? signed_(NULL, 0)
                   : k == 4 ? signed_(S_(700, 701))
                            : signed_(S_(3, 2)));
    put(&s, "dim", int_value(k == 1 ? -1 : 0));
    put(&s, "index",
        tensor_value(k == 0   ? indices(S_(4, 2), 3)
                     : k == 1 ? indices(S_(2, 3), 2)
                     : k == 2 ? indices(S_(0, 2), 3)
                     : k == 3 ? indices(S_(1), 1)
                              : indices(S_(700, 701), 700)));
    s.big = k == 4;
    emit(b, &s);
  }
}
static void build_scatter_add(const Build* b) {
  int k;
  for (k = 0; k < 3; k++) {
    Sample s = one(b, "scatter_add", 1, signed_(S_(3, 2)));
    put(&s, "dim", int_value(k == 1 ? 1 : 0));
    put(&s, "index",
        tensor_value(k == 0   ? indices(S_(4, 2), 3)
                     : k == 1 ? indices(S_(2, 3), 2)
                              : indices(S_(0, 2), 3)));
    put(&s, "src",
        tensor_value(k == 0   ? signed_(S_(5, 2))
                     : k == 1 ? signed_(S_(2, 3))
                              : signed_(S_(0, 2))));
    emit(b, &s);
  }
}
static void build_index_select(const Build* b) {
  int k;
  for (k = 0; k < 4; k++) {
    Sample s = one(b, "index_select", 1, k == 3 ? signed_(NULL, 0) : signed_(S_(3, 2)));
    put(&s, "dim", int_value(k == 1 ? -1 : 0));
    put(&s, "index",
        tensor_value(k == 0   ? indices(S_(5), 3)
                     : k == 1 ? indices(NULL, 0, 2)
                     : k == 2 ? indices(S_(0), 3)
                              : indices(S_(1), 1)));
    emit(b, &s);
  }
}
static void build_index_add(const Build* b) {
  int k;
  for (k = 0; k < 3; k++) {
    Sample s = one(b, "index_add", 1, signed_(S_(3, 2)));
    put(&s, "dim", int_value(k == 1 ? 1 : 0));
    put(&s, "index", tensor_value(k == 2 ? indices(S_(0), 3) : indices(S_(4), k == 1 ? 2 : 3)));
    put(&s, "source",
        tensor_value(k == 0   ? signed_(S_(4, 2))
                     : k == 1 ? signed_(S_(3, 4))
                              : signed_(S_(0, 2))));
    if (k == 1) put(&s, "alpha", scalar_value(-2));
    emit(b, &s);
  }
}
static void build_index_put(const Build* b) {
  int k;
  for (k = 0; k < 4; k++) {
    Sample s = one(b, "index_put", 1, signed_(S_(4, 3)));
    tt_value list = {0};
    list.tag = TT_VAL_TENSORS;
    list.n = k == 1 ? 2 : 1;
    s.items[0] = k == 3   ? make(TT_BOOL, SHAPE(4), DATA(1, 0, 1, 0))
                 : k == 2 ? make(TT_I64, SHAPE(2), DATA(-1, 1))
                 : k == 1 ? indices(S_(3), 4)
                          : indices(S_(2), 1);
    if (k == 1) s.items[1] = indices(S_(3), 3);
    put(&s, "indices", list);
    put(&s, "values",
        tensor_value(k == 1   ? signed_(S_(3))
                     : k == 2 ? signed_(NULL, 0)
                              : signed_(S_(2, 3))));
    put(&s, "accumulate", bool_value(k < 2)); /* repeated positions: only sums are defined */
    emit(b, &s);
  }
}
static void build_embedding(const Build* b) {
  int k;
  for (k = 0; k < 4; k++) {
    Sample s = one(b, "embedding", 1, signed_(S_(4, 3)));
    put(&s, "indices",
        tensor_value(k == 0   ? indices(S_(2, 3), 4)
                     : k == 1 ? indices(NULL, 0, 4)
                     : k == 2 ? indices(S_(0), 4)
                              : indices(S_(5), 4)));
    if (k == 3) {
      s.smooth = 0;
      put(&s, "padding_idx", int_value(2));
    }
    emit(b, &s);
  }
}

/* ---- joining ---- */

static void build_cat(const Build* b) {
  const int equal = !strchr(b->row->name, 'c') || b->row->name[0] == 's'; /* stack: equal shapes */
  int k;
  for (k = 0; k < 4; k++) {
    Sample s = blank(b, "joined", k < 3);
    tt_value list = {0};
    int i;
    list.tag = TT_VAL_TENSORS;
    list.n = k == 1 ? 1 : 3;
    for (i = 0; i < list.n; i++) {
      const int64_t rows = k == 3 ? 150 : equal ? 2 : k == 2 && i == 1 ? 0 : i + 1;
      const int64_t cols = k == 3 ? 1001 : 2;
      s.items[i] = k == 2 && !equal ? signed_(S_(cols, rows)) : signed_(S_(rows, cols));
    }
    put(&s, "tensors", list);
    if (k == 2) put(&s, "dim", int_value(-1));
    s.big = k == 3;
    emit(b, &s);
  }
}
static void build_split(const Build* b) {
  const int sizes = has_arg(b->row, "split_sizes");
  int k;
  for (k = 0; k < 3; k++) {
    Sample s = one(b, "split", 1, signed_(S_(5, 4)));
    if (sizes) {
      put(&s, "split_sizes", k == 1 ? ints_value(S_(1, 3)) : ints_value(S_(2, 0, 3)));
    } else {
      put(&s, "split_size", int_value(k == 2 ? 9 : 2));
    }
    if (k == 1) put(&s, "dim", int_value(-1));
    emit(b, &s);
  }
}

/* ---- views ---- */

static void build_view(const Build* b) {
  const Row* r = b->row;
  int k;
  for (k = 0; k < 4; k++) {
    const int small = k == 3;
    Sample s = one(b,
                   small    ? "few dims"
                   : k == 2 ? "empty"
                            : "view",
                   1,
                   small    ? signed_(NULL, 0)
                   : k == 2 ? signed_(S_(0, 1, 3))
                            : signed_(S_(2, 1, 3)));
    if (has_arg(r, "stride")) {
      if (k >= 2) continue;
      put(&s, "size", ints_value(S_(2, 2)));
      put(&s, "stride", k ? ints_value(S_(1, 1)) : ints_value(S_(3, 2)));
      if (k) put(&s, "storage_offset", int_value(2));
    } else if (strcmp(r->name, "expand") == 0) {
      put(&s, "size",
          small    ? ints_value(S_(2, 2))
          : k == 2 ? ints_value(S_(0, 4, 3))
          : k      ? ints_value(S_(2, 2, 2, 3))
                   : ints_value(S_(-1, 2, 3)));
    } else if (has_arg(r, "size") || has_arg(r, "shape")) {
      put(&s, has_arg(r, "size") ? "size" : "shape",
          small    ? ints_value(S_(1, 1))
          : k == 2 ? ints_value(S_(3, 0))
          : k      ? ints_value(S_(-1))
                   : ints_value(S_(3, 2)));
    }
    if (has_arg(r, "dims"))
      put(&s, "dims",
          small ? ints_value(NULL, 0)
          : k   ? ints_value(S_(-1, 0, 1))
                : ints_value(S_(2, 0, 1)));
    if (has_arg(r, "dim0")) {
      put(&s, "dim0", int_value(small ? 0 : k));
      put(&s, "dim1", int_value(-1));
    }
    if (has_arg(r, "dim")) {
      if (strcmp(r->args[row_arg(r, "dim")].type, "Dims") == 0) {
        put(&s, "dim", small ? ints_value(NULL, 0) : k ? ints_value(S_(1)) : ints_value(S_(0, 1)));
      } else {
        put(&s, "dim", int_value(small ? 0 : k == 1 ? -1 : 0));
      }
    }
    if (has_arg(r, "index")) {
      if (k >= 2) continue;
      put(&s, "index", int_value(k ? -1 : 1));
    }
    if (has_arg(r, "step")) {
      if (small) continue;
      if (k == 1) {
        put(&s, "start", int_value(-2));
        put(&s, "end", int_value(100));
      }
      if (k == 0) put(&s, "step", int_value(2));
    }
    if (strcmp(r->name, "t") == 0)
      s.args[0] = tensor_value(small ? s.args[0].tensor : k ? signed_(S_(3)) : signed_(S_(2, 3)));
    emit(b, &s);
  }
}

#include "samples_act.h"
#include "samples_attention.h"
#include "samples_draw.h"
#include "samples_fold.h"
#include "samples_conv.h"
#include "samples_image.h"
#include "samples_math.h"
#include "samples_shape.h"
#include "samples_sort.h"

/* ---- families ---- */

static const struct {
  const char* name;
  void (*build)(const Build* b);
} kFamilies[] = {{"unary", build_unary},
                 {"positive", build_positive},
                 {"binary", build_binary},
                 {"where", build_where},
                 {"clamp", build_clamp},
                 {"masked", build_masked},
                 {"copy", build_copy},
                 {"cast", build_cast},
                 {"factory", build_factory},
                 {"random", build_random},
                 {"reduce", build_reduce},
                 {"reduce_nonempty", build_reduce_nonempty},
                 {"matmul", build_matmul},
                 {"linear", build_linear},
                 {"addmm", build_addmm},
                 {"softmax", build_softmax},
                 {"layer_norm", build_layer_norm},
                 {"nll_loss", build_nll_loss},
                 {"cross_entropy", build_cross_entropy},
                 {"gather", build_gather},
                 {"scatter_add", build_scatter_add},
                 {"index_select", build_index_select},
                 {"index_add", build_index_add},
                 {"index_put", build_index_put},
                 {"embedding", build_embedding},
                 {"cat", build_cat},
                 {"split", build_split},
                 {"view", build_view},
                 ACT_FAMILIES,
                 ATTENTION_FAMILIES DRAW_FAMILIES FOLD_FAMILIES CONV_FAMILIES MATH_FAMILIES
                     IMAGE_FAMILIES SHAPE_FAMILIES SORT_FAMILIES};

int each_sample(const Row* r, SampleFn fn, void* user) {
  const Build b = {r, fn, user};
  size_t i;
  for (i = 0; i < sizeof kFamilies / sizeof *kFamilies; i++) {
    if (strcmp(kFamilies[i].name, r->samples)) continue;
    seed_now = 1;
    OK(tt_scope_push(c));
    kFamilies[i].build(&b);
    OK(tt_scope_pop(c, NULL, 0));
    return 1;
  }
  return 0;
}

int tensor_places(Sample* s, tt_tensor** out[kMaxArgs + kMaxItems]) {
  int i, n = 0;
  int64_t j;
  for (i = 0; i < s->row->n_args; i++) {
    tt_value* v = &s->args[i];
    if (v->tag == TT_VAL_TENSOR && v->tensor) out[n++] = &v->tensor;
    for (j = 0; v->tag == TT_VAL_TENSORS && j < v->n; j++)
      if (s->items[j]) out[n++] = &s->items[j];
  }
  return n;
}
