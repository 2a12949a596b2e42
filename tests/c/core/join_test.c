/* cat, stack, split. */
#include "harness.h"

static void cat_along_each_dimension(void** state) {
  const tt_cat_opts second = {.set = TT_CAT_DIM, .dim = -1};
  tt_tensor* a = make(TT_F32, SHAPE(2, 2), DATA(1, 2, 3, 4));
  tt_tensor* b = make(TT_F32, SHAPE(2, 1), DATA(5, 6));
  tt_tensor* t;
  tt_tensor* y;
  (void)state;
  OK(tt_cat(c, LIST(a, b, a), &second, &y));
  HAS_SHAPE(y, 2, 5);
  VALUES(y, 1, 2, 5, 1, 2, 3, 4, 6, 3, 4);
  OK(tt_t(c, a, &t));
  OK(tt_cat(c, LIST(a, t), NULL, &y));
  VALUES(y, 1, 2, 3, 4, 1, 3, 2, 4);
}

static void cat_promotes_and_skips_empty_vectors(void** state) {
  tt_tensor* a = make(TT_I32, SHAPE(1, 2), DATA(1, 2));
  tt_tensor* b = make(TT_F64, SHAPE(1, 2), DATA(0.5, 1.5));
  tt_tensor* none = numbers(TT_F32, NULL, 0);
  tt_tensor* y;
  (void)state;
  OK(tt_cat(c, LIST(none, a, b), NULL, &y));
  assert_int_equal(tt_tensor_dtype(y), TT_F64);
  VALUES(y, 1, 2, 0.5, 1.5);
  OK(tt_cat(c, LIST(none, none), NULL, &y));
  HAS_SHAPE(y, 0);
}

static void cat_refuses_mismatched_shapes(void** state) {
  tt_tensor* a = make(TT_F32, SHAPE(2, 2), DATA(1, 2, 3, 4));
  tt_tensor* b = make(TT_F32, SHAPE(2, 1), DATA(5, 6));
  tt_tensor* y = a;
  (void)state;
  FAILS(tt_cat(c, LIST(a, b), NULL, &y), TT_SHAPE,
        "shapes [2,2] and [2,1]: all sizes except that of dim 0");
  assert_null(y);
  FAILS(tt_cat(c, NULL, 0, NULL, &y), TT_INVALID_ARG, "tensors is empty");
  FAILS(tt_cat(c, LIST(number(TT_F32, 1)), NULL, &y), TT_SHAPE, "0-dim");
  FAILS(tt_cat(c, LIST(a, NULL), NULL, &y), TT_BAD_HANDLE, "tensors");
  FAILS(tt_stack(c, LIST(a, b), NULL, &y), TT_SHAPE, "must be equal");
  FAILS(tt_cat_into(c, LIST(a), NULL, a), TT_INVALID_ARG, "shares memory");
}

static void gradients_flow_to_each_tensor(void** state) {
  const tt_stack_opts last = {.set = TT_STACK_DIM, .dim = -1};
  tt_tensor* a = leaf(DATA(1, 2));
  tt_tensor* b = leaf(DATA(3, 4));
  tt_tensor* plain = numbers(TT_F64, DATA(9));
  tt_tensor* y;
  tt_tensor* g;
  (void)state;
  OK(tt_cat(c, LIST(a, plain, b, a), NULL, &y));
  OK(tt_mul(c, y, y, &y));
  g = derive(y, a, 1);
  VALUES(g, 4, 8);
  VALUES(derive(g, a, 0), 4, 4);
  OK(tt_cat(c, LIST(a, b), NULL, &y));
  OK(tt_mul(c, y, y, &y));
  VALUES(derive(y, b, 0), 6, 8);
  OK(tt_stack(c, LIST(a, b), &last, &y));
  HAS_SHAPE(y, 2, 2);
  VALUES(y, 1, 3, 2, 4);
  OK(tt_mul(c, y, make(TT_F64, SHAPE(2, 2), DATA(1, 10, 100, 1000)), &y));
  VALUES(derive(y, b, 0), 10, 1000);
}

static void split_gives_views(void** state) {
  tt_tensor *x = numbers(TT_F32, DATA(1, 2, 3, 4, 5)), *parts[3];
  int64_t n;
  (void)state;
  OK(tt_split(c, x, 2, NULL, parts, 3, &n));
  assert_int_equal(n, 3);
  VALUES(parts[0], 1, 2);
  VALUES(parts[2], 5);
  OK(tt_zero_(c, parts[1]));
  VALUES(x, 1, 2, 0, 0, 5);
  FAILS(tt_split(c, x, 1, NULL, parts, 3, &n), TT_BUFFER_TOO_SMALL,
        "room for 3 tensors, the result has 5");
  assert_int_equal(n, 5);
  assert_null(parts[0]);
  FAILS(tt_split(c, x, 0, NULL, parts, 3, &n), TT_INVALID_ARG, "split_size is 0");
  FAILS(tt_split_with_sizes(c, x, SHAPE(2, 2), NULL, parts, 3, &n), TT_INVALID_ARG,
        "must add up to 5");
  FAILS(tt_split_with_sizes(c, x, SHAPE(6, -1), NULL, parts, 3, &n), TT_INVALID_ARG, "negative");
  FAILS(tt_split(c, number(TT_F32, 1), 1, NULL, parts, 3, &n), TT_SHAPE, "0-dim");
}

static void split_into_many_parts(void** state) {
  enum { kParts = 200 };
  int64_t sizes[kParts], n, i;
  tt_tensor *x, *parts[kParts];
  const int64_t shape = kParts;
  (void)state;
  for (i = 0; i < kParts; i++) sizes[i] = 1;
  OK(tt_zeros(c, &shape, 1, NULL, &x));
  OK(tt_split_with_sizes(c, x, sizes, kParts, NULL, parts, kParts, &n));
  assert_int_equal(n, kParts);
}

static void gradient_of_split(void** state) {
  tt_tensor *x = leaf(DATA(1, 2, 3, 4)), *parts[2], *y, *g;
  int64_t n;
  (void)state;
  OK(tt_split_with_sizes(c, x, SHAPE(1, 3), NULL, parts, 2, &n));
  OK(tt_mul(c, parts[1], parts[1], &y)); /* the other part is not used: its gradient is 0 */
  g = derive(y, x, 1);
  VALUES(g, 0, 4, 6, 8);
  VALUES(derive(g, x, 0), 0, 2, 2, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCOPED(cat_along_each_dimension),
      SCOPED(cat_promotes_and_skips_empty_vectors),
      SCOPED(cat_refuses_mismatched_shapes),
      SCOPED(gradients_flow_to_each_tensor),
      SCOPED(split_gives_views),
      SCOPED(split_into_many_parts),
      SCOPED(gradient_of_split),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
