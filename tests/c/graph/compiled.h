/* What the tests of compiled functions share. */
#ifndef TT_TEST_COMPILED_H
#define TT_TEST_COMPILED_H

#include "harness.h"

#define TRY(call)                \
  do {                           \
    const tt_status s_ = (call); \
    if (s_ != TT_OK) return s_;  \
  } while (0)

static tt_compiled* compile(tt_fn fn, void* user, int64_t limit) {
  const tt_compile_opts opts = {.set = TT_COMPILE_LIMIT, .limit = limit};
  tt_compiled* f;
  OK(tt_compile(c, fn, user, NULL, &opts, &f));
  return f;
}
static tt_tensor* call(tt_compiled* f, const tt_tensor* const* in, int64_t n) {
  tt_tensor* out = NULL;
  int64_t n_outs;
  OK(tt_compiled_call(c, f, in, n, &out, 1, &n_outs));
  assert_int_equal(n_outs, 1);
  return out;
}
static tt_compiled_info info_of(const tt_compiled* f) {
  tt_compiled_info info;
  OK(tt_compiled_get_info(c, f, &info));
  return info;
}

#endif
