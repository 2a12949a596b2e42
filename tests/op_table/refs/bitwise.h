/* References of operations on bits. */

static double ref_bitwise_and(double a, double b) { return (double)((int64_t)a & (int64_t)b); }
static double ref_bitwise_or(double a, double b) { return (double)((int64_t)a | (int64_t)b); }
static double ref_bitwise_xor(double a, double b) { return (double)((int64_t)a ^ (int64_t)b); }
static double ref_bitwise_not(const Inputs* in, const double* x) {
  switch (dtype_of(in, "self")) {
    case TT_BOOL: return x[0] == 0;
    case TT_U8: return 255 - x[0];
    default: return (double)~(int64_t)x[0];
  }
}
/* Shifts by a negative count or by all bits leave nothing, or the sign. */
static int shifts_out(const Inputs* in, double count) {
  return count < 0 || count >= 8 * (double)tt_dtype_size(dtype_of(in, "self"));
}
static double ref_left_shift(const Inputs* in, const double* x) {
  if (shifts_out(in, x[1])) return 0;
  const double shifted = ldexp(x[0], (int)x[1]);
  return dtype_of(in, "self") == TT_U8 ? fmod(shifted, 256) : shifted;
}
static double ref_right_shift(const Inputs* in, const double* x) {
  if (shifts_out(in, x[1])) return x[0] < 0 ? -1 : 0;
  return floor(ldexp(x[0], -(int)x[1]));
}

static const Reference kBitwise[] = {
    {"bitwise_and", .binary = ref_bitwise_and, .exact = 1},
    {"bitwise_or", .binary = ref_bitwise_or, .exact = 1},
    {"bitwise_xor", .binary = ref_bitwise_xor, .exact = 1},
    {"bitwise_not", .elementwise = ref_bitwise_not, .exact = 1},
    {"bitwise_left_shift", .elementwise = ref_left_shift, .exact = 1},
    {"bitwise_right_shift", .elementwise = ref_right_shift, .exact = 1},
};
