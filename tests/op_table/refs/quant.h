/* References of quantisation. */

/* The element of a scale or zero point for element i of x: one for all, or one along axis. */
static double of_channel(const Inputs* in, const char* name, const Array* x, int64_t i,
                         double otherwise) {
  const Array* t = tensor(in, name);
  if (!t) return number_arg(in, name, otherwise);
  if (t->n == 1) return t->data[0];
  const int64_t axis = dim_arg(in, "axis", 0, x->ndim);
  return t->data[i / inner_size(x, axis) % size_of(x, axis)];
}
static double quantized(const Inputs* in, const Array* x, int64_t i, double scale, double zero) {
  const double q = nearbyint(x->data[i] / scale) + zero;
  return fmin(fmax(q, number_arg(in, "quant_min", 0)), number_arg(in, "quant_max", 0));
}
static int quantize(const Inputs* in, const char* scale, const char* zero, int fake, Array* out) {
  const Array* x = tensor(in, "input");
  *out = zeros_like(x);
  for (int64_t i = 0; i < x->n; i++) {
    const double step = of_channel(in, scale, x, i, 1);
    const double point = of_channel(in, zero, x, i, 0);
    const double q = quantized(in, x, i, step, point);
    out->data[i] = fake ? (q - point) * step : q;
  }
  return 1;
}
static int dequantize(const Inputs* in, const char* scale, const char* zero, Array* out) {
  const Array* x = tensor(in, "input");
  *out = zeros_like(x);
  for (int64_t i = 0; i < x->n; i++)
    out->data[i] = (x->data[i] - of_channel(in, zero, x, i, 0)) * of_channel(in, scale, x, i, 1);
  return 1;
}
static int ref_fake_quantize(const Inputs* in, Array* out) {
  return quantize(in, "scale", "zero_point", 1, out);
}
static int ref_quantize_per_tensor(const Inputs* in, Array* out) {
  return quantize(in, "scale", "zero_point", 0, out);
}
static int ref_quantize_per_channel(const Inputs* in, Array* out) {
  return quantize(in, "scales", "zero_points", 0, out);
}
static int ref_dequantize_per_tensor(const Inputs* in, Array* out) {
  return dequantize(in, "scale", "zero_point", out);
}
static int ref_dequantize_per_channel(const Inputs* in, Array* out) {
  return dequantize(in, "scales", "zero_points", out);
}

