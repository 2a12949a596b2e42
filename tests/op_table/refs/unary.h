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
