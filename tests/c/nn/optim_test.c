/* Optimizers against references in double precision, after PyTorch's documentation: every
   option, groups, absent gradients, states, closures, failures that change nothing. */
#include "ext_backend.h"
#include "harness.h"

#include <math.h>

enum { kN = 1000, kParams = 3, kStateNames = 3 };
static const int64_t kSizes[kParams] = {1, 37,
                                        kN}; /* one element, a vector and a rest, many vectors */

/* ---- the variant under test: an instruction set (TT_TEST_ISA), a device (TT_TEST_DEVICE) ---- */

static tt_device device = {TT_CPU, 0};
static ExtMemory ext_memory;
static int open_variant(void** state) {
  static const char* const isas[] = {"", "baseline", "avx2", "avx512"};
  const char* isa = getenv("TT_TEST_ISA");
  const char* name = getenv("TT_TEST_DEVICE");
  const tt_allocator a = host_allocator(&host);
  tt_runtime_opts opts = {.struct_size = sizeof opts, .allocator = &a};
  tt_runtime* rt;
  (void)state;
  for (int i = 1; isa && i < 4; i++)
    if (strcmp(isa, isas[i]) == 0) opts.isa = i;
  if (tt_runtime_new(&opts, &rt) || tt_ctx_new(rt, &c) || tt_manual_seed(c, 0)) return -1;
  tt_runtime_release(rt);
  if (name && strcmp(name, "ext") == 0) {
    const tt_backend_def def = ext_def(&ext_memory, "closed");
    if (tt_backend_register(c, &def, &device)) return -1;
  } else if (name && strcmp(name, "cpu")) {
    if (tt_load_cuda(c, device_library(name))) return -1;
    device.type = TT_CUDA;
  }
  return tt_scope_push(c) ? -1 : 0;
}
#define VARIANT(f) cmocka_unit_test_setup_teardown(f, open_variant, close_ctx)

static tt_tensor* on_device(tt_tensor* t) {
  const tt_to_opts o = {.set = TT_TO_DEVICE, .device = device};
  tt_tensor* moved = NULL;
  OK(tt_to(c, t, &o, &moved));
  return moved;
}

/* ---- references ---- */

typedef struct Options {
  double lr, momentum, dampening, weight_decay, beta1, beta2, eps, alpha, lr_decay, start;
  double rho, momentum_decay, lambd, t0, minus, plus, min_step, max_step;
  int nesterov, maximize, amsgrad, decoupled, centered;
} Options;
typedef struct Slot {
  double p[kN], s[kStateNames][kN];
  float number[2]; /* what PyTorch keeps in float32 */
  int64_t step;
} Slot;
typedef void (*Rule)(const Options* o, Slot* s, const double* grad, int64_t n);

static double gradient(const Options* o, const Slot* s, const double* grad, int64_t i) {
  const double g = o->maximize ? -grad[i] : grad[i];
  return o->decoupled ? g : g + o->weight_decay * s->p[i];
}
static void sgd_rule(const Options* o, Slot* s, const double* grad, int64_t n) {
  int64_t i;
  for (i = 0; i < n; i++) {
    const double g = gradient(o, s, grad, i);
    double d = g;
    if (o->momentum != 0) {
      double* b = &s->s[0][i];
      *b = s->step == 1 ? g : o->momentum * *b + (1 - o->dampening) * g;
      d = o->nesterov ? g + o->momentum * *b : *b;
    }
    s->p[i] -= o->lr * d;
  }
}
static void adam_rule(const Options* o, Slot* s, const double* grad, int64_t n) {
  const double c1 = 1 - pow(o->beta1, (double)s->step);
  const double c2 = 1 - pow(o->beta2, (double)s->step);
  int64_t i;
  for (i = 0; i < n; i++) {
    const double g = gradient(o, s, grad, i);
    double* m = &s->s[0][i];
    double* v = &s->s[1][i];
    double* top = &s->s[2][i];
    if (o->decoupled) s->p[i] *= 1 - o->lr * o->weight_decay;
    *m = o->beta1 * *m + (1 - o->beta1) * g;
    *v = o->beta2 * *v + (1 - o->beta2) * g * g;
    *top = *v > *top ? *v : *top;
    s->p[i] -= o->lr / c1 * *m / (sqrt(o->amsgrad ? *top : *v) / sqrt(c2) + o->eps);
  }
}
static void rmsprop_rule(const Options* o, Slot* s, const double* grad, int64_t n) {
  int64_t i;
  for (i = 0; i < n; i++) {
    const double g = gradient(o, s, grad, i);
    double* v = &s->s[0][i];
    double* mean = &s->s[1][i];
    double* b = &s->s[2][i];
    double u;
    *v = o->alpha * *v + (1 - o->alpha) * g * g;
    *mean = o->alpha * *mean + (1 - o->alpha) * g;
    u = g / (sqrt(o->centered ? *v - *mean * *mean : *v) + o->eps);
    *b = o->momentum * *b + u;
    s->p[i] -= o->lr * *b;
  }
}
static void adagrad_rule(const Options* o, Slot* s, const double* grad, int64_t n) {
  const double lr = o->lr / (1 + (double)(s->step - 1) * o->lr_decay);
  int64_t i;
  for (i = 0; i < n; i++) {
    const double g = gradient(o, s, grad, i);
    if (s->step == 1) s->s[0][i] = o->start;
    s->s[0][i] += g * g;
    s->p[i] -= lr * g / (sqrt(s->s[0][i]) + o->eps);
  }
}

