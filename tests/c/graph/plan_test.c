/* Plans: a captured training step replayed beside the same step of operators. */
#include "harness.h"

#include <pthread.h>
#include <unistd.h>

static const double kValues[] = {1, -2, 3, -4, 5, -6, 7, 8, -9, 10, 11, -12};
enum { kSteps = 50, kBatch = 4, kIn = 3, kHidden = 8 };

typedef struct Model {
  tt_tensor *w1, *w2, *total; /* total is the sum of the losses: state besides the parameters */
} Model;

static tt_tensor* weights(int64_t rows, int64_t columns) {
  const int64_t shape[] = {rows, columns};
  tt_tensor* t;
  OK(tt_randn(c, shape, 2, NULL, &t));
  OK(tt_requires_grad_(c, t, 1));
  return t;
}
static Model new_model(void) {
  Model m;
  OK(tt_manual_seed(c, 3));
  m.w1 = weights(kIn, kHidden);
  m.w2 = weights(kHidden, 1);
  m.total = number(TT_F32, 0);
  return m;
}

/* w -= 0.01 grad */
static void descend(tt_tensor* w, tt_tensor* grad) {
  tt_tensor* step;
  OK(tt_mul_f64(c, grad, 0.01, &step));
  OK(tt_sub_(c, w, step));
}

/* One step with dropout, a view and state that is written in place. Returns the loss. */
static tt_tensor* train(Model* m, const tt_tensor* x) {
  tt_tensor *h, *a, *d, *y, *loss, *grad1, *grad2;
  int32_t before;
  OK(tt_matmul(c, x, m->w1, &h));
  OK(tt_tanh(c, h, &a));
  OK(tt_dropout(c, a, NULL, &d));
  OK(tt_matmul(c, d, m->w2, &y));
  OK(tt_view(c, y, SHAPE(2, kBatch / 2), &y));
  OK(tt_mul(c, y, y, &y));
  OK(tt_mean(c, y, NULL, &loss));
  grad1 = derive(loss, m->w1, 1);
  grad2 = derive(loss, m->w2, 0);
  OK(tt_set_grad_enabled(c, 0, &before));
  descend(m->w1, grad1);
  descend(m->w2, grad2);
  OK(tt_add_(c, m->total, loss));
  OK(tt_set_grad_enabled(c, before, NULL));
  return loss;
}

static tt_tensor* batch(int k) {
  double values[kBatch * kIn];
  int i;
  for (i = 0; i < kBatch * kIn; i++) values[i] = kValues[(i + k) % 12] * 0.1 + k % 3;
  return make(TT_F32, SHAPE(kBatch, kIn), values, kBatch * kIn);
}

static void same_bits(const tt_tensor* a, const tt_tensor* b) {
  float x[64], y[64];
  const int64_t bytes = tt_tensor_numel(a) * 4;
  assert_true(bytes <= (int64_t)sizeof x);
  OK(tt_tensor_read(c, a, x, bytes));
  OK(tt_tensor_read(c, b, y, bytes));
  assert_memory_equal(x, y, (size_t)bytes);
}

static tt_graph* captured_step(Model* m) {
  tt_tensor *x = batch(99), *loss;
  tt_graph* g;
  OK(tt_capture_begin(c, LIST(x), NULL));
  loss = train(m, x);
  OK(tt_capture_end(c, LIST(loss), &g));
  return g;
}

/* Sets model b to the state of model a. */
static void copy_model(Model* b, const Model* a) {
  int32_t before;
  OK(tt_set_grad_enabled(c, 0, &before));
  OK(tt_copy_(c, b->w1, a->w1));
  OK(tt_copy_(c, b->w2, a->w2));
  OK(tt_copy_(c, b->total, a->total));
  OK(tt_set_grad_enabled(c, before, NULL));
}

/* 50 steps with new dropout masks: losses and parameters are equal bit by bit, and a run allocates
   nothing. The arena is the test's, full of nan. */
