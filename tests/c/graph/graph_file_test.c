/* Files of graphs: a loaded graph replays bit-equal, malformed and mutated files are refused or
   give graphs that run. TT_FUZZ=N tries N mutations. */
#include "harness.h"

#include <time.h>
#include <unistd.h>

static char path[80], ops_path[80];
static int set_up(void** state) {
  const char* folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"; /* saving is synced */
  (void)state;
  snprintf(path, sizeof path, "%s/tt_graph_%d.ttg", folder, (int)getpid());
  snprintf(ops_path, sizeof ops_path, "%s/tt_graph_%d.c", folder, (int)getpid());
  return 0;
}
static int tear_down(void** state) {
  (void)state;
  unlink(path);
  unlink(ops_path);
  return 0;
}

static tt_tensor* randn(const int64_t* shape, int64_t n) {
  tt_tensor* t;
  OK(tt_randn(c, shape, n, NULL, &t));
  return t;
}
static tt_tensor* weights(const int64_t* shape, int64_t n) {
  tt_tensor* t = randn(shape, n);
  OK(tt_requires_grad_(c, t, 1));
  return t;
}
static tt_tensor* forward(tt_module* m, tt_tensor* x) {
  tt_tensor* y;
  OK(tt_module_call(c, m, x, &y));
  tt_module_release(m);
  return y;
}

/* ---- graphs of several kinds; each gives the input and one output ---- */