static void adadelta_rule(const Options* o, Slot* s, const double* grad, int64_t n) {
  int64_t i;
  for (i = 0; i < n; i++) {
    const double g = gradient(o, s, grad, i);
    double* v = &s->s[0][i];
    double* a = &s->s[1][i];
    double d;
    *v = o->rho * *v + (1 - o->rho) * g * g;
    d = sqrt(*a + o->eps) / sqrt(*v + o->eps) * g;
    *a = o->rho * *a + (1 - o->rho) * d * d;
    s->p[i] -= o->lr * d;
  }
}
static void adamax_rule(const Options* o, Slot* s, const double* grad, int64_t n) {
  const double c1 = 1 - pow(o->beta1, (double)s->step);
  int64_t i;
  for (i = 0; i < n; i++) {
    const double g = gradient(o, s, grad, i);
    double* m = &s->s[0][i];
    double* u = &s->s[1][i];
    *m = o->beta1 * *m + (1 - o->beta1) * g;
    *u = fmax(o->beta2 * *u, fabs(g) + o->eps);
    s->p[i] -= o->lr / c1 * *m / *u;
  }
}
static double nadam_mu(const Options* o, double step) {
  return o->beta1 * (1 - 0.5 * pow(0.96, step * o->momentum_decay));
}
static void nadam_rule(const Options* o, Slot* s, const double* grad, int64_t n) {
  const double mu = nadam_mu(o, (double)s->step);
  const double next = nadam_mu(o, (double)s->step + 1);
  const double c2 = 1 - pow(o->beta2, (double)s->step);
  int64_t i;
  s->number[0] = (s->step == 1 ? 1.0f : s->number[0]) * (float)mu;
  for (i = 0; i < n; i++) {
    const double product = (double)s->number[0];
    const double g = gradient(o, s, grad, i);
    double* m = &s->s[0][i];
    double* v = &s->s[1][i];
    double size;
    if (o->decoupled) s->p[i] *= 1 - o->lr * o->weight_decay;
    *m = o->beta1 * *m + (1 - o->beta1) * g;
    *v = o->beta2 * *v + (1 - o->beta2) * g * g;
    size = sqrt(*v / c2) + o->eps;
    s->p[i] -= o->lr * (1 - mu) / (1 - product) * g / size;
    s->p[i] -= o->lr * next / (1 - product * next) * *m / size;
  }
}
static void radam_rule(const Options* o, Slot* s, const double* grad, int64_t n) {
  const double c1 = 1 - pow(o->beta1, (double)s->step);
  const double b2 = pow(o->beta2, (double)s->step);
  const double full = 2 / (1 - o->beta2) - 1;
  const double r = full - 2 * (double)s->step * b2 / (1 - b2);
  int64_t i;
  for (i = 0; i < n; i++) {
    const double g = gradient(o, s, grad, i);
    double* m = &s->s[0][i];
    double* v = &s->s[1][i];
    double d;
    if (o->decoupled) s->p[i] *= 1 - o->lr * o->weight_decay;
    *m = o->beta1 * *m + (1 - o->beta1) * g;
    *v = o->beta2 * *v + (1 - o->beta2) * g * g;
    d = o->lr * *m / c1;
    if (r > 5)
      d *= sqrt((r - 4) * (r - 2) * full / ((full - 4) * (full - 2) * r)) * sqrt(1 - b2) /
           (sqrt(*v) + o->eps);
    s->p[i] -= d;
  }
}
static void asgd_rule(const Options* o, Slot* s, const double* grad, int64_t n) {
  const double eta = s->step == 1 ? (double)(float)o->lr : (double)s->number[0];
  const double mu = s->step == 1 ? 1 : (double)s->number[1];
  int64_t i;
  for (i = 0; i < n; i++) {
    const double g = gradient(o, s, grad, i);
    double* a = &s->s[0][i];
    s->p[i] = s->p[i] * (1 - o->lambd * eta) - eta * g;
    *a += (s->p[i] - *a) * mu;
  }
  s->number[0] = (float)(o->lr / pow(1 + o->lambd * o->lr * (double)s->step, o->alpha));
  s->number[1] = (float)(1 / fmax(1, (double)s->step - o->t0));
}
static void rprop_rule(const Options* o, Slot* s, const double* grad, int64_t n) {
  int64_t i;
  for (i = 0; i < n; i++) {
    double g = gradient(o, s, grad, i);
    double* before = &s->s[0][i];
    double* size = &s->s[1][i];
    const double turn = g * *before;
    if (s->step == 1) *size = o->lr;
    if (turn > 0) *size *= o->plus;
    if (turn < 0) *size *= o->minus;
    *size = fmin(fmax(*size, o->min_step), o->max_step);
    if (turn < 0) g = 0;
    s->p[i] -= *size * (double)((g > 0) - (g < 0));
    *before = g;
  }
}
static void lion_rule(const Options* o, Slot* s, const double* grad, int64_t n) {
  int64_t i;
  for (i = 0; i < n; i++) {
    const double g = o->maximize ? -grad[i] : grad[i];
    double* m = &s->s[0][i];
    const double u = o->beta1 * *m + (1 - o->beta1) * g;
    s->p[i] = s->p[i] * (1 - o->lr * o->weight_decay) - o->lr * (double)((u > 0) - (u < 0));
    *m = o->beta2 * *m + (1 - o->beta2) * g;
  }
}

/* ---- one case: 7 steps over three parameters, of which the second has no gradient in step 3 ----
 */

typedef struct Case {
  Rule rule;
  Options o;
  const char* states[kStateNames]; /* states that must exist; the others must not */
} Case;

static double noise(int64_t i, int64_t j) {
  return sin(12.9898 * (double)(i + 1) + 78.233 * (double)(j + 1));
}

static tt_status construct(tt_ctx* x, const Case* k, tt_tensor* const* p, int64_t n,
                           tt_optimizer** out) {
  const Options* o = &k->o;
  if (k->rule == sgd_rule) {
    const tt_optim_sgd_opts s = {
        63, o->lr, o->momentum, o->dampening, o->weight_decay, o->nesterov, o->maximize};
    return tt_optim_sgd(x, p, n, &s, out);
  }
  if (k->rule == rmsprop_rule) {
    const tt_optim_rmsprop_opts s = {127,         o->lr,       o->alpha,   o->eps, o->weight_decay,
                                     o->momentum, o->centered, o->maximize};
    return tt_optim_rmsprop(x, p, n, &s, out);
  }
  if (k->rule == adagrad_rule) {
    const tt_optim_adagrad_opts s = {63,       o->lr,  o->lr_decay, o->weight_decay,
                                     o->start, o->eps, o->maximize};
    return tt_optim_adagrad(x, p, n, &s, out);
  }
  if (k->rule == adadelta_rule) {
    const tt_optim_adadelta_opts s = {31, o->lr, o->rho, o->eps, o->weight_decay, o->maximize};
    return tt_optim_adadelta(x, p, n, &s, out);
  }
  if (k->rule == adamax_rule) {
    const tt_optim_adamax_opts s = {31,     o->lr,           {o->beta1, o->beta2},
                                    o->eps, o->weight_decay, o->maximize};
    return tt_optim_adamax(x, p, n, &s, out);
  }
  if (k->rule == nadam_rule) {
    const tt_optim_nadam_opts s = {127,          o->lr,           {o->beta1, o->beta2},
                                   o->eps,       o->weight_decay, o->momentum_decay,
                                   o->decoupled, o->maximize};
    return tt_optim_nadam(x, p, n, &s, out);
  }
  if (k->rule == radam_rule) {
    const tt_optim_radam_opts s = {
        63, o->lr, {o->beta1, o->beta2}, o->eps, o->weight_decay, o->decoupled, o->maximize};
    return tt_optim_radam(x, p, n, &s, out);
  }
  if (k->rule == asgd_rule) {
    const tt_optim_asgd_opts s = {63,    o->lr,           o->lambd,   o->alpha,
                                  o->t0, o->weight_decay, o->maximize};
    return tt_optim_asgd(x, p, n, &s, out);
  }
  if (k->rule == rprop_rule) {
    const tt_optim_rprop_opts s = {
        15, o->lr, {o->minus, o->plus}, {o->min_step, o->max_step}, o->maximize};
    return tt_optim_rprop(x, p, n, &s, out);
  }
  if (k->rule == lion_rule) {
    const tt_optim_lion_opts s = {15, o->lr, {o->beta1, o->beta2}, o->weight_decay, o->maximize};
    return tt_optim_lion(x, p, n, &s, out);
  }
  if (o->decoupled) {
    const tt_optim_adamw_opts s = {
        63, o->lr, {o->beta1, o->beta2}, o->eps, o->weight_decay, o->amsgrad, o->maximize};
    return tt_optim_adamw(x, p, n, &s, out);
  }
  {
    const tt_optim_adam_opts s = {
        127, o->lr, {o->beta1, o->beta2}, o->eps, o->weight_decay, o->amsgrad, o->maximize, 0};
    return tt_optim_adam(x, p, n, &s, out);
  }
}

static tt_tensor* filled(tt_dtype d, int64_t i, int64_t j, int64_t n) {
  double v[kN];
  int64_t e;
  for (e = 0; e < n; e++) v[e] = noise(i + 31 * e, j);
  return on_device(make(d, &n, 1, v, n));
}

