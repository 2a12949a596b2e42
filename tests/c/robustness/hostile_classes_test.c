/* Every layer, optimizer and scheduler, constructed with one or several senseless arguments and
   then used. Each call must end within seconds with a result, or with a status that names the
   class and the argument. TT_HOSTILE_TRACE=1 prints every construction before it is made. */
#include "harness.h"
#include "share.h"

#include <math.h>
#include <signal.h>
#include <unistd.h>

enum {
  kMaxArgs = 16,
  kMaxList = 8,
  kTrials = SLOW_BUILD ? 60 : 300,
  kSecondsPerCall = 30,
  kDoing = 512
};
static const int64_t kMemoryLimit = (int64_t)48 << 20;

/* An argument of a constructor. Optional ones are passed to C if they are given. */
typedef struct Given {
  int given;
  int64_t i, n; /* n: of the lists */
  double f[2];
  const int64_t* ints;
  const double* reals;
  tt_tensor* const* tensors;
  tt_scheduler* const* schedulers;
  const tt_tensor* tensor;
  tt_optimizer* optimizer;
  tt_module* module;
  tt_device device;
} Given;
typedef enum Kind { kLayer, kOptimizer, kScheduler } Kind;
typedef struct Class {
  const char *name, *host;
  Kind kind;
  tt_status (*make)(const Given* a, void** out);
  int n_inputs, n_args;
  struct {
    const char *name, *type;
    int has_default;
  } args[kMaxArgs];
} Class;
#include "class_rows.inc"
enum { kNumClasses = sizeof kClasses / sizeof *kClasses };

static char doing[kDoing]; /* the construction in progress, for messages */
static int traced, n_made, n_accepted, n_wrong;

static void too_slow(int sig) {
  (void)sig;
  (void)!write(2, "takes too long: ", 16);
  (void)!write(2, doing, strlen(doing));
  (void)!write(2, "\n", 1);
  _exit(1);
}
static void wrong(const char* text) {
  n_wrong++;
  print_error("%s: %s: %s (argument \"%s\")\n", doing, text, tt_ctx_error(c)->message,
              tt_ctx_error(c)->arg);
}

/* ---- what classes take ---- */

static struct {
  tt_tensor* parameter;
  tt_optimizer* optimizer;
  tt_module *encoder_layer, *decoder_layer;
  tt_scheduler* schedulers[2];
} live;
static void make_live(void) {
  const tt_nn_transformer_encoder_layer_opts encoder = {
      .set = TT_NN_TRANSFORMER_ENCODER_LAYER_DIM_FEEDFORWARD, .dim_feedforward = 4};
  const tt_nn_transformer_decoder_layer_opts decoder = {
      .set = TT_NN_TRANSFORMER_DECODER_LAYER_DIM_FEEDFORWARD, .dim_feedforward = 4};
  OK(tt_randn(c, SHAPE(2, 2), NULL, &live.parameter));
  OK(tt_requires_grad_(c, live.parameter, 1));
  OK(tt_optim_sgd(c, &live.parameter, 1, NULL, &live.optimizer));
  OK(tt_nn_transformer_encoder_layer(c, 4, 2, &encoder, &live.encoder_layer));
  OK(tt_nn_transformer_decoder_layer(c, 4, 2, &decoder, &live.decoder_layer));
  OK(tt_lr_step(c, live.optimizer, 2, NULL, &live.schedulers[0]));
  OK(tt_lr_exponential(c, live.optimizer, 0.5, NULL, &live.schedulers[1]));
}
static void drop_live(void) {
  tt_scheduler_release(live.schedulers[0]);
  tt_scheduler_release(live.schedulers[1]);
  tt_optim_release(live.optimizer);
  tt_module_release(live.encoder_layer);
  tt_module_release(live.decoder_layer);
}

static const int64_t kTwo[kMaxList] = {2, 2, 2, 2, 2, 2, 2, 2};
static const double kHalves[kMaxList] = {0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5};
/* Sets arguments that every class accepts. */
static void usual(const Class* k, Given* a) {
  int i;
  memset(a, 0, kMaxArgs * sizeof *a);
  for (i = 0; i < k->n_args; i++) {
    const char* type = k->args[i].type;
    a[i].given = !k->args[i].has_default || strcmp(k->args[i].name, "total_steps") == 0;
    a[i].i = strncmp(type, "Enum", 4) == 0 || strcmp(type, "Bool") == 0 ? 0 : 4;
    a[i].f[0] = a[i].f[1] = 0.5;
    a[i].ints = kTwo;
    a[i].reals = kHalves;
    a[i].n = 1;
    a[i].tensors = &live.parameter;
    a[i].tensor = live.parameter;
    a[i].optimizer = live.optimizer;
    a[i].module =
        strcmp(k->args[i].name, "decoder_layer") == 0 ? live.decoder_layer : live.encoder_layer;
    if (strstr(k->args[i].name, "coder_layers")) { /* as the default of 6, in less time */
      a[i].given = 1;
      a[i].i = 1;
    }
    if (strcmp(type, "Scheduler[]") == 0) {
      a[i].schedulers = live.schedulers;
      a[i].n = 2;
    }
  }
}

