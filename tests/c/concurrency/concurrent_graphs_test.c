/* Several threads use the same tensors, graphs and generators at once: calls give right results
   or an error, and never crash. Also run under ThreadSanitizer. */
#include "harness.h"

#include <pthread.h>

enum { kThreads = 4, kRounds = SLOW_BUILD ? 200 : 1000 };

typedef struct Job {
  pthread_t thread;
  int id;
  tt_ctx* x;
  int done, refused; /* calls that succeeded, and that failed in an allowed way */
  const char* failed;
} Job;
static Job jobs[kThreads];
static void (*body)(Job* j);
static pthread_barrier_t start;

/* Shared by all jobs of a test. */
static struct {
  tt_tensor *leaf, *other, *middle, *out;
  tt_generator* gen;
  tt_node* node;
  tt_optimizer* optim;
  int64_t draws[kThreads][kRounds];
} all;

static void* run_job(void* arg) {
  Job* j = arg;
  pthread_barrier_wait(&start);
  body(j);
  return NULL;
}

static void run_all(void (*f)(Job*)) {
  tt_runtime* rt;
  int i;
  OK(tt_ctx_runtime(c, &rt));
  body = f;
  assert_int_equal(pthread_barrier_init(&start, NULL, kThreads), 0);
  for (i = 0; i < kThreads; i++) {
    jobs[i] = (Job){.id = i};
    assert_int_equal(tt_ctx_new(rt, &jobs[i].x), TT_OK);
  }
  tt_runtime_release(rt);
  for (i = 0; i < kThreads; i++)
    assert_int_equal(pthread_create(&jobs[i].thread, NULL, run_job, &jobs[i]), 0);
  for (i = 0; i < kThreads; i++) pthread_join(jobs[i].thread, NULL);
  pthread_barrier_destroy(&start);
  for (i = 0; i < kThreads; i++) {
    tt_ctx_release(jobs[i].x);
    if (jobs[i].failed) print_error("%s\n", jobs[i].failed);
    assert_null(jobs[i].failed);
  }
}
static int total(int refused) {
  int i, n = 0;
  for (i = 0; i < kThreads; i++) n += refused ? jobs[i].refused : jobs[i].done;
  return n;
}

/* A call that may collide with another thread's: OK, or AUTOGRAD with one of these texts. */
static void may_meet(Job* j, tt_status s, const char* text) {
  if (s == TT_OK) {
    j->done++;
  } else if (s == TT_AUTOGRAD && strstr(tt_ctx_error(j->x)->message, text)) {
    j->refused++;
  } else {
    j->failed = "another error than the one that is allowed";
  }
}
#define MUST(call)         \
  do {                     \
    if ((call) != TT_OK) { \
      j->failed = #call;   \
      return;              \
    }                      \
  } while (0)

static const tt_backward_opts kRetain = {.set = TT_BACKWARD_RETAIN_GRAPH, .retain_graph = 1};

/* ---- one graph ---- */

static void backward_retained(Job* j) {
  int i;
  for (i = 0; i < kRounds; i++)
    may_meet(j, tt_backward(j->x, all.out, &kRetain), "two backward runs meet");
}
static void test_one_graph(void** state) {
  tt_tensor* e;
  (void)state;
  all.leaf = leaf(DATA(1, 2));
  OK(tt_mul(c, all.leaf, all.leaf, &e));
  OK(tt_mul_f64(c, e, 3, &e));
  OK(tt_sum(
      c, e, NULL,
      &all.out)); /* a chain: a backward that collides with another one never reaches the leaf */
  run_all(backward_retained);
  assert_int_equal(total(0) + total(1), kThreads * kRounds);
  assert_true(total(0) > 0);
  VALUES(grad_of(all.leaf), total(0) * 6, total(0) * 12);
  OK(tt_tensor_set_grad(c, all.leaf, NULL));
  OK(tt_backward(c, all.out, NULL)); /* nothing is left behind */
  VALUES(grad_of(all.leaf), 6, 12);
}

static void backward_once(Job* j) { may_meet(j, tt_backward(j->x, all.out, NULL), ""); }
static void test_one_graph_freed_by_the_first(void** state) {
  int round;
  (void)state;
  for (round = 0; round < kRounds / 10; round++) {
    tt_tensor* e;
    OK(tt_scope_push(c));
    all.leaf = leaf(DATA(0, 0));
    OK(tt_exp(c, all.leaf, &e));
    OK(tt_exp(c, e, &e));
    OK(tt_sum(c, e, NULL, &all.out));
    run_all(backward_once);
    assert_true(total(0) <= 1);
    OK(tt_scope_pop(c, NULL, 0));
  }
}

