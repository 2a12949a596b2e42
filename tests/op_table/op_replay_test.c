/* Every operator, captured with some values and replayed as a plan with others: bit-equal to the
   call, as captured, after the passes that keep every bit, made anew as by an edit, and read from a
   file; gradients also of compiled calls. Listed are the operators that a plan refuses, since they
   read elements on the host. */
#include "op_table.h"
#include "share.h"

#include <unistd.h>

static char path[64];
static int n_replayed, n_backward, n_compiled, n_same_values;
static int n_poisoned;                   /* plans in memory full of nan */
static int edits_per_graph = 1, n_edits; /* TT_EDITS: another number */
typedef struct {
  int n; /* samples */
  char names[16384];
} Refused;
static Refused calls, gradients, compiled;

static void note_refused(Refused* of, const char* name) {
  char entry[128];
  snprintf(entry, sizeof entry, " %s", name);
  if (of->n++ == 0 || !strstr(of->names, entry))
    if (strlen(of->names) + strlen(entry) < sizeof of->names) strcat(of->names, entry);
}

/* The values in the opposite order: other values, of the same range. */
static tt_tensor* reversed(const tt_tensor* t) {
  tt_tensor *flat, *out;
  int64_t minus_one = -1, zero = 0;
  OK(tt_clone(c, t, NULL, &out));
  OK(tt_reshape(c, t, &minus_one, 1, &flat));
  OK(tt_flip(c, flat, &zero, 1, &flat));
  OK(tt_reshape(c, flat, tt_tensor_shape(t), tt_tensor_ndim(t), &flat));
  OK(tt_copy_(c, out, flat));
  return out;
}

static tt_status call(Sample* s, tt_tensor** outs, int64_t* n) {
  const tt_op* op;
  *n = 0;
  OK(tt_op_find(c, s->row->name, &op));
  point_to_items(s, s->args);
  return tt_op_call(c, op, s->args, s->row->n_args, outs, kMaxOuts, n);
}

static void seed(void) { OK(tt_manual_seed(c, 7)); }

static void check_equal(const Sample* s, const tt_tensor* got, const tt_tensor* want) {
  const int64_t bytes = tt_tensor_numel(want) * tt_dtype_size(tt_tensor_dtype(want));
  char* a = calloc(1, (size_t)bytes + 1);
  char* b = calloc(1, (size_t)bytes + 1);
  assert_int_equal(tt_tensor_dtype(got), tt_tensor_dtype(want));
  assert_int_equal(tt_tensor_numel(got), tt_tensor_numel(want));
  OK(tt_tensor_read(c, got, a, bytes));
  OK(tt_tensor_read(c, want, b, bytes));
  if (memcmp(a, b, (size_t)bytes)) fail_msg("%s (%s): a replay differs", s->row->name, s->what);
  free(a);
  free(b);
}

/* Returns the graph of the call on other values, or NULL. */
static tt_graph* capture(const Sample* s, tt_tensor** given, int n) {
  Sample t = *s;
  tt_tensor **places[kMaxTensors], *outs[kMaxOuts] = {NULL};
  tt_graph* g = NULL;
  int64_t n_outs = 0;
  int i, attempt;
  assert_int_equal(tensor_places(&t, places), n);
  for (attempt = 0; attempt < 2 && !g; attempt++) {
    for (i = 0; i < n; i++) {
      if (attempt == 0) *places[i] = reversed(given[i]);
      else OK(tt_clone(c, given[i], NULL, places[i]));
    }
    {
      const tt_tensor* in[kMaxTensors];
      for (i = 0; i < n; i++) in[i] = *places[i];
      OK(tt_capture_begin(c, in, n, NULL));
    }
    if (call(&t, outs, &n_outs) != TT_OK) {
      OK(tt_capture_drop(c));
      continue;
    }
    if (tt_capture_end(c, (const tt_tensor* const*)outs, n_outs, &g)) return NULL;
    n_same_values += attempt;
  }
  return g;
}

