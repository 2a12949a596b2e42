/* Operators with index tensors, and mixed indexing. */
#include "harness.h"

static tt_tensor* ints(const int64_t* shape, int64_t ndim, const int64_t* values) {
  tt_tensor* t;
  OK(tt_tensor_from_data(c, values, TT_I64, shape, ndim, &t));
  return t;
}
#define INTS(...)                                                                           \
  ints((const int64_t[]){(int64_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))}, 1, \
       (const int64_t[]){__VA_ARGS__})
static tt_tensor* mask(const int64_t* shape, int64_t ndim, const uint8_t* values) {
  tt_tensor* t;
  OK(tt_tensor_from_data(c, values, TT_BOOL, shape, ndim, &t));
  return t;
}
static tt_tensor* range(int64_t n, const int64_t* shape, int64_t ndim) {
  const tt_scalar from = int_scalar(0);
  const tt_scalar to = int_scalar(n);
  const tt_arange_opts opts = {.set = TT_ARANGE_DTYPE, .dtype = TT_F64};
  tt_tensor *flat, *out;
  OK(tt_arange(c, &from, &to, &opts, &flat));
  OK(tt_reshape(c, flat, shape, ndim, &out));
  return out;
}

/* Items of a mixed index. */
static tt_index at(int64_t i) { return (tt_index){.kind = TT_IDX_INT, .start = i}; }
static tt_index all(void) { return (tt_index){.kind = TT_IDX_SLICE}; }
static tt_index slice(int64_t from, int64_t to, int64_t step) {
  return (tt_index){.kind = TT_IDX_SLICE, .has = 7, .start = from, .stop = to, .step = step};
}
static tt_index none(void) { return (tt_index){.kind = TT_IDX_NONE}; }
static tt_index dots(void) { return (tt_index){.kind = TT_IDX_ELLIPSIS}; }
static tt_index by(const tt_tensor* t) { return (tt_index){.kind = TT_IDX_TENSOR, .tensor = t}; }
#define ITEMS(...) \
  (const tt_index[]){__VA_ARGS__}, (int64_t)(sizeof((tt_index[]){__VA_ARGS__}) / sizeof(tt_index))
static tt_tensor* get(const tt_tensor* x, const tt_index* items, int64_t n) {
  tt_tensor* out;
  OK(tt_index_get(c, x, items, n, &out));
  return out;
}

/* ---- gather, scatter_add, index_select, index_add ---- */

static void gather_and_scatter_add(void** state) {
  tt_tensor* x = param(SHAPE(2, 3), DATA(1, 2, 3, 4, 5, 6));
  tt_tensor* i = ints(SHAPE(2, 2), (int64_t[]){2, 0, 1, 1});
  tt_tensor* y;
  tt_tensor* z;
  (void)state;
  OK(tt_gather(c, x, 1, i, &y));
  VALUES(y, 3, 1, 5, 5);
  OK(tt_backward(c, sum_of(y), NULL));
  VALUES(grad_of(x), 1, 0, 1, 0, 2, 0);
  OK(tt_scatter_add(c, x, 1, i, make(TT_F64, SHAPE(2, 2), DATA(10, 20, 30, 40)), &z));
  VALUES(z, 21, 2, 13, 4, 75, 6);
  VALUES(x, 1, 2, 3, 4, 5, 6);
}

static void select_and_add_along_a_strided_dimension(void** state) {
  tt_tensor *x = range(12, SHAPE(3, 4)), *t, *y, *z;
  tt_index_add_opts twice = {.set = TT_INDEX_ADD_ALPHA, .alpha = real_scalar(2)};
  (void)state;
  OK(tt_t(c, x, &t));
  OK(tt_index_select(c, t, 0, INTS(3, 0, 3), &y));
  VALUES(y, 3, 7, 11, 0, 4, 8, 3, 7, 11);
  OK(tt_index_add_ex(c, t, 0, INTS(1, 1), make(TT_F64, SHAPE(2, 3), DATA(1, 1, 1, 2, 2, 2)), &twice,
                     &z));
  VALUES(z, 0, 4, 8, 7, 11, 15, 2, 6, 10, 3, 7, 11);
  OK(tt_index_add_(c, t, 0, INTS(0), make(TT_F64, SHAPE(1, 3), DATA(100, 100, 100))));
  VALUES(x, 100, 1, 2, 3, 104, 5, 6, 7, 108, 9, 10, 11);
}

