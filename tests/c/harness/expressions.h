/* Operators as expressions that must succeed. */
#ifndef TT_TEST_EXPRESSIONS_H
#define TT_TEST_EXPRESSIONS_H

#include "harness.h"

static inline tt_tensor* mul(const tt_tensor* a, const tt_tensor* b) {
  tt_tensor* y;
  OK(tt_mul(c, a, b, &y));
  return y;
}
static inline tt_tensor* add(const tt_tensor* a, const tt_tensor* b) {
  tt_tensor* y;
  OK(tt_add(c, a, b, &y));
  return y;
}
static inline tt_tensor* times(const tt_tensor* a, double k) {
  tt_tensor* y;
  OK(tt_mul_f64(c, a, k, &y));
  return y;
}
static inline tt_tensor* pick(const tt_tensor* a, int64_t i) {
  tt_tensor* y;
  OK(tt_select(c, a, 0, i, &y));
  return y;
}

#endif