/* bf16: parameters and states are rounded after each step, and only then. */
static double rounded(double x) {
  const float f = (float)x;
  float r;
  uint32_t u;
  memcpy(&u, &f, 4);
  u = (u + 0x7fffu + (u >> 16 & 1)) & 0xffff0000u;
  memcpy(&r, &u, 4);
  return (double)r;
}
static void round_slot(Slot* s, int64_t n) {
  int64_t i;
  int k;
  for (i = 0; i < n; i++) {
    s->p[i] = rounded(s->p[i]);
    for (k = 0; k < kStateNames; k++) s->s[k][i] = rounded(s->s[k][i]);
  }
}

/* The largest error, as a share of the largest element. */
static double worst(const tt_tensor* t, const double* want, int64_t n) {
  double* v = values_of(t);
  double e = 0;
  double top = 1e-30;
  int64_t i;
  for (i = 0; i < n; i++) {
    e = fmax(e, fabs(v[i] - want[i]));
    top = fmax(top, fabs(want[i]));
  }
  free(v);
  return e / top;
}

static void run_case(const Case* k, tt_dtype dtype, double tol) {
  static Slot slots[kParams];
  tt_tensor* p[kParams];
  tt_optimizer* opt = NULL;
  int64_t i, e, step;
  int j;
  memset(slots, 0, sizeof slots);
  OK(tt_scope_push(c));
  for (i = 0; i < kParams; i++) {
    double* v;
    p[i] = filled(dtype, i, 100, kSizes[i]);
    v = values_of(p[i]);
    for (e = 0; e < kSizes[i]; e++) slots[i].p[e] = v[e];
    free(v);
    OK(tt_requires_grad_(c, p[i], 1));
  }
  OK(construct(c, k, p, kParams, &opt));
  for (step = 1; step <= 7; step++) {
    for (i = 0; i < kParams; i++) {
      if (i == 1 && step == 3) {
        OK(tt_tensor_set_grad(c, p[i], NULL));
      } else {
        tt_tensor* g = filled(dtype, i, step, kSizes[i]);
        double* v = values_of(g);
        OK(tt_tensor_set_grad(c, p[i], g));
        slots[i].step++;
        k->rule(&k->o, &slots[i], v, kSizes[i]);
        if (dtype == TT_BF16) round_slot(&slots[i], kSizes[i]);
        free(v);
      }
    }
    OK(tt_optim_step(c, opt));
  }
  for (i = 0; i < kParams; i++) {
    double off = worst(p[i], slots[i].p, kSizes[i]);
    if (!(off <= tol)) fail_msg("parameter %d is off by %g", (int)i, off);
    for (j = 0; j < kStateNames; j++) {
      tt_tensor* s = NULL;
      if (!k->states[j]) continue;
      OK(tt_optim_get_state(c, opt, i, k->states[j], &s));
      assert_non_null(s);
      off = worst(s, slots[i].s[j], kSizes[i]);
      if (!(off <= tol)) fail_msg("%s of parameter %d is off by %g", k->states[j], (int)i, off);
    }
  }
  tt_optim_release(opt);
  OK(tt_scope_pop(c, NULL, 0));
}

#define ADAM .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8
#define AVERAGES \
  { "exp_avg", "exp_avg_sq", NULL }
static const Case kCases[] = {
    {sgd_rule, {.lr = 0.1}, {NULL}},
    {sgd_rule, {.lr = 0.1, .weight_decay = 0.2, .maximize = 1}, {NULL}},
    {sgd_rule, {.lr = 0.1, .momentum = 0.9}, {"momentum_buffer"}},
    {sgd_rule,
     {.lr = 0.1, .momentum = 0.9, .dampening = 0.3, .weight_decay = 0.1},
     {"momentum_buffer"}},
    {sgd_rule, {.lr = 0.1, .momentum = 0.8, .nesterov = 1, .maximize = 1}, {"momentum_buffer"}},
    {adam_rule, {.lr = 0.01, ADAM}, AVERAGES},
    {adam_rule,
     {.lr = 0.01, .beta1 = 0.5, .beta2 = 0.7, .eps = 0.1, .weight_decay = 0.3, .maximize = 1},
     AVERAGES},
    {adam_rule, {.lr = 0.01, ADAM, .amsgrad = 1}, {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}},
    {adam_rule, {.lr = 0.01, ADAM, .weight_decay = 0.5, .decoupled = 1}, AVERAGES},
    {adam_rule,
     {.lr = 0.01,
      .beta1 = 0,
      .beta2 = 0.2,
      .eps = 1e-3,
      .weight_decay = 0.5,
      .decoupled = 1,
      .amsgrad = 1,
      .maximize = 1},
     {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}},
    {rmsprop_rule, {.lr = 0.01, .alpha = 0.9, .eps = 1e-8}, {"square_avg"}},
    {rmsprop_rule,
     {.lr = 0.01, .alpha = 0.5, .eps = 0.05, .weight_decay = 0.1, .centered = 1, .maximize = 1},
     {"square_avg", "grad_avg"}},
    {rmsprop_rule,
     {.lr = 0.01, .alpha = 0.9, .eps = 1e-3, .momentum = 0.7, .centered = 1},
     {"square_avg", "grad_avg", "momentum_buffer"}},
    {rmsprop_rule,
     {.lr = 0.01, .alpha = 0.9, .eps = 1e-3, .momentum = 0.7},
     {"square_avg", NULL, "momentum_buffer"}},
    {adagrad_rule, {.lr = 0.1, .eps = 1e-10}, {"sum"}},
    {adagrad_rule,
     {.lr = 0.1, .eps = 0.2, .lr_decay = 0.5, .weight_decay = 0.1, .start = 0.3, .maximize = 1},
     {"sum"}},
    {adadelta_rule, {.lr = 1, .rho = 0.9, .eps = 1e-6}, {"square_avg", "acc_delta"}},
    {adadelta_rule,
     {.lr = 0.5, .rho = 0.3, .eps = 0.01, .weight_decay = 0.2, .maximize = 1},
     {"square_avg", "acc_delta"}},
    {adamax_rule, {.lr = 0.002, ADAM}, {"exp_avg", "exp_inf"}},
    {adamax_rule,
     {.lr = 0.1, .beta1 = 0.4, .beta2 = 0.5, .eps = 0.1, .weight_decay = 0.3, .maximize = 1},
     {"exp_avg", "exp_inf"}},
    {nadam_rule, {.lr = 0.002, ADAM, .momentum_decay = 4e-3}, AVERAGES},
    {nadam_rule,
     {.lr = 0.01, ADAM, .momentum_decay = 0.5, .weight_decay = 0.3, .maximize = 1},
     AVERAGES},
    {nadam_rule,
     {.lr = 0.01,
      .beta1 = 0.4,
      .beta2 = 0.7,
      .eps = 0.1,
      .momentum_decay = 0.1,
      .weight_decay = 0.5,
      .decoupled = 1},
     AVERAGES},
    {radam_rule, {.lr = 0.01, ADAM}, AVERAGES}, /* the sixth step is the first rectified one */
    {radam_rule,
     {.lr = 0.01, .beta1 = 0.5, .beta2 = 0.9, .eps = 0.1, .weight_decay = 0.3, .maximize = 1},
     AVERAGES},
    {radam_rule, {.lr = 0.01, ADAM, .weight_decay = 0.5, .decoupled = 1}, AVERAGES},
    {asgd_rule, {.lr = 0.1, .lambd = 1e-4, .alpha = 0.75, .t0 = 1e6}, {"ax"}},
    {asgd_rule,
     {.lr = 0.1, .lambd = 0.3, .alpha = 0.5, .t0 = 2, .weight_decay = 0.1, .maximize = 1},
     {"ax"}},
    {rprop_rule,
     {.lr = 0.01, .minus = 0.5, .plus = 1.25, .min_step = 1e-6, .max_step = 50},
     {"prev", "step_size"}},
    {rprop_rule,
     {.lr = 0.0625,
      .minus = 0.25,
      .plus = 2,
      .min_step = 0.03125,
      .max_step = 0.125,
      .maximize = 1},
     {"prev", "step_size"}},
    {lion_rule, {.lr = 0.01, .beta1 = 0.9, .beta2 = 0.99}, {"exp_avg"}},
    {lion_rule,
     {.lr = 0.1, .beta1 = 0.3, .beta2 = 0.6, .weight_decay = 0.5, .maximize = 1},
     {"exp_avg"}},
};