static void range_errors_name_value_and_place(void** state) {
  tt_tensor* x = numbers(TT_F32, DATA(1, 2, 3));
  tt_tensor* out = x;
  tt_tensor* wide;
  (void)state;
  FAILS(tt_gather(c, x, 0, INTS(0, 1, 3, 9), &out), TT_INDEX,
        "index holds 3 at [2]: must be in [0, 3)");
  assert_null(out);
  FAILS(tt_scatter_add(c, x, 0, INTS(1, -1), numbers(TT_F32, DATA(1, 2)), &out), TT_INDEX,
        "index holds -1 at [1]: must be in [0, 3)");
  assert_null(out);
  OK(tt_zeros(c, SHAPE(0), NULL, &wide));
  FAILS(tt_gather(c, wide, 0, INTS(5), &out), TT_INDEX, "index holds 5 at [0]: must be in [0, 0)");
  OK(tt_expand(c, ints(SHAPE(2, 1), (int64_t[]){1, 2}), SHAPE(2, 3), &wide));
  FAILS(tt_gather(c, range(6, SHAPE(2, 3)), 0, wide, &out), TT_INDEX,
        "index holds 2 at [1,0]: must be in [0, 2)");
  FAILS(tt_scatter_add(c, x, 0, numbers(TT_I32, DATA(0, -3)), numbers(TT_F32, DATA(1, 2)), &out),
        TT_INDEX, "index holds -3 at [1]: must be in [0, 3)");
  FAILS(tt_index_select(c, x, 0, INTS(0, -1), &out), TT_INDEX,
        "index holds -1 at [1]: must be in [0, 3)");
  FAILS(tt_gather(c, x, 1, INTS(0), &out), TT_INDEX, "dim");
  FAILS(tt_gather(c, x, 0, numbers(TT_F32, DATA(0)), &out), TT_DTYPE, "index is float32");
  FAILS(tt_gather(c, x, 0, ints(SHAPE(1, 1), (int64_t[]){0}), &out), TT_SHAPE,
        "same number of dimensions");
  FAILS(tt_index_select(c, x, 0, ints(SHAPE(1, 1), (int64_t[]){0}), &out), TT_SHAPE, "1-D");
}

/* Numbers in tensors that are read while a graph is captured: each run reads its own if their items
   ask for it, else the capture refuses the read. */
static void numbers_in_captures(void** state) {
  tt_tensor* x = range(6, SHAPE(3, 2));
  tt_tensor *row = number(TT_I64, 1), *column = number(TT_I64, -1), *out, *slot;
  tt_index items[2] = {by(row), by(column)};
  tt_graph* g;
  tt_plan* p;
  (void)state;
  items[1].has = 1;
  OK(tt_capture_begin(c, LIST(row, column), NULL));
  FAILS(tt_index_get(c, x, items, 2, &out), TT_INVALID_ARG, "elements of a tensor are read");
  items[0].has = 1;
  OK(tt_index_get(c, x, items, 2, &out));
  OK(tt_capture_end(c, LIST(out), &g));
  assert_int_equal(tt_tensor_ndim(out), 0);
  VALUES(out, 3);
  OK(tt_plan_new(c, g, NULL, &p));
  OK(tt_plan_slot(c, p, 0, 0, &slot));
  OK(tt_copy_(c, slot, number(TT_I64, 2)));
  OK(tt_plan_slot(c, p, 0, 1, &slot));
  OK(tt_copy_(c, slot, number(TT_I64, 0)));
  OK(tt_plan_run(c, p));
  OK(tt_plan_slot(c, p, 1, 0, &out));
  VALUES(out, 4);
  OK(tt_copy_(c, slot, number(TT_I64, 2)));
  FAILS(tt_plan_run(c, p), TT_INDEX, "indices holds 2");
  tt_plan_release(p);
  tt_graph_release(g);
  OK(tt_index_get(c, x, items, 2, &out)); /* without a capture, a view */
  assert_ptr_equal(tt_tensor_data(out), (double*)tt_tensor_data(x) + 3);
}

