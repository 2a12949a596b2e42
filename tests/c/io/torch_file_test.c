/* PyTorch's files: PyTorch's own are read, written files are read back, and a failed write
   leaves no file. */
#include "torch_archive.h"

/* ---- what PyTorch wrote ---- */

static void test_recorded_file(void** state) {
  char recorded[512];
  tt_state_dict* s;
  const char* text;
  (void)state;
  snprintf(recorded, sizeof recorded, "%s/tests/python/conformance-training/files/good/training.pt",
           getenv("TT_TEST_ROOT"));
  s = loaded(recorded);
  assert_int_equal(tt_state_dict_size(s), 27);
  assert_string_equal(tt_state_dict_name(s, 0), "model.0.weight");
  HAS_SHAPE(got(s, "model.0.weight"), 2, 1, 3, 3);
  assert_int_equal(tt_tensor_dtype(got(s, "model.1.num_batches_tracked")), TT_I64);
  text = tt_state_dict_structure(s);
  assert_ptr_equal(
      strstr(text,
             "{\"dict\":[[\"model\",{\"ordered\":[[\"0.weight\",{\"tensor\":\"model.0.weight\"}],"),
      text);
  OK(tt_torch_save(c, path, s, text));
  {
    tt_state_dict* back = loaded(path);
    int64_t i;
    assert_string_equal(tt_state_dict_structure(back), text);
    for (i = 0; i < 27; i++) {
      tt_tensor *a, *b;
      double *x, *y;
      OK(tt_state_dict_get(c, s, i, &a));
      OK(tt_state_dict_get(c, back, i, &b));
      assert_string_equal(tt_state_dict_name(s, i), tt_state_dict_name(back, i));
      assert_int_equal(tt_tensor_dtype(a), tt_tensor_dtype(b));
      x = values_of(a);
      y = values_of(b);
      assert_memory_equal(x, y, (size_t)tt_tensor_numel(a) * sizeof *x);
      free(x);
      free(y);
    }
    tt_state_dict_release(back);
  }
  tt_state_dict_release(s);
  assert_int_equal(files_in_folder(), 1);
}

static void test_big_endian_and_views(void** state) {
  static const char kBody[] =
      "}(X\1\0\0\0aq\0ctorch._utils\n_rebuild_tensor_v2\nq\1(("
      "X\7\0\0\0storageq\2ctorch\nHalfStorage\nq\3X\1\0\0\0000q\4X\3\0\0\0cpuq\5K\4tQq\6"
      "K\1(K\2K\1t(K\2K\1t\x88"
      "ccollections\nOrderedDict\n)Rtq\7Rq\x08X\1\0\0\0bh\1(h\6K\0K\4\x85K\1\x85\x89)}"
      "q\tt\x52X\1\0\0\0ch\x08u";
  tt_state_dict* s;
  (void)state;
  pack_pickle(kBody, sizeof kBody - 1, "big", "\x3c\0\x40\0\x42\0\x44\0", 8);
  write_file(file, file_bytes);
  s = loaded(path);
  assert_string_equal(tt_state_dict_structure(s),
                      "{\"dict\":[[\"a\",{\"tensor\":\"a\"}],[\"b\",{\"tensor\":\"b\"}],[\"c\",{"
                      "\"tensor\":\"a\"}]]}");
  VALUES(got(s, "a"), 2, 4);
  VALUES(got(s, "b"), 1, 2, 3, 4);
  assert_true(tt_tensor_requires_grad(got(s, "a")) && tt_tensor_is_leaf(got(s, "a")) &&
              !tt_tensor_requires_grad(got(s, "b")));
  assert_ptr_equal(tt_tensor_storage_data(got(s, "a")), tt_tensor_storage_data(got(s, "b")));
  assert_int_equal(tt_tensor_offset(got(s, "a")), 1);
  assert_int_equal(tt_tensor_strides(got(s, "a"))[0], 2);
  tt_state_dict_release(s);
}

/* ---- round trips ---- */

