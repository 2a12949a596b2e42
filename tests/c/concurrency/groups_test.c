/* A group of two ranks in one process, each a thread with a ctx of its own, over Gloo: the threads
   of groups and of data-parallel training beside those of the application. Also run under
   ThreadSanitizer. */
#include "harness.h"

#include <math.h>
#include <pthread.h>
#include <unistd.h>

enum { kRanks = 2, kLength = 3000, kRounds = 5 };

typedef struct Rank {
  pthread_t thread;
  tt_runtime* rt;
  const char* place;   /* where the ranks meet */
  const char* library; /* of the engine; one rank has a copy of it */
  int32_t rank;
  tt_group* group;
  tt_status status;
  const char* what;
} Rank;

#define TRY(call)       \
  do {                  \
    r->status = (call); \
    if (r->status) {    \
      r->what = #call;  \
      return;           \
    }                   \
  } while (0)
/* A condition on results; its failure ends the rank. */
#define EXPECT(condition)      \
  do {                         \
    if (!(condition)) {        \
      r->status = TT_INTERNAL; \
      r->what = #condition;    \
      return;                  \
    }                          \
  } while (0)

typedef void (*RankFn)(Rank* r, tt_ctx* x);
static RankFn rank_fn;

static void join_group(Rank* r, tt_ctx* x) {
  const tt_group_opts o = {
      .set = TT_GROUP_TIMEOUT_MS | TT_GROUP_LIBRARY, .timeout_ms = 60000, .library = r->library};
  TRY(tt_group_new(x, "gloo", r->rank, kRanks, r->place, &o, &r->group));
  rank_fn(r, x);
}

static void* run_rank(void* arg) {
  Rank* r = arg;
  tt_ctx* x;
  r->status = tt_ctx_new(r->rt, &x);
  if (r->status) return NULL;
  tt_scope_push(x);
  join_group(r, x);
  if (r->status) print_error("rank %d: %s: %s\n", r->rank, r->what, tt_ctx_error(x)->message);
  tt_scope_pop(x, NULL, 0);
  tt_group_release(r->group);
  tt_ctx_release(x);
  return NULL;
}

static void run_ranks(RankFn fn) {
  Rank ranks[kRanks] = {{0}};
  char folder[] = "/tmp/tt_groups_XXXXXX", place[100], left[100], copy[100], command[1000];
  const char* library = getenv("TT_TEST_GLOO_LIBRARY");
  tt_runtime* rt;
  int failed = 0;
  assert_non_null(mkdtemp(folder));
  snprintf(place, sizeof place, "file://%s/meeting", folder);
  snprintf(copy, sizeof copy, "%s/libcopy.so", folder);
  snprintf(command, sizeof command, "cp %s %s", library, copy);
  assert_int_equal(system(command), 0);
  OK(tt_ctx_runtime(c, &rt));
  rank_fn = fn;
  for (int32_t i = 0; i < kRanks; i++) {
    ranks[i] = (Rank){.rt = rt, .place = place, .rank = i};
    ranks[i].library = i ? copy : library;
    assert_int_equal(pthread_create(&ranks[i].thread, NULL, run_rank, &ranks[i]), 0);
  }
  for (int i = 0; i < kRanks; i++) {
    pthread_join(ranks[i].thread, NULL);
    failed |= ranks[i].status;
  }
  tt_runtime_release(rt);
  snprintf(left, sizeof left, "rm -rf %s", folder);
  assert_int_equal(system(left), 0);
  assert_int_equal(failed, 0);
}

static tt_status filled(tt_ctx* x, int64_t n, double value, tt_tensor** out) {
  return tt_full_f64(x, &n, 1, value, NULL, out);
}
static double first_of(tt_ctx* x, const tt_tensor* t) {
  tt_tensor* sum;
  double value = -1;
  if (tt_sum(x, t, NULL, &sum) || tt_item_f64(x, sum, &value)) return -1;
  return value / (double)tt_tensor_numel(t);
}

static void count_call(void* user, tt_status status) {
  if (status == TT_OK) __atomic_fetch_add((int*)user, 1, __ATOMIC_ACQ_REL);
}

/* ---- collectives ---- */

static tt_cancel* token;