static void failing_writes_change_nothing(void** state) {
  tt_tensor* x = numbers(TT_F32, DATA(1, 2, 3));
  tt_tensor* v = numbers(TT_F32, DATA(10, 20));
  tt_tensor* bad = INTS(0, 3);
  const uint32_t version = tt_tensor_version(x);
  (void)state;
  FAILS(tt_scatter_add_(c, x, 0, bad, v), TT_INDEX, "index holds 3 at [1]");
  FAILS(tt_index_add_(c, x, 0, bad, v), TT_INDEX, "index holds 3 at [1]");
  FAILS(tt_index_put_(c, x, LIST(bad), v, 0), TT_INDEX,
        "indices holds 3 at [1]: must be in [-3, 3)");
  FAILS(tt_index_put_(c, x, LIST(bad), numbers(TT_F64, DATA(1, 2)), 0), TT_DTYPE,
        "values is float64, self is float32");
  FAILS(tt_index_put_(c, x, LIST(INTS(0, 1)), numbers(TT_F32, DATA(1, 2, 3)), 0), TT_SHAPE,
        "values is [3]");
  FAILS(tt_index_set(c, x, ITEMS(by(bad)), v), TT_INDEX, "indices holds 3 at [1]");
  VALUES(x, 1, 2, 3);
  assert_int_equal(tt_tensor_version(x), version);
}

static void an_operand_may_share_memory_with_what_is_written(void** state) {
  tt_tensor* x = ints(SHAPE(4), (int64_t[]){3, 2, 1, 0});
  (void)state;
  OK(tt_index_put_(c, x, LIST(x), x, 0)); /* x[x] = x, with the values from before */
  VALUES(x, 0, 1, 2, 3);
  OK(tt_index_put_(c, x, LIST(x), x, 1));
  VALUES(x, 0, 2, 4, 6);
}

/* ---- embedding ---- */

static void embedding_skips_the_padding_row_in_backward(void** state) {
  tt_tensor* w = param(SHAPE(3, 2), DATA(1, 2, 3, 4, 5, 6));
  tt_tensor* i = ints(SHAPE(2, 2), (int64_t[]){2, 0, 2, 1});
  tt_tensor* y;
  const tt_embedding_opts padded = {.set = TT_EMBEDDING_PADDING_IDX, .padding_idx = -1};
  (void)state;
  OK(tt_embedding(c, w, i, NULL, &y));
  HAS_SHAPE(y, 2, 2, 2);
  VALUES(y, 5, 6, 1, 2, 5, 6, 3, 4);
  VALUES(derive(y, w, 0), 1, 1, 1, 1, 2, 2);
  OK(tt_embedding(c, w, i, &padded, &y)); /* row -1: the last */
  VALUES(derive(y, w, 0), 1, 1, 1, 1, 0, 0);
  FAILS(tt_embedding(c, w, INTS(3), NULL, &y), TT_INDEX,
        "indices holds 3 at [0]: must be in [0, 3)");
}

/* ---- mixed indexing ---- */

static void basic_items_give_views(void** state) {
  tt_tensor* x = range(24, SHAPE(2, 3, 4));
  tt_tensor* y = get(x, ITEMS(at(-1), none(), slice(0, 3, 2), at(1)));
  (void)state;
  HAS_SHAPE(y, 1, 2);
  VALUES(y, 13, 21);
  OK(tt_fill_f64_(c, y, -1));
  VALUES(get(x, ITEMS(at(1), all(), at(1))), -1, 17, -1);
  y = get(x, ITEMS(dots(), at(3)));
  HAS_SHAPE(y, 2, 3);
  assert_int_equal(tt_tensor_is_view(get(x, ITEMS(dots()))), 1);
}

