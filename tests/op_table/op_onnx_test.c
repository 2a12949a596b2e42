/* Every operator that ONNX can express, exported. The messages are well-formed: fields nest, names
   are made once and before they are used. tt reads each model and computes the results of the
   sample; mutated models (TT_FUZZ=N of each, and of each in the folder TT_ONNX_SEEDS) harm nothing,
   not when they run. TT_ONNX_DIR=folder keeps the models with inputs and results, which
   tests/op_table/check_onnx.py gives to onnx and onnxruntime. */
#include "op_table.h"

#include <dirent.h>
#include <math.h>
#include <unistd.h>

enum { kPerRow = 3, kMaxNames = 4096 };

static char folder[200] = "/dev/shm/tt_onnx_XXXXXX";
static char* ended; /* of each row, whether its samples were checked */
static int sample;  /* of the row at hand */
static int keeps, n_cases, n_of_row, n_rows, of_row, n_fuzz = 1, n_mutated, n_accepted, n_loaded;
static unsigned char data[1 << 22];
static size_t n_data;

/* ---- the wire format ---- */

typedef struct Bytes {
  const unsigned char *at, *end;
} Bytes;
static uint64_t varint(Bytes* b) {
  uint64_t v = 0;
  int shift = 0;
  do {
    assert_true(b->at < b->end && shift < 64);
    v |= (uint64_t)(*b->at & 127) << shift;
    shift += 7;
  } while (*b->at++ & 128);
  return v;
}
/* The next field; *inner: its bytes, if it has some. */
static int field(Bytes* b, Bytes* inner, uint64_t* number) {
  const uint64_t key = varint(b);
  *inner = (Bytes){b->at, b->at};
  *number = 0;
  switch (key & 7) {
    case 0: *number = varint(b); break;
    case 2: {
      const uint64_t n = varint(b);
      assert_true(n <= (uint64_t)(b->end - b->at));
      *inner = (Bytes){b->at, b->at + n};
      b->at += n;
      break;
    }
    case 5:
      assert_true(b->end - b->at >= 4);
      b->at += 4;
      break;
    default: fail_msg("wire type %d", (int)(key & 7));
  }
  return (int)(key >> 3);
}

typedef struct Names {
  Bytes list[kMaxNames];
  int n;
} Names;
static Names known;
static int is_known(Bytes name) {
  int i;
  for (i = 0; i < known.n; i++)
    if (known.list[i].end - known.list[i].at == name.end - name.at &&
        memcmp(known.list[i].at, name.at, (size_t)(name.end - name.at)) == 0)
      return 1;
  return 0;
}
static void add_name(Bytes name) {
  assert_false(is_known(name));
  assert_true(known.n < kMaxNames);
  known.list[known.n++] = name;
}
/* Adds the names in field `wanted` of each message in field `kind` of the graph. */
static void add_names(Bytes graph, int kind, int wanted) {
  Bytes part, name;
  uint64_t number;
  while (graph.at < graph.end) {
    if (field(&graph, &part, &number) != kind) continue;
    while (part.at < part.end)
      if (field(&part, &name, &number) == wanted) add_name(name);
  }
}
static void check_node(Bytes node) {
  Bytes part, all = node;
  uint64_t number;
  int types = 0;
  while (node.at < node.end) {
    const int f = field(&node, &part, &number);
    if (f == 1 && part.at < part.end) assert_true(is_known(part));
    types += f == 4;
  }
  assert_int_equal(types, 1);
  while (all.at < all.end)
    if (field(&all, &part, &number) == 2) add_name(part);
}
static void check_model(const char* path) {
  FILE* f = fopen(path, "rb");
  Bytes model, part, graph = {NULL, NULL}, nodes, ends;
  uint64_t number;
  assert_non_null(f);
  model.at = data;
  n_data = fread(data, 1, sizeof data, f);
  model.end = data + n_data;
  fclose(f);
  while (model.at < model.end)
    if (field(&model, &part, &number) == 7) graph = part;
  assert_non_null(graph.at);
  known.n = 0;
  add_names(graph, 11, 1); /* inputs */
  add_names(graph, 5, 8);  /* initializers */
  for (nodes = graph; nodes.at < nodes.end;)
    if (field(&nodes, &part, &number) == 1) check_node(part);
  for (ends = graph; ends.at < ends.end;) /* outputs */
    if (field(&ends, &part, &number) == 12) {
      Bytes name;
      assert_int_equal(field(&part, &name, &number), 1);
      assert_true(is_known(name));
    }
}

