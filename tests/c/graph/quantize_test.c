/* Quantised graphs: ranges from samples, integers in plans and in exported C by every compiler at
   hand, and what is refused. */
#include "harness.h"

#include <float.h>
#include <math.h>
#include <unistd.h>

enum { kRuns = 3, kMaxOut = 4096 };

static char folder[] = "/tmp/tt_quantize_XXXXXX";
static int set_up(void** state) {
  (void)state;
  return mkdtemp(folder) ? 0 : -1;
}
static int tear_down(void** state) {
  char text[100];
  (void)state;
  snprintf(text, sizeof text, "rm -r %s", folder);
  if (system(text)) printf("%s stays: there is no rm\n", folder); /* as on Windows */
  return 0;
}

static tt_tensor* waves(const int64_t* shape, int64_t ndim, double phase) {
  int64_t n = 1, i;
  float* data;
  tt_tensor* t;
  for (i = 0; i < ndim; i++) n *= shape[i];
  data = malloc((size_t)n * sizeof *data);
  for (i = 0; i < n; i++) data[i] = (float)sin(0.7 * (double)i + phase);
  OK(tt_tensor_from_data(c, data, TT_F32, shape, ndim, &t));
  free(data);
  return t;
}

/* Two convolutions, one of them with groups, pooling and a linear layer. */
static tt_graph* network(tt_tensor* x) {
  const tt_conv2d_opts around = {
      .set = TT_CONV2D_PADDING, .padding = (int64_t[]){1}, .n_padding = 1};
  const tt_conv2d_opts split = {.set = TT_CONV2D_GROUPS | TT_CONV2D_STRIDE,
                                .groups = 2,
                                .stride = (int64_t[]){2, 1},
                                .n_stride = 2};
  tt_tensor *w1 = waves(SHAPE(4, 1, 3, 3), 1), *b1 = waves(SHAPE(4), 2);
  tt_tensor *w2 = waves(SHAPE(6, 2, 2, 3), 3), *w3 = waves(SHAPE(10, 24), 4);
  tt_tensor *b3 = waves(SHAPE(10), 5), *h;
  tt_graph* g;
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_conv2d(c, x, w1, b1, &around, &h));
  OK(tt_relu_(c, h));
  OK(tt_max_pool2d(c, h, (int64_t[]){2}, 1, NULL, &h));
  OK(tt_conv2d(c, h, w2, NULL, &split, &h));
  OK(tt_relu(c, h, &h));
  OK(tt_flatten(c, h, &(tt_flatten_opts){.set = TT_FLATTEN_START_DIM, .start_dim = 1}, &h));
  OK(tt_linear(c, h, w3, b3, &h));
  OK(tt_capture_end(c, LIST(h), &g));
  return g;
}

static int count(const tt_graph* g, const char* name) {
  tt_graph_info info;
  tt_graph_node node;
  int64_t i;
  int n = 0;
  OK(tt_graph_get_info(c, g, &info));
  for (i = 0; i < info.n_nodes; i++) {
    OK(tt_graph_get_node(c, g, i, &node));
    n += strcmp(node.name, name) == 0;
  }
  return n;
}

static void run_plan(const tt_graph* g, const tt_tensor* x, float* out, int64_t n) {
  tt_plan* p;
  tt_tensor* slot;
  OK(tt_scope_push(c));
  OK(tt_plan_new(c, g, NULL, &p));
  OK(tt_plan_slot(c, p, 0, 0, &slot));
  OK(tt_copy_(c, slot, x));
  OK(tt_plan_run(c, p));
  OK(tt_plan_slot(c, p, 1, 0, &slot));
  OK(tt_tensor_read(c, slot, out, n * 4));
  OK(tt_scope_pop(c, NULL, 0));
  tt_plan_release(p);
}

/* ---- exported C ---- */

typedef struct Target {
  const char *compiler, *flags, *runner; /* runner: NULL if the program is only compiled */
} Target;

static int at_hand(const char* command) {
  char text[200];
  snprintf(text, sizeof text, "command -v %.*s >/dev/null", (int)strcspn(command, " "), command);
  return system(text) == 0;
}

/* The exported function called with x, by a program that prints the bytes of its output. */
static void write_program(const tt_tensor* x, int64_t n_out, int blob) {
  const float* data = tt_tensor_data(x);
  int64_t i;
  char path[100];
  FILE* f;
  snprintf(path, sizeof path, "%s/main.c", folder);
  f = fopen(path, "w");
  assert_non_null(f);
  fprintf(f, "#include \"net.h\"\n#include <stdio.h>\nstatic const float x[] = {");
  for (i = 0; i < tt_tensor_numel(x); i++) fprintf(f, "%.9ef,\n", (double)data[i]);
  fprintf(f, "};\nstatic float y[%d];\n", (int)n_out);
  fprintf(f, "int main(void) {\n");
  if (blob) {
    fprintf(f, "  static union { double d; char bytes[net_BLOB_BYTES]; } blob;\n");
    fprintf(f, "  FILE *f = fopen(\"%s/net.bin\", \"rb\");\n", folder);
    fprintf(f,
            "  if (!f || fread(blob.bytes, 1, sizeof blob.bytes, f) != net_BLOB_BYTES) "
            "return 1;\n  fclose(f);\n");
  }
  fprintf(f, "  net(%sx, y);\n  return fwrite(y, 4, %d, stdout) != %d;\n}\n",
          blob ? "blob.bytes, " : "", (int)n_out, (int)n_out);
  fclose(f);
}

