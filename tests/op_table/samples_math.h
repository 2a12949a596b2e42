/* Samples of functions of one tensor. Included by samples.c. */

static double unit_value(int64_t i) { /* |x| in [0.1, 0.9] */
  const double x = 0.1 + 0.8 * uniform();
  (void)i;
  return uniform() < 0.5 ? -x : x;
}
static void build_unit(const Build* b) { unary_of(b, unit_value); }

static double wide_value(int64_t i) { return 100 * signed_value(i); }
static void build_round(const Build* b) {
  static const int64_t kDecimals[] = {1, -1, 2, -2, 0};
  size_t i;
  build_unary(b);
  for (i = 0; i < sizeof kDecimals / sizeof *kDecimals; i++) {
    Sample s = one(b, "decimals", 1, filled(S_(3, 4), wide_value));
    put(&s, "decimals", int_value(kDecimals[i]));
    emit(b, &s);
    s = one(b, "decimals of special values", 0, filled(S_(36), special_value));
    s.special = 1;
    put(&s, "decimals", int_value(kDecimals[i]));
    emit(b, &s);
  }
}

#define MATH_FAMILIES {"unit", build_unit}, {"round", build_round},