/* A second group of the same processes, by the library that is open already, beside the first. */
static void meet_twice(Rank* r, tt_ctx* x) {
  char place[120];
  tt_tensor *a, *b;
  tt_work* work;
  const tt_group_opts o = {
      .set = TT_GROUP_TIMEOUT_MS | TT_GROUP_LIBRARY, .timeout_ms = 60000, .library = r->library};
  tt_group* second = NULL;
  snprintf(place, sizeof place, "%s_again", r->place);
  TRY(tt_group_new(x, "gloo", kRanks - 1 - r->rank, kRanks, place, &o, &second));
  TRY(filled(x, kLength, r->rank + 1.0, &a));
  TRY(filled(x, kLength, r->rank + 1.0, &b));
  TRY(tt_group_all_reduce(x, r->group, a, TT_REDUCE_SUM, &work));
  TRY(tt_group_broadcast(x, second, b, 0, NULL)); /* of rank 1 in the first group */
  TRY(tt_work_wait(x, work, -1));
  tt_work_release(work);
  EXPECT(first_of(x, a) == 3 && first_of(x, b) == 2);
  tt_group_release(second);
  TRY(tt_group_barrier(x, r->group, NULL)); /* the library remains open */
}

static void test_a_library_that_is_open_already(void** state) {
  (void)state;
  run_ranks(meet_twice);
}

static void test_files_that_are_no_library_of_a_backend(void** state) {
  (void)state;
  tt_group* g;
  tt_group_opts o = {.set = TT_GROUP_LIBRARY, .library = "libm.so.6"};
  FAILS(tt_group_new(c, "gloo", 0, 2, "tcp://127.0.0.1:1", &o, &g), TT_ABI, "tt_dist_engine");
  assert_null(g);
  o.library = "/no/such/library.so";
  FAILS(tt_group_new(c, "gloo", 0, 2, "tcp://127.0.0.1:1", &o, &g), TT_IO, "/no/such/library.so");
  assert_null(g);
}

/* Steps of rank 0 in be_late. */
enum { kBefore, kInCall, kReturned };
static int step_of_first;
static void reach(int step) { __atomic_store_n(&step_of_first, step, __ATOMIC_RELEASE); }
static void wait_for(int step) {
  int i;
  for (i = 0; i < 60000 && __atomic_load_n(&step_of_first, __ATOMIC_ACQUIRE) < step; i++)
    usleep(1000);
}

/* A call whose thread runs it itself waits for a rank that is late; cancelled, it goes on without
   its caller, and the group remains usable. */
static void be_late(Rank* r, tt_ctx* x) {
  tt_tensor *a, *b;
  TRY(filled(x, kLength, r->rank + 1.0, &a));
  TRY(filled(x, kLength, r->rank + 1.0, &b));
  if (r->rank) usleep(130000);
  TRY(tt_group_all_reduce(x, r->group, a, TT_REDUCE_SUM, NULL));
  EXPECT(first_of(x, a) == 3);
  if (r->rank) {
    wait_for(kInCall);
    usleep(100000);
    tt_cancel_request(token);
    wait_for(kReturned);
    TRY(tt_group_all_reduce(x, r->group, b, TT_REDUCE_MEAN, NULL));
  } else {
    tt_status s;
    TRY(tt_ctx_set_cancel(x, token));
    reach(kInCall);
    s = tt_group_all_reduce(x, r->group, b, TT_REDUCE_MEAN, NULL);
    reach(kReturned);
    EXPECT(s == TT_CANCELLED);
    TRY(tt_ctx_set_cancel(x, NULL));
  }
  TRY(tt_group_barrier(x, r->group, NULL));
  EXPECT(first_of(x, b) == 1.5);
}

static void test_ranks_that_are_late(void** state) {
  (void)state;
  OK(tt_cancel_new(c, &token));
  reach(kBefore);
  run_ranks(be_late);
  tt_cancel_release(token);
}

