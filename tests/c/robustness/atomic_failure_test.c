/* Failure is atomic: a failing call changes nothing, sets its outs to NULL, and its message
   names the values. Also complex numbers, computed by hand. */
#include "snapshot.h"

#include <complex.h>
#include <math.h>

static tt_tensor* longs(const int64_t* v, int64_t n) {
  tt_tensor* t;
  OK(tt_tensor_from_data(c, v, TT_I64, &n, 1, &t));
  return t;
}
#define LONGS(...)                      \
  longs((const int64_t[]){__VA_ARGS__}, \
        (int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))

/* ---- index ranges: every index is checked before anything is written ---- */

static void test_bad_indices(void** state) {
  tt_tensor* x = make(TT_F32, SHAPE(3, 2), DATA(1, 2, 3, 4, 5, 6));
  tt_tensor* src = make(TT_F32, SHAPE(4, 2), DATA(1, 1, 1, 1, 1, 1, 1, 1));
  tt_tensor* out;
  tt_tensor* late = LONGS(0, 1, 2, 3);
  tt_tensor* negative = LONGS(0, 0, 0, -1);
  tt_tensor* wide = make(TT_I64, SHAPE(4, 2), DATA(0, 0, 1, 1, 2, 2, 0, 7));
  tt_tensor* real = numbers(TT_F32, DATA(0, 1));
  const tt_index at[] = {{.kind = TT_IDX_TENSOR, .tensor = late}};
  (void)state;
  FAILS(tt_index_select(c, x, 0, late, &out), TT_INDEX, "3");
  assert_null(out);
  FAILS(tt_index_select(c, x, 0, negative, &out), TT_INDEX, "-1");
  FAILS(tt_index_select(c, x, 2, late, &out), TT_INDEX, "dim");
  FAILS(tt_index_select(c, x, 0, real, &out), TT_DTYPE, "float32");
  FAILS(tt_gather(c, x, 0, wide, &out), TT_INDEX, "7");
  FAILS(tt_index_add_(c, x, 0, late, src), TT_INDEX, "3");
  FAILS(tt_scatter_add_(c, x, 0, wide, src), TT_INDEX, "7");
  FAILS(tt_embedding(c, x, late, NULL, &out), TT_INDEX, "3");
  FAILS(tt_index_get(c, x, at, 1, &out), TT_INDEX, "3");
  FAILS(tt_index_set(c, x, at, 1, number(TT_F32, 9)), TT_INDEX, "3");
  assert_null(out);
  VALUES(x, 1, 2, 3, 4, 5, 6);
  assert_int_equal(tt_tensor_version(x), 0);
}

static void test_bad_mixed_indices(void** state) {
  tt_tensor* x = make(TT_F32, SHAPE(3, 2), DATA(1, 2, 3, 4, 5, 6));
  tt_tensor* out;
  tt_tensor* mask = make(TT_BOOL, SHAPE(2), DATA(1, 0));
  const tt_index far[] = {{.kind = TT_IDX_INT, .start = 3}};
  const tt_index kind[] = {{.kind = 99}};
  const tt_index back[] = {{.kind = TT_IDX_SLICE, .has = 4, .step = -1}};
  const tt_index zero[] = {{.kind = TT_IDX_SLICE, .has = 4, .step = 0}};
  const tt_index many[] = {{.kind = TT_IDX_INT}, {.kind = TT_IDX_INT}, {.kind = TT_IDX_INT}};
  const tt_index dots[] = {{.kind = TT_IDX_ELLIPSIS}, {.kind = TT_IDX_ELLIPSIS}};
  const tt_index masked[] = {{.kind = TT_IDX_TENSOR, .tensor = mask}};
  const tt_index null[] = {{.kind = TT_IDX_TENSOR}};
  (void)state;
  FAILS(tt_index_get(c, x, far, 1, &out), TT_INDEX, "3");
  FAILS(tt_index_get(c, x, kind, 1, &out), TT_INVALID_ARG, "99");
  FAILS(tt_index_get(c, x, back, 1, &out), TT_INVALID_ARG, "step");
  FAILS(tt_index_get(c, x, zero, 1, &out), TT_INVALID_ARG, "step");
  FAILS(tt_index_get(c, x, many, 3, &out), TT_INDEX, NULL);
  FAILS(tt_index_get(c, x, dots, 2, &out), TT_INDEX, "ellips");
  FAILS(tt_index_get(c, x, null, 1, &out), TT_BAD_HANDLE, NULL);
  FAILS(tt_index_get(c, x, masked, 1, &out), TT_INDEX, "[2]");
  FAILS(tt_index_set(c, x, far, 1, number(TT_F32, 0)), TT_INDEX, "3");
  assert_null(out);
  VALUES(x, 1, 2, 3, 4, 5, 6);
}

