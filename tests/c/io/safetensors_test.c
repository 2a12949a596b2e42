/* Safetensors files: written files are read back, malformed files are refused, and no temporary
   file is left. */
#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64], path[128];

static int set_up(void** state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/tt_files_XXXXXX");
  if (!mkdtemp(folder)) return -1;
  snprintf(path, sizeof path, "%s/model.safetensors", folder);
  return 0;
}
/* Removes every file of the folder and returns their number. */
static int empty_folder(void) {
  DIR* d = opendir(folder);
  struct dirent* e;
  char name[512];
  int n = 0;
  while ((e = readdir(d)) != NULL) {
    if (e->d_name[0] == '.') continue;
    snprintf(name, sizeof name, "%s/%s", folder, e->d_name);
    assert_int_equal(unlink(name), 0);
    n++;
  }
  closedir(d);
  return n;
}
static int tear_down(void** state) {
  (void)state;
  empty_folder();
  return rmdir(folder);
}

static tt_safetensors* opened(void) {
  tt_safetensors* f;
  OK(tt_safetensors_open(c, path, &f));
  return f;
}
static tt_tensor* got(tt_safetensors* f, const char* name) {
  tt_tensor* t;
  int64_t i;
  OK(tt_safetensors_find(c, f, name, &i));
  OK(tt_safetensors_get(c, f, i, &t));
  return t;
}

/* ---- round trips ---- */

static void test_round_trip(void** state) {
  static const tt_dtype kDtypes[] = {TT_BOOL, TT_U8,   TT_I8,  TT_I16, TT_I32, TT_I64,
                                     TT_F16,  TT_BF16, TT_F32, TT_F64, TT_C64};
  static const char* const kNames[] = {"bool",
                                       "a.weight",
                                       "a.bias",
                                       "sp ace",
                                       "quote\"\\",
                                       "tab\t\x01",
                                       "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
                                       "",
                                       "t",
                                       "u",
                                       "v"};
  enum { N = sizeof kDtypes / sizeof *kDtypes };
  tt_tensor* t[N];
  tt_safetensors* f;
  int i;
  (void)state;
  for (i = 0; i < N; i++) t[i] = make(kDtypes[i], SHAPE(2, 3), DATA(1, 0, 1, 1, 0, 1));
  OK(tt_safetensors_save(c, path, kNames, t, N, NULL));
  f = opened();
  assert_int_equal(tt_safetensors_size(f), N);
  for (i = 0; i < N; i++) {
    tt_tensor* back = got(f, kNames[i]);
    assert_string_equal(tt_safetensors_name(f, i), kNames[i]);
    assert_int_equal(tt_tensor_dtype(back), kDtypes[i]);
    HAS_SHAPE(back, 2, 3);
    VALUES(back, 1, 0, 1, 1, 0, 1);
  }
  assert_null(tt_safetensors_name(f, N));
  assert_null(tt_safetensors_name(f, -1));
  tt_safetensors_release(f);
  assert_int_equal(empty_folder(), 1);
}

static void test_shapes_and_strides(void** state) {
  static const char* const kNames[] = {"scalar", "empty", "turned", "row"};
  tt_tensor *all = make(TT_F32, SHAPE(2, 3), DATA(1, 2, 3, 4, 5, 6)), *t[4];
  tt_safetensors* f;
  (void)state;
  t[0] = number(TT_F64, 7);
  t[1] = make(TT_I16, SHAPE(2, 0, 3), NULL, 0);
  OK(tt_t(c, all, &t[2]));
  OK(tt_select(c, all, 0, 1, &t[3]));
  OK(tt_requires_grad_(c, all, 1));
  OK(tt_safetensors_save(c, path, kNames, t, 4, NULL));
  f = opened();
  assert_int_equal(tt_tensor_ndim(got(f, "scalar")), 0);
  assert_true(value_of(got(f, "scalar")) == 7);
  HAS_SHAPE(got(f, "empty"), 2, 0, 3);
  HAS_SHAPE(got(f, "turned"), 3, 2);
  VALUES(got(f, "turned"), 1, 4, 2, 5, 3, 6);
  VALUES(got(f, "row"), 4, 5, 6);
  assert_false(tt_tensor_requires_grad(got(f, "turned")));
  tt_safetensors_retain(f);
  tt_safetensors_release(f);
  VALUES(got(f, "row"), 4, 5, 6);
  tt_safetensors_release(f);
}

