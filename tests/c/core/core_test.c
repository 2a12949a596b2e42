/* Core objects through the C API: runtimes, ctxs, scopes, tensors from and to host memory,
   dtypes, properties, memory. */
#include "harness.h"

#include <math.h>

static const tt_dtype kDtypes[] = {TT_BOOL, TT_U8,   TT_I8,  TT_I16, TT_I32, TT_I64,
                                   TT_F16,  TT_BF16, TT_F32, TT_F64, TT_C64, TT_C128};
enum { kNumDtypes = 12 };

static tt_tensor* to(const tt_tensor* t, tt_dtype d) {
  const tt_to_opts opts = {.set = TT_TO_DTYPE, .dtype = d};
  tt_tensor* out;
  OK(tt_to(c, t, &opts, &out));
  return out;
}
static tt_tensor* transposed(const tt_tensor* t) {
  tt_tensor* out;
  OK(tt_transpose(c, t, 0, 1, &out));
  return out;
}
static tt_memory_stats memory(void) {
  tt_memory_stats s;
  OK(tt_memory(c, NULL, &s));
  return s;
}

/* ---- runtimes and ctxs ---- */

static void test_names(void** state) {
  int32_t isa = 0;
  (void)state;
  assert_non_null(strchr(tt_version(), '.'));
  assert_non_null(strstr(tt_build_info(), tt_version()));
  assert_string_equal(tt_status_name(TT_SHAPE), "SHAPE");
  assert_string_equal(tt_status_name(12345), "UNKNOWN");
  assert_string_equal(tt_dtype_name(TT_BF16), "bfloat16");
  assert_null(tt_dtype_name(0));
  assert_null(tt_dtype_name(TT_U64 + 1));
  assert_int_equal(tt_dtype_size(TT_C128), 16);
  assert_int_equal(tt_dtype_size(-1), 0);
  OK(tt_ctx_isa(c, &isa));
  assert_in_range(isa, 1, 3);
}

static void test_fresh_ctx(void** state) {
  const tt_error* e = tt_ctx_error(c);
  (void)state;
  assert_int_equal(e->code, TT_OK);
  assert_int_equal(tt_grad_enabled(c), 1);
  assert_int_equal(tt_num_threads(c), 1);
}

static void test_private_runtime(void** state) {
  tt_ctx* own;
  tt_runtime* rt;
  tt_tensor* t;
  (void)state;
  assert_int_equal(tt_ctx_new(NULL, &own), TT_OK);
  assert_int_equal(tt_ctx_runtime(own, &rt), TT_OK);
  assert_non_null(rt);
  assert_int_equal(tt_ones(own, SHAPE(2), NULL, &t), TT_OK);
  tt_runtime_release(rt);
  tt_ctx_release(own);
  assert_int_equal(tt_tensor_numel(t), 2); /* tensors outlive ctx and runtime */
  tt_tensor_release(t);
}

static void test_release_in_any_order(void** state) {
  Host h;
  const tt_allocator a = host_allocator(&h);
  const tt_runtime_opts opts = {.struct_size = sizeof opts, .allocator = &a};
  tt_runtime* rt;
  tt_ctx *one, *two;
  tt_tensor *big, *small;
  const int64_t shape[] = {100000};
  (void)state;
  assert_int_equal(tt_runtime_new(&opts, &rt), TT_OK);
  assert_int_equal(tt_ctx_new(rt, &one), TT_OK);
  assert_int_equal(tt_ctx_new(rt, &two), TT_OK);
  assert_int_equal(tt_ones(one, shape, 1, NULL, &big), TT_OK);
  assert_int_equal(tt_neg(two, big, &small), TT_OK); /* ctxs of a runtime share tensors */
  tt_runtime_release(rt);
  tt_ctx_release(one);
  tt_tensor_release(big);
  tt_ctx_retain(two);
  tt_ctx_release(two);
  tt_ctx_release(two);
  assert_true(h.blocks > 0);
  tt_tensor_release(small);
  assert_int_equal(h.blocks, 0);
}

/* Blocks of `from` bytes and more begin 8 bytes behind an aligned address. */
typedef struct Skewed {
  tt_allocator aligned;
  size_t from;
} Skewed;
static void* skewed_alloc(void* user, size_t size, size_t align) {
  const Skewed* s = user;
  const size_t skew = size >= s->from ? 8 : 0;
  char* p = s->aligned.alloc(s->aligned.user, size + skew, align);
  return p ? p + skew : NULL;
}
static void skewed_free(void* user, void* p, size_t size, size_t align) {
  const Skewed* s = user;
  const size_t skew = size >= s->from ? 8 : 0;
  s->aligned.free(s->aligned.user, (char*)p - skew, size + skew, align);
}

static void test_allocator_that_does_not_align(void** state) {
  Host h;
  Skewed skewed = {host_allocator(&h), 1 << 20};
  const tt_allocator a = {sizeof a, &skewed, skewed_alloc, skewed_free};
  const tt_runtime_opts opts = {.struct_size = sizeof opts, .allocator = &a};
  tt_runtime* rt;
  tt_ctx* own;
  tt_tensor* t;
  (void)state;
  assert_int_equal(tt_runtime_new(&opts, &rt), TT_OK);
  assert_int_equal(tt_ctx_new(rt, &own), TT_OK);
  assert_int_equal(tt_ones(own, SHAPE(1 << 20), NULL, &t), TT_OOM);
  assert_non_null(strstr(tt_ctx_error(own)->message, "is not aligned to 64 bytes"));
  tt_ctx_release(own);
  tt_runtime_release(rt);
  skewed.from = 0;
  assert_int_equal(tt_runtime_new(&opts, &rt), TT_OOM);
  assert_null(rt);
  assert_int_equal(h.blocks, 0);
  assert_int_equal(h.bytes, 0);
}