/* A training step: dropout, views, state that is written in place. */
static tt_graph* step_graph(void) {
  tt_tensor *x = randn(SHAPE(4, 3)), *w = weights(SHAPE(3, 8)), *total = number(TT_F32, 0);
  tt_tensor *h, *loss, *grad;
  tt_graph* g;
  int32_t before;
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_matmul(c, x, w, &h));
  OK(tt_dropout(c, h, NULL, &h));
  OK(tt_view(c, h, SHAPE(2, 16), &h));
  OK(tt_mul(c, h, h, &h));
  OK(tt_mean(c, h, NULL, &loss));
  grad = derive(loss, w, 0);
  OK(tt_set_grad_enabled(c, 0, &before));
  OK(tt_mul_f64(c, grad, 0.01, &grad));
  OK(tt_sub_(c, w, grad));
  OK(tt_add_(c, total, loss));
  OK(tt_set_grad_enabled(c, before, NULL));
  OK(tt_capture_end(c, LIST(loss), &g));
  return g;
}
static tt_graph* image_graph(void) {
  tt_tensor *x = randn(SHAPE(2, 3, 8, 8)), *w = weights(SHAPE(4, 3, 3, 3)), *y, *z;
  tt_module* norm;
  tt_graph* g;
  OK(tt_nn_batch_norm2d(c, 4, NULL, &norm));
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_conv2d(c, x, w, NULL, NULL, &y));
  y = forward(norm, y);
  OK(tt_relu(c, y, &y));
  OK(tt_max_pool2d(c, y, SHAPE(2, 2), NULL, &y));
  OK(tt_reshape(c, y, SHAPE(2, 36), &y));
  OK(tt_log_softmax(c, y, 1, NULL, &y));
  z = derive(y, w, 0);
  OK(tt_capture_end(c, LIST(y, z), &g));
  return g;
}
static tt_graph* attention_graph(void) {
  tt_tensor *x = randn(SHAPE(2, 4, 6, 8)), *y, *z;
  tt_graph* g;
  tt_requires_grad_(c, x, 1);
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_layer_norm(c, x, SHAPE(8), NULL, NULL, NULL, &y));
  OK(tt_scaled_dot_product_attention(c, y, y, x, NULL, NULL, &y));
  OK(tt_gelu(c, y, NULL, &y));
  z = derive(y, x, 0);
  OK(tt_capture_end(c, LIST(y, z), &g));
  return g;
}
static tt_graph* recurrent_graph(void) {
  tt_tensor *x = randn(SHAPE(5, 2, 3)), *outs[2];
  tt_module* gru;
  tt_graph* g;
  int64_t n;
  OK(tt_nn_gru(c, 3, 4, NULL, &gru));
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_module_forward(c, gru, LIST(x), outs, 2, &n));
  OK(tt_capture_end(c, LIST(outs[0], outs[1]), &g));
  tt_module_release(gru);
  return g;
}
/* Views, mixed indices, joins, paddings, reductions and scans. */
static tt_graph* shape_graph(void) {
  const tt_index at[] = {{.kind = TT_IDX_INT, .start = 1},
                         {.kind = TT_IDX_SLICE, .has = 3, .start = 1, .stop = 4},
                         {.kind = TT_IDX_NONE}};
  tt_tensor *x = randn(SHAPE(3, 5, 4)), *y, *z, *values, *positions;
  tt_graph* g;
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_index_get(c, x, at, 3, &y));
  OK(tt_transpose(c, y, 0, 2, &y));
  OK(tt_cat(c, LIST(y, y), NULL, &z));
  OK(tt_pad(c, z, SHAPE(1, 1), NULL, &z));
  OK(tt_cumsum(c, z, 0, NULL, &z));
  OK(tt_topk(c, z, 2, NULL, &values, &positions));
  OK(tt_softmax(c, values, -1, NULL, &values));
  OK(tt_capture_end(c, LIST(values, positions), &g));
  return g;
}
/* A whole step of training, with two groups and a schedule of schedules. */
static tt_graph* training_graph(void) {
  const tt_optim_adamw_opts opts = {.set = TT_OPTIM_ADAMW_AMSGRAD, .amsgrad = 1};
  tt_tensor *x = randn(SHAPE(4, 3)), *w = weights(SHAPE(3, 8)), *v = weights(SHAPE(8, 2));
  tt_tensor *const params[] = {w, v}, *y, *loss, *norm;
  const int64_t at = 2;
  tt_optimizer* o;
  tt_scheduler *parts[2], *schedule;
  tt_graph* g;
  OK(tt_optim_adamw(c, &w, 1, &opts, &o));
  OK(tt_optim_add_param_group(c, o, &v, 1));
  OK(tt_lr_step(c, o, 2, NULL, &parts[0]));
  OK(tt_lr_cosine_annealing(c, o, 9, NULL, &parts[1]));
  OK(tt_lr_sequential(c, o, parts, 2, &at, 1, NULL, &schedule));
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_matmul(c, x, w, &y));
  OK(tt_tanh(c, y, &y));
  OK(tt_dropout(c, y, NULL, &y));
  OK(tt_matmul(c, y, v, &y));
  OK(tt_mean(c, y, NULL, &loss));
  OK(tt_backward(c, loss, NULL));
  OK(tt_clip_grad_norm_(c, params, 2, 0.5, NULL, &norm));
  OK(tt_optim_step(c, o));
  OK(tt_optim_zero_grad(c, o, 1));
  OK(tt_scheduler_step(c, schedule));
  OK(tt_capture_end(c, LIST(loss), &g));
  tt_scheduler_release(schedule);
  tt_scheduler_release(parts[0]);
  tt_scheduler_release(parts[1]);
  tt_optim_release(o);
  return g;
}
/* A step of optimizers that compute by operators, one of them under a GradScaler. */
static tt_graph* matrix_training_graph(void) {
  tt_tensor *x = randn(SHAPE(4, 3)), *w = weights(SHAPE(3, 8)), *v = weights(SHAPE(8, 2)), *y;
  tt_optimizer *adafactor, *muon;
  tt_grad_scaler* scaler;
  tt_scheduler* schedule;
  tt_graph* g;
  int32_t took;
  OK(tt_grad_scaler_new(c, NULL, &scaler));
  OK(tt_optim_adafactor(c, &w, 1, NULL, &adafactor));
  OK(tt_optim_muon(c, &v, 1, NULL, &muon));
  OK(tt_lr_swa(c, muon, (const double[]){0.01}, 1, NULL, &schedule));
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_matmul(c, x, w, &y));
  OK(tt_matmul(c, y, v, &y));
  OK(tt_mean(c, y, NULL, &y));
  OK(tt_grad_scaler_scale(c, scaler, y, &y));
  OK(tt_backward(c, y, NULL));
  OK(tt_optim_step(c, adafactor));
  OK(tt_grad_scaler_step(c, scaler, muon, &took));
  OK(tt_grad_scaler_update(c, scaler, 0));
  OK(tt_scheduler_step(c, schedule));
  OK(tt_capture_end(c, LIST(y), &g));
  tt_scheduler_release(schedule);
  tt_optim_release(adafactor);
  tt_optim_release(muon);
  tt_grad_scaler_release(scaler);
  return g;
}
/* Products of 8-bit integers, by tensor, channel and row; fake quantisation. */
static tt_graph* integer_graph(void) {
  tt_tensor *x = randn(SHAPE(2, 3, 6, 6)), *w = randn(SHAPE(4, 3, 3, 3)), *v = randn(SHAPE(5, 64));
  tt_tensor *scales = numbers(TT_F32, (double[]){0.02, 0.03, 0.01, 0.02}, 4), *y, *z, *size;
  tt_tensor* zeros = numbers(TT_I64, (double[]){0, 0, 0, 0}, 4);
  tt_tensor *unit = numbers(TT_F32, (double[]){0.05}, 1), *zero = numbers(TT_I64, (double[]){9}, 1);
  tt_graph* g;
  OK(tt_quantize_per_channel(c, w, scales, zeros, 0, -127, 127, TT_I8, &w));
  OK(tt_quantize_per_tensor(c, v, 0.03, 0, -127, 127, TT_I8, &v));
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_quantize_per_tensor(c, x, 0.05, 9, 0, 255, TT_U8, &y));
  OK(tt_quantized_conv2d(c, y, 0.05, 9, w, scales, NULL, &y));
  OK(tt_fake_quantize_per_channel_affine(c, y, scales, zeros, 1, -128, 127, &y));
  OK(tt_reshape(c, y, SHAPE(2, 64), &y));
  OK(tt_quantize_per_tensor(c, y, 0.05, 9, 0, 255, TT_U8, &z));
  OK(tt_quantized_linear(c, z, unit, zero, v, unit, NULL, &y));
  OK(tt_quantize_per_tensor(c, y, 0.1, 0, -128, 127, TT_I8, &size));
  OK(tt_transpose(c, size, 0, 1, &z));
  OK(tt_int_mm(c, size, z, &z));
  OK(tt_capture_end(c, LIST(y, z), &g));
  return g;
}
/* Weights in blocks, and the packing of activations. */
static tt_graph* block_graph(void) {
  tt_tensor *x = randn(SHAPE(3, 64)), *table = randn(SHAPE(64, 64)), *w = randn(SHAPE(5, 64));
  tt_tensor *at, *y, *z, *packed;
  tt_graph* g;
  OK(tt_quantize_blockwise(c, table, TT_BLOCKFORMAT_Q8_0, &table));
  OK(tt_quantize_blockwise(c, w, TT_BLOCKFORMAT_Q4_0, &w));
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_argmax(c, x, &(tt_argmax_opts){.set = TT_ARGMAX_DIM, .dim = 1}, &at));
  OK(tt_blockwise_embedding(c, table, at, TT_BLOCKFORMAT_Q8_0, &y));
  OK(tt_add(c, y, x, &y));
  OK(tt_blockwise_linear(c, y, w, NULL, TT_BLOCKFORMAT_Q4_0, &z));
  OK(tt_quantize_blockwise(c, y, TT_BLOCKFORMAT_Q4_0, &packed));
  OK(tt_dequantize_blockwise(c, packed, TT_BLOCKFORMAT_Q4_0, &y));
  OK(tt_capture_end(c, LIST(z, y), &g));
  return g;
}
/* Checks that composites make, and an operator of the application. */
static tt_status add_one(void* user, tt_ctx* x, const tt_value* args, int64_t n_args,
                         tt_tensor** outs, int64_t n_outs) {
  (void)user;
  if (n_args != 1 || n_outs != 1) return TT_CALLBACK;
  return tt_add_f64(x, args[0].tensor, 1, &outs[0]) ? TT_CALLBACK : TT_OK;
}
static tt_graph* checked_graph(void) {
  static const tt_op_def def = {
      .struct_size = sizeof def, .schema = "add_one(x: Tensor) -> Tensor", .compute = add_one};
  tt_tensor *x = randn(SHAPE(3, 3)), *table = randn(SHAPE(3, 4)), *ends, *at, *y, *z, *outs[1];
  const tt_op* op;
  tt_value args[1] = {{.tag = TT_VAL_TENSOR}};
  tt_graph* g;
  int64_t n;
  if (tt_op_find(c, "add_one", &op)) {
    OK(tt_op_register(c, &def));
    OK(tt_op_find(c, "add_one", &op));
  }
  ends = numbers(TT_I64, (double[]){0, 2}, 2);
  OK(tt_capture_begin(c, LIST(x), NULL));
  args[0].tensor = x;
  OK(tt_op_call(c, op, args, 1, outs, 1, &n));
  OK(tt_linalg_inv(c, outs[0], &y));
  OK(tt_argmax(c, x, &(tt_argmax_opts){.set = TT_ARGMAX_DIM, .dim = 1}, &at));
  OK(tt_take(c, y, at, &z));
  OK(tt_embedding_bag(c, table, at, ends, NULL, &y));
  OK(tt_capture_end(c, LIST(y, z), &g));
  return g;
}
/* A loss whose kernels read lengths and classes, and its gradient. */
static tt_graph* sequence_graph(void) {
  tt_tensor* x = weights(SHAPE(6, 2, 5));
  tt_tensor *classes = numbers(TT_I64, (double[]){1, 2, 2, 3, 1, 4}, 6), *y, *loss;
  tt_tensor* lengths = numbers(TT_I64, (double[]){6, 5}, 2);
  tt_tensor* sizes = numbers(TT_I64, (double[]){3, 2}, 2);
  tt_graph* g;
  OK(tt_reshape(c, classes, SHAPE(2, 3), &classes));
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_log_softmax(c, x, -1, NULL, &y));
  OK(tt_ctc_loss(c, y, classes, lengths, sizes, NULL, &loss));
  y = derive(loss, x, 0);
  OK(tt_capture_end(c, LIST(loss, y), &g));
  return g;
}
/* Factorizations, and solutions whose kernels read exchanges of rows. */
static tt_graph* factor_graph(void) {
  tt_tensor *x = randn(SHAPE(4, 4)), *y, *lu, *pivots, *ld, *turns, *q, *r, *u, *s, *v;
  tt_graph* g;
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_transpose(c, x, 0, 1, &y));
  OK(tt_matmul(c, x, y, &y));
  OK(tt_linalg_lu_factor(c, y, NULL, &lu, &pivots));
  OK(tt_linalg_lu_solve(c, lu, pivots, x, NULL, &x));
  OK(tt_linalg_ldl_factor(c, y, NULL, &ld, &turns));
  OK(tt_linalg_ldl_solve(c, ld, turns, x, NULL, &x));
  OK(tt_linalg_qr(c, y, NULL, &q, &r));
  OK(tt_linalg_solve(c, y, r, NULL, &r));
  OK(tt_linalg_eigh(c, y, NULL, &s, &u));
  OK(tt_linalg_svd(c, u, NULL, &u, &s, &v));
  OK(tt_capture_end(c, LIST(x, r, s), &g));
  return g;
}
static tt_graph* (*const kGraphs[])(void) = {step_graph,      image_graph,  attention_graph,
                                             recurrent_graph, shape_graph,  training_graph,
                                             integer_graph,   block_graph,  checked_graph,
                                             sequence_graph,  factor_graph, matrix_training_graph};