static void check_target(const Target* t, const float* want, int64_t n) {
  float y[kMaxOut];
  char text[500];
  FILE* f;
  int64_t i;
  if (!at_hand(t->compiler) || (t->runner && !at_hand(t->runner))) return;
  snprintf(text, sizeof text,
           "cd %s && %s -std=c99 -pedantic -Wall -Wextra -Werror %s net.c %s %s 2>&1", folder,
           t->compiler, t->flags, t->runner ? "main.c" : "", t->runner ? "-o main -lm" : "-c");
  if (system(text)) fail_msg("%s fails", text);
  if (!t->runner) return;
  snprintf(text, sizeof text, "cd %s && %s ./main", folder, t->runner);
  f = popen(text, "r");
  assert_non_null(f);
  assert_int_equal(fread(y, 4, (size_t)n, f), n);
  assert_int_equal(pclose(f), 0);
  for (i = 0; i < n; i++)
    if (y[i] != want[i] && !(isnan(y[i]) && isnan(want[i])) &&
        !(fabsf(y[i] - want[i]) <= 1e-5f * fmaxf(1, fabsf(want[i]))))
      fail_msg("%s %s: [%d] is %g, not %g", t->compiler, t->flags, (int)i, (double)y[i],
               (double)want[i]);
}

/* Whether the compiler makes 32-bit programs of the host. */
static int has_m32(void) {
  return system(
             "echo '#include <math.h>\nint main(void) { return 0; }' | "
             "gcc -m32 -x c - -o /dev/null 2>/dev/null") == 0;
}

static void check_targets(const tt_graph* g, const tt_tensor* x, const float* want, int64_t n) {
  static const Target targets[] = {
      {"gcc", "-O1 -fsanitize=undefined -fno-sanitize-recover=all", "env"},
      {"clang", "-O1 -Wno-unused-command-line-argument", "env"},
      {"riscv64-linux-gnu-gcc", "-O1 -static", "qemu-riscv64"},
      {"arm-linux-gnueabihf-gcc", "-O1 -static", "qemu-arm"},
      {"aarch64-linux-gnu-gcc", "-O1 -static", "qemu-aarch64"},
      {"arm-none-eabi-gcc", "-Os -mcpu=cortex-m7 -mthumb", NULL},
  };
  static const Target narrow = {"gcc", "-m32 -msse2 -mfpmath=sse -O1", "env"};
  static const Target i686 = {"i686-linux-gnu-gcc", "-msse2 -mfpmath=sse -O1 -static", "qemu-i386"};
  size_t i;
  OK(tt_graph_export_c(c, g, folder, "net"));
  write_program(x, n, 0);
  for (i = 0; i < sizeof targets / sizeof *targets; i++) check_target(&targets[i], want, n);
  check_target(has_m32() ? &narrow : &i686, want, n);
}

static void check_blob(const tt_graph* g, const tt_tensor* x, const float* want, int64_t n) {
  const tt_graph_export_c_opts opts = {.set = TT_GRAPH_EXPORT_C_BLOB, .blob = 1};
  const Target host_target = {"gcc", "-O1", "env"};
  OK(tt_graph_export_c_with(c, g, folder, "net", &opts));
  write_program(x, n, 1);
  check_target(&host_target, want, n);
}

/* ---- tests ---- */

static void test_quantized(void** state) {
  tt_graph_quantize_opts opts = {.set = TT_GRAPH_QUANTIZE_HISTOGRAM | TT_GRAPH_QUANTIZE_PER_ROW};
  const tt_tensor* samples[kRuns];
  tt_tensor* x = waves(SHAPE(2, 1, 8, 8), 0);
  tt_graph *g = network(x), *q;
  float want[20], got[20];
  double scale = 0;
  int i, how;
  (void)state;
  for (i = 0; i < kRuns; i++) samples[i] = waves(SHAPE(2, 1, 8, 8), 0.3 * i);
  run_plan(g, x, want, 20);
  for (i = 0; i < 20; i++) scale = fmax(scale, fabs((double)want[i]));
  for (how = 0; how < 3; how++) {
    opts.histogram = how == 1;
    opts.per_row = how == 2;
    OK(tt_graph_quantize(c, g, samples, kRuns, &opts, &q));
    assert_int_equal(count(q, "quantized_conv2d"), 2);
    assert_int_equal(count(q, "quantized_linear"), 1);
    assert_int_equal(count(q, "convolution") + count(q, "linear_rows"), 0);
    run_plan(q, x, got, 20);
    for (i = 0; i < 20; i++)
      if (fabs((double)(got[i] - want[i])) > 0.03 * scale)
        fail_msg("way %d: [%d] is %g, not %g", how, i, (double)got[i], (double)want[i]);
    if (!SLOW_BUILD && how != 1) check_targets(q, x, got, 20);
    if (!SLOW_BUILD && how == 0) check_blob(q, x, got, 20);
    tt_graph_release(q);
  }
  tt_graph_release(g);
}

/* Rows of three dimensions, each with a range of its own. */
static void test_rows(void** state) {
  const tt_graph_quantize_opts opts = {.set = TT_GRAPH_QUANTIZE_PER_ROW, .per_row = 1};
  tt_tensor *x = waves(SHAPE(2, 3, 64), 0), *w = waves(SHAPE(5, 64), 1), *y;
  float got[30], *data = tt_tensor_data(x);
  tt_graph *g, *q;
  int i;
  (void)state;
  for (i = 0; i < 64; i++) data[i] *= 1000;
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_linear(c, x, w, NULL, &y));
  OK(tt_capture_end(c, LIST(y), &g));
  OK(tt_graph_quantize(c, g, NULL, 0, &opts, &q));
  run_plan(q, x, got, 30);
  for (i = 0; i < 30; i++) {
    const float want = ((const float*)tt_tensor_data(y))[i];
    if (fabsf(got[i] - want) > (i < 5 ? 300 : 0.3f))
      fail_msg("[%d] is %g, not %g", i, (double)got[i], (double)want);
  }
  if (!SLOW_BUILD) check_targets(q, x, got, 30);
  tt_graph_release(q);
  tt_graph_release(g);
}