static void collect(Rank* r, tt_ctx* x) {
  tt_tensor *a, *b, *whole;
  tt_work* work[kRounds];
  tt_tensor* many[kRounds];
  int calls = 0;
  for (int i = 0; i < kRounds; i++) {
    TRY(filled(x, kLength, r->rank + 1.0, &many[i]));
    TRY(tt_group_all_reduce(x, r->group, many[i], TT_REDUCE_SUM, &work[i]));
    TRY(tt_work_on_done(x, work[i], count_call, &calls, NULL));
  }
  TRY(filled(x, 7, r->rank + 1.0, &a));
  TRY(tt_mul_f64(x, a, 2, &b)); /* the application computes meanwhile */
  for (int i = 0; i < kRounds; i++) {
    TRY(tt_work_wait(x, work[i], -1));
    tt_work_release(work[i]);
    EXPECT(first_of(x, many[i]) == 3);
  }
  TRY(tt_group_barrier(x, r->group, NULL));
  EXPECT(__atomic_load_n(&calls, __ATOMIC_ACQUIRE) == kRounds);
  TRY(tt_group_broadcast(x, r->group, b, 1, NULL));
  EXPECT(first_of(x, b) == 4);
  TRY(filled(x, 14, 0, &whole));
  TRY(tt_group_all_gather(x, r->group, a, whole, NULL));
  EXPECT(first_of(x, whole) == 1.5);
  if (r->rank) {
    TRY(tt_group_send(x, r->group, a, 0, 5, NULL));
  } else {
    TRY(tt_group_recv(x, r->group, a, 1, 5, NULL));
    EXPECT(first_of(x, a) == 2);
  }
  int32_t from = -1;
  if (r->rank) {
    TRY(tt_group_send(x, r->group, a, 0, 6, NULL));
    TRY(tt_group_send(x, r->group, a, 0, 6, NULL));
  } else {
    for (int i = 0; i < 2; i++) {
      TRY(tt_fill_f64_(x, a, 0));
      TRY(tt_group_recv(x, r->group, a, -1, 6, &work[0]));
      TRY(tt_work_source(x, work[0], &from));
      tt_work_release(work[0]);
      EXPECT(from == 1 && first_of(x, a) == 2);
    }
  }
  tt_group* alone;
  TRY(tt_group_split(x, r->group, r->rank, 0, &alone));
  TRY(tt_group_all_reduce(x, alone, a, TT_REDUCE_SUM, NULL));
  EXPECT(tt_group_size(alone) == 1 && first_of(x, a) == 2);
  tt_group_release(alone);
}
static void test_collectives(void** state) {
  (void)state;
  run_ranks(collect);
}

static void disagree(Rank* r, tt_ctx* x) {
  tt_tensor* t;
  TRY(filled(x, 3 + r->rank, 1, &t));
  EXPECT(tt_group_all_reduce(x, r->group, t, TT_REDUCE_SUM, NULL) == TT_DISTRIBUTED);
  EXPECT(strstr(tt_ctx_error(x)->message, "rank 0") && strstr(tt_ctx_error(x)->message, "[4]"));
  EXPECT(first_of(x, t) == 1);
  TRY(filled(x, 3, 1, &t));
  TRY(tt_group_all_reduce(x, r->group, t, TT_REDUCE_SUM, NULL));
  EXPECT(first_of(x, t) == 2);
}
static void test_ranks_that_disagree(void** state) {
  (void)state;
  run_ranks(disagree);
}

/* ---- data-parallel training ---- */

static tt_status add_layer(tt_ctx* x, tt_module* net, tt_module* layer) {
  const tt_status status = tt_module_append(x, net, layer);
  tt_module_release(layer);
  return status;
}