static void run_cases(tt_dtype dtype, double tol) {
  size_t i;
  for (i = 0; i < sizeof kCases / sizeof *kCases; i++) {
    print_message("case %d\n", (int)i);
    run_case(&kCases[i], dtype, tol);
  }
}
static void test_f64(void** state) {
  (void)state;
  run_cases(TT_F64, 1e-14);
}
static void test_f32(void** state) {
  (void)state;
  run_cases(TT_F32, 2e-6);
}
static void test_bf16(void** state) {
  (void)state;
  run_cases(TT_BF16, 0.01);
}

/* ---- what else a step is ---- */

static tt_tensor* p1;
static tt_tensor* p2;
static tt_optimizer* opt;

/* Two leaves [1, 2] and [3, 4] with gradients 1 and 10. */
static void make_pair(void) {
  p1 = leaf(DATA(1, 2));
  p2 = leaf(DATA(3, 4));
  OK(tt_tensor_set_grad(c, p1, numbers(TT_F64, DATA(1, 1))));
  OK(tt_tensor_set_grad(c, p2, numbers(TT_F64, DATA(10, 10))));
}

static void test_groups(void** state) {
  const tt_optim_sgd_opts o = {.set = TT_OPTIM_SGD_LR, .lr = 0.5};
  double v = -1;
  (void)state;
  make_pair();
  OK(tt_optim_sgd(c, &p1, 1, &o, &opt));
  OK(tt_optim_add_param_group(c, opt, &p2, 1));
  OK(tt_optim_set_f64(c, opt, 1, "lr", 0.1));
  assert_int_equal(tt_optim_num_groups(opt), 2);
  assert_int_equal(tt_optim_num_params(opt), 2);
  assert_int_equal(tt_optim_group_size(opt, 1), 1);
  assert_int_equal(tt_optim_group_size(opt, 2), 0);
  OK(tt_optim_get_f64(c, opt, 0, "lr", &v));
  assert_true(v == 0.5);
  OK(tt_optim_step(c, opt));
  VALUES(p1, 0.5, 1.5);
  NEAR(p2, 1e-15, 2, 3);
  FAILS(tt_optim_get_f64(c, opt, 2, "lr", &v), TT_INDEX, "2 groups");
  FAILS(tt_optim_get_f64(c, opt, 0, "betas", &v), TT_INVALID_ARG, "betas");
  FAILS(tt_optim_get_f64(c, opt, 0, "initial_lr", &v), TT_INDEX, "initial_lr");
  OK(tt_optim_set_f64(c, opt, 0, "initial_lr", 3));
  OK(tt_optim_get_f64(c, opt, 0, "initial_lr", &v));
  assert_true(v == 3);
  tt_optim_release(opt);
}

static void test_empty_first(void** state) {
  (void)state;
  make_pair();
  OK(tt_optim_sgd(c, NULL, 0, NULL, &opt));
  assert_int_equal(tt_optim_num_groups(opt), 0);
  OK(tt_optim_step(c, opt));
  OK(tt_optim_add_param_group(c, opt, NULL, 0));
  OK(tt_optim_add_param_group(c, opt, &p1, 1));
  OK(tt_optim_step(c, opt));
  NEAR(p1, 1e-15, 0.999, 1.999);
  tt_optim_release(opt);
}

static void test_hostile_params(void** state) {
  tt_tensor* all[3];
  tt_tensor* whole = make(TT_I64, SHAPE(1), DATA(1));
  tt_tensor* y = NULL;
  tt_optimizer* none = (tt_optimizer*)&all;
  const tt_optim_sgd_opts unknown = {.set = UINT64_C(1) << 6};
  (void)state;
  make_pair();
  all[0] = p1;
  all[1] = p2;
  all[2] = p1;
  FAILS(tt_optim_sgd(c, all, 3, NULL, &none), TT_INVALID_ARG, "twice");
  assert_null(none);
  FAILS(tt_optim_sgd(c, &whole, 1, NULL, &none), TT_DTYPE, "int64");
  OK(tt_mul(c, p1, p1, &y));
  FAILS(tt_optim_sgd(c, &y, 1, NULL, &none), TT_INVALID_ARG, "leaves");
  FAILS(tt_optim_sgd(c, all, -1, NULL, &none), TT_INVALID_ARG, "negative");
  FAILS(tt_optim_sgd(c, all, 2, &unknown, &none), TT_UNSUPPORTED_OPTION, "bit 6");
  OK(tt_optim_sgd(c, all, 2, NULL, &opt));
  FAILS(tt_optim_add_param_group(c, opt, &p2, 1), TT_INVALID_ARG, "twice");
  assert_int_equal(tt_optim_num_groups(opt), 1);
  tt_optim_release(opt);
}

static void test_hostile_options(void** state) {
  const tt_optim_adam_opts lr = {.set = TT_OPTIM_ADAM_LR, .lr = -1};
  const tt_optim_adam_opts eps = {.set = TT_OPTIM_ADAM_EPS, .eps = NAN};
  const tt_optim_adam_opts betas = {.set = TT_OPTIM_ADAM_BETAS, .betas = {0.5, 1}};
  const tt_optim_sgd_opts nesterov = {.set = TT_OPTIM_SGD_NESTEROV, .nesterov = 1};
  const tt_optim_rmsprop_opts alpha = {.set = TT_OPTIM_RMSPROP_ALPHA, .alpha = -0.1};
  const tt_optim_adagrad_opts start = {.set = TT_OPTIM_ADAGRAD_INITIAL_ACCUMULATOR_VALUE,
                                       .initial_accumulator_value = -0.1};
  const tt_optim_adadelta_opts rho = {.set = TT_OPTIM_ADADELTA_RHO, .rho = 1.5};
  const tt_optim_rprop_opts etas = {.set = TT_OPTIM_RPROP_ETAS, .etas = {0.5, 1}};
  const tt_optim_nadam_opts momentum = {.set = TT_OPTIM_NADAM_MOMENTUM_DECAY, .momentum_decay = -1};
  (void)state;
  make_pair();
  FAILS(tt_optim_adadelta(c, &p1, 1, &rho, &opt), TT_INVALID_ARG, "rho is 1.5");
  FAILS(tt_optim_rprop(c, &p1, 1, &etas, &opt), TT_INVALID_ARG, "etas are 0.5 and 1");
  FAILS(tt_optim_nadam(c, &p1, 1, &momentum, &opt), TT_INVALID_ARG, "momentum_decay is -1");
  FAILS(tt_optim_adam(c, &p1, 1, &lr, &opt), TT_INVALID_ARG, "lr is -1");
  FAILS(tt_optim_adam(c, &p1, 1, &eps, &opt), TT_INVALID_ARG, "eps is nan");
  FAILS(tt_optim_adam(c, &p1, 1, &betas, &opt), TT_INVALID_ARG, "betas[1] is 1");
  FAILS(tt_optim_sgd(c, &p1, 1, &nesterov, &opt), TT_INVALID_ARG, "dampening");
  FAILS(tt_optim_rmsprop(c, &p1, 1, &alpha, &opt), TT_INVALID_ARG, "alpha");
  FAILS(tt_optim_adagrad(c, &p1, 1, &start, &opt), TT_INVALID_ARG, "initial_accumulator_value");
}