static void test_metadata(void** state) {
  static const char* const kPairs[] = {"format", "tt", "note", "two\nlines"};
  const tt_safetensors_save_opts opts = {TT_SAFETENSORS_SAVE_METADATA, kPairs, 4};
  tt_safetensors* f;
  (void)state;
  OK(tt_safetensors_save(c, path, NULL, NULL, 0, &opts)); /* no tensors at all */
  f = opened();
  assert_int_equal(tt_safetensors_size(f), 0);
  assert_int_equal(tt_safetensors_metadata_size(f), 2);
  assert_string_equal(tt_safetensors_metadata_key(f, 1), "note");
  assert_string_equal(tt_safetensors_metadata_value(f, 1), "two\nlines");
  assert_null(tt_safetensors_metadata_key(f, 2));
  assert_null(tt_safetensors_metadata_value(f, -1));
  tt_safetensors_release(f);
}

/* ---- refused files ---- */

static void test_bad_saves(void** state) {
  static const char* const kTwice[] = {"a", "a"};
  static const char* const kReserved[] = {"__metadata__"};
  static const char* const kLatin[] = {"\xe4"};
  static const char* const kOne[] = {"a"};
  static const char* const kNone[] = {NULL};
  static const char* const kOdd[] = {"key"};
  const tt_safetensors_save_opts odd = {TT_SAFETENSORS_SAVE_METADATA, kOdd, 1};
  const tt_safetensors_save_opts later = {2, NULL, 0};
  tt_tensor* t = number(TT_F32, 1);
  tt_tensor* pair[] = {t, t};
  tt_tensor* wide = number(TT_C128, 1);
  tt_tensor* meta;
  tt_tensor* old;
  const tt_device on_meta = {TT_META, 0};
  const tt_empty_opts empty = {.set = TT_EMPTY_DEVICE, .device = on_meta};
  char inner[256];
  (void)state;
  OK(tt_empty(c, SHAPE(2), &empty, &meta));
  OK(tt_safetensors_save(c, path, kOne, &t, 1, NULL));
  FAILS(tt_safetensors_save(c, path, kTwice, pair, 2, NULL), TT_INVALID_ARG, "both \"a\"");
  FAILS(tt_safetensors_save(c, path, kReserved, &t, 1, NULL), TT_INVALID_ARG, "__metadata__");
  FAILS(tt_safetensors_save(c, path, kLatin, &t, 1, NULL), TT_INVALID_ARG, "UTF-8");
  FAILS(tt_safetensors_save(c, path, kNone, &t, 1, NULL), TT_INVALID_ARG, "names[0]");
  FAILS(tt_safetensors_save(c, path, kOne, &wide, 1, NULL), TT_NOT_IMPLEMENTED, "complex128");
  FAILS(tt_safetensors_save(c, path, kOne, &meta, 1, NULL), TT_DEVICE, "meta");
  FAILS(tt_safetensors_save(c, path, kOne, &t, -1, NULL), TT_INVALID_ARG, "n is -1");
  FAILS(tt_safetensors_save(c, path, kOne, &t, 1, &odd), TT_INVALID_ARG, "n_metadata");
  FAILS(tt_safetensors_save(c, path, kOne, &t, 1, &later), TT_UNSUPPORTED_OPTION, NULL);
  snprintf(inner, sizeof inner, "%s/none/x", folder);
  FAILS(tt_safetensors_save(c, inner, kOne, &t, 1, NULL), TT_IO, "its folder does not exist");
  FAILS(tt_safetensors_save(c, folder, kOne, &t, 1, NULL), TT_IO,
        folder); /* a directory is not replaced */
  snprintf(inner, sizeof inner, "%s/..", folder);
  {
    tt_safetensors* f = opened();
    old = got(f, "a");
    assert_true(value_of(old) == 1);
    FAILS(tt_safetensors_get(c, f, 1, &old), TT_INDEX, "i is 1");
    FAILS(tt_safetensors_get(c, f, -1, &old), TT_INDEX, "i is -1");
    int64_t i;
    FAILS(tt_safetensors_find(c, f, "b", &i), TT_INDEX, "\"b\"");
    tt_safetensors_release(f);
  }
  assert_int_equal(empty_folder(), 1); /* the good file, and nothing of the failed ones */
}