/* A plan in memory that is full of nan, but for those that need more than it has. */
static tt_status poisoned_plan(const tt_graph* g, tt_plan** p) {
  static _Alignas(64) char arena[1 << 17];
  const tt_plan_opts opts = {
      .set = TT_PLAN_ARENA | TT_PLAN_ARENA_BYTES, .arena = arena, .arena_bytes = sizeof arena};
  if (tt_plan_new(c, g, &opts, p)) return tt_plan_new(c, g, NULL, p);
  memset(arena, 0xff, sizeof arena);
  n_poisoned++;
  return TT_OK;
}

/* Returns 0 if a plan refuses the graph. */
static int replay(const tt_graph* g, const Sample* s, tt_tensor** given, int n, tt_tensor** outs,
                  int64_t n_outs) {
  tt_tensor* slot;
  tt_plan* p;
  int64_t k;
  if (poisoned_plan(g, &p)) return 0;
  for (k = 0; k < n; k++) {
    OK(tt_plan_slot(c, p, 0, k, &slot));
    OK(tt_copy_(c, slot, given[k]));
  }
  seed();
  OK(tt_plan_run(c, p));
  for (k = 0; k < n_outs; k++) {
    if (!outs[k]) continue;
    OK(tt_plan_slot(c, p, 1, k, &slot));
    if (strncmp(s->row->name, "empty", 5)) check_equal(s, slot, outs[k]);
  }
  tt_plan_release(p);
  return 1;
}

/* The graph, made anew as edits make it. */
static tt_graph* edited(const tt_graph* g) {
  tt_graph_info info;
  tt_graph* copy;
  OK(tt_graph_copy(c, g, &copy));
  OK(tt_graph_get_info(c, copy, &info));
  OK(tt_graph_set_outputs(c, copy, info.outputs, info.n_outputs));
  return copy;
}

/* An edit that gives a node another tensor, of any shape and dtype, fails or leaves a graph that
   runs. */
static int32_t pick(int64_t n) {
  static uint64_t state = 1;
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (int32_t)((state >> 33) % (uint64_t)n);
}
static void check_edits(const tt_graph* g) {
  tt_graph_info info;
  int k;
  OK(tt_graph_get_info(c, g, &info));
  for (k = 0; k < edits_per_graph && info.n_values; k++) {
    tt_graph* copy;
    tt_plan* p;
    OK(tt_graph_copy(c, g, &copy));
    if (!tt_graph_replace_uses(c, copy, pick(info.n_values), pick(info.n_values))) {
      n_edits++;
      if (!tt_plan_new(c, copy, NULL, &p)) {
        (void)tt_plan_run(c, p); /* an index may be out of range */
        tt_plan_release(p);
      }
    }
    if (tt_ctx_error(c)->code == TT_INTERNAL) fail_msg("%s", tt_ctx_error(c)->message);
    tt_graph_release(copy);
  }
}

/* The graph, saved and loaded. */
static tt_graph* from_file(const tt_graph* g) {
  tt_graph* loaded;
  OK(tt_graph_save(c, g, path));
  OK(tt_graph_load(c, path, &loaded));
  assert_int_equal(unlink(path), 0);
  return loaded;
}

/* Returns the gradient of the sum of the first result for the leaf; NULL: there is none. Whoever
   calls it sets the seed, which no capture may. */
static tt_tensor* gradient(Sample* s, const tt_tensor* leaf) {
  const tt_grad_opts unused = {.set = TT_GRAD_ALLOW_UNUSED, .allow_unused = 1};
  tt_tensor *outs[kMaxOuts] = {NULL}, *sum, *grad = NULL;
  int64_t n_outs;
  if (call(s, outs, &n_outs) || !n_outs || !outs[0]) return NULL;
  if (!tt_tensor_requires_grad(outs[0]) || tt_tensor_dtype(outs[0]) > TT_F64) return NULL;
  sum = sum_of(outs[0]);
  if (tt_grad(c, (const tt_tensor* const[]){sum}, 1, (const tt_tensor* const[]){leaf}, 1, &unused,
              &grad))
    return NULL;
  return grad;
}

static tt_tensor* new_leaf(const tt_tensor* values) {
  tt_tensor* leaf;
  OK(tt_clone(c, values, NULL, &leaf));
  OK(tt_requires_grad_(c, leaf, 1));
  return leaf;
}

