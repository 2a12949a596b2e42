/* Every operator that has a counterpart in C: captured, exported, compiled by the C compiler at
   hand, and called with the sample's numbers. The results are those of the operator in float32. */
#include "op_table.h"

#include <dlfcn.h>
#include <math.h>
#include <unistd.h>

enum { kMaxCases = 1201, kPerRow = 1 };

typedef struct Case {
  const char* name;
  void* in[kMaxTensors];
  tt_tensor* want[kMaxOuts];
  int n_in, n_out;
  int exact; /* results have eager's bits */
} Case;

static int64_t bytes_of(const tt_tensor* t) {
  return tt_tensor_numel(t) * tt_dtype_size(tt_tensor_dtype(t));
}

static const tt_clone_opts kDense = {.set = TT_CLONE_MEMORY_FORMAT, .memory_format = TT_CONTIGUOUS};
static Case cases[kMaxCases];
static int n_cases, n_of_row, n_rows;
static char folder[] = "/tmp/tt_export_XXXXXX";
static FILE* all; /* the C source of all cases */

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
  if (strncmp(s->row->name, "empty", 5) == 0) return; /* its elements are any */
  k->n_in = float32_inputs(&t, inputs);
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

/* Ends the capture of a program that is no sample. */
static void export_program(const char* called, const tt_tensor* const* in, int n_in,
                           tt_tensor* const* outs, int n_out) {
  Case* k = &cases[n_cases];
  tt_graph* g;
  char name[32];
  int i;
  OK(tt_capture_end(c, (const tt_tensor* const*)outs, n_out, &g));
  snprintf(name, sizeof name, "case_%d", n_cases);
  OK(tt_graph_export_c(c, g, folder, name));
  tt_graph_release(g);
  fprintf(all, "#include \"%s.h\"\nvoid call_%d(void **in, void **out) { %s(", name, n_cases, name);
  for (i = 0; i < n_in; i++) fprintf(all, "in[%d], ", i);
  for (i = 0; i < n_out; i++) fprintf(all, "%sout[%d]", i ? ", " : "", i);
  fprintf(all, "); }\n");
  *k = (Case){.name = called, .n_in = n_in, .n_out = n_out};
  for (i = 0; i < n_in; i++) {
    k->in[i] = malloc((size_t)bytes_of(in[i]));
    memcpy(k->in[i], tt_tensor_data(in[i]), (size_t)bytes_of(in[i]));
  }
  for (i = 0; i < n_out; i++) OK(tt_clone(c, outs[i], &kDense, &k->want[i]));
  for (i = 0; i < n_out; i++) tt_tensor_retain(k->want[i]);
  n_cases++;
}

static void export_exact(const char* called, const tt_tensor* const* in, int n_in,
                         tt_tensor* const* outs, int n_out) {
  export_program(called, in, n_in, outs, n_out);
  cases[n_cases - 1].exact = 1;
}

/* x >= 0.5, calls without a dimension, each of which has variables of its own, a constant of which
   only the shape is used, remainders of infinities and of quotients near integers, |-0|. */
static void export_numbers(void) {
  const double x[] = {0.25, 0.75, -0.5}, y[] = {1, -1, -0.0}, z[] = {0.1, INFINITY, 1};
  tt_tensor *in[3], *shape, *sum, *twice, *more, *size, *outs[7];
  in[0] = numbers(TT_F32, x, 3);
  in[1] = numbers(TT_F32, y, 3);
  in[2] = numbers(TT_F32, z, 3);
  OK(tt_clone(c, in[0], NULL, &shape));
  OK(tt_capture_begin(c, (const tt_tensor* const*)in, 3, NULL));
  OK(tt_ge_f64(c, in[0], 0.5, &outs[0]));
  OK(tt_sum(c, in[0], NULL, &sum));
  OK(tt_mul_f64(c, sum, 2, &twice));
  OK(tt_add_f64(c, twice, 0.125, &more));
  OK(tt_norm(c, more, 2, NULL, 0, NULL, &outs[1]));
  OK(tt_zeros_like(c, shape, NULL, &outs[2]));
  OK(tt_remainder(c, in[1], in[2], &outs[3]));
  OK(tt_floor_divide(c, in[1], in[2], &outs[4]));
  OK(tt_abs(c, in[1], &size));
  OK(tt_reciprocal(c, size, &outs[5]));
  OK(tt_softmax(c, in[2], 0, NULL, &outs[6]));
  export_program("numbers", (const tt_tensor* const*)in, 3, outs, 7);
}