static void test_training_curve(void** state) {
  Model eager = new_model(), replayed = new_model();
  tt_graph* g = captured_step(&replayed);
  tt_plan* p;
  tt_tensor *in, *out;
  int64_t bytes;
  char* arena;
  tt_plan_opts opts = {.set = TT_PLAN_ARENA | TT_PLAN_ARENA_BYTES};
  int k;
  (void)state;
  OK(tt_graph_arena_bytes(c, g, &bytes));
  assert_true(bytes > 0);
  arena = aligned_alloc(64, ((size_t)bytes + 127) / 64 * 64);
  opts.arena = arena + 32;
  opts.arena_bytes = bytes;
  FAILS(tt_plan_new(c, g, &opts, &p), TT_INVALID_ARG, "arena must be aligned to 64 bytes");
  opts.arena = arena;
  opts.arena_bytes = bytes - 1;
  FAILS(tt_plan_new(c, g, &opts, &p), TT_BUFFER_TOO_SMALL, "the plan needs");
  opts.arena_bytes = bytes;
  OK(tt_plan_new(c, g, &opts, &p));
  OK(tt_plan_slot(c, p, 0, 0, &in));
  OK(tt_plan_slot(c, p, 1, 0, &out));
  copy_model(&replayed, &eager);
  for (k = 0; k < kSteps; k++) {
    tt_tensor* x = batch(k);
    tt_tensor* loss;
    int64_t calls;
    OK(tt_manual_seed(c, (uint64_t)k));
    loss = train(&eager, x);
    memset(arena, 0xff, (size_t)bytes);
    OK(tt_copy_(c, in, x));
    OK(tt_manual_seed(c, (uint64_t)k));
    calls = host.calls;
    OK(tt_plan_run(c, p));
    assert_int_equal(host.calls, calls);
    same_bits(out, loss);
    same_bits(replayed.w1, eager.w1);
    same_bits(replayed.total, eager.total);
  }
  tt_plan_release(p);
  tt_graph_release(g);
  free_aligned(arena);
}

/* A run in time slices of zero: one launch each. */
static void test_run_for(void** state) {
  Model eager = new_model(), replayed = new_model();
  tt_graph* g = captured_step(&replayed);
  tt_plan* p;
  tt_tensor *in, *out, *x = batch(1), *loss;
  int32_t done = 0;
  int slices = 0;
  (void)state;
  OK(tt_plan_new(c, g, NULL, &p));
  OK(tt_plan_slot(c, p, 0, 0, &in));
  OK(tt_plan_slot(c, p, 1, 0, &out));
  copy_model(&replayed, &eager);
  OK(tt_manual_seed(c, 5));
  loss = train(&eager, x);
  OK(tt_copy_(c, in, x));
  OK(tt_manual_seed(c, 5));
  for (; !done; slices++) OK(tt_plan_run_for(c, p, 0, &done));
  assert_true(slices > 5);
  same_bits(out, loss);
  same_bits(replayed.w1, eager.w1);
  FAILS(tt_plan_slot(c, p, 1, 1, &out), TT_INVALID_ARG, "outputs");
  tt_plan_release(p);
  tt_graph_release(g);
}

static tt_status refuse(void* user, tt_ctx* x) {
  (void)x;
  ++*(int*)user;
  return TT_INTERNAL;
}

/* A cancelled run fails, also between two slices, and so does one that the poll callback ends; the
   next run begins anew. */