/* y = sum(w2 · (w1 x)): the gradients follow from the inputs by hand. */
static void train(Rank* r, tt_ctx* x) {
  tt_module *net, *layer;
  tt_tensor *parameters[2], *in, *y, *loss, *grad;
  tt_ddp* ddp;
  const tt_nn_linear_opts o = {.set = TT_NN_LINEAR_BIAS, .bias = 0};
  const tt_ddp_opts small = {.set = TT_DDP_BUCKET_BYTES, .bucket_bytes = 64};
  int64_t n = 0;
  TRY(tt_nn_sequential(x, &net));
  TRY(tt_nn_linear(x, 4, 3, &o, &layer));
  TRY(add_layer(x, net, layer));
  TRY(tt_nn_linear(x, 3, 1, &o, &layer));
  TRY(add_layer(x, net, layer));
  TRY(tt_ddp_new(x, net, r->group, &small, &ddp));
  TRY(tt_module_parameters(x, net, parameters, 2, &n));
  EXPECT(n == 2);
  for (int i = 0; i < kRounds; i++) {
    const float values[4] = {(float)(r->rank + i), 1, 2, 3};
    const int64_t shape[2] = {1, 4};
    tt_tensor *w1, *mean, *hidden;
    TRY(tt_tensor_from_data(x, values, TT_F32, shape, 2, &in));
    TRY(tt_module_call(x, net, in, &y));
    TRY(tt_sum(x, y, NULL, &loss));
    TRY(tt_backward(x, loss, NULL));
    /* d/dw2 is the mean over the ranks of w1 x */
    TRY(tt_tensor_grad(x, parameters[1], &grad));
    TRY(tt_detach(x, parameters[0], &w1));
    const float middle[4] = {0.5f + (float)i, 1, 2, 3};
    TRY(tt_tensor_from_data(x, middle, TT_F32, shape, 2, &mean));
    TRY(tt_linear(x, mean, w1, NULL, &hidden));
    float got[3], want[3];
    TRY(tt_tensor_read(x, grad, got, sizeof got));
    TRY(tt_tensor_read(x, hidden, want, sizeof want));
    for (int k = 0; k < 3; k++) EXPECT(fabsf(got[k] - want[k]) < 1e-5f);
    TRY(tt_module_zero_grad(x, net));
  }
  tt_ddp_release(ddp);
  tt_module_release(net);
}
static void test_data_parallel_training(void** state) {
  (void)state;
  run_ranks(train);
}

/* Gradients that no backward has reduced are reduced by a call. */
static void reduce_later(Rank* r, tt_ctx* x) {
  tt_module* net;
  tt_tensor *weight, *in, *y, *loss, *grad;
  tt_ddp* ddp;
  const tt_nn_linear_opts o = {.set = TT_NN_LINEAR_BIAS, .bias = 0};
  const int64_t shape[2] = {1, 4};
  int64_t n = 0;
  float got[4];
  TRY(tt_nn_linear(x, 4, 1, &o, &net));
  TRY(tt_module_parameters(x, net, &weight, 1, &n));
  TRY(tt_ddp_new(x, net, r->group, NULL, &ddp));
  TRY(tt_ddp_set_sync(x, ddp, 0));
  for (int i = 0; i < kRounds; i++) {
    const float values[4] = {(float)(r->rank + i), 1, 2, 3};
    TRY(tt_tensor_from_data(x, values, TT_F32, shape, 2, &in));
    TRY(tt_module_call(x, net, in, &y));
    TRY(tt_sum(x, y, NULL, &loss));
    TRY(tt_backward(x, loss, NULL));
    TRY(tt_ddp_reduce(x, ddp));
    TRY(tt_tensor_grad(x, weight, &grad));
    TRY(tt_tensor_read(x, grad, got, sizeof got));
    EXPECT(got[0] == (float)i + 0.5f && got[3] == 3);
    TRY(tt_module_zero_grad(x, net));
  }
  EXPECT(tt_ddp_reduce(x, ddp) == TT_AUTOGRAD);
  EXPECT(strstr(tt_ctx_error(x)->message, "weight"));
  tt_ddp_release(ddp);
  tt_module_release(net);
}
static void test_gradients_reduced_by_a_call(void** state) {
  (void)state;
  run_ranks(reduce_later);
}

/* ---- hooks on buckets ---- */

enum { kNever = -1 };
typedef struct Hooked {
  Rank* r;
  tt_work* work[8]; /* of the buckets that start has begun */
  int starts, ends, failed_ends, drops;
  int fail_start, fail_end; /* the bucket whose hook fails on rank 1 */
} Hooked;