static void test_bad_targets(void** state) {
  tt_tensor *x = make(TT_F32, SHAPE(2, 3), DATA(1, 2, 3, 4, 5, 6)), *out;
  const tt_cross_entropy_opts smooth = {.set = TT_CROSS_ENTROPY_LABEL_SMOOTHING,
                                        .label_smoothing = 1.5};
  const tt_cross_entropy_opts mode = {.set = TT_CROSS_ENTROPY_REDUCTION, .reduction = 77};
  (void)state;
  FAILS(tt_nll_loss(c, x, LONGS(0, 3), NULL, &out), TT_INDEX, "3");
  FAILS(tt_cross_entropy(c, x, LONGS(0, -1), NULL, &out), TT_INDEX, "-1");
  FAILS(tt_cross_entropy(c, x, LONGS(0, 1, 2), NULL, &out), TT_SHAPE, "[3]");
  FAILS(tt_cross_entropy(c, x, LONGS(0, 1), &smooth, &out), TT_INVALID_ARG, "1.5");
  FAILS(tt_cross_entropy(c, x, LONGS(0, 1), &mode, &out), TT_INVALID_ARG, "77");
  assert_null(out);
}

/* ---- shapes, dtypes, aliases ---- */

static void test_in_place_changes_nothing(void** state) {
  tt_tensor* x = numbers(TT_F32, DATA(1, 2, 3));
  tt_tensor* i = numbers(TT_I32, DATA(1, 2, 3));
  tt_tensor* wide = make(TT_F32, SHAPE(2, 3), DATA(1, 2, 3, 4, 5, 6));
  (void)state;
  FAILS(tt_add_(c, x, wide), TT_SHAPE, "[2,3]");
  FAILS(tt_add_(c, i, x), TT_DTYPE, "int32");
  FAILS(tt_div_f64_(c, i, 2, NULL), TT_DTYPE, NULL);
  FAILS(tt_exp_(c, i), TT_DTYPE, NULL);
  FAILS(tt_copy_(c, x, wide), TT_SHAPE, NULL);
  FAILS(tt_masked_fill_f64_(c, x, wide, 0), TT_SHAPE, "mask is");
  FAILS(tt_masked_fill_f64_(c, x, i, 0), TT_DTYPE, "int32");
  VALUES(x, 1, 2, 3);
  VALUES(i, 1, 2, 3);
  assert_int_equal(tt_tensor_version(x), 0);
  assert_int_equal(tt_tensor_version(i), 0);
}