static void test_every_dtype_as_a_state_dict(void** state) {
  static const char* const kNames[] = {"bool", "u8",   "i8",  "i16", "i32", "i64",
                                       "f16",  "bf16", "f32", "f64", "c64", "naïve \"12\""};
  tt_tensor* t[12];
  tt_state_dict *s, *back;
  int d;
  (void)state;
  for (d = 0; d < 12; d++) t[d] = make(d + 1, SHAPE(2, 3), DATA(1, 0, 1, 1, 0, 1));
  OK(tt_requires_grad_(c, t[8], 1));
  s = dict_of(kNames, t, 12);
  assert_null(tt_state_dict_structure(s));
  OK(tt_torch_save(c, path, s, NULL));
  back = loaded(path);
  for (d = 0; d < 12; d++) {
    assert_string_equal(tt_state_dict_name(back, d), kNames[d]);
    assert_int_equal(tt_tensor_dtype(got(back, kNames[d])), d + 1);
    assert_false(tt_tensor_requires_grad(got(back, kNames[d])));
    HAS_SHAPE(got(back, kNames[d]), 2, 3);
    VALUES(got(back, kNames[d]), 1, 0, 1, 1, 0, 1);
  }
  tt_state_dict_release(s);
  tt_state_dict_release(back);
}

static void test_views_share_what_they_shared(void** state) {
  static const char* const kNames[] = {"all", "turned", "row", "wide", "empty", "number"};
  tt_tensor* all = make(TT_F32, SHAPE(2, 3), DATA(1, 2, 3, 4, 5, 6));
  tt_tensor* t[6] = {all};
  tt_state_dict *s, *back;
  (void)state;
  OK(tt_t(c, all, &t[1]));
  OK(tt_select(c, all, 0, 1, &t[2]));
  OK(tt_expand(c, number(TT_F64, 7), SHAPE(3, 2), &t[3]));
  t[4] = make(TT_I16, SHAPE(2, 0, 3), NULL, 0);
  t[5] = number(TT_I64, -3);
  s = dict_of(kNames, t, 6);
  OK(tt_torch_save(c, path, s, NULL));
  back = loaded(path);
  HAS_SHAPE(got(back, "turned"), 3, 2);
  VALUES(got(back, "turned"), 1, 4, 2, 5, 3, 6);
  VALUES(got(back, "row"), 4, 5, 6);
  VALUES(got(back, "wide"), 7, 7, 7, 7, 7, 7);
  HAS_SHAPE(got(back, "empty"), 2, 0, 3);
  assert_true(value_of(got(back, "number")) == -3 &&
              tt_tensor_storage_bytes(got(back, "wide")) == 8);
  OK(tt_fill_f64_(c, got(back, "row"), 9));
  VALUES(got(back, "turned"), 1, 9, 2, 9, 3, 9);
  tt_state_dict_release(s);
  tt_state_dict_release(back);
}

/* A device's tensors are written row-major, without the rest of their storage. */
static void test_tensors_of_a_device(void** state) {
  static const char* const kNames[] = {"turned", "row"};
  const tt_to_opts cuda = {.set = TT_TO_DEVICE, .device = {TT_CUDA, 0}};
  tt_tensor *there, *t[2];
  tt_state_dict *s, *back;
  (void)state;
  OK(tt_load_cuda(c, getenv("TT_TEST_FAKE_LIBRARY")));
  OK(tt_to(c, make(TT_F32, SHAPE(2, 3), DATA(1, 2, 3, 4, 5, 6)), &cuda, &there));
  OK(tt_t(c, there, &t[0]));
  OK(tt_select(c, there, 0, 1, &t[1]));
  OK(tt_requires_grad_(c, t[1], 1));
  s = dict_of(kNames, t, 2);
  OK(tt_torch_save(c, path, s, "{\"list\":[{\"tensor\":\"turned\"},{\"tensor\":\"row\"}]}"));
  back = loaded(path);
  HAS_SHAPE(got(back, "0"), 3, 2);
  VALUES(got(back, "0"), 1, 4, 2, 5, 3, 6);
  VALUES(got(back, "1"), 4, 5, 6);
  assert_true(tt_tensor_device_type(got(back, "1")) == TT_CPU &&
              tt_tensor_requires_grad(got(back, "1")));
  assert_int_equal(tt_tensor_storage_bytes(got(back, "1")), 12);
  tt_state_dict_release(s);
  tt_state_dict_release(back);
}