enum { kTraining = 5 };
enum { kNumGraphs = sizeof kGraphs / sizeof *kGraphs };

static tt_graph* made(int i) {
  OK(tt_manual_seed(c, 3));
  return kGraphs[i]();
}

/* ---- round trips ---- */

typedef struct Run {
  tt_plan* plan;
  tt_tensor *in, *out;
} Run;
static Run planned(const tt_graph* g) {
  Run r;
  OK(tt_plan_new(c, g, NULL, &r.plan));
  OK(tt_plan_slot(c, r.plan, 0, 0, &r.in));
  OK(tt_plan_slot(c, r.plan, 1, 0, &r.out));
  return r;
}
static void run(Run r, uint64_t seed) {
  OK(tt_manual_seed(c, seed));
  OK(tt_normal_(c, r.in, 0, 1, NULL));
  OK(tt_plan_run(c, r.plan));
}

static void test_round_trip(void** state) {
  char first[32768], second[32768];
  int i, k;
  (void)state;
  for (i = 0; i < kNumGraphs; i++) {
    tt_graph *g = made(i), *loaded;
    int64_t n;
    Run a, b;
    OK(tt_graph_save(c, g, path));
    OK(tt_graph_load(c, path, &loaded));
    OK(tt_graph_print(c, g, first, sizeof first, &n));
    OK(tt_graph_print(c, loaded, second, sizeof second, &n));
    assert_string_equal(first, second);
    a = planned(g);
    b = planned(loaded);
    for (k = 0; k < 3; k++) { /* the step's state changes with each run */
      double *x, *y;
      run(a, (uint64_t)k);
      run(b, (uint64_t)k);
      x = values_of(a.out);
      y = values_of(b.out);
      assert_memory_equal(x, y, (size_t)tt_tensor_numel(a.out) * sizeof *x);
      free(x);
      free(y);
    }
    tt_plan_release(a.plan);
    tt_plan_release(b.plan);
    tt_graph_release(g);
    tt_graph_release(loaded);
  }
}

