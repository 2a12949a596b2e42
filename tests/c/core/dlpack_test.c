/* DLPack: an exported object describes the tensor and keeps it alive; an imported one is used in
   place and released once. */
#include "dlpack.h"
#include "harness.h"

static void test_export(void** state) {
  (void)state;
  tt_tensor *t = make(TT_F32, SHAPE(2, 3), DATA(1, 2, 3, 4, 5, 6)), *column;
  void* p;
  OK(tt_select(c, t, 1, 2, &column));
  OK(tt_tensor_to_dlpack(c, column, 1, &p));
  Versioned* v = (Versioned*)p;
  assert_true(v->major == 1 && v->flags == 0 && v->t.ndim == 1 && v->t.shape[0] == 2 &&
              v->t.strides[0] == 3);
  assert_true(v->t.code == 2 && v->t.bits == 32 && v->t.lanes == 1 && v->t.device_type == 1);
  assert_true(((float*)((char*)v->t.data + v->t.byte_offset))[3] == 6);
  v->deleter(v);
  OK(tt_tensor_to_dlpack(c, t, 0, &p));
  Managed* m = (Managed*)p;
  assert_true(m->t.ndim == 2 && m->t.shape[1] == 3);
  tt_tensor* back;
  OK(tt_tensor_from_dlpack(c, m, 0, &back));
  assert_ptr_equal(tt_tensor_data(back), tt_tensor_data(t));
  VALUES(back, 1, 2, 3, 4, 5, 6);
}

static void test_every_dtype(void** state) {
  (void)state;
  for (tt_dtype d = TT_BOOL; d <= TT_C128; d++) {
    tt_tensor *t, *back;
    void* p;
    const tt_zeros_opts o = {.set = TT_ZEROS_DTYPE, .dtype = d};
    OK(tt_zeros(c, SHAPE(1, 2, 1, 1, 1, 1, 3), &o, &t));
    OK(tt_tensor_to_dlpack(c, t, 1, &p));
    OK(tt_tensor_from_dlpack(c, p, 1, &back));
    assert_int_equal(tt_tensor_dtype(back), d);
    HAS_SHAPE(back, 1, 2, 1, 1, 1, 1, 3);
  }
}

static int deleted;
static void on_delete(Versioned* v) {
  (void)v;
  deleted++;
}

static void test_import(void** state) {
  (void)state;
  float data[6] = {1, 2, 3, 4, 5, 6};
  int64_t shape[2] = {2, 2};
  int64_t strides[2] = {1, 2};
  Versioned v = {1, 0, NULL, on_delete, 1, {data, 1, 0, 2, 2, 32, 1, shape, strides, 4}};
  tt_tensor* t;
  deleted = 0;
  OK(tt_scope_push(c));
  OK(tt_tensor_from_dlpack(c, &v, 1, &t));
  VALUES(t, 2, 4, 3, 5);
  assert_int_equal(tt_tensor_is_writable(t), 0);
  FAILS(tt_add_f64_(c, t, 1), TT_INVALID_ARG, NULL);
  OK(tt_scope_pop(c, NULL, 0));
  assert_int_equal(deleted, 1);
}

/* The consumer holds the memory, whatever happens to the tensor. */
static void test_export_outlives_data(void** state) {
  const int64_t kSizes[] = {3, 3000};
  const tt_device meta = {TT_META, 0};
  size_t i;
  (void)state;
  for (i = 0; i < 2; i++) {
    tt_tensor *t, *p;
    tt_module* m;
    void *of_tensor, *of_view, *of_parameter;
    float* values;
    OK(tt_scope_push(c));
    OK(tt_ones(c, &kSizes[i], 1, NULL, &t));
    OK(tt_fill_f64_(c, t, 7));
    OK(tt_tensor_to_dlpack(c, t, 1, &of_tensor));
    {
      tt_tensor* v;
      OK(tt_view(c, t, &kSizes[i], 1, &v));
      OK(tt_tensor_to_dlpack(c, v, 0, &of_view));
    }
    OK(tt_tensor_set_data(c, t, number(TT_F32, 1)));
    OK(tt_nn_linear(c, kSizes[i], 1, NULL, &m));
    OK(tt_module_requires_grad_(c, m, 0));
    OK(tt_module_get_tensor(c, m, "weight", &p));
    OK(tt_fill_f64_(c, p, 5));
    OK(tt_tensor_to_dlpack(c, p, 1, &of_parameter));
    OK(tt_module_to(c, m, &meta, 0));
    tt_module_release(m);
    OK(tt_scope_pop(c, NULL, 0));
    values = ((Versioned*)of_tensor)->t.data;
    assert_true(values[0] == 7 && values[kSizes[i] - 1] == 7);
    ((Versioned*)of_tensor)->deleter(of_tensor);
    values = ((Managed*)of_view)->t.data;
    assert_true(values[0] == 7 && values[kSizes[i] - 1] == 7);
    ((Managed*)of_view)->deleter(of_view);
    values = ((Versioned*)of_parameter)->t.data;
    assert_true(values[0] == 5 && values[kSizes[i] - 1] == 5);
    ((Versioned*)of_parameter)->deleter(of_parameter);
  }
}

