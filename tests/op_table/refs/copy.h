/* References of copies and casts. */

static double same(double x) { return x; }
static double ref_zero(double x) {
  (void)x;
  return 0;
}
static double second(double x, double y) {
  (void)x;
  return y;
}
static int ref_to(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  const int64_t dtype = int_arg(in, "dtype", TT_F64);
  *out = copy_of(x);
  for (int64_t i = 0; i < x->n; i++) {
    if (dtype == TT_BOOL) out->data[i] = x->data[i] != 0;
    if (dtype >= TT_U8 && dtype <= TT_I64) out->data[i] = trunc(x->data[i]);
  }
  return 1;
}

static const Reference kCopy[] = {
    {"clone", .unary = same, .exact = 1},    {"contiguous", .unary = same, .exact = 1},
    {"copy_", .binary = second, .exact = 1}, {"fill_", .binary = second, .exact = 1},
    {"fill", .binary = second, .exact = 1},  {"zero_", .unary = ref_zero, .exact = 1},
    {"to", .whole = ref_to, .exact = 1},
};