static void test_into_takes_exactly_the_result(void** state) {
  tt_tensor* x = numbers(TT_F32, DATA(1, 2, 3));
  tt_tensor* two = numbers(TT_F32, DATA(7, 8));
  tt_tensor* wide = numbers(TT_F64, DATA(7, 8, 9));
  tt_tensor* row;
  tt_tensor* head;
  tt_tensor* tail;
  const tt_slice_opts first = {.set = TT_SLICE_END, .end = 3};
  const tt_slice_opts last = {.set = TT_SLICE_START, .start = 1};
  (void)state;
  FAILS(tt_neg_into(c, x, two), TT_SHAPE, "[2]");
  FAILS(tt_neg_into(c, x, wide), TT_DTYPE, "float64");
  FAILS(tt_sum_dim_into(c, x, SHAPE(0), NULL, x), TT_SHAPE, NULL);
  OK(tt_expand(c, number(TT_F32, 1), SHAPE(3), &row));
  FAILS(tt_neg_into(c, x, row), TT_INVALID_ARG, "dst");
  row = numbers(TT_F32, DATA(1, 2, 3, 4));
  OK(tt_slice(c, row, 0, &first, &head));
  OK(tt_slice(c, row, 0, &last, &tail));
  FAILS(tt_neg_into(c, head, tail), TT_INVALID_ARG, NULL);
  VALUES(row, 1, 2, 3, 4);
  OK(tt_neg_into(c, head, head)); /* the same elements */
  VALUES(row, -1, -2, -3, 4);
  assert_int_equal(tt_tensor_version(row), 1);
}

static void test_chance_is_not_used_up(void** state) {
  tt_generator* g;
  uint64_t before[2], after[2];
  tt_tensor* out;
  (void)state;
  OK(tt_ctx_generator(c, &g));
  OK(tt_generator_state(c, g, before));
  FAILS(tt_randn(c, SHAPE(2), &(tt_randn_opts){.set = TT_RANDN_DTYPE, .dtype = TT_I64}, &out),
        TT_NOT_IMPLEMENTED, "int64");
  FAILS(tt_dropout(c, numbers(TT_F32, DATA(1)), &(tt_dropout_opts){.set = TT_DROPOUT_P, .p = 1.5},
                   &out),
        TT_INVALID_ARG, "1.5");
  FAILS(tt_bernoulli(c, numbers(TT_F32, DATA(0.5, 2)), NULL, &out), TT_INVALID_ARG, NULL);
  OK(tt_generator_state(c, g, after));
  assert_true(before[0] == after[0] && before[1] == after[1]);
  tt_generator_release(g);
}

static void test_lists(void** state) {
  tt_tensor* a = make(TT_F32, SHAPE(2, 2), DATA(1, 2, 3, 4));
  tt_tensor* b = make(TT_F32, SHAPE(3, 3), DATA(1, 2, 3, 4, 5, 6, 7, 8, 9));
  tt_tensor* out;
  tt_tensor* outs[3];
  int64_t n = 7;
  (void)state;
  FAILS(tt_cat(c, LIST(a, b), NULL, &out), TT_SHAPE, "[3,3]");
  FAILS(tt_cat(c, NULL, 0, NULL, &out), TT_INVALID_ARG, NULL);
  FAILS(tt_stack(c, LIST(a, b), NULL, &out), TT_SHAPE, NULL);
  assert_null(out);
  FAILS(tt_split(c, b, 1, NULL, outs, 2, &n), TT_BUFFER_TOO_SMALL, "2");
  assert_int_equal(n, 3); /* the needed capacity */
  assert_null(outs[0]);
  OK(tt_split(c, b, 1, NULL, outs, 3, &n));
  VALUES(outs[2], 7, 8, 9);
}

/* ---- complex numbers ---- */

static tt_tensor* complexes(const double complex* v, const int64_t* shape, int64_t ndim,
                            tt_dtype d) {
  tt_tensor* t;
  const tt_to_opts to = {.set = TT_TO_DTYPE, .dtype = d};
  OK(tt_tensor_from_data(c, v, TT_C128, shape, ndim, &t));
  OK(tt_to(c, t, &to, &t));
  return t;
}
static void check_complex(const tt_tensor* t, const double complex* want, int64_t n, double eps) {
  const tt_to_opts to = {.set = TT_TO_DTYPE, .dtype = TT_C128};
  double complex got[64];
  tt_tensor* wide;
  int64_t i;
  assert_int_equal(tt_tensor_numel(t), n);
  OK(tt_to(c, t, &to, &wide));
  OK(tt_tensor_read(c, wide, got, 16 * n));
  for (i = 0; i < n; i++)
    if (!(cabs(got[i] - want[i]) <= eps * (1 + cabs(want[i]))))
      fail_msg("element %d is %g%+gi, not %g%+gi", (int)i, creal(got[i]), cimag(got[i]),
               creal(want[i]), cimag(want[i]));
}