static void dimensions_of_index_tensors_keep_their_place_or_come_first(void** state) {
  tt_tensor* x = range(24, SHAPE(2, 3, 4));
  tt_tensor* i = ints(SHAPE(2, 1), (int64_t[]){2, 0});
  tt_tensor* j = INTS(-1, 1);
  (void)state;
  HAS_SHAPE(get(x, ITEMS(all(), by(j))), 2, 2, 4);
  VALUES(get(x, ITEMS(at(0), by(i), by(j))), 11, 9, 3, 1); /* neighbours, broadcast */
  HAS_SHAPE(get(x, ITEMS(all(), by(i), by(j))), 2, 2, 2);
  HAS_SHAPE(get(x, ITEMS(by(INTS(0, 1, 1)), all(), by(INTS(0, 1, 2)))), 3, 3); /* apart: in front */
  VALUES(get(x, ITEMS(by(INTS(1, 0)), all(), by(j))), 15, 19, 23, 1, 5, 9);
  VALUES(get(x, ITEMS(by(number(TT_I64, 1)), at(0), at(0))), 12);
}

static void masks_pick_and_write(void** state) {
  tt_tensor* x = range(6, SHAPE(2, 3));
  tt_tensor* m = mask(SHAPE(2, 3), (uint8_t[]){0, 1, 0, 1, 1, 0});
  tt_tensor* row = mask(SHAPE(2), (uint8_t[]){0, 1});
  tt_tensor* t;
  (void)state;
  VALUES(get(x, ITEMS(by(m))), 1, 3, 4);
  VALUES(get(x, ITEMS(by(row), slice(1, 3, 1))), 4, 5);
  OK(tt_t(c, x, &t));
  VALUES(get(t, ITEMS(by(mask(SHAPE(3, 2), (uint8_t[]){0, 1, 1, 0, 0, 1})))), 3, 1, 5);
  OK(tt_index_set(c, x, ITEMS(by(m)), number(TT_F32, -1)));
  VALUES(x, 0, -1, 2, -1, -1, 5);
  OK(tt_index_set(c, x, ITEMS(by(m)), numbers(TT_F64, DATA(7, 8, 9))));
  VALUES(x, 0, 7, 2, 8, 9, 5);
  OK(tt_index_set(c, x, ITEMS(all(), by(mask(SHAPE(3), (uint8_t[]){1, 0, 0}))), number(TT_F64, 6)));
  VALUES(x, 6, 7, 2, 6, 9, 5);
  OK(tt_index_set(c, x, ITEMS(by(row)), number(TT_F64, 3)));
  VALUES(x, 6, 7, 2, 3, 3, 3);
  FAILS(tt_index_set(c, x, ITEMS(by(mask(SHAPE(3), (uint8_t[]){1, 0, 1}))), number(TT_F64, 0)),
        TT_INDEX, "a mask is [3]");
  HAS_SHAPE(get(x, ITEMS(by(mask(NULL, 0, (uint8_t[]){1})))), 1, 2, 3);
  HAS_SHAPE(get(x, ITEMS(by(mask(NULL, 0, (uint8_t[]){0})))), 0, 2, 3);
  FAILS(tt_index_get(c, x, ITEMS(by(mask(SHAPE(3), (uint8_t[]){1, 0, 1}))), &t), TT_INDEX,
        "a mask is [3]");
}

static void writing_through_views(void** state) {
  tt_tensor* x = range(6, SHAPE(2, 3));
  (void)state;
  OK(tt_index_set(c, x, ITEMS(at(1)), make(TT_F32, SHAPE(1, 1, 3), DATA(7, 8, 9))));
  VALUES(x, 0, 1, 2, 7, 8, 9);
  OK(tt_index_set(c, x, ITEMS(all(), by(INTS(2, 0))), numbers(TT_F64, DATA(-1, -2))));
  VALUES(x, -2, 1, -1, -2, 8, -1);
  OK(tt_index_set(c, x, ITEMS(dots()), number(TT_I32, 3)));
  VALUES(x, 3, 3, 3, 3, 3, 3);
}