static void test_cancel_and_poll(void** state) {
  Model eager = new_model(), replayed = new_model();
  tt_graph* g = captured_step(&replayed);
  tt_plan* p;
  tt_cancel* token;
  tt_tensor *in, *out, *x = batch(1), *loss;
  tt_status status = TT_OK;
  int32_t done;
  int polls = 0, k;
  (void)state;
  OK(tt_plan_new(c, g, NULL, &p));
  OK(tt_plan_slot(c, p, 0, 0, &in));
  OK(tt_plan_slot(c, p, 1, 0, &out));
  OK(tt_cancel_new(c, &token));
  OK(tt_ctx_set_cancel(c, token));
  OK(tt_plan_run_for(c, p, INT64_MAX, &done)); /* no limit */
  assert_int_equal(done, 1);
  OK(tt_plan_run_for(c, p, 0, &done));
  tt_cancel_request(token);
  FAILS(tt_plan_run_for(c, p, 0, &done), TT_CANCELLED, NULL);
  FAILS(tt_plan_run(c, p), TT_CANCELLED, NULL);
  OK(tt_ctx_set_cancel(c, NULL));
  tt_cancel_release(token);
  OK(tt_ctx_set_poll(c, refuse, &polls, NULL));
  for (k = 0; k < 10000000 && status == TT_OK; k++) status = tt_plan_run(c, p);
  assert_int_equal(status, TT_CALLBACK);
  assert_int_equal(polls, 1);
  OK(tt_ctx_set_poll(c, NULL, NULL, NULL));
  copy_model(&replayed, &eager);
  OK(tt_manual_seed(c, 5));
  loss = train(&eager, x);
  OK(tt_copy_(c, in, x));
  OK(tt_manual_seed(c, 5));
  OK(tt_plan_run(c, p));
  same_bits(out, loss);
  same_bits(replayed.w1, eager.w1);
  tt_plan_release(p);
  tt_graph_release(g);
}

/* Plans of one graph on several threads. */
typedef struct Job {
  tt_runtime* rt;
  const tt_graph* g;
  float result[4];
} Job;
static void* run_job(void* user) {
  Job* job = user;
  tt_ctx* x;
  tt_plan* p;
  tt_tensor* out;
  int k, bad = tt_ctx_new(job->rt, &x) || tt_plan_new(x, job->g, NULL, &p) ||
               tt_plan_slot(x, p, 0, 0, &out);
  static const float in[] = {1, 2, 3, 4};
  float* data = bad ? NULL : tt_tensor_data(out);
  if (bad) return user;
  memcpy(data, in, sizeof in);
  tt_tensor_release(out);
  for (k = 0; k < 200; k++) bad |= tt_plan_run(x, p);
  bad |= tt_plan_slot(x, p, 1, 0, &out);
  memcpy(job->result, tt_tensor_data(out), sizeof job->result);
  tt_tensor_release(out);
  tt_plan_release(p);
  tt_ctx_release(x);
  return bad ? user : NULL;
}
static void test_threads(void** state) {
  tt_tensor *x = numbers(TT_F32, kValues, 4), *y;
  tt_graph* g;
  Job jobs[2];
  pthread_t threads[2];
  tt_runtime* rt;
  void* failed;
  int i;
  (void)state;
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_exp(c, x, &y));
  OK(tt_add(c, y, x, &y));
  OK(tt_capture_end(c, LIST(y), &g));
  OK(tt_ctx_runtime(c, &rt));
  host.paused = 1;
  for (i = 0; i < 2; i++) {
    jobs[i] = (Job){rt, g, {0}};
    assert_int_equal(pthread_create(&threads[i], NULL, run_job, &jobs[i]), 0);
  }
  for (i = 0; i < 2; i++) {
    pthread_join(threads[i], &failed);
    assert_null(failed);
  }
  host.paused = 0;
  assert_memory_equal(jobs[0].result, jobs[1].result, sizeof jobs[0].result);
  tt_graph_release(g);
  tt_runtime_release(rt);
}

