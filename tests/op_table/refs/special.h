/* References of special functions: sums and bisections, in more digits than double has. */

static const long double kPiL = 3.14159265358979323846264338327950288L;

static double ref_digamma(double x) {
  long double y = x;
  long double sum = 0;
  if (x == 0) return -copysign(INFINITY, x);
  if (x < 0 && (isinf(x) || x == floor(x))) return NAN;
  if (x < 0) {
    sum = -kPiL / tanl(kPiL * (y - roundl(y)));
    y = 1 - y;
  }
  for (; y < 40; y += 1) sum -= 1 / y;
  const long double z = 1 / (y * y);
  sum += logl(y) - 0.5L / y - z / 12 + z * z / 120 - z * z * z / 252 + z * z * z * z / 240;
  return (double)(sum - z * z * z * z * z * 5 / 660);
}
static long double sum_of_powers(long double s, long double q) { /* over (q + k)^-s, q > 0 */
  long double sum = 0;
  for (int k = 0; k < 400; k++) sum += powl(q + k, -s);
  const long double x = q + 400;
  sum += powl(x, 1 - s) / (s - 1) + powl(x, -s) / 2 + s * powl(x, -s - 1) / 12;
  return sum - s * (s + 1) * (s + 2) * powl(x, -s - 3) / 720;
}
static double ref_zeta(double s, double q) {
  if (s == 1) return INFINITY;
  if (!(s > 1) || isnan(q)) return NAN;
  if (isinf(q)) return q > 0 ? 0 : INFINITY;
  if (q <= 0 && q == floor(q)) return INFINITY;
  if (q <= 0 && isinf(s)) return INFINITY; /* one base is inside (-1, 1) */
  if (q <= 0 && s != floor(s)) return NAN;
  long double sum = 0;
  long double x = q;
  if (x < -1e6L) { /* one side of all integers, and the other: nothing is missing in between */
    const long double part = x - floorl(x);
    const int sign = fmod(s, 2) == 0 ? 1 : -1;
    return (double)(sum_of_powers(s, part) + sign * sum_of_powers(s, 1 - part));
  }
  for (; x < 0; x += 1) sum += powl(x, -s);
  return (double)(sum + sum_of_powers(s, x));
}
static double ref_polygamma(const Inputs* in, const double* x) {
  const int64_t n = int_arg(in, "n", 0);
  if (n == 0) return ref_digamma(x[0]);
  return (n % 2 ? 1 : -1) * tgamma((double)n + 1) * ref_zeta((double)n + 1, x[0]);
}
static double ref_mvlgamma(const Inputs* in, const double* x) {
  const int64_t p = int_arg(in, "p", 1);
  double sum = (double)(p * (p - 1)) / 4 * log((double)kPiL);
  for (int64_t j = 0; j < p; j++) sum += lgamma(x[0] - 0.5 * (double)j);
  return sum;
}

/* x with f(x) = y, for a function that rises. */
static double inverse(long double (*f)(long double), long double y, long double low,
                      long double high) {
  for (int k = 0; k < 200; k++) {
    const long double middle = (low + high) / 2;
    if (f(middle) < y) low = middle;
    else high = middle;
  }
  return (double)((low + high) / 2);
}
static double ref_erfinv(double y) {
  if (!(fabs(y) <= 1)) return NAN;
  if (fabs(y) == 1) return copysign(INFINITY, y);
  return y == 0 ? 0 : copysign(inverse(erfl, fabsl(y), 0, 10), y);
}
static double ref_erfcx(double x) {
  const Wide square = wide_product(x, x);
  double fraction = x;
  if (!(x > 2)) return isinf(x) ? INFINITY : narrow(wide_exp(square)) * erfc(x);
  for (int k = 200; k > 0; k--) fraction = x + 0.5 * k / fraction;
  return 1 / (fraction * sqrt((double)kPiL));
}
static long double normal(long double x) { return 0.5L * normal_tail(x); }
static double ref_ndtr(double x) { return (double)normal(x); }
static double ref_log_ndtr(double x) {
  if (x > 0) return (double)log1pl(-normal(-x));
  if (x > -5 || isnan(x)) return (double)logl(normal(x));
  return -x * x / 2 + log(ref_erfcx(-x / sqrt(2)) / 2);
}
static double ref_ndtri(double p) {
  if (!(p >= 0 && p <= 1)) return NAN;
  if (p == 0 || p == 1) return p == 0 ? -INFINITY : INFINITY;
  if (p == 0.5) return 0;
  if (fabs(p - 0.5) < 0.25) return copysign(sqrt(2), p - 0.5) * ref_erfinv(fabs(2 * p - 1));
  return p < 0.5 ? inverse(normal, p, -150, 150) : -inverse(normal, 1 - p, -150, 150);
}