/* 1,000 in one sample of many: the histogram's range leaves it out. */
static void test_histogram(void** state) {
  tt_graph_quantize_opts opts = {.set = TT_GRAPH_QUANTIZE_HISTOGRAM};
  tt_tensor *x = waves(SHAPE(400, 100), 0), *w = waves(SHAPE(2, 100), 1), *y;
  float got[800];
  double error[2] = {0, 0};
  const float* want;
  tt_graph *g, *q;
  int i, k;
  (void)state;
  OK(tt_mul_f64(c, x, 30, &x));
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_linear(c, x, w, NULL, &y));
  OK(tt_capture_end(c, LIST(y), &g));
  want = tt_tensor_data(y);
  ((float*)tt_tensor_data(x))[0] = 1000;
  for (k = 0; k < 2; k++) {
    opts.histogram = k;
    OK(tt_graph_quantize(c, g, LIST(x), &opts, &q));
    run_plan(q, x, got, 800);
    for (i = 2; i < 800; i++) error[k] += fabs((double)(got[i] - want[i]));
    tt_graph_release(q);
  }
  if (!(error[1] < 0.7 * error[0])) fail_msg("errors: %g by range, %g", error[0], error[1]);
  tt_graph_release(g);
}

/* Recurrent layers and a transposed convolution, in float32. */
static void test_sequence(void** state) {
  const tt_nn_lstm_opts lstm = {
      .set = TT_NN_LSTM_NUM_LAYERS | TT_NN_LSTM_BIDIRECTIONAL, .num_layers = 2, .bidirectional = 1};
  const int64_t window = 3;
  const tt_nn_conv_transpose1d_opts step = {
      .set = TT_NN_CONV_TRANSPOSE1D_STRIDE, .stride = (int64_t[]){2}, .n_stride = 1};
  tt_tensor *x = waves(SHAPE(5, 2, 3), 0), *outs[3], *y;
  tt_module *layer, *gru, *up;
  tt_graph* g;
  int64_t n, numel;
  int32_t before;
  float* want;
  (void)state;
  OK(tt_set_grad_enabled(c, 0, &before));
  OK(tt_nn_lstm(c, 3, 4, &lstm, &layer));
  OK(tt_nn_gru(c, 8, 6, NULL, &gru));
  OK(tt_nn_conv_transpose1d(c, 2, 3, &window, 1, &step, &up));
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_module_forward(c, layer, LIST(x), outs, 3, &n));
  y = outs[0];
  OK(tt_module_forward(c, gru, LIST(y), outs, 3, &n));
  OK(tt_module_call(c, up, outs[0], &y));
  OK(tt_capture_end(c, LIST(y), &g));
  numel = tt_tensor_numel(y);
  assert_true(numel <= kMaxOut);
  want = malloc((size_t)numel * 4);
  OK(tt_tensor_read(c, y, want, numel * 4));
  if (!SLOW_BUILD) check_targets(g, x, want, numel);
  if (!SLOW_BUILD) check_blob(g, x, want, numel);
  free(want);
  tt_graph_release(g);
  tt_module_release(layer);
  tt_module_release(gru);
  tt_module_release(up);
  OK(tt_set_grad_enabled(c, before, NULL));
}

/* ---- weights in blocks ---- */

/* blockwise_linear of 1 to 9 rows beside the sum of exact products in double precision: a product
   is rounded once, and so is each addition of a chain, of which none has more than k / 4 + 12
   (4 lanes, their sum, the bias), and none of the unpacked matrix more than k + 12. One row of q4_0
   is split into digits, the last run of 16 blocks with zeros behind; numbers lose less by that. */
static void check_rows(const tt_tensor* packed, int format, const float* numbers, int64_t n,
                       int64_t k) {
  const tt_tensor* bias = waves(SHAPE(n), 1);
  int64_t m, i, j, l;
  for (m = 1; m <= 9; m++) {
    tt_tensor *x = waves(SHAPE(m, k), (double)m), *y;
    const float *in = tt_tensor_data(x), *got;
    const double rounding = (double)((m > 8 ? k : k / 4) + 12) * 0x1p-24;
    OK(tt_blockwise_linear(c, x, packed, bias, format, &y));
    got = tt_tensor_data(y);
    for (i = 0; i < m; i++)
      for (j = 0; j < n; j++) {
        double sum = ((const float*)tt_tensor_data(bias))[j], size = fabs(sum);
        for (l = 0; l < k; l++) {
          const double product = (double)in[i * k + l] * (double)numbers[j * k + l];
          sum += product;
          size += fabs(product);
        }
        if (!(fabs((double)got[i * n + j] - sum) <= rounding * size))
          fail_msg("format %d, %d rows: [%d,%d] is %g, not %g", format, (int)m, (int)i, (int)j,
                   (double)got[i * n + j], sum);
      }
  }
}
static void test_blocks(void** state) {
  const int64_t k = 1248, n = 37;
  tt_tensor *w = waves(SHAPE(n, k), 0), *packed, *exact;
  int format;
  int64_t i;
  (void)state;
  for (i = 0; i < n * k; i++) ((float*)tt_tensor_data(w))[i] *= (float)(1 + i / 32 % 7);
  for (format = 0; format < 2; format++) {
    /* By the largest number: half a step, a whole one beyond the seventh of q4_0; the scale's
       rounding. */
    const double worst = (format ? 1.0 / 8 : 1.0 / 254) + 0x1p-11;
    const float* numbers;
    OK(tt_quantize_blockwise(c, w, format, &packed));
    OK(tt_dequantize_blockwise(c, packed, format, &exact));
    numbers = tt_tensor_data(exact);
    for (i = 0; i < n * k; i++) {
      const float want = ((const float*)tt_tensor_data(w))[i];
      const double bound = worst * (1 + (double)(i / 32 % 7));
      if (fabs((double)(numbers[i] - want)) > bound)
        fail_msg("format %d: [%d] is %g, not %g", format, (int)i, (double)numbers[i], (double)want);
    }
    check_rows(packed, format, numbers, n, k);
  }
}