/* Positions in tensors: rows of a table, a loss of classes. */
static void test_positions(void** state) {
  const double rows[] = {3, 0, 1, 1, 2, 3};
  tt_tensor *at = numbers(TT_I64, rows, 6), *table = weights(SHAPE(4, 5)), *y, *loss;
  tt_graph *g, *loaded;
  (void)state;
  OK(tt_capture_begin(c, LIST(at), NULL));
  OK(tt_embedding(c, table, at, NULL, &y));
  OK(tt_cross_entropy(c, y, at, NULL, &loss));
  y = derive(loss, table, 0);
  OK(tt_capture_end(c, LIST(loss, y), &g));
  OK(tt_graph_save(c, g, path));
  OK(tt_graph_load(c, path, &loaded));
  tt_graph_release(g);
  tt_graph_release(loaded);
}

/* A file is a safetensors file, which has the state and constants. */
static void test_is_a_file_of_tensors(void** state) {
  tt_graph* g = made(0);
  tt_safetensors* f;
  tt_tensor* t;
  (void)state;
  OK(tt_graph_save(c, g, path));
  OK(tt_safetensors_open(c, path, &f));
  assert_int_equal(tt_safetensors_size(f), 2);
  OK(tt_safetensors_get(c, f, 0, &t));
  HAS_SHAPE(t, 3, 8);
  tt_safetensors_release(f);
  tt_graph_release(g);
}

