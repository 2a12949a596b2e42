/* Streams of random numbers: the ctxs of a runtime draw different numbers, which follow from the
 * runtime's seed. */
#include "harness.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kThreads = 3, kNumbers = 256 };

static tt_runtime* runtime_of_test(void) {
  tt_runtime* rt;
  OK(tt_ctx_runtime(c, &rt));
  return rt;
}

static tt_ctx* new_ctx(tt_runtime* rt) {
  tt_ctx* x;
  assert_int_equal(tt_ctx_new(rt, &x), TT_OK);
  return x;
}

/* Writes the dropout mask of kNumbers ones (0 or 2 each) that x draws next. */
static tt_status draw_mask(tt_ctx* x, float* mask) {
  const int64_t n = kNumbers;
  tt_tensor *ones = NULL, *out = NULL;
  tt_status s = tt_ones(x, &n, 1, NULL, &ones);
  if (!s) s = tt_dropout(x, ones, NULL, &out);
  if (!s) s = tt_tensor_read(x, out, mask, kNumbers * sizeof *mask);
  tt_tensor_release(out);
  tt_tensor_release(ones);
  return s;
}

typedef struct Drawn {
  float mask[kNumbers];
} Drawn;
static Drawn mask_of(tt_ctx* x) {
  Drawn d;
  ok_at(x, draw_mask(x, d.mask), "draw_mask", __FILE__, __LINE__);
  return d;
}
static int same(const Drawn* a, const Drawn* b) { return memcmp(a, b, sizeof *a) == 0; }

/* The masks of kThreads new ctxs. */
static void masks_of_new_ctxs(tt_runtime* rt, Drawn* out) {
  int i;
  for (i = 0; i < kThreads; i++) {
    tt_ctx* x = new_ctx(rt);
    out[i] = mask_of(x);
    tt_ctx_release(x);
  }
}

/* ---- threads ---- */

typedef struct Job {
  tt_runtime* rt;
  tt_status status;
  Drawn drawn;
} Job;

static void* draw_on_a_thread(void* p) {
  Job* j = p;
  tt_ctx* x = NULL;
  j->status = tt_ctx_new(j->rt, &x);
  if (!j->status) j->status = draw_mask(x, j->drawn.mask);
  tt_ctx_release(x);
  return NULL;
}