static void test_runtime_options(void** state) {
  tt_runtime* rt;
  tt_ctx* x;
  tt_runtime_opts o = {.struct_size = sizeof o};
  tt_allocator broken = {.struct_size = sizeof broken};
  int32_t isa = 0;
  (void)state;
  o.threads = -1;
  assert_int_equal(tt_runtime_new(&o, &rt), TT_INVALID_ARG);
  assert_null(rt);
  o.threads = 1025;
  assert_int_equal(tt_runtime_new(&o, &rt), TT_INVALID_ARG);
  o.threads = 0;
  o.isa = 99;
  assert_int_equal(tt_runtime_new(&o, &rt), TT_INVALID_ARG);
  o.isa = 0;
  o.allocator = &broken;
  assert_int_equal(tt_runtime_new(&o, &rt), TT_INVALID_ARG);
  o.allocator = NULL;
  o.struct_size = 0;
  assert_int_equal(tt_runtime_new(&o, &rt), TT_ABI);
  o.struct_size = sizeof(size_t) + sizeof(void*);
  o.threads = 77; /* an older caller: fields behind its struct_size are not read */
  assert_int_equal(tt_runtime_new(&o, &rt), TT_OK);
  assert_int_equal(tt_ctx_new(rt, &x), TT_OK);
  assert_int_equal(tt_num_threads(x), 1);
  tt_ctx_release(x);
  tt_runtime_release(rt);
  o.struct_size = sizeof o;
  o.threads = 0;
  o.isa = 1;
  assert_int_equal(tt_runtime_new(&o, &rt), TT_OK);
  assert_int_equal(tt_ctx_new(rt, &x), TT_OK);
  assert_int_equal(tt_ctx_isa(x, &isa), TT_OK);
  assert_int_equal(isa, 1);
  tt_ctx_release(x);
  tt_runtime_release(rt);
  assert_int_equal(tt_runtime_new(NULL, NULL), TT_INVALID_ARG);
}

/* ---- scopes ---- */

static void test_scopes(void** state) {
  tt_tensor *a, *b, *kept;
  int64_t base;
  (void)state;
  OK(tt_ones(c, SHAPE(2), NULL, &a)); /* outside scopes: owned by the caller */
  base = memory().in_use;
  OK(tt_scope_push(c));
  OK(tt_scope_push(c));
  OK(tt_neg(c, a, &b));
  OK(tt_neg(c, b, &kept));
  OK(tt_scope_pop(c, &kept, 1)); /* to the outer scope */
  VALUES(kept, 1, 1);
  OK(tt_scope_pop(c, &kept, 1)); /* to the caller */
  VALUES(kept, 1, 1);
  tt_tensor_release(kept);
  OK(tt_scope_push(c));
  OK(tt_neg(c, a, &b));
  OK(tt_scope_pop(c, NULL, 0));
  assert_true(memory().in_use <= base + 4096); /* the lists of the scope itself may stay */
  FAILS(tt_scope_pop(c, NULL, 0), TT_INVALID_ARG, "scope");
  tt_tensor_release(a);
}

static void test_scope_that_keeps_many(void** state) {
  tt_tensor* t[200];
  int i;
  (void)state;
  OK(tt_scope_push(c));
  for (i = 0; i < 100; i++) OK(tt_ones(c, SHAPE(3), NULL, &t[i]));
  OK(tt_scope_push(c));
  for (i = 100; i < 200; i++) OK(tt_ones(c, SHAPE(3), NULL, &t[i]));
  OK(tt_scope_pop(c, t, 200)); /* more than the inner scope holds */
  OK(tt_scope_pop(c, t, 200));
  for (i = 0; i < 200; i++) tt_tensor_release(t[i]);
}

/* Each entry of keep moves one reference from the scope to the caller, who releases it once.
   Closing the ctx finds a leak. */
static void test_scope_keeps_a_handle_once(void** state) {
  tt_tensor *own, *outer, *inner, *same;
  (void)state;
  OK(tt_ones(c, SHAPE(2), NULL, &own));
  OK(tt_scope_push(c));
  OK(tt_neg(c, own, &outer));
  OK(tt_scope_push(c));
  OK(tt_neg(c, own, &inner));
  OK(tt_contiguous(c, inner, &same)); /* the same tensor once more */
  assert_ptr_equal(same, inner);
  {
    tt_tensor* keep[] = {inner, own, outer, inner, inner, own};
    OK(tt_scope_pop(c, keep, 6)); /* both are of the inner scope; the others stay where they are */
  }
  VALUES(inner, -1, -1);
  {
    tt_tensor* keep[] = {outer, inner, outer, own};
    OK(tt_scope_pop(c, keep, 4)); /* one of the inner scope's two is released with it */
  }
  VALUES(inner, -1, -1);
  VALUES(outer, -1, -1);
  VALUES(own, 1, 1);
  tt_tensor_release(inner);
  tt_tensor_release(outer);
  tt_tensor_release(own);
}

static void test_scope_of_many(void** state) {
  int i;
  (void)state;
  for (i = 0; i < 1000; i++) {
    tt_tensor* t;
    OK(tt_ones(c, SHAPE(3), NULL, &t));
  }
}

/* ---- memory of the application ---- */

static int dropped;
static void drop(void* user) {
  assert_ptr_equal(user, &dropped);
  dropped++;
}

static void test_import(void** state) {
  double values[] = {1, 2, 3, 4, 5, 6};
  tt_tensor *t, *v;
  const int64_t by_columns[] = {1, 2};
  (void)state;
  dropped = 0;
  OK(tt_scope_push(c));
  OK(tt_tensor_import(c, values, TT_F64, SHAPE(2, 3), by_columns, 1, drop, &dropped, &t));
  assert_ptr_equal(tt_tensor_data(t), values);
  VALUES(t, 1, 3, 5, 2, 4, 6);
  values[0] = 10; /* no copy */
  OK(tt_select(c, t, 0, 0, &v));
  VALUES(v, 10, 3, 5);
  OK(tt_mul_f64_(c, v, 2));
  assert_true(values[0] == 20 && values[2] == 6 && values[1] == 2);
  OK(tt_scope_pop(c, &v, 1));
  assert_int_equal(dropped, 0); /* the view still holds it */
  tt_tensor_release(v);
  assert_int_equal(dropped, 1);
}

static void test_import_read_only(void** state) {
  float values[] = {1, 2};
  tt_tensor *t, *twice, *v;
  (void)state;
  OK(tt_tensor_import(c, values, TT_F32, SHAPE(2), NULL, 0, NULL, NULL, &t));
  FAILS(tt_zero_(c, t), TT_INVALID_ARG, "read-only");
  OK(tt_view(c, t, SHAPE(1, 2), &v));
  FAILS(tt_add_f64_(c, v, 1), TT_INVALID_ARG, "read-only");
  FAILS(tt_neg_into(c, v, v), TT_INVALID_ARG, NULL);
  assert_true(values[0] == 1);
  OK(tt_mul_f64(c, t, 2, &twice));
  VALUES(twice, 2, 4);
}