/* Integers wrap around, bools are 0 or 1, constants are exact, blocks of zeros have the scale 0. */
static void export_integers(void) {
  const double x[] = {2147483647, -2147483648.0, 7}, y[] = {1, 0, 1};
  const tt_full_opts wide = {.set = TT_FULL_DTYPE, .dtype = TT_I64};
  const tt_full_opts truth = {.set = TT_FULL_DTYPE, .dtype = TT_BOOL};
  tt_tensor *in[2], *zeros, *outs[7];
  in[0] = numbers(TT_I32, x, 3);
  in[1] = numbers(TT_BOOL, y, 3);
  OK(tt_capture_begin(c, (const tt_tensor* const*)in, 2, NULL));
  OK(tt_mul(c, in[0], in[0], &outs[0]));
  OK(tt_add_i64(c, in[0], 3, &outs[1]));
  OK(tt_add(c, in[1], in[1], &outs[2]));
  OK(tt_full_i64(c, SHAPE(2), 16777217, &wide, &outs[3]));
  OK(tt_full_i64(c, SHAPE(2), 2, &truth, &outs[4]));
  OK(tt_ones_like(c, in[0], NULL, &outs[5]));
  OK(tt_zeros(c, SHAPE(1, 32), NULL, &zeros));
  OK(tt_quantize_blockwise(c, zeros, TT_BLOCKFORMAT_Q4_0, &outs[6]));
  export_program("integers", (const tt_tensor* const*)in, 2, outs, 7);
}

/* The smallest integer has no size and no quotient by -1: these wrap around. */
static void export_whole_numbers(void) {
  const double x[] = {2147483647, -2147483648.0, 7};
  tt_tensor *in[1], *outs[8];
  in[0] = numbers(TT_I32, x, 3);
  OK(tt_capture_begin(c, (const tt_tensor* const*)in, 1, NULL));
  OK(tt_heaviside(c, in[0], in[0], &outs[6]));
  OK(tt_fmod_i64(c, in[0], INT64_MIN, &outs[7]));
  OK(tt_abs(c, in[0], &outs[0]));
  OK(tt_floor_divide_i64(c, in[0], -1, &outs[1]));
  OK(tt_remainder_i64(c, in[0], -10, &outs[2]));
  OK(tt_cumsum(c, in[0], 0, NULL, &outs[3]));
  OK(tt_prod(c, in[0], NULL, &outs[4]));
  OK(tt_any(c, in[0], &outs[5]));
  export_program("whole numbers", (const tt_tensor* const*)in, 1, outs, 8);
}