/* ---- use ---- */

enum { kInputs = 8, kMaxInputs = 4 };
static tt_tensor* input(int i) {
  const int64_t ndim = i < 6 ? i : 2;
  const tt_ones_opts index = {.set = TT_ONES_DTYPE, .dtype = TT_I64};
  tt_tensor* t;
  if (i < 6) OK(tt_ones(c, (const int64_t[]){2, 4, 6, 6, 6}, ndim, NULL, &t));
  if (i == 6) OK(tt_ones(c, SHAPE(2, 3), &index, &t));
  if (i == 7) OK(tt_ones(c, SHAPE(0, 4), NULL, &t));
  return t;
}
static int is_name(const Class* k, const char* name) {
  int i;
  for (i = 0; i < k->n_args; i++)
    if (strcmp(k->args[i].name, name) == 0) return 1;
  return 0;
}

static void use_layer(const Class* k, tt_module* m) {
  tt_tensor *outs[3], *weight = NULL;
  tt_module* copy;
  char text[256];
  int64_t n = 0, n_outs;
  int i, j, second;
  if (tt_module_print(c, m, text, sizeof text, &n) == TT_INTERNAL) wrong("cannot be printed");
  for (i = 0; i < kInputs; i++)
    for (j = 0; j < (k->n_inputs > 1 ? kInputs : 1); j++) {
      const tt_tensor* in[kMaxInputs];
      tt_status s;
      OK(tt_scope_push(c));
      second = k->n_inputs > 1 ? j : i;
      assert_true(k->n_inputs <= kMaxInputs);
      in[0] = input(i);
      in[1] = in[2] = in[3] = input(second);
      s = tt_module_forward(c, m, in, k->n_inputs, outs, 3, &n_outs);
      if (s == TT_INTERNAL) wrong("an internal error of forward");
      if (s && strncmp(tt_ctx_error(c)->message, k->host, strlen(k->host)))
        wrong("forward fails and does not name the layer");
      if (!s && outs[0] && tt_tensor_requires_grad(outs[0]) && !tt_sum(c, outs[0], NULL, &weight))
        if (tt_backward(c, weight, NULL) == TT_INTERNAL) wrong("an internal error of backward");
      OK(tt_scope_pop(c, NULL, 0));
    }
  OK(tt_module_copy(c, m, &copy));
  tt_module_release(copy);
}
static void use_optimizer(tt_optimizer* o) {
  int i;
  tt_tensor *square, *loss;
  for (i = 0; i < 2; i++) {
    OK(tt_mul(c, live.parameter, live.parameter, &square));
    OK(tt_sum(c, square, NULL, &loss));
    OK(tt_backward(c, loss, NULL));
    if (tt_optim_step(c, o) == TT_INTERNAL) wrong("an internal error of step");
  }
}
static void use_scheduler(tt_scheduler* s) {
  double rates[4];
  int64_t n;
  int i;
  for (i = 0; i < 6; i++)
    if (tt_scheduler_step(c, s) == TT_INTERNAL) wrong("an internal error of step");
  if (tt_scheduler_step_to(c, s, INT64_MAX) == TT_INTERNAL) wrong("an internal error of step_to");
  if (tt_scheduler_step_to(c, s, INT64_MIN) == TT_INTERNAL) wrong("an internal error of step_to");
  if (tt_scheduler_get_last_lr(c, s, rates, 4, &n) == TT_INTERNAL)
    wrong("an internal error of get_last_lr");
}