/* The formats that GGUF files have besides, and where their float16 numbers are. */
typedef struct Format {
  int id, items, bytes, halves[2];
} Format;
static const Format kFormats[] = {
    {TT_BLOCKFORMAT_Q4_1, 32, 20, {0, 2}},       {TT_BLOCKFORMAT_Q5_0, 32, 22, {0, 0}},
    {TT_BLOCKFORMAT_Q5_1, 32, 24, {0, 2}},       {TT_BLOCKFORMAT_Q2_K, 256, 84, {80, 82}},
    {TT_BLOCKFORMAT_Q3_K, 256, 110, {108, 108}}, {TT_BLOCKFORMAT_Q4_K, 256, 144, {0, 2}},
    {TT_BLOCKFORMAT_Q5_K, 256, 176, {0, 2}},     {TT_BLOCKFORMAT_Q6_K, 256, 210, {208, 208}},
    {TT_BLOCKFORMAT_IQ4_NL, 32, 18, {0, 0}},     {TT_BLOCKFORMAT_IQ4_XS, 256, 136, {0, 0}},
    {TT_BLOCKFORMAT_MXFP4, 32, 17, {0, 0}},
};
enum { kNumFormats = sizeof kFormats / sizeof *kFormats };
enum { kColumns = 18, kSmall = 27, kLarge = 4 }; /* blocks of a row, enough for digits */
typedef struct Blocks {
  uint8_t bytes[kColumns * kLarge * 210];
} Blocks;
static int blocks_of_row(const Format* f) { return f->items == 32 ? kSmall : kLarge; }

/* kColumns rows of any bytes but for the float16 numbers, whose upper bytes, sign and exponent, are
   small. */
static void make_blocks(tt_ctx* of, const Format* f, Blocks* b, uint64_t seed, tt_tensor** packed) {
  const int row = blocks_of_row(f) * f->bytes;
  uint64_t random = seed;
  int i, h;
  assert_true((size_t)(kColumns * row) <= sizeof b->bytes);
  for (i = 0; i < kColumns * row; i++) {
    random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
    b->bytes[i] = (uint8_t)(random >> 33);
  }
  for (i = 0; i < kColumns * row; i += f->bytes)
    for (h = 0; h < 2; h++) {
      uint8_t* upper = &b->bytes[i + f->halves[h] + 1];
      *upper = (uint8_t)(0x20 + (*upper & 0x8f));
      if (f->id == TT_BLOCKFORMAT_MXFP4) b->bytes[i] = (uint8_t)(120 + b->bytes[i] % 16);
    }
  OK(tt_tensor_from_data(of, b->bytes, TT_U8, SHAPE(kColumns, row), packed));
}
static void test_formats(void** state) {
  Blocks bytes;
  size_t f;
  (void)state;
  for (f = 0; f < kNumFormats; f++) {
    const Format* format = &kFormats[f];
    const int64_t k = blocks_of_row(format) * format->items;
    tt_tensor *packed, *exact, *refused;
    make_blocks(c, format, &bytes, f + 1, &packed);
    OK(tt_dequantize_blockwise(c, packed, format->id, &exact));
    assert_int_equal(tt_tensor_shape(exact)[1], k);
    check_rows(packed, format->id, tt_tensor_data(exact), kColumns, k);
    FAILS(tt_quantize_blockwise(c, exact, format->id, &refused), TT_INVALID_ARG, "unpacked");
    FAILS(tt_blockwise_linear(c, waves(SHAPE(1, 32 * 7), 0), packed, NULL, format->id, &refused),
          TT_SHAPE, format->items == 32 ? "weight.shape[1]" : "multiple of 256");
  }
}

/* The greatest error of one row times a packed matrix, of the sum of |products|; infinities and NaN
   must be those of the sum. Where products are beyond float32 although their sum is not, infinities
   and NaN are allowed, too. */
static double row_error(tt_ctx* of, const float* in, const tt_tensor* packed, int format,
                        const float* numbers, int64_t n, int64_t k) {
  double worst = 0;
  int64_t j, l;
  tt_tensor *x, *y;
  float* got;
  OK(tt_tensor_from_data(of, in, TT_F32, SHAPE(1, k), &x));
  OK(tt_blockwise_linear(of, x, packed, NULL, format, &y));
  got = tt_tensor_data(y);
  for (j = 0; j < n; j++) {
    double sum = 0, size = 0;
    for (l = 0; l < k; l++) {
      const double product = (double)in[l] * (double)numbers[j * k + l];
      sum += product;
      size += fabs(product);
    }
    if (isnan(sum) || isinf(sum)) {
      if (isnan(sum) ? !isnan(got[j]) : (double)got[j] != sum)
        fail_msg("[%d] is %g, not %g", (int)j, (double)got[j], sum);
    } else if (size > 0 && (size <= (double)FLT_MAX || isfinite(got[j]))) {
      worst = fmax(worst, fabs((double)got[j] - sum) / size);
    }
  }
  tt_tensor_release(x);
  tt_tensor_release(y);
  return worst;
}

/* A ctx of one thread that uses kernels of an instruction set; NULL if the processor lacks it. */
static tt_ctx* ctx_of_isa(int32_t isa, tt_runtime** rt) {
  const tt_runtime_opts opts = {.struct_size = sizeof opts, .threads = 1, .isa = isa};
  tt_ctx* own = NULL;
  if (tt_runtime_new(&opts, rt) != TT_OK) return NULL;
  assert_int_equal(tt_ctx_new(*rt, &own), TT_OK);
  OK(tt_scope_push(own));
  return own;
}
static void release_ctx(tt_ctx* own, tt_runtime* rt) {
  OK(tt_scope_pop(own, NULL, 0));
  tt_ctx_release(own);
  tt_runtime_release(rt);
}

/* Rows whose numbers are far apart in a block, beyond what digits express, or none. */
static const float kSpecial[] = {1,      100,    -5e9f,  1000,    -3e7f,    1e30f,     -1e35f,
                                 -1e37f, 1e-20f, 1e-27f, -1e-40f, INFINITY, -INFINITY, NAN};
