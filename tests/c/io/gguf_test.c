/* GGUF files: what is read, mapped, refused; mutated files harm nothing. TT_FUZZ=N tries N of
   them. */
#include "harness.h"

#include <math.h>
#include <unistd.h>

static char path[80];
static int set_up(void** state) {
  const char* folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  (void)state;
  snprintf(path, sizeof path, "%s/tt_gguf_%ld.gguf", folder, (long)getpid());
  return 0;
}
static int tear_down(void** state) {
  (void)state;
  return unlink(path) && access(path, F_OK) == 0;
}

/* ---- a writer ---- */

typedef struct File {
  unsigned char bytes[4096];
  int n;
} File;

enum { kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kString, kArray, kU64, kI64, kF64 };

static void put(File* f, const void* data, size_t n) {
  assert_true((size_t)f->n + n <= sizeof f->bytes);
  memcpy(f->bytes + f->n, data, n);
  f->n += (int)n;
}
static void put_u32(File* f, uint32_t v) { put(f, &v, 4); }
static void put_u64(File* f, uint64_t v) { put(f, &v, 8); }
static void put_text(File* f, const char* s) {
  put_u64(f, strlen(s));
  put(f, s, strlen(s));
}
static void put_key(File* f, const char* key, uint32_t kind) {
  put_text(f, key);
  put_u32(f, kind);
}
static void begin_file(File* f, uint32_t version, uint64_t tensors, uint64_t pairs) {
  f->n = 0;
  put(f, "GGUF", 4);
  put_u32(f, version);
  put_u64(f, tensors);
  put_u64(f, pairs);
}
static void put_tensor(File* f, const char* name, int ndim, const uint64_t* dims, uint32_t type,
                       uint64_t offset) {
  int d;
  put_text(f, name);
  put_u32(f, (uint32_t)ndim);
  for (d = 0; d < ndim; d++) put_u64(f, dims[d]);
  put_u32(f, type);
  put_u64(f, offset);
}
static void align(File* f, int alignment) {
  while (f->n % alignment) put(f, "", 1);
}
static void save(const File* f) {
  FILE* to = fopen(path, "wb");
  assert_non_null(to);
  assert_int_equal(fwrite(f->bytes, 1, (size_t)f->n, to), f->n);
  assert_int_equal(fclose(to), 0);
}

/* Metadata of every kind; float32 (2,3), q8_0 (2,32), bfloat16 (0-dim), int64 (0,2). */
static void make_file(File* f) {
  const uint8_t u8 = 200, yes = 1;
  const int8_t i8 = -100;
  const uint16_t u16 = 60000;
  const int16_t i16 = -30000, list[3] = {1, -2, 3};
  const int32_t i32 = -5;
  const int64_t i64 = INT64_MIN;
  const float f32 = 0.1f, infinite = INFINITY;
  const double f64 = 0.1;
  const uint16_t half = 0x3c00, one = 0x3f80;
  int i;
  begin_file(f, 3, 4, 16);
  put_key(f, "general.alignment", kU32);
  put_u32(f, 64);
  put_key(f, "u8", kU8);
  put(f, &u8, 1);
  put_key(f, "i8", kI8);
  put(f, &i8, 1);
  put_key(f, "u16", kU16);
  put(f, &u16, 2);
  put_key(f, "i16", kI16);
  put(f, &i16, 2);
  put_key(f, "u32", kU32);
  put_u32(f, UINT32_MAX);
  put_key(f, "i32", kI32);
  put(f, &i32, 4);
  put_key(f, "f32", kF32);
  put(f, &f32, 4);
  put_key(f, "inf", kF32);
  put(f, &infinite, 4);
  put_key(f, "bool", kBool);
  put(f, &yes, 1);
  put_key(f, "text", kString);
  put_text(f, "a\"\\\n\xc3\xa4\xff");
  put_key(f, "list", kArray);
  put_u32(f, kI16);
  put_u64(f, 3);
  put(f, list, sizeof list);
  put_key(f, "texts", kArray);
  put_u32(f, kString);
  put_u64(f, 2);
  put_text(f, "");
  put_text(f, "b");
  put_key(f, "u64", kU64);
  put_u64(f, UINT64_MAX);
  put_key(f, "i64", kI64);
  put(f, &i64, 8);
  put_key(f, "f64", kF64);
  put(f, &f64, 8);
  put_tensor(f, "a.weight", 2, (uint64_t[]){3, 2}, 0, 0);
  put_tensor(f, "packed", 2, (uint64_t[]){32, 2}, 8, 64);
  put_tensor(f, "scalar", 0, NULL, 30, 192);
  put_tensor(f, "none", 2, (uint64_t[]){2, 0}, 27, 256);
  align(f, 64);
  for (i = 0; i < 6; i++) put(f, &(float){(float)i}, 4);
  align(f, 64);
  for (i = 0; i < 2; i++) {
    int k;
    put(f, &half, 2);
    for (k = 0; k < 32; k++) put(f, &(int8_t){(int8_t)(k - 16 * i)}, 1);
  }
  align(f, 64);
  put(f, &one, 2);
  align(f, 64);
}