/* ---- nodes that are read ---- */

static void read_node(Job* j) {
  char text[512];
  int64_t n = 0;
  tt_tensor* saved = NULL;
  MUST(tt_node_describe(j->x, all.node, text, sizeof text, &n));
  if (!strstr(text, "\"name\":\"mul\",\"outputs\":[0,0],\"results\":[[2]]"))
    j->failed = "another node";
  may_meet(j, tt_node_saved(j->x, all.node, 1, &saved), "");
  tt_tensor_release(saved);
}
static void backward_or_read(Job* j) {
  int i;
  for (i = 0; i < kRounds; i++) {
    if (j->id) read_node(j);
    else MUST(tt_backward(j->x, all.out, &kRetain));
  }
}
static void backward_once_or_read(Job* j) {
  if (j->id) read_node(j);
  else MUST(tt_backward(j->x, all.out, NULL));
}
static void make_read_graph(void) {
  tt_tensor* e;
  all.leaf = leaf(DATA(1, 2));
  OK(tt_mul(c, all.leaf, all.leaf, &e));
  OK(tt_tensor_grad_fn(c, e, &all.node));
  OK(tt_sum(c, e, NULL, &all.out));
}
/* A reader makes no backward fail, nor another reader. */
static void test_nodes_are_read(void** state) {
  int round;
  (void)state;
  make_read_graph();
  run_all(backward_or_read);
  VALUES(grad_of(all.leaf), kRounds * 2, kRounds * 4);
  assert_true(total(0) > 0);
  tt_node_release(all.node);
  for (round = 0; round < kRounds / 10; round++) {
    OK(tt_scope_push(c));
    make_read_graph();
    run_all(backward_once_or_read);
    VALUES(grad_of(all.leaf), 2, 4);
    tt_node_release(all.node);
    OK(tt_scope_pop(c, NULL, 0));
  }
}

/* ---- tt_grad ---- */

static void grad_of_middle(Job* j) {
  const tt_grad_opts opts = {.set = TT_GRAD_RETAIN_GRAPH, .retain_graph = 1};
  const tt_tensor* out = all.out;
  const tt_tensor* in = j->id % 2 ? all.middle : all.leaf;
  int i;
  for (i = 0; i < kRounds; i++) {
    tt_tensor *g = NULL, *s = NULL;
    double got = 0;
    const tt_status status = tt_grad(j->x, &out, 1, &in, 1, &opts, &g);
    may_meet(j, status, "two backward runs meet");
    if (status) continue;
    MUST(tt_sum(j->x, g, NULL, &s));
    MUST(tt_item_f64(j->x, s, &got));
    if (got != (j->id % 2 ? 10 : 30)) j->failed = "a wrong gradient";
    tt_tensor_release(g);
    tt_tensor_release(s);
  }
}
static void test_grad_of_one_graph(void** state) {
  (void)state;
  all.leaf = leaf(DATA(1, 2));
  OK(tt_mul_f64(c, all.leaf, 3, &all.middle));
  OK(tt_mul_f64(c, all.middle, 5, &all.out));
  OK(tt_sum(c, all.out, NULL, &all.out));
  run_all(grad_of_middle);
  assert_true(total(0) > 0);
}

/* ---- hooks ---- */

