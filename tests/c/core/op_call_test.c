/* tt_op_find, tt_op_call, tt_manifest: operators by name. */
#include "support.h"

static tt_value tensor_value(tt_tensor* t) {
  tt_value v;
  memset(&v, 0, sizeof v);
  v.tag = TT_VAL_TENSOR;
  v.tensor = t;
  return v;
}
static tt_value int_value(int64_t i) {
  tt_value v;
  memset(&v, 0, sizeof v);
  v.tag = TT_VAL_INT;
  v.i = i;
  return v;
}
static tt_value float_value(double f) {
  tt_value v;
  memset(&v, 0, sizeof v);
  v.tag = TT_VAL_FLOAT;
  v.f = f;
  return v;
}
static tt_value none(void) {
  tt_value v;
  memset(&v, 0, sizeof v);
  return v;
}
static const tt_op* find(tt_ctx* c, const char* name) {
  const tt_op* op = NULL;
  OK(tt_op_find(c, name, &op));
  assert_non_null(op);
  assert_string_equal(tt_op_name(op), name);
  return op;
}

static const double k12[] = {1, 2};
static const double k34[] = {3, 4};

static void test_find(void** state) {
  CTX;
  const tt_op* op;
  assert_true(strstr(tt_op_schema(find(c, "add")), "alpha: Scalar = 1") != NULL);
  assert_string_equal(tt_op_schema(find(c, "add_into")), tt_op_schema(find(c, "add")));
  assert_true(!strncmp(tt_op_schema(find(c, "normal_")), "normal_(", 8)); /* "normal" is, too */
  find(c, "add_");
  find(c, "add_into");
  find(c, "sum_dim");
  find(c, "zeros");
  FAILS(TT_NOT_IMPLEMENTED, tt_op_find(c, "no_such_operator", &op));
  assert_null(op);
  SAYS("no_such_operator");
  FAILS(TT_NOT_IMPLEMENTED, tt_op_find(c, "tanh_backward", &op)); /* internal */
  FAILS(TT_INVALID_ARG, tt_op_find(c, NULL, &op));
  FAILS(TT_INVALID_ARG, tt_op_find(c, "add", NULL));
  assert_int_equal(tt_op_find(NULL, "add", &op), TT_BAD_HANDLE);
  assert_null(tt_op_name(NULL));
  assert_null(tt_op_schema((const tt_op*)c));
}

static void test_every_name_of_the_manifest_is_found(void** state) {
  CTX;
  const char* p = tt_manifest();
  int found = 0;
  assert_true(strncmp(p, "{\"format\":1,", 12) == 0);
  while ((p = strstr(p, "{\"name\":\"")) != NULL) {
    char name[64];
    const char *end, *internal;
    int64_t n;
    const tt_op* op;
    p += 9;
    end = strchr(p, '"');
    n = end - p;
    assert_true(n < (int64_t)sizeof name);
    memcpy(name, p, (size_t)n);
    name[n] = 0;
    internal = strstr(p, "\"internal\":");
    assert_non_null(internal);
    if (strncmp(internal + 11, "true", 4) == 0) continue;
    OK(tt_op_find(c, name, &op));
    found++;
  }
  assert_true(found > 40);
}

static void test_defaults(void** state) {
  CTX;
  tt_tensor* a = vec(c, k12, 2);
  tt_tensor* b = vec(c, k34, 2);
  tt_tensor* out = NULL;
  int64_t n = -1;
  tt_value args[3];
  args[0] = tensor_value(a);
  args[1] = tensor_value(b);
  args[2] = none();
  OK(tt_op_call(c, find(c, "add"), args, 2, &out, 1, &n));
  assert_int_equal(n, 1);
  HOLDS(out, 4, 6);
  tt_tensor_release(out);
  OK(tt_op_call(c, find(c, "add"), args, 3, &out, 1, &n));
  HOLDS(out, 4, 6);
  tt_tensor_release(out);
  args[2] = float_value(10);
  OK(tt_op_call(c, find(c, "add"), args, 3, &out, 1, &n));
  HOLDS(out, 31, 42);
  tt_tensor_release(out);
  args[2] = int_value(-1);
  OK(tt_op_call(c, find(c, "add"), args, 3, &out, 1, &n));
  HOLDS(out, -2, -2);
  tt_tensor_release(out);
  tt_tensor_release(a);
  tt_tensor_release(b);
}