static void test_complex_arithmetic(void** state) {
  static const double complex a[] = {1 + 2 * I, -3 + 0.5 * I, 2 * I, 4};
  static const double complex b[] = {0.5 - I, 2 + 2 * I};
  double complex sum[4];
  double complex difference[4];
  double complex product[4];
  double complex quotient[4];
  double complex total = 0;
  double complex matrix[4] = {0};
  int k, i, j, l;
  (void)state;
  for (i = 0; i < 4; i++) {
    sum[i] = a[i] + b[i % 2];
    difference[i] = a[i] - b[i % 2];
    product[i] = a[i] * b[i % 2];
    quotient[i] = a[i] / b[i % 2];
    total += a[i];
    for (j = 0, l = i % 2; j < 2; j++) matrix[i / 2 * 2 + l] += a[i / 2 * 2 + j] * a[j * 2 + l];
  }
  for (k = 0; k < 2; k++) {
    const tt_dtype d = k ? TT_C64 : TT_C128;
    const double eps = k ? 1e-6 : 1e-14;
    tt_tensor* x = complexes(a, SHAPE(2, 2), d);
    tt_tensor* y = complexes(b, SHAPE(2), d);
    tt_tensor* out;
    tt_tensor* t;
    OK(tt_add(c, x, y, &out));
    check_complex(out, sum, 4, eps);
    assert_int_equal(tt_tensor_dtype(out), d);
    OK(tt_sub(c, x, y, &out));
    check_complex(out, difference, 4, eps);
    OK(tt_mul(c, x, y, &out));
    check_complex(out, product, 4, eps);
    OK(tt_div(c, x, y, NULL, &out));
    check_complex(out, quotient, 4, eps);
    OK(tt_sum(c, x, NULL, &out));
    check_complex(out, &total, 1, eps);
    OK(tt_matmul(c, x, x, &out));
    check_complex(out, matrix, 4, eps);
    OK(tt_t(c, x, &t)); /* strided operands */
    OK(tt_t(c, t, &t));
    OK(tt_matmul(c, t, x, &out));
    check_complex(out, matrix, 4, eps);
    FAILS(tt_lt(c, x, y, &out), TT_NOT_IMPLEMENTED, NULL);
    FAILS(tt_max(c, x, &out), TT_NOT_IMPLEMENTED, NULL);
    assert_null(out);
  }
}

/* ---- numbers that a dtype cannot hold are refused, not truncated; the error names the argument
   ---- */

#define REFUSED(call, code, name, text)                \
  do {                                                 \
    FAILS(call, code, text);                           \
    assert_string_equal(tt_ctx_error(c)->arg, (name)); \
  } while (0)