enum { kNumSpecial = sizeof kSpecial / sizeof *kSpecial };
static double special_row(size_t s, float* in, int64_t k) {
  const double scale = fabs((double)kSpecial[s]) < 1e-19 ? (double)kSpecial[s] : 1;
  int64_t i;
  for (i = 0; i < k; i++) in[i] = (float)(scale * cos(0.3 * (double)i));
  for (i = 96; i < 128; i++) in[i] = 0;
  in[5] = kSpecial[s];
  in[k - 1] = kSpecial[s];
  return scale;
}

/* One row of q4_0 on each instruction set. */
static void test_digits(void** state) {
  enum { kRows = 21, kTerms = 832 };
  static float in[kTerms], numbers[kRows * kTerms];
  int32_t isa;
  size_t s;
  int64_t i;
  (void)state;
  for (isa = 1; isa <= 3; isa++) {
    tt_tensor *w, *packed, *exact;
    tt_runtime* rt;
    tt_ctx* own = ctx_of_isa(isa, &rt);
    if (!own) continue;
    for (i = 0; i < kRows * kTerms; i++) numbers[i] = (float)sin(0.7 * (double)i);
    OK(tt_tensor_from_data(own, numbers, TT_F32, SHAPE(kRows, kTerms), &w));
    OK(tt_quantize_blockwise(own, w, TT_BLOCKFORMAT_Q4_0, &packed));
    OK(tt_dequantize_blockwise(own, packed, TT_BLOCKFORMAT_Q4_0, &exact));
    OK(tt_tensor_read(own, exact, numbers, (int64_t)sizeof numbers));
    for (s = 0; s < kNumSpecial; s++) {
      const double scale = special_row(s, in, kTerms);
      const double error = row_error(own, in, packed, TT_BLOCKFORMAT_Q4_0, numbers, kRows, kTerms);
      if (!(error <= (fabs(scale) > 1e-37 ? 16 * 0x1p-24 : 0.01))) /* else subnormal */
        fail_msg("isa %d, %g: error %g", (int)isa, (double)kSpecial[s], error);
    }
    /* Integers times powers of two are exact. */
    for (i = 0; i < kTerms; i++) in[i] = (float)((i * 37 % 31 - 15) * (i / 32 % 2 ? 1 : 64));
    for (i = 0; i < kRows * kTerms; i++) numbers[i] = (float)(i * 11 % 16 - 8);
    OK(tt_tensor_from_data(own, numbers, TT_F32, SHAPE(kRows, kTerms), &w));
    OK(tt_quantize_blockwise(own, w, TT_BLOCKFORMAT_Q4_0, &packed));
    assert_true(row_error(own, in, packed, TT_BLOCKFORMAT_Q4_0, numbers, kRows, kTerms) == 0);
    release_ctx(own, rt);
  }
}

/* One row of each other format. A number is a product and a shift, whose errors do not cancel, so
   the bound is that of test_blocks. */
static void test_digits_of_formats(void** state) {
  static float in[kLarge * 256], numbers[kColumns * kLarge * 256];
  Blocks bytes;
  int32_t isa;
  size_t f, s;
  int64_t i;
  (void)state;
  for (isa = 1; isa <= 3; isa++) {
    tt_runtime* rt;
    tt_ctx* own = ctx_of_isa(isa, &rt);
    if (!own) continue;
    for (f = 0; f < kNumFormats; f++) {
      const Format* format = &kFormats[f];
      const int64_t k = blocks_of_row(format) * format->items;
      const int row = blocks_of_row(format) * format->bytes;
      tt_tensor *packed, *exact;
      make_blocks(own, format, &bytes, f + 7, &packed);
      OK(tt_dequantize_blockwise(own, packed, format->id, &exact));
      OK(tt_tensor_read(own, exact, numbers, kColumns * k * 4));
      for (s = 0; s < kNumSpecial; s++) {
        const double scale = special_row(s, in, k);
        const double bound = fabs(scale) > 1e-30 ? (double)(k / 4 + 12) * 0x1p-24 : 0.01;
        const double error = row_error(own, in, packed, format->id, numbers, kColumns, k);
        if (!(error <= bound))
          fail_msg("isa %d, format %d, %g: error %g", (int)isa, format->id, (double)kSpecial[s],
                   error);
      }
      /* The sum of a group is beyond float32, that of its products is not. */
      for (i = 0; i < kColumns * row; i += format->bytes) {
        bytes.bytes[i + format->halves[0] + 1] &= 0x80;
        bytes.bytes[i + format->halves[1] + 1] &= 0x80;
        if (format->id == TT_BLOCKFORMAT_MXFP4) bytes.bytes[i] = 100;
      }
      OK(tt_tensor_from_data(own, bytes.bytes, TT_U8, SHAPE(kColumns, row), &packed));
      OK(tt_dequantize_blockwise(own, packed, format->id, &exact));
      OK(tt_tensor_read(own, exact, numbers, kColumns * k * 4));
      for (i = 0; i < k; i++) in[i] = i < 32 ? 3e37f : 0;
      if (!(row_error(own, in, packed, format->id, numbers, kColumns, k) < 1e-5))
        fail_msg("isa %d, format %d: large numbers", (int)isa, format->id);
    }
    release_ctx(own, rt);
  }
}

static int byte_as(tt_dtype dtype, uint8_t byte) {
  if (dtype == TT_U8) return byte;
  return (int8_t)byte;
}
/* int_mm of matrices whose columns are in memory, as those of a weight are, or whose rows are, of
   signed and unsigned bytes, on each instruction set. Few rows read the columns where they are. */
