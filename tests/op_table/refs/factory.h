/* References of new tensors. */

static int filled(const Inputs* in, Array* out, double value) {
  const Array* like = tensor(in, "self");
  const tt_value* size = given(in, "size");
  *out = like ? zeros_like(like) : new_array(size->ints, (int)size->n);
  fill(out, value);
  return 1;
}
static int ref_zeros(const Inputs* in, Array* out) { return filled(in, out, 0); }
static int ref_ones(const Inputs* in, Array* out) { return filled(in, out, 1); }
static int ref_full(const Inputs* in, Array* out) {
  return filled(in, out, number_arg(in, "fill_value", 0));
}
static int ref_empty(const Inputs* in, Array* out) {
  filled(in, out, 0);
  out->data = NULL; /* any values */
  return 1;
}
static int ref_arange(const Inputs* in, Array* out) {
  const double start = number_arg(in, "start", 0);
  const double end = number_arg(in, "end", 0);
  const double step = number_arg(in, "step", 1);
  const int64_t dtype = int_arg(in, "dtype", TT_F32);
  const int64_t n = (int64_t)ceil((end - start) / step);
  *out = new_array(&n, 1);
  for (int64_t i = 0; i < n; i++) {
    const double value = start + step * (double)i;
    out->data[i] = value;
    if (dtype == TT_I64) out->data[i] = trunc(start) + trunc(step) * (double)i;
    if (dtype == TT_BOOL) out->data[i] = value != 0;
  }
  return 1;
}
/* The second half is counted from the end. */
static int ref_linspace(const Inputs* in, Array* out) {
  const double start = number_arg(in, "start", 0);
  const double end = number_arg(in, "end", 0);
  const int64_t n = int_arg(in, "steps", 0);
  const double step = n > 1 ? (end - start) / (double)(n - 1) : 0;
  *out = new_array(&n, 1);
  for (int64_t i = 0; i < n; i++) {
    const int from_end = n > 1 && i >= n / 2;
    out->data[i] = from_end ? end - step * (double)(n - 1 - i) : start + step * (double)i;
  }
  return 1;
}
static int ref_eye(const Inputs* in, Array* out) {
  const int64_t rows = int_arg(in, "n", 0);
  const int64_t shape[] = {rows, int_arg(in, "m", rows)};
  *out = new_array(shape, 2);
  for (int64_t i = 0; i < out->n; i++) out->data[i] = i / shape[1] == i % shape[1];
  return 1;
}

static int triangle_indices(const Inputs* in, Array* out, int is_lower) {
  const int64_t rows = int_arg(in, "row", 0);
  const int64_t columns = int_arg(in, "col", 0);
  const int64_t offset = int_arg(in, "offset", 0);
  int64_t shape[2] = {2, 0};
  for (int pass = 0; pass < 2; pass++) {
    int64_t n = 0;
    for (int64_t i = 0; i < rows * columns; i++) {
      const int64_t above = i % columns - i / columns - offset;
      if (is_lower ? above > 0 : above < 0) continue;
      if (pass) {
        out->data[n] = (double)(i / columns);
        out->data[shape[1] + n] = (double)(i % columns);
      }
      n++;
    }
    shape[1] = n;
    if (!pass) *out = new_array(shape, 2);
  }
  return 1;
}
static int ref_tril_indices(const Inputs* in, Array* out) { return triangle_indices(in, out, 1); }
static int ref_triu_indices(const Inputs* in, Array* out) { return triangle_indices(in, out, 0); }

static int ref_logspace(const Inputs* in, Array* out) {
  const double start = number_arg(in, "start", 0);
  const double end = number_arg(in, "end", 0);
  const int64_t n = int_arg(in, "steps", 0);
  *out = new_array(&n, 1);
  for (int64_t i = 0; i < n; i++) {
    const double power = n > 1 ? start + (end - start) / (double)(n - 1) * (double)i : start;
    out->data[i] = pow(number_arg(in, "base", 10), power);
  }
  return 1;
}
/* The sum of a[k] cos(2 pi k i / n). */
static int cosine_window(const Inputs* in, Array* out, double a0, double a1, double a2) {
  const int64_t length = int_arg(in, "window_length", 0);
  const double n = (double)(length - !int_arg(in, "periodic", 1));
  *out = new_array(&length, 1);
  for (int64_t i = 0; i < length; i++) {
    const double angle = 2 * acos(-1) * (double)i / n;
    out->data[i] = length == 1 ? 1 : fabs(a0 + a1 * cos(angle) + a2 * cos(2 * angle));
  }
  return 1;
}
static int ref_hann_window(const Inputs* in, Array* out) {
  return cosine_window(in, out, 0.5, -0.5, 0);
}
static int ref_hamming_window(const Inputs* in, Array* out) {
  return cosine_window(in, out, number_arg(in, "alpha", 0.54), -number_arg(in, "beta", 0.46), 0);
}
static int ref_blackman_window(const Inputs* in, Array* out) {
  return cosine_window(in, out, 0.42, -0.5, 0.08);
}
static int ref_bartlett_window(const Inputs* in, Array* out) {
  const int64_t length = int_arg(in, "window_length", 0);
  const double n = (double)(length - !int_arg(in, "periodic", 1));
  *out = new_array(&length, 1);
  for (int64_t i = 0; i < length; i++)
    out->data[i] = length == 1 ? 1 : 1 - fabs(2 * (double)i / n - 1);
  return 1;
}
static double bessel_i0(double x) { /* the sum of (x / 2)^2k / k!^2 */
  double term = 1;
  double sum = 1;
  for (int k = 1; k < 100; k++) {
    term *= x * x / (4.0 * k * k);
    sum += term;
  }
  return sum;
}
static int ref_kaiser_window(const Inputs* in, Array* out) {
  const double beta = number_arg(in, "beta", 12);
  ref_bartlett_window(in, out);
  for (int64_t i = 0; i < out->n; i++) {
    const double at = 1 - out->data[i]; /* the distance from the middle */
    out->data[i] = bessel_i0(beta * sqrt(1 - at * at)) / bessel_i0(beta);
  }
  return 1;
}

static const Reference kFactory[] = {
    {"zeros", .whole = ref_zeros, .exact = 1},
    {"ones", .whole = ref_ones, .exact = 1},
    {"full", .whole = ref_full, .exact = 1},
    {"empty", .whole = ref_empty, .exact = 1},
    {"empty_strided", .whole = ref_empty, .exact = 1},
    {"zeros_like", .whole = ref_zeros, .exact = 1},
    {"ones_like", .whole = ref_ones, .exact = 1},
    {"full_like", .whole = ref_full, .exact = 1},
    {"empty_like", .whole = ref_empty, .exact = 1},
    {"arange", .whole = ref_arange, .exact = 1},
    {"linspace", .whole = ref_linspace},
    {"eye", .whole = ref_eye, .exact = 1},
    {"tril_indices", .whole = ref_tril_indices, .exact = 1},
    {"triu_indices", .whole = ref_triu_indices, .exact = 1},
    {"logspace", .whole = ref_logspace},
    {"hann_window", .whole = ref_hann_window},
    {"hamming_window", .whole = ref_hamming_window},
    {"blackman_window", .whole = ref_blackman_window},
    {"bartlett_window", .whole = ref_bartlett_window},
    {"kaiser_window", .whole = ref_kaiser_window},
};