/* With the operators of the graph, with one too few, and the list for a static program. */
static void test_list_of_operators(void** state) {
  tt_graph *g = made(4), *loaded;
  const tt_op* ops[32];
  tt_graph_info info;
  char text[8192];
  FILE* f;
  int64_t i, n = 0;
  (void)state;
  OK(tt_graph_get_info(c, g, &info));
  for (i = 0; i < info.n_nodes; i++) {
    tt_graph_node node;
    OK(tt_graph_get_node(c, g, i, &node));
    ops[n++] = node.op;
  }
  OK(tt_graph_save(c, g, path));
  OK(tt_graph_load_with(c, path, ops, n, &loaded));
  tt_graph_release(loaded);
  FAILS(tt_graph_load_with(c, path, ops, n - 1, &loaded), TT_FORMAT, "there is no operator");
  FAILS(tt_graph_load_with(c, path, NULL, 1, &loaded), TT_INVALID_ARG, "ops is NULL");
  FAILS(tt_graph_emit_ops(c, g, ops_path, "1x"), TT_INVALID_ARG, "identifier");
  OK(tt_graph_emit_ops(c, g, ops_path, "net"));
  f = fopen(ops_path, "rb");
  text[fread(text, 1, sizeof text - 1, f)] = 0;
  fclose(f);
  assert_non_null(strstr(text, "const tt_op *const net_ops[] = {"));
  assert_non_null(strstr(text, "op_cumsumE,"));
  tt_graph_release(g);
}