/* The deleter runs exactly once, also if the import is refused. */
static void test_import_refused(void** state) {
  double values[2];
  const int64_t negative[] = {-1};
  const int64_t huge[] = {INT64_MAX};
  int64_t many[65];
  tt_tensor* t;
  int i;
  (void)state;
  for (i = 0; i < 65; i++) many[i] = 1;
  dropped = 0;
  FAILS(tt_tensor_import(c, values, 99, SHAPE(2), NULL, 1, drop, &dropped, &t), TT_DTYPE, "99");
  assert_int_equal(dropped, 1);
  FAILS(tt_tensor_import(c, NULL, TT_F64, SHAPE(2), NULL, 1, drop, &dropped, &t), TT_INVALID_ARG,
        "data");
  FAILS(tt_tensor_import(c, values, TT_F64, SHAPE(-2), NULL, 1, drop, &dropped, &t), TT_SHAPE,
        "-2");
  FAILS(tt_tensor_import(c, values, TT_F64, SHAPE(2), negative, 1, drop, &dropped, &t),
        TT_INVALID_ARG, "strides");
  FAILS(tt_tensor_import(c, values, TT_F64, SHAPE(3), huge, 1, drop, &dropped, &t), TT_INVALID_ARG,
        "strides");
  FAILS(tt_tensor_import(c, (char*)values + 1, TT_F64, SHAPE(1), NULL, 1, drop, &dropped, &t),
        TT_INVALID_ARG, "align");
  FAILS(tt_tensor_import(c, values, TT_F64, many, 65, NULL, 1, drop, &dropped, &t), TT_SHAPE, "64");
  FAILS(tt_tensor_import(c, values, TT_F64, NULL, 2, NULL, 1, drop, &dropped, &t), TT_INVALID_ARG,
        "shape");
  FAILS(tt_tensor_import(c, values, TT_F64, SHAPE(2), NULL, 1, drop, &dropped, NULL),
        TT_INVALID_ARG, "out");
  assert_int_equal(dropped, 9);
  assert_null(t);
}

static void test_import_that_overlaps_itself(void** state) {
  double values[] = {1, 2, 3};
  const int64_t windows[] = {1, 1};
  tt_tensor *t, *s;
  (void)state;
  OK(tt_tensor_import(c, values, TT_F64, SHAPE(2, 2), windows, 1, NULL, NULL, &t));
  VALUES(t, 1, 2, 2, 3);
  FAILS(tt_add_f64_(c, t, 1), TT_INVALID_ARG, "share");
  OK(tt_sum(c, t, NULL, &s));
  VALUES(s, 8);
}

static void test_integer_sums_wrap(void** state) {
  static const int64_t values[] = {INT64_MAX, INT64_MIN, 1, -1};
  tt_tensor *t, *s;
  int64_t out[2];
  (void)state;
  OK(tt_tensor_from_data(c, values, TT_I64, SHAPE(2, 2), &t));
  OK(tt_sum_dim(c, t, SHAPE(0), NULL, &s));
  OK(tt_tensor_read(c, s, out, sizeof out));
  assert_true(out[0] == INT64_MIN && out[1] == INT64_MAX);
  OK(tt_select(c, t, 1, 0, &t));
  OK(tt_sum(c, t, NULL, &s));
  OK(tt_item_i64(c, s, out));
  assert_true(out[0] == INT64_MIN);
}

static void test_read(void** state) {
  tt_tensor* t = make(TT_I32, SHAPE(2, 3), DATA(1, 2, 3, 4, 5, 6));
  tt_tensor* empty = make(TT_F32, SHAPE(0, 3), NULL, 0);
  int32_t out[6];
  (void)state;
  OK(tt_tensor_read(c, transposed(t), out, sizeof out));
  assert_true(out[0] == 1 && out[1] == 4 && out[2] == 2 && out[5] == 6);
  FAILS(tt_tensor_read(c, t, out, 20), TT_INVALID_ARG, "24");
  FAILS(tt_tensor_read(c, t, NULL, 24), TT_INVALID_ARG, "dst");
  OK(tt_tensor_read(c, empty, NULL, 0));
}

static void test_items(void** state) {
  tt_scalar s;
  double f;
  int64_t i;
  const double z[] = {1, 2};
  tt_tensor* t;
  (void)state;
  OK(tt_item(c, number(TT_I64, -7), &s));
  assert_true(s.kind == TT_SCALAR_INT && s.i == -7);
  OK(tt_item(c, number(TT_BOOL, 1), &s));
  assert_true(s.kind == TT_SCALAR_BOOL && s.i == 1);
  OK(tt_item(c, number(TT_BF16, 1.5), &s));
  assert_true(s.kind == TT_SCALAR_FLOAT && s.re == 1.5);
  OK(tt_item_i64(c, number(TT_F32, -2.75), &i));
  assert_int_equal(i, -2);
  FAILS(tt_item_i64(c, number(TT_F64, NAN), &i), TT_INVALID_ARG, "nan");
  FAILS(tt_item_i64(c, number(TT_F64, 1e30), &i), TT_INVALID_ARG, NULL);
  FAILS(tt_item_f64(c, numbers(TT_F64, DATA(1, 2)), &f), TT_INVALID_ARG, "[2]");
  OK(tt_tensor_from_data(c, z, TT_C128, NULL, 0, &t));
  OK(tt_item(c, t, &s));
  assert_true(s.kind == TT_SCALAR_COMPLEX && s.re == 1 && s.im == 2);
  FAILS(tt_item_f64(c, t, &f), TT_DTYPE, "complex");
}

