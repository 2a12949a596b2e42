/* References of arithmetic. */

static double ref_neg(double a) { return -a; }
static double ref_mul(double a, double b) { return a * b; }
static double ref_maximum(double a, double b) {
  if (isnan(a) || isnan(b)) return NAN;
  return a > b ? a : b;
}
static double ref_minimum(double a, double b) {
  if (isnan(a) || isnan(b)) return NAN;
  return a < b ? a : b;
}

static double ref_add(const Inputs* in, const double* x) {
  return x[0] + number_arg(in, "alpha", 1) * x[1];
}
static double ref_sub(const Inputs* in, const double* x) {
  return x[0] - number_arg(in, "alpha", 1) * x[1];
}
static double ref_rsub(const Inputs* in, const double* x) {
  return x[1] - number_arg(in, "alpha", 1) * x[0];
}

/* Rounded towards minus infinity, the remainder has the sign of the divisor. */
static int has_other_sign(double remainder, double divisor) {
  return remainder != 0 && (remainder < 0) != (divisor < 0);
}
static double ref_remainder(double a, double b) {
  const double r = fmod(a, b);
  return has_other_sign(r, b) ? r + b : r;
}
/* Python's // of floats: by the remainder, then rounded to an integer. */
static double ref_floor_divide(double a, double b) {
  const double r = fmod(a, b);
  if (b == 0) return a / b;
  if (isnan(r)) return NAN;
  if (has_other_sign(r, b)) return floor((a - r) / b - 1 + 0.5);
  if ((a - r) / b == 0) return copysign(0, a / b);
  return floor((a - r) / b + 0.5);
}
static double ref_div(const Inputs* in, const double* x) {
  const int64_t rounding = int_arg(in, "rounding_mode", TT_ROUNDING_NONE);
  if (rounding == TT_ROUNDING_FLOOR) return ref_floor_divide(x[0], x[1]);
  return rounding == TT_ROUNDING_TRUNC ? trunc(x[0] / x[1]) : x[0] / x[1];
}

/* A negative power of an integer is 0, but for those of 1 and -1. */
static double negative_power(double a, double b) {
  if (a == -1) return fmod(b, 2) == 0 ? 1 : -1;
  return a == 1;
}
static double ref_pow(const Inputs* in, const double* x) {
  const int to_number = strcmp(in->sample->row->args[1].type, "Scalar") == 0;
  const int whole = x[0] == trunc(x[0]) && x[1] == trunc(x[1]);
  if (in->integral && whole && x[1] < 0) return negative_power(x[0], x[1]);
  if (to_number && x[1] == -0.5) return 1 / sqrt(x[0]); /* so too in PyTorch */
  return pow(x[0], x[1]);
}

static int ref_clamp(const Inputs* in, Array* out) {
  Array operands[3] = {*tensor(in, "self"), zero_dim(-INFINITY), zero_dim(INFINITY)};
  for (int k = 1; k < 3; k++) {
    const char* name = k == 1 ? "min" : "max";
    if (tensor(in, name)) operands[k] = *tensor(in, name);
    else if (given(in, name)) operands[k] = zero_dim(number_arg(in, name, 0));
  }
  *out = broadcast_zeros(operands, 3);
  for (int64_t i = 0; i < out->n; i++) {
    int64_t index[kMaxDims];
    index_of(out, i, index);
    double x = broadcast_value(&operands[0], index, out->ndim);
    const double low = broadcast_value(&operands[1], index, out->ndim);
    const double high = broadcast_value(&operands[2], index, out->ndim);
    if (x < low) x = low;
    if (x > high) x = high;
    out->data[i] = x;
  }
  return 1;
}

static const Reference kArith[] = {
    {"neg", .unary = ref_neg, .exact = 1},
    {"add", .elementwise = ref_add, .exact = 1},
    {"sub", .elementwise = ref_sub, .exact = 1},
    {"rsub", .elementwise = ref_rsub, .exact = 1},
    {"mul", .binary = ref_mul, .exact = 1},
    {"div", .elementwise = ref_div, .exact = 1},
    {"floor_divide", .binary = ref_floor_divide, .exact = 1},
    {"fmod", .binary = fmod, .exact = 1},
    {"remainder", .binary = ref_remainder, .exact = 1},
    {"atan2", .binary = atan2},
    {"pow", .elementwise = ref_pow},
    {"maximum", .binary = ref_maximum, .exact = 1},
    {"minimum", .binary = ref_minimum, .exact = 1},
    {"clamp", .whole = ref_clamp, .exact = 1},
};