static void check_out_of_memory(int i) {
  tt_graph *g = made(i), *loaded = NULL;
  int64_t at;
  for (at = 1; at < 10000; at++) {
    const int64_t failed = host.failed;
    tt_status s;
    host.fail_at = host.calls + at;
    host.fail_n = 1;
    s = tt_graph_save(c, g, path);
    if (!s) s = tt_graph_load(c, path, &loaded);
    host.fail_at = 0;
    if (host.failed == failed) break;
    assert_true(s == TT_OOM || !s);
    tt_graph_release(loaded);
    loaded = NULL;
  }
  assert_true(at > 1 && at < 10000);
  tt_graph_release(loaded);
  tt_graph_release(g);
}

static void test_out_of_memory(void** state) {
  (void)state;
  check_out_of_memory(0);
  check_out_of_memory(kTraining);
}

/* ---- hostile files ---- */

static char* file_bytes;
static size_t file_size;
static void read_file(void) {
  FILE* f = fopen(path, "rb");
  assert_non_null(f);
  fseek(f, 0, SEEK_END);
  file_size = (size_t)ftell(f);
  rewind(f);
  file_bytes = realloc(file_bytes, file_size + 4096);
  assert_int_equal(fread(file_bytes, 1, file_size, f), file_size);
  fclose(f);
}
static void write_bytes(const char* bytes, size_t n) {
  FILE* f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(bytes, 1, n, f), n);
  fclose(f);
}
/* The file with `from` replaced by `to` of the same length must be refused with this text. */
static void refused_at(int line, const char* from, const char* to, const char* message) {
  char* copy = malloc(file_size + 1);
  char* at;
  tt_graph* g;
  assert_int_equal(strlen(from), strlen(to));
  memcpy(copy, file_bytes, file_size);
  at = memmem(copy, file_size, from, strlen(from));
  if (!at) fail_msg("line %d: \"%s\" is not in the file", line, from);
  memcpy(at, to, strlen(to));
  write_bytes(copy, file_size);
  FAILS(tt_graph_load(c, path, &g), TT_FORMAT, message);
  assert_null(g);
  free(copy);
}
#define REFUSED(from, to, message) refused_at(__LINE__, from, to, message)

static void test_malformed(void** state) {
  const char* const metadata[] = {"format", "pt"};
  const tt_safetensors_save_opts with = {
      .set = TT_SAFETENSORS_SAVE_METADATA, .metadata = metadata, .n_metadata = 2};
  tt_graph *g = made(4), *loaded;
  (void)state;
  FAILS(tt_graph_load(c, "/nonexistent/x.ttg", &loaded), TT_IO, "cannot be opened");
  OK(tt_safetensors_save(c, path, NULL, NULL, 0, &with));
  FAILS(tt_graph_load(c, path, &loaded), TT_FORMAT, "no format \"ttg\"");
  OK(tt_graph_save(c, g, path));
  tt_graph_release(g);
  read_file();
  REFUSED("ttg 1", "ttg 2", "another version");
  REFUSED("node cumsum", "node cumsux", "there is no operator");
  REFUSED("storage input", "storage enput", "unknown role");
  REFUSED("float32 ", "float31 ", "unknown dtype");
  REFUSED("inputs [0]", "inputs [9]", "before it is made");
  REFUSED("inputs [0]", "inputs [-]", "expected an integer");
  REFUSED("outputs [", "outputs  ", "malformed");
  REFUSED("largest=b", "biggest=b", "another name");
  REFUSED("dim=i0", "dim=i4", "dim");
  REFUSED("[3,5,4]", "[3,9,4]", "leaves its storage");
  write_bytes(file_bytes, file_size);
  OK(tt_graph_load(c, path, &loaded));
  tt_graph_release(loaded);
}

