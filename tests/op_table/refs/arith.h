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

static double ref_fmax(double a, double b) {
  if (isnan(a)) return b;
  return a >= b || isnan(b) ? a : b;
}
static double ref_fmin(double a, double b) {
  if (isnan(a)) return b;
  return a <= b || isnan(b) ? a : b;
}
static double ref_heaviside(double a, double b) {
  if (a == 0) return b;
  return a > 0;
}
static double ref_logaddexp(double a, double b) {
  if (a == b) return a + log(2);
  return a > b ? a + log1p(exp(b - a)) : b + log1p(exp(a - b));
}
static double ref_logaddexp2(double a, double b) {
  if (a == b) return a + 1;
  return a > b ? a + log1p(exp2(b - a)) / log(2) : b + log1p(exp2(a - b)) / log(2);
}
static double ref_ldexp(double a, double b) { return a * exp2(b); }
/* A number of `bits` bits below 2^top; the smallest one is 2^lowest. */
static double next_short(double a, double b, int bits, int lowest, int top) {
  int exponent;
  if (isnan(a) || isnan(b)) return NAN;
  if (a == b) return b;
  if (a == 0) return copysign(ldexp(1, lowest), b);
  const double sign = (a < b) == (a > 0) ? 1 : -1;
  const double x = fabs(a);
  if (isinf(x)) return copysign(ldexp(1, top) - ldexp(1, top - bits), a);
  const double mantissa = frexp(x, &exponent);
  const int below_power = sign < 0 && mantissa == 0.5;
  const int last = exponent - bits - below_power;
  const double y = x + sign * ldexp(1, last < lowest ? lowest : last);
  return copysign(y >= ldexp(1, top) ? INFINITY : y, a);
}
static double ref_nextafter(const Inputs* in, const double* x) {
  const tt_dtype dtype = tt_tensor_dtype(in->sample->args[0].tensor);
  if (dtype == TT_BF16) return next_short(x[0], x[1], 8, -133, 128);
  if (dtype == TT_F16) return next_short(x[0], x[1], 11, -24, 16);
  return dtype == TT_F32 ? nextafterf((float)x[0], (float)x[1]) : nextafter(x[0], x[1]);
}
static int ref_frexp(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  out[0] = new_array(x->shape, x->ndim);
  out[1] = new_array(x->shape, x->ndim);
  for (int64_t i = 0; i < x->n; i++) {
    int exponent = 0;
    out[0].data[i] = frexp(x->data[i], &exponent);
    out[1].data[i] = isfinite(x->data[i]) ? exponent : 0;
  }
  return 2;
}
/* Of int64 numbers whose results fit: others wrap, and are compared by their low bits. */
static uint64_t common_divisor(int64_t a, int64_t b) {
  uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a;
  uint64_t y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
  while (y) {
    const uint64_t rest = x % y;
    x = y;
    y = rest;
  }
  return x;
}
static double ref_gcd(double a, double b) { return (double)common_divisor((int64_t)a, (int64_t)b); }
static double ref_lcm(double a, double b) {
  const double divisor = ref_gcd(a, b);
  return divisor == 0 ? 0 : fabs(a) / divisor * fabs(b);
}
static double ref_float_power(const Inputs* in, const double* x) {
  const int to_number = strcmp(in->sample->row->args[1].type, "Scalar") == 0;
  return to_number && x[1] == -0.5 ? 1 / sqrt(x[0]) : pow(x[0], x[1]); /* as ref_pow */
}
static double ref_lerp(const Inputs* in, const double* x) {
  (void)in;
  return fabs(x[2]) < 0.5 ? x[0] + x[2] * (x[1] - x[0]) : x[1] - (x[1] - x[0]) * (1 - x[2]);
}
static double ref_addcmul(const Inputs* in, const double* x) {
  return x[0] + number_arg(in, "value", 1) * x[1] * x[2];
}
static double ref_addcdiv(const Inputs* in, const double* x) {
  return x[0] + number_arg(in, "value", 1) * x[1] / x[2];
}

static const Reference kArith[] = {
    {"clamp_min", .binary = ref_maximum, .exact = 1},
    {"clamp_max", .binary = ref_minimum, .exact = 1},
    {"fmax", .binary = ref_fmax, .exact = 1},
    {"fmin", .binary = ref_fmin, .exact = 1},
    {"copysign", .binary = copysign, .exact = 1},
    {"hypot", .binary = hypot},
    {"heaviside", .binary = ref_heaviside, .exact = 1},
    {"logaddexp", .binary = ref_logaddexp},
    {"logaddexp2", .binary = ref_logaddexp2},
    {"ldexp", .binary = ref_ldexp},
    {"nextafter", .elementwise = ref_nextafter, .exact = 1},
    {"frexp", .whole = ref_frexp, .exact = 1},
    {"gcd", .binary = ref_gcd, .exact = 1},
    {"lcm", .binary = ref_lcm, .exact = 1},
    {"float_power", .elementwise = ref_float_power},
    {"lerp", .elementwise = ref_lerp},
    {"addcmul", .elementwise = ref_addcmul},
    {"addcdiv", .elementwise = ref_addcdiv},
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