static void test_bytes(void** state) {
  enum { kMaxRows = 14, kMaxColumns = 37, kMaxTerms = 200 };
  static const tt_dtype dtypes[] = {TT_I8, TT_U8};
  static const int64_t shapes[][3] = {{1, 37, 64}, {5, 1, 100},   {11, 33, 200},
                                      {4, 32, 63}, {13, 32, 192}, {14, 37, 131}};
  static uint8_t a[kMaxRows * kMaxTerms], b[2][kMaxColumns * kMaxTerms];
  int32_t isa;
  size_t s;
  (void)state;
  for (isa = 1; isa <= 3; isa++) {
    tt_runtime* rt;
    tt_ctx* own = ctx_of_isa(isa, &rt);
    if (!own) continue;
    for (s = 0; s < 4 * sizeof shapes / sizeof *shapes; s++) {
      const tt_dtype of_a = dtypes[s % 2], of_b = dtypes[s / 2 % 2];
      const int64_t m = shapes[s / 4][0], n = shapes[s / 4][1], k = shapes[s / 4][2];
      tt_tensor *x, *w[2], *columns, *y;
      int64_t i, j, l, way;
      for (i = 0; i < m * k; i++) a[i] = (uint8_t)(i * 89 + 31 + (int64_t)s);
      for (j = 0; j < n; j++)
        for (l = 0; l < k; l++) b[0][j * k + l] = b[1][l * n + j] = (uint8_t)(j * 57 + l * 113 + 5);
      OK(tt_tensor_from_data(own, a, of_a, SHAPE(m, k), &x));
      OK(tt_tensor_from_data(own, b[0], of_b, SHAPE(n, k), &columns));
      OK(tt_transpose(own, columns, 0, 1, &w[0]));
      OK(tt_tensor_from_data(own, b[1], of_b, SHAPE(k, n), &w[1]));
      for (way = 0; way < 2; way++) {
        OK(tt_int_mm(own, x, w[way], &y));
        for (i = 0; i < m; i++)
          for (j = 0; j < n; j++) {
            int32_t sum = 0;
            for (l = 0; l < k; l++) {
              sum += byte_as(of_a, a[i * k + l]) * byte_as(of_b, b[0][j * k + l]);
            }
            assert_int_equal(((const int32_t*)tt_tensor_data(y))[i * n + j], sum);
          }
      }
    }
    release_ctx(own, rt);
  }
}

/* Rows of no block give the bias. */
static void test_no_blocks(void** state) {
  tt_tensor *w, *bias = waves(SHAPE(5), 1), *packed, *x, *y;
  int format;
  int64_t m;
  (void)state;
  OK(tt_tensor_from_data(c, NULL, TT_F32, SHAPE(5, 0), &w));
  for (format = 0; format < 2; format++) {
    OK(tt_quantize_blockwise(c, w, format, &packed));
    for (m = 1; m <= 9; m++) {
      OK(tt_tensor_from_data(c, NULL, TT_F32, SHAPE(m, 0), &x));
      OK(tt_blockwise_linear(c, x, packed, bias, format, &y));
      assert_memory_equal((float*)tt_tensor_data(y) + 5 * (m - 1), tt_tensor_data(bias), 20);
    }
  }
}

/* An embedding and two linear layers with packed weights: a plan, a plan of the graph from a file
   and the exported C give the eager results. */
static void test_block_graph(void** state) {
  tt_tensor *table = waves(SHAPE(10, 64), 0), *w1 = waves(SHAPE(96, 64), 1), *w2, *h, *y;
  tt_tensor* packed[3];
  tt_tensor* x = waves(SHAPE(3, 64), 2);
  const int64_t places[3] = {9, 0, 4};
  tt_tensor* index;
  float want[60], got[60];
  char path[100];
  tt_graph *g, *loaded;
  (void)state;
  w2 = waves(SHAPE(20, 96), 3);
  OK(tt_tensor_from_data(c, places, TT_I64, SHAPE(3), &index));
  OK(tt_quantize_blockwise(c, table, TT_BLOCKFORMAT_Q8_0, &packed[0]));
  OK(tt_quantize_blockwise(c, w1, TT_BLOCKFORMAT_Q4_0, &packed[1]));
  OK(tt_quantize_blockwise(c, w2, TT_BLOCKFORMAT_Q8_0, &packed[2]));
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_blockwise_embedding(c, packed[0], index, TT_BLOCKFORMAT_Q8_0, &h));
  OK(tt_add(c, h, x, &h));
  OK(tt_blockwise_linear(c, h, packed[1], NULL, TT_BLOCKFORMAT_Q4_0, &h));
  OK(tt_relu(c, h, &h));
  OK(tt_blockwise_linear(c, h, packed[2], NULL, TT_BLOCKFORMAT_Q8_0, &y));
  OK(tt_capture_end(c, LIST(y), &g));
  OK(tt_tensor_read(c, y, want, sizeof want));
  run_plan(g, x, got, 60);
  assert_memory_equal(got, want, sizeof want);
  snprintf(path, sizeof path, "%s/net.ttg", folder);
  OK(tt_graph_save(c, g, path));
  OK(tt_graph_load(c, path, &loaded));
  run_plan(loaded, x, got, 60);
  assert_memory_equal(got, want, sizeof want);
  if (!SLOW_BUILD) check_targets(loaded, x, want, 60);
  tt_graph_release(loaded);
  tt_graph_release(g);
}

/* Blocks that the exported C packs unpack to the same numbers: halves of steps, zeros, scales below
   and beyond those of float16, numbers whose scale has no inverse. */