/* The second parameter cannot be updated: the first stays as it was, no state appears. */
static void test_atomic(void** state) {
  tt_tensor* both[2];
  tt_tensor* wide = numbers(TT_F64, DATA(1, 2, 3));
  tt_tensor* s = NULL;
  uint32_t version;
  (void)state;
  make_pair();
  both[0] = p1;
  both[1] = p2;
  OK(tt_optim_adam(c, both, 2, NULL, &opt));
  OK(tt_tensor_set_data(c, p2, wide));
  version = tt_tensor_version(p1);
  FAILS(tt_optim_step(c, opt), TT_SHAPE, "parameter 1 is [3], its gradient [2]");
  VALUES(p1, 1, 2);
  assert_int_equal(tt_tensor_version(p1), version);
  OK(tt_optim_get_state(c, opt, 0, "exp_avg", &s));
  assert_null(s);
  OK(tt_optim_get_state(c, opt, 0, "step", &s));
  assert_null(s);
  OK(tt_tensor_set_grad(c, p2, NULL));
  OK(tt_optim_step(c, opt));
  assert_int_equal(tt_tensor_version(p1), version + 1);
  OK(tt_optim_get_state(c, opt, 0, "step", &s));
  assert_true(value_of(s) == 1);
  tt_optim_release(opt);
}

/* Parameters and gradients of other layouts: transposed, overlapping memory refused, strided. */
static void test_layouts(void** state) {
  const tt_slice_opts every2 = {.set = TT_SLICE_STEP, .step = 2};
  const tt_optim_sgd_opts o = {
      .set = TT_OPTIM_SGD_LR | TT_OPTIM_SGD_MOMENTUM, .lr = 1, .momentum = 0.5};
  tt_tensor* a = make(TT_F32, SHAPE(2, 3), DATA(1, 2, 3, 4, 5, 6));
  tt_tensor* g = make(TT_F32, SHAPE(3, 2), DATA(1, 2, 3, 4, 5, 6));
  tt_tensor* gt;
  tt_tensor* line;
  tt_tensor* thin;
  tt_tensor* row;
  tt_tensor* wide;
  tt_tensor* params[2];
  int i;
  (void)state;
  OK(tt_transpose(c, g, 0, 1, &gt)); /* [[1, 3, 5], [2, 4, 6]] */
  line = numbers(TT_F32, DATA(1, 2, 3, 4));
  OK(tt_set_grad_enabled(c, 0, NULL));
  OK(tt_slice(c, line, 0, &every2, &thin)); /* [1, 3] */
  OK(tt_set_grad_enabled(c, 1, NULL));
  OK(tt_requires_grad_(c, a, 1));
  OK(tt_requires_grad_(c, thin, 1));
  OK(tt_tensor_set_grad(c, a, gt));
  OK(tt_tensor_set_grad(c, thin, numbers(TT_F32, DATA(1, 2))));
  params[0] = a;
  params[1] = thin;
  OK(tt_optim_sgd(c, params, 2, &o, &opt));
  for (i = 0; i < 2; i++) OK(tt_optim_step(c, opt)); /* - g - 1.5 g */
  VALUES(a, -1.5, -5.5, -9.5, -1, -5, -9);
  VALUES(line, -1.5, 2, -2, 4);
  tt_optim_release(opt);
  row = numbers(TT_F32, DATA(1));
  OK(tt_expand(c, row, SHAPE(3), &wide));
  OK(tt_requires_grad_(c, wide, 1));
  OK(tt_tensor_set_grad(c, wide, numbers(TT_F32, DATA(1, 2, 3))));
  OK(tt_optim_sgd(c, &wide, 1, NULL, &opt));
  FAILS(tt_optim_step(c, opt), TT_INVALID_ARG, "share an address");
  tt_optim_release(opt);
}

static void test_complex(void** state) {
  static const double re_im[] = {1, 2, 3, 4};
  static const double grads[] = {1, -1, 2, 0};
  const tt_optim_adam_opts o = {.set = TT_OPTIM_ADAM_LR | TT_OPTIM_ADAM_EPS, .lr = 0.5, .eps = 0};
  tt_tensor *p, *g;
  double got[4];
  (void)state;
  OK(tt_tensor_from_data(c, re_im, TT_C128, SHAPE(2), &p));
  OK(tt_tensor_from_data(c, grads, TT_C128, SHAPE(2), &g));
  OK(tt_requires_grad_(c, p, 1));
  OK(tt_tensor_set_grad(c, p, g));
  OK(tt_optim_adam(c, &p, 1, &o, &opt));
  OK(tt_optim_step(c, opt)); /* lr times the sign of each part; 0 / 0 is nan as in PyTorch */
  OK(tt_tensor_read(c, p, got, sizeof got));
  assert_true(fabs(got[0] - 0.5) < 1e-12 && fabs(got[1] - 2.5) < 1e-12 &&
              fabs(got[2] - 2.5) < 1e-12 && isnan(got[3]));
  tt_optim_release(opt);
}

static void test_zero_grad(void** state) {
  tt_tensor* g = NULL;
  (void)state;
  make_pair();
  OK(tt_optim_sgd(c, &p1, 1, NULL, &opt));
  OK(tt_optim_zero_grad(c, opt, 0));
  VALUES(grad_of(p1), 0, 0);
  OK(tt_optim_zero_grad(c, opt, 1));
  OK(tt_tensor_grad(c, p1, &g));
  assert_null(g);
  tt_optim_release(opt);
}

/* ---- closures ---- */

typedef struct Closure {
  int calls, drops;
  tt_status answer;
} Closure;
static tt_status square_loss(void* user, tt_ctx* x, tt_tensor** loss) { /* sum(p1 p1) */
  Closure* k = user;
  tt_tensor* y = NULL;
  tt_status s = tt_optim_zero_grad(x, opt, 1);
  k->calls++;
  if (!s) s = tt_mul(x, p1, p1, &y);
  if (!s) s = tt_sum(x, y, NULL, loss);
  if (!s) s = tt_backward(x, *loss, NULL);
  tt_tensor_release(y);
  return s ? s : k->answer;
}
static tt_status no_loss(void* user, tt_ctx* x, tt_tensor** loss) {
  (void)x;
  (void)loss;
  ((Closure*)user)->calls++;
  return TT_OK;
}
static void count_drop(void* user) { ((Closure*)user)->drops++; }