/* One plan on several threads: each run is whole, or fails since the other thread is in one. */
typedef struct SharedJob {
  tt_runtime* rt;
  tt_plan* p;
  int n_runs, n_refused, n_others;
} SharedJob;
static void* run_shared(void* user) {
  SharedJob* job = user;
  tt_ctx* x;
  int k;
  if (tt_ctx_new(job->rt, &x)) return user;
  for (k = 0; k < 300; k++) {
    const tt_status s = tt_plan_run(x, job->p);
    if (s == TT_OK) job->n_runs++;
    else if (strstr(tt_ctx_error(x)->message, "running on another thread")) job->n_refused++;
    else job->n_others++;
  }
  tt_ctx_release(x);
  return NULL;
}
static void test_one_plan_on_two_threads(void** state) {
  tt_tensor *x = numbers(TT_F32, kValues, 4), *y, *want, *slot;
  tt_graph* g;
  SharedJob jobs[2];
  pthread_t threads[2];
  tt_runtime* rt;
  tt_plan* p;
  int i;
  (void)state;
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_exp(c, x, &y));
  OK(tt_add(c, y, x, &want));
  OK(tt_capture_end(c, LIST(want), &g));
  OK(tt_plan_new(c, g, NULL, &p));
  OK(tt_plan_slot(c, p, 0, 0, &slot));
  OK(tt_copy_(c, slot, x));
  OK(tt_ctx_runtime(c, &rt));
  host.paused = 1;
  for (i = 0; i < 2; i++) {
    jobs[i] = (SharedJob){rt, p, 0, 0, 0};
    assert_int_equal(pthread_create(&threads[i], NULL, run_shared, &jobs[i]), 0);
  }
  for (i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  host.paused = 0;
  for (i = 0; i < 2; i++) {
    assert_int_equal(jobs[i].n_others, 0);
    assert_int_equal(jobs[i].n_runs + jobs[i].n_refused, 300);
  }
  assert_true(jobs[0].n_runs + jobs[1].n_runs > 0);
  OK(tt_plan_slot(c, p, 1, 0, &slot));
  assert_memory_equal(tt_tensor_data(slot), tt_tensor_data(want), 4 * sizeof(float));
  tt_plan_release(p);
  tt_graph_release(g);
  tt_runtime_release(rt);
}

/* Checks that composites make are operators of the graph: a run with a bad index fails as the call
   does, and the plan can be run again. */
static void test_checks(void** state) {
  static const double kIndex[] = {0, 5, -1}, kBad[] = {0, 6, -1}, kStarts[] = {0, 2};
  static const double kBadStarts[] = {1, 2}, kSingular[] = {1, 2, 2, 4}, kMatrix[] = {2, 1, 1, 3};
  tt_tensor *x = numbers(TT_F32, kValues, 6), *index = numbers(TT_I64, kIndex, 3);
  tt_tensor *starts = numbers(TT_I64, kStarts, 2), *matrix = numbers(TT_F32, kMatrix, 4);
  tt_tensor *table, *positions, *taken, *bags, *inverse, *slots[4], *outs[3];
  tt_graph *g, *optimized;
  tt_plan* p;
  int i;
  (void)state;
  OK(tt_view(c, x, SHAPE(3, 2), &table));
  OK(tt_view(c, matrix, SHAPE(2, 2), &matrix));
  OK(tt_capture_begin(c, LIST(x, index, starts, matrix), NULL));
  OK(tt_take(c, x, index, &taken));
  OK(tt_remainder_i64(c, index, 3, &positions));
  OK(tt_view(c, x, SHAPE(3, 2), &table));
  OK(tt_embedding_bag(c, table, positions, starts, NULL, &bags));
  OK(tt_linalg_inv(c, matrix, &inverse));
  OK(tt_capture_end(c, LIST(taken, bags, inverse), &g));
  OK(tt_graph_optimize(c, g, NULL, &optimized));
  OK(tt_plan_new(c, optimized, NULL, &p));
  for (i = 0; i < 4; i++) OK(tt_plan_slot(c, p, 0, i, &slots[i]));
  for (i = 0; i < 3; i++) OK(tt_plan_slot(c, p, 1, i, &outs[i]));
  for (i = 0; i < 7; i++) {
    const double* of_matrix = i == 5 ? kSingular : kMatrix;
    OK(tt_copy_(c, slots[0], x));
    OK(tt_copy_(c, slots[1], numbers(TT_I64, i == 1 ? kBad : kIndex, 3)));
    OK(tt_copy_(c, slots[2], numbers(TT_I64, i == 3 ? kBadStarts : kStarts, 2)));
    OK(tt_view(c, numbers(TT_F32, of_matrix, 4), SHAPE(2, 2), &matrix));
    OK(tt_copy_(c, slots[3], matrix));
    switch (i) {
      case 1:
        FAILS(tt_plan_run(c, p), TT_INDEX, "take: index holds 6 at [1]: must be in [-6, 6)");
        assert_string_equal(tt_ctx_error(c)->op, "take");
        assert_string_equal(tt_ctx_error(c)->arg, "index");
        break;
      case 3: FAILS(tt_plan_run(c, p), TT_INVALID_ARG, "embedding_bag: offsets must begin"); break;
      case 5: FAILS(tt_plan_run(c, p), TT_LINALG, "linalg_inv: self is singular: U[1][1]"); break;
      default: OK(tt_plan_run(c, p));
    }
  }
  assert_memory_equal(tt_tensor_data(outs[0]), tt_tensor_data(taken), 3 * sizeof(float));
  assert_memory_equal(tt_tensor_data(outs[1]), tt_tensor_data(bags), 4 * sizeof(float));
  assert_memory_equal(tt_tensor_data(outs[2]), tt_tensor_data(inverse), 4 * sizeof(float));
  tt_plan_release(p);
  tt_graph_release(optimized);
  tt_graph_release(g);
}