static void test_packs_blocks(void** state) {
  const float ends[] = {0, 1e-4f, 3e-6f, 1e-9f, 1e-40f, 65504, 8e6f, 1e38f};
  enum { kEnds = sizeof ends / sizeof *ends, kN = 32 * 2 * kEnds };
  tt_tensor *x = waves(SHAPE(kEnds, 64), 0), *packed, *a, *b, *y;
  float* data = tt_tensor_data(x);
  float got[2 * kN];
  tt_graph* g;
  int i;
  (void)state;
  for (i = 0; i < kN; i++) {
    const float step = (float)(i % 32 * 2 + 1) / 254;
    if (i / 32 % 2) {
      data[i] = i % 32 == 31 ? 1 : step;
      if (i % 3 == 0) data[i] = -data[i];
    }
    data[i] *= ends[i / 64];
  }
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_quantize_blockwise(c, x, TT_BLOCKFORMAT_Q8_0, &packed));
  OK(tt_dequantize_blockwise(c, packed, TT_BLOCKFORMAT_Q8_0, &a));
  OK(tt_quantize_blockwise(c, x, TT_BLOCKFORMAT_Q4_0, &packed));
  OK(tt_dequantize_blockwise(c, packed, TT_BLOCKFORMAT_Q4_0, &b));
  OK(tt_cat(c, LIST(a, b), NULL, &y));
  OK(tt_capture_end(c, LIST(y), &g));
  OK(tt_tensor_read(c, y, got, sizeof got));
  if (!SLOW_BUILD) check_targets(g, x, got, 2 * kN);
  tt_graph_release(g);
}

/* Exported C unpacks the formats that GGUF files have besides, and multiplies by them. */
static void test_exports_formats(void** state) {
  enum { kWide = kLarge * 256, kEach = 2 * kColumns };
  tt_tensor *x, *packed, *exact, *parts[2 * kNumFormats], *y;
  float rows[2 * kWide] = {0}, want[2 * kNumFormats * kEach];
  Blocks bytes;
  tt_graph* g;
  size_t f;
  int i;
  (void)state;
  /* Few terms of a sum, or its rounding would hide errors. */
  for (i = 0; i < 2 * kWide; i += 101) rows[i] = (float)(i % 7 - 3) / 8;
  OK(tt_tensor_from_data(c, rows, TT_F32, SHAPE(2, kWide), &x));
  OK(tt_capture_begin(c, LIST(x), NULL));
  for (f = 0; f < kNumFormats; f++) {
    const Format* format = &kFormats[f];
    tt_tensor* part;
    make_blocks(c, format, &bytes, f + 1, &packed);
    OK(tt_narrow(c, x, 1, 0, blocks_of_row(format) * format->items, &part));
    OK(tt_blockwise_linear(c, part, packed, NULL, format->id, &parts[2 * f]));
    OK(tt_dequantize_blockwise(c, packed, format->id, &exact));
    OK(tt_linear(c, part, exact, NULL, &parts[2 * f + 1]));
  }
  OK(tt_cat(c, (const tt_tensor* const*)parts, 2 * kNumFormats, NULL, &y));
  OK(tt_capture_end(c, LIST(y), &g));
  OK(tt_tensor_read(c, y, want, sizeof want));
  if (!SLOW_BUILD) check_targets(g, x, want, 2 * kNumFormats * kEach);
  tt_graph_release(g);
}

/* Images of three spatial dims, and positions of maxima that select from another tensor. */
static void test_volume(void** state) {
  const tt_conv3d_opts how = {.set = TT_CONV3D_PADDING | TT_CONV3D_GROUPS | TT_CONV3D_STRIDE,
                              .padding = (int64_t[]){1, 0, 1},
                              .n_padding = 3,
                              .groups = 2,
                              .stride = (int64_t[]){1, 2, 1},
                              .n_stride = 3};
  const tt_flatten_opts flat = {.set = TT_FLATTEN_START_DIM, .start_dim = 2};
  tt_tensor *x = waves(SHAPE(1, 2, 4, 6, 5), 0), *w = waves(SHAPE(4, 1, 3, 2, 3), 1);
  tt_tensor *b = waves(SHAPE(4), 2), *h, *maxima, *at, *y;
  tt_graph* g;
  float* want;
  int64_t n;
  (void)state;
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_conv3d(c, x, w, b, &how, &h));
  OK(tt_max_pool3d_with_indices(c, h, (int64_t[]){2, 1, 2}, 3, NULL, &maxima, &at));
  OK(tt_flatten(c, h, &flat, &h));
  OK(tt_flatten(c, at, &flat, &at));
  OK(tt_gather(c, h, 2, at, &h));
  OK(tt_flatten(c, maxima, &flat, &maxima));
  OK(tt_add(c, h, maxima, &y));
  OK(tt_capture_end(c, LIST(y), &g));
  n = tt_tensor_numel(y);
  assert_true(n <= kMaxOut);
  want = malloc((size_t)n * 4);
  OK(tt_tensor_read(c, y, want, n * 4));
  if (!SLOW_BUILD) check_targets(g, x, want, n);
  free(want);
  tt_graph_release(g);
}

/* ---- sizes ---- */

typedef struct Sizes {
  long code, constants, zeroed, stack;
} Sizes;

/* The exported source compiled for size; stack: of all functions together. */
static Sizes compiled_sizes(const char* prefix, const char* flags) {
  Sizes s = {0};
  char text[400], name[100];
  long bytes;
  FILE* f;
  snprintf(text, sizeof text,
           "cd %s && %sgcc -std=c99 -Os -ffunction-sections -fstack-usage %s -c net.c && "
           "%ssize -A net.o && cut -f2 net.su | sed 's/^/.stack /'",
           folder, prefix, flags, prefix);
  f = popen(text, "r");
  assert_non_null(f);
  while (fgets(text, sizeof text, f)) {
    if (sscanf(text, "%99s %ld", name, &bytes) != 2) continue;
    if (!strncmp(name, ".text", 5)) s.code += bytes;
    if (!strncmp(name, ".rodata", 7)) s.constants += bytes;
    if (!strncmp(name, ".bss", 4)) s.zeroed += bytes;
    if (!strcmp(name, ".stack")) s.stack += bytes;
  }
  assert_int_equal(pclose(f), 0);
  assert_true(s.code > 0 && s.constants > 0 && s.stack > 0);
  return s;
}