static void test_closure(void** state) {
  const tt_optim_sgd_opts o = {.set = TT_OPTIM_SGD_LR, .lr = 0.25};
  Closure k = {0, 0, TT_OK};
  tt_tensor* loss = NULL;
  (void)state;
  make_pair();
  OK(tt_optim_sgd(c, &p1, 1, &o, &opt));
  OK(tt_set_grad_enabled(c, 0, NULL)); /* the closure records nevertheless */
  OK(tt_optim_step_closure(c, opt, square_loss, &k, count_drop, &loss));
  OK(tt_set_grad_enabled(c, 1, NULL));
  assert_true(value_of(loss) == 5);
  VALUES(p1, 0.5, 1);
  k.answer = TT_IO;
  FAILS(tt_optim_step_closure(c, opt, square_loss, &k, count_drop, &loss), TT_CALLBACK, "closure");
  assert_null(loss);
  VALUES(p1, 0.5, 1);
  FAILS(tt_optim_step_closure(c, opt, no_loss, &k, count_drop, &loss), TT_CALLBACK, NULL);
  FAILS(tt_optim_step_closure(c, NULL, no_loss, &k, count_drop, &loss), TT_BAD_HANDLE, "opt");
  assert_int_equal(k.calls, 3);
  assert_int_equal(k.drops, 4);
  tt_optim_release(opt);
}

/* ---- state ---- */

/* An optimizer loaded from another's state continues bit-equal to it. */
static void test_lists(void** state) {
  const tt_optim_adamw_opts o = {.set = TT_OPTIM_ADAMW_AMSGRAD, .amsgrad = 1};
  tt_optimizer* other;
  tt_tensor *t = NULL, *q1, *q2, *both[2];
  char name[96];
  double v, a[2], b[2];
  int64_t i;
  (void)state;
  make_pair();
  both[0] = p1;
  both[1] = p2;
  OK(tt_optim_adamw(c, both, 2, &o, &opt));
  OK(tt_optim_set_f64(c, opt, 0, "lr", 0.125));
  for (i = 0; i < 3; i++) OK(tt_optim_step(c, opt));
  assert_int_equal(tt_optim_num_tensors(opt), 6);
  assert_int_equal(tt_optim_num_numbers(opt), 2 + 8);
  OK(tt_tensor_read(c, p1, a, sizeof a));
  OK(tt_tensor_read(c, p2, b, sizeof b));
  q1 = leaf(a, 2);
  q2 = leaf(b, 2);
  both[0] = q1;
  both[1] = q2;
  OK(tt_tensor_set_grad(c, q1, grad_of(p1)));
  OK(tt_tensor_set_grad(c, q2, grad_of(p2)));
  OK(tt_optim_adamw(c, both, 2, NULL, &other));
  for (i = 0; i < tt_optim_num_tensors(opt); i++) {
    OK(tt_optim_tensor_at(c, opt, i, name, sizeof name, &t));
    OK(tt_optim_load_tensor(c, other, name, t));
  }
  assert_string_equal(name, "state.1.max_exp_avg_sq");
  for (i = 0; i < tt_optim_num_numbers(opt); i++) {
    OK(tt_optim_number_at(c, opt, i, name, sizeof name, &v));
    OK(tt_optim_load_number(c, other, name, v));
  }
  assert_string_equal(name, "param_groups.0.decoupled_weight_decay");
  OK(tt_optim_step(c, opt));
  OK(tt_optim_step(c, other));
  for (i = 0; i < 2; i++) {
    OK(tt_tensor_read(c, i ? p2 : p1, a, sizeof a));
    OK(tt_tensor_read(c, i ? q2 : q1, b, sizeof b));
    assert_memory_equal(a, b, sizeof a);
  }
  FAILS(tt_optim_tensor_at(c, opt, 6, name, sizeof name, &t), TT_INDEX, "there are 6");
  FAILS(tt_optim_tensor_at(c, opt, -1, name, sizeof name, &t), TT_INDEX, NULL);
  FAILS(tt_optim_number_at(c, opt, INT64_MAX, name, sizeof name, &v), TT_INDEX, NULL);
  FAILS(tt_optim_number_at(c, opt, -1, name, sizeof name, &v), TT_INDEX, NULL);
  FAILS(tt_optim_number_at(c, opt, INT64_MIN, name, sizeof name, &v), TT_INDEX, NULL);
  FAILS(tt_optim_tensor_at(c, opt, 0, name, 4, &t), TT_BUFFER_TOO_SMALL, NULL);
  tt_optim_release(opt);
  tt_optim_release(other);
}

/* NAdam's product of momenta and ASGD's eta and mu are numbers, and are part of the state that is
   loaded. */
static void test_numbers(void** state) {
  tt_optimizer *nadam, *asgd;
  tt_tensor* t = NULL;
  char name[96];
  double v = 0;
  (void)state;
  make_pair();
  OK(tt_optim_nadam(c, &p1, 1, NULL, &nadam));
  OK(tt_optim_asgd(c, &p2, 1, NULL, &asgd));
  OK(tt_optim_get_state(c, nadam, 0, "mu_product", &t));
  assert_null(t);
  OK(tt_tensor_set_data(c, p1, numbers(TT_F64, DATA(1, 2, 3))));
  FAILS(tt_optim_step(c, nadam), TT_SHAPE, NULL);
  OK(tt_optim_get_state(c, nadam, 0, "mu_product", &t));
  assert_null(t);
  OK(tt_tensor_set_data(c, p1, numbers(TT_F64, DATA(1, 2))));
  OK(tt_optim_step(c, nadam));
  OK(tt_optim_step(c, asgd));
  assert_int_equal(tt_optim_num_numbers(nadam), 2 + 8);
  assert_int_equal(tt_optim_num_numbers(asgd), 3 + 6);
  OK(tt_optim_number_at(c, nadam, 1, name, sizeof name, &v));
  assert_string_equal(name, "state.0.mu_product");
  assert_true(v == (double)(float)(0.9 * (1 - 0.5 * pow(0.96, 4e-3))));
  OK(tt_optim_number_at(c, asgd, 2, name, sizeof name, &v));
  assert_string_equal(name, "state.0.mu");
  assert_true(v == 1);
  OK(tt_optim_load_number(c, asgd, "state.0.eta", 0.5));
  OK(tt_optim_get_state(c, asgd, 0, "eta", &t));
  VALUES(t, 0.5);
  OK(tt_optim_set_state(c, asgd, 0, "eta", NULL));
  OK(tt_optim_get_state(c, asgd, 0, "eta", &t));
  assert_null(t);
  FAILS(tt_optim_set_state(c, asgd, 0, "mu", p1), TT_SHAPE, "mu has shape [2]");
  FAILS(tt_optim_load_number(c, asgd, "state.1.mu", 1), TT_INDEX, NULL);
  FAILS(tt_optim_load_number(c, nadam, "state.0.mu", 1), TT_INVALID_ARG, NULL);
  tt_optim_release(nadam);
  tt_optim_release(asgd);
}

static void test_hostile_state(void** state) {
  static const char* const bad[] = {"",
                                    "state",
                                    "state.",
                                    "state.0",
                                    "state.x.exp_avg",
                                    "state.-1.exp_avg",
                                    "state.99999999999999999999.exp_avg",
                                    "state.0.nothing",
                                    "param_groups.0.lr"};
  tt_tensor* three = numbers(TT_F64, DATA(1, 2, 3));
  size_t i;
  (void)state;
  make_pair();
  OK(tt_optim_adam(c, &p1, 1, NULL, &opt));
  for (i = 0; i < sizeof bad / sizeof *bad; i++)
    FAILS(tt_optim_load_tensor(c, opt, bad[i], p2), TT_INVALID_ARG, NULL);
  FAILS(tt_optim_load_tensor(c, opt, "state.1.exp_avg", p2), TT_INDEX, "1 parameters");
  FAILS(tt_optim_set_state(c, opt, 0, "exp_avg", three), TT_SHAPE, "exp_avg is [3]");
  FAILS(tt_optim_set_state(c, opt, 0, "step", three), TT_SHAPE, "step");
  FAILS(tt_optim_load_number(c, opt, "state.0.step", -1), TT_INVALID_ARG, "step");
  FAILS(tt_optim_load_number(c, opt, "state.0.step", NAN), TT_INVALID_ARG, "step");
  FAILS(tt_optim_load_number(c, opt, "state.0.exp_avg", 1), TT_INVALID_ARG, NULL);
  FAILS(tt_optim_load_number(c, opt, "param_groups.7.lr", 1), TT_INDEX, NULL);
  assert_int_equal(tt_optim_num_tensors(opt), 0);
  tt_optim_release(opt);
}

