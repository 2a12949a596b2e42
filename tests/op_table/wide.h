/* Numbers of about 100 bits, each the sum of two doubles: references that cancel need them, and
   `long double` is no wider than double on some targets. */
typedef struct Wide {
  double high, low;
} Wide;

static Wide wide(double a) { return (Wide){a, 0}; }
static double narrow(Wide a) { return a.high + a.low; }
static Wide wide_sum(double a, double b) {
  const double sum = a + b;
  const double before = sum - b;
  return (Wide){sum, (a - before) + (b - (sum - before))};
}
static Wide wide_product(double a, double b) { return (Wide){a * b, fma(a, b, -(a * b))}; }
static Wide wide_add(Wide a, Wide b) {
  const Wide sum = wide_sum(a.high, b.high);
  return wide_sum(sum.high, sum.low + a.low + b.low);
}
static Wide wide_subtract(Wide a, Wide b) { return wide_add(a, (Wide){-b.high, -b.low}); }
static Wide wide_times(Wide a, Wide b) {
  const Wide product = wide_product(a.high, b.high);
  return wide_sum(product.high, product.low + (a.high * b.low + a.low * b.high));
}
static Wide wide_over(Wide a, Wide b) {
  const double first = a.high / b.high;
  const Wide rest = wide_subtract(a, wide_times(b, wide(first)));
  const double second = rest.high / b.high;
  const Wide last = wide_subtract(rest, wide_times(b, wide(second)));
  return wide_add(wide_sum(first, second), wide(last.high / b.high));
}

/* Taylor's series of the rest of x by log(2), divided by 64; its sum is squared six times. */
static Wide wide_exp(Wide x) {
  const Wide log_2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
  if (!(fabs(x.high) < 740)) return wide(exp(x.high));
  const double powers = floor(x.high / log_2.high + 0.5);
  const Wide rest = wide_subtract(x, wide_times(wide(powers), log_2));
  const Wide part = {rest.high / 64, rest.low / 64};
  Wide sum = wide(1);
  for (int k = 16; k > 0; k--) sum = wide_add(wide(1), wide_over(wide_times(sum, part), wide(k)));
  for (int k = 0; k < 6; k++) sum = wide_times(sum, sum);
  return (Wide){ldexp(sum.high, (int)powers), ldexp(sum.low, (int)powers)};
}
static Wide wide_log(Wide x) { /* one step of Newton's method from the logarithm in double */
  const Wide guess = wide(log(x.high));
  const Wide quotient = wide_times(x, wide_exp(wide(-guess.high)));
  return wide_add(guess, wide_subtract(quotient, wide(1)));
}