static const char kStructure[] =
    "{\"version\":3,\"metadata\":{\"general.alignment\":64,\"u8\":200,\"i8\":-100,\"u16\":60000,"
    "\"i16\":-30000,\"u32\":4294967295,\"i32\":-5,\"f32\":0.1,\"inf\":{\"float\":\"inf\"},"
    "\"bool\":true,\"text\":\"a\\\"\\\\\\u000a\xc3\xa4\xef\xbf\xbd\",\"list\":[1,-2,3],"
    "\"texts\":[\"\",\"b\"],\"u64\":18446744073709551615,\"i64\":-9223372036854775808,"
    "\"f64\":0.1},\"types\":{\"a.weight\":\"f32\",\"packed\":\"q8_0\",\"scalar\":\"bf16\","
    "\"none\":\"i64\"}}";

typedef tt_status Load(tt_ctx*, const char*, tt_state_dict**);
static Load* const kLoads[] = {tt_gguf_load, tt_gguf_map};

static void test_read(void** state) {
  File* f = malloc(sizeof *f);
  int how, i;
  (void)state;
  make_file(f);
  save(f);
  for (how = 0; how < 2; how++) {
    tt_state_dict* s;
    tt_tensor *t, *numbers;
    float values[64];
    OK(kLoads[how](c, path, &s));
    assert_string_equal(tt_state_dict_structure(s), kStructure);
    assert_int_equal(tt_state_dict_size(s), 4);
    OK(tt_state_dict_get(c, s, 0, &t));
    assert_string_equal(tt_state_dict_name(s, 0), "a.weight");
    assert_int_equal(tt_tensor_dtype(t), TT_F32);
    assert_int_equal(tt_tensor_shape(t)[0], 2);
    assert_int_equal(tt_tensor_is_writable(t), how == 0);
    OK(tt_tensor_read(c, t, values, 24));
    for (i = 0; i < 6; i++) assert_true(values[i] == (float)i);
    OK(tt_state_dict_get(c, s, 1, &t));
    assert_int_equal(tt_tensor_dtype(t), TT_U8);
    assert_int_equal(tt_tensor_shape(t)[1], 34);
    OK(tt_dequantize_blockwise(c, t, TT_BLOCKFORMAT_Q8_0, &numbers));
    OK(tt_tensor_read(c, numbers, values, sizeof values));
    for (i = 0; i < 64; i++) assert_true(values[i] == (float)(i % 32 - i / 32 * 16));
    OK(tt_state_dict_get(c, s, 2, &t));
    assert_int_equal(tt_tensor_dtype(t), TT_BF16);
    assert_int_equal(tt_tensor_ndim(t), 0);
    OK(tt_state_dict_get(c, s, 3, &t));
    assert_int_equal(tt_tensor_numel(t), 0);
    assert_int_equal(tt_tensor_shape(t)[1], 2);
    tt_state_dict_release(s);
  }
  free(f);
}