/* ---- clipping ---- */

/* Three gradients, one of them not dense, one complex: [3 4], [0 12] of a strided view, 84i;
 * together 85. */
static tt_tensor* clipped[3];
static void make_clipped(tt_dtype dtype) {
  static const double imaginary[] = {0, 84};
  const tt_slice_opts every2 = {.set = TT_SLICE_STEP, .step = 2};
  tt_tensor *wide, *thin, *z;
  int i;
  OK(tt_slice(c, on_device(make(dtype, SHAPE(4), DATA(0, 5, 12, 5))), 0, &every2, &thin));
  OK(tt_tensor_from_data(c, imaginary, TT_C128, SHAPE(1), &z));
  for (i = 0; i < 3; i++) {
    clipped[i] = i == 2 ? on_device(z) : on_device(make(dtype, SHAPE(2), DATA(0, 0)));
    OK(tt_requires_grad_(c, clipped[i], 1));
  }
  wide = on_device(make(dtype, SHAPE(2), DATA(3, 4)));
  OK(tt_tensor_set_grad(c, clipped[0], wide));
  OK(tt_tensor_set_grad(c, clipped[1], thin));
  OK(tt_clone(c, clipped[2], NULL, &z));
  OK(tt_detach(c, z, &z));
  OK(tt_tensor_set_grad(c, clipped[2], z));
}

static void test_clip_norm(void** state) {
  const tt_clip_grad_norm_opts inf = {.set = TT_CLIP_GRAD_NORM_NORM_TYPE, .norm_type = INFINITY};
  const tt_clip_grad_norm_opts one = {.set = TT_CLIP_GRAD_NORM_NORM_TYPE, .norm_type = 1};
  const tt_clip_grad_norm_opts bad = {.set = TT_CLIP_GRAD_NORM_NORM_TYPE, .norm_type = -1};
  tt_tensor* total = NULL;
  double z[2];
  uint32_t version;
  (void)state;
  make_clipped(TT_F64);
  version = tt_tensor_version(grad_of(clipped[0]));
  OK(tt_clip_grad_norm_(c, clipped, 3, 8.5, NULL, &total));
  NEAR(total, 1e-12, 85);
  NEAR(grad_of(clipped[0]), 1e-7, 0.3, 0.4);
  NEAR(grad_of(clipped[1]), 1e-7, 0, 1.2);
  OK(tt_tensor_read(c, grad_of(clipped[2]), z, sizeof z));
  assert_true(z[0] == 0 && fabs(z[1] - 8.4) < 1e-7);
  assert_int_equal(tt_tensor_version(grad_of(clipped[0])), version + 1);
  make_clipped(TT_F64);
  OK(tt_clip_grad_norm_(c, clipped, 3, 100, &inf, &total));
  NEAR(total, 1e-12, 84);
  OK(tt_clip_grad_norm_(c, clipped, 3, 1000, &one, &total));
  NEAR(total, 1e-12, 103);
  VALUES(grad_of(clipped[0]), 3, 4);
  FAILS(tt_clip_grad_norm_(c, clipped, 3, 1, &bad, &total), TT_INVALID_ARG, "norm_type");
  assert_null(total);
  make_clipped(TT_F32);
  OK(tt_clip_grad_norm_(c, clipped, 2, 1.3, NULL, &total));
  NEAR(total, 1e-5, 13);
  NEAR(grad_of(clipped[1]), 1e-6, 0, 1.2);
}

static void test_clip_corners(void** state) {
  const tt_clip_grad_norm_opts strict = {.set = TT_CLIP_GRAD_NORM_ERROR_IF_NONFINITE,
                                         .error_if_nonfinite = 1};
  tt_tensor *total = NULL, *nan = NULL;
  (void)state;
  make_pair();
  OK(tt_clip_grad_norm_(c, NULL, 0, 1, NULL, &total));
  VALUES(total, 0);
  OK(tt_tensor_set_grad(c, p1, NULL));
  OK(tt_clip_grad_norm_(c, &p1, 1, 1, NULL, &total));
  VALUES(total, 0);
  nan = numbers(TT_F64, DATA(NAN, 2));
  OK(tt_tensor_set_grad(c, p1, nan));
  FAILS(tt_clip_grad_norm_(c, &p1, 1, 1, &strict, &total), TT_INVALID_ARG, "nan");
  assert_int_equal(tt_tensor_version(nan), 0);
  OK(tt_clip_grad_norm_(c, &p1, 1, 1, NULL, &total));
  assert_true(isnan(value_of(total)));
  OK(tt_clip_grad_value_(c, &p2, 1, 7));
  VALUES(grad_of(p2), 7, 7);
}

/* Many tensors of all sizes: the result is the same for two threads as for one. */
static void test_threads(void** state) {
  enum { kMany = 40 };
  tt_tensor *p[2][kMany], *total[2];
  float *a, *b;
  int64_t i, n;
  int run;
  (void)state;
  for (run = 0; run < 2; run++) {
    OK(tt_set_num_threads(c, run + 1));
    for (i = 0; i < kMany; i++) {
      const tt_scalar begin = real_scalar((double)i);
      const tt_scalar end = real_scalar((double)(i + (i % 7 ? i * i * 5 : 100000)));
      tt_tensor *x = NULL, *g = NULL;
      OK(tt_arange(c, &begin, &end, NULL, &x));
      OK(tt_sin(c, x, &p[run][i]));
      OK(tt_cos(c, x, &g));
      OK(tt_requires_grad_(c, p[run][i], 1));
      OK(tt_tensor_set_grad(c, p[run][i], g));
    }
    OK(tt_clip_grad_norm_(c, p[run], kMany, 0.5, NULL, &total[run]));
    OK(tt_optim_adam(c, p[run], kMany, NULL, &opt));
    for (i = 0; i < 3; i++) OK(tt_optim_step(c, opt));
    tt_optim_release(opt);
  }
  OK(tt_set_num_threads(c, 1));
  assert_true(value_of(total[0]) == value_of(total[1]));
  for (i = 0; i < kMany; i++) {
    n = tt_tensor_numel(p[0][i]) * (int64_t)sizeof(float);
    a = malloc((size_t)n + 1);
    b = malloc((size_t)n + 1);
    OK(tt_tensor_read(c, p[0][i], a, n));
    OK(tt_tensor_read(c, p[1][i], b, n));
    assert_memory_equal(a, b, (size_t)n);
    free(a);
    free(b);
  }
}

/* ---- Adafactor and Muon, by operators ---- */

enum { kRows = 3, kColumns = 2, kCells = kRows * kColumns };

typedef struct AdafactorSlot {
  double p[kCells], of_rows[kRows], of_columns[kColumns];
} AdafactorSlot;

static double mean_square(const double* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += x[i] * x[i];
  return sum / (double)n;
}