static void test_variants(void** state) {
  CTX;
  tt_tensor* a = vec(c, k12, 2);
  tt_tensor* b = vec(c, k34, 2);
  tt_tensor* dst = vec(c, k12, 2);
  int64_t n = -1;
  tt_value args[4];
  args[0] = tensor_value(a);
  args[1] = tensor_value(b);
  args[2] = none();
  args[3] = tensor_value(dst);
  OK(tt_op_call(c, find(c, "add_into"), args, 4, NULL, 0, &n));
  assert_int_equal(n, 0);
  HOLDS(dst, 4, 6);
  OK(tt_op_call(c, find(c, "add_"), args, 2, NULL, 0, &n));
  HOLDS(a, 4, 6);
  assert_int_equal(tt_tensor_version(a), 1);
  tt_tensor_release(a);
  tt_tensor_release(b);
  tt_tensor_release(dst);
}

static void test_other_types(void** state) {
  CTX;
  const double six[] = {1, 2, 3, 4, 5, 6};
  const int64_t dims[] = {0, 1};
  const int64_t size[] = {2, 3};
  tt_tensor* a = mat(c, six, 2, 3);
  tt_tensor* out = NULL;
  tt_tensor* two[2];
  int64_t n;
  tt_value args[4];
  args[0] = tensor_value(a);
  args[1] = none();
  args[1].tag = TT_VAL_INTS;
  args[1].ints = dims;
  args[1].n = 2;
  OK(tt_op_call(c, find(c, "sum_dim"), args, 2, &out, 1, &n));
  HOLDS(out, 21);
  tt_tensor_release(out);
  args[1] = int_value(1); /* one dimension instead of a list */
  args[2] = none();
  args[2].tag = TT_VAL_BOOL;
  args[2].i = 1;
  OK(tt_op_call(c, find(c, "sum_dim"), args, 3, &out, 1, &n));
  HOLDS(out, 6, 15);
  assert_int_equal(tt_tensor_ndim(out), 2);
  tt_tensor_release(out);

  args[0] = none();
  args[0].tag = TT_VAL_INTS;
  args[0].ints = size;
  args[0].n = 2;
  args[1] = int_value(TT_I32);
  args[2] = none();
  args[2].tag = TT_VAL_DEVICE;
  args[2].device.type = TT_META;
  OK(tt_op_call(c, find(c, "zeros"), args, 3, &out, 1, &n));
  assert_int_equal(tt_tensor_dtype(out), TT_I32);
  assert_int_equal(tt_tensor_device_type(out), TT_META);
  tt_tensor_release(out);

  args[0] = tensor_value(a);
  args[1] = int_value(0);
  OK(tt_op_call(c, find(c, "max_dim"), args, 2, two, 2, &n));
  assert_int_equal(n, 2);
  HOLDS(two[0], 4, 5, 6);
  assert_int_equal(tt_tensor_dtype(two[1]), TT_I64);
  tt_tensor_release(two[0]);
  tt_tensor_release(two[1]);

  two[0] = two[1] = a;
  args[0] = none();
  args[0].tag = TT_VAL_TENSORS;
  args[0].tensors = two;
  args[0].n = 2;
  args[1] = int_value(-1);
  OK(tt_op_call(c, find(c, "cat"), args, 2, &out, 1, &n));
  HOLDS(out, 1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6);
  tt_tensor_release(out);

  args[0] = tensor_value(a);
  args[1] = int_value(1);
  args[2] = int_value(1); /* a list out */
  {
    tt_tensor* three[3];
    FAILS(TT_BUFFER_TOO_SMALL, tt_op_call(c, find(c, "split"), args, 3, two, 2, &n));
    assert_int_equal(n, 3);
    assert_null(two[0]);
    OK(tt_op_call(c, find(c, "split"), args, 3, three, 3, &n));
    HOLDS(three[2], 3, 6);
    tt_tensor_release(three[0]);
    tt_tensor_release(three[1]);
    tt_tensor_release(three[2]);
  }
  tt_tensor_release(a);
}