static void test_factors(void** state) {
  const tt_scalar half = {.kind = TT_SCALAR_FLOAT, .re = 1.5};
  const tt_scalar two = {.kind = TT_SCALAR_INT, .i = 2};
  const tt_scalar yes = {.kind = TT_SCALAR_BOOL, .i = 1};
  const tt_scalar z = {.kind = TT_SCALAR_COMPLEX, .re = 2, .im = 1};
  const tt_scalar many = {.kind = TT_SCALAR_INT, .i = 300};
  const tt_add_opts by_half = {.set = TT_ADD_ALPHA, .alpha = half};
  const tt_add_opts complex_alpha = {.set = TT_ADD_ALPHA, .alpha = z};
  const tt_add_opts by_yes = {.set = TT_ADD_ALPHA, .alpha = yes};
  const tt_add_opts by_many = {.set = TT_ADD_ALPHA, .alpha = many};
  const tt_sub_opts less_half = {.set = TT_SUB_ALPHA, .alpha = half};
  const tt_addmm_opts complex_addmm = {.set = TT_ADDMM_ALPHA, .alpha = z};
  const tt_addmm_opts times_half = {.set = TT_ADDMM_BETA, .beta = half};
  tt_tensor* i = LONGS(1, 2);
  tt_tensor* f = make(TT_F32, SHAPE(2), DATA(1, 2));
  tt_tensor* u = make(TT_U8, SHAPE(2), DATA(1, 2));
  tt_tensor* b = make(TT_BOOL, SHAPE(2), DATA(0, 1));
  tt_tensor* m = make(TT_F32, SHAPE(1, 1), DATA(3));
  tt_tensor* n;
  tt_tensor* out;
  (void)state;
  OK(tt_to(c, m, &(tt_to_opts){.set = TT_TO_DTYPE, .dtype = TT_I64}, &n));
  REFUSED(tt_add_ex(c, i, i, &by_half, &out), TT_DTYPE, "alpha",
          "add: alpha is 1.5: must be an integer for int64 operands");
  assert_null(out);
  REFUSED(tt_add_scalar_ex(c, i, &two, &by_half, &out), TT_DTYPE, "alpha", "must be an integer");
  REFUSED(tt_add_ex_(c, i, i, &by_half), TT_DTYPE, "alpha", "must be an integer");
  REFUSED(tt_add_ex_into(c, i, i, &by_half, n), TT_DTYPE, "alpha", "must be an integer");
  REFUSED(tt_sub_ex(c, i, i, &less_half, &out), TT_DTYPE, "alpha", "sub: alpha is 1.5");
  REFUSED(tt_add_ex(c, f, f, &complex_alpha, &out), TT_DTYPE, "alpha",
          "alpha is complex: must be real for float32 operands");
  REFUSED(tt_add_ex(c, f, f, &by_yes, &out), TT_DTYPE, "alpha",
          "a bool is allowed for bool operands only");
  REFUSED(tt_add_ex(c, u, u, &by_many, &out), TT_INVALID_ARG, "alpha", "alpha is 300");
  VALUES(i, 1, 2);
  OK(tt_add_ex(c, i, f, &by_half, &out)); /* the operands meet as floats */
  VALUES(out, 2.5, 5);
  OK(tt_add_ex(c, b, b, &by_yes, &out));
  VALUES(out, 0, 1);
  REFUSED(tt_addmm(c, m, m, m, &complex_addmm, &out), TT_INVALID_ARG, "alpha",
          "has an imaginary part");
  OK(tt_addmm(c, n, n, n, &times_half, &out)); /* of integers: truncated, as in PyTorch */
  VALUES(out, 12);
}

