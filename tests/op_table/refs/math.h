/* References of functions of one tensor. Included by refs.c. */

#define UNARY_REF(name, value)                                             \
  static double f_##name(const Inputs* in, double a, double b, double m) { \
    return (void)in, (void)b, (void)m, (value);                            \
  }
UNARY_REF(sqrt, sqrt(a))
UNARY_REF(log2, log2(a))
UNARY_REF(log10, log10(a))
UNARY_REF(log1p, log1p(a))
UNARY_REF(exp2, exp2(a))
UNARY_REF(expm1, expm1(a))
UNARY_REF(sin, sin(a))
UNARY_REF(cos, cos(a))
UNARY_REF(tan, tan(a))
UNARY_REF(asin, asin(a))
UNARY_REF(acos, acos(a))
UNARY_REF(atan, atan(a))
UNARY_REF(sinh, sinh(a))
UNARY_REF(cosh, cosh(a))
UNARY_REF(erf, erf(a))
UNARY_REF(erfc, erfc(a))
UNARY_REF(rsqrt, 1 / sqrt(a))
UNARY_REF(reciprocal, 1 / a)
UNARY_REF(abs, fabs(a))
UNARY_REF(sign, (a > 0) - (a < 0))
UNARY_REF(square, a* a)
UNARY_REF(floor, floor(a))
UNARY_REF(ceil, ceil(a))
UNARY_REF(trunc, trunc(a))
UNARY_REF(isnan, isnan(a) != 0)
UNARY_REF(isinf, isinf(a) != 0)
UNARY_REF(isfinite, isfinite(a) != 0)
#undef UNARY_REF

static double f_round(const Inputs* in, double a, double b, double m) {
  const int64_t decimals = int_arg(in, "decimals", 0);
  const double p = pow(10, fabs((double)decimals));
  (void)b;
  (void)m;
  return decimals < 0 ? nearbyint(a / p) * p : nearbyint(a * p) / p;
}

#define MATH_REFS                                                                                 \
  {"log2", f_log2, 0, 0}, {"log10", f_log10, 0, 0}, {"log1p", f_log1p, 0, 0},                     \
      {"exp2", f_exp2, 0, 0}, {"expm1", f_expm1, 0, 0}, {"sin", f_sin, 0, 0},                     \
      {"cos", f_cos, 0, 0}, {"tan", f_tan, 0, 0}, {"asin", f_asin, 0, 0}, {"acos", f_acos, 0, 0}, \
      {"atan", f_atan, 0, 0}, {"sinh", f_sinh, 0, 0}, {"cosh", f_cosh, 0, 0},                     \
      {"erf", f_erf, 0, 0}, {"erfc", f_erfc, 0, 0}, {"rsqrt", f_rsqrt, 0, 0},                     \
      {"reciprocal", f_reciprocal, 0, 0}, {"sqrt", f_sqrt, 0, 1}, {"abs", f_abs, 0, 1},           \
      {"sign", f_sign, 0, 1}, {"square", f_square, 0, 1}, {"floor", f_floor, 0, 1},               \
      {"ceil", f_ceil, 0, 1}, {"trunc", f_trunc, 0, 1}, {"isnan", f_isnan, 0, 1},                 \
      {"isinf", f_isinf, 0, 1}, {"isfinite", f_isfinite, 0, 1}, {"round", f_round, 0, 1},