/* A file of one tensor and one pair, malformed in one place. */
static void test_malformed(void** state) {
  static const struct {
    const char* why;
    uint32_t version, kind, ndim, type;
    uint64_t tensors, pairs, size, offset;
  } cases[] = {
      {"neither 2 nor 3", 1, kU8, 1, 0, 1, 1, 4, 0},
      {"neither 2 nor 3", 4, kU8, 1, 0, 1, 1, 4, 0},
      {"big-endian", 0x3000000, kU8, 1, 0, 1, 1, 4, 0},
      {"more tensors", 2, kU8, 1, 0, UINT64_MAX, 1, 4, 0},
      {"more metadata", 2, kU8, 1, 0, 1, UINT64_MAX, 4, 0},
      {"unknown type of metadata", 2, 13, 1, 0, 1, 1, 4, 0},
      {"more than 4 dimensions", 2, kU8, 5, 0, 1, 1, 4, 0},
      {"unknown type of tensor", 2, kU8, 1, 4, 1, 1, 4, 0},
      {"unknown type of tensor", 2, kU8, 1, 99, 1, 1, 4, 0},
      {"overflow", 2, kU8, 1, 0, 1, 1, UINT64_MAX, 0},
      {"overflow", 2, kU8, 1, 0, 1, 1, UINT64_C(1) << 62, 0},
      {"whole blocks", 2, kU8, 1, 8, 1, 1, 33, 0},
      {"behind the file", 2, kU8, 1, 0, 1, 1, 4000, 0},
      {"before its tensors do", 2, kU8, 1, 0, 1, 1, 16, 0},
      {"follow the one before", 2, kU8, 1, 0, 1, 1, 4, 32},
  };
  File* f = malloc(sizeof *f);
  tt_state_dict* s;
  size_t i;
  (void)state;
  for (i = 0; i < sizeof cases / sizeof *cases; i++) {
    begin_file(f, cases[i].version, cases[i].tensors, cases[i].pairs);
    put_key(f, "k", cases[i].kind);
    put(f, "", 1);
    put_tensor(f, "t", (int)cases[i].ndim, (uint64_t[]){cases[i].size, 1, 1, 1, 1}, cases[i].type,
               cases[i].offset);
    align(f, 32);
    put(f, (char[32]){0}, 32);
    save(f);
    FAILS(tt_gguf_load(c, path, &s), TT_FORMAT, cases[i].why);
    assert_null(s);
  }
  begin_file(f, 3, 0, 2);
  put_key(f, "k", kU8);
  put(f, "", 1);
  put_key(f, "k", kU8);
  put(f, "", 1);
  save(f);
  FAILS(tt_gguf_load(c, path, &s), TT_FORMAT, "a key appears twice");
  begin_file(f, 3, 0, 1);
  put_key(f, "k", kArray);
  put_u32(f, kArray);
  put_u64(f, 1);
  save(f);
  FAILS(tt_gguf_load(c, path, &s), TT_FORMAT, "a list is an item of a list");
  begin_file(f, 3, 0, 1);
  put_key(f, "general.alignment", kU32);
  put_u32(f, 48);
  save(f);
  FAILS(tt_gguf_load(c, path, &s), TT_FORMAT, "power of two");
  begin_file(f, 3, 0, 1);
  put_key(f, "\xff", kU8);
  put(f, "", 1);
  save(f);
  FAILS(tt_gguf_load(c, path, &s), TT_FORMAT, "not UTF-8");
  FAILS(tt_gguf_load(c, "/nowhere/at/all", &s), TT_IO, "cannot be opened");
  free(f);
}

/* A file cut anywhere is refused, without a tensor of less than its bytes. */
static void test_cut(void** state) {
  File* f = malloc(sizeof *f);
  int whole, n;
  (void)state;
  make_file(f);
  whole = f->n;
  for (n = 0; n<whole - 62; n += n % 100> 90 ? 1 : 7) {
    tt_state_dict* s;
    f->n = n;
    save(f);
    FAILS(tt_gguf_load(c, path, &s), TT_FORMAT, "byte");
    assert_null(s);
  }
  free(f);
}

static void test_mutated(void** state) {
  const char* const wanted = getenv("TT_FUZZ");
  const int usual = SLOW_BUILD ? 500 : 3000;
  const int n = wanted ? atoi(wanted) : usual;
  File *whole = malloc(sizeof *whole), *f = malloc(sizeof *f);
  uint64_t random = 1;
  int i, k, accepted = 0;
  (void)state;
  OK(tt_set_memory_limit(c, (int64_t)64 << 20));
  make_file(whole);
  for (i = 0; i < n; i++) {
    tt_state_dict* s = NULL;
    tt_status status;
    *f = *whole;
    for (k = 0; k < 1 + i % 4; k++) {
      random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
      f->bytes[(random >> 33) % (uint64_t)(f->n - 200)] =
          (unsigned char)(random >> 20 & 1 ? random >> 12 : random >> 12 & 3);
    }
    save(f);
    status = kLoads[i % 2](c, path, &s);
    if (status != TT_FORMAT && status != TT_OK && status != TT_OOM)
      fail_msg("mutation %d: %s", i, tt_status_name(status));
    assert_true(!status == !!s);
    accepted += !status;
    tt_state_dict_release(s);
  }
  assert_true(accepted > 0 && accepted < n);
  OK(tt_set_memory_limit(c, 0));
  free(whole);
  free(f);
}

/* Every allocation of a load fails once. */
static void test_memory(void** state) {
  File* f = malloc(sizeof *f);
  tt_state_dict* s = NULL;
  int64_t k;
  (void)state;
  make_file(f);
  save(f);
  for (k = 1; !s; k++) {
    tt_status status;
    host.fail_at = host.calls + k;
    host.fail_n = 1;
    status = kLoads[k % 2](c, path, &s);
    host.fail_at = 0;
    assert_true(status == TT_OOM || (status == TT_OK && s));
  }
  tt_state_dict_release(s);
  free(f);
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      SCOPED(test_read),    SCOPED(test_malformed), SCOPED(test_cut),
      SCOPED(test_mutated), SCOPED(test_memory),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
