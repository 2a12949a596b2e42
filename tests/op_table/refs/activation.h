/* References of activations. */

static double ref_relu(double x) { return x <= 0 ? 0 : x; }
static double ref_relu6(double x) {
  if (x < 0) return 0;
  return x > 6 ? 6 : x;
}
static double ref_silu(double x) { return x / (1 + exp(-x)); }
static double ref_softsign(double x) { return x / (1 + fabs(x)); }
static double softplus(double x) { return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)); }
static double ref_mish(double x) { return x * tanh(softplus(x)); }
static double ref_logsigmoid(double x) { return -softplus(-x); }
static double ref_hardsigmoid(double x) {
  if (x <= -3) return 0;
  return x >= 3 ? 1 : (x + 3) / 6;
}
static double ref_hardswish(double x) { return x * ref_hardsigmoid(x); }

static double ref_hardtanh(const Inputs* in, const double* x) {
  const double low = number_arg(in, "min_val", -1);
  const double high = number_arg(in, "max_val", 1);
  if (x[0] < low) return low;
  return x[0] > high ? high : x[0];
}
static double ref_rrelu(const Inputs* in, const double* x) { /* without training */
  const double slope = (number_arg(in, "lower", 1.0 / 8) + number_arg(in, "upper", 1.0 / 3)) / 2;
  return x[0] < 0 ? slope * x[0] : x[0];
}
static double ref_leaky_relu(const Inputs* in, const double* x) {
  return x[0] > 0 ? x[0] : x[0] * number_arg(in, "negative_slope", 0.01);
}
static double ref_elu(const Inputs* in, const double* x) {
  return x[0] > 0 ? x[0] : number_arg(in, "alpha", 1) * expm1(x[0]);
}
static double ref_softplus(const Inputs* in, const double* x) {
  const double beta = number_arg(in, "beta", 1);
  if (x[0] * beta > number_arg(in, "threshold", 20)) return x[0];
  return softplus(x[0] * beta) / beta;
}
/* erfc(-x / sqrt(2)). The tail magnifies what its argument rounds off, so that rest is kept, and
   added by the derivative: long double is no wider than double on some targets. */
static long double normal_tail(long double x) {
  const long double root = 0x1.6a09e667f3bcdp-1; /* sqrt(1/2) */
  const long double root_rest = -0x1.bdd3413b26456p-55;
  const long double u = -x * root;
  if (isinf(x)) return erfcl(u);
  const long double rest = fmal(-x, root, -u) - x * root_rest;
  return erfcl(u) - rest * 2 / sqrtl(acosl(-1)) * expl(-u * u);
}
static double ref_gelu(const Inputs* in, const double* values) {
  const long double x = values[0];
  if (int_arg(in, "approximate", TT_APPROXIMATE_NONE) == TT_APPROXIMATE_NONE)
    return (double)(x * 0.5L * normal_tail(x));
  const long double inner = -2 * sqrtl(2 / acosl(-1)) * (x + 0.044715L * x * x * x);
  return (double)(x / (1 + expl(inner)));
}

static int ref_glu(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "input");
  const int64_t d = dim_arg(in, "dim", -1, x->ndim);
  int64_t shape[kMaxDims];
  int64_t index[kMaxDims];
  memcpy(shape, x->shape, sizeof shape);
  shape[d] /= 2;
  *out = new_array(shape, x->ndim);
  for (int64_t i = 0; i < out->n; i++) {
    index_of(out, i, index);
    const double value = x->data[ravel(x, index)];
    index[d] += shape[d];
    const double gate = x->data[ravel(x, index)];
    out->data[i] = value / (1 + exp(-gate));
  }
  return 1;
}

static double ref_selu(double x) {
  const double scale = 1.0507009873554804934193349852946;
  return x > 0 ? scale * x : scale * 1.6732632423543772848170429916717 * expm1(x);
}
static double ref_celu(const Inputs* in, const double* x) {
  const double alpha = number_arg(in, "alpha", 1);
  return x[0] > 0 ? x[0] : alpha * expm1(x[0] / alpha);
}
static double ref_hardshrink(const Inputs* in, const double* x) {
  return fabs(x[0]) <= number_arg(in, "lambd", 0.5) ? 0 : x[0];
}
static double ref_softshrink(const Inputs* in, const double* x) {
  const double lambd = number_arg(in, "lambd", 0.5);
  if (fabs(x[0]) <= lambd) return 0;
  return x[0] > 0 ? x[0] - lambd : x[0] + lambd;
}
static double ref_tanhshrink(double x) {
  const double y = fabs(x);
  if (y > 0.05 && y < 300) { /* y - (1 - e) / (1 + e), e = exp(-2 y) */
    const Wide e = wide_exp(wide(-2 * y));
    const Wide tangent = wide_over(wide_subtract(wide(1), e), wide_add(wide(1), e));
    return copysign(narrow(wide_subtract(wide(y), tangent)), x);
  }
  if (y > 1) return x - copysign(1, x);
  const long double z = (long double)x * x;
  return (double)(x * z * (1 / 3.0L - z * (2 / 15.0L - z * (17 / 315.0L - z * 62 / 2835.0L))));
}
static double ref_threshold(const Inputs* in, const double* x) {
  return x[0] <= number_arg(in, "threshold", 0) ? number_arg(in, "value", 0) : x[0];
}
static int ref_prelu(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const Array* w = tensor(in, "weight");
  *out = new_array(x->shape, x->ndim);
  for (int64_t i = 0; i < x->n; i++) {
    int64_t index[kMaxDims];
    index_of(x, i, index);
    const double slope = w->data[w->n == 1 ? 0 : index[1]];
    out->data[i] = x->data[i] > 0 ? x->data[i] : slope * x->data[i];
  }
  return 1;
}

static const Reference kActivation[] = {
    {"selu", .unary = ref_selu},
    {"celu", .elementwise = ref_celu},
    {"hardshrink", .elementwise = ref_hardshrink, .exact = 1},
    {"softshrink", .elementwise = ref_softshrink, .exact = 1},
    {"tanhshrink", .unary = ref_tanhshrink},
    {"threshold", .elementwise = ref_threshold, .exact = 1},
    {"prelu", .whole = ref_prelu, .exact = 1},
    {"relu", .unary = ref_relu, .exact = 1},
    {"relu6", .unary = ref_relu6, .exact = 1},
    {"hardtanh", .elementwise = ref_hardtanh, .exact = 1},
    {"leaky_relu", .elementwise = ref_leaky_relu, .exact = 1},
    {"rrelu", .elementwise = ref_rrelu, .exact = 1},
    {"hardsigmoid", .unary = ref_hardsigmoid, .exact = 1},
    {"hardswish", .unary = ref_hardswish, .exact = 1},
    {"elu", .elementwise = ref_elu},
    {"gelu", .elementwise = ref_gelu},
    {"silu", .unary = ref_silu},
    {"mish", .unary = ref_mish},
    {"softsign", .unary = ref_softsign},
    {"softplus", .elementwise = ref_softplus},
    {"logsigmoid", .unary = ref_logsigmoid},
    {"glu", .whole = ref_glu},
};