static void test_equality(void** state) {
  tt_tensor* x = numbers(TT_F32, DATA(1, 2, NAN));
  tt_tensor* near = numbers(TT_F32, DATA(1.00001, 2, NAN));
  tt_tensor* row = numbers(TT_F32, DATA(1, 2));
  int32_t is = -1;
  (void)state;
  OK(tt_equal(c, row, numbers(TT_F32, DATA(1, 2)), &is));
  assert_int_equal(is, 1);
  OK(tt_equal(c, row, numbers(TT_I64, DATA(1, 2)), &is));
  assert_int_equal(is, 1);
  OK(tt_equal(c, row, number(TT_F32, 1), &is)); /* another shape */
  assert_int_equal(is, 0);
  OK(tt_equal(c, x, x, &is)); /* nan */
  assert_int_equal(is, 0);
  OK(tt_equal(c, numbers(TT_C64, DATA(0)), numbers(TT_C64, DATA(0)), &is));
  assert_int_equal(is, 1);
  OK(tt_allclose(c, x, near, 1e-4, 1e-8, 0, &is));
  assert_int_equal(is, 0);
  OK(tt_allclose(c, x, near, 1e-4, 1e-8, 1, &is));
  assert_int_equal(is, 1);
  OK(tt_allclose(c, x, near, 1e-6, 1e-8, 1, &is));
  assert_int_equal(is, 0);
  OK(tt_allclose(c, row, number(TT_F32, 1), 1e-5, 1, 0, &is)); /* broadcast */
  assert_int_equal(is, 1);
  FAILS(tt_equal(c, row, NULL, &is), TT_BAD_HANDLE, "other");
  FAILS(tt_equal(c, row, row, NULL), TT_INVALID_ARG, "out");
  FAILS(tt_allclose(c, row, x, 1e-5, 1e-8, 0, &is), TT_SHAPE, "[3]");
  FAILS(tt_allclose(c, row, row, -1, 1e-8, 0, &is), TT_INVALID_ARG, "rtol");
  FAILS(tt_allclose(c, row, numbers(TT_F64, DATA(1, 2)), 0, 0, 0, &is), TT_DTYPE, "float64");
}

static void test_scalar_tensor(void** state) {
  tt_scalar s = int_scalar(3);
  tt_tensor* t;
  (void)state;
  OK(tt_scalar_tensor(c, &s, 0, &t));
  assert_int_equal(tt_tensor_dtype(t), TT_I64);
  s = real_scalar(0.5);
  OK(tt_scalar_tensor(c, &s, 0, &t));
  assert_int_equal(tt_tensor_dtype(t), TT_F32);
  OK(tt_scalar_tensor(c, &s, TT_F16, &t));
  assert_int_equal(tt_tensor_dtype(t), TT_F16);
  assert_int_equal(tt_tensor_ndim(t), 0);
  VALUES(t, 0.5);
  s.kind = 9;
  FAILS(tt_scalar_tensor(c, &s, 0, &t), TT_INVALID_ARG, "kind");
  FAILS(tt_scalar_tensor(c, NULL, 0, &t), TT_INVALID_ARG, "value");
}

/* ---- every dtype ---- */

static void test_conversion_between_all_dtypes(void** state) {
  int i, j;
  (void)state;
  for (i = 0; i < kNumDtypes; i++) {
    for (j = 0; j < kNumDtypes; j++) {
      tt_tensor *a, *b, *round;
      OK(tt_scope_push(c));
      a = make(kDtypes[i], SHAPE(2, 3), DATA(0, 1, 0, 1, 1, 0));
      b = to(a, kDtypes[j]);
      assert_int_equal(tt_tensor_dtype(b), kDtypes[j]);
      VALUES(b, 0, 1, 0, 1, 1, 0);
      round = to(transposed(b), kDtypes[i]); /* through the strided path */
      VALUES(round, 0, 1, 1, 1, 0, 0);
      OK(tt_copy_(c, transposed(a), transposed(b)));
      VALUES(a, 0, 1, 0, 1, 1, 0);
      OK(tt_scope_pop(c, NULL, 0));
    }
  }
}

static void test_conversion_of_values(void** state) {
  (void)state;
  VALUES(to(numbers(TT_F64, DATA(0, 0.25, -3, NAN)), TT_BOOL), 0, 1, 1, 1);
  VALUES(to(numbers(TT_F32, DATA(2.9, -2.9, 300)), TT_I32), 2, -2, 300);
  VALUES(to(numbers(TT_I32, DATA(257, -1)), TT_U8), 1, 255);
  VALUES(to(numbers(TT_I64, DATA(200)), TT_I8), -56);
  VALUES(to(numbers(TT_F64, DATA(65520, 65519, 1e-8, 6e-8)), TT_F16), INFINITY, 65504, 0, 0x1p-24);
  VALUES(to(numbers(TT_F64, DATA(1 + 0x1p-8, 1 + 3 * 0x1p-8)), TT_BF16), 1,
         1 + 0x1p-6); /* ties to even */
  VALUES(to(numbers(TT_F64, DATA(1e300, -1e300)), TT_F32), INFINITY, -INFINITY);
}

static int is_last(const tt_tensor* t) {
  const int64_t* size = tt_tensor_shape(t);
  const int64_t* stride = tt_tensor_strides(t);
  const int64_t channels = size[1];
  const int64_t n = tt_tensor_ndim(t);
  int64_t step = channels;
  for (int64_t i = n - 1; i > 1; i--) {
    if (stride[i] != step) return 0;
    step *= size[i];
  }
  return stride[1] == 1 && stride[0] == step;
}

static void test_channels_last(void** state) {
  static const int64_t shapes[2][5] = {{2, 3, 4, 5}, {2, 3, 2, 2, 4}};
  (void)state;
  for (int k = 0; k < 2; k++) {
    const tt_memory_format format = k ? TT_CHANNELS_LAST_3D : TT_CHANNELS_LAST;
    const tt_clone_opts opts = {.set = TT_CLONE_MEMORY_FORMAT, .memory_format = format};
    const tt_to_opts to_last = {.set = TT_TO_MEMORY_FORMAT, .memory_format = format};
    const tt_to_opts wide = {
        .set = TT_TO_MEMORY_FORMAT | TT_TO_DTYPE, .memory_format = format, .dtype = TT_F64};
    const tt_to_opts back = {.set = TT_TO_MEMORY_FORMAT, .memory_format = TT_CONTIGUOUS};
    tt_tensor *x, *last, *same, *rows, *out;
    float got[120];
    OK(tt_rand(c, shapes[k], 4 + k, NULL, &x));
    OK(tt_clone(c, x, &opts, &last));
    assert_true(is_last(last));
    OK(tt_to(c, last, &to_last, &same));
    assert_ptr_equal(same, last);
    OK(tt_to(c, last, &back, &rows));
    assert_true(tt_tensor_is_contiguous(rows));
    OK(tt_tensor_read(c, last, got, tt_tensor_numel(last) * 4));
    assert_memory_equal(got, tt_tensor_data(x), (size_t)tt_tensor_numel(x) * 4);
    OK(tt_to(c, x, &wide, &out));
    assert_true(is_last(out) && tt_tensor_dtype(out) == TT_F64);
    FAILS(tt_clone(c, numbers(TT_F32, DATA(1, 2)), &opts, &out), TT_SHAPE,
          k ? "must have 5 dimensions" : "must have 4 dimensions");
  }
  {
    tt_tensor *x = numbers(TT_F32, DATA(1)), *out;
    FAILS(tt_clone(c, x, &(tt_clone_opts){.set = TT_CLONE_MEMORY_FORMAT, .memory_format = 5}, &out),
          TT_INVALID_ARG, "is 5");
  }
}