static void test_structures(void** state) {
  static const char* const kNames[] = {"a", "b.0"};
  static const char kText[] =
      "{\"ordered\":[[\"x\",{\"list\":[{\"tensor\":\"a\"},{\"parameter\":\"b.0\"},{\"tensor\":"
      "\"a\"}]}],[7,{\"tuple\":["
      "null,true,false,{\"tuple\":[]}]}],"
      "[{\"tuple\":[1,\"t\"]},{\"dict\":[[-1,0],[255,256],[65535,65536],[2147483647,-2147483648],["
      "9223372036854775807,-"
      "9223372036854775808],"
      "[18446744073709551615,-1180591620717411303424]]}],[{\"float\":\"0x1.8000000000000p+1\"},{"
      "\"list\":[{\"float\":"
      "\"-0x0.0p+0\"},{\"float\":\"inf\"},"
      "{\"float\":\"-inf\"},{\"float\":\"nan\"},{\"float\":\"0x0.0000000000001p-1022\"},{\"float\":"
      "\"-0x1."
      "fffffffffffffp+1023\"}]}],"
      "[\"q\\\"\\\\\\u000a\\u0000 "
      "\xe2\x82\xac\\udc80\",{\"size\":[2,3]}],[\"c\",{\"counter\":[[\"n\",2]]}],[\"d\",{\"dtype\":"
      "\"bfloat16\"}],"
      "[\"e\",{\"device\":\"cuda:1\"}]]}";
  tt_tensor* t[] = {number(TT_F32, 1), number(TT_F32, 2)};
  tt_state_dict *s = dict_of(kNames, t, 2), *back;
  (void)state;
  OK(tt_requires_grad_(c, t[0], 1));
  OK(tt_torch_save(c, path, s, kText));
  back = loaded(path);
  assert_int_equal(tt_state_dict_size(back), 2);
  assert_string_equal(tt_state_dict_name(back, 0), "x.0");
  assert_string_equal(tt_state_dict_name(back, 1), "x.1");
  assert_true(tt_tensor_requires_grad(got(back, "x.0")) &&
              !tt_tensor_requires_grad(got(back, "x.1")));
  { /* the names are now those of the positions */
    char want[sizeof kText + 16], *at;
    strcpy(want, kText);
    while ((at = strstr(want, "r\":\"a\"")) != NULL) {
      memmove(at + 7, at + 5, strlen(at + 5) + 1);
      memcpy(at + 4, "x.0", 3);
    }
    at = strstr(want, "b.0");
    memcpy(at, "x.1", 3);
    assert_string_equal(tt_state_dict_structure(back), want);
  }
  tt_state_dict_release(back);
  OK(tt_torch_save(c, path, s,
                   " {\"list\" : [ {\"tensor\":\"b.0\"} ,\t\n{\"tensor\" : \"a\"} ]} "));
  back = loaded(path);
  assert_string_equal(tt_state_dict_structure(back),
                      "{\"list\":[{\"tensor\":\"0\"},{\"tensor\":\"1\"}]}");
  tt_state_dict_release(back);
  tt_state_dict_release(s);
}

static void test_names_differ(void** state) {
  static const char* const kNames[] = {"a", "b", "c", "d"};
  tt_tensor* t[] = {number(TT_F32, 1), number(TT_F32, 2), number(TT_F32, 3), number(TT_F32, 4)};
  tt_state_dict *s = dict_of(kNames, t, 4), *back;
  (void)state;
  OK(tt_torch_save(c, path, s,
                   "{\"dict\":[[\"x.y\",{\"tensor\":\"a\"}],[\"x\",{\"dict\":[[\"y\",{\"tensor\":"
                   "\"b\"}]]}],[\"x.y#1\","
                   "{\"tensor\":\"c\"}],[\"x.y\",{\"tensor\":\"d\"}]]}"));
  back = loaded(path);
  assert_int_equal(tt_state_dict_size(back), 4);
  VALUES(got(back, "x.y"), 1);
  VALUES(got(back, "x.y#1"), 2);
  VALUES(got(back, "x.y#1#2"), 3);
  VALUES(got(back, "x.y#3"), 4);
  tt_state_dict_release(s);
  tt_state_dict_release(back);
}

/* A file of 8 MB needs little more than 8 MB of memory. */
static void test_memory(void** state) {
  static const char* const kNames[] = {"w"};
  const int64_t n = 2 << 20;
  tt_tensor* t[1];
  tt_state_dict* s;
  int64_t before;
  (void)state;
  OK(tt_ones(c, &n, 1, NULL, &t[0]));
  s = dict_of(kNames, t, 1);
  before = host.bytes;
  host.peak = host.bytes;
  OK(tt_torch_save(c, path, s, NULL));
  assert_true(host.peak - before < 1 << 20);
  before = host.bytes;
  host.peak = host.bytes;
  tt_state_dict_release(s);
  s = loaded(path);
  assert_true(host.peak - before < 4 * n + (1 << 20));
  assert_true(value_of(sum_of(got(s, "w"))) == (double)n);
  tt_state_dict_release(s);
}