static tt_status start_bucket(void* user, tt_ctx* x, const tt_ddp_bucket* b) {
  Hooked* h = user;
  h->starts++;
  int64_t numel = 0;
  for (int64_t i = 0; i < b->num_parameters; i++) {
    numel += tt_tensor_numel(b->gradients[i]);
    if (tt_tensor_numel(b->gradients[i]) != tt_tensor_numel(b->parameters[i])) return TT_SHAPE;
  }
  if (numel != tt_tensor_numel(b->buffer) || b->num_buckets > 8 || b->failed) return TT_SHAPE;
  if (h->r->rank == 1 && b->index == h->fail_start) return TT_IO;
  return tt_group_all_reduce(x, h->r->group, b->buffer, TT_REDUCE_SUM, &h->work[b->index]);
}
/* twice the mean over two ranks is the sum: the hook gives what it has computed itself */
static tt_status end_bucket(void* user, tt_ctx* x, const tt_ddp_bucket* b) {
  Hooked* h = user;
  tt_work* work = h->work[b->index];
  const tt_status status = tt_work_wait(x, work, -1);
  tt_work_release(work);
  if (b->failed) h->failed_ends++;
  else h->ends++;
  if (status || b->failed) return status;
  if (h->r->rank == 1 && b->index == h->fail_end) return TT_IO;
  return tt_mul_f64_(x, b->buffer, 2);
}
static void drop_hooked(void* user) { ((Hooked*)user)->drops++; }

static tt_status three_layers(tt_ctx* x, tt_module** net) {
  const tt_nn_linear_opts o = {.set = TT_NN_LINEAR_BIAS, .bias = 0};
  tt_status status = tt_nn_sequential(x, net);
  for (int i = 0; i < 3 && !status; i++) {
    tt_module* layer;
    status = tt_nn_linear(x, 4, 4, &o, &layer);
    if (!status) status = add_layer(x, *net, layer);
  }
  return status;
}
static tt_status run_backward(tt_ctx* x, tt_module* net, int32_t rank) {
  const float values[4] = {(float)rank + 1, 1, 2, 3};
  const int64_t shape[2] = {1, 4};
  tt_tensor *in, *y, *loss;
  tt_status status = tt_tensor_from_data(x, values, TT_F32, shape, 2, &in);
  if (!status) status = tt_module_zero_grad(x, net);
  if (!status) status = tt_module_call(x, net, in, &y);
  if (!status) status = tt_sum(x, y, NULL, &loss);
  return status ? status : tt_backward(x, loss, NULL);
}

/* Every start that has succeeded has had its end, and the group is as usable as before. */
static void failing_hook(Rank* r, tt_ctx* x, tt_module* net, Hooked* h) {
  const int refused = r->rank == 1 && h->fail_start != kNever;
  tt_tensor* t;
  const tt_status status = run_backward(x, net, r->rank);
  const char* says = tt_ctx_error(x)->message;
  if (r->rank) EXPECT(status == TT_CALLBACK);
  else EXPECT(strstr(says, "rank 1 calls nothing: its hook of gradients has failed"));
  EXPECT(status == TT_CALLBACK || status == TT_DISTRIBUTED);
  TRY(filled(x, 3, r->rank, &t));
  TRY(tt_group_all_reduce(x, r->group, t, TT_REDUCE_SUM, NULL));
  EXPECT(first_of(x, t) == 1);
  h->fail_start = h->fail_end = kNever;
  TRY(run_backward(x, net, r->rank));
  EXPECT(h->starts - refused == h->ends + h->failed_ends && h->starts > 3);
  h->starts = h->ends = h->failed_ends = 0;
}