static void test_clone_and_contiguous_of_all_dtypes(void** state) {
  int i;
  (void)state;
  for (i = 0; i < kNumDtypes; i++) {
    tt_tensor* a = make(kDtypes[i], SHAPE(2, 2), DATA(0, 1, 1, 0));
    tt_tensor* t = transposed(a);
    tt_tensor* copy;
    tt_tensor* rows;
    tt_tensor* same;
    OK(tt_clone(c, t, NULL, &copy));
    assert_int_equal(tt_tensor_strides(copy)[0], 1); /* dense: the strides stay */
    assert_true(tt_tensor_data(copy) != tt_tensor_data(a));
    OK(tt_contiguous(c, t, &rows));
    assert_int_equal(tt_tensor_is_contiguous(rows), 1);
    OK(tt_contiguous(c, a, &same));
    assert_ptr_equal(same, a);
    VALUES(copy, 0, 1, 1, 0);
    VALUES(rows, 0, 1, 1, 0);
  }
}

static void test_printing(void** state) {
  char text[4096], small[8];
  int64_t n = 0, want;
  int i;
  (void)state;
  for (i = 0; i < kNumDtypes; i++) {
    OK(tt_tensor_print(c, make(kDtypes[i], SHAPE(2, 2), DATA(0, 1, 1, 0)), text, sizeof text, &n));
    assert_int_equal(n, (int64_t)strlen(text));
    assert_non_null(strstr(text, "tensor("));
  }
  OK(tt_tensor_print(c, numbers(TT_F32, DATA(1, 2.5, -3)), text, sizeof text, &n));
  assert_string_equal(text, "tensor([ 1.0000,  2.5000, -3.0000])");
  OK(tt_tensor_print(c, numbers(TT_I64, DATA(1, 20)), text, sizeof text, &n));
  assert_string_equal(text, "tensor([ 1, 20])");
  want = n;
  FAILS(tt_tensor_print(c, numbers(TT_I64, DATA(1, 20)), small, sizeof small, &n),
        TT_BUFFER_TOO_SMALL, NULL);
  assert_int_equal(n, want);
  OK(tt_tensor_print(c, make(TT_F32, SHAPE(0, 2), NULL, 0), text, sizeof text, &n));
  assert_non_null(strstr(text, "[]"));
}

/* ---- facts ---- */

static void test_facts(void** state) {
  tt_tensor *t = make(TT_F32, SHAPE(2, 3), DATA(1, 2, 3, 4, 5, 6)), *v;
  const tt_slice_opts from1 = {.set = TT_SLICE_START, .start = 1};
  (void)state;
  OK(tt_slice(c, t, 1, &from1, &v));
  HAS_SHAPE(v, 2, 2);
  assert_int_equal(tt_tensor_strides(v)[0], 3);
  assert_int_equal(tt_tensor_offset(v), 1);
  assert_int_equal(tt_tensor_numel(v), 4);
  assert_int_equal(tt_tensor_size(v, -1), 2);
  assert_int_equal(tt_tensor_size(v, 2), 0);
  assert_int_equal(tt_tensor_is_contiguous(v), 0);
  assert_int_equal(tt_tensor_is_view(v), 1);
  assert_int_equal(tt_tensor_is_view(t), 0);
  assert_int_equal(tt_tensor_storage_bytes(v), 24);
  assert_ptr_equal(tt_tensor_storage_data(v), tt_tensor_data(t));
  assert_int_equal(tt_tensor_device_type(v), TT_CPU);
  OK(tt_fill_i64_(c, v, 9));
  assert_int_equal(tt_tensor_version(t), 1); /* one counter per storage */
  VALUES(t, 1, 9, 9, 4, 9, 9);
}

static void test_facts_of_null(void** state) {
  (void)state;
  assert_int_equal(tt_tensor_dtype(NULL), 0);
  assert_int_equal(tt_tensor_ndim(NULL), 0);
  assert_null(tt_tensor_shape(NULL));
  assert_null(tt_tensor_data(NULL));
  assert_int_equal(tt_grad_enabled(NULL), 0);
  assert_null(tt_ctx_error(NULL));
  assert_null(tt_node_name(NULL));
  assert_null(tt_op_name(NULL));
  tt_tensor_release(NULL);
  tt_ctx_release(NULL);
  tt_runtime_release(NULL);
  tt_generator_release(NULL);
  tt_node_release(NULL);
  tt_cancel_release(NULL);
}

/* ---- shapes that cannot be ---- */