/* A step of Adafactor after PyTorch's documentation, for a matrix. */
static void adafactor_rule(const tt_optim_adafactor_opts* o, AdafactorSlot* s, const double* g,
                           int64_t step) {
  const double share = pow((double)step, o->beta2_decay);
  const double size = fmax(o->eps2, sqrt(mean_square(s->p, kCells)));
  const double rate = size * fmin(o->lr, 1 / sqrt((double)step));
  double update[kCells], mean = 0;
  for (int r = 0; r < kRows; r++) {
    s->of_rows[r] += share * (mean_square(g + r * kColumns, kColumns) - s->of_rows[r]);
    mean += s->of_rows[r] / kRows;
  }
  for (int j = 0; j < kColumns; j++) {
    double sum = 0;
    for (int r = 0; r < kRows; r++) sum += g[r * kColumns + j] * g[r * kColumns + j] / kRows;
    s->of_columns[j] += share * (sum - s->of_columns[j]);
  }
  for (int i = 0; i < kCells; i++) {
    const double v = s->of_rows[i / kColumns] * s->of_columns[i % kColumns] / fmax(mean, o->eps1);
    update[i] = g[i] / sqrt(fmax(v, o->eps1 * o->eps1));
  }
  const double excess = fmax(1, sqrt(mean_square(update, kCells)) / o->d);
  for (int i = 0; i < kCells; i++)
    s->p[i] = s->p[i] * (1 - o->lr * o->weight_decay) - rate / excess * update[i];
}

static void test_adafactor(void** state) {
  const tt_optim_adafactor_opts o = {.set = 0x3f,
                                     .lr = 0.3,
                                     .beta2_decay = -0.7,
                                     .eps1 = 1e-4,
                                     .eps2 = 0.01,
                                     .d = 1.25,
                                     .weight_decay = 0.1};
  const double start[] = {1, -2, 0.5, 3, -1, 0.25};
  AdafactorSlot s = {.p = {1, -2, 0.5, 3, -1, 0.25}};
  tt_tensor* p = on_device(make(TT_F64, SHAPE(kRows, kColumns), start, kCells));
  tt_tensor* t = NULL;
  (void)state;
  OK(tt_requires_grad_(c, p, 1));
  OK(tt_optim_adafactor(c, &p, 1, &o, &opt));
  for (int64_t step = 1; step <= 4; step++) {
    double g[kCells];
    for (int64_t i = 0; i < kCells; i++) g[i] = noise(i, step);
    OK(tt_tensor_set_grad(c, p, on_device(make(TT_F64, SHAPE(kRows, kColumns), g, kCells))));
    OK(tt_optim_step(c, opt));
    adafactor_rule(&o, &s, g, step);
    values_at(p, s.p, kCells, 1e-13, __FILE__, __LINE__);
  }
  OK(tt_optim_get_state(c, opt, 0, "row_var", &t));
  HAS_SHAPE(t, kRows, 1);
  values_at(t, s.of_rows, kRows, 1e-13, __FILE__, __LINE__);
  OK(tt_optim_get_state(c, opt, 0, "col_var", &t));
  HAS_SHAPE(t, 1, kColumns);
  values_at(t, s.of_columns, kColumns, 1e-13, __FILE__, __LINE__);
  FAILS(tt_optim_set_state(c, opt, 0, "row_var", p), TT_SHAPE, "must be [3,1]");
  OK(tt_optim_get_state(c, opt, 0, "step", &t));
  assert_true(value_of(t) == 4);
  tt_optim_release(opt);
}

/* The update of a matrix with singular values of about 1 has them, too, to the iteration's 30 %. */
static void test_muon(void** state) {
  const tt_optim_muon_opts o = {.set = TT_OPTIM_MUON_LR | TT_OPTIM_MUON_WEIGHT_DECAY |
                                       TT_OPTIM_MUON_MOMENTUM | TT_OPTIM_MUON_NESTEROV,
                                .lr = 1,
                                .weight_decay = 0,
                                .momentum = 0};
  const double g[] = {3, 0, 0, 0, -5, 0};
  tt_tensor* p = on_device(make(TT_F64, SHAPE(2, 3), (const double[]){0, 0, 0, 0, 0, 0}, 6));
  tt_tensor* vector = on_device(numbers(TT_F64, DATA(1, 2)));
  tt_tensor* t = NULL;
  double* x;
  (void)state;
  OK(tt_requires_grad_(c, p, 1));
  OK(tt_requires_grad_(c, vector, 1));
  OK(tt_optim_muon(c, &p, 1, &o, &opt));
  FAILS(tt_optim_add_param_group(c, opt, &vector, 1), TT_INVALID_ARG, "matrices only");
  OK(tt_tensor_set_grad(c, p, on_device(make(TT_F64, SHAPE(2, 3), g, 6))));
  OK(tt_optim_step(c, opt));
  x = values_of(p);
  assert_true(fabs(x[0] + 1) < 0.35 && fabs(x[4] - 1) < 0.35);
  for (int i = 0; i < 6; i++) assert_true(i == 0 || i == 4 || fabs(x[i]) < 0.01);
  free(x);
  OK(tt_optim_get_state(c, opt, 0, "momentum_buffer", &t));
  values_at(t, g, 6, 0, __FILE__, __LINE__);
  tt_optim_release(opt);
}

static tt_tensor* full(double value) {
  const tt_full_opts o = {.set = TT_FULL_DTYPE, .dtype = TT_F64};
  tt_tensor* t;
  OK(tt_full_f64(c, SHAPE(256, 256), value, &o, &t));
  return on_device(t);
}
/* A step that fails restores parameters, and states that it has made are gone. */
static void test_atomic_steps_of_matrices(void** state) {
  tt_tensor *p[2] = {full(1), full(1)}, *t = NULL;
  int64_t at, failures = 0;
  (void)state;
  for (int i = 0; i < 2; i++) {
    OK(tt_requires_grad_(c, p[i], 1));
    OK(tt_tensor_set_grad(c, p[i], full(i)));
  }
  OK(tt_optim_adafactor(c, p, 2, NULL, &opt));
  for (at = 1; at < 1000; at++) {
    const int64_t failed = host.failed;
    tt_status s;
    OK(tt_trim(c)); /* so that the step allocates again what the last one had */
    host.fail_at = host.calls + at;
    host.fail_n = 2; /* and the retry */
    s = tt_optim_step(c, opt);
    host.fail_at = 0;
    if (host.failed == failed || s == TT_OK) break;
    failures++;
    assert_int_equal(s, TT_OOM);
    for (int i = 0; i < 2; i++) {
      int32_t same;
      OK(tt_equal(c, p[i], full(1), &same));
      assert_true(same);
    }
    OK(tt_optim_get_state(c, opt, 0, "row_var", &t));
    assert_null(t);
  }
  assert_true((failures > 1 || device.type == TT_CUDA) && at < 1000);
  tt_optim_release(opt);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      VARIANT(test_f64),
      VARIANT(test_f32),
      VARIANT(test_bf16),
      VARIANT(test_groups),
      VARIANT(test_empty_first),
      VARIANT(test_hostile_params),
      VARIANT(test_hostile_options),
      VARIANT(test_atomic),
      VARIANT(test_layouts),
      VARIANT(test_complex),
      VARIANT(test_zero_grad),
      VARIANT(test_closure),
      VARIANT(test_lists),
      VARIANT(test_numbers),
      VARIANT(test_hostile_state),
      VARIANT(test_threads),
      VARIANT(test_clip_norm),
      VARIANT(test_clip_corners),
      VARIANT(test_adafactor),
      VARIANT(test_muon),
      VARIANT(test_atomic_steps_of_matrices),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