/* A scalar is accepted for an integer, a float or a bool if it has this kind. */
static void test_scalars_for_numbers(void** state) {
  CTX;
  const double six[] = {1, 2, 3, 4, 5, 6};
  tt_tensor* a = mat(c, six, 2, 3);
  tt_tensor* out = NULL;
  int64_t n;
  tt_value args[3];
  args[0] = tensor_value(a);
  args[1] = args[2] = none();
  args[1].tag = args[2].tag = TT_VAL_SCALAR;
  args[1].scalar.kind = TT_SCALAR_INT;
  args[1].scalar.i = 1;
  args[2].scalar.kind = TT_SCALAR_BOOL;
  args[2].scalar.i = 1;
  OK(tt_op_call(c, find(c, "sum_dim"), args, 3, &out, 1, &n));
  assert_int_equal(tt_tensor_ndim(out), 2);
  HOLDS(out, 6, 15);
  tt_tensor_release(out);
  out = NULL;
  args[1].scalar.kind = TT_SCALAR_FLOAT;
  args[1].scalar.re = 1;
  FAILS(TT_INVALID_ARG, tt_op_call(c, find(c, "sum_dim"), args, 3, &out, 1, &n));
  SAYS("dim is a float");
  args[1].scalar.kind = TT_SCALAR_INT;
  args[2].scalar.kind = TT_SCALAR_INT;
  FAILS(TT_INVALID_ARG, tt_op_call(c, find(c, "sum_dim"), args, 3, &out, 1, &n));
  SAYS("keepdim is an integer: must be a bool");
  tt_tensor_release(a);
}

static void test_gradient(void** state) {
  CTX;
  tt_tensor* a = vec(c, k12, 2);
  tt_tensor* out = NULL;
  tt_tensor* sum = NULL;
  tt_tensor* grad = NULL;
  int64_t n;
  tt_value args[2];
  OK(tt_requires_grad_(c, a, 1));
  args[0] = args[1] = tensor_value(a);
  OK(tt_op_call(c, find(c, "mul"), args, 2, &out, 1, &n));
  args[0] = tensor_value(out);
  OK(tt_op_call(c, find(c, "sum"), args, 1, &sum, 1, &n));
  OK(tt_backward(c, sum, NULL));
  OK(tt_tensor_grad(c, a, &grad));
  HOLDS(grad, 2, 4);
  tt_tensor_release(a);
  tt_tensor_release(out);
  tt_tensor_release(sum);
  tt_tensor_release(grad);
}

static void test_bad_input(void** state) {
  CTX;
  tt_tensor* a = vec(c, k12, 2);
  tt_tensor* out = a;
  const tt_op* add = find(c, "add");
  int64_t n = 7;
  tt_value args[4];
  args[0] = tensor_value(a);
  args[1] = none();
  args[2] = args[3] = none();
  FAILS(TT_INVALID_ARG, tt_op_call(c, add, args, 2, &out, 1, &n));
  assert_null(out);
  assert_int_equal(n, 0);
  assert_string_equal(tt_ctx_error(c)->op, "add");
  assert_string_equal(tt_ctx_error(c)->arg, "other");
  args[1] = int_value(3);
  FAILS(TT_INVALID_ARG, tt_op_call(c, add, args, 2, &out, 1, &n));
  SAYS("add: other is an integer: must be a tensor");
  args[1] = tensor_value(NULL);
  FAILS(TT_BAD_HANDLE, tt_op_call(c, add, args, 2, &out, 1, &n));
  args[1] = tensor_value((tt_tensor*)c);
  FAILS(TT_BAD_HANDLE, tt_op_call(c, add, args, 2, &out, 1, &n));
  assert_int_equal(tt_ctx_error(c)->arg_index, 1);
  args[1] = tensor_value(a);
  args[2].tag = 99;
  FAILS(TT_INVALID_ARG, tt_op_call(c, add, args, 3, &out, 1, &n));
  args[2] = none();
  args[2].tag = TT_VAL_SCALAR; /* kind 0 */
  FAILS(TT_INVALID_ARG, tt_op_call(c, add, args, 3, &out, 1, &n));
  args[2] = none();
  FAILS(TT_INVALID_ARG, tt_op_call(c, add, args, 4, &out, 1, &n));
  FAILS(TT_INVALID_ARG, tt_op_call(c, add, args, -1, &out, 1, &n));
  FAILS(TT_INVALID_ARG, tt_op_call(c, add, NULL, 2, &out, 1, &n));
  FAILS(TT_INVALID_ARG, tt_op_call(c, add, args, 2, &out, 1, NULL));
  FAILS(TT_BUFFER_TOO_SMALL, tt_op_call(c, add, args, 2, &out, 0, &n));
  FAILS(TT_BUFFER_TOO_SMALL, tt_op_call(c, add, args, 2, NULL, 1, &n));
  FAILS(TT_BAD_HANDLE, tt_op_call(c, (const tt_op*)a, args, 2, &out, 1, &n));
  FAILS(TT_BAD_HANDLE, tt_op_call(c, NULL, args, 2, &out, 1, &n));
  args[0] = none();
  args[0].tag = TT_VAL_INTS;
  args[0].n = 2;
  FAILS(TT_INVALID_ARG, tt_op_call(c, find(c, "zeros"), args, 1, &out, 1, &n));
  args[0].n = -2;
  FAILS(TT_INVALID_ARG, tt_op_call(c, find(c, "zeros"), args, 1, &out, 1, &n));
  {
    const int64_t size[] = {2};
    args[0].n = 1;
    args[0].ints = size;
    args[1] = int_value((int64_t)1 << 40);
    FAILS(TT_DTYPE, tt_op_call(c, find(c, "zeros"), args, 2, &out, 1, &n));
    args[1] = none();
    args[2] = none();
    args[2].tag = TT_VAL_DEVICE;
    args[2].device.type = 77;
    FAILS(TT_DEVICE, tt_op_call(c, find(c, "zeros"), args, 3, &out, 1, &n));
  }
  args[0] = none();
  args[0].tag = TT_VAL_TENSORS;
  args[0].n = 1;
  args[0].tensors = &out;
  out = NULL;
  FAILS(TT_BAD_HANDLE, tt_op_call(c, find(c, "cat"), args, 1, &out, 1, &n));
  HOLDS(a, 1, 2);
  tt_tensor_release(a);
}