/* Results and copies in memory with gaps; operands without elements. */
static void export_layouts(void) {
  const tt_slice_opts behind = {.set = TT_SLICE_START, .start = 1};
  const tt_slice_opts before = {.set = TT_SLICE_END, .end = -1};
  const tt_scaled_dot_product_attention_opts causal = {
      .set = TT_SCALED_DOT_PRODUCT_ATTENTION_IS_CAUSAL, .is_causal = 1};
  double x[48];
  tt_tensor *in[3], *last, *heads, *twice, *from, *to, *outs[6];
  int i;
  for (i = 0; i < 48; i++) x[i] = sin(i);
  in[0] = numbers(TT_F32, x, 48);
  OK(tt_view(c, in[0], SHAPE(2, 3, 2, 4), &in[0]));
  OK(tt_zeros(c, SHAPE(1, 2, 0, 4), NULL, &in[1]));
  OK(tt_zeros(c, SHAPE(5, 0), NULL, &in[2]));
  OK(tt_capture_begin(c, (const tt_tensor* const*)in, 3, NULL));
  OK(tt_permute(c, in[0], SHAPE(0, 3, 1, 2), &last));
  OK(tt_group_norm(c, last, 2, NULL, NULL, NULL, &outs[0]));
  OK(tt_permute(c, in[0], SHAPE(0, 2, 1, 3), &heads));
  OK(tt_scaled_dot_product_attention(c, heads, heads, heads, NULL, &causal, &outs[1]));
  OK(tt_scaled_dot_product_attention(c, in[1], in[1], in[1], NULL, NULL, &outs[2]));
  OK(tt_mul_f64(c, in[0], 2, &twice));
  OK(tt_slice(c, twice, 1, &before, &from));
  OK(tt_slice(c, twice, 1, &behind, &to));
  OK(tt_copy_(c, to, from));
  OK(tt_select(c, twice, 3, 1, &to));
  OK(tt_fill_f64_(c, to, 7));
  outs[3] = twice;
  OK(tt_linear(c, in[2], in[2], NULL, &outs[4]));
  OK(tt_argmax(c, last, NULL, &outs[5]));
  export_program("layouts", (const tt_tensor* const*)in, 3, outs, 6);
}

/* Borders around a part of the elements. */
static void export_borders(void) {
  static const int32_t kModes[] = {TT_PADDING_REFLECT, TT_PADDING_REPLICATE, TT_PADDING_CIRCULAR};
  double x[24];
  tt_tensor *in[1], *outs[6];
  int i;
  for (i = 0; i < 24; i++) x[i] = i;
  in[0] = numbers(TT_F32, x, 24);
  OK(tt_view(c, in[0], SHAPE(1, 2, 3, 4), &in[0]));
  OK(tt_capture_begin(c, (const tt_tensor* const*)in, 1, NULL));
  for (i = 0; i < 3; i++) {
    const tt_pad_opts opts = {.set = TT_PAD_MODE, .mode = kModes[i]};
    OK(tt_pad(c, in[0], SHAPE(3, -2, -1, 2), &opts, &outs[2 * i]));
    OK(tt_pad(c, in[0], SHAPE(-1, 3, 2, -1), &opts, &outs[2 * i + 1]));
  }
  export_program("borders", (const tt_tensor* const*)in, 1, outs, 6);
}

/* Indices in several dimensions, from the end, with a whole dimension between; a mask; repeated
   positions; moves of whole tensors; windows without a batch. */
static void export_positions(void) {
  const double at[] = {1, -2, 0}, row[] = {2, 0, -1}, truth[] = {1, 0, 1, 0};
  tt_index between[3] = {{.kind = TT_IDX_TENSOR}, {.kind = TT_IDX_SLICE}, {.kind = TT_IDX_TENSOR}};
  tt_index mask = {.kind = TT_IDX_TENSOR};
  double x[24];
  tt_tensor *in[5], *changed, *seven, *outs[8];
  int i;
  for (i = 0; i < 24; i++) x[i] = i % 7 - 3;
  in[0] = numbers(TT_F32, x, 24);
  OK(tt_view(c, in[0], SHAPE(4, 2, 3), &in[0]));
  in[1] = numbers(TT_I64, at, 3);
  in[2] = numbers(TT_I32, row, 3);
  in[3] = numbers(TT_BOOL, truth, 4);
  OK(tt_remainder_i64(c, in[1], 3, &in[4]));
  between[0].tensor = in[1];
  between[2].tensor = in[2];
  mask.tensor = in[3];
  OK(tt_capture_begin(c, (const tt_tensor* const*)in, 5, NULL));
  OK(tt_index_get(c, in[0], between, 3, &outs[0]));
  OK(tt_clone(c, in[0], NULL, &changed));
  OK(tt_full_f64(c, NULL, 0, 7, NULL, &seven));
  OK(tt_index_set(c, changed, &mask, 1, seven));
  OK(tt_index_set(c, changed, between, 3, outs[0]));
  outs[1] = changed;
  OK(tt_index_add(c, in[0], 2, in[4], in[0], &outs[2]));
  OK(tt_flip(c, in[0], SHAPE(0, 2), &outs[3]));
  OK(tt_roll(c, in[0], SHAPE(-5), NULL, 0, &outs[4]));
  OK(tt_roll(c, in[0], SHAPE(3, -1), SHAPE(0, 2), &outs[5]));
  OK(tt_bitwise_not(c, in[3], &outs[6]));
  OK(tt_max_pool2d(c, in[0], SHAPE(2), NULL, &outs[7]));
  export_program("positions", (const tt_tensor* const*)in, 5, outs, 8);
}