typedef struct {
  Sample* s;
  tt_tensor** place; /* of the input */
} Compiled;
static tt_status call_compiled(void* user, tt_ctx* x, const tt_tensor* const* in, int64_t n,
                               tt_tensor** outs, int64_t cap, int64_t* n_outs) {
  const Compiled* of = user;
  tt_tensor* all[kMaxOuts] = {NULL};
  tt_status status;
  (void)x;
  (void)n;
  (void)cap;
  *of->place = (tt_tensor*)in[0];
  status = call(of->s, all, &n);
  outs[0] = all[0];
  *n_outs = all[0] != NULL;
  while (n > 1) tt_tensor_release(all[--n]);
  return status;
}
/* The gradient for the leaf, where the result has ones, which are stored, as its own; *found: there
   is one, or it is known to be none. */
static tt_tensor* gradient_of(tt_tensor* out, const tt_tensor* leaf, int* found) {
  tt_grad_opts opts = {.set = TT_GRAD_ALLOW_UNUSED | TT_GRAD_GRAD_OUTPUTS, .allow_unused = 1};
  tt_tensor *ones, *grad = NULL;
  *found = 0;
  if (!out || !tt_tensor_requires_grad(out)) return NULL;
  OK(tt_ones_like(c, out, NULL, &ones));
  opts.grad_outputs = (const tt_tensor* const*)&ones;
  opts.n_grad_outputs = 1;
  *found = tt_grad(c, (const tt_tensor* const[]){out}, 1, (const tt_tensor* const[]){leaf}, 1,
                   &opts, &grad) == TT_OK;
  return grad;
}
/* The gradient of a call that is replayed has the bits of the call's, too. */
static void check_compiled(Sample* s, tt_tensor** place, const tt_tensor* values) {
  Compiled of = {s, place};
  tt_tensor *leaf, *outs[kMaxOuts] = {NULL}, *want, *got = NULL;
  tt_compiled_info info = {0};
  tt_compiled* f;
  int64_t n;
  int k, found;
  *place = leaf = new_leaf(values);
  seed();
  if (call(s, outs, &n) != TT_OK) return;
  want = gradient_of(outs[0], leaf, &found);
  if (!found) return;
  OK(tt_compile(c, call_compiled, &of, NULL, NULL, &f));
  for (k = 0; k < 2; k++) {
    leaf = new_leaf(values);
    if (k == 0) leaf = new_leaf(reversed(values));
    seed();
    if (tt_compiled_call(c, f, (const tt_tensor* const*)&leaf, 1, outs, 1, &n) != TT_OK) {
      assert_int_equal(k, 0); /* other values may be refused */
      note_refused(&compiled, s->row->name);
      tt_compiled_release(f);
      return;
    }
    got = gradient_of(outs[0], leaf, &found);
    assert_true(found);
  }
  OK(tt_compiled_get_info(c, f, &info));
  assert_true((got == NULL) == (want == NULL));
  if (got) check_equal(s, got, want);
  if (info.n_replays == 1) n_compiled++;
  else note_refused(&compiled, s->row->name);
  tt_compiled_release(f);
}

/* The graph of forward and backward, captured with other values of a leaf, has the bits of the
   call, also when it comes from a file. */
static void check_backward(const Sample* s, tt_tensor** given, int n) {
  Sample t = *s;
  tt_tensor **places[kMaxTensors], *want, *grad;
  tt_graph *g, *loaded;
  int i, at = -1;
  assert_int_equal(tensor_places(&t, places), n);
  for (i = 0; i < n; i++) {
    OK(tt_clone(c, given[i], NULL, places[i]));
    if (at >= 0 || tt_tensor_dtype(given[i]) < TT_F32 || tt_tensor_dtype(given[i]) > TT_F64)
      continue;
    at = i;
  }
  if (at < 0) return;
  *places[at] = new_leaf(given[at]);
  seed();
  want = gradient(&t, *places[at]);
  if (!want) return;
  *places[at] = new_leaf(reversed(given[at]));
  seed();
  OK(tt_capture_begin(c, (const tt_tensor* const*)places[at], 1, NULL));
  grad = gradient(&t, *places[at]);
  if (!grad) {
    OK(tt_capture_drop(c));
    return note_refused(&gradients, s->row->name);
  }
  if (tt_capture_end(c, (const tt_tensor* const[]){grad}, 1, &g))
    return note_refused(&gradients, s->row->name);
  if (replay(g, s, &given[at], 1, &want, 1)) {
    loaded = from_file(g);
    assert_true(replay(loaded, s, &given[at], 1, &want, 1));
    tt_graph_release(loaded);
    n_backward++;
  } else {
    note_refused(&gradients, s->row->name);
  }
  check_edits(g);
  tt_graph_release(g);
  check_compiled(&t, places[at], given[at]);
}