/* ---- cases ---- */

/* The tensors as a file of safetensors beside the model. */
static void keep(const tt_tensor** in, int n_in, tt_tensor** out, int64_t n_out) {
  char path[300], text[kMaxTensors + kMaxOuts][16];
  const char* names[kMaxTensors + kMaxOuts];
  tt_tensor* list[kMaxTensors + kMaxOuts];
  int i, n = 0;
  for (i = 0; i < n_in; i++, n++) {
    snprintf(text[n], 16, "in%d", i);
    OK(tt_clone(c, in[i], NULL, &list[n]));
  }
  for (i = 0; i < n_out; i++, n++) {
    snprintf(text[n], 16, "out%d", i);
    OK(tt_contiguous(c, out[i], &list[n]));
  }
  for (i = 0; i < n; i++) names[i] = text[i];
  snprintf(path, sizeof path, "%s/%04d.safetensors", folder, n_cases);
  OK(tt_safetensors_save(c, path, names, list, n, NULL));
}

/* ---- reading models ---- */

static void check_result(const char* name, const tt_tensor* got, const tt_tensor* want) {
  const int64_t n = tt_tensor_numel(want);
  const int64_t bytes = n * tt_dtype_size(tt_tensor_dtype(want));
  char *a = malloc((size_t)bytes + 1), *b = malloc((size_t)bytes + 1);
  int64_t i;
  assert_int_equal(tt_tensor_dtype(got), tt_tensor_dtype(want));
  assert_int_equal(tt_tensor_numel(got), n);
  if (!strncmp(name, "empty", 5)) { /* its numbers mean nothing */
    free(a);
    free(b);
    return;
  }
  OK(tt_tensor_read(c, got, a, bytes));
  OK(tt_tensor_read(c, want, b, bytes));
  if (tt_tensor_dtype(want) <= TT_I64 && memcmp(a, b, (size_t)bytes))
    fail_msg("%s: integers differ", name);
  for (i = 0; i < n && tt_tensor_dtype(want) == TT_F32; i++) {
    const float x = ((const float*)a)[i], y = ((const float*)b)[i];
    const int same = x == y || (isnan(x) && isnan(y));
    if (!same && !(fabsf(x - y) <= 1e-4f * fmaxf(1, fabsf(y))))
      fail_msg("%s: [%d] is %g, not %g", name, (int)i, (double)x, (double)y);
  }
  free(a);
  free(b);
}

/* The model computes the results of the sample. */
static void check_loaded(const char* name, const char* path, tt_tensor** in, int n_in,
                         tt_tensor** out, int64_t n_out) {
  tt_graph* g;
  tt_plan* p;
  tt_tensor* slot;
  int64_t i;
  if (tt_graph_load_onnx(c, path, NULL, &g)) {
    if (tt_ctx_error(c)->code != TT_NOT_IMPLEMENTED || keeps)
      fprintf(stderr, "%s: %s\n", name, tt_ctx_error(c)->message);
    assert_int_equal(tt_ctx_error(c)->code, TT_NOT_IMPLEMENTED);
    return;
  }
  if (tt_plan_new(c, g, NULL, &p)) {
    if (keeps) fprintf(stderr, "%s: %s\n", name, tt_ctx_error(c)->message);
    tt_graph_release(g);
    return;
  }
  for (i = 0; i < n_in; i++) {
    OK(tt_plan_slot(c, p, 0, i, &slot));
    OK(tt_copy_(c, slot, in[i]));
  }
  OK(tt_plan_run(c, p));
  for (i = 0; i < n_out; i++) {
    OK(tt_plan_slot(c, p, 1, i, &slot));
    check_result(name, slot, out[i]);
  }
  n_loaded++;
  tt_plan_release(p);
  tt_graph_release(g);
}