static void test_no_file(void** state) {
  tt_safetensors* f;
  (void)state;
  FAILS(tt_safetensors_open(c, path, &f), TT_IO, "no such file");
  assert_null(f);
  FAILS(tt_safetensors_open(c, folder, &f), TT_IO, "directory");
#ifdef _WIN32 /* paths are UTF-16 there; elsewhere they are any bytes */
  FAILS(tt_safetensors_open(c, "\xff", &f), TT_IO, "not UTF-8");
#endif
  assert_int_equal(mkfifo(path, 0600), 0);
  FAILS(tt_safetensors_open(c, path, &f), TT_IO, "regular");
  assert_int_equal(unlink(path), 0);
}

/* ---- malformed files ---- */

typedef struct Bad {
  const char* header; /* its text */
  int64_t data;       /* bytes behind it */
  const char* why;    /* part of the message */
} Bad;
#define T(shape, from, to) \
  "{\"dtype\":\"F32\",\"shape\":[" shape "],\"data_offsets\":[" #from "," #to "]}"
static const Bad kBad[] = {
    {"", 0, "begin with {"},
    {"[]", 0, "begin with {"},
    {" {}", 0, "begin with {"},
    {"{", 0, "ends too early"},
    {"{}x", 0, "after the header's"},
    {"{\"a\"", 0, "too early"},
    {"{\"a\":", 0, "too early"},
    {"{a:1}", 0, "a string"},
    {"{\"a\" 1}", 0, "expected :"},
    {"{\"a\":1}", 0, "an object"},
    {"{\"a\":null}", 0, "an object"},
    {"{\"a\":{}}", 0, "needs dtype"},
    {"{\"a\":[[[[[[[[[[", 0, "an object"},
    {"{\"a\":{\"b\":{\"c\":{", 0, "unknown or repeated"},
    {"{\"a\":" T("1", 0, 4) "", 4, "too early"},
    {"{\"a\":" T("1", 0, 4) ",}", 4, "a string"},
    {"{\"a\":" T("1", 0, 4) " \"b\"", 4, ", or }"},
    {"{\"a\":" T("1", 0, 4) "}", 3, "past the end of the file"},
    {"{\"a\":" T("1", 0, 4) "}", 5, "does not belong to a tensor"},
    {"{}", 1, "does not belong to a tensor"},
    {"{\"a\":" T("2", 0, 4) "}", 4, "do not match"},
    {"{\"a\":" T("1", 4, 0) "}", 4, "backwards"},
    {"{\"a\":" T("1", 4, 8) "}", 8, "a gap"},
    {"{\"a\":" T("1", 0, 4) ",\"b\":" T("1", 0, 4) "}", 4, "overlaps"},
    {"{\"a\":" T("2", 0, 8) ",\"b\":" T("1", 4, 8) "}", 8, "overlaps"},
    {"{\"a\":" T("1", 0, 4) ",\"b\":" T("1", 8, 12) "}", 12, "a gap"},
    {"{\"a\":" T("1", 0, 4) ",\"a\":" T("1", 4, 8) "}", 8, "its name appears twice"},
    {"{\"a\":" T("1", 0, 4) ",\"\\u0061\":" T("1", 4, 8) "}", 8, "twice"},
    {"{\"a\":" T("4294967296,4294967296", 0, 4) "}", 4, "overflows"},
    {"{\"a\":" T("9223372036854775808", 0, 4) "}", 4, "too large"},
    {"{\"a\":" T("99999999999999999999999", 0, 4) "}", 4, "too large"},
    {"{\"a\":" T("-1", 0, 4) "}", 4, "non-negative"},
    {"{\"a\":" T("1.0", 0, 4) "}", 4, ", or ]"},
    {"{\"a\":" T("1e0", 0, 4) "}", 4, ", or ]"},
    {"{\"a\":" T("01", 0, 4) "}", 4, "leading 0"},
    {"{\"a\":" T("\"1\"", 0, 4) "}", 4, "non-negative"},
    {"{\"a\":" T("1,", 0, 4) "}", 4, "non-negative"},
    {"{\"a\":" T("[1]", 0, 4) "}", 4, "non-negative"},
    {"{\"a\":" T("1", 0, 9223372036854775807) "}", 4, "past the end"},
    {"{\"a\":" T("1", 0, 18446744073709551620) "}", 4, "too large"},
    {"{\"a\":{\"dtype\":\"F31\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "dtype"},
    {"{\"a\":{\"dtype\":\"\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "dtype"},
    {"{\"a\":{\"dtype\":1,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "a string"},
    {"{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4, "dtype"},
    {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
     "repeated key"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
     "repeated key"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "needs dtype"},
    {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "needs dtype"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, "fewer than two"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[]}}", 4, "fewer than two"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,4]}}", 4, "more than two"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":{},\"data_offsets\":[0,4]}}", 4, "a list"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"extra\":1}}", 4, "unknown"},
    {"{\"__metadata__\":[]}", 0, "an object"},
    {"{\"__metadata__\":{\"a\":1}}", 0, "a string"},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "twice"},
    {"{\"__metadata__\":{\"a\":{\"b\":\"c\"}}}", 0, "a string"},
    {"{\"a\\", 0, "escape"},
    {"{\"a\\x\":1}", 0, "escape"},
    {"{\"\\u00g0\":1}", 0, "hexadecimal"},
    {"{\"\\ud800\":1}", 0, "surrogate"},
    {"{\"\\udc00x\":1}", 0, "surrogate"},
    {"{\"\\ud800\\u0041\":1}", 0, "surrogate"},
    {"{\"\\u0000\":1}", 0, "zero"},
    {"{\"\xff\":1}", 0, "UTF-8"},
    {"{\"\xc0\x80\":1}", 0, "UTF-8"},
    {"{\"\xed\xa0\x80\":1}", 0, "UTF-8"},
    {"{\"a\nb\":1}", 0, "control"},
    {"{\"abc", 0, "unterminated"},
    {"{\"a\":" T("1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
                 "1,1,1,1,1,1,1,1,1,1,"
                 "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1",
                 0, 4) "}",
     4, "64 dim"},
};

static void write_file(uint64_t length, const char* header, size_t n, int64_t data) {
  FILE* f = fopen(path, "wb");
  fwrite(&length, 1, 8, f);
  fwrite(header, 1, n, f);
  while (data-- > 0) fputc(1, f);
  fclose(f);
}
/* The file is refused with a byte and a reason, without much memory. */
static void refused(tt_status want, const char* why, int64_t file_bytes) {
  tt_safetensors* f;
  const int64_t before = host.bytes;
  host.peak = before;
  FAILS(tt_safetensors_open(c, path, &f), want, why);
  if (want == TT_FORMAT) assert_non_null(strstr(tt_ctx_error(c)->message, "byte "));
  assert_null(f);
  assert_true(host.peak - before <= file_bytes + (1 << 20));
}

static void test_malformed_files(void** state) {
  size_t i;
  (void)state;
  for (i = 0; i < sizeof kBad / sizeof *kBad; i++) {
    const size_t n = strlen(kBad[i].header);
    write_file(n, kBad[i].header, n, kBad[i].data);
    refused(TT_FORMAT, kBad[i].why, (int64_t)n + kBad[i].data + 8);
  }
  print_message("%d malformed headers\n", (int)i);
}

static void test_wrong_lengths(void** state) {
  static const uint64_t kLengths[] = {
      3, 1000, 100000001, UINT64_C(1) << 40, UINT64_C(1) << 63, UINT64_MAX};
  size_t i;
  (void)state;
  for (i = 0; i < sizeof kLengths / sizeof *kLengths; i++) {
    write_file(kLengths[i], "{}", 2, 0);
    refused(TT_FORMAT, "length", 10);
  }
  for (i = 0; i < 8; i++) {
    FILE* f = fopen(path, "wb");
    fwrite("\2\0\0\0\0\0\0\0", 1, i, f);
    fclose(f);
    refused(TT_FORMAT, "8 bytes", (int64_t)i);
  }
}

static void test_a_cut_file_at_every_byte(void** state) {
  static const char* const kNames[] = {"first", "second"};
  tt_tensor* t[] = {make(TT_F32, SHAPE(2), DATA(1, 2)), make(TT_BOOL, SHAPE(3), DATA(1, 0, 1))};
  struct stat s;
  (void)state;
  OK(tt_safetensors_save(c, path, kNames, t, 2, NULL));
  assert_int_equal(stat(path, &s), 0);
  while (s.st_size-- > 0) {
    assert_int_equal(truncate(path, s.st_size), 0);
    refused(TT_FORMAT, path, s.st_size);
  }
}

static void test_bad_data(void** state) {
  static const char* const kNames[] = {"b"};
  tt_tensor *t = make(TT_BOOL, SHAPE(3), DATA(1, 0, 1)), *none;
  tt_safetensors* f;
  FILE* raw;
  (void)state;
  OK(tt_safetensors_save(c, path, kNames, &t, 1, NULL));
  f = opened();
  raw = fopen(path, "r+b");
  fseek(raw, -2, SEEK_END);
  fputc(2, raw);
  fclose(raw);
  FAILS(tt_safetensors_get(c, f, 0, &none), TT_FORMAT, "neither 0 nor 1");
  assert_int_equal(truncate(path, 20), 0); /* cut while it is open */
  FAILS(tt_safetensors_get(c, f, 0, &none), TT_IO, "has been truncated");
  assert_null(none);
  tt_safetensors_release(f);
}

/* ---- a crash leaves the old file or the new one ---- */

static void save_number(double v) {
  static const char* const kNames[] = {"a", "b"};
  tt_tensor *a, *t[2];
  OK(tt_scope_push(c));
  OK(tt_full_f64(c, SHAPE(200000), v, NULL, &a));
  t[0] = a;
  t[1] = number(TT_F64, v);
  OK(tt_safetensors_save(c, path, kNames, t, 2, NULL));
  OK(tt_scope_pop(c, NULL, 0));
}
static void test_killed_while_saving(void** state) {
  unsigned seed = 12345;
  int round;
  (void)state;
  save_number(0);
  for (round = 0; round < 100; round++) {
    double v;
    int status;
    tt_safetensors* f;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
      for (v = 1;; v++) save_number(v);
    }
    seed = seed * 1103515245 + 12345;
    usleep(seed / 65536 % 8000);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    OK(tt_scope_push(c));
    f = opened();
    v = value_of(got(f, "b"));
    assert_true(value_of(sum_of(got(f, "a"))) == 200000 * v); /* both of one save */
    tt_safetensors_release(f);
    OK(tt_scope_pop(c, NULL, 0));
  }
}