/* Order with nan and equal elements, of which few or many are kept. */
static void export_order(void) {
  double x[60];
  tt_tensor *in[1], *rows, *columns, *outs[8];
  int i;
  for (i = 0; i < 60; i++) x[i] = i * 13 % 11 - 5;
  x[3] = x[17] = NAN;
  x[5] = -INFINITY;
  in[0] = numbers(TT_F32, x, 60);
  OK(tt_capture_begin(c, (const tt_tensor* const*)in, 1, NULL));
  OK(tt_view(c, in[0], SHAPE(4, 15), &rows));
  OK(tt_transpose(c, rows, 0, 1, &columns));
  OK(tt_sort(c, in[0], NULL, &outs[0], &outs[1]));
  OK(tt_topk(c, columns, 5, &(tt_topk_opts){.set = TT_TOPK_DIM, .dim = 0}, &outs[2], &outs[3]));
  OK(tt_cummax(c, columns, 0, &outs[4], &outs[5]));
  OK(tt_median(c, in[0], &outs[6]));
  OK(tt_nanmedian(c, in[0], &outs[7]));
  export_program("order", (const tt_tensor* const*)in, 1, outs, 8);
}

/* A bound that is nan makes nan; powers of -inf that are roots are nan; a constant of one float64
   is a number. */
static void export_bounds(void) {
  const double x[] = {-INFINITY, 4, NAN}, y[] = {1, NAN, 2};
  const tt_full_opts wide = {.set = TT_FULL_DTYPE, .dtype = TT_F64};
  tt_tensor *in[2], *number, *mask, *outs[5];
  in[0] = numbers(TT_F32, x, 3);
  in[1] = numbers(TT_F32, y, 3);
  OK(tt_full_f64(c, NULL, 0, 0.1, &wide, &number));
  OK(tt_capture_begin(c, (const tt_tensor* const*)in, 2, NULL));
  OK(tt_clamp_min(c, in[0], in[1], &outs[0]));
  OK(tt_clamp_max(c, in[0], in[1], &outs[1]));
  OK(tt_pow_f64(c, in[0], 0.5, &outs[2]));
  OK(tt_pow_f64(c, in[0], -0.5, &outs[3]));
  OK(tt_gt_f64(c, in[0], 0, &mask));
  OK(tt_where(c, mask, in[0], number, &outs[4]));
  export_program("bounds", (const tt_tensor* const*)in, 2, outs, 5);
}

/* Numbers below 0, the smallest one, numbers that an element cannot have, nan as a bound. */
static void export_arguments(void) {
  const double x[] = {-128, 5, -1}, y[] = {1, NAN, -2};
  tt_tensor *in[2], *outs[8];
  in[0] = numbers(TT_I8, x, 3);
  in[1] = numbers(TT_F32, y, 3);
  OK(tt_capture_begin(c, (const tt_tensor* const*)in, 2, NULL));
  OK(tt_add_i64(c, in[0], -1, &outs[0]));
  OK(tt_bitwise_and_i64(c, in[0], -10, &outs[1]));
  OK(tt_lt_i64(c, in[0], INT64_MIN, &outs[2]));
  OK(tt_eq_i64(c, in[0], INT64_MAX, &outs[3]));
  OK(tt_floor_divide_i64(c, in[0], INT64_MAX, &outs[4]));
  OK(tt_clamp_min_f64(c, in[1], NAN, &outs[5]));
  OK(tt_sum(c, in[1], NULL, &outs[6]));
  OK(tt_topk(c, outs[6], 0, NULL, &outs[6], &outs[7]));
  export_program("arguments", (const tt_tensor* const*)in, 2, outs, 8);
}