static void test_bad_shapes(void** state) {
  int64_t many[65];
  tt_tensor* t;
  double d = 0;
  int i;
  (void)state;
  for (i = 0; i < 65; i++) many[i] = 1;
  FAILS(tt_zeros(c, SHAPE(2, -1), NULL, &t), TT_SHAPE, "[2,-1]");
  FAILS(tt_zeros(c, SHAPE(INT64_C(1) << 40, INT64_C(1) << 40), NULL, &t), TT_SHAPE, NULL);
  FAILS(tt_zeros(c, SHAPE(INT64_MAX), NULL, &t), TT_SHAPE, NULL);
  FAILS(tt_zeros(c, SHAPE(0, INT64_MAX, INT64_MAX), NULL, &t), TT_SHAPE, NULL);
  FAILS(tt_zeros(c, many, 65, NULL, &t), TT_SHAPE, "64");
  FAILS(tt_zeros(c, many, -1, NULL, &t), TT_INVALID_ARG, "-1");
  FAILS(tt_zeros(c, NULL, 1, NULL, &t), TT_INVALID_ARG, "size");
  FAILS(tt_tensor_from_data(c, &d, TT_F64, many, 65, &t), TT_SHAPE, NULL);
  FAILS(tt_zeros(c, SHAPE(INT64_C(1) << 45), NULL, &t), TT_OOM, NULL);
  assert_null(t);
  OK(tt_zeros(c, many, 64, NULL, &t));
  assert_int_equal(tt_tensor_ndim(t), 64);
  FAILS(tt_unsqueeze(c, t, 0, &t), TT_SHAPE, "64");
  OK(tt_zeros(c, NULL, 0, NULL, &t));
  assert_int_equal(tt_tensor_numel(t), 1);
}

static void test_bad_views(void** state) {
  tt_tensor* t = make(TT_F32, SHAPE(2, 3), DATA(1, 2, 3, 4, 5, 6));
  tt_tensor* v = NULL;
  const tt_as_strided_opts far = {.set = TT_AS_STRIDED_STORAGE_OFFSET, .storage_offset = 5};
  (void)state;
  FAILS(tt_view(c, t, SHAPE(4, -1), &v), TT_SHAPE, "[4,-1]");
  FAILS(tt_view(c, t, SHAPE(-1, -1), &v), TT_SHAPE, NULL);
  FAILS(tt_view(c, transposed(t), SHAPE(6), &v), TT_INVALID_ARG, "reshape");
  FAILS(tt_transpose(c, t, 0, 2, &v), TT_INDEX, "2");
  FAILS(tt_select(c, t, 1, 3, &v), TT_INDEX, "3");
  FAILS(tt_permute(c, t, SHAPE(0, 0), &v), TT_INVALID_ARG, NULL);
  FAILS(tt_expand(c, t, SHAPE(3, 3), &v), TT_SHAPE, NULL);
  FAILS(tt_as_strided(c, t, SHAPE(2), SHAPE(1), &far, &v), TT_INVALID_ARG, "6");
  FAILS(tt_as_strided(c, t, SHAPE(3), SHAPE(INT64_MAX), NULL, &v), TT_INVALID_ARG, NULL);
  FAILS(tt_as_strided(c, t, SHAPE(2), SHAPE(-1), NULL, &v), TT_INVALID_ARG, NULL);
  FAILS(tt_expand(c, number(TT_F32, 1), SHAPE(INT64_MAX, INT64_MAX), &v), TT_SHAPE, NULL);
  assert_null(v);
}

/* ---- integers ---- */

static tt_tensor* ints(const int64_t* v, int64_t n, tt_dtype d) {
  tt_tensor* t;
  OK(tt_tensor_from_data(c, v, TT_I64, &n, 1, &t));
  return to(t, d);
}
static int64_t at(const tt_tensor* t, int64_t i) {
  tt_tensor* s;
  int64_t v;
  OK(tt_select(c, t, 0, i, &s));
  OK(tt_item_i64(c, s, &v));
  return v;
}

/* Results are defined, and there is never a signal: overflow wraps, division by zero fails or
   gives a defined value. */
static void test_integer_edges(void** state) {
  static const tt_dtype kInts[] = {TT_I8, TT_I16, TT_I32, TT_I64, TT_U8};
  static const int64_t kLow[] = {INT8_MIN, INT16_MIN, INT32_MIN, INT64_MIN, 0};
  size_t k;
  (void)state;
  for (k = 0; k < sizeof kInts / sizeof *kInts; k++) {
    const int32_t modes[] = {TT_ROUNDING_FLOOR, TT_ROUNDING_TRUNC};
    const int64_t low[] = {kLow[k], kLow[k], 7, -7};
    const int64_t by[] = {-1, 1, 2, 2};
    const int64_t zero[] = {0, 0, 0, 0};
    tt_tensor* a = ints(low, 4, kInts[k]);
    tt_tensor* b = ints(by, 4, kInts[k]);
    tt_tensor* z = ints(zero, 4, kInts[k]);
    tt_tensor* q = NULL;
    tt_tensor* n;
    int m;
    for (m = 0; m < 2; m++) {
      const tt_div_opts opts = {.set = TT_DIV_ROUNDING_MODE, .rounding_mode = modes[m]};
      tt_status s;
      OK(tt_div(c, a, b, &opts, &q));
      if (kInts[k] != TT_U8) {
        assert_int_equal(at(q, 0), kLow[k]); /* -low wraps */
        assert_int_equal(at(q, 3), m ? -3 : -4);
      }
      assert_int_equal(at(q, 2), 3);
      s = tt_div(c, a, z, &opts, &q);
      assert_true(s == TT_OK || s == TT_INVALID_ARG);
      assert_true((s == TT_OK) == (q != NULL));
    }
    OK(tt_neg(c, a, &n));
    assert_int_equal(at(n, 0), kLow[k]);
    OK(tt_mul(c, a, b, &n));
    assert_int_equal(at(n, 0), kLow[k]);
    OK(tt_div(c, a, z, NULL, &q)); /* true division: inf and nan */
    assert_int_equal(tt_tensor_dtype(q), TT_F32);
  }
}

static void test_integer_powers(void** state) {
  const int64_t base[] = {2, -1, 0, 3};
  tt_tensor* b = ints(base, 4, TT_I64);
  tt_tensor* p = NULL;
  tt_tensor* e;
  const int64_t exps[] = {63, 1000001, 0, 41};
  (void)state;
  FAILS(tt_pow_i64(c, b, -1, &p), TT_INVALID_ARG, NULL);
  assert_null(p);
  e = ints(exps, 4, TT_I64);
  OK(tt_pow(c, b, e, &p));
  assert_int_equal(at(p, 0), INT64_MIN);
  assert_int_equal(at(p, 1), -1);
  assert_int_equal(at(p, 2), 1);
}

/* ---- errors ---- */