static void test_numbers_that_do_not_fit(void** state) {
  const tt_scalar many = {.kind = TT_SCALAR_INT, .i = 300};
  const tt_scalar less = {.kind = TT_SCALAR_INT, .i = -1};
  const tt_scalar huge = {.kind = TT_SCALAR_INT, .i = INT64_C(1) << 40};
  const tt_scalar z = {.kind = TT_SCALAR_COMPLEX, .im = 1};
  tt_tensor* u = make(TT_U8, SHAPE(2), DATA(1, 200));
  tt_tensor* i = make(TT_I32, SHAPE(2), DATA(1, 2));
  tt_tensor* out;
  (void)state;
  REFUSED(tt_clamp(c, u, &many, NULL, &out), TT_INVALID_ARG, "min",
          "clamp: min is 300: uint8 has no values that large");
  REFUSED(tt_clamp(c, u, NULL, &less, &out), TT_INVALID_ARG, "max",
          "max is -1: uint8 has no values that small");
  REFUSED(tt_clamp(c, i, &huge, NULL, &out), TT_INVALID_ARG, "min",
          "int32 has no values that large");
  REFUSED(tt_clamp(c, u, NULL, NULL, &out), TT_INVALID_ARG, "min",
          "min and max are both none: at least one is needed");
  OK(tt_clamp(c, i, NULL, &huge, &out)); /* it bounds nothing */
  VALUES(out, 1, 2);
  OK(tt_clamp(c, u, &less, &many, &out));
  VALUES(out, 1, 200);
  REFUSED(tt_pow_scalar(c, i, &huge, &out), TT_INVALID_ARG, "exponent",
          "int32 cannot represent this value");
  REFUSED(tt_clamp(c, make(TT_F16, SHAPE(1), DATA(1)), NULL, &huge, &out), TT_INVALID_ARG, "max",
          "float16 cannot represent this value");
  OK(tt_clamp(c, make(TT_BF16, SHAPE(1), DATA(1)), NULL, &huge, &out)); /* which has */
  REFUSED(tt_constant_pad_nd(
              c, u, (const int64_t[]){1, 1}, 2,
              &(tt_constant_pad_nd_opts){.set = TT_CONSTANT_PAD_ND_VALUE, .value = many}, &out),
          TT_INVALID_ARG, "value", "uint8 cannot represent this value");
  REFUSED(tt_scalar_tensor(c, &z, TT_F32, &out), TT_INVALID_ARG, "value",
          "float32 cannot represent this value");
}

/* Elementwise operators: messages use the declared names. */
static void test_names_of_operands(void** state) {
  tt_tensor* f = make(TT_F32, SHAPE(2), DATA(1, 2));
  tt_tensor* g = make(TT_F32, SHAPE(3), DATA(1, 2, 3));
  tt_tensor* b = make(TT_BOOL, SHAPE(2), DATA(0, 1));
  tt_tensor* out;
  (void)state;
  REFUSED(tt_add(c, f, g, &out), TT_SHAPE, "other", "self is [2], other is [3]");
  REFUSED(tt_pow(c, f, g, &out), TT_SHAPE, "exponent", "self is [2], exponent is [3]");
  REFUSED(tt_where(c, b, f, g, &out), TT_SHAPE, "other", "other is [3]");
  REFUSED(tt_where(c, f, f, f, &out), TT_DTYPE, "condition", "condition is float32: must be bool");
  REFUSED(tt_sub(c, f, b, &out), TT_NOT_IMPLEMENTED, "other", "other is bool");
  REFUSED(tt_bitwise_and(c, b, f, &out), TT_NOT_IMPLEMENTED, "other",
          "other is float32: must be an integer or bool");
  REFUSED(tt_matmul(c, f, g, &out), TT_SHAPE, "other", "self.shape[-1] (2) must equal");
}

/* Running statistics, the number of batches and the generator are unchanged, wherever a forward
   failed. */
static void test_failing_forward(void** state) {
  tt_module *net, *layer;
  tt_ctx* watcher;
  tt_runtime* rt;
  tt_tensor *in, *out;
  Snapshot* was;
  int64_t n;
  (void)state;
  OK(tt_ctx_runtime(c, &rt));
  OK(tt_ctx_new(rt, &watcher));
  OK(tt_nn_sequential(c, &net));
  OK(tt_nn_batch_norm1d(c, 3, NULL, &layer));
  OK(tt_module_append(c, net, layer));
  tt_module_release(layer);
  OK(tt_nn_dropout(c, NULL, &layer));
  OK(tt_module_append(c, net, layer));
  tt_module_release(layer);
  OK(tt_randn(c, SHAPE(5, 3), NULL, &in));
  const Watched w = {.watcher = watcher, .ctx = c, .modules = &net, .n_modules = 1};
  was = snapshot_take(&w);
  FAILS(tt_module_forward(c, net, LIST(in), NULL, 0, &n), TT_BUFFER_TOO_SMALL, "room for 0");
  assert_null(snapshot_changed(was, &w));
  OK(tt_module_call(c, net, in, &out));
  assert_non_null(snapshot_changed(was, &w));
  snapshot_free(was);
  OK(tt_nn_linear(c, 4, 2, NULL, &layer));
  OK(tt_module_append(c, net, layer));
  tt_module_release(layer);
  was = snapshot_take(&w);
  FAILS(tt_module_call(c, net, in, &out), TT_SHAPE, NULL);
  assert_null(snapshot_changed(was, &w));
  snapshot_free(was);
  tt_module_release(net);
  tt_ctx_release(watcher);
  tt_runtime_release(rt);
}