static void gradients_of_getting_and_setting(void** state) {
  tt_tensor* x = param(SHAPE(2, 3), DATA(1, 2, 3, 4, 5, 6));
  tt_tensor* v = leaf(DATA(10, 20));
  tt_tensor* y;
  tt_tensor* i = INTS(0, 2, 0);
  tt_tensor* g;
  (void)state;
  y = get(x, ITEMS(all(), by(i)));
  VALUES(derive(y, x, 0), 2, 0, 1, 2, 0, 1);
  y = get(x, ITEMS(all(), by(i)));
  OK(tt_mul(c, y, y, &y));
  g = derive(y, x, 1);
  VALUES(g, 4, 0, 6, 16, 0, 12);
  VALUES(derive(g, x, 0), 4, 0, 2, 4, 0, 2);
  OK(tt_mul_f64(c, x, 3, &y));
  OK(tt_index_set(c, y, ITEMS(at(0), by(INTS(2, 1))), v));
  VALUES(y, 3, 20, 10, 12, 15, 18);
  OK(tt_mul(c, y, y, &y));
  OK(tt_backward(c, sum_of(y), NULL));
  VALUES(grad_of(x), 18, 0, 0, 72, 90, 108);
  VALUES(grad_of(v), 20, 40);
  FAILS(tt_index_set(c, x, ITEMS(at(0)), number(TT_F64, 0)), TT_AUTOGRAD, "leaf");
  FAILS(tt_index_put_(c, x, LIST(INTS(0)), number(TT_F64, 0), 0), TT_AUTOGRAD, "leaf");
}

static void bad_mixed_indices(void** state) {
  tt_tensor* x = range(6, SHAPE(2, 3));
  tt_tensor* out = x;
  const tt_index strange = {.kind = 9};
  (void)state;
  FAILS(tt_index_get(c, x, ITEMS(at(0), at(0), at(0)), &out), TT_INDEX, "index has 3 items");
  assert_null(out);
  FAILS(tt_index_get(c, x, ITEMS(at(0), at(3)), &out), TT_INDEX,
        "index 3 is out of range: dimension 1 of self has size 3");
  FAILS(tt_index_get(c, x, ITEMS(dots(), dots()), &out), TT_INDEX, "2 ellipses");
  FAILS(tt_index_get(c, x, ITEMS(slice(0, 2, 0)), &out), TT_INVALID_ARG, "step");
  FAILS(tt_index_get(c, x, ITEMS(by(numbers(TT_F32, DATA(0)))), &out), TT_INDEX, "float32");
  FAILS(tt_index_get(c, x, ITEMS(by(INTS(0, 1)), by(INTS(0, 1, 2))), &out), TT_INDEX, "broadcast");
  FAILS(tt_index_get(c, x, &strange, 1, &out), TT_INVALID_ARG, "kind");
  FAILS(tt_index_get(c, x, ITEMS(by(NULL)), &out), TT_BAD_HANDLE, NULL);
}

static void sizes_and_steps_at_their_limits(void** state) {
  tt_tensor *x = range(12, SHAPE(3, 4)), *out;
  const tt_eye_opts wide = {.set = TT_EYE_M, .m = INT64_MAX};
  (void)state;
  VALUES(get(x, ITEMS(slice(1, 3, INT64_MAX), at(0))), 4);
  HAS_SHAPE(get(x, ITEMS(slice(0, 3, INT64_MAX - 1))), 1, 4);
  HAS_SHAPE(get(x, ITEMS(slice(2, 1, INT64_MAX))), 0, 4);
  HAS_SHAPE(get(x, ITEMS(slice(INT64_MIN, INT64_MAX, 2))), 2, 4);
  OK(tt_zeros(c, SHAPE(0), NULL, &x));
  FAILS(tt_reshape(c, x, SHAPE(0, INT64_MAX, INT64_MAX), &out), TT_SHAPE, "overflows");
  FAILS(tt_reshape(c, x, SHAPE(INT64_MAX, INT64_MAX, 0), &out), TT_SHAPE, "overflows");
  OK(tt_reshape(c, x, SHAPE(INT64_MAX, 0), &out));
  OK(tt_eye(c, 0, &wide, &out));
  HAS_SHAPE(out, 0, INT64_MAX);
}