/* Constructs an object and uses it. */
static tt_status construct(const Class* k, const Given* a) {
  void* made = (void*)&made;
  const size_t length = strlen(k->name);
  tt_status s;
  if (traced) fprintf(stderr, "%s\n", doing);
  OK(tt_scope_push(c));
  OK(tt_manual_seed(c, 5));
  alarm(kSecondsPerCall);
  s = k->make(a, &made);
  n_made++, n_accepted += !s;
  if (s) {
    const tt_error* e = tt_ctx_error(c);
    if (s == TT_INTERNAL) wrong("an internal error");
    if (made) wrong("fails and leaves an object");
    if (strncmp(e->message, k->name, length) || e->message[length] != ':')
      wrong("does not name the class");
    if (s != TT_OOM && !is_name(k, e->arg)) wrong("does not name an argument of the class");
  } else if (k->kind == kLayer) {
    use_layer(k, made);
    tt_module_release(made);
  } else if (k->kind == kOptimizer) {
    use_optimizer(made);
    tt_optim_release(made);
  } else {
    use_scheduler(made);
    tt_scheduler_release(made);
  }
  alarm(0);
  OK(tt_scope_pop(c, NULL, 0));
  return s;
}

/* ---- replacements ---- */

static const int64_t kIntegers[] = {
    INT64_MIN,        INT64_MIN + 1,          -((int64_t)1 << 62), -2,       -1, 0, 1, 3,
    (int64_t)1 << 31, ((int64_t)1 << 61) + 1, (int64_t)1 << 62,    INT64_MAX};
static const double kReals[] = {0, -1, 2, NAN, INFINITY, -INFINITY, 1e308, 5e-324};
enum {
  kNumIntegers = sizeof kIntegers / sizeof *kIntegers,
  kNumReals = sizeof kReals / sizeof *kReals
};

static uint64_t chance_now;
static int64_t chance(int64_t below) { /* Knuth's MMIX generator */
  chance_now = chance_now * 6364136223846793005u + 1442695040888963407u;
  return (int64_t)((chance_now >> 33) % (uint64_t)below);
}

static int is_integer(const char* type) {
  return strncmp(type, "Int", 3) == 0 || strncmp(type, "Dim", 3) == 0 ||
         strncmp(type, "Index", 5) == 0 || strncmp(type, "Enum", 4) == 0 ||
         strcmp(type, "Shape") == 0;
}
static int is_real(const char* type) { return strncmp(type, "Float", 5) == 0; }

static int64_t list_of_ints[kMaxArgs][kMaxList];
static double list_of_reals[kMaxArgs][kMaxList];
/* Argument i becomes v, or a list of n such. */
static void put_integer(Given* a, int i, int64_t v, int64_t n) {
  int64_t k;
  for (k = 0; k < kMaxList; k++) list_of_ints[i][k] = v;
  a[i].given = 1;
  a[i].i = v;
  a[i].ints = list_of_ints[i];
  a[i].n = n;
}
static void put_real(Given* a, int i, double v, int64_t n) {
  int64_t k;
  for (k = 0; k < kMaxList; k++) list_of_reals[i][k] = v;
  a[i].given = 1;
  a[i].f[0] = a[i].f[1] = v;
  a[i].reals = list_of_reals[i];
  a[i].n = n;
}

static void replace_one(const Class* k) {
  Given a[kMaxArgs];
  int i;
  size_t v;
  int64_t n;
  for (i = 0; i < k->n_args; i++) {
    const char* type = k->args[i].type;
    for (v = 0; is_integer(type) && v < kNumIntegers; v++)
      for (n = 0; n < (strchr(type, '[') || strcmp(type, "Shape") == 0 ? 5 : 1); n++) {
        usual(k, a);
        put_integer(a, i, kIntegers[v], n);
        snprintf(doing, sizeof doing, "%s, %s = %lld (%d of them)", k->name, k->args[i].name,
                 (long long)kIntegers[v], (int)n);
        construct(k, a);
      }
    for (v = 0; is_real(type) && v < kNumReals; v++)
      for (n = 0; n < (strchr(type, '[') ? 4 : 1); n++) {
        usual(k, a);
        put_real(a, i, kReals[v], n);
        snprintf(doing, sizeof doing, "%s, %s = %g (%d of them)", k->name, k->args[i].name,
                 kReals[v], (int)n);
        construct(k, a);
      }
    for (n = 0; strcmp(type, "Bool") == 0 && n < 2; n++) {
      usual(k, a);
      put_integer(a, i, n, 0);
      snprintf(doing, sizeof doing, "%s, %s = %d", k->name, k->args[i].name, (int)n);
      construct(k, a);
    }
    if (strchr(type, '[') && strcmp(type, "Float[2]")) {
      usual(k, a);
      a[i].given = 1;
      a[i].n = 3;
      a[i].ints = NULL;
      a[i].reals = NULL;
      a[i].tensors = NULL;
      a[i].schedulers = NULL;
      snprintf(doing, sizeof doing, "%s, %s = NULL of length 3", k->name, k->args[i].name);
      if (!construct(k, a)) wrong("NULL is accepted");
      a[i].n = -1;
      snprintf(doing, sizeof doing, "%s, %s of length -1", k->name, k->args[i].name);
      if (!construct(k, a)) wrong("a negative length is accepted");
    }
    if (strcmp(type, "DType?") == 0)
      for (n = -1; n < 20; n++) {
        usual(k, a);
        put_integer(a, i, n, 0);
        snprintf(doing, sizeof doing, "%s, %s = %d", k->name, k->args[i].name, (int)n);
        construct(k, a);
      }
    if (strcmp(type, "Device?") == 0)
      for (n = -1; n < 8; n++) {
        usual(k, a);
        a[i].given = 1;
        a[i].device.type = (int32_t)n;
        a[i].device.index = (int32_t)(n & 1);
        snprintf(doing, sizeof doing, "%s, %s = {%d, %d}", k->name, k->args[i].name, (int)n,
                 (int)(n & 1));
        construct(k, a);
      }
  }
}

