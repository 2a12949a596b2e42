/* Every operator that has a counterpart in C: captured, exported, compiled by the C compiler at
   hand, and called with the sample's numbers. The results are those of the operator in float32. */
#include "op_table.h"

#include <dlfcn.h>
#include <math.h>
#include <unistd.h>

enum { kMaxCases = 1201, kMaxTensors = kMaxArgs + kMaxItems, kPerRow = 1 };

typedef struct Case {
  const char* name;
  void* in[kMaxTensors];
  tt_tensor* want[kMaxOuts];
  int n_in, n_out;
} Case;

static int64_t bytes_of(const tt_tensor* t) {
  return tt_tensor_numel(t) * tt_dtype_size(tt_tensor_dtype(t));
}

static Case cases[kMaxCases];
static int n_cases, n_of_row, n_rows;
static char folder[] = "/tmp/tt_export_XXXXXX";
static FILE* all; /* the C source of all cases */

/* Float64 tensors become float32; what is exported reads its inputs without gaps. */
static int make_inputs(Sample* s, const tt_tensor** inputs) {
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

static void export_sample(const Sample* s, void* user) {
  Sample t = *s;
  Case* k = &cases[n_cases];
  const tt_tensor* inputs[kMaxTensors];
  tt_tensor *outs[kMaxOuts] = {NULL}, *before[kMaxTensors];
  const tt_op* op;
  tt_graph* g = NULL;
  int64_t n_outs = 0;
  int i, wants = 0;
  char name[32];
  (void)user;
  if (s->big || n_cases == kMaxCases || n_of_row == kPerRow) return;
  k->n_in = make_inputs(&t, inputs);
  for (i = 0; i < k->n_in; i++) OK(tt_clone(c, inputs[i], NULL, &before[i]));
  OK(tt_op_find(c, t.row->name, &op));
  point_to_items(&t, t.args);
  OK(tt_capture_begin(c, inputs, k->n_in, NULL));
  if (tt_op_call(c, op, t.args, t.row->n_args, outs, kMaxOuts, &n_outs)) {
    OK(tt_capture_drop(c));
    return;
  }
  for (i = 0; i < n_outs; i++) wants += outs[i] != NULL;
  if (wants != n_outs || tt_capture_end(c, (const tt_tensor* const*)outs, n_outs, &g)) {
    OK(tt_capture_drop(c));
    return;
  }
  snprintf(name, sizeof name, "case_%d", n_cases);
  if (tt_graph_export_c(c, g, folder, name)) {
    assert_int_equal(tt_ctx_error(c)->code, TT_NOT_IMPLEMENTED);
    tt_graph_release(g);
    return;
  }
  tt_graph_release(g);
  fprintf(all, "#include \"%s.h\"\nvoid call_%d(void **in, void **out) { %s(", name, n_cases, name);
  for (i = 0; i < k->n_in; i++) fprintf(all, "%sin[%d]", i ? ", " : "", i);
  for (i = 0; i < n_outs; i++) fprintf(all, "%sout[%d]", i || k->n_in ? ", " : "", i);
  fprintf(all, "); (void)in; (void)out; }\n");
  k->name = t.row->name;
  k->n_out = (int)n_outs;
  for (i = 0; i < k->n_in; i++) {
    const size_t bytes = (size_t)bytes_of(before[i]);
    k->in[i] = malloc(bytes + 1);
    memcpy(k->in[i], tt_tensor_data(before[i]), bytes);
  }
  for (i = 0; i < n_outs; i++) {
    OK(tt_contiguous(c, outs[i], &k->want[i]));
    tt_tensor_retain(k->want[i]);
  }
  n_rows += n_of_row == 0;
  n_of_row++;
  n_cases++;
}

/* Numbers: x >= 0.5, calls without a dimension, each of which has variables of its own, and a
   constant of which only the shape is used. */
static void export_numbers(void) {
  Case* k = &cases[n_cases];
  const float x[] = {0.25f, 0.75f, -0.5f};
  const int64_t n = 3;
  tt_tensor *in, *shape, *sum, *twice, *more, *outs[3];
  tt_graph* g;
  char name[32];
  OK(tt_tensor_from_data(c, x, TT_F32, &n, 1, &in));
  OK(tt_clone(c, in, NULL, &shape));
  OK(tt_capture_begin(c, (const tt_tensor* const*)&in, 1, NULL));
  OK(tt_ge_f64(c, in, 0.5, &outs[0]));
  OK(tt_sum(c, in, NULL, &sum));
  OK(tt_mul_f64(c, sum, 2, &twice));
  OK(tt_add_f64(c, twice, 0.125, &more));
  OK(tt_norm(c, more, 2, NULL, 0, NULL, &outs[1]));
  OK(tt_zeros_like(c, shape, NULL, &outs[2]));
  OK(tt_capture_end(c, (const tt_tensor* const*)outs, 3, &g));
  snprintf(name, sizeof name, "case_%d", n_cases);
  OK(tt_graph_export_c(c, g, folder, name));
  tt_graph_release(g);
  fprintf(all, "#include \"%s.h\"\nvoid call_%d(void **in, void **out) { ", name, n_cases);
  fprintf(all, "%s(in[0], out[0], out[1], out[2]); }\n", name);
  *k = (Case){.name = "numbers", .n_in = 1, .n_out = 3};
  k->in[0] = malloc(sizeof x);
  memcpy(k->in[0], x, sizeof x);
  for (int i = 0; i < 3; i++) {
    k->want[i] = outs[i];
    tt_tensor_retain(outs[i]);
  }
  n_cases++;
}

static void check_case(const Case* k, int number, void (*call)(void** in, void** out)) {
  void *in[kMaxTensors], *out[kMaxOuts];
  int i;
  memcpy(in, k->in, sizeof in);
  for (i = 0; i < k->n_out; i++) out[i] = calloc(1, (size_t)bytes_of(k->want[i]) + 16);
  call(in, out);
  for (i = 0; i < k->n_out; i++) {
    const tt_tensor* w = k->want[i];
    const int64_t n = tt_tensor_numel(w);
    int64_t j;
    if (tt_tensor_dtype(w) != TT_F32) {
      if (memcmp(out[i], tt_tensor_data(w), (size_t)bytes_of(w)))
        fail_msg("%s (case %d): result %d differs", k->name, number, i);
      free(out[i]);
      continue;
    }
    for (j = 0; j < n; j++) {
      const float a = ((const float*)out[i])[j], b = ((const float*)tt_tensor_data(w))[j];
      const int same = a == b || (isnan(a) && isnan(b));
      if (!same && !(fabsf(a - b) <= 2e-5f * fmaxf(1, fabsf(b))))
        fail_msg("%s (case %d): result %d [%d] is %g, not %g", k->name, number, i, (int)j,
                 (double)a, (double)b);
    }
    free(out[i]);
  }
}

static void test_all(void** state) {
  char text[400];
  void* library;
  int i;
  (void)state;
  assert_non_null(mkdtemp(folder));
  snprintf(text, sizeof text, "%s/all.c", folder);
  all = fopen(text, "w");
  assert_non_null(all);
  for (i = 0; i < kNumRows; i++) {
    n_of_row = 0;
    OK(tt_scope_push(c));
    each_sample(&kRows[i], export_sample, NULL);
    OK(tt_scope_pop(c, NULL, 0));
    scratch_clear();
  }
  OK(tt_scope_push(c));
  export_numbers();
  OK(tt_scope_pop(c, NULL, 0));
  fclose(all);
  snprintf(text, sizeof text,
           "cd %s && cc -std=c99 -pedantic -Wall -Wextra -Werror -shared -fPIC "
           "-O0 -o all.so *.c -lm",
           folder);
  if (!SLOW_BUILD && system(text)) fail_msg("%s fails", text);
  snprintf(text, sizeof text, "%s/all.so", folder);
  library = SLOW_BUILD ? NULL : dlopen(text, RTLD_NOW); /* a slow build looks at tt alone */
  if (!SLOW_BUILD) assert_non_null(library);
  for (i = 0; i < n_cases; i++) {
    void (*call)(void**, void**);
    int k;
    snprintf(text, sizeof text, "call_%d", i);
    if (library) {
      *(void**)&call = dlsym(library, text);
      check_case(&cases[i], i, call);
    }
    for (k = 0; k < cases[i].n_in; k++) free(cases[i].in[k]);
    for (k = 0; k < cases[i].n_out; k++) tt_tensor_release(cases[i].want[k]);
  }
  if (library) dlclose(library);
  snprintf(text, sizeof text, "rm -r %s", folder);
  assert_int_equal(system(text), 0);
  print_message("%d operators, %d cases\n", n_rows, n_cases);
  assert_true(n_rows >= 300);
}

int main(void) {
  const struct CMUnitTest tests[] = {PLAIN(test_all)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