static void threads_draw_different_masks(void** state) {
  tt_runtime* rt = runtime_of_test();
  pthread_t threads[kThreads];
  Job jobs[kThreads];
  int i, k;
  (void)state;
  for (i = 0; i < kThreads; i++) {
    jobs[i].rt = rt;
    assert_int_equal(pthread_create(&threads[i], NULL, draw_on_a_thread, &jobs[i]), 0);
  }
  for (i = 0; i < kThreads; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  for (i = 0; i < kThreads; i++) {
    assert_int_equal(jobs[i].status, TT_OK);
    for (k = 0; k < i; k++) assert_false(same(&jobs[i].drawn, &jobs[k].drawn));
  }
  tt_runtime_release(rt);
}

/* ---- the seed of a runtime ---- */

static void a_seed_gives_the_same_streams_in_creation_order(void** state) {
  tt_runtime* rt = runtime_of_test();
  Drawn first[kThreads], again[kThreads], other[kThreads];
  int i, k;
  (void)state;
  assert_int_equal(tt_runtime_manual_seed(rt, 7), TT_OK);
  masks_of_new_ctxs(rt, first);
  assert_int_equal(tt_runtime_manual_seed(rt, 7), TT_OK);
  masks_of_new_ctxs(rt, again);
  assert_int_equal(tt_runtime_manual_seed(rt, 8), TT_OK);
  masks_of_new_ctxs(rt, other);
  assert_memory_equal(first, again, sizeof first);
  for (i = 0; i < kThreads; i++)
    for (k = 0; k < kThreads; k++) {
      assert_false(same(&first[i], &other[k]));
      assert_true(i == k || !same(&first[i], &first[k]));
    }
  tt_runtime_release(rt);
}

/* The n-th ctx has the generator that tt.h documents: known outputs of SplitMix64 started at 0. */
static void streams_are_the_documented_ones(void** state) {
  static const uint64_t outputs[] = {0xE220A8397B1DCDAFu, 0x6E789E6AA1B965F4u, 0x06C45D188009454Fu};
  tt_runtime* rt = runtime_of_test();
  uint64_t i, found[2];
  (void)state;
  assert_int_equal(tt_runtime_manual_seed(rt, 42), TT_OK);
  for (i = 0; i < 3; i++) {
    tt_ctx* x = new_ctx(rt);
    tt_generator *own, *equal;
    Drawn drawn, want;
    tt_dropout_opts from = {.set = TT_DROPOUT_GENERATOR};
    tt_tensor *ones, *out;
    OK(tt_ctx_generator(x, &own));
    OK(tt_generator_state(x, own, found));
    assert_true(found[0] == (42 ^ outputs[i]) && found[1] == 0);
    OK(tt_generator_new(c, 42 ^ outputs[i], &equal));
    from.generator = equal;
    OK(tt_ones(c, SHAPE(kNumbers), NULL, &ones));
    OK(tt_dropout(c, ones, &from, &out));
    OK(tt_tensor_read(c, out, want.mask, sizeof want.mask));
    drawn = mask_of(x);
    assert_true(same(&drawn, &want));
    assert_int_equal(tt_runtime_rng_state(rt, found), TT_OK);
    assert_true(found[0] == 42 && found[1] == i + 1);
    tt_generator_release(equal);
    tt_generator_release(own);
    tt_ctx_release(x);
  }
  tt_runtime_release(rt);
}

/* What a binding's manual_seed does: the runtime and the current ctx. */
static void a_seeded_ctx_draws_as_a_generator_and_apart_from_later_ctxs(void** state) {
  tt_runtime* rt = runtime_of_test();
  tt_ctx* before = new_ctx(rt);
  Drawn own, later[kThreads], untouched;
  uint64_t found[2];
  tt_generator* g;
  int i;
  (void)state;
  OK(tt_manual_seed(c, 5));
  assert_int_equal(tt_runtime_manual_seed(rt, 5), TT_OK);
  OK(tt_ctx_generator(c, &g));
  OK(tt_generator_state(c, g, found));
  assert_true(found[0] == 5 && found[1] == 0);
  tt_generator_release(g);
  OK(tt_scope_pop(c, NULL, 0)); /* mask_of releases its own tensors */
  own = mask_of(c);
  OK(tt_scope_push(c));
  masks_of_new_ctxs(rt, later);
  untouched = mask_of(before);
  for (i = 0; i < kThreads; i++) assert_false(same(&own, &later[i]) || same(&untouched, &later[i]));
  OK(tt_manual_seed(c, 5)); /* of one ctx: the runtime continues to count */
  assert_int_equal(tt_runtime_rng_state(rt, found), TT_OK);
  assert_true(found[0] == 5 && found[1] == kThreads);
  tt_ctx_release(before);
  tt_runtime_release(rt);
}

static void the_state_of_a_runtime_can_be_restored(void** state) {
  tt_runtime* rt = runtime_of_test();
  Drawn first[kThreads], again[kThreads];
  uint64_t saved[2], now[2];
  (void)state;
  assert_int_equal(tt_runtime_rng_state(rt, saved), TT_OK);
  masks_of_new_ctxs(rt, first);
  assert_int_equal(tt_runtime_manual_seed(rt, 3), TT_OK);
  masks_of_new_ctxs(rt, again);
  assert_memory_not_equal(first, again, sizeof first);
  assert_int_equal(tt_runtime_set_rng_state(rt, saved), TT_OK);
  assert_int_equal(tt_runtime_rng_state(rt, now), TT_OK);
  assert_memory_equal(saved, now, sizeof saved);
  masks_of_new_ctxs(rt, again);
  assert_memory_equal(first, again, sizeof first);
  tt_runtime_release(rt);
}

static void an_invalid_runtime_is_a_bad_handle(void** state) {
  tt_runtime* rt = runtime_of_test();
  tt_runtime* wrong = (tt_runtime*)c;
  uint64_t before[2], words[2] = {1, 2};
  (void)state;
  assert_int_equal(tt_runtime_rng_state(rt, before), TT_OK);
  assert_int_equal(tt_runtime_manual_seed(NULL, 1), TT_BAD_HANDLE);
  assert_int_equal(tt_runtime_manual_seed(wrong, 1), TT_BAD_HANDLE);
  assert_int_equal(tt_runtime_rng_state(wrong, words), TT_BAD_HANDLE);
  assert_int_equal(tt_runtime_set_rng_state(wrong, words), TT_BAD_HANDLE);
  assert_int_equal(tt_runtime_rng_state(rt, NULL), TT_INVALID_ARG);
  assert_int_equal(tt_runtime_set_rng_state(rt, NULL), TT_INVALID_ARG);
  assert_true(words[0] == 1 && words[1] == 2);
  assert_int_equal(tt_runtime_rng_state(rt, words), TT_OK);
  assert_memory_equal(words, before, sizeof words);
  tt_runtime_release(rt);
}

/* ---- without a seed ---- */

static void runtimes_without_a_seed_differ(void** state) {
  tt_ctx* one = new_ctx(NULL);
  tt_ctx* two = new_ctx(NULL);
  Drawn a = mask_of(one);
  Drawn b = mask_of(two);
  (void)state;
  assert_false(same(&a, &b));
  tt_ctx_release(one);
  tt_ctx_release(two);
}

/* The mask that a process of its own draws first; `prepare` runs in it before tt does. */
static Drawn mask_of_a_process(int (*prepare)(void)) {
  int ends[2], status;
  pid_t child;
  Drawn d;
  assert_int_equal(pipe(ends), 0);
  child = fork();
  assert_true(child >= 0);
  if (!child) {
    tt_ctx* x;
    int failed = prepare && prepare();
    errno = 77;
    failed = failed || tt_ctx_new(NULL, &x) || errno != 77 || draw_mask(x, d.mask);
    failed = failed || write(ends[1], &d, sizeof d) != (ssize_t)sizeof d;
    _exit(failed);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(read(ends[0], &d, sizeof d), sizeof d);
  close(ends[0]);
  close(ends[1]);
  return d;
}

static void processes_without_a_seed_differ(void** state) {
  Drawn a = mask_of_a_process(NULL);
  Drawn b = mask_of_a_process(NULL);
  (void)state;
  assert_false(same(&a, &b));
}

/* Makes getrandom fail with EPERM, as in a sandbox that forbids it. Where no filter may be
   installed, getrandom continues to work. */
static int refuse_getrandom(void) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrandom, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
  return 0;
}

static void processes_without_entropy_differ(void** state) {
  Drawn a = mask_of_a_process(refuse_getrandom);
  Drawn b = mask_of_a_process(refuse_getrandom);
  (void)state;
  assert_false(same(&a, &b));
}

/* ---- grad mode ---- */

static void grad_mode_belongs_to_one_ctx(void** state) {
  tt_runtime* rt = runtime_of_test();
  tt_ctx* before = new_ctx(rt);
  tt_ctx* after;
  (void)state;
  OK(tt_set_grad_enabled(c, 0, NULL));
  after = new_ctx(rt);
  assert_false(tt_grad_enabled(c));
  assert_true(tt_grad_enabled(before) && tt_grad_enabled(after));
  tt_ctx_release(before);
  tt_ctx_release(after);
  tt_runtime_release(rt);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCOPED(threads_draw_different_masks),
      SCOPED(a_seed_gives_the_same_streams_in_creation_order),
      SCOPED(streams_are_the_documented_ones),
      SCOPED(a_seeded_ctx_draws_as_a_generator_and_apart_from_later_ctxs),
      SCOPED(the_state_of_a_runtime_can_be_restored),
      SCOPED(an_invalid_runtime_is_a_bad_handle),
      SCOPED(runtimes_without_a_seed_differ),
      SCOPED(processes_without_a_seed_differ),
      SCOPED(processes_without_entropy_differ),
      SCOPED(grad_mode_belongs_to_one_ctx),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