/* running_total(x: Tensor, k: Float) -> (sum: Tensor, count: Tensor): k times the sum of all x that
   it has seen, on the host, and how many calls there were. */
typedef struct Total {
  double sum;
  int calls;
  int wrong_shape, fails;
} Total;
static tt_status add_to_total(void* user, tt_ctx* x, const tt_value* args, int64_t n_args,
                              tt_tensor** outs, int64_t n_outs) {
  Total* total = user;
  const float* data = tt_tensor_data(args[0].tensor);
  int64_t i, n = tt_tensor_numel(args[0].tensor);
  if (n_args != 2 || n_outs != 2 || total->fails) return TT_CALLBACK;
  for (i = 0; i < n; i++) total->sum += data[i];
  total->calls++;
  if (tt_mul_f64(x, args[0].tensor, total->sum * args[1].f, &outs[0])) return TT_CALLBACK;
  if (tt_zeros(x, SHAPE(total->wrong_shape ? 2 : 1), NULL, &outs[1])) return TT_CALLBACK;
  ((float*)tt_tensor_data(outs[1]))[0] = (float)total->calls;
  return TT_OK;
}

/* A callback of the application is a step of the plan, also of a graph from a file. */
static void test_operator_of_the_application(void** state) {
  static Total total;
  static const tt_op_def def = {.struct_size = sizeof def,
                                .schema =
                                    "running_total(x: Tensor, k: Float) -> (sum: Tensor, "
                                    "count: Tensor)",
                                .user = &total,
                                .compute = add_to_total};
  tt_tensor *x = numbers(TT_F32, kValues, 3), *a, *outs[2], *y, *slot;
  const tt_op* op;
  tt_value args[2] = {{.tag = TT_VAL_TENSOR}, {.tag = TT_VAL_FLOAT, .f = 0.5}};
  tt_graph *g, *optimized, *loaded;
  int64_t n;
  int i;
  char path[64];
  (void)state;
  OK(tt_op_register(c, &def));
  OK(tt_op_find(c, "running_total", &op));
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_mul_f64(c, x, 2, &a));
  args[0].tensor = a;
  OK(tt_op_call(c, op, args, 2, outs, 2, &n));
  OK(tt_add(c, outs[0], a, &y));
  OK(tt_capture_end(c, LIST(y, outs[1]), &g));
  assert_int_equal(total.calls, 1);
  OK(tt_graph_optimize(c, g, NULL, &optimized));
  snprintf(path, sizeof path, "/tmp/tt_plan_%d.ttg", (int)getpid());
  OK(tt_graph_save(c, optimized, path));
  OK(tt_graph_load(c, path, &loaded));
  assert_int_equal(unlink(path), 0);
  assert_int_equal(total.calls, 1);
  for (i = 0; i < 2; i++) {
    static const double kOther[] = {1, 1, 4};
    tt_plan* p;
    total = (Total){0, 0, 0, 0};
    OK(tt_plan_new(c, i ? loaded : optimized, NULL, &p));
    assert_int_equal(total.calls, 0);
    OK(tt_plan_slot(c, p, 0, 0, &slot));
    OK(tt_copy_(c, slot, numbers(TT_F32, kOther, 3)));
    OK(tt_plan_run(c, p));
    OK(tt_plan_run(c, p));
    assert_int_equal(total.calls, 2);
    OK(tt_plan_slot(c, p, 1, 0, &slot)); /* 2 x + 2 x * 0.5 * 24 */
    assert_float_equal(((float*)tt_tensor_data(slot))[2], 8 + 8 * 0.5 * 24, 1e-4);
    OK(tt_plan_slot(c, p, 1, 1, &slot));
    assert_float_equal(((float*)tt_tensor_data(slot))[0], 2, 0);
    total.wrong_shape = 1;
    FAILS(tt_plan_run(c, p), TT_SHAPE, "running_total: result 1 is float32 [2], when captured");
    total.wrong_shape = 0;
    total.fails = 1;
    FAILS(tt_plan_run(c, p), TT_CALLBACK, "running_total");
    total.fails = 0;
    OK(tt_plan_run(c, p));
    tt_plan_release(p);
  }
  tt_graph_release(loaded);
  tt_graph_release(optimized);
  tt_graph_release(g);
}

