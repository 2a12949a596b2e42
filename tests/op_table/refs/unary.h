/* References of functions of one tensor. */

static double ref_sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double ref_rsqrt(double x) { return 1 / sqrt(x); }
static double ref_reciprocal(double x) { return 1 / x; }
static double ref_sign(double x) { return (x > 0) - (x < 0); }
static double ref_square(double x) { return x * x; }
static double ref_isnan(double x) { return isnan(x) != 0; }
static double ref_isinf(double x) { return isinf(x) != 0; }
static double ref_isfinite(double x) { return isfinite(x) != 0; }

static double ref_round(const Inputs* in, const double* x) {
  const int64_t decimals = int_arg(in, "decimals", 0);
  const double power = pow(10, fabs((double)decimals));
  return decimals < 0 ? nearbyint(x[0] / power) * power : nearbyint(x[0] * power) / power;
}

static double ref_sgn(double x) {
  if (isnan(x)) return 0;
  return (x > 0) - (x < 0);
}
static double ref_isposinf(double x) { return x == INFINITY; }
static double ref_isneginf(double x) { return x == -INFINITY; }
static double ref_isreal(double x) {
  (void)x;
  return 1;
}
static double ref_signbit(double x) { return signbit(x) != 0; }
static double ref_frac(double x) { return x - trunc(x); }
static double ref_positive(double x) { return x; }
static double ref_deg2rad(double x) { return x * 0.017453292519943295; }
static double ref_rad2deg(double x) { return x * 57.29577951308232; }
static double ref_logit(const Inputs* in, const double* x) {
  double z = x[0];
  if (given(in, "eps")) {
    const double eps = number_arg(in, "eps", 0);
    if (z < eps) z = eps;
    if (z > 1 - eps) z = 1 - eps;
  }
  return log(z / (1 - z));
}
static double largest_number(tt_dtype dtype) {
  if (dtype == TT_F64) return DBL_MAX;
  if (dtype == TT_F16) return 65504;
  return dtype == TT_BF16 ? ldexp(0xff, 120) : FLT_MAX;
}
static double ref_nan_to_num(const Inputs* in, const double* x) {
  const double largest = largest_number(tt_tensor_dtype(in->sample->args[0].tensor));
  double y = x[0];
  if (isnan(y)) y = given(in, "nan") ? number_arg(in, "nan", 0) : 0;
  if (y == INFINITY) return given(in, "posinf") ? number_arg(in, "posinf", 0) : largest;
  if (y == -INFINITY) return given(in, "neginf") ? number_arg(in, "neginf", 0) : -largest;
  return y;
}

static const Reference kUnary[] = {
    {"exp", .unary = exp},
    {"exp2", .unary = exp2},
    {"expm1", .unary = expm1},
    {"log", .unary = log},
    {"log2", .unary = log2},
    {"log10", .unary = log10},
    {"log1p", .unary = log1p},
    {"sin", .unary = sin},
    {"cos", .unary = cos},
    {"tan", .unary = tan},
    {"asin", .unary = asin},
    {"acos", .unary = acos},
    {"atan", .unary = atan},
    {"sinh", .unary = sinh},
    {"cosh", .unary = cosh},
    {"tanh", .unary = tanh},
    {"asinh", .unary = asinh},
    {"acosh", .unary = acosh},
    {"atanh", .unary = atanh},
    {"logit", .elementwise = ref_logit},
    {"sgn", .unary = ref_sgn, .exact = 1},
    {"positive", .unary = ref_positive, .exact = 1},
    {"frac", .unary = ref_frac, .exact = 1},
    {"deg2rad", .unary = ref_deg2rad, .exact = 1},
    {"rad2deg", .unary = ref_rad2deg, .exact = 1},
    {"nan_to_num", .elementwise = ref_nan_to_num, .exact = 1},
    {"isposinf", .unary = ref_isposinf, .exact = 1},
    {"isneginf", .unary = ref_isneginf, .exact = 1},
    {"isreal", .unary = ref_isreal, .exact = 1},
    {"signbit", .unary = ref_signbit, .exact = 1},
    {"erf", .unary = erf},
    {"erfc", .unary = erfc},
    {"sigmoid", .unary = ref_sigmoid},
    {"rsqrt", .unary = ref_rsqrt},
    {"reciprocal", .unary = ref_reciprocal},
    {"sqrt", .unary = sqrt, .exact = 1},
    {"abs", .unary = fabs, .exact = 1},
    {"sign", .unary = ref_sign, .exact = 1},
    {"square", .unary = ref_square, .exact = 1},
    {"floor", .unary = floor, .exact = 1},
    {"ceil", .unary = ceil, .exact = 1},
    {"trunc", .unary = trunc, .exact = 1},
    {"round", .elementwise = ref_round, .exact = 1},
    {"isnan", .unary = ref_isnan, .exact = 1},
    {"isinf", .unary = ref_isinf, .exact = 1},
    {"isfinite", .unary = ref_isfinite, .exact = 1},
};