static tt_status twice(void* user, tt_ctx* x, const tt_tensor* grad, tt_tensor** out) {
  (void)user;
  return tt_mul_f64(x, grad, 1, out);
}
static tt_status pass(void* user, tt_ctx* x, tt_tensor* const* grads, int64_t n, tt_tensor** out) {
  (void)user;
  (void)x;
  (void)grads;
  (void)n;
  (void)out;
  return TT_OK;
}
static tt_status see(void* user, tt_ctx* x, const tt_tensor* leaf) {
  (void)user;
  (void)x;
  (void)leaf;
  return TT_OK;
}
static int dropped;
static void drop(void* user) {
  (void)user;
  __atomic_fetch_add(&dropped, 1, __ATOMIC_RELAXED);
}
static void hook_or_run(Job* j) {
  int i;
  for (i = 0; i < kRounds; i++) {
    int64_t a, b, d, e;
    tt_node* node = NULL;
    if (j->id < 2) {
      may_meet(j, tt_backward(j->x, all.out, &kRetain), "two backward runs meet");
      continue;
    }
    MUST(tt_tensor_grad_fn(j->x, all.middle, &node));
    MUST(tt_register_hook(j->x, all.leaf, twice, NULL, drop, &a));
    MUST(tt_register_hook(j->x, all.middle, twice, NULL, drop, &b));
    MUST(tt_register_accumulate_hook(j->x, all.leaf, see, NULL, drop, &d));
    MUST(tt_node_register_hook(j->x, node, i & 1, pass, NULL, drop, &e));
    MUST(tt_remove_hook(j->x, all.leaf, a));
    MUST(tt_node_remove_hook(j->x, node, e));
    MUST(tt_remove_hook(j->x, all.middle, b));
    MUST(tt_remove_hook(j->x, all.leaf, d));
    tt_node_release(node);
  }
}
static void test_hooks_are_added_and_removed(void** state) {
  (void)state;
  dropped = 0;
  all.leaf = leaf(DATA(1, 2));
  OK(tt_mul_f64(c, all.leaf, 3, &all.middle));
  OK(tt_sum(c, all.middle, NULL, &all.out));
  run_all(hook_or_run);
  VALUES(grad_of(all.leaf), total(0) * 3, total(0) * 3);
  assert_int_equal(dropped, 2 * kRounds * 4);
}

/* ---- gradients ---- */

/* One thread trains; the others clear, set and get gradients. They do not read the values, which
   would be a data race. */
static void train(Job* j) {
  int i;
  for (i = 0; i < kRounds; i++) {
    tt_tensor *y, *l;
    MUST(tt_mul(j->x, all.leaf, all.other, &y));
    MUST(tt_sum(j->x, y, NULL, &l));
    MUST(tt_backward(j->x, l, NULL));
    MUST(tt_optim_step(j->x, all.optim));
    MUST(tt_clip_grad_value_(j->x, (tt_tensor*[]){all.leaf, all.other}, 2, 1));
    if (i % 3 == 0) MUST(tt_optim_zero_grad(j->x, all.optim, i & 1));
    tt_tensor_release(y);
    tt_tensor_release(l);
  }
}
static void change_gradients(Job* j) {
  int i;
  if (j->id == 0) {
    train(j);
    return;
  }
  for (i = 0; i < kRounds; i++) {
    tt_tensor* g = NULL;
    tt_tensor* t = i & 1 ? all.leaf : all.other;
    MUST(tt_tensor_grad(j->x, t, &g));
    if (g && tt_tensor_numel(g) != 2) j->failed = "no gradient of the leaf";
    MUST(tt_tensor_set_grad(j->x, t, (i >> 1) & 1 ? NULL : all.out));
    tt_tensor_release(g);
  }
}
static void test_gradients_are_set_and_removed(void** state) {
  tt_tensor* params[2];
  (void)state;
  params[0] = all.leaf = leaf(DATA(1, 2));
  params[1] = all.other = leaf(DATA(3, 4));
  all.out = numbers(TT_F64, DATA(5, 6));
  OK(tt_optim_adam(c, params, 2, NULL, &all.optim));
  run_all(change_gradients);
  OK(tt_optim_step(c, all.optim));
  tt_optim_release(all.optim);
}

/* ---- tensors that retain their gradient are released while other threads run their node ---- */

static void retain_and_drop(Job* j) {
  int i;
  for (i = 0; i < kRounds; i++) {
    tt_tensor *e, *l;
    const int64_t whole[] = {2};
    if (j->id == 0) {
      may_meet(j, tt_backward(j->x, all.out, &kRetain), "two backward runs meet");
      continue;
    }
    MUST(tt_view(j->x, all.middle, whole, 1, &e));
    MUST(tt_retain_grad(j->x, e));
    MUST(tt_retain_grad(j->x, all.middle));
    MUST(tt_sum(j->x, e, NULL, &l));
    may_meet(j, tt_backward(j->x, l, &kRetain), "two backward runs meet");
    tt_tensor_release(e);
    tt_tensor_release(l);
  }
}
static void test_retained_gradients(void** state) {
  (void)state;
  all.leaf = leaf(DATA(1, 2));
  OK(tt_mul_f64(c, all.leaf, 3, &all.middle));
  OK(tt_sum(c, all.middle, NULL, &all.out));
  run_all(retain_and_drop);
  assert_true(value_of(sum_of(grad_of(all.middle))) > 0);
}

/* ---- a view whose base was written since: the first thread replaces its node ---- */