static tt_status add_noise(void* user, tt_ctx* x, const tt_value* args, int64_t n_args,
                           tt_tensor** outs, int64_t n_outs) {
  const tt_rand_like_opts opts = {.set = TT_RAND_LIKE_GENERATOR, .generator = args[1].generator};
  tt_tensor* noise = NULL;
  tt_status s = tt_rand_like(x, args[0].tensor, args[1].generator ? &opts : NULL, &noise);
  (void)user;
  (void)n_args;
  (void)n_outs;
  if (!s) s = tt_add(x, args[0].tensor, noise, &outs[0]);
  tt_tensor_release(noise);
  return s;
}

/* Random state is an argument that operators of the application see, too: their numbers are drawn
   in each run, between those of other nodes, from a generator or from the ctx's stream. */
static void test_random_operator_of_the_application(void** state) {
  static const tt_op_def def = {.struct_size = sizeof def,
                                .schema = "add_noise(x: Tensor, g: Generator = None) -> Tensor",
                                .compute = add_noise};
  tt_generator *g, *same;
  (void)state;
  OK(tt_op_register(c, &def));
  OK(tt_generator_new(c, 3, &g));
  OK(tt_generator_new(c, 3, &same));
  for (int own = 0; own < 2; own++) {
    tt_tensor *x = numbers(TT_F32, kValues, 3), *y, *a, *b, *slot;
    tt_value args[2] = {{.tag = TT_VAL_TENSOR, .tensor = x}, {.tag = TT_VAL_NONE}};
    const tt_op* op;
    tt_graph* graph;
    tt_plan* p;
    int64_t n;
    OK(tt_op_find(c, "add_noise", &op));
    if (own) args[1] = (tt_value){.tag = TT_VAL_GENERATOR, .generator = g};
    OK(tt_capture_begin(c, LIST(x), NULL));
    OK(tt_op_call(c, op, args, 2, &a, 1, &n));
    OK(tt_rand_like(c, x, NULL, &b));
    OK(tt_add(c, a, b, &y));
    OK(tt_capture_end(c, LIST(y), &graph));
    OK(tt_plan_new(c, graph, NULL, &p));
    OK(tt_plan_slot(c, p, 0, 0, &slot));
    OK(tt_copy_(c, slot, x));
    if (own) { /* the numbers of the captured call */
      args[1].generator = same;
      OK(tt_op_call(c, op, args, 2, &a, 1, &n));
    }
    for (uint64_t run = 0; run < 3; run++) {
      OK(tt_manual_seed(c, run / 2));
      if (run % 2) OK(tt_rand_like(c, x, NULL, &b)); /* the stream goes on */
      OK(tt_op_call(c, op, args, 2, &a, 1, &n));
      OK(tt_rand_like(c, x, NULL, &b));
      OK(tt_add(c, a, b, &y));
      OK(tt_manual_seed(c, run / 2));
      if (run % 2) OK(tt_rand_like(c, x, NULL, &b));
      OK(tt_plan_run(c, p));
      OK(tt_plan_slot(c, p, 1, 0, &slot));
      assert_memory_equal(tt_tensor_data(slot), tt_tensor_data(y), 12);
    }
    tt_plan_release(p);
    tt_graph_release(graph);
  }
  tt_generator_release(g);
  tt_generator_release(same);
}