static uint32_t dice(uint32_t n) {
  static uint32_t seed = 1;
  seed = seed * 1664525u + 1013904223u;
  return n ? (seed >> 8) % n : 0;
}

/* A model that was accepted must run, or fail with a status. */
static void try_model(const tt_graph* g) {
  tt_plan* p;
  int32_t done;
  if (tt_plan_new(c, g, NULL, &p)) return;
  (void)tt_plan_run_for(c, p, 20000000, &done);
  tt_plan_release(p);
}

/* Changes bytes, cuts the end or repeats a part, and loads what comes out. */
static void load_mutated(const char* path) {
  static unsigned char copy[2 * sizeof data];
  int k, i;
  OK(tt_set_memory_limit(c, (int64_t)256 << 20));
  for (k = 0; k < n_fuzz; k++, n_mutated++) {
    size_t n = n_data;
    tt_graph* g = NULL;
    FILE* f = fopen(path, "wb");
    assert_non_null(f);
    memcpy(copy, data, n);
    for (i = (int)dice(4); i >= 0 && n; i--) {
      const size_t at = dice((uint32_t)n), more = dice(40);
      static const unsigned char kinds[] = {0, 1, 2, 7, 10, 127, 128, 255};
      switch (dice(5)) {
        case 0: copy[at] = kinds[dice(8)]; break;
        case 1: copy[at] = (unsigned char)dice(256); break;
        case 2: copy[at] ^= (unsigned char)(1 << dice(8)); break;
        case 3: n = at; break;
        default:
          if (at + more > n) break;
          memmove(copy + at + more, copy + at, n - at);
          n += more;
      }
    }
    assert_int_equal(fwrite(copy, 1, n, f), n);
    fclose(f);
    OK(tt_scope_push(c));
    if (tt_graph_load_onnx(c, path, NULL, &g)) {
      assert_null(g);
    } else {
      n_accepted++;
      try_model(g);
    }
    tt_graph_release(g);
    OK(tt_scope_pop(c, NULL, 0));
  }
  OK(tt_set_memory_limit(c, 0));
}

static void export_sample(const Sample* s, void* user) {
  Sample t = *s;
  const tt_tensor* inputs[kMaxTensors];
  tt_tensor* before[kMaxTensors];
  tt_tensor* outs[kMaxOuts] = {NULL};
  const tt_op* op;
  tt_graph* g = NULL;
  int64_t n_outs = 0;
  int i, n, wants = 0;
  char path[300];
  (void)user;
  sample++;
  if (s->big || n_of_row == kPerRow) return;
  n = float32_inputs(&t, inputs);
  for (i = 0; i < n; i++) OK(tt_clone(c, inputs[i], NULL, &before[i]));
  OK(tt_op_find(c, t.row->name, &op));
  point_to_items(&t, t.args);
  OK(tt_capture_begin(c, inputs, n, NULL));
  if (tt_op_call(c, op, t.args, t.row->n_args, outs, kMaxOuts, &n_outs)) {
    OK(tt_capture_drop(c));
    return;
  }
  for (i = 0; i < n_outs; i++) wants += outs[i] != NULL;
  if (wants != n_outs || tt_capture_end(c, (const tt_tensor* const*)outs, n_outs, &g)) {
    OK(tt_capture_drop(c));
    return;
  }
  snprintf(path, sizeof path, "%s/%04d_%s.onnx", folder, n_cases, t.row->name);
  if (tt_graph_export_onnx(c, g, path)) {
    assert_int_equal(tt_ctx_error(c)->code, TT_NOT_IMPLEMENTED);
    if (keeps && !n_of_row) fprintf(stderr, "%s: %s\n", t.row->name, tt_ctx_error(c)->message);
    tt_graph_release(g);
    return;
  }
  tt_graph_release(g);
  check_model(path);
  check_loaded(t.row->name, path, before, n, outs, n_outs);
  if (keeps) {
    keep((const tt_tensor**)before, n, outs, n_outs);
  } else {
    load_mutated(path);
    assert_int_equal(unlink(path), 0);
  }
  of_row = 1;
  n_of_row++;
  n_cases++;
}