/* Elements written to their own tensor, and moves of a tensor with gaps, have a copy first. */
static void export_overlaps(void) {
  const double x[] = {1, 2, 3, 4, 5, 6}, at[] = {1, 0};
  tt_index place = {.kind = TT_IDX_TENSOR};
  tt_tensor *in[2], *rows, *turned, *first, *outs[4];
  int i;
  in[0] = numbers(TT_F32, x, 6);
  in[1] = numbers(TT_I64, at, 2);
  place.tensor = in[1];
  OK(tt_capture_begin(c, (const tt_tensor* const*)in, 2, NULL));
  OK(tt_view(c, in[0], SHAPE(3, 2), &rows));
  OK(tt_transpose(c, rows, 0, 1, &turned));
  OK(tt_roll(c, turned, SHAPE(1), NULL, 0, &outs[0]));
  for (i = 1; i < 4; i++) OK(tt_clone(c, rows, NULL, &outs[i]));
  OK(tt_narrow(c, outs[1], 0, 0, 2, &first));
  OK(tt_index_copy_(c, outs[1], 0, in[1], first));
  OK(tt_narrow(c, outs[2], 0, 0, 2, &first));
  OK(tt_index_add_(c, outs[2], 0, in[1], first));
  OK(tt_narrow(c, outs[3], 0, 0, 2, &first));
  OK(tt_index_set(c, outs[3], &place, 1, first));
  export_program("overlaps", (const tt_tensor* const*)in, 2, outs, 4);
}

/* Variances, of which sums and means are computed in float64 and rounded once. */
static void export_variances(void) {
  const tt_var_opts whole = {.set = TT_VAR_CORRECTION | TT_VAR_KEEPDIM, .keepdim = 1};
  const tt_std_opts none_left = {.set = TT_STD_CORRECTION, .correction = 24};
  const tt_to_opts as_double = {.set = TT_TO_DTYPE, .dtype = TT_F64};
  double x[24];
  tt_tensor *in[1], *wide, *outs[8];
  int i;
  for (i = 0; i < 24; i++) x[i] = 1000 + sin(i);
  in[0] = numbers(TT_F32, x, 24);
  OK(tt_view(c, in[0], SHAPE(2, 3, 4), &in[0]));
  OK(tt_capture_begin(c, (const tt_tensor* const*)in, 1, NULL));
  OK(tt_var(c, in[0], NULL, 0, NULL, &outs[0]));
  OK(tt_var(c, in[0], SHAPE(0, -1), &whole, &outs[1]));
  OK(tt_std(c, in[0], SHAPE(1), NULL, &outs[2]));
  OK(tt_std(c, in[0], NULL, 0, &none_left, &outs[3]));
  OK(tt_var_mean(c, in[0], SHAPE(2), NULL, &outs[4], &outs[5]));
  OK(tt_to(c, in[0], &as_double, &wide));
  OK(tt_add_f64(c, wide, 0.1, &outs[6]));
  OK(tt_gt_f64(c, wide, 1000.1, &outs[7]));
  export_exact("variances", (const tt_tensor* const*)in, 1, outs, 8);
}

