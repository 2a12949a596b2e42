/* References of operators on complex tensors, as pairs of real numbers. */

static Array paired(Array a) { /* zeros of the shape of a and 2 */
  int64_t shape[kMaxDims];
  memcpy(shape, a.shape, sizeof shape);
  shape[a.ndim] = 2;
  return new_array(shape, a.ndim + 1);
}
static Array joined_parts(const Array* a, const Array* b, int is_polar) {
  Array operands[2] = {*a, *b};
  const Array shape = broadcast_zeros(operands, 2);
  Array out = paired(shape);
  for (int64_t i = 0; i < shape.n; i++) {
    int64_t index[kMaxDims];
    index_of(&shape, i, index);
    const double x = broadcast_value(a, index, shape.ndim);
    const double y = broadcast_value(b, index, shape.ndim);
    out.data[2 * i] = is_polar ? x * cos(y) : x;
    out.data[2 * i + 1] = is_polar ? x * sin(y) : y;
  }
  return out;
}
static int ref_complex(const Inputs* in, Array* out) {
  *out = joined_parts(tensor(in, "real"), tensor(in, "imag"), 0);
  return 1;
}
static int ref_polar(const Inputs* in, Array* out) {
  *out = joined_parts(tensor(in, "abs"), tensor(in, "angle"), 1);
  return 1;
}

static double ref_same(double x) { return x; }
static double ref_imag(double x) { /* samples are real numbers */
  (void)x;
  return 0;
}
static double ref_angle(double x) {
  if (isnan(x)) return x;
  return x < 0 ? acos(-1) : 0;
}
static int ref_view_as_real(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "self");
  *out = paired(*x);
  for (int64_t i = 0; i < x->n; i++) out->data[2 * i] = x->data[i];
  return 1;
}
static int ref_view_as_complex(const Inputs* in, Array* out) {
  *out = *tensor(in, "self");
  return 1;
}

static const Reference kComplex[] = {
    {"complex", .whole = ref_complex, .exact = 1},
    {"polar", .whole = ref_polar},
    {"real", .unary = ref_same, .exact = 1},
    {"imag", .unary = ref_imag, .exact = 1},
    {"angle", .unary = ref_angle, .exact = 1},
    {"conj", .unary = ref_same, .exact = 1},
    {"conj_physical", .unary = ref_same, .exact = 1},
    {"resolve_conj", .unary = ref_same, .exact = 1},
    {"resolve_neg", .unary = ref_same, .exact = 1},
    {"view_as_real", .whole = ref_view_as_real, .exact = 1},
    {"view_as_complex", .whole = ref_view_as_complex, .exact = 1},
};