/* x @ w.T of rows of k elements; columns are `step` apart. */
static double dot_of(const double* x, const double* w, int64_t k, int64_t step, double zero) {
  double sum = 0;
  for (int64_t i = 0; i < k; i++) sum += (x[i] - zero) * w[i * step];
  return sum;
}
static int ref_int_mm(const Inputs* in, Array* out) {
  const Array *a = tensor(in, "self"), *b = tensor(in, "mat2");
  const int64_t shape[2] = {a->shape[0], b->shape[1]};
  *out = new_array(shape, 2);
  for (int64_t i = 0; i < out->n; i++)
    out->data[i] = dot_of(a->data + i / shape[1] * a->shape[1], b->data + i % shape[1], a->shape[1],
                          shape[1], 0);
  return 1;
}
static double per_item(const Array* t, int64_t i) { return t->data[t->n == 1 ? 0 : i]; }
static int ref_quantized_linear(const Inputs* in, Array* out) {
  const Array *x = tensor(in, "input"), *w = tensor(in, "weight"), *bias = tensor(in, "bias");
  const int64_t k = w->shape[1], n = w->shape[0];
  int64_t shape[kMaxDims];
  memcpy(shape, x->shape, sizeof shape);
  shape[x->ndim - 1] = n;
  *out = new_array(shape, x->ndim);
  for (int64_t i = 0; i < out->n; i++) {
    const int64_t row = i / n, column = i % n;
    const double zero = per_item(tensor(in, "input_zero_point"), row);
    const double sum = dot_of(x->data + row * k, w->data + column * k, k, 1, zero);
    const double scale =
        per_item(tensor(in, "input_scale"), row) * per_item(tensor(in, "weight_scale"), column);
    out->data[i] = sum * scale + (bias ? bias->data[column] : 0);
  }
  return 1;
}
static int ref_quantized_conv2d(const Inputs* in, Array* out) {
  const Array *x = tensor(in, "input"), *w = tensor(in, "weight"), *bias = tensor(in, "bias");
  const Conv c = read_conv(in, 0);
  const double zero = number_arg(in, "input_zero_point", 0);
  const double scale = number_arg(in, "input_scale", 1);
  const int64_t shape[4] = {c.batch, c.out_channels, c.small[0], c.small[1]};
  *out = new_array(shape, 4);
  const int64_t channels = w->shape[1], taps = w->shape[2] * w->shape[3];
  for (int64_t i = 0; i < out->n; i++) {
    int64_t at[kMaxDims];
    index_of(out, i, at);
    const int64_t first = at[1] / (c.out_channels / c.groups) * channels;
    double sum = 0;
    for (int64_t e = 0; e < channels * taps; e++) {
      const int64_t row =
          at[2] * c.stride[0] + e % taps / w->shape[3] * c.dilation[0] - c.padding[0];
      const int64_t column = at[3] * c.stride[1] + e % w->shape[3] * c.dilation[1] - c.padding[1];
      if (row < 0 || row >= x->shape[2] || column < 0 || column >= x->shape[3]) continue;
      const int64_t from[4] = {at[0], first + e / taps, row, column};
      sum += (x->data[ravel(x, from)] - zero) * w->data[at[1] * channels * taps + e];
    }
    const double shift = bias ? bias->data[at[1]] : 0;
    out->data[i] = sum * scale * per_item(tensor(in, "weight_scale"), at[1]) + shift;
  }
  return 1;
}

/* ---- blocks of 32 numbers with a float16 scale ---- */