static tt_value str_value(const char* s, int64_t n) {
  tt_value v;
  memset(&v, 0, sizeof v);
  v.tag = TT_VAL_STR;
  v.str = s;
  v.n = n;
  return v;
}

static void test_check_holds(void** state) {
  CTX;
  const double zero[] = {0};
  tt_tensor* a = vec(c, zero, 1);
  tt_tensor* holds = NULL;
  tt_tensor* fails = NULL;
  const tt_op* check = find(c, "check_holds");
  int64_t n;
  tt_value args[5];
  args[0] = tensor_value(a);
  args[1] = int_value(TT_INVALID_ARG);
  args[2] = args[4] = str_value("", 0);
  args[3] = str_value("no more than this", 7);
  FAILS(TT_DTYPE, tt_op_call(c, check, args, 5, NULL, 0, &n));
  OK(tt_op_call(c, find(c, "logical_not"), args, 1, &holds, 1, &n));
  args[0] = tensor_value(holds);
  OK(tt_op_call(c, check, args, 5, NULL, 0, &n));
  assert_int_equal(n, 0);
  OK(tt_op_call(c, find(c, "logical_not"), args, 1, &fails, 1, &n));
  args[0] = tensor_value(fails);
  FAILS(TT_INVALID_ARG, tt_op_call(c, check, args, 5, NULL, 0, &n));
  SAYS("no more");
  assert_null(strstr(tt_ctx_error(c)->message, "than")); /* the string has 7 bytes */
  args[3] = str_value("xyz", 1);
  args[1] = int_value(TT_SHAPE);
  FAILS(TT_SHAPE, tt_op_call(c, check, args, 5, NULL, 0, &n));
  SAYS("x");
  assert_null(strstr(tt_ctx_error(c)->message, "y"));
  args[1] = int_value(TT_OK);
  FAILS(TT_INVALID_ARG, tt_op_call(c, check, args, 5, NULL, 0, &n));
  SAYS("status is 0");
  args[1] = int_value(1000);
  FAILS(TT_INVALID_ARG, tt_op_call(c, check, args, 5, NULL, 0, &n));
  SAYS("status is 1000");
  tt_tensor_release(fails);
  tt_tensor_release(holds);
  tt_tensor_release(a);
}

static void test_scope(void** state) {
  CTX;
  tt_tensor* a = vec(c, k12, 2);
  tt_tensor* out = NULL;
  int64_t n;
  tt_value args[2];
  args[0] = args[1] = tensor_value(a);
  OK(tt_scope_push(c));
  OK(tt_op_call(c, find(c, "add"), args, 2, &out, 1, &n));
  HOLDS(out, 2, 4);
  OK(tt_scope_pop(c, NULL, 0));
  tt_tensor_release(a);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_find),        TEST(test_every_name_of_the_manifest_is_found),
      TEST(test_defaults),    TEST(test_variants),
      TEST(test_other_types), TEST(test_gradient),
      TEST(test_bad_input),   TEST(test_check_holds),
      TEST(test_scope),       TEST(test_scalars_for_numbers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