/* The records of an optimizer and its schedulers. */
static void test_malformed_steps(void** state) {
  const tt_op* ops[64];
  tt_graph *g = made(kTraining), *loaded;
  tt_graph_info info;
  int64_t i;
  (void)state;
  OK(tt_graph_get_info(c, g, &info));
  assert_true(info.n_nodes <= 64);
  for (i = 0; i < info.n_nodes; i++) {
    tt_graph_node node;
    OK(tt_graph_get_node(c, g, i, &node));
    ops[i] = node.op;
  }
  OK(tt_graph_save(c, g, path));
  FAILS(tt_graph_load_with(c, path, ops, info.n_nodes, &loaded), TT_NOT_IMPLEMENTED,
        "only tt_graph_load reads them");
  tt_graph_release(g);
  read_file();
  REFUSED("optimizer AdamW 2 2", "optimizer AdamX 2 2", "no such optimizer");
  REFUSED("optimizer AdamW 2 2", "optimizer AdamW 3 2", "not all parameters");
  REFUSED("optimizer AdamW 2 2", "optimizer AdamW 2 3", "a group is missing");
  REFUSED("group 0 1 ", "group 0 3 ", "out of range");
  REFUSED(" StepLR ", " StepLX ", "no such scheduler");
  REFUSED("SequentialLR", "SequentialLX", "no such scheduler");
  REFUSED("\\u000astep 0 2 0 1", "\\u000astep 0 2 1 1", "out of range");
  REFUSED("\\u000astep 0 2 0 1", "\\u000astep 0 1 0 1", "out of range");
  REFUSED("\\u000aschedule 2", "\\u000aschedule 3", "out of range");
  REFUSED("\\u000aschedule 2", "\\u000ascheduel 2", "is missing");
  REFUSED("\"objects\"", "\"objexts\"", "are missing");
}

static uint32_t random_state;
static uint32_t dice(uint32_t n) {
  random_state = random_state * 1664525u + 1013904223u;
  return (uint32_t)((uint64_t)random_state * n >> 32);
}
static int is_digit(char x) { return x >= '0' && x <= '9'; }
/* Replaces one integer of the header. Returns the new size. */
static size_t replace_integer(char* bytes, size_t n, size_t header) {
  static const char* const kNumbers[] = {"0",
                                         "1",
                                         "2",
                                         "3",
                                         "5",
                                         "7",
                                         "8",
                                         "64",
                                         "100",
                                         "-1",
                                         "-2",
                                         "4294967295",
                                         "9223372036854775807",
                                         "1099511627776",
                                         "-9223372036854775808",
                                         "65536",
                                         "6",
                                         "12",
                                         "24",
                                         "4"};
  const char* new = kNumbers[dice(sizeof kNumbers / sizeof *kNumbers)];
  size_t at = 8 + dice((uint32_t)header), end, length = strlen(new);
  while (at < 8 + header && !is_digit(bytes[at])) at++;
  while (at > 8 && is_digit(bytes[at - 1])) at--;
  if (bytes[at - 1] == '-') at--;
  end = at + (bytes[at] == '-');
  while (end < 8 + header && is_digit(bytes[end])) end++;
  if (end >= 8 + header) return n;
  memmove(bytes + at + length, bytes + end, n - end);
  memcpy(bytes + at, new, length);
  header += length - (end - at);
  memcpy(bytes, &(int64_t){(int64_t)header}, 8);
  return n + length - (end - at);
}
/* Copies one short piece of the header over another. */
static void copy_piece(char* bytes, size_t header) {
  const size_t length = 1 + dice(12);
  if (header < 32) return;
  memmove(bytes + 8 + dice((uint32_t)(header - length)),
          bytes + 8 + dice((uint32_t)(header - length)), length);
}
static size_t mutate(char* bytes, size_t n) {
  int k, times = 1 + (int)dice(3);
  for (k = 0; k < times; k++) {
    int64_t header;
    memcpy(&header, bytes, 8);
    if (header <= 0 || (size_t)header + 8 > n) return n;
    switch (dice(8)) {
      case 0: bytes[dice((uint32_t)n)] = (char)dice(256); break;
      case 1: copy_piece(bytes, (size_t)header); break;
      case 2: n -= dice(2) ? 0 : dice((uint32_t)n); break;
      default: n = replace_integer(bytes, n, (size_t)header);
    }
    if (n < 8) return n;
  }
  return n;
}
/* What loads must run, or fail with a status. */
static int try_graph(void) {
  const tt_graph_optimize_opts all = {.set = TT_GRAPH_OPTIMIZE_PASSES,
                                      .passes = TT_PASS_DCE | TT_PASS_CSE | TT_PASS_FOLD};
  tt_graph *g, *folded;
  tt_plan* p;
  if (tt_graph_load(c, path, &g)) return 0;
  if (!tt_plan_new(c, g, NULL, &p)) {
    (void)tt_plan_run(c, p);
    tt_plan_release(p);
  }
  if (!tt_graph_optimize(c, g, &all, &folded)) tt_graph_release(folded);
  tt_graph_release(g);
  return 1;
}