static void hook_buckets(Rank* r, tt_ctx* x) {
  tt_module* net;
  tt_ddp* ddp;
  tt_tensor *parameters[3], *grad;
  const tt_ddp_opts small = {.set = TT_DDP_BUCKET_BYTES, .bucket_bytes = 64};
  Hooked hooked = {.r = r, .fail_start = kNever, .fail_end = kNever};
  float want[3][16], got[16];
  int64_t n = 0;
  TRY(three_layers(x, &net));
  TRY(tt_module_parameters(x, net, parameters, 3, &n));
  TRY(tt_ddp_new(x, net, r->group, &small, &ddp));
  TRY(run_backward(x, net, r->rank));
  for (int i = 0; i < 3; i++) {
    TRY(tt_tensor_grad(x, parameters[i], &grad));
    TRY(tt_tensor_read(x, grad, want[i], sizeof want[i]));
  }
  const tt_ddp_hook of_one = r->rank ? start_bucket : NULL;
  EXPECT(tt_ddp_set_hook(x, ddp, of_one, NULL, &hooked, drop_hooked) == TT_DISTRIBUTED);
  EXPECT(strstr(tt_ctx_error(x)->message, "rank 1 has a hook, rank 0 has none"));
  EXPECT(hooked.drops == 1);
  EXPECT(tt_ddp_set_hook(x, ddp, NULL, end_bucket, &hooked, drop_hooked) == TT_INVALID_ARG);
  TRY(tt_ddp_set_hook(x, ddp, start_bucket, end_bucket, &hooked, drop_hooked));
  EXPECT(hooked.drops == 2);
  TRY(run_backward(x, net, r->rank));
  EXPECT(hooked.starts == 3 && hooked.ends == 3);
  for (int i = 0; i < 3; i++) {
    TRY(tt_tensor_grad(x, parameters[i], &grad));
    TRY(tt_tensor_read(x, grad, got, sizeof got));
    for (int k = 0; k < 16; k++) EXPECT(got[k] == 4 * want[i][k]);
  }
  hooked.starts = hooked.ends = 0;
  for (int bucket = 0; bucket < 3; bucket++) {
    hooked.fail_start = bucket;
    failing_hook(r, x, net, &hooked);
    if (r->status) return;
    hooked.fail_end = bucket;
    failing_hook(r, x, net, &hooked);
    if (r->status) return;
  }
  TRY(tt_ddp_set_hook(x, ddp, NULL, NULL, NULL, NULL));
  EXPECT(hooked.drops == 3);
  TRY(run_backward(x, net, r->rank));
  TRY(tt_tensor_grad(x, parameters[0], &grad));
  TRY(tt_tensor_read(x, grad, got, sizeof got));
  EXPECT(!memcmp(got, want[0], sizeof got));
  TRY(tt_ddp_set_hook(x, ddp, start_bucket, end_bucket, &hooked, drop_hooked));
  tt_ddp_release(ddp);
  tt_module_release(net);
}
static void test_hooks_on_buckets(void** state) {
  (void)state;
  run_ranks(hook_buckets);
}

/* A group of one process has its hooks, too. */
static tt_status halve(void* user, tt_ctx* x, const tt_ddp_bucket* b) {
  ++*(int*)user;
  return tt_mul_f64_(x, b->buffer, 0.5);
}
static void test_a_hook_of_one_process(void** state) {
  (void)state;
  const tt_nn_linear_opts o = {.set = TT_NN_LINEAR_BIAS, .bias = 0};
  tt_group* g;
  tt_module* net;
  tt_ddp* ddp;
  tt_tensor *weight, *grad;
  float plain[16], got[16];
  int64_t n = 0;
  int calls = 0;
  OK(tt_group_new(c, NULL, 0, 1, NULL, NULL, &g));
  OK(tt_nn_linear(c, 4, 4, &o, &net));
  OK(tt_ddp_new(c, net, g, NULL, &ddp));
  OK(tt_module_parameters(c, net, &weight, 1, &n));
  OK(run_backward(c, net, 0));
  OK(tt_tensor_grad(c, weight, &grad));
  OK(tt_tensor_read(c, grad, plain, sizeof plain));
  OK(tt_ddp_set_hook(c, ddp, halve, NULL, &calls, NULL));
  OK(run_backward(c, net, 0));
  OK(tt_tensor_grad(c, weight, &grad));
  OK(tt_tensor_read(c, grad, got, sizeof got));
  for (int i = 0; i < 16; i++) assert_true(got[i] == plain[i] / 2);
  assert_int_equal(calls, 1);
  tt_ddp_release(ddp);
  tt_module_release(net);
  tt_group_release(g);
}

/* ---- batch normalization over ranks ---- */

enum { kChannels = 3, kRows = 5 }; /* 2 rows on rank 0, 3 on rank 1 */

typedef struct Normalized {
  tt_module* layer;
  tt_tensor *in, *out, *in_grad, *weight_grad;
} Normalized;