/* A call that writes several tensors writes none of them if it refuses one. */
static void test_several_writes(void** state) {
  static float memory[2] = {5, 6};
  tt_tensor* params[2] = {param(SHAPE(2), DATA(1, 2)), NULL};
  tt_tensor* grad = make(TT_F64, SHAPE(2), DATA(3, 4));
  tt_tensor* fixed;
  tt_tensor* factor = leaf(DATA(1));
  tt_optimizer* o;
  tt_module* m;
  (void)state;
  OK(tt_tensor_set_grad(c, params[0], grad));
  OK(tt_tensor_import(c, memory, TT_F32, SHAPE(2), NULL, 0, NULL, NULL, &fixed));
  OK(tt_zeros(c, SHAPE(2), NULL, &params[1]));
  OK(tt_requires_grad_(c, params[1], 1));
  OK(tt_tensor_set_grad(c, params[1], fixed));
  OK(tt_optim_sgd(c, params, 2, NULL, &o));
  FAILS(tt_optim_zero_grad(c, o, 0), TT_INVALID_ARG, "read-only");
  FAILS(tt_clip_grad_value_(c, params, 2, 1), TT_INVALID_ARG, "read-only");
  VALUES(grad_of(params[0]), 3, 4);
  tt_optim_release(o);

  OK(tt_nn_sequential(c, &m));
  OK(tt_module_register_parameter(c, m, "a", params[0]));
  OK(tt_requires_grad_(c, params[1], 0));
  OK(tt_module_register_parameter(c, m, "b", params[1]));
  OK(tt_mul_(c, params[1], factor)); /* a result now */
  FAILS(tt_module_requires_grad_(c, m, 0), TT_AUTOGRAD, "only leaves");
  assert_true(tt_tensor_requires_grad(params[0]));
  tt_module_release(m);
}

/* A state that contains the module's own tensors under other names. */
static void test_state_of_the_module_itself(void** state) {
  tt_tensor* a = make(TT_F64, SHAPE(2), DATA(1, 2));
  tt_tensor* b = make(TT_F64, SHAPE(2), DATA(3, 4));
  tt_state_dict* swapped;
  tt_module* m;
  (void)state;
  OK(tt_nn_sequential(c, &m));
  OK(tt_module_register_buffer(c, m, "a", a, 1));
  OK(tt_module_register_buffer(c, m, "b", b, 1));
  OK(tt_state_dict_new(c, &swapped));
  OK(tt_state_dict_set(c, swapped, "a", b));
  OK(tt_state_dict_set(c, swapped, "b", a));
  OK(tt_module_load_state_dict(c, m, swapped, NULL));
  VALUES(a, 3, 4);
  VALUES(b, 1, 2);
  tt_state_dict_release(swapped);
  tt_module_release(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {SCOPED(test_bad_indices),
                                     SCOPED(test_bad_mixed_indices),
                                     SCOPED(test_bad_targets),
                                     SCOPED(test_in_place_changes_nothing),
                                     SCOPED(test_into_takes_exactly_the_result),
                                     SCOPED(test_chance_is_not_used_up),
                                     SCOPED(test_lists),
                                     SCOPED(test_complex_arithmetic),
                                     SCOPED(test_factors),
                                     SCOPED(test_numbers_that_do_not_fit),
                                     SCOPED(test_names_of_operands),
                                     SCOPED(test_failing_forward),
                                     SCOPED(test_several_writes),
                                     SCOPED(test_state_of_the_module_itself)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