/* The layers of train_digits, normalizations inside the convolutions. */
static tt_graph* digits_network(tt_tensor* x) {
  const tt_conv2d_opts around = {
      .set = TT_CONV2D_PADDING, .padding = (int64_t[]){1}, .n_padding = 1};
  const int64_t channels[3] = {1, 16, 32};
  tt_tensor *w[2], *b[2], *v = waves(SHAPE(10, 128), 4), *bias = waves(SHAPE(10), 5), *h = x;
  tt_graph* g;
  int i;
  for (i = 0; i < 2; i++) {
    w[i] = waves(SHAPE(channels[i + 1], channels[i], 3, 3), i);
    b[i] = waves(SHAPE(channels[i + 1]), i);
  }
  OK(tt_capture_begin(c, LIST(x), NULL));
  for (i = 0; i < 2; i++) {
    OK(tt_conv2d(c, h, w[i], b[i], &around, &h));
    OK(tt_relu(c, h, &h));
    OK(tt_max_pool2d(c, h, (int64_t[]){2}, 1, NULL, &h));
  }
  OK(tt_flatten(c, h, &(tt_flatten_opts){.set = TT_FLATTEN_START_DIM, .start_dim = 1}, &h));
  OK(tt_linear(c, h, v, bias, &h));
  OK(tt_capture_end(c, LIST(h), &g));
  return g;
}
static tt_graph* small_network(tt_tensor* x) {
  tt_tensor *w = waves(SHAPE(32, 64), 1), *v = waves(SHAPE(10, 32), 2), *h;
  tt_tensor *b = waves(SHAPE(32), 3), *d = waves(SHAPE(10), 4);
  tt_graph* g;
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_linear(c, x, w, b, &h));
  OK(tt_relu(c, h, &h));
  OK(tt_linear(c, h, v, d, &h));
  OK(tt_capture_end(c, LIST(h), &g));
  return g;
}

/* What firmware has room for: 3 kB of code for a network of 64, 32 and 10 units; 12 kB of code and
   weights and 16 kB of memory for that of train_digits in 8-bit integers. */
static void test_sizes(void** state) {
  static const struct {
    const char *prefix, *flags;
  } kCompilers[] = {
      {"", ""}, {"arm-none-eabi-", "-mcpu=cortex-m7 -mthumb -mfloat-abi=hard -mfpu=fpv5-sp-d16"}};
  tt_tensor *row = waves(SHAPE(1, 64), 0), *image = waves(SHAPE(1, 1, 8, 8), 0);
  tt_graph *mlp = small_network(row), *g = digits_network(image), *digits;
  char text[100];
  size_t i;
  (void)state;
  OK(tt_graph_quantize(c, g, LIST(image), NULL, &digits));
  for (i = 0; i < sizeof kCompilers / sizeof *kCompilers; i++) {
    Sizes s;
    snprintf(text, sizeof text, "%sgcc", kCompilers[i].prefix);
    if (!at_hand(text)) continue;
    OK(tt_graph_export_c(c, mlp, folder, "net"));
    s = compiled_sizes(kCompilers[i].prefix, kCompilers[i].flags);
    if (s.code > 3000) fail_msg("%s: %ld bytes of code", text, s.code);
    OK(tt_graph_export_c(c, digits, folder, "net"));
    s = compiled_sizes(kCompilers[i].prefix, kCompilers[i].flags);
    if (s.code + s.constants > 12000) fail_msg("%s: %ld + %ld bytes", text, s.code, s.constants);
    if (s.zeroed + s.stack > 16000) fail_msg("%s: %ld + %ld bytes", text, s.zeroed, s.stack);
    print_message("%s: digits %ld, %ld, %ld, %ld\n", text, s.code, s.constants, s.zeroed, s.stack);
  }
  tt_graph_release(digits);
  tt_graph_release(g);
  tt_graph_release(mlp);
}

static void test_refused(void** state) {
  tt_tensor *x = waves(SHAPE(1, 1, 8, 8), 0), *small = waves(SHAPE(1, 1, 8, 7), 0);
  tt_tensor* bad = waves(SHAPE(1, 1, 8, 8), 0);
  tt_graph *g = network(x), *q = NULL;
  (void)state;
  ((float*)tt_tensor_data(bad))[3] = NAN;
  FAILS(tt_graph_quantize(c, g, NULL, 0, NULL, &q), TT_INVALID_ARG, "positive multiple");
  FAILS(tt_graph_quantize(c, g, LIST(small), NULL, &q), TT_SHAPE, "a sample of input 0");
  FAILS(tt_graph_quantize(c, g, LIST(bad), NULL, &q), TT_INVALID_ARG, "no integer");
  assert_null(q);
  FAILS(tt_graph_export_c_with(c, g, folder, "9", NULL), TT_INVALID_ARG, "identifier");
  tt_graph_release(g);
}

/* Every allocation of a quantisation fails once. */
static void test_memory(void** state) {
  tt_tensor *x = waves(SHAPE(2, 3), 0), *w = waves(SHAPE(2, 3), 1), *y;
  tt_graph *g, *q = NULL;
  int64_t k;
  (void)state;
  OK(tt_capture_begin(c, LIST(x), NULL));
  OK(tt_linear(c, x, w, NULL, &y));
  OK(tt_capture_end(c, LIST(y), &g));
  for (k = 1; !q; k++) {
    tt_status status;
    host.fail_at = host.calls + k;
    host.fail_n = 1;
    status = tt_graph_quantize(c, g, LIST(x), NULL, &q);
    host.fail_at = 0;
    assert_true(status == TT_OOM || (status == TT_OK && q));
  }
  tt_graph_release(q);
  tt_graph_release(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {SCOPED(test_quantized),       SCOPED(test_rows),
                                     SCOPED(test_histogram),       SCOPED(test_sequence),
                                     SCOPED(test_blocks),          SCOPED(test_formats),
                                     SCOPED(test_digits),          SCOPED(test_digits_of_formats),
                                     SCOPED(test_bytes),           SCOPED(test_no_blocks),
                                     SCOPED(test_block_graph),     SCOPED(test_packs_blocks),
                                     SCOPED(test_exports_formats), SCOPED(test_volume),
                                     SCOPED(test_sizes),           SCOPED(test_refused),
                                     SCOPED(test_memory)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