static void test_mutated(void** state) {
  const char* const wanted = getenv("TT_FUZZ");
  const int usual = SLOW_BUILD ? 400 : 2000;
  const int n = wanted ? atoi(wanted) : usual;
  const char* const first = getenv("TT_FUZZ_SEED");
  int i, k, accepted = 0;
  char* copy;
  (void)state;
  OK(tt_set_memory_limit(c, (int64_t)64 << 20));
  for (i = 0; i < kNumGraphs; i++) {
    tt_graph* g = made(i);
    OK(tt_graph_save(c, g, path));
    tt_graph_release(g);
    read_file();
    copy = malloc(file_size + 4096);
    for (k = 0; k < n / kNumGraphs; k++) {
      random_state =
          (uint32_t)(k * kNumGraphs + i) * 2654435761u + (first ? (uint32_t)atoi(first) : 0);
      memcpy(copy, file_bytes, file_size);
      write_bytes(copy, mutate(copy, file_size));
      OK(tt_scope_push(c));
      accepted += try_graph();
      OK(tt_scope_pop(c, NULL, 0));
    }
    free(copy);
  }
  print_message("%d mutated files, %d are graphs\n", n / kNumGraphs * kNumGraphs, accepted);
  assert_true(accepted > 0 && accepted < n);
  free(file_bytes);
  file_bytes = NULL;
}

/* TT_TIMES=1: how long loading takes. */
static void test_time(void** state) {
  struct timespec a, b;
  double best = 1e9;
  int i, k;
  (void)state;
  if (!getenv("TT_TIMES")) return;
  for (i = 0; i < kNumGraphs; i++) {
    tt_graph* g = made(i);
    tt_graph_info info;
    OK(tt_graph_get_info(c, g, &info));
    OK(tt_graph_save(c, g, path));
    tt_graph_release(g);
    for (k = 0; k < 50; k++) {
      clock_gettime(CLOCK_MONOTONIC, &a);
      OK(tt_graph_load(c, path, &g));
      clock_gettime(CLOCK_MONOTONIC, &b);
      tt_graph_release(g);
      if ((double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6 < best)
        best = (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6;
    }
    print_message("%d nodes: %.3f ms\n", (int)info.n_nodes, best);
    best = 1e9;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCOPED(test_round_trip),        SCOPED(test_positions),     SCOPED(test_is_a_file_of_tensors),
      SCOPED(test_list_of_operators), SCOPED(test_out_of_memory), SCOPED(test_malformed),
      SCOPED(test_malformed_steps),   SCOPED(test_mutated),       SCOPED(test_time)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