static void use_view(Job* j) {
  const tt_tensor *out, *in = all.leaf;
  const tt_grad_opts opts = {.set = TT_GRAD_RETAIN_GRAPH, .retain_graph = 1};
  tt_tensor *y, *g = NULL;
  double got = 0;
  tt_status s;
  MUST(tt_mul_f64(j->x, all.middle, 1, &y));
  out = y;
  s = tt_grad(j->x, &out, 1, &in, 1, &opts, &g);
  may_meet(j, s, "two backward runs meet");
  if (s == TT_OK) {
    tt_tensor* t;
    MUST(tt_sum(j->x, g, NULL, &t));
    MUST(tt_item_f64(j->x, t, &got));
    if (got != 7) j->failed = "a wrong gradient";
    tt_tensor_release(t);
    tt_tensor_release(g);
  }
  tt_tensor_release(y);
}
static void test_stale_view(void** state) {
  int round;
  (void)state;
  for (round = 0; round < kRounds / 10; round++) {
    tt_tensor* base;
    OK(tt_scope_push(c));
    all.leaf = leaf(DATA(1, 2));
    OK(tt_mul_f64(c, all.leaf, 1, &base));
    OK(tt_select(c, base, 0, 1, &all.middle));
    OK(tt_mul_f64_(c, base, 7));
    run_all(use_view);
    OK(tt_scope_pop(c, NULL, 0));
  }
}

static void step_or_use_view(Job* j) {
  int i;
  for (i = 0; i < kRounds; i++) {
    tt_node* node = NULL;
    if (j->id == 0) {
      MUST(tt_optim_step(j->x, all.optim));
      continue;
    }
    MUST(tt_tensor_grad_fn(j->x, all.middle, &node)); /* a new one after each step */
    if (!node || !tt_tensor_requires_grad(all.middle)) j->failed = "no node";
    tt_node_release(node);
  }
}
static void test_view_of_a_parameter_that_is_stepped(void** state) {
  tt_tensor* z;
  (void)state;
  all.leaf = leaf(DATA(1, 2));
  OK(tt_tensor_set_grad(c, all.leaf, numbers(TT_F64, DATA(1, 1))));
  OK(tt_optim_sgd(c, &all.leaf, 1, NULL, &all.optim));
  OK(tt_select(c, all.leaf, 0, 1, &all.middle));
  OK(tt_retain_grad(c, all.middle));
  OK(tt_mul_f64(c, all.middle, 3, &z));
  run_all(step_or_use_view);
  OK(tt_backward(c, z, NULL)); /* through the view's former node */
  tt_optim_release(all.optim);
}

/* ---- a generator: each call draws numbers of its own ---- */

static void draw(Job* j) {
  tt_rand_opts opts = {.set = TT_RAND_GENERATOR | TT_RAND_DTYPE};
  int i;
  opts.generator = all.gen;
  opts.dtype = TT_F64;
  for (i = 0; i < kRounds; i++) {
    tt_tensor* t;
    MUST(tt_rand(j->x, NULL, 0, &opts, &t));
    memcpy(&all.draws[j->id][i], tt_tensor_data(t), 8);
    tt_tensor_release(t);
  }
}
static int ascending(const void* a, const void* b) {
  const int64_t x = *(const int64_t*)a;
  const int64_t y = *(const int64_t*)b;
  return (x > y) - (x < y);
}
static void test_one_generator(void** state) {
  int64_t* flat = all.draws[0];
  uint64_t now[2];
  int i;
  (void)state;
  OK(tt_generator_new(c, 3, &all.gen));
  run_all(draw);
  qsort(flat, kThreads * kRounds, sizeof *flat, ascending);
  for (i = 1; i < kThreads * kRounds; i++) assert_true(flat[i] != flat[i - 1]);
  OK(tt_generator_state(c, all.gen, now));
  assert_true(now[0] == 3 && now[1] >= kThreads * kRounds);
  tt_generator_release(all.gen);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCOPED(test_one_graph),
      SCOPED(test_one_graph_freed_by_the_first),
      SCOPED(test_nodes_are_read),
      SCOPED(test_grad_of_one_graph),
      SCOPED(test_hooks_are_added_and_removed),
      SCOPED(test_gradients_are_set_and_removed),
      SCOPED(test_retained_gradients),
      SCOPED(test_stale_view),
      SCOPED(test_view_of_a_parameter_that_is_stepped),
      SCOPED(test_one_generator),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