static void test_bad_input(void** state) {
  (void)state;
  float data[2] = {1, 2};
  int64_t shape[1] = {2};
  int64_t huge[1] = {INT64_MAX};
  int64_t back[1] = {-1};
  tt_tensor* t;
  void* p;
  deleted = 0;
  const Versioned good = {1, 0, NULL, on_delete, 0, {data, 1, 0, 1, 2, 32, 1, shape, NULL, 0}};
  Versioned v = good;
  v.major = 2;
  FAILS(tt_tensor_from_dlpack(c, &v, 1, &t), TT_ABI, "DLPack 2.0");
  v = good;
  v.t.lanes = 4;
  FAILS(tt_tensor_from_dlpack(c, &v, 1, &t), TT_DTYPE, "4 lanes");
  v = good;
  v.t.bits = 8;
  FAILS(tt_tensor_from_dlpack(c, &v, 1, &t), TT_DTYPE, "8 bits");
  v = good;
  v.t.device_type = 13;
  FAILS(tt_tensor_from_dlpack(c, &v, 1, &t), TT_DEVICE, "type 13");
  v = good;
  v.t.ndim = 65;
  FAILS(tt_tensor_from_dlpack(c, &v, 1, &t), TT_SHAPE, "65");
  v = good;
  v.t.shape = huge;
  FAILS(tt_tensor_from_dlpack(c, &v, 1, &t), TT_SHAPE, NULL);
  v = good;
  v.t.strides = back;
  FAILS(tt_tensor_from_dlpack(c, &v, 1, &t), TT_INVALID_ARG, "negative");
  v = good;
  v.t.byte_offset = 1;
  FAILS(tt_tensor_from_dlpack(c, &v, 1, &t), TT_INVALID_ARG, "aligned");
  v = good;
  v.t.data = NULL;
  FAILS(tt_tensor_from_dlpack(c, &v, 1, &t), TT_INVALID_ARG, "NULL");
  FAILS(tt_tensor_from_dlpack(c, &v, 7, &t), TT_INVALID_ARG, "major is 7");
  assert_int_equal(deleted, 0); /* still owned by the caller */
  FAILS(tt_tensor_to_dlpack(c, leaf(DATA(1)), 1, &p), TT_AUTOGRAD, "detach");
  assert_null(p);
}

/* A full scope, or an allocation that fails: a failing import leaves the object to the caller,
   at every allocation. */
static void test_out_of_memory(void** state) {
  (void)state;
  float data[2] = {1, 2};
  int64_t shape[1] = {2};
  Versioned v = {1, 0, NULL, on_delete, 0, {data, 1, 0, 1, 2, 32, 1, shape, NULL, 0}};
  tt_tensor* t;
  int64_t used, failures = 0;
  deleted = 0;
  for (used = 0; used < 70;
       used++) { /* the scope is full at one of these counts, whatever its capacity */
    tt_status s = TT_OOM;
    int64_t at;
    for (at = 1; s == TT_OOM; at++) {
      OK(tt_trim(c));
      host.calls = 0;
      host.fail_at = at;
      host.fail_n = 0;
      s = tt_tensor_from_dlpack(c, &v, 1, &t);
      host.fail_at = 0;
      failures += s == TT_OOM;
      assert_int_equal(deleted, 0);
    }
    OK(s);
  }
  assert_true(failures > 0);
  OK(tt_scope_pop(c, NULL, 0));
  assert_int_equal(deleted, 70);
  OK(tt_scope_push(c));
}

/* The stride of a dimension of one element is meaningless: NumPy gives any number. */
static void test_idle_strides(void** state) {
  (void)state;
  float data[3] = {1, 2, 3};
  int64_t shape[3] = {1, 3, 1};
  int64_t strides[3] = {INT64_MAX, 1, INT64_MAX};
  Versioned v = {1, 0, NULL, on_delete, 0, {data, 1, 0, 3, 2, 32, 1, shape, strides, 0}};
  tt_tensor *t, *r;
  OK(tt_scope_push(c));
  OK(tt_tensor_from_dlpack(c, &v, 1, &t));
  OK(tt_add(c, t, t, &r));
  VALUES(r, 2, 4, 6);
  OK(tt_sum_dim(c, t, SHAPE(0), NULL, &r));
  VALUES(r, 1, 2, 3);
  OK(tt_transpose(c, t, 0, 1, &r));
  OK(tt_contiguous(c, r, &r));
  VALUES(r, 1, 2, 3);
  assert_true(value_of(sum_of(t)) == 6);
  OK(tt_scope_pop(c, NULL, 0));
}

int main(void) {
  const struct CMUnitTest tests[] = {SCOPED(test_export),      SCOPED(test_export_outlives_data),
                                     SCOPED(test_every_dtype), SCOPED(test_import),
                                     SCOPED(test_bad_input),   SCOPED(test_out_of_memory),
                                     SCOPED(test_idle_strides)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