/* ---- objects that cannot be saved ---- */

static void test_bad_saves(void** state) {
  static const char* const kNames[] = {"a"};
  static const char* const kLatin[] = {"\xe4"};
  static const struct {
    const char *structure, *why;
  } kBad[] = {{"", "too early"},
              {"{}", "a string"},
              {"[]", "expected a value"},
              {"nul", "expected a value"},
              {"1.5", "a float must"},
              {"1e5", "a float must"},
              {"{\"float\":\"1.5\"}", "hexadecimal"},
              {"{\"float\":\"0x1.fffffffffffff8p+0\"}", "hexadecimal"},
              {"{\"float\":\"0x1p\"}", "hexadecimal"},
              {"{\"float\":1}", "a string"},
              {"{\"set\":[]}", "a string"},
              {"{\"set\":\"x\"}", "unknown kind"},
              {"{\"dtype\":\"float31\"}", "unknown dtype"},
              {"{\"tensor\":\"b\"}", "not one of the tensors"},
              {"{\"list\":[]}", "does not name \"a\""},
              {"{\"list\":[1,]}", "expected a value"},
              {"{\"list\":[1 2]}", ", or ]"},
              {"{\"list\":[1}", ", or ]"},
              {"{\"list\":[1]", "too early"},
              {"{\"list\":[1],\"tuple\":[]}", "expected }"},
              {"{\"dict\":[1]}", "a pair"},
              {"{\"dict\":[[1]]}", "expected ,"},
              {"{\"dict\":[[1,2,3]]}", "expected ]"},
              {"{\"dict\":[[{\"list\":[]},1]]}", "mutable container"},
              {"{\"dict\":[[{\"tuple\":[{\"list\":[]}]},1]]}", "mutable container"},
              {"{\"tensor\":\"a\"} x", "after the structure"},
              {"\"\\x\"", "unknown escape"},
              {"\"a", "unterminated"}};
  tt_tensor* t[] = {number(TT_F32, 1)};
  tt_state_dict *s = dict_of(kNames, t, 1), *other;
  char deep[6000] = "", inner[128];
  size_t i;
  (void)state;
  OK(tt_torch_save(c, path, s, NULL));
  for (i = 0; i < sizeof kBad / sizeof *kBad; i++)
    FAILS(tt_torch_save(c, path, s, kBad[i].structure), TT_INVALID_ARG, kBad[i].why);
  for (i = 0; i < 201; i++) strcat(deep, "{\"list\":[");
  FAILS(tt_torch_save(c, path, s, deep), TT_INVALID_ARG, "nested too deep");
  memset(deep, '9', 620);
  deep[620] = 0;
  FAILS(tt_torch_save(c, path, s, deep), TT_INVALID_ARG, "int of more than");
  other = dict_of(kLatin, t, 1);
  FAILS(tt_torch_save(c, path, other, NULL), TT_INVALID_ARG, "UTF-8");
  tt_state_dict_release(other);
  {
    const tt_empty_opts meta = {.set = TT_EMPTY_DEVICE, .device = {TT_META, 0}};
    OK(tt_empty(c, SHAPE(2), &meta, &t[0]));
    other = dict_of(kNames, t, 1);
    FAILS(tt_torch_save(c, path, other, NULL), TT_DEVICE, "meta");
    tt_state_dict_release(other);
  }
  snprintf(inner, sizeof inner, "%s/none/x.pt", folder);
  FAILS(tt_torch_save(c, inner, s, NULL), TT_IO, "no such file");
  FAILS(tt_torch_load(c, inner, &other), TT_IO, "no such file");
  FAILS(tt_torch_load(c, folder, &other), TT_IO, "directory");
  tt_state_dict_release(s);
  s = loaded(path); /* as it was */
  VALUES(got(s, "a"), 1);
  tt_state_dict_release(s);
  assert_int_equal(files_in_folder(), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCOPED(test_recorded_file),
      SCOPED(test_big_endian_and_views),
      SCOPED(test_every_dtype_as_a_state_dict),
      SCOPED(test_views_share_what_they_shared),
      SCOPED(test_tensors_of_a_device),
      SCOPED(test_structures),
      SCOPED(test_names_differ),
      SCOPED(test_memory),
      SCOPED(test_bad_saves),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