static void check_sample(const Sample* s, void* user) {
  Sample t = *s;
  tt_tensor **places[kMaxTensors], *given[kMaxTensors];
  tt_tensor* outs[kMaxOuts] = {NULL};
  tt_graph *g, *optimized, *loaded;
  int64_t n_outs;
  int i, n = tensor_places(&t, places);
  (void)user;
  if (s->big) return;
  OK(tt_scope_push(c));
  for (i = 0; i < n; i++) OK(tt_clone(c, *places[i], NULL, &given[i]));
  for (i = 0; i < n; i++) *places[i] = given[i];
  g = capture(s, given, n);
  seed();
  if (g && call(&t, outs, &n_outs) == TT_OK) {
    if (replay(g, s, given, n, outs, n_outs)) {
      OK(tt_graph_optimize(c, g, NULL, &optimized));
      assert_true(replay(optimized, s, given, n, outs, n_outs));
      tt_graph_release(optimized);
      optimized = edited(g);
      assert_true(replay(optimized, s, given, n, outs, n_outs));
      tt_graph_release(optimized);
      loaded = from_file(g);
      assert_true(replay(loaded, s, given, n, outs, n_outs));
      tt_graph_release(loaded);
      check_edits(g);
      check_backward(s, given, n);
      n_replayed++;
    } else {
      note_refused(&calls, s->row->name);
    }
  } else if (!g) {
    note_refused(&calls, s->row->name);
  }
  tt_graph_release(g);
  OK(tt_scope_pop(c, NULL, 0));
  scratch_clear();
}

static void test_row(void** state) { each_sample(*state, check_sample, NULL); }

int main(int argc, char** argv) {
  struct CMUnitTest* tests = calloc((size_t)kNumRows, sizeof *tests);
  int i, n = 0, failed;
  if (getenv("TT_EDITS")) edits_per_graph = atoi(getenv("TT_EDITS"));
  /* memory, where it is a file system: saving waits for the disk */
  snprintf(path, sizeof path, "%s/tt_replay_%d.ttg",
           access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", (int)getpid());
  for (i = 0; i < kNumRows; i++) {
    const Row* r = &kRows[i];
    if (r->n_outs == 0 || (argc > 1 && strcmp(argv[1], r->name))) continue;
    if (SLOW_BUILD && left_out_in_turn(i)) continue; /* the Release build replays all */
    tests[n].name = r->name;
    tests[n].test_func = test_row;
    tests[n].setup_func = open_plain;
    tests[n].teardown_func = close_ctx;
    tests[n++].initial_state = (void*)r;
  }
  failed = _cmocka_run_group_tests("op_replay", tests, (size_t)n, NULL, NULL);
  print_message(
      "%d operators, %d samples replayed (%d captured with equal values), %d gradients, %d of "
      "compiled calls, %d plans in memory full of nan, %d edits, %d refused:%s; %d gradients "
      "refused:%s; %d compiled calls not replayed:%s\n",
      n, n_replayed, n_same_values, n_backward, n_compiled, n_poisoned, n_edits, calls.n,
      calls.names, gradients.n, gradients.names, compiled.n, compiled.names);
  free(tests);
  if (argc == 1 && !SLOW_BUILD && n_compiled < 2500) {
    print_error("%d compiled calls were replayed: at least 2,500 must be\n", n_compiled);
    failed = 1;
  }
  return failed;
}