/* loss = sum of y³ */
static void normalize(Rank* r, tt_ctx* x, const float* rows, int64_t n, tt_group* g,
                      Normalized* out) {
  const int64_t shape[2] = {n, kChannels};
  tt_tensor *square, *cube, *loss, *parameters[2];
  int64_t count = 0;
  TRY(tt_nn_batch_norm1d(x, kChannels, NULL, &out->layer));
  if (g) TRY(tt_group_sync_batch_norm(x, g, out->layer));
  TRY(tt_tensor_from_data(x, rows, TT_F32, shape, 2, &out->in));
  TRY(tt_requires_grad_(x, out->in, 1));
  TRY(tt_module_call(x, out->layer, out->in, &out->out));
  TRY(tt_mul(x, out->out, out->out, &square));
  TRY(tt_mul(x, square, out->out, &cube));
  TRY(tt_sum(x, cube, NULL, &loss));
  TRY(tt_backward(x, loss, NULL));
  TRY(tt_tensor_grad(x, out->in, &out->in_grad));
  TRY(tt_module_parameters(x, out->layer, parameters, 2, &count));
  TRY(tt_tensor_grad(x, parameters[0], &out->weight_grad));
}

static void expect_near(Rank* r, tt_ctx* x, const tt_tensor* a, const tt_tensor* b, int64_t skip) {
  float left[kRows * kChannels], right[kRows * kChannels];
  const int64_t n = tt_tensor_numel(a);
  TRY(tt_tensor_read(x, a, left, (size_t)n * sizeof(float)));
  TRY(tt_tensor_read(x, b, right, (size_t)tt_tensor_numel(b) * sizeof(float)));
  for (int64_t i = 0; i < n; i++)
    EXPECT(fabsf(left[i] - right[skip + i]) <= 1e-4f + 1e-4f * fabsf(left[i]));
}

static void normalize_together(Rank* r, tt_ctx* x) {
  float rows[kRows * kChannels];
  for (int i = 0; i < kRows * kChannels; i++) rows[i] = (float)((i * 7 + 3) % 11) - 4;
  const int64_t skip = r->rank ? 2 * kChannels : 0, n = r->rank ? 3 : 2;
  Normalized joint, part;
  normalize(r, x, rows, kRows, NULL, &joint);
  if (!r->status) normalize(r, x, rows + skip, n, r->group, &part);
  if (r->status) return;
  expect_near(r, x, part.out, joint.out, skip);
  expect_near(r, x, part.in_grad, joint.in_grad, skip);
  TRY(tt_group_all_reduce(x, r->group, part.weight_grad, TT_REDUCE_SUM, NULL));
  expect_near(r, x, part.weight_grad, joint.weight_grad, 0);
  for (int i = 0; i < 2; i++) {
    const char* name = i ? "running_var" : "running_mean";
    tt_tensor *of_part, *of_joint;
    TRY(tt_module_get_tensor(x, part.layer, name, &of_part));
    TRY(tt_module_get_tensor(x, joint.layer, name, &of_joint));
    expect_near(r, x, of_part, of_joint, 0);
  }
  /* one value per channel on all ranks has no variance */
  const int64_t few[2] = {r->rank ? 0 : 1, kChannels};
  tt_tensor *y, *single;
  TRY(tt_tensor_from_data(x, rows, TT_F32, few, 2, &single));
  EXPECT(tt_module_call(x, part.layer, single, &y) == TT_SHAPE);
  EXPECT(strstr(tt_ctx_error(x)->message, "more than one value per channel"));
  /* without the group, and in evaluation, a rank needs no other one */
  TRY(tt_group_sync_batch_norm(x, NULL, part.layer));
  if (r->rank) TRY(tt_module_call(x, part.layer, part.in, &y));
  TRY(tt_group_sync_batch_norm(x, r->group, part.layer));
  TRY(tt_module_train(x, part.layer, 0));
  if (r->rank) TRY(tt_module_call(x, part.layer, part.in, &y));
  tt_module_release(joint.layer);
  tt_module_release(part.layer);
}
static void test_batch_norm_over_ranks(void** state) {
  (void)state;
  run_ranks(normalize_together);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCOPED(test_collectives),
      SCOPED(test_ranks_that_are_late),
      SCOPED(test_a_library_that_is_open_already),
      SCOPED(test_files_that_are_no_library_of_a_backend),
      SCOPED(test_ranks_that_disagree),
      SCOPED(test_data_parallel_training),
      SCOPED(test_gradients_reduced_by_a_call),
      SCOPED(test_hooks_on_buckets),
      SCOPED(test_a_hook_of_one_process),
      SCOPED(test_batch_norm_over_ranks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