/* I of an order, times e^-|x|: the power series, or the asymptotic one. */
static Wide scaled_bessel(int order, double x) {
  const double a = fabs(x);
  Wide term = wide(order == 0 || a > 40 ? 1 : a / 2);
  Wide sum = term;
  if (isinf(x)) return wide(0);
  if (a > 40) {
    for (int k = 1; k < 40; k++) {
      const double odd = 2 * k - 1;
      const Wide factor = wide_over(wide(odd * odd - 4 * order), wide_product(8 * a, k));
      term = wide_times(term, factor);
      sum = wide_add(sum, term);
    }
    return wide(narrow(sum) / sqrt(2 * (double)kPiL * a));
  }
  for (int k = 1; k < 200; k++) {
    term = wide_over(wide_times(term, wide_product(a / 2, a / 2)), wide((double)k * (k + order)));
    sum = wide_add(sum, term);
  }
  return wide_times(sum, wide_exp(wide(-a)));
}
static double unscaled_bessel(int order, double x) {
  const Wide half = wide_exp(wide(fabs(x) / 2));
  if (isinf(x)) return INFINITY;
  return narrow(wide_times(wide_times(scaled_bessel(order, x), half), half));
}
static double ref_i0(double x) { return isnan(x) ? x : unscaled_bessel(0, x); }
static double ref_i1(double x) { return isnan(x) ? x : copysign(unscaled_bessel(1, x), x); }
static double ref_i0e(double x) { return isnan(x) ? x : narrow(scaled_bessel(0, x)); }
static double ref_i1e(double x) { return isnan(x) ? x : copysign(narrow(scaled_bessel(1, x)), x); }

static double ref_sinc(double x) {
  long double part = fmodl(x, 2); /* exact */
  if (x == 0) return 1;
  if (fabsl(part) > 1) part -= copysignl(2, part);
  if (fabsl(part) > 0.5L) part = copysignl(1, part) - part;
  return (double)(sinl(kPiL * part) / (kPiL * x));
}
static double ref_entr(double x) {
  if (x < 0) return -INFINITY;
  return x == 0 ? 0 : -x * log(x);
}
static double ref_xlogy(double a, double b) { return a == 0 && !isnan(b) ? 0 : a * log(b); }
static double ref_xlog1py(double a, double b) { return a == 0 && !isnan(b) ? 0 : a * log1p(b); }

/* log(gamma(z)) by Stirling's series, from 40 on. */
static Wide wide_lgamma(Wide z) {
  static const double kBernoulli[][2] = {{1, 12},   {-1, 360},      {1, 1260}, {-1, 1680},
                                         {1, 1188}, {-691, 360360}, {1, 156},  {-3617, 122400}};
  const Wide half_log_of_2_pi = {0x1.d67f1c864beb5p-1, -0x1.65b5a1b7ff5dfp-55};
  Wide product = wide(1);
  for (; z.high < 40; z = wide_add(z, wide(1))) product = wide_times(product, z);
  Wide sum = wide_subtract(half_log_of_2_pi, z);
  sum = wide_add(sum, wide_times(wide_subtract(z, wide(0.5)), wide_log(z)));
  Wide power = z;
  for (int k = 0; k < 8; k++) {
    const Wide divisor = wide_times(power, wide(kBernoulli[k][1]));
    sum = wide_add(sum, wide_over(wide(kBernoulli[k][0]), divisor));
    power = wide_times(power, wide_times(z, z));
  }
  return wide_subtract(sum, wide_log(product));
}
static Wide lower_gamma(double a, double x) { /* the power series of P(a, x) */
  const Wide exponent = wide_subtract(wide_times(wide(a), wide_log(wide(x))), wide(x));
  Wide term = wide_exp(wide_subtract(exponent, wide_lgamma(wide_sum(a, 1))));
  Wide sum = wide(0);
  for (int k = 1; k < 2000; k++) {
    sum = wide_add(sum, term);
    term = wide_over(wide_times(term, wide(x)), wide_sum(a, k));
  }
  return sum;
}
static double ref_igamma(double a, double x) {
  if (a == INFINITY && !isinf(x) && !(x < 0)) return 0;
  if (!(a >= 0) || !(x >= 0) || isinf(a) || (a == 0 && x == 0)) return NAN;
  if (a == 0 || isinf(x)) return 1;
  return x == 0 ? 0 : narrow(lower_gamma(a, x));
}
static double ref_igammac(double a, double x) {
  const double p = ref_igamma(a, x);
  if (isnan(p) || p == 0 || p == 1) return isnan(p) ? p : 1 - p;
  return narrow(wide_subtract(wide(1), lower_gamma(a, x)));
}

static const Reference kSpecial[] = {
    {"lgamma", .unary = lgamma},
    {"digamma", .unary = ref_digamma},
    {"polygamma", .elementwise = ref_polygamma},
    {"mvlgamma", .elementwise = ref_mvlgamma},
    {"zeta", .binary = ref_zeta},
    {"erfinv", .unary = ref_erfinv},
    {"erfcx", .unary = ref_erfcx},
    {"ndtr", .unary = ref_ndtr},
    {"log_ndtr", .unary = ref_log_ndtr},
    {"ndtri", .unary = ref_ndtri},
    {"i0", .unary = ref_i0},
    {"i0e", .unary = ref_i0e},
    {"i1", .unary = ref_i1},
    {"i1e", .unary = ref_i1e},
    {"sinc", .unary = ref_sinc},
    {"entr", .unary = ref_entr},
    {"xlogy", .binary = ref_xlogy},
    {"xlog1py", .binary = ref_xlog1py},
    {"igamma", .binary = ref_igamma},
    {"igammac", .binary = ref_igammac},
};