/* Shifts by less than 0 and by all bits; of equal numbers the most frequent; nan is none. */
static void export_shifts(void) {
  const double x[] = {-128, 5, 5, 1, 1, 0}, by[] = {-1, 8, 2, 7, 200, 31},
               y[] = {NAN, 0, -0.0, NAN};
  const tt_mode_opts along = {.set = TT_MODE_DIM | TT_MODE_KEEPDIM, .dim = 0, .keepdim = 1};
  tt_tensor *in[3], *rows, *outs[8];
  in[0] = numbers(TT_I8, x, 6);
  in[1] = numbers(TT_I32, by, 6);
  in[2] = numbers(TT_F32, y, 4);
  OK(tt_capture_begin(c, (const tt_tensor* const*)in, 3, NULL));
  OK(tt_bitwise_left_shift_i64(c, in[0], 3, &outs[0]));
  OK(tt_bitwise_right_shift_i64(c, in[0], 9, &outs[1]));
  OK(tt_bitwise_right_shift(c, in[1], in[1], &outs[2]));
  OK(tt_bitwise_left_shift(c, in[1], in[1], &outs[3]));
  OK(tt_view(c, in[0], SHAPE(2, 3), &rows));
  OK(tt_mode(c, rows, &along, &outs[4], &outs[5]));
  OK(tt_mode(c, in[2], NULL, &outs[6], &outs[7]));
  export_exact("shifts", (const tt_tensor* const*)in, 3, outs, 8);
}

/* Windows with a border as columns, sums of columns that overlap, bags. */
static void export_windows(void) {
  const int64_t one[] = {1}, two[] = {2}, three_one[] = {3, 1};
  const tt_im2col_opts wide = {.set = TT_IM2COL_PADDING | TT_IM2COL_STRIDE | TT_IM2COL_DILATION,
                               .dilation = two,
                               .n_dilation = 1,
                               .padding = three_one,
                               .n_padding = 2,
                               .stride = two,
                               .n_stride = 1};
  const tt_col2im_opts bordered = {.set = TT_COL2IM_PADDING, .padding = one, .n_padding = 1};
  const double at[] = {3, 0, 3, 2, 1, 3}, begin[] = {0, 2, 2, 5};
  const tt_embedding_bag_opts most = {.set = TT_EMBEDDING_BAG_MODE, .mode = TT_BAGMODE_MAX};
  tt_embedding_bag_opts skips = {.set = TT_EMBEDDING_BAG_PADDING_IDX, .padding_idx = -1};
  tt_embedding_bag_opts weighted = {.set = TT_EMBEDDING_BAG_MODE |
                                           TT_EMBEDDING_BAG_PER_SAMPLE_WEIGHTS};
  double x[48];
  tt_tensor *in[4], *image, *last, *table, *rows, *weights, *outs[7];
  int i;
  for (i = 0; i < 48; i++) x[i] = sin(i);
  in[0] = numbers(TT_F32, x, 48);
  in[1] = numbers(TT_I32, at, 6);
  in[2] = numbers(TT_I64, begin, 4);
  in[3] = numbers(TT_F32, x + 1, 6);
  OK(tt_capture_begin(c, (const tt_tensor* const*)in, 4, NULL));
  OK(tt_view(c, in[0], SHAPE(2, 2, 3, 4), &image));
  OK(tt_transpose(c, image, 2, 3, &last));
  OK(tt_im2col(c, image, SHAPE(3, 2), &wide, &outs[0]));
  OK(tt_im2col(c, last, SHAPE(2), NULL, &outs[1]));
  OK(tt_view(c, in[0], SHAPE(8, 6), &rows));
  OK(tt_col2im(c, rows, SHAPE(1, 2), SHAPE(2), &bordered, &outs[2]));
  OK(tt_view(c, in[0], SHAPE(4, 12), &table));
  OK(tt_embedding_bag(c, table, in[1], in[2], &most, &outs[3]));
  OK(tt_embedding_bag(c, table, in[1], in[2], &skips, &outs[4]));
  OK(tt_view(c, in[1], SHAPE(2, 3), &rows));
  OK(tt_view(c, in[3], SHAPE(2, 3), &weights));
  weighted.per_sample_weights = weights;
  OK(tt_embedding_bag(c, table, rows, NULL, &skips, &outs[5]));
  OK(tt_embedding_bag(c, table, rows, NULL, &weighted, &outs[6]));
  export_program("windows", (const tt_tensor* const*)in, 4, outs, 7);
}

