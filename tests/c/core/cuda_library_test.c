/* libtt_cuda.so as it is built: it loads everywhere. Without an NVIDIA driver it reports that, and
   the process continues; with one, a tensor is copied there and back. */
#include "support.h"

static const char* library(void) { return getenv("TT_TEST_CUDA_LIBRARY"); }
static int32_t count(tt_ctx* c) {
  int32_t n = -1;
  OK(tt_device_count(c, TT_CUDA, &n));
  return n;
}
static tt_status empty_on_cuda(tt_ctx* c, tt_tensor** out) {
  const int64_t size = 4;
  const tt_empty_opts o = {.set = TT_EMPTY_DEVICE, .device = {TT_CUDA, 0}};
  return tt_empty(c, &size, 1, &o, out);
}

/* The library is on the loader's path: the first use of a device opens it. */
static void test_first_use(void** state) {
  CTX;
  tt_tensor* t = NULL;
  if (count(c)) {
    OK(empty_on_cuda(c, &t));
    tt_tensor_release(t);
    return;
  }
  FAILS(TT_DEVICE, empty_on_cuda(c, &t));
  SAYS("no CUDA backend is loaded");
  SAYS("libtt_cuda.so");
  SAYS("driver");
  FAILS(TT_DEVICE, empty_on_cuda(c, &t)); /* the reason stays */
  SAYS("driver");
}
static void test_by_name(void** state) {
  CTX;
  const tt_status status = tt_load_cuda(c, library());
  if (status) {
    assert_int_equal(status, TT_DEVICE);
    SAYS("found no usable device");
    SAYS("driver");
  }
  assert_int_equal(count(c) > 0, status == TT_OK);
}
static void test_there_and_back(void** state) {
  CTX;
  static const double k1234[] = {1, 2, 3, 4};
  const tt_to_opts o = {.set = TT_TO_DEVICE, .device = {TT_CUDA, 0}};
  tt_tensor *a, *b = NULL;
  if (!count(c)) return;
  a = mat(c, k1234, 2, 2);
  OK(tt_to(c, a, &o, &b));
  HOLDS(b, 1, 2, 3, 4);
  tt_tensor_release(a);
  tt_tensor_release(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(test_first_use), TEST(test_by_name),
                                     TEST(test_there_and_back)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