/* ---- mapped files ---- */

static void test_mapped(void** state) {
  static const char* const kNames[] = {"w", "odd", "d"};
  tt_tensor *t[3], *w, *d, *odd;
  tt_safetensors* f;
  (void)state;
  t[0] = make(TT_F32, SHAPE(2, 3), DATA(1, 2, 3, 4, 5, 6));
  t[1] = make(TT_U8, SHAPE(3), DATA(7, 8, 9));
  t[2] =
      make(TT_F64, SHAPE(2), DATA(0.5, 0.25)); /* at offset 3: not aligned, and therefore copied */
  OK(tt_safetensors_save(c, path, kNames, t, 3, NULL));
  OK(tt_scope_push(c));
  OK(tt_safetensors_map(c, path, &f));
  w = got(f, "w");
  odd = got(f, "odd");
  d = got(f, "d");
  assert_int_equal(tt_tensor_is_writable(w), 0);
  assert_int_equal(tt_tensor_is_writable(d), 1);
  FAILS(tt_add_f64_(c, w, 1), TT_INVALID_ARG, NULL);
  tt_safetensors_release(f); /* the tensors keep the map */
  assert_int_equal(empty_folder(), 1);
  VALUES(w, 1, 2, 3, 4, 5, 6);
  VALUES(odd, 7, 8, 9);
  VALUES(d, 0.5, 0.25);
  OK(tt_scope_pop(c, NULL, 0));
  FAILS(tt_safetensors_map(c, path, &f), TT_IO, "no such file");
  assert_null(f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCOPED(test_mapped),
      SCOPED(test_round_trip),
      SCOPED(test_shapes_and_strides),
      SCOPED(test_metadata),
      SCOPED(test_bad_saves),
      SCOPED(test_no_file),
      SCOPED(test_malformed_files),
      SCOPED(test_wrong_lengths),
      SCOPED(test_a_cut_file_at_every_byte),
      SCOPED(test_bad_data),
      SCOPED(test_killed_while_saving),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