static void replace_many(const Class* k) {
  Given a[kMaxArgs];
  int trial, i;
  chance_now = 1;
  for (trial = 0; k->n_args > 1 && trial < kTrials / share() * k->n_args; trial++) {
    int at = snprintf(doing, sizeof doing, "%s, trial %d", k->name, trial);
    usual(k, a);
    for (i = 0; i < k->n_args; i++) {
      const char* type = k->args[i].type;
      const int64_t v = chance(3) ? kIntegers[chance(kNumIntegers)] : 1 + chance(8);
      const double f = kReals[chance(kNumReals)];
      if (chance(2)) continue;
      if (strncmp(type, "Enum", 4) == 0 || strcmp(type, "Bool") == 0)
        put_integer(a, i, chance(2), 0);
      else if (is_integer(type)) put_integer(a, i, v, 1 + chance(3));
      else if (is_real(type)) put_real(a, i, f, 1 + chance(2));
      else continue;
      at += snprintf(doing + at, sizeof doing - (size_t)at, ", %s = %lld or %g (%d of them)",
                     k->args[i].name, (long long)a[i].i, a[i].f[0], (int)a[i].n);
    }
    construct(k, a);
  }
}

static void replace_enumerators(const Class* k) {
  static const int64_t kNumbers[] = {-1, 8, 100000, INT32_MIN, INT32_MAX};
  Given a[kMaxArgs];
  int i;
  size_t v;
  for (i = 0; i < k->n_args; i++)
    for (v = 0; strncmp(k->args[i].type, "Enum", 4) == 0 && v < sizeof kNumbers / sizeof *kNumbers;
         v++) {
      usual(k, a);
      put_integer(a, i, kNumbers[v], 0);
      snprintf(doing, sizeof doing, "%s, %s = %lld", k->name, k->args[i].name,
               (long long)kNumbers[v]);
      if (construct(k, a) != TT_INVALID_ARG || strcmp(tt_ctx_error(c)->arg, k->args[i].name))
        wrong("a number that is no enumerator is not refused by name");
    }
}

static void test_class(void** state) {
  const Class* k = *state;
  Given a[kMaxArgs];
  n_wrong = 0;
  OK(tt_scope_push(c));
  make_live();
  OK(tt_set_memory_limit(c, kMemoryLimit));
  usual(k, a);
  snprintf(doing, sizeof doing, "%s", k->name);
  OK(construct(k, a));
  replace_one(k);
  replace_many(k);
  replace_enumerators(k);
  drop_live();
  OK(tt_scope_pop(c, NULL, 0));
  assert_int_equal(n_wrong, 0);
}

int main(int argc, char** argv) {
  struct CMUnitTest* tests = calloc(kNumClasses, sizeof *tests);
  int i, n = 0, failed;
  traced = getenv("TT_HOSTILE_TRACE") != NULL;
  signal(SIGALRM, too_slow);
  for (i = 0; i < kNumClasses; i++) {
    if (argc > 1 && strcmp(argv[1], kClasses[i].name)) continue;
    tests[n].name = kClasses[i].name;
    tests[n].test_func = test_class;
    tests[n].setup_func = open_plain;
    tests[n].teardown_func = close_ctx;
    tests[n++].initial_state = (void*)(uintptr_t)&kClasses[i];
  }
  failed = _cmocka_run_group_tests("hostile_classes", tests, (size_t)n, NULL, NULL);
  print_message("%d classes, %d constructions, %d of them accepted\n", n, n_made, n_accepted);
  free(tests);
  return failed;
}