/* Images at positions inside, at the border, beyond it and nowhere. */
static void export_grids(void) {
  double x[48], at[60];
  tt_tensor *in[2], *image, *volume, *grid, *outs[8];
  int i, n = 0;
  for (i = 0; i < 48; i++) x[i] = cos(i);
  for (i = 0; i < 60; i++) at[i] = 1.7 * sin(3 * i);
  at[0] = at[7] = 1;
  at[4] = -1;
  at[11] = 1e30;
  at[14] = INFINITY;
  at[22] = NAN;
  in[0] = numbers(TT_F32, x, 48);
  in[1] = numbers(TT_F32, at, 60);
  OK(tt_capture_begin(c, (const tt_tensor* const*)in, 2, NULL));
  OK(tt_view(c, in[0], SHAPE(2, 2, 3, 4), &image));
  OK(tt_view(c, in[1], SHAPE(2, 5, 3, 2), &grid));
  for (i = 0; i < 9; i++) {
    const tt_grid_sample_opts how = {
        .set = 7, .mode = i / 3, .padding_mode = i % 3, .align_corners = i % 2};
    if (i != 4) OK(tt_grid_sample(c, image, grid, &how, &outs[n++]));
  }
  export_exact("grids", (const tt_tensor* const*)in, 2, outs, n);
  OK(tt_capture_begin(c, (const tt_tensor* const*)in, 2, NULL));
  OK(tt_view(c, in[0], SHAPE(2, 2, 3, 2, 2), &volume));
  OK(tt_view(c, in[1], SHAPE(2, 5, 2, 1, 3), &grid));
  for (i = 0; i < 3; i++) {
    const tt_grid_sample_opts how = {.set = 3, .mode = i % 2, .padding_mode = i};
    OK(tt_grid_sample(c, volume, grid, &how, &outs[i]));
  }
  export_exact("volumes", (const tt_tensor* const*)in, 2, outs, 3);
}

/* Operators of layers that a network of the usual kinds has. */
static void check_layers(void) {
  static const char* const kLayers[] = {"linear",
                                        "conv1d",
                                        "conv2d",
                                        "conv3d",
                                        "conv_transpose2d",
                                        "batch_norm",
                                        "instance_norm",
                                        "group_norm",
                                        "layer_norm",
                                        "rms_norm",
                                        "max_pool2d",
                                        "avg_pool2d",
                                        "adaptive_avg_pool2d",
                                        "interpolate",
                                        "pad",
                                        "embedding",
                                        "softmax",
                                        "log_softmax",
                                        "lstm",
                                        "gru",
                                        "scaled_dot_product_attention",
                                        "matmul",
                                        "cat",
                                        "argmax",
                                        "topk",
                                        "sort",
                                        "cumsum",
                                        "gather",
                                        "scatter",
                                        "index_select",
                                        "relu",
                                        "gelu",
                                        "silu"};
  int i, k;
  for (i = 0; i < (int)(sizeof kLayers / sizeof *kLayers); i++) {
    for (k = 0; k < n_cases && strcmp(cases[k].name, kLayers[i]) != 0; k++) continue;
    if (k == n_cases) fail_msg("%s is not exported", kLayers[i]);
  }
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
    if (k->exact || tt_tensor_dtype(w) != TT_F32) {
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
  export_integers();
  export_whole_numbers();
  export_layouts();
  export_borders();
  export_positions();
  export_order();
  export_bounds();
  export_arguments();
  export_overlaps();
  export_variances();
  export_shifts();
  export_windows();
  export_grids();
  OK(tt_scope_pop(c, NULL, 0));
  check_layers();
  fclose(all);
  snprintf(text, sizeof text,
           "cd %s && cc -std=c99 -pedantic -Wall -Wextra -Wconversion -Werror -shared -fPIC "
           "-O0 -fsanitize=undefined -fsanitize-undefined-trap-on-error -o all.so *.c -lm",
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
  assert_true(n_rows >= 457);
}

int main(void) {
  const struct CMUnitTest tests[] = {PLAIN(test_all)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