/* A graph keeps the operators of the application in it: it outlives the runtime that registered
   them, and the last of both drops their user data. */
static int n_drops;
static void count_drop(void* user) {
  (void)user;
  n_drops++;
}
static void test_operator_outlives_its_runtime(void** state) {
  static Total total;
  static const tt_op_def def = {.struct_size = sizeof def,
                                .schema =
                                    "late_total(x: Tensor, k: Float) -> (sum: Tensor, "
                                    "count: Tensor)",
                                .user = &total,
                                .compute = add_to_total,
                                .drop = count_drop};
  tt_value args[2] = {{.tag = TT_VAL_TENSOR}, {.tag = TT_VAL_FLOAT, .f = 0.5}};
  tt_tensor *x = numbers(TT_F32, kValues, 3), *outs[2], *slot;
  tt_runtime* rt;
  tt_ctx* brief;
  tt_graph* g;
  tt_plan* p;
  const tt_op* op;
  int64_t n;
  (void)state;
  n_drops = 0;
  assert_int_equal(tt_runtime_new(NULL, &rt), TT_OK);
  assert_int_equal(tt_ctx_new(rt, &brief), TT_OK);
  assert_int_equal(tt_op_register(brief, &def), TT_OK);
  assert_int_equal(tt_op_find(brief, "late_total", &op), TT_OK);
  args[0].tensor = x;
  assert_int_equal(tt_capture_begin(brief, LIST(x), NULL), TT_OK);
  assert_int_equal(tt_op_call(brief, op, args, 2, outs, 2, &n), TT_OK);
  assert_int_equal(tt_capture_end(brief, LIST(outs[0]), &g), TT_OK);
  tt_tensor_release(outs[0]);
  tt_tensor_release(outs[1]);
  tt_ctx_release(brief);
  tt_runtime_release(rt);
  assert_int_equal(n_drops, 0);
  total = (Total){0, 0, 0, 0};
  OK(tt_plan_new(c, g, NULL, &p));
  OK(tt_plan_slot(c, p, 0, 0, &slot));
  OK(tt_copy_(c, slot, x));
  tt_graph_release(g);
  OK(tt_plan_run(c, p));
  assert_int_equal(total.calls, 1);
  assert_int_equal(n_drops, 0);
  tt_plan_release(p);
  assert_int_equal(n_drops, 1);
}

/* Each allocation of a lowering fails once. */
static void test_out_of_memory(void** state) {
  Model m = new_model();
  tt_graph* g = captured_step(&m);
  int64_t at;
  (void)state;
  for (at = 1; at < 100000; at++) {
    tt_plan* p = NULL;
    const int64_t failed = host.failed;
    tt_status s;
    host.fail_at = host.calls + at;
    host.fail_n = 1;
    s = tt_plan_new(c, g, NULL, &p);
    host.fail_at = 0;
    assert_true((s == TT_OK) == (p != NULL));
    tt_plan_release(p);
    if (host.failed == failed) break;
  }
  assert_true(at > 1);
  tt_graph_release(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {SCOPED(test_training_curve),
                                     SCOPED(test_run_for),
                                     SCOPED(test_cancel_and_poll),
                                     SCOPED(test_threads),
                                     SCOPED(test_one_plan_on_two_threads),
                                     SCOPED(test_checks),
                                     SCOPED(test_operator_of_the_application),
                                     SCOPED(test_random_operator_of_the_application),
                                     SCOPED(test_operator_outlives_its_runtime),
                                     SCOPED(test_out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