static void export_row(void** state) {
  const Row* r = *state;
  n_of_row = of_row = sample = 0;
  each_sample(r, export_sample, NULL);
  n_rows += of_row;
  ended[r - kRows] = 1;
}
/* cmocka's summary leaves out tests whose cleanup fails, too, as it does after a failed sample. */
static int close_row(void** state) {
  const Row* r = *state;
  const int status = close_ctx(state);
  if (!ended[r - kRows]) print_error("[  FAILED  ] %s, sample %d\n", r->name, sample);
  return status;
}
/* Mutates the models of TT_ONNX_SEEDS, a folder. */
static void mutate_seeds(void** state) {
  const char* seeds = getenv("TT_ONNX_SEEDS");
  DIR* list = seeds ? opendir(seeds) : NULL;
  struct dirent* entry;
  char path[600];
  (void)state;
  while (list && (entry = readdir(list))) {
    FILE* f;
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", seeds, entry->d_name);
    f = fopen(path, "rb");
    assert_non_null(f);
    n_data = fread(data, 1, sizeof data, f);
    fclose(f);
    snprintf(path, sizeof path, "%s/seed.onnx", folder);
    load_mutated(path);
    assert_int_equal(unlink(path), 0);
  }
  if (list) closedir(list);
}
static void count(void** state) {
  (void)state;
  print_message("%d operators, %d cases, %d read again, %d of %d mutated ones accepted\n", n_rows,
                n_cases, n_loaded, n_accepted, n_mutated);
  assert_true(n_rows >= 440);
  assert_int_equal(n_loaded, n_cases);
}

int main(int argc, char** argv) {
  struct CMUnitTest* tests = calloc((size_t)kNumRows + 1, sizeof *tests);
  int i, n = 0, failed;
  ended = calloc((size_t)kNumRows, 1);
  if (getenv("TT_FUZZ")) n_fuzz = atoi(getenv("TT_FUZZ"));
  if (getenv("TT_ONNX_DIR")) {
    keeps = 1;
    snprintf(folder, sizeof folder, "%s", getenv("TT_ONNX_DIR"));
  } else if (!mkdtemp(folder)) {
    strcpy(folder, "/tmp/tt_onnx_XXXXXX");
    if (!mkdtemp(folder)) return 1;
  }
  for (i = 0; i < kNumRows; i++) {
    const Row* r = &kRows[i];
    if (r->n_outs == 0 || (argc > 1 && strcmp(argv[1], r->name))) continue;
    tests[n].name = r->name;
    tests[n].test_func = export_row;
    tests[n].setup_func = open_scoped;
    tests[n].teardown_func = close_row;
    tests[n++].initial_state = (void*)r;
  }
  tests[n++] = (struct CMUnitTest)SCOPED(mutate_seeds);
  if (argc < 2) tests[n++] = (struct CMUnitTest){.name = "count", .test_func = count};
  failed = _cmocka_run_group_tests("op_onnx", tests, (size_t)n, NULL, NULL);
  if (!keeps) (void)rmdir(folder);
  for (i = 0; failed && i < n; i++)
    if (tests[i].test_func == export_row && !ended[(const Row*)tests[i].initial_state - kRows])
      print_error("[  FAILED  ] %s\n", tests[i].name);
  free(tests);
  free(ended);
  return failed;
}