static void test_error_record(void** state) {
  tt_tensor *a = make(TT_F32, SHAPE(2, 3), DATA(1, 2, 3, 4, 5, 6)), *b, *out;
  const tt_error* e = tt_ctx_error(c);
  (void)state;
  OK(tt_zeros(c, SHAPE(4, 5), NULL, &b));
  FAILS(tt_matmul(c, a, b, &out), TT_SHAPE, "matmul: ");
  assert_string_equal(e->op, "matmul");
  assert_non_null(strstr(e->message, "[2,3]"));
  assert_non_null(strstr(e->message, "[4,5]"));
  assert_int_equal(e->ndim[0], 2);
  assert_int_equal(e->shape[0][1], 3);
  assert_int_equal(e->shape[1][0], 4);
  FAILS(tt_add(c, a, NULL, &out), TT_BAD_HANDLE, "other is NULL");
  assert_string_equal(e->arg, "other");
  assert_int_equal(e->arg_index, 1);
  OK(tt_neg(c, a, &out)); /* success leaves the last error readable */
  assert_int_equal(e->code, TT_BAD_HANDLE);
  FAILS(tt_tensor_from_data(c, NULL, TT_F32, SHAPE(2), &out), TT_INVALID_ARG,
        "data is NULL: must not be");
}

static void test_unknown_option_bits(void** state) {
  tt_tensor *a = make(TT_F32, SHAPE(1), DATA(1)), *out;
  const tt_sum_opts late = {.set = UINT64_C(1) << 63};
  const tt_sum_opts zero = {0};
  (void)state;
  FAILS(tt_sum(c, a, &late, &out), TT_UNSUPPORTED_OPTION, "63");
  assert_null(out);
  OK(tt_sum(c, a, &zero, &out));
}

/* ---- random state ---- */

static void test_generator_state(void** state) {
  tt_generator *g, *own;
  uint64_t at0[2], at1[2];
  tt_tensor *a, *b;
  tt_rand_opts opts = {.set = TT_RAND_GENERATOR};
  (void)state;
  OK(tt_generator_new(c, 42, &g));
  OK(tt_generator_state(c, g, at0));
  assert_true(at0[0] == 42 && at0[1] == 0);
  opts.generator = g;
  OK(tt_rand(c, SHAPE(100), &opts, &a));
  OK(tt_generator_state(c, g, at1));
  assert_true(at1[1] > 0);
  OK(tt_generator_set_state(c, g, at0));
  OK(tt_rand(c, SHAPE(100), &opts, &b));
  assert_memory_equal(tt_tensor_data(a), tt_tensor_data(b), 400);
  OK(tt_generator_state(c, g, at0));
  assert_true(at0[1] == at1[1]);
  FAILS(tt_rand(c, SHAPE(-1), &opts, &b), TT_SHAPE,
        NULL); /* a failing call does not advance the generator */
  OK(tt_generator_state(c, g, at0));
  assert_true(at0[1] == at1[1]);
  OK(tt_manual_seed(c, 7));
  OK(tt_ctx_generator(c, &own));
  OK(tt_generator_state(c, own, at0));
  assert_true(at0[0] == 7 && at0[1] == 0);
  tt_generator_release(own);
  tt_generator_release(g);
}

/* ---- devices ---- */

static void test_devices(void** state) {
  tt_device d;
  int32_t n = -1;
  tt_tensor *t, *twice;
  tt_zeros_opts on = {.set = TT_ZEROS_DEVICE};
  double out[2];
  (void)state;
  OK(tt_device_parse(c, "cpu", &d));
  assert_int_equal(d.type, TT_CPU);
  OK(tt_device_parse(c, "cuda:1", &d));
  assert_true(d.type == TT_CUDA && d.index == 1);
  FAILS(tt_device_parse(c, "gpu", &d), TT_INVALID_ARG, "gpu");
  FAILS(tt_device_parse(c, "cuda:x", &d), TT_INVALID_ARG, NULL);
  OK(tt_device_parse(c, "meta", &d));
  OK(tt_device_count(c, TT_CPU, &n));
  assert_int_equal(n, 1);
  on.device = d;
  OK(tt_zeros(c, SHAPE(INT64_C(1) << 40), &on, &t)); /* no data, no memory */
  OK(tt_mul_f64(c, t, 2, &twice));
  assert_int_equal(tt_tensor_device_type(twice), TT_META);
  assert_null(tt_tensor_data(twice));
  FAILS(tt_add(c, t, numbers(TT_F32, DATA(1, 2)), &twice), TT_DEVICE, NULL);
  FAILS(tt_tensor_read(c, t, out, 16), TT_INVALID_ARG, NULL);
  on.device.type = 77;
  FAILS(tt_zeros(c, SHAPE(1), &on, &t), TT_DEVICE, "77");
}

/* ---- memory ---- */

static void test_memory_figures(void** state) {
  const tt_memory_stats before = memory();
  tt_memory_stats with, after;
  tt_tensor* t;
  (void)state;
  OK(tt_zeros(c, SHAPE(1 << 18), NULL, &t));
  with = memory();
  assert_true(with.in_use >= before.in_use + (1 << 20));
  assert_true(with.reserved >= with.in_use);
  assert_true(with.live_tensors == before.live_tensors + 1);
  tt_tensor_release(t);
  after = memory();
  assert_true(after.in_use <= with.in_use - (1 << 20));
  assert_true(after.live_tensors == before.live_tensors);
  assert_true(after.peak >= with.in_use);
  OK(tt_trim(c));
  assert_true(memory().reserved <= with.reserved - (1 << 20));
}

static void test_memory_limit(void** state) {
  tt_tensor* t;
  (void)state;
  OK(tt_set_memory_limit(c, 1 << 20));
  assert_int_equal(memory().limit, 1 << 20);
  FAILS(tt_zeros(c, SHAPE(1 << 20), NULL, &t), TT_OOM, "the limit is 1048576");
  assert_null(t);
  FAILS(tt_set_memory_limit(c, -1), TT_INVALID_ARG, "-1");
  OK(tt_set_memory_limit(c, 0));
  OK(tt_zeros(c, SHAPE(1 << 20), NULL, &t));
  tt_tensor_release(t);
}

