/* Event files of TensorBoard: records and their checksums, scalars, texts, histograms, images. */
#include "harness.h"

/* The bytes of a file whose records are intact, and where their events are. */
typedef struct Events {
  unsigned char bytes[1 << 16];
  int64_t size, n;
  const unsigned char* event[8];
  int64_t length[8];
} Events;
static uint32_t masked_crc(const unsigned char* p, int64_t n) {
  uint32_t crc = 0xFFFFFFFFu;
  int64_t i;
  int k;
  for (i = 0; i < n; i++) {
    crc ^= p[i];
    for (k = 0; k < 8; k++) crc = crc & 1 ? crc >> 1 ^ 0x82F63B78u : crc >> 1;
  }
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}
static uint32_t word_at(const unsigned char* p) {
  return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
static Events* read_events(const char* path) {
  Events* e = calloc(1, sizeof *e);
  FILE* f = fopen(path, "rb");
  int64_t at = 0;
  assert_non_null(f);
  e->size = (int64_t)fread(e->bytes, 1, sizeof e->bytes, f);
  fclose(f);
  while (at < e->size) {
    const unsigned char* p = e->bytes + at;
    const int64_t n = word_at(p);
    assert_true(e->n < 8 && at + 16 + n <= e->size && word_at(p + 4) == 0);
    assert_int_equal(word_at(p + 8), masked_crc(p, 8));
    assert_int_equal(word_at(p + 12 + n), masked_crc(p + 12, n));
    e->event[e->n] = p + 12;
    e->length[e->n++] = n;
    at += 16 + n;
  }
  return e;
}
/* Whether an event ends in these bytes. */
static int ends_in(const Events* e, int64_t i, const char* tail, int64_t n) {
  return e->length[i] >= n && !memcmp(e->event[i] + e->length[i] - n, tail, (size_t)n);
}
static int has(const Events* e, int64_t i, const char* part, int64_t n) {
  int64_t at;
  for (at = 0; at + n <= e->length[i]; at++)
    if (!memcmp(e->event[i] + at, part, (size_t)n)) return 1;
  return 0;
}
#define ENDS_IN(i, bytes) assert_true(ends_in(e, i, bytes, sizeof bytes - 1))
#define HAS(i, bytes) assert_true(has(e, i, bytes, sizeof bytes - 1))

static const char* fresh_path(void) {
  static char path[256];
  static int n;
  const char* folder = getenv("TMPDIR");
  snprintf(path, sizeof path, "%s/tt-tfevents-%lld-%d", folder ? folder : "/tmp",
           (long long)(intptr_t)&n, n);
  n++;
  remove(path);
  return path;
}

static void test_events(void** state) {
  const char* path = fresh_path();
  Events* e;
  (void)state;
  OK(tt_tensorboard_add_scalar(c, path, "loss", 0.5, 300));
  OK(tt_tensorboard_add_scalar(c, path, "loss", 1e60, -1)); /* inf, without a step */
  OK(tt_tensorboard_add_text(c, path, "note", "hello", 1));
  e = read_events(path);
  assert_int_equal(e->n, 4);
  ENDS_IN(0,
          "\x1a\x0d"
          "brain.Event:2");
  /* step 300, a summary of 13 bytes: a value of 11, "loss" and the float 0.5 */
  ENDS_IN(1, "\x10\xac\x02\x2a\x0d\x0a\x0b\x0a\x04loss\x15\x00\x00\x00\x3f");
  assert_int_equal(e->length[1], 9 + 18);
  ENDS_IN(2, "\x0a\x04loss\x15\x00\x00\x80\x7f");
  assert_int_equal(e->length[2], 9 + 15);
  HAS(3,
      "\x0a\x11note/"
      "text_summary\x4a\x08\x0a\x06\x0a\x04text\x42\x0f\x08\x07\x12\x04\x12\x02\x08\x01");
  ENDS_IN(3, "\x42\x05hello");
  free(e);
  remove(path);
}
static void test_histograms(void** state) {
  const char* path = fresh_path();
  tt_tensor* x = make(TT_F32, SHAPE(2, 2), DATA(-1, 0, 0, 2));
  Events* e;
  double numbers[5];
  int i;
  (void)state;
  OK(tt_requires_grad_(c, x, 1));
  OK(tt_tensorboard_add_histogram(c, path, "w", x, 7));
  e = read_events(path);
  for (i = 0; i < 5; i++) { /* min, max, number, sum, sum of squares: fields 1 to 5 */
    const unsigned char* p = e->event[1];
    while (p[0] != 0x09 || p[9] != 0x11 || p[18] != 0x19) p++;
    assert_int_equal(p[9 * i], 8 * (i + 1) + 1);
    memcpy(&numbers[i], p + 9 * i + 1, 8);
  }
  {
    const double want[5] = {-1, 2, 4, 1, 5};
    double counts[3] = {0};
    for (i = 0; i < 5; i++) assert_true(numbers[i] == want[i]);
    /* the last bin has the 2, the first the -1 */
    memcpy(&counts[0], e->event[1] + e->length[1] - 8, 8);
    assert_true(counts[0] == 1);
  }
  FAILS(tt_tensorboard_add_histogram(c, path, "w", make(TT_F32, SHAPE(0), NULL, 0), 0),
        TT_INVALID_ARG, "values is empty");
  free(e);
  remove(path);
}
static void test_images(void** state) {
  const char* path = fresh_path();
  tt_tensor *large, *x = make(TT_F32, SHAPE(3, 1, 2), DATA(0, 1, 0.5, 2, -1, 1));
  Events* e;
  (void)state;
  OK(tt_tensorboard_add_image(c, path, "i", x, 0));
  e = read_events(path);
  /* height 1, width 2, three channels */
  HAS(1, "\x0a\x01i\x22");
  HAS(1, "\x08\x01\x10\x02\x18\x03\x22");
  HAS(1,
      "\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\x00\x00\x00\x02\x00\x00\x00\x01\x08\x02\x00\x00\x00");
  /* a stored block of one row: no filter, two pixels */
  HAS(1, "IDAT\x78\x01\x01\x07\x00\xf8\xff\x00\x00\x7f\x00\xff\xff\xff");
  ENDS_IN(1, "IEND\xae\x42\x60\x82");
  FAILS(tt_tensorboard_add_image(c, path, "i", make(TT_F32, SHAPE(2, 1, 1), DATA(0, 0)), 0),
        TT_SHAPE, "1, 3 or 4 channels");
  OK(tt_expand(c, make(TT_U8, SHAPE(1, 1, 1), DATA(0)), SHAPE(1, 1 << 16, 1 << 16), &large));
  FAILS(tt_tensorboard_add_image(c, path, "i", large, 0), TT_SHAPE, "must have fewer than");
  free(e);
  remove(path);
}
static void test_failures(void** state) {
  (void)state;
  FAILS(tt_tensorboard_add_scalar(c, "/nowhere/tfevents", "x", 1, 0), TT_IO, "does not exist");
  FAILS(tt_tensorboard_add_scalar(c, NULL, "x", 1, 0), TT_INVALID_ARG, "path");
  FAILS(tt_tensorboard_add_scalar(c, "/nowhere/tfevents", NULL, 1, 0), TT_INVALID_ARG, "tag");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SCOPED(test_events),
      SCOPED(test_histograms),
      SCOPED(test_images),
      SCOPED(test_failures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