static int is_q8(const Inputs* in) { return number_arg(in, "format", 0) == 0; }
static int64_t bytes_of_block(const Inputs* in) { return is_q8(in) ? 34 : 18; }
static double half_value(int bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double magnitude = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
  return bits >> 15 ? -magnitude : magnitude;
}
/* The bits of the nearest float16, ties to even; |x| is at most 65504. */
static int half_bits(double x) {
  int exponent, bits;
  const double magnitude = fabs(x);
  frexp(magnitude, &exponent);
  if (magnitude < 0x1p-14) bits = (int)nearbyint(ldexp(magnitude, 24));
  else bits = ((exponent + 13) << 10) + (int)nearbyint(ldexp(magnitude, 11 - exponent));
  return signbit(x) ? bits | 0x8000 : bits;
}
/* Number i of a packed row. */
static double unpacked(const Inputs* in, const double* row, int64_t i) {
  const double* block = row + i / 32 * bytes_of_block(in);
  const double scale = half_value((int)block[0] | (int)block[1] << 8);
  const int byte = (int)block[2 + (is_q8(in) ? i % 32 : i % 16)];
  if (is_q8(in)) return scale * (byte < 128 ? byte : byte - 256);
  return scale * ((i % 32 < 16 ? byte & 15 : byte >> 4) - 8);
}
static void pack_block(const double* x, int q8, double* out) {
  float most = 0;
  double packed[32];
  for (int i = 0; i < 32; i++)
    if (fabs(x[i]) > fabs((double)most)) most = (float)x[i];
  const float scale = q8 ? (float)(fabs((double)most) / 127) : (float)((double)most / -8);
  const float inverse = scale != 0 ? (float)(1 / (double)scale) : 0;
  for (int i = 0; i < 32; i++) {
    const float steps = (float)(x[i] * inverse);
    if (q8) packed[i] = round(steps) < 0 ? round(steps) + 256 : round(steps);
    else packed[i] = fmin(15, trunc((double)(float)(steps + 8.5)));
  }
  const int bits = half_bits(scale);
  out[0] = bits & 255;
  out[1] = bits >> 8;
  for (int i = 0; i < (q8 ? 32 : 16); i++)
    out[2 + i] = q8 ? packed[i] : packed[i] + 16 * packed[i + 16];
}
static int ref_quantize_blockwise(const Inputs* in, Array* out) {
  const Array* x = tensor(in, "input");
  int64_t shape[kMaxDims];
  memcpy(shape, x->shape, sizeof shape);
  shape[x->ndim - 1] = shape[x->ndim - 1] / 32 * bytes_of_block(in);
  *out = new_array(shape, x->ndim);
  for (int64_t b = 0; b < x->n / 32; b++)
    pack_block(x->data + b * 32, is_q8(in), out->data + b * bytes_of_block(in));
  return 1;
}
/* A matrix of unpacked rows of t, (…, numbers). */
static Array unpacked_rows(const Inputs* in, const Array* t) {
  int64_t shape[kMaxDims];
  memcpy(shape, t->shape, sizeof shape);
  shape[t->ndim - 1] = shape[t->ndim - 1] / bytes_of_block(in) * 32;
  Array out = new_array(shape, t->ndim);
  for (int64_t i = 0; i < out.n; i++)
    out.data[i] = unpacked(in, t->data + i / 32 * bytes_of_block(in), i % 32);
  return out;
}
static int ref_dequantize_blockwise(const Inputs* in, Array* out) {
  *out = unpacked_rows(in, tensor(in, "input"));
  return 1;
}
static int ref_blockwise_linear(const Inputs* in, Array* out) {
  const Array *x = tensor(in, "input"), *bias = tensor(in, "bias");
  const Array w = unpacked_rows(in, tensor(in, "weight"));
  const int64_t k = w.shape[1], n = w.shape[0];
  int64_t shape[kMaxDims];
  memcpy(shape, x->shape, sizeof shape);
  shape[x->ndim - 1] = n;
  *out = new_array(shape, x->ndim);
  for (int64_t i = 0; i < out->n; i++)
    out->data[i] =
        dot_of(x->data + i / n * k, w.data + i % n * k, k, 1, 0) + (bias ? bias->data[i % n] : 0);
  return 1;
}
static int ref_blockwise_embedding(const Inputs* in, Array* out) {
  const Array* indices = tensor(in, "indices");
  const Array w = unpacked_rows(in, tensor(in, "weight"));
  int64_t shape[kMaxDims];
  memcpy(shape, indices->shape, sizeof shape);
  shape[indices->ndim] = w.shape[1];
  *out = new_array(shape, indices->ndim + 1);
  for (int64_t i = 0; i < out->n; i++)
    out->data[i] = w.data[(int64_t)indices->data[i / w.shape[1]] * w.shape[1] + i % w.shape[1]];
  return 1;
}

static const Reference kQuant[] = {
    {"fake_quantize_per_tensor_affine", .whole = ref_fake_quantize},
    {"fake_quantize_per_tensor_affine_tensor", .whole = ref_fake_quantize},
    {"fake_quantize_per_channel_affine", .whole = ref_fake_quantize},
    {"quantize_per_tensor", .whole = ref_quantize_per_tensor},
    {"dequantize_per_tensor", .whole = ref_dequantize_per_tensor},
    {"quantize_per_channel", .whole = ref_quantize_per_channel},
    {"dequantize_per_channel", .whole = ref_dequantize_per_channel},
    {"int_mm", .whole = ref_int_mm},
    {"quantized_linear", .whole = ref_quantized_linear},
    {"quantized_conv2d", .whole = ref_quantized_conv2d},
    {"quantize_blockwise", .whole = ref_quantize_blockwise},
    {"dequantize_blockwise", .whole = ref_dequantize_blockwise},
    {"blockwise_linear", .whole = ref_blockwise_linear},
    {"blockwise_embedding", .whole = ref_blockwise_embedding},
};