/* The strides in bytes of a tensor without elements may overflow. */
static void wide_tensors_without_elements(void** state) {
  const tt_eye_opts wide = {.set = TT_EYE_M, .m = INT64_MAX};
  const int64_t last = INT64_MAX - 1;
  const tt_unbind_opts along_1 = {.set = TT_UNBIND_DIM, .dim = 1};
  tt_tensor *x, *y, *out;
  int64_t n;
  char text[128];
  (void)state;
  OK(tt_eye(c, 0, &wide, &x));
  OK(tt_select(c, x, 1, last, &out));
  HAS_SHAPE(out, 0);
  OK(tt_unsqueeze(c, x, 0, &out));
  HAS_SHAPE(out, 1, 0, INT64_MAX);
  OK(tt_diagonal(c, x, NULL, &out));
  HAS_SHAPE(out, 0);
  OK(tt_add(c, x, x, &out));
  OK(tt_sum(c, x, NULL, &out));
  VALUES(out, 0);
  OK(tt_roll(c, x, SHAPE(last), SHAPE(1), &out));
  OK(tt_tril(c, x, NULL, &out));
  OK(tt_t(c, x, &y));
  OK(tt_matmul(c, x, y, &out));
  HAS_SHAPE(out, 0, 0);
  OK(tt_tensor_print(c, x, text, sizeof text, &n));
  assert_int_equal(tt_unbind(c, x, &along_1, &out, 1, &n), TT_OOM);
}

/* Views of one element may have more elements than any memory, and their results more than 64
   bits can count. */
static void results_whose_size_overflows(void** state) {
  const tt_to_opts wide = {.set = TT_TO_DTYPE, .dtype = TT_C128};
  tt_tensor *one, *column, *row, *all, *out;
  (void)state;
  OK(tt_ones(c, SHAPE(1), NULL, &one));
  OK(tt_expand(c, one, SHAPE(INT64_C(1) << 32, 1), &column));
  OK(tt_expand(c, one, SHAPE(INT64_C(1) << 32), &row));
  FAILS(tt_add(c, column, row, &out), TT_SHAPE, "overflows");
  FAILS(tt_lt(c, column, row, &out), TT_SHAPE, "overflows");
  OK(tt_reshape(c, row, SHAPE(1, -1), &all));
  FAILS(tt_matmul(c, column, all, &out), TT_SHAPE, "overflows");
  OK(tt_expand(c, one, SHAPE(INT64_C(1) << 60), &row));
  FAILS(tt_to(c, row, &wide, &out), TT_SHAPE, "overflows");
  FAILS(tt_exp(c, row, &out), TT_OOM, NULL);
}

static void meta_tensors_have_shapes_only(void** state) {
  const tt_device meta = {TT_META, 0};
  const tt_empty_opts opts = {.set = TT_EMPTY_DEVICE, .device = meta};
  const tt_to_opts to = {.set = TT_TO_DEVICE, .device = meta};
  tt_tensor *x, *i, *y;
  (void)state;
  OK(tt_empty(c, SHAPE(4, 5), &opts, &x));
  OK(tt_to(c, INTS(9, 9, 9), &to, &i)); /* out of range, which is known only with data */
  HAS_SHAPE(get(x, ITEMS(all(), by(i))), 4, 3);
  OK(tt_index_select(c, x, 0, i, &y));
  HAS_SHAPE(y, 3, 5);
  OK(tt_embedding(c, x, i, NULL, &y));
  HAS_SHAPE(y, 3, 5);
  OK(tt_index_put_(c, x, LIST(i), number(TT_F32, 1), 0));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCOPED(gather_and_scatter_add),
      SCOPED(select_and_add_along_a_strided_dimension),
      SCOPED(range_errors_name_value_and_place),
      SCOPED(numbers_in_captures),
      SCOPED(failing_writes_change_nothing),
      SCOPED(an_operand_may_share_memory_with_what_is_written),
      SCOPED(embedding_skips_the_padding_row_in_backward),
      SCOPED(basic_items_give_views),
      SCOPED(dimensions_of_index_tensors_keep_their_place_or_come_first),
      SCOPED(masks_pick_and_write),
      SCOPED(writing_through_views),
      SCOPED(gradients_of_getting_and_setting),
      SCOPED(bad_mixed_indices),
      SCOPED(sizes_and_steps_at_their_limits),
      SCOPED(wide_tensors_without_elements),
      SCOPED(results_whose_size_overflows),
      SCOPED(meta_tensors_have_shapes_only),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