static void test_cancel(void** state) {
  tt_cancel* k;
  tt_tensor *a, *out;
  (void)state;
  OK(tt_cancel_new(c, &k));
  OK(tt_ctx_set_cancel(c, k));
  a = numbers(TT_F32, DATA(1));
  tt_cancel_request(k);
  FAILS(tt_neg(c, a, &out), TT_CANCELLED, NULL);
  assert_null(out);
  OK(tt_ctx_set_cancel(c, NULL));
  OK(tt_neg(c, a, &out));
  tt_cancel_release(k);
}

#if TT_CHECKED
/* ---- handles after their release ---- */

static void test_use_after_release(void** state) {
  tt_tensor *big, *small, *y, *out;
  tt_generator* g;
  tt_node* n;
  uint64_t words[2];
  (void)state;
  OK(tt_zeros(c, SHAPE(3000), NULL, &big));
  OK(tt_zeros(c, SHAPE(3), NULL, &small));
  OK(tt_requires_grad_(c, small, 1));
  OK(tt_neg(c, small, &y));
  OK(tt_tensor_grad_fn(c, y, &n));
  OK(tt_generator_new(c, 1, &g));
  tt_generator_release(g);
  FAILS(tt_generator_state(c, g, words), TT_BAD_HANDLE, "live generator");
  tt_tensor_release(big);
  tt_tensor_release(y);
  tt_tensor_release(big); /* a second time: nothing */
  FAILS(tt_neg(c, big, &out), TT_BAD_HANDLE, "live tensor");
  FAILS(tt_neg(c, y, &out), TT_BAD_HANDLE, "self");
  assert_int_equal(tt_tensor_ndim(y), 0);
  tt_node_release(n);
  FAILS(tt_node_register_hook(c, n, 0, NULL, NULL, NULL, NULL), TT_INVALID_ARG, NULL);
  assert_null(tt_node_name(n));
  tt_tensor_release(small);
}

/* A second release does not affect other holders of the tensor. */
static void test_double_release_of_a_held_tensor(void** state) {
  tt_tensor *a, *b, *y, *l, *g;
  (void)state;
  OK(tt_ones(c, SHAPE(3), NULL, &a));
  OK(tt_requires_grad_(c, a, 1));
  OK(tt_ones(c, SHAPE(3), NULL, &b));
  OK(tt_mul(c, a, b, &y)); /* its node holds b */
  tt_tensor_release(b);
  tt_tensor_release(b);
  tt_tensor_release(b);
  OK(tt_sum(c, y, NULL, &l));
  OK(tt_backward(c, l, NULL));
  OK(tt_tensor_grad(c, a, &g));
  assert_true(((float*)tt_tensor_data(g))[2] == 1);
  tt_tensor_release(g);
  tt_tensor_release(l);
  tt_tensor_release(y);
  tt_tensor_release(a);
}

static void test_release_of_a_tensor_of_a_scope(void** state) {
  tt_tensor* t;
  (void)state;
  OK(tt_ones(c, SHAPE(3), NULL, &t));
  tt_tensor_release(t);
  VALUES(t, 1, 1, 1);
}
#endif

/* One call tells what the single functions tell. */
static void test_info(void** state) {
  tt_tensor* rows = make(TT_F32, SHAPE(2, 3), DATA(1, 2, 3, 4, 5, 6));
  tt_tensor* turned = NULL;
  tt_tensor* deep = NULL;
  tt_tensor_info info;
  int64_t ones[12];
  int i;
  (void)state;
  OK(tt_requires_grad_(c, rows, 1));
  OK(tt_transpose(c, rows, 0, 1, &turned));
  tt_tensor_get_info(turned, &info);
  assert_true(info.numel == 6 && info.data == tt_tensor_data(turned) && info.dtype == TT_F32);
  assert_true(info.ndim == 2 && info.device.type == TT_CPU && info.device.index == 0);
  assert_true(!info.is_contiguous && info.is_writable && info.requires_grad);
  assert_memory_equal(info.shape, tt_tensor_shape(turned), 2 * sizeof *info.shape);
  assert_memory_equal(info.strides, tt_tensor_strides(turned), 2 * sizeof *info.strides);
  assert_true(info.shape[2] == 0);
  for (i = 0; i < 12; i++) ones[i] = 1;
  ones[7] = 6;
  OK(tt_detach(c, rows, &turned));
  OK(tt_view(c, turned, ones, 12, &deep));
  tt_tensor_get_info(deep, &info);
  assert_true(info.ndim == 12 && info.shape[7] == 6 && info.is_contiguous && !info.requires_grad);
  tt_tensor_get_info(NULL, &info);
  assert_true(info.ndim == 0 && info.dtype == 0 && !info.data);
  tt_tensor_get_info(rows, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    SCOPED(test_info),
    PLAIN(test_names),
    PLAIN(test_fresh_ctx),
    PLAIN(test_private_runtime),
    PLAIN(test_release_in_any_order),
    PLAIN(test_allocator_that_does_not_align),
    PLAIN(test_runtime_options),
    PLAIN(test_scopes),
    SCOPED(test_scope_of_many),
    PLAIN(test_import),
    SCOPED(test_import_read_only),
    PLAIN(test_import_refused),
    SCOPED(test_import_that_overlaps_itself),
    SCOPED(test_integer_sums_wrap),
    SCOPED(test_read),
    SCOPED(test_items),
    SCOPED(test_equality),
    SCOPED(test_scalar_tensor),
    SCOPED(test_conversion_between_all_dtypes),
    SCOPED(test_conversion_of_values),
    SCOPED(test_channels_last),
    SCOPED(test_clone_and_contiguous_of_all_dtypes),
    SCOPED(test_printing),
    SCOPED(test_facts),
    PLAIN(test_facts_of_null),
    SCOPED(test_bad_shapes),
    SCOPED(test_bad_views),
    SCOPED(test_integer_edges),
    SCOPED(test_integer_powers),
    SCOPED(test_error_record),
    SCOPED(test_unknown_option_bits),
    SCOPED(test_generator_state),
    SCOPED(test_devices),
    PLAIN(test_memory_figures),
    PLAIN(test_memory_limit),
    SCOPED(test_cancel),
    PLAIN(test_scope_that_keeps_many),
    PLAIN(test_scope_keeps_a_handle_once),
#if TT_CHECKED
    PLAIN(test_use_after_release),
    PLAIN(test_double_release_of_a_held_tensor),
    SCOPED(test_release_of_a_tensor_of_a_scope),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
