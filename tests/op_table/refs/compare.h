/* References of comparisons and of logic. */

static double ref_eq(double a, double b) { return a == b; }
static double ref_ne(double a, double b) { return a != b; }
static double ref_lt(double a, double b) { return a < b; }
static double ref_le(double a, double b) { return a <= b; }
static double ref_gt(double a, double b) { return a > b; }
static double ref_ge(double a, double b) { return a >= b; }
static double ref_logical_not(double a) { return a == 0; }
static double ref_logical_and(double a, double b) { return a != 0 && b != 0; }
static double ref_logical_or(double a, double b) { return a != 0 || b != 0; }
static double ref_logical_xor(double a, double b) { return (a != 0) != (b != 0); }

static int ref_isclose(const Inputs* in, Array* out) {
  const Array pair[2] = {*tensor(in, "self"), *tensor(in, "other")};
  int64_t index[kMaxDims];
  *out = broadcast_zeros(pair, 2);
  for (int64_t i = 0; i < out->n; i++) {
    index_of(out, i, index);
    const double a = broadcast_value(&pair[0], index, out->ndim);
    const double b = broadcast_value(&pair[1], index, out->ndim);
    const double error = fabs(a - b);
    const double allowed = number_arg(in, "atol", 1e-8) + number_arg(in, "rtol", 1e-5) * fabs(b);
    out->data[i] = a == b || (isfinite(error) && error <= allowed) ||
                   (flag_arg(in, "equal_nan") && isnan(a) && isnan(b));
  }
  return 1;
}
static int ref_isin(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "elements");
  const Array* tests = tensor(in, "test_elements");
  *out = zeros_like(x);
  for (int64_t i = 0; i < x->n; i++) {
    int found = 0;
    for (int64_t k = 0; k < tests->n; k++) found |= x->data[i] == tests->data[k];
    out->data[i] = found != flag_arg(in, "invert");
  }
  return 1;
}

static const Reference kCompare[] = {
    {"eq", .binary = ref_eq, .exact = 1},
    {"ne", .binary = ref_ne, .exact = 1},
    {"lt", .binary = ref_lt, .exact = 1},
    {"le", .binary = ref_le, .exact = 1},
    {"gt", .binary = ref_gt, .exact = 1},
    {"ge", .binary = ref_ge, .exact = 1},
    {"logical_not", .unary = ref_logical_not, .exact = 1},
    {"logical_and", .binary = ref_logical_and, .exact = 1},
    {"logical_or", .binary = ref_logical_or, .exact = 1},
    {"logical_xor", .binary = ref_logical_xor, .exact = 1},
    {"isclose", .whole = ref_isclose, .exact = 1},
    {"isin", .whole = ref_isin, .exact = 1},
};
